#include "monitoring/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "monitoring/spool_segment.h"

struct segment {
    uint64_t number;
    uint64_t size;  /* up to the end of its last good record */
    uint64_t at;    /* the first record that is not delivered */
    uint64_t lines; /* from there on */
};

struct spool {
    char *dir;
    struct spool_cfg cfg;
    struct segment *segments; /* oldest first */
    size_t n, room;
    uint64_t next; /* number of the segment to be made next */
    int dir_fd, position_fd;
    int write_fd; /* of the last segment; -1: the next append begins another one */
    int read_fd;  /* of the first; -1 until it is read */
    bool unsynced, dir_unsynced;
    uint64_t position_number, position_at;
    struct {
        uint64_t id; /* 0: none */
        struct segment_record record;
    } peeked;
    struct spool_counts counts;
};

/* --- the list of segments --- */

static int add_segment(struct spool *s, struct segment g)
{
    struct segment *more = array_more(s->segments, s->n, &s->room, sizeof *more);
    if (!more)
        return -ENOMEM;
    s->segments = more;
    s->segments[s->n++] = g;
    s->counts.lines += g.lines;
    s->counts.bytes += g.size;
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* what had to reach the disk was synced */
    *fd = -1;
}

/* The oldest one leaves the list; its file is the caller's matter. */
static void shift_segment(struct spool *s)
{
    close_fd(&s->read_fd);
    if (s->n == 1) {
        close_fd(&s->write_fd);
        s->unsynced = false;
    }
    s->counts.lines -= s->segments[0].lines;
    s->counts.bytes -= s->segments[0].size;
    s->n--;
    memmove(s->segments, s->segments + 1, s->n * sizeof *s->segments);
    s->peeked.id = 0;
    s->dir_unsynced = true;
}

static void unlink_segment(struct spool *s, uint64_t number)
{
    char name[SEGMENT_NAME_MAX];
    (void)unlinkat(s->dir_fd, segment_name(number, ".spool", name), 0); /* stale; the next opening tries again */
}

/* Gives up the lines of the oldest one, but for a batch that somebody has peeked at and holds. */
static void give_up_lines(struct spool *s)
{
    uint64_t held = s->peeked.id ? s->peeked.record.lines : 0;
    s->counts.dropped += s->segments[0].lines - held;
}

static void save_position(struct spool *s, uint64_t number, uint64_t at)
{
    unsigned char bytes[SEGMENT_POSITION];
    segment_put_position(bytes, number, at);
    s->position_number = number;
    s->position_at = at;
    /* A position that is not written means that something is delivered twice, which changes nothing at the server. */
    (void)!pwrite(s->position_fd, bytes, sizeof bytes, 0);
}

/* A segment whose only record could not be written holds nothing, and must not stand before those that do. */
static void skip_empty(struct spool *s)
{
    while (s->n && s->segments[0].lines == 0 && (s->n > 1 || s->write_fd < 0)) {
        uint64_t number = s->segments[0].number;
        shift_segment(s);
        unlink_segment(s, number);
    }
}

/* --- opening --- */

static int make_dir(const char *dir, struct err *e)
{
    AUTO_FREE char *parent = io_dirname(dir);
    if (!parent)
        return err_sys(e, -ENOMEM, "spool '%s'", dir);
    int rc = io_mkdirs(parent, e);
    if (rc < 0)
        return rc;
    return ours_dir(dir, e);
}

