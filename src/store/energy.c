#include "store/energy.h"

#include "store/conn.h"
#include "store/schema.h"

int store_reading_add(struct store *s, int64_t study, const struct store_reading *row, struct err *e)
{
    bool own;
    struct energy_row r = { study, *row };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_READING_ADD, &r, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_readings(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_reading *r), void *ctx,
                   struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct energy_row r;
    int rc = conn_query_init_for(&q, s, STMT_READINGS, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.r);
    return rc;
}
