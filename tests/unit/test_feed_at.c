#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "serve/feed_at.h"
#include "tests/fault.h"

static const struct {
    const char *text;
    int rc;
} cases[] = {
    { "0.0.0.0", 0 },
    { "1.27.390.deadbeef", 0 },
    { "1.27.390.deadbeef.26-3.27-0", 0 },
    { "9223372036854775807.0.0.ffffffff", 0 },
    { "", -EINVAL },
    { "x", -EINVAL },
    { "1", -EINVAL },
    { "1.2.3", -EINVAL },
    { "1.2.3.", -EINVAL },
    { "1.2.3.4.", -EINVAL },
    { "1.2.3.4.5", -EINVAL },
    { "1.2.3.4.5-", -EINVAL },
    { "1.2.3.4.5-6-", -EINVAL },
    { "1.2.3.4.5-6.", -EINVAL },
    { "-1.2.3.4", -EINVAL },
    { "1.-2.3.4", -EINVAL },
    { " 1.2.3.4", -EINVAL },
    { "+1.2.3.4", -EINVAL },
    { "1.2.3.0x4", -EINVAL },
    { "1.2.3.100000000", -EINVAL },
    { "9223372036854775808.2.3.4", -EINVAL },
    { "1.2.3.4.5-2147483648", -EINVAL },
    { "1.2.3.4\n", -EINVAL },
};

static void test_ids_come_back_as_they_went(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct feed_at at = { .n = 0 };
        AUTO_BUF struct buf b = BUF_INIT;
        int rc = feed_at_parse(&at, cases[i].text);
        if (rc != cases[i].rc)
            fail_msg("'%s': got %d, want %d", cases[i].text, rc, cases[i].rc);
        if (rc == 0) {
            feed_at_put(&b, &at);
            assert_string_equal(buf_text(&b), cases[i].text);
        }
        feed_at_done(&at);
    }
}

static void test_no_more_are_kept_than_an_id_may_have(void **state)
{
    (void)state;
    struct feed_at at = { .n = 0 }, back = { .n = 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    for (int i = 0; i < FEED_OPEN_MAX + 5; i++)
        assert_int_equal(feed_at_open(&at, i, 1), 0);
    assert_int_equal(at.n, FEED_OPEN_MAX);
    feed_at_put(&b, &at);
    assert_int_equal(feed_at_parse(&back, buf_text(&b)), 0);
    assert_int_equal(back.n, FEED_OPEN_MAX);
    feed_at_done(&back);
    buf_puts(&b, ".1-1");
    assert_int_equal(feed_at_parse(&back, buf_text(&b)), -EINVAL);
    feed_at_done(&at);
}

static void test_without_memory_nothing_is_held(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct feed_at at = { .n = 0 };
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = feed_at_parse(&at, "1.2.3.4.5-6.7-8");
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && at.n == 0));
        feed_at_done(&at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_come_back_as_they_went),
        cmocka_unit_test(test_no_more_are_kept_than_an_id_may_have),
        cmocka_unit_test(test_without_memory_nothing_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
