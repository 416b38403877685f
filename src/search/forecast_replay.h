/* How well recorded curves are foretold. They come one after the other, in an order drawn once; each is known up to a share of its epochs, and those
 * before it to their end, as in a study. The first ones are foretold from nothing but what is known of curves in general. Pure. */
#ifndef SEARCH_FORECAST_REPLAY_H
#define SEARCH_FORECAST_REPLAY_H

#include "core/curves.h"

/* Means over the curves, in units of the table's regret scale: its median best value less its best. A value is never counted as worse than where curves
 * begin by more than three of these: what diverged, or nearly, would be all that a mean shows. */
struct forecast_quality {
    double coverage; /* the share of final values within the interval that is to hold 80 % */
    double width;    /* of that interval */
    double error;    /* of what is foretold for the last epoch */
    double last_value_error;
    size_t n;
};

/* 0 < share < 1. -EINVAL: no curve has all epochs, or they all come to the same; -ENOMEM. */
int forecast_replay(const struct curves *c, double share, struct forecast_quality *out, struct err *e);

#endif
