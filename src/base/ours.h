/* Folders and files that are ours alone: what stands beside a store decides which processes are signalled, which files are appended to
 * and which checkpoints are read, so nobody else may have made it. Nothing here follows a link in the last component; each folder
 * below the store's own is to be checked in its turn, from above.
 *
 * Ours is what belongs to our effective uid. What others may read or write is tightened (earlier versions left folders 0755), and
 * refused where the file system does not take that and others could still write. */
#ifndef BASE_OURS_H
#define BASE_OURS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Makes the folder with mode 0700, or checks the one that is there. -EPERM: a link, no folder, or another user's. */
int ours_dir(const char *path, struct err *e);

/* The same of one that must be there. */
int ours_dir_check(const char *path, struct err *e);

/* Opens a plain file with these flags; with O_CREAT it is made with mode 0600. The descriptor; -EPERM: a link, no plain file, or
 * another user's; -errno. */
int ours_open(const char *path, int flags, struct err *e);

/* Appends the whole file; as ours_open and io_read_file. */
int ours_read(struct buf *out, const char *path, size_t max, struct err *e);

/* Is it there, ours, and a plain file or folder and no link? Nothing is changed. */
bool ours_is_file(const char *path);
bool ours_is_dir(const char *path);

#endif
