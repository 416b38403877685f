#include "serve/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"

enum { BACKLOG = 128, HOST_MAX = 256 };

static int split(const char *where, char host[HOST_MAX], const char **port, struct err *e)
{
    const char *colon = strrchr(where, ':');
    bool bracket = *where == '[' && colon && colon > where && colon[-1] == ']';
    size_t len = colon ? (size_t)(colon - where) : 0;
    char *end = NULL;
    long n = colon && colon[1] ? strtol(colon + 1, &end, 10) : -1;
    if (len == 0 || len >= HOST_MAX || n < 0 || n > 65535 || *end)
        return err_set(e, -EINVAL, "'%.200s' is no HOST:PORT, as in 127.0.0.1:8720", where);
    if (!bracket && memchr(where, ':', len))
        return err_set(e, -EINVAL, "'%.200s': an IPv6 address stands in brackets, as in [::1]:8720", where);
    (void)snprintf(host, HOST_MAX, "%.*s", (int)(bracket ? len - 2 : len), where + bracket);
    *port = colon + 1;
    return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* The address that it has come to listen on. */
static int name_it(struct http_listen *l, struct err *e)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char host[64], port[16];
    if (getsockname(l->fd, (struct sockaddr *)&a, &len) < 0)
        return err_sys(e, -errno, "cannot listen");
    if (getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return err_set(e, -EINVAL, "cannot listen: the address has no name");
    (void)snprintf(l->name, sizeof l->name, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    l->loopback = is_loopback((struct sockaddr *)&a);
    return 0;
}

static int listen_on(const struct addrinfo *a, int *out)
{
    AUTO_CLOSE int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    if (fd < 0)
        return -errno;
    /* The port of a server that was killed is free at once. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0)
        return -errno;
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *out = MOVE_FD(fd);
    return 0;
}

static int explain(int rc, const char *where, struct err *e)
{
    if (rc == -EADDRINUSE)
        return err_set(e, -ENOTUNIQ, "cannot listen on %s: somebody does already; choose another port by --listen",
                       where);
    if (rc == -EADDRNOTAVAIL)
        return err_set(e, -EINVAL, "cannot listen on %s: this machine has no such address", where);
    return err_sys(e, rc, "cannot listen on %s", where);
}

int http_listen(struct http_listen *out, const char *where, struct err *e)
{
    struct http_listen l = { .fd = -1 };
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *found = NULL;
    char host[HOST_MAX];
    const char *port = "";
    int rc = split(where, host, &port, e);
    if (rc < 0)
        return rc;
    int why = getaddrinfo(host, port, &hints, &found);
    if (why != 0)
        return err_set(e, -EINVAL, "cannot listen on %s: %s", where, gai_strerror(why));
    rc = listen_on(found, &l.fd);
    freeaddrinfo(found);
    if (rc < 0)
        return explain(rc, where, e);
    rc = name_it(&l, e);
    if (rc < 0)
        (void)close(l.fd); /* nothing came to it */
    else
        *out = l;
    return rc;
}
