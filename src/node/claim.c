#include "node/claim.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

enum { WAIT_MS = 5000, LOOK_EVERY_MS = 20 };

struct name {
    struct sockaddr_un address;
    socklen_t len;
};

static struct name name_of(const char *tag)
{
    struct name n = { .address.sun_family = AF_UNIX };
    int len =
        snprintf(n.address.sun_path + 1, sizeof n.address.sun_path - 1, "pipetune-serve-%ld-%s", (long)geteuid(), tag);
    n.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len); /* a tag is at most 64 characters */
    return n;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The pid of who listens, when it is of our uid; 0 when it is not, or nobody does now. */
static pid_t holder(const struct name *n)
{
    AUTO_CLOSE int fd = open_socket();
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof peer;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&n->address, n->len) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid() || peer.pid == getpid())
        return 0;
    return peer.pid;
}

int claim_take(const char *tag, int *out, struct err *e)
{
    struct name n = name_of(tag);
    AUTO_CLOSE int fd = open_socket();
    pid_t other = 0;
    *out = -1;
    if (fd < 0)
        return 0;
    for (int64_t until = clock_ms() + WAIT_MS; bind(fd, (const struct sockaddr *)&n.address, n.len) < 0;) {
        pid_t now = errno == EADDRINUSE ? holder(&n) : 0;
        if (now <= 0 && other == 0)
            return 0;
        if (now > 0 && now != other)
            (void)kill(now, SIGTERM); /* it listens, so it is that process still */
        other = now > 0 ? now : other;
        if (clock_ms() >= until)
            return err_set(e, -EBUSY, "launch '%s' is in the hands of process %ld, which does not end", tag,
                           (long)other);
        (void)poll(NULL, 0, LOOK_EVERY_MS);
    }
    if (listen(fd, 8) < 0)
        return 0; /* the name is free again as this is closed */
    *out = MOVE_FD(fd);
    return 0;
}
