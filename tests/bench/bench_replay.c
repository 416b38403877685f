/* bench_replay [SEEDS [FIRST_SEED]]: every policy over synthetic timelines, 10 epochs, as lines `name value unit [goal]`. A name ends
 * in the default setting and the repeats: _first_r9; of grids in _grid_first_r9, of what
 * looks like recordings of a cluster in _cluster_first_r9.
 *   POLICY_over_oracle          total over all seeds, over the oracle's
 *   pipetune_worst_seed         the same of the seed where it is largest
 *   pipetune_worst_job          the largest of any (workload, batch)
 *   pipetune_above_orig_fair    jobs in which orig_fair is quicker
 *   pipetune_infeasible         jobs that end on a setting which is not feasible
 *   replay_100000_trials        seconds of CPU for so many trials of `pipetune` */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "core/replay.h"
#include "tests/bench/gen_timeline.h"

enum { EPOCHS = 10, POLICIES_MAX = 16, TRIALS = 100000 };

struct worst {
    double ratio;
    unsigned seed;
    char job[128];
};

struct tally {
    double total_s[POLICIES_MAX];
    struct worst seed, job;
    size_t jobs, slower, infeasible;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_replay: %s\n", what);
    exit(1);
}

static size_t policy_index(const char *name)
{
    size_t i = 0;
    while (replay_policies[i].name && strcmp(replay_policies[i].name, name) != 0)
        i++;
    if (!replay_policies[i].name || i >= POLICIES_MAX)
        die(name);
    return i;
}

static bool is_feasible(const struct timeline_job *job, const struct replay_outcome *o)
{
    for (size_t i = 0; i < job->n_cells; i++)
        if (job->cells[i].cores == o->cores && job->cells[i].memory_gb == o->memory_gb)
            return job->cells[i].feasible;
    return false;
}

static void note(struct worst *w, double ratio, unsigned seed, const struct timeline_job *job)
{
    if (!(ratio > w->ratio))
        return;
    *w = (struct worst){ .ratio = ratio, .seed = seed };
    if (job)
        (void)snprintf(w->job, sizeof w->job, "%s/%s/%g", job->model, job->dataset, job->batch);
}

static struct replay_outcome *outcomes_of(const struct timeline_jobs *jobs, const struct replay_options *o,
                                          size_t policy)
{
    struct err e = { 0 };
    struct replay_outcome *out = calloc(jobs->n + 1, sizeof *out);
    if (!out || replay_policies[policy].run(jobs, o, out, &e) < 0)
        die(out ? e.text : "out of memory");
    return out;
}

static double total_s(const struct replay_outcome *out, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += isnan(out[i].time_s) ? 0 : out[i].time_s; /* no setting is feasible: that costs nobody anything */
    return sum;
}

static void tally_jobs(struct tally *t, const struct timeline_jobs *jobs, const struct replay_options *o, unsigned seed)
{
    AUTO_FREE struct replay_outcome *ours = outcomes_of(jobs, o, policy_index("pipetune"));
    AUTO_FREE struct replay_outcome *best = outcomes_of(jobs, o, policy_index("oracle"));
    AUTO_FREE struct replay_outcome *fair = outcomes_of(jobs, o, policy_index("orig_fair"));
    for (size_t i = 0; i < jobs->n; i++) {
        if (isnan(best[i].time_s))
            continue;
        t->jobs++;
        t->slower += ours[i].time_s > fair[i].time_s;
        t->infeasible += !is_feasible(&jobs->jobs[i], &ours[i]);
        note(&t->job, ours[i].time_s / best[i].time_s, seed, &jobs->jobs[i]);
    }
    note(&t->seed, total_s(ours, jobs->n) / total_s(best, jobs->n), seed, NULL);
}

static void tally_timeline(struct tally *t, const struct timeline_jobs *jobs, const struct replay_options *o,
                           unsigned seed)
{
    for (size_t p = 0; replay_policies[p].name; p++) {
        AUTO_FREE struct replay_outcome *out = outcomes_of(jobs, o, p);
        t->total_s[p] += total_s(out, jobs->n);
    }
    tally_jobs(t, jobs, o, seed);
}

