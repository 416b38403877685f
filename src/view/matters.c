#include "view/matters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "search/importance.h"
#include "view/words.h"

struct gathering {
    struct space space;
    struct importance_trial *v;
    size_t n, cap;
};

/* Trials without a figure, and such as an older config had, say nothing; points that were trained again have said it. */
static int gather(struct gathering *g, const struct store_trial *t, bool maximise)
{
    AUTO_JSON json_t *hyper = words_object(t->hyper);
    struct point point;
    if (isnan(t->metric) || t->repeat_of || space_point_parse(&g->space, hyper, NULL, &point) < 0)
        return 0;
    struct importance_trial *grown = array_more(g->v, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->v = grown;
    g->v[g->n++] = (struct importance_trial){ point, maximise ? -t->metric : t->metric };
    return 0;
}

static int read_space(const struct view *v, struct space *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    const char *text = v->study.config ? v->study.config : "";
    int rc = json_doc_parse(&doc, v->study.name, text, strlen(text), e);
    return rc < 0 ? rc : space_parse(out, &doc, e);
}

/* --- printing --- */

static int by_share(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

void matters_put(struct buf *b, const struct matters *m)
{
    double sorted[SPACE_MAX_DIMS], last = NAN;
    memcpy(sorted, m->share, sizeof sorted);
    qsort(sorted, m->n, sizeof *sorted, by_share);
    buf_printf(b, "%s, by %zu trials: share of what tells the best from all\n\n", m->metric, m->trials);
    for (size_t i = 0; i < m->n; i++) {
        for (size_t d = 0; d < m->n && sorted[i] != last; d++)
            if (m->share[d] == sorted[i])
                buf_printf(b, "%5.1f %%  %s\n", 100 * m->share[d], m->names.v[d]);
        last = sorted[i];
    }
}

json_t *matters_json(const struct matters *m)
{
    json_t *shares = json_object();
    for (size_t d = 0; d < m->n; d++)
        (void)json_object_set_new(shares, m->names.v[d], json_real(m->share[d]));
    return json_pack("{s:s, s:s, s:I, s:o}", "study", m->study, "metric", m->metric, "trials", (json_int_t)m->trials,
                     "importance", shares);
}

/* --- */

static int explained(int rc, const struct view *v, size_t trials, struct err *e)
{
    if (rc == -ENODATA && trials < IMPORTANCE_TRIALS_MIN)
        return err_set(e, -EINVAL, "study '%s' has %zu trials with a figure: less than %d tell nothing", v->study.name,
                       trials, IMPORTANCE_TRIALS_MIN);
    if (rc == -ENODATA)
        return err_set(e, -EINVAL, "the trials of study '%s' do not differ: nothing can be told", v->study.name);
    return view_explain(rc, e, v->study.name);
}

int matters_of(struct matters *out, const struct view *v, struct err *e)
{
    struct gathering g = { .n = 0 };
    *out = (struct matters){ .study = v->study.name, .metric = v->metric, .names = STRV_INIT };
    int rc = read_space(v, &g.space, e);
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = gather(&g, &v->trials[i].row, v->study.maximise);
    if (rc == 0)
        rc = importance_of(&g.space, g.v, g.n, out->share);
    rc = explained(rc, v, g.n, e);
    for (size_t d = 0; rc == 0 && d < g.space.n_dims; d++)
        strv_add(&out->names, g.space.dims[d].name);
    out->n = g.space.n_dims;
    out->trials = g.n;
    space_done(&g.space);
    free(g.v);
    return rc == 0 && out->names.failed ? err_sys(e, -ENOMEM, "study '%s'", v->study.name) : rc;
}
