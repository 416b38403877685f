#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/app.h"
#include "base/own.h"
#include "bigdl/spark_file.h"
#include "tests/fault.h"

static const char *lookup(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "HOME_DIR") == 0 ? "/opt/bigdl" : strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static int parse(struct application *out, const char *text, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "mnist.json", text, strlen(text), e);
    return rc < 0 ? rc : app_parse(out, &doc, lookup, NULL, e);
}

static struct application parsed(const char *text)
{
    struct application a = { 0 };
    struct err e = { 0 };
    if (parse(&a, text, &e) < 0)
        fail_msg("%s\n%s", text, e.text);
    return a;
}

static struct spark_file *own(const struct application *a)
{
    return a->own;
}

static const char whole[] =
    "{ \"master\": \"spark://h:7077\", \"driver_memory\": \"2g\", \"executor_memory\": 4, \"total_executor_cores\": "
    "\"8\",\n"
    "  \"executor_cores\": 4, \"properties_file\": \"$HOME_DIR/spark.conf\", \"jars\": \"a.jar,,$EMPTY,hdfs:/b.jar\",\n"
    "  \"py_files\": [\"x.zip\", \"y.py\"], \"conf\": \"${HOME_DIR}/a.jar\", \"class\": \"com.example.Train\", "
    "\"session\": true,\n"
    "  \"extras\": { \"folder\": \"$HOME_DIR/$$x\", \"-v\": true, \"off\": false, \"none\": null, \"rate\": 0.1, "
    "\"n\": 3 },\n"
    "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"rate\": \"--rate={}\", \"epochs\": [\"-e\", \"{}\"],\n"
    "                 \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }";

static void test_app_reads_every_key(void **state)
{
    (void)state;
    struct application a = parsed(whole);
    assert_string_equal(a.file.name, "mnist.json");
    assert_string_equal(own(&a)->master, "spark://h:7077");
    assert_string_equal(own(&a)->driver_memory, "2g");
    assert_string_equal(own(&a)->executor_memory, "4g");
    assert_int_equal(own(&a)->total_executor_cores, 8);
    assert_int_equal(own(&a)->executor_cores, 4);
    assert_string_equal(own(&a)->properties_file, "/opt/bigdl/spark.conf");
    assert_int_equal(own(&a)->jars.n, 2);
    assert_string_equal(own(&a)->jars.v[1], "hdfs:/b.jar");
    assert_int_equal(own(&a)->py_files.n, 2);
    assert_string_equal(own(&a)->conf, "/opt/bigdl/a.jar");
    assert_string_equal(own(&a)->class_name, "com.example.Train");
    assert_true(a.file.session);
    assert_false(app_is_local(&a));
    assert_false(spark_file_is_python(own(&a)));
    app_done(&a);
}

static void test_app_reads_extras_and_arguments(void **state)
{
    (void)state;
    struct application a = parsed(whole);
    static const char *const want[][2] = {
        { "--folder", "/opt/bigdl/$x" }, { "-v", NULL }, { "--rate", "0.1" }, { "--n", "3" }
    };
    assert_int_equal(a.file.n_extras, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_string_equal(a.file.extras[i].key, want[i][0]);
        assert_true((a.file.extras[i].value == NULL) == (want[i][1] == NULL));
        if (want[i][1])
            assert_string_equal(a.file.extras[i].value, want[i][1]);
    }
    assert_true(a.file.has_arguments);
    assert_int_equal(app_file_argument(&a.file, "batch_size")->words.n, 2);
    assert_string_equal(app_file_argument(&a.file, "rate")->words.v[0], "--rate={}");
    assert_null(app_file_argument(&a.file, "seed"));
    app_done(&a);
}

static void test_app_has_defaults(void **state)
{
    (void)state;
    struct application a = parsed("{\"conf\": \"a.py\", \"extra\": [\"train\", \"-x\", 3], \"class\": null}");
    assert_string_equal(own(&a)->master, "local[*]");
    assert_true(app_is_local(&a));
    assert_true(spark_file_is_python(own(&a)));
    assert_null(own(&a)->driver_memory);
    assert_int_equal(a.file.n_extras, 3);
    assert_string_equal(a.file.extras[0].key, "train");
    assert_true(a.file.extras[1].word);
    assert_int_equal(app_file_extra(&a.file, "x"), -1);
    app_done(&a);
    app_done(NULL);
}

