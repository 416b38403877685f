/* The space of a study: its hyperparameters (dimensions of a point) and its system parameters (knobs of a setting),
 * as the config writes them. Pure: reads parsed JSON, touches nothing else. */
#ifndef CORE_SPACE_H
#define CORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

enum { SPACE_MAX_DIMS = 64, SPACE_MAX_KNOBS = 16, SPACE_NAME_MAX = 64, VALUE_TEXT_MAX = 64, KNOB_BOUNDS_MAX = 80 };

/* A string or a number, as written. A string that is a number ("16") counts as that number. */
struct value {
    bool is_number;
    double number;             /* NAN when it is none */
    char text[VALUE_TEXT_MAX]; /* what goes into argv: "1024", "0.001", "adam" */
};

#define VALUE_EXACT_MAX 9007199254740992.0 /* 2^53: whole numbers up to here are exact in a double */

struct value value_of_number(double x);
/* A number where JSON would write it so; else a text: "01" and "+1" keep their spelling. Longer texts are the parser's error, cut
 * here. */
struct value value_of_text(const char *text);
/* Where only numbers make sense: "08" is a fine 8. Other texts stay. */
void value_make_number(struct value *v);
json_t *value_to_json(const struct value *v); /* new reference: integer, real or string; NULL: memory */
bool value_equal(const struct value *a, const struct value *b); /* "16", "16.0" and 16 are equal */

enum dim_kind {
    DIM_LIST,    /* x is the index into values */
    DIM_RANGE,   /* x is the index i of start + i * step; lazy, so a range of 10^9 costs nothing */
    DIM_INTEGER, /* x is a whole number in [min, max] */
    DIM_REAL,    /* x is a number in [min, max] */
};

struct dim {
    char name[SPACE_NAME_MAX];
    enum dim_kind kind;
    struct value *values; /* DIM_LIST: `n` of them, in the order written, without repeats */
    uint64_t n;           /* DIM_LIST, DIM_RANGE: how many */
    double start, step;   /* DIM_RANGE */
    double min, max;      /* DIM_INTEGER, DIM_REAL */
    bool log;             /* drawn evenly on a log scale */
    bool affects_speed;   /* part of the class key: named batch*, or marked "affects":"speed" */
};

/* A system parameter: one row of the table in space.c, or any property of the application's runtime. */
enum knob_id { KNOB_CORES, KNOB_MEMORY, KNOB_PARTS, KNOB_FREQUENCY, KNOB_POWER_CAP, KNOB_COUNT, KNOB_PROPERTY };

struct knob_kind {
    enum knob_id id;
    const char *name;
    const char *unit;
    bool hot;     /* changes while the job runs; the others need a launch */
    bool integer; /* only whole numbers make sense */
    double min, max;
};

struct knob {
    const struct knob_kind *kind;
    char name[SPACE_NAME_MAX]; /* kind->name, or the property */
    struct value *values;      /* n >= 1, in the order written, without repeats */
    size_t n;
    bool launched; /* hot elsewhere, at this study's place it is changed by a launch alone */
};

static inline bool knob_is_hot(const struct knob *k)
{
    return k->kind->hot && !k->launched;
}

struct point;

struct space {
    struct dim dims[SPACE_MAX_DIMS];
    size_t n_dims;   /* hyperparameters, then what has joined them */
    size_t n_joined; /* knobs that are searched like hyperparameters: see space_join_knobs() */
    struct knob knobs[SPACE_MAX_KNOBS];
    size_t n_knobs;
    double *
        points; /* the points that there are, rows of one x of each hyperparameter; NULL: all that the dimensions allow */
    uint64_t n_points;
    struct point *first; /* that people want to be tried before all others, each once */
    size_t n_first;
    struct space_rules *rules; /* what more a point must be (space_rules.c); NULL: nothing */
};

/* One hyperparameter setting: x[i] belongs to dims[i]. Values beyond n_dims are 0, so points compare by memcmp. */
struct point {
    double x[SPACE_MAX_DIMS];
};

extern const struct knob_kind knob_kinds[]; /* KNOB_CORES … KNOB_PROPERTY, in the order of enum knob_id */

/* Can a knob of this kind have this value; and what it must be, for an error: "a whole number from 1 to 4096 (CPUs)". A
 * kind that is no integer excludes its min: memory is more than 0. */
bool knob_kind_allows(const struct knob_kind *k, const struct value *v);
const char *knob_kind_bounds(const struct knob_kind *k, char text[KNOB_BOUNDS_MAX]);

/* Reads "hyperParameters" and "systemParameters" of the config. Hyperparameters: {"points": [{"lr": 0.1, …}, …]}, or by
 * name: a value, a non-empty array of strings or numbers, {"values":[…]}, {"min","max"[,"scale":"log"|"linear"|,"step"]} (whole numbers when
 * both bounds are JSON integers), {"range":[start,end(,step)]} (end excluded, step 1), each object with optional "affects":"speed"
 * and "when". No hyperparameter at
 * all is -EINVAL ("the space is empty"). systemParameters may be absent or {}. -EINVAL names file, line, key and, for an
 * unknown knob, the nearest known name. *out is untouched on failure. In space_parse.c. */
