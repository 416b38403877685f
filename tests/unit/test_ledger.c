#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/ledger.h"
#include "tests/fault.h"

/* Times below are seconds after this one. */
static const double T0_MS = 1790000000000;

static const struct meter_ops rapl = { .name = "rapl", .kind = METER_ENERGY, .local = true };
static const struct meter_ops pdu = { .name = "pdu", .kind = METER_POWER };
static const struct meter_ops model = { .name = "estimate", .kind = METER_ENERGY, .local = true, .estimated = true };
static const struct meter_ops cpus = { .name = "cpu", .kind = METER_CPU, .local = true };

static void free_ledger(struct ledger **l)
{
    ledger_free(*l);
}
#define LEDGER(l) __attribute__((cleanup(free_ledger))) struct ledger *l = ledger_new()

static double ms_of(double s)
{
    return T0_MS + 1000 * s;
}

static void take(struct ledger *l, int node, const struct meter_ops *meter, enum meter_state state, double from_s,
                 double to_s, double value, double error)
{
    struct meter_reading r = {
        .state = state, .from_ms = ms_of(from_s), .to_ms = ms_of(to_s), .value = value, .error = error
    };
    assert_int_equal(ledger_read(l, node, meter, &r), 0);
}

static void joules(struct ledger *l, const struct meter_ops *meter, double from_s, double to_s, double j)
{
    take(l, 0, meter, METER_OK, from_s, to_s, j, 0);
}

static void watts(struct ledger *l, double at_s, double w)
{
    take(l, 0, &pdu, METER_OK, at_s, at_s, w, 0);
}

static void busy(struct ledger *l, int node, double from_s, double to_s, double cpu_s)
{
    take(l, node, &cpus, METER_OK, from_s, to_s, cpu_s, 0);
}

static void used(struct ledger *l, int node, int trial, double from_s, double to_s, double cpu_s)
{
    assert_int_equal(ledger_cpu(l, node, trial, ms_of(from_s), ms_of(to_s), cpu_s), 0);
}

static struct ledger_node of_node(struct ledger *l, int node, const struct meter_ops *meter, double from_s, double to_s)
{
    struct ledger_node out;
    assert_int_equal(ledger_of_node(l, node, meter, ms_of(from_s), ms_of(to_s), &out), 0);
    return out;
}

static struct ledger_figure of_trial(struct ledger *l, int trial, const struct meter_ops *meter, double from_s,
                                     double to_s)
{
    struct ledger_figure out;
    assert_int_equal(ledger_of_trial(l, trial, meter, ms_of(from_s), ms_of(to_s), &out), 0);
    return out;
}

static void near_(double got, double want, int line)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("line %d: got %.12g, want %.12g", line, got, want);
}
#define NEAR(got, want) near_(got, want, __LINE__)

static void sums_up(const struct ledger_node *x, int line)
{
    near_(x->idle_j + x->trials_j + x->other_j, x->total.j, line);
    if (!(x->other_j >= -1e-9))
        fail_msg("line %d: others have %.12g J", line, x->other_j);
}

/* --- joules of a node --- */

static void joules_of_a_window_are_the_sum_of_its_readings(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++)
        take(l, 0, &rapl, METER_OK, i, i + 1, 10 + i, 0.25);
    struct ledger_node x = of_node(l, 0, &rapl, 2, 5);
    NEAR(x.total.j, 12 + 13 + 14);
    NEAR(x.total.error_j, 0.75);
    NEAR(x.total.coverage, 1);
    assert_int_equal(x.total.intervals, 3);
    assert_int_equal(x.total.discarded, 0);
    assert_int_equal(x.total.source, LEDGER_MEASURED);
    assert_ptr_equal(x.total.meter, &rapl);
    sums_up(&x, __LINE__);
}

static void an_edge_takes_its_share_by_time_and_widens_the_error(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 10, 100);
    joules(l, &rapl, 10, 20, 200);
    struct ledger_node x = of_node(l, 0, &rapl, 8, 20);
    NEAR(x.total.j, 20 + 200);
    /* 20 W was the highest: within 2 s there may have been nothing, or 80 J. */
    NEAR(x.total.error_j, 60);
    NEAR(x.total.coverage, 1);
    /* The part and the rest make 100 J together, so that the part has no more than these. */
    NEAR(of_node(l, 0, &rapl, 5, 10).total.error_j, 50);
    NEAR(of_node(l, 0, &rapl, 0, 9).total.error_j, 30);
}

static void an_edge_widens_the_meters_own_error(void **state)
{
    (void)state;
    LEDGER(l);
    take(l, 0, &rapl, METER_OK, 0, 10, 100, 1);
    /* Up to 101 J, all before the edge or all behind it: of 101 J the half is 50.5, and half of what was read is 50. */
    NEAR(of_node(l, 0, &rapl, 5, 10).total.error_j, 52);
    assert_true(of_node(l, 0, &rapl, 5, 10).total.error_j >= 101 - 50);
}

static void windows_that_touch_add_up(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 20; i++) {
        joules(l, &rapl, i, i + 1, 50 + 7 * (i % 3));
        watts(l, i, 80 + 5 * (i % 4));
    }
    const struct meter_ops *both[] = { &rapl, &pdu };
    for (size_t m = 0; m < 2; m++) {
        double sum = 0;
        for (double at = 1; at < 17; at += 0.7)
            sum += of_node(l, 0, both[m], at, fmin(at + 0.7, 17)).total.j;
        NEAR(sum, of_node(l, 0, both[m], 1, 17).total.j);
    }
}

static void powers_are_integrated_over_their_true_times(void **state)
{
    (void)state;
    LEDGER(l);
    watts(l, 0, 100);
    watts(l, 1, 100);
    watts(l, 1.25, 120);
    watts(l, 3, 80);
    struct ledger_node x = of_node(l, 0, &pdu, 0, 3);
    NEAR(x.total.j, 100 + 110 * 0.25 + 100 * 1.75);
    NEAR(x.total.error_j, 10 * 0.25 + 20 * 1.75); /* half the differences, for as long as they may last */
    NEAR(x.total.coverage, 1);
    assert_int_equal(x.total.intervals, 3);
}

static void a_power_meters_steps_widen_the_error(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i <= 10; i++)
        take(l, 0, &pdu, METER_OK, i, i, 100, 0.5);
    NEAR(of_node(l, 0, &pdu, 2.5, 6.5).total.error_j, 2);
}

static void an_error_that_is_not_known_leaves_none_to_state(void **state)
{
    (void)state;
    LEDGER(l);
    take(l, 0, &rapl, METER_OK, 0, 1, 10, NAN);
    take(l, 0, &rapl, METER_OK, 1, 2, 10, 0.1);
    assert_true(isnan(of_node(l, 0, &rapl, 0, 2).total.error_j));
    NEAR(of_node(l, 0, &rapl, 0, 2).total.j, 20);
    NEAR(of_node(l, 0, &rapl, 1, 2).total.error_j, 0.1);
    take(l, 0, &rapl, METER_OK, 2, 3, 10, -1);
    assert_true(isnan(of_node(l, 0, &rapl, 2, 3).total.error_j));
    for (int i = 0; i <= 2; i++)
        take(l, 0, &pdu, METER_OK, i, i, 10, i == 1 ? NAN : 0.5);
    assert_true(isnan(of_node(l, 0, &pdu, 0, 1).total.error_j));
    assert_true(isnan(of_node(l, 0, &pdu, 1, 2).total.error_j));
}

