#include "live/driver.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/own.h"
#include "live/driver_state.h"
#include "live/hosts.h"
#include "live/nodes.h"
#include "live/places.h"
#include "live/publish.h"
#include "live/resizer.h"
#include "live/slurm.h"
#include "live/tidy.h"
#include "live/tuning.h"
#include "live/writer.h"

enum {
    TICK_MS = 100,       /* how often logs are looked at: an effect is seen well within a second */
    BUSY_RETRY_MS = 500, /* between two tries for a folder that is still held */
    BUSY_TRIES = 60,
    READY_MS = 60000,   /* a launcher may take to say that it is ready */
    ABANDON_MS = 10000, /* after KILL, what still does not end is left */
};

void driver_tell(struct driver *d, struct driver_news n)
{
    bool ends = n.kind == NEWS_ENDED || n.kind == NEWS_COPY;
    if (n.kind == NEWS_LAUNCH || ends)
        publish_trial(d->study->publish, n.trial, n.attempt, ends);
    if (n.kind == NEWS_LAUNCH)
        publish_setting(d->study->publish, n.trial->number, n.trial->effective, 0);
    if (d->o->watch)
        d->o->watch(d->o->ctx, &n);
}

/* The loop cannot go on; what runs goes on without it. */
void driver_fail(struct driver *d, int rc)
{
    if (d->rc == 0)
        d->rc = rc;
    uv_stop(&d->loop);
}

void driver_note(struct driver *d, const struct store_trial *trial, const char *text)
{
    driver_tell(d, (struct driver_news){ .kind = NEWS_NOTE, .trial = trial, .text = text });
}

struct slot *driver_slot(struct driver *d, uint64_t id)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->slots[i]->a.id == id)
            return d->slots[i];
    return NULL;
}

struct slot *driver_add_slot(struct driver *d)
{
    struct slot **grown = array_more(d->slots, d->n, &d->cap, sizeof(struct slot *));
    if (!grown)
        return NULL;
    d->slots = grown;
    struct slot *s = calloc(1, sizeof *s);
    if (s) {
        s->a.heard_fd = -1;
        d->slots[d->n++] = s;
        d->turned_ms = clock_ms();
        d->changed_ms = study_clock_ms(d->study);
    }
    return s;
}

void driver_drop_slot(struct driver *d, struct slot *s)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->slots[i] != s)
            continue;
        memmove(&d->slots[i], &d->slots[i + 1], (d->n - i - 1) * sizeof(struct slot *));
        d->n--;
        d->turned_ms = clock_ms();
        d->changed_ms = study_clock_ms(d->study);
        break;
    }
    attempt_done(&s->a);
    free(s);
}

struct slot *driver_slot_of_trial(struct driver *d, int number)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->slots[i]->a.trial && d->slots[i]->a.trial->row.number == number)
            return d->slots[i];
    return NULL;
}

/* Older checkpoints go when newer ones are whole. What cannot be removed now `gc` removes. */
void driver_tidy(struct driver *d, const struct attempt *a)
{
    struct tidy t = { 0 };
    const struct plan *p = d->study->plan;
    if (a->checkpoint_dir)
        (void)tidy_checkpoints(&t, d->study->reader, &a->trial->row, config_maximise(&p->cfg),
                               tidy_keep_find(p->cfg.keep), a->checkpoint_dir, NULL);
}

/* --- the launcher's word --- */

/* The attempt is stored as running; what was to be sent has been. */
void driver_has_begun(struct driver *d, struct slot *s)
{
    s->a.running = true;
    s->a.born_ms = s->a.line_ms = clock_ms();
    if (!d->first_launch_ms)
        d->first_launch_ms = clock_boot_ms() - (clock_ms() - s->started_ms);
    s->narrow_ms = d->narrows ? s->a.born_ms + (s->a.run_id ? 0 : NARROW_MS) : 0;
    driver_tell(d, (struct driver_news){ .kind = NEWS_LAUNCH, .trial = &s->a.trial->row, .attempt = s->a.row.number });
}

static void tell_unlimited(struct driver *d, const char *why)
{
    char text[400];
    if (!*why || d->told_unlimited)
        return;
    d->told_unlimited = true;
    (void)snprintf(text, sizeof text, "memory has no limit here, and trials may take more than their setting gives: %s",
                   why);
    driver_note(d, NULL, text);
}

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    failpoint("launcher-ready");
    if (d->rc < 0) /* without a go it ends by itself */
        return;
    int rc = attempt_ready(&s->a, r, d->e);
    if (rc < 0)
        driver_fail(d, rc);
    else
        driver_store_launch(d, s);
    tell_unlimited(d, r->unlimited);
}

