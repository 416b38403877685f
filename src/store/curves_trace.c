#include "store/curves_trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* --- there --- */

static char *head_text(const struct curves *c)
{
    AUTO_JSON json_t *hyper = curves_hyper(c);
    AUTO_BUF struct buf b = BUF_INIT;
    if (!hyper)
        return NULL;
    curves_put_head(&b, c->metric, c->maximise, c->epochs, hyper);
    return b.failed ? NULL : strdup(buf_text(&b));
}

static int fill_epochs(struct trace_run *r, const struct curves *c, const struct curve *of)
{
    r->epochs = calloc((size_t)of->n, sizeof *r->epochs);
    if (!r->epochs)
        return -ENOMEM;
    r->n_epochs = (size_t)of->n;
    double start_s = 0;
    for (int i = 0; i < of->n; i++) {
        struct trace_epoch *e = &r->epochs[i];
        *e = trace_no_epoch();
        *(c->maximise ? &e->accuracy : &e->loss) = of->values[i];
        if (of->joules)
            e->energy_j = of->joules[i];
        if (!of->seconds)
            continue;
        e->start_s = start_s;
        e->duration_s = of->seconds[i];
        start_s += of->seconds[i];
    }
    return 0;
}

static int add_run(struct trace *out, const struct curves *c, size_t i)
{
    struct trace_run *r = trace_add(out);
    if (!r)
        return -ENOMEM;
    struct point p = space_point_at(&c->space, i);
    AUTO_JSON json_t *hyper = space_point_json(&c->space, &p);
    r->status = c->v[i].n == c->epochs ? RUN_COMPLETE : RUN_PARTIAL;
    r->model = strdup("");
    r->dataset = strdup("");
    r->hyper = json_text(hyper);
    r->results = i == 0 ? head_text(c) : strdup("{}");
    return r->model && r->dataset && r->hyper && r->results ? fill_epochs(r, c, &c->v[i]) : -ENOMEM;
}

int curves_to_trace(struct trace *out, const struct curves *c)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        rc = add_run(out, c, i);
    return rc;
}

/* --- and back: as text, which curves_parse() then judges --- */

static double *column(const struct trace_run *r, size_t offset, bool *out_any)
{
    double *v = calloc(r->n_epochs + 1, sizeof *v);
    *out_any = false;
    for (size_t i = 0; v && i < r->n_epochs; i++) {
        memcpy(&v[i], (const char *)&r->epochs[i] + offset, sizeof v[i]);
        *out_any |= isfinite(v[i]);
    }
    return v;
}

static int put_run(struct buf *b, const struct trace_run *r, bool maximise)
{
    bool values, seconds, joules;
    AUTO_FREE double *v =
        column(r, maximise ? offsetof(struct trace_epoch, accuracy) : offsetof(struct trace_epoch, loss), &values);
    AUTO_FREE double *s = column(r, offsetof(struct trace_epoch, duration_s), &seconds);
    AUTO_FREE double *j = column(r, offsetof(struct trace_epoch, energy_j), &joules);
    AUTO_JSON json_t *hyper = json_loads(r->hyper ? r->hyper : "{}", 0, NULL);
    if (!v || !s || !j)
        return -ENOMEM;
    curves_put(b, hyper,
               &(struct curve){
                   .values = v, .seconds = seconds ? s : NULL, .joules = joules ? j : NULL, .n = (int)r->n_epochs });
    return 0;
}

int curves_of_trace(struct curves *out, const struct trace *t, const char *name, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const char *head = t->n > 0 && t->runs[0].results ? t->runs[0].results : "{}";
    AUTO_JSON json_t *j = json_loads(head, JSON_REJECT_DUPLICATES, NULL);
    const char *direction = json_string_value(json_object_get(j, "direction"));
    if (!direction || !json_object_get(j, "format"))
        return err_set(e, -EINVAL, "'%s' holds no curves: `pipetune trace import --format curves` makes such a file",
                       name);
    json_put(&b, j, JSON_STYLE_COMPACT);
    buf_putc(&b, '\n');
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        rc = put_run(&b, &t->runs[i], strcmp(direction, "max") == 0);
    if (rc < 0 || b.failed)
        return err_sys(e, -ENOMEM, "cannot read '%s'", name);
    return curves_parse(out, name, buf_text(&b), b.len, e);
}
