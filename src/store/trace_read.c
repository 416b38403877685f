/* Reading in a child process; what is in the file is trace_load.c's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "store/trace.h"
#include "store/trace_wire.h"

/* Seconds of CPU: some, and one more for each so many bytes of the file. HDF5 can run in circles. */
enum { GUARD_CPU_S = 5, GUARD_BYTES_PER_S = 1 << 20, GUARD_MIB = 4096, NO_ROOM = 3 /* the child's exit code */ };

/* What HDF5 would say of these is less clear, and a FIFO would hold us for ever. */
static int check_file(const char *path, off_t *out_size, struct err *e)
{
    struct stat st;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot read '%s'", path);
    if (S_ISDIR(st.st_mode))
        return err_sys(e, -EISDIR, "cannot read '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, -EPROTO, "'%s' is no HDF5 file: it is no regular file", path);
    if (st.st_size > TRACE_FILE_MAX)
        return err_set(e, -EPROTO, "'%s' is too large for a trace: %jd bytes", path, (intmax_t)st.st_size);
    *out_size = st.st_size;
    return 0;
}

/* The child's limits: what it has now and GUARD_MIB more. Sanitizers have terabytes to begin with. */
static void limit_child(off_t size)
{
    char text[64] = "";
    AUTO_CLOSE int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    rlim_t pages = n > 0 ? strtoull(text, NULL, 10) : 0;
    rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)GUARD_MIB * 1024 * 1024;
    /* Limits that cannot be set are those of somebody stricter. */
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){ bytes, bytes });
    rlim_t cpu_s = GUARD_CPU_S + (rlim_t)(size / GUARD_BYTES_PER_S);
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){ cpu_s, cpu_s });
    (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){ bytes, bytes }); /* of its result */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

/* libc has its own words for a broken heap, and prints them. */
static void silence_stderr(void)
{
    AUTO_CLOSE int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)dup2(fd, STDERR_FILENO); /* else its words are seen */
}

/* Whoever started us may handle what shall end the child. */
static void reset_signals(void)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU };
    for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
        (void)signal(deadly[i], SIG_DFL);
}

static _Noreturn void read_in_child(int fd, const char *path, off_t size)
{
    limit_child(size);
    reset_signals();
    silence_stderr();
    struct trace t = { 0 };
    struct err e = { 0 };
    int rc = trace_read_here(&t, path, &e);
    _exit(trace_wire_put(fd, rc, &t, &e) == 0 ? 0 : NO_ROOM);
}

/* 0: the child came to an end, and what it found lies in fd. */
static int run_child(int fd, const char *path, off_t size, struct err *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "cannot start the process that reads '%s'", path);
    if (pid == 0)
        read_in_child(fd, path, size);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, -errno, "cannot wait for the process that reads '%s'", path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_ROOM)
        return err_set(e, -ENOMEM, "cannot read '%s': out of memory", path);
    bool endless = WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
    return err_set(e, -EPROTO, "'%s' is no trace that can be read: it is damaged, HDF5 %s", path,
                   endless ? "does not come to an end" : "crashes on it");
}

static int take_result(struct trace *out, int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot read '%s'", path);
    if (st.st_size == 0)
        return trace_wire_get(out, "", 0, path, e);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return err_sys(e, -errno, "cannot read '%s'", path);
    int rc = trace_wire_get(out, bytes, (size_t)st.st_size, path, e);
    (void)munmap(bytes, (size_t)st.st_size); /* ours */
    return rc;
}

int trace_read(struct trace *out, const char *path, struct err *e)
{
    off_t size = 0;
    int rc = check_file(path, &size, e);
    if (rc < 0)
        return rc;
    AUTO_CLOSE int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(e, -errno, "cannot read '%s'", path);
    rc = run_child(fd, path, size, e);
    return rc < 0 ? rc : take_result(out, fd, path, e);
}
