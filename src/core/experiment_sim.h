/* An experiment over recorded runs: the studies of one policy, served one after the other on a virtual clock. Pure, and the same to the last
 * bit each time.
 *
 * A study trains each of its points for its epochs, one trial after the other; a stop rule would need curves, and is not played. Settings are
 * those that were recorded. What a policy's machine learns of a workload stays for later studies of it, as the model does live; it begins with
 * nothing. The search of a policy that searches for settings, too, is every point at every setting where all points of a grid are
 * trained, and else each point at one that is drawn. */
#ifndef CORE_EXPERIMENT_SIM_H
#define CORE_EXPERIMENT_SIM_H

#include "core/experiment.h"
#include "core/timeline.h"

struct experiment_point {
    double batch, lr; /* lr NAN: there is none */
};

/* What the studies of a job train. */
struct experiment_study {
    size_t first, n_jobs; /* its workload in the recorded jobs: so many, from this one on */
    struct experiment_point *points;
    size_t n_points;
    bool grid;  /* they are all that there are */
    int epochs; /* of each */
    double cores,
        memory_gb; /* the default setting, as written; NAN: not said. What was not recorded is the next smaller one that was. */
};

struct experiment_sim {
    const struct experiment *x;
    const struct experiment_study *studies; /* of each job */
    const struct timeline_jobs *recorded;
    /* Trials as they end, NULL: nobody wants them. Nonzero ends it all. */
    int (*trial)(void *ctx, const struct experiment_trial *t);
    void *ctx;
};

/* All arrivals under x->policies[policy], into rows[n]; rows' numbers in `trial` count from first_row. -ENOMEM, what `trial` says, and what the
 * policy's machine does. */
int experiment_simulate(struct experiment_row *rows, const struct experiment_sim *sim,
                        const struct experiment_arrival *arrivals, size_t n, size_t policy, size_t first_row,
                        struct err *e);

/* Seconds of one study of each job under the first policy, each alone and with nothing known; out[x->n_jobs]. */
int experiment_sim_service(double *out, const struct experiment_sim *sim, struct err *e);

/* The workload of a job by its word ("MODEL/DATASET"; NULL: the only one) and the points' batches in it. -EINVAL: says which there are. */
int experiment_sim_find(struct experiment_study *out, const struct timeline_jobs *recorded, const char *workload,
                        const char *job, struct err *e);

#endif
