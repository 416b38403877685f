#include "live/driver.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/own.h"
#include "live/attempt.h"

enum {
    TICK_MS = 100,       /* how often logs are looked at: an effect is seen well within a second */
    BUSY_RETRY_MS = 500, /* between two tries for a folder that is still held */
    BUSY_TRIES = 60,
    READY_MS = 60000,   /* a launcher may take to say that it is ready */
    START_TRIES = 3,    /* of a launcher that cannot be forked */
    ABANDON_MS = 10000, /* after KILL, what still does not end is left */
    EXIT_NO_LOOP = 3,   /* the program's exit code for a lacking environment */
};

struct slot {
    struct attempt a;
    int busy_tries;
    bool silent;        /* its launcher never said that it is ready */
    int64_t started_ms; /* monotonic: when its launcher was */
    int64_t retry_ms;   /* monotonic: when to try again to start it; 0: it is starting or runs */
};

struct driver {
    struct study *study;
    const struct driver_options *o;
    struct driver_result *result;
    uv_loop_t loop;
    uv_signal_t sig_int, sig_term, sig_hup;
    uv_timer_t tick;
    struct slot **slots;
    size_t n, cap;
    uint64_t next_id;
    int interrupts;
    bool leaving; /* end the loop, let the trials run */
    int64_t first_launch_ms;
    int rc; /* the error that ends the loop */
    struct err *e;
    struct launcher_ops ops;
};

static void tell(struct driver *d, struct driver_news n)
{
    if (d->o->watch)
        d->o->watch(d->o->ctx, &n);
}

/* The loop cannot go on; what runs goes on without it. */
static void fail(struct driver *d, int rc)
{
    if (d->rc == 0)
        d->rc = rc;
    uv_stop(&d->loop);
}

/* --- slots --- */

static struct slot *slot_of(struct driver *d, uint64_t id)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->slots[i]->a.id == id)
            return d->slots[i];
    return NULL;
}

static struct slot *add_slot(struct driver *d)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 8;
        struct slot **grown = realloc(d->slots, cap * sizeof(struct slot *));
        if (!grown)
            return NULL;
        d->slots = grown;
        d->cap = cap;
    }
    struct slot *s = calloc(1, sizeof *s);
    if (s)
        d->slots[d->n++] = s;
    return s;
}

static void drop_slot(struct driver *d, struct slot *s)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->slots[i] != s)
            continue;
        memmove(&d->slots[i], &d->slots[i + 1], (d->n - i - 1) * sizeof(struct slot *));
        d->n--;
        break;
    }
    attempt_done(&s->a);
    free(s);
}

static void on_epoch(struct attempt *a, const struct store_epoch *row);

static void schedule(struct driver *d);

/* --- an attempt is over --- */

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static void settle(struct driver *d, struct slot *s)
{
    char text[512];
    enum outcome o;
    int rc = attempt_settle(&s->a, text, &o, d->e);
    if (rc < 0) {
        fail(d, rc);
        return;
    }
    const struct store_trial *t = &s->a.trial->row;
    tell(d, (struct driver_news){ .kind = NEWS_ENDED, .trial = t, .attempt = s->a.row.number, .text = or_null(text) });
    if (o == OUTCOME_ENVIRONMENT && d->result->end == DRIVER_DONE) {
        d->result->end = DRIVER_ENVIRONMENT;
        (void)snprintf(d->result->why, sizeof d->result->why, "trial %d cannot run here: %s", t->number, text);
    }
    int number = t->number;
    bool final = trial_state_is_final((enum trial_state)trial_state_parse(t->state));
    drop_slot(d, s);
    if (final)
        study_drop(d->study, number);
    schedule(d);
}

/* --- the launcher's word --- */

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct driver *d = ctx;
    struct slot *s = slot_of(d, id);
    failpoint("launcher-ready");
    int rc = attempt_commit(&s->a, r, d->e);
    if (rc < 0) {
        fail(d, rc);
        return;
    }
    rc = launcher_go(s->a.launcher);
    failpoint("go-sent");
    if (rc < 0) { /* it has died since; its end is on the way */
        tell(d, (struct driver_news){
                    .kind = NEWS_NOTE, .trial = &s->a.trial->row, .text = "its launcher died at the start" });
    }
    s->a.running = true;
    s->a.born_ms = s->a.line_ms = clock_ms();
    if (!d->first_launch_ms)
        d->first_launch_ms = s->a.born_ms;
    tell(d, (struct driver_news){ .kind = NEWS_LAUNCH, .trial = &s->a.trial->row, .attempt = s->a.row.number });
}

