#include "live/driver_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/tuning.h"

enum {
    SOON_MS = 300,   /* something waits, and the newest view is of before the last change */
    WAITS_MS = 1000, /* something waits */
    IDLE_MS = 10000,
    END_MS = 5000, /* what has ended here is over there, too, by then */
};

/* --- what was asked of it --------------------------------------------------------------------------------------------------- */

/* Parts that were launched by an earlier driver are reckoned as they would be now. */
static struct layout_ask ask_of(const struct driver *d, const struct setting *set, int slots, int parts)
{
    const struct plan *p = d->study->plan;
    struct layout_ask ask = setting_ask(&p->space, set, &p->offer, slots);
    if (parts > 0) {
        ask.parts = parts;
        ask.cores = slots / parts;
    }
    return ask;
}

static struct cluster_launch launch_of(const struct driver *d, const struct slot *s)
{
    const struct study_trial *t = s->a.trial;
    struct setting set = study_setting(d->study, t);
    return (struct cluster_launch){ .key = { s->a.row.launch, s->a.row.app_id },
                                    .ask = ask_of(d, &set, t->row.slots, t->parts),
                                    .granted = s->a.fold.granted || s->a.fold.iteration > 0 };
}

static struct cluster_launch session_of(const struct driver *d, const struct warm *w)
{
    const struct plan *p = d->study->plan;
    struct tuner_setting at = { 0, w->cold < 0 ? p->choices.start.cold : w->cold };
    struct setting set = choices_setting(&p->choices, &p->space, at);
    const char *id = w->fold.app_id[0] ? w->fold.app_id : NULL;
    return (struct cluster_launch){ .key = { w->tag, id },
                                    .ask = ask_of(d, &set, w->slots, w->parts),
                                    .granted = w->ready || w->ending };
}

/* One that could go at once. */
static bool is_idle(const struct warm *w)
{
    return w->ready && w->trial == 0 && !w->ending;
}

/* All that runs there for this study but for `without`, and the session that it waits for. Free it; NULL: memory. */
static struct cluster_launch *launches_of(const struct driver *d, const struct slot *without, size_t *out_n)
{
    struct cluster_launch *list = calloc(d->n + pool_count(d->pool) + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < d->n; i++) {
        const struct slot *s = d->slots[i];
        if (s != without && !s->warm && s->a.row.launch)
            list[n++] = launch_of(d, s);
    }
    for (size_t i = 0; list && i < pool_count(d->pool); i++) {
        const struct warm *w = pool_at(d->pool, i);
        if (w->tag && (!without || without->warm != w->id))
            list[n++] = session_of(d, w);
    }
    *out_n = n;
    return list;
}

/* --- what is free ------------------------------------------------------------------------------------------------------------- */

/* What one that ends gives back. */
static void add_session(const struct driver *d, const struct warm *w, struct layout_room *r)
{
    struct layout_ask ask = session_of(d, w).ask;
    for (int k = 0; k < ask.parts; k++)
        layout_add(r, (struct layout_worker){ 1, ask.cores, layout_takes_gb(&r->takes, ask.memory_gb) });
}

/* Those that serve nobody are ended for what wants their room. How many there are. */
static size_t add_idle(const struct driver *d, struct layout_room *r)
{
    size_t n = 0;
    for (size_t i = 0; i < pool_count(d->pool); i++) {
        if (!is_idle(pool_at(d->pool, i)))
            continue;
        add_session(d, pool_at(d->pool, i), r);
        n++;
    }
    return n;
}

/* What nobody has. False: it does not say. */
static bool room_now(const struct driver *d, const struct slot *without, struct layout_room *out)
{
    int64_t asked_ms;
    size_t n;
    const struct cluster_view *v = cluster_now(d->cluster, &asked_ms);
    AUTO_FREE struct cluster_launch *l = v ? launches_of(d, without, &n) : NULL;
    const struct layout_room *all = &d->study->plan->offer.room;
    if (!v || !l)
        return false;
    cluster_room(v, l, n, false, out);
    memcpy(out->refused, all->refused, sizeof out->refused);
    out->n_refused = all->n_refused;
    return true;
}

static bool has_room(const struct layout_room *r, const struct layout_ask *ask)
{
    return layout_divide(r, ask->parts * ask->cores, ask->parts, 0, ask->memory_gb) > 0;
}

/* While `all` is kept the plan offers what is free; where the cluster has ceased to say, what those have that serve nobody. */
static bool offer_now(struct driver *d, struct layout_room *all)
{
    struct layout_room now;
    if (!d->cluster || cluster_is_mute(d->cluster))
        return false;
    bool says = room_now(d, NULL, &now);
    if (!says)
        now = (struct layout_room){ .takes = d->study->plan->offer.room.takes, .full = true };
    if (add_idle(d, &now) == 0 && !says)
        return false;
    *all = d->study->plan->offer.room;
    d->study->plan->offer.room = now;
    return true;
}

