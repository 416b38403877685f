#include "tests/integration/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/strv.h"

enum { LOOK_EVERY_MS = 5, FILE_MAX = 256 << 20 };

char *harness_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/pipetune-test-XXXXXX", base && *base ? base : "/tmp") < 0 || !mkdtemp(dir))
        fail_msg("cannot make a folder: %s", strerror(errno));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)where;
    if (kind == FTW_DP)
        (void)umount2(path, MNT_DETACH); /* most are no mounts, most tests are not root */
    (void)remove(path);                  /* what stays shows in /tmp, and no test depends on it */
    return 0;
}

void harness_remove(char *dir)
{
    if (dir)
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

char *harness_path(const char *dir, const char *name)
{
    char *path = io_join(dir, name);
    assert_non_null(path);
    return path;
}

char *harness_program(const char *name)
{
    const char *build = getenv("PIPETUNE_BUILD");
    if (build && *build)
        return harness_path(build, name);
    char self[4096]; /* BUILD/tests/integration/test_x */
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(len > 0);
    self[len] = '\0';
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(self, '/');
        assert_non_null(slash);
        *slash = '\0';
    }
    return harness_path(self, name);
}

char *harness_read(const char *dir, const char *name)
{
    AUTO_FREE char *path = harness_path(dir, name);
    AUTO_BUF struct buf text = BUF_INIT;
    struct err e = { 0 };
    int rc = io_read_file(&text, path, FILE_MAX, &e);
    if (rc == -ENOENT)
        return NULL;
    if (rc < 0)
        fail_msg("%s", e.text);
    return buf_take(&text);
}

void harness_write(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = harness_path(dir, name);
    struct err e = { 0 };
    if (io_write_atomic(path, text, strlen(text), 0666, &e) < 0)
        fail_msg("%s", e.text);
}

size_t harness_count(const char *text, const char *needle)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, needle)); at += strlen(needle))
        n++;
    return n;
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool harness_wait(bool (*holds)(void *arg), void *arg, int ms)
{
    for (int64_t until = now_ms() + ms; now_ms() < until;) {
        if (holds(arg))
            return true;
        (void)poll(NULL, 0, LOOK_EVERY_MS);
    }
    return holds(arg);
}

static bool file_is_there(void *path)
{
    return io_exists(path);
}

bool harness_wait_file(const char *dir, const char *name, int ms)
{
    AUTO_FREE char *path = harness_path(dir, name);
    return harness_wait(file_is_there, path, ms);
}

pid_t harness_spawn(char *const argv[], int out_fd, int err_fd)
{
    pid_t pid = fork();
    if (pid < 0)
        fail_msg("cannot fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    int in = open("/dev/null", O_RDONLY);
    if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && (out_fd < 0 || dup2(out_fd, STDOUT_FILENO) >= 0) &&
        (err_fd < 0 || dup2(err_fd, STDERR_FILENO) >= 0))
        (void)execv(argv[0], argv);
    fprintf(stderr, "cannot start '%s': %s\n", argv[0], strerror(errno));
    _exit(127);
}

struct ending {
    pid_t pid;
    int how;
};

static bool has_ended(void *arg)
{
    struct ending *e = arg;
    pid_t got = waitpid(e->pid, &e->how, WNOHANG);
    if (got < 0)
        fail_msg("cannot wait for %ld: %s", (long)e->pid, strerror(errno));
    return got > 0;
}

int harness_exit_code(pid_t pid, int ms)
{
    struct ending e = { .pid = pid };
    if (!harness_wait(has_ended, &e, ms)) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &e.how, 0);
        fail_msg("process %ld did not end within %d ms", (long)pid, ms);
    }
    return WIFSIGNALED(e.how) ? 128 + WTERMSIG(e.how) : WEXITSTATUS(e.how);
}

static char *text_of(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    return text;
}

struct harness_output harness_run(char *const argv[], int ms)
{
    /* Files, not pipes: whatever a program writes, it never waits for us. */
    AUTO_CLOSE int out = memfd_create("out", MFD_CLOEXEC);
    AUTO_CLOSE int err = memfd_create("err", MFD_CLOEXEC);
    assert_true(out >= 0 && err >= 0);
    int code = harness_exit_code(harness_spawn(argv, out, err), ms);
    return (struct harness_output){ .code = code, .out = text_of(out), .err = text_of(err) };
}

