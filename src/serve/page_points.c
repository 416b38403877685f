#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/strv.h"
#include "serve/page_study.h"
#include "serve/plot.h"
#include "view/front.h"
#include "view/matters.h"
#include "view/table.h"

enum { AXES_MAX = 12, ROWS_MAX = 300, BEST = 30, STRONG = 5, SLICES_MAX = 6, WORDS_MAX = 40 };

/* What hyperparameters, and the metric last, come to in the trials that are shown. */
struct axes {
    char *names[AXES_MAX + 1];
    bool words[AXES_MAX + 1], log[AXES_MAX + 1];
    struct strv said[AXES_MAX + 1];
    size_t n;
    double *values; /* n_rows × (AXES_MAX + 1) */
    char **titles, **links;
    size_t n_rows;
};

static void axes_done(struct axes *a)
{
    for (size_t i = 0; i <= AXES_MAX; i++) {
        free(a->names[i]);
        strv_done(&a->said[i]);
    }
    for (size_t i = 0; i < a->n_rows; i++) {
        free(a->titles[i]);
        free(a->links[i]);
    }
    free(a->titles);
    free(a->links);
    free(a->values);
}

static double *cell(const struct axes *a, size_t row, size_t axis)
{
    return &a->values[row * (AXES_MAX + 1) + axis];
}

static size_t axis_of(struct axes *a, const char *name)
{
    size_t i = 0;
    while (i < a->n && strcmp(a->names[i], name) != 0)
        i++;
    if (i < a->n || i == AXES_MAX)
        return i;
    a->names[i] = strdup(name);
    a->n += a->names[i] != NULL;
    return a->names[i] ? i : AXES_MAX;
}

/* The place of a word among those that were said; NAN: there are too many. */
static double word_of(struct strv *said, const char *word)
{
    for (size_t i = 0; i < said->n; i++)
        if (strcmp(said->v[i], word) == 0)
            return (double)i;
    if (said->n == WORDS_MAX)
        return NAN;
    strv_add(said, word);
    return said->failed ? (double)NAN : (double)(said->n - 1);
}

static double value_of(struct axes *a, size_t axis, const json_t *v)
{
    if (json_is_number(v) && !a->words[axis])
        return json_number_value(v);
    AUTO_FREE char *text = json_is_string(v) ? strdup(json_string_value(v)) : json_text(v);
    a->words[axis] = true;
    return text ? word_of(&a->said[axis], text) : (double)NAN;
}

static int add_row(struct axes *a, const struct view *v, const struct view_trial *t)
{
    AUTO_JSON json_t *hyper = t->row.hyper ? json_loads(t->row.hyper, 0, NULL) : NULL;
    AUTO_BUF struct buf title = BUF_INIT, link = BUF_INIT;
    const char *key;
    char digits[32];
    json_t *value;
    size_t row = a->n_rows;
    for (size_t i = 0; i <= AXES_MAX; i++)
        *cell(a, row, i) = NAN;
    json_object_foreach(hyper, key, value)
    {
        size_t axis = axis_of(a, key);
        if (axis < AXES_MAX)
            *cell(a, row, axis) = value_of(a, axis, value);
    }
    *cell(a, row, AXES_MAX) = t->row.metric;
    buf_printf(&title, "%s/%d: %s %s; %s", v->study.name, t->row.number, v->metric, table_digits(t->row.metric, digits),
               t->row.hyper ? t->row.hyper : "");
    buf_puts(&link, "/trial/");
    http_put_word(&link, v->study.name);
    buf_printf(&link, "/%d", t->row.number);
    a->titles[row] = buf_take(&title);
    a->links[row] = buf_take(&link);
    a->n_rows++;
    return a->titles[row] && a->links[row] ? 0 : -ENOMEM;
}

/* What spans orders of magnitude is shown so. */
static void find_logs(struct axes *a)
{
    for (size_t i = 0; i < a->n; i++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t r = 0; r < a->n_rows; r++) {
            double v = *cell(a, r, i);
            low = isfinite(v) ? fmin(low, v) : low;
            high = isfinite(v) ? fmax(high, v) : high;
        }
        a->log[i] = !a->words[i] && low > 0 && high / low >= 20;
    }
}

static int gather(struct axes *a, const struct view *v, const struct page_pick *p)
{
    int rc = 0;
    a->values = calloc((p->n + 1) * (AXES_MAX + 1), sizeof *a->values);
    a->titles = calloc(p->n + 1, sizeof *a->titles);
    a->links = calloc(p->n + 1, sizeof *a->links);
    if (!a->values || !a->titles || !a->links)
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = add_row(a, v, &v->trials[p->v[i]]);
    find_logs(a);
    return rc;
}

