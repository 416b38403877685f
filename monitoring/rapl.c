#include "monitoring/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "monitoring/meter_util.h"
#include "monitoring/rapl_zones.h"
#include "monitoring/zone_sum.h"

enum { ZONES_MAX = 256, LABEL_SIZE = 64, TEXT_SIZE = 64, FOLDER_SIZE = 2 * RAPL_FOLDER_SIZE };

#define POWERCAP "class/powercap"
#define UNIT_J 1e-6
#define STEPS 4294967296.0               /* of the hardware's counter, in its range */
#define STEP_UNKNOWN_J (1.0 / (1 << 14)) /* the coarsest that is usual */

struct counter {
    int fd; /* -1: to be opened again */
    char folder[FOLDER_SIZE];
    char name[TEXT_SIZE];   /* as the kernel has it: another one there later is another zone */
    char label[LABEL_SIZE]; /* "package-0", "dram of package-0" */
};

struct meter {
    char dir[PATH_MAX];
    int64_t (*now_ns)(void);
    struct counter v[ZONE_SUM_MAX];
    size_t n;
    struct zone_sum sum;
};

/* --- finding zones --- */

struct found {
    struct rapl_zone v[ZONES_MAX];
    size_t n;
};

static bool is_found(const struct found *f, const struct rapl_zone *z)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].mmio == z->mmio && f->v[i].zone == z->zone && f->v[i].child == z->child)
            return true;
    return false;
}

/* A zone that has no name is none; one whose name cannot be read would leave a hole in the sum. */
static int add_zone(struct found *f, const char *dir, const char *folder, struct err *e)
{
    struct rapl_zone z;
    char name[PATH_MAX], text[TEXT_SIZE];
    if (rapl_zone_parse(&z, folder) < 0 || is_found(f, &z))
        return 0;
    if (f->n == ZONES_MAX)
        return err_set(e, -E2BIG, "more than %d zones below '%s'", ZONES_MAX, dir);
    (void)snprintf(name, sizeof name, "%s/name", folder);
    int rc = meter_text(text, sizeof text, dir, name);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return err_sys(e, rc, "cannot read '%s/%s'", dir, name);
    rapl_zone_name(&z, text);
    f->v[f->n++] = z;
    return 0;
}

/* The kernel shows all zones in one folder, and children in their parents', too. */
static int scan(struct found *f, const char *dir, struct err *e)
{
    DIR *d = opendir(dir);
    int rc = d ? 0 : -errno;
    if (!d)
        return rc == -ENOENT ? 0 : err_sys(e, rc, "cannot read '%s'", dir);
    for (const struct dirent *at; rc == 0 && (at = readdir(d));)
        rc = add_zone(f, dir, at->d_name, e);
    (void)closedir(d);
    return rc;
}

static int scan_all(struct found *f, const char *dir, struct err *e)
{
    char sub[PATH_MAX], folder[RAPL_FOLDER_SIZE];
    int rc = scan(f, dir, e);
    size_t n = f->n;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rapl_zone_folder(&f->v[i], folder);
        if (f->v[i].child < 0 && (size_t)snprintf(sub, sizeof sub, "%s/%s", dir, folder) < sizeof sub)
            rc = scan(f, sub, e);
    }
    return rc;
}

/* --- one counter --- */

/* Where a child's folder is not beside its parent's it is in it. */
static void locate(const char *dir, const struct rapl_zone *z, char out[FOLDER_SIZE])
{
    char path[PATH_MAX], folder[RAPL_FOLDER_SIZE], parent[RAPL_FOLDER_SIZE];
    struct rapl_zone up = *z;
    up.child = -1;
    rapl_zone_folder(z, folder);
    rapl_zone_folder(&up, parent);
    (void)snprintf(out, FOLDER_SIZE, "%s", folder);
    int n = snprintf(path, sizeof path, "%s/%s", dir, folder);
    if (z->child >= 0 && n > 0 && (size_t)n < sizeof path && access(path, F_OK) < 0)
        (void)snprintf(out, FOLDER_SIZE, "%s/%s", parent, folder);
}

