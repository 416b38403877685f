#include <math.h>
#include <string.h>

#include "clustering/kmeans_run.h"

static float *lower_of(const struct kmeans_run *l, size_t tile, size_t row)
{
    return l->lower + tile * l->n + row;
}

/* The bounds follow the centres; the rows whose bounds meet are left in the part. */
static void relax(struct kmeans_run *l, size_t begin, size_t len)
{
    struct kmeans_part *p = l->part;
    for (size_t i = 0; i < len; i++)
        p->lowest[i] = INFINITY;
    for (size_t t = 0; t < l->n_tiles; t++)
        l->f->tiles->relax(lower_of(l, t, begin), len, l->tile_drift[t], p->lowest);
    const uint32_t *label = l->label + begin;
    const float *drift = l->drift;
    const float *half = l->half;
    float *upper = l->upper + begin;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        float to = (upper[i] + drift[label[i]]) * KMEANS_UP;
        float clear = p->lowest[i] > half[label[i]] ? p->lowest[i] : half[label[i]];
        upper[i] = to;
        p->lowest[i] = clear;
        p->idx[n] = (uint32_t)(begin + i);
        n += to >= clear;
    }
    p->n = n;
}

/* The first time: every row, of which nothing is known. */
static void take_all(struct kmeans_run *l, size_t begin, size_t len)
{
    struct kmeans_part *p = l->part;
    p->n = len;
    for (size_t i = 0; i < len; i++) {
        p->idx[i] = (uint32_t)(begin + i);
        p->label[i] = KMEANS_NONE;
        p->own[i] = INFINITY;
        p->norm2[i] = l->f->norm2[begin + i];
        p->error[i] = l->f->slack * (2 * l->reach + p->norm2[i]);
    }
}

/* How far the rows are from their centres now; those that stay clear of all others are let go. */
static void tighten(struct kmeans_run *l, size_t begin)
{
    struct kmeans_part *p = l->part;
    for (size_t i = 0; i < p->n; i++)
        p->label[i] = l->label[p->idx[i]];
    const struct kmeans_pick pick = { .rows = l->f->rows, .idx = p->idx, .n = p->n, .d = l->d };
    l->f->tiles->own(&pick, l->neg2, l->base, p->label, p->own);
    for (size_t i = 0; i < p->n; i++) {
        p->norm2[i] = l->f->norm2[p->idx[i]];
        p->error[i] = l->f->slack * (2 * l->reach + p->norm2[i]);
        p->first[i] = p->norm2[i] + p->own[i] + p->error[i];
    }
    l->f->tiles->roots(p->first, p->n, KMEANS_UP);
    size_t n = p->n;
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = p->idx[i];
        size_t to = p->n;
        l->upper[row] = p->first[i];
        p->idx[to] = row;
        p->label[to] = p->label[i];
        p->own[to] = p->own[i];
        p->norm2[to] = p->norm2[i];
        p->error[to] = p->error[i];
        p->n += p->first[i] >= p->lowest[row - begin];
    }
}

static void begin_search(struct kmeans_run *l)
{
    struct kmeans_part *p = l->part;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t row = p->idx[i];
        uint32_t label = p->label[i];
        bool own_tile = label == KMEANS_NONE || *lower_of(l, label / KMEANS_LANES, row) <= l->upper[row];
        p->own_tile[i] = own_tile; /* else its own centre is known, and the others in its tile are too far */
        p->best[i] = own_tile ? INFINITY : p->own[i];
        p->slot[i] = label;
        p->beside[i] = p->rival[i] = INFINITY;
    }
}

/* The rows' scores with one tile, for those whose bound does not rule it out. */
static void look_at_tile(struct kmeans_run *l, size_t tile)
{
    struct kmeans_part *p = l->part;
    size_t n = 0;
    const float *lower = lower_of(l, tile, 0);
    const float *upper = l->upper;
    for (size_t i = 0; i < p->n; i++) {
        p->at[n] = (uint32_t)i;
        p->sub[n] = p->idx[i];
        n += lower[p->idx[i]] <= upper[p->idx[i]];
    }
    const struct kmeans_pick pick = { .rows = l->f->rows, .idx = p->sub, .n = n, .d = l->d };
    l->f->tiles->scores(&pick, l->tile + tile * KMEANS_LANES * l->d, l->base + tile * KMEANS_LANES, p->scores);
    l->f->tiles->lowest(p->scores, n, &(struct kmeans_low){ p->first, p->second, p->lane });
    for (size_t m = 0; m < n; m++) {
        size_t i = p->at[m];
        float first = p->first[m];
        if (first < p->best[i]) {
            p->rival[i] = p->best[i] < p->second[m] ? p->best[i] : p->second[m];
            p->best[i] = first;
            p->beside[i] = p->second[m];
            p->slot[i] = (uint32_t)(tile * KMEANS_LANES + (size_t)p->lane[m]);
        } else if (first < p->rival[i]) {
            p->rival[i] = first;
        }
        p->first[m] = p->norm2[i] + first - p->error[i];
    }
    l->f->tiles->roots(p->first, n, KMEANS_DOWN);
    for (size_t m = 0; m < n; m++)
        *lower_of(l, tile, p->sub[m]) = p->first[m];
}

