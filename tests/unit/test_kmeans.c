#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans.h"
#include "clustering/kmeans_state.h"
#include "core/rng.h"
#include "tests/fault.h"

/* --- data --- */

static double gauss(struct rng *r)
{
    double u = rng_unit(r) + 0x1p-60;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * rng_unit(r));
}

struct blobs {
    size_t n, d, clusters;
    double apart; /* spread of the clusters' centres; theirs is 1 */
    uint64_t seed;
};

static double *make_blobs(const struct blobs *b)
{
    struct rng r = rng_seeded(b->seed);
    double *centre = calloc(b->clusters, b->d * sizeof *centre);
    double *x = calloc(b->n, b->d * sizeof *x);
    assert_non_null(centre);
    assert_non_null(x);
    for (size_t i = 0; i < b->clusters * b->d; i++)
        centre[i] = b->apart * gauss(&r);
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = 0; j < b->d; j++)
            x[i * b->d + j] = centre[i % b->clusters * b->d + j] + gauss(&r);
    free(centre);
    return x;
}

/* --- the plain algorithm --- */

struct plain {
    const double *x;
    const unsigned char *mask;
    size_t n, d, k, min_common;
    double *c;
    unsigned char *has;
    uint32_t *label;
    size_t *size;
};

/* In 64 bits, so that 1e17 in one feature leaves the others to be seen. */
static long double plain_distance(const struct plain *p, size_t row, size_t c)
{
    long double sum = 0;
    size_t common = 0;
    for (size_t j = 0; j < p->d; j++) {
        if (p->mask && !(p->mask[row * p->d + j] && p->has[c * p->d + j]))
            continue;
        long double t = (long double)p->x[row * p->d + j] - (long double)p->c[c * p->d + j];
        sum += t * t;
        common++;
    }
    if (!p->mask)
        return sum;
    return common >= p->min_common ? sum / (long double)common : (long double)INFINITY;
}

static size_t plain_assign(struct plain *p)
{
    size_t changed = 0;
    memset(p->size, 0, p->k * sizeof *p->size);
    for (size_t i = 0; i < p->n; i++) {
        uint32_t best = KMEANS_NONE;
        long double least = INFINITY;
        for (uint32_t c = 0; c < p->k; c++) {
            long double dist = plain_distance(p, i, c);
            if (dist < least) {
                least = dist;
                best = c;
            }
        }
        changed += p->label[i] != best;
        p->label[i] = best;
        if (best != KMEANS_NONE)
            p->size[best]++;
    }
    return changed;
}

static void plain_fill_empty(struct plain *p)
{
    long double *dist = calloc(p->n, sizeof *dist);
    assert_non_null(dist);
    for (size_t i = 0; i < p->n; i++)
        dist[i] = p->label[i] == KMEANS_NONE ? 0 : plain_distance(p, i, p->label[i]);
    for (uint32_t c = 0; c < p->k; c++) {
        size_t far = p->n;
        for (size_t i = 0; i < p->n && p->size[c] == 0; i++)
            if (dist[i] > 0 && p->size[p->label[i]] > 1 && (far == p->n || dist[i] > dist[far]))
                far = i;
        if (far == p->n)
            continue;
        p->size[p->label[far]]--;
        p->label[far] = c;
        p->size[c]++;
        dist[far] = 0;
    }
    free(dist);
}

static void plain_move(struct plain *p)
{
    for (size_t c = 0; c < p->k; c++)
        for (size_t j = 0; j < p->d && p->size[c] > 0; j++) {
            long double sum = 0;
            size_t count = 0;
            for (size_t i = 0; i < p->n; i++)
                if (p->label[i] == c && (!p->mask || p->mask[i * p->d + j])) {
                    sum += (long double)p->x[i * p->d + j];
                    count++;
                }
            p->has[c * p->d + j] = count > 0;
            p->c[c * p->d + j] = count ? (double)(sum / (long double)count) : 0;
        }
}

/* Until no row changes; returns the rounds. */
static unsigned plain_lloyd(struct plain *p, const double *start)
{
    p->c = calloc(p->k, p->d * sizeof *p->c);
    p->has = malloc(p->k * p->d);
    p->label = calloc(p->n, sizeof *p->label);
    p->size = calloc(p->k, sizeof *p->size);
    assert_true(p->c && p->has && p->label && p->size);
    memcpy(p->c, start, p->k * p->d * sizeof *start);
    memset(p->has, 1, p->k * p->d);
    memset(p->label, 0xff, p->n * sizeof *p->label);
    (void)plain_assign(p);
    for (unsigned rounds = 1;; rounds++) {
        plain_fill_empty(p);
        plain_move(p);
        if (plain_assign(p) == 0)
            return rounds;
    }
}

static void plain_done(struct plain *p)
{
    free(p->c);
    free(p->has);
    free(p->label);
    free(p->size);
}

/* --- comparing --- */

struct fitted {
    struct kmeans km;
    uint32_t *label;
};

static struct fitted fit_from(const struct kmeans_data *x, const struct kmeans_cfg *cfg, const double *start)
{
    struct fitted f = { .label = calloc(x->n, sizeof *f.label) };
    struct err e = { 0 };
    assert_non_null(f.label);
    if (kmeans_fit_from(x, cfg, start, &f.km, f.label, &e) < 0)
        fail_msg("%s", e.text);
    return f;
}

static struct fitted fit(const struct kmeans_data *x, const struct kmeans_cfg *cfg)
{
    struct fitted f = { .label = calloc(x->n, sizeof *f.label) };
    struct err e = { 0 };
    assert_non_null(f.label);
    if (kmeans_fit(x, cfg, &f.km, f.label, &e) < 0)
        fail_msg("%s", e.text);
    return f;
}

static void fitted_done(struct fitted *f)
{
    kmeans_done(&f->km);
    free(f->label);
}

static void assert_close(const char *name, double got, double want, double scale)
{
    if (!(fabs(got - want) <= 1e-12 * scale + 1e-13 * fabs(want)))
        fail_msg("%s: got %.17g, want %.17g", name, got, want);
}

