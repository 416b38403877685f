/* The table of policies: whole rows, and machines that do what their module does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/policy.h"
#include "tests/fault.h"

static const struct tuner_space space = { .n_hot = 2, .n_cold = 1, .cores = { 2, 4 }, .memory = { 8 } };
static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

static void test_names_and_rows_are_the_same(void **state)
{
    (void)state;
    size_t n = 0;
    for (; policy_names[n]; n++) {
        assert_string_equal(policy_names[n], policies[n].name);
        assert_ptr_equal(policy_find(policy_names[n]), &policies[n]);
        assert_true(policies[n].help && *policies[n].help);
    }
    assert_null(policies[n].name);
    assert_null(policy_find("v3"));
    assert_null(policy_find(""));
}

static void test_what_each_policy_asks_of_a_run(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool joins_search, wide, shares, machine;
    } want[] = {
        { "v1", false, false, false, false },
        { "v2", true, false, false, false },
        { "paper", false, true, false, true },
        { "pipetune", false, true, true, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const struct policy *p = policy_find(want[i].name);
        assert_non_null(p);
        bool all = p->create && p->destroy && p->launch && p->step && p->current && p->settled;
        bool none = !p->create && !p->destroy && !p->launch && !p->step && !p->current && !p->settled;
        if (p->joins_search != want[i].joins_search || p->wide != want[i].wide || p->shares != want[i].shares ||
            !(want[i].machine ? all : none))
            fail_msg("policy %s is another", want[i].name);
    }
}

static void test_a_machine_runs_behind_its_row(void **state)
{
    (void)state;
    for (const struct policy *p = policies; p->name; p++) {
        if (!p->create)
            continue;
        void *m = p->create(&space, &cfg);
        assert_non_null(m);
        struct tuner_setting at = { -1, -1 };
        char reason[TUNER_REASON_MAX] = "";
        struct err e = { 0 };
        const struct tuner_ask ask = { .trial = 1, .class_key = "c", .start = { 1, 0 }, .alone = true };
        assert_int_equal(p->launch(m, &ask, &at, reason, &e), 0);
        assert_true(at.hot == 1 && at.cold == 0 && *reason);
        struct tuner_actions acts;
        struct tuner_event ev = { .kind = EV_TRIAL_STARTED,
                                  .trial = 1,
                                  .setting = at,
                                  .class_key = "c",
                                  .epoch = 1,
                                  .epochs = 4,
                                  .alone = true };
        assert_false(p->current(m, 1, &at));
        assert_int_equal(p->step(m, &ev, &acts, &e), 0);
        at = (struct tuner_setting){ -1, -1 };
        assert_true(p->current(m, 1, &at));
        assert_int_equal(at.hot, 1);
        assert_false(p->settled(m, 1));
        assert_int_equal(p->step(m, &ev, &acts, &e), -EPROTO);
        assert_true(strstr(e.text, "trial 1"));
        p->destroy(m);
        p->destroy(NULL);
    }
}

static void test_a_machine_that_cannot_be_made_is_null(void **state)
{
    (void)state;
    for (const struct policy *p = policies; p->name; p++) {
        if (!p->create)
            continue;
        fault_arm(FAULT_ALLOC, 1);
        void *m = p->create(&space, &cfg);
        assert_true(fault_disarm());
        assert_null(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_rows_are_the_same),
        cmocka_unit_test(test_what_each_policy_asks_of_a_run),
        cmocka_unit_test(test_a_machine_runs_behind_its_row),
        cmocka_unit_test(test_a_machine_that_cannot_be_made_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
