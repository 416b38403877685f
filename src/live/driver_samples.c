#include "live/driver_state.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "clustering/model_json.h"
#include "live/energy.h"
#include "live/handover.h"
#include "live/nodes.h"
#include "live/profiles.h"
#include "live/publish.h"
#include "live/reuse.h"
#include "live/tuning.h"
#include "live/writer.h"

enum {
    LATE_MS = 500,      /* that a reading may come later than it is due */
    DELIVER_MS = 10000, /* for what has not been delivered at the end */
};

static void on_note(void *ctx, const char *text)
{
    driver_note(ctx, NULL, text);
}

int driver_set_up_samples(struct driver *d)
{
    struct study *s = d->study;
    char why[512] = "", text[640];
    d->measures = strcmp(s->plan->cfg.scope, "none") != 0 && !config_on_slurm(&s->plan->cfg);
    AUTO_FREE char *path = study_store_path(s->plan->cfg.store);
    int rc = path ? store_open(&s->reader, path, STORE_READ, d->e) : err_sys(d->e, -ENOMEM, "study '%s'", s->name);
    if (rc == 0)
        rc = writer_open(&s->writer, &d->loop, s->store, d->e);
    if (rc == 0)
        rc = publish_open(&s->publish, s, &d->loop, on_note, d, d->e);
    if (rc == 0)
        rc = energy_open(&s->energy, s, &d->loop, on_note, d, d->e);
    if (rc == 0)
        rc = handover_open(&s->handover, s, &d->loop, on_note, d, d->e);
    if (rc == 0 && d->measures)
        rc = profiles_open(&s->profiles, s, d->e);
    if (rc == 0 && d->measures && s->tuning && s->plan->policy->knowledge)
        rc = reuse_open(&s->reuse, s, profiles_space(s->profiles), why, d->e);
    if (rc == 0 && *why) {
        (void)snprintf(text, sizeof text, "nothing is recalled from earlier studies, nor learnt for later ones: %s",
                       why);
        driver_note(d, NULL, text);
    }
    return rc;
}

/* A meter tells of an interval when that is over: what was trained in the last one is accounted, too. */
static void wait_for_meters(struct driver *d)
{
    double end = (double)study_clock_ms(d->study);
    int64_t patience = clock_ms() + 2 * config_interval_ms(&d->study->plan->cfg) + LATE_MS;
    const struct energy *en = d->study->energy;
    while (d->interrupts == 0 && !d->leaving && energy_until_ms(en) > 0 && energy_until_ms(en) < end &&
           clock_ms() < patience)
        (void)uv_run(&d->loop, UV_RUN_ONCE);
}

void driver_end_samples(struct driver *d, int rc)
{
    d->over = true;
    (void)uv_timer_stop(&d->tick);
    if (rc == 0 && d->result->end == DRIVER_DONE && d->first_launch_ms)
        wait_for_meters(d);
    bool hurried = rc < 0 || d->interrupts > 1 || d->leaving;
    publish_end(d->study->publish, &d->loop, hurried ? 0 : DELIVER_MS);
    d->result->delivery = publish_counts(d->study->publish);
}

void driver_close_samples(struct driver *d)
{
    if (d->study->writer)
        writer_settle(d->study->writer); /* while those are there who handed something over */
    d->result->server_away = handover_is_away(d->study->handover);
    handover_close(MOVE_PTR(d->study->handover)); /* while there is the ledger that it asks */
    energy_close(MOVE_PTR(d->study->energy));
    publish_close(MOVE_PTR(d->study->publish));
    writer_close(MOVE_PTR(d->study->writer));
    store_close(MOVE_PTR(d->study->reader));
    reuse_close(MOVE_PTR(d->study->reuse));
    profiles_close(MOVE_PTR(d->study->profiles));
}

