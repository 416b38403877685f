/* Meters read at regular times, each on the worker, one read of a meter at a time. For those of the network in a study, and for all of
 * `pipetune monitor`. */
#ifndef LIVE_METERING_H
#define LIVE_METERING_H

#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "monitoring/meter.h"

struct metering;

struct metering_ops {
    /* What was read, as it came; from the loop, never from within a call below. */
    void (*read)(void *ctx, const struct meter_ops *meter, const struct meter_reading *r);
    /* One line for people: a meter cannot be read, or is implausible, for a node, and why, at most once a minute of each; of those that begin
     * in one round the first speaks for all. That all can be read again, where it was told that some cannot. */
    void (*note)(void *ctx, const char *text);
};

/* Keeps `loop`, `ops` and `ctx`. NULL: memory. */
struct metering *metering_new(uv_loop_t *loop, int interval_ms, const struct metering_ops *ops, void *ctx);

/* Opens one and reads it from now on: at once, and at multiples of the interval since the first one was added; a tick that finds it still
 * being read, or that the loop comes to too late, is missed. `cfg` is borrowed until metering_free()'s last callback. What
 * meter_ops.open() says; -ENOMEM. */
int metering_add(struct metering *m, const struct meter_ops *meter, const struct meter_cfg *cfg, struct err *e);

/* The same; one that cannot be opened is told by `note`, from within, and left out. -ENOMEM. */
int metering_try(struct metering *m, const struct meter_ops *meter, const struct meter_cfg *cfg, struct err *e);

uint64_t metering_missed(const struct metering *m); /* ticks, of all meters together */

/* How often the meter that was read least often has been read; UINT64_MAX where there is none. */
uint64_t metering_rounds(const struct metering *m);

/* Reads that are under way end first; handles are closed by the loop. NULL is fine. */
void metering_free(struct metering *m);

#endif
