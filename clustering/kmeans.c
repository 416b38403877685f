#include "clustering/kmeans.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"

#ifdef __clang__
#pragma clang fp contract(off) /* what -std=c11 is to gcc */
#endif

enum { RESTARTS = 10, TRIALS = 8, BLOCK = 256, ROUNDS_MAX = 300 };
#define TOLERANCE 1e-4

/* What the restarts of one fit share. */
struct fitting {
    const struct kmeans_data *x;
    size_t k;
    bool *able;     /* n: rows that have min_common features */
    double *near;   /* n: distance to the nearest seed or centre; INFINITY: none in common */
    double *weight; /* n: of the draws; and sums of blocks of it */
    double *sums;
    double *trial_near; /* TRIALS × n */
    double *total;      /* k × d: sums of the members; and how many of them have the feature */
    uint64_t *count;
    double variance;
};

static int no_memory(struct err *e, size_t n)
{
    return err_set(e, -ENOMEM, "no memory for k-means over %zu rows", n);
}

void kmeans_done(struct kmeans *km)
{
    if (!km)
        return;
    free(km->centroids);
    free(km->present);
    free(km->sizes);
    free(km->labels);
    *km = (struct kmeans){ 0 };
}

static int kmeans_init(struct kmeans *out, const struct kmeans_data *x, size_t k, struct err *e)
{
    struct kmeans km = { .k = k,
                         .d = x->d,
                         .centroids = calloc(k, x->d * sizeof *km.centroids),
                         .present = calloc(k, x->d),
                         .sizes = calloc(k, sizeof *km.sizes),
                         .labels = calloc(x->n, sizeof *km.labels) };
    if (!km.centroids || !km.present || !km.sizes || !km.labels) {
        kmeans_done(&km);
        return no_memory(e, x->n);
    }
    *out = km;
    return 0;
}

/* --- distances --- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "four bytes become bits in their order");
typedef double v2d __attribute__((vector_size(16)));
typedef double v2du __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t v2l __attribute__((vector_size(16)));

static const v2l keep[4] = { { 0, 0 }, { -1, 0 }, { 0, -1 }, { -1, -1 } }; /* by which of two are there */

/* Squares of the differences of two features; those that are not there count as none. */
static inline v2d squares(const double *a, const double *b, unsigned both)
{
    v2d t = (v2d)((v2l)(*(const v2du *)a - *(const v2du *)b) & keep[both]);
    return t * t;
}

/* INFINITY: too little in common. Four features at a time; the order of the sum is fixed. */
static double distance(const struct kmeans_data *x, size_t row, const double *b, const unsigned char *in_b)
{
    static const unsigned char bits[16] = { 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4 };
    const double *a = x->values + row * x->d;
    const unsigned char *in_a = x->mask + row * x->d;
    v2d low = { 0 }, high = { 0 };
    double rest = 0;
    size_t common = 0, f = 0;
    for (; f + 4 <= x->d; f += 4) {
        uint32_t there_a, there_b;
        memcpy(&there_a, in_a + f, sizeof there_a);
        memcpy(&there_b, in_b + f, sizeof there_b);
        uint32_t both = (there_a & there_b) * UINT32_C(0x01020408) >> 24 & 15; /* four bytes of 0 or 1 as four bits */
        low += squares(a + f, b + f, both & 3);
        high += squares(a + f + 2, b + f + 2, both >> 2);
        common += bits[both];
    }
    for (; f < x->d; f++)
        if (in_a[f] & in_b[f]) {
            rest += (a[f] - b[f]) * (a[f] - b[f]);
            common++;
        }
    v2d sums = low + high;
    return common >= x->min_common ? ((sums[0] + sums[1]) + rest) / (double)common : INFINITY;
}

static uint32_t nearest(const struct kmeans_data *x, size_t row, const struct kmeans *km, double *out_distance)
{
    uint32_t best = KMEANS_NONE;
    *out_distance = INFINITY;
    for (size_t c = 0; c < km->k; c++) {
        double d = distance(x, row, km->centroids + c * km->d, km->present + c * km->d);
        if (!(d < *out_distance))
            continue;
        *out_distance = d;
        best = (uint32_t)c;
    }
    return best;
}

/* --- seeds --- */

static size_t block_len(size_t n, size_t begin)
{
    return n - begin < BLOCK ? n - begin : BLOCK;
}

