#include "search/prior.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/rng.h"
#include "search/unit_space.h"

enum {
    STEPS_MAX = 24, /* epochs at which trials are compared */
    OWN_MIN = 3,    /* trials of the search's own that a comparison needs */
    TRIES = 32,     /* to draw what the earlier study did not know */
};

static const double doubt = 2;       /* so many points' worth of it: one that fails is no proof */
static const double at_first = 0.75; /* trust, before anything is known */
static const double alike = 0.05;    /* of a dimension's width: two points that near in all say the same */
static const double same_job =
    0.25; /* of how far the median of the trials was from the best: what it comes to may be so far from what it was */

/* What trust gives: one new trial in so many is one of these points. */
static const struct pace {
    double trust;
    uint64_t one_in;
} paces[] = { { 0.5, 2 }, { 0.3, 4 }, { 0.2, 10 } };

/* A trial at some epochs, the steps: small is good. */
struct course {
    uint64_t n; /* so many of the steps it came to */
    double best;
    double at[STEPS_MAX]; /* the best until then */
};

struct known {
    struct point point;
    struct unit_point at;
    char *name;
    uint64_t rank;     /* among those of its study */
    uint64_t until;    /* the epoch at which it was best */
    double tolerance;  /* of what it comes to, for the same job */
    struct course was; /* in its study */
};

struct seen {
    uint64_t known; /* which, from 1; 0: it is none */
    struct course course;
};

struct prior {
    const struct space *space;
    bool maximise;
    uint64_t seed;
    int steps[STEPS_MAX]; /* epochs */
    size_t n_steps;
    struct known points[PRIOR_POINTS];
    size_t n_points, next; /* those before `next` were proposed, or cannot be */
    size_t proposed;
    uint64_t own; /* trials of the search's own since the last of these */
    struct seen *trials;
    size_t n, cap;
};

int prior_new(struct prior **out, const struct space *sp, const struct search_cfg *cfg)
{
    struct prior *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct prior){ .space = sp, .maximise = cfg->maximise, .seed = cfg->seed };
    for (int64_t at = 1, next = 2; at < cfg->epochs && p->n_steps < STEPS_MAX - 1; next += at, at = next - at)
        p->steps[p->n_steps++] = (int)at;
    p->steps[p->n_steps++] = cfg->epochs;
    *out = p;
    return 0;
}

void prior_free(struct prior *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_points; i++)
        free(p->points[i].name);
    free(p->trials);
    free(p);
}

/* --- learning ------------------------------------------------------------------------------------------------------- */

static bool is_alike(const struct space *sp, const struct unit_point *a, const struct unit_point *b, double within)
{
    for (size_t i = 0; i < sp->n_dims; i++)
        if (fabs(a->u[i] - b->u[i]) > within)
            return false;
    return true;
}

static double distance(const struct space *sp, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0;
    for (size_t i = 0; i < sp->n_dims; i++) {
        double d = a->u[i] - b->u[i];
        sum += unit_choices(&sp->dims[i]) > 0 ? d != 0 : d * d;
    }
    return sum;
}

static struct point nearest_listed(const struct space *sp, const struct point *p)
{
    struct unit_point at = unit_of(sp, p);
    uint64_t nearest = 0;
    double least = INFINITY;
    for (uint64_t i = 0; i < sp->n_points; i++) {
        struct point q = space_point_at(sp, i);
        struct unit_point u = unit_of(sp, &q);
        double d = distance(sp, &at, &u);
        nearest = d < least ? i : nearest;
        least = fmin(least, d);
    }
    return space_point_at(sp, nearest);
}

/* Over what was drawn. False: a value is none that it can have. */
static bool put_values(const struct prior *p, const json_t *hyper, struct point *out)
{
    for (size_t i = 0; i < space_n_hyper(p->space); i++) {
        const json_t *value = json_object_get(hyper, p->space->dims[i].name);
        double x = value ? space_dim_find(&p->space->dims[i], value) : out->x[i];
        if (isnan(x))
            return false;
        out->x[i] = x;
    }
    return true;
}

