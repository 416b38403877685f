#include "monitoring/perf_power.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/meter_util.h"
#include "monitoring/sysfs_pmu.h"
#include "monitoring/zone_sum.h"

enum { TEXT_SIZE = 8192, LABEL_SIZE = 48 };

#define PMU "bus/event_source/devices/power"
#define CPUS "devices/system/cpu"
#define STEP_J (1.0 / (1 << 14)) /* the coarsest that is usual; the kernel's own unit is finer */
#define STILL_NS 100000000U

static const char *const power_events[] = { "energy-pkg", "energy-ram" };

enum { PKG, RAM, EVENTS };

enum { VALUE, ENABLED, RUNNING, COUNTS };

struct event {
    bool found;
    struct event_attr attr;
    double scale;
};

struct place { /* one event on one CPU */
    int event, cpu, package;
    int fd; /* -1: not open */
    bool begun;
    uint64_t last[COUNTS]; /* at the last read, if it has begun */
    char label[LABEL_SIZE];
};

struct meter {
    const char *sysfs;
    const struct perf_ops *ops;
    int64_t (*now_ns)(void);
    struct event events[EVENTS];
    struct place v[ZONE_SUM_MAX];
    int n;
    bool is_open;
    struct zone_sum sum;
};

/* --- sysfs --- */

static int slurp(const struct meter *m, char out[TEXT_SIZE], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int slurp(const struct meter *m, char out[TEXT_SIZE], const char *fmt, ...)
{
    char name[PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(name, sizeof name, fmt, ap); /* ours, and short */
    va_end(ap);
    return meter_text(out, TEXT_SIZE, m->sysfs, name);
}

static int set_term(const struct meter *m, const struct sysfs_term *term, uint64_t config[SYSFS_WORDS])
{
    char text[TEXT_SIZE];
    struct sysfs_format f;
    int rc = slurp(m, text, PMU "/format/%s", term->name);
    if (rc >= 0)
        rc = sysfs_format_parse(&f, text);
    return rc < 0 ? rc : sysfs_format_set(&f, term->value, config);
}

static int read_terms(const struct meter *m, const char *name, struct event_attr *attr)
{
    char text[TEXT_SIZE];
    struct sysfs_terms terms;
    uint64_t config[SYSFS_WORDS] = { 0 };
    int rc = slurp(m, text, PMU "/events/%s", name);
    if (rc >= 0)
        rc = sysfs_terms_parse(&terms, text);
    for (int i = 0; rc >= 0 && i < terms.n; i++)
        rc = set_term(m, &terms.v[i], config);
    if (rc < 0)
        return rc;
    attr->config = config[0];
    attr->config1 = config[1];
    attr->config2 = config[2];
    return 0;
}

/* Without a scale, or with another unit, nobody knows what a count is. */
static int read_scale(const struct meter *m, const char *name, double *out)
{
    char text[TEXT_SIZE], unit[SYSFS_UNIT_SIZE];
    int rc = slurp(m, text, PMU "/events/%s.unit", name);
    if (rc >= 0)
        rc = sysfs_unit_parse(unit, text);
    if (rc < 0)
        return rc;
    if (strcmp(unit, "Joules") != 0)
        return -EINVAL;
    rc = slurp(m, text, PMU "/events/%s.scale", name);
    return rc < 0 ? rc : sysfs_scale_parse(out, text);
}

/* 1, 0: the PMU has no such event, or -errno. */
static int read_event(const struct meter *m, const char *name, struct event *out, struct err *e)
{
    struct event v = { .found = true };
    char text[TEXT_SIZE];
    int rc = slurp(m, text, PMU "/type");
    if (rc == -ENOENT)
        return 0;
    if (rc >= 0)
        rc = sysfs_type_parse(&v.attr.type, text);
    if (rc >= 0)
        rc = read_terms(m, name, &v.attr);
    if (rc == -ENOENT)
        return 0;
    if (rc >= 0)
        rc = read_scale(m, name, &v.scale);
    if (rc < 0)
        return err_sys(e, rc, "cannot understand '%s/" PMU "/events/%s'", m->sysfs, name);
    *out = v;
    return 1;
}

/* --- CPUs --- */

static bool ran_short(int rc)
{
    return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE;
}

/* A number of a CPU's topology; 0 where it is not told; -ENOMEM, -EMFILE, -ENFILE. */
static int topology(const struct meter *m, int cpu, const char *what)
{
    char text[TEXT_SIZE];
    uint32_t x;
    int rc = slurp(m, text, CPUS "/cpu%d/topology/%s", cpu, what);
    if (ran_short(rc))
        return rc;
    return rc < 0 || sysfs_type_parse(&x, text) < 0 || x > SYSFS_CPUS_MAX ? 0 : (int)x;
}

/* 1, 0, or < 0 as topology() */
static int counts_per_socket(const struct meter *m)
{
    char text[TEXT_SIZE];
    struct sysfs_cpu_id id;
    int rc = slurp(m, text, CPUS "/modalias");
    if (ran_short(rc))
        return rc;
    if (rc < 0 || sysfs_modalias_parse(&id, text) < 0)
        return 0;
    return id.vendor == SYSFS_VENDOR_AMD || id.vendor == SYSFS_VENDOR_HYGON;
}

struct dies {
    int v[ZONE_SUM_MAX][2]; /* socket, die */
    int n;
};

/* 1: it was not there yet. */
static int add_die(struct dies *d, int package, int die)
{
    for (int i = 0; i < d->n; i++)
        if (d->v[i][0] == package && d->v[i][1] == die)
            return 0;
    if (d->n == ZONE_SUM_MAX)
        return -E2BIG;
    d->v[d->n][0] = package;
    d->v[d->n++][1] = die;
    return 1;
}

/* One CPU of each socket, or of each die. */
static int by_topology(const struct meter *m, struct sysfs_cpus *out)
{
    char text[TEXT_SIZE];
    struct sysfs_cpus online, first = { 0 };
    struct dies dies = { .n = 0 };
    int sockets = counts_per_socket(m), rc = sockets < 0 ? sockets : slurp(m, text, CPUS "/online");
    if (rc < 0 || sysfs_cpus_parse(&online, text) < 0)
        return rc < 0 ? rc : -EINVAL;
    for (int cpu = -1; (cpu = sysfs_cpus_next(&online, cpu + 1)) >= 0;) {
        int package = topology(m, cpu, "physical_package_id"), die = sockets ? 0 : topology(m, cpu, "die_id");
        rc = package < 0 ? package : die < 0 ? die : add_die(&dies, package, die);
        if (rc < 0)
            return rc;
        if (rc > 0)
            first.w[cpu / 64] |= 1ULL << (cpu % 64);
    }
    *out = first;
    return dies.n > 0 ? 0 : -EINVAL;
}

static int read_cpus(const struct meter *m, struct sysfs_cpus *out)
{
    char text[TEXT_SIZE];
    struct sysfs_cpus mask;
    int rc = slurp(m, text, PMU "/cpumask");
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc < 0)
        return by_topology(m, out);
    if (sysfs_cpus_parse(&mask, text) < 0)
        return -EINVAL;
    if (sysfs_cpus_count(&mask) == 0)
        return by_topology(m, out);
    *out = mask;
    return 0;
}

/* --- events --- */

static void close_all(struct meter *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->v[i].fd >= 0)
            (void)m->ops->close(m->v[i].fd, m->ops->ctx); /* nothing can be lost by it */
        m->v[i].fd = -1;
    }
    m->is_open = false;
}

