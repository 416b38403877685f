#include "view/story.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "store/news.h"
#include "store/samples.h"

static void story_done(struct story *s)
{
    for (size_t i = 0; i < s->n_steps; i++) {
        free(s->steps[i].kind);
        free(s->steps[i].setting);
        free(s->steps[i].reason);
    }
    free(s->steps);
    free(s->tried);
    json_decref(s->verdicts);
}

void stories_done(struct stories *s)
{
    for (size_t i = 0; i < s->n; i++)
        story_done(&s->v[i]);
    free(s->v);
    strv_done(&s->classes);
    trace_windows_done(&s->windows);
    *s = (struct stories){ 0 };
}

static const struct story untold = { .class = -1, .settled = -1, .saved_s = NAN, .saved_core_s = NAN };

const struct story *stories_of(const struct stories *s, int trial)
{
    return trial >= 1 && (size_t)trial <= s->n ? &s->v[trial - 1] : &untold;
}

static struct story *find(struct stories *s, int trial)
{
    return trial >= 1 && (size_t)trial <= s->n ? &s->v[trial - 1] : NULL;
}

/* Numbers have no gaps unless somebody else wrote the store. */
static int add_trial(void *ctx, const struct store_trial *row)
{
    struct stories *s = ctx;
    while (s->n < (size_t)row->number) {
        struct story *grown = array_more(s->v, s->n, &s->cap, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->v = grown;
        grown[s->n++] = untold;
    }
    s->v[row->number - 1].trial = row->id;
    return 0;
}

/* --- decisions --- */

static int add_step(void *ctx, const struct store_decision *d)
{
    struct story *s = find(ctx, d->trial);
    struct story_step *grown = s ? array_more(s->steps, s->n_steps, &s->cap_steps, sizeof *grown) : NULL;
    if (!grown)
        return s ? -ENOMEM : 0;
    s->steps = grown;
    struct story_step *step = &grown[s->n_steps++];
    *step = (struct story_step){ d->t_s, strdup(d->kind), d->setting ? strdup(d->setting) : NULL,
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
    struct story *s = ctx;
    if (!p->verdict)
        return 0;
    if (!s->verdicts)
        s->verdicts = json_array();
    json_t *one = json_pack("{s:i, s:o, s:o}", "epoch", p->epoch, "setting", parsed_or_null(p->setting), "verdict",
                            parsed_or_null(p->verdict));
    return json_array_append_new(s->verdicts, one) < 0 ? -ENOMEM : 0;
}

/* --- classes --- */

static int class_index(struct stories *r, const char *key)
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

int story_read_log(struct store *s, int64_t study, int64_t *seq, struct trace_windows *windows,
                   int (*started)(void *ctx, int trial, const char *key), void *ctx, struct err *e)
{
    struct log_reader z = { windows, started, ctx };
    return news_tuner_log(s, study, seq, read_lines, &z, e);
}

static int take_class(void *ctx, int trial, const char *key)
{
    struct stories *s = ctx;
    struct story *t = find(s, trial);
    int class = t ? class_index(s, key) : 0;
    if (t && class >= 0)
        t->class = class;
    return class < 0 ? class : 0;
}

/* --- time under each setting --- */

static bool is_under(const struct trace_stretch *s, double cores, double memory_gb)
{
    return s->cores == cores && s->memory_gb == memory_gb;
}

static int add_tried(struct story *s, const struct trace_stretch *w)
{
    size_t i = 0;
    while (i < s->n_tried && !is_under(w, s->tried[i].cores, s->tried[i].memory_gb))
        i++;
    if (i == s->n_tried) {
        struct story_tried *grown = array_more(s->tried, s->n_tried, &s->cap_tried, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->tried = grown;
        grown[s->n_tried++] = (struct story_tried){ .cores = w->cores, .memory_gb = w->memory_gb };
    }
    s->tried[i].seconds += w->seconds;
    s->tried[i].records += w->records;
    return 0;
}

static int sum_tried(struct stories *r)
{
    int rc = 0;
    for (size_t i = 0; i < r->n; i++)
        r->v[i].n_tried = 0;
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        struct story *s = find(r, r->windows.list[i].trial);
        rc = s ? add_tried(s, &r->windows.list[i]) : 0;
    }
    return rc;
}

/* --- what was saved --- */

/* Sums over the stretches of a class under one setting: in first epochs or later, and whether a trial had just begun, when all is
 * cold. */
struct pace {
    int class;
    double cores, memory_gb;
    struct story_tried sum[2][2]; /* [first epoch][cold] */
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
    const struct story_tried *sum = p->sum[first][0].records > 0 ? &p->sum[first][0] : &p->sum[first][1];
    return sum->records > 0 && sum->seconds > 0 ? sum->seconds / sum->records : (double)NAN;
}

/* Time under one setting over time under the other for the same records; like is compared with like. */
static double pace_ratio(const struct pace *p, const struct pace *to)
{
    double later = seconds_per_record(p, 0) / seconds_per_record(to, 0);
    return isfinite(later) ? later : seconds_per_record(p, 1) / seconds_per_record(to, 1);
}

static void begin_savings(const struct paces *p, struct story *s)
{
    const struct pace *to = s->n_tried ? find_pace(p, s->class, NULL) : NULL;
    s->saved_s = s->saved_core_s = to ? 0 : (double)NAN;
    s->against_cores = to ? to->cores : (double)NAN;
    s->against_memory_gb = to ? to->memory_gb : (double)NAN;
}

/* Where no ratio is known, NAN spreads over the trial's sums: not known is not 0. */
static void add_savings(const struct paces *p, struct story *s, const struct trace_stretch *w)
{
    const struct pace *to = find_pace(p, s->class, NULL), *mine = find_pace(p, s->class, w);
    if (!to || !mine || mine == to)
        return;
    double instead_s = w->seconds / pace_ratio(mine, to);
    s->saved_s += instead_s - w->seconds;
    s->saved_core_s += instead_s * to->cores - w->seconds * w->cores;
}

static int sum_savings(struct stories *r)
{
    struct paces paces = { 0 };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        const struct story *s = find(r, r->windows.list[i].trial);
        rc = s && s->class >= 0 ? add_pace(&paces, s->class, &r->windows.list[i]) : 0;
    }
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        begin_savings(&paces, &r->v[i]);
    for (size_t i = 0; rc == 0 && i < r->windows.n; i++) {
        struct story *s = find(r, r->windows.list[i].trial);
        if (s)
            add_savings(&paces, s, &r->windows.list[i]);
    }
    free(paces.list);
    return rc;
}

static int read_verdicts(struct stories *s, struct store *store, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        json_decref(s->v[i].verdicts);
        s->v[i].verdicts = NULL;
        rc = store_profiles(store, s->v[i].trial, add_verdict, &s->v[i], e);
    }
    return rc;
}

int stories_read(struct stories *s, struct store *store, int64_t study, struct err *e)
{
    int rc = store_trials(store, study, 0, add_trial, s, e);
    if (rc == 0)
        rc = news_decisions(store, study, &s->decided, add_step, s, e);
    if (rc == 0)
        rc = story_read_log(store, study, &s->logged, &s->windows, take_class, s, e);
    if (rc == 0)
        rc = sum_tried(s);
    if (rc == 0)
        rc = read_verdicts(s, store, e);
    return rc < 0 ? rc : sum_savings(s);
}
