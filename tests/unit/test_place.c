#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/place.h"

/* A machine of two cores with two threads each: one thread of each core first. */
static const int machine[] = { 0, 2, 1, 3 };

static int take(struct place *p, int trial, int want, int *first)
{
    int cpus[PLACE_MAX_CPUS];
    int n = place_take(p, trial, want, cpus);
    *first = n ? cpus[0] : -1;
    return n;
}

static void test_sets_are_disjoint_and_whole_cores_come_first(void **state)
{
    (void)state;
    static struct place p;
    int cpus[PLACE_MAX_CPUS];
    place_set(&p, machine, ARRAY_LEN(machine));
    assert_int_equal(place_take(&p, 7, 2, cpus), 2);
    assert_int_equal(cpus[0], 0);
    assert_int_equal(cpus[1], 2);
    assert_int_equal(place_take(&p, 8, 2, cpus), 2);
    assert_int_equal(cpus[0], 1);
    assert_int_equal(cpus[1], 3);
    assert_int_equal(place_take(&p, 9, 1, cpus), 0);
    assert_int_equal(place_room(&p, 9), 0);
    assert_int_equal(place_room(&p, 7), 2);
}

static void test_a_trial_keeps_its_first_cpus_and_gives_back_the_rest(void **state)
{
    (void)state;
    static struct place p;
    int first;
    place_set(&p, machine, ARRAY_LEN(machine));
    assert_int_equal(take(&p, 7, 4, &first), 4);
    assert_int_equal(take(&p, 7, 1, &first), 1);
    assert_int_equal(first, 0);
    assert_int_equal(place_room(&p, 8), 3);
    assert_int_equal(take(&p, 8, 1, &first), 1);
    assert_int_equal(first, 2);
    assert_int_equal(take(&p, 7, 4, &first), 3); /* all but the other's */
    place_free(&p, 8);
    assert_int_equal(place_room(&p, 7), 4);
    place_free(&p, 7);
    assert_int_equal(place_room(&p, 9), 4);
}

static void test_owners_stay_when_the_machine_changes(void **state)
{
    (void)state;
    static struct place p;
    static const int fewer[] = { 2, 1 };
    int first;
    place_set(&p, machine, ARRAY_LEN(machine));
    assert_int_equal(take(&p, 7, 2, &first), 2);
    place_set(&p, fewer, ARRAY_LEN(fewer));
    assert_int_equal(place_room(&p, 8), 1);
    assert_int_equal(take(&p, 7, 2, &first), 2);
    assert_int_equal(first, 2);
}

static void test_cpus_of_other_drivers_are_not_given_out(void **state)
{
    (void)state;
    static struct place p;
    int first;
    place_set(&p, machine, ARRAY_LEN(machine));
    assert_int_equal(take(&p, 7, 1, &first), 1);
    place_mark(&p, 0, true); /* it is ours */
    place_mark(&p, 2, true);
    assert_true(place_has(&p, 7));
    assert_true(place_is_divided(&p));
    assert_int_equal(place_room(&p, 7), 3);
    assert_int_equal(take(&p, 8, 4, &first), 2);
    assert_int_equal(first, 1);
    place_lose(&p, 1);
    assert_int_equal(take(&p, 8, 4, &first), 1);
    assert_int_equal(first, 3);
    place_free(&p, 8);
    place_mark(&p, 1, false);
    place_mark(&p, 2, false);
    assert_false(place_has(&p, 8));
    assert_false(place_is_divided(&p));
    assert_int_equal(place_room(&p, 8), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_are_disjoint_and_whole_cores_come_first),
        cmocka_unit_test(test_a_trial_keeps_its_first_cpus_and_gives_back_the_rest),
        cmocka_unit_test(test_owners_stay_when_the_machine_changes),
        cmocka_unit_test(test_cpus_of_other_drivers_are_not_given_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
