#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/events_parts.h"

enum { INTEL = SYSFS_VENDOR_INTEL, AMD = SYSFS_VENDOR_AMD, HYGON = SYSFS_VENDOR_HYGON };

/* clang-format off */
static const struct event_family families[] = {
    /* name                   caps/pmu_name          vendor fam   models                                      HT  - fixed branches topdown stores */
    { "Intel Nehalem",         "nehalem",            INTEL, 6,    { 0x1a, 0x1e, 0x1f, 0x2e },                  4, 4, 3, false, false, 0 },
    { "Intel Westmere",        "westmere",           INTEL, 6,    { 0x25, 0x2c, 0x2f },                        4, 4, 3, false, false, 0 },
    { "Intel Sandy Bridge",    "sandybridge",        INTEL, 6,    { 0x2a, 0x2d },                              4, 8, 3, true,  true,  0x02cd },
    { "Intel Ivy Bridge",      "ivybridge",          INTEL, 6,    { 0x3a, 0x3e },                              4, 8, 3, true,  true,  0x02cd },
    { "Intel Haswell",         "haswell",            INTEL, 6,    { 0x3c, 0x3f, 0x45, 0x46 },                  4, 8, 3, true,  true,  0x82d0 },
    { "Intel Broadwell",       "broadwell",          INTEL, 6,    { 0x3d, 0x47, 0x4f, 0x56 },                  4, 8, 3, true,  true,  0x82d0 },
    { "Intel Skylake",         "skylake",            INTEL, 6,    { 0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6 }, 4, 8, 3, true, true,  0x82d0 },
    { "Intel Ice Lake",        "icelake",            INTEL, 6,    { 0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7 }, 8, 8, 3, true, false, 0x82d0 },
    { "Intel Sapphire Rapids", "sapphire_rapids",    INTEL, 6,    { 0x8f, 0xcf },                              8, 8, 3, true,  false, 0 },
    { "Intel Granite Rapids",  "granite_rapids",     INTEL, 6,    { 0xad, 0xae },                              8, 8, 3, true,  false, 0 },
    { "Intel Alder Lake",      "alderlake_hybrid",   INTEL, 6,    { 0x97, 0x9a, 0xb7, 0xba, 0xbf },            8, 8, 3, true,  false, 0 },
    { "Intel Meteor Lake",     "meteorlake_hybrid",  INTEL, 6,    { 0xaa, 0xac },                              8, 8, 3, true,  false, 0 },
    { "AMD Zen 1 or 2",        NULL,                 AMD,   0x17, { 0 },                                       6, 6, 0, true,  false, 0 },
    { "Hygon Dhyana",          NULL,                 HYGON, 0x18, { 0 },                                       6, 6, 0, true,  false, 0 },
    { "AMD Zen 3 or 4",        NULL,                 AMD,   0x19, { 0 },                                       6, 6, 0, true,  false, 0 },
    { "AMD Zen 5",             NULL,                 AMD,   0x1a, { 0 },                                       6, 6, 0, true,  false, 0 },
};
/* clang-format on */

static bool has_model(const struct event_family *f, unsigned model)
{
    if (f->models[0] == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(f->models) && f->models[i]; i++)
        if (f->models[i] == model)
            return true;
    return false;
}

const struct event_family *event_family_find(const char *pmu_name, const struct sysfs_cpu_id *cpu)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const struct event_family *f = &families[i];
        if (f->pmu_name && strcmp(f->pmu_name, pmu_name) == 0)
            return f;
    }
    for (size_t i = 0; cpu && !*pmu_name && i < ARRAY_LEN(families); i++) {
        const struct event_family *f = &families[i];
        if (f->vendor == cpu->vendor && f->family == cpu->family && has_model(f, cpu->model))
            return f;
    }
    return NULL;
}

const char *event_table_alias(const char *leaf, const struct event_machine *m)
{
    static const struct {
        const char *leaf, *file;
        bool by_family;
    } rows[] = {
        { "branches", "branch-instructions", false },
        { "branch-loads", "branch-instructions", true },
        { "branch-load-misses", "branch-misses", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].leaf, leaf) == 0)
            return !rows[i].by_family || (m->family && m->family->branch_loads_are_branches) ? rows[i].file : NULL;
    return NULL;
}

/* --- encodings --- */

#define CACHE(what, op, result)                                                                                        \
    PERF_TYPE_HW_CACHE,                                                                                                \
        PERF_COUNT_HW_CACHE_##what | PERF_COUNT_HW_CACHE_OP_##op << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16
#define GENERIC(what) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##what

struct row {
    const char *leaf;
    uint32_t type;
    uint64_t config;
};

