#include "store/trace_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "core/csv.h"

#define NO_TEXT UINT64_MAX

enum { FLUSH_BYTES = 1 << 20 };

/* --- out --- */

struct sink {
    int fd, rc; /* the first failure stays */
    struct buf b;
};

static void flush(struct sink *s)
{
    if (s->rc == 0)
        s->rc = s->b.failed ? -ENOMEM : io_write_all(s->fd, s->b.data, s->b.len);
    buf_clear(&s->b);
}

static void put(struct sink *s, const void *bytes, size_t len)
{
    if (len >= FLUSH_BYTES) { /* large arrays without a detour */
        flush(s);
        if (s->rc == 0)
            s->rc = io_write_all(s->fd, bytes, len);
        return;
    }
    if (len > 0)
        buf_put(&s->b, bytes, len);
    if (s->b.len >= FLUSH_BYTES)
        flush(s);
}

static void put_count(struct sink *s, uint64_t n)
{
    put(s, &n, sizeof n);
}

static void put_text(struct sink *s, const char *text)
{
    put_count(s, text ? strlen(text) : NO_TEXT);
    if (text)
        put(s, text, strlen(text));
}

static void put_samples(struct sink *s, const struct trace_samples *from, size_t features)
{
    size_t cells = from->n * features;
    put_count(s, from->n);
    put(s, from->t_ns, from->n * sizeof *from->t_ns);
    put(s, from->node, from->n * sizeof *from->node);
    put(s, from->value, cells * sizeof *from->value);
    put(s, from->state, cells * sizeof *from->state);
    put(s, from->ratio, cells * sizeof *from->ratio);
}

static void put_run(struct sink *s, const struct trace_run *r, size_t features)
{
    const char *texts[] = { r->model, r->dataset, r->system, r->hyper, r->results };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        put_text(s, texts[i]);
    put_count(s, (uint64_t)r->status);
    put(s, &r->startup_s, sizeof r->startup_s);
    put_count(s, r->n_epochs);
    put(s, r->epochs, r->n_epochs * sizeof *r->epochs);
    put_count(s, r->n_windows);
    for (size_t i = 0; i < r->n_windows; i++) {
        put(s, &r->windows[i].epoch, sizeof r->windows[i].epoch);
        put_text(s, r->windows[i].setting);
        put(s, &r->windows[i].at, sizeof r->windows[i].at);
    }
    put_samples(s, &r->samples, features);
}

static void put_tuner(struct sink *s, const struct trace_tuner *t)
{
    put_text(s, t->policy);
    if (!t->policy)
        return;
    put_text(s, t->study);
    put_count(s, t->log.n);
    for (size_t i = 0; i < t->log.n; i++)
        put_text(s, t->log.v[i]);
    put_count(s, t->n_decisions);
    for (size_t i = 0; i < t->n_decisions; i++) {
        const struct trace_decision *d = &t->decisions[i];
        put(s, &d->seq, sizeof d->seq);
        put(s, &d->trial, sizeof d->trial);
        put(s, &d->t_s, sizeof d->t_s);
        put_text(s, d->kind);
        put_text(s, d->setting);
        put_text(s, d->reason);
    }
}

int trace_wire_put(int fd, int rc, const struct trace *t, const struct err *error)
{
    struct sink s = { .fd = fd };
    int64_t code = rc;
    put(&s, &code, sizeof code);
    if (rc < 0) {
        put_text(&s, error->text);
    } else {
        put_count(&s, t->features.n);
        for (size_t i = 0; i < t->features.n; i++)
            put_text(&s, t->features.v[i]);
        put_count(&s, t->n);
        for (size_t i = 0; i < t->n; i++)
            put_run(&s, &t->runs[i], t->features.n);
        put_tuner(&s, &t->tuner);
    }
    flush(&s);
    buf_done(&s.b);
    return s.rc;
}

/* --- in: every getter is 0, -EPROTO or -ENOMEM --- */

struct source {
    const char *at;
    size_t left;
};

static int get(struct source *s, void *to, size_t len)
{
    if (len > s->left)
        return -EPROTO;
    if (len > 0)
        memcpy(to, s->at, len);
    s->at += len;
    s->left -= len;
    return 0;
}

