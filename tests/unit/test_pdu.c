#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/own.h"
#include "monitoring/pdu.h"
#include "monitoring/pdu_json.h"
#include "tests/fault.h"

/* An answer as the Lindy gives it, whose outlet 0 has this for its watts. */
#define OUTLET(v)                                                                                                      \
    "[{\"v\":\"230\"},{\"v\":\"0.2\"},{\"v\":\"50\"},{\"v\":\"1\"},{\"n\":\"P\",\"v\":" v "},{\"v\":\"9\"}]"
#define PAGE(v) "{\"sensor_values\":[{\"values\":[]},{\"type\":1,\"values\":[" OUTLET(v) "," OUTLET("\"7\"") "]}]}"

static const struct pdu_where lindy = { .path = PDU_VALUE, .scale = 1, .max_w = 2000 };

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    struct err e = { 0 };
    if (pdu_json_parse(&root, text, strlen(text), &e) < 0)
        fail_msg("'%s': %s", text, e.text);
    return root;
}

/* --- the number --- */

static const struct {
    const char *name, *page;
    double watts, error; /* watts < 0: refused, and so: */
    int code;
    const char *says;
} values[] = {
    { "a text that is a number", PAGE("\"41.5\""), 41.5, 0.05, 0, "" },
    { "whole watts are half a watt off at most", PAGE("\"41\""), 41, 0.5, 0, "" },
    { "a number", PAGE("41"), 41, 0.5, 0, "" },
    { "a number with decimals", PAGE("41.25"), 41.25, 0.005, 0, "" },
    { "an outlet that is switched off takes 0 W, and this is measured", PAGE("\"0\""), 0, 0.5, 0, "" },
    { "as a number, too", PAGE("0"), 0, 0.5, 0, "" },
    { "nothing below nothing", PAGE("-0.0"), 0, 0.5, 0, "" },
    { "blanks around it", PAGE("\" 41.5 \""), 41.5, 0.05, 0, "" },
    { "as much as is plausible", PAGE("2000"), 2000, 0.5, 0, "" },
    { "more than that", PAGE("2000.1"), -1, 0, -ERANGE, "2000.1 W" },
    { "less than nothing", PAGE("\"-1\""), -1, 0, -ERANGE, "-1 W" },
    { "4.29 MW", PAGE("4294967295"), -1, 0, -ERANGE, "4.29497e+09" },
    { "no number", PAGE("\"nan\""), -1, 0, -EPROTO, "'nan'" },
    { "infinity", PAGE("\"inf\""), -1, 0, -EPROTO, "'inf'" },
    { "hexadecimal", PAGE("\"0x29\""), -1, 0, -EPROTO, "'0x29'" },
    { "a comma", PAGE("\"41,5\""), -1, 0, -EPROTO, "'41,5'" },
    { "a unit", PAGE("\"41 W\""), -1, 0, -EPROTO, "'41 W'" },
    { "an empty text", PAGE("\"\""), -1, 0, -EPROTO, "''" },
    { "two lines", PAGE("\"4\\n1\""), -1, 0, -EPROTO, "'4?1'" },
    { "null", PAGE("null"), -1, 0, -EPROTO, "null" },
    { "true", PAGE("true"), -1, 0, -EPROTO, "true or false" },
    { "a list", PAGE("[41]"), -1, 0, -EPROTO, "a list" },
    { "an object", PAGE("{\"w\":41}"), -1, 0, -EPROTO, "an object" },
};

static void watts_are_read_or_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        AUTO_JSON json_t *root = parse(values[i].page);
        struct pdu_power p = { -7, -7 };
        struct err e = { 0 };
        int rc = pdu_json_power(root, &lindy, 0, &p, &e);
        bool refused = values[i].watts < 0;
        if (rc != values[i].code || p.watts != (refused ? -7 : values[i].watts) || !strstr(e.text, values[i].says))
            fail_msg("%s: got %d, %g W, '%s'", values[i].name, rc, p.watts, e.text);
        if (!refused && (p.error_w < values[i].error * 0.9999 || p.error_w > values[i].error * 1.0001))
            fail_msg("%s: off by %g, want %g", values[i].name, p.error_w, values[i].error);
        if (refused && !strstr(e.text, "sensor_values/1/values/0/4/v"))
            fail_msg("%s: where? '%s'", values[i].name, e.text);
    }
}