/* What libpfm says, for where it says nothing. */
static const struct row generic[] = {
    { "cpu-cycles", GENERIC(CPU_CYCLES) },
    { "instructions", GENERIC(INSTRUCTIONS) },
    { "cache-references", GENERIC(CACHE_REFERENCES) },
    { "cache-misses", GENERIC(CACHE_MISSES) },
    { "bus-cycles", GENERIC(BUS_CYCLES) },
    { "branches", GENERIC(BRANCH_INSTRUCTIONS) },
    { "branch-instructions", GENERIC(BRANCH_INSTRUCTIONS) },
    { "branch-misses", GENERIC(BRANCH_MISSES) },
    { "L1-dcache-loads", CACHE(L1D, READ, ACCESS) },
    { "L1-dcache-load-misses", CACHE(L1D, READ, MISS) },
    { "L1-dcache-stores", CACHE(L1D, WRITE, ACCESS) },
    { "L1-icache-load-misses", CACHE(L1I, READ, MISS) },
    { "LLC-loads", CACHE(LL, READ, ACCESS) },
    { "LLC-load-misses", CACHE(LL, READ, MISS) },
    { "LLC-stores", CACHE(LL, WRITE, ACCESS) },
    { "LLC-store-misses", CACHE(LL, WRITE, MISS) },
    { "dTLB-loads", CACHE(DTLB, READ, ACCESS) },
    { "dTLB-load-misses", CACHE(DTLB, READ, MISS) },
    { "dTLB-stores", CACHE(DTLB, WRITE, ACCESS) },
    { "dTLB-store-misses", CACHE(DTLB, WRITE, MISS) },
    { "iTLB-loads", CACHE(ITLB, READ, ACCESS) },
    { "iTLB-load-misses", CACHE(ITLB, READ, MISS) },
    { "branch-loads", CACHE(BPU, READ, ACCESS) },
    { "branch-load-misses", CACHE(BPU, READ, MISS) },
    { "node-loads", CACHE(NODE, READ, ACCESS) },
    { "node-load-misses", CACHE(NODE, READ, MISS) },
    { "node-stores", CACHE(NODE, WRITE, ACCESS) },
    { "node-store-misses", CACHE(NODE, WRITE, MISS) },
};

/* The msr PMU numbers its events; it shows only those that the CPU has, and refuses the others when they are opened. */
static const struct row msr[] = {
    { "tsc", 0, 0 }, { "aperf", 0, 1 }, { "mperf", 0, 2 }, { "pperf", 0, 3 }, { "smi", 0, 4 },
};

/* Top-down analysis before Ice Lake. A core's slots are four a cycle; with hyper-threading its cycles are counted once for both
 * threads (any), and each thread is given half. */
static const struct topdown {
    const char *leaf;
    uint64_t config;
    bool of_core; /* any, and the scale */
} topdown[] = {
    { "topdown-total-slots", 0x003c, true },
    { "topdown-slots-issued", 0x010e, false },
    { "topdown-slots-retired", 0x02c2, false },
    { "topdown-fetch-bubbles", 0x019c, false },
    { "topdown-recovery-bubbles", 1U << 24 | 0x030d, true },
};

static int find_row(struct event_spec *out, const struct row *rows, size_t n, const char *leaf)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].leaf, leaf) != 0)
            continue;
        out->attr = (struct event_attr){ .type = rows[i].type, .config = rows[i].config, .exclude_kernel_ok = true };
        out->scale = 1;
        return 0;
    }
    return -ENOENT;
}

static int find_topdown(struct event_spec *out, const char *leaf, const struct event_core *core)
{
    for (size_t i = 0; i < ARRAY_LEN(topdown); i++) {
        const struct topdown *t = &topdown[i];
        if (strcmp(t->leaf, leaf) != 0)
            continue;
        uint64_t any = t->of_core && core->smt ? 1U << 21 : 0;
        out->attr = (struct event_attr){ .type = core->type, .config = t->config | any, .exclude_kernel_ok = true };
        out->scale = !t->of_core ? 1 : core->smt ? 2 : 4;
        return 0;
    }
    return -ENOENT;
}

static int find_msr(struct event_spec *out, const char *leaf, const struct event_machine *m)
{
    if (!m->msr_found || find_row(out, msr, ARRAY_LEN(msr), leaf) < 0)
        return -ENOENT;
    out->attr.type = m->msr_type;
    out->attr.exclude_kernel_ok = false;
    return 0;
}

int event_table_find(struct event_spec *out, const struct event_name *name, const struct event_machine *m)
{
    if (name->msr)
        return find_msr(out, name->leaf, m);
    if (find_row(out, generic, ARRAY_LEN(generic), name->leaf) == 0)
        return 0;
    if (!m->core.found || !m->family)
        return -ENOENT;
    if (m->family->old_topdown && find_topdown(out, name->leaf, &m->core) == 0)
        return 0;
    if (!m->family->mem_stores || strcmp(name->leaf, "mem-stores") != 0)
        return -ENOENT;
    out->attr = (struct event_attr){ m->core.type, m->family->mem_stores, 0, 0, true };
    out->scale = 1;
    return 0;
}

const char *event_table_why(const struct event_name *name, const struct event_machine *m)
{
    static const struct {
        const char *prefix, *why;
    } rows[] = {
        { "topdown-", "the core PMU does not offer it: only Intel before Ice Lake counts slots this way" },
        { "mem-", "the core PMU does not offer it: it needs Intel's precise sampling (PEBS)" },
    };
    if (name->msr)
        return "there is no msr PMU here";
    if (!m->core.found)
        return "there are no hardware counters here (a virtual machine without a PMU?)";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(name->leaf, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].why;
    if (m->cpu_known && m->cpu.rtm)
        return "the core PMU does not offer it: this CPU counts its transactions in another way";
    return "the core PMU does not offer it: no transactional memory (TSX), or it is switched off";
}
