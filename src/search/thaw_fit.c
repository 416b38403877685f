/* Hyperparameters: a coordinate search over their logarithms from where they were, for the most likely ones given the rows and what such things
 * usually are. It ends by a count, not by a tolerance alone, so that it costs the same everywhere. */
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "search/thaw_gp.h"

static const double sqrt3 = 1.7320508075688772, sqrt5 = 2.23606797749979;

enum { TRIES_MAX = 160, ROUNDS_MAX = 10 };

struct usual {
    double median, sd; /* of the logarithm */
};
static const struct usual lengths = { 1, 0.8 }, shared = { 1, 0.5 }, own = { 0.4, 0.6 };
static const struct usual shared_time = { 1.5, 0.6 }, own_time = { 2, 0.7 }, noise = { 0.1, 0.8 };

double thaw_alike(const struct places *pl, const struct thaw_hyper *h, const struct unit_point *a,
                  const struct unit_point *b)
{
    double sum = 0;
    for (size_t i = 0; i < pl->n; i++) {
        double d = pl->named[i] ? (a->u[i] != b->u[i]) * 0.7 : a->u[i] - b->u[i];
        d /= h->length[i];
        sum += d * d;
    }
    double r = sqrt5 * sqrt(sum);
    return (1 + r + r * r / 3) * exp(-r);
}

void thaw_steps_set(struct thaw_steps *out, const struct thaw_hyper *h, const struct thaw_times *times)
{
    for (int a = 0; a < times->n; a++)
        for (int b = 0; b < times->n; b++) {
            double d = fabs(times->log_epoch[a] - times->log_epoch[b]), r = sqrt3 * d / h->shared_time;
            out->shared[a][b] = h->shared * h->shared * (1 + r) * exp(-r);
            out->own[a][b] = h->own * h->own * exp(-d / h->own_time);
        }
}

struct thaw_hyper thaw_hyper_usual(void)
{
    struct thaw_hyper h = { .shared = shared.median, .own = own.median, .noise = noise.median };
    h.shared_time = shared_time.median;
    h.own_time = own_time.median;
    for (size_t i = 0; i < SPACE_MAX_DIMS; i++)
        h.length[i] = lengths.median;
    return h;
}

static double log_usual(double x, const struct usual *u)
{
    double z = log(x / u->median) / u->sd;
    return -0.5 * z * z;
}

static double log_prior(const struct thaw_hyper *h, size_t n_dims)
{
    double s = log_usual(h->shared, &shared) + log_usual(h->own, &own) + log_usual(h->noise, &noise);
    s += log_usual(h->shared_time, &shared_time) + log_usual(h->own_time, &own_time);
    for (size_t i = 0; i < n_dims; i++)
        s += log_usual(h->length[i], &lengths);
    return s;
}

/* Less one value of the i-th of n rows, in a lower triangle: the next number of its row, or its diagonal squared. */
static double left_over(const double *row, const double *of, size_t n, double x)
{
    for (size_t k = 0; k < n; k++)
        x -= row[k] * of[k];
    return x;
}

static double log_posterior(const struct thaw_fit *f, const struct thaw_hyper *h)
{
    struct thaw_steps steps;
    double z[THAW_FIT_MAX], s = log_prior(h, f->dims->n);
    thaw_steps_set(&steps, h, f->times);
    for (size_t i = 0; i < f->n; i++) {
        double *row = f->work + i * THAW_FIT_MAX;
        const struct thaw_row *a = &f->rows[i];
        for (size_t k = 0; k <= i; k++) {
            const struct thaw_row *b = &f->rows[k];
            double c = steps.shared[a->step][b->step] * thaw_alike(f->dims, h, f->at[i], f->at[k]);
            c += a->trial == b->trial ? steps.own[a->step][b->step] : 0;
            c += i == k ? h->noise * h->noise + 1e-8 : 0;
            const double *of = f->work + k * THAW_FIT_MAX;
            c = left_over(row, of, k, c);
            row[k] = i == k ? sqrt(fmax(c, 1e-12)) : c / of[k];
        }
        z[i] = left_over(row, z, i, a->value) / row[i];
        s -= 0.5 * z[i] * z[i] + log(row[i]);
    }
    return s;
}

/* The numbers of h that are searched, one after the other. */
static double *number_of(struct thaw_hyper *h, size_t i, size_t n_dims)
{
    double *const others[] = { &h->shared, &h->own, &h->shared_time, &h->own_time, &h->noise };
    return i < n_dims ? &h->length[i] : others[i - n_dims];
}

enum { N_OTHERS = 5 };

static bool try_factor(const struct thaw_fit *f, struct thaw_hyper *h, double *score, size_t i, double factor)
{
    struct thaw_hyper other = *h;
    double *x = number_of(&other, i, f->dims->n);
    *x = fmax(1e-3, fmin(1e3, *x * factor));
    double s = log_posterior(f, &other);
    if (!(s > *score))
        return false;
    *score = s;
    *h = other;
    return true;
}

void thaw_fit_improve(const struct thaw_fit *f, struct thaw_hyper *h)
{
    double stride[SPACE_MAX_DIMS + N_OTHERS], score = log_posterior(f, h);
    size_t n = f->dims->n + N_OTHERS;
    for (size_t i = 0; i < n; i++)
        stride[i] = 0.5;
    int tries = 0;
    for (int round = 0; round < ROUNDS_MAX && tries < TRIES_MAX; round++)
        for (size_t i = 0; i < n; i++, tries += 2) {
            if (try_factor(f, h, &score, i, exp(stride[i])))
                stride[i] *= 1.5;
            else if (try_factor(f, h, &score, i, exp(-stride[i])))
                stride[i] *= -1.5;
            else
                stride[i] *= 0.4;
        }
}
