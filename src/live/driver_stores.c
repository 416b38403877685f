#include "live/driver_state.h"
#include "live/tuning.h"

#include <errno.h>
#include <stdio.h>

#include "base/failpoint.h"

bool driver_store_failed(struct driver *d, int rc, const struct err *e)
{
    if (rc < 0 && d->rc == 0)
        driver_fail(d, err_set(d->e, rc, "%s", e->text));
    return d->rc < 0;
}

int driver_hand_over(struct driver *d, struct write one)
{
    struct writer *w = d->adopting ? NULL : d->study->writer;
    int rc = writer_put(w, d->study->store, one, d->e);
    if (rc < 0)
        driver_fail(d, rc);
    return rc;
}

bool driver_is_storing(const struct driver *d, enum slot_stores what)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->slots[i]->stores == what)
            return true;
    return false;
}

/* --- what attempts told ----------------------------------------------------------------------------------------------- */

/* Those that are gone meanwhile were stored at their end. */
static int put_news(void *ctx, struct store *store, struct err *e)
{
    struct driver *d = ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct slot *s = d->slots[i];
        rc = attempt_put(&s->a, e);
        if (rc == 0 && s->new_cores && s->a.running)
            rc = store_attempt_update(store, &s->a.row, e);
        s->new_cores = false;
    }
    return rc;
}

static void on_news_stored(void *ctx, int rc, const struct err *e)
{
    struct driver *d = ctx;
    if (driver_store_failed(d, rc, e))
        return;
    bool ends = false;
    for (size_t i = 0; i < d->n; i++) {
        attempt_stored(&d->slots[i]->a);
        ends |= d->slots[i]->a.row.ends_at && !d->slots[i]->a.trial->end_told;
    }
    tuning_stored(d->study->tuning);
    if (ends) /* what comes then is asked for at once, and what is to end is told at the next tick */
        driver_schedule(d);
}

int driver_store_news(struct driver *d)
{
    return driver_hand_over(d, (struct write){ .rows = put_news, .done = on_news_stored, .ctx = d });
}

/* --- a launch --------------------------------------------------------------------------------------------------------- */

static int put_launch(void *ctx, struct store *store, struct err *e)
{
    struct slot *s = ctx; /* it is there: tear_down() waits for this */
    (void)store;          /* it is the study's */
    return attempt_put_launch(&s->a, e);
}

static void give_go(struct driver *d, struct slot *s)
{
    if (s->a.run_id) {
        if (s->a.at.own && !s->gone) /* from now on it is heard */
            (void)s->a.at.row->go(s->a.at.own, NULL);
        driver_send_run(d, s);
        return;
    }
    int rc = s->gone ? -ESRCH : s->a.at.row->go(s->a.at.own, NULL);
    failpoint("go-sent");
    if (rc < 0) /* it has died since; its end is on the way */
        driver_note(d, &s->a.trial->row, "its launcher died at the start");
    driver_has_begun(d, s);
}

static void on_launch_stored(void *ctx, int rc, const struct err *e)
{
    struct slot *s = ctx;
    struct driver *d = s->a.ctx;
    s->stores = STORES_NOTHING;
    if (driver_store_failed(d, rc, e)) /* without a go it ends by itself */
        return;
    attempt_launched(&s->a);
    give_go(d, s); /* also to one that was told to end: it does so as soon as it has it */
    if (s->gone)
        driver_settle(d, s);
}

void driver_store_launch(struct driver *d, struct slot *s)
{
    s->stores = STORES_LAUNCH;
    (void)driver_hand_over(d, (struct write){ .rows = put_launch, .done = on_launch_stored, .ctx = s });
}

/* --- an end ----------------------------------------------------------------------------------------------------------- */

static int put_end(void *ctx, struct store *store, struct err *e)
{
    struct slot *s = ctx; /* as above */
    (void)store;
    return attempt_put_end(&s->a, e);
}

static void tell_end(struct driver *d, const struct attempt *a)
{
    const struct store_trial *t = &a->trial->row;
    const char *text = a->end.text;
    driver_tell(d, (struct driver_news){
                       .kind = NEWS_ENDED, .trial = t, .attempt = a->row.number, .text = *text ? text : NULL });
    if (a->end.outcome == OUTCOME_FINISHED)
        driver_outlook_renew(d);
    driver_note_no_metric(d);
    if (a->end.outcome == OUTCOME_ENVIRONMENT && d->result->end == DRIVER_DONE) {
        d->result->end = DRIVER_ENVIRONMENT;
        (void)snprintf(d->result->why, sizeof d->result->why, "%s/%d cannot run here: %s", d->study->name, t->number,
                       text);
    }
}

