/* What became of each trial's setting: the decisions, the time under each setting, and what the last one saved. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/report.h"
#include "store/samples.h"

static struct report_trial *trial_of(struct report *r, int number)
{
    return (struct report_trial *)(uintptr_t)report_trial(r, number);
}

/* --- decisions --- */

static int add_step(void *ctx, const struct store_decision *d)
{
    struct report *r = ctx;
    struct report_trial *t = trial_of(r, d->trial);
    if (!t)
        return 0;
    struct report_story *s = &t->story;
    struct report_step *grown = array_more(s->steps, s->n_steps, &t->cap_steps, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->steps = grown;
    struct report_step *step = &grown[s->n_steps++];
    *step = (struct report_step){ d->t_s, strdup(d->kind), d->setting ? strdup(d->setting) : NULL,
                                  strdup(d->reason ? d->reason : "") };
    if (strcmp(d->kind, "settle") == 0)
        s->settled = (int)s->n_steps - 1;
    return step->kind && step->reason && (step->setting || !d->setting) ? 0 : -ENOMEM;
}

/* --- verdicts --- */

static json_t *parsed_or_null(const char *text)
{
    json_t *j = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return j ? j : json_null();
}

static int add_verdict(void *ctx, const struct store_profile *p)
{
    struct report_story *s = ctx;
    if (!p->verdict)
        return 0;
    if (!s->verdicts)
        s->verdicts = json_array();
    json_t *one = json_pack("{s:i, s:o, s:o}", "epoch", p->epoch, "setting", parsed_or_null(p->setting), "verdict",
                            parsed_or_null(p->verdict));
    return json_array_append_new(s->verdicts, one) < 0 ? -ENOMEM : 0;
}

/* --- classes --- */

static int class_index(struct report *r, const char *key)
{
    for (size_t i = 0; i < r->classes.n; i++)
        if (strcmp(r->classes.v[i], key) == 0)
            return (int)i;
    strv_add(&r->classes, key);
    return r->classes.failed ? -ENOMEM : (int)r->classes.n - 1;
}

/* "s TRIAL t_s hot cold "KEY" …" */
static int class_of(const char *line, int *out_trial, char **out_key)
{
    const char *key = line[0] == 's' ? strchr(line, '"') : NULL;
    AUTO_JSON json_t *text = key ? json_loads(key, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!json_is_string(text))
        return 0;
    char *copy = strdup(json_string_value(text));
    if (!copy)
        return -ENOMEM;
    *out_trial = (int)strtol(line + 1, NULL, 10);
    *out_key = copy;
    return 1;
}

struct log_reader {
    struct trace_windows *windows;
    int (*started)(void *ctx, int trial, const char *key);
    void *ctx;
};

static int read_line(const struct log_reader *z, const char *from, size_t len)
{
    int trial = 0;
    AUTO_FREE char *line = strndup(from, len);
    AUTO_FREE char *key = NULL;
    if (!line || trace_windows_line(z->windows, line) < 0)
        return -ENOMEM;
    int rc = class_of(line, &trial, &key);
    return rc == 1 ? z->started(z->ctx, trial, key) : rc;
}

static int read_lines(void *ctx, const char *text)
{
    int rc = 0;
    for (size_t len; rc == 0 && *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        rc = read_line(ctx, text, len);
    }
    return rc;
}

int report_read_log(struct store *s, int64_t study, struct trace_windows *windows,
                    int (*started)(void *ctx, int trial, const char *key), void *ctx, struct err *e)
{
    struct log_reader z = { windows, started, ctx };
    return store_tuner_log(s, study, read_lines, &z, e);
}

static int take_class(void *ctx, int trial, const char *key)
{
    struct report *r = ctx;
    struct report_trial *t = trial_of(r, trial);
    int class = t ? class_index(r, key) : 0;
    if (t && class >= 0)
        t->story.class = class;
    return class < 0 ? class : 0;
}

/* --- time under each setting --- */

static bool is_under(const struct trace_stretch *s, double cores, double memory_gb)
{
    return s->cores == cores && s->memory_gb == memory_gb;
}

static int add_tried(struct report_trial *t, const struct trace_stretch *w)
{
    struct report_story *s = &t->story;
    size_t i = 0;
    while (i < s->n_tried && !is_under(w, s->tried[i].cores, s->tried[i].memory_gb))
        i++;
    if (i == s->n_tried) {
        struct report_tried *grown = array_more(s->tried, s->n_tried, &t->cap_tried, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->tried = grown;
        grown[s->n_tried++] = (struct report_tried){ .cores = w->cores, .memory_gb = w->memory_gb };
    }
    s->tried[i].seconds += w->seconds;
    s->tried[i].records += w->records;
    return 0;
}

static int add_all_tried(struct report *r)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        struct report_trial *t = trial_of(r, r->windows.list[i].trial);
        rc = t ? add_tried(t, &r->windows.list[i]) : 0;
    }
    return rc;
}