/* What the earlier study did not know is drawn: the same for the same trial. */
static bool to_point(const struct prior *p, const json_t *hyper, size_t number, struct point *out)
{
    struct rng r = rng_seeded(rng_mix(p->seed) ^ rng_mix(number + 1));
    for (int i = 0; i < TRIES; i++) {
        struct point x = space_draw(p->space, &r);
        if (!put_values(p, hyper, &x))
            return false;
        if (p->space->points)
            x = nearest_listed(p->space, &x);
        else if (!space_admits(p->space, &x))
            continue;
        *out = x;
        return true;
    }
    return false;
}

static void note_names(const struct prior *p, const json_t *hyper, struct prior_taken *out)
{
    size_t common = 0;
    const char *missing = "";
    for (size_t i = 0; i < space_n_hyper(p->space); i++) {
        const struct dim *d = &p->space->dims[i];
        bool there = json_object_get(hyper, d->name) != NULL;
        common += there;
        if (!there && !*missing && !(d->kind == DIM_LIST && d->n == 1))
            missing = d->name;
    }
    if (common <= out->common)
        return;
    out->common = common;
    (void)snprintf(out->missing, sizeof out->missing, "%s", missing);
}

static void take_step(const struct prior *p, struct course *c, int epoch, double value)
{
    if (isfinite(value))
        c->best = fmin(c->best, p->maximise ? -value : value);
    while (c->n < p->n_steps && p->steps[c->n] <= epoch)
        c->at[c->n++] = c->best;
}

/* Its best value comes at epoch *out_until. */
static struct course course_of(const struct prior *p, const struct prior_trial *t, uint64_t *out_until)
{
    struct course c = { .best = INFINITY };
    *out_until = 0;
    for (size_t i = 0; i < t->n; i++) {
        double before = c.best;
        take_step(p, &c, (int)i + 1, t->values[i]);
        *out_until = c.best < before ? i + 1 : *out_until;
    }
    return c;
}

static bool is_new(const struct prior *p, const struct known *list, size_t n, const struct unit_point *at)
{
    for (size_t i = 0; i < n; i++)
        if (is_alike(p->space, &list[i].at, at, alike))
            return false;
    return true;
}

static int by_best(const void *a, const void *b)
{
    double x = (*(const struct known *const *)a)->was.best, y = (*(const struct known *const *)b)->was.best;
    return (x > y) - (x < y);
}

/* Behind those of other studies that stand as high in theirs. */
static void insert(struct prior *p, const struct known *k)
{
    size_t at = p->n_points;
    while (at > 0 && p->points[at - 1].rank > k->rank)
        at--;
    if (at == PRIOR_POINTS) {
        free(k->name);
        return;
    }
    if (p->n_points == PRIOR_POINTS)
        free(p->points[--p->n_points].name);
    memmove(&p->points[at + 1], &p->points[at], (p->n_points - at) * sizeof p->points[0]);
    p->points[at] = *k;
    p->n_points++;
}

/* Those that can be used, where they are here, the best first. Returns how many. */
static size_t sift(const struct prior *p, const struct prior_trial *v, size_t n, struct known *all,
                   const struct known **order, struct prior_taken *out)
{
    for (size_t i = 0; i < n; i++) {
        struct known *k = &all[out->usable];
        note_names(p, v[i].hyper, out);
        *k = (struct known){ .name = (char *)(uintptr_t)v[i].name };
        k->was = course_of(p, &v[i], &k->until);
        if (!isfinite(k->was.best))
            continue;
        if (!to_point(p, v[i].hyper, i, &k->point)) {
            out->outside++;
            continue;
        }
        k->at = unit_of(p->space, &k->point);
        order[out->usable++] = k;
    }
    if (out->usable > 1)
        qsort(order, out->usable, sizeof *order, by_best);
    return out->usable;
}

/* Takes the k-th of a study, which has `rank` before it. 1; -ENOMEM. */
static int take(struct prior *p, const struct known *of, size_t rank, double tolerance)
{
    struct known k = *of;
    k.rank = rank;
    k.until = rank == 0 ? of->until : 0; /* the best alone is held */
    k.tolerance = tolerance;
    k.name = strdup(of->name);
    if (!k.name)
        return -ENOMEM;
    insert(p, &k);
    return 1;
}

