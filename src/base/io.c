#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

ssize_t io_read_some(int fd, void *to, size_t room)
{
    size_t n = 0;
    while (n < room) {
        ssize_t got = read(fd, (char *)to + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int io_read_fd(struct buf *out, int fd, const char *path, size_t max, struct err *e)
{
    size_t start = out->len;
    char chunk[16384];
    ssize_t n;
    while ((n = io_read_some(fd, chunk, sizeof chunk)) > 0) {
        if (out->len - start + (size_t)n > max)
            return err_set(e, -EFBIG, "cannot read '%s': larger than %zu bytes", path, max);
        buf_put(out, chunk, (size_t)n);
    }
    if (n < 0)
        return err_sys(e, (int)n, "cannot read '%s'", path);
    return out->failed ? err_sys(e, -ENOMEM, "cannot read '%s'", path) : 0;
}

int io_read_file(struct buf *out, const char *path, size_t max, struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, -errno, "cannot read '%s'", path) : io_read_fd(out, fd, path, max, e);
}

int io_write_all(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int sync_dir_of(const char *path)
{
    AUTO_FREE char *dir = io_dirname(path);
    if (!dir)
        return -ENOMEM;
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fsync(fd) < 0 ? -errno : 0;
}

static int write_synced(const char *path, const void *bytes, size_t len, mode_t mode)
{
    (void)unlink(path); /* of a process of our number that was killed; a link that waits there is not followed */
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int rc = io_write_all(fd, bytes, len);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    return rc;
}

int io_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, struct err *e)
{
    AUTO_FREE char *tmp = NULL;
    if (asprintf(&tmp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        tmp = NULL;
        return err_sys(e, -ENOMEM, "cannot write '%s'", path);
    }
    int rc = write_synced(tmp, bytes, len, mode);
    if (rc == 0 && rename(tmp, path) < 0)
        rc = -errno;
    if (rc < 0) {
        (void)unlink(tmp); /* best effort: the old file stands either way */
        return err_sys(e, rc, "cannot write '%s'", path);
    }
    rc = sync_dir_of(path);
    return rc < 0 ? err_sys(e, rc, "cannot sync the folder of '%s'", path) : 0;
}

int io_mkdirs(const char *path, struct err *e)
{
    AUTO_FREE char *copy = strdup(path);
    if (!copy)
        return err_sys(e, -ENOMEM, "cannot create folder '%s'", path);
    for (char *slash = copy + (*copy != 0);; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        char was = *slash;
        *slash = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            return err_sys(e, -errno, "cannot create folder '%s'", copy);
        if (was == '\0')
            break;
        *slash = was;
    }
    return io_is_dir(path) ? 0 : err_sys(e, -ENOTDIR, "cannot create folder '%s'", path);
}

bool io_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool io_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *io_join(const char *dir, const char *name)
{
    if (*name == '/')
        return strdup(name);
    char *path = NULL;
    size_t len = strlen(dir);
    if (asprintf(&path, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name) < 0)
        return NULL;
    return path;
}

char *io_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Takes the last component off the absolute path in `b`, never the root. */
static void drop_last(struct buf *b)
{
    while (b->len > 1 && b->data[b->len - 1] != '/')
        b->data[--b->len] = '\0';
    if (b->len > 1)
        b->data[--b->len] = '\0';
}

char *io_absolute(const char *path)
{
    AUTO_FREE char *cwd = *path == '/' ? strdup("/") : getcwd(NULL, 0);
    AUTO_FREE char *joined = cwd ? io_join(cwd, path) : NULL;
    if (!joined)
        return NULL;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_putc(&b, '/');
    char *save = NULL;
    for (char *part = strtok_r(joined, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            drop_last(&b);
            continue;
        }
        if (b.len > 1)
            buf_putc(&b, '/');
        buf_puts(&b, part);
    }
    return buf_take(&b);
}
