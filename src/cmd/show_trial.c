/* One trial for people: its settings, epochs, attempts, and the command of the newest. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/strv.h"
#include "cmd/notes.h"
#include "cmd/show_parts.h"
#include "live/study.h"
#include "store/running.h"
#include "view/foretold.h"
#include "view/metrics.h"

struct epoch_rows {
    struct table table;
    bool own_metric; /* has a column, being neither accuracy nor loss */
};

static int add_epoch_row(void *ctx, const struct store_epoch *r)
{
    struct epoch_rows *rows = ctx;
    struct table *t = &rows->table;
    table_cellf(t, "%d", r->epoch);
    if (rows->own_metric)
        table_number(t, r->metric);
    table_number(t, r->accuracy);
    table_number(t, r->loss);
    table_seconds(t, r->seconds);
    if (r->iterations > 0)
        table_cellf(t, "%lld", (long long)r->iterations);
    else /* no steps were told, which is not that there were none */
        table_number(t, NAN);
    table_number(t, r->seconds > 0 && r->records > 0 ? r->records / r->seconds : NAN);
    table_number(t, r->learning_rate);
    table_cellf(t, "%d", r->attempt);
    return 0;
}

static int put_epochs(struct show *l, const struct store_trial *t)
{
    AUTO_STRV struct strv heads = STRV_INIT;
    struct epoch_rows rows = { .own_metric =
                                   strcmp(show_metric(l), "accuracy") != 0 && strcmp(show_metric(l), "loss") != 0 };
    strv_add(&heads, ">epoch");
    if (rows.own_metric)
        strv_addf(&heads, "!>%s", show_metric(l));
    static const char *const after[] = { "!>accuracy", ">loss",          ">time",   ">iterations",
                                         ">records/s", ">learning rate", ">attempt" };
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        strv_add(&heads, after[i]);
    if (heads.failed)
        return err_sys(l->e, -ENOMEM, "trial %s/%d", l->study.name, t->number);
    struct table *table = &rows.table;
    table_init(table, (const char *const *)heads.v);
    int rc = store_epochs(l->store, t->id, add_epoch_row, &rows, l->e);
    if (rc == 0 && table->n > table->columns) {
        buf_putc(&l->out, '\n');
        table_put(table, &l->out, 0);
    }
    l->out.failed |= table->failed != 0;
    table_done(table);
    return rc;
}

struct attempt_rows {
    struct table table;
    int newest;
    char *argv; /* of the newest */
};

static bool runs_on(const struct store_attempt *r)
{
    return strcmp(r->state, "running") == 0 && r->boot_id &&
           proc_is((pid_t)r->pid, (uint64_t)r->start_ticks, r->boot_id);
}

static int add_attempt_row(void *ctx, const struct store_attempt *r)
{
    struct attempt_rows *a = ctx;
    struct table *t = &a->table;
    AUTO_BUF struct buf when = BUF_INIT;
    show_put_when(&when, r->started_ms);
    int64_t end = r->ended_ms ? r->ended_ms : runs_on(r) ? running_now_ms(r) : 0;
    table_cellf(t, "%d", r->number);
    table_cell(t, r->outcome ? r->outcome : r->state);
    table_cellf(t, "%d", r->first_epoch);
    table_cell(t, r->started_ms ? buf_text(&when) : "-");
    table_seconds(t, end && r->started_ms ? (double)(end - r->started_ms) / 1000.0 : NAN);
    if (r->exit_code >= 0)
        table_cellf(t, "%d", r->exit_code);
    else
        table_cell(t, "-");
    char runs[48];
    (void)snprintf(runs, sizeof runs, "runs, pid %lld", (long long)r->pid);
    table_cell(t, r->place ? r->place : "-");
    table_note(t, r->cause ? r->cause : !r->place && runs_on(r) ? runs : NULL);
    a->newest = r->number;
    free(a->argv);
    a->argv = r->argv ? strdup(r->argv) : NULL;
    return r->argv && !a->argv ? -ENOMEM : 0;
}

static int add_member_row(void *ctx, const struct store_member *r)
{
    struct table *t = ctx;
    table_cellf(t, "%s %d", r->role, r->index);
    table_cell(t, r->place ? r->place : "-");
    table_cellf(t, "%lld", (long long)r->pid);
    table_cellf(t, "%d", r->port);
    return 0;
}

/* Where the processes of the newest attempt are, or were. */
static int put_members(struct show *l, const struct store_trial *t, int attempt)
{
    static const char *const heads[] = { "!process", "host", "!>pid", ">port", NULL };
    struct table table;
    table_init(&table, heads);
    int rc = store_members(l->store, t->id, attempt, add_member_row, &table, l->e);
    if (rc == 0 && table.n > table.columns) {
        buf_printf(&l->out, "\nattempt %d is a gang; the logs of its processes: members/PROCESS-N/log beside its own\n",
                   attempt);
        table_put(&table, &l->out, 0);
    }
    l->out.failed |= table.failed != 0;
    table_done(&table);
    return rc;
}

static void put_command(struct buf *b, const char *argv_text)
{
    AUTO_JSON json_t *argv = argv_text ? json_loads(argv_text, 0, NULL) : NULL;
    if (!json_is_array(argv))
        return;
    buf_puts(b, "\ncommand: ");
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *word = json_string_value(json_array_get(argv, i));
        buf_puts(b, i ? " " : "");
        buf_put_shell(b, word ? word : "");
    }
    buf_putc(b, '\n');
}

