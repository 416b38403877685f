/* Which hot setting a trial gets: candidates are measured in pairs with the incumbent while the trial trains. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/stats.h"
#include "core/tuner_state.h"

enum { PAIRS_MIN = 2, DRIFT_WINDOWS = 3, WINDOW_STEPS = 2, GLANCE_STEPS = 4 };

static const double SETTLE_S = 1;      /* after a change, what happens this soon is no measurement */
static const double GLANCE = 1.0 / 3;  /* of either */
static const double STEADY = 0.10;     /* two successive windows this close: the job no longer warms up */
static const double CLEAR = 0.20;      /* a log-ratio beyond this needs no second pair */
static const double ADOPT_NOW = -0.15; /* a candidate this much better is kept without going back first */
static const double CUT_FACTOR =
    1.5; /* a candidate may cost this times what the incumbent does for the same records … */
static const double CUT_SLACK_S = 2.0; /* … or this much more, whichever is later */
static const double NEAR = 0.1;        /* log: what was this close may be the best under another cold setting */
static const double SECOND_LOOK = 0.4; /* log: a runtime that warms up takes so much more of few cores than of many */
static const double DRIFT = 1.15;

static const char NOTHING_LEFT[] = "nothing is left to try";

/* While trials wait for this one to settle, a first look is a short one: what is not clear from it is measured in whole windows. Of a
 * recognised trial the canary alone is looked at so. */
static bool is_glance(const struct tuner *t, const struct trial_state *s)
{
    bool looks = s->probing >= 0 && s->cand[s->probing].pairs == 0;
    bool first = s->recognised ? looks : (looks || s->phase == PHASE_WARM) && !s->profiled;
    return first && t->waiting > 0;
}

static void begin_window(const struct tuner *t, struct trial_state *s, double now_s, bool changed)
{
    window_begin(&s->window, now_s, !changed ? 0 : is_glance(t, s) ? GLANCE * SETTLE_S : SETTLE_S);
}

/* The one place that changes the phase. */
static void enter(const struct tuner *t, struct trial_state *s, enum phase phase, bool changed)
{
    s->phase = phase;
    begin_window(t, s, s->now_s, changed);
}

void tuner_probe_enter_hold(const struct tuner *t, struct trial_state *s, bool changed)
{
    enter(t, s, PHASE_HOLD, changed);
}

void tuner_probe_enter_warm(const struct tuner *t, struct trial_state *s, bool changed)
{
    enter(t, s, PHASE_WARM, changed);
}

static double trial_estimate_s(const struct trial_state *s)
{
    double per_record = isfinite(s->reference) ? s->reference : 0;
    return per_record * s->epoch_records * s->epochs;
}

static bool budget_left(const struct tuner *t, const struct trial_state *s)
{
    return s->epoch_records <= 0 || s->lost_s < t->cfg.probe_budget * trial_estimate_s(s);
}

/* A candidate is compared with what runs before and after it: two windows, each behind a change. */
static bool time_left(const struct tuner *t, const struct trial_state *s)
{
    if (!(s->epoch_records > 0) || !isfinite(s->reference))
        return true;
    double left_s = (s->epochs - s->epoch + 1) * s->epoch_records * s->reference - (s->now_s - s->epoch_began_s);
    double window_s = fmax(t->cfg.window_s, WINDOW_STEPS * s->step_records * s->reference);
    return left_s >= 2 * (SETTLE_S + window_s);
}

/* Why nothing more is probed; NULL: something is. */
static const char *no_probe(const struct tuner *t, const struct trial_state *s)
{
    if (tuner_cand_next(t, s) < 0)
        return NOTHING_LEFT;
    if (!time_left(t, s))
        return "it ends before a probe would";
    return s->alone && budget_left(t, s) ? NULL : "the budget for probing is used up";
}

/* --- settling --- */

void tuner_probe_settle(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *why)
{
    int best;
    tuner_recall_leave(s);
    (void)tuner_cand_least(t, s, &best);
    if (tuner_cand_known(t, s, best) < -t->cfg.tie_margin) /* what counts has changed since it was measured */
        tuner_cand_promote(t, s, best, s->cand[best].centre);
    bool changed = s->now.hot != s->incumbent;
    tuner_cand_change(s, s->incumbent);
    s->probing = -1;
    s->settled_value = NAN;
    s->slow_windows = 0;
    if (changed)
        tuner_act(out, ACT_APPLY, s, s->now_s, "%s", why);
    tuner_act(out, ACT_SETTLE, s, s->now_s, "%s", why);
    enter(t, s, PHASE_SETTLED, changed);
    if (s->epoch == s->first && isfinite(s->reference))
        s->first_value = s->reference;
    if (s->alone)
        tuner_learn(t, s, NAN, out);
    tuner_cold_consider(t, s, out);
}

