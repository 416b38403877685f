/* Which of some rows of numbers are most like another one, in what becomes of them: many trees, each cut at random places of random columns, of which
 * those are kept that part the outcomes best ("extremely randomised trees"; a row's weight is how often it shares a leaf: a "quantile forest").
 * Nothing is reckoned with distances, so columns need no scale, and those that say nothing do little harm. Pure, and the same for the same rows. */
#ifndef SEARCH_FOREST_H
#define SEARCH_FOREST_H

#include <stddef.h>

enum { FOREST_ROWS_MAX = 4096 };

struct forest;

/* `n` rows of `d` numbers each, one behind the other, and what became of each row: finite numbers, which are read here alone. 0, -ENOMEM. */
int forest_new(struct forest **out, const double *x, size_t d, const double *y, size_t n);

/* How much each of the n rows says about one like `row`: numbers of sum 1. `but`: the number of that row, where it is one of them: it is seen as by
 * trees that were grown without it, and weighs nothing. SIZE_MAX: it is another. */
void forest_weigh(const struct forest *f, const double *row, size_t but, double *weights);

void forest_free(struct forest *f);

#endif
