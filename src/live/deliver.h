/* Lines on their way to an InfluxDB (or, for "udp://HOST:PORT", a Telegraf): into the store's outbox first, with the transaction that comes
 * next; from there to the server, when monitoring/sender says, by workers; and out of the outbox with the transaction after the server's
 * answer. Optional everywhere: what cannot be delivered stays in the outbox, and nobody else waits for it. */
#ifndef LIVE_DELIVER_H
#define LIVE_DELIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "core/config.h"
#include "live/writer.h"

/* All is copied. */
struct deliver_cfg {
    const char *url, *database,
        *bucket; /* as in monitoring/influx; with neither database nor bucket the database is "energy" */
    const char *org, *retention, *credential_file, *ca_file; /* NULL: none */
    bool allow_plain;                                        /* the credential may go to another machine over http:// */
};

/* As a config's section "influxdb" has it. */
struct deliver_cfg deliver_cfg_of(const struct config *c);

/* Where lines are kept. All is borrowed until deliver_free(). */
struct deliver_place {
    struct store *store;
    struct writer *writer; /* of that store */
    int64_t study;         /* 0: a monitor's */
    const char *old_spool; /* the folder that an earlier version kept them in, which is taken over; NULL */
};

/* produced = stored + waiting + quarantined + dropped, at any time. */
struct deliver_counts {
    uint64_t produced;    /* lines pushed, and `found` */
    uint64_t found;       /* lines that were there at the beginning */
    uint64_t stored;      /* the server says it has them */
    uint64_t waiting;     /* in the outbox, or on their way there */
    uint64_t quarantined; /* the server rejects them: in the outbox, with the reason */
    uint64_t dropped;     /* the sum of the next four */
    uint64_t dropped_room, dropped_server, dropped_quarantine, dropped_memory;
    uint64_t requests, retries;
};

struct deliver;

struct deliver_ops {
    /* One line for people: a change of state, a loss (sender_told()). From the loop, never from within a call below. */
    void (*note)(void *ctx, const char *text);
};

/* Connects nothing yet; blocks while it counts what is there, and asks DNS for a Telegraf's host (one that is not known now is asked
 * for again with each batch). Keeps `loop`, `ops` and `ctx`, and is the store's rider. -EINVAL: the url, or database and bucket both; -EACCES:
 * the credential file; what the store and spool_take_over() say. */
int deliver_open(struct deliver **out, uv_loop_t *loop, const struct deliver_cfg *cfg,
                 const struct deliver_place *place, const struct deliver_ops *ops, void *ctx, struct err *e);

/* Would deliver_open() take the address and the credential? Makes nothing, and asks nobody. Errors as there. */
int deliver_check(const struct deliver_cfg *cfg, struct err *e);

/* Takes `lines` whole lines; never fails: what finds no room is counted. They go with the transaction that is committed next, by whomever,
 * if one is open now: with that. */
void deliver_push(struct deliver *d, const char *bytes, size_t len, uint32_t lines);

struct deliver_counts deliver_counts(const struct deliver *d);
uint64_t deliver_waiting_bytes(const struct deliver *d); /* in the outbox */

/* From now on nothing is pushed: what can be is delivered within `within_ms`, the rest stays in the outbox; then `ended` is called from the
 * loop, once. A request that is under way at that time is waited for, ten seconds at most. */
void deliver_end(struct deliver *d, int64_t within_ms, void (*ended)(void *ctx));

/* After `ended`, or for a deliver that is not to be waited for: handles are closed by the loop. Before the writer is. NULL is fine. */
void deliver_free(struct deliver *d);

/* Every line that was made is at the server: none waits, was rejected or lost. */
bool deliver_complete(const struct deliver_counts *c);

/* "produced 1200 = stored 1200 + waiting 0 + quarantined 0 + dropped 0" */
void deliver_account(const struct deliver_counts *c, char *text, size_t room);

#endif