int space_parse(struct space *out, const struct json_doc *doc, struct err *e);
void space_done(struct space *s);

/* From here on these n >= 1 points are all that there are; keeps no pointer. Repeats are the caller's to leave out. -ENOMEM. */
int space_list_points(struct space *s, const struct point *points, size_t n);

/* A dimension that stands under a condition ({"when": {"optimizer": ["sgd"]}}) is one of the point only where that holds. */
bool space_active(const struct space *s, const struct point *p, size_t dim);

/* Is that a point of the space, constraints considered? What is not active is set to its dimension's first value, so that points which are
 * the same are equal. Of points that are listed nothing is asked. */
bool space_admits(const struct space *s, struct point *p);

/* Reads "when" of dimensions and "constraints" of "study": conditions (core/expr.h) between hyperparameters, and system parameters,
 * for all values of which they must hold. A space that can be counted is listed from then on. In space_rules.c. */
int space_read_rules(struct space *s, const struct json_doc *doc, struct err *e);
void space_rules_free(struct space_rules *r);

/* The point that people name by all its active hyperparameters; one of a single value need not be named. -EINVAL: it is none of the space, or
 * something is there that is no hyperparameter. In space_first.c. */
int space_point_named(const struct space *s, const json_t *j, struct point *out);

/* Reads "first" of "study": points of the space, each once. -EINVAL, -ENOMEM. In space_first.c. */
int space_read_first(struct space *s, const struct json_doc *doc, struct err *e);

/* Points as rows of names and values, as the member "points" of "hyperParameters" has them: dimensions that hold them all. A column of
 * numbers is a dimension between its ends, on a log scale where these lie far apart; another one is a list. `doc` and `path` are for errors,
 * which name the row. New reference, or NULL and *out_rc. In space_points.c. */
json_t *space_points_dims(const struct json_doc *doc, const char *path, const json_t *points, struct err *e,
                          int *out_rc);

/* Makes each knob one more dimension, a list of its values, behind the hyperparameters: a policy that searches for both at once.
 * -E2BIG: more than SPACE_MAX_DIMS; -ENOMEM. */
int space_join_knobs(struct space *s, struct err *e);

static inline size_t space_n_hyper(const struct space *s)
{
    return s->n_dims - s->n_joined;
}

/* Number of points: exact, or UINT64_MAX when it is more than fits or infinite (a DIM_REAL). */
uint64_t space_size(const struct space *s);

/* Its points are listed, or every dimension can be counted through (DIM_LIST or DIM_RANGE): what `grid` needs. */
bool space_is_listed(const struct space *s);

/* The index-th point, index < space_size(), of a space whose size is known: the last dimension counts fastest. And back. */
struct point space_point_at(const struct space *s, uint64_t index);
uint64_t space_index(const struct space *s, const struct point *p);

/* A point at random, dimension by dimension: of listed points and of rules nothing is asked. In space_draw.c. */
struct rng;
struct point space_draw(const struct space *s, struct rng *r);

/* One that the rules admit; false: none was found of those few that they leave. */
bool space_draw_admitted(const struct space *s, struct rng *r, struct point *out);

/* How many decimals the shortest text of x has: 0.001 and 1e-03 have three. A range counts in units of its last one. */
int space_decimals(double x);

bool space_is_count(const char *name);    /* … how many processes of a role a gang has */
bool space_is_property(const char *name); /* a system parameter that is a property of the application's runtime */
bool space_is_batch(const char *name);    /* a hyperparameter that is a batch size: its name begins with "batch" */

/* The x of a value, as written in a config; NAN: it is none of the dimension's. */
double space_dim_find(const struct dim *d, const json_t *value);

/* How many values a dimension has; 0 for a DIM_REAL, which has no number. */
uint64_t space_dim_count(const struct dim *d);
double space_dim_first(const struct dim *d);              /* the x of its first, or least, value */
double space_dim_at(const struct dim *d, uint64_t digit); /* its x for the digit-th of them */

const struct knob *space_knob(const struct space *s, enum knob_id id); /* NULL when it is not in the space */

struct value space_value(const struct space *s, const struct point *p, size_t dim);
json_t *space_point_json(const struct space *s,
                         const struct point *p); /* hyperparameters, {"batch_size": 32, …}; new reference */

/* The other way: joined knobs are looked for in `knobs`. -EINVAL: that is no point of this space. */
int space_point_parse(const struct space *s, const json_t *hyper, const json_t *knobs, struct point *out);

/* The number of a hyperparameter whose name begins with "batch", NAN when there is none or it is no number. */
double space_batch(const struct space *s, const struct point *p);

/* 16 lower-case hex digits of an FNV-1a 64 hash over the space as written (dims, knobs, their values, in order). */
void space_hash(const struct space *s, char out[17]);

#endif
