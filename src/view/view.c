#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/strv.h"
#include "base/suggest.h"
#include "core/sched.h"
#include "store/news.h"
#include "store/running.h"

/* --- without a view ---------------------------------------------------------------------------------------------------- */

const char *view_state(const char *stored, pid_t driver)
{
    return driver == 0 && strcmp(stored, "running") == 0 ? "interrupted" : stored;
}

int view_explain(int rc, struct err *e, const char *study)
{
    return rc < 0 && !e->code ? err_sys(e, rc, "study '%s'", study) : rc;
}

static int collect_name(void *ctx, const struct store_summary *r)
{
    strv_add(ctx, r->name);
    return 0;
}

static int unknown_study(struct store *s, const char *name, struct err *e)
{
    AUTO_STRV struct strv names = STRV_INIT;
    int rc = store_list(s, collect_name, &names, e);
    if (rc < 0)
        return rc;
    const char *near = suggest_nearest(name, (const char *const *)names.v, names.n);
    if (near)
        return err_set(e, -EINVAL, "no study '%s': did you mean '%s'?", name, near);
    AUTO_BUF struct buf list = BUF_INIT;
    enum { NAMED = 8 };
    for (size_t i = 0; i < names.n && i < NAMED; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    if (names.n == 0)
        return err_set(e, -EINVAL, "no study '%s': the store has none yet", name);
    return err_set(e, -EINVAL, "no study '%s': there %s %s%s", name, names.n == 1 ? "is" : "are", buf_text(&list),
                   names.n > NAMED ? ", …; see 'pipetune ls'" : "");
}

int view_find(struct store *s, const char *name, struct store_study *out, struct err *e)
{
    int rc = store_study_find(s, name, out, e);
    if (rc == 0)
        return unknown_study(s, name, e);
    return rc < 0 ? rc : 0;
}

static int keep_running(void *ctx, const struct store_attempt *a)
{
    struct store_attempt *to = ctx;
    if (strcmp(a->state, "running") != 0)
        return 0;
    store_attempt_done(to);
    return store_attempt_copy(to, a);
}

static double under_way_s(const struct store_attempt *a)
{
    return a->state ? (double)(running_now_ms(a) - a->started_ms) / 1000.0 : 0;
}

struct under_way {
    struct store *store;
    double seconds;
    struct err *e;
};

static int add_under_way(void *ctx, const struct store_trial *t)
{
    struct under_way *u = ctx;
    struct store_attempt a = { 0 };
    int rc = strcmp(t->state, "running") == 0 ? store_attempts(u->store, t->id, keep_running, &a, u->e) : 0;
    u->seconds += under_way_s(&a);
    store_attempt_done(&a);
    return rc;
}

int view_totals(struct store *s, int64_t study, pid_t driver, struct store_summary *out, struct err *e)
{
    struct under_way u = { s, 0, e };
    *out = (struct store_summary){ 0 };
    int rc = news_summary(s, study, out, e);
    if (rc >= 0 && driver)
        rc = store_trials(s, study, 0, add_under_way, &u, e);
    out->seconds += u.seconds;
    return rc < 0 ? rc : 0;
}

/* --- trials ------------------------------------------------------------------------------------------------------------- */

/* They are numbered from 1, without gaps unless somebody else wrote the store. */
struct view_trial *view_trial(const struct view *v, int number)
{
    if (number >= 1 && (size_t)number <= v->n && v->trials[number - 1].row.number == number)
        return &v->trials[number - 1];
    if (v->n == 0 || number > v->trials[v->n - 1].row.number)
        return NULL;
    for (size_t i = 0; i < v->n; i++)
        if (v->trials[i].row.number == number)
            return &v->trials[i];
    return NULL;
}

static void trial_done(struct view_trial *t)
{
    store_trial_done(&t->row);
    store_attempt_done(&t->under_way);
    free(t->epochs);
}

/* What follows from the row, and the clock. */
static void derive(const struct view *v, struct view_trial *t)
{
    t->state = view_state(t->row.state, v->driver);
    t->done = t->row.reached;
    if (t->done == 0 && strcmp(t->row.state, trial_state_name(TRIAL_FINISHED)) == 0)
        t->done = t->row.epochs; /* another trial's result */
    t->seconds = t->row.attempts ? t->row.seconds + under_way_s(&t->under_way) : (double)NAN;
}

static bool is_running(const struct view *v, const struct store_trial *row)
{
    return v->driver != 0 && strcmp(row->state, trial_state_name(TRIAL_RUNNING)) == 0;
}

struct reading {
    struct view *v;
    struct err *e;
};

/* Takes a row that is new, or newer than the one there is. */
static int take_trial(void *ctx, const struct store_trial *row)
{
    const struct reading *r = ctx;
    struct view *v = r->v;
    struct view_trial *t = view_trial(v, row->number);
    if (!t) {
        struct view_trial *grown = array_more(v->trials, v->n, &v->cap, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        v->trials = grown;
        t = &grown[v->n];
        *t = (struct view_trial){ 0 };
    }
    struct store_trial own;
    if (store_trial_copy(&own, row) < 0)
        return -ENOMEM;
    store_trial_done(&t->row);
    t->row = own;
    v->n += t == &v->trials[v->n];
    t->changed = v->version;
    store_attempt_done(&t->under_way);
    int rc = is_running(v, row) ? store_attempts(v->store, row->id, keep_running, &t->under_way, r->e) : 0;
    derive(v, t);
    return rc;
}

/* --- opening ------------------------------------------------------------------------------------------------------------ */

static json_t *parsed(const char *text)
{
    return text ? json_loads(text, 0, NULL) : NULL;
}

/* Takes the row; what hangs on its texts is made anew. */
static void take_study(struct view *v, struct store_study *row)
{
    store_study_done(&v->study);
    json_decref(v->config);
    json_decref(v->provenance);
    v->study = *row;
    *row = (struct store_study){ 0 };
    v->config = parsed(v->study.config);
    (void)json_object_del(v->config, "secrets"); /* sums, to compare with */
    v->provenance = parsed(v->study.provenance);
    const char *metric = view_config(v, "study", "metric");
    v->metric = metric ? metric : "accuracy";
}

const char *view_config(const struct view *v, const char *section, const char *key)
{
    return json_string_value(json_object_get(json_object_get(v->config, section), key));
}

/* With the clock, which goes on without any news. */
static void tick(struct view *v)
{
    v->state = view_state(v->study.state, v->driver);
    v->totals.seconds = v->stored_s;
    for (size_t i = 0; i < v->n; i++) {
        struct view_trial *t = &v->trials[i];
        if (!t->under_way.state)
            continue;
        derive(v, t);
        v->totals.seconds += under_way_s(&t->under_way);
    }
}

static int sum_up(struct view *v, struct err *e)
{
    int rc = news_summary(v->store, v->study.id, &v->totals, e);
    v->stored_s = v->totals.seconds;
    return rc < 0 ? rc : 0;
}

int view_open(struct view *out, struct store *s, const char *name, const char *dir, pid_t driver, struct err *e)
{
    struct store_study row = { 0 };
    *out = (struct view){ .store = s, .driver = driver, .energy_of = energy_figure_absent, .version = 1 };
    struct reading r = { out, e };
    int rc = view_find(s, name, &row, e);
    if (rc < 0)
        return rc;
    take_study(out, &row);
    if (dir && !(out->dir = strdup(dir)))
        return err_sys(e, -ENOMEM, "study '%s'", name);
    rc = news_version(s, &out->data_version, e);
    if (rc == 0)
        rc = store_trials(s, out->study.id, 0, take_trial, &r, e);
    if (rc == 0)
        rc = sum_up(out, e);
    tick(out);
    return view_explain(rc, e, name);
}

void view_done(struct view *v)
{
    for (size_t i = 0; i < v->n; i++)
        trial_done(&v->trials[i]);
    free(v->trials);
    free(v->dir);
    store_study_done(&v->study);
    json_decref(v->config);
    json_decref(v->provenance);
    energy_load_done(&v->energy);
    pareto_done(&v->pareto);
    stories_done(&v->stories);
    outlook_free(v->outlook);
    *v = (struct view){ 0 };
}

/* --- refreshing --------------------------------------------------------------------------------------------------------- */

struct finding {
    struct view *v;
    int *numbers; /* of trials that are to be read again */
    size_t n, cap;
    bool moved; /* the totals are others */
};

static int find_again(struct finding *f, int number)
{
    int *grown = array_more(f->numbers, f->n, &f->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    f->numbers = grown;
    grown[f->n++] = number;
    return 0;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static int compare_mark(void *ctx, const struct news_mark *m)
{
    struct finding *f = ctx;
    const struct view_trial *t = view_trial(f->v, m->number);
    bool runs = strcmp(m->state, trial_state_name(TRIAL_RUNNING)) == 0; /* it tells more than its marks */
    bool same = t && strcmp(t->row.state, m->state) == 0 && (runs || same_number(t->row.metric, m->metric)) &&
                same_number(t->row.seconds, m->seconds) && (t->row.violates != NULL) == m->violates;
    f->moved |= !same;
    return same && !runs ? 0 : find_again(f, m->number);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Another study may have its name since. */
static int refresh_study(struct view *v, struct err *e)
{
    struct store_study row = { 0 };
    int rc = store_study_find(v->store, v->study.name, &row, e);
    if (rc >= 0 && (rc == 0 || row.id != v->study.id || row.created_ms != v->study.created_ms))
        rc = err_set(e, -EINVAL, "study '%s' was removed", v->study.name);
    else if (rc == 1 && (!same_text(row.config, v->study.config) || !same_text(row.state, v->study.state) ||
                         row.ended_ms != v->study.ended_ms))
        take_study(v, &row);
    store_study_done(&row);
    return rc < 0 ? rc : 0;
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int read_news(struct view *v, struct err *e)
{
    struct finding f = { .v = v };
    struct reading r = { v, e };
    int rc = refresh_study(v, e);
    if (rc == 0)
        rc = news_marks(v->store, v->study.id, compare_mark, &f, e);
    if (f.n > 1)
        qsort(f.numbers, f.n, sizeof *f.numbers, by_number);
    for (size_t i = 0; rc == 0 && i < f.n; i++)
        rc = store_trials(v->store, v->study.id, f.numbers[i], take_trial, &r, e);
    free(f.numbers);
    return rc == 0 && f.moved ? sum_up(v, e) : rc;
}

/* All states are told by it. */
static void change_driver(struct view *v, pid_t driver)
{
    v->driver = driver;
    for (size_t i = 0; i < v->n; i++) {
        struct view_trial *t = &v->trials[i];
        if (strcmp(t->row.state, trial_state_name(TRIAL_RUNNING)) != 0)
            continue;
        if (!driver)
            store_attempt_done(&t->under_way);
        derive(v, t);
    }
}

int view_refresh(struct view *v, pid_t driver, struct err *e)
{
    int64_t version = v->data_version;
    bool other = driver != v->driver;
    int rc = news_version(v->store, &version, e);
    if (rc == 0 && (other || version != v->data_version)) {
        v->version++;
        if (other)
            change_driver(v, driver);
        rc = read_news(v, e);
        v->data_version = rc == 0 ? version : -1; /* after a failure all is compared again */
        rc = rc == 0 ? 1 : rc;
    }
    tick(v);
    return view_explain(rc, e, v->study.name);
}

/* --- what is read when it is asked for ------------------------------------------------------------------------------------- */

static int keep_epoch(void *ctx, const struct store_epoch *row)
{
    struct view_trial *t = ctx;
    struct store_epoch *grown = array_more(t->epochs, t->n_epochs, &t->cap_epochs, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->epochs = grown;
    grown[t->n_epochs++] = *row;
    return 0;
}

int view_epochs(const struct view *v, struct view_trial *t, struct err *e)
{
    if (t->epochs_at >= t->changed)
        return 0;
    t->n_epochs = 0;
    int rc = t->row.reached ? store_epochs(v->store, t->row.id, keep_epoch, t, e) : 0;
    if (rc == 0)
        t->epochs_at = v->version;
    return view_explain(rc, e, v->study.name);
}

void view_forget(struct view_trial *t)
{
    free(t->epochs);
    t->epochs = NULL;
    t->n_epochs = t->cap_epochs = 0;
    t->epochs_at = 0;
}

/* Whether it is to be reckoned again: what takes long is not reckoned for each change. */
static bool is_due(const struct view *v, const struct view_part *p)
{
    enum { REST = 100 };
    return p->at == 0 || (p->at != v->version && clock_ms() - p->when_ms >= REST * p->took_ms);
}

static void end_part(const struct view *v, struct view_part *p, int64_t begun_ms)
{
    p->when_ms = clock_ms();
    p->took_ms = p->when_ms - begun_ms;
    p->at = v->version;
}

int view_forecast(struct view *v, struct view_trial *t, struct err *e)
{
    int rc = v->outlook ? 0 : outlook_open(&v->outlook, v->store, &v->study, e);
    bool anew = is_due(v, &v->outlook_part); /* it learns from all curves again */
    if (rc < 0 || (!anew && t->foretold_at >= t->changed && t->foretold_at >= v->outlook_part.at))
        return rc;
    int64_t begun_ms = clock_ms();
    if (anew)
        outlook_renew(v->outlook);
    rc = outlook_look(v->outlook, &t->row, &t->foretold, e);
    if (anew && outlook_has_learnt(v->outlook))
        end_part(v, &v->outlook_part, begun_ms);
    t->foretold_at = rc == 0 ? v->version : 0;
    return rc;
}

int view_energy(struct view *v, struct err *e)
{
    if (!is_due(v, &v->energy_part))
        return 0;
    int64_t begun_ms = clock_ms();
    struct energy_load l = { 0 };
    struct ledger_figure all = energy_figure_absent;
    int rc = energy_load(&l, v->store, &v->study, e);
    if (rc == 0 && l.n_meters > 0 && energy_figure_study(&l, NULL, &all) < 0)
        rc = err_sys(e, -ENOMEM, "study '%s'", v->study.name);
    if (rc < 0) {
        energy_load_done(&l);
        return rc;
    }
    energy_load_done(&v->energy);
    v->energy = l;
    v->energy_of = all;
    end_part(v, &v->energy_part, begun_ms);
    return 0;
}

int view_trial_energy(const struct view *v, const struct view_trial *t, struct ledger_figure *out, struct err *e)
{
    *out = energy_figure_absent;
    int rc = v->energy.n_meters > 0 ? energy_figure_number(&v->energy, t->row.number, out) : 0;
    return rc < 0 ? err_sys(e, rc, "trial %s/%d", v->study.name, t->row.number) : 0;
}

int view_pareto(struct view *v, struct err *e)
{
    if (!is_due(v, &v->pareto_part))
        return 0;
    int64_t begun_ms = clock_ms();
    struct pareto p = { .n = 0 };
    int rc = pareto_load(&p, v->store, &v->study, e);
    if (rc < 0)
        return rc;
    pareto_done(&v->pareto);
    v->pareto = p;
    end_part(v, &v->pareto_part, begun_ms);
    return 0;
}

int view_stories(struct view *v, struct err *e)
{
    if (!is_due(v, &v->stories_part))
        return 0;
    int64_t begun_ms = clock_ms();
    int rc = stories_read(&v->stories, v->store, v->study.id, e);
    if (rc == 0)
        end_part(v, &v->stories_part, begun_ms);
    return view_explain(rc, e, v->study.name);
}

int view_seen(const struct view *v, struct store_seen *out, struct err *e)
{
    struct store_seen seen;
    int best = v->totals.best_trial;
    int rc = best ? store_best_seen(v->store, v->study.id, v->study.maximise, &seen, e) : 0;
    if (rc != 1 || seen.trial == best)
        return rc < 0 ? rc : 0;
    const struct view_trial *t = view_trial(v, seen.trial);
    if (!t || strcmp(t->row.state, trial_state_name(TRIAL_FINISHED)) == 0)
        return 0;
    *out = seen;
    return 1;
}
