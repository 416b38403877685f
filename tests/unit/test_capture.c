#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/capture.h"
#include "base/own.h"

enum { LONG_MS = 20000 };

static int say(struct buf *out, struct buf *said, const char *script, size_t max, int ms)
{
    char *argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL };
    struct err e;
    return said ? capture_apart(out, said, argv, max, ms, &e) : capture(out, argv, ms, &e);
}

static void test_together_and_apart(void **state)
{
    (void)state;
    AUTO_BUF struct buf both = BUF_INIT, out = BUF_INIT, said = BUF_INIT;
    assert_int_equal(say(&both, NULL, "echo a; echo b >&2; exit 3", 0, LONG_MS), 3);
    assert_string_equal(buf_text(&both), "a\nb\n");
    assert_int_equal(say(&out, &said, "echo a; echo b >&2; exit 2", 100, LONG_MS), 2);
    assert_string_equal(buf_text(&out), "a\n");
    assert_string_equal(buf_text(&said), "b\n");
}

static void test_what_is_too_much_is_told(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT, said = BUF_INIT;
    assert_int_equal(say(&out, &said, "printf 1234567890", 9, LONG_MS), -EFBIG);
    assert_int_equal(say(&out, &said, "printf 123456789", 9, LONG_MS), 0);
}

static void test_who_does_not_answer_is_ended(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT, said = BUF_INIT;
    assert_int_equal(say(&out, &said, "exec sleep 1000", 9, 50), -ETIMEDOUT);
    assert_int_equal(say(&out, NULL, "exec sleep 1000", 9, 50), -ETIMEDOUT);
}

static void test_a_program_that_is_not_there(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT, said = BUF_INIT;
    char *argv[] = { "/nowhere/nothing", NULL };
    struct err e;
    assert_int_equal(capture_apart(&out, &said, argv, 9, LONG_MS, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nowhere/nothing"));
}

static void test_signals_reach_it_where_they_are_blocked_here(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT, said = BUF_INIT;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    int rc = say(&out, &said, "kill -TERM $$; echo still there", 100, LONG_MS);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(rc, 128 + SIGTERM);
    assert_string_equal(buf_text(&out), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together_and_apart),
        cmocka_unit_test(test_what_is_too_much_is_told),
        cmocka_unit_test(test_who_does_not_answer_is_ended),
        cmocka_unit_test(test_a_program_that_is_not_there),
        cmocka_unit_test(test_signals_reach_it_where_they_are_blocked_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
