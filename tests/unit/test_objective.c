#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/objective.h"

static const struct objective_reference ref = { .power_w = 50, .record_s = 0.01 };

static const struct {
    const char *name, *objective;
    double seconds, records, power_w, want;
} cases[] = {
    { "time is seconds, whatever the power", "time", 2, 100, 400, 2 },
    { "energy at the reference's power is its seconds", "energy", 2, 100, 50, 2 },
    { "twice the power costs twice as much", "energy", 2, 100, 100, 4 },
    { "half the time at twice the power costs as much", "energy", 1, 100, 100, 2 },
    { "joules times seconds prefer what is faster", "edp", 1, 100, 100, 2 },
    { "and count slowness twice", "edp", 4, 100, 50, 16 },
    { "a power that is not known leaves the seconds", "energy", 2, 100, NAN, 2 },
    { "nor is a power of nothing one", "energy", 2, 100, 0, 2 },
    { "an objective that does not exist is time", "speed", 3, 100, 400, 3 },
};

static void costs_are_seconds_at_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double got = objective_cost_s(objective_find(cases[i].objective), &ref, cases[i].seconds, cases[i].records,
                                      cases[i].power_w);
        if (fabs(got - cases[i].want) > 1e-12)
            fail_msg("%s: got %g, want %g", cases[i].name, got, cases[i].want);
    }
}

static void a_reference_that_is_not_known_leaves_the_seconds(void **state)
{
    (void)state;
    const struct objective_reference none = { NAN, NAN };
    assert_true(objective_cost_s(OBJECTIVE_EDP, &none, 2, 100, 50) == 2);
}

static void only_joules_need_power(void **state)
{
    (void)state;
    assert_false(objective_needs_power(objective_find("time")));
    assert_true(objective_needs_power(objective_find("energy")));
    assert_true(objective_needs_power(objective_find("edp")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_seconds_at_the_reference),
        cmocka_unit_test(a_reference_that_is_not_known_leaves_the_seconds),
        cmocka_unit_test(only_joules_need_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
