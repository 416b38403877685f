/* What is in a launch's folder, for the driver to fetch: by names below it, without following a link (base/beneath.h). */
#ifndef NODE_FOLDER_H
#define NODE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { FOLDER_LIST_MAX = 32 << 10, FOLDER_READ_MAX = 32 << 10, FOLDER_DEPTH_MAX = 8 };

/* Appends a text, with its NUL, for each file of `name`, which is a file or a folder: "SIZE MTIME_NS NAME", where NAME is below `name`, and ""
 * for a file itself. -ELOOP: there is a link; -E2BIG: FOLDER_LIST_MAX, FOLDER_DEPTH_MAX; -EINVAL: no such name; -errno. */
int folder_list(const char *dir, const char *name, struct buf *out, struct err *e);

/* Appends at most `n` bytes of the file, from `from` on; fewer, or none, at its end. */
int folder_read(const char *dir, const char *name, int64_t from, size_t n, struct buf *out, struct err *e);

#endif
