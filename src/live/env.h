/* What this machine has: where Spark, Java, BigDL and our own files are, and what a trial may use. */
#ifndef LIVE_ENV_H
#define LIVE_ENV_H

#include "app/app.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"
#include "core/setting.h"
#include "live/there.h"

/* Paths are absolute; NULL where nothing was found, except those that have a place they ought to be in. */
struct env {
    char *home;         /* our conf/ and bigdl/: PIPETUNE_HOME, the source tree, or share/pipetune */
    char *spark_home;   /* the config, SPARK_HOME, ./.pipetune/spark; NULL: spark-submit comes from PATH */
    char *spark_submit; /* "spark-submit" when it was found nowhere: good enough to print */
    char *java_home;    /* the config or JAVA_HOME; NULL: java comes from PATH */
    char *bigdl_home;   /* BIGDL_HOME, else ./.pipetune/bigdl */
    char *data;         /* PIPETUNE_DATA, else ./.pipetune/data */
    char *python;       /* PYSPARK_PYTHON, else ./.pipetune/venv/bin/python where it is */
    char *node;         /* pipetune-node, beside this program */
    char *log4j;        /* HOME/conf/log4j2-pipetune.properties */
    char *library;      /* HOME/python, where pipetune.py is; NULL: it is not there */
    char *converter;    /* HOME/bigdl/apps/convert_checkpoint.py */
    char *classes;      /* set-up's class archive for Python applications; NULL: none, damaged, or another Java's */
    /* For warm sessions, where set-up made them of the very jars that are there; NULL: nowhere. */
    char *closures;        /* a jar of unpacked classes */
    char *closures_of;     /* BigDL's jar, of which they are */
    char *session_classes; /* as `classes`, made with that jar before the others */
};

struct app_tools env_tools(const struct env *v); /* borrowed */

int env_find(struct env *out, const struct config *cfg, struct err *e);
void env_done(struct env *v);

/* $NAME for application files: the environment, else what was found. An app_lookup; ctx is the struct env. */
const char *env_lookup(void *ctx, const char *name);

/* Appends the text, with $NAME in the place of the folder that it begins with where that is one of ours: what then is the same on
 * every machine. */
void env_put_portable(const struct env *v, const char *text, struct buf *out);

/* --- a launch on another host, whose own environment is `env`, NAME=VALUE, as far as the config says it --- */

/* Where what is here is there: SPARK_HOME, BIGDL_HOME, PIPETUNE_DATA, PYSPARK_PYTHON. What it does not name is where it is here. -ENOMEM. */
int env_there(const struct env *v, const struct strv *env, struct there *out, struct err *e);

/* Does the file belong to what every machine that runs such an application has of its own? Then it is not sent. */
bool env_is_everywhere(const struct env *v, const char *path);

/* Our own files that such an application is launched with: how many. */
enum { ENV_OWN_MAX = 2 };
size_t env_own_files(const struct env *v, const struct application *a, const char *out[ENV_OWN_MAX]);

/* What it needs there in its environment, as env_apply() puts it into ours. */
void env_put(const struct application *a, struct strv *to);

enum { ENV_JAVA_MIN = 8 };

/* The file of properties that a runtime of trials would read by itself. Free it; NULL: there is none. */
char *env_default_properties(const struct env *v);

/* Spark's version by the names of its jars ("3.5.8"), 0 found, -ENOENT. */
int env_spark_version(const struct env *v, char out[32]);

/* Can a trial be started? -ENOENT or -EINVAL names what is missing, or too old, and how it comes here. */
int env_require(const struct env *v, unsigned needs, struct err *e); /* enum app_need */

/* Runs `java -version`. -ENOENT: none; -EINVAL: older than 8. */
int env_java_major(const struct env *v, int *out_major, struct err *e);

/* Puts into our environment, and so into every trial's, what Spark needs there, where the application is one of Spark's: JAVA_HOME when it was given, and
 * SPARK_LOCAL_IP=127.0.0.1 on one machine, where a host name that does not resolve would stop Spark. What is set stays. */
int env_apply(const struct env *v, const struct application *a, struct err *e);

/* The CPUs this process may use and the memory that a heap could have (RAM, or the cgroup's limit). */
struct offer env_offer(void);

#endif
