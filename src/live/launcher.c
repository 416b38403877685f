#include "live/launcher.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/session.h"
#include "base/clock.h"
#include "base/own.h"

enum { LINE_MAX_BYTES = 1024 };

struct launcher {
    const struct launcher_ops *ops; /* NULL once freed: what still arrives is nobody's */
    void *ctx;
    uint64_t id;
    uv_process_t process;
    uv_pipe_t control;
    uv_poll_t poll; /* of an adopted one's pidfd */
    bool has_process, has_control, has_poll;
    bool went; /* the go byte was sent, or it was adopted */
    int pidfd;
    int handles; /* not closed yet */
    char line[LINE_MAX_BYTES];
    size_t len;
};

static void on_closed(uv_handle_t *h)
{
    struct launcher *l = h->data;
    if (--l->handles > 0)
        return;
    if (l->pidfd >= 0)
        (void)close(l->pidfd);
    free(l);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

void launcher_free(struct launcher *l)
{
    if (!l)
        return;
    l->ops = NULL;
    if (l->has_control)
        close_handle((uv_handle_t *)&l->control);
    if (l->has_process)
        close_handle((uv_handle_t *)&l->process);
    if (l->has_poll)
        close_handle((uv_handle_t *)&l->poll);
}

static void refuse(struct launcher *l, bool busy, const char *why)
{
    const struct launcher_ops *ops = l->ops;
    if (ops)
        ops->refused(l->ctx, l->id, busy, why);
}

static void gone(struct launcher *l)
{
    const struct launcher_ops *ops = l->ops;
    if (ops)
        ops->gone(l->ctx, l->id);
}

static void on_process_exit(uv_process_t *p, int64_t code, int sig)
{
    struct launcher *l = p->data;
    if (l->went) {
        gone(l);
        return;
    }
    char why[96];
    (void)snprintf(why, sizeof why, "pipetune-node ended before the start, %s %" PRId64,
                   sig ? "by signal" : "exit code", sig ? (int64_t)sig : code);
    refuse(l, false, why);
}

static void on_pidfd(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    (void)uv_poll_stop(p); /* it stays readable: once is enough */
    gone(p->data);
}

/* "ready BOOT PID START HEARD_SIZE [port=N] [WHY]", "busy" or "error TEXT". */
static void on_line(struct launcher *l)
{
    struct launcher_ready r = { .port = 0 };
    int pid, n = 0, port = 0;
    if (sscanf(l->line, "ready %36s %d %" SCNu64 " %" SCNu64 "%n", r.boot_id, &pid, &r.start_ticks, &r.heard_size,
               &n) == 4) {
        r.pid = pid;
        if (sscanf(l->line + n, " port=%d%n", &r.port, &port) == 1)
            n += port;
        (void)snprintf(r.unlimited, sizeof r.unlimited, "%s", l->line + n + (l->line[n] == ' '));
        if (l->ops)
            l->ops->ready(l->ctx, l->id, &r);
    } else if (strcmp(l->line, "busy") == 0) {
        refuse(l, true, "another process still holds the trial's folder");
    } else {
        refuse(l, false, strncmp(l->line, "error ", 6) == 0 ? l->line + 6 : "pipetune-node speaks another protocol");
    }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct launcher *l = h->data;
    (void)suggested;
    *buf = uv_buf_init(l->line + l->len, (unsigned)(sizeof l->line - 1 - l->len));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct launcher *l = s->data;
    (void)buf;
    if (n <= 0) { /* its end is told by on_process_exit */
        if (n < 0)
            (void)uv_read_stop(s);
        return;
    }
    l->len += (size_t)n;
    l->line[l->len] = '\0';
    char *end = strchr(l->line, '\n');
    if (!end && l->len + 1 < sizeof l->line)
        return;
    if (end)
        *end = '\0';
    (void)uv_read_stop(s);
    on_line(l);
}

static struct launcher *make(const struct launcher_ops *ops, void *ctx, uint64_t id)
{
    struct launcher *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct launcher){ .ops = ops, .ctx = ctx, .id = id, .pidfd = -1 };
    l->process.data = l->control.data = l->poll.data = l;
    return l;
}

