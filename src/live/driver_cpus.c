#include "live/driver_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/energy.h"
#include "live/hosts.h"
#include "live/nodes.h"
#include "live/places.h"
#include "live/profiles.h"
#include "live/publish.h"
#include "live/resizer.h"
#include "live/tuning.h"

enum {
    ASK_MS = 30000,
    FIND_MS = 500, /* between two tries to narrow what has no process yet */
    FIND_TRIES = 60,
};

/* Heaps and a quarter more fit the machine: that much a runtime takes beside its heap. */
static const double HEAP_SHARE = 1.25;

int64_t driver_patience_ms(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *ms = getenv("PIPETUNE_ASK_MS"); /* tests don't wait as long as people do */
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    return ASK_MS;
}

/* What is next waits until it has CPUs of its own, so that it does not begin on those that others measure on. */
bool driver_has_cpus(struct driver *d, int number)
{
    char who[LEASE_WHO_MAX], text[256];
    if (driver_awaits_share(d) || !places_is_ready(d->places))
        return false;
    places_look(d->places);
    bool room = places_has_room(d->places, number);
    if (room && d->share < 0 && places_gives_way(d->places)) /* in the queue everybody has a share */
        return false;
    if (room) {
        d->asked_ms = 0;
        return true;
    }
    places_ask(d->places, who);
    d->asked_ms = d->asked_ms ? d->asked_ms : clock_ms();
    if (!d->asked_cpus) {
        (void)snprintf(text, sizeof text, "waits for a CPU: all of this machine are other drivers' (%s)", who);
        driver_note(d, NULL, text);
    }
    d->asked_cpus = true;
    return clock_ms() - d->asked_ms >= driver_patience_ms() && !driver_waits_in_queue(d);
}

double driver_memory_gb(const struct driver *d, const struct study_trial *t)
{
    struct setting set = study_setting(d->study, t);
    const struct plan *p = d->study->plan;
    double share = p->app.kind->memory == APP_MEMORY_HEAP ? HEAP_SHARE : 1;
    return share * setting_number(&p->space, &set, KNOB_MEMORY, app_memory_gb(&p->app));
}

int driver_keep_memory(struct driver *d, const struct study_trial *t)
{
    return places_keep(d->places, t->row.number, driver_memory_gb(d, t), d->e);
}

/* Beside another driver it is launched on its CPUs alone: what others measure is not to be disturbed by its start. */
int driver_take_room(struct driver *d, struct study_trial *t)
{
    int cpus[ROOMS_MAX_CPUS];
    if (d->gangs) /* taken when it is started */
        return 0;
    struct setting set = study_setting(d->study, t);
    int cores = (int)setting_number(&d->study->plan->space, &set, KNOB_CORES, t->row.slots);
    int rc = places_put(d->places, t->place, t->row.number, d->e);
    int n = rc < 0 ? rc : places_assign(d->places, t->row.number, cores, cpus, d->e);
    rc = n < 0 ? n : driver_keep_memory(d, t);
    if (d->nodes)
        t->cores = 0;
    free(t->cpus);
    t->cpus = rc == 0 ? places_own_cpus(d->places, t->row.number, d->holds) : NULL;
    return rc;
}

/* Nothing could be kept for those that were started, or met again, before the helper said which CPUs there are. */
void driver_keep_cpus(struct driver *d)
{
    int cpus[ROOMS_MAX_CPUS];
    for (size_t i = 0; d->rc == 0 && d->packs && !d->gangs && i < d->n; i++) { /* gangs: driver_tick_gangs() */
        const struct study_trial *t = d->slots[i]->a.trial;
        struct tuner_setting to = t->setting;
        (void)tuning_current(d->study->tuning, t->row.number, &to);
        double cores = tuning_cores(d->study->tuning, to);
        int n = places_assign(d->places, t->row.number, isnan(cores) ? t->row.slots : (int)cores, cpus, d->e);
        if (n < 0)
            driver_fail(d, n);
    }
}

void driver_let_go(struct driver *d, struct slot *s)
{
    struct warm *w = driver_warm_of(d, s);
    places_free(d->places, s->a.trial->row.number);
    driver_free_gang_room(d, &s->a);
    if (w) { /* its processes have what its next trial says */
        w->trial = 0;
        w->idle_ms = clock_ms();
    } else if (s->a.row.launch) {
        nodes_release(d->nodes, s->a.row.launch);
        resizer_release(d->resizer, s->a.row.launch);
        driver_leave_cluster(d, s->a.row.launch, s->a.row.app_id);
    }
}

