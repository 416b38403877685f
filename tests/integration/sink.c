#include "tests/integration/sink.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"

enum { CONNECTIONS_MAX = 1024 };

struct connection {
    struct sink *s;
    pthread_t thread;
    int fd;
};

struct sink {
    int listener, stop; /* an eventfd */
    uint16_t port;
    pthread_t thread;
    struct connection connections[CONNECTIONS_MAX]; /* that thread's */
    size_t n_connections;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    const char *answer;
    bool held, stopped;
    int requests, waiting;
    struct buf lines, head;
};

static const char no_content[] = "HTTP/1.1 204 No Content\r\nX-Influxdb-Version: 1.6.7\r\n\r\n";

static void unpack(struct buf *out, const char *bytes, size_t len)
{
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len };
    char chunk[16384];
    int rc = inflateInit2(&z, 15 + 16);
    while (rc == Z_OK) {
        z.next_out = (Bytef *)chunk;
        z.avail_out = sizeof chunk;
        rc = inflate(&z, Z_NO_FLUSH);
        buf_put(out, chunk, sizeof chunk - z.avail_out);
    }
    (void)inflateEnd(&z);
}

/* Something to read; false: the end. */
static bool is_readable(struct sink *s, int fd)
{
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = s->stop, .events = POLLIN } };
    return poll(fds, 2, -1) > 0 && !(fds[1].revents & POLLIN);
}

/* One request; its body begins at *body. False: the connection is over. */
static bool read_request(struct sink *s, int fd, struct buf *in, size_t *body)
{
    size_t want = SIZE_MAX;
    char chunk[16384];
    buf_clear(in);
    *body = 0;
    while (in->len < want) {
        ssize_t n = is_readable(s, fd) ? recv(fd, chunk, sizeof chunk, 0) : 0;
        if (n <= 0)
            return false;
        buf_put(in, chunk, (size_t)n);
        const char *end = *body ? NULL : strstr(in->data, "\r\n\r\n");
        if (!end)
            continue;
        *body = (size_t)(end - in->data) + 4;
        const char *length = strstr(in->data, "Content-Length: ");
        want = *body + (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
    }
    return true;
}

/* What is to be answered. */
static const char *judge(struct sink *s, const struct buf *in, size_t body)
{
    (void)pthread_mutex_lock(&s->lock);
    s->requests++;
    buf_clear(&s->head);
    buf_put(&s->head, in->data, body);
    bool packed = strstr(buf_text(&s->head), "Content-Encoding: gzip") != NULL;
    s->waiting++;
    while (s->held && !s->stopped)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    s->waiting--;
    const char *answer = s->stopped ? "" : s->answer ? s->answer : no_content;
    if (answer == no_content && packed)
        unpack(&s->lines, in->data + body, in->len - body);
    else if (answer == no_content)
        buf_put(&s->lines, in->data + body, in->len - body);
    (void)pthread_mutex_unlock(&s->lock);
    return answer;
}

static void serve(struct sink *s, int fd)
{
    AUTO_BUF struct buf in = BUF_INIT;
    size_t body = 0;
    while (read_request(s, fd, &in, &body)) {
        const char *answer = judge(s, &in, body);
        if (!*answer || send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0 || strstr(answer, "Connection: close"))
            return;
    }
}

static void *run_connection(void *arg)
{
    struct connection *c = arg;
    serve(c->s, c->fd);
    (void)shutdown(c->fd, SHUT_RDWR); /* closed when the thread is joined */
    return NULL;
}

static void *run(void *arg)
{
    struct sink *s = arg;
    while (is_readable(s, s->listener)) {
        assert_true(s->n_connections < CONNECTIONS_MAX);
        struct connection *c = &s->connections[s->n_connections];
        *c = (struct connection){ .s = s, .fd = accept(s->listener, NULL, NULL) };
        if (c->fd < 0)
            continue;
        assert_int_equal(pthread_create(&c->thread, NULL, run_connection, c), 0);
        s->n_connections++;
    }
    return NULL;
}

struct sink *sink_new(void)
{
    struct sink *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->stop = eventfd(0, EFD_CLOEXEC);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    assert_true(s->stop >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

void sink_free(struct sink *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopped = true;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    assert_int_equal(eventfd_write(s->stop, 1), 0);
    (void)pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->n_connections; i++) {
        (void)pthread_join(s->connections[i].thread, NULL);
        (void)close(s->connections[i].fd);
    }
    (void)close(s->listener);
    (void)close(s->stop);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    buf_done(&s->lines);
    buf_done(&s->head);
    free(s);
}

uint16_t sink_port(const struct sink *s)
{
    return s->port;
}

void sink_answer(struct sink *s, const char *answer)
{
    (void)pthread_mutex_lock(&s->lock);
    s->answer = answer;
    s->held = false;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

void sink_hold(struct sink *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->held = true;
    (void)pthread_mutex_unlock(&s->lock);
}

int sink_requests(struct sink *s)
{
    (void)pthread_mutex_lock(&s->lock);
    int n = s->requests;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

int sink_held(struct sink *s)
{
    (void)pthread_mutex_lock(&s->lock);
    int n = s->held ? s->waiting : 0;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

static char *copy(struct sink *s, const struct buf *b)
{
    (void)pthread_mutex_lock(&s->lock);
    char *text = strdup(buf_text(b));
    (void)pthread_mutex_unlock(&s->lock);
    assert_non_null(text);
    return text;
}

char *sink_lines(struct sink *s)
{
    return copy(s, &s->lines);
}

char *sink_head(struct sink *s)
{
    return copy(s, &s->head);
}
