#include <math.h>

#include "cmd/look.h"
#include "cmd/report.h"
#include "view/foretold.h"
#include "view/metrics.h"

/* --- stories --- */

static json_t *stored_json(const char *text)
{
    json_t *j = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return j ? j : json_null();
}

static json_t *setting_json(double cores, double memory_gb)
{
    return json_pack("{s:o, s:o}", "cores", json_num(cores), "memory_gb", json_num(memory_gb));
}

/* The list of what `one` makes of each; NULL: memory. */
static json_t *list_of(const struct story *s, size_t n, json_t *(*one)(const struct story *, size_t))
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, one(s, i)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *tried_json(const struct story *s, size_t i)
{
    const struct story_tried *t = &s->tried[i];
    return json_pack("{s:o, s:o, s:o, s:o}", "cores", json_num(t->cores), "memory_gb", json_num(t->memory_gb),
                     "seconds", json_num(t->seconds), "records", json_num(t->records));
}

static json_t *step_json(const struct story *s, size_t i)
{
    const struct story_step *t = &s->steps[i];
    return json_pack("{s:o, s:s, s:o, s:o}", "t_s", json_num(t->t_s), "kind", t->kind, "setting",
                     stored_json(t->setting), "reason", look_text(t->reason));
}

static json_t *settled_json(const struct story *s)
{
    if (s->settled < 0)
        return json_null();
    const struct story_step *t = &s->steps[s->settled];
    return json_pack("{s:o, s:o}", "setting", stored_json(t->setting), "reason", look_text(t->reason));
}

static json_t *saved_json(const struct story *s)
{
    if (!isfinite(s->saved_s))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "seconds", json_num(s->saved_s), "core_seconds", json_num(s->saved_core_s),
                     "against", setting_json(s->against_cores, s->against_memory_gb));
}

static json_t *story_json(const struct report *r, const struct story *s)
{
    const char *class = s->class >= 0 ? r->stories.classes.v[s->class] : NULL;
    return json_pack("{s:s?, s:o, s:o, s:o, s:o, s:o}", "class", class, "tried", list_of(s, s->n_tried, tried_json),
                     "settled", settled_json(s), "verdicts", s->verdicts ? json_incref(s->verdicts) : json_array(),
                     "saved", saved_json(s), "steps", list_of(s, s->n_steps, step_json));
}

/* --- trials --- */

static json_t *curve_json(const struct report_trial *t)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < t->n_epochs; i++) {
        const struct store_epoch *ep = &t->epochs[i];
        json_t *one = json_pack("{s:i, s:o, s:o, s:o}", "epoch", ep->epoch, "accuracy", json_num(ep->accuracy), "loss",
                                json_num(ep->loss), "seconds", json_num(ep->seconds));
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *trial_json(const struct report *r, const struct report_trial *t)
{
    const struct store_trial *row = &t->row;
    json_t *metrics = NULL;
    if (metrics_json(r->store, row->id, METRICS_EPOCHS, &metrics, r->e) < 0)
        return NULL;
    json_t *j = json_pack(
        "{s:i, s:s, s:o, s:{s:o, s:o}, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "trial", row->number, "state", t->state, "hyper", look_object(row->hyper), "system", "requested",
        look_object(row->requested), "effective", look_object(row->effective), "epochs", t->done, "budget", row->epochs,
        "accuracy", json_num(row->accuracy), "loss", json_num(row->loss), "metric", json_num(row->metric), "seconds",
        json_num(t->seconds), "energy", energy_figure_json(&t->energy), "attempts", row->attempts, "copy_of",
        row->copy_of ? json_integer(row->copy_of) : json_null(), "repeat_of",
        row->repeat_of ? json_integer(row->repeat_of) : json_null(), "learnt_from", row->learnt_from, "reason",
        look_text(row->reason), "curve", curve_json(t), "story", story_json(r, stories_of(&r->stories, row->number)),
        "metrics", metrics, "objectives", pareto_figures_json(&r->pareto, row->number), "violates",
        look_text(row->violates));
    return foretold_add(j, &t->foretold);
}

/* --- heat maps --- */

static json_t *row_json(const struct heat *h, size_t row)
{
    json_t *values = json_array();
    for (size_t col = 0; values && col < h->cols; col++) {
        if (json_array_append_new(values, json_num(heat_rate(h, row, col))) < 0) {
            json_decref(values);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:o}", "feature", h->names[row], "kind", h->gauge(row) ? "mean" : "per_second",
                     "values", values);
}

static int fill_heat(json_t *cols, json_t *rows, const struct report_heat *h)
{
    int rc = cols && rows ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < h->cols.n; i++)
        rc = json_array_append_new(cols, json_string(h->cols.v[i]));
    for (size_t i = 0; rc == 0 && i < h->map.rows; i++)
        if (heat_has(&h->map, i))
            rc = json_array_append_new(rows, row_json(&h->map, i));
    return rc;
}

/* Null where nothing was measured; NULL: memory. */
static json_t *heat_json(const struct report_heat *h)
{
    AUTO_JSON json_t *cols = json_array();
    AUTO_JSON json_t *rows = json_array();
    if (fill_heat(cols, rows, h) < 0)
        return NULL;
    if (json_array_size(rows) == 0)
        return json_null();
    json_t *j = json_pack("{s:O, s:O}", "columns", cols, "rows", rows);
    if (j && h->trial && json_object_set_new(j, "trial", json_integer(h->trial)) < 0) {
        json_decref(j);
        return NULL;
    }
    return j;
}

/* --- the study --- */

json_t *report_json(const struct report *r)
{
    AUTO_JSON json_t *trials = json_array();
    for (size_t i = 0; i < r->n; i++)
        if (json_array_append_new(trials, trial_json(r, &r->trials[i])) < 0)
            return NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:O?, s:o, s:O, s:{s:o, s:o}, s:o,"
                     " s:o}",
                     "study", r->study.name, "state", report_state(r), "metric", report_metric(r), "direction",
                     r->study.maximise ? "max" : "min", "seed", (json_int_t)r->study.seed, "created_ms",
                     (json_int_t)r->study.created_ms, "ended_ms",
                     r->study.ended_ms ? json_integer(r->study.ended_ms) : json_null(), "seconds",
                     json_num(r->totals.seconds), "energy", energy_figure_json(&r->energy), "provenance", r->provenance,
                     "best", look_best(r->totals.best_trial, r->totals.best_accuracy), "trials", trials, "heat",
                     "trial", heat_json(&r->best), "classes", heat_json(&r->by_class), "objectives",
                     pareto_goals_json(&r->pareto), "pareto", pareto_json(&r->pareto));
}
