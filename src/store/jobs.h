/* Recorded runs as examples for a regressor that is to foretell a run's time from what was counted in its first seconds.
 *
 *     /JOB_X         f64 [n][40][72]  second by second from the submission, JOB_FEATURES: counts per second, gauges as they are, means over
 *                                     nodes; NaN: not measured, or the run was over
 *     /JOB_Y         f64 [n]          the run's seconds, submission to the end of its last epoch
 *     /JOB_FEATURES  strings [72]     the names of the columns: the first 72 of monitoring/features.h, which begin with the 58 events
 *     /JOB_RUNS      i32 [n]          the number of the run in its trace
 *
 * A run has a place here when it is complete, its times are known, and something of its first 40 seconds was measured. */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include <stddef.h>

#include "base/err.h"
#include "store/trace.h"

enum { JOBS_STEPS = 40, JOBS_FEATURES = 72, JOBS_CELLS = JOBS_STEPS * JOBS_FEATURES };

struct jobs {
    double *x; /* n * JOBS_CELLS */
    double *y;
    int *runs;
    size_t n;
};

/* -ENOMEM. Of a trace without such a run, n is 0. */
int jobs_of_trace(struct jobs *out, const struct trace *t, struct err *e);
void jobs_done(struct jobs *j);

/* Writes a new file or replaces the old one, atomically. -errno, -EIO for what HDF5 says. */
int jobs_write(const struct jobs *j, const char *path, struct err *e);

#endif
