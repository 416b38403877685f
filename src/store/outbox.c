#include "store/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "store/conn.h"

enum { STUDY_SHIFT = 40, ROOM = 256 << 20, ROOM_REJECTED = 16 << 20, SPARE_PART = 64 };

static int query_range(struct conn_query *q, struct store *s, enum stmt_id id, int64_t after, int64_t to, struct err *e)
{
    int rc = conn_query_init_for(q, s, id, after, e);
    return rc < 0 ? rc : conn_query_bind_i64(q, 2, to, e);
}

int outbox_open(struct outbox *out, struct store *s, int64_t study, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int64_t base = study << STUDY_SHIFT;
    int rc = query_range(&q, s, STMT_OUTBOX_STATE, base, (study + 1) << STUDY_SHIFT, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc < 0)
        return rc;
    *out = (struct outbox){ .base = base,
                            .top = sqlite3_column_int64(q.st, 0),
                            .waiting = (uint64_t)sqlite3_column_int64(q.st, 1),
                            .bytes = (uint64_t)sqlite3_column_int64(q.st, 2),
                            .rejected_bytes = (uint64_t)sqlite3_column_int64(q.st, 3),
                            .before = sqlite3_column_int64(q.st, 4),
                            .room_bytes = ROOM,
                            .room_rejected = ROOM_REJECTED };
    return 0;
}

/* --- in --- */

static int put_line(struct conn_query *q, int64_t id, const char *line, size_t len, struct err *e)
{
    int rc = conn_query_bind_i64(q, 1, id, e), sqlite = SQLITE_OK;
    if (rc == 0)
        sqlite = sqlite3_bind_text64(q->st, 2, line, len, SQLITE_STATIC, SQLITE_UTF8);
    if (rc == 0 && sqlite != SQLITE_OK)
        rc = conn_query_fail(q, sqlite, e);
    if (rc == 0)
        rc = conn_query_step(q, e);
    (void)sqlite3_reset(q->st); /* repeats the step's error */
    return rc;
}

static int put_lines(struct outbox *o, struct store *s, const struct outbox_round *r, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, STMT_OUTBOX_ADD, e);
    const char *end = r->text + r->len;
    for (const char *at = r->text; rc == 0 && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        assert(newline); /* whole lines */
        rc = put_line(&q, ++o->top, at, (size_t)(newline - at), e);
        at = newline + 1;
    }
    o->waiting += r->lines;
    o->bytes += r->len;
    return rc;
}

/* --- out --- */

/* How many rows it changed. */
static int run_range(struct store *s, enum stmt_id id, int64_t after, int64_t to, const char *reason,
                     uint64_t *out_rows, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_range(&q, s, id, after, to, e);
    if (rc == 0 && reason)
        rc = conn_query_bind_text(&q, 3, reason, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 0)
        *out_rows = (uint64_t)sqlite3_changes64(s->db);
    return rc;
}

static int end_range(struct outbox *o, struct store *s, const struct outbox_end *x, struct outbox_round *r,
                     struct err *e)
{
    uint64_t rows = 0;
    bool kept = x->reason && o->rejected_bytes + x->bytes <= o->room_rejected;
    int rc = kept ? run_range(s, STMT_OUTBOX_REJECT, x->after, x->to, x->reason, &rows, e)
                  : run_range(s, STMT_OUTBOX_FORGET, x->after, x->to, NULL, &rows, e);
    o->waiting -= x->lines;
    o->bytes -= x->bytes;
    o->rejected_bytes += kept ? x->bytes : 0;
    r->dropped_rejected += x->reason && !kept ? x->lines : 0;
    return rc;
}

/* The id up to which rows above `from` are to go for `bytes` of room, and how much that is. */
static int find_spare(struct store *s, int64_t from, int64_t top, uint64_t bytes, int64_t *out_to, uint64_t *out_bytes,
                      struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_range(&q, s, STMT_OUTBOX_READ, from, top, e);
    uint64_t found = 0;
    while (rc == 0 && found < bytes && (rc = conn_query_step(&q, e)) == 1) {
        *out_to = sqlite3_column_int64(q.st, 0);
        found += (uint64_t)sqlite3_column_bytes(q.st, 1) + 1;
        rc = 0;
    }
    *out_bytes = found;
    return rc;
}

/* A little more than is needed, so that it is not for every line anew. */
static int make_room(struct outbox *o, struct store *s, struct outbox_round *r, struct err *e)
{
    int64_t to = r->spare_from;
    uint64_t bytes = 0, rows = 0;
    if (o->bytes <= o->room_bytes)
        return 0;
    int rc =
        find_spare(s, r->spare_from, o->top, o->bytes - o->room_bytes + o->room_bytes / SPARE_PART, &to, &bytes, e);
    if (rc == 0)
        rc = run_range(s, STMT_OUTBOX_FORGET, r->spare_from, to, NULL, &rows, e);
    o->waiting -= rows;
    o->bytes -= bytes;
    r->dropped += rows;
    return rc;
}

static int take(struct store *s, struct outbox_take *x, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_range(&q, s, STMT_OUTBOX_READ, x->after, x->to, e);
    x->got = 0;
    x->got_to = x->after;
    while (rc == 0 && (rc = conn_query_step(&q, e)) == 1) {
        size_t len = (size_t)sqlite3_column_bytes(q.st, 1);
        if (x->got == x->lines || (x->got > 0 && x->text.len + len + 1 > x->bytes))
            return 0;
        buf_put(&x->text, sqlite3_column_blob(q.st, 1), len);
        buf_putc(&x->text, '\n');
        x->got++;
        x->got_to = sqlite3_column_int64(q.st, 0);
        rc = x->text.failed ? err_sys(e, -ENOMEM, "cannot read store '%s'", s->path) : 0;
    }
    if (rc == 0)
        x->got_to = x->to; /* there is no more */
    return rc;
}

int outbox_run(const struct outbox *now, struct store *s, struct outbox_round *r, struct outbox *out_after,
               struct err *e)
{
    struct outbox o = *now;
    r->dropped = r->dropped_rejected = 0;
    int rc = r->lines ? put_lines(&o, s, r, e) : 0;
    for (size_t i = 0; rc == 0 && i < r->n_ends; i++)
        rc = end_range(&o, s, &r->ends[i], r, e);
    if (rc == 0)
        rc = make_room(&o, s, r, e);
    for (size_t i = 0; rc == 0 && i < r->n_takes; i++)
        rc = take(s, &r->takes[i], e);
    if (rc == 0)
        *out_after = o;
    return rc;
}
