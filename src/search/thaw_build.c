/* The field anew: from time to time, when much was told since, with hyperparameters that are fitted to it; or after a restart, as it was.
 * Only what the log and the trials were at the build decides about it, so that the two give the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "search/thaw_state.h"

/* Trials in the order of what was last known of them at the build: the best first. */
struct ranked {
    uint64_t trial;
    double value;
};

struct work {
    struct ranked *ranked;      /* n_trials */
    double *last;               /* n_trials: their newest values, NAN: none */
    double *numbers;            /* n_log */
    struct thaw_scored *scored; /* n_log */
    bool *keep;                 /* n_log */
    struct point *pool;         /* THAW_POOL */
};

static size_t rounded(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

size_t thaw_build_work(const struct thaw *t)
{
    size_t trials = t->n_trials + 1, log = t->n_log + 1;
    return rounded(trials * sizeof(struct ranked)) + rounded(trials * sizeof(double)) + rounded(log * sizeof(double)) +
           rounded(log * sizeof(struct thaw_scored)) + rounded(log * sizeof(bool)) + THAW_POOL * sizeof(struct point);
}

static struct work work_of(const struct thaw *t, void *bytes)
{
    size_t trials = t->n_trials + 1, log = t->n_log + 1;
    char *at = bytes;
    struct work w = { .ranked = (void *)at };
    at += rounded(trials * sizeof(struct ranked));
    w.last = (void *)at;
    at += rounded(trials * sizeof(double));
    w.numbers = (void *)at;
    at += rounded(log * sizeof(double));
    w.scored = (void *)at;
    at += rounded(log * sizeof(struct thaw_scored));
    w.keep = (void *)at;
    at += rounded(log * sizeof(bool));
    w.pool = (void *)at;
    return w;
}

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* One that nothing was told of yet may be anything: it comes first. */
static void rank_trials(const struct thaw *t, struct work *w)
{
    for (size_t i = 0; i < t->built_trials; i++)
        w->last[i] = -INFINITY;
    for (size_t i = 0; i < t->built_log; i++)
        w->last[t->log[i].trial] = t->log[i].value;
    for (size_t i = 0; i < t->built_trials; i++)
        w->ranked[i] = (struct ranked){ i, w->last[i] };
    qsort(w->ranked, t->built_trials, sizeof *w->ranked, by_rank);
}

/* Of too many values: all of the best trials, and of the others the newest, as many as fit. */
static void keep_values(const struct thaw *t, struct work *w)
{
    size_t kept = 0;
    bool all = t->built_log <= THAW_ROWS_KEPT;
    for (size_t i = 0; i < t->built_log; i++)
        w->keep[i] = all;
    for (size_t k = 0; !all && k < t->built_trials && kept < THAW_ROWS_KEPT / 2; k++)
        for (size_t i = 0; i < t->built_log && kept < THAW_ROWS_KEPT / 2; i++)
            if (t->log[i].trial == w->ranked[k].trial) {
                w->keep[i] = true;
                kept++;
            }
    for (size_t i = t->built_log; !all && i-- > 0 && kept < THAW_ROWS_KEPT;)
        if (!w->keep[i] && t->log[i].value == w->last[t->log[i].trial]) {
            w->keep[i] = true;
            kept++;
        }
}

static struct thaw_row row_of(const struct thaw_log *l)
{
    return (struct thaw_row){ l->trial, l->step, l->score };
}

/* The hyperparameters are fitted to some of the values: the newest, and others evenly from before. */
static void fit(struct thaw *t, const struct work *w)
{
    struct thaw_row rows[THAW_FIT_MAX];
    const struct unit_point *at[THAW_FIT_MAX];
    size_t kept = 0, n = 0, nth = 0;
    for (size_t i = 0; i < t->built_log; i++)
        kept += w->keep[i];
    for (size_t i = 0; i < t->built_log; i++) {
        if (!w->keep[i])
            continue;
        size_t share = kept <= THAW_FIT_MAX ? nth + 1 : (nth + 1) * THAW_FIT_MAX / kept;
        nth++;
        if (share == n)
            continue;
        rows[n] = row_of(&t->log[i]);
        at[n++] = &t->trials[t->log[i].trial].place;
    }
    struct thaw_fit f = { &t->places, &t->times, rows, at, n, t->fit_work };
    thaw_fit_improve(&f, &t->hyper);
}

/* Whether trials can run, and what they cost, may hang on other hyperparameters than how well they do: all count alike. */
double thaw_close(const struct thaw *t, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0, reach = 0.15 * 0.15 * (double)t->places.n;
    for (size_t i = 0; i < t->places.n; i++) {
        double d = fmin(1, fabs(a->u[i] - b->u[i]));
        sum += d * d;
    }
    return exp(-0.5 * sum / reach);
}

/* What an epoch of a point costs beside others, as far as that was told: as it was with points that are alike. */
static double log_price(const struct thaw *t, const struct work *w, const struct unit_point *at)
{
    enum { ASKED_MAX = 64 };
    double sum = 0, weights = 0.3, usual = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->built_trials && n < ASKED_MAX; i++) {
        const struct thaw_trial *o = &t->trials[i];
        if (w->last[i] == -INFINITY || !(o->cost_1 > 0))
            continue;
        double price = log(o->cost_1 / o->epoch_1), alike = thaw_close(t, at, &o->place);
        usual += price;
        n++;
        sum += alike * price;
        weights += alike;
    }
    return n > 0 ? (sum + 0.3 * usual / (double)n) / weights : 0;
}

static void add_entry(struct thaw *t, const struct work *w, const struct point *p, long trial)
{
    struct thaw_entry e = { .point = *p, .trial = trial };
    e.place = trial >= 0 ? t->trials[trial].place : unit_of(t->space, p);
    e.log_price = log_price(t, w, &e.place);
    thaw_field_entry(t, &e);
}

/* The trials that may be gone on with, and points that could be new. */
static void add_entries(struct thaw *t, const struct work *w)
{
    for (size_t i = 0; i < t->n_trials; i++)
        t->trials[i].entry = -1;
    for (size_t k = 0; k < t->built_trials && k < THAW_TRIALS_MAX; k++) {
        struct thaw_trial *tr = &t->trials[w->ranked[k].trial];
        if (tr->being == THAW_OVER)
            continue;
        tr->entry = (long)t->field.n_entries;
        add_entry(t, w, &tr->point, (long)w->ranked[k].trial);
    }
    size_t n = thaw_pool(t, w->pool, THAW_POOL);
    for (size_t i = 0; i < n; i++)
        add_entry(t, w, &w->pool[i], -1);
}

void thaw_build(struct thaw *t, bool grown, void *bytes)
{
    struct work w = work_of(t, bytes);
    if (grown) {
        t->builds++;
        t->built_log = t->n_log;
        t->built_trials = t->n_trials;
    }
    t->warp = thaw_warp_of(t->log, t->built_log, w.numbers);
    thaw_score_log(t, w.scored);
    rank_trials(t, &w);
    keep_values(t, &w);
    if (grown && t->built_log > 0)
        fit(t, &w);
    thaw_steps_set(&t->steps, &t->hyper, &t->times);
    thaw_field_clear(t);
    add_entries(t, &w);
    for (size_t i = 0; i < t->built_log; i++)
        if (w.keep[i]) {
            struct thaw_row row = row_of(&t->log[i]);
            thaw_field_row(t, &row);
        }
}
