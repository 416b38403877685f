#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "serve/page_study.h"
#include "serve/plot.h"

enum { LANES_MAX = 24, BARS_MAX = 2000, MARKS_MAX = 2000, SETTINGS_MAX = 64 };

/* A stretch of an attempt under one setting. */
struct lanes {
    const struct view *view;
    struct strv names, texts; /* of lanes; of bars and marks, which hold indexes until all are there */
    struct plot_bar *bars;
    size_t n_bars, cap_bars, *bar_text, *bar_label, cap_bar_text, cap_bar_label;
    struct plot_mark *marks;
    size_t n_marks, cap_marks, *mark_text, cap_mark_text;
    struct strv settings; /* as they came up: the i-th looks as kind i */
    struct change {
        double at;
        char *setting; /* owned */
    } * changes;       /* of one trial */
    size_t n_changes, cap_changes;
    size_t lane;
    int number;
};

static void forget_changes(struct lanes *l)
{
    for (size_t i = 0; i < l->n_changes; i++)
        free(l->changes[i].setting);
    l->n_changes = 0;
}

static void lanes_done(struct lanes *l)
{
    forget_changes(l);
    free(l->changes);
    free(l->bars);
    free(l->bar_text);
    free(l->bar_label);
    free(l->marks);
    free(l->mark_text);
    strv_done(&l->names);
    strv_done(&l->texts);
    strv_done(&l->settings);
}

/* "8 cores, 4 GiB", of a setting's text. */
static char *setting_words(const char *text)
{
    AUTO_JSON json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    AUTO_BUF struct buf b = BUF_INIT;
    const char *key, *sep = "";
    json_t *value;
    if (!json_is_object(j))
        return strdup("setting not known");
    json_object_foreach(j, key, value)
    {
        AUTO_FREE char *shown = json_is_string(value) ? strdup(json_string_value(value)) : json_text(value);
        buf_printf(&b, "%s%s %s", sep, key, shown ? shown : "?");
        sep = ", ";
    }
    return buf_take(&b);
}

static unsigned kind_of(struct lanes *l, const char *setting)
{
    for (size_t i = 0; i < l->settings.n; i++)
        if (strcmp(l->settings.v[i], setting) == 0)
            return (unsigned)i;
    if (l->settings.n == SETTINGS_MAX)
        return SETTINGS_MAX;
    strv_add(&l->settings, setting);
    return (unsigned)(l->settings.n - 1);
}

static int take_decision(void *ctx, const struct store_decision *d)
{
    struct lanes *l = ctx;
    if (l->n_marks == MARKS_MAX || !isfinite(d->t_s))
        return 0;
    struct plot_mark *marks = array_more(l->marks, l->n_marks, &l->cap_marks, sizeof *marks);
    l->marks = marks ? marks : l->marks;
    size_t *text = marks ? array_more(l->mark_text, l->n_marks, &l->cap_mark_text, sizeof *text) : NULL;
    if (!text)
        return -ENOMEM;
    l->mark_text = text;
    l->mark_text[l->n_marks] = l->texts.n;
    strv_addf(&l->texts, "%s: %s", d->kind, d->reason ? d->reason : "");
    l->marks[l->n_marks++] = (struct plot_mark){ l->lane, d->t_s, NULL };
    if (!d->setting)
        return 0;
    struct change *changes = array_more(l->changes, l->n_changes, &l->cap_changes, sizeof *changes);
    if (!changes)
        return -ENOMEM;
    l->changes = changes;
    changes[l->n_changes] = (struct change){ d->t_s, setting_words(d->setting) };
    return changes[l->n_changes++].setting ? 0 : -ENOMEM;
}

