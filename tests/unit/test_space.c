#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "core/space.h"
#include "tests/fault.h"

static int parse(struct space *out, const char *text, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "t.conf", text, strlen(text), e);
    if (rc < 0)
        fail_msg("the test's own text: %s", e->text);
    return space_parse(out, &doc, e);
}

static struct space parsed(const char *text)
{
    struct space s = { 0 };
    struct err e = { 0 };
    if (parse(&s, text, &e) < 0)
        fail_msg("%s\n%s", text, e.text);
    return s;
}

/* {"hyperParameters": {"x": …}} */
static struct space parsed_dim(const char *dim)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{\"hyperParameters\": {\"x\": %s}}", dim);
    return parsed(buf_text(&b));
}

#define HYPER "\"hyperParameters\": {\"x\": [1]}"
#define SYSTEM(knobs) "{" HYPER ",\n \"systemParameters\": {" knobs "}}"
#define X(dim) "{\"hyperParameters\": {\"x\": " dim "}}"
#define UNDER(when) "{\"hyperParameters\": {\"x\": [1, 2], \"y\": {\"values\": [1], \"when\": " when "}}}"
#define BOUND(list) "{\"hyperParameters\": {\"x\": [1, 2]}, \"study\": {\"constraints\": " list "}}"
#define FIRST(list) "{\"hyperParameters\": {\"x\": [1, 2], \"y\": 3}, \"study\": {\"first\": " list "}}"
#define TEN "0123456789"

