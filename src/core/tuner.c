#include "core/tuner.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/knowledge.h"
#include "core/stats.h"
#include "core/window.h"

enum { PAIRS_MIN = 2, PAIRS_MAX = 5, FAILED_LAUNCHES_MAX = 2 /* of explorations, per class */ };

static const double STEADY = 0.10;       /* two successive windows this close: the job no longer warms up */
static const double CLEAR = 0.20;        /* a log-ratio beyond this needs no second pair */
static const double ADOPT_NOW = -0.15;   /* a candidate this much faster is kept without going back first */
static const double CUT_FACTOR = 1.5;    /* a candidate may take this times what the incumbent needs … */
static const double CUT_SLACK_S = 2.0;   /* … or this much more, whichever is later */
static const double CONFIRM_RANGE = 0.4; /* log: candidates of epoch 1 this close are looked at again in epoch 2 */
static const double DRIFT = 1.15;
enum { DRIFT_WINDOWS = 3 };

/* What the trial is doing. */
enum phase {
    PHASE_WARM,      /* measuring the incumbent until it is steady */
    PHASE_CANDIDATE, /* measuring a candidate */
    PHASE_BACK,      /* measuring the incumbent again, after a candidate */
    PHASE_HOLD,      /* a new incumbent shows that it was no accident */
    PHASE_SETTLED,
};

enum verdict { CAND_OPEN, CAND_WORSE, CAND_TIE, CAND_CUT, CAND_REFUSED };

struct candidate {
    enum verdict verdict;
    double log_ratio[PAIRS_MAX]; /* to the incumbent of that time, positive is slower */
    size_t pairs;
    double centre;  /* over the best one, once judged; NAN before */
    bool confirmed; /* looked at again in the second epoch */
};

struct trial_state {
    int number;
    struct class_entry *class;
    enum phase phase;
    struct tuner_setting start, now; /* launched with; in force or asked for */
    int incumbent;                   /* hot */
    struct candidate cand[TUNER_MAX_HOT];
    int probing; /* the candidate of PHASE_CANDIDATE or PHASE_BACK; -1 */
    struct window window;
    double before;        /* the incumbent's newest value; NAN: none that still holds */
    double reference;     /* its newest value, however old: what a cut is judged by; NAN: none */
    double measured;      /* the candidate's value, in PHASE_BACK */
    double changed_s;     /* when the setting changed last */
    double probe_records; /* trained since then */
    double step_records;  /* of the newest iteration */
    double epoch_records;
    int epoch, epochs;
    double lost_s;   /* by probing, over what the incumbent would have needed */
    bool round_over; /* drift has had its round in this epoch */
    int slow_windows;
    double settled_value;
    bool whole_epoch;                /* nothing was probed since this epoch began */
    double steady_s, steady_records; /* over whole epochs under the settled setting, from the second on */
    double now_s;
};

struct tuner {
    struct tuner_space space;
    struct tuner_cfg cfg;
    struct knowledge known;
    struct trial_state **trials;
    size_t n, cap;
    int waiting;
};

/* --- the tuner and its trials --- */

struct tuner *tuner_new(const struct tuner_space *space, const struct tuner_cfg *cfg)
{
    assert(space->n_hot >= 1 && space->n_hot <= TUNER_MAX_HOT && space->n_cold >= 1 && space->n_cold <= TUNER_MAX_COLD);
    struct tuner *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->space = *space;
    t->cfg = *cfg;
    return t;
}

void tuner_free(struct tuner *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->trials[i]);
    free(t->trials);
    knowledge_done(&t->known);
    free(t);
}

static struct trial_state *find(const struct tuner *t, int number)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->trials[i]->number == number)
            return t->trials[i];
    return NULL;
}

