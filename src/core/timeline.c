#include "core/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

static const char *const status_names[] = {
    [RUN_COMPLETE] = "complete",
    [RUN_PARTIAL] = "partial",
    [RUN_FAILED] = "failed",
    [RUN_RUNNING] = "running",
};

const char *timeline_status_name(enum timeline_status s)
{
    return (size_t)s < ARRAY_LEN(status_names) ? status_names[s] : "?";
}

int timeline_status_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(status_names); i++)
        if (strcmp(name, status_names[i]) == 0)
            return (int)i;
    return -EINVAL;
}

/* --- runs --- */

void timeline_done(struct timeline *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++) {
        struct timeline_run *r = &t->runs[i];
        free(r->model);
        free(r->dataset);
        free(r->log);
        free(r->epochs);
    }
    free(t->runs);
    *t = (struct timeline){ 0 };
}

struct timeline_run *timeline_add(struct timeline *t)
{
    struct timeline_run *more = array_more(t->runs, t->n, &t->cap, sizeof *more);
    if (!more)
        return NULL;
    t->runs = more;
    struct timeline_run *r = &t->runs[t->n++];
    *r = (struct timeline_run){ .memory_gb = NAN, .batch = NAN, .startup_s = NAN };
    return r;
}

/* --- jobs: the runs sorted, each stretch of equal keys is one job, or one cell of it --- */

struct key {
    const struct timeline_run *run;
    size_t index;    /* of the run in the file */
    size_t workload; /* index of the first run of its (model, dataset) */
};

/* A number that is absent comes last and equals itself, so that this is an order whatever the file holds. */
static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static int compare_names(const struct key *a, const struct key *b)
{
    int order = strcmp(text_of(a->run->model), text_of(b->run->model));
    return order ? order : strcmp(text_of(a->run->dataset), text_of(b->run->dataset));
}

static int by_name(const void *x, const void *y)
{
    const struct key *a = x, *b = y;
    int order = compare_names(a, b);
    return order ? order : compare_sizes(a->index, b->index);
}

static int compare_jobs(const struct key *a, const struct key *b)
{
    int order = compare_sizes(a->workload, b->workload);
    return order ? order : compare_numbers(a->run->batch, b->run->batch);
}

static int compare_cells(const struct key *a, const struct key *b)
{
    int order = compare_jobs(a, b);
    if (!order)
        order = (a->run->cores > b->run->cores) - (a->run->cores < b->run->cores);
    return order ? order : compare_numbers(a->run->memory_gb, b->run->memory_gb);
}

static int by_cell(const void *x, const void *y)
{
    const struct key *a = x, *b = y;
    int order = compare_cells(a, b);
    return order ? order : compare_sizes(a->index, b->index);
}

/* Keys in the order of jobs, of cells in them, and of the file in those. */
static void sort_keys(struct key *keys, const struct timeline *t)
{
    for (size_t i = 0; i < t->n; i++)
        keys[i] = (struct key){ .run = &t->runs[i], .index = i };
    qsort(keys, t->n, sizeof *keys, by_name);
    for (size_t i = 0; i < t->n; i++) {
        bool first = i == 0 || compare_names(&keys[i - 1], &keys[i]) != 0;
        keys[i].workload = first ? keys[i].index : keys[i - 1].workload;
    }
    qsort(keys, t->n, sizeof *keys, by_cell);
}

static double mean_startup(const struct key *from, const struct key *end)
{
    double sum = 0;
    size_t n = 0;
    for (const struct key *k = from; k < end && k->workload == from->workload; k++) {
        if (isfinite(k->run->startup_s)) { /* else it did not reach epoch 1 */
            sum += k->run->startup_s;
            n++;
        }
    }
    return n ? sum / (double)n : NAN;
}

/* A trace may say "complete" and hold no duration that one could replay. */
static bool usable(const struct timeline_run *r)
{
    return r->status == RUN_COMPLETE && r->n_epochs > 0 && isfinite(r->epochs[0].duration_s);
}

static double mean_steady(const struct timeline_run *r)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 1; i < r->n_epochs; i++) {
        if (isfinite(r->epochs[i].duration_s)) {
            sum += r->epochs[i].duration_s;
            n++;
        }
    }
    return n ? sum / (double)n : r->epochs[0].duration_s;
}

/* An infeasible cell has no durations and no epochs: nobody can settle on it by mistake. */
static struct timeline_cell new_cell(const struct timeline_run *r)
{
    return (struct timeline_cell){ .cores = r->cores, .memory_gb = r->memory_gb, .first_s = NAN, .steady_s = NAN };
}

static void fill_cell(struct timeline_cell *c, const struct timeline_run *r)
{
    if (c->feasible || !usable(r))
        return;
    c->feasible = true;
    c->first_s = r->epochs[0].duration_s;
    c->steady_s = mean_steady(r);
    c->epochs = r->epochs;
    c->n_epochs = r->n_epochs;
}

/* The job of the keys from…end (all of one job). */
static int fill_job(struct timeline_job *j, const struct key *from, const struct key *end)
{
    *j = (struct timeline_job){
        .model = text_of(from->run->model),
        .dataset = text_of(from->run->dataset),
        .batch = from->run->batch,
        .cells = calloc((size_t)(end - from), sizeof *j->cells),
    };
    if (!j->cells)
        return -ENOMEM;
    for (const struct key *k = from; k < end; k++) {
        if (k == from || compare_cells(k - 1, k) != 0)
            j->cells[j->n_cells++] = new_cell(k->run);
        fill_cell(&j->cells[j->n_cells - 1], k->run);
    }
    return 0;
}

static int fill_jobs(struct timeline_jobs *out, const struct key *keys, size_t n)
{
    const struct key *end = keys + n;
    double startup_s = NAN;
    for (const struct key *from = keys, *next; from < end; from = next) {
        next = from + 1;
        while (next < end && compare_jobs(from, next) == 0)
            next++;
        if (from == keys || from[-1].workload != from->workload)
            startup_s = mean_startup(from, end);
        struct timeline_job *j = &out->jobs[out->n++];
        if (fill_job(j, from, next) < 0)
            return -ENOMEM;
        j->startup_s = startup_s;
    }
    return 0;
}

int timeline_gather(struct timeline_jobs *out, const struct timeline *t)
{
    if (t->n == 0) {
        *out = (struct timeline_jobs){ 0 };
        return 0;
    }
    AUTO_FREE struct key *keys = calloc(t->n, sizeof *keys);
    struct timeline_jobs jobs = { .jobs = calloc(t->n, sizeof *jobs.jobs) };
    int rc = keys && jobs.jobs ? 0 : -ENOMEM;
    if (rc == 0) {
        sort_keys(keys, t);
        rc = fill_jobs(&jobs, keys, t->n);
    }
    if (rc < 0)
        timeline_jobs_done(&jobs);
    else
        *out = jobs;
    return rc;
}

void timeline_jobs_done(struct timeline_jobs *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++)
        free(j->jobs[i].cells);
    free(j->jobs);
    *j = (struct timeline_jobs){ 0 };
}
