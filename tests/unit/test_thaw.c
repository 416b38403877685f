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
#include "search/thaw.h"
#include "tests/fault.h"

enum { EPOCHS = 20 };

static struct space parsed(const char *hyper)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    buf_printf(&b, "{\"hyperParameters\": %s}", hyper);
    if (json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        fail_msg("%s: %s", hyper, e.text);
    return s;
}

static const struct search_cfg cfg = { .seed = 3, .epochs = EPOCHS, .min_epochs = 1, .can_pause = true };
static const char *const two = "{\"x\": {\"min\": 0.0, \"max\": 1.0}, \"y\": {\"min\": 0.0, \"max\": 1.0}}";

/* Best at x = 0.7; y is of no matter. */
static double value_at(const struct point *p, int epoch)
{
    return 1 - exp(-8 * (p->x[0] - 0.7) * (p->x[0] - 0.7)) * (1 - exp(-epoch / 6.0));
}

static void tell(struct thaw *t, uint64_t id, const struct point *p, int epoch, enum told_kind kind, double seconds)
{
    struct told told = { .id = id, .kind = kind, .epoch = epoch, .value = value_at(p, epoch), .seconds = seconds };
    assert_int_equal(thaw_tell(t, &told), 0);
}

static double y_max = 1;

/* `n` trials, some epochs of each, told, then paused; cost_of: seconds of an epoch. NULL: unknown. */
static void teach(struct thaw *t, int n, double (*cost_of)(const struct point *p))
{
    struct rng r = rng_seeded(8);
    for (int i = 0; i < n; i++) {
        struct point p = { { rng_unit(&r), y_max * rng_unit(&r) } };
        double cost = cost_of ? cost_of(&p) : (double)NAN;
        assert_int_equal(thaw_add(t, (uint64_t)i, &p), 0);
        for (int epoch = 1; epoch <= 1 + i % 4 * 2; epoch++)
            tell(t, (uint64_t)i, &p, epoch, TOLD_EPOCH, cost * epoch);
        thaw_pause(t, (uint64_t)i);
    }
}

static double taught_x(uint64_t id)
{
    struct rng r = rng_seeded(8);
    double x = rng_unit(&r);
    for (; id > 0; id--) {
        (void)rng_unit(&r);
        x = rng_unit(&r);
    }
    return x;
}

static struct thaw *taught(const struct space *sp, int n, double (*cost_of)(const struct point *p))
{
    struct thaw *t = NULL;
    assert_int_equal(thaw_new(&t, sp, &cfg), 0);
    thaw_set_stepwise(t);
    teach(t, n, cost_of);
    return t;
}

static void test_curves_are_looked_at_step_by_step(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 0, NULL);
    for (int epoch = 1, want[] = { 1, 3, 9, 20 }, i = 0; epoch <= EPOCHS; epoch++) {
        assert_int_equal(thaw_is_step(t, epoch), epoch == want[i]);
        i += epoch == want[i];
    }
    assert_false(thaw_is_taught(t));
    thaw_free(t);
    space_done(&sp);
}

/* What going on with the best paused trial is worth, when an epoch takes 10 s and a start so long; NAN: it was not told. */
static double worth_with_start(const struct space *sp, double start_s)
{
    struct thaw *t = NULL;
    struct rng r = rng_seeded(8);
    uint64_t id;
    assert_int_equal(thaw_new(&t, sp, &cfg), 0);
    thaw_set_stepwise(t);
    for (uint64_t i = 0; i < 12; i++) {
        struct point p = { { rng_unit(&r), rng_unit(&r) } };
        assert_int_equal(thaw_add(t, i, &p), 0);
        for (int epoch = 1; epoch <= 2; epoch++) {
            struct told told = { .id = i,
                                 .kind = TOLD_EPOCH,
                                 .epoch = epoch,
                                 .value = value_at(&p, epoch),
                                 .seconds = 10 * epoch + 20,
                                 .start_seconds = start_s };
            assert_int_equal(thaw_tell(t, &told), 0);
        }
        thaw_pause(t, i);
    }
    double worth = thaw_best_paused(t, &id);
    thaw_free(t);
    return worth;
}

static void test_a_start_costs_what_was_measured(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    double unknown = worth_with_start(&sp, NAN), cheap = worth_with_start(&sp, 1), dear = worth_with_start(&sp, 40);
    if (!(cheap > unknown && unknown > dear)) /* unknown: the first epoch took 20 s longer */
        fail_msg("worth %g with a start of 1 s, %g of one that was not told, %g of 40 s", cheap, unknown, dear);
    assert_true(worth_with_start(&sp, 20) == unknown);
    space_done(&sp);
}

