#include "store/times.h"

#include <math.h>

/* Zones differ by so much; clocks may disagree by so much the other way. */
static const double ZONE_S = 900, EARLY_S = 60;

static double begin_ms(const struct store_epoch *ep)
{
    return ep->end_ms > 0 ? (double)ep->end_ms - ep->seconds * 1000.0 : (double)NAN;
}

/* The first epoch that this attempt trained, NULL: none. */
static const struct store_epoch *first_of(const struct store_attempt *a, const struct store_epoch *epochs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (epochs[i].attempt == a->number)
            return &epochs[i];
    return NULL;
}

double times_startup_s(const struct store_attempt *a, const struct store_epoch *epochs, size_t n)
{
    const struct store_epoch *first = first_of(a, epochs, n);
    if (!first || !isnan(a->startup_s))
        return a->startup_s;
    double s = (begin_ms(first) - (double)a->started_ms) / 1000.0 + EARLY_S;
    return isnan(s) ? s : fmax(0, s - ZONE_S * floor(s / ZONE_S) - EARLY_S);
}

size_t times_epochs(struct times_epoch *out, const struct store_attempt *a, const struct store_epoch *epochs, size_t n)
{
    const struct store_epoch *first = first_of(a, epochs, n);
    double startup_s = times_startup_s(a, epochs, n);
    double begun_s = isnan(startup_s) ? 0 : startup_s, next_s = begun_s;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct store_epoch *ep = &epochs[i];
        if (ep->attempt != a->number || ep->epoch < 1)
            continue;
        double by_stamps_s = begun_s + (begin_ms(ep) - begin_ms(first)) / 1000.0;
        double start_s = isnan(by_stamps_s) ? next_s : by_stamps_s;
        next_s = start_s + ep->seconds;
        out[found++] = (struct times_epoch){ ep, start_s, next_s };
    }
    return found;
}

double times_on_clock(double stamp_ms, double now_ms)
{
    const double zone_ms = ZONE_S * 1000;
    return stamp_ms > 0 ? stamp_ms + zone_ms * round((now_ms - stamp_ms) / zone_ms) : now_ms;
}
