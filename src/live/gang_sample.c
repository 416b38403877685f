/* What is measured of a gang's processes on one machine, as one sample of them all: who keeps samples knows one of a trial and a machine at a time. */
#include <stdlib.h>
#include <string.h>

#include "live/gang.h"
#include "live/nodes.h"
#include "monitoring/features.h"

/* Is it a sum over the processes of what is measured, so that those of two add up? Hardware events of the whole machine are none. */
static bool adds_up(int feature, const char *scope)
{
    if (feature < FEATURE_PROC)
        return strcmp(scope, "system") != 0;
    return feature < FEATURE_LOG || feature >= FEATURE_JVM;
}

static bool is_read(const struct reading *r)
{
    return r->state == READING_OK || r->state == READING_MULTIPLEXED;
}

/* Of intervals that are behind each other what was counted adds up, and of what was there the newest holds. */
static void hold(struct nodes_sample *held, const struct nodes_sample *s)
{
    for (int i = 0; i < FEATURES; i++)
        if (is_read(&held->v[i]) && is_read(&s->v[i]) && feature_kind(i) == FEATURE_COUNT)
            held->v[i].value += s->v[i].value;
        else
            held->v[i] = s->v[i];
}

static void add(struct nodes_sample *to, const struct nodes_sample *held)
{
    for (int i = 0; i < FEATURES; i++)
        if (adds_up(i, to->scope) && is_read(&to->v[i]) && is_read(&held->v[i]))
            to->v[i].value += held->v[i].value;
}

/* The first that is left on that machine tells of all. */
static size_t speaker(const struct gang *g, int node)
{
    size_t k = 0;
    while (k < gang_count(g) && (gang_is_gone(g, k) || gang_member(g, k)->row.node != node))
        k++;
    return k;
}

bool gang_sample(struct gang *g, size_t k, const struct nodes_sample *s, struct nodes_sample *out)
{
    struct gang_member *me = gang_member(g, k);
    if (speaker(g, me->row.node) != k) {
        if (me->held) {
            hold(me->held, s);
        } else if ((me->held = malloc(sizeof *me->held))) { /* without memory it is as if it had been missed */
            *me->held = *s;
        }
        return false;
    }
    *out = *s;
    for (size_t i = 0; i < gang_count(g); i++) {
        struct gang_member *m = gang_member(g, i);
        if (i == k || m->row.node != me->row.node || !m->held)
            continue;
        add(out, m->held);
        free(m->held);
        m->held = NULL;
    }
    return true;
}
