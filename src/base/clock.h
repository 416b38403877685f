/* Time that only goes forward: for deadlines, which wait while the machine sleeps, and for durations, which do not. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Since the machine was started, suspends included; nobody can set it. */
static inline int64_t clock_boot_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail with this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* By how much the wall clock has been set so far: *set_ms, which stays as it is while `seen_ms` differs by reading it alone. */
static inline void clock_follow(int64_t *set_ms, int64_t seen_ms)
{
    const int64_t step_ms = 250;
    if (seen_ms - *set_ms > step_ms || *set_ms - seen_ms > step_ms)
        *set_ms = seen_ms;
}

#endif
