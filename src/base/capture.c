#include "base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

extern char **environ;

enum { CAPTURE_MAX = 65536 };

static int spawn_into(pid_t *pid, char *const argv[], int out_fd)
{
    posix_spawn_file_actions_t fa;
    if (posix_spawn_file_actions_init(&fa) != 0)
        return -ENOMEM;
    int rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, out_fd, 1);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, out_fd, 2);
    if (rc == 0)
        rc = posix_spawnp(pid, argv[0], &fa, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&fa);
    return -rc;
}

/* Reads until the end or the deadline; what is beyond the limit is read and dropped. */
static int drain(struct buf *out, int fd, int64_t deadline)
{
    char chunk[4096];
    for (;;) {
        int64_t left = deadline - clock_ms();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (out->len + (size_t)n <= CAPTURE_MAX)
            buf_put(out, chunk, (size_t)n);
    }
}

int capture(struct buf *out, char *const argv[], int timeout_ms, struct err *e)
{
    int64_t deadline = clock_ms() + timeout_ms;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot run '%s'", argv[0]);
    AUTO_CLOSE int in = fds[0];
    AUTO_CLOSE int write_end = fds[1];
    pid_t pid;
    int rc = spawn_into(&pid, argv, write_end);
    if (rc < 0)
        return err_sys(e, rc, "cannot run '%s'", argv[0]);
    (void)close(MOVE_FD(write_end)); /* so that the end of the child is the end of the file */
    rc = drain(out, in, deadline);
    if (rc < 0)
        (void)kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (rc < 0)
        return err_sys(e, rc, "'%s' did not answer", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
