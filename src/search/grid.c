/* Every point in the order written, the last dimension fastest; `points` are those that the config lists. Keeps a counter, not the points. */
#include <errno.h>
#include <stdlib.h>

#include "search/search.h"

struct grid {
    const struct space *space;
    uint64_t next;
    uint64_t size;   /* UINT64_MAX: more than will ever be asked for */
    uint64_t *taken; /* indices of those that come first, ascending; owned */
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int take_first(struct grid *g)
{
    size_t n = g->space->n_first;
    g->taken = calloc(n + 1, sizeof *g->taken);
    if (!g->taken)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        g->taken[i] = space_index(g->space, &g->space->first[i]);
    qsort(g->taken, n, sizeof *g->taken, by_number);
    return 0;
}

/* The next of those that did not come first. */
static uint64_t next_index(const struct grid *g)
{
    uint64_t index = g->next - g->space->n_first;
    for (size_t i = 0; i < g->space->n_first && g->taken[i] <= index; i++)
        index++;
    return index;
}

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
    struct grid *g = st;
    *g = (struct grid){ .space = sp, .size = space_size(sp) };
    return take_first(g) < 0 ? err_sys(e, -ENOMEM, "search 'grid'") : 0;
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
    const struct space *sp = g->space;
    *out = (struct proposal){ .id = g->next };
    out->point = g->next < sp->n_first ? sp->first[g->next] : space_point_at(sp, next_index(g));
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

static void grid_done(void *st)
{
    struct grid *g = st;
    free(g->taken);
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
    .done = grid_done,
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
    .done = grid_done,
};