/* Back to what it was before the try: nothing was stored. */
void driver_give_back(struct driver *d, struct slot *s)
{
    (void)sched_ended(&d->study->sched, s->a.trial->row.number, OUTCOME_INTERRUPTED);
    if (s->a.dir && d->study->plan->secrets.knobs)
        secrets_forget(s->a.dir);
    driver_let_go(d, s);
    driver_drop_slot(d, s);
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    s->a.at.row->let_go(MOVE_PTR(s->a.at.own), false);
    if (s->stores == STORES_LAUNCH) { /* it was ready, and has died since */
        s->gone = true;
        return;
    }
    if (busy && ++s->busy_tries < BUSY_TRIES && d->interrupts == 0) {
        s->retry_ms = clock_ms() + BUSY_RETRY_MS;
        return;
    }
    if (d->result->end == DRIVER_DONE) {
        d->result->end = DRIVER_ENVIRONMENT;
        (void)snprintf(d->result->why, sizeof d->result->why, "%s/%d cannot be started: %s", d->study->name,
                       s->a.trial->row.number, why);
    }
    d->study->sched.stopping = true;
    driver_give_back(d, s);
    driver_schedule(d);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct driver *d = ctx;
    struct slot *s = driver_slot(d, id);
    const struct warm *w = driver_warm_of(d, s);
    s->a.told_to_end |= w && w->ending;
    /* The launcher has ended what was below it; if it was killed itself, what it left is ended here. */
    attempt_signal(&s->a, true);
    driver_settle(d, s);
}

/* --- starting --- */

int driver_start_launcher(struct driver *d, struct slot *s, struct study_trial *t)
{
    AUTO_ORDER struct site_order order = { 0 };
    if (d->gangs)
        return driver_start_gang(d, s, t);
    const struct site site = driver_site(d, t->place);
    int rc = attempt_prepare(&s->a, d->study, t, &site, &order, d->e);
    s->started_ms = clock_ms();
    driver_own(d, &s->a);
    order.room = driver_want(d, t);
    if (d->study->plan->app.kind->held && !space_knob(&d->study->plan->space, KNOB_CORES))
        order.room.cpus = 0; /* nothing says how many it uses */
    return rc < 0 ? rc : site.row->start(site.own, s->a.id, &order, &s->a.at, d->e);
}

static void start(struct driver *d, int number)
{
    struct study_trial *t = study_trial(d->study, number);
    struct err why;
    int place = driver_place(d, number); /* one there is, since the scheduler was told so */
    t->place = place > 0 ? (size_t)place : 0;
    sched_started(&d->study->sched, number);
    if (study_slots(d->study, t, &why) < 0 || (d->gangs && driver_gang_never_fits(d, t, why.text, sizeof why.text))) {
        driver_give_up(d, t, why.text); /* what has been refused since it was asked for leaves nothing */
        return;
    }
    aims_launched(d->study);
    driver_tell_load(d); /* whether others wait for room decides what it is launched with */
    int rc = d->cluster ? driver_choose_in_cluster(d, t) : d->study->tuning ? driver_choose(d, t) : 0;
    struct slot *s = rc == 0 ? driver_add_slot(d) : NULL;
    if (!s) {
        driver_fail(d, rc < 0 ? rc : err_sys(d->e, -ENOMEM, "trial %d", number));
        return;
    }
    rc = driver_take_room(d, t);
    if (rc < 0) {
        driver_fail(d, rc);
        return;
    }
    rc = driver_serves(d, t->place) ? driver_start_in_session(d, s, t) : driver_start_launcher(d, s, t);
    failpoint("launcher-spawned");
    if (rc < 0)
        driver_fail(d, rc);
    else if (d->packs)
        driver_neighbours_changed(d, t->place);
}

/* The search is asked when it, and who reads the store, knows all that has happened. */
static bool may_ask(const struct driver *d)
{
    return !d->asking && !d->given_up && !driver_is_storing(d, STORES_END);
}

/* Sessions that no trial is left for, or that stand in one's way; with the end of the study all of them, and the loop. */
static void end_what_waits(struct driver *d, bool over)
{
    const struct sched *s = &d->study->sched;
    bool none_left = sched_waiting(s) == 0 && sched_paused(s) == 0 && study_unasked(d->study) == 0;
    if (over)
        driver_end_sessions(d);
    else if (d->pool && (none_left || driver_is_short(d)))
        driver_end_idle_sessions(d);
}

