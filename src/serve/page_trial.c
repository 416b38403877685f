/* A trial: what it is, its figures, its attempts, its log. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/utf8.h"
#include "live/study.h"
#include "serve/page_study.h"
#include "serve/plot.h"
#include "store/samples.h"
#include "store/series.h"
#include "view/foretold.h"

enum { LOG_FIRST = 64 * 1024, LOG_MOST = 512 * 1024, CHARTS_MAX = 24 };

/* --- which one --- */

static int find(struct page *p, const struct http_request *q, struct view **v, struct view_trial **t, struct err *e)
{
    char *end;
    const char *name = q->path.words[1], *word = q->path.words[2];
    long number = strtol(word, &end, 10);
    int rc = page_view(p, name, v, e);
    if (rc < 0)
        return rc;
    *t = *end == '\0' && number >= 1 && number <= INT32_MAX ? view_trial(*v, (int)number) : NULL;
    return *t ? 0 : err_set(e, -EINVAL, "there is no trial %s/%s", name, word);
}

/* --- facts --- */

static void put_part(struct buf *b, const char *name, const char *json)
{
    buf_printf(b, "<div><dt>%s</dt><dd>", name);
    page_put_members(b, json);
    buf_puts(b, "</dd></div>\n");
}

static void put_origin(struct buf *b, const struct view *v, const struct store_trial *t)
{
    if (t->copy_of) {
        buf_puts(b, "<p>Its result is that of ");
        page_put_trial(b, v->study.name, t->copy_of);
        buf_puts(b, ".</p>\n");
    }
    if (t->repeat_of) {
        buf_puts(b, "<p>It trains the point of ");
        page_put_trial(b, v->study.name, t->repeat_of);
        buf_puts(b, " again.</p>\n");
    }
    const char *const lines[][2] = { { "Its point is that of the earlier trial ", t->learnt_from },
                                     { "It does not keep: ", t->violates },
                                     { "Why: ", t->reason } };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (!lines[i][1])
            continue;
        buf_printf(b, "<p>%s", lines[i][0]);
        svg_escape(b, lines[i][1]);
        buf_puts(b, "</p>\n");
    }
}

static int put_facts(struct page *p, struct buf *b, struct view *v, struct view_trial *t, struct err *e)
{
    struct ledger_figure f = energy_figure_absent;
    AUTO_BUF struct buf energy = BUF_INIT, name = BUF_INIT;
    int rc = view_energy(v, e);
    if (rc == 0)
        rc = view_trial_energy(v, t, &f, e);
    if (rc < 0)
        return rc;
    energy_figure_put(&energy, &f);
    buf_puts(b, "<dl class=\"facts\">\n<div><dt>state</dt><dd>");
    page_put_state(b, t->state);
    buf_printf(b, "</dd></div>\n<div><dt>epochs</dt><dd>%d of %d</dd></div>\n", t->done, t->row.epochs);
    page_put_fact_number(b, v->metric, t->row.metric);
    if (strcmp(v->metric, "accuracy") != 0)
        page_put_fact_number(b, "accuracy", t->row.accuracy);
    page_put_fact_number(b, "loss", t->row.loss);
    buf_puts(b, "<div><dt>time</dt><dd>");
    page_put_seconds(b, t->seconds);
    buf_puts(b, "</dd></div>\n");
    page_put_fact(b, "energy", buf_text(&energy));
    put_part(b, "hyperparameters", t->row.hyper);
    put_part(b, "setting asked for", t->row.requested);
    put_part(b, "setting had", t->row.effective);
    buf_puts(b, "</dl>\n");
    put_origin(b, v, &t->row);
    buf_printf(&name, "%s/%d", v->study.name, t->row.number);
    if (strcmp(t->state, "failed") == 0)
        page_put_form(p, b, "retry", buf_text(&name), "Try it again");
    if (v->driver > 0 && strcmp(t->state, "running") == 0)
        page_put_form(p, b, "stop", buf_text(&name), "Stop it");
    return 0;
}

/* A part of its own: it reads the curves of all trials. */
static int put_foretold(struct buf *b, struct view *v, struct view_trial *t, struct err *e)
{
    AUTO_BUF struct buf told = BUF_INIT;
    int rc = view_forecast(v, t, e);
    if (rc < 0)
        return rc;
    foretold_put(&told, &t->foretold);
    if (told.len == 0)
        return 0;
    buf_puts(b, "<p>It is ");
    svg_escape(b, buf_text(&told));
    buf_puts(b, ".</p>\n");
    return 0;
}

/* --- figures over epochs and steps --- */

struct chart {
    char *name;
    bool steps;
    double *x, *y;
    size_t n, cap_x, cap_y;
};

