#include "monitoring/features.h"

#include <string.h>

/* clang-format off */
const char *const feature_names[FEATURES] = {
    /* as event_names[] has them */
    "node-stores", "node-store-misses", "node-loads", "node-load-misses",
    "msr/tsc/", "msr/smi/", "msr/pperf/", "msr/mperf/", "msr/aperf/",
    "iTLB-loads", "iTLB-load-misses",
    "dTLB-stores", "dTLB-store-misses", "dTLB-loads", "dTLB-load-misses",
    "cpu/tx-start/", "cpu/tx-conflict/", "cpu/tx-commit/", "cpu/tx-capacity/", "cpu/tx-abort/",
    "cpu/topdown-total-slots/", "cpu/topdown-slots-retired/", "cpu/topdown-slots-issued/",
    "cpu/topdown-recovery-bubbles/", "cpu/topdown-fetch-bubbles/",
    "cpu/mem-stores/", "cpu/mem-loads/",
    "cpu/el-start/", "cpu/el-conflict/", "cpu/el-commit/", "cpu/el-capacity/", "cpu/el-abort/",
    "cpu/cycles-t/", "cpu/cycles-ct/",
    "cpu/instructions/", "cpu/cpu-cycles/", "cpu/cache-references/", "cpu/cache-misses/", "cpu/bus-cycles/",
    "cpu/branch-misses/", "cpu/branch-instructions/",
    "instructions", "cpu-cycles", "cache-references", "cache-misses", "bus-cycles", "branches", "branch-misses",
    "branch-loads", "branch-load-misses",
    "LLC-stores", "LLC-store-misses", "LLC-loads", "LLC-load-misses",
    "L1-icache-load-misses", "L1-dcache-stores", "L1-dcache-loads", "L1-dcache-load-misses",
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
