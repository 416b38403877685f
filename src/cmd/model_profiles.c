#include "cmd/model_profiles.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "core/tuner_log.h"
#include "monitoring/features.h"

#define NS_PER_S 1e9
#define LONGEST_INTERVAL_S 60.0 /* what lies between two samples that are farther apart is a gap */

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "cannot read profiles out of a trace");
}

/* --- classes --- */

/* 0: the run was none of a study's trials. */
static int trial_of(const struct trace_run *r)
{
    AUTO_JSON json_t *results = json_loads(r->results ? r->results : "{}", 0, NULL);
    json_int_t number = json_integer_value(json_object_get(results, "trial"));
    return number > 0 && number <= INT_MAX ? (int)number : 0;
}

/* As the study launched it: 1; 0: the trace does not tell; -ENOMEM. */
static int launched_as(struct buf *key, struct buf *family, const struct trace *t, int trial)
{
    int rc = 0;
    for (size_t i = 0; trial && rc == 0 && i < t->tuner.log.n; i++) {
        AUTO_BUF struct buf class = BUF_INIT, relatives = BUF_INIT;
        int number = 0;
        rc = tuner_log_class(t->tuner.log.v[i], &number, &class, &relatives);
        if (rc == 1 && number != trial)
            rc = 0;
        if (rc == 1) {
            buf_puts(key, buf_text(&class));
            buf_puts(family, buf_text(&relatives));
        }
    }
    return key->failed || family->failed ? -ENOMEM : rc;
}

/* By what the run itself says. */
static int described_as(struct buf *key, struct buf *family, const struct trace_run *r, struct err *e)
{
    AUTO_JSON json_t *hyper = json_loads(r->hyper ? r->hyper : "{}", 0, NULL);
    if (!json_is_object(hyper))
        return err_set(e, -EINVAL, "a run's hyperparameters are no JSON object: '%.80s'", r->hyper);
    buf_printf(family, "%s %s", r->model, r->dataset);
    buf_puts(key, buf_text(family));
    const char *name;
    json_t *value;
    json_object_foreach(hyper, name, value)
    {
        if (strncmp(name, "batch", 5) != 0)
            continue;
        AUTO_FREE char *text = json_text(value);
        buf_printf(key, " %s=%s", name, text ? text : "");
        key->failed |= !text;
    }
    return key->failed || family->failed ? no_memory(e) : 0;
}

int model_profiles_key(struct buf *key, struct buf *family, const struct trace *t, const struct trace_run *r,
                       struct err *e)
{
    int rc = launched_as(key, family, t, trial_of(r));
    return rc < 0 ? no_memory(e) : rc == 1 ? 0 : described_as(key, family, r, e);
}

static int find_text(const struct strv *v, const char *text)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->v[i], text) == 0)
            return (int)i;
    return -1;
}

static int find_class(struct model_profiles *p, const struct trace *t, const struct trace_run *r, size_t *out,
                      struct err *e)
{
    AUTO_BUF struct buf key = BUF_INIT, family = BUF_INIT;
    int rc = model_profiles_key(&key, &family, t, r, e);
    if (rc < 0)
        return rc;
    int at = find_text(&p->keys, buf_text(&key));
    *out = at < 0 ? p->keys.n : (size_t)at;
    if (at < 0) {
        strv_add(&p->keys, buf_text(&key));
        strv_add(&p->families, buf_text(&family));
    }
    return p->keys.failed || p->families.failed ? no_memory(e) : 0;
}

/* --- features --- */

/* What is none of ours is a count: `perf stat` has hundreds of events. */
static enum profile_kind kind_of(const char *name)
{
    int at = feature_index(name);
    return at >= 0 && feature_kind(at) == FEATURE_GAUGE ? PROFILE_GAUGE : PROFILE_COUNT;
}

static int make_space(struct model_profiles *p, const struct trace *traces, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < traces[i].features.n; f++)
            if (find_text(&p->names, traces[i].features.v[f]) < 0)
                strv_add(&p->names, traces[i].features.v[f]);
    AUTO_FREE enum profile_kind *kinds = calloc(p->names.n + 1, sizeof *kinds);
    if (!kinds || p->names.failed)
        return no_memory(e);
    for (size_t f = 0; f < p->names.n; f++)
        kinds[f] = kind_of(p->names.v[f]);
    return profile_space_init(&p->space, (const char *const *)p->names.v, kinds, p->names.n, e);
}

/* --- windows --- */

/* One trace's cells in the order of the space. */
struct row {
    double *value, *last_s; /* last_s: when each node was sampled last; NAN: never */
    float *ratio;
    uint8_t *state;
    size_t *place; /* of the trace's features in the space */
};

static void row_done(struct row *r)
{
    free(r->value);
    free(r->last_s);
    free(r->ratio);
    free(r->state);
    free(r->place);
}

static int row_init(struct row *r, const struct model_profiles *p, const struct trace *t, struct err *e)
{
    *r = (struct row){ .value = calloc(p->space.n, sizeof *r->value),
                       .last_s = calloc(UINT16_MAX + 1, sizeof *r->last_s),
                       .ratio = calloc(p->space.n, sizeof *r->ratio),
                       .state = malloc(p->space.n),
                       .place = calloc(t->features.n + 1, sizeof *r->place) };
    if (!r->value || !r->last_s || !r->ratio || !r->state || !r->place)
        return no_memory(e);
    memset(r->state, TRACE_ABSENT, p->space.n);
    for (size_t f = 0; f < t->features.n; f++)
        r->place[f] = (size_t)find_text(&p->names, t->features.v[f]); /* make_space() has put it there */
    return 0;
}

