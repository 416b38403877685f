#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans.h"

enum { SPREADS_APART = 4 };

/* How the members of one cluster lie on the ways to the others. */
struct lines {
    const struct kmeans_data *x;
    const struct kmeans *km;
    double
        *square; /* k × k: [a][b] sums, over the members of a, the square of how far along the way from a to b they lie,
                        1 = at b */
    uint64_t *count; /* k × k: over how many */
    double scatter; /* sum of squared distances to centres, over all rows; and how many rows are free to lie anywhere */
    double free_rows;
};

static bool has(const struct lines *l, size_t row, size_t a, size_t b, size_t j)
{
    size_t d = l->x->d;
    return l->x->mask[row * d + j] && l->km->present[a * d + j] && l->km->present[b * d + j];
}

/* The way from a's centre without the row to b's, and the row's place on it. The centre without the row is
 * (m c - row) / (m - 1), so with y = row - c and D = b's centre - c, and q = 1 / (m - 1), the place is
 * (1 + q) (y.D + q y.y) / (D.D + 2 q y.D + q^2 y.y). */
static void add_member(struct lines *l, size_t row, size_t a, size_t b)
{
    const struct kmeans *km = l->km;
    const double *x = l->x->values + row * l->x->d;
    double yd = 0, yy = 0, dd = 0;
    for (size_t j = 0; j < km->d; j++) {
        if (!has(l, row, a, b, j))
            continue;
        double y = x[j] - km->centroids[a * km->d + j];
        double way = km->centroids[b * km->d + j] - km->centroids[a * km->d + j];
        yd += y * way;
        yy += y * y;
        dd += way * way;
    }
    double q = 1 / ((double)km->sizes[a] - 1);
    double length2 = dd + 2 * q * yd + q * q * yy;
    double place = length2 > 0 ? (1 + q) * (yd + q * yy) / length2 : 1;
    l->square[a * km->k + b] += place * place;
    l->count[a * km->k + b]++;
}

static void add_scatter(struct lines *l, size_t row, size_t a)
{
    const struct kmeans *km = l->km;
    for (size_t j = 0; j < km->d; j++)
        if (has(l, row, a, a, j)) {
            double y = l->x->values[row * l->x->d + j] - km->centroids[a * km->d + j];
            l->scatter += y * y;
        }
}

static double way2(const struct kmeans *km, size_t a, size_t b)
{
    double sum = 0;
    for (size_t j = 0; j < km->d; j++) {
        if (!(km->present[a * km->d + j] && km->present[b * km->d + j]))
            continue;
        double way = km->centroids[b * km->d + j] - km->centroids[a * km->d + j];
        sum += way * way;
    }
    return sum;
}

/* The mean of both clusters' variances along the line, where 1 is the square of its length. A single member has none: then the
 * other's counts, and of two single ones the scatter of all rows, as if all of it lay along the line. */
static double variance_between(const struct lines *l, size_t a, size_t b)
{
    size_t k = l->km->k;
    uint64_t n_a = l->count[a * k + b];
    uint64_t n_b = l->count[b * k + a];
    double of_a = n_a ? l->square[a * k + b] / (double)n_a : 0;
    double of_b = n_b ? l->square[b * k + a] / (double)n_b : 0;
    if (n_a && n_b)
        return (of_a + of_b) / 2;
    if (n_a || n_b)
        return of_a + of_b;
    return l->free_rows > 0 ? l->scatter / l->free_rows / way2(l->km, a, b) : INFINITY;
}

static bool all_apart(const struct lines *l)
{
    for (size_t a = 0; a < l->km->k; a++)
        for (size_t b = 0; b < a; b++)
            if (!(way2(l->km, a, b) > 0 && variance_between(l, a, b) * SPREADS_APART * SPREADS_APART <= 1))
                return false;
    return true;
}

/* 1: every two clusters can be told apart. */
static int is_told_apart(const struct kmeans_data *x, const struct kmeans *km, struct err *e)
{
    size_t k = km->k;
    for (size_t a = 0; a < k; a++)
        if (km->sizes[a] == 0)
            return 0;
    AUTO_FREE double *square = calloc(k * k, sizeof *square);
    AUTO_FREE uint64_t *count = calloc(k * k, sizeof *count);
    if (!square || !count)
        return err_sys(e, -ENOMEM, "cannot tell clusters apart");
    struct lines l = { .x = x, .km = km, .square = square, .count = count };
    for (size_t i = 0; i < x->n; i++) {
        uint32_t a = km->labels[i];
        if (a == KMEANS_NONE)
            continue;
        add_scatter(&l, i, a);
        l.free_rows += 1;
        for (size_t b = 0; b < k && km->sizes[a] > 1; b++)
            if (b != a)
                add_member(&l, i, a, b);
    }
    l.free_rows -= (double)k;
    return all_apart(&l);
}

int kmeans_choose_k(const struct kmeans_data *x, size_t k_max, uint64_t seed, struct kmeans *out, struct err *e)
{
    struct kmeans best;
    int rc = kmeans_fit(x, 1, seed, &best, e);
    if (rc < 0)
        return rc;
    uint64_t members = best.sizes[0];
    for (size_t k = 2; rc >= 0 && k <= k_max && k <= members / 2; k++) {
        struct kmeans km;
        rc = kmeans_fit(x, k, seed, &km, e);
        if (rc < 0)
            break;
        rc = is_told_apart(x, &km, e);
        struct kmeans *worse = rc == 1 ? &best : &km;
        kmeans_done(worse);
        if (worse == &best)
            best = km;
    }
    if (rc < 0) {
        kmeans_done(&best);
        return rc;
    }
    *out = best;
    return 0;
}
