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
#include "search/forest.h"
#include "tests/fault.h"

enum { ROWS = 120, COLUMNS = 4 };

static double x[ROWS * COLUMNS], y[ROWS];

/* What becomes of a row hangs on its first two columns; on the first alone where `steps` are wanted. */
static void draw(bool steps)
{
    struct rng r = rng_seeded(3);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < COLUMNS; k++)
            x[i * COLUMNS + k] = rng_unit(&r) * (k == 2 ? 1e9 : 1);
        const double *row = x + i * COLUMNS;
        y[i] = steps ? (row[0] > 0.5) : row[0] + row[0] * row[1];
    }
}

static struct forest *grown(size_t n)
{
    struct forest *f = NULL;
    assert_int_equal(forest_new(&f, x, COLUMNS, y, n), 0);
    return f;
}

static double sum_of(const double *w, size_t n, const double *of)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += w[i] * (of ? of[i] : 1);
    return sum;
}

static void test_rows_of_the_same_outcome_weigh(void **state)
{
    (void)state;
    double w[ROWS];
    draw(true);
    struct forest *f = grown(ROWS);
    for (int side = 0; side < 2; side++) {
        forest_weigh(f, (double[]){ side ? 0.9 : 0.1, 0.5, 5e8, 0.5 }, SIZE_MAX, w);
        assert_true(fabs(sum_of(w, ROWS, NULL) - 1) < 1e-9);
        double told = sum_of(w, ROWS, y);
        if (fabs(told - side) > 0.1)
            fail_msg("side %d: %g of the weight is of outcome 1", side, told);
    }
    forest_free(f);
}

/* It says nothing about itself, and what the others say is about right. */
static void test_a_row_is_foretold_from_the_others(void **state)
{
    (void)state;
    double w[ROWS], miss = 0, miss_of_mean = 0;
    draw(false);
    struct forest *f = grown(ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        forest_weigh(f, x + i * COLUMNS, i, w);
        assert_true(w[i] == 0 && fabs(sum_of(w, ROWS, NULL) - 1) < 1e-9);
        miss += fabs(sum_of(w, ROWS, y) - y[i]);
        miss_of_mean += fabs(sum_of(y, ROWS, NULL) / ROWS - y[i]);
    }
    if (miss > 0.35 * miss_of_mean)
        fail_msg("missed %g, the mean %g", miss, miss_of_mean);
    forest_free(f);
}

static void test_odd_rows_are_no_harm(void **state)
{
    (void)state;
    double w[ROWS];
    draw(false);
    for (size_t n = 1; n < 6; n++) { /* few */
        struct forest *f = grown(n);
        forest_weigh(f, x, SIZE_MAX, w);
        assert_true(fabs(sum_of(w, n, NULL) - 1) < 1e-9);
        if (n > 1)
            forest_weigh(f, x, 0, w);
        assert_true(n == 1 || (w[0] == 0 && fabs(sum_of(w, n, NULL) - 1) < 1e-9));
        forest_free(f);
    }
    for (size_t i = 0; i < ROWS * COLUMNS; i++) /* all the same */
        x[i] = 7;
    struct forest *f = grown(ROWS);
    forest_weigh(f, x, SIZE_MAX, w);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(fabs(w[i] - 1.0 / ROWS) < 1e-9);
    forest_free(f);
}

static void test_memory_may_run_out(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    draw(false);
    for (unsigned nth = 1; rc < 0; nth++) {
        struct forest *f = NULL;
        assert_true(nth < 20);
        fault_arm(FAULT_ALLOC, nth);
        rc = forest_new(&f, x, COLUMNS, y, ROWS);
        fault_disarm();
        assert_true(rc == 0 ? f != NULL : rc == -ENOMEM && !f);
        forest_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_the_same_outcome_weigh),
        cmocka_unit_test(test_a_row_is_foretold_from_the_others),
        cmocka_unit_test(test_odd_rows_are_no_harm),
        cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
