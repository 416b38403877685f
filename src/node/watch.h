/* What has to be given back, in memory that outlives us, and the watchdog that gives it back when we cannot.
 *
 * Invariant: an entry is complete before the change that it undoes is made, and it is dropped only after the change was undone or
 * its process is gone. So whatever is not as it was found is in the table, at every instruction, and whoever reads the table
 * after a `kill -9` can give everything back. What could not be given back stays, and is tried again at the end, by us and then by
 * the watchdog.
 *
 * The watchdog is forked before anything is changed, leads a session of its own, holds nothing of ours but one end of a pipe, and
 * ignores TERM, HUP and INT. The pipe's end tells that we are gone: it gives back what the table still holds, and exits. Killed
 * alone, it is replaced (watch_again). Killed together with us, nobody gives back: masks then stay until their processes end, and
 * limits until someone sets them. */
#ifndef NODE_WATCH_H
#define NODE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "node/cpus.h"

enum {
    WATCH_MASKS_MAX = 4096,
    WATCH_LIMITS_MAX = 2 * CPUS_MAX,
    WATCH_LEFT = -2, /* as a tag: could not be given back when it was due */
};

struct watch_mask { /* of one process */
    atomic_bool used;
    int tag; /* which wish it is under: the helper's number for it */
    pid_t pid;
    uint64_t start;
    struct mask found;    /* of its main thread, before we touched it */
    struct mask put, was; /* what we set last, and before that: what a child that was born meanwhile has */
};

struct watch_limit { /* of one CPU or package */
    atomic_bool used;
    int tag, row, unit; /* row and unit: see limits.c */
    uint64_t found;     /* as its file had it */
};

struct watch_table {              /* pages that no entry needed cost nothing */
    atomic_int n_masks, n_limits; /* no used entry is at or behind these */
    struct watch_mask masks[WATCH_MASKS_MAX];
    struct watch_limit limits[WATCH_LIMITS_MAX];
};

typedef void watch_give_back(struct watch_table *t, const void *ctx);

struct watch {
    struct watch_table *table; /* shared between the two */
    pid_t child;
    int pipe;
    watch_give_back *give_back; /* called in the watchdog */
    const void *ctx;            /* must outlive the struct */
};

/* Maps the table and forks. -errno. */
int watch_open(struct watch *out, watch_give_back *give_back, const void *ctx, struct err *e);

/* The watchdog has been reaped: forks another. -errno: there is none now. */
int watch_again(struct watch *w, struct err *e);

/* Lets the watchdog go: it gives back what is still in the table. */
void watch_close(struct watch *w);

/* A free entry, for the caller to fill in, and only then to watch_use(). NULL when the table is full. */
struct watch_mask *watch_free_mask(struct watch_table *t);
struct watch_limit *watch_free_limit(struct watch_table *t);

/* The entry of a process, whatever tag it is under; NULL. */
struct watch_mask *watch_find_mask(struct watch_table *t, pid_t pid);

#define watch_use(entry) atomic_store_explicit(&(entry)->used, true, memory_order_release)
#define watch_drop(entry) atomic_store_explicit(&(entry)->used, false, memory_order_release)
#define watch_used(entry) atomic_load_explicit(&(entry)->used, memory_order_acquire)

#endif
