/* Worlds for the simulator, drawn by a seed as recordings of real clusters look: one job over cores, memory and batches. Pure.
 *
 * Memory beyond what is needed changes speed by 2 % at most, either way; less than it is up to 15 x slower, then out of memory, at
 * once or after a while, and larger batches and more cores need more of it. Few cores mostly beat many for small batches, by up to 2 x,
 * and many beat few for large ones. Start-ups take 5 s to 15 min, and failing in one as long. Good settings differ by less than a run from
 * the next one like it: a launch is quicker or slower as a whole, and its steps are, several in a row. A runtime that begins is up to about
 * twice as slow, which it loses within its first epoch. */
#ifndef CORE_WORLD_H
#define CORE_WORLD_H

#include "core/sim_run.h"

struct world {
    bool texts;                          /* a data set of texts, else of pictures */
    const int *cores, *memory, *batches; /* end with 0 */
    int epochs;
    double epoch_s;                /* of the fewest cores at the largest batch */
    double small, large;           /* log: the most cores over the fewest, for the smallest batch and for the largest */
    double bend;                   /* log: how much worse both ends are than the middle */
    double batch_effect;           /* the smallest batch over the largest */
    double memory_effect;          /* log: the largest memory over one that is just enough */
    double need_gb;                /* for the fewest cores and the smallest batch */
    double need_batch, need_cores; /* how much more the largest batch needs, and the most cores */
    double dies_below;             /* this share of what is needed: out of memory */
    double starved;                /* how much slower just above that */
    double startup_s;
    double cold;                   /* the first epoch over the others */
    double run_noise, epoch_noise; /* of the logs of a launch, and of an epoch */
    double broken;                 /* launches that fail for no reason */
};

struct world world_draw(struct rng *g);

/* Seconds of an epoch, without noise; NAN: out of memory. */
double world_epoch_s(const struct world *w, int cores, int memory, int batch);

/* --- trials in it --- */

enum { WORLD_STEPS = 100, WORLD_BATCHES = 8, WORLD_AXIS = 6, WORLD_KEY_MAX = 24 };

struct world_cell {
    double epoch_s; /* as world_epoch_s() */
    double missing; /* memory: 0, there is enough; 1, just not out of it */
};

/* A study of such a job: trial 1 has the first batch, trial 2 the second, … and again. Classes differ in batch. */
struct world_study {
    struct world w;
    struct tuner_space space;
    int batch[WORLD_BATCHES], n_batches;
    char family[WORLD_KEY_MAX], class[WORLD_BATCHES][2 * WORLD_KEY_MAX];
    struct world_cell cells[WORLD_BATCHES][WORLD_AXIS][WORLD_AXIS]; /* by batch, hot, cold */
    double crowded; /* log: how much slower a trial is whose neighbours have all of its node */
};

void world_study(struct world_study *out, uint64_t seed);

/* Trial `number` (from 1), which starts with the fewest cores and the memory that its batch needs, as far as there is that. Its keys are the
 * study's. */
struct sim_job world_job(const struct world_study *s, int number);

extern const struct sim_world world_calls; /* its ctx is a struct world_study */

#endif
