#include "store/models.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

int store_model_get(struct store *s, const char *name, char **out_json, int64_t *out_version, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, STMT_MODEL_GET, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 1, name, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc <= 0)
        return rc;
    const char *text = (const char *)sqlite3_column_text(q.st, 0);
    char *json = text ? strdup(text) : NULL;
    if (!json)
        return conn_query_fail(&q, SQLITE_NOMEM, e);
    *out_json = json;
    *out_version = sqlite3_column_int64(q.st, 1);
    return 1;
}

/* Runs the statement to its end: 1 when it changed a model, whose version it then yields, else 0. */
static int change(struct conn_query *q, int64_t *out_version, struct err *e)
{
    int rc = conn_query_step(q, e);
    if (rc <= 0)
        return rc;
    *out_version = sqlite3_column_int64(q->st, 0);
    rc = conn_query_step(q, e);
    return rc < 0 ? rc : 1;
}

static int moved(const struct store *s, const char *name, int64_t expected, struct err *e)
{
    if (expected == 0)
        return err_set(e, -EAGAIN, "cannot write store '%s': model '%s' is there already", s->path, name);
    return err_set(e, -EAGAIN, "cannot write store '%s': model '%s' was changed by somebody else after version %lld",
                   s->path, name, (long long)expected);
}

static int put(struct store *s, const char *name, const char *json, int64_t expected, int64_t *out_version,
               struct err *e)
{
    if (!name || !json)
        return err_set(e, -EINVAL, "cannot write store '%s': a model needs a name and a text", s->path);
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, expected == 0 ? STMT_MODEL_NEW : STMT_MODEL_CHANGE, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 1, name, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, expected, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 3, json, e);
    if (rc == 0)
        rc = change(&q, out_version, e);
    return rc == 0 ? moved(s, name, expected, e) : rc;
}

int store_model_put(struct store *s, const char *name, const char *json, int64_t expected, int64_t *out_version,
                    struct err *e)
{
    bool own;
    int64_t version = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = put(s, name, json, expected, &version, e);
    rc = conn_write_end(s, own, rc > 0 ? 0 : rc, e);
    if (rc == 0 && out_version)
        *out_version = version;
    return rc;
}

int store_models(struct store *s, int (*row)(void *ctx, const char *name, int64_t version), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct model_row r;
    int rc = conn_query_init(&q, s, STMT_MODELS, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, r.name, r.version);
    return rc;
}
