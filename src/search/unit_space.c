#include "search/unit_space.h"

#include <math.h>

/* Numbers in ascending or descending order: then an index tells how far apart two are. */
static bool is_ordered(const struct dim *d)
{
    bool up = true, down = true;
    for (uint64_t i = 0; i < d->n; i++) {
        if (!d->values[i].is_number)
            return false;
        up = up && (i == 0 || d->values[i - 1].number < d->values[i].number);
        down = down && (i == 0 || d->values[i - 1].number > d->values[i].number);
    }
    return up || down;
}

uint64_t unit_choices(const struct dim *d)
{
    return d->kind == DIM_LIST && d->n > 1 && !is_ordered(d) ? d->n : 0;
}

static bool is_in(const struct dim *d, double x)
{
    if (d->kind == DIM_LIST || d->kind == DIM_RANGE)
        return x >= 0 && x < (double)d->n && x == floor(x);
    return x >= d->min && x <= d->max && (d->kind == DIM_REAL || x == floor(x));
}

bool unit_is_point(const struct space *sp, const struct point *p)
{
    for (size_t i = 0; i < sp->n_dims; i++)
        if (!is_in(&sp->dims[i], p->x[i]))
            return false;
    return true;
}

static double clamp(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

static double unit_at(const struct dim *d, double x)
{
    if (d->kind == DIM_LIST || d->kind == DIM_RANGE)
        return unit_choices(d) ? x : d->n > 1 ? x / (double)(d->n - 1) : 0.5;
    if (d->log)
        return clamp((log(x) - log(d->min)) / (log(d->max) - log(d->min)), 0, 1);
    return clamp(x / 2 - d->min / 2, 0, INFINITY) /
           (d->max / 2 - d->min / 2); /* halves: the range may be too wide for a double */
}

struct unit_point unit_of(const struct space *sp, const struct point *p)
{
    struct unit_point u = { 0 };
    for (size_t i = 0; i < sp->n_dims; i++)
        u.u[i] = unit_at(&sp->dims[i], p->x[i]);
    return u;
}

static double from_unit(const struct dim *d, double u)
{
    if (d->kind == DIM_LIST || d->kind == DIM_RANGE)
        return unit_choices(d) ? u : clamp(round(u * (double)(d->n - 1)), 0, (double)(d->n - 1));
    double x = d->log ? exp(log(d->min) * (1 - u) + log(d->max) * u) : d->min * (1 - u) + d->max * u;
    return clamp(d->kind == DIM_INTEGER ? round(x) : x, d->min, d->max) +
           0.0; /* points compare by their bytes: no -0 */
}

struct point unit_to_point(const struct space *sp, const struct unit_point *u)
{
    struct point p = { 0 };
    for (size_t i = 0; i < sp->n_dims; i++)
        p.x[i] = from_unit(&sp->dims[i], u->u[i]);
    return p;
}

struct unit_point unit_draw(const struct space *sp, struct rng *r)
{
    struct unit_point u = { 0 };
    for (size_t i = 0; i < sp->n_dims; i++) {
        uint64_t choices = unit_choices(&sp->dims[i]);
        u.u[i] = choices ? (double)rng_below(r, choices) : rng_unit(r);
    }
    return u;
}
