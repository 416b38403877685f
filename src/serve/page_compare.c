/* Trials of any studies beside each other: what differs first. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/strv.h"
#include "serve/page_study.h"
#include "serve/plot.h"

enum { COMPARED_MAX = 16, KEYS_MAX = 200 };

enum at { AT_LAST, AT_BEST, AT_EPOCH };

/* What is known of one trial, out of a view that may make room for another's. */
struct compared {
    char *study, *name; /* "demo/3" */
    struct strv keys, values;
    double *x, *y;
    size_t n;
    char *metric;
    double figures[4]; /* metric, accuracy, loss, seconds at the epoch that was asked for */
    int epoch;
    bool maximise;
};

struct comparing {
    struct page *p;
    struct compared v[COMPARED_MAX];
    size_t n;
    enum at at;
    int epoch;
    struct strv why; /* what could not be had */
};

static void compared_done(struct compared *c)
{
    free(c->study);
    free(c->name);
    free(c->metric);
    free(c->x);
    strv_done(&c->keys);
    strv_done(&c->values);
}

static void add_fact(struct compared *c, const char *key, const char *value)
{
    strv_add(&c->keys, key);
    strv_add(&c->values, value ? value : "");
}

static void add_members(struct compared *c, const char *prefix, const char *text)
{
    AUTO_JSON json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    const char *key;
    json_t *value;
    json_object_foreach(j, key, value)
    {
        AUTO_FREE char *shown = json_is_string(value) ? strdup(json_string_value(value)) : json_text(value);
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s%s", prefix, key);
        if (c->keys.n < KEYS_MAX)
            add_fact(c, buf_text(&name), shown);
    }
}

/* Of the config, what is a word or a number. */
static void add_config(struct compared *c, const json_t *j, const char *prefix, int deep)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)j, key, value)
    {
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s%s", prefix, key);
        if (json_is_object(value) && deep > 0) {
            buf_putc(&name, '.');
            add_config(c, value, buf_text(&name), deep - 1);
        } else if (!json_is_object(value) && c->keys.n < KEYS_MAX) {
            AUTO_FREE char *shown = json_is_string(value) ? strdup(json_string_value(value)) : json_text(value);
            if (shown && strlen(shown) < 200)
                add_fact(c, buf_text(&name), shown);
        }
    }
}

static void add_facts(struct compared *c, const struct view *v, const struct view_trial *t)
{
    add_fact(c, "state", t->state);
    add_members(c, "", t->row.hyper);
    add_members(c, "setting ", t->row.effective ? t->row.effective : t->row.requested);
    add_fact(c, "why", t->row.reason);
    add_config(c, v->config, "config ", 1);
    static const char *const of[] = { "version", "commit", "host", "kernel", "java", "spark", "python" };
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        const char *text = json_string_value(json_object_get(v->provenance, of[i]));
        if (text)
            add_fact(c, of[i], text);
    }
}

static int index_of(const struct comparing *l, const struct compared *c, const struct view_trial *t)
{
    int at = -1;
    for (size_t i = 0; i < t->n_epochs; i++) {
        double y = t->epochs[i].metric, best = at >= 0 ? t->epochs[at].metric : (double)NAN;
        bool better = isfinite(y) && (!isfinite(best) || (y > best) == c->maximise);
        if (l->at == AT_LAST || (l->at == AT_EPOCH && t->epochs[i].epoch == l->epoch) ||
            (l->at == AT_BEST && (at < 0 || (better && y != best))))
            at = (int)i;
    }
    return at;
}

static int add_curve(const struct comparing *l, struct compared *c, const struct view_trial *t)
{
    c->x = calloc(2 * t->n_epochs + 1, sizeof *c->x);
    if (!c->x)
        return -ENOMEM;
    c->y = c->x + t->n_epochs;
    c->n = t->n_epochs;
    for (size_t i = 0; i < t->n_epochs; i++) {
        c->x[i] = t->epochs[i].epoch;
        c->y[i] = t->epochs[i].metric;
    }
    int at = index_of(l, c, t);
    for (size_t i = 0; i < ARRAY_LEN(c->figures); i++)
        c->figures[i] = NAN;
    if (at < 0)
        return 0;
    const struct store_epoch *e = &t->epochs[at];
    c->epoch = e->epoch;
    c->figures[0] = e->metric;
    c->figures[1] = e->accuracy;
    c->figures[2] = e->loss;
    c->figures[3] = e->seconds;
    return 0;
}

