/* What works here: one check per row, each says what it found and how to mend it. */
#include <curl/curl.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/capture.h"
#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/table.h"
#include "live/provenance.h"
#include "live/study.h"
#include "store/fs.h"

extern char **environ;

#define SET_UP "run ./run-pipetune.sh setup"

struct doctor_options {
    char *store;
    bool try, json;
};

static const struct opt_row doctor_rows[] = {
    { NULL, "store", OPT_TEXT, offsetof(struct doctor_options, store), NULL, 0, 0, NULL, "FILE",
      "the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
    { NULL, "try", OPT_FLAG, offsetof(struct doctor_options, try), NULL, 0, 0, NULL, NULL,
      "train LeNet on MNIST for a minute" },
    { NULL, "json", OPT_FLAG, offsetof(struct doctor_options, json), NULL, 0, 0, NULL, NULL, "print JSON" },
};

static struct opt_set doctor_opts(struct doctor_options *o)
{
    return (struct opt_set){ .rows = doctor_rows, .n = ARRAY_LEN(doctor_rows), .target = o };
}

void cmd_doctor_options(struct buf *b)
{
    struct opt_set set = doctor_opts(NULL);
    opt_help(b, &set);
}

enum state { CHECK_OK, CHECK_WARN, CHECK_MISSING };

static const char *const state_names[] = { "ok", "warn", "missing" };

struct place {
    struct env env;
    struct offer offer;
    char *store;
    bool json;
};

struct finding {
    struct buf detail, fix;
};

/* The path of a program as the shell would find it, links followed; NULL when it is nowhere. */
static char *find_program(const char *name)
{
    if (strchr(name, '/'))
        return realpath(name, NULL);
    const char *path = getenv("PATH");
    AUTO_FREE char *dirs = strdup(path && *path ? path : "/usr/bin:/bin");
    char *save = NULL;
    for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir; dir = strtok_r(NULL, ":", &save)) {
        AUTO_FREE char *file = io_join(dir, name);
        if (file && access(file, X_OK) == 0)
            return realpath(file, NULL);
    }
    return NULL;
}

/* The first line, without control characters. */
static void put_first_line(struct buf *b, const char *text)
{
    for (; *text && *text != '\n'; text++)
        if ((unsigned char)*text >= 0x20)
            buf_putc(b, *text);
}

/* --- the programs --- */

static enum state check_java(const struct place *p, struct finding *f)
{
    int major;
    struct err e;
    if (env_java_major(&p->env, &major, &e) < 0) {
        buf_puts(&f->detail, e.text);
        buf_puts(&f->fix, "apt-get install openjdk-17-jre-headless, or " SET_UP ", or set JAVA_HOME");
        return CHECK_MISSING;
    }
    AUTO_FREE char *java = p->env.java_home ? io_join(p->env.java_home, "bin/java") : strdup("java");
    AUTO_FREE char *path = java ? find_program(java) : NULL;
    AUTO_BUF struct buf said = BUF_INIT;
    char *argv[] = { java, "-version", NULL };
    if (java && capture(&said, argv, 20000, &e) >= 0)
        put_first_line(&f->detail, buf_text(&said));
    buf_printf(&f->detail, " at %s", path ? path : "an unknown place");
    if (major == 8 || major == 11 || major == 17)
        return CHECK_OK;
    buf_puts(&f->fix, "Spark 3.5 is made for Java 8, 11 and 17: install openjdk-17-jre-headless, or set JAVA_HOME");
    return CHECK_WARN;
}

