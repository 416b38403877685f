#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "core/rooms.h"
#include "tests/fault.h"

/* A machine of two cores with two threads each: one thread of each core first. */
static const int machine[] = { 0, 2, 1, 3 };

static struct rooms one_machine(void)
{
    struct rooms r = { 0 };
    assert_int_equal(rooms_add(&r, 4, 8), 0);
    assert_int_equal(rooms_know(&r, 0, machine, ARRAY_LEN(machine)), 0);
    return r;
}

static int take(struct rooms *r, int trial, int want, int *first)
{
    int cpus[ROOMS_MAX_CPUS];
    int n = rooms_take(r, 0, trial, want, cpus);
    *first = n ? cpus[0] : -1;
    return n;
}

static void test_sets_are_disjoint_and_whole_cores_come_first(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int cpus[ROOMS_MAX_CPUS];
    assert_int_equal(rooms_take(&r, 0, 7, 2, cpus), 2);
    assert_int_equal(cpus[0], 0);
    assert_int_equal(cpus[1], 2);
    assert_int_equal(rooms_take(&r, 0, 8, 2, cpus), 2);
    assert_int_equal(cpus[0], 1);
    assert_int_equal(cpus[1], 3);
    assert_int_equal(rooms_take(&r, 0, 9, 1, cpus), 0);
    assert_int_equal(rooms_room(&r, 0, 9), 0);
    assert_int_equal(rooms_room(&r, 0, 7), 2);
    rooms_done(&r);
}

static void test_a_share_bounds_what_ours_have_together(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int first;
    r.nodes[0].share = 3;
    assert_int_equal(rooms_room(&r, 0, 7), 3);
    assert_int_equal(take(&r, 7, 4, &first), 3);
    assert_int_equal(rooms_room(&r, 0, 8), 1); /* never none: who starts one has looked before */
    r.nodes[0].share = 2;
    assert_int_equal(rooms_room(&r, 0, 7), 2);
    assert_int_equal(take(&r, 7, 4, &first), 2); /* what is too much goes back as soon as it is given anew */
    assert_int_equal(take(&r, 7, 1, &first), 1);
    assert_int_equal(rooms_room(&r, 0, 8), 1);
    assert_int_equal(take(&r, 8, 4, &first), 1);
    r.nodes[0].share = 0;
    assert_int_equal(take(&r, 8, 4, &first), 3);
    rooms_done(&r);
}

static void test_a_trial_keeps_its_first_cpus_and_gives_back_the_rest(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int first;
    assert_int_equal(take(&r, 7, 4, &first), 4);
    assert_int_equal(take(&r, 7, 1, &first), 1);
    assert_int_equal(first, 0);
    assert_int_equal(rooms_room(&r, 0, 8), 3);
    assert_int_equal(take(&r, 8, 1, &first), 1);
    assert_int_equal(first, 2);
    assert_int_equal(take(&r, 7, 4, &first), 3); /* all but the other's */
    rooms_free(&r, 8);
    assert_int_equal(rooms_room(&r, 0, 7), 4);
    rooms_free(&r, 7);
    assert_int_equal(rooms_room(&r, 0, 9), 4);
    rooms_done(&r);
}

static void test_owners_stay_when_the_machine_changes(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    static const int fewer[] = { 2, 1 };
    int first;
    assert_int_equal(take(&r, 7, 2, &first), 2);
    assert_int_equal(rooms_know(&r, 0, fewer, ARRAY_LEN(fewer)), 0);
    assert_int_equal(rooms_room(&r, 0, 8), 1);
    assert_int_equal(take(&r, 7, 2, &first), 2);
    assert_int_equal(first, 2);
    rooms_done(&r);
}

static void test_cpus_of_other_drivers_are_not_given_out(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int first;
    assert_int_equal(take(&r, 7, 1, &first), 1);
    rooms_mark(&r, 0, 0, true); /* it is ours */
    rooms_mark(&r, 0, 2, true);
    assert_true(rooms_has(&r, 0, 7));
    assert_true(rooms_has(&r, 0, ROOMS_OTHERS));
    assert_int_equal(rooms_room(&r, 0, 7), 3);
    assert_int_equal(take(&r, 8, 4, &first), 2);
    assert_int_equal(first, 1);
    rooms_lose(&r, 0, 1);
    assert_int_equal(take(&r, 8, 4, &first), 1);
    assert_int_equal(first, 3);
    rooms_free(&r, 8);
    rooms_mark(&r, 0, 1, false);
    rooms_mark(&r, 0, 2, false);
    assert_false(rooms_has(&r, 0, 8));
    assert_false(rooms_has(&r, 0, ROOMS_OTHERS));
    assert_int_equal(rooms_room(&r, 0, 8), 3);
    rooms_done(&r);
}

