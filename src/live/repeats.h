/* `study.repeats`: when the search has ended, the best points are trained again with other seeds. A repeat is a trial like any other, but for that the
 * search is not told of it, and that nothing but a budget ends it early. Which there are follows from the trials of the search alone, so a
 * driver that is killed in between goes on with those that are left. */
#ifndef LIVE_REPEATS_H
#define LIVE_REPEATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct plan;
struct study;
struct store_trial;

/* One that is still to be made. */
struct repeat {
    int of;                  /* the trial whose point it trains */
    int time;                /* 1, 2, … */
    char *hyper, *requested; /* as the trial has them; owned */
};

struct repeats {
    struct repeat *v;
    size_t n, next;
    int planned; /* they are known; until then `n` is 0 */
};

/* The search has ended, and nothing runs: what is to be repeated, as long as there is something to be had for it. Returns how many. */
int repeats_plan(struct study *s, struct err *e);
void repeats_done(struct repeats *r);

/* What the trial trains with: each time of a point another seed. */
int64_t repeats_seed(const struct study *s, const struct store_trial *t);

/* -EINVAL: the seed cannot reach the application, so that repeats would all be alike. 1: only the application itself knows whether it
 * takes the one that it is told. 0: it does, or nothing is repeated. */
int repeats_check(const struct plan *p, struct err *e);

#endif
