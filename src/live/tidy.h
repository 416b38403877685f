/* What stands beside the store and is not needed any more: folders of what was removed, checkpoints that newer ones have replaced.
 * Nothing here follows a link: one that is met is removed itself. */
#ifndef LIVE_TIDY_H
#define LIVE_TIDY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct tidy {
    bool dry;       /* only counts */
    uint64_t bytes; /* on the disk, freed (or to be) */
};

/* A file or a folder with all that is in it, and nothing when there is none. It is renamed first, so that nobody meets half of it: to
 * ".gone-…" beside it. -errno: what could be removed is. */
int tidy_remove(struct tidy *t, const char *path, struct err *e);

/* "12.3 MB" */
const char *tidy_bytes(uint64_t bytes, char out[32]);

/* Of a study whose lock we hold: the secrets that launches which are over were to read. What cannot be removed stays. */
void tidy_secrets(const char *study_dir);

/* … and what was heard of them, but of those that no driver has judged yet: the next one reads it. */
int tidy_heard(struct tidy *t, struct store *s, int64_t study, const char *study_dir, struct err *e);

/* The number of a trial, or "session-N", in a study's folder that is in use so: its name. Free it; NULL: none (or no memory). */
char *tidy_in_use_below(const char *study_dir);

enum tidy_keep {
    TIDY_ALL, /* every checkpoint */
    TIDY_BEST, /* of a trial that is over the best and the last, of another the two newest (and of those that it can go on from) and
                  the best */
    TIDY_NONE, /* of a trial that is over none, of another the two newest */
};
enum tidy_keep tidy_keep_find(const char *name); /* "all", "best", "none" (the key study.keep) */

/* Checkpoints of the trial below `dir`. What is not whole counts for nothing, and is removed where a newer one is whole and
 * the trial does not run: else it may be in writing. */
int tidy_checkpoints(struct tidy *t, struct store *s, const struct store_trial *trial, bool maximise,
                     enum tidy_keep keep, const char *dir, struct err *e);

#endif
