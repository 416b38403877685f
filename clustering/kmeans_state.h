/* What the parts of k-means share. Rows and centres are also kept moved and scaled, x' = (x - mean) * scale with a power of two
 * such that |x'| <= 1, in single precision: they answer nearly every question in half the time, and the rest is settled by direct
 * distances in double precision.
 *
 * Which those are is decided from the data, row by row. A score |c'|^2 - 2 x'c' of d features is off by at most
 * slack * (2 reach + |x'|^2), where `reach` is the largest |c'|^2 and slack = (d + 16) 2^-24: d + 1 roundings in the sum, one of
 * each factor, and some to spare. Scores closer than twice that decide nothing. Data of one scale has a few such rows in a
 * hundred; where a few values of 1e17 make all others look alike, it is every row that is in doubt. */
#ifndef CLUSTERING_KMEANS_STATE_H
#define CLUSTERING_KMEANS_STATE_H

#include <stdbool.h>

#include "clustering/kmeans.h"
#include "clustering/kmeans_tile.h"
#include "core/rng.h"

enum { KMEANS_BLOCK = 256, KMEANS_ABREAST = 10, KMEANS_TRIALS = KMEANS_LANES };

struct kmeans_fast {
    const struct kmeans_data *x;
    const struct kmeans_tiles *tiles;
    double *mean;        /* d */
    double scale;        /* a power of two */
    float *rows, *norm2; /* x', n × d; |x'|^2 */
    double total;        /* sum of |x'|^2 */
    double variance;     /* mean variance of the features, of x */
    float slack;
};

/* -ENOMEM. The values were checked. */
int kmeans_fast_init(struct kmeans_fast *out, const struct kmeans_data *x, struct err *e);
void kmeans_fast_done(struct kmeans_fast *f);

static inline const double *kmeans_row(const struct kmeans_data *x, size_t i)
{
    return x->values + i * x->d;
}

/* What one run of Lloyd's algorithm ends with. */
struct kmeans_end {
    double *centroids; /* k × d */
    uint32_t *labels;  /* n */
    double inertia;    /* to compare runs with; scaled */
    unsigned iterations;
};

/* Both are the caller's to free by kmeans_end_done(). -ENOMEM. */
int kmeans_end_init(struct kmeans_end *out, size_t n, size_t k, size_t d, struct err *e);
void kmeans_end_done(struct kmeans_end *end);

/* The generator of a restart: each has its own, so that they may run in any order. */
struct rng kmeans_rng(const struct kmeans_cfg *cfg, unsigned restart);

/* k rows as seeds for each of `runs` restarts: out_rows is runs × k. They go abreast, so that what is read of the data serves all.
 * -ENOMEM. */
int kmeans_seed(const struct kmeans_fast *f, size_t k, size_t runs, struct rng *rngs, uint32_t *out_rows,
                struct err *e);

/* Lloyd's algorithm from each of `runs` sets of centres (runs × k × d), abreast. `best`, which may hold what earlier runs
 * ended with, is replaced when one of these ends lower. -ENOMEM. */
int kmeans_lloyd(const struct kmeans_fast *f, const struct kmeans_cfg *cfg, const double *starts, size_t runs,
                 struct kmeans_end *best, struct err *e);

/* An index drawn by weight, `r` in [0, 1): weights that are not 0 only; n when there is none. `sums` has the sum of each
 * KMEANS_BLOCK of weights, kmeans_block_sum() of them. */
double kmeans_block_sum(const double *weights, size_t n);
size_t kmeans_draw(const double *weights, const double *sums, size_t n, double r);

/* Is b strictly nearer to x than a, whose squared distances are da and db? See kmeans.h. */
bool kmeans_nearer(const double *x, const double *a, double da, const double *b, double db, size_t d);

/* With a mask: all that kmeans_fit() does after the checks; `start` may be NULL. -EINVAL, -ENOMEM. */
int kmeans_masked_fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start,
                      struct kmeans *out, uint32_t *out_labels, struct err *e);

/* The nearest centre by the mean over common features, and its distance; KMEANS_NONE and INFINITY when none is a candidate. */
uint32_t kmeans_masked_nearest(const struct kmeans_tiles *t, const struct kmeans *km, const double *row,
                               const unsigned char *mask, double *out_distance);

/* -EINVAL when one of n × d values, there by the mask (or NULL), is not finite or too large; `what` names a row of them. */
int kmeans_check_values(const double *values, const unsigned char *mask, size_t n, size_t d, const char *what,
                        struct err *e);

int kmeans_no_memory(struct err *e, size_t n);

#endif