/* Back to what it was before the try: nothing was stored. */
static void give_back(struct driver *d, struct slot *s)
{
    (void)sched_ended(&d->study->sched, s->a.trial->row.number, OUTCOME_INTERRUPTED);
    drop_slot(d, s);
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    struct driver *d = ctx;
    struct slot *s = slot_of(d, id);
    launcher_free(MOVE_PTR(s->a.launcher));
    if (busy && ++s->busy_tries < BUSY_TRIES && d->interrupts == 0) {
        s->retry_ms = clock_ms() + BUSY_RETRY_MS;
        return;
    }
    if (d->result->end == DRIVER_DONE) {
        d->result->end = DRIVER_ENVIRONMENT;
        (void)snprintf(d->result->why, sizeof d->result->why, "trial %d cannot be started: %s", s->a.trial->row.number,
                       why);
    }
    d->study->sched.stopping = true;
    give_back(d, s);
    schedule(d);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct driver *d = ctx;
    struct slot *s = slot_of(d, id);
    launcher_free(MOVE_PTR(s->a.launcher));
    /* The launcher has ended what was below it; if it was killed itself, what it left is ended here. */
    attempt_signal(&s->a, true);
    settle(d, s);
}

/* --- starting --- */

static int start_launcher(struct driver *d, struct slot *s, struct study_trial *t)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    int rc = attempt_prepare(&s->a, d->study, t, &argv, d->e);
    s->started_ms = clock_ms();
    s->a.id = ++d->next_id;
    s->a.on_epoch = on_epoch;
    s->a.ctx = d;
    if (rc < 0)
        return rc;
    for (int i = 0; i < START_TRIES; i++) {
        rc = launcher_start(&s->a.launcher, &d->loop, &d->ops, d, s->a.id, argv.v, d->e);
        if (rc != -EAGAIN)
            break;
    }
    return rc;
}

static void start(struct driver *d, int number)
{
    struct study_trial *t = study_trial(d->study, number);
    struct slot *s = add_slot(d);
    if (!s) {
        fail(d, err_sys(d->e, -ENOMEM, "trial %d", number));
        return;
    }
    sched_started(&d->study->sched, number);
    int rc = start_launcher(d, s, t);
    failpoint("launcher-spawned");
    if (rc < 0)
        fail(d, rc);
}

static void ask(struct driver *d)
{
    struct study_trial *t = NULL;
    int copy = 0;
    int rc = study_ask(d->study, &t, &copy, d->e);
    if (rc < 0) {
        fail(d, rc);
        return;
    }
    if (rc == 0)
        return;
    enum trial_state state = (enum trial_state)trial_state_parse(t->row.state);
    if (!trial_state_is_final(state))
        return;
    char text[64];
    (void)snprintf(text, sizeof text, "same settings as trial %d", copy);
    tell(d, (struct driver_news){
                .kind = copy ? NEWS_COPY : NEWS_ENDED, .trial = &t->row, .text = copy ? text : t->row.reason });
    study_drop(d->study, t->row.number);
}

static bool starting(const struct driver *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (!d->slots[i]->a.running)
            return true;
    return false;
}

/* Starts what can be started; ends the loop when nothing is left. */
static void schedule(struct driver *d)
{
    int number;
    while (d->rc == 0) {
        enum sched_verb verb = sched_next(&d->study->sched, &number);
        if (verb == SCHED_START)
            start(d, number);
        else if (verb == SCHED_ASK)
            ask(d);
        else if (verb == SCHED_WAIT)
            break;
        else {
            uv_stop(&d->loop);
            break;
        }
    }
    if (d->leaving)
        uv_stop(&d->loop);
}

/* --- the clock --- */

static void end_attempt(struct slot *s, enum attempt_stop why, bool hard)
{
    s->a.stop = s->a.stop == STOP_NONE ? why : s->a.stop;
    if (s->a.kill_ms == 0)
        s->a.kill_ms = clock_ms() + ATTEMPT_KILL_AFTER_MS;
    attempt_signal(&s->a, hard);
}

static void retry_start(struct driver *d, struct slot *s)
{
    struct study_trial *t = s->a.trial;
    int tries = s->busy_tries;
    attempt_done(&s->a);
    int rc = start_launcher(d, s, t);
    s->busy_tries = tries;
    s->retry_ms = 0;
    if (rc < 0)
        fail(d, rc);
}

