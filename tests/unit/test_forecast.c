#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/forecast.h"
#include "tests/fault.h"

enum { EPOCHS = 50, CURVES = 120 };

/* Curves of several kinds: they fall fast or slowly, late, not at all, or rise; with noise. */
static void draw_curve(struct rng *r, double *out)
{
    double begin = 2.3 + 0.05 * rng_normal(r), gain = rng_between(r, 0.3, 2), a = rng_log_between(r, 0.3, 2);
    double noise = rng_log_between(r, 0.001, 0.05), late = rng_between(r, 5, 40);
    int kind = (int)rng_below(r, 5);
    for (int i = 0; i < EPOCHS; i++) {
        double t = i + 1, x = begin;
        switch (kind) {
        case 0: x -= gain * (1 - pow(t, -a)); break;
        case 1: x -= gain * (1 - exp(-a * t / 10)); break;
        case 2: x -= gain * (1 - 1 / (1 + pow(t / late, 4))); break;
        case 3: break;
        default: x += a * (1 - exp(-t / 20));
        }
        out[i] = x + noise * rng_normal(r);
    }
}

static double values[CURVES][EPOCHS];
static struct forecast_curve curves[CURVES];

static int draw_curves(void **state)
{
    (void)state;
    struct rng r = rng_seeded(4);
    for (int i = 0; i < CURVES; i++) {
        draw_curve(&r, values[i]);
        curves[i] = (struct forecast_curve){ values[i], EPOCHS, NULL };
    }
    return 0;
}

struct quality {
    double held, miss, miss_of_last;
};

static struct quality quality_at(int known, size_t first, bool with_finished, bool maximise)
{
    struct quality q = { 0 };
    for (size_t i = first; i < CURVES; i++) {
        struct forecast *f = NULL;
        struct forecast_curve c = { values[i], known, NULL };
        struct foretold t;
        assert_int_equal(forecast_new(&f, EPOCHS, maximise, 0, curves, with_finished ? i : 0), 0);
        assert_int_equal(forecast_at(f, &c, EPOCHS, &t), 0);
        double end = values[i][EPOCHS - 1], share = 1.0 / (double)(CURVES - first);
        assert_true(t.low <= t.median && t.median <= t.high);
        q.held += share * (end >= t.low && end <= t.high);
        q.miss += share * fabs(t.median - end);
        q.miss_of_last += share * fabs(values[i][known - 1] - end);
        forecast_free(f);
    }
    return q;
}

static void test_intervals_hold_and_miss_less_than_the_last_value(void **state)
{
    (void)state;
    static const int known[] = { 5, 10, 20 };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct quality alone = quality_at(known[i], 0, false, false), taught = quality_at(known[i], 40, true, false);
        if (alone.held < 0.5 || alone.held > 0.97 || alone.miss > 0.9 * alone.miss_of_last)
            fail_msg("alone at %d: held %g, missed %g of %g", known[i], alone.held, alone.miss, alone.miss_of_last);
        if (taught.held < 0.7 || taught.held > 0.9 || taught.miss > 0.6 * taught.miss_of_last)
            fail_msg("taught at %d: held %g, missed %g of %g", known[i], taught.held, taught.miss, taught.miss_of_last);
    }
}

static void test_what_is_more_is_foretold_as_what_is_less(void **state)
{
    (void)state;
    double up[EPOCHS];
    for (int i = 0; i < EPOCHS; i++)
        up[i] = -values[0][i];
    struct forecast *down_f = NULL, *up_f = NULL;
    struct foretold a, b;
    assert_int_equal(forecast_new(&down_f, EPOCHS, false, 0, NULL, 0), 0);
    assert_int_equal(forecast_new(&up_f, EPOCHS, true, 0, NULL, 0), 0);
    assert_int_equal(forecast_at(down_f, &(struct forecast_curve){ values[0], 9, NULL }, EPOCHS, &a), 0);
    assert_int_equal(forecast_at(up_f, &(struct forecast_curve){ up, 9, NULL }, EPOCHS, &b), 0);
    assert_true(a.median == -b.median && a.low == -b.high && a.high == -b.low);
    forecast_free(down_f);
    forecast_free(up_f);
}

