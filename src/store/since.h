/* What has come since: for those who follow a store while others write to it. Positions are the store's own numbers, so that they mean the
 * same to the next process. Nothing here writes. */
#ifndef STORE_SINCE_H
#define STORE_SINCE_H

#include "store/store.h"

/* The calls between see the store at one moment. */
int store_read_begin(struct store *s, struct err *e);
void store_read_end(struct store *s);

/* An attempt, with whose it is. */
struct store_since {
    int64_t id, trial, study;
    char *name; /* the study's; texts are valid during the call */
    int number; /* the trial's */
    int attempt;
    char *state, *outcome;
};
typedef int store_since_row(void *ctx, const struct store_since *n);

/* Of a study, 0: of all. At most `max` that came after the attempt of id `after`; those that are not ended; the one of an id (1, 0: there is
 * none). */
int store_attempts_after(struct store *s, int64_t study, int64_t after, int max, store_since_row *row, void *ctx,
                         struct err *e);
int store_attempts_open(struct store *s, int64_t study, store_since_row *row, void *ctx, struct err *e);
int store_attempt_news(struct store *s, int64_t id, store_since_row *row, void *ctx, struct err *e);

/* Epochs of this attempt after `epoch`. */
int store_epochs_after(struct store *s, const struct store_since *of, int epoch,
                       int (*row)(void *ctx, const struct store_epoch *r), void *ctx, struct err *e);
int store_decisions_after(struct store *s, int64_t study, int64_t seq, int max,
                          int (*row)(void *ctx, const struct store_decision *d), void *ctx, struct err *e);

/* The greatest id of an attempt, and number of a decision of the study; 0: none. */
int store_newest(struct store *s, int64_t study, int64_t *out_attempt, int64_t *out_decision, struct err *e);

/* A sum over the ids and states of all studies: another when one came, went, began or ended. */
int store_studies_sum(struct store *s, uint32_t *out, struct err *e);

/* Epochs that a study's trials have completed. */
int store_epochs_count(struct store *s, int64_t study, int64_t *out, struct err *e);

#endif
