#include "store/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "core/csv.h"
#include "monitoring/event_names.h"

/* So much of an epoch's records must be in its windows: a step or two are lost where what was measured is void. */
static const double WATCHED_SHARE = 0.9;

static void samples_done(struct trace_samples *s)
{
    free(s->t_ns);
    free(s->node);
    free(s->value);
    free(s->state);
    free(s->ratio);
    *s = (struct trace_samples){ 0 };
}

static void run_done(struct trace_run *r)
{
    free(r->model);
    free(r->dataset);
    free(r->system);
    free(r->hyper);
    free(r->results);
    free(r->epochs);
    for (size_t i = 0; i < r->n_windows; i++)
        free(r->windows[i].setting);
    free(r->windows);
    samples_done(&r->samples);
}

static void tuner_done(struct trace_tuner *t)
{
    free(t->policy);
    free(t->study);
    strv_done(&t->log);
    for (size_t i = 0; i < t->n_decisions; i++) {
        free(t->decisions[i].kind);
        free(t->decisions[i].setting);
        free(t->decisions[i].reason);
    }
    free(t->decisions);
}

void trace_done(struct trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        run_done(&t->runs[i]);
    free(t->runs);
    strv_done(&t->features);
    tuner_done(&t->tuner);
    *t = (struct trace){ 0 };
}

struct trace_run *trace_add(struct trace *t)
{
    struct trace_run *more = array_more(t->runs, t->n, &t->cap, sizeof *more);
    if (!more)
        return NULL;
    t->runs = more;
    struct trace_run *r = &t->runs[t->n++];
    *r = (struct trace_run){ .startup_s = NAN };
    return r;
}

struct trace_epoch trace_no_epoch(void)
{
    return (struct trace_epoch){ NAN, NAN, NAN, NAN, NAN, NAN, NAN };
}

char *trace_name(const char *text, size_t len)
{
    char *name = strndup(text, len);
    for (char *p = name; p && !csv_is_name(name) && *p; p++)
        if ((unsigned char)*p >= 0x7F || (unsigned char)*p < 0x20)
            *p = '_';
    return name;
}

int trace_default_features(struct trace *t)
{
    for (size_t i = 0; i < EVENT_NAMES; i++)
        strv_add(&t->features, event_names[i]);
    return t->features.failed ? -ENOMEM : 0;
}

int trace_samples_init(struct trace_samples *s, size_t n, size_t features)
{
    size_t cells = n * features;
    struct trace_samples new = {
        .n = n,
        .t_ns = calloc(n + 1, sizeof *new.t_ns), /* + 1: calloc(0) may give NULL */
        .node = calloc(n + 1, sizeof *new.node),
        .value = calloc(cells + 1, sizeof *new.value),
        .state = calloc(cells + 1, sizeof *new.state),
        .ratio = calloc(cells + 1, sizeof *new.ratio),
    };
    if (!new.t_ns || !new.node || !new.value || !new.state || !new.ratio) {
        samples_done(&new);
        return -ENOMEM;
    }
    for (size_t i = 0; i < cells; i++) {
        new.value[i] = NAN;
        new.state[i] = TRACE_ABSENT;
    }
    *s = new;
    return 0;
}

/* --- from a timeline --- */

/* {"key":value, …} in their order; a key whose value is NAN is left out. NULL: memory. */
static char *object_text(const char *const *keys, const double *values, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_putc(&b, '{');
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        if (b.len > 1)
            buf_putc(&b, ',');
        json_put_string(&b, keys[i]);
        buf_putc(&b, ':');
        num_put(&b, values[i]);
    }
    buf_putc(&b, '}');
    return buf_take(&b);
}

static char *log_text(const char *log)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "{\"log\":");
    json_put_string(&b, log);
    buf_putc(&b, '}');
    return buf_take(&b);
}

