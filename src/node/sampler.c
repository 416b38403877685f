#include "node/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/code.h"
#include "monitoring/counters.h"
#include "monitoring/events.h"
#include "monitoring/procs.h"

enum { CGROUP_TEXT_MAX = 64 << 10, CGROUP_PATH_SIZE = 4096 };

struct sampler { /* of one launch */
    bool on;
    enum sampler_scope asked, scope;
    struct event_choice events;
    struct ticker ticker;
    int64_t from_ns;           /* since when its readings count */
    uint64_t missed;           /* since the last sample */
    struct counters *counters; /* NULL: the cgroup is not known yet */
    struct procs *procs;
    struct code *code;
};

struct samplers {
    struct samplers_on on;
    struct events events;
    struct codes *codes;
    int fds_left;
    struct sampler of[MEMBERS_TAGS_MAX];
    struct procs_id ids[PROCS_MAX + 1]; /* of the launch at hand; one more says that they are too many */
};

/* --- names and time ----------------------------------------------------------------------------------------------- */

static const char *const scope_names[SAMPLER_SCOPES] = {
    [SAMPLER_AUTO] = "auto",
    [SAMPLER_SYSTEM] = "system",
    [SAMPLER_CGROUP] = "cgroup",
    [SAMPLER_PROCESS] = "process",
};

const char *sampler_scope_name(enum sampler_scope scope)
{
    return scope_names[scope];
}

int sampler_scope_find(const char *name)
{
    for (int i = 0; i < SAMPLER_SCOPES; i++)
        if (strcmp(name, scope_names[i]) == 0)
            return i;
    return -1;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); /* cannot fail with these clocks */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t samplers_clock(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* --- who ---------------------------------------------------------------------------------------------------------- */

static size_t list_ids(struct samplers *s, int tag, const struct members *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n && n < ARRAY_LEN(s->ids); i++)
        if (members_has(&m->v[i], tag))
            s->ids[n++] = (struct procs_id){ .pid = m->v[i].pid, .start_ticks = m->v[i].start };
    return n;
}

/* The line of the perf_event hierarchy, else of the unified one: its path. NULL: neither. */
static const char *find_cgroup(const char *text, bool *named)
{
    static const char v1[] = ":perf_event:", v2[] = "0::";
    const char *line = strstr(text, v1);
    *named = line != NULL;
    if (line)
        return line + strlen(v1);
    for (line = text; line && strncmp(line, v2, strlen(v2)) != 0;) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return line ? line + strlen(v2) : NULL;
}

/* Where the cgroup of the process is below /sys/fs/cgroup, "perf_event/…" in the named hierarchy. */
static bool read_cgroup(const struct samplers *s, pid_t pid, char *out, size_t size)
{
    char path[512];
    bool named = false;
    AUTO_BUF struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "%s/%ld/cgroup", s->on.proc, (long)pid);
    if (io_read_file(&text, path, CGROUP_TEXT_MAX, NULL) < 0)
        return false;
    const char *found = find_cgroup(buf_text(&text), &named);
    int n = found ? snprintf(out, size, "%s%.*s", named ? "perf_event" : "", (int)strcspn(found, "\n"), found) : -1;
    return n > 0 && (size_t)n < size;
}

