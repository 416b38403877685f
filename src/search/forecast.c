#include "search/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/own.h"
#include "search/forecast_state.h"

enum { REACH_STEPS = 6 }; /* epochs ahead that are foretold for a target; between them a line */

#define WORST 25.0   /* of a normed value: all that is worse is as bad */
#define BEST (-20.0) /* more than twenty times better than any before is a mistake */

/* --- normed values: 0 where trials begin, -1 the best there was; what is worse than at the beginning counts less and less ---- */

static double norm_of(const struct norm *m, double value)
{
    double x = (m->sign * value - m->begin) / m->scale;
    if (isnan(x))
        return NAN;
    return fmax(BEST, fmin(WORST, x > 0 ? asinh(x) : x));
}

static double norm_back(const struct norm *m, double x)
{
    return m->sign * (m->begin + m->scale * (x > 0 ? sinh(x) : x));
}

static double first_finite(const struct forecast_curve *c)
{
    for (int i = 0; i < c->n; i++)
        if (isfinite(c->values[i]))
            return c->values[i];
    return NAN;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* From the finished curves; scale 0: there are none, or they are all flat. */
static struct norm norm_of_study(const struct forecast_curve *c, size_t n, int epochs, bool maximise)
{
    double firsts[FORECAST_FINISHED_MAX], sign = maximise ? -1 : 1, best = INFINITY;
    size_t have = 0;
    for (size_t i = 0; i < n; i++) {
        double first = first_finite(&c[i]);
        if (isnan(first))
            continue;
        firsts[have++] = sign * first;
        for (int k = 0; k < c[i].n && k < epochs; k++)
            if (isfinite(c[i].values[k]))
                best = fmin(best, sign * c[i].values[k]);
    }
    if (have == 0)
        return (struct norm){ .sign = sign };
    double begin = median_of(firsts, have);
    return (struct norm){ sign, begin, fmax(begin - best, 0) };
}

/* Where nothing has finished, or nothing has moved: a curve's own begin, and half of that as what there may be to
 * gain. */
static struct norm norm_of_curve(const struct forecast *f, const struct forecast_curve *c)
{
    struct norm m = f->norm;
    if (m.scale > 0)
        return m;
    double first = m.sign * first_finite(c), best = first;
    if (isnan(first))
        first = best = 0;
    for (int i = 0; i < c->n; i++)
        if (isfinite(c->values[i]))
            best = fmin(best, m.sign * c->values[i]);
    m.begin = first;
    /* a share of what is right can grow by all that is missing from 1 */
    bool share = f->maximise && -first >= 0 && -best <= 1;
    m.scale = fmax(share ? 0.7 * (1 + first) : 0.5 * fabs(first), first - best);
    m.scale = m.scale > 0 ? m.scale : 1;
    return m;
}

/* --- finished curves -------------------------------------------------------------------------------------------------- */

static void fill_gaps(double *x, int n)
{
    for (int i = 1; i < n; i++)
        x[i] = isnan(x[i]) ? x[i - 1] : x[i];
    for (int i = n - 1; i-- > 0;)
        x[i] = isnan(x[i]) ? x[i + 1] : x[i];
}

static void take_finished(struct forecast *f, const struct forecast_curve *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c[i].n < f->epochs || isnan(first_finite(&c[i])))
            continue;
        if (c[i].at)
            f->places[f->n] = *c[i].at;
        f->n_dims = c[i].at ? f->n_dims : 0;
        double *x = f->values + f->n++ * (size_t)f->epochs;
        for (int k = 0; k < f->epochs; k++)
            x[k] = norm_of(&f->norm, c[i].values[k]);
        fill_gaps(x, f->epochs);
    }
}

int forecast_new(struct forecast **out, int epochs, bool maximise, size_t n_dims, const struct forecast_curve *finished,
                 size_t n)
{
    if (n > FORECAST_FINISHED_MAX) { /* the newest know most of where a search is by now */
        finished += n - FORECAST_FINISHED_MAX;
        n = FORECAST_FINISHED_MAX;
    }
    struct forecast *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    *f = (struct forecast){ .epochs = epochs, .maximise = maximise, .n_dims = n_dims };
    f->values = calloc(n * (size_t)epochs + 1, sizeof *f->values);
    f->places = calloc(n + 1, sizeof *f->places);
    if (!f->values || !f->places) {
        forecast_free(f);
        return -ENOMEM;
    }
    f->norm = norm_of_study(finished, n, epochs, maximise);
    if (f->norm.scale > 0)
        take_finished(f, finished, n);
    *out = f;
    return 0;
}

