/* What people say of a study or of a trial: short texts, each kept once. As in store.h: each call is its own transaction unless it stands
 * between store_begin() and store_commit(). None needs the study's lock: no driver reads or writes them. */
#ifndef STORE_NOTES_H
#define STORE_NOTES_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct store_note {
    int64_t study;
    int trial; /* its number; 0: the study as a whole */
    int64_t at_ms;
    const char *text;
};

/* One that is there already stays as it is. -ENOENT: no such study. */
int store_note_put(struct store *s, const struct store_note *row, struct err *e);

/* `text` NULL: all of that trial, or of the study as a whole. *out_n: how many there were. */
int store_note_forget(struct store *s, int64_t study, int trial, const char *text, int *out_n, struct err *e);

/* By trial, those of one by when they were said. `trial` -1: of all, and the study's. */
int store_notes(struct store *s, int64_t study, int trial, int (*row)(void *ctx, const struct store_note *r), void *ctx,
                struct err *e);

#endif
