/* Every number that a trial told of itself, in the store. */
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
#include "base/own.h"
#include "store/series.h"
#include "store/tidy.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t trial, other;
    struct series held;
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
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-series-XXXXXX");
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
    series_done(&f->held);
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int put_value(void *ctx, const struct store_value *r)
{
    buf_printf(ctx, "%s/%d/%lld@%d=%g ", r->name, r->epoch, (long long)r->step, r->attempt, r->value);
    return 0;
}

static void expect(struct fix *f, int64_t trial, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_series(f->s, trial, put_value, &got, &f->e));
    assert_string_equal(buf_text(&got), want);
}

static void test_series_keeps_what_was_told(void **state)
{
    struct fix *f = *state;
    assert_ok(f, series_add(&f->held, "loss", 1, 1, 10, 0.5));
    assert_ok(f, series_add(&f->held, "loss", 1, 2, 20, NAN));
    assert_ok(f, series_add(&f->held, "loss", 1, 0, 30, 0.25));
    assert_ok(f, series_add(&f->held, "accuracy", 1, 0, 30, INFINITY));
    expect(f, f->trial, "");
    assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    assert_int_equal(f->held.n, 0);
    expect(f, f->trial, "accuracy/1/0@1=nan loss/1/0@1=0.25 loss/1/1@1=0.5 loss/1/2@1=nan ");
    expect(f, f->other, "");
    /* Another attempt trains the epoch again. */
    assert_ok(f, series_add(&f->held, "loss", 1, 0, 40, 0.125));
    assert_ok(f, store_series_put(f->s, f->trial, 2, &f->held, &f->e));
    expect(f, f->trial, "accuracy/1/0@1=nan loss/1/0@2=0.125 loss/1/1@1=0.5 loss/1/2@1=nan ");
    assert_ok(f, store_trial_remove(f->s, f->trial, &f->e));
    expect(f, f->trial, "");
}

static void test_series_forgets_what_an_epoch_did_not_complete(void **state)
{
    struct fix *f = *state;
    assert_ok(f, series_add(&f->held, "loss", 1, 1, 10, 0.5));
    series_clear(&f->held);
    assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    expect(f, f->trial, "");
}

struct count {
    int64_t steps, epochs, odd;
};

static int count_value(void *ctx, const struct store_value *r)
{
    struct count *c = ctx;
    c->steps += r->step > 0;
    c->epochs += r->step == 0;
    c->odd += r->step % 2;
    return 0;
}

static void test_series_thins_steps_and_keeps_epochs(void **state)
{
    struct fix *f = *state;
    enum { EPOCHS = 50, STEPS = 700 };
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        for (int i = 1; i <= STEPS; i++)
            assert_ok(f, series_add(&f->held, "loss", epoch, (epoch - 1) * STEPS + i, 1, 0.5));
        assert_ok(f, series_add(&f->held, "loss", epoch, 0, 1, 0.5));
        assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    }
    struct count c = { 0 };
    assert_ok(f, store_series(f->s, f->trial, count_value, &c, &f->e));
    assert_int_equal(c.epochs, EPOCHS);
    assert_int_equal(c.steps, EPOCHS * STEPS / 4);
    assert_int_equal(c.odd, 0);
}

static void test_series_holds_no_more_than_it_may(void **state)
{
    struct fix *f = *state;
    for (int64_t step = 1; step <= 2000000; step++)
        assert_ok(f, series_add(&f->held, "loss", 1, step, 1, 0.5));
    for (int i = 0; i < 2 * SERIES_NAMES_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%d", i);
        assert_ok(f, series_add(&f->held, name, 1, 0, 1, 0.5));
    }
    assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    struct count c = { 0 };
    assert_ok(f, store_series(f->s, f->trial, count_value, &c, &f->e));
    assert_int_equal(c.epochs, SERIES_NAMES_MAX - 1);
    assert_in_range(c.steps, SERIES_STEPS_MAX / 2, SERIES_STEPS_MAX);
}

static void test_series_tells_the_last_value_of_a_name(void **state)
{
    struct fix *f = *state;
    double value = 0;
    bool has = true;
    assert_int_equal(series_add(&f->held, "f1", 1, 0, 1, 0.5), 0);
    assert_int_equal(series_add(&f->held, "f1", 2, 0, 1, 0.7), 0);
    assert_int_equal(series_add(&f->held, "f1", 2, 99, 1, 0.9), 0); /* of a step */
    assert_int_equal(series_add(&f->held, "recall", 2, 0, 1, NAN), 0);
    assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    assert_ok(f, store_series_at_end(f->s, f->trial, "f1", &value, &f->e));
    assert_true(value == 0.7);
    static const char *const absent[] = { "recall", "f2" };
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        assert_ok(f, store_series_at_end(f->s, f->trial, absent[i], &value, &f->e));
        assert_true(isnan(value));
    }
    assert_ok(f, store_series_at_end(f->s, f->other, "f1", &value, &f->e));
    assert_true(isnan(value));
    assert_ok(f, store_series_has(f->s, "f2", &has, &f->e));
    assert_false(has);
    assert_ok(f, store_series_has(f->s, "recall", &has, &f->e));
    assert_true(has);
}

static void test_series_knows_its_stride(void **state)
{
    (void)state;
    assert_int_equal(series_stride(1), 1);
    assert_int_equal(series_stride(SERIES_STEPS_MAX), 1);
    assert_int_equal(series_stride(SERIES_STEPS_MAX + 1), 2);
    assert_int_equal(series_stride(5 * SERIES_STEPS_MAX), 8);
}

static int put_checkpoint(void *ctx, const struct store_checkpoint *r)
{
    buf_printf(ctx, "%d@%d=%s ", r->epoch, r->attempt, r->path);
    return 0;
}

static void test_checkpoints_that_were_told_of(void **state)
{
    struct fix *f = *state;
    for (int epoch = 1; epoch <= 3; epoch++) {
        char path[16];
        (void)snprintf(path, sizeof path, "/c/%d", epoch);
        struct store_checkpoint c = { f->trial, epoch, 1, path };
        assert_ok(f, store_checkpoint_put(f->s, &c, &f->e));
    }
    struct store_checkpoint again = { f->trial, 3, 2, (char *)(uintptr_t) "/d" };
    assert_ok(f, store_checkpoint_put(f->s, &again, &f->e));
    assert_ok(f, store_checkpoint_forget(f->s, f->trial, 1, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_checkpoints(f->s, f->trial, put_checkpoint, &got, &f->e));
    assert_string_equal(buf_text(&got), "3@2=/d 2@1=/c/2 ");
    assert_ok(f, store_trial_remove(f->s, f->trial, &f->e));
    buf_clear(&got);
    assert_ok(f, store_checkpoints(f->s, f->trial, put_checkpoint, &got, &f->e));
    assert_string_equal(buf_text(&got), "");
}

static void test_series_survives_a_lack_of_memory(void **state)
{
    struct fix *f = *state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = series_add(&f->held, "loss", 1, 1, 1, 0.5);
        fault_disarm();
    }
    assert_ok(f, store_series_put(f->s, f->trial, 1, &f->held, &f->e));
    expect(f, f->trial, "loss/1/1@1=0.5 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_series_keeps_what_was_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series_forgets_what_an_epoch_did_not_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series_thins_steps_and_keeps_epochs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series_holds_no_more_than_it_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series_tells_the_last_value_of_a_name, set_up, tear_down),
        cmocka_unit_test(test_series_knows_its_stride),
        cmocka_unit_test_setup_teardown(test_checkpoints_that_were_told_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_series_survives_a_lack_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
