#include "view/energy_saved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "store/trace_windows.h"
#include "view/energy_figure.h"
#include "view/story.h"

/* --- a setting by name --- */

static int bad_setting(const char *text, struct err *e)
{
    return err_set(e, -EINVAL, "option '--against': '%s' must be such as cores=4 or cores=4,memory=8", text);
}

static int parse_knob(struct energy_setting *out, const char *text, size_t len)
{
    static const struct {
        const char *name;
        size_t offset;
    } knobs[] = { { "cores=", offsetof(struct energy_setting, cores) },
                  { "memory=", offsetof(struct energy_setting, memory_gb) } };
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        size_t name = strlen(knobs[i].name);
        if (len <= name || strncmp(text, knobs[i].name, name) != 0)
            continue;
        char *end;
        double x = strtod(text + name, &end);
        if (end != text + len || !(x > 0) || !isfinite(x))
            return -EINVAL;
        *(double *)(void *)((char *)out + knobs[i].offset) = x;
        return 0;
    }
    return -EINVAL;
}

int energy_setting_parse(struct energy_setting *out, const char *text, struct err *e)
{
    struct energy_setting got = { NAN, NAN };
    int rc = *text ? 0 : -EINVAL;
    for (const char *p = text; rc == 0 && *p;) {
        size_t len = strcspn(p, ",");
        rc = parse_knob(&got, p, len);
        p += len + (p[len] == ',');
    }
    if (rc < 0 || isnan(got.cores))
        return bad_setting(text, e);
    *out = got;
    return 0;
}

/* --- what the tuner's log tells --- */

enum { TRIALS_MAX = 10000000 };

/* A trial as the log knows it. */
struct logged {
    int class; /* 1 + the index of its key; 0: it never started */
    struct energy_setting last;
};

struct told_log {
    struct trace_windows windows;
    struct strv classes;
    struct logged *list; /* by trial number */
    size_t n;
};

static struct logged *find(const struct told_log *s, int trial)
{
    return trial >= 0 && (size_t)trial < s->n && s->list[trial].class ? &s->list[trial] : NULL;
}