/* --- probing --- */

static void wake_for_cut(const struct tuner *t, const struct trial_state *s, struct tuner_actions *out);

void tuner_probe_measure(struct tuner *t, struct trial_state *s, int h, struct tuner_actions *out, const char *what)
{
    s->probing = h;
    s->whole_epoch = false;
    tuner_cand_change(s, h);
    tuner_act(out, ACT_APPLY, s, s->now_s, "%s %zu of %g core%s", what, s->cand[h].pairs + 1, TUNER_CORES(t, h));
    enter(t, s, PHASE_CANDIDATE, true);
    wake_for_cut(t, s, out);
}

static void probe(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    if (s->recognised) {
        tuner_recall_go_on(t, s, out);
        return;
    }
    const char *none = no_probe(t, s);
    if (none)
        tuner_probe_settle(t, s, out, none);
    else
        tuner_probe_measure(t, s, tuner_cand_next(t, s), out, "probe");
}

static void go_back(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *why)
{
    tuner_cand_change(s, s->incumbent);
    tuner_act(out, ACT_APPLY, s, s->now_s, "back to %g core%s: %s", TUNER_CORES(t, s->incumbent), why);
    enter(t, s, PHASE_BACK, true);
}

void tuner_probe_adopt(struct tuner *t, struct trial_state *s, int h, double ratio, struct tuner_actions *out,
                       const char *why)
{
    tuner_cand_promote(t, s, h, ratio);
    bool changed = s->now.hot != h;
    tuner_cand_change(s, h);
    if (changed)
        tuner_act(out, ACT_APPLY, s, s->now_s, "now the best: %g core%s, %s", TUNER_CORES(t, h), why);
    enter(t, s, PHASE_HOLD, changed);
    if (!s->recognised && tuner_cand_next(t, s) < 0) /* it stays anyway, and others may wait for it to settle */
        tuner_probe_settle(t, s, out, NOTHING_LEFT);
}

double tuner_probe_half(const struct tuner *t, const struct candidate *c)
{
    if (c->pairs < PAIRS_MIN)
        return CLEAR;
    double half = stats_t90(c->pairs - 1) * stats_sd(c->log_ratio, c->pairs) / sqrt((double)c->pairs);
    return fmax(half, t->cfg.noise_floor);
}

/* The verdict after one more pair, from the cost and the half width of its interval. */
static enum verdict verdict_of(const struct tuner *t, const struct trial_state *s, const struct candidate *c,
                               double cost, double half)
{
    int ignored;
    bool tie =
        c->pairs >= PAIRS_MIN && fabs(cost) <= half && cost - tuner_cand_least(t, s, &ignored) <= t->cfg.tie_margin;
    if (cost - half > 0)
        return CAND_WORSE;
    if (tie)
        return CAND_TIE;
    return c->pairs >= PAIRS_MAX ? CAND_WORSE : CAND_OPEN;
}

/* Judges the candidate after one more pair. */
static void judge(struct tuner *t, struct trial_state *s, int h, struct tuner_actions *out)
{
    if (s->recognised) {
        tuner_recall_judge(t, s, h, out);
        return;
    }
    struct candidate *c = &s->cand[h];
    double ratio = stats_median(c->log_ratio, c->pairs), cost = tuner_cand_cost(t, s, h, ratio),
           half = tuner_probe_half(t, c);
    char why[64];
    (void)snprintf(why, sizeof why, "%+.1f %% (± %.1f)%s", 100.0 * (exp(cost) - 1.0), 100.0 * half,
                   t->waiting > 0 ? " core-seconds" : "");
    if (cost + half < 0 || (c->pairs >= PAIRS_MAX && cost < -t->cfg.tie_margin)) {
        tuner_probe_adopt(t, s, h, ratio, out, why);
        return;
    }
    c->verdict = verdict_of(t, s, c, cost, half);
    if (c->verdict != CAND_OPEN)
        c->centre = ratio;
    if (c->verdict == CAND_TIE && h < s->incumbent) {
        tuner_probe_adopt(t, s, h, ratio, out, "a tie, and it is cheaper");
        return;
    }
    s->probing = -1;
    probe(t, s, out);
}

