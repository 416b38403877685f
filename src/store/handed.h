/* What of a study was handed on to a server elsewhere, run by run: committed before and after each request, so that a kill between is known of.
 * A run stands for a trial there, run 0 for the study. Its values go in two streams, each with a cursor:
 *
 *   values      every number that was told by name, and what is known of epochs beside, by (epoch, name, step)
 *   decisions   by their numbers
 *
 * As in store.h: each call is its own transaction unless it stands between store_begin() and store_commit(). */
#ifndef STORE_HANDED_H
#define STORE_HANDED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/series.h"

enum handed_sending {
    HANDED_NONE,
    HANDED_RUN,       /* the run may have been made */
    HANDED_VALUES,    /* a batch behind the cursor may have arrived */
    HANDED_DECISIONS, /* likewise */
    HANDED_JOULES,    /* likewise */
};

struct handed {
    int64_t study;
    const char *target; /* the server, and where in it */
    int trial;          /* its number; 0: the study */
    const char *run_id; /* "": there is none yet */
    const char *status; /* as it was told last; "": not */
    int sending;        /* enum handed_sending */
    bool described;     /* its settings are there */
    bool done;          /* nothing will follow, unless the trial runs again */
    double joules;      /* as they were told; NAN: not */
    int epoch;          /* all values up to here are there */
    const char *name;
    int64_t step;
    int64_t seq; /* likewise of decisions */
};

/* 1 found, 0 none: then *out is untouched. Its texts are the caller's, to be freed by handed_done(). */
int store_handed_get(struct store *s, int64_t study, const char *target, int trial, struct handed *out, struct err *e);
void handed_done(struct handed *h);
int store_handed_put(struct store *s, const struct handed *h, struct err *e); /* adds it, or replaces it */

int store_handed_forget(struct store *s, int64_t study, const char *target, struct err *e); /* all of them */

/* Trials of the study of which something is to be handed on yet, by number: those that have begun and are not done with. */
int store_handed_open(struct store *s, int64_t study, const char *target, int (*row)(void *ctx, int trial), void *ctx,
                      struct err *e);

/* Values of a trial behind the cursor, at most so many, in its order; up to epoch `upto`. Beside those that were told by name there are of each
 * epoch: accuracy, loss and learning_rate, where they were not told, and system/epoch_seconds. What is not finite is left out. */
int store_handed_values(struct store *s, int64_t trial, const struct handed *after, int upto, int most,
                        int (*row)(void *ctx, const struct store_value *r), void *ctx, struct err *e);

/* Decisions about a trial (0: about the study) behind `seq`, at most so many. */
int store_handed_decisions(struct store *s, int64_t study, int trial, int64_t seq, int most,
                           int (*row)(void *ctx, const struct store_decision *d), void *ctx, struct err *e);

/* The last epoch of the trial that is complete; 0: none. */
int store_last_epoch(struct store *s, int64_t trial, int *out, struct err *e);

#endif
