#include "view/charts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/own.h"
#include "store/series.h"
#include "view/foretold.h"
#include "view/svg.h"
#include "view/words.h"

enum { LINES_MAX = 200, CHARTS_MAX = 40, WAYS_MAX = 8 };

enum { ACCURACY, LOSS, USUAL }; /* the charts that need no telling by name */

/* A trial's line in one chart. */
struct piece {
    size_t chart, trial, from, n; /* of drawn.trials, drawn.x and y */
};

struct drawn {
    struct view *v;
    struct err *e;
    struct strv charts; /* names: accuracy, loss, and the others as they came up */
    struct view_trial *trials[LINES_MAX + 1];
    struct strv titles;
    size_t n, left_out;
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
    struct dot {
        double x, y;
    } * points;
    size_t n_points, cap_points;
    size_t left_charts;
    struct way {
        char *title; /* owned */
        double x[OUTLOOK_WAY_MAX], y[OUTLOOK_WAY_MAX], low[OUTLOOK_WAY_MAX], high[OUTLOOK_WAY_MAX];
        size_t n;
    } ways[WAYS_MAX];
    size_t n_ways;
};

static void drawn_done(struct drawn *d)
{
    strv_done(&d->charts);
    strv_done(&d->titles);
    for (size_t i = 0; i < d->n_ways; i++)
        free(d->ways[i].title);
    free(d->pieces);
    free(d->points);
}

/* --- gathering --- */

/* The best one is always among them. */
static void choose_trials(struct drawn *d)
{
    for (size_t i = 0; i < d->v->n; i++) {
        struct view_trial *t = &d->v->trials[i];
        bool best = t->row.number == d->v->totals.best_trial;
        if (t->row.reached == 0)
            continue;
        if (d->n >= LINES_MAX && !best) {
            d->left_out++;
            continue;
        }
        AUTO_BUF struct buf title = BUF_INIT;
        AUTO_JSON json_t *hyper = words_object(t->row.hyper);
        buf_printf(&title, "%s/%d%s: ", d->v->study.name, t->row.number, best ? ", the best" : "");
        words_put_short_members(&title, hyper);
        strv_add(&d->titles, buf_text(&title));
        d->titles.failed |= title.failed;
        d->trials[d->n++] = t;
    }
}

static int add_point(struct drawn *d, size_t chart, size_t trial, double x, double y)
{
    struct dot *grown = array_more(d->points, d->n_points, &d->cap_points, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    d->points = grown;
    d->points[d->n_points++] = (struct dot){ x, y };
    struct piece *last = d->n_pieces ? &d->pieces[d->n_pieces - 1] : NULL;
    if (last && last->chart == chart && last->trial == trial) {
        last->n++;
        return 0;
    }
    struct piece *more = array_more(d->pieces, d->n_pieces, &d->cap_pieces, sizeof *more);
    if (!more)
        return -ENOMEM;
    d->pieces = more;
    d->pieces[d->n_pieces++] = (struct piece){ chart, trial, d->n_points - 1, 1 };
    return 0;
}

static int take_usual(struct drawn *d, size_t trial)
{
    struct view_trial *t = d->trials[trial];
    int rc = view_epochs(d->v, t, d->e);
    for (size_t i = 0; rc == 0 && i < t->n_epochs; i++)
        rc = add_point(d, ACCURACY, trial, t->epochs[i].epoch, t->epochs[i].accuracy);
    for (size_t i = 0; rc == 0 && i < t->n_epochs; i++)
        rc = add_point(d, LOSS, trial, t->epochs[i].epoch, t->epochs[i].loss);
    return rc;
}

/* Its chart; CHARTS_MAX: it has none. */
static size_t chart_of(struct drawn *d, const char *name)
{
    static const char *const usual[] = { "accuracy", "Top1Accuracy", "loss" };
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        if (strcasecmp(usual[i], name) == 0)
            return CHARTS_MAX;
    size_t i = 0;
    while (i < d->charts.n && strcmp(d->charts.v[i], name) != 0)
        i++;
    if (i == d->charts.n && i < CHARTS_MAX)
        strv_add(&d->charts, name);
    d->left_charts += i == CHARTS_MAX;
    return i;
}

struct telling {
    struct drawn *d;
    size_t trial;
};

static int take_value(void *ctx, const struct store_value *v)
{
    struct telling *t = ctx;
    size_t chart = v->step > 0 ? CHARTS_MAX : chart_of(t->d, v->name);
    if (t->d->charts.failed)
        return -ENOMEM;
    return chart == CHARTS_MAX ? 0 : add_point(t->d, chart, t->trial, v->epoch, v->value);
}

/* Where a trial that is not over goes by what is foretold: those that run, then those that are paused, as many as can be told apart. */
static int take_way(struct drawn *d, struct view_trial *t)
{
    struct outlook_step steps[OUTLOOK_WAY_MAX];
    AUTO_BUF struct buf title = BUF_INIT;
    int n = outlook_way(d->v->outlook, &t->row, steps, d->e);
    if (n <= 0)
        return n;
    struct way *w = &d->ways[d->n_ways];
    buf_printf(&title, "%s/%d ", d->v->study.name, t->row.number);
    foretold_put(&title, &t->foretold);
    *w = (struct way){ .title = strdup(buf_text(&title)), .n = (size_t)n };
    if (title.failed || !w->title)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        w->x[i] = steps[i].epoch;
        w->y[i] = steps[i].value.median;
        w->low[i] = steps[i].value.low;
        w->high[i] = steps[i].value.high;
    }
    d->n_ways++;
    return 0;
}

