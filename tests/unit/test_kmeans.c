#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans.h"
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

static unsigned char *make_mask(size_t n, size_t d, unsigned missing_percent, uint64_t seed)
{
    struct rng r = rng_seeded(seed);
    unsigned char *mask = malloc(n * d);
    assert_non_null(mask);
    for (size_t i = 0; i < n * d; i++)
        mask[i] = rng_below(&r, 100) >= missing_percent;
    return mask;
}

/* --- fitting --- */

static struct kmeans fit(const struct kmeans_data *x, size_t k, uint64_t seed)
{
    struct kmeans km;
    struct err e = { 0 };
    if (kmeans_fit(x, k, seed, &km, &e) < 0)
        fail_msg("%s", e.text);
    return km;
}

static void assert_close(const char *name, double got, double want, double scale)
{
    if (!(fabs(got - want) <= 1e-12 * scale + 1e-13 * fabs(want)))
        fail_msg("%s: got %.17g, want %.17g", name, got, want);
}

static long double plain_distance(const struct kmeans_data *x, const struct kmeans *km, size_t row, size_t c)
{
    long double sum = 0;
    size_t common = 0;
    for (size_t j = 0; j < x->d; j++) {
        if (!(x->mask[row * x->d + j] && km->present[c * x->d + j]))
            continue;
        long double t = (long double)x->values[row * x->d + j] - (long double)km->centroids[c * x->d + j];
        sum += t * t;
        common++;
    }
    return common >= x->min_common ? sum / (long double)common : (long double)INFINITY;
}

/* Each row is with its nearest centre, and what is told of the clusters is so. */
static void check_labels(const char *name, const struct kmeans_data *x, const struct kmeans *km)
{
    uint64_t sizes[64] = { 0 };
    long double inertia = 0;
    for (size_t i = 0; i < x->n; i++) {
        uint32_t best = KMEANS_NONE;
        long double least = INFINITY;
        for (uint32_t c = 0; c < km->k; c++) {
            long double dist = plain_distance(x, km, i, c);
            if (dist < least) {
                least = dist;
                best = c;
            }
        }
        if (km->labels[i] != best)
            fail_msg("%s: row %zu is in %u, want %u", name, i, km->labels[i], best);
        if (best == KMEANS_NONE)
            continue;
        sizes[best]++;
        inertia += least;
    }
    assert_memory_equal(km->sizes, sizes, km->k * sizeof *sizes);
    assert_close(name, km->inertia, (double)inertia, (double)inertia);
}

/* Each centre is the mean of its members, feature by feature. */
static void check_centres(const char *name, const struct kmeans_data *x, const struct kmeans *km)
{
    for (size_t c = 0; c < km->k; c++)
        for (size_t j = 0; j < x->d; j++) {
            long double sum = 0;
            size_t count = 0;
            for (size_t i = 0; i < x->n; i++)
                if (km->labels[i] == c && x->mask[i * x->d + j]) {
                    sum += (long double)x->values[i * x->d + j];
                    count++;
                }
            assert_int_equal(km->present[c * x->d + j], count > 0);
            assert_close(name, km->centroids[c * x->d + j], count ? (double)(sum / (long double)count) : 0, 1);
        }
}

static const struct {
    const char *name;
    struct blobs b;
    size_t k;
    unsigned missing; /* percent */
    size_t min_common;
} cases[] = {
    { "one feature", { 500, 1, 4, 5, 1 }, 4, 0, 1 },
    { "few features, overlapping", { 3000, 3, 5, 1, 2 }, 7, 0, 3 },
    { "58 features, apart", { 2000, 58, 6, 4, 3 }, 6, 0, 3 },
    { "no clusters at all", { 600, 8, 1, 0, 5 }, 40, 0, 3 },
    { "a third missing", { 900, 11, 4, 2, 22 }, 5, 33, 3 },
    { "most missing, some rows have no candidate", { 900, 14, 3, 2, 23 }, 4, 80, 3 },
};

