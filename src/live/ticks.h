/* Ticks at multiples of an interval, so that nothing drifts. Pure; time is any clock that only goes forward, in milliseconds. */
#ifndef LIVE_TICKS_H
#define LIVE_TICKS_H

#include <stdint.h>

struct ticks {
    uint64_t next_ms, interval_ms;
};

static inline struct ticks ticks_from(uint64_t now_ms, int interval_ms)
{
    return (struct ticks){ .next_ms = now_ms + (uint64_t)interval_ms, .interval_ms = (uint64_t)interval_ms };
}

/* How many have come since the last time; they are over then. */
static inline uint64_t ticks_take(struct ticks *t, uint64_t now_ms)
{
    uint64_t due = now_ms < t->next_ms ? 0 : (now_ms - t->next_ms) / t->interval_ms + 1;
    t->next_ms += due * t->interval_ms;
    return due;
}

#endif
