#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/kmeans_run.h"

static void run_done(struct kmeans_run *l)
{
    void *const parts[] = { l->given,      l->slot_of, l->centre, l->next,  l->hi,   l->lo,
                            l->size,       l->tile,    l->base,   l->neg2,  l->half, l->drift,
                            l->tile_drift, l->label,   l->upper,  l->lower, l->dist, l->scratch };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}

static int run_alloc(struct kmeans_run *l)
{
    size_t of_centres = l->n_slots * l->d;
    l->given = calloc(l->n_slots, sizeof *l->given);
    l->slot_of = calloc(l->n_slots, sizeof *l->slot_of);
    l->centre = calloc(of_centres, sizeof *l->centre);
    l->next = calloc(of_centres, sizeof *l->next);
    l->hi = calloc(of_centres, sizeof *l->hi);
    l->lo = calloc(of_centres, sizeof *l->lo);
    l->size = calloc(l->n_slots, sizeof *l->size);
    l->tile = calloc(of_centres, sizeof *l->tile);
    l->base = calloc(l->n_slots, sizeof *l->base);
    l->neg2 = calloc(of_centres, sizeof *l->neg2);
    l->half = calloc(l->n_slots, sizeof *l->half);
    l->drift = calloc(l->n_slots, sizeof *l->drift);
    l->tile_drift = calloc(l->n_tiles, sizeof *l->tile_drift);
    l->label = calloc(l->n, sizeof *l->label);
    l->upper = calloc(l->n, sizeof *l->upper);
    l->lower = calloc(l->n, l->n_tiles * sizeof *l->lower);
    l->dist = calloc(l->n_slots, sizeof *l->dist);
    l->scratch = calloc(l->n_slots, 2 * sizeof *l->scratch);
    return l->given && l->slot_of && l->centre && l->next && l->hi && l->lo && l->size && l->tile && l->base &&
                   l->neg2 && l->half && l->drift && l->tile_drift && l->label && l->upper && l->lower && l->dist &&
                   l->scratch
               ? 0
               : -ENOMEM;
}

/* --- centres --- */

/* The first centre without a tile and the centres nearest to it share the next one. */
static void fill_tile(struct kmeans_run *l, const double *start, bool *taken, size_t tile)
{
    const double *head = NULL;
    for (size_t lane = 0; lane < KMEANS_LANES; lane++) {
        size_t pick = l->k;
        double least = INFINITY;
        for (size_t c = 0; c < l->k; c++) {
            if (taken[c])
                continue;
            double dist = head ? l->f->tiles->dist2(start + c * l->d, head, l->d) : 0;
            if (pick == l->k || dist < least) {
                pick = c;
                least = dist;
            }
        }
        size_t slot = tile * KMEANS_LANES + lane;
        l->given[slot] = pick < l->k ? (uint32_t)pick : KMEANS_NONE;
        if (pick == l->k)
            continue;
        taken[pick] = true;
        l->slot_of[pick] = (uint32_t)slot;
        head = head ? head : start + pick * l->d;
        memcpy(l->centre + slot * l->d, start + pick * l->d, l->d * sizeof *start);
    }
}

static void show_centre(struct kmeans_run *l, size_t slot)
{
    const double *c = l->centre + slot * l->d;
    float *tile = l->tile + slot / KMEANS_LANES * KMEANS_LANES * l->d + slot % KMEANS_LANES;
    double norm2 = 0;
    for (size_t i = 0; i < l->d; i++) {
        double v = (c[i] - l->f->mean[i]) * l->f->scale;
        norm2 += v * v;
        tile[i * KMEANS_LANES] = l->neg2[slot * l->d + i] = (float)(-2 * v);
    }
    l->base[slot] = (float)norm2;
    l->reach = l->base[slot] > l->reach ? l->base[slot] : l->reach;
}

