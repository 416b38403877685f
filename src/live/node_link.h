/* One helper process as the loop sees it: lines to its stdin, lines from its stdout, and why it ended. */
#ifndef LIVE_NODE_LINK_H
#define LIVE_NODE_LINK_H

#include <stddef.h>
#include <uv.h>

#include "base/err.h"

struct node_link;

enum { NODE_LINK_QUEUE_MAX = 1 << 20 }; /* bytes that may wait for a helper that does not read */

/* Called from the loop, never from within a call below. */
struct node_link_ops {
    /* One line without its newline; any bytes. Valid during the call. */
    void (*line)(void *ctx, const char *line, size_t len);
    /* It is of no use any more: it ended (with its last line on stderr), or sent a line of more than NODE_LINE_MAX bytes.
     * Told once, nothing after it; node_link_close() is still due. */
    void (*lost)(void *ctx, const char *why);
};

/* Starts argv (found by PATH) in a session of its own, with nothing but its three pipes. -errno of the start. */
int node_link_start(struct node_link **out, uv_loop_t *loop, char **argv, const struct node_link_ops *ops, void *ctx,
                    struct err *e);

/* -ENOBUFS: NODE_LINK_QUEUE_MAX; -ENOMEM; -errno. That it has ended is told by `lost`. */
int node_link_send(struct node_link *l, const char *text, size_t len);

/* How it exited, once `lost` was told; -1: it did not, or by a signal. */
int node_link_exit_code(const struct node_link *l);

/* Closes the helper's stdin after what was sent, which makes it give everything back and end; TERM after 3 s, KILL after 5.
 * Nothing is called any more, and the memory goes with the process. NULL is fine. */
void node_link_close(struct node_link *l);

#endif
