#include "live/driver_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "live/hosts.h"
#include "live/places.h"
#include "live/tuning.h"

/* CPUs that a trial could have beside those that run. */
int driver_room_for(struct driver *d, int number)
{
    int room = places_room(d->places, number), all = places_cpus(d->places, number);
    return room > 0 ? room : all > 0 ? all : INT_MAX;
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
    if (d->packs && driver_beside(d, t->place) > 0 && cores >= 1)
        t->row.slots = packed_slots(cores, plan_batch(d->study->plan, &t->point), t->row.slots);
}

/* As many as its job is given. */
static void take_slots(struct driver *d, struct study_trial *t)
{
    struct setting set = study_setting(d->study, t);
    int slots = plan_slots(d->study->plan, &t->point, &set, NULL);
    t->row.slots = slots > 0 ? slots : t->row.slots;
}

int driver_choose(struct driver *d, struct study_trial *t)
{
    t->row.slots = study_slots(d->study, t, d->e); /* an earlier launch may have had fewer */
    int rc = tuning_ask(d->study->tuning, t, driver_room_for(d, t->row.number), driver_beside(d, t->place) == 0, d->e);
    if (rc == 0 && d->slurm)
        take_slots(d, t);
    if (rc == 0)
        right_size(d, t);
    return rc;
}

/* One that was launched beside others and begins to train when they are gone has heard of its launch's room alone. */
void driver_tell_room(struct driver *d)
{
    for (size_t i = 0; d->rc == 0 && i < d->n; i++) {
        int number = d->slots[i]->a.trial->row.number, room = places_room(d->places, number);
        bool alone = driver_is_alone(d, d->slots[i]);
        int rc = room > 0 ? tuning_room(d->study->tuning, number, room, alone, d->e) : 0;
        if (rc < 0)
            driver_fail(d, rc);
    }
}

/* What runs beside each other there has changed: nobody's windows hold any more, and what each may have is told anew. */
void driver_neighbours_changed(struct driver *d, size_t node)
{
    driver_keep_cpus(d);
    for (size_t i = 0; d->rc == 0 && i < d->n; i++) {
        if (d->slots[i]->a.trial->place != node)
            continue;
        int rc = tuning_break(d->study->tuning, d->slots[i]->a.trial->row.number, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
    driver_tell_room(d);
}

/* Beside those that run there: all of them have settled, so that their right size is known; CPUs and memory are left; and so much is
 * known of this one that it need not probe alone. */
bool driver_may_pack(struct driver *d, const struct study_trial *t, size_t node)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct slot *s = d->slots[i];
        bool may_probe = s->a.trial->alone; /* one that was packed from the start does not, and has its size */
        if (s->a.trial->place == node && may_probe &&
            (!s->a.running || !tuning_settled(d->study->tuning, s->a.trial->row.number)))
            return false;
    }
    driver_keep_cpus(d);
    struct rooms_want want = { .cpus = 1, .memory_gb = driver_memory_gb(d, t ? t : d->slots[0]->a.trial) };
    return places_fits(d->places, node, t ? t->row.number : 0, want) && (!t || tuning_knows(d->study->tuning, t));
}

/* The fewest CPUs that a trial can be given; NAN: nothing is chosen. */
static double least_cores(const struct driver *d)
{
    struct tuner_setting least = { 0, d->study->plan->choices.start.cold };
    return d->study->tuning ? tuning_cores(d->study->tuning, least) : NAN;
}

static bool enough_wait(const struct driver *d)
{
    uint64_t waiting = sched_waiting(&d->study->sched) + study_unasked(d->study);
    return rooms_enough_wait(places_rooms(d->places), least_cores(d), waiting);
}

/* While fewer wait, seconds count instead of core-seconds. */
void driver_tell_load(struct driver *d)
{
    if ((!d->packs && !d->cluster) || !(least_cores(d) > 0))
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
    const struct rooms_want like = { .memory_gb = driver_memory_gb(d, first) };
    double least = least_cores(d);
    if (!d->packs || driver_beside(d, first->place) != 1 || c->n_cold != 1 ||
        !(least >= 1 && least < first->row.slots) || !enough_wait(d) ||
        !places_fits(d->places, first->place, first->row.number, like))
        return false;
    *out = *first;
    out->row.number = 0;
    out->row.slots = packed_slots(least, plan_batch(d->study->plan, &first->point), first->row.slots);
    out->setting.hot = 0;
    return true;
}

static void on_apply(void *ctx, int trial, struct tuner_setting to)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    if (s)
        driver_apply(d, s, to);
}

static void on_relaunch(void *ctx, int trial)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot_of_trial(d, trial);
    if (s && s->a.running && s->a.kill_ms == 0 && s->a.row.ends_at == 0)
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
    struct study *s = d->study;
    const struct plan *p = s->plan;
    int rc = tuning_open(&s->tuning, s, &tuning, d, d->e);
    d->one_each = p->cfg.parallel == CONFIG_PARALLEL_AUTO && objective_needs_power(objective_find(p->cfg.objective));
    d->packs = p->policy->shares && plan_is_local(p) && s->sched.parallel > 1 && !d->one_each;
    bool held = p->app.kind->held && plan_is_local(p) && space_knob(&p->space, KNOB_CORES);
    bool changes = p->policy->wide && (p->choices.n_hot > 1 || d->packs);
    d->narrows = changes || held;
    d->holds = held && !changes;
    if (rc == 0)
        rc = driver_set_up_samples(d);
    if (rc == 0)
        rc = driver_set_up_places(d);
    return rc == 0 && p->policy->shares && p->app.file.session && !d->slurm ? driver_open_pool(d) : rc;
}
