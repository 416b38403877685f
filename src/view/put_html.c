/* The report as one page of HTML: no script, nothing from outside, and every text of the user or of a program escaped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "view/charts.h"
#include "view/front.h"
#include "view/put.h"
#include "view/svg.h"
#include "view/table.h"
#include "view/words.h"

static const char absent[] = "<span class=\"none\">absent</span>";

/* --- pieces --- */

static void put_head(struct buf *b, const char *title)
{
    buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>PipeTune: ");
    svg_escape(b, title);
    buf_puts(
        b,
        "</title>\n<style>\n"
        "body { font: 14px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 1100px;"
        " margin: 2em auto; padding: 0 1em; }\n"
        "table { border-collapse: collapse; } th, td { padding: 3px 9px; border-bottom: 1px solid #e2e2e2;"
        " text-align: left; vertical-align: top; }\n"
        "td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } tr.best { background: #eef5fb; }\n"
        ".none { color: #666; font-style: italic; } .note td { border-bottom: 1px solid #e2e2e2; color: #444; }\n"
        "tr.noted td { border-bottom: none; } summary { cursor: pointer; padding: 3px 0; } code { font-size: 12px; }\n"
        "h1, p, li, summary, code, .note td, .facts td { overflow-wrap: anywhere; }\n"
        /* What is wider than the page is moved within itself; the page never is. */
        ".wide { overflow-x: auto; } .wide svg { max-width: none; } td.n { white-space: nowrap; }\n"
        ".note div { position: sticky; left: 0; width: fit-content; max-width: calc(100vw - 3em); white-space: normal; "
        "}\n"
        "@media (max-width: 600px) { body { margin: 1em auto; padding: 0 0.7em; } h1 { font-size: 1.4em; }"
        " th, td { padding: 3px 6px; } .wide td { white-space: nowrap; } .wide td.set { white-space: normal; "
        "min-width: 15em; } .wide td.name {"
        " white-space: normal; min-width: 6em; overflow-wrap: anywhere; } }\n");
    svg_style(b);
    buf_puts(b, "</style>\n</head>\n<body>\n");
    svg_defs(b);
}

/* What a put function makes, escaped. */
static void put_made(struct buf *b, const struct buf *made)
{
    svg_escape(b, buf_text(made));
    b->failed |= made->failed;
}

static void put_members(struct buf *b, const char *object_text)
{
    AUTO_JSON json_t *object = words_object(object_text);
    AUTO_BUF struct buf text = BUF_INIT;
    words_put_short_members(&text, object);
    put_made(b, &text);
}

static void put_system(struct buf *b, const struct store_trial *t)
{
    AUTO_JSON json_t *effective = words_object(t->effective);
    AUTO_JSON json_t *requested = words_object(t->requested);
    AUTO_BUF struct buf text = BUF_INIT;
    words_put_system(&text, effective, requested);
    put_made(b, &text);
}

static void put_digits(struct buf *b, double x)
{
    char digits[32];
    buf_puts(b, isfinite(x) ? table_digits(x, digits) : absent);
}

static void put_duration(struct buf *b, double seconds)
{
    char text[32];
    buf_puts(b, isfinite(seconds) ? table_duration(seconds, text) : absent);
}

static void put_energy(struct buf *b, const struct ledger_figure *f)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (isfinite(f->j))
        energy_figure_put(&text, f);
    if (text.len > 0 || text.failed)
        put_made(b, &text);
    else
        buf_puts(b, absent);
}

static void put_fact(struct buf *b, const char *name, const struct buf *value)
{
    if (value->len == 0 && !value->failed)
        return;
    buf_printf(b, "<tr><th>%s</th><td>", name);
    put_made(b, value);
    buf_puts(b, "</td></tr>\n");
}

/* STUDY/N: what can be handed to every command. */
static void put_name(struct buf *b, const struct view *v, int trial)
{
    svg_escape(b, v->study.name);
    buf_printf(b, "/%d", trial);
}

/* --- the study --- */

static void put_provenance(struct buf *b, const struct view *v)
{
    static const struct {
        const char *name, *key;
    } facts[] = { { "PipeTune", "pipetune" },
                  { "commit", "commit" },
                  { "Spark", "spark" },
                  { "Java", "java" },
                  { "host", "host" },
                  { "kernel", "kernel" },
                  { "machine", "machine" },
                  { "cores", "cores" },
                  { "memory, GiB", "memory_gb" },
                  { "config", "config_file" },
                  { "SHA-256 of what was run", "sha256" } };
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        AUTO_BUF struct buf value = BUF_INIT;
        const json_t *j = json_object_get(v->provenance, facts[i].key);
        if (!j || json_is_null(j))
            continue;
        if (json_is_object(j))
            words_put_members(&value, j);
        else
            words_put_scalar(&value, j);
        put_fact(b, facts[i].name, &value);
    }
}

