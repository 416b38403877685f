#include "live/driver_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "live/hosts.h"
#include "live/nodes.h"
#include "live/places.h"
#include "live/slurm.h"

size_t driver_beside(const struct driver *d, size_t node)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->slots[i]->a.trial && d->slots[i]->a.trial->place == node;
    return n;
}

bool driver_is_alone(const struct driver *d, const struct slot *s)
{
    return driver_beside(d, s->a.trial->place) == 1;
}

struct site driver_site(struct driver *d, size_t node)
{
    if (d->slurm)
        return slurm_site(d->slurm);
    return node ? hosts_site(d->hosts, node) : (struct site){ &site_here_row, &d->here, NULL, 0 };
}

/* A config's places may have changed since. */
struct site driver_site_of(struct driver *d, const struct study_trial *t, const struct store_attempt *row)
{
    const struct site here = { &site_here_row, &d->here, NULL, 0 };
    return row->place ? driver_site(d, t->place) : here;
}

/* --- where a trial is placed ------------------------------------------------------------------------------------------- */

/* What its launch takes where nothing changes its size later. */
struct rooms_want driver_want(struct driver *d, const struct study_trial *t)
{
    struct setting set = study_setting(d->study, t);
    struct err why;
    int slots = study_slots(d->study, t, &why);
    double cores = setting_number(&d->study->plan->space, &set, KNOB_CORES, slots > 0 ? slots : 1);
    return (struct rooms_want){ .cpus = (int)cores, .memory_gb = driver_memory_gb(d, t) };
}

static bool is_open(const struct driver *d, size_t node)
{
    return node ? hosts_takes(d->hosts, node) : d->local;
}

static bool fits_beside(struct driver *d, const struct study_trial *t, size_t node)
{
    if (d->packs)
        return driver_may_pack(d, t, node);
    struct rooms_want want = driver_want(d, t ? t : d->slots[0]->a.trial); /* of any: like those that run */
    return !d->one_each && places_fits(d->places, node, t ? t->row.number : SCHED_ANY, want);
}

void driver_open_hosts(struct driver *d)
{
    for (size_t i = 0; d->hosts && i <= hosts_count(d->hosts); i++) {
        places_close_node(d->places, i, !is_open(d, i));
        if (i > 0 && hosts_is_given_up(d->hosts, i))
            places_lose_node(d->places, i);
    }
}

/* What has just failed there goes elsewhere, should there be another place, however long that has no room. */
static bool is_shunned(const struct driver *d, const struct study_trial *t, size_t node)
{
    if (!t || t->shuns != node + 1)
        return false;
    for (size_t i = 0; i <= hosts_count(d->hosts); i++)
        if (i != node && is_open(d, i))
            return true;
    return false;
}

void driver_ended_on(struct driver *d, struct attempt *a)
{
    enum outcome o = a->end.outcome;
    bool lost = o == OUTCOME_INTERRUPTED && a->at.row && a->at.row->lost(a->at.own);
    bool badly = lost || o == OUTCOME_FAILED || o == OUTCOME_KILLED || o == OUTCOME_DOUBTED;
    bool well = o == OUTCOME_FINISHED || o == OUTCOME_PAUSED || o == OUTCOME_STOPPED;
    if (!d->hosts || d->gangs || (!badly && !well)) /* a gang is on several */
        return;
    a->trial->shuns = badly ? a->trial->place + 1 : 0;
    hosts_ended_on(d->hosts, a->trial->place, well, a->end.text);
}

/* One that is not known yet is like those that run. */
static bool takes_job(struct driver *d, const struct study_trial *t)
{
    t = t || d->n == 0 ? t : d->slots[0]->a.trial;
    return slurm_takes(d->slurm, t ? driver_want(d, t) : (struct rooms_want){ 0 });
}

/* A place where nothing runs comes first, before all one with a session that waits; of the others the one with
 * most room. One that is empty is taken whatever its size. */
int driver_place(struct driver *d, int number)
{
    const struct study_trial *t = number == SCHED_ANY ? NULL : study_trial(d->study, number);
    int best = -1;
    if (d->gangs)
        return driver_place_gang(d, t);
    if (d->slurm)
        return takes_job(d, t) ? 0 : -1;
    if (d->cluster)
        return driver_fits_cluster(d, t) ? 0 : -1;
    if (!d->hosts && d->n > 0 && !driver_has_share(d, t))
        return -1;
    if (!d->hosts)
        return d->n == 0 || !d->packs || driver_may_pack(d, t, 0) ? 0 : -1;
    driver_open_hosts(d);
    for (size_t i = 0; i <= hosts_count(d->hosts); i++) {
        bool empty = driver_beside(d, i) == 0 && (i == 0 || hosts_running(d->hosts, i) == 0);
        bool takes = is_open(d, i) && !is_shunned(d, t, i) && empty && (i > 0 || places_has_room(d->places, number));
        if (takes && (best < 0 || driver_is_warm(d, i)))
            best = (int)i;
        if (takes && driver_is_warm(d, i))
            break;
    }
    if (best >= 0)
        return best;
    for (size_t i = 0; (t || d->n > 0) && i <= hosts_count(d->hosts); i++) {
        if (!is_open(d, i) || is_shunned(d, t, i) || !fits_beside(d, t, i))
            continue;
        const struct rooms *r = places_rooms(d->places);
        if (best < 0 || rooms_room(r, i, number) > rooms_room(r, (size_t)best, number))
            best = (int)i;
    }
    return best < 0 && d->n == 0 && d->local ? 0 : best; /* it waits for CPUs here */
}

bool driver_fits(void *ctx, int number)
{
    return driver_place(ctx, number) >= 0;
}

