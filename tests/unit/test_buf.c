#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "tests/fault.h"

static void test_it_grows_and_stays_terminated(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    assert_string_equal(buf_text(&b), "");
    for (size_t i = 0; i < 5000; i++) {
        buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(b.len, i + 1);
        assert_int_equal(b.data[b.len], '\0');
    }
    buf_printf(&b, "%s %d", "tail", 7);
    assert_string_equal(b.data + 5000, "tail 7");
    assert_false(b.failed);
}

static void test_bytes_of_any_value(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_put(&b, "a\0b", 3);
    buf_put(&b, NULL, 0);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
    buf_shift(&b, 2);
    assert_string_equal(b.data, "b");
    buf_shift(&b, 1);
    buf_shift(&b, 0);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_text(&b), "");
}

static void test_taking_hands_the_text_over(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    AUTO_FREE char *nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    buf_puts(&b, "words");
    AUTO_FREE char *text = buf_take(&b);
    assert_string_equal(text, "words");
    assert_null(b.data);
    buf_done(&b);
    buf_done(NULL);
}

static const struct {
    const char *name, *word, *want;
} words[] = {
    { "a plain word", "local", "local" },
    { "what paths and options are made of", "/a-b_c.d/e:f,g=h@i%j^k+l", "/a-b_c.d/e:f,g=h@i%j^k+l" },
    { "nothing", "", "''" },
    { "a star", "local[*]", "'local[*]'" },
    { "a space", "a b", "'a b'" },
    { "a quote", "it's", "'it'\\''s'" },
    { "a dollar and a backslash", "$x\\", "'$x\\'" },
    { "a tilde would be a home", "~", "'~'" },
    { "a comment", "#", "'#'" },
    { "more than ASCII", "ü", "'ü'" },
    { "what would command a terminal", "a\033'b\\\n", "$'a\\033\\'b\\\\\\012'" },
    { "what would turn the order", "\xE2\x80\xAE", "$'\\342\\200\\256'" },
};

static void test_shell_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        buf_put_shell(&b, words[i].word);
        if (strcmp(buf_text(&b), words[i].want) != 0)
            fail_msg("%s: got %s, want %s", words[i].name, buf_text(&b), words[i].want);
    }
}

static void append_some(struct buf *b)
{
    buf_puts(b, "first ");
    for (int i = 0; i < 40; i++)
        buf_printf(b, "%d ", i);
    buf_put_shell(b, "a b");
}

static void test_failure_is_sticky_and_keeps_what_was_there(void **state)
{
    (void)state;
    AUTO_BUF struct buf want = BUF_INIT;
    append_some(&want);
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 64);
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_ALLOC, nth);
        append_some(&b);
        struck = fault_disarm();
        assert_int_equal(b.failed, struck);
        assert_int_equal(strncmp(buf_text(&b), buf_text(&want), b.len), 0);
        size_t len = b.len;
        buf_puts(&b, "more");
        assert_int_equal(b.len, struck ? len : len + 4);
        AUTO_FREE char *text = buf_take(&b);
        assert_int_equal(text == NULL, struck);
    }
}

static void test_clearing_forgets_the_failure(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    fault_arm(FAULT_ALLOC, 1);
    buf_puts(&b, "lost");
    assert_true(fault_disarm());
    buf_clear(&b);
    buf_puts(&b, "kept");
    assert_string_equal(buf_text(&b), "kept");
    buf_clear(&b);
    assert_string_equal(buf_text(&b), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_grows_and_stays_terminated),
        cmocka_unit_test(test_bytes_of_any_value),
        cmocka_unit_test(test_taking_hands_the_text_over),
        cmocka_unit_test(test_shell_words),
        cmocka_unit_test(test_failure_is_sticky_and_keeps_what_was_there),
        cmocka_unit_test(test_clearing_forgets_the_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
