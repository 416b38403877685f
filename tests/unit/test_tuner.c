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

enum { STEPS = 100, HOT = 3 };

static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

/* A job whose iteration takes step_s[hot] seconds; in its first epoch `cold` times that. */
struct job {
    double step_s[HOT];
    double cold;
    double noise;  /* amplitude of a repeating pattern */
    int refused;   /* a hot setting that cannot be had; -1: none */
    bool in_large; /* only in the large memory */
    double small;  /* how much slower the small memory is; 0: not */
};

struct run {
    struct tuner *t;
    const char *class_key, *family_key; /* NULL: "class", none */
    int n_hot, first_epoch;             /* of the next trial; 0: all, 1 */
    bool packed;
    double startup_s;
    bool relaunch;    /* was asked for */
    bool unexplained; /* launches that fail */
    int launches;
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

static bool can_be_had(const struct job *j, struct tuner_setting s)
{
    return s.hot != j->refused || (j->in_large && s.cold == 0);
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
        r->relaunch |= a->kind == ACT_RELAUNCH;
        if (a->kind != ACT_APPLY)
            continue;
        r->applies++;
        if (!can_be_had(j, a->setting)) {
            feed(r, j, (struct tuner_event){ .kind = EV_FAILED, .setting = a->setting, .infeasible = true });
            return;
        }
        r->at = a->setting;
    }
}

static double step_of(const struct run *r, const struct job *j, int epoch, int i)
{
    double wave = 1.0 + j->noise * ((i * 7) % 11 - 5) / 5.0;
    double memory = r->at.cold == 0 && j->small > 0 ? j->small : 1;
    return j->step_s[r->at.hot] * (epoch == r->first_epoch || epoch == 1 ? j->cold : 1.0) * memory * wave;
}

