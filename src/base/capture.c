#include "base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

extern char **environ;

enum { CAPTURE_MAX = 65536 };

/* What comes out of one descriptor. */
struct stream {
    int fd; /* -1: it is over */
    struct buf *out;
    size_t max;
    bool over; /* there was more */
};

/* A thread may have signals blocked: the program has them as any does. */
static int unblock(posix_spawnattr_t *attr)
{
    sigset_t none;
    (void)sigemptyset(&none);
    int rc = posix_spawnattr_setsigmask(attr, &none);
    return rc == 0 ? posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK) : rc;
}

static int spawn_with(pid_t *pid, char *const argv[], const posix_spawn_file_actions_t *fa)
{
    posix_spawnattr_t attr;
    if (posix_spawnattr_init(&attr) != 0)
        return ENOMEM;
    int rc = unblock(&attr);
    if (rc == 0)
        rc = posix_spawnp(pid, argv[0], fa, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    return rc;
}

static int spawn_into(pid_t *pid, char *const argv[], int out_fd, int said_fd)
{
    posix_spawn_file_actions_t fa;
    if (posix_spawn_file_actions_init(&fa) != 0)
        return -ENOMEM;
    int rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, out_fd, 1);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, said_fd, 2);
    if (rc == 0)
        rc = spawn_with(pid, argv, &fa);
    (void)posix_spawn_file_actions_destroy(&fa);
    return -rc;
}

/* What is beyond the limit is read and dropped. */
static int take(struct stream *s)
{
    char chunk[16384];
    ssize_t n = read(s->fd, chunk, sizeof chunk);
    if (n < 0)
        return -errno;
    if (n == 0)
        s->fd = -1;
    if (s->out->len + (size_t)n <= s->max)
        buf_put(s->out, chunk, (size_t)n);
    else
        s->over = true;
    return 0;
}

/* Reads until the end of both or the deadline. */
static int drain(struct stream s[2], int64_t deadline)
{
    int rc = 0;
    while (rc == 0 && (s[0].fd >= 0 || s[1].fd >= 0)) {
        int64_t left = deadline - clock_ms();
        struct pollfd p[2] = { { .fd = s[0].fd, .events = POLLIN }, { .fd = s[1].fd, .events = POLLIN } };
        int ready = left > 0 ? poll(p, 2, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        for (size_t i = 0; rc == 0 && i < 2; i++)
            if (p[i].revents)
                rc = take(&s[i]);
    }
    return rc;
}

/* `fds` is one pipe or two; the streams' descriptors are their ends for reading. */
static int run(char *const argv[], struct stream s[2], const int *write_ends, size_t n_ends, int timeout_ms,
               struct err *e)
{
    int64_t deadline = clock_ms() + timeout_ms;
    pid_t pid;
    int rc = spawn_into(&pid, argv, write_ends[0], write_ends[n_ends - 1]);
    for (size_t i = 0; i < n_ends; i++)
        (void)close(write_ends[i]); /* so that the end of the child is the end of the file */
    if (rc < 0)
        return err_sys(e, rc, "cannot run '%s'", argv[0]);
    rc = drain(s, deadline);
    if (rc < 0)
        (void)kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (rc < 0)
        return err_sys(e, rc, "'%s' did not answer", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int capture(struct buf *out, char *const argv[], int timeout_ms, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot run '%s'", argv[0]);
    AUTO_CLOSE int in = fds[0];
    struct stream s[2] = { { in, out, CAPTURE_MAX, false }, { .fd = -1 } };
    return run(argv, s, &fds[1], 1, timeout_ms, e);
}

int capture_apart(struct buf *out, struct buf *said, char *const argv[], size_t max, int timeout_ms, struct err *e)
{
    int fds[2], more[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot run '%s'", argv[0]);
    AUTO_CLOSE int in = fds[0];
    AUTO_CLOSE int write_end = fds[1];
    if (pipe2(more, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot run '%s'", argv[0]);
    AUTO_CLOSE int said_in = more[0];
    struct stream s[2] = { { in, out, max, false }, { said_in, said, CAPTURE_MAX, false } };
    int ends[2] = { MOVE_FD(write_end), more[1] };
    int rc = run(argv, s, ends, 2, timeout_ms, e);
    return rc >= 0 && s[0].over ? err_set(e, -EFBIG, "'%s' says more than %zu bytes", argv[0], max) : rc;
}
