/* What a name of the condition stands for, of each trial:
 *
 *   study, state, tag                                    texts; tag: all that was said of it and of its study
 *   trial, metric, accuracy, loss, seconds, epochs, slots, energy_j
 *   a hyperparameter; a system parameter as it was in force; anything else that trials tell by name, of its last epoch */
#include "cmd/ls_where.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/look.h"
#include "core/expr.h"
#include "live/study.h"
#include "store/series.h"
#include "view/energy_figure.h"
#include "view/notes.h"
#include "view/table.h"
#include "view/view.h"
#include "view/words.h"

enum fact {
    FACT_STUDY,
    FACT_STATE,
    FACT_TAG,
    FACT_TRIAL,
    FACT_METRIC,
    FACT_ACCURACY,
    FACT_LOSS,
    FACT_SECONDS,
    FACT_EPOCHS,
    FACT_SLOTS,
    FACT_ENERGY,
    FACTS
};

static const char *const facts[FACTS] = { "study", "state",   "tag",    "trial", "metric",  "accuracy",
                                          "loss",  "seconds", "epochs", "slots", "energy_j" };

struct match {
    char *study, *state;
    int trial;
    double metric, accuracy, seconds;
    json_t *hyper, *system, *tags; /* owned */
};

struct where {
    const char *path;
    struct store *store;
    struct strv names; /* those that are known: facts, and what the studies have */
    struct expr *x;
    struct err *e;
    /* of the study under way */
    struct store_study study;
    char *metric;
    pid_t driver;
    struct energy_load energy;
    /* of the trial under way */
    const struct store_trial *trial;
    json_t *hyper, *system;
    struct buf tags;
    int rc;     /* what a read said, which the condition cannot */
    char *told; /* the metric of all matches; NULL: they have several */
    bool several;
    struct match *v;
    size_t n, cap;
};

static void match_done(struct match *m)
{
    free(m->study);
    free(m->state);
    json_decref(m->hyper);
    json_decref(m->system);
    json_decref(m->tags);
}

static void where_done(struct where *w)
{
    for (size_t i = 0; i < w->n; i++)
        match_done(&w->v[i]);
    free(w->v);
    free(w->told);
    expr_free(w->x);
    strv_done(&w->names);
    buf_done(&w->tags);
    store_close(w->store);
}

/* --- names --- */

static void add_name(struct strv *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->v[i], name) == 0)
            return;
    strv_add(names, name);
}

static void add_keys(struct strv *names, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) add_name(names, key);
}

static json_t *config_of(const struct store_study *study)
{
    return words_object(study->config);
}

static int add_first_trial(void *ctx, const struct store_trial *t)
{
    struct where *w = ctx;
    AUTO_JSON json_t *hyper = words_object(t->hyper);
    AUTO_JSON json_t *system = words_object(t->effective);
    add_keys(&w->names, hyper);
    add_keys(&w->names, system);
    return 0;
}

static int add_study_names(void *ctx, const struct store_summary *r)
{
    struct where *w = ctx;
    struct store_study study = { 0 };
    int rc = store_study_find(w->store, r->name, &study, w->e);
    if (rc == 1) {
        AUTO_JSON json_t *config = config_of(&study);
        const char *metric = json_string_value(json_object_get(json_object_get(config, "study"), "metric"));
        add_keys(&w->names, json_object_get(config, "hyperParameters"));
        add_keys(&w->names, json_object_get(config, "systemParameters"));
        if (metric)
            add_name(&w->names, metric);
        rc = store_trials(w->store, study.id, 1, add_first_trial, w, w->e);
    }
    store_study_done(&study);
    return rc;
}

/* Names that no study's config has may be some that trials told of. */
static int add_told_names(struct where *w, const char *text)
{
    AUTO_STRV struct strv others = STRV_INIT;
    struct expr *x = NULL;
    int rc = expr_parse_open(&x, text, (const char *const *)w->names.v, w->names.n, &others, w->e);
    expr_free(x);
    for (size_t i = 0; rc == 0 && i < others.n; i++) {
        bool told = false;
        rc = store_series_has(w->store, others.v[i], &told, w->e);
        if (told)
            add_name(&w->names, others.v[i]);
    }
    return rc;
}

static int parse(struct where *w, const char *text)
{
    for (size_t i = 0; i < FACTS; i++)
        strv_add(&w->names, facts[i]);
    int rc = store_list(w->store, add_study_names, w, w->e);
    if (rc == 0)
        rc = add_told_names(w, text);
    if (rc == 0 && w->names.failed)
        rc = err_sys(w->e, -ENOMEM, "cannot list the trials");
    if (rc == 0)
        rc = expr_parse(&w->x, text, (const char *const *)w->names.v, w->names.n, w->e);
    if (rc != -EINVAL)
        return rc;
    struct err why = *w->e;
    return err_set(w->e, rc, "option '--where': '%.200s' %s (texts stand in quotes: state = 'finished')", text,
                   why.text);
}

