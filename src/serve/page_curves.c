#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "serve/page_study.h"
#include "store/series.h"
#include "view/foretold.h"

enum { BEST = 12, FEW = 60, MANY = 400, WAYS_MAX = 6 };

/* --- which trials --- */

bool page_has_metric(const struct view_trial *t)
{
    return isfinite(t->row.metric);
}

bool page_has_epochs(const struct view_trial *t)
{
    return t->done > 0;
}

int page_compare_metric(const struct view *v, const struct view_trial *a, const struct view_trial *b)
{
    double x = a->row.metric, y = b->row.metric;
    if (isfinite(x) != isfinite(y))
        return isfinite(x) ? -1 : 1;
    if (isfinite(x) && x != y)
        return (x > y) == v->study.maximise ? -1 : 1;
    return a->row.number - b->row.number;
}

/* Puts i among the best there are so far, which are in order. */
static void insert_best(struct page_pick *p, const struct view *v, size_t i, size_t most)
{
    size_t at = p->best;
    while (at > 0 && page_compare_metric(v, &v->trials[i], &v->trials[p->v[at - 1]]) < 0)
        at--;
    if (at == most)
        return;
    p->best += p->best < most;
    memmove(p->v + at + 1, p->v + at, (p->best - at - 1) * sizeof *p->v);
    p->v[at] = i;
}

static bool is_best(const struct page_pick *p, size_t i)
{
    for (size_t k = 0; k < p->best; k++)
        if (p->v[k] == i)
            return true;
    return false;
}

int page_pick(struct page_pick *out, const struct view *v, size_t best, size_t most,
              bool (*fit)(const struct view_trial *t))
{
    struct page_pick p = { .v = calloc(most + 1, sizeof *p.v) };
    if (!p.v)
        return -ENOMEM;
    for (size_t i = 0; i < v->n; i++) {
        if (!fit(&v->trials[i]))
            continue;
        p.of++;
        if (page_has_metric(&v->trials[i]))
            insert_best(&p, v, i, best < most ? best : most);
    }
    p.n = p.best;
    for (size_t i = 0; i < v->n && p.n < most; i++)
        if (strcmp(v->trials[i].state, "running") == 0 && fit(&v->trials[i]) && !is_best(&p, i))
            p.v[p.n++] = i;
    size_t every = p.of / (most - p.n + 1) + 1, seen = 0;
    for (size_t i = 0; i < v->n && p.n < most; i++)
        if (strcmp(v->trials[i].state, "running") != 0 && fit(&v->trials[i]) && seen++ % every == 0 && !is_best(&p, i))
            p.v[p.n++] = i;
    *out = p;
    return 0;
}

void page_pick_done(struct page_pick *p)
{
    free(p->v);
    *p = (struct page_pick){ .v = NULL };
}

/* --- their lines --- */

struct curve {
    double *x, *y;
    size_t n, cap;
    char *title;
};

struct curves {
    struct curve *v;
    size_t n;
    struct way {
        double x[OUTLOOK_WAY_MAX], y[OUTLOOK_WAY_MAX], low[OUTLOOK_WAY_MAX], high[OUTLOOK_WAY_MAX];
        size_t n;
        char *title;
    } ways[WAYS_MAX];
    size_t n_ways;
    /* the middle 80 % of those that are drawn, where they are many */
    double *mid_x, *mid_y, *low, *high;
    size_t n_mid;
};

static void curves_done(struct curves *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].x);
        free(c->v[i].y);
        free(c->v[i].title);
    }
    for (size_t i = 0; i < c->n_ways; i++)
        free(c->ways[i].title);
    free(c->mid_x);
    free(c->v);
}

enum figure { METRIC, ACCURACY, LOSS, SECONDS, SERIES };

static enum figure figure_of(const struct view *v, const char *name)
{
    static const struct {
        const char *name;
        enum figure f;
    } rows[] = { { "accuracy", ACCURACY }, { "loss", LOSS }, { "seconds", SECONDS } };
    if (!name || strcmp(name, v->metric) == 0)
        return METRIC;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].f;
    return SERIES;
}

static double value_of(const struct store_epoch *r, enum figure f)
{
    return f == ACCURACY ? r->accuracy : f == LOSS ? r->loss : f == SECONDS ? r->seconds : r->metric;
}