static void test_rows_are_with_their_nearest_centres(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct blobs *b = &cases[i].b;
        double *x = make_blobs(b);
        unsigned char *mask = make_mask(b->n, b->d, cases[i].missing, b->seed);
        for (size_t j = 0; j < b->n * b->d; j++)
            if (!mask[j])
                x[j] = j % 2 ? NAN : 1e300; /* never looked at */
        struct kmeans_data data = {
            .values = x, .mask = mask, .n = b->n, .d = b->d, .min_common = cases[i].min_common
        };
        struct kmeans km = fit(&data, cases[i].k, b->seed);
        check_labels(cases[i].name, &data, &km);
        kmeans_done(&km);
        free(mask);
        free(x);
    }
}

static void test_separated_clusters_are_found(void **state)
{
    (void)state;
    const struct blobs b = { 1600, 58, 16, 3, 61 };
    double *x = make_blobs(&b);
    for (unsigned missing = 0; missing <= 20; missing += 20) {
        unsigned char *mask = make_mask(b.n, b.d, missing, 3);
        struct kmeans_data data = { .values = x, .mask = mask, .n = b.n, .d = b.d, .min_common = 12 };
        struct kmeans km = fit(&data, 16, 0);
        for (size_t i = 16; i < b.n; i++)
            assert_int_equal(km.labels[i], km.labels[i % 16]);
        check_centres("separated", &data, &km);
        kmeans_done(&km);
        free(mask);
    }
    free(x);
}

static void test_a_centre_has_the_features_of_its_members(void **state)
{
    (void)state;
    const double x[] = { 1, 10, 0, 3, 0, 0, 101, 0, 7, 103, 0, 9 };
    const unsigned char mask[] = { 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1 };
    struct kmeans km = fit(&(struct kmeans_data){ .values = x, .mask = mask, .n = 4, .d = 3, .min_common = 1 }, 2, 0);
    uint32_t low = km.labels[0];
    uint32_t high = km.labels[2];
    assert_int_not_equal(low, high);
    assert_int_equal(km.labels[1], low);
    assert_int_equal(km.labels[3], high);
    const double *c = km.centroids;
    assert_true(c[low * 3] == 2 && c[low * 3 + 1] == 10 && c[high * 3] == 102 && c[high * 3 + 2] == 8);
    assert_memory_equal(km.present + low * 3, ((unsigned char[]){ 1, 1, 0 }), 3);
    assert_memory_equal(km.present + high * 3, ((unsigned char[]){ 1, 0, 1 }), 3);
    assert_close("inertia: means over the common features", km.inertia, 0.5 + 1 + 1 + 1, 1);
    kmeans_done(&km);
}

static void test_too_few_common_features_are_no_candidate(void **state)
{
    (void)state;
    const double x[] = { 1, 1, 1, 2, 2, 2, 3, 3, 3 };
    const unsigned char mask[] = { 1, 1, 1, 1, 1, 1, 1, 0, 0 };
    struct kmeans_data data = { .values = x, .mask = mask, .n = 3, .d = 3, .min_common = 2 };
    struct kmeans km = fit(&data, 1, 0);
    struct err e;
    assert_int_equal(km.labels[2], KMEANS_NONE);
    assert_int_equal(km.sizes[0], 2);
    assert_true(km.centroids[0] == 1.5);
    kmeans_done(&km);
    assert_int_equal(kmeans_fit(&data, 3, 0, &km, &e), -EINVAL);
    assert_string_equal(e.text, "k = 3: only 2 rows have 2 features or more");
    data.min_common = 4;
    assert_int_equal(kmeans_choose_k(&data, 2, 0, &km, &e), -EINVAL);
    kmeans_done(NULL);
}

