#include "node/wish.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "node/affinity.h"
#include "node/claim.h"

enum { ROUNDS_MAX = 16 }; /* each finds only what was forked while the one before walked */

/* --- opening and closing ------------------------------------------------------------------------------------------ */

/* Also runs in the watchdog. Limits first: they hold back other people's processes too. */
static int give_back(struct watch_table *t, const char *sysfs, int tag)
{
    int limits = limits_give_back(t, sysfs, tag);
    int masks = affinity_give_back(t, tag);
    return limits < 0 ? limits : masks;
}

static void give_back_all(struct watch_table *t, const void *sysfs)
{
    (void)give_back(t, sysfs, AFFINITY_ALL); /* nobody is left to be told */
}

/* Descriptor 0 is never one: it is stdin. */
static void give_up_claim(struct wishes *w, int tag)
{
    if (w->claims[tag] > 0)
        (void)close(MOVE_FD(w->claims[tag]));
    w->claims[tag] = 0;
}

int wishes_open(struct wishes *out, const char *sysfs, struct err *e)
{
    out->sysfs = sysfs;
    int rc = mask_read(0, &out->may);
    if (rc < 0)
        return err_sys(e, rc, "cannot read the CPUs of this process");
    cpus_order(sysfs, &out->may, &out->order);
    rc = leased_open(&out->leased);
    if (rc < 0)
        return err_sys(e, rc, "cannot lease CPUs");
    return watch_open(&out->watch, give_back_all, sysfs, e);
}

int wishes_close(struct wishes *w, struct err *e)
{
    int rc = w->watch.table ? give_back(w->watch.table, w->sysfs, AFFINITY_ALL) : 0;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        give_up_claim(w, i);
    leased_close(&w->leased);
    watch_close(&w->watch);
    members_done(&w->members);
    return rc < 0 ? err_sys(e, rc, "cannot give back all that was changed") : 0;
}

/* --- who ---------------------------------------------------------------------------------------------------------- */

static bool is_gone(const struct watch_mask *entry)
{
    struct proc_facts now;
    return proc_facts(entry->pid, &now) < 0 || now.start_ticks != entry->start || !now.alive;
}

static bool is_member(const struct members *m, const struct watch_mask *entry)
{
    for (size_t i = 0; i < m->n && m->v[i].pid <= entry->pid; i++)
        if (m->v[i].pid == entry->pid)
            return m->v[i].start == entry->start && m->v[i].tag >= 0;
    return false;
}

/* What was remembered of processes that have ended. */
static void forget_gone(struct wishes *w)
{
    struct watch_table *t = w->watch.table;
    for (int i = 0; i < t->n_masks; i++)
        if (watch_used(&t->masks[i]) && !is_member(&w->members, &t->masks[i]) && is_gone(&t->masks[i]))
            watch_drop(&t->masks[i]);
}

bool wishes_wants(const struct wishes *w, int tag)
{
    return w->of[tag].slots > 0;
}

/* Who shares CPUs, or no longer does, or need not any more, is looked after again. */
static void look_leased(struct wishes *w)
{
    char who[LEASE_WHO_MAX];
    leased_poll(&w->leased);
    for (int tag = 0; tag < MEMBERS_TAGS_MAX; tag++) {
        if (!wishes_wants(w, tag))
            continue;
        leased_with(&w->leased, tag, who);
        if (strcmp(who, w->shared[tag]) != 0 || (who[0] && leased_may_part(&w->leased, tag, &w->order)))
            w->members.changed |= UINT64_C(1) << tag;
    }
}

int wishes_look(struct wishes *w, int64_t now_ms, uint64_t *out_changed, struct err *e)
{
    int rc = members_look(&w->members, now_ms, e);
    if (rc < 0)
        return rc;
    if (w->members.changed)
        forget_gone(w);
    look_leased(w);
    for (int tag = 0; tag < MEMBERS_TAGS_MAX; tag++)
        if (!wishes_wants(w, tag))
            w->members.changed &= ~(UINT64_C(1) << tag);
    *out_changed = w->members.changed;
    return 0;
}

