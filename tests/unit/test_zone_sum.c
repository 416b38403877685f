/* What several counters together make; test_rapl.c feeds it through files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/zone_sum.h"

#define S 1000000000LL
#define BEGIN (1700000000LL * S)

static struct zone_sum sum;
static struct meter_reading got;

static const struct zone_counter plain = { .name = "a", .unit_j = 1e-6, .step_j = 1e-6, .twins = -1 };

static void start(const struct zone_counter *v, int n)
{
    zone_sum_init(&sum, 2000);
    for (int i = 0; i < n; i++)
        assert_int_equal(zone_sum_zone(&sum, &v[i]), 0);
}

/* Of two zones, in joules. */
static enum meter_state feed(double at_s, double skew_s, double a_j, double b_j)
{
    uint64_t counts[2] = { (uint64_t)llround(a_j * 1e6), (uint64_t)llround(b_j * 1e6) };
    zone_sum_read(&sum, BEGIN + llround(at_s * 1e9), skew_s, counts, &got);
    return got.state;
}

static void there_is_room_for_64_zones(void **state)
{
    (void)state;
    zone_sum_init(&sum, 2000);
    for (int i = 0; i < ZONE_SUM_MAX; i++)
        assert_int_equal(zone_sum_zone(&sum, &plain), 0);
    assert_int_equal(zone_sum_zone(&sum, &plain), -E2BIG);
}

static void the_error_is_of_steps_and_of_one_renewal(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    v[0].step_j = 0.25;
    start(v, 2);
    assert_int_equal(feed(0, 0, 0, 0), METER_FIRST);
    assert_int_equal(feed(2, 0, 100, 300), METER_OK);
    assert_true(fabs(got.value - 400) < 1e-9);
    assert_true(fabs(got.error - (0.5 + 2e-6 + 400 * 0.001 / 2)) < 1e-9);
}

static void a_restart_begins_anew(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    start(v, 2);
    (void)feed(0, 0, 100, 100);
    zone_sum_restart(&sum);
    assert_int_equal(feed(1, 0, 5, 5), METER_FIRST);
    assert_int_equal(feed(2, 0, 15, 5.5), METER_OK);
    assert_true(fabs(got.value - 10.5) < 1e-9);
}

static void a_failure_before_the_first_read_has_no_length(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    start(v, 2);
    zone_sum_failed(&sum, BEGIN + 5 * S, &got);
    assert_int_equal(got.state, METER_FAILED);
    assert_true(got.from_ms == got.to_ms);
    (void)feed(6, 0, 0, 0);
    zone_sum_failed(&sum, BEGIN + 8 * S, &got);
    assert_true(got.to_ms - got.from_ms > 1999 && got.to_ms - got.from_ms < 2001);
}

static void no_time_has_no_value(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    start(v, 2);
    (void)feed(1, 0, 0, 0);
    assert_int_equal(feed(1, 0, 1, 1), METER_DISCARDED);
    assert_int_equal(feed(2, 0, 11, 11), METER_OK);
    assert_true(fabs(got.value - 20) < 1e-9);
}

/* One counter shown twice; the second time half a second later, as the reader was held up: that is no difference. */
static void a_slow_read_makes_no_two_counters_of_one(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    v[0].twins = v[1].twins = 3;
    start(v, 2);
    (void)feed(0, 0, 0, 0);
    for (int i = 1; i < 20; i++) {
        bool slow = i % 4 == 0;
        enum meter_state s = feed(i, slow ? 0.5 : 0, 100 * i, slow ? 100 * i + 50 : 100 * i);
        assert_int_equal(s, i < ZONE_SUM_TWIN_READS ? METER_FIRST : METER_OK);
    }
    assert_true(zone_sum_counts(&sum, 0));
    assert_false(zone_sum_counts(&sum, 1));
}

static void four_dies_of_two_counters_count_two(void **state)
{
    (void)state;
    struct zone_counter v[4] = { plain, plain, plain, plain };
    for (int i = 0; i < 4; i++)
        v[i].twins = 0;
    start(v, 4);
    for (int i = 0; i < 8; i++) {
        uint64_t a = 40000000 * (uint64_t)i, b = 55000000 * (uint64_t)i;
        const uint64_t counts[4] = { a, b, a, b };
        zone_sum_read(&sum, BEGIN + i * S, 0, counts, &got);
    }
    assert_int_equal(got.state, METER_OK);
    assert_true(fabs(got.value - 95) < 1e-9);
}

static void twins_are_not_known_while_intervals_are_discarded(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    v[0].twins = v[1].twins = 0;
    start(v, 2);
    for (int i = 0; i < 10; i++) {
        double jump = i / 2 * 100000; /* every second read is implausible */
        enum meter_state s = feed(i, 0, jump + 50 * i, jump + 50 * i);
        assert_int_equal(s, i > 0 && i % 2 == 0 ? METER_DISCARDED : METER_FIRST);
    }
}

static void the_greatest_counts_do_not_overflow(void **state)
{
    (void)state;
    struct zone_counter v[2] = { plain, plain };
    v[0].range = v[1].range = UINT64_MAX;
    start(v, 2);
    const uint64_t high[2] = { UINT64_MAX - 5000000, UINT64_MAX }, low[2] = { 5000000, 10000000 };
    zone_sum_read(&sum, BEGIN, 0, high, &got);
    zone_sum_read(&sum, BEGIN + S, 0, low, &got);
    assert_int_equal(got.state, METER_OK);
    assert_true(fabs(got.value - 20) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_room_for_64_zones),
        cmocka_unit_test(the_error_is_of_steps_and_of_one_renewal),
        cmocka_unit_test(a_restart_begins_anew),
        cmocka_unit_test(a_failure_before_the_first_read_has_no_length),
        cmocka_unit_test(no_time_has_no_value),
        cmocka_unit_test(a_slow_read_makes_no_two_counters_of_one),
        cmocka_unit_test(four_dies_of_two_counters_count_two),
        cmocka_unit_test(twins_are_not_known_while_intervals_are_discarded),
        cmocka_unit_test(the_greatest_counts_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
