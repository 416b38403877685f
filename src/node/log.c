#include "node/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/tell.h"
#include "base/clock.h"
#include "base/ours.h"
#include "base/own.h"
#include "node/args.h"

enum {
    LONGEST_LINE = 64 << 10, /* of which more is not looked at: who reads along does not either */
    MARK_MAX = 256,
    LAST_MAX = 160 << 10,
    STAMP_MAX = 24,
};

void log_done(struct log *g)
{
    log_files_close(&g->own);
    log_files_close(&g->run);
    buf_done(&g->in);
    buf_done(&g->line);
    buf_done(&g->to_log);
    buf_done(&g->to_heard);
    buf_done(&g->last);
}

/* --- into the log ------------------------------------------------------------------------------------------------------ */

static void log_put(struct log *g, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    buf_put(&g->to_log, bytes, len);
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
    buf_printf(&g->to_log, "pipetune: %s\n", text);
}

/* --- what is heard ------------------------------------------------------------------------------------------------------ */

static void put_stamp(const struct log *g, struct buf *b)
{
    if (g->o->tell)
        buf_printf(b, "%" PRId64 " ", clock_boot_ms() + g->stamp_from_ms);
}

void log_told(struct log *g, const char *line, size_t len)
{
    put_stamp(g, &g->to_heard);
    buf_puts(&g->to_heard, TELL_MARK);
    buf_put(&g->to_heard, line, len);
    buf_putc(&g->to_heard, '\n');
}

/* The newest lines, of which the oldest make room. */
static void remember(struct log *g)
{
    size_t len = g->line.len < LAST_MAX ? g->line.len : LAST_MAX;
    if (g->last.len + len + STAMP_MAX >= 2 * LAST_MAX) {
        const char *from = memchr(g->last.data + g->last.len - LAST_MAX, '\n', LAST_MAX);
        buf_shift(&g->last, from ? (size_t)(from - g->last.data) + 1 : g->last.len);
    }
    put_stamp(g, &g->last);
    buf_put(&g->last, g->line.data, len);
    if (g->line.data[len - 1] != '\n')
        buf_putc(&g->last, '\n');
}

static void hear_rest(struct log *g)
{
    buf_put(&g->to_heard, g->last.data, g->last.len);
    buf_clear(&g->last);
    g->room = LOG_HEARD_ROOM;
}

/* The line under way is whole. */
static void hear_line(struct log *g)
{
    const struct buf *line = &g->line;
    if (line->len == 0)
        return;
    bool step = needles_in(&g->o->step, line->data, line->len);
    if (step)
        buf_clear(&g->last);
    if (!step && !needles_in(&g->o->keep, line->data, line->len)) {
        if (line->len > g->room) {
            g->room = 0; /* a shorter one may not overtake it */
            remember(g);
            return;
        }
        g->room -= line->len;
    }
    put_stamp(g, &g->to_heard);
    buf_put(&g->to_heard, line->data, line->len);
    if (line->data[line->len - 1] != '\n') /* it is longer, or the last */
        buf_putc(&g->to_heard, '\n');
}

/* --- marks -------------------------------------------------------------------------------------------------------------- */

static bool may_be_mark(const struct log *g)
{
    size_t n = g->o->mark ? strlen(g->o->mark) : 0;
    return n > 0 && g->line.len <= MARK_MAX && memcmp(g->line.data, g->o->mark, g->line.len < n ? g->line.len : n) == 0;
}

struct mark {
    char id[LOG_ID_MAX + 1], word[8];
    unsigned trial;
};

/* `TEXT ID begin` or `TEXT ID end`, and nothing behind it; the ID ends in -tN-A. */
static bool parse_mark(const struct log *g, struct mark *out)
{
    struct mark m;
    size_t n = g->o->mark ? strlen(g->o->mark) : 0;
    unsigned attempt = 0;
    int end = 0;
    if (n == 0 || g->line.len <= n || !may_be_mark(g) || memchr(g->line.data, '\0', g->line.len))
        return false;
    const char *p = g->line.data + n;
    if (sscanf(p, " %64[A-Za-z0-9_-] %7[a-z]%n", m.id, m.word, &end) != 2 ||
        p[(size_t)end + strspn(p + end, "\r\n")] != '\0')
        return false;
    const char *tail = strrchr(m.id, 't');
    if (!tail || tail == m.id || tail[-1] != '-' || sscanf(tail, "t%9u-%9u%n", &m.trial, &attempt, &end) != 2 ||
        tail[end] != '\0' || m.trial == 0 || (strcmp(m.word, "begin") != 0 && strcmp(m.word, "end") != 0))
        return false;
    *out = m;
    return true;
}

