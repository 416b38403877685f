/* Line protocol in datagrams: out to a Telegraf (socket_listener), in from applications. Nobody answers a datagram. */
#ifndef MONITORING_UDP_H
#define MONITORING_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "monitoring/line.h"

enum {
    UDP_PAYLOAD = 1432, /* fits an Ethernet frame under IPv4 and IPv6, with a tunnel's head to spare */
    UDP_READ_MAX = 64,  /* datagrams that one udp_in_read() takes, so that a flood does not hold the loop */
};

/* --- out --- */

struct udp_out {
    int fd;
    size_t payload; /* bytes of a datagram at most */
};

/* How many lines went out, and how many are longer than a datagram and did not. */
struct udp_sent {
    uint64_t lines, too_long, datagrams;
};

/* Has it the form that udp_out_open() takes? Asks nobody. -EINVAL. */
int udp_check_url(const char *url, struct err *e);

/* "udp://HOST:PORT" ("udp://[::1]:8094"); `payload` 0: UDP_PAYLOAD. Asks DNS: blocks. -EINVAL, -EHOSTUNREACH, -errno. */
int udp_out_open(struct udp_out *out, const char *url, size_t payload, struct err *e);
void udp_out_done(struct udp_out *u);

/* Packs whole lines into datagrams. -errno (-ECONNREFUSED: this machine's own port is closed): some may have gone; *out says how
 * far it came either way. */
int udp_out_send(struct udp_out *u, const char *lines, size_t len, struct udp_sent *out, struct err *e);

/* --- in --- */

struct udp_in {
    int fd; /* to be watched for reading */
    uint16_t port;
    uint64_t datagrams, lines, rejected; /* so far; rejected: lines that are no line protocol, datagrams cut short */
    char why[256];                       /* of the newest one rejected */
};

/* Binds; NULL for 127.0.0.1, port 0 for a free one. `address` is a number: no DNS. -EINVAL, -EADDRINUSE, -errno. */
int udp_in_open(struct udp_in *out, const char *address, uint16_t port, struct err *e);
void udp_in_done(struct udp_in *u);

/* Reads what is there, at most UDP_READ_MAX datagrams, and hands over each point; it is valid during the call only. Never blocks.
 * Returns the number of datagrams; -errno. */
int udp_in_read(struct udp_in *u, void (*on)(void *ctx, const struct line_point *pt), void *ctx, struct err *e);

#endif