/* --- gaps --- */

static void a_gap_lowers_the_coverage_widens_the_error_and_adds_nothing(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++)
        if (i < 4 || i > 6)
            joules(l, &rapl, i, i + 1, i == 8 ? 30 : 20);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 10);
    NEAR(x.total.j, 150);
    NEAR(x.total.coverage, 0.7);
    NEAR(x.total.error_j, 3 * 30);
    sums_up(&x, __LINE__);
    x = of_node(l, 0, &rapl, 5, 20);
    NEAR(x.total.coverage, 3.0 / 15);
}

static void powers_too_far_apart_make_a_hole(void **state)
{
    (void)state;
    LEDGER(l);
    static const double at[] = { 0, 1, 2, 3, 4, 5, 8, 9, 10, 13.2, 14, 15 };
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        watts(l, at[i], 100);
    NEAR(of_node(l, 0, &pdu, 5, 8).total.j, 300); /* three usual periods are none yet */
    struct ledger_node x = of_node(l, 0, &pdu, 0, 15);
    NEAR(x.total.j, 1500 - 320);
    NEAR(x.total.coverage, (15 - 3.2) / 15);
    NEAR(x.total.error_j, 320);
    assert_int_equal(of_node(l, 0, &pdu, 11, 13).total.source, LEDGER_ABSENT);
}

static void a_late_reading_closes_a_hole(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i <= 20; i++)
        if (i < 8 || i > 12)
            watts(l, i, 100);
    NEAR(of_node(l, 0, &pdu, 0, 20).total.coverage, 14.0 / 20); /* from 7 to 13 */
    watts(l, 10, 130);
    struct ledger_node x = of_node(l, 0, &pdu, 0, 20);
    NEAR(x.total.coverage, 1);
    NEAR(x.total.j, 2000 + 90);
}

static void the_usual_period_is_that_of_the_readings_nearby(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 1000; i++)
        watts(l, i, 100);
    for (int i = 0; i < 500; i++)
        watts(l, 1000 + 10 * i, 100); /* a study that went on with another interval */
    NEAR(of_node(l, 0, &pdu, 0, 5990).total.coverage, 1);
    NEAR(of_node(l, 0, &pdu, 0, 5990).total.j, 599000);
    for (int i = 0; i < 100; i++)
        watts(l, 6100 + i, 100); /* and with the first one again, after a while */
    NEAR(of_node(l, 0, &pdu, 5900, 6199).total.j, 100 * (90 + 99));
    NEAR(of_node(l, 0, &pdu, 0, 5990).total.coverage, 1);
}

static void readings_that_were_lost_often_are_holes_yet(void **state)
{
    (void)state;
    LEDGER(l);
    double at = 0, held = 0;
    for (int i = 0; i < 200; i++) {
        double step = i % 5 == 2 || i % 5 == 4 ? 6 : 1; /* of five steps, two are too long */
        watts(l, at, 100);
        at += step;
        held += step == 1;
    }
    watts(l, at, 100);
    NEAR(of_node(l, 0, &pdu, 0, at).total.j, 100 * held);
}

static void a_few_long_steps_at_the_end_are_holes_until_they_are_usual(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i <= 20; i++)
        watts(l, i, 100);
    watts(l, 30, 100);
    watts(l, 40, 100);
    NEAR(of_node(l, 0, &pdu, 0, 40).total.j, 2000);
    for (int i = 5; i <= 8; i++)
        watts(l, 10 * i, 100);
    NEAR(of_node(l, 0, &pdu, 0, 80).total.j, 8000);
}

static void a_late_reading_changes_what_is_usual(void **state)
{
    (void)state;
    LEDGER(l);
    static const double at[] = { 0, 10, 110, 210, 310, 2 };
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        watts(l, at[i], 100);
    /* From reading to reading 2, 8, and three times 100 s: no longer 10. */
    NEAR(of_node(l, 0, &pdu, 0, 310).total.coverage, 1);
    NEAR(of_node(l, 0, &pdu, 0, 310).total.j, 31000);
}

static void what_no_reading_covers_at_all_is_absent(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 10);
    watts(l, 0, 10);
    const struct ledger_node all[] = { of_node(l, 0, &rapl, 1, 5),  of_node(l, 0, &rapl, -5, 0),
                                       of_node(l, 1, &rapl, 0, 1),  of_node(l, 0, &model, 0, 1),
                                       of_node(l, 0, &pdu, -1, 1),  of_node(l, 0, &rapl, 0.5, 0.5),
                                       of_node(l, 0, &rapl, 1, 0.2) };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct ledger_node *x = &all[i];
        assert_true(isnan(x->total.j) && isnan(x->total.error_j) && isnan(x->idle_j) && isnan(x->trials_j));
        assert_true(isnan(x->other_j) && isnan(x->idle_w) && isnan(x->total.coverage) && !x->total.meter);
        assert_int_equal(x->total.source, LEDGER_ABSENT);
    }
}

static void readings_without_a_value_are_counted_where_they_were_lost(void **state)
{
    (void)state;
    LEDGER(l);
    take(l, 0, &rapl, METER_FIRST, 0, 0, NAN, NAN);
    take(l, 0, &rapl, METER_OK, 0, 1, 10, 0);
    take(l, 0, &rapl, METER_DISCARDED, 1, 2, NAN, NAN);
    take(l, 0, &rapl, METER_FAILED, 3, 3, NAN, NAN);
    take(l, 0, &rapl, METER_FAILED, 3, 3, NAN, NAN); /* told twice */
    take(l, 0, &rapl, METER_OK, 2, 4, 20, 0);        /* a counter runs on while it cannot be read */
    struct ledger_node x = of_node(l, 0, &rapl, 0, 4);
    NEAR(x.total.j, 30);
    NEAR(x.total.coverage, 0.75);
    assert_int_equal(x.total.discarded, 2);
    assert_int_equal(x.total.intervals, 2);
    assert_int_equal(of_node(l, 0, &rapl, 0, 2).total.discarded, 1);
    assert_int_equal(of_node(l, 0, &rapl, 2, 4).total.discarded, 1);
    assert_int_equal(of_node(l, 0, &rapl, 0, 1).total.discarded, 0);
}

/* --- the order of readings --- */

struct event {
    enum { JOULES, WATTS, BUSY, USED } kind;
    double at_s, value;
};

static void feed(struct ledger *l, const struct event *e)
{
    switch (e->kind) {
    case JOULES: joules(l, &rapl, e->at_s, e->at_s + 1, e->value); break;
    case WATTS: watts(l, e->at_s, e->value); break;
    case BUSY: busy(l, 0, e->at_s, e->at_s + 1, e->value); break;
    case USED: used(l, 0, 1 + (int)e->at_s % 2, e->at_s, e->at_s + 1, e->value); break;
    }
}

