#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/events_parts.h"
#include "monitoring/events_probe.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

enum { MACHINES = FAKE_VM + 1 };

static const char *const machine_names[MACHINES] = { "Skylake-SP", "Ice Lake-SP", "Zen 4", "VM" };

static struct events resolve(const char *root)
{
    struct events ev;
    struct err e;
    if (events_resolve(&ev, root, &e) < 0)
        fail_msg("%s", e.text);
    return ev;
}

static struct events resolve_machine(enum fake_machine m)
{
    char *root = fake_sysfs_make(m);
    struct events ev = resolve(root);
    fake_sysfs_remove(root);
    return ev;
}

static const struct event_spec *named(const struct events *ev, const char *name)
{
    int i = event_name_index(name);
    assert_in_range(i, 0, EVENT_NAMES - 1);
    return &ev->v[i];
}

/* "sysfs 4:0xc0", "-" */
static const char *told(const struct event_spec *s, char out[EVENT_ENCODING_SIZE + 16])
{
    char code[EVENT_ENCODING_SIZE];
    if (s->by == EVENT_BY_NONE)
        return "-";
    (void)snprintf(out, EVENT_ENCODING_SIZE + 16, "%s %s", event_by_name(s->by), event_encoding(s, code));
    return out;
}

static void expect_told(const char *where, const struct event_spec *s, const char *want)
{
    char got[EVENT_ENCODING_SIZE + 16];
    if (strcmp(told(s, got), want) != 0)
        fail_msg("%s: %s is '%s', not '%s'", where, s->name, told(s, got), want);
    if ((s->by == EVENT_BY_NONE) != (*s->why != '\0'))
        fail_msg("%s: %s: '%s' explains it", where, s->name, s->why);
}

/* --- who knows what, on four machines --- */

#define SAME(text)                                                                                                     \
    {                                                                                                                  \
        text, text, text, text                                                                                         \
    }
#define ONLY_SKYLAKE(text)                                                                                             \
    {                                                                                                                  \
        text, "-", "-", "-"                                                                                            \
    }
#define INTEL(text)                                                                                                    \
    {                                                                                                                  \
        text, text, "-", "-"                                                                                           \
    }
#define CORE(intel, amd, generic)                                                                                      \
    {                                                                                                                  \
        "sysfs " intel, "sysfs " intel, amd, "libpfm " generic                                                         \
    }

