/* Freeze-thaw: the next epochs go where they are worth most by what all curves so far foretell (thaw.h). At some of its epochs a trial is weighed
 * against those that are paused and against a new one, and pauses where one of these is to be trained rather; what is asked for next is that one.
 * An application that cannot be paused is stopped where a new trial is worth much more. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "search/several.h"
#include "search/thaw.h"

#define OUTDONE_FOR_GOOD 0.6 /* logarithm of how much more another must be worth for a trial to be stopped for good */
#define CHANCE_MIN                                                                                                     \
    0.02 /* of getting better than the best: with less, nothing is gone on with when no new one may be had */

struct curves {
    struct thaw *thaw;
    bool shared; /* with the algorithm, which chooses what is new by it */
    struct search_cfg cfg;
    bool has_added; /* what added() was told, until something may fail */
    uint64_t added_id;
    struct point added_point;
    size_t n_dims;
};

static int curves_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    struct curves *c = state;
    *c = (struct curves){ .thaw = cfg->thaw, .shared = cfg->thaw, .cfg = *cfg, .n_dims = cfg->space->n_dims };
    int rc = c->shared ? 0 : thaw_new(&c->thaw, cfg->space, cfg);
    if (rc < 0)
        return err_sys(e, rc, "stop rule 'curves'");
    if (cfg->can_pause)
        thaw_set_stepwise(c->thaw);
    return 0;
}

static void curves_added(void *state, const struct proposal *p)
{
    struct curves *c = state;
    if (c->shared)
        return; /* the algorithm has told it */
    c->has_added = true;
    c->added_id = p->id;
    c->added_point = p->point;
}

static int take_added(struct curves *c)
{
    if (c->has_added && thaw_add(c->thaw, c->added_id, &c->added_point) < 0)
        return -ENOMEM;
    c->has_added = false;
    c->added_point = (struct point){ { 0 } };
    return 0;
}

static double fresh_worth(const struct curves *c, bool fresh)
{
    struct point any;
    if (!fresh)
        return -INFINITY;
    return c->shared ? thaw_best_fresh(c->thaw, &any) : thaw_usual_fresh(c->thaw);
}

static int wait_or_end(const struct curves *c)
{
    return thaw_running(c->thaw) > 0 ? 0 : -ENODATA;
}

static int go_on(struct curves *c, uint64_t id, uint64_t *out_id)
{
    thaw_go_on(c->thaw, id);
    *out_id = id;
    return 1;
}

/* When nothing new can be had, and no paused one has a chance, there is nothing more to do. */
static bool is_hopeless(const struct curves *c)
{
    uint64_t id;
    return thaw_best_paused(c->thaw, &id) > -INFINITY && thaw_chance(c->thaw, id) < CHANCE_MIN;
}

static int ask_taught(struct curves *c, bool fresh, uint64_t *out_id)
{
    uint64_t id;
    if (thaw_suppose(c->thaw, THAW_NO_ID) < 0)
        return -ENOMEM;
    bool any = thaw_choose(c->thaw, fresh_worth(c, fresh), &id), hopeless = !fresh && is_hopeless(c);
    thaw_unsuppose(c->thaw);
    if (fresh && (!any || id == THAW_NO_ID))
        return STOP_FRESH;
    return !any || hopeless ? wait_or_end(c) : go_on(c, id, out_id);
}

static int curves_ask(void *state, bool fresh, uint64_t *out_id)
{
    struct curves *c = state;
    uint64_t id;
    if (take_added(c) < 0)
        return -ENOMEM;
    if (thaw_is_taught(c->thaw))
        return ask_taught(c, fresh, out_id);
    if (fresh)
        return STOP_FRESH;
    return thaw_first_paused(c->thaw, &id) ? go_on(c, id, out_id) : wait_or_end(c);
}

static void explain(const struct curves *c, uint64_t id, struct search_answer *out)
{
    struct thaw_view v = thaw_view(c->thaw, id);
    const char *more = v.epoch == 1 ? "" : "s";
    if (isnan(v.expected))
        (void)snprintf(out->why, sizeof out->why, "after %d epoch%s: %.4g, the best had %.4g", v.epoch, more, v.value,
                       v.best);
    else
        (void)snprintf(out->why, sizeof out->why, "after %d epoch%s: %.4g, and about %.4g foretold; the best had %.4g",
                       v.epoch, more, v.value, v.expected, v.best);
}

static bool may_add(const struct curves *c)
{
    return c->cfg.max_trials == 0 || thaw_trials(c->thaw) < (size_t)c->cfg.max_trials;
}

/* Something else is to be trained rather: where the trial cannot be come back to, what is worth more by far. */
static int is_outdone(struct curves *c, uint64_t id, bool *out)
{
    uint64_t other = THAW_NO_ID;
    if (thaw_suppose(c->thaw, id) < 0)
        return -ENOMEM;
    double fresh = fresh_worth(c, may_add(c));
    if (c->cfg.can_pause) {
        thaw_pause(c->thaw, id);
        (void)thaw_choose(c->thaw, fresh, &other);
        thaw_go_on(c->thaw, id);
        *out = other != id;
    } else {
        *out = fresh > thaw_worth(c->thaw, id) + OUTDONE_FOR_GOOD;
    }
    thaw_unsuppose(c->thaw);
    return 0;
}

static int curves_tell(void *state, const struct told *t, struct search_answer *out)
{
    struct curves *c = state;
    bool outdone = c->cfg.can_pause;
    if (take_added(c) < 0 || thaw_tell(c->thaw, t) < 0)
        return -ENOMEM;
    if (t->kind != TOLD_EPOCH || t->epoch >= c->cfg.epochs || !thaw_is_step(c->thaw, t->epoch) ||
        !thaw_is_running(c->thaw, t->id) || t->held || !several_may_end(c->cfg.several, t))
        return 0;
    if (thaw_is_taught(c->thaw) && is_outdone(c, t->id, &outdone) < 0)
        return -ENOMEM;
    if (!outdone)
        return 0;
    explain(c, t->id, out);
    out->verdict = c->cfg.can_pause ? SEARCH_PAUSE : SEARCH_STOP;
    if (c->cfg.can_pause)
        thaw_pause(c->thaw, t->id);
    return 0;
}

static void curves_save(const void *state, struct buf *out)
{
    const struct curves *c = state;
    pack_u64(out, c->has_added);
    pack_u64(out, c->added_id);
    for (size_t i = 0; i < c->n_dims; i++)
        pack_f64(out, c->added_point.x[i]);
    if (!c->shared)
        thaw_save(c->thaw, out);
}

static int curves_restore(void *state, struct unpack *from)
{
    struct curves *c = state;
    uint64_t has = unpack_u64(from);
    c->has_added = has;
    c->added_id = unpack_u64(from);
    for (size_t i = 0; i < c->n_dims; i++)
        c->added_point.x[i] = unpack_f64(from);
    if (has > 1 || (has && !thaw_is_point(c->thaw, &c->added_point)))
        return -EPROTO;
    return c->shared ? 0 : thaw_restore(c->thaw, from);
}

static void curves_done(void *state)
{
    struct curves *c = state;
    if (!c->shared)
        thaw_free(c->thaw);
}

const struct stop_ops stop_curves = {
    .name = "curves",
    .help = "the next epochs go where they are worth most by what the curves so far foretell",
    .version = 2,
    .state_size = sizeof(struct curves),
    .init = curves_init,
    .ask = curves_ask,
    .added = curves_added,
    .tell = curves_tell,
    .save = curves_save,
    .restore = curves_restore,
    .done = curves_done,
};
