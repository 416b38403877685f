/* What a 1.x /query answers, as rows: {"results":[{"series":[{"name","tags","columns","values"}]}]}, asked for without chunks and
 * with epoch=ns. Pure. */
#ifndef MONITORING_INFLUX_ROWS_H
#define MONITORING_INFLUX_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* One row; of the call alone. */
struct influx_row {
    int64_t time_ns;
    const char *measurement;               /* NULL: it has no name */
    const json_t *columns, *values, *tags; /* private; tags NULL: none */
};

/* A number, or a text that is one as a whole (who wrote it had it as text): NAN where there is no such column, nothing in it, or no
 * number. */
double influx_row_number(const struct influx_row *r, const char *column);

/* A text of a column, or of a tag that was grouped by; NULL: none. */
const char *influx_row_text(const struct influx_row *r, const char *column);

struct influx_page {
    size_t rows;
    bool partial; /* the server left out what comes behind */
};

/* Calls `row` for each, series after series; what it returns but 0 ends the walk, and is returned. -EPROTO: not such an answer, a row
 * without a time or of another length than the columns, or the server's own error, which may stand in a 200; no row was handed out
 * then, but for a fault within the rows. */
int influx_rows(const char *body, size_t len, int (*row)(void *ctx, const struct influx_row *r), void *ctx,
                struct influx_page *out, struct err *e);

#endif