static struct trial_state *add(struct tuner *t, int number)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 4;
        struct trial_state **grown = realloc(t->trials, cap * sizeof(struct trial_state *));
        if (!grown)
            return NULL;
        t->trials = grown;
        t->cap = cap;
    }
    struct trial_state *s = calloc(1, sizeof *s);
    if (s) {
        s->number = number;
        t->trials[t->n++] = s;
    }
    return s;
}

static void drop(struct tuner *t, const struct trial_state *s)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->trials[i] != s)
            continue;
        free(t->trials[i]);
        memmove(&t->trials[i], &t->trials[i + 1], (t->n - i - 1) * sizeof(struct trial_state *));
        t->n--;
        return;
    }
}

bool tuner_current(const struct tuner *t, int trial, struct tuner_setting *out)
{
    const struct trial_state *s = find(t, trial);
    if (s)
        *out = s->now;
    return s != NULL;
}

bool tuner_settled(const struct tuner *t, int trial)
{
    const struct trial_state *s = find(t, trial);
    return s && s->phase == PHASE_SETTLED;
}

/* --- actions --- */

static void act(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s, double t_s,
                const char *reason, ...) __attribute__((format(printf, 5, 6)));
static void act(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s, double t_s,
                const char *reason, ...)
{
    assert(out->n < TUNER_ACTIONS_MAX);
    struct tuner_action *a = &out->list[out->n++];
    *a = (struct tuner_action){ .kind = kind, .trial = s->number, .setting = s->now, .t_s = t_s };
    va_list ap;
    va_start(ap, reason);
    (void)vsnprintf(a->reason, sizeof a->reason, reason, ap); /* a cut reason is still a reason */
    va_end(ap);
}

/* The one place that changes the phase. */
static void enter(struct trial_state *s, enum phase phase, bool changed)
{
    s->phase = phase;
    window_begin(&s->window, s->now_s, changed);
}

/* --- what a setting costs, beside its time --- */

/* While trials wait that could be packed beside this one, a setting costs core-seconds; log of its cores over another's. */
static double load_cost(const struct tuner *t, int hot, int other)
{
    return t->waiting > 0 ? log(t->space.cores[hot] / t->space.cores[other]) : 0;
}

/* --- choosing --- */

static bool may_have(const struct trial_state *s, int hot)
{
    return s->cand[hot].verdict != CAND_REFUSED && !s->class->infeasible[hot][s->now.cold];
}

/* The hot setting with the smallest measured cost, the incumbent when in doubt. */
static double best_centre(const struct tuner *t, const struct trial_state *s)
{
    double best = 0; /* the incumbent's own */
    for (int h = 0; h < t->space.n_hot; h++)
        if (h != s->incumbent && may_have(s, h) && isfinite(s->cand[h].centre) && s->cand[h].verdict != CAND_OPEN &&
            s->cand[h].centre < best)
            best = s->cand[h].centre;
    return best;
}

/* The next candidate: the open one with the fewest pairs; among equals the one farthest in cores, since scaling is mostly
 * monotone and the far end then settles the matter. -1: none is left. */
static int next_candidate(const struct tuner *t, const struct trial_state *s)
{
    int best = -1;
    for (int h = 0; h < t->space.n_hot; h++) {
        if (h == s->incumbent || s->cand[h].verdict != CAND_OPEN || !may_have(s, h))
            continue;
        if (best < 0 || s->cand[h].pairs < s->cand[best].pairs ||
            (s->cand[h].pairs == s->cand[best].pairs && abs(h - s->incumbent) > abs(best - s->incumbent)))
            best = h;
    }
    return best;
}

static double trial_estimate_s(const struct trial_state *s)
{
    double per_record = isfinite(s->reference) ? s->reference : 0;
    return per_record * s->epoch_records * s->epochs;
}

static bool budget_left(const struct tuner *t, const struct trial_state *s)
{
    double all = t->cfg.probe_budget * trial_estimate_s(s);
    return s->epoch_records <= 0 || s->lost_s < all;
}

/* --- learning --- */

