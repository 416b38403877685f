#include "bigdl/log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* ---- causes --------------------------------------------------------------------------------------------------------- */

enum { NEEDLES_MAX = 10 };

struct cause_row {
    const char *name;
    enum log_verdict verdict;
    const char *fix;
    const char *needles[NEEDLES_MAX]; /* any of these in a line */
    const char *unless;               /* … but not with this one */
};

/* Texts of Spark 2.4 to 3.5, Hadoop, BigDL 0.x to 2.4, the JVM, and CPython. */
static const struct cause_row causes[CAUSE_MAX] = {
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
                               "[PATH_NOT_FOUND]" },
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

static const struct cause_row *cause_row(enum log_cause c)
{
    return &causes[c > CAUSE_NONE && c < CAUSE_MAX ? c : CAUSE_NONE];
}

const char *log_cause_name(enum log_cause c)
{
    return cause_row(c)->name;
}

enum log_verdict log_cause_verdict(enum log_cause c)
{
    return cause_row(c)->verdict;
}

const char *log_cause_fix(enum log_cause c)
{
    return cause_row(c)->fix;
}

/* ---- reading a line ------------------------------------------------------------------------------------------------- */

struct cur {
    const char *p, *end;
};

static bool eat_bytes(struct cur *c, const char *text, size_t n)
{
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

static const char *find_bytes(const struct cur *c, const char *text, size_t n)
{
    return memmem(c->p, (size_t)(c->end - c->p), text, n);
}

static bool seek_bytes(struct cur *c, const char *text, size_t n)
{
    const char *at = find_bytes(c, text, n);
    if (at)
        c->p = at + n;
    return at != NULL;
}

/* For literals, so that lengths are known to the compiler. */
#define EAT(c, lit) eat_bytes((c), "" lit, sizeof(lit) - 1)
#define SEEK(c, lit) seek_bytes((c), "" lit, sizeof(lit) - 1)
#define HAS(c, lit) (find_bytes((c), "" lit, sizeof(lit) - 1) != NULL)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_spaces(struct cur *c)
{
    while (c->p < c->end && *c->p == ' ')
        c->p++;
}

/* Digits; false when there are none, or the number is beyond 18 of them. */
static bool eat_int(struct cur *c, int64_t *out)
{
    int64_t v = 0;
    const char *p = c->p;
    for (; p < c->end && is_digit(*p); p++)
        v = p - c->p < 18 ? v * 10 + (*p - '0') : -1;
    if (p == c->p || v < 0 || p - c->p > 18)
        return false;
    c->p = p;
    *out = v;
    return true;
}

static int two(const char *p)
{
    return is_digit(p[0]) && is_digit(p[1]) ? (p[0] - '0') * 10 + (p[1] - '0') : -1;
}

/* What the fast path cannot do exactly; the caller has seen to it that this is the text of a number. */
static bool number_slowly(const char *text, const char *end, double *out)
{
    char copy[64]; /* log figures have 25 characters at most: longer is no figure of ours */
    size_t n = (size_t)(end - text);
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    return true;
}

struct decimal {
    uint64_t mantissa;
    int digits; /* significant ones */
    int exponent;
};

static void eat_digits(struct cur *c, struct decimal *d, int shift)
{
    for (; c->p < c->end && is_digit(*c->p); c->p++) {
        if (d->digits < 18) {
            d->mantissa = d->mantissa * 10 + (uint64_t)(*c->p - '0');
            d->exponent += shift;
        }
        d->digits += d->digits > 0 || *c->p != '0';
    }
}

static void eat_exponent(struct cur *c, struct decimal *d)
{
    struct cur at = *c;
    at.p++; /* the E */
    bool minus = at.p < at.end && *at.p == '-';
    if (at.p < at.end && (*at.p == '-' || *at.p == '+'))
        at.p++;
    int64_t e = 0;
    if (!eat_int(&at, &e))
        return; /* an E of other text */
    e = e > 9999 ? 9999 : e;
    d->exponent += (int)(minus ? -e : e);
    *c = at;
}

static bool eat_words_for_numbers(struct cur *c, double *out)
{
    if (EAT(c, "NaN"))
        *out = NAN;
    else if (EAT(c, "Infinity"))
        *out = INFINITY;
    else if (EAT(c, "-Infinity"))
        *out = -INFINITY;
    else
        return false;
    return true;
}

/* A number as Java prints it: 128, 0.041978443, 1.0E-4, NaN. Equal to what strtod gives: a mantissa below 2^53 and a power
 * of ten up to 22 are both exact in a double, so one multiplication or division rounds correctly; others go to strtod.
 * The point is moved `shift` places to the right. */
static bool eat_scaled(struct cur *c, int shift, double *out)
{
    static const double pow10[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const char *start = c->p;
    struct cur at = *c;
    bool minus = at.p < at.end && *at.p == '-';
    at.p += minus;
    if (at.p == at.end || !is_digit(*at.p))
        return eat_words_for_numbers(c, out);
    struct decimal d = { 0, 0, shift };
    eat_digits(&at, &d, 0);
    if (at.end - at.p >= 2 && *at.p == '.' && is_digit(at.p[1])) {
        at.p++;
        eat_digits(&at, &d, -1);
    }
    if (at.p < at.end && (*at.p == 'E' || *at.p == 'e'))
        eat_exponent(&at, &d);
    if (d.digits > 18 || d.mantissa > (UINT64_C(1) << 53) || d.exponent < -22 || d.exponent > 22) {
        if (!number_slowly(start, at.p, out))
            return false;
        *out *= shift < 0 ? 1 / pow10[-shift] : pow10[shift];
    } else {
        double v = (double)d.mantissa;
        v = d.exponent < 0 ? v / pow10[-d.exponent] : v * pow10[d.exponent];
        *out = minus ? -v : v;
    }
    c->p = at.p;
    return true;
}

static bool eat_number(struct cur *c, double *out)
{
    return eat_scaled(c, 0, out);
}

/* ---- time stamps ---------------------------------------------------------------------------------------------------- */

/* Days from 1970-01-01 in the Gregorian calendar; years begin in March, so that the leap day is the last. */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool eat_time(struct cur *c, int64_t days, struct log_event *ev)
{
    const char *p = c->p;
    if (c->end - p < 8 || p[2] != ':' || p[5] != ':')
        return false;
    int h = two(p), min = two(p + 3), s = two(p + 6);
    if (h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 60)
        return false;
    p += 8;
    int64_t ms = 0;
    ev->stamp_coarse = true;
    if (c->end - p >= 4 && (*p == '.' || *p == ',') && is_digit(p[1]) && two(p + 2) >= 0) {
        ms = (p[1] - '0') * 100 + two(p + 2);
        ev->stamp_coarse = false;
        p += 4;
        while (p < c->end && is_digit(*p)) /* micro- and nanoseconds are not kept */
            p++;
    }
    ev->stamp_ms = ((days * 24 + h) * 60 + min) * 60000 + s * 1000 + ms;
    c->p = p;
    return true;
}

/* "2026-11-18 10:29:51.189", a comma or nothing for the point, a T for the space; or Spark's own "26/11/18 10:29:51". */
static void eat_stamp(struct cur *c, struct log_event *ev)
{
    const char *p = c->p;
    if (c->end - p < 17 || !is_digit(*p))
        return;
    bool iso = p[4] == '-' && p[7] == '-' && (p[10] == ' ' || p[10] == 'T') && c->end - p >= 19;
    bool spark = p[2] == '/' && p[5] == '/' && p[8] == ' ';
    if (!iso && !spark)
        return;
    int century = iso ? two(p) : 20;
    p += iso ? 2 : 0;
    int year = two(p), month = two(p + 3), day = two(p + 6);
    if (century < 0 || year < 0 || century * 100 + year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
        return;
    struct cur at = { p + 9, c->end };
    if (eat_time(&at, days_from_civil(century * 100 + year, month, day), ev))
        *c = at;
}

/* ---- text of an event ----------------------------------------------------------------------------------------------- */

/* The length of the UTF-8 sequence at p, 0 when it is none (overlong forms and surrogates included). */
static size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t n = *p < 0x80                 ? 1
               : *p >= 0xc2 && *p < 0xe0 ? 2
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xf0 && *p < 0xf5 ? 4
                                         : 0;
    if (n == 0 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
               (*p == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

static void put_text(struct log_event *ev, const char *from, const char *to)
{
    const unsigned char *p = (const unsigned char *)from, *end = (const unsigned char *)to;
    while (end > p && end[-1] <= ' ')
        end--;
    size_t len = 0;
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (len + (n ? n : 1) >= LOG_TEXT_MAX)
            break;
        if (n == 0)
            ev->text[len++] = '?';
        else if (n == 1)
            ev->text[len++] = *p < ' ' || *p == 0x7f ? ' ' : (char)*p;
        for (size_t i = 0; n > 1 && i < n; i++)
            ev->text[len++] = (char)p[i];
        p += n ? n : 1;
    }
    ev->text[len] = '\0';
}

static void put_word(struct log_event *ev, const struct cur *c)
{
    const char *p = c->p;
    while (p < c->end && (unsigned char)*p > ' ' && *p != ',')
        p++;
    put_text(ev, c->p, p);
}

/* ---- lines of an optimizer ------------------------------------------------------------------------------------------ */

/* "[Epoch 1 60032/60000][Iteration 469][Wall Clock 29.654904923s]", and its shorter forms. The cursor stands behind
 * "[Epoch ". */
static bool eat_head(struct cur *c, struct log_event *ev)
{
    int64_t epoch = 0;
    if (!eat_int(c, &epoch) || epoch > INT_MAX)
        return false;
    ev->epoch = (int)epoch;
    if (EAT(c, " ") && !(eat_int(c, &ev->records_done) && EAT(c, "/") && eat_int(c, &ev->records_all)))
        return false;
    if (!EAT(c, "]"))
        return false;
    if (EAT(c, "[Iteration ") && !(eat_int(c, &ev->iteration) && EAT(c, "]")))
        return false;
    if (EAT(c, "[Wall Clock ") && !(eat_number(c, &ev->wall_s) && EAT(c, "s]")))
        return false;
    skip_spaces(c);
    return true;
}

static void eat_learning_rate(struct cur *c, struct log_event *ev)
{
    if (SEEK(c, "Current learning rate is ") && !eat_number(c, &ev->learning_rate))
        ev->learning_rate = NAN;
}

/* "Trained " 128.0 records in 0.041978443 seconds. Throughput is … records/second. Loss is 0.17889601. … */
static int parse_trained(struct cur *c, struct log_event *ev)
{
    if (!eat_number(c, &ev->records) || !EAT(c, " records in ") || !eat_number(c, &ev->seconds))
        return 0;
    if (SEEK(c, "Loss is "))
        (void)eat_number(c, &ev->loss); /* stays NAN */
    eat_learning_rate(c, ev);
    ev->kind = LOG_ITERATION;
    return 1;
}

/* LocalOptimizer: "loss is " 2.154, iteration time is 0.069s data fetch time is …, Throughput is 7399.9 record / second. */
static int parse_local(struct cur *c, struct log_event *ev)
{
    double per_second = NAN;
    if (!eat_number(c, &ev->loss) || !EAT(c, ", iteration time is ") || !eat_number(c, &ev->seconds))
        return 0;
    if (SEEK(c, "Throughput is ") && eat_number(c, &per_second) && isfinite(per_second * ev->seconds))
        ev->records = round(per_second * ev->seconds); /* the line does not print them */
    eat_learning_rate(c, ev);
    ev->kind = LOG_ITERATION;
    ev->closes_epoch = ev->records_all > 0 && ev->records_done >= ev->records_all;
    return 1;
}

/* "Epoch finished." Wall clock time is 29917.408867 ms: since optimize() began. */
static int parse_finished(struct cur *c, struct log_event *ev)
{
    double printed;
    struct cur at = *c;
    if (SEEK(&at, "Wall clock time is ")) {
        struct cur again = at;
        if (eat_number(&at, &printed)) {
            skip_spaces(&at);
            (void)eat_scaled(&again, EAT(&at, "ms") ? -3 : 0, &ev->wall_s);
        }
    }
    ev->kind = LOG_EPOCH_END;
    return 1;
}

static bool eat_metric_value(struct cur *c, double *out)
{
    struct cur at = *c;
    if (SEEK(&at, "accuracy: ") || (at = *c, SEEK(&at, ", Average ") && SEEK(&at, ": ")) ||
        (at = *c, SEEK(&at, "AUC is ")))
        return eat_number(&at, out);
    at = *c;
    if (!eat_number(&at, out))
        return false;
    skip_spaces(&at);
    return at.p == at.end;
}

/* "Top1Accuracy is Accuracy(correct: 9250, count: 10000, accuracy: 0.925)", "Loss is (Loss: 4039.1, count: 10000, Average
 * Loss: 0.4)"; not "validate model throughput is …". */
static int parse_metric(struct cur *c, struct log_event *ev)
{
    const char *name = c->p;
    while (c->p < c->end && (unsigned char)*c->p > ' ' && c->p - name < 100)
        c->p++;
    const char *name_end = c->p;
    if (name_end == name || !EAT(c, " is ") || !eat_metric_value(c, &ev->value))
        return 0;
    put_text(ev, name, name_end);
    ev->kind = LOG_METRIC;
    return 1;
}

static int parse_optimizer(struct cur *c, struct log_event *ev)
{
    if (!eat_head(c, ev))
        return 0;
    if (EAT(c, "Trained "))
        return parse_trained(c, ev);
    if (EAT(c, "loss is "))
        return parse_local(c, ev);
    if (EAT(c, "Epoch finished"))
        return parse_finished(c, ev);
    return parse_metric(c, ev);
}

/* "[Wall Clock " 34.548866593s] Save optimMethod com.…SGD@21274afe to DIR/20261118_120011: the second of the two lines. */
static int parse_save(struct cur *c, struct log_event *ev)
{
    if (!eat_number(c, &ev->wall_s) || !EAT(c, "s] Save ") || !(EAT(c, "optimMethod ") || EAT(c, "state ")))
        return 0;
    c->p--; /* "state to DIR": the space before "to" */
    if (!SEEK(c, " to "))
        return 0;
    put_text(ev, c->p, c->end);
    ev->kind = LOG_CHECKPOINT;
    return 1;
}

/* An optimizer's line: 1 or 0, and -1 when it is none. */
static int parse_bracketed(const struct cur *line, struct log_event *ev)
{
    struct cur c = *line;
    while ((c.p = memchr(c.p, '[', (size_t)(c.end - c.p))) != NULL) {
        if (EAT(&c, "[Epoch "))
            return parse_optimizer(&c, ev);
        if (EAT(&c, "[Wall Clock "))
            return parse_save(&c, ev);
        c.p++;
    }
    return -1;
}

/* ---- other lines: one pass for all needles -------------------------------------------------------------------------- */

static const struct anchor {
    enum log_kind kind;
    const char *text;
} anchors[] = {
    { LOG_APP_ID, "Connected to Spark cluster with app ID " },
    { LOG_APP_ID, "Submitted application " },
    { LOG_GRANTED, "Granted executor ID " },
    { LOG_GRANTED, "Registered executor " },
    { LOG_RECOVERY, "Model recover from " },
    { LOG_LOST, "Lost executor " },
};

/* Needles by their first byte, so that most bytes cost one look. Built for each line: it costs less than one memmem, and
 * no table has to be kept in step with the rows above. */
struct needles {
    uint8_t first[256]; /* 1 + index of the first needle with this byte, 0: none */
    uint8_t next[255];
    const char *text[255];
    uint8_t row[255]; /* a cause; CAUSE_MAX + index: an anchor */
    uint8_t n;
};

static void add_needle(struct needles *ns, const char *text, size_t row)
{
    uint8_t *head = &ns->first[(unsigned char)text[0]];
    ns->text[ns->n] = text;
    ns->row[ns->n] = (uint8_t)row;
    ns->next[ns->n] = *head;
    *head = ++ns->n;
}

static void needles_init(struct needles *ns)
{
    _Static_assert((size_t)CAUSE_MAX * NEEDLES_MAX + ARRAY_LEN(anchors) < 255, "indexes are bytes");
    memset(ns->first, 0, sizeof ns->first);
    ns->n = 0;
    for (size_t i = CAUSE_NONE + 1; i < CAUSE_MAX; i++)
        for (size_t k = 0; k < NEEDLES_MAX && causes[i].needles[k]; k++)
            add_needle(ns, causes[i].needles[k], i);
    for (size_t i = 0; i < ARRAY_LEN(anchors); i++)
        add_needle(ns, anchors[i].text, CAUSE_MAX + i);
}

struct hits {
    enum log_cause cause;
    const char *cause_at;
    const struct anchor *anchor;
    const char *anchor_end;
};

static bool starts_with(const struct cur *c, const char *text)
{
    const char *p = c->p;
    while (*text && p < c->end && *p == *text)
        p++, text++;
    return *text == '\0';
}

static void note_hit(struct hits *h, const struct cur *line, const struct cur *at, const char *needle, size_t row)
{
    if (row >= CAUSE_MAX) {
        if (!h->anchor) {
            h->anchor = &anchors[row - CAUSE_MAX];
            h->anchor_end = at->p + strlen(needle);
        }
        return;
    }
    const char *unless = causes[row].unless;
    if (h->cause != CAUSE_NONE && (size_t)h->cause <= row)
        return;
    if (unless && find_bytes(line, unless, strlen(unless)))
        return;
    h->cause = (enum log_cause)row;
    h->cause_at = at->p;
}

static struct hits find_needles(const struct cur *line)
{
    struct needles ns;
    needles_init(&ns);
    struct hits h = { CAUSE_NONE, NULL, NULL, NULL };
    for (struct cur at = *line; at.p < at.end; at.p++)
        for (uint8_t i = ns.first[(unsigned char)*at.p]; i != 0; i = ns.next[i - 1])
            if (starts_with(&at, ns.text[i - 1]))
                note_hit(&h, line, &at, ns.text[i - 1], ns.row[i - 1]);
    return h;
}

/* "org.apache.spark.SparkException: …", "ValueError: …" at the very beginning: the first line of a Java trace, the last of
 * a Python one. */
static bool is_bare_exception(const struct cur *line)
{
    const char *p = line->p;
    while (p < line->end && (is_alpha(*p) || is_digit(*p) || *p == '.' || *p == '_' || *p == '$'))
        p++;
    struct cur colon = { p, line->end };
    if (p == line->p || !EAT(&colon, ": "))
        return false;
    size_t n = (size_t)(p - line->p);
    return (n > 5 && memcmp(p - 5, "Error", 5) == 0) || (n > 9 && memcmp(p - 9, "Exception", 9) == 0);
}

/* Steps over " INFO  Logger$:408 - " or " ERROR Logger: ", and what Java puts before an exception. */
static void skip_preamble(struct cur *c, bool stamped)
{
    if (stamped) {
        skip_spaces(c);
        while (c->p < c->end && *c->p >= 'A' && *c->p <= 'Z')
            c->p++;
        skip_spaces(c);
        struct cur at = *c;
        while (at.p < at.end && *at.p != ' ')
            at.p++;
        if (at.p > c->p && (at.p[-1] == ':' || (at.end - at.p >= 3 && memcmp(at.p, " - ", 3) == 0)))
            c->p = at.p[-1] == ':' ? at.p : at.p + 3;
        skip_spaces(c);
    }
    if (!EAT(c, "Caused by: ") && EAT(c, "Exception in thread \""))
        (void)SEEK(c, "\" "); /* the thread's name */
}

static void put_cause(struct log_event *ev, const struct cur *rest, const char *at)
{
    struct cur c = *rest;
    skip_preamble(&c, ev->stamp_ms >= 0);
    /* A long line ("Job aborted due to …") is cut so that the telling words stay. */
    if (at > c.p && at - c.p > LOG_TEXT_MAX / 2)
        c.p = at;
    put_text(ev, c.p, c.end);
}

static void put_anchor(struct log_event *ev, const struct hits *h, const char *end)
{
    struct cur c = { h->anchor_end, end };
    ev->kind = h->anchor->kind;
    if (ev->kind == LOG_GRANTED && h->anchor->text[0] == 'R') /* "Registered executor … with ID 0" */
        (void)SEEK(&c, "with ID ");
    if (ev->kind == LOG_LOST || ev->kind == LOG_RECOVERY)
        put_text(ev, c.p, c.end);
    else
        put_word(ev, &c);
    ev->cause = ev->kind == LOG_LOST ? h->cause : CAUSE_NONE;
}

static int parse_other(const struct cur *line, const struct cur *rest, struct log_event *ev)
{
    struct hits h = find_needles(rest);
    if (h.anchor) {
        put_anchor(ev, &h, rest->end);
        return 1;
    }
    if (h.cause == CAUSE_NONE && is_bare_exception(line)) {
        h.cause = CAUSE_EXCEPTION;
        h.cause_at = line->p;
    }
    if (h.cause == CAUSE_NONE)
        return 0;
    ev->kind = LOG_CAUSE;
    ev->cause = h.cause;
    put_cause(ev, rest, h.cause_at);
    return 1;
}

int log_parse_line(const char *line, size_t len, struct log_event *out)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    struct cur whole = { line, line + len };
    struct cur rest = whole;
    if (len == 0 || EAT(&rest, "\tat ")) /* most of a stack trace */
        return 0;
    *out = (struct log_event){ .stamp_ms = -1, .wall_s = NAN, .loss = NAN, .learning_rate = NAN };
    eat_stamp(&rest, out);
    int rc = parse_bracketed(&rest, out);
    return rc >= 0 ? rc : parse_other(&whole, &rest, out);
}

/* ---- streams -------------------------------------------------------------------------------------------------------- */

void log_stream_init(struct log_stream *s, uint64_t offset)
{
    *s = (struct log_stream){ .offset = offset };
}

void log_stream_done(struct log_stream *s)
{
    if (!s)
        return;
    free(s->partial);
    *s = (struct log_stream){ 0 };
}

static int deliver(const char *line, size_t len, uint64_t end, log_sink *sink, void *ctx)
{
    struct log_event ev;
    if (!log_parse_line(line, len < LOG_LINE_MAX ? len : LOG_LINE_MAX, &ev))
        return 0;
    return sink(ctx, &ev, end);
}

/* Keeps the beginning of a line; of an over-long one only what will be parsed. */
static int keep(struct log_stream *s, const char *bytes, size_t len)
{
    size_t room = LOG_LINE_MAX - s->partial_len;
    size_t take = len < room ? len : room;
    if (s->partial_len + take > s->partial_cap) {
        size_t cap = s->partial_cap ? s->partial_cap : 512;
        while (cap < s->partial_len + take)
            cap *= 2;
        char *grown = realloc(s->partial, cap);
        if (!grown)
            return -ENOMEM;
        s->partial = grown;
        s->partial_cap = cap;
    }
    if (take)
        memcpy(s->partial + s->partial_len, bytes, take);
    s->partial_len += take;
    s->skipping = s->partial_len == LOG_LINE_MAX;
    s->offset += len;
    return 0;
}

/* The line that began in `partial` has ended. */
static int flush(struct log_stream *s, log_sink *sink, void *ctx)
{
    size_t len = s->partial_len;
    s->partial_len = 0;
    s->skipping = false;
    return len ? deliver(s->partial, len, s->offset, sink, ctx) : 0;
}

int log_stream_feed(struct log_stream *s, const char *bytes, size_t len, log_sink *sink, void *ctx)
{
    const char *p = bytes, *end = bytes + len;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return keep(s, p, (size_t)(end - p));
        int rc;
        if (s->partial_len > 0) {
            rc = keep(s, p, (size_t)(nl - p));
            if (rc < 0)
                return rc;
            s->offset++;
            rc = flush(s, sink, ctx);
        } else {
            s->offset += (uint64_t)(nl - p) + 1;
            rc = deliver(p, (size_t)(nl - p), s->offset, sink, ctx);
        }
        if (rc != 0)
            return rc;
        p = nl + 1;
    }
    return 0;
}

int log_stream_end(struct log_stream *s, log_sink *sink, void *ctx)
{
    return flush(s, sink, ctx);
}
