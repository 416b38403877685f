#include "live/publish.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "live/provenance.h"
#include "monitoring/features.h"
#include "monitoring/points.h"
#include "store/times.h"

enum { METRICS_MAX = 64, GIVEN_MAX = 128 };

struct publish {
    struct deliver *deliver;
    struct points_tags tags; /* of the study */
    char host[256], user[PROVENANCE_USER_MAX];
    const struct plan *plan;
    struct buf lines; /* of one happening */
    double step_ms;   /* of the newest step: no two points of a trial have the same time */
    double told_ms;   /* likewise, of the newest of trials, settings and decisions */
    struct deliver_ops ops;
    void (*note)(void *ctx, const char *text);
    void *ctx;
    bool closing, ended;
};

static void on_note(void *ctx, const char *text)
{
    struct publish *p = ctx;
    p->note(p->ctx, text);
}

/* --- opening --- */

static void find_names(struct publish *p)
{
    (void)gethostname(p->host, sizeof p->host - 1); /* without a name the tag is left out */
    provenance_user(p->user);
}

static int open_delivery(struct publish *p, const struct study *s, uv_loop_t *loop, struct err *e)
{
    AUTO_FREE char *old = io_join(s->dir, "influx/spool");
    if (!old)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    const struct deliver_cfg cfg = deliver_cfg_of(&s->plan->cfg);
    const struct deliver_place place = { .store = s->store, .writer = s->writer, .study = s->id, .old_spool = old };
    p->ops.note = on_note;
    return deliver_open(&p->deliver, loop, &cfg, &place, &p->ops, p, e);
}

