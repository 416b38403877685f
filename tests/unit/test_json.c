#include <errno.h>
#include <float.h>
#include <math.h>
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
#include "tests/fault.h"

/* --- texts and their lines -------------------------------------------------------------------------------------------- */

static const char text[] =
    "{\n  \"bigdlConf\": \"a\\\"b\", \"study\": {\n    \"name\": \"x\",\n\n    \"epochs\": 3 },\n"
    "  \"list\": [1, [2,\n 3], {\n \"k\": null },\n 4],\n  \"e\\\\\": {}, \"\": 1,\n  \"last\": true }\n";

static const struct {
    const char *path;
    int line;
} lines[] = {
    { "", 1 },
    { "bigdlConf", 2 },
    { "study", 2 },
    { "study/name", 3 },
    { "study/epochs", 5 },
    { "study/nothing", 2 }, /* the deepest part that is there */
    { "nothing/epochs", 1 },
    { "study/name/x", 3 },
    { "list", 6 },
    { "list/0", 6 },
    { "list/1/1", 7 },
    { "list/2/k", 8 },
    { "list/3", 9 },
    { "list/4", 6 },
    { "list/99999999999999999999", 6 },
    { "list/x", 6 },
    { "list/2x", 6 },
    { "e\\\\", 10 }, /* as written */
    { "last", 11 },
    { "last/", 11 },
    { "//", 10 }, /* the key "" */
};

static void test_the_line_of_a_value(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e;
    assert_int_equal(json_doc_parse(&d, "f", text, strlen(text), &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        int got = json_doc_line(&d, lines[i].path);
        if (got != lines[i].line)
            fail_msg("'%s': got line %d, want %d", lines[i].path, got, lines[i].line);
    }
    assert_int_equal(json_doc_err(&d, "study/epochs", &e, -ERANGE, "must be less than %d", 3), -ERANGE);
    assert_string_equal(e.text, "'f' line 5: 'study.epochs' must be less than 3");
}

static const struct {
    const char *name, *text, *want;
} wrong[] = {
    { "nothing", "", "line 1" },
    { "a word", "{\n\"a\":\n oops }", "line 3" },
    { "a comma too many", "{ \"a\": 1, }", "line 1" },
    { "a key twice", "{ \"a\": 1,\n \"a\": 2 }", "line 2" },
    { "a key twice, deep inside", "{ \"a\": [ {\n \"k\": 1,\n \"k\": 2 } ] }", "line 3" },
    { "not closed", "{ \"a\": [1, 2\n", "line 2" },
    { "something behind", "{ }\n{ }", "line 2" },
    { "a scalar alone", "3", "line 1" },
    { "not UTF-8", "{ \"a\": \"\xff\" }", "line 1" },
    { "a newline in a text", "{ \"a\": \"x\ny\" }", "line 1" },
    { "an escape sequence", "{ \"a\": \x1b[31mred }", "line 1" },
    { "a number too large", "{ \"a\": 1e999 }", "line 1" },
};

static void test_what_is_no_json_names_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct json_doc d = { 0 };
        struct err e = { 0 };
        int rc = json_doc_parse(&d, "the file", wrong[i].text, strlen(wrong[i].text), &e);
        if (rc != -EINVAL || !strstr(e.text, "'the file' ") || !strstr(e.text, wrong[i].want) || d.root || d.text)
            fail_msg("%s: got %d, '%s', want '%s'", wrong[i].name, rc, e.text, wrong[i].want);
        for (const char *c = e.text; *c; c++)
            if ((unsigned char)*c < 0x20)
                fail_msg("%s: byte %d in the message", wrong[i].name, *c); /* one line, and no terminal is driven */
    }
}

static void test_comments_are_passed_over_and_lines_stay(void **state)
{
    (void)state;
    static const char commented[] = "// a study\n{ \"url\": \"http://h//x\\\"//y\", // not \"this\"\n  // \"a\": 1,\n"
                                    "  \"b\": 2 } // end";
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e;
    assert_int_equal(json_doc_parse(&d, "f", commented, strlen(commented), &e), 0);
    assert_string_equal(json_string_value(json_object_get(d.root, "url")), "http://h//x\"//y");
    assert_int_equal(json_object_size(d.root), 2);
    assert_int_equal(json_doc_line(&d, "b"), 4);
    AUTO_JSON_DOC struct json_doc none = { 0 };
    static const char broken[] = "{ // one\n // two\n 3 }";
    assert_int_equal(json_doc_parse(&none, "f", broken, strlen(broken), &e), -EINVAL);
    if (!strstr(e.text, "'f' line 3"))
        fail_msg("got '%s'", e.text);
    static const char slash[] = "{ \"a\": 1 / 2 }";
    assert_int_equal(json_doc_parse(&none, "f", slash, strlen(slash), &e), -EINVAL);
}

static void test_a_fault_of_any_key_is_told_on_one_line(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e;
    assert_int_equal(json_doc_parse(&d, "f", "{\n\"a\": 1 }", 10, &e), 0);
    (void)json_doc_err(&d, "k\n/\x1b[2J", &e, -EINVAL, "is '%s'", "x\ty");
    assert_string_equal(e.text, "'f' line 1: 'k?.?[2J' is 'x?y'");
}

static void test_a_nul_byte_is_no_end(void **state)
{
    (void)state;
    struct json_doc d = { 0 };
    struct err e;
    assert_int_equal(json_doc_parse(&d, "f", "{ }\0{", 5, &e), -EINVAL);
    assert_int_equal(json_doc_parse(&d, "f", "{ }{", 3, &e), 0); /* no byte behind the length is read */
    json_doc_done(&d);
    json_doc_done(NULL);
}

