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
    bool more = t->space.memory[best.cold] > t->space.memory[ask->start.cold];
    bool keep = memory_is_free(t, ask) || !more || faster || c->infeasible[best.hot][ask->start.cold];
    return keep ? best.cold : ask->start.cold;
}

/* --- a class that nothing is known of --- */

enum { NO_RELATIVES, ONE_RELATIVE, TWO_RELATIVES };

/* It cannot be had, as the class knows, or so many jobs that differ in batch alone. */
static bool refused(const struct tuner *t, const struct class_entry *c, int hot, int cold, int relatives)
{
    struct tuner_setting s = { hot, cold };
    bool too_many = relatives > 0 && knowledge_relatives_failed(&t->known, c, s) >= relatives;
    return c->infeasible[hot][cold] || too_many;
}

/* The nearest rung from the start up that was not refused, else down. -1: none. */
static int find_rung(const struct tuner *t, const struct class_entry *c, struct tuner_setting start, int relatives)
{
    for (int i = start.cold; i >= 0; i = tuner_space_step(&t->space, i, 1))
        if (!refused(t, c, start.hot, i, relatives))
            return i;
    for (int i = start.cold; (i = tuner_space_step(&t->space, i, -1)) >= 0;)
        if (!refused(t, c, start.hot, i, relatives))
            return i;
    return -1;
}

/* The first of the other choices that was not refused, as they were written. -1: none. */
static int find_other(const struct tuner *t, const struct class_entry *c, struct tuner_setting start)
{
    for (int i = 0; i < t->space.n_cold; i++)
        if (t->space.memory[i] == t->space.memory[start.cold] && !c->infeasible[start.hot][i])
            return i;
    return -1;
}

/* The largest memory above this one, or the next to it when that was refused: it may be more than the machine has to give. */
static int find_largest(const struct tuner *t, const struct class_entry *c, struct tuner_setting from, int *out_top)
{
    int cold = from.cold;
    for (int more = cold; more >= 0; more = tuner_space_step(&t->space, more, 1))
        cold = more;
    *out_top = cold;
    if (cold != from.cold && refused(t, c, from.hot, cold, TWO_RELATIVES))
        cold = tuner_space_step(&t->space, cold, -1);
    return refused(t, c, from.hot, cold, TWO_RELATIVES) ? from.cold : cold;
}

/* A heap that is too small makes every collection of garbage longer, one that is too large costs a single trial nothing: where
 * memory is free the first trial gets the largest. When that cannot be had, the next smaller one, then the default. */
static const char *stranger(const struct tuner *t, const struct class_entry *c, const struct tuner_ask *ask,
                            struct tuner_setting *out)
{
    int top, other, start = out->cold, at = find_rung(t, c, *out, ONE_RELATIVE);
    at = at < 0 ? find_rung(t, c, *out, NO_RELATIVES) : at;
    if (at < 0 && (other = find_other(t, c, *out)) >= 0) {
        out->cold = other;
        return "the next choice that was written: what stands before it cannot be had";
    }
    out->cold = at < 0 ? start : at;
    int largest = find_largest(t, c, *out, &top);
    bool asked_for = t->space.memory_entered && out->cold == start;
    if (largest == out->cold || asked_for || !memory_is_free(t, ask))
        return asked_for            ? "the setting that was entered"
               : out->cold == start ? "the default setting"
                                    : "the least memory that has not proved too little";
    out->cold = largest;
    return largest == top ? "the largest memory, which costs nothing while no trial waits"
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
    bool less = t->space.memory[best.cold] < t->space.memory[out->cold];
    if (less && !refused(t, c, out->hot, out->cold, ONE_RELATIVE) && !less_pays(relative, best, out->cold))
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
        if (!c->infeasible[there.hot][there.cold] && knowledge_may_choose(c, &t->space, there.cold))
            *out = there;
        return "no cores that it may have were measured: the default ones";
    }
    *out = (struct tuner_setting){ best.hot, cold_worth(t, c, ask, best) };
    if (c->recall == RECALL_OPEN)
        return c->like ? "known: it has the profile of a class that is" : "known from earlier studies";
    double worth = ask->alone ? tuner_cold_next(t, c, best, rule->n_hot, COLD_LAUNCH, &next) : 0;
    bool other = worth > 0 && t->space.other[next.cold] != t->space.other[best.cold]; /* no session is warm for it */
    if (!(c->spent_s + (other ? 1 : TUNER_RISK) * c->startup_s <
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