static struct plot_axis axis_at(const struct axes *a, size_t i, const char *metric)
{
    if (i == a->n)
        return (struct plot_axis){ metric, false, NULL, 0 };
    return (struct plot_axis){ a->names[i], a->log[i], a->words[i] ? (const char *const *)a->said[i].v : NULL,
                               a->said[i].n };
}

static bool put_parallel(struct buf *b, const struct axes *a, const struct view *v)
{
    struct plot_axis axes[AXES_MAX + 1];
    AUTO_FREE struct plot_row *rows = calloc(a->n_rows + 1, sizeof *rows);
    AUTO_FREE double *values = calloc((a->n_rows + 1) * (AXES_MAX + 1), sizeof *values);
    b->failed |= !rows || !values;
    if (!rows || !values)
        return false;
    for (size_t i = 0; i <= a->n; i++)
        axes[i] = axis_at(a, i, v->metric);
    for (size_t r = 0; r < a->n_rows; r++) {
        double *to = values + r * (AXES_MAX + 1);
        memcpy(to, cell(a, r, 0), a->n * sizeof *to);
        to[a->n] = *cell(a, r, AXES_MAX);
        rows[r] = (struct plot_row){ to, a->titles[r], r < STRONG };
    }
    return plot_parallel(b, axes, a->n + 1, rows, a->n_rows);
}

static void put_slice(struct buf *b, const struct axes *a, size_t axis, const struct view *v)
{
    AUTO_FREE struct plot_point *points = calloc(a->n_rows + 1, sizeof *points);
    struct plot_axis x = axis_at(a, axis, v->metric), y = { v->metric, false, NULL, 0 };
    b->failed |= !points;
    for (size_t r = 0; points && r < a->n_rows; r++)
        points[r] =
            (struct plot_point){ *cell(a, r, axis), *cell(a, r, AXES_MAX), a->titles[r], a->links[r], r < STRONG };
    buf_puts(b, "<details><summary>");
    svg_escape(b, a->names[axis]);
    buf_puts(b, " against ");
    svg_escape(b, v->metric);
    buf_puts(b, "</summary>\n");
    if (points && !plot_points(b, &x, &y, points, a->n_rows))
        buf_puts(b, "<p class=\"absent\">absent</p>\n");
    buf_puts(b, "</details>\n");
}

/* --- what mattered, and the Pareto set --- */

static int put_importance(struct buf *b, const struct view *v)
{
    struct matters m = { .n = 0 };
    struct err e = { 0 };
    int rc = matters_of(&m, v, &e);
    if (rc == 0) {
        buf_printf(
            b,
            "<h3>Which hyperparameter mattered</h3>\n<p class=\"dim\">By %zu trials: the share of what tells the "
            "best from all.</p>\n<table><tbody>\n",
            m.trials);
        for (size_t d = 0; d < m.n; d++) {
            buf_puts(b, "<tr><td>");
            svg_escape(b, m.names.v[d]);
            buf_printf(
                b, "</td><td><progress max=\"1\" value=\"%.3f\"></progress></td><td class=\"n\">%.1f %%</td></tr>\n",
                m.share[d], 100 * m.share[d]);
        }
        buf_puts(b, "</tbody></table>\n");
    }
    strv_done(&m.names);
    return rc == -ENOMEM ? rc : 0; /* else they tell nothing yet */
}

int page_put_points(struct buf *b, struct view *v, struct err *e)
{
    struct page_pick p = { .v = NULL };
    struct axes a = { .n = 0 };
    int rc = page_pick(&p, v, BEST, ROWS_MAX, page_has_metric);
    if (rc == 0)
        rc = gather(&a, v, &p);
    if (rc == 0 && a.n_rows > 0 && put_parallel(b, &a, v)) {
        buf_printf(b, "<p class=\"dim\">%zu of %zu trials; the best %d stand out.</p>\n", p.n, p.of, STRONG);
        for (size_t i = 0; i < a.n && i < SLICES_MAX; i++)
            put_slice(b, &a, i, v);
    } else if (rc == 0) {
        buf_puts(b, "<p><span class=\"absent\">absent</span>: no trial has the metric yet.</p>\n");
    }
    if (rc == 0)
        rc = put_importance(b, v);
    if (rc == 0)
        rc = view_pareto(v, e);
    if (rc == 0)
        front_put(b, v);
    axes_done(&a);
    page_pick_done(&p);
    return view_explain(rc, e, v->study.name);
}