static void run_iteration(struct run *r, const struct job *j, int epoch, int i)
{
    double begin = r->now_s, left = 1.0;
    for (;;) {
        double whole = step_of(r, j, epoch, i), end = r->now_s + left * whole;
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

static const char *class_of(const struct run *r)
{
    return r->class_key ? r->class_key : "class";
}

static struct tuner_setting launch(struct run *r, struct tuner_setting start)
{
    char reason[TUNER_REASON_MAX];
    struct err e;
    struct tuner_setting at;
    struct tuner_ask ask = { .trial = 1,
                             .class_key = class_of(r),
                             .family_key = r->family_key,
                             .start = start,
                             .n_hot = r->n_hot,
                             .alone = !r->packed };
    assert_int_equal(tuner_launch(r->t, &ask, &at, reason, &e), 0);
    return at;
}

static void begin_trial(struct run *r, const struct job *j, struct tuner_setting start)
{
    for (;;) {
        r->at = launch(r, start);
        r->now_s += r->startup_s;
        r->launches++;
        if (can_be_had(j, r->at))
            break;
        feed(r, j,
             (struct tuner_event){ .kind = EV_FAILED,
                                   .class_key = class_of(r),
                                   .family_key = r->family_key,
                                   .setting = r->at,
                                   .infeasible = true,
                                   .unexplained = r->unexplained });
    }
    r->relaunch = false;
    feed(r, j,
         (struct tuner_event){ .kind = EV_TRIAL_STARTED,
                               .class_key = class_of(r),
                               .family_key = r->family_key,
                               .setting = r->at,
                               .epoch = r->first_epoch ? r->first_epoch : 1,
                               .epochs = 10,
                               .n_hot = r->n_hot,
                               .alone = !r->packed,
                               .startup_s = r->startup_s });
}

/* False: a relaunch was asked for before it ended. */
static bool run_epoch(struct run *r, const struct job *j, int epoch)
{
    double from = r->now_s;
    for (int i = 0; i < STEPS && !r->relaunch; i++)
        run_iteration(r, j, epoch, i);
    if (r->relaunch)
        return false;
    feed(r, j, (struct tuner_event){ .kind = EV_EPOCH, .epoch = epoch, .seconds = r->now_s - from, .records = STEPS });
    return true;
}

static void end_trial(struct run *r, const struct job *j)
{
    struct tuner_setting at = r->at;
    feed(r, j, (struct tuner_event){ .kind = EV_TRIAL_ENDED });
    r->at = at;
}

/* One trial of ten epochs; its seconds. What was done of an epoch is lost in a relaunch. */
static double run_trial(struct run *r, const struct job *j, struct tuner_setting start)
{
    double begin = r->now_s;
    int first = r->first_epoch, epoch = first ? first : 1;
    begin_trial(r, j, start);
    while (epoch <= 10) {
        epoch += run_epoch(r, j, epoch);
        if (!r->relaunch)
            continue;
        feed(r, j, (struct tuner_event){ .kind = EV_TRIAL_LOST });
        r->first_epoch = epoch;
        begin_trial(r, j, start);
    }
    r->first_epoch = first;
    assert_true(tuner_settled(r->t, 1));
    end_trial(r, j);
    return r->now_s - begin;
}

static const struct {
    const char *name;
    struct job job;
    int start, want;
    double most; /* seconds over those of the best setting */
} cases[] = {
    { "the best is the largest", { { 4, 2, 1 }, 1, 0, -1, false, 0 }, 0, 2, 1.03 },
    { "the best is where it began", { { 1, 2, 4 }, 1, 0, -1, false, 0 }, 0, 0, 1.03 },
    { "the best lies in the middle", { { 2, 1, 1.5 }, 1, 0, -1, false, 0 }, 0, 1, 1.03 },
    { "a cold first epoch changes nothing", { { 4, 2, 1 }, 3, 0, -1, false, 0 }, 0, 2, 1.04 },
    { "a candidate 15 times slower is cut", { { 15, 1, 1.2 }, 1, 0, -1, false, 0 }, 1, 1, 1.03 },
    { "of equal settings the cheaper one wins", { { 1, 1, 1 }, 1, 0, -1, false, 0 }, 2, 0, 1.01 },
    { "noise does not hide 10 %", { { 1.3, 1, 1.1 }, 1, 0.03, -1, false, 0 }, 0, 1, 1.05 },
    { "what is refused is not asked for again", { { 2, 1.5, 1 }, 1, 0, 2, false, 0 }, 0, 1, 1.04 },
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
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    int applies = r.applies;
    double took = run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    assert_true(took < 1.01 * 1000);
    took = run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    assert_true(fabs(took - 1000) < 1e-6);
    assert_true(r.applies - applies <= 2);
    tuner_free(r.t);
}

/* --- what counts while trials wait --- */

static struct run fresh_run(void)
{
    return (struct run){ .t = new_tuner(), .wake_s = INFINITY };
}

static void load(struct run *r, int waiting)
{
    struct tuner_actions acts;
    struct err e;
    struct tuner_event ev = { .kind = EV_LOAD, .t_s = r->now_s, .waiting = waiting };
    assert_int_equal(tuner_step(r->t, &ev, &acts, &e), 0);
    for (size_t i = 0; i < acts.n; i++) {
        r->len += (size_t)snprintf(r->story + r->len, sizeof r->story - r->len, "%d %d %s\n", acts.list[i].trial,
                                   acts.list[i].kind, acts.list[i].reason);
        if (acts.list[i].kind == ACT_APPLY && acts.list[i].trial == 1)
            r->at = acts.list[i].setting;
    }
}

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
        static struct run r;
        r = fresh_run();
        struct job j = { .cold = 1, .refused = -1 };
        memcpy(j.step_s, costs[i].step_s, sizeof j.step_s);
        r.n_hot = costs[i].n_hot;
        load(&r, costs[i].waiting);
        (void)run_trial(&r, &j, (struct tuner_setting){ costs[i].start, 0 });
        if (r.at.hot != costs[i].want)
            fail_msg("%s: got hot %d, want %d\n%s", costs[i].name, r.at.hot, costs[i].want, r.story);
        tuner_free(r.t);
    }
}