static void put_when(struct buf *b, const char *name, int64_t ms)
{
    AUTO_BUF struct buf value = BUF_INIT;
    if (ms)
        words_put_when(&value, ms);
    put_fact(b, name, &value);
}

/* What it came to; where it comes from stands last. */
static void put_study(struct buf *b, const struct view *v)
{
    const struct store_summary *t = &v->totals;
    buf_puts(b, "<h1>Study ");
    svg_escape(b, v->study.name);
    buf_puts(b, "</h1>\n<p>");
    svg_escape(b, v->state);
    buf_printf(b, ": %d trial%s, ", t->trials, t->trials == 1 ? "" : "s");
    words_put_counts(b, t);
    buf_puts(b, "; ");
    put_duration(b, t->seconds);
    buf_puts(b, " of trials; energy ");
    put_energy(b, &v->energy_of);
    buf_puts(b, ".</p>\n");
}

static void put_origin(struct buf *b, const struct view *v)
{
    AUTO_BUF struct buf value = BUF_INIT;
    const char *policy = json_string_value(json_object_get(json_object_get(v->config, "tuning"), "policy"));
    buf_puts(b, "<h2>Where this comes from</h2>\n<table class=\"facts\">\n");
    put_when(b, "begun", v->study.created_ms);
    put_when(b, "ended", v->study.ended_ms);
    buf_printf(&value, "%lld", (long long)v->study.seed);
    put_fact(b, "seed", &value);
    buf_clear(&value);
    buf_printf(&value, "%s (%s is better)", v->metric, v->study.maximise ? "greater" : "less");
    put_fact(b, "metric", &value);
    buf_clear(&value);
    buf_puts(&value, policy ? policy : "");
    put_fact(b, "policy", &value);
    put_provenance(b, v);
    buf_puts(b, "</table>\n");
}

static void put_best(struct buf *b, const struct view *v)
{
    const struct view_trial *t = view_trial(v, v->totals.best_trial);
    buf_puts(b, "<h2>Best trial</h2>\n<p>");
    if (!t) {
        buf_puts(b, "None: no trial is finished.</p>\n");
        return;
    }
    buf_puts(b, "<b>");
    put_name(b, v, t->row.number);
    buf_puts(b, "</b>: ");
    if (strcmp(v->metric, "accuracy") != 0) {
        svg_escape(b, v->metric);
        buf_putc(b, ' ');
        put_digits(b, t->row.metric);
        buf_puts(b, ", ");
    }
    buf_puts(b, "accuracy ");
    put_digits(b, t->row.accuracy);
    buf_puts(b, "; ");
    put_members(b, t->row.hyper);
    buf_puts(b, "; ");
    put_system(b, &t->row);
    buf_puts(b, "; ");
    put_duration(b, t->seconds);
    buf_puts(b, ".</p>\n");
}

/* --- trials --- */

static bool is_numeric(const struct column *c)
{
    return !c->is_text && !c->spread;
}

static void put_cell(struct buf *b, const struct column *c, const struct cell *x)
{
    const char *class = is_numeric(c) ? "n" : c->spread ? "set" : c == columns_page[0] ? "name" : NULL;
    AUTO_BUF struct buf members = BUF_INIT;
    buf_puts(b, "<td");
    if (class)
        buf_printf(b, " class=\"%s\"", class);
    buf_putc(b, '>');
    if (c->spread) {
        words_put_short_members(&members, x->json);
        put_made(b, &members);
    } else if (x->kind == CELL_TEXT) {
        svg_escape(b, x->text);
    } else if (c->unit) {
        put_duration(b, x->kind == CELL_NUMBER ? x->number : (double)NAN);
    } else {
        put_digits(b, x->kind == CELL_NUMBER ? x->number : (double)NAN);
    }
    buf_puts(b, "</td>");
}

