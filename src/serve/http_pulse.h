/* Who follows, and the thread that writes to them. A follower belongs to the pulse; the server's library holds it by the two callbacks
 * below, and says when it has let go. */
#ifndef SERVE_HTTP_PULSE_H
#define SERVE_HTTP_PULSE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "serve/http_conns.h"
#include "serve/http_server.h"

struct http_follower;

struct http_pulse {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct http_follower *first;
    struct http_conns *conns;
    const struct http_follow *follow;
    void *ctx;
    bool stops, started;
};

int http_pulse_start(struct http_pulse *p, struct http_conns *conns, const struct http_follow *follow, void *ctx);
void http_pulse_stop(struct http_pulse *p); /* zeroed is fine; all streams end */
void http_pulse_done(struct http_pulse *p); /* after the library has let go of them */

/* Takes the request when it succeeds. NULL: out of memory, or the pulse stops. */
struct MHD_Response *http_pulse_add(struct http_pulse *p, struct MHD_Connection *c, struct http_conn *conn,
                                    struct http_request *q);

#endif