static void test_what_is_learnt_holds_whatever_counts(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 1.2, 0.64, 0.4 }, 1, 0, -1, false, 0 };
    for (int waiting = 0; waiting <= 1; waiting++) { /* when it is learnt */
        r = fresh_run();
        load(&r, waiting);
        (void)run_trial(&r, &j, (struct tuner_setting){ 1, 1 });
        load(&r, 0);
        assert_int_equal(launch(&r, (struct tuner_setting){ 1, 1 }).hot, 2);
        r.n_hot = 2;
        assert_int_equal(launch(&r, (struct tuner_setting){ 1, 1 }).hot, 1);
        load(&r, 1);
        assert_int_equal(launch(&r, (struct tuner_setting){ 1, 1 }).hot, 0);
        tuner_free(r.t);
    }
}

static void test_a_settled_trial_follows_the_load(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 3, 1.6, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    load(&r, 1);
    begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    (void)run_epoch(&r, &j, 1);
    (void)run_epoch(&r, &j, 2);
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 0);
    load(&r, 0);
    assert_int_equal(r.at.hot, 2);
    assert_non_null(strstr(r.story, "no trial waits any more: 16 cores are 200 % faster than 4"));
    load(&r, 1);
    assert_int_equal(r.at.hot, 0);
    assert_non_null(strstr(r.story, "trials wait: 4 cores take 25 % fewer core-seconds than 16"));
    size_t len = r.len;
    load(&r, 2); /* they wait already */
    assert_int_equal(r.len, len);
    tuner_free(r.t);
}

static void test_what_was_cut_is_looked_at_when_it_may_count(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 48, 30, 24 }, 1, 0, -1, false, 0 }; /* a cut comes within the first iteration */
    r = fresh_run();
    load(&r, 1);
    begin_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    (void)run_epoch(&r, &j, 1);
    (void)run_epoch(&r, &j, 2);
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 0);
    load(&r, 0);
    assert_false(tuner_settled(r.t, 1));
    (void)run_epoch(&r, &j, 3);
    assert_true(tuner_settled(r.t, 1));
    assert_int_equal(r.at.hot, 2);
    tuner_free(r.t);
}

/* An answer has room for a few trials; the others are told with their next event. */
static void test_all_trials_follow_the_load(void **state)
{
    (void)state;
    enum { TRIALS = 5 };
    static struct run r;
    struct job j = { { 1.6, 1, 0.8 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    (void)run_trial(&r, &j, (struct tuner_setting){ 1, 1 });
    struct tuner_actions acts;
    struct tuner_setting at;
    struct err e;
    for (int n = 1; n <= TRIALS; n++) {
        struct tuner_event ev = {
            .kind = EV_TRIAL_STARTED, .trial = n, .class_key = "class", .setting = { 2, 1 }, .epochs = 10, .t_s = n
        };
        assert_int_equal(tuner_step(r.t, &ev, &acts, &e), 0);
    }
    load(&r, 1);
    for (int n = 1; n <= TRIALS; n++) {
        struct tuner_event ev = { .kind = EV_TICK, .trial = n, .t_s = 100 };
        assert_int_equal(tuner_step(r.t, &ev, &acts, &e), 0);
        assert_true(tuner_current(r.t, n, &at) && at.hot == 0);
    }
    tuner_free(r.t);
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
      { { 4, 2, 1 }, 1, 0, 2, false, 0 },
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
        static struct run r;
        const struct job *j = &memories[i].job;
        r = fresh_run();
        r.startup_s = memories[i].startup_s;
        double took = run_trial(&r, j, memories[i].start);
        double best = r.startup_s + 10 * STEPS * j->step_s[memories[i].want.hot];
        if (r.at.hot != memories[i].want.hot || r.at.cold != memories[i].want.cold ||
            r.launches != memories[i].launches || took > memories[i].most * best)
            fail_msg("%s: got %d, %d in %d launches and %.0f s (%.3f of the best)\n%s", memories[i].name, r.at.hot,
                     r.at.cold, r.launches, took, took / best, r.story);
        double best_again = took; /* what was learnt on the way is kept, and what a later trial tries costs little */
        for (int n = 0; n < 3; n++) {
            double again = run_trial(&r, j, memories[i].start);
            if (again > took + 2.5 * r.startup_s)
                fail_msg("%s: again %.0f s, first %.0f s\n%s", memories[i].name, again, took, r.story);
            best_again = again < best_again ? again : best_again;
        }
        r.launches = 0;
        double last = run_trial(&r, j, memories[i].start);
        if (last > best_again * 1.001 || r.launches != 1)
            fail_msg("%s: at last %.0f s in %d launches, best %.0f s\n%s", memories[i].name, last, r.launches,
                     best_again, r.story);
        tuner_free(r.t);
    }
}

static void test_memory_has_a_price_while_trials_wait(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).cold, 1);
    r.packed = true;
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).cold, 0);
    r.packed = false;
    load(&r, 1);
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).cold, 0);
    load(&r, 0);
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 0 }); /* in the large one; nobody knows if that is why */
    r.packed = true;
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).cold, 0);
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).hot, 2);
    r.family_key = NULL;
    tuner_free(r.t);
}

