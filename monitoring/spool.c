#include "monitoring/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "base/own.h"

enum { SEGMENT_MAX = 64 << 20, NAME_DIGITS = 16 };

/* --- bytes --- */

static uint64_t get_le(const unsigned char *from, size_t bytes)
{
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)from[i] << (8 * i);
    return x;
}

static bool has_crc(const unsigned char *bytes, size_t len, uint64_t crc)
{
    return crc32_z(0, bytes, len) == crc;
}

bool spool_position(const unsigned char bytes[SPOOL_POSITION], uint64_t *out_number, uint64_t *out_at)
{
    if (memcmp(bytes, "PTSPOOLP", 8) != 0 || !has_crc(bytes, 24, get_le(bytes + 24, 4)))
        return false;
    *out_number = get_le(bytes + 8, 8);
    *out_at = get_le(bytes + 16, 8);
    return true;
}

/* Bytes of the record's payload, 0: there is no whole record; *cut: its end is missing. */
static size_t look_at(const unsigned char *bytes, size_t len, bool *cut)
{
    *cut = len < SPOOL_HEAD;
    if (*cut || !has_crc(bytes, 12, get_le(bytes + 12, 4)))
        return 0;
    size_t payload = get_le(bytes, 4);
    *cut = payload > len - SPOOL_HEAD;
    if (*cut || payload > SPOOL_RECORD_MAX || !has_crc(bytes + SPOOL_HEAD, payload, get_le(bytes + 8, 4)))
        return 0;
    return payload;
}

static bool all_zeros(const unsigned char *bytes, size_t len)
{
    while (len > 0 && !bytes[len - 1])
        len--;
    return len == 0;
}

bool spool_segment(const void *bytes, size_t len, uint64_t number, uint64_t delivered, struct buf *out)
{
    const unsigned char *b = bytes;
    if (len < SPOOL_HEAD || memcmp(b, "PTSPOOL1", 8) != 0 || get_le(b + 8, 8) != number)
        return len < SPOOL_HEAD || all_zeros(b, len);
    size_t before = out->len, at = SPOOL_HEAD, payload;
    bool cut = false;
    while (at < len && (payload = look_at(b + at, len - at, &cut)) > 0) {
        if (at == delivered)
            buf_cut(out, before);
        buf_put(out, b + at + SPOOL_HEAD, payload);
        at += SPOOL_HEAD + payload;
    }
    if (at == delivered)
        buf_cut(out, before);
    return at == len || cut || all_zeros(b + at, len - at);
}

/* --- files --- */

struct folder {
    int fd, lock_fd;
    const char *dir;
    uint64_t number, at; /* the position; 0: none */
    int (*take)(void *ctx, const char *lines, size_t len, struct err *e);
    void *ctx;
};

static int is_segment(const struct dirent *d)
{
    return strspn(d->d_name, "0123456789abcdef") == NAME_DIGITS && strcmp(d->d_name + NAME_DIGITS, ".spool") == 0;
}

static int open_position(struct folder *f, struct err *e)
{
    unsigned char bytes[SPOOL_POSITION];
    f->lock_fd = openat(f->fd, "position", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->lock_fd < 0)
        return err_sys(e, -errno, "cannot open '%s/position'", f->dir);
    if (flock(f->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, -EBUSY, "'%s' is in use by a process of an earlier version", f->dir);
    if (pread(f->lock_fd, bytes, sizeof bytes, 0) != sizeof bytes || !spool_position(bytes, &f->number, &f->at))
        f->number = f->at = 0; /* then all is delivered anew, which changes nothing at the server */
    return 0;
}

/* 1: it is damaged, and stays under another name. */
static int take_segment(struct folder *f, const char *name, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT, lines = BUF_INIT;
    AUTO_FREE char *path = io_join(f->dir, name);
    char bad[NAME_DIGITS + 8];
    uint64_t number = strtoull(name, NULL, 16);
    int rc = path ? io_read_file(&bytes, path, SEGMENT_MAX, e) : err_sys(e, -ENOMEM, "'%s'", f->dir);
    if (rc < 0)
        return rc;
    bool whole = spool_segment(buf_text(&bytes), bytes.len, number, number == f->number ? f->at : 0, &lines);
    if (lines.failed)
        return err_sys(e, -ENOMEM, "'%s'", path);
    if (lines.len > 0 && number >= f->number)
        rc = f->take(f->ctx, buf_text(&lines), lines.len, e);
    if (rc < 0)
        return rc;
    (void)snprintf(bad, sizeof bad, "%.*s.bad", NAME_DIGITS, name);
    int moved = whole ? unlinkat(f->fd, name, 0) : renameat(f->fd, name, f->fd, bad);
    return moved < 0 ? err_sys(e, -errno, "cannot remove '%s'", path) : !whole;
}

static int take_all(struct folder *f, struct err *e)
{
    struct dirent **names = NULL;
    int n = scandirat(f->fd, ".", &names, is_segment, alphasort), bad = 0;
    int rc = n < 0 ? err_sys(e, -errno, "cannot list '%s'", f->dir) : open_position(f, e);
    for (int i = 0; i < n; i++) {
        if (rc >= 0)
            rc = take_segment(f, names[i]->d_name, e);
        bad += rc > 0;
        free(names[i]);
    }
    free(names);
    return rc < 0 ? rc : bad;
}

int spool_take_over(const char *dir, int (*take)(void *ctx, const char *lines, size_t len, struct err *e), void *ctx,
                    struct err *e)
{
    struct folder f = { .dir = dir, .take = take, .ctx = ctx, .lock_fd = -1 };
    AUTO_CLOSE int fd = f.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot open '%s'", dir);
    int rc = take_all(&f, e);
    if (rc == 0) { /* where something else is in it, it stays */
        (void)unlinkat(fd, "position", 0);
        (void)rmdir(dir);
    }
    if (f.lock_fd >= 0)
        (void)close(f.lock_fd);
    return rc;
}
