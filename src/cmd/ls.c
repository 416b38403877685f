#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/ls_where.h"
#include "live/study.h"
#include "serve/standing.h"
#include "view/energy_figure.h"
#include "view/notes.h"
#include "view/pareto.h"
#include "view/table.h"
#include "view/view.h"
#include "view/words.h"

struct ls_options {
    char *store, *where;
    bool json, names;
};

static const struct opt_row ls_rows[] = {
    LOOK_STORE_ROW(struct ls_options),
    LOOK_JSON_ROW(struct ls_options),
    { NULL, "names", OPT_FLAG, offsetof(struct ls_options, names), NULL, 0, 0, NULL, NULL,
      "print the names alone, a line each" },
    { NULL, "where", OPT_TEXT, offsetof(struct ls_options, where), NULL, 0, 0, NULL, "CONDITION",
      "the trials for which it holds: \"accuracy > 0.95 and batch_size = 128\"" },
};

void cmd_ls_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(ls_rows, NULL));
}

struct listing {
    const char *store; /* its path */
    struct standings queue;
    struct store *open;
    struct err *e;
    json_t *json;      /* NULL: for people */
    struct buf *names; /* NULL: more than names */
    struct table table;
};

/* How it stands in the queue; NULL: it does not, and has no such key. */
static json_t *queue_json(const struct standing *w)
{
    const struct store_queued *q = w ? &w->row : NULL;
    return q ? json_pack("{s:i, s:i, s:o, s:s, s:i, s:o}", "priority", q->priority, "cpus", q->share, "not_before_ms",
                         q->at_ms ? json_integer(q->at_ms) : json_null(), "state", q->state, "starts", q->starts,
                         "to_go", q->to_go >= 0 ? json_integer(q->to_go) : json_null())
             : NULL;
}

/* The trials' joules together, by one meter, NAN: absent; its Pareto set; what was said of it. */
static int joules(struct listing *l, const char *name, double *out, struct pareto *out_pareto, json_t **out_tags)
{
    struct store_study study = { 0 };
    struct ledger_figure f = energy_figure_absent;
    int rc = store_study_find(l->open, name, &study, l->e);
    if (rc == 1)
        rc = energy_figure_stored(l->open, &study, &f, l->e);
    if (rc == 0)
        rc = pareto_load(out_pareto, l->open, &study, l->e);
    if (rc == 0 && !(*out_tags = notes_json(l->open, study.id, 0, l->e)))
        rc = l->e->code;
    store_study_done(&study);
    *out = f.j;
    return rc;
}

static int add_json(struct listing *l, const struct store_summary *r)
{
    double energy_j = NAN;
    struct pareto pareto = { .n = 0 };
    json_t *tags = NULL;
    int rc = joules(l, r->name, &energy_j, &pareto, &tags);
    if (rc < 0) {
        pareto_done(&pareto);
        return rc;
    }
    json_t *best = words_best(r->best_trial, r->best_accuracy);
    json_t *one = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o*, s:o*}", "study", r->name,
                            "state", standings_state(&l->queue, l->store, r), "trials", r->trials, "done", r->done,
                            "failed", r->failed, "stopped", r->stopped, "paused", r->paused, "best", best, "seconds",
                            json_num(r->seconds), "energy_j", json_num(energy_j), "tags", tags, /* absent is not 0 */
                            "queue", queue_json(standings_find(&l->queue, r->name)), "pareto",
                            pareto.goals.n > 0 ? pareto_json(&pareto) : NULL); /* else no such key */
    pareto_done(&pareto);
    return json_array_append_new(l->json, one) < 0 ? -ENOMEM : 0;
}

/* The numbers of its Pareto set, and what was said of it. */
static int put_notes(struct listing *l, const char *name, struct buf *note)
{
    struct store_study study = { 0 };
    struct pareto pareto = { .n = 0 };
    int rc = store_study_find(l->open, name, &study, l->e);
    if (rc == 1)
        rc = pareto_load(&pareto, l->open, &study, l->e);
    if (rc == 0 && pareto.goals.n > 0) {
        buf_printf(note, "%sPareto set: ", note->len ? "; " : "");
        pareto_put_numbers(&pareto, note);
    }
    if (rc == 0)
        rc = notes_put(note, "; ", l->open, study.id, 0, l->e);
    store_study_done(&study);
    pareto_done(&pareto);
    return rc;
}

static int add_row(struct listing *l, const struct store_summary *r)
{
    struct table *t = &l->table;
    char when[32] = "";
    (void)words_time(when, r->created_ms, "%Y-%m-%d %H:%M"); /* stays empty */
    table_cell(t, r->name);
    look_best_cells(t, r->name, r, r->metric);
    table_cell(t, standings_state(&l->queue, l->store, r));
    table_cellf(t, "%d", r->trials);
    table_cellf(t, "%d", r->done);
    table_cellf(t, "%d", r->failed);
    table_seconds(t, r->seconds);
    table_cell(t, when);
    AUTO_BUF struct buf counts = BUF_INIT;
    if (r->stopped || r->paused)
        words_put_counts(&counts, r);
    int rc = put_notes(l, r->name, &counts);
    table_note(t, buf_text(&counts));
    t->failed |= counts.failed;
    return rc;
}

