/* HDF5 files of any bytes, and (with a W in front) what comes back from the process that read one.
 *
 * HDF5 itself crashes on damaged files, so this looks at whose fault a crash is: reading happens in a child with limits, and
 * only a report that has our code before HDF5's ends the run. Then the same file goes the way that users take, which must
 * survive whatever happens. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "store/trace.h"
#include "store/trace_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHILD_CPU_S = 1, CHILD_MIB = 1024, REPORT_MAX = 1 << 16 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_trace(const struct trace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_run *r = &t->runs[i];
        check(r->model && r->dataset && r->system && r->hyper && r->status <= RUN_RUNNING);
        for (size_t k = 0; k < r->n_windows; k++)
            check(r->windows[k].setting != NULL);
    }
    const struct trace_tuner *tuner = &t->tuner;
    check(tuner->policy ? tuner->study != NULL : tuner->log.n == 0 && tuner->n_decisions == 0);
    for (size_t i = 0; i < tuner->log.n; i++)
        check(!strchr(tuner->log.v[i], '\n'));
    for (size_t i = 0; i < tuner->n_decisions; i++)
        check(tuner->decisions[i].kind && tuner->decisions[i].setting && tuner->decisions[i].reason);
    struct timeline timeline = { 0 };
    struct err e = { 0 };
    check(trace_to_timeline(&timeline, t, &e) >= 0 || e.text[0]);
    timeline_done(&timeline);
}

static void check_wire(const uint8_t *data, size_t size)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    if (trace_wire_get(&t, data, size, "wire", &e) == 0)
        check_trace(&t);
    else
        check(e.text[0] && !t.runs);
    trace_done(&t);
}

/* Sanitizers have terabytes to begin with. */
static void limit_child(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    (void)close(fd);
    rlim_t bytes = strtoull(text, NULL, 10) * 4096 + (rlim_t)CHILD_MIB * 1024 * 1024;
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){ bytes, bytes });
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){ CHILD_CPU_S, CHILD_CPU_S + 1 });
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

static void read_in_child(const char *path, int report)
{
    (void)dup2(report, STDERR_FILENO);
    limit_child();
    (void)signal(SIGXCPU, SIG_DFL); /* libFuzzer has it */
    struct trace t = { 0 };
    struct err e = { 0 };
    int rc = trace_read_here(&t, path, &e);
    check(rc == 0 || (e.text[0] && !t.runs));
    if (rc == 0)
        check_trace(&t);
    trace_done(&t);
    _exit(0);
}

/* Does a frame of ours come before any of HDF5's in the report's first stack? */
static bool is_ours(char *report)
{
    char *save = NULL;
    for (char *line = strtok_r(report, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strstr(line, "libhdf5"))
            return false;
        if (strstr(line, "src/store/") || strstr(line, "tests/fuzz/fuzz_trace.c") || strstr(line, "runtime error"))
            return true;
    }
    return false;
}

/* False: it ran in circles, and users would have to wait longer than we do. */
static bool check_child(const char *path)
{
    int report = memfd_create("report", MFD_CLOEXEC), status = 0;
    check(report >= 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        read_in_child(path, report);
    while (waitpid(pid, &status, 0) < 0) /* libFuzzer's alarm interrupts it */
        ;
    if (status != 0) {
        static char text[REPORT_MAX];
        ssize_t n = pread(report, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        if (is_ours(text)) {
            fprintf(stderr, "%s\n", text);
            abort();
        }
    }
    (void)close(report);
    return !WIFSIGNALED(status) || WTERMSIG(status) != SIGXCPU;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 'W') {
        check_wire(data + 1, size - 1);
        return 0;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/dev/shm/pipetune-fuzz-%ld.h5", (long)getpid());
    struct err e = { 0 };
    struct trace t = { 0 };
    check(io_write_atomic(path, data, size, 0600, &e) == 0);
    if (check_child(path)) {
        if (trace_read(&t, path, &e) == 0)
            check_trace(&t);
        else
            check(e.text[0] && !t.runs);
    }
    trace_done(&t);
    (void)unlink(path);
    return 0;
}