static void each_outlet_has_its_own(void **state)
{
    (void)state;
    AUTO_JSON json_t *root = parse(PAGE("\"41.5\""));
    struct pdu_power p;
    struct err e = { 0 };
    assert_int_equal(pdu_json_power(root, &lindy, 0, &p, &e), 0);
    assert_true(p.watts == 41.5);
    assert_int_equal(pdu_json_power(root, &lindy, 1, &p, &e), 0);
    assert_true(p.watts == 7);
    assert_int_equal(pdu_json_power(root, &lindy, 2, &p, &e), -ENOENT);
    assert_string_equal(e.text, "the answer has no 'sensor_values/1/values/2': that list has 2 elements");
}

static void a_unit_may_be_more_than_a_watt(void **state)
{
    (void)state;
    AUTO_JSON json_t *root = parse("{\"kW100\":41}");
    struct pdu_power p;
    struct err e = { 0 };
    struct pdu_where tens = { .path = "kW100", .scale = 10, .max_w = 2000 };
    assert_int_equal(pdu_json_power(root, &tens, 0, &p, &e), 0);
    assert_true(p.watts == 410 && p.error_w == 5);
    tens.max_w = 409;
    assert_int_equal(pdu_json_power(root, &tens, 0, &p, &e), -ERANGE);
}

/* --- the way there --- */

static const struct {
    const char *name, *path, *page;
    int outlet, code;
    const char *says;
} ways[] = {
    { "a key of an object", "w", "{\"w\":1}", 0, 0, "" },
    { "a key that is a number", "1", "{\"1\":1}", 0, 0, "" },
    { "a place in a list", "1", "[0,1]", 0, 0, "" },
    { "the outlet within a word", "P{outlet}", "{\"P3\":1}", 3, 0, "" },
    { "the outlet twice", "{outlet}/{outlet}", "[[1]]", 0, 0, "" },
    { "no such key", "a/b/c", "{\"a\":{}}", 0, -ENOENT, "the answer has no 'a/b'" },
    { "a list that is too short", "a/2", "{\"a\":[1,1]}", 0, -ENOENT,
      "the answer has no 'a/2': that list has 2 elements" },
    { "a list has no keys", "a/v", "{\"a\":[1,1]}", 0, -ENOENT, "the answer has no 'a/v': that list has 2 elements" },
    { "nor negative places", "a/-1", "{\"a\":[1,1]}", 0, -ENOENT,
      "the answer has no 'a/-1': that list has 2 elements" },
    { "nor places beyond reason", "a/99999999999999999999", "{\"a\":[1,1]}", 0, -ENOENT,
      "the answer has no 'a/99999999999999999999': that list has 2 elements" },
    { "a number is no place to go on from", "a/b/c", "{\"a\":{\"b\":3}}", 0, -EPROTO,
      "'a/b' is a number, and nothing is in it" },
    { "nor is a text", "a/0", "{\"a\":\"x\"}", 0, -EPROTO, "'a' is a text, and nothing is in it" },
    { "nor is null", "a/0", "{\"a\":null}", 0, -EPROTO, "'a' is null, and nothing is in it" },
    { "an empty path", "", "[1]", 0, -EINVAL, "the path to the watts must have 1 to 256 characters" },
    { "an empty word", "a//b", "[1]", 0, -EINVAL, "'a//b': a word of the path to the watts is empty" },
    { "one in front", "/a", "[1]", 0, -EINVAL, "'/a': a word of the path to the watts is empty" },
    { "one at the end", "a/", "[1]", 0, -EINVAL, "'a/': a word of the path to the watts is empty" },
};

