#include "monitoring/features.h"

#include <string.h>

/* clang-format off */
const char *const feature_names[FEATURES] = {
    EVENT_NAMES_LIST,
    [FEATURE_CONTEXT_SWITCHES] = "context-switches",
    [FEATURE_CPU_MIGRATIONS] = "cpu-migrations",
    [FEATURE_MINOR_FAULTS] = "minor-faults",
    [FEATURE_MAJOR_FAULTS] = "major-faults",
    [FEATURE_PROC_CPU_TIME] = "proc/cpu-time",
    [FEATURE_PROC_RUN_DELAY] = "proc/run-delay",
    [FEATURE_PROC_TIMESLICES] = "proc/timeslices",
    [FEATURE_PROC_USER_TIME] = "proc/user-time",
    [FEATURE_PROC_SYSTEM_TIME] = "proc/system-time",
    [FEATURE_PROC_MINOR_FAULTS] = "proc/minor-faults",
    [FEATURE_PROC_MAJOR_FAULTS] = "proc/major-faults",
    [FEATURE_PROC_RSS] = "proc/rss",
    [FEATURE_PROC_THREADS] = "proc/threads",
    [FEATURE_PROC_READ_CHARS] = "proc/read-chars",
    [FEATURE_PROC_WRITE_CHARS] = "proc/write-chars",
    [FEATURE_PROC_READ_CALLS] = "proc/read-calls",
    [FEATURE_PROC_WRITE_CALLS] = "proc/write-calls",
    [FEATURE_LOG_ITERATIONS] = "log/iterations",
    [FEATURE_LOG_GC_TIME] = "log/gc-time",
    [FEATURE_JVM_COMPILE_TIME] = "jvm/compile-time",
    [FEATURE_JVM_COLLECT_TIME] = "jvm/collect-time",
    [FEATURE_LOG_RECORDS] = "log/records",
    [FEATURE_CODE_GENERATED] = "code/generated-time",
    [FEATURE_CODE_PAGES] = "code/pages-0-time", "code/pages-1-time", "code/pages-2-time", "code/pages-3-time",
    "code/pages-4-time", "code/pages-5-time", "code/pages-6-time", "code/pages-7-time", "code/pages-8-time",
    "code/pages-9-time", "code/pages-10-time", "code/pages-11-time", "code/pages-12-time", "code/pages-13-time",
    "code/pages-14-time", "code/pages-15-time", "code/pages-16-time", "code/pages-17-time", "code/pages-18-time",
    "code/pages-19-time", "code/pages-20-time", "code/pages-21-time", "code/pages-22-time", "code/pages-23-time",
};
/* clang-format on */

enum feature_kind feature_kind(int feature)
{
    return feature == FEATURE_PROC_RSS || feature == FEATURE_PROC_THREADS ? FEATURE_GAUGE : FEATURE_COUNT;
}

int feature_index(const char *name)
{
    for (int i = 0; i < FEATURES; i++)
        if (strcmp(name, feature_names[i]) == 0)
            return i;
    return -1;
}