static void fill_row(struct row *r, const struct trace_samples *s, size_t at, size_t features)
{
    for (size_t f = 0; f < features; f++) {
        size_t cell = at * features + f, to = r->place[f];
        r->value[to] = s->value[cell];
        r->ratio[to] = s->ratio[cell];
        r->state[to] = s->state[cell];
    }
}

struct cutting {
    struct model_profiles *p;
    const struct trace *t;
    const struct trace_run *run;
    size_t run_number, class_at;
    struct row row;
    struct profile_sum sum;
};

static int keep_window(struct cutting *c, int epoch, struct err *e)
{
    struct model_profiles *p = c->p;
    struct model_window *list = array_more(p->list, p->n, &p->cap, sizeof *list);
    if (!list)
        return no_memory(e);
    p->list = list;
    struct model_window w = { .run = c->run_number, .epoch = epoch, .class_at = c->class_at, .job = c->run->model };
    int rc = profile_make(&w.profile, &p->space, &c->sum, e);
    if (rc == 0)
        p->list[p->n++] = w;
    return rc == -ENODATA ? 0 : rc;
}

/* What was summed up becomes a window, if it is enough of one; the next begins. */
static int end_window(struct cutting *c, int epoch, struct err *e)
{
    int rc = c->sum.dt_s >= MODEL_WINDOW_S / 2 ? keep_window(c, epoch, e) : 0;
    profile_sum_clear(&c->sum);
    return rc;
}

/* The samples of this time, by the middle of their intervals. */
static int cut_stretch(struct cutting *c, double from_s, double to_s, int epoch, struct err *e)
{
    const struct trace_samples *s = &c->run->samples;
    double begin = from_s;
    int rc = 0;
    for (size_t n = 0; n <= UINT16_MAX; n++)
        c->row.last_s[n] = NAN;
    profile_sum_clear(&c->sum);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        double end = (double)s->t_ns[i] / NS_PER_S, *last = &c->row.last_s[s->node[i]], dt = end - *last;
        *last = end;
        double middle = end - dt / 2;
        if (!(dt > 0 && dt <= LONGEST_INTERVAL_S) || middle < from_s || middle > to_s)
            continue;
        if (!isfinite(begin))
            begin = end - dt;
        if (middle > begin + MODEL_WINDOW_S) {
            rc = end_window(c, epoch, e);
            begin += MODEL_WINDOW_S * floor((middle - begin) / MODEL_WINDOW_S);
        }
        fill_row(&c->row, s, i, c->t->features.n);
        profile_sum_add(&c->sum, &c->p->space, c->row.value, c->row.ratio, c->row.state, dt);
    }
    bool whole = c->sum.dt_s >= MODEL_WINDOW_S - 0.5;
    return rc == 0 && whole ? end_window(c, epoch, e) : rc;
}

static int cut_run(struct cutting *c, struct err *e)
{
    const struct trace_run *r = c->run;
    bool has_times = false;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < r->n_epochs; k++) {
        double from = r->epochs[k].start_s, to = from + r->epochs[k].duration_s;
        has_times |= isfinite(to);
        if (isfinite(to))
            rc = cut_stretch(c, from, to, (int)k + 1, e);
    }
    return rc < 0 || has_times ? rc : cut_stretch(c, -HUGE_VAL, HUGE_VAL, 0, e);
}

static int cut_trace(struct model_profiles *p, const struct trace *t, size_t *run_number, struct err *e)
{
    struct cutting c = { .p = p, .t = t };
    int rc = row_init(&c.row, p, t, e);
    if (rc == 0)
        rc = profile_sum_init(&c.sum, &p->space, e);
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        c.run = &t->runs[i];
        c.run_number = (*run_number)++;
        rc = find_class(p, t, c.run, &c.class_at, e);
        if (rc == 0 && c.run->samples.n > 0)
            rc = cut_run(&c, e);
    }
    row_done(&c.row);
    profile_sum_done(&c.sum);
    return rc;
}

int model_profiles_init(struct model_profiles *out, const struct trace *traces, size_t n, struct err *e)
{
    struct model_profiles p = { 0 };
    size_t run = 0;
    int rc = make_space(&p, traces, n, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = cut_trace(&p, &traces[i], &run, e);
    if (rc < 0) {
        model_profiles_done(&p);
        return rc;
    }
    *out = p;
    return 0;
}

void model_profiles_done(struct model_profiles *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        profile_done(&p->list[i].profile);
    free(p->list);
    profile_space_done(&p->space);
    strv_done(&p->names);
    strv_done(&p->keys);
    strv_done(&p->families);
    *p = (struct model_profiles){ 0 };
}

struct model_sample *model_profiles_samples(const struct model_profiles *p)
{
    struct model_sample *list = calloc(p->n + 1, sizeof *list);
    for (size_t i = 0; list && i < p->n; i++)
        list[i] = (struct model_sample){ &p->list[i].profile, p->keys.v[p->list[i].class_at],
                                         p->families.v[p->list[i].class_at] };
    return list;
}
