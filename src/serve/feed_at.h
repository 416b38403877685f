/* Where a follower of a store stands, as a text: the id of an event. All of it are the store's own numbers, so that any server of the
 * store goes on from there, and nothing is told twice or left out:
 *
 *     STUDY.ATTEMPTS.DECISIONS.STUDIES[.ATTEMPT-EPOCH…]
 *
 * the study's id (0: all), the last attempt that was told of, the last decision of the study, the sum over all studies as hex digits, and
 * of each attempt that was under way, the last epoch. Pure. */
#ifndef SERVE_FEED_AT_H
#define SERVE_FEED_AT_H

#include <stdint.h>

#include "base/buf.h"

enum { FEED_OPEN_MAX = 1000 };

struct feed_at {
    int64_t study, attempts, decisions;
    uint32_t studies;
    struct feed_open {
        int64_t attempt;
        int epoch;
    } * open; /* owned */
    size_t n, cap;
};

/* -EINVAL, and nothing is held: it is none. -ENOMEM. */
int feed_at_parse(struct feed_at *out, const char *text);
void feed_at_put(struct buf *b, const struct feed_at *at);
int feed_at_open(struct feed_at *at, int64_t attempt,
                 int epoch); /* one more; -ENOMEM; beyond the limit it is not kept */
void feed_at_done(struct feed_at *at);

#endif
