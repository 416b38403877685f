#include "node/talk.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "base/socket_path.h"

void talk_done(struct talk *t)
{
    own_close(&t->fd);
    *t = TALK_NONE;
}

/* A Unix socket connects at once or not at all. */
static int connect_to(const char *tag)
{
    AUTO_FREE char *path = NULL;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t len = sizeof peer;
    struct err e = { 0 };
    int rc = socket_path(&path, tag, &e);
    if (rc < 0)
        return rc;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path); /* it fits: socket_path() says so */
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    return peer.uid == geteuid() ? MOVE_FD(fd) : -EPERM;
}

/* Nothing there yet, nobody listens yet, or too many knock at once. */
static bool is_to_come(int rc)
{
    return rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN || rc == -EMFILE || rc == -ENFILE;
}

static ssize_t fail(struct talk *t, int rc)
{
    own_close(&t->fd);
    t->fd = -1;
    t->wanted = false;
    return rc;
}

ssize_t talk_take(struct talk *t, const char *tag, char *out, size_t size)
{
    int64_t may = t->upto - t->told;
    size_t most = may < (int64_t)size ? (size_t)may : size;
    if (!t->wanted || may <= 0)
        return 0;
    int fd = t->fd < 0 ? connect_to(tag) : t->fd;
    if (fd < 0)
        return is_to_come(fd) ? 0 : fail(t, fd);
    t->fd = fd;
    ssize_t n = recv(fd, out, most, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return fail(t, n < 0 ? -errno : -EPIPE);
    t->told += n;
    return n;
}

int talk_say(struct talk *t, const char *bytes, size_t n, struct err *e)
{
    if (t->fd < 0)
        return err_set(e, -ENOTCONN, "nobody is at its socket");
    ssize_t sent = send(t->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)n)
        return 0;
    int rc = sent < 0 && errno != EAGAIN ? -errno : -ENOBUFS;
    (void)shutdown(t->fd, SHUT_RDWR); /* that is told when it is read */
    return err_sys(e, rc, "what is said to it");
}
