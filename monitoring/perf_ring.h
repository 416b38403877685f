/* The ring of memory in which the kernel leaves samples: the records of one CPU, as <linux/perf_event.h> lays them out. */
#ifndef MONITORING_PERF_RING_H
#define MONITORING_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_ring {
    void *memory;     /* the kernel's page, then `size` bytes of records; borrowed */
    size_t size;      /* a power of 2 */
    const char *data; /* private, as the next: the records; what is being read */
    uint64_t at, to;
};

enum perf_ring_kind {
    PERF_RING_SAMPLE, /* `pid` was at `address` */
    PERF_RING_MAPPED, /* `pid` mapped memory that can be executed */
    PERF_RING_LOST,   /* records were lost */
};

struct perf_ring_record {
    enum perf_ring_kind kind;
    pid_t pid; /* of the process; that of a lost one is 0 */
    uint64_t address;
};

/* From the oldest record that was not given back, to the newest there is now: again, if it was called before. */
void perf_ring_begin(struct perf_ring *r);

/* The next record of a kind above; false: that was all. A length that cannot be ends the reading, as lost. */
bool perf_ring_next(struct perf_ring *r, struct perf_ring_record *out);

/* Gives back to the kernel all that there was at perf_ring_begin(). */
void perf_ring_end(struct perf_ring *r);

#endif
