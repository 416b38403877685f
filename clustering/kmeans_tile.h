/* The inner loops of k-means, once per instruction set and chosen when a fit begins. Every variant gives the same bits: the
 * order of each sum is fixed, and nothing is fused.
 *
 * Centres come in tiles of KMEANS_LANES: `tile` holds for each feature the lanes' -2 c, `base` their |c|^2, so that
 * base + x . tile is the score of a row x, its squared distance less |x|^2. Unused lanes have tile 0 and base infinity. */
#ifndef CLUSTERING_KMEANS_TILE_H
#define CLUSTERING_KMEANS_TILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __clang__
#pragma clang fp contract(off) /* what -std=c11 is to gcc; in all of k-means, as each of its files includes this */
#endif

enum { KMEANS_LANES = 8, KMEANS_SPARE = 8 /* rows that the inner loops may write past the last */ };

#define KMEANS_UP 1.000001f /* more than the rounding of a few operations on a bound */
#define KMEANS_DOWN 0.999999f

/* Rows of one call: rows + idx[i] * d is the i-th of n. */
struct kmeans_pick {
    const float *rows;
    const uint32_t *idx;
    size_t n, d;
};

/* The lowest score of a row in a tile, the lane that has it (the first of equals), and the lowest of the others. */
struct kmeans_low {
    float *first, *second;
    int32_t *lane;
};

struct kmeans_tiles {
    /* out: p->n × KMEANS_LANES, and KMEANS_SPARE rows of room */
    void (*scores)(const struct kmeans_pick *p, const float *tile, const float *base, float *out);
    /* of n × KMEANS_LANES scores; `scores` and each array of `out` go on for KMEANS_SPARE rows */
    void (*lowest)(const float *scores, size_t n, const struct kmeans_low *out);
    /* gain[lane] += max(0, near[idx[i]] - dist[i][lane]) over n rows; a difference of infinities counts as 0 */
    void (*gains)(const float *dist, const double *near, const uint32_t *idx, size_t n, double *gain);
    /* out[i]: the score of the i-th row with centre label[i]; neg2: -2 c, row by row */
    void (*own)(const struct kmeans_pick *p, const float *neg2, const float *base, const uint32_t *label, float *out);
    /* sqrt(max(x, 0)) * factor, in place */
    void (*roots)(float *x, size_t n, float factor);
    /* sum of squared differences */
    double (*dist2)(const double *a, const double *b, size_t d);
    /* the same over the features in both, and how many those are; others may be NaN; a mask of NULL has all */
    double (*masked)(const double *a, const unsigned char *in_a, const double *b, const unsigned char *in_b, size_t d,
                     size_t *out_common);
    /* lower -= drift, rounded down; lowest = min(lowest, lower) */
    void (*relax)(float *lower, size_t n, float drift, float *lowest);
    /* hi + lo += sign * x, each feature to 106 bits; sign is 1 or -1 */
    void (*add)(double *hi, double *lo, const double *x, double sign, size_t d);
    /* Is each of n numbers (NaN is not) at most `most` in magnitude? */
    int (*within)(const double *x, size_t n, double most);
    /* sum += x, low = min(low, x), high = max(high, x) */
    void (*span)(const double *x, size_t d, double *sum, double *low, double *high);
    /* out = (x - middle) * scale; returns the sum of its squares */
    double (*move)(const double *x, const double *middle, double scale, size_t d, float *out);
};

const struct kmeans_tiles *kmeans_tiles_here(void);
const struct kmeans_tiles *kmeans_tiles_plain(void); /* which run everywhere */

#endif
