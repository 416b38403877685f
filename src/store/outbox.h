/* Lines on their way to an InfluxDB, in the store: put there in a transaction (that of what they tell of), read in order by who delivers
 * them, and taken out when the server has them. So delivery is a cursor over rows: what a killed process had not delivered is still there,
 * and only what the server took without its answer being stored is sent twice, which changes nothing: points carry their time.
 *
 * A row is a line without its newline. Its id is study << 40 | number; study 0 is a monitor's, which has a store of its own. A row that
 * the server rejected stays, with the reason. */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

/* What is there. One process at a time has the outbox of a study (who has the study's lock), so it is counted once, and then kept. */
struct outbox {
    int64_t base, top;                  /* all rows: base < id <= top */
    int64_t before;                     /* the first that waits comes after it */
    uint64_t waiting, bytes;            /* rows that are not delivered, and their bytes with newlines */
    uint64_t rejected_bytes;            /* of those that were rejected */
    uint64_t room_bytes, room_rejected; /* at most so many of both */
};

/* Rows with after < id <= to that are done with. */
struct outbox_end {
    int64_t after, to;
    uint32_t lines;
    uint64_t bytes;
    const char *reason; /* borrowed; why the server rejected them; NULL: it has them */
};

/* Rows with after < id <= to that are asked for: the oldest, at most `lines` and, but for the first, `bytes` of them. */
struct outbox_take {
    int64_t after, to;
    uint32_t lines;
    size_t bytes;
    struct buf text; /* out: appended to, each with its newline; if it fails, all of the round does */
    int64_t got_to;  /* out: what was looked at: after < id <= got_to */
    uint32_t got;    /* out: lines of `text` */
};

/* What happens to the outbox in one transaction, in this order. */
struct outbox_round {
    const char *text; /* whole lines to be put in */
    size_t len;
    uint32_t lines;
    const struct outbox_end *ends;
    size_t n_ends;
    int64_t
        spare_from; /* beyond room_bytes the oldest rows above this id are dropped: those below are being delivered */
    struct outbox_take *takes;
    size_t n_takes;
    /* out: */
    uint64_t dropped;          /* rows, for want of room */
    uint64_t dropped_rejected; /* likewise, that were rejected: not kept, either */
};

/* Counts what is in the outbox of `study`. Room for 256 MiB, and 16 MiB of what was rejected. */
int outbox_open(struct outbox *out, struct store *s, int64_t study, struct err *e);

/* Within a transaction. *out_after becomes the outbox when, and only when, that is committed. -ENOMEM and what a write says. */
int outbox_run(const struct outbox *now, struct store *s, struct outbox_round *r, struct outbox *out_after,
               struct err *e);

#endif
