#include "node/members.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "node/cpus.h"

enum {
    YOUNG_MS = 5000, /* what was forked to work has become what it is to be long before */
    OLD_MS = 10000,
    TEXT_MAX = 8 << 20, /* the kernel's own limit on arguments + environment is 6 MiB */
};

void members_done(struct members *m)
{
    free(m->v);
    *m = (struct members){ 0 };
}

/* --- tags --------------------------------------------------------------------------------------------------------- */

bool members_tag_is_valid(const char *tag)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t len = strspn(tag, allowed);
    return len > 0 && len <= MEMBERS_TAG_LEN && tag[len] == '\0';
}

int members_find_tag(const struct members *m, const char *tag)
{
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (strcmp(m->tags[i], tag) == 0)
            return i;
    return MEMBERS_NO_TAG;
}

int members_add_tag(struct members *m, const char *tag)
{
    int known = members_find_tag(m, tag);
    if (known >= 0)
        return known;
    int i = members_find_tag(m, "");
    if (i < 0)
        return -ENOSPC;
    (void)snprintf(m->tags[i], sizeof m->tags[i], "%s", tag);
    for (size_t k = 0; k < m->n; k++)
        m->v[k].looked_ms = INT64_MIN; /* nobody was asked about this tag yet */
    return i;
}

void members_drop_tag(struct members *m, int tag)
{
    m->tags[tag][0] = '\0';
    m->changed &= ~(UINT64_C(1) << tag);
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].tag == tag)
            m->v[i].tag = MEMBERS_NO_TAG;
}

static void mark(struct members *m, int tag)
{
    if (tag >= 0)
        m->changed |= UINT64_C(1) << tag;
}

/* --- what one process is ------------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool take_word(char out[MEMBERS_TAG_LEN + 1], const char *text, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$-";
    if (len < 1 || len > MEMBERS_TAG_LEN || strspn(text, allowed) < len)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

int members_worker_words(struct members_worker *out, const char *pattern)
{
    const char *star = strchr(pattern, '*');
    bool ok = star && take_word(out->begins, pattern, (size_t)(star - pattern)) &&
              take_word(out->ends, star + 1, strlen(star + 1));
    return ok ? 0 : -EINVAL;
}

int members_worker_option(struct members_worker *out, const char *option)
{
    return take_word(out->option, option, strlen(option)) ? 0 : -EINVAL;
}

static bool names_worker(const struct members_worker *w, const char *arg)
{
    return strncmp(arg, w->begins, strlen(w->begins)) == 0 && ends_with(arg, w->ends);
}

int members_worker_cores(const struct members_worker *w, const char *args, size_t len)
{
    bool works = false;
    int cores = 0;
    for (size_t i = 0; w->begins[0] && i < len; i += strlen(args + i) + 1) {
        works = works || names_worker(w, args + i);
        size_t next = i + strlen(args + i) + 1;
        if (works && next < len && strcmp(args + i, w->option) == 0) {
            long n = strtol(args + next, NULL, 10);
            cores = n > 0 && n <= CPUS_MAX ? (int)n : 0;
        }
    }
    return cores;
}

bool members_args_are_ours(const char *args, size_t len)
{
    if (len == 0)
        return false;
    const char *slash = strrchr(args, '/');
    const char *verb = strlen(args) + 1 < len ? args + strlen(args) + 1 : "";
    return strcmp(slash ? slash + 1 : args, "pipetune-node") == 0 &&
           (strcmp(verb, "exec") == 0 || strcmp(verb, "serve") == 0);
}

static bool has_our_uid(pid_t pid)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* What hides from us, or went away meanwhile, reads as nothing. */
static int read_text(struct buf *out, pid_t pid, const char *file)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    int rc = io_read_file(out, path, TEXT_MAX, NULL);
    return rc == -ENOMEM || out->failed ? -ENOMEM : 0;
}

static int match(const struct members *m, const struct buf *text, bool (*tagged)(const char *, size_t, const char *))
{
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (m->tags[i][0] && text->len > 0 && tagged(text->data, text->len, m->tags[i]))
            return i;
    return MEMBERS_NO_TAG;
}

/* Arguments before environment: that is inherited by whatever starts another launch. */
static int read_tag(const struct members *m, struct member *p)
{
    AUTO_BUF struct buf args = BUF_INIT;
    AUTO_BUF struct buf env = BUF_INIT;
    int rc = read_text(&args, p->pid, "cmdline");
    if (rc < 0)
        return rc;
    p->ours = members_args_are_ours(buf_text(&args), args.len);
    p->cores = members_worker_cores(&m->worker, buf_text(&args), args.len);
    if (p->tag < 0)
        p->tag = match(m, &args, proc_args_tagged);
    if (p->tag < 0) {
        rc = read_text(&env, p->pid, "environ");
        p->tag = rc < 0 ? p->tag : match(m, &env, proc_env_tagged);
    }
    return rc;
}

