/* Brings the CPUs of a launch's parts into force through their cluster, where its row can (app/resize.h), without a helper on their nodes: the requests
 * are made on a worker, one round at a time; what is in force is told, never what was asked for. What can't be had is taken back, so that the
 * cluster holds nothing for it. A part that comes in the place of another is given what its launch is to have. */
#ifndef LIVE_RESIZER_H
#define LIVE_RESIZER_H

#include <uv.h>

#include "core/desired.h"
#include "live/cluster.h"

struct resizer;

/* As nodes_ops (live/nodes.h) has them; called from the loop, never from within a call below. */
struct resizer_ops {
    void (*applied)(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why);
    void (*changed)(void *ctx, const char *tag, const struct desired_have *have);
    void (*note)(void *ctx, const char *text); /* it cannot be done here at all: told once */
};

/* Copies what of `at` it needs, whose row has a `resize`; keeps `ops` and `ctx`. -ENOMEM. */
int resizer_open(struct resizer **out, uv_loop_t *loop, const struct cluster_at *at, const struct resizer_ops *ops,
                 void *ctx, struct err *e);
void resizer_close(struct resizer *r); /* what is under way ends first, with the loop. NULL is fine */

/* The launch is to have `want->cores` over all of its parts. `applied` comes once for it, unless it is replaced, or released, first. -ENOMEM. */
int resizer_apply(struct resizer *r, const struct desired_want *want, struct err *e);
void resizer_release(struct resizer *r, const char *tag); /* it is over; NULL is fine */

void resizer_tick(struct resizer *r); /* a few times a second */

#endif
