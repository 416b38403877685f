/* The batch that is being delivered: which parts of it are not settled yet, halved as far as need be. Pure. */
#ifndef MONITORING_SENDER_HAND_H
#define MONITORING_SENDER_HAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { HAND_PARTS_MAX = 40 }; /* more than halving a batch of 2^32 lines leaves at once */

struct hand_part {
    size_t from, to; /* bytes of the text, whole lines */
    uint32_t lines;
};

struct hand {
    struct buf text;
    uint32_t lines;                         /* of all; 0: the hand is empty */
    uint64_t spool_id;                      /* it is still in the spool, under this name; 0: it is nowhere else */
    struct hand_part parts[HAND_PARTS_MAX]; /* not settled; the last is next */
    size_t n;
    unsigned rejected; /* parts that were */
};

/* Takes the text. An empty one leaves the hand empty. */
void hand_take(struct hand *h, struct buf *text, uint32_t lines, uint64_t spool_id);
void hand_done(struct hand *h); /* empties it */

/* The next part; there must be one. */
struct hand_part *hand_next(struct hand *h);
void hand_settle(struct hand *h);

/* Puts two halves in the place of the next part, which has two lines or more: at the middle line, or at the line nearest to the middle
 * byte. */
enum hand_cut { HAND_BY_LINES, HAND_BY_BYTES };
void hand_halve(struct hand *h, enum hand_cut by);

/* Lines that are not settled. */
uint32_t hand_left(const struct hand *h);

/* Appends the lines that are not settled. */
void hand_rest(const struct hand *h, struct buf *out);

#endif
