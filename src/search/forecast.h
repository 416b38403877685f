/* What the curve of a trial comes to. A curve so far is held against an ensemble: families of curves (powers of the epoch, exponentials, logarithms,
 * a plateau and then a fall, a straight line, nothing at all), each with several kinds of noise and weighed by how well it explains what was
 * seen; the finished curves of the same study, as examples of how one goes on that began so; and the last value. The finished curves say, too,
 * how much each of these is worth, and how wide an interval must be that holds. Pure, and the same for the same curves.
 *
 * Without finished curves there are the families alone, and what is known of families in general. */
#ifndef SEARCH_FORECAST_H
#define SEARCH_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

#include "search/unit_space.h"

/* values[i] is of epoch i + 1. NAN: none was told of it; infinite ones are as bad as can be, or as good. */
struct forecast_curve {
    const double *values;
    int n;
    const struct unit_point *at; /* the trial's hyperparameters; NULL: not known */
};

struct foretold {
    double median, low, high; /* `low` to `high` is to hold 80 % of the times; low <= median <= high */
};

struct forecast;

/* `n_dims`: of the hyperparameters, 0: they don't matter. `finished`: curves of trials of the same study that went to `epochs`; they are copied, and of more than FORECAST_FINISHED_MAX some are left
 * out. 0, -ENOMEM. */
enum { FORECAST_FINISHED_MAX = 512 };
int forecast_new(struct forecast **out, int epochs, bool maximise, size_t n_dims, const struct forecast_curve *finished,
                 size_t n);

/* The value after `epoch`, which is told already or lies ahead, of a curve that may have gone any way. 0; -ENODATA: no value was told yet;
 * -ENOMEM. What was learnt from the finished curves about one epoch seen from another is kept in *f. */
int forecast_at(struct forecast *f, const struct forecast_curve *c, int epoch, struct foretold *out);

/* The first epoch at which the curve is as good as `target`: as the best, the middle and the worst of the interval have it; 0: not within
 * the epochs. Where it has come to it already, all three are that epoch. As forecast_at(). */
struct foretold_reach {
    int soonest, middle, latest;
};
int forecast_reach(struct forecast *f, const struct forecast_curve *c, double target, struct foretold_reach *out);

void forecast_free(struct forecast *f);

#endif
