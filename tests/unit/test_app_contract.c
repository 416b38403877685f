/* What the engine takes for granted of every kind of application. A new row adds its case here. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/app.h"
#include "base/own.h"
#include "tests/fault.h"

/* An application of each kind that is reached by the hyperparameter batch_size, checkpoints, and resumes; a line of its output that ends an
 * epoch, or a step, and one that tells why it died. */
static const struct sample {
    const char *kind, *file, *progress, *death;
} samples[] = {
    { "bigdl",
      "{\"conf\": \"/a/train.py\", \"jars\": \"/b/x.jar\", \"extras\": {\"data\": \"$DATA/d\"}, \"arguments\": "
      "{\"batch_size\": "
      "[\"-b\", \"{}\"], \"epochs\": [\"-e\", \"{}\"], \"checkpoint\": [\"-c\", \"{}\"], \"resume\": [\"-m\", "
      "\"{model}\", \"-s\", "
      "\"{state}\"], \"seed\": [\"--seed\", \"{}\"]}}",
      "2026-11-18 12:00:13.816 INFO DistriOptimizer$: [Epoch 1 1024/60000][Iteration 1][Wall Clock 1.485523432s] "
      "Trained 1024.0 "
      "records in 1.485523432 seconds. Throughput is 689.3193 records/second. Loss is 2.3091407. ",
      "java.lang.OutOfMemoryError: Java heap space" },
    { "command",
      "{\"kind\": \"command\", \"command\": [\"python3\", \"train.py\"], \"extras\": {\"data\": \"$DATA/d\"}, "
      "\"arguments\": {\"batch_size\": [\"-b\", \"{}\"], \"epochs\": [\"-e\", \"{}\"], \"checkpoint\": [\"-c\", "
      "\"{}\"], \"resume\": [\"-m\", \"{checkpoint}\"], \"seed\": [\"--seed\", \"{}\"]}, \"progress\": "
      "[\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+)\"]}",
      "1763500000000 epoch 1: loss 0.5", "1763500000000 MemoryError" },
    { "spark",
      "{\"kind\": \"spark\", \"conf\": \"/a/train.py\", \"extras\": {\"data\": \"$DATA/d\"}, \"arguments\": "
      "{\"batch_size\": "
      "[\"-b\", \"{}\"], \"epochs\": [\"-e\", \"{}\"], \"checkpoint\": [\"-c\", \"{}\"], \"resume\": [\"-m\", "
      "\"{checkpoint}\"], "
      "\"seed\": [\"--seed\", \"{}\"]}, \"progress\": [\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+)\"]}",
      "1763500000000 epoch 1: loss 0.5", "1763500000000 java.lang.OutOfMemoryError: Java heap space" },
};

static const char *lookup(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "DATA") == 0 ? "/data" : NULL;
}

static struct application parsed(const struct sample *s)
{
    struct application a = { 0 };
    struct err e = { 0 };
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    if (json_doc_parse(&doc, "app.json", s->file, strlen(s->file), &e) < 0 || app_parse(&a, &doc, lookup, NULL, &e) < 0)
        fail_msg("%s: %s", s->kind, e.text);
    return a;
}

static const struct sample *sample_of(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        if (strcmp(samples[i].kind, kind) == 0)
            return &samples[i];
    fail_msg("the kind '%s' has no sample here", kind);
    return NULL;
}

static const struct app_value hypers[] = { { "batch_size", "64" } };
static const struct app_value knobs[] = { { "cores", "2" }, { "memory", "4" } };

static struct app_launch launch_of(const struct app_tools *tools)
{
    return (struct app_launch){ .tools = tools,
                                .hypers = hypers,
                                .n_hypers = 1,
                                .knobs = knobs,
                                .n_knobs = 2,
                                .epochs = 3,
                                .slots = 2,
                                .memory_gb = 4,
                                .launch = "pt-1",
                                .checkpoint = "/t/checkpoint",
                                .seed = "7" };
}

static bool has(const struct strv *v, const char *part)
{
    for (size_t i = 0; i < v->n; i++)
        if (strstr(v->v[i], part))
            return true;
    return false;
}

/* --- the file --- */

static void test_every_kind_is_told_by_its_name(const struct app_kind *k, const struct sample *s)
{
    struct application a = parsed(s);
    assert_ptr_equal(a.kind, k);
    assert_ptr_equal(app_kind_find(k->name), k);
    assert_non_null(k->file_word);
    app_done(&a);
    app_done(&a); /* nothing is left */
}

