/* Turns one attempt of a trial into the argv of spark-submit. Pure: nothing is looked up, nothing is started. */
#ifndef BIGDL_SUBMIT_H
#define BIGDL_SUBMIT_H

#include "app/app.h"
#include "bigdl/spark_file.h"

/* Of an application whose own data is a struct spark_file. Appends spark-submit's argv. -EINVAL: a hyperparameter reaches nothing,
 * l->parts (executors) do not divide the slots. */
int submit_argv(const struct application *a, const struct app_launch *l, struct strv *out, struct err *e);

/* A JVM application resumes from protobuf, checkpoints are Java-serialised: must l->resume_model be converted first? */
bool submit_needs_convert(const struct application *a, const struct app_launch *l);

/* Appends the argv that converts it to l->converted with bigdl/apps/convert_checkpoint.py. */
int submit_convert_argv(const struct application *a, const struct app_launch *l, struct strv *out, struct err *e);

/* "8" -> "8g", 0.5 -> "512m": what Spark takes for a size in GiB. */
void submit_memory_text(double gb, char out[32]);

#endif
