#include "node/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

enum { STALE_S = 3600, COPY_CHUNK = 64 << 10 };

bool blobs_is_hash(const char *text)
{
    return strlen(text) == SHA256_HEX_MAX - 1 && strspn(text, "0123456789abcdef") == SHA256_HEX_MAX - 1;
}

/* ROOT/files/HASH, or what is being sent of it. NULL: memory. */
static char *path_of(const char *root, const char *hash, bool part)
{
    char *path = NULL, end[32] = "";
    if (part)
        (void)snprintf(end, sizeof end, ".%ld.part", (long)getpid());
    return asprintf(&path, "%s/files/%s%s", root, hash, end) < 0 ? NULL : path;
}

bool blobs_have(const char *root, const char *hash, int64_t size)
{
    struct stat st;
    AUTO_FREE char *path = path_of(root, hash, false);
    return path && ours_is_file(path) && stat(path, &st) == 0 && st.st_size == size;
}

int blobs_room(const char *path, int64_t bytes, struct err *e)
{
    struct statvfs v;
    if (statvfs(path, &v) < 0)
        return err_sys(e, -errno, "cannot look at '%s'", path);
    double left = (double)v.f_bavail * (double)v.f_frsize;
    if (left >= (double)bytes)
        return 0;
    return err_set(e, -ENOSPC, "no room on the disk of '%s': %.1f MiB are free, %.1f are needed", path,
                   left / (1 << 20), (double)bytes / (1 << 20));
}

/* --- what is sent --- */

static void drop(struct blobs *b, const char *root)
{
    AUTO_FREE char *part = path_of(root, b->hash, true);
    if (!b->hash[0])
        return;
    (void)close(b->fd);
    if (part)
        (void)unlink(part); /* what stays goes as stale */
    b->hash[0] = '\0';
}

void blobs_done(struct blobs *b, const char *root)
{
    drop(b, root);
}

/* What helpers that were killed have left. */
static void sweep(const char *dir)
{
    DIR *d = opendir(dir);
    struct stat st;
    for (struct dirent *f; d && (f = readdir(d));) {
        const char *end = strrchr(f->d_name, '.');
        if (end && strcmp(end, ".part") == 0 && fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - st.st_mtime > STALE_S)
            (void)unlinkat(dirfd(d), f->d_name, 0);
    }
    if (d)
        (void)closedir(d);
}

static int begin(struct blobs *b, const char *root, const char *hash, int64_t size, struct err *e)
{
    AUTO_FREE char *dir = io_join(root, "files");
    AUTO_FREE char *part = path_of(root, hash, true);
    drop(b, root);
    if (!dir || !part)
        return err_sys(e, -ENOMEM, "file '%s'", hash);
    if (size > BLOBS_SIZE_MAX)
        return err_set(e, -EFBIG, "a file of %" PRId64 " bytes is too large to be sent", size);
    int rc = ours_dir(dir, e);
    if (rc == 0)
        rc = blobs_room(dir, size, e);
    if (rc < 0)
        return rc;
    sweep(dir);
    int fd = ours_open(part, O_WRONLY | O_CREAT | O_TRUNC, e);
    if (fd < 0)
        return fd;
    b->fd = fd;
    b->at = 0;
    b->size = size;
    sha256_init(&b->sum);
    (void)snprintf(b->hash, sizeof b->hash, "%s", hash);
    return 0;
}

static int finish(struct blobs *b, const char *root, struct err *e)
{
    char sum[SHA256_HEX_MAX];
    AUTO_FREE char *part = path_of(root, b->hash, true);
    AUTO_FREE char *path = path_of(root, b->hash, false);
    sha256_hex(&b->sum, sum);
    int rc = part && path ? 0 : err_sys(e, -ENOMEM, "file '%s'", b->hash);
    if (rc == 0 && strcmp(sum, b->hash) != 0)
        rc = err_set(e, -EINVAL,
                     "what was sent as '%.12s…' is '%.12s…': it was changed on the way, or while it was read", b->hash,
                     sum);
    if (rc == 0 && (fsync(b->fd) < 0 || rename(part, path) < 0))
        rc = err_sys(e, -errno, "cannot keep '%s'", path);
    drop(b, root);
    return rc < 0 ? rc : 1;
}

