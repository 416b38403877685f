/* The tuner over simulated jobs in several memories: what is launched and relaunched, what is tried, and what that may cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "core/knowledge.h"
#include "tests/played.h"

enum { HOT = 4, COLD = 3 };

/* Seconds of a step under each memory and number of cores; 0: that cannot be had. In the first epoch of a launch `cold` times that, 0: as many. */
struct job {
    double step_s[COLD][HOT];
    double cold;
};

static const struct tuner_space ladder = {
    .n_hot = HOT, .n_cold = COLD, .cores = { 2, 4, 8, 16 }, .memory = { 4, 8, 16 }
};

/* Of one knob without an order. */
static const struct tuner_space three = {
    .n_hot = HOT, .n_cold = COLD, .cores = { 2, 4, 8, 16 }, .other = { 0, 1, 2 }
};

static bool can_be_had(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    const struct job *j = ((const struct played *)ctx)->what;
    (void)r;
    return j->step_s[s.cold][s.hot] > 0;
}

static double step_of(void *ctx, const struct sim_run *r)
{
    const struct job *j = ((const struct played *)ctx)->what;
    return j->step_s[r->at.cold][r->at.hot] * (r->epoch == r->first && j->cold > 0 ? j->cold : 1);
}

static struct played *begin(const struct tuner_space *space, const struct job *j, struct tuner_setting start,
                            double startup_s)
{
    static const struct sim_world world = { .has = can_be_had, .step_s = step_of, .unexplained = true };
    static struct played r;
    played_init(&r, space, &world, j);
    r.job.family_key = "family";
    r.job.start = start;
    r.startup_s = startup_s;
    return &r;
}

static void refuse_launch(struct played *r, struct tuner_setting at)
{
    played_tell(r, (struct tuner_event){ .kind = EV_FAILED, .setting = at, .infeasible = true, .unexplained = true });
}

/* --- rows: some trials of a job, after one of another batch if `relative` has any --- */

