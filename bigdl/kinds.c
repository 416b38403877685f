/* The rows of applications on Spark, and the table of all kinds. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/command.h"
#include "base/own.h"
#include "bigdl/checkpoint.h"
#include "bigdl/log.h"
#include "bigdl/master.h"
#include "bigdl/properties.h"
#include "bigdl/submit.h"

static int check_bigdl(struct application *a, const struct json_doc *doc, struct err *e)
{
    a->reader = log_reader;
    return spark_file_check(a->own, doc, e);
}

static void done(void *own)
{
    spark_file_done(own);
}

static int paths(struct application *a, app_resolve *resolve, void *ctx, struct err *e)
{
    return spark_file_paths(a->own, resolve, ctx, e);
}

static void files(const struct application *a, struct strv *out)
{
    const struct spark_file *f = a->own;
    strv_add(out, f->conf);
    for (size_t i = 0; i < f->jars.n; i++)
        strv_add(out, f->jars.v[i]);
    for (size_t i = 0; i < f->py_files.n; i++)
        strv_add(out, f->py_files.v[i]);
}

static void identity(const struct application *a, struct strv *out)
{
    const struct spark_file *f = a->own;
    strv_add(out, f->conf);
    if (f->class_name)
        strv_add(out, f->class_name);
}

/* A JVM application's checkpoint is converted first. */
static int steps(const struct application *a, const struct app_launch *l, struct app_steps *out, struct err *e)
{
    struct app_launch train = *l, convert = *l;
    int rc = 0;
    if (submit_needs_convert(a, l)) {
        convert.launch = NULL; /* it is over before anybody looks */
        convert.one_cpu = false;
        train.resume_model = l->converted;
        rc = submit_convert_argv(a, &convert, &out->argv[out->n++], e);
    }
    return rc < 0 ? rc : submit_argv(a, &train, &out->argv[out->n++], e);
}

static const char *properties_file(const struct application *a)
{
    return ((const struct spark_file *)a->own)->properties_file;
}

static const char *needle(const struct application *a, size_t i, bool *step)
{
    (void)a;
    return log_needle(i, step);
}

static bool is_local(const struct application *a)
{
    return spark_file_is_local(a->own);
}

static bool is_one_machine(const struct application *a)
{
    return spark_file_is_one_machine(a->own);
}

static double memory_gb(const struct application *a)
{
    return spark_file_memory_gb(((const struct spark_file *)a->own)->driver_memory);
}

/* May the memory of executors come from elsewhere than the knob and the file? */
static bool memory_is_hidden(const struct spark_file *f, const struct space *space)
{
    bool hidden = f->properties_file != NULL;
    for (size_t i = 0; i < space->n_knobs; i++)
        hidden |= strcmp(space->knobs[i].name, "spark.executor.memory") == 0;
    return hidden;
}

static void offer(const struct application *a, const struct space *space, struct offer *o)
{
    const struct spark_file *f = a->own;
    o->file_cores = f->total_executor_cores;
    o->divided = !spark_file_is_local(f);
    o->part_word = "executor";
    o->part_cores = f->executor_cores;
    if (!o->divided)
        return;
    o->cores = f->total_executor_cores;
    if (f->executor_memory || !memory_is_hidden(f, space))
        o->part_gb = spark_file_memory_gb(f->executor_memory);
}

static int ask(const struct application *a, char *url, size_t size)
{
    return master_url(((const struct spark_file *)a->own)->master, url, size);
}

static const struct app_kind bigdl_kind = {
    .name = "bigdl",
    .file_word = "BigDL file",
    .rules = { .members = spark_file_members,
               .resume = { "model", "state" },
               .no_utf8 = "Java would take it for something else" },
    .own_size = sizeof(struct spark_file),
    .check = check_bigdl,
    .done = done,
    .paths = paths,
    .files = files,
    .identity = identity,
    .steps = steps,
    .property_prefix = "spark.",
    .put_properties = properties_put,
    .properties_file = properties_file,
    .needle = needle,
    .stamped = true,
    .needs = APP_NEEDS_SPARK | APP_NEEDS_JAVA,
    .divided = "batch",
    .why_divided = "BigDL needs that",
    .memory = APP_MEMORY_HEAP,
    .workers = { "org.apache.spark.", "ExecutorBackend", "--cores" },
    .words = { .program = "spark-submit",
               .starting = "starting Spark",
               .granting = "waiting for executors",
               .not_granted = "no executor was granted",
               .lost = "it lost its executor before the first checkpoint" },
    .is_local = is_local,
    .is_one_machine = is_one_machine,
    .memory_gb = memory_gb,
    .offer = offer,
    .ask = ask,
    .answer = master_parse,
    .part = checkpoint_classify,
    .is_folder = checkpoint_is_folder,
};

const struct app_kind *const app_kinds[] = { &bigdl_kind, &command_kind, NULL };
