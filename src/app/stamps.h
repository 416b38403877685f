/* The stamps of a log, on a clock that is never set. They are printed by the wall clock, which somebody may set while the log is
 * written (or which changes its zone's offset): then a step of nine seconds is printed as two hours. What is printed beside them
 * knows better: the application's own clock, where it prints one too, and when a line came. Pure. */
#ifndef APP_STAMPS_H
#define APP_STAMPS_H

#include "app/report.h"

struct stamps { /* zeroed: no line was seen */
    bool begun, met;
    bool steps; /* the newest stamped line is a training step, of `epoch`, at `wall_s` by the application's clock */
    int64_t shift_ms; /* printed stamps are so much ahead of the first ones' clock */
    int64_t last_ms;  /* the newest stamp, mended */
    int64_t ahead_ms; /* met: a mended stamp is at most so much ahead of when its line came */
    int epoch;
    double wall_s;
};

/* Mends the stamp of the next line. `now_ms`: when it came, by a clock that is never set and goes on through suspends;
 * `live`: it had been written just before, and not while nobody read. Lines without a stamp are left alone. */
void stamps_mend(struct stamps *c, struct app_report *ev, int64_t now_ms, bool live);

#endif
