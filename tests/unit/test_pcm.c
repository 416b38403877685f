#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/pcm.h"
#include "monitoring/pcm_csv.h"
#include "tests/fault.h"

#define PROC "Proc Energy (Joules)"
#define DRAM "DRAM Energy (Joules)"
#define DAY "2026-11-18;"
#define DAY_MS INT64_C(1794960000000) /* 2026-11-18 00:00, as if it were UTC */
#define AT(h, m, s) (DAY_MS + (((h)*60 + (m)) * 60 + (s)) * INT64_C(1000))

/* Two sockets, with DRAM, as PCM writes it: the totals, each socket's own columns, and then each socket's energies. */
#define GROUPS "System;;;;;Socket0;;Socket1;;" PROC ";;" DRAM ";;\n"
#define COLUMNS "Date;Time;EXEC;" PROC ";" DRAM ";EXEC;L3MISS;EXEC;L3MISS;SKT0;SKT1;SKT0;SKT1;\n"
#define HEADER GROUPS COLUMNS
/* "x" and "y" are the totals. */
#define ROW(time, x, y) DAY time ";0.5;" x ";" y ";1;2;3;4;99;98;97;96;\n"

/* --- the text --- */

enum { ROWS_MAX = 16 };

struct rows {
    struct pcm_row v[ROWS_MAX];
    size_t n;
    uint64_t passed_over;
};

/* All rows of the text, put in pieces of so many bytes. */
static struct rows rows_in_pieces(const char *text, size_t piece)
{
    struct pcm_csv c = { 0 };
    struct rows r = { 0 };
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += piece) {
        assert_int_equal(pcm_csv_put(&c, text + at, len - at < piece ? len - at : piece), 0);
        while (r.n < ROWS_MAX && pcm_csv_next(&c, &r.v[r.n]) == 1)
            r.n++;
    }
    r.passed_over = c.passed_over;
    pcm_csv_done(&c);
    return r;
}

static struct rows rows_of(const char *text)
{
    return rows_in_pieces(text, 4096);
}