/* A count of what takes at least `size` bytes each: no more than are there. */
static int get_count(struct source *s, size_t size, size_t *out)
{
    uint64_t n;
    int rc = get(s, &n, sizeof n);
    if (rc < 0)
        return rc;
    if (n > s->left / size)
        return -EPROTO;
    *out = (size_t)n;
    return 0;
}

static int get_array(struct source *s, void **out, size_t n, size_t size)
{
    if (n > s->left / size)
        return -EPROTO;
    void *array = calloc(n + 1, size);
    if (!array)
        return -ENOMEM;
    *out = array;
    return get(s, array, n * size);
}

/* NULL stays NULL. */
static int get_text(struct source *s, char **out)
{
    uint64_t len;
    int rc = get(s, &len, sizeof len);
    if (rc < 0 || len == NO_TEXT)
        return rc;
    if (len > s->left || len > TRACE_TEXT_MAX || memchr(s->at, '\0', (size_t)len))
        return -EPROTO;
    *out = strndup(s->at, (size_t)len);
    if (!*out)
        return -ENOMEM;
    s->at += len;
    s->left -= (size_t)len;
    return 0;
}

static int get_windows(struct source *s, struct trace_run *r)
{
    size_t n = 0;
    int rc = get_count(s, sizeof(int) + sizeof(uint64_t) + sizeof(struct trace_epoch), &n);
    if (rc < 0)
        return rc;
    r->windows = calloc(n + 1, sizeof *r->windows);
    if (!r->windows)
        return -ENOMEM;
    for (; r->n_windows < n && rc == 0; r->n_windows++) {
        struct trace_window *w = &r->windows[r->n_windows];
        rc = get(s, &w->epoch, sizeof w->epoch);
        if (rc == 0)
            rc = get_text(s, &w->setting);
        if (rc == 0)
            rc = w->setting ? get(s, &w->at, sizeof w->at) : -EPROTO;
    }
    return rc;
}

static int check_states(const struct trace_samples *s, size_t cells)
{
    for (size_t i = 0; i < cells; i++)
        if (s->state[i] > TRACE_NO_FD && s->state[i] != TRACE_ABSENT)
            return -EPROTO;
    return 0;
}

static int get_samples(struct source *s, struct trace_samples *to, size_t features)
{
    size_t n = 0, cells;
    int rc = get_count(s, sizeof *to->t_ns + sizeof *to->node, &n);
    if (rc < 0 || n == 0)
        return rc;
    if (n > TRACE_CELLS_MAX / (features + 1))
        return -EPROTO;
    to->n = n;
    cells = n * features;
    rc = get_array(s, (void **)&to->t_ns, n, sizeof *to->t_ns);
    if (rc == 0)
        rc = get_array(s, (void **)&to->node, n, sizeof *to->node);
    if (rc == 0)
        rc = get_array(s, (void **)&to->value, cells, sizeof *to->value);
    if (rc == 0)
        rc = get_array(s, (void **)&to->state, cells, sizeof *to->state);
    if (rc == 0)
        rc = get_array(s, (void **)&to->ratio, cells, sizeof *to->ratio);
    return rc < 0 ? rc : check_states(to, cells);
}

static int get_texts(struct source *s, struct trace_run *r)
{
    char **texts[] = { &r->model, &r->dataset, &r->system, &r->hyper, &r->results };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts) && rc == 0; i++)
        rc = get_text(s, texts[i]);
    if (rc == 0 && (!r->model || !r->dataset || !r->system || !r->hyper))
        rc = -EPROTO;
    if (rc == 0 && (!csv_is_name(r->model) || !csv_is_name(r->dataset)))
        rc = -EPROTO;
    return rc;
}

static int get_run(struct source *s, struct trace *t)
{
    uint64_t status = 0;
    size_t n = 0;
    struct trace_run *r = trace_add(t);
    if (!r)
        return -ENOMEM;
    int rc = get_texts(s, r);
    if (rc == 0)
        rc = get(s, &status, sizeof status);
    if (rc == 0 && status > RUN_RUNNING)
        rc = -EPROTO;
    r->status = (enum timeline_status)status;
    if (rc == 0)
        rc = get(s, &r->startup_s, sizeof r->startup_s);
    if (rc == 0)
        rc = get_count(s, sizeof *r->epochs, &n);
    if (rc == 0)
        rc = get_array(s, (void **)&r->epochs, n, sizeof *r->epochs);
    if (rc == 0)
        r->n_epochs = n;
    if (rc == 0)
        rc = get_windows(s, r);
    return rc < 0 ? rc : get_samples(s, &r->samples, t->features.n);
}