static void the_path_is_followed_or_the_message_says_how_far(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        AUTO_JSON json_t *root = parse(ways[i].page);
        struct pdu_where where = { .path = ways[i].path, .scale = 1, .max_w = 2000 };
        struct pdu_power p = { -7, -7 };
        struct err e = { 0 };
        int rc = pdu_json_power(root, &where, ways[i].outlet, &p, &e);
        if (rc != ways[i].code || strcmp(e.text, ways[i].says) != 0 || p.watts != (rc == 0 ? 1 : -7))
            fail_msg("%s: got %d, %g, '%s'", ways[i].name, rc, p.watts, e.text);
    }
}

static void a_path_that_grows_too_long_is_refused(void **state)
{
    (void)state;
    AUTO_JSON json_t *root = parse("[1]");
    char path[PDU_PATH_MAX + 1];
    for (int i = 0; i < PDU_PATH_MAX / 8; i++)
        memcpy(path + 8 * i, "{outlet}", 8);
    path[PDU_PATH_MAX] = '\0';
    struct pdu_where where = { .path = path, .scale = 1, .max_w = 2000 };
    struct pdu_power p;
    struct err e = { 0 };
    assert_int_equal(pdu_json_power(root, &where, 1000000000, &p, &e), -EINVAL);
    assert_int_equal(pdu_json_power(root, &where, 0, &p, &e), -ENOENT); /* "000…0": fits, and is nowhere */
}

/* --- texts --- */

static const struct {
    const char *name, *text;
    const char *says;
} broken[] = {
    { "nothing", "", "the answer is empty" },
    { "a page", "<html><body>Login</body></html>", "the answer is no JSON: line 1: " },
    { "half an answer", "{\"sensor_values\":[{},{\"val", "the answer is no JSON: line 1: " },
    { "two answers", "{} {}", "the answer is no JSON: line 1: " },
    { "bytes that are no text", "{\"a\":\"\xff\x01\"}", "the answer is no JSON: line 1: " },
    { "a number without end", "{\"a\":1e9999}", "the answer is no JSON: line 1: " },
    { "a number as such", "41.5", "the answer is no JSON: line 1: " },
};

static void what_is_no_answer_is_told_on_one_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        json_t *root = NULL;
        struct err e = { 0 };
        int rc = pdu_json_parse(&root, broken[i].text, strlen(broken[i].text), &e);
        if (rc != -EPROTO || root || strncmp(e.text, broken[i].says, strlen(broken[i].says)) != 0)
            fail_msg("%s: got %d, '%s'", broken[i].name, rc, e.text);
        for (const char *p = e.text; *p; p++)
            assert_true(*p >= 0x20 && *p < 0x7f);
    }
}

static void a_long_answer_is_refused_unread(void **state)
{
    (void)state;
    char *text = malloc(PDU_BODY_MAX + 1);
    assert_non_null(text);
    memset(text, ' ', PDU_BODY_MAX + 1);
    memcpy(text, "[1]", 3);
    json_t *root = NULL;
    struct err e = { 0 };
    assert_int_equal(pdu_json_parse(&root, text, PDU_BODY_MAX + 1, &e), -EFBIG);
    assert_null(root);
    assert_int_equal(pdu_json_parse(&root, text, PDU_BODY_MAX, &e), 0);
    json_decref(root);
    free(text);
}

/* Deeper than any answer: jansson's own limit must hold. */
static void a_deep_answer_is_refused(void **state)
{
    (void)state;
    char *text = malloc(PDU_BODY_MAX);
    assert_non_null(text);
    memset(text, '[', PDU_BODY_MAX);
    json_t *root = NULL;
    struct err e = { 0 };
    assert_int_equal(pdu_json_parse(&root, text, PDU_BODY_MAX, &e), -EPROTO);
    free(text);
}

/* --- what the meter is to do --- */

static char somebody[] = "eiger-1";
static char nobody[] = "";
static const struct meter_outlet one = { .node = somebody, .outlet = 0 };
static const struct meter_outlet unnamed = { .node = nobody, .outlet = 0 };
static const struct meter_outlet before_the_first = { .node = somebody, .outlet = -1 };

