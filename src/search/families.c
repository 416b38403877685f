/* Each member is a shape h(t), which is 0 at the first epoch and 1 at the last one, and a kind of noise: values are a + b h(t) + a random walk in
 * the logarithm of the epoch + white noise, with normal a and b. So its fit is linear, its evidence and its forecast are exact, and there is
 * nothing that could fail to converge. The members' forecasts are mixed by their evidence. */
#include "search/families.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

enum shape_kind { POWER, LATE_POWER, EXPONENTIAL, FALL, HILL, LOG, LINE, FLAT };

static const struct {
    enum shape_kind kind;
    double a, b;
    double weight;
} shapes[] = {
    { POWER, 0.3, 0, .7 },
    { POWER, 0.6, 0, .7 },
    { POWER, 1, 0, .7 },
    { POWER, 1.5, 0, .7 },
    { POWER, 2.5, 0, .7 },
    { LATE_POWER, .5, .1, .7 },
    { LATE_POWER, 1, .1, .7 },
    { LATE_POWER, 2, .1, .7 },
    { LATE_POWER, 2, .4, .7 },
    { EXPONENTIAL, 1, 0, .6 },
    { EXPONENTIAL, 2.5, 0, .6 },
    { EXPONENTIAL, 5, 0, .6 },
    { EXPONENTIAL, 7.5, 0, .6 },
    { EXPONENTIAL, 12, 0, .6 },
    { EXPONENTIAL, 20, 0, .6 },
    { EXPONENTIAL, 40, 0, .6 },
    { FALL, 0.1, 0, .5 },
    { FALL, 0.3, 0, .5 },
    { FALL, 0.7, 0, .5 },
    { HILL, 0.1, 0, .5 },
    { HILL, 0.3, 0, .5 },
    { HILL, 0.6, 0, .5 },
    { LOG, 0, 0, 2 },
    { LINE, 0, 0, 1 },
    { FLAT, 0, 0, 4 },
};

static const double whites[] = { 0.002, 0.01, 0.05 }, walks[] = { 0.01, 0.05, 0.25 };

enum { N_SHAPES = ARRAY_LEN(shapes), N_NOISES = ARRAY_LEN(whites) * ARRAY_LEN(walks), N_MEMBERS = N_SHAPES * N_NOISES };

/* What is thought of a curve before it was seen: it begins near 0 and ends about half-way to the best that is known. */
#define BEGIN_SD 1.0
#define GAIN_MEAN (-0.4)
#define GAIN_SD 0.6

static double raw_shape(size_t s, double t, double epochs)
{
    double a = shapes[s].a, b = shapes[s].b * epochs, at = (t - 1) / epochs;
    switch (shapes[s].kind) {
    case POWER: return 1 - pow(t, -a);
    case LATE_POWER: return 1 - pow((t + b) / (1 + b), -a);
    case EXPONENTIAL: return 1 - exp(-a * at);
    case FALL: return 1 - exp(-(at / a) * (at / a));
    case HILL: return 1 - 1 / (1 + pow(at / a, 4));
    case LOG: return log(t);
    case LINE: return at;
    case FLAT: break;
    }
    return 0;
}

/* A shape under a kind of noise: what is the same for every curve that was seen at these epochs. `h` is whitened. */
struct member {
    double h[FAMILIES_SEEN_MAX];
    double aa, ah, hh, det, xa, xh;
    double bias, sd; /* of the evidence; of the forecast */
};

/* The noise of the epochs that were seen, as a lower triangle, and what no shape changes about it; vectors are whitened. */
struct noise {
    double l[FAMILIES_SEEN_MAX][FAMILIES_SEEN_MAX];
    double one[FAMILIES_SEEN_MAX], ahead[FAMILIES_SEEN_MAX];
    double log_det, ahead_var;
    struct member members[N_SHAPES];
};

struct families {
    int n;
    struct noise noises[N_NOISES];
};