static const struct {
    const char *name;
    const struct tuner_space *space; /* NULL: a ladder */
    struct job relative, job;
    struct tuner_setting relative_start, start;
    double startup_s;
    int trials;
    struct tuner_setting want;
    int launches, failed; /* of the last trial */
} cases[] = {
    { .name = "cores that the largest memory refuses are hardly to be had in less",
      .job = { { { 2.4, 2, 1.2, 0 }, { 2.4, 2, 1.2, 0 }, { 2.4, 2, 1.2, 0 } }, 1 },
      .startup_s = 90,
      .trials = 1,
      .want = { 2, 2 },
      .launches = 1 },
    { .name = "… but where more of them train in it, it was not for want of memory",
      .job = { { { 0.5, 1, 2, 3 }, { 0.5, 1, 2, 3 }, { 0, 1, 2, 3 } }, 1 },
      .start = { 1, 0 },
      .startup_s = 90,
      .trials = 1,
      .want = { 0, 1 },
      .launches = 2 },
    { .name = "cores between others that are no better are against the odds",
      .job = { { { 2, 1, 0.9, 1.05 }, { 2, 1, 0.9, 1.05 }, { 2, 1, 0, 1.05 } }, 1 },
      .start = { 1, 0 },
      .startup_s = 20,
      .trials = 1,
      .want = { 1, 2 },
      .launches = 1 },
    { .name = "what was cut for a relative says how much there is to gain, at the least",
      .relative = { { { 15, 15, 15, 1 }, { 15, 15, 15, 1 }, { 15, 15, 15, 1 } }, 1 },
      .relative_start = { 3, 2 },
      .job = { { { 15, 15, 15, 1 }, { 15, 15, 15, 1 }, { 15, 15, 15, 0 } }, 1 },
      .startup_s = 100,
      .trials = 1,
      .want = { 3, 1 },
      .launches = 2 },
    { .name = "a first epoch is not taken for those that follow",
      .job = { { { 1, 0, 0, 0 }, { 1, 0, 0, 0 }, { 1, 0, 0, 0 } }, 3 },
      .startup_s = 100,
      .trials = 1,
      .want = { 0, 2 },
      .launches = 1 },
    { .name = "a larger memory is tried with the cores that are nearly as good",
      .job = { { { 1.5, 1, 1.05, 1.5 }, { 0, 0, 0, 0 }, { 0, 0, 0.5, 0.7 } }, 1 },
      .start = { 1, 0 },
      .startup_s = 20,
      .trials = 1,
      .want = { 2, 2 },
      .launches = 4,
      .failed = 2 },
    { .name = "a smaller memory than one that works is worth nothing",
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 1 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 2 },
      .startup_s = 1,
      .trials = 9,
      .want = { 3, 2 },
      .launches = 1 },
    { .name = "a launch that failed is charged: the next try has to wait",
      .job = { { { 2, 1.5, 1, 0 }, { 2, 1.5, 1, 0 }, { 2, 1.5, 1, 0 } }, 1 },
      .startup_s = 100,
      .trials = 2,
      .want = { 2, 2 },
      .launches = 2,
      .failed = 1 },
    { .name = "a choice without an order is no ladder: the first trial has what was written first",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 0.5 }, { 4, 3, 2, 0.5 } }, 1 },
      .start = { 3, 0 },
      .startup_s = 10,
      .trials = 1,
      .want = { 3, 0 },
      .launches = 1 },
    { .name = "… wherever that stands",
      .space = &three,
      .job = { { { 4, 3, 2, 0.5 }, { 4, 3, 2, 1 }, { 4, 3, 2, 0.5 } }, 1 },
      .start = { 3, 1 },
      .startup_s = 10,
      .trials = 1,
      .want = { 3, 1 },
      .launches = 1 },
    { .name = "… later ones compare others with it, one by one, where that costs little",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 1 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 2 },
      .startup_s = 10,
      .trials = 3,
      .want = { 3, 1 },
      .launches = 1 },
    { .name = "… and come back to it where they are no better",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 1 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 2 },
      .startup_s = 10,
      .trials = 4,
      .want = { 3, 2 },
      .launches = 1 },
    { .name = "… and keep one that is",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 0.9 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 0 },
      .startup_s = 10,
      .trials = 5,
      .want = { 3, 1 },
      .launches = 1 },
    { .name = "… but not where a launch costs more than that is worth",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 4, 3, 2, 0.9 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 0 },
      .startup_s = 500,
      .trials = 9,
      .want = { 3, 0 },
      .launches = 1 },
    { .name = "a choice that cannot be had gives way to the next one that was written",
      .space = &three,
      .job = { { { 4, 3, 2, 1 }, { 0 }, { 4, 3, 2, 1 } }, 1 },
      .start = { 3, 1 },
      .startup_s = 10,
      .trials = 1,
      .want = { 3, 0 },
      .launches = 2,
      .failed = 1 },
    { .name = "when the largest memory cannot be had it is the next smaller one",
      .job = { { { 1, 1.2, 1.4, 1.6 }, { 1, 1.2, 1.4, 1.6 }, { 0, 0, 0, 0 } }, 1 },
      .startup_s = 20,
      .trials = 1,
      .want = { 0, 1 },
      .launches = 2,
      .failed = 1 },
};

static void test_what_is_launched(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct played *r = begin(cases[i].space ? cases[i].space : &ladder, &cases[i].relative, cases[i].relative_start,
                                 cases[i].startup_s);
        if (cases[i].relative.cold > 0) {
            r->job.class_key = "relative";
            (void)played_trial(r);
            r->job.class_key = "class";
        }
        r->what = &cases[i].job;
        r->job.start = cases[i].start;
        for (int n = 0; n < cases[i].trials; n++)
            (void)played_trial(r);
        const struct sim_run *got = &r->run;
        if (got->at.hot != cases[i].want.hot || got->at.cold != cases[i].want.cold ||
            got->launches != cases[i].launches || got->failed != cases[i].failed)
            fail_msg("%s: got %d, %d in %d launches of which %d failed, want %d, %d in %d, %d\n%s", cases[i].name,
                     got->at.hot, got->at.cold, got->launches, got->failed, cases[i].want.hot, cases[i].want.cold,
                     cases[i].launches, cases[i].failed, r->story);
        played_done(r);
    }
}

