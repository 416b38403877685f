/* What earlier studies knew of a trial's class, and what profiles say of it: used at once, checked by one comparison with the default
 * (the canary), taken back when it does not hold. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "core/stats.h"
#include "core/tuner_state.h"

enum { CANARY_PAIRS = 3, KEY_SHOWN = 80 /* bytes */ };

/* --- texts --- */

/* The key of a class, cut to what a reason has room for. */
static const char *short_key(const char *key, char text[KEY_SHOWN + 1])
{
    size_t len = 0, more;
    size_t size = strlen(key);
    const unsigned char *p = (const unsigned char *)key, *end = p + size;
    while (len < size && (more = utf8_len(p + len, end)) > 0 && len + more <= KEY_SHOWN)
        len += more;
    memcpy(text, key, len);
    text[len] = '\0';
    return text;
}

/* Whence it is known. */
static const char *origin(const struct class_entry *c, char text[TUNER_REASON_MAX])
{
    char key[KEY_SHOWN + 1];
    if (c->like)
        (void)snprintf(text, TUNER_REASON_MAX, "its profile is that of %s", short_key(c->like->key, key));
    else
        (void)snprintf(text, TUNER_REASON_MAX, "known from earlier studies");
    return text;
}

/* --- the profile --- */

void tuner_recall_profile(struct trial_state *s, struct tuner_actions *out)
{
    if (s->profiled)
        return;
    s->profiled = true;
    tuner_act(out, ACT_PROFILE, s, s->window.begin_s, "the first steady window");
    out->list[out->n - 1].until_s = s->now_s;
}

/* --- the canary --- */

/* The default hot setting, as far as the trial may have it; -1: not known, or not to be had. */
static int default_hot(const struct trial_state *s)
{
    int hot = s->class->start.hot < s->n_hot ? s->class->start.hot : s->n_hot - 1;
    return hot >= 0 && tuner_cand_allowed(s, hot) ? hot : -1;
}

/* Why there is no canary, or none any more; NULL: there is one. */
static const char *no_canary(const struct tuner *t, const struct trial_state *s)
{
    const struct class_entry *c = s->class;
    int hot = default_hot(s);
    if (c->recall != RECALL_OPEN)
        return "it was found to hold";
    if (!s->alone)
        return "it is not alone";
    if (t->space.n_hot == 1 || s->n_hot == 1)
        return "there are no other cores";
    if (hot < 0)
        return "there is no default to compare with";
    if (hot == s->incumbent)
        return "that is the default";
    if (c->canary && c->canary != s->number)
        return "another trial compares it";
    return s->cand[hot].measured && s->cand[hot].verdict != CAND_OPEN ? "it was compared with the default" : NULL;
}

static void settle(struct tuner *t, struct trial_state *s, const char *because, struct tuner_actions *out)
{
    char from[TUNER_REASON_MAX], why[TUNER_REASON_MAX];
    (void)snprintf(why, sizeof why, "recognised: %s; %s", origin(s->class, from), because);
    tuner_probe_settle(t, s, out, why);
}

bool tuner_recall_begin(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    const char *none = no_canary(t, s);
    s->new_cold = false; /* nothing of it is to be looked at again */
    if (none)
        settle(t, s, none, out);
    else
        s->class->canary = s->number;
    return none;
}

void tuner_recall_leave(struct trial_state *s)
{
    s->recognised = false;
    if (s->class && s->class->canary == s->number)
        s->class->canary = 0;
}

static void confirm(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out)
{
    double cost = tuner_cand_cost(t, s, hot, s->cand[hot].centre);
    s->class->recall = RECALL_HOLDS;
    tuner_act(out, ACT_CONFIRM, s, s->now_s, "the default, %g core%s, is no better: %+.1f %%%s", TUNER_CORES(t, hot),
              100.0 * (exp(cost) - 1.0), s->cand[hot].at_least ? " or more" : "");
    settle(t, s, "no worse than the default", out);
}

void tuner_recall_go_on(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    const char *none = no_canary(t, s);
    int hot = default_hot(s);
    bool judged = hot >= 0 && s->cand[hot].measured && s->cand[hot].verdict != CAND_OPEN;
    if (none && judged && s->class->recall == RECALL_OPEN && s->class->canary == s->number) {
        confirm(t, s, hot, out);
        return;
    }
    if (none) {
        settle(t, s, none, out);
        return;
    }
    s->class->canary = s->number;
    s->cand[hot].verdict = CAND_OPEN; /* until it is judged */
    tuner_probe_measure(t, s, hot, out, "canary, the default: window");
}

