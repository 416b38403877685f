#include "core/demands.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/own.h"
#include "base/suggest.h"

struct reader {
    struct demands *d;
    const struct space *sp;
    const struct json_doc *doc;
    char path[64];
    struct err *e;
};

#define FAULT(r, ...) json_doc_err((r)->doc, (r)->path, (r)->e, -EINVAL, __VA_ARGS__)

/* --- names --- */

static bool is_wanted(const struct json_doc *doc, const char *name)
{
    static const char *const usual[] = { "accuracy", "loss", goal_seconds, goal_joules };
    const json_t *study = json_object_get(doc->root, "study"), *list = json_object_get(study, "metrics");
    const char *metric = json_string_value(json_object_get(study, "metric"));
    bool is = metric && strcasecmp(metric, name) == 0;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        is |= strcmp(usual[i], name) == 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        metric = json_string_value(json_is_object(one) ? json_object_get(one, "metric") : one);
        is |= metric && strcasecmp(metric, name) == 0;
    }
    return is;
}

static size_t parameters(const struct space *sp, const char *names[SPACE_MAX_DIMS + SPACE_MAX_KNOBS])
{
    size_t n = 0;
    for (size_t i = 0; i < space_n_hyper(sp); i++)
        names[n++] = sp->dims[i].name;
    for (size_t i = 0; i < sp->n_knobs; i++)
        names[n++] = sp->knobs[i].name;
    return n;
}

const char *demands_slip(const struct space *sp, const struct json_doc *doc, const char *name)
{
    const char *names[SPACE_MAX_DIMS + SPACE_MAX_KNOBS];
    size_t n = parameters(sp, names);
    return is_wanted(doc, name) ? NULL : suggest_nearest(name, names, n);
}

bool demands_name(const struct demands *d, const char *name)
{
    for (size_t i = 0; i < d->names.n; i++)
        if (strcasecmp(d->names.v[i], name) == 0)
            return true;
    return false;
}

/* --- what holds --- */

struct reading {
    const struct demands *d;
    const struct space *sp;
    const struct point *p;
    const struct demands_figure *figures;
    size_t n;
    struct value value[SPACE_MAX_DIMS]; /* a text lives here */
};

static double figure_of(const struct reading *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcasecmp(r->figures[i].name, name) == 0)
            return r->figures[i].value;
    return NAN;
}

static struct expr_value read_name(void *ctx, size_t name)
{
    struct reading *r = ctx;
    if (name >= r->d->n_hyper)
        return (struct expr_value){ .number = figure_of(r, r->d->names.v[name - r->d->n_hyper]) };
    struct value *v = &r->value[name];
    *v = space_value(r->sp, r->p, name);
    return (struct expr_value){ .number = v->number, .text = v->is_number ? NULL : v->text };
}

/* What is not there binds nothing; what is not known yet is not judged yet. */
static bool applies(const struct reading *r, const struct demand *one, bool over)
{
    for (size_t i = 0; i < r->d->n_hyper; i++)
        if (expr_uses(one->condition, i) && !space_active(r->sp, r->p, i))
            return false;
    for (size_t i = 0; i < r->d->names.n && !over; i++)
        if (expr_uses(one->condition, r->d->n_hyper + i) && isnan(figure_of(r, r->d->names.v[i])))
            return false;
    return over || one->early;
}

/* "energy_j <= 5000 does not hold: energy_j 6120". */
static void explain(const struct reading *r, const struct demand *one, char why[DEMANDS_WHY_MAX])
{
    int len = snprintf(why, DEMANDS_WHY_MAX, "%s does not hold", one->text);
    const char *sep = ": ";
    for (size_t i = 0; i < r->d->names.n && len < DEMANDS_WHY_MAX; i++) {
        double x = figure_of(r, r->d->names.v[i]);
        if (!expr_uses(one->condition, r->d->n_hyper + i))
            continue;
        size_t room = (size_t)(DEMANDS_WHY_MAX - len);
        if (isnan(x))
            len += snprintf(why + len, room, "%s%s is not known", sep, r->d->names.v[i]);
        else
            len += snprintf(why + len, room, "%s%s %.6g", sep, r->d->names.v[i], x);
        sep = ", ";
    }
}

bool demands_broken(const struct demands *d, const struct space *sp, const struct point *p,
                    const struct demands_figure *figures, size_t n, bool over, char why[DEMANDS_WHY_MAX])
{
    struct reading r = { .d = d, .sp = sp, .p = p, .figures = figures, .n = n };
    for (size_t i = 0; i < d->n; i++) {
        if (!applies(&r, &d->v[i], over) || expr_holds(d->v[i].condition, read_name, &r))
            continue;
        explain(&r, &d->v[i], why);
        return true;
    }
    return false;
}

