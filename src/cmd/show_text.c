#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/strv.h"
#include "cmd/show_parts.h"

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

static void put_header(struct show *l)
{
    struct buf *b = &l->out;
    char time[32];
    const char *search = show_config_text(l, "search", "algorithm");
    buf_printf(b, "study %s: %s", l->study.name, show_study_state(l));
    if (strcmp(show_study_state(l), "interrupted") == 0)
        buf_puts(b, " ('pipetune run' with its config goes on with it)");
    if (l->driver > 0)
        buf_printf(b, ", driver pid %ld", (long)l->driver);
    buf_printf(b, "\n%d trial%s, %d done, %d failed, %s of trials; begun ", l->trials, l->trials == 1 ? "" : "s",
               l->done, l->failed, table_duration(l->seconds, time));
    show_put_when(b, l->study.created_ms);
    buf_puts(b, l->study.ended_ms ? ", ended " : "");
    if (l->study.ended_ms)
        show_put_when(b, l->study.ended_ms);
    buf_printf(b, "\nmetric %s (%s is better), search %s, seed %lld\n", show_metric(l),
               l->study.maximise ? "greater" : "less", search ? search : "by default", (long long)l->study.seed);
    put_software(l, b);
    buf_putc(b, '\n');
}

static int last_epoch(void *ctx, const struct store_epoch *r)
{
    int *last = ctx;
    *last = r->epoch > *last ? r->epoch : *last;
    return 0;
}

/* The heads: hyperparameters and knobs get a column each as long as there is room for them. */
static int begin_table(struct show *l, const json_t *hyper, const json_t *system)
{
    static const char *const after[] = { ">epochs", ">accuracy", ">loss", ">time", "energy", ">attempts", "reason" };
    enum { OTHERS = 2 + ARRAY_LEN(after), ENERGY = 4 };
    bool fits = json_object_size(hyper) + json_object_size(system) <= TABLE_MAX_COLUMNS - OTHERS;
    AUTO_STRV struct strv heads = STRV_INIT;
    const char *key;
    json_t *value;
    strv_add(&heads, ">trial");
    strv_add(&heads, "state");
    if (fits) {
        json_object_foreach((json_t *)hyper, key, value) strv_addf(&heads, ">%s", key);
        json_object_foreach((json_t *)system, key, value) strv_addf(&heads, ">%s", key);
        l->hyper = json_incref((json_t *)hyper);
        l->system = json_incref((json_t *)system);
    } else {
        strv_add(&heads, "hyperparameters");
        strv_add(&heads, "system");
    }
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        if (i != ENERGY || l->energy.n_meters > 0)
            strv_add(&heads, after[i]);
    if (heads.failed)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    table_init(&l->table, (const char *const *)heads.v);
    return 0;
}

static void cell_of(struct table *t, const struct buf *b)
{
    table_cell(t, b->len ? buf_text(b) : "-");
    t->failed |= b->failed;
}

static void add_settings(struct show *l, const json_t *hyper, const json_t *effective, const json_t *requested)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *key;
    json_t *value;
    if (!l->hyper) {
        show_put_members(&b, hyper);
        cell_of(&l->table, &b);
        buf_clear(&b);
        show_put_system(&b, effective, requested);
        cell_of(&l->table, &b);
        return;
    }
    json_object_foreach(l->hyper, key, value)
    {
        buf_clear(&b);
        if (json_object_get(hyper, key))
            show_put_scalar(&b, json_object_get(hyper, key));
        cell_of(&l->table, &b);
    }
    json_object_foreach(l->system, key, value)
    {
        buf_clear(&b);
        if (json_object_get(effective, key))
            show_put_effective(&b, json_object_get(effective, key), json_object_get(requested, key));
        cell_of(&l->table, &b);
    }
}

/* A column that is there where a meter was read. */
static int add_energy(struct show *l, const struct store_trial *t)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct ledger_figure f;
    if (l->energy.n_meters == 0)
        return 0;
    int rc = energy_figure_number(&l->energy, t->number, &f);
    if (rc < 0)
        return err_sys(l->e, rc, "trial %d", t->number);
    energy_figure_put(&b, &f);
    cell_of(&l->table, &b);
    return 0;
}

