#include <errno.h>
#include <math.h>

#include "base/own.h"
#include "view/put.h"
#include "view/repeats.h"
#include "view/words.h"

/* --- a trial ------------------------------------------------------------------------------------------------------------ */

static json_t *cell_json(struct cell *x)
{
    switch (x->kind) {
    case CELL_NUMBER: return json_num(x->number);
    case CELL_INTEGER: return json_integer((json_int_t)x->integer);
    case CELL_TEXT: return json_bytes(x->text);
    case CELL_JSON: return json_incref(x->json);
    case CELL_ABSENT:
    case CELL_NONE: break;
    }
    return json_null();
}

int put_trial_json(json_t **out, struct view *v, struct view_trial *t, const struct column *const *columns,
                   struct err *e)
{
    AUTO_JSON json_t *j = json_object();
    int rc = 0;
    for (; rc == 0 && *columns; columns++) {
        struct cell x;
        rc = column_cell(*columns, v, t, &x, e);
        if (rc == 0 && x.kind != CELL_NONE)
            (void)json_object_set_new(j, (*columns)->key, cell_json(&x));
        cell_done(&x);
    }
    if (rc == 0)
        *out = MOVE_PTR(j);
    return rc;
}

/* --- a study ------------------------------------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *or_null(json_t *j)
{
    return j ? json_incref(j) : json_null();
}

int put_seen_json(json_t **out, const struct view *v, struct err *e)
{
    struct store_seen seen;
    int rc = view_seen(v, &seen, e);
    *out = rc == 1
               ? json_pack("{s:i, s:i, s:o}", "trial", seen.trial, "epoch", seen.epoch, "value", json_num(seen.metric))
               : NULL;
    return rc < 0 ? rc : 0;
}

/* What is reckoned joins it; NULL: it has no such key. */
static int add(json_t *to, const char *key, int rc, json_t *value)
{
    if (rc == 0 && value)
        (void)json_object_set_new(to, key, value);
    return rc;
}

static int header_json(json_t **out, struct view *v, struct err *e)
{
    const struct store_summary *t = &v->totals;
    json_t *repeats = NULL, *learnt = NULL, *seen = NULL;
    int rc = view_pareto(v, e);
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *j = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:o, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "study",
        v->study.name, "state", v->state, "metric", v->metric, "direction", v->study.maximise ? "max" : "min", "best",
        words_best(t->best_trial, t->best_accuracy), "done", t->done, "failed", t->failed, "stopped", t->stopped,
        "paused", t->paused, "seconds", json_num(t->seconds), "created_ms", (json_int_t)v->study.created_ms, "ended_ms",
        words_time_or_null(v->study.ended_ms), "seed", (json_int_t)v->study.seed, "space_hash",
        text_or_null(v->study.space_hash), "config", or_null(v->config), "provenance", or_null(v->provenance),
        "objectives", pareto_goals_json(&v->pareto), "pareto", pareto_json(&v->pareto));
    rc = repeats_json(&repeats, v, e);
    rc = add(j, "repeats", rc, repeats);
    rc = rc < 0 ? rc : repeats_learnt_json(&learnt, v, e);
    rc = add(j, "learnt", rc, learnt);
    rc = rc < 0 ? rc : put_seen_json(&seen, v, e);
    rc = add(j, "best_seen", rc, seen);
    if (rc == 0)
        *out = MOVE_PTR(j);
    return rc;
}

int put_next(const struct put *to, struct err *e)
{
    enum { FULL_AT = 65536 };
    return to->full && (to->b->len >= FULL_AT || to->b->failed) ? to->full(to->b, e) : 0;
}

static void put_members(struct buf *b, json_t *header)
{
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value)
    {
        buf_puts(b, "\n  ");
        json_put_string(b, key);
        buf_puts(b, ": ");
        json_put(b, value, JSON_STYLE_COMPACT);
        buf_putc(b, ',');
    }
}

static int put_one(const struct put *to, struct view *v, struct view_trial *t, bool alone, struct err *e)
{
    AUTO_JSON json_t *j = NULL;
    int rc = put_trial_json(&j, v, t, alone ? columns_show_one : columns_show, e);
    json_put(to->b, j, JSON_STYLE_COMPACT);
    view_forget(t);
    return rc < 0 ? rc : put_next(to, e);
}

