/* One small answer over HTTP, by libcurl. */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include "base/buf.h"
#include "base/err.h"

/* GETs `url` and appends the body (at most `max` bytes) within timeout_ms; only answers of 200 count. Blocks: not for the
 * loop. -EHOSTUNREACH when nobody answered, -EPROTO for another status or a larger body; the message names the cause. */
int http_get(struct buf *out, const char *url, size_t max, long timeout_ms, struct err *e);

#endif
