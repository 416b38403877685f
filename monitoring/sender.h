/* The sender: which rows of an outbox go to the server, when, and what becomes of them by its answers. Pure: it holds numbers of rows
 * and no lines, opens nothing and knows no clock; time is a parameter (any clock that only goes forward, in milliseconds).
 *
 * Rows are numbered upwards. A cursor goes through them, and takes a batch when there are enough or they have waited long enough. While
 * the server takes everything, up to `in_flight` batches are being sent at once, in no order: points carry their time. While it does not,
 * or a batch is being halved, nothing is sent beside it, so that one answer stops all; and those that were under way when it stopped are
 * of the same outage, whatever they end with. What the server rejects is halved until the line that is why stands alone. */
#ifndef MONITORING_SENDER_H
#define MONITORING_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitoring/influx_answer.h"

enum { SENDER_IN_FLIGHT_MAX = 8 };

/* Zeros stand for what is in brackets. */
struct sender_cfg {
    unsigned in_flight;     /* [1] batches that are being sent at once, at most SENDER_IN_FLIGHT_MAX */
    uint32_t batch_lines;   /* [5000] of one batch, at most INFLUX_LINES_MAX */
    size_t batch_bytes;     /* [1 MiB] */
    int64_t age_ms;         /* [1000] a batch that is not full waits so long for more */
    int64_t backoff_ms;     /* [1000] doubled with each failure; the wait is even between 0 and that */
    int64_t backoff_max_ms; /* [60000] */
    int64_t pause_ms;       /* [60000] between two tries while paused */
    unsigned rejects_max;   /* [64] rejected parts of one batch, after which what is rejected is quarantined as it is */
    uint64_t seed;          /* of the waits */
};

/* Rows with after < row <= to: as they are asked for, at most `lines` and `bytes` of them; then as they are. */
struct sender_batch {
    unsigned lane; /* jobs of different lanes may be done at the same time */
    int64_t after, to;
    uint32_t lines;
    size_t bytes;
    bool probe; /* the sender's own: is it sent to see whether the server takes data again? */
    bool hand;  /* likewise: a part of the batch that is being halved */
};

/* What is to become of a batch's rows. */
enum sender_fate {
    SENDER_KEEP,   /* they are sent again */
    SENDER_STORED, /* the server has them, or says what it dropped of them */
    SENDER_REJECT, /* it never takes them */
};

struct sender_counts {
    uint64_t stored;            /* lines that the server says it has */
    uint64_t rejected, refused; /* that it rejected; that it dropped of what it took */
    uint64_t requests, retries, halved;
};

struct sender;

struct sender *sender_new(const struct sender_cfg *cfg, int64_t first); /* rows begin above `first`; NULL: memory */
void sender_free(struct sender *s);

/* There are rows up to `top`. */
void sender_rows(struct sender *s, int64_t now_ms, int64_t top);

/* 1: fetch and send *out, then call sender_done(); meanwhile there may be more to do beside it, of another lane. 0: nothing to do before
 * *out_wake_ms (INT64_MAX: before the next call of another kind). */
int sender_next(struct sender *s, int64_t now_ms, struct sender_batch *out, int64_t *out_wake_ms);

/* Would sender_next() say 1? If not, *wake is brought forward to when it may, where that is known. */
bool sender_wants(struct sender *s, int64_t now_ms, int64_t *wake_ms);

/* What was asked for could not be fetched; it is asked for again. */
void sender_not_fetched(struct sender *s, const struct sender_batch *b);

/* `b` as it was fetched: b->to is the last row that was looked at, the rest is fetched another time. False: no line is there, nothing
 * is to be sent. */
bool sender_fetched(struct sender *s, const struct sender_batch *asked, const struct sender_batch *b);
enum sender_fate sender_done(struct sender *s, int64_t now_ms, const struct sender_batch *b,
                             const struct influx_answer *a);

/* All rows up to this one are with the server, rejected, or in a batch: nobody else is to remove any of them. */
int64_t sender_taken(const struct sender *s);

/* From now on there are no more rows, but for those that are on their way into the outbox. What can be is delivered until `deadline_ms`, and not longer once the server is known to take
 * nothing. */
void sender_close(struct sender *s, int64_t now_ms, int64_t deadline_ms);
bool sender_ended(
    const struct sender *s); /* after sender_close() and a sender_wants(): nothing is under way, nor will be */

struct sender_counts sender_counts(const struct sender *s);

/* Kinds of sentences; each is told once between two changes of state. */
enum sender_topic { SENDER_STATE, SENDER_REFUSED, SENDER_REJECTED, SENDER_FULL, SENDER_DISK, SENDER_TOPICS };

/* What happened to lines elsewhere, to be told like the rest. */
void sender_note(struct sender *s, enum sender_topic topic, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What people should be told: a sentence per change of state (delivering, retrying, paused and why), and per kind of loss once between
 * two changes. True: `text` holds the next one. */
bool sender_told(struct sender *s, char *text, size_t room);

#endif