static int reserve(struct curve *c, size_t n)
{
    c->x = calloc(n + 1, sizeof *c->x);
    c->y = calloc(n + 1, sizeof *c->y);
    c->cap = n;
    return c->x && c->y ? 0 : -ENOMEM;
}

struct named {
    struct curve *c;
    const char *name;
};

static int take_value(void *ctx, const struct store_value *r)
{
    struct named *n = ctx;
    if (r->step > 0 || strcasecmp(r->name, n->name) != 0 || n->c->n == n->c->cap)
        return 0;
    n->c->x[n->c->n] = r->epoch;
    n->c->y[n->c->n++] = r->value;
    return 0;
}

static int read_curve(struct curve *c, struct view *v, struct view_trial *t, enum figure f, const char *name,
                      struct err *e)
{
    struct named n = { c, name };
    int rc = view_epochs(v, t, e);
    if (rc == 0)
        rc = reserve(c, f == SERIES ? (size_t)t->row.epochs : t->n_epochs);
    if (rc == 0 && f == SERIES)
        return store_series(v->store, t->row.id, take_value, &n, e);
    for (size_t i = 0; rc == 0 && i < t->n_epochs; i++) {
        c->x[c->n] = t->epochs[i].epoch;
        c->y[c->n++] = value_of(&t->epochs[i], f);
    }
    return rc;
}

static int title_curve(struct curve *c, const struct view *v, const struct view_trial *t)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%d%s, %s: %s", v->study.name, t->row.number,
               t->row.number == v->totals.best_trial ? ", the best" : "", t->state, t->row.hyper ? t->row.hyper : "");
    c->title = buf_take(&b);
    return c->title ? 0 : -ENOMEM;
}

static int add_way(struct curves *c, struct view *v, struct view_trial *t, struct err *e)
{
    struct outlook_step steps[OUTLOOK_WAY_MAX];
    AUTO_BUF struct buf title = BUF_INIT;
    int rc = c->n_ways < WAYS_MAX ? view_forecast(v, t, e) : 0;
    if (rc < 0 || c->n_ways == WAYS_MAX || !t->foretold.epoch)
        return rc;
    int n = outlook_way(v->outlook, &t->row, steps, e);
    if (n <= 0)
        return n;
    struct way *w = &c->ways[c->n_ways];
    buf_printf(&title, "%s/%d ", v->study.name, t->row.number);
    foretold_put(&title, &t->foretold);
    *w = (struct way){ .n = (size_t)n, .title = buf_take(&title) };
    for (int i = 0; i < n; i++) {
        w->x[i] = steps[i].epoch;
        w->y[i] = steps[i].value.median;
        w->low[i] = steps[i].value.low;
        w->high[i] = steps[i].value.high;
    }
    c->n_ways++;
    return w->title ? 0 : -ENOMEM;
}

static int gather(struct curves *c, struct view *v, const struct page_pick *p, enum figure f, const char *name,
                  struct err *e)
{
    int rc = 0;
    c->v = calloc(p->n + 1, sizeof *c->v);
    if (!c->v)
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        struct view_trial *t = &v->trials[p->v[i]];
        c->n = i + 1;
        rc = read_curve(&c->v[i], v, t, f, name, e);
        if (rc == 0)
            rc = title_curve(&c->v[i], v, t);
        if (rc == 0 && f == METRIC && strcmp(t->state, "running") == 0)
            rc = add_way(c, v, t, e);
    }
    return rc;
}