static const struct {
    const char *name, *text, *want[3]; /* parts of the message */
} faults[] = {
    { "no hyperparameters", "{}", { "the space is empty" } },
    { "an empty object of them", "{\"hyperParameters\": {}}", { "the space is empty" } },
    { "no object at the top", "[1]", { "the space is empty" } },
    { "a list of hyperparameters", "{\"hyperParameters\": [1]}", { "must be an object, not a list" } },
    { "neither a value nor a list", X("true"), { "'hyperParameters.x'", "must be a value, a list such as [32, 64]" } },
    { "a step of nothing", X("{\"min\": 1, \"max\": 8, \"step\": 0}"), { "'hyperParameters.x.step' must be above 0" } },
    { "a step of a list", X("{\"values\": [1], \"step\": 1}"), { "'scale' and 'step' only with" } },
    { "a step on a log scale",
      X("{\"min\": 1, \"max\": 8, \"step\": 1, \"scale\": \"log\"}"),
      { "does not go with a log scale" } },
    { "a condition that is none", UNDER("[1]"), { "'hyperParameters.y.when' must be an object of one" } },
    { "one on two others", UNDER("{\"x\": 1, \"z\": 1}"), { "must be an object of one hyperparameter" } },
    { "one on what comes later", UNDER("{\"y\": 1}"), { "names what is no hyperparameter that is written before" } },
    { "one on a value that is not there", UNDER("{\"x\": [1, 3]}"), { "has a value that is none of 'x'" } },
    { "one on nothing", UNDER("{\"x\": []}"), { "is empty: it needs at least one value of 'x'" } },
    { "first points that are no list", FIRST("{}"), { "'study.first' must be a list of points" } },
    { "one that lacks a value", FIRST("[{\"y\": 3}]"), { "'study.first.0' is no point of the space" } },
    { "one of another value", FIRST("[{\"x\": 1},\n {\"x\": 9}]"), { "line 2", "'study.first.1' is no point" } },
    { "one of another name", FIRST("[{\"x\": 1, \"z\": 1}]"), { "is no point of the space" } },
    { "one that is no object", FIRST("[1]"), { "is no point of the space" } },
    { "one twice", FIRST("[{\"x\": 1}, {\"x\": 1, \"y\": 3}]"), { "'study.first.1' repeats another point" } },
    { "constraints that are no list", BOUND("3"), { "'study.constraints' must be a list of conditions" } },
    { "one that is no text", BOUND("[3]"), { "'study.constraints.0' must be a condition as text" } },
    { "one of an unknown name",
      "{\"hyperParameters\": {\"momentum\": [1, 2]}, \"study\": {\"constraints\": [\"momentum > 0\",\n \"momentun > "
      "1\"]}}",
      { "line 2", "names 'momentun'", "did you mean 'momentum'" } },
    { "one that is cut", BOUND("[\"x >\"]"), { "a value is missing at its end" } },
    { "one that leaves nothing", BOUND("[\"x > 2\"]"), { "'study.constraints' leave no point" } },
    { "one that leaves nothing of an open space",
      "{\"hyperParameters\": {\"x\": {\"min\": 0.5, \"max\": 1}}, \"study\": {\"constraints\": [\"x > 2\"]}}",
      { "leave no point" } },
    { "points beside others",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1}], \"y\": [1]}}",
      { "'hyperParameters.points' must stand alone" } },
    { "a point that lacks a value",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1, \"y\": 2},\n {\"x\": 2}]}}",
      { "line 2", "'hyperParameters.points.1' lacks 'y'" } },
    { "a point with more values",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1}, {\"x\": 2, \"y\": 2}]}}",
      { "'hyperParameters.points.1' has hyperparameters that the first point lacks" } },
    { "a point that is none",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1}, 7]}}",
      { "'hyperParameters.points.1' must be an object" } },
    { "a point twice",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1}, {\"x\": 2}, {\"x\": 1.0}]}}",
      { "'hyperParameters.points.2' repeats another point" } },
    { "a point of null",
      "{\"hyperParameters\": {\"points\": [{\"x\": 1}, {\"x\": null}]}}",
      { "'hyperParameters.points.x.1' must be a string or a number, not null" } },
    { "an empty list", X("[]"), { "'hyperParameters.x' is empty" } },
    { "a nested list", X("[[1]]"), { "'hyperParameters.x.0'", "not a list" } },
    { "an object as a value", X("[{}]"), { "not an object" } },
    { "null as a value", X("[null]"), { "not null" } },
    { "a boolean as a value", X("[true]"), { "write \"true\"" } },
    { "an empty text", X("[\"\"]"), { "must not be empty" } },
    { "a text that is not a number to train with", X("[\"nan\"]"), { "must be finite, not 'nan'" } },
    { "an infinite text", X("[\"-Infinity\"]"), { "must be finite" } },
    { "a text beyond any double", X("[\"1e999\"]"), { "must be finite" } },
    { "a number that a double does not hold", X("[9007199254740993]"), { "2^53" } },
    { "a text of 64 bytes", X("[\"" TEN TEN TEN TEN TEN TEN "abcd\"]"), { "longer than 63 bytes" } },
    { "control characters", X("[\"a\\nb\"]"), { "control characters" } },
    { "a repeated number", X("[1024, 32, 1024]"), { "'hyperParameters.x.2' repeats 1024" } },
    { "a repeated text", X("[\"adam\", \"adam\"]"), { "repeats adam" } },
    { "a number repeated as a text", X("[16, \"16\"]"), { "repeats 16" } },
    { "a number repeated with a fraction", X("[16, 16.0]"), { "repeats 16" } },
    { "the line of the value", "{\"hyperParameters\": {\n\"x\": [\n1,\n[]]}}", { "'t.conf' line 4" } },
    { "a repeat inside values", X("{\"values\": [1, 1]}"), { "'hyperParameters.x.values.1' repeats 1" } },
    { "an unknown key", X("{\"min\": 1, \"mx\": 2}"), { "'hyperParameters.x.mx' is unknown", "did you mean 'max'" } },
    { "an unknown key like none", X("{\"distribution\": 2}"), { "there are values, range" } },
    { "an empty object", X("{}"), { "exactly one of" } },
    { "two forms at once", X("{\"values\": [1], \"min\": 1, \"max\": 2}"), { "exactly one of" } },
    { "no max", X("{\"min\": 1}"), { "'max' is missing" } },
    { "no min", X("{\"max\": 1}"), { "'min' is missing" } },
    { "min above max", X("{\"min\": 2, \"max\": 1.5}"), { "'min' below 'max', not 2 and 1.5" } },
    { "min equal to max", X("{\"min\": 1, \"max\": 1}"), { "'min' below 'max'" } },
    { "a bound that is a text", X("{\"min\": \"1\", \"max\": 2}"), { "x.min' must be a number, not a string" } },
    { "a log scale from 0", X("{\"min\": 0, \"max\": 1, \"scale\": \"log\"}"), { "x.scale'", "above 0" } },
    { "a log scale below 0", X("{\"min\": -1, \"max\": 1, \"scale\": \"log\"}"), { "above 0" } },
    { "an unknown scale", X("{\"min\": 0, \"max\": 1, \"scale\": \"ln\"}"), { "\"log\" or \"linear\"" } },
    { "a scale of a list", X("{\"values\": [1], \"scale\": \"log\"}"), { "only with 'min' and 'max'" } },
    { "affects something else", X("{\"values\": [1], \"affects\": \"accuracy\"}"), { "must be \"speed\"" } },
    { "values that are no list", X("{\"values\": 1}"), { "x.values' must be a list" } },
    { "a range that is no list", X("{\"range\": 5}"), { "must be [start, end]" } },
    { "a range of one", X("{\"range\": [5]}"), { "must be [start, end]" } },
    { "a range of four", X("{\"range\": [1, 2, 3, 4]}"), { "must be [start, end]" } },
    { "a range of texts", X("{\"range\": [\"a\", 2]}"), { "x.range.0' must be a number" } },
    { "a step of 0", X("{\"range\": [1, 2, 0]}"), { "step of 0" } },
    { "a step away from the end", X("{\"range\": [1, 2, -1]}"), { "leads away" } },
    { "a range of nothing", X("{\"range\": [1, 1]}"), { "is empty" } },
    { "a range finer than a double", X("{\"range\": [1000000000, 1000000001, 1e-9]}"), { "more than 15 digits" } },
    { "a range beyond a double", X("{\"range\": [0, 1e300, 1]}"), { "more than 15 digits" } },
    { "a name that is no argument", "{\"hyperParameters\": {\"a b\": [1]}}", { "'a b'" } },
    { "a name like an option", "{\"hyperParameters\": {\"--x\": [1]}}", { "'--x'" } },
    { "an empty name", "{\"hyperParameters\": {\"\": [1]}}", { "without a name" } },
    { "a long name", "{\"hyperParameters\": {\"" TEN TEN TEN TEN TEN TEN "abcd\": [1]}}", { "longer than 63" } },
    { "two names of one argument",
      "{\"hyperParameters\": {\"batch_size\": [1], \"batchSize\": [2]}}",
      { "'batch_size' and 'batchSize'" } },
    { "cores 0", SYSTEM("\"cores\": [0]"), { "'t.conf' line 2: 'systemParameters.cores.0'", "from 1 to 4096", "'0'" } },
    { "cores 5000", SYSTEM("\"cores\": [4, \"5000\"]"), { "cores.1'", "a whole number from 1 to 4096", "'5000'" } },
    { "half a core", SYSTEM("\"cores\": [0.5]"), { "a whole number from 1 to 4096 (CPUs), not '0.5'" } },
    { "cores that are no number", SYSTEM("\"cores\": [\"all\"]"), { "not 'all'" } },
    { "cores beyond an int", SYSTEM("\"cores\": [1e300]"), { "from 1 to 4096" } },
    { "no memory", SYSTEM("\"memory\": [0]"), { "above 0 and up to 65536 (GiB), not '0'" } },
    { "memory with a unit", SYSTEM("\"memory\": [\"8g\"]"), { "(GiB), not '8g'" } },
    { "too much memory", SYSTEM("\"memory\": [65537]"), { "up to 65536" } },
    { "5000 executors", SYSTEM("\"executors\": [5000]"), { "from 1 to 4096" } },
    { "a frequency in GHz", SYSTEM("\"frequency\": [2.4]"), { "(kHz), not '2.4'" } },
    { "no power", SYSTEM("\"power_cap\": [0]"), { "(W), not '0'" } },
    { "a mistyped knob", SYSTEM("\"coers\": [1]"), { "'systemParameters.coers'", "did you mean 'cores'" } },
    { "a knob like none", SYSTEM("\"gpu\": [1]"), { "there are cores, memory" } },
    { "spark. alone", SYSTEM("\"spark.\": [1]"), { "is no system parameter" } },
    { "a knob without values", SYSTEM("\"cores\": []"), { "'systemParameters.cores' is empty" } },
    { "a knob that is no list", SYSTEM("\"cores\": 4"), { "must be a list such as [16, 8], not a number" } },
    { "knobs that are no object", "{" HYPER ", \"systemParameters\": []}", { "must be an object, not a list" } },
    { "a repeated knob value", SYSTEM("\"memory\": [\"8\", \"4\", 8.0]"), { "repeats 8" } },
};

