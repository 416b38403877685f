#include "live/ssh_ask.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "live/node_words.h"

enum { LAST_WORDS_MS = 500, KILL_MS = 1000 };

struct asking {
    struct ssh_ask *ask;
    struct many *many;
    uv_process_t process;
    uv_pipe_t in, out, err;
    uv_timer_t timer;
    uv_write_t sent_first, sent_then;
    uv_shutdown_t shut;
    int handles;
    bool started, exited, out_ended, err_ended, termed, closing;
    size_t seen;               /* of `out`: lines that were looked at */
    int64_t begun_ms, then_us; /* then_us 0: not sent */
    char chunk[64 << 10], err_chunk[512], err_line[SSH_ASK_LAST_MAX];
    size_t err_len;
};

struct many {
    uv_loop_t loop;
    struct ssh_ask *v;
    size_t n, next;
    int timeout_ms;
};

static void begin_next(struct many *m);

/* --- its end --- */

static void on_closed(uv_handle_t *h)
{
    struct asking *a = h->data;
    if (--a->handles > 0)
        return;
    struct many *m = a->many;
    free(a);
    begin_next(m);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

static void close_all(struct asking *a)
{
    a->closing = true;
    close_handle((uv_handle_t *)&a->process);
    close_handle((uv_handle_t *)&a->in);
    close_handle((uv_handle_t *)&a->out);
    close_handle((uv_handle_t *)&a->err);
    close_handle((uv_handle_t *)&a->timer);
}

static void on_late(uv_timer_t *t)
{
    struct asking *a = t->data;
    if (a->exited) { /* a pipe that others hold open is not waited for */
        close_all(a);
        return;
    }
    if (!a->termed && a->ask->end == SSH_ASK_ENDED)
        a->ask->end = SSH_ASK_OVERDUE;
    (void)uv_process_kill(&a->process, a->termed ? SIGKILL : SIGTERM); /* its exit is told */
    a->termed = true;
    (void)uv_timer_start(t, on_late, KILL_MS, 0); /* fails only without a callback, as below */
}

static void see_end(struct asking *a)
{
    if (!a->exited || a->closing)
        return;
    if (a->out_ended && a->err_ended)
        close_all(a);
    else
        (void)uv_timer_start(&a->timer, on_late, LAST_WORDS_MS, 0);
}

static void on_exit_process(uv_process_t *p, int64_t code, int sig)
{
    struct asking *a = p->data;
    a->exited = true;
    a->ask->code = sig ? 128 + sig : (int)code;
    see_end(a);
}

/* --- to it --- */

/* A peer that does not read is overdue, or has ended. */
static void on_sent(uv_write_t *req, int status)
{
    (void)req, (void)status;
}

static void on_shut(uv_shutdown_t *req, int status)
{
    struct asking *a = req->data;
    if (status != UV_ECANCELED)
        close_handle((uv_handle_t *)&a->in);
}

static void send_bytes(struct asking *a, uv_write_t *req, const char *bytes, size_t n)
{
    uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)n);
    if (n > 0)
        (void)uv_write(req, (uv_stream_t *)&a->in, &buf, 1, on_sent); /* what was not sent is answered by nobody */
}

static void end_input(struct asking *a)
{
    a->shut.data = a;
    if (!uv_is_closing((uv_handle_t *)&a->in) && uv_shutdown(&a->shut, (uv_stream_t *)&a->in, on_shut) < 0)
        close_handle((uv_handle_t *)&a->in);
}

/* --- from it --- */

static int64_t real_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

/* Of the same speaker as the cue, but not the cue: it wants nothing more. */
static bool is_other(const char *line, size_t len, const char *cue)
{
    size_t word = strcspn(cue, " ");
    return cue[word] && len > word && strncmp(line, cue, word + 1) == 0;
}

static void see_line(struct asking *a, const char *line, size_t len)
{
    struct ssh_ask *ask = a->ask;
    size_t n = ask->cue ? strlen(ask->cue) : 0;
    if (a->then_us > 0 && isnan(ask->round_s))
        ask->round_s = (double)(now_us() - a->then_us) * 1e-6;
    if (n == 0 || a->then_us > 0)
        return;
    if (len >= n && strncmp(line, ask->cue, n) == 0) {
        a->then_us = now_us();
        ask->cued_real_ms = real_ms();
        ask->cued_s = (double)(clock_ms() - a->begun_ms) * 1e-3;
        send_bytes(a, &a->sent_then, ask->then, ask->n_then);
        end_input(a);
    } else if (is_other(line, len, ask->cue)) {
        end_input(a);
    }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct asking *a = h->data;
    (void)suggested;
    bool is_err = h == (uv_handle_t *)&a->err;
    *buf = is_err ? uv_buf_init(a->err_chunk, sizeof a->err_chunk) : uv_buf_init(a->chunk, sizeof a->chunk);
}

