/* What is printed of a store, whole: each command in each of its forms, as tests/data/golden has it. The store is tests/data/golden/store.sql; its
 * folder reads as @DIR.
 *
 * PIPETUNE_GOLDEN=write writes the files anew: what changed is then for git diff to show, and for you to judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "store/store.h"
#include "tests/integration/harness.h"

#define GOLDEN "tests/data/golden"

enum { WORDS = 6 };

struct shown {
    char *dir, *store;
};

static const struct {
    const char *name, *columns; /* columns NULL: 100 */
    const char *words[WORDS];
} rows[] = {
    { "ls.json", NULL, { "ls", "--json" } },
    { "ls.txt", NULL, { "ls" } },
    { "ls-narrow.txt", "40", { "ls" } },
    { "show-demo.json", NULL, { "show", "demo", "--json" } },
    { "show-demo.txt", NULL, { "show", "demo" } },
    { "show-demo-wide.txt", "200", { "show", "demo" } },
    { "show-demo-narrow.txt", "50", { "show", "demo" } },
    { "show-front.json", NULL, { "show", "front", "--json" } },
    { "show-front.txt", NULL, { "show", "front" } },
    { "show-cut.json", NULL, { "show", "cut", "--json" } },
    { "show-cut.txt", NULL, { "show", "cut" } },
    { "show-empty.json", NULL, { "show", "empty <&>", "--json" } },
    { "show-empty.txt", NULL, { "show", "empty <&>" } },
    { "show-demo-1.json", NULL, { "show", "demo/1", "--json" } },
    { "show-demo-1.txt", NULL, { "show", "demo/1" } },
    { "show-demo-2.json", NULL, { "show", "demo/2", "--json" } },
    { "show-demo-2.txt", NULL, { "show", "demo/2" } },
    { "show-demo-4.txt", NULL, { "show", "demo/4" } },
    { "show-demo-6.txt", NULL, { "show", "demo/6" } },
    { "show-demo-7.txt", NULL, { "show", "demo/7" } },
    { "show-demo-8.txt", NULL, { "show", "demo/8" } },
    { "show-front-4.txt", NULL, { "show", "front/4" } },
    { "decisions.json", NULL, { "show", "demo", "--decisions", "--json" } },
    { "decisions.txt", NULL, { "show", "demo", "--decisions" } },
    { "decisions-1.txt", "60", { "show", "demo/1", "--decisions" } },
    { "importance.json", NULL, { "show", "demo", "--importance", "--json" } },
    { "importance.txt", NULL, { "show", "demo", "--importance" } },
    { "log.txt", NULL, { "show", "demo/1", "--log" } },
    { "best-demo.json", NULL, { "best", "demo", "--json" } },
    { "best-demo.txt", NULL, { "best", "demo" } },
    { "best-front.json", NULL, { "best", "front", "--json" } },
    { "best-front.txt", NULL, { "best", "front" } },
    { "compare.json", NULL, { "compare", "demo", "front", "cut", "--json" } },
    { "compare.txt", NULL, { "compare", "demo", "front", "cut" } },
    { "compare-narrow.txt", "60", { "compare", "demo", "early" } },
    { "diff.json", NULL, { "diff", "demo/1", "demo/4", "--json" } },
    { "diff.txt", NULL, { "diff", "demo/1", "demo/4" } },
    { "report-demo.json", NULL, { "report", "demo", "--json" } },
    { "report-demo.csv", NULL, { "report", "demo", "--csv" } },
    { "report-demo.html", NULL, { "report", "demo" } },
    { "report-front.json", NULL, { "report", "front", "--json" } },
    { "report-front.csv", NULL, { "report", "front", "--csv" } },
    { "report-front.html", NULL, { "report", "front" } },
    { "report-cut.csv", NULL, { "report", "cut", "--csv" } },
    { "report-empty.html", NULL, { "report", "empty <&>" } },
    { "energy.json", NULL, { "energy", "demo", "--json" } },
    { "energy.csv", NULL, { "energy", "demo", "--csv" } },
    { "energy.txt", NULL, { "energy", "demo" } },
    { "energy-1.txt", NULL, { "energy", "demo/1" } },
};

static void fill(const char *path)
{
    struct err e = { 0 };
    struct store *s = NULL;
    if (store_open(&s, path, STORE_WRITE, &e) < 0)
        fail_msg("%s", e.text);
    store_close(s);
    AUTO_FREE char *sql = harness_read(GOLDEN, "store.sql");
    sqlite3 *db = NULL;
    assert_non_null(sql);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int open_world(void **state)
{
    struct shown *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->dir = harness_dir();
    w->store = harness_path(w->dir, "pipetune.db");
    fill(w->store);
    (void)setenv("TZ", "UTC", 1);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct shown *w = *state;
    harness_remove(w->dir);
    free(w->store);
    free(w);
    return 0;
}

static char *without_folder(const char *text, const char *dir)
{
    struct buf b = BUF_INIT;
    for (const char *at; (at = strstr(text, dir)); text = at + strlen(dir)) {
        buf_put(&b, text, (size_t)(at - text));
        buf_puts(&b, "@DIR");
    }
    buf_puts(&b, text);
    return buf_take(&b);
}

/* What it said, and how it exited where that was not well. */
static char *said(const struct shown *w, size_t row)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 4] = { program };
    size_t n = 1;
    for (size_t i = 0; i < WORDS && rows[row].words[i]; i++)
        argv[n++] = (char *)(uintptr_t)rows[row].words[i];
    argv[n++] = (char *)(uintptr_t) "--store";
    argv[n] = w->store;
    (void)setenv("COLUMNS", rows[row].columns ? rows[row].columns : "100", 1);
    struct harness_output o = harness_run(argv, HARNESS_MS);
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, o.out);
    buf_puts(&b, o.err);
    if (o.code)
        buf_printf(&b, "exit %d\n", o.code);
    harness_output_done(&o);
    return without_folder(buf_text(&b), w->dir);
}

/* Where the number begins that this byte is of. */
static const char *number_at(const char *text, const char *at)
{
    while (at > text && strchr("0123456789.+-e", at[-1]))
        at--;
    return at;
}

/* The texts from here on, where they are no longer the same but for the last digits of numbers: compilers differ in these. */
static const char *differs(const char *got, const char *want, const char **out_want)
{
    const char *g = got, *w = want;
    while (*w || *g) {
        for (; *w && *w == *g; w++)
            g++;
        if (!*w && !*g)
            break;
        char *g_end, *w_end;
        double a = strtod(number_at(got, g), &g_end), b = strtod(number_at(want, w), &w_end);
        *out_want = w;
        if (g_end <= g || w_end <= w || fabs(a - b) > 1e-9 * fabs(b))
            return g;
        g = g_end;
        w = w_end;
    }
    return NULL;
}

static void expect_golden(const char *name, const char *got)
{
    AUTO_FREE char *want = harness_read(GOLDEN, name);
    const char *other = want;
    if (!want)
        fail_msg("no file " GOLDEN "/%s", name);
    const char *at = differs(got, want, &other);
    if (at)
        fail_msg("%s: from byte %zu on: got\n%.400s\nwant\n%.400s", name, (size_t)(at - got),
                 at - (at - got < 80 ? at - got : 80), other - (other - want < 80 ? other - want : 80));
}

static void test_commands_print_what_they_printed(void **state)
{
    bool write = getenv("PIPETUNE_GOLDEN") != NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *got = said(*state, i);
        if (write)
            harness_write(GOLDEN, rows[i].name, got);
        else
            expect_golden(rows[i].name, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands_print_what_they_printed, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