static void assert_like_plain(const char *name, const struct fitted *f, const struct plain *p, unsigned rounds)
{
    for (size_t i = 0; i < p->n; i++)
        if (f->label[i] != p->label[i])
            fail_msg("%s: row %zu is in %u, want %u", name, i, f->label[i], p->label[i]);
    for (size_t i = 0; i < p->k * p->d; i++)
        assert_close(name, f->km.centroids[i], p->c[i], 1);
    long double inertia = 0;
    for (size_t i = 0; i < p->n; i++)
        inertia += p->label[i] == KMEANS_NONE ? 0 : plain_distance(p, i, p->label[i]);
    assert_close(name, f->km.inertia, (double)inertia, (double)inertia);
    for (size_t c = 0; c < p->k; c++)
        assert_int_equal(f->km.sizes[c], p->size[c]);
    if (f->km.iterations != rounds)
        fail_msg("%s: %u rounds, want %u", name, f->km.iterations, rounds);
}

static void compare(const char *name, const double *x, const unsigned char *mask, size_t n, size_t d, size_t k,
                    const double *start)
{
    struct kmeans_data data = { .values = x, .mask = mask, .n = n, .d = d };
    struct kmeans_cfg cfg = KMEANS_CFG(k);
    cfg.tol = 0;
    cfg.max_iter = 10000;
    cfg.min_common = 3;
    struct plain p = { .x = x, .mask = mask, .n = n, .d = d, .k = k, .min_common = 3 };
    unsigned rounds = plain_lloyd(&p, start);
    struct fitted f = fit_from(&data, &cfg, start);
    assert_like_plain(name, &f, &p, rounds);
    fitted_done(&f);
    plain_done(&p);
}

static const struct {
    const char *name;
    struct blobs b;
    size_t k;
} random_cases[] = {
    { "one feature", { 500, 1, 4, 5, 1 }, 4 },          { "few features, overlapping", { 3000, 3, 5, 1, 2 }, 7 },
    { "58 features, apart", { 2000, 58, 6, 4, 3 }, 6 }, { "58 features, overlapping", { 3000, 58, 6, 0.2, 4 }, 9 },
    { "no clusters at all", { 3000, 8, 1, 0, 5 }, 40 }, { "many centres", { 1500, 5, 30, 2, 6 }, 130 },
    { "a tile exactly", { 700, 7, 8, 1, 7 }, 8 },       { "one more than a tile", { 700, 9, 8, 1, 8 }, 9 },
    { "a block exactly", { 256, 4, 3, 1, 9 }, 3 },      { "one more than a block", { 257, 4, 3, 1, 10 }, 3 },
};

static void test_the_result_is_that_of_the_plain_algorithm(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(random_cases); i++) {
        const struct blobs *b = &random_cases[i].b;
        double *x = make_blobs(b);
        compare(random_cases[i].name, x, NULL, b->n, b->d, random_cases[i].k, x);
        free(x);
    }
}

/* Coordinates of a coarse grid have rows at the same distance of several centres, and equal rows as centres. */
static void test_ties_go_to_the_lowest_centre(void **state)
{
    (void)state;
    enum { N = 600, D = 3, K = 21 };
    struct rng r = rng_seeded(11);
    double x[N * D];
    for (size_t i = 0; i < N * D; i++)
        x[i] = (double)rng_below(&r, 4);
    struct kmeans_cfg cfg = KMEANS_CFG(K);
    cfg.max_iter = 1;
    struct kmeans_data data = { .values = x, .n = N, .d = D };
    struct fitted f = fit_from(&data, &cfg, x);
    struct plain p = { .x = x, .n = N, .d = D, .k = K };
    p.c = f.km.centroids;
    for (size_t i = 0; i < N; i++)
        for (uint32_t c = 0; c < f.label[i]; c++)
            assert_true(plain_distance(&p, i, c) > plain_distance(&p, i, f.label[i]));
    fitted_done(&f);

    const double even[] = { 0, 1, -1 }; /* the first is as near to one start as to the other */
    static const double starts[2][2] = { { 1, -1 }, { -1, 1 } };
    struct kmeans_cfg two = KMEANS_CFG(2);
    for (size_t i = 0; i < 2; i++) {
        f = fit_from(&(struct kmeans_data){ .values = even, .n = 3, .d = 1 }, &two, starts[i]);
        assert_int_equal(f.label[0], 0);
        fitted_done(&f);
    }
}

/* The inner order of the centres is by their distance to the first: 0, 2, 1. */
static void test_ties_are_settled_by_the_order_given(void **state)
{
    (void)state;
    const double x[] = { 0, 0, 4, 3, 0, 4, 2, 3.5 }; /* the last lies between the second and the third */
    struct kmeans_cfg cfg = KMEANS_CFG(3);
    struct fitted f = fit_from(&(struct kmeans_data){ .values = x, .n = 4, .d = 2 }, &cfg, x);
    assert_int_equal(f.label[3], 1);
    fitted_done(&f);
}

static unsigned char *make_mask(size_t n, size_t d, unsigned missing_percent, uint64_t seed)
{
    struct rng r = rng_seeded(seed);
    unsigned char *mask = malloc(n * d);
    assert_non_null(mask);
    for (size_t i = 0; i < n * d; i++)
        mask[i] = rng_below(&r, 100) >= missing_percent;
    return mask;
}

static void test_missing_features_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct blobs b;
        size_t k;
        unsigned missing;
    } cases[] = {
        { "none missing", { 400, 9, 4, 2, 21 }, 4, 0 },
        { "a third missing", { 900, 11, 4, 2, 22 }, 5, 33 },
        { "most missing, some rows have no candidate", { 900, 14, 3, 2, 23 }, 4, 80 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct blobs *b = &cases[i].b;
        double *x = make_blobs(b);
        unsigned char *mask = make_mask(b->n, b->d, cases[i].missing, b->seed);
        double *start = calloc(cases[i].k, b->d * sizeof *start);
        assert_non_null(start);
        memcpy(start, x, cases[i].k * b->d * sizeof *start);
        for (size_t j = 0; j < b->n * b->d; j++)
            if (!mask[j])
                x[j] = j % 2 ? NAN : 1e300; /* never looked at */
        compare(cases[i].name, x, mask, b->n, b->d, cases[i].k, start);
        free(start);
        free(mask);
        free(x);
    }
}

