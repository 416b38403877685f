#include "store/sources.h"

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

static int add_content(struct store *s, const struct store_source *row, struct err *e)
{
    const struct content_row content = { row->sha256, { row->bytes, row->len } };
    return row->bytes ? conn_insert(s, STMT_CONTENT_PUT, &content, NULL, e) : 0;
}

int store_source_add(struct store *s, const struct store_source *row, struct err *e)
{
    bool own;
    const struct source_row source = { row->study, row->name, row->path, row->sha256, row->mode, { 0 } };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = add_content(s, row, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_SOURCE_ADD, &source, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_sources(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_source *r), void *ctx,
                  struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct source_row r;
    int rc = conn_query_init_for(&q, s, STMT_SOURCES, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1) {
        const struct store_source one = { r.study, r.name, r.path, r.sha256, r.mode, r.bytes.bytes, r.bytes.len };
        rc = row(ctx, &one);
    }
    return rc;
}
