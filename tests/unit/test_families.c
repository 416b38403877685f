#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "search/families.h"

static double power(double t)
{
    return -0.8 * (1 - pow(t, -0.6));
}

static double exponential(double t)
{
    return -0.9 * (1 - exp(-(t - 1) / 8));
}

static double plateau(double t)
{
    return -0.7 * (1 - 1 / (1 + pow(t / 20, 4)));
}

static double flat(double t)
{
    (void)t;
    return 0.2;
}

static double rising(double t)
{
    return 0.05 * t;
}

static const struct {
    const char *name;
    double (*at)(double t);
    double within; /* of 50 epochs' end, 15 known */
} cases[] = {
    { "a power of the epoch", power, 0.03 },   { "an exponential", exponential, 0.2 },
    { "a plateau and a fall", plateau, 0.35 }, { "a flat one", flat, 0.02 },
    { "one that rises", rising, 0.6 },
};

static struct families_told told(const struct seen *seen, const double *values)
{
    struct families *f = NULL;
    assert_int_equal(families_new(&f, seen), 0);
    struct families_told t = families_foretell(f, values);
    families_free(f);
    return t;
}

static void test_a_curve_of_a_family_is_foretold(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen seen = { .n = 15, .ahead = 50, .epochs = 50 };
        double values[15];
        for (int k = 0; k < seen.n; k++) {
            seen.epoch[k] = k + 1;
            values[k] = cases[i].at(k + 1);
        }
        struct families_told t = told(&seen, values);
        double want = cases[i].at(50);
        if (fabs(t.median - want) > cases[i].within || !(t.low <= t.median && t.median <= t.high))
            fail_msg("%s: got %g (%g to %g), want %g", cases[i].name, t.median, t.low, t.high, want);
    }
}

static void test_one_value_leaves_much_open(void **state)
{
    (void)state;
    struct families_told soon = told(&(struct seen){ 1, { 1 }, 2, 50 }, (double[]){ 0 });
    struct families_told late = told(&(struct seen){ 1, { 1 }, 50, 50 }, (double[]){ 0 });
    assert_true(late.high - late.low > soon.high - soon.low);
    assert_true(late.median < soon.median); /* it may be hoped that it gets better */
}

static void test_values_beyond_measure_are_no_harm(void **state)
{
    (void)state;
    const struct seen far = { 4, { 1, 2, 30, 31 }, 1000, 1000 };
    struct families_told t = told(&far, (double[]){ 0, 25, -20, 25 });
    assert_true(isfinite(t.low) && isfinite(t.median) && isfinite(t.high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_curve_of_a_family_is_foretold),
        cmocka_unit_test(test_one_value_leaves_much_open),
        cmocka_unit_test(test_values_beyond_measure_are_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