static void test_faults_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct space s = { .n_dims = 99 };
        struct err e = { 0 };
        int rc = parse(&s, faults[i].text, &e);
        if (rc != -EINVAL || e.code != -EINVAL)
            fail_msg("%s: got %d, want -EINVAL", faults[i].name, rc);
        for (size_t k = 0; k < ARRAY_LEN(faults[i].want) && faults[i].want[k]; k++)
            if (!strstr(e.text, faults[i].want[k]))
                fail_msg("%s: got \"%s\", want \"%s\"", faults[i].name, e.text, faults[i].want[k]);
        assert_int_equal(s.n_dims, 99);
    }
}

/* {"hyperParameters": {"x0": [1], "x1": [1], …}} or the same of spark properties, or one list of n values */
static void test_too_many_of_anything_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *start, *each, *end, *want;
        int n;
    } many[] = {
        { "{\"hyperParameters\": {", "\"x%d\": [1]", "}}", "more than 64", SPACE_MAX_DIMS },
        { "{" HYPER ", \"systemParameters\": {", "\"spark.x%d\": [1]", "}}", "more than 16", SPACE_MAX_KNOBS },
        { "{\"hyperParameters\": {\"x\": [", "%d", "]}}", "4097 values, more than the 4096", 4096 },
    };
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        for (int extra = 0; extra <= 1; extra++) {
            AUTO_BUF struct buf b = BUF_INIT;
            buf_puts(&b, many[i].start);
            for (int k = 0; k < many[i].n + extra; k++) {
                char num[16];
                (void)snprintf(num, sizeof num, "%d", k);
                const char *hole = strstr(many[i].each, "%d");
                buf_puts(&b, k ? ", " : "");
                buf_put(&b, many[i].each, (size_t)(hole - many[i].each));
                buf_puts(&b, num);
                buf_puts(&b, hole + 2);
            }
            buf_puts(&b, many[i].end);
            struct space s = { 0 };
            struct err e = { 0 };
            int rc = parse(&s, buf_text(&b), &e);
            if (rc != (extra ? -EINVAL : 0) || (extra && !strstr(e.text, many[i].want)))
                fail_msg("%s: got %d \"%s\", want \"%s\"", many[i].start, rc, e.text, many[i].want);
            space_done(&s);
        }
    }
}