static void test_any_depth_is_survived(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *bomb = malloc(DEPTH);
    assert_non_null(bomb);
    for (int kind = 0; kind < 2; kind++) {
        struct json_doc d = { 0 };
        struct err e;
        for (size_t i = 0; i < DEPTH; i++)
            bomb[i] = kind == 0 ? '[' : "{\"a\":"[i % 5];
        assert_int_equal(json_doc_parse(&d, "f", bomb, DEPTH, &e), -EINVAL);
    }
    /* As deep as it may be: printed and looked up without trouble. */
    enum { DEEP = 2000 };
    memset(bomb, '[', DEEP);
    memset(bomb + DEEP, ']', DEEP);
    AUTO_JSON_DOC struct json_doc d = { 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(json_doc_parse(&d, "f", bomb, (size_t)2 * DEEP, NULL), 0);
    json_put(&b, d.root, JSON_STYLE_COMPACT);
    assert_int_equal(b.len, 2 * DEEP);
    for (size_t i = 0; i < DEEP; i++)
        memcpy(bomb + 2 * i, "0/", 2);
    bomb[2 * DEEP] = '\0';
    assert_int_equal(json_doc_line(&d, bomb), 1);
    free(bomb);
}

static void test_a_doc_is_whole_or_none(void **state)
{
    (void)state;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        struct json_doc d = { 0 };
        struct err e;
        fault_arm(FAULT_ALLOC, nth);
        rc = json_doc_parse(&d, "f", text, strlen(text), &e);
        bool struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        assert_true(rc == 0 || !d.root);
        json_doc_done(&d);
    }
}

/* --- printing ---------------------------------------------------------------------------------------------------------- */

static void test_printing(void **state)
{
    (void)state;
    AUTO_JSON json_t *j = json_pack("{s:i, s:f, s:s, s:[b, n, []], s:{}}", "n", 7, "accuracy", 0.9914, "text",
                                    "a\"b\\c\n\t\x01\x7fü", "list", 1, "none");
    AUTO_BUF struct buf compact = BUF_INIT;
    AUTO_BUF struct buf indented = BUF_INIT;
    json_put(&compact, j, JSON_STYLE_COMPACT);
    assert_string_equal(buf_text(&compact),
                        "{\"n\": 7, \"accuracy\": 0.9914, \"text\": \"a\\\"b\\\\c\\n\\t\\u0001\\u007fü\", "
                        "\"list\": [true, null, []], \"none\": {}}");
    json_put(&indented, j, JSON_STYLE_INDENT);
    assert_non_null(strstr(buf_text(&indented), "{\n  \"n\": 7,\n  \"accuracy\": 0.9914,"));
    const char *const both[] = { buf_text(&compact), buf_text(&indented) };
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        AUTO_JSON json_t *back = json_loads(both[i], 0, NULL);
        assert_true(json_equal(back, j));
    }
    buf_clear(&compact);
    json_put(&compact, NULL, JSON_STYLE_COMPACT);
    assert_string_equal(buf_text(&compact), "null");
}

static void test_bytes_that_are_no_utf_8_stay_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "plain", "\"plain\"" },
        { "\xC3\xA4 \xE2\x82\xAC", "\"\xC3\xA4 \xE2\x82\xAC\"" },
        { "a\xFF\xFE/b", "\"a\\ufffd\\ufffd/b\"" },
        { "\xC3", "\"\\ufffd\"" },
        { "\xED\xA0\x80\n", "\"\\ufffd\\ufffd\\ufffd\\n\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        AUTO_JSON json_t *j = json_bytes(cases[i].text);
        json_put_string(&b, cases[i].text);
        AUTO_JSON json_t *same = json_loads(buf_text(&b), JSON_DECODE_ANY, NULL);
        assert_string_equal(buf_text(&b), cases[i].want);
        assert_true(json_is_string(j) && json_equal(j, same));
    }
}

static void test_what_json_cannot_say_is_null(void **state)
{
    (void)state;
    AUTO_JSON json_t *j = json_array();
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_JSON json_t *real = json_real(1);
    assert_int_equal(json_array_append(j, real), 0);
    json_put(&b, j, JSON_STYLE_COMPACT);
    assert_string_equal(buf_text(&b), "[1]");
    assert_null(json_real(NAN)); /* jansson makes none, so nothing else can come to be printed */
}

static void test_text_is_one_line_and_nothing_of_nothing(void **state)
{
    (void)state;
    AUTO_JSON json_t *j = json_pack("{s:i, s:[f]}", "cores", 2, "x", 0.1);
    AUTO_FREE char *line = json_text(j);
    assert_string_equal(line, "{\"cores\": 2, \"x\": [0.1]}");
    assert_null(json_text(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_one_line_and_nothing_of_nothing),
        cmocka_unit_test(test_the_line_of_a_value),
        cmocka_unit_test(test_what_is_no_json_names_its_line),
        cmocka_unit_test(test_comments_are_passed_over_and_lines_stay),
        cmocka_unit_test(test_a_fault_of_any_key_is_told_on_one_line),
        cmocka_unit_test(test_a_nul_byte_is_no_end),
        cmocka_unit_test(test_any_depth_is_survived),
        cmocka_unit_test(test_a_doc_is_whole_or_none),
        cmocka_unit_test(test_printing),
        cmocka_unit_test(test_bytes_that_are_no_utf_8_stay_json),
        cmocka_unit_test(test_what_json_cannot_say_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
