/* One small question over HTTP, by libcurl. */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct http_ask {
    const char *method, *url;
    const char *type; /* of the body; NULL: there is none */
    const char *body;
    size_t body_len;
    const char *token;   /* "Bearer"; NULL: none. Only with https, else -EACCES */
    const char *ca_file; /* whom an https server's certificate is of; NULL: whom the system trusts */
    size_t max;          /* bytes of the answer */
    long timeout_ms;
};

/* Appends the body of the answer to *out, whatever its status. Blocks: not for the loop. -EHOSTUNREACH when nobody answered, -EPROTO for a larger
 * body, -EACCES, -ENOMEM; the message names the cause, and never the token. */
int http_ask(struct buf *out, int *out_status, const struct http_ask *ask, struct err *e);

#endif
