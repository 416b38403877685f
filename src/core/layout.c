#include "core/layout.h"

#include <math.h>
#include <stdint.h>

void layout_add(struct layout_room *r, struct layout_worker w)
{
    for (int i = 0; i < r->n_workers; i++)
        if (r->workers[i].cores == w.cores && r->workers[i].memory_gb == w.memory_gb) {
            r->workers[i].count += w.count;
            return;
        }
    if (r->n_workers < LAYOUT_WORKERS_MAX)
        r->workers[r->n_workers++] = w;
}

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
static int64_t on_one(const struct layout_worker *w, const struct layout_ask *ask)
{
    int64_t by_cores = w->cores / ask->cores;
    double by_memory = ask->memory_gb > 0 ? floor(w->memory_gb / ask->memory_gb) : INFINITY;
    return by_memory < (double)by_cores ? (int64_t)by_memory : by_cores;
}

/* As far as is known. */
static bool layout_has(const struct layout_room *r, const struct layout_ask *ask)
{
    int64_t room = 0;
    for (int i = 0; i < r->n_refused; i++)
        if (covers(&r->refused[i], ask))
            return false;
    for (int i = 0; i < r->n_workers && room < ask->parts; i++)
        room += on_one(&r->workers[i], ask) * r->workers[i].count;
    return r->n_workers == 0 || room >= ask->parts;
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