/* clang-format off */
static const struct {
    const char *name, *want[MACHINES];
} encodings[] = {
    { "node-stores",                    SAME("libpfm 3:0x106") },
    { "node-store-misses",              SAME("libpfm 3:0x10106") },
    { "node-loads",                     SAME("libpfm 3:0x6") },
    { "node-load-misses",               SAME("libpfm 3:0x10006") },
    { "msr/tsc/",                       { "sysfs 9:0x0", "sysfs 9:0x0", "sysfs 10:0x0", "sysfs 9:0x0" } },
    { "msr/smi/",                       { "sysfs 9:0x4", "sysfs 9:0x4", "table 10:0x4", "table 9:0x4" } },
    { "msr/pperf/",                     { "sysfs 9:0x3", "sysfs 9:0x3", "table 10:0x3", "table 9:0x3" } },
    { "msr/mperf/",                     { "sysfs 9:0x2", "sysfs 9:0x2", "sysfs 10:0x2", "table 9:0x2" } },
    { "msr/aperf/",                     { "sysfs 9:0x1", "sysfs 9:0x1", "sysfs 10:0x1", "table 9:0x1" } },
    { "iTLB-loads",                     SAME("libpfm 3:0x4") },
    { "iTLB-load-misses",               SAME("libpfm 3:0x10004") },
    { "dTLB-stores",                    SAME("libpfm 3:0x103") },
    { "dTLB-store-misses",              SAME("libpfm 3:0x10103") },
    { "dTLB-loads",                     SAME("libpfm 3:0x3") },
    { "dTLB-load-misses",               SAME("libpfm 3:0x10003") },
    { "cpu/tx-start/",                  INTEL("sysfs 4:0x1c9") },
    { "cpu/tx-conflict/",               INTEL("sysfs 4:0x154") },
    { "cpu/tx-commit/",                 INTEL("sysfs 4:0x2c9") },
    { "cpu/tx-capacity/",               ONLY_SKYLAKE("sysfs 4:0x254") },
    { "cpu/tx-abort/",                  INTEL("sysfs 4:0x4c9") },
    { "cpu/topdown-total-slots/",       ONLY_SKYLAKE("sysfs 4:0x20003c") },
    { "cpu/topdown-slots-retired/",     ONLY_SKYLAKE("sysfs 4:0x2c2") },
    { "cpu/topdown-slots-issued/",      ONLY_SKYLAKE("sysfs 4:0x10e") },
    { "cpu/topdown-recovery-bubbles/",  ONLY_SKYLAKE("sysfs 4:0x120030d") },
    { "cpu/topdown-fetch-bubbles/",     ONLY_SKYLAKE("sysfs 4:0x19c") },
    { "cpu/mem-stores/",                INTEL("sysfs 4:0x82d0") },
    { "cpu/mem-loads/",                 INTEL("sysfs 4:0x1cd,config1=0x3") },
    { "cpu/el-start/",                  INTEL("sysfs 4:0x1c8") },
    { "cpu/el-conflict/",               INTEL("sysfs 4:0x154") },
    { "cpu/el-commit/",                 INTEL("sysfs 4:0x2c8") },
    { "cpu/el-capacity/",               ONLY_SKYLAKE("sysfs 4:0x254") },
    { "cpu/el-abort/",                  INTEL("sysfs 4:0x4c8") },
    { "cpu/cycles-t/",                  INTEL("sysfs 4:0x10000003c") },
    { "cpu/cycles-ct/",                 INTEL("sysfs 4:0x30000003c") },
    { "cpu/instructions/",              CORE("4:0xc0", "sysfs 4:0xc0", "0:0x1") },
    { "cpu/cpu-cycles/",                CORE("4:0x3c", "sysfs 4:0x76", "0:0x0") },
    { "cpu/cache-references/",          CORE("4:0x4f2e", "sysfs 4:0xff60", "0:0x2") },
    { "cpu/cache-misses/",              CORE("4:0x412e", "sysfs 4:0x964", "0:0x3") },
    { "cpu/bus-cycles/",                CORE("4:0x13c", "libpfm 0:0x6", "0:0x6") },
    { "cpu/branch-misses/",             CORE("4:0xc5", "sysfs 4:0xc3", "0:0x5") },
    { "cpu/branch-instructions/",       CORE("4:0xc4", "sysfs 4:0xc2", "0:0x4") },
    { "instructions",                   CORE("4:0xc0", "sysfs 4:0xc0", "0:0x1") },
    { "cpu-cycles",                     CORE("4:0x3c", "sysfs 4:0x76", "0:0x0") },
    { "cache-references",               CORE("4:0x4f2e", "sysfs 4:0xff60", "0:0x2") },
    { "cache-misses",                   CORE("4:0x412e", "sysfs 4:0x964", "0:0x3") },
    { "bus-cycles",                     CORE("4:0x13c", "libpfm 0:0x6", "0:0x6") },
    { "branches",                       CORE("4:0xc4", "sysfs 4:0xc2", "0:0x4") },
    { "branch-misses",                  CORE("4:0xc5", "sysfs 4:0xc3", "0:0x5") },
    { "branch-loads",                   CORE("4:0xc4", "sysfs 4:0xc2", "3:0x5") },
    { "branch-load-misses",             CORE("4:0xc5", "sysfs 4:0xc3", "3:0x10005") },
    { "LLC-stores",                     SAME("libpfm 3:0x102") },
    { "LLC-store-misses",               SAME("libpfm 3:0x10102") },
    { "LLC-loads",                      SAME("libpfm 3:0x2") },
    { "LLC-load-misses",                SAME("libpfm 3:0x10002") },
    { "L1-icache-load-misses",          SAME("libpfm 3:0x10001") },
    { "L1-dcache-stores",               SAME("libpfm 3:0x100") },
    { "L1-dcache-loads",                SAME("libpfm 3:0x0") },
    { "L1-dcache-load-misses",          SAME("libpfm 3:0x10000") },
};
/* clang-format on */

static void test_every_event_on_four_machines(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(encodings), EVENT_NAMES);
    for (int m = 0; m < MACHINES; m++) {
        struct events ev = resolve_machine((enum fake_machine)m);
        for (size_t i = 0; i < ARRAY_LEN(encodings); i++) {
            assert_string_equal(ev.v[i].name, encodings[i].name);
            expect_told(machine_names[m], &ev.v[i], encodings[i].want[m]);
        }
    }
}

#define GENERIC_PAIRS                                                                                                  \
    "instructions=cpu/instructions/ cpu-cycles=cpu/cpu-cycles/ cache-references=cpu/cache-references/ "                \
    "cache-misses=cpu/cache-misses/ bus-cycles=cpu/bus-cycles/ branches=cpu/branch-instructions/ "                     \
    "branch-misses=cpu/branch-misses/ "
#define BRANCH_PAIRS "branch-loads=cpu/branch-instructions/ branch-load-misses=cpu/branch-misses/ "

