#include "view/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "view/foretold.h"
#include "view/metrics.h"
#include "view/now.h"
#include "view/words.h"

/* --- what is reckoned --------------------------------------------------------------------------------------------------- */

static int give(struct cell *out, json_t *j)
{
    *out = (struct cell){ .kind = j ? CELL_JSON : CELL_NONE, .json = j };
    return 0;
}

/* A text of its own. */
static int give_text(struct cell *out, const char *text)
{
    *out = (struct cell){ .kind = CELL_TEXT, .json = json_bytes(text) };
    out->text = json_string_value(out->json);
    return out->text ? 0 : -ENOMEM;
}

static int get_system(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    (void)v, (void)e;
    return give(out, json_pack("{s:o, s:o}", "requested", words_object(t->row.requested), "effective",
                               words_object(t->row.effective)));
}

static json_t *epoch_json(const struct store_epoch *r)
{
    bool steps = r->iterations > 0; /* else none were told, which is not that there were none */
    return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "accuracy", json_num(r->accuracy), "loss",
                     json_num(r->loss), "seconds", json_num(r->seconds), "epoch", r->epoch, "attempt", r->attempt,
                     "metric", json_num(r->metric), "records", json_num(steps ? r->records : NAN), "iterations",
                     steps ? json_integer((json_int_t)r->iterations) : json_null(), "learning_rate",
                     json_num(r->learning_rate), "end_ms", words_time_or_null(r->end_ms));
}

static json_t *point_json(const struct store_epoch *r)
{
    return json_pack("{s:i, s:o, s:o, s:o}", "epoch", r->epoch, "accuracy", json_num(r->accuracy), "loss",
                     json_num(r->loss), "seconds", json_num(r->seconds));
}

static int give_epochs(struct view *v, struct view_trial *t, json_t *(*one)(const struct store_epoch *r),
                       struct cell *out, struct err *e)
{
    int rc = view_epochs(v, t, e);
    if (rc < 0)
        return rc;
    (void)give(out, json_array());
    for (size_t i = 0; i < t->n_epochs; i++)
        (void)json_array_append_new(out->json, one(&t->epochs[i]));
    return 0;
}

static int get_epochs(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    return give_epochs(v, t, epoch_json, out, e);
}

static int get_curve(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    return give_epochs(v, t, point_json, out, e);
}

/* --- attempts --- */

struct listing {
    struct store *store;
    json_t *list;
    bool whole; /* with commands and members, which are too long for a list of all trials */
    struct err *e;
};

static int add_member(void *ctx, const struct store_member *r)
{
    json_t *one = json_pack("{s:s, s:i, s:s?, s:s?, s:I, s:i}", "role", r->role, "index", r->index, "place", r->place,
                            "launch", r->launch, "pid", (json_int_t)r->pid, "port", r->port);
    return json_array_append_new(ctx, one) < 0 ? -ENOMEM : 0;
}

static json_t *attempt_json(const struct store_attempt *r)
{
    double seconds = r->ended_ms ? (double)(r->ended_ms - r->started_ms) / 1000.0 : (double)NAN;
    return json_pack("{s:i, s:s, s:s?, s:o, s:o, s:s?, s:i, s:o, s:o, s:o, s:s?, s:s?, s:s?}", "attempt", r->number,
                     "state", r->state, "outcome", r->outcome, "exit_code",
                     r->exit_code < 0 ? json_null() : json_integer(r->exit_code), "cause", words_text(r->cause),
                     "resumed_from", r->resumed_from, "first_epoch", r->first_epoch, "seconds", json_num(seconds),
                     "started_ms", words_time_or_null(r->started_ms), "ended_ms", words_time_or_null(r->ended_ms),
                     "app_id", r->app_id, "launch", r->launch, "place", r->place);
}