int blobs_put(struct blobs *b, const char *root, const char *hash, int64_t size, int64_t at, const void *bytes,
              size_t n, struct err *e)
{
    int rc = at == 0 ? begin(b, root, hash, size, e) : 0;
    if (rc == 0 && (strcmp(b->hash, hash) != 0 || b->at != at || b->size != size || (int64_t)n > size - at))
        rc = err_set(e, -EINVAL, "these are not the next bytes of '%.12s…'", hash);
    if (rc == 0)
        rc = io_write_all(b->fd, bytes, n) < 0 ? err_sys(e, -errno, "cannot write '%s/files/%.12s…'", root, hash) : 0;
    if (rc < 0) {
        drop(b, root);
        return rc;
    }
    sha256_add(&b->sum, bytes, n);
    b->at += (int64_t)n;
    return b->at == size ? finish(b, root, e) : 0;
}

/* --- a folder made of them --- */

int blobs_item_read(struct blobs_item *out, char *line, struct err *e)
{
    int at = 0;
    if (sscanf(line, "%64[0-9a-f] %" SCNd64 " %c %n", out->hash, &out->size, &out->mode, &at) == 3 && at > 0 &&
        blobs_is_hash(out->hash) && out->size >= 0 && strchr("x-m", out->mode)) {
        out->name = line + at;
        bool ours = strncmp(out->name, "work/", 5) == 0 || strncmp(out->name, "resume/", 7) == 0;
        if (ours && beneath_is_name(out->name))
            return 0;
    }
    return err_set(e, -EINVAL, "'%.80s' is no line of a manifest", line);
}

static int copy(int from, int to)
{
    char chunk[COPY_CHUNK];
    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int rc = io_write_all(to, chunk, (size_t)n);
        if (rc < 0)
            return rc;
    }
}

static int make(const char *root, int dir, const struct blobs_item *it)
{
    AUTO_FREE char *path = path_of(root, it->hash, false);
    int rc = path ? beneath_mkdirs(dir, it->name) : -ENOMEM;
    if (rc < 0)
        return rc;
    if (it->mode == 'm') {
        if (renameat(AT_FDCWD, path, dir, it->name) == 0) /* the folders above it are checked by beneath_mkdirs() */
            return 0;
        return -errno;
    }
    AUTO_CLOSE int from = ours_open(path, O_RDONLY, NULL);
    AUTO_CLOSE int to = beneath_open(dir, it->name, O_WRONLY | O_CREAT | O_EXCL);
    if (from < 0 || to < 0)
        return from < 0 ? from : to;
    rc = copy(from, to);
    return rc == 0 && it->mode == 'x' && fchmod(to, 0700) < 0 ? -errno : rc;
}

static int unpack_line(const char *root, int dir, char *line, struct err *e)
{
    struct blobs_item it;
    int rc = blobs_item_read(&it, line, e);
    if (rc < 0)
        return rc;
    if (!blobs_have(root, it.hash, it.size))
        return err_set(e, -ENOENT, "'%s' was not sent here", it.name);
    rc = make(root, dir, &it);
    return rc < 0 ? err_sys(e, rc, "cannot make '%s'", it.name) : 0;
}

int blobs_unpack(const char *root, const char *manifest, const char *path, struct err *e)
{
    AUTO_FREE char *list = path_of(root, manifest, false);
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!list || dir < 0)
        return err_sys(e, list ? -errno : -ENOMEM, "cannot open '%s'", path);
    int rc = ours_read(&text, list, BLOBS_MANIFEST_MAX, e), n = 0;
    for (char *line = rc < 0 ? NULL : text.data, *end; line && rc == 0; line = end ? end + 1 : NULL) {
        end = memchr(line, '\n', text.len - (size_t)(line - text.data));
        if (!end)
            break;
        *end = '\0';
        rc = ++n > BLOBS_FILES_MAX ? err_set(e, -E2BIG, "a manifest of more than %d files", BLOBS_FILES_MAX)
                                   : unpack_line(root, dir, line, e);
    }
    return rc;
}
