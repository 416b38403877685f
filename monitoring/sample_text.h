/* One sample as older versions kept it in the store, and as their helpers still send it: text of cells in the order of features.h,
 * which then had no names; one space between two.
 *
 *     123.5         ok
 *     123.5/0.43    multiplexed: the scaled value, and the share of the time that it was counted, above 0 and at most 1
 *     n u d f       not_counted, unsupported, denied, no_fd
 *     -             absent; those behind the last that is not absent are left out, so nothing at all is ""
 *
 * Values are 0 or above. Nothing writes it any more (sample_blob.h). Pure. */
#ifndef MONITORING_SAMPLE_TEXT_H
#define MONITORING_SAMPLE_TEXT_H

#include <stddef.h>

#include "base/err.h"
#include "monitoring/reading.h"

/* Reads at most `n` cells; the rest of `out` is absent. -EINVAL: more cells, or one that is none; `out` is untouched then. */
int sample_text_read(struct reading *out, size_t n, const char *text, struct err *e);

#endif