/* What is to be said of a trial stands in a row of its own below, so that the others need no room for it. */
static int put_row(struct buf *b, struct view *v, struct view_trial *t, size_t columns, struct err *e)
{
    AUTO_BUF struct buf note = BUF_INIT;
    int rc = put_trial_note(&note, v, t, e);
    buf_printf(b, "<tr class=\"%s%s\">", t->row.number == v->totals.best_trial ? "best" : "", note.len ? " noted" : "");
    for (const struct column *const *c = columns_page; rc == 0 && *c; c++) {
        struct cell x = { .kind = CELL_ABSENT };
        if (!column_is_told(*c, v))
            continue;
        rc = column_cell(*c, v, t, &x, e);
        put_cell(b, *c, &x);
        cell_done(&x);
    }
    buf_puts(b, "</tr>\n");
    if (note.len) {
        buf_printf(b, "<tr class=\"note\"><td colspan=\"%zu\"><div>", columns);
        put_made(b, &note);
        buf_puts(b, "</div></td></tr>\n");
    }
    b->failed |= note.failed;
    return rc;
}

static int put_trials(struct buf *b, struct view *v, struct err *e)
{
    size_t columns = 0;
    int rc = 0;
    buf_puts(b, "<h2>Trials</h2>\n<div class=\"wide\"><table>\n<tr>");
    for (const struct column *const *c = columns_page; *c; c++) {
        if (!column_is_told(*c, v))
            continue;
        buf_puts(b, is_numeric(*c) ? "<th class=\"n\">" : "<th>");
        svg_escape(b, column_label(*c, v));
        buf_puts(b, "</th>");
        columns++;
    }
    buf_puts(b, "</tr>\n");
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = put_row(b, v, &v->trials[i], columns, e);
    buf_puts(b, "</table></div>\n");
    return rc;
}

/* --- stories --- */

static void put_tried(struct buf *b, const struct story *s)
{
    if (s->n_tried == 0)
        return;
    char digits[32];
    buf_puts(b, "<p>Trained under ");
    for (size_t i = 0; i < s->n_tried; i++) {
        const struct story_tried *t = &s->tried[i];
        buf_printf(b, "%s%g core%s", i ? ", " : "", t->cores, t->cores == 1 ? "" : "s");
        if (t->memory_gb > 0)
            buf_printf(b, " and %g GiB", t->memory_gb);
        buf_puts(b, " for ");
        put_duration(b, t->seconds);
        if (t->seconds > 0 && t->records > 0)
            buf_printf(b, " (%s records/s)", table_digits(t->records / t->seconds, digits));
    }
    buf_puts(b, ".</p>\n");
}

static void put_saved(struct buf *b, const struct story *s)
{
    if (s->n_tried == 0)
        return;
    if (!isfinite(s->saved_s)) {
        buf_printf(b, "<p>Saved: %s, nothing says how long its class's first setting would have taken.</p>\n", absent);
        return;
    }
    char text[32], core_s[32];
    buf_printf(b, "<p>%s, estimated: %s", s->saved_s < 0 ? "Cost" : "Saved", table_duration(fabs(s->saved_s), text));
    buf_printf(b, " (and %s core-seconds %s) against its class's first setting, %g core%s",
               table_digits(fabs(s->saved_core_s), core_s), s->saved_core_s < 0 ? "more" : "fewer", s->against_cores,
               s->against_cores == 1 ? "" : "s");
    if (s->against_memory_gb > 0)
        buf_printf(b, " and %g GiB", s->against_memory_gb);
    buf_puts(b, ", by the pace of both in like epochs.</p>\n");
}

static void put_verdicts(struct buf *b, const struct story *s)
{
    for (size_t i = 0; i < json_array_size(s->verdicts); i++) {
        const json_t *one = json_array_get(s->verdicts, i), *verdict = json_object_get(one, "verdict");
        AUTO_BUF struct buf text = BUF_INIT;
        words_put_short_members(&text, verdict);
        buf_printf(b, "<p>Profile in epoch %d: ", (int)json_integer_value(json_object_get(one, "epoch")));
        put_made(b, &text);
        buf_puts(b, ".</p>\n");
    }
}

static void put_steps(struct buf *b, const struct story *s)
{
    buf_puts(b, "<div class=\"wide\"><table>\n");
    for (size_t i = 0; i < s->n_steps; i++) {
        const struct story_step *t = &s->steps[i];
        buf_puts(b, "<tr><td class=\"n\">");
        put_duration(b, t->t_s);
        buf_puts(b, "</td><td>");
        svg_escape(b, t->kind);
        buf_puts(b, "</td><td>");
        svg_escape(b, t->reason);
        buf_puts(b, "</td><td>");
        if (t->setting)
            put_members(b, t->setting);
        buf_puts(b, "</td></tr>\n");
    }
    buf_puts(b, "</table></div>\n");
}

