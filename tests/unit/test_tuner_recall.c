/* The tuner with what earlier studies knew, and with profiles: what is used at once, what is checked, what is taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "core/knowledge.h"
#include "core/policy.h"
#include "core/rng.h"
#include "core/tuner.h"
#include "tests/fault.h"
#include "tests/played.h"

enum { HOT = 3, COLD = 2, STEPS = 100, EPOCHS = 10 };

static const struct tuner_space space = { .n_hot = HOT, .n_cold = COLD, .cores = { 4, 8, 16 }, .memory = { 4, 8 } };

/* A job whose step takes step_s[hot] seconds, in its first epoch `cold` times that, and `noise` (an amplitude) more or less. */
struct job {
    double step_s[HOT];
    double cold, noise;
    int refused; /* a hot setting that it cannot change to; -1: none */
};

/* What is answered to ACT_PROFILE. */
struct answer {
    bool given;
    enum tuner_verdict verdict;
    const char *key;
    int after; /* steps */
};

/* Trials 1, 2, … of such a job, which start at once, so that nothing is relaunched. */
struct recalled {
    struct played p;
    struct job job;
    double warms; /* so many times its time more when it begins, which it loses within seconds */
    struct answer answer;
    struct rng rng;
    int answer_in;     /* steps */
    double profiled_s; /* when that was asked for */
};

static bool can_be_had(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    const struct recalled *x = ctx;
    return !r->training || s.hot != x->job.refused;
}

static double step_of(void *ctx, const struct sim_run *r)
{
    const struct recalled *x = ctx;
    double warm = 1.0 + x->warms * exp(-(r->stride_s - r->began_s) / 4);
    return x->job.step_s[r->at.hot] * (r->epoch == 1 ? x->job.cold : 1.0) * warm;
}

static double noise(void *ctx, struct sim_run *r, int steps)
{
    struct recalled *x = ctx;
    (void)r, (void)steps;
    return 1.0 + x->job.noise * (2 * rng_unit(&x->rng) - 1);
}

static bool verdict(void *ctx, const struct sim_run *r, struct tuner_event *out)
{
    struct recalled *x = ctx;
    if (x->profiled_s != r->profile_to_s)
        x->answer_in = x->answer.after;
    x->profiled_s = r->profile_to_s;
    if (!x->answer.given || x->answer_in-- > 0)
        return false;
    out->verdict = x->answer.verdict;
    out->class_key = x->answer.key;
    return true;
}

static struct recalled *new_run(struct job job, int start_hot)
{
    static const struct sim_world world = { .has = can_be_had, .step_s = step_of, .noise = noise, .verdict = verdict };
    static struct recalled x;
    x = (struct recalled){ .job = job, .rng = rng_seeded(1) };
    played_init(&x.p, &space, &world, NULL);
    x.p.job.start.hot = start_hot;
    x.p.job.trial = 0;
    return &x;
}

static void begin_trial(struct recalled *x)
{
    x->p.job.trial++;
    played_begin(&x->p);
}

static double run_trial(struct recalled *x)
{
    x->p.job.trial++;
    return played_trial(&x->p);
}

static void tell_recall(struct recalled *r, struct tuner_event ev)
{
    struct tuner_actions acts;
    struct err e;
    ev.kind = EV_RECALL;
    if (tuner_step(r->p.t, &ev, &acts, &e) < 0)
        fail_msg("%s", e.text);
}

static void recall(struct recalled *r, const char *key, struct tuner_setting s, struct tuner_setting over, double ratio,
                   bool best)
{
    tell_recall(r, (struct tuner_event){
                       .class_key = key, .setting = s, .over = over, .ratio = ratio, .best = best, .trials = 7 });
}

/* All hot settings under one cold one: what their steps take in the model. */
static void recall_steps(struct recalled *r, const char *key, const double step_s[HOT], int cold)
{
    int best = 0;
    for (int h = 1; h < HOT; h++)
        best = step_s[h] < step_s[best] ? h : best;
    for (int h = 0; h < HOT; h++)
        recall(r, key, (struct tuner_setting){ h, cold }, (struct tuner_setting){ best, cold },
               log(step_s[h] / step_s[best]), h == best);
}

static void done(struct recalled *r)
{
    played_done(&r->p);
}

/* --- the canary --- */