static void readings_come_in_any_order(void **state)
{
    (void)state;
    enum { N = 400 };
    struct event list[N];
    struct rng rng = rng_seeded(7);
    for (unsigned i = 0; i < N; i++)
        list[i] = (struct event){ i % 4, i / 4, (i % 4 == WATTS ? 100 : i % 4 == JOULES ? 50 : 0) + rng_unit(&rng) };
    LEDGER(sorted);
    for (int i = 0; i < N; i++)
        feed(sorted, &list[i]);
    struct ledger_node want_j = of_node(sorted, 0, &rapl, 0, 100), want_w = of_node(sorted, 0, &pdu, 0, 99);
    struct ledger_figure want_t = of_trial(sorted, 2, &rapl, 0, 100);
    for (int round = 0; round < 5; round++) {
        for (int i = N - 1; i > 0; i--) {
            int k = (int)(rng_unit(&rng) * (i + 1));
            struct event x = list[i];
            list[i] = list[k];
            list[k] = x;
        }
        LEDGER(l);
        for (int i = 0; i < N; i++) {
            feed(l, &list[i]);
            if (i % 50 == 0)
                (void)of_node(l, 0, &rapl, 0, 100); /* looking changes nothing */
        }
        struct ledger_node got_j = of_node(l, 0, &rapl, 0, 100), got_w = of_node(l, 0, &pdu, 0, 99);
        struct ledger_figure got_t = of_trial(l, 2, &rapl, 0, 100);
        assert_true(got_j.total.j == want_j.total.j && got_w.total.j == want_w.total.j && got_t.j == want_t.j);
        assert_true(got_j.trials_j == want_j.trials_j && got_j.other_j == want_j.other_j);
        assert_true(got_j.total.error_j == want_j.total.error_j && got_t.error_j == want_t.error_j);
    }
}

static void readings_that_come_twice_count_once(void **state)
{
    (void)state;
    LEDGER(l);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5; i++) {
            joules(l, &rapl, i, i + 1, 10);
            watts(l, i, 10);
            busy(l, 0, i, i + 1, 1);
            used(l, 0, 1, i, i + 1, 0.5);
        }
    NEAR(of_node(l, 0, &rapl, 0, 5).total.j, 50);
    assert_int_equal(of_node(l, 0, &rapl, 0, 5).total.intervals, 5);
    NEAR(of_node(l, 0, &pdu, 0, 4).total.j, 40);
    NEAR(of_trial(l, 1, &rapl, 0, 5).j, 25);
}

static void two_helpers_of_one_machine_count_once(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++) {
        joules(l, &rapl, i, i + 1, 10);
        joules(l, &rapl, i + 0.4, i + 1.4, 10);
    }
    struct ledger_node x = of_node(l, 0, &rapl, 0, 10);
    NEAR(x.total.j, 100);
    assert_int_equal(x.total.intervals, 10);
}

static void clocks_that_differ_by_little_lose_no_reading(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 100; i++)
        joules(l, &rapl, i + (i % 3) * 0.001 - 0.002, i + 1 - (i % 2) * 0.001, 10);
    struct ledger_node x = of_node(l, 0, &rapl, -1, 101);
    NEAR(x.total.j, 1000);
    assert_int_equal(x.total.intervals, 100);
}

static void readings_without_sense_are_passed_over(void **state)
{
    (void)state;
    LEDGER(l);
    take(l, 0, &rapl, METER_OK, 1, 0, 10, 0);
    take(l, 0, &rapl, METER_OK, 1, 1, 10, 0);
    take(l, 0, &rapl, METER_OK, 0, 1, -10, 0);
    take(l, 0, &rapl, METER_OK, 0, 1, NAN, 0);
    take(l, 0, &rapl, METER_OK, 0, 1, INFINITY, 0);
    take(l, 0, &rapl, METER_OK, NAN, 1, 10, 0);
    take(l, 0, &rapl, METER_OK, 0, INFINITY, 10, 0);
    take(l, -1, &rapl, METER_OK, 0, 1, 10, 0);
    take(l, 0, &pdu, METER_OK, 1, NAN, 10, 0);
    used(l, 0, 1, 0, 1, -1);
    used(l, -1, 1, 0, 1, 1);
    assert_false(ledger_has(l, 0, &rapl));
    assert_false(ledger_has(l, 0, &pdu));
    assert_int_equal(ledger_nodes(l), 0);
    assert_true(isnan(of_trial(l, 1, &rapl, 0, 1).coverage));
}

static void nodes_and_meters_are_those_that_were_read(void **state)
{
    (void)state;
    LEDGER(l);
    busy(l, 7, 0, 1, 1);
    take(l, 8, &rapl, METER_FIRST, 0, 1, NAN, NAN);
    assert_int_equal(ledger_nodes(l), 0);
    take(l, 4, &rapl, METER_OK, 0, 1, 10, 0);
    take(l, 2, &pdu, METER_OK, 0, 0, 10, 0);
    assert_int_equal(ledger_nodes(l), 5);
    assert_true(ledger_has(l, 4, &rapl) && ledger_has(l, 2, &pdu));
    assert_true(ledger_knows(l, 4, &rapl) && ledger_knows(l, 2, &pdu));
    assert_false(ledger_has(l, 2, &rapl) || ledger_knows(l, 2, &rapl));
    assert_false(ledger_has(l, 7, &cpus) || ledger_knows(l, 7, &cpus) || ledger_knows(l, 8, &rapl));
}

static void a_meter_of_which_all_was_lost_is_known_and_has_nothing(void **state)
{
    (void)state;
    LEDGER(l);
    take(l, 6, &rapl, METER_FAILED, 0, 1, NAN, NAN);
    take(l, 6, &rapl, METER_DISCARDED, 1, 2, NAN, NAN);
    assert_int_equal(ledger_nodes(l), 7);
    assert_false(ledger_has(l, 6, &rapl));
    assert_true(ledger_knows(l, 6, &rapl));
    struct ledger_figure f = of_node(l, 6, &rapl, 0, 2).total;
    assert_int_equal(f.source, LEDGER_ABSENT);
    assert_int_equal(f.discarded, 2);
    assert_true(isnan(f.j) && isnan(f.coverage));
}

/* --- the baseline --- */

static void a_given_baseline_is_taken(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 50);
    joules(l, &rapl, 1, 2, 30);
    assert_int_equal(ledger_idle(l, -1, &rapl, 20), 0);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 2);
    NEAR(x.idle_j, 40);
    NEAR(x.idle_w, 20);
    assert_true(x.idle_given);
    assert_int_equal(ledger_idle(l, 0, &rapl, 40), 0); /* a node's own */
    x = of_node(l, 0, &rapl, 0, 2);
    NEAR(x.idle_j, 40 + 30); /* at most all */
    sums_up(&x, __LINE__);
    assert_int_equal(ledger_idle(l, 0, &rapl, NAN), 0);
    NEAR(of_node(l, 0, &rapl, 0, 2).idle_w, 20);
    assert_int_equal(ledger_idle(l, -1, &rapl, NAN), 0);
    assert_true(isnan(of_node(l, 0, &rapl, 0, 2).idle_w));
    assert_int_equal(ledger_idle(l, 3, &rapl, 10), 0); /* of others */
    assert_int_equal(ledger_idle(l, 0, &pdu, 10), 0);
    assert_true(isnan(of_node(l, 0, &rapl, 0, 2).idle_w));
}

/* 20 s of which the CPUs are idle from `from` to `to`, then take 10 W (11 W in the first second), else 50 W. */
static void some_idle(struct ledger *l, int from, int to)
{
    for (int i = 0; i < 20; i++) {
        bool idle = i >= from && i < to;
        joules(l, &rapl, i, i + 1, !idle ? 50 : i == from ? 11 : 10);
        busy(l, 0, i, i + 1, idle ? 0.04 : 2);
    }
}

static void the_least_power_of_an_idle_stretch_is_the_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    some_idle(l, 8, 14);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 20);
    NEAR(x.idle_w, 10);
    NEAR(x.idle_j, 200);
    assert_false(x.idle_given);
    sums_up(&x, __LINE__);
}

