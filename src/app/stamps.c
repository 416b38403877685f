#include "app/stamps.h"

#include <math.h>

enum {
    SLACK_MS = 1000,   /* lines of several threads, and what is computed before it is printed */
    LATE_MS = 2000,    /* that the first line which was met may have waited to be read */
    UNSEEN_MS = 60000, /* that the application's clock may leave out between two steps, where nobody watched */
    UNSEEN_TIMES = 10, /* … and not without being much longer than the step */
    COARSE_MS = 1000,  /* stamps of whole seconds are as much off */
};

/* Between two steps of an epoch with nothing printed between them, by the application's own clock; NAN: the line is no such step. */
static double gap_ms(const struct stamps *c, const struct app_report *ev)
{
    bool follows = ev->kind == REPORT_STEP && c->steps && ev->epoch == c->epoch && ev->wall_s >= c->wall_s;
    return follows ? (ev->wall_s - c->wall_s) * 1000 : (double)NAN;
}

/* By how much the printed clock was set between the last line and this one, which is mended as if it was not; 0: it was not. */
static int64_t step_ms(const struct stamps *c, const struct app_report *ev, int64_t stamp_ms, int64_t now_ms, bool live)
{
    double known = gap_ms(c, ev), took = (double)(stamp_ms - c->last_ms);
    double slack = SLACK_MS + (ev->stamp_coarse ? COARSE_MS : 0);
    bool back = took < (isnan(known) ? 0 : known) - slack;
    double early =
        live && c->met ? (double)(stamp_ms - now_ms - c->ahead_ms) : (double)-INFINITY; /* before it was written */
    bool forth = early > LATE_MS || (early > slack && took > known + slack);
    bool unseen = !live && took > known + UNSEEN_MS && took > UNSEEN_TIMES * known;
    if (!back && !forth && !unseen)
        return 0;
    double by_arrival = live && c->met ? fmax(0, (double)(now_ms + c->ahead_ms - c->last_ms)) : 0;
    return (int64_t)round(took - (isnan(known) ? by_arrival : known));
}

void stamps_mend(struct stamps *c, struct app_report *ev, int64_t now_ms, bool live)
{
    if (ev->stamp_ms < 0)
        return;
    int64_t stamp_ms = ev->stamp_ms - c->shift_ms;
    if (ev->kind == REPORT_PAUSE) { /* of the runtime's own threads, and by its own stamps */
        ev->stamp_ms = stamp_ms;
        return;
    }
    int64_t step = c->begun ? step_ms(c, ev, stamp_ms, now_ms, live) : 0;
    c->shift_ms += step;
    stamp_ms -= step;
    if (live) {
        int64_t ahead = stamp_ms - now_ms;
        c->ahead_ms = !c->met || ahead > c->ahead_ms ? ahead : c->ahead_ms;
        c->met = true;
    }
    c->begun = true;
    c->last_ms = stamp_ms > c->last_ms || step != 0 ? stamp_ms : c->last_ms;
    c->steps = ev->kind == REPORT_STEP && isfinite(ev->wall_s);
    c->epoch = ev->epoch;
    c->wall_s = ev->wall_s;
    ev->stamp_ms = stamp_ms < 0 ? 0 : stamp_ms;
}
