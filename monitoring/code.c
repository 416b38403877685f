#include "monitoring/code.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/events_probe.h"
#include "monitoring/online.h"

enum { RECORD_SIZE = 24, ROOM = 2 /* 1 / ROOM of a ring is left free, for what else comes */, NS = 1000000000 };

struct watched { /* a CPU */
    int cpu, fd;
    struct perf_ring ring;
};

struct process {
    struct procs_id id;
    struct code_map map;
    bool stale; /* it has mapped something since */
};

struct codes {
    struct codes_want want;
    unsigned hz;    /* so that the rings do for who reads most rarely */
    uint8_t failed; /* READING_OK, or why not all CPUs are watched */
    struct online online;
    struct watched *cpus; /* owned */
    size_t n_cpus, cap_cpus;
    struct code *first;
};

struct code {
    struct codes *all;
    struct code *next;
    unsigned hz;
    bool began;        /* CPUs were watched at its last read, and it had processes */
    struct process *v; /* ascending by pid; owned */
    size_t n;
    uint8_t unread;                /* READING_OK, or why a process's map is not had */
    uint64_t seen_ns[CODE_PLACES]; /* since its last read */
    bool lost;                     /* and so were looks */
};

/* --- CPUs --------------------------------------------------------------------------------------------------------- */

static void leave_cpu(struct codes *c, size_t i)
{
    c->want.ops->unwatch(c->cpus[i].fd, &c->cpus[i].ring, c->want.ops->ctx);
    ++*c->want.fds_left;
    c->cpus[i] = c->cpus[--c->n_cpus];
}

static void leave_cpus(struct codes *c)
{
    while (c->n_cpus > 0)
        leave_cpu(c, c->n_cpus - 1);
}

static bool has_cpu(const struct codes *c, int cpu)
{
    for (size_t i = 0; i < c->n_cpus; i++)
        if (c->cpus[i].cpu == cpu)
            return true;
    return false;
}

/* 0 or -errno. */
static int enter_cpu(struct codes *c, int cpu)
{
    const struct perf_ops *ops = c->want.ops;
    struct watched *v = array_more(c->cpus, c->n_cpus, &c->cap_cpus, sizeof *v);
    if (!v)
        return -ENOMEM;
    c->cpus = v;
    struct watched *at = &v[c->n_cpus];
    *at = (struct watched){ .cpu = cpu, .ring.size = CODE_RING_SIZE };
    at->fd = *c->want.fds_left > 0 ? ops->watch(cpu, c->hz, &at->ring, ops->ctx) : -EMFILE;
    if (at->fd == -ENODEV)
        return 0; /* it is going */
    if (at->fd < 0)
        return at->fd;
    c->n_cpus++;
    --*c->want.fds_left;
    return 0;
}

/* All of them or none: a part of the looks would say something else. */
static void follow_cpus(struct codes *c)
{
    struct sysfs_cpus online;
    int rc = 0;
    if (!c->want.ops->watch) {
        c->failed = READING_UNSUPPORTED;
        return;
    }
    if (!online_changed(&c->online, &online))
        return;
    for (size_t i = c->n_cpus; i-- > 0;)
        if (sysfs_cpus_next(&online, c->cpus[i].cpu) != c->cpus[i].cpu)
            leave_cpu(c, i);
    for (int cpu = sysfs_cpus_next(&online, 0); cpu >= 0 && rc == 0; cpu = sysfs_cpus_next(&online, cpu + 1))
        rc = has_cpu(c, cpu) ? 0 : enter_cpu(c, cpu);
    c->failed = rc == 0 ? READING_OK : rc == -ENOMEM ? READING_NOT_COUNTED : (uint8_t)events_open_state(rc);
    if (rc < 0)
        leave_cpus(c);
    if (rc == -ENOMEM) /* the next read tries again; what else there is stays until CPUs change */
        online_forget(&c->online);
}

/* They are entered anew, at this rate, when they are followed next. */
static void begin_anew(struct codes *all, unsigned hz)
{
    leave_cpus(all);
    all->hz = hz;
    online_forget(&all->online);
}

/* Looks cost what nobody asks for. */
static void release_cpus(struct codes *all)
{
    for (const struct code *c = all->first; c; c = c->next)
        if (c->n > 0)
            return;
    begin_anew(all, CODE_HZ);
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->id.pid, y = ((const struct process *)b)->id.pid;
    return (x > y) - (x < y);
}

static struct process *find_process(const struct code *c, pid_t pid)
{
    const struct process key = { .id.pid = pid };
    return c->n > 0 ? bsearch(&key, c->v, c->n, sizeof *c->v, by_pid) : NULL;
}

static void free_processes(struct code *c)
{
    for (size_t i = 0; i < c->n; i++)
        code_map_done(&c->v[i].map);
    free(c->v);
    c->v = NULL;
    c->n = 0;
}

