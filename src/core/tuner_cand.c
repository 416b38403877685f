/* The candidates of a trial: what each costs, which is next, which is the incumbent. */
#include <math.h>
#include <stdlib.h>

#include "core/tuner_state.h"

/* --- what a setting costs --- */

/* Log of what a hot setting costs beside its time, over what another does. */
double tuner_cand_load(const struct tuner *t, int hot, int over)
{
    struct choice_rule r = tuner_rule(t, t->space.n_hot);
    return r.load[hot] - r.load[over];
}

/* Log of a candidate's cost over the incumbent's, given that of its time. */
double tuner_cand_cost(const struct tuner *t, const struct trial_state *s, int hot, double ratio)
{
    return ratio + tuner_cand_load(t, hot, s->incumbent);
}

bool tuner_cand_allowed(const struct trial_state *s, int hot)
{
    return hot < s->n_hot && s->cand[hot].verdict != CAND_REFUSED && !s->class->infeasible[hot][s->start.cold];
}

/* Over the incumbent; NAN: not known. */
double tuner_cand_known(const struct tuner *t, const struct trial_state *s, int hot)
{
    const struct candidate *c = &s->cand[hot];
    if (hot == s->incumbent)
        return 0;
    return tuner_cand_allowed(s, hot) && c->verdict != CAND_OPEN && !c->at_least ? tuner_cand_cost(t, s, hot, c->centre)
                                                                                 : NAN;
}

/* The smallest cost that is known; of settings that cost the same within the margin the cheapest is *out_hot. */
double tuner_cand_least(const struct tuner *t, const struct trial_state *s, int *out_hot)
{
    double least = tuner_cand_allowed(s, s->incumbent) ? 0 : INFINITY;
    for (int h = 0; h < t->space.n_hot; h++)
        if (tuner_cand_allowed(s, h))
            least = fmin(least, tuner_cand_known(t, s, h));
    int best = s->incumbent;
    for (int h = t->space.n_hot - 1; h >= 0; h--)
        if (tuner_cand_allowed(s, h) && tuner_cand_known(t, s, h) <= least + t->cfg.tie_margin)
            best = h;
    *out_hot = best;
    return least;
}

/* --- choosing --- */

bool tuner_cand_compared(const struct tuner *t, const struct trial_state *s)
{
    for (int h = 0; h < t->space.n_hot; h++)
        if (h != s->incumbent && s->cand[h].measured)
            return true;
    return false;
}

/* Is `a` to be measured before `b`? The far end first, since scaling is mostly monotone: it is the best then, or the end where it
 * began is. What is near to that is next: it is the least likely to be far slower. */
static bool sooner(const struct trial_state *s, int a, int b, bool far)
{
    int by = abs(a - s->incumbent) - abs(b - s->incumbent);
    return s->cand[a].pairs < s->cand[b].pairs || (s->cand[a].pairs == s->cand[b].pairs && (far ? by > 0 : by < 0));
}

/* The next candidate: the open one with the fewest pairs; among equals one that was hinted at. -1: none is left. */
int tuner_cand_next(const struct tuner *t, const struct trial_state *s)
{
    bool far = !tuner_cand_compared(t, s);
    int best = -1;
    for (int h = 0; h < t->space.n_hot; h++) {
        if (h == s->incumbent || s->cand[h].verdict != CAND_OPEN || !tuner_cand_allowed(s, h))
            continue;
        if (h == s->hint && s->cand[h].pairs == 0)
            return h;
        if (best < 0 || sooner(s, h, best, far))
            best = h;
    }
    return best;
}

/* --- changing --- */

void tuner_cand_change(struct trial_state *s, int hot)
{
    if (s->now.hot == hot)
        return;
    s->former = s->now.hot;
    s->now.hot = hot;
    s->changed_s = s->now_s;
    s->probe_records = 0;
}

/* The candidate becomes the incumbent; ratios to the old one become ratios to it. */
void tuner_cand_promote(const struct tuner *t, struct trial_state *s, int h, double ratio)
{
    for (int i = 0; i < t->space.n_hot; i++) {
        struct candidate *c = &s->cand[i];
        c->centre -= ratio;
        for (size_t p = 0; p < c->pairs; p++)
            c->log_ratio[p] -= ratio;
    }
    struct candidate *old = &s->cand[s->incumbent];
    bool known = isfinite(ratio);
    enum verdict verdict = old->verdict == CAND_REFUSED ? CAND_REFUSED : known ? CAND_WORSE : CAND_OPEN;
    *old = (struct candidate){ .verdict = verdict, .centre = -ratio, .measured = known, .confirmed = old->confirmed };
    s->cand[h].centre = 0;
    s->cand[h].at_least = false;
    s->incumbent = h;
    s->probing = -1;
    s->first_value *= exp(ratio); /* NAN when that is not known */
    s->steady_s *= known ? exp(ratio) : 0;
    s->steady_records *= known ? 1 : 0;
}
