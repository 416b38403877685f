#include "core/remaining.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z80 1.2816 /* a normal distribution's 10 % */

void remaining_add(struct remaining_trials *t, double seconds)
{
    t->n++;
    t->sum_s += seconds;
    t->sum_sq += seconds * seconds;
}

bool remaining_by_trials(const struct remaining_trials *t, double left, double used_s, double at_once,
                         struct remaining *out)
{
    if (t->n < 2)
        return false;
    double n = (double)t->n, mean = t->sum_s / n;
    double var = fmax((t->sum_sq - n * mean * mean) / (n - 1), 0);
    double spread = Z80 * sqrt(var * (left + left * left / n)); /* of their sum, the mean itself being uncertain */
    double sum = fmax(left * mean - used_s, 0);
    *out = (struct remaining){ fmax(sum - spread, 0) / at_once, (sum + spread) / at_once };
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool remaining_by_epochs(const double *seconds, size_t n, double left, double at_once, struct remaining *out)
{
    double sorted[REMAINING_EPOCHS_MAX];
    if (n < REMAINING_EPOCHS_MIN || n > REMAINING_EPOCHS_MAX)
        return false;
    memcpy(sorted, seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    *out = (struct remaining){ sorted[n / 10] * left / at_once, sorted[n - 1 - n / 10] * left / at_once };
    return true;
}
