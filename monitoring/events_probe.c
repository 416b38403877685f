#include "monitoring/events_probe.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

/* The file's text, "" when there is none. */
static void slurp(struct buf *b, const char *dir, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path || io_read_file(b, path, 65536, NULL) < 0)
        buf_cut(b, 0);
}

int events_first_cpu(const char *sysfs)
{
    struct sysfs_cpus cpus = { 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    slurp(&b, sysfs, "devices/system/cpu/online");
    (void)sysfs_cpus_parse(&cpus, buf_text(&b)); /* what cannot be read is the empty set */
    int cpu = sysfs_cpus_next(&cpus, 0);
    return cpu < 0 ? 0 : cpu;
}

bool events_nmi_watchdog(const char *proc)
{
    AUTO_BUF struct buf b = BUF_INIT;
    slurp(&b, proc, "sys/kernel/nmi_watchdog");
    return *buf_text(&b) == '1';
}

enum reading_state events_open_state(int rc)
{
    switch (-rc) {
    case EACCES:
    case EPERM: return READING_DENIED;
    case EMFILE:
    case ENFILE: return READING_NO_FD;
    case EBUSY: /* an exclusive or pinned event of somebody else's */
    case EINTR: return READING_NOT_COUNTED;
    default: /* ENOENT, EOPNOTSUPP, EINVAL, ENODEV, ENOSYS: each kernel, and each PMU, has its own way to say it */
        return READING_UNSUPPORTED;
    }
}

static int first_cpu(const struct event_spec *s, int cpu)
{
    struct sysfs_cpus cpus;
    int first = *s->cpus && sysfs_cpus_parse(&cpus, s->cpus) == 0 ? sysfs_cpus_next(&cpus, 0) : -1;
    return first >= 0 ? first : cpu;
}

static int try_open(const struct event_spec *s, enum events_reach reach, int cpu, const struct perf_ops *ops)
{
    bool all = reach == REACH_SYSTEM;
    unsigned flags = reach == REACH_USER ? PERF_OPS_USER : 0;
    int fd = ops->open(&s->attr, all ? -1 : 0, all ? cpu : -1, flags, ops->ctx);
    if (fd < 0)
        return fd;
    (void)ops->close(fd, ops->ctx); /* nothing was counted */
    return 0;
}

/* From the most down, as long as it is rights that lack. What a smaller reach is answered is said of that reach alone. */
static enum reading_state look(const struct event_spec *s, int cpu, const struct perf_ops *ops,
                               enum events_reach *reach)
{
    enum reading_state state = READING_UNSUPPORTED;
    enum events_reach least = s->attr.exclude_kernel_ok ? REACH_USER : REACH_OWN;
    *reach = REACH_NONE;
    for (enum events_reach r = REACH_SYSTEM; r >= least; r--) {
        int rc = try_open(s, r, first_cpu(s, cpu), ops);
        if (rc == 0) {
            *reach = r;
            return READING_OK;
        }
        state = events_open_state(rc);
        if (state != READING_DENIED)
            return state;
    }
    return state;
}

static void look_at(struct events_probe *out, const struct events *ev, int i, int cpu, const struct perf_ops *ops)
{
    const struct event_spec *s = &ev->v[i];
    out->state[i] = READING_UNSUPPORTED;
    if (s->by == EVENT_BY_NONE)
        return;
    if (s->same_as >= 0) {
        out->state[i] = out->state[s->same_as];
        out->reach[i] = out->reach[s->same_as];
    } else {
        out->state[i] = look(s, cpu, ops, &out->reach[i]);
    }
    if (out->state[i] != READING_OK)
        return;
    if (out->n_ok++ == 0 || out->reach[i] < out->least)
        out->least = out->reach[i];
}

void events_probe(struct events_probe *out, const struct events *ev, int cpu, const struct perf_ops *ops)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < EVENT_NAMES; i++)
        look_at(out, ev, i, cpu, ops);
}
