#include "monitoring/procs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "monitoring/procs_text.h"

enum { PATH_SIZE = 512, TEXT_SIZE = 2048 };

/* The files of a process; each has features of its own, which are measured or not together. */
enum source { SOURCE_SCHEDSTAT, SOURCE_STAT, SOURCE_IO, SOURCES };

enum { SCHED_FIELDS = 3 };

enum { NO_CHORE = -1, NAME_READS = 3 }; /* a thread is named soon after it is born */

struct thread {
    pid_t tid;
    uint64_t last[SCHED_FIELDS]; /* ns that it ran, ns that it waited, time slices */
    int chore;                   /* from FEATURE_JVM on; NO_CHORE */
    int named;                   /* how often its name was asked for */
};

struct process {
    struct procs_id id;
    bool read[SOURCES]; /* `last` has what this source said */
    uint64_t last[PROCS_READINGS];
    struct thread *threads; /* ascending; owned */
    size_t n_threads;
};

struct procs {
    const char *proc;
    struct process *v; /* ascending by pid; owned */
    size_t n;
};

/* What one read finds. */
struct totals {
    double sum[PROCS_READINGS];
    bool measured[SOURCES], seen; /* of one process at least, over the whole interval; there is one at all */
    uint8_t failed[SOURCES];      /* READING_OK, or why the sum would lack something */
    size_t threads;
    double chore_ns[PROCS_CHORES];
    bool chores; /* there is a thread that does one, and was there at the read before */
};

/* What one process's threads did since they were read last. */
struct gain {
    uint64_t of[SCHED_FIELDS], chore_ns[PROCS_CHORES];
    bool chores;
};

static const struct row {
    enum source source;
    double per_one; /* of what the file counts; 0: clock ticks */
} rows[PROCS_READINGS] = {
#define ROW(feature) [(feature)-FEATURE_PROC]
    ROW(FEATURE_PROC_CPU_TIME) = { SOURCE_SCHEDSTAT, 1e9 }, ROW(FEATURE_PROC_RUN_DELAY) = { SOURCE_SCHEDSTAT, 1e9 },
    ROW(FEATURE_PROC_TIMESLICES) = { SOURCE_SCHEDSTAT, 1 }, ROW(FEATURE_PROC_USER_TIME) = { SOURCE_STAT, 0 },
    ROW(FEATURE_PROC_SYSTEM_TIME) = { SOURCE_STAT, 0 },     ROW(FEATURE_PROC_MINOR_FAULTS) = { SOURCE_STAT, 1 },
    ROW(FEATURE_PROC_MAJOR_FAULTS) = { SOURCE_STAT, 1 },    ROW(FEATURE_PROC_RSS) = { SOURCE_STAT, 1 },
    ROW(FEATURE_PROC_THREADS) = { SOURCE_STAT, 1 },         ROW(FEATURE_PROC_READ_CHARS) = { SOURCE_IO, 1 },
    ROW(FEATURE_PROC_WRITE_CHARS) = { SOURCE_IO, 1 },       ROW(FEATURE_PROC_READ_CALLS) = { SOURCE_IO, 1 },
    ROW(FEATURE_PROC_WRITE_CALLS) = { SOURCE_IO, 1 },
#undef ROW
};

/* --- beginning and end -------------------------------------------------------------------------------------------- */

struct procs *procs_new(const char *proc)
{
    struct procs *p = calloc(1, sizeof *p);
    if (p)
        p->proc = proc;
    return p;
}

static void free_list(struct process *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i].threads);
    free(v);
}