static const struct {
    const char *name;
    struct job job;
    int start;                 /* the default */
    double recalled[HOT];      /* steps as they were known */
    int want, confirm, weaken; /* where it ends, what was told */
    double most;               /* over the time of the best setting */
} canaries[] = {
    { "what is better than the default is confirmed", { { 4, 2, 1 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 2, 1, 0, 1.03 },
    { "a default that is much slower is cut", { { 15, 1, 1.2 }, 1, 0, -1 }, 0, { 15, 1, 1.2 }, 1, 1, 0, 1.02 },
    { "a cold first epoch changes nothing", { { 4, 2, 1 }, 2, 0, -1 }, 0, { 4, 2, 1 }, 2, 1, 0, 1.03 },
    { "what is as good as the default is confirmed", { { 1, 1, 1 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 2, 1, 0, 1.001 },
    { "half a percent is noise", { { 1, 1, 1.005 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 2, 1, 0, 1.006 },
    { "what is far worse than the default is dropped", { { 1, 2, 4 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 0, 0, 1, 1.05 },
    { "what is 6 % worse is dropped", { { 1, 1.2, 1.06 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 0, 0, 1, 1.02 },
    { "once dropped, all is probed", { { 2, 1, 4 }, 1, 0, -1 }, 0, { 4, 2, 1 }, 1, 0, 1, 1.03 },
    { "noise does not reject what is better", { { 1.1, 1.2, 1 }, 1, 0.05, -1 }, 0, { 2, 2, 1 }, 2, 1, 0, 1.01 },
    { "noise does not hide what is a third worse", { { 1, 1.5, 1.33 }, 1, 0.05, -1 }, 0, { 2, 2, 1 }, 0, 0, 1, 1.04 },
    { "a default that cannot be had is no canary", { { 2, 1.5, 1 }, 1, 0, 0 }, 0, { 4, 2, 1 }, 2, 0, 0, 1.001 },
    { "the default itself needs no canary", { { 1, 1.5, 2 }, 1, 0, -1 }, 0, { 1, 2, 3 }, 0, 0, 0, 1.0001 },
};

static void test_the_canary(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(canaries); i++) {
        struct recalled *r = new_run(canaries[i].job, canaries[i].start);
        recall_steps(r, "class", canaries[i].recalled, 0);
        double took = run_trial(r), least = INFINITY;
        for (int h = 0; h < HOT; h++)
            least = fmin(least, canaries[i].job.step_s[h]);
        double over = took / (least * STEPS * (EPOCHS - 1 + canaries[i].job.cold));
        if (r->p.run.at.hot != canaries[i].want || r->p.kinds[ACT_CONFIRM] != canaries[i].confirm ||
            r->p.kinds[ACT_WEAKEN] != canaries[i].weaken || over > canaries[i].most)
            fail_msg("%s: got hot %d, confirmed %d, weakened %d, %.4f of the best\n%s", canaries[i].name,
                     r->p.run.at.hot, r->p.kinds[ACT_CONFIRM], r->p.kinds[ACT_WEAKEN], over, r->p.story);
        done(r);
    }
}

/* While trials wait the canary does not wait until the job is warm, and the default is looked at later than what was recalled. */
static void test_a_job_that_warms_up_keeps_what_was_recalled(void **state)
{
    (void)state;
    static const double step_s[HOT] = { 0.3, 0.2, 0.2 };
    struct recalled *r = new_run((struct job){ { 0.3, 0.2, 0.2 }, 1, 0, -1 }, 1);
    r->warms = 3;
    played_load(&r->p, 1);
    recall_steps(r, "class", step_s, 0);
    begin_trial(r);
    assert_int_equal(r->p.run.at.hot, 0);
    (void)played_epoch(&r->p);
    if (r->p.kinds[ACT_WEAKEN] != 0 || r->p.kinds[ACT_CONFIRM] != 1 || r->p.run.at.hot != 0)
        fail_msg("%s", r->p.story);
    done(r);
}

static const struct {
    const char *name;
    int waiting;
    double own_s, default_s; /* a step under what was recalled, and under the default, which has twice the cores */
    double least, most;      /* seconds until the canary is judged */
    int holds;
} short_canaries[] = {
    { "with nobody waiting its windows are whole", 0, 0.1, 0.13, 10, 15, 1 },
    { "while trials wait short ones will do", 1, 0.13, 0.1, 4.5, 7, 1 },
    { "what is near is measured in whole ones", 1, 0.13, 0.06, 10, 16, 0 }, /* 8 % better in core-seconds */
};

/* Nobody is packed beside a trial that compares. */
static void test_the_canary_is_short_while_trials_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(short_canaries); i++) {
        const double own_s = short_canaries[i].own_s,
                     then_s[HOT] = { own_s, own_s * (short_canaries[i].waiting ? 0.8 : 1.3), 0.2 };
        struct recalled *r = new_run((struct job){ { own_s, short_canaries[i].default_s, 0.2 }, 1, 0, -1 }, 1);
        if (short_canaries[i].waiting)
            played_load(&r->p, short_canaries[i].waiting);
        recall_steps(r, "class", then_s, 0);
        begin_trial(r);
        double began_s = r->p.run.now_s;
        for (int k = 0; k < 300 && r->p.kinds[ACT_CONFIRM] + r->p.kinds[ACT_WEAKEN] == 0; k++)
            played_step(&r->p);
        double took = r->p.run.now_s - began_s;
        if (r->p.kinds[ACT_CONFIRM] != short_canaries[i].holds || took < short_canaries[i].least ||
            took > short_canaries[i].most)
            fail_msg("%s: after %.1f s\n%s", short_canaries[i].name, took, r->p.story);
        done(r);
    }
}

static void test_a_recalled_class_is_launched_with_what_was_best(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 1, 2 }, 1); /* the best of the larger memory, and of all */
    struct tuner_setting at = played_ask(&r->p);
    assert_true(at.hot == 1 && at.cold == 1);
    assert_non_null(strstr(r->p.story, "known from earlier studies"));
    r->p.n_hot = 1;
    assert_int_equal(played_ask(&r->p).hot, 0); /* the best of what it may have */
    r->p.n_hot = 0;
    r->p.packed = true; /* memory has a price, and was chosen all the same */
    assert_int_equal(played_ask(&r->p).cold, 1);
    done(r);
}

/* Earlier studies have looked; what they did not compare is not looked for now. */
static void test_what_was_not_recalled_is_not_probed(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 0.5, 1 }, 1, 0, -1 }, 0);
    recall(r, "class", (struct tuner_setting){ 2, 0 }, (struct tuner_setting){ 2, 0 }, 0, true);
    recall(r, "class", (struct tuner_setting){ 0, 0 }, (struct tuner_setting){ 2, 0 }, log(4), false);
    for (int h = 0; h < HOT; h++) /* so that no launch tries the other memory */
        tell_recall(r, (struct tuner_event){ .class_key = "class", .setting = { h, 1 }, .infeasible = true });
    for (int trial = 0; trial < 2; trial++)
        (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_CONFIRM], 1);
    assert_int_equal(r->p.run.at.hot, 2);
    done(r);
}

static void test_how_memories_compare_is_recalled_too(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 1);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    recall(r, "class", (struct tuner_setting){ 2, 0 }, (struct tuner_setting){ 2, 1 }, log(1.3), false);
    assert_int_equal(played_ask(&r->p).cold, 1);
    const struct class_entry *c = knowledge_find(tuner_knowledge(r->p.t), "class");
    assert_true(fabs(knowledge_gap(c, (struct tuner_setting){ 0, 0 }, (struct tuner_setting){ 1, 1 }) - log(2.6)) <
                1e-9);
    recall(r, "class", (struct tuner_setting){ 2, 0 }, (struct tuner_setting){ 2, 1 }, 0,
           false); /* as good: less is enough */
    assert_int_equal(played_ask(&r->p).cold, 0);
    done(r);
}

