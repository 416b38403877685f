#include "serve/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/own.h"
#include "serve/http_conns.h"
#include "serve/http_pulse.h"
#include "serve/http_request.h"
#include "serve/http_work.h"

enum { URL_MAX_LEN = 4096, CONN_MEMORY = 64 * 1024, UNREAD_MS = 30000, WORKERS = 2 };

struct http_server {
    struct http_server_options o;
    struct MHD_Daemon *daemon;
    struct http_conns conns;
    struct http_pulse pulse;
    struct http_work work[WORKERS]; /* HTTP_BY_PAGES, HTTP_BY_ASKING */
};

/* A request under way. */
struct call {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_conn *conn;
    const struct http_route *route;
    struct http_request q;
    struct http_answer a;
    struct buf posted;
    bool begun; /* its head has been looked at */
    bool done;  /* `a` is the answer */
};

static void call_free(struct call *c)
{
    if (!c)
        return;
    http_request_done(&c->q);
    free(c->a.location);
    buf_done(&c->a.body);
    buf_done(&c->posted);
    free(c);
}

/* --- saying no --- */

static void refuse(struct call *c, unsigned status, const char *why)
{
    buf_done(&c->a.body);
    c->server->o.refuse(c->server->o.ctx, status, why, &c->a);
    c->a.status = status;
    c->done = true;
}

static const struct {
    unsigned status;
    const char *why;
} verdicts[] = {
    [HTTP_PASS] = { 200, "" },
    [HTTP_HOST] = { 421, "this server is not called by that name" },
    [HTTP_ORIGIN] = { 403, "a page of elsewhere asks for this" },
    [HTTP_TOKEN] = { 401, "the token of this server is asked for" },
};

/* --- the answer on its way --- */

static const struct {
    const char *name, *value;
} always[] = {
    { "Content-Security-Policy",
      "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "X-Frame-Options", "DENY" },
    { "Referrer-Policy", "same-origin" }, /* with "no-referrer" forms would come from nowhere */
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
};

static bool head(struct MHD_Response *r, const char *name, const char *value)
{
    return MHD_add_response_header(r, name, value) == MHD_YES;
}

/* Takes the response. */
static enum MHD_Result send_it(struct call *c, unsigned status, struct MHD_Response *r, const char *type, bool keep)
{
    bool whole = head(r, "Content-Type", type) && head(r, "Cache-Control", keep ? "max-age=3600" : "no-store");
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        whole = whole && head(r, always[i].name, always[i].value);
    if (c->a.location)
        whole = whole && head(r, "Location", c->a.location);
    if (*c->a.cookie)
        whole = whole && head(r, "Set-Cookie", c->a.cookie);
    if (*c->a.log_size)
        whole = whole && head(r, "X-Log-From", c->a.log_from) && head(r, "X-Log-Size", c->a.log_size);
    if (status == 503)
        whole = whole && head(r, "Retry-After", "2");
    if (status == 401)
        whole = whole && head(r, "WWW-Authenticate", "Bearer");
    enum MHD_Result rc = whole ? MHD_queue_response(c->connection, status, r) : MHD_NO;
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result send_answer(struct call *c)
{
    if (c->a.body.failed)
        return MHD_NO; /* out of memory: the connection ends */
    size_t len = c->a.body.len;
    char *text = buf_take(&c->a.body);
    struct MHD_Response *r = text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r) {
        free(text);
        return MHD_NO;
    }
    const char *type = c->a.type ? c->a.type : "text/html; charset=utf-8";
    return send_it(c, c->a.status ? c->a.status : 200, r, type, c->a.keep);
}

/* --- what is asked --- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* NULL: none; *out_why says which way. */
static const struct http_route *find_route(const struct call *c, const char *method, unsigned *out_why)
{
    bool head_only = strcmp(method, "HEAD") == 0;
    *out_why = 404;
    for (const struct http_route *r = c->server->o.routes; r->method; r++) {
        if (!http_path_is(&c->q.path, r->pattern))
            continue;
        if (strcmp(r->method, head_only ? "GET" : method) == 0 && !(head_only && r->by == HTTP_FOLLOW))
            return r;
        *out_why = 405;
    }
    return NULL;
}

static void check_gate(struct call *c, const char *method)
{
    struct MHD_Connection *m = c->connection;
    struct http_claims claims = { strcmp(method, "POST") == 0, header(m, "Host"), header(m, "Origin"),
                                  header(m, "Cookie"), header(m, "Authorization") };
    enum http_verdict v = http_gate_ask(&c->server->o.gate, &claims);
    if (v == HTTP_PASS || (v == HTTP_TOKEN && c->route && c->route->open))
        return;
    refuse(c, verdicts[v].status, verdicts[v].why);
}

static void check_length(struct call *c)
{
    const char *text = header(c->connection, "Content-Length");
    if (text && strtoull(text, NULL, 10) > HTTP_FORM_MAX)
        refuse(c, 413, "more is sent than is taken");
}

/* What there is to say before its body comes. */
static void look_at(struct call *c, const char *method)
{
    unsigned why;
    c->route = find_route(c, method, &why);
    check_gate(c, method); /* strangers are not told what there is */
    if (!c->done && !c->route)
        refuse(c, why, why == 405 ? "this is not done that way" : "there is no such page");
    if (!c->done)
        check_length(c);
}

/* The path as it was sent, with the query: the library decodes too soon. */
static void *begin(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct http_server *s = cls;
    struct call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct call){ .server = s, .connection = connection, .q.gate = &s->o.gate };
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    c->conn = info ? info->socket_context : NULL;
    size_t path = strcspn(uri, "?");
    AUTO_FREE char *text = strndup(uri, path);
    int rc = !text ? -ENOMEM : strlen(uri) >= URL_MAX_LEN ? -E2BIG : http_path_parse(&c->q.path, text);
    if (rc == 0 && uri[path])
        rc = http_pairs_parse(&c->q.query, uri + path + 1);
    if (rc < 0)
        refuse(c, rc == -ENOMEM ? 503 : rc == -E2BIG ? 414 : 400, "the address cannot be read");
    return c;
}