int publish_open(struct publish **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                 void *ctx, struct err *e)
{
    *out = NULL;
    if (!s->plan->cfg.url)
        return 0;
    struct publish *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "study '%s'", s->name);
    *p = (struct publish){ .plan = s->plan, .note = note, .ctx = ctx, .lines = BUF_INIT };
    find_names(p);
    p->tags = (struct points_tags){ .host = p->host, .user = p->user, .study = s->name };
    int rc = open_delivery(p, s, loop, e);
    if (rc < 0) {
        publish_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void publish_close(struct publish *p)
{
    if (!p)
        return;
    deliver_free(p->deliver);
    buf_done(&p->lines);
    free(p);
}

/* --- what happens --- */

static const char *host_of(const struct publish *p, size_t node)
{
    const char *named = node > 0 && node <= p->plan->n_nodes ? p->plan->nodes[node - 1].host : NULL;
    return named ? named : p->host;
}

static struct points_tags tags_of(const struct publish *p, int trial)
{
    struct points_tags t = p->tags;
    t.trial = trial;
    return t;
}

/* Without memory for it, it is as if it had not happened: the server is no record of anything that the store has not. */
static void took(struct publish *p, int lines)
{
    if (lines > 0)
        deliver_push(p->deliver, p->lines.data, p->lines.len, (uint32_t)lines);
    buf_clear(&p->lines);
}

static bool is_open(const struct publish *p)
{
    return p && !p->closing;
}

void publish_reading(struct publish *p, int node, const struct meter_ops *meter, const struct meter_reading *r)
{
    if (is_open(p))
        took(p, points_energy(&p->lines, &p->tags, host_of(p, (size_t)node), node, meter, r));
}

void publish_sample(struct publish *p, int trial, const struct nodes_sample *s)
{
    if (!is_open(p))
        return;
    struct points_tags t = tags_of(p, trial);
    took(p,
         points_profile(&p->lines, &t, host_of(p, s->node), (int)s->node, s->scope, s->t_ms, s->dt_ms, s->v, FEATURES));
}

void publish_epoch(struct publish *p, int trial, const struct store_epoch *row, int64_t now_ms)
{
    if (!is_open(p))
        return;
    struct points_tags t = tags_of(p, trial);
    struct points_epoch ep = { .epoch = row->epoch,
                               .accuracy = row->accuracy,
                               .loss = row->loss,
                               .metric = row->metric,
                               .seconds = row->seconds,
                               .records = row->records,
                               .iterations = (double)row->iterations,
                               .learning_rate = row->learning_rate,
                               .end_ms = (int64_t)times_on_clock((double)row->end_ms, (double)now_ms) };
    took(p, points_epoch(&p->lines, &t, &ep));
}

/* Later than the step before. */
static double step_time(struct publish *p, const struct app_report *ev, int64_t now_ms)
{
    double at = times_on_clock(ev->stamp_coarse ? -1 : (double)ev->stamp_ms, (double)now_ms);
    p->step_ms = at > p->step_ms ? at : p->step_ms + 0.001;
    return p->step_ms;
}

void publish_step(struct publish *p, int trial, const struct app_report *ev, int64_t now_ms)
{
    if (!is_open(p))
        return;
    struct points_tags t = tags_of(p, trial);
    struct points_iteration it = { .epoch = ev->epoch,
                                   .iteration = ev->step,
                                   .loss = ev->loss,
                                   .learning_rate = ev->learning_rate,
                                   .seconds = ev->seconds,
                                   .records = ev->records,
                                   .end_ms = step_time(p, ev, now_ms) };
    took(p, points_iteration(&p->lines, &t, &it));
}

void publish_metrics(struct publish *p, int trial, int epoch, const json_t *metrics, int64_t now_ms)
{
    struct points_metric list[METRICS_MAX];
    size_t n = 0;
    const char *name;
    json_t *value;
    if (!is_open(p))
        return;
    json_object_foreach((json_t *)metrics, name, value)
    {
        if (json_is_number(value) && n < METRICS_MAX)
            list[n++] = (struct points_metric){ name, json_number_value(value) };
    }
    struct points_tags t = tags_of(p, trial);
    struct app_report none = { .stamp_ms = -1 };
    struct points_iteration it = { .epoch = epoch,
                                   .loss = NAN,
                                   .learning_rate = NAN,
                                   .seconds = NAN,
                                   .records = NAN,
                                   .end_ms = step_time(p, &none, now_ms),
                                   .more = list,
                                   .n_more = n };
    if (n > 0)
        took(p, points_iteration(&p->lines, &t, &it));
}

/* --- trials, settings, decisions --- */

static double told_time(struct publish *p)
{
    double at = (double)study_now_ms();
    p->told_ms = at > p->told_ms ? at : p->told_ms + 0.001;
    return p->told_ms;
}

/* Members of an object, which they point into. Text that is a number as a whole counts as one: configs may write both. */
static size_t given(struct points_value out[GIVEN_MAX], const json_t *object)
{
    size_t n = 0;
    const char *name;
    json_t *j;
    json_object_foreach((json_t *)object, name, j)
    {
        const char *text = json_string_value(j);
        char *end = NULL;
        double number = text ? strtod(text, &end) : json_is_number(j) ? json_number_value(j) : (double)NAN;
        bool whole = isfinite(number) && (!text || (*text && !*end));
        if (n < GIVEN_MAX && (text || !isnan(number)))
            out[n++] = (struct points_value){ name, whole ? number : (double)NAN, text };
    }
    return n;
}

void publish_trial(struct publish *p, const struct store_trial *row, int attempt, bool ended)
{
    struct points_value hyper[GIVEN_MAX];
    if (!is_open(p))
        return;
    AUTO_JSON json_t *j = row->hyper ? json_loads(row->hyper, 0, NULL) : NULL;
    struct points_tags t = tags_of(p, row->number);
    double now = told_time(p);
    struct points_trial trial = { .state = row->state,
                                  .reason = row->reason,
                                  .attempt = attempt,
                                  .epochs = row->epochs,
                                  .begin_ms = ended ? (double)NAN : now,
                                  .end_ms = ended ? now : (double)NAN,
                                  .seconds = ended ? row->seconds : (double)NAN,
                                  .accuracy = row->accuracy,
                                  .loss = row->loss,
                                  .metric = row->metric,
                                  .hyper = hyper,
                                  .n_hyper = given(hyper, j) };
    took(p, points_trial(&p->lines, &t, &trial));
}

void publish_setting(struct publish *p, int trial, const char *setting, int cores)
{
    struct points_value knobs[GIVEN_MAX];
    AUTO_JSON json_t *j = is_open(p) && setting ? json_loads(setting, 0, NULL) : NULL;
    if (!j)
        return;
    struct points_tags t = tags_of(p, trial);
    size_t n = given(knobs, j);
    for (size_t i = 0; cores > 0 && i < n; i++)
        if (strcmp(knobs[i].name, "cores") == 0)
            knobs[i].number = cores;
    took(p, points_setting(&p->lines, &t, told_time(p), knobs, n));
}

void publish_decision(struct publish *p, const struct store_decision *d)
{
    if (!is_open(p))
        return;
    struct points_tags t = tags_of(p, d->trial);
    struct points_decision out = {
        .kind = d->kind, .reason = d->reason, .setting = d->setting, .t_s = d->t_s, .t_ms = told_time(p)
    };
    took(p, points_decision(&p->lines, &t, &out));
}

/* --- on their way --- */

static void on_ended(void *ctx)
{
    struct publish *p = ctx;
    p->ended = true;
}

void publish_end(struct publish *p, uv_loop_t *loop, int64_t within_ms)
{
    if (!is_open(p))
        return;
    p->closing = true;
    deliver_end(p->deliver, within_ms, on_ended);
    while (!p->ended && uv_run(loop, UV_RUN_ONCE) != 0)
        ;
}

void publish_hurry(struct publish *p)
{
    if (p && p->closing && !p->ended)
        deliver_end(p->deliver, 0, on_ended);
}

struct deliver_counts publish_counts(const struct publish *p)
{
    return p ? deliver_counts(p->deliver) : (struct deliver_counts){ 0 };
}