struct charts {
    struct chart v[CHARTS_MAX];
    size_t n, left;
};

static void charts_done(struct charts *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].name);
        free(c->v[i].x);
        free(c->v[i].y);
    }
}

static int add_point(struct chart *c, double x, double y)
{
    double *xs = array_more(c->x, c->n, &c->cap_x, sizeof *xs);
    c->x = xs ? xs : c->x;
    double *ys = xs ? array_more(c->y, c->n, &c->cap_y, sizeof *ys) : NULL;
    if (!ys)
        return -ENOMEM;
    c->y = ys;
    c->x[c->n] = x;
    c->y[c->n++] = y;
    return 0;
}

/* NULL: there is no room for it. */
static struct chart *chart_of(struct charts *c, const char *name, bool steps)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].steps == steps && strcmp(c->v[i].name, name) == 0)
            return &c->v[i];
    if (c->n == CHARTS_MAX) {
        c->left++;
        return NULL;
    }
    c->v[c->n] = (struct chart){ .name = strdup(name), .steps = steps };
    return c->v[c->n].name ? &c->v[c->n++] : NULL;
}

static int add_value(void *ctx, const struct store_value *r)
{
    struct chart *c = chart_of(ctx, r->name, r->step > 0);
    return c ? add_point(c, r->step > 0 ? (double)r->step : r->epoch, r->value) : 0;
}

static int add_epochs(struct charts *c, const struct view_trial *t)
{
    static const char *const names[] = { "accuracy", "loss", "seconds" };
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < ARRAY_LEN(names); k++)
        for (size_t i = 0; rc == 0 && i < t->n_epochs; i++) {
            const struct store_epoch *e = &t->epochs[i];
            double y = k == 0 ? e->accuracy : k == 1 ? e->loss : e->seconds;
            struct chart *to = isfinite(y) ? chart_of(c, names[k], false) : NULL;
            rc = to ? add_point(to, e->epoch, y) : 0;
        }
    return rc;
}

static int put_charts(struct buf *b, const struct view *v, struct view_trial *t, struct err *e)
{
    struct charts c = { .n = 0 };
    bool any = false;
    int rc = view_epochs(v, t, e);
    if (rc == 0)
        rc = store_series(v->store, t->row.id, add_value, &c, e);
    if (rc == 0 && c.n < CHARTS_MAX)
        rc = add_epochs(&c, t);
    for (size_t i = 0; rc == 0 && i < c.n; i++) {
        struct plot_line line = { c.v[i].name, c.v[i].x, c.v[i].y, c.v[i].n };
        AUTO_BUF struct buf svg = BUF_INIT;
        if (!plot_lines(&svg, c.v[i].steps ? "step" : "epoch", c.v[i].name, &line, 1))
            continue;
        any = true;
        buf_printf(b, "<details id=\"chart%zu\"%s><summary>", i, i < 4 ? " open" : "");
        svg_escape(b, c.v[i].name);
        buf_puts(b, c.v[i].steps ? " over steps</summary>\n" : "</summary>\n");
        buf_put(b, svg.data, svg.len);
        buf_puts(b, "</details>\n");
        b->failed |= svg.failed;
    }
    if (rc == 0 && !any)
        buf_puts(b, "<p><span class=\"absent\">absent</span>: no figure was told.</p>\n");
    if (c.left > 0)
        buf_printf(b, "<p class=\"dim\">Figures of more than %d names were told: the others are left out.</p>\n",
                   CHARTS_MAX);
    charts_done(&c);
    return rc;
}

/* --- attempts --- */

struct attempts {
    struct buf *b;
    const struct view *v;
    char *argv; /* of the newest; owned */
    int n;
};

static int put_attempt(void *ctx, const struct store_attempt *a)
{
    struct attempts *l = ctx;
    struct buf *b = l->b;
    if (l->n++ == 0)
        buf_puts(b,
                 "<div class=\"wide\"><table><thead><tr><th class=\"n\">attempt</th><th>state</th><th>began</th>"
                 "<th>ended</th><th class=\"n\">first epoch</th><th class=\"n\">CPUs</th><th>setting</th><th>where</th>"
                 "<th>why</th></tr></thead><tbody>\n");
    buf_printf(b, "<tr><td class=\"n\">%d</td><td>", a->number);
    page_put_state(b, a->outcome ? a->outcome : a->state);
    buf_puts(b, "</td><td>");
    page_put_time(b, a->started_ms);
    buf_puts(b, "</td><td>");
    page_put_time(b, a->ended_ms);
    buf_printf(b, "</td><td class=\"n\">%d</td>", a->first_epoch);
    page_put_cell_number(b, a->cores > 0 ? a->cores : (double)NAN);
    buf_puts(b, "<td>");
    page_put_members(b, a->setting);
    buf_puts(b, "</td><td>");
    svg_escape(b, a->place ? a->place : "this machine, or a cluster");
    buf_puts(b, "</td><td>");
    svg_escape(b, a->cause ? a->cause : "");
    if (a->resumed_from) {
        buf_puts(b, " from ");
        svg_escape(b, a->resumed_from);
    }
    buf_puts(b, "</td></tr>\n");
    free(l->argv);
    l->argv = a->argv ? strdup(a->argv) : NULL;
    return a->argv && !l->argv ? -ENOMEM : 0;
}

