#include "core/knowledge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static void free_class(struct class_entry *c)
{
    if (!c)
        return;
    free(c->key);
    free(c->family);
    free(c);
}

void knowledge_done(struct knowledge *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++)
        free_class(k->classes[i]);
    free(k->classes);
    *k = (struct knowledge){ 0 };
}

struct class_entry *knowledge_find(const struct knowledge *k, const char *key)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->classes[i]->key, key) == 0)
            return k->classes[i];
    return NULL;
}

static void clear_settings(struct class_entry *c)
{
    c->best = c->told = (struct tuner_setting){ -1, -1 };
    for (size_t i = 0; i < TUNER_MAX_COLD; i++) {
        c->cold[i] = (struct cold_entry){ .hot = -1, .gap = NAN };
        for (size_t k = 0; k < LEVELS; k++)
            c->cold[i].level[k].per_record = NAN;
        for (size_t h = 0; h < TUNER_MAX_HOT; h++)
            c->cold[i].ratio[h] = NAN;
    }
}

static struct class_entry *new_class(const char *key, const char *family)
{
    struct class_entry *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->start = (struct tuner_setting){ -1, TUNER_MAX_COLD };
    c->key = strdup(key);
    c->family = family ? strdup(family) : NULL;
    clear_settings(c);
    if (c->key && (!family || c->family))
        return c;
    free_class(c);
    return NULL;
}

struct class_entry *knowledge_get(struct knowledge *k, const char *key, const char *family)
{
    struct class_entry *c = knowledge_find(k, key);
    if (c)
        return c;
    struct class_entry **grown = array_more(k->classes, k->n, &k->cap, sizeof(struct class_entry *));
    if (!grown)
        return NULL;
    k->classes = grown;
    c = new_class(key, family);
    if (c)
        k->classes[k->n++] = c;
    return c;
}

const struct class_entry *knowledge_relative(const struct knowledge *k, const char *key, const char *family)
{
    for (size_t i = k->n; family && i > 0; i--) {
        const struct class_entry *c = k->classes[i - 1];
        if (c->family && strcmp(c->family, family) == 0 && strcmp(c->key, key) != 0 && c->best.cold >= 0)
            return c;
    }
    return NULL;
}

bool knowledge_has_room(const struct class_entry *c, const struct tuner_space *space, struct tuner_setting s)
{
    bool begun = c->start.cold < space->n_cold && space->other[c->start.cold] == space->other[s.cold];
    if (begun && c->start.cold <= s.cold && c->start.hot >= s.hot)
        return true;
    for (int cold = s.cold; cold >= 0; cold = tuner_space_step(space, cold, -1))
        for (int hot = s.hot; hot < TUNER_MAX_HOT; hot++)
            if (isfinite(c->cold[cold].ratio[hot]))
                return true;
    return false;
}

void knowledge_refuse(struct class_entry *c, struct tuner_setting s)
{
    c->infeasible[s.hot][s.cold] = true;
    c->bound_recalled[s.hot][s.cold] = false;
}

void knowledge_bound(struct class_entry *c, const struct tuner_space *space, struct tuner_setting s)
{
    bool small = !knowledge_has_room(c, space, s);
    knowledge_refuse(c, s);
    for (int cold = s.cold; small && (cold = tuner_space_step(space, cold, -1)) >= 0;)
        knowledge_refuse(c, (struct tuner_setting){ s.hot, cold });
}

int knowledge_relatives_failed(const struct knowledge *k, const struct class_entry *c, struct tuner_setting s)
{
    int failed = 0;
    for (size_t i = 0; c->family && i < k->n; i++) {
        const struct class_entry *r = k->classes[i];
        if (r == c || !r->family || strcmp(r->family, c->family) != 0)
            continue;
        if (isfinite(r->cold[s.cold].ratio[s.hot]))
            return 0;
        failed += r->infeasible[s.hot][s.cold];
    }
    return failed;
}

void knowledge_forget(struct class_entry *c)
{
    clear_settings(c);
    for (int h = 0; h < TUNER_MAX_HOT; h++) {
        for (int i = 0; i < TUNER_MAX_COLD; i++) {
            c->infeasible[h][i] &= !c->bound_recalled[h][i];
            c->bound_recalled[h][i] = false;
        }
    }
    c->earlier = c->canary = 0;
    c->like = NULL;
}

/* --- comparing --- */

bool knowledge_has_trained(const struct class_entry *c, int hot)
{
    for (int i = 0; i < TUNER_MAX_COLD; i++)
        if (isfinite(c->cold[i].ratio[hot]))
            return true;
    return false;
}

static double own_ratio(const struct cold_entry *e, int hot, int over, bool *out_at_least)
{
    *out_at_least = e->at_least[hot];
    return e->at_least[over] ? NAN : e->ratio[hot] - e->ratio[over];
}