/* --- what probing loses, and how long a candidate may take --- */

/* Seconds of the candidate that cost as much as one of the incumbent. */
static double exchange(const struct tuner *t, const struct trial_state *s)
{
    return exp(tuner_cand_load(t, s->incumbent, s->now.hot));
}

static void charge(const struct tuner *t, struct trial_state *s)
{
    double needed = isfinite(s->reference) ? s->reference * s->probe_records : 0;
    double lost = (s->now_s - s->changed_s) / exchange(t, s) - needed;
    if (lost > 0)
        s->lost_s += lost;
}

void tuner_probe_abandon(const struct tuner *t, struct trial_state *s)
{
    if (s->phase == PHASE_CANDIDATE)
        charge(t, s);
    s->probing = -1;
    s->before = s->measured = NAN;
}

/* When the candidate has had its time for the iteration under way. */
static double cut_at(const struct tuner *t, const struct trial_state *s)
{
    double need = isfinite(s->reference) ? s->reference * (s->probe_records + s->step_records) : INFINITY;
    need *= exchange(t, s);
    return s->changed_s + fmax(CUT_FACTOR * need, need + CUT_SLACK_S);
}

static void wake_for_cut(const struct tuner *t, const struct trial_state *s, struct tuner_actions *out)
{
    double at = cut_at(t, s);
    if (s->phase == PHASE_CANDIDATE && isfinite(at))
        tuner_act(out, ACT_WAKE, s, at, "the candidate's time is up then");
}

/* True when the candidate was ended. */
static bool cut(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    if (s->phase != PHASE_CANDIDATE || s->now_s < cut_at(t, s) * (1.0 - 1e-12))
        return false;
    struct candidate *c = &s->cand[s->probing];
    bool whole =
        s->window.n > 0 && isfinite(s->reference); /* an iteration at least: as good as a window, this far off */
    c->verdict = CAND_CUT;
    c->centre = whole ? log(window_value(&s->window) / s->reference) : log(CUT_FACTOR * exchange(t, s));
    c->at_least = !whole;
    c->measured = true;
    c->pairs = c->pairs ? c->pairs : 1;
    charge(t, s);
    s->measured = NAN;
    s->probing = -1;
    go_back(t, s, out, "the candidate was cut");
    return true;
}

/* --- a window is complete --- */

/* The incumbent's newest value. */
static void refer(struct trial_state *s, double value)
{
    s->before = s->reference = value;
    s->reference_epoch = s->epoch;
}

static bool is_steady(const struct tuner *t, const struct trial_state *s, double value)
{
    /* Iterations as long as a window are windows of their own. */
    const struct window *w = &s->window;
    bool within =
        w->n == 2 && w->seconds >= 2 * t->cfg.window_s && fabs(log(w->per_record[1] / w->per_record[0])) <= STEADY;
    bool close = within || (isfinite(s->before) && fabs(log(value / s->before)) <= STEADY);
    return close || s->epoch > s->first || (s->epoch_records > 0 && 2 * s->probe_records >= s->epoch_records);
}

/* While trials wait, each second that this one holds all cores alone costs them: its first window will do to compare with, since
 * what was decided in the first epoch is looked at again in the second. */
static void on_warm(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    bool steady = is_steady(t, s, value);
    refer(s, value);
    if (steady)
        tuner_recall_profile(s, out);
    if (steady || t->waiting > 0)
        probe(t, s, out);
    else
        enter(t, s, PHASE_WARM, false);
}

static void on_candidate(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    struct candidate *c = &s->cand[s->probing];
    charge(t, s);
    double ratio = isfinite(s->before) ? log(value / s->before) : NAN, cost = tuner_cand_cost(t, s, s->probing, ratio);
    c->measured = true;
    /* What a cold runtime gains in speed between two windows is no merit of the second one: until it was steady, both sides are looked at. */
    bool at_once = cost < ADOPT_NOW && c->pairs == 0 && s->profiled;
    if (at_once && s->recognised) {
        refer(s, value);
        tuner_recall_failed(t, s, s->probing, ratio, out);
        return;
    }
    if (at_once) {
        char why[64];
        (void)snprintf(why, sizeof why, "%.1f %% %s at once", 100.0 * (1.0 - exp(cost)),
                       t->waiting > 0 ? "fewer core-seconds" : "faster");
        refer(s, value);
        tuner_probe_adopt(t, s, s->probing, ratio, out, why);
        return;
    }
    s->measured = value;
    go_back(t, s, out, "to compare");
}

