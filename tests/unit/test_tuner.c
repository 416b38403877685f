/* The tuner over simulated jobs: what it settles on, what it pays, and that it does the same again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "core/stats.h"
#include "core/tuner.h"
#include "core/window.h"
#include "tests/fault.h"

enum { STEPS = 100, HOT = 3 };

static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

/* A job whose iteration takes step_s[hot] seconds; in its first epoch `cold` times that. */
struct job {
    double step_s[HOT];
    double cold;
    double noise; /* amplitude of a repeating pattern */
    int refused;  /* a hot setting that cannot be had; -1: none */
};

struct run {
    struct tuner *t;
    struct tuner_setting at;
    double now_s, wake_s;
    int settles, applies;
    char story[65536]; /* every action, to be compared */
    size_t len;
};

static struct tuner *new_tuner(void)
{
    struct tuner_space space = { .n_hot = HOT, .n_cold = 2, .cores = { 4, 8, 16 }, .memory = { 4, 8 } };
    return tuner_new(&space, &cfg);
}

static void feed(struct run *r, const struct job *j, struct tuner_event ev)
{
    struct tuner_actions acts;
    struct err e;
    ev.trial = 1;
    ev.t_s = r->now_s;
    if (tuner_step(r->t, &ev, &acts, &e) < 0)
        fail_msg("%s", e.text);
    r->wake_s = INFINITY;
    for (size_t i = 0; i < acts.n; i++) {
        const struct tuner_action *a = &acts.list[i];
        r->len += (size_t)snprintf(r->story + r->len, sizeof r->story - r->len, "%.3f %d %d %s\n", a->t_s, a->kind,
                                   a->setting.hot, a->reason);
        assert_true(r->len < sizeof r->story);
        r->settles += a->kind == ACT_SETTLE;
        if (a->kind == ACT_WAKE)
            r->wake_s = a->t_s;
        if (a->kind != ACT_APPLY)
            continue;
        r->applies++;
        if (a->setting.hot == j->refused) {
            feed(r, j, (struct tuner_event){ .kind = EV_FAILED, .setting = a->setting, .infeasible = true });
            return;
        }
        r->at = a->setting;
    }
}

static double step_of(const struct job *j, int hot, int epoch, int i)
{
    double wave = 1.0 + j->noise * ((i * 7) % 11 - 5) / 5.0;
    return j->step_s[hot] * (epoch == 1 ? j->cold : 1.0) * wave;
}

static void run_iteration(struct run *r, const struct job *j, int epoch, int i)
{
    double begin = r->now_s, left = 1.0;
    for (;;) {
        double whole = step_of(j, r->at.hot, epoch, i), end = r->now_s + left * whole;
        if (r->wake_s >= end) {
            r->now_s = end;
            feed(r, j,
                 (struct tuner_event){ .kind = EV_ITERATION,
                                       .epoch = epoch,
                                       .seconds = end - begin,
                                       .records = 1,
                                       .epoch_records = STEPS });
            return;
        }
        double step = r->wake_s > r->now_s ? r->wake_s - r->now_s : 0;
        left -= step / whole;
        r->now_s += step;
        feed(r, j, (struct tuner_event){ .kind = EV_TICK });
    }
}

/* One trial of ten epochs; its seconds. */
static double run_trial(struct run *r, const struct job *j, struct tuner_setting start)
{
    char reason[TUNER_REASON_MAX];
    struct err e;
    double begin = r->now_s;
    assert_int_equal(tuner_launch(r->t, "class", NULL, start, &r->at, reason, &e), 0);
    feed(r, j, (struct tuner_event){ .kind = EV_TRIAL_STARTED, .class_key = "class", .setting = r->at, .epochs = 10 });
    for (int epoch = 1; epoch <= 10; epoch++) {
        double from = r->now_s;
        for (int i = 0; i < STEPS; i++)
            run_iteration(r, j, epoch, i);
        feed(r, j,
             (struct tuner_event){ .kind = EV_EPOCH, .epoch = epoch, .seconds = r->now_s - from, .records = STEPS });
    }
    struct tuner_setting at = r->at;
    assert_true(tuner_settled(r->t, 1));
    feed(r, j, (struct tuner_event){ .kind = EV_TRIAL_ENDED });
    r->at = at;
    return r->now_s - begin;
}

static const struct {
    const char *name;
    struct job job;
    int start, want;
    double most; /* seconds over those of the best setting */
} cases[] = {
    { "the best is the largest", { { 4, 2, 1 }, 1, 0, -1 }, 0, 2, 1.03 },
    { "the best is where it began", { { 1, 2, 4 }, 1, 0, -1 }, 0, 0, 1.03 },
    { "the best lies in the middle", { { 2, 1, 1.5 }, 1, 0, -1 }, 0, 1, 1.03 },
    { "a cold first epoch changes nothing", { { 4, 2, 1 }, 3, 0, -1 }, 0, 2, 1.04 },
    { "a candidate 15 times slower is cut", { { 15, 1, 1.2 }, 1, 0, -1 }, 1, 1, 1.03 },
    { "of equal settings the cheaper one wins", { { 1, 1, 1 }, 1, 0, -1 }, 2, 0, 1.01 },
    { "noise does not hide 10 %", { { 1.3, 1, 1.1 }, 1, 0.03, -1 }, 0, 1, 1.05 },
    { "what is refused is not asked for again", { { 2, 1.5, 1 }, 1, 0, 2 }, 0, 1, 1.04 },
};

