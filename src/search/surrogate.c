#include "search/surrogate.h"

#include <math.h>

static const double sqrt5 = 2.23606797749979;

enum { FIT_ROWS = 56, ROUNDS = 6, TRIES = 90 };

/* What such numbers usually are: medians, and standard deviations of the logarithm. */
static const double usual_length = 0.7, length_sd = 0.8, usual_noise = 0.1, noise_sd = 1;

static double alike(const struct surrogate *s, const struct unit_point *a, const struct unit_point *b)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_dims; i++) {
        double d = s->named[i] ? (a->u[i] != b->u[i]) * 0.7 : a->u[i] - b->u[i];
        d /= s->length[i];
        sum += d * d;
    }
    double r = sqrt5 * sqrt(sum);
    return (1 + r + r * r / 3) * exp(-r);
}

static double log_usual(double x, double median, double sd)
{
    double z = log(x / median) / sd;
    return -0.5 * z * z;
}

/* The factor, and what is left of the values; returns the log of their density, but for constants. */
static double factor(struct surrogate *s, const double *normed, const size_t *rows, size_t n)
{
    double score = 0;
    for (size_t i = 0; i < n; i++) {
        double *row = s->low[i], left = normed[rows[i]];
        for (size_t k = 0; k <= i; k++) {
            double c = alike(s, s->at[rows[i]], s->at[rows[k]]) + (i == k ? s->noise * s->noise + 1e-8 : 0);
            for (size_t j = 0; j < k; j++)
                c -= row[j] * s->low[k][j];
            row[k] = i == k ? sqrt(fmax(c, 1e-12)) : c / s->low[k][k];
        }
        for (size_t k = 0; k < i; k++)
            left -= row[k] * s->solved[k];
        s->solved[i] = left / row[i];
        score -= 0.5 * s->solved[i] * s->solved[i] + log(row[i]);
    }
    return score;
}

static double posterior(struct surrogate *s, const double *normed, const size_t *rows, size_t n)
{
    double score = factor(s, normed, rows, n) + log_usual(s->noise, usual_noise, noise_sd);
    for (size_t i = 0; i < s->n_dims; i++)
        score += log_usual(s->length[i], usual_length, length_sd);
    return score;
}

static bool try_stride(struct surrogate *s, double *number, double stride, double *best, const double *normed,
                       const size_t *rows, size_t n)
{
    double before = *number;
    *number = fmin(30, fmax(1e-2, before * exp(stride)));
    double score = posterior(s, normed, rows, n);
    if (score > *best) {
        *best = score;
        return true;
    }
    *number = before;
    return false;
}

/* A coordinate search over logarithms that ends by a count, so that it costs the same everywhere. */
static void fit_numbers(struct surrogate *s, const double *normed, const size_t *rows, size_t n)
{
    double stride[SPACE_MAX_DIMS + 1], best = posterior(s, normed, rows, n);
    int tries = 0;
    for (size_t i = 0; i <= s->n_dims; i++)
        stride[i] = 0.7;
    for (int round = 0; round < ROUNDS && tries < TRIES; round++)
        for (size_t i = 0; i <= s->n_dims; i++, tries += 2) {
            double *number = i < s->n_dims ? &s->length[i] : &s->noise;
            if (try_stride(s, number, stride[i], &best, normed, rows, n))
                stride[i] *= 1.4;
            else if (try_stride(s, number, -stride[i], &best, normed, rows, n))
                stride[i] *= -1.4;
            else
                stride[i] *= 0.4;
        }
}

static void norm(struct surrogate *s, const double *values, double *out)
{
    double sum = 0, squares = 0, n = (double)s->n;
    for (size_t i = 0; i < s->n; i++)
        sum += values[i];
    s->mean = sum / n;
    for (size_t i = 0; i < s->n; i++)
        squares += (values[i] - s->mean) * (values[i] - s->mean);
    s->sd = squares > 0 ? sqrt(squares / n) : 1;
    for (size_t i = 0; i < s->n; i++)
        out[i] = (values[i] - s->mean) / s->sd;
}

void surrogate_fit(struct surrogate *s, const struct space *sp, const struct unit_point *const *at,
                   const double *values, size_t n)
{
    double normed[SURROGATE_ROWS_MAX];
    size_t some[SURROGATE_ROWS_MAX], all[SURROGATE_ROWS_MAX], n_some = n < FIT_ROWS ? n : FIT_ROWS;
    s->n_dims = sp->n_dims;
    s->n = n;
    s->noise = usual_noise;
    for (size_t i = 0; i < sp->n_dims; i++) {
        s->named[i] = unit_choices(&sp->dims[i]) > 0;
        s->length[i] = usual_length;
    }
    for (size_t i = 0; i < n; i++) {
        s->at[i] = at[i];
        all[i] = i;
    }
    for (size_t i = 0; i < n_some; i++)
        some[i] = i * n / n_some;
    norm(s, values, normed);
    fit_numbers(s, normed, some, n_some);
    (void)factor(s, normed, all, n);
}

void surrogate_foretell(const struct surrogate *s, const struct unit_point *at, double *out_mean, double *out_sd)
{
    double v[SURROGATE_ROWS_MAX], mean = 0, var = 1;
    for (size_t i = 0; i < s->n; i++) {
        double c = alike(s, at, s->at[i]);
        for (size_t k = 0; k < i; k++)
            c -= s->low[i][k] * v[k];
        v[i] = c / s->low[i][i];
        mean += v[i] * s->solved[i];
        var -= v[i] * v[i];
    }
    *out_mean = s->mean + s->sd * mean;
    *out_sd = s->sd * sqrt(fmax(var, 1e-10));
}