static void too_short_a_stretch_is_no_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    some_idle(l, 8, 12);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 20);
    assert_true(isnan(x.idle_w));
    NEAR(x.idle_j, 0);
    sums_up(&x, __LINE__);
}

static void without_the_cpus_there_is_no_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 20; i++) {
        joules(l, &rapl, i, i + 1, 10);
        watts(l, i, 10);
    }
    assert_true(isnan(of_node(l, 0, &rapl, 0, 20).idle_w));
    for (int i = 0; i < 20; i++)
        busy(l, 0, i, i + 1, 0);
    NEAR(of_node(l, 0, &rapl, 0, 20).idle_w, 10); /* they came late */
    NEAR(of_node(l, 0, &pdu, 0, 20).idle_w, 10);
}

static void a_stretch_with_a_hole_is_no_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 30; i++) {
        if (i % 4 != 3)
            joules(l, &rapl, i, i + 1, 10);
        if (i % 5 < 2 || i > 28)
            watts(l, i / 5.0 + (i % 5) * 0.5 + i / 5 * 4, 10);
        busy(l, 0, i, i + 1, 0);
    }
    assert_true(isnan(of_node(l, 0, &rapl, 0, 30).idle_w));
}

static void neighbours_that_are_none_any_more_make_no_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    busy(l, 0, 0, 100, 0);
    for (int i = 0; i <= 2; i++)
        watts(l, 10 * i, 10);
    NEAR(of_node(l, 0, &pdu, 0, 20).idle_w, 10);
    for (int i = 21; i < 60; i++)
        watts(l, i, 20);
    NEAR(of_node(l, 0, &pdu, 0, 60).idle_w, 19); /* every second: 10 s were holes */
}

static void neighbours_that_became_such_make_a_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    busy(l, 0, 0, 200, 0);
    for (int i = 0; i < 20; i++)
        watts(l, i, 20);
    watts(l, 30, 10);
    watts(l, 40, 10);
    NEAR(of_node(l, 0, &pdu, 0, 40).idle_w, 20); /* these look like holes */
    for (int i = 5; i <= 8; i++)
        watts(l, 10 * i, 15);
    NEAR(of_node(l, 0, &pdu, 0, 80).idle_w, 10);
}

static void the_baseline_follows_what_comes_live_or_late(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 60; i++) {
        joules(l, &rapl, i, i + 1, i < 30 ? 20 : 15);
        if (i < 40 || i >= 50)
            busy(l, 0, i, i + 1, i < 30 || i >= 40 ? 0 : 2);
        (void)of_node(l, 0, &rapl, 0, 60);
    }
    NEAR(of_node(l, 0, &rapl, 0, 60).idle_w, 15);
    take(l, 0, &rapl, METER_OK, -9, -1, 80, 0);
    busy(l, 0, -10, 0, 0.1);
    NEAR(of_node(l, 0, &rapl, 0, 60).idle_w, 10); /* one interval is long enough */
}

/* --- dividing --- */

static void a_trial_alone_has_all_above_the_baseline(void **state)
{
    (void)state;
    LEDGER(l);
    (void)ledger_idle(l, 0, &rapl, 20);
    for (int i = 0; i < 10; i++) {
        take(l, 0, &rapl, METER_OK, i, i + 1, 50, 0.3);
        busy(l, 0, i, i + 1, 2);
        used(l, 0, 5, i, i + 1, 2);
    }
    struct ledger_figure t = of_trial(l, 5, &rapl, 0, 10);
    NEAR(t.j, 300);
    NEAR(t.error_j, 3);
    NEAR(t.coverage, 1);
    assert_int_equal(t.intervals, 10);
    assert_int_equal(t.source, LEDGER_ATTRIBUTED);
    assert_ptr_equal(t.meter, &rapl);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 10);
    NEAR(x.trials_j, 300);
    NEAR(x.other_j, 0);
    sums_up(&x, __LINE__);
}

static void two_trials_in_parallel_share_by_cpu_time_with_all_others(void **state)
{
    (void)state;
    LEDGER(l);
    (void)ledger_idle(l, 0, &rapl, 20);
    for (int i = 0; i < 10; i++) {
        joules(l, &rapl, i, i + 1, 60);
        busy(l, 0, i, i + 1, 4);
        used(l, 0, 1, i, i + 1, 1);
        used(l, 0, 2, i, i + 1, 2);
    }
    NEAR(of_trial(l, 1, &rapl, 0, 10).j, 100);
    NEAR(of_trial(l, 2, &rapl, 0, 10).j, 200);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 10);
    NEAR(x.idle_j, 200);
    NEAR(x.trials_j, 300);
    NEAR(x.other_j, 100);
}

static void where_trials_used_more_than_the_node_their_sum_divides(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 90);
    busy(l, 0, 0, 1, 2);
    used(l, 0, 1, 0, 1, 1);
    used(l, 0, 2, 0, 1, 2);
    NEAR(of_trial(l, 1, &rapl, 0, 1).j, 30);
    NEAR(of_trial(l, 2, &rapl, 0, 1).j, 60);
    NEAR(of_node(l, 0, &rapl, 0, 1).other_j, 0);
}

static void cpu_times_are_interpolated_over_each_interval(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 40);
    joules(l, &rapl, 1, 2, 80);
    busy(l, 0, -0.5, 0.5, 2);
    busy(l, 0, 0.5, 1.5, 4);
    busy(l, 0, 1.5, 2.5, 8);
    used(l, 0, 1, -1, 3, 4);
    /* The node was busy for 1 + 2 and 2 + 4 seconds, the trial for one in each. */
    NEAR(of_trial(l, 1, &rapl, 0, 1).j, 40.0 / 3);
    NEAR(of_trial(l, 1, &rapl, 1, 2).j, 80.0 / 6);
}

static void an_edge_loses_no_joules_of_a_trial(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 6; i++) {
        joules(l, &rapl, i, i + 1, 50);
        busy(l, 0, i, i + 1, 1);
    }
    for (int i = 0; i < 5; i++)
        used(l, 0, 1, i + 0.5, i + 1.5, 1);
    struct ledger_figure t = of_trial(l, 1, &rapl, 0.5, 5.5);
    NEAR(t.j, 250);
    NEAR(t.error_j, 0); /* none of its CPU time is beyond the edges */
    NEAR(of_node(l, 0, &rapl, 0, 6).trials_j, 250);
    NEAR(of_node(l, 0, &rapl, 0.5, 5.5).trials_j, 250);
    NEAR(of_trial(l, 1, &rapl, 0, 6).j, 250);
    NEAR(of_trial(l, 1, &rapl, 0.5, 3).j + of_trial(l, 1, &rapl, 3, 5.5).j, 250);
}

