#include "core/space.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/suggest.h"

enum { SPACE_MAX_VALUES = 4096 };                 /* of one list: repeats are found by comparing all pairs */
static const double exact_max = 9007199254740992; /* 2^53: whole numbers up to here are exact in a double */
static const double digits_max = 1e15;            /* so many decimal digits survive a double with some to spare */

const struct knob_kind knob_kinds[] = {
    { KNOB_CORES, "cores", "CPUs", .hot = true, .integer = true, 1, 4096 },
    { KNOB_MEMORY, "memory", "GiB", .hot = false, .integer = false, 0, 65536 },
    { KNOB_EXECUTORS, "executors", "executors", .hot = false, .integer = true, 1, 4096 },
    { KNOB_FREQUENCY, "frequency", "kHz", .hot = true, .integer = true, 100000, 20000000 },
    { KNOB_POWER_CAP, "power_cap", "W", .hot = true, .integer = false, 0, 100000 },
    { KNOB_SPARK, "spark.*", "", .hot = false, .integer = false, -INFINITY, INFINITY },
};

/* --- values --------------------------------------------------------------------------------------------------------- */

struct value value_of_number(double x)
{
    struct value v = { .is_number = true, .number = x + 0.0 }; /* + 0.0: -0 becomes 0 */
    char num[NUM_TEXT_MAX];
    (void)snprintf(v.text, sizeof v.text, "%s", num_print(v.number, num));
    return v;
}

/* Decimal numbers only: strtod alone would take " 0x10", "inf" and "nan" too. */
static bool text_number(const char *text, double *out)
{
    if (!*text || text[strspn(text, "0123456789+-.eE")])
        return false;
    char *end;
    double x = strtod(text, &end);
    if (*end || !isfinite(x))
        return false;
    *out = x + 0.0;
    return true;
}

struct value value_of_text(const char *text)
{
    struct value v = { .number = NAN };
    (void)snprintf(v.text, sizeof v.text, "%s", text);
    v.is_number = text_number(v.text, &v.number);
    return v;
}

json_t *value_to_json(const struct value *v)
{
    if (!v->is_number)
        return json_string(v->text);
    bool whole = floor(v->number) == v->number && fabs(v->number) <= exact_max;
    return whole ? json_integer((json_int_t)v->number) : json_real(v->number);
}