static void offer_all(struct driver *d, const struct layout_room *all)
{
    d->study->plan->offer.room = *all;
}

/* --- placing ------------------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const struct driver *d)
{
    const struct sched *s = &d->study->sched;
    return !s->stopping && !s->closed && (sched_waiting(s) > 0 || study_unasked(d->study) > 0);
}

/* A cluster that has ceased to answer starts nothing, but what it granted to a session that serves nobody is there. */
static bool serves_unasked(struct driver *d, const struct study_trial *t)
{
    const struct plan *p = d->study->plan;
    struct layout_room all;
    struct err why;
    if (p->choices.n_cold > 1 || !offer_now(d, &all)) /* which one it will be is not known yet */
        return false;
    int slots = study_slots(d->study, t, &why);
    offer_all(d, &all);
    const struct warm *w =
        slots > 0 ? pool_idle(d->pool, 0, slots, p->choices.start.cold, plan_batch(p, &t->point)) : NULL;
    return w && w->slots == slots;
}

bool driver_fits_cluster(struct driver *d, const struct study_trial *t)
{
    struct layout_room all;
    struct err why;
    int64_t asked_ms;
    if (d->cluster_most > 0 && d->n >= d->cluster_most)
        return false;
    if (t && study_slots(d->study, t, &why) < 0)
        return true; /* not to be had at all: it is given up */
    if (cluster_is_mute(
            d->cluster)) /* one that never spoke is tried with a trial at a time, or as many as the user said */
        return d->n == 0 || d->study->plan->cfg.parallel != CONFIG_PARALLEL_AUTO;
    t = t ? t : d->n ? d->slots[0]->a.trial : NULL; /* any: like those that run */
    if (!cluster_now(d->cluster, &asked_ms))
        return t && serves_unasked(d, t);
    if (!t || !offer_now(d, &all))
        return d->n == 0;
    bool fits = study_slots(d->study, t, &why) > 0;
    offer_all(d, &all);
    return fits;
}

/* As many cores as are right for it, where that is known: what it does not need is others'. */
static void right_size(struct driver *d, struct study_trial *t)
{
    const struct plan *p = d->study->plan;
    double cores = tuning_cores(d->study->tuning, t->setting), batch = plan_batch(p, &t->point);
    int before = t->row.slots;
    if (t->alone || !(cores >= 1) || cores >= before || (!isnan(batch) && fmod(batch, cores) != 0))
        return;
    t->row.slots = (int)cores;
    struct setting set = study_setting(d->study, t);
    if (setting_parts(&p->space, &set, &p->offer, t->row.slots) < 1)
        t->row.slots = before;
}

/* Its cores are its own wherever they are, so that it may probe beside others. */
int driver_choose_in_cluster(struct driver *d, struct study_trial *t)
{
    struct layout_room all;
    struct study *s = d->study;
    bool now = offer_now(d, &all);
    int rc = 0;
    if (s->tuning) {
        t->row.slots = study_slots(s, t, d->e);
        rc = tuning_ask(s->tuning, t, t->row.slots, d->n == 0 || !tuning_knows(s->tuning, t), d->e);
        if (rc == 0)
            right_size(d, t);
    }
    struct setting set = study_setting(s, t);
    t->parts = setting_parts(&s->plan->space, &set, &s->plan->offer, t->row.slots);
    if (now)
        offer_all(d, &all);
    return rc;
}

/* Nothing runs, and what is next finds no room: others have it. Told once. */
bool driver_awaits_cluster(struct driver *d)
{
    int64_t asked_ms;
    char text[CLUSTER_WHY_MAX + 64], is_free[CLUSTER_WHY_MAX];
    const struct cluster_view *v = d->cluster ? cluster_now(d->cluster, &asked_ms) : NULL;
    bool waits = sched_waiting(&d->study->sched) > 0 || (d->cluster && !driver_fits_cluster(d, NULL));
    if (!d->cluster || d->n > 0 || !is_wanted(d) || !waits)
        return false;
    if (v && !d->told_no_room) {
        cluster_put_free(v, is_free);
        (void)snprintf(text, sizeof text, "waits for room on the cluster: %s", is_free);
        driver_note(d, NULL, text);
        d->told_no_room = true;
    }
    return true;
}

/* --- sessions that serve nobody ----------------------------------------------------------------------------------------------- */

bool driver_is_short(const struct driver *d)
{
    int64_t asked_ms;
    const struct sched *s = &d->study->sched;
    bool most = d->cluster_most > 0 && d->n >= d->cluster_most, all = sched_running(s) >= (size_t)s->parallel;
    return d->cluster && !most && !all && is_wanted(d) && sched_waiting(s) > 0 && cluster_now(d->cluster, &asked_ms);
}

