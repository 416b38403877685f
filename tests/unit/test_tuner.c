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
#include "core/rng.h"
#include "core/stats.h"
#include "core/tuner.h"
#include "core/window.h"
#include "tests/fault.h"
#include "tests/played.h"

enum { STEPS = 100, HOT = 3 };

/* A job whose step takes step_s[hot] seconds; in the first epoch of a launch `cold` times that. */
struct job {
    double step_s[HOT];
    double cold;
    double noise;   /* amplitude of a repeating pattern */
    int refused;    /* a hot setting that cannot be had; -1: none */
    bool in_large;  /* only in the large memory */
    double small;   /* how much slower the small memory is; 0: not */
    double swings;  /* how much slower it is every other 3 s */
    double warms_s; /* it begins at half its speed, and loses that within so long; 0: not */
};

static bool can_be_had(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    const struct job *j = ((const struct played *)ctx)->what;
    (void)r;
    return s.hot != j->refused || (j->in_large && s.cold == 0);
}

static double step_of(void *ctx, const struct sim_run *r)
{
    const struct job *j = ((const struct played *)ctx)->what;
    double wave = 1.0 + j->noise * ((r->step * 7) % 11 - 5) / 5.0;
    double memory = r->at.cold == 0 && j->small > 0 ? j->small : 1;
    double swing = fmod(floor(r->stride_s / 3), 2) < 0.5 ? 1 : 1 + j->swings;
    double warm = j->warms_s > 0 ? 1 + exp(-r->stride_s / j->warms_s) : 1;
    return j->step_s[r->at.hot] * (r->epoch == r->first ? j->cold : 1.0) * memory * wave * swing * warm;
}

static const struct sim_world world = { .has = can_be_had, .step_s = step_of };
static const struct tuner_space space = { .n_hot = HOT, .n_cold = 2, .cores = { 4, 8, 16 }, .memory = { 4, 8 } };

static struct played *begin_with(const struct tuner_space *s, const struct job *j, struct tuner_setting start)
{
    static struct played r;
    played_init(&r, s, &world, j);
    r.job.start = start;
    return &r;
}

static struct played *begin(const struct job *j, int hot, int cold)
{
    return begin_with(&space, j, (struct tuner_setting){ hot, cold });
}

static struct tuner *new_tuner(void)
{
    return tuner_new(&space, &played_cfg);
}

static const struct {
    const char *name;
    struct job job;
    int start, want;
    double most; /* seconds over those of the best setting */
} cases[] = {
    { "the best is the largest", { { 4, 2, 1 }, 1, .refused = -1 }, 0, 2, 1.03 },
    { "the best is where it began", { { 1, 2, 4 }, 1, .refused = -1 }, 0, 0, 1.03 },
    { "the best lies in the middle", { { 2, 1, 1.5 }, 1, .refused = -1 }, 0, 1, 1.03 },
    { "a cold first epoch changes nothing", { { 4, 2, 1 }, 3, .refused = -1 }, 0, 2, 1.04 },
    { "a candidate 15 times slower is cut", { { 15, 1, 1.2 }, 1, .refused = -1 }, 1, 1, 1.03 },
    { "of equal settings the cheaper one wins", { { 1, 1, 1 }, 1, .refused = -1 }, 2, 0, 1.01 },
    { "noise does not hide 10 %", { { 1.3, 1, 1.1 }, 1, .noise = 0.03, .refused = -1 }, 0, 1, 1.05 },
    { "what is refused is not asked for again", { { 2, 1.5, 1 }, 1, .refused = 2 }, 0, 1, 1.04 },
};

static void test_what_it_settles_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct played *r = begin(&cases[i].job, cases[i].start, 0);
        double took = played_trial(r);
        double best = (9 + cases[i].job.cold) * STEPS * cases[i].job.step_s[cases[i].want];
        if (r->run.at.hot != cases[i].want || took > cases[i].most * best)
            fail_msg("%s: got hot %d in %.1f s (%.3f of the best), want %d\n%s", cases[i].name, r->run.at.hot, took,
                     took / best, cases[i].want, r->story);
        played_done(r);
    }
}

static void test_a_known_class_starts_on_its_best(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    (void)played_trial(r);
    int applies = r->kinds[ACT_APPLY];
    assert_true(played_trial(r) < 1.01 * 1000);
    assert_true(fabs(played_trial(r) - 1000) < 1e-6);
    assert_true(r->kinds[ACT_APPLY] - applies <= 2);
    played_done(r);
}

