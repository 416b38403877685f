#include "live/driver_state.h"
#include "live/hosts.h"
#include "live/nodes.h"
#include "live/resizer.h"
#include "live/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"

enum { SESSION_STARTS = 3 };

bool driver_is_warm(const struct driver *d, size_t place)
{
    for (size_t i = 0; i < pool_count(d->pool); i++) {
        const struct warm *w = pool_at(d->pool, i);
        if (w->place == place && w->ready && w->trial == 0 && !w->ending)
            return true;
    }
    return false;
}

int driver_open_pool(struct driver *d)
{
    static const struct pool_ops ops = { driver_on_hello, driver_on_told, driver_on_done, driver_on_warm_gone };
    d->serves = calloc(d->study->plan->n_nodes + 1, sizeof *d->serves);
    return d->serves ? pool_open(&d->pool, d->study, &d->loop, d->hosts, &ops, d, d->e)
                     : err_sys(d->e, -ENOMEM, "study '%s'", d->study->name);
}

bool driver_serves(const struct driver *d, size_t place)
{
    return d->pool && !d->serves[place].none && (place == 0 || hosts_serves(d->hosts, place));
}

struct warm *driver_warm_of(const struct driver *d, const struct slot *s)
{
    for (size_t i = 0; s->warm && i < pool_count(d->pool); i++)
        if (pool_at(d->pool, i)->id == s->warm)
            return pool_at(d->pool, i);
    return NULL;
}

/* Its session has said hello: it gets the trial when the launch is stored. Elsewhere there is to be a folder for it
 * first, with what it goes on from: `ready` comes then. */
static int begin_run(struct driver *d, struct slot *s, const struct warm *w)
{
    AUTO_ORDER struct site_order order = { 0 };
    struct study_trial *t = s->a.trial;
    const struct site site = driver_site(d, w->place);
    attempt_done(&s->a);
    int rc = attempt_prepare_run(&s->a, d->study, t, w, &site, &order, d->e);
    driver_own(d, &s->a);
    if (w->place > 0)
        return rc < 0 ? rc : site.row->start(site.own, s->a.id, &order, &s->a.at, d->e);
    struct launcher_ready at = attempt_session_ready(&s->a, w);
    if (rc == 0)
        rc = attempt_ready(&s->a, &at, d->e);
    if (rc == 0)
        driver_store_launch(d, s);
    return rc;
}

/* Where it cannot be told, the session ends, and the attempt with it: another one finds what there is to go on from. */
static void send_run(struct driver *d, struct slot *s, struct warm *w)
{
    AUTO_JSON json_t *hyper = NULL;
    struct session_run run;
    const struct site site = driver_site(d, w->place);
    if (attempt_run(&s->a, &site, &hyper, &run) == 0)
        (void)pool_run(d->pool, w, &run);
    else
        pool_end(d->pool, w, false);
}

void driver_send_run(struct driver *d, struct slot *s)
{
    struct warm *w = driver_warm_of(d, s);
    if (w)
        send_run(d, s, w);
    failpoint("run-sent");
    driver_has_begun(d, s);
}

/* Those that serve nobody hold memory that others need, and a session's end takes time, too. */
static void end_idle_at(struct driver *d, size_t place)
{
    for (size_t i = 0; i < pool_count(d->pool); i++) {
        struct warm *w = pool_at(d->pool, i);
        if (w->place == place && w->ready && w->trial == 0 && !w->ending)
            pool_end(d->pool, w, false);
    }
}

void driver_end_idle_sessions(struct driver *d)
{
    for (size_t i = 0; i <= d->study->plan->n_nodes; i++)
        end_idle_at(d, i);
}

/* What a session's end or start is told with: " on host 'w1'", "" here. */
static const char *put_where(const struct driver *d, size_t place, char text[160])
{
    text[0] = '\0';
    if (place)
        (void)snprintf(text, 160, " on host '%s'", hosts_name(d->hosts, place));
    return text;
}

static void do_without(struct driver *d, size_t place, const char *why)
{
    char text[700], where[160];
    d->serves[place].none = true;
    (void)snprintf(text, sizeof text, "a warm session could not be had%s (%s): trials are submitted one by one",
                   put_where(d, place, where), why);
    driver_note(d, NULL, text);
}

