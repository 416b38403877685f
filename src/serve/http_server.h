/* A small web server on threads of its own, by libmicrohttpd: it lets in whom http_gate lets, bounds what anybody may hold
 * (http_conns.h), finds the row of what is asked, and has it answered:
 *
 *   HTTP_AT_ONCE   by the server's own thread: what needs neither a disk nor time
 *   HTTP_BY_PAGES  one after the other, by a thread that has the store
 *   HTTP_BY_ASKING one after the other, by a thread that may wait for other programs
 *   HTTP_FOLLOW    a stream of events that the pulse writes to, each HTTP_BEAT_MS
 *
 * Whatever is asked beyond what may wait is told to come back (503). */
#ifndef SERVE_HTTP_SERVER_H
#define SERVE_HTTP_SERVER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "serve/http_gate.h"
#include "serve/http_listen.h"
#include "serve/http_route.h"

enum {
    HTTP_BEAT_MS = 250,
    HTTP_FORM_MAX = 16 * 1024,      /* bytes of what is posted */
    HTTP_PENDING_MAX = 1024 * 1024, /* that a follower has not read yet: then it has left */
};

struct http_request {
    struct http_path path;
    struct http_pairs query, form;
    char *last_event; /* what a follower has seen; NULL: nothing */
    const struct http_gate *gate;
};

struct http_answer {
    unsigned status;                 /* 200 unless it is set */
    const char *type;                /* static; text/html unless it is set */
    bool keep;                       /* may be kept by the browser: an asset */
    char *location;                  /* owned; NULL: none */
    char cookie[256];                /* "": none */
    char log_from[24], log_size[24]; /* of a piece of a log: X-Log-From, X-Log-Size; "": none */
    struct buf body;
};

enum http_by { HTTP_AT_ONCE, HTTP_BY_PAGES, HTTP_BY_ASKING, HTTP_FOLLOW };

struct http_route {
    const char *method, *pattern; /* http_path_is() */
    enum http_by by;
    bool open; /* for those, too, who have not shown the token */
    void (*answer)(void *ctx, const struct http_request *q, struct http_answer *out);
};

/* Who follows: all of it from one thread, the pulse. */
struct http_follow {
    void *(*open)(void *ctx, const struct http_request *q);             /* NULL: out of memory */
    bool (*begin)(void *ctx);                                           /* each beat: is there news at all? */
    int (*beat)(void *ctx, void *follower, bool news, struct buf *out); /* negative: it has seen enough */
    void (*close)(void *ctx, void *follower);
};

struct http_server;

struct http_server_options {
    struct http_gate gate;            /* copied */
    const struct http_route *routes;  /* kept; ends with a NULL method */
    const struct http_follow *follow; /* kept */
    /* A page that says no: `status` and a line why. */
    void (*refuse)(void *ctx, unsigned status, const char *why, struct http_answer *out);
    void *ctx;
};

/* Takes the listening descriptor, also after a failure. */
int http_server_start(struct http_server **out, int listen_fd, const struct http_server_options *o, struct err *e);
void http_server_stop(struct http_server *s); /* NULL is fine; waits for what is being answered */

#endif
