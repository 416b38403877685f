/* Line protocol that applications send over UDP, passed on as lines that say which machine they are of. */
#ifndef LIVE_RELAY_H
#define LIVE_RELAY_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct relay;

struct relay_ops { /* from the loop, never from within a call below but relay_look() */
    /* Whole lines, in nanoseconds, with the tag `host` where a point had none. A point without a time has that of its coming. */
    void (*lines)(void *ctx, const char *bytes, size_t len, uint32_t n);
    /* One line for people: what is rejected or lost, when that begins. */
    void (*note)(void *ctx, const char *text);
};

struct relay_counts {
    uint64_t points;    /* that were line protocol */
    uint64_t rejected;  /* lines that were none */
    uint64_t lost;      /* datagrams that the kernel had no room for */
    uint64_t unwritten; /* points that were too long with their tag, or without memory */
};

/* Listens. Keeps `loop`, `host` ("": no tag), `ops` and `ctx`. What udp_in_open() says; -ENOMEM. */
int relay_open(struct relay **out, uv_loop_t *loop, const char *address, uint16_t port, const char *host,
               const struct relay_ops *ops, void *ctx, struct err *e);

uint16_t relay_port(const struct relay *r);

/* To be called every few seconds: tells what was rejected or lost since the last time, and listens again after a failure. */
void relay_look(struct relay *r);

struct relay_counts relay_counts(const struct relay *r);

/* Nothing is passed on any more; the handle is closed by the loop. NULL is fine. */
void relay_free(struct relay *r);

#endif
