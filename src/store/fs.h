/* Which file system a file is on: SQLite's locks and shared memory do not hold on network ones. */
#ifndef STORE_FS_H
#define STORE_FS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { FS_TYPE_MAX = 64 };

/* The network file system's name ("NFS", "SMB", …); NULL: a local one as far as one can tell. `f_type` as statfs(2) gives it,
 * `fuse_type` as mountinfo has it ("fuse.sshfs"), NULL when there is none. Pure. */
const char *fs_network_kind(unsigned long f_type, const char *fuse_type);

/* The file system type of the mount with this device number in the text of /proc/self/mountinfo, the newest such mount. 0, or
 * -ENOENT when there is none. Pure. */
int fs_mount_type(const char *mountinfo, dev_t dev, char out[FS_TYPE_MAX]);

/* The type of the mount that `path` is on, as `mount` would say ("ext4", "fuse.sshfs"); -errno. */
int fs_type(const char *path, char out[FS_TYPE_MAX], struct err *e);

/* As fs_network_kind for the file system that `path` is on, which must exist; 0 or -errno. */
int fs_network(const char *path, const char **out_kind, struct err *e);

#endif