/* False when the loop is to end. */
static bool tend(struct driver *d, struct slot *s, int64_t now)
{
    if (s->retry_ms && now >= s->retry_ms)
        retry_start(d, s);
    if (!s->a.running && s->a.launcher && now - s->started_ms > READY_MS)
        s->silent = true;
    if (!s->a.running || d->rc < 0)
        return d->rc == 0;
    int rc = attempt_read(&s->a, now, d->e);
    if (rc < 0) {
        fail(d, rc);
        return false;
    }
    enum attempt_stop why = attempt_overdue(&s->a, now);
    if (why != STOP_NONE && s->a.kill_ms == 0)
        end_attempt(s, why, false);
    else if (s->a.kill_ms && now >= s->a.kill_ms) {
        s->a.kill_ms = now + ABANDON_MS;
        attempt_signal(&s->a, true);
    }
    tell(d, (struct driver_news){
                .kind = NEWS_TICK, .trial = &s->a.trial->row, .attempt = s->a.row.number, .fold = &s->a.fold });
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
    tell(d, (struct driver_news){ .kind = NEWS_TICK });
    refuse_silent(d);
    if (d->o->detach && !starting(d)) {
        d->leaving = true;
        uv_stop(&d->loop);
    }
}

/* --- signals --- */

static void interrupt_slot(struct driver *d, struct slot *s)
{
    if (s->a.running)
        end_attempt(s, STOP_USER, d->interrupts > 1);
}

/* Those that have no go yet are let go of: they end by themselves, and nothing was stored. */
static void drop_starting(struct driver *d)
{
    for (size_t i = d->n; i-- > 0;)
        if (!d->slots[i]->a.running)
            give_back(d, d->slots[i]);
}

static void on_interrupt(uv_signal_t *handle, int signum)
{
    struct driver *d = handle->data;
    (void)signum;
    d->interrupts++;
    d->study->sched.stopping = true;
    d->result->end = DRIVER_INTERRUPTED;
    tell(d, (struct driver_news){ .kind = NEWS_NOTE,
                                  .text = d->interrupts == 1 ? "ending the trials; once more to kill them at once"
                                                             : "killing the trials" });
    drop_starting(d);
    for (size_t i = 0; i < d->n; i++)
        interrupt_slot(d, d->slots[i]);
    schedule(d);
}

static void on_hangup(uv_signal_t *handle, int signum)
{
    struct driver *d = handle->data;
    (void)signum;
    d->leaving = true;
    d->result->end = DRIVER_LEFT;
    uv_stop(&d->loop);
}

static void on_epoch(struct attempt *a, const struct store_epoch *row)
{
    struct driver *d = a->ctx;
    tell(d,
         (struct driver_news){ .kind = NEWS_EPOCH, .trial = &a->trial->row, .attempt = a->row.number, .epoch = row });
}

/* --- re-adoption --- */

struct finding {
    struct driver *d;
    struct study_trial *trial;
    bool found; /* an attempt that the store says runs */
};

static int find_running(void *ctx, const struct store_attempt *row)
{
    struct finding *f = ctx;
    if (strcmp(row->state, "ended") == 0)
        return 0;
    struct slot *s = add_slot(f->d);
    if (!s)
        return err_sys(f->d->e, -ENOMEM, "trial %d", f->trial->row.number);
    f->found = true;
    int rc = attempt_recall(&s->a, f->d->study, f->trial, row, f->d->e);
    s->a.id = ++f->d->next_id;
    s->a.on_epoch = on_epoch;
    s->a.ctx = f->d;
    return rc < 0 ? rc : 1;
}

/* Goes on with it when it runs, settles it when it does not. */
static int take_up(struct driver *d, struct slot *s)
{
    const struct store_attempt *row = &s->a.row;
    s->a.running = true;
    s->a.born_ms = s->a.line_ms = clock_ms();
    int rc = launcher_adopt(&s->a.launcher, &d->loop, &d->ops, d, s->a.id, (pid_t)row->pid, (uint64_t)row->start_ticks,
                            row->boot_id, d->e);
    if (rc == 0) {
        if (!d->first_launch_ms)
            d->first_launch_ms = s->a.born_ms;
        tell(d, (struct driver_news){
                    .kind = NEWS_LAUNCH, .trial = &s->a.trial->row, .attempt = row->number, .adopted = true });
        return 0;
    }
    if (rc != -ESRCH)
        return rc;
    attempt_signal(&s->a, true);
    settle(d, s);
    return d->rc;
}