static void put_held_line(struct log *g)
{
    log_put(g, g->line.data, g->held);
    g->held = 0;
    hear_line(g);
    buf_clear(&g->line);
}

static void end_line(struct log *g)
{
    struct mark m;
    bool mark = parse_mark(g, &m);
    if (mark && m.word[0] == 'b') {
        g->due = LOG_DUE_BEGIN; /* the line itself goes there, too */
        return;
    }
    bool ends = mark && g->to == &g->run && strcmp(m.id, g->run_id) == 0;
    if (ends)
        hear_rest(g);
    put_held_line(g);
    if (ends)
        g->due = LOG_DUE_END;
}

/* Where it is kept. 0; -EINVAL: it is no run of this launch. */
static int folder_of_run(const struct log *g, const struct mark *m, char dir[PATH_MAX], struct err *e)
{
    size_t len = strlen(g->o->launch);
    bool ours = strncmp(m->id, g->o->launch, len) == 0 && m->id[len] == '-';
    if (g->o->ids && !ours)
        return err_set(e, -EINVAL, "it is none of this launch");
    int n = g->o->ids ? snprintf(dir, PATH_MAX, "%s/%s", g->o->ids, m->id)
                      : snprintf(dir, PATH_MAX, "%s/%u", g->o->runs, m->trial);
    return n < PATH_MAX ? 0 : err_sys(e, -ENAMETOOLONG, "its folder");
}

/* Its folder's files are open, and everything before this line is where it belongs. False: the disk is full. */
static bool begin_run(struct log *g)
{
    struct mark m;
    char dir[PATH_MAX];
    struct err e = { 0 };
    (void)parse_mark(g, &m); /* it is one */
    log_files_close(&g->run);
    g->to = &g->own;
    int rc = folder_of_run(g, &m, dir, &e);
    if (rc == 0)
        rc = ours_dir_check(dir, &e);
    if (rc == 0)
        rc = log_files_open(&g->run, dir, &e);
    if (rc < 0 && log_disk_may_recover(rc))
        return false;
    g->due = LOG_DUE_NOTHING;
    if (rc < 0) {
        log_note(g, "run %s stays in this log: %s", m.id, e.text);
    } else {
        g->to = &g->run;
        memcpy(g->run_id, m.id, sizeof g->run_id);
        buf_clear(&g->last);
        g->room = LOG_HEARD_ROOM;
    }
    put_held_line(g);
    return true;
}

static bool do_due(struct log *g)
{
    enum log_due due = g->due;
    if (due == LOG_DUE_BEGIN)
        return begin_run(g);
    g->due = LOG_DUE_NOTHING;
    if (due == LOG_DUE_END) {
        log_files_close(&g->run);
        g->to = &g->own;
    } else if (due == LOG_DUE_ROTATE) {
        log_files_rotate(g->to);
        log_note(g, "what was printed before this is in log.1, and what was before that is gone");
    }
    return true;
}

/* --- line by line --------------------------------------------------------------------------------------------------------- */

/* Between lines; inside one that does not end. */
static bool is_time_to_rotate(const struct log *g)
{
    uint64_t size = g->to->size + g->to_log.len, half = g->o->log_cap / 2;
    return size >= (g->inside_line ? half + LONGEST_LINE : half);
}

/* A line, or as much of it as has come. */
static void take_piece(struct log *g)
{
    const char *p = g->in.data + g->in_at, *end = memchr(p, '\n', g->in.len - g->in_at);
    size_t n = end ? (size_t)(end - p) + 1 : g->in.len - g->in_at, room = LONGEST_LINE - g->line.len;
    g->in_at += n;
    buf_put(&g->line, p, n < room ? n : room);
    if (may_be_mark(g)) {
        g->held = g->line.len;
    } else {
        log_put(g, g->line.data, g->held);
        log_put(g, p, n);
        g->held = 0;
    }
    if (end)
        end_line(g);
    if (g->due == LOG_DUE_NOTHING && is_time_to_rotate(g))
        g->due = LOG_DUE_ROTATE;
}

