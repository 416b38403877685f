/* Troubles that come and go, one bit for each of 64 things: which of them is to be told, so that what comes and goes in turn is not told each
 * time. Pure; time is any clock that only goes forward, in milliseconds. */
#ifndef LIVE_SPELLS_H
#define LIVE_SPELLS_H

#include <stdbool.h>
#include <stdint.h>

enum { SPELLS_MAX = 64, SPELLS_TOLD_EVERY_MS = 60000 };

struct spells {
    uint64_t told; /* bits of spells that last, and were told or began with one that was */
    uint64_t ever;
    uint64_t told_ms[SPELLS_MAX];
};

/* `on`: what is in trouble now. A spell is told when it begins, or, where the same thing's last was told less than a minute ago, as soon as the
 * minute is over, if it lasts so long. The first that is to be told, for all that are; -1: none. */
static inline int spells_take(struct spells *s, uint64_t on, uint64_t now_ms)
{
    int first = -1;
    s->told &= on;
    for (int i = 0; i < SPELLS_MAX; i++) {
        uint64_t bit = UINT64_C(1) << i;
        bool due = !(s->ever & bit) || now_ms - s->told_ms[i] >= SPELLS_TOLD_EVERY_MS;
        if (!(on & bit) || (s->told & bit) || !due)
            continue;
        s->told |= bit;
        s->ever |= bit;
        s->told_ms[i] = now_ms;
        first = first < 0 ? i : first;
    }
    return first;
}

#endif
