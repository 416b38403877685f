/* Seeded random numbers, the same on every machine: xoshiro256** filled by splitmix64 (Blackman and Vigna). Not for
 * secrets. */
#ifndef CORE_RNG_H
#define CORE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

struct rng rng_seeded(uint64_t seed);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* evenly in [0, n), n >= 1 */
double rng_unit(struct rng *r);                /* evenly in [0, 1), 53 bits */

/* Draws of these. */
double rng_between(struct rng *r, double low, double high);     /* evenly */
double rng_log_between(struct rng *r, double low, double high); /* evenly by their logs; low > 0 */
int rng_whole(struct rng *r, int low, int high);                /* evenly, both included */
bool rng_chance(struct rng *r, double p);                       /* true so often */
double rng_normal(struct rng *r);                               /* mean 0, standard deviation 1 */

/* One step of splitmix64: a good 64-bit mix of its argument. */
uint64_t rng_mix(uint64_t x);

/* A fixed shuffle of [0, n), n >= 1: the index-th element, index < n. Each element comes at exactly one index; nothing is
 * stored, so n may be anything. */
uint64_t rng_shuffled(uint64_t seed, uint64_t n, uint64_t index);

#endif
