#include "store/queue.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

void store_queued_done(struct store_queued *row)
{
    schema_free_texts(&schema_queue, row);
}

int store_queued_copy(struct store_queued *out, const struct store_queued *row)
{
    struct store_queued copy = *row;
    int rc = schema_own_texts(&schema_queue, &copy);
    if (rc == 0)
        *out = copy;
    return rc;
}

void store_request_done(struct store_request *row)
{
    schema_free_texts(&schema_requests, row);
}

int store_request_copy(struct store_request *out, const struct store_request *row)
{
    struct store_request copy = *row;
    int rc = schema_own_texts(&schema_requests, &copy);
    if (rc == 0)
        *out = copy;
    return rc;
}

bool store_queue_is_over(const char *state)
{
    return strcmp(state, QUEUE_STOPPED) == 0 || strcmp(state, QUEUE_DONE) == 0;
}

bool store_queue_runs(const char *state)
{
    return !store_queue_is_over(state) && strcmp(state, QUEUED) != 0;
}

/* A statement that changes rows, with these behind its first parameter; 1: it changed some. */
struct bound {
    const char *text; /* NULL: the number */
    int64_t number;
};

static int change(struct store *s, enum stmt_id id, int64_t owner, const struct bound *v, int n, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, id, owner, e);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = v[i].text ? conn_query_bind_text(&q, i + 2, v[i].text, e) : conn_query_bind_i64(&q, i + 2, v[i].number, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    return rc < 0 ? rc : sqlite3_changes(s->db) > 0;
}

static int write_change(struct store *s, enum stmt_id id, int64_t owner, const struct bound *v, int n, struct err *e)
{
    bool own;
    int changed = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = changed = change(s, id, owner, v, n, e);
    rc = conn_write_end(s, own, rc > 0 ? 0 : rc, e);
    return rc < 0 ? rc : changed;
}

/* Binds one text, which is its study's name. */
static int query_of(struct conn_query *q, struct store *s, enum stmt_id id, const char *study, struct err *e)
{
    int rc = conn_query_init(q, s, id, e);
    return rc == 0 && study ? conn_query_bind_text(q, 1, study, e) : rc;
}

static int forget_older(struct store *s, const char *study, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_of(&q, s, STMT_QUEUE_FORGET, study, e);
    return rc < 0 ? rc : conn_query_step(&q, e);
}

int store_queue_add(struct store *s, struct store_queued *row, struct err *e)
{
    bool own;
    int64_t id = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = forget_older(s, row->study, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_QUEUE_ADD, row, &id, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        row->id = id;
    return rc;
}

int store_queue(struct store *s, const char *study, int (*row)(void *ctx, const struct store_queued *r), void *ctx,
                struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_queued r;
    int rc = query_of(&q, s, STMT_QUEUE, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

static int keep_queued(void *ctx, const struct store_queued *r)
{
    return store_queued_copy(ctx, r) < 0 ? -ENOMEM : 1;
}

int store_queue_find(struct store *s, const char *study, struct store_queued *out, struct err *e)
{
    int rc = store_queue(s, study, keep_queued, out, e);
    return rc == -ENOMEM ? err_sys(e, rc, "study '%s'", study) : rc;
}

int store_queue_put(struct store *s, const struct store_queued *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_QUEUE_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_queue_put_share(struct store *s, int64_t id, int cpus, struct err *e)
{
    const struct bound v[] = { { NULL, cpus } };
    int rc = write_change(s, STMT_QUEUE_SHARE, id, v, ARRAY_LEN(v), e);
    return rc < 0 ? rc : 0;
}

int store_queue_put_use(struct store *s, int64_t id, int most, int grain, int to_go, struct err *e)
{
    const struct bound v[] = { { NULL, most }, { NULL, grain }, { NULL, to_go } };
    int rc = write_change(s, STMT_QUEUE_USE, id, v, ARRAY_LEN(v), e);
    return rc < 0 ? rc : 0;
}

int store_queue_turn(struct store *s, int64_t id, const char *from, const char *to, struct err *e)
{
    const struct bound v[] = { { from, 0 }, { to, 0 } };
    return write_change(s, STMT_QUEUE_TURN, id, v, ARRAY_LEN(v), e);
}

int store_request_add(struct store *s, struct store_request *row, struct err *e)
{
    bool own;
    int64_t id = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_REQUEST_ADD, row, &id, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        row->id = id;
    return rc;
}

int store_request_answer(struct store *s, int64_t id, bool done, const char *answer, struct err *e)
{
    const struct bound v[] = { { done ? "done" : "refused", 0 }, { answer, 0 } };
    int rc = write_change(s, STMT_REQUEST_ANSWER, id, v, ARRAY_LEN(v), e);
    return rc < 0 ? rc : 0;
}

int store_request_find(struct store *s, int64_t id, struct store_request *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_request r;
    int rc = conn_query_init_for(&q, s, STMT_REQUEST_FIND, id, e);
    if (rc == 0)
        rc = conn_query_next(&q, &r, e);
    if (rc == 1 && store_request_copy(out, &r) < 0)
        return err_sys(e, -ENOMEM, "what was asked");
    return rc;
}

int store_requests(struct store *s, const char *study, int (*row)(void *ctx, const struct store_request *r), void *ctx,
                   struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_request r;
    int rc = query_of(&q, s, STMT_REQUESTS, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_changes(struct store *s, int64_t *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, STMT_CHANGES, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}
