#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "bigdl/submit.h"
#include "tests/fault.h"

static struct application parsed(const char *text)
{
    struct application a = { 0 };
    struct err e = { 0 };
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    if (json_doc_parse(&doc, "m.json", text, strlen(text), &e) < 0 || app_parse(&a, &doc, NULL, NULL, &e) < 0)
        fail_msg("%s\n%s", text, e.text);
    return a;
}

#define JVM_TAIL                                                                                                       \
    "\"driver_memory\": \"2g\", \"executor_memory\": \"3g\", \"jars\": \"/b/core.jar\", \"class\": \"c.Train\", "      \
    "\"conf\": \"/b/dllib.jar\", \"properties_file\": \"/b/spark.conf\", "                                             \
    "\"extras\": {\"folder\": \"/d\", \"-b\": 32}, "                                                                   \
    "\"arguments\": {\"batch_size\": [\"-b\", \"{}\"], \"rate\": [\"--rate={}\"], \"epochs\": [\"-e\", \"{}\"], "      \
    "\"checkpoint\": [\"--checkpoint\", \"{}\"], \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"]}}"
#define JVM(master) "{\"master\": \"" master "\", " JVM_TAIL
#define PYTHON                                                                                                         \
    "{\"conf\": \"/apps/lenet5.py\", \"jars\": \"/b/dllib.jar,/b/core.jar\", \"py_files\": \"/p.zip\", "               \
    "\"extras\": {\"data\": \"/d\", \"batchSize\": 8, \"endTriggerNum\": 1, \"seed\": 0, \"verbose\": true}}"

static const struct app_value hypers[] = { { "batch_size", "1024" } };

/* A launch of an application, and what is there for it. */
struct job {
    const struct application *app;
    struct app_tools tools;
    struct app_launch l;
};

static struct job job(const struct application *a)
{
    return (struct job){ .app = a,
                         .tools = { .spark_submit = "spark-submit", .log4j = "/c/log4j2.properties" },
                         .l = { .launch = "s-1-1",
                                .hypers = hypers,
                                .n_hypers = ARRAY_LEN(hypers),
                                .epochs = 2,
                                .slots = 4,
                                .parts = 1,
                                .memory_gb = NAN } };
}

static int argv_of(const struct job *s, struct strv *out, struct err *e)
{
    struct app_launch l = s->l;
    l.tools = &s->tools;
    return submit_argv(s->app, &l, out, e);
}

/* argv as one line, words between blanks. */
static struct buf line_of(const struct job *s)
{
    AUTO_STRV struct strv v = STRV_INIT;
    struct err e = { 0 };
    if (argv_of(s, &v, &e) < 0)
        fail_msg("%s", e.text);
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < v.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", v.v[i]);
    return b;
}

#define JAVA                                                                                                           \
    "-Dlog4j2.configurationFile=file:/c/log4j2.properties -Dbigdl.utils.LoggerFilter.disable=true "                    \
    "-Dpipetune.launch=s-1-1"
#define LOCAL_CONF "--conf spark.driver.extraJavaOptions=" JAVA " --conf spark.executor.extraJavaOptions=" JAVA " "
#define REMOTE_CONF                                                                                                    \
    "--conf spark.driver.extraJavaOptions=" JAVA " --conf spark.executor.extraJavaOptions=-Dpipetune.launch=s-1-1 "
#define JVM_REST                                                                                                       \
    "--conf spark.ui.enabled=false --jars /b/core.jar --class c.Train /b/dllib.jar --folder /d -b 1024 -e 2"