static const struct {
    const char *name, *text;
    size_t n;
    double proc, dram, error; /* of the last row */
    uint64_t passed_over;
} texts[] = {
    { "the system's columns alone count", HEADER ROW("10:29:51.189", "83.61", "9.2"), 1, 83.61, 9.2, 0.055, 0 },
    { "with a decimal comma", HEADER ROW("10:29:51,189", "83,61", "9,2"), 1, 83.61, 9.2, 0.055, 0 },
    { "separated by commas", "System,,,,\nDate,Time," PROC ",IPC,\n2026-11-18,10:29:51,83.61,1.5,\n", 1, 83.61, 0,
      0.005, 0 },
    { "a decimal comma would be another column there", "System,,,\nDate,Time," PROC "\n2026-11-18,10:29:51,83,61\n", 0,
      0, 0, 0, 0 },
    { "lines that end as on Windows", "System;;\r\nDate;Time;" PROC "\r\n" DAY "1:2:3;5\r\n", 1, 5, 0, 0.5, 0 },
    { "no group for date and time", ";;System\nDate;Time;" PROC "\n" DAY "1:2:3;5\n", 1, 5, 0, 0.5, 0 },
    { "sockets are summed where the system has no column",
      "System;;;" PROC ";;" DRAM ";\nDate;Time;EXEC;SKT0;SKT1;SKT0;SKT1\n" DAY "1:2:3;9;5;6;1;2\n", 1, 11, 3, 2, 0 },
    { "or the columns of the sockets' own groups",
      "System;;Socket0;;;Socket1;;\nDate;Time;EXEC;" PROC ";" DRAM ";EXEC;" PROC ";" DRAM "\n" DAY
      "1:2:3;9;5;1;9;6;2\n",
      1, 11, 3, 2, 0 },
    { "each energy has its own form",
      "System;;;" PROC ";" DRAM ";\nDate;Time;" PROC ";SKT0;SKT0;SKT1\n" DAY "1:2:3;50;49;1;2\n", 1, 50, 3, 1.5, 0 },
    { "power planes are parts of a processor",
      "System;;;;\nDate;Time;" PROC ";PP0 Energy (Joules);PP1 Energy (Joules)\n" DAY "1:2:3;5;4;1\n", 1, 5, 0, 0.5, 0 },
    { "the same column twice counts once", "System;;;\nDate;Time;" PROC ";" PROC "\n" DAY "1:2:3;5;6\n", 1, 5, 0, 0.5,
      0 },
    { "a group's name is the whole of it", "System;;System Core C-States\nDate;Time;" PROC "\n" DAY "1:2:3;5\n", 1, NAN,
      0, 0, 0 },
    { "without a column of the processors' there is no energy", "System;;\nDate;Time;" DRAM "\n" DAY "1:2:3;5\n", 1,
      NAN, 5, 0.5, 0 },
    { "0 J is what PCM says where it cannot read them", HEADER ROW("1:2:3", "0", "0"), 1, 0, 0, 1, 0 },
    { "a cell that is no number makes no energy", HEADER ROW("1:2:3", "8x", "1"), 1, NAN, 1, 0.5, 0 },
    { "an empty one, too", HEADER ROW("1:2:3", "", "1"), 1, NAN, 1, 0.5, 0 },
    { "nor does one less than nothing", HEADER ROW("1:2:3", "5", "-1"), 1, 5, NAN, 0.5, 0 },
    { "large numbers have exponents", HEADER ROW("1:2:3", "1.5e+02", "1"), 1, 150, 1, 5.5, 0 },
    { "the header comes again", HEADER ROW("1:2:3", "5", "1") HEADER ROW("1:2:9", "6", "1"), 2, 6, 1, 1, 0 },
    { "and may be another one then",
      HEADER ROW("1:2:3", "5", "1") "System;;;\nDate;Time;IPC;" PROC "\n" DAY "1:2:9;7;8\n", 2, 8, 0, 0.5, 0 },
    { "an incomplete line waits", HEADER ROW("1:2:3", "5", "1") DAY "1:2:4;0.5;6;1;1;2;3;4;99;98;97;96", 1, 5, 1, 1,
      0 },
    { "a line that was cut is passed over", HEADER DAY "1:2:3;0.5;5;1;1\n" ROW("1:2:4", "6", "1"), 1, 6, 1, 1, 1 },
    { "two that grew together, too", HEADER DAY "1:2:3;0.5;5" ROW("1:2:4", "6", "1") ROW("1:2:5", "7", "1"), 1, 7, 1, 1,
      1 },
    { "a row with more cells than columns", HEADER DAY "1:2:3;0.5;5;1;1;2;3;4;99;98;97;96;7\n" ROW("1:2:4", "6", "1"),
      1, 6, 1, 1, 1 },
    { "other people's words", "Intel(r) PCM\n\n" HEADER "WARNING: something\n" ROW("1:2:3", "5", "1"), 1, 5, 1, 1, 2 },
    { "a row swallowed the groups: the columns are as before",
      HEADER ROW("1:2:3", "5", "1") DAY "1:2:4;0.5;6" GROUPS COLUMNS ROW("1:2:5", "7", "1"), 2, 7, 1, 1, 1 },
    { "it swallowed the groups of other columns: nothing is known until they come again",
      HEADER ROW("1:2:3", "5", "1") DAY "1:2:4;0.5;6System;;\nDate;Time;" PROC "\n" DAY "1:2:5;7\n" DAY "1:2:6;8\n", 1,
      5, 1, 1, 3 },
    { "rows without a header", ROW("1:2:3", "5", "1") ROW("1:2:4", "5", "1"), 0, 0, 0, 0, 1 },
    { "columns without groups", COLUMNS ROW("1:2:3", "5", "1"), 0, 0, 0, 0, 1 },
    { "nothing", "", 0, 0, 0, 0, 0 },
    { "empty lines", "\n\n" HEADER "\n" ROW("1:2:3", "5", "1") "\n", 1, 5, 1, 1, 0 },
};

static bool same(double a, double b)
{
    return isnan(b) ? isnan(a) : fabs(a - b) < 1e-9;
}

static void rows_are_found_by_their_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct rows r = rows_of(texts[i].text);
        if (r.n != texts[i].n || r.passed_over != texts[i].passed_over)
            fail_msg("%s: got %zu rows, %llu lines passed over", texts[i].name, r.n, (unsigned long long)r.passed_over);
        const struct pcm_row *last = r.n ? &r.v[r.n - 1] : NULL;
        if (last && (!same(last->proc_j, texts[i].proc) || !same(last->dram_j, texts[i].dram) ||
                     !same(last->error_j, texts[i].error)))
            fail_msg("%s: got %g J and %g J, off by %g J", texts[i].name, last->proc_j, last->dram_j, last->error_j);
    }
}