static void test_who_shares_uses_the_first_cpus_until_it_has_its_own(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int cpus[ROOMS_MAX_CPUS];
    for (size_t i = 0; i < ARRAY_LEN(machine); i++)
        rooms_mark(&r, 0, machine[i], true);
    assert_int_equal(rooms_take(&r, 0, 7, 2, cpus), 0);
    assert_int_equal(rooms_share(&r, 0, 7, 2, cpus), 2);
    assert_int_equal(cpus[1], 2);
    assert_int_equal(rooms_share(&r, 0, 8, 9, cpus), 4);
    assert_int_equal(rooms_shares(&r, 0, 7), 2);
    assert_int_equal(rooms_shares(&r, 0, 0), 4);
    rooms_free(&r, 8);
    assert_int_equal(rooms_shares(&r, 0, 0), 2);
    assert_int_equal(rooms_left(&r, 0, 7), 0);
    rooms_mark(&r, 0, 3, false);
    assert_int_equal(rooms_left(&r, 0, 7), 1);
    assert_int_equal(rooms_take(&r, 0, 7, 2, cpus), 1);
    assert_int_equal(cpus[0], 3);
    assert_int_equal(rooms_shares(&r, 0, 0), 0);
    rooms_done(&r);
}

static void test_who_is_asked_keeps_its_share(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int first;
    r.nodes[0].guests = 1;
    assert_int_equal(rooms_room(&r, 0, 7), 2);
    assert_int_equal(take(&r, 7, 1, &first), 1);
    assert_int_equal(rooms_room(&r, 0, 8), 1); /* what ours have is of the share */
    assert_int_equal(rooms_room(&r, 0, 7), 2);
    r.nodes[0].guests = 9;
    assert_int_equal(rooms_room(&r, 0, 7), 1); /* never none */
    rooms_done(&r);
}

static void test_memory_is_held_beside_cpus(void **state)
{
    (void)state;
    struct rooms r = one_machine(); /* 8 GiB */
    int first;
    assert_int_equal(rooms_keep(&r, 0, 7, 5), 0);
    assert_int_equal(rooms_keep(&r, 0, 7, 4), 0); /* in place of the 5 */
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .cpus = 1, .memory_gb = 4 }), 0);
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .cpus = 1, .memory_gb = 4.5 }), -1);
    assert_int_equal(take(&r, 7, 4, &first), 4);
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .cpus = 1, .memory_gb = 1 }), -1);
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .memory_gb = 1 }), 0);
    rooms_free(&r, 7);
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .cpus = 4, .memory_gb = 8 }), 0);
    rooms_done(&r);
}

static void test_a_second_machine_has_what_the_first_has_not(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    static const int other[] = { 0, 1 };
    int cpus[ROOMS_MAX_CPUS];
    assert_int_equal(rooms_add(&r, 2, 0), 0);  /* whose memory is not known */
    assert_int_equal(rooms_room(&r, 1, 8), 0); /* nor its CPUs by number */
    assert_int_equal(rooms_know(&r, 1, other, ARRAY_LEN(other)), 0);
    assert_int_equal(rooms_keep(&r, 0, 7, 8), 0);
    assert_int_equal(rooms_find(&r, 8, (struct rooms_want){ .cpus = 2, .memory_gb = 4 }), 1);
    assert_int_equal(rooms_take(&r, 1, 8, 2, cpus), 2);
    assert_int_equal(rooms_room(&r, 0, 9), 4);
    assert_int_equal(rooms_room(&r, 1, 9), 0);
    rooms_free(&r, 8);
    assert_int_equal(rooms_room(&r, 1, 9), 2);
    rooms_done(&r);
}

