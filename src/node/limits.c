#include "node/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/own.h"
#include "node/affinity.h"

enum { FILE_MAX = 16 << 10, PACKAGES_MAX = 64 };

/* The units (CPUs, packages) that a limit on these CPUs needs written. How many. */
static void clock_units(const char *sysfs, const struct cpus *on, struct cpus *out);
static void package_units(const char *sysfs, const struct cpus *on, struct cpus *out);

static const struct row {
    const char *name;
    void (*units)(const char *sysfs, const struct cpus *on, struct cpus *out);
    const char *dir, *file; /* SYSFS/dirUNIT/file */
    double factor;          /* from the name's unit to the file's */
    const char *what;       /* it takes */
} rows[LIMIT_ROWS] = {
    [LIMIT_FREQUENCY] = { "frequency_khz", clock_units, "devices/system/cpu/cpu", "cpufreq/scaling_max_freq", 1,
                          "cpufreq" },
    [LIMIT_POWER] = { "power_cap_w", package_units, "class/powercap/intel-rapl:", "constraint_0_power_limit_uw", 1e6,
                      "RAPL power capping" },
};

const char *limits_name(enum limit_row row)
{
    return rows[row].name;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct path {
    char text[PATH_MAX];
};

static struct path path_of(const char *sysfs, const char *dir, int unit, const char *file)
{
    struct path p;
    (void)snprintf(p.text, sizeof p.text, "%s/%s%d/%s", sysfs, dir, unit, file);
    return p;
}

static int read_number(const struct path *p, uint64_t *out)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, p->text, FILE_MAX, NULL);
    if (rc < 0)
        return rc;
    char *end;
    errno = 0;
    uint64_t n = strtoull(buf_text(&text), &end, 10);
    if (end == buf_text(&text) || errno)
        return -EINVAL;
    *out = n;
    return 0;
}

