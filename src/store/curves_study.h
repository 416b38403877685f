/* A study of the store as a table of curves. */
#ifndef STORE_CURVES_STUDY_H
#define STORE_CURVES_STUDY_H

#include "base/buf.h"
#include "store/store.h"

/* Appends the table's lines (core/curves.h): of each trial that has completed an epoch and did not take another's result, as far as it was trained.
 * Returns how many trials that are; -ENOMEM, and what the store says. */
int curves_put_study(struct buf *out, struct store *s, const struct store_study *study, struct err *e);

#endif