/* --- the first launch of a job that differs in batch alone from one that is known --- */

static const struct {
    const char *name;
    struct job relative;
    struct tuner_setting relative_start, start, want;
} firsts[] = {
    { "less memory that was hardly better is not worth the risk: the default can be had",
      { { { 4, 3, 2, 0.995 }, { 4, 3, 2, 0.995 }, { 4, 3, 2, 1 } }, 1 },
      { 3, 2 },
      { 3, 2 },
      { 3, 2 } },
    { "… unless it saved a good deal",
      { { { 4, 3, 2, 0.7 }, { 4, 3, 2, 0.7 }, { 4, 3, 2, 1 } }, 1 },
      { 3, 2 },
      { 3, 2 },
      { 3, 0 } },
    { "more memory is launched with the fewest cores, the others are taken up when it runs",
      { { { 4, 3, 2, 1 }, { 4, 3, 2, 1 }, { 4, 3, 2, 1 } }, 1 },
      { 0, 0 },
      { 0, 0 },
      { 0, 2 } },
    { "… which are the relative's best ones where these are fewer",
      { { { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4 } }, 1 },
      { 3, 0 },
      { 3, 0 },
      { 0, 2 } },
};

static void test_what_a_relative_says_of_the_first_launch(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
        bool less = firsts[i].relative_start.cold >
                    0; /* then the relative has trained in the least memory, too: somebody asked for that */
        struct tuner_space space = ladder;
        space.memory_entered = less;
        struct played *r = begin(&space, &firsts[i].relative, firsts[i].relative_start, 100);
        r->job.class_key = "relative";
        r->job.start.cold = 0;
        if (less)
            (void)played_trial(r);
        r->job.start = firsts[i].relative_start;
        (void)played_trial(r);
        r->job.class_key = "class";
        r->job.start = firsts[i].start;
        struct tuner_setting at = played_ask(r);
        if (at.hot != firsts[i].want.hot || at.cold != firsts[i].want.cold)
            fail_msg("%s: got %d, %d\n%s", firsts[i].name, at.hot, at.cold, r->story);
        played_done(r);
    }
}

static void test_a_default_that_was_refused_is_not_preferred_to_less_memory(void **state)
{
    (void)state;
    struct tuner_setting start = firsts[0].start;
    struct played *r = begin(&ladder, &firsts[0].relative, start, 100);
    r->job.class_key = "relative";
    for (int n = 0; n < 4; n++)
        (void)played_trial(r);
    r->job.class_key = "class";
    struct tuner_setting at = played_ask(r);
    assert_true(at.hot == start.hot && at.cold == start.cold);
    refuse_launch(r, at);
    at = played_ask(r);
    assert_true(at.hot == start.hot && at.cold < start.cold);
    played_done(r);
}

static void test_only_one_memory_below_the_largest_is_tried_for_a_stranger(void **state)
{
    (void)state;
    struct played *r = begin(&ladder, NULL, (struct tuner_setting){ 1, 0 }, 100);
    for (int cold = COLD - 1; cold >= 0; cold--) {
        struct tuner_setting at = played_ask(r);
        assert_true(at.hot == 1 && at.cold == cold);
        refuse_launch(r, at);
    }
    played_done(r);
}

/* --- what earlier studies knew --- */

static const struct {
    const char *name;
    const struct tuner_space *space;
    bool compared; /* with the start, a fifth faster */
    struct tuner_setting best, start, want;
} recalled[] = {
    { "what was called the best and was never compared is not launched", &three, false, { 3, 1 }, { 3, 0 }, { 3, 0 } },
    { "… wherever the start stands", &three, false, { 3, 0 }, { 3, 2 }, { 3, 2 } },
    { "… but what was compared is", &three, true, { 3, 1 }, { 3, 0 }, { 3, 1 } },
    { "memory is known by itself", &ladder, false, { 3, 2 }, { 3, 0 }, { 3, 2 } },
};

