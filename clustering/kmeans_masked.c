/* k-means with missing features. The mean over common features is no metric, so no bound holds: every distance is computed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans_state.h"

struct masked {
    const struct kmeans_data *x;
    const struct kmeans_cfg *cfg;
    const struct kmeans_tiles *tiles;
    size_t min_common;
    bool *able;     /* n: rows that have min_common features */
    double *near;   /* n: distance to the nearest seed or centre; INFINITY: none in common */
    double *weight; /* n: of the draws; and sums of blocks of it */
    double *sums;
    double *trial_near; /* KMEANS_TRIALS × n */
    double *total;      /* k × d */
    double variance;
};

/* One restart. */
struct attempt {
    struct kmeans km;
    uint32_t *labels;
    size_t n_none; /* able rows without a candidate */
};

static const unsigned char *mask_of(const struct kmeans_data *x, size_t row)
{
    return x->mask + row * x->d;
}

static double mean_over_common(const struct masked *m, size_t a, size_t b)
{
    size_t common;
    double sum = m->tiles->masked(kmeans_row(m->x, a), mask_of(m->x, a), kmeans_row(m->x, b), mask_of(m->x, b), m->x->d,
                                  &common);
    return common >= m->min_common ? sum / (double)common : INFINITY;
}

uint32_t kmeans_masked_nearest(const struct kmeans_tiles *t, const struct kmeans *km, const double *row,
                               const unsigned char *mask, double *out_distance)
{
    uint32_t best = KMEANS_NONE;
    double least = INFINITY;
    for (size_t c = 0; c < km->k; c++) {
        size_t common;
        double sum = t->masked(row, mask, km->centroids + c * km->d, km->present ? km->present + c * km->d : NULL,
                               km->d, &common);
        if (common == 0 || common < km->min_common || !(sum / (double)common < least))
            continue;
        least = sum / (double)common;
        best = (uint32_t)c;
    }
    *out_distance = least;
    return best;
}

/* --- seeds --- */

/* A row that has nothing in common with any seed is drawn as if it were twice as far as the farthest. */
static void weigh(struct masked *m)
{
    double most = 0;
    for (size_t i = 0; i < m->x->n; i++)
        if (m->able[i] && m->near[i] < INFINITY && m->near[i] > most)
            most = m->near[i];
    for (size_t i = 0; i < m->x->n; i++) {
        double far = most > 0 ? 2 * most : 1;
        m->weight[i] = !m->able[i] ? 0 : m->near[i] < INFINITY ? m->near[i] : far;
    }
    for (size_t i = 0; i < m->x->n; i += KMEANS_BLOCK) {
        size_t left = m->x->n - i;
        m->sums[i / KMEANS_BLOCK] = kmeans_block_sum(m->weight + i, left < KMEANS_BLOCK ? left : KMEANS_BLOCK);
    }
}

static size_t any_able(const struct masked *m, struct rng *rng)
{
    size_t i;
    do
        i = rng_below(rng, m->x->n);
    while (!m->able[i]);
    return i;
}

/* How much the row would lower the sum of weights as a seed; its distances are left in `near`. */
static double try_seed(const struct masked *m, size_t row, double *near)
{
    double gain = 0;
    for (size_t i = 0; i < m->x->n; i++) {
        near[i] = m->able[i] ? mean_over_common(m, i, row) : INFINITY;
        gain += near[i] < m->weight[i] ? m->weight[i] - near[i] : 0;
    }
    return gain;
}

static size_t add_seed(struct masked *m, struct rng *rng, size_t n_seeds)
{
    size_t n = m->x->n;
    size_t trials = n_seeds == 0 ? 1 : KMEANS_TRIALS;
    size_t rows[KMEANS_TRIALS];
    double most = -1;
    size_t best = 0;
    weigh(m);
    for (size_t t = 0; t < trials; t++) {
        rows[t] = n_seeds == 0 ? n : kmeans_draw(m->weight, m->sums, n, rng_unit(rng));
        if (rows[t] == n)
            rows[t] = any_able(m, rng);
        double gain = try_seed(m, rows[t], m->trial_near + t * n);
        if (gain > most) {
            most = gain;
            best = t;
        }
    }
    for (size_t i = 0; i < n; i++)
        m->near[i] = fmin(m->near[i], m->trial_near[best * n + i]);
    return rows[best];
}

