#include "search/front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of m, of m - 1, … for the volume; a copy without one row; a number of each. */
size_t front_work(size_t n, size_t m)
{
    return n * (m * (m + 1) / 2 + m + 1) + m;
}

bool front_dominates(const double *a, const double *b, size_t m)
{
    bool better = false;
    for (size_t k = 0; k < m; k++) {
        if (a[k] > b[k])
            return false;
        better |= a[k] < b[k];
    }
    return better;
}

/* --- ranks --- */

struct rows {
    const double *points;
    size_t m;
};

/* By the first number, then by the next: what dominates a point comes before it. */
static int by_numbers(const void *a, const void *b, void *ctx)
{
    const struct rows *r = ctx;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    for (size_t k = 0; k < r->m; k++) {
        double x = r->points[i * r->m + k], y = r->points[j * r->m + k];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (i > j) - (i < j);
}

static void set_ranks(const double *points, size_t n, size_t m, const size_t *sorted, size_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const double *p = points + sorted[i] * m;
        size_t rank = 0;
        for (size_t k = 0; k < i; k++)
            if (out[sorted[k]] >= rank && front_dominates(points + sorted[k] * m, p, m))
                rank = out[sorted[k]] + 1;
        out[sorted[i]] = rank;
    }
}

void front_ranks(const double *points, size_t n, size_t m, size_t *out, double *work)
{
    struct rows r = { points, m };
    size_t *sorted = (void *)work; /* no wider than a double */
    _Static_assert(sizeof(size_t) <= sizeof(double), "a place for each");
    for (size_t i = 0; i < n; i++)
        sorted[i] = i;
    qsort_r(sorted, n, sizeof *sorted, by_numbers, &r);
    set_ranks(points, n, m, sorted, out);
}

/* --- volume: slices along the last number, each the volume of the points before it in the others --- */

static int by_last(const void *a, const void *b, void *ctx)
{
    size_t last = *(const size_t *)ctx - 1;
    double x = ((const double *)a)[last], y = ((const double *)b)[last];
    return (x > y) - (x < y);
}

static double slices(double *rows, size_t n, size_t m, const double *ref)
{
    double sum = 0, least = ref[0];
    double *below = rows + n * m;
    qsort_r(rows, n, m * sizeof *rows, by_last, &m);
    for (size_t i = 0; i < n; i++) {
        double at = rows[i * m + m - 1], next = i + 1 < n ? rows[(i + 1) * m + m - 1] : ref[m - 1];
        least = fmin(least, rows[i * m]);
        if (!(next > at))
            continue;
        if (m <= 2) { /* of one number alone the first row is the least, and all there is */
            sum += (next - at) * (m == 2 ? ref[0] - least : 1);
            continue;
        }
        for (size_t k = 0; k <= i; k++)
            memcpy(below + k * (m - 1), rows + k * m, (m - 1) * sizeof *rows);
        sum += (next - at) * slices(below, i + 1, m - 1, ref);
    }
    return sum;
}

double front_volume(const double *points, size_t n, size_t m, const double *ref, double *work)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool counts = true;
        for (size_t k = 0; k < m; k++)
            counts &= points[i * m + k] < ref[k];
        if (counts)
            memcpy(work + m * kept++, points + i * m, m * sizeof *work);
    }
    return kept > 0 ? slices(work, kept, m, ref) : 0;
}

/* --- order --- */

struct order {
    const size_t *ranks;
    const double *loss;
};

static int by_rank(const void *a, const void *b, void *ctx)
{
    const struct order *o = ctx;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    if (o->ranks[i] != o->ranks[k])
        return o->ranks[i] < o->ranks[k] ? -1 : 1;
    if (o->loss[i] != o->loss[k])
        return o->loss[i] > o->loss[k] ? -1 : 1;
    return (i > k) - (i < k);
}

/* A tenth of the range beyond the worst of the rank, so that its ends count. */
static void set_ref(const double *rows, size_t n, size_t m, double *ref)
{
    for (size_t k = 0; k < m; k++) {
        double least = INFINITY, most = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            least = fmin(least, rows[i * m + k]);
            most = fmax(most, rows[i * m + k]);
        }
        ref[k] = most + (most > least ? 0.1 * (most - least) : 1);
    }
}

/* What one of n rows adds: it is put last, and left out. */
static double loss_of(double *rows, size_t n, size_t m, size_t row, double all, const double *ref, double *work)
{
    double kept[FRONT_MAX];
    memcpy(kept, rows + row * m, m * sizeof *rows);
    memcpy(rows + row * m, rows + (n - 1) * m, m * sizeof *rows);
    double without = front_volume(rows, n - 1, m, ref, work);
    memcpy(rows + (n - 1) * m, rows + row * m, m * sizeof *rows);
    memcpy(rows + row * m, kept, m * sizeof *rows);
    return all - without;
}

void front_order(const double *points, size_t n, size_t m, size_t *order, size_t *ranks, double *work)
{
    double *loss = work, *rows = loss + n, *ref = rows + n * m, *rest = ref + m;
    size_t last = 0;
    front_ranks(points, n, m, ranks, work);
    for (size_t i = 0; i < n; i++)
        last = ranks[i] > last ? ranks[i] : last;
    for (size_t rank = 0; rank <= last; rank++) {
        size_t kept = 0, at = 0;
        for (size_t i = 0; i < n; i++)
            if (ranks[i] == rank)
                memcpy(rows + m * kept++, points + i * m, m * sizeof *rows);
        set_ref(rows, kept, m, ref);
        double all = front_volume(rows, kept, m, ref, rest);
        for (size_t i = 0; i < n; i++)
            if (ranks[i] == rank)
                loss[i] = loss_of(rows, kept, m, at++, all, ref, rest);
    }
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    struct order o = { ranks, loss };
    qsort_r(order, n, sizeof *order, by_rank, &o);
}
