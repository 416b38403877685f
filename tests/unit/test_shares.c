#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/own.h"
#include "core/rng.h"
#include "core/shares.h"

enum { MOST = 4 };

static const struct {
    const char *name;
    int cpus;
    struct share v[MOST]; /* cpus: what it is to get */
} cases[] = {
    { "one study has all that it can use", 4, { { 0, 9, 1, NAN, 4 } } },
    { "and no more", 4, { { 0, 3, 1, NAN, 3 } } },
    { "a higher priority has all that it can use", 2, { { 0, 9, 1, NAN, 0 }, { 1, 9, 1, NAN, 2 } } },
    { "what it cannot use goes to the next", 2, { { 0, 9, 1, NAN, 1 }, { 1, 1, 1, NAN, 1 } } },
    { "and to the one below that", 4, { { -1, 9, 1, 9, 1 }, { 5, 1, 1, 1, 1 }, { 2, 2, 1, 1, 2 } } },
    { "equals share", 2, { { 0, 9, 1, NAN, 1 }, { 0, 9, 1, NAN, 1 } } },
    { "each has room for a trial before one has more",
      3,
      { { 0, 9, 1, 1e9, 1 }, { 0, 9, 1, 1, 1 }, { 0, 9, 1, 1, 1 } } },
    { "who was submitted first begins first", 2, { { 0, 9, 1, 1, 1 }, { 0, 9, 1, 1, 1 }, { 0, 9, 1, 1e9, 0 } } },
    { "a room goes to whom it shortens most", 3, { { 0, 9, 1, 100, 1 }, { 0, 9, 1, 300, 2 } } },
    { "who has much gains less by more", 6, { { 0, 9, 1, 100, 2 }, { 0, 9, 1, 300, 4 } } },
    { "who can use no more leaves it to the others", 4, { { 0, 1, 1, 1e9, 1 }, { 0, 9, 1, 1, 3 } } },
    { "who is not known needs as much as the most known",
      5,
      { { 0, 9, 1, 10, 1 }, { 0, 9, 1, 100, 2 }, { 0, 9, 1, NAN, 2 } } },
    { "who can use nothing has nothing", 2, { { 9, 0, 1, NAN, 0 }, { 0, 9, 1, NAN, 2 } } },
    { "whole trials", 4, { { 0, 8, 2, 100, 2 }, { 0, 8, 2, 100, 2 } } },
    { "room for less than a trial goes to who can use it", 3, { { 1, 8, 2, NAN, 2 }, { 0, 8, 1, NAN, 1 } } },
    { "a wide trial begins on what there is", 3, { { 1, 2, 1, NAN, 2 }, { 0, 8, 2, NAN, 1 } } },
    { "on one CPU too", 1, { { 0, 8, 4, NAN, 1 }, { 0, 8, 4, NAN, 0 } } },
};

static void test_shares_are_as_stated(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct share v[MOST];
        size_t n = 0;
        for (; n < MOST && cases[i].v[n].grain > 0; n++)
            v[n] = cases[i].v[n];
        shares_divide(v, n, cases[i].cpus);
        for (size_t k = 0; k < n; k++)
            if (v[k].cpus != cases[i].v[k].cpus)
                fail_msg("%s: study %zu got %d, want %d", cases[i].name, k, v[k].cpus, cases[i].v[k].cpus);
    }
}

/* Whatever the studies are. */
static void test_nothing_is_left_that_somebody_could_use(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(7);
    for (int round = 0; round < 2000; round++) {
        struct share v[MOST];
        int cpus = (int)rng_below(&rng, 9), left = cpus;
        for (size_t i = 0; i < MOST; i++)
            v[i] = (struct share){ .priority = (int)rng_below(&rng, 3),
                                   .most = (int)rng_below(&rng, 9),
                                   .grain = 1 + (int)rng_below(&rng, 3),
                                   .need_s = rng_below(&rng, 4) ? (double)rng_below(&rng, 100) : (double)NAN };
        shares_divide(v, MOST, cpus);
        for (size_t i = 0; i < MOST; i++) {
            assert_true(v[i].cpus >= 0 && v[i].cpus <= v[i].most);
            left -= v[i].cpus;
        }
        assert_true(left >= 0);
        for (size_t i = 0; i < MOST; i++) {
            int unit = v[i].grain < v[i].most - v[i].cpus ? v[i].grain : v[i].most - v[i].cpus;
            assert_false(unit > 0 && (left >= unit || (left > 0 && v[i].cpus == 0)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_as_stated),
        cmocka_unit_test(test_nothing_is_left_that_somebody_could_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
