#include "live/gang.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "live/exit_note.h"

enum {
    SETTLE_MS = 300, /* who ends in the wake of one that was lost may be heard of before that one */
    LEAVE_MS = 5000, /* that the others of its role may take to end when the one that tells has */
    PORTS_TEXT_MAX = 6 * APP_GANG_MAX + 2,
    HARD_MS = 20000, /* after the word to end: a launcher kills what is left after its grace, and notes how it ended */
};

struct part {
    struct gang_member m;
    uint64_t id;
    struct site_launch at;
    bool ready, gone;
    bool late; /* it ended after the gang had been told to */
};

struct gang {
    struct gang *next;
    struct gangs *all;
    uint64_t id;  /* the driver's; 0: none of it is started */
    bool went;    /* all were told to go, or it was met running */
    bool refused; /* that was told */
    bool told_gone;
    int64_t term_ms;             /* monotonic: when those that are left are to be told to end; 0: they are not */
    int64_t kill_ms;             /* … and to be killed; 0: they were not told to end yet */
    struct launcher_ready ready; /* of the one that tells */
    char lost[200];
    size_t n, tells;
    struct part v[APP_GANG_MAX];
};

struct gangs {
    const struct launcher_ops *launcher;
    const struct hosts_ops *hosts;
    void *ctx;
    struct gang *list;
    uint64_t last_id;
    int64_t now_ms; /* of the last tick */
};

int gangs_open(struct gangs **out, const struct launcher_ops *launcher, const struct hosts_ops *hosts, void *ctx,
               struct err *e)
{
    const uint64_t ids = UINT64_C(1) << 32; /* the driver's own count from 1 */
    struct gangs *all = calloc(1, sizeof *all);
    if (!all)
        return err_sys(e, -ENOMEM, "gangs");
    *all = (struct gangs){ .launcher = launcher, .hosts = hosts, .ctx = ctx, .last_id = ids };
    *out = all;
    return 0;
}

void gangs_close(struct gangs *all)
{
    free(all);
}

/* --- one gang ------------------------------------------------------------------------------------------------------------- */

static char *folder_of(const char *dir, const struct app_rank *rank)
{
    char *path = NULL;
    return asprintf(&path, "%s/members/%s-%d", dir, rank->role, rank->index) < 0 ? NULL : path;
}

struct gang *gang_new(struct gangs *all, const struct app_gang *shape, int64_t trial, int attempt, const char *dir)
{
    struct gang *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (struct gang){ .next = all->list, .all = all, .n = shape->n, .tells = shape->tells };
    all->list = g;
    for (size_t k = 0; k < g->n; k++) {
        struct part *p = &g->v[k];
        p->id = ++all->last_id;
        p->m = (struct gang_member){ .row = { .trial = trial,
                                              .attempt = attempt,
                                              .number = (int)k,
                                              .role = (char *)(uintptr_t)shape->v[k].role,
                                              .index = shape->v[k].index },
                                     .cores = shape->v[k].cores,
                                     .dir = k == g->tells ? strdup(dir) : folder_of(dir, &shape->v[k]) };
        if (!p->m.dir) {
            gang_free(g);
            return NULL;
        }
    }
    return g;
}

static void leave(struct gang *g, bool over)
{
    for (size_t k = 0; k < g->n; k++) {
        struct part *p = &g->v[k];
        if (p->at.own)
            p->at.row->let_go(MOVE_PTR(p->at.own), over);
    }
}

void gang_free(struct gang *g)
{
    if (!g)
        return;
    leave(g, false);
    struct gang **at = &g->all->list;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    for (size_t k = 0; k < g->n; k++) {
        struct gang_member *m = &g->v[k].m;
        free(m->row.place);
        free(m->row.launch);
        free(m->row.boot_id);
        free(m->dir);
        free(m->cpus);
        free(m->held);
    }
    free(g);
}

size_t gang_count(const struct gang *g)
{
    return g ? g->n : 0;
}

size_t gang_teller(const struct gang *g)
{
    return g->tells;
}

bool gang_is_gone(const struct gang *g, size_t k)
{
    return g->v[k].gone;
}

struct gang_member *gang_member(const struct gang *g, size_t k)
{
    return (struct gang_member *)(uintptr_t)&g->v[k].m;
}

void gang_forget_heard(const struct gang *g)
{
    for (size_t k = 0; g && k < g->n; k++) {
        AUTO_FREE char *path = k == g->tells ? NULL : io_join(g->v[k].m.dir, "heard");
        if (path)
            (void)unlink(path); /* what stays goes with the next attempt, or the trial's folder */
    }
}

/* --- how it ends ---------------------------------------------------------------------------------------------------------- */