/* The nearest centre in a tile, or `best` when that is nearer; the lowest of equals by the caller's numbers. */
static uint32_t nearest_in_tile(struct kmeans_run *l, const double *x, size_t tile, uint32_t best)
{
    for (uint32_t s = (uint32_t)(tile * KMEANS_LANES); s < (tile + 1) * KMEANS_LANES; s++) {
        if (!kmeans_slot_used(l, s)) {
            l->dist[s] = INFINITY;
            continue;
        }
        const double *c = l->centre + s * l->d;
        l->dist[s] = l->f->tiles->dist2(x, c, l->d);
        if (best == KMEANS_NONE) {
            best = s;
            continue;
        }
        const double *b = l->centre + best * l->d;
        if (kmeans_nearer(x, b, l->dist[best], c, l->dist[s], l->d) ||
            (l->given[s] < l->given[best] && !kmeans_nearer(x, c, l->dist[s], b, l->dist[best], l->d)))
            best = s;
    }
    return best;
}

static void bound_tile(struct kmeans_run *l, size_t tile, size_t row, uint32_t best)
{
    double least = INFINITY;
    for (size_t s = tile * KMEANS_LANES; s < (tile + 1) * KMEANS_LANES; s++)
        least = s != best && l->dist[s] < least ? l->dist[s] : least;
    *lower_of(l, tile, row) = (float)(sqrt(least) * l->f->scale) * KMEANS_DOWN;
}

/* Single precision cannot tell: all that may be nearest, directly. */
static void settle(struct kmeans_run *l, size_t i)
{
    const struct kmeans_part *p = l->part;
    size_t row = p->idx[i];
    const double *x = kmeans_row(l->f->x, row);
    size_t own_tile = p->label[i] == KMEANS_NONE ? l->n_tiles : p->label[i] / KMEANS_LANES;
    float square = p->norm2[i] + p->best[i] + p->error[i];
    float within = sqrtf(square > 0 ? square : 0) * KMEANS_UP;
    uint32_t best = KMEANS_NONE;
    for (size_t t = 0; t < l->n_tiles; t++)
        if (t == own_tile || *lower_of(l, t, row) <= within)
            best = nearest_in_tile(l, x, t, best);
    for (size_t t = 0; t < l->n_tiles; t++)
        if (t == own_tile || *lower_of(l, t, row) <= within)
            bound_tile(l, t, row, best);
    l->upper[row] = (float)(sqrt(l->dist[best]) * l->f->scale) * KMEANS_UP;
    kmeans_relabel(l, row, best);
}

static float root(float square)
{
    return sqrtf(square > 0 ? square : 0);
}

static void take_best(struct kmeans_run *l, size_t i)
{
    const struct kmeans_part *p = l->part;
    size_t row = p->idx[i];
    uint32_t slot = p->slot[i];
    uint32_t was = p->label[i];
    l->upper[row] = root(p->norm2[i] + p->best[i] + p->error[i]) * KMEANS_UP;
    bool looked_at = p->own_tile[i] || slot / KMEANS_LANES != was / KMEANS_LANES;
    if (looked_at)
        *lower_of(l, slot / KMEANS_LANES, row) = root(p->norm2[i] + p->beside[i] - p->error[i]) * KMEANS_DOWN;
    if (!p->own_tile[i] && slot != was) { /* the centre before is one of the others now */
        float *lower = lower_of(l, was / KMEANS_LANES, row);
        float bound = root(p->norm2[i] + p->own[i] - p->error[i]) * KMEANS_DOWN;
        *lower = bound < *lower ? bound : *lower;
    }
    kmeans_relabel(l, row, slot);
}

static void assign_block(struct kmeans_run *l, size_t begin)
{
    struct kmeans_part *p = l->part;
    size_t len = l->n - begin < KMEANS_BLOCK ? l->n - begin : KMEANS_BLOCK;
    if (l->label[begin] == KMEANS_NONE) {
        take_all(l, begin, len);
    } else {
        relax(l, begin, len);
        tighten(l, begin);
    }
    begin_search(l);
    for (size_t t = 0; t < l->n_tiles; t++)
        look_at_tile(l, t);
    for (size_t i = 0; i < p->n; i++) {
        if (p->rival[i] <= p->best[i] + 2 * p->error[i])
            settle(l, i);
        else
            take_best(l, i);
    }
}

void kmeans_assign(struct kmeans_run *const *runs, size_t n_runs)
{
    for (size_t r = 0; r < n_runs; r++)
        runs[r]->changed = 0;
    for (size_t begin = 0; n_runs > 0 && begin < runs[0]->n; begin += KMEANS_BLOCK)
        for (size_t r = 0; r < n_runs; r++)
            assign_block(runs[r], begin);
    for (size_t r = 0; r < n_runs; r++) { /* the bounds have followed */
        memset(runs[r]->drift, 0, runs[r]->n_slots * sizeof *runs[r]->drift);
        memset(runs[r]->tile_drift, 0, runs[r]->n_tiles * sizeof *runs[r]->tile_drift);
    }
}