/* Of one that has gone the map stays as it is. */
static void read_map(struct code *c, struct process *p)
{
    char path[512];
    AUTO_BUF struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "%s/%ld/maps", c->all->want.proc, (long)p->id.pid);
    int rc = io_read_file(&text, path, CODE_MAP_MAX, NULL);
    if (rc == 0)
        rc = code_map_parse(&p->map, buf_text(&text));
    p->stale = rc < 0;
    if (rc < 0 && rc != -ENOENT && rc != -ESRCH)
        c->unread = rc == -EACCES || rc == -EPERM ? READING_DENIED : READING_NOT_COUNTED;
}

static void read_stale_maps(struct code *c)
{
    c->unread = READING_OK;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].stale)
            read_map(c, &c->v[i]);
}

/* Those that were there keep their maps. */
static void follow_processes(struct code *c, const struct procs_id *ids, size_t n)
{
    struct process *v = calloc(n + 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++) {
        struct process *old = find_process(c, ids[i].pid);
        v[i] = (struct process){ .id = ids[i], .stale = true };
        if (old && old->id.start_ticks == ids[i].start_ticks) {
            v[i] = *old;
            old->map = (struct code_map){ 0 };
        }
    }
    free_processes(c);
    if (!v)
        return; /* the next read begins anew */
    qsort(v, n, sizeof *v, by_pid);
    c->v = v;
    c->n = n;
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

static void mark_stale(const struct codes *all, struct perf_ring *ring)
{
    struct perf_ring_record r;
    perf_ring_begin(ring);
    while (perf_ring_next(ring, &r))
        for (struct code *c = all->first; c && r.kind == PERF_RING_MAPPED; c = c->next) {
            struct process *p = find_process(c, r.pid);
            if (p)
                p->stale = true;
        }
}

static void count_one(struct code *c, const struct perf_ring_record *r)
{
    const struct process *p = r->kind == PERF_RING_SAMPLE ? find_process(c, r->pid) : NULL;
    int place = p ? code_map_find(&p->map, r->address) : CODE_NOWHERE;
    if (place >= 0)
        c->seen_ns[place] += NS / c->all->hz;
    c->lost = c->lost || r->kind == PERF_RING_LOST;
}

static void count(const struct codes *all, struct perf_ring *ring)
{
    struct perf_ring_record r;
    perf_ring_begin(ring);
    while (perf_ring_next(ring, &r))
        for (struct code *c = all->first; c; c = c->next)
            count_one(c, &r);
    perf_ring_end(ring);
}

/* Empties the rings. What was mapped since they last were comes before what ran there, whichever CPUs both were on. */
static void look_back(struct codes *all)
{
    for (size_t i = 0; i < all->n_cpus; i++)
        mark_stale(all, &all->cpus[i].ring);
    for (struct code *c = all->first; c; c = c->next)
        read_stale_maps(c);
    for (size_t i = 0; i < all->n_cpus; i++)
        count(all, &all->cpus[i].ring);
}

/* --- who looks ---------------------------------------------------------------------------------------------------- */

struct codes *codes_new(const struct codes_want *want)
{
    struct codes *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->want = *want;
    all->hz = CODE_HZ;
    online_open(&all->online, want->sysfs);
    return all;
}

void codes_free(struct codes *all)
{
    if (!all)
        return;
    leave_cpus(all);
    online_close(&all->online);
    free(all->cpus);
    free(all);
}

struct code *code_new(struct codes *all, int interval_ms)
{
    struct code *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    double most = (double)CODE_RING_SIZE / RECORD_SIZE / ROOM * 1000 / interval_ms;
    *c = (struct code){ .all = all, .next = all->first, .hz = most < CODE_HZ ? (unsigned)most : CODE_HZ };
    all->first = c;
    return c;
}

void code_free(struct code *c)
{
    if (!c)
        return;
    struct code **at = &c->all->first;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    release_cpus(c->all);
    free_processes(c);
    free(c);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static struct reading reading_of(double seconds, uint8_t state)
{
    bool ok = state == READING_OK;
    return (struct reading){ .value = ok ? seconds : (double)NAN, .ratio = ok ? 1 : 0, .state = state };
}

void code_read(struct code *c, const struct procs_id *v, size_t n, struct reading out[CODE_PLACES])
{
    struct codes *all = c->all;
    look_back(all);
    follow_processes(c, v, n);
    if (n > 0 && c->hz < all->hz) /* it reads so rarely that the rings would not do; they are empty now */
        begin_anew(all, c->hz);
    if (n > 0)
        follow_cpus(all);
    release_cpus(all);
    read_stale_maps(c);
    uint8_t state = all->failed != READING_OK ? all->failed : c->unread;
    if (state == READING_OK && (!c->began || c->lost))
        state = READING_NOT_COUNTED;
    for (int i = 0; i < CODE_PLACES; i++) {
        out[i] = reading_of((double)c->seen_ns[i] / NS, state);
        c->seen_ns[i] = 0;
    }
    c->began = c->n > 0 && all->n_cpus > 0;
    c->lost = false;
}