static void on_out(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct asking *a = s->data;
    struct ssh_ask *ask = a->ask;
    if (n < 0) {
        (void)uv_read_stop(s);
        a->out_ended = true;
        see_end(a);
        return;
    }
    if (ask->end == SSH_ASK_FLOODED)
        return; /* until it ends */
    buf_put(&ask->out, buf->base, (size_t)n);
    for (char *end; !ask->out.failed && (end = memchr(ask->out.data + a->seen, '\n', ask->out.len - a->seen));
         a->seen = (size_t)(end - ask->out.data) + 1)
        see_line(a, ask->out.data + a->seen, (size_t)(end - ask->out.data) - a->seen);
    if (ask->out.len <= SSH_ASK_OUT_MAX && !ask->out.failed)
        return;
    ask->end = SSH_ASK_FLOODED;
    if (!a->exited)
        on_late(&a->timer);
}

static void err_line_ends(struct asking *a)
{
    while (a->err_len > 0 && strchr(" \t\r", a->err_line[a->err_len - 1]))
        a->err_len--;
    if (a->err_len > 0)
        (void)node_words_plain(a->ask->last, sizeof a->ask->last, a->err_line, a->err_len);
    a->err_len = 0;
}

static void on_err(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct asking *a = s->data;
    for (ssize_t i = 0; i < n; i++) {
        if (buf->base[i] == '\n')
            err_line_ends(a);
        else if (a->err_len < sizeof a->err_line)
            a->err_line[a->err_len++] = buf->base[i];
    }
    if (n >= 0)
        return;
    err_line_ends(a);
    (void)uv_read_stop(s);
    a->err_ended = true;
    see_end(a);
}

/* --- its beginning --- */

static int spawn(struct asking *a)
{
    enum { TO_CHILD = UV_CREATE_PIPE | UV_READABLE_PIPE, FROM_CHILD = UV_CREATE_PIPE | UV_WRITABLE_PIPE };
    uv_stdio_container_t stdio[3] = {
        { .flags = (uv_stdio_flags)TO_CHILD, .data.stream = (uv_stream_t *)&a->in },
        { .flags = (uv_stdio_flags)FROM_CHILD, .data.stream = (uv_stream_t *)&a->out },
        { .flags = (uv_stdio_flags)FROM_CHILD, .data.stream = (uv_stream_t *)&a->err },
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_process, .file = a->ask->argv[0], .args = a->ask->argv, .stdio_count = 3, .stdio = stdio
    };
    int rc = uv_spawn(&a->many->loop, &a->process, &options);
    a->handles = 5; /* the process handle is the loop's even when the start failed */
    a->started = rc == 0;
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&a->out, on_alloc, on_out);
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&a->err, on_alloc, on_err);
    return rc;
}

static void begin(struct many *m, struct asking *a)
{
    /* None of these can fail: they only fill in the handle. */
    (void)uv_pipe_init(&m->loop, &a->in, 0);
    (void)uv_pipe_init(&m->loop, &a->out, 0);
    (void)uv_pipe_init(&m->loop, &a->err, 0);
    (void)uv_timer_init(&m->loop, &a->timer);
    a->process.data = a->in.data = a->out.data = a->err.data = a->timer.data = a;
    a->begun_ms = clock_ms();
    int rc = spawn(a);
    if (rc < 0) {
        a->ask->end = SSH_ASK_UNSTARTED;
        (void)snprintf(a->ask->last, sizeof a->ask->last, "cannot start '%s': %s", a->ask->argv[0], uv_strerror(rc));
        if (a->started)
            (void)uv_process_kill(&a->process, SIGKILL);
        close_all(a);
        return;
    }
    (void)uv_timer_start(&a->timer, on_late, (uint64_t)m->timeout_ms, 0);
    send_bytes(a, &a->sent_first, a->ask->first, a->ask->n_first);
    if (!a->ask->cue)
        end_input(a);
}

static void begin_next(struct many *m)
{
    while (m->next < m->n) {
        struct ssh_ask *ask = &m->v[m->next++];
        struct asking *a = calloc(1, sizeof *a);
        ask->end = SSH_ASK_ENDED;
        ask->cued_s = ask->round_s = NAN;
        if (a) {
            a->ask = ask;
            a->many = m;
            begin(m, a);
            return;
        }
        ask->end = SSH_ASK_UNSTARTED;
        (void)snprintf(ask->last, sizeof ask->last, "%s", strerror(ENOMEM));
    }
}

int ssh_ask_all(struct ssh_ask *v, size_t n, int timeout_ms, struct err *e)
{
    struct many m = { .v = v, .n = n, .timeout_ms = timeout_ms };
    int rc = uv_loop_init(&m.loop);
    if (rc < 0)
        return err_set(e, rc, "cannot ask hosts: %s", uv_strerror(rc));
    for (size_t i = 0; i < SSH_ASK_AT_ONCE && m.next < n; i++)
        begin_next(&m);
    (void)uv_run(&m.loop, UV_RUN_DEFAULT); /* until nothing is open */
    (void)uv_loop_close(&m.loop);
    return 0;
}

void ssh_ask_done(struct ssh_ask *a)
{
    buf_done(&a->out);
}