static const char seed_config[] =
    "{ \"bigdlConf\": \"bigdl/config/mnist.json\",\n"
    "  \"systemParameters\": { \"cores\": [\"16\", \"8\", \"4\"], \"memory\": [\"8\", \"4\"] },\n"
    "  \"hyperParameters\": { \"batch_size\": [1024, 512, 32, 64],\n"
    "                       \"learning_rate\": [0.001, 0.01, 0.1],\n"
    "                       \"learning_rate_decay\": [0.002, 0.02, 0.2] } }\n";

static void test_the_three_section_form_is_read(void **state)
{
    (void)state;
    struct space s = parsed(seed_config);
    assert_int_equal(s.n_dims, 3);
    assert_int_equal(s.n_knobs, 2);
    assert_int_equal(space_size(&s), 36);
    assert_true(space_is_listed(&s));
    assert_string_equal(s.dims[0].name, "batch_size");
    assert_true(s.dims[0].affects_speed);
    assert_false(s.dims[1].affects_speed);
    const struct knob *cores = space_knob(&s, KNOB_CORES);
    assert_non_null(cores);
    assert_true(cores->kind->hot);
    assert_int_equal(cores->n, 3);
    assert_true(cores->values[1].number == 8);
    assert_null(space_knob(&s, KNOB_PARTS));
    struct point p = space_point_at(&s, 35);
    assert_true(space_batch(&s, &p) == 64);
    AUTO_JSON json_t *j = space_point_json(&s, &p);
    AUTO_BUF struct buf b = BUF_INIT;
    json_put(&b, j, JSON_STYLE_COMPACT);
    assert_string_equal(buf_text(&b), "{\"batch_size\": 64, \"learning_rate\": 0.1, \"learning_rate_decay\": 0.2}");
    space_done(&s);
    space_done(&s);
    space_done(NULL);
}

