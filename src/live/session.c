#include "live/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/socket_path.h"

enum { LOOK_MS = 100, QUEUE_MAX = 4 * SESSION_LINE_MAX };

/* ---- where the socket lies ------------------------------------------------------------------------------------------ */

int session_path(char **out, const char *tag, struct err *e)
{
    if (!session_is_id(tag, strlen(tag)))
        return err_set(e, -EINVAL, "'%s' cannot name a session", tag);
    return socket_path(out, tag, e);
}

/* ---- what killed sessions left --------------------------------------------------------------------------------------- */

void session_socket_remove(const char *tag)
{
    AUTO_FREE char *path = NULL;
    struct stat st;
    if (session_path(&path, tag, NULL) == 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path); /* the next sweep tries again */
}

/* Is this path one that a process is bound to? `all` is /proc/net/unix: a line each, the path at its end. */
static bool is_bound(const char *all, const char *path)
{
    size_t len = strlen(path);
    for (const char *at = all; (at = strstr(at, path)); at++)
        if (at > all && at[-1] == ' ' && at[len] == '\n')
            return true;
    return false;
}

/* The kernel lists sockets of our own network namespace alone; processes of others, too. Where they cannot be looked at, it does. */
static bool has_process(const char *tag)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t n = 0;
    return proc_tagged(tag, &pids, &n) < 0 || n > 0;
}

/* Of a moment ago it may be a session's that has made it and is not listed yet when we look. */
static bool is_left(const char *folder, const char *name, const char *all)
{
    enum { MOMENT_S = 60 };
    const char *end = strstr(name, ".sock");
    struct stat st;
    AUTO_FREE char *path = io_join(folder, name);
    if (!path || !end || end[5] != '\0' || !session_is_id(name, (size_t)(end - name)) || lstat(path, &st) < 0)
        return false;
    AUTO_FREE char *tag = strndup(name, (size_t)(end - name));
    return S_ISSOCK(st.st_mode) && st.st_uid == geteuid() && time(NULL) - st.st_mtime > MOMENT_S &&
           !is_bound(all, path) && tag && !has_process(tag);
}

static void sweep(const char *folder, const char *all)
{
    AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 && ours_is_dir(folder) ? opendir(folder) : NULL;
    for (const struct dirent *f; d && (f = readdir(d));)
        if (is_left(folder, f->d_name, all))
            (void)unlinkat(fd, f->d_name, 0); /* the next one tries again */
    if (d)
        (void)closedir(d);
}

void session_sockets_sweep(void)
{
    enum { LIST_MAX = 32 << 20 };
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    AUTO_BUF struct buf all = BUF_INIT;
    if (io_read_file(&all, "/proc/net/unix", LIST_MAX, NULL) < 0)
        return;
    if (socket_path_runtime(folder, sizeof folder))
        sweep(folder, buf_text(&all));
    socket_path_tmp(folder, sizeof folder);
    sweep(folder, buf_text(&all));
}

/* ---- the link ------------------------------------------------------------------------------------------------------- */

struct session_link {
    const struct session_ops *ops; /* NULL once freed: what still arrives is nobody's */
    void *ctx;
    uint64_t id;
    struct sockaddr_un address;
    uv_timer_t look;
    uv_pipe_t pipe;
    const struct session_wire *wire; /* NULL: it is here, at the socket */
    void *wire_ctx;
    bool greeted, lost;
    int handles; /* not closed yet, and calls that go on */
    size_t len;  /* of what stands in `in` */
    char in[SESSION_LINE_MAX];
};

static void let_go(struct session_link *l)
{
    if (--l->handles == 0 && !l->ops)
        free(l);
}

static void on_closed(uv_handle_t *h)
{
    let_go(h->data);
}

static void close_all(struct session_link *l)
{
    uv_handle_t *const handles[] = { (uv_handle_t *)&l->look, (uv_handle_t *)&l->pipe };
    for (size_t i = 0; !l->wire && i < ARRAY_LEN(handles); i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], on_closed);
}

void session_link_free(struct session_link *l)
{
    if (!l)
        return;
    l->ops = NULL;
    if (l->wire)
        l->wire->closed(l->wire_ctx);
    if (l->handles == 0)
        free(l);
    else
        close_all(l);
}