static void test_restarts_that_leave_fewer_rows_out_are_better(void **state)
{
    (void)state;
    const double x[] = { 0, 0, 1, 0, 2, 0, 0, 5, 0, 5 }; /* the last two have another feature, and no scatter */
    const unsigned char mask[] = { 1, 0, 1, 0, 1, 0, 0, 1, 0, 1 };
    const struct kmeans_data data = { .values = x, .mask = mask, .n = 5, .d = 2, .min_common = 1 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct kmeans km = fit(&data, 1, seed);
        assert_int_equal(km.sizes[0], 3);
        assert_int_equal(km.labels[4], KMEANS_NONE);
        kmeans_done(&km);
        km = fit(&data, 2, seed);
        assert_int_equal(km.sizes[0] + km.sizes[1], 5);
        kmeans_done(&km);
    }
}

static const unsigned char all[400] = { [0 ... 399] = 1 };

static void test_fewer_distinct_rows_than_clusters(void **state)
{
    (void)state;
    double x[40];
    for (size_t i = 0; i < 20; i++) {
        x[2 * i] = (double)(i % 3);
        x[2 * i + 1] = -(double)(i % 3);
    }
    struct kmeans km = fit(&(struct kmeans_data){ .values = x, .mask = all, .n = 20, .d = 2, .min_common = 1 }, 5, 0);
    assert_true(km.inertia == 0);
    size_t filled = 0;
    for (size_t c = 0; c < 5; c++)
        filled += km.sizes[c] > 0;
    assert_int_equal(filled, 3);
    kmeans_done(&km);
}

static void test_as_many_clusters_as_rows(void **state)
{
    (void)state;
    const struct blobs b = { 50, 5, 1, 0, 31 };
    double *x = make_blobs(&b);
    struct kmeans km = fit(&(struct kmeans_data){ .values = x, .mask = all, .n = 50, .d = 5, .min_common = 1 }, 50, 0);
    assert_true(km.inertia == 0);
    for (size_t c = 0; c < 50; c++)
        assert_int_equal(km.sizes[c], 1);
    kmeans_done(&km);
    free(x);
}

static void test_one_cluster_is_the_mean(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8, 10, -10, 5, 0 };
    struct kmeans km = fit(&(struct kmeans_data){ .values = x, .mask = all, .n = 4, .d = 2, .min_common = 1 }, 1, 0);
    assert_true(km.centroids[0] == 5 && km.centroids[1] == 0);
    assert_true(km.inertia == 21 + 84);
    kmeans_done(&km);
}

static void test_a_seed_decides_everything(void **state)
{
    (void)state;
    const struct blobs b = { 1000, 6, 1, 0, 41 };
    double *x = make_blobs(&b);
    unsigned char *mask = make_mask(b.n, b.d, 20, 1);
    struct kmeans_data data = { .values = x, .mask = mask, .n = b.n, .d = b.d, .min_common = 1 };
    struct kmeans first = fit(&data, 12, 0);
    struct kmeans again = fit(&data, 12, 0);
    struct kmeans other = fit(&data, 12, 1);
    assert_memory_equal(first.centroids, again.centroids, 12 * b.d * sizeof(double));
    assert_memory_equal(first.labels, again.labels, b.n * sizeof(uint32_t));
    assert_true(first.inertia == again.inertia);
    assert_memory_not_equal(first.centroids, other.centroids, 12 * b.d * sizeof(double));
    kmeans_done(&first);
    kmeans_done(&again);
    kmeans_done(&other);
    free(mask);
    free(x);
}

/* --- choosing k --- */