/* --- what counts while trials wait --- */

static const struct {
    const char *name;
    double step_s[HOT]; /* on 4, 8, 16 cores */
    int waiting, n_hot, start, want;
} costs[] = {
    { "alone, the fastest wins", { 1.6, 1, 0.8 }, 0, 0, 1, 2 },
    { "while trials wait, 1.6 times the time on half the cores wins", { 1.6, 1, 0.8 }, 2, 0, 1, 0 },
    { "… also from twice as many cores", { 1.6, 1, 0.8 }, 2, 0, 2, 0 },
    { "while trials wait, perfect scaling is a tie, and the fewest cores win", { 4, 2, 1 }, 1, 0, 2, 0 },
    { "more than perfect scaling wins with more cores", { 10, 4, 1.5 }, 1, 0, 0, 2 },
    { "what it may not have is not tried", { 4, 2, 1 }, 0, 2, 0, 1 },
    { "it may have less than it was launched with", { 4, 2, 1 }, 0, 2, 2, 1 },
};

static void test_what_a_setting_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        struct job j = { .cold = 1, .refused = -1 };
        memcpy(j.step_s, costs[i].step_s, sizeof j.step_s);
        struct played *r = begin(&j, costs[i].start, 0);
        r->n_hot = costs[i].n_hot;
        played_load(r, costs[i].waiting);
        (void)played_trial(r);
        if (r->run.at.hot != costs[i].want)
            fail_msg("%s: got hot %d, want %d\n%s", costs[i].name, r->run.at.hot, costs[i].want, r->story);
        played_done(r);
    }
}

static void test_what_is_learnt_holds_whatever_counts(void **state)
{
    (void)state;
    struct job j = { { 1.2, 0.64, 0.4 }, 1, .refused = -1 };
    for (int waiting = 0; waiting <= 1; waiting++) { /* when it is learnt */
        struct played *r = begin(&j, 1, 1);
        played_load(r, waiting);
        (void)played_trial(r);
        played_load(r, 0);
        assert_int_equal(played_ask(r).hot, 2);
        r->n_hot = 2;
        assert_int_equal(played_ask(r).hot, 1);
        played_load(r, 1);
        assert_int_equal(played_ask(r).hot, 0);
        played_done(r);
    }
}

static void test_a_settled_trial_follows_the_load(void **state)
{
    (void)state;
    struct job j = { { 3, 1.6, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 1, 0);
    played_load(r, 1);
    played_begin(r);
    (void)played_epoch(r);
    (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 0);
    played_load(r, 0);
    assert_int_equal(r->run.at.hot, 2);
    assert_non_null(strstr(r->story, "no trial waits any more: 16 cores are 200 % faster than 4"));
    played_load(r, 1);
    assert_int_equal(r->run.at.hot, 0);
    assert_non_null(strstr(r->story, "trials wait: 4 cores take 25 % fewer core-seconds than 16"));
    size_t len = r->len;
    played_load(r, 2); /* they wait already */
    assert_int_equal(r->len, len);
    played_done(r);
}

static void test_what_was_cut_is_looked_at_when_it_may_count(void **state)
{
    (void)state;
    struct job j = { { 48, 30, 24 }, 1, .refused = -1 }; /* a cut comes within the first iteration */
    struct played *r = begin(&j, 0, 0);
    played_load(r, 1);
    played_begin(r);
    (void)played_epoch(r);
    (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 0);
    played_load(r, 0);
    assert_false(tuner_settled(r->t, 1));
    (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1));
    assert_int_equal(r->run.at.hot, 2);
    played_done(r);
}

/* An answer has room for a few trials; the others are told with their next event. */
static void test_all_trials_follow_the_load(void **state)
{
    (void)state;
    enum { TRIALS = 5 };
    struct job j = { { 1.6, 1, 0.8 }, 1, .refused = -1 };
    struct played *r = begin(&j, 1, 1);
    (void)played_trial(r);
    struct tuner_actions acts;
    struct tuner_setting at;
    struct err e;
    for (int n = 1; n <= TRIALS; n++) {
        struct tuner_event ev = {
            .kind = EV_TRIAL_STARTED, .trial = n, .class_key = "class", .setting = { 2, 1 }, .epochs = 10, .t_s = n
        };
        assert_int_equal(tuner_step(r->t, &ev, &acts, &e), 0);
    }
    played_load(r, 1);
    for (int n = 1; n <= TRIALS; n++) {
        struct tuner_event ev = { .kind = EV_TICK, .trial = n, .t_s = 100 };
        assert_int_equal(tuner_step(r->t, &ev, &acts, &e), 0);
        assert_true(tuner_current(r->t, n, &at) && at.hot == 0);
    }
    played_done(r);
}