static int take_ways(struct drawn *d, const char *state)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n && d->n_ways < WAYS_MAX; i++) {
        struct view_trial *t = d->trials[i];
        if (strcmp(t->state, state) != 0)
            continue;
        rc = view_forecast(d->v, t, d->e);
        if (rc == 0 && t->foretold.epoch)
            rc = take_way(d, t);
    }
    return rc;
}

static int gather(struct drawn *d)
{
    int rc = 0;
    strv_add(&d->charts, "accuracy");
    strv_add(&d->charts, "loss");
    choose_trials(d);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        struct telling t = { d, i };
        rc = take_usual(d, i);
        if (rc == 0)
            rc = store_series(d->v->store, d->trials[i]->row.id, take_value, &t, d->e);
    }
    if (rc == 0)
        rc = take_ways(d, "running");
    if (rc == 0)
        rc = take_ways(d, "paused");
    return rc == 0 && (d->charts.failed || d->titles.failed) ? -ENOMEM : rc;
}

/* --- drawing --- */

static bool is_of_metric(const struct drawn *d, size_t chart)
{
    const char *metric = d->v->metric;
    return strcasecmp(d->charts.v[chart], metric) == 0 ||
           (chart == ACCURACY && strcasecmp(metric, "Top1Accuracy") == 0);
}

static bool put_chart(struct buf *b, const struct drawn *d, size_t chart)
{
    AUTO_FREE struct svg_line *lines = calloc(d->n + d->n_ways + 1, sizeof *lines);
    AUTO_FREE double *xy = calloc(2 * d->n_points + 1, sizeof *xy);
    size_t n = 0, at = 0;
    b->failed |= !lines || !xy;
    for (size_t i = 0; !b->failed && i < d->n_pieces; i++) {
        const struct piece *p = &d->pieces[i];
        if (p->chart != chart)
            continue;
        bool best = d->trials[p->trial]->row.number == d->v->totals.best_trial;
        lines[n++] = (struct svg_line){ d->titles.v[p->trial], xy + at, xy + at + p->n, p->n, best, NULL, NULL };
        for (size_t k = 0; k < p->n; k++) {
            xy[at + k] = d->points[p->from + k].x;
            xy[at + p->n + k] = d->points[p->from + k].y;
        }
        at += 2 * p->n;
    }
    for (size_t i = 0; !b->failed && n > 0 && is_of_metric(d, chart) && i < d->n_ways; i++) {
        const struct way *w = &d->ways[i];
        lines[n++] = (struct svg_line){ w->title, w->x, w->y, w->n, false, w->low, w->high };
    }
    AUTO_BUF struct buf svg = BUF_INIT;
    if (b->failed || !svg_chart(&svg, "epoch", d->charts.v[chart], lines, n))
        return false;
    buf_puts(b, "<h2>");
    svg_escape(b, chart == ACCURACY ? "Accuracy" : chart == LOSS ? "Loss" : d->charts.v[chart]);
    buf_puts(b, " per epoch</h2>\n<div class=\"wide\">");
    buf_puts(b, buf_text(&svg));
    buf_puts(b, "</div>\n");
    b->failed |= svg.failed;
    return true;
}

/* What the study is about comes first. */
static size_t first_chart(const struct drawn *d)
{
    for (size_t i = 0; i < d->charts.n; i++)
        if (strcasecmp(d->charts.v[i], d->v->metric) == 0)
            return i;
    return ACCURACY;
}

int charts_put(struct buf *b, struct view *v, struct err *e)
{
    struct drawn d = { .v = v, .e = e };
    int rc = gather(&d);
    b->failed |= rc < 0;
    size_t first = first_chart(&d);
    bool drawn = !b->failed && put_chart(b, &d, first);
    for (size_t i = 0; !b->failed && i < d.charts.n; i++)
        drawn |= i != first && put_chart(b, &d, i);
    if (!drawn)
        buf_puts(b,
                 "<h2>Accuracy per epoch</h2>\n<p><span class=\"none\">absent</span>: no epoch has an accuracy.</p>\n");
    if (d.left_out)
        buf_printf(b, "<p>The first %d trials and the best are drawn; %zu are left out.</p>\n", LINES_MAX, d.left_out);
    if (d.left_charts)
        buf_printf(b, "<p>Figures of more than %d names were told: the others are left out.</p>\n", CHARTS_MAX - USUAL);
    drawn_done(&d);
    return view_explain(rc, e, v->study.name);
}
