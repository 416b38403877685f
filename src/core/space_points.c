/* Dimensions of points that are listed: what holds all of a column's values, told as the config would write it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "core/space.h"

/* Numbers further apart than this many times are foretold better by their logs. */
static const double log_from = 30;

struct column {
    bool numbers, whole;
    double min, max;
};

static struct column column_of(const json_t *points, const char *name)
{
    struct column c = { .numbers = true, .whole = true, .min = INFINITY, .max = -INFINITY };
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *v = json_object_get(json_array_get(points, i), name);
        c.numbers = c.numbers && json_is_number(v);
        c.whole = c.whole && json_is_integer(v);
        c.min = fmin(c.min, json_number_value(v));
        c.max = fmax(c.max, json_number_value(v));
    }
    return c;
}

static json_t *bounds(const struct column *c)
{
    const char *scale = c->min > 0 && c->max / c->min >= log_from ? "log" : "linear";
    if (c->whole)
        return json_pack("{s:I, s:I, s:s}", "min", (json_int_t)c->min, "max", (json_int_t)c->max, "scale", scale);
    return json_pack("{s:f, s:f, s:s}", "min", c->min, "max", c->max, "scale", scale);
}

static bool has(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

/* NULL: memory. */
static json_t *distinct(const json_t *points, const char *name)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(points); i++) {
        json_t *v = json_object_get(json_array_get(points, i), name);
        if (!has(list, v) && json_array_append(list, v) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int check_row(const struct json_doc *doc, const char *path, const json_t *first, const json_t *row, size_t i,
                     struct err *e)
{
    char where[96];
    (void)snprintf(where, sizeof where, "%s/%zu", path, i);
    if (!json_is_object(row) || json_object_size(row) == 0)
        return json_doc_err(doc, where, e, -EINVAL, "must be an object of hyperparameters: {\"lr\": 0.1, …}");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)first, name, value)
    {
        if (!json_object_get(row, name))
            return json_doc_err(doc, where, e, -EINVAL, "lacks '%s', which the first point has", name);
    }
    if (json_object_size(row) != json_object_size(first))
        return json_doc_err(doc, where, e, -EINVAL, "has hyperparameters that the first point lacks");
    return 0;
}

static int check_rows(const struct json_doc *doc, const char *path, const json_t *points, struct err *e)
{
    enum { POINTS_MAX = 100000 };
    size_t n = json_array_size(points);
    if (n == 0)
        return json_doc_err(doc, path, e, -EINVAL, "must be a list of points: [{\"lr\": 0.1, …}, …]");
    if (n > POINTS_MAX)
        return json_doc_err(doc, path, e, -EINVAL, "has %zu points, more than %d", n, POINTS_MAX);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = check_row(doc, path, json_array_get(points, 0), json_array_get(points, i), i, e);
    return rc;
}

json_t *space_points_dims(const struct json_doc *doc, const char *path, const json_t *points, struct err *e,
                          int *out_rc)
{
    *out_rc = check_rows(doc, path, points, e);
    json_t *dims = *out_rc == 0 ? json_object() : NULL;
    const char *name;
    json_t *value;
    json_object_foreach(json_array_get(points, 0), name, value)
    {
        struct column c = column_of(points, name);
        bool apart = c.numbers && c.min < c.max;
        if (dims && json_object_set_new(dims, name, apart ? bounds(&c) : distinct(points, name)) < 0) {
            json_decref(dims);
            dims = NULL;
        }
    }
    if (!dims && *out_rc == 0)
        *out_rc = err_sys(e, -ENOMEM, "'%s'", doc->name);
    return dims;
}