/* --- memory --- */

static const struct {
    const char *name;
    struct job job;
    double startup_s;
    struct tuner_setting start, want;
    int launches;
    double most; /* seconds over those of the best setting */
} memories[] = {
    { "a stranger gets the largest memory", { { 4, 2, 1 }, 1, 0, -1, .small = 2 }, 20, { 0, 0 }, { 2, 1 }, 1, 1.02 },
    { "a trial goes where its best cores may run",
      { { 4, 2, 1 }, 1, 0, 2, .in_large = true },
      20,
      { 0, 0 },
      { 2, 0 },
      2,
      1.10 },
    { "it stays where no other launch is to be had",
      { { 4, 2, 1 }, 1, 0, 2, .in_large = true },
      0,
      { 0, 0 },
      { 1, 1 },
      1,
      2.02 },
    { "… or costs more than it may gain", { { 4, 2, 1 }, 1, 0, 2, .in_large = true }, 500, { 0, 0 }, { 1, 1 }, 1, 2.0 },
    { "it comes back when that was worse",
      { { 4, 1, 2 }, 1, 0, 2, .in_large = true, .small = 3 },
      20,
      { 0, 0 },
      { 1, 1 },
      3,
      1.15 },
    { "cores that run nowhere are not worth a second try",
      { { 4, 2, 1 }, 1, .refused = 2 },
      20,
      { 0, 0 },
      { 1, 1 },
      3,
      1.10 },
    { "when the largest memory cannot be had it is the default",
      { { 1, 2, 4 }, 1, 0, 0, .in_large = true },
      20,
      { 0, 0 },
      { 0, 0 },
      2,
      1.05 },
};

static void test_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(memories); i++) {
        const struct job *j = &memories[i].job;
        struct played *r = begin(j, memories[i].start.hot, memories[i].start.cold);
        r->startup_s = memories[i].startup_s;
        double took = played_trial(r);
        int launches = r->run.launches;
        double best = r->startup_s + 10 * STEPS * j->step_s[memories[i].want.hot];
        if (r->run.at.hot != memories[i].want.hot || r->run.at.cold != memories[i].want.cold ||
            launches != memories[i].launches || took > memories[i].most * best)
            fail_msg("%s: got %d, %d in %d launches and %.0f s (%.3f of the best)\n%s", memories[i].name, r->run.at.hot,
                     r->run.at.cold, launches, took, took / best, r->story);
        double best_again = took; /* what was learnt on the way is kept, and what a later trial tries costs little */
        for (int n = 0; n < 3; n++) {
            double again = played_trial(r);
            if (again > took + 2.5 * r->startup_s)
                fail_msg("%s: again %.0f s, first %.0f s\n%s", memories[i].name, again, took, r->story);
            best_again = again < best_again ? again : best_again;
        }
        double last = played_trial(r);
        if (last > best_again * 1.001 || r->run.launches != 1)
            fail_msg("%s: at last %.0f s in %d launches, best %.0f s\n%s", memories[i].name, last, r->run.launches,
                     best_again, r->story);
        played_done(r);
    }
}

static void test_memory_has_a_price_while_trials_wait(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    assert_int_equal(played_ask(r).cold, 1);
    r->packed = true;
    assert_int_equal(played_ask(r).cold, 0);
    r->packed = false;
    played_load(r, 1);
    assert_int_equal(played_ask(r).cold, 0);
    played_load(r, 0);
    (void)played_trial(r); /* in the large one; nobody knows if that is why */
    r->packed = true;
    assert_int_equal(played_ask(r).cold, 0);
    assert_int_equal(played_ask(r).hot, 2);
    r->job.family_key = NULL;
    played_done(r);
}

static void test_a_smaller_memory_than_one_that_works_is_not_tried(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 1);
    r->startup_s = 10;
    for (int trial = 1; trial <= 9; trial++) {
        (void)played_trial(r);
        assert_true(r->run.at.hot == 2 && r->run.at.cold == 1 && r->run.launches == 1);
    }
    played_done(r);
}

