/* A request's texts. */
#ifndef SERVE_HTTP_REQUEST_H
#define SERVE_HTTP_REQUEST_H

#include "serve/http_server.h"

static inline void http_request_done(struct http_request *q)
{
    http_path_done(&q->path);
    http_pairs_done(&q->query);
    http_pairs_done(&q->form);
    free(q->last_event);
    q->last_event = NULL;
}

#endif
