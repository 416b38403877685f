/* Where points lie, and points that could be new. */
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/thaw_state.h"

enum { RANKED_MAX = 64 };

/* A list of numbers is in their order, any other one is of names. */
static void rank_list(struct thaw *t, size_t dim)
{
    const struct dim *d = &t->space->dims[dim];
    bool numbers = d->n <= RANKED_MAX;
    for (uint64_t i = 0; i < d->n && numbers; i++)
        numbers = d->values[i].is_number && isfinite(d->values[i].number);
    t->places.named[dim] = !numbers && d->n > 1;
    for (uint64_t i = 0; i < d->n && numbers && d->n > 1; i++) {
        double below = 0;
        for (uint64_t k = 0; k < d->n; k++)
            below += d->values[k].number < d->values[i].number;
        t->rank[dim][i] = below / (double)(d->n - 1);
    }
}

void thaw_places_init(struct thaw *t)
{
    t->places.n = t->space->n_dims;
    for (size_t i = 0; i < t->space->n_dims; i++)
        if (t->space->dims[i].kind == DIM_LIST)
            rank_list(t, i);
}

static double between(double x, double min, double max, bool log_scale)
{
    if (!(max > min))
        return 0;
    if (log_scale)
        return (log(x) - log(min)) / (log(max) - log(min));
    return (x / 2 - min / 2) / (max / 2 - min / 2); /* the whole of doubles is no number */
}

struct place thaw_place(const struct thaw *t, const struct point *p)
{
    struct place at = { { 0 } };
    for (size_t i = 0; i < t->space->n_dims; i++) {
        const struct dim *d = &t->space->dims[i];
        double x = p->x[i];
        switch (d->kind) {
        case DIM_LIST: at.x[i] = t->places.named[i] || d->n > RANKED_MAX ? x : t->rank[i][(size_t)x]; break;
        case DIM_RANGE: at.x[i] = d->n > 1 ? x / (double)(d->n - 1) : 0; break;
        case DIM_INTEGER:
        case DIM_REAL: at.x[i] = between(x, d->min, d->max, d->log); break;
        }
    }
    return at;
}

/* --- drawing ---------------------------------------------------------------------------------------------------------- */

static double value_at(const struct dim *d, double u)
{
    double min = d->min, max = d->max + (d->kind == DIM_INTEGER);
    double x = d->log ? exp(log(min) * (1 - u) + log(max) * u) : min * (1 - u) + max * u;
    x = d->kind == DIM_INTEGER ? floor(x) : x;
    return x < d->min ? d->min : x > d->max ? d->max : x;
}

static double draw(struct rng *r, const struct dim *d)
{
    bool counted = d->kind == DIM_LIST || d->kind == DIM_RANGE;
    return counted ? (double)rng_below(r, d->n) : value_at(d, rng_unit(r));
}

/* Near another point: most dimensions as they are, some moved a little. */
static double draw_near(struct rng *r, const struct thaw *t, size_t dim, double x, double at)
{
    const struct dim *d = &t->space->dims[dim];
    if (!rng_chance(r, 0.4))
        return x;
    double move = 0.1 * rng_normal(r), u = fmin(1, fmax(0, at + move));
    if (d->kind == DIM_LIST)
        return (double)rng_below(r, d->n);
    return d->kind == DIM_RANGE ? floor(u * (double)(d->n - 1) + 0.5) : value_at(d, u);
}

static struct point draw_point(struct rng *r, const struct thaw *t)
{
    struct point p = { { 0 } };
    for (size_t i = 0; i < t->space->n_dims; i++)
        p.x[i] = draw(r, &t->space->dims[i]);
    return p;
}

static struct point draw_point_near(struct rng *r, const struct thaw *t, const struct thaw_trial *of)
{
    struct point p = { { 0 } };
    for (size_t i = 0; i < t->space->n_dims; i++)
        p.x[i] = draw_near(r, t, i, of->point.x[i], of->place.x[i]);
    return p;
}

/* --- points that could be new ------------------------------------------------------------------------------------------- */

bool thaw_is_used(const struct thaw *t, const struct point *p, size_t n_trials)
{
    for (size_t i = 0; i < n_trials; i++)
        if (memcmp(&t->trials[i].point, p, t->space->n_dims * sizeof p->x[0]) == 0)
            return true;
    return false;
}

static bool is_among(const struct point *list, size_t n, const struct point *p, size_t n_dims)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&list[i], p, n_dims * sizeof p->x[0]) == 0)
            return true;
    return false;
}

static bool add_new(const struct thaw *t, struct point *out, size_t *n, const struct point *p)
{
    if (thaw_is_used(t, p, t->built_trials) || is_among(out, *n, p, t->space->n_dims))
        return false;
    out[(*n)++] = *p;
    return true;
}

bool thaw_draw_new(const struct thaw *t, struct point *out)
{
    enum { PATIENCE = 64 };
    uint64_t size = space_size(t->space);
    struct rng r = rng_seeded(rng_mix(t->cfg.seed + 2) ^ rng_mix(t->n_trials));
    for (int i = 0; i < PATIENCE && !t->space->points; i++) {
        *out = draw_point(&r, t);
        if (!thaw_is_used(t, out, t->n_trials))
            return true;
    }
    for (uint64_t i = 0; size != UINT64_MAX && i < size; i++) {
        *out = space_point_at(t->space, rng_shuffled(t->cfg.seed, size, i));
        if (!thaw_is_used(t, out, t->n_trials))
            return true;
    }
    return false;
}

/* Those of a space that can be counted, in an order of their own, until there are enough. */
static size_t count_through(const struct thaw *t, struct point *out, size_t n, size_t max)
{
    uint64_t size = space_size(t->space), seed = rng_mix(t->cfg.seed ^ rng_mix(t->builds));
    for (uint64_t i = 0; size != UINT64_MAX && i < size && n < max; i++) {
        struct point p = space_point_at(t->space, rng_shuffled(seed, size, i));
        (void)add_new(t, out, &n, &p);
    }
    return n;
}

static bool has(const uint64_t *list, size_t n, uint64_t x)
{
    size_t i = 0;
    while (i < n && list[i] != x)
        i++;
    return i < n;
}

/* The trials that are best by what the log said when it was built. */
static size_t best_trials(const struct thaw *t, uint64_t *out, size_t max)
{
    size_t n = 0;
    for (; n < max; n++) {
        const struct thaw_log *best = NULL;
        for (size_t i = 0; i < t->built_log; i++)
            if ((!best || t->log[i].value < best->value) && !has(out, n, t->log[i].trial))
                best = &t->log[i];
        if (!best)
            break;
        out[n] = best->trial;
    }
    return n;
}

size_t thaw_pool(const struct thaw *t, struct point *out, size_t max)
{
    enum { CENTRES = 6, PATIENCE = 3 };
    uint64_t size = space_size(t->space), centres[CENTRES];
    size_t n = 0, n_centres = best_trials(t, centres, CENTRES);
    if (t->space->points || size <= max)
        return count_through(t, out, 0, max);
    struct rng r = rng_seeded(rng_mix(t->cfg.seed + 1) ^ rng_mix(t->builds));
    for (size_t i = 0; i < max * PATIENCE && n < max; i++) {
        bool near = n_centres > 0 && i % 2 == 1;
        struct point p =
            near ? draw_point_near(&r, t, &t->trials[centres[rng_below(&r, n_centres)]]) : draw_point(&r, t);
        (void)add_new(t, out, &n, &p);
    }
    return count_through(t, out, n, max);
}