/* --- reading --- */

static void set_trends(const struct demands *d, enum expr_trend *out)
{
    for (size_t i = 0; i < d->n_hyper; i++)
        out[i] = EXPR_STAYS;
    for (size_t i = 0; i < d->names.n; i++) {
        const char *name = d->names.v[i];
        bool grows = strcmp(name, goal_seconds) == 0 || strcmp(name, goal_joules) == 0;
        out[d->n_hyper + i] = grows ? EXPR_RISES : EXPR_VARIES;
    }
}

static bool uses_hyper(const struct demands *d, const struct expr *x)
{
    for (size_t i = 0; i < d->n_hyper; i++)
        if (expr_uses(x, i))
            return true;
    return false;
}

/* Even a trial that has taken next to nothing breaks it. */
static int check_possible(struct reader *r, const struct demand *one)
{
    const struct demands_figure least[] = { { goal_seconds, DBL_MIN }, { goal_joules, DBL_MIN } };
    struct reading none = { .d = r->d, .sp = r->sp, .figures = least, .n = ARRAY_LEN(least) };
    if (!one->early || uses_hyper(r->d, one->condition) || expr_holds(one->condition, read_name, &none))
        return 0;
    return FAULT(r, "is nothing that a trial can keep: '%s'", one->text);
}

static int check_names(struct reader *r, const struct strv *others)
{
    for (size_t i = 0; i < others->n; i++) {
        const char *slip = demands_slip(r->sp, r->doc, others->v[i]);
        for (size_t k = 0; k < r->sp->n_knobs; k++)
            if (strcmp(r->sp->knobs[k].name, others->v[i]) == 0)
                return FAULT(r, "has the system parameter '%s' beside results: it changes while a trial runs",
                             others->v[i]);
        if (slip)
            return FAULT(r, "names '%s', which is nothing here; did you mean '%s'?", others->v[i], slip);
    }
    return 0;
}

/* One between parameters alone is none of ours. */
static int is_ours(struct reader *r, const char *text)
{
    const char *names[SPACE_MAX_DIMS + SPACE_MAX_KNOBS];
    size_t n = parameters(r->sp, names);
    AUTO_STRV struct strv others = STRV_INIT;
    struct expr *x = NULL;
    struct err why = { 0 };
    int rc = expr_parse_open(&x, text, names, n, &others, &why);
    expr_free(x);
    return rc < 0 ? 0 : others.n > 0; /* what is wrong with it the space says */
}

static int add(struct reader *r, const char *text)
{
    const char *names[SPACE_MAX_DIMS + SPACE_MAX_KNOBS];
    struct demands *d = r->d;
    struct demand *one = &d->v[d->n];
    enum expr_trend trends[SPACE_MAX_DIMS + DEMANDS_NAMES_MAX];
    struct err why = { 0 };
    (void)parameters(r->sp, names); /* hyperparameters come first */
    if (d->n == DEMANDS_MAX)
        return FAULT(r, "is one too many: there may be %d about results", DEMANDS_MAX);
    *one = (struct demand){ .text = strdup(text) };
    d->n++;
    int rc = one->text ? expr_parse_open(&one->condition, text, names, d->n_hyper, &d->names, &why) : -ENOMEM;
    if (rc < 0)
        return rc == -ENOMEM ? err_sys(r->e, rc, "'%s'", r->doc->name) : FAULT(r, "%s", why.text);
    rc = check_names(r, &d->names);
    if (rc < 0)
        return rc;
    if (d->names.n > DEMANDS_NAMES_MAX)
        return FAULT(r, "names one result too many: there may be %d", DEMANDS_NAMES_MAX);
    set_trends(d, trends);
    one->early = expr_only_falls(one->condition, trends);
    return check_possible(r, one);
}

int demands_read(struct demands *out, const struct space *sp, const struct json_doc *doc, struct err *e)
{
    struct reader r = { .d = out, .sp = sp, .doc = doc, .e = e };
    const json_t *list = json_object_get(json_object_get(doc->root, "study"), "constraints");
    int rc = 0;
    *out = (struct demands){ .n_hyper = space_n_hyper(sp) };
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        (void)snprintf(r.path, sizeof r.path, "study/constraints/%zu", i);
        rc = text && is_ours(&r, text) ? add(&r, text) : 0;
    }
    return rc;
}

void demands_done(struct demands *d)
{
    for (size_t i = 0; i < d->n; i++) {
        expr_free(d->v[i].condition);
        free(d->v[i].text);
    }
    strv_done(&d->names);
    *d = (struct demands){ .n = 0 };
}