static int adopt_one(struct driver *d, struct study_trial *t)
{
    struct finding f = { .d = d, .trial = t };
    int rc = store_attempts(d->study->store, t->row.id, find_running, &f, d->e);
    if (rc < 0)
        return rc;
    if (f.found)
        return take_up(d, d->slots[d->n - 1]);
    (void)sched_ended(&d->study->sched, t->row.number, OUTCOME_INTERRUPTED); /* it had no attempt: start it */
    return 0;
}

static int adopt(struct driver *d)
{
    for (size_t i = d->study->n_open; i-- > 0;) { /* backwards: settling drops trials */
        struct study_trial *t = d->study->open_trials[i];
        int rc = strcmp(t->row.state, trial_state_name(TRIAL_RUNNING)) == 0 ? adopt_one(d, t) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- the loop --- */

/* libuv calls abort() where it finds no memory to grow its tables, and while it starts no descriptors either. That ends the
 * driver like a kill -9, which loses nothing; these only see to it that the end is told. */
static void __attribute__((noreturn)) end_at_once(const char *line)
{
    (void)!write(STDERR_FILENO, line, strlen(line)); /* stdio would ask for memory */
    _exit(EXIT_NO_LOOP);
}

static void *must_have(void *p)
{
    if (!p)
        end_at_once("pipetune: out of memory: what runs goes on and can be found again by the same command\n");
    return p;
}

static void *loop_malloc(size_t n)
{
    return must_have(malloc(n));
}

static void *loop_realloc(void *p, size_t n)
{
    return must_have(realloc(p, n));
}

static void *loop_calloc(size_t n, size_t size)
{
    return must_have(calloc(n, size));
}

static void on_abort(int signum)
{
    (void)signum;
    end_at_once("pipetune: the event loop cannot start: out of memory or descriptors, see ulimit -n\n");
}

static int open_loop(struct driver *d)
{
    struct sigaction ours = { .sa_handler = on_abort }, before;
    (void)uv_replace_allocator(loop_malloc, loop_realloc, loop_calloc, free);
    (void)sigaction(SIGABRT, &ours, &before); /* it cannot fail with these */
    int rc = uv_loop_init(&d->loop);
    (void)sigaction(SIGABRT, &before, NULL);
    return rc < 0 ? err_set(d->e, rc, "the event loop cannot start: %s", uv_strerror(rc)) : 0;
}

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

static void close_handle(uv_handle_t *h, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void tear_down(struct driver *d)
{
    while (d->n > 0)
        drop_slot(d, d->slots[d->n - 1]);
    free(d->slots);
    uv_walk(&d->loop, close_handle, NULL);
    /* The close callbacks. A stop that no run has taken up yet ends the first of them at once. */
    while (uv_run(&d->loop, UV_RUN_DEFAULT) != 0)
        ;
    (void)uv_loop_close(&d->loop);
}

static void run_loop(struct driver *d)
{
    schedule(d);
    bool more = d->rc == 0 && !d->leaving && (d->n > 0 || sched_running(&d->study->sched) > 0);
    if (more)
        (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* until uv_stop() */
}

static void conclude(struct driver *d)
{
    struct driver_result *r = d->result;
    if (d->o->detach && r->end == DRIVER_DONE && d->n > 0)
        r->end = DRIVER_LEFT;
    r->launch_to_end_s = d->first_launch_ms ? (double)(clock_ms() - d->first_launch_ms) / 1000.0 : NAN;
}

int driver_run(struct study *s, const struct driver_options *o, struct driver_result *out, struct err *e)
{
    *out = (struct driver_result){ .end = DRIVER_DONE, .launch_to_end_s = NAN };
    struct driver d = {
        .study = s, .o = o, .result = out, .e = e, .ops = { .ready = on_ready, .refused = on_refused, .gone = on_gone }
    };
    int rc = open_loop(&d);
    if (rc < 0)
        return rc;
    rc = set_up(&d);
    if (rc == 0)
        rc = adopt(&d);
    if (rc == 0) {
        run_loop(&d);
        rc = d.rc;
    }
    conclude(&d);
    tear_down(&d);
    return rc;
}
