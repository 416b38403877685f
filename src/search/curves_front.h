/* How much of what a table of curves has to offer was found, where that is judged by several figures: the volume of the front of some of its
 * configurations, each trained to the end, as a share of the volume of all of them. It is taken up to a tenth of the front's range beyond its
 * worst figures. Pure. */
#ifndef SEARCH_CURVES_FRONT_H
#define SEARCH_CURVES_FRONT_H

#include "core/curves.h"
#include "core/goals.h"

struct curves_front {
    size_t n, m;
    double *figures;       /* m of each configuration; small is good */
    double *chosen, *work; /* room */
    double ref[GOALS_MAX];
    double all;
};

/* The table's own metric (or "metric"), "seconds", "joules" (or "energy_j"): by name, as `--metrics` lists them. -EINVAL: the table has none. */
int curves_goals(const struct curves *c, const char *const *names, size_t n, struct goals *out, struct err *e);

int curves_front_init(struct curves_front *out, const struct curves *c, const struct goals *g); /* -ENOMEM */
void curves_front_done(struct curves_front *f);

/* 1: all there is. `counts` says of each configuration whether it was trained. */
double curves_front_share(const struct curves_front *f, const bool *counts);

#endif
