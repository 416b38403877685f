/* The stamps of a log, on a clock that is never set. They are printed by the wall clock, which somebody may set while the log is
 * written (or which changes its zone's offset): then a step of nine seconds is printed as two hours. What is printed beside them
 * knows better: BigDL's own clock, which it prints too, and when a line came. Pure. */
#ifndef BIGDL_LOG_CLOCK_H
#define BIGDL_LOG_CLOCK_H

#include "bigdl/log.h"

struct log_clock { /* zeroed: no line was seen */
    bool begun, met;
    bool steps;       /* the newest stamped line is a training step, of `epoch`, at `wall_s` by BigDL's clock */
    int64_t shift_ms; /* printed stamps are so much ahead of the first ones' clock */
    int64_t last_ms;  /* the newest stamp, mended */
    int64_t ahead_ms; /* met: a mended stamp is at most so much ahead of when its line came */
    int epoch;
    double wall_s;
};

/* Mends the stamp of the next line. `now_ms`: when it came, by a clock that is never set and goes on through suspends;
 * `live`: it had been written just before, and not while nobody read. Lines without a stamp are left alone. */
void log_clock_mend(struct log_clock *c, struct log_event *ev, int64_t now_ms, bool live);

#endif
