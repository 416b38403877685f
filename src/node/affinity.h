/* The CPUs that a process may run on: all of its threads, and back. What is changed is in the table first (watch.h).
 *
 * Taking hold of a process remembers the mask of its main thread; giving it back sets every thread to that, also one that had
 * a mask of its own. Threads and children born under our mask inherit it, so a child whose mask is the one that we set on its
 * parent gets back what was the parent's. */
#ifndef NODE_AFFINITY_H
#define NODE_AFFINITY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "node/cpus.h"
#include "node/watch.h"

enum { AFFINITY_ALL = -1 }; /* as a tag: every one */

struct affinity_sum { /* read back from the kernel */
    int processes, threads;
    struct mask in_force; /* CPUs that at least one of the threads may use */
};

/* Remembers the process under `tag`; one that is known already stays as it was. -ESRCH: gone meanwhile; -ENOSPC: the table is full;
 * -errno. */
int affinity_take(struct watch_table *t, int tag, pid_t pid, uint64_t start, pid_t parent, struct err *e);

/* Sets all threads of a process that was taken, until two walks over them in a row find nothing to change, and adds what is in
 * force then. How many threads were changed; -ESRCH: the process is gone; -EINVAL: it may use none of these CPUs; -errno. */
int affinity_put(struct watch_mask *entry, const struct mask *want, struct affinity_sum *sum, struct err *e);

/* Every process of `tag` gets back what was found, children that nobody has looked at yet included. -errno of the last that could
 * not be given back, after all others were: those stay in the table (WATCH_LEFT), nothing else of the tag does. */
int affinity_give_back(struct watch_table *t, int tag);

#endif
