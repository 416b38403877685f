/* The connections of the server, and how long each may take: whoever asks slowly, reads slowly, or says nothing at all has a bounded
 * share, and cannot keep others out. From any thread; a connection that is over its time is shut down, and goes when the server's
 * library has seen that. */
#ifndef SERVE_HTTP_CONNS_H
#define SERVE_HTTP_CONNS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_CONNS_MAX = 256,
    HTTP_WAITING_MAX = 128, /* beyond it, the one that has waited longest goes */
    HTTP_STREAMS_MAX = 32,
    HTTP_ASK_MS = 10000,     /* from the connection, or the last answer, to a whole request */
    HTTP_ANSWER_MS = 120000, /* from there to the last byte of the answer */
};

enum http_doing { HTTP_NOTHING, HTTP_ASKS, HTTP_ANSWERED, HTTP_FOLLOWS };

struct http_conn {
    enum http_doing doing; /* HTTP_NOTHING: the place is free */
    int fd;
    int64_t since_ms;
};

struct http_conns {
    pthread_mutex_t lock;
    struct http_conn v[HTTP_CONNS_MAX];
};

int http_conns_init(struct http_conns *c); /* 0 or -errno */
void http_conns_done(struct http_conns *c);

/* NULL: there is no place. */
struct http_conn *http_conns_add(struct http_conns *c, int fd, int64_t now_ms);
void http_conns_drop(struct http_conns *c, struct http_conn *one);

/* What it does from now on. -1: there are as many that follow as there may be, and it stays what it was. */
int http_conns_turn(struct http_conns *c, struct http_conn *one, enum http_doing doing, int64_t now_ms);

void http_conns_end(struct http_conns *c, const struct http_conn *one); /* shuts it down */

/* Shuts down what is over its time; how many that were. */
size_t http_conns_sweep(struct http_conns *c, int64_t now_ms);

size_t http_conns_count(struct http_conns *c, enum http_doing doing);

#endif