static void test_a_recalled_bound_is_not_tried(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    tell_recall(r, (struct tuner_event){ .class_key = "class", .setting = { 2, 0 }, .infeasible = true });
    assert_int_equal(played_ask(&r->p).hot, 1);
    done(r);
}

static void test_one_canary_per_study(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_CONFIRM], 1);
    assert_non_null(strstr(r->p.story, "recognised: known from earlier studies; no worse than the default"));
    int applies = r->p.kinds[ACT_APPLY];
    double took = run_trial(r);
    assert_true(fabs(took - STEPS * EPOCHS) < 1e-6);
    assert_int_equal(r->p.kinds[ACT_APPLY], applies);
    assert_int_equal(r->p.kinds[ACT_CONFIRM], 1);
    done(r);
}

static const struct {
    const char *name;
    bool packed;
    int n_hot, start;
    const char *reason;
} settles[] = {
    { "packed", true, 0, 0, "recognised: known from earlier studies; it is not alone" },
    { "with one setting alone", false, 1, 0, "recognised: known from earlier studies; there are no other cores" },
    { "on the default", false, 0, 2, "recognised: known from earlier studies; that is the default" },
};

static void test_without_a_canary_it_settles_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(settles); i++) {
        struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, settles[i].start);
        recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
        r->p.packed = settles[i].packed;
        r->p.n_hot = settles[i].n_hot;
        begin_trial(r);
        if (!tuner_settled(r->p.t, 1) || !strstr(r->p.story, settles[i].reason) || r->p.kinds[ACT_APPLY])
            fail_msg("%s:\n%s", settles[i].name, r->p.story);
        done(r);
    }
}

