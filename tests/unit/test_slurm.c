/* A launch as a job, when calls fail on its way to sbatch: nothing is left of it. What Slurm answers is tests/integration/test_slurm.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/slurm.h"
#include "tests/fault.h"

static const char *no_needle(const struct application *a, size_t i, bool *step)
{
    (void)a, (void)i, (void)step;
    return NULL;
}

static void on_unplaced(void *ctx, uint64_t id, const char *why)
{
    (void)ctx, (void)id, (void)why;
}

static void on_begun(void *ctx, uint64_t id, int64_t ago_ms)
{
    (void)ctx, (void)id, (void)ago_ms;
}

static void on_note(void *ctx, uint64_t id, const char *text)
{
    (void)ctx, (void)id, (void)text;
}

static struct site_order order_of(const struct application *app, const char *dir)
{
    struct site_order o = { .words = { .node = "/bin/true", .dir = dir, .tag = "pt-1", .attempt = 1, .app = app },
                            .room = { .cpus = 1 } };
    o.tell = strdup("/socket");
    o.answer = strdup("{}");
    strv_add(&o.steps.env, "A=b");
    return o;
}

/* 0: it was handed to a worker. */
static int start_one(const char *dir, unsigned nth)
{
    static const struct slurm_ops ops = { on_unplaced, on_begun, on_note };
    static const struct launcher_ops launcher = { 0 };
    static const struct app_kind kind = { .needle = no_needle };
    const struct application app = { .kind = &kind };
    struct plan plan = { .cfg = { .slurm_pending = 1 }, .name = "s" };
    struct site_launch launch = { 0 };
    struct slurm *s = NULL;
    struct err e = { 0 };
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    AUTO_ORDER struct site_order order = order_of(&app, dir);
    fault_arm(FAULT_ALLOC | FAULT_WRITE, nth);
    int rc = slurm_open(&s, &loop, &plan, dir, &launcher, &ops, NULL, &e);
    struct site site = rc == 0 ? slurm_site(s) : (struct site){ 0 };
    if (rc == 0)
        rc = site.row->start(site.own, 1, &order, &launch, &e);
    fault_disarm();
    if (rc < 0)
        assert_true(e.text[0] && !launch.own);
    else
        assert_false(slurm_takes(s, (struct rooms_want){ .cpus = 1 })); /* it is the one that may wait */
    if (launch.own)
        site.row->let_go(launch.own, true);
    slurm_close(s);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    return rc;
}

static void test_a_launch_that_fails_leaves_nothing(void **state)
{
    (void)state;
    char dir[] = "/tmp/pipetune-slurm-XXXXXX";
    int rc = -EIO;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("PATH", dir, 1), 0); /* there is no sbatch */
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        rc = start_one(dir, nth);
    }
    assert_int_equal(rmdir(dir), 0); /* the job's script, too, is gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_launch_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