static enum state check_spark(const struct place *p, struct finding *f)
{
    if (access(p->env.spark_submit, X_OK) != 0) {
        buf_printf(&f->detail, "'%s' is not there", p->env.spark_submit);
        buf_puts(&f->fix, SET_UP ", or set SPARK_HOME");
        return CHECK_MISSING;
    }
    AUTO_FREE char *real = realpath(p->env.spark_submit, NULL);
    AUTO_FREE char *bin = real ? io_dirname(real) : NULL;
    AUTO_FREE char *home = bin ? io_dirname(bin) : NULL;
    const struct env here = { .spark_home = p->env.spark_home ? p->env.spark_home : home };
    char version[32];
    if (provenance_spark_version(&here, version) < 0) {
        buf_printf(&f->detail, "%s, version unknown", p->env.spark_submit);
        buf_puts(&f->fix, "set SPARK_HOME to the folder that holds Spark's jars/, or " SET_UP);
        return CHECK_WARN;
    }
    buf_printf(&f->detail, "%s at %s", version, p->env.spark_submit);
    if (strncmp(version, "3.5.", 4) == 0)
        return CHECK_OK;
    buf_puts(&f->fix, "3.5.8 is what PipeTune is tested with: " SET_UP);
    return CHECK_WARN;
}

static enum state check_bigdl(const struct place *p, struct finding *f)
{
    static const char *const files[] = { "bigdl-dllib.jar", "bigdl-core.jar", "spark-bigdl.conf" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *path = io_join(p->env.bigdl_home, files[i]);
        AUTO_FREE char *real = path ? realpath(path, NULL) : NULL;
        if (!real) {
            buf_clear(&f->detail);
            buf_printf(&f->detail, "no '%s' in '%s'", files[i], p->env.bigdl_home);
            buf_puts(&f->fix, SET_UP ", or set BIGDL_HOME to a folder that holds it");
            return CHECK_MISSING;
        }
        buf_printf(&f->detail, "%s%s", i ? ", " : "", strrchr(real, '/') + 1); /* their names hold the versions */
    }
    buf_printf(&f->detail, " by %s", p->env.bigdl_home);
    return CHECK_OK;
}

static enum state check_python(const struct place *p, struct finding *f)
{
    static char code[] =
        "import sys, numpy; print('%d.%d.%d with numpy %s' % (*sys.version_info[:3], numpy.__version__));"
        "sys.exit(not (3, 8) <= sys.version_info < (3, 12))";
    char name[] = "python3";
    char *python = p->env.python ? p->env.python : name;
    char *argv[] = { python, "-c", code, NULL };
    AUTO_BUF struct buf said = BUF_INIT;
    struct err e;
    int rc = capture(&said, argv, 20000, &e);
    if (rc == 0) {
        put_first_line(&f->detail, buf_text(&said));
        buf_printf(&f->detail, " at %s", python);
        return CHECK_OK;
    }
    const char *last = rc < 0 ? e.text : strstr(buf_text(&said), "Error:");
    buf_printf(&f->detail, "'%s' cannot serve Spark's Python applications: ", python);
    put_first_line(&f->detail, last ? last : buf_text(&said));
    buf_puts(&f->fix, SET_UP " (Python applications and resumed trials need Python 3.8 to 3.11 with numpy < 2)");
    return CHECK_WARN;
}

/* --- our own files, and the data --- */

static enum state check_node(const struct place *p, struct finding *f)
{
    char *argv[] = { p->env.node, "version", NULL };
    AUTO_BUF struct buf said = BUF_INIT;
    struct err e = { 0 };
    int rc = capture(&said, argv, 10000, &e);
    if (rc == 0) {
        put_first_line(&f->detail, buf_text(&said));
        buf_printf(&f->detail, " at %s", p->env.node);
        return CHECK_OK;
    }
    buf_printf(&f->detail, "'%s' does not run", p->env.node);
    buf_puts(&f->fix, "run make; it belongs beside pipetune");
    return CHECK_MISSING;
}

static enum state check_conf(const struct place *p, struct finding *f)
{
    const char *const files[] = { p->env.log4j, p->env.converter };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (access(files[i], R_OK) == 0)
            continue;
        buf_printf(&f->detail, "'%s' cannot be read", files[i]);
        buf_puts(&f->fix, "set PIPETUNE_HOME to the folder that holds PipeTune's conf/ and bigdl/");
        return CHECK_MISSING;
    }
    buf_printf(&f->detail, "conf/ and bigdl/ in %s", p->env.home);
    return CHECK_OK;
}

static bool has_data_set(const struct place *p, const char *name)
{
    static const char *const files[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                         "t10k-labels-idx1-ubyte" };
    AUTO_FREE char *dir = io_join(p->env.data, name);
    for (size_t i = 0; dir && i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *path = io_join(dir, files[i]);
        struct stat st;
        if (!path || stat(path, &st) < 0 || st.st_size < 16)
            return false;
    }
    return dir != NULL;
}

