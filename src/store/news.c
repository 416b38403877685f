#include "store/news.h"

#include "store/conn.h"

int news_version(struct store *s, int64_t *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, STMT_DATA_VERSION, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}

int news_marks(struct store *s, int64_t study, int (*row)(void *ctx, const struct news_mark *m), void *ctx,
               struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct news_mark m;
    int rc = conn_query_init_for(&q, s, STMT_MARKS, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &m, e)) == 1)
        rc = row(ctx, &m);
    return rc;
}

int news_summary(struct store *s, int64_t study, struct store_summary *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_summary r;
    int rc = conn_query_init_for(&q, s, STMT_LIST, study, e);
    if (rc == 0)
        rc = conn_query_next(&q, &r, e);
    if (rc == 1) {
        *out = r;
        out->name = out->state = out->metric = NULL;
    }
    return rc;
}

int news_decisions(struct store *s, int64_t study, int64_t *seq, int (*row)(void *ctx, const struct store_decision *d),
                   void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct decision_row r;
    int rc = conn_query_init_for(&q, s, STMT_DECISIONS, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, 0, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, *seq, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1) {
        rc = row(ctx, &r.d);
        *seq = r.d.seq;
    }
    return rc;
}

int news_tuner_log(struct store *s, int64_t study, int64_t *seq, int (*row)(void *ctx, const char *text), void *ctx,
                   struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct log_row r;
    int rc = conn_query_init_for(&q, s, STMT_LOG, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, *seq, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1) {
        rc = row(ctx, r.text);
        *seq = r.seq;
    }
    return rc;
}
