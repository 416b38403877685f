#include "bigdl/submit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_args.h"
#include "base/buf.h"
#include "base/own.h"
#include "bigdl/cluster.h"

/* What the lines below are made of. */
struct submit {
    const struct application *app;
    const struct spark_file *file;
    const struct app_launch *l;
    const char *closures, *classes; /* of the tools, those that this launch may use; NULL: none */
};

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

/* The driver's machine runs the executors too, so our log4j2 file is there. */
static bool is_loopback(const struct spark_file *f)
{
    static const char *const here[] = { "spark://127.", "spark://localhost:", "spark://[::1]:" };
    for (size_t i = 0; i < ARRAY_LEN(here); i++)
        if (strncmp(f->master, here[i], strlen(here[i])) == 0)
            return true;
    return spark_file_is_local(f);
}

/* local[slots], with the number of task failures that the file may give: local[*,4] */
static void add_master(struct strv *out, const struct submit *s)
{
    const char *failures = spark_file_is_local(s->file) ? strchr(s->file->master, ',') : NULL;
    strv_add(out, "--master");
    if (!spark_file_is_local(s->file))
        strv_add(out, s->file->master);
    else
        strv_addf(out, "local[%d%s", s->l->slots, failures ? failures : "]");
}

/* Cores of one executor: BigDL wants the total to be a multiple of them. */
static int cores_each(const struct submit *s, struct err *e)
{
    if (s->l->parts < 1 || s->l->slots % s->l->parts != 0)
        return err_set(e, -EINVAL, "%d executors do not divide %d cores evenly", s->l->parts, s->l->slots);
    return s->l->slots / s->l->parts;
}

static int add_cores(struct strv *out, const struct submit *s, struct err *e)
{
    if (spark_file_is_local(s->file))
        return 0;
    int each = cores_each(s, e);
    if (each < 0)
        return each;
    const struct cluster_row *cluster = cluster_find(s->file->master);
    if (cluster) {
        cluster->submit(s->l, each, out);
        return 0;
    }
    strv_add(out, "--num-executors");
    strv_addf(out, "%d", s->l->slots / each);
    strv_add(out, "--executor-cores");
    strv_addf(out, "%d", each);
    return 0;
}

/* What the JVM that trains gets: the setting's memory, else the file's. NULL: whatever Spark gives it. */
static const char *heap_text(const struct submit *s, char text[32])
{
    if (isnan(s->l->memory_gb))
        return spark_file_is_local(s->file) ? s->file->driver_memory : s->file->executor_memory;
    submit_memory_text(s->l->memory_gb, text);
    return text;
}

static void add_memory(struct strv *out, const struct submit *s)
{
    char text[32];
    bool local = spark_file_is_local(s->file);
    add_pair(out, "--driver-memory", local ? heap_text(s, text) : s->file->driver_memory);
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
    for (size_t i = 0; i < s->l->n_properties; i++)
        if (strcmp(s->l->properties[i].name, name) == 0)
            buf_printf(b, "%s%s", b->len ? " " : "", s->l->properties[i].text);
}

/* A JVM that is told of two collectors does not start. */
static bool sets_collector(const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->l->n_properties; i++)
        if (strcmp(s->l->properties[i].name, name) == 0 && strstr(s->l->properties[i].text, "GC"))
            return true;
    return false;
}

/* Are these the options of the JVM that trains? Without a cluster that is the driver. */
static bool trains_here(const struct submit *s, const char *name)
{
    return spark_file_is_local(s->file) && strcmp(name, DRIVER_OPTIONS) == 0;
}

/* Training wants throughput, which G1 gives away for short pauses: in the JVM that trains, other collectors take 5 to 10 % less
 * CPU time. A plain submission is left as the user would make it. */
static void put_collector(struct buf *b, const struct submit *s, const char *name)
{
    if (!trains_here(s, name) || sets_collector(s, name))
        return;
    if (s->l->one_cpu)
        buf_puts(b, " -XX:+UseSerialGC"); /* what the JVM would choose on such a machine */
    else if (s->l->session)
        buf_puts(b, " -XX:+UseParallelGC");
}

/* A trial lasts for a minute or two, in which the optimising compiler spends a fifth of all CPU time on code of Spark that runs a few
 * thousand times. It waits thirty times as long as it would; what trains for longer is compiled all the same. Other JVMs pass over it. */
static void put_compiler(struct buf *b, const struct submit *s, const char *name)
{
    if (s->l->session && trains_here(s, name))
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
    if (s->l->session && trains_here(s, name) && heap)
        buf_printf(b, " -Xms%s", heap);
}

/* The JVM takes an archive only when its version, jars and class path are those it was made with; else it goes on as ever, and
 * without these -Xlog it would complain. */
static void put_classes(struct buf *b, const struct submit *s, const char *name)
{
    if (s->classes && spark_file_is_python(s->file) && strcmp(name, DRIVER_OPTIONS) == 0 &&
        strspn(s->classes, PLAIN) == strlen(s->classes))
        buf_printf(b, "%s-XX:SharedArchiveFile=%s -Xlog:cds=off -Xlog:cds+dynamic=off", b->len ? " " : "", s->classes);
}