static int learn_sorted(struct prior *p, const struct known *const *order, size_t n, struct prior_taken *out)
{
    double tolerance = n > 0 ? same_job * (order[n / 2]->was.best - order[0]->was.best) : 0;
    for (size_t i = 0; i < n && out->points < PRIOR_POINTS; i++) {
        if (!is_new(p, p->points, p->n_points, &order[i]->at))
            continue;
        if (take(p, order[i], out->points, tolerance) < 0)
            return -ENOMEM;
        out->points++;
    }
    return 0;
}

int prior_learn(struct prior *p, const struct prior_trial *trials, size_t n, struct prior_taken *out)
{
    AUTO_FREE struct known *all = calloc(n + 1, sizeof *all);
    AUTO_FREE const struct known **order = calloc(n + 1, sizeof(struct known *));
    *out = (struct prior_taken){ 0 };
    if (!all || !order)
        return -ENOMEM;
    size_t usable = sift(p, trials, n, all, order, out);
    return out->common > 0 ? learn_sorted(p, order, usable, out) : 0;
}

/* --- proposing ------------------------------------------------------------------------------------------------------ */

static size_t common_step(const struct course *a, const struct course *b)
{
    return (size_t)(a->n < b->n ? a->n : b->n);
}

/* The share of the search's own trials that it beats at the last epoch that both came to, from -1 to 1; NAN: there are too few. */
static double standing(const struct prior *p, const struct seen *of)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct seen *own = &p->trials[i];
        size_t at = common_step(&of->course, &own->course);
        if (own->known || at == 0)
            continue;
        double x = of->course.at[at - 1], y = own->course.at[at - 1];
        sum += x < y ? 1 : x > y ? -1 : 0;
        n++;
    }
    return n < OWN_MIN ? (double)NAN : sum / (double)n;
}

static double mean_standing(const struct prior *p, double sum, double n)
{
    for (size_t i = 0; i < p->n; i++) {
        double s = p->trials[i].known ? standing(p, &p->trials[i]) : (double)NAN;
        sum += isnan(s) ? 0 : s;
        n += !isnan(s);
    }
    double mean = n > 0 ? sum / n : (double)NAN;
    return mean < 0 ? 0 : mean;
}

double prior_trust(const struct prior *p)
{
    return mean_standing(p, 0, 0);
}

size_t prior_due(const struct prior *p)
{
    if (p->next >= p->n_points || p->n < p->space->n_first)
        return PRIOR_NONE;
    if (p->proposed == 0)
        return p->next;
    double trust = mean_standing(p, at_first * doubt, doubt);
    for (size_t i = 0; i < ARRAY_LEN(paces); i++)
        if (trust >= paces[i].trust)
            return p->own + 1 >= paces[i].one_in ? p->next : PRIOR_NONE;
    return PRIOR_NONE;
}

size_t prior_after(const struct prior *p, size_t at)
{
    return at + 1 < p->n_points ? at + 1 : PRIOR_NONE;
}

const struct point *prior_point(const struct prior *p, size_t at)
{
    return &p->points[at].point;
}

const char *prior_name(const struct prior *p, size_t at)
{
    return p->points[at].name;
}

