/* Tree-structured Parzen estimator: the best of the trials so far say where good points lie, the others where bad ones do, each as a density that is a sum
 * of kernels over all dimensions together; what is proposed is, of some candidates, the one whose good density is largest beside its bad one.
 *
 * Trials need not have been trained equally far: two are compared at the last epoch that both came to, and a trial stands as high as the share of others
 * that it beats. A trial that has not told anything yet counts as bad, so that those that run at once spread out. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/rng.h"
#include "search/several.h"
#include "search/unit_space.h"

enum {
    STARTUP = 10,      /* trials at random before anything is concluded */
    RANDOM_ONE_IN = 5, /* and so many later, whatever is concluded */
    RANDOM_FRONT = 10, /* the same, of several objectives: a front keeps trials apart by itself */
    GOOD_MAX = 12,     /* kernels of the good, */
    BAD_MAX = 60,      /* and of the bad */
    CANDIDATES = 32,   /* drawn from the good density: many would end in where it is steepest, */
    LEFT_MAX = 400,    /* or drawn evenly from the points that are left */
    LIST_MAX = 200000, /* points that are counted one by one */
    STEPS_MAX = 24,    /* epochs at which trials are compared */
    TRIES = 64,        /* candidates that are drawn where the best ones are used up */
};

static const double good_share = 0.1;
static const double front_share = 0.2; /* of several objectives: a front is wider than a best one */
static const double narrow = 0.9;      /* kernels, beside what a normal distribution would want */
static const double sigma_min = 0.02;

struct seen {
    struct point point;
    struct unit_point at;
    uint64_t n_steps; /* so many of the steps it came to */
    double best;      /* so far: small is good */
    double steps[STEPS_MAX];
    double wins;
};

struct tpe {
    const struct space *space;
    struct search_cfg cfg;
    uint64_t size;
    int steps[STEPS_MAX]; /* epochs */
    size_t n_steps;
    struct seen *trials; /* by id */
    size_t n, cap;
    uint32_t *left; /* of a space that can be listed, the points that were not proposed; NULL: of another */
    size_t n_left;
    size_t *order; /* trials, the best first: room for ask() */
    size_t cap_order;
};

/* --- what is known of trials --- */

static size_t common_step(const struct seen *a, const struct seen *b)
{
    return (size_t)(a->n_steps < b->n_steps ? a->n_steps : b->n_steps);
}

/* What `a` gets for its comparison with `b`: a win, half of one, or none. */
static double points_of(const struct seen *a, const struct seen *b)
{
    size_t at = common_step(a, b);
    if (at == 0)
        return a->n_steps > 0 ? 1 : b->n_steps > 0 ? 0 : 0.5;
    double x = a->steps[at - 1], y = b->steps[at - 1];
    return x < y ? 1 : x > y ? 0 : 0.5;
}

static void count_against_all(struct tpe *s, size_t trial, double sign)
{
    struct seen *a = &s->trials[trial];
    for (size_t i = 0; i < s->n; i++) {
        if (i == trial)
            continue;
        double p = points_of(a, &s->trials[i]);
        a->wins += sign * p;
        s->trials[i].wins += sign * (1 - p);
    }
}

static int tpe_tell(void *state, const struct told *t)
{
    struct tpe *s = state;
    if (t->id >= s->n)
        return 0;
    struct seen *a = &s->trials[t->id];
    bool failed = t->kind == TOLD_FAILED || t->kind == TOLD_INFEASIBLE;
    if (!failed && isfinite(t->value))
        a->best = fmin(a->best, s->cfg.maximise ? -t->value : t->value);
    size_t steps = (size_t)a->n_steps;
    while (steps < s->n_steps && s->steps[steps] <= t->epoch)
        steps++;
    if (failed && steps == 0)
        steps = 1;
    if (!failed && (steps == a->n_steps || !isfinite(a->best)))
        return 0; /* nothing that others could be compared with */
    count_against_all(s, (size_t)t->id, -1);
    for (size_t i = (size_t)a->n_steps; i < steps; i++)
        a->steps[i] = a->best;
    for (size_t i = 0; failed && i < steps; i++)
        a->steps[i] = INFINITY; /* it is worth nothing, whatever it was */
    a->n_steps = steps;
    count_against_all(s, (size_t)t->id, 1);
    return 0;
}

/* --- densities --- */