/* All or none. On failure the place that could not be opened. */
static int open_all(struct meter *m, int *at)
{
    for (int i = 0; i < m->n; i++) {
        struct place *p = &m->v[i];
        p->fd = m->ops->open(&m->events[p->event].attr, -1, p->cpu, 0, m->ops->ctx);
        p->begun = false;
        if (p->fd >= 0)
            continue;
        int rc = p->fd;
        p->fd = -1;
        *at = i;
        close_all(m);
        return rc;
    }
    m->is_open = true;
    return 0;
}

static bool is_none(int rc)
{
    return rc == -ENOENT || rc == -EOPNOTSUPP || rc == -EINVAL || rc == -ENODEV;
}

static int add_place(struct meter *m, int event, int cpu, struct err *e)
{
    if (m->n == ZONE_SUM_MAX)
        return err_set(e, -E2BIG, "the PMU 'power' is to be opened in more than %d places", ZONE_SUM_MAX);
    struct place *p = &m->v[m->n++];
    *p = (struct place){ .event = event, .cpu = cpu, .fd = -1 };
    p->package = topology(m, cpu, "physical_package_id");
    if (p->package < 0)
        return err_sys(e, p->package, "cannot tell the socket of CPU %d", cpu);
    (void)snprintf(p->label, sizeof p->label, "%s of CPU %d", power_events[event], cpu);
    struct zone_counter zone = { .name = p->label,
                                 .unit_j = m->events[event].scale,
                                 .step_j = STEP_J,
                                 .twins = p->package * EVENTS + event,
                                 .rests = event == RAM };
    return zone_sum_zone(&m->sum, &zone);
}

static int add_places(struct meter *m, double max_w, struct err *e)
{
    struct sysfs_cpus cpus;
    int rc = read_cpus(m, &cpus);
    if (rc < 0)
        return err_sys(e, rc, "cannot tell on which CPUs the PMU 'power' counts");
    m->n = 0;
    zone_sum_init(&m->sum, max_w);
    for (int event = 0; event < EVENTS; event++)
        for (int cpu = -1; rc == 0 && m->events[event].found && (cpu = sysfs_cpus_next(&cpus, cpu + 1)) >= 0;)
            rc = add_place(m, event, cpu, e);
    return rc;
}

