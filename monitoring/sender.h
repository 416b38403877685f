/* The sender: lines in, jobs out, and every line accounted. Pure: it opens nothing and knows no clock; time is a parameter (any clock
 * that only goes forward, in milliseconds), its jobs are done by others (monitoring/sender_io).
 *
 * Lines gather in a ring of batches in memory. A batch that is full or old enough is sent. While the server does not take them, batches
 * that grow old, or that the ring has no room for, go to the spool on disk, and come back from it when the server answers again, in
 * turn with new ones. What the server rejects is halved until the line that is why stands alone; it goes to the quarantine file.
 *
 * While the server takes everything, up to `in_flight` batches are being sent at once, in no order: points carry their time. While it
 * does not, or a batch is being halved, nothing is sent beside it, so that one answer stops all; and those that were under way when it
 * stopped are of the same outage, whatever they end with.
 *
 * At every moment: produced = stored + spooled + quarantined + dropped + waiting; at the end nothing waits. */
#ifndef MONITORING_SENDER_H
#define MONITORING_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "monitoring/influx_answer.h"

enum { SENDER_IN_FLIGHT_MAX = 8 };

/* Zeros stand for what is in brackets. */
struct sender_cfg {
    unsigned in_flight;   /* [1] batches that are being sent at once, at most SENDER_IN_FLIGHT_MAX */
    uint32_t batch_lines; /* [5000] of one batch, at most INFLUX_LINES_MAX */
    size_t batch_bytes;   /* [1 MiB] */
    int64_t age_ms;       /* [1000] a batch that is not full waits so long for more */
    size_t ring_bytes; /* [16 MiB] in memory, but for batches that are being sent; beyond half of it batches go to the
                           * spool; beyond it the oldest is dropped */
    int64_t spool_after_ms; /* [10000] a batch older than this goes to the spool when the server takes nothing */
    int64_t sync_ms;        /* [1000] what was spooled is synced after so long */
    int64_t backoff_ms;     /* [1000] doubled with each failure; the wait is even between 0 and that */
    int64_t backoff_max_ms; /* [60000] */
    int64_t pause_ms;       /* [60000] between two tries while paused */
    int64_t spool_retry_ms; /* [5000] after the disk did not take a batch */
    unsigned rejects_max;   /* [64] rejected parts of one batch, after which what is rejected is quarantined as it is */
    bool spool;             /* there is one */
    uint64_t spooled;       /* lines in it at the start */
    uint64_t spool_dropped; /* spool_counts().dropped at the start */
    uint64_t seed;          /* of the waits */
};

struct sender_counts {
    uint64_t produced;    /* lines given, and `found` */
    uint64_t found;       /* lines that were in the spool at the start */
    uint64_t stored;      /* the server says it has them */
    uint64_t spooled;     /* in the spool, for later */
    uint64_t quarantined; /* in the quarantine file */
    uint64_t dropped;     /* the sum of the next five */
    uint64_t dropped_ring, dropped_spool, dropped_server, dropped_quarantine, dropped_memory;
    uint64_t waiting;                   /* in memory */
    uint64_t requests, retries, halved; /* of sending */
};

/* produced = stored + spooled + quarantined + dropped + waiting? */
bool sender_balanced(const struct sender_counts *c);

enum sender_act {
    SENDER_SEND,       /* bytes to the server: `answer` */
    SENDER_SPOOL,      /* bytes into the spool: rc */
    SENDER_FETCH,      /* the oldest batch of the spool: rc 1 and `fetched`, or 0 */
    SENDER_FORGET,     /* the batch that was fetched last, by its id */
    SENDER_QUARANTINE, /* bytes into the quarantine file, with `answer` as the reason: rc */
    SENDER_SYNC,       /* the spool to the disk: rc */
};

/* One thing to be done. The sender fills in the first part, who does it the second. */
struct sender_job {
    enum sender_act act;
    unsigned lane;     /* jobs of different lanes may be done at the same time; all but SENDER_SEND are of lane 0 */
    const char *bytes; /* whole lines; valid until sender_done() */
    size_t len;
    uint32_t lines;
    uint64_t id;

    int rc;                      /* negative errno when it failed */
    struct influx_answer answer; /* of SENDER_SEND; for SENDER_QUARANTINE an input */
    struct buf fetched;          /* becomes the sender's */
    uint32_t fetched_lines;
    uint64_t front, dropped; /* spool_id() and spool_counts().dropped after it */
    char why[256];           /* of a negative rc */
};

struct sender;

struct sender *sender_new(const struct sender_cfg *cfg); /* NULL: memory */
void sender_free(struct sender *s);

/* Takes `lines` whole lines (each ends with a newline), at most batch_lines of them. Never fails: what finds no room, or no memory,
 * is counted. */
void sender_push(struct sender *s, int64_t now_ms, const char *bytes, size_t len, uint32_t lines);

/* 1: do *out, then call sender_done(); meanwhile there may be more to do beside it, of another lane. 0: nothing to do before
 * *out_wake_ms (INT64_MAX: before the next push or done). */
int sender_next(struct sender *s, int64_t now_ms, struct sender_job **out, int64_t *out_wake_ms);
void sender_done(struct sender *s, int64_t now_ms, struct sender_job *job);

/* From now on nothing is pushed. What can be is delivered until `deadline_ms`; then, or at once when the server is known to take
 * nothing, the rest goes to the spool. sender_next() goes on giving jobs until sender_ended(). */
void sender_close(struct sender *s, int64_t now_ms, int64_t deadline_ms);
bool sender_ended(const struct sender *s);

struct sender_counts sender_counts(const struct sender *s);

/* What people should be told: a sentence per change of state (delivering, retrying, paused and why), and per kind of loss once between
 * two changes. True: `text` holds the next one. */
bool sender_note(struct sender *s, char *text, size_t room);

#endif