static void a_trials_joules_lie_where_its_cpu_time_lies(void **state)
{
    (void)state;
    LEDGER(l);
    (void)ledger_idle(l, 0, &rapl, 20);
    take(l, 0, &rapl, METER_OK, 0, 1, 50, 0.5);
    busy(l, 0, 0, 1, 2);
    used(l, 0, 1, 0.9, 1, 2); /* all that was busy, in the last tenth */
    NEAR(of_trial(l, 1, &rapl, 0.9, 1).j, 30);
    NEAR(of_trial(l, 1, &rapl, 0.95, 1).j, 15);
    NEAR(of_trial(l, 1, &rapl, 0.95, 1).error_j, 15 + 0.5); /* of each half, between nothing and all */
    struct ledger_node before = of_node(l, 0, &rapl, 0, 0.9), x = of_node(l, 0, &rapl, 0.9, 1);
    NEAR(x.trials_j, 30);
    NEAR(x.idle_j, 2);
    NEAR(x.total.j, 32);
    sums_up(&x, __LINE__);
    sums_up(&before, __LINE__);
    NEAR(before.total.j, 18);
    NEAR(before.trials_j, 0);
    /* A tenth of the time may have had none, or what twice 50 W make of it: 10 J. */
    NEAR(x.total.error_j, 32 + 2 * 0.5);
}

static void powers_at_an_edge_and_cpu_time_that_differ_widen_the_error(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i <= 2; i++)
        watts(l, i, 100);
    busy(l, 0, 0, 2, 2);
    used(l, 0, 1, 0.5, 1, 1);
    NEAR(of_trial(l, 1, &pdu, 0.5, 1).j, 100);
    NEAR(of_trial(l, 1, &pdu, 0.5, 1).error_j, 50); /* by time it is half of the first second */
    NEAR(of_node(l, 0, &pdu, 0.5, 2).total.j, 200);
    NEAR(of_node(l, 0, &pdu, 0.5, 2).total.error_j, 50);
    NEAR(of_node(l, 0, &pdu, 0, 2).total.error_j, 0);
}

static void a_trial_tells_the_baseline_that_it_was_spared(void **state)
{
    (void)state;
    LEDGER(l);
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < 4; i++) {
            take(l, node, &rapl, METER_OK, i, i + 1, 50, 0);
            busy(l, node, i, i + 1, 2);
            used(l, node, 1, i, i + 1, 1);
            if (node == 1)
                used(l, node, 2, i, i + 1, 1);
        }
    assert_true(isnan(of_trial(l, 1, &rapl, 0, 4).idle_w));
    assert_true(isnan(of_node(l, 0, &rapl, 0, 4).total.idle_w));
    (void)ledger_idle(l, 1, &rapl, 20);
    NEAR(of_trial(l, 2, &rapl, 0, 4).idle_w, 20);
    assert_true(isnan(of_trial(l, 1, &rapl, 0, 4).idle_w)); /* of node 0 it is not known */
    (void)ledger_idle(l, 0, &rapl, 10);
    NEAR(of_trial(l, 1, &rapl, 0, 4).idle_w, 30);
    (void)ledger_idle(l, 0, &rapl, 0);
    NEAR(of_trial(l, 1, &rapl, 0, 4).idle_w, 20);
}

static void powers_are_divided_as_joules_are(void **state)
{
    (void)state;
    LEDGER(l);
    (void)ledger_idle(l, 0, &pdu, 40);
    for (int i = 0; i <= 10; i++) {
        watts(l, i, 100);
        busy(l, 0, i, i + 1, 2);
        used(l, 0, 1, i, i + 1, 1);
    }
    NEAR(of_trial(l, 1, &pdu, 2, 9).j, 7 * 30);
    struct ledger_node x = of_node(l, 0, &pdu, 0, 10);
    NEAR(x.trials_j, 300);
    NEAR(x.idle_j, 400);
    sums_up(&x, __LINE__);
}

static void where_the_nodes_cpus_were_not_read_it_is_nobodys(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++) {
        joules(l, &rapl, i, i + 1, 40);
        if (i < 5)
            busy(l, 0, i, i + 1, 2);
        used(l, 0, 1, i, i + 1, 1);
    }
    busy(l, 0, 5.5, 6, 1); /* half of an interval: half of its joules are divided */
    struct ledger_figure t = of_trial(l, 1, &rapl, 0, 10);
    NEAR(t.j, 5 * 20 + 10);
    NEAR(t.coverage, 0.55);
    NEAR(t.error_j, 4.5 * 20); /* the rest, at its own highest power */
    struct ledger_node x = of_node(l, 0, &rapl, 0, 10);
    NEAR(x.total.coverage, 1);
    NEAR(x.trials_j, 110);
    NEAR(x.other_j, 400 - 110);
}

static void without_the_nodes_cpus_a_trials_share_is_absent(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 40);
    used(l, 0, 1, 0, 1, 1);
    assert_int_equal(of_trial(l, 1, &rapl, 0, 1).source, LEDGER_ABSENT);
    assert_true(isnan(of_trial(l, 1, &rapl, 0, 1).j));
    NEAR(of_node(l, 0, &rapl, 0, 1).other_j, 40);
}

static void where_nothing_was_busy_others_have_it(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 40);
    busy(l, 0, 0, 1, 0);
    used(l, 0, 1, 0, 1, 0);
    struct ledger_node x = of_node(l, 0, &rapl, 0, 1);
    NEAR(x.other_j, 40);
    NEAR(x.trials_j, 0);
    assert_int_equal(of_trial(l, 1, &rapl, 0, 1).source, LEDGER_ABSENT);
}

static void a_hole_in_a_trials_cpu_times_lowers_its_coverage(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++) {
        joules(l, &rapl, i, i + 1, 40);
        busy(l, 0, i, i + 1, 2);
        if (i < 3 || i > 6)
            used(l, 0, 1, i, i + 1, 2);
    }
    struct ledger_figure t = of_trial(l, 1, &rapl, 0, 10);
    NEAR(t.j, 240);
    NEAR(t.coverage, 0.6);
    NEAR(t.error_j, 160);
    t = of_trial(l, 1, &rapl, 4, 6); /* within the hole */
    assert_int_equal(t.source, LEDGER_ABSENT);
    assert_true(isnan(t.j) && isnan(t.coverage) && isnan(t.idle_w) && !t.meter);
}

static void epochs_sum_to_their_trial(void **state)
{
    (void)state;
    LEDGER(l);
    struct rng rng = rng_seeded(3);
    (void)ledger_idle(l, 0, &rapl, 30);
    for (int i = 0; i < 100; i++) {
        joules(l, &rapl, i, i + 1, 25 + 50 * rng_unit(&rng));
        busy(l, 0, i + 0.3, i + 1.3, 4 * rng_unit(&rng));
        used(l, 0, 1, i + 0.1, i + 1.1, 2 * rng_unit(&rng));
        used(l, 0, 2, i + 0.6, i + 1.6, 2 * rng_unit(&rng));
    }
    double sum = 0, at = 5.2;
    while (at < 90) {
        double next = fmin(at + 0.1 + 9 * rng_unit(&rng), 90);
        sum += of_trial(l, 1, &rapl, at, next).j;
        at = next;
    }
    NEAR(sum, of_trial(l, 1, &rapl, 5.2, 90).j);
}

static void a_trial_over_two_nodes_has_both_shares(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++)
        for (int node = 1; node <= 2; node++) {
            if (node == 1 || i < 8)
                take(l, node, &rapl, METER_OK, i, i + 1, 40 * node, 0.5);
            busy(l, node, i, i + 1, 4);
            used(l, node, 9, i, i + 1, 1);
        }
    struct ledger_figure t = of_trial(l, 9, &rapl, 0, 10);
    NEAR(t.j, 100 + 8 * 20);
    NEAR(t.coverage, 0.8); /* the least covered node's */
    NEAR(t.error_j, (10 + 8) * 0.125 + 2 * 20);
    assert_int_equal(t.intervals, 18);
    assert_int_equal(t.source, LEDGER_ATTRIBUTED);
    /* CPU time where no such meter is: of that nothing is known. */
    used(l, 3, 9, 0, 10, 0);
    NEAR(of_trial(l, 9, &rapl, 0, 10).coverage, 0.8);
    used(l, 0, 9, 2, 3, 0.1);
    t = of_trial(l, 9, &rapl, 0, 10);
    NEAR(t.j, 260);
    NEAR(t.coverage, 0);
    assert_true(isnan(t.error_j));
}