/* Once. */
static void tell_closed(struct driver *d)
{
    char text[AIM_WHY_MAX + 32];
    if (!d->study->sched.closed || d->told_closed)
        return;
    d->told_closed = true;
    (void)snprintf(text, sizeof text, "the study ends: %s", d->study->aims.why);
    driver_note(d, NULL, text);
}

/* The search has ended: are there points to be trained again? */
static bool has_repeats(struct driver *d)
{
    int n = repeats_plan(d->study, d->e);
    char text[160];
    if (n < 0)
        driver_fail(d, n);
    if (n <= 0)
        return false;
    (void)snprintf(text, sizeof text, "the search has ended; its best points are trained again, %d time%s in all", n,
                   n == 1 ? "" : "s");
    driver_note(d, NULL, text);
    return true;
}

/* It has been told to end, or the last tenth of its last epoch has begun: the search is asked while it still trains, so that no core waits for
 * what that takes, and no earlier, so that it knows as much as may be. */
static bool is_ending(const struct slot *s)
{
    const struct attempt *a = &s->a;
    if (!a->running)
        return false;
    int epochs = a->trial->row.epochs;
    bool last = fold_epoch_now(&a->fold) == epochs; /* else what is counted is the one before */
    bool late = a->fold.records_all > 0 && 10 * a->fold.records_done >= 9 * a->fold.records_all;
    if (a->row.ends_at) /* … and started again, where the search has gone on with it meanwhile */
        return strcmp(a->row.ends_as, outcome_name(OUTCOME_INTERRUPTED)) != 0;
    return a->epochs_done >= epochs || (last && late);
}

static int count_ending(const struct driver *d)
{
    int n = 0;
    for (size_t i = 0; d->study->sched.learns && i < d->n; i++)
        n += is_ending(d->slots[i]);
    return n;
}

/* Starts what can be started; ends the loop when nothing is left. */
void driver_schedule(struct driver *d)
{
    int number;
    if (d->adopting || d->over)
        return;
    driver_minds_queue(d);
    d->awaits_cpus = false;
    d->study->sched.ending = count_ending(d);
    tell_closed(d);
    while (d->rc == 0) {
        enum sched_verb verb = sched_next(&d->study->sched, driver_fits, d, &number);
        d->awaits_cpus =
            verb == SCHED_START && d->n == 0 && driver_place(d, number) == 0 && !driver_has_cpus(d, number);
        d->awaits_place = verb == SCHED_END && (driver_awaits_hosts(d) || driver_awaits_cluster(d));
        if (d->awaits_place)
            end_what_waits(d, false);
        if (d->awaits_cpus || d->awaits_place)
            break;
        if (verb == SCHED_START && !d->given_up) {
            start(d, number);
            continue;
        }
        if (verb == SCHED_END && may_ask(d) && d->n == 0 && (driver_looks_at_queue(d) || has_repeats(d)))
            continue;
        if (verb == SCHED_ASK && may_ask(d))
            driver_ask(d);
        else if ((verb == SCHED_WAIT || verb == SCHED_END) && !d->asking && d->n_asked == 0)
            end_what_waits(d, verb == SCHED_END);
        break;
    }
    driver_tell_load(d);
    if (d->leaving)
        uv_stop(&d->loop);
}

/* --- ending all --- */

/* Those of which nothing is stored are let go of: without a go they end by themselves. */
static void drop_starting(struct driver *d)
{
    for (size_t i = d->n; i-- > 0;)
        if (!d->slots[i]->a.running && d->slots[i]->stores == STORES_NOTHING)
            driver_give_back(d, d->slots[i]);
}

static void end_all(struct driver *d, enum attempt_stop why, bool hard)
{
    drop_starting(d);
    for (size_t i = 0; i < d->n; i++)
        driver_end_attempt(d->slots[i], why, hard);
    for (size_t i = 0; i < pool_count(d->pool); i++)
        if (pool_at(d->pool, i)->trial == 0 || hard)
            pool_end(d->pool, pool_at(d->pool, i), hard);
    driver_schedule(d);
}

/* The study is measured by what does not come: that is for its config to mend. */
void driver_note_no_metric(struct driver *d)
{
    if (!d->study->no_metric[0] || d->result->end != DRIVER_DONE)
        return;
    d->result->end = DRIVER_CONFIG;
    (void)snprintf(d->result->why, sizeof d->result->why, "%s", d->study->no_metric);
}

