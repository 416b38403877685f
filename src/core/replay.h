/* Policies over recorded timelines: what each would have cost. Pure; the formulas stand in the design (TUNER.md, section 8). */
#ifndef CORE_REPLAY_H
#define CORE_REPLAY_H

#include "core/timeline.h"

enum replay_default { REPLAY_FIRST, REPLAY_LAST };  /* which feasible setting a job starts from */
enum replay_probe { REPLAY_MEAN, REPLAY_RECORDED }; /* what a probe's epoch takes */

struct replay_options {
    int epochs, repeat; /* E, R >= 1 */
    enum replay_default start;
    enum replay_probe probe;
};

/* Of one policy on one job: R trials one after the other. */
struct replay_outcome {
    double time_s; /* NAN: the job has no feasible setting */
    int cores;     /* of the setting that its last trial ended on */
    double memory_gb;
};

/* All jobs in order, since knowledge passes from one to the next. out[i] belongs to jobs->jobs[i]. */
typedef int replay_fn(const struct timeline_jobs *jobs, const struct replay_options *o, struct replay_outcome *out,
                      struct err *e);

struct replay_policy {
    const char *name, *help;
    replay_fn *run;
};

extern const struct replay_policy replay_policies[]; /* ends with a NULL name */

/* The live tuner; src/core/replay_tuner.c. */
replay_fn replay_pipetune;

/* The feasible cell that a job starts from (its first, or its last); -1: none is feasible. */
int replay_start_cell(const struct timeline_job *job, enum replay_default start);

#endif
