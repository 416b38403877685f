#include "serve/page_study.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/since.h"
#include "view/energy_figure.h"
#include "view/heats.h"
#include "view/now.h"

enum { PER_PAGE = 100, STORY = 40, RUNNING_MAX = 32 };

/* --- what it is --- */

static void put_facts(struct page *p, struct buf *b, const struct view *v)
{
    const struct store_summary *t = &v->totals;
    buf_puts(b, "<dl class=\"facts\">\n<div><dt>state</dt><dd>");
    page_put_state(b, v->state);
    buf_puts(b, "</dd></div>\n<div><dt>best trial</dt><dd>");
    if (t->best_trial)
        page_put_trial(b, v->study.name, t->best_trial);
    else
        page_put_number(b, NAN);
    buf_puts(b, "</dd></div>\n");
    const struct view_trial *best = view_trial(v, t->best_trial);
    page_put_fact_number(b, v->metric, best ? best->row.metric : (double)NAN);
    buf_printf(b,
               "<div><dt>trials</dt><dd>%d: %d finished, %d failed, %d stopped, %d paused</dd></div>\n"
               "<div><dt>time of trials</dt><dd>",
               t->trials, t->done, t->failed, t->stopped, t->paused);
    page_put_seconds(b, t->seconds);
    buf_puts(b, "</dd></div>\n<div><dt>energy</dt><dd>");
    AUTO_BUF struct buf figure = BUF_INIT;
    energy_figure_put(&figure, &v->energy_of);
    svg_escape(b, buf_text(&figure));
    buf_puts(b, "</dd></div>\n<div><dt>begun</dt><dd>");
    page_put_time(b, t->created_ms);
    buf_puts(b, "</dd></div>\n</dl>\n");
    if (t->failed > 0)
        page_put_form(p, b, "retry", v->study.name, "Try failed trials again");
    if (v->driver > 0)
        page_put_form(p, b, "stop", v->study.name, "Stop it");
}

/* --- what runs --- */

/* What its log has told since the last epoch. */
static void put_now(struct buf *b, const struct view *v, const struct view_trial *t)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct now now;
    struct err e;
    if (now_of(v, t, &now, &e) < 0 || !now.runs)
        return; /* it is not known */
    now_put(&text, &t->row, &now);
    svg_escape(b, buf_text(&text));
    b->failed |= text.failed;
}

static void put_running_row(struct buf *b, const struct view *v, const struct view_trial *t)
{
    const struct store_attempt *a = &t->under_way;
    buf_puts(b, "<tr><td>");
    page_put_trial(b, v->study.name, t->row.number);
    buf_printf(b, "</td><td><progress max=\"%d\" value=\"%d\"></progress> %d of %d</td>",
               t->row.epochs > 0 ? t->row.epochs : 1, t->done, t->done, t->row.epochs);
    page_put_cell_number(b, t->row.metric);
    page_put_cell_number(b, a->state && a->cores > 0 ? a->cores : (double)NAN);
    buf_puts(b, "<td>");
    svg_escape(b, a->place ? a->place : "this machine, or a cluster");
    buf_puts(b, "</td><td>");
    page_put_members(b, a->setting ? a->setting : t->row.effective);
    buf_puts(b, "</td><td class=\"n\">");
    page_put_seconds(b, t->seconds);
    buf_puts(b, "</td><td>");
    page_put_members(b, t->row.hyper);
    buf_puts(b, "</td><td>");
    put_now(b, v, t);
    buf_puts(b, "</td></tr>\n");
}

static void put_running(struct buf *b, const struct view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (strcmp(v->trials[i].state, "running") != 0 || n++ >= RUNNING_MAX)
            continue;
        if (n == 1)
            buf_puts(b, "<div class=\"wide\"><table><thead><tr><th>trial</th><th>epoch</th><th class=\"n\">metric</th>"
                        "<th class=\"n\">CPUs</th><th>where</th><th>setting</th><th class=\"n\">time</th>"
                        "<th>hyperparameters</th><th>now</th></tr></thead><tbody>\n");
        put_running_row(b, v, &v->trials[i]);
    }
    if (n > 0)
        buf_puts(b, "</tbody></table></div>\n");
    else
        buf_puts(b, "<p class=\"dim\">Nothing runs.</p>\n");
    if (n > RUNNING_MAX)
        buf_printf(b, "<p class=\"dim\">%zu more run.</p>\n", n - RUNNING_MAX);
}

