/* Checkpoints that a trial told of, until the store has them: what was told while one transaction is on its way goes into the next. */
#ifndef LIVE_CHECKPOINTS_H
#define LIVE_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"
#include "store/store.h"

struct checkpoints {
    struct checkpoint_told *v;
    size_t n, cap;
    size_t n_put;         /* so many of them are in a transaction */
    struct strv replaced; /* files of those that newer ones have replaced there */
};
void checkpoints_done(struct checkpoints *c);

/* It was written whole at the end of this epoch. -ENOMEM. */
int checkpoints_add(struct checkpoints *c, int epoch, const char *path);

/* Stores what was told since, where it is, inside the caller's transaction, and forgets those that two newer ones have replaced. When that is
 * committed, checkpoints_stored(): their files go, where they are files in `dir`, the trial's folder for them. */
int checkpoints_put(struct checkpoints *c, struct store *s, int64_t trial, int attempt, struct err *e);
void checkpoints_stored(struct checkpoints *c, const char *dir);

#endif
