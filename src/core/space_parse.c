/* The space as the config writes it. A fault names its file, line and key, so every function here carries where it is. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "core/space.h"

enum { SPACE_MAX_VALUES = 4096 };      /* of one list: repeats are found by comparing all pairs */
static const double digits_max = 1e15; /* so many decimal digits survive a double with some to spare */

/* --- values --------------------------------------------------------------------------------------------------------- */

/* Where in the document a value stands, for errors. */
struct at {
    const struct json_doc *doc;
    struct err *e;
    char path[256];
};

#define FAULT(at, ...) json_doc_err((at)->doc, (at)->path, (at)->e, -EINVAL, __VA_ARGS__)

static struct at at_key(const struct at *at, const char *key)
{
    struct at below = { .doc = at->doc, .e = at->e };
    (void)snprintf(below.path, sizeof below.path, "%s/%s", at->path, key); /* cut: a message needs no more */
    return below;
}

static struct at at_index(const struct at *at, size_t i)
{
    char key[24];
    (void)snprintf(key, sizeof key, "%zu", i);
    return at_key(at, key);
}

static const char *type_name(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

/* Texts that a C or Java program would read as a number that no training survives. */
static bool is_not_finite(const char *text)
{
    char *end;
    double x = strtod(text, &end);
    return *text && !*end && !isfinite(x);
}

static int read_text(const struct at *at, const char *text, struct value *out)
{
    if (!*text)
        return FAULT(at, "must not be empty");
    if (strlen(text) >= VALUE_TEXT_MAX)
        return FAULT(at, "is longer than %d bytes", VALUE_TEXT_MAX - 1);
    if (has_control(text))
        return FAULT(at, "must not contain control characters");
    if (is_not_finite(text))
        return FAULT(at, "must be finite, not '%s'", text);
    *out = value_of_text(text);
    return 0;
}

static int read_number(const struct at *at, const json_t *j, double *out)
{
    if (!json_is_number(j))
        return FAULT(at, "must be a number, not %s", type_name(j));
    double x = json_number_value(j);
    if (json_is_integer(j) && fabs(x) >= VALUE_EXACT_MAX)
        return FAULT(at, "must be between -2^53 and 2^53, or a string");
    *out = x + 0.0;
    return 0;
}

static int read_value(const struct at *at, const json_t *j, struct value *out)
{
    if (json_is_string(j))
        return read_text(at, json_string_value(j), out);
    if (json_is_boolean(j))
        return FAULT(at, "must be a string or a number; write \"%s\"", type_name(j));
    if (!json_is_number(j))
        return FAULT(at, "must be a string or a number, not %s", type_name(j));
    double x = 0;
    int rc = read_number(at, j, &x);
    if (rc == 0)
        *out = value_of_number(x);
    return rc;
}

static int check_repeat(const struct at *at, const struct value *values, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (value_equal(&values[k], &values[i]))
            return FAULT(at, "repeats %s: write each value once", values[i].text);
    return 0;
}

static int check_list(const struct at *at, const json_t *list)
{
    if (!json_is_array(list))
        return FAULT(at, "must be a list such as [16, 8], not %s", type_name(list));
    if (json_array_size(list) == 0)
        return FAULT(at, "is empty: it needs at least one value");
    if (json_array_size(list) > SPACE_MAX_VALUES)
        return FAULT(at, "has %zu values, more than the %d that a list may have", json_array_size(list),
                     SPACE_MAX_VALUES);
    return 0;
}

/* *values goes to the caller even when a later value is wrong: space_done() frees it with the rest. */
static int read_list(const struct at *at, const json_t *list, struct value **values, size_t *n)
{
    int rc = check_list(at, list);
    if (rc < 0)
        return rc;
    *n = json_array_size(list);
    *values = calloc(*n, sizeof **values);
    if (!*values)
        return err_sys(at->e, -ENOMEM, "'%s'", at->doc->name);
    for (size_t i = 0; i < *n; i++) {
        struct at here = at_index(at, i);
        rc = read_value(&here, json_array_get(list, i), &(*values)[i]);
        if (rc == 0)
            rc = check_repeat(&here, *values, i);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* A name becomes part of an argument ("--name", "name=value") and of a path in errors. */
static int check_name(const struct at *parent, const char *name)
{
    if (!*name)
        return FAULT(parent, "has an entry without a name");
    if (has_control(name))
        return FAULT(parent, "has a name with control characters");
    if (strlen(name) >= SPACE_NAME_MAX)
        return FAULT(parent, "has a name longer than %d bytes: '%.80s…'", SPACE_NAME_MAX - 1, name);
    if (*name == '-' || strpbrk(name, " =/\"'\\,"))
        return FAULT(parent, "has a name that cannot be an argument's: '%s'", name);
    return 0;
}

/* --- hyperparameters ------------------------------------------------------------------------------------------------ */

static int read_dim_values(const struct at *at, const json_t *j, struct dim *d)
{
    struct at here = at_key(at, "values");
    size_t n = 0;
    d->kind = DIM_LIST;
    int rc = read_list(&here, json_object_get(j, "values"), &d->values, &n);
    d->n = n;
    return rc;
}

static int count_range(const struct at *at, double end, struct dim *d)
{
    double places = fmax(space_decimals(end), fmax(space_decimals(d->start), space_decimals(d->step)));
    double unit = pow(10, places);
    double largest = fmax(fmax(fabs(d->start), fabs(end)), fabs(d->step)) * unit;
    if (places > 22 || !(largest <= digits_max)) /* 10^22 is the last power that a double holds exactly */
        return FAULT(at, "needs more than 15 digits to count through: use 'values', or 'min' and 'max'");
    if (d->step == 0)
        return FAULT(at, "must not have a step of 0");
    if (end == d->start)
        return FAULT(at, "is empty: its end is excluded");
    if ((end > d->start) != (d->step > 0))
        return FAULT(at, "is empty: its step leads away from its end");
    int64_t from = llround(d->start * unit);
    int64_t by = llround(d->step * unit);
    int64_t to = llround(end * unit);
    d->n = (uint64_t)((to - from + by + (by > 0 ? -1 : 1)) / by);
    return 0;
}

static int read_dim_range(const struct at *at, const json_t *j, struct dim *d)
{
    struct at here = at_key(at, "range");
    const json_t *range = json_object_get(j, "range");
    size_t n = json_array_size(range); /* 0 when it is no list */
    if (n < 2 || n > 3)
        return FAULT(&here, "must be [start, end] or [start, end, step]");
    double v[3] = { 0, 0, 1 };
    for (size_t i = 0; i < n; i++) {
        struct at element = at_index(&here, i);
        int rc = read_number(&element, json_array_get(range, i), &v[i]);
        if (rc < 0)
            return rc;
    }
    d->kind = DIM_RANGE;
    d->start = v[0];
    d->step = v[2];
    return count_range(&here, v[1], d);
}

static int read_bound(const struct at *at, const json_t *j, const char *key, double *out)
{
    const json_t *bound = json_object_get(j, key);
    if (!bound)
        return FAULT(at, "needs both 'min' and 'max'; '%s' is missing", key);
    struct at here = at_key(at, key);
    return read_number(&here, bound, out);
}

static int read_scale(const struct at *at, const json_t *j, struct dim *d)
{
    const json_t *scale = json_object_get(j, "scale");
    if (!scale)
        return 0;
    struct at here = at_key(at, "scale");
    const char *text = json_string_value(scale);
    d->log = text && strcmp(text, "log") == 0;
    if (!text || (!d->log && strcmp(text, "linear") != 0))
        return FAULT(&here, "must be \"log\" or \"linear\"");
    if (d->log && d->min <= 0)
        return FAULT(&here, "can be \"log\" only when 'min' is above 0");
    return 0;
}

/* From `min` on, `max` included where a step meets it. */
static int read_step(const struct at *at, const json_t *j, struct dim *d)
{
    struct at here = at_key(at, "step");
    int rc = read_number(&here, json_object_get(j, "step"), &d->step);
    if (rc < 0)
        return rc;
    if (!(d->step > 0))
        return FAULT(&here, "must be above 0");
    if (d->log)
        return FAULT(&here, "does not go with a log scale: use 'values'");
    d->kind = DIM_RANGE;
    d->start = d->min;
    return count_range(&here, d->max + d->step / 2, d);
}

static int read_dim_bounds(const struct at *at, const json_t *j, struct dim *d)
{
    int rc = read_bound(at, j, "min", &d->min);
    if (rc == 0)
        rc = read_bound(at, j, "max", &d->max);
    if (rc < 0)
        return rc;
    char min[NUM_TEXT_MAX];
    char max[NUM_TEXT_MAX];
    if (d->min >= d->max)
        return FAULT(at, "must have 'min' below 'max', not %s and %s", num_print(d->min, min), num_print(d->max, max));
    bool whole = json_is_integer(json_object_get(j, "min")) && json_is_integer(json_object_get(j, "max"));
    d->kind = whole ? DIM_INTEGER : DIM_REAL;
    rc = read_scale(at, j, d);
    return rc == 0 && json_object_get(j, "step") ? read_step(at, j, d) : rc;
}

static int check_keys(const struct at *at, const json_t *j)
{
    static const char *const known[] = { "values", "range", "min", "max", "scale", "step", "affects", "when" };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)j, key, value)
    {
        size_t i = 0;
        while (i < ARRAY_LEN(known) && strcmp(key, known[i]) != 0)
            i++;
        if (i < ARRAY_LEN(known))
            continue;
        if (has_control(key))
            return FAULT(at, "has an unknown key with control characters");
        struct at here = at_key(at, key);
        const char *near = suggest_nearest(key, known, ARRAY_LEN(known));
        if (near)
            return FAULT(&here, "is unknown; did you mean '%s'?", near);
        return FAULT(&here, "is unknown; there are values, range, min, max, scale, step, affects and when");
    }
    return 0;
}

static int read_affects(const struct at *at, const json_t *j, struct dim *d)
{
    const json_t *affects = json_object_get(j, "affects");
    if (!affects)
        return 0;
    const char *text = json_string_value(affects);
    struct at here = at_key(at, "affects");
    if (!text || strcmp(text, "speed") != 0)
        return FAULT(&here, "must be \"speed\"");
    d->affects_speed = true;
    return 0;
}

static int read_dim_object(const struct at *at, const json_t *j, struct dim *d)
{
    bool values = json_object_get(j, "values") != NULL;
    bool range = json_object_get(j, "range") != NULL;
    bool bounds = json_object_get(j, "min") || json_object_get(j, "max");
    int rc = check_keys(at, j);
    if (rc == 0)
        rc = read_affects(at, j, d);
    if (rc < 0)
        return rc;
    if (values + range + bounds != 1)
        return FAULT(at, "must have exactly one of 'values', 'range', or 'min' and 'max'");
    if (!bounds && (json_object_get(j, "scale") || json_object_get(j, "step")))
        return FAULT(at, "can have 'scale' and 'step' only with 'min' and 'max'");
    return values ? read_dim_values(at, j, d) : range ? read_dim_range(at, j, d) : read_dim_bounds(at, j, d);
}

static int read_fixed(const struct at *at, const json_t *j, struct dim *d)
{
    d->kind = DIM_LIST;
    d->values = calloc(1, sizeof *d->values);
    d->n = d->values != NULL;
    return d->n ? read_value(at, j, d->values) : err_sys(at->e, -ENOMEM, "'%s'", at->doc->name);
}

static int read_dim(const struct at *at, const json_t *j, struct dim *d)
{
    if (json_is_object(j))
        return read_dim_object(at, j, d);
    if (json_is_number(j) || json_is_string(j))
        return read_fixed(at, j, d);
    if (!json_is_array(j))
        return FAULT(at,
                     "must be a value, a list such as [32, 64], or an object with 'values', 'range', "
                     "or 'min' and 'max'; not %s",
                     type_name(j));
    size_t n = 0;
    d->kind = DIM_LIST;
    int rc = read_list(at, j, &d->values, &n);
    d->n = n;
    return rc;
}

static int check_new_dim(const struct at *parent, const struct space *s, const char *name)
{
    int rc = check_name(parent, name);
    if (rc < 0)
        return rc;
    if (s->n_dims == SPACE_MAX_DIMS)
        return FAULT(parent, "has more than %d entries", SPACE_MAX_DIMS);
    for (size_t i = 0; i < s->n_dims; i++)
        if (suggest_same(s->dims[i].name, name))
            return FAULT(parent, "has both '%s' and '%s', which are the same argument", s->dims[i].name, name);
    return 0;
}

static int read_dims(const struct at *at, const json_t *j, struct space *s)
{
    if (j && !json_is_object(j))
        return FAULT(at, "must be an object, not %s", type_name(j));
    if (json_object_size(j) == 0)
        return FAULT(at, "must name at least one hyperparameter: the space is empty");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)j, name, value)
    {
        int rc = check_new_dim(at, s, name);
        if (rc < 0)
            return rc;
        struct dim *d = &s->dims[s->n_dims++];
        (void)snprintf(d->name, sizeof d->name, "%s", name);
        d->affects_speed = space_is_batch(name);
        struct at here = at_key(at, name);
        rc = read_dim(&here, value, d);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Points that are listed: {"points": [{…}, …]}. A list of plain values is a hyperparameter of that name. */
static const json_t *listed_points(const json_t *hyper)
{
    const json_t *points = json_object_get(hyper, "points");
    return json_is_object(json_array_get(points, 0)) ? points : NULL;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(*(const struct point *const *)a, *(const struct point *const *)b, sizeof(struct point));
}

/* Each once: a search proposes none twice. */
static int check_distinct(const struct at *at, const struct point *points, size_t n)
{
    AUTO_FREE const struct point **sorted = calloc(n, sizeof *sorted);
    if (!sorted)
        return err_sys(at->e, -ENOMEM, "'%s'", at->doc->name);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &points[i];
    qsort(sorted, n, sizeof *sorted, by_bytes);
    for (size_t i = 1; i < n; i++) {
        if (memcmp(sorted[i - 1], sorted[i], sizeof **sorted) != 0)
            continue;
        size_t a = (size_t)(sorted[i - 1] - points), b = (size_t)(sorted[i] - points);
        struct at here = at_index(at, a > b ? a : b);
        return FAULT(&here, "repeats another point: write each once");
    }
    return 0;
}

static int take_points(const struct at *at, const json_t *list, struct space *s)
{
    size_t n = json_array_size(list);
    AUTO_FREE struct point *points = calloc(n, sizeof *points);
    if (!points)
        return err_sys(at->e, -ENOMEM, "'%s'", at->doc->name);
    for (size_t i = 0; i < n; i++) {
        struct at here = at_index(at, i);
        if (space_point_parse(s, json_array_get(list, i), NULL, &points[i]) < 0)
            return FAULT(&here, "holds a value that is neither a string nor a number");
    }
    int rc = check_distinct(at, points, n);
    if (rc == 0 && (rc = space_list_points(s, points, n)) < 0)
        rc = err_sys(at->e, rc, "'%s'", at->doc->name);
    return rc;
}

static int read_points(const struct at *parent, const json_t *hyper, const json_t *list, struct space *s)
{
    struct at at = at_key(parent, "points");
    if (json_object_size(hyper) != 1)
        return FAULT(&at, "must stand alone: points name all their hyperparameters");
    int rc;
    AUTO_JSON json_t *dims = space_points_dims(at.doc, at.path, list, at.e, &rc);
    if (rc == 0)
        rc = read_dims(&at, dims, s);
    return rc < 0 ? rc : take_points(&at, list, s);
}

/* --- system parameters ---------------------------------------------------------------------------------------------- */

static const struct knob_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < KNOB_PROPERTY; i++)
        if (strcmp(name, knob_kinds[i].name) == 0)
            return &knob_kinds[i];
    return space_is_property(name) ? &knob_kinds[KNOB_PROPERTY] : space_is_count(name) ? &knob_kinds[KNOB_COUNT] : NULL;
}

