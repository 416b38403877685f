/* `gp` for several objectives. Each figure has a process of its own (surrogate.h); each proposal looks for the largest expected improvement of one
 * number that is made of all of them, an augmented Chebyshev distance to the best of each by weights that are drawn for this proposal (as
 * Knowles' ParEGO has it, there over one process). So the proposals spread over the front. Nothing is kept but the points: what a
 * proposal is made of is made anew for it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/rng.h"
#include "search/search.h"
#include "search/several.h"
#include "search/surrogate.h"

enum {
    STARTUP = 10,      /* trials at random before anything is concluded */
    RANDOM_EVERY = 20, /* and later, now and then */
    POOL = 400,        /* points that are weighed */
    CENTRES = 8,       /* trials near which half of them lie */
    SAMPLES = 32,      /* of the figures of each, for what is expected */
    DRAWS = 64,        /* for a point that was not used, in a space that cannot be counted through */
};

struct seen {
    struct point point;
    struct unit_point place;
};

struct volume {
    const struct space *space;
    struct search_cfg cfg;
    uint64_t size;
    struct seen *trials; /* by id */
    size_t *order;
    size_t n, cap, cap_order;
    struct surrogate *figure; /* one for each goal */
    struct point *pool;
};

/* One proposal in the making. */
struct aimed {
    struct rng rng;
    double weights[GOALS_MAX], best; /* best: distance of what is told */
    double normals[SAMPLES][GOALS_MAX];
    size_t n_told, m;
};

static int volume_init(void *state, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    struct volume *v = state;
    *v = (struct volume){ .space = sp, .cfg = *cfg, .size = space_size(sp) };
    v->figure = calloc(several_goals(cfg->several), sizeof *v->figure);
    v->pool = calloc(POOL, sizeof *v->pool);
    if (v->figure && v->pool)
        return 0;
    free(v->figure);
    free(v->pool);
    return err_sys(e, -ENOMEM, "search 'gp'");
}

/* --- points that could be new --- */

static bool is_used(const struct volume *v, const struct point *p)
{
    for (size_t i = 0; i < v->n; i++)
        if (memcmp(&v->trials[i].point, p, sizeof *p) == 0)
            return true;
    return false;
}

static struct point draw_near(const struct space *sp, const struct unit_point *of, struct rng *r)
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

static size_t count_through(struct volume *v, uint64_t seed)
{
    size_t n = 0;
    for (uint64_t i = 0; i < v->size && n < POOL; i++) {
        v->pool[n] = space_point_at(v->space, rng_shuffled(seed, v->size, i));
        n += !is_used(v, &v->pool[n]);
    }
    return n;
}

/* Half of them near the best trials. */
static size_t fill_pool(struct volume *v, struct aimed *a)
{
    size_t n = 0, centres = a->n_told < CENTRES ? a->n_told : CENTRES;
    if (v->space->points || v->size <= POOL)
        return count_through(v, rng_next(&a->rng));
    for (size_t i = 0; i < 2 * POOL && n < POOL; i++) {
        const struct unit_point *near = &v->trials[v->order[rng_below(&a->rng, centres)]].place;
        struct unit_point any = unit_draw(v->space, &a->rng);
        struct point p = i % 2 ? draw_near(v->space, near, &a->rng) : unit_to_point(v->space, &any);
        if (!space_admits(v->space, &p) || is_used(v, &p))
            continue;
        v->pool[n++] = p;
    }
    return n;
}

/* 1; -ENODATA: all is used up. */
static int draw(const struct volume *v, struct rng *r, struct point *out)
{
    for (int i = 0; i < DRAWS && !v->space->points; i++) {
        struct unit_point u = unit_draw(v->space, r);
        *out = unit_to_point(v->space, &u);
        if (space_admits(v->space, out) && !is_used(v, out))
            return 1;
    }
    for (uint64_t i = 0; v->size != UINT64_MAX && i < v->size; i++) {
        *out = space_point_at(v->space, rng_shuffled(v->cfg.seed, v->size, i));
        if (space_admits(v->space, out) && !is_used(v, out))
            return 1;
    }
    return v->size == UINT64_MAX && space_draw_admitted(v->space, r, out) && !is_used(v, out) ? 1 : -ENODATA;
}

/* --- what is learnt --- */

/* Evenly over all directions. */
static void draw_weights(struct aimed *a)
{
    double sum = 0;
    for (size_t k = 0; k < a->m; k++)
        sum += a->weights[k] = -log(1 - rng_unit(&a->rng));
    for (size_t k = 0; k < a->m; k++)
        a->weights[k] = sum > 0 ? a->weights[k] / sum : 1.0 / (double)a->m;
    for (size_t i = 0; i < SAMPLES; i++)
        for (size_t k = 0; k < a->m; k++)
            a->normals[i][k] = rng_normal(&a->rng);
}

/* What lies far beyond the front says little more than that it is bad. */
static double squashed(double x)
{
    return x <= 1 ? x : 2 - exp(1 - x);
}

/* The processes, of the best trials, and the best distance by these weights. */
static void learn(struct volume *v, struct aimed *a)
{
    double values[GOALS_MAX][SURROGATE_ROWS_MAX], figures[GOALS_MAX];
    const struct unit_point *at[SURROGATE_ROWS_MAX];
    size_t n = a->n_told < SURROGATE_ROWS_MAX ? a->n_told : SURROGATE_ROWS_MAX;
    a->best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        (void)several_figures(v->cfg.several, v->order[i], figures); /* it is among those that have them */
        at[i] = &v->trials[v->order[i]].place;
        for (size_t k = 0; k < a->m; k++)
            figures[k] = values[k][i] = squashed(figures[k]);
        a->best = fmin(a->best, several_distance(figures, a->weights, a->m));
    }
    for (size_t k = 0; k < a->m; k++)
        surrogate_fit(&v->figure[k], v->space, at, values[k], n);
}

