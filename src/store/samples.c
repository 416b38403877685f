#include "store/samples.h"

#include "store/conn.h"
#include "store/schema.h"

int store_sample_add(struct store *s, int64_t trial, const struct store_sample *row, struct err *e)
{
    bool own;
    struct sample_row r = { trial, *row };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_SAMPLE_ADD, &r, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_samples(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_sample *r), void *ctx,
                  struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct sample_row r;
    int rc = conn_query_init_for(&q, s, STMT_SAMPLES, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.s);
    return rc;
}

int store_profile_add(struct store *s, int64_t trial, struct store_profile *row, struct err *e)
{
    bool own;
    struct profile_row r = { trial, *row };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_PROFILE, trial, &r.p.seq, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_PROFILE_ADD, &r, NULL, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        row->seq = r.p.seq;
    return rc;
}

int store_profiles(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_profile *r), void *ctx,
                   struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct profile_row r;
    int rc = conn_query_init_for(&q, s, STMT_PROFILES, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.p);
    return rc;
}
