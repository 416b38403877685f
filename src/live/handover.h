/* live/handing beside the loop: round after round, by a worker, while the study runs; no loop waits for it. What a server that is away has not got
 * is in the store, and is handed on when it is there again, by this driver or whoever comes later. Optional: every call takes NULL, which is what
 * there is where the config names no server. */
#ifndef LIVE_HANDOVER_H
#define LIVE_HANDOVER_H

#include <uv.h>

#include "live/study.h"

struct handover;

/* *out is NULL where the config names no server, and where another process hands the study on, which is told. `note` is called with one line for
 * people, from the loop: the server is away, is there again, refuses something. As handing_open(). */
int handover_open(struct handover **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                  void *ctx, struct err *e);
bool handover_is_away(const struct handover *h); /* the server was not there when it was asked last */
void handover_close(
    struct handover *h); /* handles are closed by the loop; a request that is under way is waited for there */

#endif
