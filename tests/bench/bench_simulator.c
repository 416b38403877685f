/* bench_simulator [SEEDS [FIRST_SEED]]: studies of drawn worlds (core/world.h), TRIALS of them each on one node with twice as many CPUs as the
 * largest setting, as lines `name value unit [goal]`. A name ends in the policy, and for several trials at once in _packed.
 *   simulator_100000_trials   seconds of CPU for so many trials
 *   simulator_trials          of them per second
 *   simulated_time            until the studies end, over those of v1, one trial after the other
 *   simulated_core_time       the same of CPUs times seconds
 *   simulated_infeasible      trials that ended without a setting that could be had */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "core/simulator.h"
#include "core/world.h"

enum { TRIALS = 24, AT_ONCE = 8 };

static void die(const char *what)
{
    fprintf(stderr, "bench_simulator: %s\n", what);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sim_totals play(struct world_study *w, const char *policy, int parallel, uint64_t seed)
{
    static const struct tuner_cfg tuner = {
        .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01
    };
    struct sim_job jobs[TRIALS];
    for (int i = 0; i < TRIALS; i++)
        jobs[i] = world_job(w, i + 1);
    const struct simulator_cfg cfg = { .policy = policy_find(policy),
                                       .space = w->space,
                                       .tuner = tuner,
                                       .world = &world_calls,
                                       .ctx = w,
                                       .nodes = { { 2 * (int)w->space.cores[w->space.n_hot - 1],
                                                    4 * w->space.memory[w->space.n_cold - 1] } },
                                       .n_nodes = 1,
                                       .parallel = parallel,
                                       .jobs = jobs,
                                       .n_jobs = TRIALS,
                                       .seed = seed };
    struct simulator s;
    struct err e;
    if (simulator_init(&s, &cfg, &e) < 0 || simulator_play(&s, &e) < 0)
        die(e.text);
    struct sim_totals t = s.totals;
    simulator_done(&s);
    return t;
}

struct sum {
    double end_s, core_s;
    size_t trials, infeasible;
};

static struct sum play_all(const char *policy, int parallel, unsigned first, unsigned n)
{
    struct sum all = { 0 };
    for (unsigned seed = first; seed < first + n; seed++) {
        struct world_study w;
        world_study(&w, seed);
        struct sim_totals t = play(&w, policy, parallel, seed);
        all.end_s += t.end_s;
        all.core_s += t.core_s;
        all.trials += t.finished + t.infeasible + t.lost;
        all.infeasible += t.infeasible;
    }
    return all;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *policy;
        int parallel;
    } rows[] = { { "v1", 1 }, { "v1", AT_ONCE }, { "paper", 1 }, { "pipetune", 1 }, { "pipetune", AT_ONCE } };
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 500;
    unsigned first = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    if (n == 0)
        die("usage: bench_simulator [SEEDS [FIRST_SEED]]");
    printf("# %u worlds, seeds %u to %u, %d trials each, at most %d at once\n", n, first, first + n - 1, TRIALS,
           AT_ONCE);
    struct sum base = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char tag[32];
        double began = cpu_s();
        struct sum all = play_all(rows[i].policy, rows[i].parallel, first, n);
        double took = cpu_s() - began;
        base = i == 0 ? all : base;
        (void)snprintf(tag, sizeof tag, "_%s%s", rows[i].policy, rows[i].parallel > 1 ? "_packed" : "");
        printf("simulator_100000_trials%s %.3f s 20\n", tag, took * 100000 / (double)all.trials);
        printf("simulator_trials%s %.0f 1/s\n", tag, (double)all.trials / took);
        printf("simulated_time%s %.4f x\n", tag, all.end_s / base.end_s);
        printf("simulated_core_time%s %.4f x\n", tag, all.core_s / base.core_s);
        printf("simulated_infeasible%s %zu trials\n", tag, all.infeasible);
    }
    return 0;
}
