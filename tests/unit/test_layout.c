/* How cores are divided over workers as executors, and what is not asked for again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/layout.h"

static const struct {
    const char *name;
    struct layout_room room;
    int cores, executors, each;
    double memory_gb;
    int want; /* executors; 0: none */
} divided[] = {
    { "nothing known: one executor", { .n_workers = 0 }, 4, 0, 0, 0, 1 },
    { "nothing known, no more than two each", { .n_workers = 0 }, 4, 0, 2, 0, 2 },
    { "nothing known, no more than three each: evenly", { .n_workers = 0 }, 4, 0, 3, 0, 2 },
    { "as many as were asked for", { .n_workers = 0 }, 4, 4, 0, 0, 4 },
    { "as many as do not divide", { .n_workers = 0 }, 4, 3, 0, 0, 0 },
    { "more than there are cores", { .n_workers = 0 }, 1, 2, 0, 0, 0 },
    { "one worker of four", { .workers = { { 1, 4, 8 } }, .n_workers = 1 }, 4, 0, 0, 2, 1 },
    { "two workers of one", { .workers = { { 2, 1, 2 } }, .n_workers = 1 }, 2, 0, 0, 2, 2 },
    { "two workers of one, in one executor", { .workers = { { 2, 1, 2 } }, .n_workers = 1 }, 2, 1, 0, 2, 0 },
    { "three of two: one each", { .workers = { { 3, 2, 4 } }, .n_workers = 1 }, 6, 0, 0, 2, 3 },
    { "three of two, four cores", { .workers = { { 3, 2, 4 } }, .n_workers = 1 }, 4, 0, 0, 2, 2 },
    { "uneven workers: as small as the small one needs",
      { .workers = { { 1, 3, 8 }, { 1, 1, 8 } }, .n_workers = 2 },
      4,
      0,
      0,
      1,
      4 },
    { "uneven workers, where the large one is enough",
      { .workers = { { 1, 3, 8 }, { 1, 1, 8 } }, .n_workers = 2 },
      3,
      0,
      0,
      1,
      1 },
    { "memory for one executor on each", { .workers = { { 2, 4, 3 } }, .n_workers = 1 }, 8, 0, 0, 2, 2 },
    { "memory for one executor on each, smaller ones", { .workers = { { 2, 4, 3 } }, .n_workers = 1 }, 8, 0, 2, 2, 0 },
    { "more memory than any has", { .workers = { { 2, 4, 3 } }, .n_workers = 1 }, 1, 0, 0, 4, 0 },
    { "more cores than there are", { .workers = { { 2, 1, 2 } }, .n_workers = 1 }, 3, 0, 0, 1, 0 },
    { "refused: smaller ones", { .refused = { { 1, 2, 1 } }, .n_refused = 1 }, 2, 0, 0, 1, 2 },
    { "refused: with more memory, too", { .refused = { { 1, 1, 1 } }, .n_refused = 1 }, 2, 0, 0, 2, 0 },
    { "refused: less memory may be had", { .refused = { { 1, 2, 4 } }, .n_refused = 1 }, 2, 0, 0, 2, 1 },
    { "two of one were too many", { .refused = { { 1, 2, 1 }, { 2, 1, 1 } }, .n_refused = 2 }, 2, 0, 0, 1, 0 },
    { "… and one of one not", { .refused = { { 1, 2, 1 }, { 2, 1, 1 } }, .n_refused = 2 }, 1, 0, 0, 1, 1 },
};

static void test_cores_are_divided_over_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(divided); i++) {
        int got = layout_divide(&divided[i].room, divided[i].cores, divided[i].executors, divided[i].each,
                                divided[i].memory_gb);
        if (got != divided[i].want)
            fail_msg("%s: got %d executors, want %d", divided[i].name, got, divided[i].want);
    }
}

static void test_the_most_cores_are_those_that_can_be_divided(void **state)
{
    (void)state;
    struct layout_room r = { .n_workers = 0 };
    layout_add(&r, (struct layout_worker){ 1, 8, 4 });
    layout_add(&r, (struct layout_worker){ 1, 4, 4 });
    assert_int_equal(layout_most(&r, 12, 0, 0, 1), 12);
    assert_int_equal(layout_most(&r, 12, 0, 0, 4), 8); /* one executor on each: 2 x 4, or 1 x 8 */
    assert_int_equal(layout_most(&r, 12, 1, 0, 1), 8);
    assert_int_equal(layout_most(&r, 7, 2, 0, 4), 6);
    assert_int_equal(layout_most(&r, 12, 0, 0, 5), 0);
}

/* By trying every number. */
static int most_tried(const struct layout_room *r, int most, int executors, int each, double memory_gb)
{
    while (most > 0 && layout_divide(r, most, executors, each, memory_gb) == 0)
        most--;
    return most;
}

