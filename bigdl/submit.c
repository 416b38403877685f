#include "bigdl/submit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"

void submit_memory_text(double gb, char out[32])
{
    double mib = round(gb * 1024);
    if (!(mib >= 1)) /* NAN too */
        mib = 1;
    if (mib > 1e15)
        mib = 1e15;
    if (fmod(mib, 1024) == 0)
        (void)snprintf(out, 32, "%.0fg", mib / 1024);
    else
        (void)snprintf(out, 32, "%.0fm", mib);
}

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "spark-submit's arguments");
}

static void add_pair(struct strv *out, const char *option, const char *value)
{
    if (!value)
        return;
    strv_add(out, option);
    strv_add(out, value);
}

static void add_conf(struct strv *out, const char *name, const char *value)
{
    strv_add(out, "--conf");
    strv_addf(out, "%s=%s", name, value);
}

static void add_joined(struct strv *out, const char *option, const struct strv *parts)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (parts->n == 0)
        return;
    for (size_t i = 0; i < parts->n; i++) {
        buf_puts(&b, i ? "," : "");
        buf_puts(&b, parts->v[i]);
    }
    out->failed |= b.failed;
    add_pair(out, option, buf_text(&b));
}

/* ---- master, cores, memory ------------------------------------------------------------------------------------------ */

static bool is_standalone(const struct app *a)
{
    return strncmp(a->master, "spark://", 8) == 0;
}

/* The driver's machine runs the executors too, so our log4j2 file is there. */
static bool is_loopback(const struct app *a)
{
    static const char *const here[] = { "spark://127.", "spark://localhost:", "spark://[::1]:" };
    for (size_t i = 0; i < ARRAY_LEN(here); i++)
        if (strncmp(a->master, here[i], strlen(here[i])) == 0)
            return true;
    return app_is_local(a);
}

/* local[slots], with the number of task failures that the file may give: local[*,4] */
static void add_master(struct strv *out, const struct submit *s)
{
    const char *failures = app_is_local(s->app) ? strchr(s->app->master, ',') : NULL;
    strv_add(out, "--master");
    if (!app_is_local(s->app))
        strv_add(out, s->app->master);
    else
        strv_addf(out, "local[%d%s", s->slots, failures ? failures : "]");
}

/* Cores of one executor: BigDL wants the total to be a multiple of them. */
static int cores_each(const struct submit *s, struct err *e)
{
    if (s->executors < 1 || s->slots % s->executors != 0)
        return err_set(e, -EINVAL, "%d executors do not divide %d cores evenly", s->executors, s->slots);
    return s->slots / s->executors;
}

static int add_cores(struct strv *out, const struct submit *s, struct err *e)
{
    if (app_is_local(s->app))
        return 0;
    int each = cores_each(s, e);
    if (each < 0)
        return each;
    if (is_standalone(s->app)) {
        strv_add(out, "--total-executor-cores");
        strv_addf(out, "%d", s->slots);
    } else {
        strv_add(out, "--num-executors");
        strv_addf(out, "%d", s->slots / each);
    }
    strv_add(out, "--executor-cores");
    strv_addf(out, "%d", each);
    return 0;
}

/* What the JVM that trains gets: the setting's memory, else the file's. NULL: whatever Spark gives it. */
static const char *heap_text(const struct submit *s, char text[32])
{
    if (isnan(s->memory_gb))
        return app_is_local(s->app) ? s->app->driver_memory : s->app->executor_memory;
    submit_memory_text(s->memory_gb, text);
    return text;
}

static void add_memory(struct strv *out, const struct submit *s)
{
    char text[32];
    bool local = app_is_local(s->app);
    add_pair(out, "--driver-memory", local ? heap_text(s, text) : s->app->driver_memory);
    if (!local)
        add_pair(out, "--executor-memory", heap_text(s, text));
}

/* ---- properties ----------------------------------------------------------------------------------------------------- */

static const char DRIVER_OPTIONS[] = "spark.driver.extraJavaOptions";
static const char EXECUTOR_OPTIONS[] = "spark.executor.extraJavaOptions";

/* What stands for itself in a URI and in the JVM's options, which are split at blanks. */
static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~/+@";

/* A path as a URI, which is what log4j2 reads. */
static void put_uri_path(struct buf *b, const char *path)
{
    for (; *path; path++) {
        if (strchr(PLAIN, *path))
            buf_putc(b, *path);
        else
            buf_printf(b, "%%%02X", (unsigned)(unsigned char)*path);
    }
}