static void test_a_smaller_memory_than_one_that_works_is_not_tried(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    r.startup_s = 10;
    for (int trial = 1; trial <= 9; trial++) {
        (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
        assert_true(r.at.hot == 2 && r.at.cold == 1);
    }
    assert_int_equal(r.launches, 9);
    tuner_free(r.t);
}

static void test_a_choice_that_gets_a_trial_nowhere_is_left(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 1000 };
    struct tuner_space space = { .n_hot = HOT, .n_cold = 2, .cores = { 4, 8, 16 }, .other = { 0, 1 } };
    r = fresh_run();
    tuner_free(r.t);
    r.t = tuner_new(&space, &cfg);
    r.startup_s = 1;
    struct tuner_setting start = { 0, 1 };
    (void)run_trial(&r, &j, start);
    begin_trial(&r, &j, start);
    for (int trial = 0; r.at.cold == 1; trial++) { /* until one is a try */
        assert_true(trial < 10);
        for (int epoch = 1; epoch <= 10; epoch++)
            (void)run_epoch(&r, &j, epoch);
        end_trial(&r, &j);
        begin_trial(&r, &j, start);
    }
    run_iteration(&r, &j, 1, 0); /* ten times as long as an epoch should take */
    assert_true(r.relaunch);
    assert_non_null(strstr(r.story, "what is tried gets it nowhere"));
    feed(&r, &j, (struct tuner_event){ .kind = EV_TRIAL_LOST });
    begin_trial(&r, &j, start);
    assert_int_equal(r.at.cold, 1);
    tuner_free(r.t);
}

static void test_a_relaunch_is_planned_for_its_trial_alone(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, 2, .in_large = true };
    r = fresh_run();
    r.startup_s = 20;
    begin_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    for (int epoch = 1; run_epoch(&r, &j, epoch); epoch++)
        assert_true(epoch < 10);
    size_t len = r.len;
    (void)run_iteration(&r, &j, 1, 0); /* it trains on until it is ended */
    assert_non_null(strstr(r.story, "cores that this memory does not let run are worth a try"));
    assert_null(strstr(r.story + len, "worth a try"));
    struct tuner_ask ask = { .trial = 2, .class_key = "class", .start = { 0, 0 } };
    struct tuner_setting at;
    struct err e;
    char reason[TUNER_REASON_MAX];
    assert_int_equal(tuner_launch(r.t, &ask, &at, reason, &e), 0);
    assert_true(at.hot == 1);
    struct tuner_setting mine = launch(&r, (struct tuner_setting){ 0, 0 });
    assert_true(mine.hot == 2 && mine.cold == 0);
    struct tuner_event ev = {
        .kind = EV_TRIAL_STARTED, .trial = 1, .class_key = "class", .setting = mine, .epochs = 10
    };
    struct tuner_actions acts;
    assert_int_equal(tuner_step(r.t, &ev, &acts, &e), 0); /* also without a word that it was lost */
    tuner_free(r.t);
}

/* --- trials beside each other --- */

