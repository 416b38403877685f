/* The policy `pipetune`: the live tuner over a recorded timeline, one trial after the other. An epoch counts as 100 equal iterations. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "core/replay.h"
#include "core/sim_run.h"

enum { ITERATIONS = 100, KEY_MAX = 512 };

/* One workload: jobs that share a model and a dataset, and so a tuner. */
struct workload {
    struct sim_stage stage;
    struct tuner_space space;
    const struct replay_options *o;
    const struct timeline_job *job; /* the one that runs */
    int trial;
    double now_s;
};

static void insert_sorted(double *list, int *n, int cap, double x)
{
    int at = 0;
    while (at < *n && list[at] < x)
        at++;
    if ((at < *n && list[at] == x) || *n == cap)
        return;
    memmove(&list[at + 1], &list[at], (size_t)(*n - at) * sizeof *list);
    list[at] = x;
    ++*n;
}

static bool same_workload(const struct timeline_job *a, const struct timeline_job *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->dataset, b->dataset) == 0;
}

/* Where none was recorded all cells have as much: the tuner wants a number. */
static double memory_of(const struct timeline_cell *c)
{
    return isnan(c->memory_gb) ? 0 : c->memory_gb;
}

static void space_of(struct tuner_space *s, const struct timeline_job *jobs, size_t n)
{
    *s = (struct tuner_space){ 0 };
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < jobs[j].n_cells; i++) {
            insert_sorted(s->cores, &s->n_hot, TUNER_MAX_HOT, jobs[j].cells[i].cores);
            insert_sorted(s->memory, &s->n_cold, TUNER_MAX_COLD, memory_of(&jobs[j].cells[i]));
        }
    }
}

/* NULL: nothing feasible was recorded there. */
static const struct timeline_cell *cell_at(const struct workload *w, struct tuner_setting s)
{
    for (size_t i = 0; i < w->job->n_cells; i++) {
        const struct timeline_cell *c = &w->job->cells[i];
        if (c->cores == (int)w->space.cores[s.hot] && memory_of(c) == w->space.memory[s.cold])
            return c->feasible ? c : NULL;
    }
    return NULL;
}

static struct tuner_setting setting_of(const struct workload *w, const struct timeline_cell *c)
{
    struct tuner_setting s = { 0, 0 };
    while (w->space.cores[s.hot] < c->cores)
        s.hot++;
    while (w->space.memory[s.cold] < memory_of(c))
        s.cold++;
    return s;
}

/* --- what is asked of a world --- */

static bool was_recorded(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    (void)r;
    return cell_at(ctx, s) != NULL;
}

static double iteration_s(void *ctx, const struct sim_run *r)
{
    const struct workload *w = ctx;
    const struct timeline_cell *c = cell_at(w, r->at);
    size_t recorded = (size_t)r->epoch - 1;
    if (r->epoch == r->first)
        return c->first_s / ITERATIONS;
    if (w->o->probe == REPLAY_RECORDED && !sim_run_settled(r) && recorded < c->n_epochs)
        return c->epochs[recorded].duration_s / ITERATIONS;
    return c->steady_s / ITERATIONS;
}

static double startup_s(void *ctx, struct sim_run *r)
{
    const struct workload *w = ctx;
    (void)r;
    return w->job->startup_s;
}

/* A timeline tells that a run failed, or has none; never why. */
static const struct sim_world recorded = {
    .has = was_recorded, .step_s = iteration_s, .startup_s = startup_s, .unexplained = true, .whole_epochs = true
};

/* --- jobs --- */

static int run_job(struct workload *w, struct replay_outcome *out, struct err *e)
{
    char class_key[KEY_MAX], family_key[KEY_MAX];
    int cell = replay_start_cell(w->job, w->o->start), rc = 0;
    *out = (struct replay_outcome){ .time_s = NAN };
    if (cell < 0)
        return 0;
    (void)snprintf(family_key, sizeof family_key, "%s/%s", w->job->model, w->job->dataset);
    char batch[NUM_TEXT_MAX];
    (void)snprintf(class_key, sizeof class_key, "%.400s/%s", family_key, num_print(w->job->batch, batch));
    struct sim_job job = { .class_key = class_key,
                           .family_key = family_key,
                           .epochs = w->o->epochs,
                           .steps = ITERATIONS,
                           .start = setting_of(w, &w->job->cells[cell]) };
    struct sim_run r = { 0 };
    double begin = w->now_s;
    for (int i = 0; rc == 0 && i < w->o->repeat; i++) {
        job.trial = ++w->trial;
        sim_run_init(&r, &w->stage, &job, w->now_s);
        rc = sim_run_play(&r, e);
        w->now_s = r.now_s;
    }
    *out = (struct replay_outcome){ .time_s = w->now_s - begin,
                                    .cores = (int)w->space.cores[r.at.hot],
                                    .memory_gb = isnan(w->job->cells[cell].memory_gb) ? (double)NAN
                                                                                      : w->space.memory[r.at.cold] };
    return rc;
}

int replay_pipetune(const struct timeline_jobs *jobs, const struct replay_options *o, struct replay_outcome *out,
                    struct err *e)
{
    static const struct tuner_cfg cfg = {
        .window_s = 3, .probe_budget = 0.10, .tie_margin = 0.01, .noise_floor = 0.01
    };
    const struct policy *policy = policy_find("pipetune");
    int rc = 0;
    for (size_t first = 0, n = 1; rc == 0 && first < jobs->n; first += n, n = 1) {
        while (first + n < jobs->n && same_workload(&jobs->jobs[first], &jobs->jobs[first + n]))
            n++;
        struct workload w = { .stage = { .policy = policy, .world = &recorded, .ctx = &w }, .o = o };
        space_of(&w.space, &jobs->jobs[first], n);
        w.stage.machine = policy->create(&w.space, &cfg);
        rc = w.stage.machine ? 0 : err_sys(e, -ENOMEM, "replay");
        for (size_t j = 0; rc == 0 && j < n; j++) {
            w.job = &jobs->jobs[first + j];
            rc = run_job(&w, &out[first + j], e);
        }
        policy->destroy(w.stage.machine);
    }
    return rc;
}