/* --- all trials, a page at a time --- */

struct sorted {
    const struct view *v;
    const struct view_trial **t; /* owned */
    size_t n;
};

static int by_metric(const void *a, const void *b, void *ctx)
{
    return page_compare_metric(ctx, *(const struct view_trial *const *)a, *(const struct view_trial *const *)b);
}

static int by_seconds(const void *a, const void *b, void *ctx)
{
    const struct view_trial *x = *(const struct view_trial *const *)a, *y = *(const struct view_trial *const *)b;
    (void)ctx;
    if (isfinite(x->seconds) != isfinite(y->seconds))
        return isfinite(x->seconds) ? -1 : 1;
    if (isfinite(x->seconds) && x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return x->row.number - y->row.number;
}

static int by_number(const void *a, const void *b, void *ctx)
{
    const struct view_trial *x = *(const struct view_trial *const *)a, *y = *(const struct view_trial *const *)b;
    (void)ctx;
    return y->row.number - x->row.number;
}

static const struct order {
    const char *name, *text;
    int (*compare)(const void *a, const void *b, void *ctx);
} orders[] = {
    { "metric", "the best first", by_metric },
    { "number", "the newest first", by_number },
    { "time", "the longest first", by_seconds },
};

static const struct order *order_of(const struct http_request *q)
{
    const char *name = http_pairs_get(&q->query, "sort");
    for (size_t i = 0; name && i < ARRAY_LEN(orders); i++)
        if (strcmp(orders[i].name, name) == 0)
            return &orders[i];
    return &orders[0];
}

static int sort_trials(struct sorted *out, const struct view *v, const struct order *o, const char *state)
{
    *out = (struct sorted){ v, calloc(v->n + 1, sizeof(struct view_trial *)), 0 };
    if (!out->t)
        return -ENOMEM;
    for (size_t i = 0; i < v->n; i++)
        if (!state || strcmp(v->trials[i].state, state) == 0)
            out->t[out->n++] = &v->trials[i];
    if (out->n > 0)
        qsort_r(out->t, out->n, sizeof *out->t, o->compare, (void *)(uintptr_t)v);
    return 0;
}

static void put_trial_row(struct buf *b, const struct view *v, const struct view_trial *t)
{
    struct ledger_figure f = energy_figure_absent;
    struct err e;
    (void)view_trial_energy(v, t, &f, &e); /* without memory for it, it is absent */
    buf_puts(b, "<tr><td><input type=\"checkbox\" name=\"t\" value=\"");
    svg_escape(b, v->study.name);
    buf_printf(b, "/%d\" aria-label=\"compare trial %d\"></td>", t->row.number, t->row.number);
    page_put_cell_number(b, t->row.metric);
    buf_printf(b, "<td data-v=\"%d\">", t->row.number);
    page_put_trial(b, v->study.name, t->row.number);
    buf_puts(b, "</td><td>");
    page_put_state(b, t->state);
    buf_printf(b, "</td><td class=\"n\" data-v=\"%d\">%d of %d</td>", t->done, t->done, t->row.epochs);
    page_put_cell_number(b, t->seconds);
    page_put_cell_number(b, f.j);
    buf_puts(b, "<td class=\"words\">");
    page_put_members(b, t->row.hyper);
    buf_puts(b, "</td><td>");
    page_put_members(b, t->row.effective ? t->row.effective : t->row.requested);
    buf_puts(b, "</td><td>");
    svg_escape(b, t->row.reason ? t->row.reason : "");
    buf_puts(b, "</td></tr>\n");
}

static void put_link(struct buf *b, const char *sort, const char *state, size_t page, const char *text, bool here)
{
    buf_printf(b, "<a href=\"?sort=%s&amp;page=%zu", sort, page);
    if (state) {
        buf_puts(b, "&amp;state=");
        http_put_word(b, state);
    }
    buf_printf(b, "#trials\"%s>%s</a>", here ? " aria-current=\"page\"" : "", text);
}

static void put_ways(struct buf *b, const struct order *o, const char *state, size_t page, size_t pages)
{
    static const char *const states[] = {
        "running", "finished", "failed", "infeasible", "paused", "stopped", "waiting"
    };
    char text[64];
    buf_puts(b, "<nav class=\"pages\" aria-label=\"order\">");
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        put_link(b, orders[i].name, state, 1, orders[i].text, &orders[i] == o);
    buf_puts(b, "</nav>\n<nav class=\"pages\" aria-label=\"state\">");
    put_link(b, o->name, NULL, 1, "all", !state);
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        put_link(b, o->name, states[i], 1, states[i], state && strcmp(state, states[i]) == 0);
    buf_puts(b, "</nav>\n");
    if (pages < 2)
        return;
    buf_puts(b, "<nav class=\"pages\" aria-label=\"page\">");
    if (page > 1)
        put_link(b, o->name, state, page - 1, "before", false);
    (void)snprintf(text, sizeof text, "page %zu of %zu", page, pages);
    put_link(b, o->name, state, page, text, true);
    if (page < pages)
        put_link(b, o->name, state, page + 1, "next", false);
    buf_puts(b, "</nav>\n");
}

static int put_trials(struct buf *b, const struct view *v, const struct http_request *q, struct err *e)
{
    const struct order *o = order_of(q);
    const char *state = http_pairs_get(&q->query, "state");
    struct sorted s;
    int rc = sort_trials(&s, v, o, state && *state ? state : NULL);
    if (rc < 0)
        return err_sys(e, rc, "study '%s'", v->study.name);
    size_t pages = (s.n + PER_PAGE - 1) / PER_PAGE, page = (size_t)http_pairs_number(&q->query, "page", 1, 1000000, 1);
    page = pages > 0 && page > pages ? pages : page;
    put_ways(b, o, state && *state ? state : NULL, page, pages);
    buf_puts(b, "<form method=\"get\" action=\"/compare\"><div class=\"wide\"><table data-sort><thead><tr><th></th>"
                "<th class=\"n\">");
    svg_escape(b, v->metric);
    buf_puts(b,
             "</th><th>trial</th><th>state</th><th class=\"n\">epochs</th><th class=\"n\">seconds</th>"
             "<th class=\"n\">joules</th><th>hyperparameters</th><th>setting</th><th>why</th></tr></thead><tbody>\n");
    for (size_t i = (page - 1) * PER_PAGE; i < s.n && i < page * PER_PAGE; i++)
        put_trial_row(b, v, s.t[i]);
    buf_puts(b, "</tbody></table></div><button>Compare those that are marked</button></form>\n");
    free(s.t);
    return 0;
}

/* --- the story --- */

struct telling {
    struct buf *b;
    const struct view *v;
};

static int put_decision(void *ctx, const struct store_decision *d)
{
    const struct telling *s = ctx;
    buf_puts(s->b, "<li><time>");
    page_put_seconds(s->b, d->t_s);
    buf_puts(s->b, "</time> ");
    if (d->trial) {
        page_put_trial(s->b, s->v->study.name, d->trial);
        buf_putc(s->b, ' ');
    }
    svg_escape(s->b, d->kind);
    if (d->setting) {
        buf_puts(s->b, " (");
        page_put_members(s->b, d->setting);
        buf_putc(s->b, ')');
    }
    if (d->reason) {
        buf_puts(s->b, ": ");
        svg_escape(s->b, d->reason);
    }
    buf_puts(s->b, "</li>\n");
    return 0;
}

static int put_story(struct buf *b, const struct view *v, const struct http_request *q, struct err *e)
{
    struct telling s = { b, v };
    int64_t attempt, newest;
    int rc = store_newest(v->store, v->study.id, &attempt, &newest, e);
    if (rc < 0)
        return rc;
    long until = http_pairs_number(&q->query, "until", 1, INT32_MAX, (long)newest);
    int64_t from = until > STORY ? until - STORY : 0;
    buf_puts(b, "<ol class=\"story plain\">\n");
    rc = store_decisions_after(v->store, v->study.id, from, (int)(until - from), put_decision, &s, e);
    buf_puts(b, "</ol>\n<nav class=\"pages\" aria-label=\"story\">");
    if (from > 0)
        buf_printf(b, "<a href=\"?until=%lld#story\">earlier</a>", (long long)from);
    if (until < newest)
        buf_puts(b, "<a href=\"?#story\">the newest</a>");
    buf_puts(b, "</nav>\n");
    return rc;
}

/* --- energy --- */

static int put_node(struct buf *b, const struct view *v, int node, const struct meter_ops *meter)
{
    const struct energy_load *l = &v->energy;
    struct ledger_node f;
    char source[64];
    int rc = ledger_of_node(l->ledger, node, meter, l->study.from_ms, l->study.to_ms, &f);
    if (rc < 0)
        return rc;
    buf_puts(b, "<tr><td>");
    svg_escape(b, energy_load_node(l, node));
    buf_puts(b, "</td><td>");
    svg_escape(b, energy_figure_source(&f.total, source));
    buf_puts(b, "</td>");
    const double cells[] = { f.total.j, f.total.error_j, f.idle_j, f.trials_j, f.other_j, 100 * f.total.coverage };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        page_put_cell_number(b, cells[i]);
    buf_puts(b, "</tr>\n");
    return 0;
}

static int put_nodes(struct buf *b, const struct view *v)
{
    const struct energy_load *l = &v->energy;
    int rc = 0;
    buf_puts(b, "<div class=\"wide\"><table><thead><tr><th>node</th><th>source</th><th class=\"n\">joules</th>"
                "<th class=\"n\">±</th><th class=\"n\">idle</th><th class=\"n\">trials</th><th class=\"n\">other</th>"
                "<th class=\"n\">covered, %</th></tr></thead><tbody>\n");
    for (int node = 0; node < ledger_nodes(l->ledger); node++)
        for (size_t i = 0; rc == 0 && i < l->n_meters; i++)
            if (ledger_has(l->ledger, node, l->meters[i]))
                rc = put_node(b, v, node, l->meters[i]);
    buf_puts(b, "</tbody></table></div>\n");
    return rc;
}

static int put_energy(struct buf *b, const struct view *v, struct err *e)
{
    AUTO_BUF struct buf figure = BUF_INIT;
    if (v->energy.n_meters == 0) {
        buf_puts(b, "<p><span class=\"absent\">absent</span>: no meter was read.</p>\n");
        return 0;
    }
    energy_figure_put(&figure, &v->energy_of);
    buf_puts(b, "<p>All trials: ");
    svg_escape(b, buf_text(&figure));
    buf_puts(b, ". What each took stands in the table of trials; by epochs it is in <a href=\"/api/energy/");
    http_put_word(b, v->study.name);
    buf_puts(b, "\">the JSON</a>.</p>\n");
    return put_nodes(b, v) < 0 ? err_sys(e, -ENOMEM, "study '%s'", v->study.name) : 0;
}

/* --- the page --- */

struct asked {
    struct page *p;
    struct view *v;
    const struct http_request *q;
};

static int part_facts(struct buf *b, const struct asked *a, struct err *e)
{
    (void)e;
    put_facts(a->p, b, a->v);
    return 0;
}

static int part_running(struct buf *b, const struct asked *a, struct err *e)
{
    (void)e;
    put_running(b, a->v);
    return 0;
}

static int part_curves(struct buf *b, const struct asked *a, struct err *e)
{
    const char *figure = http_pairs_get(&a->q->query, "figure");
    return page_put_curves(b, a->v, figure && *figure ? figure : NULL, e);
}

static int part_lanes(struct buf *b, const struct asked *a, struct err *e)
{
    return page_put_lanes(b, a->v, e);
}

static int part_points(struct buf *b, const struct asked *a, struct err *e)
{
    return page_put_points(b, a->v, e);
}

static int part_energy(struct buf *b, const struct asked *a, struct err *e)
{
    return put_energy(b, a->v, e);
}

static int part_trials(struct buf *b, const struct asked *a, struct err *e)
{
    return put_trials(b, a->v, a->q, e);
}

static int part_story(struct buf *b, const struct asked *a, struct err *e)
{
    return put_story(b, a->v, a->q, e);
}

static const struct part {
    const char *id, *title;
    enum page_pace pace;
    int (*put)(struct buf *b, const struct asked *a, struct err *e);
} parts[] = {
    { "facts", NULL, PAGE_QUICK, part_facts },
    { "running", "What runs", PAGE_QUICK, part_running },
    { "curves", "Over epochs", PAGE_SLOW, part_curves },
    { "lanes", "Settings over time", PAGE_SLOW, part_lanes },
    { "points", "Hyperparameters", PAGE_SLOW, part_points },
    { "energy", "Energy", PAGE_SLOW, part_energy },
    { "trials", "Trials", PAGE_SLOW, part_trials },
    { "story", "What was decided, and why", PAGE_SLOW, part_story },
};

static int put_parts(struct buf *b, const struct asked *a, struct err *e)
{
    int rc = view_energy(a->v, e);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(parts); i++) {
        if (!page_begin_part(b, a->q, parts[i].id, parts[i].title, parts[i].pace))
            continue;
        rc = parts[i].put(b, a, e);
        page_end_part(b);
    }
    return rc;
}