static void test_the_next_point_is_where_it_was_good(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 24, NULL);
    struct point p;
    assert_true(thaw_is_taught(t));
    assert_int_equal(thaw_suppose(t, THAW_NO_ID), 0);
    assert_true(thaw_best_fresh(t, &p) > thaw_usual_fresh(t));
    thaw_unsuppose(t);
    if (fabs(p.x[0] - 0.7) > 0.2)
        fail_msg("x is %g", p.x[0]);
    thaw_free(t);
    space_done(&sp);
}

static void test_the_best_paused_trial_is_a_good_one(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 24, NULL);
    uint64_t id = 99;
    double worth = thaw_best_paused(t, &id);
    assert_true(id < 24 && worth == thaw_worth(t, id));
    struct thaw_view v = thaw_view(t, id);
    struct point p = { { taught_x(id) } };
    if (!(fabs(p.x[0] - 0.7) < 0.15 && v.value == value_at(&p, v.epoch) && v.best <= v.value))
        fail_msg("trial %d: x is %g, %g after %d, best %g", (int)id, p.x[0], v.value, v.epoch, v.best);
    thaw_free(t);
    space_done(&sp);
}

static void test_a_paused_one_goes_on_where_nothing_can_be_new(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 24, NULL);
    uint64_t id = THAW_NO_ID;
    size_t n = 0;
    for (; thaw_choose(t, -INFINITY, &id); n++) {
        assert_true(id < 24 && !thaw_is_running(t, id));
        thaw_go_on(t, id);
    }
    assert_int_equal(n, 24);
    assert_true(thaw_choose(t, -3, &id));
    assert_true(id == THAW_NO_ID);
    thaw_free(t);
    space_done(&sp);
}

/* Else several at once would all be the same point. */
static void test_what_runs_is_taken_to_come_as_expected(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 24, NULL);
    struct point first, second;
    double alone = thaw_best_fresh(t, &first);
    assert_int_equal(thaw_add(t, 24, &first), 0);
    double unsupposed = thaw_worth(t, 24);
    assert_int_equal(thaw_suppose(t, THAW_NO_ID), 0);
    double then = thaw_best_fresh(t, &second), supposed = thaw_worth(t, 24);
    thaw_unsuppose(t);
    assert_true(then < alone && supposed <= unsupposed);
    assert_true(thaw_worth(t, 24) == unsupposed);
    assert_true(memcmp(&first, &second, sizeof first) != 0);
    thaw_free(t);
    space_done(&sp);
}

static double dear_on_the_right(const struct point *p)
{
    return p->x[1] > 0.5 ? 100 : 1;
}

static void test_epochs_that_cost_more_must_bring_more(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 32, dear_on_the_right);
    struct point p;
    (void)thaw_best_fresh(t, &p);
    assert_true(p.x[1] <= 0.5);
    thaw_free(t);
    space_done(&sp);
}

static void test_where_trials_fail_is_learnt(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    y_max = 0.5;
    struct thaw *t = taught(&sp, 24, NULL);
    y_max = 1;
    int on_the_right = 0;
    for (uint64_t id = 24; id < 44; id++) { /* all that is right of the middle cannot run */
        struct point p;
        (void)thaw_best_fresh(t, &p);
        assert_int_equal(thaw_add(t, id, &p), 0);
        on_the_right += id >= 34 && p.x[1] > 0.5;
        tell(t, id, &p, 1, p.x[1] > 0.5 ? TOLD_INFEASIBLE : TOLD_FINISHED, NAN);
    }
    if (on_the_right > 3)
        fail_msg("%d of 10", on_the_right);
    thaw_free(t);
    space_done(&sp);
}

static void tell_value(struct thaw *t, uint64_t id, int epoch, enum told_kind kind, double value)
{
    struct told told = { .id = id, .kind = kind, .epoch = epoch, .value = value, .seconds = NAN };
    assert_int_equal(thaw_tell(t, &told), 0);
}

/* Of all other trials together, that they get better than the best, when the first six, far better at their end, turned out to be infeasible. */
static double chances_without_the_best(const struct space *sp, bool constrained)
{
    struct thaw *t = NULL;
    struct search_cfg own = cfg;
    double sum = 0;
    own.constrained = constrained;
    assert_int_equal(thaw_new(&t, sp, &own), 0);
    thaw_set_stepwise(t);
    for (uint64_t i = 0; i < 40; i++) {
        struct point p = { { i < 6 ? 1 : (double)i / 80, i < 6 ? (double)i / 6 : 0 } };
        assert_int_equal(thaw_add(t, i, &p), 0);
        for (int epoch = 1; epoch <= (i < 6 ? EPOCHS : 9); epoch++)
            tell_value(t, i, epoch, TOLD_EPOCH, (i < 6 ? 0 : 1) + 0.01 * (double)i);
        if (i < 6)
            tell_value(t, i, EPOCHS, TOLD_INFEASIBLE, NAN);
        else
            thaw_pause(t, i);
    }
    for (uint64_t i = 6; i < 40; i++)
        sum += thaw_chance(t, i);
    thaw_free(t);
    return sum;
}

