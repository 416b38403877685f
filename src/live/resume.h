/* Which checkpoint a trial goes on from. */
#ifndef LIVE_RESUME_H
#define LIVE_RESUME_H

#include <stdbool.h>

#include "store/store.h"

struct resume_point {
    char *model, *state; /* paths */
    int epochs;          /* finished in it */
};

void resume_done(struct resume_point *r);

/* The newest checkpoint below `dir` (DIR/YYYYMMDD_HHMMSS/model.N with its optimMethod-….N) that stands at an epoch's end
 * that the store knows, and from which no attempt has failed to go on. 1 found, 0 none (begin anew), negative: error. */
int resume_find(struct store *s, int64_t trial, const char *dir, struct resume_point *out, struct err *e);

/* The same of an application that tells of its checkpoints, or else writes them to `dir` at each epoch's end: the newest that is there. */
int resume_find_told(struct store *s, int64_t trial, const char *dir, bool writes_dir, struct resume_point *out,
                     struct err *e);

struct resume_checkpoint {
    const char *model, *state; /* paths, valid during the call; one of them NULL: it is not whole */
    int64_t n;                 /* iterations + 1: the newer, the greater */
    int epoch;                 /* at whose end it stands; 0: none that the store knows */
    bool usable;               /* resume_find() would go on from it, where there is no newer one */
};

/* Each of them below `dir`, in no order. A callback that returns non-zero ends the walk, which returns that. */
int resume_each(struct store *s, int64_t trial, const char *dir,
                int (*each)(void *ctx, const struct resume_checkpoint *w), void *ctx, struct err *e);

/* The checkpoint of this model once more, without `epochs`. -ENOENT: it is not whole any more; -ENOMEM. */
int resume_again(const char *model, struct resume_point *out);

#endif