void harness_output_done(struct harness_output *o)
{
    free(o->out);
    free(o->err);
    *o = (struct harness_output){ 0 };
}

/* --- a world ----------------------------------------------------------------------------------------------------------- */

static const char *const world_env[] = {
    "SPARK_HOME",        "BIGDL_HOME",
    "PIPETUNE_DATA",     "JAVA_HOME",
    "PIPETUNE_STORE",    "PIPETUNE_HOME",
    "PYSPARK_PYTHON",    "PIPETUNE_WORLD",
    "PIPETUNE_LEASE_MS", "PIPETUNE_LEASES",
    "PIPETUNE_ASK_MS",   "FAKE_EPOCH_MS",
    "FAKE_ITERATIONS",   "FAKE_START_MS",
    "FAKE_FAIL",         "FAKE_COUNT_FILE",
    "FAKE_ORPHAN_S",     "FAKE_HUGE_MB",
    "FAKE_SESSION_MS",   "FAKE_STOP_MS",
    "LD_PRELOAD",        "PIPETUNE_FAULT_STATFS",
    "ASAN_OPTIONS",      "PIPETUNE_SESSION_WAIT_S",
};

void harness_set_path(const char *variable, const char *dir, const char *file)
{
    AUTO_FREE char *path = harness_path(dir, file);
    assert_int_equal(setenv(variable, path, 1), 0);
}

void world_point_at(const struct world *w, const char *variable, const char *name)
{
    harness_set_path(variable, w->dir, name);
}

static void make_dir(const char *dir, const char *name)
{
    AUTO_FREE char *path = harness_path(dir, name);
    assert_int_equal(io_mkdirs(path, NULL), 0);
}

static void make_script(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = harness_path(dir, name);
    harness_write(dir, name, text);
    assert_int_equal(chmod(path, 0755), 0);
}

void world_dir(const struct world *w, const char *name)
{
    make_dir(w->dir, name);
}

void world_script(const struct world *w, const char *name, const char *text)
{
    make_script(w->dir, name, text);
}

static void make_programs(const char *dir)
{
    make_dir(dir, "spark/bin");
    make_dir(dir, "java/bin");
    AUTO_FREE char *fake = harness_program("tests/integration/fake-spark-submit");
    AUTO_FREE char *submit = harness_path(dir, "spark/bin/spark-submit");
    assert_int_equal(symlink(fake, submit), 0);
    make_script(dir, "java/bin/java", WORLD_JAVA("17.0.15"));
    harness_set_path("SPARK_HOME", dir, "spark");
    harness_set_path("JAVA_HOME", dir, "java");
}

static void fill(const struct world *w)
{
    static const char *const dirs[] = { "bigdl", "data/mnist", "empty" };
    make_programs(w->dir);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        world_dir(w, dirs[i]);
    harness_write(w->dir, "bigdl/bigdl-core.jar", "");
    harness_write(w->dir, "bigdl/bigdl-dllib.jar", "");
    harness_write(w->dir, "app.json", WORLD_BIGDL WORLD_ARGUMENTS);
}

void harness_own_leases(void)
{
    char space[32];
    (void)snprintf(space, sizeof space, "pt-test-%ld", (long)getpid());
    (void)setenv("PIPETUNE_LEASES", space, 1);
}

int world_open(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        return -1;
    w->program = harness_program("pipetune");
    w->dir = harness_dir();
    w->tree = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fill(w);
    assert_int_equal(chdir(w->dir), 0); /* so that whatever is created by mistake is seen */
    world_point_at(w, "BIGDL_HOME", "bigdl");
    world_point_at(w, "PIPETUNE_DATA", "data");
    (void)setenv("FAKE_EPOCH_MS", "10", 1), (void)setenv("FAKE_ITERATIONS", "2", 1),
        (void)setenv("FAKE_START_MS", "1", 1);
    harness_own_leases();
    (void)setenv("PIPETUNE_WORLD", w->dir, 1); /* marks all that is started from here */
    *state = w;
    return 0;
}

static bool holds(const char *file, pid_t pid, const char *bytes, size_t n)
{
    char path[64];
    AUTO_BUF struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    return io_read_file(&text, path, 1 << 20, NULL) == 0 && text.len && memmem(text.data, text.len, bytes, n);
}

