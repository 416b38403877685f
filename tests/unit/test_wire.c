#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/own.h"
#include "base/wire.h"
#include "tests/fault.h"

/* What was read, as "key=value;". Texts in <>, arrays in []. */
static void show(struct buf *b, const struct wire *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct wire_member *m = &w->members[i];
        buf_printf(b, "%s=", m->key);
        switch (m->kind) {
        case WIRE_NULL: buf_puts(b, "null"); break;
        case WIRE_BOOL: buf_puts(b, m->truth ? "true" : "false"); break;
        case WIRE_NUMBER: buf_printf(b, "%.17g", m->number); break;
        case WIRE_STRING: buf_printf(b, "<%s>", m->text); break;
        case WIRE_INTS: wire_put_ints(b, m->ints, m->n_ints); break;
        }
        buf_putc(b, ';');
    }
}

/* In a block of exact size, so that ASan sees a read behind the NUL. */
static int parse(struct wire *w, const char *text, size_t len, char **line, struct err *e)
{
    *line = malloc(len + 1);
    assert_non_null(*line);
    memcpy(*line, text, len);
    (*line)[len] = '\0';
    return wire_parse(w, *line, len, e);
}

static const struct {
    const char *name, *text, *want;
} good[] = {
    { "an empty object", "{}", "" },
    { "blanks anywhere", " { \"a\" : 1 ,\t\"b\" : [ 1 , 2 ] } \r", "a=1;b=[1,2];" },
    { "every kind", "{\"n\":null,\"t\":true,\"f\":false,\"x\":-1.5e3,\"s\":\"v\",\"i\":[3,-4]}",
      "n=null;t=true;f=false;x=-1500;s=<v>;i=[3,-4];" },
    { "an array of none", "{\"a\":[],\"b\":[7]}", "a=[];b=[7];" },
    { "the numbers of JSON", "{\"a\":0,\"b\":-0,\"c\":10,\"d\":0.25,\"e\":1E2,\"f\":1e+2,\"g\":5e-1}",
      "a=0;b=-0;c=10;d=0.25;e=100;f=100;g=0.5;" },
    { "whole numbers up to 2^53", "{\"a\":9007199254740992}", "a=9007199254740992;" },
    { "a whole number of an array in another form", "{\"a\":[1e2,2.0]}", "a=[100,2];" },
    { "the ends of int", "{\"a\":[2147483647,-2147483648]}", "a=[2147483647,-2147483648];" },
    { "escapes", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "a=<\"\\/\b\f\n\r\t>;" },
    { "code points of every length", "{\"a\":\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"}",
      "a=<A\u00e9\u20ac\U0001F600>;" },
    { "UTF-8 as it is", "{\"\u00e9\":\"\u20ac\U0001F600\"}", "\u00e9=<\u20ac\U0001F600>;" },
    { "an empty key and an empty text", "{\"\":\"\"}", "=<>;" },
};

static void test_a_line_is_read(void **state)
{
    (void)state;
    static struct wire w;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct err e = { 0 };
        AUTO_FREE char *line = NULL;
        AUTO_BUF struct buf got = BUF_INIT;
        int rc = parse(&w, good[i].text, strlen(good[i].text), &line, &e);
        show(&got, &w);
        if (rc != 0 || strcmp(buf_text(&got), good[i].want) != 0)
            fail_msg("%s: got %d %s '%s', want '%s'", good[i].name, rc, e.text, buf_text(&got), good[i].want);
    }
}

