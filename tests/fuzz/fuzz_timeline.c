/* A timeline of any bytes: every run sane, every fault in order, and jobs that hold together. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/timeline_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_run(const struct timeline_run *r)
{
    check(r->model && *r->model && r->dataset && *r->dataset && (!r->log || *r->log));
    check(r->cores >= 1 && (isnan(r->memory_gb) || r->memory_gb > 0) && r->batch > 0 && r->status <= RUN_RUNNING);
    check(isnan(r->startup_s) || r->startup_s >= 0);
    for (size_t i = 0; i < r->n_epochs; i++)
        check(r->epochs[i].duration_s >= 0);
    check(r->status != RUN_COMPLETE || r->n_epochs > 0);
    check(r->status != RUN_FAILED || r->n_epochs == 0);
}

/* A memory that was not recorded comes last. */
static bool is_before(const struct timeline_cell *a, const struct timeline_cell *b)
{
    if (a->cores != b->cores)
        return a->cores < b->cores;
    return isnan(b->memory_gb) ? !isnan(a->memory_gb) : a->memory_gb < b->memory_gb;
}

static void check_job(const struct timeline_job *j)
{
    check(j->n_cells > 0);
    for (size_t i = 0; i < j->n_cells; i++) {
        const struct timeline_cell *c = &j->cells[i], *before = i ? c - 1 : NULL;
        check(!before || is_before(before, c));
        check(c->feasible ? c->first_s >= 0 && c->steady_s >= 0 && c->n_epochs > 0 : isnan(c->first_s) && !c->epochs);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csv_faults faults = { 0 };
    struct timeline t;
    struct timeline_jobs jobs;
    if (timeline_csv_parse(&t, (const char *)data, size, &faults) < 0 || timeline_gather(&jobs, &t) < 0)
        abort();
    for (size_t i = 0; i < t.n; i++)
        check_run(&t.runs[i]);
    for (size_t i = 0; i < jobs.n; i++)
        check_job(&jobs.jobs[i]);
    for (size_t i = 1; i < faults.n; i++)
        check(faults.faults[i - 1].line <= faults.faults[i].line);
    timeline_jobs_done(&jobs);
    timeline_done(&t);
    csv_faults_done(&faults);
    return 0;
}
