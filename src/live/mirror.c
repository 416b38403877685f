#include "live/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

static int open_file(const char *dir, const char *name, int flags, struct err *e)
{
    AUTO_FREE char *path = io_join(dir, name);
    return path ? ours_open(path, flags, e) : err_sys(e, -ENOMEM, "'%s'", dir);
}

int mirror_open(struct mirror *m, const char *dir, int64_t log_mb, uint64_t *out_from, struct err *e)
{
    struct stat st;
    AUTO_FREE char *copy = strdup(dir);
    AUTO_CLOSE int heard = copy ? open_file(dir, "heard", O_RDWR | O_CREAT, e) : err_sys(e, -ENOMEM, "'%s'", dir);
    AUTO_CLOSE int log = heard < 0 ? heard : open_file(dir, "log", O_WRONLY | O_CREAT | O_APPEND, e);
    if (log < 0)
        return log;
    if (fstat(heard, &st) < 0)
        return err_sys(e, -errno, "'%s'", dir);
    *out_from = (uint64_t)st.st_size;
    *m =
        (struct mirror){ .dir = MOVE_PTR(copy), .heard = MOVE_FD(heard), .log = MOVE_FD(log), .log_max = log_mb << 19 };
    return 0;
}

void mirror_done(struct mirror *m)
{
    own_close(&m->heard);
    own_close(&m->log);
    free(m->dir);
    *m = (struct mirror)MIRROR_CLOSED;
}

static int write_at(int fd, const char *bytes, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t put = pwrite(fd, bytes, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put, at += (uint64_t)put, n -= (size_t)put;
    }
    return 0;
}

static int turn_log(struct mirror *m, struct err *e)
{
    struct stat st;
    if (fstat(m->log, &st) < 0 || st.st_size < m->log_max)
        return 0;
    AUTO_FREE char *path = io_join(m->dir, "log");
    AUTO_FREE char *before = io_join(m->dir, "log.1");
    if (!path || !before || rename(path, before) < 0)
        return err_sys(e, path && before ? -errno : -ENOMEM, "cannot turn the log in '%s'", m->dir);
    int fd = open_file(m->dir, "log", O_WRONLY | O_CREAT | O_APPEND, e);
    if (fd < 0)
        return fd;
    (void)close(m->log);
    m->log = fd;
    return 0;
}

static uint64_t heard_max(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *bytes = getenv("PIPETUNE_HEARD_MAX"); /* tests have less to say */
    if (bytes)
        return strtoull(bytes, NULL, 10);
#endif
    return MIRROR_HEARD_MAX;
}

int mirror_take(struct mirror *m, uint64_t at, const char *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return futimens(m->log, NULL) < 0 ? err_sys(e, -errno, "cannot touch the log in '%s'", m->dir) : 0;
    if (at + n > m->accounted + heard_max())
        return err_set(e, -EFBIG, "more than %d MB came without the end of an epoch", MIRROR_HEARD_MAX >> 20);
    int rc = write_at(m->heard, bytes, n, at);
    if (rc == 0)
        rc = io_write_all(m->log, bytes, n);
    return rc < 0 ? err_sys(e, rc, "cannot write what is heard to '%s'", m->dir) : turn_log(m, e);
}

/* Its boot's milliseconds are of another machine. */
static void put_note(struct buf *b, const char *note, int64_t ago_ms)
{
    const char *boot = strstr(note, " boot_ms=");
    buf_put(b, note, boot ? (size_t)(boot - note) : strcspn(note, "\n"));
    if (boot && ago_ms >= 0)
        buf_printf(b, " boot_ms=%" PRId64, clock_boot_ms() - ago_ms);
    buf_putc(b, '\n');
}

/* Not synced: until the attempt's end is stored, the host has it, too. */
int mirror_end(struct mirror *m, const char *note, int64_t ago_ms, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = io_join(m->dir, "exit");
    AUTO_FREE char *part = io_join(m->dir, "exit.part");
    put_note(&text, note, ago_ms);
    if (!path || !part || text.failed)
        return err_sys(e, -ENOMEM, "'%s'", m->dir);
    AUTO_CLOSE int fd = ours_open(part, O_WRONLY | O_CREAT | O_TRUNC, e);
    if (fd < 0)
        return fd;
    int rc = io_write_all(fd, text.data, text.len);
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    return rc < 0 ? err_sys(e, rc, "cannot write '%s'", path) : 0;
}