/* From its start on; a session goes on being measured between its trials. */
void driver_measure(struct driver *d, struct slot *s)
{
    const struct config *c = &d->study->plan->cfg;
    const char *tag = driver_tag(d, s);
    if (!tag)
        return;
    struct desired_sampling how = { .interval_ms = config_interval_ms(c),
                                    .scope = c->scope,
                                    .events = d->study->plan->events,
                                    .local = plan_is_local(d->study->plan),
                                    .node = s->a.trial->place };
    int rc = s->a.gang ? 0 : nodes_sample(d->nodes, tag, &how, d->e);
    for (size_t k = 0; rc == 0 && k < gang_count(s->a.gang); k++) {
        const struct store_member *m = &gang_member(s->a.gang, k)->row;
        how.node = (size_t)m->node;
        rc = nodes_sample(d->nodes, m->launch, &how, d->e);
    }
    profiles_setting(d->study->profiles, s->a.trial->row.number, s->a.trial->setting);
    s->measured = true;
    if (rc < 0)
        driver_fail(d, rc);
}

void driver_measure_no_more(struct driver *d, struct slot *s)
{
    if (s->measured && s->a.row.launch)
        nodes_release(d->nodes, s->a.row.launch);
    s->measured = false;
}

/* Nothing ran beside it in all of the interval, nor was starting. */
static bool is_alone(const struct driver *d, const struct slot *s, const struct nodes_sample *sample)
{
    for (size_t i = 0; i < pool_count(d->pool); i++)
        if (!pool_at(d->pool, i)->ready)
            return false;
    return driver_is_alone(d, s) && sample->t_ms - sample->dt_ms >= (double)d->changed_ms;
}

static void keep_sample(struct driver *d, const struct slot *s, const struct nodes_sample *sample)
{
    int rc = profiles_sampled(d->study->profiles, s->a.trial, sample, is_alone(d, s, sample), d->e);
    if (rc == 0)
        rc = energy_sampled(d->study->energy, s->a.trial->row.number, sample, d->e);
    publish_sample(d->study->publish, s->a.trial->row.number, sample);
    if (rc < 0)
        driver_fail(d, rc);
}

/* Of a process of a gang. */
static bool is_of_gang(struct driver *d, const struct slot *s, const char *tag, const struct nodes_sample *sample)
{
    struct nodes_sample whole;
    for (size_t k = 0; k < gang_count(s->a.gang); k++) {
        const char *its = gang_member(s->a.gang, k)->row.launch;
        if (!its || strcmp(its, tag) != 0)
            continue;
        if (gang_sample(s->a.gang, k, sample, &whole))
            keep_sample(d, s, &whole);
        return true;
    }
    return false;
}

void driver_on_sampled(void *ctx, const char *tag, const struct nodes_sample *sample)
{
    struct driver *d = ctx;
    for (size_t i = 0; i < d->n; i++) {
        const struct slot *s = d->slots[i];
        const char *its = driver_tag(d, s);
        if (is_of_gang(d, s, tag, sample))
            return;
        if (!its || strcmp(its, tag) != 0)
            continue;
        keep_sample(d, s, sample);
        return;
    }
}

static int on_profile(void *ctx, const struct profiles_window *w, const struct profile *p, struct err *e)
{
    struct driver *d = ctx;
    struct model_verdict v;
    const char *class_key = NULL;
    const struct study_trial *t = study_trial(d->study, w->trial);
    AUTO_BUF struct buf own = BUF_INIT;
    if (!p || !t || !d->study->reuse)
        return 0;
    plan_class_key(d->study->plan, &t->point, false, &own);
    int rc = own.failed ? err_sys(e, -ENOMEM, "trial %d", w->trial)
                        : reuse_verdict(d->study->reuse, p, buf_text(&own), &v, &class_key, e);
    AUTO_JSON json_t *j = rc == 0 ? model_json_verdict(&v) : NULL;
    AUTO_FREE char *verdict = json_text(j);
    if (rc == 0)
        rc = verdict ? profiles_store_soon(d->study->profiles, t, w, p, verdict, e)
                     : err_sys(e, -ENOMEM, "trial %d", w->trial);
    return rc < 0 ? rc : tuning_verdict(d->study->tuning, w->trial, v.decision, class_key, e);
}

void driver_on_metered(void *ctx, const struct nodes_reading *r)
{
    struct driver *d = ctx;
    int rc = energy_metered(d->study->energy, r, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

int driver_tick_samples(struct driver *d)
{
    int64_t now = study_clock_ms(d->study);
    int rc = energy_tick(d->study->energy, now, d->e);
    return rc < 0 ? rc : profiles_tick(d->study->profiles, now, on_profile, d, d->e);
}
