#include "base/shortest.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;

uint64_t shortest_power(int n)
{
    uint64_t p = 1;
    while (n-- > 0)
        p *= 10;
    return p;
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

bool shortest_decimal(double x, uint64_t *out_digits, int *out_decimals)
{
    enum { LEAST = 15, MOST = 17 }; /* 15 digits survive any double, 17 tell all of them apart */
    if (!(x >= 0.001 && x < 1e15))
        return false;
    int e;
    uint64_t m = (uint64_t)ldexp(frexp(x, &e), 53), d = 0;
    int s = 53 - e, decimals = LEAST - 1 - exponent_of(x);
    if (m == UINT64_C(1) << 52) /* the doubles below lie twice as close as those above */
        return false;
    for (int digits = LEAST; !reads_back(m, s, shortest_power(decimals), &d); digits++, decimals++)
        if (digits == MOST)
            return false;
    for (; decimals > 0 && d % 10 == 0; d /= 10)
        decimals--;
    *out_digits = d;
    *out_decimals = decimals;
    return true;
}