static void test_a_choice_that_gets_a_trial_nowhere_is_left(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1, .small = 1000 };
    struct tuner_space two = { .n_hot = HOT, .n_cold = 2, .cores = { 4, 8, 16 }, .other = { 0, 1 } };
    struct played *r = begin_with(&two, &j, (struct tuner_setting){ 0, 1 });
    r->startup_s = 1;
    (void)played_trial(r);
    played_begin(r);
    for (int trial = 0; r->run.at.cold == 1; trial++) { /* until one is a try */
        assert_true(trial < 10);
        for (int epoch = 1; epoch <= 10; epoch++)
            (void)played_epoch(r);
        played_end(r);
        played_begin(r);
    }
    played_step(r); /* ten times as long as an epoch should take */
    assert_true(r->run.relaunch);
    assert_non_null(strstr(r->story, "what is tried gets it nowhere"));
    played_tell(r, (struct tuner_event){ .kind = EV_TRIAL_LOST });
    played_begin(r);
    assert_int_equal(r->run.at.cold, 1);
    played_done(r);
}

static void test_a_relaunch_is_planned_for_its_trial_alone(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, 0, 2, .in_large = true };
    struct played *r = begin(&j, 0, 0);
    r->startup_s = 20;
    played_begin(r);
    for (int epoch = 1; played_epoch(r); epoch++)
        assert_true(epoch < 10);
    size_t len = r->len;
    (void)played_step(r); /* it trains on until it is ended */
    assert_non_null(strstr(r->story, "cores that this memory does not let run are worth a try"));
    assert_null(strstr(r->story + len, "worth a try"));
    struct tuner_ask ask = { .trial = 2, .class_key = "class", .start = { 0, 0 } };
    struct tuner_setting at;
    struct err e;
    char reason[TUNER_REASON_MAX];
    assert_int_equal(tuner_launch(r->t, &ask, &at, reason, &e), 0);
    assert_true(at.hot == 1);
    struct tuner_setting mine = played_ask(r);
    assert_true(mine.hot == 2 && mine.cold == 0);
    struct tuner_event ev = {
        .kind = EV_TRIAL_STARTED, .trial = 1, .class_key = "class", .setting = mine, .epochs = 10
    };
    struct tuner_actions acts;
    assert_int_equal(tuner_step(r->t, &ev, &acts, &e), 0); /* also without a word that it was lost */
    played_done(r);
}

/* --- trials beside each other --- */

static void test_a_packed_trial_takes_what_is_known(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 1);
    r->packed = true;
    r->job.family_key = "family";
    (void)played_trial(r);
    assert_true(r->kinds[ACT_APPLY] == 0 && r->kinds[ACT_SETTLE] == 1);
    r->packed = false;
    assert_int_equal(played_ask(r).hot, 0); /* nothing was learnt beside others */
    (void)played_trial(r);
    r->packed = true;
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 2);
    r->job.class_key = "other batch";
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 2);
    r->n_hot = 2;
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 1);
    r->job.class_key = "stranger";
    r->job.family_key = NULL;
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 0);
    played_done(r);
}

static void share(struct played *r, int n_hot, bool alone)
{
    played_tell(r, (struct tuner_event){ .kind = EV_LOAD, .n_hot = n_hot, .alone = alone });
}

static void test_a_trial_that_is_left_alone_probes(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    r->packed = true;
    r->n_hot = 2;
    played_begin(r);
    (void)played_epoch(r);
    assert_true(r->kinds[ACT_APPLY] == 0);
    share(r, 0, true);
    assert_false(tuner_settled(r->t, 1));
    (void)played_epoch(r);
    (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 2);
    share(r, 2, true);
    assert_int_equal(r->run.at.hot, 1);
    assert_non_null(strstr(r->story, "it may have fewer cores: 8 cores"));
    share(r, 0, true);
    assert_int_equal(r->run.at.hot, 2);
    assert_non_null(strstr(r->story, "there are more cores for it: 16 cores are 100 % faster than 8"));
    played_end(r);
    assert_int_equal(played_ask(r).hot, 1); /* within n_hot */
    played_done(r);
}

