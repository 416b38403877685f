#include "base/socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

static bool fits(const char *path)
{
    return strlen(path) < sizeof((struct sockaddr_un *)0)->sun_path;
}

/* Makes the folder where it is absent; one that others can write to, or that is a link, is not ours. */
static int own_folder(const char *path, struct err *e)
{
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "cannot create folder '%s'", path);
    if (lstat(path, &st) < 0)
        return err_sys(e, -errno, "cannot look at '%s'", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0777) != 0700)
        return err_set(e, -EPERM, "'%s' is no folder of yours with mode 0700: remove it, or set XDG_RUNTIME_DIR", path);
    return 0;
}

static int path_in(char **out, const char *folder, const char *tag, struct err *e)
{
    AUTO_BUF struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s.sock", folder, tag);
    if (path.failed)
        return err_sys(e, -ENOMEM, "the path of a socket");
    if (!fits(buf_text(&path)))
        return err_sys(e, -ENAMETOOLONG, "'%s'", buf_text(&path));
    int rc = own_folder(folder, e);
    if (rc == 0)
        *out = buf_take(&path);
    return rc;
}

/* The user's own folder for such things, where there is one. */
bool socket_path_runtime(char *out, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    return runtime && *runtime == '/' && io_is_dir(runtime) && snprintf(out, size, "%s/pipetune", runtime) < (int)size;
}

void socket_path_tmp(char *out, size_t size)
{
    (void)snprintf(out, size, "/tmp/pipetune-%ld", (long)geteuid());
}

int socket_path(char **out, const char *tag, struct err *e)
{
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    int rc = -ENAMETOOLONG;
    if (socket_path_runtime(folder, sizeof folder))
        rc = path_in(out, folder, tag, e);
    if (rc != -ENAMETOOLONG)
        return rc;
    socket_path_tmp(folder, sizeof folder);
    return path_in(out, folder, tag, e);
}
