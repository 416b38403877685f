/* Greedy k-means++. A row whose distance to its nearest seed is at most half of the way from that seed to a candidate cannot come
 * nearer by it (the triangle inequality), so once the clusters have a seed each, little is computed at all. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans_state.h"

struct seeding {
    const struct kmeans_fast *f;
    size_t k, n_seeds, n_blocks;
    uint32_t *seeds;              /* the caller's */
    struct rng *rng;              /* the caller's */
    float reach;                  /* the largest |c'|^2 of the candidates */
    uint32_t trial[KMEANS_LANES]; /* candidates */
    float *tile;                  /* d × KMEANS_LANES, of the candidates */
    float base[KMEANS_LANES];
    double gain[KMEANS_LANES]; /* how much each lowers the sum of `near` */
    double *near;              /* n: squared distance to the nearest seed, scaled */
    uint32_t *owner;           /* n: which seed that is */
    double *sums;              /* of each block of `near` */
    double *half2;             /* k: the square of half the way from a seed to the nearest candidate */
    uint32_t *hit;             /* rows that come nearer by a candidate */
    float *hit_dist;           /* n_hits × KMEANS_TRIALS: how near */
    size_t n_hits;
};

/* Of one block. */
struct look {
    uint32_t idx[KMEANS_BLOCK];
    size_t n;
    float scores[(KMEANS_BLOCK + KMEANS_SPARE) * KMEANS_LANES];
    float first[KMEANS_BLOCK + KMEANS_SPARE], second[KMEANS_BLOCK + KMEANS_SPARE];
    int32_t lane[KMEANS_BLOCK + KMEANS_SPARE];
};

struct rng kmeans_rng(const struct kmeans_cfg *cfg, unsigned restart)
{
    return rng_seeded(rng_mix(cfg->seed) + restart);
}

