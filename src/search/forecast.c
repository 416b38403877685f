/* Three foretell a value: the families (families.c), the finished curves that began most alike, and the value that there is. How much each is
 * worth between two epochs, and how wide the interval must be, is what would have held for the finished curves, each foretold from the others. */
#include "search/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "search/families.h"

enum {
    TRIED_MAX = 40,  /* finished curves that the weights are learnt from */
    TRIED_MIN = 6,   /* fewer teach nothing */
    ALIKE_MIN = 3,   /* neighbours, at least */
    KEYS_MAX = 12,   /* epochs at which beginnings are compared */
    REACH_STEPS = 6, /* epochs ahead that are foretold for a target; between them a line */
};

#define WORST 25.0   /* of a normed value: all that is worse is as bad */
#define BEST (-20.0) /* more than twenty times better than any before is a mistake */
#define Z80 1.2816   /* a normal distribution's 10 % */

enum { BY_FAMILIES, BY_ALIKE, BY_LAST, N_WAYS };

/* One epoch seen from another: what was learnt about that. */
struct link {
    int from, to;
    double weight[N_WAYS];
    double apart;     /* what distance between hyperparameters counts, beside that between beginnings */
    double low, high; /* an interval's ends, in units of what the ways say of their spread */
};

struct norm {
    double sign, begin, scale; /* sign * value: less is better */
};

struct forecast {
    int epochs;
    bool maximise;
    struct norm norm; /* scale 0: nothing has finished */
    size_t n_dims;
    struct unit_point *places; /* of each curve */
    double *values;            /* `n` curves of `epochs` normed values, without gaps */
    size_t n;
    struct link *links;
    size_t n_links, cap_links;
};

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
static struct norm norm_of_study(const struct forecast_curve *c, size_t n, bool maximise)
{
    double firsts[FORECAST_FINISHED_MAX], sign = maximise ? -1 : 1, best = INFINITY;
    size_t have = 0;
    for (size_t i = 0; i < n; i++) {
        double first = first_finite(&c[i]);
        if (isnan(first))
            continue;
        firsts[have++] = sign * first;
        for (int k = 0; k < c[i].n; k++)
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
    f->norm = norm_of_study(finished, n, maximise);
    if (f->norm.scale > 0)
        take_finished(f, finished, n);
    *out = f;
    return 0;
}

void forecast_free(struct forecast *f)
{
    if (!f)
        return;
    free(f->values);
    free(f->places);
    free(f->links);
    free(f);
}

/* --- the ways --------------------------------------------------------------------------------------------------------- */

/* Up to `max` of the epochs 1 … n, closer together where curves turn and where they are now. */
static int pick_epochs(int n, int max, int *out)
{
    int have = 0;
    for (int k = 0; k < max && max < n; k++) {
        double share = (double)k / (max - 1);
        int t = (int)lround((1 + (n - 1) * share + pow(n, share)) / 2);
        if (have == 0 || t > out[have - 1])
            out[have++] = t;
    }
    for (; max >= n && have < n; have++)
        out[have] = have + 1;
    return have;
}

struct say {
    double mean, sd;
};

static struct say say_families(const struct forecast *f, const double *x, int from, int to)
{
    int at[FAMILIES_SEEN_MAX];
    struct seen seen = { .n = pick_epochs(from, FAMILIES_SEEN_MAX, at) };
    for (int i = 0; i < seen.n; i++) {
        seen.epoch[i] = at[i];
        seen.value[i] = x[at[i] - 1];
    }
    struct families_told t = families_foretell(&seen, f->epochs, to);
    return (struct say){ t.median, (t.high - t.low) / (2 * Z80) };
}

/* A curve of which a part is known. */
struct begun {
    const double *x;
    const struct unit_point *at;
};

struct near {
    double distance, change;
};

static int by_distance(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->change > y->change) - (x->change < y->change);
}

