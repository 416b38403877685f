/* What more than its dimensions a space is made of: hyperparameters that are there only under a condition on another one, and constraints
 * between them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/demands.h"
#include "core/expr.h"
#include "core/rng.h"
#include "core/space.h"

enum {
    RULES_MAX = 64,
    LISTED_MAX = 1 << 16,  /* points that are listed for a search … */
    COUNTED_MAX = 1 << 22, /* … out of so many */
    TRIES = 20000,         /* of a space that cannot be counted, before there is said to be no point */
};

/* There only where the one before it has one of these. */
struct when {
    size_t dim, parent;
    double *x;
    size_t n;
};

struct space_rules {
    struct when when[SPACE_MAX_DIMS];
    size_t n_when;
    struct expr *constraint[RULES_MAX];
    size_t n_constraints;
};

void space_rules_free(struct space_rules *r)
{
    for (size_t i = 0; r && i < r->n_when; i++)
        free(r->when[i].x);
    for (size_t i = 0; r && i < r->n_constraints; i++)
        expr_free(r->constraint[i]);
    free(r);
}

/* --- what they say of a point --- */

static bool has_one(const struct when *w, double x)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->x[i] == x)
            return true;
    return false;
}

/* One whose condition is on one that is not there is not there either. */
bool space_active(const struct space *s, const struct point *p, size_t dim)
{
    const struct space_rules *r = s->rules;
    for (size_t i = 0; r && i < r->n_when; i++)
        if (r->when[i].dim == dim)
            return has_one(&r->when[i], p->x[r->when[i].parent]) && space_active(s, p, r->when[i].parent);
    return true;
}

struct reading {
    const struct space *s;
    const struct point *p;
    const size_t *knobs;                /* the value of each */
    struct value value[SPACE_MAX_DIMS]; /* of each hyperparameter, as it was read: a text lives here */
};

static struct expr_value read_name(void *ctx, size_t name)
{
    struct reading *r = ctx;
    size_t n = space_n_hyper(r->s);
    const struct value *v;
    if (name < n) {
        r->value[name] = space_value(r->s, r->p, name);
        v = &r->value[name];
    } else {
        v = &r->s->knobs[name - n].values[r->knobs[name - n]];
    }
    return (struct expr_value){ .number = v->number, .text = v->is_number ? NULL : v->text };
}

/* The next values of the knobs that it uses; false: there are none. */
static bool next_knobs(const struct space *s, const struct expr *x, size_t at[SPACE_MAX_KNOBS])
{
    for (size_t k = 0; k < s->n_knobs; k++) {
        if (!expr_uses(x, space_n_hyper(s) + k))
            continue;
        if (++at[k] < s->knobs[k].n)
            return true;
        at[k] = 0;
    }
    return false;
}

/* Whatever it gets. What is not there is bound by nothing. */
static bool holds(const struct space *s, const struct expr *x, const struct point *p)
{
    size_t knobs[SPACE_MAX_KNOBS] = { 0 };
    struct reading r = { .s = s, .p = p, .knobs = knobs };
    for (size_t i = 0; i < space_n_hyper(s); i++)
        if (expr_uses(x, i) && !space_active(s, p, i))
            return true;
    bool all = true;
    do
        all = expr_holds(x, read_name, &r);
    while (all && next_knobs(s, x, knobs));
    return all;
}

bool space_admits(const struct space *s, struct point *p)
{
    const struct space_rules *r = s->rules;
    if (!r || s->points)
        return true;
    for (size_t i = 0; i < r->n_when; i++) /* in the order of dimensions: those before are settled */
        if (!space_active(s, p, r->when[i].dim))
            p->x[r->when[i].dim] = space_dim_first(&s->dims[r->when[i].dim]);
    for (size_t i = 0; i < r->n_constraints; i++)
        if (!holds(s, r->constraint[i], p))
            return false;
    return true;
}

/* --- reading --- */

struct rules_reader {
    struct space *s;
    const struct json_doc *doc;
    struct err *e;
    char path[192];
};

#define FAULT(r, ...) json_doc_err((r)->doc, (r)->path, (r)->e, -EINVAL, __VA_ARGS__)

/* The one of that name that was written before; `n`: none. */
static size_t find_dim(const struct space *s, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(s->dims[i].name, name) != 0)
        i++;
    return i;
}

static int read_when_values(struct rules_reader *r, struct when *w, const json_t *j)
{
    const struct dim *d = &r->s->dims[w->parent];
    size_t n = json_is_array(j) ? json_array_size(j) : 1;
    if (n == 0)
        return FAULT(r, "is empty: it needs at least one value of '%s'", d->name);
    w->x = calloc(n, sizeof *w->x);
    if (!w->x)
        return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
    for (; w->n < n; w->n++) {
        const json_t *v = json_is_array(j) ? json_array_get(j, w->n) : j;
        bool plain = json_is_string(v) || json_is_number(v);
        w->x[w->n] = plain ? space_dim_find(d, v) : (double)NAN;
        if (isnan(w->x[w->n]))
            return FAULT(r, "has a value that is none of '%s'", d->name);
    }
    return 0;
}

static int read_when(struct rules_reader *r, size_t dim, const json_t *when)
{
    struct space *s = r->s;
    if (!json_is_object(when) || json_object_size(when) != 1)
        return FAULT(r, "must be an object of one hyperparameter and its values: {\"optimizer\": [\"sgd\"]}");
    const char *name = json_object_iter_key(json_object_iter((json_t *)when));
    size_t parent = find_dim(s, dim, name);
    if (parent == dim)
        return FAULT(r, "names what is no hyperparameter that is written before '%s'", s->dims[dim].name);
    if (s->dims[parent].kind == DIM_REAL)
        return FAULT(r, "names '%s', which is not one of a list", name);
    struct when *w = &s->rules->when[s->rules->n_when++];
    *w = (struct when){ .dim = dim, .parent = parent };
    return read_when_values(r, w, json_object_get(when, name));
}