static const struct {
    const char *name, *file, *want;
} masters[] = {
    { "local", JVM("local[*]"),
      "spark-submit --master local[4] --deploy-mode client --properties-file /b/spark.conf --driver-memory "
      "2g " LOCAL_CONF JVM_REST },
    { "local with failures", JVM("local[*,3]"),
      "spark-submit --master local[4,3] --deploy-mode client --properties-file /b/spark.conf --driver-memory "
      "2g " LOCAL_CONF JVM_REST },
    { "standalone on this machine", JVM("spark://127.0.0.1:7077"),
      "spark-submit --master spark://127.0.0.1:7077 --deploy-mode client --properties-file /b/spark.conf "
      "--driver-memory 2g "
      "--executor-memory 3g --total-executor-cores 4 --executor-cores 4 " LOCAL_CONF JVM_REST },
    { "standalone elsewhere", JVM("spark://h:7077"),
      "spark-submit --master spark://h:7077 --deploy-mode client --properties-file /b/spark.conf --driver-memory 2g "
      "--executor-memory 3g --total-executor-cores 4 --executor-cores 4 " REMOTE_CONF JVM_REST },
    { "yarn", JVM("yarn"),
      "spark-submit --master yarn --deploy-mode client --properties-file /b/spark.conf --driver-memory 2g "
      "--executor-memory 3g --num-executors 1 --executor-cores 4 --conf spark.yarn.tags=s-1-1 " REMOTE_CONF JVM_REST },
    { "k8s", JVM("k8s://https://h:6443"),
      "spark-submit --master k8s://https://h:6443 --deploy-mode client --properties-file /b/spark.conf --driver-memory "
      "2g --executor-memory 3g --num-executors 1 --executor-cores 4 --conf spark.cores.max=4 --conf "
      "spark.kubernetes.executor.limit.cores=4 --conf "
      "spark.kubernetes.executor.label.pipetune-launch=s-1-1 " REMOTE_CONF JVM_REST },
    { "Python, extras in place", PYTHON,
      "spark-submit --master local[4] --deploy-mode client " LOCAL_CONF
      "--conf spark.driver.extraClassPath=/b/dllib.jar:/b/core.jar --conf "
      "spark.executor.extraClassPath=/b/dllib.jar:/b/core.jar --conf spark.ui.enabled=false --jars "
      "/b/dllib.jar,/b/core.jar "
      "--py-files /p.zip /apps/lenet5.py --data /d --batchSize 1024 --endTriggerNum 2 --seed 0 --verbose" },
};

static void test_submit_speaks_to_each_master(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(masters); i++) {
        struct application a = parsed(masters[i].file);
        struct job s = job(&a);
        AUTO_BUF struct buf got = line_of(&s);
        if (strcmp(buf_text(&got), masters[i].want) != 0)
            fail_msg("%s: got\n%s\nwant\n%s", masters[i].name, buf_text(&got), masters[i].want);
        app_done(&a);
    }
}

static void assert_has(const struct job *s, const char *want)
{
    AUTO_BUF struct buf got = line_of(s);
    if (!strstr(buf_text(&got), want))
        fail_msg("'%s' is not in\n%s", want, buf_text(&got));
}

static void assert_lacks(const struct job *s, const char *what)
{
    AUTO_BUF struct buf got = line_of(s);
    if (strstr(buf_text(&got), what))
        fail_msg("'%s' is in\n%s", what, buf_text(&got));
}

static void test_submit_puts_arguments_in_a_stable_order(void **state)
{
    (void)state;
    static const struct app_value two[] = { { "rate", "0.1" }, { "batch_size", "64" } };
    struct application a = parsed(JVM("local[*]"));
    struct job s = job(&a);
    s.l.hypers = two;
    s.l.n_hypers = 2;
    s.l.checkpoint = "/ck";
    s.l.resume_model = "/m.pb";
    s.l.resume_state = "/s.60";
    s.l.seed = "7"; /* the application has no such argument */
    assert_has(&s, "/b/dllib.jar --folder /d --rate=0.1 -b 64 -e 2 --checkpoint /ck --model /m.pb --state /s.60");
    assert_lacks(&s, "7");
    s.l.n_hypers = 1;
    assert_has(&s, "--folder /d -b 32 --rate=0.1"); /* the file's own value, when nobody gives another */
    app_done(&a);
}

static void test_submit_roles_replace_extras_of_their_name(void **state)
{
    (void)state;
    struct application a = parsed(PYTHON);
    struct job s = job(&a);
    s.l.seed = "7";
    s.l.checkpoint = "/nowhere";
    assert_has(&s, "--seed 7");
    assert_lacks(&s, "/nowhere");
    app_done(&a);
}