/* --- the middle of many --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int find_middle(struct curves *c)
{
    size_t epochs = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].n > 0 && (size_t)c->v[i].x[c->v[i].n - 1] > epochs)
            epochs = (size_t)c->v[i].x[c->v[i].n - 1];
    AUTO_FREE double *at = calloc(c->n + 1, sizeof *at);
    c->mid_x = calloc(4 * (epochs + 1), sizeof *c->mid_x);
    if (!at || !c->mid_x)
        return -ENOMEM;
    c->mid_y = c->mid_x + epochs + 1;
    c->low = c->mid_y + epochs + 1;
    c->high = c->low + epochs + 1;
    for (size_t epoch = 1; epoch <= epochs; epoch++) {
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++)
            for (size_t k = 0; k < c->v[i].n; k++)
                if ((size_t)c->v[i].x[k] == epoch && isfinite(c->v[i].y[k]))
                    at[n++] = c->v[i].y[k];
        if (n < 5)
            continue;
        qsort(at, n, sizeof *at, by_value);
        c->mid_x[c->n_mid] = (double)epoch;
        c->mid_y[c->n_mid] = at[n / 2];
        c->low[c->n_mid] = at[n / 10];
        c->high[c->n_mid++] = at[n - 1 - n / 10];
    }
    return 0;
}

/* --- the picture --- */

static bool draw(struct buf *b, const struct curves *c, const struct view *v, const struct page_pick *p, const char *y)
{
    AUTO_FREE struct svg_line *lines = calloc(c->n + c->n_ways + 2, sizeof *lines);
    size_t n = 0;
    b->failed |= !lines;
    if (!lines)
        return false;
    bool many = c->n_mid > 0;
    if (many)
        lines[n++] = (struct svg_line){ "half of the trials are below this; 80 % within the band",
                                        c->mid_x,
                                        c->mid_y,
                                        c->n_mid,
                                        false,
                                        c->low,
                                        c->high };
    for (size_t i = 0; i < c->n; i++) {
        const struct view_trial *t = &v->trials[p->v[i]];
        if (many && i >= p->best && strcmp(t->state, "running") != 0)
            continue;
        lines[n++] =
            (struct svg_line){ c->v[i].title, c->v[i].x, c->v[i].y, c->v[i].n, t->row.number == v->totals.best_trial,
                               NULL,          NULL };
    }
    for (size_t i = 0; i < c->n_ways; i++)
        lines[n++] = (struct svg_line){ c->ways[i].title, c->ways[i].x,   c->ways[i].y, c->ways[i].n, false,
                                        c->ways[i].low,   c->ways[i].high };
    buf_puts(b, "<div class=\"wide\">");
    bool drawn = svg_chart(b, "epoch", y, lines, n);
    buf_puts(b, "</div>\n");
    return drawn;
}

static void put_figures(struct buf *b, const struct view *v, const char *figure)
{
    const char *const names[] = { v->metric, "accuracy", "loss", "seconds" };
    buf_puts(b, "<nav class=\"pages\" aria-label=\"figure\">");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (i > 0 && strcmp(names[i], v->metric) == 0)
            continue;
        bool here = figure ? strcmp(figure, names[i]) == 0 : i == 0;
        buf_puts(b, "<a href=\"?figure=");
        http_put_word(b, names[i]);
        buf_printf(b, "\"%s>", here ? " aria-current=\"page\"" : "");
        svg_escape(b, names[i]);
        buf_puts(b, "</a>");
    }
    buf_puts(b, "<form method=\"get\"><label>another <input name=\"figure\" size=\"12\" maxlength=\"80\"></label> "
                "<button>draw</button></form></nav>\n");
}

int page_put_curves(struct buf *b, struct view *v, const char *figure, struct err *e)
{
    struct page_pick p = { .v = NULL };
    struct curves c = { .n = 0 };
    enum figure f = figure_of(v, figure);
    const char *name = figure ? figure : v->metric;
    int rc = page_pick(&p, v, BEST, MANY, page_has_epochs);
    if (rc == 0)
        rc = gather(&c, v, &p, f, name, e);
    if (rc == 0 && c.n > FEW)
        rc = find_middle(&c);
    if (rc == 0) {
        put_figures(b, v, figure);
        if (!draw(b, &c, v, &p, name)) {
            buf_puts(b, "<p><span class=\"absent\">absent</span>: no epoch has told ");
            svg_escape(b, name);
            buf_puts(b, ".</p>\n");
        } else if (c.n_mid > 0) {
            buf_printf(
                b,
                "<p class=\"dim\">The best %zu trials and those that run; the band holds the middle 80 %% of %zu of "
                "%zu trials.</p>\n",
                p.best, p.n, p.of);
        }
    }
    curves_done(&c);
    page_pick_done(&p);
    return view_explain(rc, e, v->study.name);
}
