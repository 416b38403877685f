/* Samples of a window become one number per feature, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "clustering/profile.h"
#include "tests/fault.h"

enum { INSTRUCTIONS, MISSES, CPU_TIME, GC_TIME, RSS, N };

static const char *const names[N] = { "instructions", "cache-misses", "proc/cpu-time", "log/gc-time", "proc/rss" };
static const enum profile_kind kinds[N] = { [RSS] = PROFILE_GAUGE };

struct interval {
    double dt_s, value[N];
    float ratio[N];
    uint8_t state[N];
};

static struct interval usual(void)
{
    return (
        struct interval){ .dt_s = 1, .value = { 4e9, 2e6, 2, 0.1, 1e9 }, .ratio = { 1, 1, 1, 1, 1 }, .state = { 0 } };
}

static struct profile made(const struct interval *list, size_t n)
{
    struct profile_space s;
    struct profile_sum sum;
    struct profile p = { 0 };
    struct err e;
    assert_int_equal(profile_space_init(&s, names, kinds, N, &e), 0);
    assert_int_equal(profile_sum_init(&sum, &s, &e), 0);
    for (size_t i = 0; i < n; i++)
        profile_sum_add(&sum, &s, list[i].value, list[i].ratio, list[i].state, list[i].dt_s);
    assert_int_equal(profile_make(&p, &s, &sum, &e), 0);
    profile_sum_done(&sum);
    profile_space_done(&s);
    return p;
}

static void expect(const char *name, const struct profile *p, int feature, double want)
{
    double got = p->mask[feature] ? p->x[feature] : (double)NAN;
    if (!(fabs(got - want) < 1e-9) && !(isnan(got) && isnan(want)))
        fail_msg("%s: feature '%s' is %.12g, want %.12g", name, names[feature], got, want);
}

static void test_each_kind_has_its_own_normaliser(void **state)
{
    (void)state;
    struct interval one = usual();
    struct profile p = made(&one, 1);
    expect("counts of the hardware are per million instructions", &p, MISSES, log1p(500));
    expect("instructions are per CPU-second", &p, INSTRUCTIONS, log1p(2e9));
    expect("CPU time is per second, in ms", &p, CPU_TIME, log1p(2000));
    expect("what the log tells is per CPU-second", &p, GC_TIME, log1p(50));
    expect("a gauge is its mean", &p, RSS, log1p(1e9));
    profile_done(&p);
}

/* A JVM compiles less and less: what is told per second of work stays. */
static void test_work_is_cpu_time_without_the_jvms_own(void **state)
{
    (void)state;
    enum { CPU, COMPILE, COLLECT, STEPS, SWITCHES, CODE, ALL };
    static const char *const with_jvm[ALL] = { "proc/cpu-time",  "jvm/compile-time", "jvm/collect-time",
                                               "log/iterations", "context-switches", "code/generated-time" };
    static const enum profile_kind counts[ALL] = { PROFILE_COUNT };
    static const struct {
        const char *name;
        double value[ALL];
        uint8_t state[ALL];
        double steps; /* NAN: masked */
    } cases[] = {
        { "it compiles", { 2, 0.9, 0.1, 50, 200, 0.5 }, { 0 }, 50 },
        { "it has compiled", { 1.1, 0, 0.1, 50, 200, 0.5 }, { 0 }, 50 },
        { "no JVM is seen", { 2, NAN, NAN, 50, 200, 0.5 }, { 0, 2, 2 }, NAN },
        { "there was no work", { 1, 0.8, 0.3, 50, 200, 0.5 }, { 0 }, NAN },
    };
    static const float ratio[ALL] = { 1, 1, 1, 1, 1, 1 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct profile_space s;
        struct profile_sum sum;
        struct profile p;
        struct err e;
        assert_int_equal(profile_space_init(&s, with_jvm, counts, ALL, &e), 0);
        assert_int_equal(profile_sum_init(&sum, &s, &e), 0);
        profile_sum_add(&sum, &s, cases[i].value, ratio, cases[i].state, 1);
        assert_int_equal(profile_make(&p, &s, &sum, &e), 0);
        double want = log1p(cases[i].steps), got = p.mask[STEPS] ? p.x[STEPS] : (double)NAN;
        if (!(fabs(got - want) < 1e-9) && !(isnan(got) && isnan(want)))
            fail_msg("%s: %g, want %g", cases[i].name, got, want);
        assert_int_equal(p.mask[SWITCHES], p.mask[STEPS]);
        assert_int_equal(p.mask[CODE], p.mask[STEPS]);
        assert_true(!p.mask[CODE] || fabs(p.x[CODE] - log1p(500)) < 1e-9); /* ms of each second */
        assert_true(fabs(p.x[CPU] - log1p(1000 * cases[i].value[CPU])) < 1e-9);
        profile_done(&p);
        profile_sum_done(&sum);
        profile_space_done(&s);
    }
}

static void test_the_length_of_a_window_does_not_matter(void **state)
{
    (void)state;
    struct interval list[5];
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        list[i] = usual();
    struct profile one = made(list, 1), five = made(list, 5);
    for (int f = 0; f < N; f++)
        expect("five intervals like one", &five, f, one.x[f]);
    profile_done(&one);
    profile_done(&five);
}

