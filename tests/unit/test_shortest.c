#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/own.h"
#include "base/shortest.h"
#include "core/rng.h"

static const char *text_of(double x, char out[64])
{
    uint64_t digits;
    int decimals;
    if (!shortest_decimal(x, &digits, &decimals))
        return NULL;
    uint64_t scale = shortest_power(decimals);
    int n = snprintf(out, 64, "%" PRIu64, digits / scale);
    if (decimals > 0)
        (void)snprintf(out + n, 64 - (size_t)n, ".%0*" PRIu64, decimals, digits % scale);
    return out;
}

static void same_as_num_print(double x, bool must)
{
    char got[64], want[NUM_TEXT_MAX];
    const char *text = text_of(x, got);
    if (must && !text)
        fail_msg("%a: no text", x);
    if (text && strcmp(text, num_print(x, want)) != 0)
        fail_msg("%a: got %s, want %s", x, text, want);
}

static void it_is_what_num_print_finds(void **state)
{
    (void)state;
    static const double given[] = {
        0.001, 0.1,     1.5,      100.07,           100 + 7 / 100.0, 0.1 + 0.2,         5e-3,
        41,    999.999, 1e15 - 1, 1e15 - 0.125,     1e14 + 0.5,      9007199254740.993, 3,
        10,    1e14,    99999,    0.99999999999999, 0.009999999999,  123456789012345.67
    };
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        same_as_num_print(given[i], true);
        same_as_num_print(nextafter(given[i], 1e15), false);
        same_as_num_print(nextafter(given[i], 0), false);
    }
}

static void it_is_so_for_any_number(void **state)
{
    (void)state;
    struct rng r = rng_seeded(3);
    for (int i = 0; i < 300000; i++) {
        double mantissa = 1 + (double)(rng_below(&r, (UINT64_C(1) << 52) - 1) + 1) * 0x1p-52;
        double x = ldexp(mantissa, (int)rng_below(&r, 58) - 9);
        same_as_num_print(x, true);
        /* Sums and quotients of what has few decimals, as readings are. */
        double sum = (double)rng_below(&r, 1000) + (double)rng_below(&r, 100000) / 1000;
        same_as_num_print(sum + 0.001, false);
        same_as_num_print((sum + 1) / 7, false);
    }
}

static void what_it_cannot_do_it_leaves(void **state)
{
    (void)state;
    static const double given[] = { 0, -1, 0.00099, 1e15, 1e300, 5e-324, 1, 4, 0.25, NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        char out[64];
        if (text_of(given[i], out))
            fail_msg("%g: %s", given[i], out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_num_print_finds),
        cmocka_unit_test(it_is_so_for_any_number),
        cmocka_unit_test(what_it_cannot_do_it_leaves),
    };
    return cmocka_run_group_tests_name("shortest", tests, NULL, NULL);
}