/* A file of the zone: its length, or -errno. */
static int zone_text(const struct meter *m, const struct counter *c, const char *file, char out[TEXT_SIZE])
{
    char name[PATH_MAX];
    (void)snprintf(name, sizeof name, "%s/%s", c->folder, file);
    return meter_text(out, TEXT_SIZE, m->dir, name);
}

static int read_count(const struct counter *c, uint64_t *out)
{
    char text[TEXT_SIZE];
    struct stat st;
    ssize_t n = pread(c->fd, text, sizeof text - 1, 0);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    if (strlen(text) != (size_t)n || rapl_count_parse(out, text) < 0)
        return -EIO;
    return fstat(c->fd, &st) == 0 && st.st_nlink == 0 ? -ENODEV : 0; /* a file that was replaced is read no more */
}

/* Opens it, and reads it once: some kernels show files that cannot be read. */
static int open_counter(const struct meter *m, struct counter *c)
{
    char path[PATH_MAX], name[TEXT_SIZE];
    uint64_t count;
    int rc = zone_text(m, c, "name", name);
    if (rc < 0)
        return rc;
    if (strcmp(name, c->name) != 0)
        return -ENODEV;
    int n = snprintf(path, sizeof path, "%s/%s/energy_uj", m->dir, c->folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    c->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (c->fd < 0)
        return -errno;
    rc = read_count(c, &count);
    if (rc < 0)
        own_close(&c->fd);
    if (rc < 0)
        c->fd = -1;
    return rc;
}

/* 0: not told. Only want of descriptors is a failure. */
static int read_range(const struct meter *m, const struct counter *c, uint64_t *out)
{
    char text[TEXT_SIZE];
    int rc = zone_text(m, c, "max_energy_range_uj", text);
    if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
        return rc;
    if (rc < 0 || rapl_count_parse(out, text) < 0)
        *out = 0;
    return 0;
}

static double step_of(uint64_t range)
{
    double step_j = (double)range * UNIT_J / STEPS;
    return range == 0 ? STEP_UNKNOWN_J : step_j < UNIT_J ? UNIT_J : step_j;
}

static void label(struct counter *c, const struct rapl_zone *z)
{
    const char *of = z->kind == RAPL_DRAM ? "dram of " : "";
    if (z->package >= 0 && z->die >= 0)
        (void)snprintf(c->label, sizeof c->label, "%spackage-%d-die-%d", of, z->package, z->die);
    else if (z->package >= 0)
        (void)snprintf(c->label, sizeof c->label, "%spackage-%d", of, z->package);
    else
        (void)snprintf(c->label, sizeof c->label, "%s", z->kind == RAPL_DRAM ? "dram" : "psys");
}

static int add_counter(struct meter *m, const struct rapl_zone *z, struct err *e)
{
    struct counter *c = &m->v[m->n];
    uint64_t range = 0;
    if (m->n == ZONE_SUM_MAX)
        return err_set(e, -E2BIG, "more than %d zones to be read below '%s'", ZONE_SUM_MAX, m->dir);
    *c = (struct counter){ .fd = -1 };
    m->n++;
    locate(m->dir, z, c->folder);
    int rc = zone_text(m, c, "name", c->name);
    label(c, z);
    if (rc >= 0)
        rc = open_counter(m, c);
    if (rc >= 0)
        rc = read_range(m, c, &range);
    if (rc < 0)
        return err_sys(e, rc, "cannot read '%s/%s/energy_uj'", m->dir, c->folder);
    struct zone_counter zone = { .name = c->label,
                                 .unit_j = UNIT_J,
                                 .step_j = step_of(range),
                                 .range = range,
                                 .twins = z->package < 0 ? -1 : z->package * 2 + (z->kind == RAPL_DRAM),
                                 .rests = z->kind == RAPL_DRAM };
    return zone_sum_zone(&m->sum, &zone);
}

/* --- the meter --- */

static void rapl_close(struct meter *m)
{
    for (size_t i = 0; m && i < m->n; i++)
        own_close(&m->v[i].fd);
    free(m);
}

static const char *fix_of(int rc)
{
    if (rc == -EACCES || rc == -EPERM)
        return "run as root, install conf/udev/60-pipetune-rapl.rules, or take the meter perf-power with CAP_PERFMON";
    if (rc == -ENODEV)
        return "virtual machines have none, and containers may not be shown it; take perf-power, a pdu or snmp, or the "
               "estimate";
    return NULL;
}

static int find_zones(struct found *f, struct rapl_choice *choice, const char *dir, struct err *e)
{
    int rc = scan_all(f, dir, e);
    if (rc < 0)
        return rc;
    if (rapl_zones_choose(f->v, f->n, choice) < 0)
        return err_set(e, -ENODEV, "no RAPL zone of a package below '%s'", dir);
    return 0;
}

static int build(struct meter *m, struct rapl_choice *choice, struct err *e)
{
    struct found f = { .n = 0 };
    int rc = find_zones(&f, choice, m->dir, e);
    for (size_t i = 0; rc == 0 && i < f.n; i++)
        if (f.v[i].chosen)
            rc = add_counter(m, &f.v[i], e);
    return rc;
}

static int begin(struct meter **out, const struct meter_cfg *cfg, struct rapl_choice *choice, struct err *e)
{
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot open the meter rapl");
    zone_sum_init(&m->sum, meter_max_w(cfg));
    m->now_ns = cfg->now_ns;
    int n = snprintf(m->dir, sizeof m->dir, "%s/" POWERCAP, meter_sysfs(cfg));
    int rc = n < 0 || (size_t)n >= sizeof m->dir ? err_sys(e, -ENAMETOOLONG, "cannot open the meter rapl")
                                                 : build(m, choice, e);
    if (rc < 0)
        rapl_close(m);
    else
        *out = m;
    return rc;
}

static int rapl_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    struct rapl_choice choice;
    int rc = begin(out, cfg, &choice, e);
    return meter_refused(rc, e, fix_of(rc));
}