/* What was left for it beside others was no choice: alone it begins with the default. */
static void test_a_trial_that_is_left_alone_begins_with_the_default(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 2, 0);
    played_load(r, 1);
    r->packed = true;
    r->n_hot = 1;
    played_begin(r);
    (void)played_epoch(r);
    assert_int_equal(r->run.at.hot, 0);
    played_load(r, 0);
    assert_int_equal(r->run.at.hot, 0); /* there are no cores for it yet */
    share(r, 0, true);
    assert_int_equal(r->run.at.hot, 2);
    assert_false(tuner_settled(r->t, 1));
    (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 2);
    played_done(r);
}

static void test_what_ends_before_a_probe_would_is_not_probed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double step_s;
        int first_epoch;
        bool probes;
    } rows[] = {
        { "10 s are left", 0.15, 10, true },
        { "6 s are left", 0.09, 10, false },
        { "ten epochs of 6 s are left", 0.09, 1, true },
        { "iterations of a minute, and 100 of them", 60, 10, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double s = rows[i].step_s;
        struct job j = { { s, s, s }, .cold = 1, .refused = -1 };
        struct played *r = begin(&j, 2, 0);
        played_load(r, 1);
        r->first_epoch = rows[i].first_epoch;
        played_begin(r);
        (void)played_epoch(r);
        if ((r->kinds[ACT_APPLY] > 0) != rows[i].probes)
            fail_msg("%s: %d changes\n%s", rows[i].name, r->kinds[ACT_APPLY], r->story);
        played_done(r);
    }
}

static const struct {
    const char *name;
    int waiting;
    double least, most; /* seconds until the first probe; a whole window takes 3 */
} first_probes[] = {
    { "half an epoch is enough for any job", 0, 15, 21 },
    { "while trials wait a short one will do", 1, 1, 4 },
};

static void test_how_long_a_job_may_warm_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(first_probes); i++) {
        struct job j = { { 1.25 * 0.25, 0.25, 1 }, 1, .refused = -1, .swings = 0.5 };
        struct played *r = begin(&j, 1, 0);
        r->n_hot = 2;
        played_load(r, first_probes[i].waiting);
        played_begin(r);
        for (int k = 0; k < STEPS && r->kinds[ACT_APPLY] == 0; k++)
            played_step(r);
        double took = r->run.now_s;
        if (r->kinds[ACT_APPLY] == 0 || took < first_probes[i].least || took > first_probes[i].most)
            fail_msg("%s: after %.1f s\n%s", first_probes[i].name, took, r->story);
        played_done(r);
    }
}

static const struct {
    const char *name;
    double one_core_s;  /* an iteration; 0.1 on two */
    double least, most; /* seconds until it settles */
} first_looks[] = {
    { "what is far off is clear from short windows, soon after a change", 0.13, 3, 4.5 },
    { "what is close is measured in whole ones", 0.19, 12, 16 },
};

static void test_a_first_look_is_short_while_trials_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(first_looks); i++) {
        struct job j = { { first_looks[i].one_core_s, 0.1, 1 }, 1, .refused = -1 };
        struct played *r = begin(&j, 1, 0);
        r->job.steps = 10 * STEPS;
        r->n_hot = 2;
        played_load(r, 1);
        played_begin(r);
        double began_s = r->run.now_s;
        for (int k = 0; k < 10 * STEPS && !tuner_settled(r->t, 1); k++)
            played_step(r);
        double took = r->run.now_s - began_s;
        if (r->run.at.hot != 0 || took < first_looks[i].least || took > first_looks[i].most)
            fail_msg("%s: after %.1f s on %d\n%s", first_looks[i].name, took, r->run.at.hot, r->story);
        played_done(r);
    }
}

/* What is learnt while a job warms up is no better for what was measured last. */
static void test_a_job_that_warms_up_is_measured_from_both_sides(void **state)
{
    (void)state;
    struct job j = { { 0.3, 0.25, 1 }, 1, .refused = -1, .warms_s = 5 };
    struct played *r = begin(&j, 1, 0);
    r->n_hot = 2;
    played_load(r, 1);
    played_begin(r);
    for (int i = 0; i < STEPS; i++)
        played_step(r);
    assert_int_equal(r->run.at.hot, 0);
    played_load(r, 0);
    if (r->run.at.hot != 1)
        fail_msg("a setting that is slower by a fifth was learnt to be faster\n%s", r->story);
    played_done(r);
}