/* As a shell would take it. */
static void put_command(struct buf *b, const char *argv)
{
    AUTO_JSON json_t *j = argv ? json_loads(argv, 0, NULL) : NULL;
    AUTO_BUF struct buf line = BUF_INIT;
    size_t i;
    json_t *word;
    json_array_foreach(j, i, word)
    {
        buf_puts(&line, i ? " " : "");
        buf_put_shell(&line, json_string_value(word) ? json_string_value(word) : "");
    }
    if (line.len == 0)
        return;
    buf_puts(b, "<details id=\"command\"><summary>Command of the newest attempt</summary><pre>");
    svg_escape(b, buf_text(&line));
    buf_puts(b, "</pre></details>\n");
}

static int put_attempts(struct buf *b, const struct view *v, const struct view_trial *t, struct err *e)
{
    struct attempts l = { .b = b, .v = v };
    int rc = store_attempts(v->store, t->row.id, put_attempt, &l, e);
    buf_puts(b, l.n ? "</tbody></table></div>\n" : "<p class=\"dim\">It was not started yet.</p>\n");
    put_command(b, l.argv);
    free(l.argv);
    return rc;
}

/* --- checkpoints, profiles --- */

struct rows {
    struct buf *b;
    int n;
};

static int put_checkpoint(void *ctx, const struct store_checkpoint *c)
{
    struct rows *l = ctx;
    buf_printf(l->b, "%s<li>epoch %d: <code>", l->n++ ? "" : "<h3>Checkpoints</h3>\n<ul class=\"plain\">\n", c->epoch);
    svg_escape(l->b, c->path);
    buf_puts(l->b, "</code></li>\n");
    return 0;
}

static int put_profile(void *ctx, const struct store_profile *r)
{
    struct rows *l = ctx;
    if (!r->verdict)
        return 0;
    buf_printf(l->b,
               "%s<li>epoch %d: ", l->n++ ? "" : "<h3>What its profile was recognised as</h3>\n<ul class=\"plain\">\n",
               r->epoch);
    page_put_members(l->b, r->verdict);
    buf_puts(l->b, "</li>\n");
    return 0;
}

static int put_kept(struct buf *b, const struct view *v, const struct view_trial *t, struct err *e)
{
    struct rows checkpoints = { b, 0 }, profiles = { b, 0 };
    int rc = store_checkpoints(v->store, t->row.id, put_checkpoint, &checkpoints, e);
    buf_puts(b, checkpoints.n ? "</ul>\n" : "");
    if (rc == 0)
        rc = store_profiles(v->store, t->row.id, put_profile, &profiles, e);
    buf_puts(b, profiles.n ? "</ul>\n" : "");
    return rc;
}

/* --- the log --- */

struct tail {
    struct buf text;
    int64_t from, size; /* of the file */
};

/* From `from` on, or its end; no more than `most`. -ENOENT: there is none. */
static int read_tail(struct tail *out, const char *path, int64_t from, int64_t most, struct err *e)
{
    struct stat st;
    AUTO_CLOSE int fd = ours_open(path, O_RDONLY, e);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return err_sys(e, -errno, "'%s'", path);
    out->from = from >= 0 && from <= st.st_size && st.st_size - from <= most ? from
                : st.st_size > most                                          ? st.st_size - most
                                                                             : 0;
    char *to = malloc((size_t)(st.st_size - out->from) + 1);
    if (!to)
        return err_sys(e, -ENOMEM, "'%s'", path);
    ssize_t n = lseek(fd, out->from, SEEK_SET) < 0 ? -errno : io_read_some(fd, to, (size_t)(st.st_size - out->from));
    if (n > 0)
        buf_put(&out->text, to, (size_t)n);
    free(to);
    out->size = out->from + (n > 0 ? n : 0);
    return n < 0 ? err_sys(e, (int)n, "'%s'", path) : 0;
}

