/* A table of curves as a trace, and back: a run of each configuration, its values in the column `accuracy` where they are to be large, else in `loss`,
 * its seconds and joules in those of epochs. What the table's first line says is `results` of the first run. */
#ifndef STORE_CURVES_TRACE_H
#define STORE_CURVES_TRACE_H

#include "core/curves.h"
#include "store/trace.h"

/* Adds the runs. -ENOMEM. */
int curves_to_trace(struct trace *out, const struct curves *c);

/* Fills *out, the file's name being for errors. -EINVAL: the trace holds no curves; -ENOMEM. */
int curves_of_trace(struct curves *out, const struct trace *t, const char *name, struct err *e);

#endif