static void test_equal_encodings_are_one(void **state)
{
    (void)state;
    static const struct {
        const char *pairs;
        int resolved, distinct, core;
    } want[MACHINES] = {
        { "cpu/el-conflict/=cpu/tx-conflict/ cpu/el-capacity/=cpu/tx-capacity/ " GENERIC_PAIRS BRANCH_PAIRS, 58, 47,
          42 },
        { "cpu/el-conflict/=cpu/tx-conflict/ " GENERIC_PAIRS BRANCH_PAIRS, 51, 41, 36 },
        { GENERIC_PAIRS BRANCH_PAIRS, 39, 30, 25 },
        { GENERIC_PAIRS, 39, 32, 27 },
    };
    for (int m = 0; m < MACHINES; m++) {
        struct events ev = resolve_machine((enum fake_machine)m);
        AUTO_BUF struct buf got = BUF_INIT;
        for (int i = 0; i < EVENT_NAMES; i++)
            if (ev.v[i].same_as >= 0)
                buf_printf(&got, "%s=%s ", ev.v[i].name, ev.v[ev.v[i].same_as].name);
        assert_string_equal(buf_text(&got), want[m].pairs);
        assert_int_equal(ev.n_resolved, want[m].resolved);
        assert_int_equal(ev.n_distinct, want[m].distinct);
        assert_int_equal(ev.n_core, want[m].core);
    }
}

static void test_what_the_core_pmu_is(void **state)
{
    (void)state;
    static const struct {
        bool found;
        const char *name, *family;
        int general, fixed;
        bool smt;
    } want[MACHINES] = {
        { true, "cpu", "Intel Skylake", 4, 3, true },
        { true, "cpu", "Intel Ice Lake", 8, 3, true },
        { true, "cpu", "AMD Zen 3 or 4", 6, 0, true },
        { false, "", "AMD Zen 3 or 4", 0, 0, false },
    };
    for (int m = 0; m < MACHINES; m++) {
        struct events ev = resolve_machine((enum fake_machine)m);
        assert_int_equal(ev.core.found, want[m].found);
        assert_string_equal(ev.core.name, want[m].name);
        assert_string_equal(ev.core.family, want[m].family);
        assert_int_equal(ev.core.general, want[m].general);
        assert_int_equal(ev.core.fixed, want[m].fixed);
        assert_int_equal(ev.core.smt, want[m].smt);
    }
}

static void test_only_core_events_compete_and_take_exclusion_bits(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_SKYLAKE_SP);
    for (int i = 0; i < EVENT_NAMES; i++) {
        bool msr = strncmp(ev.v[i].name, "msr/", 4) == 0;
        assert_int_equal(ev.v[i].core_counter, !msr);
        assert_int_equal(ev.v[i].attr.exclude_kernel_ok, !msr);
    }
}

static void test_scales_and_units(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    fake_sysfs_write(root, FAKE_PMU "msr/events/tsc.scale", "6.103515625e-05\n");
    fake_sysfs_write(root, FAKE_PMU "msr/events/tsc.unit", "ticks\n");
    struct events ev = resolve(root);
    for (int i = 0; i < EVENT_NAMES; i++) {
        const char *name = ev.v[i].name;
        double want =
            strcmp(name, "cpu/topdown-total-slots/") == 0 || strcmp(name, "cpu/topdown-recovery-bubbles/") == 0 ? 2
            : strcmp(name, "msr/tsc/") == 0 ? 0x1p-14
                                            : 1;
        if (ev.v[i].scale != want || strcmp(ev.v[i].unit, want < 1 ? "ticks" : "") != 0)
            fail_msg("%s: scale %g, unit '%s'", name, ev.v[i].scale, ev.v[i].unit);
    }
    fake_sysfs_remove(root);
}

/* Hyper-threading off: the kernel shows other encodings and scales, and one of them is that of the cycles. */
static void test_without_hyper_threads_total_slots_are_cycles(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    fake_sysfs_write(root, "devices/system/cpu/smt/active", "0\n");
    fake_sysfs_write(root, FAKE_PMU "cpu/events/topdown-total-slots", "event=0x3c,umask=0x0\n");
    fake_sysfs_write(root, FAKE_PMU "cpu/events/topdown-total-slots.scale", "4\n");
    struct events ev = resolve(root);
    int slots = event_name_index("cpu/topdown-total-slots/");
    assert_int_equal(named(&ev, "cpu/cpu-cycles/")->same_as, slots);
    assert_int_equal(named(&ev, "cpu-cycles")->same_as, slots);
    assert_true(ev.v[slots].scale == 4 && named(&ev, "cpu-cycles")->scale == 1);
    assert_int_equal(ev.n_distinct, 46);
    assert_int_equal(ev.core.general, 8);
    fake_sysfs_remove(root);
}

