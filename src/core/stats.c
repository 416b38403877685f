#include "core/stats.h"

#include <assert.h>
#include <math.h>
#include <string.h>

double stats_median(const double *x, size_t n)
{
    assert(n >= 1 && n <= STATS_MAX);
    double sorted[STATS_MAX];
    memcpy(sorted, x, n * sizeof *x);
    for (size_t i = 1; i < n; i++) { /* insertion: n is small, and the order is the same everywhere */
        double v = sorted[i];
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > v; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = v;
    }
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0;
}

double stats_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

double stats_sd(const double *x, size_t n)
{
    if (n < 2)
        return 0;
    double mean = stats_mean(x, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / (double)(n - 1));
}

double stats_t90(size_t df)
{
    static const double table[] = { 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812 };
    assert(df >= 1);
    return df <= sizeof table / sizeof *table ? table[df - 1] : 1.645 + 1.6 / (double)df;
}