static int add_attempt(void *ctx, const struct store_attempt *r)
{
    const struct listing *l = ctx;
    AUTO_JSON json_t *members = json_array();
    json_t *one = attempt_json(r);
    int rc = l->whole ? store_members(l->store, r->trial, r->number, add_member, members, l->e) : 0;
    if (l->whole && r->argv)
        (void)json_object_set_new(one, "command", words_json(r->argv));
    if (json_array_size(members) > 0)
        (void)json_object_set(one, "members", members);
    (void)json_array_append_new(l->list, one);
    return rc;
}

static int give_attempts(struct view *v, const struct view_trial *t, bool whole, struct cell *out, struct err *e)
{
    (void)give(out, json_array());
    struct listing l = { v->store, out->json, whole, e };
    return t->row.attempts > 0 ? store_attempts(v->store, t->row.id, add_attempt, &l, e) : 0;
}

static int get_attempt_list(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    return give_attempts(v, t, false, out, e);
}

static int get_whole_attempts(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    return give_attempts(v, t, true, out, e);
}

/* --- what it tells, and what is foretold of it --- */

static int get_now(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct now now;
    int rc = now_of(v, t, &now, e);
    return rc < 0 ? rc : give(out, now_json(&now));
}

static int get_metrics(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    out->kind = CELL_JSON;
    return metrics_json(v->store, t->row.id, METRICS_EPOCHS, &out->json, e);
}

static int get_all_metrics(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    out->kind = CELL_JSON;
    return metrics_json(v->store, t->row.id, METRICS_ALL, &out->json, e);
}

static int get_forecast(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    int rc = view_forecast(v, t, e);
    return rc < 0 ? rc : give(out, foretold_json(&t->foretold));
}

/* --- several objectives --- */

static int get_objectives(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    int rc = view_pareto(v, e);
    return rc < 0 ? rc : give(out, pareto_figures_json(&v->pareto, t->row.number));
}

static int get_in_front(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    int rc = view_pareto(v, e);
    const struct pareto_trial *in = rc == 0 ? pareto_trial(&v->pareto, t->row.number) : NULL;
    *out = in && in->front ? (struct cell){ .kind = CELL_INTEGER, .integer = 1 } : (struct cell){ .kind = CELL_ABSENT };
    return rc;
}

/* Columns that are there where results are judged: those that were before them stay where they were. */
static bool is_judged(const struct view *v)
{
    bool any = v->pareto.goals.n > 0;
    for (size_t i = 0; i < v->n; i++)
        any |= v->trials[i].row.violates != NULL;
    return any;
}

/* --- energy --- */

static int energy_of(struct view *v, const struct view_trial *t, struct ledger_figure *out, struct err *e)
{
    int rc = view_energy(v, e);
    return rc < 0 ? rc : view_trial_energy(v, t, out, e);
}

static int get_energy(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct ledger_figure f;
    int rc = energy_of(v, t, &f, e);
    return rc < 0 ? rc : give(out, energy_figure_json(&f));
}

static int get_joules(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct ledger_figure f;
    int rc = energy_of(v, t, &f, e);
    if (rc == 0)
        *out = (struct cell){ .kind = CELL_NUMBER, .number = f.j };
    return rc;
}

static int get_joules_source(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct ledger_figure f;
    int rc = energy_of(v, t, &f, e);
    if (rc < 0)
        return rc;
    out->kind = CELL_TEXT;
    out->text = energy_figure_source(&f, out->own);
    return 0;
}

static int get_joules_words(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct ledger_figure f;
    int rc = energy_of(v, t, &f, e);
    if (rc < 0)
        return rc;
    out->kind = CELL_TEXT;
    out->text = energy_figure_source(&f, out->own);
    if (energy_figure_with_idle(&f))
        (void)strncat(out->own, ENERGY_IDLE_INCLUDED, sizeof out->own - strlen(out->own) - 1);
    return 0;
}

