/* Points that could be new. */
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/thaw_state.h"

/* Near another point: most dimensions as they are, some moved a little. */
static struct point draw_near(struct rng *r, const struct space *sp, const struct unit_point *of)
{
    struct unit_point u = unit_draw(sp, r);
    for (size_t i = 0; i < sp->n_dims; i++) {
        double move = 0.1 * rng_normal(r);
        if (!rng_chance(r, 0.4))
            u.u[i] = of->u[i];
        else if (unit_choices(&sp->dims[i]) == 0)
            u.u[i] = fmin(1, fmax(0, of->u[i] + move));
    }
    return unit_to_point(sp, &u);
}

static struct point draw_anywhere(struct rng *r, const struct space *sp)
{
    struct unit_point u = unit_draw(sp, r);
    return unit_to_point(sp, &u);
}

/* --- points that could be new ------------------------------------------------------------------------------------------- */

bool thaw_is_used(const struct thaw *t, const struct point *p, size_t n_trials)
{
    for (size_t i = 0; i < n_trials; i++)
        if (memcmp(&t->trials[i].point, p, t->space->n_dims * sizeof p->x[0]) == 0)
            return true;
    return false;
}

bool thaw_has_point(const struct thaw *t, const struct point *p)
{
    return thaw_is_used(t, p, t->n_trials);
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
        *out = draw_anywhere(&r, t->space);
        if (space_admits(t->space, out) && !thaw_is_used(t, out, t->n_trials))
            return true;
    }
    for (uint64_t i = 0; size != UINT64_MAX && i < size; i++) {
        *out = space_point_at(t->space, rng_shuffled(t->cfg.seed, size, i));
        if (space_admits(t->space, out) && !thaw_is_used(t, out, t->n_trials))
            return true;
    }
    return size == UINT64_MAX && t->space->rules && space_draw_admitted(t->space, &r, out) &&
           !thaw_is_used(t, out, t->n_trials);
}

/* Those of a space that can be counted, in an order of their own, until there are enough. */
static size_t count_through(const struct thaw *t, struct point *out, size_t n, size_t max)
{
    uint64_t size = space_size(t->space), seed = rng_mix(t->cfg.seed ^ rng_mix(t->builds));
    for (uint64_t i = 0; size != UINT64_MAX && i < size && n < max; i++) {
        struct point p = space_point_at(t->space, rng_shuffled(seed, size, i));
        if (space_admits(t->space, &p))
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
        struct point p = near ? draw_near(&r, t->space, &t->trials[centres[rng_below(&r, n_centres)]].place)
                              : draw_anywhere(&r, t->space);
        if (space_admits(t->space, &p))
            (void)add_new(t, out, &n, &p);
    }
    return count_through(t, out, n, max);
}
