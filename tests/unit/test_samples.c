/* Samples and profiles in the store. */
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
#include "store/samples.h"
#include "tests/fault.h"

struct fix {
    char dir[64];
    char path[96];
    struct store *s;
    int64_t trial, other;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int64_t add_trial(struct fix *f, int64_t study, int number)
{
    struct store_trial t = { .study = study, .number = number, .seconds = NAN };
    t.state = t.hyper = (char *)(uintptr_t) "{}";
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    return t.id;
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-samples-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    struct store_study row = { 0 };
    row.name = row.state = row.config = (char *)(uintptr_t) "s";
    int64_t study = 0;
    assert_ok(f, store_study_add(f->s, &row, &study, &f->e));
    f->trial = add_trial(f, study, 1);
    f->other = add_trial(f, study, 2);
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

static struct store_sample a_sample(double t_ms, int node, const char *cells)
{
    return (struct store_sample){ .t_ms = t_ms, .dt_ms = 1000.25, .node = node, .scope = "process", .cells = cells };
}

static void add(struct fix *f, int64_t trial, double t_ms, int node, const char *cells)
{
    struct store_sample r = a_sample(t_ms, node, cells);
    assert_ok(f, store_sample_add(f->s, trial, &r, &f->e));
}

static int put_sample(void *ctx, const struct store_sample *r)
{
    buf_printf(ctx, "%.3f+%g@%d %s [%s]\n", r->t_ms, r->dt_ms, r->node, r->scope, r->cells);
    return 0;
}

static int stop_at_second(void *ctx, const struct store_sample *r)
{
    (void)r;
    return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void test_samples_come_in_the_order_of_their_time(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->trial, 1700000002000.125, 0, "3 n");
    add(f, f->trial, 1700000001000.5, 1, "2/0.5");
    add(f, f->trial, 1700000001000.5, 0, "1");
    add(f, f->trial, 1700000001000.5, 0, "");
    add(f, f->other, 1, 0, "another trial's");
    assert_ok(f, store_commit(f->s, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_string_equal(buf_text(&got), "1700000001000.500+1000.25@0 process [1]\n"
                                        "1700000001000.500+1000.25@0 process []\n"
                                        "1700000001000.500+1000.25@1 process [2/0.5]\n"
                                        "1700000002000.125+1000.25@0 process [3 n]\n");
    int n = 0;
    assert_int_equal(store_samples(f->s, f->trial, stop_at_second, &n, &f->e), -ECANCELED);
    assert_int_equal(n, 2);
}

static void test_a_sample_that_does_not_fit_is_explained(void **state)
{
    struct fix *f = *state;
    struct store_sample r = a_sample(1, 0, NULL);
    assert_int_equal(store_sample_add(f->s, f->trial, &r, &f->e), -EINVAL);
    r = a_sample(NAN, 0, "1");
    assert_int_equal(store_sample_add(f->s, f->trial, &r, &f->e), -EINVAL);
    r = a_sample(1, 0, "1");
    assert_int_equal(store_sample_add(f->s, 999, &r, &f->e), -ENOENT);
    assert_non_null(strstr(f->e.text, f->path));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static void test_a_batch_that_is_rolled_back_leaves_nothing(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->trial, 1, 0, "1");
    add(f, f->trial, 2, 0, "2");
    store_rollback(f->s);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static int put_profile(void *ctx, const struct store_profile *r)
{
    buf_printf(ctx, "%d: epoch %d, %g-%g %s %s %s\n", (int)r->seq, r->epoch, r->t_from_ms, r->t_to_ms,
               r->setting ? r->setting : "-", r->vector, r->verdict ? r->verdict : "-");
    return 0;
}

static void test_profiles_are_numbered_within_their_trial(void **state)
{
    struct fix *f = *state;
    struct store_profile whole = {
        .epoch = 2, .t_from_ms = 10, .t_to_ms = 20.5, .setting = "{\"cores\":2}", .vector = "[1]", .verdict = "{}"
    };
    struct store_profile bare = { .epoch = 3, .t_from_ms = 20.5, .t_to_ms = NAN, .vector = "[2]" };
    assert_ok(f, store_profile_add(f->s, f->trial, &whole, &f->e));
    assert_int_equal(whole.seq, 1);
    assert_ok(f, store_profile_add(f->s, f->trial, &bare, &f->e));
    assert_int_equal(bare.seq, 2);
    assert_ok(f, store_profile_add(f->s, f->other, &whole, &f->e));
    assert_int_equal(whole.seq, 1);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_profiles(f->s, f->trial, put_profile, &got, &f->e));
    assert_string_equal(buf_text(&got), "1: epoch 2, 10-20.5 {\"cores\":2} [1] {}\n"
                                        "2: epoch 3, 20.5-nan - [2] -\n");
}

static void test_a_profile_without_a_vector_is_refused(void **state)
{
    struct fix *f = *state;
    struct store_profile r = { .epoch = 1 };
    assert_int_equal(store_profile_add(f->s, f->trial, &r, &f->e), -EINVAL);
    assert_int_equal(r.seq, 0);
    r.vector = "[]";
    assert_int_equal(store_profile_add(f->s, 999, &r, &f->e), -ENOENT);
    assert_int_equal(r.seq, 0);
}

/* A second connection, so that no statement is ready yet. */
static int scenario(struct fix *f)
{
    struct store *s = NULL;
    int rc = store_open(&s, f->path, STORE_WRITE, &f->e);
    if (rc < 0)
        return rc;
    struct store_sample sample = a_sample(1, 0, "1");
    struct store_profile profile = { .epoch = 1, .vector = "[]" };
    AUTO_BUF struct buf got = BUF_INIT;
    rc = store_begin(s, &f->e);
    if (rc == 0)
        rc = store_sample_add(s, f->trial, &sample, &f->e);
    if (rc == 0)
        rc = store_profile_add(s, f->trial, &profile, &f->e);
    if (rc == 0)
        rc = store_commit(s, &f->e);
    else
        store_rollback(s);
    if (rc == 0)
        rc = store_samples(s, f->trial, put_sample, &got, &f->e);
    if (rc == 0)
        rc = store_profiles(s, f->trial, put_profile, &got, &f->e);
    store_close(s);
    return rc;
}

static int count_sample(void *ctx, const struct store_sample *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static int count_profile(void *ctx, const struct store_profile *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static void test_memory_that_runs_out_leaves_sample_and_profile_or_neither(void **state)
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
        int samples = 0, profiles = 0;
        assert_ok(f, store_samples(f->s, f->trial, count_sample, &samples, &f->e));
        assert_ok(f, store_profiles(f->s, f->trial, count_profile, &profiles, &f->e));
        assert_int_equal(samples, profiles);
        assert_true(rc < 0 || samples > 0);
    }
    assert_true(nth > 5); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_samples_come_in_the_order_of_their_time),
        T(test_a_sample_that_does_not_fit_is_explained),
        T(test_a_batch_that_is_rolled_back_leaves_nothing),
        T(test_profiles_are_numbered_within_their_trial),
        T(test_a_profile_without_a_vector_is_refused),
        T(test_memory_that_runs_out_leaves_sample_and_profile_or_neither),
    };
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