static void print_tally(const struct tally *t, const struct replay_options *o, const char *kind)
{
    char tag[32];
    bool recorded = strcmp(kind, "_cluster") == 0;
    const char *one = recorded ? "1.015" : "1.020", *nine = recorded ? "1.008" : "1.010";
    const char *goal = o->repeat == 1 ? one : nine;
    double oracle_s = t->total_s[policy_index("oracle")];
    (void)snprintf(tag, sizeof tag, "%s_%s_r%d", kind, o->start == REPLAY_FIRST ? "first" : "last", o->repeat);
    for (size_t p = 0; replay_policies[p].name; p++) {
        bool ours = strcmp(replay_policies[p].name, "pipetune") == 0;
        printf("%s_over_oracle%s %.4f x%s%s\n", replay_policies[p].name, tag, t->total_s[p] / oracle_s, ours ? " " : "",
               ours ? goal : "");
    }
    printf("pipetune_worst_seed%s %.4f x %s\n", tag, t->seed.ratio, goal);
    printf("pipetune_worst_job%s %.4f x 1.05\n", tag, t->job.ratio);
    printf("pipetune_above_orig_fair%s %zu jobs 0\n", tag, t->slower);
    printf("pipetune_infeasible%s %zu jobs 0\n", tag, t->infeasible);
    printf("# of %zu jobs; worst seed %u; worst job %s of seed %u\n", t->jobs, t->seed.seed, t->job.job, t->job.seed);
}

/* --- the timelines --- */

struct made {
    struct timeline timeline;
    struct timeline_jobs jobs;
};

typedef int make_fn(struct timeline *out, uint64_t seed);

static struct made *make_timelines(unsigned first, unsigned n, make_fn *make)
{
    struct made *all = calloc(n, sizeof *all);
    if (!all)
        die("out of memory");
    for (unsigned i = 0; i < n; i++)
        if (make(&all[i].timeline, first + i) < 0 || timeline_gather(&all[i].jobs, &all[i].timeline) < 0)
            die("cannot make a timeline");
    return all;
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_speed(const struct made *all, unsigned n)
{
    const struct replay_options o = { EPOCHS, 9, REPLAY_FIRST, REPLAY_MEAN };
    size_t trials = 0, rounds = 0;
    double began = cpu_s();
    while (trials < TRIALS) {
        const struct made *m = &all[rounds++ % n];
        AUTO_FREE struct replay_outcome *out = outcomes_of(&m->jobs, &o, policy_index("pipetune"));
        for (size_t i = 0; i < m->jobs.n; i++)
            trials += isnan(out[i].time_s) ? 0 : (size_t)o.repeat;
        if (rounds == n && trials == 0)
            die("no timeline has a feasible setting");
    }
    printf("replay_100000_trials %.2f s 10\n", (cpu_s() - began) * TRIALS / (double)trials);
}

static void print_all(const struct made *all, unsigned first, unsigned n, const char *kind)
{
    static const int repeats[] = { 1, 9 };
    static const enum replay_default starts[] = { REPLAY_FIRST, REPLAY_LAST };
    for (size_t s = 0; s < ARRAY_LEN(starts); s++) {
        for (size_t r = 0; r < ARRAY_LEN(repeats); r++) {
            const struct replay_options o = { EPOCHS, repeats[r], starts[s], REPLAY_MEAN };
            struct tally t = { 0 };
            for (unsigned i = 0; i < n; i++)
                tally_timeline(&t, &all[i].jobs, &o, first + i);
            print_tally(&t, &o, kind);
        }
    }
}

static void free_timelines(struct made *all, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        timeline_jobs_done(&all[i].jobs);
        timeline_done(&all[i].timeline);
    }
    free(all);
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200;
    unsigned first = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    if (n == 0)
        die("usage: bench_replay [SEEDS [FIRST_SEED]]");
    printf("# %u timelines, seeds %u to %u\n", n, first, first + n - 1);
    struct made *any = make_timelines(first, n, gen_timeline);
    print_all(any, first, n, "");
    struct made *grids = make_timelines(first, n, gen_timeline_grid);
    print_all(grids, first, n, "_grid");
    struct made *clusters = make_timelines(first, n, gen_timeline_cluster);
    print_all(clusters, first, n, "_cluster");
    print_speed(any, n);
    free_timelines(any, n);
    free_timelines(grids, n);
    free_timelines(clusters, n);
    return 0;
}
