/* A stop rule for tests alone, in builds with failpoints: pauses, goes on and stops at random. What it answers is a function of the seed, the trial and
 * the epoch, so that an epoch that is told again is answered alike; of paused trials it forgets one in four. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "core/rng.h"
#include "search/search.h"

extern const struct stop_ops stop_shuffle;

enum being { RUNS, PAUSED, OVER };

struct shuffled {
    uint64_t id, being;
};

struct shuffle {
    uint64_t seed;
    int epochs, min_epochs;
    bool can_pause;
    struct shuffled *trials; /* by id */
    size_t n, cap;
    uint64_t told, again; /* epochs told; trials gone on with */
};

static uint64_t dice(const struct shuffle *st, uint64_t a, uint64_t b, uint64_t sides)
{
    return rng_mix(rng_mix(rng_mix(st->seed) ^ a) + b) % sides;
}

static int shuffle_init(void *state, const struct search_cfg *cfg, struct err *e)
{
    (void)e;
    struct shuffle *st = state;
    *st = (struct shuffle){
        .seed = cfg->seed, .epochs = cfg->epochs, .min_epochs = cfg->min_epochs, .can_pause = cfg->can_pause
    };
    return 0;
}

static bool is_forgotten(const struct shuffle *st, const struct shuffled *t)
{
    return dice(st, t->id, 1000003, 4) == 0;
}

static size_t count(const struct shuffle *st, enum being being)
{
    size_t n = 0;
    for (size_t i = 0; i < st->n; i++)
        n += st->trials[i].being == being && (being != PAUSED || !is_forgotten(st, &st->trials[i]));
    return n;
}

static struct shuffled *nth_paused(const struct shuffle *st, uint64_t nth)
{
    for (size_t i = 0;; i++)
        if (st->trials[i].being == PAUSED && !is_forgotten(st, &st->trials[i]) && nth-- == 0)
            return &st->trials[i];
}

static int shuffle_ask(void *state, bool fresh, uint64_t *out_id)
{
    struct shuffle *st = state;
    struct shuffled *grown = array_more(st->trials, st->n, &st->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    st->trials = grown;
    size_t paused = count(st, PAUSED), running = count(st, RUNS);
    if (running > 0 && dice(st, st->told, st->n + st->again, 3) == 0)
        return 0; /* until an epoch comes */
    if (paused > 0 && (!fresh || dice(st, st->n, st->again, 2) == 0)) {
        struct shuffled *t = nth_paused(st, dice(st, st->again, st->n, paused));
        t->being = RUNS;
        st->again++;
        *out_id = t->id;
        return 1;
    }
    return fresh ? STOP_FRESH : running > 0 ? 0 : -ENODATA;
}

static void shuffle_added(void *state, const struct proposal *p)
{
    struct shuffle *st = state;
    st->trials[st->n++] = (struct shuffled){ p->id, RUNS };
}

static int shuffle_tell(void *state, const struct told *t, struct search_answer *out)
{
    struct shuffle *st = state;
    struct shuffled *of = NULL;
    for (size_t i = 0; i < st->n; i++)
        if (st->trials[i].id == t->id)
            of = &st->trials[i];
    if (!of)
        return 0; /* of before it was chosen */
    out->wake = true;
    if (t->kind != TOLD_EPOCH) {
        of->being = OVER;
        return 0;
    }
    st->told++;
    uint64_t side = dice(st, t->id, (uint64_t)t->epoch, 8);
    if (t->held || of->being != RUNS || t->epoch >= st->epochs || t->epoch < st->min_epochs ||
        side > (st->can_pause ? 3 : 0))
        return 0;
    out->verdict = side == 0 ? SEARCH_STOP : SEARCH_PAUSE;
    of->being = side == 0 ? OVER : PAUSED;
    (void)snprintf(out->why, sizeof out->why, "after %d epochs: by chance", t->epoch);
    return 0;
}

static void shuffle_save(const void *state, struct buf *out)
{
    const struct shuffle *st = state;
    pack_u64(out, st->told);
    pack_u64(out, st->again);
    pack_u64(out, st->n);
    for (size_t i = 0; i < st->n; i++) {
        pack_u64(out, st->trials[i].id);
        pack_u64(out, st->trials[i].being);
    }
}

static int shuffle_restore(void *state, struct unpack *from)
{
    struct shuffle *st = state;
    st->told = unpack_u64(from);
    st->again = unpack_u64(from);
    for (size_t n = unpack_count(from, 16); n > 0; n--) {
        struct shuffled *grown = array_more(st->trials, st->n, &st->cap, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        st->trials = grown;
        grown[st->n].id = unpack_u64(from);
        grown[st->n++].being = unpack_u64(from);
    }
    return 0;
}

static void shuffle_done(void *state)
{
    struct shuffle *st = state;
    free(st->trials);
}

const struct stop_ops stop_shuffle = {
    .name = "shuffle",
    .help = "for tests: pauses, goes on and stops at random",
    .version = 1,
    .state_size = sizeof(struct shuffle),
    .init = shuffle_init,
    .ask = shuffle_ask,
    .added = shuffle_added,
    .tell = shuffle_tell,
    .save = shuffle_save,
    .restore = shuffle_restore,
    .done = shuffle_done,
};
