#include "tests/integration/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
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
