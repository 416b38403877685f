#include "store/since.h"

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

int store_read_begin(struct store *s, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, STMT_READ_BEGIN, e);
    return rc == 0 ? conn_query_step(&q, e) : rc;
}

void store_read_end(struct store *s)
{
    AUTO_QUERY struct conn_query q;
    struct err e;
    if (conn_query_init(&q, s, STMT_COMMIT, &e) == 0)
        (void)conn_query_step(&q, &e); /* nothing was written */
}

int store_attempts_after(struct store *s, int64_t study, int64_t after, int max, store_since_row *row, void *ctx,
                         struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_since n;
    int rc = conn_query_init_for(&q, s, STMT_ATTEMPTS_AFTER, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, after, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, max, e);
    while (rc == 0 && (rc = conn_query_next(&q, &n, e)) == 1)
        rc = row(ctx, &n);
    return rc;
}

int store_attempts_open(struct store *s, int64_t study, store_since_row *row, void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_since n;
    int rc = conn_query_init_for(&q, s, STMT_ATTEMPTS_OPEN, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &n, e)) == 1)
        rc = row(ctx, &n);
    return rc;
}

int store_attempt_news(struct store *s, int64_t id, store_since_row *row, void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_since n;
    int rc = conn_query_init_for(&q, s, STMT_ATTEMPT_NEWS, id, e);
    if (rc == 0)
        rc = conn_query_next(&q, &n, e);
    if (rc != 1)
        return rc;
    rc = row(ctx, &n);
    return rc == 0 ? 1 : rc;
}

int store_epochs_after(struct store *s, const struct store_since *of, int epoch,
                       int (*row)(void *ctx, const struct store_epoch *r), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_epoch r;
    int rc = conn_query_init_for(&q, s, STMT_EPOCHS_AFTER, of->trial, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, epoch, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, of->attempt, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_decisions_after(struct store *s, int64_t study, int64_t seq, int max,
                          int (*row)(void *ctx, const struct store_decision *d), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct decision_row r;
    int rc = conn_query_init_for(&q, s, STMT_DECISIONS_AFTER, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, seq, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, max, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.d);
    return rc;
}

int store_newest(struct store *s, int64_t study, int64_t *out_attempt, int64_t *out_decision, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_NEWEST, study, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1) {
        *out_attempt = sqlite3_column_int64(q.st, 0);
        *out_decision = sqlite3_column_int64(q.st, 1);
    }
    return rc < 0 ? rc : 0;
}

/* FNV-1a. */
static uint32_t add(uint32_t sum, const void *bytes, size_t len)
{
    for (const unsigned char *c = bytes; len > 0; len--)
        sum = (sum ^ *c++) * 16777619u;
    return sum;
}

int store_studies_sum(struct store *s, uint32_t *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    uint32_t sum = 2166136261u;
    int rc = conn_query_init(&q, s, STMT_STUDIES_STATES, e);
    while (rc == 0 && (rc = conn_query_step(&q, e)) == 1) {
        int64_t id = sqlite3_column_int64(q.st, 0);
        sum = add(sum, &id, sizeof id);
        sum = add(sum, sqlite3_column_text(q.st, 1), (size_t)sqlite3_column_bytes(q.st, 1));
        rc = 0;
    }
    if (rc == 0)
        *out = sum;
    return rc;
}

int store_epochs_count(struct store *s, int64_t study, int64_t *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_EPOCHS_COUNT, study, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}
