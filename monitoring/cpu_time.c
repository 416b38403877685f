#include "monitoring/cpu_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "monitoring/meter_util.h"

enum { STAT_MAX = 16 << 20, BUSY_FIELDS = 5, PATH_SIZE = 512 };

/* How much longer a CPU may seem to have been busy than an interval was: the clock and the file are not read at the same moment. */
#define SLACK_S 0.1

/* --- the text --- */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, FIELDS };

static int take_field(const char **p, uint64_t *out)
{
    uint64_t x = 0;
    *p += strspn(*p, " ");
    const char *start = *p;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        if (x > (UINT64_MAX / 16 - digit) / 10) /* a sum of fields must not go round */
            return -EINVAL;
        x = x * 10 + digit;
    }
    *out = x;
    return *p > start && (**p == ' ' || **p == '\n' || **p == '\0') ? 0 : -EINVAL;
}

static int count_cpus(const char *text)
{
    int n = 0;
    for (const char *p = strchr(text, '\n'); p; p = strchr(p + 1, '\n'))
        n += strncmp(p, "\ncpu", 4) == 0 && p[4] >= '0' && p[4] <= '9';
    return n;
}

int cpu_time_parse(struct cpu_time *out, const char *text)
{
    uint64_t v[FIELDS];
    const char *p = text + 4;
    if (strncmp(text, "cpu ", 4) != 0)
        return -EINVAL;
    for (int i = 0; i < FIELDS; i++)
        if (take_field(&p, &v[i]) < 0)
            return -EINVAL;
    int cpus = count_cpus(text);
    if (cpus == 0)
        return -EINVAL;
    *out = (struct cpu_time){ .busy_ticks = v[USER] + v[NICE] + v[SYSTEM] + v[IRQ] + v[SOFTIRQ], .cpus = cpus };
    return 0;
}

/* --- the meter --- */

struct meter {
    char path[PATH_SIZE];
    int64_t (*now_ns)(void);
    double tick_s;
    struct buf text;
    bool begun;
    struct cpu_time last;
    int64_t last_ns;
};

/* 0 or -errno, and why. */
static int read_stat(struct meter *m, struct cpu_time *out, struct err *e)
{
    buf_clear(&m->text);
    int rc = io_read_file(&m->text, m->path, STAT_MAX, e);
    if (rc < 0)
        return rc;
    rc = cpu_time_parse(out, buf_text(&m->text));
    return rc < 0 ? err_set(e, rc, "cannot understand '%s'", m->path) : 0;
}

static void cpu_close(struct meter *m)
{
    if (m)
        buf_done(&m->text);
    free(m);
}

static int begin(struct meter **out, const struct meter_cfg *cfg, struct cpu_time *first, struct err *e)
{
    long ticks = sysconf(_SC_CLK_TCK);
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot open the meter cpu");
    m->now_ns = cfg->now_ns;
    m->tick_s = 1.0 / (double)(ticks > 0 ? ticks : 100);
    int n = snprintf(m->path, sizeof m->path, "%s/stat", meter_proc(cfg));
    int rc = n < 0 || (size_t)n >= sizeof m->path ? err_sys(e, -ENAMETOOLONG, "cannot open the meter cpu")
                                                  : read_stat(m, first, e);
    if (rc < 0)
        cpu_close(m);
    else
        *out = m;
    return rc;
}

static int cpu_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    struct cpu_time first;
    return begin(out, cfg, &first, e);
}

static int cpu_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct cpu_time first = { 0 };
    struct err e = { 0 };
    int rc = begin(&m, cfg, &first, &e);
    if (rc == 0)
        buf_printf(detail, "%d CPU%s", first.cpus, first.cpus == 1 ? "" : "s");
    cpu_close(m);
    return meter_probed(rc, &e, NULL, detail, fix);
}

/* What the two reads make; NULL, or why it is implausible. */
static const char *busy_between(const struct meter *m, const struct cpu_time *now, double interval_s, double *busy_s)
{
    int cpus = now->cpus > m->last.cpus ? now->cpus : m->last.cpus;
    if (interval_s <= 0)
        return "the clock did not go forward";
    if (now->busy_ticks < m->last.busy_ticks)
        return "the CPUs' times went back";
    *busy_s = (double)(now->busy_ticks - m->last.busy_ticks) * m->tick_s;
    if (*busy_s > cpus * (interval_s + SLACK_S) + BUSY_FIELDS * m->tick_s)
        return "the CPUs would have been busy for longer than the interval was";
    return NULL;
}

static void measure(struct meter *m, const struct cpu_time *now, int64_t now_ns, struct meter_reading *out)
{
    double busy_s = 0;
    const char *why = busy_between(m, now, (double)(now_ns - m->last_ns) / 1e9, &busy_s);
    meter_reading_set(out, why ? METER_DISCARDED : METER_OK, m->last_ns, now_ns);
    if (why) {
        (void)snprintf(out->why, sizeof out->why, "%s", why);
        return;
    }
    out->value = busy_s;
    out->error = BUSY_FIELDS * m->tick_s;
}

static int cpu_read(struct meter *m, struct meter_reading *out)
{
    struct cpu_time now;
    struct err e = { 0 };
    int64_t now_ns = meter_now_ns(m->now_ns);
    int rc = read_stat(m, &now, &e);
    if (rc == -ENOMEM)
        return rc;
    if (rc < 0) {
        meter_reading_set(out, METER_FAILED, m->begun ? m->last_ns : now_ns, now_ns);
        (void)snprintf(out->why, sizeof out->why, "%s", e.text);
        return 1;
    }
    if (m->begun)
        measure(m, &now, now_ns, out);
    else
        meter_reading_set(out, METER_FIRST, now_ns, now_ns);
    m->begun = true;
    m->last = now;
    m->last_ns = now_ns;
    return 1;
}

const struct meter_ops meter_cpu = {
    .name = "cpu",
    .help = "seconds that all CPUs were busy, by /proc/stat",
    .kind = METER_CPU,
    .local = true,
    .probe = cpu_probe,
    .open = cpu_open,
    .read = cpu_read,
    .close = cpu_close,
};
