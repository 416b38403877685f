#include "base/ours.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

enum { OTHERS = 077, OTHERS_WRITE = 022 };

static int refuse(const char *path, const char *kind, struct err *e)
{
    return err_set(e, -EPERM, "'%s' is no %s of yours, but a link or something else: move it away, then run again",
                   path, kind);
}

/* It is open and of the right kind: is it ours, and no one else's? */
static int take(int fd, const struct stat *st, const char *path, struct err *e)
{
    if (st->st_uid != geteuid())
        return err_set(e, -EPERM,
                       "'%s' belongs to user %ld, not to you (%ld): move it away, or name a store elsewhere by --store",
                       path, (long)st->st_uid, (long)geteuid());
    if (!(st->st_mode & OTHERS) || fchmod(fd, st->st_mode & 07777 & ~(mode_t)OTHERS) == 0 ||
        !(st->st_mode & OTHERS_WRITE))
        return 0;
    return err_sys(e, -errno, "'%s' can be written by others, and its mode cannot be changed", path);
}

int ours_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "cannot create folder '%s'", path);
    return ours_dir_check(path, e);
}

int ours_dir_check(const char *path, struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return refuse(path, "folder", e);
    if (fd < 0 && errno == EACCES &&
        lstat(path, &st) == 0) /* another's, as a rule; of ours with mode 0 the cause is told */
        return st.st_uid == geteuid() ? err_sys(e, -EACCES, "cannot open '%s'", path) : take(-1, &st, path, e);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot open '%s'", path);
    return take(fd, &st, path, e);
}

int ours_open(const char *path, int flags, struct err *e)
{
    /* Not waiting for whoever opens the other end, should it be a pipe; a plain file does not care. */
    AUTO_CLOSE int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    struct stat st;
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        return refuse(path, "file", e);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return refuse(path, "file", e);
    int rc = take(fd, &st, path, e);
    return rc < 0 ? rc : MOVE_FD(fd);
}

int ours_read(struct buf *out, const char *path, size_t max, struct err *e)
{
    AUTO_CLOSE int fd = ours_open(path, O_RDONLY, e);
    return fd < 0 ? fd : io_read_fd(out, fd, path, max, e);
}

bool ours_is_file(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

bool ours_is_dir(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}
