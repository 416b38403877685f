/* A study and its decisions for people. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/strv.h"
#include "core/sched.h"
#include "view/foretold.h"
#include "view/now.h"
#include "view/put.h"
#include "view/repeats.h"
#include "view/table.h"
#include "view/words.h"

/* --- the study --- */

static void put_software(const struct view *v, struct buf *b)
{
    static const struct {
        const char *before, *key;
    } parts[] = { { "pipetune ", "pipetune" }, { ", Spark ", "spark" }, { ", Java ", "java" }, { ", on ", "host" } };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const json_t *value = json_object_get(v->provenance, parts[i].key);
        if (!value || json_is_null(value))
            continue;
        buf_puts(b, parts[i].before);
        words_put_scalar(b, value);
    }
    const char *config = json_string_value(json_object_get(v->provenance, "config_file"));
    buf_puts(b, config ? "; config " : "");
    words_put_plain(b, config);
    buf_puts(b, v->provenance ? "\n" : "");
}

static void put_header(struct buf *to, const struct view *v)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    struct buf *b = &lines;
    char time[32];
    const char *search = view_config(v, "search", "algorithm");
    buf_printf(b, "study %s: %s", v->study.name, v->state);
    if (strcmp(v->state, "interrupted") == 0)
        buf_puts(b, " ('pipetune run' with its config goes on with it)");
    if (v->driver > 0)
        buf_printf(b, ", driver pid %ld", (long)v->driver);
    buf_printf(b, "\n%d trial%s, ", v->totals.trials, v->totals.trials == 1 ? "" : "s");
    words_put_counts(b, &v->totals);
    buf_printf(b, ", %s of trials; begun ", table_duration(v->totals.seconds, time));
    words_put_when(b, v->study.created_ms);
    buf_puts(b, v->study.ended_ms ? ", ended " : "");
    if (v->study.ended_ms)
        words_put_when(b, v->study.ended_ms);
    buf_printf(b, "\nmetric %s (%s is better), search %s, seed %lld\n", v->metric,
               v->study.maximise ? "greater" : "less", search ? search : "by default", (long long)v->study.seed);
    put_software(v, b);
    table_put_lines(to, buf_text(&lines), 0);
    buf_putc(to, '\n');
    to->failed |= lines.failed;
}

/* --- its trials --- */

enum { COLUMNS_MAX = 16 };

/* Of columns that are spread: the first trial's members, a column of the table for each. */
struct rows {
    struct view *v;
    struct table table;
    json_t *members[COLUMNS_MAX];
};

static void rows_done(struct rows *r)
{
    table_done(&r->table);
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        json_decref(r->members[i]);
}

/* What a study's trials are judged by stands first of all. */
static int begin_table(struct rows *r, struct err *e)
{
    AUTO_STRV struct strv heads = STRV_INIT;
    int rc = 0;
    for (size_t i = 0; rc == 0 && columns_table[i]; i++) {
        const struct column *c = columns_table[i];
        struct cell x = { .kind = CELL_ABSENT };
        const char *key;
        json_t *value;
        if (!column_is_told(c, r->v))
            continue;
        if (c->spread)
            rc = column_cell(c, r->v, &r->v->trials[0], &x, e);
        else
            strv_addf(&heads, "%s%s%s", c->stays ? "!" : "", c->is_text ? "" : ">", column_label(c, r->v));
        r->members[i] = json_incref(x.json);
        json_object_foreach(x.json, key, value) strv_addf(&heads, ">%s", key);
        cell_done(&x);
    }
    if (rc < 0 || heads.failed)
        return rc < 0 ? rc : -ENOMEM;
    table_init(&r->table, (const char *const *)heads.v);
    return 0;
}

/* The first trial's members are the heads': where a later one has another, it is told trial by trial, however alike they read. */
static void add_members(struct rows *r, size_t *at, const json_t *own, json_t *first)
{
    const char *key;
    json_t *value;
    json_object_foreach(first, key, value)
    {
        AUTO_BUF struct buf text = BUF_INIT;
        const json_t *one = json_object_get(own, key);
        if (one)
            words_put_short(&text, one);
        table_cell(&r->table, text.len ? buf_text(&text) : "-");
        r->table.failed |= text.failed;
        if (!one || !json_equal(one, value))
            table_differs(&r->table, *at);
        ++*at;
    }
}

