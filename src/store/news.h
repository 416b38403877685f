/* What has changed in a store since it was read last, found without reading all of it again: for readers that look every half second. As
 * in store.h, texts of a walk live as long as the callback. */
#ifndef STORE_NEWS_H
#define STORE_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* A number that differs from the one before where another connection has committed since. Read it before what it is to tell of. */
int news_version(struct store *s, int64_t *out, struct err *e);

/* What a trial's row has changed in, whatever became of it: from an index alone. In the order of no number. */
struct news_mark {
    int number;
    const char *state;
    double metric, seconds;
    bool violates;
};
int news_marks(struct store *s, int64_t study, int (*row)(void *ctx, const struct news_mark *m), void *ctx,
               struct err *e);

/* The study's line of store_list(), without its texts (NULL). 1 found, 0 none. */
int news_summary(struct store *s, int64_t study, struct store_summary *out, struct err *e);

/* Decisions and chunks of the tuner's log behind *seq, which goes on to the last of them. */
int news_decisions(struct store *s, int64_t study, int64_t *seq, int (*row)(void *ctx, const struct store_decision *d),
                   void *ctx, struct err *e);
int news_tuner_log(struct store *s, int64_t study, int64_t *seq, int (*row)(void *ctx, const char *text), void *ctx,
                   struct err *e);

#endif
