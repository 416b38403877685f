#include "live/driver_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "live/gang.h"
#include "live/hosts.h"
#include "live/nodes.h"
#include "live/places.h"

/* --- which processes, and what they take ------------------------------------------------------------------------------- */

static int shape_of(const struct driver *d, const struct study_trial *t, struct app_gang *out, struct err *e)
{
    struct setting set = study_setting(d->study, t);
    return plan_gang(d->study->plan, &t->point, &set, out, e);
}

/* CPUs of a process whose role does not say it. */
static int usual_cores(const struct driver *d, const struct study_trial *t)
{
    struct setting set = study_setting(d->study, t);
    return (int)setting_number(&d->study->plan->space, &set, KNOB_CORES, 1);
}

/* Hosts that were never there yet may have what it takes. */
static bool knows_all(const struct driver *d)
{
    for (size_t i = 1; i <= hosts_count(d->hosts); i++)
        if (rooms_cpus(places_rooms(d->places), i) == 0 && !hosts_is_given_up(d->hosts, i))
            return false;
    return true;
}

static void fill_wants(const struct app_gang *g, int cores, double memory_gb, struct rooms_want out[APP_GANG_MAX])
{
    for (size_t k = 0; k < g->n; k++)
        out[k] = (struct rooms_want){ .cpus = g->v[k].cores >= 0 ? g->v[k].cores : cores, .memory_gb = memory_gb };
}

/* The setting's cores are cut to what there is, as those of one process are: with fewer for each they may fit. */
static void wants_of(struct driver *d, const struct study_trial *t, const struct app_gang *g,
                     struct rooms_want out[APP_GANG_MAX])
{
    size_t nodes[APP_GANG_MAX];
    double memory_gb = driver_memory_gb(d, t);
    int cores = usual_cores(d, t);
    driver_open_hosts(d);
    fill_wants(g, cores, memory_gb, out);
    while (cores > 1 && knows_all(d) && !rooms_spread(places_rooms(d->places), out, g->n, ROOMS_EVER, nodes))
        fill_wants(g, --cores, memory_gb, out);
}

/* --- where they are ------------------------------------------------------------------------------------------------------ */

static bool fits(struct driver *d, const struct study_trial *t, const struct app_gang *g, enum rooms_when when,
                 size_t out[APP_GANG_MAX])
{
    struct rooms_want wants[APP_GANG_MAX];
    if (places_gives_way(d->places))
        return false;
    wants_of(d, t, g, wants);
    return rooms_spread(places_rooms(d->places), wants, g->n, when, out);
}

/* One that is alone, and has asked others long enough, uses theirs. */
static bool may_share(const struct driver *d)
{
    return d->n == 1 && d->asked_ms && clock_ms() - d->asked_ms >= driver_patience_ms();
}

static bool find_room(struct driver *d, const struct study_trial *t, const struct app_gang *g, bool *out_shares,
                      size_t out[APP_GANG_MAX])
{
    *out_shares = !fits(d, t, g, ROOMS_NOW, out);
    return !*out_shares || (may_share(d) && fits(d, t, g, ROOMS_SHARED, out));
}

/* -1: there is none. */
static int first_open(const struct driver *d)
{
    if (!d->hosts || d->local)
        return 0;
    for (size_t i = 1; i <= hosts_count(d->hosts); i++)
        if (hosts_takes(d->hosts, i))
            return (int)i;
    return -1;
}

/* One that is alone is started in any case: it waits for its room, or is told that there is none. */
int driver_place_gang(struct driver *d, const struct study_trial *t)
{
    size_t nodes[APP_GANG_MAX];
    struct app_gang g;
    struct err why;
    if (d->n == 0)
        return first_open(d);
    for (size_t i = 0; i < d->n; i++)
        if (d->slots[i]->awaits_room)
            return -1;                /* it is its turn */
    t = t ? t : d->slots[0]->a.trial; /* of any: like those that run */
    if (shape_of(d, t, &g, &why) < 0)
        return 0; /* which is told when it is started */
    return fits(d, t, &g, ROOMS_NOW, nodes) ? (int)nodes[g.tells] : -1;
}

