/* What meters read, in the store. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "store/energy.h"
#include "tests/fault.h"

struct fix {
    char dir[64];
    char path[96];
    struct store *s;
    int64_t study, other;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int64_t add_study(struct fix *f, const char *name)
{
    struct store_study row = { 0 };
    row.name = row.state = row.config = (char *)(uintptr_t)name;
    int64_t study = 0;
    assert_ok(f, store_study_add(f->s, &row, &study, &f->e));
    return study;
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-energy-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    f->study = add_study(f, "s");
    f->other = add_study(f, "other");
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static struct store_reading a_reading(int node, const char *meter, double to_ms)
{
    return (struct store_reading){ .node = node,
                                   .meter = meter,
                                   .state = "ok",
                                   .from_ms = to_ms - 1000.125,
                                   .to_ms = to_ms,
                                   .value = 12.5,
                                   .error = 0.25 };
}

static void add(struct fix *f, int64_t study, struct store_reading r)
{
    assert_ok(f, store_reading_add(f->s, study, &r, &f->e));
}

static int put_reading(void *ctx, const struct store_reading *r)
{
    buf_printf(ctx, "%d %s %.3f-%.3f %g+-%g %s\n", r->node, r->meter, r->from_ms, r->to_ms, r->value, r->error,
               r->state);
    return 0;
}

static int stop_at_second(void *ctx, const struct store_reading *r)
{
    (void)r;
    return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void test_readings_come_by_node_meter_and_time(void **state)
{
    struct fix *f = *state;
    struct store_reading gap = a_reading(0, "rapl", 1700000002000);
    gap.state = "discarded";
    gap.value = gap.error = NAN;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->study, a_reading(1, "cpu", 1700000001000));
    add(f, f->study, a_reading(0, "rapl", 1700000003000.5));
    add(f, f->study, gap);
    add(f, f->study, a_reading(0, "cpu", 1700000004000));
    add(f, f->other, a_reading(0, "cpu", 1));
    assert_ok(f, store_commit(f->s, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_readings(f->s, f->study, put_reading, &got, &f->e));
    assert_string_equal(buf_text(&got), "0 cpu 1700000002999.875-1700000004000.000 12.5+-0.25 ok\n"
                                        "0 rapl 1700000000999.875-1700000002000.000 nan+-nan discarded\n"
                                        "0 rapl 1700000002000.375-1700000003000.500 12.5+-0.25 ok\n"
                                        "1 cpu 1699999999999.875-1700000001000.000 12.5+-0.25 ok\n");
    int n = 0;
    assert_int_equal(store_readings(f->s, f->study, stop_at_second, &n, &f->e), -ECANCELED);
    assert_int_equal(n, 2);
}

static void test_a_reading_that_does_not_fit_is_explained(void **state)
{
    struct fix *f = *state;
    struct store_reading r = a_reading(0, NULL, 1);
    assert_int_equal(store_reading_add(f->s, f->study, &r, &f->e), -EINVAL);
    r = a_reading(0, "rapl", 1);
    r.state = NULL;
    assert_int_equal(store_reading_add(f->s, f->study, &r, &f->e), -EINVAL);
    r = a_reading(0, "rapl", NAN);
    assert_int_equal(store_reading_add(f->s, f->study, &r, &f->e), -EINVAL);
    r = a_reading(0, "rapl", 1);
    assert_int_equal(store_reading_add(f->s, 999, &r, &f->e), -ENOENT);
    assert_non_null(strstr(f->e.text, f->path));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_readings(f->s, f->study, put_reading, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static void test_a_batch_that_is_rolled_back_leaves_nothing(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->study, a_reading(0, "rapl", 1));
    store_rollback(f->s);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_readings(f->s, f->study, put_reading, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static int count(void *ctx, const struct store_reading *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

/* A second connection, so that no statement is ready yet. */
static int scenario(struct fix *f)
{
    struct store *s = NULL;
    int rc = store_open(&s, f->path, STORE_WRITE, &f->e);
    if (rc < 0)
        return rc;
    struct store_reading r[2] = { a_reading(0, "cpu", 1), a_reading(0, "rapl", 1) };
    int n = 0;
    rc = store_begin(s, &f->e);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = store_reading_add(s, f->study, &r[i], &f->e);
    if (rc == 0)
        rc = store_commit(s, &f->e);
    else
        store_rollback(s);
    if (rc == 0)
        rc = store_readings(s, f->study, count, &n, &f->e);
    store_close(s);
    return rc;
}

static void test_memory_that_runs_out_leaves_both_readings_or_none(void **state)
{
    struct fix *f = *state;
    bool hit = true;
    unsigned nth = 1;
    for (; hit; nth++) {
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        int rc = scenario(f);
        hit = fault_disarm();
        if (rc != 0 && rc != -ENOMEM)
            fail_msg("allocation %u: got %d: %s", nth, rc, f->e.text);
        int n = 0;
        assert_ok(f, store_readings(f->s, f->study, count, &n, &f->e));
        assert_int_equal(n % 2, 0);
        assert_true(rc < 0 || n > 0);
    }
    assert_true(nth > 5); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_readings_come_by_node_meter_and_time),
        T(test_a_reading_that_does_not_fit_is_explained),
        T(test_a_batch_that_is_rolled_back_leaves_nothing),
        T(test_memory_that_runs_out_leaves_both_readings_or_none),
    };
    return cmocka_run_group_tests_name("energy_store", tests, NULL, NULL);
}
