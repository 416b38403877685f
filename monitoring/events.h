/* The 58 events (event_names.h) as encodings that the kernel takes, and how often each can run. Nothing is opened here.
 *
 * Who is asked, in this order: the PMU's own files in sysfs (the kernel's exact encoding, its scale and unit), libpfm (the generic
 * names, restricted to its `perf` PMU so that the answer does not depend on the CPU), a table of ours. That an event is
 * resolved does not say that it can be counted: the kernel takes generic names on machines that lack the counter, and
 * answers only when it is opened (events_probe.h). */
#ifndef MONITORING_EVENTS_H
#define MONITORING_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "monitoring/event_names.h"
#include "monitoring/sysfs_pmu.h"

struct event_attr { /* of perf_event_open() */
    uint32_t type;
    uint64_t config, config1, config2;
    bool exclude_kernel_ok; /* false: a PMU that refuses exclusion bits; leave every exclude_* at 0 */
};

enum event_by { EVENT_BY_NONE, EVENT_BY_SYSFS, EVENT_BY_LIBPFM, EVENT_BY_TABLE };

enum { EVENT_CPUS_SIZE = 128, EVENT_WHY_SIZE = 120 };

struct event_spec {
    const char *name; /* of event_names[] */
    enum event_by by;
    struct event_attr attr;
    int same_as;  /* index of the first event with an equal encoding, which is opened for both; -1: itself */
    double scale; /* what its count is to be multiplied by, also where same_as has another */
    char unit[SYSFS_UNIT_SIZE]; /* "": a count */
    char cpus[EVENT_CPUS_SIZE]; /* where to open it, as the kernel lists CPUs; "": on all that are online */
    bool core_counter;          /* competes for the core PMU's counters */
    char why[EVENT_WHY_SIZE];   /* nobody knows it: why; else "" */
};

struct event_core { /* the core PMU */
    bool found;
    char name[16]; /* "cpu", "cpu_core" */
    uint32_t type;
    char cpus[EVENT_CPUS_SIZE];
    char family[32];    /* "Intel Skylake"; "" when the table does not know it */
    int general, fixed; /* counters of one CPU: for any event; for instructions, cycles and reference cycles alone */
    bool smt;           /* hyper-threads share a core's counters */
};

struct events {
    struct event_spec v[EVENT_NAMES];
    int n_resolved, n_distinct; /* by anyone; without those that are the same as an earlier one */
    int n_core;                 /* of the distinct ones: those that compete for the core PMU's counters */
    struct event_core core;
};

/* Reads files below `sysfs` ("/sys") only. An event that nobody knows, and a file that cannot be understood, stop nothing: `why` tells.
 * One thread at a time, since libpfm keeps global state. -ENOMEM, -EMFILE, -ENFILE: *out is untouched, as an answer that
 * depends on what ran short would be another one next time. */
int events_resolve(struct events *out, const char *sysfs, struct err *e);

/* The text behind `by`: "sysfs", "libpfm", "table", "-". */
const char *event_by_name(enum event_by by);

/* "4:0x4f2e", "4:0x1cd,config1=0x3"; "-" when nobody knows it. */
enum { EVENT_ENCODING_SIZE = 96 };
const char *event_encoding(const struct event_spec *s, char out[EVENT_ENCODING_SIZE]);

/* An estimate of the share of time (0…1) that each event will run when all are open on a CPU at once. Out: NAN for what nobody
 * knows or `left_out` (NULL: nothing) names, 1 for what needs no core counter; a repeated encoding has its first one's share.
 *
 * The kernel fills the counters with events in their order, stops at the first that finds none, and begins one event later at the next
 * turn. That is done here with the counters of the PMU's family (4 general and 3 fixed ones where it is not known), less the one
 * that the NMI watchdog holds. Not in it: events that only some counters can count, extra registers that cache events of Intel
 * share, other users' events, and what hyper-threads take from each other. */
void events_forecast(const struct events *ev, bool nmi_watchdog, const bool *left_out, double share[EVENT_NAMES]);

#endif