static int count(const struct members *m, int tag)
{
    int n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += members_has(&m->v[i], tag);
    return n;
}

static int slots_here(const struct wishes *w, int tag)
{
    if (w->of[tag].local || !w->members.worker.begins[0])
        return count(&w->members, tag) > 0 ? w->of[tag].slots : 0;
    int slots = 0;
    for (size_t i = 0; i < w->members.n; i++)
        if (members_has(&w->members.v[i], tag) && slots < WISH_CORES_MAX)
            slots += w->members.v[i].cores;
    return slots;
}

/* --- how many, which ---------------------------------------------------------------------------------------------- */

/* In local mode the driver has the leases. */
static bool is_leased(const struct wish *wish)
{
    return !wish->local && wish->given.n == 0;
}

/* cores × slots here ÷ all slots, rounded; at least one, at most what there is. */
static void choose(struct wishes *w, int tag, int slots, struct cpus *out)
{
    const struct wish *wish = &w->of[tag];
    const struct cpus *from = wish->given.n > 0 ? &wish->given : &w->order;
    int64_t all = wish->slots, n = (2 * (int64_t)wish->cores * slots + all) / (2 * all);
    int want = n < 1 ? 1 : n > from->n ? from->n : (int)n;
    if (is_leased(wish)) {
        leased_take(&w->leased, tag, from, want, out);
    } else {
        leased_drop(&w->leased, tag);
        *out = *from;
        out->n = want;
    }
}

/* --- bringing it into force --------------------------------------------------------------------------------------- */

/* A process that has ended is no failure: the next look does not find it. Nor is it told, then. */
static int unless_gone(int rc, const struct err *why, struct err *e)
{
    if (rc >= 0 || rc == -ESRCH)
        return 0;
    if (e)
        *e = *why;
    return rc;
}

/* All of them are remembered before the first is changed: what a child inherits meanwhile is then known as such. */
static int take_all(struct wishes *w, int tag, struct err *e)
{
    struct err why = { 0 };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < w->members.n; i++) {
        const struct member *p = &w->members.v[i];
        if (members_has(p, tag))
            rc = unless_gone(affinity_take(w->watch.table, tag, p->pid, p->start, p->parent, &why), &why, e);
    }
    return rc;
}

static int put_all(struct wishes *w, int tag, const struct mask *want, struct affinity_sum *sum, struct err *e)
{
    struct watch_table *t = w->watch.table;
    struct err why = { 0 };
    int rc = 0;
    for (int i = 0; rc == 0 && i < t->n_masks; i++)
        if (watch_used(&t->masks[i]) && t->masks[i].tag == tag)
            rc = unless_gone(affinity_put(&t->masks[i], want, sum, &why), &why, e);
    return rc;
}

static int put_limits(struct wishes *w, int tag, const struct cpus *on, struct wish_report *out, struct err *e)
{
    int rc = 0;
    for (int row = 0; rc == 0 && row < LIMIT_ROWS; row++)
        rc = limits_set(w->watch.table, w->sysfs, tag, (enum limit_row)row, w->of[tag].limits[row], on,
                        &out->limits[row], e);
    return rc;
}

/* One round over the processes as the last look found them. */
static int enforce_once(struct wishes *w, int tag, struct wish_report *out, struct err *e)
{
    struct cpus on;
    *out = (struct wish_report){ .slots = slots_here(w, tag) };
    if (out->slots == 0) {
        leased_drop(&w->leased, tag);
        w->shared[tag][0] = '\0';
        out->processes = count(&w->members, tag);
        return give_back(w->watch.table, w->sysfs, tag) < 0 ? err_set(e, -EPERM, "cannot give back what was changed")
                                                            : 0;
    }
    choose(w, tag, out->slots, &on);
    struct mask want = mask_of(on.v, on.n);
    struct affinity_sum sum = { 0 };
    int rc = take_all(w, tag, e);
    if (rc == 0)
        rc = put_limits(w, tag, &on, out, e);
    if (rc == 0)
        rc = put_all(w, tag, &want, &sum, e);
    out->processes = sum.processes;
    out->threads = sum.threads;
    out->cpus = sum.in_force;
    leased_with(&w->leased, tag, out->shared);
    memcpy(w->shared[tag], out->shared, sizeof out->shared);
    return rc;
}