void launcher_put_step(struct strv *argv, const struct strv *step)
{
    strv_addf(argv, "%zu", step->n);
    for (size_t i = 0; i < step->n; i++)
        strv_add(argv, step->v[i]);
    argv->failed |= step->failed;
}

void launcher_command_done(struct launcher_command *c)
{
    strv_done(&c->argv);
    strv_done(&c->env);
}

static void put_words(struct strv *argv, const struct launcher_words *w)
{
    strv_add(argv, w->node);
    strv_add(argv, "exec");
    strv_add(argv, "--dir");
    strv_add(argv, w->dir);
    strv_add(argv, "--attempt");
    strv_addf(argv, "%d", w->attempt);
    strv_add(argv, "--launch");
    strv_add(argv, w->tag);
    if (!w->unasked) {
        strv_add(argv, "--control");
        strv_add(argv, "3");
    }
    strv_add(argv, "--grace");
    strv_addf(argv, "%d", LAUNCHER_GRACE_S);
    if (w->cpus) {
        strv_add(argv, "--cpus");
        strv_add(argv, w->cpus);
    }
    if (w->memory > 0) {
        strv_add(argv, "--memory");
        strv_addf(argv, "%" PRId64, w->memory);
    }
    strv_add(argv, "--log-cap");
    strv_addf(argv, "%" PRId64, w->log_mb << 20);
    if (w->runs) {
        strv_add(argv, "--runs");
        strv_add(argv, w->runs);
        strv_add(argv, "--mark");
        strv_add(argv, SESSION_MARK);
    }
    if (w->gang > 0) {
        strv_add(argv, "--gang");
        strv_addf(argv, "%d", w->gang);
    }
    if (w->tell) {
        strv_add(argv, "--tell");
        strv_add(argv, w->tell);
        strv_add(argv, "--answer");
        strv_add(argv, w->answer);
    }
    bool step = false;
    const char *text = NULL;
    for (size_t i = 0; w->app && (text = w->app->kind->needle(w->app, i, &step)); i++) {
        strv_add(argv, step ? "--step" : "--keep");
        strv_add(argv, text);
    }
}

void launcher_put(struct launcher_command *c, const struct launcher_words *w, const struct app_steps *steps)
{
    put_words(&c->argv, w);
    if (steps->folder) {
        strv_add(&c->argv, "--folder");
        strv_add(&c->argv, steps->folder);
    }
    strv_add(&c->argv, "--");
    for (size_t i = 0; i < steps->n; i++)
        launcher_put_step(&c->argv, &steps->argv[i]);
    for (size_t i = 0; i < steps->env.n; i++)
        strv_add(&c->env, steps->env.v[i]);
    c->env.failed |= steps->env.failed;
}

/* Is this variable of ours given another value? */
static bool is_given(const struct strv *env, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], variable, len) == 0)
            return true;
    return false;
}

/* Our environment with these variables; pointers into both. NULL: memory. */
static char **whole_environment(const struct strv *env)
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **all = calloc(n + env->n + 1, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (!is_given(env, environ[i]))
            all[k++] = environ[i];
    for (size_t i = 0; all && i < env->n; i++)
        all[k++] = env->v[i];
    return all;
}

char *launcher_new_tag(int trial, int attempt)
{
    uint32_t r[2] = { 0 };
    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
        r[0] = (uint32_t)getpid(), r[1] = (uint32_t)clock_ms();
    char *tag = NULL;
    return asprintf(&tag, "pt-%08x%08x-%d-%d", r[0], r[1], trial, attempt) < 0 ? NULL : tag;
}

