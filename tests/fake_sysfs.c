#include "tests/fake_sysfs.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"

struct file {
    const char *path, *text;
};

#define CPU FAKE_PMU "cpu/"
#define MSR FAKE_PMU "msr/"
#define SYSTEM "devices/system/cpu/"

static const struct file intel[] = {
    { CPU "type", "4\n" },
    { CPU "format/any", "config:21\n" },
    { CPU "format/cmask", "config:24-31\n" },
    { CPU "format/edge", "config:18\n" },
    { CPU "format/event", "config:0-7\n" },
    { CPU "format/in_tx", "config:32\n" },
    { CPU "format/in_tx_cp", "config:33\n" },
    { CPU "format/inv", "config:23\n" },
    { CPU "format/ldlat", "config1:0-15\n" },
    { CPU "format/offcore_rsp", "config1:0-63\n" },
    { CPU "format/pc", "config:19\n" },
    { CPU "format/umask", "config:8-15\n" },
    { CPU "events/branch-instructions", "event=0xc4\n" },
    { CPU "events/branch-misses", "event=0xc5\n" },
    { CPU "events/bus-cycles", "event=0x3c,umask=0x01\n" },
    { CPU "events/cache-misses", "event=0x2e,umask=0x41\n" },
    { CPU "events/cache-references", "event=0x2e,umask=0x4f\n" },
    { CPU "events/cpu-cycles", "event=0x3c\n" },
    { CPU "events/instructions", "event=0xc0\n" },
    { CPU "events/ref-cycles", "event=0x00,umask=0x03\n" },
    { CPU "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n" },
    { CPU "events/mem-stores", "event=0xd0,umask=0x82\n" },
    { CPU "events/tx-start", "event=0xc9,umask=0x1\n" },
    { CPU "events/tx-commit", "event=0xc9,umask=0x2\n" },
    { CPU "events/tx-abort", "event=0xc9,umask=0x4\n" },
    { CPU "events/tx-conflict", "event=0x54,umask=0x1\n" },
    { CPU "events/el-start", "event=0xc8,umask=0x1\n" },
    { CPU "events/el-commit", "event=0xc8,umask=0x2\n" },
    { CPU "events/el-abort", "event=0xc8,umask=0x4\n" },
    { CPU "events/el-conflict", "event=0x54,umask=0x1\n" },
    { CPU "events/cycles-t", "event=0x3c,in_tx=1\n" },
    { CPU "events/cycles-ct", "event=0x3c,in_tx=1,in_tx_cp=1\n" },
    { MSR "type", "9\n" },
    { MSR "format/event", "config:0-63\n" },
    { MSR "events/tsc", "event=0x00\n" },
    { MSR "events/aperf", "event=0x01\n" },
    { MSR "events/mperf", "event=0x02\n" },
    { MSR "events/pperf", "event=0x03\n" },
    { MSR "events/smi", "event=0x04\n" },
    { FAKE_PMU "power/type", "23\n" },
    { FAKE_PMU "power/format/event", "config:0-7\n" },
    { FAKE_PMU "power/events/energy-pkg", "event=0x02\n" },
    { FAKE_PMU "power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n" },
    { FAKE_PMU "power/events/energy-pkg.unit", "Joules\n" },
    { FAKE_PMU "power/cpumask", "0,18\n" },
    { SYSTEM "smt/active", "1\n" },
};

static const struct file skylake[] = {
    { CPU "caps/pmu_name", "skylake\n" },
    { CPU "events/tx-capacity", "event=0x54,umask=0x2\n" },
    { CPU "events/el-capacity", "event=0x54,umask=0x2\n" },
    { CPU "events/topdown-total-slots", "event=0x3c,umask=0x0,any=1\n" },
    { CPU "events/topdown-total-slots.scale", "2\n" },
    { CPU "events/topdown-slots-issued", "event=0xe,umask=0x1\n" },
    { CPU "events/topdown-slots-retired", "event=0xc2,umask=0x2\n" },
    { CPU "events/topdown-fetch-bubbles", "event=0x9c,umask=0x1\n" },
    { CPU "events/topdown-recovery-bubbles", "event=0xd,umask=0x3,cmask=1,any=1\n" },
    { CPU "events/topdown-recovery-bubbles.scale", "2\n" },
    { SYSTEM "online", "0-71\n" },
    { SYSTEM "modalias", "cpu:type:x86,ven0000fam0006mod0055:feature:,0000,0001,0002,0123,0124,0125,012B,012E\n" },
};

