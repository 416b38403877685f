/* Recorded timelines of a workload over its settings: what a replay draws on. Pure.
 *
 * A timeline holds runs; a run is one launch of (model, dataset) at a setting (cores, memory) and a batch, with the
 * duration of its start-up and of each epoch. A cell gathers what is known of one (workload, batch, setting). */
#ifndef CORE_TIMELINE_H
#define CORE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum timeline_status { RUN_COMPLETE, RUN_PARTIAL, RUN_FAILED, RUN_RUNNING };

const char *timeline_status_name(enum timeline_status s);
int timeline_status_parse(const char *name); /* -EINVAL */

struct timeline_epoch {
    double duration_s;
    double loss, accuracy, energy_j; /* NAN: not recorded */
};

struct timeline_run {
    char *model, *dataset; /* owned */
    int cores;
    double memory_gb; /* NAN: not recorded */
    double batch;
    char *log; /* the name of its log, NULL: none */
    enum timeline_status status;
    double startup_s; /* submission to the first line of epoch 1; NAN: it never came */
    struct timeline_epoch *epochs;
    size_t n_epochs;
};

struct timeline {
    struct timeline_run *runs; /* in the order of the file */
    size_t n, cap;
};

void timeline_done(struct timeline *t);

/* Adds an empty run (zeroed, NAN where a number is absent) and returns it; NULL: memory. Valid until the next add. */
struct timeline_run *timeline_add(struct timeline *t);

/* One setting of one (workload, batch). Several complete runs of it: the first counts. */
struct timeline_cell {
    int cores;
    double memory_gb;
    bool feasible;                       /* a complete run is there */
    double first_s;                      /* D(c,1): recorded duration of epoch 1 */
    double steady_s;                     /* S(c): mean of epochs 2..N; D(c,1) when there is no second epoch */
    const struct timeline_epoch *epochs; /* recorded ones, borrowed */
    size_t n_epochs;
};

struct timeline_job {            /* one (workload, batch) */
    const char *model, *dataset; /* borrowed */
    double batch;
    double startup_s;            /* U: mean start-up over the workload's runs that reached epoch 1 */
    struct timeline_cell *cells; /* every recorded setting, by cores, then memory, ascending; not recorded is last */
    size_t n_cells;
};

struct timeline_jobs {
    struct timeline_job *jobs; /* workloads in the order of the file, batches ascending */
    size_t n;
};

/* Gathers the runs into jobs; keeps pointers into `t`. A job without any feasible cell is kept, with its cells. -ENOMEM. */
int timeline_gather(struct timeline_jobs *out, const struct timeline *t);
void timeline_jobs_done(struct timeline_jobs *j);

#endif
