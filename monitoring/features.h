/* What a profile is made of: the 58 hardware events, what the kernel's software counts in the same scope, what /proc says of a
 * launch's own processes, what the driver reads from its log, and in whose code those processes were. Whoever keeps or sends values says
 * the names of their features with them, so that features may come and go; but samples that older versions kept as text without names
 * are in this order, so what is new comes at the end. */
#ifndef MONITORING_FEATURES_H
#define MONITORING_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/event_names.h"

enum feature_kind {
    FEATURE_COUNT, /* grew by this over the interval */
    FEATURE_GAUGE, /* its mean over the interval */
};

enum { CODE_GROUPS = 24 };

enum {
    FEATURE_SOFTWARE = EVENT_NAMES, /* perf's software events */
    FEATURE_CONTEXT_SWITCHES = FEATURE_SOFTWARE,
    FEATURE_CPU_MIGRATIONS,
    FEATURE_MINOR_FAULTS,
    FEATURE_MAJOR_FAULTS,
    FEATURE_PROC,                         /* sums over the launch's processes */
    FEATURE_PROC_CPU_TIME = FEATURE_PROC, /* s, as the four that are times */
    FEATURE_PROC_RUN_DELAY,               /* waited for a CPU */
    FEATURE_PROC_TIMESLICES,
    FEATURE_PROC_USER_TIME,
    FEATURE_PROC_SYSTEM_TIME,
    FEATURE_PROC_MINOR_FAULTS,
    FEATURE_PROC_MAJOR_FAULTS,
    FEATURE_PROC_RSS, /* bytes; a gauge, as is the next */
    FEATURE_PROC_THREADS,
    FEATURE_PROC_READ_CHARS, /* bytes, those from caches, pipes and sockets included */
    FEATURE_PROC_WRITE_CHARS,
    FEATURE_PROC_READ_CALLS,
    FEATURE_PROC_WRITE_CALLS,
    FEATURE_LOG, /* the driver fills these */
    FEATURE_LOG_ITERATIONS = FEATURE_LOG,
    FEATURE_LOG_GC_TIME, /* s */
    FEATURE_LOG_RECORDS, /* trained */
    FEATURE_JVM, /* CPU time of what a JVM does for itself, s: the part of FEATURE_PROC_CPU_TIME that no job asked for */
    FEATURE_JVM_COMPILE_TIME = FEATURE_JVM,
    FEATURE_JVM_COLLECT_TIME,
    FEATURE_CODE, /* in whose code those processes were, by samples, s: see monitoring/code */
    FEATURE_CODE_GENERATED = FEATURE_CODE,
    FEATURE_CODE_PAGES, /* CODE_GROUPS groups of libraries' pages */
    FEATURES = FEATURE_CODE_PAGES + CODE_GROUPS,
};

extern const char *const feature_names[FEATURES];

enum feature_kind feature_kind(int feature);

/* The place of a name, -1: it is none of them. */
int feature_index(const char *name);

/* --- features as somebody else has them: another version's, in whatever order --- */
enum { FEATURE_LIST_MAX = 1024 };

struct feature_list {
    size_t n;
    int16_t at[FEATURE_LIST_MAX]; /* our place of each; -1: we don't know it */
};

/* Appends our names with one comma between two. */
void feature_list_put(struct buf *to);

/* -EINVAL: no names, an empty one, too many, or one of ours twice. */
int feature_list_read(struct feature_list *out, const char *names, struct err *e);

#endif
