/* Points as numbers between 0 and 1, for searches that reckon with distances: even where the space is drawn evenly, so logs where it has a log scale;
 * a list of texts has no order, and stays a choice. Pure. */
#ifndef SEARCH_UNIT_SPACE_H
#define SEARCH_UNIT_SPACE_H

#include "core/rng.h"
#include "core/space.h"

struct unit_point {
    double u[SPACE_MAX_DIMS]; /* of a choice its index */
};

/* How many choices a dimension without an order has; 0: it has an order. One value alone is an order. */
uint64_t unit_choices(const struct dim *d);

/* Is each value one that its dimension has? */
bool unit_is_point(const struct space *sp, const struct point *p);

struct unit_point unit_of(const struct space *sp, const struct point *p);
struct point unit_to_point(const struct space *sp, const struct unit_point *u); /* the nearest; of no listed points */
struct unit_point unit_draw(const struct space *sp, struct rng *r);             /* at random, as the space has it */

#endif