static void test_the_table_knows_topdown_where_the_kernel_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *name, *threads, *single;
        double threads_scale, single_scale;
    } rows[] = {
        { "cpu/topdown-total-slots/", "table 4:0x20003c", "table 4:0x3c", 2, 4 },
        { "cpu/topdown-slots-issued/", "table 4:0x10e", "table 4:0x10e", 1, 1 },
        { "cpu/topdown-slots-retired/", "table 4:0x2c2", "table 4:0x2c2", 1, 1 },
        { "cpu/topdown-fetch-bubbles/", "table 4:0x19c", "table 4:0x19c", 1, 1 },
        { "cpu/topdown-recovery-bubbles/", "table 4:0x120030d", "table 4:0x100030d", 2, 4 },
        { "cpu/mem-stores/", "table 4:0x82d0", "table 4:0x82d0", 1, 1 },
    };
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    fake_sysfs_delete(root, FAKE_PMU "cpu/events");
    struct events threads = resolve(root);
    fake_sysfs_write(root, "devices/system/cpu/smt/active", "0\n");
    struct events single = resolve(root);
    fake_sysfs_remove(root);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        expect_told("threads", named(&threads, rows[i].name), rows[i].threads);
        expect_told("single", named(&single, rows[i].name), rows[i].single);
        assert_true(named(&threads, rows[i].name)->scale == rows[i].threads_scale);
        assert_true(named(&single, rows[i].name)->scale == rows[i].single_scale);
    }
    expect_told("threads", named(&threads, "cpu/tx-start/"), "-"); /* it would count nothing for ever */
    expect_told("threads", named(&threads, "cpu/mem-loads/"), "-");
}

/* libpfm and the table say the same of every generic name, so nothing changes where one of them is missing. */
static void test_the_table_agrees_with_libpfm(void **state)
{
    (void)state;
    struct event_machine nothing = { 0 };
    int agreed = 0;
    assert_int_equal(event_pfm_begin(), 0);
    for (int i = 0; i < EVENT_NAMES; i++) {
        struct event_name n = { .msr = false };
        if (strchr(event_names[i], '/'))
            continue;
        (void)snprintf(n.leaf, sizeof n.leaf, "%s", event_names[i]);
        struct event_attr pfm;
        struct event_spec table;
        assert_int_equal(event_pfm_encode(event_names[i], &pfm), 0);
        assert_int_equal(event_table_find(&table, &n, &nothing), 0);
        assert_int_equal(table.attr.type, pfm.type);
        assert_int_equal(table.attr.config, pfm.config);
        agreed++;
    }
    struct event_attr attr;
    assert_int_equal(event_pfm_encode("LlC-lOaDs", &attr), 0); /* in any case */
    assert_int_equal(event_pfm_encode("cpu/instructions/", &attr), -ENOENT);
    assert_int_equal(event_pfm_encode("instructions,branches", &attr), -ENOENT); /* it would encode the first alone */
    assert_int_equal(event_pfm_encode("RTM_RETIRED:START", &attr), -ENOENT);
    event_pfm_end();
    assert_int_equal(agreed, 27);
}

static void test_families_are_found_by_pmu_or_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *pmu_name;
        struct sysfs_cpu_id cpu;
        const char *want; /* NULL: unknown */
    } rows[] = {
        { "skylake", { 0, 6, 0x55, false }, "Intel Skylake" },
        { "", { 0, 6, 0x55, false }, "Intel Skylake" },
        { "", { 0, 6, 0x6a, false }, "Intel Ice Lake" },
        { "", { 0, 6, 0x8f, false }, "Intel Sapphire Rapids" },
        { "", { 0, 6, 0xff, false }, NULL },
        { "", { 0, 15, 0x55, false }, NULL },
        { "", { 2, 0x17, 0x31, false }, "AMD Zen 1 or 2" },
        { "", { 2, 0x1a, 0x02, false }, "AMD Zen 5" },
        { "", { 2, 0x15, 0x02, false }, NULL },
        { "", { 9, 0x18, 0x01, false }, "Hygon Dhyana" },
        { "a name of the future", { 0, 6, 0x55, false }, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct event_family *f = event_family_find(rows[i].pmu_name, &rows[i].cpu);
        if ((f != NULL) != (rows[i].want != NULL) || (f && strcmp(f->name, rows[i].want) != 0))
            fail_msg("'%s', model 0x%x: got '%s'", rows[i].pmu_name, rows[i].cpu.model, f ? f->name : "nothing");
    }
    assert_null(event_family_find("", NULL));
}

/* --- files that are unusual, or damaged --- */

