#include "app/resize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

enum { LEAST_MILLI = 100 };

void resize_view_done(struct resize_view *v)
{
    free(v->parts);
    *v = (struct resize_view){ 0 };
}

struct resize_part *resize_add(struct resize_view *v)
{
    if (v->n == CLUSTER_WORKERS_MAX)
        return NULL;
    struct resize_part *more = array_more(v->parts, v->n, &v->cap, sizeof *more);
    if (!more)
        return NULL;
    v->parts = more;
    v->parts[v->n] = (struct resize_part){ .wanted = -1, .has = -1 };
    return &v->parts[v->n++];
}

int64_t resize_share(const struct resize_view *v, int cores)
{
    int64_t share = v->n > 0 ? (int64_t)cores * 1000 / (int64_t)v->n : 0;
    return share < LEAST_MILLI ? LEAST_MILLI : share;
}

static int cores_of(const struct resize_view *v)
{
    int64_t sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += v->parts[i].has > 0 ? v->parts[i].has : 0;
    int cores = (int)((sum + 500) / 1000);
    return cores == 0 && sum > 0 ? 1 : cores;
}

static const struct resize_part *first_at(const struct resize_view *v, enum resize_at at)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->parts[i].at == at)
            return &v->parts[i];
    return NULL;
}

static bool all_have(const struct resize_view *v, int64_t share)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->parts[i].at != RESIZE_IN_FORCE || v->parts[i].wanted != share || v->parts[i].has != share)
            return false;
    return v->n > 0;
}

static const struct {
    enum resize_at at;
    int64_t after_ms;
    const char *says;
} ends[] = {
    { RESIZE_INFEASIBLE, 0, "the cluster can never have it" },
    { RESIZE_DEFERRED, RESIZE_DEFER_MS, "the cluster has no room for it now" },
    { RESIZE_UNDER_WAY, RESIZE_LATE_MS, "the cluster has not brought it into force" },
};

enum resize_verdict resize_judge(const struct resize_view *v, int cores, int64_t waited_ms, int *out_cores,
                                 char why[CLUSTER_WHY_MAX])
{
    *out_cores = cores_of(v);
    why[0] = '\0';
    if (all_have(v, resize_share(v, cores)))
        return RESIZE_DONE;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const struct resize_part *p = first_at(v, ends[i].at);
        if (!p || waited_ms < ends[i].after_ms)
            continue;
        (void)snprintf(why, CLUSTER_WHY_MAX, "%s%s%s", ends[i].says, p->why[0] ? ": " : "", p->why);
        return RESIZE_INSTEAD;
    }
    if (waited_ms < RESIZE_LATE_MS || v->n == 0)
        return RESIZE_WAITS;
    (void)snprintf(why, CLUSTER_WHY_MAX, "the cluster has not taken it up in %d s", RESIZE_LATE_MS / 1000);
    return RESIZE_INSTEAD;
}

bool resize_restarted(const struct resize_view *before, const struct resize_view *now)
{
    for (size_t i = 0; i < now->n; i++)
        for (size_t k = 0; k < before->n; k++)
            if (strcmp(before->parts[k].name, now->parts[i].name) == 0 &&
                before->parts[k].restarts < now->parts[i].restarts)
                return true;
    return false;
}
