/* In whose code some processes spend their CPU time: the features from FEATURE_CODE on.
 *
 * Every CPU is looked at CODE_HZ times a second while it runs something in user mode, whoever's it is; each look that finds one of these
 * processes stands for 1 / CODE_HZ seconds of it. That needs the right to watch whole CPUs, and no counter of the hardware. It tells jobs
 * apart that count alike: their time lies in other pages of the libraries that they call. See monitoring/code_map.
 *
 * As in monitoring/procs, each process is measured from the first read that finds it on. */
#ifndef MONITORING_CODE_H
#define MONITORING_CODE_H

#include <stddef.h>

#include "monitoring/code_map.h"
#include "monitoring/perf_ops.h"
#include "monitoring/procs.h"
#include "monitoring/reading.h"

enum {
    CODE_HZ = 500,
    CODE_RING_SIZE = 64 << 10, /* of each CPU; fewer looks are taken where reads are so rare that it would not do */
    CODE_MAP_MAX = 16 << 20,   /* bytes of one process's map */
};

struct codes_want { /* what it points at must outlive it */
    const struct perf_ops *ops;
    const char *sysfs, *proc; /* "/sys", "/proc" */
    int *fds_left;            /* as in struct counters_want */
};

/* All that look at this machine, which they do together: whoever reads empties the rings for all. */
struct codes;
struct code; /* one of them */

/* NULL: out of memory. Nothing is watched until there are processes. */
struct codes *codes_new(const struct codes_want *want);
void codes_free(struct codes *all); /* when all that looked have been freed */

/* One that reads at this interval. NULL: out of memory. */
struct code *code_new(struct codes *all, int interval_ms);
void code_free(struct code *c);

/* What these processes did since the last read. Not counted: there were none, looks were lost, or memory is out. Denied and so on:
 * why CPUs cannot be watched, or a process's map not be read. */
void code_read(struct code *c, const struct procs_id *v, size_t n, struct reading out[CODE_PLACES]);

#endif