static const struct {
    const char *name, *text, *want;
} bad[] = {
    { "nothing", "", "column 1: not a JSON object" },
    { "an array", "[1]", "column 1: not a JSON object" },
    { "words", "hello", "column 1: not a JSON object" },
    { "no end", "{\"a\":1", "',' or '}' expected" },
    { "a comma at the end", "{\"a\":1,}", "column 8: a key in quotes expected" },
    { "a key without quotes", "{a:1}", "column 2: a key in quotes expected" },
    { "no colon", "{\"a\" 1}", "':' expected" },
    { "no value", "{\"a\":}", "column 6: neither a value nor a number" },
    { "text behind it", "{} {}", "column 4: text behind the object" },
    { "an object inside", "{\"a\":{}}", "objects in objects" },
    { "an array inside an array", "{\"a\":[[1]]}", "neither a value nor a number" },
    { "a text in an array", "{\"a\":[\"1\"]}", "neither a value nor a number" },
    { "a fraction in an array", "{\"a\":[1.5]}", "arrays hold whole numbers" },
    { "an array number beyond int", "{\"a\":[2147483648]}", "arrays hold whole numbers" },
    { "a comma at an array's end", "{\"a\":[1,]}", "neither a value nor a number" },
    { "an array without end", "{\"a\":[1", "',' or ']' expected" },
    { "the same key twice", "{\"a\":1,\"b\":2,\"a\":3}", "the same key again" },
    { "the same key in another spelling", "{\"a\":1,\"\\u0061\":3}", "the same key again" },
    { "a plus", "{\"a\":+1}", "neither a value nor a number" },
    { "a leading zero", "{\"a\":01}", "neither a value nor a number" },
    { "a point without digits", "{\"a\":1.}", "neither a value nor a number" },
    { "a point without a number", "{\"a\":.5}", "neither a value nor a number" },
    { "an exponent without digits", "{\"a\":1e}", "neither a value nor a number" },
    { "hexadecimal", "{\"a\":0x10}", "',' or '}' expected" },
    { "infinity", "{\"a\":inf}", "neither a value nor a number" },
    { "a number beyond double", "{\"a\":1e999}", "a number that is too large" },
    { "a word that begins well", "{\"a\":truely}", "',' or '}' expected" },
    { "a text without end", "{\"a\":\"x", "the text is not closed" },
    { "a text that ends in a backslash", "{\"a\":\"\\", "an unknown escape" },
    { "an unknown escape", "{\"a\":\"\\x41\"}", "an unknown escape" },
    { "three hexadecimal digits", "{\"a\":\"\\u041\"}", "four hexadecimal digits" },
    { "an escaped NUL", "{\"a\":\"\\u0000\"}", "'\\u0000' is not allowed" },
    { "a high surrogate alone", "{\"a\":\"\\ud83d\"}", "half of a surrogate pair" },
    { "a high surrogate and a letter", "{\"a\":\"\\ud83d\\u0041\"}", "half of a surrogate pair" },
    { "a low surrogate alone", "{\"a\":\"\\ude00\"}", "half of a surrogate pair" },
    { "a control character", "{\"a\":\"x\ty\"}", "a control character in a text" },
    { "Latin-1", "{\"a\":\"\xe9\"}", "not UTF-8" },
    { "an overlong form", "{\"a\":\"\xc0\x80\"}", "not UTF-8" },
    { "a sequence cut by the end", "{\"a\":\"\xe2\x82", "not UTF-8" },
};

static void test_what_is_no_line_is_explained(void **state)
{
    (void)state;
    static struct wire w;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        AUTO_FREE char *line = NULL;
        int rc = parse(&w, bad[i].text, strlen(bad[i].text), &line, &e);
        if (rc != -EINVAL || !strstr(e.text, bad[i].want) || strchr(e.text, '\n') || w.n)
            fail_msg("%s: got %d '%s', want '%s'", bad[i].name, rc, e.text, bad[i].want);
    }
}

static void test_a_nul_in_the_line_is_refused(void **state)
{
    (void)state;
    static struct wire w;
    struct err e = { 0 };
    AUTO_FREE char *line = NULL;
    assert_int_equal(parse(&w, "{}\0{}", 5, &line, &e), -EINVAL);
    assert_string_equal(e.text, "a NUL in the line");
}

/* `n` members or numbers between `head` and `tail`. */
static int parse_many(struct wire *w, const char *head, const char *item, const char *tail, int n, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, head);
    for (int i = 0; i < n; i++) {
        if (strchr(item, '"'))
            buf_printf(&b, "%s\"k%d\":1", i ? "," : "", i);
        else
            buf_printf(&b, "%s%s", i ? "," : "", item);
    }
    buf_puts(&b, tail);
    assert_false(b.failed);
    return wire_parse(w, b.data, b.len, e);
}

