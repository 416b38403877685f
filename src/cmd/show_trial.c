/* One trial for people: its settings, epochs, attempts, and the command of the newest. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "cmd/show_parts.h"
#include "live/study.h"

static int add_epoch_row(void *ctx, const struct store_epoch *r)
{
    struct table *t = ctx;
    table_cellf(t, "%d", r->epoch);
    table_number(t, r->accuracy, 4);
    table_number(t, r->loss, 4);
    table_seconds(t, r->seconds);
    table_cellf(t, "%lld", (long long)r->iterations);
    table_number(t, r->seconds > 0 ? r->records / r->seconds : NAN, 0);
    table_number(t, r->learning_rate, 8);
    table_cellf(t, "%d", r->attempt);
    return 0;
}

static int put_epochs(struct show *l, const struct store_trial *t)
{
    static const char *const heads[] = { ">epoch",     ">accuracy",      ">loss",    ">time", ">iterations",
                                         ">records/s", ">learning rate", ">attempt", NULL };
    struct table table;
    table_init(&table, heads);
    int rc = store_epochs(l->store, t->id, add_epoch_row, &table, l->e);
    if (rc == 0 && table.n > table.columns) {
        buf_putc(&l->out, '\n');
        table_put(&table, &l->out, 0);
    }
    l->out.failed |= table.failed != 0;
    table_done(&table);
    return rc;
}

struct attempt_rows {
    struct table table;
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
    int64_t end = r->ended_ms ? r->ended_ms : runs_on(r) ? study_now_ms() : 0;
    table_cellf(t, "%d", r->number);
    table_cell(t, r->outcome ? r->outcome : r->state);
    table_cellf(t, "%d", r->first_epoch);
    table_cell(t, r->started_ms ? buf_text(&when) : "-");
    table_seconds(t, end && r->started_ms ? (double)(end - r->started_ms) / 1000.0 : NAN);
    if (r->exit_code >= 0)
        table_cellf(t, "%d", r->exit_code);
    else
        table_cell(t, "-");
    if (!r->cause && runs_on(r))
        table_cellf(t, "runs, pid %lld", (long long)r->pid);
    else
        table_cell(t, r->cause);
    free(a->argv);
    a->argv = r->argv ? strdup(r->argv) : NULL;
    return r->argv && !a->argv ? -ENOMEM : 0;
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
    static const char *const heads[] = { ">attempt", "outcome", ">from epoch", "started",
                                         ">time",    ">exit",   "cause",       NULL };
    struct attempt_rows a = { 0 };
    table_init(&a.table, heads);
    int rc = store_attempts(l->store, t->id, add_attempt_row, &a, l->e);
    if (rc == -ENOMEM)
        (void)err_sys(l->e, rc, "trial %d", t->number);
    if (rc == 0 && a.table.n > a.table.columns) {
        buf_putc(&l->out, '\n');
        table_put(&a.table, &l->out, 0);
        put_command(&l->out, a.argv);
    }
    l->out.failed |= a.table.failed != 0;
    table_done(&a.table);
    free(a.argv);
    return rc;
}

static void put_trial_head(struct show *l, const struct store_trial *t)
{
    struct buf *b = &l->out;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    AUTO_JSON json_t *requested = show_object(t->requested);
    AUTO_JSON json_t *effective = show_object(t->effective);
    char time[32];
    buf_printf(b, "trial %d of study %s: %s", t->number, l->study.name, show_trial_state(l, t));
    if (t->copy_of)
        buf_printf(b, ", with the result of trial %d, whose settings are the same", t->copy_of);
    if (t->reason) {
        buf_puts(b, "\nreason: ");
        show_put_plain(b, t->reason);
    }
    buf_puts(b, "\nhyperparameters: ");
    show_put_members(b, hyper);
    buf_puts(b, "\nsystem: ");
    show_put_system(b, effective, requested);
    buf_printf(b, "%sslots %d\n", json_object_size(effective) ? ", " : "", t->slots);
    show_put_figure(b, "accuracy", t->accuracy);
    buf_puts(b, ", ");
    show_put_figure(b, "loss", t->loss);
    buf_printf(b, ", %s, %d epochs to train, %d attempt%s\n", table_duration(show_seconds(l, t), time), t->epochs,
               t->attempts, t->attempts == 1 ? "" : "s");
}

/* Told where a meter was read. */
static int put_energy(struct show *l, const struct store_trial *t)
{
    struct ledger_figure f;
    if (l->energy.n_meters == 0)
        return 0;
    int rc = energy_figure_number(&l->energy, t->number, &f);
    if (rc < 0)
        return err_sys(l->e, rc, "trial %d", t->number);
    buf_puts(&l->out, "energy ");
    energy_figure_put(&l->out, &f);
    buf_printf(&l->out, "; by epoch: pipetune energy %s\n", l->study.name);
    return 0;
}

static int put_trial(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    l->printed++;
    put_trial_head(l, t);
    int rc = put_energy(l, t);
    if (rc == 0)
        rc = put_epochs(l, t);
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
