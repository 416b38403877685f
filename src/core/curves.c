#include "core/curves.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

enum { CURVES_EPOCHS_MAX = 100000 };

/* Reading: the lines as far as they were read. */
struct reader {
    struct curves c;
    size_t cap;
    json_t *hyper;  /* the header's; NULL: it has none, so the lines say what there is */
    json_t *hypers; /* of each configuration */
    const char *name;
    size_t line;
    struct err *e;
};

#define FAULT(r, fmt, ...)                                                                                             \
    err_set((r)->e, -EINVAL, "'%s' line %zu: " fmt, (r)->name, (r)->line __VA_OPT__(, ) __VA_ARGS__)

static int out_of_memory(struct reader *r)
{
    return err_sys(r->e, -ENOMEM, "cannot read '%s'", r->name);
}

static void curve_done(struct curve *c)
{
    free(c->values);
    free(c->seconds);
    free(c->joules);
}

void curves_done(struct curves *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        curve_done(&c->v[i]);
    free(c->v);
    free(c->metric);
    space_done(&c->space);
    *c = (struct curves){ 0 };
}

/* --- a line --- */

static int read_head(struct reader *r, const json_t *j)
{
    const char *format = json_string_value(json_object_get(j, "format"));
    const char *metric = json_string_value(json_object_get(j, "metric"));
    const char *direction = json_string_value(json_object_get(j, "direction"));
    json_int_t epochs = json_integer_value(json_object_get(j, "epochs"));
    json_t *hyper = json_object_get(j, "hyper");
    if (!format || strcmp(format, "curves") != 0)
        return FAULT(r,
                     "curves begin with {\"format\":\"curves\",\"metric\":…,\"direction\":…,\"epochs\":…,\"hyper\":…}");
    if (!metric)
        return FAULT(r, "'metric' must be a name");
    if (!direction || (strcmp(direction, "min") != 0 && strcmp(direction, "max") != 0))
        return FAULT(r, "'direction' must be \"min\" or \"max\"");
    if (epochs < 1 || epochs > CURVES_EPOCHS_MAX)
        return FAULT(r, "'epochs' must be a whole number from 1 to %d", CURVES_EPOCHS_MAX);
    if (hyper && !json_is_object(hyper))
        return FAULT(r, "'hyper' must be an object, as a config's 'hyperParameters'");
    r->c.metric = strdup(metric);
    r->c.maximise = strcmp(direction, "max") == 0;
    r->c.epochs = (int)epochs;
    r->hyper = json_incref(hyper);
    return r->c.metric ? 0 : out_of_memory(r);
}

static int read_numbers(struct reader *r, const json_t *line, const char *key, bool may_end, double **out)
{
    const json_t *list = json_object_get(line, key);
    size_t n = json_array_size(list);
    double *v = calloc(n + 1, sizeof *v);
    if (!v)
        return out_of_memory(r);
    *out = v;
    bool ended = false;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, i);
        if (!json_is_number(x) && !json_is_null(x))
            return FAULT(r, "'%s' must hold numbers%s", key, may_end ? " or null" : "");
        if (!may_end && !(json_number_value(x) >= 0 && json_is_number(x)))
            return FAULT(r, "'%s' must hold numbers that are not negative", key);
        ended |= json_is_null(x);
        v[i] = ended ? (double)NAN : json_number_value(x);
    }
    return 0;
}

static int read_prices(struct reader *r, const json_t *line, const char *key, int n, double **out)
{
    const json_t *list = json_object_get(line, key);
    if (!list || json_is_null(list))
        return 0;
    if (json_array_size(list) != (size_t)n)
        return FAULT(r, "'%s' must be a list of %d numbers, as 'values' is", key, n);
    return read_numbers(r, line, key, false, out);
}

static int read_curve(struct reader *r, const json_t *line, struct curve *c)
{
    size_t n = json_array_size(json_object_get(line, "values"));
    if (n < 1 || n > (size_t)r->c.epochs)
        return FAULT(r, "'values' must be a list of 1 to %d numbers", r->c.epochs);
    c->n = (int)n;
    int rc = read_numbers(r, line, "values", true, &c->values);
    if (rc == 0)
        rc = read_prices(r, line, "seconds", c->n, &c->seconds);
    if (rc == 0)
        rc = read_prices(r, line, "joules", c->n, &c->joules);
    return rc;
}

static int read_configuration(struct reader *r, const json_t *line)
{
    json_t *hyper = json_object_get(line, "hyper");
    if (json_object_size(hyper) == 0)
        return FAULT(r, "'hyper' must be an object of hyperparameters");
    struct curve *grown = array_more(r->c.v, r->c.n, &r->cap, sizeof *grown);
    if (!grown)
        return out_of_memory(r);
    r->c.v = grown;
    grown[r->c.n] = (struct curve){ 0 };
    int rc = read_curve(r, line, &grown[r->c.n++]);
    if (rc == 0 && json_array_append(r->hypers, hyper) < 0)
        rc = out_of_memory(r);
    return rc;
}