static void test_every_kind_leaves_nothing_behind(const struct app_kind *k, const struct sample *s)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e = { 0 };
    int rc = -ENOMEM;
    (void)k;
    assert_int_equal(json_doc_parse(&doc, "app.json", s->file, strlen(s->file), &e), 0);
    for (unsigned nth = 1; rc < 0; nth++) {
        struct application a = { 0 };
        assert_true(nth < 1000);
        fault_arm(FAULT_ALLOC, nth);
        rc = app_parse(&a, &doc, lookup, NULL, &e);
        fault_disarm();
        if (rc < 0)
            assert_int_equal(rc, -ENOMEM);
        app_done(&a);
    }
}

static int count_path(void *ctx, const char *key, char **path, struct err *e)
{
    size_t *n = ctx;
    (void)e;
    assert_non_null(key);
    assert_true(app_path_is_local(*path));
    ++*n;
    return 0;
}

static void test_every_kind_names_what_it_is_made_of(const struct app_kind *k, const struct sample *s)
{
    struct application a = parsed(s);
    AUTO_STRV struct strv files = STRV_INIT;
    AUTO_STRV struct strv words = STRV_INIT;
    size_t paths = 0;
    assert_int_equal(k->paths(&a, count_path, &paths, NULL), 0);
    k->files(&a, &files);
    k->identity(&a, &words);
    assert_true(words.n > 0 && !words.failed && !files.failed);
    assert_true(paths >= files.n); /* what is summed can be looked up */
    app_done(&a);
}

/* --- a launch --- */

static void test_every_kind_is_launched_with_what_it_is_told(const struct app_kind *k, const struct sample *s)
{
    const struct app_tools tools = { .spark_submit = "/s/spark-submit", .converter = "/c.py" };
    struct application a = parsed(s);
    struct app_launch l = launch_of(&tools);
    AUTO_STEPS struct app_steps steps = { 0 };
    struct err e = { 0 };
    if (k->steps(&a, &l, &steps, &e) < 0)
        fail_msg("%s: %s", k->name, e.text);
    assert_in_range(steps.n, 1, APP_STEPS_MAX);
    const struct strv *train = &steps.argv[steps.n - 1];
    assert_true(has(train, "64") && has(train, "/t/checkpoint") && has(train, "/data/d"));
    assert_true(app_reaches(&a, "batch_size", NULL) == 0 && app_reaches_epochs(&a));
    assert_int_equal(app_reaches(&a, "epochs", NULL), -EINVAL); /* the study's own */
    assert_true(a.checkpoints && a.resumes);
    app_done(&a);
}

static void test_every_kind_goes_on_from_a_checkpoint(const struct app_kind *k, const struct sample *s)
{
    const struct app_tools tools = { .spark_submit = "/s/spark-submit", .converter = "/c.py" };
    struct application a = parsed(s);
    struct app_launch l = launch_of(&tools);
    AUTO_STEPS struct app_steps steps = { 0 };
    l.resume_model = "/t/checkpoint/model";
    l.resume_state = k->rules.resume[1] ? "/t/checkpoint/state" : NULL;
    l.converted = "/t/resume.model";
    assert_int_equal(k->steps(&a, &l, &steps, NULL), 0);
    assert_true(has(&steps.argv[0], "/t/checkpoint/model"));
    app_done(&a);
}

static void test_every_launch_is_forgotten_whatever_fails(const struct app_kind *k, const struct sample *s)
{
    const struct app_tools tools = { .spark_submit = "/s/spark-submit" };
    struct application a = parsed(s);
    struct app_launch l = launch_of(&tools);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_STEPS struct app_steps steps = { 0 };
        struct err e = { 0 };
        assert_true(nth < 1000);
        fault_arm(FAULT_ALLOC, nth);
        rc = k->steps(&a, &l, &steps, &e);
        fault_disarm();
        if (rc < 0)
            assert_int_equal(rc, -ENOMEM);
    }
    app_done(&a);
}

/* --- what it prints --- */

static void test_every_kind_hears_progress_and_death(const struct app_kind *k, const struct sample *s)
{
    struct application a = parsed(s);
    struct line_place place = { .level = LEVEL_NONE };
    struct app_report r;
    assert_non_null(a.reader.parse);
    assert_int_equal(a.reader.parse(a.reader.ctx, &place, s->progress, strlen(s->progress), &r), 1);
    assert_true(r.kind == REPORT_STEP || r.kind == REPORT_EPOCH || r.kind == REPORT_VALUE);
    assert_int_equal(a.reader.parse(a.reader.ctx, &place, s->death, strlen(s->death), &r), 1);
    assert_int_equal(r.kind, REPORT_CAUSE);
    assert_non_null(r.cause);
    assert_int_equal(a.reader.parse(a.reader.ctx, &place, "\xff\xfe nothing\t", 11, &r), 0);
    (void)k;
    app_done(&a);
}

