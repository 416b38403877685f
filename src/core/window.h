/* A measuring window: consecutive iterations under one setting, and what they say. Pure. */
#ifndef CORE_WINDOW_H
#define CORE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

enum { WINDOW_KEPT = 64 }; /* iterations whose values are kept for the median; of a longer window, the last ones */

struct window {
    double from_t_s; /* iterations that begin before it don't count */
    double begin_s;  /* of the first that counts */
    double seconds, records;
    size_t n;
    double per_record[WINDOW_KEPT];
};

/* Begins `settle_s` after `now_s`: what happens so soon after a change is no measurement, nor is the iteration under way. */
void window_begin(struct window *w, double now_s, double settle_s);

/* An epoch has ended: what was gathered is dropped, since validation and checkpoint lie there. */
void window_break(struct window *w);

/* How long a window lasts: so many seconds and whole iterations at least. */
struct span {
    double seconds;
    size_t steps;
};

/* An iteration that ended at `end_s` and took `seconds` for `records`; false when it is no measurement. */
bool window_add(struct window *w, double end_s, double seconds, double records);
bool window_lasted(const struct window *w, struct span span);

/* The median of seconds per record; NAN while there is none. */
double window_value(const struct window *w);

#endif