double knowledge_ratio(const struct class_entry *c, int cold, int hot, int over, bool *out_at_least)
{
    double r = own_ratio(&c->cold[cold], hot, over, out_at_least);
    if (isnan(r) && c->best.cold >= 0)
        r = own_ratio(&c->cold[c->best.cold], hot, over, out_at_least);
    for (int i = 0; isnan(r) && i < TUNER_MAX_COLD; i++)
        r = own_ratio(&c->cold[i], hot, over, out_at_least);
    return r;
}

/* Log of what `hot` costs, over the bare time of `over`; NAN: not known, or not to be had. */
static double cost(const struct class_entry *c, int cold, int hot, int over, const struct choice_rule *rule)
{
    bool at_least;
    double r = knowledge_ratio(c, cold, hot, over, &at_least);
    return at_least || c->infeasible[hot][cold] ? NAN : r + rule->load[hot];
}

int knowledge_best_hot(const struct class_entry *c, int cold, const struct choice_rule *rule)
{
    int over = c->cold[cold].hot;
    if (over < 0 && c->best.cold >= 0)
        over = c->cold[c->best.cold].hot;
    double least = INFINITY;
    for (int h = 0; over >= 0 && h < rule->n_hot; h++)
        least = fmin(least, cost(c, cold, h, over, rule)); /* fmin() leaves out what is NAN */
    for (int h = 0; over >= 0 && h < rule->n_hot; h++)
        if (cost(c, cold, h, over, rule) <= least + rule->tie_margin && isfinite(least))
            return h;
    return -1;
}

/* Log of the time of a cold setting over another's, each at its reference; NAN: not known. */
static double level_gap(const struct class_entry *c, int cold, int over)
{
    const struct cold_entry *a = &c->cold[cold], *b = &c->cold[over];
    for (int k = LEVELS - 1; k >= 0; k--) { /* warm times tell best */
        double gap = log(a->level[k].per_record / b->level[k].per_record);
        if (isfinite(gap))
            return gap;
    }
    return a->gap - b->gap;
}

double knowledge_gap(const struct class_entry *c, struct tuner_setting s, struct tuner_setting over)
{
    bool at_least, over_at_least;
    const struct cold_entry *a = &c->cold[s.cold], *b = &c->cold[over.cold];
    if (s.cold == over.cold)
        return knowledge_ratio(c, s.cold, s.hot, over.hot, &at_least);
    if (a->hot < 0 || b->hot < 0)
        return NAN;
    double up = knowledge_ratio(c, s.cold, s.hot, a->hot, &at_least);
    double down = knowledge_ratio(c, over.cold, over.hot, b->hot, &over_at_least);
    return at_least || over_at_least ? NAN : level_gap(c, s.cold, over.cold) + up - down;
}

double knowledge_per_record(const struct class_entry *c)
{
    if (c->best.cold < 0)
        return NAN;
    const struct level *l = c->cold[c->best.cold].level;
    return isfinite(l[LEVEL_STEADY].per_record) ? l[LEVEL_STEADY].per_record : l[LEVEL_FIRST].per_record;
}

bool knowledge_may_choose(const struct class_entry *c, const struct tuner_space *space, int cold)
{
    int start = c->start.cold;
    bool can_be_had = false;
    if (start >= space->n_cold || space->other[cold] == space->other[start])
        return true;
    for (int i = 0; i < space->n_cold; i++) {
        if (space->other[i] != space->other[start])
            continue;
        can_be_had |= !c->infeasible[c->start.hot][i];
        if (c->cold[i].hot >= 0 && c->cold[cold].hot >= 0 && isfinite(level_gap(c, cold, i)))
            return true;
    }
    return !can_be_had;
}

bool knowledge_bounded(const struct class_entry *c)
{
    for (int h = 0; h < TUNER_MAX_HOT; h++)
        for (int i = 0; i < TUNER_MAX_COLD; i++)
            if (c->infeasible[h][i] && !c->bound_recalled[h][i])
                return true;
    return false;
}

bool knowledge_compared(const struct class_entry *c)
{
    int first = -1; /* cold setting that trained */
    for (int i = 0; i < TUNER_MAX_COLD; i++) {
        const struct cold_entry *e = &c->cold[i];
        for (int h = 0; e->hot >= 0 && h < TUNER_MAX_HOT; h++)
            if (h != e->hot && isfinite(e->ratio[h]))
                return true;
        if (e->hot >= 0 && first >= 0 && isfinite(level_gap(c, i, first)))
            return true;
        first = first < 0 && e->hot >= 0 ? i : first;
    }
    return false;
}

