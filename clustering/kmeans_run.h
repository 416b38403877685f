/* Lloyd's algorithm with bounds in the manner of Yinyang k-means (Ding et al. 2015): each row keeps an upper bound of the distance
 * to its centre, and for each tile of centres a lower bound of the distance to any other centre in it. When the centres move the
 * bounds move with them, and a row whose upper bound stays below the lower ones keeps its centre unseen. Tiles that a row does
 * have to look at are computed for many rows at once. Bounds are rounded away from each other, so what is left out could not
 * have mattered; what single precision leaves in doubt is settled by kmeans_nearer().
 *
 * Centres are numbered here by the tile they are in, neighbours together; `given` has the number by which the caller knows each.
 *
 * The sums of the clusters follow the rows that change, in 106 bits, so that a large value that leaves takes nothing of the small
 * ones with it; they are made anew before the algorithm may end. */
#ifndef CLUSTERING_KMEANS_RUN_H
#define CLUSTERING_KMEANS_RUN_H

#include "clustering/kmeans_state.h"

/* The block of rows that is being looked at. */
struct kmeans_part {
    uint32_t idx[KMEANS_BLOCK], label[KMEANS_BLOCK]; /* rows that are looked at, and their centres before */
    size_t n;
    float norm2[KMEANS_BLOCK], error[KMEANS_BLOCK];
    float own[KMEANS_BLOCK + KMEANS_SPARE];
    float lowest[KMEANS_BLOCK];                     /* lower bound over all tiles; of the whole block */
    float best[KMEANS_BLOCK], beside[KMEANS_BLOCK]; /* the lowest score so far, and the next one in its tile */
    float rival[KMEANS_BLOCK];                      /* the lowest of all others */
    uint32_t slot[KMEANS_BLOCK];                    /* who has the best */
    bool own_tile[KMEANS_BLOCK];                    /* the tile of the centre before is one to look at */
    uint32_t at[KMEANS_BLOCK], sub[KMEANS_BLOCK];   /* of one tile: positions in idx, rows */
    float scores[(KMEANS_BLOCK + KMEANS_SPARE) * KMEANS_LANES];
    float first[KMEANS_BLOCK + KMEANS_SPARE], second[KMEANS_BLOCK + KMEANS_SPARE];
    int32_t lane[KMEANS_BLOCK + KMEANS_SPARE];
};

struct kmeans_run {
    const struct kmeans_fast *f;
    size_t n, k, d, n_tiles, n_slots;
    uint32_t *given;       /* by slot; KMEANS_NONE: unused */
    uint32_t *slot_of;     /* by the caller's number */
    double *centre, *next; /* n_slots × d */
    double *hi, *lo;       /* n_slots × d: sums of the members */
    uint64_t *size;
    float *tile, *base; /* as kmeans_tile.h has them */
    float *neg2;        /* n_slots × d */
    float reach;        /* the largest |c'|^2 */
    float *half;        /* half the way to the nearest other centre */
    float *drift,
        *tile_drift;      /* how far each centre, and at most one of the tile, moved since rows were last assigned */
    uint32_t *label;      /* n */
    float *upper, *lower; /* n; n_tiles × n */
    double *dist;         /* n_slots: of the row being settled */
    uint32_t *scratch;    /* n_slots and k of them */
    size_t changed;
    bool stale; /* rows have changed since the sums were made anew */
    unsigned rounds;
    bool ended, dropped;
    bool settled;             /* no row changed in the last round */
    struct kmeans_part *part; /* shared by all runs */
};

/* In each run, each row to its nearest centre, counted in `changed` when that is another than before. Before the first time the labels are
 * KMEANS_NONE, the upper bounds infinite and the lower ones 0. */
void kmeans_assign(struct kmeans_run *const *runs, size_t n_runs);

/* The row becomes a member of `slot`, and no longer of the cluster it was in. */
void kmeans_relabel(struct kmeans_run *l, size_t row, uint32_t slot);

static inline bool kmeans_slot_used(const struct kmeans_run *l, size_t slot)
{
    return l->given[slot] != KMEANS_NONE;
}

#endif