static void put_story(struct buf *b, const struct view *v, const struct view_trial *t)
{
    const struct story *s = stories_of(&v->stories, t->row.number);
    buf_printf(b, "<details%s><summary>", t->row.number == v->totals.best_trial ? " open" : "");
    put_name(b, v, t->row.number);
    if (s->settled >= 0) {
        buf_puts(b, ": settled on ");
        put_members(b, s->steps[s->settled].setting);
        buf_puts(b, ", ");
        svg_escape(b, s->steps[s->settled].reason);
    }
    buf_puts(b, "</summary>\n");
    if (s->class >= 0) {
        buf_printf(b, "<p>Class %d: <code>", s->class + 1);
        svg_escape(b, v->stories.classes.v[s->class]);
        buf_puts(b, "</code></p>\n");
    }
    put_verdicts(b, s);
    put_tried(b, s);
    put_saved(b, s);
    put_steps(b, s);
    buf_puts(b, "</details>\n");
}

static bool has_story(const struct view *v, size_t i)
{
    const struct story *s = stories_of(&v->stories, v->trials[i].row.number);
    return s->n_steps + s->n_tried > 0;
}

static void put_stories(struct buf *b, const struct view *v)
{
    buf_puts(b, "<h2>Decisions</h2>\n");
    for (size_t i = 0; i < v->n; i++)
        if (has_story(v, i))
            put_story(b, v, &v->trials[i]);
}

/* --- heat maps --- */

static void put_unmeasured(struct buf *b, const struct heat *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->rows; i++)
        n += !heat_has(h, i);
    if (n == 0)
        return;
    buf_printf(b, "<details><summary>%zu of %zu features were not measured</summary>\n<p>", n, h->rows);
    const char *sep = "";
    for (size_t i = 0; i < h->rows; i++) {
        if (heat_has(h, i))
            continue;
        buf_puts(b, sep);
        svg_escape(b, h->names[i]);
        buf_printf(b, " (%s)", reading_state_name(heat_why(h, i)));
        sep = ", ";
    }
    buf_puts(b, "</p></details>\n");
}

static void put_heat(struct buf *b, const struct heats_map *h, const char *none)
{
    buf_puts(b, "<div class=\"wide\">");
    bool drawn = h->map.cells && svg_heat(b, &h->map, (const char *const *)h->cols.v);
    buf_puts(b, "</div>\n");
    if (!drawn) {
        buf_printf(b, "<p>%s: %s.</p>\n", absent, none);
        return;
    }
    put_unmeasured(b, &h->map);
}

static void put_heats(struct buf *b, const struct view *v, const struct heats *h)
{
    buf_puts(b, "<h2>Events of the best trial</h2>\n");
    if (h->best.trial) {
        buf_puts(b, "<p>");
        put_name(b, v, h->best.trial);
        buf_puts(
            b,
            ", by its start-up and epochs. Each row is darkest where it is greatest; hatched: not measured. Point at "
            "a cell for its rate.</p>\n");
    }
    put_heat(b, &h->best, "nothing was sampled of it");
    buf_puts(b, "<h2>Events by class of jobs</h2>\n");
    put_heat(b, &h->by_class, "nothing was sampled of any class while it trained");
    if (v->stories.classes.n == 0)
        return;
    buf_puts(b, "<ol>\n");
    for (size_t i = 0; i < v->stories.classes.n; i++) {
        buf_puts(b, "<li><code>");
        svg_escape(b, v->stories.classes.v[i]);
        buf_puts(b, "</code></li>\n");
    }
    buf_puts(b, "</ol>\n");
}

int put_report_html(struct buf *b, struct view *v, const struct heats *h, struct err *e)
{
    int rc = view_energy(v, e);
    if (rc == 0)
        rc = view_pareto(v, e);
    if (rc == 0)
        rc = view_stories(v, e);
    if (rc < 0)
        return rc;
    put_head(b, v->study.name);
    put_study(b, v);
    put_best(b, v);
    front_put(b, v);
    rc = put_trials(b, v, e);
    if (rc == 0)
        rc = charts_put(b, v, e);
    put_stories(b, v);
    put_heats(b, v, h);
    put_origin(b, v);
    buf_puts(b, "</body>\n</html>\n");
    return rc;
}
