/* What ends a study before its search does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/aim.h"

static void test_a_target_is_reached_from_its_side(void **state)
{
    struct aim up = { .target = 0.9, .maximise = true }, down = { .target = 0.1 }, none = { .target = NAN };
    char why[AIM_WHY_MAX] = "";
    (void)state;
    assert_false(aim_is_reached(&up, 0.89, why));
    assert_true(aim_is_reached(&up, 0.9, why));
    assert_string_equal(why, "0.9 reaches the target of 0.9");
    assert_false(aim_is_reached(&down, 0.11, why));
    assert_true(aim_is_reached(&down, 0.05, why));
    assert_false(aim_is_reached(&up, NAN, why));
    assert_false(aim_is_reached(&none, 1, why));
}

static void test_a_budget_is_used_up_or_has_no_room(void **state)
{
    const struct expense nothing = { 0 }, some = { .seconds = 50, .joules = NAN, .epochs = 9, .launches = 3 };
    char why[AIM_WHY_MAX] = "";
    (void)state;
    assert_false(aim_is_spent(&(struct aim){ .target = NAN }, &some, &some, why));
    struct aim seconds = { .seconds = 60 };
    assert_false(aim_is_spent(&seconds, &some, &nothing, why));
    assert_false(aim_is_spent(&seconds, &some, &(struct expense){ .seconds = 10 }, why));
    assert_true(aim_is_spent(&seconds, &some, &(struct expense){ .seconds = 11 }, why));
    assert_string_equal(why, "the budget of 60 s has no room for another epoch");
    struct aim epochs = { .epochs = 9 };
    assert_true(aim_is_spent(&epochs, &some, &nothing, why));
    assert_string_equal(why, "the budget of 9 epochs is used up");
    assert_true(aim_is_spent(&(struct aim){ .launches = 3 }, &some, &nothing, why));
}

/* Nothing was measured: absent is no joule. */
static void test_joules_that_are_not_known_use_nothing_up(void **state)
{
    const struct expense s = { .joules = NAN };
    char why[AIM_WHY_MAX] = "";
    (void)state;
    assert_false(aim_is_spent(&(struct aim){ .joules = 1 }, &s, &s, why));
    assert_true(aim_is_spent(&(struct aim){ .joules = 1 }, &(struct expense){ .joules = 2 }, &s, why));
}

/* An hour of two CPUs at 0.1, half a kilowatt-hour at 0.4. */
static void test_a_price_is_of_core_hours_and_joules(void **state)
{
    struct aim a = { .target = NAN, .price = 0.5, .per_core_hour = 0.1, .per_kwh = 0.4 };
    struct expense s = { .core_seconds = 7200, .joules = 1.8e6 }, none = { .joules = NAN };
    char why[AIM_WHY_MAX] = "";
    (void)state;
    assert_true(fabs(aim_price(&a, &s) - 0.4) < 1e-12);
    assert_false(aim_is_spent(&a, &s, &none, why));
    assert_true(aim_is_spent(&a, &s, &(struct expense){ .core_seconds = 4000 }, why));
    assert_string_equal(why, "the budget of 0.5 in money has no room for another epoch");
    s.joules = NAN; /* nothing is known of them: the core-hours alone */
    assert_true(fabs(aim_price(&a, &s) - 0.2) < 1e-12);
    s.core_seconds = 18000;
    assert_true(aim_is_spent(&a, &s, &none, why));
    assert_string_equal(why, "the budget of 0.5 in money is used up");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_target_is_reached_from_its_side),
        cmocka_unit_test(test_a_budget_is_used_up_or_has_no_room),
        cmocka_unit_test(test_joules_that_are_not_known_use_nothing_up),
        cmocka_unit_test(test_a_price_is_of_core_hours_and_joules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