void procs_free(struct procs *p)
{
    if (!p)
        return;
    free_list(p->v, p->n);
    free(p);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* The text of a small file; -ESRCH: the process has gone, or there is no such file. */
static int read_at(int dir, const char *name, char text[TEXT_SIZE])
{
    AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t n = read(fd, text, TEXT_SIZE - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

static int open_process(const char *proc, pid_t pid)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%ld", proc, (long)pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? errno == ENOENT ? -ESRCH : -errno : fd;
}

/* -ESRCH also when the pid is another process's by now. What was read through `dir` before is this process's then: a pid does not
 * come back. */
static int read_stat(int dir, const struct procs_id *id, struct procs_stat *out)
{
    char text[TEXT_SIZE];
    int rc = read_at(dir, "stat", text);
    if (rc == 0)
        rc = procs_text_stat(out, text);
    return rc == 0 && out->start_ticks != id->start_ticks ? -ESRCH : rc;
}

static int add_tid(struct procs_tids *to, pid_t tid)
{
    if (to->n == PROCS_THREADS_MAX)
        return -E2BIG;
    pid_t *v = array_more(to->v, to->n, &to->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    to->v = v;
    to->v[to->n++] = tid;
    return 0;
}

static int by_tid(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* Takes `fd`, the folder of tasks. */
static int list_tasks(struct procs_tids *out, int fd)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            rc = add_tid(out, (pid_t)strtol(entry->d_name, NULL, 10));
    (void)closedir(dir); /* only read */
    if (out->n > 0)
        qsort(out->v, out->n, sizeof *out->v, by_tid);
    return rc;
}

static int list_threads(struct procs_tids *out, int dir)
{
    out->n = 0;
    int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? errno == ENOENT ? -ESRCH : -errno : list_tasks(out, fd);
}

int procs_threads(struct procs_tids *out, const char *proc, const struct procs_id *id)
{
    struct procs_stat stat;
    AUTO_CLOSE int dir = open_process(proc, id->pid);
    if (dir < 0)
        return dir;
    int rc = list_threads(out, dir);
    return rc < 0 ? rc : read_stat(dir, id, &stat);
}

/* --- one process -------------------------------------------------------------------------------------------------- */

static uint8_t state_of(int rc)
{
    return rc == -EACCES || rc == -EPERM    ? READING_DENIED
           : rc == -EMFILE || rc == -ENFILE ? READING_NO_FD
           : rc == -ESRCH                   ? READING_UNSUPPORTED /* the process is there, its file is not */
                                            : READING_NOT_COUNTED;
}

/* The names that HotSpot gives its threads, as the kernel cuts them. */
static int chore_of(const char *name)
{
    static const struct {
        const char *begin;
        int feature;
    } names[] = {
        { "C1 CompilerThre", FEATURE_JVM_COMPILE_TIME }, { "C2 CompilerThre", FEATURE_JVM_COMPILE_TIME },
        { "GC Thread#", FEATURE_JVM_COLLECT_TIME },      { "G1 ", FEATURE_JVM_COLLECT_TIME },
        { "ParGC Thread#", FEATURE_JVM_COLLECT_TIME },   { "VM Thread", FEATURE_JVM_COLLECT_TIME },
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0)
            return names[i].feature - FEATURE_JVM;
    return NO_CHORE;
}

/* A thread without a name of its own yet is asked again. */
static void find_chore(int dir, struct thread *t, const struct thread *old)
{
    char name[64], text[TEXT_SIZE];
    t->chore = old ? old->chore : NO_CHORE;
    t->named = old ? old->named : 0;
    if (t->chore != NO_CHORE || t->named == NAME_READS)
        return;
    t->named++;
    (void)snprintf(name, sizeof name, "task/%ld/comm", (long)t->tid);
    if (read_at(dir, name, text) == 0)
        t->chore = chore_of(text);
}

/* What this thread gained since `old`, its last reading; NULL: since it was born. */
static void add_thread(const struct thread *now, const struct thread *old, struct gain *gained)
{
    for (int i = 0; i < SCHED_FIELDS; i++) {
        uint64_t before = old ? old->last[i] : 0, more = now->last[i] > before ? now->last[i] - before : 0;
        gained->of[i] += more;
        if (i == 0 && now->chore != NO_CHORE)
            gained->chore_ns[now->chore] += more;
    }
    gained->chores = gained->chores || now->chore != NO_CHORE;
}

/* 1, or 0: it has ended meanwhile; -errno. */
static int read_thread(int dir, pid_t tid, struct thread *out)
{
    char name[64], text[TEXT_SIZE];
    struct procs_schedstat s;
    (void)snprintf(name, sizeof name, "task/%ld/schedstat", (long)tid);
    int rc = read_at(dir, name, text);
    if (rc == 0)
        rc = procs_text_schedstat(&s, text);
    if (rc < 0)
        return rc == -ESRCH ? 0 : rc;
    *out = (struct thread){ .tid = tid, .last = { s.run_ns, s.delay_ns, s.slices } };
    return 1;
}

/* The threads as they are now replace those of the last read; `gained` is what they did meanwhile. */
static int read_listed(struct process *p, int dir, const struct procs_tids *tids, struct gain *gained)
{
    AUTO_FREE struct thread *now = calloc(tids->n + 1, sizeof *now);
    if (!now)
        return -ENOMEM;
    size_t n = 0, k = 0;
    for (size_t i = 0; i < tids->n; i++) {
        int rc = read_thread(dir, tids->v[i], &now[n]);
        if (rc < 0)
            return rc;
        while (k < p->n_threads && p->threads[k].tid < tids->v[i])
            k++;
        bool known = k < p->n_threads && p->threads[k].tid == tids->v[i];
        if (rc == 0)
            continue;
        bool same = known && p->threads[k].last[0] <= now[n].last[0]; /* else the number is another thread's */
        const struct thread *old = same ? &p->threads[k] : NULL;
        find_chore(dir, &now[n], old);
        add_thread(&now[n++], old, gained);
    }
    free(p->threads);
    p->threads = MOVE_PTR(now);
    p->n_threads = n;
    return n > 0 || tids->n == 0 ? 0 : -ESRCH;
}

static int read_schedstat(struct process *p, int dir, uint64_t now[PROCS_READINGS], struct totals *t)
{
    struct procs_tids tids = { 0 };
    struct gain gained = { 0 };
    int rc = list_threads(&tids, dir);
    if (rc == 0 && t->threads + tids.n > PROCS_THREADS_MAX)
        rc = -E2BIG;
    if (rc == 0)
        rc = read_listed(p, dir, &tids, &gained);
    t->threads += rc == 0 ? tids.n : 0;
    for (int i = 0; i < SCHED_FIELDS; i++)
        now[i] = p->last[i] + gained.of[i]; /* of the process since it was first seen, ended threads included */
    bool counts = rc == 0 && p->read[SOURCE_SCHEDSTAT];
    for (int i = 0; counts && i < PROCS_CHORES; i++)
        t->chore_ns[i] += (double)gained.chore_ns[i];
    t->chores = t->chores || (counts && gained.chores);
    free(tids.v);
    return rc;
}

static int read_io(int dir, uint64_t now[PROCS_READINGS])
{
    char text[TEXT_SIZE];
    struct procs_io io;
    int rc = read_at(dir, "io", text);
    if (rc == 0)
        rc = procs_text_io(&io, text);
    if (rc < 0)
        return rc;
    now[FEATURE_PROC_READ_CHARS - FEATURE_PROC] = io.read_chars;
    now[FEATURE_PROC_WRITE_CHARS - FEATURE_PROC] = io.write_chars;
    now[FEATURE_PROC_READ_CALLS - FEATURE_PROC] = io.read_calls;
    now[FEATURE_PROC_WRITE_CALLS - FEATURE_PROC] = io.write_calls;
    return 0;
}

static void put_stat(const struct procs_stat *s, uint64_t now[PROCS_READINGS])
{
    now[FEATURE_PROC_USER_TIME - FEATURE_PROC] = s->user_ticks;
    now[FEATURE_PROC_SYSTEM_TIME - FEATURE_PROC] = s->system_ticks;
    now[FEATURE_PROC_MINOR_FAULTS - FEATURE_PROC] = s->minor_faults;
    now[FEATURE_PROC_MAJOR_FAULTS - FEATURE_PROC] = s->major_faults;
    now[FEATURE_PROC_RSS - FEATURE_PROC] = s->rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    now[FEATURE_PROC_THREADS - FEATURE_PROC] = s->threads;
}

static bool is_gauge(int row)
{
    return feature_kind(FEATURE_PROC + row) == FEATURE_GAUGE;
}

/* What the source said grew by so much since it said something last. */
static void add_source(struct process *p, enum source source, const uint64_t now[PROCS_READINGS], struct totals *t)
{
    for (int i = 0; i < PROCS_READINGS; i++) {
        if (rows[i].source != source)
            continue;
        if (is_gauge(i))
            t->sum[i] += (double)now[i];
        else if (p->read[source] && now[i] > p->last[i])
            t->sum[i] += (double)(now[i] - p->last[i]);
        if (!p->read[source] || now[i] > p->last[i])
            p->last[i] = now[i];
    }
    t->measured[source] = t->measured[source] || p->read[source];
    p->read[source] = true;
}

/* One that has gone adds nothing, and fails nothing. -ENOMEM. */
static int read_process(const char *proc, struct process *p, struct totals *t)
{
    uint64_t now[PROCS_READINGS] = { 0 };
    struct procs_stat stat;
    int rc[SOURCES];
    AUTO_CLOSE int dir = open_process(proc, p->id.pid);
    if (dir < 0) {
        if (dir != -ESRCH)
            memset(t->failed, state_of(dir), sizeof t->failed);
        return 0;
    }
    rc[SOURCE_SCHEDSTAT] = read_schedstat(p, dir, now, t);
    rc[SOURCE_IO] = read_io(dir, now);
    rc[SOURCE_STAT] = read_stat(dir, &p->id, &stat);
    if (rc[SOURCE_SCHEDSTAT] == -ENOMEM)
        return -ENOMEM;
    if (rc[SOURCE_STAT] == -ESRCH)
        return 0;
    if (rc[SOURCE_STAT] == 0)
        put_stat(&stat, now);
    t->seen = t->seen || rc[SOURCE_STAT] == 0;
    for (int source = 0; source < SOURCES; source++) {
        if (rc[source] == 0)
            add_source(p, (enum source)source, now, t);
        else
            t->failed[source] = state_of(rc[source]);
    }
    return 0;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->id.pid, y = ((const struct process *)b)->id.pid;
    return (x > y) - (x < y);
}

/* What is known of a process moves to the list `to`. */
static void carry_over(struct procs *p, struct process *to, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        while (k < p->n && p->v[k].id.pid < to[i].id.pid)
            k++;
        if (k == p->n || p->v[k].id.pid != to[i].id.pid || p->v[k].id.start_ticks != to[i].id.start_ticks)
            continue;
        to[i] = p->v[k];
        p->v[k].threads = NULL;
        p->v[k].n_threads = 0;
    }
}

static int follow(struct procs *p, const struct procs_id *v, size_t n)
{
    struct process *list = calloc(n + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        list[i].id = v[i];
    qsort(list, n, sizeof *list, by_pid);
    carry_over(p, list, n);
    free_list(p->v, p->n);
    p->v = list;
    p->n = n;
    return 0;
}

static struct reading reading_of(const struct totals *t, int row)
{
    enum source source = rows[row].source;
    double per_one = rows[row].per_one > 0 ? rows[row].per_one : (double)sysconf(_SC_CLK_TCK);
    bool measured = is_gauge(row) ? t->seen : t->measured[source];
    if (t->failed[source] != READING_OK)
        return (struct reading){ .value = NAN, .state = t->failed[source] };
    if (!measured)
        return (struct reading){ .value = NAN, .state = READING_NOT_COUNTED };
    return (struct reading){ .value = t->sum[row] / per_one, .ratio = 1, .state = READING_OK };
}

static struct reading chore_of_all(const struct totals *t, int chore)
{
    uint8_t failed = t->failed[SOURCE_SCHEDSTAT];
    if (failed != READING_OK || !t->chores)
        return (struct reading){ .value = NAN, .state = failed != READING_OK ? failed : READING_NOT_COUNTED };
    return (struct reading){ .value = t->chore_ns[chore] / 1e9, .ratio = 1, .state = READING_OK };
}

int procs_read(struct procs *p, const struct procs_id *v, size_t n, struct reading out[PROCS_READINGS],
               struct reading chores[PROCS_CHORES])
{
    struct totals t = { 0 };
    if (n > PROCS_MAX) {
        memset(t.failed, READING_NOT_COUNTED, sizeof t.failed);
        n = PROCS_MAX;
    }
    int rc = follow(p, v, n);
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = read_process(p->proc, &p->v[i], &t);
    if (rc < 0)
        return rc;
    for (int i = 0; i < PROCS_READINGS; i++)
        out[i] = reading_of(&t, i);
    for (int i = 0; i < PROCS_CHORES; i++)
        chores[i] = chore_of_all(&t, i);
    return 0;
}
