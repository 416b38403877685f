#include "store/curves_study.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/own.h"
#include "core/curves.h"

/* The epochs of one trial so far. */
struct trained {
    double *values, *seconds;
    size_t cap_values, cap_seconds;
    struct curve curve;
    bool timed; /* every epoch */
};

struct walk {
    struct buf *out;
    struct store *store;
    int trials;
    struct err *e;
};

static int on_epoch(void *ctx, const struct store_epoch *r)
{
    struct trained *t = ctx;
    size_t n = (size_t)t->curve.n;
    if (r->epoch != t->curve.n + 1)
        return 1; /* what is behind a gap is no curve */
    double *values = array_more(t->values, n, &t->cap_values, sizeof *values);
    if (!values)
        return -ENOMEM;
    t->values = values;
    double *seconds = array_more(t->seconds, n, &t->cap_seconds, sizeof *seconds);
    if (!seconds)
        return -ENOMEM;
    t->seconds = seconds;
    values[n] = r->metric;
    seconds[n] = r->seconds;
    t->timed = t->timed && isfinite(r->seconds) && r->seconds >= 0;
    t->curve.n++;
    return 0;
}

static int on_trial(void *ctx, const struct store_trial *row)
{
    struct walk *w = ctx;
    struct trained t = { .timed = true };
    if (row->copy_of || row->repeat_of)
        return 0;
    int rc = store_epochs(w->store, row->id, on_epoch, &t, w->e);
    if (rc == -ENOMEM)
        (void)err_sys(w->e, rc, "trial %d", row->number);
    AUTO_JSON json_t *hyper = rc >= 0 ? json_loads(row->hyper, 0, NULL) : NULL;
    t.curve.values = t.values;
    t.curve.seconds = t.timed ? t.seconds : NULL;
    if (rc >= 0 && t.curve.n > 0) {
        curves_put(w->out, hyper, &t.curve);
        w->trials++;
    }
    free(t.values);
    free(t.seconds);
    return rc < 0 ? rc : 0;
}

int curves_put_study(struct buf *out, struct store *s, const struct store_study *study, struct err *e)
{
    AUTO_JSON json_t *config = json_loads(study->config ? study->config : "{}", 0, NULL);
    const json_t *of = json_object_get(config, "study");
    const char *metric = json_string_value(json_object_get(of, "metric"));
    int epochs = (int)json_integer_value(json_object_get(of, "epochs"));
    struct walk w = { .out = out, .store = s, .e = e };
    curves_put_head(out, metric ? metric : "accuracy", study->maximise, epochs,
                    json_object_get(config, "hyperParameters"));
    int rc = store_trials(s, study->id, 0, on_trial, &w, e);
    if (rc == 0 && out->failed)
        rc = err_sys(e, -ENOMEM, "study '%s'", study->name);
    return rc < 0 ? rc : w.trials;
}