/* The shipped examples train on one of the two. A trial on the user's own data needs neither, but that cannot be seen
 * here. */
static enum state check_data(const struct place *p, struct finding *f)
{
    bool mnist = has_data_set(p, "mnist"), fashion = has_data_set(p, "fashion-mnist");
    if (mnist && fashion) {
        buf_printf(&f->detail, "MNIST and Fashion-MNIST in %s", p->env.data);
        return CHECK_OK;
    }
    if (!mnist && !fashion)
        buf_printf(&f->detail, "neither MNIST nor Fashion-MNIST in '%s'", p->env.data);
    else
        buf_printf(&f->detail, "no %s in '%s'", mnist ? "Fashion-MNIST" : "MNIST", p->env.data);
    buf_puts(&f->fix, SET_UP ", or set PIPETUNE_DATA to the folder that holds mnist/ and fashion-mnist/");
    return mnist || fashion ? CHECK_WARN : CHECK_MISSING;
}

static enum state store_missing(struct finding *f, const char *text)
{
    buf_puts(&f->detail, text);
    buf_puts(&f->fix, "name a file on a local disk by --store or PIPETUNE_STORE");
    return CHECK_MISSING;
}

static void put_free_space(const struct place *p, const char *dir, struct buf *b)
{
    struct statvfs v;
    char type[FS_TYPE_MAX];
    if (fs_type(dir, type, NULL) == 0)
        buf_printf(b, " on %s", type);
    if (statvfs(dir, &v) == 0)
        buf_printf(b, ", %.1f GiB free", (double)v.f_bavail * (double)v.f_frsize / (1024.0 * 1024.0 * 1024.0));
    buf_puts(b, io_exists(p->store) ? "" : ", not begun yet");
}

static enum state check_store(const struct place *p, struct finding *f)
{
    struct err e = { 0 };
    AUTO_FREE char *dir = io_dirname(p->store);
    const char *network = NULL;
    if (!dir || fs_network(dir, &network, &e) < 0)
        return store_missing(f, dir ? e.text : "out of memory");
    char text[PATH_MAX + 128];
    (void)snprintf(text, sizeof text, "'%s' is on a network file system (%s)", p->store, network ? network : "");
    if (network)
        return store_missing(f, text);
    (void)snprintf(text, sizeof text, "'%s' cannot be written", access(dir, W_OK) != 0 ? dir : p->store);
    if (access(dir, W_OK) != 0 || (io_exists(p->store) && access(p->store, W_OK) != 0))
        return store_missing(f, text);
    struct store *s = NULL;
    int rc = store_open(&s, p->store, STORE_READ, &e);
    store_close(s);
    if (rc < 0 && rc != -ENOENT)
        return store_missing(f, e.text);
    buf_printf(&f->detail, "%s", p->store);
    put_free_space(p, dir, &f->detail);
    return CHECK_OK;
}

/* --- the machine --- */

static enum state check_libraries(const struct place *p, struct finding *f)
{
    (void)p; /* linked, so they are there; their versions tell what is theirs in a report */
    buf_printf(&f->detail, "libuv %s, jansson %s, SQLite %s, curl %s", uv_version_string(), jansson_version_str(),
               sqlite3_libversion(), curl_version_info(CURLVERSION_NOW)->version);
    return CHECK_OK;
}

static enum state check_machine(const struct place *p, struct finding *f)
{
    buf_printf(&f->detail, "%d CPU%s and %.1f GiB of memory for a trial", p->offer.cores,
               p->offer.cores == 1 ? "" : "s", p->offer.memory_gb);
    if (p->offer.memory_gb >= 3)
        return CHECK_OK;
    buf_puts(&f->fix, "the shipped examples give their JVM 2 GiB: lower driver_memory in the BigDL file");
    return CHECK_WARN;
}

