#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"
#include "base/own.h"

static const struct {
    double x;
    const char *want;
} numbers[] = {
    { 0.9914, "0.9914" },
    { 0, "0" },
    { -0.0, "-0" },
    { 0.0001, "0.0001" },
    { 0.00001, "1e-05" },
    { 999999999999999, "999999999999999" },
    { 1e15, "1e+15" },
    { 1e15 / 3, "333333333333333.3" },
    { 3, "3" },
    { -1.5, "-1.5" },
    { 0.1, "0.1" },
    { 0.1 + 0.2, "0.30000000000000004" },
    { 1.0 / 3, "0.3333333333333333" },
    { 100000, "100000" },
    { 123456789012, "123456789012" },
    { 1e300, "1e+300" },
    { 5e-324, "5e-324" },
    { DBL_MAX, "1.7976931348623157e+308" },
    { DBL_MIN, "2.2250738585072014e-308" },
    { 9007199254740993.0, "9007199254740992" },
    { NAN, "null" },
    { INFINITY, "null" },
    { -INFINITY, "null" },
};

static void test_numbers_in_the_fewest_digits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char got[NUM_TEXT_MAX];
        if (strcmp(num_print(numbers[i].x, got), numbers[i].want) != 0)
            fail_msg("got %s, want %s", got, numbers[i].want);
    }
}

/* The significant digits of a text of num_print(). */
static int digits_of(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0'))
            continue;
        n++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

/* Does any number of so many digits read back as x? The candidates are the two around it. */
static bool readable_in(double x, int digits)
{
    char text[64];
    long long mantissa = 0;
    (void)snprintf(text, sizeof text, "%.*e", digits - 1, fabs(x));
    for (const char *c = text; *c != 'e'; c++)
        if (*c != '.')
            mantissa = mantissa * 10 + (*c - '0');
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10) - (digits - 1);
    for (long long m = mantissa - 1; m <= mantissa + 1; m++) {
        (void)snprintf(text, sizeof text, "%llde%d", m, exponent);
        if (strtod(text, NULL) == fabs(x))
            return true;
    }
    return false;
}

/* The first of 15, 16 and 17 digits to read back: what whole numbers find must look the same. */
static const char *by_trying(double x, char out[NUM_TEXT_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            break;
    }
    return out;
}

static void check_number(double x)
{
    char text[NUM_TEXT_MAX], tried[NUM_TEXT_MAX];
    num_print(x, text);
    if (!isfinite(x)) {
        assert_string_equal(text, "null");
        return;
    }
    double back = strtod(text, NULL);
    if (memcmp(&back, &x, sizeof x) != 0)
        fail_msg("%a prints as %s, which reads back as %a", x, text, back);
    int exponent;
    if (fpclassify(x) == FP_NORMAL && fabs(frexp(x, &exponent)) != 0.5 && strcmp(by_trying(x, tried), text) != 0)
        fail_msg("%a prints as %s, want %s", x, text, tried);
    int digits = digits_of(text);
    if (digits > 1 && readable_in(x, digits - 1))
        fail_msg("%a prints as %s, and %d digits were enough", x, text, digits - 1);
}

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

static void test_any_number_reads_back_the_same(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252ULL;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double x;
        memcpy(&x, &bits, sizeof x);
        check_number(x);
        check_number((double)(bits >> 11) / 9007199254740992.0); /* what accuracies look like */
        check_number((double)(bits % 1000000) / 10000.0);
        check_number(1 + (double)(bits >> 13) * 0x1p-51); /* not a power of two */
        check_number(ldexp((double)(bits | 1), -(int)(bits % 97)));
    }
    for (int e = -1074; e < 1024; e++) /* where the gap below is half the gap above */
        check_number(ldexp(1, e));
}

static void test_numbers_are_appended(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    num_put(&b, -41.5);
    num_put(&b, NAN);
    assert_string_equal(buf_text(&b), "-41.5null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_in_the_fewest_digits),
        cmocka_unit_test(test_any_number_reads_back_the_same),
        cmocka_unit_test(test_numbers_are_appended),
    };
    return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
