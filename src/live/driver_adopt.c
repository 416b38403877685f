#include "live/driver_state.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "live/hosts.h"
#include "live/places.h"
#include "live/slurm.h"
#include "live/tuning.h"

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
    struct slot *s = driver_add_slot(f->d);
    if (!s)
        return err_sys(f->d->e, -ENOMEM, "trial %d", f->trial->row.number);
    f->found = true;
    f->trial->place = row->place ? hosts_find(f->d->hosts, row->place) : 0;
    int rc = places_put(f->d->places, f->trial->place, f->trial->row.number, f->d->e);
    if (rc == 0)
        rc = attempt_recall(&s->a, f->d->study, f->trial, row, f->d->e);
    driver_own(f->d, &s->a);
    if (rc == 0 && f->d->gangs)
        rc = driver_recall_gang(f->d, s);
    s->a.at.row = driver_site_of(f->d, f->trial, row).row;
    bool queued = row->place && strcmp(row->place, SLURM_PLACE) == 0;
    if (row->place && (queued ? !f->d->slurm : !f->trial->place))
        s->a.lost = queued ? "it is a job of Slurm, which is not among the places any more"
                           : "its host is not among the nodes any more";
    if (rc == 0 && f->d->study->tuning)
        rc = tuning_recall(f->d->study->tuning, f->trial, row->setting, f->d->e);
    f->trial->room = driver_room_for(f->d, f->trial->row.number);
    if (rc == 0)
        rc = driver_keep_memory(f->d, f->trial);
    return rc < 0 ? rc : 1;
}

/* The session that serves it still runs: its hello is yet to come. False: it is gone. */
static bool join_warm(struct driver *d, struct slot *s)
{
    struct warm *w = pool_by_tag(d->pool, s->a.row.launch);
    if (!w)
        return false;
    w->trial = s->a.trial->row.number;
    w->slots = s->a.trial->row.slots;
    w->cold = s->a.trial->setting.cold;
    s->warm = w->id;
    return true;
}

/* Of one elsewhere its place knows it by its own name. */
static int take_up_run(struct driver *d, struct slot *s, const struct site *site)
{
    struct store_attempt run = s->a.row;
    if (!join_warm(d, s))
        return -ESRCH;
    run.launch = s->a.run_id;
    return run.place ? site->row->adopt(site->own, s->a.id, &run, s->a.dir, &s->a.at, d->e) : 0;
}

/* Goes on with it when it runs, settles it when it does not. */
static int take_up(struct driver *d, struct slot *s)
{
    const struct store_attempt *row = &s->a.row;
    s->a.running = true;
    s->a.born_ms = s->a.line_ms = clock_ms();
    s->narrow_ms = d->narrows ? s->a.born_ms : 0;
    const struct site site = driver_site_of(d, s->a.trial, row);
    int rc = s->a.lost      ? -ESRCH
             : s->a.gang    ? driver_adopt_gang(d, s)
             : row->session ? take_up_run(d, s, &site)
                            : site.row->adopt(site.own, s->a.id, row, s->a.dir, &s->a.at, d->e);
    if (rc == 0) {
        if (!d->first_launch_ms)
            d->first_launch_ms = clock_boot_ms();
        driver_tell(d, (struct driver_news){
                           .kind = NEWS_LAUNCH, .trial = &s->a.trial->row, .attempt = row->number, .adopted = true });
        return 0;
    }
    if (rc != -ESRCH)
        return rc;
    attempt_signal(&s->a, true);
    driver_settle(d, s);
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

/* What they were launched with nobody knows any more, and one that is still coming up would hold its room until it can be told. */
static void end_unclaimed(struct driver *d)
{
    for (size_t i = 0; i < pool_count(d->pool); i++)
        if (pool_at(d->pool, i)->trial == 0)
            pool_end(d->pool, pool_at(d->pool, i), false);
}

int driver_adopt(struct driver *d)
{
    d->adopting = true;
    for (size_t i = d->study->n_open; i-- > 0;) { /* backwards: settling drops trials */
        struct study_trial *t = d->study->open_trials[i];
        int rc = strcmp(t->row.state, trial_state_name(TRIAL_RUNNING)) == 0 ? adopt_one(d, t) : 0;
        if (rc < 0)
            return rc;
    }
    d->adopting = false;
    end_unclaimed(d);
    for (size_t i = 0; i < d->n; i++)
        d->slots[i]->a.trial->alone = driver_is_alone(d, d->slots[i]);
    return 0;
}