static void pieces_of_any_size_make_the_same_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct rows want = rows_of(texts[i].text);
        for (size_t piece = 1; piece < 60; piece += piece < 5 ? 1 : 9) {
            struct rows got = rows_in_pieces(texts[i].text, piece);
            if (got.n != want.n || got.passed_over != want.passed_over)
                fail_msg("%s: in pieces of %zu bytes", texts[i].name, piece);
            for (size_t k = 0; k < got.n; k++)
                assert_true(got.v[k].local_ms == want.v[k].local_ms && same(got.v[k].proc_j, want.v[k].proc_j) &&
                            got.v[k].fresh == want.v[k].fresh);
        }
    }
}

static const struct {
    const char *date, *time;
    int64_t ms; /* -1: it is no row */
    int step;
} times[] = {
    { "2026-11-18", "00:00:00", DAY_MS, 1000 },
    { "2026-11-18", "10:29:51.189", AT(10, 29, 51) + 189, 1 },
    { "2026-11-18", "10:29:51.1", AT(10, 29, 51) + 100, 1 },
    { "2026-11-18", "10:29:51,18957", AT(10, 29, 51) + 189, 1 },
    { "2026-11-18", "9:5:1", AT(9, 5, 1), 1000 },
    { "2026-11-8", "0:0:0", DAY_MS - 10 * INT64_C(86400000), 1000 },
    { "1970-01-01", "0:0:0", 0, 1000 },
    { "1970-12-31", "23:59:60", INT64_C(365) * 86400000, 1000 },
    { "2000-02-29", "0:0:0", INT64_C(951782400000), 1000 },
    { "2028-03-01", "0:0:0", INT64_C(1835481600000), 1000 },
    { "2027-02-29", "0:0:0", -1, 0 },
    { "2100-02-29", "0:0:0", -1, 0 },
    { "1969-12-31", "0:0:0", -1, 0 },
    { "2026-13-01", "0:0:0", -1, 0 },
    { "2026-00-01", "0:0:0", -1, 0 },
    { "2026-11-31", "0:0:0", -1, 0 },
    { "2026-11-", "0:0:0", -1, 0 },
    { "26-11-18x", "0:0:0", -1, 0 },
    { "2026-11-18", "24:00:00", -1, 0 },
    { "2026-11-18", "10:60:00", -1, 0 },
    { "2026-11-18", "10:29:61", -1, 0 },
    { "2026-11-18", "10:29", -1, 0 },
    { "2026-11-18", "10:29:51.1x", -1, 0 },
    { "2026-11-18", "10:29:51Z", -1, 0 },
    { "2026-11-18", "-1:29:51", -1, 0 },
    { "", "10:29:51", -1, 0 },
};

static void times_are_read_as_they_are_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "System;;\nDate;Time;" PROC "\n%s;%s;5\n", times[i].date, times[i].time);
        struct rows r = rows_of(text);
        int64_t got = r.n ? r.v[0].local_ms : -1;
        if (got != times[i].ms || (r.n && r.v[0].step_ms != times[i].step))
            fail_msg("'%s' '%s': got %lld, want %lld", times[i].date, times[i].time, (long long)got,
                     (long long)times[i].ms);
    }
}

static void a_row_is_fresh_where_its_beginning_is_not_known(void **state)
{
    (void)state;
    struct rows r = rows_of(HEADER ROW("1:2:3", "5", "1") ROW("1:2:4", "5", "1") "???\n" ROW("1:2:6", "5", "1")
                                ROW("1:2:7", "5", "1") HEADER ROW("1:2:8", "5", "1") ROW("1:2:9", "x", "1"));
    static const bool want[] = { true, false, true, false, true, false };
    assert_int_equal(r.n, ARRAY_LEN(want));
    for (size_t i = 0; i < r.n; i++)
        assert_int_equal(r.v[i].fresh, want[i]);
}

static void a_line_without_end_is_passed_over_in_bounded_memory(void **state)
{
    (void)state;
    struct pcm_csv c = { 0 };
    struct pcm_row row;
    char junk[4096];
    memset(junk, 'x', sizeof junk);
    assert_int_equal(pcm_csv_put(&c, HEADER, strlen(HEADER)), 0);
    for (int i = 0; i < 4 * PCM_LINE_MAX / (int)sizeof junk; i++) {
        assert_int_equal(pcm_csv_put(&c, junk, sizeof junk), 0);
        assert_int_equal(pcm_csv_next(&c, &row), 0);
        assert_true(c.text.cap <= 2 * (PCM_LINE_MAX + sizeof junk));
    }
    const char rest[] = "\n" ROW("1:2:3", "5", "1");
    assert_int_equal(pcm_csv_put(&c, rest, strlen(rest)), 0);
    assert_int_equal(pcm_csv_next(&c, &row), 1);
    assert_true(row.fresh && row.proc_j == 5);
    assert_int_equal(c.passed_over, 1);
    pcm_csv_done(&c);
}

