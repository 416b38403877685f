/* The algorithm that our own bench says is best for the space at hand. Its row hands everything on to that one's. */
#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "search/search.h"

enum { GP_DIMS_MAX = 20 }; /* beyond, how far apart points are says little */

struct autom {
    const struct search_ops *ops;
    void *state;
};

static const struct search_ops *best_for(const struct space *sp)
{
    return sp->n_dims <= GP_DIMS_MAX ? &search_gp : &search_tpe;
}

static int auto_init(void *state, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    struct autom *a = state;
    const struct search_ops *ops = best_for(sp);
    AUTO_FREE void *inner = calloc(1, ops->state_size);
    int rc = inner ? ops->init(inner, sp, cfg, e) : err_sys(e, -ENOMEM, "search 'auto'");
    if (rc == 0)
        *a = (struct autom){ ops, MOVE_PTR(inner) };
    return rc;
}

static int auto_ask(void *state, struct proposal *out)
{
    struct autom *a = state;
    return a->ops->ask(a->state, out);
}

static int auto_add(void *state, const struct point *p, struct proposal *out)
{
    struct autom *a = state;
    return a->ops->add(a->state, p, out);
}

static int auto_tell(void *state, const struct told *t)
{
    struct autom *a = state;
    return a->ops->tell ? a->ops->tell(a->state, t) : 0;
}

static void auto_save(const void *state, struct buf *out)
{
    const struct autom *a = state;
    pack_u64(out, a->ops->version);
    a->ops->save(a->state, out);
}

static int auto_restore(void *state, struct unpack *from)
{
    struct autom *a = state;
    return unpack_u64(from) == a->ops->version ? a->ops->restore(a->state, from) : -EPROTO;
}

static void auto_done(void *state)
{
    struct autom *a = state;
    if (a->ops->done)
        a->ops->done(a->state);
    free(a->state);
}

static struct thaw *auto_thaw(void *state)
{
    struct autom *a = state;
    return a->ops->thaw ? a->ops->thaw(a->state) : NULL;
}

const struct search_ops search_auto = {
    .name = "auto",
    .help = "the one that is best for such a space: gp, or tpe for more than 20 hyperparameters",
    .version = 2,
    .state_size = sizeof(struct autom),
    .init = auto_init,
    .ask = auto_ask,
    .add = auto_add,
    .tell = auto_tell,
    .save = auto_save,
    .restore = auto_restore,
    .done = auto_done,
    .thaw = auto_thaw,
    .several = &search_volume,
};
