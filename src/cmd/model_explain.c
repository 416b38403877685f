/* `model explain TRIAL`: why its profiles were taken for what. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model_json.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/model_parts.h"
#include "live/study.h"
#include "store/samples.h"
#include "view/table.h"
#include "view/words.h"

#define AUTO_PROFILE __attribute__((cleanup(profile_done)))

enum { TOP = 10 };

struct explaining {
    const struct model *m;
    json_t *json; /* NULL: for people */
    struct buf out;
    double *share, *difference; /* per feature */
    size_t *order;
    size_t n; /* profiles so far */
    struct err *e;
};

/* --- which trial --- */

struct wanted {
    char *study;
    int number;
    int64_t trial;
};

static int keep_name(void *ctx, const struct store_summary *r)
{
    struct wanted *w = ctx;
    free(w->study);
    w->study = strdup(r->name);
    return w->study ? 0 : -ENOMEM;
}

static int keep_trial(void *ctx, const struct store_trial *r)
{
    ((struct wanted *)ctx)->trial = r->id;
    return 0;
}

/* "3" of the newest study, or "STUDY/3". */
static int read_word(struct wanted *w, const char *word, struct store *s, struct err *e)
{
    AUTO_LOOK struct look_name name = { 0 };
    bool named = strchr(word, '/');
    int rc = named ? look_name(&name, word, e) : look_trial(word, NULL, INT_MAX, &w->number, e);
    if (rc == 0 && !named)
        rc = store_list(s, keep_name, w, e);
    if (rc < 0)
        return !named && rc == -ENOMEM ? err_sys(e, rc, "cannot explain") : rc;
    if (named)
        w->number = name.trial;
    if (named)
        w->study = MOVE_PTR(name.study);
    return 0;
}

static int find_trial(struct wanted *w, const char *word, struct store *s, struct err *e)
{
    struct store_study study = { 0 };
    int rc = read_word(w, word, s, e);
    if (rc == 0)
        rc = w->study ? store_study_find(s, w->study, &study, e) : 0;
    if (rc == 0)
        rc = err_set(e, -EINVAL, "no study '%s' in the store: see 'pipetune ls'", w->study ? w->study : word);
    if (rc > 0)
        rc = store_trials(s, study.id, w->number, keep_trial, w, e);
    if (rc == 0 && w->trial == 0)
        rc = err_set(e, -EINVAL, "there is no trial %s/%d", w->study, w->number);
    store_study_done(&study);
    return rc;
}

/* --- one profile --- */

/* Features by what they add to the distance, the largest first. */
static size_t rank(struct explaining *x)
{
    size_t n = 0;
    for (size_t f = 0; f < x->m->n; f++) {
        size_t at = n;
        if (isnan(x->share[f]))
            continue;
        for (; at > 0 && x->share[x->order[at - 1]] < x->share[f]; at--)
            x->order[at] = x->order[at - 1];
        x->order[at] = f;
        n++;
    }
    return n;
}

static const char *class_of(const struct model *m, int64_t cluster)
{
    const struct model_class *c = model_class_of_cluster(m, cluster);
    return c ? c->key : NULL;
}