static void test_knobs_of_every_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i <= KNOB_PROPERTY; i++)
        assert_int_equal(knob_kinds[i].id, i);
    struct space s = parsed(SYSTEM("\"memory\": [0.5, \"04\", 65536], \"executors\": [4096], \"frequency\": [2400000], "
                                   "\"power_cap\": [35.5], \"spark.memory.fraction\": [0.6, \"0.70\"], "
                                   "\"spark.shuffle.compress\": [\"true\", \"false\"]"));
    assert_int_equal(s.n_knobs, 6);
    assert_string_equal(s.knobs[0].values[1].text, "4");
    assert_string_equal(s.knobs[4].name, "spark.memory.fraction");
    assert_int_equal(s.knobs[4].kind->id, KNOB_PROPERTY);
    assert_string_equal(s.knobs[4].values[1].text, "0.70");
    assert_string_equal(s.knobs[5].values[0].text, "true");
    assert_false(s.knobs[5].values[0].is_number);
    space_done(&s);
}

static void test_numbers_print_plainly(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *want;
    } numbers[] = {
        { 1024, "1024" },
        { 0.001, "0.001" },
        { 1e6, "1000000" },
        { 123456789012345, "123456789012345" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { -0.0, "0" },
        { 0.9914, "0.9914" },
        { 1e-5, "1e-05" },
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        assert_string_equal(value_of_number(numbers[i].x).text, numbers[i].want);
}

static void test_texts_that_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool number;
    } texts[] = { { "16", true },   { "-1.5e3", true }, { "0x10", false }, { " 1", false }, { "1 ", false },
                  { "", false },    { "adam", false },  { "e", false },    { "1e", false }, { "nan", false },
                  { "-", false },   { "01", false },    { "+1", false },   { ".5", false }, { "1.", false },
                  { "-0.5", true }, { "0", true },      { "1e+3", true },  { "1e+", false } };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct value v = value_of_text(texts[i].text);
        if (v.is_number != texts[i].number || isnan(v.number) == texts[i].number)
            fail_msg("'%s': number %d, want %d", texts[i].text, v.is_number, texts[i].number);
        assert_string_equal(v.text, texts[i].text);
    }
    struct value a = value_of_text("16.0");
    struct value b = value_of_number(16);
    struct value c = value_of_text("adam");
    assert_true(value_equal(&a, &b));
    assert_false(value_equal(&a, &c));
    AUTO_JSON json_t *j = value_to_json(&a);
    assert_true(json_is_integer(j));
    struct value padded = value_of_text("01");
    AUTO_JSON json_t *text = value_to_json(&padded);
    assert_string_equal(json_string_value(text), "01");
    value_make_number(&padded);
    assert_true(padded.is_number && padded.number == 1 && strcmp(padded.text, "1") == 0);
    value_make_number(&c);
    assert_false(c.is_number);
    AUTO_JSON json_t *k = value_to_json(&c);
    assert_string_equal(json_string_value(k), "adam");
}

static const struct {
    const char *dim;
    uint64_t n;
    const char *values[8]; /* the first ones */
} ranges[] = {
    { "{\"range\": [0, 3]}", 3, { "0", "1", "2" } },
    { "{\"range\": [0.1, 0.6, 0.1]}", 5, { "0.1", "0.2", "0.3", "0.4", "0.5" } },
    { "{\"range\": [0.1, 0.4, 0.1]}", 3, { "0.1", "0.2", "0.3" } },
    { "{\"range\": [0, 1, 0.1]}", 10, { "0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7" } },
    { "{\"range\": [0, 0.55, 0.25]}", 3, { "0", "0.25", "0.5" } },
    { "{\"range\": [10, 0, -4]}", 3, { "10", "6", "2" } },
    { "{\"range\": [-0.3, 0.3, 0.15]}", 4, { "-0.3", "-0.15", "0", "0.15" } },
    { "{\"range\": [1e-4, 5e-4, 1e-4]}", 4, { "0.0001", "0.0002", "0.0003", "0.0004" } },
    { "{\"range\": [1e-7, 4e-7, 1e-7]}", 3, { "1e-07", "2e-07", "3e-07" } },
    { "{\"range\": [0, 1000000000]}", 1000000000, { "0", "1", "2" } },
    { "{\"range\": [0, 1, 1e-9]}", 1000000000, { "0", "1e-09", "2e-09", "3e-09" } },
};