static void sockets_are_counted_by_their_columns(void **state)
{
    (void)state;
    struct pcm_csv c = { 0 };
    struct pcm_row row;
    assert_int_equal(pcm_csv_put(&c, HEADER, strlen(HEADER)), 0);
    assert_int_equal(pcm_csv_next(&c, &row), 0);
    assert_int_equal(c.layout.sockets, 2);
    assert_int_equal(c.layout.proc.form, 1);
    pcm_csv_restart(&c);
    assert_int_equal(c.layout.separator, 0);
    pcm_csv_done(&c);
}

/* --- the meter, over a file and a clock of the test's --- */

static int64_t clock_ns;

static int64_t the_clock(void)
{
    return clock_ns;
}

static void set_clock(int64_t ms)
{
    clock_ns = ms * 1000000;
}

struct bed {
    char dir[64], path[96], other[96];
    struct meter *m;
    struct meter_reading got[METER_READINGS_MAX];
    int n;
};

static int set_up(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    assert_non_null(b);
    (void)snprintf(b->dir, sizeof b->dir, "/tmp/pipetune-pcm-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    (void)snprintf(b->path, sizeof b->path, "%s/pcm.csv", b->dir);
    (void)snprintf(b->other, sizeof b->other, "%s/other", b->dir);
    set_clock(AT(10, 0, 0));
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *b = *state;
    meter_pcm.close(b->m);
    (void)unlink(b->path);
    (void)unlink(b->other);
    (void)rmdir(b->dir);
    free(b);
    return 0;
}

static void put_into(const char *path, int flags, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void append(struct bed *b, const char *text)
{
    put_into(b->path, O_APPEND, text);
}

static int open_meter(struct bed *b, struct err *e)
{
    struct meter_cfg cfg = { .file = b->path, .now_ns = the_clock };
    return meter_pcm.open(&b->m, &cfg, e);
}

static void follow(struct bed *b)
{
    struct err e = { 0 };
    if (open_meter(b, &e) < 0)
        fail_msg("%s", e.text);
}

static int look(struct bed *b, int64_t ms)
{
    set_clock(ms);
    b->n = meter_pcm.read(b->m, b->got);
    return b->n;
}

/* The only reading of the read at this time. */
static void expect_one(struct bed *b, int64_t at_ms, enum meter_state state, int64_t from_ms, int64_t to_ms, double j)
{
    assert_int_equal(look(b, at_ms), 1);
    const struct meter_reading *r = &b->got[0];
    if (r->state != state || r->from_ms != (double)from_ms || r->to_ms != (double)to_ms || !same(r->value, j))
        fail_msg("got %s, %.0f to %.0f, %g J, '%s'", meter_state_name(r->state), r->from_ms - (double)DAY_MS,
                 r->to_ms - (double)DAY_MS, r->value, r->why);
    assert_string_equal(r->node, "");
    assert_true((r->why[0] != '\0') == (state == METER_DISCARDED || state == METER_FAILED));
}

static void new_rows_are_summed_from_the_row_before_on(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("09:59:58.500", "999", "9"));
    follow(b);
    expect_one(b, AT(10, 0, 0), METER_FIRST, AT(9, 59, 58) + 500, AT(9, 59, 58) + 500, NAN);
    append(b, ROW("09:59:59.500", "50.25", "5") ROW("10:00:00.750", "60", "6.5"));
    expect_one(b, AT(10, 0, 1), METER_OK, AT(9, 59, 58) + 500, AT(10, 0, 0) + 750, 121.75);
    assert_true(same(b->got[0].error, 0.005 + 0.5 + 0.5 + 0.05));
    assert_int_equal(look(b, AT(10, 0, 1)), 0);
    append(b, ROW("10:00:02.000", "70", "0"));
    expect_one(b, AT(10, 0, 2), METER_OK, AT(10, 0, 0) + 750, AT(10, 0, 2), 70);
}

static void an_incomplete_row_waits_for_its_end(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("09:59:59", "50", "5") DAY "10:00:00;0.5;6");
    follow(b);
    expect_one(b, AT(10, 0, 0), METER_FIRST, AT(9, 59, 59), AT(9, 59, 59), NAN);
    append(b, "1;4;1;2;3;4;99;98;97;96");
    assert_int_equal(look(b, AT(10, 0, 0)), 0);
    append(b, ";\n");
    expect_one(b, AT(10, 0, 1), METER_OK, AT(9, 59, 59), AT(10, 0, 0), 65);
}