static const struct {
    const char *name;
    struct meter_cfg cfg;
    const char *says;
} refused[] = {
    { "no url", { .outlets = &one, .n_outlets = 1 }, "the pdu needs a url: http://HOST[:PORT]" },
    { "another scheme",
      { .url = "ftp://pdu", .outlets = &one, .n_outlets = 1 },
      "the url of the pdu must be http[s]://HOST[:PORT] alone" },
    { "a file",
      { .url = "file:///etc/passwd", .outlets = &one, .n_outlets = 1 },
      "the url of the pdu must be http[s]://HOST[:PORT] alone" },
    { "no scheme",
      { .url = "pdu", .outlets = &one, .n_outlets = 1 },
      "the url of the pdu must be http[s]://HOST[:PORT] alone" },
    { "a password, which is not repeated",
      { .url = "http://me:hunter2@pdu", .outlets = &one, .n_outlets = 1 },
      "the url of the pdu must be http[s]://HOST[:PORT] alone" },
    { "a query",
      { .url = "http://pdu/?key=hunter2", .outlets = &one, .n_outlets = 1 },
      "the url of the pdu must be http[s]://HOST[:PORT] alone" },
    { "no outlets", { .url = "http://pdu" }, "the pdu needs 1 to 64 outlets, each of a node" },
    { "too many",
      { .url = "http://pdu", .outlets = &one, .n_outlets = 65 },
      "the pdu needs 1 to 64 outlets, each of a node" },
    { "an outlet of no node",
      { .url = "http://pdu", .outlets = &unnamed, .n_outlets = 1 },
      "the node of outlet 0 must have a name of 1 to 64 characters" },
    { "an outlet before the first",
      { .url = "http://pdu", .outlets = &before_the_first, .n_outlets = 1 },
      "'eiger-1': outlets are counted from 0" },
    { "a path to nothing",
      { .url = "http://pdu", .value = "", .outlets = &one, .n_outlets = 1 },
      "the path to the watts must have 1 to 256 characters" },
    { "a page that is none",
      { .url = "http://pdu", .path = "status", .outlets = &one, .n_outlets = 1 },
      "'status': the path of the pdu's page must begin with '/'" },
    { "a negative scale",
      { .url = "http://pdu", .scale = -1, .outlets = &one, .n_outlets = 1 },
      "the scale and timeout_ms of the pdu must be above 0" },
    { "a negative time-out",
      { .url = "http://pdu", .timeout_ms = -1, .outlets = &one, .n_outlets = 1 },
      "the scale and timeout_ms of the pdu must be above 0" },
};

static void a_meter_that_lacks_something_says_what(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct meter *m = NULL;
        struct err e = { 0 };
        int rc = meter_pdu.open(&m, &refused[i].cfg, &e);
        if (rc != -EINVAL || m || strcmp(e.text, refused[i].says) != 0)
            fail_msg("%s: got %d, '%s'", refused[i].name, rc, e.text);
    }
}

static void opening_leaves_nothing_behind_whatever_fails(void **state)
{
    (void)state;
    const struct meter_cfg cfg = { .url = "http://127.0.0.1:1", .outlets = &one, .n_outlets = 1 };
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16); /* it must succeed in the end */
        struct meter *m = NULL;
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = meter_pdu.open(&m, &cfg, &e);
        bool struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        assert_true((m != NULL) == (rc == 0));
        meter_pdu.close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watts_are_read_or_refused_with_the_reason),
        cmocka_unit_test(each_outlet_has_its_own),
        cmocka_unit_test(a_unit_may_be_more_than_a_watt),
        cmocka_unit_test(the_path_is_followed_or_the_message_says_how_far),
        cmocka_unit_test(a_path_that_grows_too_long_is_refused),
        cmocka_unit_test(what_is_no_answer_is_told_on_one_line),
        cmocka_unit_test(a_long_answer_is_refused_unread),
        cmocka_unit_test(a_deep_answer_is_refused),
        cmocka_unit_test(a_meter_that_lacks_something_says_what),
        cmocka_unit_test(opening_leaves_nothing_behind_whatever_fails),
    };
    return cmocka_run_group_tests_name("pdu", tests, NULL, NULL);
}