static json_t *features_json(const struct explaining *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        size_t f = x->order[i];
        json_t *one = json_pack("{s:s, s:f, s:f}", "feature", x->m->features[f].name, "share", x->share[f],
                                "difference", x->difference[f]);
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int add_json(struct explaining *x, const struct store_profile *r, const struct model_verdict *v, size_t n)
{
    json_t *stored = r->verdict ? json_loads(r->verdict, JSON_DECODE_ANY, NULL) : NULL;
    const char *key = v->n_near ? class_of(x->m, v->near[0].cluster) : NULL;
    json_t *one = json_pack("{s:I, s:i, s:o, s:s?, s:o, s:o, s:o}", "profile", (json_int_t)r->seq, "epoch", r->epoch,
                            "setting", words_object(r->setting), "class", key, "verdict", model_json_verdict(v),
                            "features", features_json(x, n), "stored", stored ? stored : json_null());
    return json_array_append_new(x->json, one) < 0 ? err_sys(x->e, -ENOMEM, "cannot explain") : 0;
}

static void put_near(struct explaining *x, const struct model_verdict *v)
{
    static const char *const heads[] = { ">cluster", ">spreads", ">distance", ">features", "class", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < v->n_near; i++) {
        const struct model_distance *d = &v->near[i];
        const char *key = class_of(x->m, d->cluster);
        AUTO_BUF struct buf plain = BUF_INIT;
        words_put_plain(&plain, key ? key : "-");
        table_cellf(&t, "%lld", (long long)d->cluster);
        table_number(&t, d->spreads);
        table_number(&t, d->distance);
        table_cellf(&t, "%zu", d->common);
        table_cell(&t, buf_text(&plain));
    }
    table_put(&t, &x->out, 0);
    table_done(&t);
}

static void put_features(struct explaining *x, size_t n)
{
    static const char *const heads[] = { "feature", ">of the distance", ">difference in noises", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < n && i < TOP; i++) {
        size_t f = x->order[i];
        table_cell(&t, x->m->features[f].name);
        table_cellf(&t, "%.1f %%", 100 * x->share[f]);
        table_cellf(&t, "%+.2f", x->difference[f]);
    }
    table_put(&t, &x->out, 0);
    table_done(&t);
}

static void put_profile(struct explaining *x, const struct store_profile *r, const struct model_verdict *v, size_t n)
{
    buf_printf(&x->out, "%sprofile %lld", x->n ? "\n" : "", (long long)r->seq);
    if (r->epoch > 0)
        buf_printf(&x->out, ", epoch %d", r->epoch);
    if (r->setting) {
        AUTO_JSON json_t *setting = words_object(r->setting);
        buf_puts(&x->out, ", ");
        words_put_members(&x->out, setting);
    }
    buf_printf(&x->out, ": %s\n%s\n", model_decision_name(v->decision), v->reason);
    if (v->n_near == 0)
        return;
    buf_putc(&x->out, '\n');
    put_near(x, v);
    buf_putc(&x->out, '\n');
    put_features(x, n);
}

static int explain_profile(void *ctx, const struct store_profile *r)
{
    struct explaining *x = ctx;
    AUTO_PROFILE struct profile view = { 0 };
    struct model_verdict v;
    size_t n = 0;
    int rc = model_json_view(&view, x->m, r->vector, x->e);
    if (rc < 0)
        return rc;
    model_verdict(&v, x->m, &view);
    const struct model_cluster *c = v.n_near ? model_cluster_find(x->m, v.near[0].cluster) : NULL;
    if (c) {
        model_contributions(x->m, c, &view, x->share, x->difference);
        n = rank(x);
    }
    if (x->json)
        rc = add_json(x, r, &v, n);
    else
        put_profile(x, r, &v, n);
    x->n++;
    return rc;
}

/* --- all of a trial --- */

static int explain_trial(struct explaining *x, const char *path, const char *word, struct err *e)
{
    struct store *s = NULL;
    struct wanted w = { 0 };
    int rc = store_open(&s, path, STORE_READ, e);
    if (rc == 0)
        rc = find_trial(&w, word, s, e);
    if (rc == 0)
        rc = store_profiles(s, w.trial, explain_profile, x, e);
    if (rc == 0 && x->n == 0)
        rc = err_set(e, -EINVAL, "trial %s/%d has no profile: nothing was sampled while it ran", w.study, w.number);
    store_close(s);
    free(w.study);
    return rc;
}

static int explain(struct explaining *x, const struct model_args *a, struct err *e)
{
    AUTO_FREE char *path = study_store_path(a->store);
    AUTO_FREE double *cells = calloc(2 * x->m->n + 1, sizeof *cells);
    AUTO_FREE size_t *order = calloc(x->m->n + 1, sizeof *order);
    if (!path || !cells || !order)
        return err_sys(e, -ENOMEM, "cannot explain");
    x->share = cells;
    x->difference = cells + x->m->n;
    x->order = order;
    x->e = e;
    return explain_trial(x, path, a->words->v[0], e);
}

int model_explain(const struct model_args *a, struct err *e)
{
    AUTO_MODEL struct model m = { 0 };
    int rc = model_load(&m, a, e);
    if (rc >= 0 && m.vectors == MODEL_RAW)
        rc = err_set(e, -EINVAL, "'%s' was made elsewhere, and knows no profiles", model_name(a));
    if (rc < 0)
        return cmd_fail(e);
    struct explaining x = { .m = &m, .json = a->json ? json_array() : NULL };
    int code = explain(&x, a, e) < 0 ? cmd_fail(e) : x.json ? cmd_print_json(json_incref(x.json)) : cmd_print(&x.out);
    json_decref(x.json);
    buf_done(&x.out);
    return code;
}