static void end_without_metric(struct driver *d)
{
    driver_note_no_metric(d);
    if (d->result->end != DRIVER_CONFIG || d->no_metric)
        return;
    d->no_metric = true;
    end_all(d, STOP_METRIC, false);
}

/* --- the clock --- */

void driver_end_attempt(struct slot *s, enum attempt_stop why, bool hard)
{
    if (s->stores == STORES_END) /* it has */
        return;
    struct warm *w = driver_warm_of(s->a.ctx, s);
    if (w) /* the session ends with it, and serves nobody else, even if this trial is done before */
        w->ending = true;
    s->a.trial->end_told = true;
    s->a.stop = s->a.stop == STOP_NONE ? why : s->a.stop;
    if (s->a.kill_ms == 0)
        s->a.kill_ms = clock_ms() + ATTEMPT_KILL_AFTER_MS;
    attempt_signal(&s->a, hard); /* of a session that serves it: the session ends, and is told to be gone */
}

static void retry_start(struct driver *d, struct slot *s)
{
    struct study_trial *t = s->a.trial;
    int tries = s->busy_tries;
    driver_measure_no_more(d, s); /* the next one has another tag */
    driver_free_gang_room(d, &s->a);
    attempt_done(&s->a);
    int rc = driver_start_launcher(d, s, t);
    s->busy_tries = tries;
    s->retry_ms = 0;
    if (rc < 0)
        driver_fail(d, rc);
}

static struct wait start_of(const struct driver *d)
{
    return (struct wait){ .kind = WAIT_START, .words = &d->study->plan->app.kind->words };
}

/* What is yet to begin waits for its launcher, or for its session. */
static void tell_coming(struct driver *d, const struct slot *s)
{
    const struct warm *w = driver_warm_of(d, s);
    driver_tell(d, (struct driver_news){
                       .kind = NEWS_TICK, .trial = &s->a.trial->row, .cores = NAN, .wait = w ? w->wait : start_of(d) });
}

/* The search does not go on with it, at least for now. A session is told and stays; what runs by itself is ended as soon as it can be gone on
 * with. */
static int end_at_epoch(struct driver *d, struct slot *s, int64_t now)
{
    struct attempt *a = &s->a;
    struct warm *w = driver_warm_of(d, s);
    if (a->kill_ms || (a->end_said && !attempt_ignores_end(a, now)) || (d->asking && !a->trial->end_told))
        return 0; /* the search is being asked, and may go on with this one after all */
    a->trial->end_told = true;
    if (w && !a->end_said && pool_hears_end(w)) {
        a->end_said = pool_end_run(w, a->run_id, a->row.ends_at) == 0; /* else at the next tick */
        a->end_said_ms = now;
        failpoint("end-said");
        return 0;
    }
    attempt_say_stop(a);
    int rc = attempt_can_end(a, now, d->e);
    failpoint("end-due");
    if (rc == 1)
        driver_end_attempt(s, STOP_SEARCH, false);
    return rc < 0 ? rc : 0;
}

/* Figures that it would have found are missing from here on. */
static void tell_dropped(struct driver *d, const struct slot *s)
{
    const char *pattern = lines_dropped(&s->a.stream);
    if (!pattern)
        return;
    char text[320];
    (void)snprintf(
        text, sizeof text,
        "the pattern '%.160s' takes too long on what is printed and is not used any more: make it simpler, in "
        "'progress' of the application file",
        pattern);
    driver_note(d, &s->a.trial->row, text);
}

/* False when the loop is to end. */
static bool tend(struct driver *d, struct slot *s, int64_t now)
{
    if (s->stores == STORES_END)
        return d->rc == 0;
    if (s->retry_ms && now >= s->retry_ms)
        retry_start(d, s);
    if (s->narrow_ms && now >= s->narrow_ms)
        driver_narrow(d, s);
    if (d->measures && !s->measured && !s->retry_ms)
        driver_measure(d, s);
    if (!s->a.running && s->a.at.own && !s->a.trial->place && s->stores == STORES_NOTHING &&
        now - s->started_ms > READY_MS)
        s->silent = true;
    if (!s->a.running && d->rc == 0)
        tell_coming(d, s);
    if (!s->a.running || d->rc < 0)
        return d->rc == 0;
    int rc = attempt_read(&s->a, now, d->e);
    tell_dropped(d, s);
    if (rc == 0 && s->a.row.ends_at && s->a.n_put == 0) /* stored before it is acted on */
        rc = end_at_epoch(d, s, now);
    if (rc < 0) {
        driver_fail(d, rc);
        return false;
    }
    if (attempt_has_news(&s->a) && driver_store_news(d) < 0)
        return false;
    enum attempt_stop why = attempt_overdue(&s->a, now);
    if (why == STOP_NO_ROOM && s->a.kill_ms == 0)
        s->a.crowded_out = driver_is_crowded_out(d, s, s->a.why_no_room);
    if (why != STOP_NONE && s->a.kill_ms == 0)
        driver_end_attempt(s, why, false);
    else if (s->a.kill_ms && now >= s->a.kill_ms) {
        s->a.kill_ms = now + ABANDON_MS;
        attempt_signal(&s->a, true);
    }
    driver_tell(d, (struct driver_news){ .kind = NEWS_TICK,
                                         .trial = &s->a.trial->row,
                                         .attempt = s->a.row.number,
                                         .fold = &s->a.fold,
                                         .cores = s->a.row.cores,
                                         .wait = attempt_wait(&s->a) });
    return d->rc == 0;
}