/* The message of each names the file, a line and the key. */
static const struct {
    const char *name, *text, *want;
} faults[] = {
    { "not an object", "[]", "'mnist.json' line 1: must be a JSON object" },
    { "no application", "{\"master\": \"yarn\"}", "'mnist.json' line 1: 'conf' is missing" },
    { "an unknown key", "{\"conf\": \"a.py\",\n\"drivermemory\": \"2g\"}",
      "line 2: 'drivermemory' is unknown; did you mean 'driver_memory'?" },
    { "a key like no other", "{\"conf\": \"a.py\", \"zzzz\": 1}", "'zzzz' is unknown; the application's own" },
    { "an unset variable", "{\"conf\":\n\"$NOPE/a.py\"}", "line 2: 'conf' uses $NOPE, which is not set" },
    { "an open brace", "{\"conf\": \"${HOME_DIR/a.py\"}", "'conf' has a '${' without" },
    { "an unset variable deep inside", "{\"conf\": \"a.py\", \"extras\": {\"x\":\n\"$NOPE\"}}",
      "line 2: 'extras.x' uses $NOPE" },
    { "a wrong type", "{\"conf\": 3}", "'conf' must be a string" },
    { "an empty text", "{\"conf\": \"$EMPTY\"}", "'conf' must not be empty" },
    { "a strange master", "{\"conf\": \"a.py\", \"master\": \"mesos://x\"}", "'master' must be local[*]" },
    { "half a local master", "{\"conf\": \"a.py\", \"master\": \"local[2\"}", "'master' must be local[*]" },
    { "no size", "{\"conf\": \"a.py\", \"driver_memory\": \"lots\"}", "'driver_memory' must be a size such as" },
    { "no memory at all", "{\"conf\": \"a.py\", \"driver_memory\": 0}", "'driver_memory' must be a size such as" },
    { "no cores", "{\"conf\": \"a.py\", \"executor_cores\": 0}", "'executor_cores' must be a whole number" },
    { "too many cores", "{\"conf\": \"a.py\", \"executor_cores\": 5000}", "between 1 and 4096, not '5000'" },
    { "half a core", "{\"conf\": \"a.py\", \"executor_cores\": 0.5}", "'executor_cores' must be a whole number" },
    { "a list of numbers", "{\"conf\": \"a.py\", \"jars\": [1]}", "'jars.0' must be a string" },
    { "a flag that is none", "{\"conf\": \"a.py\", \"session\": \"yes\"}", "'session' must be true or false" },
    { "extras twice", "{\"conf\": \"a.py\", \"extras\": {}, \"extra\": {}}", "'extra' is there twice" },
    { "extras that are a text", "{\"conf\": \"a.py\", \"extras\": \"-b 3\"}", "'extras' must be an object" },
    { "an extra that is an object", "{\"conf\": \"a.py\", \"extras\": {\"a\": {}}}",
      "'extras.a' must be a string or a number" },
    { "arguments that are a list", "{\"conf\": \"a.py\", \"arguments\": []}", "'arguments' must be an object" },
    { "an argument without a place", "{\"conf\": \"a.py\", \"arguments\": {\"b\": [\"-b\"]}}",
      "'arguments.b' has no {}" },
    { "an empty argument", "{\"conf\": \"a.py\", \"arguments\": {\"b\": []}}", "'arguments.b' has no {}" },
    { "a wrong placeholder", "{\"conf\": \"a.py\", \"arguments\": {\"b\": [\"-b\",\n\"{value}\"]}}",
      "line 2: 'arguments.b.1' has the placeholder {value}; here it can be {}" },
    { "a wrong placeholder of resume", "{\"conf\": \"a.py\", \"arguments\": {\"resume\": [\"{}\"]}}",
      "{model} or {state}" },
    { "a jar without a class", "{\"conf\": \"a.jar\"}", "'conf' is a jar, so 'class'" },
    { "a class in Python", "{\"conf\": \"a.py\", \"class\": \"x.Y\"}",
      "'class' does not go with the Python application" },
};

static void test_app_explains_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct application a = { 0 };
        struct err e = { 0 };
        if (parse(&a, faults[i].text, &e) != -EINVAL || !strstr(e.text, faults[i].want))
            fail_msg("%s: got '%s', want '%s'", faults[i].name, e.text, faults[i].want);
    }
}

static void test_app_json_in_a_word_is_no_placeholder(void **state)
{
    (void)state;
    struct application a = parsed("{\"conf\": \"a.py\", \"arguments\": {\"lr\": [\"--set\", \"{\\\"lr\\\": {}}\"]}}");
    assert_string_equal(app_file_argument(&a.file, "lr")->words.v[1], "{\"lr\": {}}");
    app_done(&a);
}

static void test_app_finds_extras_by_name(void **state)
{
    (void)state;
    struct application a =
        parsed("{\"conf\": \"a.py\", \"extras\": {\"batchSize\": 3, \"max_epoch\": 2, \"-r\": 0.1}}");
    assert_int_equal(app_file_extra(&a.file, "batch_size"), 0);
    assert_int_equal(app_file_extra(&a.file, "BATCH-SIZE"), 0);
    assert_int_equal(app_file_extra(&a.file, "epochs"), 1);
    assert_int_equal(app_file_extra(&a.file, "r"), 2);
    assert_int_equal(app_file_extra(&a.file, "batch"), -1);
    app_done(&a);
    a = parsed("{\"conf\": \"a.py\", \"extras\": {\"epochs\": 1, \"endTriggerNum\": 2}}");
    assert_int_equal(app_file_extra(&a.file, "epochs"), 1);
    app_done(&a);
}

