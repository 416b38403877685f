/* Any body as the answer of a query: every row has a time and cells that can be asked for, and an answer that is refused says why. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/influx_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int take_row(void *ctx, const struct influx_row *r)
{
    static const char *const columns[] = { "time", "value", "error", "state", "meter", "node", "proc/cpu-time", "" };
    ++*(size_t *)ctx;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        double x = influx_row_number(r, columns[i]);
        const char *text = influx_row_text(r, columns[i]);
        check(isnan(x) || isfinite(x));
        check(!text || strlen(text) < 1000000);
    }
    check(isfinite(influx_row_number(r, "time")));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *body = malloc(size ? size : 1); /* of exact size: no NUL behind it */
    check(body != NULL);
    if (size)
        memcpy(body, data, size);
    size_t n = 0;
    struct influx_page page = { .rows = SIZE_MAX };
    struct err e = { 0 };
    int rc = influx_rows(body, size, take_row, &n, &page, &e);
    check(rc == 0 || rc == -EPROTO);
    check(rc == 0 ? page.rows == n : page.rows == SIZE_MAX);
    check(rc == 0 || (e.code == rc && e.text[0]));
    for (const char *c = e.text; *c; c++)
        check(*c >= 0x20 && *c < 0x7f);
    free(body);
    return 0;
}