int launcher_start(struct launcher **out, uv_loop_t *loop, const struct launcher_ops *ops, void *ctx, uint64_t id,
                   const struct launcher_command *c, struct err *e)
{
    AUTO_FREE char **env = whole_environment(&c->env);
    struct launcher *l = env ? make(ops, ctx, id) : NULL;
    int rc = l ? uv_pipe_init(loop, &l->control, 0) : UV_ENOMEM;
    if (rc < 0) {
        free(l);
        return err_set(e, rc, "cannot start '%s': %s", c->argv.v[0], uv_strerror(rc));
    }
    l->has_control = true;
    uv_stdio_container_t stdio[4] = {
        { .flags = UV_IGNORE },
        { .flags = UV_IGNORE },
        { .flags = UV_IGNORE },
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&l->control },
    };
    uv_process_options_t options = { .exit_cb = on_process_exit,
                                     .file = c->argv.v[0],
                                     .args = c->argv.v,
                                     .env = env,
                                     .flags = UV_PROCESS_DETACHED,
                                     .stdio_count = 4,
                                     .stdio = stdio };
    rc = uv_spawn(loop, &l->process, &options);
    l->has_process = true; /* the handle is the loop's even when the start failed */
    l->handles = 2;
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&l->control, on_alloc, on_read);
    if (rc < 0) {
        launcher_free(l);
        return err_set(e, rc, "cannot start '%s': %s", c->argv.v[0], uv_strerror(rc));
    }
    *out = l;
    return 0;
}

bool launcher_is(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag)
{
    return pid > 1 && proc_is(pid, start_ticks, boot_id) && proc_has_words(pid, "--launch", tag);
}

int launcher_adopt(struct launcher **out, uv_loop_t *loop, const struct launcher_ops *ops, void *ctx, uint64_t id,
                   pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag, struct err *e)
{
    struct launcher *l = make(ops, ctx, id);
    if (!l)
        return err_sys(e, -ENOMEM, "cannot watch process %ld", (long)pid);
    l->went = true;
    l->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int rc = l->pidfd < 0 ? -errno : 0;
    /* Asked after the pidfd is open, so that it cannot stand for a later process of the same number. */
    if (rc == 0 && !launcher_is(pid, start_ticks, boot_id, tag))
        rc = -ESRCH;
    if (rc == 0)
        rc = uv_poll_init(loop, &l->poll, l->pidfd);
    if (rc < 0) {
        if (l->pidfd >= 0)
            (void)close(l->pidfd);
        free(l);
        return err_sys(e, rc, "cannot watch process %ld", (long)pid);
    }
    l->has_poll = true;
    l->handles = 1;
    rc = uv_poll_start(&l->poll, UV_READABLE, on_pidfd);
    if (rc < 0) {
        launcher_free(l);
        return err_set(e, rc, "cannot watch process %ld: %s", (long)pid, uv_strerror(rc));
    }
    *out = l;
    return 0;
}

void launcher_signal(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag, bool hard)
{
    if (!launcher_is(pid, start_ticks, boot_id, tag))
        return;
    if (hard)
        (void)proc_kill_session(pid, SIGKILL);  /* children in groups of their own too */
    (void)kill(-pid, hard ? SIGKILL : SIGTERM); /* ESRCH: it has just ended, and that will be told */
}

void launcher_say_stop(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag)
{
    if (launcher_is(pid, start_ticks, boot_id, tag))
        (void)kill(pid, SIGUSR1); /* ESRCH: it has just ended */
}

void launcher_kill_tagged(const char *tag)
{
    pid_t *pids = NULL;
    size_t n = 0;
    if (proc_tagged(tag, &pids, &n) == 0)
        for (size_t i = 0; i < n; i++)
            (void)kill(pids[i], SIGKILL);
    free(pids);
}

int launcher_go(struct launcher *l, const char *ports)
{
    AUTO_BUF struct buf word = BUF_INIT;
    buf_printf(&word, "g%s%s", ports ? ports : "", ports ? "\n" : "");
    uv_buf_t go = uv_buf_init(word.data, word.failed ? 0 : (unsigned)word.len);
    int rc = uv_try_write((uv_stream_t *)&l->control, &go, 1);
    l->went = true; /* the attempt is stored as running by now: its end must be told as one */
    if (rc > 0 && (size_t)rc == word.len)
        return 0;
    close_handle((uv_handle_t *)&l->control); /* where the byte did not arrive, end of file ends the launcher */
    return rc < 0 ? rc : -EPIPE;
}
