#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "search/front.h"

enum { N_MAX = 9, ROOM = 4096 };

static double work[ROOM];

/* Of the union of boxes between points and the reference, by inclusion and exclusion. */
static double volume_by_boxes(const double *points, size_t n, size_t m, const double *ref)
{
    double sum = 0;
    for (unsigned set = 1; set < 1u << n; set++) {
        double box = 1;
        for (size_t k = 0; k < m; k++) {
            double corner = -INFINITY;
            for (size_t i = 0; i < n; i++)
                if (set & 1u << i)
                    corner = fmax(corner, points[i * m + k]);
            box *= fmax(0, ref[k] - corner);
        }
        sum += __builtin_popcount(set) % 2 ? box : -box;
    }
    return sum;
}

/* Some numbers are equal, and some lie beyond the reference. */
static void draw_points(struct rng *r, double *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        points[i] = rng_chance(r, 0.3) ? 0.25 * rng_whole(r, 0, 5) : rng_unit(r) * 1.2;
}

static void test_a_volume_is_that_of_the_boxes(void **state)
{
    (void)state;
    static const double ref[FRONT_MAX] = { 1, 1, 1, 1 };
    struct rng r = rng_seeded(11);
    for (int round = 0; round < 2000; round++) {
        double points[N_MAX * FRONT_MAX];
        size_t n = (size_t)rng_whole(&r, 0, N_MAX), m = (size_t)rng_whole(&r, 1, FRONT_MAX);
        assert_true(front_work(n, m) <= ROOM);
        draw_points(&r, points, n * m);
        double want = volume_by_boxes(points, n, m, ref), got = front_volume(points, n, m, ref, work);
        if (fabs(want - got) > 1e-9)
            fail_msg("round %d, %zu points of %zu: got %.12g, want %.12g", round, n, m, got, want);
    }
}

static void test_a_point_dominates_where_it_is_nowhere_worse(void **state)
{
    (void)state;
    static const struct {
        double a[2], b[2];
        bool want;
    } cases[] = {
        { { 1, 1 }, { 2, 2 }, true },  { { 1, 2 }, { 1, 3 }, true },  { { 1, 1 }, { 1, 1 }, false },
        { { 1, 3 }, { 2, 2 }, false }, { { 2, 2 }, { 1, 1 }, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(front_dominates(cases[i].a, cases[i].b, 2), cases[i].want);
}

/* Peeled off, front by front. */
static void ranks_by_peeling(const double *points, size_t n, size_t m, size_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = SIZE_MAX;
    for (size_t rank = 0; rank < n; rank++) {
        bool front[N_MAX];
        for (size_t i = 0; i < n; i++) {
            front[i] = out[i] == SIZE_MAX;
            for (size_t k = 0; k < n; k++)
                front[i] = front[i] && !(out[k] == SIZE_MAX && front_dominates(points + k * m, points + i * m, m));
        }
        for (size_t i = 0; i < n; i++)
            out[i] = front[i] ? rank : out[i];
    }
}

static void test_ranks_are_fronts_peeled_off(void **state)
{
    (void)state;
    struct rng r = rng_seeded(12);
    for (int round = 0; round < 2000; round++) {
        double points[N_MAX * FRONT_MAX];
        size_t want[N_MAX], got[N_MAX], n = (size_t)rng_whole(&r, 1, N_MAX), m = (size_t)rng_whole(&r, 1, FRONT_MAX);
        draw_points(&r, points, n * m);
        ranks_by_peeling(points, n, m, want);
        front_ranks(points, n, m, got, work);
        assert_memory_equal(got, want, n * sizeof *got);
    }
}

static void test_the_order_is_by_rank_and_by_what_would_be_lost(void **state)
{
    (void)state;
    /* 1 and 3 are the ends of the front, 0 lies between them, and 4 beside 0; 2 is dominated. */
    static const double points[] = { 2, 2, 0, 4, 5, 5, 4, 0, 2.1, 1.95 };
    size_t order[5], ranks[5];
    front_order(points, 5, 2, order, ranks, work);
    assert_int_equal(ranks[2], 1);
    assert_int_equal(order[4], 2);
    assert_true((order[0] == 1 && order[1] == 3) || (order[0] == 3 && order[1] == 1));
}

static void test_an_order_has_every_point_once(void **state)
{
    (void)state;
    struct rng r = rng_seeded(13);
    for (int round = 0; round < 500; round++) {
        double points[N_MAX * FRONT_MAX];
        size_t order[N_MAX], ranks[N_MAX], n = (size_t)rng_whole(&r, 1, N_MAX), m = (size_t)rng_whole(&r, 1, FRONT_MAX);
        unsigned seen = 0;
        draw_points(&r, points, n * m);
        front_order(points, n, m, order, ranks, work);
        for (size_t i = 0; i < n; i++) {
            seen |= 1u << order[i];
            assert_true(i == 0 || ranks[order[i - 1]] <= ranks[order[i]]);
        }
        assert_int_equal(seen, (1u << n) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_volume_is_that_of_the_boxes),
        cmocka_unit_test(test_a_point_dominates_where_it_is_nowhere_worse),
        cmocka_unit_test(test_ranks_are_fronts_peeled_off),
        cmocka_unit_test(test_the_order_is_by_rank_and_by_what_would_be_lost),
        cmocka_unit_test(test_an_order_has_every_point_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