static void test_limits_hold_exactly(void **state)
{
    (void)state;
    static struct wire w;
    struct err e = { 0 };
    assert_int_equal(parse_many(&w, "{", "\"", "}", WIRE_MEMBERS_MAX, &e), 0);
    assert_int_equal(w.n, WIRE_MEMBERS_MAX);
    assert_int_equal(parse_many(&w, "{", "\"", "}", WIRE_MEMBERS_MAX + 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "too many members"));
    assert_int_equal(parse_many(&w, "{\"a\":[", "12", "]}", WIRE_INTS_MAX, &e), 0);
    assert_int_equal(parse_many(&w, "{\"b\":[1],\"a\":[", "12", "]}", WIRE_INTS_MAX, &e), -EINVAL);
    assert_non_null(strstr(e.text, "too many numbers"));
    static char line[WIRE_LINE_MAX + 2];
    memset(line, ' ', sizeof line);
    line[0] = '{', line[1] = '}', line[WIRE_LINE_MAX] = '\0';
    assert_int_equal(wire_parse(&w, line, WIRE_LINE_MAX, &e), 0);
    line[WIRE_LINE_MAX] = ' ', line[WIRE_LINE_MAX + 1] = '\0';
    assert_int_equal(wire_parse(&w, line, WIRE_LINE_MAX + 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "a line of more than 65536 bytes"));
}

static void test_members_are_found_by_key(void **state)
{
    (void)state;
    static struct wire w;
    char line[] = "{\"a\":null,\"ab\":2}";
    assert_int_equal(wire_parse(&w, line, strlen(line), NULL), 0);
    assert_int_equal(wire_find(&w, "a")->kind, WIRE_NULL);
    assert_true(wire_find(&w, "ab")->number == 2);
    assert_null(wire_find(&w, "b"));
    assert_null(wire_find(&w, ""));
}

static const struct {
    const char *name, *text, *want;
} texts[] = {
    { "a plain text", "host-1", "\"host-1\"" },
    { "quotes and backslashes", "a\"b\\c", "\"a\\\"b\\\\c\"" },
    { "control characters", "\n\t\x01\x7f", "\"\\u000a\\u0009\\u0001\\u007f\"" },
    { "UTF-8", "\u00e9\u20ac", "\"\u00e9\u20ac\"" },
    { "what is no UTF-8", "a\xff\xe2\x82z", "\"a???z\"" },
    { "nothing", "", "\"\"" },
};

static void test_texts_are_said_so_that_json_reads_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        wire_put_text(&b, texts[i].text);
        AUTO_JSON json_t *read = json_loads(buf_text(&b), JSON_DECODE_ANY, NULL);
        if (strcmp(buf_text(&b), texts[i].want) != 0 || !json_is_string(read))
            fail_msg("%s: got %s, want %s", texts[i].name, buf_text(&b), texts[i].want);
    }
}

static void test_saying_without_memory_shows_in_the_buffer(void **state)
{
    (void)state;
    static const int ints[] = { 1, 22, 333 };
    bool failed = true;
    for (unsigned nth = 1; failed; nth++) {
        assert_true(nth < 16);
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_ALLOC, nth);
        wire_put_text(&b, "a text that is longer than what a buffer begins with, by a good deal, so that it grows");
        wire_put_ints(&b, ints, ARRAY_LEN(ints));
        failed = fault_disarm();
        assert_int_equal(b.failed, failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_read),
        cmocka_unit_test(test_what_is_no_line_is_explained),
        cmocka_unit_test(test_a_nul_in_the_line_is_refused),
        cmocka_unit_test(test_limits_hold_exactly),
        cmocka_unit_test(test_members_are_found_by_key),
        cmocka_unit_test(test_texts_are_said_so_that_json_reads_them),
        cmocka_unit_test(test_saying_without_memory_shows_in_the_buffer),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
