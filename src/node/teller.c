#include "node/teller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/tell.h"
#include "base/own.h"

static void drop(struct teller_client *c)
{
    (void)close(MOVE_FD(c->fd)); /* what was not said to it any more was not waited for */
    buf_done(&c->in);
    c->over = false;
}

/* Who does not read what is said has no use for it. */
static void say(struct teller_client *c, const char *text)
{
    if (c->fd >= 0)
        (void)send(c->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- opening ---------------------------------------------------------------------------------------------------------- */

static int bind_to(int fd, const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path, path, strlen(path) + 1);
    (void)unlink(path); /* of a launcher that was killed; a live one's has another tag */
    mode_t before = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
    (void)umask(before);
    if (rc == 0 && listen(fd, TELLER_CLIENTS_MAX) < 0)
        rc = -errno;
    return rc;
}

int teller_open(struct teller *t, const char *path, const char *answer, struct log *log, struct err *e)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 ? -errno : bind_to(fd, path);
    if (rc < 0)
        return err_sys(e, rc, "cannot listen at '%s'", path);
    *t = (struct teller){ .path = path, .answer = answer, .log = log, .fd = MOVE_FD(fd) };
    for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++)
        t->clients[i].fd = -1;
    return 0;
}

void teller_close(struct teller *t)
{
    if (!t->path)
        return;
    for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++)
        if (t->clients[i].fd >= 0)
            drop(&t->clients[i]);
    (void)close(MOVE_FD(t->fd));
    (void)unlink(t->path); /* where it stays, the next sweep takes it */
    t->path = NULL;
}

/* --- lines -------------------------------------------------------------------------------------------------------------- */

static void greet(const struct teller *t, struct teller_client *c)
{
    say(c, t->answer);
    say(c, "\n");
    if (t->stop)
        say(c, "{\"stop\":true}\n");
}

static void refuse(struct teller_client *c, const char *why)
{
    AUTO_BUF struct buf b = BUF_INIT;
    tell_put_error(&b, why);
    say(c, buf_text(&b));
}

static void take_line(struct teller *t, struct teller_client *c, const char *line, size_t len)
{
    struct app_report r;
    struct err e = { 0 };
    AUTO_FREE char *copy = strndup(line, len); /* reading changes it */
    int rc = copy ? tell_read(copy, len, &r, &e) : err_sys(&e, -ENOMEM, "not taken");
    if (rc < 0)
        refuse(c, e.text);
    else if (rc == 0)
        greet(t, c);
    else
        log_told(t->log, line, len);
}

/* As many whole lines as the log has room for. */
static void take_lines(struct teller *t, struct teller_client *c)
{
    size_t at = 0;
    while (at < c->in.len && !log_busy(t->log)) {
        const char *line = c->in.data + at, *end = memchr(line, '\n', c->in.len - at);
        if (!end)
            break;
        take_line(t, c, line, (size_t)(end - line));
        log_flush(t->log);
        at += (size_t)(end - line) + 1;
    }
    buf_shift(&c->in, at);
    if (c->in.len > TELL_LINE_MAX && !memchr(c->in.data, '\n', c->in.len)) {
        refuse(c, "a line without an end");
        c->over = true;
        buf_clear(&c->in);
    }
}

/* --- clients ------------------------------------------------------------------------------------------------------------ */

static struct teller_client *free_client(struct teller *t)
{
    for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++)
        if (t->clients[i].fd < 0)
            return &t->clients[i];
    return NULL;
}

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/* False: nobody waits, or there is no room. */
static bool take_client(struct teller *t)
{
    struct teller_client *c = free_client(t);
    if (!c)
        return false;
    AUTO_CLOSE int fd = accept4(t->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    if (is_ours(fd))
        *c = (struct teller_client){ .fd = MOVE_FD(fd) };
    return true;
}

/* Some of what it says; false: there is no more now. */
static bool hear(struct teller *t, struct teller_client *c)
{
    static char chunk[LOG_CHUNK];
    ssize_t n = c->over ? 0 : read(c->fd, chunk, sizeof chunk);
    bool none = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n > 0)
        buf_put(&c->in, chunk, (size_t)n);
    else if (!none)
        c->over = true;
    if (c->in.failed) {
        refuse(c, "no memory");
        buf_clear(&c->in);
        c->over = true;
    }
    take_lines(t, c);
    if (c->over && (c->in.len == 0 || !memchr(c->in.data, '\n', c->in.len)))
        drop(c);
    return n > 0;
}

void teller_wants(const struct teller *t, struct pollfd fds[TELLER_FDS])
{
    bool room = false;
    for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++) {
        fds[1 + i] = (struct pollfd){ .fd = t->path ? t->clients[i].fd : -1, .events = POLLIN };
        room |= t->clients[i].fd < 0;
    }
    fds[0] = (struct pollfd){ .fd = t->path && room ? t->fd : -1, .events = POLLIN };
}

void teller_serve(struct teller *t, const struct pollfd fds[TELLER_FDS])
{
    if (!t->path)
        return;
    for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++)
        if (fds[1 + i].fd >= 0 && fds[1 + i].revents && t->clients[i].fd == fds[1 + i].fd && !log_busy(t->log))
            (void)hear(t, &t->clients[i]);
    if (fds[0].fd >= 0 && fds[0].revents)
        (void)take_client(t);
}

bool teller_drain(struct teller *t)
{
    bool more = t->path != NULL;
    while (more && !log_busy(t->log)) {
        more = false;
        for (size_t i = 0; i < TELLER_CLIENTS_MAX; i++)
            while (t->clients[i].fd >= 0 && !log_busy(t->log) && hear(t, &t->clients[i]))
                more = true;
        while (take_client(t))
            more = true;
    }
    return more;
}

void teller_say_stop(struct teller *t)
{
    AUTO_BUF struct buf b = BUF_INIT;
    tell_put_stop(&b);
    t->stop = true;
    for (size_t i = 0; t->path && i < TELLER_CLIENTS_MAX; i++)
        say(&t->clients[i], buf_text(&b));
}
