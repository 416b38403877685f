#include <endian.h>
#include <errno.h>
#include <linux/capability.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/doctor.h"
#include "monitoring/events_probe.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

enum doctor_state doctor_files(const struct doctor_place *p, struct doctor_finding *f)
{
    (void)p;
    enum { OWN = 256, WANTED = 4096 };
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    long all = (cpus > 0 ? cpus : 1) * EVENT_NAMES;
    unsigned long long wanted = all + OWN > WANTED ? (unsigned long long)all + OWN : WANTED;
    struct rlimit r = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &r) < 0) {
        buf_puts(&f->detail, "the limit cannot be read");
        buf_puts(&f->fix, "none known");
        return CHECK_WARN;
    }
    buf_printf(&f->detail, "%llu file descriptors, at most %llu; counting %d events on %ld CPU%s takes up to %ld",
               (unsigned long long)r.rlim_cur, (unsigned long long)r.rlim_max, EVENT_NAMES, cpus, cpus == 1 ? "" : "s",
               all);
    if (r.rlim_max >= wanted) /* the JVM and the sampler raise their own limits as far as they may */
        return CHECK_OK;
    buf_printf(&f->fix, "raise the hard limit to %llu: ulimit -Hn, /etc/security/limits.conf or LimitNOFILE=", wanted);
    return CHECK_WARN;
}

/* CAP_PERFMON or CAP_SYS_ADMIN: the kernel then asks for no more. */
static bool may_always_count(void)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (io_read_file(&b, "/proc/self/status", 65536, NULL) < 0)
        return false;
    const char *line = strstr(buf_text(&b), "CapEff:");
    unsigned long long caps = line ? strtoull(line + strlen("CapEff:"), NULL, 16) : 0;
    return caps & (1ULL << CAP_PERFMON | 1ULL << CAP_SYS_ADMIN);
}

/* Does the file give CAP_PERFMON to whoever starts it? */
static bool gives_perfmon(const char *path)
{
    struct vfs_cap_data d = { 0 };
    ssize_t n = path ? getxattr(path, "security.capability", &d, sizeof d) : -1;
    if (n < (ssize_t)offsetof(struct vfs_cap_data, data[2]) || !(le32toh(d.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE))
        return false;
    return le32toh(d.data[CAP_PERFMON / 32].permitted) >> (CAP_PERFMON % 32) & 1;
}

static const char *paranoid_meaning(long level)
{
    if (level < 0)
        return "everything may be counted";
    if (level <= 1)
        return level == 0 ? "whole CPUs and own processes may be counted"
                          : "own processes may be counted, kernel included";
    return level == 2 ? "own processes may be counted, without the kernel's part"
                      : "nothing may be counted without CAP_PERFMON";
}

enum doctor_state doctor_perf(const struct doctor_place *p, struct doctor_finding *f)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (io_read_file(&b, "/proc/sys/kernel/perf_event_paranoid", 64, NULL) < 0) {
        buf_puts(&f->detail, "this kernel has no perf events: profiles come from /proc alone");
        buf_puts(&f->fix, "none needed; a kernel with CONFIG_PERF_EVENTS gives better profiles");
        return CHECK_WARN;
    }
    long level = strtol(buf_text(&b), NULL, 10);
    bool always = may_always_count(), node = gives_perfmon(p->env.node);
    bool pmu = io_exists("/sys/bus/event_source/devices/cpu") || io_exists("/sys/bus/event_source/devices/cpu_core");
    buf_printf(&f->detail, "perf_event_paranoid is %ld: %s%s", level,
               always ? "everything may be counted, by this user's CAP_PERFMON"
               : node ? "pipetune-node may count everything, by its CAP_PERFMON"
                      : paranoid_meaning(level),
               pmu ? "" : "; no hardware counters here (a VM?)");
    if (!always && !node && level > 1)
        buf_printf(&f->fix,
                   "setcap cap_perfmon=ep %s, or sysctl kernel.perf_event_paranoid=0 and the same line in "
                   "/etc/sysctl.d/ to keep it",
                   p->env.node ? p->env.node : "pipetune-node");
    else if (!pmu)
        buf_puts(&f->fix, "none needed: profiles then come from software events and /proc");
    return f->fix.len > 0 ? CHECK_WARN : CHECK_OK;
}

/* The mean share of time that the events on the core's counters will run. */
static double mean_share(const struct events *ev, bool watchdog)
{
    double share[EVENT_NAMES], sum = 0;
    events_forecast(ev, watchdog, NULL, share);
    for (int i = 0; i < EVENT_NAMES; i++)
        if (ev->v[i].core_counter && ev->v[i].same_as < 0)
            sum += share[i];
    return sum / ev->n_core;
}

static enum doctor_state cannot_resolve(struct doctor_finding *f, const struct err *e)
{
    buf_puts(&f->detail, e->text);
    buf_puts(&f->fix, "end what uses up memory or descriptors");
    return CHECK_WARN;
}

enum doctor_state doctor_watchdog(const struct doctor_place *p, struct doctor_finding *f)
{
    (void)p;
    struct events ev;
    struct err e;
    if (events_resolve(&ev, "/sys", &e) < 0)
        return cannot_resolve(f, &e);
    if (!events_nmi_watchdog("/proc") || !ev.core.found || ev.n_core == 0) {
        buf_printf(&f->detail, "holds no counter%s", ev.core.found ? "" : ": there are none here");
        return CHECK_OK;
    }
    buf_printf(&f->detail, "holds one of %d counters: each event runs %.0f %% of the time, %.0f %% without it",
               ev.core.general, 100 * mean_share(&ev, true), 100 * mean_share(&ev, false));
    buf_puts(&f->fix, "sysctl kernel.nmi_watchdog=0, which no longer tells of a CPU that hangs");
    return CHECK_WARN;
}

static int count_state(const struct events_probe *p, const struct events *ev, enum reading_state state)
{
    int n = 0;
    for (int i = 0; i < EVENT_NAMES; i++)
        n += ev->v[i].by != EVENT_BY_NONE && p->state[i] == state;
    return n;
}

static void put_reach(struct buf *b, const struct events_probe *p)
{
    if (p->n_ok > 0 && p->least != REACH_SYSTEM)
        buf_printf(b, ", of own processes only%s", p->least == REACH_USER ? " and without the kernel's part" : "");
}

enum doctor_state doctor_counters(const struct doctor_place *p, struct doctor_finding *f)
{
    (void)p;
    struct events ev;
    struct events_probe probe;
    struct err e;
    if (events_resolve(&ev, "/sys", &e) < 0)
        return cannot_resolve(f, &e);
    events_probe(&probe, &ev, events_first_cpu("/sys"), &perf_ops_kernel);
    int denied = count_state(&probe, &ev, READING_DENIED), no_fd = count_state(&probe, &ev, READING_NO_FD);
    buf_printf(&f->detail, "%d of %d can be counted by this user", probe.n_ok, EVENT_NAMES);
    put_reach(&f->detail, &probe);
    buf_printf(&f->detail, " (%d resolved, %d denied, %d not supported)", ev.n_resolved, denied,
               count_state(&probe, &ev, READING_UNSUPPORTED));
    if (denied > 0 || (probe.n_ok > 0 && probe.least != REACH_SYSTEM))
        buf_puts(&f->fix, "see 'perf' above; 'pipetune events' tells of each");
    else if (no_fd > 0)
        buf_puts(&f->fix, "see 'descriptors' above");
    return f->fix.len > 0 ? CHECK_WARN : CHECK_OK;
}
