#include "store/handed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

static int bind_place(struct conn_query *q, int64_t study, const char *target, int trial, struct err *e)
{
    int rc = conn_query_bind_i64(q, 1, study, e);
    if (rc == 0)
        rc = conn_query_bind_text(q, 2, target, e);
    return rc == 0 ? conn_query_bind_i64(q, 3, trial, e) : rc;
}

int store_handed_get(struct store *s, int64_t study, const char *target, int trial, struct handed *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct handed h;
    int rc = conn_query_init(&q, s, STMT_HANDED_GET, e);
    if (rc == 0)
        rc = bind_place(&q, study, target, trial, e);
    if (rc == 0)
        rc = conn_query_next(&q, &h, e);
    if (rc <= 0)
        return rc;
    if (schema_own_texts(&schema_handed, &h) < 0)
        return conn_query_fail(&q, SQLITE_NOMEM, e);
    *out = h;
    return 1;
}

void handed_done(struct handed *h)
{
    schema_free_texts(&schema_handed, h);
}

int store_handed_put(struct store *s, const struct handed *h, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_HANDED_PUT, h, NULL, e);
    return conn_write_end(s, own, rc, e);
}

static int forget(struct store *s, int64_t study, const char *target, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_HANDED_FORGET, study, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 2, target, e);
    return rc == 0 ? conn_query_step(&q, e) : rc;
}

int store_handed_forget(struct store *s, int64_t study, const char *target, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = forget(s, study, target, e);
    return conn_write_end(s, own, rc, e);
}

int store_handed_open(struct store *s, int64_t study, const char *target, int (*row)(void *ctx, int trial), void *ctx,
                      struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_HANDED_OPEN, study, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 2, target, e);
    while (rc == 0 && (rc = conn_query_step(&q, e)) == 1)
        rc = row(ctx, sqlite3_column_int(q.st, 0));
    return rc;
}

int store_handed_values(struct store *s, int64_t trial, const struct handed *after, int upto, int most,
                        int (*row)(void *ctx, const struct store_value *r), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_value r;
    const int64_t numbers[] = { [2] = after->epoch, [4] = after->step, [5] = upto, [6] = most };
    int rc = conn_query_init_for(&q, s, STMT_HANDED_VALUES, trial, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 3, after->name, e);
    for (int i = 2; rc == 0 && i < (int)ARRAY_LEN(numbers); i++)
        rc = i == 3 ? 0 : conn_query_bind_i64(&q, i, numbers[i], e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_handed_decisions(struct store *s, int64_t study, int trial, int64_t seq, int most,
                           int (*row)(void *ctx, const struct store_decision *d), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct decision_row r;
    const int64_t numbers[] = { study, trial, seq, most };
    int rc = conn_query_init(&q, s, STMT_HANDED_DECISIONS, e);
    for (int i = 0; rc == 0 && i < (int)ARRAY_LEN(numbers); i++)
        rc = conn_query_bind_i64(&q, i + 1, numbers[i], e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.d);
    return rc;
}

int store_last_epoch(struct store *s, int64_t trial, int *out, struct err *e)
{
    int64_t last = 0;
    int rc = conn_next_number(s, STMT_LAST_EPOCH, trial, &last, e);
    if (rc == 0)
        *out = (int)last;
    return rc;
}