static void test_a_packed_trial_takes_what_is_known(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    r.packed = true;
    r.family_key = "family";
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    assert_true(r.applies == 0 && r.settles == 1);
    r.packed = false;
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 1 }).hot, 0); /* nothing was learnt beside others */
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    r.packed = true;
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    assert_int_equal(r.at.hot, 2);
    r.class_key = "other batch";
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    assert_int_equal(r.at.hot, 2);
    r.n_hot = 2;
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    assert_int_equal(r.at.hot, 1);
    r.class_key = "stranger";
    r.family_key = NULL;
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 1 });
    assert_int_equal(r.at.hot, 0);
    tuner_free(r.t);
}

static void share(struct run *r, const struct job *j, int n_hot, bool alone)
{
    feed(r, j, (struct tuner_event){ .kind = EV_LOAD, .n_hot = n_hot, .alone = alone });
}

static void test_a_trial_that_is_left_alone_probes(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    r.packed = true;
    r.n_hot = 2;
    begin_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    (void)run_epoch(&r, &j, 1);
    assert_true(r.applies == 0);
    share(&r, &j, 0, true);
    assert_false(tuner_settled(r.t, 1));
    (void)run_epoch(&r, &j, 2);
    (void)run_epoch(&r, &j, 3);
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 2);
    share(&r, &j, 2, true);
    assert_int_equal(r.at.hot, 1);
    assert_non_null(strstr(r.story, "it may have fewer cores: 8 cores"));
    share(&r, &j, 0, true);
    assert_int_equal(r.at.hot, 2);
    assert_non_null(strstr(r.story, "there are more cores for it: 16 cores are 100 % faster than 8"));
    end_trial(&r, &j);
    assert_int_equal(launch(&r, (struct tuner_setting){ 0, 0 }).hot, 1); /* within n_hot */
    tuner_free(r.t);
}

/* What was left for it beside others was no choice: alone it begins with the default. */
static void test_a_trial_that_is_left_alone_begins_with_the_default(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    load(&r, 1);
    r.packed = true;
    r.n_hot = 1;
    begin_trial(&r, &j, (struct tuner_setting){ 2, 0 });
    (void)run_epoch(&r, &j, 1);
    assert_int_equal(r.at.hot, 0);
    load(&r, 0);
    assert_int_equal(r.at.hot, 0); /* there are no cores for it yet */
    share(&r, &j, 0, true);
    assert_int_equal(r.at.hot, 2);
    assert_false(tuner_settled(r.t, 1));
    (void)run_epoch(&r, &j, 2);
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 2);
    tuner_free(r.t);
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
        static struct run r;
        r = fresh_run();
        struct job j = { .cold = 1, .refused = -1 };
        for (int h = 0; h < HOT; h++)
            j.step_s[h] = rows[i].step_s;
        load(&r, 1);
        r.first_epoch = rows[i].first_epoch;
        begin_trial(&r, &j, (struct tuner_setting){ 2, 0 });
        (void)run_epoch(&r, &j, rows[i].first_epoch);
        if ((r.applies > 0) != rows[i].probes)
            fail_msg("%s: %d changes\n%s", rows[i].name, r.applies, r.story);
        tuner_free(r.t);
    }
}

/* A job whose speed goes up and down by half from window to window. */
static double restless(struct run *r, int epoch)
{
    double from = r->now_s;
    double step_s = fmod(floor(from / 3), 2) < 0.5 ? 0.25 : 0.375;
    struct job j = { { 1.25 * step_s, step_s, 1 }, 1, 0, -1, false, 0 };
    run_iteration(r, &j, epoch, 0);
    return r->now_s - from;
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
        static struct run r;
        struct job j = { { 1, 1, 1 }, 1, 0, -1, false, 0 };
        double took = 0;
        r = fresh_run();
        r.n_hot = 2;
        load(&r, first_probes[i].waiting);
        begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
        for (int k = 0; k < STEPS && r.applies == 0; k++)
            took += restless(&r, 1);
        if (r.applies == 0 || took < first_probes[i].least || took > first_probes[i].most)
            fail_msg("%s: after %.1f s\n%s", first_probes[i].name, took, r.story);
        tuner_free(r.t);
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
        static struct run r;
        struct job j = { { first_looks[i].one_core_s, 0.1, 1 }, 1, 0, -1, false, 0 };
        r = fresh_run();
        r.n_hot = 2;
        load(&r, 1);
        begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
        double began_s = r.now_s;
        for (int k = 0; k < 10 * STEPS && !tuner_settled(r.t, 1); k++)
            run_iteration(&r, &j, 1, k);
        double took = r.now_s - began_s;
        if (r.at.hot != 0 || took < first_looks[i].least || took > first_looks[i].most)
            fail_msg("%s: after %.1f s on %d\n%s", first_looks[i].name, took, r.at.hot, r.story);
        tuner_free(r.t);
    }
}