/* The setting's own options of this name come last: there the JVM lets them win. */
static void put_setting_options(struct buf *b, const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].name, name) == 0)
            buf_printf(b, "%s%s", b->len ? " " : "", s->properties[i].text);
}

/* A JVM that is told of two collectors does not start. */
static bool sets_collector(const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].name, name) == 0 && strstr(s->properties[i].text, "GC"))
            return true;
    return false;
}

/* Are these the options of the JVM that trains? Without a cluster that is the driver. */
static bool trains_here(const struct submit *s, const char *name)
{
    return app_is_local(s->app) && strcmp(name, DRIVER_OPTIONS) == 0;
}

/* Training wants throughput, which G1 gives away for short pauses: in the JVM that trains, other collectors take 5 to 10 % less
 * CPU time. A plain submission is left as the user would make it. */
static void put_collector(struct buf *b, const struct submit *s, const char *name)
{
    if (!trains_here(s, name) || sets_collector(s, name))
        return;
    if (s->one_cpu)
        buf_puts(b, " -XX:+UseSerialGC"); /* what the JVM would choose on such a machine */
    else if (s->session)
        buf_puts(b, " -XX:+UseParallelGC");
}

/* A trial lasts for a minute or two, in which the optimising compiler spends a fifth of all CPU time on code of Spark that runs a few
 * thousand times. It waits thirty times as long as it would; what trains for longer is compiled all the same. Other JVMs pass over it. */
static void put_compiler(struct buf *b, const struct submit *s, const char *name)
{
    if (s->session && trains_here(s, name))
        buf_puts(b, " -XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=150000 "
                    "-XX:Tier4MinInvocationThreshold=18000"
                    " -XX:Tier4CompileThreshold=450000 -XX:Tier4BackEdgeThreshold=1200000");
}

/* A JVM begins with little of its heap and adds none while collecting is cheap: with all of it from the start it collects an eighth as
 * often, which saves 3 % of the CPU time of a session that lasts. What it never uses is never touched. */
static void put_heap(struct buf *b, const struct submit *s, const char *name)
{
    char text[32];
    const char *heap = heap_text(s, text);
    if (s->session && trains_here(s, name) && heap)
        buf_printf(b, " -Xms%s", heap);
}

/* The JVM takes an archive only when its version, jars and class path are those it was made with; else it goes on as ever, and
 * without these -Xlog it would complain. */
static void put_classes(struct buf *b, const struct submit *s, const char *name)
{
    if (s->classes && app_is_python(s->app) && strcmp(name, DRIVER_OPTIONS) == 0 &&
        strspn(s->classes, PLAIN) == strlen(s->classes))
        buf_printf(b, "%s-XX:SharedArchiveFile=%s -Xlog:cds=off -Xlog:cds+dynamic=off", b->len ? " " : "", s->classes);
}

/* Without LoggerFilter.disable BigDL re-routes the log (PROVEN.md); an executor floods its own log without our file. */
static void add_java_options(struct strv *out, const struct submit *s, const char *name, bool log)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (log && s->log4j) {
        buf_puts(&b, "-Dlog4j2.configurationFile=file:");
        put_uri_path(&b, s->log4j);
        buf_putc(&b, ' ');
    }
    if (log)
        buf_puts(&b, "-Dbigdl.utils.LoggerFilter.disable=true");
    if (s->launch)
        buf_printf(&b, "%s-Dpipetune.launch=%s", b.len ? " " : "", s->launch);
    put_collector(&b, s, name);
    put_compiler(&b, s, name);
    put_heap(&b, s, name);
    put_classes(&b, s, name);
    put_setting_options(&b, s, name);
    out->failed |= b.failed;
    if (b.len)
        add_conf(out, name, buf_text(&b));
}

static void add_properties(struct strv *out, const struct submit *s)
{
    add_conf(out, "spark.ui.enabled", "false");
    if (s->session)
        add_conf(out, "spark.pipetune.session", s->session);
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].name, DRIVER_OPTIONS) != 0 && strcmp(s->properties[i].name, EXECUTOR_OPTIONS) != 0)
            add_conf(out, s->properties[i].name, s->properties[i].text);
}