static void on_end_stored(void *ctx, int rc, const struct err *e)
{
    struct slot *s = ctx;
    struct driver *d = s->a.ctx;
    int number = s->a.trial->row.number;
    size_t place = s->a.trial->place;
    if (driver_store_failed(d, rc, e))
        return;
    attempt_stored(&s->a);
    attempt_ended(&s->a);
    tuning_stored(d->study->tuning);
    enum trial_state state = sched_ended(&d->study->sched, number, s->a.end.outcome);
    driver_tidy(d, &s->a);
    tell_end(d, &s->a);
    driver_ended_on(d, &s->a);
    driver_let_go(d, s);
    driver_drop_slot(d, s);
    if (trial_state_is_final(state))
        study_drop(d->study, number);
    driver_schedule(d);
    if (d->packs)
        driver_neighbours_changed(d, place);
}

void driver_settle(struct driver *d, struct slot *s)
{
    /* The line at which the driver failed has been passed over: the next one judges, from the stored offset. */
    if (d->rc < 0 || s->stores == STORES_END)
        return;
    if (s->stores == STORES_LAUNCH) {
        s->gone = true;
        return;
    }
    int rc = attempt_read_end(&s->a, d->e);
    if (rc < 0) {
        driver_fail(d, rc);
        return;
    }
    s->stores = STORES_END;
    (void)driver_hand_over(d, (struct write){ .rows = put_end, .done = on_end_stored, .ctx = s });
}

/* --- a session's cores that were not granted: the trial is launched with others, or known not to be launched at all ---- */

static int put_refusal(void *ctx, struct store *store, struct err *e)
{
    struct slot *s = ctx;
    struct attempt *a = &s->a;
    (void)store;
    int rc = grant_refuse(a->study, a->trial, &a->fold, a->trial->row.slots, a->end.text, e);
    return rc < 0 ? rc : 0;
}

static void on_refusal_stored(void *ctx, int rc, const struct err *e)
{
    struct slot *s = ctx;
    struct driver *d = s->a.ctx;
    s->stores = STORES_NOTHING;
    if (driver_store_failed(d, rc, e))
        return;
    tuning_stored(d->study->tuning);
    driver_note(d, &s->a.trial->row, s->a.end.text);
    driver_give_back(d, s);
    driver_schedule(d);
}

void driver_store_refusal(struct driver *d, struct slot *s, const struct warm *w)
{
    s->a.fold = w->fold; /* which goes with the session */
    grant_put_refused(d->study, &w->fold, w->slots, false, "", s->a.end.text);
    s->stores = STORES_REFUSAL;
    (void)driver_hand_over(d, (struct write){ .rows = put_refusal, .done = on_refusal_stored, .ctx = s });
}

/* --- proposals -------------------------------------------------------------------------------------------------------- */

static int put_proposal(void *ctx, struct store *store, struct err *e)
{
    struct driver *d = ctx;
    (void)store;
    return study_ask(d->study, &d->asked, e);
}

/* One that is final as it comes. */
static void tell_final(struct driver *d, const struct study_trial *t, int copy)
{
    char text[64];
    (void)snprintf(text, sizeof text, "same settings as %s/%d", d->study->name, copy);
    driver_tell(d, (struct driver_news){
                       .kind = copy ? NEWS_COPY : NEWS_ENDED, .trial = &t->row, .text = copy ? text : t->row.reason });
    study_drop(d->study, t->row.number);
}

static void on_proposal_stored(void *ctx, int rc, const struct err *e)
{
    struct driver *d = ctx;
    struct study_trial *t = NULL;
    int copy = 0;
    bool again =
        d->asked.again != NULL; /* what goes on may have ended meanwhile: that is told when its end is stored */
    d->asking = false;
    if (driver_store_failed(d, rc, e))
        return;
    rc = study_take(d->study, &d->asked, &t, &copy, d->e);
    if (rc < 0) {
        driver_fail(d, rc);
        return;
    }
    if (rc == 1 && !again && trial_state_is_final((enum trial_state)trial_state_parse(t->row.state)))
        tell_final(d, t, copy);
    driver_schedule(d);
}

void driver_ask(struct driver *d)
{
    d->asking = true;
    (void)driver_hand_over(d, (struct write){ .rows = put_proposal, .done = on_proposal_stored, .ctx = d });
}

/* --- a trial that cannot be launched ---------------------------------------------------------------------------------- */

static int put_given_up(void *ctx, struct store *store, struct err *e)
{
    const struct driver *d = ctx;
    (void)store;
    return study_put_given_up(d->study, d->given_up, e);
}

static void on_given_up_stored(void *ctx, int rc, const struct err *e)
{
    struct driver *d = ctx;
    const struct study_trial *t = d->given_up;
    d->given_up = NULL;
    if (driver_store_failed(d, rc, e))
        return;
    (void)sched_ended(&d->study->sched, t->row.number, OUTCOME_INFEASIBLE);
    tell_final(d, t, 0);
    driver_schedule(d);
}

void driver_give_up(struct driver *d, struct study_trial *t, const char *why)
{
    int rc = study_give_up(t, why, d->e);
    if (rc < 0) {
        driver_fail(d, rc);
        return;
    }
    d->given_up = t;
    (void)driver_hand_over(d, (struct write){ .rows = put_given_up, .done = on_given_up_stored, .ctx = d });
}
