#include "core/place.h"

#include <string.h>

static int owner_of(const struct place *p, int cpu)
{
    for (int i = 0; i < p->n; i++)
        if (p->cpu[i] == cpu)
            return p->owner[i];
    return 0;
}

void place_set(struct place *p, const int *cpus, int n)
{
    int owner[PLACE_MAX_CPUS];
    n = n > PLACE_MAX_CPUS ? PLACE_MAX_CPUS : n;
    for (int i = 0; i < n; i++)
        owner[i] = owner_of(p, cpus[i]);
    memcpy(p->cpu, cpus, (size_t)n * sizeof *cpus);
    memcpy(p->owner, owner, (size_t)n * sizeof *owner);
    p->n = n;
}

int place_take(struct place *p, int trial, int want, int out[PLACE_MAX_CPUS])
{
    int has = 0;
    for (int i = 0; i < p->n; i++) {
        if (p->owner[i] != trial)
            continue;
        if (has < want)
            out[has++] = p->cpu[i];
        else
            p->owner[i] = 0;
    }
    for (int i = 0; i < p->n && has < want; i++) {
        if (p->owner[i])
            continue;
        p->owner[i] = trial;
        out[has++] = p->cpu[i];
    }
    return has;
}

void place_free(struct place *p, int trial)
{
    for (int i = 0; i < p->n; i++)
        if (p->owner[i] == trial)
            p->owner[i] = 0;
}

int place_room(const struct place *p, int trial)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->owner[i] == 0 || p->owner[i] == trial;
    return n;
}

void place_mark(struct place *p, int cpu, bool others)
{
    for (int i = 0; i < p->n; i++)
        if (p->cpu[i] == cpu && p->owner[i] <= 0)
            p->owner[i] = others ? PLACE_OTHERS : 0;
}

void place_lose(struct place *p, int cpu)
{
    for (int i = 0; i < p->n; i++)
        if (p->cpu[i] == cpu)
            p->owner[i] = PLACE_OTHERS;
}

bool place_has(const struct place *p, int trial)
{
    for (int i = 0; i < p->n; i++)
        if (p->owner[i] == trial)
            return true;
    return false;
}

bool place_is_divided(const struct place *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->owner[i] == PLACE_OTHERS)
            return true;
    return false;
}