static void test_submit_tells_a_session_nothing_of_trials(void **state)
{
    (void)state;
    static const struct app_value odd[] = { { "batch_size", "64" }, { "dropout", "0.5" } };
    static const struct app_value properties[] = { { "spark.locality.wait", "0s" } };
    struct application a = parsed(PYTHON);
    struct job s = job(&a);
    s.l.session = "/run/user/1/pipetune/s-1.sock";
    s.l.hypers = odd;
    s.l.n_hypers = ARRAY_LEN(odd);
    s.l.properties = properties;
    s.l.n_properties = 1;
    s.l.checkpoint = "/ck";
    s.l.resume_model = "/m";
    s.l.resume_state = "/s";
    s.l.seed = "7";
    assert_has(&s, "--conf spark.ui.enabled=false --conf spark.pipetune.session=/run/user/1/pipetune/s-1.sock --conf "
                   "spark.locality.wait=0s --jars");
    assert_has(&s, "/apps/lenet5.py --data /d --batchSize 8 --endTriggerNum 1 --seed 0 --verbose");
    assert_has(&s, "-Dpipetune.launch=s-1-1");
    app_done(&a);
    a = parsed("{\"conf\": \"/a.py\", \"extras\": {\"data\": \"/d\", \"-b\": 32}, \"arguments\": {\"batch_size\": "
               "[\"-b\", \"{}\"], \"seed\": [\"-s\", \"{}\"]}}"); /* no "epochs": it gets them by its socket */
    s.app = &a;
    AUTO_BUF struct buf got = line_of(&s);
    assert_string_equal(strstr(buf_text(&got), "/a.py"), "/a.py --data /d -b 32");
    app_done(&a);
}

static void test_submit_applies_the_setting(void **state)
{
    (void)state;
    static const struct app_value properties[] = {
        { "spark.locality.wait", "0s" },
        { "spark.executor.extraJavaOptions", "-XX:+UseSerialGC" },
    };
    struct application a = parsed(JVM("spark://h:7077"));
    struct job s = job(&a);
    s.l.memory_gb = 1.5;
    s.l.parts = 2;
    s.l.properties = properties;
    s.l.n_properties = 2;
    assert_has(&s, "--driver-memory 2g --executor-memory 1536m --total-executor-cores 4 --executor-cores 2");
    assert_has(&s, "spark.executor.extraJavaOptions=-Dpipetune.launch=s-1-1 -XX:+UseSerialGC --conf");
    assert_has(&s, "--conf spark.locality.wait=0s");
    app_done(&a);
    a = parsed(JVM("local[*]"));
    s.app = &a;
    assert_has(&s, "--driver-memory 1536m --conf");
    assert_lacks(&s, "--executor-memory");
    app_done(&a);
}

static void test_submit_dry_run_has_no_tag(void **state)
{
    (void)state;
    struct application a = parsed(JVM("spark://h:7077"));
    struct job s = job(&a);
    s.l.launch = NULL;
    s.tools.log4j = "/a folder/x%.properties";
    assert_lacks(&s, "pipetune.launch");
    assert_lacks(&s, "spark.executor.extraJavaOptions");
    assert_has(&s, "=file:/a%20folder/x%25.properties -Dbigdl");
    s.tools.log4j = NULL;
    assert_has(&s, "spark.driver.extraJavaOptions=-Dbigdl.utils.LoggerFilter.disable=true --conf");
    app_done(&a);
}

static void test_submit_refuses_what_cannot_be(void **state)
{
    (void)state;
    static const struct app_value odd[] = { { "dropout", "0.5" } };
    AUTO_STRV struct strv v = STRV_INIT;
    struct err e = { 0 };
    struct application a = parsed(JVM("spark://h:7077"));
    struct job s = job(&a);
    s.l.parts = 3;
    assert_int_equal(argv_of(&s, &v, &e), -EINVAL);
    assert_string_equal(e.text, "3 executors do not divide 4 cores evenly");
    s.l.parts = 1;
    s.l.hypers = odd;
    assert_int_equal(argv_of(&s, &v, &e), -EINVAL);
    assert_non_null(strstr(e.text, "'dropout' reaches nothing"));
    app_done(&a);
    a = parsed("{\"conf\": \"a.py\", \"extras\": {\"batch_size\": 1}}");
    s = job(&a);
    assert_int_equal(argv_of(&s, &v, &e), -EINVAL);
    assert_non_null(strstr(e.text, "the number of epochs reaches nothing"));
    app_done(&a);
}

