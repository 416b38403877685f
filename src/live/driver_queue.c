/* What the queue and people ask of a driver while it runs: its share of this machine's CPUs, to start nothing more, to end; a trial to be stopped,
 * a point to be added, failed trials to be tried again. All of it is read from the store when that has changed, and held where trials
 * begin and end. */
#include "live/driver_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/places.h"
#include "live/tuning.h"
#include "store/queue.h"

enum {
    TELL_MS = 1000, /* between two counts of what is to go */
    HOLDERS_MAX = 256,
};

/* --- the share --- */

/* On hosts, clusters and in jobs others share; gangs take their room all at once, whatever it is. */
static bool is_shared(const struct driver *d)
{
    return plan_is_local(d->study->plan) && !d->hosts && !d->slurm && !d->gangs;
}

static int cpus_of(struct driver *d, const struct study_trial *t)
{
    return d->packs ? 1 : driver_want(d, t).cpus;
}

static int cpus_in_use(struct driver *d)
{
    int n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct study_trial *t = d->slots[i]->a.trial;
        int held = places_held(d->places, t->row.number);
        n += held > 0 ? held : cpus_of(d, t);
    }
    return n;
}

bool driver_has_share(struct driver *d, const struct study_trial *t)
{
    if (d->share < 0)
        return true;
    int want = cpus_of(d, t ? t : d->slots[0]->a.trial); /* of any: like those that run */
    return d->share > 0 && (d->n == 0 || cpus_in_use(d) + want <= d->share);
}

bool driver_awaits_share(struct driver *d)
{
    if (d->share == 0 && !d->told_share)
        driver_note(d, NULL, "waits for its turn: other studies of the queue have all CPUs");
    d->told_share = d->share == 0;
    return d->share == 0;
}

struct holders {
    pid_t pids[HOLDERS_MAX];
    int n;
};

/* Its driver is none that we would wait for in vain. */
static int leave_out(void *ctx, const struct store_queued *q)
{
    struct holders *h = ctx;
    for (int i = h->n; i-- > 0;)
        if (store_queue_runs(q->state) && h->pids[i] == q->pid)
            h->pids[i] = h->pids[--h->n];
    return 0;
}

bool driver_waits_in_queue(struct driver *d)
{
    struct holders h;
    h.n = places_holders(d->places, h.pids, HOLDERS_MAX);
    bool known = d->share >= 0 && store_queue(d->study->reader, NULL, leave_out, &h, NULL) == 0;
    return known && h.n == 0;
}

static void take_share(struct driver *d, int cpus)
{
    int share = is_shared(d) ? cpus : -1;
    if (share == d->share)
        return;
    d->share = share;
    places_limit(d->places, share > 0 ? share : share == 0 ? 1 : 0);
    d->turned = true;
    for (size_t i = 0; d->rc == 0 && i < d->n; i++) /* what it is to have is as before, what it can be given is not */
        if (d->slots[i]->a.running)
            driver_narrow(d, d->slots[i]);
}

/* --- what it is told to be at --- */

static void drain(struct driver *d, bool drains)
{
    struct sched *s = &d->study->sched;
    if (drains == d->drains || d->interrupts > 0 || (drains && s->stopping))
        return;
    d->drains = s->stopping = drains;
    d->result->end = drains ? DRIVER_INTERRUPTED : DRIVER_DONE;
    d->turned = true;
    driver_note(d, NULL, drains ? "starts nothing more; what runs is waited for" : "goes on");
}

static void follow(struct driver *d, const struct store_queued *q)
{
    d->queue_id = q->id;
    if (d->o->queued)
        take_share(d, q->share);
    drain(d, strcmp(q->state, QUEUE_DRAINING) == 0);
    if (strcmp(q->state, QUEUE_LEAVING) == 0)
        driver_leave(d);
    if (strcmp(q->state, QUEUE_STOPPING) == 0 && d->interrupts == 0)
        driver_interrupt(d);
}

/* --- what it could use --- */

/* One like those that run, or that are next. NULL: none is known. */
static const struct study_trial *like(const struct driver *d)
{
    return d->n > 0 ? d->slots[0]->a.trial : d->study->n_open > 0 ? d->study->open_trials[0] : NULL;
}