static void seed(struct masked *m, struct rng *rng, struct kmeans *km)
{
    for (size_t i = 0; i < m->x->n; i++)
        m->near[i] = INFINITY;
    for (size_t c = 0; c < km->k; c++) {
        size_t row = add_seed(m, rng, c);
        for (size_t j = 0; j < km->d; j++) {
            bool there = mask_of(m->x, row)[j];
            km->present[c * km->d + j] = there;
            km->centroids[c * km->d + j] = there ? kmeans_row(m->x, row)[j] : 0;
        }
    }
}

/* --- rounds --- */

static size_t assign(struct masked *m, struct attempt *a)
{
    size_t changed = 0;
    memset(a->km.sizes, 0, a->km.k * sizeof *a->km.sizes);
    a->km.inertia = 0;
    a->n_none = 0;
    for (size_t i = 0; i < m->x->n; i++) {
        uint32_t was = a->labels[i];
        uint32_t is = kmeans_masked_nearest(m->tiles, &a->km, kmeans_row(m->x, i), mask_of(m->x, i), &m->near[i]);
        a->labels[i] = is;
        changed += is != was;
        a->n_none += m->able[i] && is == KMEANS_NONE;
        if (is == KMEANS_NONE)
            continue;
        a->km.sizes[is]++;
        a->km.inertia += m->near[i];
    }
    return changed;
}

/* The row farthest from its centre, those without a candidate before all others; n when all lie on theirs. A row that was
 * just given away is alone. */
static size_t farthest(const struct masked *m, const struct attempt *a)
{
    size_t far = m->x->n;
    for (size_t i = 0; i < m->x->n; i++) {
        bool alone = a->labels[i] != KMEANS_NONE && a->km.sizes[a->labels[i]] < 2;
        if (m->able[i] && !alone && m->near[i] > 0 && (far == m->x->n || m->near[i] > m->near[far]))
            far = i;
    }
    return far;
}

static void fill_empty(struct masked *m, struct attempt *a)
{
    for (size_t c = 0; c < a->km.k; c++) {
        size_t row = a->km.sizes[c] == 0 ? farthest(m, a) : m->x->n;
        if (row == m->x->n)
            continue;
        if (a->labels[row] != KMEANS_NONE)
            a->km.sizes[a->labels[row]]--;
        a->labels[row] = (uint32_t)c;
        a->km.sizes[c]++;
    }
}

static void add_up(struct masked *m, struct attempt *a)
{
    size_t d = m->x->d;
    memset(m->total, 0, a->km.k * d * sizeof *m->total);
    memset(a->km.counts, 0, a->km.k * d * sizeof *a->km.counts);
    for (size_t i = 0; i < m->x->n; i++) {
        if (a->labels[i] == KMEANS_NONE)
            continue;
        double *total = m->total + a->labels[i] * d;
        uint64_t *count = a->km.counts + a->labels[i] * d;
        for (size_t j = 0; j < d; j++)
            if (mask_of(m->x, i)[j]) {
                total[j] += kmeans_row(m->x, i)[j];
                count[j]++;
            }
    }
}

/* Centres to the means of their members; returns the sum of their squared shifts. A cluster without members stays. */
static double move_centres(struct masked *m, struct attempt *a)
{
    double shift2 = 0;
    add_up(m, a);
    for (size_t c = 0; c < a->km.k; c++)
        for (size_t i = c * m->x->d; i < (c + 1) * m->x->d && a->km.sizes[c] > 0; i++) {
            bool was = a->km.present[i];
            bool is = a->km.counts[i] > 0;
            double mean = is ? m->total[i] / (double)a->km.counts[i] : 0;
            shift2 += was && is ? (mean - a->km.centroids[i]) * (mean - a->km.centroids[i]) : 0;
            a->km.centroids[i] = mean;
            a->km.present[i] = is;
        }
    return shift2;
}

static void iterate(struct masked *m, struct attempt *a)
{
    memset(a->labels, 0xff, m->x->n * sizeof *a->labels);
    (void)assign(m, a); /* the first: all change */
    for (bool ended = false; !ended;) {
        fill_empty(m, a);
        double shift2 = move_centres(m, a);
        a->km.iterations++;
        ended = a->km.iterations >= m->cfg->max_iter || (m->cfg->tol > 0 && shift2 <= m->cfg->tol * m->variance);
        ended |= assign(m, a) == 0;
    }
    add_up(m, a); /* the counts of the last labels */
}

/* --- fitting --- */

