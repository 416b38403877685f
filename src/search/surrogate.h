/* What a figure may be at points that were not tried: a Gaussian process over points, Matérn 5/2 with a length of each dimension, fitted to the
 * values that it is given. Pure; nothing is allocated, the same rows give the same bits. */
#ifndef SEARCH_SURROGATE_H
#define SEARCH_SURROGATE_H

#include "search/unit_space.h"

enum { SURROGATE_ROWS_MAX = 128 };

struct surrogate {
    size_t n_dims, n;
    bool named[SPACE_MAX_DIMS]; /* without an order: two values are the same or they are not */
    double length[SPACE_MAX_DIMS], noise;
    double mean, sd; /* of the values: the process is of what is normed by these */
    const struct unit_point *at[SURROGATE_ROWS_MAX];
    double low[SURROGATE_ROWS_MAX][SURROGATE_ROWS_MAX], solved[SURROGATE_ROWS_MAX];
};

/* `at` are kept, n >= 1 of them. */
void surrogate_fit(struct surrogate *s, const struct space *sp, const struct unit_point *const *at,
                   const double *values, size_t n);
void surrogate_foretell(const struct surrogate *s, const struct unit_point *at, double *out_mean, double *out_sd);

#endif