struct kernels {
    const struct unit_point *at[GOOD_MAX + BAD_MAX];
    double log_scale[GOOD_MAX +
                     BAD_MAX]; /* what a kernel integrates to inside of the space, as a logarithm of its inverse */
    size_t n;
    double sigma[SPACE_MAX_DIMS]; /* of a choice: how likely another one is */
};

/* Of a normal distribution's mass between 0 and 1. */
static double mass(double mean, double sigma)
{
    return 0.5 * (erf((1 - mean) / (sigma * M_SQRT2)) + erf(mean / (sigma * M_SQRT2)));
}

static double spread(const struct kernels *k, size_t dim)
{
    double mean = 0.5, sum = 0;
    for (size_t i = 0; i < k->n; i++)
        mean += k->at[i]->u[dim];
    mean /= (double)(k->n + 1);
    for (size_t i = 0; i < k->n; i++)
        sum += (k->at[i]->u[dim] - mean) * (k->at[i]->u[dim] - mean);
    return sqrt((sum + 1.0 / 12) / (double)(k->n + 1));
}

static void shape(struct kernels *k, const struct space *sp)
{
    double shrink = pow((double)k->n + 1, -1.0 / (4 + (double)sp->n_dims));
    for (size_t d = 0; d < sp->n_dims; d++) {
        if (unit_choices(&sp->dims[d]))
            k->sigma[d] = fmin(0.8 * shrink, 0.9);
        else
            k->sigma[d] = fmax(narrow * shrink * spread(k, d), sigma_min);
    }
    for (size_t i = 0; i < k->n; i++) {
        k->log_scale[i] = 0;
        for (size_t d = 0; d < sp->n_dims; d++)
            if (!unit_choices(&sp->dims[d]))
                k->log_scale[i] -= log(k->sigma[d] * sqrt(2 * M_PI) * mass(k->at[i]->u[d], k->sigma[d]));
    }
}

/* Beside that of a point at random, which is one kernel more. */
static double density(const struct kernels *k, const struct space *sp, const uint64_t *choices,
                      const struct unit_point *u)
{
    double sum = 1;
    for (size_t i = 0; i < k->n; i++) {
        double e = k->log_scale[i];
        double p = 1;
        for (size_t d = 0; d < sp->n_dims; d++) {
            double diff = u->u[d] - k->at[i]->u[d];
            if (choices[d])
                p *= diff == 0 ? (1 - k->sigma[d]) * (double)choices[d] + k->sigma[d] : k->sigma[d];
            else
                e -= diff * diff / (2 * k->sigma[d] * k->sigma[d]);
        }
        sum += p * exp(e);
    }
    return sum / (double)(k->n + 1);
}

static struct unit_point draw_near(const struct kernels *k, const struct space *sp, const uint64_t *choices,
                                   struct rng *r)
{
    struct unit_point u = unit_draw(sp, r);
    uint64_t which = rng_below(r, k->n + 1);
    if (which == k->n)
        return u;
    for (size_t d = 0; d < sp->n_dims; d++) {
        double at = k->at[which]->u[d];
        if (choices[d]) {
            u.u[d] = rng_chance(r, k->sigma[d]) ? u.u[d] : at;
            continue;
        }
        double x = at + k->sigma[d] * rng_normal(r);
        for (int i = 0; i < 8 && (x < 0 || x > 1); i++)
            x = at + k->sigma[d] * rng_normal(r);
        u.u[d] = x < 0 ? 0 : x > 1 ? 1 : x;
    }
    return u;
}

/* --- asking --- */

struct model {
    struct kernels good, bad;
    uint64_t choices[SPACE_MAX_DIMS];
};