/* Without LoggerFilter.disable BigDL re-routes the log (PROVEN.md); an executor floods its own log without our file. */
static void add_java_options(struct strv *out, const struct submit *s, const char *name, bool log)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (log && s->l->tools->log4j) {
        buf_puts(&b, "-Dlog4j2.configurationFile=file:");
        put_uri_path(&b, s->l->tools->log4j);
        buf_puts(&b, s->file->plain ? "" : " ");
    }
    if (log && !s->file->plain)
        buf_puts(&b, "-Dbigdl.utils.LoggerFilter.disable=true");
    if (s->l->launch)
        buf_printf(&b, "%s-Dpipetune.launch=%s", b.len ? " " : "", s->l->launch);
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
    if (s->l->session)
        add_conf(out, "spark.pipetune.session", s->l->session);
    for (size_t i = 0; i < s->l->n_properties; i++)
        if (strcmp(s->l->properties[i].name, DRIVER_OPTIONS) != 0 &&
            strcmp(s->l->properties[i].name, EXECUTOR_OPTIONS) != 0)
            add_conf(out, s->l->properties[i].name, s->l->properties[i].text);
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
    for (size_t i = 0; i < s->file->jars.n; i++)
        put_class_path(&b, s->file->jars.v[i]);
    out->failed |= b.failed;
    if (b.len)
        add_conf(out, name, buf_text(&b));
}

static const char PYTHON[] = "spark.pyspark.python";

static bool sets_property(const struct submit *s, const char *name)
{
    for (size_t i = 0; i < s->l->n_properties; i++)
        if (strcmp(s->l->properties[i].name, name) == 0)
            return true;
    return false;
}

/* Python's BigDL calls into the jars through py4j before --jars are loaded: they must stand on the JVM's own class path. */
static void add_python(struct strv *out, const struct submit *s, const char *also)
{
    const char *python = s->file->python ? s->file->python : s->l->tools->python;
    if (python && !sets_property(s, PYTHON))
        add_conf(out, PYTHON, python);
    if (s->file->plain)
        return;
    add_class_path(out, s, "spark.driver.extraClassPath", also ? also : s->closures);
    add_class_path(out, s, "spark.executor.extraClassPath", also);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

static struct submit submit_of(const struct application *a, const struct app_launch *l)
{
    const struct spark_file *file = a->own; /* the archive is of BigDL's class path */
    return (struct submit){ .app = a, .file = file, .l = l, .classes = file->plain ? NULL : l->tools->classes };
}

/* Unpacked classes, where they are those of this application's own jars; in the JVM of one submission they would save less. */
static void find_closures(struct submit *s)
{
    const struct app_tools *t = s->l->tools;
    for (size_t i = 0; s->l->session && t->closures && i < s->file->jars.n; i++)
        if (strcmp(s->file->jars.v[i], t->closures_of) == 0) {
            s->closures = t->closures;
            s->classes = t->session_classes;
        }
}

static const char *properties_file(const struct submit *s)
{
    return s->l->properties_file ? s->l->properties_file : s->file->properties_file;
}

/* What tells of itself finds pipetune.py beside its own files. */
static void add_py_files(struct strv *out, const struct submit *s)
{
    AUTO_STRV struct strv all = STRV_INIT;
    for (size_t i = 0; i < s->file->py_files.n; i++)
        strv_add(&all, s->file->py_files.v[i]);
    if (s->file->plain && spark_file_is_python(s->file) && s->l->tools->library)
        strv_addf(&all, "%s/pipetune.py", s->l->tools->library);
    out->failed |= all.failed;
    add_joined(out, "--py-files", &all);
}

int submit_argv(const struct application *a, const struct app_launch *l, struct strv *out, struct err *e)
{
    struct submit s = submit_of(a, l);
    find_closures(&s);
    int rc = app_check_launch(a, l, e);
    if (rc < 0)
        return rc;
    if (l->slots < 1)
        return err_set(e, -EINVAL, "a launch needs at least one core, not %d", l->slots);
    strv_add(out, l->tools->spark_submit);
    add_master(out, &s);
    add_pair(out, "--deploy-mode", "client");
    add_pair(out, "--properties-file", properties_file(&s));
    add_memory(out, &s);
    rc = add_cores(out, &s, e);
    if (rc < 0)
        return rc;
    add_java_options(out, &s, DRIVER_OPTIONS, true);
    add_java_options(out, &s, EXECUTOR_OPTIONS, is_loopback(s.file));
    if (spark_file_is_python(s.file))
        add_python(out, &s, NULL);
    add_properties(out, &s);
    add_joined(out, "--jars", &s.file->jars);
    add_py_files(out, &s);
    add_pair(out, "--class", s.file->class_name);
    strv_add(out, s.file->conf);
    app_put_arguments(a, l, out);
    return out->failed ? no_memory(e) : 0;
}

bool submit_needs_convert(const struct application *a, const struct app_launch *l)
{
    return l->resume_model && l->converted && !spark_file_is_python(a->own);
}

int submit_convert_argv(const struct application *a, const struct app_launch *l, struct strv *out, struct err *e)
{
    struct submit s = submit_of(a, l);
    strv_add(out, l->tools->spark_submit);
    add_pair(out, "--master", "local[1]");
    add_pair(out, "--deploy-mode", "client");
    add_pair(out, "--properties-file", properties_file(&s));
    add_java_options(out, &s, DRIVER_OPTIONS, true);
    add_python(out, &s, s.file->conf); /* BigDL's own classes may be in the application's jar */
    add_conf(out, "spark.ui.enabled", "false");
    add_joined(out, "--py-files", &s.file->py_files);
    strv_add(out, l->tools->converter);
    strv_add(out, l->resume_model);
    strv_add(out, l->converted);
    return out->failed ? no_memory(e) : 0;
}
