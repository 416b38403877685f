/* What people said of studies and trials by `tag`, for the commands that show them. */
#ifndef VIEW_NOTES_H
#define VIEW_NOTES_H

#include "base/json.h"
#include "store/notes.h"

/* Texts of a trial (its number; 0: the study as a whole), an array that is empty where there are none. NULL: *e says why. */
json_t *notes_json(struct store *s, int64_t study, int trial, struct err *e);

/* "tags: good; before lunch" into `out`, after "; " or whatever `before` is if there is something in it; nothing where there are none. */
int notes_put(struct buf *out, const char *before, struct store *s, int64_t study, int trial, struct err *e);

/* A line of them each, as core/expr has lists. */
int notes_put_lines(struct buf *out, struct store *s, int64_t study, int trial, struct err *e);

#endif
