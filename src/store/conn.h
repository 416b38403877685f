/* The connection to the store's file: opening it, SQLite's codes as errors, statements, transactions. conn.c also
 * holds store_open() to store_rollback(), which store.h describes; what is here is internal to src/store/. */
#ifndef STORE_CONN_H
#define STORE_CONN_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/schema.h"
#include "store/store.h"

struct store {
    sqlite3 *db;
    char *path;
    bool in_txn; /* between store_begin and its end; SQLite may have rolled back meanwhile */
    sqlite3_stmt *kept[STMT_COUNT];
    pthread_mutex_t lock; /* recursive: of whoever uses the connection */
    int (*gate)(void *ctx, struct err *e);
    void *gate_ctx;
    bool undone; /* behind a gate: a transaction of the calls of store.h was rolled back */
    const struct store_rider *rider;
    void *rider_ctx;
};

/* One use of a statement, with the connection locked meanwhile. It is taken out of `kept` meanwhile, so that a callback which asks the same again gets another. */
struct conn_query {
    struct store *s;
    enum stmt_id id;
    sqlite3_stmt *st;
};

/* The query is to be done even when init failed: AUTO_QUERY does it. All but the steps return 0; every failure is explained.
 * init_for() binds the first parameter too: it is nearly always the row that all belongs to. */
int conn_query_init(struct conn_query *q, struct store *s, enum stmt_id id, struct err *e);
int conn_query_init_for(struct conn_query *q, struct store *s, enum stmt_id id, int64_t owner, struct err *e);
void conn_query_done(struct conn_query *q);
#define AUTO_QUERY __attribute__((cleanup(conn_query_done)))

int conn_query_bind_i64(struct conn_query *q, int param, int64_t value, struct err *e);
int conn_query_bind_text(struct conn_query *q, int param, const char *text, struct err *e); /* borrows until done */
int conn_query_bind_row(struct conn_query *q, const void *row, struct err *e);              /* so does this */

/* 1 a row, 0 the end; next() fills `row`, whose texts hold until the following step. */
int conn_query_step(struct conn_query *q, struct err *e);
int conn_query_next(struct conn_query *q, void *row, struct err *e);

/* The two forms of statement that nearly every row needs: adding it, within the caller's transaction (out_id NULL: not asked for), and
 * the next free number of its kind within its owner. */
int conn_insert(struct store *s, enum stmt_id id, const void *row, int64_t *out_id, struct err *e);
int conn_next_number(struct store *s, enum stmt_id id, int64_t owner, int64_t *out, struct err *e);

/* Explains an SQLite code that came of this query; the negative errno. */
int conn_query_fail(const struct conn_query *q, int sqlite, struct err *e);

/* A write joins the open transaction, or makes its own: `own` tells conn_write_end() which. That returns `rc`, or how the commit
 * failed. */
int conn_write_begin(struct store *s, bool *own, struct err *e);
int conn_write_end(struct store *s, bool own, int rc, struct err *e);

#endif
