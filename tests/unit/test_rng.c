#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"

/* The first outputs of the authors' splitmix64.c for seed 1234567, as other implementations test it too. */
static void test_mix_is_splitmix64(void **state)
{
    (void)state;
    static const uint64_t want[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(rng_mix(1234567 + i * 0x9e3779b97f4a7c15), want[i]);
}

/* The first outputs of the authors' xoshiro256starstar.c from the state 1, 2, 3, 4. */
static void test_next_is_xoshiro256starstar(void **state)
{
    (void)state;
    static const uint64_t want[] = { 11520u, 0u, 1509978240u, 1215971899390074240u };
    struct rng r = { .s = { 1, 2, 3, 4 } };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(rng_next(&r), want[i]);
}

static void test_a_seed_decides_everything(void **state)
{
    (void)state;
    struct rng a = rng_seeded(7);
    struct rng b = rng_seeded(7);
    struct rng c = rng_seeded(8);
    unsigned equal = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t x = rng_next(&a);
        assert_int_equal(x, rng_next(&b));
        equal += x == rng_next(&c);
    }
    assert_int_equal(equal, 0);
}

static void test_below_stays_below_and_reaches_all(void **state)
{
    (void)state;
    struct rng r = rng_seeded(1);
    unsigned seen[7] = { 0 };
    for (int i = 0; i < 7000; i++) {
        uint64_t x = rng_below(&r, 7);
        assert_true(x < 7);
        seen[x]++;
    }
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        if (seen[i] < 850 || seen[i] > 1150)
            fail_msg("%zu came %u times of 7000, want about 1000", i, seen[i]);
    assert_int_equal(rng_below(&r, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

static void test_unit_is_even_in_0_to_1(void **state)
{
    (void)state;
    struct rng r = rng_seeded(0);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double u = rng_unit(&r);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_true(sum > 4850 && sum < 5150);
}

static void test_draws_are_as_they_say(void **state)
{
    (void)state;
    struct rng r = rng_seeded(3);
    enum { N = 10000 };
    double even = 0, logs = 0, sum = 0, square = 0;
    unsigned often = 0, low = 0, high = 0;
    for (int i = 0; i < N; i++) {
        double x = rng_between(&r, -2, 4), y = rng_log_between(&r, 1, 100), z = rng_normal(&r);
        int k = rng_whole(&r, 3, 5);
        assert_true(x >= -2 && x < 4 && y >= 1 && y < 100 && k >= 3 && k <= 5);
        even += x / N;
        logs += log(y) / N;
        sum += z / N;
        square += z * z / N;
        often += rng_chance(&r, 0.2);
        low += k == 3;
        high += k == 5;
    }
    assert_true(fabs(even - 1) < 0.1 && fabs(logs - log(10)) < 0.1 && fabs(sum) < 0.05 && fabs(square - 1) < 0.05);
    assert_true(often > 1850 && often < 2150 && low > 3150 && low < 3500 && high > 3150 && high < 3500);
}

static void test_shuffled_is_a_permutation(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 300; n++) {
        unsigned char seen[300] = { 0 };
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = rng_shuffled(n, n, i);
            if (x >= n || seen[x])
                fail_msg("of %u: %u comes twice or is outside", (unsigned)n, (unsigned)x);
            seen[x] = 1;
        }
    }
}

static void test_shuffled_first_elements_are_even_over_seeds(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 2, 3, 5, 10, 17 };
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        unsigned seen[17] = { 0 };
        uint64_t runs = 1000 * sizes[k];
        for (uint64_t seed = 0; seed < runs; seed++)
            seen[rng_shuffled(seed, sizes[k], 0)]++;
        for (uint64_t i = 0; i < sizes[k]; i++)
            if (seen[i] < 850 || seen[i] > 1150)
                fail_msg("of %u: %u came first %u times, want about 1000", (unsigned)sizes[k], (unsigned)i, seen[i]);
    }
}

static void test_shuffled_takes_any_size(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 1000000000, (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX };
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        uint64_t first = rng_shuffled(3, sizes[k], 0);
        uint64_t last = rng_shuffled(3, sizes[k], sizes[k] - 1);
        assert_true(first < sizes[k] && last < sizes[k] && first != last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mix_is_splitmix64),
        cmocka_unit_test(test_next_is_xoshiro256starstar),
        cmocka_unit_test(test_a_seed_decides_everything),
        cmocka_unit_test(test_below_stays_below_and_reaches_all),
        cmocka_unit_test(test_unit_is_even_in_0_to_1),
        cmocka_unit_test(test_draws_are_as_they_say),
        cmocka_unit_test(test_shuffled_is_a_permutation),
        cmocka_unit_test(test_shuffled_first_elements_are_even_over_seeds),
        cmocka_unit_test(test_shuffled_takes_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