/* --- what they stand for --- */

static struct expr_value number(double x)
{
    return (struct expr_value){ .number = x };
}

static struct expr_value value_of_json(const json_t *j)
{
    const char *text = json_string_value(j);
    if (text)
        return (struct expr_value){ .text = text };
    return number(json_is_number(j) ? json_number_value(j) : json_is_boolean(j) ? json_is_true(j) : (double)NAN);
}

static double energy_of(struct where *w)
{
    struct ledger_figure f = energy_figure_absent;
    int rc = energy_figure_number(&w->energy, w->trial->number, &f);
    w->rc = rc < 0 ? rc : w->rc;
    return f.j;
}

static struct expr_value fact_of(struct where *w, enum fact fact)
{
    const struct store_trial *t = w->trial;
    switch (fact) {
    case FACT_STUDY: return (struct expr_value){ .text = w->study.name };
    case FACT_STATE: return (struct expr_value){ .text = view_state(t->state, w->driver) };
    case FACT_TAG: return (struct expr_value){ .text = buf_text(&w->tags), .is_list = true };
    case FACT_TRIAL: return number(t->number);
    case FACT_METRIC: return number(t->metric);
    case FACT_ACCURACY: return number(t->accuracy);
    case FACT_LOSS: return number(t->loss);
    case FACT_SECONDS: return number(t->seconds);
    case FACT_EPOCHS: return number(t->epochs);
    case FACT_SLOTS: return number(t->slots > 0 ? t->slots : (double)NAN);
    case FACT_ENERGY: return number(energy_of(w));
    case FACTS: break;
    }
    return number(NAN);
}

static struct expr_value value_of(void *ctx, size_t name)
{
    struct where *w = ctx;
    if (name < FACTS)
        return fact_of(w, (enum fact)name);
    const char *key = w->names.v[name];
    const json_t *j = json_object_get(w->hyper, key);
    j = j ? j : json_object_get(w->system, key);
    if (j)
        return value_of_json(j);
    if (w->metric && strcmp(key, w->metric) == 0)
        return number(w->trial->metric);
    double told = NAN;
    int rc = store_series_at_end(w->store, w->trial->id, key, &told, w->e);
    w->rc = rc < 0 ? rc : w->rc;
    return number(told);
}

/* --- trials --- */

static int keep(struct where *w)
{
    const struct store_trial *t = w->trial;
    struct match *grown = array_more(w->v, w->n, &w->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    w->v = grown;
    struct match *m = &w->v[w->n++];
    *m = (struct match){ .study = strdup(w->study.name),
                         .state = strdup(view_state(t->state, w->driver)),
                         .trial = t->number,
                         .metric = t->metric,
                         .accuracy = t->accuracy,
                         .seconds = t->seconds,
                         .hyper = json_incref(w->hyper),
                         .system = json_incref(w->system),
                         .tags = notes_json(w->store, w->study.id, t->number, w->e) };
    const char *metric = w->metric ? w->metric : "accuracy";
    w->several |= w->told && strcmp(w->told, metric) != 0;
    if (!w->told)
        w->told = strdup(metric);
    return m->study && m->state && m->tags && w->told ? 0 : -ENOMEM;
}

static int load_tags(struct where *w)
{
    buf_clear(&w->tags);
    if (!expr_uses(w->x, FACT_TAG))
        return 0;
    int rc = notes_put_lines(&w->tags, w->store, w->study.id, 0, w->e);
    if (rc == 0)
        rc = notes_put_lines(&w->tags, w->store, w->study.id, w->trial->number, w->e);
    return rc == 0 && w->tags.failed ? -ENOMEM : rc;
}

static int look_at(void *ctx, const struct store_trial *t)
{
    struct where *w = ctx;
    w->trial = t;
    w->hyper = words_object(t->hyper);
    w->system = words_object(t->effective);
    w->rc = 0;
    int rc = load_tags(w);
    bool holds = rc == 0 && expr_holds(w->x, value_of, w);
    rc = rc < 0 ? rc : w->rc;
    if (rc == 0 && holds)
        rc = keep(w);
    json_decref(w->hyper);
    json_decref(w->system);
    return rc;
}

static int look_at_trials(struct where *w)
{
    AUTO_JSON json_t *config = config_of(&w->study);
    AUTO_FREE char *dir = study_dir(w->path, w->study.name);
    const char *metric = json_string_value(json_object_get(json_object_get(config, "study"), "metric"));
    w->metric = (char *)(uintptr_t)metric; /* lives as long as the config */
    w->driver = dir && strcmp(w->study.state, "running") == 0 ? study_driver(dir) : 0;
    int rc = expr_uses(w->x, FACT_ENERGY) ? energy_load(&w->energy, w->store, &w->study, w->e) : 0;
    if (rc == 0)
        rc = store_trials(w->store, w->study.id, 0, look_at, w, w->e);
    energy_load_done(&w->energy);
    w->energy = (struct energy_load){ 0 };
    return rc;
}

static int look_at_study(void *ctx, const struct store_summary *r)
{
    struct where *w = ctx;
    w->study = (struct store_study){ 0 };
    int rc = store_study_find(w->store, r->name, &w->study, w->e);
    if (rc == 1)
        rc = look_at_trials(w);
    store_study_done(&w->study);
    return rc;
}

/* --- printing --- */

static int print_json(const struct where *w)
{
    json_t *all = json_array();
    for (size_t i = 0; i < w->n; i++) {
        const struct match *m = &w->v[i];
        json_t *one =
            json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:O, s:O, s:O}", "study", m->study, "trial", m->trial, "state",
                      m->state, "metric", json_num(m->metric), "accuracy", json_num(m->accuracy), "seconds",
                      json_num(m->seconds), "hyper", m->hyper, "system", m->system, "tags", m->tags);
        if (json_array_append_new(all, one) < 0) {
            json_decref(all);
            return cmd_print_json(NULL);
        }
    }
    return cmd_print_json(all);
}

