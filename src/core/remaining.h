/* How long a study still takes, as an interval that is to hold about 80 % of the times: by what its trials, or its epochs, have taken. Pure. */
#ifndef CORE_REMAINING_H
#define CORE_REMAINING_H

#include <stdbool.h>
#include <stddef.h>

enum { REMAINING_EPOCHS_MIN = 8, REMAINING_EPOCHS_MAX = 64 };

struct remaining {
    double low_s, high_s;
};

/* Trials that were trained to their end. */
struct remaining_trials {
    size_t n;
    double sum_s, sum_sq; /* of their seconds, and of the squares of these */
};

void remaining_add(struct remaining_trials *t, double seconds);

/* `left` more trials of the same kind, `at_once` at a time, of which those that run have used so much. False: fewer than two have ended, which say
 * nothing of how they differ. */
bool remaining_by_trials(const struct remaining_trials *t, double left, double used_s, double at_once,
                         struct remaining *out);

/* `left` more epochs, by the seconds of the newest ones. False: they are too few. */
bool remaining_by_epochs(const double *seconds, size_t n, double left, double at_once, struct remaining *out);

#endif