static int take(struct comparing *l, struct compared *c, struct view *v, int number, struct err *e)
{
    struct view_trial *t = view_trial(v, number);
    if (!t)
        return err_set(e, -EINVAL, "there is no trial %s/%d", v->study.name, number);
    int rc = view_epochs(v, t, e);
    if (rc < 0)
        return rc;
    c->metric = strdup(v->metric);
    c->maximise = v->study.maximise;
    add_facts(c, v, t);
    rc = add_curve(l, c, t);
    return rc < 0 || !c->metric || c->keys.failed || c->values.failed ? -ENOMEM : 0;
}

static int add(struct comparing *l, const char *word, struct err *e)
{
    const char *slash = strrchr(word, '/');
    char *end = NULL;
    long number = slash ? strtol(slash + 1, &end, 10) : 0;
    struct view *v;
    if (!slash || slash == word || *end || number < 1 || number > INT32_MAX)
        return err_set(e, -EINVAL, "'%s' is no trial: say STUDY/N, as in demo/2", word);
    struct compared *c = &l->v[l->n++];
    *c = (struct compared){ .study = strndup(word, (size_t)(slash - word)), .name = strdup(word) };
    int rc = c->study && c->name ? page_view(l->p, c->study, &v, e) : -ENOMEM;
    return rc == 0 ? take(l, c, v, (int)number, e) : rc;
}

static void forget_last(struct comparing *l)
{
    compared_done(&l->v[--l->n]);
}

/* All of "t=a/1&t=a/2", and of "t=a/1 a/2". */
static int add_all(struct comparing *l, const struct http_request *q, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < q->query.n; i++) {
        if (strcmp(q->query.v[i].name, "t") != 0)
            continue;
        for (const char *at = q->query.v[i].value; rc == 0 && *at;) {
            at += strspn(at, " ,");
            size_t len = strcspn(at, " ,"), before = l->n;
            AUTO_FREE char *word = strndup(at, len);
            rc = !word ? -ENOMEM : len && l->n < COMPARED_MAX ? add(l, word, e) : 0;
            if (rc == -EINVAL) {
                strv_add(&l->why, e->text);
                if (l->n > before)
                    forget_last(l);
                rc = 0;
            }
            at += len;
        }
    }
    return rc;
}

/* --- the table --- */

static const char *value_of(const struct compared *c, const char *key)
{
    for (size_t i = 0; i < c->keys.n; i++)
        if (strcmp(c->keys.v[i], key) == 0)
            return c->values.v[i];
    return NULL;
}

static bool differs(const struct comparing *l, const char *key)
{
    const char *first = value_of(&l->v[0], key);
    for (size_t i = 1; i < l->n; i++) {
        const char *other = value_of(&l->v[i], key);
        if (!first != !other || (first && strcmp(first, other) != 0))
            return true;
    }
    return false;
}

static void put_row(struct buf *b, const struct comparing *l, const char *key, bool same)
{
    buf_printf(b, "<tr%s><th>", same ? " class=\"same\"" : "");
    svg_escape(b, key);
    buf_puts(b, "</th>");
    for (size_t i = 0; i < l->n; i++) {
        const char *value = value_of(&l->v[i], key);
        buf_puts(b, "<td>");
        if (value)
            svg_escape(b, value);
        else
            page_put_number(b, NAN);
        buf_puts(b, "</td>");
    }
    buf_puts(b, "</tr>\n");
}

static void gather_keys(const struct comparing *l, struct strv *out)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->v[i].keys.n; k++) {
            size_t at = 0;
            while (at < out->n && strcmp(out->v[at], l->v[i].keys.v[k]) != 0)
                at++;
            if (at == out->n)
                strv_add(out, l->v[i].keys.v[k]);
        }
}

static void put_figures(struct buf *b, const struct comparing *l)
{
    const char *const names[] = { l->v[0].metric, "accuracy", "loss", "seconds of the epoch" };
    buf_puts(b, "<tr><th>epoch</th>");
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].epoch)
            buf_printf(b, "<td class=\"n\">%d</td>", l->v[i].epoch);
        else
            page_put_cell_number(b, NAN);
    buf_puts(b, "</tr>\n");
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        if (k > 0 && strcmp(names[k], names[0]) == 0)
            continue;
        buf_puts(b, "<tr><th>");
        svg_escape(b, k == 0 ? "metric" : names[k]);
        buf_puts(b, "</th>");
        for (size_t i = 0; i < l->n; i++)
            page_put_cell_number(b, l->v[i].figures[k]);
        buf_puts(b, "</tr>\n");
    }
}