static const struct {
    const char *name;
    enum fake_machine machine;
    const char *path, *text; /* NULL: the file is removed */
    const char *event, *want, *why;
} files[] = {
    { "split bits", FAKE_ZEN4, FAKE_PMU "cpu/events/bus-cycles", "event=0x120,umask=0x1\n", "bus-cycles",
      "sysfs 4:0x100000120", "" },
    { "terms that name words", FAKE_VM, FAKE_PMU "msr/events/tsc", "config=0x7,config2=0x8\n", "msr/tsc/",
      "sysfs 9:0x7,config2=0x8", "" },
    { "no newline", FAKE_VM, FAKE_PMU "msr/type", "11", "msr/tsc/", "sysfs 11:0x0", "" },
    { "an event that cannot be read falls to the next who knows it", FAKE_SKYLAKE_SP,
      FAKE_PMU "cpu/events/instructions", "event=\n", "instructions", "libpfm 0:0x1", "" },
    { "an empty event", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/events/instructions", "", "instructions", "libpfm 0:0x1", "" },
    { "an unknown term", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/events/tx-start", "event=0xc9,nonsense=1\n", "cpu/tx-start/",
      "-", "cpu/events/tx-start" },
    { "a term without its format", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/format/ldlat", NULL, "cpu/mem-loads/", "-",
      "cpu/events/mem-loads" },
    { "a damaged format", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/format/in_tx_cp", "config:", "cpu/cycles-ct/", "-",
      "cpu/events/cycles-ct" },
    { "a value that has no room", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/events/el-start", "event=0x1c8\n", "cpu/el-start/",
      "-", "cpu/events/el-start" },
    { "a damaged scale is no scale of 1", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/events/tx-start.scale", "2,5\n",
      "cpu/tx-start/", "-", "cpu/events/tx-start" },
    { "a damaged scale, and the table has the right one", FAKE_SKYLAKE_SP,
      FAKE_PMU "cpu/events/topdown-total-slots.scale", "\n", "cpu/topdown-total-slots/", "table 4:0x20003c", "" },
    { "a unit that is none", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/events/tx-start.unit", "\001\n", "cpu/tx-start/", "-",
      "cpu/events/tx-start" },
    { "a type that is none", FAKE_SKYLAKE_SP, FAKE_PMU "cpu/type", "four\n", "cpu/tx-start/", "-",
      "no hardware counters" },
    { "no msr PMU", FAKE_SKYLAKE_SP, FAKE_PMU "msr", NULL, "msr/tsc/", "-", "no msr PMU" },
    { "no transactional memory", FAKE_ZEN4, "devices/system/cpu/smt/active", "1\n", "cpu/tx-start/", "-", "TSX" },
    { "Ice Lake counts slots in another way", FAKE_ICELAKE_SP, "devices/system/cpu/smt/active", "1\n",
      "cpu/topdown-total-slots/", "-", "Ice Lake" },
    { "a list of CPUs that cannot be read", FAKE_SKYLAKE_SP, FAKE_PMU "msr/cpumask", "0,,18\n", "msr/tsc/", "-",
      "no msr PMU" },
};

static void test_unusual_and_damaged_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *root = fake_sysfs_make(files[i].machine);
        if (files[i].text)
            fake_sysfs_write(root, files[i].path, files[i].text);
        else
            fake_sysfs_delete(root, files[i].path);
        struct events ev = resolve(root);
        fake_sysfs_remove(root);
        const struct event_spec *s = named(&ev, files[i].event);
        expect_told(files[i].name, s, files[i].want);
        if (!strstr(s->why, files[i].why))
            fail_msg("%s: the reason is '%s', without '%s'", files[i].name, s->why, files[i].why);
    }
}

static void test_where_events_are_to_be_opened(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    fake_sysfs_write(root, FAKE_PMU "msr/cpumask", "0,18\n");
    struct events ev = resolve(root);
    assert_string_equal(named(&ev, "msr/tsc/")->cpus, "0,18");
    assert_string_equal(named(&ev, "instructions")->cpus, "");
    AUTO_BUF struct buf b = BUF_INIT; /* too long to be kept whole: half of it would be half of the count */
    for (int i = 0; i < EVENT_CPUS_SIZE; i++)
        buf_printf(&b, "%s%d", i ? "," : "", 2 * i);
    fake_sysfs_write(root, FAKE_PMU "msr/cpumask", buf_text(&b));
    ev = resolve(root);
    expect_told("a list too long", named(&ev, "msr/tsc/"), "-");
    fake_sysfs_remove(root);
}

/* Two kinds of cores: the large ones' PMU has a name of its own, and a list of its CPUs. */
static void test_two_kinds_of_cores(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_VM);
    fake_sysfs_write(root, FAKE_PMU "cpu_core/type", "4\n");
    fake_sysfs_write(root, FAKE_PMU "cpu_core/cpus", "0-15\n");
    fake_sysfs_write(root, FAKE_PMU "cpu_core/format/event", "config:0-7\n");
    fake_sysfs_write(root, FAKE_PMU "cpu_core/events/instructions", "event=0xc0\n");
    fake_sysfs_write(root, FAKE_PMU "cpu_core/caps/pmu_name", "alderlake_hybrid\n");
    struct events ev = resolve(root);
    fake_sysfs_remove(root);
    expect_told("hybrid", named(&ev, "cpu/instructions/"), "sysfs 4:0xc0");
    assert_string_equal(named(&ev, "cpu/instructions/")->cpus, "0-15");
    assert_string_equal(named(&ev, "LLC-loads")->cpus, "0-15");
    assert_string_equal(named(&ev, "msr/tsc/")->cpus, "");
    assert_string_equal(ev.core.name, "cpu_core");
    assert_string_equal(ev.core.family, "Intel Alder Lake");
}