/* As an attempt's row, for what is asked of its place. */
static struct store_attempt attempt_row(const struct part *p)
{
    const struct store_member *m = &p->m.row;
    return (struct store_attempt){ .launch = m->launch,
                                   .boot_id = m->boot_id,
                                   .pid = m->pid,
                                   .start_ticks = m->start_ticks,
                                   .number = m->attempt,
                                   .node = m->node,
                                   .place = m->place };
}

static void signal_part(const struct part *p, bool hard)
{
    const struct store_attempt row = attempt_row(p);
    if (p->at.row && row.launch)
        p->at.row->signal(p->at.own, &row, hard);
}

static const char *lost_of(const struct part *p)
{
    return p->at.row && p->at.own ? p->at.row->lost(p->at.own) : NULL;
}

static bool is_away(const struct part *p)
{
    return p->at.own && p->at.row->away(p->at.own);
}

static struct attempt_exit note_of(const struct part *p)
{
    struct attempt_exit x;
    exit_note_read(p->m.dir, p->m.row.attempt, p->m.row.launch, &x);
    return x;
}

static bool ended_well(const struct part *p)
{
    struct attempt_exit x = note_of(p);
    return !lost_of(p) && x.there && x.code == 0;
}

/* How much of the gang's end it explains. */
enum { EXPLAINS_NOTHING, EXPLAINS_FAILED, EXPLAINS_KILLED, EXPLAINS_LOST };

static int explains(const struct part *p, const struct attempt_exit *x)
{
    if (lost_of(p) || !p->at.row)
        return EXPLAINS_LOST;
    if (p->late)
        return EXPLAINS_NOTHING;
    if (!x->there || exit_note_is_killed(x))
        return EXPLAINS_KILLED;
    return x->code != 0 ? EXPLAINS_FAILED : EXPLAINS_NOTHING;
}

static const struct part *blamed(const struct gang *g)
{
    const struct part *best = NULL;
    int most = EXPLAINS_NOTHING;
    int64_t first_ms = 0;
    for (size_t k = 0; k < g->n; k++) {
        struct attempt_exit x = note_of(&g->v[k]);
        int much = explains(&g->v[k], &x);
        if (much < most || much == EXPLAINS_NOTHING || (much == most && x.at_ms >= first_ms))
            continue;
        best = &g->v[k];
        most = much;
        first_ms = x.at_ms;
    }
    return best;
}

const struct gang_member *gang_blamed(const struct gang *g)
{
    const struct part *p = g && g->told_gone ? blamed(g) : NULL;
    return p && p != &g->v[g->tells] ? &p->m : NULL;
}

/* Ends those that are left `in_ms` from now, or earlier where that was said. */
static void end_in(struct gang *g, int64_t in_ms)
{
    int64_t at = g->all->now_ms + in_ms;
    g->term_ms = g->term_ms && g->term_ms < at ? g->term_ms : at;
}

static bool role_has_ended(const struct gang *g, const char *role)
{
    for (size_t k = 0; k < g->n; k++)
        if (!g->v[k].gone && strcmp(g->v[k].m.row.role, role) == 0)
            return false;
    return true;
}

/* One has ended. `g` may be gone when this returns. */
static void look(struct gang *g)
{
    size_t left = 0;
    for (size_t k = 0; k < g->n; k++)
        left += !g->v[k].gone;
    if (left == 0 && !g->told_gone) {
        g->told_gone = true;
        g->all->launcher->gone(g->all->ctx, g->id);
        return;
    }
    for (size_t k = 0; left > 0 && k < g->n; k++) {
        if (g->v[k].gone && !ended_well(&g->v[k]))
            end_in(g, SETTLE_MS);
        else if (g->v[k].gone && k == g->tells)
            end_in(g, role_has_ended(g, g->v[k].m.row.role) ? 0 : LEAVE_MS);
    }
}

static void has_gone(struct gang *g, size_t k)
{
    g->v[k].gone = true;
    g->v[k].late = g->kill_ms != 0;
    look(g);
}

/* One that cannot be asked is given up at once: its place ends it when it comes back. */
static void end_rest(struct gang *g, int64_t now)
{
    bool hard = g->kill_ms && now >= g->kill_ms;
    for (size_t k = 0; k < g->n; k++)
        if (!g->v[k].gone && (hard || !g->kill_ms || is_away(&g->v[k])))
            signal_part(&g->v[k], hard || is_away(&g->v[k]));
    if (!g->kill_ms || hard)
        g->kill_ms = now + HARD_MS;
}

/* What came of those that are not read along is here, and need not be kept where they are. */
static void account(const struct gang *g)
{
    for (size_t k = 0; k < g->n; k++) {
        const struct part *p = &g->v[k];
        struct stat st;
        AUTO_FREE char *path = k != g->tells && p->m.row.node > 0 && p->at.own ? io_join(p->m.dir, "heard") : NULL;
        if (path && stat(path, &st) == 0)
            p->at.row->accounted(p->at.own, (uint64_t)st.st_size);
    }
}

