#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/replay.h"
#include "tests/bench/gen_timeline.h"

#define FIRST REPLAY_FIRST
#define LAST REPLAY_LAST
#define MEAN REPLAY_MEAN
#define RECORDED REPLAY_RECORDED

/* U = 10. Settings (cores, memory), then D(c,1), S(c) and the recorded epochs:
 *   (2,4) 100 40    (2,8) 90 45    (4,4) 80 30    (4,8) infeasible    (8,4) 80 20    (8,8) 85 18
 * From the first, d = (2,4), the probes are (4,4) (8,4) (2,8); from the last, d = (8,8), they are (2,8) (8,4). */
static const struct timeline_epoch e24[] = { { .duration_s = 100 }, { .duration_s = 44 }, { .duration_s = 36 } };
static const struct timeline_epoch e28[] = { { .duration_s = 90 }, { .duration_s = 46 }, { .duration_s = 44 } };
static const struct timeline_epoch e44[] = { { .duration_s = 80 }, { .duration_s = 28 }, { .duration_s = 32 } };
static const struct timeline_epoch e84[] = { { .duration_s = 80 }, { .duration_s = 22 }, { .duration_s = 18 } };
static const struct timeline_epoch e88[] = { { .duration_s = 85 }, { .duration_s = 18 }, { .duration_s = 18 } };
static struct timeline_cell grid[] = {
    { 2, 4, true, 100, 40, e24, 3 },    { 2, 8, true, 90, 45, e28, 3 }, { 4, 4, true, 80, 30, e44, 3 },
    { 4, 8, false, NAN, NAN, NULL, 0 }, { 8, 4, true, 80, 20, e84, 3 }, { 8, 8, true, 85, 18, e88, 3 },
};

/* d = (1,1) has D = S = 50; (2,1) was recorded for one epoch of 50, so its S is 50 too. */
static const struct timeline_epoch one[] = { { .duration_s = 50 } };
static struct timeline_cell tied[] = { { 1, 1, true, 50, 50, one, 1 }, { 2, 1, true, 50, 50, one, 1 } };

static struct timeline_cell lone[] = { { 1, 1, false, NAN, NAN, NULL, 0 }, { 4, 2, true, 7, 7, one, 1 } };

static struct timeline_cell hopeless[] = { { 1, 1, false, NAN, NAN, NULL, 0 }, { 2, 1, false, NAN, NAN, NULL, 0 } };

/* Cores alone were recorded; epoch 2 of the second has a hole. D = 30, 20; S = 12, 10. */
static const struct timeline_epoch gap[] = { { .duration_s = 20 }, { .duration_s = NAN } };
static struct timeline_cell no_memory[] = { { 1, NAN, true, 30, 12, one, 1 }, { 2, NAN, true, 20, 10, gap, 2 } };

/* The largest memory was never seen to work. */
static struct timeline_cell small[] = { { 1, 1, true, 7, 7, one, 1 }, { 1, 2, false, NAN, NAN, NULL, 0 } };

/* The quick cores work in the small memory alone; epochs of 100 or 10 s. */
static struct timeline_cell apart[] = { { 1, 1, true, 100, 100, one, 1 },
                                        { 1, 2, true, 100, 100, one, 1 },
                                        { 2, 1, true, 10, 10, one, 1 },
                                        { 2, 2, false, NAN, NAN, NULL, 0 } };

#define JOB(cells)                                                                                                     \
    {                                                                                                                  \
        "m", "d", 32, 10, cells, ARRAY_LEN(cells)                                                                      \
    }

static struct timeline_job jobs[] = { JOB(grid),
                                      JOB(tied),
                                      JOB(lone),
                                      JOB(hopeless),
                                      JOB(no_memory),
                                      { "m", "d", 64, NAN, NULL, 0 },
                                      { "m", "d", 96, NAN, tied, ARRAY_LEN(tied) },
                                      JOB(small),
                                      JOB(apart) };
enum job { GRID, TIED, LONE, HOPELESS, NO_MEMORY, EMPTY, NO_STARTUP, SMALL, APART };

