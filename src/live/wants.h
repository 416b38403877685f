/* What the config wants that only meters can tell: joules as an objective, in a constraint, or as a price. */
#ifndef LIVE_WANTS_H
#define LIVE_WANTS_H

#include "live/plan.h"

/* -EINVAL: joules are judged by, and no meter is configured; says the fix. */
int wants_check(const struct plan *p, struct err *e);

/* For people, a line each: joules that are an estimate alone, or that nothing is known of and that something else counts for. */
void wants_put_notes(const struct plan *p, struct buf *out);

/* Is an epoch's price in joules? */
bool wants_joules_as_cost(const struct plan *p);

#endif