static void on_back(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    int h = s->probing;
    double around = isfinite(s->before) ? (log(s->before) + log(value)) / 2.0 : log(value);
    refer(s, value);
    if (h < 0) { /* the candidate was cut: this window is the next one's "before" */
        probe(t, s, out);
        return;
    }
    struct candidate *c = &s->cand[h];
    c->log_ratio[c->pairs++] = log(s->measured) - around;
    judge(t, s, h, out);
}

static void on_hold(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    refer(s, value);
    probe(t, s, out);
}

static void reopen(struct candidate *c)
{
    *c = (struct candidate){ .verdict = CAND_OPEN, .centre = NAN };
}

/* A settled trial that has become slower gets one new round, at most once an epoch. */
static void on_settled(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    if (s->epoch > s->first || (isfinite(s->before) && fabs(log(value / s->before)) <= STEADY))
        tuner_recall_profile(s, out);
    refer(s, value);
    if (!isfinite(s->settled_value) || value < s->settled_value)
        s->settled_value = value;
    s->slow_windows = value > DRIFT * s->settled_value ? s->slow_windows + 1 : 0;
    if (s->slow_windows < DRIFT_WINDOWS || s->round_over || !s->alone) {
        enter(t, s, PHASE_SETTLED, false);
        return;
    }
    s->round_over = true;
    s->slow_windows = 0;
    for (int h = 0; h < t->space.n_hot; h++)
        if (s->cand[h].verdict != CAND_REFUSED)
            reopen(&s->cand[h]);
    probe(t, s, out);
}

static void on_window(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    double value = window_value(&s->window);
    switch (s->phase) {
    case PHASE_WARM: on_warm(t, s, value, out); break;
    case PHASE_CANDIDATE: on_candidate(t, s, value, out); break;
    case PHASE_BACK: on_back(t, s, value, out); break;
    case PHASE_HOLD: on_hold(t, s, value, out); break;
    case PHASE_SETTLED: on_settled(t, s, value, out); break;
    }
}

/* --- the trial begins --- */

/* A known class keeps its stored setting; under a cold setting it was never run with, what was near is looked at again. */
void tuner_probe_open(const struct tuner *t, struct trial_state *s, bool keep)
{
    const struct class_entry *k = s->class;
    bool known = k->cold[s->start.cold].hot >= 0;
    for (int h = 0; h < t->space.n_hot; h++) {
        struct candidate *c = &s->cand[h];
        if (c->verdict == CAND_REFUSED || (keep && c->measured))
            continue;
        *c = (struct candidate){ .verdict = CAND_OPEN, .centre = NAN };
        if (s->fresh)
            continue;
        c->centre = knowledge_ratio(k, s->start.cold, h, s->incumbent, &c->at_least);
        double cost = tuner_cand_cost(t, s, h, c->centre);
        /* Under a new cold setting those that were close before can have become the best. */
        bool open = isnan(cost) ? !known || k->recall != RECALL_HOLDS : c->at_least ? cost < 0 : !known && cost < NEAR;
        open = open && !s->recognised;
        c->verdict = open ? CAND_OPEN : c->at_least ? CAND_CUT : CAND_WORSE;
    }
}

/* The hot setting to begin with: the class's best, else that of a job that differs in batch alone. *out_why says which. */
static int begin_with(const struct tuner *t, const struct trial_state *s, const char **out_why)
{
    struct choice_rule rule = tuner_rule(t, s->n_hot);
    const struct class_entry *relative =
        s->fresh ? knowledge_relative(&t->known, s->class->key, s->class->family) : NULL;
    int hot = s->fresh ? -1 : knowledge_best_hot(s->class, s->start.cold, &rule);
    *out_why = s->fresh ? "of a job that differs in batch alone" : "of its class";
    if (relative)
        hot = knowledge_best_hot(relative, relative->best.cold, &rule);
    return hot >= 0 && tuner_cand_allowed(s, hot) ? hot : s->incumbent < s->n_hot ? s->incumbent : s->n_hot - 1;
}

static void take(struct tuner *t, struct trial_state *s, int hot, const char *what, struct tuner_actions *out)
{
    int launched = s->incumbent;
    tuner_cand_promote(t, s, hot, s->cand[hot].centre);
    s->cand[launched].measured = false; /* what it is to the best was not seen here */
    tuner_cand_change(s, hot);
    tuner_act(out, ACT_APPLY, s, s->now_s, "%g cores: the best %s", t->space.cores[hot], what);
}