static void test_submit_converts_checkpoints(void **state)
{
    (void)state;
    struct application a = parsed(JVM("spark://h:7077"));
    struct job s = job(&a);
    s.tools.python = "/venv/python";
    AUTO_STRV struct strv v = STRV_INIT;
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e = { 0 };
    s.tools.converter = "/apps/convert_checkpoint.py";
    s.l.tools = &s.tools;
    assert_false(submit_needs_convert(&a, &s.l));
    s.l.resume_model = "/ck/model.60";
    s.l.converted = "/ck/m.pb";
    assert_true(submit_needs_convert(&a, &s.l));
    assert_int_equal(submit_convert_argv(&a, &s.l, &v, &e), 0);
    for (size_t i = 0; i < v.n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", v.v[i]);
    assert_string_equal(buf_text(&b),
                        "spark-submit --master local[1] --deploy-mode client --properties-file /b/spark.conf --conf "
                        "spark.driver.extraJavaOptions=" JAVA " --conf spark.pyspark.python=/venv/python --conf "
                        "spark.driver.extraClassPath=/b/dllib.jar:/b/core.jar --conf "
                        "spark.executor.extraClassPath=/b/dllib.jar:/b/core.jar --conf spark.ui.enabled=false "
                        "/apps/convert_checkpoint.py /ck/model.60 /ck/m.pb");
    app_done(&a);
}

static void test_submit_leaves_out_what_bigdl_alone_needs(void **state)
{
    (void)state;
    struct application a =
        parsed("{\"kind\": \"spark\", \"conf\": \"/a.py\", \"jars\": \"/b/x.jar\", \"py_files\": \"/p.zip\", "
               "\"extras\": {\"batch_size\": 8, \"epochs\": 1}}");
    struct job s = job(&a);
    s.tools.classes = "/h/python.jsa";
    s.tools.library = "/h/python";
    assert_has(&s, "--conf spark.driver.extraJavaOptions=-Dlog4j2.configurationFile=file:/c/log4j2.properties "
                   "-Dpipetune.launch=s-1-1 --conf");
    assert_has(&s, "--jars /b/x.jar --py-files /p.zip,/h/python/pipetune.py /a.py --batch_size 1024 --epochs 2");
    assert_lacks(&s, "bigdl");
    assert_lacks(&s, "extraClassPath");
    assert_lacks(&s, "SharedArchiveFile");
    app_done(&a);
}

static size_t collectors(const struct job *s)
{
    AUTO_BUF struct buf line = line_of(s);
    size_t n = 0;
    for (const char *at = buf_text(&line); (at = strstr(at, "GC")); at += 2)
        n++;
    return n;
}

static void test_submit_collects_serially_on_one_cpu(void **state)
{
    (void)state;
    struct application local = parsed(JVM("local[2]")), cluster = parsed(JVM("spark://h:7077"));
    struct app_value own = { "spark.driver.extraJavaOptions", "-XX:+UseZGC" };
    struct job s = job(&local);
    assert_int_equal(collectors(&s), 0);
    s.l.one_cpu = true;
    assert_int_equal(collectors(&s), 1);
    s.l.properties = &own;
    s.l.n_properties = 1;
    assert_int_equal(collectors(&s), 1); /* the user's, since with two the JVM does not start */
    s = job(&cluster);
    s.l.one_cpu = true;
    assert_int_equal(collectors(&s), 0); /* the driver there trains nothing */
    app_done(&local);
    app_done(&cluster);
}

static void test_submit_collects_for_throughput_in_sessions(void **state)
{
    (void)state;
    struct application local = parsed(PYTHON), cluster = parsed("{\"master\": \"yarn\", \"conf\": \"/a.py\"}");
    struct app_value own = { "spark.driver.extraJavaOptions", "-XX:+UseZGC" };
    struct job s = job(&local);
    s.l.session = "/s.sock";
    assert_has(&s, "s-1-1 -XX:+UseParallelGC -XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=150000 ");
    assert_int_equal(collectors(&s), 1);
    s.l.properties = &own;
    s.l.n_properties = 1;
    assert_int_equal(collectors(&s), 1);
    assert_lacks(&s, "Parallel");
    s = job(&local);
    s.l.session = "/s.sock";
    s.l.one_cpu = true;
    assert_has(&s, "s-1-1 -XX:+UseSerialGC ");
    assert_int_equal(collectors(&s), 1);
    s = job(&cluster);
    s.l.session = "/s.sock";
    assert_int_equal(collectors(&s), 0);
    app_done(&local);
    app_done(&cluster);
}

static void test_submit_begins_sessions_with_all_their_heap(void **state)
{
    (void)state;
    struct application local = parsed(PYTHON),
                       cluster = parsed("{\"master\": \"yarn\", \"conf\": \"/a.py\", \"driver_memory\": 1}"),
                       file = parsed("{\"master\": \"local[2]\", \"conf\": \"/a.py\", \"driver_memory\": \"900m\"}");
    struct app_value own = { "spark.driver.extraJavaOptions", "-Xms1g" };
    struct job s = job(&local);
    s.l.memory_gb = 2.5;
    assert_lacks(&s, "-Xms");
    s.l.session = "/s.sock";
    assert_has(&s, " -Xms2560m ");
    s.l.properties = &own;
    s.l.n_properties = 1;
    assert_has(&s, " -Xms2560m -Xms1g "); /* the last one holds */
    s = job(&local);
    s.l.session = "/s.sock";
    s.l.memory_gb = NAN;
    assert_lacks(&s, "-Xms");
    s = job(&file);
    s.l.session = "/s.sock";
    s.l.memory_gb = NAN;
    assert_has(&s, " -Xms900m ");
    s = job(&cluster);
    s.l.session = "/s.sock";
    assert_lacks(&s, "-Xms"); /* the driver there trains nothing */
    app_done(&local);
    app_done(&cluster);
    app_done(&file);
}

static void test_submit_gives_python_drivers_their_class_archive(void **state)
{
    (void)state;
    struct application python =
        parsed("{\"master\": \"local[2]\", \"conf\": \"/a/app.py\", \"arguments\": {\"epochs\": [\"-e\", \"{}\"], "
               "\"batch_size\": [\"-b\", \"{}\"]}}");
    struct application jvm = parsed(JVM("local[2]"));
    struct app_value own = { "spark.driver.extraJavaOptions", "-XX:SharedArchiveFile=/own.jsa" };
    struct job s = job(&python);
    assert_lacks(&s, "-XX:SharedArchiveFile");
    s.tools.classes = "/h/.pipetune/classes/python.jsa";
    assert_has(&s, "s-1-1 -XX:SharedArchiveFile=/h/.pipetune/classes/python.jsa -Xlog:cds=off -Xlog:cds+dynamic=off "
                   "--conf spark.executor.extraJavaOptions=" JAVA " --conf");
    s.l.properties = &own;
    s.l.n_properties = 1;
    assert_has(&s, "-Xlog:cds+dynamic=off -XX:SharedArchiveFile=/own.jsa --conf"); /* the last one counts */
    s.l.n_properties = 0;
    s.tools.classes = "/my home/python.jsa";
    assert_lacks(&s, "-XX:SharedArchiveFile"); /* the JVM would take what follows the blank for its program */
    s.app = &jvm;
    s.tools.classes = "/h/.pipetune/classes/python.jsa";
    assert_lacks(&s, "-XX:SharedArchiveFile"); /* its class path is another */
    app_done(&python);
    app_done(&jvm);
}

static void test_submit_puts_closures_before_the_jars(void **state)
{
    (void)state;
    struct application python =
        parsed("{\"master\": \"local[2]\", \"conf\": \"/a/app.py\", \"jars\": [\"/b/x.jar\", \"/b/y.jar\"], "
               "\"arguments\": {\"epochs\": [\"-e\", \"{}\"], \"batch_size\": [\"-b\", \"{}\"]}}");
    struct job s = job(&python);
    assert_has(&s, "--conf spark.driver.extraClassPath=/b/x.jar:/b/y.jar ");
    s.tools.closures = "/h/closures.jar";
    s.tools.closures_of = "/b/y.jar";
    s.l.session = "/s.sock";
    assert_has(&s, "--conf spark.driver.extraClassPath=/h/closures.jar:/b/x.jar:/b/y.jar ");
    assert_has(&s, "--conf spark.executor.extraClassPath=/b/x.jar:/b/y.jar "); /* closures are the driver's */
    s.tools.closures_of = "/b/other.jar";
    assert_lacks(&s, "closures"); /* other classes than this application's */
    s.tools.closures_of = "/b/y.jar";
    s.l.session = NULL;
    assert_lacks(&s, "closures"); /* in one submission they would save less */
    app_done(&python);
}

/* The setting's, else the file's, else what the environment has. */
static void test_submit_takes_the_python_that_was_chosen(void **state)
{
    (void)state;
    struct application file = parsed("{\"conf\": \"/a.py\", \"python\": \"python3.9\", \"extras\": {\"epochs\": 1, "
                                     "\"batch_size\": 8}}");
    struct application silent = parsed(PYTHON);
    struct app_value knob = { "spark.pyspark.python", "/opt/python" };
    struct job s = job(&silent);
    assert_lacks(&s, "pyspark");
    s.tools.python = "/venv/python";
    assert_has(&s, "--conf spark.pyspark.python=/venv/python ");
    s.app = &file;
    assert_has(&s, "--conf spark.pyspark.python=python3.9 ");
    assert_lacks(&s, "/venv/python");
    s.l.properties = &knob;
    s.l.n_properties = 1;
    assert_has(&s, "--conf spark.pyspark.python=/opt/python ");
    assert_lacks(&s, "python3.9"); /* once: which of two Spark takes is not for a reader to know */
    app_done(&silent);
    app_done(&file);
}

static void test_submit_writes_sizes(void **state)
{
    (void)state;
    static const struct {
        double gb;
        const char *want;
    } sizes[] = { { 8, "8g" }, { 0.5, "512m" }, { 1.5, "1536m" }, { 1.0001, "1g" },
                  { 0, "1m" }, { NAN, "1m" },   { 4096, "4096g" } };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char text[32];
        submit_memory_text(sizes[i].gb, text);
        assert_string_equal(text, sizes[i].want);
    }
}