/* --- settings in force --- */

const char *driver_tag(const struct driver *d, const struct slot *s)
{
    const struct warm *w = driver_warm_of(d, s);
    return s->a.row.launch ? s->a.row.launch : w ? w->tag : NULL;
}

/* Where no policy chooses, it is the trial's own. */
static struct setting setting_of(const struct driver *d, const struct study_trial *t, struct tuner_setting to)
{
    const struct plan *p = d->study->plan;
    return d->study->tuning ? choices_setting(&p->choices, &p->space, to) : study_setting(d->study, t);
}

/* … or was until now, and may part. */
static bool is_beside_others(const struct driver *d, const struct slot *s)
{
    return places_may_part(d->places, s->a.trial->row.number, s->a.gang != NULL) ||
           (d->study->tuning && places_is_divided(d->places));
}

void driver_apply(struct driver *d, struct slot *s, struct tuner_setting to)
{
    const struct plan *p = d->study->plan;
    const struct store_trial *t = &s->a.trial->row;
    const char *tag = driver_tag(d, s);
    s->narrow_ms = 0; /* a newer one is under way */
    if (!tag || (!d->narrows && !is_beside_others(d, s)))
        return;
    struct setting set = setting_of(d, s->a.trial, to);
    int cores = (int)setting_number(&p->space, &set, KNOB_CORES, t->slots);
    int cpus[ROOMS_MAX_CPUS];
    int n = s->a.gang ? 0 : places_assign(d->places, t->number, cores, cpus, d->e);
    struct desired_want want = { .tag = tag,
                                 .id = s->a.id,
                                 .to = to,
                                 .cores = n > 0 && n < cores ? n : cores,
                                 .slots = t->slots,
                                 .local = plan_is_local(p),
                                 .node = s->a.trial->place,
                                 .cpus = n > 0 ? cpus : NULL,
                                 .n_cpus = n,
                                 .frequency_khz = setting_number(&p->space, &set, KNOB_FREQUENCY, 0),
                                 .power_cap_w = setting_number(&p->space, &set, KNOB_POWER_CAP, 0) };
    if (s->a.gang) {
        driver_apply_gang(d, s, &want);
        return;
    }
    int rc = n < 0 ? n : d->resizer ? resizer_apply(d->resizer, &want, d->e) : nodes_apply(d->nodes, &want, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

/* The setting of its launch, which the policy takes to be in force from the first step on. */
void driver_narrow(struct driver *d, struct slot *s)
{
    struct tuner_setting to = s->a.trial->setting;
    (void)tuning_current(d->study->tuning, s->a.trial->row.number, &to);
    driver_apply(d, s, to);
}

/* Stored at once: who looks at the study is told what is in force, and not what was at the end of an epoch. */
static int keep_cores(struct driver *d, struct slot *s, int cores)
{
    bool news = s->a.row.cores != cores;
    s->a.row.cores = s->a.trial->cores = cores;
    s->new_cores |= news;
    return news && s->a.running ? driver_store_news(d) : 0;
}

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, want->id);
    int cores = have->cores;
    if (!s)
        return; /* its attempt is over */
    driver_look_shared(d, s);
    enum wait_kind waits = attempt_wait(&s->a).kind; /* what is not there yet has no processes to be found */
    bool comes = waits == WAIT_START || waits == WAIT_ROOM;
    if (cores == 0 && !why && (comes || s->narrow_tries++ < FIND_TRIES)) {
        s->narrow_ms = clock_ms() + FIND_MS;
        return;
    }
    if (cores > 0 && keep_cores(d, s, cores) < 0)
        return;
    const char *fault = why ? why : cores == 0 ? "none of its processes was found" : NULL;
    int trial = s->a.trial->row.number;
    if (fault)
        driver_note(d, &s->a.trial->row, fault);
    if (cores > 0) {
        struct setting set = setting_of(d, s->a.trial, want->to);
        AUTO_JSON json_t *j = plan_effective_json(d->study->plan, &set, 0);
        AUTO_FREE char *text = json_text(j);
        profiles_setting(d->study->profiles, trial, tuning_in_force(d->study->tuning, want->to, cores));
        publish_setting(d->study->publish, trial, text, cores);
    }
    int rc = tuning_applied(d->study->tuning, trial, want->to, cores, cores == 0 ? fault : NULL, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    struct driver *d = ctx;
    for (size_t i = 0; d->rc == 0 && i < d->n; i++) {
        struct slot *s = d->slots[i];
        if (!s->a.row.launch || strcmp(s->a.row.launch, tag) != 0)
            continue;
        driver_look_shared(d, s);
        if (have->cores > 0 && keep_cores(d, s, have->cores) < 0)
            return;
        int rc = tuning_break(d->study->tuning, s->a.trial->row.number, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
}

/* Where the cluster narrows, a helper here sees whose processes it may, and measures them alone. */
static void on_node_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    struct driver *d = ctx;
    if (!d->resizer)
        on_changed(ctx, tag, have);
}

static void on_node_note(void *ctx, const char *text)
{
    driver_note(ctx, NULL, text);
}

/* The ledger, and helpers where something is to be narrowed, measured or leased. */
int driver_set_up_places(struct driver *d)
{
    static const struct nodes_ops ops = { on_applied, on_node_changed, driver_on_sampled, driver_on_metered,
                                          on_node_note };
    static const struct resizer_ops resizes = { on_applied, on_changed, on_node_note };
    const struct plan *p = d->study->plan;
    static const struct app_workers all = { .begins = NULL }; /* of what runs in one place every process works */
    bool local = plan_is_local(p);
    int rc = 0;
    driver_allow_files(d);
    if (d->narrows || d->measures || d->study->energy || local)
        rc = nodes_open(&d->nodes, &d->loop, p->nodes, p->n_nodes, p->env.node, local ? &all : &p->app.kind->workers,
                        &ops, d, d->e);
    if (rc == 0)
        rc = places_open(&d->places, &p->offer, local, d->nodes, hosts_wanted(p) ? p->n_nodes : 0, d->e);
    if (rc == 0)
        rc = driver_set_up_hosts(d);
    if (rc == 0)
        rc = driver_set_up_cluster(d);
    if (rc == 0 && d->narrows && p->cluster.resizes)
        rc = resizer_open(&d->resizer, &d->loop, &p->cluster, &resizes, d, d->e);
    if (rc == 0 && d->study->energy)
        rc = nodes_meter(d->nodes, energy_wanted(d->study->energy), d->e);
    return rc;
}

/* --- beside other drivers --- */

static void tell_shared(struct driver *d, struct slot *s, const char *who)
{
    char text[256];
    if (who)
        (void)snprintf(text, sizeof text, "shares its CPUs with %s: nothing is learnt of it meanwhile", who);
    else
        (void)snprintf(text, sizeof text, "has its CPUs for itself again");
    driver_note(d, &s->a.trial->row, text);
}

/* What was measured until now is of another state, whichever it is. */
void driver_look_shared(struct driver *d, struct slot *s)
{
    struct study_trial *t = s->a.trial;
    char who[NODES_WHO_MAX];
    bool shared = plan_is_local(d->study->plan) && t->place == 0
                      ? places_is_shared(d->places, t->row.number, who)
                      : d->nodes && s->a.row.launch && nodes_is_shared(d->nodes, s->a.row.launch, who);
    if (shared == t->shared)
        return;
    t->shared = shared;
    tell_shared(d, s, shared ? who : NULL);
    int rc = tuning_break(d->study->tuning, t->row.number, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

static void tend(struct driver *d, struct slot *s)
{
    if (s->a.running && places_may_part(d->places, s->a.trial->row.number, s->a.gang != NULL))
        driver_narrow(d, s);
    bool divided = places_is_divided(d->places);
    if (s->a.running && divided && !s->apart && !d->narrows)
        driver_narrow(d, s);
    s->apart = divided;
    driver_look_shared(d, s);
}

void driver_tick_cpus(struct driver *d)
{
    places_look(d->places);
    if (d->resizer)
        resizer_tick(d->resizer);
    for (size_t i = 0; d->rc == 0 && i < d->n; i++)
        tend(d, d->slots[i]);
    driver_tell_room(d);
}
