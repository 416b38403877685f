#include "node/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/own.h"

enum { NS = 1000000000 };

static int open_below(const char *dir, const char *name, struct err *e)
{
    AUTO_CLOSE int at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = at < 0 ? -errno : beneath_open(at, name, O_RDONLY);
    if (fd == -ELOOP)
        return err_set(e, fd, "'%s' is a link, or below one: links are not followed", name);
    return fd < 0 ? err_sys(e, fd, "'%s'", name) : fd;
}

static int put_file(struct buf *out, const struct stat *st, const char *name)
{
    if (out->len + strlen(name) + 64 > FOLDER_LIST_MAX)
        return -E2BIG;
    buf_printf(out, "%" PRId64 " %" PRId64 " %s", (int64_t)st->st_size,
               (int64_t)st->st_mtim.tv_sec * NS + st->st_mtim.tv_nsec, name);
    buf_putc(out, '\0');
    return out->failed ? -ENOMEM : 0;
}

static int list(int dir, const char *prefix, int depth, struct buf *out);

static int list_one(int dir, const char *prefix, const char *name, int depth, struct buf *out)
{
    char path[BENEATH_NAME_MAX + 1];
    struct stat st;
    if (snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "/" : "", name) >= (int)sizeof path ||
        !beneath_is_name(path))
        return -EINVAL;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno; /* it has gone meanwhile */
    if (S_ISREG(st.st_mode))
        return put_file(out, &st, path);
    if (!S_ISDIR(st.st_mode))
        return -ELOOP;
    if (depth == FOLDER_DEPTH_MAX)
        return -E2BIG;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : list(fd, path, depth + 1, out);
}

/* Takes `dir`. */
static int list(int dir, const char *prefix, int depth, struct buf *out)
{
    int rc = 0;
    DIR *d = fdopendir(dir);
    if (!d) {
        rc = -errno;
        (void)close(dir);
    }
    for (struct dirent *entry; rc == 0 && (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = list_one(dirfd(d), prefix, entry->d_name, depth, out);
    if (d)
        (void)closedir(d);
    return rc;
}

int folder_list(const char *dir, const char *name, struct buf *out, struct err *e)
{
    struct stat st;
    AUTO_CLOSE int fd = open_below(dir, name, e);
    if (fd < 0)
        return fd;
    int rc = fstat(fd, &st) < 0 ? -errno : -ELOOP;
    if (rc == -ELOOP && S_ISREG(st.st_mode))
        rc = put_file(out, &st, "");
    else if (rc == -ELOOP && S_ISDIR(st.st_mode))
        rc = list(MOVE_FD(fd), "", 0, out);
    if (rc == -ELOOP)
        return err_set(e, rc, "'%s' has something else than files and folders, which is not fetched", name);
    return rc < 0 ? err_sys(e, rc, "'%s'", name) : 0;
}

int folder_read(const char *dir, const char *name, int64_t from, size_t n, struct buf *out, struct err *e)
{
    char chunk[FOLDER_READ_MAX];
    struct stat st;
    AUTO_CLOSE int fd = open_below(dir, name, e);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -EINVAL, "'%s' is no plain file", name);
    ssize_t got = pread(fd, chunk, n < sizeof chunk ? n : sizeof chunk, (off_t)from);
    if (got < 0)
        return err_sys(e, -errno, "'%s'", name);
    buf_put(out, chunk, (size_t)got);
    return out->failed ? err_sys(e, -ENOMEM, "'%s'", name) : 0;
}