static void the_time_between_two_runs_of_pcm_is_missing(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "50", "0") HEADER ROW("10:00:09", "50", "0") ROW("10:00:10", "51", "0"));
    assert_int_equal(look(b, AT(10, 0, 10)), 2);
    assert_true(b->got[0].value == 50 && b->got[0].to_ms == (double)AT(10, 0, 1));
    assert_true(b->got[1].value == 51 && b->got[1].from_ms == (double)AT(10, 0, 9));
}

static void a_row_that_cannot_be_read_is_a_gap_before_the_next(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "50", "0") DAY "10:00:02;0.5\n" ROW("10:00:03", "52", "0") ROW("10:00:04", "53", "0"));
    assert_int_equal(look(b, AT(10, 0, 4)), 2);
    assert_true(b->got[0].value == 50 && b->got[0].to_ms == (double)AT(10, 0, 1));
    assert_true(b->got[1].value == 53 && b->got[1].from_ms == (double)AT(10, 0, 3));
}

static const struct {
    const char *name, *row, *why;
} implausible[] = {
    { "0 J of processors", ROW("10:00:02", "0", "3"),
      "pcm says 0 J of the processors: it cannot read their energy here" },
    { "a cell that is no number", ROW("10:00:02", "-", "3"), "an energy in the row is no number" },
    /* in whole seconds the interval may have lasted 2 s; there are 2 sockets */
    { "more than can be", ROW("10:00:02", "8001", "0"), "more than max_w for each processor" },
};

static void implausible_rows_are_discarded_and_the_others_hold(void **state)
{
    struct bed *b = *state;
    for (size_t i = 0; i < ARRAY_LEN(implausible); i++) {
        put_into(b->path, O_TRUNC, HEADER ROW("10:00:00", "50", "0"));
        follow(b);
        append(b, ROW("10:00:01", "51", "0"));
        append(b, implausible[i].row);
        append(b, ROW("10:00:03", "52", "0"));
        assert_int_equal(look(b, AT(10, 0, 3)), 3);
        const struct meter_reading *r = b->got;
        if (r[1].state != METER_DISCARDED || strcmp(r[1].why, implausible[i].why) != 0 || !isnan(r[1].value))
            fail_msg("%s: got %s, '%s'", implausible[i].name, meter_state_name(r[1].state), r[1].why);
        assert_true(r[1].from_ms == (double)AT(10, 0, 1) && r[1].to_ms == (double)AT(10, 0, 2));
        assert_true(r[0].value == 51 && r[0].to_ms == r[1].from_ms);
        assert_true(r[2].value == 52 && r[2].from_ms == r[1].to_ms);
        meter_pcm.close(b->m);
        b->m = NULL;
    }
}

static void as_much_as_can_be_is_taken(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00.000", "50", "0"));
    follow(b);
    append(b, ROW("10:00:00.999", "4000", "0"));
    expect_one(b, AT(10, 0, 1), METER_OK, AT(10, 0, 0), AT(10, 0, 0) + 999, 4000);
    append(b, ROW("10:00:01.998", "4001", "0"));
    expect_one(b, AT(10, 0, 2), METER_DISCARDED, AT(10, 0, 0) + 999, AT(10, 0, 1) + 998, NAN);
}

static void a_run_of_discarded_rows_is_one_reading(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "0", "0") ROW("10:00:02", "0", "0") ROW("10:00:03", "0", "0"));
    expect_one(b, AT(10, 0, 3), METER_DISCARDED, AT(10, 0, 0), AT(10, 0, 3), NAN);
}