/* After the walk over the slots, since refusing one drops it. */
static void refuse_silent(struct driver *d)
{
    for (size_t i = d->n; i-- > 0;)
        if (i < d->n && d->slots[i]->silent)
            on_refused(d, d->slots[i]->a.id, false, "its launcher does not answer");
}

static void on_tick(uv_timer_t *timer)
{
    struct driver *d = timer->data;
    int64_t now = clock_ms();
    for (size_t i = 0; i < d->n; i++)
        if (!tend(d, d->slots[i], now))
            return;
    aims_tick(d->study);
    driver_tell(d, (struct driver_news){ .kind = NEWS_TICK });
    refuse_silent(d);
    driver_settle_served(d, now);
    if (d->pool)
        pool_tick(d->pool, now);
    driver_tick_idle(d, now);
    end_without_metric(d);
    int rc = d->rc == 0 ? tuning_tick(d->study->tuning, study_clock_ms(d->study), d->e) : 0;
    if (rc == 0 && d->rc == 0)
        rc = driver_tick_samples(d);
    if (rc < 0)
        driver_fail(d, rc);
    driver_tick_cpus(d);
    driver_tick_hosts(d);
    driver_tick_cluster(d);
    driver_tick_outlook(d, now);
    driver_tick_queue(d);
    if (d->packs || d->gone_warm || d->awaits_cpus || d->hosts || d->slurm || d->study->woken ||
        count_ending(d) > 0) /* one that has settled since may have made room */
        driver_schedule(d);
    d->gone_warm = d->study->woken = false;
}

/* --- signals --- */

void driver_interrupt(struct driver *d)
{
    d->interrupts++;
    if (d->over) {
        publish_hurry(d->study->publish);
        return;
    }
    d->study->sched.stopping = true;
    d->result->end = DRIVER_INTERRUPTED;
    driver_tell(d,
                (struct driver_news){ .kind = NEWS_NOTE,
                                      .text = d->interrupts == 1 ? "ending the trials; once more to kill them at once"
                                                                 : "killing the trials" });
    end_all(d, STOP_USER, d->interrupts > 1);
}

static void on_interrupt(uv_signal_t *handle, int signum)
{
    (void)signum;
    driver_interrupt(handle->data);
}

void driver_leave(struct driver *d)
{
    d->leaving = true;
    if (d->over) {
        publish_hurry(d->study->publish);
        return;
    }
    d->result->end = DRIVER_LEFT;
    uv_stop(&d->loop);
}

static void on_hangup(uv_signal_t *handle, int signum)
{
    (void)signum;
    driver_leave(handle->data);
}

static void on_epoch(struct attempt *a, const struct store_epoch *row)
{
    struct driver *d = a->ctx;
    driver_tidy(d, a);
    driver_tell(
        d, (struct driver_news){ .kind = NEWS_EPOCH, .trial = &a->trial->row, .attempt = a->row.number, .epoch = row });
    driver_foretell(d, a->trial->row.number, row->epoch);
}

void driver_own(struct driver *d, struct attempt *a)
{
    a->id = ++d->next_id;
    a->on_epoch = on_epoch;
    a->ctx = d;
}

/* --- the loop --- */

static int watch_signal(struct driver *d, uv_signal_t *h, uv_signal_cb cb, int signum)
{
    int rc = uv_signal_init(&d->loop, h);
    h->data = d;
    return rc < 0 ? rc : uv_signal_start(h, cb, signum);
}

