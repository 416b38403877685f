/* All that was told of a trial, by name (store/series.h), as the commands that look at a store print it. */
#ifndef VIEW_METRICS_H
#define VIEW_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/series.h"

/* {name: [{"epoch","step","value"}]}: of epochs (step null) and, METRICS_ALL, of steps; a value that was not finite is null. 0 and a new
 * reference, or an error. */
enum metrics_what { METRICS_EPOCHS, METRICS_ALL };
int metrics_json(struct store *s, int64_t trial, enum metrics_what what, json_t **out, struct err *e);

/* A table for people of what has no column among the epochs', where there is any: `metric` has one. */
int metrics_put(struct store *s, int64_t trial, const char *metric, struct buf *out, struct err *e);

#endif