static int unknown_knob(const struct at *at, const char *name)
{
    const char *known[KNOB_PROPERTY];
    for (size_t i = 0; i < KNOB_PROPERTY; i++)
        known[i] = knob_kinds[i].name;
    const char *near = suggest_nearest(name, known, KNOB_PROPERTY);
    if (near)
        return FAULT(at, "is no system parameter; did you mean '%s'?", near);
    return FAULT(
        at, "is no system parameter; there are cores, memory, executors, frequency, power_cap, roles.* and spark.*");
}

static int check_knob(const struct at *at, struct knob *k)
{
    char bounds[KNOB_BOUNDS_MAX];
    for (size_t i = 0; i < k->n; i++) {
        struct at here = at_index(at, i);
        if (k->kind->id != KNOB_PROPERTY)
            value_make_number(&k->values[i]);
        if (!knob_kind_allows(k->kind, &k->values[i]))
            return FAULT(&here, "must be %s, not '%s'", knob_kind_bounds(k->kind, bounds), k->values[i].text);
    }
    return 0;
}

static int read_knob(const struct at *parent, const char *name, const json_t *j, struct space *s)
{
    int rc = check_name(parent, name);
    if (rc < 0)
        return rc;
    if (s->n_knobs == SPACE_MAX_KNOBS)
        return FAULT(parent, "has more than %d entries", SPACE_MAX_KNOBS);
    struct at here = at_key(parent, name);
    const struct knob_kind *kind = find_kind(name);
    if (!kind)
        return unknown_knob(&here, name);
    struct knob *k = &s->knobs[s->n_knobs++];
    k->kind = kind;
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    rc = read_list(&here, j, &k->values, &k->n);
    return rc < 0 ? rc : check_knob(&here, k);
}

static int read_knobs(const struct at *at, const json_t *j, struct space *s)
{
    if (!j)
        return 0;
    if (!json_is_object(j))
        return FAULT(at, "must be an object, not %s", type_name(j));
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)j, name, value)
    {
        int rc = read_knob(at, name, value, s);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int space_parse(struct space *out, const struct json_doc *doc, struct err *e)
{
    struct space s = { 0 };
    struct at dims = { .doc = doc, .e = e, .path = "hyperParameters" };
    struct at knobs = { .doc = doc, .e = e, .path = "systemParameters" };
    const json_t *hyper = json_object_get(doc->root, dims.path), *points = listed_points(hyper);
    int rc = points ? read_points(&dims, hyper, points, &s) : read_dims(&dims, hyper, &s);
    if (rc == 0)
        rc = read_knobs(&knobs, json_object_get(doc->root, knobs.path), &s);
    if (rc == 0)
        rc = space_read_rules(&s, doc, e);
    if (rc == 0)
        rc = space_read_first(&s, doc, e);
    if (rc < 0) {
        space_done(&s);
        return rc;
    }
    *out = s;
    return 0;
}
