#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clustering/kmeans_state.h"

int kmeans_no_memory(struct err *e, size_t n)
{
    return err_set(e, -ENOMEM, "no memory for k-means over %zu rows", n);
}

void kmeans_fast_done(struct kmeans_fast *f)
{
    if (!f)
        return;
    free(f->mean);
    free(f->rows);
    free(f->norm2);
    *f = (struct kmeans_fast){ 0 };
}

/* Leaves the means in f->mean; returns a bound on the distance of any row from them. */
static double find_middle(struct kmeans_fast *f, double *low, double *high)
{
    const struct kmeans_data *x = f->x;
    memcpy(low, x->values, x->d * sizeof *low);
    memcpy(high, x->values, x->d * sizeof *high);
    for (size_t i = 0; i < x->n; i++)
        f->tiles->span(kmeans_row(x, i), x->d, f->mean, low, high);
    double square = 0;
    for (size_t j = 0; j < x->d; j++) {
        f->mean[j] /= (double)x->n;
        double reach = fmax(high[j] - f->mean[j], f->mean[j] - low[j]);
        square += reach * reach;
    }
    return sqrt(square);
}

/* The power of two that brings `reach` into [1/2, 1). */
static double scale_for(double reach)
{
    int exponent = 0;
    if (reach > 0)
        (void)frexp(reach, &exponent);
    return ldexp(1, exponent < -1000 ? 1000 : -exponent);
}

static void move_and_scale(struct kmeans_fast *f)
{
    const struct kmeans_data *x = f->x;
    for (size_t i = 0; i < x->n; i++) {
        double norm2 = f->tiles->move(kmeans_row(x, i), f->mean, f->scale, x->d, f->rows + i * x->d);
        f->norm2[i] = (float)norm2;
        f->total += norm2;
    }
    f->variance = f->total / f->scale / f->scale / (double)x->n / (double)x->d;
}

int kmeans_fast_init(struct kmeans_fast *out, const struct kmeans_data *x, struct err *e)
{
    struct kmeans_fast f = { .x = x, .tiles = kmeans_tiles_here() };
    f.slack = (float)(x->d + 16) * 0x1p-24f;
    double *range = calloc(x->d, 2 * sizeof *range);
    f.mean = calloc(x->d, sizeof *f.mean);
    f.rows = calloc(x->n, x->d * sizeof *f.rows);
    f.norm2 = calloc(x->n, sizeof *f.norm2);
    if (!range || !f.mean || !f.rows || !f.norm2) {
        free(range);
        kmeans_fast_done(&f);
        return kmeans_no_memory(e, x->n);
    }
    f.scale = scale_for(find_middle(&f, range, range + x->d));
    free(range);
    move_and_scale(&f);
    *out = f;
    return 0;
}

void kmeans_end_done(struct kmeans_end *end)
{
    if (!end)
        return;
    free(end->centroids);
    free(end->labels);
    *end = (struct kmeans_end){ 0 };
}

int kmeans_end_init(struct kmeans_end *out, size_t n, size_t k, size_t d, struct err *e)
{
    struct kmeans_end end = { .centroids = calloc(k, d * sizeof *end.centroids),
                              .labels = calloc(n, sizeof *end.labels) };
    if (!end.centroids || !end.labels) {
        kmeans_end_done(&end);
        return kmeans_no_memory(e, n);
    }
    *out = end;
    return 0;
}

bool kmeans_nearer(const double *x, const double *a, double da, const double *b, double db, size_t d)
{
    double doubt = (double)(d + 4) * 0x1p-52 * (da + db);
    if (fabs(da - db) > doubt)
        return db < da;
    double by = 0; /* da - db */
    for (size_t i = 0; i < d; i++)
        by += (b[i] - a[i]) * ((x[i] - a[i]) + (x[i] - b[i]));
    return by > 0;
}