/* With it others may be packed beside the trial. */
static void test_a_winner_settles_at_once_when_nothing_else_is_open(void **state)
{
    (void)state;
    struct job j = { { 0.4, 0.3, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 1, 0);
    r->n_hot = 2;
    played_load(r, 1);
    played_begin(r);
    for (int i = 0; i < STEPS && (r->run.at.hot == 1 || r->kinds[ACT_APPLY] < 3); i++)
        played_step(r);
    double since = r->run.now_s;
    for (int i = 0; i < STEPS && !tuner_settled(r->t, 1); i++)
        played_step(r);
    assert_int_equal(r->run.at.hot, 0);
    if (r->run.now_s - since > 5) /* a second after the change, and one window */
        fail_msg("settled after %.1f s\n%s", r->run.now_s - since, r->story);
    played_done(r);
}

static void test_company_ends_a_round(void **state)
{
    (void)state;
    struct job j = { { 1.1, 1, 1.05 }, 1, .noise = 0.02, .refused = -1 };
    struct played *r = begin(&j, 1, 0);
    played_begin(r);
    while (r->run.at.hot == 1)
        played_step(r);
    share(r, 0, false); /* while a candidate is measured */
    assert_true(tuner_settled(r->t, 1));
    assert_int_equal(r->run.at.hot, 1);
    for (int epoch = 2; epoch <= 3; epoch++)
        (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1));
    played_done(r);
}

/* --- what is void, refused, lost --- */

static void test_a_break_voids_the_pair(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 1, 0);
    played_begin(r);
    for (int i = 0; r->run.at.hot == 1; i++)
        played_step(r);
    played_tell(r, (struct tuner_event){ .kind = EV_BREAK });
    assert_int_equal(r->run.at.hot, 1);
    assert_non_null(strstr(r->story, "back to 8 cores: what was being measured is void"));
    for (int epoch = 1; epoch <= 3; epoch++)
        (void)played_epoch(r);
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 2);
    played_tell(r, (struct tuner_event){ .kind = EV_BREAK }); /* of a settled trial */
    assert_true(tuner_settled(r->t, 1) && r->run.at.hot == 2);
    played_done(r);
}

