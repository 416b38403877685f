/* The page of a store: a web server on threads of its own, with connections to the store of its own that only read. It shares nothing with
 * the rest of the process but the path. */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "base/err.h"

struct page;

struct page_options {
    const char *store;      /* path; there may be no store yet */
    const char *listen;     /* "127.0.0.1:8720" */
    const char *token_file; /* NULL: none, which only loopback may do without */
};

/* -EINVAL: nowhere to listen, or no token where one must be; what opening a socket, or reading the token, says. All is copied. */
int page_start(struct page **out, const struct page_options *o, struct err *e);
const char *page_address(const struct page *p); /* "127.0.0.1:8720": the port that it has */
void page_stop(struct page *p);                 /* NULL is fine; ends what is being answered */

#endif