static int add_bar(struct lanes *l, double from, double to, const char *setting, int attempt)
{
    if (l->n_bars == BARS_MAX || !(to > from))
        return 0;
    struct plot_bar *bars = array_more(l->bars, l->n_bars, &l->cap_bars, sizeof *bars);
    l->bars = bars ? bars : l->bars;
    size_t *text = bars ? array_more(l->bar_text, l->n_bars, &l->cap_bar_text, sizeof *text) : NULL;
    l->bar_text = text ? text : l->bar_text;
    size_t *label = text ? array_more(l->bar_label, l->n_bars, &l->cap_bar_label, sizeof *label) : NULL;
    if (!label)
        return -ENOMEM;
    l->bar_label = label;
    l->bar_text[l->n_bars] = l->texts.n;
    strv_addf(&l->texts, "%s/%d, attempt %d: %s", l->view->study.name, l->number, attempt, setting);
    l->bar_label[l->n_bars] = l->texts.n;
    strv_add(&l->texts, setting);
    l->bars[l->n_bars++] = (struct plot_bar){ l->lane, from, to, kind_of(l, setting), NULL, NULL };
    return 0;
}

/* Cut where the setting changed meanwhile. */
static int take_attempt(void *ctx, const struct store_attempt *a)
{
    struct lanes *l = ctx;
    const struct view_trial *t = view_trial(l->view, l->number);
    double from = (double)(a->started_ms - l->view->study.created_ms) / 1000.0;
    double to = a->ended_ms ? (double)(a->ended_ms - l->view->study.created_ms) / 1000.0
                            : from + (t && t->under_way.state ? t->seconds - t->row.seconds : 0);
    AUTO_FREE char *launched = setting_words(a->setting ? a->setting : t ? t->row.effective : NULL);
    const char *setting = launched;
    int rc = launched ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < l->n_changes; i++) {
        const struct change *c = &l->changes[i];
        if (c->at <= from || c->at >= to || strcmp(c->setting, setting) == 0)
            continue;
        rc = add_bar(l, from, c->at, setting, a->number);
        from = c->at;
        setting = c->setting;
    }
    return rc == 0 ? add_bar(l, from, to, setting, a->number) : rc;
}

static int add_lane(struct lanes *l, const struct view_trial *t, struct err *e)
{
    forget_changes(l);
    l->lane = l->names.n;
    l->number = t->row.number;
    strv_addf(&l->names, "%d %s", t->row.number, t->state);
    int rc = store_decisions(l->view->store, l->view->study.id, t->row.number, take_decision, l, e);
    return rc == 0 ? store_attempts(l->view->store, t->row.id, take_attempt, l, e) : rc;
}

static void resolve(struct lanes *l)
{
    for (size_t i = 0; i < l->n_bars; i++) {
        l->bars[i].title = l->texts.v[l->bar_text[i]];
        l->bars[i].label = l->texts.v[l->bar_label[i]];
    }
    for (size_t i = 0; i < l->n_marks; i++)
        l->marks[i].title = l->texts.v[l->mark_text[i]];
}

static int gather(struct lanes *l, struct err *e)
{
    int rc = 0;
    for (size_t i = l->view->n; rc == 0 && i > 0 && l->names.n < LANES_MAX; i--)
        if (l->view->trials[i - 1].row.attempts > 0)
            rc = add_lane(l, &l->view->trials[i - 1], e);
    return rc == 0 && (l->names.failed || l->texts.failed || l->settings.failed) ? -ENOMEM : rc;
}

int page_put_lanes(struct buf *b, struct view *v, struct err *e)
{
    struct lanes l = { .view = v };
    int rc = gather(&l, e);
    if (rc == 0) {
        resolve(&l);
        if (plot_lanes(b, "since the study began", (const char *const *)l.names.v, l.names.n, l.bars, l.n_bars, l.marks,
                       l.n_marks))
            buf_printf(b,
                       "<p class=\"dim\">The newest %zu trials that were started; marks are decisions. Point at a "
                       "stretch for its setting.</p>\n",
                       l.names.n);
        else
            buf_puts(b, "<p><span class=\"absent\">absent</span>: nothing was started yet.</p>\n");
    }
    lanes_done(&l);
    return view_explain(rc, e, v->study.name);
}
