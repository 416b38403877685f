/* A study that was begun by an older version of the program, whose store has no state of the search: it is brought to this schema, and its
 * search is told again what it was told. What it proposes then is what it would have proposed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "store/schema.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { SEARCHES_SINCE = 9 }; /* the schema in which their state is kept */

#define CONFIG                                                                                                         \
    "{ \"bigdlConf\": \"b.json\", \"study\": { \"name\": \"s\", \"epochs\": 2, \"seed\": 5, \"max_trials\": 5 },\n"    \
    "  \"search\": { \"algorithm\": \"random\", \"stop\": \"none\" }, \"systemParameters\": { \"cores\": [1] },\n"     \
    "  \"hyperParameters\": { \"batch_size\": [64, 128, 256],\n"                                                       \
    "    \"learning_rate\": { \"min\": 0.001, \"max\": 0.1, \"scale\": \"log\" } } }\n"

#define TRIALS "SELECT number, hyper, state, accuracy FROM trials ORDER BY number"
#define EPOCHS "SELECT t.number, e.epoch FROM epochs e JOIN trials t ON t.id = e.trial WHERE t.number > 2 ORDER BY 1, 2"

static void execute(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
}

/* All that the older one has a place for. */
static int copy_table(void *ctx, int n, char **row, char **names)
{
    char *sql = NULL;
    (void)n, (void)names;
    assert_true(asprintf(&sql, "INSERT INTO main.%s(%s) SELECT %s FROM newer.%s", row[0], row[1], row[1], row[0]) > 0);
    execute(ctx, sql);
    free(sql);
    return 0;
}

/* The store as an older version would have left it. */
static void make_older(int schema)
{
    sqlite3 *db = NULL;
    assert_int_equal(rename("pipetune.db", "newer.db"), 0);
    assert_int_equal(sqlite3_open("pipetune.db", &db), SQLITE_OK);
    assert_int_equal(schema_apply(db, schema_steps, 0, schema), SQLITE_OK);
    execute(db, "ATTACH 'newer.db' AS newer");
    assert_int_equal(sqlite3_exec(db,
                                  "SELECT m.name, (SELECT group_concat(name) FROM pragma_table_info(m.name)) FROM "
                                  "sqlite_master m WHERE m.type = 'table'",
                                  copy_table, db, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(unlink("newer.db"), 0);
}

static void expect_exit(const char *what, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, %s%s", what, o.code, o.out, o.err);
    harness_output_done(&o);
}

static void begin_anew(const struct world *w)
{
    harness_write(w->dir, "b.json", WORLD_BIGDL WORLD_ARGUMENTS);
    harness_write(w->dir, "c.conf", CONFIG);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    (void)setenv("FAKE_EPOCH_MS", "20", 1);
    (void)unlink("pipetune.db");
    (void)unlink("count");
}

static size_t trained(const struct world *w)
{
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text ? harness_count(text, "trained ") : 0;
}

/* Its checkpoint is written before its epoch is stored. */
static bool third_is_under_way(void *world)
{
    (void)world;
    AUTO_FREE char *n = harness_ask("pipetune.db", "SELECT count(*) FROM epochs");
    return strcmp(n, "5") == 0;
}

/* Two trials are over, and the third is cut short. */
static void begin_study(struct world *w)
{
    begin_anew(w);
    expect_exit("two trials", RUN(w, "run", "c.conf", "--parallel", "1", "--max-trials", "2"), 0);
    (void)setenv("FAKE_EPOCH_MS", "600", 1);
    pid_t pid = START(w, -1, "run", "c.conf", "--parallel", "1");
    assert_true(harness_wait(third_is_under_way, w, HARNESS_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    (void)setenv("FAKE_EPOCH_MS", "20", 1);
}

static void a_study_of_an_older_schema_goes_on_with_its_next_proposal(void **state)
{
    static const int schemas[] = { 1, 4, SEARCHES_SINCE - 1 };
    struct world *w = *state;
    begin_anew(w);
    expect_exit("undisturbed", RUN(w, "run", "c.conf", "--parallel", "1"), 0);
    AUTO_FREE char *want = harness_ask("pipetune.db", TRIALS);
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "of schema %d", schemas[i]);
        begin_study(w);
        make_older(schemas[i]);
        expect_exit(name, RUN(w, "run", "c.conf", "--parallel", "1"), 0);
        harness_expect_rows(name, "pipetune.db", TRIALS, want);
        harness_expect_rows(name, "pipetune.db", EPOCHS, "3|1 3|2 4|1 4|2 5|1 5|2");
        harness_expect_rows(name, "pipetune.db", "SELECT count(*) FROM searches", "1"); /* kept from here on */
        if (trained(w) != 10)
            fail_msg("%s: %zu epochs were trained, want 10", name, trained(w));
    }
}

/* One whose search proposes otherwise is left as it is. */
static void a_study_that_another_search_began_is_not_gone_on_with(void **state)
{
    struct world *w = *state;
    begin_study(w);
    make_older(SEARCHES_SINCE - 1);
    free(harness_ask("pipetune.db", "UPDATE trials SET hyper = replace(hyper, '0.0', '0.09') WHERE number = 2"));
    struct harness_output o = RUN(w, "run", "c.conf", "--parallel", "1");
    if (o.code == 0 || !strstr(o.err, "its search no longer proposes s/2 as stored"))
        fail_msg("got exit %d, %s%s", o.code, o.out, o.err);
    harness_output_done(&o);
    harness_expect_rows("no trial more", "pipetune.db", "SELECT count(*) FROM trials", "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_study_of_an_older_schema_goes_on_with_its_next_proposal, world_open,
                                        world_close),
        cmocka_unit_test_setup_teardown(a_study_that_another_search_began_is_not_gone_on_with, world_open, world_close),
    };
    return cmocka_run_group_tests_name("upgrade", tests, NULL, NULL);
}
