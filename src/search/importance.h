/* Which hyperparameter mattered, by PED-ANOVA (Watanabe, Bansal, Hutter 2023): how much the values of the best trials differ in their
 * distribution from those of all, dimension by dimension. Pure. */
#ifndef SEARCH_IMPORTANCE_H
#define SEARCH_IMPORTANCE_H

#include <stddef.h>

#include "core/space.h"

/* Fewer trials than this tell nothing. */
enum { IMPORTANCE_TRIALS_MIN = 8 };

/* One trial: its point, and what it was worth: less is better. */
struct importance_trial {
    struct point point;
    double cost; /* no NAN */
};

/* Shares of all dimensions, which add up to 1; sorts the trials. -ENODATA: there are too few, or nothing differs. */
int importance_of(const struct space *sp, struct importance_trial *trials, size_t n, double out[SPACE_MAX_DIMS]);

#endif
