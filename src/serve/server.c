#include "serve/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "live/background.h"
#include "live/study.h"
#include "serve/queue.h"

enum { TICK_MS = 100, BEGIN_MS = 10000, BEGIN_LOOK_US = 10000 };

struct server {
    const struct server_options *o;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t sig_term, sig_int;
    struct queue *queue;
    int asked; /* how often it was told to end */
    int rc;
    struct err *e;
};

/* "pipetune.d/queue-STORE.SUFFIX" beside the store: several stores may stand in one folder. NULL: memory. */
static char *beside(const char *store, const char *suffix)
{
    AUTO_FREE char *dir = io_dirname(store);
    AUTO_FREE char *all = dir ? io_join(dir, "pipetune.d") : NULL;
    const char *slash = strrchr(store, '/');
    char name[300];
    (void)snprintf(name, sizeof name, "queue-%.250s.%s", slash ? slash + 1 : store, suffix);
    return all ? io_join(all, name) : NULL;
}

pid_t server_of(const char *store)
{
    AUTO_FREE char *path = beside(store, "lock");
    return path ? study_lock_holder(path) : 0;
}

static int make_folder(const char *path, struct err *e)
{
    AUTO_FREE char *dir = io_dirname(path);
    return dir ? ours_dir(dir, e) : err_sys(e, -ENOMEM, "'%s'", path);
}

static int lock(int *out_fd, const char *store, struct err *e)
{
    AUTO_FREE char *path = beside(store, "lock");
    pid_t holder = 0;
    int rc = path ? make_folder(path, e) : err_sys(e, -ENOMEM, "'%s'", store);
    if (rc == 0)
        rc = study_lock_file(out_fd, path, &holder, e);
    return rc == -EBUSY
               ? err_set(e, rc, "the queue of '%s' is worked by process %ld already: 'pipetune submit' adds to it",
                         store, (long)holder)
               : rc;
}

/* --- the loop --- */

static void fail(struct server *s, int rc)
{
    if (rc < 0)
        s->rc = rc;
    if (s->rc < 0)
        uv_stop(&s->loop);
}

static void on_tick(uv_timer_t *t)
{
    struct server *s = t->data;
    fail(s, queue_tick(s->queue, s->e));
    bool over = s->asked ? !queue_runs(s->queue) : s->o->once && queue_is_empty(s->queue);
    if (over || s->asked > 2)
        uv_stop(&s->loop);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct server *s = h->data;
    (void)signum;
    static const char *const words[] = { "starts nothing more, and waits for what runs; once more to leave it running",
                                         "leaves what runs", "ends at once" };
    s->asked++;
    s->o->say(words[s->asked < 3 ? s->asked - 1 : 2]);
    fail(s, s->asked == 1 ? queue_drain(s->queue, s->e) : s->asked == 2 ? queue_leave(s->queue, s->e) : 0);
}

static int watch(struct server *s, uv_signal_t *h, int signum)
{
    int rc = uv_signal_init(&s->loop, h);
    h->data = s;
    return rc < 0 ? rc : uv_signal_start(h, on_signal, signum);
}

sigset_t server_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        (void)sigaddset(&set, numbers[i]);
    return set;
}

static int set_up(struct server *s)
{
    int rc = watch(s, &s->sig_term, SIGTERM);
    if (rc == 0)
        rc = watch(s, &s->sig_int, SIGINT);
    if (rc == 0)
        rc = uv_timer_init(&s->loop, &s->tick);
    s->tick.data = s;
    if (rc == 0)
        rc = uv_timer_start(&s->tick, on_tick, 0, TICK_MS);
    return rc < 0 ? err_set(s->e, rc, "the event loop cannot start: %s", uv_strerror(rc)) : 0;
}

static void close_handle(uv_handle_t *h, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static int open_all(struct server *s, int *out_lock_fd)
{
    int rc = set_up(s);
    if (rc == 0)
        rc = lock(out_lock_fd, s->o->store, s->e);
    return rc == 0 ? queue_open(&s->queue, s->o->store, s->o->cpus, s->o->say, s->e) : rc;
}

/* Signals come while the loop hears them, and wait at any other time: none is lost, and none ends the program in between. */
static void work(struct server *s)
{
    sigset_t set = server_signals();
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* cannot fail with these */
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);     /* until uv_stop() */
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static int run_once(const struct server_options *o, int *out_asked, struct err *e)
{
    struct server s = { .o = o, .e = e };
    AUTO_CLOSE int lock_fd = -1;
    int rc = uv_loop_init(&s.loop);
    if (rc < 0)
        return err_set(e, rc, "the event loop cannot start: %s", uv_strerror(rc));
    rc = open_all(&s, &lock_fd);
    if (rc == 0)
        work(&s);
    uv_walk(&s.loop, close_handle, NULL);
    while (uv_run(&s.loop, UV_RUN_DEFAULT) != 0)
        ;
    (void)uv_loop_close(&s.loop);
    queue_close(s.queue);
    *out_asked = s.asked;
    return rc < 0 ? rc : s.rc;
}

/* What was submitted while it ended is found by who submitted it, or by us: its row is committed before the lock is looked at, and we look
 * again when we have let it go. */
static int is_left(const char *store, bool *out, struct err *e)
{
    struct queue *q = NULL;
    int rc = queue_open(&q, store, 1, NULL, e);
    if (rc == 0)
        rc = queue_look(q, e);
    *out = rc == 0 && !queue_is_empty(q);
    queue_close(q);
    return rc;
}

int server_run(const struct server_options *o, struct err *e)
{
    bool left = true;
    int asked = 0, rc = 0;
    for (bool first = true; rc == 0 && left && asked == 0; first = false) {
        rc = run_once(o, &asked, e);
        if (rc == -EBUSY && !first)
            return 0; /* who submitted it has started another */
        if (rc == 0)
            rc = is_left(o->store, &left, e);
    }
    return rc;
}

/* --- in the background --- */

static json_t *own_words(const char *store)
{
    return json_pack("[s, s, s, s, s, s]", "serve", "--once", "--listen", "none", "--store", store);
}

/* Another one may have been quicker. */
static int await(const struct background *b, const char *store, const char *log, struct err *e)
{
    for (int64_t since = clock_ms(); clock_ms() - since < BEGIN_MS; (void)usleep(BEGIN_LOOK_US)) {
        int status;
        if (server_of(store) != 0)
            return 0;
        if (waitpid(b->pid, &status, WNOHANG) != b->pid)
            continue;
        if (server_of(store) != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) /* it had little to do */
            return 0;
        AUTO_FREE char *last = background_last(log);
        return err_set(e, -EIO, "what was submitted is in the queue, but no server works it: %s",
                       last ? last : "it ended at once");
    }
    return err_set(e, -ETIMEDOUT, "what was submitted is in the queue, but no server works it yet: see '%s'", log);
}

int server_wanted(const char *store, struct err *e)
{
    struct background b = { .go_fd = -1 };
    if (server_of(store) != 0)
        return 0;
    AUTO_FREE char *log = beside(store, "log");
    AUTO_JSON json_t *words = own_words(store);
    if (!log || !words)
        return err_sys(e, -ENOMEM, "queue");
    int rc = make_folder(log, e);
    if (rc == 0)
        rc = background_start(&b, words, "/", NULL, log, e);
    if (rc == 0)
        rc = background_go(&b);
    return rc < 0 ? rc : await(&b, store, log, e);
}
