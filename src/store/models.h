/* Models in the store: texts by name, each with a version, so that of two who change the same model at once none loses what the
 * other wrote:
 *
 *     read it with its version → change it → put it back with that version → -EAGAIN: read it again, and so on
 *
 * Nothing here reads the text but to keep it. */
#ifndef STORE_MODELS_H
#define STORE_MODELS_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* 1 found, 0 none: then nothing is set. *out_json is the caller's to free. -ENOMEM, and what a read of the store says. */
int store_model_get(struct store *s, const char *name, char **out_json, int64_t *out_version, struct err *e);

/* Stores the text when the model still has the version `expected`; 0: when there is no model of that name. Its new version goes to
 * *out_version (NULL: not asked for). -EAGAIN: somebody else changed or made it meanwhile; nothing was written, and a
 * transaction that stands around the call may go on. -EINVAL: name or text is NULL. And what store_begin() lists. */
int store_model_put(struct store *s, const char *name, const char *json, int64_t expected, int64_t *out_version,
                    struct err *e);

/* By name, in the order of bytes. */
int store_models(struct store *s, int (*row)(void *ctx, const char *name, int64_t version), void *ctx, struct err *e);

#endif