/* Worth k^2 distances only where they are few beside the n that it may save. */
static void find_halves(struct kmeans_run *l)
{
    if (l->k * l->k > l->n)
        return;
    for (size_t a = 0; a < l->n_slots; a++)
        l->half[a] = INFINITY;
    for (size_t a = 0; a < l->n_slots; a++)
        for (size_t b = 0; b < a && kmeans_slot_used(l, a); b++) {
            if (!kmeans_slot_used(l, b))
                continue;
            double dist = sqrt(l->f->tiles->dist2(l->centre + a * l->d, l->centre + b * l->d, l->d)) * l->f->scale;
            float half = (float)(dist / 2) * KMEANS_DOWN;
            l->half[a] = half < l->half[a] ? half : l->half[a];
            l->half[b] = half < l->half[b] ? half : l->half[b];
        }
}

/* Everything that is derived from the centres. */
static void show_centres(struct kmeans_run *l)
{
    l->reach = 0;
    for (size_t slot = 0; slot < l->n_slots; slot++) {
        if (kmeans_slot_used(l, slot))
            show_centre(l, slot);
        else
            l->base[slot] = INFINITY;
    }
    find_halves(l);
}

/* Centres to the means of their members; returns the sum of their squared shifts. */
static double move_centres(struct kmeans_run *l)
{
    double sum = 0;
    for (size_t slot = 0; slot < l->n_slots; slot++) {
        double *c = l->centre + slot * l->d;
        double *to = l->next + slot * l->d;
        memcpy(to, c, l->d * sizeof *c);
        for (size_t i = 0; i < l->d && l->size[slot] > 0; i++)
            to[i] = (l->hi[slot * l->d + i] + l->lo[slot * l->d + i]) / (double)l->size[slot];
        double shift2 = l->f->tiles->dist2(c, to, l->d);
        sum += shift2;
        float drift = l->drift[slot] + (float)(sqrt(shift2) * l->f->scale) * KMEANS_UP;
        float *most = &l->tile_drift[slot / KMEANS_LANES];
        l->drift[slot] = drift;
        *most = drift > *most ? drift : *most;
    }
    double *was = l->centre;
    l->centre = l->next;
    l->next = was;
    show_centres(l);
    return sum;
}

/* --- members --- */

static void join(struct kmeans_run *l, size_t row, uint32_t slot)
{
    l->f->tiles->add(l->hi + slot * l->d, l->lo + slot * l->d, kmeans_row(l->f->x, row), 1, l->d);
    l->size[slot]++;
}

void kmeans_relabel(struct kmeans_run *l, size_t row, uint32_t slot)
{
    uint32_t was = l->label[row];
    if (was == slot)
        return;
    if (was != KMEANS_NONE) {
        l->f->tiles->add(l->hi + was * l->d, l->lo + was * l->d, kmeans_row(l->f->x, row), -1, l->d);
        l->size[was]--;
        l->stale = true;
    }
    join(l, row, slot);
    l->label[row] = slot;
    l->changed++;
}

static void renew_sums(struct kmeans_run *l)
{
    memset(l->hi, 0, l->n_slots * l->d * sizeof *l->hi);
    memset(l->lo, 0, l->n_slots * l->d * sizeof *l->lo);
    memset(l->size, 0, l->n_slots * sizeof *l->size);
    for (size_t i = 0; i < l->n; i++)
        join(l, i, l->label[i]);
    l->stale = false;
}

/* --- a run --- */

/* The row that is farthest from its centre and not alone there, by `dist`; n when all lie on their centres. A row that was just
 * given away is alone. */
static size_t farthest(const struct kmeans_run *l, const double *dist)
{
    size_t far = l->n;
    for (size_t i = 0; i < l->n; i++)
        if (dist[i] > 0 && l->size[l->label[i]] > 1 && (far == l->n || dist[i] > dist[far]))
            far = i;
    return far;
}

static void give_row(struct kmeans_run *l, size_t row, uint32_t slot)
{
    kmeans_relabel(l, row, slot);
    l->upper[row] = INFINITY;
    for (size_t t = 0; t < l->n_tiles; t++)
        l->lower[t * l->n + row] = 0;
}

