#include "base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

#define TAG_ARGUMENT "-Dpipetune.launch="
#define TAG_VARIABLE "PIPETUNE_LAUNCH="

enum { TEXT_MAX = 8 << 20 }; /* the kernel's own limit on arguments + environment is 6 MiB */

struct row { /* what we need of one /proc/PID/stat */
    pid_t pid, parent, session;
    char state;
    long threads;
    uint64_t start;
};

struct rows {
    struct row *v;
    size_t n, cap;
};

struct pids {
    pid_t *v;
    size_t n, cap;
};

/* `PID (COMM) STATE PPID PGRP SESSION … NUM_THREADS ITREAL STARTTIME …`: COMM is the process's own choice, blanks and
 * parentheses included, so the fields are counted from the last ')'. */
static int parse_stat(const char *text, struct row *out)
{
    const char *rest = strrchr(text, ')');
    if (!rest)
        return -EINVAL;
    int got = sscanf(rest + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %" SCNu64,
                     &out->state, &out->parent, &out->session, &out->threads, &out->start);
    return got == 5 ? 0 : -EINVAL;
}

static int read_row(pid_t pid, struct row *out)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    char text[1024]; /* the first 22 fields never need more */
    ssize_t len = read(fd, text, sizeof text - 1);
    if (len < 0)
        return -errno;
    text[len] = '\0';
    out->pid = pid;
    return parse_stat(text, out);
}

/* A leader whose main thread has ended shows as Z while its other threads run on. */
static bool alive(const struct row *r)
{
    bool ended = r->state == 'Z' || r->state == 'X';
    return !ended || (r->state == 'Z' && r->threads > 1);
}

int proc_start_ticks(pid_t pid, uint64_t *out)
{
    struct row r;
    int rc = read_row(pid, &r);
    if (rc == 0)
        *out = r.start;
    return rc;
}

int proc_facts(pid_t pid, struct proc_facts *out)
{
    struct row r;
    int rc = read_row(pid, &r);
    if (rc == 0)
        *out = (struct proc_facts){ .parent = r.parent, .start_ticks = r.start, .alive = alive(&r) };
    return rc;
}

int proc_who(pid_t pid, char program[PROC_NAME_SIZE], uid_t *uid)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t len = read(fd, program, PROC_NAME_SIZE - 1);
    if (len < 0 || fstat(fd, &st) < 0)
        return -errno;
    program[len] = '\0';
    program[strcspn(program, "\n")] = '\0';
    *uid = st.st_uid;
    return 0;
}

int proc_boot_id(char out[PROC_BOOT_ID_SIZE])
{
    AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    char text[PROC_BOOT_ID_SIZE];
    ssize_t len = read(fd, text, sizeof text - 1);
    if (len < 0)
        return -errno;
    if (len != (ssize_t)sizeof text - 1)
        return -EIO;
    text[len] = '\0';
    memcpy(out, text, sizeof text);
    return 0;
}

bool proc_is(pid_t pid, uint64_t start_ticks, const char *boot_id)
{
    char now[PROC_BOOT_ID_SIZE];
    struct row r;
    if (pid < 1 || proc_boot_id(now) < 0 || strcmp(now, boot_id) != 0)
        return false;
    return read_row(pid, &r) == 0 && r.start == start_ticks && alive(&r);
}

uint64_t proc_oom_kills_of(const char *vmstat)
{
    static const char name[] = "\noom_kill "; /* never its first line */
    const char *at = strstr(vmstat, name);
    return at ? strtoull(at + sizeof name - 1, NULL, 10) : 0;
}

uint64_t proc_oom_kills(void)
{
    AUTO_BUF struct buf text = BUF_INIT;
    return io_read_file(&text, "/proc/vmstat", TEXT_MAX, NULL) < 0 ? 0 : proc_oom_kills_of(buf_text(&text));
}