/* Until a look finds that nobody came or went meanwhile. */
int wishes_follow(struct wishes *w, int tag, int64_t now_ms, struct wish_report *out, struct err *e)
{
    uint64_t bit = UINT64_C(1) << tag, changed = bit;
    int rc = 0;
    for (int round = 0; rc == 0 && (changed & bit) && round < ROUNDS_MAX; round++) {
        w->members.changed &= ~bit;
        rc = enforce_once(w, tag, out, e);
        if (rc == 0)
            rc = wishes_look(w, now_ms, &changed, e);
    }
    return rc;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Leaves out what we may not use. */
static int filter(const struct wishes *w, const struct cpus *asked, struct cpus *out, struct err *e)
{
    struct mask seen = { 0 };
    out->n = 0;
    for (int i = 0; i < asked->n; i++) {
        if (!mask_has(&w->may, asked->v[i]) || mask_has(&seen, asked->v[i]))
            continue;
        mask_add(&seen, asked->v[i]);
        out->v[out->n++] = asked->v[i];
    }
    return asked->n > 0 && out->n == 0 ? err_set(e, -EINVAL, "none of these CPUs may be used here") : 0;
}

static int release(struct wishes *w, int tag)
{
    int rc = give_back(w->watch.table, w->sysfs, tag);
    leased_drop(&w->leased, tag);
    w->shared[tag][0] = '\0';
    members_drop_tag(&w->members, tag);
    w->of[tag].slots = 0;
    give_up_claim(w, tag);
    return rc;
}

int wishes_watch(struct wishes *w, const char *tag, int64_t now_ms, struct err *e)
{
    uint64_t changed = 0;
    bool known = members_find_tag(&w->members, tag) >= 0;
    int i = members_add_tag(&w->members, tag);
    if (i < 0)
        return err_set(e, i, "more than %d launches at once", MEMBERS_TAGS_MAX);
    int rc = wishes_look(w, now_ms, &changed, e);
    if (rc < 0 && !known)
        members_drop_tag(&w->members, i);
    return rc < 0 ? rc : i;
}

int wishes_set(struct wishes *w, const char *tag, const struct wish *wanted, int64_t now_ms, struct wish_report *out,
               struct err *e)
{
    int i = members_add_tag(&w->members, tag);
    if (i < 0)
        return err_set(e, i, "more than %d launches at once", MEMBERS_TAGS_MAX);
    struct wish_report report = { 0 };
    uint64_t changed = 0;
    w->of[i] = *wanted;
    int rc = filter(w, &wanted->given, &w->of[i].given, e);
    if (rc == 0 && w->claims[i] == 0)
        rc = claim_take(tag, &w->claims[i], e);
    if (rc == 0)
        rc = wishes_look(w, now_ms, &changed, e);
    if (rc == 0)
        rc = wishes_follow(w, i, now_ms, &report, e);
    if (rc < 0)
        (void)release(w, i); /* the first failure is the one to be told */
    else
        *out = report;
    return rc;
}

int wishes_release(struct wishes *w, const char *tag, struct err *e)
{
    int i = members_find_tag(&w->members, tag);
    int rc = i < 0 ? 0 : release(w, i);
    return rc < 0 ? err_sys(e, rc, "cannot give back all that was changed") : 0;
}

bool wishes_any(const struct wishes *w)
{
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (w->members.tags[i][0])
            return true;
    return false;
}
