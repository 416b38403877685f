/* Why an application failed: the causes, what they mean for a trial, and the words in a log by which each is known. Pure. */
#ifndef BIGDL_LOG_CAUSE_H
#define BIGDL_LOG_CAUSE_H

/* Why an application failed, most telling first: of those that ended it together (fold.h) the lowest row of the table wins, and of
 * equal ones the first line. Their names are stored, so names are stable and numbers are not. */
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

/* What a cause means for the trial: see enum outcome in core/sched.h, which the driver maps it to. */
enum log_verdict { VERDICT_FAILED, VERDICT_INFEASIBLE, VERDICT_ENVIRONMENT };

/* The cause that this one tells the reason of, even where it was only warned of it; CAUSE_NONE: none. */
enum log_cause log_cause_explained(enum log_cause c);

const char *log_cause_name(enum log_cause c); /* "out_of_memory", …; "none" for anything that is no row */
enum log_verdict log_cause_verdict(enum log_cause c);
const char *
log_cause_fix(enum log_cause c); /* one clause for the user: "raise memory, or lower the batch"; may be NULL */

/* The table, for log.c, which looks for all needles in one pass. */
enum { LOG_NEEDLES_MAX = 10 };

struct log_cause_row {
    const char *name;
    enum log_verdict verdict;
    const char *fix;
    const char *needles[LOG_NEEDLES_MAX]; /* any of these in a line */
    const char *unless;                   /* … but not with this one */
};

extern const struct log_cause_row log_causes[CAUSE_MAX];

#endif
