#include "store/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/own.h"
#include "monitoring/event_names.h"

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

void trace_done(struct trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        run_done(&t->runs[i]);
    free(t->runs);
    strv_done(&t->features);
    *t = (struct trace){ 0 };
}

struct trace_run *trace_add(struct trace *t)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        struct trace_run *more = realloc(t->runs, cap * sizeof *more);
        if (!more)
            return NULL;
        t->runs = more;
        t->cap = cap;
    }
    struct trace_run *r = &t->runs[t->n++];
    *r = (struct trace_run){ .startup_s = NAN };
    return r;
}

struct trace_epoch trace_no_epoch(void)
{
    return (struct trace_epoch){ NAN, NAN, NAN, NAN, NAN, NAN, NAN };
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
    char number[NUM_TEXT_MAX];
    buf_putc(&b, '{');
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        if (b.len > 1)
            buf_putc(&b, ',');
        json_put_string(&b, keys[i]);
        buf_putc(&b, ':');
        buf_puts(&b, num_print(values[i], number));
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

static int fill_settings(struct timeline_run *r, const struct trace_run *from)
{
    AUTO_JSON json_t *system = parse_object(from->system);
    AUTO_JSON json_t *hyper = parse_object(from->hyper);
    AUTO_JSON json_t *results = parse_object(from->results);
    if (!system || !hyper || !results)
        return -EPROTO;
    double cores = number_of(json_object_get(system, "cores"));
    r->cores = cores >= 1 && cores <= 1e6 ? (int)cores : 0;
    r->memory_gb = number_of(json_object_get(system, "memory"));
    r->batch = batch_of(hyper);
    const char *log = json_string_value(json_object_get(results, "log"));
    r->log = log ? strdup(log) : NULL;
    return log && !r->log ? -ENOMEM : 0;
}

static int fill_run(struct timeline_run *r, const struct trace_run *from)
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
    }
    return fill_settings(r, from);
}

int trace_to_timeline(struct timeline *out, const struct trace *t, struct err *e)
{
    for (size_t i = 0; i < t->n; i++) {
        struct timeline_run *r = timeline_add(out);
        int rc = r ? fill_run(r, &t->runs[i]) : -ENOMEM;
        if (rc == -EPROTO)
            return err_set(e, rc, "run %zu of the trace: 'system', 'hyper' or 'results' is no JSON object", i);
        if (rc < 0)
            return err_sys(e, rc, "cannot keep the timeline");
    }
    return 0;
}
