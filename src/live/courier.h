/* Carries files to the helpers of other hosts and back. Of each node one thing is done at a time, in the order in which it was asked for; a link
 * that breaks holds it up, and it begins anew when the helper is there again. What a host says is believed as little as what is in a file: its
 * names are checked, nothing is taken that is larger than it said, or than COURIER_MAX. */
#ifndef LIVE_COURIER_H
#define LIVE_COURIER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "live/nodes.h"
#include "live/parcel.h"

static const int64_t COURIER_MAX = (int64_t)4 << 30; /* bytes of all files of one checkpoint */

struct courier;

/* Called from the loop, never from within a call below: it has come to its end, well (`why` NULL) or not. */
typedef void courier_done(void *ctx, uint64_t id, const char *why);

/* Keeps `nodes`. -ENOMEM. */
int courier_open(struct courier **out, struct nodes *nodes, struct err *e);
void courier_close(struct courier *c); /* before the nodes; nothing is told of what is under way. NULL is fine */

/* Sends what of the parcel (kept until then) the node has not yet. The id; 0: memory. */
uint64_t courier_send(struct courier *c, size_t node, const struct parcel *p, courier_done *done, void *ctx);

/* Fetches a file or folder of a launch, by its name below the launch's folder, to the path `to` here: it is there when it is whole, in the place
 * of what was there before, and as it was at one moment there. The id; 0: memory. */
uint64_t courier_fetch(struct courier *c, size_t node, const char *tag, const char *name, const char *to,
                       courier_done *done, void *ctx);

/* Nothing is told of it any more. */
void courier_cancel(struct courier *c, uint64_t id);

/* What a host says of one file that is to be fetched, "SIZE MTIME_NS NAME": its name, within `text`; NULL: it is not to be believed. */
const char *courier_entry(const char *text, int64_t *out_size);

/* To be called a few times a second: what could not be asked for is. */
void courier_tick(struct courier *c);

#endif