void driver_make_cluster_room(struct driver *d, const struct study_trial *t)
{
    struct layout_room now;
    struct setting set = study_setting(d->study, t);
    struct layout_ask ask = ask_of(d, &set, t->row.slots, t->parts);
    bool says = room_now(d, NULL, &now);
    for (size_t i = 0; i < pool_count(d->pool); i++) {
        struct warm *w = pool_at(d->pool, i);
        if (!is_idle(w) || (says && has_room(&now, &ask)))
            continue;
        if (says)
            add_session(d, w, &now);
        pool_end(d->pool, w, false);
    }
}

void driver_tick_idle(struct driver *d, int64_t now_ms)
{
    enum { LEAST_MS = 5000 };
    for (size_t i = 0; d->cluster && i < pool_count(d->pool); i++) {
        struct warm *w = pool_at(d->pool, i);
        int64_t patience_ms = w->start_ms > LEAST_MS ? w->start_ms : LEAST_MS;
        if (is_idle(w) && now_ms - w->idle_ms > patience_ms)
            pool_end(d->pool, w, false);
    }
}

/* --- what is not granted ------------------------------------------------------------------------------------------------------ */

bool driver_is_crowded_out(struct driver *d, const struct slot *s, char why[CLUSTER_WHY_MAX])
{
    int64_t asked_ms;
    struct layout_room now;
    const struct cluster_view *v = d->cluster ? cluster_now(d->cluster, &asked_ms) : NULL;
    const struct warm *w = driver_warm_of(d, s);
    struct cluster_launch l = w ? session_of(d, w) : launch_of(d, s);
    why[0] = '\0';
    if (!v || !l.key.tag)
        return false;
    cluster_why(v, &l, why);
    const struct cluster_app *a = cluster_app_of(v, l.key.tag);
    bool waits = a && a->state == CLUSTER_WAITS;
    if (!room_now(d, s, &now))
        return true;
    (void)add_idle(d, &now);
    if (!has_room(&now, &l.ask))
        return true;
    if (waits && d->n > 1 && (d->cluster_most == 0 || d->cluster_most >= d->n)) {
        d->cluster_most = d->n - 1; /* it starts no more of them, however much is free */
        return true;
    }
    return false;
}

/* --- its life ------------------------------------------------------------------------------------------------------------------- */

/* Parts that were killed for want of memory: what a view shows of a launch may become less, as its parts are forgotten there. */
static void look_for_kills(struct driver *d)
{
    int64_t asked_ms;
    const struct cluster_view *v = cluster_now(d->cluster, &asked_ms);
    for (size_t i = 0; v && i < d->n; i++) {
        struct attempt *a = &d->slots[i]->a;
        const struct cluster_app *app = a->row.launch ? cluster_app_of(v, a->row.launch) : NULL;
        if (app && app->kills > a->starved)
            a->starved = app->kills;
    }
}

static void on_seen(void *ctx)
{
    look_for_kills(ctx);
    driver_schedule(ctx);
}

static void on_note(void *ctx, const char *text)
{
    driver_note(ctx, NULL, text);
}

int driver_set_up_cluster(struct driver *d)
{
    static const struct cluster_ops ops = { on_seen, on_note };
    struct cluster_at *at = &d->study->plan->cluster;
    int rc = at->row ? cluster_open(&d->cluster, &d->loop, at, &ops, d, d->e) : 0;
    driver_tick_cluster(d);
    return rc;
}

/* After it ended, or has been given back: what of it is left there is ended. */
void driver_leave_cluster(struct driver *d, const char *tag, const char *id)
{
    const struct cluster_key key = { tag, id };
    if (d->cluster && tag)
        (void)cluster_end(d->cluster, &key, END_MS); /* without memory it is left to the cluster */
}

/* Something of ours waits for room: to be started, or to be granted what it asked for. */
static bool is_waited_for(const struct driver *d, const struct cluster_launch *l, size_t n)
{
    bool any = is_wanted(d);
    for (size_t i = 0; i < n; i++)
        any |= !l[i].granted;
    return any;
}

void driver_tick_cluster(struct driver *d)
{
    if (!d->cluster || d->rc < 0)
        return;
    int64_t asked_ms = 0;
    size_t n;
    AUTO_FREE struct cluster_launch *l = launches_of(d, NULL, &n);
    AUTO_FREE struct cluster_key *keys = calloc(n + 1, sizeof *keys);
    if (!l || !keys)
        return; /* at the next tick */
    for (size_t i = 0; i < n; i++)
        keys[i] = l[i].key;
    bool changed = cluster_now(d->cluster, &asked_ms) && asked_ms < d->turned_ms;
    cluster_tick(d->cluster, keys, n, !is_waited_for(d, l, n) ? IDLE_MS : changed ? SOON_MS : WAITS_MS);
}