void page_study(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct buf *b = &out->body;
    const char *name = q->path.words[1];
    struct view *v;
    struct err e = { 0 };
    page_head(p, b, q, &(struct page_about){ .title = name, .study = name });
    int rc = page_view(p, name, &v, &e);
    if (rc == 0) {
        buf_puts(b, "<h1>");
        svg_escape(b, name);
        buf_puts(b, "</h1>\n");
        rc = put_parts(b, &(struct asked){ p, v, q }, &e);
    }
    page_foot(b);
    if (rc < 0)
        page_fail(out, view_explain(rc, &e, name), &e);
}

/* --- what was counted, on a page of its own: samples are many --- */

static void put_map(struct buf *b, const char *title, const struct heats_map *m)
{
    AUTO_BUF struct buf svg = BUF_INIT;
    buf_puts(b, "<h2>");
    svg_escape(b, title);
    buf_puts(b, "</h2>\n");
    if (m->map.cells && svg_heat(&svg, &m->map, (const char *const *)m->cols.v)) {
        buf_puts(b, "<div class=\"wide\">");
        buf_put(b, svg.data, svg.len);
        buf_puts(
            b,
            "</div>\n<p class=\"dim\">Each row is darkest where it is greatest; hatched: not measured. Point at a cell "
            "for its rate.</p>\n");
    } else {
        buf_puts(b, "<p><span class=\"absent\">absent</span>: nothing was sampled.</p>\n");
    }
    b->failed |= svg.failed;
}

void page_heat(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct buf *b = &out->body;
    const char *name = q->path.words[1];
    struct heats h = { .unread = "" };
    struct view *v;
    struct err e = { 0 };
    page_head(p, b, q, &(struct page_about){ .title = name, .study = name, .still = true });
    int rc = page_view(p, name, &v, &e);
    if (rc == 0)
        rc = heats_load(&h, v, &e);
    if (rc == 0) {
        buf_puts(
            b,
            "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" "
            "height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"grid\" d=\"M0 6L6 "
            "0\"/></pattern></defs></svg>\n<h1>");
        page_put_study(b, name);
        buf_puts(b, ": what was counted</h1>\n");
        put_map(b, "The best trial, by its start-up and epochs", &h.best);
        put_map(b, "By class of jobs", &h.by_class);
    }
    heats_done(&h);
    page_foot(b);
    if (rc < 0)
        page_fail(out, view_explain(rc, &e, name), &e);
}
