/* The ledger of room: machines with their CPUs and memory, and who has what of them. Admission, packing and the settings that a
 * trial may be given ask it and nothing else; it is told what was leased in truth (base/lease), and what other drivers have. Pure.
 *
 * A holder is a trial, by its number (> 0); what a session kept warm has is its trial's. CPUs are given out in the order the machine
 * gives (physical cores first), those of one trial disjoint from those of others. */
#ifndef CORE_ROOMS_H
#define CORE_ROOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROOMS_MAX_CPUS = 4096, ROOMS_OTHERS = -1 };

/* A machine. */
struct room {
    int said;         /* CPUs that trials may have of it, whichever they are; 0: not known */
    double memory_gb; /* 0: not known, so that whatever is asked for fits */
    double kept_gb;   /* that trials have of it together */
    int n;            /* CPUs known by number; 0: not yet */
    int *cpu;         /* in the order they are given out */
    int *holder;      /* of each: a trial; 0: free; ROOMS_OTHERS: another driver has it */
    bool closed;      /* no trial is to be started there now */
    bool lost;        /* … nor ever again */
    int share;        /* CPUs that our trials may have together; 0: as many as there are */
    int guests;       /* other drivers that ask for CPUs: who is asked keeps its share, the CPUs divided by drivers */
};

/* What a trial has beside CPUs of its own. */
struct rooms_lease {
    int trial;
    size_t node;
    double memory_gb;
    int shares; /* it uses this many of the first CPUs, whoever has them; 0: only its own */
};

struct rooms { /* zeroed: no machine */
    struct room *nodes;
    size_t n, cap;
    struct rooms_lease *leases;
    size_t n_leases, cap_leases;
    size_t *by_trial; /* where its lease is, plus 1; 0: it has none */
    size_t n_by_trial;
};

/* What a trial asks for. */
struct rooms_want {
    int cpus;         /* at least; 0: none that it has not already */
    double memory_gb; /* of all its processes together */
};

void rooms_done(struct rooms *r);

/* One more machine, r->nodes[r->n - 1]. -ENOMEM. */
int rooms_add(struct rooms *r, int said, double memory_gb);

/* Its CPUs are known from now on (as many as ROOMS_MAX_CPUS); those that were given out stay with their holders where they are
 * still there. -ENOMEM. */
int rooms_know(struct rooms *r, size_t node, const int *cpus, int n);

/* --- what changes hands --- */

/* The trial gets `want` CPUs, but one at most beyond our share: those it has already come first, then free ones; what is too much goes back. How many it has then,
 * which may be fewer; they are in out[]. It shares none any more when it has any. */
int rooms_take(struct rooms *r, size_t node, int trial, int want, int out[ROOMS_MAX_CPUS]);

/* There is none for it: it uses the first ones, with whoever has them. How many; -ENOMEM. */
int rooms_share(struct rooms *r, size_t node, int trial, int want, int out[ROOMS_MAX_CPUS]);

/* The trial is there from now on: what it has elsewhere is free. -ENOMEM. */
int rooms_put(struct rooms *r, size_t node, int trial);

/* Where it is; the first machine when that was not said. */
size_t rooms_node(const struct rooms *r, int trial);

/* So much memory is the trial's until it is over, in place of what it had. -ENOMEM. */
int rooms_keep(struct rooms *r, size_t node, int trial, double memory_gb);

void rooms_free(struct rooms *r, int trial); /* it is over */

/* The holder that process k of a trial is: itself for the first, so that each has CPUs of its own, on any machine. */
int rooms_member(int trial, size_t k);
int rooms_trial(int holder); /* whose it is */

/* Another driver has the CPU, or no longer. Nothing when it is a trial's. */
void rooms_mark(struct rooms *r, size_t node, int cpu, bool others);

/* Another driver was quicker: the CPU is no trial's. */
void rooms_lose(struct rooms *r, size_t node, int cpu);

/* --- what is asked --- */

/* CPUs that the trial has or that are free. 0 as long as they are not known by number. */
int rooms_left(const struct rooms *r, size_t node, int trial);

/* The same, but no more than our share of the machine where that is given, or where others ask for CPUs. */
int rooms_room(const struct rooms *r, size_t node, int trial);

/* Does the trial fit on this machine beside those that are there? */
bool rooms_fits(const struct rooms *r, size_t node, int trial, struct rooms_want want);

/* Of the machines that it fits on the one with most CPUs left, of equal ones the first; -1: there is none. */
int rooms_find(const struct rooms *r, int trial, struct rooms_want want);

/* Machines for so many holders that have nothing yet, all at once, on as few machines as the largest first take. False: they do not fit, in whatever
 * way, or of many in none that was tried; out[] has n. */
enum rooms_when {
    ROOMS_NOW,
    ROOMS_SHARED, /* … if other drivers' CPUs were free */
    ROOMS_EVER,   /* … if nobody had anything, and every machine but the first and those that are lost were open */
};
bool rooms_spread(const struct rooms *r, const struct rooms_want *wants, size_t n, enum rooms_when when, size_t *out);

/* Do as many trials wait as could run beside one of ours, each of them on so many CPUs? One that would find fewer counts, too, since it
 * is given those. */
bool rooms_enough_wait(const struct rooms *r, double cpus, uint64_t waiting);

int rooms_cpus(const struct rooms *r, size_t node); /* that trials may have, as far as is known; 0: not known */
bool rooms_has(const struct rooms *r, size_t node,
               int trial); /* any CPU of its own? ROOMS_OTHERS: has another driver any? */

/* How many of the first CPUs the trial, by any of its processes, uses with others; trial 0: the most that any of ours does. */
int rooms_shares(const struct rooms *r, size_t node, int trial);

#endif
