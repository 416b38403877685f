/* A driver's log, whole, as the training runs in it. Pure. */
#ifndef BIGDL_LOG_RUNS_H
#define BIGDL_LOG_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "app/fold.h"

enum log_run_end {
    LOG_RUN_WHOLE,   /* its last epoch is finished */
    LOG_RUN_CUT,     /* ended within an epoch by what `cause` says */
    LOG_RUN_FAILED,  /* no epoch was finished, and `cause` says why */
    LOG_RUN_RUNNING, /* the log stops without a reason within an epoch, or before the first */
};

struct log_run { /* one optimize(): epochs from 1, or from where a checkpoint left off */
    struct fold_epoch *epochs;
    size_t n_epochs, cap;
    double batch;         /* records of an iteration, also of an unfinished epoch; NAN: there is none */
    double learning_rate; /* of the first iteration; NAN: not printed */
    int recoveries;       /* epochs that were trained again stand here once, as the last time */
    enum log_run_end end;
    const struct cause *cause; /* NULL: none */
};

struct log_runs {
    struct log_run *runs;
    size_t n, cap;
};

/* Fills *out (to be freed by log_runs_done). A log without any training gives one run without epochs. An epoch that begins
 * again at an earlier number without a recovery belongs to another run. -ENOMEM: *out is untouched. */
int log_runs_parse(struct log_runs *out, const char *text, size_t len);

void log_runs_done(struct log_runs *r);

#endif
