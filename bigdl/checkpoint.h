/* Which checkpoint to go on from: names of BigDL's checkpoint files, judged by text alone. */
#ifndef BIGDL_CHECKPOINT_H
#define BIGDL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/app.h"

/* A file in DIR/YYYYMMDD_HHMMSS/: "model.469" or "optimMethod-Sequential1a2b.469". */
enum app_part checkpoint_classify(const char *file, int64_t *out_n); /* n = iterations + 1 */

/* YYYYMMDD_HHMMSS, so that text order is time order. */
bool checkpoint_is_folder(const char *name);

#endif