/* --- what was saved --- */

/* Sums over the stretches of a class under one setting: in first epochs or later, and whether a trial had just begun, when all is
 * cold. */
struct pace {
    int class;
    double cores, memory_gb;
    struct report_tried sum[2][2]; /* [first epoch][cold] */
};

struct paces {
    struct pace *list; /* the first of a class is what it began with */
    size_t n, cap;
};

static struct pace *find_pace(const struct paces *p, int class, const struct trace_stretch *w)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].class == class && (!w || is_under(w, p->list[i].cores, p->list[i].memory_gb)))
            return &p->list[i];
    return NULL;
}

static int add_pace(struct paces *p, int class, const struct trace_stretch *w)
{
    struct pace *one = find_pace(p, class, w);
    if (!one) {
        struct pace *grown = array_more(p->list, p->n, &p->cap, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        p->list = grown;
        one = &grown[p->n++];
        *one = (struct pace){ .class = class, .cores = w->cores, .memory_gb = w->memory_gb };
    }
    bool first = w->epoch == 1, cold = first && !(w->from_s > 0);
    one->sum[first][cold].seconds += w->seconds;
    one->sum[first][cold].records += w->records;
    return 0;
}

/* Seconds per record; what was cold counts only where there is nothing else. NAN: none. */
static double seconds_per_record(const struct pace *p, int first)
{
    const struct report_tried *sum = p->sum[first][0].records > 0 ? &p->sum[first][0] : &p->sum[first][1];
    return sum->records > 0 && sum->seconds > 0 ? sum->seconds / sum->records : (double)NAN;
}

/* Time under one setting over time under the other for the same records; like is compared with like. */
static double pace_ratio(const struct pace *p, const struct pace *to)
{
    double later = seconds_per_record(p, 0) / seconds_per_record(to, 0);
    return isfinite(later) ? later : seconds_per_record(p, 1) / seconds_per_record(to, 1);
}

static void begin_savings(const struct paces *p, struct report_story *s)
{
    const struct pace *to = s->n_tried ? find_pace(p, s->class, NULL) : NULL;
    s->saved_s = s->saved_core_s = to ? 0 : (double)NAN;
    s->against_cores = to ? to->cores : (double)NAN;
    s->against_memory_gb = to ? to->memory_gb : (double)NAN;
}

/* Where no ratio is known, NAN spreads over the trial's sums: not known is not 0. */
static void add_savings(const struct paces *p, struct report_story *s, const struct trace_stretch *w)
{
    const struct pace *to = find_pace(p, s->class, NULL), *mine = find_pace(p, s->class, w);
    if (!to || !mine || mine == to)
        return;
    double instead_s = w->seconds / pace_ratio(mine, to);
    s->saved_s += instead_s - w->seconds;
    s->saved_core_s += instead_s * to->cores - w->seconds * w->cores;
}

static int sum_savings(struct report *r)
{
    struct paces paces = { 0 };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        const struct report_trial *t = report_trial(r, r->windows.list[i].trial);
        rc = t && t->story.class >= 0 ? add_pace(&paces, t->story.class, &r->windows.list[i]) : 0;
    }
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        begin_savings(&paces, &r->trials[i].story);
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        struct report_trial *t = trial_of(r, r->windows.list[i].trial);
        if (t)
            add_savings(&paces, &t->story, &r->windows.list[i]);
    }
    free(paces.list);
    return rc;
}

int report_load_stories(struct report *r)
{
    int rc = store_decisions(r->store, r->study.id, 0, add_step, r, r->e);
    if (rc == 0)
        rc = report_read_log(r->store, r->study.id, &r->windows, take_class, r, r->e);
    if (rc == 0)
        rc = add_all_tried(r);
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        rc = store_profiles(r->store, r->trials[i].row.id, add_verdict, &r->trials[i].story, r->e);
    return rc < 0 ? rc : sum_savings(r);
}
