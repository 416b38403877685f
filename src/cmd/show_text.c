#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/strv.h"
#include "cmd/look.h"
#include "cmd/notes.h"
#include "cmd/show_parts.h"
#include "view/foretold.h"

/* --- the study --- */

static void put_software(const struct show *l, struct buf *b)
{
    static const struct {
        const char *before, *key;
    } parts[] = { { "pipetune ", "pipetune" }, { ", Spark ", "spark" }, { ", Java ", "java" }, { ", on ", "host" } };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const json_t *value = json_object_get(l->provenance, parts[i].key);
        if (!value || json_is_null(value))
            continue;
        buf_puts(b, parts[i].before);
        show_put_scalar(b, value);
    }
    const char *config = json_string_value(json_object_get(l->provenance, "config_file"));
    buf_puts(b, config ? "; config " : "");
    show_put_plain(b, config);
    buf_putc(b, '\n');
}

static int put_header(struct show *l)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    struct buf *b = &lines;
    char time[32];
    const char *search = show_config_text(l, "search", "algorithm");
    buf_printf(b, "study %s: %s", l->study.name, show_study_state(l));
    if (strcmp(show_study_state(l), "interrupted") == 0)
        buf_puts(b, " ('pipetune run' with its config goes on with it)");
    if (l->driver > 0)
        buf_printf(b, ", driver pid %ld", (long)l->driver);
    buf_printf(b, "\n%d trial%s, ", l->totals.trials, l->totals.trials == 1 ? "" : "s");
    look_put_counts(b, &l->totals);
    buf_printf(b, ", %s of trials; begun ", table_duration(l->totals.seconds, time));
    show_put_when(b, l->study.created_ms);
    buf_puts(b, l->study.ended_ms ? ", ended " : "");
    if (l->study.ended_ms)
        show_put_when(b, l->study.ended_ms);
    buf_printf(b, "\nmetric %s (%s is better), search %s, seed %lld\n", show_metric(l),
               l->study.maximise ? "greater" : "less", search ? search : "by default", (long long)l->study.seed);
    put_software(l, b);
    AUTO_BUF struct buf tags = BUF_INIT;
    int rc = notes_put(&tags, "", l->store, l->study.id, 0, l->e);
    if (tags.len)
        buf_printf(b, "%s\n", buf_text(&tags));
    table_put_lines(&l->out, buf_text(&lines), 0);
    buf_putc(&l->out, '\n');
    l->out.failed |= lines.failed | tags.failed;
    return rc;
}

static int last_epoch(void *ctx, const struct store_epoch *r)
{
    int *last = ctx;
    *last = r->epoch > *last ? r->epoch : *last;
    return 0;
}

/* Heads behind the settings; what a study's trials are judged by stands first of all. */
static int begin_table(struct show *l, const json_t *hyper, const json_t *system)
{
    AUTO_STRV struct strv heads = STRV_INIT;
    const char *key, *metric = show_metric(l);
    json_t *value;
    strv_add(&heads, "trial");
    strv_addf(&heads, "!>%s", metric);
    strv_add(&heads, "state");
    json_object_foreach((json_t *)hyper, key, value) strv_addf(&heads, ">%s", key);
    json_object_foreach((json_t *)system, key, value) strv_addf(&heads, ">%s", key);
    strv_add(&heads, ">epochs");
    if (strcmp(metric, "accuracy") != 0)
        strv_add(&heads, ">accuracy");
    if (strcmp(metric, "loss") != 0)
        strv_add(&heads, ">loss");
    strv_add(&heads, "!>time");
    if (l->energy.n_meters > 0) {
        strv_add(&heads, ">energy, J");
        strv_add(&heads, "energy is");
    }
    strv_add(&heads, ">attempts");
    if (heads.failed)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    l->hyper = json_incref((json_t *)hyper);
    l->system = json_incref((json_t *)system);
    table_init(&l->table, (const char *const *)heads.v);
    return 0;
}

static void cell_of(struct table *t, const struct buf *b)
{
    table_cell(t, b->len ? buf_text(b) : "-");
    t->failed |= b->failed;
}