static int read_line(struct reader *r, const char *text, size_t len)
{
    json_error_t why;
    AUTO_JSON json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(j))
        return FAULT(r, "each line is a JSON object%s%s", j ? "" : ": ", j ? "" : why.text);
    return r->c.metric ? read_configuration(r, j) : read_head(r, j);
}

static int read_lines(struct reader *r, const char *text, size_t len)
{
    int rc = 0;
    for (const char *at = text, *end = text + len; rc == 0 && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        r->line++;
        if (n > strspn(at, " \t\r") || (n > 0 && memchr(at, '\0', n)))
            rc = read_line(r, at, n);
        at = newline ? newline + 1 : end;
    }
    if (rc == 0 && r->c.n == 0)
        rc = err_set(r->e, -EINVAL, "'%s' holds no curve", r->name);
    return rc;
}

/* --- the space --- */

/* Rounded values may lie just past the ends, and what was drawn as a real number may be whole at both. */
static void widen(struct dim *d, const json_t *value)
{
    if (!json_is_number(value) || (d->kind != DIM_REAL && d->kind != DIM_INTEGER))
        return;
    double x = json_number_value(value);
    if (d->log && x <= 0)
        return;
    if (x != floor(x) || fabs(x) > VALUE_EXACT_MAX)
        d->kind = DIM_REAL;
    d->min = fmin(d->min, x);
    d->max = fmax(d->max, x);
}

static int make_dims(struct reader *r)
{
    int rc = 0;
    AUTO_JSON json_t *root = json_object();
    struct json_doc doc = { .root = root, .text = (char *)"", .name = (char *)r->name };
    if (!r->hyper)
        r->hyper = space_points_dims(&doc, "hyper", r->hypers, r->e, &rc);
    if (rc < 0)
        return rc;
    if (json_object_set(root, "hyperParameters", r->hyper) < 0)
        return out_of_memory(r);
    rc = space_parse(&r->c.space, &doc, r->e);
    for (size_t i = 0; rc == 0 && i < r->c.n; i++)
        for (size_t d = 0; d < r->c.space.n_dims; d++)
            widen(&r->c.space.dims[d], json_object_get(json_array_get(r->hypers, i), r->c.space.dims[d].name));
    return rc;
}

static int by_bytes(const void *a, const void *b)
{
    const struct point *const *x = a, *const *y = b;
    int c = memcmp(*x, *y, sizeof **x);
    return c ? c : (*x > *y) - (*x < *y);
}

/* Of configurations that are there more than once the first stays. */
static void drop_repeats(struct curves *c, struct point *points, const struct point **sorted)
{
    qsort(sorted, c->n, sizeof *sorted, by_bytes);
    for (size_t i = 1, first = 0; i < c->n; i++) {
        if (memcmp(sorted[first], sorted[i], sizeof **sorted) != 0) {
            first = i;
            continue;
        }
        struct curve *of = &c->v[sorted[i] - points];
        curve_done(of);
        *of = (struct curve){ 0 };
    }
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->v[i].values)
            continue;
        points[kept] = points[i];
        c->v[kept++] = c->v[i];
    }
    c->repeats = c->n - kept;
    c->n = kept;
}

static int make_points(struct reader *r)
{
    struct curves *c = &r->c;
    AUTO_FREE struct point *points = calloc(c->n, sizeof *points);
    AUTO_FREE const struct point **sorted = calloc(c->n, sizeof *sorted);
    if (!points || !sorted)
        return out_of_memory(r);
    free(c->space.points); /* the header may list some: the lines are what there is */
    c->space.points = NULL;
    c->space.n_points = 0;
    for (size_t i = 0; i < c->n; i++) {
        sorted[i] = &points[i];
        if (space_point_parse(&c->space, json_array_get(r->hypers, i), NULL, &points[i]) < 0)
            return err_set(r->e, -EINVAL,
                           "'%s': configuration %zu has a hyperparameter that the first line does not allow", r->name,
                           i + 1);
    }
    drop_repeats(c, points, sorted);
    return space_list_points(&c->space, points, c->n) < 0 ? out_of_memory(r) : 0;
}

static void find_worst(struct curves *c)
{
    c->worst = NAN;
    for (size_t i = 0; i < c->n; i++)
        for (int k = 0; k < c->v[i].n; k++)
            c->worst = c->maximise ? fmin(c->worst, c->v[i].values[k]) : fmax(c->worst, c->v[i].values[k]);
}

