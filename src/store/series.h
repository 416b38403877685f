/* Every number that was told of a trial, by its name: the values of one metric over steps or epochs. Those of epochs are all kept; of
 * steps those of every STRIDE-th, where the trial has more than SERIES_STEPS_MAX of them. As in store.h: each call is its own
 * transaction unless it stands between store_begin() and store_commit(). */
#ifndef STORE_SERIES_H
#define STORE_SERIES_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

enum { SERIES_STEPS_MAX = 10000, SERIES_NAMES_MAX = 64, SERIES_NAME_MAX = 64 };

/* What was told and is not stored yet. Begins zeroed. */
struct series {
    char (*names)[SERIES_NAME_MAX]; /* owned */
    size_t n_names, cap_names;
    struct series_point {
        size_t name;
        int epoch;
        int64_t step; /* 0: of the epoch as a whole */
        int64_t at_ms;
        double value;
    } * v; /* owned */
    size_t n, cap;
};

void series_done(struct series *s);
void series_clear(
    struct series *s); /* an attempt's that is over: what it told of an epoch that it did not complete goes */

/* A later value of the same name, step and epoch takes the place of the one before. Names beyond SERIES_NAMES_MAX of one epoch are left
 * out; of steps no more than SERIES_STEPS_MAX a name are held. -ENOMEM. */
int series_add(struct series *s, const char *name, int epoch, int64_t step, int64_t at_ms, double value);

/* Of so many steps, the values of every so many-th are kept: the smallest power of two that leaves at most SERIES_STEPS_MAX. */
int64_t series_stride(int64_t steps);

/* Stores what is held, and forgets it when that has succeeded. */
int store_series_put(struct store *s, int64_t trial, int attempt, struct series *held, struct err *e);

struct store_value {
    int64_t trial;
    const char *name;
    int64_t step; /* 0: of the epoch as a whole */
    int epoch;
    int attempt;   /* the attempt's number */
    int64_t at_ms; /* as the stamps of epochs */
    double value;  /* NAN: it was not finite */
};

/* The value that it told by that name at the end of its last epoch; NAN: none. */
int store_series_at_end(struct store *s, int64_t trial, const char *name, double *out, struct err *e);

/* Does any trial of the store have values of that name? Reads all values where none does. */
int store_series_has(struct store *s, const char *name, bool *out, struct err *e);

/* By name, step, epoch: those of epochs come before those of steps. */
int store_series(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_value *r), void *ctx,
                 struct err *e);

#endif