static const struct {
    const char *name, *policy;
    enum job job;
    struct replay_options o; /* epochs, repeat, start, probe */
    double want_s;           /* NAN: none */
    int cores;
    double memory_gb;
} cases[] = {
    /* 10 + 100 + 5·40 */
    { "v1_first trains at the first", "v1_first", GRID, { 6, 1, LAST, MEAN }, 310, 2, 4 },
    /* 10 + 85 + 5·18 */
    { "v1_max trains at the last", "v1_max", GRID, { 6, 1, FIRST, MEAN }, 185, 8, 8 },
    { "a repeat is another submission", "v1_max", GRID, { 6, 3, FIRST, MEAN }, 3 * 185, 8, 8 },
    /* fresh(·,6) = 310, 325, 240, 190, 185: together 1250 */
    { "v2_grid trains at every feasible setting", "v2_grid", GRID, { 6, 1, FIRST, MEAN }, 1250, 8, 8 },
    { "v2_random is their mean, and ends on none", "v2_random", GRID, { 6, 1, FIRST, MEAN }, 250, 0, 0 },
    /* 110 + 90 + 90 + 100 = 390; D = 100, 80, 80, 90: (4,4) before (8,4); fresh((4,4),2) = 10 + 80 + 30 = 120 */
    { "original submits each probe", "original", GRID, { 6, 1, FIRST, MEAN }, 510, 4, 4 },
    /* 95 + 100 + 90 = 285, D = 85, 90, 80; fresh((8,4),2) = 10 + 80 + 20 = 110 */
    { "original starts from the last", "original", GRID, { 6, 1, LAST, MEAN }, 395, 8, 4 },
    /* max(1, 3 - 4) = 1: 390 + 90 */
    { "original trains one epoch at least", "original", GRID, { 3, 1, FIRST, MEAN }, 480, 4, 4 },
    { "original probes for every trial", "original", GRID, { 6, 2, FIRST, MEAN }, 1020, 4, 4 },
    /* 390 + fresh((4,4),6) = 240 */
    { "orig_fair trains all epochs", "orig_fair", GRID, { 6, 1, FIRST, MEAN }, 630, 4, 4 },
    /* 285 + fresh((8,4),6) = 190 */
    { "orig_fair starts from the last", "orig_fair", GRID, { 6, 1, LAST, MEAN }, 475, 8, 4 },
    /* 10 + 100, probes 30 + 20 + 45, best 20: two epochs are left, 40 */
    { "paper probes one setting per epoch", "paper", GRID, { 6, 1, FIRST, MEAN }, 245, 8, 4 },
    /* met: 10 + 100 + 5·20 = 210, twice */
    { "paper knows a job that it met", "paper", GRID, { 6, 3, FIRST, MEAN }, 245 + 2 * 210, 8, 4 },
    /* epoch 2 of (4,4) is 28, 3 of (8,4) is 18, (2,8) has no epoch 4, so 45; then 2·S = 40 */
    { "paper probes what was recorded", "paper", GRID, { 6, 1, FIRST, RECORDED }, 241, 8, 4 },
    /* 10 + 85, probes 45 + 20, best 20: three epochs are left, 60 */
    { "paper starts from the last", "paper", GRID, { 6, 1, LAST, MEAN }, 220, 8, 4 },
    { "paper in one epoch probes nothing", "paper", GRID, { 1, 1, FIRST, MEAN }, 110, 2, 4 },
    /* 110 + 30; met: 110 + 30 */
    { "paper in two epochs probes once, and goes by that", "paper", GRID, { 2, 2, FIRST, MEAN }, 280, 4, 4 },
    /* epoch 4 is the last probe: 110 + 30 + 20 + 45 */
    { "paper may end with its last probe", "paper", GRID, { 4, 1, FIRST, MEAN }, 205, 8, 4 },
    /* D + 5·S = 300, 315, 230, 180, 175 */
    { "oracle knows the best", "oracle", GRID, { 6, 2, FIRST, MEAN }, 2 * 185, 8, 8 },
    /* D = 100, 90, 80, 80, 85 */
    { "oracle takes the earlier of equals", "oracle", GRID, { 1, 1, LAST, MEAN }, 90, 4, 4 },

    /* 10 + 50 + 50 = 110 each; ties go to the earliest: d, then the probes */
    { "v2_grid takes the earlier of equals", "v2_grid", TIED, { 2, 1, FIRST, MEAN }, 220, 1, 1 },
    { "original stays where nothing is better", "original", TIED, { 2, 1, FIRST, MEAN }, 60 * 3, 1, 1 },
    { "original stays at the last too", "original", TIED, { 2, 1, LAST, MEAN }, 60 * 3, 2, 1 },
    { "paper stays where nothing is better", "paper", TIED, { 3, 1, FIRST, MEAN }, 160, 1, 1 },
    { "paper probes an epoch that was not recorded", "paper", TIED, { 2, 1, FIRST, RECORDED }, 110, 1, 1 },
    { "oracle from the last takes the earlier too", "oracle", TIED, { 2, 1, LAST, MEAN }, 110, 1, 1 },

    /* (1,1) is infeasible: nothing is left to probe. fresh(·,3) = 10 + 3·7 = 31, fresh(·,1) = 17 */
    { "v1_first skips what is infeasible", "v1_first", LONE, { 3, 1, FIRST, MEAN }, 31, 4, 2 },
    { "orig_fair without probes", "orig_fair", LONE, { 3, 1, FIRST, MEAN }, 17 + 31, 4, 2 },
    { "paper without probes", "paper", LONE, { 3, 2, FIRST, MEAN }, 62, 4, 2 },
    { "oracle of one setting", "oracle", LONE, { 3, 1, FIRST, MEAN }, 31, 4, 2 },

    /* 10 + 30 + 10 (the mean of the hole) + 10 */
    { "without memories the cores are probed", "paper", NO_MEMORY, { 3, 1, FIRST, RECORDED }, 60, 2, NAN },
    /* 40 + 30 + (10 + 20 + 2·10) */
    { "orig_fair probes the cores alone", "orig_fair", NO_MEMORY, { 3, 1, FIRST, MEAN }, 120, 2, NAN },

    { "v1_first of nothing", "v1_first", HOPELESS, { 3, 2, FIRST, MEAN }, NAN, 0, 0 },
    { "v1_max of nothing", "v1_max", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "v2_random of nothing", "v2_random", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "v2_grid of nothing", "v2_grid", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "original of nothing", "original", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "orig_fair of nothing", "orig_fair", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "paper of nothing", "paper", HOPELESS, { 3, 2, LAST, RECORDED }, NAN, 0, 0 },
    { "oracle of nothing", "oracle", HOPELESS, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    /* the launch that failed, and 10 + 3·7 */
    { "an infeasible launch costs a start-up", "pipetune", SMALL, { 3, 1, FIRST, MEAN }, 10 + 31, 1, 1 },
    { "what cannot be had is not tried again", "pipetune", SMALL, { 3, 4, FIRST, MEAN }, 10 + 4 * 31, 1, 1 },
    /* 10, and two windows of 3 s in the large memory, in vain; 10, one second after the change to the class's best cores and two
     * windows of 3 s in the small one, 7 % of its first epoch; the other 93 % at 10 s an epoch, and eight epochs more */
    { "a relaunch loses what was done of the epoch",
      "pipetune",
      APART,
      { 9, 1, FIRST, MEAN },
      10 + 6 + 10 + 7 + 9.3 + 80,
      2,
      1 },
    { "a job without a start-up", "pipetune", NO_STARTUP, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "a job without a start-up has no oracle", "oracle", NO_STARTUP, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
    { "a job without a cell", "paper", EMPTY, { 3, 2, LAST, MEAN }, NAN, 0, 0 },
};

static const struct replay_policy *policy_of(const char *name)
{
    for (const struct replay_policy *p = replay_policies; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    fail_msg("no policy '%s'", name);
    return NULL;
}

static bool same(double got, double want)
{
    return isnan(want) ? isnan(got) : fabs(got - want) < 1e-9;
}

static void test_policy_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct timeline_jobs one_job = { &jobs[cases[i].job], 1 };
        struct replay_outcome got = { 0 };
        struct err e;
        assert_int_equal(policy_of(cases[i].policy)->run(&one_job, &cases[i].o, &got, &e), 0);
        if (!same(got.time_s, cases[i].want_s))
            fail_msg("%s: got %.17g s, want %.17g", cases[i].name, got.time_s, cases[i].want_s);
        if (got.cores != cases[i].cores || !same(got.memory_gb, cases[i].memory_gb))
            fail_msg("%s: got (%d, %g), want (%d, %g)", cases[i].name, got.cores, got.memory_gb, cases[i].cores,
                     cases[i].memory_gb);
    }
}

static void test_each_job_has_its_outcome(void **state)
{
    (void)state;
    struct timeline_jobs all = { jobs, ARRAY_LEN(jobs) };
    struct replay_options o = { 6, 1, REPLAY_FIRST, REPLAY_MEAN };
    struct replay_outcome got[ARRAY_LEN(jobs)];
    struct err e;
    assert_int_equal(policy_of("paper")->run(&all, &o, got, &e), 0);
    assert_true(got[GRID].time_s == 245); /* as above */
    assert_true(got[TIED].time_s == 10 + 6 * 50);
    assert_true(got[LONE].time_s == 10 + 6 * 7);
    assert_true(isnan(got[HOPELESS].time_s) && isnan(got[EMPTY].time_s));
}

static void test_start_cell(void **state)
{
    (void)state;
    assert_int_equal(replay_start_cell(&jobs[GRID], REPLAY_FIRST), 0);
    assert_int_equal(replay_start_cell(&jobs[GRID], REPLAY_LAST), 5);
    assert_int_equal(replay_start_cell(&jobs[LONE], REPLAY_FIRST), 1);
    assert_int_equal(replay_start_cell(&jobs[HOPELESS], REPLAY_LAST), -1);
    assert_int_equal(replay_start_cell(&jobs[EMPTY], REPLAY_FIRST), -1);
}

/* TUNER.md, section 8, names them. */
static void test_every_policy_of_the_design_is_there(void **state)
{
    (void)state;
    static const char *const names[] = { "v1_first", "v1_max",    "v2_random", "v2_grid", "original",
                                         "paper",    "orig_fair", "oracle",    "pipetune" };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_non_null(policy_of(names[i])->run);
    for (const struct replay_policy *p = replay_policies; p->name; p++)
        n++;
    assert_int_equal(n, ARRAY_LEN(names));
}

/* --- what recordings of a cluster look like: TUNER.md, section 10 --- */

static const struct {
    enum replay_default start;
    int repeat;
    double most; /* over the oracle's time */
} goals[] = { { FIRST, 1, 1.015 }, { LAST, 1, 1.015 }, { FIRST, 9, 1.008 }, { LAST, 9, 1.008 } };

static struct replay_outcome *outcomes_of(const char *policy, const struct timeline_jobs *j,
                                          const struct replay_options *o)
{
    struct err e;
    struct replay_outcome *out = calloc(j->n, sizeof *out);
    assert_non_null(out);
    assert_int_equal(policy_of(policy)->run(j, o, out, &e), 0);
    return out;
}

static bool ends_feasible(const struct timeline_job *j, const struct replay_outcome *o)
{
    for (size_t i = 0; i < j->n_cells; i++)
        if (j->cells[i].cores == o->cores && j->cells[i].memory_gb == o->memory_gb)
            return j->cells[i].feasible;
    return false;
}

/* Adds up what the tuner and the oracle take. */
static void compare_with_oracle(const struct timeline_jobs *j, size_t goal, double *ours_s, double *best_s)
{
    const struct replay_options o = { 10, goals[goal].repeat, goals[goal].start, MEAN };
    AUTO_FREE struct replay_outcome *ours = outcomes_of("pipetune", j, &o);
    AUTO_FREE struct replay_outcome *best = outcomes_of("oracle", j, &o);
    AUTO_FREE struct replay_outcome *fair = outcomes_of("orig_fair", j, &o);
    for (size_t i = 0; i < j->n; i++) {
        if (isnan(best[i].time_s))
            continue;
        *ours_s += ours[i].time_s;
        *best_s += best[i].time_s;
        assert_true(ends_feasible(&j->jobs[i], &ours[i]));
        assert_true(ours[i].time_s <= fair[i].time_s);
    }
}

static void test_recordings_of_a_cluster_cost_little_over_the_oracle(void **state)
{
    (void)state;
    for (size_t goal = 0; goal < ARRAY_LEN(goals); goal++) {
        double ours_s = 0, best_s = 0;
        for (uint64_t seed = 1001; seed <= 1060; seed++) {
            struct timeline t;
            struct timeline_jobs j;
            assert_int_equal(gen_timeline_cluster(&t, seed), 0);
            assert_int_equal(timeline_gather(&j, &t), 0);
            compare_with_oracle(&j, goal, &ours_s, &best_s);
            timeline_jobs_done(&j);
            timeline_done(&t);
        }
        if (!(ours_s <= goals[goal].most * best_s))
            fail_msg("%d trials from the %s setting: %.4f of the oracle's time, want %.3f", goals[goal].repeat,
                     goals[goal].start == FIRST ? "first" : "last", ours_s / best_s, goals[goal].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_costs),
        cmocka_unit_test(test_each_job_has_its_outcome),
        cmocka_unit_test(test_start_cell),
        cmocka_unit_test(test_every_policy_of_the_design_is_there),
        cmocka_unit_test(test_recordings_of_a_cluster_cost_little_over_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
