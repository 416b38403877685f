#include "live/node_link.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "live/node_words.h"

enum {
    LAST_WORDS_MS =
        500, /* what an ended helper wrote is there by then; a pipe that others hold open is not waited for */
    TERM_MS = 3000,
    KILL_MS = 5000,
    DRAIN_MAX = 1 << 20, /* bytes that are read of a closed link, so that it can say its last words and end */
    STDERR_LINE_MAX = 512,
};

struct node_link {
    const struct node_link_ops *ops; /* NULL once nothing more is to be told */
    void *ctx;
    uv_process_t process;
    uv_pipe_t in, out, err; /* as the helper names them */
    uv_timer_t timer;       /* last words, then TERM and KILL */
    uv_shutdown_t shutdown;
    int handles; /* not closed yet */
    bool exited, out_ended, err_ended, closing, termed;
    int64_t exit_code;
    int exit_signal;
    size_t drained;
    size_t len, err_len;
    char line[NODE_LINE_MAX + 1];
    char err_line[STDERR_LINE_MAX]; /* the one that is being written */
    char err_last[STDERR_LINE_MAX]; /* the last whole one that said something */
    char err_chunk[STDERR_LINE_MAX];
};

struct sending {
    uv_write_t req;
    char text[];
};

static void on_closed(uv_handle_t *h)
{
    struct node_link *l = h->data;
    if (--l->handles == 0)
        free(l);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

static void close_all(struct node_link *l)
{
    close_handle((uv_handle_t *)&l->process);
    close_handle((uv_handle_t *)&l->in);
    close_handle((uv_handle_t *)&l->out);
    close_handle((uv_handle_t *)&l->err);
    close_handle((uv_handle_t *)&l->timer);
}

static void tell_lost(struct node_link *l, const char *why)
{
    const struct node_link_ops *ops = l->ops;
    l->ops = NULL;
    if (ops)
        ops->lost(l->ctx, why);
}

/* "it ended with exit code 255: ssh: connect to host w1 port 22: Connection refused" */
static void tell_end(struct node_link *l)
{
    char how[64], why[sizeof how + STDERR_LINE_MAX + 2];
    if (!l->exited)
        (void)snprintf(how, sizeof how, "it closed its output");
    else if (l->exit_signal)
        (void)snprintf(how, sizeof how, "it was ended by signal %d", l->exit_signal);
    else
        (void)snprintf(how, sizeof how, "it ended with exit code %" PRId64, l->exit_code);
    (void)snprintf(why, sizeof why, "%s%s%s", how, l->err_last[0] ? ": " : "", l->err_last);
    tell_lost(l, why);
}

static void on_last_words(uv_timer_t *t)
{
    tell_end(t->data);
}

/* The exit and the ends of both pipes come in any order, and each may hold the reason. */
static void see_end(struct node_link *l)
{
    if (!l->ops)
        return;
    if (l->exited && l->out_ended && l->err_ended)
        tell_end(l);
    else if (!uv_is_active((uv_handle_t *)&l->timer))
        (void)uv_timer_start(&l->timer, on_last_words, LAST_WORDS_MS, 0); /* fails only without a callback */
}

static void on_exit_process(uv_process_t *p, int64_t code, int sig)
{
    struct node_link *l = p->data;
    l->exited = true;
    l->exit_code = code;
    l->exit_signal = sig;
    if (l->closing)
        close_all(l);
    else
        see_end(l);
}

/* --- its stderr: only the last line is kept ------------------------------------------------------------------------- */

static void err_line_ends(struct node_link *l)
{
    while (l->err_len > 0 && strchr(" \t\r", l->err_line[l->err_len - 1]))
        l->err_len--;
    if (l->err_len > 0)
        (void)node_words_plain(l->err_last, sizeof l->err_last, l->err_line, l->err_len);
    l->err_len = 0;
}

static void on_err_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct node_link *l = h->data;
    (void)suggested;
    *buf = uv_buf_init(l->err_chunk, sizeof l->err_chunk);
}

static void on_err_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct node_link *l = s->data;
    for (ssize_t i = 0; i < n; i++) {
        if (buf->base[i] == '\n')
            err_line_ends(l);
        else if (l->err_len < sizeof l->err_line)
            l->err_line[l->err_len++] = buf->base[i];
    }
    if (n >= 0)
        return;
    err_line_ends(l);
    (void)uv_read_stop(s);
    l->err_ended = true;
    see_end(l);
}

/* --- its stdout: lines ----------------------------------------------------------------------------------------------- */

static void on_out_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct node_link *l = h->data;
    (void)suggested;
    *buf = uv_buf_init(l->line + l->len, (unsigned)(sizeof l->line - l->len));
}

static void tell_too_long(struct node_link *l)
{
    char text[80], why[160];
    (void)node_words_plain(text, sizeof text, l->line, l->len);
    (void)snprintf(why, sizeof why, "it sent a line of more than %d bytes: '%s'", NODE_LINE_MAX, text);
    tell_lost(l, why);
}

/* Hands over the whole lines of the buffer and keeps what follows them. The callee may close the link, which frees nothing
 * before the loop's next round. */
