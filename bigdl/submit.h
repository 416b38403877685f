/* Turns one attempt of a trial into the argv of spark-submit. Pure: nothing is looked up, nothing is started. */
#ifndef BIGDL_SUBMIT_H
#define BIGDL_SUBMIT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strv.h"
#include "bigdl/app.h"

struct submit_hyper {
    const char *name;
    const char *text; /* the value as it stands in argv */
};

struct submit_property { /* a spark.* property that the setting chose */
    const char *name;
    const char *text;
};

struct submit {
    const struct app *app;
    const char *spark_submit; /* path, or "spark-submit" */
    const char *log4j;        /* absolute path of our log4j2 properties; NULL: Spark's own */
    const char *launch;       /* the tag -Dpipetune.launch=…; NULL: none (--dry-run) */
    const char *classes;      /* a class archive of the driver's JVM for Python applications; NULL: none */
    const char *closures;     /* a jar that comes before the application's in the driver's JVM; NULL: none */
    const char *python;       /* for Python, where neither the setting nor the file says which; NULL: Spark's choice */
    const struct submit_hyper *hypers;
    size_t n_hypers;
    int epochs;
    int slots;        /* local[slots], or --total-executor-cores */
    int executors;    /* of slots / executors cores each; without a cluster there are none */
    double memory_gb; /* per executor, in local mode the driver's heap; NAN: the file's */
    const struct submit_property *properties;
    size_t n_properties;
    const char *checkpoint;                  /* folder; NULL: none, or the application has no such argument */
    const char *resume_model, *resume_state; /* both or neither */
    const char *seed;                        /* text; NULL: none */
    /* The socket of a warm session: hyperparameters, epochs, checkpoint, resume and seed of each trial come through it, and
     * none of them is in argv, whatever stands above. NULL: one trial, told in argv. */
    const char *session;
    const char *properties_file; /* instead of the BigDL file's; NULL: that one */
    bool one_cpu;                /* local mode: the JVM will be held to one CPU, though it sees more when it starts */
};

/* Appends spark-submit's argv. -EINVAL: a hyperparameter reaches nothing, executors do not divide slots. */
int submit_argv(const struct submit *s, struct strv *out, struct err *e);

/* A JVM application resumes from protobuf, checkpoints are Java-serialised: appends the argv that converts `in` to `out_path`
 * with bigdl/apps/convert_checkpoint.py. */
int submit_convert_argv(const struct submit *s, const char *converter, const char *in, const char *out_path,
                        struct strv *out, struct err *e);

/* Must its checkpoints be converted before it can resume? */
static inline bool submit_needs_convert(const struct app *a)
{
    return a->class_name != NULL;
}

/* "8" -> "8g", 0.5 -> "512m": what Spark takes for a size in GiB. */
void submit_memory_text(double gb, char out[32]);

#endif
