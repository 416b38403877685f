#include "monitoring/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "monitoring/events_probe.h"
#include "monitoring/online.h"

enum {
    TRIES_MAX = 4,  /* a process that starts threads while it is being opened */
    NOT_KNOWN = -1, /* in place of one of v */
    NOT_CHOSEN = -2,
};

enum { VALUE, ENABLED, RUNNING, COUNTS };

struct counter { /* one event in one place */
    int fd;      /* -1: not open */
    bool joined; /* read with the first */
    uint64_t last[COUNTS];
};

struct place {            /* where events are opened: a CPU, or a thread */
    int cpu;              /* -1: any */
    struct procs_id of;   /* whose thread */
    pid_t pid;            /* as perf_ops has it */
    struct counter *each; /* one for each event; owned */
};

struct sum { /* since the last read; the times in ns */
    double value, enabled, running;
    double covered; /* of `enabled`: in places where it ran at all, so that `value` could be scaled there */
    bool broken;    /* could not be read somewhere */
};

struct counted { /* one distinct encoding */
    struct event_attr attr;
    const char *cpus; /* "": on all */
    uint8_t failed;   /* READING_OK, or why it is not open */
    bool
        together; /* needs no counter of a core, so that it may be read with others of its kind: software events, and msr's */
    bool user; /* only user mode may be counted */
    struct sum sum;
};

struct counters {
    struct counters_want want;
    struct counted v[COUNTERS_READINGS]; /* those to be given up first come last */
    int n;
    int of[COUNTERS_READINGS]; /* which of v a reading is of; NOT_KNOWN: nobody knows its encoding */
    double scale[COUNTERS_READINGS];
    struct place *places; /* owned */
    size_t n_places, cap;
    bool follows_threads;
    bool grouped;         /* in each place what may be is read together, the first event leading */
    struct procs_id *ids; /* followed; owned */
    size_t n_ids;
    struct online online;
};

/* --- what is counted ---------------------------------------------------------------------------------------------- */

static const uint64_t software[] = {
    [FEATURE_CONTEXT_SWITCHES - FEATURE_SOFTWARE] = PERF_COUNT_SW_CONTEXT_SWITCHES,
    [FEATURE_CPU_MIGRATIONS - FEATURE_SOFTWARE] = PERF_COUNT_SW_CPU_MIGRATIONS,
    [FEATURE_MINOR_FAULTS - FEATURE_SOFTWARE] = PERF_COUNT_SW_PAGE_FAULTS_MIN,
    [FEATURE_MAJOR_FAULTS - FEATURE_SOFTWARE] = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
};

static struct counted *add_counted(struct counters *c, int reading, const struct event_attr *attr, const char *cpus)
{
    struct counted *event = &c->v[c->n];
    *event = (struct counted){ .attr = *attr, .cpus = cpus, .failed = READING_OK };
    c->of[reading] = c->n++;
    return event;
}

static bool is_chosen(const struct counters *c, int event)
{
    return !c->want.only || c->want.only[event];
}

/* The event itself, or one that is counted by it. */
static bool is_needed(const struct counters *c, int event)
{
    bool needed = is_chosen(c, event);
    for (int i = 0; i < EVENT_NAMES && !needed; i++)
        needed = c->want.events->v[i].same_as == event && is_chosen(c, i);
    return needed;
}

static void choose_software(struct counters *c)
{
    for (int i = FEATURE_SOFTWARE; i < COUNTERS_READINGS; i++) {
        bool fault =
            i == FEATURE_MINOR_FAULTS || i == FEATURE_MAJOR_FAULTS; /* switches are the kernel's: 0 without it */
        struct event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                   .config = software[i - FEATURE_SOFTWARE],
                                   .exclude_kernel_ok = fault };
        add_counted(c, i, &attr, "")->together = true;
        c->scale[i] = 1;
    }
}