/* Where, and whether, it runs. One that has gone, or is another's, is simply none of ours. */
static void look_at_facts(struct member *p, int64_t now_ms)
{
    struct proc_facts facts = { 0 };
    int rc = proc_facts(p->pid, &facts);
    if (p->start != 0 && facts.start_ticks != p->start) { /* the pid is another process's now */
        p->tag = MEMBERS_NO_TAG;
        p->first_ms = now_ms;
    }
    p->parent = facts.parent;
    p->start = facts.start_ticks;
    p->counts = rc == 0 && facts.alive && p->pid != getpid();
    if (!p->counts)
        p->tag = MEMBERS_NO_TAG;
}

/* Reads what there is to know about it. -ENOMEM. */
static int look_at(const struct members *m, struct member *p, int64_t now_ms)
{
    look_at_facts(p, now_ms);
    p->looked_ms = now_ms;
    p->counts = p->counts && has_our_uid(p->pid);
    if (p->counts)
        return read_tag(m, p);
    p->tag = MEMBERS_NO_TAG;
    return 0;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

struct list {
    struct member *v; /* owned */
    size_t n, cap;
};

static int add(struct list *to, pid_t pid, ino_t inode)
{
    struct member *v = array_more(to->v, to->n, &to->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    to->v = v;
    to->v[to->n++] = (struct member){ .pid = pid, .inode = inode, .tag = MEMBERS_NO_TAG, .looked_ms = INT64_MIN };
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct member *)a)->pid, y = ((const struct member *)b)->pid;
    return (x > y) - (x < y);
}

static int list_all(struct list *out)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return -errno;
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            rc = add(out, (pid_t)strtol(entry->d_name, NULL, 10), entry->d_ino);
    (void)closedir(dir); /* only read */
    if (rc == 0 && out->n > 0)
        qsort(out->v, out->n, sizeof *out->v, by_pid);
    return rc;
}

/* What is known about them is carried over. */
static void carry_over(const struct members *old, struct list *now, int64_t now_ms)
{
    size_t k = 0;
    for (size_t i = 0; i < now->n; i++) {
        struct member *p = &now->v[i];
        while (k < old->n && old->v[k].pid < p->pid)
            k++;
        if (k < old->n && old->v[k].pid == p->pid && old->v[k].inode == p->inode)
            *p = old->v[k];
        else
            p->first_ms = now_ms;
    }
}

static bool is_due(const struct member *p, int64_t now_ms)
{
    return p->looked_ms == INT64_MIN || now_ms - p->first_ms < YOUNG_MS || now_ms - p->looked_ms >= OLD_MS;
}

static int look_at_due(const struct members *m, struct list *now, int64_t now_ms)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < now->n; i++) {
        if (is_due(&now->v[i], now_ms))
            rc = look_at(m, &now->v[i], now_ms);
        else if (now->v[i].tag >= 0)
            look_at_facts(&now->v[i], now_ms); /* it may be a zombie by now */
    }
    return rc;
}

static int tag_of(const struct list *all, pid_t pid)
{
    const struct member key = { .pid = pid };
    const struct member *p = all->n > 0 ? bsearch(&key, all->v, all->n, sizeof key, by_pid) : NULL;
    return p ? p->tag : MEMBERS_NO_TAG;
}

/* Children of members become members. Only those that were looked at now are sure to have this parent still. */
static void follow_parents(struct list *now, int64_t now_ms)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < now->n; i++) {
            struct member *p = &now->v[i];
            if (p->tag >= 0 || !p->counts || p->looked_ms != now_ms)
                continue;
            p->tag = tag_of(now, p->parent);
            more = more || p->tag >= 0;
        }
    }
}

/* Who of `a` is not the same in `b`, both sorted. */
static void mark_differences(struct members *m, const struct member *a, size_t n, const struct member *b, size_t k)
{
    size_t j = 0;
    for (size_t i = 0; i < n; i++) {
        while (j < k && b[j].pid < a[i].pid)
            j++;
        bool same = j < k && b[j].pid == a[i].pid && b[j].start == a[i].start && b[j].tag == a[i].tag &&
                    b[j].ours == a[i].ours && b[j].cores == a[i].cores;
        if (!same)
            mark(m, a[i].tag);
    }
}

int members_look(struct members *m, int64_t now_ms, struct err *e)
{
    struct list now = { 0 };
    int rc = list_all(&now);
    if (rc == 0) {
        carry_over(m, &now, now_ms);
        rc = look_at_due(m, &now, now_ms);
    }
    if (rc < 0) {
        free(now.v);
        return err_sys(e, rc, "cannot look at the processes of this machine");
    }
    follow_parents(&now, now_ms);
    mark_differences(m, m->v, m->n, now.v, now.n);
    mark_differences(m, now.v, now.n, m->v, m->n);
    free(m->v);
    m->v = now.v;
    m->n = now.n;
    return 0;
}