static double *centre_distances(const struct kmeans_run *l)
{
    double *dist = calloc(l->n, sizeof *dist);
    for (size_t i = 0; dist && i < l->n; i++)
        dist[i] = l->f->tiles->dist2(kmeans_row(l->f->x, i), l->centre + l->label[i] * l->d, l->d);
    return dist;
}

static int fill_empty(struct kmeans_run *l)
{
    size_t n_empty = 0;
    for (size_t c = 0; c < l->k; c++)
        n_empty += l->size[l->slot_of[c]] == 0;
    if (n_empty == 0)
        return 0;
    AUTO_FREE double *dist = centre_distances(l);
    if (!dist)
        return -ENOMEM;
    for (size_t c = 0; c < l->k; c++) {
        if (l->size[l->slot_of[c]] > 0)
            continue;
        size_t row = farthest(l, dist);
        if (row == l->n)
            break;
        give_row(l, row, l->slot_of[c]);
    }
    return 0;
}

/* Are the clusters the same, whatever their numbers? */
static bool same_clusters(struct kmeans_run *a, const struct kmeans_run *b)
{
    uint32_t *to_b = a->scratch; /* by slot */
    uint32_t *to_a = a->scratch + a->n_slots;
    memset(a->scratch, 0xff, 2 * a->n_slots * sizeof *a->scratch);
    for (size_t i = 0; i < a->n; i++) {
        uint32_t in_a = a->label[i];
        uint32_t in_b = b->label[i];
        if (to_b[in_a] == KMEANS_NONE && to_a[in_b] == KMEANS_NONE) {
            to_b[in_a] = in_b;
            to_a[in_b] = in_a;
        }
        if (to_b[in_a] != in_b || to_a[in_b] != in_a)
            return false;
    }
    return true;
}

/* Ends runs whose clusters are those that an earlier one has now, or has settled with: they would end where it does. */
static void drop_doubles(struct kmeans_run *all, size_t n)
{
    for (size_t b = 1; b < n; b++)
        for (size_t a = 0; a < b && !all[b].ended; a++)
            if (!all[a].dropped && (!all[a].ended || all[a].settled) && same_clusters(&all[b], &all[a]))
                all[b].ended = all[b].dropped = true;
}

/* After a round in which nothing changed: it may end when the sums, made anew, say so too. */
static void check_settled(struct kmeans_run *l)
{
    if (l->changed == 0 && l->stale) {
        renew_sums(l);
        if (move_centres(l) > 0)
            kmeans_assign(&l, 1);
    }
    l->settled = l->changed == 0;
    l->ended |= l->settled;
}

static size_t still_going(struct kmeans_run *all, size_t n, struct kmeans_run **out)
{
    size_t going = 0;
    for (size_t r = 0; r < n; r++)
        if (!all[r].ended)
            out[going++] = &all[r];
    return going;
}

/* Centres to their members. */
static int begin_round(struct kmeans_run *l, const struct kmeans_cfg *cfg)
{
    if (fill_empty(l) < 0)
        return -ENOMEM;
    double shift2 = move_centres(l);
    l->rounds++;
    l->ended = l->rounds >= cfg->max_iter || (cfg->tol > 0 && shift2 <= cfg->tol * l->f->variance);
    if (l->ended && l->stale) {
        renew_sums(l);
        (void)move_centres(l); /* by rounding, if at all */
    }
    return 0;
}

/* One round after the other, and in each rows to their centres again. */
static int iterate(struct kmeans_run *all, size_t n, const struct kmeans_cfg *cfg)
{
    struct kmeans_run *going[KMEANS_ABREAST];
    size_t n_going = still_going(all, n, going);
    kmeans_assign(going, n_going);
    while (drop_doubles(all, n), n_going = still_going(all, n, going), n_going > 0) {
        for (size_t r = 0; r < n_going; r++)
            if (begin_round(going[r], cfg) < 0)
                return -ENOMEM;
        kmeans_assign(going, n_going);
        for (size_t r = 0; r < n_going; r++)
            check_settled(going[r]);
    }
    return 0;
}