static void test_a_packed_trial_leaves_the_canary_to_the_next(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 1, 2, 4 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    r->p.packed = true;
    (void)run_trial(r);
    assert_int_equal(r->p.run.at.hot, 2);
    assert_int_equal(r->p.kinds[ACT_WEAKEN], 0);
    r->p.packed = false;
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_WEAKEN], 1);
    assert_int_equal(r->p.run.at.hot, 0);
    done(r);
}

/* Nobody knows how much better the best is than the few cores it had beside others; but that it is. */
static void test_a_packed_trial_that_is_left_alone_takes_what_was_best(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 1);
    recall(r, "class", (struct tuner_setting){ 2, 0 }, (struct tuner_setting){ 2, 0 }, 0, true);
    r->p.packed = true;
    r->p.n_hot = 1;
    begin_trial(r);
    (void)played_epoch(&r->p);
    assert_int_equal(r->p.run.at.hot, 0);
    played_tell(&r->p, (struct tuner_event){ .kind = EV_LOAD, .n_hot = HOT, .alone = true });
    if (r->p.run.at.hot != 2)
        fail_msg("%s", r->p.story);
    done(r);
}

static void test_a_trial_that_is_lost_leaves_the_canary_to_the_next(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 1.4, 1.2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    begin_trial(r);
    for (int i = 0; i < 8; i++)
        played_step(&r->p);
    assert_int_equal(r->p.run.at.hot, 0); /* in the canary */
    played_tell(&r->p, (struct tuner_event){ .kind = EV_TRIAL_LOST });
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_CONFIRM], 1);
    assert_int_equal(r->p.run.at.hot, 2);
    done(r);
}

static void test_two_trials_do_one_canary(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    begin_trial(r);
    begin_trial(r);
    assert_true(!tuner_settled(r->p.t, 1) && tuner_settled(r->p.t, 2));
    assert_non_null(strstr(r->p.story, "another trial compares it"));
    done(r);
}

static void test_company_ends_the_canary(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 1.4, 1.2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    begin_trial(r);
    for (int i = 0; i < 8; i++)
        played_step(&r->p);
    assert_int_equal(r->p.run.at.hot, 0);
    played_tell(&r->p, (struct tuner_event){ .kind = EV_LOAD, .alone = false });
    assert_true(tuner_settled(r->p.t, 1) && r->p.run.at.hot == 2);
    assert_int_equal(r->p.kinds[ACT_CONFIRM] + r->p.kinds[ACT_WEAKEN], 0);
    done(r);
}

static void test_a_break_voids_the_window_of_the_canary(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 1.4, 1.2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    begin_trial(r);
    for (int i = 0; i < 8; i++)
        played_step(&r->p);
    assert_int_equal(r->p.run.at.hot, 0);
    played_tell(&r->p, (struct tuner_event){ .kind = EV_BREAK });
    assert_int_equal(r->p.run.at.hot, 2);
    for (int epoch = 1; epoch <= 2; epoch++)
        (void)played_epoch(&r->p);
    assert_int_equal(r->p.kinds[ACT_CONFIRM], 1);
    assert_true(tuner_settled(r->p.t, 1));
    done(r);
}

static void test_a_stored_setting_that_cannot_be_launched_is_forgotten(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 1, 2, 4 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 1);
    tell_recall(r, (struct tuner_event){ .class_key = "class", .setting = { 0, 1 }, .infeasible = true });
    struct tuner_setting at = played_ask(&r->p);
    assert_true(at.hot == 2 && at.cold == 1);
    r->p.job.trial = 1;
    played_tell(&r->p, (struct tuner_event){ .kind = EV_FAILED, .setting = at, .infeasible = true });
    assert_int_equal(r->p.kinds[ACT_WEAKEN], 1);
    const struct class_entry *c = knowledge_find(tuner_knowledge(r->p.t), "class");
    assert_true(c->recall == RECALL_REJECTED && c->best.cold < 0);
    assert_true(c->infeasible[2][1] && !c->infeasible[0][1]); /* what was found here stays */
    done(r);
}

static void test_what_is_learnt_here_beats_what_is_recalled(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    (void)run_trial(r);
    recall_steps(r, "class", (double[]){ 1, 2, 4 }, 0);
    assert_int_equal(played_ask(&r->p).hot, 2);
    (void)run_trial(r);
    assert_int_equal(r->p.run.at.hot, 2);
    assert_int_equal(r->p.kinds[ACT_CONFIRM] + r->p.kinds[ACT_WEAKEN], 0);
    done(r);
}