static const struct file icelake[] = {
    { CPU "caps/pmu_name", "icelake\n" },
    { CPU "events/tx-capacity-read", "event=0x54,umask=0x80\n" },
    { CPU "events/tx-capacity-write", "event=0x54,umask=0x2\n" },
    { CPU "events/el-capacity-read", "event=0x54,umask=0x80\n" },
    { CPU "events/el-capacity-write", "event=0x54,umask=0x2\n" },
    { CPU "events/slots", "event=0x00,umask=0x4\n" },
    { CPU "events/topdown-retiring", "event=0x00,umask=0x80\n" },
    { CPU "events/topdown-bad-spec", "event=0x00,umask=0x81\n" },
    { CPU "events/topdown-fe-bound", "event=0x00,umask=0x82\n" },
    { CPU "events/topdown-be-bound", "event=0x00,umask=0x83\n" },
    { SYSTEM "online", "0-63\n" },
    { SYSTEM "modalias", "cpu:type:x86,ven0000fam0006mod006A:feature:,0000,0001,0002,0123,0125,012B,012E\n" },
};

static const struct file zen4[] = {
    { CPU "type", "4\n" },
    { CPU "format/cmask", "config:24-31\n" },
    { CPU "format/edge", "config:18\n" },
    { CPU "format/event", "config:0-7,32-35\n" },
    { CPU "format/inv", "config:23\n" },
    { CPU "format/umask", "config:8-15\n" },
    { CPU "events/branch-instructions", "event=0xc2\n" },
    { CPU "events/branch-misses", "event=0xc3\n" },
    { CPU "events/cache-misses", "event=0x64,umask=0x09\n" },
    { CPU "events/cache-references", "event=0x60,umask=0xff\n" },
    { CPU "events/cpu-cycles", "event=0x76\n" },
    { CPU "events/instructions", "event=0xc0\n" },
    { MSR "type", "10\n" },
    { MSR "format/event", "config:0-63\n" },
    { MSR "events/tsc", "event=0x00\n" },
    { MSR "events/aperf", "event=0x01\n" },
    { MSR "events/mperf", "event=0x02\n" },
    { MSR "events/irperf", "event=0x06\n" },
    { SYSTEM "smt/active", "1\n" },
    { SYSTEM "online", "0-191\n" },
    { SYSTEM "modalias", "cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001,0002,0123,0125\n" },
};

static const struct file vm[] = {
    { MSR "type", "9\n" },
    { MSR "format/event", "config:0-63\n" },
    { MSR "events/tsc", "event=0x00\n" },
    { SYSTEM "smt/active", "0\n" },
    { SYSTEM "online", "0-1\n" },
    { SYSTEM "modalias", "cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001,0002,0123,0125\n" },
};

static const struct {
    const struct file *files[2];
    size_t n[2];
} machines[] = {
    [FAKE_SKYLAKE_SP] = { { intel, skylake }, { ARRAY_LEN(intel), ARRAY_LEN(skylake) } },
    [FAKE_ICELAKE_SP] = { { intel, icelake }, { ARRAY_LEN(intel), ARRAY_LEN(icelake) } },
    [FAKE_ZEN4] = { { zen4 }, { ARRAY_LEN(zen4) } },
    [FAKE_VM] = { { vm }, { ARRAY_LEN(vm) } },
};

void fake_sysfs_write(const char *root, const char *path, const char *text)
{
    AUTO_FREE char *file = io_join(root, path);
    AUTO_FREE char *dir = file ? io_dirname(file) : NULL;
    assert_non_null(dir);
    assert_int_equal(io_mkdirs(dir, NULL), 0);
    FILE *f = fopen(file, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void fake_sysfs_delete(const char *root, const char *path)
{
    AUTO_FREE char *file = io_join(root, path);
    assert_non_null(file);
    assert_int_equal(nftw(file, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

char *fake_sysfs_make(enum fake_machine machine)
{
    const char *tmp = getenv("TMPDIR");
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s/fake-sysfs-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    char *root = mkdtemp(dir) ? strdup(dir) : NULL;
    assert_non_null(root);
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < machines[machine].n[part]; i++)
            fake_sysfs_write(root, machines[machine].files[part][i].path, machines[machine].files[part][i].text);
    return root;
}

void fake_sysfs_remove(char *root)
{
    if (root)
        (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* a rest in /tmp fails no test */
    free(root);
}
