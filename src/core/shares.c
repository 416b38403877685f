#include "core/shares.h"

#include <math.h>
#include <stdbool.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* CPUs that it would take next of those that are left; 0: none. */
static int next_of(const struct share *s, int left)
{
    int unit = least(s->grain > 1 ? s->grain : 1, s->most - s->cpus);
    return unit <= left ? unit : s->cpus == 0 ? left : 0;
}

/* Seconds that one more trial at once takes off what it still needs: need/k - need/(k + 1). */
static double gain(const struct share *s, double unknown)
{
    double k = s->cpus / (double)(s->grain > 1 ? s->grain : 1);
    return (isnan(s->need_s) ? unknown : s->need_s) / (k * (k + 1));
}

/* Does `a` come before `b`, which was submitted earlier? */
static bool comes_before(const struct share *a, const struct share *b, double unknown)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->cpus == 0 || b->cpus == 0)
        return a->cpus == 0 && b->cpus > 0;
    return gain(a, unknown) > gain(b, unknown);
}

/* Of whom nothing is known yet as much is expected as of the one that needs most. */
static double most_needed(const struct share *v, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = v[i].need_s > most ? v[i].need_s : most;
    return most > 0 ? most : 1;
}

void shares_divide(struct share *v, size_t n, int cpus)
{
    double unknown = most_needed(v, n);
    for (size_t i = 0; i < n; i++)
        v[i].cpus = 0;
    while (cpus > 0) {
        struct share *best = NULL;
        for (size_t i = 0; i < n; i++)
            if (next_of(&v[i], cpus) > 0 && (!best || comes_before(&v[i], best, unknown)))
                best = &v[i];
        if (!best)
            return;
        int unit = next_of(best, cpus);
        best->cpus += unit;
        cpus -= unit;
    }
}
