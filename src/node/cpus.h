/* Sets of CPUs, and the order in which they are given out. */
#ifndef NODE_CPUS_H
#define NODE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

enum { CPUS_MAX = 4096, CPUS_WORDS = CPUS_MAX / (8 * (int)sizeof(unsigned long)) };

struct mask { /* as sched_setaffinity() takes it */
    unsigned long w[CPUS_WORDS];
};

struct cpus { /* CPUs in an order */
    int v[CPUS_MAX];
    int n;
};

void mask_add(struct mask *m, int cpu); /* one that is not below CPUS_MAX adds nothing */
bool mask_has(const struct mask *m, int cpu);
bool mask_is(const struct mask *a, const struct mask *b);
void mask_join(struct mask *to, const struct mask *more);
struct mask mask_of(const int *cpus, int n);

/* Its CPUs, ascending. */
void mask_list(const struct mask *m, struct cpus *out);

/* What sched_getaffinity() says of a thread. 0 or -errno: -ESRCH, -EINVAL with more than CPUS_MAX CPUs. */
int mask_read(int tid, struct mask *out);

/* Reads the kernel's "0,2-3". Pure; what is no list ends it, and what came before counts. */
struct mask mask_parse(const char *text);

/* The CPUs of `may`, whole physical cores first: one thread of each core, ascending, then the second ones, … `sysfs` says which
 * threads share a core (devices/system/cpu/cpuN/topology/thread_siblings_list); where it does not, each counts as a core. */
void cpus_order(const char *sysfs, const struct mask *may, struct cpus *out);

#endif
