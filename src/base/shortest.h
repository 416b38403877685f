/* A double as the decimal of the fewest digits that reads back to it, by whole numbers alone: what num_print() finds by trying, several
 * times faster, for the sizes that readings have. Pure. */
#ifndef BASE_SHORTEST_H
#define BASE_SHORTEST_H

#include <stdbool.h>
#include <stdint.h>

enum { SHORTEST_DECIMALS_MAX = 19 };

/* x = digits / 10^decimals, the last of the decimals not a zero; of several texts as short, that of num_print(). False: x is not
 * from 0.001 to below 10^15, or needs num_print()'s care (a power of two). */
bool shortest_decimal(double x, uint64_t *out_digits, int *out_decimals);

uint64_t shortest_power(int n); /* 10^n, n from 0 to SHORTEST_DECIMALS_MAX */

#endif
