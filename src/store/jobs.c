#include "store/jobs.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "monitoring/features.h"
#include "store/trace_h5.h"

#define NS_PER_S 1e9
#define LONGEST_INTERVAL_S 60.0 /* beyond it nobody sampled */

static_assert((int)JOBS_FEATURES <= (int)FEATURES, "there are fewer features");

/* --- one run --- */

/* NAN: not known. */
static double seconds_of(const struct trace_run *r)
{
    double sum = r->startup_s;
    for (size_t i = 0; i < r->n_epochs; i++)
        sum += r->epochs[i].duration_s;
    return r->status == RUN_COMPLETE && r->n_epochs > 0 ? sum : (double)NAN;
}

/* What is summed up of each cell before it is divided: values and seconds of counts, values and how many of gauges. */
struct sums {
    double value[JOBS_CELLS], over[JOBS_CELLS];
    double last_s[UINT16_MAX + 1];    /* when each node was sampled last; NAN: never */
    size_t place[TRACE_FEATURES_MAX]; /* of the trace's features here; JOBS_FEATURES: none */
};

static void find_places(struct sums *s, const struct trace *t)
{
    for (size_t f = 0; f < t->features.n; f++) {
        int at = feature_index(t->features.v[f]);
        s->place[f] = at >= 0 && at < JOBS_FEATURES ? (size_t)at : JOBS_FEATURES;
    }
}

static void add_sample(struct sums *s, const struct trace_samples *from, size_t i, size_t features, size_t step,
                       double dt_s)
{
    for (size_t f = 0; f < features; f++) {
        size_t cell = i * features + f, to = step * JOBS_FEATURES + s->place[f];
        bool counted = from->state[cell] == TRACE_OK || from->state[cell] == TRACE_MULTIPLEXED;
        if (s->place[f] == JOBS_FEATURES || !counted || !(from->value[cell] >= 0))
            continue;
        s->value[to] += from->value[cell];
        s->over[to] += feature_kind((int)s->place[f]) == FEATURE_GAUGE ? 1 : dt_s;
    }
}

/* Samples are stamped with the end of their interval, which begins at the node's one before. Returns whether any counted. */
static bool add_samples(struct sums *s, const struct trace_samples *from, size_t features)
{
    bool any = false;
    memset(s->value, 0, sizeof s->value);
    memset(s->over, 0, sizeof s->over);
    for (size_t i = 0; i <= UINT16_MAX; i++)
        s->last_s[i] = NAN;
    for (size_t i = 0; i < from->n; i++) {
        double end_s = (double)from->t_ns[i] / NS_PER_S, *last_s = &s->last_s[from->node[i]], dt_s = end_s - *last_s;
        double step = floor(end_s - dt_s / 2);
        *last_s = end_s;
        if (!(dt_s > 0 && dt_s <= LONGEST_INTERVAL_S) || step < 0 || step >= JOBS_STEPS)
            continue;
        add_sample(s, from, i, features, (size_t)step, dt_s);
        any = true;
    }
    return any;
}

static bool has_a_cell(const struct sums *s)
{
    for (size_t c = 0; c < JOBS_CELLS; c++)
        if (s->over[c] > 0)
            return true;
    return false;
}

/* --- all of them --- */

int jobs_of_trace(struct jobs *out, const struct trace *t, struct err *e)
{
    struct jobs j = { .x = calloc(t->n + 1, JOBS_CELLS * sizeof *j.x),
                      .y = calloc(t->n + 1, sizeof *j.y),
                      .runs = calloc(t->n + 1, sizeof *j.runs) };
    AUTO_FREE struct sums *s = calloc(1, sizeof *s);
    if (!j.x || !j.y || !j.runs || !s) {
        jobs_done(&j);
        return err_sys(e, -ENOMEM, "cannot export %zu runs", t->n);
    }
    find_places(s, t);
    for (size_t i = 0; i < t->n; i++) {
        double seconds = seconds_of(&t->runs[i]);
        if (!isfinite(seconds) || !add_samples(s, &t->runs[i].samples, t->features.n) || !has_a_cell(s))
            continue;
        for (size_t c = 0; c < JOBS_CELLS; c++)
            j.x[j.n * JOBS_CELLS + c] = s->over[c] > 0 ? s->value[c] / s->over[c] : (double)NAN;
        j.y[j.n] = seconds;
        j.runs[j.n++] = (int)i;
    }
    *out = j;
    return 0;
}

void jobs_done(struct jobs *j)
{
    if (!j)
        return;
    free(j->x);
    free(j->y);
    free(j->runs);
    *j = (struct jobs){ 0 };
}

static int put_all(hid_t file, const struct jobs *j)
{
    hsize_t dims[3] = { j->n, JOBS_STEPS, JOBS_FEATURES }, names = JOBS_FEATURES;
    AUTO_H5 hid_t text = trace_h5_text_type();
    if (trace_h5_array(file, "JOB_X", H5T_NATIVE_DOUBLE, 3, dims, j->x) < 0 ||
        trace_h5_array(file, "JOB_Y", H5T_NATIVE_DOUBLE, 1, dims, j->y) < 0 ||
        trace_h5_array(file, "JOB_RUNS", H5T_NATIVE_INT, 1, dims, j->runs) < 0)
        return -1;
    return trace_h5_array(file, "JOB_FEATURES", text, 1, &names, feature_names);
}

int jobs_write(const struct jobs *j, const char *path, struct err *e)
{
    trace_h5_init();
    AUTO_H5 hid_t file = trace_h5_memory_file();
    if (file < 0 || put_all(file, j) < 0)
        return trace_h5_error(e, -EIO, "cannot write '%s'", path);
    return trace_h5_write(file, path, e);
}
