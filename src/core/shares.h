/* How studies of a queue share the CPUs of a machine: who gets the next one. Pure.
 *
 * Strictly by priority: what a study of a higher one can use, no other gets. Among equals each has room for one trial first, in the order they
 * were submitted; what is left goes, trial by trial, to the one that it shortens most. Nothing is left over that any study could use. */
#ifndef CORE_SHARES_H
#define CORE_SHARES_H

#include <stddef.h>

struct share {
    int priority;
    int most;      /* CPUs that it could use now */
    int grain;     /* … of one of its trials; >= 1 */
    double need_s; /* CPU-seconds that it still needs; NAN: not known */
    int cpus;      /* out: its share */
};

/* Divides `cpus` among studies that stand in the order of their submission. A study that has nothing yet takes less than its grain where no
 * more is left: one trial beside others' is launched on what there is. */
void shares_divide(struct share *v, size_t n, int cpus);

#endif