static void test_a_rejected_class_is_not_recalled_again(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 1, 2, 4 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_WEAKEN], 1);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    size_t len = r->p.len;
    (void)run_trial(r);
    assert_non_null(strstr(r->p.story + len, "launch 0, "));
    assert_int_equal(r->p.kinds[ACT_WEAKEN], 1);
    done(r);
}

static void test_a_settled_trial_still_follows_a_drift(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    begin_trial(r);
    (void)played_epoch(&r->p);
    assert_int_equal(r->p.run.at.hot, 2);
    memcpy(r->job.step_s, (double[]){ 1, 2, 4 }, sizeof r->job.step_s);
    for (int epoch = 2; epoch <= 4; epoch++)
        (void)played_epoch(&r->p);
    assert_int_equal(r->p.run.at.hot, 0);
    done(r);
}

/* --- wrong knowledge costs no more than probing may --- */

static void test_wrong_knowledge_costs_no_more_than_the_budget(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct rng g = rng_seeded(seed);
        struct job job = { .cold = 1 + rng_unit(&g), .noise = 0.04 * rng_unit(&g), .refused = -1 };
        double recalled[HOT];
        for (int h = 0; h < HOT; h++) {
            job.step_s[h] = exp(3 * rng_unit(&g) - 1.5);
            recalled[h] = exp(3 * rng_unit(&g) - 1.5);
        }
        struct recalled *r = new_run(job, (int)rng_below(&g, HOT));
        r->rng = rng_seeded(seed);
        recall_steps(r, "class", recalled, (int)rng_below(&g, COLD));
        double took = run_trial(r);
        double by_default = job.step_s[r->p.job.start.hot] * STEPS * (EPOCHS - 1 + job.cold);
        if (took > by_default * (1 + played_cfg.probe_budget))
            fail_msg("seed %d: %.3f of the default\n%s", (int)seed, took / by_default, r->p.story);
        done(r);
    }
}

/* --- profiles --- */

static void test_each_trial_is_profiled_once(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_PROFILE], 1);
    const struct sim_run *run = &r->p.run;
    assert_true(fabs(run->profile_from_s - 0) < 1e-9 && fabs(run->profile_to_s - 8) < 1e-9); /* two steps, alike */
    (void)run_trial(r); /* of a class that is known */
    assert_int_equal(r->p.kinds[ACT_PROFILE], 2);
    assert_true(fabs(run->profile_from_s - run->began_s - 3) < 1e-6 &&
                fabs(run->profile_to_s - run->began_s - 6) < 1e-6);
    r->p.packed = true;
    (void)run_trial(r);
    assert_int_equal(r->p.kinds[ACT_PROFILE], 3);
    done(r);
}