static void choose(struct counters *c)
{
    const struct event_spec *v = c->want.events->v;
    choose_software(c);
    for (int i = EVENT_NAMES; i-- > 0;) {
        c->of[i] = NOT_KNOWN;
        c->scale[i] = v[i].scale;
        if (v[i].by != EVENT_BY_NONE && v[i].same_as < 0 && is_needed(c, i))
            add_counted(c, i, &v[i].attr, v[i].cpus)->together = !v[i].core_counter;
    }
    for (int i = 0; i < EVENT_NAMES; i++)
        if (v[i].by != EVENT_BY_NONE && v[i].same_as >= 0)
            c->of[i] = c->of[v[i].same_as];
    for (int i = 0; i < EVENT_NAMES; i++)
        if (!is_chosen(c, i))
            c->of[i] = NOT_CHOSEN;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

static uint8_t state_of(int rc)
{
    return rc == -ENOMEM ? READING_NO_FD : (uint8_t)events_open_state(rc);
}

static void close_counter(struct counters *c, struct counter *s)
{
    if (s->fd < 0)
        return;
    (void)c->want.ops->close(s->fd, c->want.ops->ctx); /* nothing can be lost by it */
    s->fd = -1;
    if (c->want.fds_left)
        ++*c->want.fds_left;
}

/* The event is closed wherever it is open: what is left is never a part of the whole. */
static void fail(struct counters *c, int event, uint8_t state)
{
    c->v[event].failed = state;
    for (size_t i = 0; i < c->n_places; i++)
        close_counter(c, &c->places[i].each[event]);
}

static unsigned flags_of(const struct counters *c, const struct counted *event)
{
    return (c->want.scope == COUNTERS_CGROUP ? PERF_OPS_CGROUP : 0U) | (c->follows_threads ? PERF_OPS_THREADS : 0U) |
           (event->user ? PERF_OPS_USER : 0U);
}

static int open_once(struct counters *c, struct counted *event, struct place *at)
{
    const struct perf_ops *ops = c->want.ops;
    long i = event - c->v;
    bool leads = c->grouped && i == 0, joins = c->grouped && i > 0 && event->together && at->each[0].fd >= 0;
    unsigned flags = flags_of(c, event) | (leads ? PERF_OPS_LEADER : 0U);
    int fd = joins ? ops->join(at->each[0].fd, &event->attr, at->pid, at->cpu, flags, ops->ctx) : -1;
    at->each[i].joined = leads || fd >= 0;
    return fd >= 0 ? fd : ops->open(&event->attr, at->pid, at->cpu, flags, ops->ctx);
}

/* A descriptor, or -errno. */
static int try_open(struct counters *c, struct counted *event, struct place *at)
{
    if (c->want.fds_left && *c->want.fds_left <= 0)
        return -EMFILE;
    int fd = open_once(c, event, at);
    if (fd >= 0 || state_of(fd) != READING_DENIED || event->user || !event->attr.exclude_kernel_ok)
        return fd;
    event->user = true;
    return open_once(c, event, at);
}

/* Gives up the least of the events that have a descriptor, down to `event` itself. */
static void make_room(struct counters *c, int event)
{
    int least = c->n - 1;
    while (least > event && c->v[least].failed != READING_OK)
        least--;
    fail(c, least, READING_NO_FD);
}

static void open_counter(struct counters *c, int event, struct place *at)
{
    struct counter *s = &at->each[event];
    while (c->v[event].failed == READING_OK && s->fd < 0) {
        int fd = try_open(c, &c->v[event], at);
        if (fd >= 0) {
            *s = (struct counter){ .fd = fd, .joined = s->joined };
            if (c->want.fds_left)
                --*c->want.fds_left;
        } else if (fd == -ESRCH || fd == -ENODEV) {
            return; /* the thread has ended, or the CPU is going */
        } else if (state_of(fd) == READING_NO_FD) {
            make_room(c, event);
        } else {
            fail(c, event, state_of(fd));
        }
    }
}

static bool belongs(const struct counted *event, int cpu)
{
    struct sysfs_cpus own;
    if (cpu < 0 || !event->cpus[0])
        return true;
    return sysfs_cpus_parse(&own, event->cpus) == 0 && sysfs_cpus_next(&own, cpu) == cpu;
}

/* Those that are open there already stay. */
static void open_place(struct counters *c, struct place *at)
{
    for (int i = 0; i < c->n; i++)
        if (belongs(&c->v[i], at->cpu))
            open_counter(c, i, at);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* What a counter counted from `old` to `now`, mod 2^64; a step back from the upper half of 48 bits to the lower is a counter of 48 bits
 * that wrapped. -1: it cannot be told. */
static double count_between(uint64_t old, uint64_t now)
{
    const uint64_t wrap = UINT64_C(1) << 48;
    uint64_t gained = now - old;
    if (gained < UINT64_C(1) << 63)
        return (double)gained;
    if (old < wrap && old - now > wrap / 2)
        return (double)(now + wrap - old);
    return -1;
}

static void add_reading(struct sum *sum, const uint64_t old[COUNTS], const uint64_t now[COUNTS])
{
    double value = count_between(old[VALUE], now[VALUE]);
    double enabled = count_between(old[ENABLED], now[ENABLED]), running = count_between(old[RUNNING], now[RUNNING]);
    if (value < 0 || enabled < 0 || running < 0) {
        sum->broken = true;
        return;
    }
    sum->enabled += enabled;
    sum->running += running;
    if (running > 0) {
        sum->value += enabled > running ? value * enabled / running : value;
        sum->covered += enabled;
    }
}

static void read_counter(const struct perf_ops *ops, struct counter *s, struct sum *sum)
{
    uint64_t now[COUNTS];
    if (ops->read(s->fd, now, ops->ctx) != (ssize_t)sizeof now) {
        sum->broken = true; /* in an error state, or worse */
        return;
    }
    add_reading(sum, s->last, now);
    memcpy(s->last, now, sizeof now);
}

/* Those of a place that joined, which they did in their order. */
static void read_joined(struct counters *c, struct place *at)
{
    const struct perf_ops *ops = c->want.ops;
    uint64_t times[2], values[PERF_OPS_GROUP_MAX];
    int n = ops->read_group(at->each[0].fd, times, values, PERF_OPS_GROUP_MAX, ops->ctx), k = 0;
    for (int i = 0; i < c->n; i++) {
        struct counter *s = &at->each[i];
        if (s->fd < 0 || !s->joined)
            continue;
        if (k >= n) {
            c->v[i].sum.broken = true;
            continue;
        }
        const uint64_t now[COUNTS] = { values[k++], times[0], times[1] };
        add_reading(&c->v[i].sum, s->last, now);
        memcpy(s->last, now, sizeof now);
    }
}

static void read_place(struct counters *c, struct place *at)
{
    bool together = c->grouped && at->each[0].fd >= 0;
    if (together)
        read_joined(c, at);
    for (int i = 0; i < c->n; i++)
        if (at->each[i].fd >= 0 && !(together && at->each[i].joined))
            read_counter(c->want.ops, &at->each[i], &c->v[i].sum);
}

/* Where it never ran, it is taken to have counted as fast as where it did. */
static struct reading scaled(const struct counted *event, double scale)
{
    const struct sum *s = &event->sum;
    struct reading r = { .value = NAN, .state = event->failed };
    if (event->failed != READING_OK)
        return r;
    r.state = READING_NOT_COUNTED;
    if (s->broken || !(s->running > 0))
        return r;
    bool always = s->running >= s->enabled;
    r.value = scale * (always ? s->value : s->value * s->enabled / s->covered);
    r.ratio = always ? 1 : (float)(s->running / s->enabled);
    r.state = always ? READING_OK : READING_MULTIPLEXED;
    return r;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* A place where nothing is open yet; NULL: out of memory, or one too many. */
static struct place *add_place(struct counters *c)
{
    if (c->n_places == COUNTERS_PLACES_MAX)
        return NULL;
    struct place *places = array_more(c->places, c->n_places, &c->cap, sizeof *places);
    if (!places)
        return NULL;
    c->places = places;
    struct counter *each = calloc((size_t)c->n, sizeof *each);
    if (!each)
        return NULL;
    for (int i = 0; i < c->n; i++)
        each[i].fd = -1;
    c->places[c->n_places] = (struct place){ .cpu = -1, .pid = -1, .each = each };
    return &c->places[c->n_places++];
}

/* The last place takes this one's number. */
static void drop_place(struct counters *c, size_t i)
{
    for (int k = 0; k < c->n; k++)
        close_counter(c, &c->places[i].each[k]);
    free(c->places[i].each);
    c->places[i] = c->places[--c->n_places];
}

/* What it counted since the last read is kept. */
static void leave_place(struct counters *c, size_t i)
{
    read_place(c, &c->places[i]);
    drop_place(c, i);
}

static void fail_all(struct counters *c, uint8_t state)
{
    for (int i = 0; i < c->n; i++)
        fail(c, i, state);
}

/* --- CPUs --------------------------------------------------------------------------------------------------------- */

static void leave_cpus(struct counters *c, const struct sysfs_cpus *online)
{
    for (size_t i = c->n_places; i-- > 0;)
        if (sysfs_cpus_next(online, c->places[i].cpu) != c->places[i].cpu)
            leave_place(c, i);
}

static bool has_cpu(const struct counters *c, int cpu)
{
    for (size_t i = 0; i < c->n_places; i++)
        if (c->places[i].cpu == cpu)
            return true;
    return false;
}

static void enter_cpus(struct counters *c, const struct sysfs_cpus *online)
{
    for (int cpu = sysfs_cpus_next(online, 0); cpu >= 0; cpu = sysfs_cpus_next(online, cpu + 1)) {
        struct place *at = has_cpu(c, cpu) ? NULL : add_place(c);
        if (at) {
            at->cpu = cpu;
            at->pid = c->want.scope == COUNTERS_CGROUP ? c->want.cgroup_fd : -1;
        } else if (!has_cpu(c, cpu)) {
            fail_all(c, READING_NO_FD);
            return;
        }
    }
    for (size_t i = 0; i < c->n_places; i++)
        open_place(c, &c->places[i]);
}

static bool is_open(const struct counters *c, int event)
{
    for (size_t i = 0; i < c->n_places; i++)
        if (c->places[i].each[event].fd >= 0)
            return true;
    return false;
}

/* One that joins late would not be read in the order of its kind: all join anew. */
static void disband(struct counters *c)
{
    bool failed = false;
    for (int i = 0; i < c->n; i++)
        failed = failed || (c->v[i].together && c->v[i].failed != READING_OK);
    for (size_t i = 0; c->grouped && failed && i < c->n_places; i++) {
        read_place(c, &c->places[i]);
        for (int k = 0; k < c->n; k++)
            if (c->v[k].together)
                close_counter(c, &c->places[i].each[k]);
    }
}

/* What failed before is tried again: another CPU may have it. */
static void follow_cpus(struct counters *c)
{
    struct sysfs_cpus online;
    if (!online_changed(&c->online, &online))
        return;
    leave_cpus(c, &online);
    disband(c);
    for (int i = 0; i < c->n; i++) {
        c->v[i].failed = READING_OK;
        c->v[i].user = c->v[i].user && is_open(c, i);
    }
    enter_cpus(c, &online);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static bool is_id(const struct procs_id *a, const struct procs_id *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks;
}

static bool has_id(const struct procs_id *v, size_t n, const struct procs_id *id)
{
    for (size_t i = 0; i < n; i++)
        if (is_id(&v[i], id))
            return true;
    return false;
}

static bool has_tid(const struct procs_tids *tids, pid_t tid)
{
    for (size_t i = 0; i < tids->n; i++)
        if (tids->v[i] == tid)
            return true;
    return false;
}

static bool has_place(const struct counters *c, const struct procs_id *id, pid_t tid)
{
    for (size_t i = 0; i < c->n_places; i++)
        if (c->places[i].pid == tid && is_id(&c->places[i].of, id))
            return true;
    return false;
}

static void open_thread(struct counters *c, const struct procs_id *id, pid_t tid)
{
    struct place *at = add_place(c);
    if (!at) {
        fail_all(c, READING_NO_FD);
        return;
    }
    at->pid = tid;
    at->of = *id;
    open_place(c, at);
}

/* Opens those that are not open. How many that were, or -errno of looking. */
static int open_threads(struct counters *c, const struct procs_id *id)
{
    struct procs_tids tids = { 0 };
    int opened = 0, rc = procs_threads(&tids, c->want.proc, id);
    for (size_t i = 0; rc == 0 && i < tids.n; i++) {
        if (has_place(c, id, tids.v[i]))
            continue;
        open_thread(c, id, tids.v[i]);
        opened++;
    }
    free(tids.v);
    if (rc < 0 && rc != -ESRCH) /* without these threads the sums would be partial */
        fail_all(c, rc == -E2BIG ? READING_NO_FD : state_of(rc));
    return rc < 0 ? rc : opened;
}

static void leave_process(struct counters *c, const struct procs_id *id)
{
    for (size_t i = c->n_places; i-- > 0;)
        if (is_id(&c->places[i].of, id))
            leave_place(c, i);
}

/* Did the process start threads that have no place? */
static bool has_new_threads(const struct counters *c, const struct procs_id *id)
{
    struct procs_tids tids = { 0 };
    bool more = false;
    if (procs_threads(&tids, c->want.proc, id) == 0)
        for (size_t i = 0; i < tids.n && !more; i++)
            more = !has_place(c, id, tids.v[i]);
    free(tids.v);
    return more;
}

/* A thread that is born between the list and its creator's opening is counted by nobody, one that is born after it by its creator's
 * event: which of the two a new one is cannot be told, so all is done again until there was none. The last try stands. */
static void enter_process(struct counters *c, const struct procs_id *id)
{
    for (int i = 1; open_threads(c, id) > 0 && c->follows_threads; i++) {
        if (i == TRIES_MAX || !has_new_threads(c, id))
            return;
        leave_process(c, id);
    }
}

/* Each thread has its own descriptors here: those that ended need none. */
static void follow_threads(struct counters *c, const struct procs_id *id)
{
    struct procs_tids tids = { 0 };
    if (procs_threads(&tids, c->want.proc, id) == 0)
        for (size_t i = c->n_places; i-- > 0;)
            if (is_id(&c->places[i].of, id) && !has_tid(&tids, c->places[i].pid))
                leave_place(c, i);
    free(tids.v);
    (void)open_threads(c, id); /* of one that has gone, the next list says so */
}

void counters_follow(struct counters *c, const struct procs_id *v, size_t n)
{
    struct procs_id *ids = calloc(n + 1, sizeof *ids);
    if (!ids) {
        fail_all(c, READING_NO_FD);
        return;
    }
    if (n > 0)
        memcpy(ids, v, n * sizeof *ids);
    for (size_t i = 0; i < c->n_ids; i++)
        if (!has_id(v, n, &c->ids[i]))
            leave_process(c, &c->ids[i]);
    for (size_t i = 0; i < n; i++) {
        if (!has_id(c->ids, c->n_ids, &v[i]))
            enter_process(c, &v[i]);
        else if (!c->follows_threads)
            follow_threads(c, &v[i]);
    }
    free(c->ids);
    c->ids = ids;
    c->n_ids = n;
}

/* --- beginning, end, and reading all ------------------------------------------------------------------------------ */

static bool can_follow_threads(const struct perf_ops *ops)
{
    const struct event_attr nothing = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };
    int fd = ops->open(&nothing, 0, -1, PERF_OPS_THREADS | PERF_OPS_USER, ops->ctx);
    if (fd >= 0)
        (void)ops->close(fd, ops->ctx);
    return fd >= 0;
}

struct counters *counters_new(const struct counters_want *want)
{
    struct counters *c = calloc(1, sizeof *c);
    if (!c) {
        if (want->scope == COUNTERS_CGROUP)
            (void)close(want->cgroup_fd);
        return NULL;
    }
    c->want = *want;
    choose(c);
    c->online.fd = -1;
    if (want->scope == COUNTERS_PROCESS) {
        c->follows_threads = can_follow_threads(want->ops);
        return c;
    }
    c->grouped = want->ops->join != NULL;
    online_open(&c->online, want->sysfs);
    follow_cpus(c);
    return c;
}

void counters_free(struct counters *c)
{
    if (!c)
        return;
    while (c->n_places > 0)
        drop_place(c, c->n_places - 1);
    if (c->want.scope == COUNTERS_CGROUP)
        (void)close(c->want.cgroup_fd);
    free(c->places);
    online_close(&c->online);
    free(c->ids);
    free(c);
}

static struct reading reading_of(const struct counters *c, int i)
{
    switch (c->of[i]) {
    case NOT_KNOWN: return (struct reading){ .value = NAN, .state = READING_UNSUPPORTED };
    case NOT_CHOSEN: return (struct reading){ .value = NAN, .state = READING_ABSENT };
    default: return scaled(&c->v[c->of[i]], c->scale[i]);
    }
}

void counters_read(struct counters *c, struct reading out[COUNTERS_READINGS])
{
    if (c->want.scope != COUNTERS_PROCESS)
        follow_cpus(c);
    for (size_t i = 0; i < c->n_places; i++)
        read_place(c, &c->places[i]);
    for (int i = 0; i < COUNTERS_READINGS; i++)
        out[i] = reading_of(c, i);
    for (int i = 0; i < c->n; i++)
        c->v[i].sum = (struct sum){ 0 };
}

int counters_may_open(int others, int most)
{
    struct rlimit limit = { .rlim_cur = 1024, .rlim_max = 1024 };
    (void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail; then POSIX's usual one */
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        (void)getrlimit(RLIMIT_NOFILE, &limit); /* as it was, then */
    rlim_t rest = (rlim_t)others;
    if (limit.rlim_cur < 2 * rest)
        return (int)limit.rlim_cur / 2;
    return limit.rlim_cur - rest < (rlim_t)most ? (int)(limit.rlim_cur - rest) : most;
}