static void test_a_centre_has_the_features_of_its_members(void **state)
{
    (void)state;
    const double x[] = { 1, 10, 0, 3, 0, 0, 101, 0, 7, 103, 0, 9 };
    const unsigned char mask[] = { 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1 };
    struct kmeans_data data = { .values = x, .mask = mask, .n = 4, .d = 3 };
    struct kmeans_cfg cfg = KMEANS_CFG(2);
    struct fitted f = fit(&data, &cfg);
    uint32_t low = f.label[0];
    uint32_t high = f.label[2];
    assert_int_not_equal(low, high);
    assert_int_equal(f.label[1], low);
    assert_int_equal(f.label[3], high);
    const double *c = f.km.centroids;
    assert_true(c[low * 3] == 2 && c[low * 3 + 1] == 10 && c[high * 3] == 102 && c[high * 3 + 2] == 8);
    assert_memory_equal(f.km.present + low * 3, ((unsigned char[]){ 1, 1, 0 }), 3);
    assert_memory_equal(f.km.present + high * 3, ((unsigned char[]){ 1, 0, 1 }), 3);
    assert_int_equal(f.km.counts[low * 3], 2);
    assert_int_equal(f.km.counts[low * 3 + 1], 1);
    assert_close("inertia: means over the common features", f.km.inertia, 0.5 + 1 + 1 + 1, 1);
    fitted_done(&f);
}

static void test_too_few_common_features_are_no_candidate(void **state)
{
    (void)state;
    const double x[] = { 1, 1, 1, 2, 2, 2, 3, 3, 3 };
    const unsigned char mask[] = { 1, 1, 1, 1, 1, 1, 1, 0, 0 };
    struct kmeans_data data = { .values = x, .mask = mask, .n = 3, .d = 3 };
    struct kmeans_cfg cfg = KMEANS_CFG(1);
    cfg.min_common = 2;
    struct fitted f = fit(&data, &cfg);
    struct err e;
    uint32_t cluster;
    double distance;
    assert_int_equal(f.label[2], KMEANS_NONE);
    assert_int_equal(f.km.sizes[0], 2);
    assert_true(f.km.centroids[0] == 1.5);
    assert_int_equal(kmeans_predict(&f.km, x + 6, mask + 6, &cluster, &distance, &e), -ENODATA);
    assert_int_equal(kmeans_predict(&f.km, x + 6, NULL, &cluster, &distance, &e), 0);
    assert_true(distance == 2.25);
    fitted_done(&f);
    cfg.k = 3;
    assert_int_equal(kmeans_fit(&data, &cfg, &f.km, NULL, &e), -EINVAL);
    assert_string_equal(e.text, "k = 3: only 2 rows have 2 features or more");
}

static void test_restarts_that_leave_fewer_rows_out_are_better(void **state)
{
    (void)state;
    const double x[] = { 0, 0, 1, 0, 2, 0, 0, 5, 0, 5 }; /* the last two have another feature, and no scatter */
    const unsigned char mask[] = { 1, 0, 1, 0, 1, 0, 0, 1, 0, 1 };
    struct kmeans_cfg cfg = KMEANS_CFG(1);
    cfg.n_init = 20;
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .mask = mask, .n = 5, .d = 2 }, &cfg);
    assert_int_equal(f.km.sizes[0], 3);
    assert_int_equal(f.label[4], KMEANS_NONE);
    fitted_done(&f);
    cfg.k = 2;
    cfg.n_init = 1;
    for (cfg.seed = 0; cfg.seed < 20; cfg.seed++) {
        f = fit(&(struct kmeans_data){ .values = x, .mask = mask, .n = 5, .d = 2 }, &cfg);
        assert_int_equal(f.km.sizes[0] + f.km.sizes[1], 5);
        fitted_done(&f);
    }
}

static void test_an_empty_cluster_gets_the_farthest_row(void **state)
{
    (void)state;
    const double x[] = { 0, 1, 2, 3, 50, 100, 101 };
    const double start[] = { 0, 1000, 100, -2000 };
    compare("two empty", x, NULL, 7, 1, 4, start);
    struct kmeans_cfg cfg = KMEANS_CFG(2);
    const double far[] = { 0, 1e6 };
    struct fitted f = fit_from(&(struct kmeans_data){ .values = x, .n = 5, .d = 1 }, &cfg, far);
    assert_int_equal(f.label[4], 1);
    assert_true(f.km.centroids[1] == 50);
    fitted_done(&f);
}

static void test_fewer_distinct_rows_than_clusters(void **state)
{
    (void)state;
    double x[40];
    unsigned char mask[40];
    memset(mask, 1, sizeof mask);
    for (size_t i = 0; i < 20; i++) {
        x[2 * i] = (double)(i % 3);
        x[2 * i + 1] = -(double)(i % 3);
    }
    for (int masked = 0; masked < 2; masked++) {
        struct kmeans_data data = { .values = x, .mask = masked ? mask : NULL, .n = 20, .d = 2 };
        struct kmeans_cfg cfg = KMEANS_CFG(5);
        cfg.tol = 0;
        struct fitted f = fit(&data, &cfg);
        assert_true(f.km.inertia == 0);
        assert_true(f.km.iterations < 10); /* rows do not go to and fro */
        size_t filled = 0;
        for (size_t c = 0; c < 5; c++)
            filled += f.km.sizes[c] > 0;
        assert_int_equal(filled, 3);
        fitted_done(&f);
    }
}