/* The cold setting that others are compared with: the one that was best, else the first that anything is known of. -1: none. */
static int base_cold(const struct class_entry *c, const struct choice_rule *rule)
{
    if (c->best.cold >= 0 && knowledge_may_choose(c, rule->space, c->best.cold))
        return c->best.cold;
    for (int i = 0; i < rule->space->n_cold; i++)
        if (c->cold[i].hot >= 0 && knowledge_may_choose(c, rule->space, i))
            return i;
    return -1;
}

/* Log of the cost of a cold setting at its best hot one, over the bare time of the base's reference; NAN: not known. */
static double cold_cost(const struct class_entry *c, int cold, int base, const struct choice_rule *rule)
{
    const struct cold_entry *e = &c->cold[cold];
    int hot = e->hot >= 0 ? knowledge_best_hot(c, cold, rule) : -1;
    double level = cold == base ? 0 : level_gap(c, cold, base);
    return hot >= 0 ? level + cost(c, cold, hot, e->hot, rule) : NAN;
}

/* Of equals: those of the start before other choices, then the least memory. */
static int first_of(const struct class_entry *c, const struct choice_rule *rule, int a, int b)
{
    const int *other = rule->space->other;
    if (b < 0 || c->start.cold >= rule->space->n_cold || other[a] == other[b])
        return a;
    return other[b] == other[c->start.cold] ? b : a;
}

bool knowledge_best(const struct class_entry *c, const struct choice_rule *rule, struct tuner_setting *out)
{
    double least = INFINITY, cost[TUNER_MAX_COLD];
    int base = base_cold(c, rule), cold = -1;
    for (int i = 0; base >= 0 && i < rule->space->n_cold; i++) {
        cost[i] = knowledge_may_choose(c, rule->space, i) ? cold_cost(c, i, base, rule) : (double)NAN;
        least = fmin(least, cost[i]);
    }
    for (int i = rule->space->n_cold - 1; i >= 0 && isfinite(least); i--)
        if (cost[i] <= least + rule->tie_margin)
            cold = first_of(c, rule, i, cold);
    cold = cold < 0 ? base : cold;
    int hot = cold >= 0 ? knowledge_best_hot(c, cold, rule) : -1;
    if (hot >= 0)
        *out = (struct tuner_setting){ hot, cold };
    return hot >= 0;
}

/* --- learning --- */

/* Nothing ties this one to the reference: it becomes the reference. */
static void begin_at(struct cold_entry *e, int hot)
{
    for (size_t h = 0; h < TUNER_MAX_HOT; h++)
        e->ratio[h] = NAN;
    for (size_t k = 0; k < LEVELS; k++)
        e->level[k] = (struct level){ .per_record = NAN };
    e->ratio[hot] = 0;
    e->at_least[hot] = false;
    e->hot = hot;
    e->gap = NAN;
}

void knowledge_learn_time(struct class_entry *c, struct tuner_setting s, enum level_kind kind, double per_record)
{
    struct cold_entry *e = &c->cold[s.cold];
    struct level *l = &e->level[kind];
    bool at_least = false;
    double ratio = e->hot >= 0 ? knowledge_ratio(c, s.cold, s.hot, e->hot, &at_least) : NAN;
    if (isnan(ratio) || at_least)
        ratio = log(per_record / l->per_record);
    if (isfinite(ratio)) {
        e->ratio[s.hot] = ratio;
        e->at_least[s.hot] = false;
    } else {
        begin_at(e, s.hot);
    }
    double of_reference = per_record / exp(e->ratio[s.hot]);
    if (isfinite(of_reference)) { /* a running mean, so that one noisy trial does not decide */
        l->per_record = l->n ? l->per_record + (of_reference - l->per_record) / (l->n + 1) : of_reference;
        l->n++;
    }
}

void knowledge_learn_ratio(struct class_entry *c, int cold, int hot, int over, double ratio, bool at_least)
{
    struct cold_entry *e = &c->cold[cold];
    if (hot == over || !isfinite(e->ratio[over]))
        return;
    e->ratio[hot] = e->ratio[over] + ratio;
    e->at_least[hot] = at_least;
    if (hot != e->hot)
        return;
    for (size_t h = 0; h < TUNER_MAX_HOT; h++) /* the reference itself was looked at again */
        e->ratio[h] -= h == (size_t)hot ? 0 : e->ratio[hot];
    e->ratio[hot] = 0;
}

bool knowledge_review(struct class_entry *c, const struct choice_rule *rule)
{
    (void)knowledge_best(c, rule, &c->best); /* else what was best stays */
    bool same = c->best.hot == c->told.hot && c->best.cold == c->told.cold;
    if (same || !knowledge_compared(c))
        return false;
    c->told = c->best;
    return true;
}
