/* Files, whole and safely: the few patterns of I/O that everything above uses. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the whole file; -EFBIG beyond `max` bytes, -errno otherwise. */
int io_read_file(struct buf *out, const char *path, size_t max, struct err *e);

/* The same of an open file; `path` is for the words. */
int io_read_fd(struct buf *out, int fd, const char *path, size_t max, struct err *e);

/* As much as there is up to the file's end, `room` bytes at most: how much that was, or -errno. */
ssize_t io_read_some(int fd, void *to, size_t room);

/* Writes all of it, whatever the kernel takes at once. 0 or -errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/* Replaces `path` by these bytes so that a reader, and a power cut, see the old file or the new one: a temporary file in
 * the same folder, fsync, rename, fsync of the folder. */
int io_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, struct err *e);

/* Makes `path` and its parents (mode 0777 less the umask); fine when they exist. */
int io_mkdirs(const char *path, struct err *e);

bool io_exists(const char *path);
bool io_is_dir(const char *path);

/* "dir/name", or `name` when it is absolute. NULL when memory is out. */
char *io_join(const char *dir, const char *name);

/* The folder part of `path` ("." when there is none). NULL when memory is out. */
char *io_dirname(const char *path);

/* `path` made absolute by the working directory, "." and ".." resolved by text alone, so that it may not exist yet. */
char *io_absolute(const char *path);

#endif
