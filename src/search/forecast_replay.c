#include "search/forecast_replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/forecast.h"

enum { ANEW_EVERY = 8 }; /* curves, until what finished meanwhile is learnt from */

struct replayed {
    int epochs;
    bool maximise;
    double scale, bound;
    struct forecast_curve *curves; /* whole ones, in the order in which they come */
    double *values;
    struct unit_point *places;
    size_t n;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bounded(const struct replayed *r, double x)
{
    return r->maximise ? fmax(x, r->bound) : fmin(x, r->bound);
}

/* The worst value that counts. `room` for a number of each curve. */
static double bound_of(const struct curves *c, double scale, double *room)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        room[n++] = curves_value(c, &c->v[i], 1);
    qsort(room, n, sizeof *room, by_value);
    return room[n / 2] + (c->maximise ? -3 : 3) * scale;
}

static void take_curves(struct replayed *r, const struct curves *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t at = (size_t)rng_shuffled(1, c->n, i);
        const struct curve *from = &c->v[at];
        if (from->n < c->epochs)
            continue;
        double *to = r->values + r->n * (size_t)c->epochs;
        for (int k = 0; k < c->epochs; k++)
            to[k] = bounded(r, curves_value(c, from, k + 1));
        struct point p = space_point_at(&c->space, at);
        r->places[r->n] = unit_of(&c->space, &p);
        r->curves[r->n] = (struct forecast_curve){ to, c->epochs, &r->places[r->n] };
        r->n++;
    }
}

static int prepare(struct replayed *r, const struct curves *c, struct err *e)
{
    struct curves_scale scale;
    int rc = curves_scale(c, &scale);
    r->values = calloc(c->n * (size_t)c->epochs + c->n, sizeof *r->values);
    r->curves = calloc(c->n, sizeof *r->curves);
    r->places = calloc(c->n, sizeof *r->places);
    if (rc < 0 || !r->values || !r->curves || !r->places)
        return err_sys(e, -ENOMEM, "replay of forecasts");
    r->scale = fabs(scale.median - scale.best);
    if (!(r->scale > 0))
        return err_set(e, -EINVAL, "the curves all come to the same: there is nothing to foretell");
    r->bound = bound_of(c, r->scale, r->values);
    take_curves(r, c);
    return r->n > 0 ? 0 : err_set(e, -EINVAL, "none of %zu curves has all of its %d epochs", c->n, c->epochs);
}

static void count(const struct replayed *r, struct forecast_quality *q, const struct foretold *t, double last,
                  double end)
{
    double share = 1 / (double)r->n, rounding = 1e-9 * r->scale;
    q->coverage += share * (end >= t->low - rounding && end <= t->high + rounding);
    q->width += share * (bounded(r, t->high) - bounded(r, t->low)) / r->scale;
    q->error += share * fabs(bounded(r, t->median) - end) / r->scale;
    q->last_value_error += share * fabs(last - end) / r->scale;
}

static int foretell_all(const struct replayed *r, const struct curves *c, int known, struct forecast_quality *q)
{
    struct forecast *f = NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n; i++) {
        struct forecast_curve begun = r->curves[i];
        struct foretold t;
        if (i % ANEW_EVERY == 0) {
            forecast_free(f);
            f = NULL;
            rc = forecast_new(&f, c->epochs, c->maximise, c->space.n_dims, r->curves, i);
        }
        begun.n = known;
        rc = rc == 0 ? forecast_at(f, &begun, c->epochs, &t) : rc;
        if (rc == 0)
            count(r, q, &t, begun.values[known - 1], begun.values[c->epochs - 1]);
    }
    forecast_free(f);
    return rc;
}

int forecast_replay(const struct curves *c, double share, struct forecast_quality *out, struct err *e)
{
    struct replayed r = { .epochs = c->epochs, .maximise = c->maximise };
    struct forecast_quality q = { 0 };
    int known = (int)fmax(1, floor(share * c->epochs + 0.5));
    int rc = prepare(&r, c, e);
    if (rc == 0) {
        q.n = r.n;
        rc = foretell_all(&r, c, known, &q);
        rc = rc < 0 ? err_sys(e, rc, "replay of forecasts") : 0;
    }
    if (rc == 0)
        *out = q;
    free(r.values);
    free(r.curves);
    free(r.places);
    return rc;
}