static int get_energy_words(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    struct ledger_figure f;
    AUTO_BUF struct buf words = BUF_INIT;
    int rc = energy_of(v, t, &f, e);
    if (rc < 0 || !isfinite(f.j))
        return rc;
    energy_figure_put(&words, &f);
    return words.failed ? -ENOMEM : give_text(out, buf_text(&words));
}

/* Where a meter was read. */
static bool is_metered(const struct view *v)
{
    return v->energy.n_meters > 0;
}

/* --- for people --- */

static int get_name(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    (void)e;
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "%s/%d", v->study.name, t->row.number);
    return name.failed ? -ENOMEM : give_text(out, buf_text(&name));
}

static int get_progress(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    (void)v, (void)e;
    (void)snprintf(out->own, sizeof out->own, "%d/%d", t->done, t->row.epochs);
    out->kind = CELL_TEXT;
    out->text = out->own;
    return 0;
}

/* What was given, and what was asked for where that is another: "2 [16]". */
static int get_given(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    (void)v, (void)e;
    AUTO_JSON json_t *effective = words_object(t->row.effective);
    AUTO_JSON json_t *requested = words_object(t->row.requested);
    const char *key;
    json_t *value;
    (void)give(out, json_object());
    json_object_foreach(effective, key, value)
    {
        AUTO_BUF struct buf text = BUF_INIT;
        words_put_effective(&text, value, json_object_get(requested, key));
        if (text.failed)
            return -ENOMEM;
        (void)json_object_set_new(out->json, key, json_bytes(buf_text(&text)));
    }
    return 0;
}

static bool has_other_than_accuracy(const struct view *v)
{
    return strcmp(v->metric, "accuracy") != 0;
}

static bool has_other_than_loss(const struct view *v)
{
    return strcmp(v->metric, "loss") != 0;
}

/* --- stories --- */

static json_t *saved_under_json(double cores, double memory_gb)
{
    return json_pack("{s:o, s:o}", "cores", json_num(cores), "memory_gb", json_num(memory_gb));
}

static json_t *tried_json(const struct story *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_tried; i++) {
        const struct story_tried *t = &s->tried[i];
        (void)json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "cores", json_num(t->cores), "memory_gb",
                                                    json_num(t->memory_gb), "seconds", json_num(t->seconds), "records",
                                                    json_num(t->records)));
    }
    return list;
}

static json_t *steps_json(const struct story *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct story_step *t = &s->steps[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:o, s:s, s:o, s:o}", "t_s", json_num(t->t_s), "kind", t->kind,
                                              "setting", words_json(t->setting), "reason", words_text(t->reason)));
    }
    return list;
}

static json_t *settled_json(const struct story *s)
{
    if (s->settled < 0)
        return json_null();
    const struct story_step *t = &s->steps[s->settled];
    return json_pack("{s:o, s:o}", "setting", words_json(t->setting), "reason", words_text(t->reason));
}

static json_t *saved_json(const struct story *s)
{
    if (!isfinite(s->saved_s))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "seconds", json_num(s->saved_s), "core_seconds", json_num(s->saved_core_s),
                     "against", saved_under_json(s->against_cores, s->against_memory_gb));
}

static int get_story(struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    int rc = view_stories(v, e);
    if (rc < 0)
        return rc;
    const struct story *s = stories_of(&v->stories, t->row.number);
    const char *class = s->class >= 0 ? v->stories.classes.v[s->class] : NULL;
    return give(out, json_pack("{s:s?, s:o, s:o, s:o, s:o, s:o}", "class", class, "tried", tried_json(s), "settled",
                               settled_json(s), "verdicts", s->verdicts ? json_incref(s->verdicts) : json_array(),
                               "saved", saved_json(s), "steps", steps_json(s)));
}

/* --- the table ---------------------------------------------------------------------------------------------------------- */

#define FIELD(name, its_key, its_from, member, ...)                                                                    \
    static const struct column col_##name = {                                                                          \
        .key = (its_key), .from = (its_from), .offset = offsetof(struct view_trial, member), __VA_ARGS__               \
    }
