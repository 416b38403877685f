/* "HOST:PORT" as a socket that listens. */
#ifndef SERVE_HTTP_LISTEN_H
#define SERVE_HTTP_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

struct http_listen {
    int fd;         /* the caller's */
    bool loopback;  /* nobody else's machine can reach it */
    char name[128]; /* "127.0.0.1:8720", as a browser is told it: the port that it has */
};

/* A host is an address or a name of this machine; IPv6 in brackets; port 0: any that is free. -EINVAL; what the system says, with what to
 * do about it. */
int http_listen(struct http_listen *out, const char *where, struct err *e);

#endif
