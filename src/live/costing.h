/* Training steps with what they cost by the study's objective. Where that is not time alone, a step waits until the meters have told of
 * the power at which it was trained. */
#ifndef LIVE_COSTING_H
#define LIVE_COSTING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/objective.h"
#include "core/tuner.h"
#include "live/study.h"

struct costing {
    struct study *study;
    enum objective objective;
    struct objective_reference ref; /* power_w NAN: not known yet */
    const struct meter_ops *meter;  /* by which power is told, of the whole study; NULL: not known yet */
    bool told;                      /* that it is not known */
};

/* Steps of a trial that wait, oldest first. Zeros: none. */
struct costing_steps {
    struct costing_step {
        struct tuner_event ev;
        double from_ms, to_ms; /* since 1970 */
    } * v;
    size_t n, cap;
    double power_w; /* the newest that was known; NAN or 0: none */
};

/* The reference of a study that is gone on with is the one that it was begun with (its decision "objective"). */
int costing_open(struct costing *c, struct study *s, struct err *e);

/* Keeps a step. -ENOMEM. */
int costing_add(struct costing_steps *of, const struct tuner_event *ev, double from_ms, double to_ms);
void costing_drop(struct costing_steps *of);

/* Takes the oldest step whose cost is known, with that in `seconds`; `all`: also one for which the newest power, or else its time, must do,
 * as for one that has waited for two readings. 1; 0: there is none; negative: the reference could not be stored. */
int costing_take(struct costing *c, struct costing_steps *of, bool all, double now_ms, struct tuner_event *out,
                 struct err *e);

/* What an epoch that ended now cost. */
double costing_epoch(struct costing *c, struct costing_steps *of, double seconds, double records, double now_ms);

/* Are ratios of costs what the objective says? Not while power is not known. */
bool costing_counts(const struct costing *c);

#endif