/* Epochs follow one another: a start is the sum of what came before. */
static int copy_epochs(struct trace_run *r, const struct timeline_run *from)
{
    if (from->n_epochs == 0)
        return 0;
    r->epochs = calloc(from->n_epochs, sizeof *r->epochs);
    if (!r->epochs)
        return -ENOMEM;
    r->n_epochs = from->n_epochs;
    double at_s = isfinite(from->startup_s) ? from->startup_s : 0;
    for (size_t i = 0; i < r->n_epochs; i++) {
        const struct timeline_epoch *t = &from->epochs[i];
        r->epochs[i] = trace_no_epoch();
        r->epochs[i].start_s = at_s;
        r->epochs[i].duration_s = t->duration_s;
        r->epochs[i].loss = t->loss;
        r->epochs[i].accuracy = t->accuracy;
        r->epochs[i].energy_j = t->energy_j;
        at_s += t->duration_s; /* NAN from the first unknown one on */
    }
    return 0;
}

static int add_run(struct trace *t, const struct timeline_run *from)
{
    struct trace_run *r = trace_add(t);
    if (!r)
        return -ENOMEM;
    r->model = strdup(from->model ? from->model : "");
    r->dataset = strdup(from->dataset ? from->dataset : "");
    r->system = object_text((const char *[]){ "cores", "memory" },
                            (double[]){ from->cores > 0 ? (double)from->cores : (double)NAN, from->memory_gb }, 2);
    r->hyper = object_text((const char *[]){ "batch_size" }, (double[]){ from->batch }, 1);
    r->results = from->log ? log_text(from->log) : NULL;
    r->status = from->status;
    r->startup_s = from->startup_s;
    if (!r->model || !r->dataset || !r->system || !r->hyper || (from->log && !r->results))
        return -ENOMEM;
    return copy_epochs(r, from);
}

int trace_add_timeline(struct trace *t, const struct timeline *from, struct err *e)
{
    for (size_t i = 0; i < from->n; i++)
        if (add_run(t, &from->runs[i]) < 0)
            return err_sys(e, -ENOMEM, "cannot keep the trace");
    return 0;
}

/* --- to a timeline --- */