static void test_a_trial_is_put_where_most_is_left(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    static const int other[] = { 0, 1, 2, 3, 4, 5 };
    const struct rooms_want one = { .cpus = 1 };
    int cpus[ROOMS_MAX_CPUS];
    assert_int_equal(rooms_add(&r, 0, 0), 0);
    assert_int_equal(rooms_know(&r, 1, other, ARRAY_LEN(other)), 0);
    r.nodes[1].closed = true;
    assert_int_equal(rooms_find(&r, 7, one), 0);
    r.nodes[1].closed = false;
    assert_int_equal(rooms_find(&r, 7, one), 1);
    assert_int_equal(rooms_put(&r, 1, 7), 0);
    assert_int_equal(rooms_node(&r, 7), 1);
    assert_int_equal(rooms_node(&r, 8), 0); /* nobody said where */
    assert_int_equal(rooms_take(&r, 1, 7, 4, cpus), 4);
    assert_int_equal(rooms_keep(&r, 1, 7, 2), 0);
    assert_int_equal(rooms_find(&r, 8, one), 0);
    assert_int_equal(rooms_put(&r, 0, 7), 0); /* it is launched again elsewhere: what it had is free */
    assert_int_equal(rooms_room(&r, 1, 8), 6);
    rooms_done(&r);
}

static void test_how_many_wait_for_the_room_there_is(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int said;
        double cpus;
        uint64_t waiting;
        bool enough;
    } cases[] = {
        { "none waits", 4, 4, 0, false },
        { "nothing fits beside one of all CPUs: one is enough", 4, 4, 1, true },
        { "three fit beside one", 4, 1, 2, false },
        { "three fit beside one, and wait", 4, 1, 3, true },
        { "what is left over is given to one, too", 5, 2, 1, false },
        { "what is left over is given to one, too, and it waits", 5, 2, 2, true },
        { "it is not known how many there are", 0, 2, 1, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rooms r = { 0 };
        assert_int_equal(rooms_add(&r, cases[i].said, 0), 0);
        if (rooms_enough_wait(&r, cases[i].cpus, cases[i].waiting) != cases[i].enough)
            fail_msg("%s", cases[i].name);
        rooms_done(&r);
    }
}

static void test_fewer_cpus_are_offered_than_there_are(void **state)
{
    (void)state;
    struct rooms r = { 0 };
    assert_int_equal(rooms_add(&r, 2, 0), 0);
    assert_int_equal(rooms_cpus(&r, 0), 2);
    assert_int_equal(rooms_know(&r, 0, machine, ARRAY_LEN(machine)), 0);
    assert_int_equal(rooms_cpus(&r, 0), 2);
    assert_int_equal(rooms_know(&r, 0, machine, 1), 0);
    assert_int_equal(rooms_cpus(&r, 0), 1);
    rooms_done(&r);
}

static void test_a_ledger_without_memory_stays_as_it_was(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct rooms r = { 0 };
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = rooms_add(&r, 4, 8);
        rc = rc < 0 ? rc : rooms_know(&r, 0, machine, ARRAY_LEN(machine));
        rc = rc < 0 ? rc : rooms_keep(&r, 0, 7, 4);
        fault_disarm();
        rooms_done(&r);
    }
}

/* Three machines: 4 CPUs and 8 GiB, 2 and 4, 3 and as much memory as one likes. */
static struct rooms three_machines(void)
{
    static const int cpus[] = { 0, 1, 2 };
    struct rooms r = one_machine();
    assert_int_equal(rooms_add(&r, 0, 4), 0);
    assert_int_equal(rooms_know(&r, 1, cpus, 2), 0);
    assert_int_equal(rooms_add(&r, 0, 0), 0);
    assert_int_equal(rooms_know(&r, 2, cpus, 3), 0);
    return r;
}