/* A session ended before it could serve. What stood in its way (a port, memory, a node) may be gone a moment later; but not for ever,
 * and one that says nothing takes its whole time. */
static void start_failed(struct driver *d, const struct warm *w, const char *why)
{
    char text[512], said[256];
    pool_last_words(w, said);
    (void)snprintf(text, sizeof text, "%s, see %s/log", *said ? said : why, w->dir);
    d->serves[w->place].failed += w->ending ? 2 : 1;
    if (d->serves[w->place].failed >= SESSION_STARTS) {
        do_without(d, w->place, text);
        return;
    }
    char note[840], where[160];
    (void)snprintf(note, sizeof note, "a warm session ended while starting%s (%s): another is started",
                   put_where(d, w->place, where), text);
    driver_note(d, NULL, note);
}

/* A session's start-up takes as long as an epoch: beside the first trial's own it costs the study nothing. It waits for whatever
 * is packed beside that trial later; `like` borrows of it. Where there are other hosts what is next goes there. */
static int start_ahead(struct driver *d, const struct study_trial *first)
{
    struct study_trial like;
    struct warm *w = NULL;
    if (d->hosts || pool_count(d->pool) != 1 || first->cpus || !driver_knows_next(d, first, &like))
        return 0;
    int rc = pool_start(d->pool, &like, &w, d->e);
    return rc == -ENOMEM ? rc : 0; /* it is tried again when it is needed, and told then */
}

/* Keeps it for the trial; the run is sent when it has said hello. */
static void wait_for_hello(struct driver *d, struct slot *s, struct warm *w)
{
    w->trial = s->a.trial->row.number;
    s->a.trial->row.slots = w->slots;
    s->warm = w->id;
    s->narrow_ms = d->packs ? s->started_ms + NARROW_MS : 0; /* its start is not to disturb who runs beside it */
}

/* In a warm session: an idle one, or a new one that has yet to say hello; where none can be started, by itself. */
int driver_start_in_session(struct driver *d, struct slot *s, struct study_trial *t)
{
    double batch = plan_batch(d->study->plan, &t->point);
    struct warm *w = pool_idle(d->pool, t->place, t->row.slots, t->setting.cold, batch);
    if (w && d->cluster && w->slots != t->row.slots) /* it would keep from others what this one does not need */
        w = NULL;
    s->a = (struct attempt){ .study = d->study, .trial = t, .heard_fd = -1 };
    driver_own(d, &s->a);
    s->started_ms = clock_ms();
    if (!w && (w = pool_coming(d->pool, t->place, t->row.slots, t->setting.cold))) {
        wait_for_hello(d, s, w);
        return 0;
    }
    if (!w) { /* those that are idle were launched with what is not asked for now */
        if (d->cluster)
            driver_make_cluster_room(d, t);
        else
            end_idle_at(d, t->place);
        int rc = pool_start(d->pool, t, &w, d->e);
        failpoint("session-spawned");
        if (rc < 0 && rc != -ENOMEM) {
            do_without(d, t->place, d->e->text);
            return driver_start_launcher(d, s, t);
        }
        if (rc < 0)
            return rc;
        wait_for_hello(d, s, w);
        return start_ahead(d, t);
    }
    w->trial = t->row.number;
    t->row.slots = w->slots;
    s->warm = w->id;
    return begin_run(d, s, w);
}

void driver_on_hello(void *ctx, struct warm *w)
{
    struct driver *d = ctx;
    struct slot *s = w->trial ? driver_slot_of_trial(d, w->trial) : NULL;
    d->serves[w->place].failed = 0;
    if (!s && d->serves[w->place].none)
        pool_end(d->pool, w, false);
    if (!s)
        return;
    if (s->stores != STORES_NOTHING ||
        (!s->a.running && s->a.at.own)) /* it gets the run when that is stored, or has ended */
        return;
    if (!s->a.running) {
        int rc = d->rc < 0 ? 0 : begin_run(d, s, w);
        if (rc < 0)
            driver_fail(d, rc);
        return;
    }
    /* Met again. Whether it never got the run, is busy with it, or is done: to be sent it again is right. */
    s->a.end_said = false; /* to be said again */
    send_run(d, s, w);
}