static void test_no_line_that_counts_is_left_out(const struct app_kind *k, const struct sample *s)
{
    struct application a = parsed(s);
    bool step = false, found = k->needle(&a, 0, &step) == NULL; /* everything is passed on */
    const char *text;
    for (size_t i = 0; (text = k->needle(&a, i, &step)); i++) {
        assert_true(*text);
        found |= strstr(s->progress, text) != NULL;
    }
    assert_true(found);
    app_done(&a);
}

/* --- rules --- */

/* Whoever can be a gang says which processes it is, and is told of in files of one process that it is none. */
static void test_every_kind_is_one_process_unless_it_says_otherwise(const struct app_kind *k, const struct sample *s)
{
    struct application a = parsed(s);
    const struct app_tools tools = { .library = NULL };
    const struct app_launch l = launch_of(&tools);
    struct app_gang g = { .n = 1 };
    struct err e = { 0 };
    assert_false(a.gang);
    if (k->gang) {
        assert_int_equal(k->gang(&a, &l, &g, &e), 0);
        assert_int_equal(g.n, 0);
    }
    app_done(&a);
}

static void test_every_kind_has_its_words(const struct app_kind *k, const struct sample *s)
{
    (void)s;
    assert_non_null(k->words.program);
    assert_non_null(k->words.starting);
    assert_true(!k->is_local || (k->words.granting && k->words.not_granted && k->words.lost));
    assert_true(!k->divided || k->why_divided);
    assert_true(!k->words.granting == !k->cluster);
    assert_true(!k->property_prefix == !k->put_properties);
    assert_true(!k->property_prefix == !k->properties_file);
    assert_true(!k->part == !k->is_folder);
}

/* --- all of them --- */

static void on_every_kind(void (*test)(const struct app_kind *k, const struct sample *s))
{
    for (const struct app_kind *const *k = app_kinds; *k; k++)
        test(*k, sample_of((*k)->name));
}

#define ON_EVERY_KIND(name)                                                                                            \
    static void each_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        on_every_kind(test_##name);                                                                                    \
    }
ON_EVERY_KIND(every_kind_is_told_by_its_name)
ON_EVERY_KIND(every_kind_leaves_nothing_behind)
ON_EVERY_KIND(every_kind_names_what_it_is_made_of)
ON_EVERY_KIND(every_kind_is_launched_with_what_it_is_told)
ON_EVERY_KIND(every_kind_goes_on_from_a_checkpoint)
ON_EVERY_KIND(every_launch_is_forgotten_whatever_fails)
ON_EVERY_KIND(every_kind_hears_progress_and_death)
ON_EVERY_KIND(no_line_that_counts_is_left_out)
ON_EVERY_KIND(every_kind_is_one_process_unless_it_says_otherwise)
ON_EVERY_KIND(every_kind_has_its_words)

static const struct {
    const char *name, *file, *want;
} unknown[] = {
    { "no kind at all", "{\"kind\": \"fortran\", \"conf\": \"a.py\"}",
      "'kind' is unknown: 'fortran'; there are bigdl" },
    { "a slip", "{\"kind\": \"bigdll\", \"conf\": \"a.py\"}", "did you mean 'bigdl'?" },
    { "a kind that is no text", "{\"kind\": 3, \"conf\": \"a.py\"}", "'kind' must be a string" },
};

static void test_a_kind_that_is_none_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        AUTO_JSON_DOC struct json_doc doc = { 0 };
        struct application a = { 0 };
        struct err e = { 0 };
        assert_int_equal(json_doc_parse(&doc, "app.json", unknown[i].file, strlen(unknown[i].file), &e), 0);
        int rc = app_parse(&a, &doc, lookup, NULL, &e);
        if (rc != -EINVAL || !strstr(e.text, unknown[i].want))
            fail_msg("%s: got %d '%s'", unknown[i].name, rc, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_every_kind_is_told_by_its_name),
        cmocka_unit_test(each_every_kind_leaves_nothing_behind),
        cmocka_unit_test(each_every_kind_names_what_it_is_made_of),
        cmocka_unit_test(each_every_kind_is_launched_with_what_it_is_told),
        cmocka_unit_test(each_every_kind_goes_on_from_a_checkpoint),
        cmocka_unit_test(each_every_launch_is_forgotten_whatever_fails),
        cmocka_unit_test(each_every_kind_hears_progress_and_death),
        cmocka_unit_test(each_no_line_that_counts_is_left_out),
        cmocka_unit_test(each_every_kind_is_one_process_unless_it_says_otherwise),
        cmocka_unit_test(each_every_kind_has_its_words),
        cmocka_unit_test(test_a_kind_that_is_none_is_told),
    };
    return cmocka_run_group_tests_name("app contract", tests, NULL, NULL);
}
