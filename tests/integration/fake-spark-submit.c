/* Stands in for spark-submit in tests: reads the same argv, prints what Spark 3.5.8 and BigDL 2.4.0 print (texts are from
 * tests/data/logs), writes and reads checkpoints, and fails in the same words with the same exit codes. Accuracy and loss
 * are a function of the hyperparameters and the epoch alone, so that a trial that was cut short and resumed ends like one
 * that was not.
 *
 *   FAKE_EPOCH_MS (200), FAKE_ITERATIONS per epoch (10), FAKE_START_MS (50)
 *   FAKE_FAIL      comma list: oom data class executor-lost recover hang exit1-after-EPOCH fail-once stall garbage huge-log starve
 *                  mumble ignore-term
 *   With `--conf spark.pipetune.session=PATH`, "-" for what is in PIPETUNE_SESSION, it serves the words of bigdl/session.h there; FAKE_SESSION_MS (0) before it does, FAKE_STOP_MS (0) from the end of its connection to its own,
 *   PIPETUNE_SESSION_WAIT_S (600) without a driver; each epoch has a metric "fake", its accuracy. What would end a trial alone, ends the trial; oom ends the session. Also in
 *   FAKE_FAIL  session-die (in mid-trial) session-die-once (once for each trial) session-fail (the trial) session-silent (no
 *              hello) session-unborn-N (the first N while they start) session-waits-N (the first N are granted nothing) session-mute (no done) session-garbage (for a done) session-protocol (another one)
 *              session-old (protocol 1, without end) metric-late (that of the last epoch alone, long after it)
 *   FAKE_WORKERS   "CORES:GIB,CORES:GIB": the cluster's workers, which grant what they have and no more; without it one has room for all
 *   FAKE_EXECUTOR  a program (fake-tagged) that is started as each executor that was granted; without it there is none to be found
 *   FAKE_HUGE_MB   (64) what huge-log prints; FAKE_MUMBLE_MS (3000) how long mumble says nothing but chatter, once an epoch; FAKE_ORPHAN_S (60) how long the child of ignore-term stays
 *   FAKE_COUNT_FILE  gets "TAG EPOCHS FIRST-EPOCH PID" at each start and "trained TAG EPOCH" at each epoch's end; a session
 *                  "session TAG PID" at its start, and then the trial's id for TAG
 *
 * A checkpoint file is text: KIND, the epoch to go on with, the iterations done, END; without END it is truncated. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MODEL_KIND "FAKE-JAVA-MODEL"
#define STATE_KIND "FAKE-JAVA-STATE"
#define PROTOBUF_KIND "FAKE-PROTOBUF-MODEL"

struct job {
    const char *master, *class_name, *application;
    const char *driver_memory, *executor_memory;
    int total_cores, executor_cores, executors;
    char tag[80];
    const char *session; /* socket of a warm session, NULL: none */
    const char *folder, *checkpoint, *model, *state, *seed;
    const char *rate, *decay;
    int batch, epochs;
    char **args; /* the application's */
    int n_args;
};

struct run {
    const struct job *job;
    int iterations; /* per epoch */
    int slots;
    int epoch;          /* being trained */
    long done;          /* iterations since the beginning of the trial */
    double wall_s;      /* of the last iteration, since optimize() */
    bool fresh_weights; /* went on with a state, but without its model */
    bool recovered;     /* `recover` has struck */
    char dir[4096];     /* DIR/YYYYMMDD_HHMMSS */
    char optimizer[32]; /* Sequential1a2b3c4d */
    long snapshot;      /* iterations of the newest checkpoint of this run, -1: none */
    struct timespec began;
};

/* Under ASan: who is told to end while it looks for leaks spins for ever, since the signal ends the helper that looks. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- environment and clock ------------------------------------------------------------------------------------------ */

static long env_number(const char *name, long absent)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : absent;
}

static int whole_number(const char *text)
{
    long n = strtol(text, NULL, 10);
    return n > 0 && n < 1000000000 ? (int)n : 0;
}

/* The rest of the first item of FAKE_FAIL that begins with `name`, NULL when there is none. */
static const char *fail_item(const char *name)
{
    const char *p = getenv("FAKE_FAIL");
    size_t n = strlen(name);
    for (; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, n) == 0)
            return p + n;
    return NULL;
}

static bool fails(const char *name)
{
    const char *rest = fail_item(name);
    return rest && (*rest == '\0' || *rest == ',');
}

static void session_pump(double ms);
static void session_metric(int epoch, double value);
static bool session_ends(int epoch);
static bool in_session;

static void wait_ms(double ms)
{
    if (in_session) {
        session_pump(ms);
        return;
    }
    long long ns = (long long)(ms * 1e6);
    struct timespec t = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static _Noreturn void wait_forever(void)
{
    for (;;)
        (void)pause();
}

static double seconds_since(const struct timespec *t)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

/* ---- output --------------------------------------------------------------------------------------------------------- */

static void put_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* a full disk or a closed pipe: the real one goes on as well */
        p += w;
        n -= (size_t)w;
    }
}

static void put_line(int fd, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void put_line(int fd, const char *fmt, va_list ap)
{
    char line[8192];
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[len++] = '\n';
    put_all(fd, line, len);
}

/* A line without a stamp. */
static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(STDERR_FILENO, fmt, ap);
    va_end(ap);
}