/* The first trial's settings are the heads': where a later one has another, it is told trial by trial, however alike they read. */
static void add_settings(struct show *l, const json_t *hyper, const json_t *effective, const json_t *requested)
{
    enum { BEFORE = 3 };
    AUTO_BUF struct buf b = BUF_INIT;
    size_t column = BEFORE;
    const char *key;
    json_t *value;
    json_object_foreach(l->hyper, key, value)
    {
        json_t *own = json_object_get(hyper, key);
        buf_clear(&b);
        if (own)
            show_put_short(&b, own);
        cell_of(&l->table, &b);
        if (!own || !json_equal(own, value))
            table_differs(&l->table, column);
        column++;
    }
    json_object_foreach(l->system, key, value)
    {
        buf_clear(&b);
        if (json_object_get(effective, key))
            show_put_effective(&b, json_object_get(effective, key), json_object_get(requested, key));
        cell_of(&l->table, &b);
    }
}

/* Columns that are there where a meter was read. */
static int add_energy(struct show *l, const struct store_trial *t, struct buf *note)
{
    char source[64];
    struct ledger_figure f;
    if (l->energy.n_meters == 0)
        return 0;
    int rc = energy_figure_number(&l->energy, t->number, &f);
    if (rc < 0)
        return err_sys(l->e, rc, "trial %s/%d", l->study.name, t->number);
    table_number(&l->table, f.j);
    table_cellf(&l->table, "%s%s", energy_figure_source(&f, source),
                energy_figure_with_idle(&f) ? ENERGY_IDLE_INCLUDED : "");
    if (energy_figure_thin(&f))
        buf_printf(note, "%s%d %% of its energy covered", note->len ? "; " : "",
                   isfinite(f.coverage) ? energy_figure_percent(&f) : 0);
    return 0;
}

static int add_forecast(struct show *l, const struct store_trial *t, struct buf *note)
{
    struct outlook_told told;
    int rc = outlook_look(l->outlook, t, &told, l->e);
    if (rc == 0 && told.epoch) {
        buf_puts(note, note->len ? "; " : "");
        foretold_put(note, &told);
    }
    return rc;
}

static int add_figures(struct show *l, const struct store_trial *t, const struct show_now *now, int done)
{
    struct table *to = &l->table;
    AUTO_BUF struct buf note = BUF_INIT;
    const char *metric = show_metric(l);
    table_cellf(to, "%d/%d", done, t->epochs);
    if (strcmp(metric, "accuracy") != 0)
        table_number(to, t->accuracy);
    if (strcmp(metric, "loss") != 0)
        table_number(to, t->loss);
    table_seconds(to, show_seconds(l, t));
    if (t->copy_of)
        buf_printf(&note, "the same settings as %s/%d, whose result it has", l->study.name, t->copy_of);
    else if (now->runs)
        show_put_now(&note, t, now);
    else
        show_put_plain(&note, t->reason);
    if (t->violates) {
        buf_puts(&note, note.len ? "; breaks a constraint: " : "breaks a constraint: ");
        show_put_plain(&note, t->violates);
    }
    if (t->repeat_of)
        buf_printf(&note, "%s%s/%d again, with seed %lld", note.len ? "; " : "", l->study.name, t->repeat_of,
                   (long long)(l->study.seed + t->repeat));
    if (t->learnt_from)
        buf_printf(&note, "%sthe point of %s", note.len ? "; " : "", t->learnt_from);
    int rc = add_forecast(l, t, &note);
    if (rc == 0)
        rc = add_energy(l, t, &note);
    if (rc == 0)
        rc = notes_put(&note, "; ", l->store, t->study, t->number, l->e);
    table_cellf(to, "%d", t->attempts);
    table_note(to, buf_text(&note));
    to->failed |= note.failed;
    return rc;
}

static int add_trial_row(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *requested = show_object(t->requested);
    AUTO_JSON json_t *effective = show_object(t->effective);
    int done = strcmp(t->state, "finished") == 0 ? t->epochs : 0;
    int rc = done || t->attempts == 0 ? 0 : store_epochs(l->store, t->id, last_epoch, &done, l->e);
    struct show_now now;
    if (rc == 0)
        rc = show_now(l, t, &now);
    if (rc == 0 && l->printed++ == 0)
        rc = begin_table(l, hyper, effective);
    if (rc < 0)
        return rc;
    table_cellf(&l->table, "%s/%d", l->study.name, t->number);
    table_number(&l->table, t->metric);
    table_cell(&l->table, show_trial_state(l, t));
    add_settings(l, hyper, effective, requested);
    return add_figures(l, t, &now, done);
}