static void test_sums_run_over_the_intervals_in_which_both_were_measured(void **state)
{
    (void)state;
    struct interval list[3] = { usual(), usual(), usual() };
    list[1].value[INSTRUCTIONS] = NAN;
    list[1].state[INSTRUCTIONS] = 2;
    list[1].value[MISSES] = 1e12; /* without instructions it says nothing */
    list[2].value[MISSES] = 4e6;
    struct profile p = made(list, 3);
    expect("the interval without instructions is left out", &p, MISSES, log1p(750));
    profile_done(&p);
}

static void test_what_cannot_be_trusted_is_masked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int feature;
        double value;
        float ratio;
        uint8_t cell;
        size_t broken; /* intervals of three */
        bool want;
    } cases[] = {
        { "not counted in two of three intervals", MISSES, NAN, 0, 2, 2, false },
        { "not counted in one of three", MISSES, NAN, 0, 2, 1, true },
        { "unsupported", MISSES, NAN, 0, 3, 3, false },
        { "nobody looked", MISSES, NAN, 0, 255, 3, false },
        { "multiplexed, seen 1 % of the time", MISSES, 2e6, 0.01F, 1, 3, false },
        { "multiplexed, seen 8 % of the time", MISSES, 2e6, 0.08F, 1, 3, true },
        { "a value that is none, whatever its state says", MISSES, NAN, 1, 0, 3, false },
        { "a negative count", MISSES, -1, 1, 0, 3, false },
        { "no instruction: rates over nothing", INSTRUCTIONS, 0, 1, 0, 3, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct interval list[3] = { usual(), usual(), usual() };
        for (size_t k = 0; k < cases[i].broken; k++) {
            list[k].value[cases[i].feature] = cases[i].value;
            list[k].ratio[cases[i].feature] = cases[i].ratio;
            list[k].state[cases[i].feature] = cases[i].cell;
        }
        struct profile p = made(list, 3);
        if ((p.mask[MISSES] != 0) != cases[i].want)
            fail_msg("%s: cache-misses are %s", cases[i].name, p.mask[MISSES] ? "measured" : "masked");
        assert_int_equal(p.mask[RSS], 1);
        profile_done(&p);
    }
}

static void test_without_the_normaliser_a_count_says_nothing(void **state)
{
    (void)state;
    struct interval one = usual();
    one.state[INSTRUCTIONS] = 3;
    struct profile p = made(&one, 1);
    assert_int_equal(p.mask[MISSES], 0);
    assert_int_equal(p.mask[GC_TIME], 1);
    assert_int_equal(profile_measured(&p), 3);
    profile_done(&p);
}

static void test_an_empty_window_is_no_profile(void **state)
{
    (void)state;
    struct profile_space s;
    struct profile_sum sum;
    struct profile p = { 0 };
    struct err e;
    struct interval one = usual();
    assert_int_equal(profile_space_init(&s, names, kinds, N, &e), 0);
    assert_int_equal(profile_sum_init(&sum, &s, &e), 0);
    assert_int_equal(profile_make(&p, &s, &sum, &e), -ENODATA);
    profile_sum_add(&sum, &s, one.value, one.ratio, one.state, 0);
    assert_int_equal(profile_make(&p, &s, &sum, &e), -ENODATA);
    profile_sum_add(&sum, &s, one.value, one.ratio, one.state, 1);
    profile_sum_clear(&sum);
    assert_int_equal(profile_make(&p, &s, &sum, &e), -ENODATA);
    assert_null(p.x);
    profile_sum_done(&sum);
    profile_space_done(&s);
}

static void test_a_feature_has_one_place(void **state)
{
    (void)state;
    static const char *const twice[] = { "a", "b", "a" };
    static const enum profile_kind counts[3] = { PROFILE_COUNT };
    struct profile_space s;
    struct err e;
    assert_int_equal(profile_space_init(&s, twice, counts, 3, &e), -EINVAL);
    assert_non_null(strstr(e.text, "'a'"));
    assert_int_equal(profile_space_init(&s, twice, counts, 0, &e), -EINVAL);
}

static int make_all(void)
{
    struct profile_space s = { 0 };
    struct profile_sum sum = { 0 };
    struct profile p = { 0 };
    struct interval one = usual();
    struct err e;
    int rc = profile_space_init(&s, names, kinds, N, &e);
    if (rc == 0)
        rc = profile_sum_init(&sum, &s, &e);
    if (rc == 0) {
        profile_sum_add(&sum, &s, one.value, one.ratio, one.state, 1);
        rc = profile_make(&p, &s, &sum, &e);
    }
    profile_done(&p);
    profile_sum_done(&sum);
    profile_space_done(&s);
    return rc;
}

static void test_memory_that_runs_out_leaves_nothing(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = make_all();
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_has_its_own_normaliser),
        cmocka_unit_test(test_work_is_cpu_time_without_the_jvms_own),
        cmocka_unit_test(test_the_length_of_a_window_does_not_matter),
        cmocka_unit_test(test_sums_run_over_the_intervals_in_which_both_were_measured),
        cmocka_unit_test(test_what_cannot_be_trusted_is_masked),
        cmocka_unit_test(test_without_the_normaliser_a_count_says_nothing),
        cmocka_unit_test(test_an_empty_window_is_no_profile),
        cmocka_unit_test(test_a_feature_has_one_place),
        cmocka_unit_test(test_memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