static void test_no_sysfs_at_all_leaves_the_generic_names(void **state)
{
    (void)state;
    struct events ev = resolve("/nonexistent");
    expect_told("nowhere", named(&ev, "instructions"), "libpfm 0:0x1");
    expect_told("nowhere", named(&ev, "msr/tsc/"), "-");
    assert_int_equal(ev.n_resolved, 34);
    assert_false(ev.core.found);
    char path[5000]; /* longer than any path */
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    ev = resolve(path);
    assert_int_equal(ev.n_resolved, 34);
}

/* --- the forecast --- */

static void expect_share(const struct events *ev, const double *share, const char *name, double want)
{
    double got = share[event_name_index(name)];
    (void)ev;
    if (isnan(want) ? !isnan(got) : fabs(got - want) > 1e-9)
        fail_msg("%s: share %.5f, want %.5f", name, got, want);
}

/* 42 events, 4 counters: each is in 4 of 42 turns, in 5 where cycles or instructions have a counter of their own beside it. */
static void test_forecast_of_skylake(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_SKYLAKE_SP);
    double share[EVENT_NAMES], watched[EVENT_NAMES];
    events_forecast(&ev, false, NULL, share);
    events_forecast(&ev, true, NULL, watched);
    expect_share(&ev, share, "node-stores", 4 / 42.0);
    expect_share(&ev, watched, "node-stores", 3 / 42.0);
    expect_share(&ev, share, "cpu/cpu-cycles/", 6 / 42.0);
    expect_share(&ev, share, "cpu-cycles", 6 / 42.0);
    expect_share(&ev, share, "msr/tsc/", 1);
    double sum = 0;
    for (int i = 0; i < EVENT_NAMES; i++)
        sum += ev.v[i].same_as < 0 && ev.v[i].core_counter ? watched[i] : 0;
    assert_true(sum > 3 && sum < 5); /* on average: three counters, and at times a fixed one or two */
}

static void test_forecast_counts_only_what_competes(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_ZEN4);
    double share[EVENT_NAMES];
    events_forecast(&ev, false, NULL, share);
    expect_share(&ev, share, "LLC-loads", 6 / 25.0);
    expect_share(&ev, share, "cpu/tx-start/", NAN);
    bool left_out[EVENT_NAMES] = { false };
    for (int i = 0; i < EVENT_NAMES; i++)
        left_out[i] = strncmp(ev.v[i].name, "LLC-", 4) == 0 || strncmp(ev.v[i].name, "node-", 5) == 0;
    events_forecast(&ev, false, left_out, share);
    expect_share(&ev, share, "LLC-loads", NAN);
    expect_share(&ev, share, "L1-dcache-loads", 6 / 17.0);
    for (int i = 0; i < EVENT_NAMES; i++)
        left_out[i] = ev.v[i].core_counter && strcmp(ev.v[i].name, "iTLB-loads") != 0;
    events_forecast(&ev, true, left_out, share);
    expect_share(&ev, share, "iTLB-loads", 1);
}

static void test_forecast_without_a_core_pmu_is_none(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_VM);
    double share[EVENT_NAMES];
    events_forecast(&ev, true, NULL, share);
    expect_share(&ev, share, "instructions", NAN);
    expect_share(&ev, share, "msr/tsc/", 1);
}

static void test_forecast_of_an_unknown_family(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_SKYLAKE_SP);
    fake_sysfs_write(root, FAKE_PMU "cpu/caps/pmu_name", "something_new\n");
    struct events ev = resolve(root);
    fake_sysfs_remove(root);
    assert_string_equal(ev.core.family, "");
    assert_int_equal(ev.core.general, 4);
    assert_int_equal(ev.core.fixed, 3);
    assert_int_equal(named(&ev, "branch-loads")->attr.type, PERF_TYPE_HW_CACHE); /* not known to be the branches */
}

/* --- what can be counted --- */

struct kernel {            /* one that does not exist */
    int system, own, user; /* what opening answers: whole CPUs, own processes, their user part; 0: granted */
    bool zen;
    int last_cpu, opened, open_now;
};

static int zen_refuses(const struct event_attr *a)
{
    uint64_t id = a->config & 0xff;
    bool write = a->config & 0x100;
    if (a->type == PERF_TYPE_HARDWARE)
        return -ENOENT; /* bus-cycles: the only one that its files do not name */
    if (a->type == 10)
        return a->config == 3 || a->config == 4 ? -EINVAL : 0;
    if (a->type != PERF_TYPE_HW_CACHE)
        return 0;
    return write || id == PERF_COUNT_HW_CACHE_LL || id == PERF_COUNT_HW_CACHE_NODE ? -ENOENT : 0;
}

static int fake_open(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    struct kernel *k = ctx;
    assert_int_equal(pid == -1, cpu >= 0);
    assert_false((flags & PERF_OPS_USER) && !attr->exclude_kernel_ok);
    int rc = k->zen ? zen_refuses(attr) : 0;
    if (rc == 0)
        rc = pid == -1 ? k->system : flags & PERF_OPS_USER ? k->user : k->own;
    if (rc < 0)
        return rc;
    if (pid == -1)
        k->last_cpu = cpu;
    k->opened++;
    assert_int_equal(++k->open_now, 1);
    return 77;
}