static void test_seeds_are_distinct_as_long_as_rows_are(void **state)
{
    (void)state;
    enum { COPIES = 60, DISTINCT = 6, D = 7 };
    const struct blobs b = { DISTINCT, D, 1, 0, 33 };
    double *rows = make_blobs(&b);
    for (size_t i = 0; i < DISTINCT * D; i++)
        rows[i] = (double)(i / D % 2) +
                  1e-5 * rows[i]; /* two places, and in each three that single precision takes for one */
    double x[COPIES * DISTINCT * D];
    for (size_t i = 0; i < COPIES; i++)
        memcpy(x + i * DISTINCT * D, rows, DISTINCT * D * sizeof *x);
    struct kmeans_data data = { .values = x, .n = COPIES * DISTINCT, .d = D };
    struct kmeans_fast f;
    struct err e;
    assert_int_equal(kmeans_fast_init(&f, &data, &e), 0);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng = rng_seeded(seed);
        uint32_t seeds[DISTINCT];
        unsigned seen = 0;
        assert_int_equal(kmeans_seed(&f, DISTINCT, 1, &rng, seeds, &e), 0);
        for (size_t c = 0; c < DISTINCT; c++)
            seen |= 1u << seeds[c] % DISTINCT;
        assert_int_equal(seen, (1u << DISTINCT) - 1);
    }
    kmeans_fast_done(&f);
    free(rows);
}

static void test_as_many_clusters_as_rows(void **state)
{
    (void)state;
    const struct blobs b = { 50, 5, 1, 0, 31 };
    double *x = make_blobs(&b);
    struct kmeans_cfg cfg = KMEANS_CFG(50);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .n = 50, .d = 5 }, &cfg);
    assert_true(f.km.inertia == 0);
    for (size_t c = 0; c < 50; c++)
        assert_int_equal(f.km.sizes[c], 1);
    fitted_done(&f);
    free(x);
}

static void test_one_cluster_is_the_mean(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8, 10, -10, 5, 0 };
    struct kmeans_cfg cfg = KMEANS_CFG(1);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .n = 4, .d = 2 }, &cfg);
    assert_true(f.km.centroids[0] == 5 && f.km.centroids[1] == 0);
    assert_true(f.km.inertia == 42 + 168);
    fitted_done(&f);
}

static void test_a_seed_decides_everything(void **state)
{
    (void)state;
    const struct blobs b = { 2000, 6, 1, 0, 41 };
    double *x = make_blobs(&b);
    unsigned char *mask = make_mask(b.n, b.d, 20, 1);
    for (int masked = 0; masked < 2; masked++) {
        struct kmeans_data data = { .values = x, .mask = masked ? mask : NULL, .n = b.n, .d = b.d };
        struct kmeans_cfg cfg = KMEANS_CFG(12);
        cfg.n_init = 2;
        struct fitted first = fit(&data, &cfg);
        struct fitted again = fit(&data, &cfg);
        cfg.seed = 1;
        struct fitted other = fit(&data, &cfg);
        assert_memory_equal(first.km.centroids, again.km.centroids, 12 * b.d * sizeof(double));
        assert_memory_equal(first.label, again.label, b.n * sizeof(uint32_t));
        assert_true(first.km.inertia == again.km.inertia);
        assert_memory_not_equal(first.km.centroids, other.km.centroids, 12 * b.d * sizeof(double));
        fitted_done(&first);
        fitted_done(&again);
        fitted_done(&other);
    }
    free(mask);
    free(x);
}

static void test_more_restarts_end_no_higher(void **state)
{
    (void)state;
    const struct blobs b = { 1500, 4, 25, 6, 51 };
    double *x = make_blobs(&b);
    struct kmeans_data data = { .values = x, .n = b.n, .d = b.d };
    double last = INFINITY;
    static const unsigned inits[] = { 1, 3, 10, 23 };
    for (size_t i = 0; i < ARRAY_LEN(inits); i++) {
        struct kmeans_cfg cfg = KMEANS_CFG(25);
        cfg.n_init = inits[i];
        cfg.seed = 5;
        struct fitted f = fit(&data, &cfg);
        assert_true(f.km.inertia <= last * (1 + 1e-9));
        last = f.km.inertia;
        fitted_done(&f);
    }
    free(x);
}

static void test_separated_clusters_are_found(void **state)
{
    (void)state;
    const struct blobs b = { 3200, 58, 16, 3, 61 };
    double *x = make_blobs(&b);
    struct kmeans_cfg cfg = KMEANS_CFG(16);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .n = b.n, .d = b.d }, &cfg);
    for (size_t i = 16; i < b.n; i++)
        assert_int_equal(f.label[i], f.label[i % 16]);
    for (size_t c = 0; c < 16; c++)
        assert_int_equal(f.km.sizes[c], 200);
    fitted_done(&f);
    free(x);
}

static void check_predictions(const struct kmeans_data *x, const struct kmeans_cfg *cfg)
{
    struct fitted f = fit(x, cfg);
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) {
        uint32_t cluster;
        double distance;
        struct err e;
        assert_int_equal(
            kmeans_predict(&f.km, x->values + i * x->d, x->mask ? x->mask + i * x->d : NULL, &cluster, &distance, &e),
            0);
        assert_int_equal(cluster, f.label[i]);
        sum += distance;
    }
    assert_close("inertia", f.km.inertia, sum, sum);
    fitted_done(&f);
}

static void test_predict_agrees_with_the_fit(void **state)
{
    (void)state;
    const struct blobs b = { 1500, 6, 5, 0.5, 71 };
    double *x = make_blobs(&b);
    unsigned char *mask = make_mask(b.n, b.d, 30, 2);
    for (size_t i = 0; i < b.n; i++)
        mask[i * b.d] = 1;
    for (int masked = 0; masked < 2; masked++)
        for (unsigned rounds = 1; rounds < 5; rounds++) { /* not settled */
            struct kmeans_data data = { .values = x, .mask = masked ? mask : NULL, .n = b.n, .d = b.d };
            struct kmeans_cfg cfg = KMEANS_CFG(40);
            cfg.n_init = 2;
            cfg.max_iter = rounds;
            check_predictions(&data, &cfg);
        }
    free(mask);
    free(x);
}