static void put_cell(struct table *t, const json_t *value)
{
    AUTO_FREE char *text = value && !json_is_string(value) ? json_text(value) : NULL;
    if (json_is_number(value))
        table_number(t, json_number_value(value));
    else
        table_cell(t, text ? text : value ? json_string_value(value) : "-");
}

static void put_tags(struct table *t, const json_t *tags)
{
    AUTO_BUF struct buf b = BUF_INIT;
    size_t i;
    json_t *text;
    json_array_foreach(tags, i, text) buf_printf(&b, "%s%s", i ? "; " : "tags: ", json_string_value(text));
    table_note(t, buf_text(&b));
    t->failed |= b.failed;
}

static void put_row(struct table *t, const struct match *m, const struct strv *keys)
{
    table_cellf(t, "%s/%d", m->study, m->trial);
    table_number(t, m->metric);
    table_cell(t, m->state);
    for (size_t k = 0; k < keys->n; k++)
        put_cell(t, json_object_get(m->hyper, keys->v[k]));
    table_seconds(t, m->seconds);
    put_tags(t, m->tags);
}

static int print_table(const struct where *w, const char *condition)
{
    enum { OTHERS = 4 };
    AUTO_STRV struct strv keys = STRV_INIT;
    AUTO_STRV struct strv heads = STRV_INIT;
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < w->n; i++)
        add_keys(&keys, w->v[i].hyper);
    while (keys.n > TABLE_MAX_COLUMNS - OTHERS)
        free(keys.v[--keys.n]);
    strv_add(&heads, "trial");
    strv_addf(&heads, "!>%s", w->several || !w->told ? "metric" : w->told);
    strv_add(&heads, "!state");
    for (size_t k = 0; k < keys.n; k++)
        strv_addf(&heads, "!>%s", keys.v[k]);
    strv_add(&heads, ">time");
    struct table t = { 0 };
    if (heads.failed || keys.failed)
        return cmd_print_json(NULL); /* out of memory */
    if (w->n == 0)
        buf_printf(&b, "no trial where %s\n", condition);
    table_init(&t, (const char *const *)heads.v);
    for (size_t i = 0; i < w->n; i++)
        put_row(&t, &w->v[i], &keys);
    if (w->n > 0)
        table_put(&t, &b, 0);
    b.failed |= t.failed != 0;
    table_done(&t);
    return cmd_print(&b);
}

static int print_names(const struct where *w)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < w->n; i++)
        buf_printf(&b, "%s/%d\n", w->v[i].study, w->v[i].trial);
    return cmd_print(&b);
}

int ls_where(const char *path, const char *condition, enum ls_form form)
{
    struct err e = { 0 };
    struct where w = { .path = path, .names = STRV_INIT, .tags = BUF_INIT, .e = &e };
    int rc = store_open(&w.store, path, STORE_READ, &e);
    if (rc == 0)
        rc = parse(&w, condition);
    if (rc == 0)
        rc = store_list(w.store, look_at_study, &w, &e);
    if (rc < 0 && !e.code) /* a callback's, which explains nothing */
        (void)err_sys(&e, rc, "cannot list the trials");
    int code = rc < 0             ? cmd_fail(&e)
               : form == LS_JSON  ? print_json(&w)
               : form == LS_NAMES ? print_names(&w)
                                  : print_table(&w, condition);
    where_done(&w);
    return code;
}