static int read_all_whens(struct rules_reader *r)
{
    const json_t *hyper = json_object_get(r->doc->root, "hyperParameters");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < space_n_hyper(r->s); i++) {
        const char *name = r->s->dims[i].name;
        const json_t *when = json_object_get(json_object_get(hyper, name), "when");
        (void)snprintf(r->path, sizeof r->path, "hyperParameters/%s/when", name);
        rc = when ? read_when(r, i, when) : 0;
    }
    return rc;
}

static int read_constraint(struct rules_reader *r, const json_t *j)
{
    const char *names[SPACE_MAX_DIMS + SPACE_MAX_KNOBS];
    struct space_rules *rules = r->s->rules;
    struct err why = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < space_n_hyper(r->s); i++)
        names[n++] = r->s->dims[i].name;
    for (size_t i = 0; i < r->s->n_knobs; i++)
        names[n++] = r->s->knobs[i].name;
    if (!json_is_string(j))
        return FAULT(r, "must be a condition as text, such as \"batch_size %% 4 == 0\"");
    if (rules->n_constraints == RULES_MAX)
        return FAULT(r, "is one too many: there may be %d", RULES_MAX);
    struct expr **x = &rules->constraint[rules->n_constraints];
    AUTO_STRV struct strv results = STRV_INIT;
    int rc = expr_parse_open(x, json_string_value(j), names, n, &results, &why);
    if (rc < 0)
        return rc == -ENOMEM ? err_sys(r->e, rc, "'%s'", r->doc->name) : FAULT(r, "%s", why.text);
    if (results.n == 0) {
        rules->n_constraints++;
        return 0;
    }
    expr_free(*x); /* one on what trials come to: core/demands */
    *x = NULL;
    for (size_t i = 0; i < results.n; i++) {
        const char *slip = demands_slip(r->s, r->doc, results.v[i]);
        if (slip)
            return FAULT(r, "names '%s', which is nothing here; did you mean '%s'?", results.v[i], slip);
    }
    return 0;
}

static int read_constraints(struct rules_reader *r)
{
    const json_t *list = json_object_get(json_object_get(r->doc->root, "study"), "constraints");
    int rc = 0;
    (void)snprintf(r->path, sizeof r->path, "study/constraints");
    if (list && !json_is_array(list))
        return FAULT(r, "must be a list of conditions, such as [\"batch_size %% 4 == 0\"]");
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        (void)snprintf(r->path, sizeof r->path, "study/constraints/%zu", i);
        rc = read_constraint(r, json_array_get(list, i));
    }
    return rc;
}

static int none_left(struct rules_reader *r)
{
    (void)snprintf(r->path, sizeof r->path, r->s->rules->n_constraints ? "study/constraints" : "hyperParameters");
    return FAULT(r, "leave no point of the space");
}

/* Is it written as the search counts it, and not once more under a value that is not there? */
static bool is_point(const struct space *s, const struct point *p)
{
    struct point settled = *p;
    return space_admits(s, &settled) && memcmp(&settled, p, sizeof *p) == 0;
}

/* The points that are left, where they can be counted: then every search goes through them as through any other list. */
static int list_points(struct rules_reader *r, uint64_t size)
{
    AUTO_FREE struct point *left = calloc(LISTED_MAX, sizeof *left);
    size_t n = 0;
    if (!left)
        return err_sys(r->e, -ENOMEM, "'%s'", r->doc->name);
    for (uint64_t i = 0; i < size && n <= LISTED_MAX; i++) {
        struct point p = space_point_at(r->s, i);
        if (!is_point(r->s, &p))
            continue;
        if (n < LISTED_MAX)
            left[n] = p;
        n++;
    }
    if (n == 0)
        return none_left(r);
    if (n > LISTED_MAX) /* drawn, as from one without end */
        return 0;
    return space_list_points(r->s, left, n) < 0 ? err_sys(r->e, -ENOMEM, "'%s'", r->doc->name) : 0;
}

/* Is there any? A search draws until it finds one. */
static int try_points(struct rules_reader *r)
{
    struct rng rng = rng_seeded(1);
    for (int i = 0; i < TRIES; i++) {
        struct point p = space_draw(r->s, &rng);
        if (space_admits(r->s, &p))
            return 0;
    }
    return none_left(r);
}

int space_read_rules(struct space *s, const struct json_doc *doc, struct err *e)
{
    struct rules_reader r = { .s = s, .doc = doc, .e = e };
    s->rules = calloc(1, sizeof *s->rules);
    if (!s->rules)
        return err_sys(e, -ENOMEM, "'%s'", doc->name);
    int rc = s->points ? 0 : read_all_whens(&r);
    if (rc == 0)
        rc = read_constraints(&r);
    if (rc < 0)
        return rc;
    if (s->points && s->rules->n_constraints > 0) { /* what they allow is in the list */
        (void)snprintf(r.path, sizeof r.path, "study/constraints");
        return FAULT(&r, "do not go with listed points: leave out those that they exclude");
    }
    if (s->rules->n_when == 0 && s->rules->n_constraints == 0) {
        space_rules_free(s->rules);
        s->rules = NULL;
        return 0;
    }
    uint64_t size = space_size(s);
    return size <= COUNTED_MAX ? list_points(&r, size) : try_points(&r);
}