static void test_values_of_1e17_predict_right(void **state)
{
    (void)state;
    struct kmeans km;
    struct err e;
    uint32_t cluster;
    double distance;
    assert_int_equal(kmeans_init(&km, 3, 2, KMEANS_ALL_FEATURES, &e), 0);
    const double centroids[] = { 1e17, 0, 1e17, 5, 2e17, 5 };
    memcpy(km.centroids, centroids, sizeof centroids);
    assert_int_equal(kmeans_predict(&km, (double[]){ 1e17, 4 }, NULL, &cluster, &distance, &e), 0);
    assert_int_equal(cluster, 1);
    assert_true(distance == 1);
    /* 1e17 away of both: what differs is lost in the squares */
    assert_int_equal(kmeans_predict(&km, (double[]){ 0, 2.6 }, NULL, &cluster, &distance, &e), 0);
    assert_int_equal(cluster, 1);
    assert_int_equal(kmeans_predict(&km, (double[]){ 0, 2.4 }, NULL, &cluster, &distance, &e), 0);
    assert_int_equal(cluster, 0);
    assert_int_equal(kmeans_predict(&km, (double[]){ 1.6e17, 1e9 }, NULL, &cluster, &distance, &e), 0);
    assert_int_equal(cluster, 2);
    kmeans_done(&km);
}

/* Small structure beside 1e17: what single precision sees of it is nothing. */
static void test_values_of_1e17_are_clustered_right(void **state)
{
    (void)state;
    const struct blobs b = { 600, 3, 3, 100, 81 };
    double *x = make_blobs(&b);
    compare("plain", x, NULL, b.n, b.d, 3, x);
    for (size_t i = 0; i < b.n; i++)
        x[i * b.d] = 1e17; /* all alike there */
    compare("one feature of 1e17", x, NULL, b.n, b.d, 3, x);
    for (size_t j = 0; j < b.d; j++)
        x[599 * b.d + j] = -1e17; /* one row far off; its cluster loses it when it gets a centre of its own */
    double start[12];
    memcpy(start, x, sizeof start);
    compare("one row of 1e17, shared", x, NULL, b.n, b.d, 3, start);
    memcpy(start + 9, x + 599 * b.d, 3 * sizeof *start);
    compare("one row of 1e17, alone", x, NULL, b.n, b.d, 4, start);
    struct kmeans_cfg cfg = KMEANS_CFG(4);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .n = b.n, .d = b.d }, &cfg);
    assert_int_equal(f.km.sizes[f.label[599]], 1);
    for (size_t i = 3; i < 599; i++)
        assert_int_equal(f.label[i], f.label[i % 3]);
    fitted_done(&f);
    free(x);
}

/* A row of 1e17 joins a cluster of small ones for a round, and leaves it: the mean of those left must be theirs. */
static void test_a_large_value_that_leaves_takes_nothing_along(void **state)
{
    (void)state;
    const double x[] = { 0.25, 0.5, 0.75, 1e17, 3e17, 3.5e17 };
    const double start[] = { 0, 2.5e17 };
    compare("leaves", x, NULL, 6, 1, 2, start);
    struct kmeans_cfg cfg = KMEANS_CFG(2);
    const double below[] = { -1e16, 2.2e17 };
    struct fitted f = fit_from(&(struct kmeans_data){ .values = x, .n = 6, .d = 1 }, &cfg, below);
    assert_int_equal(f.km.sizes[0], 4);
    fitted_done(&f);
    const double y[] = { 0.25, 0.5, 0.75, 1e17, 1.01e17, 1.02e17 };
    const double near[] = { 0.3, 2.1e17 };
    f = fit_from(&(struct kmeans_data){ .values = y, .n = 6, .d = 1 }, &cfg, near);
    assert_int_equal(f.km.sizes[0], 3);
    assert_true(f.km.iterations > 1);
    assert_true(f.km.centroids[0] == 0.5);
    fitted_done(&f);
    const double z[] = { 0.25, 0.5, 0.75, 1e60, 1.01e60, 1.02e60 }; /* more than 106 bits apart */
    const double as_near[] = { 0.3, 2.1e60 };
    static const unsigned last_round[] = { 2, 300 }; /* it leaves in the first */
    for (size_t i = 0; i < ARRAY_LEN(last_round); i++) {
        cfg.max_iter = last_round[i];
        f = fit_from(&(struct kmeans_data){ .values = z, .n = 6, .d = 1 }, &cfg, as_near);
        assert_true(f.km.iterations > 1);
        assert_true(f.km.centroids[0] == 0.5);
        fitted_done(&f);
    }
}

/* The second cluster has the large rows for one round, then only the 19: the last round must not show what was there before. */
static void test_an_early_end_shows_no_traces_of_large_values(void **state)
{
    (void)state;
    double x[24];
    for (size_t i = 0; i < 20; i++)
        x[i] = (double)i;
    for (size_t i = 20; i < 24; i++)
        x[i] = 1e60 / 3; /* three of them do not sum up exactly */
    const double start[] = { 0, 1, 0.7e60 };
    struct kmeans_cfg cfg = KMEANS_CFG(3);
    cfg.max_iter = 2;
    struct fitted f = fit_from(&(struct kmeans_data){ .values = x, .n = 24, .d = 1 }, &cfg, start);
    assert_true(f.km.centroids[1] == 19);
    fitted_done(&f);
}