static int add_trial_row(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *requested = show_object(t->requested);
    AUTO_JSON json_t *effective = show_object(t->effective);
    int done = strcmp(t->state, "finished") == 0 ? t->epochs : 0;
    int rc = done || t->attempts == 0 ? 0 : store_epochs(l->store, t->id, last_epoch, &done, l->e);
    if (rc == 0 && l->printed++ == 0)
        rc = begin_table(l, hyper, effective);
    if (rc < 0)
        return rc;
    struct table *to = &l->table;
    table_cellf(to, "%d", t->number);
    table_cell(to, show_trial_state(l, t));
    add_settings(l, hyper, effective, requested);
    table_cellf(to, "%d/%d", done, t->epochs);
    table_number(to, t->accuracy, 4);
    table_number(to, t->loss, 4);
    table_seconds(to, show_seconds(l, t));
    rc = add_energy(l, t);
    table_cellf(to, "%d", t->attempts);
    if (t->copy_of)
        table_cellf(to, "same as trial %d", t->copy_of);
    else
        table_cell(to, t->reason);
    return rc;
}

static int put_best(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *effective = show_object(t->effective);
    buf_printf(&l->out, "\nbest: trial %d, ", t->number);
    show_put_figure(&l->out, "accuracy", t->accuracy);
    if (strcmp(show_metric(l), "accuracy") != 0) {
        buf_puts(&l->out, ", ");
        show_put_figure(&l->out, show_metric(l), t->metric);
    }
    buf_puts(&l->out, "; ");
    show_put_members(&l->out, hyper);
    buf_puts(&l->out, json_object_size(effective) ? "; " : "");
    show_put_members(&l->out, effective);
    buf_putc(&l->out, '\n');
    return 0;
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
    buf_printf(&l->out, "  trial %d: ", d->trial);
    show_put_plain(&l->out, d->reason);
    buf_putc(&l->out, '\n');
    return 0;
}

static int put_reuses(struct show *l)
{
    int rc = store_decisions(l->store, l->study.id, 0, put_reuse, l, l->e);
    if (rc == 0 && l->reuses > REUSES_SHOWN)
        buf_printf(&l->out, "  and %d more: pipetune show %s --decisions\n", l->reuses - REUSES_SHOWN, l->study.name);
    return rc;
}

/* 0: not a terminal, lines may be as long as they want. */
static size_t terminal_columns(void)
{
    struct winsize w;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

int show_text_study(struct show *l)
{
    put_header(l);
    int rc = store_trials(l->store, l->study.id, 0, add_trial_row, l, l->e);
    if (rc == 0 && l->table.failed)
        rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    if (rc < 0)
        return rc;
    if (l->printed > 0)
        table_put(&l->table, &l->out, terminal_columns());
    else
        buf_puts(&l->out, "no trial yet\n");
    if (l->best_trial)
        rc = store_trials(l->store, l->study.id, l->best_trial, put_best, l, l->e);
    else if (l->printed > 0)
        buf_puts(&l->out, "\nbest: none, no trial is finished\n");
    if (rc == 0)
        rc = put_reuses(l);
    return rc < 0 ? rc : show_flush(l);
}

/* --- decisions --- */

static int print_decision(void *ctx, const struct store_decision *d)
{
    struct show *l = ctx;
    struct buf *b = &l->out;
    AUTO_JSON json_t *setting = show_object(d->setting);
    char time[32], who[24] = "study";
    if (d->trial)
        (void)snprintf(who, sizeof who, "trial %d", d->trial);
    buf_printf(b, "%11s  %-9s  %-10s ", table_duration(d->t_s, time), who, d->kind);
    show_put_plain(b, d->reason);
    if (json_object_size(setting)) {
        buf_puts(b, "  (");
        show_put_members(b, setting);
        buf_putc(b, ')');
    }
    buf_putc(b, '\n');
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