int curves_parse(struct curves *out, const char *name, const char *text, size_t len, struct err *e)
{
    struct reader r = { .name = name, .e = e, .hypers = json_array() };
    int rc = r.hypers ? read_lines(&r, text, len) : out_of_memory(&r);
    if (rc == 0)
        rc = make_dims(&r);
    if (rc == 0)
        rc = make_points(&r);
    json_decref(r.hyper);
    json_decref(r.hypers);
    if (rc < 0) {
        curves_done(&r.c);
        return rc;
    }
    find_worst(&r.c);
    *out = r.c;
    return 0;
}

/* --- what it says --- */

double curves_value(const struct curves *c, const struct curve *of, int epoch)
{
    double x = of->values[epoch - 1];
    return isnan(x) ? c->worst : x;
}

static double best_of(const struct curves *c, const struct curve *of)
{
    double best = curves_value(c, of, 1);
    for (int k = 2; k <= of->n; k++)
        best = c->maximise ? fmax(best, curves_value(c, of, k)) : fmin(best, curves_value(c, of, k));
    return best;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int curves_scale(const struct curves *c, struct curves_scale *out)
{
    AUTO_FREE double *bests = calloc(c->n, sizeof *bests);
    if (!bests)
        return -ENOMEM;
    for (size_t i = 0; i < c->n; i++)
        bests[i] = best_of(c, &c->v[i]);
    qsort(bests, c->n, sizeof *bests, by_value);
    *out = (struct curves_scale){ .best = bests[c->maximise ? c->n - 1 : 0],
                                  .median = (bests[(c->n - 1) / 2] + bests[c->n / 2]) / 2 };
    return 0;
}

/* --- writing --- */

/* Of a range its two ends. */
static json_t *range_json(const struct space *sp, size_t dim)
{
    struct point ends[2] = { { { 0 } }, { { 0 } } };
    ends[1].x[dim] = (double)sp->dims[dim].n - 1;
    struct value a = space_value(sp, &ends[0], dim), b = space_value(sp, &ends[1], dim);
    bool up = a.number < b.number;
    if (sp->dims[dim].n == 1)
        return json_pack("[o]", value_to_json(&a));
    return json_pack("{s:o, s:o}", "min", value_to_json(up ? &a : &b), "max", value_to_json(up ? &b : &a));
}

static json_t *dim_json(const struct dim *d)
{
    if (d->kind == DIM_INTEGER || d->kind == DIM_REAL) {
        bool whole = d->kind == DIM_INTEGER;
        return json_pack("{s:o, s:o, s:s}", "min", whole ? json_integer((json_int_t)d->min) : json_real(d->min), "max",
                         whole ? json_integer((json_int_t)d->max) : json_real(d->max), "scale",
                         d->log ? "log" : "linear");
    }
    json_t *values = json_array();
    for (uint64_t i = 0; values && i < d->n; i++) {
        if (json_array_append_new(values, value_to_json(&d->values[i])) < 0) {
            json_decref(values);
            return NULL;
        }
    }
    return values;
}

json_t *curves_hyper(const struct curves *c)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < c->space.n_dims; i++) {
        const struct dim *d = &c->space.dims[i];
        if (json_object_set_new(j, d->name, d->kind == DIM_RANGE ? range_json(&c->space, i) : dim_json(d)) < 0) {
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

static void put_numbers(struct buf *b, const char *key, const double *v, int n)
{
    if (!v)
        return;
    buf_printf(b, ",\"%s\":[", key);
    for (int i = 0; i < n; i++) {
        if (i)
            buf_putc(b, ',');
        num_put(b, v[i]); /* null where it diverged */
    }
    buf_putc(b, ']');
}

void curves_put_head(struct buf *b, const char *metric, bool maximise, int epochs, const json_t *hyper)
{
    buf_puts(b, "{\"format\":\"curves\",\"metric\":");
    json_put_string(b, metric);
    buf_printf(b, ",\"direction\":\"%s\",\"epochs\":%d", maximise ? "max" : "min", epochs);
    if (hyper) {
        buf_puts(b, ",\"hyper\":");
        json_put(b, hyper, JSON_STYLE_COMPACT);
    }
    buf_puts(b, "}\n");
}

void curves_put(struct buf *b, const json_t *hyper, const struct curve *c)
{
    buf_puts(b, "{\"hyper\":");
    json_put(b, hyper, JSON_STYLE_COMPACT);
    put_numbers(b, "values", c->values, c->n);
    put_numbers(b, "seconds", c->seconds, c->n);
    put_numbers(b, "joules", c->joules, c->n);
    buf_puts(b, "}\n");
}
