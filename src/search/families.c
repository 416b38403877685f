/* Each member is a shape h(t), which is 0 at the first epoch and 1 at the last one, and a kind of noise: values are a + b h(t) + a random walk in
 * the logarithm of the epoch + white noise, with normal a and b. So its fit is linear, its evidence and its forecast are exact, and there is
 * nothing that could fail to converge. The members' forecasts are mixed by their evidence. */
#include "search/families.h"

#include <math.h>
#include <stddef.h>
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

/* Of one shape: at the epochs that were seen, and behind them at the one ahead. */
struct shape {
    double h[FAMILIES_SEEN_MAX + 1];
};

static void shape_set(struct shape *out, size_t s, const struct seen *seen, double epochs, double epoch)
{
    double whole = raw_shape(s, epochs, epochs);
    for (int i = 0; i <= seen->n; i++) {
        double t = i < seen->n ? seen->epoch[i] : epoch;
        out->h[i] = whole > 0 ? raw_shape(s, t, epochs) / whole : 0;
    }
}

/* The noise of the epochs that were seen, as a lower triangle, and what no shape changes about it. */
struct noise {
    int n;
    double white, walk; /* variances */
    double l[FAMILIES_SEEN_MAX][FAMILIES_SEEN_MAX];
    double log_det;
    double one[FAMILIES_SEEN_MAX], y[FAMILIES_SEEN_MAX], ahead[FAMILIES_SEEN_MAX]; /* whitened */
    double ahead_var;
};

static void whiten(const struct noise *z, double *x)
{
    for (int i = 0; i < z->n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= z->l[i][k] * x[k];
        x[i] /= z->l[i][i];
    }
}

static double dot(const double *a, const double *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static void noise_factor(struct noise *z, const struct seen *seen)
{
    z->log_det = 0;
    for (int i = 0; i < z->n; i++) {
        for (int k = 0; k <= i; k++) {
            double c = z->walk * log(seen->epoch[k]) + (i == k ? z->white : 0);
            c -= dot(z->l[i], z->l[k], k);
            z->l[i][k] = i == k ? sqrt(c) : c / z->l[k][k];
        }
        z->log_det += 2 * log(z->l[i][i]);
    }
}

static void noise_set(struct noise *z, const struct seen *seen, double white, double walk, double epoch)
{
    z->n = seen->n;
    z->white = white * white;
    z->walk = walk * walk;
    noise_factor(z, seen);
    for (int i = 0; i < z->n; i++) {
        z->one[i] = 1;
        z->y[i] = seen->value[i];
        z->ahead[i] = z->walk * log(fmin(seen->epoch[i], epoch));
    }
    whiten(z, z->one);
    whiten(z, z->y);
    whiten(z, z->ahead);
    z->ahead_var = z->walk * log(epoch) + z->white - dot(z->ahead, z->ahead, z->n);
}

struct member {
    double evidence, mean, sd; /* a logarithm, then a weight */
};

/* A line a + b h with normal a, b through the whitened values: its evidence, and where it is at the epoch ahead. */
static struct member member_fit(const struct noise *z, const struct shape *shape, double weight)
{
    double h[FAMILIES_SEEN_MAX], r[FAMILIES_SEEN_MAX], h_ahead = shape->h[z->n];
    memcpy(h, shape->h, sizeof h);
    whiten(z, h);
    for (int i = 0; i < z->n; i++)
        r[i] = z->y[i] - GAIN_MEAN * h[i];
    double aa = dot(z->one, z->one, z->n) + 1 / (BEGIN_SD * BEGIN_SD), ah = dot(z->one, h, z->n);
    double hh = dot(h, h, z->n) + 1 / (GAIN_SD * GAIN_SD), det = aa * hh - ah * ah;
    double ar = dot(z->one, r, z->n), hr = dot(h, r, z->n);
    double a = (hh * ar - ah * hr) / det, b = (aa * hr - ah * ar) / det;
    double left = dot(r, r, z->n) - a * ar - b * hr;
    double xa = 1 - dot(z->ahead, z->one, z->n), xh = h_ahead - dot(z->ahead, h, z->n);
    struct member m = { .evidence = -0.5 * (left + z->log_det + log(det)) + log(weight) };
    m.mean = GAIN_MEAN * h_ahead + dot(z->ahead, r, z->n) + xa * a + xh * b;
    m.sd = sqrt(fmax(z->ahead_var, 0) + (hh * xa * xa - 2 * ah * xa * xh + aa * xh * xh) / det);
    return m;
}

/* The evidence becomes weights of sum 1; what weighs nothing goes. */
static size_t weigh(struct member *m, size_t n)
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

static double quantile(const struct member *m, size_t n, double p)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, m[i].mean - 4 * m[i].sd);
        high = fmax(high, m[i].mean + 4 * m[i].sd);
    }
    for (int step = 0; step < 30; step++) {
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

struct families_told families_foretell(const struct seen *seen, int epochs, double epoch)
{
    struct member members[N_MEMBERS];
    struct shape h[N_SHAPES];
    struct noise z;
    size_t n = 0;
    for (size_t s = 0; s < N_SHAPES; s++)
        shape_set(&h[s], s, seen, epochs, epoch);
    for (size_t i = 0; i < ARRAY_LEN(whites); i++)
        for (size_t k = 0; k < ARRAY_LEN(walks); k++) {
            noise_set(&z, seen, whites[i], walks[k], epoch);
            for (size_t s = 0; s < N_SHAPES; s++)
                members[n++] = member_fit(&z, &h[s], shapes[s].weight);
        }
    n = weigh(members, n);
    return (struct families_told){ quantile(members, n, 0.5), quantile(members, n, 0.1), quantile(members, n, 0.9) };
}