static int bounded(uint64_t n)
{
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* May another trial run beside those that do, were there room? One that probes is left alone. */
static bool takes_more(const struct driver *d, const struct study_trial *next)
{
    if (!d->packs)
        return true;
    for (size_t i = 0; i < d->n; i++) {
        const struct slot *s = d->slots[i];
        if (s->a.trial->alone && (!s->a.running || !tuning_settled(d->study->tuning, s->a.trial->row.number)))
            return false;
    }
    return d->n > 0 || (next && tuning_knows(d->study->tuning, next));
}

/* Trials that could run at once, were there room: as many as wait, or as the search could be asked for now. */
static uint64_t could_run(const struct driver *d, uint64_t to_ask)
{
    const struct sched *s = &d->study->sched;
    uint64_t n = d->n;
    if (!s->stopping && !s->closed)
        n += sched_waiting(s) + (s->waiting ? (uint64_t)s->extra + (uint64_t)s->added : to_ask);
    if (!takes_more(d, like(d)) && n > 1)
        n = d->n > 0 ? d->n : 1;
    return n < (uint64_t)s->parallel ? n : (uint64_t)s->parallel;
}

/* The most CPUs that one can be given: where nothing lists how many, all that it is launched with. */
static int widest(const struct driver *d, const struct study_trial *t, int grain)
{
    int most = grain;
    for (int hot = 0; d->packs && hot < d->study->plan->choices.n_hot; hot++) {
        double cores = tuning_cores(d->study->tuning, (struct tuner_setting){ hot, t->setting.cold });
        int n = isnan(cores) ? t->row.slots : (int)cores;
        most = n > most ? n : most;
    }
    return most;
}

/* CPUs that those that run could use: what has settled has its size. */
static int running_use(struct driver *d, int grain)
{
    int sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct study_trial *t = d->slots[i]->a.trial;
        struct tuner_setting at = t->setting;
        bool settled = d->packs && tuning_settled(d->study->tuning, t->row.number) &&
                       tuning_current(d->study->tuning, t->row.number, &at);
        double cores = settled ? tuning_cores(d->study->tuning, at) : (double)NAN;
        sum += isnan(cores) ? widest(d, t, grain) : (int)cores;
    }
    return sum;
}

static struct use reckon_use(struct driver *d)
{
    const struct sched *s = &d->study->sched;
    const struct study_trial *t = like(d);
    uint64_t to_ask = study_unasked(d->study), n = could_run(d, to_ask);
    int cpus = places_cpus(d->places, 0), grain = t ? cpus_of(d, t) : 1;
    int each = t ? widest(d, t, grain) : grain;
    double memory_gb = t ? driver_memory_gb(d, t) : 0, there_gb = places_rooms(d->places)->nodes[0].memory_gb;
    if (memory_gb > 0 && there_gb > 0 && (double)n * memory_gb > there_gb)
        n = there_gb > memory_gb ? (uint64_t)(there_gb / memory_gb) : 1;
    uint64_t more = n > d->n ? n - d->n : 0;
    uint64_t most =
        (uint64_t)running_use(d, grain) + (more > INT_MAX ? INT_MAX : more * (uint64_t)(each > 0 ? each : 1));
    if (cpus > 0 && most > (uint64_t)cpus)
        most = (uint64_t)cpus;
    return (struct use){ bounded(most), grain > 0 ? grain : 1, bounded(sched_waiting(s) + d->n + to_ask) };
}

static int put_use(void *ctx, struct store *store, struct err *e)
{
    struct driver *d = ctx;
    return store_queue_put_use(store, d->queue_id, d->use.most, d->use.grain, d->use.to_go, e);
}

static void tell_use(struct driver *d)
{
    struct use now = reckon_use(d);
    bool sooner = now.most != d->use.most || now.grain != d->use.grain;
    bool later = now.to_go != d->use.to_go && clock_ms() - d->use_ms >= TELL_MS;
    if (!d->queue_id || d->asking || (!sooner && !later)) /* what is being asked for is known in a moment */
        return;
    d->use = now;
    d->use_ms = clock_ms();
    driver_hand_over(d, (struct write){ .rows = put_use, .ctx = d });
}

