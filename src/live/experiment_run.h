/* An experiment, trained: the studies of each policy, one after the other, each a `run` of this program with a store of the policy's own,
 * and with it a model that begins empty. Blocks until all are done, or a signal comes; takes SIGINT, SIGTERM and SIGHUP meanwhile.
 *
 *     FOLDER/state.json         what is done, and when it was, on the clock of its policy
 *     FOLDER/lock               held while it runs
 *     FOLDER/POLICY/            pipetune.db and what stands beside it; NAME.out: what the run of a study printed
 *     FOLDER/measure/           likewise, of the studies that measure how long one takes
 *
 * The clock of a policy stands still while nobody runs the experiment. It is kept every few seconds, so what a kill costs is not counted
 * but for these; a study that it met goes on from its checkpoints, and its row tells so. */
#ifndef LIVE_EXPERIMENT_RUN_H
#define LIVE_EXPERIMENT_RUN_H

#include <sys/types.h>

#include "core/experiment.h"

enum { EXPERIMENT_STUDY_MAX = EXPERIMENT_NAME_MAX + 16 };

enum experiment_event { EXPERIMENT_ARRIVES, EXPERIMENT_STARTS, EXPERIMENT_GOES_ON, EXPERIMENT_ENDS };

struct experiment_news {
    enum experiment_event event;
    const char *stage; /* the policy's name; "measure" */
    const char *study;
    size_t number, of; /* within the stage, from 1 */
    double clock_s;
    double until_s; /* EXPERIMENT_ARRIVES: when */
    size_t waiting; /* have arrived and wait, this one not counted */
};

struct experiment_run {
    const struct experiment *x;
    const char *const *configs; /* of each job */
    const char *folder;
    const json_t *file;                                        /* the experiment as it is written */
    bool skip_idle;                                            /* the clock jumps over time in which nothing runs */
    void (*watch)(void *ctx, const struct experiment_news *n); /* NULL: nobody does */
    void *ctx;
    /* Starts a study, in a process group of its own: how it is run is asked here alone. NULL: as told above. */
    int (*start)(const struct experiment_run *r, const char *stage, const struct policy *policy, size_t job,
                 const char *study, pid_t *out, struct err *e);
};

/* Where a policy's store is, and what its study is called. NULL: memory. */
char *experiment_store(const char *folder, const char *stage);
void experiment_study_name(char out[EXPERIMENT_STUDY_MAX], const struct experiment *x, size_t job, int number);

/* Rows (x's policies one after the other, n each) get their times; what the stores tell is for others. *out_service_s is what the load is of.
 * 0: all are done. -EINTR: a signal came, and the same call goes on; -EBUSY: it is being run; -EEXIST: the folder is another
 * experiment's; -ECANCELED: a study stopped, with its own last words; and what files and processes say. */
int experiment_run(const struct experiment_run *r, struct experiment_arrival *arrivals, struct experiment_row *rows,
                   size_t n, double *out_service_s, struct err *e);

#endif
