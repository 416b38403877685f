/* Where a Unix socket of ours lies: "TAG.sock" in a folder that is ours alone and whose path is short enough. */
#ifndef BASE_SOCKET_PATH_H
#define BASE_SOCKET_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* $XDG_RUNTIME_DIR/pipetune, or /tmp/pipetune-UID where there is no such folder or its path is too long; made when absent. `tag` has no
 * '/'. Free *out. -EPERM: the folder is not ours alone; -ENAMETOOLONG; -ENOMEM; -errno. */
int socket_path(char **out, const char *tag, struct err *e);

/* The folders in which such sockets may lie; false: there is no such one. */
bool socket_path_runtime(char *out, size_t size);
void socket_path_tmp(char *out, size_t size);

#endif
