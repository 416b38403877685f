#include "bigdl/log_cause.h"

#include <stddef.h>

/* Texts of Spark 2.4 to 3.5, Hadoop, BigDL 0.x to 2.4, the JVM, and CPython. */
const struct log_cause_row log_causes[CAUSE_MAX] = {
    [CAUSE_NONE] = { "none", VERDICT_FAILED, NULL, { NULL }, NULL },
    [CAUSE_UNKNOWN_OPTION] = { "unknown_option",
                               VERDICT_ENVIRONMENT,
                               "check 'extras' and 'arguments' in the BigDL file",
                               { "Error: Unknown option", "Error: Unknown argument", "Unrecognized option: ",
                                 "Error: Missing option", "Error: Option -", "error: unrecognized arguments",
                                 "error: argument -", "error: the following arguments are required" },
                               NULL },
    [CAUSE_JAVA_MISSING] = { "java_missing",
                             VERDICT_ENVIRONMENT,
                             "install Java 17 (./run-pipetune.sh setup), or set JAVA_HOME",
                             { "JAVA_HOME is not set", "UnsupportedClassVersionError", "bin/java: No such file",
                               "bin/java: cannot execute", "java: command not found", "java: not found" },
                             NULL },
    [CAUSE_NATIVE_MISSING] = { "native_missing",
                               VERDICT_ENVIRONMENT,
                               "put BigDL's native library (bigdl-core) into 'jars'",
                               { "com/intel/analytics/bigdl/mkl/", "class com.intel.analytics.bigdl.mkl.",
                                 "UnsatisfiedLinkError" },
                               NULL },
    [CAUSE_JAR_MISSING] = { "jar_missing",
                            VERDICT_ENVIRONMENT,
                            "check 'conf' and 'jars' in the BigDL file",
                            { "DependencyUtils: Local jar ", "Local jar /", "can't open file '" },
                            NULL },
    [CAUSE_CLASS_MISSING] = { "class_missing",
                              VERDICT_ENVIRONMENT,
                              "check 'class', 'conf' and 'jars' in the BigDL file",
                              { "Failed to load class", "ClassNotFoundException", "NoClassDefFoundError",
                                "NoSuchMethodError", "Main method not found" },
                              NULL },
    [CAUSE_MODULE_MISSING] = { "module_missing",
                               VERDICT_ENVIRONMENT,
                               "check 'py_files' in the BigDL file, and the Python that Spark starts",
                               { "ModuleNotFoundError", "ImportError: ", "No module named " },
                               NULL },
    [CAUSE_DATA_MISSING] = { "data_missing",
                             VERDICT_ENVIRONMENT,
                             "check the paths in the BigDL file",
                             { "NoSuchFileException", "FileNotFoundException", "FileNotFoundError",
                               "Input path does not exist", "Path does not exist", "is not a folder",
                               "[PATH_NOT_FOUND]", "error: no folder '", "error: no file '" },
                             "Spark temp dir" /* shutting down, Spark finds its own folder gone */ },
    [CAUSE_BAD_MEMORY] = { "bad_memory",
                           VERDICT_INFEASIBLE,
                           "Spark wants at least 450 MiB, and no more than the machine has",
                           { "[INVALID_EXECUTOR_MEMORY]", "[INVALID_DRIVER_MEMORY]", "Required executor memory",
                             "Could not reserve enough space", "Invalid maximum heap size", "Too small maximum heap",
                             "Too small initial heap", "must be at least 471859200" },
                           NULL },
    [CAUSE_BATCH] = { "batch",
                      VERDICT_INFEASIBLE,
                      "make the batch a multiple of the cores",
                      { "should be divided by", "divided by total core number", "divided by core number",
                        "divided by node number" },
                      NULL },
    [CAUSE_CORES] = { "cores",
                      VERDICT_INFEASIBLE,
                      "make the cores a multiple of 'executor_cores'",
                      { "by single core number(" },
                      NULL },
    [CAUSE_OUT_OF_MEMORY] = { "out_of_memory",
                              VERDICT_INFEASIBLE,
                              "raise memory, or lower the batch",
                              { "OutOfMemoryError", "Java heap space", "GC overhead limit exceeded",
                                "unable to create native thread", "Container killed by YARN for exceeding", "OOMKilled",
                                "insufficient memory for the Java Runtime", "Cannot allocate memory", "MemoryError",
                                "memory limit. Current usage" },
                              NULL },
    [CAUSE_DISK_FULL] = { "disk_full",
                          VERDICT_ENVIRONMENT,
                          "free some space, or point spark.local.dir elsewhere",
                          { "No space left on device", "Disk quota exceeded" },
                          NULL },
    [CAUSE_PERMISSION] = { "permission",
                           VERDICT_ENVIRONMENT,
                           "check who owns the folder that the line names",
                           { "AccessDeniedException", "AccessControlException", "Permission denied", "PermissionError",
                             "Read-only file system" },
                           NULL },
    [CAUSE_MASTER_DOWN] = { "master_down",
                            VERDICT_ENVIRONMENT,
                            "start the master, or correct 'master' in the BigDL file",
                            { "All masters are unresponsive", "Failed to connect to master",
                              "KubernetesClientException", "Connecting to ResourceManager",
                              "External scheduler cannot be instantiated" },
                            NULL },
    [CAUSE_ADDRESS] = { "address",
                        VERDICT_ENVIRONMENT,
                        "export SPARK_LOCAL_IP=127.0.0.1 when the host's own name does not resolve",
                        { "Address already in use", "UnknownHostException", "BindException",
                          "Cannot assign requested address" },
                        NULL },
    [CAUSE_BAD_CHECKPOINT] = { "bad_checkpoint",
                               VERDICT_FAILED,
                               "go on from an older checkpoint",
                               { "EOFException", "StreamCorruptedException", "ChecksumException",
                                 "InvalidProtocolBufferException", "InvalidClassException", "OptionalDataException",
                                 "invalid stream header", "convert_checkpoint: cannot convert",
                                 "convert_checkpoint: no file", "Bigdl$AttrValue." },
                               NULL },
    [CAUSE_EXECUTOR_LOST] = { "executor_lost",
                              VERDICT_FAILED,
                              "look at the executor's own log on the worker",
                              { "ExecutorLostFailure", "Command exited with code ", "Master removed our application" },
                              NULL },
    [CAUSE_NO_RESOURCES] = { "no_resources",
                             VERDICT_INFEASIBLE,
                             "ask for fewer cores or less memory than a worker has free",
                             { "Initial job has not accepted any resources" },
                             NULL },
    [CAUSE_TASK_FAILED] = { "task_failed", VERDICT_FAILED, NULL, { "Job aborted due to stage failure" }, NULL },
    [CAUSE_EXCEPTION] = { "exception", VERDICT_FAILED, NULL, { "Exception in thread ", "Caused by: " }, NULL },
};

static const struct log_cause_row *row_of(enum log_cause c)
{
    return &log_causes[c > CAUSE_NONE && c < CAUSE_MAX ? c : CAUSE_NONE];
}

const char *log_cause_name(enum log_cause c)
{
    return row_of(c)->name;
}

enum log_verdict log_cause_verdict(enum log_cause c)
{
    return row_of(c)->verdict;
}

enum log_cause log_cause_explained(enum log_cause c)
{
    switch (c) {
    case CAUSE_JAR_MISSING: return CAUSE_CLASS_MISSING;
    case CAUSE_OUT_OF_MEMORY: return CAUSE_EXECUTOR_LOST;
    default: return CAUSE_NONE;
    }
}

const char *log_cause_fix(enum log_cause c)
{
    return row_of(c)->fix;
}