/* How unlike two beginnings are: where they are now and how they come there count most. */
static double unlike(const double *a, const double *b, const int *at, int n)
{
    int last = at[n - 1] - 1, half = at[n - 1] / 2;
    double now = a[last] - b[last], trend = now - (a[half] - b[half]), sum = 0;
    for (int i = 0; i < n; i++) {
        double d = a[at[i] - 1] - b[at[i] - 1];
        sum += d * d;
    }
    return sum / n + 2 * now * now + 4 * trend * trend;
}

/* Of a dimension without an order, other is as far as goes. */
static double apart(const struct forecast *f, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0;
    for (size_t i = 0; i < f->n_dims; i++) {
        double d = fmin(1, fabs(a->u[i] - b->u[i]));
        sum += d * d;
    }
    return sum / (double)f->n_dims;
}

/* What became of the finished ones that began most alike, all but `but`. */
static struct say say_alike(const struct forecast *f, const struct begun *b, const struct link *l, size_t but)
{
    const double *x = b->x;
    int from = l->from, to = l->to;
    struct near list[FORECAST_FINISHED_MAX];
    int at[KEYS_MAX], n_at = pick_epochs(from, KEYS_MAX, at);
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const double *o = f->values + i * (size_t)f->epochs;
        if (i == but)
            continue;
        list[n] = (struct near){ unlike(x, o, at, n_at), o[to - 1] - o[from - 1] };
        if (l->apart > 0 && b->at && f->n_dims > 0)
            list[n].distance += l->apart * apart(f, b->at, &f->places[i]);
        n++;
    }
    qsort(list, n, sizeof *list, by_distance);
    size_t k = (size_t)fmax(ALIKE_MIN, sqrt((double)n));
    k = k < n ? k : n;
    double width = list[k - 1].distance + 1e-12, sum = 0, mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) {
        list[i].distance = exp(-list[i].distance / width * 1.5);
        sum += list[i].distance;
        mean += list[i].distance * list[i].change;
    }
    mean /= sum;
    for (size_t i = 0; i < n; i++)
        var += list[i].distance * (list[i].change - mean) * (list[i].change - mean);
    return (struct say){ x[from - 1] + mean, sqrt(var / sum) };
}

static void say_all(const struct forecast *f, const struct begun *b, const struct link *l, size_t but,
                    struct say out[N_WAYS])
{
    out[BY_FAMILIES] = say_families(f, b->x, l->from, l->to);
    out[BY_ALIKE] = f->n > TRIED_MIN ? say_alike(f, b, l, but) : out[BY_FAMILIES];
    out[BY_LAST] = (struct say){ b->x[l->from - 1], out[BY_FAMILIES].sd };
}

static struct say say_mixed(const struct say by[N_WAYS], const double weight[N_WAYS])
{
    struct say s = { 0, 0.002 };
    for (int i = 0; i < N_WAYS; i++) {
        s.mean += weight[i] * by[i].mean;
        s.sd += weight[i] * by[i].sd;
    }
    return s;
}

/* --- what the finished ones say about the ways -------------------------------------------------------------------------- */

static double miss_of(const struct say (*by)[N_WAYS], const double *truth, size_t n, const double weight[N_WAYS])
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(say_mixed(by[i], weight).mean - truth[i]);
    return sum / (double)n;
}

/* The weights, in quarters, that would have missed least. */
static void learn_weights(struct link *l, const struct say (*by)[N_WAYS], const double *truth, size_t n)
{
    double least = miss_of(by, truth, n, l->weight) * 0.97; /* a little better may be luck */
    for (int a = 0; a <= 4; a++)
        for (int b = 0; a + b <= 4; b++) {
            double w[N_WAYS] = { a / 4.0, b / 4.0, (4 - a - b) / 4.0 };
            double miss = miss_of(by, truth, n, w);
            if (miss < least) {
                least = miss;
                memcpy(l->weight, w, sizeof w);
            }
        }
}

