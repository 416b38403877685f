/* Points at random. */
#include <math.h>

#include "core/rng.h"
#include "core/space.h"

static double clamp(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

static double draw_between(struct rng *r, double min, double max, bool log_scale)
{
    double u = rng_unit(r);
    double x = log_scale ? exp(log(min) * (1 - u) + log(max) * u) : min * (1 - u) + max * u;
    return clamp(x, min, max); /* exp and the sum may round past the end */
}

static double draw(struct rng *r, const struct dim *d)
{
    switch (d->kind) {
    case DIM_LIST:
    case DIM_RANGE: return (double)rng_below(r, d->n);
    case DIM_REAL: return draw_between(r, d->min, d->max, d->log);
    case DIM_INTEGER: break;
    }
    if (d->log) /* up to max + 1, so that max has its share */
        return clamp(floor(draw_between(r, d->min, d->max + 1, d->log)), d->min, d->max);
    return space_dim_at(d, rng_below(r, space_dim_count(d)));
}

struct point space_draw(const struct space *s, struct rng *r)
{
    struct point p = { 0 };
    for (size_t i = 0; i < s->n_dims; i++)
        p.x[i] = draw(r, &s->dims[i]);
    return p;
}

bool space_draw_admitted(const struct space *s, struct rng *r, struct point *out)
{
    enum { PATIENCE = 1000000 };
    for (int i = 0; i < PATIENCE; i++) {
        *out = space_draw(s, r);
        if (space_admits(s, out))
            return true;
    }
    return false;
}