static void test_odd_curves_have_a_forecast(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double values[4];
        int n, want;
    } odd[] = {
        { "nothing was told", { 0 }, 0, -ENODATA },
        { "of no epoch", { NAN, NAN }, 2, -ENODATA },
        { "a gap", { NAN, 2, NAN, 1.5 }, 4, 0 },
        { "as bad as can be", { INFINITY, INFINITY }, 2, 0 },
        { "diverges", { 2, 1e9, INFINITY, INFINITY }, 4, 0 },
        { "better than all", { 2, -1e9 }, 2, 0 },
        { "zeros", { 0, 0, 0 }, 3, 0 },
        { "hardly anything", { 1e-300, 1e-301 }, 2, 0 },
        { "as large as goes", { 1e308, -1e308, 1e308 }, 3, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        for (size_t n = 0; n <= CURVES; n += 20) {
            struct forecast *f = NULL;
            struct foretold t = { 0 };
            assert_int_equal(forecast_new(&f, EPOCHS, false, 0, curves, n), 0);
            int rc = forecast_at(f, &(struct forecast_curve){ odd[i].values, odd[i].n, NULL }, EPOCHS, &t);
            if (rc != odd[i].want || (rc == 0 && !(t.low <= t.median && t.median <= t.high)))
                fail_msg("%s, %zu finished: %d, %g to %g to %g", odd[i].name, n, rc, t.low, t.median, t.high);
            forecast_free(f);
        }
}

static void test_finished_curves_may_be_odd_too(void **state)
{
    (void)state;
    double none[EPOCHS], same[EPOCHS], bad[EPOCHS];
    for (int i = 0; i < EPOCHS; i++) {
        none[i] = NAN;
        same[i] = 2;
        bad[i] = i < 3 ? 2 : INFINITY;
    }
    const struct forecast_curve odd[] = {
        { none, EPOCHS, NULL }, { same, EPOCHS, NULL }, { bad, EPOCHS, NULL }, { same, 7, NULL }, { same, EPOCHS, NULL }
    };
    for (size_t n = 0; n <= ARRAY_LEN(odd); n++) {
        struct forecast *f = NULL;
        struct foretold t;
        assert_int_equal(forecast_new(&f, EPOCHS, false, 0, odd, n), 0);
        assert_int_equal(forecast_at(f, &(struct forecast_curve){ values[0], 5, NULL }, EPOCHS, &t), 0);
        assert_true(t.low <= t.median && t.median <= t.high);
        forecast_free(f);
    }
}

static void test_a_told_epoch_is_as_it_was_told(void **state)
{
    (void)state;
    struct forecast *f = NULL;
    struct foretold t;
    assert_int_equal(forecast_new(&f, EPOCHS, false, 0, curves, 30), 0);
    assert_int_equal(forecast_at(f, &(struct forecast_curve){ values[50], 9, NULL }, 4, &t), 0);
    assert_true(fabs(t.median - values[50][3]) < 1e-9 && t.low == t.median && t.high == t.median);
    forecast_free(f);
}

static void test_a_target_is_reached_sooner_or_later(void **state)
{
    (void)state;
    double falling[EPOCHS];
    for (int i = 0; i < EPOCHS; i++)
        falling[i] = 2 - 1.5 * (1 - pow(i + 1, -0.7));
    const struct {
        double target;
        int soonest_from, latest_to; /* 0: never */
    } cases[] = { { 1.9, 2, 2 }, { falling[24], 12, EPOCHS }, { -3, 0, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct forecast *f = NULL;
        struct foretold_reach r;
        assert_int_equal(forecast_new(&f, EPOCHS, false, 0, NULL, 0), 0);
        assert_int_equal(forecast_reach(f, &(struct forecast_curve){ falling, 12, NULL }, cases[i].target, &r), 0);
        if (r.soonest < cases[i].soonest_from || r.latest > cases[i].latest_to || r.middle < r.soonest ||
            (r.latest && r.middle > r.latest))
            fail_msg("%g: %d, %d, %d", cases[i].target, r.soonest, r.middle, r.latest);
        forecast_free(f);
    }
}

static void test_memory_may_run_out(void **state)
{
    (void)state;
    struct foretold want, got;
    struct forecast *calm = NULL;
    const struct forecast_curve c = { values[60], 8, NULL };
    assert_int_equal(forecast_new(&calm, EPOCHS, false, 0, curves, 30), 0);
    assert_int_equal(forecast_at(calm, &c, EPOCHS, &want), 0);
    for (unsigned nth = 1; nth < 24; nth++) {
        struct forecast *f = NULL;
        fault_arm(FAULT_ALLOC, nth);
        int rc = forecast_new(&f, EPOCHS, false, 0, curves, 30);
        rc = rc == 0 ? forecast_at(f, &c, EPOCHS, &got) : rc;
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        if (f && rc < 0)
            assert_int_equal(forecast_at(f, &c, EPOCHS, &got), 0);
        if (f)
            assert_memory_equal(&want, &got, sizeof want);
        forecast_free(f);
    }
    forecast_free(calm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_hold_and_miss_less_than_the_last_value),
        cmocka_unit_test(test_what_is_more_is_foretold_as_what_is_less),
        cmocka_unit_test(test_odd_curves_have_a_forecast),
        cmocka_unit_test(test_finished_curves_may_be_odd_too),
        cmocka_unit_test(test_a_told_epoch_is_as_it_was_told),
        cmocka_unit_test(test_a_target_is_reached_sooner_or_later),
        cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, draw_curves, NULL);
}
