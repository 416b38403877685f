#include "store/notes.h"

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

int store_note_put(struct store *s, const struct store_note *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_NOTE_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

static int bind_owner(struct conn_query *q, struct store *s, enum stmt_id id, int64_t study, int trial, struct err *e)
{
    int rc = conn_query_init_for(q, s, id, study, e);
    return rc == 0 ? conn_query_bind_i64(q, 2, trial, e) : rc;
}

static int forget(struct store *s, int64_t study, int trial, const char *text, int *out_n, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = bind_owner(&q, s, STMT_NOTE_FORGET, study, trial, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 3, text, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 0)
        *out_n = sqlite3_changes(s->db);
    return rc;
}

int store_note_forget(struct store *s, int64_t study, int trial, const char *text, int *out_n, struct err *e)
{
    bool own;
    int n = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = forget(s, study, trial, text, &n, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        *out_n = n;
    return rc;
}

int store_notes(struct store *s, int64_t study, int trial, int (*row)(void *ctx, const struct store_note *r), void *ctx,
                struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_note r;
    int rc = bind_owner(&q, s, STMT_NOTES, study, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}