static void tick(struct gang *g, int64_t now)
{
    if (!g->went || g->told_gone)
        return;
    account(g);
    if (g->term_ms && now >= g->term_ms)
        end_rest(g, now);
    look(g);
}

void gangs_tick(struct gangs *all, int64_t now_ms)
{
    if (all)
        all->now_ms = now_ms;
    for (struct gang *g = all ? all->list : NULL, *next; g; g = next) {
        next = g->next; /* what is told drops none but this one, and that later */
        tick(g, now_ms);
    }
}

/* --- what is told of one -------------------------------------------------------------------------------------------------- */

static struct gang *find(const struct gangs *all, uint64_t id, size_t *out)
{
    for (struct gang *g = all->list; g; g = g->next)
        for (size_t k = 0; k < g->n; k++)
            if (g->v[k].id == id && g->v[k].at.own) {
                *out = k;
                return g;
            }
    return NULL;
}

/* A process of a gang that let go of it is nobody's. */
static bool is_nobodys(const struct gangs *all, uint64_t id)
{
    return id > UINT64_C(1) << 32 && id <= all->last_id;
}

static void put_who(const struct part *p, const char *why, char *out, size_t size)
{
    (void)snprintf(out, size, "%s %d: %s", p->m.row.role, p->m.row.index, why);
}

static void refuse(struct gang *g, size_t k, bool busy, const char *why)
{
    char text[320];
    if (g->refused)
        return;
    g->refused = true;
    put_who(&g->v[k], why, text, sizeof text);
    g->all->launcher->refused(g->all->ctx, g->id, busy, text);
}

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct gangs *all = ctx;
    size_t k, n = 0;
    struct gang *g = find(all, id, &k);
    if (!g) {
        if (!is_nobodys(all, id))
            all->launcher->ready(all->ctx, id, r);
        return;
    }
    struct store_member *m = &g->v[k].m.row;
    if (g->refused)
        return;
    m->pid = r->pid;
    m->start_ticks = (int64_t)r->start_ticks;
    m->port = r->port;
    m->boot_id = strdup(r->boot_id);
    if (!m->boot_id || !m->port) {
        refuse(g, k, false,
               m->boot_id ? "its pipetune-node knows no gangs: it is older than this one" : "out of memory");
        return;
    }
    if (k == g->tells || !g->ready.unlimited[0])
        memcpy(g->ready.unlimited, r->unlimited, sizeof r->unlimited);
    if (k == g->tells)
        g->ready = *r;
    g->v[k].ready = true;
    for (size_t i = 0; i < g->n; i++)
        n += g->v[i].ready;
    if (n == g->n)
        all->launcher->ready(all->ctx, g->id, &g->ready);
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    struct gangs *all = ctx;
    size_t k;
    struct gang *g = find(all, id, &k);
    if (g)
        refuse(g, k, busy, why);
    else if (!is_nobodys(all, id))
        all->launcher->refused(all->ctx, id, busy, why);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct gangs *all = ctx;
    size_t k;
    struct gang *g = find(all, id, &k);
    if (g)
        has_gone(g, k);
    else if (!is_nobodys(all, id))
        all->launcher->gone(all->ctx, id);
}

static void on_unplaced(void *ctx, uint64_t id, const char *why)
{
    struct gangs *all = ctx;
    size_t k;
    char text[320];
    struct gang *g = find(all, id, &k);
    if (!g || g->refused)
        return;
    g->refused = true;
    put_who(&g->v[k], why, text, sizeof text);
    all->hosts->unplaced(all->ctx, g->id, text);
}

static void on_ended(void *ctx, uint64_t id)
{
    struct gangs *all = ctx;
    size_t k;
    const struct gang *g = find(all, id, &k);
    if (g && k == g->tells)
        all->hosts->ended(all->ctx, g->id);
}

static void on_checkpoint(void *ctx, uint64_t id, int epoch, const char *path)
{
    struct gangs *all = ctx;
    size_t k;
    const struct gang *g = find(all, id, &k);
    if (g && k == g->tells)
        all->hosts->checkpoint(all->ctx, g->id, epoch, path);
}

static void on_failed(void *ctx, uint64_t id, int rc, const struct err *e)
{
    struct gangs *all = ctx;
    size_t k;
    const struct gang *g = find(all, id, &k);
    if (g)
        all->hosts->failed(all->ctx, g->id, rc, e);
}

static void on_note(void *ctx, const char *text)
{
    struct gangs *all = ctx;
    all->hosts->note(all->ctx, text);
}