static const struct {
    const char *name;
    struct rooms_want want[6];
    size_t n;
    int taken;  /* CPUs of the first machine, by a trial */
    int closed; /* this machine is; -1: none */
    bool lost;  /* … for ever */
    enum rooms_when when;
    const char *nodes; /* of each; NULL: they do not fit */
} gangs[] = {
    { "as few machines as it takes", { { 1, 1 }, { 1, 1 }, { 2, 1 } }, 3, 0, -1, false, ROOMS_NOW, "000" },
    { "then the next with most room",
      { { 2, 1 }, { 2, 1 }, { 2, 1 }, { 1, 1 }, { 2, 1 } },
      5,
      0,
      -1,
      false,
      ROOMS_NOW,
      "00221" },
    { "all or none", { { 3, 1 }, { 3, 1 }, { 3, 1 } }, 3, 0, -1, false, ROOMS_NOW, NULL },
    { "beside others", { { 1, 1 }, { 1, 1 } }, 2, 3, -1, false, ROOMS_NOW, "22" },
    { "where none is needed memory is", { { 0, 8 }, { 0, 1 } }, 2, 0, -1, false, ROOMS_NOW, "02" },
    { "a closed one takes none", { { 2, 1 }, { 2, 1 }, { 2, 1 } }, 3, 0, 0, false, ROOMS_NOW, NULL },
    { "one day it may", { { 3, 1 }, { 2, 1 }, { 3, 1 } }, 3, 4, 1, false, ROOMS_EVER, "012" },
    { "others will be over one day", { { 4, 1 } }, 1, 4, -1, false, ROOMS_EVER, "0" },
    { "what is lost never comes back", { { 4, 1 }, { 3, 1 }, { 2, 1 } }, 3, 0, 1, true, ROOMS_EVER, NULL },
    { "too much for any", { { 5, 1 } }, 1, 0, -1, false, ROOMS_EVER, NULL },
};

/* Machines of so many CPUs and GiB each; 0 CPUs: there is no more. */
static const struct {
    const char *name;
    struct rooms_want has[4], want[4];
    size_t n;
    bool fits;
} tight[] = {
    { "the largest does not go to the largest machine",
      { { 6, 0 }, { 4, 0 } },
      { { 3, 0 }, { 4, 0 }, { 3, 0 } },
      3,
      true },
    { "three machines", { { 4, 0 }, { 2, 0 }, { 3, 0 } }, { { 3, 0 }, { 2, 0 }, { 2, 0 }, { 2, 0 } }, 4, true },
    { "memory decides", { { 4, 4 }, { 4, 8 } }, { { 1, 4 }, { 1, 3 }, { 1, 4 } }, 3, true },
    { "those that take no CPU", { { 2, 4 }, { 2, 8 } }, { { 2, 4 }, { 0, 4 }, { 2, 4 } }, 3, true },
    { "one CPU is missing", { { 6, 0 }, { 4, 0 } }, { { 4, 0 }, { 4, 0 }, { 3, 0 } }, 3, false },
    { "enough in all, and no way", { { 5, 0 }, { 5, 0 } }, { { 4, 0 }, { 3, 0 }, { 3, 0 } }, 3, false },
};

static void test_unequal_processes_are_placed_wherever_they_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tight); i++) {
        struct rooms r = { 0 };
        size_t n = tight[i].n, out[4] = { 0 };
        int left[4] = { 0 };
        double gb[4] = { 0 };
        for (size_t m = 0; m < 4 && tight[i].has[m].cpus; m++)
            assert_int_equal(rooms_add(&r, left[m] = tight[i].has[m].cpus, gb[m] = tight[i].has[m].memory_gb), 0);
        bool fits = rooms_spread(&r, tight[i].want, n, ROOMS_NOW, out);
        if (fits != tight[i].fits)
            fail_msg("%s: %s", tight[i].name, fits ? "fits" : "does not fit");
        for (size_t k = 0; fits && k < n; k++) {
            left[out[k]] -= tight[i].want[k].cpus;
            gb[out[k]] -= tight[i].want[k].memory_gb;
            if (left[out[k]] < 0 || gb[out[k]] < 0)
                fail_msg("%s: too much on machine %zu", tight[i].name, out[k]);
        }
        rooms_done(&r);
    }
}

/* Nobody can try all ways of so many on so many: it ends all the same, and finds what going by size does. */
static void test_many_are_placed_by_their_size(void **state)
{
    (void)state;
    enum { MANY = 64 };
    struct rooms r = { 0 };
    struct rooms_want wants[MANY];
    size_t out[MANY];
    for (int m = 0; m < MANY; m++) {
        assert_int_equal(rooms_add(&r, 7 + m % 3, 100 + m), 0);
        wants[m] = (struct rooms_want){ .cpus = 4 + m % 2, .memory_gb = 1 + m % 5 };
    }
    assert_true(rooms_spread(&r, wants, MANY, ROOMS_NOW, out));
    for (int m = 0; m < MANY; m++)
        wants[m].cpus = 5; /* one on each, and one too many, although there are CPUs enough in all */
    r.nodes[MANY - 1].lost = true;
    assert_false(rooms_spread(&r, wants, MANY, ROOMS_NOW, out));
    rooms_done(&r);
}

