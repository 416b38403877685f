/* The few statistics that decisions stand on. Pure; sums run in the order given. */
#ifndef CORE_STATS_H
#define CORE_STATS_H

#include <stddef.h>

/* Of 1 <= n <= STATS_MAX values, which stay in their order. */
enum { STATS_MAX = 256 };
double stats_median(const double *x, size_t n);
double stats_mean(const double *x, size_t n);

/* Sample standard deviation; 0 for n < 2. */
double stats_sd(const double *x, size_t n);

/* Student's t that leaves 5 % on each side (a 90 % interval) for `df` >= 1 degrees of freedom. */
double stats_t90(size_t df);

#endif
