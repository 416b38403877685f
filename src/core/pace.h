/* What a measuring window is made of: training steps, or, where an epoch is over before two windows of them, or no steps are told,
 * whole epochs. Found out from a trial's first epoch, and the same from then on. Pure. */
#ifndef CORE_PACE_H
#define CORE_PACE_H

#include <stdbool.h>

struct pace { /* zeroed: nothing is known */
    enum { PACE_OPEN, PACE_STEPS, PACE_EPOCHS } unit;
    int epoch;       /* of the newest step */
    double first_ms; /* when the first step of that epoch ended */
    double records;  /* of the epoch under way, as far as its steps told */
};

/* A step has ended. `sized`: it told how large its epoch is, which then is no short one. */
void pace_step(struct pace *p, int epoch, double end_ms, double records, bool sized, double window_s);

/* An epoch has ended: its records, or what is told of them where its steps told nothing. At least 1: an epoch counts, whatever it says. */
double pace_epoch(struct pace *p, double told_records);

#endif