/* --- taken back --- */

static void reject(struct trial_state *s, struct tuner_actions *out, const char *why)
{
    tuner_act_on(out, ACT_WEAKEN, s, (struct tuner_setting){ s->incumbent, s->start.cold }, why);
    knowledge_forget(s->class);
    s->class->recall = RECALL_REJECTED;
    s->recognised = false;
    s->fresh = s->new_cold = true;
}

void tuner_recall_failed(struct tuner *t, struct trial_state *s, int hot, double ratio, struct tuner_actions *out)
{
    double cost = tuner_cand_cost(t, s, hot, ratio);
    char why[TUNER_REASON_MAX];
    (void)snprintf(why, sizeof why, "the default, %g core%s, is better: %+.1f %%", TUNER_CORES(t, hot),
                   100.0 * (exp(cost) - 1.0));
    reject(s, out, why);
    s->lost_s += (s->now_s - s->began_s) * (1.0 - exp(cost)); /* with what was recalled, over what the default needs */
    tuner_probe_open(t, s, true);
    tuner_probe_adopt(t, s, hot, ratio, out, "it is better than what was recalled");
}

/* The default has to be better beyond the noise. One pair tells that only when it is far off; the second and third are there for
 * what lies between. */
void tuner_recall_judge(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out)
{
    struct candidate *c = &s->cand[hot];
    double ratio = stats_median(c->log_ratio, c->pairs), cost = tuner_cand_cost(t, s, hot, ratio);
    s->probing = -1;
    if (cost + tuner_probe_half(t, c) < 0) {
        tuner_recall_failed(t, s, hot, ratio, out);
        return;
    }
    bool better = cost < -t->cfg.tie_margin;
    if (!better || c->pairs >= CANARY_PAIRS) {
        c->verdict = better ? CAND_TIE : CAND_WORSE;
        c->centre = better ? ratio - cost : ratio; /* within the noise it costs the same */
    }
    tuner_recall_go_on(t, s, out);
}

/* The job counts as one that nothing is known of: it goes on with the default. */
static void start_over(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    int hot = default_hot(s);
    hot = hot < 0 ? s->incumbent : hot;
    bool changed = s->now.hot != hot;
    tuner_probe_abandon(t, s);
    tuner_probe_open(t, s, false);
    if (hot != s->incumbent)
        tuner_cand_promote(t, s, hot, NAN);
    tuner_cand_change(s, hot);
    if (changed)
        tuner_act(out, ACT_APPLY, s, s->now_s, "%g core%s: the default, as for a job that is not known",
                  TUNER_CORES(t, hot));
    if (s->alone)
        tuner_probe_enter_warm(t, s, changed);
    else
        tuner_probe_settle(t, s, out, "it is not alone");
}

/* --- the profile's verdict --- */

/* The trial goes on as one of a class that is like `from`. False: that tells nothing which was not measured here already. */
static bool recognise(struct tuner *t, struct trial_state *s, const struct class_entry *from, struct tuner_actions *out)
{
    struct choice_rule rule = tuner_rule(t, s->n_hot);
    char why[TUNER_REASON_MAX];
    int hot = knowledge_best_hot(from, s->start.cold, &rule);
    bool same = hot == s->incumbent;
    if (hot < 0 || !tuner_cand_allowed(s, hot) || (!same && s->cand[hot].measured && s->cand[hot].verdict != CAND_OPEN))
        return false;
    bool changed = s->now.hot != hot;
    tuner_probe_abandon(t, s);
    knowledge_recall_like(s->class, from);
    s->recognised = true;
    s->fresh = s->new_cold = false;
    s->began_s = s->now_s;
    tuner_probe_open(t, s, same);
    if (!same) {
        int old = s->incumbent;
        tuner_cand_promote(t, s, hot, s->cand[hot].centre);
        s->cand[old].measured = false;
    }
    tuner_cand_change(s, hot);
    if (changed)
        tuner_act(out, ACT_APPLY, s, s->now_s, "%g core%s: %s", TUNER_CORES(t, hot), origin(s->class, why));
    if (!tuner_recall_begin(t, s, out))
        tuner_probe_enter_hold(t, s, changed);
    return true;
}

