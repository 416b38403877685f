/* What /proc says of some processes together: the features from FEATURE_PROC on, as they grew between two reads.
 *
 * Each process is measured from the first read that finds it on; what it did before counts nowhere, and what it did between the last read
 * and its end is not known. So a process that comes or goes makes neither a jump nor a negative delta. A thread that is new
 * in a process that was there at the read before was born since: all it did counts. What a thread did between the last read and its
 * end is in the process's user and system time, but not in its CPU time, run delay and time slices, which are told by thread. */
#ifndef MONITORING_PROCS_H
#define MONITORING_PROCS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "monitoring/features.h"
#include "monitoring/reading.h"

enum {
    PROCS_READINGS = FEATURE_LOG - FEATURE_PROC,
    PROCS_CHORES = FEATURE_CODE - FEATURE_JVM,
    PROCS_MAX = 1024,           /* processes */
    PROCS_THREADS_MAX = 1 << 14 /* of one process; in procs_read() of all together */
};

struct procs_id { /* a process: its pid may be used again, its start time tells */
    pid_t pid;
    uint64_t start_ticks; /* as base/proc.h has it */
};

struct procs;

/* `proc` stands for /proc and must outlive it. NULL: out of memory. */
struct procs *procs_new(const char *proc);
void procs_free(struct procs *p);

/* Reads all of these processes, and forgets those that are not among them any more. `out` begins with FEATURE_PROC, `chores` with
 * FEATURE_JVM: of threads that go by the names that a JVM gives them, not counted while there is none. Not counted: where
 * no process was there at the read before, too, and from the process on that is one too many. Denied, unsupported: where
 * one of them is. -ENOMEM: both are untouched, and what was gained since the last read is lost. */
int procs_read(struct procs *p, const struct procs_id *v, size_t n, struct reading out[PROCS_READINGS],
               struct reading chores[PROCS_CHORES]);

struct procs_tids {
    pid_t *v; /* owned; free() it */
    size_t n, cap;
};

/* The threads that the process has now, ascending, in place of what `out` had. -ESRCH: it has gone; -E2BIG: more than
 * PROCS_THREADS_MAX; -ENOMEM; -errno. */
int procs_threads(struct procs_tids *out, const char *proc, const struct procs_id *id);

#endif