static int get_features(struct source *s, struct strv *out)
{
    size_t n = 0;
    int rc = get_count(s, sizeof(uint64_t), &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *name = NULL;
        rc = get_text(s, &name);
        if (rc == 0 && (!name || !csv_is_name(name)))
            rc = -EPROTO;
        if (rc == 0)
            strv_take(out, MOVE_PTR(name));
        free(name);
    }
    return rc == 0 && out->failed ? -ENOMEM : rc;
}

static int get_lines(struct source *s, struct strv *out)
{
    size_t n = 0;
    int rc = get_count(s, sizeof(uint64_t), &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *line = NULL;
        rc = get_text(s, &line);
        if (rc == 0 && (!line || strchr(line, '\n')))
            rc = -EPROTO;
        if (rc == 0)
            strv_take(out, MOVE_PTR(line));
        free(line);
    }
    return rc == 0 && out->failed ? -ENOMEM : rc;
}

static int get_decision(struct source *s, struct trace_decision *d)
{
    int rc = get(s, &d->seq, sizeof d->seq);
    if (rc == 0)
        rc = get(s, &d->trial, sizeof d->trial);
    if (rc == 0)
        rc = get(s, &d->t_s, sizeof d->t_s);
    char **const texts[] = { &d->kind, &d->setting, &d->reason };
    for (size_t i = 0; i < ARRAY_LEN(texts) && rc == 0; i++) {
        rc = get_text(s, texts[i]);
        if (rc == 0 && !*texts[i])
            rc = -EPROTO;
    }
    return rc;
}

static int get_decisions(struct source *s, struct trace_tuner *t)
{
    size_t n = 0;
    int rc = get_count(s, sizeof(int64_t) + sizeof(int) + sizeof(double) + 3 * sizeof(uint64_t), &n);
    if (rc < 0)
        return rc;
    t->decisions = calloc(n + 1, sizeof *t->decisions);
    if (!t->decisions)
        return -ENOMEM;
    for (; t->n_decisions < n && rc == 0; t->n_decisions++)
        rc = get_decision(s, &t->decisions[t->n_decisions]);
    return rc;
}

static int get_tuner(struct source *s, struct trace_tuner *t)
{
    int rc = get_text(s, &t->policy);
    if (rc < 0 || !t->policy)
        return rc;
    rc = get_text(s, &t->study);
    if (rc == 0 && (!t->study || !csv_is_name(t->policy) || !csv_is_name(t->study)))
        rc = -EPROTO;
    if (rc == 0)
        rc = get_lines(s, &t->log);
    return rc < 0 ? rc : get_decisions(s, t);
}

static int get_trace(struct source *s, struct trace *t)
{
    size_t n = 0;
    int rc = get_features(s, &t->features);
    if (rc == 0)
        rc = get_count(s, sizeof(uint64_t), &n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = get_run(s, t);
    if (rc == 0)
        rc = get_tuner(s, &t->tuner);
    return rc == 0 && s->left ? -EPROTO : rc;
}

static int explain(int rc, const char *path, struct err *e)
{
    if (rc == -ENOMEM)
        return err_sys(e, rc, "cannot read '%s'", path);
    return err_set(e, -EPROTO, "'%s' is no trace that can be read: it is damaged, and so is what HDF5 makes of it",
                   path);
}

/* The error that was put. */
static int get_error(struct source *s, int64_t code, const char *path, struct err *e)
{
    AUTO_FREE char *text = NULL;
    int rc = get_text(s, &text);
    if (rc < 0 || !text || !*text || code < -4095)
        return explain(rc < 0 ? rc : -EPROTO, path, e);
    return err_set(e, (int)code, "%s", text);
}

int trace_wire_get(struct trace *out, const void *bytes, size_t len, const char *path, struct err *e)
{
    struct source s = { bytes, len };
    struct trace t = { 0 };
    int64_t code = 0;
    int rc = get(&s, &code, sizeof code);
    if (rc == 0 && code < 0)
        return get_error(&s, code, path, e);
    if (rc == 0)
        rc = code == 0 ? get_trace(&s, &t) : -EPROTO;
    if (rc == 0) {
        *out = t;
        return 0;
    }
    trace_done(&t);
    return explain(rc, path, e);
}
