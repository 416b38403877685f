#include "live/results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "live/energy.h"

enum { FIGURES_MAX = GOALS_MAX + DEMANDS_NAMES_MAX };

static const struct goals *goals_of(const struct plan *p)
{
    static const struct goals none = { .n = 0 };
    return p->cfg.goals.n > 1 ? &p->cfg.goals : &none;
}

static bool any(const struct plan *p)
{
    return goals_of(p)->n > 0 || p->demands.n > 0;
}

/* Each name once: the objectives, and what constraints are about. */
static size_t names_of(const struct plan *p, const char *out[FIGURES_MAX])
{
    const struct goals *g = goals_of(p);
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        out[n++] = g->v[i].name;
    for (size_t i = 0; i < p->demands.names.n; i++) {
        size_t k = 0;
        while (k < n && strcasecmp(out[k], p->demands.names.v[i]) != 0)
            k++;
        if (k == n)
            out[n++] = p->demands.names.v[i];
    }
    return n;
}

void results_each_name(const struct plan *p, bool (*name)(void *ctx, const char *name), void *ctx)
{
    const char *names[FIGURES_MAX];
    size_t n = names_of(p, names);
    for (size_t i = 0; i < n; i++) {
        bool ours = strcmp(names[i], goal_seconds) == 0 || strcmp(names[i], goal_joules) == 0;
        if (!ours && strcasecmp(names[i], p->cfg.metric) != 0 && !name(ctx, names[i]))
            return;
    }
}

/* NAN: it was not told. */
static double figure_told(const struct plan *p, const struct told *t, const char *name)
{
    if (strcmp(name, goal_seconds) == 0)
        return t->seconds;
    if (strcmp(name, goal_joules) == 0)
        return t->joules;
    for (size_t i = 0; i < t->n_metrics; i++)
        if (strcasecmp(t->metrics[i].name, name) == 0)
            return t->metrics[i].value;
    return strcasecmp(name, p->cfg.metric) == 0 ? t->value : (double)NAN;
}

static int keep(struct study *s, int64_t trial, const char *name, double value, struct err *e)
{
    struct store_result row = { .trial = trial, .name = (char *)name, .value = value };
    return store_result_put(s->store, &row, e);
}

/* --- judging --- */

struct stored {
    struct demands_figure v[FIGURES_MAX];
    const char *names[FIGURES_MAX];
    size_t n;
};

static int take_stored(void *ctx, const struct store_result *row)
{
    struct stored *to = ctx;
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->names[i], row->name) == 0)
            to->v[i].value = row->value;
    return 0;
}

/* A validation may be rarer than epochs: the newest of each. */
static int read_stored(struct study *s, int64_t trial, struct stored *out, struct err *e)
{
    *out = (struct stored){ .n = 0 };
    out->n = names_of(s->plan, out->names);
    for (size_t i = 0; i < out->n; i++)
        out->v[i] = (struct demands_figure){ out->names[i], NAN };
    return store_results(s->store, trial, take_stored, out, e);
}

static bool is_broken(const struct study *s, const struct study_trial *t, const struct stored *f, bool over,
                      char why[DEMANDS_WHY_MAX])
{
    return demands_broken(&s->plan->demands, &s->plan->space, &t->point, f->v, f->n, over, why);
}

int results_told(struct study *s, const struct store_trial *t, const struct told *told, struct search_answer *out,
                 struct err *e)
{
    const char *names[FIGURES_MAX];
    size_t n = any(s->plan) ? names_of(s->plan, names) : 0;
    const struct study_trial *trial = study_trial(s, t->number);
    char why[DEMANDS_WHY_MAX];
    struct stored f;
    int rc = 0;
    if (told->kind != TOLD_EPOCH || n == 0)
        return 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        double value = figure_told(s->plan, told, names[i]);
        rc = isnan(value) ? 0 : keep(s, t->id, names[i], value, e);
    }
    if (rc == 0)
        rc = read_stored(s, t->id, &f, e);
    if (rc < 0 || !trial || !is_broken(s, trial, &f, false, why))
        return rc;
    out->verdict = SEARCH_STOP;
    (void)snprintf(out->why, sizeof out->why, "%s", why);
    return 0;
}

/* What it took until its end, which no epoch told. */
static int keep_costs(struct study *s, const struct study_trial *t, struct err *e)
{
    const char *names[FIGURES_MAX];
    size_t n = names_of(s->plan, names);
    const struct told end = { .value = NAN,
                              .seconds = t->row.seconds,
                              .joules = energy_trial_j(s->energy, t->row.number) };
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        bool cost = strcmp(names[i], goal_seconds) == 0 || strcmp(names[i], goal_joules) == 0;
        double value = cost ? figure_told(s->plan, &end, names[i]) : (double)NAN;
        rc = isnan(value) ? 0 : keep(s, t->row.id, names[i], value, e);
    }
    return rc;
}

int results_judge(struct study *s, struct study_trial *t, struct err *e)
{
    char why[DEMANDS_WHY_MAX];
    struct stored f;
    if (!any(s->plan))
        return 0;
    int rc = keep_costs(s, t, e);
    if (rc == 0)
        rc = read_stored(s, t->row.id, &f, e);
    if (rc < 0)
        return rc;
    free(t->row.violates);
    t->row.violates = NULL;
    if (!is_broken(s, t, &f, true, why))
        return 0;
    t->row.violates = strdup(why);
    return t->row.violates ? 0 : err_sys(e, -ENOMEM, "trial %d", t->row.number);
}

/* --- copies --- */

struct copying {
    const struct plan *plan;
    struct results_copied *out;
};

static int take_copied(void *ctx, const struct store_result *row)
{
    struct copying *c = ctx;
    const struct goals *g = goals_of(c->plan);
    for (size_t i = 0; i < g->n; i++) {
        if (strcmp(g->v[i].name, row->name) != 0)
            continue;
        if (g->v[i].kind == GOAL_SECONDS)
            c->out->seconds = row->value;
        else if (g->v[i].kind == GOAL_JOULES)
            c->out->joules = row->value;
        else
            c->out->metrics[c->out->n++] = (struct told_metric){ g->v[i].name, row->value };
    }
    return 0;
}

int results_copied(struct study *s, const struct store_trial *t, struct results_copied *out, struct err *e)
{
    struct copying c = { s->plan, out };
    *out = (struct results_copied){ .seconds = NAN, .joules = NAN };
    int rc = any(s->plan) ? store_results_copy(s->store, t->id, e) : 0;
    return rc == 0 && any(s->plan) ? store_results(s->store, t->id, take_copied, &c, e) : rc;
}