static void a_node_whose_helper_was_away_all_the_while_is_not_forgotten(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 30; i++)
        for (int node = 0; node < 2; node++) {
            take(l, node, &rapl, METER_OK, i, i + 1, 40, 0);
            busy(l, node, i, i + 1, 1);
            if (node == 0 || i < 10 || i >= 20)
                used(l, node, 1, i, i + 1, 1);
        }
    NEAR(of_trial(l, 1, &rapl, 12, 18).coverage, 0);
    NEAR(of_trial(l, 1, &rapl, 12, 18).j, 240);
    NEAR(of_trial(l, 1, &rapl, 0, 10).coverage, 1);
}

static void a_trial_without_cpu_time_is_absent(void **state)
{
    (void)state;
    LEDGER(l);
    joules(l, &rapl, 0, 1, 40);
    busy(l, 0, 0, 1, 1);
    used(l, 0, 1, 0, 1, 1);
    assert_int_equal(of_trial(l, 2, &rapl, 0, 1).source, LEDGER_ABSENT);
    assert_int_equal(of_trial(l, 1, &rapl, 1, 2).source, LEDGER_ABSENT);
    assert_int_equal(of_trial(l, 1, &pdu, 0, 1).source, LEDGER_ABSENT);
    assert_int_equal(of_trial(l, 1, &rapl, 1, 0).source, LEDGER_ABSENT);
    assert_true(isnan(of_trial(l, 2, &rapl, 0, 1).j) && isnan(of_trial(l, 2, &rapl, 0, 1).error_j));
}

static void meters_are_never_added_and_a_model_stays_one(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i <= 4; i++) {
        joules(l, &rapl, i, i + 1, 40);
        joules(l, &model, i, i + 1, 60);
        watts(l, i, 90);
        busy(l, 0, i, i + 1, 1);
        used(l, 0, 1, i, i + 1, 1);
    }
    NEAR(of_node(l, 0, &rapl, 0, 4).total.j, 160);
    NEAR(of_node(l, 0, &model, 0, 4).total.j, 240);
    NEAR(of_node(l, 0, &pdu, 0, 4).total.j, 360);
    NEAR(of_trial(l, 1, &rapl, 0, 4).j, 160);
    NEAR(of_trial(l, 1, &model, 0, 4).j, 240);
    NEAR(of_trial(l, 1, &pdu, 0, 4).j, 360);
    assert_int_equal(of_node(l, 0, &model, 0, 4).total.source, LEDGER_ESTIMATED);
    assert_int_equal(of_trial(l, 1, &model, 0, 4).source, LEDGER_ESTIMATED);
}

enum { TRIALS = 5, STEPS = 300 };

/* Five trials, each for a while, on a node whose meters and helper miss a reading now and then; ends[]: moments at which readings of
 * both meters end and begin. */
static void make_busy_node(struct ledger *l, struct rng *rng, double ends[STEPS])
{
    double at = 0;
    for (int i = 0; i < STEPS; i++) {
        double from = at;
        at = (round(1000 * from) + 900 + floor(200 * rng_unit(rng))) / 1000;
        ends[i] = at;
        if (rng_unit(rng) < 0.95)
            joules(l, &rapl, from, at, 30 + 70 * rng_unit(rng));
        if (rng_unit(rng) < 0.9)
            watts(l, at, 30 + 70 * rng_unit(rng));
        if (rng_unit(rng) < 0.9)
            busy(l, 0, from + 0.01, at + 0.01, 8 * rng_unit(rng));
        for (int t = 1; t <= TRIALS; t++)
            if (i > 40 * t && i < 40 * t + 100)
                used(l, 0, t, from + 0.1 * t, at + 0.1 * t, 3 * rng_unit(rng));
    }
}

static double sum_of_trials(struct ledger *l, const struct meter_ops *meter, double from, double to)
{
    double sum = 0;
    for (int t = 1; t <= TRIALS; t++) {
        struct ledger_figure f = of_trial(l, t, meter, from, to);
        sum += isnan(f.j) ? 0 : f.j;
        assert_true(isnan(f.j) ? isnan(f.coverage) : f.coverage >= 0 && f.coverage <= 1);
        assert_int_equal(f.source, isnan(f.j) ? LEDGER_ABSENT : LEDGER_ATTRIBUTED);
    }
    return sum;
}

static void trials_idle_and_others_make_the_node(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        LEDGER(l);
        struct rng rng = rng_seeded(seed);
        double ends[STEPS];
        (void)ledger_idle(l, -1, seed % 2 ? &rapl : &pdu, 40);
        make_busy_node(l, &rng, ends);
        for (int i = 0; i < 50; i++) {
            uint64_t first = rng_below(&rng, STEPS - 60), last = first + 1 + rng_below(&rng, 59);
            struct ledger_node x = of_node(l, 0, &rapl, ends[first], ends[last]);
            if (!isnan(x.total.j)) {
                sums_up(&x, __LINE__);
                NEAR(sum_of_trials(l, &rapl, ends[first], ends[last]), x.trials_j);
            }
            /* The same where edges cut. */
            double from = ends[first] + rng_unit(&rng), to = ends[last] + rng_unit(&rng);
            x = of_node(l, 0, &pdu, from, to);
            if (!isnan(x.total.j)) {
                sums_up(&x, __LINE__);
                NEAR(sum_of_trials(l, &pdu, from, to), x.trials_j);
            }
        }
    }
}

/* --- the error really bounds: a load that is known to the millisecond, and what meters make of it --- */

enum { LOAD_MS = 120000 };

struct load {
    double w[LOAD_MS];
    double before_j[LOAD_MS + 1];
};

static void make_load(struct load *x, struct rng *rng, double shortest_s, double longest_s)
{
    int left = 0;
    double w = 60;
    for (int i = 0; i < LOAD_MS; i++) {
        if (left-- == 0) {
            w = 50 + 200 * rng_unit(rng);
            left = (int)(1000 * (shortest_s + (longest_s - shortest_s) * rng_unit(rng)));
        }
        x->w[i] = w;
        x->before_j[i + 1] = x->before_j[i] + w / 1000;
    }
}

static double true_j(const struct load *x, int from, int to)
{
    return x->before_j[to] - x->before_j[from];
}

/* A counter in steps of 15.3 µJ, read about once a second; an outage of a third of all where asked for. */
static void read_counter(struct ledger *l, const struct load *x, struct rng *rng, bool outage)
{
    const double step = 0x1p-16;
    for (int from = 0, to; from < LOAD_MS; from = to) {
        to = from + 950 + (int)(100 * rng_unit(rng));
        to = to > LOAD_MS ? LOAD_MS : to;
        double j = step * (floor(x->before_j[to] / step) - floor(x->before_j[from] / step));
        if (!outage || from < LOAD_MS / 3 || from > 2 * LOAD_MS / 3)
            take(l, 0, &rapl, METER_OK, from / 1000.0, to / 1000.0, j, step);
    }
}