static bool take_posted(struct call *c, const char *bytes, size_t len)
{
    if (c->posted.len + len > HTTP_FORM_MAX)
        return false;
    buf_put(&c->posted, bytes, len);
    return !c->posted.failed;
}

/* --- who answers --- */

static void run_call(void *job)
{
    struct call *c = job;
    struct MHD_Connection *connection = c->connection;
    c->route->answer(c->server->o.ctx, &c->q, &c->a);
    c->done = true;
    MHD_resume_connection(connection); /* from here on it may be gone */
}

static void leave_call(void *job)
{
    struct call *c = job;
    struct MHD_Connection *connection = c->connection;
    refuse(c, 503, "the server ends");
    MHD_resume_connection(connection);
}

static enum MHD_Result follow(struct call *c)
{
    const char *last = header(c->connection, "Last-Event-ID");
    c->q.last_event = last ? strdup(last) : NULL;
    if (http_conns_turn(&c->server->conns, c->conn, HTTP_FOLLOWS, clock_ms()) < 0) {
        refuse(c, 503, "as many pages are followed as may be");
        return send_answer(c);
    }
    struct MHD_Response *r = http_pulse_add(&c->server->pulse, c->connection, c->conn, &c->q);
    return r ? send_it(c, 200, r, "text/event-stream; charset=utf-8", false) : MHD_NO;
}

static enum MHD_Result hand_over(struct call *c)
{
    if (c->route->by == HTTP_FOLLOW)
        return follow(c);
    if (c->route->by == HTTP_AT_ONCE) {
        c->route->answer(c->server->o.ctx, &c->q, &c->a);
        c->done = true;
        return send_answer(c);
    }
    MHD_suspend_connection(c->connection);
    if (!http_work_add(&c->server->work[c->route->by == HTTP_BY_ASKING], c)) {
        refuse(c, 503, "too much is asked at once");
        MHD_resume_connection(c->connection);
    }
    return MHD_YES;
}

