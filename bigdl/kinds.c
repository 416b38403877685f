/* The rows of applications on Spark, and the table of all kinds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/command.h"
#include "app/progress.h"
#include "base/own.h"
#include "bigdl/checkpoint.h"
#include "bigdl/cluster.h"
#include "bigdl/log.h"
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

/* Where all of it runs below its launcher. */
static char *folder(const struct application *a)
{
    const struct spark_file *f = a->own;
    const char *slash = strrchr(f->conf, '/');
    return !slash || slash == f->conf ? strdup(slash ? "/" : ".") : strndup(f->conf, (size_t)(slash - f->conf));
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
    if (a->kind->rules.resume[1] && submit_needs_convert(a, l)) {
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

static const struct cluster_row *cluster(const struct application *a, const char **out_master)
{
    *out_master = ((const struct spark_file *)a->own)->master;
    return cluster_find(*out_master);
}

static const struct app_member bigdl_members[] = { SPARK_FILE_MEMBERS, { NULL, NULL, 0 } };

static const struct app_kind bigdl_kind = {
    .name = "bigdl",
    .file_word = "BigDL file",
    .rules = { .members = bigdl_members,
               .resume = { "model", "state" },
               .no_utf8 = "Java would take it for something else" },
    .own_size = sizeof(struct spark_file),
    .check = check_bigdl,
    .done = done,
    .paths = paths,
    .files = files,
    .folder = folder,
    .identity = identity,
    .steps = steps,
    .property_prefix = "spark.",
    .put_properties = properties_put,
    .properties_file = properties_file,
    .find_property = properties_find,
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
    .cluster = cluster,
    .part = checkpoint_classify,
    .is_folder = checkpoint_is_folder,
};

/* ---- any other application on Spark --------------------------------------------------------------------------------------- */

struct spark {
    struct spark_file file; /* first: what is above asks it alone */
    struct progress *progress;
    struct line_reader told; /* by patterns, and through the socket */
};

static const struct app_member spark_members[] = {
    SPARK_FILE_MEMBERS,
    { "progress", command_read_progress, offsetof(struct spark, progress) },
    { NULL, NULL, 0 },
};

/* What Spark itself says, which stands behind the launcher's stamp; else what the application does. */
static int parse_spark(const void *ctx, struct line_place *place, const char *line, size_t len, struct app_report *out)
{
    const struct spark *s = ctx;
    struct cur c = { line, line + len };
    struct line_place told = *place; /* why it failed is told by Spark's words alone */
    int64_t stamp_ms = progress_stamp(&c);
    int rc = s->told.parse(s->told.ctx, &told, line, len, out);
    place->epoch = told.epoch;
    if (rc != 0 && out->kind != REPORT_CAUSE)
        return rc;
    rc = log_reader.parse(log_reader.ctx, place, c.p, (size_t)(c.end - c.p), out);
    if (rc == 1) { /* one clock for all: the launcher's */
        out->stamp_ms = stamp_ms;
        out->stamp_coarse = false;
    }
    return rc;
}

static const char *dropped_by_spark(const void *ctx)
{
    const struct spark *s = ctx;
    return s->told.dropped(s->told.ctx);
}

static int check_spark(struct application *a, const struct json_doc *doc, struct err *e)
{
    struct spark *s = a->own;
    s->file.plain = true;
    if (a->file.session)
        return json_doc_err(doc, "session", e, -EINVAL, "must be false: sessions are of BigDL applications");
    int rc = s->progress ? 0 : progress_new(&s->progress, NULL, 0, e);
    if (rc < 0)
        return rc;
    s->told = progress_reader(s->progress);
    a->reader = (struct line_reader){ parse_spark, s, dropped_by_spark };
    return spark_file_check(&s->file, doc, e);
}

static void done_spark(void *own)
{
    struct spark *s = own;
    spark_file_done(&s->file);
    progress_free(s->progress);
}

static const char *needle_spark(const struct application *a, size_t i, bool *step)
{
    const struct progress *p = ((const struct spark *)a->own)->progress;
    const char *text = NULL;
    size_t n = 0;
    if (progress_hears_all(p)) {
        *step = false;
        return i == 0 ? "\n" : NULL; /* in every line */
    }
    while (n < i && log_needle(n, step))
        n++;
    text = log_needle(n, step);
    if (text)
        return text;
    *step = true;
    return progress_needle(p, i - n);
}

static const struct app_kind spark_kind = {
    .name = "spark",
    .file_word = "application file",
    .rules = { .members = spark_members,
               .resume = { "checkpoint", NULL },
               .no_utf8 = "Java would take it for something else",
               .told = true },
    .own_size = sizeof(struct spark),
    .check = check_spark,
    .done = done_spark,
    .paths = paths,
    .files = files,
    .folder = folder,
    .identity = identity,
    .steps = steps,
    .property_prefix = "spark.",
    .put_properties = properties_put,
    .properties_file = properties_file,
    .find_property = properties_find,
    .needle = needle_spark,
    .stamped = true, /* by the launcher */
    .tells = true,
    .needs = APP_NEEDS_SPARK | APP_NEEDS_JAVA,
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
    .cluster = cluster,
};

const struct app_kind *const app_kinds[] = { &bigdl_kind, &command_kind, &spark_kind, NULL };
