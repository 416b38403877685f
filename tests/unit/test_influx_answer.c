#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/influx_answer.h"

enum { LINES = 10 };

static const struct {
    const char *name;
    long status;
    const char *body;
    enum influx_kind kind;
    enum influx_reason reason;
    uint64_t dropped;
} answers[] = {
    { "204 is delivered", 204, "", INFLUX_DELIVERED, 0, 0 },
    { "an empty 200 is delivered", 200, "", INFLUX_DELIVERED, 0, 0 },
    { "a page is no InfluxDB's", 200, "<html>hello</html>", INFLUX_PAUSE, INFLUX_STRANGER, 0 },
    { "an error under 200 is not delivered", 200, "{\"error\":\"no\"}", INFLUX_PAUSE, INFLUX_STRANGER, 0 },
    { "a redirect is not followed", 301, "", INFLUX_PAUSE, INFLUX_REDIRECTED, 0 },
    { "1.x: one line in a batch that cannot be parsed", 400,
      "{\"error\":\"partial write: unable to parse 'bad': missing fields dropped=0\"}", INFLUX_PARTIAL, 0, 1 },
    { "1.x: two of them", 400,
      "{\"error\":\"partial write: unable to parse 'a': missing fields\\nunable to parse 'b': missing fields "
      "dropped=0\"}",
      INFLUX_PARTIAL, 0, 2 },
    { "1.x: points beyond the retention", 400,
      "{\"error\":\"partial write: points beyond retention policy dropped=4\"}", INFLUX_PARTIAL, 0, 4 },
    { "1.x: a field of another type", 400,
      "{\"error\":\"partial write: field type conflict: input field \\\"value\\\" on measurement \\\"m\\\" is type "
      "float, "
      "already exists as type integer dropped=1\"}",
      INFLUX_PARTIAL, 0, 1 },
    { "more dropped than was sent is all", 400, "{\"error\":\"partial write: x dropped=99999999999999999999999\"}",
      INFLUX_PARTIAL, 0, LINES },
    { "1.x: nothing could be parsed", 400, "{\"error\":\"unable to parse 'bad': missing fields\"}", INFLUX_REJECT, 0,
      0 },
    { "a line that is quoted decides nothing: partial", 400,
      "{\"error\":\"unable to parse 'partial write dropped=5': missing fields\"}", INFLUX_REJECT, 0, 0 },
    { "a line that is quoted decides nothing: absent", 400,
      "{\"error\":\"unable to parse 'database not found': missing fields\"}", INFLUX_REJECT, 0, 0 },
    { "a line that is quoted drops nothing", 400,
      "{\"error\":\"partial write: unable to parse 'x dropped=7': missing fields dropped=0\"}", INFLUX_PARTIAL, 0, 1 },
    { "2.x: malformed", 400, "{\"code\":\"invalid\",\"message\":\"unable to parse 'bad': missing fields\"}",
      INFLUX_REJECT, 0, 0 },
    { "2.x: 422 with the good part kept", 422,
      "{\"code\":\"unprocessable entity\",\"message\":\"failure writing points to database: partial write: points "
      "beyond "
      "retention policy dropped=2\"}",
      INFLUX_PARTIAL, 0, 2 },
    { "2.x: the retention as a fault of the server's", 500,
      "{\"code\":\"internal error\",\"message\":\"unexpected error writing points to database: partial write: points "
      "beyond "
      "retention policy dropped=1\"}",
      INFLUX_PARTIAL, 0, 1 },
    { "3.x: errors by line", 400,
      "{\"error\":\"partial write of line protocol occurred\",\"data\":[{\"line_number\":1},{\"line_number\":2}]}",
      INFLUX_PARTIAL, 0, 2 },
    { "422 without a word of parts", 422, "{\"message\":\"schema\"}", INFLUX_REJECT, 0, 0 },
    { "401", 401, "{\"error\":\"authorization failed\"}", INFLUX_PAUSE, INFLUX_UNAUTHORIZED, 0 },
    { "403", 403, "{\"error\":\"not authorized to write\"}", INFLUX_PAUSE, INFLUX_FORBIDDEN, 0 },
    { "1.x: no database", 404, "{\"error\":\"database not found: \\\"energy\\\"\"}", INFLUX_PAUSE, INFLUX_NO_DATABASE,
      0 },
    { "2.x: no bucket", 404, "{\"code\":\"not found\",\"message\":\"bucket \\\"energy\\\" not found\"}", INFLUX_PAUSE,
      INFLUX_NO_DATABASE, 0 },
    { "1.x: no retention policy is no passing fault", 500, "{\"error\":\"retention policy not found: week\"}",
      INFLUX_PAUSE, INFLUX_NO_RETENTION, 0 },
    { "a path that 1.x has not", 404, "404 page not found\n", INFLUX_PAUSE, INFLUX_NO_API, 0 },
    { "405", 405, "", INFLUX_PAUSE, INFLUX_NO_API, 0 },
    { "413", 413, "{\"error\":\"Request Entity Too Large\"}", INFLUX_HALVE, 0, 0 },
    { "429", 429, "", INFLUX_RETRY, 0, 0 },
    { "408", 408, "", INFLUX_RETRY, 0, 0 },
    { "500", 500, "{\"error\":\"timeout\"}", INFLUX_RETRY, 0, 0 },
    { "503", 503, "<html>", INFLUX_RETRY, 0, 0 },
    { "a 4xx of nobody's", 418, "", INFLUX_PAUSE, INFLUX_STRANGER, 0 },
    { "no status at all", 0, "", INFLUX_PAUSE, INFLUX_STRANGER, 0 },
};