static enum MHD_Result read_form(struct call *c)
{
    if (c->posted.len == 0 || http_pairs_parse(&c->q.form, buf_text(&c->posted)) == 0)
        return MHD_YES;
    refuse(c, 400, "the form cannot be read");
    return MHD_NO;
}

/* The library calls it with nothing as soon as the head is there, then with each piece of the body, then with nothing again; and once more
 * after each time that the connection was suspended. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *len, void **con_cls)
{
    struct call *c = *con_cls;
    (void)cls, (void)connection, (void)url, (void)version;
    if (!c || !c->conn)
        return MHD_NO; /* out of memory */
    if (!c->begun) {
        c->begun = true;
        if (!c->done)
            look_at(c, method);
        if (!c->done)
            return MHD_YES;
        (void)http_conns_turn(&c->server->conns, c->conn, HTTP_ANSWERED, clock_ms());
        return send_answer(c);
    }
    if (*len > 0) {
        bool takes = take_posted(c, data, *len);
        *len = 0;
        return takes ? MHD_YES : MHD_NO;
    }
    if (c->done)
        return send_answer(c);
    (void)http_conns_turn(&c->server->conns, c->conn, HTTP_ANSWERED, clock_ms());
    return read_form(c) == MHD_YES ? hand_over(c) : send_answer(c);
}

static void completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                      enum MHD_RequestTerminationCode code)
{
    struct http_server *s = cls;
    struct call *c = *con_cls;
    (void)connection, (void)code;
    if (c && c->conn)
        (void)http_conns_turn(&s->conns, c->conn, HTTP_ASKS, clock_ms()); /* it may ask again */
    call_free(c);
    *con_cls = NULL;
}

/* A peer that vanished, or does not read, is not waited for by the kernel for ever. */
static void bound_writes(int fd)
{
    unsigned ms = UNREAD_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms); /* without it, it takes longer */
}

static void connected(void *cls, struct MHD_Connection *connection, void **socket_context,
                      enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context)
            http_conns_drop(&s->conns, *socket_context);
        *socket_context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *socket_context = info ? http_conns_add(&s->conns, info->connect_fd, clock_ms()) : NULL;
    if (info)
        bound_writes(info->connect_fd);
}

static enum MHD_Result let_in(void *cls, const struct sockaddr *addr, socklen_t len)
{
    struct http_server *s = cls;
    (void)addr, (void)len;
    return http_conns_count(&s->conns, HTTP_NOTHING) > 0 ? MHD_YES : MHD_NO;
}

/* --- begin and end --- */

static int start_threads(struct http_server *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WORKERS; i++)
        rc = http_work_start(&s->work[i], run_call, leave_call);
    return rc == 0 ? http_pulse_start(&s->pulse, &s->conns, s->o.follow, s->o.ctx) : rc;
}

static struct MHD_Daemon *start_daemon(struct http_server *s, int fd)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, let_in, s, handle, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(UNREAD_MS / 1000), MHD_OPTION_URI_LOG_CALLBACK, begin, s,
        MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_END);
}

int http_server_start(struct http_server **out, int listen_fd, const struct http_server_options *o, struct err *e)
{
    AUTO_CLOSE int fd = listen_fd;
    struct http_server *s = calloc(1, sizeof *s);
    sigset_t all, before;
    if (!s || http_conns_init(&s->conns) < 0) {
        free(s);
        return err_sys(e, -ENOMEM, "cannot serve pages");
    }
    s->o = *o;
    /* Signals are for the thread that knows what to do with them. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail with these */
    int rc = start_threads(s);
    if (rc == 0) {
        s->daemon = start_daemon(s, fd);
        rc = s->daemon ? 0 : -EIO;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc < 0) {
        http_server_stop(s);
        return err_sys(e, rc, "cannot serve pages");
    }
    (void)MOVE_FD(fd); /* the daemon's */
    *out = s;
    return 0;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    /* The library must find nothing suspended. */
    for (size_t i = 0; i < WORKERS; i++)
        http_work_stop(&s->work[i]);
    http_pulse_stop(&s->pulse);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    http_pulse_done(&s->pulse);
    http_conns_done(&s->conns);
    free(s);
}
