#include "live/driver_state.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_NO_LOOP = 3 }; /* the program's exit code for a lacking environment */

/* libuv calls abort() where it finds no memory to grow its tables, and while it starts no descriptors either. That ends the
 * driver like a kill -9, which loses nothing; these only see to it that the end is told. */
static void __attribute__((noreturn)) end_at_once(const char *line)
{
    (void)!write(STDERR_FILENO, line, strlen(line)); /* stdio would ask for memory */
    _exit(EXIT_NO_LOOP);
}

static void *must_have(void *p)
{
    if (!p)
        end_at_once("pipetune: out of memory: what runs goes on and can be found again by the same command\n");
    return p;
}

static void *loop_malloc(size_t n)
{
    return must_have(malloc(n));
}

static void *loop_realloc(void *p, size_t n)
{
    return must_have(realloc(p, n));
}

static void *loop_calloc(size_t n, size_t size)
{
    return must_have(calloc(n, size));
}

static void on_abort(int signum)
{
    (void)signum;
    end_at_once("pipetune: the event loop cannot start: out of memory or descriptors, see ulimit -n\n");
}

int driver_open_loop(struct driver *d)
{
    struct sigaction ours = { .sa_handler = on_abort }, before;
    (void)uv_replace_allocator(loop_malloc, loop_realloc, loop_calloc, free);
    (void)sigaction(SIGABRT, &ours, &before); /* it cannot fail with these */
    int rc = uv_loop_init(&d->loop);
    (void)sigaction(SIGABRT, &before, NULL);
    return rc < 0 ? err_set(d->e, rc, "the event loop cannot start: %s", uv_strerror(rc)) : 0;
}