static int by_wins(const void *a, const void *b, void *ctx)
{
    const struct seen *trials = ctx;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    double x = trials[i].wins, y = trials[k].wins;
    return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

/* The best first. Returns how many of them are good. */
static size_t sort_trials(struct tpe *s)
{
    size_t told = s->n, few;
    if (s->cfg.several) {
        told = several_order(s->cfg.several, s->n, s->order);
    } else {
        for (size_t i = 0; i < s->n; i++)
            s->order[i] = i;
        qsort_r(s->order, s->n, sizeof *s->order, by_wins, s->trials);
    }
    few = (size_t)ceil((s->cfg.several ? front_share : good_share) * (double)s->n);
    few = few < told ? few : told;
    return few < GOOD_MAX ? few : GOOD_MAX;
}

static void learn(struct tpe *s, struct model *m)
{
    size_t n_good = sort_trials(s);
    for (size_t i = 0; i < n_good; i++)
        if (s->trials[s->order[i]].n_steps > 0)
            m->good.at[m->good.n++] = &s->trials[s->order[i]].at;
    size_t rest = s->n - n_good, n_bad = rest < BAD_MAX ? rest : BAD_MAX;
    for (size_t i = 0; i < n_bad; i++)
        m->bad.at[m->bad.n++] = &s->trials[s->order[n_good + (2 * i + 1) * rest / (2 * n_bad)]].at;
    for (size_t d = 0; d < s->space->n_dims; d++)
        m->choices[d] = unit_choices(&s->space->dims[d]);
    shape(&m->good, s->space);
    shape(&m->bad, s->space);
}

static double worth(const struct tpe *s, const struct model *m, const struct unit_point *u)
{
    return log(density(&m->good, s->space, m->choices, u)) - log(density(&m->bad, s->space, m->choices, u));
}

/* Of some points that are left, the best one's place in the list. */
static size_t choose_left(const struct tpe *s, const struct model *m, struct rng *r)
{
    size_t best = (size_t)rng_below(r, s->n_left);
    if (!m)
        return best;
    double most = -INFINITY;
    for (size_t i = 0; i < LEFT_MAX; i++) {
        size_t at = s->n_left <= LEFT_MAX ? i : (size_t)rng_below(r, s->n_left);
        if (at >= s->n_left)
            break;
        struct point p = space_point_at(s->space, s->left[at]);
        struct unit_point u = unit_of(s->space, &p);
        double w = worth(s, m, &u);
        if (w > most) {
            most = w;
            best = at;
        }
    }
    return best;
}

static bool is_used(const struct tpe *s, const struct point *p)
{
    for (size_t i = 0; i < s->n; i++)
        if (memcmp(&s->trials[i].point, p, sizeof *p) == 0)
            return true;
    return false;
}

/* A point that was not proposed yet, of a space that may be endless. */
static struct point choose_open(const struct tpe *s, const struct model *m, struct rng *r)
{
    struct point best = { 0 }, p = { 0 };
    double most = -INFINITY;
    bool found = false;
    for (int i = 0; i < CANDIDATES + TRIES && (i < CANDIDATES || !found); i++) {
        struct unit_point u = m ? draw_near(&m->good, s->space, m->choices, r) : unit_draw(s->space, r);
        p = unit_to_point(s->space, &u);
        if (!space_admits(s->space, &p))
            continue;
        u = unit_of(s->space, &p);
        double w = m ? worth(s, m, &u) : 0;
        if (w <= most || is_used(s, &p))
            continue;
        best = p;
        most = w;
        found = true;
        if (!m)
            break;
    }
    /* So few numbers are between its ends that all were drawn, or so few points are admitted. */
    if (!found && (s->size == UINT64_MAX || s->space->rules)) {
        (void)space_draw_admitted(s->space, r, &best);
        return best;
    }
    for (uint64_t i = 0; !found; i++) {
        best = space_point_at(s->space, rng_shuffled(s->cfg.seed, s->size, i));
        found = !is_used(s, &best);
    }
    return best;
}

static int make_room(struct tpe *s)
{
    struct seen *grown = array_more(s->trials, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->trials = grown;
    size_t *order = array_more(s->order, s->n, &s->cap_order, sizeof *order);
    if (!order)
        return -ENOMEM;
    s->order = order;
    return 0;
}

static void add(struct tpe *s, const struct point *p)
{
    s->trials[s->n] = (struct seen){ .point = *p, .at = unit_of(s->space, p), .best = INFINITY };
    s->n++;
    count_against_all(s, s->n - 1, 1);
}

static bool take_left(struct tpe *s, const struct point *p)
{
    uint64_t index = space_index(s->space, p);
    for (size_t i = 0; i < s->n_left; i++) {
        if (s->left[i] != index)
            continue;
        s->left[i] = s->left[--s->n_left];
        return true;
    }
    return false;
}

static int tpe_ask(void *state, struct proposal *out)
{
    struct tpe *s = state;
    if (s->size != UINT64_MAX && s->n >= s->size)
        return -ENODATA;
    if (make_room(s) < 0)
        return -ENOMEM;
    struct rng r = rng_seeded(rng_mix(s->cfg.seed) ^ s->n);
    struct model m = { 0 };
    bool learnt = s->n >= STARTUP && rng_below(&r, s->cfg.several ? RANDOM_FRONT : RANDOM_ONE_IN) != 0;
    if (learnt)
        learn(s, &m);
    struct point p;
    if (s->n < s->space->n_first) {
        p = s->space->first[s->n];
        (void)(s->left && take_left(s, &p));
    } else if (s->left) {
        size_t at = choose_left(s, learnt ? &m : NULL, &r);
        p = space_point_at(s->space, s->left[at]);
        s->left[at] = s->left[--s->n_left];
    } else {
        p = choose_open(s, learnt ? &m : NULL, &r);
    }
    *out = (struct proposal){ .id = s->n, .point = p };
    add(s, &p);
    return 1;
}

static int tpe_add(void *state, const struct point *p, struct proposal *out)
{
    struct tpe *s = state;
    if (make_room(s) < 0)
        return -ENOMEM;
    if (is_used(s, p) || (s->left && !take_left(s, p)))
        return 0;
    *out = (struct proposal){ .id = s->n, .point = *p };
    add(s, p);
    return 1;
}

static int tpe_init(void *state, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    struct tpe *s = state;
    *s = (struct tpe){ .space = sp, .cfg = *cfg, .size = space_size(sp) };
    for (int64_t at = 1, next = 2; at < cfg->epochs && s->n_steps < STEPS_MAX - 1; next += at, at = next - at)
        s->steps[s->n_steps++] = (int)at;
    s->steps[s->n_steps++] = cfg->epochs;
    if (s->size > LIST_MAX)
        return 0;
    s->left = calloc((size_t)s->size, sizeof *s->left);
    if (!s->left)
        return err_sys(e, -ENOMEM, "search 'tpe'");
    for (; s->n_left < s->size; s->n_left++)
        s->left[s->n_left] = (uint32_t)s->n_left;
    return 0;
}

/* --- its state --- */

static void tpe_save(const void *state, struct buf *out)
{
    const struct tpe *s = state;
    pack_u64(out, s->n);
    for (size_t i = 0; i < s->n; i++) {
        const struct seen *t = &s->trials[i];
        for (size_t d = 0; d < s->space->n_dims; d++)
            pack_f64(out, t->point.x[d]);
        pack_f64(out, t->best);
        pack_u64(out, t->n_steps);
        for (size_t k = 0; k < t->n_steps; k++)
            pack_f64(out, t->steps[k]);
    }
}

static bool read_point(const struct space *sp, struct unpack *from, struct point *out)
{
    *out = (struct point){ 0 };
    for (size_t d = 0; d < sp->n_dims; d++)
        out->x[d] = unpack_f64(from);
    return unit_is_point(sp, out);
}

static int tpe_restore(void *state, struct unpack *from)
{
    struct tpe *s = state;
    for (size_t n = unpack_count(from, 24); n > 0; n--) {
        struct point p;
        if (make_room(s) < 0)
            return -ENOMEM;
        if (!read_point(s->space, from, &p) || (s->left && !take_left(s, &p)))
            return -EPROTO;
        struct seen t = { .point = p, .at = unit_of(s->space, &p) };
        t.best = unpack_f64(from);
        t.n_steps = unpack_u64(from);
        if (isnan(t.best) || t.n_steps > s->n_steps)
            return -EPROTO;
        for (size_t k = 0; k < t.n_steps; k++)
            if (isnan(t.steps[k] = unpack_f64(from)))
                return -EPROTO;
        s->trials[s->n++] = t;
        count_against_all(s, s->n - 1, 1);
    }
    return 0;
}

static void tpe_done(void *state)
{
    struct tpe *s = state;
    free(s->trials);
    free(s->left);
    free(s->order);
}

const struct search_ops search_tpe = {
    .name = "tpe",
    .help = "where good points were more often than bad ones",
    .version = 1,
    .state_size = sizeof(struct tpe),
    .init = tpe_init,
    .ask = tpe_ask,
    .add = tpe_add,
    .tell = tpe_tell,
    .save = tpe_save,
    .restore = tpe_restore,
    .done = tpe_done,
};
