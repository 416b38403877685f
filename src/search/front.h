/* Trials that are judged by several figures at once. Points are rows of `m` numbers, 1 … FRONT_MAX, of which less is better in each; none is NAN. Pure,
 * exact, and nothing is allocated: `work` is the caller's, of front_work() numbers. */
#ifndef SEARCH_FRONT_H
#define SEARCH_FRONT_H

#include <stdbool.h>
#include <stddef.h>

enum { FRONT_MAX = 4 };

size_t front_work(size_t n, size_t m);

/* Is `a` nowhere worse, and somewhere better? */
bool front_dominates(const double *a, const double *b, size_t m);

/* 0: nothing dominates it; else one more than the greatest rank of what does. */
void front_ranks(const double *points, size_t n, size_t m, size_t *out, double *work);

/* The volume between the points and `ref`, which they must be better than to count. */
double front_volume(const double *points, size_t n, size_t m, const double *ref, double *work);

/* Indices, the best first: by rank, then by what the volume of its rank would lose without it, then by index. `ranks` has n, too. */
void front_order(const double *points, size_t n, size_t m, size_t *order, size_t *ranks, double *work);

#endif