static void test_what_was_recalled_is_launched(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(recalled); i++) {
        struct tuner_actions acts;
        struct err e;
        struct played *r = begin(recalled[i].space, NULL, recalled[i].start, 10);
        struct tuner_event ev = { .kind = EV_RECALL,
                                  .class_key = "class",
                                  .family_key = "family",
                                  .setting = recalled[i].best,
                                  .over = recalled[i].best,
                                  .best = true,
                                  .trials = 1 };
        assert_int_equal(tuner_step(r->t, &ev, &acts, &e), 0);
        ev.over = recalled[i].start;
        ev.ratio = -0.2;
        assert_int_equal(recalled[i].compared ? tuner_step(r->t, &ev, &acts, &e) : 0, 0);
        struct tuner_setting at = played_ask(r);
        if (at.hot != recalled[i].want.hot || at.cold != recalled[i].want.cold)
            fail_msg("%s: got %d, %d\n%s", recalled[i].name, at.hot, at.cold, r->story);
        played_done(r);
    }
}

static void test_nothing_is_learnt_of_what_was_not_compared(void **state)
{
    (void)state;
    struct job j = { { { 1, 0, 0, 0 }, { 1, 0, 0, 0 }, { 1, 0, 0, 0 } }, 1 };
    struct tuner_space one = three;
    one.n_hot = 1;
    struct played *r = begin(&one, &j, (struct tuner_setting){ 0, 1 }, 1000);
    (void)played_trial(r);
    assert_null(strstr(r->story, "the best of its class"));
    assert_false(knowledge_compared(tuner_knowledge(r->t)->classes[0]));
    played_done(r);
    r = begin(&one, &j, (struct tuner_setting){ 0, 1 }, 1);
    for (int n = 0; n < 3; n++)
        (void)played_trial(r);
    assert_non_null(strstr(r->story, "the best of its class"));
    assert_int_equal(tuner_knowledge(r->t)->classes[0]->best.cold, 1); /* of equals what was written first */
    played_done(r);
}

/* --- what classes that differ in batch alone could not have --- */

static void refuse_for(struct played *r, const char *class_key, struct tuner_setting at)
{
    r->job.class_key = class_key;
    refuse_launch(r, at);
    r->job.class_key = "class";
}

static void test_what_relatives_could_not_have_is_evidence(void **state)
{
    (void)state;
    struct tuner_setting start = { 3, 0 }, large = { 3, 2 };
    struct tuner_space space = ladder;
    struct job trains = { { { 4, 3, 2, 1 }, { 4, 3, 2, 1 }, { 4, 3, 2, 1 } }, 1 };
    struct played *r = begin(&space, &trains, start, 10);
    refuse_for(r, "a", large);
    assert_int_equal(played_ask(r).cold, 2); /* one may have failed for any reason */
    refuse_for(r, "b", large);
    assert_int_equal(played_ask(r).cold, 1);
    played_done(r);
    space.memory_entered = true;
    r = begin(&space, &trains, start, 10);
    refuse_for(r, "a", start);
    assert_true(played_ask(r).cold > 0);
    played_done(r);
    r = begin(&space, &trains, start, 10); /* one that trained in it says more */
    r->job.class_key = "b";
    (void)played_trial(r);
    refuse_for(r, "a", start);
    assert_int_equal(played_ask(r).cold, 0);
    played_done(r);
}

static void test_a_memory_that_was_entered_is_what_a_stranger_begins_with(void **state)
{
    (void)state;
    struct tuner_space space = ladder;
    for (int entered = 0; entered < 2; entered++) {
        space.memory_entered = entered;
        struct played *r = begin(&space, NULL, (struct tuner_setting){ 1, 0 }, 10);
        assert_int_equal(played_ask(r).cold, entered ? 0 : 2);
        played_done(r);
    }
}

/* --- what tries have cost --- */