void forecast_free(struct forecast *f)
{
    if (!f)
        return;
    forecast_ways_done(f);
    free(f->values);
    free(f->places);
    free(f);
}

/* --- a curve ---------------------------------------------------------------------------------------------------------- */

/* The normed values without gaps: up to the newest that was told. NULL with *out_n 0: none was; else memory. */
static double *normed(const struct norm *m, const struct forecast_curve *c, int *out_n)
{
    int n = c->n;
    while (n > 0 && isnan(c->values[n - 1]))
        n--;
    *out_n = n;
    double *x = n > 0 ? malloc((size_t)n * sizeof *x) : NULL;
    for (int i = 0; x && i < n; i++)
        x[i] = norm_of(m, c->values[i]);
    if (x)
        fill_gaps(x, n);
    return x;
}

static struct foretold told_already(const struct norm *m, double x)
{
    double v = norm_back(m, x);
    return (struct foretold){ v, v, v };
}

static int foretell(struct forecast *f, const struct norm *m, const struct begun *b, int n, int epoch,
                    struct foretold *out)
{
    if (epoch <= n) {
        *out = told_already(m, b->x[epoch - 1]);
        return 0;
    }
    struct foretold said;
    int rc = forecast_say(f, b, n, epoch, &said);
    if (rc < 0)
        return rc;
    double a = norm_back(m, said.low), z = norm_back(m, said.high);
    *out = (struct foretold){ norm_back(m, said.median), fmin(a, z), fmax(a, z) };
    return 0;
}

int forecast_at(struct forecast *f, const struct forecast_curve *c, int epoch, struct foretold *out)
{
    struct norm m = norm_of_curve(f, c);
    int n = 0;
    AUTO_FREE double *x = normed(&m, c, &n);
    if (!x)
        return n == 0 ? -ENODATA : -ENOMEM;
    struct begun b = { x, c->at };
    return foretell(f, &m, &b, n, epoch, out);
}

/* Where between two epochs, as much as `from` lies above and `to` at or below the target. */
static int crossing(int a, double from, int b, double to, double target)
{
    double share = from - to > 0 ? (from - target) / (from - to) : 1;
    int at = a + (int)ceil((b - a) * share);
    return at > b ? b : at <= a ? a + 1 : at;
}

static void reach_between(int *out, int a, double from, int b, double to, double target)
{
    if (*out == 0 && to <= target)
        *out = crossing(a, from, b, to, target);
}

int forecast_reach(struct forecast *f, const struct forecast_curve *c, double target, struct foretold_reach *out)
{
    struct norm m = norm_of_curve(f, c);
    int n = 0;
    AUTO_FREE double *x = normed(&m, c, &n);
    if (!x)
        return n == 0 ? -ENODATA : -ENOMEM;
    double goal = m.sign * target;
    for (int i = 0; i < n; i++)
        if (m.sign * c->values[i] <= goal) {
            *out = (struct foretold_reach){ i + 1, i + 1, i + 1 };
            return 0;
        }
    struct begun b = { x, c->at };
    struct foretold_reach r = { 0 };
    struct foretold was = told_already(&m, x[n - 1]), is;
    for (int step = 1, at = n; step <= REACH_STEPS && at < f->epochs; step++) {
        int next = n + (int)ceil((double)(f->epochs - n) * step * step / (REACH_STEPS * REACH_STEPS));
        int rc = foretell(f, &m, &b, n, next, &is);
        if (rc < 0)
            return rc;
        bool down = m.sign > 0; /* of an interval, the good end is the low one when less is better */
        reach_between(&r.soonest, at, m.sign * (down ? was.low : was.high), next, m.sign * (down ? is.low : is.high),
                      goal);
        reach_between(&r.middle, at, m.sign * was.median, next, m.sign * is.median, goal);
        reach_between(&r.latest, at, m.sign * (down ? was.high : was.low), next, m.sign * (down ? is.high : is.low),
                      goal);
        was = is;
        at = next;
    }
    *out = r;
    return 0;
}