static void describe(struct buf *out, const struct rapl_choice *c)
{
    if (c->packages == 0)
        buf_puts(out, "psys alone: there is no package");
    else
        buf_printf(out, "%d package%s, %d dram", c->packages, c->packages == 1 ? "" : "s", c->dram);
    if (c->dies)
        buf_puts(out, "; dies of one package count once while they show the same");
    if (c->packages > 0 && c->psys_left > 0)
        buf_puts(out, "; without psys, which has them in it");
    if (c->mmio_left > 0)
        buf_puts(out, "; without intel-rapl-mmio, which shows them again");
    if (c->other > 0)
        buf_printf(out, "; without %d of unknown name", c->other);
}

static int rapl_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct rapl_choice choice;
    struct err e = { 0 };
    int rc = begin(&m, cfg, &choice, &e);
    if (rc == 0)
        describe(detail, &choice);
    rapl_close(m);
    return meter_probed(rc, &e, fix_of(rc), detail, fix);
}

/* Opened again where it was lost. 0 or -errno. */
static int counter_now(const struct meter *m, struct counter *c, uint64_t *out)
{
    int rc = c->fd < 0 ? open_counter(m, c) : 0;
    if (rc == 0)
        rc = read_count(c, out);
    if (rc == 0)
        return 0;
    own_close(&c->fd);
    c->fd = -1;
    return rc;
}

static int rapl_read(struct meter *m, struct meter_reading *out)
{
    uint64_t counts[ZONE_SUM_MAX];
    int64_t now_ns = meter_now_ns(m->now_ns);
    for (size_t i = 0; i < m->n; i++) {
        int rc = counter_now(m, &m->v[i], &counts[i]);
        if (rc == 0)
            continue;
        zone_sum_failed(&m->sum, now_ns, out);
        (void)snprintf(out->why, sizeof out->why, "cannot read %s: %s", m->v[i].label, strerror(-rc));
        return 1;
    }
    double skew_s = (double)(meter_now_ns(m->now_ns) - now_ns) / 1e9;
    zone_sum_read(&m->sum, now_ns, skew_s > 0 ? skew_s : 0, counts, out);
    return 1;
}

const struct meter_ops meter_rapl = {
    .name = "rapl",
    .help = "joules of processors and their memory, by powercap",
    .kind = METER_ENERGY,
    .local = true,
    .probe = rapl_probe,
    .open = rapl_open,
    .read = rapl_read,
    .close = rapl_close,
};
