/* Rungs at min_epochs, eta times that, and so on: of the trials that came to a rung the best one in eta goes on to the next, without waiting for the
 * others: a trial that is not among them yet is paused, and gone on with once enough others turned out to be worse. Where trials cannot be paused, one
 * that is not among the best when it comes to a rung is stopped.
 *
 * `hyperband` differs in where a trial meets its first rung: most at the lowest, some only at the higher ones, so that those that begin slowly have their
 * chance, too. All are compared with all others that came to a rung. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "search/search.h"
#include "search/several.h"

enum { ETA = 3, RUNGS_MAX = 20 };

enum being { RUNS, PAUSED, OVER };

struct climber {
    uint64_t being;
    uint64_t first; /* rung that it is judged at */
    uint64_t rungs; /* so many it has come to */
    uint64_t goal;  /* epochs that it trains to before it is judged again */
    double best;    /* of its values: small is good */
    double marks[RUNGS_MAX];
};

struct halving {
    struct search_cfg cfg;
    int eta;
    int levels[RUNGS_MAX]; /* epochs of each rung; the last one is the whole training */
    size_t n_levels;
    size_t brackets;        /* first rungs that there are */
    struct climber *trials; /* by id */
    size_t n, cap;
};

static int init(struct halving *h, const struct search_cfg *cfg)
{
    *h = (struct halving){ .cfg = *cfg, .eta = cfg->eta ? cfg->eta : ETA, .brackets = 1 };
    int64_t level = cfg->min_epochs;
    for (; level < cfg->epochs && h->n_levels < RUNGS_MAX - 1; level *= h->eta)
        h->levels[h->n_levels++] = (int)level;
    h->levels[h->n_levels++] = cfg->epochs;
    return 0;
}

static int halving_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    (void)e; /* it goes with everything */
    return init(state, cfg);
}

static int hyperband_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    struct halving *h = state;
    int rc = halving_init(state, cfg, e);
    h->brackets = h->n_levels;
    return rc;
}

static int make_room(struct halving *h)
{
    struct climber *grown = array_more(h->trials, h->n, &h->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    h->trials = grown;
    return 0;
}

/* --- rungs --- */

struct standing {
    size_t n, better; /* who came to the rung; who was better there, or as good and earlier */
};

static struct standing standing_of(const struct halving *h, size_t trial, size_t rung)
{
    struct standing s = { 0 };
    double mine = h->trials[trial].marks[rung];
    for (size_t i = 0; i < h->n; i++) {
        const struct climber *t = &h->trials[i];
        if (t->rungs <= rung || t->first > rung)
            continue;
        s.n++;
        s.better += t->marks[rung] < mine || (t->marks[rung] == mine && i < trial);
    }
    return s;
}

/* The best of those that wait on a rung; h->n: there is none. */
static size_t best_waiting(const struct halving *h, size_t rung)
{
    size_t best = h->n;
    for (size_t i = 0; i < h->n; i++)
        if (h->trials[i].being == PAUSED && h->trials[i].rungs == rung + 1 &&
            (best == h->n || h->trials[i].marks[rung] < h->trials[best].marks[rung]))
            best = i;
    return best;
}

static bool any_runs(const struct halving *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->trials[i].being == RUNS)
            return true;
    return false;
}

/* The paused trial that goes on, the furthest one first. At the end, when nothing is new and nothing runs, the best of each rung may. */
static size_t promoted(const struct halving *h, bool at_the_end)
{
    for (size_t rung = h->n_levels - 1; rung-- > 0;) {
        size_t best = best_waiting(h, rung);
        if (best == h->n)
            continue;
        struct standing s = standing_of(h, best, rung);
        size_t most = s.n / (size_t)h->eta;
        if (s.better < most || (at_the_end && s.better == 0))
            return best;
    }
    return h->n;
}

static int halving_ask(void *state, bool fresh, uint64_t *out_id)
{
    struct halving *h = state;
    if (fresh && make_room(h) < 0)
        return -ENOMEM;
    bool runs = any_runs(h);
    size_t next = promoted(h, !fresh && !runs);
    if (next == h->n)
        return fresh ? STOP_FRESH : runs ? 0 : -ENODATA;
    struct climber *t = &h->trials[next];
    t->being = RUNS;
    t->goal = (uint64_t)h->levels[t->rungs];
    *out_id = next;
    return 1;
}

/* --- trials --- */

/* Every bracket gets about as many epochs: where the first rung is eta times as high, there are about so many fewer trials. */
static size_t next_bracket(const struct halving *h)
{
    size_t count[RUNGS_MAX] = { 0 }, next = 0;
    double least = INFINITY, weight = 1;
    for (size_t i = 0; i < h->n; i++)
        count[h->trials[i].first]++;
    for (size_t b = 0; b < h->brackets; b++) {
        double share = (double)(count[b] + 1) / weight * (double)(h->brackets - b);
        if (share < least) {
            least = share;
            next = b;
        }
        weight /= h->eta;
    }
    return next;
}

