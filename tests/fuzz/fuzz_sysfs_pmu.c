/* Any text as each kind of file that the kernel has of a PMU: sane values, and what was understood reads the same again. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "monitoring/sysfs_pmu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_format(const char *text)
{
    struct sysfs_format f;
    if (sysfs_format_parse(&f, text) < 0)
        return;
    int width = 0;
    check(f.word >= 0 && f.word < SYSFS_WORDS && f.n >= 1 && f.n <= SYSFS_RANGES_MAX);
    for (int i = 0; i < f.n; i++)
        width += f.range[i].to - f.range[i].from + 1;
    check(width >= 1 && width <= 64);
    uint64_t most = UINT64_MAX >> (64 - width), config[SYSFS_WORDS] = { 0 };
    check(sysfs_format_set(&f, most, config) == 0);
    check(__builtin_popcountll(config[f.word]) == width);
    check(width == 64 || sysfs_format_set(&f, most + 1, config) == -ERANGE);
    check(sysfs_format_set(&f, 0, config) == 0 && config[f.word] == 0);
}

static void try_terms(const char *text)
{
    struct sysfs_terms t, again;
    if (sysfs_terms_parse(&t, text) < 0)
        return;
    AUTO_BUF struct buf b = BUF_INIT;
    check(t.n >= 1 && t.n <= SYSFS_TERMS_MAX);
    for (int i = 0; i < t.n; i++) {
        check(*t.v[i].name && *t.v[i].name != '.' && !strchr(t.v[i].name, '/'));
        buf_printf(&b, "%s%s=0x%llx", i ? "," : "", t.v[i].name, (unsigned long long)t.v[i].value);
    }
    check(sysfs_terms_parse(&again, buf_text(&b)) == 0 && again.n == t.n);
    for (int i = 0; i < t.n; i++)
        check(strcmp(again.v[i].name, t.v[i].name) == 0 && again.v[i].value == t.v[i].value);
}

static void try_cpus(const char *text)
{
    struct sysfs_cpus c, again;
    if (sysfs_cpus_parse(&c, text) < 0)
        return;
    AUTO_BUF struct buf b = BUF_INIT;
    int n = 0;
    for (int cpu = -1; (cpu = sysfs_cpus_next(&c, cpu + 1)) >= 0; n++)
        buf_printf(&b, "%s%d", n ? "," : "", cpu);
    check(n == sysfs_cpus_count(&c));
    check(sysfs_cpus_parse(&again, buf_text(&b)) == 0 && memcmp(&again, &c, sizeof c) == 0);
}

static void try_values(const char *text)
{
    double scale;
    char unit[SYSFS_UNIT_SIZE];
    uint32_t type;
    struct sysfs_cpu_id id;
    check(sysfs_scale_parse(&scale, text) < 0 || (isfinite(scale) && scale > 0));
    check(sysfs_unit_parse(unit, text) < 0 || strlen(unit) < SYSFS_UNIT_SIZE);
    (void)sysfs_type_parse(&type, text);
    check(sysfs_modalias_parse(&id, text) < 0 || (id.vendor <= 0xffff && id.family <= 0xffff && id.model <= 0xffff));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    try_format(text);
    try_terms(text);
    try_cpus(text);
    try_values(text);
    free(text);
    return 0;
}
