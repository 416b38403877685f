/* Taking out of the store what nobody needs any more. As in store.h: each call is its own transaction unless it stands between
 * store_begin() and store_commit(). */
#ifndef STORE_TIDY_H
#define STORE_TIDY_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* All of a study; nothing when there is none. What was learnt of it (models) stays. */
int store_study_remove(struct store *s, int64_t study, struct err *e);

/* What a trial did: its attempts, epochs, samples and profiles. Its row stays, as failed and for the reason "removed": what the search
 * asked and was told is what it goes on from, and its number is not given to another. */
int store_trial_remove(struct store *s, int64_t trial, struct err *e);

/* The values of a study's samples: how many bytes they are; and without them, so that CPU time and profiles are left. */
int store_samples_thick(struct store *s, int64_t study, int64_t *out_bytes, struct err *e);
int store_samples_thin(struct store *s, int64_t study, struct err *e);

/* Gives what is free in the file back to the disk. Not within a transaction. Needs as much room as the store has. */
int store_vacuum(struct store *s, struct err *e);

#endif