static void test_what_breaks_a_constraint_is_no_best(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    double with = chances_without_the_best(&sp, false), without = chances_without_the_best(&sp, true);
    if (!(without > with))
        fail_msg("%g beside %g", without, with);
    space_done(&sp);
}

static void expect_same(const struct thaw *a, const struct thaw *b)
{
    struct point p, q;
    uint64_t i, k;
    assert_true(thaw_best_fresh(a, &p) == thaw_best_fresh(b, &q));
    assert_memory_equal(&p, &q, sizeof p);
    assert_true(thaw_best_paused(a, &i) == thaw_best_paused(b, &k));
    assert_int_equal(i, k);
}

static void test_a_restored_one_is_the_same_to_the_last_bit(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    for (int n = 1; n < 60; n += 7) {
        struct thaw *t = taught(&sp, n, NULL), *again = taught(&sp, 0, NULL);
        AUTO_BUF struct buf b = BUF_INIT;
        thaw_save(t, &b);
        struct unpack u = unpack_from(b.data, b.len);
        assert_int_equal(thaw_restore(again, &u), 0);
        assert_true(u.at == u.end);
        assert_int_equal(thaw_is_taught(again), thaw_is_taught(t));
        if (thaw_is_taught(t))
            expect_same(t, again);
        thaw_free(t);
        thaw_free(again);
    }
    space_done(&sp);
}

static void test_what_is_told_twice_counts_once(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 24, NULL), *other = taught(&sp, 24, NULL);
    struct point p = { { 0.5, 0.5 } };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(thaw_add(t, 24, &p), 0);
        tell(t, 24, &p, 1, TOLD_EPOCH, NAN);
    }
    assert_int_equal(thaw_add(other, 24, &p), 0);
    tell(other, 24, &p, 1, TOLD_EPOCH, NAN);
    assert_int_equal(thaw_trials(t), 25);
    expect_same(t, other);
    thaw_free(t);
    thaw_free(other);
    space_done(&sp);
}

static void test_more_values_than_fit_are_thinned(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *t = taught(&sp, 600, NULL);
    struct point p;
    (void)thaw_best_fresh(t, &p);
    assert_true(fabs(p.x[0] - 0.7) < 0.15);
    thaw_free(t);
    space_done(&sp);
}

static void test_memory_may_run_out(void **state)
{
    (void)state;
    struct space sp = parsed(two);
    struct thaw *calm = taught(&sp, 25, NULL);
    struct rng r = rng_seeded(8);
    struct thaw *t = taught(&sp, 0, NULL);
    for (int i = 0; i < 25; i++) {
        struct point p = { { rng_unit(&r), rng_unit(&r) } };
        int rc = -ENOMEM;
        for (unsigned nth = 1; rc < 0; nth++) {
            fault_arm(FAULT_ALLOC, nth);
            rc = thaw_add(t, (uint64_t)i, &p);
            for (int epoch = 1; rc == 0 && epoch <= 1 + i % 4 * 2; epoch++) {
                struct told told = {
                    .id = (uint64_t)i, .kind = TOLD_EPOCH, .epoch = epoch, .value = value_at(&p, epoch)
                };
                rc = thaw_tell(t, &told);
            }
            fault_disarm();
            assert_true(rc == 0 || rc == -ENOMEM);
        }
        thaw_pause(t, (uint64_t)i);
    }
    expect_same(calm, t);
    thaw_free(calm);
    thaw_free(t);
    space_done(&sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves_are_looked_at_step_by_step),
        cmocka_unit_test(test_a_start_costs_what_was_measured),
        cmocka_unit_test(test_the_next_point_is_where_it_was_good),
        cmocka_unit_test(test_the_best_paused_trial_is_a_good_one),
        cmocka_unit_test(test_a_paused_one_goes_on_where_nothing_can_be_new),
        cmocka_unit_test(test_what_runs_is_taken_to_come_as_expected),
        cmocka_unit_test(test_epochs_that_cost_more_must_bring_more),
        cmocka_unit_test(test_where_trials_fail_is_learnt),
        cmocka_unit_test(test_what_breaks_a_constraint_is_no_best),
        cmocka_unit_test(test_a_restored_one_is_the_same_to_the_last_bit),
        cmocka_unit_test(test_what_is_told_twice_counts_once),
        cmocka_unit_test(test_more_values_than_fit_are_thinned),
        cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