static void what_does_not_fit_into_one_read_comes_with_the_next(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    enum { PAIRS = 100 };
    for (int i = 0; i < PAIRS; i++) { /* good and bad rows in turn: a reading each */
        char rows[512];
        (void)snprintf(rows, sizeof rows,
                       DAY "10:%02d:%02d;0.5;%d;0;1;2;3;4;99;98;97;96;\n" DAY
                           "10:%02d:%02d;0.5;0;0;1;2;3;4;99;98;97;96;\n",
                       (2 * i + 1) / 60, (2 * i + 1) % 60, i + 1, (2 * i + 2) / 60, (2 * i + 2) % 60);
        append(b, rows);
    }
    double sum = 0;
    int readings = 0;
    while (look(b, AT(10, 3, 30)) > 0) {
        assert_true(b->n <= METER_READINGS_MAX);
        for (int i = 0; i < b->n; i++, readings++)
            sum += b->got[i].state == METER_OK ? b->got[i].value : 0;
    }
    assert_int_equal(readings, 2 * PAIRS);
    assert_true(sum == PAIRS * (PAIRS + 1) / 2.0);
}

static void rows_of_the_same_second_wait_for_one_that_ends_later(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:00", "7", "0"));
    assert_int_equal(look(b, AT(10, 0, 1)), 1); /* METER_FIRST: there is no value yet */
    assert_int_equal(b->got[0].state, METER_FIRST);
    append(b, ROW("10:00:02", "8", "0"));
    expect_one(b, AT(10, 0, 2), METER_OK, AT(10, 0, 0), AT(10, 0, 2), 15);
}

/* --- files that change --- */

static void a_file_that_is_cut_begins_anew(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0") ROW("10:00:01", "50", "0") ROW("10:00:02", "50", "0"));
    follow(b);
    put_into(b->path, O_TRUNC, HEADER ROW("10:00:05", "60", "0") ROW("10:00:06", "61", "0"));
    expect_one(b, AT(10, 0, 6), METER_OK, AT(10, 0, 5), AT(10, 0, 6), 61);
}

static void a_file_in_its_place_is_read_after_the_rest_of_it(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "51", "0") DAY "10:00:02;0.5");
    put_into(b->other, O_TRUNC, HEADER ROW("10:00:05", "60", "0") ROW("10:00:06", "61", "0"));
    assert_int_equal(rename(b->other, b->path), 0);
    assert_int_equal(look(b, AT(10, 0, 6)), 2);
    assert_true(b->got[0].value == 51 && b->got[0].to_ms == (double)AT(10, 0, 1));
    assert_true(b->got[1].value == 61 && b->got[1].from_ms == (double)AT(10, 0, 5));
}

static void a_file_that_is_gone_fails_until_it_is_back(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    assert_int_equal(unlink(b->path), 0);
    expect_one(b, AT(10, 0, 1), METER_FAILED, AT(10, 0, 1), AT(10, 0, 1), NAN);
    assert_non_null(strstr(b->got[0].why, "pcm.csv' is gone"));
    append(b, HEADER ROW("10:00:03", "50", "0") ROW("10:00:04", "51", "0"));
    expect_one(b, AT(10, 0, 4), METER_OK, AT(10, 0, 3), AT(10, 0, 4), 51);
}

static void of_a_large_file_only_both_ends_are_read(void **state)
{
    struct bed *b = *state;
    append(b, HEADER);
    AUTO_CLOSE int fd = open(b->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole: were it read, it would take minutes */
    append(b, "\n" ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "51", "0"));
    expect_one(b, AT(10, 0, 1), METER_OK, AT(10, 0, 0), AT(10, 0, 1), 51);
}

static void silence_becomes_a_failure(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "51", "0"));
    assert_int_equal(look(b, AT(10, 0, 1)), 1);
    assert_int_equal(look(b, AT(10, 1, 1)), 0);
    expect_one(b, AT(10, 1, 2), METER_FAILED, AT(10, 1, 2), AT(10, 1, 2), NAN);
    assert_string_equal(b->got[0].why, "no row of pcm's for 61 s (0 lines were passed over)");
    /* what was told to be missing is not handed out any more */
    append(b, ROW("10:01:01", "3100", "0") ROW("10:01:03", "99", "0") ROW("10:01:04", "52", "0"));
    expect_one(b, AT(10, 1, 4), METER_OK, AT(10, 1, 3), AT(10, 1, 4), 52);
}

static void a_slow_pcm_is_not_silent(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:02:00", "51", "0"));
    expect_one(b, AT(10, 2, 0), METER_OK, AT(10, 0, 0), AT(10, 2, 0), 51);
    assert_int_equal(look(b, AT(10, 7, 59)), 0);
    expect_one(b, AT(10, 8, 1), METER_FAILED, AT(10, 8, 1), AT(10, 8, 1), NAN);
}

