/* What earlier studies taught: the store's model (clustering/model.h), which a study begins with and adds to. */
#ifndef LIVE_LEARNT_H
#define LIVE_LEARNT_H

#include "clustering/model.h"
#include "store/store.h"

struct learnt;

/* The model of that name; an empty one where the store has none. The store must outlive it. -EPROTO: it cannot be read (a newer
 * version, damaged); -ENOMEM, and what a read of the store says. */
int learnt_open(struct learnt **out, struct store *store, const char *name, struct err *e);
void learnt_close(struct learnt *m); /* NULL is fine */

/* As it is now. Borrowed until the next change. */
const struct model *learnt_model(const struct learnt *m);

/* Changes the model as it is stored now, whoever has written it since: `change` may be called on another model than the one seen
 * before. Inside the caller's transaction; one that is rolled back is noticed at the next change. A `change` that fails leaves the
 * stored one as it is. -EPROTO: what is stored cannot be read. */
int learnt_change(struct learnt *m, int (*change)(void *ctx, struct model *model, struct err *e), void *ctx,
                  struct err *e);

#endif