static void test_the_most_is_found_without_trying_all(void **state)
{
    (void)state;
    unsigned x = 1;
    for (int i = 0; i < 2000; i++) {
        struct layout_room r = { .n_workers = 0 };
        int v[12];
        for (size_t k = 0; k < ARRAY_LEN(v); k++)
            v[k] = (int)((x = x * 1103515245u + 12345u) >> 16) & 15;
        for (int k = 0; k < 3; k++)
            layout_add(&r, (struct layout_worker){ 1 + v[k] % 3, 1 + v[k + 3], 1 + v[k + 6] });
        if (v[9] < 4)
            (void)layout_refuse(&r, (struct layout_ask){ 1 + v[9], 1 + v[10], 0 });
        int got = layout_most(&r, 40, v[10] % 4, v[11] % 5, v[9] % 5),
            want = most_tried(&r, 40, v[10] % 4, v[11] % 5, v[9] % 5);
        if (got != want)
            fail_msg("case %d: got %d, want %d", i, got, want);
    }
}

static void test_workers_of_a_size_are_counted_together(void **state)
{
    (void)state;
    struct layout_room r = { .n_workers = 0 };
    for (int i = 0; i < 1000; i++)
        layout_add(&r, (struct layout_worker){ 1, 2, 4 });
    assert_int_equal(r.n_workers, 1);
    assert_int_equal(layout_divide(&r, 2000, 0, 0, 4), 1000);
    for (int i = 0; i < 1000; i++)
        layout_add(&r, (struct layout_worker){ 1, 3 + i, 4 });
    assert_int_equal(r.n_workers, LAYOUT_WORKERS_MAX);
}

static void test_refusals_that_say_nothing_new_take_no_room(void **state)
{
    (void)state;
    struct layout_room r = { .n_workers = 0 };
    for (int i = 0; i < LAYOUT_REFUSED_MAX; i++)
        assert_true(layout_refuse(&r, (struct layout_ask){ 1 + i, 100 - i, 1 }));
    assert_true(layout_refuse(&r, (struct layout_ask){ 1, 200, 2 }));
    assert_false(layout_refuse(&r, (struct layout_ask){ 1, 1, 1 }));
    assert_int_equal(r.n_refused, LAYOUT_REFUSED_MAX);
}

/* --- what parts take --- */

static const struct {
    struct layout_takes takes;
    double memory_gb, want;
} takes[] = {
    { { 0, 0, 0 }, 2, 2 },       { { 0.1, 0.375, 0 }, 1, 1.375 },  { { 0.1, 0.375, 0 }, 10, 11 },
    { { 0.1, 0.375, 1 }, 1, 2 }, { { 0.1, 0.375, 0.25 }, 1, 1.5 }, { { 0.1, 0.375, 1 }, 0, 0 },
};

static void test_a_part_takes_more_than_it_is_given(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
        double got = layout_takes_gb(&takes[i].takes, takes[i].memory_gb);
        double gives = layout_gives_gb(&takes[i].takes, got);
        if (got != takes[i].want || gives < takes[i].memory_gb || layout_takes_gb(&takes[i].takes, gives) > got)
            fail_msg("case %zu: takes %g, want %g; gives %g", i, got, takes[i].want, gives);
    }
}

static void test_what_is_taken_goes_off_the_widest_worker(void **state)
{
    (void)state;
    struct layout_room r = { .full = true, .beside = { 1, 1, 1 } };
    layout_add(&r, (struct layout_worker){ 1, 4, 8 });
    layout_add(&r, (struct layout_worker){ 2, 1, 8 });
    assert_int_equal(layout_take(&r, (struct layout_ask){ 1, 2, 1 }), 1);
    assert_int_equal(layout_divide(&r, 4, 4, 0, 1), 4);
    assert_int_equal(layout_divide(&r, 2, 1, 0, 1), 1);
    assert_int_equal(layout_divide(&r, 3, 1, 0, 1), 0);
    assert_true(layout_take_beside(&r)); /* off a narrow one */
    assert_int_equal(layout_divide(&r, 3, 3, 0, 1), 3);
    assert_int_equal(layout_divide(&r, 2, 1, 0, 1), 1);
    assert_int_equal(layout_take(&r, (struct layout_ask){ 9, 1, 1 }), 3);
    assert_int_equal(layout_most(&r, 9, 0, 0, 1), 0);
    assert_false(layout_take_beside(&r));
}

/* Of more sizes than are told apart the others count as smaller ones. */
static void test_many_sizes_offer_no_more_than_there_is(void **state)
{
    (void)state;
    struct layout_room r = { .full = true };
    int cores = 0;
    for (int i = 0; i < 3 * LAYOUT_WORKERS_MAX; i++) {
        layout_add(&r, (struct layout_worker){ 1, 1 + i, 4 });
        cores += 1 + i;
    }
    assert_int_equal(r.n_workers, LAYOUT_WORKERS_MAX);
    int got = layout_most(&r, 1 << 20, 0, 1, 0);
    assert_true(got <= cores && got > cores / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores_are_divided_over_workers),
        cmocka_unit_test(test_the_most_cores_are_those_that_can_be_divided),
        cmocka_unit_test(test_the_most_is_found_without_trying_all),
        cmocka_unit_test(test_workers_of_a_size_are_counted_together),
        cmocka_unit_test(test_refusals_that_say_nothing_new_take_no_room),
        cmocka_unit_test(test_a_part_takes_more_than_it_is_given),
        cmocka_unit_test(test_what_is_taken_goes_off_the_widest_worker),
        cmocka_unit_test(test_many_sizes_offer_no_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