static void put_table(struct buf *b, const struct comparing *l, bool all)
{
    AUTO_STRV struct strv keys = STRV_INIT;
    size_t same = 0;
    gather_keys(l, &keys);
    b->failed |= keys.failed;
    buf_puts(b, "<div class=\"wide\"><table><thead><tr><th></th>");
    for (size_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->v[i].name, '/');
        buf_puts(b, "<th>");
        page_put_trial(b, l->v[i].study, (int)strtol(slash + 1, NULL, 10));
        buf_puts(b, "</th>");
    }
    buf_puts(b, "</tr></thead><tbody>\n");
    put_figures(b, l);
    for (size_t i = 0; i < keys.n; i++)
        if (differs(l, keys.v[i]))
            put_row(b, l, keys.v[i], false);
        else
            same++;
    for (size_t i = 0; all && i < keys.n; i++)
        if (!differs(l, keys.v[i]))
            put_row(b, l, keys.v[i], true);
    buf_puts(b, "</tbody></table></div>\n");
    if (!all && same > 0)
        buf_printf(b, "<p class=\"dim\">%zu more are the same in all: mark \"what is the same, too\".</p>\n", same);
}

static void put_curves(struct buf *b, const struct comparing *l)
{
    struct plot_line lines[COMPARED_MAX];
    for (size_t i = 0; i < l->n; i++)
        lines[i] = (struct plot_line){ l->v[i].name, l->v[i].x, l->v[i].y, l->v[i].n };
    (void)plot_lines(b, "epoch", l->v[0].metric, lines, l->n); /* without epochs there is nothing to draw */
}

/* --- the page --- */

static void put_form(struct buf *b, const struct comparing *l, bool all)
{
    static const char *const ats[] = { [AT_LAST] = "last", [AT_BEST] = "best", [AT_EPOCH] = "epoch" };
    buf_puts(
        b,
        "<form method=\"get\"><p><label>trials <input name=\"t\" size=\"50\" placeholder=\"demo/1 demo/2\" value=\"");
    for (size_t i = 0; i < l->n; i++) {
        buf_puts(b, i ? " " : "");
        svg_escape(b, l->v[i].name);
    }
    buf_puts(b, "\"></label> <label>figures at the <select name=\"at\">");
    for (size_t i = 0; i < ARRAY_LEN(ats); i++)
        buf_printf(b, "<option%s>%s</option>", l->at == i ? " selected" : "", ats[i]);
    buf_printf(b, "</select></label> <label>epoch <input name=\"epoch\" size=\"5\" inputmode=\"numeric\" value=\"");
    if (l->epoch)
        buf_printf(b, "%d", l->epoch);
    buf_printf(b,
               "\"></label> <label><input type=\"checkbox\" name=\"all\" value=\"1\"%s> what is the same, too</label> "
               "<button>Compare</button></p></form>\n",
               all ? " checked" : "");
}

void page_compare(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct comparing l = { .p = ctx };
    struct buf *b = &out->body;
    struct err e = { 0 };
    const char *at = http_pairs_get(&q->query, "at");
    bool all = http_pairs_get(&q->query, "all") != NULL;
    l.epoch = (int)http_pairs_number(&q->query, "epoch", 1, INT32_MAX, 0);
    l.at = at && strcmp(at, "best") == 0 ? AT_BEST : at && strcmp(at, "epoch") == 0 && l.epoch ? AT_EPOCH : AT_LAST;
    page_head(ctx, b, q, &(struct page_about){ .title = "Compare" });
    int rc = add_all(&l, q, &e);
    buf_puts(b, "<h1>Compare</h1>\n");
    put_form(b, &l, all);
    for (size_t i = 0; i < l.why.n; i++) {
        buf_puts(b, "<p>");
        svg_escape(b, l.why.v[i]);
        buf_puts(b, "</p>\n");
    }
    (void)page_begin_part(b, q, "compared", NULL, PAGE_SLOW); /* all there is */
    if (rc == 0 && l.n > 0) {
        put_table(b, &l, all);
        put_curves(b, &l);
    } else {
        buf_printf(b, "<p>Name up to %d trials of any studies.</p>\n", COMPARED_MAX);
    }
    page_end_part(b);
    page_foot(b);
    while (l.n > 0)
        forget_last(&l);
    strv_done(&l.why);
    if (rc < 0)
        page_fail(out, view_explain(rc, &e, "compared"), &e);
}