static const struct {
    const char *name;
    double step_s; /* under the memory that is tried; 1 under the one that is known */
    double least, most;
} charges[] = {
    { "as good as the other", 1, 0, 0 },
    { "better", 0.9, 0, 0 },
    { "a little worse: what the trial took longer", 1.05, 45, 55 },
    { "much worse: the relaunch", 2, 20, 60 },
};

static void test_a_try_is_charged_with_what_it_cost(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(charges); i++) {
        double s = charges[i].step_s;
        struct job j = { { { 4 * s, 3 * s, 2 * s, s }, { 0 }, { 4, 3, 2, 1 } }, 1 };
        struct played *r = begin(&three, &j, (struct tuner_setting){ 3, 2 }, 20);
        for (int n = 0; n < 2; n++)
            (void)played_trial(r);
        assert_non_null(strstr(r->story, "launch 3, 0: worth a try"));
        double spent = tuner_knowledge(r->t)->classes[0]->spent_s;
        if (spent < charges[i].least || spent > charges[i].most)
            fail_msg("%s: charged %.1f s\n%s", charges[i].name, spent, r->story);
        played_done(r);
    }
}

/* --- which cores are measured, and when --- */

static void test_the_far_end_is_measured_first_then_what_is_near(void **state)
{
    (void)state;
    struct job j = { { { 0 }, { 0 }, { 4, 1.3, 1.2, 1 } }, 1 };
    struct played *r = begin(&ladder, &j, (struct tuner_setting){ 0, 2 }, 10);
    (void)played_trial(r);
    const char *far = strstr(r->story, "probe 1 of 16"), *near = strstr(r->story, "probe 1 of 8"),
               *last = strstr(r->story, "probe 1 of 4");
    if (!far || !near || !last || far > near || near > last)
        fail_msg("%s", r->story);
    played_done(r);
}

static void test_what_was_a_third_slower_in_the_first_epoch_is_looked_at_again(void **state)
{
    (void)state;
    struct job j = { { { 0 }, { 0 }, { 1.3, 1.1, 1, 0 } }, 1 };
    struct played *r = begin(&ladder, &j, (struct tuner_setting){ 2, 2 }, 10);
    played_begin(r);
    (void)played_epoch(r);
    const char *second = r->story + r->len;
    (void)played_epoch(r);
    if (!strstr(second, "of 4 cores") || !strstr(second, "of 2 cores"))
        fail_msg("%s", r->story);
    played_done(r);
}

static void test_what_a_trial_had_no_time_to_compare_the_next_one_does(void **state)
{
    (void)state;
    struct job j = { { { 0 }, { 0 }, { 4, 3, 1.1, 1 } }, 1 };
    struct played *r = begin(&ladder, &j, (struct tuner_setting){ 0, 2 }, 10);
    played_begin(r);
    while (r->run.at.hot == 0)
        played_step(r);
    played_end(r); /* while its first candidate is measured */
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 3);
    const char *once = strstr(r->story, "probe 1 of 8");
    assert_non_null(once);
    assert_non_null(strstr(once + 1, "probe 1 of 8")); /* confirmed in its second epoch */
    played_done(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_launched),
        cmocka_unit_test(test_what_a_relative_says_of_the_first_launch),
        cmocka_unit_test(test_a_default_that_was_refused_is_not_preferred_to_less_memory),
        cmocka_unit_test(test_only_one_memory_below_the_largest_is_tried_for_a_stranger),
        cmocka_unit_test(test_what_was_recalled_is_launched),
        cmocka_unit_test(test_nothing_is_learnt_of_what_was_not_compared),
        cmocka_unit_test(test_what_relatives_could_not_have_is_evidence),
        cmocka_unit_test(test_a_memory_that_was_entered_is_what_a_stranger_begins_with),
        cmocka_unit_test(test_a_try_is_charged_with_what_it_cost),
        cmocka_unit_test(test_the_far_end_is_measured_first_then_what_is_near),
        cmocka_unit_test(test_what_was_a_third_slower_in_the_first_epoch_is_looked_at_again),
        cmocka_unit_test(test_what_a_trial_had_no_time_to_compare_the_next_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
