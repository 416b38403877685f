/* What meters read during a study. As in store.h: each call is its own transaction unless it stands between store_begin() and store_commit(),
 * texts of a walk live as long as the callback, NAN is stored as NULL. */
#ifndef STORE_ENERGY_H
#define STORE_ENERGY_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct store_reading {
    int node;              /* 0: the driver's own machine, else the place in the config's list of nodes, from 1 */
    const char *meter;     /* a name of monitoring/meter */
    const char *state;     /* of meter_state_name() */
    double from_ms, to_ms; /* on the driver's clock */
    double value, error;   /* J, W, or s, by the meter */
};

/* Group many by store_begin() and store_commit(). -ENOENT no such study, -EINVAL a text is NULL, and what store_begin() lists. */
int store_reading_add(struct store *s, int64_t study, const struct store_reading *row, struct err *e);

/* By node, then meter, then the time they end. */
int store_readings(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_reading *r), void *ctx,
                   struct err *e);

#endif