static const struct {
    const char *name, *hyper;
    bool arguments;
    const char *want; /* NULL: it reaches */
} reaches[] = {
    { "a row of arguments", "batch_size", true, NULL },
    { "an extra does not count beside arguments", "momentum", true, "'momentum' reaches nothing in 'mnist.json'" },
    { "a slip", "batch_sise", true, "did you mean 'batch_size'?" },
    { "a role is none", "epochs", true, "PipeTune sets this one itself" },
    { "an extra", "momentum", false, NULL },
    { "an extra in other letters", "BatchSize", false, NULL },
    { "a slip of an extra", "momentun", false, "did you mean 'momentum'?" },
    { "nothing near", "dropout", false, "add it to 'extras'" },
};

static void test_app_says_what_a_hyperparameter_reaches(void **state)
{
    (void)state;
    struct application with =
        parsed("{\"conf\": \"a.py\", \"extras\": {\"momentum\": 0}, \"arguments\": {\"batch_size\": [\"{}\"],"
               " \"epochs\": [\"-e\", \"{}\"]}}");
    struct application without = parsed("{\"conf\": \"a.py\", \"extras\": {\"momentum\": 0, \"batch_size\": 1}}");
    for (size_t i = 0; i < ARRAY_LEN(reaches); i++) {
        struct err e = { 0 };
        int rc = app_reaches(reaches[i].arguments ? &with : &without, reaches[i].hyper, &e);
        if (rc != (reaches[i].want ? -EINVAL : 0) || (reaches[i].want && !strstr(e.text, reaches[i].want)))
            fail_msg("%s: got %d '%s'", reaches[i].name, rc, e.text);
    }
    app_done(&with);
    app_done(&without);
}

static int note_path(void *ctx, const char *key, char **path, struct err *e)
{
    struct buf *b = ctx;
    buf_printf(b, "%s=%s ", key, *path);
    if (strcmp(*path, "stop") == 0)
        return err_set(e, -ENOENT, "stopped");
    free(*path);
    *path = strdup("/resolved");
    return 0;
}

static void test_app_offers_its_local_paths(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e = { 0 };
    struct application a = parsed(
        "{\"conf\": \"a.py\", \"jars\": \"hdfs:/x.jar,y.jar\", \"properties_file\": \"p\", \"python\": \"v/python\","
        " \"py_files\": \"s3a://b/z.zip\"}");
    assert_int_equal(a.kind->paths(&a, note_path, &b, &e), 0);
    assert_string_equal(buf_text(&b), "conf=a.py jars=y.jar properties_file=p python=v/python ");
    assert_string_equal(own(&a)->jars.v[0], "hdfs:/x.jar");
    assert_string_equal(own(&a)->jars.v[1], "/resolved");
    app_done(&a);
    a = parsed("{\"conf\": \"a.py\", \"python\": \"python3.9\"}");
    assert_int_equal(a.kind->paths(&a, note_path, &b, &e), 0);
    assert_string_equal(own(&a)->python, "python3.9"); /* a command */
    app_done(&a);
    a = parsed("{\"conf\": \"stop\", \"jars\": \"y.jar\"}");
    assert_int_equal(a.kind->paths(&a, note_path, &b, &e), -ENOENT);
    assert_string_equal(own(&a)->jars.v[0], "y.jar");
    app_done(&a);
}

static void test_app_leaves_nothing_behind_whatever_fails(void **state)
{
    (void)state;
    struct err e = { 0 };
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    assert_int_equal(json_doc_parse(&doc, "mnist.json", whole, strlen(whole), &e), 0);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        struct application a = { .checkpoints = true };
        fault_arm(FAULT_ALLOC, nth);
        rc = app_parse(&a, &doc, lookup, NULL, &e);
        fault_disarm();
        if (rc < 0) {
            assert_int_equal(rc, -ENOMEM);
            assert_true(a.checkpoints && !a.kind); /* untouched */
        } else {
            assert_string_equal(own(&a)->properties_file, "/opt/bigdl/spark.conf");
            app_done(&a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_app_reads_every_key),
        cmocka_unit_test(test_app_reads_extras_and_arguments),
        cmocka_unit_test(test_app_has_defaults),
        cmocka_unit_test(test_app_explains_faults),
        cmocka_unit_test(test_app_json_in_a_word_is_no_placeholder),
        cmocka_unit_test(test_app_finds_extras_by_name),
        cmocka_unit_test(test_app_says_what_a_hyperparameter_reaches),
        cmocka_unit_test(test_app_offers_its_local_paths),
        cmocka_unit_test(test_app_leaves_nothing_behind_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