bool driver_awaits_hosts(struct driver *d)
{
    struct sched *s = &d->study->sched;
    if (d->slurm) /* it takes none for a while */
        return !takes_job(d, NULL) && !s->stopping && !s->closed && sched_waiting(s) > 0;
    if (!d->hosts || d->local || s->stopping || s->closed || sched_waiting(s) == 0)
        return false;
    if (hosts_may_come(d->hosts))
        return true;
    if (d->result->end == DRIVER_DONE) {
        d->result->end = DRIVER_ENVIRONMENT;
        (void)snprintf(d->result->why, sizeof d->result->why,
                       "study '%s' has no place to run its trials: every host of 'nodes' is left out or takes none, "
                       "and places.local is 'no'",
                       d->study->name);
    }
    s->stopping = true;
    return false;
}

/* --- what hosts tell --------------------------------------------------------------------------------------------------- */

/* It has cost nothing, and is placed again. */
static void on_unplaced(void *ctx, uint64_t id, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    if (s->stores == STORES_LAUNCH) { /* it was ready, and is lost since */
        s->gone = true;
        s->a.lost = "its host was lost before it began";
        return;
    }
    driver_note(d, &s->a.trial->row, why);
    s->a.trial->shuns = s->a.trial->place + 1;
    aims_not_launched(d->study);
    driver_give_back(d, s);
    driver_schedule(d);
}

static void on_ended(void *ctx, uint64_t id)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    int rc = s->a.running && d->rc == 0 ? attempt_read(&s->a, clock_ms(), d->e) : 0;
    if (rc < 0)
        driver_fail(d, rc);
}

static void on_checkpoint(void *ctx, uint64_t id, int epoch, const char *path)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    int rc = attempt_checkpoint(&s->a, epoch, path, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

static void on_failed(void *ctx, uint64_t id, int rc, const struct err *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    if (rc == -EFBIG)
        driver_end_attempt(s, STOP_FLOOD, false);
    else
        driver_fail(d, err_set(d->e, rc, "%s", why->text));
}

static void on_note(void *ctx, const char *text)
{
    driver_note(ctx, NULL, text);
}

/* --- what Slurm tells --------------------------------------------------------------------------------------------------- */

/* Its time is counted from here: while it waited it cost nothing. */
static void on_begun(void *ctx, uint64_t id, int64_t ago_ms)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    struct attempt *a = &s->a;
    int64_t at_ms = study_clock_ms(d->study) - ago_ms;
    bool waited = at_ms > a->row.started_ms && !a->gained;
    if (!waited)
        return;
    a->row.started_ms = at_ms;
    a->row.started_boot_ms = clock_boot_ms() - ago_ms;
    a->born_ms = a->line_ms = clock_ms();
    if (d->study->plan->app.kind->tells)
        a->fold.since_ms = at_ms;
    s->new_cores = true; /* stored at once */
    (void)driver_store_news(d);
}

static void on_slurm_note(void *ctx, uint64_t id, const char *text)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    driver_note(d, s ? &s->a.trial->row : NULL, text);
}

/* --- beginning and time -------------------------------------------------------------------------------------------------- */

/* A helper takes three files, a trial some more. No more than that: programs of trials inherit what may be open, and some go through all of it. */
void driver_allow_files(struct driver *d)
{
    enum { OURS = 512, OF_A_HOST = 4, OF_A_TRIAL = 6, TRIALS_MAX = 64 };
    rlim_t hosts = d->study->plan->n_nodes, trials = (rlim_t)d->study->sched.parallel;
    trials = trials < TRIALS_MAX * hosts ? trials : TRIALS_MAX * hosts;
    rlim_t want = OURS + OF_A_HOST * hosts + OF_A_TRIAL * trials;
    struct rlimit r;
    char text[200];
    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= want)
        return;
    r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r); /* it is no more than we may have */
    if (r.rlim_cur == want)
        return;
    (void)snprintf(text, sizeof text, "%llu files may be open, and %llu may be needed for so many hosts: ulimit -Hn",
                   (unsigned long long)r.rlim_cur, (unsigned long long)want);
    driver_note(d, NULL, text);
}

int driver_set_up_hosts(struct driver *d)
{
    static const struct hosts_ops ops = { on_unplaced, on_ended, on_checkpoint, on_failed, on_note };
    static const struct slurm_ops slurm = { on_unplaced, on_begun, on_slurm_note };
    const struct plan *p = d->study->plan;
    bool wanted = hosts_wanted(p);
    d->local = !wanted || strcmp(p->cfg.places_local, "yes") == 0;
    if (config_on_slurm(&p->cfg))
        return slurm_open(&d->slurm, &d->loop, p, d->study->dir, &d->ops, &slurm, d, d->e);
    if (!p->app.gang)
        return wanted ? hosts_open(&d->hosts, &d->loop, d->nodes, p, &d->ops, &ops, d, d->e) : 0;
    int rc = gangs_open(&d->gangs, &d->ops, &ops, d, d->e);
    if (rc < 0)
        return rc;
    d->here = (struct site_here){ &d->loop, &gangs_launcher_ops, d->gangs };
    return wanted ? hosts_open(&d->hosts, &d->loop, d->nodes, p, &gangs_launcher_ops, &gangs_hosts_ops, d->gangs, d->e)
                  : 0;
}

void driver_tick_hosts(struct driver *d)
{
    if (d->hosts && d->rc == 0)
        hosts_tick(d->hosts);
    if (d->gangs && d->rc == 0)
        driver_tick_gangs(d);
    if (d->slurm && d->rc == 0)
        slurm_tick(d->slurm);
}