static int open_position(struct spool *s, struct err *e)
{
    s->position_fd = openat(s->dir_fd, "position", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->position_fd < 0)
        return err_sys(e, -errno, "cannot open '%s/position'", s->dir);
    if (flock(s->position_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? err_set(e, -EBUSY, "spool '%s' is in use by another process", s->dir)
                                    : err_sys(e, -errno, "cannot lock spool '%s'", s->dir);
    unsigned char bytes[SEGMENT_POSITION];
    if (pread(s->position_fd, bytes, sizeof bytes, 0) == sizeof bytes)
        (void)segment_get_position(bytes, &s->position_number, &s->position_at); /* none is position 0 */
    s->next = s->position_number + 1;
    return 0;
}

struct names {
    uint64_t *v;
    size_t n, room;
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int note_name(struct spool *s, struct names *segments, struct names *bad, const char *name)
{
    uint64_t number;
    struct names *to = segment_named(name, ".spool", &number) ? segments
                       : segment_named(name, ".bad", &number) ? bad
                                                              : NULL;
    if (segment_named(name, ".tmp", &number))
        (void)unlinkat(s->dir_fd, name, 0); /* a half-done rescue, which is begun again */
    if (!to)
        return 0;
    if (number >= s->next)
        s->next = number + 1;
    uint64_t *more = array_more(to->v, to->n, &to->room, sizeof *more);
    if (!more)
        return -ENOMEM;
    to->v = more;
    to->v[to->n++] = number;
    return 0;
}

static int list_names(struct spool *s, struct names *segments, struct names *bad, struct err *e)
{
    int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int rc = -errno;
        close_fd(&fd);
        return err_sys(e, rc, "cannot list spool '%s'", s->dir);
    }
    int rc = 0;
    errno = 0;
    for (struct dirent *at; rc == 0 && (at = readdir(d)); errno = 0)
        rc = note_name(s, segments, bad, at->d_name);
    if (rc == 0)
        rc = -errno;
    (void)closedir(d); /* it was only read */
    if (rc < 0)
        return err_sys(e, rc, "cannot list spool '%s'", s->dir);
    for (struct names *l = segments;; l = bad) {
        if (l->n)
            qsort(l->v, l->n, sizeof *l->v, by_number);
        if (l == bad)
            return 0;
    }
}

static void forget_old_bad(struct spool *s, const struct names *bad)
{
    char name[SEGMENT_NAME_MAX];
    for (size_t i = 0; i + SPOOL_BAD_MAX < bad->n; i++)
        (void)unlinkat(s->dir_fd, segment_name(bad->v[i], ".bad", name), 0); /* the next opening tries again */
}

/* The first `len` bytes of `from` as a file of its own. */
static int copy_head(struct spool *s, int from, uint64_t len, const char *name)
{
    AUTO_CLOSE int to = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = to < 0 ? -errno : 0;
    char chunk[16384];
    for (uint64_t at = 0; rc == 0 && at < len;) {
        size_t want = len - at < sizeof chunk ? (size_t)(len - at) : sizeof chunk;
        ssize_t n = pread(from, chunk, want, (off_t)at);
        rc = n < 0 ? -errno : n == 0 ? -EIO : io_write_all(to, chunk, (size_t)n);
        at += n > 0 ? (uint64_t)n : 0;
    }
    return rc == 0 && fsync(to) < 0 ? -errno : rc;
}

/* The corrupt file becomes NAME.bad, its good records a new file of the same name. When that cannot be done, the file stays as it
 * is, only its good part is used, and the next opening tries again. */
static void set_aside(struct spool *s, int fd, uint64_t number, const struct segment_scan *scan)
{
    char name[SEGMENT_NAME_MAX], bad[SEGMENT_NAME_MAX], tmp[SEGMENT_NAME_MAX];
    (void)segment_name(number, ".spool", name);
    (void)segment_name(number, ".bad", bad);
    (void)segment_name(number, ".tmp", tmp);
    s->counts.bad++;
    s->dir_unsynced = true;
    if (scan->at >= scan->good) {
        (void)renameat(s->dir_fd, name, s->dir_fd, bad); /* see above */
        return;
    }
    if (copy_head(s, fd, scan->good, tmp) < 0)
        return;
    failpoint("spool-rescued");
    if (linkat(s->dir_fd, name, s->dir_fd, bad, 0) < 0 && errno != EEXIST)
        return;
    failpoint("spool-bad-linked");
    (void)renameat(s->dir_fd, tmp, s->dir_fd, name); /* see above */
}

static int take_segment(struct spool *s, uint64_t number, struct err *e)
{
    char name[SEGMENT_NAME_MAX];
    (void)segment_name(number, ".spool", name);
    if (number < s->position_number) { /* delivered or given up; only its deletion failed */
        (void)unlinkat(s->dir_fd, name, 0);
        return 0;
    }
    AUTO_CLOSE int fd = openat(s->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct segment_scan scan;
    int rc = fd < 0 ? -errno : segment_scan(fd, number, number == s->position_number ? s->position_at : 0, &scan);
    if (rc < 0)
        return err_sys(e, rc, "cannot read '%s/%s'", s->dir, name);
    if (scan.end == SEGMENT_TORN) {
        s->counts.torn++;
        (void)!ftruncate(fd, (off_t)scan.good); /* or the next opening does it */
    }
    if (scan.end == SEGMENT_BAD)
        set_aside(s, fd, number, &scan);
    else if (scan.at >= scan.good)
        (void)unlinkat(s->dir_fd, name, 0); /* nothing in it is left to do */
    if (scan.at >= scan.good)
        return 0;
    struct segment g = { .number = number, .size = scan.good, .at = scan.at, .lines = scan.lines };
    return add_segment(s, g) < 0 ? err_sys(e, -ENOMEM, "spool '%s'", s->dir) : 0;
}

static int read_all(struct spool *s, struct err *e)
{
    struct names segments = { 0 }, bad = { 0 };
    int rc = list_names(s, &segments, &bad, e);
    for (size_t i = 0; rc == 0 && i < segments.n; i++)
        rc = take_segment(s, segments.v[i], e);
    if (rc == 0)
        forget_old_bad(s, &bad);
    free(segments.v);
    free(bad.v);
    s->counts.found = s->counts.lines;
    return rc;
}

int spool_open(struct spool **out, const char *dir, const struct spool_cfg *cfg, struct err *e)
{
    assert(cfg->segment > SPOOL_HEAD && cfg->segment < UINT32_MAX && cfg->cap >= 4 * cfg->segment);
    int rc = make_dir(dir, e);
    if (rc < 0)
        return rc;
    struct spool *s = calloc(1, sizeof *s);
    if (!s)
        return err_sys(e, -ENOMEM, "spool '%s'", dir);
    s->dir_fd = s->position_fd = s->write_fd = s->read_fd = -1;
    s->cfg = *cfg;
    s->dir = strdup(dir);
    if (!s->dir) {
        rc = err_sys(e, -ENOMEM, "spool '%s'", dir);
    } else {
        s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = s->dir_fd < 0 ? err_sys(e, -errno, "cannot open spool '%s'", dir) : open_position(s, e);
    }
    if (rc == 0)
        rc = read_all(s, e);
    if (rc < 0) {
        spool_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spool_close(struct spool *s)
{
    if (!s)
        return;
    close_fd(&s->write_fd);
    close_fd(&s->read_fd);
    close_fd(&s->position_fd);
    close_fd(&s->dir_fd);
    free(s->segments);
    free(s->dir);
    free(s);
}

/* --- appending --- */

static void make_room(struct spool *s, uint64_t need)
{
    while (s->n && s->counts.bytes + need > s->cfg.cap) {
        uint64_t number = s->segments[0].number;
        give_up_lines(s);
        shift_segment(s);
        unlink_segment(s, number);
    }
}

static int begin_segment(struct spool *s)
{
    if (s->write_fd >= 0 && s->unsynced && fsync(s->write_fd) < 0)
        return -errno;
    s->unsynced = false;
    char name[SEGMENT_NAME_MAX];
    (void)segment_name(s->next, ".spool", name);
    AUTO_CLOSE int fd = openat(s->dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    failpoint("spool-created");
    unsigned char head[SPOOL_HEAD];
    segment_put_head(head, s->next);
    int rc = io_write_all(fd, head, sizeof head);
    if (rc == 0)
        rc = add_segment(s, (struct segment){ .number = s->next, .size = SPOOL_HEAD, .at = SPOOL_HEAD });
    if (rc < 0) {
        (void)unlinkat(s->dir_fd, name, 0); /* the next opening does it */
        return rc;
    }
    failpoint("spool-begun");
    close_fd(&s->write_fd);
    s->write_fd = MOVE_FD(fd);
    s->next++;
    s->dir_unsynced = true;
    return 0;
}

static int write_record(struct spool *s, const void *bytes, size_t len, uint32_t lines)
{
    struct segment *g = &s->segments[s->n - 1];
    unsigned char head[SPOOL_HEAD];
    segment_put_record(head, bytes, len, lines);
    failpoint("spool-record");
    int rc = io_write_all(s->write_fd, head, sizeof head);
    failpoint("spool-record-head");
    if (rc == 0)
        rc = io_write_all(s->write_fd, bytes, len / 2);
    failpoint("spool-record-half");
    if (rc == 0)
        rc = io_write_all(s->write_fd, (const char *)bytes + len / 2, len - len / 2);
    failpoint("spool-recorded");
    if (rc < 0) {
        if (ftruncate(s->write_fd, (off_t)g->size) < 0)
            close_fd(&s->write_fd); /* a torn end, which nothing may follow */
        return rc;
    }
    s->unsynced = true;
    g->size += SPOOL_HEAD + len;
    g->lines += lines;
    s->counts.bytes += SPOOL_HEAD + len;
    s->counts.lines += lines;
    return 0;
}

int spool_append(struct spool *s, const void *bytes, size_t len, uint32_t lines, struct err *e)
{
    assert(len > 0 && lines > 0);
    uint64_t need = 2 * SPOOL_HEAD + len;
    if (len > SPOOL_RECORD_MAX || need > s->cfg.cap)
        return err_set(e, -EMSGSIZE, "spool '%s': a batch of %zu bytes is too large", s->dir, len);
    make_room(s, need);
    int rc = 0;
    if (s->write_fd < 0 || s->segments[s->n - 1].size >= s->cfg.segment)
        rc = begin_segment(s);
    if (rc == 0)
        rc = write_record(s, bytes, len, lines);
    skip_empty(s);
    return rc < 0 ? err_sys(e, rc, "cannot write to spool '%s'", s->dir) : 0;
}

int spool_sync(struct spool *s, struct err *e)
{
    if (s->unsynced && fsync(s->write_fd) < 0)
        return err_sys(e, -errno, "cannot sync spool '%s'", s->dir);
    s->unsynced = false;
    if (s->dir_unsynced && fsync(s->dir_fd) < 0)
        return err_sys(e, -errno, "cannot sync spool '%s'", s->dir);
    s->dir_unsynced = false;
    return 0;
}

/* --- delivering --- */

uint64_t spool_id(const struct spool *s)
{
    return s->n && s->segments[0].lines ? s->segments[0].number << 32 | s->segments[0].at : 0;
}

/* One that was whole when it was opened and is not now: renamed, its lines given up. */
static void lose_segment(struct spool *s)
{
    char name[SEGMENT_NAME_MAX], bad[SEGMENT_NAME_MAX];
    uint64_t number = s->segments[0].number;
    (void)renameat(s->dir_fd, segment_name(number, ".spool", name), s->dir_fd, segment_name(number, ".bad", bad));
    s->counts.bad++;
    give_up_lines(s);
    shift_segment(s);
}

static int read_oldest(struct spool *s, struct buf *out)
{
    char name[SEGMENT_NAME_MAX];
    const struct segment *g = &s->segments[0];
    if (s->read_fd < 0)
        s->read_fd = openat(s->dir_fd, segment_name(g->number, ".spool", name), O_RDONLY | O_CLOEXEC);
    if (s->read_fd < 0)
        return errno == ENOENT ? 0 : -errno;
    size_t before = out->len;
    int rc = segment_read(s->read_fd, g->at, out, &s->peeked.record);
    if (rc == 1 && (g->at + SPOOL_HEAD + s->peeked.record.len > g->size || s->peeked.record.lines > g->lines)) {
        buf_cut(out, before);
        rc = 0; /* a whole record, but not the one we wrote */
    }
    return rc == -EIO ? 0 : rc;
}

int spool_peek(struct spool *s, struct buf *out, uint32_t *out_lines, struct err *e)
{
    s->peeked.id = 0;
    while (spool_id(s)) {
        int rc = read_oldest(s, out);
        if (rc < 0)
            return err_sys(e, rc, "cannot read spool '%s'", s->dir);
        if (rc == 1) {
            s->peeked.id = spool_id(s);
            *out_lines = s->peeked.record.lines;
            return 1;
        }
        lose_segment(s);
    }
    return 0;
}

int spool_pop(struct spool *s, uint64_t id, struct err *e)
{
    (void)e; /* nothing can go wrong that the caller could mend */
    if (id == 0 || s->peeked.id != id)
        return 0;
    struct segment *g = &s->segments[0];
    g->at += SPOOL_HEAD + s->peeked.record.len;
    g->lines -= s->peeked.record.lines;
    s->counts.lines -= s->peeked.record.lines;
    s->peeked.id = 0;
    failpoint("spool-pop");
    save_position(s, g->number, g->at);
    failpoint("spool-popped");
    if (g->at < g->size)
        return 0;
    uint64_t number = g->number;
    shift_segment(s);
    unlink_segment(s, number);
    skip_empty(s);
    failpoint("spool-removed");
    return 0;
}

struct spool_counts spool_counts(const struct spool *s)
{
    return s->counts;
}
