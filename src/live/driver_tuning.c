#include "live/driver_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/actuate.h"
#include "live/energy.h"
#include "live/profiles.h"
#include "live/publish.h"
#include "live/tuning.h"
#include "live/writer.h"

enum {
    FIND_MS = 500, /* between two tries to narrow what has no process yet */
    FIND_TRIES = 60,
};

/* Heaps and a quarter more fit the machine: that much a JVM takes beside its heap. */
static const double HEAP_SHARE = 1.25;

/* CPUs that a trial could have beside those that run. */
int driver_room_for(struct driver *d, int number)
{
    int room = d->actuate ? actuate_room(d->actuate, number) : 0;
    return room > 0 ? room : d->study->plan->offer.cores > 0 ? d->study->plan->offer.cores : INT_MAX;
}

/* Nothing could be kept for those that were started, or met again, before the helper said which CPUs there are. */
static void keep_cpus(struct driver *d)
{
    for (size_t i = 0; d->rc == 0 && d->packs && i < d->n; i++) {
        const struct study_trial *t = d->slots[i]->a.trial;
        struct tuner_setting to = t->setting;
        (void)tuning_current(d->study->tuning, t->row.number, &to);
        double cores = tuning_cores(d->study->tuning, to);
        int rc = actuate_reserve(d->actuate, t->row.number, isnan(cores) ? t->row.slots : (int)cores, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
}

/* Tasks that take turns on a CPU cost more than one does, but two for each could not be told from one. So many a trial is launched with
 * beside others: it can be widened when it is left alone. */
static int packed_slots(double cores, double batch, int slots)
{
    for (double n = 2 * cores; n >= cores; n -= cores)
        if (n <= slots && (isnan(batch) || fmod(batch, n) == 0))
            return (int)n;
    return slots;
}

static void right_size(struct driver *d, struct study_trial *t)
{
    double cores = tuning_cores(d->study->tuning, t->setting);
    if (d->packs && d->n > 0 && cores >= 1)
        t->row.slots = packed_slots(cores, space_batch(&d->study->plan->space, &t->point), t->row.slots);
}

int driver_choose(struct driver *d, struct study_trial *t)
{
    t->row.slots = study_slots(d->study, t, d->e); /* an earlier launch may have had fewer */
    int rc = tuning_ask(d->study->tuning, t, driver_room_for(d, t->row.number), d->n == 0, d->e);
    if (rc == 0)
        right_size(d, t);
    return rc;
}

/* One that was launched beside others and begins to train when they are gone has heard of its launch's room alone. */
void driver_tell_room(struct driver *d)
{
    for (size_t i = 0; d->rc == 0 && d->actuate && i < d->n; i++) {
        int number = d->slots[i]->a.trial->row.number, room = actuate_room(d->actuate, number);
        int rc = room > 0 ? tuning_room(d->study->tuning, number, room, d->n == 1, d->e) : 0;
        if (rc < 0)
            driver_fail(d, rc);
    }
}

/* What runs beside each other has changed: nobody's windows hold any more, and what each may have is told anew. */
void driver_neighbours_changed(struct driver *d)
{
    keep_cpus(d);
    for (size_t i = 0; d->rc == 0 && i < d->n; i++) {
        int rc = tuning_break(d->study->tuning, d->slots[i]->a.trial->row.number, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
    driver_tell_room(d);
}

/* GiB that a trial's JVM may come to hold. */
static double heap_gb(const struct driver *d, const struct study_trial *t)
{
    struct setting set = study_setting(d->study, t);
    const struct plan *p = d->study->plan;
    return setting_number(&p->space, &set, KNOB_MEMORY, app_memory_gb(p->app.driver_memory));
}

static bool heaps_fit(const struct driver *d, const struct study_trial *one_more)
{
    double all = heap_gb(d, one_more), there = d->study->plan->offer.memory_gb;
    for (size_t i = 0; i < d->n; i++)
        all += heap_gb(d, d->slots[i]->a.trial);
    return !(there > 0) || all * HEAP_SHARE <= there;
}

/* Beside those that run: all of them have settled, so that their right size is known; CPUs and memory are left; and so much is
 * known of this one that it need not probe alone. */
bool driver_fits(void *ctx, int number)
{
    struct driver *d = ctx;
    const struct study_trial *t = study_trial(d->study, number);
    if (d->n == 0 || !d->packs)
        return true;
    for (size_t i = 0; i < d->n; i++) {
        const struct slot *s = d->slots[i];
        bool may_probe = s->a.trial->alone; /* one that was packed from the start does not, and has its size */
        if (may_probe && (!s->a.running || !tuning_settled(d->study->tuning, s->a.trial->row.number)))
            return false;
    }
    keep_cpus(d);
    return actuate_room(d->actuate, number) > 0 && tuning_knows(d->study->tuning, t) && heaps_fit(d, t);
}

/* The fewest CPUs that a trial can be given; NAN: nothing is chosen. */
static double least_cores(const struct driver *d)
{
    struct tuner_setting least = { 0, d->study->plan->choices.start.cold };
    return d->study->tuning ? tuning_cores(d->study->tuning, least) : NAN;
}

/* Do as many wait as could run beside one of ours? */
static bool enough_wait(const struct driver *d)
{
    uint64_t waiting = sched_waiting(&d->study->sched) + study_unasked(d->study);
    return waiting > 0 && (double)waiting >= d->study->plan->offer.cores / least_cores(d) - 1;
}

/* While fewer wait, seconds count instead of core-seconds. */
void driver_tell_load(struct driver *d)
{
    if (!d->packs || !(least_cores(d) > 0))
        return;
    int rc = tuning_load(d->study->tuning, enough_wait(d) ? 1 : 0, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

/* As many CPUs are the least a trial can be given, there is but one memory, and others wait: then what is packed beside the first
 * trial is known before that has settled. */
bool driver_knows_next(const struct driver *d, const struct study_trial *first, struct study_trial *out)
{
    const struct choices *c = &d->study->plan->choices;
    double least = least_cores(d);
    if (!d->packs || d->n != 1 || c->n_cold != 1 || !(least >= 1 && least < first->row.slots) || !enough_wait(d) ||
        !heaps_fit(d, first))
        return false;
    *out = *first;
    out->row.number = 0;
    out->row.slots = packed_slots(least, space_batch(&d->study->plan->space, &first->point), first->row.slots);
    out->setting.hot = 0;
    return true;
}

const char *driver_tag(const struct driver *d, const struct slot *s)
{
    const struct warm *w = driver_warm_of(d, s);
    return s->a.row.launch ? s->a.row.launch : w ? w->tag : NULL;
}

static void apply(struct driver *d, struct slot *s, struct tuner_setting to)
{
    const struct store_trial *t = &s->a.trial->row;
    const char *tag = driver_tag(d, s);
    bool narrows = d->narrows || (d->study->tuning && d->actuate && actuate_is_divided(d->actuate));
    int rc = narrows && tag ? actuate_apply(d->actuate, t->number, tag, t->slots, to, d->e) : 0;
    if (rc < 0)
        driver_fail(d, rc);
}

/* The setting of its launch, which the policy takes to be in force from the first step on. */
void driver_narrow(struct driver *d, struct slot *s)
{
    struct tuner_setting to = s->a.trial->setting;
    (void)tuning_current(d->study->tuning, s->a.trial->row.number, &to);
    s->narrow_ms = 0;
    apply(d, s, to);
}

static void on_apply(void *ctx, int trial, struct tuner_setting to)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    if (!s)
        return;
    s->narrow_ms = 0; /* a newer one is under way */
    apply(d, s, to);
}

/* Those that are gone meanwhile were stored at their end. */
static int put_cores(void *ctx, struct store *store, struct err *e)
{
    struct driver *d = ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct slot *s = d->slots[i];
        rc = s->new_cores && s->a.running ? store_attempt_update(store, &s->a.row, e) : 0;
        s->new_cores = false;
    }
    return rc;
}

static void on_cores_stored(void *ctx, int rc, const struct err *e)
{
    struct driver *d = ctx;
    if (rc < 0)
        driver_fail(d, err_set(d->e, rc, "%s", e->text));
}

/* Stored at once: who looks at the study is told what is in force, and not what was at the end of an epoch. */
static int keep_cores(struct driver *d, struct slot *s, int cores)
{
    bool news = s->a.row.cores != cores;
    const struct write one = { .rows = put_cores, .done = on_cores_stored, .ctx = d };
    s->a.row.cores = s->a.trial->cores = cores;
    s->new_cores |= news;
    int rc = news && s->a.running ? writer_put(d->study->writer, d->study->store, one, d->e) : 0;
    if (rc < 0)
        driver_fail(d, rc);
    return rc;
}

static void on_applied(void *ctx, int trial, struct tuner_setting to, int cores, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    if (!s)
        return;
    driver_look_shared(d, s);
    if (cores == 0 && !why && s->narrow_tries++ < FIND_TRIES) {
        s->narrow_ms = clock_ms() + FIND_MS;
        return;
    }
    if (cores > 0 && keep_cores(d, s, cores) < 0)
        return;
    const char *fault = why ? why : cores == 0 ? "none of its processes was found" : NULL;
    if (fault)
        driver_note(d, &s->a.trial->row, fault);
    if (cores > 0) {
        AUTO_FREE char *text = tuning_setting_text(d->study->tuning, to);
        profiles_setting(d->study->profiles, trial, tuning_in_force(d->study->tuning, to, cores));
        publish_setting(d->study->publish, trial, text, cores);
    }
    int rc = tuning_applied(d->study->tuning, trial, to, cores, cores == 0 ? fault : NULL, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

static void on_changed(void *ctx, const char *tag, int cores)
{
    struct driver *d = ctx;
    for (size_t i = 0; i < d->n; i++) {
        struct slot *s = d->slots[i];
        if (!s->a.row.launch || strcmp(s->a.row.launch, tag) != 0)
            continue;
        driver_look_shared(d, s);
        if (cores > 0 && keep_cores(d, s, cores) < 0)
            return;
        int rc = tuning_break(d->study->tuning, s->a.trial->row.number, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
}

static void on_actuate_note(void *ctx, const char *text)
{
    driver_note(ctx, NULL, text);
}

static void on_relaunch(void *ctx, int trial)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    if (s && s->a.running && s->a.kill_ms == 0)
        driver_end_attempt(s, STOP_RELAUNCH, false);
}

static void on_settled(void *ctx, int trial, struct tuner_setting at, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    double cores = tuning_cores(d->study->tuning, at);
    char text[256];
    if (!s || !(cores > 0) || d->study->plan->choices.n_hot < 2)
        return;
    (void)snprintf(text, sizeof text, "goes on with %g CPU%s: %s", cores, cores == 1 ? "" : "s", why);
    driver_note(d, &s->a.trial->row, text);
}

/* What the policy needs: its machine, helpers that narrow, sessions that are shared. */
int driver_set_up_tuning(struct driver *d)
{
    static const struct tuning_ops tuning = { on_apply, on_relaunch, on_settled };
    static const struct actuate_ops actuate = { on_applied, on_changed, driver_on_sampled, driver_on_metered,
                                                on_actuate_note };
    static const struct pool_ops pool = { driver_on_hello, driver_on_done, driver_on_warm_gone };
    struct study *s = d->study;
    const struct plan *p = s->plan;
    int rc = tuning_open(&s->tuning, s, &tuning, d, d->e);
    d->packs = p->policy->shares && app_is_local(&p->app) && s->sched.parallel > 1;
    d->narrows = p->policy->wide && (p->choices.n_hot > 1 || d->packs);
    if (rc == 0)
        rc = driver_set_up_samples(d);
    if (rc == 0 && (d->narrows || d->measures || s->energy || app_is_local(&p->app)))
        rc = actuate_open(&d->actuate, s, &d->loop, &actuate, d, d->e);
    if (rc == 0 && s->energy)
        rc = actuate_meter(d->actuate, energy_wanted(s->energy), d->e);
    if (rc == 0 && p->policy->shares && p->app.session)
        rc = pool_open(&d->pool, s, &d->loop, &pool, d, d->e);
    return rc;
}
