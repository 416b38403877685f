/* The batches that wait in memory, oldest first; only the last one grows. Pure. */
#ifndef MONITORING_SENDER_RING_H
#define MONITORING_SENDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct batch {
    struct batch *next;
    struct buf text; /* whole lines */
    uint32_t lines;
    int64_t since_ms; /* its first line */
    bool refused;     /* the server did not take it as it is */
};

struct ring {
    struct batch *first, *last;
    size_t bytes; /* of all of them */
};

struct batch *batch_new(int64_t now_ms); /* NULL: memory */
void batch_free(struct batch *b);

void ring_push(struct ring *r, struct batch *b);    /* takes it, behind the others */
void ring_unshift(struct ring *r, struct batch *b); /* takes it, before the others */
struct batch *ring_shift(struct ring *r);           /* gives the oldest; there must be one */

#endif