#define CALL(name, its_key, function, ...)                                                                             \
    static const struct column col_##name = { .key = (its_key), .from = FROM_CALL, .call = (function), __VA_ARGS__ }

FIELD(trial, "trial", FROM_INT, row.number);
FIELD(state, "state", FROM_TEXT, state);
FIELD(attempts, "attempts", FROM_INT, row.attempts);
FIELD(hyper, "hyper", FROM_OBJECT, row.hyper, .spread = true);
CALL(system, "system", get_system);
FIELD(requested, "requested", FROM_OBJECT, row.requested, .spread = true);
FIELD(effective, "effective", FROM_OBJECT, row.effective, .spread = true);
FIELD(in_force, "effective", FROM_OBJECT, row.effective, .head = "system", .spread = true);
CALL(epochs, "epochs", get_epochs);
FIELD(done, "epochs", FROM_INT, done);
FIELD(budget, "budget", FROM_INT, row.epochs);
FIELD(accuracy, "accuracy", FROM_REAL, row.accuracy);
FIELD(loss, "loss", FROM_REAL, row.loss);
FIELD(metric, "metric", FROM_REAL, row.metric);
FIELD(seconds, "seconds", FROM_REAL, seconds);
CALL(energy, "energy", get_energy);
CALL(joules, "energy_j", get_joules);
CALL(joules_source, "energy_source", get_joules_source);
FIELD(slots, "slots", FROM_INT, row.slots);
FIELD(failures, "failures", FROM_INT, row.failures);
FIELD(copy_of, "copy_of", FROM_NUMBER, row.copy_of);
FIELD(repeat_of, "repeat_of", FROM_NUMBER, row.repeat_of);
FIELD(learnt_from, "learnt_from", FROM_TEXT, row.learnt_from);
FIELD(reason, "reason", FROM_TEXT, row.reason);
FIELD(violates, "violates", FROM_TEXT, row.violates);
FIELD(broken, "violates", FROM_TEXT, row.violates, .is_told = is_judged);
CALL(in_front, "pareto", get_in_front, .is_told = is_judged);
CALL(attempt_list, "attempt_list", get_attempt_list);
CALL(whole_attempts, "attempt_list", get_whole_attempts);
CALL(now, "now", get_now);
CALL(metrics, "metrics", get_metrics);
CALL(all_metrics, "metrics", get_all_metrics);
CALL(objectives, "objectives", get_objectives);
CALL(forecast, "forecast", get_forecast);
CALL(name, "trial", get_name, .is_text = true);
FIELD(judged_by, "metric", FROM_REAL, row.metric, .label = "", .stays = true);
FIELD(now_is, "state", FROM_TEXT, state, .is_text = true);
CALL(given, "system", get_given, .spread = true, .label = "system [requested]");
CALL(progress, "epochs", get_progress);
FIELD(its_accuracy, "accuracy", FROM_REAL, row.accuracy, .is_told = has_other_than_accuracy);
FIELD(its_loss, "loss", FROM_REAL, row.loss, .is_told = has_other_than_loss);
FIELD(time, "time", FROM_REAL, seconds, .unit = "s", .stays = true);
CALL(its_joules, "energy, J", get_joules, .is_told = is_metered);
CALL(joules_words, "energy is", get_joules_words, .is_told = is_metered, .is_text = true);
CALL(energy_words, "energy", get_energy_words);
FIELD(points, "hyperparameters", FROM_OBJECT, row.hyper, .spread = true);
CALL(curve, "curve", get_curve);
CALL(story, "story", get_story);

/* The same columns, but for what is too long to be told of all trials. */
#define SHOW(its_attempts, its_metrics)                                                                                \
    {                                                                                                                  \
        &col_trial, &col_state, &col_attempts, &col_hyper, &col_system, &col_epochs, &col_accuracy, &col_seconds,      \
            &col_energy, &col_loss, &col_metric, &col_budget, &col_slots, &col_failures, &col_copy_of, &col_repeat_of, \
            &col_learnt_from, &col_reason, &(its_attempts), &col_now, &(its_metrics), &col_objectives, &col_violates,  \
            &col_forecast, NULL                                                                                        \
    }

