/* Reads meters of this machine (monitoring/meter.h), all of them at multiples of one interval from the moment that metering began.
 *
 * A tick that was due while nobody looked, or nobody reads what is said, is missed: nothing is read then, and what is read at the
 * next one covers its time, as meters of energy do by themselves. Beginning reads once, so that there is something to take differences
 * from, and tells nothing. A meter that fails says so in what it reads, and stops neither the others nor itself. */
#ifndef NODE_METERS_H
#define NODE_METERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "monitoring/meter.h"

enum { METERS_OPEN_MAX = 8, METERS_WATTS_MAX = 100000 };

struct meters;

struct meters_on {            /* what it points at must outlive the meters */
    const char *sysfs, *proc; /* "/sys", "/proc" */
    const struct perf_ops *ops;
    int64_t (*now_ns)(void);                           /* of the ticks: samplers_clock(), or a test's */
    const struct meter_ops *(*find)(const char *name); /* meter_find_local(), or a test's */
};

struct meters_want {
    const char *names;           /* "cpu,rapl": see meter_are_names(); not kept */
    int interval_ms;             /* above 0 */
    double idle_w, cpu_w, max_w; /* 0: not given */
};

/* Nothing is open. NULL: memory. */
struct meters *meters_new(const struct meters_on *on);
void meters_free(struct meters *m); /* NULL is fine */

/* Closes what is open and begins anew. The names of those that are read from now on are appended to `opened`, with commas between; the
 * others to `refused`: "NAME: why", with "; " between two and no other ';'. */
void meters_set(struct meters *m, const struct meters_want *want, struct buf *opened, struct buf *refused);
void meters_stop(struct meters *m);

/* When the next tick is due, by now_ns(); INT64_MAX: never. */
int64_t meters_due(const struct meters *m);

struct meters_taken { /* what one meter read at one tick; lives until the next call */
    const struct meter_ops *meter;
    const struct meter_reading *v;
    int n; /* 1 or more */
};

/* One meter whose tick is due; false: there is none (any more). `heard` false: nobody would read it, so the ticks are missed. */
bool meters_take(struct meters *m, bool heard, struct meters_taken *out);

#endif
