/* What a trial is launched with: the best of its class, and now and then a setting that is worth a try. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "core/tuner_state.h"

/* One trial with nothing beside it, and nothing waiting for room: memory that it does not need costs nobody anything. */
static bool memory_is_free(const struct tuner *t, const struct tuner_ask *ask)
{
    return ask->alone && t->waiting == 0;
}

/* Where memory has a price, more than the default must have shown that it is faster. */
static int cold_worth(const struct tuner *t, const struct class_entry *c, const struct tuner_ask *ask,
                      struct tuner_setting best)
{
    struct tuner_setting with_default = { best.hot, ask->start.cold };
    double gap = knowledge_gap(c, best, with_default);
    bool faster =
        gap < -t->cfg.tie_margin || (c->recall == RECALL_OPEN && isnan(gap)); /* then it was chosen for a reason */
    bool keep =
        memory_is_free(t, ask) || best.cold <= ask->start.cold || faster || c->infeasible[best.hot][ask->start.cold];
    return keep ? best.cold : ask->start.cold;
}

/* --- a class that nothing is known of --- */

/* A heap that is too small makes every collection of garbage longer, one that is too large costs a single trial nothing: where
 * memory is free the first trial gets the largest. When that cannot be had, the next smaller one, then the default. */
static const char *stranger(const struct tuner *t, const struct class_entry *c, const struct tuner_ask *ask,
                            struct tuner_setting *out)
{
    int largest = t->space.n_cold - 1, written = out->cold;
    while (out->cold < largest && c->infeasible[out->hot][out->cold]) /* a trial of the class has run out of it */
        out->cold++;
    if (largest > out->cold && c->infeasible[out->hot][largest]) /* it may be more than the machine has to give */
        largest--;
    if (!memory_is_free(t, ask) || largest <= out->cold || c->infeasible[out->hot][largest])
        return out->cold == written ? "the default setting" : "the least memory that has not proved too little";
    out->cold = largest;
    return largest == t->space.n_cold - 1 ? "the largest memory, which costs nothing while no trial waits"
                                          : "the largest memory but one, since that was refused";
}

/* Less memory than the default, which mostly can be had, may fail to launch: what it saved a relative has to be worth that. */
static bool less_pays(const struct class_entry *relative, struct tuner_setting less, int cold)
{
    double gap = knowledge_gap(relative, (struct tuner_setting){ less.hot, cold }, less);
    double saves = (1 - exp(-gap)) * knowledge_per_record(relative) * relative->records;
    return saves > TUNER_RISK * relative->startup_s;
}

static const char *first_launch(const struct tuner *t, const struct class_entry *c, const struct tuner_ask *ask,
                                const struct choice_rule *rule, struct tuner_setting *out)
{
    const struct class_entry *relative = knowledge_relative(&t->known, ask->class_key, ask->family_key);
    struct tuner_setting best;
    if (!relative || !knowledge_best(relative, rule, &best) || c->infeasible[best.hot][best.cold])
        return stranger(t, c, ask, out);
    best.cold = cold_worth(t, relative, ask, best);
    bool refused = c->infeasible[out->hot][out->cold];
    if (best.cold < out->cold && !refused && memory_is_free(t, ask) && !less_pays(relative, best, out->cold))
        return "the default setting: less memory was hardly better for a job that differs in batch alone";
    bool fewer = best.cold == out->cold || out->hot < best.hot;
    if (fewer && !c->infeasible[out->hot][best.cold]) /* the others once it runs: a change that fails costs nothing */
        out->cold = best.cold;
    else
        *out = best;
    return "the memory that was best for a job that differs in batch alone";
}

/* --- a class that is known --- */

static const char *next_launch(const struct tuner *t, struct class_entry *c, const struct tuner_ask *ask,
                               const struct choice_rule *rule, struct tuner_setting *out)
{
    struct tuner_setting best, next;
    if (!knowledge_best(c, rule, &best)) {
        struct tuner_setting there = { out->hot, cold_worth(t, c, ask, c->best) };
        if (!c->infeasible[there.hot][there.cold])
            *out = there;
        return "no cores that it may have were measured: the default ones";
    }
    *out = (struct tuner_setting){ best.hot, cold_worth(t, c, ask, best) };
    if (c->recall == RECALL_OPEN)
        return c->like ? "known: it has the profile of a class that is" : "known from earlier studies";
    double worth = ask->alone ? tuner_cold_next(t, c, best, rule->n_hot, COLD_LAUNCH, &next) : 0;
    if (!(c->spent_s + TUNER_RISK * c->startup_s <
          worth * knowledge_per_record(c) * c->records * (c->trials + 1))) /* what earlier trials left counts */
        return "the best setting of its class";
    *out = next;
    return "worth a try, at what a launch costs";
}

int tuner_launch(struct tuner *t, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                 struct err *e)
{
    if (!tuner_has(t, ask->start) || !ask->class_key)
        return err_set(e, -EPROTO, "trial %d asks with a setting or a class that there is not", ask->trial);
    struct class_entry *c = knowledge_get(&t->known, ask->class_key, ask->family_key);
    if (!c)
        return err_sys(e, -ENOMEM, "class '%s'", ask->class_key);
    struct choice_rule rule = tuner_rule(t, tuner_n_hot(t, ask->n_hot));
    bool planned = ask->trial != 0 && c->planned_for == ask->trial && ask->alone && c->plan.hot < rule.n_hot;
    const char *why = "what it was relaunched for";
    c->start = ask->start;
    *out = ask->start;
    if (out->hot >= rule.n_hot)
        out->hot = rule.n_hot - 1;
    if (planned)
        *out = c->plan;
    else
        why = c->best.cold < 0 ? first_launch(t, c, ask, &rule, out) : next_launch(t, c, ask, &rule, out);
    if (c->planned_for == ask->trial)
        c->planned_for = 0;
    (void)snprintf(reason, TUNER_REASON_MAX, "%s", why);
    return 0;
}