static int open_folder(const struct samplers *s, const char *mount, const char *cgroup)
{
    char path[CGROUP_PATH_SIZE + 512];
    (void)snprintf(path, sizeof path, "%s/fs/cgroup/%s/%s", s->on.sysfs, mount, cgroup);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The folder of the cgroup that all of them are in, or -1. */
static int open_cgroup(const struct samplers *s, size_t n)
{
    char first[CGROUP_PATH_SIZE], other[CGROUP_PATH_SIZE];
    if (n == 0 || !read_cgroup(s, s->ids[0].pid, first, sizeof first))
        return -1;
    for (size_t i = 1; i < n; i++)
        if (!read_cgroup(s, s->ids[i].pid, other, sizeof other) || strcmp(first, other) != 0)
            return -1;
    int fd = open_folder(s, "unified", first); /* where both kinds are mounted */
    return fd >= 0 ? fd : open_folder(s, "", first);
}

/* --- one launch --------------------------------------------------------------------------------------------------- */

static void done(struct sampler *one)
{
    counters_free(one->counters);
    procs_free(one->procs);
    code_free(one->code);
    *one = (struct sampler){ 0 };
}

/* What a feature is while nothing counts it. */
static struct reading nothing(const struct sampler *one, int feature)
{
    const bool *only = event_choice_only(&one->events);
    bool absent = feature < EVENT_NAMES ? only && !only[feature] : feature >= FEATURE_LOG && feature < FEATURE_JVM;
    return (struct reading){ .value = NAN, .state = absent ? READING_ABSENT : READING_NOT_COUNTED };
}

static void read_all(struct samplers *s, struct sampler *one, size_t n, struct reading v[FEATURES])
{
    for (int i = 0; i < FEATURES; i++)
        v[i] = nothing(one, i);
    if (one->counters && one->scope == SAMPLER_PROCESS)
        counters_follow(one->counters, s->ids, n);
    if (one->counters)
        counters_read(one->counters, v);
    (void)procs_read(one->procs, s->ids, n, v + FEATURE_PROC, v + FEATURE_JVM); /* no memory: not counted this time */
    code_read(one->code, s->ids, n, v + FEATURE_CODE);
}

/* NULL: out of memory. */
static struct counters *new_counters(struct samplers *s, const struct sampler *one, int cgroup_fd)
{
    const struct counters_want want = {
        .ops = s->on.ops,
        .events = &s->events,
        .scope = one->scope == SAMPLER_SYSTEM   ? COUNTERS_SYSTEM
                 : one->scope == SAMPLER_CGROUP ? COUNTERS_CGROUP
                                                : COUNTERS_PROCESS,
        .cgroup_fd = cgroup_fd,
        .sysfs = s->on.sysfs,
        .proc = s->on.proc,
        .only = event_choice_only(&one->events),
        .fds_left = &s->fds_left,
    };
    return counters_new(&want);
}

/* Nothing while the cgroup is not known. -ENOMEM. */
static int open_counters(struct samplers *s, struct sampler *one, size_t n)
{
    int cgroup = one->scope == SAMPLER_CGROUP ? open_cgroup(s, n) : -1;
    if (one->scope == SAMPLER_CGROUP && cgroup < 0)
        return 0;
    one->counters = new_counters(s, one, cgroup);
    return one->counters ? 0 : -ENOMEM;
}

/* Everything counts from now on. -ENOMEM: the next tick tries again. */
static int start(struct samplers *s, struct sampler *one, size_t n)
{
    struct reading before[FEATURES];
    counters_free(one->counters);
    one->counters = NULL;
    int rc = open_counters(s, one, n);
    read_all(s, one, n, before);
    one->from_ns = s->on.now_ns();
    one->ticker.next = one->from_ns + one->ticker.interval;
    return rc;
}

/* --- scopes ------------------------------------------------------------------------------------------------------- */

static enum sampler_scope scope_now(const struct samplers *s, const struct sampler *one)
{
    int n = 0;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        n += s->of[i].on;
    return one->asked != SAMPLER_AUTO ? one->asked : n > 1 ? SAMPLER_PROCESS : SAMPLER_SYSTEM;
}

/* After one came or went. One that has no memory to begin anew counts nothing until it has. */
static void follow_scopes(struct samplers *s, const struct members *m)
{
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++) {
        struct sampler *one = &s->of[i];
        if (!one->on || one->scope == scope_now(s, one))
            continue;
        one->scope = scope_now(s, one);
        (void)start(s, one, list_ids(s, i, m));
    }
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

void samplers_close(struct samplers *s)
{
    if (!s)
        return;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        done(&s->of[i]);
    codes_free(s->codes);
    free(s);
}

int samplers_open(struct samplers **out, const struct samplers_on *on, struct err *e)
{
    struct samplers *s = calloc(1, sizeof *s);
    if (!s)
        return err_sys(e, -ENOMEM, "cannot sample");
    s->on = *on;
    s->fds_left = on->fds_max;
    const struct codes_want looks = { .ops = on->ops, .sysfs = on->sysfs, .proc = on->proc, .fds_left = &s->fds_left };
    s->codes = codes_new(&looks);
    int rc = s->codes ? events_resolve(&s->events, on->sysfs, e) : err_sys(e, -ENOMEM, "cannot sample");
    if (rc < 0)
        samplers_close(s);
    else
        *out = s;
    return rc;
}

int samplers_set(struct samplers *s, int tag, const struct samplers_how *how, const struct members *m, struct err *e)
{
    struct sampler *one = &s->of[tag];
    done(one);
    *one = (struct sampler){
        .on = true, .asked = how->scope, .events = how->events, .ticker.interval = how->interval_ms * INT64_C(1000000)
    };
    one->procs = procs_new(s->on.proc);
    one->code = code_new(s->codes, how->interval_ms);
    one->scope = scope_now(s, one);
    int rc = one->procs && one->code ? start(s, one, list_ids(s, tag, m)) : -ENOMEM;
    if (rc < 0)
        done(one);
    follow_scopes(s, m);
    return rc < 0 ? err_sys(e, rc, "cannot sample") : 0;
}

void samplers_drop(struct samplers *s, int tag, const struct members *m)
{
    done(&s->of[tag]);
    follow_scopes(s, m);
}

int64_t samplers_due(const struct samplers *s)
{
    int64_t due = INT64_MAX;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (s->of[i].on && s->of[i].ticker.next < due)
            due = s->of[i].ticker.next;
    return due;
}

/* The launch whose tick is due; -1: none. */
static int find_due(const struct samplers *s, int64_t now)
{
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (s->of[i].on && s->of[i].ticker.next <= now)
            return i;
    return -1;
}

static void take(struct samplers *s, int tag, const struct members *m, int64_t now, struct sample *out)
{
    struct sampler *one = &s->of[tag];
    size_t n = list_ids(s, tag, m);
    *out = (struct sample){
        .tag = tag,
        .scope = one->scope,
        .t_ms = (double)read_clock(CLOCK_REALTIME) / 1e6,
        .dt_ms = (double)(now - one->from_ns) / 1e6,
        .missed = one->missed,
    };
    read_all(s, one, n, out->v);
    one->from_ns = now;
    one->missed = 0;
    if (!one->counters)
        (void)open_counters(s, one, n);
}

bool samplers_take(struct samplers *s, const struct members *m, bool heard, struct sample *out)
{
    int64_t now = s->on.now_ns();
    int tag;
    while ((tag = find_due(s, now)) >= 0) {
        s->of[tag].missed += ticker_take(&s->of[tag].ticker, now) - heard;
        if (heard) {
            take(s, tag, m, now, out);
            return true;
        }
    }
    return false;
}