static int fake_close(int fd, void *ctx)
{
    struct kernel *k = ctx;
    assert_int_equal(fd, 77);
    k->open_now--;
    return 0;
}

static struct events_probe probe(const struct events *ev, struct kernel *k)
{
    const struct perf_ops ops = { .open = fake_open, .close = fake_close, .ctx = k };
    struct events_probe p;
    events_probe(&p, ev, 5, &ops);
    assert_int_equal(k->open_now, 0);
    return p;
}

static void test_zen_refuses_what_was_resolved(void **state)
{
    (void)state;
    static const char *const refused[] = { "bus-cycles",       "cpu/bus-cycles/", "msr/smi/",   "msr/pperf/",
                                           "LLC-stores",       "LLC-loads",       "node-loads", "node-stores",
                                           "L1-dcache-stores", "dTLB-stores" };
    static const char *const counted[] = { "instructions",    "branch-loads", "msr/tsc/",   "msr/aperf/",
                                           "L1-dcache-loads", "dTLB-loads",   "iTLB-loads", "L1-icache-load-misses" };
    struct events ev = resolve_machine(FAKE_ZEN4);
    struct kernel k = { .zen = true };
    struct events_probe p = probe(&ev, &k);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_true(named(&ev, refused[i])->by != EVENT_BY_NONE);
        assert_int_equal(p.state[event_name_index(refused[i])], READING_UNSUPPORTED);
    }
    for (size_t i = 0; i < ARRAY_LEN(counted); i++)
        assert_int_equal(p.state[event_name_index(counted[i])], READING_OK);
    assert_int_equal(p.state[event_name_index("cpu/tx-start/")], READING_UNSUPPORTED);
    assert_int_equal(p.n_ok, 24);
    assert_int_equal(p.least, REACH_SYSTEM);
}

static void test_equal_encodings_are_opened_once(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_SKYLAKE_SP);
    struct kernel k = { .zen = false };
    struct events_probe p = probe(&ev, &k);
    assert_int_equal(p.n_ok, EVENT_NAMES);
    assert_int_equal(k.opened, 47);
    assert_int_equal(k.last_cpu, 5);
}

static void test_rights_that_lack_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct kernel kernel;
        enum reading_state core, msr;
        enum events_reach reach, msr_reach;
    } rows[] = {
        { "all", { .system = 0 }, READING_OK, READING_OK, REACH_SYSTEM, REACH_SYSTEM },
        { "own processes", { .system = -EACCES }, READING_OK, READING_OK, REACH_OWN, REACH_OWN },
        { "own processes' user part",
          { .system = -EACCES, .own = -EACCES },
          READING_OK,
          READING_DENIED,
          REACH_USER,
          REACH_NONE },
        { "nothing",
          { .system = -EPERM, .own = -EACCES, .user = -EACCES },
          READING_DENIED,
          READING_DENIED,
          REACH_NONE,
          REACH_NONE },
        { "no descriptor", { .system = -EMFILE }, READING_NO_FD, READING_NO_FD, REACH_NONE, REACH_NONE },
        { "no descriptor on the machine", { .system = -ENFILE }, READING_NO_FD, READING_NO_FD, REACH_NONE, REACH_NONE },
        { "held by somebody", { .system = -EBUSY }, READING_NOT_COUNTED, READING_NOT_COUNTED, REACH_NONE, REACH_NONE },
        { "no such event", { .system = -ENOENT }, READING_UNSUPPORTED, READING_UNSUPPORTED, REACH_NONE, REACH_NONE },
        { "no perf events in this kernel",
          { .system = -ENOSYS },
          READING_UNSUPPORTED,
          READING_UNSUPPORTED,
          REACH_NONE,
          REACH_NONE },
    };
    struct events ev = resolve_machine(FAKE_SKYLAKE_SP);
    int core = event_name_index("LLC-loads"), msr = event_name_index("msr/tsc/");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kernel k = rows[i].kernel;
        struct events_probe p = probe(&ev, &k);
        if (p.state[core] != rows[i].core || p.state[msr] != rows[i].msr)
            fail_msg("%s: got %s and %s", rows[i].name, reading_state_name(p.state[core]),
                     reading_state_name(p.state[msr]));
        if (p.reach[core] != rows[i].reach || p.reach[msr] != rows[i].msr_reach || p.least != rows[i].reach)
            fail_msg("%s: reach %d and %d, at least %d", rows[i].name, (int)p.reach[core], (int)p.reach[msr],
                     (int)p.least);
    }
}