/* An outlet that tells whole watts, about once a second. */
static void read_outlet(struct ledger *l, const struct load *x, struct rng *rng, bool outage)
{
    for (int at = 0; at < LOAD_MS; at += 950 + (int)(100 * rng_unit(rng)))
        if (!outage || at < LOAD_MS / 3 || at > 2 * LOAD_MS / 3)
            take(l, 0, &pdu, METER_OK, at / 1000.0, at / 1000.0, round(x->w[at]), 0.5);
}

/* CPU time that has nothing to do with the load, in pieces of less than an interval: where edges cut, joules go with it. */
static void read_cpus(struct ledger *l, struct rng *rng)
{
    for (int at = 0; at < LOAD_MS; at += 300) {
        busy(l, 0, at / 1000.0, (at + 300) / 1000.0, rng_unit(rng));
        if (rng_unit(rng) < 0.5)
            used(l, 0, 1 + at / 30000, at / 1000.0, (at + 300) / 1000.0, rng_unit(rng));
    }
}

static void check_bound(struct ledger *l, const struct load *x, const struct meter_ops *meter, int from, int to,
                        bool outage)
{
    struct ledger_figure f = of_node(l, 0, meter, from / 1000.0, to / 1000.0).total;
    if (isnan(f.j)) {
        assert_true(outage || from > LOAD_MS - 1100);
        return;
    }
    double want = true_j(x, from, to);
    if (!(fabs(f.j - want) <= f.error_j + 1e-9))
        fail_msg("%s from %d to %d ms: %.6f J ± %.6f, and %.6f is true", meter->name, from, to, f.j, f.error_j, want);
    if (outage && from < LOAD_MS / 3 - 2000 && to > 2 * LOAD_MS / 3 + 2000)
        assert_true(fabs((1 - f.coverage) * (to - from) - LOAD_MS / 3.0) < 2100);
    else if (!outage && to < LOAD_MS - 1100)
        NEAR(f.coverage, 1);
}

static void errors_bound(const struct meter_ops *meter, double shortest_s, double longest_s, bool outage)
{
    static struct load x;
    for (unsigned seed = 1; seed <= 8; seed++) {
        LEDGER(l);
        struct rng rng = rng_seeded(seed);
        make_load(&x, &rng, shortest_s, longest_s);
        if (meter == &rapl)
            read_counter(l, &x, &rng, outage);
        else
            read_outlet(l, &x, &rng, outage);
        if (seed % 2)
            read_cpus(l, &rng);
        for (int i = 0; i < 400; i++) {
            int from = (int)(rng_unit(&rng) * (LOAD_MS - 10)), length = i % 3 ? 10000 : LOAD_MS;
            int to = from + 1 + (int)(rng_unit(&rng) * length);
            check_bound(l, &x, meter, from, to > LOAD_MS ? LOAD_MS : to, outage);
        }
        check_bound(l, &x, meter, 0, LOAD_MS, outage);
    }
}

static void the_error_bounds_what_a_counter_misses(void **state)
{
    (void)state;
    errors_bound(&rapl, 0.05, 3, false);
    errors_bound(&rapl, 2, 20, false);
}

static void the_error_bounds_what_an_outlet_misses(void **state)
{
    (void)state;
    errors_bound(&pdu, 1.1, 5, false); /* at most one step between two readings */
    errors_bound(&pdu, 5, 30, false);
}

static void the_error_bounds_an_outage(void **state)
{
    (void)state;
    errors_bound(&rapl, 0.5, 5, true);
    errors_bound(&pdu, 1.1, 5, true);
}

static void the_error_of_a_steady_load_is_small(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 60; i++) {
        take(l, 0, &rapl, METER_OK, i, i + 1, 100, 0x1p-16);
        take(l, 0, &pdu, METER_OK, i, i, 100, 0.5);
    }
    assert_true(of_node(l, 0, &rapl, 10, 50).total.error_j < 0.001);
    assert_true(of_node(l, 0, &rapl, 10.5, 49.5).total.error_j < 101);
    NEAR(of_node(l, 0, &pdu, 10.5, 49.5).total.error_j, 19.5);
}

/* --- power, and meters beside each other --- */

static void the_mean_power_needs_a_window_that_is_covered(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 10; i++) {
        joules(l, &rapl, i, i + 1, 10 * i);
        watts(l, i, 100 + i);
    }
    NEAR(ledger_power_w(l, 0, &rapl, ms_of(3), ms_of(5)), 35);
    NEAR(ledger_power_w(l, 0, &rapl, ms_of(3.5), ms_of(4.5)), 35);
    NEAR(ledger_power_w(l, 0, &pdu, ms_of(3), ms_of(5)), 104);
    assert_true(isnan(ledger_power_w(l, 0, &rapl, ms_of(5), ms_of(11))));
    assert_true(isnan(ledger_power_w(l, 0, &rapl, ms_of(-1), ms_of(2))));
    assert_true(isnan(ledger_power_w(l, 0, &pdu, ms_of(8), ms_of(10))));
    assert_true(isnan(ledger_power_w(l, 1, &rapl, ms_of(3), ms_of(5))));
    assert_true(isnan(ledger_power_w(l, 0, &rapl, ms_of(5), ms_of(5))));
    assert_true(isnan(ledger_power_w(l, 0, &rapl, ms_of(5), ms_of(3))));
}

static struct ledger_match match(struct ledger *l, int node)
{
    struct ledger_match out;
    assert_int_equal(ledger_match(l, node, &rapl, &pdu, &out), 0);
    return out;
}

static void two_meters_are_matched_over_the_time_that_both_cover(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 60; i++)
        if (i < 20 || i >= 30)
            joules(l, &rapl, i, i + 1, 50 + i);
    for (int i = 0; i <= 40; i++)
        watts(l, 10.25 + i, 1.2 * (50 + 10.25 + i - 0.5));
    struct ledger_match m = match(l, 0);
    NEAR(m.seconds, 40 - 10);
    assert_true(fabs(m.ratio - 1.2) < 0.001);
    assert_true(fabs(m.drift - 1) < 0.005);
}

static void a_ratio_that_changes_is_a_drift(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 40; i++)
        joules(l, &rapl, i, i + 1, 50);
    for (int i = 0; i <= 40; i++)
        watts(l, i, i < 20 ? 60 : i == 20 ? 63 : 66);
    struct ledger_match m = match(l, 0);
    NEAR(m.seconds, 40);
    NEAR(m.ratio, 1.26);
    NEAR(m.drift, (66 * 20 - 1.5) / (60 * 20 + 1.5));
}

static void too_little_in_common_is_no_match(void **state)
{
    (void)state;
    LEDGER(l);
    for (int i = 0; i < 20; i++)
        joules(l, &rapl, i, i + 1, i < 10 ? 0 : 50);
    assert_true(isnan(match(l, 0).ratio) && isnan(match(l, 0).drift));
    NEAR(match(l, 0).seconds, 0);
    for (int i = 0; i < 10; i++)
        watts(l, i, 60);
    NEAR(match(l, 0).seconds, 9);
    assert_true(isnan(match(l, 0).ratio));
    watts(l, 10, 60);
    NEAR(match(l, 0).seconds, 10);
    assert_true(isnan(match(l, 0).ratio)); /* the counter stood still */
    watts(l, 11, 60);
    NEAR(match(l, 0).ratio, 660.0 / 50);
    assert_true(isnan(match(l, 0).drift));
    NEAR(match(l, 1).seconds, 0);
    for (int i = 20; i < 30; i++)
        take(l, 1, &rapl, METER_OK, i, i + 1, 50, 0);
    for (int i = 20; i < 30; i++)
        take(l, 1, &pdu, METER_OK, i, i, 60, 0);
    NEAR(match(l, 1).seconds, 9);
    assert_true(isnan(match(l, 1).ratio) && isnan(match(l, 1).drift));
}

