/* Ticks at multiples of an interval, so that being late does not add up. Pure; time is any clock that only goes forward, in whatever unit. */
#ifndef BASE_TICKER_H
#define BASE_TICKER_H

#include <stdint.h>

struct ticker {
    int64_t next, interval;
};

static inline struct ticker ticker_from(int64_t now, int64_t interval)
{
    return (struct ticker){ .next = now + interval, .interval = interval };
}

/* The ticks that are due, 0: none; the next one is ahead of `now` then. */
static inline uint64_t ticker_take(struct ticker *t, int64_t now)
{
    if (now < t->next)
        return 0;
    int64_t due = (now - t->next) / t->interval + 1;
    t->next += due * t->interval;
    return (uint64_t)due;
}

#endif