static void learn_ratios(const struct tuner *t, struct trial_state *s)
{
    for (int h = 0; h < t->space.n_hot; h++)
        if (isfinite(s->cand[h].centre))
            s->class->ratio[h] = s->cand[h].centre;
    s->class->ratio[s->incumbent] = 0;
}

static void settle(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *why)
{
    bool changed = s->now.hot != s->incumbent;
    s->now.hot = s->incumbent;
    s->probing = -1;
    s->settled_value = NAN;
    s->slow_windows = 0;
    if (changed) {
        s->changed_s = s->now_s;
        act(out, ACT_APPLY, s, s->now_s, "%s", why);
    }
    act(out, ACT_SETTLE, s, s->now_s, "%s", why);
    learn_ratios(t, s);
    enter(s, PHASE_SETTLED, changed);
}

/* --- probing --- */

static void wake_for_cut(const struct trial_state *s, struct tuner_actions *out);

static void probe(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    int h = budget_left(t, s) ? next_candidate(t, s) : -1;
    if (h < 0) {
        settle(t, s, out, next_candidate(t, s) < 0 ? "nothing is left to try" : "the budget for probing is used up");
        return;
    }
    s->probing = h;
    s->now.hot = h;
    s->changed_s = s->now_s;
    s->probe_records = 0;
    s->whole_epoch = false;
    act(out, ACT_APPLY, s, s->now_s, "probe %zu of %g cores", s->cand[h].pairs + 1, t->space.cores[h]);
    enter(s, PHASE_CANDIDATE, true);
    wake_for_cut(s, out);
}

static void go_back(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *why)
{
    s->now.hot = s->incumbent;
    s->changed_s = s->now_s;
    act(out, ACT_APPLY, s, s->now_s, "back to %g cores: %s", t->space.cores[s->incumbent], why);
    enter(s, PHASE_BACK, true);
}

/* The candidate becomes the incumbent; ratios to the old one become ratios to it. */
static void adopt(struct tuner *t, struct trial_state *s, int h, double centre, struct tuner_actions *out,
                  const char *why)
{
    for (int i = 0; i < t->space.n_hot; i++) {
        struct candidate *c = &s->cand[i];
        if (isfinite(c->centre))
            c->centre -= centre;
        for (size_t p = 0; p < c->pairs; p++)
            c->log_ratio[p] -= centre;
    }
    struct candidate *old = &s->cand[s->incumbent];
    *old = (struct candidate){ .verdict = CAND_WORSE, .centre = -centre, .confirmed = old->confirmed };
    s->incumbent = h;
    s->cand[h].centre = 0;
    s->probing = -1;
    bool changed = s->now.hot != h;
    s->now.hot = h;
    if (changed)
        s->changed_s = s->now_s;
    act(out, changed ? ACT_APPLY : ACT_LEARN, s, s->now_s, "%g cores are now the best: %s", t->space.cores[h], why);
    enter(s, PHASE_HOLD, changed);
}

/* Half the width of the interval around the centre of the pairs so far. */
static double half_width(const struct tuner *t, const struct candidate *c)
{
    if (c->pairs < PAIRS_MIN)
        return CLEAR;
    double half = stats_t90(c->pairs - 1) * stats_sd(c->log_ratio, c->pairs) / sqrt((double)c->pairs);
    return half > t->cfg.noise_floor ? half : t->cfg.noise_floor;
}