/* NULL: no JSON object. */
static json_t *parse_object(const char *text)
{
    json_t *j = json_loads(text ? text : "{}", 0, NULL);
    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

/* People write "8" and 8. */
static double number_of(const json_t *j)
{
    if (json_is_number(j))
        return json_number_value(j);
    if (!json_is_string(j))
        return NAN;
    char *end;
    double x = strtod(json_string_value(j), &end);
    return end != json_string_value(j) && *end == '\0' ? x : (double)NAN;
}

static double batch_of(json_t *hyper)
{
    const char *key;
    json_t *value;
    json_object_foreach(hyper, key, value)
    {
        if (strncasecmp(key, "batch", 5) == 0)
            return number_of(value);
    }
    return NAN;
}

/* A run's JSON texts, and which of its epochs count. */
struct told {
    json_t *system, *hyper, *results;
    bool *counts;
};

static void told_done(struct told *t)
{
    json_decref(t->system);
    json_decref(t->hyper);
    json_decref(t->results);
    free(t->counts);
}

#define AUTO_TOLD __attribute__((cleanup(told_done)))

static bool same_value(const json_t *a, const json_t *b)
{
    double x = number_of(a), y = number_of(b);
    return isfinite(x) && isfinite(y) ? x == y : json_equal(a, b) == 1;
}

/* No value that both have differs. */
static bool agrees(const json_t *system, const char *setting)
{
    AUTO_JSON json_t *window = parse_object(setting);
    const char *key;
    json_t *value;
    json_object_foreach(window, key, value)
    {
        const json_t *mine = json_object_get(system, key);
        if (mine && !same_value(mine, value))
            return false;
    }
    return window != NULL;
}

struct watched {
    double records;
    bool some, other; /* there are windows; one of another setting */
};

static void watch(struct watched *epochs, const struct trace_run *r, const json_t *system)
{
    const char *last = NULL; /* most follow one of the same setting */
    bool agreed = false;
    for (size_t i = 0; i < r->n_windows; i++) {
        const struct trace_window *w = &r->windows[i];
        if (w->epoch < 1 || (size_t)w->epoch > r->n_epochs)
            continue;
        if (!last || strcmp(last, w->setting) != 0)
            agreed = agrees(system, w->setting);
        last = w->setting;
        struct watched *e = &epochs[w->epoch - 1];
        e->some = true;
        e->other |= !agreed;
        e->records += w->at.records;
    }
}

static int find_counting(struct told *t, const struct trace_run *r)
{
    AUTO_FREE struct watched *epochs = calloc(r->n_epochs + 1, sizeof *epochs);
    t->counts = calloc(r->n_epochs + 1, sizeof *t->counts);
    if (!epochs || !t->counts)
        return -ENOMEM;
    watch(epochs, r, t->system);
    for (size_t i = 0; i < r->n_epochs; i++) {
        bool holes = epochs[i].records < WATCHED_SHARE * r->epochs[i].records; /* false where either is not known */
        t->counts[i] = r->n_windows == 0 || (epochs[i].some && !epochs[i].other && !holes);
    }
    return 0;
}

static int tell(struct told *t, const struct trace_run *r)
{
    t->system = parse_object(r->system);
    t->hyper = parse_object(r->hyper);
    t->results = parse_object(r->results);
    return t->system && t->hyper && t->results ? find_counting(t, r) : -EPROTO;
}

/* Does it say nothing of its setting, neither how long it takes nor that it cannot be had? */
static bool says_nothing(const struct told *t, const struct trace_run *r)
{
    bool recorded = json_object_get(t->results, "outcome") != NULL;
    if (r->status != RUN_COMPLETE)
        return recorded && r->status != RUN_FAILED;
    bool first = r->n_epochs > 0 && t->counts[0] && isfinite(r->epochs[0].duration_s);
    return (recorded || r->n_windows > 0) && !first;
}

static int fill_settings(struct timeline_run *r, const struct told *t)
{
    double cores = number_of(json_object_get(t->system, "cores"));
    r->cores = cores >= 1 && cores <= 1e6 ? (int)cores : 0;
    r->memory_gb = number_of(json_object_get(t->system, "memory"));
    r->batch = batch_of(t->hyper);
    const char *log = json_string_value(json_object_get(t->results, "log"));
    r->log = log ? strdup(log) : NULL;
    return log && !r->log ? -ENOMEM : 0;
}

static int fill_run(struct timeline_run *r, const struct trace_run *from, const struct told *t)
{
    r->model = strdup(from->model ? from->model : "");
    r->dataset = strdup(from->dataset ? from->dataset : "");
    r->status = from->status;
    r->startup_s = from->startup_s;
    r->epochs = from->n_epochs ? calloc(from->n_epochs, sizeof *r->epochs) : NULL;
    if (!r->model || !r->dataset || (from->n_epochs && !r->epochs))
        return -ENOMEM;
    r->n_epochs = from->n_epochs;
    for (size_t i = 0; i < r->n_epochs; i++) {
        const struct trace_epoch *ep = &from->epochs[i];
        r->epochs[i] = (struct timeline_epoch){ ep->duration_s, ep->loss, ep->accuracy, ep->energy_j };
        if (!t->counts[i])
            r->epochs[i].duration_s = NAN;
    }
    return fill_settings(r, t);
}

/* 1: it was left out. */
static int add_to_timeline(struct timeline *out, const struct trace_run *from)
{
    AUTO_TOLD struct told t = { 0 };
    int rc = tell(&t, from);
    if (rc < 0)
        return rc;
    if (says_nothing(&t, from))
        return 1;
    struct timeline_run *r = timeline_add(out);
    return r ? fill_run(r, from, &t) : -ENOMEM;
}

int trace_to_timeline(struct timeline *out, const struct trace *t, struct err *e)
{
    int left_out = 0;
    for (size_t i = 0; i < t->n; i++) {
        int rc = add_to_timeline(out, &t->runs[i]);
        if (rc == -EPROTO)
            return err_set(e, rc, "run %zu of the trace: 'system', 'hyper' or 'results' is no JSON object", i);
        if (rc < 0)
            return err_sys(e, rc, "cannot keep the timeline");
        left_out += rc;
    }
    return left_out;
}
