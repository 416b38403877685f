#include "core/space.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"

const struct knob_kind knob_kinds[] = {
    { KNOB_CORES, "cores", "CPUs", .hot = true, .integer = true, 1, 4096 },
    { KNOB_MEMORY, "memory", "GiB", .hot = false, .integer = false, 0, 65536 },
    { KNOB_PARTS, "executors", "executors", .hot = false, .integer = true, 1, 4096 },
    { KNOB_FREQUENCY, "frequency", "kHz", .hot = true, .integer = true, 100000, 20000000 },
    { KNOB_POWER_CAP, "power_cap", "W", .hot = true, .integer = false, 0, 100000 },
    { KNOB_COUNT, "roles.*", "processes", .hot = false, .integer = true, 1, 64 },
    { KNOB_PROPERTY, "spark.*", "", .hot = false, .integer = false, -INFINITY, INFINITY },
};

/* --- values --------------------------------------------------------------------------------------------------------- */

struct value value_of_number(double x)
{
    struct value v = { .is_number = true, .number = x + 0.0 }; /* + 0.0: -0 becomes 0 */
    char num[NUM_TEXT_MAX];
    (void)snprintf(v.text, sizeof v.text, "%s", num_print(v.number, num));
    return v;
}

/* As JSON writes numbers: what only looks like one, as "01", "+1", "0x10" and "nan" do, is a text that keeps its spelling. */
static bool is_json_number(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits);
    if (whole == 0 || (*text == '0' && whole > 1))
        return false;
    text += whole;
    if (*text == '.') {
        size_t part = strspn(++text, digits);
        if (part == 0)
            return false;
        text += part;
    }
    if (*text == 'e' || *text == 'E') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        size_t exponent = strspn(text, digits);
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == '\0';
}

static bool text_number(const char *text, double *out)
{
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
    v.is_number = is_json_number(v.text) && text_number(v.text, &v.number);
    return v;
}

void value_make_number(struct value *v)
{
    double x;
    bool decimal = *v->text && v->text[strspn(v->text, "0123456789+-.eE")] == '\0';
    if (v->is_number || (decimal && text_number(v->text, &x)))
        *v = value_of_number(v->is_number ? v->number : x);
}

json_t *value_to_json(const struct value *v)
{
    if (!v->is_number)
        return json_string(v->text);
    bool whole = floor(v->number) == v->number && fabs(v->number) <= VALUE_EXACT_MAX;
    return whole ? json_integer((json_int_t)v->number) : json_real(v->number);
}

bool value_equal(const struct value *a, const struct value *b)
{
    if (a->is_number && b->is_number)
        return a->number == b->number;
    return a->is_number == b->is_number && strcmp(a->text, b->text) == 0;
}

/* --- knobs ---------------------------------------------------------------------------------------------------------- */

bool knob_kind_allows(const struct knob_kind *k, const struct value *v)
{
    if (k->id == KNOB_PROPERTY)
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

/* --- points --------------------------------------------------------------------------------------------------------- */

void space_done(struct space *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SPACE_MAX_DIMS; i++)
        free(s->dims[i].values);
    for (size_t i = 0; i < SPACE_MAX_KNOBS; i++)
        free(s->knobs[i].values);
    free(s->points);
    free(s->first);
    space_rules_free(s->rules);
    *s = (struct space){ 0 };
}

int space_decimals(double x)
{
    char num[NUM_TEXT_MAX];
    const char *exponent = strchr(num_print(x, num), 'e');
    const char *point = strchr(num, '.');
    const char *end = exponent ? exponent : num + strlen(num);
    long n = (point ? end - point - 1 : 0) - (exponent ? strtol(exponent + 1, NULL, 10) : 0);
    return n > 0 ? (int)n : 0;
}

/* A range counts in units of its last decimal, in which start, end and step are whole: 0.1 + 2 * 0.1 is 3 tenths, and one
 * division gives the double that "0.3" reads as, where adding doubles gives 0.30000000000000004. */
static double range_value(const struct dim *d, double i)
{
    double unit = pow(10, fmax(space_decimals(d->start), space_decimals(d->step)));
    return (round(d->start * unit) + i * round(d->step * unit)) / unit;
}

bool space_is_count(const char *name)
{
    return strncmp(name, "roles.", 6) == 0 && name[6];
}

bool space_is_property(const char *name)
{
    return strncmp(name, "spark.", 6) == 0 && name[6];
}

bool space_is_batch(const char *name)
{
    return strncasecmp(name, "batch", 5) == 0;
}

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

/* Dimensions from this one on count by themselves: all, or those that joined listed points. */
static size_t first_counted(const struct space *s)
{
    return s->points ? space_n_hyper(s) : 0;
}

uint64_t space_size(const struct space *s)
{
    uint64_t size = s->points ? s->n_points : 1;
    for (size_t i = first_counted(s); i < s->n_dims; i++) {
        uint64_t n = space_dim_count(&s->dims[i]);
        if (n == 0 || __builtin_mul_overflow(size, n, &size))
            return UINT64_MAX;
    }
    return size;
}

bool space_is_listed(const struct space *s)
{
    for (size_t i = first_counted(s); i < s->n_dims; i++)
        if (s->dims[i].kind != DIM_LIST && s->dims[i].kind != DIM_RANGE)
            return false;
    return true;
}

double space_dim_first(const struct dim *d)
{
    return d->kind == DIM_INTEGER || d->kind == DIM_REAL ? d->min : 0;
}

double space_dim_at(const struct dim *d, uint64_t digit)
{
    return d->kind == DIM_INTEGER ? (double)((int64_t)d->min + (int64_t)digit) : (double)digit;
}