static void test_bad_input_is_named(void **state)
{
    (void)state;
    double x[] = { 1, 2, 3, 4, 5, 6 };
    unsigned char mask[] = { 1, 1, 1, 1, 1, 1 };
    static const struct {
        const char *name, *text;
        double value;
        size_t n, d, k;
        double tol;
    } cases[] = {
        { "NaN", "row 2, column 1: nan is not a number of at most 1e+140", NAN, 3, 2, 2, 0 },
        { "infinity", "row 2, column 1: -inf is not a number of at most 1e+140", -INFINITY, 3, 2, 2, 0 },
        { "too large", "row 2, column 1: 1e+141 is not a number of at most 1e+140", 1e141, 3, 2, 2, 0 },
        { "k too large", "k = 4: must be from 1 to the number of rows, 3", 1, 3, 2, 4, 0 },
        { "no k", "k = 0: must be from 1 to the number of rows, 3", 1, 3, 2, 0, 0 },
        { "no rows", "k-means over 0 rows of 2 features: both must be from 1 to 2^31 - 2", 1, 0, 2, 1, 0 },
        { "no features", "k-means over 3 rows of 0 features: both must be from 1 to 2^31 - 2", 1, 3, 0, 1, 0 },
        { "bad tolerance", "tolerance -1: must be 0 or more, and finite", 1, 3, 2, 1, -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int masked = 0; masked < 2; masked++) {
            struct kmeans_data data = { .values = x, .mask = masked ? mask : NULL, .n = cases[i].n, .d = cases[i].d };
            struct kmeans_cfg cfg = KMEANS_CFG(cases[i].k);
            cfg.tol = cases[i].tol;
            struct kmeans km;
            struct err e = { 0 };
            x[5] = cases[i].value;
            if (kmeans_fit(&data, &cfg, &km, NULL, &e) != -EINVAL || strcmp(e.text, cases[i].text) != 0)
                fail_msg("%s: got '%s', want '%s'", cases[i].name, e.text, cases[i].text);
        }
    struct kmeans km;
    struct err e = { 0 };
    x[5] = NAN;
    struct kmeans_data data = { .values = x, .mask = NULL, .n = 2, .d = 2 };
    struct kmeans_cfg cfg = KMEANS_CFG(1);
    assert_int_equal(kmeans_fit_from(&data, &cfg, x + 4, &km, NULL, &e), -EINVAL);
    assert_string_equal(e.text, "start centre 0, column 1: nan is not a number of at most 1e+140");
    assert_int_equal(kmeans_choose_k(&data, &cfg, 0, &km, NULL, &e), -EINVAL);
    assert_int_equal(kmeans_init(&km, 0, 3, KMEANS_ALL_FEATURES, &e), -EINVAL);
    assert_int_equal(kmeans_fit(&data, &cfg, &km, NULL, &e), 0);
    uint32_t cluster = 7;
    double distance;
    assert_int_equal(kmeans_predict(&km, x + 4, NULL, &cluster, &distance, &e), -EINVAL);
    assert_int_equal(kmeans_update(&km, x + 4, NULL, 0, &cluster, &e), -EINVAL);
    assert_int_equal(cluster, 7);
    assert_int_equal(km.sizes[0], 2);
    kmeans_done(&km);
    kmeans_done(&km);
    kmeans_done(NULL);
}

/* --- choosing k --- */

static size_t chosen(const double *x, const unsigned char *mask, size_t n, size_t d, size_t k_max)
{
    struct kmeans_data data = { .values = x, .mask = mask, .n = n, .d = d };
    struct kmeans_cfg cfg = KMEANS_CFG(0);
    struct kmeans km;
    struct err e = { 0 };
    uint32_t *label = calloc(n, sizeof *label);
    assert_non_null(label);
    if (kmeans_choose_k(&data, &cfg, k_max, &km, label, &e) < 0)
        fail_msg("%s", e.text);
    size_t k = km.k;
    uint64_t members = 0;
    for (size_t c = 0; c < k; c++)
        members += km.sizes[c];
    assert_int_equal(members, n);
    for (size_t i = 0; i < n; i++)
        assert_true(label[i] < k);
    kmeans_done(&km);
    free(label);
    return k;
}

static void test_k_is_the_number_of_clusters_that_are_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct blobs b;
        size_t want;
        unsigned missing;
    } cases[] = {
        { "one cluster", { 1000, 58, 1, 0, 1 }, 1, 0 },
        { "one cluster on a line", { 1000, 1, 1, 0, 2 }, 1, 0 },
        { "two", { 1000, 58, 2, 2, 3 }, 2, 0 },
        { "three", { 1000, 5, 3, 20, 4 }, 3, 0 },
        { "seven", { 1400, 58, 7, 2, 5 }, 7, 0 },
        { "eight of six rows each in many dimensions", { 48, 58, 8, 3, 6 }, 8, 0 },
        { "few rows of one cluster in many dimensions", { 20, 58, 1, 0, 7 }, 1, 0 },
        { "four with a third missing", { 600, 20, 4, 4, 8 }, 4, 33 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct blobs *b = &cases[i].b;
        double *x = make_blobs(b);
        unsigned char *mask = cases[i].missing ? make_mask(b->n, b->d, cases[i].missing, 3) : NULL;
        size_t got = chosen(x, mask, b->n, b->d, 12);
        if (got != cases[i].want)
            fail_msg("%s: got %zu, want %zu", cases[i].name, got, cases[i].want);
        free(mask);
        free(x);
    }
}

static void test_k_of_shapes_that_are_no_clusters_is_1(void **state)
{
    (void)state;
    enum { N = 2000, D = 6 };
    struct rng r = rng_seeded(9);
    double *x = calloc(N * D, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < N * D; i++)
        x[i] = rng_unit(&r);
    assert_int_equal(chosen(x, NULL, N, D, 8), 1);
    for (size_t i = 0; i < N; i++)
        x[i * D] = 100 * gauss(&r); /* long */
    assert_int_equal(chosen(x, NULL, N, D, 8), 1);
    for (size_t i = 0; i < N * D; i++)
        x[i] = 3.5;
    assert_int_equal(chosen(x, NULL, N, D, 8), 1);
    free(x);
}

static void test_single_rows_far_off_do_not_hide_the_clusters(void **state)
{
    (void)state;
    const struct blobs b = { 302, 10, 3, 8, 91 };
    double *x = make_blobs(&b);
    for (size_t j = 0; j < b.d; j++) {
        x[300 * b.d + j] = 1000;
        x[301 * b.d + j] = j % 2 ? 1000 : -1000;
    }
    assert_int_equal(chosen(x, NULL, b.n, b.d, 10), 5);
    free(x);
}

