/* What trials that run are foretold to come to, reckoned beside the loop: a worker reads the store over a connection of its own, for one trial
 * at a time, once after each epoch. Who falls behind is foretold after a later epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/driver_state.h"
#include "store/outlook.h"

enum {
    WAITING_MAX = 64,
    SETTLE_MS = 300, /* after an epoch was told, until it is committed */
    TRIES_MAX = 20,
};

struct waiting {
    int trial, epoch, tries;
    bool renew; /* other curves are whole by now */
    int64_t from_ms;
};

struct driver_outlook {
    struct driver *d;
    struct store *store;
    struct outlook *outlook;
    uv_work_t work;
    bool working, renew;                 /* for the next one that is asked for */
    struct waiting waiting[WAITING_MAX]; /* the oldest first */
    size_t n;
    struct waiting asked; /* what the worker is at */
    struct store_trial row;
    struct outlook_told told;
    int rc;
};

int driver_set_up_outlook(struct driver *d)
{
    struct study *s = d->study;
    struct store_study row = { 0 };
    if (!d->o->foretells)
        return 0;
    AUTO_FREE char *path = study_store_path(s->plan->cfg.store);
    struct driver_outlook *o = calloc(1, sizeof *o);
    if (!path || !o) {
        free(o);
        return err_sys(d->e, -ENOMEM, "study '%s'", s->name);
    }
    *o = (struct driver_outlook){ .d = d };
    int rc = store_open(&o->store, path, STORE_READ, d->e);
    if (rc == 0)
        rc = store_study_find(o->store, s->name, &row, d->e);
    if (rc == 1)
        rc = outlook_open(&o->outlook, o->store, &row, d->e);
    store_study_done(&row);
    d->outlook = o; /* also a half of it: driver_close_outlook() ends that */
    return rc;
}

static int keep_trial(void *ctx, const struct store_trial *row)
{
    return store_trial_copy(ctx, row) < 0 ? -ENOMEM : 0;
}

/* On a worker: nothing of the driver's is touched. */
static void on_work(uv_work_t *work)
{
    struct driver_outlook *o = work->data;
    struct err ignored;
    if (o->asked.renew)
        outlook_renew(o->outlook);
    else
        outlook_renew_times(o->outlook);
    o->rc = store_trials(o->store, outlook_study(o->outlook), o->asked.trial, keep_trial, &o->row, &ignored);
    if (o->rc == 0 && o->row.id)
        o->rc = outlook_look(o->outlook, &o->row, &o->told, &ignored);
}

static void wait_again(struct driver_outlook *o)
{
    struct waiting w = o->asked;
    for (size_t i = 0; i < o->n; i++)
        if (o->waiting[i].trial == w.trial) /* a later epoch of it has come */
            return;
    w.from_ms = clock_ms() + SETTLE_MS;
    if (++w.tries < TRIES_MAX && o->n < WAITING_MAX)
        o->waiting[o->n++] = w;
}

/* A forecast that cannot be had is none: it stops nothing. */
static void on_worked(uv_work_t *work, int status)
{
    struct driver_outlook *o = work->data;
    o->working = false;
    if (status == 0 && o->rc == 0 && o->row.id && !o->d->over) {
        if (o->told.epoch)
            driver_tell(o->d, (struct driver_news){ .kind = NEWS_FORETOLD, .trial = &o->row, .foretold = &o->told });
        if (o->told.seen < o->asked.epoch) /* it is not committed yet, or tells no value */
            wait_again(o);
    }
    store_trial_done(&o->row);
}

void driver_foretell(struct driver *d, int trial, int epoch)
{
    struct driver_outlook *o = d->outlook;
    if (!o)
        return;
    size_t i = 0;
    while (i < o->n && o->waiting[i].trial != trial)
        i++;
    if (i == WAITING_MAX)
        return;
    if (i == o->n) /* else it is due when the epoch before would have been */
        o->waiting[o->n++] = (struct waiting){ .from_ms = clock_ms() + SETTLE_MS };
    o->waiting[i].trial = trial;
    o->waiting[i].epoch = epoch;
    o->waiting[i].tries = 0;
}

/* Another curve is whole. */
void driver_outlook_renew(struct driver *d)
{
    if (d->outlook)
        d->outlook->renew = true;
}

void driver_tick_outlook(struct driver *d, int64_t now_ms)
{
    struct driver_outlook *o = d->outlook;
    if (!o || o->working || o->n == 0 || o->waiting[0].from_ms > now_ms)
        return;
    o->asked = o->waiting[0];
    memmove(&o->waiting[0], &o->waiting[1], --o->n * sizeof o->waiting[0]);
    o->asked.renew = o->renew;
    o->renew = false;
    o->row = (struct store_trial){ 0 };
    o->told = (struct outlook_told){ 0 };
    o->work.data = o;
    o->working = true;
    (void)uv_queue_work(&d->loop, &o->work, on_work, on_worked); /* fails only without a callback */
}

void driver_close_outlook(struct driver *d)
{
    struct driver_outlook *o = MOVE_PTR(d->outlook);
    if (!o)
        return;
    d->over = true;
    while (o->working)
        (void)uv_run(&d->loop, UV_RUN_ONCE);
    outlook_free(o->outlook);
    store_close(o->store);
    free(o);
}
