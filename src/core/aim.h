/* When a study has what was wanted of it, or has used up what it was given. Pure. */
#ifndef CORE_AIM_H
#define CORE_AIM_H

#include <stdbool.h>
#include <stdint.h>

enum { AIM_WHY_MAX = 128 };

struct aim {
    double target; /* of the metric; NAN: none */
    bool maximise;
    double seconds, joules; /* budgets; 0: without end */
    int64_t epochs, launches;
    double price; /* money, as the two below make it; 0: without end */
    double per_core_hour, per_kwh;
};

/* What the study has cost so far; joules NAN: not known. */
struct expense {
    double seconds, joules, core_seconds;
    int64_t epochs, launches;
};

/* What that is in money. Joules that are not known cost nothing: whoever asks says so. */
double aim_price(const struct aim *a, const struct expense *s);

/* Has a trial that is worth `value` reached the target? NAN: never. */
bool aim_is_reached(const struct aim *a, double value, char why[AIM_WHY_MAX]);

/* Is a budget used up, or would it be by `next`, the cost of one more epoch, with what others under way will have cost? */
bool aim_is_spent(const struct aim *a, const struct expense *s, const struct expense *next, char why[AIM_WHY_MAX]);

#endif