static size_t chosen(const double *x, size_t n, size_t d, size_t k_max, unsigned missing_percent)
{
    unsigned char *mask = make_mask(n, d, missing_percent, 3);
    struct kmeans_data data = { .values = x, .mask = mask, .n = n, .d = d, .min_common = 1 };
    struct kmeans km;
    struct err e = { 0 };
    if (kmeans_choose_k(&data, k_max, 0, &km, &e) < 0)
        fail_msg("%s", e.text);
    size_t k = km.k;
    uint64_t members = 0;
    for (size_t c = 0; c < k; c++)
        members += km.sizes[c];
    assert_int_equal(members, n);
    for (size_t i = 0; i < n; i++)
        assert_true(km.labels[i] < k);
    kmeans_done(&km);
    free(mask);
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
    } shapes[] = {
        { "one cluster", { 1000, 58, 1, 0, 1 }, 1, 0 },
        { "one cluster on a line", { 1000, 1, 1, 0, 2 }, 1, 0 },
        { "two", { 1000, 58, 2, 2, 3 }, 2, 0 },
        { "three", { 1000, 5, 3, 20, 4 }, 3, 0 },
        { "seven", { 1400, 58, 7, 2, 5 }, 7, 0 },
        { "eight of six rows each in many dimensions", { 48, 58, 8, 3, 6 }, 8, 0 },
        { "few rows of one cluster in many dimensions", { 20, 58, 1, 0, 7 }, 1, 0 },
        { "four with a third missing", { 600, 20, 4, 4, 8 }, 4, 33 },
    };
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct blobs *b = &shapes[i].b;
        double *x = make_blobs(b);
        size_t got = chosen(x, b->n, b->d, 12, shapes[i].missing);
        if (got != shapes[i].want)
            fail_msg("%s: got %zu, want %zu", shapes[i].name, got, shapes[i].want);
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
    assert_int_equal(chosen(x, N, D, 8, 0), 1);
    for (size_t i = 0; i < N; i++)
        x[i * D] = 100 * gauss(&r); /* long */
    assert_int_equal(chosen(x, N, D, 8, 0), 1);
    for (size_t i = 0; i < N * D; i++)
        x[i] = 3.5;
    assert_int_equal(chosen(x, N, D, 8, 0), 1);
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
    assert_int_equal(chosen(x, b.n, b.d, 10, 0), 5);
    free(x);
}

/* --- faults --- */

static void test_running_out_of_memory_is_said_and_leaks_nothing(void **state)
{
    (void)state;
    const struct blobs b = { 64, 2, 4, 3, 101 };
    double *x = make_blobs(&b);
    unsigned char *mask = make_mask(b.n, b.d, 10, 4);
    for (size_t i = 0; i < b.n; i++)
        mask[i * b.d] = 1;
    struct kmeans_data data = { .values = x, .mask = mask, .n = b.n, .d = b.d, .min_common = 1 };
    int rc = -EIO;
    unsigned nth = 1;
    for (; rc != 0; nth++) {
        struct err e = { 0 };
        struct kmeans km = { 0 };
        assert_true(nth < 2000);
        fault_arm(FAULT_ALLOC, nth);
        rc = kmeans_choose_k(&data, 3, 0, &km, &e);
        bool struck = fault_disarm();
        if (struck && (rc != -ENOMEM || !e.text[0]))
            fail_msg("allocation %u: got %d '%s', want -ENOMEM", nth, rc, e.text);
        kmeans_done(&km);
    }
    assert_true(nth > 20);
    free(mask);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_with_their_nearest_centres),
        cmocka_unit_test(test_separated_clusters_are_found),
        cmocka_unit_test(test_a_centre_has_the_features_of_its_members),
        cmocka_unit_test(test_too_few_common_features_are_no_candidate),
        cmocka_unit_test(test_restarts_that_leave_fewer_rows_out_are_better),
        cmocka_unit_test(test_fewer_distinct_rows_than_clusters),
        cmocka_unit_test(test_as_many_clusters_as_rows),
        cmocka_unit_test(test_one_cluster_is_the_mean),
        cmocka_unit_test(test_a_seed_decides_everything),
        cmocka_unit_test(test_k_is_the_number_of_clusters_that_are_apart),
        cmocka_unit_test(test_k_of_shapes_that_are_no_clusters_is_1),
        cmocka_unit_test(test_single_rows_far_off_do_not_hide_the_clusters),
        cmocka_unit_test(test_running_out_of_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