static void halving_added(void *state, const struct proposal *p)
{
    struct halving *h = state;
    size_t first = next_bracket(h);
    (void)p; /* its id is h->n */
    h->trials[h->n++] =
        (struct climber){ .being = RUNS, .first = first, .goal = (uint64_t)h->levels[first], .best = INFINITY };
}

static void say_why(const struct halving *h, const struct told *t, struct standing s, struct search_answer *out)
{
    (void)snprintf(out->why, sizeof out->why, "after %d epoch%s: %.4g, rank %zu of %zu there; one in %d goes on",
                   t->epoch, t->epoch == 1 ? "" : "s", h->cfg.maximise ? -h->trials[t->id].best : h->trials[t->id].best,
                   s.better + 1, s.n, h->eta);
}

/* It came to where it is judged. */
static void judge(struct halving *h, const struct told *t, struct search_answer *out)
{
    struct climber *c = &h->trials[t->id];
    size_t rung = c->rungs - 1;
    struct standing s = standing_of(h, t->id, rung);
    size_t most = s.n / (size_t)h->eta;
    if (!h->cfg.can_pause && most == 0)
        most = 1; /* the first ones have to go on, as they cannot later */
    if (s.better < most || t->held || !several_may_end(h->cfg.several, t)) {
        c->goal = (uint64_t)h->levels[rung + 1];
        return;
    }
    c->being = h->cfg.can_pause ? PAUSED : OVER;
    out->verdict = h->cfg.can_pause ? SEARCH_PAUSE : SEARCH_STOP;
    say_why(h, t, s, out);
}

static int halving_tell(void *state, const struct told *t, struct search_answer *out)
{
    struct halving *h = state;
    if (t->id >= h->n)
        return 0; /* of before the rule was chosen */
    struct climber *c = &h->trials[t->id];
    if (t->kind != TOLD_EPOCH) {
        c->being = OVER;
        out->wake = true;
        return 0;
    }
    if (isfinite(t->value))
        c->best = fmin(c->best, h->cfg.maximise ? -t->value : t->value);
    if (!isfinite(c->best))
        return 0; /* it has told nothing yet */
    while (c->rungs < h->n_levels && h->levels[c->rungs] <= t->epoch) {
        c->marks[c->rungs++] = c->best;
        out->wake = true;
    }
    if (c->being == RUNS && (uint64_t)t->epoch >= c->goal && c->rungs < h->n_levels)
        judge(h, t, out);
    return 0;
}

/* --- its state --- */

static void halving_save(const void *state, struct buf *out)
{
    const struct halving *h = state;
    pack_u64(out, h->n);
    for (size_t i = 0; i < h->n; i++) {
        const struct climber *c = &h->trials[i];
        pack_u64(out, c->being);
        pack_u64(out, c->first);
        pack_u64(out, c->goal);
        pack_f64(out, c->best);
        pack_u64(out, c->rungs);
        for (size_t k = 0; k < c->rungs; k++)
            pack_f64(out, c->marks[k]);
    }
}

static bool is_level(const struct halving *h, uint64_t epochs)
{
    for (size_t i = 0; i < h->n_levels; i++)
        if ((uint64_t)h->levels[i] == epochs)
            return true;
    return false;
}

static int halving_restore(void *state, struct unpack *from)
{
    struct halving *h = state;
    for (size_t n = unpack_count(from, 40); n > 0; n--) {
        if (make_room(h) < 0)
            return -ENOMEM;
        struct climber c = { .being = unpack_u64(from), .first = unpack_u64(from), .goal = unpack_u64(from) };
        c.best = unpack_f64(from);
        c.rungs = unpack_u64(from);
        if (c.being > OVER || c.first >= h->brackets || c.rungs > h->n_levels || isnan(c.best) ||
            !is_level(h, c.goal) || (c.being == PAUSED && (c.rungs == 0 || c.rungs == h->n_levels)))
            return -EPROTO;
        for (size_t k = 0; k < c.rungs; k++)
            if (isnan(c.marks[k] = unpack_f64(from)))
                return -EPROTO;
        h->trials[h->n++] = c;
    }
    return 0;
}

static void halving_done(void *state)
{
    struct halving *h = state;
    free(h->trials);
}

const struct stop_ops stop_halving = {
    .name = "halving",
    .help = "one in search.eta trials goes on at each rung, the others are paused",
    .version = 1,
    .state_size = sizeof(struct halving),
    .init = halving_init,
    .ask = halving_ask,
    .added = halving_added,
    .tell = halving_tell,
    .save = halving_save,
    .restore = halving_restore,
    .done = halving_done,
};

const struct stop_ops stop_hyperband = {
    .name = "hyperband",
    .help = "the same, and some trials are judged only later",
    .version = 1,
    .state_size = sizeof(struct halving),
    .init = hyperband_init,
    .ask = halving_ask,
    .added = halving_added,
    .tell = halving_tell,
    .save = halving_save,
    .restore = halving_restore,
    .done = halving_done,
};
