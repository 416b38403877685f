#include "node/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "node/args.h"

enum { LONGEST_LINE = 64 << 10 };

void log_done(struct log *g)
{
    if (g->fd >= 0)
        (void)close(g->fd);
    buf_done(&g->line);
    buf_done(&g->pending);
}

static void log_put(struct log *g, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    buf_put(&g->pending, bytes, len);
    g->inside_line = bytes[len - 1] != '\n';
}

/* A line of our own, never inside one of the application's. */
void log_note(struct log *g, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* a cut note is still a note */
    va_end(ap);
    if (g->inside_line)
        log_put(g, "\n", 1);
    buf_printf(&g->pending, "pipetune: %s\n", text);
}

static void log_start_keeping(struct log *g)
{
    AUTO_BUF struct buf texts = BUF_INIT;
    for (size_t i = 0; i < g->o->n_keep; i++)
        buf_printf(&texts, "%s'%s'", i ? ", " : "", g->o->keep[i]);
    log_note(g, "log capped at %" PRIu64 " bytes: from here on only lines with %s are kept", g->o->log_cap,
             g->o->n_keep ? buf_text(&texts) : "nothing");
    g->mode = LOG_KEPT;
}

static bool log_wants(const struct log *g)
{
    for (size_t i = 0; i < g->o->n_keep; i++)
        if (memmem(g->line.data, g->line.len, g->o->keep[i], strlen(g->o->keep[i])))
            return true;
    return false;
}

/* The line is whole: into the log or away with it. */
static void log_end_line(struct log *g)
{
    if (!g->skipping && g->line.len && log_wants(g)) {
        if (g->taken + g->line.len > 2 * g->o->log_cap) {
            log_note(g, "log full at %" PRIu64 " bytes: nothing more is kept", g->taken);
            g->mode = LOG_FULL;
        } else {
            g->taken += g->line.len;
            log_put(g, g->line.data, g->line.len);
        }
    }
    buf_clear(&g->line);
    g->skipping = false;
}

static size_t upto_newline(const char *p, size_t len)
{
    const char *end = memchr(p, '\n', len);
    return end ? (size_t)(end - p) + 1 : len;
}

static size_t log_take_all(struct log *g, const char *p, size_t len)
{
    uint64_t room = g->o->log_cap - g->taken;
    size_t n = len < room ? len : (size_t)room;
    log_put(g, p, n);
    g->taken += n;
    if (n < len && g->inside_line)
        g->mode = LOG_LINE_END;
    else if (n < len)
        log_start_keeping(g);
    return n;
}

static size_t log_take_line_end(struct log *g, const char *p, size_t len)
{
    size_t n = upto_newline(p, len);
    if (g->overrun + n > LONGEST_LINE) {
        log_start_keeping(g);
        g->skipping = true; /* its rest is no whole line */
        return 0;
    }
    log_put(g, p, n);
    g->overrun += n;
    if (p[n - 1] == '\n')
        log_start_keeping(g);
    return n;
}

static size_t log_take_kept(struct log *g, const char *p, size_t len)
{
    size_t n = upto_newline(p, len);
    if (g->line.len + n > LONGEST_LINE)
        g->skipping = true;
    if (!g->skipping)
        buf_put(&g->line, p, n);
    if (p[n - 1] == '\n')
        log_end_line(g);
    return n;
}

/* Decides what becomes of these bytes of the application. */
void log_take(struct log *g, const char *p, size_t len)
{
    while (len > 0 && g->mode != LOG_FULL) {
        size_t n = 0;
        switch (g->mode) {
        case LOG_ALL: n = log_take_all(g, p, len); break;
        case LOG_LINE_END: n = log_take_line_end(g, p, len); break;
        case LOG_KEPT: n = log_take_kept(g, p, len); break;
        case LOG_FULL: break;
        }
        p += n;
        len -= n;
    }
}

/* No more output comes from this step: its last line may lack the newline. */
void log_take_end(struct log *g)
{
    if (g->mode == LOG_KEPT && g->line.len) {
        if (!g->skipping)
            buf_putc(&g->line, '\n');
        log_end_line(g);
    }
    if (g->inside_line)
        log_put(g, "\n", 1);
    if (g->mode == LOG_LINE_END)
        log_start_keeping(g);
}

bool log_disk_may_recover(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -EIO;
}

void log_lose_pending(struct log *g, int why)
{
    g->lost += g->pending.len;
    g->lost_why = why;
    buf_clear(&g->pending);
    g->inside_line = true; /* for all we know; the next note begins a line */
}

/* Writes what is pending; some of it stays so while the disk is full. */
void log_flush(struct log *g)
{
    size_t at = 0;
    int rc = 0;
    while (at < g->pending.len && rc == 0) {
        ssize_t n = write(g->fd, g->pending.data + at, g->pending.len - at);
        if (n >= 0)
            at += (size_t)n; /* in part: the next call says why */
        else if (errno != EINTR)
            rc = -errno;
    }
    buf_shift(&g->pending, at);
    if (g->pending.len == 0)
        buf_clear(&g->pending); /* forgets that an append found no memory, if one did */
    if (rc < 0 && !log_disk_may_recover(rc))
        log_lose_pending(g, rc);
}

/* A log that ends inside a line would glue our attempt's first line to it. */
static int log_end_last_line(int fd, off_t size)
{
    char last = '\n';
    if (size > 0 && pread(fd, &last, 1, size - 1) < 0)
        return -errno;
    return last == '\n' ? 0 : io_write_all(fd, "\n", 1);
}

int log_open(struct log *g, const struct args *o, struct err *e)
{
    AUTO_FREE char *path = io_join(o->dir, "log");
    if (!path)
        return err_sys(e, -ENOMEM, "cannot open the log in '%s'", o->dir);
    AUTO_CLOSE int fd = ours_open(path, O_RDWR | O_APPEND | O_CREAT, e);
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot open '%s'", path);
    int rc = log_end_last_line(fd, st.st_size);
    if (rc < 0)
        return err_sys(e, rc, "cannot append to '%s'", path);
    /* Room for the most that is ever held, now that failing is still cheap: a chunk, a kept line, our own notes. */
    static const char zeros[4096];
    for (size_t i = 0; i <= LOG_CHUNK + LONGEST_LINE; i += sizeof zeros)
        buf_put(&g->pending, zeros, sizeof zeros);
    for (size_t i = 0; i <= LONGEST_LINE; i += sizeof zeros)
        buf_put(&g->line, zeros, sizeof zeros);
    if (g->pending.failed || g->line.failed)
        return err_sys(e, -ENOMEM, "cannot open '%s'", path);
    buf_clear(&g->pending);
    buf_clear(&g->line);
    g->o = o;
    g->fd = MOVE_FD(fd);
    return 0;
}

uint64_t log_size(const struct log *g)
{
    struct stat st;
    return fstat(g->fd, &st) == 0 ? (uint64_t)st.st_size : 0; /* it cannot fail on an open plain file */
}
