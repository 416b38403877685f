/* How far a study was handed on, and what comes next, as the store has it. */
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
#include "store/handed.h"
#include "tests/fault.h"

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t study, trial;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

#define TEXT(literal) ((char *)(uintptr_t)(literal))

static int64_t add_trial(struct fix *f, int number, const char *trial_state)
{
    struct store_trial t = { .study = f->study, .number = number, .state = TEXT(trial_state), .hyper = TEXT("{}") };
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    return t.id;
}

static void add_epoch(struct fix *f, int epoch, double accuracy, double f1)
{
    struct store_epoch row = { .trial = f->trial,
                               .epoch = epoch,
                               .attempt = 1,
                               .accuracy = accuracy,
                               .loss = NAN,
                               .metric = NAN,
                               .seconds = 2,
                               .records = NAN,
                               .learning_rate = NAN,
                               .end_ms = 1000 * epoch };
    struct series told = { 0 };
    assert_ok(f, store_epoch_put(f->s, &row, &f->e));
    assert_int_equal(series_add(&told, "f1", epoch, 0, 1000 * epoch, f1), 0);
    assert_int_equal(series_add(&told, "loss", epoch, 10 * epoch, 1000 * epoch, 0.5), 0);
    assert_ok(f, store_series_put(f->s, f->trial, 1, &told, &f->e));
    series_done(&told);
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-handed-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    struct store_study row = { .name = TEXT("demo"), .state = TEXT("running"), .config = TEXT("{}") };
    assert_ok(f, store_study_add(f->s, &row, &f->study, &f->e));
    f->trial = add_trial(f, 1, "running");
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

static int put_value(void *ctx, const struct store_value *r)
{
    buf_printf(ctx, "%d %s %d %g;", r->epoch, r->name, (int)r->step, r->value);
    return 0;
}

static void test_values_come_behind_the_cursor_in_its_order(void **state)
{
    static const struct {
        const char *what;
        int epoch;
        const char *name;
        int64_t step;
        int upto, most;
        const char *want;
    } cases[] = {
        { "all of the first epoch", 0, "", 0, 1, 9,
          "1 accuracy 0 0.9;1 f1 0 0.1;1 loss 10 0.5;1 system/epoch_seconds 0 2;" },
        { "what is told and absent is told once", 1, "system/epoch_seconds", 0, 2, 9,
          "2 accuracy 0 0.95;2 loss 20 0.5;2 system/epoch_seconds 0 2;" },
        { "in the middle of an epoch", 1, "f1", 0, 1, 9, "1 loss 10 0.5;1 system/epoch_seconds 0 2;" },
        { "no more than is wanted", 0, "", 0, 2, 2, "1 accuracy 0 0.9;1 f1 0 0.1;" },
        { "nothing is left", 2, "system/epoch_seconds", 0, 9, 9, "" },
        { "not yet", 0, "", 0, 0, 9, "" },
    };
    struct fix *f = *state;
    add_epoch(f, 1, 0.9, 0.1);
    add_epoch(f, 2, 0.95, NAN); /* f1 was no number */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        const struct handed at = { .epoch = cases[i].epoch, .name = cases[i].name, .step = cases[i].step };
        assert_ok(f, store_handed_values(f->s, f->trial, &at, cases[i].upto, cases[i].most, put_value, &got, &f->e));
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].what, buf_text(&got), cases[i].want);
    }
}

static int put_decision(void *ctx, const struct store_decision *d)
{
    buf_printf(ctx, "%d %s;", (int)d->seq, d->kind);
    return 0;
}

static void test_decisions_are_those_of_one_trial(void **state)
{
    struct fix *f = *state;
    const struct store_decision all[] = { { .trial = 0, .kind = "begin" },
                                          { .trial = 1, .kind = "launch" },
                                          { .trial = 2, .kind = "launch" },
                                          { .trial = 1, .kind = "apply" } };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_ok(f, store_decision_add(f->s, f->study, &all[i], &f->e));
    static const struct {
        int trial, most;
        int64_t seq;
        const char *want;
    } cases[] = {
        { 1, 9, 0, "2 launch;4 apply;" }, { 1, 1, 0, "2 launch;" }, { 1, 9, 2, "4 apply;" }, { 0, 9, 0, "1 begin;" }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        assert_ok(f, store_handed_decisions(f->s, f->study, cases[i].trial, cases[i].seq, cases[i].most, put_decision,
                                            &got, &f->e));
        assert_string_equal(buf_text(&got), cases[i].want);
    }
}

static int put_number(void *ctx, int trial)
{
    buf_printf(ctx, "%d;", trial);
    return 0;
}

static void assert_open(struct fix *f, const char *target, const char *want)
{
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_handed_open(f->s, f->study, target, put_number, &got, &f->e));
    assert_string_equal(buf_text(&got), want);
}

static struct handed row_of(const struct fix *f, int trial, bool done)
{
    return (struct handed){ .study = f->study,
                            .target = "there",
                            .trial = trial,
                            .run_id = "r",
                            .status = "",
                            .done = done,
                            .joules = NAN,
                            .name = "loss",
                            .epoch = 3,
                            .step = 7,
                            .seq = 4 };
}

static void test_what_is_done_with_is_left_out_unless_it_runs_again(void **state)
{
    struct fix *f = *state;
    (void)add_trial(f, 2, "finished");
    (void)add_trial(f, 3, "waiting");
    (void)add_trial(f, 4, "failed");
    assert_open(f, "there", "1;2;4;");
    for (int trial = 1; trial <= 2; trial++) {
        const struct handed row = row_of(f, trial, true);
        assert_ok(f, store_handed_put(f->s, &row, &f->e));
    }
    assert_open(f, "there", "1;4;"); /* 1 runs */
    assert_open(f, "elsewhere", "1;2;4;");
}

static void test_how_far_it_is_comes_back_whatever_fails(void **state)
{
    struct fix *f = *state;
    const struct handed row = row_of(f, 1, false);
    struct handed got;
    assert_int_equal(store_handed_get(f->s, f->study, "there", 1, &got, &f->e), 0);
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_WRITE | FAULT_ALLOC, nth);
        rc = store_handed_put(f->s, &row, &f->e);
        (void)fault_disarm();
        int there = store_handed_get(f->s, f->study, "there", 1, &got, &f->e);
        assert_int_equal(there, rc == 0);
        if (there == 1)
            handed_done(&got);
    }
    rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = store_handed_get(f->s, f->study, "there", 1, &got, &f->e);
        (void)fault_disarm();
    }
    assert_string_equal(got.run_id, "r");
    assert_true(got.epoch == 3 && got.step == 7 && got.seq == 4 && isnan(got.joules) && strcmp(got.name, "loss") == 0);
    handed_done(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values_come_behind_the_cursor_in_its_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_decisions_are_those_of_one_trial, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_done_with_is_left_out_unless_it_runs_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_far_it_is_comes_back_whatever_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
