#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/remaining.h"

static const struct {
    const char *name;
    double trials[4]; /* 0: no more */
    double left, used, at_once;
    bool known;
    double low, high; /* within 0.05 */
} by_trials[] = {
    { "none has ended", { 0 }, 5, 0, 1, false, 0, 0 },
    { "one says nothing of how they differ", { 60 }, 5, 0, 1, false, 0, 0 },
    { "all alike", { 60, 60, 60 }, 5, 0, 1, true, 300, 300 },
    { "two at once, one half done", { 60, 60 }, 4, 30, 2, true, 105, 105 },
    { "they differ", { 50, 60, 70 }, 3, 0, 1, true, 148.6, 211.4 },
    { "never below 0", { 1, 100 }, 1, 40, 1, true, 0, 120.4 },
    { "nothing is left", { 50, 60 }, 0, 0, 1, true, 0, 0 },
};

static void test_time_is_told_by_trials(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(by_trials); i++) {
        struct remaining_trials t = { 0 };
        struct remaining r = { 0, 0 };
        for (size_t k = 0; k < 4 && by_trials[i].trials[k] > 0; k++)
            remaining_add(&t, by_trials[i].trials[k]);
        bool known = remaining_by_trials(&t, by_trials[i].left, by_trials[i].used, by_trials[i].at_once, &r);
        if (known != by_trials[i].known || fabs(r.low_s - by_trials[i].low) > 0.05 ||
            fabs(r.high_s - by_trials[i].high) > 0.05)
            fail_msg("%s: got %d, %g to %g", by_trials[i].name, known, r.low_s, r.high_s);
    }
}

static void test_time_is_told_by_epochs(void **state)
{
    (void)state;
    double seconds[REMAINING_EPOCHS_MAX];
    struct remaining r = { 0, 0 };
    for (size_t i = 0; i < REMAINING_EPOCHS_MAX; i++)
        seconds[i] = i % 2 ? 2 : 1;
    assert_false(remaining_by_epochs(seconds, REMAINING_EPOCHS_MIN - 1, 10, 1, &r));
    assert_true(remaining_by_epochs(seconds, REMAINING_EPOCHS_MAX, 10, 2, &r));
    assert_true(r.low_s == 5 && r.high_s == 10);
    seconds[0] = 1000; /* one that is out of the ordinary */
    assert_true(remaining_by_epochs(seconds, REMAINING_EPOCHS_MAX, 10, 2, &r) && r.high_s == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_told_by_trials),
        cmocka_unit_test(test_time_is_told_by_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
