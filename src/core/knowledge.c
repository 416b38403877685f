#include "core/knowledge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static struct class_entry *new_class(const char *key, const char *family)
{
    struct class_entry *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->best_hot = -1;
    c->key = strdup(key);
    c->family = family ? strdup(family) : NULL;
    for (size_t i = 0; i < TUNER_MAX_COLD; i++)
        c->cold[i] = (struct cold_entry){ .hot = -1, .per_record = NAN };
    for (size_t i = 0; i < TUNER_MAX_HOT; i++)
        c->ratio[i] = NAN;
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
    if (k->n == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 8;
        struct class_entry **grown = realloc(k->classes, cap * sizeof(struct class_entry *));
        if (!grown)
            return NULL;
        k->classes = grown;
        k->cap = cap;
    }
    c = new_class(key, family);
    if (c)
        k->classes[k->n++] = c;
    return c;
}

const struct class_entry *knowledge_relative(const struct knowledge *k, const char *key, const char *family)
{
    for (size_t i = 0; family && i < k->n; i++) {
        const struct class_entry *c = k->classes[i];
        if (c->family && strcmp(c->family, family) == 0 && strcmp(c->key, key) != 0 && c->trials > 0)
            return c;
    }
    return NULL;
}

void knowledge_bound(struct class_entry *c, struct tuner_setting s)
{
    for (int cold = 0; cold <= s.cold; cold++)
        c->infeasible[s.hot][cold] = true;
}

static bool better_cold(const struct class_entry *c, int cold, double tie_margin)
{
    const struct cold_entry *best = &c->cold[c->best_cold];
    double now = c->cold[cold].per_record;
    return isfinite(now) && (!isfinite(best->per_record) || now < best->per_record * (1.0 - tie_margin));
}

bool knowledge_learn(struct class_entry *c, struct tuner_setting s, double per_record, double tie_margin, int n_cold)
{
    struct cold_entry *cold = &c->cold[s.cold];
    struct tuner_setting before = { c->best_hot, c->best_cold };
    cold->tried = true;
    cold->hot = s.hot;
    if (isfinite(per_record)) { /* a running mean, so that one noisy trial does not decide */
        cold->per_record = cold->n ? cold->per_record + (per_record - cold->per_record) / (cold->n + 1) : per_record;
        cold->n++;
    }
    c->trials++;
    if (before.hot < 0 || s.cold == before.cold)
        c->best_cold = s.cold;
    /* What was best may have been measured worse since: ask all, in order. */
    for (int i = 0; i < n_cold; i++)
        if (i != c->best_cold && c->cold[i].tried && better_cold(c, i, tie_margin))
            c->best_cold = i;
    c->best_hot = c->cold[c->best_cold].hot;
    return c->best_hot != before.hot || c->best_cold != before.cold;
}
