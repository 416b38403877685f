/* Which hyperparameter mattered in a study. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/show_parts.h"
#include "search/importance.h"

struct gathering {
    const struct show *l;
    struct space space;
    struct importance_trial *v;
    size_t n, cap;
};

/* Trials without a figure, and such as an older config had, say nothing; points that were trained again have said it. */
static int gather(void *ctx, const struct store_trial *t)
{
    struct gathering *g = ctx;
    AUTO_JSON json_t *hyper = show_object(t->hyper);
    struct point point;
    if (isnan(t->metric) || t->repeat_of || space_point_parse(&g->space, hyper, NULL, &point) < 0)
        return 0;
    struct importance_trial *grown = array_more(g->v, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->v = grown;
    g->v[g->n++] = (struct importance_trial){ point, g->l->study.maximise ? -t->metric : t->metric };
    return 0;
}

static int read_space(const struct show *l, struct space *out)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    const char *text = l->study.config ? l->study.config : "";
    int rc = json_doc_parse(&doc, l->study.name, text, strlen(text), l->e);
    return rc < 0 ? rc : space_parse(out, &doc, l->e);
}

static int by_share(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void put_rows(struct show *l, const struct gathering *g, const double *of)
{
    double sorted[SPACE_MAX_DIMS], last = NAN;
    memcpy(sorted, of, sizeof sorted);
    qsort(sorted, g->space.n_dims, sizeof *sorted, by_share);
    buf_printf(&l->out, "%s, by %zu trials: share of what tells the best from all\n\n", show_metric(l), g->n);
    for (size_t i = 0; i < g->space.n_dims; i++) {
        for (size_t d = 0; d < g->space.n_dims && sorted[i] != last; d++)
            if (of[d] == sorted[i])
                buf_printf(&l->out, "%5.1f %%  %s\n", 100 * of[d], g->space.dims[d].name);
        last = sorted[i];
    }
}

static int put_json(struct show *l, const struct gathering *g, const double *of)
{
    json_t *shares = json_object();
    for (size_t d = 0; d < g->space.n_dims; d++)
        (void)json_object_set_new(shares, g->space.dims[d].name, json_real(of[d]));
    AUTO_JSON json_t *j = json_pack("{s:s, s:s, s:I, s:o}", "study", l->study.name, "metric", show_metric(l), "trials",
                                    (json_int_t)g->n, "importance", shares);
    if (!j || json_object_size(shares) != g->space.n_dims)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    json_put(&l->out, j, JSON_STYLE_COMPACT);
    buf_putc(&l->out, '\n');
    return 0;
}

static int put(struct show *l, struct gathering *g)
{
    double of[SPACE_MAX_DIMS] = { 0 };
    int rc = importance_of(&g->space, g->v, g->n, of);
    if (rc == -ENODATA && g->n < IMPORTANCE_TRIALS_MIN)
        return err_set(l->e, -EINVAL, "study '%s' has %zu trials with a figure: less than %d tell nothing",
                       l->study.name, g->n, IMPORTANCE_TRIALS_MIN);
    if (rc == -ENODATA)
        return err_set(l->e, -EINVAL, "the trials of study '%s' do not differ: nothing can be told", l->study.name);
    if (rc < 0)
        return err_sys(l->e, rc, "study '%s'", l->study.name);
    if (l->json)
        return put_json(l, g, of);
    put_rows(l, g, of);
    return 0;
}

int show_importance(struct show *l)
{
    struct gathering g = { .l = l };
    int rc = read_space(l, &g.space);
    if (rc == 0)
        rc = store_trials(l->store, l->study.id, 0, gather, &g, l->e);
    if (rc == -ENOMEM)
        rc = err_sys(l->e, rc, "study '%s'", l->study.name);
    if (rc == 0)
        rc = put(l, &g);
    space_done(&g.space);
    free(g.v);
    return rc < 0 ? rc : show_flush(l);
}