static int put_attempts(struct show *l, const struct store_trial *t)
{
    static const char *const heads[] = { ">attempt", "!outcome", ">from epoch", "!started",
                                         "!>time",   ">exit",    "host",        NULL };
    struct attempt_rows a = { 0 };
    table_init(&a.table, heads);
    int rc = store_attempts(l->store, t->id, add_attempt_row, &a, l->e);
    if (rc == -ENOMEM)
        (void)err_sys(l->e, rc, "trial %s/%d", l->study.name, t->number);
    if (rc == 0 && a.table.n > a.table.columns) {
        buf_putc(&l->out, '\n');
        table_put(&a.table, &l->out, 0);
        put_command(&l->out, a.argv);
    }
    if (rc == 0)
        rc = put_members(l, t, a.newest);
    l->out.failed |= a.table.failed != 0;
    table_done(&a.table);
    free(a.argv);
    return rc;
}

static void put_trial_head(struct show *l, const struct store_trial *t)
{
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *requested = show_object(t->requested);
    AUTO_JSON json_t *effective = show_object(t->effective);
    char time[32];
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "trial %s/%d: %s", l->study.name, t->number, show_trial_state(l, t));
    if (t->copy_of)
        buf_printf(&line, ", with the result of %s/%d, whose settings are the same", l->study.name, t->copy_of);
    if (t->repeat_of)
        buf_printf(&line, ", the point of %s/%d again, with seed %lld", l->study.name, t->repeat_of,
                   (long long)(l->study.seed + t->repeat));
    if (t->learnt_from)
        buf_printf(&line, ", the point of %s", t->learnt_from);
    if (t->reason) {
        buf_puts(&line, "\nreason: ");
        show_put_plain(&line, t->reason);
    }
    if (t->violates) {
        buf_puts(&line, "\nbreaks a constraint: ");
        show_put_plain(&line, t->violates);
    }
    buf_putc(&line, '\n');
    if (strcmp(show_metric(l), "accuracy") != 0 && strcmp(show_metric(l), "loss") != 0) {
        show_put_figure(&line, show_metric(l), t->metric);
        buf_puts(&line, ", ");
    }
    show_put_figure(&line, "accuracy", t->accuracy);
    buf_puts(&line, ", ");
    show_put_figure(&line, "loss", t->loss);
    buf_printf(&line, ", %s, %d epochs to train, %d attempt%s", table_duration(show_seconds(l, t), time), t->epochs,
               t->attempts, t->attempts == 1 ? "" : "s");
    buf_puts(&line, "\nhyperparameters: ");
    show_put_members(&line, hyper);
    buf_puts(&line, "\nsystem: ");
    show_put_system(&line, effective, requested);
    buf_printf(&line, "%sslots %d", json_object_size(effective) ? ", " : "", t->slots);
    table_put_lines(&l->out, buf_text(&line), 0);
    l->out.failed |= line.failed;
}

static int put_now(struct show *l, const struct store_trial *t)
{
    AUTO_BUF struct buf line = BUF_INIT;
    struct show_now now;
    int rc = show_now(l, t, &now);
    if (rc < 0 || !now.runs)
        return rc;
    buf_puts(&line, "now: ");
    show_put_now(&line, t, &now);
    table_put_lines(&l->out, buf_text(&line), 0);
    l->out.failed |= line.failed;
    return 0;
}

static int put_forecast(struct show *l, const struct store_trial *t)
{
    AUTO_BUF struct buf line = BUF_INIT;
    struct outlook_told told;
    int rc = outlook_look(l->outlook, t, &told, l->e);
    if (rc < 0 || told.epoch == 0)
        return rc;
    foretold_put(&line, &told);
    table_put_lines(&l->out, buf_text(&line), 0);
    l->out.failed |= line.failed;
    return 0;
}

/* Told where a meter was read. */
static int put_energy(struct show *l, const struct store_trial *t)
{
    struct ledger_figure f;
    if (l->energy.n_meters == 0)
        return 0;
    int rc = energy_figure_number(&l->energy, t->number, &f);
    if (rc < 0)
        return err_sys(l->e, rc, "trial %s/%d", l->study.name, t->number);
    AUTO_BUF struct buf line = BUF_INIT;
    buf_puts(&line, "energy ");
    energy_figure_put(&line, &f);
    buf_printf(&line, "; by epoch: pipetune energy %s/%d", l->study.name, t->number);
    table_put_lines(&l->out, buf_text(&line), 0);
    l->out.failed |= line.failed;
    return 0;
}

static int put_tags(struct show *l, const struct store_trial *t)
{
    AUTO_BUF struct buf line = BUF_INIT;
    int rc = notes_put(&line, "", l->store, t->study, t->number, l->e);
    if (line.len)
        table_put_lines(&l->out, buf_text(&line), 0);
    l->out.failed |= line.failed;
    return rc;
}

static int put_trial(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    l->printed++;
    put_trial_head(l, t);
    int rc = put_tags(l, t);
    if (rc == 0)
        rc = put_now(l, t);
    if (rc == 0)
        rc = put_forecast(l, t);
    if (rc == 0)
        rc = put_energy(l, t);
    if (rc == 0)
        rc = put_epochs(l, t);
    if (rc == 0)
        rc = metrics_put(l->store, t->id, show_metric(l), &l->out, l->e);
    if (rc == 0)
        rc = put_attempts(l, t);
    AUTO_FREE char *log = show_log_path(l, t->number);
    if (rc == 0 && log && io_exists(log))
        buf_printf(&l->out, "log: %s\n", log);
    return rc;
}

int show_trial_text(struct show *l)
{
    int rc = store_trials(l->store, l->study.id, l->trial, put_trial, l, l->e);
    return rc < 0 ? rc : show_flush(l);
}
