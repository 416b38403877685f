#include "store/series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

enum { HELD_MAX = SERIES_STEPS_MAX * 8 }; /* points, of all names */

/* --- what is held ------------------------------------------------------------------------------------------------------ */

void series_clear(struct series *s)
{
    s->n = s->n_names = 0;
}

void series_done(struct series *s)
{
    free(s->names);
    free(s->v);
    *s = (struct series){ 0 };
}

int64_t series_stride(int64_t steps)
{
    int64_t stride = 1;
    while (steps / stride > SERIES_STEPS_MAX)
        stride *= 2;
    return stride;
}

/* Its number; the next one, where it is new and there is room; n_names, where there is none. */
static int name_of(struct series *s, const char *name, size_t *out)
{
    size_t i = 0;
    while (i < s->n_names && strncmp(s->names[i], name, SERIES_NAME_MAX - 1) != 0)
        i++;
    *out = i;
    if (i < s->n_names || i == SERIES_NAMES_MAX)
        return 0;
    void *more = array_more(s->names, s->n_names, &s->cap_names, sizeof *s->names);
    if (!more)
        return -ENOMEM;
    s->names = more;
    (void)snprintf(s->names[s->n_names++], SERIES_NAME_MAX, "%s", name);
    return 0;
}

static void thin(struct series *s, int64_t stride)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].step % stride == 0)
            s->v[kept++] = s->v[i];
    s->n = kept;
}

int series_add(struct series *s, const char *name, int epoch, int64_t step, int64_t at_ms, double value)
{
    int64_t stride = series_stride(step);
    size_t at = 0;
    if (step % stride != 0)
        return 0;
    if (s->n >= HELD_MAX)
        thin(s, stride);
    if (s->n >= HELD_MAX && step > 0)
        return 0;
    int rc = name_of(s, name, &at);
    if (rc < 0 || at == s->n_names)
        return rc;
    void *more = array_more(s->v, s->n, &s->cap, sizeof *s->v);
    if (!more)
        return -ENOMEM;
    s->v = more;
    s->v[s->n++] = (struct series_point){ at, epoch, step, at_ms, value };
    return 0;
}

/* --- in the store ------------------------------------------------------------------------------------------------------ */

static int64_t last_step(const struct series *held)
{
    int64_t last = 0;
    for (size_t i = 0; i < held->n; i++)
        last = held->v[i].step > last ? held->v[i].step : last;
    return last;
}

/* Of the steps up to `last`, those that are stored already, too. */
static int thin_stored(struct store *s, int64_t trial, int64_t stride, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_SERIES_THIN, trial, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, stride, e);
    return rc == 0 ? conn_query_step(&q, e) : rc;
}

static int put_all(struct store *s, int64_t trial, int attempt, const struct series *held, int64_t stride,
                   struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < held->n; i++) {
        const struct series_point *p = &held->v[i];
        const struct store_value row = { trial,
                                         held->names[p->name],
                                         p->step,
                                         p->epoch,
                                         attempt,
                                         p->at_ms,
                                         isfinite(p->value) ? p->value : (double)NAN };
        if (p->step % stride == 0)
            rc = conn_insert(s, STMT_SERIES_PUT, &row, NULL, e);
    }
    return rc;
}

int store_series_put(struct store *s, int64_t trial, int attempt, struct series *held, struct err *e)
{
    bool own;
    int64_t before = 0, last = last_step(held);
    if (held->n == 0)
        return 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0 && last > SERIES_STEPS_MAX)
        rc = conn_next_number(s, STMT_SERIES_LAST, trial, &before, e);
    int64_t stride = series_stride(before > last ? before : last);
    if (rc == 0)
        rc = put_all(s, trial, attempt, held, stride, e);
    if (rc == 0 && last > SERIES_STEPS_MAX && stride > series_stride(before))
        rc = thin_stored(s, trial, stride, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        series_clear(held);
    return rc;
}

int store_series(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_value *r), void *ctx,
                 struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_value r;
    int rc = conn_query_init_for(&q, s, STMT_SERIES, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

static int query_named(struct conn_query *q, struct store *s, enum stmt_id id, int64_t trial, const char *name,
                       struct err *e)
{
    int rc = conn_query_init_for(q, s, id, trial, e);
    if (rc == 0)
        rc = conn_query_bind_text(q, 2, name, e);
    return rc == 0 ? conn_query_step(q, e) : rc;
}

int store_series_at_end(struct store *s, int64_t trial, const char *name, double *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_named(&q, s, STMT_SERIES_AT_END, trial, name, e);
    if (rc < 0)
        return rc;
    bool some = rc == 1 && sqlite3_column_type(q.st, 0) != SQLITE_NULL;
    *out = some ? sqlite3_column_double(q.st, 0) : (double)NAN;
    return 0;
}

int store_series_has(struct store *s, const char *name, bool *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = query_named(&q, s, STMT_SERIES_HAS, 0, name, e);
    if (rc >= 0)
        *out = rc == 1;
    return rc < 0 ? rc : 0;
}