const struct launcher_ops gangs_launcher_ops = { on_ready, on_refused, on_gone };
const struct hosts_ops gangs_hosts_ops = { on_unplaced, on_ended, on_checkpoint, on_failed, on_note };

/* --- as one launch -------------------------------------------------------------------------------------------------------- */

static int go(void *own, const char *ignored)
{
    struct gang *g = own;
    char ports[PORTS_TEXT_MAX] = "";
    int len = 0, rc = 0;
    (void)ignored; /* it is of none itself */
    for (size_t k = 0; k < g->n; k++)
        len += snprintf(ports + len, sizeof ports - (size_t)len, "%s%d", k ? "," : "", g->v[k].m.row.port);
    g->went = true;
    for (size_t k = 0; k < g->n; k++) {
        struct part *p = &g->v[k];
        int one = p->at.own ? p->at.row->go(p->at.own, ports) : -ESRCH;
        rc = rc < 0 ? rc : one;
    }
    return rc;
}

static void signal_gang(void *own, const struct store_attempt *row, bool hard)
{
    struct gang *g = own;
    (void)row;
    for (size_t k = 0; g && k < g->n; k++)
        signal_part(&g->v[k], hard);
}

static void say_stop(void *own, const struct store_attempt *row)
{
    struct gang *g = own;
    (void)row;
    for (size_t k = 0; g && k < g->n; k++) {
        const struct store_attempt one = attempt_row(&g->v[k]);
        if (!g->v[k].gone && g->v[k].at.row)
            g->v[k].at.row->say_stop(g->v[k].at.own, &one);
    }
}

static const struct part *teller(void *own)
{
    const struct gang *g = own;
    return g && g->v[g->tells].at.row ? &g->v[g->tells] : NULL;
}

static void accounted(void *own, uint64_t offset)
{
    const struct part *p = teller(own);
    if (p)
        p->at.row->accounted(p->at.own, offset);
}

static int checkpoint(void *own, int epoch, const char *path, struct err *e)
{
    const struct part *p = teller(own);
    return p ? p->at.row->checkpoint(p->at.own, epoch, path, e) : 1;
}

static bool away(void *own)
{
    const struct part *p = teller(own);
    return p && is_away(p);
}

static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    const struct part *p = teller(own);
    return p && p->at.row->boot_id(p->at.own, out);
}

static bool ahead(void *own, int64_t *out_ms)
{
    const struct part *p = teller(own);
    *out_ms = 0;
    return !p || p->at.row->ahead(p->at.own, out_ms);
}

/* Of which it ended, where that one was lost. */
static const char *lost(void *own)
{
    struct gang *g = own;
    const struct part *p = g && g->told_gone ? blamed(g) : NULL;
    const char *why = !p ? NULL : p->at.row ? lost_of(p) : "its host is not among the nodes any more";
    if (!why)
        return NULL;
    put_who(p, why, g->lost, sizeof g->lost);
    return g->lost;
}

static void let_go(void *own, bool over)
{
    struct gang *g = own;
    if (g)
        leave(g, over);
}

static const struct site_row gang_row = { .go = go,
                                          .signal = signal_gang,
                                          .say_stop = say_stop,
                                          .accounted = accounted,
                                          .checkpoint = checkpoint,
                                          .away = away,
                                          .boot_id = boot_id,
                                          .ahead = ahead,
                                          .lost = lost,
                                          .let_go = let_go };

int gang_start(struct gang *g, uint64_t id, const struct site *sites, struct site_order *orders,
               struct site_launch *out, struct err *e)
{
    int rc = 0;
    g->id = id;
    for (size_t k = 0; rc == 0 && k < g->n; k++) {
        struct part *p = &g->v[k];
        rc = sites[k].row->start(sites[k].own, p->id, &orders[k], &p->at, e);
    }
    *out = (struct site_launch){ &gang_row, g };
    return rc;
}

int gang_adopt(struct gang *g, uint64_t id, const struct site *sites, const struct store_attempt *row,
               struct site_launch *out, struct err *e)
{
    g->id = id;
    g->went = true;
    *out = (struct site_launch){ &gang_row, g };
    for (size_t k = 0; k < g->n; k++) {
        struct part *p = &g->v[k];
        struct store_attempt one = attempt_row(p);
        one.log_offset = k == g->tells ? row->log_offset : 0;
        int rc = sites[k].row ? sites[k].row->adopt(sites[k].own, p->id, &one, p->m.dir, &p->at, e) : -ESRCH;
        if (rc < 0 && rc != -ESRCH)
            return rc;
        p->ready = true;
        p->gone = rc < 0;
        if (!p->at.row)
            p->at = (struct site_launch){ sites[k].row, NULL };
    }
    return 0;
}
