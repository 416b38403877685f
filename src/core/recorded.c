#include "core/recorded.h"

#include <math.h>
#include <string.h>

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

bool recorded_same_workload(const struct timeline_job *a, const struct timeline_job *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->dataset, b->dataset) == 0;
}

/* Where none was recorded all cells have as much: the tuner wants a number. */
static double memory_of(const struct timeline_cell *c)
{
    return isnan(c->memory_gb) ? 0 : c->memory_gb;
}

void recorded_space(struct tuner_space *s, const struct timeline_job *jobs, size_t n)
{
    *s = (struct tuner_space){ 0 };
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < jobs[j].n_cells; i++) {
            insert_sorted(s->cores, &s->n_hot, TUNER_MAX_HOT, jobs[j].cells[i].cores);
            insert_sorted(s->memory, &s->n_cold, TUNER_MAX_COLD, memory_of(&jobs[j].cells[i]));
        }
    }
}

const struct timeline_cell *recorded_cell(const struct recorded *w, struct tuner_setting s)
{
    for (size_t i = 0; i < w->job->n_cells; i++) {
        const struct timeline_cell *c = &w->job->cells[i];
        if (c->cores == (int)w->space.cores[s.hot] && memory_of(c) == w->space.memory[s.cold])
            return c->feasible ? c : NULL;
    }
    return NULL;
}

struct tuner_setting recorded_setting(const struct recorded *w, const struct timeline_cell *c)
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
    return recorded_cell(ctx, s) != NULL;
}

static double iteration_s(void *ctx, const struct sim_run *r)
{
    const struct recorded *w = ctx;
    const struct timeline_cell *c = recorded_cell(w, r->at);
    size_t recorded = (size_t)r->epoch - 1;
    if (r->epoch == r->first)
        return c->first_s / RECORDED_STEPS;
    if (w->probe == REPLAY_RECORDED && !sim_run_settled(r) && recorded < c->n_epochs)
        return c->epochs[recorded].duration_s / RECORDED_STEPS;
    return c->steady_s / RECORDED_STEPS;
}

static double startup_s(void *ctx, struct sim_run *r)
{
    const struct recorded *w = ctx;
    (void)r;
    return w->job->startup_s;
}

const struct sim_world recorded_world = {
    .has = was_recorded, .step_s = iteration_s, .startup_s = startup_s, .unexplained = true, .whole_epochs = true
};

const struct tuner_cfg recorded_tuner = {
    .window_s = 3, .probe_budget = 0.10, .tie_margin = 0.01, .noise_floor = 0.01
};