/* --- the meter --- */

static void perf_power_close(struct meter *m)
{
    if (m)
        close_all(m);
    free(m);
}

static const char *fix_of(int rc)
{
    if (rc == -EACCES || rc == -EPERM)
        return "give the program CAP_PERFMON, or set kernel.perf_event_paranoid to 0";
    if (rc == -ENODEV)
        return "virtual machines have none; take a pdu or snmp, or the estimate";
    return NULL;
}

/* Memory that the PMU names and cannot count is left out. */
static int open_first(struct meter *m, double max_w, struct err *e)
{
    int at = 0;
    int rc = add_places(m, max_w, e);
    if (rc < 0)
        return rc;
    rc = open_all(m, &at);
    if (is_none(rc) && m->v[at].event == RAM) {
        m->events[RAM].found = false;
        rc = add_places(m, max_w, e);
        if (rc < 0)
            return rc;
        rc = open_all(m, &at);
    }
    if (rc < 0)
        return err_sys(e, is_none(rc) ? -ENODEV : rc, "cannot count %s", m->v[at].label);
    return 0;
}

static int build(struct meter *m, double max_w, struct err *e)
{
    for (int i = 0; i < EVENTS; i++) {
        int rc = read_event(m, power_events[i], &m->events[i], e);
        if (rc < 0)
            return rc;
    }
    if (!m->events[PKG].found)
        return err_set(e, -ENODEV, "no event energy-pkg in '%s/" PMU "'", m->sysfs);
    return open_first(m, max_w, e);
}

static int begin(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot open the meter perf-power");
    m->sysfs = meter_sysfs(cfg);
    m->ops = cfg->ops ? cfg->ops : &perf_ops_kernel;
    m->now_ns = cfg->now_ns;
    int rc = build(m, meter_max_w(cfg), e);
    if (rc < 0)
        perf_power_close(m);
    else
        *out = m;
    return rc;
}

static int perf_power_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    int rc = begin(out, cfg, e);
    return meter_refused(rc, e, fix_of(rc));
}

static int perf_power_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct err e = { 0 };
    int rc = begin(&m, cfg, &e), n[EVENTS] = { 0 };
    for (int i = 0; rc == 0 && i < m->n; i++)
        n[m->v[i].event]++;
    if (rc == 0)
        buf_printf(detail, "energy-pkg on %d CPU%s, energy-ram on %d", n[PKG], n[PKG] == 1 ? "" : "s", n[RAM]);
    perf_power_close(m);
    return meter_probed(rc, &e, fix_of(rc), detail, fix);
}

/* 0 or -errno; -ENODEV: it is not counted any more, as when its CPU was taken away. */
static int place_now(struct meter *m, struct place *p, uint64_t *out)
{
    uint64_t got[COUNTS];
    ssize_t n = m->ops->read(p->fd, got, m->ops->ctx);
    if (n < 0)
        return (int)n;
    if (n != (ssize_t)sizeof got)
        return -EIO;
    if (p->begun && got[RUNNING] == p->last[RUNNING] && got[ENABLED] - p->last[ENABLED] >= STILL_NS)
        return -ENODEV;
    memcpy(p->last, got, sizeof got);
    p->begun = true;
    *out = got[VALUE];
    return 0;
}

static int failed(struct meter *m, const struct place *p, int rc, int64_t now_ns, struct meter_reading *out)
{
    zone_sum_failed(&m->sum, now_ns, out);
    (void)snprintf(out->why, sizeof out->why, "cannot read %s: %s", p->label, strerror(-rc));
    zone_sum_restart(&m->sum);
    close_all(m);
    return 1;
}

static int perf_power_read(struct meter *m, struct meter_reading *out)
{
    uint64_t counts[ZONE_SUM_MAX];
    int64_t now_ns = meter_now_ns(m->now_ns);
    int at = 0, rc = m->is_open ? 0 : open_all(m, &at);
    if (rc < 0)
        return failed(m, &m->v[at], rc, now_ns, out);
    for (int i = 0; i < m->n; i++) {
        rc = place_now(m, &m->v[i], &counts[i]);
        if (rc < 0)
            return failed(m, &m->v[i], rc, now_ns, out);
    }
    double skew_s = (double)(meter_now_ns(m->now_ns) - now_ns) / 1e9;
    zone_sum_read(&m->sum, now_ns, skew_s > 0 ? skew_s : 0, counts, out);
    return 1;
}

const struct meter_ops meter_perf_power = {
    .name = "perf-power",
    .help = "joules of processors and their memory, by the PMU power",
    .kind = METER_ENERGY,
    .local = true,
    .probe = perf_power_probe,
    .open = perf_power_open,
    .read = perf_power_read,
    .close = perf_power_close,
};