static double block_sum(const double *weights, size_t n)
{
    double sum[4] = { 0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t lane = 0; lane < 4; lane++)
            sum[lane] += weights[i + lane];
    for (; i < n; i++)
        sum[0] += weights[i];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* A row that has nothing in common with any seed is drawn as if it were twice as far as the farthest. */
static void weigh(struct fitting *f)
{
    size_t n = f->x->n;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (f->able[i] && f->near[i] < INFINITY && f->near[i] > most)
            most = f->near[i];
    for (size_t i = 0; i < n; i++) {
        double far = most > 0 ? 2 * most : 1;
        f->weight[i] = !f->able[i] ? 0 : f->near[i] < INFINITY ? f->near[i] : far;
    }
    for (size_t i = 0; i < n; i += BLOCK)
        f->sums[i / BLOCK] = block_sum(f->weight + i, block_len(n, i));
}

/* A row by weight, `r` in [0, 1): weights that are not 0 only; n when there is none. Rounding may carry the walk past the end of a
 * block or of all: then it is the last weight that is not 0. */
static size_t draw(const struct fitting *f, double r)
{
    size_t n = f->x->n, n_blocks = (n + BLOCK - 1) / BLOCK, last = n;
    double left = 0;
    for (size_t b = 0; b < n_blocks; b++)
        left += f->sums[b];
    left *= r;
    for (size_t b = 0; b < n_blocks; b++) {
        if (!(f->sums[b] > 0))
            continue;
        size_t begin = b * BLOCK;
        if (left >= f->sums[b] && b + 1 < n_blocks) {
            left -= f->sums[b];
            last = begin;
            continue;
        }
        for (size_t i = begin; i < begin + block_len(n, begin); i++) {
            if (!(f->weight[i] > 0))
                continue;
            if (left < f->weight[i])
                return i;
            left -= f->weight[i];
            last = i;
        }
    }
    while (last < n && !(f->weight[last] > 0))
        last++;
    return last;
}

static size_t any_able(const struct fitting *f, struct rng *rng)
{
    size_t i;
    do
        i = rng_below(rng, f->x->n);
    while (!f->able[i]);
    return i;
}

/* How much the row would lower the sum of weights as a seed; its distances are left in `near`. */
static double try_seed(const struct fitting *f, size_t row, double *near)
{
    const double *b = f->x->values + row * f->x->d;
    const unsigned char *in_b = f->x->mask + row * f->x->d;
    double gain = 0;
    for (size_t i = 0; i < f->x->n; i++) {
        near[i] = f->able[i] ? distance(f->x, i, b, in_b) : INFINITY;
        gain += near[i] < f->weight[i] ? f->weight[i] - near[i] : 0;
    }
    return gain;
}

static size_t add_seed(struct fitting *f, struct rng *rng, size_t n_seeds)
{
    size_t n = f->x->n;
    size_t trials = n_seeds == 0 ? 1 : TRIALS;
    size_t rows[TRIALS];
    double most = -1;
    size_t best = 0;
    weigh(f);
    for (size_t t = 0; t < trials; t++) {
        rows[t] = n_seeds == 0 ? n : draw(f, rng_unit(rng));
        if (rows[t] == n)
            rows[t] = any_able(f, rng);
        double gain = try_seed(f, rows[t], f->trial_near + t * n);
        if (gain > most) {
            most = gain;
            best = t;
        }
    }
    for (size_t i = 0; i < n; i++)
        f->near[i] = fmin(f->near[i], f->trial_near[best * n + i]);
    return rows[best];
}

static void seed_centres(struct fitting *f, struct rng *rng, struct kmeans *km)
{
    for (size_t i = 0; i < f->x->n; i++)
        f->near[i] = INFINITY;
    for (size_t c = 0; c < km->k; c++) {
        size_t row = add_seed(f, rng, c);
        for (size_t j = 0; j < km->d; j++) {
            bool there = f->x->mask[row * km->d + j];
            km->present[c * km->d + j] = there;
            km->centroids[c * km->d + j] = there ? f->x->values[row * km->d + j] : 0;
        }
    }
}

/* --- rounds --- */

/* Each row to its nearest centre; returns how many change. */
static size_t assign(struct fitting *f, struct kmeans *km)
{
    size_t changed = 0;
    memset(km->sizes, 0, km->k * sizeof *km->sizes);
    km->inertia = 0;
    km->n_none = 0;
    for (size_t i = 0; i < f->x->n; i++) {
        uint32_t was = km->labels[i];
        uint32_t is = nearest(f->x, i, km, &f->near[i]);
        km->labels[i] = is;
        changed += is != was;
        km->n_none += f->able[i] && is == KMEANS_NONE;
        if (is == KMEANS_NONE)
            continue;
        km->sizes[is]++;
        km->inertia += f->near[i];
    }
    return changed;
}

/* The row farthest from its centre, those without a candidate before all others; n when all lie on theirs. A row that was
 * just given away is alone. */
static size_t farthest(const struct fitting *f, const struct kmeans *km)
{
    size_t far = f->x->n;
    for (size_t i = 0; i < f->x->n; i++) {
        bool alone = km->labels[i] != KMEANS_NONE && km->sizes[km->labels[i]] < 2;
        if (f->able[i] && !alone && f->near[i] > 0 && (far == f->x->n || f->near[i] > f->near[far]))
            far = i;
    }
    return far;
}

static void fill_empty(const struct fitting *f, struct kmeans *km)
{
    for (size_t c = 0; c < km->k; c++) {
        size_t row = km->sizes[c] == 0 ? farthest(f, km) : f->x->n;
        if (row == f->x->n)
            continue;
        if (km->labels[row] != KMEANS_NONE)
            km->sizes[km->labels[row]]--;
        km->labels[row] = (uint32_t)c;
        km->sizes[c]++;
    }
}

static void add_up(struct fitting *f, const struct kmeans *km)
{
    size_t d = f->x->d;
    memset(f->total, 0, km->k * d * sizeof *f->total);
    memset(f->count, 0, km->k * d * sizeof *f->count);
    for (size_t i = 0; i < f->x->n; i++) {
        if (km->labels[i] == KMEANS_NONE)
            continue;
        double *total = f->total + km->labels[i] * d;
        uint64_t *count = f->count + km->labels[i] * d;
        for (size_t j = 0; j < d; j++)
            if (f->x->mask[i * d + j]) {
                total[j] += f->x->values[i * d + j];
                count[j]++;
            }
    }
}

/* Centres to the means of their members; returns the sum of their squared shifts. A cluster without members stays. */
static double move_centres(struct fitting *f, struct kmeans *km)
{
    double shift2 = 0;
    add_up(f, km);
    for (size_t c = 0; c < km->k; c++)
        for (size_t i = c * km->d; i < (c + 1) * km->d && km->sizes[c] > 0; i++) {
            bool was = km->present[i], is = f->count[i] > 0;
            double mean = is ? f->total[i] / (double)f->count[i] : 0;
            shift2 += was && is ? (mean - km->centroids[i]) * (mean - km->centroids[i]) : 0;
            km->centroids[i] = mean;
            km->present[i] = is;
        }
    return shift2;
}

static void iterate(struct fitting *f, struct kmeans *km)
{
    memset(km->labels, 0xff, f->x->n * sizeof *km->labels);
    (void)assign(f, km); /* the first: all change */
    bool ended = false;
    for (unsigned rounds = 1; !ended; rounds++) {
        fill_empty(f, km);
        ended = move_centres(f, km) <= TOLERANCE * f->variance || rounds >= ROUNDS_MAX;
        ended |= assign(f, km) == 0;
    }
}

/* --- fitting --- */

static double column_variance(const struct kmeans_data *x, size_t j)
{
    double mean = 0, square = 0;
    size_t count = 0;
    for (size_t i = j; i < x->n * x->d; i += x->d) {
        if (!x->mask[i])
            continue;
        double delta = x->values[i] - mean;
        mean += delta / (double)++count;
        square += delta * (x->values[i] - mean);
    }
    return count ? square / (double)count : 0;
}

static size_t find_able(struct fitting *f)
{
    size_t n_able = 0;
    for (size_t i = 0; i < f->x->n; i++) {
        size_t there = 0;
        for (size_t j = 0; j < f->x->d; j++)
            there += f->x->mask[i * f->x->d + j] != 0;
        f->able[i] = there >= f->x->min_common;
        n_able += f->able[i];
    }
    return n_able;
}

static void fitting_done(struct fitting *f)
{
    void *const parts[] = { f->able, f->near, f->weight, f->sums, f->trial_near, f->total, f->count };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        free(parts[i]);
}

static int fitting_init(struct fitting *f, const struct kmeans_data *x, size_t k, struct err *e)
{
    *f = (struct fitting){ .x = x, .k = k };
    f->able = calloc(x->n, sizeof *f->able);
    f->near = calloc(x->n, sizeof *f->near);
    f->weight = calloc(x->n, sizeof *f->weight);
    f->sums = calloc(x->n / BLOCK + 1, sizeof *f->sums);
    f->trial_near = calloc(x->n, TRIALS * sizeof *f->trial_near);
    f->total = calloc(k, x->d * sizeof *f->total);
    f->count = calloc(k, x->d * sizeof *f->count);
    if (!f->able || !f->near || !f->weight || !f->sums || !f->trial_near || !f->total || !f->count)
        return no_memory(e, x->n);
    size_t n_able = find_able(f);
    if (k > n_able)
        return err_set(e, -EINVAL, "k = %zu: only %zu rows have %zu features or more", k, n_able, x->min_common);
    for (size_t j = 0; j < x->d; j++)
        f->variance += column_variance(x, j) / (double)x->d;
    return 0;
}

static bool is_better(const struct kmeans *a, const struct kmeans *b)
{
    return a->n_none != b->n_none ? a->n_none < b->n_none : a->inertia < b->inertia;
}

static int fit(struct fitting *f, uint64_t seed, struct kmeans *best, struct err *e)
{
    for (unsigned i = 0; i < RESTARTS; i++) {
        struct kmeans km;
        int rc = kmeans_init(&km, f->x, f->k, e);
        if (rc < 0)
            return rc;
        struct rng rng = rng_seeded(rng_mix(seed) + i);
        seed_centres(f, &rng, &km);
        iterate(f, &km);
        struct kmeans *worse = best->labels && !is_better(&km, best) ? &km : best;
        kmeans_done(worse);
        if (worse == best)
            *best = km;
    }
    return 0;
}

int kmeans_fit(const struct kmeans_data *x, size_t k, uint64_t seed, struct kmeans *out, struct err *e)
{
    struct fitting f;
    struct kmeans best = { 0 };
    int rc = fitting_init(&f, x, k, e);
    if (rc == 0)
        rc = fit(&f, seed, &best, e);
    fitting_done(&f);
    if (rc == 0)
        *out = best;
    else
        kmeans_done(&best);
    return rc;
}