/* --- updates --- */

static void test_an_update_keeps_the_mean(void **state)
{
    (void)state;
    const double x[] = { 0, 0, 2, 4, 100, 100, 104, 102 };
    struct kmeans_cfg cfg = KMEANS_CFG(2);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .n = 4, .d = 2 }, &cfg);
    struct err e;
    uint32_t cluster;
    uint32_t other = f.label[2];
    assert_int_equal(kmeans_update(&f.km, (double[]){ 4, 5 }, NULL, 0, &cluster, &e), 0);
    assert_int_equal(cluster, f.label[0]);
    assert_true(f.km.centroids[2 * cluster] == 2 && f.km.centroids[2 * cluster + 1] == 3);
    assert_int_equal(f.km.sizes[cluster], 3);
    assert_true(f.km.centroids[2 * other] == 102 && f.km.centroids[2 * other + 1] == 101);
    assert_int_equal(f.km.sizes[other], 2);
    fitted_done(&f);
}

static void test_beyond_the_limit_old_members_fade(void **state)
{
    (void)state;
    struct kmeans km;
    struct err e;
    uint32_t cluster;
    assert_int_equal(kmeans_init(&km, 1, 1, KMEANS_ALL_FEATURES, &e), 0);
    km.sizes[0] = 1000000;
    for (unsigned i = 0; i < 69; i++)
        assert_int_equal(kmeans_update(&km, (double[]){ 1 }, NULL, 100, &cluster, &e), 0);
    assert_true(fabs(km.centroids[0] - 0.5) < 0.01);
    assert_int_equal(km.sizes[0], 1000069);
    for (unsigned i = 0; i < 69; i++)
        assert_int_equal(kmeans_update(&km, (double[]){ 1 }, NULL, 0, &cluster, &e), 0);
    assert_true(km.centroids[0] < 0.51);
    kmeans_done(&km);
}

static void test_an_update_counts_each_feature(void **state)
{
    (void)state;
    const double x[] = { 1, 10, 0, 3, 0, 0 };
    const unsigned char mask[] = { 1, 1, 0, 1, 0, 0 };
    struct kmeans_cfg cfg = KMEANS_CFG(1);
    struct fitted f = fit(&(struct kmeans_data){ .values = x, .mask = mask, .n = 2, .d = 3 }, &cfg);
    struct err e;
    uint32_t cluster;
    const unsigned char two[] = { 0, 1, 1 };
    assert_int_equal(kmeans_update(&f.km, (double[]){ NAN, 20, 7 }, two, 0, &cluster, &e), 0);
    assert_true(f.km.centroids[0] == 2 && f.km.centroids[1] == 15 && f.km.centroids[2] == 7);
    assert_memory_equal(f.km.counts, ((uint64_t[]){ 2, 2, 1 }), 3 * sizeof(uint64_t));
    assert_memory_equal(f.km.present, ((unsigned char[]){ 1, 1, 1 }), 3);
    fitted_done(&f);
}

/* --- the inner loops --- */

static void test_every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    enum { N = 37, D = 61 };
    const struct kmeans_tiles *sets[] = { kmeans_tiles_plain(), kmeans_tiles_here() };
    struct rng r = rng_seeded(3);
    float rows[N * D], tile[D * KMEANS_LANES], base[KMEANS_LANES];
    double a[D], b[D];
    uint32_t idx[N], label[N];
    for (size_t i = 0; i < N * D; i++)
        rows[i] = (float)gauss(&r);
    for (size_t i = 0; i < D * KMEANS_LANES; i++)
        tile[i] = (float)gauss(&r);
    for (size_t i = 0; i < D; i++) {
        a[i] = gauss(&r);
        b[i] = 1e9 * gauss(&r);
    }
    for (size_t i = 0; i < KMEANS_LANES; i++)
        base[i] = (float)i;
    for (uint32_t i = 0; i < N; i++) {
        idx[i] = (i * 7) % N;
        label[i] = i % KMEANS_LANES;
    }
    enum { ROOM = N + KMEANS_SPARE };
    static struct {
        float scores[ROOM * KMEANS_LANES], first[ROOM], second[ROOM], own[ROOM], out[D];
        int32_t lane[ROOM];
        double dist, masked, moved, hi[D], lo[D], low[D], high[D];
        size_t common;
    } got[2];
    const struct kmeans_pick pick = { .rows = rows, .idx = idx, .n = N, .d = D };
    unsigned char odd[D];
    for (size_t i = 0; i < D; i++)
        odd[i] = i % 2;
    for (int s = 0; s < 2; s++) {
        sets[s]->scores(&pick, tile, base, got[s].scores);
        memset(got[s].scores + N * KMEANS_LANES, 0, KMEANS_SPARE * KMEANS_LANES * sizeof(float)); /* not of any row */
        sets[s]->lowest(got[s].scores, N, &(struct kmeans_low){ got[s].first, got[s].second, got[s].lane });
        sets[s]->own(&pick, tile, base, label, got[s].own);
        sets[s]->roots(got[s].own, N, 1.5f);
        sets[s]->relax(got[s].own, N, 0.1f, got[s].first);
        got[s].dist = sets[s]->dist2(a, b, D);
        got[s].masked = sets[s]->masked(a, odd, b, NULL, D, &got[s].common);
        got[s].moved = sets[s]->move(a, b, 0.125, D, got[s].out);
        sets[s]->add(got[s].hi, got[s].lo, a, 1, D);
        sets[s]->add(got[s].hi, got[s].lo, b, -1, D);
        sets[s]->span(a, D, got[s].hi, got[s].low, got[s].high);
    }
    assert_memory_equal(&got[0], &got[1], sizeof got[0]);
    assert_int_equal(got[0].common, D / 2);
}