/* The step's last line may lack the newline, and its run the end. */
static void finish(struct log *g)
{
    g->over = false;
    if (g->line.len > 0)
        put_held_line(g);
    if (g->inside_line)
        log_put(g, "\n", 1);
    hear_rest(g);
    if (g->to == &g->run)
        g->due = LOG_DUE_END;
}

/* False: there is nothing more to decide on. */
static bool take_more(struct log *g)
{
    if (g->in_at < g->in.len) {
        while (g->in_at < g->in.len && g->due == LOG_DUE_NOTHING)
            take_piece(g);
        return true;
    }
    buf_clear(&g->in);
    g->in_at = 0;
    if (!g->over)
        return false;
    finish(g);
    return true;
}

void log_take(struct log *g, const char *p, size_t len)
{
    buf_put(&g->in, p, len);
}

void log_take_end(struct log *g)
{
    g->over = true;
}

/* --- into the files ------------------------------------------------------------------------------------------------------- */

bool log_disk_may_recover(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -EIO;
}

bool log_busy(const struct log *g)
{
    return g->to_log.len > 0 || g->to_heard.len > 0 || g->in_at < g->in.len || g->over || g->due != LOG_DUE_NOTHING;
}

static void lose(struct log *g, struct buf *b, int why)
{
    g->lost += b->len;
    g->lost_why = why;
    buf_clear(b);
}

void log_lose(struct log *g, int why)
{
    buf_shift(&g->in, g->in_at);
    g->in_at = 0;
    g->lost += g->held;
    lose(g, &g->to_log, why);
    lose(g, &g->to_heard, why);
    lose(g, &g->in, why);
    buf_clear(&g->line);
    g->held = 0;
    g->over = false;
    g->due = LOG_DUE_NOTHING;
    g->inside_line = true; /* for all we know; the next note begins a line */
}

/* How much of it was written; the rest stays where waiting may cure it. */
static size_t write_out(struct log *g, struct buf *b, int fd)
{
    size_t at = 0;
    int rc = 0;
    while (at < b->len && rc == 0) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n >= 0)
            at += (size_t)n; /* in part: the next call says why */
        else if (errno != EINTR)
            rc = -errno;
    }
    buf_shift(b, at);
    if (b->len == 0)
        buf_clear(b); /* forgets that an append found no memory, if one did */
    if (rc < 0 && !log_disk_may_recover(rc)) {
        g->inside_line |= b == &g->to_log;
        lose(g, b, rc);
    }
    return at;
}

void log_flush(struct log *g)
{
    do {
        (void)write_out(g, &g->to_heard, g->to->heard);
        g->to->size += write_out(g, &g->to_log, g->to->log);
        if (g->to_heard.len > 0 || g->to_log.len > 0)
            return;
    } while (g->due == LOG_DUE_NOTHING ? take_more(g) : do_due(g));
}

/* --- opening -------------------------------------------------------------------------------------------------------------- */

/* Room for the most that a buffer ever holds, now that failing is still cheap. */
static void reserve(struct buf *b, size_t bytes)
{
    static const char zeros[4096];
    while (b->len < bytes && !b->failed)
        buf_put(b, zeros, sizeof zeros);
}

int log_open(struct log *g, const struct args *o, struct err *e)
{
    int rc = log_files_open(&g->own, o->dir, e);
    if (rc < 0)
        return rc;
    const struct {
        struct buf *b;
        size_t most;
    } rooms[] = {
        { &g->in, LOG_CHUNK },
        { &g->line, LONGEST_LINE },
        { &g->to_log, LOG_CHUNK + 2 * LONGEST_LINE },
        { &g->to_heard, 2 * (LOG_CHUNK + LONGEST_LINE + LAST_MAX) },
        { &g->last, 3 * LAST_MAX },
    };
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        reserve(rooms[i].b, rooms[i].most);
        if (rooms[i].b->failed)
            return err_sys(e, -ENOMEM, "cannot open the log in '%s'", o->dir);
        buf_clear(rooms[i].b);
    }
    g->o = o;
    g->to = &g->own;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    g->stamp_from_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - clock_boot_ms();
    g->room = LOG_HEARD_ROOM;
    return 0;
}

uint64_t log_size(const struct log *g)
{
    return g->own.size;
}

uint64_t log_heard_size(const struct log *g)
{
    struct stat st;
    return fstat(g->own.heard, &st) == 0 ? (uint64_t)st.st_size : 0; /* it cannot fail on an open plain file */
}