/* Nobody else's processes carry its folder in their environment. */
size_t world_find(const char *dir, const char *word, pid_t *out, size_t most)
{
    AUTO_FREE char *mark = NULL;
    assert_true(asprintf(&mark, "PIPETUNE_WORLD=%s", dir) > 0);
    size_t n = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *d; n < most && (d = readdir(proc));) {
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && holds("environ", pid, mark, strlen(mark) + 1) &&
            holds("cmdline", pid, word, strlen(word)))
            out[n++] = pid;
    }
    (void)closedir(proc);
    return n;
}

size_t world_processes(const struct world *w, int sig)
{
    pid_t pids[256];
    size_t n = world_find(w->dir, "", pids, ARRAY_LEN(pids)), alive = 0;
    for (size_t i = 0; i < n; i++)
        alive += kill(pids[i], sig) == 0;
    return alive;
}

size_t world_trials(const struct world *w)
{
    pid_t pids[256];
    return world_find(w->dir, "spark-submit", pids, ARRAY_LEN(pids));
}

int world_close(void **state)
{
    struct world *w = *state;
    (void)world_processes(w, SIGKILL); /* what a failed test left */
    for (size_t i = 0; i < ARRAY_LEN(world_env); i++)
        (void)unsetenv(world_env[i]);
    (void)fchdir(w->tree);
    (void)close(w->tree);
    harness_remove(w->dir);
    free(w->program);
    free(w);
    return 0;
}

static void put_argv(struct strv *argv, const struct world *w, const char *const *words)
{
    strv_add(argv, w->program);
    for (; *words; words++)
        strv_add(argv, *words);
    assert_false(argv->failed);
}

struct harness_output world_run(const struct world *w, const char *const *words)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    put_argv(&argv, w, words);
    return harness_run(argv.v, HARNESS_MS);
}

pid_t world_start(const struct world *w, int out_fd, const char *const *words)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    put_argv(&argv, w, words);
    return harness_spawn(argv.v, out_fd < 0 ? null : out_fd, null);
}

bool harness_trial_runs(void *store)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    bool runs = sqlite3_open_v2(store, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                sqlite3_busy_timeout(db, HARNESS_MS) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "SELECT 1 FROM attempts WHERE state = 'running'", -1, &st, NULL) == SQLITE_OK &&
                sqlite3_step(st) == SQLITE_ROW;
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return runs;
}

void world_leave(const struct world *w, const char *const *words)
{
    char store[] = "pipetune.db";
    pid_t pid = world_start(w, -1, words);
    if (!harness_wait(harness_trial_runs, store, HARNESS_MS))
        fail_msg("no trial came to run");
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
}

char *harness_ask(const char *store, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    struct buf b = BUF_INIT;
    int rc = sqlite3_open_v2(store, &db, SQLITE_OPEN_READWRITE, NULL);
    (void)sqlite3_busy_timeout(db, HARNESS_MS);
    if (rc != SQLITE_OK || sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s: %s", store, sql, sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        buf_puts(&b, b.len ? " " : "");
        for (int i = 0; i < sqlite3_column_count(st); i++)
            buf_printf(&b, "%s%s", i ? "|" : "", (const char *)sqlite3_column_text(st, i));
    }
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return buf_take(&b);
}

void harness_expect_rows(const char *name, const char *store, const char *sql, const char *want)
{
    AUTO_FREE char *got = harness_ask(store, sql);
    if (strcmp(got, want) != 0)
        fail_msg("%s: %s: got '%s', want '%s'", name, sql, got, want);
}

/* --- a lab ------------------------------------------------------------------------------------------------------------- */

void harness_lab(const char *dir, const char *more)
{
    AUTO_BUF struct buf text = BUF_INIT;
    char home[4096];
    assert_non_null(getcwd(home, sizeof home));
    buf_printf(&text,
               "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",%s\n"
               "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": "
               "[\"--learning-rate\", \"{}\"],\n"
               "    \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\"], \"seed\": "
               "[\"--seed\", \"{}\"],\n"
               "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n",
               more);
    make_programs(dir);
    harness_write(dir, "app.py", "");
    harness_write(dir, "bigdl.json", buf_text(&text));
    harness_own_leases();
    (void)setenv("PIPETUNE_HOME", home, 1);
#if defined(__SANITIZE_ADDRESS__) /* its runtime would have to be loaded before faults.so */
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
}