static const struct {
    const char *name;
    const char *recalled; /* NULL, or the class of which { 4, 2, 1 } is recalled */
    struct job job;       /* a trial of "class", whose default is 4 cores */
    struct answer answer;
    int want, confirm, weaken;
    const char *reason; /* NULL: whatever */
} verdicts[] = {
    { "its own profile confirms nothing that the canary will",
      "class",
      { { 4, 2, 1 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "class", 1 },
      2,
      1,
      0,
      "no worse than the default" },
    { "an ambiguous one changes nothing",
      "class",
      { { 4, 2, 1 }, 1, 0, -1 },
      { true, VERDICT_AMBIGUOUS, "else", 1 },
      2,
      1,
      0,
      "no worse than the default" },
    { "an unknown one takes back what was recalled",
      "class",
      { { 4, 2, 1 }, 1, 0, -1 },
      { true, VERDICT_UNKNOWN, NULL, 1 },
      2,
      0,
      1,
      "the profile rejects it" },
    { "one of a class of which nothing is known does, too",
      "class",
      { { 4, 1, 2 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "else", 1 },
      1,
      0,
      1,
      "that of another class" },
    { "what the canary has confirmed stands",
      "class",
      { { 4, 2, 1 }, 1, 0, -1 },
      { true, VERDICT_UNKNOWN, NULL, 60 },
      2,
      1,
      0,
      NULL },
    { "a new class takes that of its profile",
      "other",
      { { 4, 2, 1 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "other", 1 },
      2,
      1,
      0,
      "recognised: its profile is that of other; no worse" },
    { "… and gives it back when the default is better",
      "other",
      { { 1, 2, 4 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "other", 0 },
      0,
      0,
      1,
      NULL },
    { "a new class with a profile that is known of none goes on",
      "other",
      { { 4, 1, 2 }, 1, 0, -1 },
      { true, VERDICT_UNKNOWN, NULL, 1 },
      1,
      0,
      0,
      "nothing is left to try" },
    { "… or of one that nothing is known of",
      "other",
      { { 4, 1, 2 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "else", 1 },
      1,
      0,
      0,
      "nothing is left to try" },
    { "a verdict after it has decided changes nothing",
      "other",
      { { 4, 1, 2 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "other", 500 },
      1,
      0,
      0,
      "nothing is left to try" },
    { "what was measured to be worse is not taken",
      "other",
      { { 1, 2, 8 }, 1, 0, -1 },
      { true, VERDICT_KNOWN, "other", 14 },
      0,
      0,
      0,
      "nothing is left to try" },
};

static void test_what_a_profile_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
        struct recalled *r = new_run(verdicts[i].job, 0);
        if (verdicts[i].recalled)
            recall_steps(r, verdicts[i].recalled, (double[]){ 4, 2, 1 }, 0);
        r->answer = verdicts[i].answer;
        (void)run_trial(r);
        if (r->p.run.at.hot != verdicts[i].want || r->p.kinds[ACT_CONFIRM] != verdicts[i].confirm ||
            r->p.kinds[ACT_WEAKEN] != verdicts[i].weaken ||
            (verdicts[i].reason && !strstr(r->p.story, verdicts[i].reason)))
            fail_msg("%s: got hot %d, confirmed %d, weakened %d\n%s", verdicts[i].name, r->p.run.at.hot,
                     r->p.kinds[ACT_CONFIRM], r->p.kinds[ACT_WEAKEN], r->p.story);
        done(r);
    }
}

static void test_a_class_that_is_another_one_takes_that_ones_knowledge(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 1, 2 }, 1, 0, -1 }, 0);
    recall_steps(r, "class", (double[]){ 4, 2, 1 }, 0);
    recall_steps(r, "other", (double[]){ 4, 1, 2 }, 0);
    r->answer = (struct answer){ true, VERDICT_KNOWN, "other", 1 };
    (void)run_trial(r);
    assert_non_null(strstr(r->p.story, "launch 2, "));
    assert_int_equal(r->p.run.at.hot, 1);
    assert_true(r->p.kinds[ACT_WEAKEN] == 1 && r->p.kinds[ACT_CONFIRM] == 1);
    assert_non_null(strstr(r->p.story, "8 cores: its profile is that of other"));
    done(r);
}

static void test_an_ambiguous_profile_says_what_to_probe_first(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 3 }, 1, 0, -1 }, 0);
    recall_steps(r, "other", (double[]){ 3, 1, 2 }, 0);
    begin_trial(r);
    played_tell(&r->p, (struct tuner_event){ .kind = EV_VERDICT, .verdict = VERDICT_AMBIGUOUS, .class_key = "other" });
    for (int i = 0; i < 4; i++)
        played_step(&r->p);
    assert_int_equal(r->p.run.at.hot, 1); /* the farthest would be 2 */
    done(r);
}