/* What is learnt while a job warms up is no better for what was measured last. */
static void test_a_job_that_warms_up_is_measured_from_both_sides(void **state)
{
    (void)state;
    static struct run r;
    r = fresh_run();
    r.n_hot = 2;
    load(&r, 1);
    begin_trial(&r, &(struct job){ { 1, 1, 1 }, 1, 0, -1, false, 0 }, (struct tuner_setting){ 1, 0 });
    for (int i = 0; i < STEPS; i++) {
        double warm = 1 + exp(-r.now_s / 5);
        struct job j = { { 0.3 * warm, 0.25 * warm, 1 }, 1, 0, -1, false, 0 };
        run_iteration(&r, &j, 1, i);
    }
    assert_int_equal(r.at.hot, 0);
    load(&r, 0);
    if (r.at.hot != 1)
        fail_msg("a setting that is slower by a fifth was learnt to be faster\n%s", r.story);
    tuner_free(r.t);
}

/* With it others may be packed beside the trial. */
static void test_a_winner_settles_at_once_when_nothing_else_is_open(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 0.4, 0.3, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    r.n_hot = 2;
    load(&r, 1);
    begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    for (int i = 0; i < STEPS && (r.at.hot == 1 || r.applies < 3); i++)
        run_iteration(&r, &j, 1, i);
    double since = r.now_s;
    for (int i = 0; i < STEPS && !tuner_settled(r.t, 1); i++)
        run_iteration(&r, &j, 1, i);
    assert_int_equal(r.at.hot, 0);
    if (r.now_s - since > 5) /* a second after the change, and one window */
        fail_msg("settled after %.1f s\n%s", r.now_s - since, r.story);
    tuner_free(r.t);
}

static void test_company_ends_a_round(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 1.1, 1, 1.05 }, 1, 0.02, -1, false, 0 };
    r = fresh_run();
    begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    for (int i = 0; r.at.hot == 1; i++)
        run_iteration(&r, &j, 1, i);
    share(&r, &j, 0, false); /* while a candidate is measured */
    assert_true(tuner_settled(r.t, 1));
    assert_int_equal(r.at.hot, 1);
    for (int epoch = 2; epoch <= 3; epoch++)
        (void)run_epoch(&r, &j, epoch);
    assert_true(tuner_settled(r.t, 1));
    tuner_free(r.t);
}

/* --- what is void, refused, lost --- */

static void test_a_break_voids_the_pair(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    for (int i = 0; r.at.hot == 1; i++)
        run_iteration(&r, &j, 1, i);
    feed(&r, &j, (struct tuner_event){ .kind = EV_BREAK });
    assert_int_equal(r.at.hot, 1);
    assert_non_null(strstr(r.story, "back to 8 cores: what was being measured is void"));
    for (int epoch = 1; epoch <= 3; epoch++)
        (void)run_epoch(&r, &j, epoch);
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 2);
    feed(&r, &j, (struct tuner_event){ .kind = EV_BREAK }); /* of a settled trial */
    assert_true(tuner_settled(r.t, 1) && r.at.hot == 2);
    tuner_free(r.t);
}

