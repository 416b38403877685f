/* What a window is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/pace.h"

static const double WINDOW_S = 3;

static void test_a_step_that_tells_its_epochs_size_decides_at_once(void **state)
{
    struct pace p = { 0 };
    (void)state;
    pace_step(&p, 1, 1000, 64, true, WINDOW_S);
    assert_int_equal(p.unit, PACE_STEPS);
    assert_true(pace_epoch(&p, 64) == 64);
    assert_int_equal(p.unit, PACE_STEPS);
}

static void test_an_epoch_of_two_windows_is_measured_by_steps(void **state)
{
    struct pace p = { 0 };
    (void)state;
    pace_step(&p, 1, 1000, 1, false, WINDOW_S);
    pace_step(&p, 1, 6999, 1, false, WINDOW_S);
    assert_int_equal(p.unit, PACE_OPEN);
    pace_step(&p, 1, 7000, 1, false, WINDOW_S);
    assert_int_equal(p.unit, PACE_STEPS);
}

static void test_a_shorter_one_is_a_step_itself(void **state)
{
    struct pace p = { 0 };
    (void)state;
    for (int i = 0; i < 5; i++)
        pace_step(&p, 1, 1000 + 1000 * i, 32, false, WINDOW_S);
    assert_true(pace_epoch(&p, 0) == 160);
    assert_int_equal(p.unit, PACE_EPOCHS);
    pace_step(&p, 2, 6000, 32, false, WINDOW_S); /* a long one now: what was measured stays comparable */
    pace_step(&p, 2, 90000, 32, false, WINDOW_S);
    assert_int_equal(p.unit, PACE_EPOCHS);
    assert_true(pace_epoch(&p, 0) == 64);
}

static void test_an_epoch_counts_whatever_it_tells(void **state)
{
    struct pace p = { 0 };
    (void)state;
    assert_true(pace_epoch(&p, 0) == 1);
    assert_true(pace_epoch(&p, 1400) == 1400);
    assert_int_equal(p.unit, PACE_EPOCHS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_that_tells_its_epochs_size_decides_at_once),
        cmocka_unit_test(test_an_epoch_of_two_windows_is_measured_by_steps),
        cmocka_unit_test(test_a_shorter_one_is_a_step_itself),
        cmocka_unit_test(test_an_epoch_counts_whatever_it_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
