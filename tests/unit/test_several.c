#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "search/several.h"
#include "tests/fault.h"

enum { EPOCHS = 4 };

static const struct goals goals = { .n = 2,
                                    .v = { { .name = "accuracy", .kind = GOAL_METRIC, .maximise = true },
                                           { .name = "seconds", .kind = GOAL_SECONDS } } };

static struct several *new_one(void)
{
    struct search_cfg cfg = { .epochs = EPOCHS, .goals = &goals };
    struct several *s = NULL;
    assert_int_equal(several_new(&s, &cfg), 0);
    return s;
}

static struct told told_of(uint64_t id, int epoch, double accuracy, double seconds)
{
    return (struct told){ .id = id,
                          .kind = epoch == EPOCHS ? TOLD_FINISHED : TOLD_EPOCH,
                          .epoch = epoch,
                          .value = accuracy,
                          .seconds = seconds,
                          .joules = NAN };
}

static double tell(struct several *s, struct told t)
{
    struct told one;
    assert_int_equal(several_tell(s, &t, &one), 0);
    assert_int_equal(one.id, t.id);
    return one.value;
}

static const struct {
    const char *name;
    double accuracy, seconds; /* of the other one, at epoch 2, where this one has 0.5 and 10 */
    bool may_end;
} ends[] = {
    { "one that is better in all ends it", 0.9, 5, true },
    { "one that is better in the metric, and no dearer, ends it", 0.9, 10, true },
    { "one that is better but dearer does not", 0.9, 11, false },
    { "one that is cheaper but worse does not", 0.4, 5, false },
    { "one that is cheaper and as good does not: it may still get better", 0.5, 5, false },
    { "one that is better within the margin does not", 0.51, 5, false },
};

static void test_a_trial_ends_where_it_is_beaten_in_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct several *s = new_one();
        struct told t = told_of(1, 2, 0.5, 10);
        (void)tell(s, told_of(2, 2, 0.1, 40)); /* metrics range from 0.1 to 0.9: the margin is 0.02 or 0.04 */
        (void)tell(s, told_of(0, 2, ends[i].accuracy, ends[i].seconds));
        (void)tell(s, t);
        if (several_may_end(s, &t) != ends[i].may_end)
            fail_msg("%s: got %d", ends[i].name, !ends[i].may_end);
        several_free(s);
    }
    assert_true(several_may_end(NULL, &(struct told){ .id = 0 }));
}

static void test_a_trial_is_compared_at_its_own_epoch(void **state)
{
    (void)state;
    struct several *s = new_one();
    struct told t = told_of(1, 1, 0.5, 10);
    char why[SEARCH_WHY_MAX] = "";
    (void)tell(s, told_of(0, 2, 0.9, 12)); /* which it had not at epoch 1 */
    (void)tell(s, t);
    assert_false(several_may_end(s, &t));
    several_explain(s, &t, why);
    assert_string_equal(why, "");
    (void)tell(s, told_of(0, 1, 0.8, 6));
    assert_true(several_may_end(s, &t));
    several_explain(s, &t, why);
    assert_string_equal(why, "after 1 epoch trial 1 was better: accuracy 0.8, not 0.5, seconds 6, not 10");
    several_free(s);
}

static void test_who_could_not_be_trained_beats_nobody(void **state)
{
    (void)state;
    struct several *s = new_one();
    struct told t = told_of(1, 2, 0.5, 10), gone = told_of(0, 2, 0.9, 5);
    (void)tell(s, gone);
    (void)tell(s, t);
    assert_true(several_may_end(s, &t));
    gone.kind = TOLD_INFEASIBLE;
    assert_true(isnan(tell(s, gone)));
    assert_true(several_is_bad(s, 0));
    assert_false(several_may_end(s, &t));
    several_free(s);
}