static void test_a_late_answer_is_no_answer(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 1, 1.2, 1.3 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    begin_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    for (int i = 0; r.at.hot == 0; i++)
        run_iteration(&r, &j, 1, i);
    double wake_s = r.wake_s;
    feed(&r, &j, (struct tuner_event){ .kind = EV_APPLIED, .setting = { 0, 0 } });
    feed(&r, &j, (struct tuner_event){ .kind = EV_TICK });
    assert_true(r.wake_s == wake_s); /* its time began when it was asked for … */
    r.now_s += 1;
    feed(&r, &j, (struct tuner_event){ .kind = EV_APPLIED, .setting = r.at });
    feed(&r, &j, (struct tuner_event){ .kind = EV_TICK });
    assert_true(fabs(r.wake_s - wake_s - 1) < 1e-9); /* … and now, when it is in force */
    tuner_free(r.t);
}

static void test_a_lost_trial_teaches_nothing(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    begin_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    for (int i = 0; r.at.hot == 1; i++)
        run_iteration(&r, &j, 1, i);
    feed(&r, &j, (struct tuner_event){ .kind = EV_TRIAL_LOST });
    assert_false(tuner_settled(r.t, 1));
    assert_int_equal(launch(&r, (struct tuner_setting){ 1, 0 }).hot, 1);
    r.first_epoch = 4; /* it goes on from a checkpoint, and its first epoch is a cold one again */
    j.cold = 1;
    (void)run_trial(&r, &j, (struct tuner_setting){ 1, 0 });
    assert_int_equal(r.at.hot, 2);
    tuner_free(r.t);
}

static void test_a_launch_that_failed_bounds_what_never_trained(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    r = fresh_run();
    load(&r, 1); /* the default memory, then */
    (void)run_trial(&r, &j, (struct tuner_setting){ 0, 0 });
    load(&r, 0);
    struct tuner_setting next = launch(&r, (struct tuner_setting){ 0, 0 });
    assert_true(next.hot == 2 && next.cold == 1);
    feed(&r, &j, (struct tuner_event){ .kind = EV_FAILED, .class_key = "class", .setting = next, .infeasible = true });
    next = launch(&r, (struct tuner_setting){ 0, 0 });
    assert_true(next.cold == 0 && next.hot == 2); /* where it has trained, it can train */
    tuner_free(r.t);
}

static void test_a_default_that_proved_too_little_is_not_launched_again(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 2, 1 }, 1, 0, -1, false, 0 };
    struct tuner_setting start = { 0, 0 };
    r = fresh_run();
    load(&r, 1); /* nobody gets more than the default for nothing */
    assert_int_equal(launch(&r, start).cold, 0);
    feed(&r, &j, (struct tuner_event){ .kind = EV_FAILED, .class_key = "class", .setting = start, .infeasible = true });
    assert_int_equal(launch(&r, start).cold, 1);
    tuner_free(r.t);
}

static void test_a_failure_bounds_less_memory_only_when_it_was_memory(void **state)
{
    (void)state;
    static struct run r;
    struct job j = { { 4, 1, 2 }, 1, 0, 1, true, 0 }; /* its best cores run in the smallest of three memories alone */
    struct tuner_space space = { .n_hot = HOT, .n_cold = 3, .cores = { 4, 8, 16 }, .memory = { 4, 8, 16 } };
    for (int unexplained = 0; unexplained <= 1; unexplained++) {
        r = (struct run){ .t = tuner_new(&space, &cfg), .wake_s = INFINITY, .startup_s = 1 };
        r.unexplained = unexplained;
        for (int trial = 0; trial < 3; trial++)
            (void)run_trial(&r, &j, (struct tuner_setting){ 0, 2 });
        assert_int_equal(r.at.hot, unexplained ? 1 : 2);
        tuner_free(r.t);
    }
}

static void test_the_same_events_give_the_same_actions(void **state)
{
    (void)state;
    static struct run a, b;
    struct job j = { { 1.3, 1, 1.1 }, 2, 0.05, -1, false, 0 };
    a = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    b = (struct run){ .t = new_tuner(), .wake_s = INFINITY };
    (void)run_trial(&a, &j, (struct tuner_setting){ 0, 0 });
    (void)run_trial(&b, &j, (struct tuner_setting){ 0, 0 });
    assert_string_equal(a.story, b.story);
    tuner_free(a.t);
    tuner_free(b.t);
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
