#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/utf8.h"

static void expect(const char *name, const char *form, const struct buf *got, const char *want)
{
    assert_false(got->failed);
    if (strcmp(buf_text(got), want) != 0)
        fail_msg("%s, %s: got '%s', want '%s'", name, form, buf_text(got), want);
}

#define RUNE "\xEF\xBF\xBD"

static const struct {
    const char *name, *text, *line, *lines, *json;
} texts[] = {
    { "nothing", "", "", "", "" },
    { "letters of all kinds", "aé試🙂 e\xCC\x81", "aé試🙂 e\xCC\x81", "aé試🙂 e\xCC\x81",
      "aé試🙂 e\xCC\x81" },
    { "line ends and tabulators", "a\nb\tc", "a b c", "a\nb\tc", "a\nb\\u0009c" },
    { "C0 and DEL", "\033[31m\r\x7f", " [31m  ", " [31m  ", "\\u001b[31m\\u000d\\u007f" },
    { "C1, of which one is an escape",
      "\xC2\x9B"
      "31m\xC2\x85",
      " 31m ", " 31m ", "\\u009b31m\\u0085" },
    { "a C1 byte alone",
      "\x9b"
      "31m",
      RUNE "31m", RUNE "31m", "\\ufffd31m" },
    { "the order turned",
      "a\xE2\x80\xAE"
      "b\xE2\x81\xA6",
      "a" RUNE "b" RUNE, "a" RUNE "b" RUNE, "a\\u202eb\\u2066" },
    { "what is not seen", "a\xE2\x80\x8B\xEF\xBB\xBF\xC2\xAD", "a" RUNE RUNE RUNE, "a" RUNE RUNE RUNE,
      "a\\u200b\\ufeff\\u00ad" },
    { "other ends of lines", "a\xE2\x80\xA8", "a" RUNE, "a" RUNE, "a\\u2028" },
    { "tags beyond the first plane", "\xF3\xA0\x81\x81", RUNE, RUNE, "\\udb40\\udc41" },
    { "a surrogate alone", "\xED\xA0\x80", RUNE RUNE RUNE, RUNE RUNE RUNE, "\\ufffd\\ufffd\\ufffd" },
    { "a letter cut short", "\xE8\xA9", RUNE RUNE, RUNE RUNE, "\\ufffd\\ufffd" },
    { "too long a form", "\xC0\xAF", RUNE RUNE, RUNE RUNE, "\\ufffd\\ufffd" },
};

static void test_what_is_printed_commands_and_hides_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf line = BUF_INIT, lines = BUF_INIT, json = BUF_INIT;
        const char *text = texts[i].text;
        utf8_put_plain(&line, text, strlen(text), UTF8_ONE_LINE);
        utf8_put_plain(&lines, text, strlen(text), UTF8_LINES);
        utf8_put_json(&json, text, strlen(text));
        expect(texts[i].name, "one line", &line, texts[i].line);
        expect(texts[i].name, "lines", &lines, texts[i].lines);
        expect(texts[i].name, "JSON", &json, texts[i].json);
        assert_int_equal(utf8_is_plain(text), strcmp(text, texts[i].line) == 0);
        assert_true(utf8_is_plain(buf_text(&line)));
    }
}

static const struct {
    const char *name, *text;
    size_t columns, most, bytes; /* in so many columns fit so many bytes */
} widths[] = {
    { "letters", "abc", 3, 2, 2 },
    { "two bytes", "éé", 2, 1, 2 },
    { "wide letters", "試験", 4, 3, 3 },
    { "a picture", "🙂x", 3, 2, 4 },
    { "a mark on a letter stays with it", "e\xCC\x81x", 2, 1, 3 },
    { "no UTF-8", "\xff\xfe", 2, 1, 1 },
    { "room for all", "ab", 2, 9, 2 },
};

static void test_widths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        size_t columns = utf8_columns(widths[i].text), bytes = utf8_bytes(widths[i].text, widths[i].most);
        if (columns != widths[i].columns || bytes != widths[i].bytes)
            fail_msg("%s: got %zu columns, %zu bytes; want %zu, %zu", widths[i].name, columns, bytes, widths[i].columns,
                     widths[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_commands_and_hides_nothing),
        cmocka_unit_test(test_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