/* What was recalled of the trial's class is in question. */
static void question(struct tuner *t, struct trial_state *s, enum tuner_verdict verdict, bool own,
                     const struct class_entry *other, struct tuner_actions *out)
{
    struct class_entry *c = s->class;
    bool under_way = s->fresh && s->phase != PHASE_SETTLED; /* it is probed already, whatever was recalled meanwhile */
    if (verdict == VERDICT_AMBIGUOUS || (own && verdict == VERDICT_KNOWN && c->canary))
        return;
    if (own && verdict == VERDICT_KNOWN) {
        c->recall = RECALL_HOLDS;
        tuner_act(out, ACT_CONFIRM, s, s->now_s, "its profile is that of its class");
        return;
    }
    bool taken = verdict == VERDICT_KNOWN;
    reject(s, out, taken ? "the profile rejects it: it is that of another class" : "the profile rejects it");
    if (under_way || (taken && other && recognise(t, s, other, out)))
        return;
    start_over(t, s, out);
}

static bool is_key(const struct class_entry *c, const char *key)
{
    return c && key && strcmp(c->key, key) == 0;
}

void tuner_recall_verdict(struct tuner *t, struct trial_state *s, const struct tuner_event *ev,
                          struct tuner_actions *out)
{
    struct class_entry *c = s->class;
    bool known = c->best.cold >= 0, own = is_key(c, ev->class_key) || is_key(c->like, ev->class_key);
    const struct class_entry *other = ev->class_key && !own ? knowledge_find(&t->known, ev->class_key) : NULL;
    if (other && other->best.cold < 0)
        other = NULL;
    if (s->leaving || (known && c->recall != RECALL_OPEN))
        return; /* what was learnt here counts more */
    if (known) {
        question(t, s, ev->verdict, own, other, out);
    } else if (other && ev->verdict == VERDICT_AMBIGUOUS) {
        struct choice_rule rule = tuner_rule(t, s->n_hot);
        s->hint = knowledge_best_hot(other, s->start.cold, &rule);
    } else if (other && ev->verdict == VERDICT_KNOWN) {
        (void)recognise(t, s, other, out); /* else it goes on */
    }
}

/* --- what earlier studies knew --- */

/* A trial of the class runs, or something was learnt here: what was recalled would come too late. */
static bool too_late(const struct tuner *t, const struct class_entry *c)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->trials[i]->class == c)
            return true;
    return c->recall > RECALL_OPEN || (c->recall == RECALL_NONE && c->best.cold >= 0);
}

int tuner_recall_learn(struct tuner *t, const struct tuner_event *ev, struct err *e)
{
    bool whole = ev->infeasible || (tuner_has(t, ev->over) && isfinite(ev->ratio));
    if (ev->trial != 0 || !ev->class_key || !tuner_has(t, ev->setting) || !whole)
        return err_set(e, -EPROTO, "what is recalled of class '%s' cannot be", ev->class_key ? ev->class_key : "");
    struct class_entry *c = knowledge_get(&t->known, ev->class_key, ev->family_key);
    if (!c)
        return err_sys(e, -ENOMEM, "class '%s'", ev->class_key);
    if (too_late(t, c))
        return 0;
    c->earlier = ev->trials > c->earlier ? ev->trials : c->earlier;
    if (ev->infeasible) {
        knowledge_recall_bound(c, ev->setting);
        return 0;
    }
    knowledge_recall(c, ev->setting, ev->over, ev->ratio, ev->at_least);
    struct tuner_setting best = ev->at_least ? ev->over : ev->setting;
    if ((ev->best || c->best.cold < 0) && c->cold[best.cold].hot >= 0) {
        c->best = c->told = best;
        c->recall = RECALL_OPEN;
    }
    return 0;
}

void tuner_recall_launch_failed(struct class_entry *c, const struct tuner_event *ev, struct tuner_actions *out)
{
    const struct cold_entry *e = &c->cold[ev->setting.cold];
    if (c->recall != RECALL_OPEN || !isfinite(e->ratio[ev->setting.hot]))
        return;
    const struct trial_state s = { .number = ev->trial, .now = ev->setting, .now_s = ev->t_s };
    tuner_act(out, ACT_WEAKEN, &s, ev->t_s, "what was recalled as feasible cannot be had");
    knowledge_forget(c);
    c->recall = RECALL_REJECTED;
}
