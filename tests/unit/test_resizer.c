/* What a launch is to have of CPUs, asked of a cluster that is not there: nothing is lost or told for want of memory, and one that is closed
 * while it asks goes when it has asked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/cluster.h"
#include "live/resizer.h"
#include "tests/fault.h"

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    (void)ctx, (void)want, (void)have, (void)why;
    fail_msg("nothing was to be told");
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    (void)ctx, (void)tag, (void)have;
    fail_msg("nothing was to be told");
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("%s", text);
}

static const struct resizer_ops ops = { on_applied, on_changed, on_note };
static char nowhere[] = "http://127.0.0.1:1", trials[] = "trials";
static char *bases[] = { nowhere };
static const struct cluster_at at = { .row = &cluster_kubernetes, .bases = { .v = bases, .n = 1 }, .space = trials };

static int ask(struct resizer **r, uv_loop_t *loop)
{
    const struct desired_want want = { .tag = "pt-1", .cores = 1, .slots = 2 };
    struct err e = { 0 };
    int rc = resizer_open(r, loop, &at, &ops, NULL, &e);
    if (rc == 0)
        rc = resizer_apply(*r, &want, &e);
    assert_true(rc == 0 || (rc == -ENOMEM && e.text[0]));
    return rc;
}

static void test_it_is_whole_whatever_fails(void **state)
{
    uv_loop_t loop;
    int rc = -ENOMEM;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (unsigned nth = 1; rc < 0; nth++) {
        struct resizer *r = NULL;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = ask(&r, &loop);
        fault_disarm();
        if (rc == 0)
            resizer_release(r, "pt-1");
        resizer_close(r);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_it_may_be_closed_while_it_asks(void **state)
{
    uv_loop_t loop;
    struct resizer *r = NULL;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(ask(&r, &loop), 0);
    resizer_tick(r);
    resizer_close(r);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_what_is_over_meanwhile_is_not_told(void **state)
{
    uv_loop_t loop;
    struct resizer *r = NULL;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(ask(&r, &loop), 0);
    resizer_tick(r);
    resizer_release(r, "pt-1");
    resizer_release(r, "pt-2");
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    resizer_close(r);
    resizer_close(NULL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_whole_whatever_fails),
        cmocka_unit_test(test_it_may_be_closed_while_it_asks),
        cmocka_unit_test(test_what_is_over_meanwhile_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