int put_study_json(const struct put *to, struct view *v, int trial, struct err *e)
{
    AUTO_JSON json_t *header = NULL;
    const char *sep = "\n    ";
    int rc = header_json(&header, v, e);
    if (rc < 0)
        return rc;
    buf_puts(to->b, "{");
    put_members(to->b, header);
    buf_puts(to->b, "\n  \"trials\": [");
    for (size_t i = 0; rc == 0 && i < v->n; i++) {
        if (trial && v->trials[i].row.number != trial)
            continue;
        buf_puts(to->b, sep);
        rc = put_one(to, v, &v->trials[i], trial != 0, e);
        sep = ",\n    ";
    }
    buf_puts(to->b, "\n  ]\n}\n");
    return rc;
}

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

struct decisions {
    const struct put *to;
    size_t n;
    struct err *e;
};

static int put_decision(void *ctx, const struct store_decision *d)
{
    struct decisions *l = ctx;
    AUTO_JSON json_t *j = json_pack("{s:I, s:o, s:o, s:s, s:o, s:o}", "seq", (json_int_t)d->seq, "trial",
                                    d->trial ? json_integer(d->trial) : json_null(), "t_s", json_num(d->t_s), "kind",
                                    d->kind, "setting", words_json(d->setting), "reason", words_text(d->reason));
    buf_puts(l->to->b, l->n++ ? ",\n  " : "\n  ");
    json_put(l->to->b, j, JSON_STYLE_COMPACT);
    return put_next(l->to, l->e);
}

int put_decisions_json(const struct put *to, const struct view *v, int trial, struct err *e)
{
    struct decisions l = { to, 0, e };
    buf_puts(to->b, "[");
    int rc = store_decisions(v->store, v->study.id, trial, put_decision, &l, e);
    buf_puts(to->b, l.n ? "\n]\n" : "]\n");
    return rc;
}

/* --- a report ----------------------------------------------------------------------------------------------------------- */

static json_t *heat_row_json(const struct heat *h, size_t row)
{
    json_t *values = json_array();
    for (size_t col = 0; col < h->cols; col++)
        (void)json_array_append_new(values, json_num(heat_rate(h, row, col)));
    return json_pack("{s:s, s:s, s:o}", "feature", h->names[row], "kind", h->gauge(row) ? "mean" : "per_second",
                     "values", values);
}

/* Null where nothing was measured. */
static json_t *heat_json(const struct heats_map *h)
{
    AUTO_JSON json_t *cols = json_array();
    AUTO_JSON json_t *rows = json_array();
    for (size_t i = 0; i < h->cols.n; i++)
        (void)json_array_append_new(cols, json_string(h->cols.v[i]));
    for (size_t i = 0; i < h->map.rows; i++)
        if (heat_has(&h->map, i))
            (void)json_array_append_new(rows, heat_row_json(&h->map, i));
    if (json_array_size(rows) == 0)
        return json_null();
    json_t *j = json_pack("{s:O, s:O}", "columns", cols, "rows", rows);
    if (h->trial)
        (void)json_object_set_new(j, "trial", json_integer(h->trial));
    return j;
}

int put_report_json(struct buf *b, struct view *v, const struct heats *h, struct err *e)
{
    AUTO_JSON json_t *trials = json_array();
    int rc = view_energy(v, e);
    if (rc == 0)
        rc = view_pareto(v, e);
    for (size_t i = 0; rc == 0 && i < v->n; i++) {
        json_t *one = NULL;
        rc = put_trial_json(&one, v, &v->trials[i], columns_report_json, e);
        if (rc == 0)
            (void)json_array_append_new(trials, one);
    }
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *j =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:O, s:{s:o, s:o}, s:o, s:o}", "study",
                  v->study.name, "state", v->state, "metric", v->metric, "direction", v->study.maximise ? "max" : "min",
                  "seed", (json_int_t)v->study.seed, "created_ms", (json_int_t)v->study.created_ms, "ended_ms",
                  words_time_or_null(v->study.ended_ms), "seconds", json_num(v->totals.seconds), "energy",
                  energy_figure_json(&v->energy_of), "provenance", or_null(v->provenance), "best",
                  words_best(v->totals.best_trial, v->totals.best_accuracy), "trials", trials, "heat", "trial",
                  heat_json(&h->best), "classes", heat_json(&h->by_class), "objectives", pareto_goals_json(&v->pareto),
                  "pareto", pareto_json(&v->pareto));
    json_put(b, j, JSON_STYLE_INDENT);
    buf_putc(b, '\n');
    return 0;
}
