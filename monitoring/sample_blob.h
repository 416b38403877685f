/* One sample as bytes: its cells one after the other, in the order of a list of features that is kept beside them.
 *
 *     state         1 byte (enum reading_state)
 *     value         8 bytes, IEEE 754, the lowest byte first      ok and multiplexed alone
 *     ratio         4 bytes, likewise                             multiplexed alone
 *
 * Cells behind the last that is not absent are left out, so nothing at all is no byte. Pure. */
#ifndef MONITORING_SAMPLE_BLOB_H
#define MONITORING_SAMPLE_BLOB_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/features.h"
#include "monitoring/reading.h"

/* Appends `n` cells. What claims to be counted and has no value of 0 or above, or no ratio above 0 and at most 1, is written as
 * not_counted. */
void sample_blob_put(struct buf *to, const struct reading *v, size_t n);

/* The cells of `list` that we know, each in our place; the rest of `out` is absent. -EINVAL: more cells than the list has, or bytes that
 * are none; `out` is untouched then. */
int sample_blob_read(struct reading out[FEATURES], const struct feature_list *list, const void *bytes, size_t len,
                     struct err *e);

#endif
