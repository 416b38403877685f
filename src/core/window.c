#include "core/window.h"

#include <math.h>

#include "core/stats.h"

void window_begin(struct window *w, double now_s, double settle_s)
{
    *w = (struct window){ .from_t_s = now_s + settle_s };
}

void window_break(struct window *w)
{
    w->seconds = w->records = 0;
    w->n = 0;
}

/* Times are differences of sums. */
static double slack_s(double at_s)
{
    return 1e-9 * (1.0 + fabs(at_s));
}

bool window_add(struct window *w, double end_s, double seconds, double records)
{
    if (!(seconds > 0) || !(records > 0) || end_s - seconds < w->from_t_s - slack_s(end_s))
        return false;
    if (w->n == 0)
        w->begin_s = end_s - seconds;
    w->per_record[w->n % WINDOW_KEPT] = seconds / records;
    w->n++;
    w->seconds += seconds;
    w->records += records;
    return true;
}

bool window_lasted(const struct window *w, struct span span)
{
    return w->n >= span.steps && w->seconds >= span.seconds - slack_s(w->begin_s + w->seconds);
}

double window_value(const struct window *w)
{
    size_t n = w->n < WINDOW_KEPT ? w->n : WINDOW_KEPT;
    return n ? stats_median(w->per_record, n) : NAN;
}