/* A local path as a class path takes it; NULL for what lies elsewhere (hdfs:, https:, …). */
static const char *class_path_part(const char *jar)
{
    if (strncmp(jar, "file:", 5) == 0)
        return strncmp(jar + 5, "//", 2) == 0 ? jar + 7 : jar + 5;
    return strchr(jar, ':') ? NULL : jar;
}

static void put_class_path(struct buf *b, const char *jar)
{
    const char *part = class_path_part(jar);
    if (part)
        buf_printf(b, "%s%s", b->len ? ":" : "", part);
}

static void add_class_path(struct strv *out, const struct submit *s, const char *name, const char *first)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (first)
        put_class_path(&b, first);
    for (size_t i = 0; i < s->app->jars.n; i++)
        put_class_path(&b, s->app->jars.v[i]);
    out->failed |= b.failed;
    if (b.len)
        add_conf(out, name, buf_text(&b));
}

static const char PYTHON[] = "spark.pyspark.python";

static bool sets_property(const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->n_properties; i++)
        if (strcmp(s->properties[i].name, name) == 0)
            return true;
    return false;
}

/* Python's BigDL calls into the jars through py4j before --jars are loaded: they must stand on the JVM's own class path. */
static void add_python(struct strv *out, const struct submit *s, const char *also)
{
    const char *python = s->app->python ? s->app->python : s->python;
    if (python && !sets_property(s, PYTHON))
        add_conf(out, PYTHON, python);
    add_class_path(out, s, "spark.driver.extraClassPath", also ? also : s->closures);
    add_class_path(out, s, "spark.executor.extraClassPath", also);
}

/* ---- the application's arguments ------------------------------------------------------------------------------------ */

struct value {
    const char *name; /* of the placeholder: "", "model", "state" */
    const char *text;
};

/* `word` with {} or {name} replaced. */
static void add_filled(struct strv *out, const char *word, const struct value *values, size_t n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    while (*word) {
        size_t used = 0;
        for (size_t i = 0; i < n && *word == '{'; i++) {
            size_t len = strlen(values[i].name);
            if (strncmp(word + 1, values[i].name, len) != 0 || word[1 + len] != '}')
                continue;
            buf_puts(&b, values[i].text);
            used = len + 2;
            break;
        }
        if (used == 0)
            buf_putc(&b, *word);
        word += used ? used : 1;
    }
    strv_take(out, buf_take(&b));
}

static void add_argument(struct strv *out, const struct app_argument *a, const struct value *values, size_t n)
{
    for (size_t i = 0; a && i < a->words.n; i++)
        add_filled(out, a->words.v[i], values, n);
}

static void add_role(struct strv *out, const struct app *a, const char *name, const char *text)
{
    const struct value v = { "", text };
    if (text)
        add_argument(out, app_argument(a, name), &v, 1);
}

static const char *hyper_text(const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->n_hypers; i++)
        if (strcmp(s->hypers[i].name, name) == 0)
            return s->hypers[i].text;
    return NULL;
}

/* Will "arguments" give this option, so that the extras' own is only its default? */
static bool is_given(const struct submit *s, const char *key, const char *epochs)
{
    for (size_t i = 0; i < s->app->n_arguments; i++) {
        const struct app_argument *a = &s->app->arguments[i];
        bool used = hyper_text(s, a->name) || (strcmp(a->name, "epochs") == 0 && epochs) ||
                    (strcmp(a->name, "checkpoint") == 0 && s->checkpoint) ||
                    (strcmp(a->name, "seed") == 0 && s->seed) || (strcmp(a->name, "resume") == 0 && s->resume_model);
        if (used && key[0] == '-' && strcmp(a->words.v[0], key) == 0)
            return true;
    }
    return false;
}

/* The value of extras[i]: its own, or without "arguments" that of the hyperparameter or role it stands for. */
static const char *extra_value(const struct submit *s, size_t i, const char *epochs)
{
    const struct submit_hyper fixed[] = { { "epochs", epochs }, { "checkpoint", s->checkpoint }, { "seed", s->seed } };
    if (s->app->has_arguments)
        return s->app->extras[i].value;
    for (size_t k = 0; k < s->n_hypers; k++)
        if (app_extra_index(s->app, s->hypers[k].name) == (int)i)
            return s->hypers[k].text;
    for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
        if (fixed[k].text && app_extra_index(s->app, fixed[k].name) == (int)i)
            return fixed[k].text;
    return s->app->extras[i].value;
}