/* A trial that has settled without a canary hears the verdict, too. */
static void test_a_packed_trial_hears_its_verdict(void **state)
{
    (void)state;
    static const struct {
        enum tuner_verdict verdict;
        const char *recalled, *key;
        int want, confirm, weaken;
    } rows[] = {
        { VERDICT_KNOWN, "class", "class", 2, 1, 0 },
        { VERDICT_AMBIGUOUS, "class", "class", 2, 0, 0 },
        { VERDICT_UNKNOWN, "class", NULL, 0, 0, 1 }, /* back to the default */
        { VERDICT_KNOWN, "other", "other", 2, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
        recall_steps(r, rows[i].recalled, (double[]){ 4, 2, 1 }, 0);
        r->p.packed = true;
        r->answer = (struct answer){ true, rows[i].verdict, rows[i].key, 0 };
        (void)run_trial(r);
        if (r->p.run.at.hot != rows[i].want || r->p.kinds[ACT_CONFIRM] != rows[i].confirm ||
            r->p.kinds[ACT_WEAKEN] != rows[i].weaken)
            fail_msg("row %zu: hot %d, confirmed %d, weakened %d\n%s", i, r->p.run.at.hot, r->p.kinds[ACT_CONFIRM],
                     r->p.kinds[ACT_WEAKEN], r->p.story);
        done(r);
    }
}

/* --- what can be stored, and what cannot be --- */

static void test_what_was_learnt_can_be_read_and_recalled(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    (void)run_trial(r);
    const struct policy *p = policy_find("pipetune");
    assert_ptr_equal(p->knowledge(r->p.t), tuner_knowledge(r->p.t));
    assert_null(policy_find("paper")->knowledge);
    const struct class_entry *c = knowledge_find(tuner_knowledge(r->p.t), "class");
    assert_true(c->trials + c->earlier == 1 && c->recall == RECALL_NONE && c->best.hot == 2);
    struct tuner *next = tuner_new(&space, &played_cfg);
    struct tuner_actions acts;
    struct err e;
    for (int cold = 0; cold < COLD; cold++) {
        for (int h = 0; h < HOT && c->cold[cold].hot >= 0; h++) {
            struct tuner_event ev = { .kind = EV_RECALL,
                                      .class_key = c->key,
                                      .setting = { h, cold },
                                      .over = { c->cold[cold].hot, cold },
                                      .ratio = c->cold[cold].ratio[h],
                                      .at_least = c->cold[cold].at_least[h],
                                      .best = h == c->best.hot && cold == c->best.cold,
                                      .trials = c->trials + c->earlier };
            if (isfinite(ev.ratio))
                assert_int_equal(tuner_step(next, &ev, &acts, &e), 0);
        }
    }
    const struct class_entry *n = knowledge_find(tuner_knowledge(next), "class");
    assert_true(n->recall == RECALL_OPEN && n->earlier == 1 && n->trials == 0);
    assert_true(n->best.hot == c->best.hot && n->best.cold == c->best.cold);
    bool at_least;
    assert_true(fabs(knowledge_ratio(n, c->best.cold, 0, 2, &at_least) - log(4)) < 0.02);
    assert_true(isnan(knowledge_per_record(n))); /* no seconds */
    tuner_free(next);
    done(r);
}

static void test_what_cannot_be_recalled_is_told(void **state)
{
    (void)state;
    struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
    const struct tuner_event wrong[] = {
        { .kind = EV_RECALL },
        { .kind = EV_RECALL, .class_key = "c", .trial = 1 },
        { .kind = EV_RECALL, .class_key = "c", .setting = { HOT, 0 } },
        { .kind = EV_RECALL, .class_key = "c", .over = { 0, COLD } },
        { .kind = EV_RECALL, .class_key = "c", .ratio = NAN },
        { .kind = EV_VERDICT, .trial = 1, .verdict = VERDICT_UNKNOWN },
        { .kind = EV_VERDICT, .trial = 1, .verdict = VERDICT_KNOWN },
    };
    struct tuner_actions acts;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(tuner_step(r->p.t, &wrong[i], &acts, &e), -EPROTO);
    done(r);
}

static void test_memory_that_is_out_is_told(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 32);
        struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
        const struct tuner_event ev = { .kind = EV_RECALL, .class_key = "c", .family_key = "f" };
        struct tuner_actions acts;
        struct err e;
        fault_arm(FAULT_ALLOC, nth);
        rc = tuner_step(r->p.t, &ev, &acts, &e);
        (void)fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        done(r);
    }
}

/* --- whatever comes --- */

static struct tuner_event any_event(struct rng *g, const bool running[8], double t_s)
{
    static const char *const classes[] = { "a", "b", "c", "nobody's", "über" };
    int trial = 1 + (int)rng_below(g, 7);
    struct tuner_event ev = { .trial = trial,
                              .t_s = t_s,
                              .class_key = classes[rng_below(g, ARRAY_LEN(classes))],
                              .family_key = rng_below(g, 2) ? "f" : NULL,
                              .setting = { (int)rng_below(g, HOT), (int)rng_below(g, COLD) },
                              .over = { (int)rng_below(g, HOT), (int)rng_below(g, COLD) },
                              .ratio = 4 * rng_unit(g) - 2,
                              .at_least = rng_below(g, 4) == 0,
                              .best = rng_below(g, 3) == 0,
                              .trials = (int)rng_below(g, 9),
                              .verdict = (enum tuner_verdict)rng_below(g, 3),
                              .epoch = 1 + (int)rng_below(g, 5),
                              .epochs = 5,
                              .seconds = rng_below(g, 20) ? rng_unit(g) * 4 : 0,
                              .records = rng_below(g, 20) ? 1 : 0,
                              .epoch_records = 20,
                              .waiting = (int)rng_below(g, 3),
                              .n_hot = (int)rng_below(g, HOT + 2),
                              .alone = rng_below(g, 4) > 0,
                              .startup_s = (double)rng_below(g, 3),
                              .infeasible = rng_below(g, 2) > 0 };
    if (rng_below(g, 12) == 0)
        ev.kind = EV_RECALL;
    else if (!running[trial])
        ev.kind = EV_TRIAL_STARTED;
    else if (rng_below(g, 8) == 0)
        ev.kind = EV_VERDICT;
    else
        ev.kind = rng_below(g, 5) > 0 ? EV_ITERATION : EV_ITERATION + (enum tuner_event_kind)rng_below(g, 9);
    if (ev.kind == EV_RECALL || (ev.kind == EV_LOAD && rng_below(g, 2)))
        ev.trial = 0;
    return ev;
}

