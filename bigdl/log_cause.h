/* Why applications on Spark fail, most telling first, with the words of Spark, BigDL, the JVM and Python by which it is known. */
#ifndef BIGDL_LOG_CAUSE_H
#define BIGDL_LOG_CAUSE_H

#include "app/cause.h"

enum log_cause {
    CAUSE_NONE,
    CAUSE_UNKNOWN_OPTION, /* "Error: Unknown option": exit 0, and nothing trained */
    CAUSE_JAVA_MISSING,   /* no Java, or one too old for the classes */
    CAUSE_NATIVE_MISSING, /* BigDL's native maths library */
    CAUSE_JAR_MISSING,
    CAUSE_CLASS_MISSING,
    CAUSE_MODULE_MISSING, /* a Python module */
    CAUSE_DATA_MISSING,   /* data, or any other file or folder that was named */
    CAUSE_BAD_MEMORY,     /* [INVALID_EXECUTOR_MEMORY], [INVALID_DRIVER_MEMORY], a heap that the machine cannot give */
    CAUSE_BATCH,          /* the batch is not a multiple of the cores */
    CAUSE_CORES,          /* the cores are not a multiple of those of one executor */
    CAUSE_OUT_OF_MEMORY,  /* Java heap, GC overhead, direct memory, native thread limit, container killed for memory */
    CAUSE_DISK_FULL,
    CAUSE_PERMISSION,
    CAUSE_MASTER_DOWN,
    CAUSE_ADDRESS, /* a port in use, a host name that does not resolve */
    CAUSE_EXECUTOR_LOST,
    CAUSE_BAD_CHECKPOINT,
    CAUSE_NO_RESOURCES, /* "Initial job has not accepted any resources" */
    CAUSE_TASK_FAILED,  /* "Job aborted due to stage failure", nothing better */
    CAUSE_EXCEPTION,    /* any other exception of Java or Python */
    CAUSE_MAX
};

/* Row CAUSE_NONE has no words. */
extern const struct cause log_causes[CAUSE_MAX];

#endif
