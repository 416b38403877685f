/* Cold settings: which one is worth a launch, and when a trial is worth a relaunch.
 *
 * A try costs a start-up, what was done of the epoch, and a first epoch once more; it is made where that is less than the share
 * of the time left that it is worth. Three things are worth a try: cores that the memory of the trial does not let run, wherever
 * they may run; a larger memory, when the trial had to begin with less than the largest; and, for a later trial of the class,
 * other values of the knobs that have no order. A smaller memory is not: it gains nothing, and a launch that fails in it costs a start-up. */
#include <math.h>
#include <stdlib.h>

#include "core/tuner_state.h"

enum { RELAUNCHES_MAX = 3 /* of a trial */ };

static const double NEAR = 0.1;         /* log: cores this close may be the best under another memory … */
static const double IN_REACH = 0.4;     /* … and these may, against the odds */
static const double AGAINST_ODDS = 0.2; /* of what a try is worth */
static const double REFUSED_AGAIN = 0.5; /* … for each memory but one that has refused these cores, and in less of it */
static const double SURE = 0.08;         /* log: times of first epochs differ this much by themselves */
static const double PATIENCE = 2;  /* epochs of the class's best after which a try has to have completed a window */
static const double WARM_UP = 0.4; /* log: how much slower a first epoch is, where nobody has measured it */

/* --- which one --- */

struct view {
    const struct tuner *t;
    const struct class_entry *c, *relative; /* relative NULL: none */
    struct choice_rule rule;
    struct tuner_setting from;
};

/* Log of what `hot` costs over another, whatever the memory; NAN: not known. */
static double cost_over(const struct class_entry *c, int cold, const struct choice_rule *rule, int hot, int over)
{
    bool at_least; /* then it is at least as bad as that */
    return knowledge_ratio(c, cold, hot, over, &at_least) + rule->load[hot] - rule->load[over];
}

/* Log of what `hot` saves, over what another costs: that, or more, where the other was cut. NAN: not known. */
static double gain_of(const struct class_entry *c, int cold, const struct choice_rule *rule, int hot, int over)
{
    double gain = cost_over(c, cold, rule, over, hot);
    return isnan(gain) ? -cost_over(c, cold, rule, hot, over) : gain;
}

/* Log of what the first hot setting from `hot` on costs that was compared with the trial's, over that one; NAN: there is none. */
static double cost_from(const struct view *v, int hot, int step)
{
    double cost = NAN;
    for (; isnan(cost) && hot >= 0 && hot < v->rule.n_hot; hot += step)
        cost = cost_over(v->c, v->from.cold, &v->rule, hot, v->from.hot);
    return cost;
}

/* Log of what cores that never trained may gain over the trial's, which are the best of those that did. Speed over cores has one peak,
 * mostly: nothing where others on that side trained and were no better, else as much as the last step on the way here did. NAN:
 * nothing tells. */
static double trend(const struct view *v, int hot)
{
    int step = hot > v->from.hot ? 1 : -1;
    bool passed = !isnan(cost_from(v, v->from.hot + step, step));
    return passed ? -INFINITY : cost_from(v, v->from.hot - step, -step);
}

static int refusals(const struct view *v, int hot)
{
    int n = 0;
    for (int i = 0; i < v->t->space.n_cold; i++)
        n += v->t->space.other[i] == v->t->space.other[v->from.cold] && v->c->infeasible[hot][i];
    return n;
}

/* The share of the time left that a try may cost: half of what it is expected to gain; where nothing tells, what probing may lose;
 * little of that where it is against the odds. */
static double worth_of(const struct view *v, double gain, bool likely)
{
    if (gain > 0)
        return (1 - exp(-gain)) / 2;
    return v->t->cfg.probe_budget * (likely && !(gain < -NEAR) ? 1 : AGAINST_ODDS);
}

static bool may_try(const struct view *v, int hot, int cold, bool strict)
{
    struct tuner_setting s = { hot, cold };
    return !v->c->infeasible[hot][cold] && !(strict && knowledge_relatives_failed(&v->t->known, v->c, s) > 0);
}

/* The nearest other memory in which these cores may be had, larger ones first, where no relative has failed if possible. -1: none. */
static int memory_for(const struct view *v, int hot)
{
    for (int strict = 1; strict >= 0; strict--)
        for (int by = 1; by >= -1; by -= 2)
            for (int i = v->from.cold; (i = tuner_space_step(&v->t->space, i, by)) >= 0;)
                if (may_try(v, hot, i, strict))
                    return i;
    return -1;
}

