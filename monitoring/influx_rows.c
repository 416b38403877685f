#include "monitoring/influx_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* --- cells --- */

static const json_t *cell(const struct influx_row *r, const char *column)
{
    for (size_t i = 0; i < json_array_size(r->columns); i++) {
        const char *name = json_string_value(json_array_get(r->columns, i));
        if (name && strcmp(name, column) == 0)
            return json_array_get(r->values, i);
    }
    return json_object_get(r->tags, column);
}

static double number_of(const char *text)
{
    char *end;
    double x = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(x) ? x : (double)NAN;
}

double influx_row_number(const struct influx_row *r, const char *column)
{
    const json_t *j = cell(r, column);
    if (json_is_number(j))
        return json_number_value(j);
    return json_is_string(j) ? number_of(json_string_value(j)) : (double)NAN;
}

const char *influx_row_text(const struct influx_row *r, const char *column)
{
    return json_string_value(cell(r, column));
}

/* --- the answer --- */

struct walk {
    int (*row)(void *ctx, const struct influx_row *r);
    void *ctx;
    struct influx_page page;
    struct err *e;
};

static int not_an_answer(struct err *e, const char *why)
{
    return err_set(e, -EPROTO, "this is no answer of an influxdb: %s", why);
}

/* The server's words on one line. */
static int refused(struct err *e, const char *words)
{
    char plain[256];
    size_t n = 0;
    for (; words[n] && n + 1 < sizeof plain; n++)
        plain[n] = (unsigned char)words[n] < 0x20 || (unsigned char)words[n] >= 0x7f ? ' ' : words[n];
    plain[n] = '\0';
    return err_set(e, -EPROTO, "influxdb says: %s", n ? plain : "nothing");
}

/* Where "time" stands; -1: nowhere. */
static int time_column(const json_t *columns)
{
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const char *name = json_string_value(json_array_get(columns, i));
        if (name && strcmp(name, "time") == 0)
            return (int)i;
    }
    return -1;
}

static int walk_row(struct walk *w, struct influx_row *r, int time)
{
    const json_t *at = json_array_get(r->values, (size_t)time);
    if (json_array_size(r->values) != json_array_size(r->columns) || !json_is_integer(at))
        return not_an_answer(w->e, "a row without a time, or not as long as its columns");
    r->time_ns = json_integer_value(at);
    w->page.rows++;
    return w->row(w->ctx, r);
}

static int walk_series(struct walk *w, const json_t *series)
{
    struct influx_row r = { .measurement = json_string_value(json_object_get(series, "name")),
                            .columns = json_object_get(series, "columns"),
                            .tags = json_object_get(series, "tags") };
    const json_t *values = json_object_get(series, "values");
    int time = time_column(r.columns), rc = 0;
    if (time < 0 || !json_is_array(values))
        return not_an_answer(w->e, "a series without times or without values");
    w->page.partial |= json_is_true(json_object_get(series, "partial"));
    for (size_t i = 0; rc == 0 && i < json_array_size(values); i++) {
        r.values = json_array_get(values, i);
        rc = walk_row(w, &r, time);
    }
    return rc;
}

static int walk_result(struct walk *w, const json_t *result)
{
    const json_t *list = json_object_get(result, "series");
    int rc = json_is_object(result) ? 0 : not_an_answer(w->e, "a result that is no object");
    w->page.partial |= json_is_true(json_object_get(result, "partial"));
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = walk_series(w, json_array_get(list, i));
    return rc;
}

/* Before any row is handed out. */
static int look_for_errors(const json_t *root, const json_t *results, struct err *e)
{
    const char *words = json_string_value(json_object_get(root, "error"));
    for (size_t i = 0; !words && i < json_array_size(results); i++)
        words = json_string_value(json_object_get(json_array_get(results, i), "error"));
    if (words)
        return refused(e, words);
    return json_is_array(results) ? 0 : not_an_answer(e, "it has no results");
}

int influx_rows(const char *body, size_t len, int (*row)(void *ctx, const struct influx_row *r), void *ctx,
                struct influx_page *out, struct err *e)
{
    struct walk w = { .row = row, .ctx = ctx, .e = e };
    AUTO_JSON json_t *root = len ? json_loadb(body, len, 0, NULL) : NULL;
    if (!root)
        return not_an_answer(e, "it is no JSON");
    const json_t *results = json_object_get(root, "results");
    int rc = look_for_errors(root, results, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(results); i++)
        rc = walk_result(&w, json_array_get(results, i));
    if (rc == 0)
        *out = w.page;
    return rc;
}
