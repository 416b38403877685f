/* Bytes as text of 64 characters (RFC 4648, with padding): how a blob travels in a line of JSON. Pure. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

#include "base/buf.h"

/* Appends. */
void base64_put(struct buf *to, const void *bytes, size_t len);

/* Appends the bytes that `text` stands for. -EINVAL: it is no such text, or has bits behind the last byte; -ENOMEM. `to` is as it
 * was then. */
int base64_read(struct buf *to, const char *text);

#endif
