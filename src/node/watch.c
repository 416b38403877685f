#include "node/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"

enum { FD_PIPE_IN_CHILD = 3 };

/* Standard descriptors that lead nowhere, and the pipe: whoever waits for the end of ours (ssh does) must not wait for the
 * watchdog, and no pipe of an earlier watchdog may stay open in it. */
static void own_descriptors(int pipe)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fd != pipe)
            (void)dup2(null, fd); /* without /dev/null they stay: better than no watchdog */
    if (pipe != FD_PIPE_IN_CHILD)
        (void)dup2(pipe, FD_PIPE_IN_CHILD);
    (void)close_range(FD_PIPE_IN_CHILD + 1, ~0U, 0);
}

static void __attribute__((noreturn)) watch_over(const struct watch *w, int pipe)
{
    static const int ignored[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE };
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)setsid(); /* cannot fail: a forked child leads no group */
    own_descriptors(pipe);
    char byte;
    ssize_t n;
    do
        n = read(FD_PIPE_IN_CHILD, &byte, 1); /* nobody writes: it returns at the end */
    while (n > 0 || (n < 0 && errno == EINTR));
    w->give_back(w->table, w->ctx);
    _exit(0);
}

int watch_again(struct watch *w, struct err *e)
{
    int fds[2];
    if (w->pipe >= 0)
        (void)close(MOVE_FD(w->pipe));
    w->child = 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot start the watchdog");
    AUTO_CLOSE int from = fds[0], to = fds[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "cannot start the watchdog");
    if (pid == 0) {
        (void)close(MOVE_FD(to));
        watch_over(w, from);
    }
    w->child = pid;
    w->pipe = MOVE_FD(to);
    return 0;
}

int watch_open(struct watch *out, watch_give_back *give_back, const void *ctx, struct err *e)
{
    void *table = mmap(NULL, sizeof(struct watch_table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return err_sys(e, -errno, "cannot map the table of what is to be given back");
    *out = (struct watch){ .table = table, .pipe = -1, .give_back = give_back, .ctx = ctx };
    int rc = watch_again(out, e);
    if (rc < 0)
        watch_close(out);
    return rc;
}

void watch_close(struct watch *w)
{
    if (w->pipe >= 0)
        (void)close(MOVE_FD(w->pipe));
    if (w->table)
        (void)munmap(w->table, sizeof *w->table); /* the watchdog has its own mapping */
    w->table = NULL;
}

struct watch_mask *watch_free_mask(struct watch_table *t)
{
    int i = 0, n = t->n_masks;
    while (i < n && watch_used(&t->masks[i]))
        i++;
    if (i == WATCH_MASKS_MAX)
        return NULL;
    if (i == n)
        t->n_masks = n + 1;
    return &t->masks[i];
}

struct watch_limit *watch_free_limit(struct watch_table *t)
{
    int i = 0, n = t->n_limits;
    while (i < n && watch_used(&t->limits[i]))
        i++;
    if (i == WATCH_LIMITS_MAX)
        return NULL;
    if (i == n)
        t->n_limits = n + 1;
    return &t->limits[i];
}

struct watch_mask *watch_find_mask(struct watch_table *t, pid_t pid)
{
    for (int i = 0; i < t->n_masks; i++)
        if (watch_used(&t->masks[i]) && t->masks[i].pid == pid)
            return &t->masks[i];
    return NULL;
}