bool driver_gang_never_fits(struct driver *d, const struct study_trial *t, char *why, size_t size)
{
    struct rooms_want wants[APP_GANG_MAX];
    size_t nodes[APP_GANG_MAX];
    struct app_gang g;
    struct err e;
    int cpus = 0, most = 0;
    if (shape_of(d, t, &g, &e) < 0) {
        (void)snprintf(why, size, "%s", e.text);
        return true;
    }
    wants_of(d, t, &g, wants);
    if (!knows_all(d) || rooms_spread(places_rooms(d->places), wants, g.n, ROOMS_EVER, nodes))
        return false;
    for (size_t k = 0; k < g.n; k++)
        cpus += wants[k].cpus;
    for (size_t i = d->hosts && !d->local ? 1 : 0; i <= hosts_count(d->hosts); i++)
        most += places_rooms(d->places)->nodes[i].lost ? 0 : rooms_cpus(places_rooms(d->places), i);
    (void)snprintf(why, size,
                   "its %zu processes never fit at once: they take %d CPU%s and %.4g GiB, and the places that take "
                   "trials have %d CPU%s in all; lower a count or cores, or add hosts to 'nodes'",
                   g.n, cpus, cpus == 1 ? "" : "s", wants[0].memory_gb * (double)g.n, most, most == 1 ? "" : "s");
    return true;
}

/* How processes elsewhere reach those there. */
static const char *address_of(const struct driver *d, size_t node, bool all_here)
{
    static char own[256];
    const struct plan *p = d->study->plan;
    if (node > 0)
        return p->nodes[node - 1].address ? p->nodes[node - 1].address : p->nodes[node - 1].host;
    if (all_here)
        return "127.0.0.1";
    if (p->cfg.places_address)
        return p->cfg.places_address;
    (void)gethostname(own, sizeof own - 1); /* a machine without a name is not reached by one */
    return own;
}

static bool are_all_here(const size_t *nodes, size_t n)
{
    bool here = true;
    for (size_t k = 0; k < n; k++)
        here = here && nodes[k] == 0;
    return here;
}

/* --- room ------------------------------------------------------------------------------------------------------------------ */

/* Its CPUs: its own, on any machine. 1: another driver was quicker. */
static int take_cpus(struct driver *d, int holder, size_t node, int want)
{
    int cpus[ROOMS_MAX_CPUS];
    bool known = places_rooms(d->places)->nodes[node].n > 0;
    return want > 0 && known && places_take(d->places, holder, want, cpus) < want;
}

/* Those of it that are here use as many CPUs as they want together, with whoever has them: the first of them stands for all in the ledger. */
static int share_cpus(struct driver *d, int trial, const struct rooms_want *wants, const size_t *nodes, size_t n)
{
    int cpus[ROOMS_MAX_CPUS], want = 0, holder = 0;
    for (size_t k = 0; k < n; k++) {
        want += nodes[k] == 0 ? wants[k].cpus : 0;
        holder = holder == 0 && nodes[k] == 0 && wants[k].cpus > 0 ? rooms_member(trial, k) : holder;
    }
    int rc = want > 0 ? places_share(d->places, holder, want, cpus, d->e) : 0;
    return rc < 0 ? rc : 0;
}

static void free_room(struct driver *d, int trial, size_t n)
{
    for (size_t k = 0; k < n; k++)
        places_free(d->places, rooms_member(trial, k));
}

/* All or nothing. 1: another driver was quicker. */
static int take_room(struct driver *d, const struct study_trial *t, const struct app_gang *g, const size_t *nodes,
                     bool shares)
{
    struct rooms_want wants[APP_GANG_MAX];
    int trial = t->row.number, rc = 0;
    wants_of(d, t, g, wants);
    for (size_t k = 0; k < g->n && rc == 0; k++) {
        int holder = rooms_member(trial, k);
        rc = places_put(d->places, nodes[k], holder, d->e);
        if (rc == 0)
            rc = places_keep(d->places, holder, wants[k].memory_gb, d->e);
        if (rc == 0 && !(shares && nodes[k] == 0))
            rc = take_cpus(d, holder, nodes[k], wants[k].cpus);
    }
    if (rc == 0 && shares)
        rc = share_cpus(d, trial, wants, nodes, g->n);
    if (rc == 1)
        free_room(d, trial, g->n);
    return rc;
}

void driver_free_gang_room(struct driver *d, const struct attempt *a)
{
    for (size_t k = 0; k < gang_count(a->gang); k++) {
        const struct gang_member *m = gang_member(a->gang, k);
        places_free(d->places, rooms_member(a->trial->row.number, k));
        if (m->row.launch)
            nodes_release(d->nodes, m->row.launch);
    }
}

