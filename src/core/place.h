/* Which CPUs of one machine belong to which trial, or to another driver: disjoint sets, taken in the order the machine gives
 * (physical cores first). Pure. */
#ifndef CORE_PLACE_H
#define CORE_PLACE_H

#include <stdbool.h>

enum { PLACE_MAX_CPUS = 4096, PLACE_OTHERS = -1 };

struct place {
    int n;
    int cpu[PLACE_MAX_CPUS];   /* in the order they are given out */
    int owner[PLACE_MAX_CPUS]; /* a trial's number; 0: free; PLACE_OTHERS: another driver has it */
};

/* Knows these CPUs from now on; those that were given out stay with their owners where they are still there. */
void place_set(struct place *p, const int *cpus, int n);

/* The trial gets `want` CPUs: those it has already come first, then free ones; what is too much goes back. How many it has then,
 * which may be fewer; they are in out[]. */
int place_take(struct place *p, int trial, int want, int out[PLACE_MAX_CPUS]);

void place_free(struct place *p, int trial);

/* Another driver has the CPU, or no longer. Nothing when it is a trial's. */
void place_mark(struct place *p, int cpu, bool others);

/* Another driver was quicker: the CPU is no trial's. */
void place_lose(struct place *p, int cpu);

bool place_has(const struct place *p, int trial);

/* Has another driver any of them? */
bool place_is_divided(const struct place *p);

/* CPUs that the trial could have: its own and the free ones. */
int place_room(const struct place *p, int trial);

#endif