static void test_the_lowest_of_a_tile(void **state)
{
    (void)state;
    float scores[(5 + KMEANS_SPARE) * KMEANS_LANES] = {
        5, 4, 3, 2, 1, 2, 3, 4, /* the fifth, then two */
        1, 1, 2, 2, 2, 2, 2, 2, /* the first of equals */
        9, 8, 7, 6, 5, 4, 3, 2, /* the last */
        0, 9, 9, 9, 9, 9, 9, -1, INFINITY, INFINITY, INFINITY, 4, INFINITY, INFINITY, INFINITY, INFINITY,
    };
    float first[5 + KMEANS_SPARE], second[5 + KMEANS_SPARE];
    int32_t lane[5 + KMEANS_SPARE];
    static const float want_first[] = { 1, 1, 2, -1, 4 }, want_second[] = { 2, 1, 3, 0, INFINITY };
    static const int32_t want_lane[] = { 4, 0, 7, 7, 3 };
    const struct kmeans_tiles *sets[] = { kmeans_tiles_plain(), kmeans_tiles_here() };
    for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
        sets[s]->lowest(scores, 5, &(struct kmeans_low){ first, second, lane });
        assert_memory_equal(first, want_first, sizeof want_first);
        assert_memory_equal(second, want_second, sizeof want_second);
        assert_memory_equal(lane, want_lane, sizeof want_lane);
    }
}

static void test_sums_keep_what_is_small_beside_what_comes_and_goes(void **state)
{
    (void)state;
    const struct kmeans_tiles *sets[] = { kmeans_tiles_plain(), kmeans_tiles_here() };
    const double small[5] = { 0.75, 1, -3, 0.1, 5 };
    const double large[5] = { 1e17, -1e17, 3e20, 1e17, 1e25 };
    for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
        double hi[5] = { 0 }, lo[5] = { 0 };
        sets[s]->add(hi, lo, large, 1, 5);
        sets[s]->add(hi, lo, small, 1, 5);
        sets[s]->add(hi, lo, large, -1, 5);
        for (size_t i = 0; i < 5; i++)
            assert_true(hi[i] + lo[i] == small[i]);
    }
}

/* --- faults --- */

static int all_of_it(const struct kmeans_data *x, struct err *e)
{
    struct kmeans_cfg cfg = KMEANS_CFG(4);
    cfg.n_init = 2;
    struct kmeans km = { 0 };
    uint32_t label[64];
    int rc = kmeans_fit(x, &cfg, &km, label, e);
    kmeans_done(&km);
    if (rc == 0)
        rc = kmeans_choose_k(x, &cfg, 3, &km, label, e);
    kmeans_done(&km);
    const double start[] = { 0, 0, 1e9, 1e9, 2e9, 2e9, 3e9, 3e9 }; /* with empty clusters to fill */
    if (rc == 0)
        rc = kmeans_fit_from(x, &cfg, start, &km, label, e);
    kmeans_done(&km);
    return rc;
}

static void test_running_out_of_memory_is_said_and_leaks_nothing(void **state)
{
    (void)state;
    const struct blobs b = { 64, 2, 4, 3, 101 };
    double *x = make_blobs(&b);
    unsigned char *mask = make_mask(b.n, b.d, 10, 4);
    for (size_t i = 0; i < b.n; i++)
        mask[i * b.d] = 1;
    for (int masked = 0; masked < 2; masked++) {
        struct kmeans_data data = { .values = x, .mask = masked ? mask : NULL, .n = b.n, .d = b.d };
        int rc = -EIO;
        unsigned nth = 1;
        for (; rc != 0; nth++) {
            struct err e = { 0 };
            assert_true(nth < 2000);
            fault_arm(FAULT_ALLOC, nth);
            rc = all_of_it(&data, &e);
            bool struck = fault_disarm();
            if (struck && (rc != -ENOMEM || strncmp(e.text, "no memory for ", 14) != 0))
                fail_msg("allocation %u: got %d '%s', want -ENOMEM", nth, rc, e.text);
        }
        assert_true(nth > 20);
    }
    free(mask);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_result_is_that_of_the_plain_algorithm),
        cmocka_unit_test(test_ties_go_to_the_lowest_centre),
        cmocka_unit_test(test_ties_are_settled_by_the_order_given),
        cmocka_unit_test(test_seeds_are_distinct_as_long_as_rows_are),
        cmocka_unit_test(test_restarts_that_leave_fewer_rows_out_are_better),
        cmocka_unit_test(test_sums_keep_what_is_small_beside_what_comes_and_goes),
        cmocka_unit_test(test_missing_features_are_left_out),
        cmocka_unit_test(test_a_centre_has_the_features_of_its_members),
        cmocka_unit_test(test_too_few_common_features_are_no_candidate),
        cmocka_unit_test(test_an_empty_cluster_gets_the_farthest_row),
        cmocka_unit_test(test_fewer_distinct_rows_than_clusters),
        cmocka_unit_test(test_as_many_clusters_as_rows),
        cmocka_unit_test(test_one_cluster_is_the_mean),
        cmocka_unit_test(test_a_seed_decides_everything),
        cmocka_unit_test(test_more_restarts_end_no_higher),
        cmocka_unit_test(test_separated_clusters_are_found),
        cmocka_unit_test(test_predict_agrees_with_the_fit),
        cmocka_unit_test(test_values_of_1e17_predict_right),
        cmocka_unit_test(test_values_of_1e17_are_clustered_right),
        cmocka_unit_test(test_a_large_value_that_leaves_takes_nothing_along),
        cmocka_unit_test(test_an_early_end_shows_no_traces_of_large_values),
        cmocka_unit_test(test_bad_input_is_named),
        cmocka_unit_test(test_k_is_the_number_of_clusters_that_are_apart),
        cmocka_unit_test(test_k_of_shapes_that_are_no_clusters_is_1),
        cmocka_unit_test(test_single_rows_far_off_do_not_hide_the_clusters),
        cmocka_unit_test(test_an_update_keeps_the_mean),
        cmocka_unit_test(test_beyond_the_limit_old_members_fade),
        cmocka_unit_test(test_an_update_counts_each_feature),
        cmocka_unit_test(test_every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(test_the_lowest_of_a_tile),
        cmocka_unit_test(test_running_out_of_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
