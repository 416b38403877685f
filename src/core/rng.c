#include "core/rng.h"

#include <assert.h>
#include <math.h>

static const uint64_t golden = 0x9e3779b97f4a7c15; /* splitmix64's increment */

uint64_t rng_mix(uint64_t x)
{
    x += golden;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

struct rng rng_seeded(uint64_t seed)
{
    struct rng r;
    for (unsigned i = 0; i < 4; i++)
        r.s[i] = rng_mix(seed + i * golden);
    return r;
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    assert(n >= 1);
    uint64_t uneven = (0 - n) % n; /* 2^64 mod n: so many of the lowest would come once too often */
    uint64_t x;
    do
        x = rng_next(r);
    while (x < uneven);
    return x % n;
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_between(struct rng *r, double low, double high)
{
    return low + (high - low) * rng_unit(r);
}

double rng_log_between(struct rng *r, double low, double high)
{
    return exp(rng_between(r, log(low), log(high)));
}

int rng_whole(struct rng *r, int low, int high)
{
    return low + (int)rng_below(r, (uint64_t)(high - low + 1));
}

bool rng_chance(struct rng *r, double p)
{
    return rng_unit(r) < p;
}

/* By Box and Muller. */
double rng_normal(struct rng *r)
{
    double u = 1 - rng_unit(r), v = rng_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* A Feistel network shuffles [0, 4^half_bits); whatever lands outside [0, n) is shuffled again until it is inside, which
 * keeps it one to one. The domain is under 4n (but for n < 4), so that takes fewer than four rounds on average. */
static uint64_t feistel(uint64_t seed, unsigned half_bits, uint64_t x)
{
    enum { ROUNDS = 6 };
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    uint64_t left = x >> half_bits;
    uint64_t right = x & mask;
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* the high bits: the round must not be a function of the low ones alone when half_bits is small */
        uint64_t mixed = rng_mix(rng_mix(seed + round) ^ right) >> 32;
        uint64_t next = left ^ (mixed & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

uint64_t rng_shuffled(uint64_t seed, uint64_t n, uint64_t index)
{
    assert(index < n);
    unsigned half_bits = 1;
    while (half_bits < 32 && (n - 1) >> (2 * half_bits))
        half_bits++;
    uint64_t x = index;
    do
        x = feistel(seed, half_bits, x);
    while (x >= n);
    return x;
}
