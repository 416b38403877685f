#include "core/pace.h"

enum { WINDOWS = 2 }; /* that an epoch has room for, else it is a short one */

void pace_step(struct pace *p, int epoch, double end_ms, double records, bool sized, double window_s)
{
    if (epoch != p->epoch || p->first_ms == 0)
        p->first_ms = end_ms;
    p->epoch = epoch;
    p->records += records;
    bool lasts = sized || end_ms - p->first_ms >= 1000 * window_s * WINDOWS;
    if (p->unit == PACE_OPEN && lasts)
        p->unit = PACE_STEPS;
}

double pace_epoch(struct pace *p, double told_records)
{
    double records = p->records > 0 ? p->records : told_records;
    p->records = p->first_ms = 0;
    if (p->unit == PACE_OPEN)
        p->unit = PACE_EPOCHS;
    return records > 0 ? records : 1;
}