/* Cores that have never trained. */
static double try_cores(const struct view *v, int hot, struct tuner_setting *out)
{
    int cold = hot == v->from.hot || knowledge_has_trained(v->c, hot) ? -1 : memory_for(v, hot);
    bool there = v->c->recall == RECALL_HOLDS && !v->c->infeasible[hot][v->from.cold];
    if (cold < 0 || there) /* what was recalled may leave out cores that can be had where it is */
        return 0;
    double gain = v->relative ? gain_of(v->relative, v->relative->best.cold, &v->rule, hot, v->from.hot) : NAN;
    if (isnan(gain))
        gain = trend(v, hot);
    double worth = worth_of(v, gain, true);
    if (cold < v->from.cold && !knowledge_has_room(v->c, &v->t->space, (struct tuner_setting){ hot, v->from.cold }))
        worth *= REFUSED_AGAIN; /* it may be for want of memory that they were refused, and then less is no cure */
    for (int n = refusals(v, hot); n > 1; n--)
        worth *= REFUSED_AGAIN;
    *out = (struct tuner_setting){ hot, cold };
    return worth;
}

/* The hot setting to try a memory with: the best one, else the nearest that is not far behind. -1: none. */
static int hot_for(const struct view *v, int cold)
{
    int hot = -1;
    for (int h = 0; h < v->rule.n_hot; h++)
        if (may_try(v, h, cold, false) && cost_over(v->c, v->from.cold, &v->rule, h, v->from.hot) < IN_REACH &&
            (hot < 0 || abs(h - v->from.hot) < abs(hot - v->from.hot)))
            hot = h;
    return hot;
}

/* A larger memory than any that has trained. While trials wait memory has a price. */
static double try_memory(const struct view *v, int cold, struct tuner_setting *out)
{
    for (int i = v->from.cold; (i = tuner_space_step(&v->t->space, i, 1)) >= 0;)
        if (v->c->cold[i].hot >= 0)
            return 0;
    int hot = v->t->waiting > 0 ? -1 : hot_for(v, cold);
    if (hot < 0)
        return 0;
    *out = (struct tuner_setting){ hot, cold };
    double gain = NAN;
    if (v->relative)
        gain = -(knowledge_gap(v->relative, *out, v->from) + v->rule.load[hot] - v->rule.load[v->from.hot]);
    return worth_of(v, gain, cost_over(v->c, v->from.cold, &v->rule, hot, v->from.hot) < NEAR);
}

/* Parts and properties that were never compared, as they were written: with the memory of the trial, at a launch that
 * happens anyway. */
static double try_other(const struct view *v, struct tuner_setting *out)
{
    const struct tuner_space *space = &v->t->space;
    for (int i = 0; i < space->n_cold; i++) {
        bool other = space->other[i] != space->other[v->from.cold] && space->memory[i] == space->memory[v->from.cold];
        if (!other || v->c->cold[i].hot >= 0 || !may_try(v, v->from.hot, i, true))
            continue;
        *out = (struct tuner_setting){ v->from.hot, i };
        return worth_of(v, NAN, false);
    }
    return 0;
}

double tuner_cold_next(const struct tuner *t, const struct class_entry *c, struct tuner_setting from, int n_hot,
                       enum cold_when when, struct tuner_setting *out)
{
    if (c->recall == RECALL_OPEN || (c->recall == RECALL_HOLDS && when == COLD_RELAUNCH))
        return 0; /* earlier studies have looked; what fits even better is worth a launch that happens anyway, no more */
    struct view v = { t, c, knowledge_relative(&t->known, c->key, c->family), tuner_rule(t, n_hot), from };
    struct tuner_setting s = from;
    double most = 0, worth;
    for (int i = 0; i < n_hot; i++) /* of equals the smallest core number, then the largest memory */
        if ((worth = try_cores(&v, i, &s)) > most) {
            most = worth;
            *out = s;
        }
    for (int cold = t->space.n_cold - 1; cold > from.cold; cold--)
        if (t->space.other[cold] == t->space.other[from.cold] && (worth = try_memory(&v, cold, &s)) > most) {
            most = worth;
            *out = s;
        }
    return most > 0 || when == COLD_RELAUNCH ? most : try_other(&v, out);
}

/* --- when --- */

/* Seconds per record after the first epoch. */
static double steady(const struct trial_state *s)
{
    if (s->steady_records > 0)
        return s->steady_s / s->steady_records;
    return s->reference * (s->reference_epoch == s->first ? exp(-WARM_UP) : 1);
}

static double epoch_s(const struct trial_state *s)
{
    return steady(s) * s->epoch_records;
}