static double close_to(const struct space *sp, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0, reach = 0.15 * 0.15 * (double)sp->n_dims;
    for (size_t i = 0; i < sp->n_dims; i++) {
        double d = fmin(1, fabs(a->u[i] - b->u[i]));
        sum += d * d;
    }
    return exp(-0.5 * sum / reach);
}

/* That such a point can be trained, and is admitted; and that it is none of those that run. */
static double chance(const struct volume *v, const struct aimed *a, const struct unit_point *at)
{
    double good = 0.5, bad = 0, runs = 1;
    for (size_t i = 0; i < a->n_told; i++)
        good += close_to(v->space, at, &v->trials[v->order[i]].place);
    for (size_t i = a->n_told; i < v->n; i++) {
        double close = close_to(v->space, at, &v->trials[v->order[i]].place);
        if (several_is_bad(v->cfg.several, v->order[i]))
            bad += close;
        else
            runs *= 1 - 0.9 * close;
    }
    double feasible = good / (good + bad);
    return feasible * feasible * runs;
}

static double worth(const struct volume *v, const struct aimed *a, const struct unit_point *at)
{
    double mean[GOALS_MAX], sd[GOALS_MAX], figures[GOALS_MAX], sum = 0;
    for (size_t k = 0; k < a->m; k++)
        surrogate_foretell(&v->figure[k], at, &mean[k], &sd[k]);
    for (size_t i = 0; i < SAMPLES; i++) {
        for (size_t k = 0; k < a->m; k++)
            figures[k] = mean[k] + sd[k] * a->normals[i][k];
        sum += fmax(0, a->best - several_distance(figures, a->weights, a->m));
    }
    return sum / SAMPLES * chance(v, a, at);
}

/* False: nothing is worth more than what there is. */
static bool foretell(struct volume *v, struct aimed *a, struct point *out)
{
    double most = 0;
    draw_weights(a);
    learn(v, a);
    size_t n = fill_pool(v, a);
    for (size_t i = 0; i < n; i++) {
        struct unit_point at = unit_of(v->space, &v->pool[i]);
        double w = worth(v, a, &at);
        if (w > most) {
            most = w;
            *out = v->pool[i];
        }
    }
    return most > 0;
}

/* --- asking --- */

static int choose(struct volume *v, struct point *out)
{
    struct aimed a = { .rng = rng_seeded(rng_mix(v->cfg.seed + 3) ^ rng_mix(v->n)),
                       .m = several_goals(v->cfg.several) };
    if (v->n < v->space->n_first) {
        *out = v->space->first[v->n];
        return 1;
    }
    a.n_told = several_order(v->cfg.several, v->n, v->order);
    bool learnt = a.n_told >= STARTUP && v->n % RANDOM_EVERY != RANDOM_EVERY - 1;
    return learnt && foretell(v, &a, out) ? 1 : draw(v, &a.rng, out);
}

static int make_room(struct volume *v)
{
    struct seen *trials = array_more(v->trials, v->n, &v->cap, sizeof *trials);
    if (!trials)
        return -ENOMEM;
    v->trials = trials;
    size_t *order = array_more(v->order, v->n, &v->cap_order, sizeof *order);
    if (!order)
        return -ENOMEM;
    v->order = order;
    return 0;
}

static void keep(struct volume *v, const struct point *p)
{
    v->trials[v->n++] = (struct seen){ *p, unit_of(v->space, p) };
}

static int volume_add(void *state, const struct point *p, struct proposal *out)
{
    struct volume *v = state;
    if (is_used(v, p))
        return 0;
    if (make_room(v) < 0)
        return -ENOMEM;
    *out = (struct proposal){ .id = v->n, .point = *p };
    keep(v, p);
    return 1;
}

static int volume_ask(void *state, struct proposal *out)
{
    struct volume *v = state;
    struct proposal p = { .id = v->n };
    int rc = make_room(v) < 0 ? -ENOMEM : choose(v, &p.point);
    if (rc != 1)
        return rc;
    keep(v, &p.point);
    *out = p;
    return 1;
}

static void volume_save(const void *state, struct buf *out)
{
    const struct volume *v = state;
    pack_u64(out, v->n);
    for (size_t i = 0; i < v->n; i++)
        for (size_t d = 0; d < v->space->n_dims; d++)
            pack_f64(out, v->trials[i].point.x[d]);
}

static int volume_restore(void *state, struct unpack *from)
{
    struct volume *v = state;
    for (size_t n = unpack_count(from, 8 * v->space->n_dims); n > 0; n--) {
        struct point p = { { 0 } };
        if (make_room(v) < 0)
            return -ENOMEM;
        for (size_t d = 0; d < v->space->n_dims; d++)
            p.x[d] = unpack_f64(from);
        if (!unit_is_point(v->space, &p))
            return -EPROTO;
        keep(v, &p);
    }
    return from->bad ? -EPROTO : 0;
}

static void volume_done(void *state)
{
    struct volume *v = state;
    free(v->trials);
    free(v->order);
    free(v->figure);
    free(v->pool);
}

const struct search_ops search_volume = {
    .name = "gp",
    .help = "of several objectives, the largest expected improvement on one that is drawn between them",
    .version = 1,
    .state_size = sizeof(struct volume),
    .init = volume_init,
    .ask = volume_ask,
    .add = volume_add,
    .save = volume_save,
    .restore = volume_restore,
    .done = volume_done,
};