int prior_make_room(struct prior *p)
{
    struct seen *grown = array_more(p->trials, p->n, &p->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    p->trials = grown;
    return 0;
}

void prior_asked(struct prior *p, size_t at)
{
    bool known = at != PRIOR_NONE;
    p->trials[p->n++] = (struct seen){ .known = known ? at + 1 : 0, .course.best = INFINITY };
    p->own = known ? 0 : p->own + 1;
    p->proposed += known;
    if (known)
        p->next = at + 1;
}

/* It is on the way to what it was. */
static bool is_held(const struct prior *p, const struct seen *t, const struct told *told)
{
    if (told->kind != TOLD_EPOCH || t->known == 0 || t->course.n == 0)
        return false;
    const struct known *k = &p->points[t->known - 1];
    size_t step = (size_t)t->course.n - 1;
    return (uint64_t)told->epoch < k->until && t->course.n <= k->was.n &&
           fabs(t->course.at[step] - k->was.at[step]) <= k->tolerance;
}

bool prior_tell(struct prior *p, const struct told *t)
{
    if (t->id >= p->n)
        return false;
    struct course *c = &p->trials[t->id].course;
    bool failed = t->kind == TOLD_FAILED || t->kind == TOLD_INFEASIBLE;
    take_step(p, c, t->epoch, failed ? (double)NAN : t->value);
    if (failed && c->n == 0)
        c->n = 1;
    for (uint64_t i = 0; failed && i < c->n; i++)
        c->at[i] = INFINITY; /* it is worth nothing, whatever it was */
    return is_held(p, &p->trials[t->id], t);
}

size_t prior_proposed(const struct prior *p)
{
    return p->proposed;
}

size_t prior_points(const struct prior *p)
{
    return p->n_points;
}

/* --- its state ------------------------------------------------------------------------------------------------------ */

static void save_course(const struct course *c, struct buf *out)
{
    pack_f64(out, c->best);
    pack_u64(out, c->n);
    for (size_t i = 0; i < c->n; i++)
        pack_f64(out, c->at[i]);
}

void prior_save(const struct prior *p, struct buf *out)
{
    pack_u64(out, p->n_points);
    for (size_t i = 0; i < p->n_points; i++) {
        const struct known *k = &p->points[i];
        for (size_t d = 0; d < p->space->n_dims; d++)
            pack_f64(out, k->point.x[d]);
        pack_bytes(out, k->name, strlen(k->name));
        pack_u64(out, k->until);
        pack_f64(out, k->tolerance);
        save_course(&k->was, out);
    }
    pack_u64(out, p->next);
    pack_u64(out, p->proposed);
    pack_u64(out, p->own);
    pack_u64(out, p->n);
    for (size_t i = 0; i < p->n; i++) {
        pack_u64(out, p->trials[i].known);
        save_course(&p->trials[i].course, out);
    }
}

static bool is_point(const struct space *sp, const struct point *p)
{
    if (!unit_is_point(sp, p))
        return false;
    struct point same = sp->points ? nearest_listed(sp, p) : *p;
    return space_admits(sp, &same) && memcmp(&same, p, sizeof same) == 0;
}

static bool read_course(const struct prior *p, struct unpack *from, struct course *out)
{
    out->best = unpack_f64(from);
    out->n = unpack_u64(from);
    if (from->bad || isnan(out->best) || out->n > p->n_steps)
        return false;
    for (size_t i = 0; i < out->n; i++)
        if (isnan(out->at[i] = unpack_f64(from)))
            return false;
    return true;
}

static int restore_point(struct prior *p, struct unpack *from)
{
    struct known k = { .rank = p->n_points };
    for (size_t d = 0; d < p->space->n_dims; d++)
        k.point.x[d] = unpack_f64(from);
    struct unpack name = unpack_bytes(from);
    k.until = unpack_u64(from);
    k.tolerance = unpack_f64(from);
    if (!read_course(p, from, &k.was) || isnan(k.tolerance) || !is_point(p->space, &k.point))
        return -EPROTO;
    k.at = unit_of(p->space, &k.point);
    size_t len = (size_t)(name.end - name.at);
    if (memchr(name.at, '\0', len))
        return -EPROTO;
    k.name = strndup((const char *)name.at, len);
    if (!k.name)
        return -ENOMEM;
    p->points[p->n_points++] = k;
    return 0;
}

static int restore_trial(struct prior *p, struct unpack *from)
{
    struct seen s = { .known = unpack_u64(from) };
    if (s.known > p->n_points || !read_course(p, from, &s.course))
        return -EPROTO;
    if (prior_make_room(p) < 0)
        return -ENOMEM;
    p->trials[p->n++] = s;
    return 0;
}

int prior_restore(struct prior *p, struct unpack *from)
{
    int rc = 0;
    size_t points = unpack_count(from, sizeof(uint64_t));
    if (points > PRIOR_POINTS)
        return -EPROTO;
    for (; rc == 0 && points > 0; points--)
        rc = restore_point(p, from);
    if (rc < 0)
        return rc;
    p->next = (size_t)unpack_u64(from);
    p->proposed = (size_t)unpack_u64(from);
    p->own = unpack_u64(from);
    for (size_t n = unpack_count(from, 3 * sizeof(uint64_t)); rc == 0 && n > 0; n--)
        rc = restore_trial(p, from);
    return rc == 0 && (p->next > p->n_points || p->proposed > p->next) ? -EPROTO : rc;
}