static enum state check_files(const struct place *p, struct finding *f)
{
    (void)p;
    enum { WANTED = 4096 };
    struct rlimit r = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &r) < 0) {
        buf_puts(&f->detail, "the limit cannot be read");
        return CHECK_WARN;
    }
    buf_printf(&f->detail, "%llu file descriptors, at most %llu", (unsigned long long)r.rlim_cur,
               (unsigned long long)r.rlim_max);
    if (r.rlim_max >= WANTED) /* the JVM raises its own limit as far as it may */
        return CHECK_OK;
    buf_printf(&f->fix, "raise the hard limit to %d: ulimit -Hn, /etc/security/limits.conf or LimitNOFILE=", WANTED);
    return CHECK_WARN;
}

/* CAP_PERFMON or CAP_SYS_ADMIN: the kernel then asks for no more. */
static bool may_always_count(void)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (io_read_file(&b, "/proc/self/status", 65536, NULL) < 0)
        return false;
    const char *line = strstr(buf_text(&b), "CapEff:");
    unsigned long long caps = line ? strtoull(line + strlen("CapEff:"), NULL, 16) : 0;
    return caps & (1ULL << 38 | 1ULL << 21);
}

static const char *paranoid_meaning(long level)
{
    if (level < 0)
        return "everything may be counted";
    if (level <= 1)
        return level == 0 ? "whole CPUs and own processes may be counted"
                          : "own processes may be counted, kernel included";
    return level == 2 ? "own processes may be counted, without the kernel's part"
                      : "nothing may be counted without CAP_PERFMON";
}

static enum state check_perf(const struct place *p, struct finding *f)
{
    (void)p;
    AUTO_BUF struct buf b = BUF_INIT;
    if (io_read_file(&b, "/proc/sys/kernel/perf_event_paranoid", 64, NULL) < 0) {
        buf_puts(&f->detail, "this kernel has no perf events: profiles come from /proc alone");
        buf_puts(&f->fix, "none needed; a kernel with CONFIG_PERF_EVENTS gives better profiles");
        return CHECK_WARN;
    }
    long level = strtol(buf_text(&b), NULL, 10);
    bool always = may_always_count(),
         pmu = io_exists("/sys/bus/event_source/devices/cpu") || io_exists("/sys/bus/event_source/devices/cpu_core");
    buf_printf(&f->detail, "perf_event_paranoid is %ld: %s%s", level,
               always ? "everything may be counted, by this user's CAP_PERFMON" : paranoid_meaning(level),
               pmu ? "" : "; no hardware counters here (a VM?)");
    if (!always && level > 1)
        buf_puts(&f->fix, "sysctl kernel.perf_event_paranoid=1, and the same line in /etc/sysctl.d/ to keep it");
    else if (!pmu)
        buf_puts(&f->fix, "none needed: profiles then come from software events and /proc");
    return f->fix.len > 0 ? CHECK_WARN : CHECK_OK;
}

/* Spark asks for the address of the host's own name, and fails when there is none. */
static enum state check_host(const struct place *p, struct finding *f)
{
    (void)p;
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1); /* an empty name does not resolve either */
    const char *ip = getenv("SPARK_LOCAL_IP");
    struct addrinfo *found = NULL;
    int rc = ip && *ip ? 0 : getaddrinfo(name, NULL, NULL, &found);
    if (found)
        freeaddrinfo(found);
    if (rc == 0) {
        buf_printf(&f->detail, ip && *ip ? "SPARK_LOCAL_IP is %s" : "'%s' resolves", ip && *ip ? ip : name);
        return CHECK_OK;
    }
    buf_printf(&f->detail, "the host's own name '%s' does not resolve (%s): Spark may not start", name,
               gai_strerror(rc));
    buf_printf(&f->fix, "export SPARK_LOCAL_IP=127.0.0.1, or add '127.0.1.1 %s' to /etc/hosts", name);
    return CHECK_WARN;
}

/* --- a minute of training --- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path); /* what cannot be removed stays in the temporary folder */
    return 0;
}

/* The widest power of two, since 1024 must be a multiple of the cores. */
static int try_cores(const struct place *p)
{
    int cores = 1;
    while (cores * 2 <= p->offer.cores && cores < 1024)
        cores *= 2;
    return cores;
}