const struct column *const columns_show[] = SHOW(col_attempt_list, col_metrics);
const struct column *const columns_show_one[] = SHOW(col_whole_attempts, col_all_metrics);
const struct column *const columns_report_json[] = {
    &col_trial,    &col_state,      &col_hyper,       &col_system,   &col_done,   &col_budget,
    &col_accuracy, &col_loss,       &col_metric,      &col_seconds,  &col_energy, &col_attempts,
    &col_copy_of,  &col_repeat_of,  &col_learnt_from, &col_reason,   &col_curve,  &col_story,
    &col_metrics,  &col_objectives, &col_violates,    &col_forecast, NULL
};
const struct column *const columns_report_csv[] = { &col_trial,    &col_state,   &col_hyper,    &col_in_force,
                                                    &col_done,     &col_budget,  &col_accuracy, &col_loss,
                                                    &col_metric,   &col_seconds, &col_joules,   &col_joules_source,
                                                    &col_attempts, &col_copy_of, &col_reason,   &col_broken,
                                                    &col_in_front, NULL };
const struct column *const columns_table[] = { &col_name,  &col_judged_by,  &col_now_is,       &col_points,
                                               &col_given, &col_progress,   &col_its_accuracy, &col_its_loss,
                                               &col_time,  &col_its_joules, &col_joules_words, &col_attempts,
                                               NULL };
const struct column *const columns_page[] = {
    &col_name,         &col_judged_by, &col_now_is, &col_points,       &col_given, &col_progress,
    &col_its_accuracy, &col_its_loss,  &col_time,   &col_energy_words, NULL
};
const struct column *const columns_diff[] = { &col_hyper,    &col_requested, &col_effective, &col_state,  &col_accuracy,
                                              &col_loss,     &col_metric,    &col_seconds,   &col_budget, &col_slots,
                                              &col_attempts, &col_failures,  &col_copy_of,   &col_reason, NULL };

static struct cell field_of(const struct column *c, const struct view_trial *t)
{
    const void *at = (const char *)t + c->offset;
    const char *text = c->from == FROM_TEXT || c->from == FROM_OBJECT ? *(const char *const *)at : NULL;
    switch (c->from) {
    case FROM_INT: return (struct cell){ .kind = CELL_INTEGER, .integer = *(const int *)at };
    case FROM_NUMBER:
        return (struct cell){ .kind = *(const int *)at ? CELL_INTEGER : CELL_ABSENT, .integer = *(const int *)at };
    case FROM_REAL:
        return (struct cell){ .kind = isfinite(*(const double *)at) ? CELL_NUMBER : CELL_ABSENT,
                              .number = *(const double *)at };
    case FROM_TEXT: return (struct cell){ .kind = text ? CELL_TEXT : CELL_ABSENT, .text = text };
    case FROM_OBJECT: return (struct cell){ .kind = CELL_JSON, .json = words_object(text) };
    case FROM_CALL: break;
    }
    return (struct cell){ .kind = CELL_ABSENT };
}

int column_cell(const struct column *c, struct view *v, struct view_trial *t, struct cell *out, struct err *e)
{
    *out = (struct cell){ .kind = CELL_ABSENT };
    if (c->from == FROM_CALL)
        return view_explain(c->call(v, t, out, e), e, v->study.name);
    *out = field_of(c, t);
    return 0;
}

void cell_done(struct cell *x)
{
    json_decref(x->json);
    x->json = NULL;
}

bool column_is_told(const struct column *c, const struct view *v)
{
    return !c->is_told || c->is_told(v);
}

const char *column_label(const struct column *c, const struct view *v)
{
    return !c->label ? c->key : *c->label ? c->label : v->metric;
}
