/* Three foretell a value: the families (families.c), the finished curves that are alike (forest.c), and the value that there is. How much each is
 * worth between two epochs, and how wide the interval must be, is what would have held for the finished curves, each foretold from the others. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "search/families.h"
#include "search/forecast_state.h"
#include "search/forest.h"

enum {
    TRIED_MAX = 128, /* finished curves that the weights are learnt from */
    TRIED_MIN = 6,   /* fewer teach nothing */
};

/* What is seen of a curve from an epoch, in numbers that a forest can cut; the hyperparameters follow. */
enum { FIRST, HALF, NOW, TREND, STEP, LEAST, ROUGH, FORETOLD, UNSURE, N_SIGHTS };

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

/* The middle, and how far it is to where one in ten lies below and above. */
struct say {
    double median, down, up;
};

static struct say say_families(const struct families *families, const double *x, int from)
{
    int at[FAMILIES_SEEN_MAX], n = pick_epochs(from, FAMILIES_SEEN_MAX, at);
    double values[FAMILIES_SEEN_MAX];
    for (int i = 0; i < n; i++)
        values[i] = x[at[i] - 1];
    struct families_told t = families_foretell(families, values);
    return (struct say){ t.median, t.median - t.low, t.high - t.median };
}

static int families_between(struct families **out, const struct forecast *f, int from, int to)
{
    int at[FAMILIES_SEEN_MAX];
    struct seen seen = { .n = pick_epochs(from, FAMILIES_SEEN_MAX, at), .ahead = to, .epochs = f->epochs };
    for (int i = 0; i < seen.n; i++)
        seen.epoch[i] = at[i];
    return families_new(out, &seen);
}

static struct begun begun_of(const struct forecast *f, size_t which)
{
    return (struct begun){ f->values + which * (size_t)f->epochs, &f->places[which] };
}

/* --- those that are alike --------------------------------------------------------------------------------------------- */

/* `row`: N_SIGHTS and the hyperparameters. */
static void look(const struct forecast *f, const struct view *v, const struct begun *b, double *row)
{
    int last = v->from - 1, half = v->from / 2 - (v->from > 1);
    double least = b->x[0], rough = 0;
    for (int i = 1; i <= last; i++) {
        least = fmin(least, b->x[i]);
        rough += fabs(b->x[i] - b->x[i - 1]);
    }
    struct say s = say_families(v->families, b->x, v->from);
    row[FIRST] = b->x[0];
    row[HALF] = b->x[half];
    row[NOW] = b->x[last];
    row[TREND] = b->x[last] - b->x[half];
    row[STEP] = last > 0 ? b->x[last] - b->x[last - 1] : 0;
    row[LEAST] = least;
    row[ROUGH] = rough / v->from;
    row[FORETOLD] = s.median - b->x[last];
    row[UNSURE] = s.down + s.up;
    if (b->at)
        memcpy(row + N_SIGHTS, b->at->u, f->n_dims * sizeof *row);
    else
        memset(row + N_SIGHTS, 0, f->n_dims * sizeof *row);
}

static void view_done(struct view *v)
{
    families_free(v->families);
    forest_free(v->forest);
}

static int view_set(struct view *v, const struct forecast *f, int from)
{
    size_t d = N_SIGHTS + f->n_dims;
    *v = (struct view){ .from = from };
    int rc = families_between(&v->families, f, from, f->epochs);
    if (rc < 0 || f->n <= TRIED_MIN)
        return rc;
    AUTO_FREE double *rows = calloc(f->n * d, sizeof *rows);
    AUTO_FREE double *became = calloc(f->n, sizeof *became);
    for (size_t i = 0; rows && became && i < f->n; i++) {
        struct begun b = begun_of(f, i);
        look(f, v, &b, rows + i * d);
        became[i] = b.x[f->epochs - 1] - b.x[from - 1];
    }
    rc = rows && became ? forest_new(&v->forest, rows, d, became, f->n) : -ENOMEM;
    if (rc < 0)
        view_done(v);
    return rc;
}

static int view_of(struct forecast *f, int from, struct view **out)
{
    size_t i = 0;
    while (i < f->n_views && f->views[i].from != from)
        i++;
    if (i == f->n_views) {
        struct view *views = array_more(f->views, f->n_views, &f->cap_views, sizeof *views);
        if (!views)
            return -ENOMEM;
        f->views = views;
        int rc = view_set(&views[i], f, from);
        if (rc < 0)
            return rc;
        f->n_views++;
    }
    *out = &f->views[i];
    return 0;
}

/* The number that a share of the weight lies below, in a line between the middles of neighbours. */
static double weighed_quantile(const struct link *l, const double *weights, size_t n, double share)
{
    double below = 0, was_at = -INFINITY, was = 0;
    for (size_t i = 0; i < n; i++) {
        double w = weights[l->order[i]], is = l->changes[l->order[i]], at = below + w / 2;
        if (w <= 0)
            continue;
        if (at >= share)
            return was_at >= 0 ? was + (is - was) * (share - was_at) / (at - was_at) : is;
        was_at = at;
        was = is;
        below += w;
    }
    return was;
}