static void lose(struct session_link *l, const char *why)
{
    const struct session_ops *ops = l->ops;
    if (!ops || l->lost)
        return;
    l->lost = true;
    close_all(l);
    ops->lost(l->ctx, l->id, why);
}

/* ---- what it says --------------------------------------------------------------------------------------------------- */

static void on_hello(struct session_link *l, const struct session_message *m)
{
    char why[96];
    if (l->greeted) {
        lose(l, "the session says hello twice");
        return;
    }
    if (!session_speaks(m->protocol)) {
        (void)snprintf(why, sizeof why, "the session speaks protocol %d, this program protocols %d to %d", m->protocol,
                       SESSION_PROTOCOL_OLDEST, SESSION_PROTOCOL);
        lose(l, why);
        return;
    }
    l->greeted = true;
    l->ops->hello(l->ctx, l->id, m);
}

static void dispatch(struct session_link *l, const struct session_message *m)
{
    if (m->word == SESSION_HELLO)
        on_hello(l, m);
    else if (!l->greeted)
        lose(l, "the session does not begin with hello");
    else if (m->word == SESSION_EPOCH)
        l->ops->epoch(l->ctx, l->id, m);
    else
        l->ops->done(l->ctx, l->id, m);
}

static void on_line(struct session_link *l, const char *line, size_t len)
{
    struct session_message m = { .metrics = NULL };
    struct err e = { 0 };
    int rc = session_parse(&m, line, len, &e);
    if (rc == -ENOMSG)
        return; /* a later version may know more words */
    if (rc == 0) {
        dispatch(l, &m);
        session_message_done(&m);
        return;
    }
    err_prefix(&e, "the session speaks nonsense");
    lose(l, e.text);
}

static void on_bytes(struct session_link *l)
{
    size_t from = 0;
    char *newline;
    while (l->ops && !l->lost && (newline = memchr(l->in + from, '\n', l->len - from)) != NULL) {
        size_t at = from;
        from = (size_t)(newline - l->in) + 1;
        on_line(l, l->in + at, from - 1 - at);
    }
    l->len -= from;
    memmove(l->in, l->in + from, l->len);
    if (l->len == sizeof l->in)
        lose(l, "the session speaks nonsense: a line without an end");
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct session_link *l = h->data;
    (void)suggested;
    *buf = uv_buf_init(l->in + l->len, (unsigned)(sizeof l->in - l->len));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct session_link *l = s->data;
    (void)buf;
    if (n > 0) {
        l->len += (size_t)n;
        on_bytes(l);
    } else if (n < 0) {
        lose(l, n == UV_EOF ? "the session closed its socket" : uv_strerror((int)n));
    }
}

/* ---- a session elsewhere -------------------------------------------------------------------------------------------- */

int session_link_wired(struct session_link **out, const struct session_wire *wire, void *wire_ctx,
                       const struct session_ops *ops, void *ctx, uint64_t id, struct err *e)
{
    struct session_link *l = calloc(1, sizeof *l);
    if (!l)
        return err_sys(e, -ENOMEM, "a session's words");
    l->ops = ops;
    l->ctx = ctx;
    l->id = id;
    l->wire = wire;
    l->wire_ctx = wire_ctx;
    *out = l;
    return 0;
}

void session_link_heard(struct session_link *l, const char *bytes, size_t n)
{
    l->handles++; /* what it leads to may free it */
    while (n > 0 && l->ops && !l->lost) {
        size_t room = sizeof l->in - l->len, some = n < room ? n : room;
        memcpy(l->in + l->len, bytes, some);
        l->len += some;
        bytes += some, n -= some;
        on_bytes(l);
    }
    let_go(l);
}

void session_link_away(struct session_link *l)
{
    l->greeted = false;
    l->len = 0;
    if (l->ops && !l->lost && l->ops->away)
        l->ops->away(l->ctx, l->id);
}

void session_link_gone(struct session_link *l, const char *why)
{
    lose(l, why);
}