/* --- requests --- */

struct asked {
    struct driver *d;
    struct store_request r;
    int number; /* of the trial that it is done to; 0: it was refused */
    bool runs;  /* … that runs */
    int *again; /* owned: trials that are to be tried again */
    size_t n_again;
};

static void free_asked(struct asked *x)
{
    store_request_done(&x->r);
    free(x->again);
    free(x);
}

static int refuse(const struct asked *x, struct store *store, struct err *e, const char *why)
{
    return store_request_answer(store, x->r.id, false, why, e);
}

/* It is gone on with no more: what it came to counts. */
static int put_stop(void *ctx, struct store *store, struct err *e)
{
    static const char why[] = "somebody asked for it";
    struct asked *x = ctx;
    struct driver *d = x->d;
    struct study_trial *t = study_trial(d->study, x->r.trial);
    struct slot *s = driver_slot_of_trial(d, x->r.trial);
    if (!t)
        return refuse(x, store, e, "there is no such trial that waits or runs");
    if (s && (s->stores == STORES_END || s->a.row.ends_at))
        return refuse(x, store, e, "it is ending already");
    x->runs = s != NULL;
    x->number = t->row.number;
    int rc = s ? attempt_put_stop(&s->a, why, e) : study_put_stop(d->study, t, why, e);
    return rc == 0 ? store_request_answer(store, x->r.id, true, s ? "its attempt is ended" : "stopped", e) : rc;
}

static void stop_now(struct driver *d, const struct asked *x)
{
    struct slot *s = driver_slot_of_trial(d, x->number);
    struct study_trial *t = study_trial(d->study, x->number);
    if (x->runs) {
        if (s && s->a.row.ends_at && !driver_warm_of(d, s)) /* one in a session is told, and ends at its epoch */
            driver_end_attempt(s, STOP_SEARCH, false);
        return;
    }
    (void)sched_ended(&d->study->sched, x->number, OUTCOME_STOPPED);
    driver_tell(d, (struct driver_news){ .kind = NEWS_ENDED, .trial = &t->row, .text = t->row.reason });
    study_drop(d->study, x->number);
}

static int put_retry(void *ctx, struct store *store, struct err *e)
{
    struct asked *x = ctx;
    char text[64];
    int rc = study_put_retry(x->d->study, x->r.trial, &x->again, &x->n_again, e);
    if (rc < 0)
        return rc;
    if (x->n_again == 0)
        return refuse(x, store, e, x->r.trial ? "only what has failed can be tried again" : "no trial has failed");
    (void)snprintf(text, sizeof text, "%zu to be tried again", x->n_again);
    return store_request_answer(store, x->r.id, true, text, e);
}

static void retry_now(struct driver *d, const struct asked *x)
{
    for (size_t i = 0; i < x->n_again; i++) {
        int rc = study_take_again(d->study, x->again[i], d->e);
        if (rc < 0) {
            driver_fail(d, rc);
            return;
        }
    }
}

/* Its trial is made in the transaction that answers; until then it waits in the store, too. */
static int put_refused(void *ctx, struct store *store, struct err *e)
{
    const struct asked *x = ctx;
    return refuse(x, store, e, "it is no point of the space: name each hyperparameter, with a value that it can have");
}

static void on_answered(void *ctx, int rc, const struct err *e)
{
    struct asked *x = ctx;
    struct driver *d = x->d;
    if (!driver_store_failed(d, rc, e) && x->number)
        stop_now(d, x);
    if (d->rc == 0)
        retry_now(d, x);
    free_asked(x);
    d->n_asked--;
    if (d->rc == 0)
        driver_schedule(d);
}

static const struct {
    const char *kind;
    int (*rows)(void *ctx, struct store *s, struct err *e);
} acts[] = { { "stop", put_stop }, { "add", put_refused }, { "retry", put_retry } };