static void test_any_events_get_answers_in_range(void **state)
{
    (void)state;
    int told[ACT_WEAKEN + 1] = { 0 };
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct recalled *r = new_run((struct job){ { 4, 2, 1 }, 1, 0, -1 }, 0);
        struct rng g = rng_seeded(seed);
        bool running[8] = { false };
        for (int i = 0; i < 2000; i++) {
            struct tuner_event ev = any_event(&g, running, i * 0.7);
            struct tuner_actions acts;
            struct err e;
            char reason[TUNER_REASON_MAX];
            const struct tuner_ask ask = {
                .trial = ev.trial, .class_key = ev.class_key, .start = { 1, 1 }, .n_hot = ev.n_hot, .alone = ev.alone
            };
            if (ev.kind == EV_TRIAL_STARTED && rng_below(&g, 4))
                assert_int_equal(tuner_launch(r->p.t, &ask, &ev.setting, reason, &e), 0);
            assert_int_equal(tuner_step(r->p.t, &ev, &acts, &e), 0);
            if (ev.trial > 0)
                running[ev.trial] = ev.kind != EV_TRIAL_ENDED && ev.kind != EV_TRIAL_LOST;
            for (size_t n = 0; n < acts.n; n++) {
                const struct tuner_action *a = &acts.list[n];
                told[a->kind]++;
                assert_true(a->setting.hot >= 0 && a->setting.hot < HOT && a->setting.cold >= 0 &&
                            a->setting.cold < COLD);
                assert_true(a->reason[0] && !isnan(a->t_s));
                assert_true(a->kind != ACT_PROFILE || (a->t_s < a->until_s && a->until_s == ev.t_s));
            }
        }
        done(r);
    }
    for (int k = 0; k <= ACT_WEAKEN; k++)
        assert_true(told[k] > 20); /* each was met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_canary),
        cmocka_unit_test(test_a_job_that_warms_up_keeps_what_was_recalled),
        cmocka_unit_test(test_the_canary_is_short_while_trials_wait),
        cmocka_unit_test(test_a_recalled_class_is_launched_with_what_was_best),
        cmocka_unit_test(test_what_was_not_recalled_is_not_probed),
        cmocka_unit_test(test_how_memories_compare_is_recalled_too),
        cmocka_unit_test(test_a_recalled_bound_is_not_tried),
        cmocka_unit_test(test_one_canary_per_study),
        cmocka_unit_test(test_without_a_canary_it_settles_at_once),
        cmocka_unit_test(test_a_packed_trial_leaves_the_canary_to_the_next),
        cmocka_unit_test(test_a_packed_trial_that_is_left_alone_takes_what_was_best),
        cmocka_unit_test(test_a_trial_that_is_lost_leaves_the_canary_to_the_next),
        cmocka_unit_test(test_two_trials_do_one_canary),
        cmocka_unit_test(test_company_ends_the_canary),
        cmocka_unit_test(test_a_break_voids_the_window_of_the_canary),
        cmocka_unit_test(test_a_stored_setting_that_cannot_be_launched_is_forgotten),
        cmocka_unit_test(test_what_is_learnt_here_beats_what_is_recalled),
        cmocka_unit_test(test_a_rejected_class_is_not_recalled_again),
        cmocka_unit_test(test_a_settled_trial_still_follows_a_drift),
        cmocka_unit_test(test_wrong_knowledge_costs_no_more_than_the_budget),
        cmocka_unit_test(test_each_trial_is_profiled_once),
        cmocka_unit_test(test_what_a_profile_says),
        cmocka_unit_test(test_a_class_that_is_another_one_takes_that_ones_knowledge),
        cmocka_unit_test(test_an_ambiguous_profile_says_what_to_probe_first),
        cmocka_unit_test(test_a_packed_trial_hears_its_verdict),
        cmocka_unit_test(test_what_was_learnt_can_be_read_and_recalled),
        cmocka_unit_test(test_what_cannot_be_recalled_is_told),
        cmocka_unit_test(test_memory_that_is_out_is_told),
        cmocka_unit_test(test_any_events_get_answers_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
