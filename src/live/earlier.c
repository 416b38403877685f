#include "live/earlier.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "base/suggest.h"
#include "search/prior.h"

/* The trials of one study. What they point to is owned. */
struct earlier {
    struct study *s;
    const char *name;
    struct prior_trial *v;
    size_t n, cap;
    double *values; /* of the trial that is read */
    size_t n_values, cap_values;
    struct err *e;
};

static void earlier_done(struct earlier *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((char *)(uintptr_t)r->v[i].name);
        free((double *)(uintptr_t)r->v[i].values);
        json_decref((json_t *)(uintptr_t)r->v[i].hyper);
    }
    free(r->v);
    free(r->values);
}

/* Epochs that are missing have no value. */
static int note_epoch(void *ctx, const struct store_epoch *row)
{
    struct earlier *r = ctx;
    while (r->n_values < (size_t)row->epoch) {
        double *grown = array_more(r->values, r->n_values, &r->cap_values, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        r->values = grown;
        r->values[r->n_values++] = NAN;
    }
    r->values[r->n_values - 1] = row->metric;
    return 0;
}

/* What a trial came to is its own: neither a copy of another one, nor the same point again. One that failed or could not run teaches nothing here,
 * as what it lacked may be there now. */
static bool teaches(const struct store_trial *row)
{
    enum trial_state state = (enum trial_state)trial_state_parse(row->state);
    return row->copy_of == 0 && row->repeat_of == 0 && state != TRIAL_FAILED && state != TRIAL_INFEASIBLE;
}

static int note_trial(void *ctx, const struct store_trial *row)
{
    struct earlier *r = ctx;
    if (!teaches(row))
        return 0;
    r->n_values = 0;
    int rc = store_epochs(r->s->store, row->id, note_epoch, r, r->e);
    if (rc < 0)
        return rc;
    struct prior_trial *grown = array_more(r->v, r->n, &r->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->v = grown;
    char *name = NULL;
    struct prior_trial *t = &r->v[r->n++];
    *t = (struct prior_trial){ .hyper = json_loads(row->hyper, 0, NULL), .n = r->n_values };
    if (asprintf(&name, "%s/%d", r->name, row->number) >= 0)
        t->name = name;
    t->values = MOVE_PTR(r->values);
    r->cap_values = 0;
    return t->name && t->hyper ? 0 : -ENOMEM;
}

static int note_name(void *ctx, const struct store_summary *row)
{
    strv_add(ctx, row->name);
    return 0;
}

static int no_such_study(struct study *s, const char *name, struct err *e)
{
    AUTO_STRV struct strv names = STRV_INIT;
    int rc = store_list(s->store, note_name, &names, e);
    if (rc < 0)
        return rc;
    const char *near = names.failed ? NULL : suggest_nearest(name, (const char *const *)names.v, names.n);
    if (near)
        return err_set(e, -EINVAL, "search.learn_from: no study '%s': did you mean '%s'?", name, near);
    return err_set(e, -EINVAL, "search.learn_from: no study '%s' in the store: 'pipetune ls' lists them", name);
}

static const char *best_is(bool maximise)
{
    return maximise ? "greater" : "less";
}

/* Its values must mean the same. */
static int check_metric(const struct study *s, const struct store_study *row, struct err *e)
{
    const struct config *c = &s->plan->cfg;
    AUTO_JSON json_t *config = json_loads(row->config ? row->config : "{}", 0, NULL);
    const char *metric = json_string_value(json_object_get(json_object_get(config, "study"), "metric"));
    bool maximise = config_maximise(c);
    if (metric && strcmp(metric, c->metric) == 0 && maximise == row->maximise)
        return 0;
    return err_set(
        e, -EINVAL,
        "search.learn_from: study '%s' was measured by '%s' (%s is better), this one by '%s' (%s is better): "
        "they cannot be compared",
        row->name, metric ? metric : "?", best_is(row->maximise), c->metric, best_is(maximise));
}

static int no_common(const struct study *s, const struct earlier *r, struct err *e)
{
    AUTO_BUF struct buf there = BUF_INIT;
    AUTO_BUF struct buf here = BUF_INIT;
    const char *key;
    json_t *value;
    if (r->n > 0)
        json_object_foreach((json_t *)(uintptr_t)r->v[0].hyper, key, value)
            buf_printf(&there, "%s%s", there.len ? ", " : "", key);
    for (size_t i = 0; i < space_n_hyper(&s->plan->space); i++)
        buf_printf(&here, "%s%s", i ? ", " : "", s->plan->space.dims[i].name);
    return err_set(e, -EINVAL,
                   "search.learn_from: study '%s' has no hyperparameter that this one has, too: it has %s, here are %s",
                   r->name, r->n ? buf_text(&there) : "no trial that trained", buf_text(&here));
}

static void say(struct strv *said, const struct earlier *r, const struct prior_taken *t)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "from study %s: %zu of %zu trials are points here, %zu of them may be tried early", r->name,
               t->usable, r->n, t->points);
    if (t->outside > 0)
        buf_printf(&b, "; %zu lie outside of this space", t->outside);
    if (*t->missing)
        buf_printf(&b, "; '%s' was no hyperparameter there and is drawn", t->missing);
    strv_add(said, buf_text(&b));
}

static int learn_one(struct study *s, const char *name, struct prior *to, struct strv *said, struct err *e)
{
    struct store_study row = { 0 };
    struct earlier r = { .s = s, .name = name, .e = e };
    struct prior_taken taken;
    int rc = store_study_find(s->store, name, &row, e);
    if (rc == 0)
        rc = no_such_study(s, name, e);
    if (rc > 0)
        rc = check_metric(s, &row, e);
    if (rc == 0) {
        rc = store_trials(s->store, row.id, 0, note_trial, &r, e);
        if (rc == 0)
            rc = prior_learn(to, r.v, r.n, &taken);
        if (rc == -ENOMEM)
            rc = err_sys(e, rc, "study '%s'", name);
        if (rc == 0)
            rc = taken.common > 0 ? 0 : no_common(s, &r, e);
        if (rc == 0)
            say(said, &r, &taken);
    }
    earlier_done(&r);
    store_study_done(&row);
    return rc;
}

int earlier_learn(struct study *s, struct strv *said, struct err *e)
{
    const char *list = s->plan->cfg.learn_from;
    struct prior *prior = NULL;
    if (!list || !*list)
        return 0;
    int rc = prior_new(&prior, &s->plan->space, &s->search.cfg);
    if (rc < 0)
        return err_sys(e, rc, "study '%s'", s->name);
    for (const char *at = list; rc == 0 && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        at += strspn(at, " ");
        AUTO_FREE char *name = strndup(at, strcspn(at, ", "));
        rc = name ? learn_one(s, name, prior, said, e) : err_sys(e, -ENOMEM, "study '%s'", s->name);
    }
    if (rc == 0 && said->failed)
        rc = err_sys(e, -ENOMEM, "study '%s'", s->name);
    if (rc == 0)
        rc = search_learn(&s->search, prior, e);
    if (rc < 0)
        prior_free(prior);
    return rc;
}