bool value_equal(const struct value *a, const struct value *b)
{
    if (a->is_number && b->is_number)
        return a->number == b->number;
    return a->is_number == b->is_number && strcmp(a->text, b->text) == 0;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

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
    if (json_is_integer(j) && fabs(x) >= exact_max)
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

static bool begins_with(const char *name, const char *prefix)
{
    return strncasecmp(name, prefix, strlen(prefix)) == 0;
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

/* How many decimals the shortest text of x has: 0.001 and 1e-03 have three. */
static int decimals(double x)
{
    char num[NUM_TEXT_MAX];
    const char *exponent = strchr(num_print(x, num), 'e');
    const char *point = strchr(num, '.');
    const char *end = exponent ? exponent : num + strlen(num);
    long n = (point ? end - point - 1 : 0) - (exponent ? strtol(exponent + 1, NULL, 10) : 0);
    return n > 0 ? (int)n : 0;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* A range counts in units of its last decimal, in which start, end and step are whole: 0.1 + 2 * 0.1 is 3 tenths, and one
 * division gives the double that "0.3" reads as, where adding doubles gives 0.30000000000000004. */
static double range_value(const struct dim *d, double i)
{
    double unit = pow(10, max_int(decimals(d->start), decimals(d->step)));
    return (round(d->start * unit) + i * round(d->step * unit)) / unit;
}

static int count_range(const struct at *at, double end, struct dim *d)
{
    int places = max_int(decimals(end), max_int(decimals(d->start), decimals(d->step)));
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
    return read_scale(at, j, d);
}

static int check_keys(const struct at *at, const json_t *j)
{
    static const char *const known[] = { "values", "range", "min", "max", "scale", "affects" };
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
        return FAULT(&here, "is unknown; there are values, range, min, max, scale and affects");
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
    if (!bounds && json_object_get(j, "scale"))
        return FAULT(at, "can have 'scale' only with 'min' and 'max'");
    return values ? read_dim_values(at, j, d) : range ? read_dim_range(at, j, d) : read_dim_bounds(at, j, d);
}

static int read_dim(const struct at *at, const json_t *j, struct dim *d)
{
    if (json_is_object(j))
        return read_dim_object(at, j, d);
    if (!json_is_array(j))
        return FAULT(at,
                     "must be a list such as [32, 64] (one fixed value: [32]), or an object with 'values', 'range', "
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
        d->affects_speed = begins_with(name, "batch");
        struct at here = at_key(at, name);
        rc = read_dim(&here, value, d);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- system parameters ---------------------------------------------------------------------------------------------- */

static const struct knob_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < KNOB_SPARK; i++)
        if (strcmp(name, knob_kinds[i].name) == 0)
            return &knob_kinds[i];
    return strncmp(name, "spark.", 6) == 0 && name[6] ? &knob_kinds[KNOB_SPARK] : NULL;
}

static int unknown_knob(const struct at *at, const char *name)
{
    const char *known[KNOB_SPARK];
    for (size_t i = 0; i < KNOB_SPARK; i++)
        known[i] = knob_kinds[i].name;
    const char *near = suggest_nearest(name, known, KNOB_SPARK);
    if (near)
        return FAULT(at, "is no system parameter; did you mean '%s'?", near);
    return FAULT(at, "is no system parameter; there are cores, memory, executors, frequency, power_cap and spark.*");
}

bool knob_kind_allows(const struct knob_kind *k, const struct value *v)
{
    if (k->id == KNOB_SPARK)
        return true;
    if (!v->is_number || v->number > k->max)
        return false;
    if (k->integer)
        return v->number >= k->min && floor(v->number) == v->number;
    return v->number > k->min;
}

const char *knob_kind_bounds(const struct knob_kind *k, char text[KNOB_BOUNDS_MAX])
{
    char min[NUM_TEXT_MAX];
    char max[NUM_TEXT_MAX];
    num_print(k->min, min);
    num_print(k->max, max);
    if (k->integer)
        (void)snprintf(text, KNOB_BOUNDS_MAX, "a whole number from %s to %s (%s)", min, max, k->unit);
    else
        (void)snprintf(text, KNOB_BOUNDS_MAX, "a number above %s and up to %s (%s)", min, max, k->unit);
    return text;
}

static int check_knob(const struct at *at, struct knob *k)
{
    char bounds[KNOB_BOUNDS_MAX];
    for (size_t i = 0; i < k->n; i++) {
        struct at here = at_index(at, i);
        if (!knob_kind_allows(k->kind, &k->values[i]))
            return FAULT(&here, "must be %s, not '%s'", knob_kind_bounds(k->kind, bounds), k->values[i].text);
        if (k->kind->id != KNOB_SPARK) /* "08" is a fine 8, but no argument for Spark */
            k->values[i] = value_of_number(k->values[i].number);
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
    int rc = read_dims(&dims, json_object_get(doc->root, dims.path), &s);
    if (rc == 0)
        rc = read_knobs(&knobs, json_object_get(doc->root, knobs.path), &s);
    if (rc < 0) {
        space_done(&s);
        return rc;
    }
    *out = s;
    return 0;
}

void space_done(struct space *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SPACE_MAX_DIMS; i++)
        free(s->dims[i].values);
    for (size_t i = 0; i < SPACE_MAX_KNOBS; i++)
        free(s->knobs[i].values);
    *s = (struct space){ 0 };
}

/* --- points --------------------------------------------------------------------------------------------------------- */

uint64_t space_dim_count(const struct dim *d)
{
    switch (d->kind) {
    case DIM_LIST:
    case DIM_RANGE: return d->n;
    case DIM_INTEGER:
        return (uint64_t)((int64_t)d->max - (int64_t)d->min) + 1; /* the difference of doubles may round */
    case DIM_REAL: break;
    }
    return 0;
}

uint64_t space_size(const struct space *s)
{
    uint64_t size = 1;
    for (size_t i = 0; i < s->n_dims; i++) {
        uint64_t n = space_dim_count(&s->dims[i]);
        if (n == 0 || __builtin_mul_overflow(size, n, &size))
            return UINT64_MAX;
    }
    return size;
}

bool space_is_listed(const struct space *s)
{
    for (size_t i = 0; i < s->n_dims; i++)
        if (s->dims[i].kind != DIM_LIST && s->dims[i].kind != DIM_RANGE)
            return false;
    return true;
}

double space_dim_at(const struct dim *d, uint64_t digit)
{
    return d->kind == DIM_INTEGER ? (double)((int64_t)d->min + (int64_t)digit) : (double)digit;
}

struct point space_point_at(const struct space *s, uint64_t index)
{
    struct point p = { 0 };
    for (size_t i = s->n_dims; i-- > 0;) {
        const struct dim *d = &s->dims[i];
        uint64_t n = space_dim_count(d);
        assert(n > 0);
        p.x[i] = space_dim_at(d, index % n);
        index /= n;
    }
    return p;
}

const struct knob *space_knob(const struct space *s, enum knob_id id)
{
    for (size_t i = 0; i < s->n_knobs; i++)
        if (s->knobs[i].kind->id == id)
            return &s->knobs[i];
    return NULL;
}

int space_dim_index(const struct space *s, const char *name)
{
    for (size_t i = 0; i < s->n_dims; i++)
        if (strcmp(s->dims[i].name, name) == 0)
            return (int)i;
    return -1;
}

struct value space_value(const struct space *s, const struct point *p, size_t dim)
{
    assert(dim < s->n_dims);
    const struct dim *d = &s->dims[dim];
    double x = p->x[dim];
    if (d->kind == DIM_LIST) {
        assert(x >= 0 && x < (double)d->n);
        return d->values[(size_t)x];
    }
    return value_of_number(d->kind == DIM_RANGE ? range_value(d, x) : x);
}

json_t *space_point_json(const struct space *s, const struct point *p)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < s->n_dims; i++) {
        struct value v = space_value(s, p, i);
        if (json_object_set_new(j, s->dims[i].name, value_to_json(&v)) < 0) { /* also when the value is NULL */
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

double space_batch(const struct space *s, const struct point *p)
{
    double batch = NAN;
    for (size_t i = 0; i < s->n_dims; i++) {
        const char *name = s->dims[i].name;
        if (!begins_with(name, "batch"))
            continue;
        struct value v = space_value(s, p, i);
        if (suggest_same(name, "batchsize") || suggest_same(name, "batch"))
            return v.number; /* beside a batch_norm, which is none */
        if (isnan(batch))
            batch = v.number;
    }
    return batch;
}

/* --- hash ----------------------------------------------------------------------------------------------------------- */

static void hash_text(uint64_t *h, const char *text)
{
    do {
        *h ^= (unsigned char)*text;
        *h *= 0x100000001b3;
    } while (*text++); /* with its NUL, so that "ab","c" and "a","bc" differ */
}

static void hash_number(uint64_t *h, double x)
{
    char num[NUM_TEXT_MAX];
    hash_text(h, num_print(x, num));
}

static void hash_values(uint64_t *h, const struct value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash_text(h, values[i].text);
}

static void hash_dim(uint64_t *h, const struct dim *d)
{
    static const char *const kinds[] = { "list", "range", "integer", "real" };
    hash_text(h, d->name);
    hash_text(h, kinds[d->kind]);
    hash_number(h, (double)d->n);
    hash_values(h, d->values, d->values ? (size_t)d->n : 0);
    hash_number(h, d->start);
    hash_number(h, d->step);
    hash_number(h, d->min);
    hash_number(h, d->max);
    hash_text(h, d->log ? "log" : "linear");
    hash_text(h, d->affects_speed ? "speed" : "");
}

void space_hash(const struct space *s, char out[17])
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a 64 */
    for (size_t i = 0; i < s->n_dims; i++)
        hash_dim(&h, &s->dims[i]);
    hash_text(&h, "system");
    for (size_t i = 0; i < s->n_knobs; i++) {
        hash_text(&h, s->knobs[i].name);
        hash_number(&h, (double)s->knobs[i].n);
        hash_values(&h, s->knobs[i].values, s->knobs[i].n);
    }
    (void)snprintf(out, 17, "%016" PRIx64, h);
}
