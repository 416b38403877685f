/* Reading gzipped bytes. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* By its first bytes, so that a file may have any name. */
bool gzip_is(const void *bytes, size_t len);

/* Appends what they unpack to, of all streams that follow each other. `name` is for the words. -EINVAL: damaged, cut short, or followed by
 * something else; -EFBIG: more than `max` bytes come of it; -ENOMEM. *out may hold a part then. */
int gzip_unpack(struct buf *out, const char *name, const void *bytes, size_t len, size_t max, struct err *e);

#endif