void tuner_probe_begin(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    const char *why;
    s->recognised = s->class->recall == RECALL_OPEN;
    tuner_probe_open(t, s, false);
    int hot = begin_with(t, s, &why);
    bool changed = hot != s->now.hot;
    if (changed)
        take(t, s, hot, why, out);
    enter(t, s, PHASE_WARM, changed);
    if (s->recognised && tuner_recall_begin(t, s, out))
        return;
    if (!s->recognised && (!s->alone || (!s->new_cold && tuner_cand_next(t, s) < 0)))
        tuner_probe_settle(t, s, out,
                           !s->alone  ? "it is not alone"
                           : s->fresh ? "there is nothing to choose"
                                      : "the class is known");
    tuner_cold_begin(s);
    (void)tuner_cold_give_up(t, s, out); /* says when it will be time for that */
}

/* --- events --- */

static bool has_lasted(const struct tuner *t, const struct trial_state *s)
{
    return window_lasted(&s->window, (struct span){ t->cfg.window_s, WINDOW_STEPS }) ||
           (is_glance(t, s) && window_lasted(&s->window, (struct span){ GLANCE * t->cfg.window_s, GLANCE_STEPS }));
}

void tuner_probe_iteration(struct tuner *t, struct trial_state *s, const struct tuner_event *ev,
                           struct tuner_actions *out)
{
    s->epoch = ev->epoch;
    s->step_records = ev->records;
    s->epoch_records = ev->epoch_records;
    s->probe_records += ev->records;
    if (window_add(&s->window, ev->t_s, ev->seconds, ev->records) && has_lasted(t, s))
        on_window(t, s, out);
    else
        tuner_probe_tick(t, s, out);
}

/* A decision taken in the first epoch is confirmed once in the second: what was near is looked at again. */
static void reopen_near(const struct tuner *t, struct trial_state *s)
{
    for (int h = 0; h < t->space.n_hot; h++) {
        struct candidate *c = &s->cand[h];
        bool judged = (s->new_cold || c->measured) && (c->verdict == CAND_WORSE || c->verdict == CAND_TIE);
        if (h == s->incumbent || !judged || c->confirmed || !(tuner_cand_cost(t, s, h, c->centre) < SECOND_LOOK))
            continue;
        reopen(c);
        c->confirmed = true;
    }
}

void tuner_probe_epoch(struct tuner *t, struct trial_state *s, int epoch)
{
    s->round_over = false;
    window_break(&s->window);
    if (epoch != s->first || s->epochs <= epoch)
        return;
    s->before = NAN; /* a warm runtime is up to twice as fast: what was measured cold compares with nothing any more */
    bool recalled = !s->new_cold && s->class->recall == RECALL_HOLDS; /* its canary was enough */
    if (!s->alone || recalled)
        return;
    reopen_near(t, s);
    if (s->phase == PHASE_SETTLED && tuner_cand_next(t, s) >= 0)
        enter(t, s, PHASE_WARM, false);
}

/* A late answer to an older change says nothing of the one under way. */
void tuner_probe_applied(const struct tuner *t, struct trial_state *s, const struct tuner_event *ev)
{
    if (ev->setting.hot != s->now.hot)
        return;
    s->changed_s = ev->t_s;
    s->probe_records = 0;
    begin_window(t, s, ev->t_s, true);
}

/* A change that was asked for is refused: what was in force before still is. */
void tuner_probe_refused(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out)
{
    s->cand[hot].verdict = CAND_REFUSED;
    if (s->now.hot != hot || s->former == hot)
        return;
    s->now.hot = s->former;
    bool candidate = s->phase == PHASE_CANDIDATE && s->probing == hot;
    s->probing = -1;
    if (candidate) {
        probe(t, s, out);
        return;
    }
    if (s->incumbent == hot)
        tuner_cand_promote(t, s, s->now.hot, s->cand[s->now.hot].centre);
    enter(t, s, s->phase == PHASE_SETTLED ? PHASE_SETTLED : PHASE_WARM, false);
}

/* As a refusal, after which another setting is in force than before. */
void tuner_probe_instead(struct tuner *t, struct trial_state *s, int got, struct tuner_actions *out)
{
    int asked = s->now.hot;
    if (got == asked)
        return;
    s->changed_s = s->now_s;
    s->probe_records = 0;
    s->former = got;
    tuner_probe_refused(t, s, asked, out);
}