static void test_a_gang_fits_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(gangs); i++) {
        struct rooms r = three_machines();
        int cpus[ROOMS_MAX_CPUS];
        size_t out[6];
        char got[8] = "";
        (void)rooms_take(&r, 0, 7, gangs[i].taken, cpus);
        if (gangs[i].closed >= 0) {
            r.nodes[gangs[i].closed].closed = true;
            r.nodes[gangs[i].closed].lost = gangs[i].lost;
        }
        bool fits = rooms_spread(&r, gangs[i].want, gangs[i].n, gangs[i].when, out);
        for (size_t k = 0; fits && k < gangs[i].n; k++)
            got[k] = (char)('0' + out[k]), got[k + 1] = '\0';
        if (fits != (gangs[i].nodes != NULL) || (fits && strcmp(got, gangs[i].nodes) != 0))
            fail_msg("%s: got %s, want %s", gangs[i].name, fits ? got : "none",
                     gangs[i].nodes ? gangs[i].nodes : "none");
        rooms_done(&r);
    }
}

/* Ours are not shared among our own trials. */
static void test_a_gang_may_share_what_other_drivers_have(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    const struct rooms_want wants[] = { { 2, 1 }, { 2, 1 } };
    int cpus[ROOMS_MAX_CPUS];
    size_t out[2];
    rooms_mark(&r, 0, machine[0], true);
    rooms_mark(&r, 0, machine[3], true);
    assert_false(rooms_spread(&r, wants, 2, ROOMS_NOW, out));
    assert_true(rooms_spread(&r, wants, 2, ROOMS_SHARED, out));
    assert_int_equal(rooms_share(&r, 0, rooms_member(8, 1), 4, cpus), 4);
    assert_int_equal(rooms_shares(&r, 0, 8), 4); /* by whichever of its processes */
    assert_int_equal(rooms_shares(&r, 0, 9), 0);
    rooms_free(&r, rooms_member(8, 1));
    assert_int_equal(rooms_take(&r, 0, 7, 1, cpus), 1);
    assert_false(rooms_spread(&r, wants, 2, ROOMS_SHARED, out));
    rooms_done(&r);
}

static void test_processes_of_a_trial_have_cpus_of_their_own(void **state)
{
    (void)state;
    struct rooms r = one_machine();
    int cpus[ROOMS_MAX_CPUS];
    assert_int_equal(rooms_member(7, 0), 7);
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(rooms_put(&r, 0, rooms_member(7, k)), 0);
        assert_int_equal(rooms_take(&r, 0, rooms_member(7, k), 1, cpus), 1);
        assert_int_equal(cpus[0], machine[k]);
    }
    assert_int_equal(rooms_trial(rooms_member(7, 3)), 7);
    assert_int_equal(rooms_trial(ROOMS_OTHERS), ROOMS_OTHERS);
    rooms_free(&r, rooms_member(7, 2));
    assert_int_equal(rooms_left(&r, 0, 0), 1);
    assert_true(rooms_member(100000, 63) > 0);
    rooms_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_are_disjoint_and_whole_cores_come_first),
        cmocka_unit_test(test_a_share_bounds_what_ours_have_together),
        cmocka_unit_test(test_a_trial_keeps_its_first_cpus_and_gives_back_the_rest),
        cmocka_unit_test(test_owners_stay_when_the_machine_changes),
        cmocka_unit_test(test_cpus_of_other_drivers_are_not_given_out),
        cmocka_unit_test(test_who_shares_uses_the_first_cpus_until_it_has_its_own),
        cmocka_unit_test(test_who_is_asked_keeps_its_share),
        cmocka_unit_test(test_memory_is_held_beside_cpus),
        cmocka_unit_test(test_a_second_machine_has_what_the_first_has_not),
        cmocka_unit_test(test_a_trial_is_put_where_most_is_left),
        cmocka_unit_test(test_how_many_wait_for_the_room_there_is),
        cmocka_unit_test(test_fewer_cpus_are_offered_than_there_are),
        cmocka_unit_test(test_a_gang_fits_whole_or_not_at_all),
        cmocka_unit_test(test_unequal_processes_are_placed_wherever_they_fit),
        cmocka_unit_test(test_many_are_placed_by_their_size),
        cmocka_unit_test(test_a_gang_may_share_what_other_drivers_have),
        cmocka_unit_test(test_processes_of_a_trial_have_cpus_of_their_own),
        cmocka_unit_test(test_a_ledger_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