static void take_lines(struct node_link *l)
{
    size_t at = 0;
    for (char *end; l->ops && (end = memchr(l->line + at, '\n', l->len - at)); at = (size_t)(end - l->line) + 1)
        l->ops->line(l->ctx, l->line + at, (size_t)(end - l->line) - at);
    memmove(l->line, l->line + at, l->len - at);
    l->len -= at;
    if (l->ops && l->len == sizeof l->line)
        tell_too_long(l);
}

static void drain(struct node_link *l, size_t n)
{
    l->len = 0;
    l->drained += n;
    if (l->closing && l->drained > DRAIN_MAX)
        close_handle((uv_handle_t *)&l->out); /* it is flooding: let it meet a broken pipe */
}

static void on_out_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct node_link *l = s->data;
    (void)buf;
    if (n < 0) {
        (void)uv_read_stop(s);
        l->out_ended = true;
        see_end(l);
        return;
    }
    l->len += (size_t)n;
    if (l->ops)
        take_lines(l);
    if (!l->ops)
        drain(l, (size_t)n);
}

/* --- to it ----------------------------------------------------------------------------------------------------------- */

static void on_sent(uv_write_t *req, int status)
{
    (void)status; /* a helper that cannot be written to has ended, or is silent: both are noticed */
    free(req->data);
}

int node_link_send(struct node_link *l, const char *text, size_t len)
{
    if (uv_stream_get_write_queue_size((uv_stream_t *)&l->in) + len > NODE_LINK_QUEUE_MAX)
        return -ENOBUFS;
    struct sending *s = malloc(sizeof *s + len);
    if (!s)
        return -ENOMEM;
    s->req.data = s;
    memcpy(s->text, text, len);
    uv_buf_t buf = uv_buf_init(s->text, (unsigned)len);
    int rc = uv_write(&s->req, (uv_stream_t *)&l->in, &buf, 1, on_sent);
    if (rc < 0)
        free(s);
    return rc;
}

int node_link_exit_code(const struct node_link *l)
{
    return l->exited && !l->exit_signal ? (int)l->exit_code : -1;
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

static struct node_link *make(uv_loop_t *loop, const struct node_link_ops *ops, void *ctx)
{
    struct node_link *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->ops = ops;
    l->ctx = ctx;
    /* None of these can fail: they only fill in the handle. */
    (void)uv_pipe_init(loop, &l->in, 0);
    (void)uv_pipe_init(loop, &l->out, 0);
    (void)uv_pipe_init(loop, &l->err, 0);
    (void)uv_timer_init(loop, &l->timer);
    l->process.data = l->in.data = l->out.data = l->err.data = l->timer.data = l;
    return l;
}

static int spawn(struct node_link *l, uv_loop_t *loop, char **argv)
{
    enum { TO_CHILD = UV_CREATE_PIPE | UV_READABLE_PIPE, FROM_CHILD = UV_CREATE_PIPE | UV_WRITABLE_PIPE };
    uv_stdio_container_t stdio[3] = {
        { .flags = (uv_stdio_flags)TO_CHILD, .data.stream = (uv_stream_t *)&l->in },
        { .flags = (uv_stdio_flags)FROM_CHILD, .data.stream = (uv_stream_t *)&l->out },
        { .flags = (uv_stdio_flags)FROM_CHILD, .data.stream = (uv_stream_t *)&l->err },
    };
    uv_process_options_t options = { .exit_cb = on_exit_process,
                                     .file = argv[0],
                                     .args = argv,
                                     .flags = UV_PROCESS_DETACHED, /* a Ctrl-C is for the driver to handle */
                                     .stdio_count = 3,
                                     .stdio = stdio };
    int rc = uv_spawn(loop, &l->process, &options);
    l->handles = 5; /* the process handle is the loop's even when the start failed */
    return rc;
}

int node_link_start(struct node_link **out, uv_loop_t *loop, char **argv, const struct node_link_ops *ops, void *ctx,
                    struct err *e)
{
    struct node_link *l = make(loop, ops, ctx);
    if (!l)
        return err_sys(e, -ENOMEM, "cannot start '%s'", argv[0]);
    int rc = spawn(l, loop, argv);
    bool runs = rc == 0;
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&l->out, on_out_alloc, on_out_read);
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&l->err, on_err_alloc, on_err_read);
    if (rc < 0) {
        l->exited = !runs;
        node_link_close(l);
        return err_set(e, rc, "cannot start '%s': %s", argv[0], uv_strerror(rc));
    }
    *out = l;
    return 0;
}

static void on_overdue(uv_timer_t *t)
{
    struct node_link *l = t->data;
    (void)uv_process_kill(&l->process, l->termed ? SIGKILL : SIGTERM); /* its exit closes the rest */
    l->termed = true;
}

static void on_shut(uv_shutdown_t *req, int status)
{
    struct node_link *l = req->data;
    if (status != UV_ECANCELED) /* then it is being closed already */
        close_handle((uv_handle_t *)&l->in);
}

void node_link_close(struct node_link *l)
{
    if (!l || l->closing)
        return;
    l->ops = NULL;
    l->closing = true;
    if (l->exited) {
        close_all(l);
        return;
    }
    l->shutdown.data = l;
    if (uv_shutdown(&l->shutdown, (uv_stream_t *)&l->in, on_shut) < 0)
        close_handle((uv_handle_t *)&l->in);
    (void)uv_timer_start(&l->timer, on_overdue, TERM_MS, KILL_MS - TERM_MS); /* fails only without a callback */
}
