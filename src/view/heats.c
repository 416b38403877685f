#include "view/heats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "monitoring/features.h"
#include "store/samples.h"
#include "store/times.h"

enum { EPOCH_COLUMNS = 48, CLASS_COLUMNS = 48 };

/* A stretch of time that is a column. */
struct span {
    double from_s, to_s; /* since 1970 */
    size_t col;
};

struct heating {
    struct view *v;
    struct heats *out;
    struct view_trial *trial;
    struct heats_map *to;
    struct err *e;
    size_t per_col; /* epochs in a column */
    struct span *spans;
    size_t n, cap;
    bool startup; /* is a column of its own, the first */
};

static bool is_gauge(size_t row)
{
    return feature_kind((int)row) == FEATURE_GAUGE;
}

static int add_span(struct heating *h, double from_s, double to_s, size_t col)
{
    struct span *grown = array_more(h->spans, h->n, &h->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    h->spans = grown;
    h->spans[h->n++] = (struct span){ from_s, to_s, col };
    return 0;
}

/* Epochs are placed by the attempt's own start: where its start-up is not known, nobody knows where they lie. */
static int add_attempt(void *ctx, const struct store_attempt *a)
{
    struct heating *h = ctx;
    const struct view_trial *t = h->trial;
    double startup_s = times_startup_s(a, t->epochs, t->n_epochs), begun_s = (double)a->started_ms / 1000.0;
    if (strcmp(a->state, "starting") == 0 || isnan(startup_s))
        return 0;
    AUTO_FREE struct times_epoch *at = calloc(t->n_epochs + 1, sizeof *at);
    int rc = !at ? -ENOMEM : h->startup ? add_span(h, begun_s, begun_s + startup_s, 0) : 0;
    size_t n = rc == 0 ? times_epochs(at, a, t->epochs, t->n_epochs) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t col = h->startup ? 1 + ((size_t)at[i].row->epoch - 1) / h->per_col
                                : (size_t)stories_of(&h->v->stories, t->row.number)->class;
        rc = col < h->to->map.cols ? add_span(h, begun_s + at[i].start_s, begun_s + at[i].end_s, col) : 0;
    }
    return rc;
}

static int add_sample(void *ctx, const struct store_sample *row)
{
    struct heating *h = ctx;
    if (row->why)
        (void)snprintf(h->out->unread, sizeof h->out->unread, "%s/%d: %s", h->v->study.name, h->trial->row.number,
                       row->why);
    if (!row->v)
        return 0;
    double end_s = row->t_ms / 1000.0, dt_s = row->dt_ms / 1000.0;
    for (size_t i = 0; i < h->n; i++)
        heat_add(&h->to->map, h->spans[i].col, dt_s, heat_share(end_s, dt_s, h->spans[i].from_s, h->spans[i].to_s),
                 row->v);
    return 0;
}

static int add_trial(struct heating *h, struct view_trial *t)
{
    struct store *s = h->v->store;
    h->trial = t;
    h->n = 0;
    int rc = view_epochs(h->v, t, h->e);
    if (rc == 0)
        rc = store_attempts(s, t->row.id, add_attempt, h, h->e);
    return rc < 0 || h->n == 0 ? rc : store_samples(s, t->row.id, add_sample, h, h->e);
}

/* --- the best trial --- */

static int name_epochs(struct strv *cols, size_t epochs, size_t per_col)
{
    strv_add(cols, "start-up");
    for (size_t from = 1; from <= epochs; from += per_col) {
        size_t to = from + per_col - 1 < epochs ? from + per_col - 1 : epochs;
        if (from == to)
            strv_addf(cols, "%zu", from);
        else
            strv_addf(cols, "%zu–%zu", from, to);
    }
    return cols->failed ? -ENOMEM : 0;
}

static int heat_best(struct heating *h)
{
    struct view_trial *t = view_trial(h->v, h->v->totals.best_trial);
    if (t && t->row.copy_of)
        t = view_trial(h->v, t->row.copy_of); /* that one was trained */
    if (!t || t->done < 1)
        return 0;
    size_t epochs = (size_t)t->done;
    h->to = &h->out->best;
    h->to->trial = t->row.number;
    h->startup = true;
    h->per_col = (epochs + EPOCH_COLUMNS - 1) / EPOCH_COLUMNS;
    int rc = name_epochs(&h->to->cols, epochs, h->per_col);
    if (rc == 0)
        rc = heat_init(&h->to->map, feature_names, is_gauge, FEATURES, h->to->cols.n);
    return rc < 0 ? rc : add_trial(h, t);
}

/* --- classes --- */

static int heat_classes(struct heating *h)
{
    struct view *v = h->v;
    size_t cols = v->stories.classes.n < CLASS_COLUMNS ? v->stories.classes.n : CLASS_COLUMNS;
    if (cols == 0)
        return 0;
    h->to = &h->out->by_class;
    h->startup = false;
    for (size_t i = 0; i < cols; i++)
        strv_addf(&h->to->cols, "class %zu", i + 1);
    int rc = h->to->cols.failed ? -ENOMEM : heat_init(&h->to->map, feature_names, is_gauge, FEATURES, cols);
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        if (stories_of(&v->stories, v->trials[i].row.number)->class >= 0)
            rc = add_trial(h, &v->trials[i]);
    return rc;
}

int heats_load(struct heats *out, struct view *v, struct err *e)
{
    struct heating h = { .v = v, .out = out, .e = e };
    *out = (struct heats){ .unread = "" };
    int rc = view_stories(v, e);
    if (rc == 0)
        rc = heat_best(&h);
    if (rc == 0)
        rc = heat_classes(&h);
    free(h.spans);
    return view_explain(rc, e, v->study.name);
}

void heats_done(struct heats *h)
{
    heat_done(&h->best.map);
    heat_done(&h->by_class.map);
    strv_done(&h->best.cols);
    strv_done(&h->by_class.cols);
    *h = (struct heats){ .unread = "" };
}