static void test_what_it_settles_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct run r;
        r = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
        double took = run_trial(&r, &cases[i].job, (struct tuner_setting){ cases[i].start, 0 });
        double best = (9 + cases[i].job.cold) * STEPS * cases[i].job.step_s[cases[i].want];
        if (r.at.hot != cases[i].want || took > cases[i].most * best)
            fail_msg("%s: got hot %d in %.1f s (%.3f of the best), want %d\n%s", cases[i].name, r.at.hot, took,
                     took / best, cases[i].want, r.story);
        tuner_free(r.t);
    }
}

static void test_a_known_class_starts_on_its_best(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1 };
    r = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    int applies = r.applies;
    double took =
        run_trial(&r, &j, (struct tuner_setting){ 0, 0 }); /* explores the larger memory, with what was near */
    assert_true(took < 1.01 * 1000);
    took = run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    assert_true(fabs(took - 1000) < 1e-6);
    assert_true(r.applies - applies <= 2);
    tuner_free(r.t);
}

static void test_the_same_events_give_the_same_actions(void **state)
{
    (void)state;
    static struct run a, b;
    struct job j = { { 1.3, 1, 1.1 }, 2, 0.05, -1 };
    a = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    b = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    (void)run_trial(&a, &j, (struct tuner_setting){ 0, 0 });
    (void)run_trial(&b, &j, (struct tuner_setting){ 0, 0 });
    assert_string_equal(a.story, b.story);
    tuner_free(a.t);
    tuner_free(b.t);
}

static void test_impossible_events_are_told(void **state)
{
    (void)state;
    struct tuner *t = new_tuner();
    struct tuner_actions acts;
    struct err e;
    struct tuner_event ev = { .kind = EV_ITERATION, .trial = 9 };
    assert_int_equal(tuner_step(t, &ev, &acts, &e), -EPROTO);
    ev = (struct tuner_event){ .kind = EV_TRIAL_STARTED, .trial = 9, .class_key = "c", .epochs = 2 };
    assert_int_equal(tuner_step(t, &ev, &acts, &e), 0);
    assert_int_equal(tuner_step(t, &ev, &acts, &e), -EPROTO);
    tuner_free(t);
}

static void test_memory_that_is_out_is_told(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 32);
        struct tuner_actions acts;
        struct err e;
        fault_arm(FAULT_ALLOC, nth);
        struct tuner *t = new_tuner();
        struct tuner_event ev = {
            .kind = EV_TRIAL_STARTED, .trial = 1, .class_key = "c", .family_key = "f", .epochs = 2
        };
        rc = t ? tuner_step(t, &ev, &acts, &e) : -ENOMEM;
        (void)fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        tuner_free(t);
    }
}

static void test_a_window_leaves_out_the_change(void **state)
{
    (void)state;
    struct window w;
    window_begin(&w, 10, true);
    assert_false(window_add(&w, 10.5, 0.5, 1, 3)); /* the iteration of the change */
    assert_false(window_add(&w, 11.2, 0.7, 1, 3)); /* began within the first second */
    assert_false(window_add(&w, 12.7, 1.5, 1, 3));
    assert_true(window_add(&w, 14.2, 1.5, 1, 3));
    assert_true(fabs(window_value(&w) - 1.5) < 1e-12);
    window_begin(&w, 20, false);
    assert_false(window_add(&w, 25, 5, 1, 3)); /* long enough, but one iteration is none */
    assert_true(window_add(&w, 30, 5, 1, 3));
    window_break(&w);
    assert_true(isnan(window_value(&w)));
}

static void test_statistics(void **state)
{
    (void)state;
    double x[] = { 3, 1, 2 }, y[] = { 4, 1, 3, 2 };
    assert_true(stats_median(x, 3) == 2 && stats_median(y, 4) == 2.5);
    assert_true(x[0] == 3); /* left as it was */
    assert_true(stats_mean(y, 4) == 2.5 && stats_sd(x, 3) == 1 && stats_sd(x, 1) == 0);
    for (size_t df = 1; df < 200; df++)
        assert_true(stats_t90(df + 1) < stats_t90(df) && stats_t90(df) > 1.645);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_settles_on),
        cmocka_unit_test(test_a_known_class_starts_on_its_best),
        cmocka_unit_test(test_the_same_events_give_the_same_actions),
        cmocka_unit_test(test_impossible_events_are_told),
        cmocka_unit_test(test_memory_that_is_out_is_told),
        cmocka_unit_test(test_a_window_leaves_out_the_change),
        cmocka_unit_test(test_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