/* The attempt of this run; NULL: it is none's, or over. */
static struct slot *slot_of_run(struct driver *d, const struct warm *w, const char *id)
{
    struct slot *s = w->trial ? driver_slot_of_trial(d, w->trial) : NULL;
    return s && s->a.run_id && strcmp(s->a.run_id, id) == 0 ? s : NULL;
}

void driver_on_told(void *ctx, struct warm *w, const struct session_message *m)
{
    struct driver *d = ctx;
    struct slot *s = d->rc < 0 ? NULL : slot_of_run(d, w, m->id);
    int rc = s && s->a.running ? attempt_figures_said(&s->a, m, d->e) : 0;
    if (rc < 0)
        driver_fail(d, rc);
}

void driver_on_done(void *ctx, struct warm *w, const struct session_message *m)
{
    struct driver *d = ctx;
    struct slot *s = slot_of_run(d, w, m->id);
    if (s)
        attempt_done_said(&s->a, m);
}

/* Others have the room that its session was to have: it has cost nothing, and is placed again. */
static bool is_crowded_out(struct driver *d, const struct slot *s)
{
    char why[CLUSTER_WHY_MAX], text[CLUSTER_WHY_MAX + 64];
    if (!driver_is_crowded_out(d, s, why))
        return false;
    (void)snprintf(text, sizeof text, "its session had no room: %s; it is placed again", why);
    driver_note(d, &s->a.trial->row, text);
    aims_not_launched(d->study);
    return true;
}

/* Its host did not take it, or is lost: what it was kept for is placed again. */
static void place_again(struct driver *d, struct slot *s, const char *why)
{
    driver_note(d, &s->a.trial->row, why);
    s->a.trial->shuns = s->a.trial->place + 1;
    aims_not_launched(d->study);
    driver_give_back(d, s);
}

void driver_on_warm_gone(void *ctx, struct warm *w, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = w->trial ? driver_slot_of_trial(d, w->trial) : NULL;
    bool served = s && (s->a.running || s->stores == STORES_LAUNCH);
    d->gone_warm = true; /* it is in the pool until this returns */
    if (w->tag) {
        nodes_release(d->nodes, w->tag);
        resizer_release(d->resizer, w->tag);
        driver_leave_cluster(d, w->tag, w->fold.app_id[0] ? w->fold.app_id : NULL);
    }
    s = s && s->warm == w->id ? s : NULL;
    if (s && s->a.at.own) { /* its place tells of it, when all of it has come */
        s->a.told_to_end = w->ending;
        s->warm = 0;
        return;
    }
    if (s && w->unplaced && d->rc == 0) {
        s->warm = 0;
        place_again(d, s, why);
        return;
    }
    bool crowded_out = s && w->not_granted && d->rc == 0 && is_crowded_out(d, s);
    if (s)
        s->warm = 0;
    if (served && s) {
        s->a.told_to_end = w->ending;
        attempt_signal(&s->a, true);
        driver_settle(d, s);
        return;
    }
    if (s && crowded_out) {
        driver_give_back(d, s);
        return;
    }
    if (s && w->not_granted && d->rc == 0) {
        driver_store_refusal(d, s, w);
        return;
    }
    if (s && d->interrupts == 0)
        start_failed(d, w, why);
    if (s)
        driver_give_back(d, s);
}

void driver_settle_served(struct driver *d, int64_t now)
{
    for (size_t i = d->n; i-- > 0 && d->rc == 0;) {
        if (i >= d->n || !d->slots[i]->a.running || !d->slots[i]->a.run_id)
            continue;
        int rc = attempt_see_last(&d->slots[i]->a, d->e);
        if (rc < 0)
            driver_fail(d, rc);
        else if (attempt_is_served(&d->slots[i]->a, now))
            driver_settle(d, d->slots[i]);
    }
}

/* Nothing is left to start: the sessions end, and the loop with the last of them. */
void driver_end_sessions(struct driver *d)
{
    for (size_t i = 0; i < pool_count(d->pool); i++)
        if (!pool_at(d->pool, i)->ending)
            pool_end(d->pool, pool_at(d->pool, i), false);
    if (pool_count(d->pool) == 0)
        uv_stop(&d->loop);
}
