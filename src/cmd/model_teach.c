#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "cmd/model_profiles.h"

#define TIE_MARGIN 0.01 /* as the tuner has it */

/* What one run says of one setting. */
struct measure {
    char *setting;
    double seconds; /* per record, or per epoch */
    double weight;  /* over which */
};

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "cannot learn from a trace");
}

static void measures_done(struct measure *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i].setting);
    free(list);
}

/* Adds to the setting's mean. */
static int add_measure(struct measure **list, size_t *n, const char *text, double seconds, double weight, struct err *e)
{
    AUTO_FREE char *setting = NULL;
    int rc = model_setting(&setting, text, e);
    for (size_t i = 0; rc == 0 && i < *n; i++) {
        struct measure *m = &(*list)[i];
        if (strcmp(m->setting, setting) != 0)
            continue;
        m->seconds += (seconds - m->seconds) * weight / (m->weight + weight);
        m->weight += weight;
        return 0;
    }
    struct measure *more = rc == 0 ? realloc(*list, (*n + 1) * sizeof *more) : NULL;
    if (!more)
        return rc < 0 ? rc : no_memory(e);
    *list = more;
    more[(*n)++] = (struct measure){ .setting = MOVE_PTR(setting), .seconds = seconds, .weight = weight };
    return 0;
}

/* A JVM is slow in the first epoch that it trains, whatever the setting: that counts only when there is no other. A run that went on
 * from a checkpoint says nothing of the epochs before. */
static bool counts(const struct trace_run *r, int epoch)
{
    size_t first = 0;
    while (first < r->n_epochs && !isfinite(r->epochs[first].duration_s))
        first++;
    return epoch > (int)first + 1 || first + 1 >= r->n_epochs;
}

static int measure_windows(struct measure **list, size_t *n, const struct trace_run *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_windows; i++) {
        const struct trace_window *w = &r->windows[i];
        if (counts(r, w->epoch) && w->at.duration_s > 0 && w->at.records > 0)
            rc = add_measure(list, n, w->setting, w->at.duration_s / w->at.records, w->at.records, e);
    }
    return rc;
}

static int measure_epochs(struct measure **list, size_t *n, const struct trace_run *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_epochs; i++) {
        const struct trace_epoch *x = &r->epochs[i];
        if (counts(r, (int)i + 1) && x->duration_s > 0)
            rc = add_measure(list, n, r->system ? r->system : "{}", x->duration_s, 1, e);
    }
    return rc;
}

/* Ratios over the first one. */
static int teach_ratios(struct model *m, struct model_lesson *l, const struct measure *list, size_t n, struct err *e)
{
    AUTO_FREE struct model_entry *entries = calloc(n + 1, sizeof *entries);
    if (!entries)
        return no_memory(e);
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        entries[i - 1] = (struct model_entry){ .setting = list[i].setting,
                                               .over = list[0].setting,
                                               .log_ratio = log(list[i].seconds / list[0].seconds),
                                               .n = 1 };
        if (log(list[i].seconds / list[best].seconds) < -TIE_MARGIN)
            best = i;
    }
    l->entries = entries;
    l->n_entries = n ? n - 1 : 0;
    l->best = n ? list[best].setting : NULL;
    int rc = model_learn_class(m, l, e);
    l->entries = NULL;
    l->n_entries = 0;
    l->best = NULL;
    return rc;
}

/* --- the best of a class, from all its ratios --- */

/* The log of a setting's time over the reference's; NAN: the two were never compared. */
static double score(const struct model_class *c, const char *setting, const char *reference)
{
    if (strcmp(setting, reference) == 0)
        return 0;
    for (size_t i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i].setting, setting) == 0 && strcmp(c->entries[i].over, reference) == 0)
            return c->entries[i].log_ratio;
    for (size_t i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i].over, setting) == 0 && strcmp(c->entries[i].setting, reference) == 0)
            return -c->entries[i].log_ratio;
    return NAN;
}

static int take_best(struct model *m, const char *key, struct err *e)
{
    const struct model_class *c = model_class_find(m, key);
    if (!c || c->n_entries == 0)
        return 0;
    const char *reference = c->entries[0].over, *best = reference;
    double least = 0;
    for (size_t i = 0; i < c->n_entries; i++) {
        double s = score(c, c->entries[i].setting, reference);
        if (s < least - TIE_MARGIN) {
            least = s;
            best = c->entries[i].setting;
        }
    }
    AUTO_FREE char *text = strdup(best); /* the class may move */
    if (!text)
        return no_memory(e);
    return model_learn_class(m, &(struct model_lesson){ .key = key, .best = text }, e);
}

/* --- runs --- */

static int teach_failed(struct model *m, struct model_lesson *l, const struct trace_run *r, struct err *e)
{
    char system[] = "{}", evidence[] = "a recorded run failed";
    struct model_bound b = { r->system ? r->system : system, evidence, 1 };
    l->bounds = &b;
    l->n_bounds = 1;
    int rc = model_learn_class(m, l, e);
    l->bounds = NULL;
    l->n_bounds = 0;
    return rc;
}

/* One class: runs that compared settings, each by itself; then those that had one each, against each other. */
static int teach_class(struct model *m, const struct trace *t, const char *const *keys, size_t first,
                       struct model_lesson *l, struct err *e)
{
    struct measure *whole = NULL;
    size_t n_whole = 0;
    int rc = 0;
    for (size_t i = first; rc == 0 && i < t->n; i++) {
        const struct trace_run *r = &t->runs[i];
        struct measure *within = NULL;
        size_t n_within = 0;
        if (strcmp(keys[i], keys[first]) != 0)
            continue;
        l->trial = (int64_t)i + 1;
        rc = r->status == RUN_FAILED ? teach_failed(m, l, r, e) : measure_windows(&within, &n_within, r, e);
        if (rc == 0 && n_within > 1)
            rc = teach_ratios(m, l, within, n_within, e);
        else if (rc == 0 && r->status == RUN_COMPLETE)
            rc = measure_epochs(&whole, &n_whole, r, e);
        measures_done(within, n_within);
    }
    if (rc == 0 && n_whole > 0)
        rc = teach_ratios(m, l, whole, n_whole, e);
    measures_done(whole, n_whole);
    return rc < 0 ? rc : take_best(m, keys[first], e);
}

static bool is_new(const char *const *keys, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(keys[i], keys[at]) == 0)
            return false;
    return true;
}

int model_profiles_teach(struct model *m, const struct trace *t, const char *study, struct err *e)
{
    AUTO_STRV struct strv keys = STRV_INIT, families = STRV_INIT;
    int rc = 0, classes = 0;
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        AUTO_BUF struct buf key = BUF_INIT, family = BUF_INIT;
        rc = model_profiles_key(&key, &family, t, &t->runs[i], e);
        strv_add(&keys, buf_text(&key));
        strv_add(&families, buf_text(&family));
    }
    if (rc == 0 && (keys.failed || families.failed))
        rc = no_memory(e);
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        if (!is_new((const char *const *)keys.v, i))
            continue;
        struct model_lesson l = { .key = keys.v[i], .family = families.v[i], .study = study };
        rc = teach_class(m, t, (const char *const *)keys.v, i, &l, e);
        classes++;
    }
    return rc < 0 ? rc : classes;
}