/* 1: the search's next answer is this point. */
static int add_point(struct driver *d, const struct store_request *r)
{
    AUTO_JSON json_t *j = r->text ? json_loads(r->text, 0, NULL) : NULL;
    struct point p;
    if (!j || space_point_named(&d->study->plan->space, j, &p) < 0)
        return 0;
    d->turned = true;
    return study_add_point(d->study, r->id, &p) < 0 ? -ENOMEM : 1;
}

/* One that is being started can be ended in a moment. */
static bool must_wait(struct driver *d, const struct store_request *r)
{
    const struct slot *s = r->trial ? driver_slot_of_trial(d, r->trial) : NULL;
    return (s && !s->a.running) || (d->given_up && r->trial == d->given_up->row.number);
}

static int take_request(void *ctx, const struct store_request *r)
{
    struct driver *d = ctx;
    size_t k = 0;
    while (k < ARRAY_LEN(acts) && strcmp(acts[k].kind, r->kind) != 0)
        k++;
    if (r->id <= d->heard_id || d->waits_request || k == ARRAY_LEN(acts))
        return 0;
    if (must_wait(d, r)) {
        d->waits_request = true; /* those behind it, too: they are taken in their order */
        return 0;
    }
    d->heard_id = r->id;
    int rc = strcmp(r->kind, "add") == 0 ? add_point(d, r) : 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    struct asked *x = calloc(1, sizeof *x);
    if (!x || store_request_copy(&x->r, r) < 0) {
        free(x);
        return -ENOMEM;
    }
    x->d = d;
    rc = driver_hand_over(d, (struct write){ .rows = acts[k].rows, .done = on_answered, .ctx = x });
    d->n_asked++;
    if (rc < 0) {
        d->n_asked--;
        free_asked(x);
    }
    return 0;
}

/* --- time --- */

static int read_queue(struct driver *d)
{
    struct store_queued q = { 0 };
    struct study *s = d->study;
    int rc = store_queue_find(s->reader, s->name, &q, d->e);
    if (rc == 1 &&
        (d->o->queued || q.pid == getpid())) /* or run by hand when its turn came: then it has no share, but an end */
        follow(d, &q);
    store_queued_done(&q);
    d->waits_request = false;
    d->read_queue = true;
    if (rc >= 0)
        rc = store_requests(s->reader, s->name, take_request, d, d->e);
    return rc == -ENOMEM ? err_sys(d->e, rc, "study '%s'", s->name) : rc;
}

int driver_set_up_queue(struct driver *d)
{
    struct store_queued q = { 0 };
    struct study *s = d->study;
    d->share = -1;
    d->use.most = -1;
    int rc = d->o->queued ? store_queue_find(s->reader ? s->reader : s->store, s->name, &q, d->e) : 0;
    if (rc == 1) {
        d->queue_id = q.id;
        take_share(d, q.share);
    }
    store_queued_done(&q);
    return rc < 0 ? rc : 0;
}

bool driver_looks_at_queue(struct driver *d)
{
    if (!d->read_queue && d->rc == 0 && d->study->reader) {
        int rc = read_queue(d);
        if (rc < 0)
            driver_fail(d, rc);
        return rc == 0 && d->study->n_added > 0;
    }
    return false;
}

void driver_minds_queue(struct driver *d)
{
    struct store_queued q = { 0 };
    struct study *s = d->study;
    struct err ignored; /* the next tick tells it */
    int64_t changes = 0;
    if (!d->o->queued || !s->reader || store_changes(s->reader, &changes, &ignored) < 0 || changes == d->changes)
        return;
    if (store_queue_find(s->reader, s->name, &q, &ignored) == 1)
        drain(d, strcmp(q.state, QUEUE_DRAINING) == 0);
    store_queued_done(&q);
}

void driver_tick_queue(struct driver *d)
{
    int64_t changes = 0;
    if (d->rc < 0 || d->adopting || !d->study->reader)
        return;
    int rc = store_changes(d->study->reader, &changes, d->e);
    if (rc == 0 && (changes != d->changes || d->waits_request)) {
        d->changes = changes;
        rc = read_queue(d);
    }
    if (rc < 0) {
        driver_fail(d, rc);
        return;
    }
    if (d->turned)
        driver_schedule(d);
    d->turned = false;
    tell_use(d);
}
