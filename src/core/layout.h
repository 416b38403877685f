/* How cores are laid out over the workers of a cluster: as parts of equal size, each on one worker. Pure arithmetic. */
#ifndef CORE_LAYOUT_H
#define CORE_LAYOUT_H

#include <stdbool.h>

enum { LAYOUT_WORKERS_MAX = 64, LAYOUT_REFUSED_MAX = 64 };

/* `count` workers, each with so much free. */
struct layout_worker {
    int count, cores;
    double memory_gb;
};

/* So many parts of so many cores and so much memory each (0: not known). */
struct layout_ask {
    int parts, cores;
    double memory_gb;
};

/* What a part takes of a worker, beside the memory that it is given: a share of it, but at least so much; the whole in steps. Zeroed: nothing
 * more. */
struct layout_takes {
    double share, least_gb, step_gb;
};

/* Where parts can be had. Zeroed: nothing is known, and everything may be asked for. */
struct layout_room {
    struct layout_takes takes;
    struct layout_ask beside; /* what a launch takes beside its parts, as it is taken; no parts: nothing */
    bool full;                /* no workers are none, instead of not known */
    struct layout_worker workers[LAYOUT_WORKERS_MAX]; /* of different sizes; none: not known */
    int n_workers;
    struct layout_ask
        refused[LAYOUT_REFUSED_MAX]; /* what a cluster did not grant: as much, or more, is not asked for again */
    int n_refused;
};

/* More workers of a size. Of those of more sizes than fit each counts as the next smaller one, or is passed over: less is offered, never
 * more. */
void layout_add(struct layout_room *r, struct layout_worker w);

/* What of a worker's memory a part takes that is given so much, and what it can be given at most where so much is left. */
double layout_takes_gb(const struct layout_takes *t, double memory_gb);
double layout_gives_gb(const struct layout_takes *t, double memory_gb);

/* These parts are somebody's from now on: off the workers with most cores left first, as managers do. How many found room. */
int layout_take(struct layout_room *r, struct layout_ask ask);

/* … and what a launch takes beside its parts: off the workers with fewest cores left. False: there is no room for it. */
bool layout_take_beside(struct layout_room *r);

/* This was not granted. False: there are too many refusals to note one more. */
bool layout_refuse(struct layout_room *r, struct layout_ask ask);

/* Into how few parts the cores can be divided evenly, none of more than `most_each` cores (0: no bound); `parts`: exactly so
 * many (0: any). 0: it cannot be. */
int layout_divide(const struct layout_room *r, int cores, int parts, int most_each, double memory_gb);

/* The most cores up to `most` that can be divided so; 0: none. */
int layout_most(const struct layout_room *r, int most, int parts, int most_each, double memory_gb);

#endif
