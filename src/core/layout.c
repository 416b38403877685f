#include "core/layout.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The class of workers that is nearest below this one. */
static struct layout_worker *class_below(struct layout_room *r, struct layout_worker w)
{
    struct layout_worker *best = NULL;
    for (int i = 0; i < r->n_workers; i++) {
        struct layout_worker *c = &r->workers[i];
        if (c->cores <= w.cores && c->memory_gb <= w.memory_gb && (!best || c->cores > best->cores))
            best = c;
    }
    return best;
}

void layout_add(struct layout_room *r, struct layout_worker w)
{
    for (int i = 0; i < r->n_workers; i++)
        if (r->workers[i].count == 0 || (r->workers[i].cores == w.cores && r->workers[i].memory_gb == w.memory_gb)) {
            w.count += r->workers[i].count;
            r->workers[i] = w;
            return;
        }
    struct layout_worker *below = r->n_workers < LAYOUT_WORKERS_MAX ? NULL : class_below(r, w);
    if (below)
        below->count += w.count;
    else if (r->n_workers < LAYOUT_WORKERS_MAX)
        r->workers[r->n_workers++] = w;
}

/* --- what parts take ---------------------------------------------------------------------------------------------------- */

double layout_takes_gb(const struct layout_takes *t, double memory_gb)
{
    double more = t->share * memory_gb > t->least_gb ? t->share * memory_gb : t->least_gb, all = memory_gb + more;
    if (!(memory_gb > 0))
        return 0;
    return t->step_gb > 0 ? t->step_gb * ceil(all / t->step_gb) : all;
}

double layout_gives_gb(const struct layout_takes *t, double memory_gb)
{
    double all = t->step_gb > 0 ? t->step_gb * floor(memory_gb / t->step_gb) : memory_gb;
    double by_share = all / (1 + t->share), by_least = all - t->least_gb;
    double gives = by_share < by_least ? by_share : by_least;
    return gives > 0 ? gives : 0;
}

/* One part of so much off a worker: of those with most cores left, or (`least`) with fewest. */
static bool take_one(struct layout_room *r, int cores, double gb, bool least)
{
    struct layout_worker *from = NULL;
    for (int i = 0; i < r->n_workers; i++) {
        struct layout_worker *w = &r->workers[i];
        if (w->count < 1 || w->cores < cores || w->memory_gb < gb)
            continue;
        if (!from || (least ? w->cores < from->cores : w->cores > from->cores))
            from = w;
    }
    if (!from)
        return false;
    struct layout_worker left = { 1, from->cores - cores, from->memory_gb - gb };
    from->count--;
    layout_add(r, left);
    return true;
}

int layout_take(struct layout_room *r, struct layout_ask ask)
{
    int n = 0;
    while (n < ask.parts && take_one(r, ask.cores, layout_takes_gb(&r->takes, ask.memory_gb), false))
        n++;
    return n;
}

bool layout_take_beside(struct layout_room *r)
{
    bool had = true;
    for (int i = 0; i < r->beside.parts; i++)
        had &= take_one(r, r->beside.cores, r->beside.memory_gb, true);
    return had;
}

/* --- what can be had ---------------------------------------------------------------------------------------------------- */

/* Is `b` at least what `a` is, in everything? Memory that is not known is taken to be the same. */
static bool covers(const struct layout_ask *a, const struct layout_ask *b)
{
    bool memory = !(a->memory_gb > 0) || !(b->memory_gb > 0) || b->memory_gb >= a->memory_gb;
    return memory && b->parts >= a->parts && b->cores >= a->cores;
}

bool layout_refuse(struct layout_room *r, struct layout_ask ask)
{
    for (int i = 0; i < r->n_refused; i++)
        if (covers(&r->refused[i], &ask))
            return true;
    if (r->n_refused == LAYOUT_REFUSED_MAX)
        return false;
    r->refused[r->n_refused++] = ask;
    return true;
}

/* Parts of that size that one worker has room for. */
static int64_t on_one(const struct layout_worker *w, int cores, double gb)
{
    int64_t by_cores = w->cores / cores;
    double by_memory = gb > 0 ? floor(w->memory_gb / gb) : INFINITY;
    return by_memory < (double)by_cores ? (int64_t)by_memory : by_cores;
}

/* As far as is known. */
static bool layout_has(const struct layout_room *r, const struct layout_ask *ask)
{
    int64_t room = 0;
    double gb = layout_takes_gb(&r->takes, ask->memory_gb);
    for (int i = 0; i < r->n_refused; i++)
        if (covers(&r->refused[i], ask))
            return false;
    for (int i = 0; i < r->n_workers && room < ask->parts; i++)
        room += on_one(&r->workers[i], ask->cores, gb) * r->workers[i].count;
    return (r->n_workers == 0 && !r->full) || room >= ask->parts;
}

int layout_divide(const struct layout_room *r, int cores, int parts, int most_each, double memory_gb)
{
    int from = parts > 0 ? parts : 1, to = parts > 0 ? parts : cores;
    for (int n = from; n <= to && n <= cores; n++) {
        struct layout_ask ask = { n, cores / n, memory_gb };
        if (cores % n == 0 && (most_each <= 0 || ask.cores <= most_each) && layout_has(r, &ask))
            return n;
    }
    return 0;
}

/* Parts of that size, `wanted` of them (0: as many as there is room for, up to `most`); fewer than wanted are none. */
static int room_for(const struct layout_room *r, int most, int wanted, int each, double memory_gb)
{
    int has = 0, cannot = (wanted > 0 ? wanted : most) + 1;
    while (cannot - has > 1) { /* where there is room for some, there is for fewer */
        struct layout_ask ask = { has + (cannot - has) / 2, each, memory_gb };
        if (layout_has(r, &ask))
            has = ask.parts;
        else
            cannot = ask.parts;
    }
    return has == wanted || wanted <= 0 ? has : 0;
}

int layout_most(const struct layout_room *r, int most, int parts, int most_each, double memory_gb)
{
    int best = 0, n = parts > 0 ? parts : 1;
    for (int each = 1; each <= most / n && (most_each <= 0 || each <= most_each); each++) {
        int cores = each * room_for(r, most / each, parts, each, memory_gb);
        best = cores > best ? cores : best;
    }
    return best;
}