static void test_ranges_count_without_noise(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        struct space s = parsed_dim(ranges[i].dim);
        if (space_size(&s) != ranges[i].n)
            fail_msg("%s: %lu values, want %lu", ranges[i].dim, (unsigned long)space_size(&s),
                     (unsigned long)ranges[i].n);
        for (size_t k = 0; k < ARRAY_LEN(ranges[i].values) && ranges[i].values[k]; k++) {
            struct point p = space_point_at(&s, k);
            struct value v = space_value(&s, &p, 0);
            if (strcmp(v.text, ranges[i].values[k]) != 0)
                fail_msg("%s: value %zu: got %s, want %s", ranges[i].dim, k, v.text, ranges[i].values[k]);
        }
        space_done(&s);
    }
}

static void test_bounds_make_whole_or_real_dimensions(void **state)
{
    (void)state;
    struct space whole = parsed_dim("{\"min\": -2, \"max\": 2}");
    assert_int_equal(whole.dims[0].kind, DIM_INTEGER);
    assert_int_equal(space_size(&whole), 5);
    assert_false(space_is_listed(&whole));
    assert_true(space_point_at(&whole, 4).x[0] == 2);
    struct space real = parsed_dim("{\"min\": 1e-4, \"max\": 1, \"scale\": \"log\", \"affects\": \"speed\"}");
    assert_int_equal(real.dims[0].kind, DIM_REAL);
    assert_true(real.dims[0].log);
    assert_true(real.dims[0].affects_speed);
    assert_int_equal(space_size(&real), UINT64_MAX);
    struct space wide = parsed_dim("{\"min\": -9007199254740991, \"max\": 9007199254740991}");
    assert_int_equal(space_size(&wide), 18014398509481983u);
    assert_true(space_point_at(&wide, 18014398509481981u).x[0] == 9007199254740990);
    space_done(&whole);
    space_done(&real);
    space_done(&wide);
}

static void test_a_huge_space_costs_nothing(void **state)
{
    (void)state;
    struct space s =
        parsed("{\"hyperParameters\": {\"a\": {\"range\": [0, 1000000000]}, \"b\": {\"range\": [0, 1000000000]}, "
               "\"c\": {\"range\": [0, 1000000000]}}}");
    assert_int_equal(space_size(&s), UINT64_MAX);
    struct point p = space_point_at(&s, 3000000001u);
    assert_true(p.x[0] == 0 && p.x[1] == 3 && p.x[2] == 1);
    space_done(&s);
}

static void test_the_batch_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } batches[] = {
        { "{\"hyperParameters\": {\"batchSize\": [\"32\"]}}", 32 },
        { "{\"hyperParameters\": {\"batch_norm\": [\"on\"], \"batch_size\": [64]}}", 64 },
        { "{\"hyperParameters\": {\"batch_norm_momentum\": [0.9], \"batch_size\": [64]}}", 64 },
        { "{\"hyperParameters\": {\"batches\": [8]}}", 8 },
        { "{\"hyperParameters\": {\"lr\": [8]}}", NAN },
        { "{\"hyperParameters\": {\"batch_size\": [\"big\"]}}", NAN },
    };
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        struct space s = parsed(batches[i].text);
        struct point p = { 0 };
        double got = space_batch(&s, &p);
        if (got != batches[i].want && !(isnan(got) && isnan(batches[i].want)))
            fail_msg("%s: got %g, want %g", batches[i].text, got, batches[i].want);
        space_done(&s);
    }
}

static void test_the_hash_is_of_what_is_written(void **state)
{
    (void)state;
    static const char *const different[] = {
        X("[1, 2]"),
        X("[2, 1]"),
        X("[12]"),
        X("[1]"),
        X("{\"min\": 1, \"max\": 2}"),
        X("{\"min\": 1.0, \"max\": 2}"),
        X("{\"min\": 1, \"max\": 2, \"scale\": \"log\"}"),
        X("{\"range\": [1, 2]}"),
        X("{\"range\": [1, 3]}"),
        SYSTEM("\"cores\": [1]"),
        SYSTEM("\"cores\": [2]"),
        SYSTEM("\"executors\": [1]"),
        "{\"hyperParameters\": {\"points\": [{\"x\": 1}]}}",
        "{\"hyperParameters\": {\"y\": [1, 2]}}",
    };
    char hashes[ARRAY_LEN(different)][17];
    for (size_t i = 0; i < ARRAY_LEN(different); i++) {
        struct space s = parsed(different[i]);
        space_hash(&s, hashes[i]);
        space_done(&s);
        assert_int_equal(strspn(hashes[i], "0123456789abcdef"), 16);
        for (size_t k = 0; k < i; k++)
            if (strcmp(hashes[k], hashes[i]) == 0)
                fail_msg("%s and %s have one hash", different[k], different[i]);
    }
    struct space s = parsed(X("{\"values\": [\"1\", 2]}")); /* another way to write the first */
    char same[17];
    space_hash(&s, same);
    assert_string_equal(same, hashes[0]);
    space_done(&s);
}