static int make_room(struct told_log *s, int trial)
{
    if ((size_t)trial < s->n)
        return 0;
    size_t n = 2 * (size_t)trial + 16;
    struct logged *grown = realloc(s->list, n * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memset(grown + s->n, 0, (n - s->n) * sizeof *grown);
    s->list = grown;
    s->n = n;
    return 0;
}

static int take_start(void *ctx, int trial, const char *key)
{
    struct told_log *s = ctx;
    size_t class = 0;
    if (trial < 0 || trial > TRIALS_MAX)
        return 0;
    while (class < s->classes.n && strcmp(s->classes.v[class], key) != 0)
        class ++;
    if (class == s->classes.n)
        strv_add(&s->classes, key);
    if (s->classes.failed || make_room(s, trial) < 0)
        return -ENOMEM;
    s->list[trial] = (struct logged){ .class = (int)class + 1, .last = { NAN, NAN } };
    return 0;
}

static void told_log_done(struct told_log *s)
{
    trace_windows_done(&s->windows);
    strv_done(&s->classes);
    free(s->list);
}

/* --- epochs under one setting --- */

/* One epoch of one trial, as far as it counts. */
struct lot {
    int class;
    bool first, is_last; /* epoch 1; under the setting that its trial ended with */
    struct energy_setting at;
    double j, error_j, records;
};

struct lots {
    struct lot *list;
    size_t n, cap;
    const struct energy_load *load;
    const struct meter_ops *meter;
};

static bool same(const struct energy_setting *a, const struct energy_setting *b)
{
    return a->cores == b->cores && (isnan(a->memory_gb) || isnan(b->memory_gb) || a->memory_gb == b->memory_gb);
}

static int by_epoch(const void *a, const void *b)
{
    const struct trace_stretch *x = a, *y = b;
    int trial = (x->trial > y->trial) - (x->trial < y->trial);
    return trial ? trial : (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

/* The one setting of an epoch, of stretches in the order of trials and epochs; false: it had several, or none is known. */
static bool epoch_setting(const struct trace_windows *w, int trial, int epoch, struct energy_setting *out)
{
    struct trace_stretch key = { .trial = trial, .epoch = epoch };
    const struct trace_stretch *end = w->list + w->n;
    const struct trace_stretch *x = w->n ? bsearch(&key, w->list, w->n, sizeof key, by_epoch) : NULL;
    if (!x)
        return false;
    while (x > w->list && by_epoch(x - 1, &key) == 0)
        x--;
    *out = (struct energy_setting){ x->cores, x->memory_gb };
    for (; x < end && by_epoch(x, &key) == 0; x++) {
        struct energy_setting at = { x->cores, x->memory_gb };
        if (!same(out, &at))
            return false;
    }
    return true;
}

static int add_lot(struct lots *to, const struct told_log *s, const struct energy_load_trial *t,
                   const struct energy_load_epoch *ep)
{
    const struct logged *known = find(s, t->number);
    struct lot one = { .class = known ? known->class : 0, .first = ep->epoch == 1, .records = ep->records };
    struct ledger_figure f;
    if (!known || !(ep->records > 0) || !epoch_setting(&s->windows, t->number, ep->epoch, &one.at))
        return 0;
    int rc = energy_figure_epoch(to->load, t, ep, to->meter, &f);
    if (rc < 0 || !isfinite(f.j) || energy_figure_thin(&f))
        return rc;
    one.j = f.j;
    one.error_j = f.error_j;
    one.is_last = same(&one.at, &known->last);
    struct lot *grown = array_more(to->list, to->n, &to->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    to->list = grown;
    to->list[to->n++] = one;
    return 0;
}

/* What trials ended with, and what each class began with: by the order of the log. */
static void take_settings(struct told_log *s, struct energy_setting *first)
{
    for (size_t i = 0; i < s->windows.n; i++) {
        const struct trace_stretch *x = &s->windows.list[i];
        struct logged *t = find(s, x->trial);
        if (!t)
            continue;
        t->last = (struct energy_setting){ x->cores, x->memory_gb };
        if (isnan(first[t->class - 1].cores))
            first[t->class - 1] = t->last;
    }
    if (s->windows.n)
        qsort(s->windows.list, s->windows.n, sizeof *s->windows.list, by_epoch);
}

static int gather(struct lots *to, const struct told_log *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < to->load->n; i++) {
        const struct energy_load_trial *t = &to->load->trials[i];
        for (size_t k = 0; rc == 0 && k < t->n_epochs; k++)
            rc = add_lot(to, s, t, &t->epochs[k]);
    }
    return rc;
}

/* --- the difference --- */

/* Adds those of a class whose epochs were first ones, or were not. */
static void compare(struct energy_saved *out, const struct lots *l, int class, bool first,
                    const struct energy_setting *against)
{
    struct lot base = { 0 }, mine = { 0 };
    for (size_t i = 0; i < l->n; i++) {
        const struct lot *x = &l->list[i];
        bool is_base = same(&x->at, against);
        if (x->class != class || x->first != first || (!is_base && !x->is_last))
            continue;
        struct lot *to = is_base ? &base : &mine;
        to->j += x->j;
        to->error_j += x->error_j;
        to->records += x->records;
    }
    if (!(base.records > 0) || !(mine.records > 0))
        return;
    double times = mine.records / base.records;
    if (isnan(out->j))
        out->j = out->error_j = out->used_j = out->records = 0;
    out->j += base.j * times - mine.j;
    out->error_j += base.error_j * times + mine.error_j;
    out->used_j += mine.j;
    out->records += mine.records;
}

/* Classes came up in the order of `first`, which is what each began with. */
static int compare_all(struct energy_saved *out, struct told_log *s, struct lots *l,
                       const struct energy_setting *against)
{
    AUTO_FREE struct energy_setting *first = calloc(s->classes.n + 1, sizeof *first);
    if (!first)
        return -ENOMEM;
    for (size_t i = 0; i < s->classes.n; i++)
        first[i] = (struct energy_setting){ NAN, NAN };
    take_settings(s, first);
    int rc = gather(l, s);
    for (size_t i = 0; rc == 0 && i < s->classes.n; i++) {
        const struct energy_setting *base = against ? against : &first[i];
        compare(out, l, (int)i + 1, true, base);
        compare(out, l, (int)i + 1, false, base);
    }
    return rc;
}

int energy_saved(struct energy_saved *out, struct store *s, int64_t study, const struct energy_load *l,
                 const struct meter_ops *meter, const struct energy_setting *against, struct err *e)
{
    struct told_log log = { 0 };
    int64_t seq = 0;
    struct lots lots = { .load = l, .meter = meter };
    struct energy_saved got = { .j = NAN, .error_j = NAN, .records = NAN, .used_j = NAN, .meter = meter };
    got.against = against ? *against : (struct energy_setting){ NAN, NAN };
    got.source = meter && meter->estimated ? LEDGER_ESTIMATED : LEDGER_ATTRIBUTED;
    int rc = meter ? story_read_log(s, study, &seq, &log.windows, take_start, &log, e) : 0;
    if (rc == 0 && meter)
        rc = compare_all(&got, &log, &lots, against);
    told_log_done(&log);
    free(lots.list);
    if (rc == 0)
        *out = got;
    return rc == -ENOMEM ? err_sys(e, rc, "cannot account energy") : rc;
}