static double dot(const double *a, const double *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static void whiten(const struct noise *z, double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (x[i] - dot(z->l[i], x, i)) / z->l[i][i];
}

static void noise_set(struct noise *z, const struct seen *seen, double white, double walk)
{
    z->log_det = 0;
    for (int i = 0; i < seen->n; i++) {
        for (int k = 0; k <= i; k++) {
            double c = walk * log(seen->epoch[k]) + (i == k ? white : 0) - dot(z->l[i], z->l[k], k);
            z->l[i][k] = i == k ? sqrt(c) : c / z->l[k][k];
        }
        z->log_det += 2 * log(z->l[i][i]);
        z->one[i] = 1;
        z->ahead[i] = walk * log(fmin(seen->epoch[i], seen->ahead));
    }
    whiten(z, z->one, seen->n);
    whiten(z, z->ahead, seen->n);
    z->ahead_var = walk * log(seen->ahead) + white - dot(z->ahead, z->ahead, seen->n);
}

/* A line a + b h with normal a, b through the values: what of its fit does not depend on them. */
static void member_set(struct member *m, const struct noise *z, const struct seen *seen, size_t shape)
{
    double whole = raw_shape(shape, seen->epochs, seen->epochs);
    for (int i = 0; i < seen->n; i++)
        m->h[i] = whole > 0 ? raw_shape(shape, seen->epoch[i], seen->epochs) / whole : 0;
    double ahead = whole > 0 ? raw_shape(shape, seen->ahead, seen->epochs) / whole : 0;
    whiten(z, m->h, seen->n);
    m->aa = dot(z->one, z->one, seen->n) + 1 / (BEGIN_SD * BEGIN_SD);
    m->ah = dot(z->one, m->h, seen->n);
    m->hh = dot(m->h, m->h, seen->n) + 1 / (GAIN_SD * GAIN_SD);
    m->det = m->aa * m->hh - m->ah * m->ah;
    m->xa = 1 - dot(z->ahead, z->one, seen->n);
    m->xh = ahead - dot(z->ahead, m->h, seen->n);
    m->bias = -0.5 * (z->log_det + log(m->det)) + log(shapes[shape].weight);
    double line = (m->hh * m->xa * m->xa - 2 * m->ah * m->xa * m->xh + m->aa * m->xh * m->xh) / m->det;
    m->sd = sqrt(fmax(z->ahead_var, 0) + line);
}

int families_new(struct families **out, const struct seen *seen)
{
    struct families *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->n = seen->n;
    for (size_t i = 0; i < N_NOISES; i++) {
        double white = whites[i / ARRAY_LEN(walks)], walk = walks[i % ARRAY_LEN(walks)];
        noise_set(&f->noises[i], seen, white * white, walk * walk);
        for (size_t s = 0; s < N_SHAPES; s++)
            member_set(&f->noises[i].members[s], &f->noises[i], seen, s);
    }
    *out = f;
    return 0;
}

void families_free(struct families *f)
{
    free(f);
}

/* What a member says of a curve. */
struct said {
    double evidence, mean, sd; /* a logarithm, then a weight */
};

/* Values, whitened, and their products with what no shape changes. */
struct values {
    double y[FAMILIES_SEEN_MAX], oy, yy, fy;
};

/* What of h explains r = y - GAIN_MEAN h, by the a and b that fit it best. */
static struct said member_say(const struct member *m, const struct values *v, int n)
{
    double hy = dot(m->h, v->y, n), g = GAIN_MEAN, hh = m->hh - 1 / (GAIN_SD * GAIN_SD);
    double ar = v->oy - g * m->ah, hr = hy - g * hh, rr = v->yy - 2 * g * hy + g * g * hh;
    double a = (m->hh * ar - m->ah * hr) / m->det, b = (m->aa * hr - m->ah * ar) / m->det;
    return (struct said){ m->bias - 0.5 * (rr - a * ar - b * hr), v->fy + m->xa * a + m->xh * (g + b), m->sd };
}

/* The evidence becomes weights of sum 1; what weighs nothing goes. */
static size_t weigh(struct said *m, size_t n)
{
    enum { SHARE_OF_MOST = 1000 };
    double most = -INFINITY, sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, m[i].evidence);
    for (size_t i = 0; i < n; i++) {
        double w = exp(m[i].evidence - most);
        if (w * SHARE_OF_MOST < 1)
            continue;
        m[kept] = m[i];
        m[kept++].evidence = w;
        sum += w;
    }
    for (size_t i = 0; i < kept; i++)
        m[i].evidence /= sum;
    return kept;
}

enum { HALVINGS = 18 };

static double quantile(const struct said *m, size_t n, double p)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, m[i].mean - 4 * m[i].sd);
        high = fmax(high, m[i].mean + 4 * m[i].sd);
    }
    for (int step = 0; step < HALVINGS; step++) {
        double middle = (low + high) / 2, below = 0;
        for (size_t i = 0; i < n; i++)
            below += m[i].evidence * 0.5 * erfc((m[i].mean - middle) / m[i].sd * M_SQRT1_2);
        if (below < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct families_told families_foretell(const struct families *f, const double *values)
{
    struct said said[N_MEMBERS];
    size_t n = 0;
    for (size_t i = 0; i < N_NOISES; i++) {
        const struct noise *z = &f->noises[i];
        struct values v;
        memcpy(v.y, values, (size_t)f->n * sizeof *v.y);
        whiten(z, v.y, f->n);
        v.oy = dot(z->one, v.y, f->n);
        v.yy = dot(v.y, v.y, f->n);
        v.fy = dot(z->ahead, v.y, f->n);
        for (size_t s = 0; s < N_SHAPES; s++)
            said[n++] = member_say(&z->members[s], &v, f->n);
    }
    n = weigh(said, n);
    return (struct families_told){ quantile(said, n, 0.5), quantile(said, n, 0.1), quantile(said, n, 0.9) };
}
