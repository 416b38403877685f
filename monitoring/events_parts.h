/* The inside of events.c: what libpfm and the built-in table know. */
#ifndef MONITORING_EVENTS_PARTS_H
#define MONITORING_EVENTS_PARTS_H

#include "monitoring/events.h"

/* --- libpfm (events_pfm.c) --- */

/* 0, or -ENOSYS: libpfm has nothing for this machine, and must not be asked. Each begin that succeeded needs its end. */
int event_pfm_begin(void);
void event_pfm_end(void);

/* A generic name, in any case. -ENOENT: it is none. */
int event_pfm_encode(const char *name, struct event_attr *out);

/* --- the table (events_table.c) --- */

/* What is known of a family of CPUs. */
struct event_family {
    const char *name;
    const char *pmu_name;    /* the core PMU's caps/pmu_name; NULL: the kernel has none for it */
    unsigned vendor, family; /* where caps/pmu_name is missing: this, and one of the models (none: all of the family) */
    uint8_t models[10];
    int general, general_alone, fixed; /* counters of one CPU; the second: without hyper-threading */
    bool branch_loads_are_branches;    /* the cache table's row for branches is what branch-instructions counts */
    bool old_topdown;                  /* has the five events of top-down analysis by slots of the pipeline */
    uint64_t mem_stores;               /* the config of cpu/mem-stores/, 0: not known */
};

/* By caps/pmu_name ("": there is none), else by the CPU (NULL: not known). NULL: none of ours. */
const struct event_family *event_family_find(const char *pmu_name, const struct sysfs_cpu_id *cpu);

struct event_machine { /* what the table is asked about */
    struct event_core core;
    bool msr_found;
    uint32_t msr_type;
    bool cpu_known;
    struct sysfs_cpu_id cpu;
    const struct event_family *family; /* NULL: not known */
};

/* A name as it is asked for: "cpu/NAME/" and "NAME" are the core PMU's, "msr/NAME/" is not. */
struct event_name {
    bool msr;
    char leaf[SYSFS_NAME_SIZE];
};

/* The name under which the core PMU's files have an event, another than `leaf`; NULL: none. */
const char *event_table_alias(const char *leaf, const struct event_machine *m);

/* An event without a file of its own: sets out->attr and out->scale. -ENOENT: not in the table. */
int event_table_find(struct event_spec *out, const struct event_name *name, const struct event_machine *m);

/* Why nobody knows it. */
const char *event_table_why(const struct event_name *name, const struct event_machine *m);

#endif