static int write_number(const struct path *p, uint64_t n)
{
    char text[32];
    AUTO_CLOSE int fd = open(p->text, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int len = snprintf(text, sizeof text, "%" PRIu64 "\n", n);
    return io_write_all(fd, text, (size_t)len); /* at once: the kernel takes or refuses it in this call */
}

static struct path path_of_limit(const char *sysfs, enum limit_row row, int unit)
{
    return path_of(sysfs, rows[row].dir, unit, rows[row].file);
}

static int explain(struct err *e, int rc, enum limit_row row, const struct path *p, const char *doing)
{
    if (rc == -EACCES || rc == -EPERM || rc == -EROFS)
        return err_set(e, rc, "cannot %s %s: '%s': %s: let this user write it, or leave %s out", doing, rows[row].name,
                       p->text, strerror(-rc), rows[row].name);
    return err_sys(e, rc, "cannot %s %s: '%s'", doing, rows[row].name, p->text);
}

/* --- units -------------------------------------------------------------------------------------------------------- */

static void add_once(struct cpus *to, int unit)
{
    for (int i = 0; i < to->n; i++)
        if (to->v[i] == unit)
            return;
    to->v[to->n++] = unit;
}

/* The first of the CPUs that share this one's clock: written once, and found once, before it was written. */
static int clock_of(const char *sysfs, int cpu)
{
    struct path p = path_of(sysfs, rows[LIMIT_FREQUENCY].dir, cpu, "cpufreq/related_cpus");
    uint64_t first = 0;
    return read_number(&p, &first) == 0 && first < CPUS_MAX ? (int)first : cpu;
}

static void clock_units(const char *sysfs, const struct cpus *on, struct cpus *out)
{
    for (int i = 0; i < on->n; i++) {
        int unit = clock_of(sysfs, on->v[i]);
        struct path p = path_of_limit(sysfs, LIMIT_FREQUENCY, unit);
        if (io_exists(p.text))
            add_once(out, unit);
    }
}

/* Zones "intel-rapl:N" whose name is "package-N": psys and others are no packages, and intel-rapl-mmio shows the same ones again. */
static void package_units(const char *sysfs, const struct cpus *on, struct cpus *out)
{
    (void)on;
    for (int zone = 0; zone < PACKAGES_MAX; zone++) {
        struct path name = path_of(sysfs, rows[LIMIT_POWER].dir, zone, "name");
        struct path cap = path_of_limit(sysfs, LIMIT_POWER, zone);
        AUTO_BUF struct buf text = BUF_INIT;
        if (io_read_file(&text, name.text, FILE_MAX, NULL) == 0 && strncmp(buf_text(&text), "package-", 8) == 0 &&
            io_exists(cap.text))
            add_once(out, zone);
    }
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static struct watch_limit *find_entry(struct watch_table *t, enum limit_row row, int unit)
{
    for (int i = 0; i < t->n_limits; i++) {
        struct watch_limit *l = &t->limits[i];
        if (watch_used(l) && l->row == (int)row && l->unit == unit)
            return l;
    }
    return NULL;
}

static int give_back_one(const char *sysfs, struct watch_limit *l)
{
    struct path p = path_of_limit(sysfs, (enum limit_row)l->row, l->unit);
    int rc = write_number(&p, l->found);
    if (rc < 0 && rc != -ENOENT) { /* that: the CPU was taken away, and its limit with it */
        l->tag = WATCH_LEFT;
        return rc;
    }
    watch_drop(l);
    return 0;
}

static int take(struct watch_table *t, const char *sysfs, int tag, enum limit_row row, int unit, struct err *e)
{
    struct watch_limit *known = find_entry(t, row, unit);
    if (known) {
        known->tag = tag;
        return 0;
    }
    struct path p = path_of_limit(sysfs, row, unit);
    uint64_t found = 0;
    int rc = read_number(&p, &found);
    if (rc < 0)
        return explain(e, rc, row, &p, "read");
    struct watch_limit *l = watch_free_limit(t);
    if (!l)
        return err_set(e, -ENOSPC, "more than %d limits at once", WATCH_LIMITS_MAX);
    l->tag = tag;
    l->row = (int)row;
    l->unit = unit;
    l->found = found;
    watch_use(l);
    return 0;
}

static int put(const char *sysfs, enum limit_row row, int unit, uint64_t value, uint64_t *out_now, struct err *e)
{
    struct path p = path_of_limit(sysfs, row, unit);
    int rc = write_number(&p, value);
    if (rc < 0)
        return explain(e, rc, row, &p, "set");
    failpoint("node-limited");
    rc = read_number(&p, out_now);
    return rc < 0 ? explain(e, rc, row, &p, "read back") : 0;
}

static bool holds(const struct cpus *units, int unit)
{
    for (int i = 0; i < units->n; i++)
        if (units->v[i] == unit)
            return true;
    return false;
}

/* What the tag has limited by this row, and does not any more. */
static int give_back_others(struct watch_table *t, const char *sysfs, int tag, enum limit_row row,
                            const struct cpus *keep)
{
    int failed = 0;
    for (int i = 0; i < t->n_limits; i++) {
        struct watch_limit *l = &t->limits[i];
        if (!watch_used(l) || (tag != AFFINITY_ALL && l->tag != tag) || l->row != (int)row || holds(keep, l->unit))
            continue;
        int rc = give_back_one(sysfs, l);
        failed = rc < 0 ? rc : failed;
    }
    return failed;
}

int limits_set(struct watch_table *t, const char *sysfs, int tag, enum limit_row row, double value,
               const struct cpus *on, double *out_now, struct err *e)
{
    struct cpus units = { .n = 0 };
    double highest = 0;
    if (value > 0 && on->n > 0)
        rows[row].units(sysfs, on, &units);
    if (value > 0 && on->n > 0 && units.n == 0)
        return err_set(e, -ENODEV, "cannot set %s: this machine has no %s: leave %s out", rows[row].name,
                       rows[row].what, rows[row].name);
    (void)give_back_others(t, sysfs, tag, row, &units); /* dropped either way; what is set now is said */
    int rc = 0;
    for (int i = 0; rc == 0 && i < units.n; i++)
        rc = take(t, sysfs, tag, row, units.v[i], e);
    for (int i = 0; rc == 0 && i < units.n; i++) {
        uint64_t now = 0;
        rc = put(sysfs, row, units.v[i], (uint64_t)(value * rows[row].factor + 0.5), &now, e);
        highest = (double)now > highest ? (double)now : highest;
    }
    if (rc == 0)
        *out_now = highest / rows[row].factor;
    return rc;
}

int limits_give_back(struct watch_table *t, const char *sysfs, int tag)
{
    static const struct cpus none = { .n = 0 };
    int failed = 0;
    for (int row = 0; row < LIMIT_ROWS; row++) {
        int rc = give_back_others(t, sysfs, tag, (enum limit_row)row, &none);
        failed = rc < 0 ? rc : failed;
    }
    return failed;
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

bool limits_frequency_range(const char *sysfs, const struct cpus *may, int out_khz[2])
{
    static const char *const files[] = { "cpufreq/cpuinfo_min_freq", "cpufreq/cpuinfo_max_freq" };
    struct cpus units = { .n = 0 };
    clock_units(sysfs, may, &units);
    uint64_t khz[2] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct path p = path_of(sysfs, rows[LIMIT_FREQUENCY].dir, units.n ? units.v[0] : 0, files[i]);
        if (units.n == 0 || read_number(&p, &khz[i]) < 0 || khz[i] > INT_MAX)
            return false;
    }
    out_khz[0] = (int)khz[0];
    out_khz[1] = (int)khz[1];
    return true;
}

int limits_power_caps(const char *sysfs, double *out_w, int max)
{
    struct cpus units = { .n = 0 };
    package_units(sysfs, &units, &units);
    int n = 0;
    for (int i = 0; i < units.n && n < max; i++) {
        struct path p = path_of_limit(sysfs, LIMIT_POWER, units.v[i]);
        uint64_t uw = 0;
        if (read_number(&p, &uw) == 0)
            out_w[n++] = (double)uw / rows[LIMIT_POWER].factor;
    }
    return n;
}
