#include "search/importance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "search/unit_space.h"

enum { CELLS = 64 };

static const double BEST = 0.15;        /* share of trials that are called the best, four at least */
static const double LEAST_WIDTH = 0.05; /* of a kernel, of the whole dimension */

static int by_cost(const void *a, const void *b)
{
    double x = ((const struct importance_trial *)a)->cost, y = ((const struct importance_trial *)b)->cost;
    return (x > y) - (x < y);
}

static size_t best_of(size_t n)
{
    size_t best = (size_t)ceil(BEST * (double)n);
    return best < 4 ? 4 : best;
}

static double deviation(const double *u, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += u[i];
    for (size_t i = 0; i < n; i++)
        squares += (u[i] - sum / (double)n) * (u[i] - sum / (double)n);
    return sqrt(squares / (double)n);
}

static void make_one(double p[CELLS], size_t cells)
{
    double sum = 0;
    for (size_t c = 0; c < cells; c++)
        sum += p[c];
    for (size_t c = 0; c < cells; c++)
        p[c] /= sum;
}

/* Gaussian kernels, and one trial's weight spread evenly. */
static void density(const double *u, size_t n, double width, double p[CELLS])
{
    for (size_t c = 0; c < CELLS; c++) {
        double at = ((double)c + 0.5) / CELLS;
        p[c] = 1.0 / CELLS;
        for (size_t i = 0; i < n; i++)
            p[c] += exp(-0.5 * pow((at - u[i]) / width, 2)) / (width * 2.5066 * CELLS);
    }
    make_one(p, CELLS);
}

/* The same of choices: how often each is there, and one trial's weight spread evenly. */
static void shares(const double *u, size_t n, size_t choices, double p[CELLS])
{
    for (size_t c = 0; c < choices; c++)
        p[c] = 1.0 / (double)choices;
    for (size_t i = 0; i < n; i++)
        p[(size_t)u[i] % choices]++;
    make_one(p, choices);
}

/* Pearson's divergence of the best from all. */
static double divergence(const double *best, const double *all, size_t cells)
{
    double sum = 0;
    for (size_t c = 0; c < cells; c++)
        sum += all[c] * pow(best[c] / all[c] - 1, 2);
    return sum;
}

/* `u`: of the dimension, best trials first. One that has one value everywhere matters to nobody. */
static double of_dimension(const double *u, size_t n, size_t choices)
{
    double best[CELLS], all[CELLS];
    size_t n_best = best_of(n);
    double spread = deviation(u, n);
    if (!(spread > 0))
        return 0;
    if (choices) {
        shares(u, n_best, choices, best);
        shares(u, n, choices, all);
        return divergence(best, all, choices);
    }
    double width = fmax(1.06 * spread * pow((double)n, -0.2), LEAST_WIDTH);
    density(u, n_best, width, best);
    density(u, n, width, all);
    return divergence(best, all, CELLS);
}

int importance_of(const struct space *sp, struct importance_trial *trials, size_t n, double out[SPACE_MAX_DIMS])
{
    double sum = 0;
    if (n < IMPORTANCE_TRIALS_MIN)
        return -ENODATA;
    double *u = calloc(n, sizeof *u);
    if (!u)
        return -ENOMEM;
    qsort(trials, n, sizeof *trials, by_cost);
    for (size_t d = 0; d < sp->n_dims; d++) {
        size_t choices = unit_choices(&sp->dims[d]);
        for (size_t i = 0; i < n; i++)
            u[i] = unit_of(sp, &trials[i].point).u[d];
        out[d] = of_dimension(u, n, choices < CELLS ? choices : CELLS);
        sum += out[d];
    }
    free(u);
    for (size_t d = 0; d < sp->n_dims && sum > 0; d++)
        out[d] /= sum;
    return sum > 0 && trials[0].cost < trials[n - 1].cost ? 0 : -ENODATA;
}