static double column_variance(const struct kmeans_data *x, size_t j)
{
    double mean = 0, square = 0;
    size_t count = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (!mask_of(x, i)[j])
            continue;
        double delta = kmeans_row(x, i)[j] - mean;
        mean += delta / (double)++count;
        square += delta * (kmeans_row(x, i)[j] - mean);
    }
    return count ? square / (double)count : 0;
}

static size_t find_able(struct masked *m)
{
    size_t n_able = 0;
    for (size_t i = 0; i < m->x->n; i++) {
        size_t there = 0;
        for (size_t j = 0; j < m->x->d; j++)
            there += mask_of(m->x, i)[j] != 0;
        m->able[i] = there >= m->min_common;
        n_able += m->able[i];
    }
    return n_able;
}

static void masked_done(struct masked *m)
{
    void *const parts[] = { m->able, m->near, m->weight, m->sums, m->trial_near, m->total };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        free(parts[i]);
}

static int masked_init(struct masked *m, const struct kmeans_data *x, const struct kmeans_cfg *cfg, struct err *e)
{
    *m = (struct masked){ .x = x, .cfg = cfg, .tiles = kmeans_tiles_here() };
    m->min_common = cfg->min_common ? cfg->min_common : 1;
    m->able = calloc(x->n, sizeof *m->able);
    m->near = calloc(x->n, sizeof *m->near);
    m->weight = calloc(x->n, sizeof *m->weight);
    m->sums = calloc(x->n / KMEANS_BLOCK + 1, sizeof *m->sums);
    m->trial_near = calloc(x->n, KMEANS_TRIALS * sizeof *m->trial_near);
    m->total = calloc(cfg->k, x->d * sizeof *m->total);
    if (!m->able || !m->near || !m->weight || !m->sums || !m->trial_near || !m->total)
        return kmeans_no_memory(e, x->n);
    size_t n_able = find_able(m);
    if (cfg->k > n_able)
        return err_set(e, -EINVAL, "k = %zu: only %zu rows have %zu features or more", cfg->k, n_able, m->min_common);
    for (size_t j = 0; j < x->d; j++)
        m->variance += column_variance(x, j) / (double)x->d;
    return 0;
}

static void attempt_done(struct attempt *a)
{
    kmeans_done(&a->km);
    free(a->labels);
    *a = (struct attempt){ 0 };
}

static int attempt_run(struct masked *m, const double *start, unsigned restart, struct attempt *out, struct err *e)
{
    struct attempt a = { 0 };
    int rc = kmeans_init(&a.km, m->cfg->k, m->x->d, KMEANS_SOME_FEATURES, e);
    if (rc < 0)
        return rc;
    a.labels = calloc(m->x->n, sizeof *a.labels);
    if (!a.labels) {
        attempt_done(&a);
        return kmeans_no_memory(e, m->x->n);
    }
    a.km.min_common = m->min_common;
    if (start) {
        memcpy(a.km.centroids, start, a.km.k * a.km.d * sizeof *start);
        memset(a.km.present, 1, a.km.k * a.km.d);
    } else {
        struct rng rng = kmeans_rng(m->cfg, restart);
        seed(m, &rng, &a.km);
    }
    iterate(m, &a);
    *out = a;
    return 0;
}

/* Fewer rows without a candidate first: they cost nothing in the inertia. */
static bool is_better(const struct attempt *a, const struct attempt *b)
{
    return a->n_none != b->n_none ? a->n_none < b->n_none : a->km.inertia < b->km.inertia;
}

static int best_of(struct masked *m, const double *start, struct attempt *best, struct err *e)
{
    unsigned runs = start || m->cfg->n_init == 0 ? 1 : m->cfg->n_init;
    for (unsigned i = 0; i < runs; i++) {
        struct attempt a;
        int rc = attempt_run(m, start, i, &a, e);
        if (rc < 0)
            return rc;
        if (best->labels && !is_better(&a, best)) {
            attempt_done(&a);
            continue;
        }
        attempt_done(best);
        *best = a;
    }
    return 0;
}

int kmeans_masked_fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start,
                      struct kmeans *out, uint32_t *out_labels, struct err *e)
{
    struct masked m;
    struct attempt best = { 0 };
    int rc = masked_init(&m, x, cfg, e);
    if (rc == 0)
        rc = best_of(&m, start, &best, e);
    masked_done(&m);
    if (rc == 0) {
        if (out_labels)
            memcpy(out_labels, best.labels, x->n * sizeof *out_labels);
        *out = best.km;
        best.km = (struct kmeans){ 0 };
    }
    attempt_done(&best);
    return rc;
}
