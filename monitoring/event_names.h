/* The names of the 58 hardware events, in the order of every profile and trace. */
#ifndef MONITORING_EVENT_NAMES_H
#define MONITORING_EVENT_NAMES_H

/* The names, for whoever makes a longer list of them. */
/* clang-format off */
#define EVENT_NAMES_LIST \
    "node-stores", "node-store-misses", "node-loads", "node-load-misses", \
    "msr/tsc/", "msr/smi/", "msr/pperf/", "msr/mperf/", "msr/aperf/", \
    "iTLB-loads", "iTLB-load-misses", \
    "dTLB-stores", "dTLB-store-misses", "dTLB-loads", "dTLB-load-misses", \
    "cpu/tx-start/", "cpu/tx-conflict/", "cpu/tx-commit/", "cpu/tx-capacity/", "cpu/tx-abort/", \
    "cpu/topdown-total-slots/", "cpu/topdown-slots-retired/", "cpu/topdown-slots-issued/", \
    "cpu/topdown-recovery-bubbles/", "cpu/topdown-fetch-bubbles/", \
    "cpu/mem-stores/", "cpu/mem-loads/", \
    "cpu/el-start/", "cpu/el-conflict/", "cpu/el-commit/", "cpu/el-capacity/", "cpu/el-abort/", \
    "cpu/cycles-t/", "cpu/cycles-ct/", \
    "cpu/instructions/", "cpu/cpu-cycles/", "cpu/cache-references/", "cpu/cache-misses/", "cpu/bus-cycles/", \
    "cpu/branch-misses/", "cpu/branch-instructions/", \
    "instructions", "cpu-cycles", "cache-references", "cache-misses", "bus-cycles", "branches", "branch-misses", \
    "branch-loads", "branch-load-misses", \
    "LLC-stores", "LLC-store-misses", "LLC-loads", "LLC-load-misses", \
    "L1-icache-load-misses", "L1-dcache-stores", "L1-dcache-loads", "L1-dcache-load-misses"
/* clang-format on */

enum { EVENT_NAMES = 58 };

extern const char *const event_names[EVENT_NAMES];

/* The place of a name, -1: it is none of them. */
int event_name_index(const char *name);

#endif