void tuner_probe_tick(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    if (!cut(t, s, out) && !tuner_cold_give_up(t, s, out))
        wake_for_cut(t, s, out);
}

/* The pair under way is void, and costs nothing: whatever happened, the candidate is not to blame. */
void tuner_probe_break(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    s->before = s->measured = NAN;
    s->slow_windows = 0;
    s->whole_epoch = false;
    s->probing = -1;
    if (s->phase == PHASE_CANDIDATE)
        go_back(t, s, out, "what was being measured is void");
    else
        enter(t, s, s->phase, false);
}

/* --- what counts has changed --- */

/* What was cut is unknown again where it may now cost less. */
static void reopen_cut(const struct tuner *t, struct trial_state *s)
{
    for (int h = 0; h < t->space.n_hot; h++)
        if (s->cand[h].at_least && tuner_cand_cost(t, s, h, s->cand[h].centre) < 0)
            reopen(&s->cand[h]);
}

/* A trial that has compared nothing, and may have had no choice beside others: the best of its class, else the default. How another
 * batch takes to more cores says little, least of all what it showed while others waited. */
static int unpacked(const struct tuner *t, const struct trial_state *s)
{
    struct choice_rule rule = tuner_rule(t, s->n_hot);
    bool known = s->class->best.cold >= 0;
    int hot = known ? knowledge_best_hot(s->class, s->start.cold, &rule) : s->class->start.hot;
    return hot >= 0 && tuner_cand_allowed(s, hot) ? hot : s->incumbent;
}

/* The hot setting that the trial is to have now: the best known, else the nearest that it may have. */
static int move_to(const struct tuner *t, const struct trial_state *s)
{
    int best;
    if (s->alone && !tuner_cand_compared(t, s))
        return unpacked(t, s);
    (void)tuner_cand_least(t, s, &best);
    bool better = tuner_cand_known(t, s, best) < -t->cfg.tie_margin || !tuner_cand_allowed(s, s->incumbent);
    if (best != s->incumbent && better)
        return best;
    if (s->incumbent < s->n_hot)
        return s->incumbent;
    return s->n_hot - 1;
}

static void say_move(const struct tuner *t, const struct trial_state *s, int hot, double cost, const char *cause,
                     char why[TUNER_REASON_MAX])
{
    double cores = t->space.cores[hot];
    if (!(cost < 0))
        (void)snprintf(why, TUNER_REASON_MAX, "%s: %g cores", cause, cores);
    else if (t->waiting > 0)
        (void)snprintf(why, TUNER_REASON_MAX, "%s: %g cores take %.0f %% fewer core-seconds than %g", cause, cores,
                       100 * (1 - exp(cost)), t->space.cores[s->incumbent]);
    else
        (void)snprintf(why, TUNER_REASON_MAX, "%s: %g cores are %.0f %% faster than %g", cause, cores,
                       100 * (exp(-cost) - 1), t->space.cores[s->incumbent]);
}

/* The round goes on; what it was comparing with is gone when the incumbent is another one. */
static void resume_round(struct tuner *t, struct trial_state *s, int hot, const char *why, struct tuner_actions *out)
{
    bool lost = s->probing >= 0 && !tuner_cand_allowed(s, s->probing);
    if (hot == s->incumbent && !lost)
        return;
    if (hot != s->incumbent)
        tuner_cand_promote(t, s, hot, s->cand[hot].centre);
    s->probing = -1;
    s->before = s->measured = NAN;
    bool changed = s->now.hot != hot;
    tuner_cand_change(s, hot);
    if (changed)
        tuner_act(out, ACT_APPLY, s, s->now_s, "%s", why);
    enter(t, s, PHASE_WARM, changed);
}

void tuner_probe_reconsider(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *cause)
{
    char why[TUNER_REASON_MAX];
    reopen_cut(t, s);
    int hot = move_to(t, s);
    say_move(t, s, hot, tuner_cand_cost(t, s, hot, s->cand[hot].centre), cause, why);
    if (s->alone && (s->phase != PHASE_SETTLED || tuner_cand_next(t, s) >= 0)) {
        if (s->phase == PHASE_SETTLED)
            enter(t, s, PHASE_WARM, false);
        resume_round(t, s, hot, why, out);
        return;
    }
    if (s->phase == PHASE_SETTLED && hot == s->incumbent)
        return;
    if (hot != s->incumbent)
        tuner_cand_promote(t, s, hot, s->cand[hot].centre);
    tuner_probe_settle(t, s, out, why);
}