/* With what the trials that run have taken so far. */
static int add_running(struct listing *l, struct store_summary *r)
{
    struct store_study study = { 0 };
    AUTO_FREE char *dir = study_dir(l->store, r->name);
    pid_t driver = dir ? study_driver(dir) : 0;
    if (driver == 0)
        return 0;
    struct store_summary now;
    int rc = store_study_find(l->open, r->name, &study, l->e);
    if (rc == 1)
        rc = view_totals(l->open, study.id, driver, &now, l->e);
    if (rc == 0 && study.id)
        r->seconds = now.seconds;
    store_study_done(&study);
    return rc;
}

static int add_study(void *ctx, const struct store_summary *stored)
{
    struct listing *l = ctx;
    struct store_summary r = *stored;
    struct standing *w = standings_find(&l->queue, r.name);
    if (w)
        w->listed = true;
    if (l->names) {
        buf_printf(l->names, "%s\n", r.name);
        return 0;
    }
    int rc = strcmp(r.state, "running") == 0 ? add_running(l, &r) : 0;
    if (rc < 0)
        return rc;
    if (l->json)
        return add_json(l, &r);
    return add_row(l, &r);
}

/* --- those that have not begun --- */

static void put_place(struct buf *note, const struct store_queued *q)
{
    char when[32] = "";
    if (q->priority)
        buf_printf(note, "priority %d", q->priority);
    if (q->at_ms && words_time(when, q->at_ms, "%Y-%m-%d %H:%M:%S"))
        buf_printf(note, "%snot before %s", note->len ? ", " : "", when);
}

/* Nothing is known of its trials yet. */
static int add_unbegun(struct listing *l, const struct store_queued *q)
{
    if (l->names) {
        buf_printf(l->names, "%s\n", q->study);
        return 0;
    }
    if (l->json) {
        const struct standing w = { .row = *q };
        json_t *one = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "study", q->study, "state",
                                QUEUED, "trials", 0, "done", 0, "failed", 0, "stopped", 0, "paused", 0, "best",
                                json_null(), "seconds", json_null(), "energy_j", json_null(), "queue", queue_json(&w));
        return json_array_append_new(l->json, one) < 0 ? -ENOMEM : 0;
    }
    static const char *const cells[] = { "-", "-", QUEUED, "0", "0", "0", "-", "-" };
    AUTO_BUF struct buf note = BUF_INIT;
    table_cell(&l->table, q->study);
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        table_cell(&l->table, cells[i]);
    put_place(&note, q);
    table_note(&l->table, buf_text(&note));
    l->table.failed |= note.failed;
    return 0;
}

static int list_queue(struct listing *l)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < l->queue.n; i++)
        rc = l->queue.v[i].listed ? 0 : add_unbegun(l, &l->queue.v[i].row);
    return rc;
}

static int print_table(const struct listing *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (l->table.n <= l->table.columns)
        buf_printf(&b, "no study in '%s' yet: 'pipetune run --config FILE' begins one\n", l->store);
    else
        table_put(&l->table, &b, 0);
    return cmd_print(&b);
}

static int list(struct listing *l)
{
    struct err e = { 0 };
    struct store *s = NULL;
    int rc = store_open(&s, l->store, STORE_READ, &e);
    l->open = s;
    l->e = &e;
    if (rc == 0)
        rc = standings_load(&l->queue, s, &e);
    if (rc == 0)
        rc = store_list(s, add_study, l, &e);
    if (rc == 0)
        rc = list_queue(l);
    if (rc == -ENOENT) /* nothing was run yet: that is an answer too */
        rc = 0;
    store_close(s);
    if (rc < 0 && !e.code) /* a callback's, which explains nothing */
        (void)err_sys(&e, rc, "cannot list the studies");
    if (rc < 0)
        return cmd_fail(&e);
    if (l->names)
        return cmd_print(l->names);
    return l->json ? cmd_print_json(json_incref(l->json)) : print_table(l);
}

int cmd_ls(int argc, char **argv)
{
    static const char *const heads[] = { "study", "!>best value", "!best",  "state", ">trials",
                                         ">done", ">failed",      "!>time", "begun", NULL };
    struct ls_options o = { 0 };
    struct opt_set set = OPT_SET(ls_rows, &o);
    int code;
    if (!cmd_options("ls", argc, argv, &set, 1, NULL, 0, &code)) {
        AUTO_FREE char *path = study_store_path(o.store);
        AUTO_BUF struct buf names = BUF_INIT;
        struct err e;
        struct listing l = { .store = path,
                             .json = o.json ? json_array() : NULL,
                             .names = o.names && !o.json ? &names : NULL };
        table_init(&l.table, heads);
        if (!path || (o.json && !l.json))
            code = (err_sys(&e, -ENOMEM, "cannot list"), cmd_fail(&e));
        else
            code = o.where ? ls_where(path, o.where, o.json ? LS_JSON : o.names ? LS_NAMES : LS_TABLE) : list(&l);
        json_decref(l.json);
        table_done(&l.table);
        standings_done(&l.queue);
    }
    opt_done(&set);
    return code;
}