/* What a relaunch costs now. */
static double relaunch_s(const struct trial_state *s)
{
    double cost = s->startup_s + s->now_s - s->epoch_began_s;
    if (s->epoch == s->first) /* the first epoch is begun once more, but not run twice */
        return cost;
    double warm_up = isfinite(s->first_value) ? s->first_value / steady(s) : exp(WARM_UP);
    return cost + fmax(0, warm_up - 1) * epoch_s(s);
}

static void relaunch(struct trial_state *s, struct tuner_setting to, const char *why, struct tuner_actions *out)
{
    struct class_entry *c = s->class;
    c->relaunches = c->relaunched == s->number ? c->relaunches + 1 : 1;
    c->relaunched = c->planned_for = s->number;
    c->plan = to;
    c->records = s->epoch_records > 0 ? s->epoch_records * s->epochs : c->records;
    c->spent_s += s->new_cold && !s->fresh ? relaunch_s(s) : 0; /* this was a try */
    s->leaving = true;
    tuner_act_on(out, ACT_RELAUNCH, s, to, why);
}

static bool may_relaunch(const struct trial_state *s)
{
    const struct class_entry *c = s->class;
    bool often = c->relaunched == s->number && c->relaunches >= RELAUNCHES_MAX;
    bool measured = s->epoch_records > 0 && isfinite(s->reference);
    return s->phase == PHASE_SETTLED && s->alone && s->startup_s > 0 && !s->leaving && !often && measured;
}

/* Back to a memory that was better. */
static bool go_back(const struct tuner *t, struct trial_state *s, double left_s, struct tuner_actions *out)
{
    struct choice_rule rule = tuner_rule(t, s->n_hot);
    struct tuner_setting at = { s->incumbent, s->start.cold }, to;
    if (!knowledge_best(s->class, &rule, &to) || to.cold == at.cold)
        return false;
    double gain = -(knowledge_gap(s->class, to, at) + rule.load[to.hot] - rule.load[at.hot]);
    bool worth = gain > SURE && left_s * (1 - exp(-gain)) > relaunch_s(s);
    if (worth)
        relaunch(s, to,
                 t->space.other[to.cold] == t->space.other[at.cold] ? "this memory was better"
                                                                    : "what it was compared with was better",
                 out);
    return worth;
}

void tuner_cold_consider(const struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    if (!may_relaunch(s))
        return;
    struct tuner_setting at = { s->incumbent, s->start.cold }, to;
    double left_s = (s->epochs - s->epoch + 1) * epoch_s(s);
    if (go_back(t, s, left_s, out))
        return;
    double worth = tuner_cold_next(t, s->class, at, s->n_hot, COLD_RELAUNCH, &to);
    if (relaunch_s(s) + TUNER_RISK * s->startup_s < worth * left_s)
        relaunch(s, to,
                 knowledge_has_trained(s->class, to.hot) ? "a larger memory is worth a try"
                                                         : "cores that this memory does not let run are worth a try",
                 out);
}

void tuner_cold_ended(const struct trial_state *s)
{
    struct class_entry *c = s->class;
    if (!s->new_cold || s->fresh || c->best.cold < 0)
        return;
    double gap = knowledge_gap(c, (struct tuner_setting){ s->incumbent, s->start.cold }, c->best);
    if (gap > 0)
        c->spent_s += (exp(gap) - 1) * knowledge_per_record(c) * c->records;
}

/* --- a memory that gets a trial nowhere --- */

void tuner_cold_begin(struct trial_state *s)
{
    const struct class_entry *c = s->class;
    double epoch = s->epochs > 0 ? knowledge_per_record(c) * c->records / s->epochs : NAN;
    s->patience_s = INFINITY;
    if (s->new_cold && !s->fresh && s->alone && s->startup_s > 0 && epoch > 0)
        s->patience_s = s->now_s + PATIENCE * epoch * exp(WARM_UP);
}

bool tuner_cold_give_up(const struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    struct choice_rule rule = tuner_rule(t, s->n_hot);
    struct tuner_setting to;
    if (isfinite(s->reference) || s->leaving || !isfinite(s->patience_s))
        return false;
    if (s->now_s < s->patience_s) {
        tuner_act(out, ACT_WAKE, s, s->patience_s, "by then it should have shown how fast it is");
        return false;
    }
    s->patience_s = INFINITY;
    knowledge_refuse(s->class, (struct tuner_setting){ s->now.hot, s->start.cold });
    if (!knowledge_best(s->class, &rule, &to) || to.cold == s->start.cold)
        return false;
    relaunch(s, to, "what is tried gets it nowhere", out);
    return true;
}