double kmeans_block_sum(const double *weights, size_t n)
{
    double sum[4] = { 0 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t lane = 0; lane < 4; lane++)
            sum[lane] += weights[i + lane];
    for (; i < n; i++)
        sum[0] += weights[i];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static size_t block_len(size_t n, size_t block)
{
    size_t left = n - block * KMEANS_BLOCK;
    return left < KMEANS_BLOCK ? left : KMEANS_BLOCK;
}

/* Rounding may carry the walk past the end of a block or of all: then it is the last weight that is not 0. */
size_t kmeans_draw(const double *weights, const double *sums, size_t n, double r)
{
    size_t n_blocks = (n + KMEANS_BLOCK - 1) / KMEANS_BLOCK;
    double total = 0;
    for (size_t b = 0; b < n_blocks; b++)
        total += sums[b];
    double left = r * total;
    size_t last = n;
    for (size_t b = 0; b < n_blocks; b++) {
        if (!(sums[b] > 0))
            continue;
        if (left >= sums[b] && b + 1 < n_blocks) {
            left -= sums[b];
            last = b * KMEANS_BLOCK;
            continue;
        }
        for (size_t i = b * KMEANS_BLOCK; i < b * KMEANS_BLOCK + block_len(n, b); i++) {
            if (!(weights[i] > 0))
                continue;
            if (left < weights[i])
                return i;
            left -= weights[i];
            last = i;
        }
    }
    while (last < n && !(weights[last] > 0))
        last++;
    return last;
}

static void draw_trials(struct seeding *s)
{
    size_t n = s->f->x->n;
    size_t want = s->n_seeds == 0 ? 1 : KMEANS_TRIALS;
    s->reach = 0;
    for (size_t j = 0; j < want; j++) {
        size_t i = s->n_seeds == 0 ? n : kmeans_draw(s->near, s->sums, n, rng_unit(s->rng));
        s->trial[j] = (uint32_t)(i < n ? i : rng_below(s->rng, n)); /* none: the first, or all rows are seeds */
    }
    for (size_t j = 0; j < KMEANS_LANES; j++) {
        bool used = j < want;
        const float *row = s->f->rows + (used ? s->trial[j] : 0) * s->f->x->d;
        for (size_t i = 0; i < s->f->x->d; i++)
            s->tile[i * KMEANS_LANES + j] = used ? -2 * row[i] : 0;
        s->reach = used && s->reach < s->f->norm2[s->trial[j]] ? s->f->norm2[s->trial[j]] : s->reach;
        s->base[j] = used ? s->f->norm2[s->trial[j]] : INFINITY;
        s->gain[j] = 0;
    }
    s->n_hits = 0;
}

static double exact(const struct seeding *s, size_t row, size_t other)
{
    const struct kmeans_data *x = s->f->x;
    return s->f->tiles->dist2(kmeans_row(x, row), kmeans_row(x, other), x->d) * s->f->scale * s->f->scale;
}

static void find_halves(struct seeding *s)
{
    if (s->n_seeds == 0)
        s->half2[0] = 0; /* every row is its owner's, and infinitely far */
    for (size_t a = 0; a < s->n_seeds; a++) {
        double least = INFINITY;
        for (size_t j = 0; j < KMEANS_TRIALS; j++)
            least = fmin(least, exact(s, s->seeds[a], s->trial[j]));
        s->half2[a] = least / 4;
    }
}

/* Distances of the block's i-th row in place of its scores. Below 16 times the error that the scores may have they are
 * computed again: what lies on a seed must have distance 0. */
static float distances(struct seeding *s, struct look *l, size_t i)
{
    float *dist = l->scores + i * KMEANS_LANES;
    float norm2 = s->f->norm2[l->idx[i]];
    float doubt = 16 * s->f->slack * (2 * s->reach + norm2);
    for (size_t j = 0; j < KMEANS_LANES; j++)
        dist[j] += norm2;
    if (norm2 + l->first[i] >= doubt)
        return norm2 + l->first[i];
    float least = INFINITY;
    for (size_t j = 0; j < KMEANS_LANES; j++) {
        if (dist[j] < doubt)
            dist[j] = (float)exact(s, l->idx[i], s->trial[j]);
        least = dist[j] < least ? dist[j] : least;
    }
    return least;
}

static void look_at_block(struct seeding *s, struct look *l, size_t block)
{
    size_t begin = block * KMEANS_BLOCK;
    size_t end = begin + block_len(s->f->x->n, block);
    const double *near = s->near;
    const double *half2 = s->half2;
    const uint32_t *owner = s->owner;
    size_t n = 0;
    for (size_t i = begin; i < end; i++) {
        l->idx[n] = (uint32_t)i;
        n += near[i] > half2[owner[i]];
    }
    l->n = n;
    const struct kmeans_pick pick = { .rows = s->f->rows, .idx = l->idx, .n = l->n, .d = s->f->x->d };
    s->f->tiles->scores(&pick, s->tile, s->base, l->scores);
    s->f->tiles->lowest(l->scores, l->n, &(struct kmeans_low){ l->first, l->second, l->lane });
    size_t before = s->n_hits;
    for (size_t i = 0; i < l->n; i++) {
        if (!(distances(s, l, i) < s->near[l->idx[i]]))
            continue;
        memcpy(s->hit_dist + s->n_hits * KMEANS_TRIALS, l->scores + i * KMEANS_LANES, KMEANS_TRIALS * sizeof(float));
        s->hit[s->n_hits++] = l->idx[i];
    }
    s->f->tiles->gains(s->hit_dist + before * KMEANS_TRIALS, s->near, s->hit + before, s->n_hits - before, s->gain);
}

static size_t best_trial(const struct seeding *s)
{
    size_t best = 0;
    for (size_t j = 1; j < KMEANS_TRIALS && s->n_seeds > 0; j++)
        if (s->gain[j] > s->gain[best])
            best = j;
    return best;
}

static void take_trial(struct seeding *s, size_t j)
{
    size_t n = s->f->x->n;
    for (size_t h = 0; h < s->n_hits; h++) {
        double dist = s->hit_dist[h * KMEANS_TRIALS + j];
        if (dist < s->near[s->hit[h]]) {
            s->near[s->hit[h]] = dist;
            s->owner[s->hit[h]] = (uint32_t)s->n_seeds;
        }
    }
    size_t stale = SIZE_MAX;
    for (size_t h = 0; h < s->n_hits; h++) {
        size_t block = s->hit[h] / KMEANS_BLOCK;
        if (block == stale)
            continue;
        stale = block;
        s->sums[block] = kmeans_block_sum(s->near + block * KMEANS_BLOCK, block_len(n, block));
    }
    s->seeds[s->n_seeds++] = s->trial[j];
}

static void add_seeds(struct seeding *all, size_t runs, struct look *l)
{
    for (size_t r = 0; r < runs; r++) {
        draw_trials(&all[r]);
        find_halves(&all[r]);
    }
    for (size_t block = 0; block < all->n_blocks; block++)
        for (size_t r = 0; r < runs; r++)
            look_at_block(&all[r], l, block);
    for (size_t r = 0; r < runs; r++)
        take_trial(&all[r], best_trial(&all[r]));
}

static void seeding_done(struct seeding *s)
{
    void *const parts[] = { s->tile, s->near, s->owner, s->sums, s->half2, s->hit, s->hit_dist };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        free(parts[i]);
}

static int seeding_init(struct seeding *s, const struct kmeans_fast *f, size_t k, struct rng *rng, uint32_t *out_rows)
{
    size_t n = f->x->n;
    *s = (struct seeding){ .f = f, .k = k, .rng = rng, .seeds = out_rows };
    s->n_blocks = (n + KMEANS_BLOCK - 1) / KMEANS_BLOCK;
    s->tile = calloc(f->x->d, KMEANS_LANES * sizeof *s->tile);
    s->near = calloc(n, sizeof *s->near);
    s->owner = calloc(n, sizeof *s->owner);
    s->sums = calloc(s->n_blocks, sizeof *s->sums);
    s->half2 = calloc(k, sizeof *s->half2);
    s->hit = calloc(n, sizeof *s->hit);
    s->hit_dist = calloc(n, KMEANS_TRIALS * sizeof *s->hit_dist);
    if (!s->tile || !s->near || !s->owner || !s->sums || !s->half2 || !s->hit || !s->hit_dist)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        s->near[i] = INFINITY;
    return 0;
}

int kmeans_seed(const struct kmeans_fast *f, size_t k, size_t runs, struct rng *rngs, uint32_t *out_rows, struct err *e)
{
    AUTO_FREE struct look *l = calloc(1, sizeof *l);
    AUTO_FREE struct seeding *all = calloc(runs, sizeof *all);
    int rc = l && all ? 0 : -ENOMEM;
    for (size_t r = 0; rc == 0 && r < runs; r++)
        rc = seeding_init(&all[r], f, k, &rngs[r], out_rows + r * k);
    for (size_t i = 0; rc == 0 && i < k; i++)
        add_seeds(all, runs, l);
    for (size_t r = 0; all && r < runs; r++)
        seeding_done(&all[r]);
    return rc < 0 ? kmeans_no_memory(e, f->x->n) : 0;
}
