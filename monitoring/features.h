/* What a profile is made of, in the order of every sample, profile and model: the 58 hardware events, what the kernel's software
 * counts in the same scope, what /proc says of a launch's own processes, what the driver reads from its log, and in whose code
 * those processes were. */
#ifndef MONITORING_FEATURES_H
#define MONITORING_FEATURES_H

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

#endif
