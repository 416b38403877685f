#include "node/affinity.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/own.h"
#include "base/proc.h"

enum { WALKS_MAX = 64 }; /* each can only find threads that were born of one that the walk before had not reached */

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* 1 when the thread's mask has changed by this, 0 when it was so already or the thread is gone, or -errno. */
static int put_thread(pid_t tid, const struct mask *want, struct affinity_sum *sum)
{
    struct mask before, after;
    if (mask_read(tid, &before) < 0)
        return 0;
    after = before;
    if (!mask_is(&before, want)) {
        if (sched_setaffinity(tid, sizeof *want, (const cpu_set_t *)(const void *)want->w) < 0)
            return errno == ESRCH ? 0 : -errno;
        if (mask_read(tid, &after) < 0)
            return 0;
    }
    sum->threads++;
    mask_join(&sum->in_force, &after);
    return !mask_is(&before, &after); /* a cpuset may leave less than was wanted: then it stays at that */
}

/* The folder, once it is sure to be this process's: threads read from it are of no other, whatever becomes of the pid. */
static DIR *open_tasks(pid_t pid, uint64_t start)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    uint64_t now = 0;
    if (dir && proc_start_ticks(pid, &now) == 0 && now == start)
        return dir;
    int why = dir || errno == ENOENT ? ESRCH : errno;
    if (dir)
        (void)closedir(dir); /* only read */
    errno = why;
    return NULL;
}

/* How many threads were changed, or -errno. */
static int walk(const struct watch_mask *entry, const struct mask *want, struct affinity_sum *sum)
{
    *sum = (struct affinity_sum){ .processes = 1 };
    DIR *dir = open_tasks(entry->pid, entry->start);
    if (!dir)
        return -errno;
    int changed = 0, rc = 0;
    const struct dirent *task;
    while (rc >= 0 && (task = readdir(dir))) {
        if (isdigit((unsigned char)task->d_name[0]))
            rc = put_thread((pid_t)strtol(task->d_name, NULL, 10), want, sum);
        changed += rc > 0;
    }
    (void)closedir(dir);
    return rc < 0 ? rc : sum->threads > 0 ? changed : -ESRCH;
}

int affinity_put(struct watch_mask *entry, const struct mask *want, struct affinity_sum *sum, struct err *e)
{
    if (!mask_is(&entry->put, want)) {
        entry->was = entry->put;
        entry->put = *want;
    }
    int changed = 0, quiet = 0;
    struct affinity_sum one;
    for (int i = 0; i < WALKS_MAX && quiet < 2; i++) {
        int rc = walk(entry, want, &one);
        if (rc < 0)
            return err_sys(e, rc, "cannot set the CPUs of process %ld", (long)entry->pid);
        failpoint("node-walked");
        quiet = rc ? 0 : quiet + 1;
        changed += rc;
    }
    sum->processes += one.processes;
    sum->threads += one.threads;
    mask_join(&sum->in_force, &one.in_force);
    return changed;
}

/* --- what is remembered ------------------------------------------------------------------------------------------- */

static bool has_what_was_put(const struct watch_mask *entry, const struct mask *m)
{
    return mask_is(&entry->put, m) || mask_is(&entry->was, m);
}

/* Whose child it is that has this mask: the parent's entry, or any of the same tag when the parent has gone. NULL: the mask is the
 * process's own. */
static const struct watch_mask *inherited_from(struct watch_table *t, int tag, pid_t parent, const struct mask *m)
{
    const struct watch_mask *of_parent = watch_find_mask(t, parent);
    if (of_parent)
        return has_what_was_put(of_parent, m) ? of_parent : NULL;
    for (int i = 0; i < t->n_masks; i++)
        if (watch_used(&t->masks[i]) && t->masks[i].tag == tag && has_what_was_put(&t->masks[i], m))
            return &t->masks[i];
    return NULL;
}

static int remember(struct watch_table *t, int tag, pid_t pid, uint64_t start, const struct mask *found)
{
    struct watch_mask *entry = watch_free_mask(t);
    if (!entry)
        return -ENOSPC;
    entry->tag = tag;
    entry->pid = pid;
    entry->start = start;
    entry->found = entry->put = entry->was = *found;
    watch_use(entry);
    return 0;
}