static void answers_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct influx_reply r = {
            .status = answers[i].status, .body = answers[i].body, .body_len = strlen(answers[i].body), .lines = LINES
        };
        struct influx_answer a;
        influx_answer(&a, &r);
        if (a.kind != answers[i].kind || a.reason != answers[i].reason || a.dropped != answers[i].dropped)
            fail_msg("%s: got kind %d, reason %d, dropped %lu (%s)", answers[i].name, (int)a.kind, (int)a.reason,
                     (unsigned long)a.dropped, a.text);
    }
}

#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */

static const struct {
    const char *name, *value, *date;
    int64_t want;
} waits[] = {
    { "none", NULL, NULL, -1 },
    { "seconds", "7", NULL, 7000 },
    { "blanks around seconds", "  7 ", NULL, 7000 },
    { "no seconds", "0", NULL, 0 },
    { "more than is believed", "601", NULL, 600000 },
    { "far more", "99999999999999999999", NULL, 600000 },
    { "a date", "Sun, 06 Nov 1994 08:49:47 GMT", NULL, 10000 },
    { "a date of the second form", "Sunday, 06-Nov-94 08:49:47 GMT", NULL, 10000 },
    { "a date of the third form", "Sun Nov  6 08:49:47 1994", NULL, 10000 },
    { "a date that has passed", "Sun, 06 Nov 1994 08:00:00 GMT", NULL, 0 },
    { "a date far away", "Sun, 06 Nov 2094 08:49:47 GMT", NULL, 600000 },
    { "a date by the server's own clock", "Fri, 11 Nov 1994 08:00:30 GMT", "Fri, 11 Nov 1994 08:00:00 GMT", 30000 },
    { "a server's clock that cannot be read", "Sun, 06 Nov 1994 08:49:47 GMT", "noon", 10000 },
    { "a word", "soon", NULL, 10000 },
    { "a negative number", "-5", NULL, 10000 },
    { "a fraction", "1.5", NULL, 10000 },
    { "nothing", "", NULL, 10000 },
};

static void retry_after_is_read_in_both_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        int64_t got = influx_retry_after(waits[i].value, waits[i].date, NOW);
        if (got != waits[i].want)
            fail_msg("%s: got %lld, want %lld", waits[i].name, (long long)got, (long long)waits[i].want);
    }
}

static void only_a_retry_waits(void **state)
{
    (void)state;
    struct influx_reply r = { .status = 503, .retry_after = "5", .body = "", .lines = 1 };
    struct influx_answer a;
    influx_answer(&a, &r);
    assert_int_equal(a.wait_ms, 5000);
    r.status = 401;
    influx_answer(&a, &r);
    assert_int_equal(a.wait_ms, -1);
}

static void the_servers_words_are_one_plain_line(void **state)
{
    (void)state;
    static const char body[] = "{\"error\":\"unable to parse 'a\\u001b[2Jb':\\nx\"}";
    struct influx_reply r = { .status = 400, .body = body, .body_len = sizeof body - 1, .lines = 1 };
    struct influx_answer a;
    influx_answer(&a, &r);
    assert_string_equal(a.text, "status 400: unable to parse 'a [2Jb': x");
}

static const struct {
    const char *name;
    long status;
    const char *body;
    int rc;
    const char *text;
} queries[] = {
    { "done", 200, "{\"results\":[{\"statement_id\":0}]}", 0, "" },
    { "an error in the result", 200, "{\"results\":[{\"statement_id\":0,\"error\":\"not allowed\"}]}", -EPROTO,
      "status 200: not allowed" },
    { "an error of all", 401, "{\"error\":\"authorization failed\"}", -EPROTO, "status 401: authorization failed" },
    { "a page", 200, "<html>", -EPROTO, "status 200" },
    { "nothing", 200, "", -EPROTO, "status 200" },
    { "results under another status", 403, "{\"results\":[]}", -EPROTO, "status 403" },
};

static void a_query_is_done_when_no_part_of_its_answer_says_otherwise(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        char text[128] = "";
        int rc = influx_query_done(queries[i].status, queries[i].body, strlen(queries[i].body), text, sizeof text);
        if (rc != queries[i].rc || strcmp(text, queries[i].text) != 0)
            fail_msg("%s: got %d \"%s\"", queries[i].name, rc, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_told_apart),
        cmocka_unit_test(retry_after_is_read_in_both_forms),
        cmocka_unit_test(only_a_retry_waits),
        cmocka_unit_test(the_servers_words_are_one_plain_line),
        cmocka_unit_test(a_query_is_done_when_no_part_of_its_answer_says_otherwise),
    };
    return cmocka_run_group_tests_name("influx_answer", tests, NULL, NULL);
}