static void test_a_late_answer_is_no_answer(void **state)
{
    (void)state;
    struct job j = { { 1, 1.2, 1.3 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    played_begin(r);
    for (int i = 0; r->run.at.hot == 0; i++)
        played_step(r);
    double wake_s = r->run.wake_s;
    played_tell(r, (struct tuner_event){ .kind = EV_APPLIED, .setting = { 0, 0 } });
    played_tell(r, (struct tuner_event){ .kind = EV_TICK });
    assert_true(r->run.wake_s == wake_s); /* its time began when it was asked for … */
    r->run.now_s += 1;
    played_tell(r, (struct tuner_event){ .kind = EV_APPLIED, .setting = r->run.at });
    played_tell(r, (struct tuner_event){ .kind = EV_TICK });
    assert_true(fabs(r->run.wake_s - wake_s - 1) < 1e-9); /* … and now, when it is in force */
    played_done(r);
}

static void test_a_lost_trial_teaches_nothing(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 1, 0);
    played_begin(r);
    for (int i = 0; r->run.at.hot == 1; i++)
        played_step(r);
    played_tell(r, (struct tuner_event){ .kind = EV_TRIAL_LOST });
    assert_false(tuner_settled(r->t, 1));
    assert_int_equal(played_ask(r).hot, 1);
    r->first_epoch = 4; /* it goes on from a checkpoint, and its first epoch is a cold one again */
    j.cold = 1;
    (void)played_trial(r);
    assert_int_equal(r->run.at.hot, 2);
    played_done(r);
}

static void test_a_launch_that_failed_bounds_what_never_trained(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    played_load(r, 1); /* the default memory, then */
    (void)played_trial(r);
    played_load(r, 0);
    struct tuner_setting next = played_ask(r);
    assert_true(next.hot == 2 && next.cold == 1);
    played_tell(r,
                (struct tuner_event){ .kind = EV_FAILED, .class_key = "class", .setting = next, .infeasible = true });
    next = played_ask(r);
    assert_true(next.cold == 0 && next.hot == 2); /* where it has trained, it can train */
    played_done(r);
}

static void test_a_default_that_proved_too_little_is_not_launched_again(void **state)
{
    (void)state;
    struct job j = { { 4, 2, 1 }, 1, .refused = -1 };
    struct played *r = begin(&j, 0, 0);
    played_load(r, 1); /* nobody gets more than the default for nothing */
    assert_int_equal(played_ask(r).cold, 0);
    played_tell(r, (struct tuner_event){ .kind = EV_FAILED, .setting = r->job.start, .infeasible = true });
    assert_int_equal(played_ask(r).cold, 1);
    played_done(r);
}

static void test_a_failure_bounds_less_memory_only_when_it_was_memory(void **state)
{
    (void)state;
    struct job j = {
        { 4, 1, 2 }, 1, .refused = 1, .in_large = true
    }; /* its best cores run in the smallest of three memories alone */
    struct tuner_space three = { .n_hot = HOT, .n_cold = 3, .cores = { 4, 8, 16 }, .memory = { 4, 8, 16 } };
    for (int unexplained = 0; unexplained <= 1; unexplained++) {
        struct played *r = begin_with(&three, &j, (struct tuner_setting){ 0, 2 });
        r->startup_s = 1;
        r->world.unexplained = unexplained;
        for (int trial = 0; trial < 3; trial++)
            (void)played_trial(r);
        assert_int_equal(r->run.at.hot, unexplained ? 1 : 2);
        played_done(r);
    }
}

static void test_the_same_events_give_the_same_actions(void **state)
{
    (void)state;
    static char first[sizeof((struct played *)0)->story];
    struct job j = { { 1.3, 1, 1.1 }, 2, .noise = 0.05, .refused = -1 };
    for (int i = 0; i < 2; i++) {
        struct played *r = begin(&j, 0, 0);
        (void)played_trial(r);
        if (i > 0)
            assert_string_equal(r->story, first);
        memcpy(first, r->story, sizeof first);
        played_done(r);
    }
}

static struct tuner_event any_event(struct rng *g, const bool *running, double t_s)
{
    static const char *const classes[] = { "a", "b", "c" };
    int trial = 1 + (int)rng_below(g, 6);
    struct tuner_event ev = { .trial = trial,
                              .t_s = t_s,
                              .class_key = classes[trial % 3],
                              .family_key = "f",
                              .setting = { (int)rng_below(g, HOT), (int)rng_below(g, 2) },
                              .epoch = 1 + (int)rng_below(g, 5),
                              .epochs = 5,
                              .seconds = rng_below(g, 20) ? rng_unit(g) * 4 : 0,
                              .records = rng_below(g, 20) ? 1 : 0,
                              .epoch_records = rng_below(g, 20) ? 20 : 0,
                              .waiting = (int)rng_below(g, 3),
                              .n_hot = (int)rng_below(g, HOT + 2),
                              .alone = rng_below(g, 4) > 0,
                              .startup_s = (double)rng_below(g, 3),
                              .infeasible = rng_below(g, 2) > 0 };
    ev.kind = !running[trial]       ? EV_TRIAL_STARTED
              : rng_below(g, 4) > 0 ? EV_ITERATION
                                    : EV_ITERATION + (enum tuner_event_kind)rng_below(g, 9);
    if (ev.kind == EV_LOAD && rng_below(g, 2))
        ev.trial = 0;
    return ev;
}

/* Whatever comes in whatever order: every answer is one that could be carried out. */
static void test_any_events_get_answers_in_range(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct tuner *t = new_tuner();
        struct rng g = rng_seeded(seed);
        bool running[8] = { false };
        for (int i = 0; i < 2000; i++) {
            struct tuner_event ev = any_event(&g, running, i);
            struct tuner_actions acts;
            struct tuner_setting at;
            struct err e;
            char reason[TUNER_REASON_MAX];
            struct tuner_ask ask = { .trial = ev.trial,
                                     .class_key = ev.class_key,
                                     .family_key = ev.family_key,
                                     .start = { 1, 1 },
                                     .n_hot = ev.n_hot,
                                     .alone = ev.alone };
            if (ev.kind == EV_TRIAL_STARTED && rng_below(&g, 2))
                assert_int_equal(tuner_launch(t, &ask, &ev.setting, reason, &e), 0);
            assert_true(ev.setting.hot >= 0 && ev.setting.hot < HOT && ev.setting.cold >= 0 && ev.setting.cold < 2);
            assert_int_equal(tuner_step(t, &ev, &acts, &e), 0);
            running[ev.trial] = ev.trial > 0 && ev.kind != EV_TRIAL_ENDED && ev.kind != EV_TRIAL_LOST;
            for (size_t n = 0; n < acts.n; n++) {
                at = acts.list[n].setting;
                assert_true(at.hot >= 0 && at.hot < HOT && at.cold >= 0 && at.cold < 2);
                assert_true(acts.list[n].reason[0] && !isnan(acts.list[n].t_s));
            }
            assert_int_equal(tuner_current(t, ev.trial, &at), running[ev.trial]);
        }
        tuner_free(t);
    }
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
    ev = (struct tuner_event){ .kind = EV_FAILED, .trial = 9, .setting = { HOT, 0 } };
    assert_int_equal(tuner_step(t, &ev, &acts, &e), -EPROTO);
    ev = (struct tuner_event){ .kind = EV_TRIAL_STARTED, .trial = 8, .class_key = "c", .setting = { 0, 2 } };
    assert_int_equal(tuner_step(t, &ev, &acts, &e), -EPROTO);
    ev = (struct tuner_event){ .kind = EV_TRIAL_STARTED, .trial = 8, .epochs = 2 }; /* of no class */
    assert_int_equal(tuner_step(t, &ev, &acts, &e), -EPROTO);
    struct tuner_ask ask = { .trial = 8, .class_key = "c", .start = { -1, 0 } };
    char reason[TUNER_REASON_MAX];
    assert_int_equal(tuner_launch(t, &ask, &ev.setting, reason, &e), -EPROTO);
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
    window_begin(&w, 10, 1);
    const struct span span = { 3, 2 };
    assert_false(window_add(&w, 10.5, 0.5, 1)); /* the iteration of the change */
    assert_false(window_add(&w, 11.2, 0.7, 1)); /* began within the first second */
    assert_true(window_add(&w, 12.7, 1.5, 1));
    assert_false(window_lasted(&w, span));
    assert_true(window_add(&w, 14.2, 1.5, 1));
    assert_true(window_lasted(&w, span));
    assert_false(window_lasted(&w, (struct span){ 1, 3 }));
    assert_true(fabs(window_value(&w) - 1.5) < 1e-12);
    window_begin(&w, 20, 0);
    assert_true(window_add(&w, 25, 5, 1));
    assert_false(window_lasted(&w, span)); /* long enough, but one iteration is none */
    assert_true(window_add(&w, 30, 5, 1));
    assert_true(window_lasted(&w, span));
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
        cmocka_unit_test(test_what_a_setting_costs),
        cmocka_unit_test(test_what_is_learnt_holds_whatever_counts),
        cmocka_unit_test(test_a_settled_trial_follows_the_load),
        cmocka_unit_test(test_what_was_cut_is_looked_at_when_it_may_count),
        cmocka_unit_test(test_all_trials_follow_the_load),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_has_a_price_while_trials_wait),
        cmocka_unit_test(test_a_smaller_memory_than_one_that_works_is_not_tried),
        cmocka_unit_test(test_a_choice_that_gets_a_trial_nowhere_is_left),
        cmocka_unit_test(test_a_relaunch_is_planned_for_its_trial_alone),
        cmocka_unit_test(test_a_packed_trial_takes_what_is_known),
        cmocka_unit_test(test_a_trial_that_is_left_alone_probes),
        cmocka_unit_test(test_a_trial_that_is_left_alone_begins_with_the_default),
        cmocka_unit_test(test_what_ends_before_a_probe_would_is_not_probed),
        cmocka_unit_test(test_how_long_a_job_may_warm_up),
        cmocka_unit_test(test_a_first_look_is_short_while_trials_wait),
        cmocka_unit_test(test_a_job_that_warms_up_is_measured_from_both_sides),
        cmocka_unit_test(test_a_winner_settles_at_once_when_nothing_else_is_open),
        cmocka_unit_test(test_company_ends_a_round),
        cmocka_unit_test(test_a_break_voids_the_pair),
        cmocka_unit_test(test_a_late_answer_is_no_answer),
        cmocka_unit_test(test_a_lost_trial_teaches_nothing),
        cmocka_unit_test(test_a_launch_that_failed_bounds_what_never_trained),
        cmocka_unit_test(test_a_default_that_proved_too_little_is_not_launched_again),
        cmocka_unit_test(test_a_failure_bounds_less_memory_only_when_it_was_memory),
        cmocka_unit_test(test_the_same_events_give_the_same_actions),
        cmocka_unit_test(test_any_events_get_answers_in_range),
        cmocka_unit_test(test_impossible_events_are_told),
        cmocka_unit_test(test_memory_that_is_out_is_told),
        cmocka_unit_test(test_a_window_leaves_out_the_change),
        cmocka_unit_test(test_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
