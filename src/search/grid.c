/* Every point in the order written, the last dimension fastest; `points` are those that the config lists. Keeps a counter, not the points. */
#include <errno.h>

#include "search/search.h"

struct grid {
    const struct space *space;
    uint64_t next;
    uint64_t size; /* UINT64_MAX: more than will ever be asked for */
};

static int grid_init(void *st, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    for (size_t i = 0; i < sp->n_dims && !sp->points; i++)
        if (sp->dims[i].kind != DIM_LIST && sp->dims[i].kind != DIM_RANGE)
            return err_set(
                e, -EINVAL,
                "search 'grid' needs a list or a range of each hyperparameter, and '%s' has 'min' and 'max': "
                "use 'random'",
                sp->dims[i].name);
    (void)cfg; /* the order is fixed */
    *(struct grid *)st = (struct grid){ .space = sp, .size = space_size(sp) };
    return 0;
}

static int points_init(void *st, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    if (!sp->points)
        return err_set(e, -EINVAL,
                       "search 'points' needs a list of them: \"hyperParameters\": {\"points\": \"FILE\"}, or "
                       "[{\"lr\": 0.1, …}, …]");
    return grid_init(st, sp, cfg, e);
}

static int grid_ask(void *st, struct proposal *out)
{
    struct grid *g = st;
    if (g->next >= g->size)
        return -ENODATA;
    *out = (struct proposal){ .id = g->next, .point = space_point_at(g->space, g->next) };
    g->next++;
    return 1;
}

static void grid_save(const void *st, struct buf *out)
{
    const struct grid *g = st;
    pack_u64(out, g->next);
}

static int grid_restore(void *st, struct unpack *from)
{
    struct grid *g = st;
    g->next = unpack_u64(from);
    return g->next <= g->size ? 0 : -EPROTO;
}

const struct search_ops search_grid = {
    .name = "grid",
    .help = "every point of the space, in the order written",
    .goes_through = true,
    .state_size = sizeof(struct grid),
    .init = grid_init,
    .ask = grid_ask,
    .save = grid_save,
    .restore = grid_restore,
};

const struct search_ops search_points = {
    .name = "points",
    .help = "the points that hyperParameters lists, in their order",
    .goes_through = true,
    .state_size = sizeof(struct grid),
    .init = points_init,
    .ask = grid_ask,
    .save = grid_save,
    .restore = grid_restore,
};