static void add_cell(struct table *t, const struct column *c, const struct cell *x)
{
    double number = x->kind == CELL_NUMBER ? x->number : (double)NAN;
    if (x->kind == CELL_INTEGER)
        table_cellf(t, "%lld", (long long)x->integer);
    else if (x->kind == CELL_TEXT)
        table_cell(t, x->text);
    else if (c->unit)
        table_seconds(t, number);
    else
        table_number(t, number);
}

static int add_cells(struct rows *r, struct view_trial *t, struct err *e)
{
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && columns_table[i]; i++) {
        const struct column *c = columns_table[i];
        struct cell x;
        if (!column_is_told(c, r->v))
            continue;
        rc = column_cell(c, r->v, t, &x, e);
        if (c->spread) {
            add_members(r, &at, x.json, r->members[i]);
        } else {
            add_cell(&r->table, c, &x);
            at++;
        }
        cell_done(&x);
    }
    return rc;
}

/* Why it is as it is, what it is at, and what it will be. */
int put_trial_note(struct buf *note, struct view *v, struct view_trial *t, struct err *e)
{
    const struct store_trial *row = &t->row;
    struct now now;
    int rc = now_of(v, t, &now, e);
    if (rc < 0)
        return rc;
    if (row->copy_of)
        buf_printf(note, "the same settings as %s/%d, whose result it has", v->study.name, row->copy_of);
    else if (now.runs)
        now_put(note, row, &now);
    else
        words_put_plain(note, row->reason);
    if (row->violates) {
        words_put_note(note, "breaks a constraint: ");
        words_put_plain(note, row->violates);
    }
    if (row->repeat_of)
        buf_printf(note, "%s%s/%d again, with seed %lld", note->len ? "; " : "", v->study.name, row->repeat_of,
                   (long long)(v->study.seed + row->repeat));
    if (row->learnt_from)
        buf_printf(note, "%sthe point of %s", note->len ? "; " : "", row->learnt_from);
    rc = view_forecast(v, t, e);
    if (rc == 0 && t->foretold.epoch) {
        buf_puts(note, note->len ? "; " : "");
        foretold_put(note, &t->foretold);
    }
    return rc;
}

static int put_covered(struct buf *note, const struct view *v, const struct view_trial *t, struct err *e)
{
    struct ledger_figure f;
    int rc = view_trial_energy(v, t, &f, e);
    if (rc == 0 && energy_figure_thin(&f))
        buf_printf(note, "%s%d %% of its energy covered", note->len ? "; " : "",
                   isfinite(f.coverage) ? energy_figure_percent(&f) : 0);
    return rc;
}

static int add_row(struct rows *r, struct view_trial *t, struct err *e)
{
    AUTO_BUF struct buf note = BUF_INIT;
    int rc = add_cells(r, t, e);
    if (rc == 0)
        rc = put_trial_note(&note, r->v, t, e);
    if (rc == 0)
        rc = put_covered(&note, r->v, t, e);
    table_note(&r->table, buf_text(&note));
    r->table.failed |= note.failed;
    return rc;
}

static int put_trials(struct buf *b, struct view *v, struct err *e)
{
    struct rows r = { .v = v };
    if (v->n == 0) {
        buf_puts(b, "no trial yet\n");
        return 0;
    }
    int rc = view_energy(v, e);
    if (rc == 0)
        rc = begin_table(&r, e);
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = add_row(&r, &v->trials[i], e);
    if (rc == 0)
        rc = r.table.failed ? -ENOMEM : 0;
    if (rc == 0)
        table_put(&r.table, b, 0);
    rows_done(&r);
    return view_explain(rc, e, v->study.name);
}

/* --- what it came to --- */

static void put_best(struct buf *b, const struct view *v)
{
    const struct view_trial *t = view_trial(v, v->totals.best_trial);
    if (!t) {
        if (v->n > 0)
            buf_printf(b, "\nbest: none, no trial is finished%s\n",
                       v->totals.done > 0 ? " that keeps the constraints" : "");
        return;
    }
    AUTO_JSON json_t *hyper = words_object(t->row.hyper);
    AUTO_JSON json_t *effective = words_object(t->row.effective);
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "best: %s/%d, ", v->study.name, t->row.number);
    if (strcmp(v->metric, "accuracy") != 0) {
        words_put_figure(&line, v->metric, t->row.metric);
        buf_puts(&line, ", ");
    }
    words_put_figure(&line, "accuracy", t->row.accuracy);
    buf_puts(&line, "; ");
    words_put_members(&line, hyper);
    buf_puts(&line, json_object_size(effective) ? "; " : "");
    words_put_members(&line, effective);
    buf_putc(b, '\n');
    table_put_wrapped(b, buf_text(&line), 2, 0);
    b->failed |= line.failed;
}