/* Judges the candidate after one more pair. */
static void judge(struct tuner *t, struct trial_state *s, int h, struct tuner_actions *out)
{
    struct candidate *c = &s->cand[h];
    double centre = stats_median(c->log_ratio, c->pairs) + load_cost(t, h, s->incumbent);
    double half = half_width(t, c);
    bool last = c->pairs >= PAIRS_MAX;
    char why[64];
    (void)snprintf(why, sizeof why, "%+.1f %% (± %.1f)", 100.0 * (exp(centre) - 1.0), 100.0 * half);
    if (centre + half < 0 || (last && centre < -t->cfg.tie_margin)) {
        adopt(t, s, h, centre, out, why);
        return;
    }
    bool tie = c->pairs >= PAIRS_MIN && fabs(centre) <= half && centre - best_centre(t, s) <= t->cfg.tie_margin;
    if (centre - half > 0)
        c->verdict = CAND_WORSE;
    else if (tie || last)
        c->verdict = tie ? CAND_TIE : CAND_WORSE;
    if (c->verdict != CAND_OPEN)
        c->centre = centre;
    if (c->verdict == CAND_TIE && h < s->incumbent) {
        adopt(t, s, h, centre, out, "a tie, and it is cheaper");
        return;
    }
    s->probing = -1;
    probe(t, s, out);
}

static double needed_s(const struct trial_state *s)
{
    return isfinite(s->reference) ? s->reference * s->probe_records : 0;
}

static void charge(struct trial_state *s)
{
    double lost = s->now_s - s->changed_s - needed_s(s);
    if (lost > 0)
        s->lost_s += lost;
}

/* When the candidate has had its time for the iteration under way. */
static double cut_at(const struct trial_state *s)
{
    double need = isfinite(s->reference) ? s->reference * (s->probe_records + s->step_records) : INFINITY;
    double by_factor = CUT_FACTOR * need, by_slack = need + CUT_SLACK_S;
    return s->changed_s + (by_factor > by_slack ? by_factor : by_slack);
}

static void wake_for_cut(const struct trial_state *s, struct tuner_actions *out)
{
    double at = cut_at(s);
    if (s->phase == PHASE_CANDIDATE && isfinite(at))
        act(out, ACT_WAKE, s, at, "the candidate's time is up then");
}

/* True when the candidate was ended. */
static bool cut(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    if (s->phase != PHASE_CANDIDATE || s->now_s < cut_at(s) * (1.0 - 1e-12))
        return false;
    struct candidate *c = &s->cand[s->probing];
    c->verdict = CAND_CUT;
    c->centre = log(CUT_FACTOR);
    c->pairs = c->pairs ? c->pairs : 1;
    s->measured = NAN;
    charge(s);
    s->probing = -1;
    go_back(t, s, out, "the candidate was cut");
    return true;
}

/* --- a window is complete --- */

static void on_warm(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    /* Iterations as long as a window are windows of their own. */
    const struct window *w = &s->window;
    bool within =
        w->n == 2 && w->seconds >= 2 * t->cfg.window_s && fabs(log(w->per_record[1] / w->per_record[0])) <= STEADY;
    bool close = within || (isfinite(s->before) && fabs(log(value / s->before)) <= STEADY);
    s->before = s->reference = value;
    if (close || s->epoch >= 2)
        probe(t, s, out);
    else
        enter(s, PHASE_WARM, false);
}

static void on_candidate(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    struct candidate *c = &s->cand[s->probing];
    charge(s);
    double r = isfinite(s->before) ? log(value / s->before) + load_cost(t, s->probing, s->incumbent) : 0;
    if (r < ADOPT_NOW && c->pairs == 0) {
        char why[64];
        (void)snprintf(why, sizeof why, "%.1f %% faster at once", 100.0 * (1.0 - exp(r)));
        s->before = s->reference = value;
        adopt(t, s, s->probing, r, out, why);
        return;
    }
    s->measured = value;
    go_back(t, s, out, "to compare");
}

static void on_back(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    int h = s->probing;
    double around = isfinite(s->before) ? (log(s->before) + log(value)) / 2.0 : log(value);
    s->before = s->reference = value;
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
    s->before = s->reference = value;
    probe(t, s, out);
}