static int write_try_config(const struct place *p, const char *path, struct err *e)
{
    AUTO_FREE char *bigdl = io_join(p->env.home, "bigdl/config/mnist.json");
    AUTO_JSON json_t *j =
        bigdl ? json_pack("{s:s, s:{s:s, s:i}, s:{s:[i]}, s:{s:[i], s:[f], s:[f]}}", "bigdlConf", bigdl, "study",
                          "name", "try", "epochs", 1, "systemParameters", "cores", try_cores(p), "hyperParameters",
                          "batch_size", 1024, "learning_rate", 0.1, "learning_rate_decay", 0.0002)
              : NULL;
    AUTO_BUF struct buf text = BUF_INIT;
    json_put(&text, j, JSON_STYLE_INDENT);
    if (!j || text.failed)
        return err_sys(e, -ENOMEM, "cannot try");
    return io_write_atomic(path, text.data, text.len, 0666, e);
}

/* Runs this very program; with --json its words go to stderr. Returns its exit code, or a negative errno. */
static int run_self(const struct place *p, char *const argv[])
{
    sigset_t reset;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t fa;
    (void)sigemptyset(&reset);
    (void)sigaddset(&reset, SIGINT); /* Ctrl-C is for the run; it ends, and we say what became of it */
    (void)sigaddset(&reset, SIGPIPE);
    if (posix_spawnattr_init(&attr) != 0)
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&fa) != 0) {
        (void)posix_spawnattr_destroy(&attr);
        return -ENOMEM;
    }
    (void)posix_spawnattr_setsigdefault(&attr, &reset);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    int rc = p->json ? posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO) : 0;
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    pid_t pid;
    if (rc == 0)
        rc = posix_spawn(&pid, "/proc/self/exe", &fa, &attr, argv, environ);
    int status = 0;
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)signal(SIGINT, before);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&attr);
    if (rc != 0)
        return -rc;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct tried {
    double accuracy, trial_s, epoch_s;
    int64_t id;
};

static int take_epoch(void *ctx, const struct store_epoch *r)
{
    ((struct tried *)ctx)->epoch_s = r->seconds;
    return 0;
}

static int take_trial(void *ctx, const struct store_trial *r)
{
    struct tried *t = ctx;
    t->id = r->id;
    t->accuracy = r->accuracy;
    t->trial_s = r->seconds;
    return 0;
}

static int put_measured(const char *store, struct buf *b, struct err *e)
{
    struct store *s = NULL;
    struct store_study study = { 0 };
    struct tried t = { 0 };
    int rc = store_open(&s, store, STORE_READ, e);
    if (rc == 0)
        rc = store_study_find(s, "try", &study, e);
    if (rc == 1)
        rc = store_trials(s, study.id, 0, take_trial, &t, e);
    if (rc == 0 && t.id)
        rc = store_epochs(s, t.id, take_epoch, &t, e);
    char epoch[32], trial[32];
    if (rc == 0)
        buf_printf(b, "LeNet on MNIST, batch 1024, 1 epoch: accuracy %.4f, the epoch took %s, the whole trial %s",
                   t.accuracy, table_duration(t.epoch_s, epoch), table_duration(t.trial_s, trial));
    store_study_done(&study);
    store_close(s);
    return rc;
}

static int train(const struct place *p, const char *dir, struct finding *f)
{
    struct err e = { 0 };
    AUTO_FREE char *config = io_join(dir, "try.conf");
    AUTO_FREE char *store = io_join(dir, "pipetune.db");
    char *argv[] = { "pipetune", "run", "--config", config, "--store", store, NULL };
    int rc = config && store ? write_try_config(p, config, &e) : err_sys(&e, -ENOMEM, "cannot try");
    if (rc == 0)
        rc = run_self(p, argv);
    if (rc < 0 && !e.code)
        (void)err_sys(&e, rc, "cannot start this program");
    if (rc == 0)
        rc = put_measured(store, &f->detail, &e);
    if (rc > 0)
        buf_printf(&f->detail, "the run ended with exit code %d", rc);
    else if (rc < 0)
        buf_puts(&f->detail, e.text);
    return rc;
}

