/* Studies side by side. As JSON: [{"study","state","policy","trials","done","failed","stopped","paused","best":{"trial","accuracy"} | null,"seconds",
 * "energy_j","energy_source","startup_s","epochs"}], and of several objectives "pareto", in the order they were named; startup_s and epochs are sums over what was launched and
 * trained, energy_j over the trials by one meter. Joules of different sources, or of which some have idle power in them, stand side by side, and
 * are not compared. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/energy_figure.h"
#include "view/pareto.h"
#include "view/table.h"

enum { STUDIES_MAX = 64 };

/* One study, as far as it is compared. */
struct side {
    struct view v;
    const char *policy; /* NULL: not known */
    double startup_s;   /* over all attempts that know it; NAN: none does */
    int epochs;         /* trained */
};

static int add_attempt(void *ctx, const struct store_attempt *a)
{
    struct side *s = ctx;
    if (isfinite(a->startup_s))
        s->startup_s = isnan(s->startup_s) ? a->startup_s : s->startup_s + a->startup_s;
    return 0;
}

static int add_trial(struct side *s, struct view_trial *t, struct err *e)
{
    int rc = store_attempts(s->v.store, t->row.id, add_attempt, s, e);
    if (rc == 0)
        rc = view_epochs(&s->v, t, e);
    s->epochs += (int)t->n_epochs;
    view_forget(t);
    return rc;
}

static int side_load(struct side *s, struct store *store, const char *path, const char *name, struct err *e)
{
    AUTO_FREE char *dir = study_dir(path, name);
    s->startup_s = NAN;
    int rc = look_whole(name, "'pipetune diff STUDY/N STUDY/M'", e);
    if (rc == 0)
        rc = dir ? view_open(&s->v, store, name, dir, study_driver(dir), e) : err_sys(e, -ENOMEM, "study '%s'", name);
    if (rc < 0)
        return rc;
    s->policy = view_config(&s->v, "tuning", "policy");
    for (size_t i = 0; rc == 0 && i < s->v.n; i++)
        rc = add_trial(s, &s->v.trials[i], e);
    if (rc == 0)
        rc = view_pareto(&s->v, e);
    return rc < 0 ? rc : view_energy(&s->v, e);
}

static json_t *side_json(const struct side *s)
{
    const struct store_summary *t = &s->v.totals;
    const struct ledger_figure *energy = &s->v.energy_of;
    char source[64];
    return json_pack("{s:s, s:s, s:s?, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:s, s:o, s:i, s:o*}", "study",
                     s->v.study.name, "state", s->v.state, "policy", s->policy, "trials", t->trials, "done", t->done,
                     "failed", t->failed, "stopped", t->stopped, "paused", t->paused, "best",
                     words_best(t->best_trial, t->best_accuracy), "seconds", json_num(t->seconds), "energy_j",
                     json_num(energy->j), "energy_source", energy_figure_source(energy, source), "startup_s",
                     json_num(s->startup_s), "epochs", s->epochs, "pareto",
                     s->v.pareto.goals.n > 0 ? pareto_json(&s->v.pareto) : NULL);
}

/* Seconds, and how they stand to those of the first study. */
static void seconds_cell(struct table *t, double seconds, double first)
{
    char text[32];
    if (isfinite(seconds) && first > 0 && seconds != first)
        table_cellf(t, "%s (%+.1f %%)", table_duration(seconds, text), 100 * (seconds / first - 1));
    else
        table_seconds(t, seconds);
}

/* Joules, and how they stand to the first study's where these are alike. */
static void energy_cell(struct table *t, const struct ledger_figure *f, const struct ledger_figure *first)
{
    char digits[32];
    if (energy_figure_alike(f, first) && first->j > 0 && f->j != first->j)
        table_cellf(t, "%s (%+.1f %%)", table_digits(f->j, digits), 100 * (f->j / first->j - 1));
    else
        table_number(t, f->j);
}