static void add_extras(struct strv *out, const struct submit *s, const char *epochs)
{
    for (size_t i = 0; i < s->app->n_extras; i++) {
        const struct app_extra *x = &s->app->extras[i];
        if (!x->word && s->app->has_arguments && is_given(s, x->key, epochs))
            continue;
        strv_add(out, x->key);
        const char *value = extra_value(s, i, epochs);
        if (value)
            strv_add(out, value);
    }
}

static int check_reach(const struct submit *s, struct err *e)
{
    if (s->session)
        return 0;
    for (size_t i = 0; i < s->n_hypers; i++) {
        int rc = app_reaches(s->app, s->hypers[i].name, e);
        if (rc < 0)
            return rc;
    }
    if (s->app->has_arguments ? app_argument(s->app, "epochs") != NULL : app_extra_index(s->app, "epochs") >= 0)
        return 0;
    return err_set(e, -EINVAL, "the number of epochs reaches nothing in '%s': add %s", s->app->file,
                   s->app->has_arguments ? "\"epochs\" to 'arguments'" : "'endTriggerNum' or 'max_epoch' to 'extras'");
}

/* What is the same for every trial. */
static void add_fixed_extras(struct strv *out, const struct app *a)
{
    for (size_t i = 0; i < a->n_extras; i++) {
        strv_add(out, a->extras[i].key);
        if (a->extras[i].value)
            strv_add(out, a->extras[i].value);
    }
}

static void add_application(struct strv *out, const struct submit *s)
{
    char epochs[16];
    (void)snprintf(epochs, sizeof epochs, "%d", s->epochs);
    strv_add(out, s->app->conf);
    if (s->session) {
        add_fixed_extras(out, s->app);
        return;
    }
    add_extras(out, s, epochs);
    for (size_t i = 0; i < s->n_hypers; i++)
        add_role(out, s->app, s->hypers[i].name, s->hypers[i].text);
    add_role(out, s->app, "epochs", epochs);
    add_role(out, s->app, "checkpoint", s->checkpoint);
    if (s->resume_model && s->resume_state) {
        const struct value v[] = { { "model", s->resume_model }, { "state", s->resume_state } };
        add_argument(out, app_argument(s->app, "resume"), v, ARRAY_LEN(v));
    }
    add_role(out, s->app, "seed", s->seed);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

int submit_argv(const struct submit *s, struct strv *out, struct err *e)
{
    const struct app *a = s->app;
    int rc = check_reach(s, e);
    if (rc < 0)
        return rc;
    if (s->slots < 1)
        return err_set(e, -EINVAL, "a launch needs at least one core, not %d", s->slots);
    strv_add(out, s->spark_submit);
    add_master(out, s);
    add_pair(out, "--deploy-mode", "client");
    add_pair(out, "--properties-file", s->properties_file ? s->properties_file : a->properties_file);
    add_memory(out, s);
    rc = add_cores(out, s, e);
    if (rc < 0)
        return rc;
    add_java_options(out, s, DRIVER_OPTIONS, true);
    add_java_options(out, s, EXECUTOR_OPTIONS, is_loopback(a));
    if (app_is_python(a))
        add_python(out, s, NULL);
    add_properties(out, s);
    add_joined(out, "--jars", &a->jars);
    add_joined(out, "--py-files", &a->py_files);
    add_pair(out, "--class", a->class_name);
    add_application(out, s);
    return out->failed ? no_memory(e) : 0;
}

int submit_convert_argv(const struct submit *s, const char *converter, const char *in, const char *out_path,
                        struct strv *out, struct err *e)
{
    strv_add(out, s->spark_submit);
    add_pair(out, "--master", "local[1]");
    add_pair(out, "--deploy-mode", "client");
    add_pair(out, "--properties-file", s->properties_file ? s->properties_file : s->app->properties_file);
    add_java_options(out, s, DRIVER_OPTIONS, true);
    add_python(out, s, s->app->conf); /* BigDL's own classes may be in the application's jar */
    add_conf(out, "spark.ui.enabled", "false");
    add_joined(out, "--py-files", &s->app->py_files);
    strv_add(out, converter);
    strv_add(out, in);
    strv_add(out, out_path);
    return out->failed ? no_memory(e) : 0;
}
