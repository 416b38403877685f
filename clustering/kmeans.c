#include "clustering/kmeans.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans_state.h"

void kmeans_done(struct kmeans *km)
{
    if (!km)
        return;
    free(km->centroids);
    free(km->present);
    free(km->sizes);
    free(km->counts);
    *km = (struct kmeans){ 0 };
}

int kmeans_init(struct kmeans *out, size_t k, size_t d, enum kmeans_features has, struct err *e)
{
    bool masked = has == KMEANS_SOME_FEATURES;
    if (k == 0 || d == 0 || k >= INT32_MAX || d >= INT32_MAX)
        return err_set(e, -EINVAL, "k-means with k = %zu of %zu features: both must be from 1 to 2^31 - 2", k, d);
    struct kmeans km = { .k = k, .d = d, .min_common = 1 };
    km.centroids = calloc(k, d * sizeof *km.centroids);
    km.sizes = calloc(k, sizeof *km.sizes);
    km.present = masked ? calloc(k, d) : NULL;
    km.counts = masked ? calloc(k, d * sizeof *km.counts) : NULL;
    if (!km.centroids || !km.sizes || (masked && (!km.present || !km.counts))) {
        kmeans_done(&km);
        return err_set(e, -ENOMEM, "no memory for %zu centres of %zu features", k, d);
    }
    *out = km;
    return 0;
}

/* --- checks --- */

static int check_row(const double *row, const unsigned char *mask, size_t d, size_t *out_column)
{
    if (kmeans_tiles_here()->within(row, d, KMEANS_MAX))
        return 0;
    for (size_t j = 0; j < d; j++)
        if ((!mask || mask[j]) && !(fabs(row[j]) <= KMEANS_MAX)) {
            *out_column = j;
            return -EINVAL;
        }
    return 0;
}

int kmeans_check_values(const double *values, const unsigned char *mask, size_t n, size_t d, const char *what,
                        struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        if (check_row(values + i * d, mask ? mask + i * d : NULL, d, &j) < 0)
            return err_set(e, -EINVAL, "%s %zu, column %zu: %g is not a number of at most %g", what, i, j,
                           values[i * d + j], KMEANS_MAX);
    }
    return 0;
}

static int check(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start, struct err *e)
{
    if (x->n == 0 || x->d == 0 || x->n >= INT32_MAX || x->d >= INT32_MAX)
        return err_set(e, -EINVAL, "k-means over %zu rows of %zu features: both must be from 1 to 2^31 - 2", x->n,
                       x->d);
    if (cfg->k == 0 || cfg->k > x->n)
        return err_set(e, -EINVAL, "k = %zu: must be from 1 to the number of rows, %zu", cfg->k, x->n);
    if (!(cfg->tol >= 0) || isinf(cfg->tol))
        return err_set(e, -EINVAL, "tolerance %g: must be 0 or more, and finite", cfg->tol);
    int rc = kmeans_check_values(x->values, x->mask, x->n, x->d, "row", e);
    if (rc == 0 && start)
        rc = kmeans_check_values(start, NULL, cfg->k, x->d, "start centre", e);
    return rc;
}

/* --- fitting without a mask --- */

/* `runs` restarts from seeds of their own; the best so far is in `best`. */
static int restart(const struct kmeans_fast *f, const struct kmeans_cfg *cfg, unsigned first, unsigned runs,
                   struct kmeans_end *best, struct err *e)
{
    size_t d = f->x->d;
    AUTO_FREE struct rng *rngs = calloc(runs, sizeof *rngs);
    AUTO_FREE uint32_t *seeds = calloc(runs * cfg->k, sizeof *seeds);
    AUTO_FREE double *starts = calloc(runs * cfg->k, d * sizeof *starts);
    if (!rngs || !seeds || !starts)
        return kmeans_no_memory(e, f->x->n);
    for (unsigned i = 0; i < runs; i++)
        rngs[i] = kmeans_rng(cfg, first + i);
    int rc = kmeans_seed(f, cfg->k, runs, rngs, seeds, e);
    for (size_t c = 0; rc == 0 && c < runs * cfg->k; c++)
        memcpy(starts + c * d, kmeans_row(f->x, seeds[c]), d * sizeof *starts);
    return rc == 0 ? kmeans_lloyd(f, cfg, starts, runs, best, e) : rc;
}

/* Takes the centres of `end`. */
static int finish(const struct kmeans_fast *f, size_t k, struct kmeans_end *end, struct kmeans *out,
                  uint32_t *out_labels, struct err *e)
{
    const struct kmeans_data *x = f->x;
    struct kmeans km;
    int rc = kmeans_init(&km, k, x->d, KMEANS_ALL_FEATURES, e);
    if (rc < 0)
        return rc;
    memcpy(km.centroids, end->centroids, k * x->d * sizeof *km.centroids);
    for (size_t i = 0; i < x->n; i++) {
        km.sizes[end->labels[i]]++;
        km.inertia += f->tiles->dist2(kmeans_row(x, i), km.centroids + end->labels[i] * x->d, x->d);
    }
    km.iterations = end->iterations;
    if (out_labels)
        memcpy(out_labels, end->labels, x->n * sizeof *out_labels);
    *out = km;
    return 0;
}

static int plain_fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start, struct kmeans *out,
                     uint32_t *out_labels, struct err *e)
{
    struct kmeans_fast f;
    int rc = kmeans_fast_init(&f, x, e);
    if (rc < 0)
        return rc;
    struct kmeans_end best = { 0 };
    if (start)
        rc = kmeans_lloyd(&f, cfg, start, 1, &best, e);
    unsigned n_init = cfg->n_init ? cfg->n_init : 1;
    for (unsigned i = 0; !start && rc == 0 && i < n_init; i += KMEANS_ABREAST) {
        unsigned left = n_init - i;
        rc = restart(&f, cfg, i, left < KMEANS_ABREAST ? left : KMEANS_ABREAST, &best, e);
    }
    if (rc == 0)
        rc = finish(&f, cfg->k, &best, out, out_labels, e);
    kmeans_end_done(&best);
    kmeans_fast_done(&f);
    return rc;
}

static int fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start, struct kmeans *out,
               uint32_t *out_labels, struct err *e)
{
    int rc = check(x, cfg, start, e);
    if (rc < 0)
        return rc;
    return x->mask ? kmeans_masked_fit(x, cfg, start, out, out_labels, e)
                   : plain_fit(x, cfg, start, out, out_labels, e);
}

int kmeans_fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, struct kmeans *out, uint32_t *out_labels,
               struct err *e)
{
    return fit(x, cfg, NULL, out, out_labels, e);
}

int kmeans_fit_from(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start, struct kmeans *out,
                    uint32_t *out_labels, struct err *e)
{
    return fit(x, cfg, start, out, out_labels, e);
}
