/* One machine of a study: its helper is started, greeted, kept by leases, asked, and given up (or, here, started again) when
 * it ends, is silent, or speaks something else. */
#ifndef LIVE_NODE_PEER_H
#define LIVE_NODE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/strv.h"
#include "live/node_words.h"

struct node_peer;

enum node_state {
    NODE_STARTING, /* its hello is not answered yet */
    NODE_READY,
    NODE_AGAIN, /* ended; it is started again at a later tick */
    NODE_LOST,
};

/* `peer` is the number given at the start. */
struct node_peer_ops {
    void (*ready)(void *ctx, size_t peer); /* the hello was answered: it may be asked */
    void (*seen)(void *ctx);               /* what it has was noted in the table */
    void (*sampled)(void *ctx, size_t peer, const char *tag, const struct nodes_sample *s);
    void (*metered)(void *ctx, size_t peer, const struct nodes_reading *r);
    void (*ended)(void *ctx, size_t peer); /* now NODE_AGAIN or NODE_LOST; `note` has told why */
    void (*note)(void *ctx, const char *text);
    /* Of launches: an answer to what was asked with this stamp, and an event. */
    void (*answered)(void *ctx, size_t peer, uint64_t stamp, const struct node_words *w);
    void (*launched)(void *ctx, size_t peer, const struct node_words *w);
};

/* `name` is how notes call it ("node 'w1'"); what it has of launches is noted in `table` (kept, as `workers` is); `argv` is taken, on failure too. One that is `local` is started again when it
 * ends. Nothing is started before node_peer_begin(). -ENOMEM. */
int node_peer_new(struct node_peer **out, uv_loop_t *loop, const char *name, bool local, struct strv *argv,
                  struct desired *table, const struct app_workers *workers, const struct node_peer_ops *ops, void *ctx,
                  size_t number, struct err *e);

/* Starts the helper, unless it was given up; a failure is told by `note` and `ended`, perhaps from within. */
void node_peer_begin(struct node_peer *p);

/* It is not to be used, for a reason of the caller's that `note` then tells. */
void node_peer_give_up(struct node_peer *p, const char *why);

/* Lets the helper give everything back and end. */
void node_peer_free(struct node_peer *p);

/* To be called a few times a second: leases, time-outs, starting again. `late` says that the loop itself has been held up, so
 * that silence proves nothing. */
void node_peer_tick(struct node_peer *p, bool late);

/* Only of one that is NODE_READY; what is answered is noted in the table. 0, or -errno: it was not asked. */
int node_peer_ask(struct node_peer *p, const struct desired_ask *a);

/* A request that node_words made with the id that node_peer_next_id() says; `answered` comes with its stamp. As node_peer_ask(). */
uint64_t node_peer_next_id(const struct node_peer *p);
int node_peer_say(struct node_peer *p, const struct buf *text, enum node_verb verb, uint64_t stamp);

/* Launches of ours are there: its helper is started again for as long as it takes. */
void node_peer_keep(struct node_peer *p, bool keep);

/* Where there is no program at the path of its helper, the one at this path is started instead, from then on; keeps `path`. */
void node_peer_or(struct node_peer *p, const char *path);

/* What its answer refuses is told by `note`, once per meter. */
void node_peer_meter(struct node_peer *p, const struct nodes_metering *how);

enum node_state node_peer_state(const struct node_peer *p);
const char *node_peer_name(const struct node_peer *p);
const struct node_hello *node_peer_hello(const struct node_peer *p); /* NULL before it was answered */

/* Seconds by which its clock is ahead of ours; NAN before the hello. */
double node_peer_clock_offset_s(const struct node_peer *p);

#endif
