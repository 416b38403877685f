/* The Gaussian process of `thaw`: a covariance of (point, step) pairs, a factor that grows row by row, and what it foretells for a list of columns.
 * Every number is computed by the same operations in the same order, however the rows and columns came to be: what is built again
 * after a restart is the same, bit by bit. That is why no linear algebra library is called here. Pure. */
#ifndef SEARCH_THAW_GP_H
#define SEARCH_THAW_GP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/unit_space.h"

enum { THAW_STEPS_MAX = 32 };

/* The dimensions that points lie in. */
struct places {
    size_t n;
    bool named[SPACE_MAX_DIMS]; /* without an order: two values are the same or they are not */
};

/* What is fitted. */
struct thaw_hyper {
    double length[SPACE_MAX_DIMS];
    double shared, own;           /* standard deviations: of what points have in common, and of a trial's own part */
    double shared_time, own_time; /* how far they reach, in logarithms of the epoch */
    double noise;
};

struct thaw_times {
    int n;
    double log_epoch[THAW_STEPS_MAX];
};

/* A value that was seen: of which trial, at which step, as a score. */
struct thaw_row {
    uint64_t trial;
    int step;
    double value;
};

double thaw_alike(const struct places *pl, const struct thaw_hyper *h, const struct unit_point *a,
                  const struct unit_point *b);

/* Covariances over steps, for one set of hyperparameters. */
struct thaw_steps {
    double shared[THAW_STEPS_MAX][THAW_STEPS_MAX], own[THAW_STEPS_MAX][THAW_STEPS_MAX];
};
void thaw_steps_set(struct thaw_steps *out, const struct thaw_hyper *h, const struct thaw_times *times);

/* A log posterior, up to a constant, of hyperparameters over rows, and one that was made better by a search that ends. `work` has room for
 * THAW_FIT_MAX² numbers; at most THAW_FIT_MAX rows. places[i] is of rows[i]. */
enum { THAW_FIT_MAX = 96 };
struct thaw_fit {
    const struct places *dims;
    const struct thaw_times *times;
    const struct thaw_row *rows;
    const struct unit_point *const *at;
    size_t n;
    double *work;
};
struct thaw_hyper thaw_hyper_usual(void);
void thaw_fit_improve(const struct thaw_fit *f, struct thaw_hyper *h);

#endif