static void test_submit_says_when_memory_is_out(void **state)
{
    (void)state;
    struct application jvm = parsed(JVM("spark://h:7077")), python = parsed(PYTHON);
    const struct application *all[] = { &jvm, &python, &python };
    for (size_t k = 0; k < ARRAY_LEN(all); k++) {
        AUTO_BUF struct buf want = BUF_INIT;
        struct job s = job(all[k]);
        s.l.checkpoint = "/ck";
        s.l.session = k == 2 ? "/s.sock" : NULL;
        want = line_of(&s);
        int rc = -ENOMEM;
        for (unsigned nth = 1; rc < 0; nth++) {
            AUTO_STRV struct strv v = STRV_INIT;
            struct err e = { 0 };
            assert_true(nth < 400);
            fault_arm(FAULT_ALLOC, nth);
            rc = argv_of(&s, &v, &e);
            bool struck = fault_disarm();
            assert_int_equal(rc, struck ? -ENOMEM : 0);
        }
    }
    app_done(&jvm);
    app_done(&python);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit_speaks_to_each_master),
        cmocka_unit_test(test_submit_puts_arguments_in_a_stable_order),
        cmocka_unit_test(test_submit_roles_replace_extras_of_their_name),
        cmocka_unit_test(test_submit_tells_a_session_nothing_of_trials),
        cmocka_unit_test(test_submit_applies_the_setting),
        cmocka_unit_test(test_submit_dry_run_has_no_tag),
        cmocka_unit_test(test_submit_refuses_what_cannot_be),
        cmocka_unit_test(test_submit_converts_checkpoints),
        cmocka_unit_test(test_submit_leaves_out_what_bigdl_alone_needs),
        cmocka_unit_test(test_submit_collects_serially_on_one_cpu),
        cmocka_unit_test(test_submit_collects_for_throughput_in_sessions),
        cmocka_unit_test(test_submit_begins_sessions_with_all_their_heap),
        cmocka_unit_test(test_submit_gives_python_drivers_their_class_archive),
        cmocka_unit_test(test_submit_puts_closures_before_the_jars),
        cmocka_unit_test(test_submit_takes_the_python_that_was_chosen),
        cmocka_unit_test(test_submit_writes_sizes),
        cmocka_unit_test(test_submit_says_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