/* --- memory --- */

static int fill(struct ledger *l, unsigned *taken)
{
    int rc = 0;
    for (int i = 0; i < 40 && rc == 0; i++) {
        struct meter_reading r = {
            .state = i % 9 == 8 ? METER_FAILED : METER_OK, .from_ms = ms_of(i), .to_ms = ms_of(i + 1), .value = 10
        };
        const struct meter_ops *const all[] = { &rapl, &pdu, &cpus };
        for (size_t m = 0; m < 3 && rc == 0; m++)
            rc = ledger_read(l, i % 4, all[m], &r);
        rc = rc < 0 ? rc : ledger_cpu(l, i % 3, i % 10, ms_of(i), ms_of(i + 1), 1);
        rc = rc < 0 ? rc : ledger_idle(l, i % 12, &rapl, 3);
        *taken += rc == 0;
    }
    return rc;
}

static void without_memory_nothing_is_taken_and_all_else_stays(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    unsigned least = 40;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        LEDGER(l);
        unsigned taken = 0;
        fault_arm(FAULT_ALLOC, nth);
        rc = fill(l, &taken);
        assert_int_equal(fault_disarm(), rc < 0);
        assert_true(rc == 0 || rc == -ENOMEM);
        least = taken < least ? taken : least;
        /* What was taken is there, and what was not can come again. */
        if (taken > 0)
            NEAR(of_node(l, 0, &rapl, 0, 1).total.j, 10);
        assert_int_equal(fill(l, &taken), 0);
        NEAR(of_node(l, 0, &rapl, 36, 37).total.j, 10);
        NEAR(of_node(l, 2, &rapl, 0, 40).total.j, 90);
    }
    assert_int_equal(least, 0);
    fault_arm(FAULT_ALLOC, 1);
    assert_null(ledger_new());
    fault_disarm();
    ledger_free(NULL);
}

static void sources_have_names(void **state)
{
    (void)state;
    assert_string_equal(ledger_source_name(LEDGER_ABSENT), "absent");
    assert_string_equal(ledger_source_name(LEDGER_MEASURED), "measured");
    assert_string_equal(ledger_source_name(LEDGER_ATTRIBUTED), "attributed");
    assert_string_equal(ledger_source_name(LEDGER_ESTIMATED), "estimated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_of_a_window_are_the_sum_of_its_readings),
        cmocka_unit_test(an_edge_takes_its_share_by_time_and_widens_the_error),
        cmocka_unit_test(an_edge_widens_the_meters_own_error),
        cmocka_unit_test(windows_that_touch_add_up),
        cmocka_unit_test(powers_are_integrated_over_their_true_times),
        cmocka_unit_test(a_power_meters_steps_widen_the_error),
        cmocka_unit_test(an_error_that_is_not_known_leaves_none_to_state),
        cmocka_unit_test(a_gap_lowers_the_coverage_widens_the_error_and_adds_nothing),
        cmocka_unit_test(powers_too_far_apart_make_a_hole),
        cmocka_unit_test(a_late_reading_closes_a_hole),
        cmocka_unit_test(the_usual_period_is_that_of_the_readings_nearby),
        cmocka_unit_test(readings_that_were_lost_often_are_holes_yet),
        cmocka_unit_test(a_few_long_steps_at_the_end_are_holes_until_they_are_usual),
        cmocka_unit_test(a_late_reading_changes_what_is_usual),
        cmocka_unit_test(what_no_reading_covers_at_all_is_absent),
        cmocka_unit_test(readings_without_a_value_are_counted_where_they_were_lost),
        cmocka_unit_test(readings_come_in_any_order),
        cmocka_unit_test(readings_that_come_twice_count_once),
        cmocka_unit_test(two_helpers_of_one_machine_count_once),
        cmocka_unit_test(clocks_that_differ_by_little_lose_no_reading),
        cmocka_unit_test(readings_without_sense_are_passed_over),
        cmocka_unit_test(nodes_and_meters_are_those_that_were_read),
        cmocka_unit_test(a_meter_of_which_all_was_lost_is_known_and_has_nothing),
        cmocka_unit_test(a_given_baseline_is_taken),
        cmocka_unit_test(the_least_power_of_an_idle_stretch_is_the_baseline),
        cmocka_unit_test(too_short_a_stretch_is_no_baseline),
        cmocka_unit_test(without_the_cpus_there_is_no_baseline),
        cmocka_unit_test(a_stretch_with_a_hole_is_no_baseline),
        cmocka_unit_test(neighbours_that_are_none_any_more_make_no_baseline),
        cmocka_unit_test(neighbours_that_became_such_make_a_baseline),
        cmocka_unit_test(the_baseline_follows_what_comes_live_or_late),
        cmocka_unit_test(a_trial_alone_has_all_above_the_baseline),
        cmocka_unit_test(two_trials_in_parallel_share_by_cpu_time_with_all_others),
        cmocka_unit_test(where_trials_used_more_than_the_node_their_sum_divides),
        cmocka_unit_test(cpu_times_are_interpolated_over_each_interval),
        cmocka_unit_test(an_edge_loses_no_joules_of_a_trial),
        cmocka_unit_test(a_trials_joules_lie_where_its_cpu_time_lies),
        cmocka_unit_test(powers_at_an_edge_and_cpu_time_that_differ_widen_the_error),
        cmocka_unit_test(a_trial_tells_the_baseline_that_it_was_spared),
        cmocka_unit_test(powers_are_divided_as_joules_are),
        cmocka_unit_test(where_the_nodes_cpus_were_not_read_it_is_nobodys),
        cmocka_unit_test(without_the_nodes_cpus_a_trials_share_is_absent),
        cmocka_unit_test(where_nothing_was_busy_others_have_it),
        cmocka_unit_test(a_hole_in_a_trials_cpu_times_lowers_its_coverage),
        cmocka_unit_test(epochs_sum_to_their_trial),
        cmocka_unit_test(a_trial_over_two_nodes_has_both_shares),
        cmocka_unit_test(a_node_whose_helper_was_away_all_the_while_is_not_forgotten),
        cmocka_unit_test(a_trial_without_cpu_time_is_absent),
        cmocka_unit_test(meters_are_never_added_and_a_model_stays_one),
        cmocka_unit_test(trials_idle_and_others_make_the_node),
        cmocka_unit_test(the_error_bounds_what_a_counter_misses),
        cmocka_unit_test(the_error_bounds_what_an_outlet_misses),
        cmocka_unit_test(the_error_bounds_an_outage),
        cmocka_unit_test(the_error_of_a_steady_load_is_small),
        cmocka_unit_test(the_mean_power_needs_a_window_that_is_covered),
        cmocka_unit_test(two_meters_are_matched_over_the_time_that_both_cover),
        cmocka_unit_test(a_ratio_that_changes_is_a_drift),
        cmocka_unit_test(too_little_in_common_is_no_match),
        cmocka_unit_test(without_memory_nothing_is_taken_and_all_else_stays),
        cmocka_unit_test(sources_have_names),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