int affinity_take(struct watch_table *t, int tag, pid_t pid, uint64_t start, pid_t parent, struct err *e)
{
    struct watch_mask *known = watch_find_mask(t, pid);
    if (known && known->start == start) {
        known->tag = tag;
        return 0;
    }
    if (known)
        watch_drop(known); /* its process is gone, and the pid in use again */
    struct mask found;
    uint64_t now = 0;
    int rc = mask_read(pid, &found);
    if (rc == 0)
        rc = proc_start_ticks(pid, &now);
    if (rc == 0 && now != start)
        rc = -ESRCH;
    if (rc < 0)
        return err_sys(e, rc, "cannot read the CPUs of process %ld", (long)pid);
    const struct watch_mask *of = inherited_from(t, tag, parent, &found);
    rc = remember(t, tag, pid, start, of ? &of->found : &found);
    return rc < 0 ? err_set(e, rc, "more than %d processes at once", WATCH_MASKS_MAX) : 0;
}

/* --- giving back -------------------------------------------------------------------------------------------------- */

static bool is_of(const struct watch_mask *entry, int tag)
{
    return watch_used(entry) && (tag == AFFINITY_ALL || entry->tag == tag);
}

/* Is it a child of a process under the tag, with that one's mask? Then it is remembered too. */
static bool adopt(struct watch_table *t, int tag, pid_t pid)
{
    struct proc_facts facts;
    struct mask m;
    if (watch_find_mask(t, pid) || proc_facts(pid, &facts) < 0 || !facts.alive || mask_read(pid, &m) < 0)
        return false;
    const struct watch_mask *parent = watch_find_mask(t, facts.parent);
    if (!parent || !is_of(parent, tag) || mask_is(&m, &parent->found) || !has_what_was_put(parent, &m))
        return false;
    return remember(t, parent->tag, pid, facts.start_ticks, &parent->found) == 0;
}

/* One pass over /proc; how many were added. A child has a larger pid than its parent, mostly: one more pass finds none. */
static size_t adopt_children(struct watch_table *t, int tag)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return 0; /* those that we know are given back all the same */
    size_t n = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            n += adopt(t, tag, (pid_t)strtol(entry->d_name, NULL, 10));
    (void)closedir(dir);
    return n;
}

static int give_back_one(struct watch_mask *entry)
{
    struct affinity_sum sum = { 0 };
    struct mask want = entry->found;
    int rc = affinity_put(entry, &want, &sum, NULL);
    if (rc == -EINVAL) { /* none of these CPUs is left to it */
        memset(&want, 0xff, sizeof want);
        rc = affinity_put(entry, &want, &sum, NULL);
    }
    return rc == -ESRCH || rc > 0 ? 0 : rc;
}

static bool holds_any(struct watch_table *t, int tag)
{
    for (int i = 0; i < t->n_masks; i++)
        if (is_of(&t->masks[i], tag))
            return true;
    return false;
}

enum round { ROUND_FIRST, ROUND_LAST };

static int give_back_round(struct watch_table *t, int tag, enum round round)
{
    int failed = 0;
    while (adopt_children(t, tag) > 0)
        continue;
    for (int i = 0; i < t->n_masks; i++) {
        struct watch_mask *entry = &t->masks[i];
        if (!is_of(entry, tag))
            continue;
        int rc = give_back_one(entry);
        failed = rc < 0 ? rc : failed;
        if (round == ROUND_LAST && rc < 0)
            entry->tag = WATCH_LEFT;
        else if (round == ROUND_LAST)
            watch_drop(entry);
    }
    return failed;
}

/* Twice: a thread may fork until its own mask is given back. What is given back stays in the table until then, since its children
 * are known by it. */
int affinity_give_back(struct watch_table *t, int tag)
{
    if (!holds_any(t, tag))
        return 0;
    (void)give_back_round(t, tag, ROUND_FIRST);
    return give_back_round(t, tag, ROUND_LAST);
}
