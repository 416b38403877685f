/* What the file of an application on Spark says beside what all files say (app/app_file.h): what is submitted, and where. Pure. */
#ifndef BIGDL_SPARK_FILE_H
#define BIGDL_SPARK_FILE_H

#include "app/app_file.h"

struct spark_file {
    char *master;        /* default "local[*]" */
    char *driver_memory; /* these are NULL when absent; without a unit they are GiB */
    char *executor_memory;
    int total_executor_cores;   /* 0: absent */
    int executor_cores;         /* 0: absent */
    struct strv py_files, jars; /* in the file: a string with commas, or an array */
    char *properties_file;
    char *conf;       /* the application: a .py file, or a jar when class_name is given */
    char *class_name; /* NULL: a Python application */
    bool plain;       /* there is no BigDL in it: what BigDL alone needs is left out */
    char *python;     /* the Python of driver and executors: a path, or a command; NULL: not said */
};

/* Of a kind whose own struct begins with a struct spark_file. */
#define SPARK_FILE_MEMBERS                                                                                             \
    { "master", spark_file_read_master, offsetof(struct spark_file, master) },                                         \
        { "driver_memory", spark_file_read_memory, offsetof(struct spark_file, driver_memory) },                       \
        { "executor_memory", spark_file_read_memory, offsetof(struct spark_file, executor_memory) },                   \
        { "total_executor_cores", spark_file_read_cores, offsetof(struct spark_file, total_executor_cores) },          \
        { "executor_cores", spark_file_read_cores, offsetof(struct spark_file, executor_cores) },                      \
        { "py_files", app_read_list, offsetof(struct spark_file, py_files) },                                          \
        { "jars", app_read_list, offsetof(struct spark_file, jars) },                                                  \
        { "properties_file", app_read_text, offsetof(struct spark_file, properties_file) },                            \
        { "conf", app_read_text, offsetof(struct spark_file, conf) },                                                  \
        { "class", app_read_text, offsetof(struct spark_file, class_name) },                                           \
    {                                                                                                                  \
        "python", app_read_text, offsetof(struct spark_file, python)                                                   \
    }
app_read spark_file_read_master, spark_file_read_memory, spark_file_read_cores;

/* What only shows when the whole file is read; gives it a master. -EINVAL, -ENOMEM. */
int spark_file_check(struct spark_file *f, const struct json_doc *doc, struct err *e);
void spark_file_done(struct spark_file *f);

bool spark_file_is_python(const struct spark_file *f);

/* Calls `resolve` for each member that is a local path (conf, jars, py_files, properties_file, python). Stops at the first non-zero return. */
int spark_file_paths(struct spark_file *f, app_resolve *resolve, void *ctx, struct err *e);

/* GiB of "1536m"; 1, as Spark has it, where the file says nothing. */
double spark_file_memory_gb(const char *text);

bool spark_file_is_local(const struct spark_file *f);       /* local, local[N], local[*], local[N,F] */
bool spark_file_is_one_machine(const struct spark_file *f); /* local, or a master on loopback */

#endif
