/* What differs between the studies of two trials: `diff` tells it beside what differs between the trials. */
#ifndef CMD_DIFF_STUDY_H
#define CMD_DIFF_STUDY_H

#include "base/json.h"
#include "store/store.h"

/* Adds to `figures`: "config.SECTION.KEY", "application.MEMBER", "version.WORD", "machine.WORD" and "code.NAME" (the beginning of the sum of a file of
 * the application's own). What the store says; -ENOMEM. */
int diff_study_put(json_t *figures, struct store *s, const struct store_study *study, struct err *e);

/* [{"name","removed","added","lines"}] of texts among these files that differ and are kept of both; lines as core/line_diff.h has them. NULL: *e says
 * why. */
json_t *diff_study_code(struct store *s, const char *a, const char *b, struct err *e);

#endif