static void add_row(struct table *t, const struct side *s, const struct side *first)
{
    const struct view *v = &s->v;
    char source[64];
    table_cell(t, v->study.name);
    look_best_cells(t, v->study.name, &v->totals, v->metric);
    table_cell(t, v->state);
    table_cell(t, s->policy ? s->policy : "-");
    table_cellf(t, "%d", v->totals.trials);
    table_cellf(t, "%d", v->totals.done);
    table_cellf(t, "%d", v->totals.failed);
    seconds_cell(t, v->totals.seconds, first->v.totals.seconds);
    table_seconds(t, s->startup_s);
    table_cellf(t, "%d", s->epochs);
    energy_cell(t, &v->energy_of, &first->v.energy_of);
    table_cellf(t, "%s%s", energy_figure_source(&v->energy_of, source),
                energy_figure_with_idle(&v->energy_of) ? ENERGY_IDLE_INCLUDED : "");
    AUTO_BUF struct buf note = BUF_INIT;
    if (energy_figure_thin(&v->energy_of))
        buf_printf(&note, "%d %% of its energy covered",
                   isfinite(v->energy_of.coverage) ? energy_figure_percent(&v->energy_of) : 0);
    if (v->pareto.goals.n > 0) {
        buf_puts(&note, note.len ? "; Pareto set: " : "Pareto set: ");
        pareto_put_numbers(&v->pareto, &note);
    }
    table_note(t, buf_text(&note));
    t->failed |= note.failed;
}

static int print_json(const struct side *sides, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, side_json(&sides[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return cmd_print_json(list);
}

/* Why some joules stand without a ratio. */
static void put_unlike(struct buf *b, const struct side *sides, size_t n)
{
    const struct ledger_figure *known = NULL;
    bool sources = false, idle = false;
    for (size_t i = 0; i < n; i++) {
        const struct ledger_figure *f = &sides[i].v.energy_of;
        if (!isfinite(f->j))
            continue;
        sources |= known && !energy_figure_same_source(known, f);
        idle |= known && energy_figure_with_idle(known) != energy_figure_with_idle(f);
        known = f;
    }
    if (sources)
        buf_puts(b, "\njoules of different sources are not compared\n");
    if (idle)
        buf_puts(b, "\njoules with idle power in them are not compared with those without: 'idle_w' of a meter in "
                    "'monitoring.meters' tells what a node takes when idle\n");
}

static int print_table(const struct side *sides, size_t n)
{
    static const char *const heads[] = { "study",   "!>best value", "!best",     "!state", "policy",
                                         ">trials", ">done",        ">failed",   "!>time", ">start-up",
                                         ">epochs", ">energy, J",   "energy is", NULL };
    AUTO_BUF struct buf b = BUF_INIT;
    struct table table;
    table_init(&table, heads);
    for (size_t i = 0; i < n; i++)
        add_row(&table, &sides[i], &sides[0]);
    table_put(&table, &b, 0);
    put_unlike(&b, sides, n);
    b.failed |= table.failed != 0;
    table_done(&table);
    return cmd_print(&b);
}

static int compare(const struct look_options *o, const struct strv *words)
{
    struct err e = { 0 };
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_FREE struct side *sides = calloc(words->n + 1, sizeof *sides);
    struct store *store = NULL;
    int rc = path && sides ? store_open(&store, path, STORE_READ, &e) : err_sys(&e, -ENOMEM, "cannot compare");
    for (size_t i = 0; rc == 0 && i < words->n; i++)
        rc = side_load(&sides[i], store, path, words->v[i], &e);
    int code = rc < 0 ? cmd_fail(&e) : o->json ? print_json(sides, words->n) : print_table(sides, words->n);
    for (size_t i = 0; sides && i < words->n; i++)
        view_done(&sides[i].v);
    store_close(store);
    return code;
}

int cmd_compare(int argc, char **argv)
{
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(look_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e;
    int code;
    if (!cmd_options("compare", argc, argv, &set, 1, &words, STUDIES_MAX, &code)) {
        if (words.n < 2)
            code = (err_set(&e, -EINVAL,
                            "which studies? 'pipetune ls' lists them, 'pipetune compare STUDY STUDY' takes two"
                            " or more"),
                    cmd_fail(&e));
        else
            code = compare(&o, &words);
    }
    opt_done(&set);
    return code;
}