/* By the sums, sum |x'|^2 - sum size |mean'|^2; directly where too little would be left of the total. */
static double inertia(const struct kmeans_run *l)
{
    double rest = l->f->total;
    for (size_t slot = 0; slot < l->n_slots; slot++) {
        double norm2 = 0;
        for (size_t i = slot * l->d; i < (slot + 1) * l->d && l->size[slot] > 0; i++) {
            double v = ((l->hi[i] + l->lo[i]) / (double)l->size[slot] - l->f->mean[i - slot * l->d]) * l->f->scale;
            norm2 += v * v;
        }
        rest -= (double)l->size[slot] * norm2;
    }
    if (rest > 1e-6 * l->f->total)
        return rest;
    rest = 0;
    for (size_t i = 0; i < l->n; i++)
        rest += l->f->tiles->dist2(kmeans_row(l->f->x, i), l->centre + l->label[i] * l->d, l->d);
    return rest * l->f->scale * l->f->scale;
}

static void hand_over(const struct kmeans_run *l, struct kmeans_end *end)
{
    for (size_t c = 0; c < l->k; c++)
        memcpy(end->centroids + c * l->d, l->centre + l->slot_of[c] * l->d, l->d * sizeof *l->centre);
    for (size_t i = 0; i < l->n; i++)
        end->labels[i] = l->given[l->label[i]];
    end->iterations = l->rounds;
}

static int run_init(struct kmeans_run *l, const struct kmeans_fast *f, size_t k, const double *start,
                    struct kmeans_part *part)
{
    *l = (struct kmeans_run){ .f = f, .n = f->x->n, .k = k, .d = f->x->d, .part = part };
    l->n_tiles = (k + KMEANS_LANES - 1) / KMEANS_LANES;
    l->n_slots = l->n_tiles * KMEANS_LANES;
    AUTO_FREE bool *taken = calloc(k, sizeof *taken);
    if (!taken || run_alloc(l) < 0)
        return -ENOMEM;
    for (size_t t = 0; t < l->n_tiles; t++)
        fill_tile(l, start, taken, t);
    for (size_t i = 0; i < l->n; i++) {
        l->label[i] = KMEANS_NONE;
        l->upper[i] = INFINITY;
    }
    show_centres(l);
    return 0;
}

static int keep_best(const struct kmeans_run *all, size_t n, struct kmeans_end *best, struct err *e)
{
    for (size_t r = 0; r < n; r++) {
        if (all[r].dropped)
            continue;
        double got = inertia(&all[r]);
        if (best->labels && !(got < best->inertia))
            continue;
        if (!best->labels) {
            int rc = kmeans_end_init(best, all[r].n, all[r].k, all[r].d, e);
            if (rc < 0)
                return rc;
        }
        hand_over(&all[r], best);
        best->inertia = got;
    }
    return 0;
}

int kmeans_lloyd(const struct kmeans_fast *f, const struct kmeans_cfg *cfg, const double *starts, size_t runs,
                 struct kmeans_end *best, struct err *e)
{
    assert(runs <= KMEANS_ABREAST);
    struct kmeans_run all[KMEANS_ABREAST] = { 0 };
    AUTO_FREE struct kmeans_part *part = calloc(1, sizeof *part);
    int rc = part ? 0 : -ENOMEM;
    for (size_t r = 0; rc == 0 && r < runs; r++)
        rc = run_init(&all[r], f, cfg->k, starts + r * cfg->k * f->x->d, part);
    if (rc == 0)
        rc = iterate(all, runs, cfg);
    rc = rc < 0 ? kmeans_no_memory(e, f->x->n) : keep_best(all, runs, best, e);
    for (size_t r = 0; r < runs; r++)
        run_done(&all[r]);
    return rc;
}
