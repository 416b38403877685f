/* Reading back from an InfluxDB over HTTP, by libcurl: the rows of a SELECT, page after page. 1.x, and what answers its /query. */
#ifndef MONITORING_INFLUX_QUERY_H
#define MONITORING_INFLUX_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/credential.h"
#include "monitoring/influx_rows.h"

enum { INFLUX_PAGE_ROWS = 10000, INFLUX_PAGE_MAX = 16 << 20 }; /* asked for at once; bytes of an answer, at most */

/* Where to read. All is copied. */
struct influx_query_cfg {
    const char *url;                     /* as in monitoring/influx */
    const char *database;                /* of 1.x, or what 2.x maps to a bucket */
    const char *retention;               /* policy; NULL: the database's own */
    const struct credential *credential; /* NULL: none */
    bool allow_plain;                    /* it may go to another machine over http:// */
    const char *ca_file;                 /* trusted instead of the system's; NULL */
    long connect_ms, timeout_ms;         /* 0: 5 s, 30 s for a page */
};

struct influx_query; /* one connection, kept alive; of one thread at a time */

/* Looks up and connects nothing. -EINVAL: the URL is none, or there is no database; -ENOMEM. */
int influx_query_new(struct influx_query **out, const struct influx_query_cfg *cfg, struct err *e);
void influx_query_free(struct influx_query *x); /* NULL is fine */

/* What is read: columns and a condition in InfluxQL. No tag may be grouped by. */
struct influx_select {
    const char *columns;     /* "value, error, \"proc/cpu-time\"" */
    const char *measurement; /* as it is; quoted here */
    const char *where;       /* without the time: "study = 'demo'" */
    int64_t from_ns, to_ns;  /* both included */
};

/* Calls `row` for every row in the order of time; what it returns but 0 ends the walk, and is returned. Blocks. However few rows the server
 * hands out at once (max-row-limit), all of them come: it is asked until nothing is left. -EHOSTUNREACH: nobody answers; -EACCES: the
 * credentials are refused; -EPROTO: the server's error, or an answer that is none, too large, or cut off; -ENOMEM. Rows may have been
 * handed out before a failure. Redirects are not followed, certificates are verified, no proxy is asked. */
int influx_query_select(struct influx_query *x, const struct influx_select *s,
                        int (*row)(void *ctx, const struct influx_row *r), void *ctx, struct err *e);

/* Appends 'text' as InfluxQL's string, whatever is in it. */
void influx_query_put_text(struct buf *to, const char *text);

#endif