static char *log_path(const struct page *p, const char *study, int trial)
{
    AUTO_FREE char *dir = study_dir(p->store_path, study);
    char *path = NULL;
    return dir && asprintf(&path, "%s/%d/log", dir, trial) >= 0 ? path : NULL;
}

static void put_log(struct page *p, struct buf *b, const struct view *v, const struct view_trial *t)
{
    AUTO_FREE char *path = log_path(p, v->study.name, t->row.number);
    struct tail tail = { .size = 0 };
    struct err e;
    int rc = path ? read_tail(&tail, path, -1, LOG_FIRST, &e) : -ENOMEM;
    buf_puts(b, "<h2 id=\"log\">Log</h2>\n");
    if (rc < 0 && rc != -ENOENT)
        buf_puts(b, "<p class=\"absent\">The log cannot be read.</p>\n");
    else if (tail.from > 0)
        buf_printf(b, "<p class=\"dim\">Its last %d KiB.</p>\n", LOG_FIRST / 1024);
    buf_puts(b, "<pre tabindex=\"0\" data-log=\"/trial/");
    http_put_word(b, v->study.name);
    buf_printf(b, "/%d/log\" data-size=\"%lld\" aria-label=\"log\">", t->row.number, (long long)tail.size);
    const char *text = buf_text(&tail.text);
    const char *line = tail.from > 0 ? strchr(text, '\n') : NULL; /* the first is not whole */
    svg_escape(b, line ? line + 1 : text);
    buf_puts(b, "</pre>\n");
    b->failed |= tail.text.failed;
    buf_done(&tail.text);
}

void page_trial_log(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct view *v;
    struct view_trial *t;
    struct tail tail = { .size = 0 };
    struct err e = { 0 };
    int64_t from = http_pairs_number(&q->query, "from", 0, LONG_MAX, -1);
    int rc = find(p, q, &v, &t, &e);
    AUTO_FREE char *path = rc == 0 ? log_path(p, v->study.name, t->row.number) : NULL;
    if (rc == 0)
        rc = path ? read_tail(&tail, path, from, LOG_MOST, &e) : err_sys(&e, -ENOMEM, "cannot read the log");
    if (rc == 0) {
        out->type = "text/plain; charset=utf-8";
        utf8_put_plain(&out->body, buf_text(&tail.text), tail.text.len, UTF8_LINES);
        out->body.failed |= tail.text.failed;
        (void)snprintf(out->log_from, sizeof out->log_from, "%lld", (long long)tail.from);
        (void)snprintf(out->log_size, sizeof out->log_size, "%lld", (long long)tail.size);
    } else {
        page_fail(out, rc, &e);
    }
    buf_done(&tail.text);
}

/* --- the page --- */

static int put_parts(struct page *p, struct buf *b, struct view *v, struct view_trial *t, const struct http_request *q,
                     struct err *e)
{
    int rc = 0;
    if (page_begin_part(b, q, "facts", NULL, PAGE_QUICK)) {
        rc = put_facts(p, b, v, t, e);
        page_end_part(b);
    }
    if (rc == 0 && page_begin_part(b, q, "foretold", NULL, PAGE_SLOW)) {
        rc = put_foretold(b, v, t, e);
        page_end_part(b);
    }
    if (rc == 0 && page_begin_part(b, q, "charts", "Figures", PAGE_SLOW)) {
        rc = put_charts(b, v, t, e);
        page_end_part(b);
    }
    if (rc == 0 && page_begin_part(b, q, "attempts", "Attempts", PAGE_SLOW)) {
        rc = put_attempts(b, v, t, e);
        rc = rc == 0 ? put_kept(b, v, t, e) : rc;
        page_end_part(b);
    }
    if (page_is_whole(q))
        put_log(p, b, v, t);
    return rc;
}

void page_trial(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct buf *b = &out->body;
    struct view *v;
    struct view_trial *t;
    struct err e = { 0 };
    AUTO_BUF struct buf title = BUF_INIT;
    buf_printf(&title, "%s/%s", q->path.words[1], q->path.words[2]);
    int number = (int)strtol(q->path.words[2], NULL, 10);
    page_head(p, b, q, &(struct page_about){ .title = buf_text(&title), .study = q->path.words[1], .trial = number });
    int rc = find(p, q, &v, &t, &e);
    if (rc == 0) {
        buf_puts(b, "<h1>");
        page_put_study(b, v->study.name);
        buf_printf(b, "/%d</h1>\n", t->row.number);
        rc = put_parts(p, b, v, t, q, &e);
    }
    page_foot(b);
    if (rc < 0)
        page_fail(out, view_explain(rc, &e, q->path.words[1]), &e);
}
