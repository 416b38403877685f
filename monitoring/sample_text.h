/* One sample as text: its cells in the order of features.h, one space between them.
 *
 *     123.5         ok
 *     123.5/0.43    multiplexed: the scaled value, and the share of the time that it was counted, above 0 and at most 1
 *     n u d f       not_counted, unsupported, denied, no_fd
 *     -             absent; those behind the last that is not absent are left out, so nothing at all is ""
 *
 * Values are 0 or above, and written with the digits that read back; scaled ones, which are estimates, with ten of them and their
 * ratio with four. Pure. */
#ifndef MONITORING_SAMPLE_TEXT_H
#define MONITORING_SAMPLE_TEXT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/reading.h"

/* Appends `n` cells. What claims to be counted and has no such value, or no such ratio, is written as not_counted. */
void sample_put(struct buf *to, const struct reading *v, size_t n);

/* Reads at most `n` cells; the rest of `out` is absent. -EINVAL: more cells, or one that is none; `out` is untouched then. */
int sample_read(struct reading *out, size_t n, const char *text, struct err *e);

#endif