static int add_row(struct rows *to, const struct row *r)
{
    struct row *v = array_more(to->v, to->n, &to->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    to->v = v;
    to->v[to->n++] = *r;
    return 0;
}

static int add_pid(struct pids *to, pid_t pid)
{
    pid_t *v = array_more(to->v, to->n, &to->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    to->v = v;
    to->v[to->n++] = pid;
    return 0;
}

/* Hands the list over, or frees it when `rc` is an error. */
static int give_pids(struct pids *p, int rc, pid_t **out, size_t *n)
{
    if (rc < 0) {
        free(p->v);
        return rc;
    }
    *out = p->v;
    *n = p->n;
    return 0;
}

static int rows_of(DIR *dir, struct rows *to)
{
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        struct row r;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (read_row((pid_t)strtol(entry->d_name, NULL, 10), &r) < 0 || !alive(&r))
            continue; /* gone since readdir, or as good as gone */
        int rc = add_row(to, &r);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* All live processes; the caller frees out->v, also on failure. */
static int snapshot(struct rows *out)
{
    *out = (struct rows){ 0 };
    DIR *dir = opendir("/proc");
    if (!dir)
        return -errno;
    int rc = rows_of(dir, out);
    (void)closedir(dir); /* only read */
    return rc;
}

int proc_session_pids(pid_t sid, pid_t **out, size_t *n)
{
    struct rows all;
    struct pids found = { 0 };
    int rc = snapshot(&all);
    for (size_t i = 0; rc == 0 && i < all.n; i++)
        if (all.v[i].session == sid)
            rc = add_pid(&found, all.v[i].pid);
    free(all.v);
    return give_pids(&found, rc, out, n);
}

/* Appends the children of `parent`. */
static int add_children(const struct rows *all, pid_t parent, struct pids *to)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < all->n; i++)
        if (all->v[i].parent == parent)
            rc = add_pid(to, all->v[i].pid);
    return rc;
}

int proc_descendants(pid_t ancestor, pid_t **out, size_t *n)
{
    struct rows all;
    struct pids found = { 0 };
    int rc = snapshot(&all);
    if (rc == 0)
        rc = add_children(&all, ancestor, &found);
    /* Rows read at different moments could show a circle when a pid is used again: no list is longer than the snapshot. */
    for (size_t i = 0; rc == 0 && i < found.n && found.n <= all.n; i++)
        rc = add_children(&all, found.v[i], &found);
    free(all.v);
    return give_pids(&found, rc, out, n);
}

/* What may stand before the option inside an argument: `spark.driver.extraJavaOptions=-Dpipetune.launch=…`. */
static bool opens(char c)
{
    return isspace((unsigned char)c) || c == '=' || c == '\'' || c == '"';
}

static bool closes(char c)
{
    return c == '\0' || isspace((unsigned char)c) || c == '\'' || c == '"';
}

static bool arg_tagged(const char *arg, const char *tag)
{
    size_t tag_len = strlen(tag);
    for (const char *at = arg; (at = strstr(at, TAG_ARGUMENT)); at++) {
        const char *value = at + strlen(TAG_ARGUMENT);
        if ((at == arg || opens(at[-1])) && strncmp(value, tag, tag_len) == 0 && closes(value[tag_len]))
            return true;
    }
    return false;
}

/* Both texts end in a NUL that is not counted in `len` (struct buf), or in one that is. */
bool proc_args_tagged(const char *args, size_t len, const char *tag)
{
    for (size_t i = 0; i < len; i += strlen(args + i) + 1)
        if (arg_tagged(args + i, tag))
            return true;
    return false;
}

bool proc_env_tagged(const char *env, size_t len, const char *tag)
{
    size_t name = strlen(TAG_VARIABLE);
    for (size_t i = 0; i < len; i += strlen(env + i) + 1)
        if (strncmp(env + i, TAG_VARIABLE, name) == 0 && strcmp(env + i + name, tag) == 0)
            return true;
    return false;
}

static bool is_ours(pid_t pid)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* 1, 0, or -ENOMEM; a process that went away meanwhile, or hides its text from us, carries no tag. */
static int text_tagged(pid_t pid, const char *file, bool (*tagged)(const char *, size_t, const char *), const char *tag)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, path, TEXT_MAX, NULL);
    if (rc == -ENOMEM || text.failed)
        return -ENOMEM;
    return text.len > 0 && tagged(text.data, text.len, tag);
}

static int is_tagged(pid_t pid, const char *tag)
{
    int rc = text_tagged(pid, "cmdline", proc_args_tagged, tag);
    return rc ? rc : text_tagged(pid, "environ", proc_env_tagged, tag);
}

bool proc_has_words(pid_t pid, const char *first, const char *second)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    AUTO_BUF struct buf text = BUF_INIT;
    if (!is_ours(pid) || io_read_file(&text, path, TEXT_MAX, NULL) < 0 || text.len == 0)
        return false;
    bool before = false;
    for (size_t i = 0; i < text.len; i += strlen(text.data + i) + 1) {
        if (before && strcmp(text.data + i, second) == 0)
            return true;
        before = strcmp(text.data + i, first) == 0;
    }
    return false;
}

int proc_tagged(const char *tag, pid_t **out, size_t *n)
{
    struct rows all;
    struct pids found = { 0 };
    int rc = snapshot(&all);
    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        pid_t pid = all.v[i].pid;
        if (pid == getpid() || !is_ours(pid))
            continue;
        rc = is_tagged(pid, tag);
        if (rc > 0)
            rc = add_pid(&found, pid);
    }
    free(all.v);
    return give_pids(&found, rc, out, n);
}

int proc_kill_session(pid_t sid, int sig)
{
    if (sid < 1)
        return -EINVAL; /* session 0 is the kernel's */
    pid_t *pids = NULL;
    size_t n = 0;
    int rc = proc_session_pids(sid, &pids, &n);
    int sent = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (pids[i] != getpid() && kill(pids[i], sig) == 0)
            sent++;
    free(pids);
    return rc < 0 ? rc : sent;
}

/* The 14th and 15th field of stat are its time, the second of statm its memory. */
int proc_usage_of(const char *stat, const char *statm, long ticks_per_s, long page_bytes, struct proc_usage *out)
{
    const char *rest = strrchr(stat, ')');
    uint64_t user = 0, system = 0, resident = 0;
    if (!rest ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user, &system) != 2)
        return -EINVAL;
    if (sscanf(statm, "%*u %" SCNu64, &resident) != 1)
        return -EINVAL;
    *out = (struct proc_usage){ (double)(user + system) / (double)ticks_per_s, (double)resident * (double)page_bytes };
    return 0;
}

static int read_of(pid_t pid, const char *name, char text[1024])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t len = read(fd, text, 1023);
    if (len < 0)
        return -errno;
    text[len] = '\0';
    return 0;
}

int proc_usage(pid_t pid, struct proc_usage *out)
{
    char stat[1024], statm[1024];
    int rc = read_of(pid, "stat", stat);
    if (rc == 0)
        rc = read_of(pid, "statm", statm);
    return rc == 0 ? proc_usage_of(stat, statm, sysconf(_SC_CLK_TCK), sysconf(_SC_PAGESIZE), out) : rc;
}