/* ---- finding it ----------------------------------------------------------------------------------------------------- */

/* A Unix socket connects at once or not at all, so this does not block: a connected descriptor, or -errno. */
static int connect_now(const struct sockaddr_un *address)
{
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t len = sizeof peer;
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    return peer.uid == geteuid() ? MOVE_FD(fd) : -EPERM;
}

/* Nothing there yet, nobody listens yet, or too many knock at once. */
static bool worth_another_look(int rc)
{
    return rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN || rc == -EMFILE || rc == -ENFILE;
}

static void on_look(uv_timer_t *t)
{
    struct session_link *l = t->data;
    char why[192];
    AUTO_CLOSE int fd = connect_now(&l->address);
    if (fd < 0 && worth_another_look(fd))
        return;
    (void)uv_timer_stop(t);
    int rc = fd < 0 ? fd : uv_pipe_open(&l->pipe, fd);
    if (rc == 0) {
        (void)MOVE_FD(fd);
        rc = uv_read_start((uv_stream_t *)&l->pipe, on_alloc, on_read);
    }
    if (rc == 0)
        return;
    (void)snprintf(why, sizeof why, "cannot connect to '%s': %s", l->address.sun_path,
                   rc == -EPERM ? "it belongs to another user" : uv_strerror(rc));
    lose(l, why);
}

static struct session_link *make(const char *path, const struct session_ops *ops, void *ctx, uint64_t id)
{
    struct session_link *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->ops = ops;
    l->ctx = ctx;
    l->id = id;
    l->address.sun_family = AF_UNIX;
    memcpy(l->address.sun_path, path, strlen(path) + 1);
    l->look.data = l->pipe.data = l;
    return l;
}

int session_link_open(struct session_link **out, uv_loop_t *loop, const char *path, const struct session_ops *ops,
                      void *ctx, uint64_t id, struct err *e)
{
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_sys(e, -ENAMETOOLONG, "'%s'", path);
    struct session_link *l = make(path, ops, ctx, id);
    int rc = l ? uv_pipe_init(loop, &l->pipe, 0) : UV_ENOMEM;
    if (rc < 0) {
        free(l);
        return err_set(e, rc, "cannot look for a session at '%s': %s", path, uv_strerror(rc));
    }
    (void)uv_timer_init(loop, &l->look); /* these two cannot fail */
    (void)uv_timer_start(&l->look, on_look, 0, LOOK_MS);
    l->handles = 2;
    *out = l;
    return 0;
}

/* ---- what it is told ------------------------------------------------------------------------------------------------ */

struct message {
    uv_write_t request;
    char *text;
};

static void on_written(uv_write_t *w, int status)
{
    struct message *m = w->data;
    struct session_link *l = w->handle->data;
    free(m->text);
    free(m);
    if (status < 0 && status != UV_ECANCELED)
        lose(l, uv_strerror(status));
}

/* Takes the text of `b`. */
static int send_line(struct session_link *l, struct buf *b)
{
    if (!l->greeted || l->lost)
        return -ENOTCONN;
    if (b->failed)
        return -ENOMEM;
    if (b->len > SESSION_LINE_MAX)
        return -EMSGSIZE;
    if (l->wire)
        return l->wire->say(l->wire_ctx, b->data, b->len);
    if (uv_stream_get_write_queue_size((uv_stream_t *)&l->pipe) + b->len > QUEUE_MAX)
        return -ENOBUFS;
    struct message *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    uv_buf_t bytes = uv_buf_init(NULL, (unsigned)b->len);
    m->text = bytes.base = buf_take(b);
    m->request.data = m;
    int rc = uv_write(&m->request, (uv_stream_t *)&l->pipe, &bytes, 1, on_written);
    if (rc < 0) {
        free(m->text);
        free(m);
    }
    return rc;
}

int session_link_run(struct session_link *l, const struct session_run *r)
{
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_run(&b, r);
    return send_line(l, &b);
}

int session_link_end(struct session_link *l, const char *id, int epoch)
{
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_end(&b, id, epoch);
    return send_line(l, &b);
}

int session_link_stop(struct session_link *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_stop(&b);
    return send_line(l, &b);
}
