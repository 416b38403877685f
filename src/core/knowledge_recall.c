/* What earlier studies knew, put where what is learnt here will stand. */
#include <math.h>

#include "core/knowledge.h"

static void recall_gap(struct class_entry *c, struct tuner_setting s, struct tuner_setting over, double ratio)
{
    struct cold_entry *a = &c->cold[s.cold], *b = &c->cold[over.cold];
    if (a->hot < 0) { /* it was trained under this setting alone */
        a->hot = s.hot;
        a->ratio[s.hot] = 0;
    }
    if (b->hot < 0) {
        b->hot = over.hot;
        b->ratio[over.hot] = 0;
    }
    double of_references = ratio - a->ratio[s.hot] + b->ratio[over.hot];
    if (!isfinite(of_references))
        return;
    if (isnan(b->gap))
        b->gap = isnan(a->gap) ? 0 : a->gap - of_references;
    a->gap = b->gap + of_references;
}

void knowledge_recall(struct class_entry *c, struct tuner_setting s, struct tuner_setting over, double ratio,
                      bool at_least)
{
    struct cold_entry *e = &c->cold[s.cold];
    if (s.cold != over.cold) {
        if (!at_least)
            recall_gap(c, s, over, ratio);
        return;
    }
    if (e->hot < 0) {
        e->hot = over.hot;
        e->ratio[over.hot] = 0;
    }
    if (s.hot == e->hot || s.hot == over.hot || !isfinite(e->ratio[over.hot] + ratio) || e->at_least[over.hot])
        return;
    e->ratio[s.hot] = e->ratio[over.hot] + ratio;
    e->at_least[s.hot] = at_least;
}

void knowledge_recall_bound(struct class_entry *c, struct tuner_setting s)
{
    if (!c->infeasible[s.hot][s.cold])
        c->infeasible[s.hot][s.cold] = c->bound_recalled[s.hot][s.cold] = true;
}

/* Of one cold setting, without its seconds. */
static void copy_cold(struct class_entry *c, const struct class_entry *from, int cold)
{
    const struct cold_entry *f = &from->cold[cold];
    struct cold_entry *e = &c->cold[cold];
    struct tuner_setting here = { f->hot, cold }, base = { from->cold[from->best.cold].hot, from->best.cold };
    *e = *f;
    for (int k = 0; k < LEVELS; k++)
        e->level[k] = (struct level){ .per_record = NAN };
    e->gap = here.hot < 0 || base.hot < 0 ? NAN : here.cold == base.cold ? 0 : knowledge_gap(from, here, base);
}

void knowledge_recall_like(struct class_entry *c, const struct class_entry *from)
{
    c->best = c->told = from->best;
    for (int i = 0; i < TUNER_MAX_COLD; i++)
        copy_cold(c, from, i);
    c->recall = RECALL_OPEN;
    c->earlier = from->earlier + from->trials;
    c->like = from;
    c->canary = 0;
}