/* The k-th smallest such that so many more of the same kind lie below it; with few, beyond the outermost. */
static double conformal(const double *sorted, size_t n, double share)
{
    double at = share * ((double)n + 1) - 1;
    if (at <= 0)
        return sorted[0];
    if (at >= (double)n - 1)
        return sorted[n - 1];
    size_t i = (size_t)at;
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static void learn_ends(struct link *l, const struct say (*by)[N_WAYS], const double *truth, size_t n)
{
    double z[TRIED_MAX];
    for (size_t i = 0; i < n; i++) {
        struct say s = say_mixed(by[i], l->weight);
        z[i] = (truth[i] - s.mean) / s.sd;
    }
    qsort(z, n, sizeof *z, by_value);
    l->low = fmin(conformal(z, n, 0.1), 0);
    l->high = fmax(conformal(z, n, 0.9), 0);
}

static size_t tried(const struct forecast *f, size_t i, size_t n)
{
    return i * f->n / n;
}

static struct begun begun_of(const struct forecast *f, size_t which)
{
    return (struct begun){ f->values + which * (size_t)f->epochs, &f->places[which] };
}

/* How much hyperparameters say beside the beginnings. */
static void learn_apart(const struct forecast *f, struct link *l, size_t n)
{
    static const double weights[] = { 0, 0.03, 0.1, 0.3, 1, 3 };
    double least = INFINITY, best = 0;
    for (size_t k = 0; k < ARRAY_LEN(weights) && (k == 0 || f->n_dims > 0); k++) {
        double miss = 0;
        l->apart = weights[k];
        for (size_t i = 0; i < n; i++) {
            size_t which = tried(f, i, n);
            struct begun b = begun_of(f, which);
            miss += fabs(say_alike(f, &b, l, which).mean - b.x[l->to - 1]);
        }
        if (miss < least) {
            least = miss;
            best = weights[k];
        }
    }
    l->apart = best;
}

static void learn(const struct forecast *f, struct link *l)
{
    struct say by[TRIED_MAX][N_WAYS];
    double truth[TRIED_MAX];
    size_t n = f->n < TRIED_MAX ? f->n : TRIED_MAX;
    *l = (struct link){ l->from, l->to, { 0.75, 0, 0.25 }, 0, -1.2 * Z80, 1.2 * Z80 };
    if (f->n <= TRIED_MIN)
        return;
    memcpy(l->weight, (double[]){ 0.25, 0.75, 0 }, sizeof l->weight);
    learn_apart(f, l, n);
    for (size_t i = 0; i < n; i++) {
        size_t which = tried(f, i, n);
        struct begun b = begun_of(f, which);
        say_all(f, &b, l, which, by[i]);
        truth[i] = b.x[l->to - 1];
    }
    learn_weights(l, by, truth, n);
    learn_ends(l, by, truth, n);
}

static const struct link *link_of(struct forecast *f, int from, int to)
{
    for (size_t i = 0; i < f->n_links; i++)
        if (f->links[i].from == from && f->links[i].to == to)
            return &f->links[i];
    struct link *links = array_more(f->links, f->n_links, &f->cap_links, sizeof *links);
    if (!links)
        return NULL;
    f->links = links;
    struct link *l = &links[f->n_links++];
    *l = (struct link){ .from = from, .to = to };
    learn(f, l);
    return l;
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
    const struct link *l = link_of(f, n, epoch);
    if (!l)
        return -ENOMEM;
    struct say by[N_WAYS];
    say_all(f, b, l, SIZE_MAX, by);
    struct say s = say_mixed(by, l->weight);
    double middle = norm_back(m, s.mean), a = norm_back(m, s.mean + l->low * s.sd);
    double z = norm_back(m, s.mean + l->high * s.sd);
    *out = (struct foretold){ middle, fmin(a, z), fmax(a, z) };
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
