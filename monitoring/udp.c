#include "monitoring/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

/* --- out --- */

/* "udp://HOST:PORT" in its parts. */
static int split_url(const char *url, char host[256], char port[8], struct err *e)
{
    static const char scheme[] = "udp://";
    const char *at = strncmp(url, scheme, strlen(scheme)) == 0 ? url + strlen(scheme) : "";
    bool brackets = *at == '[';
    const char *end = brackets ? strchr(at, ']') : strrchr(at, ':');
    const char *colon = brackets && end ? end + 1 : end;
    at += brackets;
    size_t len = end ? (size_t)(end - at) : 0;
    bool whole = colon && *colon == ':' && len > 0 && len < 256;
    size_t digits = whole ? strspn(colon + 1, "0123456789") : 0;
    if (!whole || digits == 0 || digits > 5 || colon[1 + digits] != '\0')
        return err_set(e, -EINVAL, "'%s' must be udp://HOST:PORT", url);
    (void)snprintf(host, 256, "%.*s", (int)len, at);
    (void)snprintf(port, 8, "%s", colon + 1);
    return 0;
}

int udp_check_url(const char *url, struct err *e)
{
    char host[256], port[8];
    return split_url(url, host, port, e);
}

static int connect_first(const struct addrinfo *list)
{
    int rc = -EHOSTUNREACH;
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        AUTO_CLOSE int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            return MOVE_FD(fd);
        rc = -errno;
    }
    return rc;
}

int udp_out_open(struct udp_out *out, const char *url, size_t payload, struct err *e)
{
    char host[256], port[8];
    int rc = split_url(url, host, port, e);
    if (rc < 0)
        return rc;
    struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV }, *list = NULL;
    int gai = getaddrinfo(host, port, &hints, &list);
    if (gai != 0)
        return err_set(e, -EHOSTUNREACH, "'%s': %s", url, gai_strerror(gai));
    rc = connect_first(list);
    freeaddrinfo(list);
    if (rc < 0)
        return err_sys(e, rc, "'%s'", url);
    *out = (struct udp_out){ .fd = rc, .payload = payload ? payload : UDP_PAYLOAD };
    return 0;
}

void udp_out_done(struct udp_out *u)
{
    if (u && u->fd > 0)
        (void)close(u->fd); /* datagrams are gone, or not, already */
    if (u)
        u->fd = -1;
}

/* A datagram that is being filled: the bytes from `begin` to `end`. */
struct packet {
    const char *begin, *end;
    uint64_t lines;
};

static int flush(const struct udp_out *u, struct packet *p, struct udp_sent *sent)
{
    ssize_t n;
    if (p->lines == 0)
        return 0;
    do
        n = send(u->fd, p->begin, (size_t)(p->end - p->begin), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    sent->datagrams++;
    sent->lines += p->lines;
    p->lines = 0;
    return 0;
}

int udp_out_send(struct udp_out *u, const char *lines, size_t len, struct udp_sent *out, struct err *e)
{
    *out = (struct udp_sent){ 0 };
    struct packet p = { .begin = lines, .end = lines };
    int rc = 0;
    for (const char *at = lines, *next; rc == 0 && at < lines + len; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(lines + len - at));
        next = newline ? newline + 1 : lines + len;
        bool too_long = (size_t)(next - at) > u->payload;
        if (too_long || (size_t)(next - p.begin) > u->payload) {
            rc = flush(u, &p, out);
            p.begin = too_long ? next : at;
        }
        p.end = next;
        p.lines += !too_long;
        out->too_long += too_long;
    }
    if (rc == 0)
        rc = flush(u, &p, out);
    return rc < 0 ? err_sys(e, rc, "cannot send a datagram") : 0;
}

/* --- in --- */

static int bind_to(struct udp_in *u, struct sockaddr *a, socklen_t len)
{
    AUTO_CLOSE int fd = socket(a->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, a, len) < 0 || getsockname(fd, a, &len) < 0)
        return -errno;
    *u = (struct udp_in){ .port = ntohs(a->sa_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)a)->sin6_port
                                                                 : ((struct sockaddr_in *)(void *)a)->sin_port) };
    u->fd = MOVE_FD(fd);
    return 0;
}

int udp_in_open(struct udp_in *out, const char *address, uint16_t port, struct err *e)
{
    address = address ? address : "127.0.0.1";
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    int rc;
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        rc = bind_to(out, (struct sockaddr *)&v4, sizeof v4);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        rc = bind_to(out, (struct sockaddr *)&v6, sizeof v6);
    else
        return err_set(e, -EINVAL, "'%s' is no address of this machine, like 127.0.0.1 or ::1", address);
    return rc < 0 ? err_sys(e, rc, "cannot listen on udp %s port %u", address, port) : 0;
}

void udp_in_done(struct udp_in *u)
{
    if (u && u->fd > 0)
        (void)close(u->fd); /* read only */
    if (u)
        u->fd = -1;
}

static void take_line(struct udp_in *u, struct line_point *pt, char *text, size_t len,
                      void (*on)(void *ctx, const struct line_point *pt), void *ctx)
{
    struct err e = { 0 };
    if (len && text[len - 1] == '\r')
        text[--len] = '\0';
    if (len == 0)
        return;
    if (line_parse(pt, text, len, &e) < 0) {
        u->rejected++;
        (void)snprintf(u->why, sizeof u->why, "%.250s", e.text);
        return;
    }
    u->lines++;
    on(ctx, pt);
}

static void take_datagram(struct udp_in *u, struct line_point *pt, char *text, size_t len,
                          void (*on)(void *ctx, const struct line_point *pt), void *ctx)
{
    text[len] = '\0';
    for (char *at = text, *end = text + len; at < end;) {
        char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        *stop = '\0';
        take_line(u, pt, at, (size_t)(stop - at), on, ctx);
        at = stop + 1;
    }
}

int udp_in_read(struct udp_in *u, void (*on)(void *ctx, const struct line_point *pt), void *ctx, struct err *e)
{
    struct scratch {
        struct line_point pt;
        char text[LINE_BYTES_MAX + 1];
    } *s = malloc(sizeof *s); /* too large for a stack, and nothing to keep */
    if (!s)
        return err_sys(e, -ENOMEM, "udp input");
    int n = 0, rc = 0;
    while (n < UDP_READ_MAX) {
        ssize_t got = recv(u->fd, s->text, LINE_BYTES_MAX, MSG_TRUNC);
        if (got < 0 && (errno == EINTR || errno == ECONNREFUSED))
            continue;
        if (got < 0) {
            rc = errno == EAGAIN || errno == EWOULDBLOCK ? 0 : err_sys(e, -errno, "udp input");
            break;
        }
        n++;
        u->datagrams++;
        if (got > LINE_BYTES_MAX) {
            u->rejected++;
            (void)snprintf(u->why, sizeof u->why, "a datagram of %zd bytes", got);
            continue;
        }
        take_datagram(u, &s->pt, s->text, (size_t)got, on, ctx);
    }
    free(s);
    return rc < 0 ? rc : n;
}
