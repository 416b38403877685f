#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/influx_rows.h"

/* What a 1.6 answered, shortened. */
static const char recorded[] =
    "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"pipetune_energy\",\"columns\":[\"time\",\"value\","
    "\"error\",\"from_ms\",\"state\",\"meter\"],\"values\":[[1700000001000125000,12.5,0.0001,1700000000000.125,"
    "\"ok\",\"rapl\"],[1700000002000125000,null,null,1700000001000.125,\"discarded\",\"rapl\"],"
    "[1700000003000125000,7,null,1.700000002000125e+12,\"ok\",\"rapl\"]],\"partial\":true}]}]}\n";

static int put_row(void *ctx, const struct influx_row *r)
{
    const char *state = influx_row_text(r, "state");
    buf_printf(ctx, "%s %lld %.17g %.3f %s\n", r->measurement ? r->measurement : "?", (long long)r->time_ns,
               influx_row_number(r, "value"), influx_row_number(r, "from_ms"), state ? state : "-");
    return 0;
}

static void rows_of_a_recorded_answer_are_read(void **state)
{
    (void)state;
    AUTO_BUF struct buf got = BUF_INIT;
    struct influx_page page = { 0 };
    struct err e;
    assert_int_equal(influx_rows(recorded, sizeof recorded - 1, put_row, &got, &page, &e), 0);
    assert_string_equal(buf_text(&got), "pipetune_energy 1700000001000125000 12.5 1700000000000.125 ok\n"
                                        "pipetune_energy 1700000002000125000 nan 1700000001000.125 discarded\n"
                                        "pipetune_energy 1700000003000125000 7 1700000002000.125 ok\n");
    assert_true(page.partial && page.rows == 3);
}

#define SERIES(inside) "{\"results\":[{\"series\":[{" inside "}]}]}"

static const struct {
    const char *name, *body;
    int rc;
    size_t rows;
    bool partial;
    const char *text; /* of the error */
} answers[] = {
    { "no series", "{\"results\":[{\"statement_id\":0}]}", 0, 0, false, "" },
    { "no results", "{\"results\":[]}", 0, 0, false, "" },
    { "a result that is partial", "{\"results\":[{\"partial\":true}]}", 0, 0, true, "" },
    { "two series",
      "{\"results\":[{\"series\":[{\"columns\":[\"time\"],\"values\":[[1]]},{\"columns\":[\"time\"],"
      "\"values\":[[2],[3]]}]}]}",
      0, 3, false, "" },
    { "time need not come first", SERIES("\"columns\":[\"value\",\"time\"],\"values\":[[1.5,7]]"), 0, 1, false, "" },
    { "an error of the statement", "{\"results\":[{\"statement_id\":0,\"error\":\"database not found: x\"}]}", -EPROTO,
      0, false, "influxdb says: database not found: x" },
    { "an error behind rows",
      "{\"results\":[{\"series\":[{\"columns\":[\"time\"],\"values\":[[1]]}]},{\"error\":\"no\"}]}", -EPROTO, 0, false,
      "says: no" },
    { "an error of all", "{\"error\":\"unable to parse \\u001b[2Jx\"}", -EPROTO, 0, false, "parse  [2Jx" },
    { "a page", "<html>", -EPROTO, 0, false, "it is no JSON" },
    { "nothing", "", -EPROTO, 0, false, "it is no JSON" },
    { "half of it", "{\"results\":[{\"series\":[", -EPROTO, 0, false, "it is no JSON" },
    { "two answers in one", "{\"results\":[]}{\"results\":[]}", -EPROTO, 0, false, "it is no JSON" },
    { "something else", "[1]", -EPROTO, 0, false, "no results" },
    { "results that are none", "{\"results\":{}}", -EPROTO, 0, false, "no results" },
    { "a result that is none", "{\"results\":[7]}", -EPROTO, 0, false, "no object" },
    { "no times", SERIES("\"columns\":[\"value\"],\"values\":[[1]]"), -EPROTO, 0, false, "without times" },
    { "no values", SERIES("\"columns\":[\"time\"]"), -EPROTO, 0, false, "without values" },
    { "a time that is a text", SERIES("\"columns\":[\"time\"],\"values\":[[\"2023-11-14T22:13:20Z\"]]"), -EPROTO, 0,
      false, "a row without a time" },
    { "a time with a fraction", SERIES("\"columns\":[\"time\"],\"values\":[[1.5]]"), -EPROTO, 0, false,
      "without a time" },
    { "a row that is too short", SERIES("\"columns\":[\"time\",\"value\"],\"values\":[[1]]"), -EPROTO, 0, false,
      "not as long as its columns" },
    { "a row that is none", SERIES("\"columns\":[\"time\"],\"values\":[7]"), -EPROTO, 0, false, "without a time" },
};

static int count_row(void *ctx, const struct influx_row *r)
{
    (void)r;
    ++*(size_t *)ctx;
    return 0;
}

static void answers_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        size_t n = 0;
        struct influx_page page = { 0 };
        struct err e = { 0 };
        int rc = influx_rows(answers[i].body, strlen(answers[i].body), count_row, &n, &page, &e);
        if (rc != answers[i].rc || n != answers[i].rows || page.partial != answers[i].partial ||
            !strstr(e.text, answers[i].text))
            fail_msg("%s: got %d, %zu rows: %s", answers[i].name, rc, n, e.text);
    }
}

static int read_cells(void *ctx, const struct influx_row *r)
{
    static const char *const columns[] = { "a", "b", "c", "d", "e", "f", "tag", "nosuch" };
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        const char *text = influx_row_text(r, columns[i]);
        buf_printf(ctx, "%s %g %s\n", columns[i], influx_row_number(r, columns[i]), text ? text : "-");
    }
    return 0;
}

static void a_number_may_have_been_written_as_a_text(void **state)
{
    (void)state;
    static const char body[] =
        SERIES("\"columns\":[\"time\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"tags\":{\"tag\":\"3\"},"
               "\"values\":[[1,\"12.5\",\"12.5 W\",\"\",true,\"nan\",null]]");
    AUTO_BUF struct buf got = BUF_INIT;
    struct influx_page page;
    struct err e;
    assert_int_equal(influx_rows(body, sizeof body - 1, read_cells, &got, &page, &e), 0);
    assert_string_equal(buf_text(&got), "a 12.5 12.5\nb nan 12.5 W\nc nan \nd nan -\ne nan nan\nf nan -\ntag 3 3\n"
                                        "nosuch nan -\n");
}

static int stop(void *ctx, const struct influx_row *r)
{
    (void)r;
    return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void a_walk_that_is_ended_returns_why(void **state)
{
    (void)state;
    int n = 0;
    struct influx_page page = { .rows = 99 };
    struct err e;
    assert_int_equal(influx_rows(recorded, sizeof recorded - 1, stop, &n, &page, &e), -ECANCELED);
    assert_int_equal(n, 2);
    assert_int_equal(page.rows, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_recorded_answer_are_read),
        cmocka_unit_test(answers_are_told_apart),
        cmocka_unit_test(a_number_may_have_been_written_as_a_text),
        cmocka_unit_test(a_walk_that_is_ended_returns_why),
    };
    return cmocka_run_group_tests_name("influx_rows", tests, NULL, NULL);
}
