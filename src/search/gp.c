/* The next point by a Gaussian process over all curves (thaw.h): the one whose expected improvement is worth most. With the stop rule `curves` it is
 * looked at step by step; else at the last epoch. */
#include <errno.h>
#include <math.h>

#include "search/search.h"
#include "search/thaw.h"

enum { RANDOM_EVERY = 2 };

struct gp {
    struct thaw *thaw;
    const struct space *space;
    uint64_t next;
};

static int gp_init(void *state, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    struct gp *g = state;
    g->space = sp;
    int rc = thaw_new(&g->thaw, sp, cfg);
    return rc < 0 ? err_sys(e, rc, "search 'gp'") : 0;
}

static struct thaw *gp_thaw(void *state)
{
    struct gp *g = state;
    return g->thaw;
}

/* 1, -ENODATA, -ENOMEM. Some are drawn at random: what the process is sure of may be wrong. */
static int choose(struct gp *g, struct point *out)
{
    if (g->next < g->space->n_first) {
        *out = g->space->first[g->next];
        return 1;
    }
    if (g->next % RANDOM_EVERY == RANDOM_EVERY - 1)
        return thaw_draw(g->thaw, out);
    if (thaw_suppose(g->thaw, THAW_NO_ID) < 0)
        return -ENOMEM;
    double worth = thaw_best_fresh(g->thaw, out);
    thaw_unsuppose(g->thaw);
    return worth > -INFINITY ? 1 : thaw_draw(g->thaw, out);
}

static int gp_add(void *state, const struct point *p, struct proposal *out)
{
    struct gp *g = state;
    if (thaw_has_point(g->thaw, p))
        return 0;
    if (thaw_add(g->thaw, g->next, p) < 0)
        return -ENOMEM;
    *out = (struct proposal){ .id = g->next++, .point = *p };
    return 1;
}

static int gp_ask(void *state, struct proposal *out)
{
    struct gp *g = state;
    struct proposal p = { .id = g->next };
    int rc = choose(g, &p.point);
    if (rc == 1 && thaw_add(g->thaw, p.id, &p.point) < 0)
        return -ENOMEM;
    if (rc == 1) {
        g->next++;
        *out = p;
    }
    return rc;
}

static int gp_tell(void *state, const struct told *t)
{
    struct gp *g = state;
    return thaw_tell(g->thaw, t);
}

static void gp_save(const void *state, struct buf *out)
{
    const struct gp *g = state;
    pack_u64(out, g->next);
    thaw_save(g->thaw, out);
}

static int gp_restore(void *state, struct unpack *from)
{
    struct gp *g = state;
    g->next = unpack_u64(from);
    int rc = thaw_restore(g->thaw, from);
    return rc == 0 && g->next != thaw_trials(g->thaw) ? -EPROTO : rc;
}

static void gp_done(void *state)
{
    struct gp *g = state;
    thaw_free(g->thaw);
}

const struct search_ops search_gp = {
    .name = "gp",
    .help = "a Gaussian process over points and epochs; the largest expected improvement",
    .version = 2,
    .state_size = sizeof(struct gp),
    .init = gp_init,
    .ask = gp_ask,
    .add = gp_add,
    .tell = gp_tell,
    .save = gp_save,
    .restore = gp_restore,
    .done = gp_done,
    .thaw = gp_thaw,
    .several = &search_volume,
};
