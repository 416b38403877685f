/* One trial for people: its settings, epochs, attempts, and the command of the newest. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/strv.h"
#include "store/running.h"
#include "view/foretold.h"
#include "view/metrics.h"
#include "view/now.h"
#include "view/put.h"
#include "view/table.h"
#include "view/words.h"

static bool has_own_metric(const struct view *v)
{
    return strcmp(v->metric, "accuracy") != 0 && strcmp(v->metric, "loss") != 0;
}

static void add_epoch_row(struct table *t, const struct store_epoch *r, bool own_metric)
{
    table_cellf(t, "%d", r->epoch);
    if (own_metric)
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
}

static int put_epochs(struct buf *b, const struct view *v, struct view_trial *t, struct err *e)
{
    static const char *const after[] = { "!>accuracy", ">loss",          ">time",   ">iterations",
                                         ">records/s", ">learning rate", ">attempt" };
    AUTO_STRV struct strv heads = STRV_INIT;
    struct table table;
    strv_add(&heads, ">epoch");
    if (has_own_metric(v))
        strv_addf(&heads, "!>%s", v->metric);
    for (size_t i = 0; i < ARRAY_LEN(after); i++)
        strv_add(&heads, after[i]);
    if (heads.failed)
        return -ENOMEM;
    int rc = view_epochs(v, t, e);
    if (rc < 0 || t->n_epochs == 0)
        return rc;
    table_init(&table, (const char *const *)heads.v);
    for (size_t i = 0; i < t->n_epochs; i++)
        add_epoch_row(&table, &t->epochs[i], has_own_metric(v));
    buf_putc(b, '\n');
    table_put(&table, b, 0);
    b->failed |= table.failed != 0;
    table_done(&table);
    return 0;
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
    words_put_when(&when, r->started_ms);
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
    t->failed |= when.failed;
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
static int put_members(struct buf *b, const struct view *v, const struct view_trial *t, int attempt, struct err *e)
{
    static const char *const heads[] = { "!process", "host", "!>pid", ">port", NULL };
    struct table table;
    table_init(&table, heads);
    int rc = store_members(v->store, t->row.id, attempt, add_member_row, &table, e);
    if (rc == 0 && table.n > table.columns) {
        buf_printf(b, "\nattempt %d is a gang; the logs of its processes: members/PROCESS-N/log beside its own\n",
                   attempt);
        table_put(&table, b, 0);
    }
    b->failed |= table.failed != 0;
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

static int put_attempts(struct buf *b, const struct view *v, const struct view_trial *t, struct err *e)
{
    static const char *const heads[] = { ">attempt", "!outcome", ">from epoch", "!started",
                                         "!>time",   ">exit",    "host",        NULL };
    struct attempt_rows a = { 0 };
    table_init(&a.table, heads);
    int rc = store_attempts(v->store, t->row.id, add_attempt_row, &a, e);
    if (rc == 0 && a.table.n > a.table.columns) {
        buf_putc(b, '\n');
        table_put(&a.table, b, 0);
        put_command(b, a.argv);
    }
    if (rc == 0)
        rc = put_members(b, v, t, a.newest, e);
    b->failed |= a.table.failed != 0;
    table_done(&a.table);
    free(a.argv);
    return rc;
}

static void put_origin(struct buf *b, const struct view *v, const struct store_trial *t)
{
    if (t->copy_of)
        buf_printf(b, ", with the result of %s/%d, whose settings are the same", v->study.name, t->copy_of);
    if (t->repeat_of)
        buf_printf(b, ", the point of %s/%d again, with seed %lld", v->study.name, t->repeat_of,
                   (long long)(v->study.seed + t->repeat));
    if (t->learnt_from)
        buf_printf(b, ", the point of %s", t->learnt_from);
    if (t->reason) {
        buf_puts(b, "\nreason: ");
        words_put_plain(b, t->reason);
    }
    if (t->violates) {
        buf_puts(b, "\nbreaks a constraint: ");
        words_put_plain(b, t->violates);
    }
}

static void put_head(struct buf *b, const struct view *v, const struct view_trial *vt)
{
    const struct store_trial *t = &vt->row;
    AUTO_JSON json_t *hyper = words_object(t->hyper);
    AUTO_JSON json_t *requested = words_object(t->requested);
    AUTO_JSON json_t *effective = words_object(t->effective);
    char time[32];
    buf_printf(b, "trial %s/%d: %s", v->study.name, t->number, vt->state);
    put_origin(b, v, t);
    buf_putc(b, '\n');
    if (has_own_metric(v)) {
        words_put_figure(b, v->metric, t->metric);
        buf_puts(b, ", ");
    }
    words_put_figure(b, "accuracy", t->accuracy);
    buf_puts(b, ", ");
    words_put_figure(b, "loss", t->loss);
    buf_printf(b, ", %s, %d epochs to train, %d attempt%s", table_duration(vt->seconds, time), t->epochs, t->attempts,
               t->attempts == 1 ? "" : "s");
    buf_puts(b, "\nhyperparameters: ");
    words_put_members(b, hyper);
    buf_puts(b, "\nsystem: ");
    words_put_system(b, effective, requested);
    buf_printf(b, "%sslots %d\n", json_object_size(effective) ? ", " : "", t->slots);
}

static int put_now(struct buf *b, const struct view *v, const struct view_trial *t, struct err *e)
{
    struct now now;
    int rc = now_of(v, t, &now, e);
    if (rc < 0 || !now.runs)
        return rc;
    buf_puts(b, "now: ");
    now_put(b, &t->row, &now);
    buf_putc(b, '\n');
    return 0;
}

static int put_forecast(struct buf *b, struct view *v, struct view_trial *t, struct err *e)
{
    int rc = view_forecast(v, t, e);
    if (rc < 0 || t->foretold.epoch == 0)
        return rc;
    foretold_put(b, &t->foretold);
    buf_putc(b, '\n');
    return 0;
}

/* Told where a meter was read. */
static int put_energy(struct buf *b, struct view *v, const struct view_trial *t, struct err *e)
{
    struct ledger_figure f;
    int rc = view_energy(v, e);
    if (rc < 0 || v->energy.n_meters == 0)
        return rc;
    rc = view_trial_energy(v, t, &f, e);
    if (rc < 0)
        return rc;
    buf_puts(b, "energy ");
    energy_figure_put(b, &f);
    buf_printf(b, "; by epoch: pipetune energy %s/%d\n", v->study.name, t->row.number);
    return 0;
}

/* What there is of it in a line or two. */
static int put_facts(struct buf *b, struct view *v, struct view_trial *t, struct err *e)
{
    AUTO_BUF struct buf lines = BUF_INIT;
    put_head(&lines, v, t);
    int rc = put_now(&lines, v, t, e);
    if (rc == 0)
        rc = put_forecast(&lines, v, t, e);
    if (rc == 0)
        rc = put_energy(&lines, v, t, e);
    table_put_lines(b, buf_text(&lines), 0);
    b->failed |= lines.failed;
    return rc;
}

int put_trial_text(struct buf *b, struct view *v, struct view_trial *t, struct err *e)
{
    int rc = put_facts(b, v, t, e);
    if (rc == 0)
        rc = put_epochs(b, v, t, e);
    if (rc == 0)
        rc = metrics_put(v->store, t->row.id, v->metric, b, e);
    if (rc == 0)
        rc = put_attempts(b, v, t, e);
    AUTO_FREE char *log = v->dir ? now_log_path(v, t->row.number) : NULL;
    if (rc == 0 && log && io_exists(log))
        buf_printf(b, "log: %s\n", log);
    return view_explain(rc, e, v->study.name);
}