/* What became of the finished ones that are alike, all but `but`. */
static struct say say_alike(const struct forecast *f, const struct view *v, const struct link *l, const struct begun *b,
                            size_t but)
{
    double row[N_SIGHTS + SPACE_MAX_DIMS], weights[FORECAST_FINISHED_MAX];
    look(f, v, b, row);
    forest_weigh(v->forest, row, but, weights);
    double middle = weighed_quantile(l, weights, f->n, 0.5);
    return (struct say){ b->x[l->from - 1] + middle, middle - weighed_quantile(l, weights, f->n, 0.1),
                         weighed_quantile(l, weights, f->n, 0.9) - middle };
}

static void say_all(const struct forecast *f, const struct view *v, const struct link *l, const struct begun *b,
                    size_t but, struct say out[N_WAYS])
{
    out[BY_FAMILIES] = say_families(l->families, b->x, l->from);
    out[BY_ALIKE] = v->forest ? say_alike(f, v, l, b, but) : out[BY_FAMILIES];
    out[BY_LAST] = (struct say){ b->x[l->from - 1], out[BY_FAMILIES].down, out[BY_FAMILIES].up };
}

static struct say say_mixed(const struct say by[N_WAYS], const double weight[N_WAYS])
{
    struct say s = { 0, 0.002, 0.002 };
    for (int i = 0; i < N_WAYS; i++) {
        s.median += weight[i] * by[i].median;
        s.down += weight[i] * by[i].down;
        s.up += weight[i] * by[i].up;
    }
    return s;
}

/* --- what the finished ones say about the ways -------------------------------------------------------------------------- */

static double miss_of(const struct say (*by)[N_WAYS], const double *truth, size_t n, const double weight[N_WAYS])
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(say_mixed(by[i], weight).median - truth[i]);
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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
        double beyond = truth[i] - s.median;
        z[i] = beyond / (beyond > 0 ? s.up : s.down);
    }
    qsort(z, n, sizeof *z, by_value);
    l->low = fmin(conformal(z, n, 0.1), 0);
    l->high = fmax(conformal(z, n, 0.9), 0);
}

static void learn(const struct forecast *f, const struct view *v, struct link *l)
{
    struct say by[TRIED_MAX][N_WAYS];
    double truth[TRIED_MAX];
    size_t n = f->n < TRIED_MAX ? f->n : TRIED_MAX;
    memcpy(l->weight, (double[]){ 0.75, 0, 0.25 }, sizeof l->weight);
    l->low = -1.2;
    l->high = 1.2;
    if (!v->forest)
        return;
    memcpy(l->weight, (double[]){ 0.25, 0.75, 0 }, sizeof l->weight);
    for (size_t i = 0; i < n; i++) {
        size_t which = i * f->n / n;
        struct begun b = begun_of(f, which);
        say_all(f, v, l, &b, which, by[i]);
        truth[i] = b.x[l->to - 1];
    }
    learn_weights(l, by, truth, n);
    learn_ends(l, by, truth, n);
}

/* Positions of numbers in their order; of equals the first comes first. */
static int by_number(const void *a, const void *b, void *of)
{
    const double *numbers = of;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    if (numbers[x] != numbers[y])
        return numbers[x] < numbers[y] ? -1 : 1;
    return (x > y) - (x < y);
}

static void link_done(struct link *l)
{
    families_free(l->families);
    free(l->changes);
    free(l->order);
}

static int link_set(struct link *l, const struct forecast *f, const struct view *v, int to)
{
    *l = (struct link){ .from = v->from, .to = to };
    l->changes = calloc(f->n + 1, sizeof *l->changes);
    l->order = calloc(f->n + 1, sizeof *l->order);
    if (!l->changes || !l->order || families_between(&l->families, f, v->from, to) < 0) {
        link_done(l);
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->n; i++) {
        const double *x = f->values + i * (size_t)f->epochs;
        l->changes[i] = x[to - 1] - x[v->from - 1];
        l->order[i] = i;
    }
    qsort_r(l->order, f->n, sizeof *l->order, by_number, l->changes);
    learn(f, v, l);
    return 0;
}

static int link_of(struct forecast *f, const struct view *v, int to, struct link **out)
{
    size_t i = 0;
    while (i < f->n_links && (f->links[i].from != v->from || f->links[i].to != to))
        i++;
    if (i == f->n_links) {
        struct link *links = array_more(f->links, f->n_links, &f->cap_links, sizeof *links);
        if (!links)
            return -ENOMEM;
        f->links = links;
        int rc = link_set(&links[i], f, v, to);
        if (rc < 0)
            return rc;
        f->n_links++;
    }
    *out = &f->links[i];
    return 0;
}

int forecast_say(struct forecast *f, const struct begun *b, int from, int to, struct foretold *out)
{
    struct view *v;
    struct link *l;
    int rc = view_of(f, from, &v);
    rc = rc == 0 ? link_of(f, v, to, &l) : rc;
    if (rc < 0)
        return rc;
    struct say by[N_WAYS];
    say_all(f, v, l, b, SIZE_MAX, by);
    struct say s = say_mixed(by, l->weight);
    *out = (struct foretold){ s.median, s.median + l->low * s.down, s.median + l->high * s.up };
    return 0;
}

void forecast_ways_done(struct forecast *f)
{
    for (size_t i = 0; i < f->n_views; i++)
        view_done(&f->views[i]);
    for (size_t i = 0; i < f->n_links; i++)
        link_done(&f->links[i]);
    free(f->views);
    free(f->links);
}
