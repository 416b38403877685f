/* Normed values. What lies beyond where trials usually begin says little more than that it is bad, so it is squashed; and among the best, small
 * differences are what the search is about, so they are stretched. */
#include <math.h>
#include <stdlib.h>

#include "search/thaw_state.h"

#define SQUASHED 0.15 /* what all that is worse than the begin comes to */
#define STRETCHED 0.7 /* how much of the good end is by the logarithm of what is left to the best */
#define LEFT 0.02     /* what is always left to the best */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double thaw_warped(const struct thaw_warp *w, double value)
{
    double gain = (w->begin - value) / w->scale;
    if (!(gain > 0))
        return SQUASHED * (1 - exp(isfinite(gain) ? gain : -1e3));
    double left = fmax(1 + LEFT - gain, 1e-3);
    double by_log = (log1p(LEFT) - log(left)) / (log1p(LEFT) - log(LEFT));
    return -(1 - STRETCHED) * gain - STRETCHED * by_log;
}

struct thaw_warp thaw_warp_of(const struct thaw_log *log, size_t n, double *work)
{
    struct thaw_warp w = { .scale = 1 };
    double best = INFINITY;
    size_t firsts = 0;
    for (size_t i = 0; i < n; i++) {
        best = fmin(best, log[i].value);
        if (log[i].step == 0 && isfinite(log[i].value))
            work[firsts++] = log[i].value;
    }
    if (firsts == 0)
        return w;
    qsort(work, firsts, sizeof *work, by_value);
    w.begin = work[firsts / 2];
    w.scale = fmax(w.begin - best, 1e-9 + 1e-6 * fabs(w.begin));
    return w;
}
