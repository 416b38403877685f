/* Which of the 58 events can be counted here, by this user: each distinct one is opened once, and closed. */
#ifndef MONITORING_EVENTS_PROBE_H
#define MONITORING_EVENTS_PROBE_H

#include "monitoring/perf_ops.h"
#include "monitoring/reading.h"

enum events_reach { /* the most that is granted */
                    REACH_NONE,
                    REACH_USER,   /* own processes, without the kernel's part */
                    REACH_OWN,    /* own processes */
                    REACH_SYSTEM, /* whole CPUs */
};

struct events_probe {
    enum reading_state state[EVENT_NAMES]; /* ok, not_counted (held by somebody), unsupported, denied, no_fd */
    enum events_reach reach[EVENT_NAMES];  /* none unless the state is ok */
    int n_ok;                              /* names, repeated encodings included */
    enum events_reach least;               /* of those that are ok; none when there are none */
};

/* `cpu` is one that is online; an event that has CPUs of its own is opened on the first of them. One descriptor is open at a time. */
void events_probe(struct events_probe *out, const struct events *ev, int cpu, const struct perf_ops *ops);

/* The first CPU that is online, by the files below `sysfs`; 0 where they don't tell. */
int events_first_cpu(const char *sysfs);

/* Does the NMI watchdog hold a counter of every CPU? By the files below `proc` ("/proc"); no when they don't tell. */
bool events_nmi_watchdog(const char *proc);

/* Why an event cannot be counted, by what its open() answered (negative errno). */
enum reading_state events_open_state(int rc);

#endif
