/* Points at random, each at most once where they can be counted.
 *
 * Three kinds of space: (1) an infinite one (or of more than 2^64 points): drawn dimension by dimension, a repeat is out of
 * the question. (2) finite and even, or listed: the points in a shuffled order that is computed, not stored. (3) finite with a log
 * scale, where small numbers are to come more often: drawn, and drawn again when used; once that keeps failing, the rest
 * comes in the shuffled order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/search.h"

/* The points used so far, by index: open addressing, slots hold index + 1 (0 is free), at most half full. */
struct used {
    uint64_t *slots;
    size_t cap; /* a power of two, or 0 */
    size_t n;
};

enum kind { DRAWN, SHUFFLED, DRAWN_ONCE };

struct random {
    const struct space *space;
    enum kind kind;
    uint64_t size;
    uint64_t seed;
    struct rng rng;
    uint64_t next;     /* the id of the next proposal */
    uint64_t shuffled; /* the next index of the shuffled order */
    struct used used;  /* DRAWN_ONCE */
};

/* --- used points ---------------------------------------------------------------------------------------------------- */

/* Where the index is, or would go. There is always a free slot. */
static uint64_t *used_slot(const struct used *u, uint64_t index)
{
    size_t at = (size_t)rng_mix(index) & (u->cap - 1);
    while (u->slots[at] && u->slots[at] != index + 1)
        at = (at + 1) & (u->cap - 1);
    return &u->slots[at];
}

static int used_make_room(struct used *u)
{
    if (2 * (u->n + 1) <= u->cap)
        return 0;
    struct used bigger = { .cap = u->cap ? 2 * u->cap : 64, .n = u->n };
    bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < u->cap; i++)
        if (u->slots[i])
            *used_slot(&bigger, u->slots[i] - 1) = u->slots[i];
    free(u->slots);
    *u = bigger;
    return 0;
}

/* False when it was there already. */
static bool used_add(struct used *u, uint64_t index)
{
    uint64_t *slot = used_slot(u, index);
    if (*slot)
        return false;
    *slot = index + 1;
    u->n++;
    return true;
}

/* --- drawing -------------------------------------------------------------------------------------------------------- */

static bool is_first(const struct space *sp, const struct point *p)
{
    for (size_t i = 0; i < sp->n_first; i++)
        if (memcmp(&sp->first[i], p, sizeof *p) == 0)
            return true;
    return false;
}

/* Those that came first are passed over. */
static struct point next_shuffled(struct random *st)
{
    struct point p;
    do
        p = space_point_at(st->space, rng_shuffled(st->seed, st->size, st->shuffled++));
    while (is_first(st->space, &p));
    return p;
}

/* A point that was not used before; there is one. The shuffled order is gone through once over all calls. */
static struct point draw_once(struct random *st)
{
    enum { PATIENCE = 32 };
    for (int i = 0; i < PATIENCE; i++) {
        struct point p = space_draw(st->space, &st->rng);
        if (used_add(&st->used, space_index(st->space, &p)))
            return p;
    }
    for (;;) {
        struct point p = next_shuffled(st);
        if (used_add(&st->used, space_index(st->space, &p)))
            return p;
    }
}

/* --- the row -------------------------------------------------------------------------------------------------------- */

static enum kind kind_of(const struct space *sp, uint64_t size)
{
    if (size == UINT64_MAX || (sp->rules && !sp->points))
        return DRAWN;
    for (size_t i = 0; i < sp->n_dims && !sp->points; i++)
        if (sp->dims[i].log)
            return DRAWN_ONCE;
    return SHUFFLED;
}

static int random_init(void *state, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    (void)e; /* random works on every space */
    struct random *st = state;
    *st = (struct random){ .space = sp, .size = space_size(sp), .seed = cfg->seed };
    st->kind = kind_of(sp, st->size);
    st->rng = rng_seeded(cfg->seed);
    return 0;
}

static int ask_first(struct random *st, struct proposal *out)
{
    *out = (struct proposal){ .id = st->next, .point = st->space->first[st->next] };
    if (st->kind == DRAWN_ONCE)
        (void)used_add(&st->used, space_index(st->space, &out->point));
    st->next++;
    return 1;
}

static int random_ask(void *state, struct proposal *out)
{
    struct random *st = state;
    if (st->size != UINT64_MAX && st->next >= st->size)
        return -ENODATA;
    if (st->kind == DRAWN_ONCE && used_make_room(&st->used) < 0)
        return -ENOMEM; /* before anything is drawn: asking again gives what this would have given */
    struct proposal p = { .id = st->next };
    struct rng before = st->rng;
    if (st->next < st->space->n_first)
        return ask_first(st, out);
    if (st->kind == DRAWN && !space_draw_admitted(st->space, &st->rng, &p.point)) {
        st->rng = before;
        return -ENODATA;
    }
    switch (st->kind) {
    case DRAWN: break;
    case SHUFFLED: p.point = next_shuffled(st); break;
    case DRAWN_ONCE: p.point = draw_once(st); break;
    }
    st->next++;
    *out = p;
    return 1;
}

static void random_save(const void *state, struct buf *out)
{
    const struct random *st = state;
    pack_u64(out, st->next);
    for (size_t i = 0; i < ARRAY_LEN(st->rng.s); i++)
        pack_u64(out, st->rng.s[i]);
    pack_u64(out, st->used.n);
    for (size_t i = 0; i < st->used.cap; i++)
        if (st->used.slots[i])
            pack_u64(out, st->used.slots[i] - 1);
}

static int random_restore(void *state, struct unpack *from)
{
    struct random *st = state;
    st->next = unpack_u64(from);
    uint64_t n_first = st->space->n_first;
    /* What the other kinds have gone through is used: it is passed over again. */
    st->shuffled = st->kind == SHUFFLED && n_first == 0 ? st->next : 0;
    for (uint64_t i = n_first; st->kind == SHUFFLED && n_first > 0 && i < st->next && st->next <= st->size; i++)
        (void)next_shuffled(st);
    for (size_t i = 0; i < ARRAY_LEN(st->rng.s); i++)
        st->rng.s[i] = unpack_u64(from);
    for (size_t n = unpack_count(from, sizeof(uint64_t)); n > 0; n--) {
        uint64_t index = unpack_u64(from);
        if (st->kind != DRAWN_ONCE || index >= st->size)
            return -EPROTO;
        if (used_make_room(&st->used) < 0)
            return -ENOMEM;
        if (!used_add(&st->used, index))
            return -EPROTO;
    }
    bool counted = st->kind != DRAWN_ONCE || st->used.n == st->next;
    return counted && st->next <= st->size ? 0 : -EPROTO;
}

static void random_done(void *state)
{
    struct random *st = state;
    free(st->used.slots);
}

const struct search_ops search_random = {
    .name = "random",
    .help = "points at random, none twice where they can be counted",
    .state_size = sizeof(struct random),
    .init = random_init,
    .ask = random_ask,
    .save = random_save,
    .restore = random_restore,
    .done = random_done,
};