static enum state check_try(const struct place *p, struct finding *f)
{
    const char *tmp = getenv("TMPDIR");
    AUTO_FREE char *dir = NULL;
    if (asprintf(&dir, "%s/pipetune-try-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
        dir = NULL;
        buf_puts(&f->detail, "out of memory");
        return CHECK_MISSING;
    }
    if (!mkdtemp(dir)) {
        buf_printf(&f->detail, "cannot make '%s': %s", dir, strerror(errno));
        buf_puts(&f->fix, "set TMPDIR to a folder that can be written");
        return CHECK_MISSING;
    }
    if (train(p, dir, f) != 0) {
        buf_printf(&f->fix, "its store and logs are kept: pipetune show try --store %s/pipetune.db", dir);
        return CHECK_MISSING;
    }
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* it is in the temporary folder, and was of use */
    return CHECK_OK;
}

/* --- all of them --- */

/* clang-format off */
static const struct check {
    const char *name;
    enum state (*look)(const struct place *p, struct finding *f);
    bool needed; /* when it is missing, no trial can run */
} checks[] = {
    { "java", check_java, true },
    { "spark", check_spark, true },
    { "bigdl", check_bigdl, true },
    { "data", check_data, true },
    { "python", check_python, false },
    { "pipetune-node", check_node, true },
    { "conf files", check_conf, true },
    { "store", check_store, true },
    { "libraries", check_libraries, false },
    { "machine", check_machine, false },
    { "descriptors", check_files, false },
    { "perf", check_perf, false },
    { "host name", check_host, false },
};
/* clang-format on */

static const struct check trying = { "try", check_try, true };

static json_t *finding_json(const struct check *c, enum state state, const struct finding *f)
{
    return json_pack("{s:s, s:s, s:s, s:s?}", "name", c->name, "state", state_names[state], "detail",
                     buf_text(&f->detail), "fix", f->fix.len ? buf_text(&f->fix) : NULL);
}

static void print_finding(const struct check *c, enum state state, const struct finding *f)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%-8s %-13s  %s", state_names[state], c->name, buf_text(&f->detail));
    if (f->fix.len)
        buf_printf(&b, "; fix: %s", buf_text(&f->fix));
    buf_putc(&b, '\n');
    (void)cmd_print(&b); /* the exit code tells of the machine, not of a closed pipe */
}

/* Looks, and prints at once (some take seconds) or adds to `list`. Returns whether a trial is still possible. */
static bool look(const struct place *p, const struct check *c, json_t *list)
{
    struct finding f = { 0 };
    enum state state = c->look(p, &f);
    if (list)
        (void)json_array_append_new(list, finding_json(c, state, &f)); /* out of memory: a shorter list */
    else
        print_finding(c, state, &f);
    buf_done(&f.detail);
    buf_done(&f.fix);
    return !(c->needed && state == CHECK_MISSING);
}

static int diagnose(struct place *p, const struct doctor_options *o)
{
    AUTO_JSON json_t *list = o->json ? json_array() : NULL;
    bool able = true;
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        able &= look(p, &checks[i], list);
    if (able && o->try)
        able = look(p, &trying, list);
    if (o->json)
        (void)cmd_print_json(json_incref(list));
    else if (!able)
        fputs("pipetune: no trial can run here: see the lines above that begin with 'missing'\n", stderr);
    return able ? CMD_OK : CMD_ENVIRONMENT;
}

static int find_place(struct place *out, const struct doctor_options *o, struct err *e)
{
    const struct config nothing = { 0 };
    out->json = o->json;
    out->offer = env_offer();
    out->store = study_store_path(o->store);
    return out->store ? env_find(&out->env, &nothing, e) : err_sys(e, -ENOMEM, "cannot look");
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = { 0 };
    struct opt_set set = doctor_opts(&o);
    int code;
    if (!cmd_options("doctor", argc, argv, &set, 1, NULL, 0, &code)) {
        struct place p = { 0 };
        struct err e;
        code = find_place(&p, &o, &e) < 0 ? cmd_fail(&e) : diagnose(&p, &o);
        env_done(&p.env);
        free(p.store);
    }
    opt_done(&set);
    return code;
}