static void test_points_may_be_listed(void **state)
{
    (void)state;
    struct space s =
        parsed("{\"hyperParameters\": {\"points\": [{\"lr\": 0.001, \"opt\": \"adam\", \"n\": 7, \"one\": 5},"
               "{\"n\": 9, \"one\": 5, \"lr\": 0.5, \"opt\": \"sgd\"}, {\"lr\": 0.1, \"opt\": \"sgd\", \"n\": 8, "
               "\"one\": 5}]},"
               "\"systemParameters\": {\"cores\": [1, 2]}}");
    static const struct {
        enum dim_kind kind;
        bool log;
    } want[] = { { DIM_REAL, true }, { DIM_LIST, false }, { DIM_INTEGER, false }, { DIM_LIST, false } };
    assert_int_equal(s.n_dims, ARRAY_LEN(want));
    for (size_t i = 0; i < s.n_dims; i++)
        assert_true(s.dims[i].kind == want[i].kind && s.dims[i].log == want[i].log);
    assert_int_equal(space_size(&s), 3);
    assert_true(space_is_listed(&s));
    struct point p = space_point_at(&s, 1), back;
    AUTO_JSON json_t *j = space_point_json(&s, &p);
    AUTO_FREE char *text = json_text(j);
    assert_string_equal(text, "{\"lr\": 0.5, \"opt\": \"sgd\", \"n\": 9, \"one\": 5}");
    assert_int_equal(space_point_parse(&s, j, NULL, &back), 0);
    assert_int_equal(space_index(&s, &back), 1);
    (void)json_object_set_new(j, "n", json_integer(8));
    assert_int_equal(space_point_parse(&s, j, NULL, &back), -EINVAL);
    assert_int_equal(space_join_knobs(&s, NULL), 0);
    assert_int_equal(space_size(&s), 6);
    for (uint64_t i = 0; i < 6; i++) {
        p = space_point_at(&s, i);
        assert_true(p.x[4] == (double)(i % 2) && space_index(&s, &p) == i);
    }
    space_done(&s);
    s = parsed(X("[1, 2]"));
    p = space_point_at(&s, 1);
    assert_int_equal(space_index(&s, &p), 1);
    space_done(&s);
    s = parsed("{\"hyperParameters\": {\"points\": [1, 2]}}"); /* a hyperparameter of this name */
    assert_string_equal(s.dims[0].name, "points");
    assert_null(s.points);
    space_done(&s);
}

static void expect_points(const struct space *s, const char *const *want, uint64_t n)
{
    assert_int_equal(space_size(s), n);
    for (uint64_t i = 0; i < n; i++) {
        struct point p = space_point_at(s, i), again;
        AUTO_JSON json_t *j = space_point_json(s, &p);
        AUTO_FREE char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(6));
        assert_string_equal(text, want[i]);
        assert_int_equal(space_point_parse(s, j, NULL, &again), 0);
        assert_memory_equal(&again, &p, sizeof p);
    }
}

/* What is under a condition is there once for each value that it is under, and nowhere else; a constraint holds for all cores. */
static void test_conditions_and_constraints_leave_the_points_that_they_allow(void **state)
{
    static const char *const want[] = {
        "{\"optimizer\":\"sgd\",\"momentum\":0.5,\"batch_size\":32}",
        "{\"optimizer\":\"sgd\",\"momentum\":0.5,\"batch_size\":64}",
        "{\"optimizer\":\"sgd\",\"momentum\":0.9,\"batch_size\":32}",
        "{\"optimizer\":\"sgd\",\"momentum\":0.9,\"batch_size\":64}",
        "{\"optimizer\":\"adam\",\"batch_size\":32}",
        "{\"optimizer\":\"adam\",\"batch_size\":64}",
    };
    (void)state;
    struct space s = parsed("{\"hyperParameters\": {\"optimizer\": [\"sgd\", \"adam\"],"
                            " \"momentum\": {\"values\": [0.5, 0.9], \"when\": {\"optimizer\": \"sgd\"}},"
                            " \"batch_size\": [32, 48, 64]}, \"systemParameters\": {\"cores\": [1, 4]},"
                            " \"study\": {\"constraints\": [\"batch_size % (8 * cores) == 0\", \"momentum > 0\"]}}");
    expect_points(&s, want, ARRAY_LEN(want));
    space_done(&s);
}