static int set_up(struct driver *d)
{
    int rc = watch_signal(d, &d->sig_int, on_interrupt, SIGINT);
    if (rc == 0)
        rc = watch_signal(d, &d->sig_term, on_interrupt, SIGTERM);
    if (rc == 0)
        rc = watch_signal(d, &d->sig_hup, on_hangup, SIGHUP);
    if (rc == 0)
        rc = uv_timer_init(&d->loop, &d->tick);
    d->tick.data = d;
    if (rc == 0)
        rc = uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    return rc < 0 ? err_set(d->e, rc, "the event loop cannot start: %s", uv_strerror(rc)) : 0;
}

/* Ours; those of launchers, sessions and helpers are closed by their owners, some only when a child has ended. */
static void close_own(uv_handle_t *h, void *ctx)
{
    if (h->data == ctx && !uv_is_closing(h))
        uv_close(h, NULL);
}

static void tear_down(struct driver *d)
{
    if (d->study->writer)
        writer_finish(d->study->writer); /* while those are there who handed something over */
    store_trial_done(&d->asked.row);     /* of a proposal that nobody was told of */
    while (d->n > 0)
        driver_drop_slot(d, d->slots[d->n - 1]);
    free(d->slots);
    pool_close(d->pool);
    free(d->serves);
    hosts_close(d->hosts);
    gangs_close(d->gangs);
    slurm_close(d->slurm);
    cluster_close(d->cluster);
    resizer_close(d->resizer);
    nodes_close(d->nodes);
    places_close(d->places);
    driver_close_outlook(d);
    driver_close_samples(d);
    tuning_close(d->study->tuning);
    d->study->tuning = NULL;
    uv_walk(&d->loop, close_own, d);
    /* The close callbacks. A stop that no run has taken up yet ends the first of them at once. */
    while (uv_run(&d->loop, UV_RUN_DEFAULT) != 0)
        ;
    (void)uv_loop_close(&d->loop);
}

static void run_loop(struct driver *d)
{
    driver_schedule(d);
    while (d->rc == 0 && !d->leaving &&
           (d->asking || d->given_up || d->n_asked > 0 || (d->awaits_cpus && !places_is_ready(d->places)))) {
        (void)uv_run(&d->loop, UV_RUN_ONCE); /* a proposal, or a hello, away: not until the next tick */
        driver_schedule(d);
    }
    bool more = d->rc == 0 && !d->leaving && (d->n > 0 || pool_count(d->pool) > 0 || d->awaits_cpus || d->awaits_place);
    if (more)
        (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* until uv_stop() */
}

/* The study ends, and goes on with none of these. */
static int stop_left(struct driver *d)
{
    for (int number; (number = sched_left(&d->study->sched)) != 0;) {
        struct study_trial *t = study_trial(d->study, number);
        int rc = study_stop(d->study, t, d->e);
        if (rc < 0)
            return rc;
        driver_tell(d, (struct driver_news){ .kind = NEWS_ENDED, .trial = &t->row, .text = t->row.reason });
        study_drop(d->study, number);
    }
    return 0;
}

static void conclude(struct driver *d)
{
    struct driver_result *r = d->result;
    r->launch_to_end_s = d->first_launch_ms ? (double)(clock_boot_ms() - d->first_launch_ms) / 1000.0 : NAN;
}

int driver_run(struct study *s, const struct driver_options *o, struct driver_result *out, struct err *e)
{
    *out = (struct driver_result){ .end = DRIVER_DONE, .launch_to_end_s = NAN };
    struct driver d = {
        .study = s, .o = o, .result = out, .e = e, .ops = { .ready = on_ready, .refused = on_refused, .gone = on_gone }
    };
    d.here = (struct site_here){ &d.loop, &d.ops, &d };
    int rc = driver_open_loop(&d);
    if (rc < 0)
        return rc;
    rc = set_up(&d);
    if (rc == 0)
        rc = driver_set_up_tuning(&d);
    if (rc == 0)
        rc = driver_set_up_queue(&d);
    if (rc == 0)
        rc = driver_set_up_outlook(&d);
    if (rc == 0)
        rc = driver_adopt(&d);
    if (rc == 0) {
        run_loop(&d);
        d.over = true;
        if (d.rc == 0)
            writer_finish(s->writer);
        rc = d.rc;
    }
    if (rc == 0 && out->end == DRIVER_DONE && d.n == 0 && !s->sched.stopping)
        rc = stop_left(&d);
    conclude(&d);
    driver_end_samples(&d, rc);
    tear_down(&d);
    return rc < 0 ? rc : d.rc;
}