/* Its own, or those that all of it shares as long as there are not enough for all. */
static int assign(struct driver *d, int trial, size_t k, size_t node, int cores, int cpus[ROOMS_MAX_CPUS])
{
    int n = node == 0 && !places_may_part(d->places, trial, true) ? places_shared(d->places, trial, cpus) : 0;
    return n > 0 ? n : places_assign(d->places, rooms_member(trial, k), cores, cpus, d->e);
}

/* Each process gets what the setting says, on its own machine. Of what comes of it the tuner hears by the one that tells. */
void driver_apply_gang(struct driver *d, struct slot *s, const struct desired_want *want)
{
    int cpus[ROOMS_MAX_CPUS];
    for (size_t k = 0; k < gang_count(s->a.gang) && d->rc == 0; k++) {
        const struct gang_member *m = gang_member(s->a.gang, k);
        struct desired_want one = *want;
        int cores = m->cores >= 0 ? m->cores : want->cores;
        if (cores == 0 || !m->row.launch)
            continue;
        int n = assign(d, s->a.trial->row.number, k, (size_t)m->row.node, cores, cpus);
        one.tag = m->row.launch;
        one.id = k == gang_teller(s->a.gang) ? want->id : 0;
        one.node = (size_t)m->row.node;
        one.cores = n > 0 && n < cores ? n : cores;
        one.slots = cores;
        one.cpus = n > 0 ? cpus : NULL;
        one.n_cpus = n;
        int rc = n < 0 ? n : nodes_apply(d->nodes, &one, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
}

/* --- starting -------------------------------------------------------------------------------------------------------------- */

static void orders_done(struct site_order *orders, size_t n)
{
    for (size_t k = 0; orders && k < n; k++)
        site_order_done(&orders[k]);
    free(orders);
}

/* That a process is launched on: "0,2"; NULL: all. Free it. */
static char *cpus_of(const struct driver *d, int trial, size_t k)
{
    int cpus[ROOMS_MAX_CPUS], n = places_shared(d->places, trial, cpus);
    struct buf text = BUF_INIT;
    for (int i = 0; i < n; i++)
        buf_printf(&text, "%s%d", i ? "," : "", cpus[i]);
    return n > 0 ? buf_take(&text) : places_own_cpus(d->places, rooms_member(trial, k), d->holds);
}

/* Its room is taken. */
static int start_at(struct driver *d, struct slot *s, struct study_trial *t, const struct app_gang *g,
                    const size_t *nodes)
{
    struct site sites[APP_GANG_MAX];
    const char *hosts[APP_GANG_MAX];
    struct site_order *orders = calloc(g->n, sizeof *orders);
    t->place = nodes[g->tells];
    for (size_t k = 0; k < g->n; k++) {
        sites[k] = driver_site(d, nodes[k]);
        hosts[k] = address_of(d, nodes[k], are_all_here(nodes, g->n));
    }
    int rc = orders ? 0 : err_sys(d->e, -ENOMEM, "trial %d", t->row.number);
    if (rc == 0)
        rc = attempt_prepare_gang(&s->a, d->study, t, d->gangs, g, sites, hosts, orders, d->e);
    for (size_t k = 0; rc == 0 && k < g->n; k++) {
        struct gang_member *m = gang_member(s->a.gang, k);
        m->cpus = nodes[k] == 0 && g->v[k].cores != 0 ? cpus_of(d, t->row.number, k) : NULL;
        orders[k].words.cpus = m->cpus;
    }
    driver_own(d, &s->a);
    if (rc == 0)
        rc = gang_start(s->a.gang, s->a.id, sites, orders, &s->a.at, d->e);
    orders_done(orders, g->n);
    return rc;
}

int driver_start_gang(struct driver *d, struct slot *s, struct study_trial *t)
{
    size_t nodes[APP_GANG_MAX];
    struct app_gang g;
    bool shares;
    int rc = shape_of(d, t, &g, d->e);
    if (rc < 0)
        return rc;
    s->started_ms = clock_ms();
    rc = find_room(d, t, &g, &shares, nodes) ? take_room(d, t, &g, nodes, shares) : 1;
    s->awaits_room = rc == 1;
    if (rc == 0) {
        d->asked_ms = 0;
        rc = start_at(d, s, t, &g, nodes);
    }
    if (rc <= 0)
        return rc;
    attempt_await(&s->a, d->study, t);
    driver_own(d, &s->a);
    if (!d->told_room)
        driver_note(d, &t->row, "waits until all its processes fit at once");
    d->told_room = true;
    return 0;
}

/* Other drivers here may do with fewer CPUs, or be done. */
static void ask_others(struct driver *d, const struct study_trial *t)
{
    char who[LEASE_WHO_MAX], text[256];
    if (!places_is_divided(d->places)) {
        d->asked_ms = 0;
        return;
    }
    places_ask(d->places, who);
    d->asked_ms = d->asked_ms ? d->asked_ms : clock_ms();
    (void)snprintf(text, sizeof text, "waits for CPUs of this machine that another driver has (%s)", who);
    if (!d->asked_cpus)
        driver_note(d, &t->row, text);
    d->asked_cpus = true;
}

/* It fits now, or never any more: then it is told so when it is started anew. True: it is dropped. */
static bool try_again(struct driver *d, struct slot *s)
{
    size_t nodes[APP_GANG_MAX];
    char why[512];
    bool shares;
    struct app_gang g;
    struct study_trial *t = s->a.trial;
    if (driver_gang_never_fits(d, t, why, sizeof why)) {
        driver_give_back(d, s);
        return true;
    }
    if (shape_of(d, t, &g, d->e) < 0 || !find_room(d, t, &g, &shares, nodes)) {
        ask_others(d, t);
        return false;
    }
    attempt_done(&s->a);
    int rc = driver_start_launcher(d, s, t);
    if (rc < 0)
        driver_fail(d, rc);
    return false;
}

static bool has_cpus(const struct driver *d, int trial, size_t k, size_t node)
{
    const struct rooms *r = places_rooms(d->places);
    bool known = r->nodes[node].n > 0;
    return !known || rooms_has(r, node, rooms_member(trial, k)) || rooms_shares(r, node, trial) > 0;
}

/* One that was met again has none until it is known, on its machine, which there are. */
static void keep_cpus(struct driver *d, const struct slot *s)
{
    int cpus[ROOMS_MAX_CPUS], trial = s->a.trial->row.number, usual = usual_cores(d, s->a.trial);
    for (size_t k = 0; s->a.running && k < gang_count(s->a.gang) && d->rc == 0; k++) {
        const struct gang_member *m = gang_member(s->a.gang, k);
        int cores = m->cores >= 0 ? m->cores : usual;
        if (cores == 0 || has_cpus(d, trial, k, (size_t)m->row.node))
            continue;
        int rc = places_assign(d->places, rooms_member(trial, k), cores, cpus, d->e);
        if (rc < 0)
            driver_fail(d, rc);
    }
}

void driver_tick_gangs(struct driver *d)
{
    bool dropped = false;
    gangs_tick(d->gangs, clock_ms());
    for (size_t i = 0; i < d->n; i++)
        keep_cpus(d, d->slots[i]);
    for (size_t i = d->n; i-- > 0 && d->rc == 0;)
        if (d->slots[i]->awaits_room)
            dropped |= try_again(d, d->slots[i]);
    if (dropped)
        driver_schedule(d);
}

/* --- what an earlier driver left -------------------------------------------------------------------------------------------- */

int driver_recall_gang(struct driver *d, struct slot *s)
{
    struct app_gang g;
    struct rooms_want wants[APP_GANG_MAX];
    const struct study_trial *t = s->a.trial;
    int rc = shape_of(d, t, &g, d->e);
    if (rc == 0)
        rc = attempt_recall_gang(&s->a, d->gangs, &g, d->e);
    if (rc <= 0)
        return rc;
    wants_of(d, t, &g, wants);
    for (size_t k = 0; rc >= 0 && k < g.n; k++) {
        struct store_member *m = &gang_member(s->a.gang, k)->row;
        m->node = m->place ? (int)hosts_find(d->hosts, m->place) : 0;
        int holder = rooms_member(t->row.number, k);
        rc = places_put(d->places, (size_t)m->node, holder, d->e);
        if (rc == 0)
            rc = places_keep(d->places, holder, wants[k].memory_gb, d->e);
    }
    return rc;
}

int driver_adopt_gang(struct driver *d, struct slot *s)
{
    struct site sites[APP_GANG_MAX];
    for (size_t k = 0; k < gang_count(s->a.gang); k++) {
        const struct store_member *m = &gang_member(s->a.gang, k)->row;
        bool there = !m->place || m->node > 0;
        sites[k] = there ? driver_site(d, (size_t)m->node) : (struct site){ .row = NULL };
    }
    return gang_adopt(s->a.gang, s->a.id, sites, &s->a.row, &s->a.at, d->e);
}
