#include "store/samples.h"

#include <errno.h>
#include <math.h>

#include "base/own.h"
#include "monitoring/sample_blob.h"
#include "monitoring/sample_text.h"
#include "store/conn.h"
#include "store/schema.h"

/* --- samples --- */

/* The id of our list of features in the trial's study; 0: there is no such trial. */
static int find_features(struct store *s, enum stmt_id id, int64_t trial, const char *names, int64_t *out,
                         struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, id, trial, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 2, names, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}

static int name_features(struct store *s, int64_t trial, int64_t *out, struct err *e)
{
    AUTO_BUF struct buf names = BUF_INIT;
    feature_list_put(&names);
    if (names.failed)
        return err_sys(e, -ENOMEM, "cannot write store '%s'", s->path);
    int rc = find_features(s, STMT_FEATURES_FIND, trial, buf_text(&names), out, e);
    return rc < 0 || *out ? rc : find_features(s, STMT_FEATURES_ADD, trial, buf_text(&names), out, e);
}

static double cpu_of(const struct reading v[FEATURES])
{
    const struct reading *r = &v[FEATURE_PROC_CPU_TIME];
    return r->state == READING_OK ? r->value : (double)NAN;
}

int store_sample_add(struct store *s, int64_t trial, const struct store_sample *row, struct err *e)
{
    bool own;
    AUTO_BUF struct buf blob = BUF_INIT;
    struct sample_row r = { .trial = trial, .s = *row, .cells = "" };
    if (!row->v)
        return err_set(e, -EINVAL, "cannot write store '%s': a sample without values", s->path);
    sample_blob_put(&blob, row->v, FEATURES);
    if (blob.failed)
        return err_sys(e, -ENOMEM, "cannot write store '%s'", s->path);
    r.values = (struct blob){ buf_text(&blob), blob.len };
    r.s.cpu_s = cpu_of(row->v);
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = name_features(s, trial, &r.features, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_SAMPLE_ADD, &r, NULL, e);
    return conn_write_end(s, own, rc, e);
}

/* A walk over samples: the list of the one before is nearly always that of the next. */
struct sample_walk {
    int64_t features;
    struct feature_list list;
    struct reading v[FEATURES];
    struct err why;
};

/* 1: into w->v; 0: there are no values any more; -EINVAL. */
static int read_values(struct sample_walk *w, const struct sample_row *r)
{
    int rc = 0;
    if (r->features == 0 && *r->cells)
        rc = sample_text_read(w->v, FEATURES, r->cells, &w->why);
    if (r->features == 0)
        return rc < 0 ? rc : *r->cells != '\0';
    if (!r->values.bytes)
        return 0;
    if (r->features != w->features && !r->names)
        return err_set(&w->why, -EINVAL, "a sample whose features are not named");
    if (r->features != w->features)
        rc = feature_list_read(&w->list, r->names, &w->why);
    w->features = rc == 0 ? r->features : 0;
    if (rc == 0)
        rc = sample_blob_read(w->v, &w->list, r->values.bytes, r->values.len, &w->why);
    return rc < 0 ? rc : 1;
}

int store_samples(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_sample *r), void *ctx,
                  struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct sample_row r;
    struct sample_walk w = { .features = 0 };
    int rc = conn_query_init_for(&q, s, STMT_SAMPLES, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1) {
        int read = read_values(&w, &r);
        r.s.v = read > 0 ? w.v : NULL;
        r.s.why = read < 0 ? w.why.text : NULL;
        if (read > 0 && r.features == 0)
            r.s.cpu_s = cpu_of(w.v);
        rc = row(ctx, &r.s);
    }
    return rc;
}

/* --- profiles --- */

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
