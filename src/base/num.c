#include "base/num.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

__extension__ typedef unsigned __int128 u128;

/* digits / 10^decimals, the last of the decimals not a zero. */
struct decimal {
    uint64_t digits;
    int decimals;
};

static uint64_t power_of_10(int n)
{
    uint64_t p = 1;
    while (n-- > 0)
        p *= 10;
    return p;
}

/* --- by whole numbers alone: several times faster than by trying, for the sizes that readings have --- */

/* What meters say has few decimals: whole / 10^decimals, both without error as doubles, so that the quotient rounds as reading the
 * text does. False: it is no such number, or one that is printed with an exponent. */
static bool few_decimals(double x, struct decimal *out)
{
    static const double powers[] = { 1, 10, 100, 1000, 1e4, 1e5, 1e6 };
    if (x != 0 && x < 1e-4)
        return false;
    for (int decimals = 0; decimals < (int)ARRAY_LEN(powers) && x * powers[decimals] < 1e15; decimals++) {
        uint64_t whole = (uint64_t)(x * powers[decimals] + 0.5);
        if ((double)whole / powers[decimals] == x) {
            *out = (struct decimal){ whole, decimals };
            return true;
        }
    }
    return false;
}

/* Of the decimal's first digit: x is at least 10^it. None of these doubles is less than what it stands for. */
static int exponent_of(double x)
{
    static const double below[] = { 0.1, 0.01, 0.001 };
    int n = 0;
    if (x < 1) {
        while (x < below[n])
            n++;
        return -1 - n;
    }
    for (double power = 10; x >= power; power *= 10)
        n++;
    return n;
}

/* x = m / 2^s. Its nearest decimal of so many decimals is D / 10^decimals. That reads back if it is no farther away than half of the gap
 * to the next double, 1 / 2^s: |D * 2^s - m * 10^decimals| <= 10^decimals / 2. Exact: 53 + 64 bits at most, and s < 64. */
static bool reads_back(uint64_t m, int s, uint64_t power, uint64_t *out)
{
    u128 n = (u128)m * power, one = (u128)1 << s, half = one >> 1;
    uint64_t d = (uint64_t)(n >> s);
    u128 rest = n & (one - 1);
    bool up = rest > half || (rest == half && d % 2 == 1);
    u128 away = up ? one - rest : rest;
    *out = d + up;
    return 2 * away < power || (2 * away == power && m % 2 == 0);
}

/* False: x is not from 0.001 to below 10^15, or a power of two: the doubles below that lie twice as close as those above. */
static bool many_decimals(double x, struct decimal *out)
{
    enum { LEAST = 15, MOST = 17 }; /* 15 digits survive any double, 17 tell all of them apart */
    if (!(x >= 0.001 && x < 1e15))
        return false;
    int e;
    uint64_t m = (uint64_t)ldexp(frexp(x, &e), 53), d = 0;
    int s = 53 - e, decimals = LEAST - 1 - exponent_of(x);
    if (m == UINT64_C(1) << 52)
        return false;
    for (int digits = LEAST; !reads_back(m, s, power_of_10(decimals), &d); digits++, decimals++)
        if (digits == MOST)
            return false;
    for (; decimals > 0 && d % 10 == 0; d /= 10)
        decimals--;
    *out = (struct decimal){ d, decimals };
    return true;
}

/* The digits of `x` before `end`, at least `least` of them; returns the first. */
static char *digits_before(char *end, uint64_t x, int least)
{
    for (; x || least > 0; x /= 10, least--)
        *--end = (char)('0' + x % 10);
    return end;
}

static void write_decimal(bool minus, struct decimal t, char out[NUM_TEXT_MAX])
{
    uint64_t scale = power_of_10(t.decimals);
    char text[NUM_TEXT_MAX], *begin = text + sizeof text;
    *--begin = '\0';
    if (t.decimals) {
        begin = digits_before(begin, t.digits % scale, t.decimals);
        *--begin = '.';
    }
    begin = digits_before(begin, t.digits / scale, 1);
    if (minus)
        *--begin = '-';
    memcpy(out, begin, (size_t)(text + sizeof text - begin));
}

/* --- by trying --- */

/* The text of so many digits that reads back as x, if there is one. */
static bool print_in(double x, int digits, char out[NUM_TEXT_MAX])
{
    (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, x);
    if (strtod(out, NULL) == x)
        return true;
    /* Below a power of two the doubles lie twice as close as above, so that the next text away from zero may read back
     * where the nearest does not. It is the nearest to a point an eighth of the upper gap away. */
    int exponent;
    if (fabs(frexp(x, &exponent)) != 0.5)
        return false;
    (void)snprintf(out, NUM_TEXT_MAX, "%.*Lg", digits, (long double)x * (1 + 0x1p-55L));
    return strtod(out, NULL) == x;
}

const char *num_print(double x, char out[NUM_TEXT_MAX])
{
    struct decimal t;
    if (!isfinite(x)) {
        memcpy(out, "null", sizeof "null");
        return out;
    }
    if (few_decimals(fabs(x), &t) || many_decimals(fabs(x), &t)) {
        write_decimal(signbit(x), t, out);
        return out;
    }
    /* 15 digits survive any normal double, so the first precision that reads back is the shortest; subnormals carry
     * fewer, so they start at one. */
    int digits = fpclassify(x) == FP_SUBNORMAL ? 1 : 15;
    while (!print_in(x, digits, out) && digits < 17)
        digits++;
    return out;
}

void num_put(struct buf *b, double x)
{
    char text[NUM_TEXT_MAX];
    buf_puts(b, num_print(x, text));
}