/* What a Python application says: spark-submit merges its stderr into its own stdout. */
static void python_says(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void python_says(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(STDOUT_FILENO, fmt, ap);
    va_end(ap);
}

/* "2026-11-18 12:00:06.122 INFO DistriOptimizer$: …", the layout of conf/log4j2-pipetune.properties. */
static void note(const char *who, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(const char *who, const char *fmt, ...)
{
    char text[6000], stamp[32];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct tm tm;
    (void)localtime_r(&now.tv_sec, &tm);
    (void)strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &tm);
    say("%s.%03ld %s: %s", stamp, now.tv_nsec / 1000000, who, text);
}

/* A float as Java prints it: the fewest digits that read back, always with a point. */
static const char *java_float(double x, char out[40])
{
    float f = (float)x;
    int digits = 1;
    do
        (void)snprintf(out, 40, "%.*g", digits, (double)f);
    while (strtof(out, NULL) != f && ++digits <= 9);
    if (!strpbrk(out, ".en"))
        (void)snprintf(out, 40, "%.1f", (double)f);
    return out;
}

static void count(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void count(const char *fmt, ...)
{
    const char *file = getenv("FAKE_COUNT_FILE");
    char line[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    int fd = file ? open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    if (n > 0 && write(fd, line, (size_t)n) != n) /* one write: lines of several processes do not mix */
        say("fake-spark-submit: cannot count");
    (void)close(fd);
}

static void trace(const char *const *frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        say("\tat %s", frames[i]);
}

static void submit_trace(void)
{
    static const char *const frames[] = {
        "com.intel.analytics.bigdl.dllib.models.lenet.Train$.main(Train.scala:36)",
        "com.intel.analytics.bigdl.dllib.models.lenet.Train.main(Train.scala)",
        "java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)",
        "org.apache.spark.deploy.JavaMainApplication.start(SparkApplication.scala:52)",
        "org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)",
    };
    trace(frames, sizeof frames / sizeof frames[0]);
}

static void usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void usage_error(const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    note("INFO Log4Error$", "\n\n****************************Usage Error************************\n%s", text);
    note("INFO Log4Error$", "\n\n****************************Call Stack*************************");
}

/* Where a session goes on after a trial that died, and what of. */
static jmp_buf trial_died;
static char died_of[4096];

static _Noreturn void die_of(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static _Noreturn void die_of(int code, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (in_session) {
        say("Traceback (most recent call last):\npy4j.protocol.Py4JJavaError: An error occurred while calling "
            "o500.optimize.\n"
            ": %s",
            text);
        submit_trace();
        memcpy(died_of, text, sizeof died_of);
        longjmp(trial_died, 1);
    }
    say("Exception in thread \"main\" %s", text);
    submit_trace();
    exit(code);
}

/* ---- spark-submit's own arguments ----------------------------------------------------------------------------------- */

static bool is_python(const struct job *j)
{
    size_t n = strlen(j->application);
    return n > 3 && strcmp(j->application + n - 3, ".py") == 0;
}

static void read_conf(struct job *j, const char *conf)
{
    static const char mark[] = "-Dpipetune.launch=", session[] = "spark.pipetune.session=";
    if (strncmp(conf, session, sizeof session - 1) == 0)
        j->session =
            strcmp(conf + sizeof session - 1, "-") == 0 ? getenv("PIPETUNE_SESSION") : conf + sizeof session - 1;
    const char *at = strstr(conf, mark);
    if (at && strncmp(conf, "spark.driver.extraJavaOptions=", 30) == 0)
        (void)snprintf(j->tag, sizeof j->tag, "%.*s", (int)strcspn(at + sizeof mark - 1, " \""), at + sizeof mark - 1);
}

static bool spark_option(struct job *j, const char *name, const char *value)
{
    static const char *const others[] = { "--deploy-mode", "--properties-file", "--jars",     "--py-files",
                                          "--name",        "--files",           "--packages", "--queue" };
    if (strcmp(name, "--master") == 0)
        j->master = value;
    else if (strcmp(name, "--class") == 0)
        j->class_name = value;
    else if (strcmp(name, "--driver-memory") == 0)
        j->driver_memory = value;
    else if (strcmp(name, "--executor-memory") == 0)
        j->executor_memory = value;
    else if (strcmp(name, "--total-executor-cores") == 0)
        j->total_cores = whole_number(value);
    else if (strcmp(name, "--executor-cores") == 0)
        j->executor_cores = whole_number(value);
    else if (strcmp(name, "--num-executors") == 0)
        j->executors = whole_number(value);
    else if (strcmp(name, "--conf") == 0)
        read_conf(j, value);
    else {
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            if (strcmp(name, others[i]) == 0)
                return true;
        return false;
    }
    return true;
}

static void parse_spark(struct job *j, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--version") == 0) {
            say("Welcome to\n      ____              __\n   version 3.5.8\n\nUsing Scala version 2.12.18, fake");
            exit(0);
        }
        if (i + 1 >= argc || !spark_option(j, argv[i], argv[i + 1])) {
            say("Error: Unrecognized option: %s\n\nUsage: spark-submit [options] <app jar | python file> [app "
                "arguments]",
                argv[i]);
            exit(1);
        }
    }
    if (i >= argc) {
        say("Exception in thread \"main\" java.lang.IllegalArgumentException: Missing application resource.");
        exit(1);
    }
    j->application = argv[i];
    j->args = argv + i + 1;
    j->n_args = argc - i - 1;
}

static void check_application(const struct job *j)
{
    if (is_python(j)) {
        if (access(j->application, R_OK) == 0)
            return;
        python_says("python3: can't open file '%s': [Errno 2] No such file or directory", j->application);
        exit(2);
    }
    bool there = access(j->application, R_OK) == 0;
    if (!there)
        note("WARN DependencyUtils", "Local jar %s does not exist, skipping.", j->application);
    if (there && j->class_name && !fails("class"))
        return;
    say("Error: Failed to load class %s.", j->class_name ? j->class_name : "com.example.Absent");
    exit(101);
}

/* ---- the application's arguments ------------------------------------------------------------------------------------ */

enum app_option {
    OPT_BATCH,
    OPT_EPOCHS,
    OPT_RATE,
    OPT_DECAY,
    OPT_FOLDER,
    OPT_CHECKPOINT,
    OPT_MODEL,
    OPT_STATE,
    OPT_SEED,
    OPT_OTHER
};

static const struct {
    const char *name;
    enum app_option option;
    bool lenet; /* BigDL's own LeNet has it, in this spelling */
    bool alone; /* takes no value */
} app_options[] = {
    { "-b", OPT_BATCH, true, false },
    { "--batchSize", OPT_BATCH, true, false },
    { "--batch-size", OPT_BATCH, false, false },
    { "-e", OPT_EPOCHS, true, false },
    { "--maxEpoch", OPT_EPOCHS, true, false },
    { "--epochs", OPT_EPOCHS, false, false },
    { "--endTriggerNum", OPT_EPOCHS, false, false },
    { "--max_epoch", OPT_EPOCHS, false, false },
    { "-r", OPT_RATE, true, false },
    { "--learningRate", OPT_RATE, true, false },
    { "--learning-rate", OPT_RATE, false, false },
    { "-d", OPT_DECAY, true, false },
    { "--learningRateDecay", OPT_DECAY, true, false },
    { "--learning-rate-decay", OPT_DECAY, false, false },
    { "-f", OPT_FOLDER, true, false },
    { "--folder", OPT_FOLDER, true, false },
    { "--data", OPT_FOLDER, false, false },
    { "--dataPath", OPT_FOLDER, false, false },
    { "--checkpoint", OPT_CHECKPOINT, true, false },
    { "--model", OPT_MODEL, true, false },
    { "--state", OPT_STATE, true, false },
    { "--seed", OPT_SEED, false, false },
    { "--momentum", OPT_OTHER, false, false },
    { "--optimizer", OPT_OTHER, false, false },
    { "--optimizerVersion", OPT_OTHER, true, false },
    { "-g", OPT_OTHER, true, true },
    { "--graphModel", OPT_OTHER, true, true },
    { "--overWrite", OPT_OTHER, true, true },
    { "--action", OPT_OTHER, false, false },
};

static _Noreturn void refuse_option(const struct job *j, const char *name, const char *value)
{
    if (is_python(j)) {
        python_says(
            "usage: lenet5.py [-h] --data DIR [--batch-size N] [--epochs N]\nlenet5.py: error: unrecognized arguments: "
            "%s%s%s",
            name, value ? " " : "", value ? value : "");
        exit(2);
    }
    say("Error: %s%s%s", name[0] == '-' ? "Unknown option " : "Unknown argument '", name, name[0] == '-' ? "" : "'");
    if (value && value[0] != '-')
        say("Error: Unknown argument '%s'", value);
    say("Usage: BigDL Lenet Train Example [options]\n\n  -f, --folder <value>     where you put the MNIST data");
    exit(0); /* as the real one does */
}

static void set_option(struct job *j, enum app_option option, const char *value)
{
    switch (option) {
    case OPT_BATCH: j->batch = whole_number(value); break;
    case OPT_EPOCHS: j->epochs = whole_number(value); break;
    case OPT_RATE: j->rate = value; break;
    case OPT_DECAY: j->decay = value; break;
    case OPT_FOLDER: j->folder = value; break;
    case OPT_CHECKPOINT: j->checkpoint = value; break;
    case OPT_MODEL: j->model = value; break;
    case OPT_STATE: j->state = value; break;
    case OPT_SEED: j->seed = value; break;
    case OPT_OTHER: break;
    }
}

static void parse_application(struct job *j)
{
    bool lenet = j->class_name && strcmp(j->class_name, "com.intel.analytics.bigdl.dllib.models.lenet.Train") == 0;
    for (int i = 0; i < j->n_args; i++) {
        const char *value = i + 1 < j->n_args ? j->args[i + 1] : NULL;
        size_t k = 0, n = sizeof app_options / sizeof app_options[0];
        while (k < n && (strcmp(app_options[k].name, j->args[i]) != 0 || (lenet && !app_options[k].lenet)))
            k++;
        if (k == n || (!app_options[k].alone && !value))
            refuse_option(j, j->args[i], value);
        if (app_options[k].alone)
            continue;
        set_option(j, app_options[k].option, value);
        i++;
    }
}

/* ---- what is refused before training -------------------------------------------------------------------------------- */

static int slots_of(const struct job *j)
{
    int n = 1;
    if (strncmp(j->master, "local", 5) != 0)
        n = j->total_cores > 0 ? j->total_cores : j->executors * j->executor_cores;
    else if (strncmp(j->master, "local[*", 7) == 0)
        n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    else if (j->master[5] == '[')
        n = whole_number(j->master + 6);
    return n > 0 ? n : 1;
}

static long long memory_bytes(const char *text)
{
    char *unit = NULL;
    long long n = strtoll(text, &unit, 10);
    switch (tolower((unsigned char)*unit)) {
    case 'k': return n << 10;
    case 'm': return n << 20;
    case 'g': return n << 30;
    case 't': return n << 40;
    default: return n << 20; /* as --driver-memory reads a bare number */
    }
}

static void check_memory(const struct job *j)
{
    const long long least = 471859200;
    bool local = strncmp(j->master, "local", 5) == 0;
    const char *text = local ? j->driver_memory : j->executor_memory;
    if (!text || memory_bytes(text) >= least)
        return;
    char message[512];
    (void)snprintf(
        message, sizeof message,
        "org.apache.spark.SparkIllegalArgumentException: [INVALID_%s_MEMORY] %s memory %lld must be at least %lld. "
        "Please increase %s using the --%s-memory option or \"spark.%s.memory\" in Spark configuration.",
        local ? "DRIVER" : "EXECUTOR", local ? "System" : "Executor", memory_bytes(text), least,
        local ? "heap size" : "executor memory", local ? "driver" : "executor", local ? "driver" : "executor");
    note("ERROR SparkContext", "Error initializing SparkContext.");
    say("%s", message);
    submit_trace();
    die_of(1, "%s", message);
}

static void check_folders(const struct job *j)
{
    struct stat st;
    const char *folder = fails("data") ? "/nowhere/mnist" : j->folder;
    if (folder && (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))) {
        if (is_python(j)) {
            python_says("lenet5.py: error: no folder '%s'", folder);
            exit(2);
        }
        die_of(1, "java.nio.file.NoSuchFileException: %s/train-images-idx3-ubyte", folder);
    }
    if (!j->checkpoint || (stat(j->checkpoint, &st) == 0 && S_ISDIR(st.st_mode)))
        return;
    usage_error("Optimizer.setCheckpoint: %s is not a folder", j->checkpoint);
    die_of(1, "java.lang.IllegalArgumentException: Optimizer.setCheckpoint: %s is not a folder", j->checkpoint);
}

static void check_batch(const struct job *j, int slots)
{
    char text[128];
    if (j->batch % slots == 0)
        return;
    (void)snprintf(text, sizeof text, "total batch size: %d should be divided by total core number: %d", j->batch,
                   slots);
    usage_error("%s", text);
    note("ERROR Executor", "Exception in task 0.0 in stage 11.0 (TID 7)");
    say("com.intel.analytics.bigdl.dllib.utils.UnKnownException: %s", text);
    say("Caused by: com.intel.analytics.bigdl.dllib.utils.InvalidOperationException: %s", text);
    note("ERROR TaskSetManager", "Task 0 in stage 11.0 failed 1 times; aborting job");
    die_of(
        1,
        "com.intel.analytics.bigdl.dllib.utils.InvalidOperationException: Job aborted due to stage failure: Task 0 in "
        "stage 11.0 failed 1 times, most recent failure: Lost task 0.0 in stage 11.0 (TID 7) (localhost executor "
        "driver): "
        "com.intel.analytics.bigdl.dllib.utils.UnKnownException: %s",
        text);
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------------- */

struct snapshot {
    char kind[64];
    int epoch;
    long iterations;
};

/* 0; -ENOENT, or -EBADMSG when the file is not whole. */
static int snapshot_read(const char *path, struct snapshot *out)
{
    char end[8] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return -ENOENT;
    int n = fscanf(f, "%63s epoch %d iterations %ld %7s", out->kind, &out->epoch, &out->iterations, end);
    (void)fclose(f);
    return n == 4 && strcmp(end, "END") == 0 ? 0 : -EBADMSG;
}

/* In place and in two steps, as BigDL writes it: a kill in between leaves a truncated file. */
static void snapshot_write(const char *path, const char *kind, int epoch, long iterations, double pause_ms)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s\nepoch %d\niterations %ld\nEND\n", kind, epoch, iterations);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        die_of(1, "java.io.IOException: %s: %s", path, strerror(errno));
    put_all(fd, text, (size_t)n / 2);
    wait_ms(pause_ms);
    put_all(fd, text + n / 2, (size_t)(n - n / 2));
    (void)close(fd);
}

static void crc_write(const char *dir, const char *file)
{
    char path[4400];
    (void)snprintf(path, sizeof path, "%s/.%s.crc", dir, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return; /* nobody reads it */
    put_all(fd, "crc", 3);
    (void)close(fd);
}

/* One for each optimize(), named by the second. Real launches are seconds apart; ours take the next free name. */
static void name_folder(struct run *r)
{
    struct stat st;
    time_t now = time(NULL);
    do {
        char stamp[32];
        struct tm tm;
        (void)localtime_r(&now, &tm);
        (void)strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &tm);
        (void)snprintf(r->dir, sizeof r->dir, "%s/%s", r->job->checkpoint, stamp);
        now++;
    } while (stat(r->dir, &st) == 0);
}

/* After the epoch's validation. */
static void save(struct run *r, double wall_s)
{
    char file[96], path[4400];
    if (!r->job->checkpoint)
        return;
    if (mkdir(r->dir, 0777) < 0 && errno != EEXIST)
        die_of(1, "java.io.IOException: Mkdirs failed to create file:%s", r->dir);
    (void)snprintf(file, sizeof file, "model.%ld", r->done + 1);
    (void)snprintf(path, sizeof path, "%s/%s", r->dir, file);
    snapshot_write(path, MODEL_KIND, r->epoch + 1, r->done, 3);
    crc_write(r->dir, file);
    note("INFO DistriOptimizer$", "[Wall Clock %.9fs] Save model to %s", wall_s, r->dir);
    (void)snprintf(file, sizeof file, "optimMethod-%s.%ld", r->optimizer, r->done + 1);
    (void)snprintf(path, sizeof path, "%s/%s", r->dir, file);
    snapshot_write(path, STATE_KIND, r->epoch + 1, r->done, 2);
    crc_write(r->dir, file);
    note("INFO DistriOptimizer$",
         "[Wall Clock %.9fs] Save optimMethod com.intel.analytics.bigdl.dllib.optim.SGD$mcF$sp@21274afe to %s", wall_s,
         r->dir);
    r->snapshot = r->done;
}

static void load(const char *path, const char *want, struct snapshot *s)
{
    int rc = snapshot_read(path, s);
    if (rc == -ENOENT)
        die_of(1, "java.io.FileNotFoundException: File file:%s does not exist", path);
    bool protobuf = strcmp(want, PROTOBUF_KIND) == 0;
    if (rc == 0 && strcmp(s->kind, want) == 0)
        return;
    if (protobuf && rc == 0) /* what the protobuf reader says to a Java-serialised model */
        die_of(1,
               "java.lang.NullPointerException: Cannot invoke \"com.intel.analytics.bigdl.serialization.Bigdl$AttrValue"
               ".getNameAttrListValue()\" because \"x\" is null");
    if (protobuf)
        die_of(1,
               "com.intel.analytics.shaded.protobuf_v_3_5_1.InvalidProtocolBufferException: While parsing a protocol "
               "message, the input ended unexpectedly in the middle of a field.");
    die_of(1, "java.io.EOFException");
}

static void resume(struct run *r)
{
    struct snapshot s;
    const struct job *j = r->job;
    if (j->model)
        load(j->model, j->class_name ? PROTOBUF_KIND : MODEL_KIND, &s);
    if (!j->state)
        return;
    load(j->state, STATE_KIND, &s);
    r->epoch = s.epoch;
    r->done = s.iterations;
    r->fresh_weights = !j->model;
    const char *base = strrchr(j->state, '/');
    base = base ? base + 1 : j->state;
    if (strncmp(base, "optimMethod-", 12) == 0) /* the name stays that of the first attempt */
        (void)snprintf(r->optimizer, sizeof r->optimizer, "%.*s", (int)strcspn(base + 12, "."), base + 12);
}

/* convert_checkpoint.py IN OUT */
static _Noreturn void convert(const struct job *j)
{
    struct snapshot s;
    if (j->n_args != 2) {
        python_says("usage: convert_checkpoint.py IN OUT");
        exit(2);
    }
    wait_ms((double)env_number("FAKE_START_MS", 50));
    int rc = snapshot_read(j->args[0], &s);
    if (rc == -ENOENT)
        python_says("convert_checkpoint: no file '%s'", j->args[0]);
    else if (rc < 0 || strcmp(s.kind, MODEL_KIND) != 0)
        python_says("convert_checkpoint: cannot convert '%s': java.io.EOFException", j->args[0]);
    if (rc < 0 || strcmp(s.kind, MODEL_KIND) != 0)
        exit(1);
    char part[4400];
    (void)snprintf(part, sizeof part, "%s.part", j->args[1]);
    snapshot_write(part, PROTOBUF_KIND, s.epoch, s.iterations, 0);
    if (rename(part, j->args[1]) < 0) {
        python_says("convert_checkpoint: cannot convert '%s': %s", j->args[0], strerror(errno));
        exit(1);
    }
    exit(0);
}

/* ---- training ------------------------------------------------------------------------------------------------------- */

static double number_or(const char *text, double absent)
{
    return text ? strtod(text, NULL) : absent;
}

/* In (0, 1): a small disturbance that differs between hyperparameters and seeds, and is always the same. */
static double noise(const struct job *j, int epoch)
{
    char key[256];
    (void)snprintf(key, sizeof key, "%d|%s|%s|%s|%d", j->batch, j->rate ? j->rate : "", j->decay ? j->decay : "",
                   j->seed ? j->seed : "", epoch);
    unsigned long long h = 1469598103934665603ULL;
    for (const char *c = key; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211ULL;
    return (double)(h >> 40) / (double)(1 << 24);
}

static double accuracy_after(const struct run *r, int epoch)
{
    const struct job *j = r->job;
    double rate = number_or(j->rate, 0.05), decay = number_or(j->decay, 0);
    double steps = 60000.0 * epoch / j->batch;
    double reach = rate * steps / (1 + decay * steps / 10);
    double off = rate > 0.1 ? rate / 0.1 : rate > 0.001 ? 0.1 / rate : 100; /* from a good rate, as a factor */
    double a = 0.985 - 0.6 / (1 + reach) - 0.0005 * off + 0.004 * noise(j, epoch);
    if (r->fresh_weights)
        a -= 0.1;
    return a < 0.1 ? 0.1 : a > 0.999 ? 0.999 : a;
}

static double loss_after(const struct run *r, double epochs)
{
    double low = 4 * (1 - accuracy_after(r, (int)epochs + 1));
    return low + (2.302585 - low) / (1 + 1.5 * epochs);
}

/* "[Epoch 1 1024/60000][Iteration 1][Wall Clock 1.485523432s]" */
static const char *head(const struct run *r, int step, double wall_s, char out[160])
{
    (void)snprintf(out, 160, "[Epoch %d %d/%d][Iteration %ld][Wall Clock %.9fs]", r->epoch, step * r->job->batch,
                   r->iterations * r->job->batch, r->done, wall_s);
    return out;
}

static void iterate(struct run *r, int step)
{
    char top[160], loss[40], rate[40], per_second[40];
    double before = seconds_since(&r->began);
    wait_ms((double)env_number("FAKE_EPOCH_MS", 200) / r->iterations);
    r->done++;
    double wall = seconds_since(&r->began), took = wall - before;
    r->wall_s = wall;
    note("INFO DistriOptimizer$",
         "%s Trained %d.0 records in %.9f seconds. Throughput is %s records/second. Loss is %s. %s's hyper parameters: "
         "Current learning rate is %s. Current dampening is 1.7976931348623157E308.  ",
         head(r, step, wall, top), r->job->batch, took, java_float(r->job->batch / took, per_second),
         java_float(loss_after(r, r->epoch - 1 + (double)step / r->iterations), loss), r->optimizer,
         java_float(number_or(r->job->rate, 0.05), rate));
}

static void finish_epoch(struct run *r)
{
    char top[160], a[40], b[40], sum[40];
    double wall = seconds_since(&r->began);
    const char *h = head(r, r->iterations, r->wall_s, top);
    long correct = (long)(accuracy_after(r, r->epoch) * 10000 + 0.5);
    double loss = loss_after(r, r->epoch);
    count("trained %s %d\n", r->job->tag, r->epoch);
    note("INFO DistriOptimizer$", "%s Epoch finished. Wall clock time is %.6f ms", h, wall * 1000);
    note("INFO DistriOptimizer$", "%s Validate model...", h);
    note("INFO DistriOptimizer$", "%s validate model throughput is %s records/second", h, java_float(10138.838, a));
    note("INFO DistriOptimizer$", "%s Top1Accuracy is Accuracy(correct: %ld, count: 10000, accuracy: %s)", h, correct,
         java_float((double)correct / 10000, a));
    note("INFO DistriOptimizer$", "%s Loss is (Loss: %s, count: 10000, Average Loss: %s)", h,
         java_float(loss * 10000, sum), java_float(loss, b));
    save(r, wall);
    if (in_session && (!fails("metric-late") || r->epoch == r->job->epochs)) {
        if (fails("metric-late")) /* when its log has been read for long */
            wait_ms(500);
        session_metric(r->epoch, (double)correct / 10000);
    }
}

/* ---- misbehaviour --------------------------------------------------------------------------------------------------- */

static _Noreturn void run_out_of_memory(void)
{
    note("ERROR TorrentBroadcast", "Store broadcast broadcast_36 fail, remove all pieces of the broadcast");
    usage_error("Java heap space");
    say("Exception in thread \"main\" com.intel.analytics.bigdl.dllib.utils.InvalidOperationException: Java heap "
        "space");
    submit_trace();
    say("Caused by: java.lang.OutOfMemoryError: Java heap space");
    submit_trace();
    exit(1);
}

static void lose_executor(void)
{
    note("INFO StandaloneSchedulerBackend", "Executor app-20261118121228-0002/0 removed: Command exited with code 137");
    note("INFO StandaloneSchedulerBackend",
         "Granted executor ID app-20261118121228-0002/1 on hostPort 127.0.0.1:32789 with 2 core(s), 2.0 GiB RAM");
    note("ERROR TaskSchedulerImpl", "Lost executor 0 on 127.0.0.1: Command exited with code 137");
    note("WARN TaskSetManager", "Lost task 0.0 in stage 91.0 (TID 47) (127.0.0.1 executor 0): ExecutorLostFailure "
                                "(executor 0 exited caused by one "
                                "of the running tasks) Reason: Command exited with code 137");
    note("ERROR TaskSetManager", "Task 0 in stage 91.0 failed 1 times; aborting job");
}

static _Noreturn void die_with_executor(void)
{
    lose_executor();
    die_of(
        1,
        "com.intel.analytics.bigdl.dllib.utils.InvalidOperationException: Job aborted due to stage failure: Task 0 in "
        "stage 91.0 failed 1 times, most recent failure: ExecutorLostFailure (executor 0 exited caused by one of the "
        "running tasks) Reason: Command exited with code 137");
}

/* Back to the newest checkpoint. With none, the weights start afresh while the counters go on: what was trained of the
 * epoch is lost. Returns the step of the epoch that was done last. */
static int recover(struct run *r, int step)
{
    if (!r->job->checkpoint)
        die_with_executor();
    lose_executor();
    wait_ms((double)env_number("FAKE_START_MS", 50));
    bool origin = r->snapshot < 0;
    note("INFO DistriOptimizer$", "Retrying 1 times");
    note("INFO DistriOptimizer$", "Model recover from %s", origin ? "origin model" : "last snapshot");
    note("INFO DistriOptimizer$", "%s's OptimMethod recover from %s", r->optimizer,
         origin ? "origin model" : "last snapshot");
    (void)clock_gettime(CLOCK_MONOTONIC, &r->began);
    r->recovered = true;
    if (origin) {
        r->fresh_weights = true;
        return step;
    }
    r->done = r->snapshot;
    return 0;
}

/* Once for each trial: the mark lies beside its checkpoints. */
static bool first_attempt(const struct job *j)
{
    char path[4400];
    (void)snprintf(path, sizeof path, "%s/fake-failed-once", j->checkpoint ? j->checkpoint : ".");
    if (j->checkpoint) {
        (void)snprintf(path, sizeof path, "%s", j->checkpoint);
        char *slash = strrchr(path, '/');
        (void)snprintf(slash ? slash : path, 32, "%sfake-failed-once", slash ? "/" : "");
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    (void)close(fd);
    return true;
}

static void put_garbage(unsigned seed)
{
    char junk[3000];
    unsigned long long x = seed * 2654435761ULL + 88172645463325252ULL;
    for (size_t i = 0; i < sizeof junk; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        junk[i] = (char)(x >> 32);
    }
    put_all(STDERR_FILENO, junk, sizeof junk);
    say("\n[Epoch 99999999999999999999 1/0][Iteration -1][Wall Clock NaNs] Trained x records in\r");
    say("[Epoch 1 [Epoch 1 [Epoch 1 Loss is (Loss: , Top1Accuracy is Accuracy(correct: ");
}

static void put_much(void)
{
    char line[1024];
    memset(line, 'x', sizeof line);
    memcpy(line, "WARN chatter: ", 14);
    line[sizeof line - 1] = '\n';
    for (long left = env_number("FAKE_HUGE_MB", 64) * 1024; left > 0; left--)
        put_all(STDERR_FILENO, line, sizeof line);
}

static void mumble(void)
{
    for (long left = env_number("FAKE_MUMBLE_MS", 3000); left > 0; left -= 100) {
        say("WARN chatter: still at it");
        wait_ms(100);
    }
}

/* At each step, before it. */
static int misbehave(struct run *r, int step, int epochs_here)
{
    bool half = step == r->iterations / 2;
    if (fails("garbage"))
        put_garbage((unsigned)r->done);
    if (half && fails("huge-log"))
        put_much();
    if (half && fails("mumble"))
        mumble();
    if (half && fails("oom"))
        run_out_of_memory();
    if (half && fails("executor-lost"))
        die_with_executor();
    if (half && fails("stall"))
        wait_forever();
    if (half && in_session && (fails("session-die") || (fails("session-die-once") && first_attempt(r->job))))
        _exit(137);
    if (half && in_session && fails("session-fail"))
        die_of(1, "java.lang.RuntimeException: fake-spark-submit fails this trial");
    if (half && fails("fail-once") && epochs_here == 0 && first_attempt(r->job))
        die_of(1, "java.lang.RuntimeException: fake-spark-submit fails once");
    bool due = epochs_here == 1 || r->job->epochs == 1;
    return half && due && !r->recovered && fails("recover") ? recover(r, step) : step;
}

static void train(struct run *r)
{
    const char *last = fail_item("exit1-after-");
    for (int epochs_here = 0; r->epoch <= r->job->epochs; epochs_here++, r->epoch++) {
        for (int step = 0; step < r->iterations; step++) {
            step = misbehave(r, step, epochs_here);
            if (session_ends(r->epoch))
                return;
            iterate(r, step + 1);
        }
        finish_epoch(r);
        if (last && whole_number(last) == r->epoch)
            die_of(1, "java.lang.RuntimeException: fake-spark-submit ends after epoch %d", r->epoch);
    }
}

/* ---- start and end -------------------------------------------------------------------------------------------------- */

static void on_term(int sig)
{
    (void)sig;
    _exit(143);
}

/* A helper that leaves the process group, as pyspark.daemon does, and ends by KILL only. */
static void leave_child_behind(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    pid_t pid = fork();
    if (pid != 0)
        return;
    (void)setpgid(0, 0);
    (void)alarm((unsigned)env_number("FAKE_ORPHAN_S", 60)); /* no test leaves it for ever */
    wait_forever();
}

/* One executor where it fits; false: nowhere. */
static bool grant_one(int cores[], double gb[], int n, int each, double memory_gb)
{
    for (int i = 0; i < n; i++)
        if (cores[i] >= each && gb[i] >= memory_gb) {
            cores[i] -= each;
            gb[i] -= memory_gb;
            return true;
        }
    return false;
}

/* A process that looks like an executor to whoever narrows it, and ends with us. */
static void start_executor(int cores)
{
    const char *program = getenv("FAKE_EXECUTOR");
    char text[16];
    (void)snprintf(text, sizeof text, "%d", cores);
    if (!program || fork() != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen("/dev/null", "w", stdout))
        _exit(126);
    (void)execl(program, program, "1", "-", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--cores", text,
                (char *)NULL);
    _exit(127);
}

/* As a standalone master does. What it does not grant is waited for. */
static void get_executors(const struct job *j)
{
    int cores[16] = { 1 << 20 }, n = 0, each = j->executor_cores > 0 ? j->executor_cores : 1;
    double gb[16] = { 1 << 20 },
           memory_gb = j->executor_memory ? ldexp((double)memory_bytes(j->executor_memory), -30) : 1;
    const char *workers = getenv("FAKE_WORKERS");
    for (const char *w = workers; w && n < 16 && sscanf(w, "%d:%lf", &cores[n], &gb[n]) == 2; n++)
        w = strchr(w, ',') ? strchr(w, ',') + 1 : NULL;
    for (int i = 0; i * each < slots_of(j); i++) {
        if (!grant_one(cores, gb, workers ? n : 1, each, memory_gb))
            wait_forever();
        note("INFO StandaloneSchedulerBackend",
             "Granted executor ID app-20261118121228-%04d/%d on hostPort 127.0.0.1:32789 with %d core(s), 2.0 GiB RAM",
             (int)getpid() % 10000, i, each);
        start_executor(each);
    }
}

/* session-unborn-N, session-waits-N: is this one of the first N? */
static bool is_of_first(const char *item)
{
    const char *rest = fail_item(item);
    for (long i = 0; rest && i < strtol(rest, NULL, 10); i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s.%s%ld", getenv("FAKE_COUNT_FILE"), item, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
            continue;
        (void)close(fd);
        return true;
    }
    return false;
}

static void connect_to_cluster(const struct job *j)
{
    if (strncmp(j->master, "local", 5) == 0) {
        if (fails("hang"))
            wait_forever();
        return;
    }
    note("INFO StandaloneSchedulerBackend", "Connected to Spark cluster with app ID app-20261118121228-%04d",
         (int)getpid() % 10000);
    if (fails("hang") || (j->session && is_of_first("session-waits-")))
        wait_forever();
    get_executors(j);
    for (int i = 1; fails("starve"); i++) { /* as YARN does, for ever */
        note("ERROR YarnScheduler",
             "Lost executor %d on h: Container killed by YARN for exceeding physical memory limits. 850.7 MB of 768 MB "
             "physical memory used.",
             i);
        note("INFO YarnSchedulerBackend$YarnDriverEndpoint", "Registered executor NettyRpcEndpointRef(x) with ID %d",
             i);
        wait_ms(200);
    }
}

static void optimize(struct run *r)
{
    note("INFO DistriOptimizer$", "caching training rdd ...");
    note("INFO DistriOptimizer$", "Cache thread models...");
    note("INFO DistriOptimizer$", "model thread pool size is 1");
    note("INFO DistriOptimizer$", "Cache thread models... done");
    note("INFO DistriOptimizer$", "Count dataset");
    note("INFO DistriOptimizer$", "Count dataset complete. Time elapsed: 0.629773439s");
    note("INFO DistriOptimizer$",
         "config  {\n\tcomputeThresholdbatchSize: 100\n\tmaxDropPercentage: 0.0\n\twarmupIterationNum: "
         "200\n\tisLayerwiseScaled: false\n\tdropPercentage: 0.0\n }");
    check_batch(r->job, r->slots);
    (void)clock_gettime(CLOCK_MONOTONIC, &r->began);
    train(r);
}

/* A trial from its beginning to its last epoch. */
static void run_trial(const struct job *j)
{
    long iterations = env_number("FAKE_ITERATIONS", 10);
    struct run r = { .job = j, .slots = slots_of(j), .epoch = 1, .snapshot = -1 };
    r.iterations = iterations > 0 ? (int)iterations : 1;
    (void)snprintf(r.optimizer, sizeof r.optimizer, "Sequential%08x", (unsigned)getpid() * 2654435761U);
    resume(&r);
    if (j->checkpoint)
        name_folder(&r);
    count("%s %d %d %d\n", j->tag, j->epochs, r.epoch, (int)getpid());
    optimize(&r);
}

/* ---- a warm session ------------------------------------------------------------------------------------------------- */

enum { SESSION_LINE = 65536, SESSION_RESULTS = 100 };

static struct session {
    int listener, peer; /* -1: no driver */
    char in[SESSION_LINE + 1];
    size_t len;
    char current[80], next_line[SESSION_LINE + 1], next[80]; /* ids; "" when there is none */
    bool stopping;
    int ends_at; /* the current one, at this epoch's end; 0: at its last */
    struct timespec alone_since;
    struct {
        char id[80], line[1024];
    } results[SESSION_RESULTS];
    size_t n_results;
} session = { .listener = -1, .peer = -1 };

/* The text of a string, or the digits of a number, of that key; false when it is null or absent. Enough for what our own driver
 * writes. */
static bool json_value(const char *line, const char *key, char *out, size_t size)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    if (!at)
        return false;
    at += strlen(quoted);
    at += strspn(at, " ");
    bool text = *at == '"';
    size_t n = 0;
    for (at += text; *at && (text ? *at != '"' : !strchr(",}] ", *at)) && n + 1 < size; at++) {
        if (text && *at == '\\' && at[1])
            at++;
        out[n++] = *at;
    }
    out[n] = '\0';
    return text || strcmp(out, "null") != 0;
}

static void session_drop(void)
{
    if (session.peer >= 0)
        (void)close(session.peer);
    session.peer = -1;
    session.len = 0;
    session.next[0] = '\0';
    (void)clock_gettime(CLOCK_MONOTONIC, &session.alone_since);
}

static void session_says(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void session_says(const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (session.peer >= 0 && send(session.peer, line, (size_t)n, MSG_NOSIGNAL) != n)
        session_drop();
}

static void session_metric(int epoch, double value)
{
    session_says("{\"epoch\":{\"id\":\"%s\",\"epoch\":%d,\"metrics\":{\"fake\":%g}}}\n", session.current, epoch, value);
}

/* BigDL looks before each step. */
static bool session_ends(int epoch)
{
    return in_session && session.ends_at && epoch > session.ends_at;
}

static void session_accept(void)
{
    session_drop();
    session.peer = accept4(session.listener, NULL, NULL, SOCK_CLOEXEC);
    if (session.peer < 0 || fails("session-silent"))
        return;
    const char *quote = session.current[0] ? "\"" : "";
    session_says("{\"hello\":{\"protocol\":%d,\"app_id\":\"local-1795000000000\",\"pid\":%d,\"busy\":%s%s%s}}\n",
                 fails("session-protocol") ? 9
                 : fails("session-old")    ? 1
                                           : 2,
                 (int)getpid(), quote, session.current[0] ? session.current : "null", quote);
}

static void session_hears(const char *line)
{
    char id[80];
    char epoch[16];
    if (strstr(line, "{\"stop\":")) {
        session.stopping = true;
        return;
    }
    if (strstr(line, "{\"end\":")) {
        bool ours = json_value(line, "id", id, sizeof id) && strcmp(id, session.current) == 0 && !fails("session-old");
        if (ours && session.ends_at == 0 && json_value(line, "epoch", epoch, sizeof epoch))
            session.ends_at = whole_number(epoch);
        return;
    }
    if (!strstr(line, "{\"run\":") || !json_value(line, "id", id, sizeof id) || strcmp(id, session.current) == 0)
        return;
    for (size_t i = 0; i < session.n_results; i++)
        if (strcmp(session.results[i].id, id) == 0) {
            session_says("%s", session.results[i].line);
            return;
        }
    if (session.current[0] || session.next[0]) {
        session_says("{\"done\":{\"id\":\"%s\",\"ok\":false,\"error\":\"the session is busy\"}}\n", id);
        return;
    }
    (void)snprintf(session.next, sizeof session.next, "%s", id);
    (void)snprintf(session.next_line, sizeof session.next_line, "%s", line);
}

static void session_receive(void)
{
    ssize_t n = recv(session.peer, session.in + session.len, SESSION_LINE - session.len, 0);
    if (n <= 0) {
        session_drop();
        return;
    }
    session.len += (size_t)n;
    session.in[session.len] = '\0';
    char *line = session.in, *end;
    while (session.peer >= 0 && (end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        session_hears(line);
        line = end + 1;
    }
    if (session.peer < 0)
        return;
    session.len -= (size_t)(line - session.in);
    memmove(session.in, line, session.len + 1);
}

/* Listens for so long; with -1 until there is something to do. */
static void session_pump(double ms)
{
    struct timespec began;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    for (;;) {
        double left = ms < 0 ? 100 : ms - seconds_since(&began) * 1000;
        struct pollfd fds[] = { { .fd = session.listener, .events = POLLIN },
                                { .fd = session.peer, .events = POLLIN } };
        struct timespec wait = { .tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left * 1e6) % 1000000000 };
        if (left < 0)
            wait = (struct timespec){ 0 };
        if (ppoll(fds, 2, &wait, NULL) <= 0) {
            if (ms >= 0 && left <= 0)
                return;
        } else if (fds[0].revents) {
            session_accept();
        } else {
            session_receive();
        }
        double alone = session.peer < 0 ? seconds_since(&session.alone_since) : 0;
        if (ms < 0 &&
            (session.next[0] || session.stopping || alone >= (double)env_number("PIPETUNE_SESSION_WAIT_S", 600)))
            return;
    }
}

static void session_bind(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    session.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlink(path);
    (void)umask(0177);
    if (session.listener < 0 || bind(session.listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(session.listener, 4) < 0) {
        python_says("OSError: [Errno %d] %s: '%s'", errno, strerror(errno), path);
        exit(1);
    }
    (void)umask(022);
    (void)clock_gettime(CLOCK_MONOTONIC, &session.alone_since);
}

/* The trial of a run's line; texts live as long as the process. */
static struct job session_job(const struct job *base, const char *line)
{
    static char rate[80], decay[80], seed[80], checkpoint[4096], model[4096], state[4096];
    char number[80];
    struct job j = *base;
    (void)snprintf(j.tag, sizeof j.tag, "%s", session.current);
    if (json_value(line, "batch_size", number, sizeof number))
        j.batch = whole_number(number);
    if (json_value(line, "epochs", number, sizeof number))
        j.epochs = whole_number(number);
    j.rate = json_value(line, "learning_rate", rate, sizeof rate) ? rate : base->rate;
    j.decay = json_value(line, "learning_rate_decay", decay, sizeof decay) ? decay : base->decay;
    j.seed = json_value(line, "seed", seed, sizeof seed) ? seed : base->seed;
    j.checkpoint = json_value(line, "checkpoint", checkpoint, sizeof checkpoint) ? checkpoint : NULL;
    j.model = json_value(line, "model", model, sizeof model) ? model : NULL;
    j.state = json_value(line, "state", state, sizeof state) ? state : NULL;
    return j;
}

/* The deepest cause of what a trial died of: "… driver): com.…UnKnownException: total batch size: …". */
static const char *deepest(void)
{
    const char *cause = died_of;
    for (const char *p = died_of; (p = strstr(p, "Exception: ")) != NULL; p++)
        cause = p;
    while (cause > died_of && cause[-1] != ' ')
        cause--;
    return cause;
}

static void put_result(bool ok)
{
    char text[512];
    size_t n = 0;
    for (const char *p = deepest(); *p && *p != '\n' && n + 2 < sizeof text; p++) {
        if (*p == '"' || *p == '\\')
            text[n++] = '\\';
        text[n++] = (unsigned char)*p < ' ' ? ' ' : *p;
    }
    text[n] = '\0';
    if (session.n_results == SESSION_RESULTS) {
        session.n_results--;
        memmove(session.results, session.results + 1, sizeof session.results - sizeof session.results[0]);
    }
    char *line = session.results[session.n_results].line;
    (void)snprintf(line, sizeof session.results->line, "{\"done\":{\"id\":\"%s\",\"ok\":%s,\"error\":%s%s%s}}\n",
                   session.current, ok ? "true" : "false", ok ? "" : "\"", ok ? "null" : text, ok ? "" : "\"");
    (void)snprintf(session.results[session.n_results++].id, sizeof session.current, "%s", session.current);
    session.current[0] = '\0';
    if (fails("session-garbage"))
        session_says("\x01\xff{\"done\":[[[\n");
    if (!fails("session-mute"))
        session_says("%s", line);
    (void)clock_gettime(CLOCK_MONOTONIC, &session.alone_since);
}

static void session_trial(const struct job *base)
{
    (void)snprintf(session.current, sizeof session.current, "%s", session.next);
    session.next[0] = '\0';
    session.ends_at = 0;
    struct job j = session_job(base, session.next_line);
    say("\nPIPETUNE trial %s begin", session.current);
    in_session = true;
    volatile bool ok = false;
    if (setjmp(trial_died) == 0) {
        check_folders(&j);
        run_trial(&j);
        ok = true;
    }
    in_session = false;
    say("\nPIPETUNE trial %s end", session.current);
    put_result(ok);
}

static void serve(const struct job *j)
{
    if (is_of_first("session-unborn-"))
        die_of(1, "java.net.BindException: Address already in use: Service 'sparkDriver' failed");
    wait_ms((double)env_number("FAKE_SESSION_MS", 0));
    count("session %s %d\n", j->tag, (int)getpid());
    session_bind(j->session);
    for (;;) {
        session_pump(-1);
        if (session.stopping || !session.next[0])
            break;
        session_trial(j);
    }
    session_drop();
    (void)unlink(j->session);
    wait_ms((double)env_number("FAKE_STOP_MS", 0));
}

int main(int argc, char **argv)
{
    struct job j = { .master = "local[*]", .tag = "-", .batch = 128, .epochs = 1 };
    if (fails("ignore-term"))
        leave_child_behind();
    else
        (void)signal(SIGTERM, on_term);
    parse_spark(&j, argc, argv);
    check_application(&j);
    const char *base = strrchr(j.application, '/');
    if (strcmp(base ? base + 1 : j.application, "convert_checkpoint.py") == 0)
        convert(&j);
    parse_application(&j);
    wait_ms((double)env_number("FAKE_START_MS", 50));
    check_memory(&j);
    connect_to_cluster(&j);
    note("INFO ThreadPool$", "Set mkl threads to 1 on thread 1");
    note("WARN SparkContext", "Using an existing SparkContext; some configuration may not take effect.");
    check_folders(&j);
    if (j.session)
        serve(&j);
    else
        run_trial(&j);
    if (strncmp(j.master, "local", 5) != 0)
        note("INFO StandaloneSchedulerBackend", "Shutting down all executors");
    return 0;
}