/* A settled trial that has become slower gets one new round, at most once an epoch. */
static void on_settled(struct tuner *t, struct trial_state *s, double value, struct tuner_actions *out)
{
    s->before = s->reference = value;
    if (!isfinite(s->settled_value) || value < s->settled_value)
        s->settled_value = value;
    s->slow_windows = value > DRIFT * s->settled_value ? s->slow_windows + 1 : 0;
    if (s->slow_windows < DRIFT_WINDOWS || s->round_over) {
        enter(s, PHASE_SETTLED, false);
        return;
    }
    s->round_over = true;
    s->slow_windows = 0;
    for (int h = 0; h < t->space.n_hot; h++)
        if (s->cand[h].verdict != CAND_REFUSED)
            s->cand[h] = (struct candidate){ .verdict = CAND_OPEN, .centre = NAN };
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

/* --- events --- */

/* A known class keeps its stored setting; under a cold setting it was never run with, what was near is looked at again. */
static void open_candidates(const struct tuner *t, struct trial_state *s)
{
    const struct class_entry *c = s->class;
    bool known = c->cold[s->start.cold].tried && c->cold[s->start.cold].hot >= 0;
    for (int h = 0; h < t->space.n_hot; h++) {
        bool near = isfinite(c->ratio[h]) && c->ratio[h] < CONFIRM_RANGE / 4;
        /* Under a new cold setting only those that were close before can have become the best. */
        bool open = c->best_hot < 0 || (!known && (near || isnan(c->ratio[h])));
        s->cand[h] = (struct candidate){ .verdict = open ? CAND_OPEN : CAND_WORSE,
                                         .centre = c->best_hot < 0 ? NAN : c->ratio[h] };
    }
}

/* A job never met, but one that differs in batch alone was: begin with that one's cores, and measure the others against them. */
static void take_hint(struct tuner *t, struct trial_state *s, const char *family, struct tuner_actions *out)
{
    const struct class_entry *relative =
        s->class->best_hot < 0 ? knowledge_relative(&t->known, s->class->key, family) : NULL;
    if (!relative || relative->best_hot == s->now.hot)
        return;
    s->incumbent = s->now.hot = relative->best_hot;
    act(out, ACT_APPLY, s, s->now_s, "%g cores were best for a job that differs in batch alone",
        t->space.cores[s->incumbent]);
    enter(s, PHASE_WARM, true);
}

static int on_started(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    if (find(t, ev->trial))
        return err_set(e, -EPROTO, "trial %d has started already", ev->trial);
    struct class_entry *class = knowledge_get(&t->known, ev->class_key, ev->family_key);
    struct trial_state *s = class ? add(t, ev->trial) : NULL;
    if (!s)
        return err_sys(e, -ENOMEM, "trial %d", ev->trial);
    s->class = class;
    if (class->trials == 0)
        class->start_cold = ev->setting.cold;
    s->start = s->now = ev->setting;
    s->incumbent = ev->setting.hot;
    s->probing = -1;
    s->before = s->reference = s->measured = s->settled_value = NAN;
    s->epoch = 1;
    s->epochs = ev->epochs;
    s->now_s = s->changed_s = ev->t_s;
    s->whole_epoch = true;
    open_candidates(t, s);
    enter(s, PHASE_WARM, false);
    take_hint(t, s, ev->family_key, out);
    if (next_candidate(t, s) < 0)
        settle(t, s, out, class->best_hot < 0 ? "there is nothing to choose" : "the class is known");
    return 0;
}

static void on_iteration(struct tuner *t, struct trial_state *s, const struct tuner_event *ev,
                         struct tuner_actions *out)
{
    s->epoch = ev->epoch;
    s->step_records = ev->records;
    s->epoch_records = ev->epoch_records;
    s->probe_records += ev->records;
    if (window_add(&s->window, ev->t_s, ev->seconds, ev->records, t->cfg.window_s))
        on_window(t, s, out);
    else if (!cut(t, s, out))
        wake_for_cut(s, out);
}

/* A decision taken in the first epoch is confirmed once in the second: what was near is looked at again. */
static void reopen_near(const struct tuner *t, struct trial_state *s)
{
    for (int h = 0; h < t->space.n_hot; h++) {
        struct candidate *c = &s->cand[h];
        bool judged = c->verdict == CAND_WORSE || c->verdict == CAND_TIE;
        if (h != s->incumbent && judged && !c->confirmed && isfinite(c->centre) && c->centre < CONFIRM_RANGE)
            *c = (struct candidate){ .verdict = CAND_OPEN, .centre = NAN, .confirmed = true };
    }
}

static void on_epoch(struct tuner *t, struct trial_state *s, const struct tuner_event *ev)
{
    if (s->phase == PHASE_SETTLED && s->whole_epoch && ev->epoch >= 2) {
        s->steady_s += ev->seconds;
        s->steady_records += ev->records;
    }
    s->whole_epoch = s->phase == PHASE_SETTLED;
    s->round_over = false;
    s->epoch = ev->epoch + 1;
    window_break(&s->window);
    if (ev->epoch != 1 || s->epochs < 2)
        return;
    s->before = NAN; /* a warm JVM is up to twice as fast: what was measured cold compares with nothing any more */
    if (s->class->best_hot >= 0)
        return;
    reopen_near(t, s);
    if (s->phase == PHASE_SETTLED && next_candidate(t, s) >= 0)
        enter(s, PHASE_WARM, false);
}

static void on_failed(struct tuner *t, struct trial_state *s, const struct tuner_event *ev, struct tuner_actions *out)
{
    if (!ev->infeasible)
        return;
    s->cand[ev->setting.hot].verdict = CAND_REFUSED;
    s->class->infeasible[ev->setting.hot][ev->setting.cold] = true;
    if (s->phase == PHASE_WARM && s->incumbent == ev->setting.hot && s->incumbent != s->start.hot) {
        s->incumbent = s->now.hot = s->start.hot; /* the hint cannot be had; what it was launched with can */
        enter(s, PHASE_WARM, false);
    }
    if (s->phase != PHASE_CANDIDATE || s->probing != ev->setting.hot)
        return;
    s->probing = -1;
    s->now.hot = s->incumbent;
    probe(t, s, out);
}

static void on_ended(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    double per_record = s->steady_records > 0 ? s->steady_s / s->steady_records : NAN;
    struct tuner_setting settled = { s->incumbent, s->start.cold };
    learn_ratios(t, s);
    bool explored = s->class->best_hot >= 0 && settled.cold != s->class->best_cold;
    bool changed = knowledge_learn(s->class, settled, per_record, t->cfg.tie_margin, t->space.n_cold);
    if (explored)
        s->class->explored_in_vain = s->class->best_cold == settled.cold ? 0 : s->class->explored_in_vain + 1;
    s->now = (struct tuner_setting){ s->class->best_hot, s->class->best_cold };
    if (changed)
        act(out, ACT_LEARN, s, s->now_s, "the best of its class: %g cores, memory %g", t->space.cores[s->now.hot],
            t->space.memory[s->now.cold]);
    drop(t, s);
}

/* A launch that never trained: the bound belongs to the class. */
static int on_launch_failed(struct tuner *t, const struct tuner_event *ev, struct err *e)
{
    struct class_entry *c = knowledge_get(&t->known, ev->class_key, ev->family_key);
    if (!c)
        return err_sys(e, -ENOMEM, "class '%s'", ev->class_key);
    if (!ev->infeasible)
        return 0;
    knowledge_bound(c, ev->setting);
    c->cold[ev->setting.cold].tried = false; /* other cores may fit there */
    c->failed_launches++;
    return 0;
}

int tuner_step(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    out->n = 0;
    if (ev->kind == EV_LOAD) {
        t->waiting = ev->waiting;
        return 0;
    }
    if (ev->kind == EV_TRIAL_STARTED)
        return on_started(t, ev, out, e);
    struct trial_state *s = find(t, ev->trial);
    if (!s && ev->kind == EV_FAILED && ev->class_key)
        return on_launch_failed(t, ev, e);
    if (!s)
        return err_set(e, -EPROTO, "trial %d is not known", ev->trial);
    s->now_s = ev->t_s;
    switch (ev->kind) {
    case EV_ITERATION: on_iteration(t, s, ev, out); break;
    case EV_EPOCH: on_epoch(t, s, ev); break;
    case EV_FAILED: on_failed(t, s, ev, out); break;
    case EV_TICK: (void)cut(t, s, out); break;
    case EV_TRIAL_ENDED: on_ended(t, s, out); break;
    case EV_APPLIED:
        s->changed_s = ev->t_s;
        window_begin(&s->window, ev->t_s, true);
        break;
    case EV_TRIAL_STARTED:
    case EV_LOAD: break;
    }
    return 0;
}

/* --- launching --- */

/* A hot setting that nobody has measured, because no memory so far let it run. */
static bool unmeasured(const struct tuner *t, const struct class_entry *c)
{
    for (int h = 0; h < t->space.n_hot; h++)
        if (isnan(c->ratio[h]))
            return true;
    return false;
}

/* The hot setting to explore this memory with: the best one, else the nearest that could be the best there. -1: none. */
static int hot_for(const struct tuner *t, const struct class_entry *c, int cold)
{
    int best = -1;
    for (int h = 0; h < t->space.n_hot; h++) {
        bool worth = isnan(c->ratio[h]) || c->ratio[h] < CONFIRM_RANGE;
        if (worth && !c->infeasible[h][cold] && (best < 0 || abs(h - c->best_hot) < abs(best - c->best_hot)))
            best = h;
    }
    return best;
}

/* The next larger memory that nobody has tried, one step beyond what was; false: none, or it is not worth it any more. */
static bool explore(const struct tuner *t, const struct class_entry *c, struct tuner_setting *out)
{
    if ((c->explored_in_vain > 0 && !unmeasured(t, c)) || c->failed_launches >= FAILED_LAUNCHES_MAX)
        return false;
    for (int i = c->best_cold + 1; i < t->space.n_cold; i++) {
        if (c->cold[i].tried)
            continue;
        *out = (struct tuner_setting){ hot_for(t, c, i), i };
        return out->hot >= 0;
    }
    return false;
}

/* What a job that differs in batch alone has learnt is the prior: larger memory where that proved worth it (a smaller one may
 * not hold this batch). Its cores are taken up once the job runs, when a change costs nothing. */
static int cold_prior(const struct class_entry *c, const struct class_entry *relative, struct tuner_setting start)
{
    bool worth = relative && relative->best_cold > relative->start_cold && relative->best_cold > start.cold;
    return worth && !c->infeasible[start.hot][relative->best_cold] ? relative->best_cold : start.cold;
}

int tuner_launch(struct tuner *t, const char *class_key, const char *family_key, struct tuner_setting start,
                 struct tuner_setting *out, char reason[TUNER_REASON_MAX], struct err *e)
{
    struct class_entry *c = knowledge_get(&t->known, class_key, family_key);
    if (!c)
        return err_sys(e, -ENOMEM, "class '%s'", class_key);
    const struct class_entry *relative = knowledge_relative(&t->known, class_key, family_key);
    if (c->best_hot < 0) {
        *out = (struct tuner_setting){ start.hot, cold_prior(c, relative, start) };
        (void)snprintf(reason, TUNER_REASON_MAX, "%s",
                       out->cold == start.cold ? "the default setting"
                                               : "the memory of a job that differs in batch alone");
        return 0;
    }
    *out = (struct tuner_setting){ c->best_hot, c->best_cold };
    struct tuner_setting next;
    bool exploring = explore(t, c, &next);
    if (exploring) {
        *out = next;
        c->cold[next.cold].tried = true;
    }
    (void)snprintf(reason, TUNER_REASON_MAX, "%s",
                   exploring ? "the next larger memory, at the best cores of its class"
                             : "the best setting of its class");
    return 0;
}