int put_seen_text(struct buf *b, const struct view *v, struct err *e)
{
    struct store_seen seen;
    char value[32];
    int rc = view_seen(v, &seen, e);
    if (rc != 1)
        return rc;
    const struct store_trial *t = &view_trial(v, seen.trial)->row;
    bool paused = strcmp(t->state, trial_state_name(TRIAL_PAUSED)) == 0;
    buf_printf(b, "%s/%d had %s after %d of %d epochs, and %s%s", v->study.name, seen.trial,
               table_digits(seen.metric, value), seen.epoch, t->epochs, paused ? "is paused" : "was stopped",
               t->reason ? ": " : "");
    words_put_plain(b, t->reason);
    return 0;
}

static int put_seen(struct buf *b, const struct view *v, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    int rc = put_seen_text(&line, v, e);
    if (rc == 0 && line.len)
        table_put_wrapped(b, buf_text(&line), 2, 0);
    b->failed |= line.failed;
    return rc;
}

enum { REUSES_SHOWN = 8 };

struct reuses {
    struct buf *b;
    const char *study;
    int n;
};

/* Which jobs were recognised, and what that saved. */
static int put_reuse(void *ctx, const struct store_decision *d)
{
    struct reuses *r = ctx;
    if (strcmp(d->kind, "reuse") != 0)
        return 0;
    if (r->n++ == 0)
        buf_puts(r->b, "\nrecognised:\n");
    if (r->n > REUSES_SHOWN)
        return 0;
    buf_printf(r->b, "  %s/%d: ", r->study, d->trial);
    table_put_wrapped(r->b, d->reason, 4, 0);
    return 0;
}

static int put_reuses(struct buf *b, const struct view *v, struct err *e)
{
    struct reuses r = { b, v->study.name, 0 };
    int rc = store_decisions(v->store, v->study.id, 0, put_reuse, &r, e);
    if (rc == 0 && r.n > REUSES_SHOWN)
        buf_printf(b, "  and %d more: pipetune show %s --decisions\n", r.n - REUSES_SHOWN, v->study.name);
    return rc;
}

int put_study_text(struct buf *b, struct view *v, struct err *e)
{
    put_header(b, v);
    int rc = put_trials(b, v, e);
    if (rc == 0)
        rc = view_pareto(v, e);
    if (rc < 0)
        return rc;
    put_best(b, v);
    pareto_put(&v->pareto, v->study.name, b);
    rc = put_seen(b, v, e);
    if (rc == 0)
        rc = repeats_put(b, v, e);
    if (rc == 0)
        rc = repeats_put_learnt(b, v, e);
    return rc < 0 ? rc : put_reuses(b, v, e);
}

/* --- decisions --- */

enum { DECISION_INDENT = 13 };

struct decisions {
    const struct put *to;
    const char *study;
    size_t n;
    struct err *e;
};

static int put_decision(void *ctx, const struct store_decision *d)
{
    struct decisions *l = ctx;
    struct buf *b = l->to->b;
    AUTO_JSON json_t *setting = words_object(d->setting);
    AUTO_BUF struct buf line = BUF_INIT;
    char time[32];
    buf_printf(b, "%11s  %s", table_duration(d->t_s, time), l->study);
    if (d->trial)
        buf_printf(b, "/%d", d->trial);
    buf_printf(b, "  %-10s ", d->kind);
    words_put_plain(&line, d->reason);
    if (json_object_size(setting)) {
        buf_puts(&line, "  (");
        words_put_members(&line, setting);
        buf_putc(&line, ')');
    }
    table_put_wrapped(b, buf_text(&line), DECISION_INDENT, 0);
    b->failed |= line.failed;
    l->n++;
    return put_next(l->to, l->e);
}

int put_decisions_text(const struct put *to, const struct view *v, int trial, struct err *e)
{
    struct decisions l = { to, v->study.name, 0, e };
    int rc = store_decisions(v->store, v->study.id, trial, put_decision, &l, e);
    if (l.n == 0)
        buf_puts(to->b, "nothing was decided yet\n");
    return rc;
}