static void a_csv_without_energies_says_so(void **state)
{
    struct bed *b = *state;
    append(b, "System;;\nDate;Time;IPC\n" DAY "10:00:00;1\n");
    follow(b);
    append(b, DAY "10:00:01;1\n");
    expect_one(b, AT(10, 0, 1), METER_FAILED, AT(10, 0, 1), AT(10, 0, 1), NAN);
    assert_non_null(strstr(b->got[0].why, "no column 'Proc Energy (Joules)'"));
}

/* --- local time --- */

static void rows_of_any_zone_are_placed_on_our_clock(void **state)
{
    struct bed *b = *state;
    static const int zones_min[] = { 0, 60, -300, 330, 345, 840, -720 };
    for (size_t i = 0; i < ARRAY_LEN(zones_min); i++) {
        int64_t utc = AT(10, 0, 0) - zones_min[i] * INT64_C(60000);
        set_clock(utc + 300000); /* five minutes behind */
        put_into(b->path, O_TRUNC, HEADER ROW("10:00:00", "50", "0"));
        follow(b);
        append(b, ROW("10:00:01", "51", "0"));
        expect_one(b, utc + 300000, METER_OK, utc, utc + 1000, 51);
        meter_pcm.close(b->m);
        b->m = NULL;
    }
}

static void rows_that_are_read_late_keep_their_time(void **state)
{
    struct bed *b = *state;
    append(b, HEADER ROW("10:00:00", "50", "0"));
    follow(b);
    append(b, ROW("10:00:01", "51", "0"));
    expect_one(b, AT(13, 40, 0), METER_OK, AT(10, 0, 0), AT(10, 0, 1), 51);
}

static void when_summer_time_ends_one_interval_is_missing(void **state)
{
    struct bed *b = *state;
    set_clock(AT(8, 59, 59)); /* zone +2 */
    append(b, HEADER ROW("10:59:59", "50", "0"));
    follow(b);
    append(b, ROW("10:00:00", "51", "0") ROW("10:00:01", "52", "0"));
    expect_one(b, AT(9, 0, 1), METER_OK, AT(9, 0, 0), AT(9, 0, 1), 52);
}

static void when_summer_time_begins_too(void **state)
{
    struct bed *b = *state;
    set_clock(AT(8, 59, 59)); /* zone +1 */
    append(b, HEADER ROW("9:59:59", "50", "0"));
    follow(b);
    append(b, ROW("11:00:00", "51", "0") ROW("11:00:01", "52", "0"));
    expect_one(b, AT(9, 0, 1), METER_OK, AT(9, 0, 0), AT(9, 0, 1), 52);
}

/* --- opening --- */

static void a_file_that_is_not_there_is_told_with_the_command_that_makes_it(void **state)
{
    struct bed *b = *state;
    struct err e = { 0 };
    assert_int_equal(open_meter(b, &e), -ENODEV);
    assert_null(b->m);
    assert_non_null(strstr(e.text, "pcm 1 -csv=/tmp/"));
}

static void a_fifo_is_refused_without_waiting_for_its_writer(void **state)
{
    struct bed *b = *state;
    struct err e = { 0 };
    assert_int_equal(mkfifo(b->path, 0600), 0);
    assert_int_equal(open_meter(b, &e), -EINVAL);
    assert_non_null(strstr(e.text, "is no regular file"));
}

static void probing_tells_what_the_file_has(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = { .file = b->path, .now_ns = the_clock };
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    append(b, "nothing of ours\n");
    assert_int_equal(meter_pcm.probe(&cfg, &detail, &fix), -ENODEV);
    assert_non_null(strstr(buf_text(&detail), "has no header of PCM's"));
    assert_true(fix.len > 0);
    buf_clear(&detail);
    put_into(b->path, O_TRUNC, HEADER);
    assert_int_equal(meter_pcm.probe(&cfg, &detail, &fix), 0);
    assert_non_null(strstr(buf_text(&detail), "processors and DRAM"));
    buf_done(&fix);
}

static void probing_finds_the_program_without_starting_it(void **state)
{
    struct bed *b = *state;
    AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
    struct meter_cfg cfg = { .program = b->path };
    assert_int_equal(meter_pcm.probe(&cfg, &detail, &fix), -ENODEV);
    assert_non_null(strstr(buf_text(&fix), "install Intel PCM"));
    put_into(b->path, 0, "#!/bin/sh\n>\"${0%pcm.csv}other\"\n");
    assert_int_equal(chmod(b->path, 0700), 0);
    assert_int_equal(meter_pcm.probe(&cfg, &detail, &fix), 0);
    assert_non_null(strstr(buf_text(&detail), "pcm.csv', not started"));
    assert_int_equal(access(b->other, F_OK), -1);
    buf_done(&fix);
}