static int put_best(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *effective = show_object(t->effective);
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "best: %s/%d, ", l->study.name, t->number);
    if (strcmp(show_metric(l), "accuracy") != 0) {
        show_put_figure(&line, show_metric(l), t->metric);
        buf_puts(&line, ", ");
    }
    show_put_figure(&line, "accuracy", t->accuracy);
    buf_puts(&line, "; ");
    show_put_members(&line, hyper);
    buf_puts(&line, json_object_size(effective) ? "; " : "");
    show_put_members(&line, effective);
    buf_putc(&l->out, '\n');
    table_put_wrapped(&l->out, buf_text(&line), 2, 0);
    l->out.failed |= line.failed;
    return 0;
}

static int put_seen(struct show *l)
{
    AUTO_BUF struct buf line = BUF_INIT;
    int rc = look_put_seen(&line, l->store, &l->study, l->totals.best_trial, l->e);
    if (rc == 0 && line.len)
        table_put_wrapped(&l->out, buf_text(&line), 2, 0);
    l->out.failed |= line.failed;
    return rc;
}

enum { REUSES_SHOWN = 8 };

/* Which jobs were recognised, and what that saved. */
static int put_reuse(void *ctx, const struct store_decision *d)
{
    struct show *l = ctx;
    if (strcmp(d->kind, "reuse") != 0)
        return 0;
    if (l->reuses++ == 0)
        buf_puts(&l->out, "\nrecognised:\n");
    if (l->reuses > REUSES_SHOWN)
        return 0;
    buf_printf(&l->out, "  %s/%d: ", l->study.name, d->trial);
    table_put_wrapped(&l->out, d->reason, 4, 0);
    return 0;
}

static int put_reuses(struct show *l)
{
    int rc = store_decisions(l->store, l->study.id, 0, put_reuse, l, l->e);
    if (rc == 0 && l->reuses > REUSES_SHOWN)
        buf_printf(&l->out, "  and %d more: pipetune show %s --decisions\n", l->reuses - REUSES_SHOWN, l->study.name);
    return rc;
}

int show_text_study(struct show *l)
{
    int rc = put_header(l);
    if (rc == 0)
        rc = store_trials(l->store, l->study.id, 0, add_trial_row, l, l->e);
    if (rc == 0 && l->table.failed)
        rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    if (rc < 0)
        return rc;
    if (l->printed > 0)
        table_put(&l->table, &l->out, 0);
    else
        buf_puts(&l->out, "no trial yet\n");
    if (l->totals.best_trial)
        rc = store_trials(l->store, l->study.id, l->totals.best_trial, put_best, l, l->e);
    else if (l->printed > 0)
        buf_printf(&l->out, "\nbest: none, no trial is finished%s\n",
                   l->totals.done > 0 ? " that keeps the constraints" : "");
    pareto_put(&l->pareto, l->study.name, &l->out);
    if (rc == 0)
        rc = put_seen(l);
    if (rc == 0)
        rc = show_repeats_text(l);
    if (rc == 0)
        rc = show_learnt_text(l);
    if (rc == 0)
        rc = put_reuses(l);
    return rc < 0 ? rc : show_flush(l);
}

/* --- decisions --- */

enum { DECISION_INDENT = 13 };

static int print_decision(void *ctx, const struct store_decision *d)
{
    struct show *l = ctx;
    struct buf *b = &l->out;
    AUTO_JSON json_t *setting = show_object(d->setting);
    AUTO_BUF struct buf line = BUF_INIT;
    char time[32];
    buf_printf(b, "%11s  %s", table_duration(d->t_s, time), l->study.name);
    if (d->trial)
        buf_printf(b, "/%d", d->trial);
    buf_printf(b, "  %-10s ", d->kind);
    show_put_plain(&line, d->reason);
    if (json_object_size(setting)) {
        buf_puts(&line, "  (");
        show_put_members(&line, setting);
        buf_putc(&line, ')');
    }
    table_put_wrapped(b, buf_text(&line), DECISION_INDENT, 0);
    b->failed |= line.failed;
    l->printed++;
    return show_flush_when_full(l);
}

int show_text_decisions(struct show *l)
{
    int rc = store_decisions(l->store, l->study.id, l->trial, print_decision, l, l->e);
    if (l->printed == 0)
        buf_puts(&l->out, "nothing was decided yet\n");
    return rc < 0 ? rc : show_flush(l);
}