static void test_an_open_space_admits_what_its_rules_allow(void **state)
{
    int with = 0, refused = 0;
    struct rng rng = rng_seeded(7);
    (void)state;
    struct space s = parsed("{\"hyperParameters\": {\"optimizer\": [\"sgd\", \"adam\"],"
                            " \"lr\": {\"min\": 0.01, \"max\": 1, \"scale\": \"log\"},"
                            " \"momentum\": {\"min\": 0.5, \"max\": 1.5, \"when\": {\"optimizer\": [\"sgd\"]}}},"
                            " \"study\": {\"constraints\": [\"lr * momentum < 0.5\"]}}");
    for (int i = 0; i < 1000; i++) {
        struct point p = space_draw(&s, &rng);
        bool sgd = p.x[0] == 0, small = p.x[1] * p.x[2] < 0.5;
        assert_true(space_admits(&s, &p) == (!sgd || small)); /* what is not there is bound by nothing */
        assert_true(sgd || p.x[2] == 0.5);
        assert_true(space_active(&s, &p, 2) == sgd);
        with += sgd;
        refused += sgd && !small;
    }
    assert_true(with > 400 && with < 600 && refused > 50);
    space_done(&s);
}

static void test_whole_numbers_may_have_a_step_and_a_value_may_be_fixed(void **state)
{
    (void)state;
    struct space s = parsed("{\"hyperParameters\": {\"units\": {\"min\": 16, \"max\": 64, \"step\": 24},"
                            " \"layers\": {\"min\": 1, \"max\": 4, \"step\": 2}, \"momentum\": 0.9}}");
    static const char *const want[] = {
        "{\"units\":16,\"layers\":1,\"momentum\":0.9}", "{\"units\":16,\"layers\":3,\"momentum\":0.9}",
        "{\"units\":40,\"layers\":1,\"momentum\":0.9}", "{\"units\":40,\"layers\":3,\"momentum\":0.9}",
        "{\"units\":64,\"layers\":1,\"momentum\":0.9}", "{\"units\":64,\"layers\":3,\"momentum\":0.9}"
    };
    expect_points(&s, want, ARRAY_LEN(want));
    space_done(&s);
}

/* Of memory: each call fails once. */
static void expect_nothing_left(const char *text, size_t n_dims)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e = { 0 };
    assert_int_equal(json_doc_parse(&doc, "t.conf", text, strlen(text), &e), 0);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct space s = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = space_parse(&s, &doc, &e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_int_equal(s.n_dims, rc == 0 ? n_dims : 0);
        space_done(&s);
    }
}

static void test_parse_leaves_nothing_when_memory_is_out(void **state)
{
    (void)state;
    expect_nothing_left(seed_config, 3);
    expect_nothing_left("{\"hyperParameters\": {\"x\": [1, 2], \"y\": {\"values\": [3, 4], \"when\": {\"x\": 1}}},"
                        " \"study\": {\"constraints\": [\"x + y > 1\"]}}",
                        2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_are_explained),
        cmocka_unit_test(test_too_many_of_anything_is_an_error),
        cmocka_unit_test(test_the_three_section_form_is_read),
        cmocka_unit_test(test_knobs_of_every_kind),
        cmocka_unit_test(test_numbers_print_plainly),
        cmocka_unit_test(test_texts_that_are_numbers),
        cmocka_unit_test(test_ranges_count_without_noise),
        cmocka_unit_test(test_bounds_make_whole_or_real_dimensions),
        cmocka_unit_test(test_a_huge_space_costs_nothing),
        cmocka_unit_test(test_the_batch_is_found),
        cmocka_unit_test(test_the_hash_is_of_what_is_written),
        cmocka_unit_test(test_points_may_be_listed),
        cmocka_unit_test(test_conditions_and_constraints_leave_the_points_that_they_allow),
        cmocka_unit_test(test_an_open_space_admits_what_its_rules_allow),
        cmocka_unit_test(test_whole_numbers_may_have_a_step_and_a_value_may_be_fixed),
        cmocka_unit_test(test_parse_leaves_nothing_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