static void test_trials_are_in_order_of_their_fronts(void **state)
{
    (void)state;
    struct several *s = new_one();
    size_t order[6];
    (void)tell(s, told_of(0, EPOCHS, 0.5, 30)); /* dominated by 2 */
    (void)tell(s, told_of(1, EPOCHS, 0.9, 40));
    (void)tell(s, told_of(2, EPOCHS, 0.6, 10));
    (void)tell(s, told_of(3, 2, NAN, 4)); /* it has told no metric */
    struct told bad = told_of(4, EPOCHS, 1, 1);
    bad.kind = TOLD_FAILED;
    (void)tell(s, bad);
    assert_int_equal(several_order(s, 6, order), 3);
    assert_int_equal(order[2], 0);
    assert_int_equal(order[3], 3);
    assert_int_equal(order[5], 5); /* that was never told of */
    several_free(s);
}

static void test_seconds_are_those_of_a_whole_training(void **state)
{
    (void)state;
    struct several *s = new_one();
    double f[GOALS_MAX], g[GOALS_MAX];
    (void)tell(s, told_of(0, 1, 0.5, 10));
    (void)tell(s, told_of(1, 2, 0.5, 20));
    (void)tell(s, told_of(2, EPOCHS, 0.9, 400));
    assert_true(several_figures(s, 0, f) && several_figures(s, 1, g));
    assert_true(f[1] == g[1] && f[1] == 0);
    assert_true(several_figures(s, 2, f));
    assert_true(f[1] == 1 && f[0] == 0);
    several_free(s);
}

/* Better in all is a smaller number, whatever the scales. */
static void test_the_one_number_keeps_dominance(void **state)
{
    (void)state;
    struct several *s = new_one();
    (void)tell(s, told_of(0, EPOCHS, 0.9, 1000));
    (void)tell(s, told_of(1, EPOCHS, 0.2, 10));
    double better = tell(s, told_of(2, EPOCHS, 0.7, 100)), worse = tell(s, told_of(3, EPOCHS, 0.6, 150));
    assert_true(better < worse);
    several_free(s);
}

static void test_a_state_is_restored_as_it_was(void **state)
{
    (void)state;
    struct several *s = new_one(), *other = new_one();
    AUTO_BUF struct buf a = BUF_INIT;
    AUTO_BUF struct buf b = BUF_INIT;
    for (uint64_t i = 0; i < 20; i++)
        (void)tell(s, told_of(i % 7, 1 + (int)(i % EPOCHS), 0.1 * (double)(i % 5), (double)(i + 1)));
    several_save(s, &a);
    struct unpack u = unpack_from(a.data, a.len);
    assert_int_equal(several_restore(other, &u), 0);
    several_save(other, &b);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    struct told next = told_of(3, 2, 0.3, 9);
    double one = tell(s, next), two = tell(other, next);
    assert_true(one == two);
    several_free(s);
    several_free(other);
    for (size_t len = 0; len < a.len; len += 8) { /* cut short it is none */
        struct several *cut = new_one();
        struct unpack part = unpack_from(a.data, len);
        assert_int_equal(several_restore(cut, &part), -EPROTO);
        several_free(cut);
    }
}

static void test_memory_that_runs_out_changes_nothing(void **state)
{
    (void)state;
    for (unsigned nth = 1;; nth++) {
        struct several *s = new_one();
        struct told one, t = told_of(2, 1, 0.5, 10);
        fault_arm(FAULT_ALLOC, nth);
        int rc = several_tell(s, &t, &one);
        fault_disarm();
        double f[GOALS_MAX];
        assert_int_equal(several_figures(s, 2, f), rc == 0);
        several_free(s);
        if (rc == 0)
            break;
        assert_true(nth < 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trial_ends_where_it_is_beaten_in_all),
        cmocka_unit_test(test_a_trial_is_compared_at_its_own_epoch),
        cmocka_unit_test(test_who_could_not_be_trained_beats_nobody),
        cmocka_unit_test(test_trials_are_in_order_of_their_fronts),
        cmocka_unit_test(test_seconds_are_those_of_a_whole_training),
        cmocka_unit_test(test_the_one_number_keeps_dominance),
        cmocka_unit_test(test_a_state_is_restored_as_it_was),
        cmocka_unit_test(test_memory_that_runs_out_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
