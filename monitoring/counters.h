/* A set of events that are being counted: of a whole machine, of a cgroup, or of some processes. How much each counted between two reads.
 *
 *   system   every online CPU, whoever runs there; an event that has CPUs of its own (a mask in sysfs) on those alone
 *   cgroup   the same, while something of one cgroup runs there
 *   process  every thread of the given processes. Where the kernel can (Linux 5.13), the threads that those start are counted from
 *            their birth on, and their descriptors are kept as long as the process; elsewhere a new thread is counted from the
 *            next counters_follow() on. Child processes are processes of their own.
 *
 * An event that fails is closed everywhere and stops no other; it is tried again only when CPUs come or go, and in scope process never. Sums are never partial: an
 * event that cannot be opened in one place is not counted at all. Events of equal encoding are opened once and reported
 * under each name that was chosen. When descriptors run out, the software events and those at the end of the list are the last to
 * be given up. */
#ifndef MONITORING_COUNTERS_H
#define MONITORING_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "monitoring/events.h"
#include "monitoring/features.h"
#include "monitoring/perf_ops.h"
#include "monitoring/procs.h"
#include "monitoring/reading.h"

enum counters_scope { COUNTERS_SYSTEM, COUNTERS_CGROUP, COUNTERS_PROCESS };

enum {
    COUNTERS_READINGS = FEATURE_PROC, /* the 58 events and perf's software events */
    COUNTERS_PLACES_MAX =
        2048, /* CPUs, or threads when they were opened: beyond, all events are without a descriptor */
};

struct counters_want { /* what it points at must outlive the counters */
    const struct perf_ops *ops;
    const struct events *events;
    enum counters_scope scope;
    int cgroup_fd;     /* COUNTERS_CGROUP: the cgroup's folder; taken, whatever comes of it */
    const char *sysfs; /* "/sys": which CPUs are online */
    const char *proc;  /* "/proc" */
    const bool *only;  /* which of the 58 events are counted, the others being absent; NULL: all. Not looked at later */
    int *fds_left;     /* how many may still be opened, counted down and up; shared; NULL: as many as there are */
};

struct counters;

/* Opens all that can be opened; in scope process nothing yet. NULL: out of memory. */
struct counters *counters_new(const struct counters_want *want);
void counters_free(struct counters *c);

/* Scope process: whom to count from now on. Those that are not among them any more are closed, and what they counted since the last
 * read is kept for the next. */
void counters_follow(struct counters *c, const struct procs_id *v, size_t n);

/* What was counted since the last read, or the opening; 64-bit counters that wrap are followed, and those of 48 bits. Follows CPUs that
 * came or went first. */
void counters_read(struct counters *c, struct reading out[COUNTERS_READINGS]);

/* How many descriptors events may take, of as many as this process can get: its limit is raised to that. `others` are left to all else, and no more
 * than `most` are ever taken; half of few. */
int counters_may_open(int others, int most);

#endif