static const double *row_at(const struct space *s, uint64_t index)
{
    return s->points + index * space_n_hyper(s);
}

/* n_points: it is none of them. */
static uint64_t find_row(const struct space *s, const double *x)
{
    uint64_t i = 0;
    while (i < s->n_points && memcmp(row_at(s, i), x, space_n_hyper(s) * sizeof *x) != 0)
        i++;
    return i;
}

struct point space_point_at(const struct space *s, uint64_t index)
{
    struct point p = { 0 };
    for (size_t i = s->n_dims; i-- > first_counted(s);) {
        const struct dim *d = &s->dims[i];
        uint64_t n = space_dim_count(d);
        assert(n > 0);
        p.x[i] = space_dim_at(d, index % n);
        index /= n;
    }
    if (s->points) {
        assert(index < s->n_points);
        memcpy(p.x, row_at(s, index), space_n_hyper(s) * sizeof *p.x);
    }
    return p;
}

uint64_t space_index(const struct space *s, const struct point *p)
{
    uint64_t index = s->points ? find_row(s, p->x) : 0;
    for (size_t i = first_counted(s); i < s->n_dims; i++) {
        const struct dim *d = &s->dims[i];
        int64_t first = d->kind == DIM_INTEGER ? (int64_t)d->min : 0;
        index = index * space_dim_count(d) + (uint64_t)((int64_t)p->x[i] - first);
    }
    return index;
}

int space_list_points(struct space *s, const struct point *points, size_t n)
{
    size_t width = space_n_hyper(s);
    double *rows = calloc(n, width * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * width, points[i].x, width * sizeof *rows);
    free(s->points);
    s->points = rows;
    s->n_points = n;
    return 0;
}

const struct knob *space_knob(const struct space *s, enum knob_id id)
{
    for (size_t i = 0; i < s->n_knobs; i++)
        if (s->knobs[i].kind->id == id)
            return &s->knobs[i];
    return NULL;
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
    for (size_t i = 0; j && i < space_n_hyper(s); i++) {
        if (!space_active(s, p, i))
            continue;
        struct value v = space_value(s, p, i);
        if (json_object_set_new(j, s->dims[i].name, value_to_json(&v)) < 0) { /* also when the value is NULL */
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

double space_dim_find(const struct dim *d, const json_t *j)
{
    struct value v = json_is_string(j) ? value_of_text(json_string_value(j)) : value_of_number(json_number_value(j));
    if (d->kind == DIM_LIST) {
        for (uint64_t i = 0; i < d->n; i++)
            if (value_equal(&d->values[i], &v))
                return (double)i;
        return NAN;
    }
    double x = d->kind == DIM_RANGE ? round((v.number - d->start) / d->step) : v.number;
    if (!v.is_number || (d->kind == DIM_INTEGER && x != floor(x)))
        return NAN;
    if (d->kind == DIM_RANGE)
        return x >= 0 && x < (double)d->n && range_value(d, x) == v.number ? x : NAN;
    return x >= d->min && x <= d->max ? x : NAN;
}

int space_point_parse(const struct space *s, const json_t *hyper, const json_t *knobs, struct point *out)
{
    struct point p = { 0 };
    for (size_t i = 0; i < s->n_dims; i++) {
        const json_t *j = json_object_get(i < space_n_hyper(s) ? hyper : knobs, s->dims[i].name);
        bool active = space_active(s, &p, i); /* by those before it */
        p.x[i] = j && active     ? space_dim_find(&s->dims[i], j)
                 : !j && !active ? space_dim_first(&s->dims[i])
                                 : (double)NAN;
        if (isnan(p.x[i]))
            return -EINVAL;
    }
    if (s->points && find_row(s, p.x) == s->n_points)
        return -EINVAL;
    *out = p;
    return 0;
}

int space_join_knobs(struct space *s, struct err *e)
{
    if (s->n_dims + s->n_knobs > SPACE_MAX_DIMS)
        return err_set(e, -E2BIG,
                       "%zu hyperparameters and %zu system parameters are more than the %d that can be searched",
                       s->n_dims, s->n_knobs, SPACE_MAX_DIMS);
    for (size_t i = 0; i < s->n_knobs; i++) {
        const struct knob *k = &s->knobs[i];
        struct value *values = malloc(k->n * sizeof *values);
        if (!values)
            return err_sys(e, -ENOMEM, "system parameter '%s'", k->name);
        memcpy(values, k->values, k->n * sizeof *values);
        struct dim *d = &s->dims[s->n_dims++];
        *d = (struct dim){ .kind = DIM_LIST, .values = values, .n = k->n };
        (void)snprintf(d->name, sizeof d->name, "%s", k->name);
        s->n_joined++;
    }
    return 0;
}

double space_batch(const struct space *s, const struct point *p)
{
    double batch = NAN;
    for (size_t i = 0; i < space_n_hyper(s); i++) {
        const char *name = s->dims[i].name;
        if (!space_is_batch(name))
            continue;
        struct value v = space_value(s, p, i);
        if (!space_active(s, p, i))
            continue;
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
    for (uint64_t i = 0; i < s->n_points * space_n_hyper(s); i++)
        hash_number(&h, s->points[i]);
    hash_text(&h, "system");
    for (size_t i = 0; i < s->n_knobs; i++) {
        hash_text(&h, s->knobs[i].name);
        hash_number(&h, (double)s->knobs[i].n);
        hash_values(&h, s->knobs[i].values, s->knobs[i].n);
    }
    (void)snprintf(out, 17, "%016" PRIx64, h);
}