static void test_an_event_with_cpus_of_its_own_is_opened_there(void **state)
{
    (void)state;
    struct events ev = resolve_machine(FAKE_VM);
    struct event_spec tsc = *named(&ev, "msr/tsc/");
    for (int i = 0; i < EVENT_NAMES; i++)
        ev.v[i].by = EVENT_BY_NONE;
    (void)snprintf(tsc.cpus, sizeof tsc.cpus, "3,18");
    ev.v[0] = tsc;
    struct kernel k = { .zen = false };
    struct events_probe p = probe(&ev, &k);
    assert_int_equal(p.n_ok, 1);
    assert_int_equal(k.last_cpu, 3);
}

static void test_first_cpu_and_watchdog(void **state)
{
    (void)state;
    char *root = fake_sysfs_make(FAKE_VM);
    assert_int_equal(events_first_cpu(root), 0);
    fake_sysfs_write(root, "devices/system/cpu/online", "2-3\n");
    assert_int_equal(events_first_cpu(root), 2);
    fake_sysfs_write(root, "devices/system/cpu/online", "2-\n");
    assert_int_equal(events_first_cpu(root), 0);
    assert_int_equal(events_first_cpu("/nonexistent"), 0);
    assert_false(events_nmi_watchdog(root));
    fake_sysfs_write(root, "sys/kernel/nmi_watchdog", "1\n"); /* the folder does as another /proc */
    assert_true(events_nmi_watchdog(root));
    fake_sysfs_write(root, "sys/kernel/nmi_watchdog", "0\n");
    assert_false(events_nmi_watchdog(root));
    fake_sysfs_remove(root);
}

static void test_state_names(void **state)
{
    (void)state;
    static const char *const names[] = { "ok", "multiplexed", "not_counted", "unsupported", "denied", "no_fd" };
    for (int i = 0; i < (int)ARRAY_LEN(names); i++)
        assert_string_equal(reading_state_name((enum reading_state)i), names[i]);
    assert_string_equal(reading_state_name(READING_ABSENT), "absent");
    assert_string_equal(reading_state_name((enum reading_state)6), "?");
}

/* --- faults --- */

static void expect_same(const struct events *a, const struct events *b)
{
    assert_int_equal(a->n_distinct, b->n_distinct);
    for (int i = 0; i < EVENT_NAMES; i++) {
        char one[EVENT_ENCODING_SIZE + 16], two[EVENT_ENCODING_SIZE + 16];
        assert_string_equal(told(&a->v[i], one), told(&b->v[i], two));
        assert_true(a->v[i].scale == b->v[i].scale);
    }
}

/* Memory or descriptors run short: an error, or the answer that there always is; never another encoding. */
static void test_what_runs_short_changes_no_encoding(void **state)
{
    (void)state;
    static const unsigned kinds[] = { FAULT_ALLOC, FAULT_OPEN };
    char *root = fake_sysfs_make(FAKE_ZEN4);
    struct events right = resolve(root);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        bool struck = true;
        for (unsigned nth = 1; struck; nth++) {
            struct events ev = { .n_resolved = -1 };
            struct err e = { 0 };
            assert_true(nth < 1000);
            fault_arm(kinds[k], nth);
            int rc = events_resolve(&ev, root, &e);
            struck = fault_disarm();
            assert_int_equal(rc, !struck ? 0 : kinds[k] == FAULT_OPEN ? -EMFILE : -ENOMEM);
            assert_true(rc == 0 || (ev.n_resolved == -1 && *e.text));
            if (rc == 0)
                expect_same(&ev, &right);
        }
    }
    fake_sysfs_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_on_four_machines),
        cmocka_unit_test(test_equal_encodings_are_one),
        cmocka_unit_test(test_what_the_core_pmu_is),
        cmocka_unit_test(test_only_core_events_compete_and_take_exclusion_bits),
        cmocka_unit_test(test_scales_and_units),
        cmocka_unit_test(test_without_hyper_threads_total_slots_are_cycles),
        cmocka_unit_test(test_the_table_knows_topdown_where_the_kernel_does_not),
        cmocka_unit_test(test_the_table_agrees_with_libpfm),
        cmocka_unit_test(test_families_are_found_by_pmu_or_cpu),
        cmocka_unit_test(test_unusual_and_damaged_files),
        cmocka_unit_test(test_where_events_are_to_be_opened),
        cmocka_unit_test(test_two_kinds_of_cores),
        cmocka_unit_test(test_no_sysfs_at_all_leaves_the_generic_names),
        cmocka_unit_test(test_forecast_of_skylake),
        cmocka_unit_test(test_forecast_counts_only_what_competes),
        cmocka_unit_test(test_forecast_without_a_core_pmu_is_none),
        cmocka_unit_test(test_forecast_of_an_unknown_family),
        cmocka_unit_test(test_zen_refuses_what_was_resolved),
        cmocka_unit_test(test_equal_encodings_are_opened_once),
        cmocka_unit_test(test_rights_that_lack_are_told_apart),
        cmocka_unit_test(test_an_event_with_cpus_of_its_own_is_opened_there),
        cmocka_unit_test(test_first_cpu_and_watchdog),
        cmocka_unit_test(test_state_names),
        cmocka_unit_test(test_what_runs_short_changes_no_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
