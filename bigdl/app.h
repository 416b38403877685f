/* The BigDL file: what is submitted, and where each hyperparameter goes in its arguments. Pure. */
#ifndef BIGDL_APP_H
#define BIGDL_APP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/strv.h"

/* One row of "arguments": what stands for a role or a hyperparameter on the command line, e.g. {"-b", "{}"}. Roles with a
 * fixed meaning: "epochs", "checkpoint", "resume" ({model}, {state}), "seed"; every other name is a hyperparameter. */
struct app_argument {
    char *name;
    struct strv words;
};

struct app_extra {
    char *key;   /* as it stands in argv: "--batchSize", "-b" */
    char *value; /* NULL: the key stands alone (true) */
    bool word;   /* an element of an array: no key, so no hyperparameter reaches it */
};

struct app {
    char *file;          /* the BigDL file's own name */
    char *master;        /* default "local[*]" */
    char *driver_memory; /* these are NULL when absent */
    char *executor_memory;
    int total_executor_cores;   /* 0: absent */
    int executor_cores;         /* 0: absent */
    struct strv py_files, jars; /* in the file: a string with commas, or an array */
    char *properties_file;
    char *conf;               /* the application: a .py file, or a jar when class_name is given */
    char *class_name;         /* NULL: a Python application */
    char *python;             /* the Python of driver and executors: a path, or a command; NULL: not said */
    bool session;             /* it can serve several trials */
    struct app_extra *extras; /* in the order written */
    size_t n_extras;
    struct app_argument *arguments;
    size_t n_arguments;
    bool has_arguments; /* "arguments" was there: it alone decides where hyperparameters go */
};

/* The value of $NAME, or NULL when there is none. */
typedef const char *app_lookup(void *ctx, const char *name);

/* Reads a BigDL file. $NAME and ${NAME} expand in every string through `lookup` ($$ is a dollar sign); an unknown variable,
 * key ("did you mean"), type or placeholder, and a missing "conf", are -EINVAL with file, line and key. Extras: an object
 * (a key that begins with '-' is used as it is, others get "--"; true: the key alone; false and null: left out), or an
 * array of words (kept as extras with a key and no value). "driver_memory" and "executor_memory" without a unit are GiB.
 * Relative paths stay as they are: see app_paths(). -ENOMEM. */
int app_parse(struct app *out, const struct json_doc *doc, app_lookup *lookup, void *ctx, struct err *e);
void app_done(struct app *a);

bool app_is_python(const struct app *a);

/* Calls `resolve` for each member that is a local path (conf, jars, py_files, properties_file, python; never one with a scheme
 * such as hdfs: or s3a:); it may replace the string (free the old, put a new one). Stops at the first non-zero return. */
int app_paths(struct app *a, int (*resolve)(void *ctx, const char *key, char **path, struct err *e), void *ctx,
              struct err *e);

/* GiB of "1536m"; 1, as Spark has it, where the file says nothing. */
double app_memory_gb(const char *text);

bool app_is_local(const struct app *a);       /* local, local[N], local[*], local[N,F] */
bool app_is_one_machine(const struct app *a); /* local, or a master on loopback */
const struct app_argument *app_argument(const struct app *a, const char *name); /* NULL when there is none */

/* The extra that a hyperparameter (or "epochs") sets when there are no "arguments": same name, whatever its case,
 * underscores and dashes (batch_size sets batchSize); "epochs" is endTriggerNum, max_epoch or epochs. -1: none. */
int app_extra_index(const struct app *a, const char *name);

/* Does a hyperparameter of this name reach the application? -EINVAL when not: names the file, the hyperparameter, and what
 * could be meant. "epochs", "checkpoint", "resume" and "seed" are no hyperparameters: -EINVAL as well. */
int app_reaches(const struct app *a, const char *hyper, struct err *e);

#endif