static void opening_and_reading_survive_whatever_fails(void **state)
{
    struct bed *b = *state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64); /* it must succeed in the end */
        put_into(b->path, O_TRUNC, HEADER ROW("10:00:00", "50", "0"));
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = open_meter(b, &e);
        bool struck = fault_disarm();
        assert_true(struck == (rc < 0) && (rc == 0) == (b->m != NULL));
        assert_true(rc == 0 || rc == -ENOMEM || rc == -EMFILE);
        meter_pcm.close(b->m);
        b->m = NULL;
    }
    rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        put_into(b->path, O_TRUNC, HEADER ROW("10:00:00", "50", "0"));
        follow(b);
        append(b, HEADER ROW("10:00:01", "51", "0") ROW("10:00:02", "52", "0"));
        fault_arm(FAULT_ALLOC, nth);
        rc = look(b, AT(10, 0, 2));
        bool struck = fault_disarm();
        assert_true(struck ? rc == -ENOMEM : rc == 1);
        meter_pcm.close(b->m);
        b->m = NULL;
    }
}

static void starting_the_program_leaves_nothing_behind_whatever_fails(void **state)
{
    struct bed *b = *state;
    struct meter_cfg cfg = { .program = "/bin/true", .now_ns = the_clock };
    int rc = -EIO, lowest = dup(0);
    assert_true(lowest >= 0);
    (void)close(lowest);
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16); /* it must succeed in the end */
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = meter_pcm.open(&b->m, &cfg, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        assert_true((b->m != NULL) == (rc == 0));
        meter_pcm.close(b->m);
        b->m = NULL;
        int next = dup(0);
        assert_int_equal(next, lowest); /* no descriptor is left */
        (void)close(next);
    }
}

int main(void)
{
#define OVER_A_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_their_headers),
        cmocka_unit_test(pieces_of_any_size_make_the_same_rows),
        cmocka_unit_test(times_are_read_as_they_are_shown),
        cmocka_unit_test(a_row_is_fresh_where_its_beginning_is_not_known),
        cmocka_unit_test(a_line_without_end_is_passed_over_in_bounded_memory),
        cmocka_unit_test(sockets_are_counted_by_their_columns),
        OVER_A_FILE(new_rows_are_summed_from_the_row_before_on),
        OVER_A_FILE(an_incomplete_row_waits_for_its_end),
        OVER_A_FILE(the_time_between_two_runs_of_pcm_is_missing),
        OVER_A_FILE(a_row_that_cannot_be_read_is_a_gap_before_the_next),
        OVER_A_FILE(implausible_rows_are_discarded_and_the_others_hold),
        OVER_A_FILE(as_much_as_can_be_is_taken),
        OVER_A_FILE(a_run_of_discarded_rows_is_one_reading),
        OVER_A_FILE(what_does_not_fit_into_one_read_comes_with_the_next),
        OVER_A_FILE(rows_of_the_same_second_wait_for_one_that_ends_later),
        OVER_A_FILE(a_file_that_is_cut_begins_anew),
        OVER_A_FILE(a_file_in_its_place_is_read_after_the_rest_of_it),
        OVER_A_FILE(a_file_that_is_gone_fails_until_it_is_back),
        OVER_A_FILE(of_a_large_file_only_both_ends_are_read),
        OVER_A_FILE(silence_becomes_a_failure),
        OVER_A_FILE(a_slow_pcm_is_not_silent),
        OVER_A_FILE(a_csv_without_energies_says_so),
        OVER_A_FILE(rows_of_any_zone_are_placed_on_our_clock),
        OVER_A_FILE(rows_that_are_read_late_keep_their_time),
        OVER_A_FILE(when_summer_time_ends_one_interval_is_missing),
        OVER_A_FILE(when_summer_time_begins_too),
        OVER_A_FILE(a_file_that_is_not_there_is_told_with_the_command_that_makes_it),
        OVER_A_FILE(a_fifo_is_refused_without_waiting_for_its_writer),
        OVER_A_FILE(probing_tells_what_the_file_has),
        OVER_A_FILE(probing_finds_the_program_without_starting_it),
        OVER_A_FILE(opening_and_reading_survive_whatever_fails),
        OVER_A_FILE(starting_the_program_leaves_nothing_behind_whatever_fails),
    };
    return cmocka_run_group_tests_name("pcm", tests, NULL, NULL);
}
