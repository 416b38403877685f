#include "core/tuner.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/tuner_state.h"

enum {
    ACTIONS_OF_A_TRIAL = 4, /* at most, when what counts has changed */
    ACTIONS_TOGETHER = 8,   /* of several trials, for the same reason */
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

int tuner_space_step(const struct tuner_space *s, int cold, int by)
{
    for (int i = cold + by; i >= 0 && i < s->n_cold; i += by)
        if (s->other[i] == s->other[cold])
            return i;
    return -1;
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
    struct trial_state **grown = array_more(t->trials, t->n, &t->cap, sizeof(struct trial_state *));
    if (!grown)
        return NULL;
    t->trials = grown;
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
        tuner_recall_leave(t->trials[i]);
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

void tuner_act(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s, double t_s,
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

void tuner_act_on(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s,
                  struct tuner_setting at, const char *reason)
{
    tuner_act(out, kind, s, s->now_s, "%s", reason);
    out->list[out->n - 1].setting = at;
}

/* --- what counts, and what is learnt --- */

/* While trials wait that could be packed beside this one, a setting costs core-seconds, else seconds. */
struct choice_rule tuner_rule(const struct tuner *t, int n_hot)
{
    struct choice_rule r = { .n_hot = n_hot, .space = &t->space, .tie_margin = t->cfg.tie_margin };
    for (int h = 0; h < t->space.n_hot; h++)
        r.load[h] = t->waiting > 0 ? log(t->space.cores[h]) : 0;
    return r;
}

void tuner_learn(struct tuner *t, struct trial_state *s, double per_record, struct tuner_actions *out)
{
    struct choice_rule rule = tuner_rule(t, t->space.n_hot);
    struct tuner_setting at = { s->incumbent, s->start.cold };
    knowledge_learn_time(s->class, at, LEVEL_STEADY, per_record);
    if (s->epoch == s->first)
        knowledge_learn_time(s->class, at, LEVEL_FIRST, s->reference);
    for (int h = 0; h < t->space.n_hot; h++) {
        const struct candidate *c = &s->cand[h];
        if (!c->measured || !isfinite(c->centre) || h == s->incumbent)
            continue;
        knowledge_learn_ratio(s->class, at.cold, h, s->incumbent, c->centre, c->at_least);
        if (s->class->recall == RECALL_OPEN) /* it was compared here */
            s->class->recall = RECALL_HOLDS;
    }
    if (!knowledge_review(s->class, &rule))
        return;
    struct tuner_setting best = s->class->best;
    char why[TUNER_REASON_MAX];
    (void)snprintf(why, sizeof why, "the best of its class: %g core%s, memory %g", TUNER_CORES(t, best.hot),
                   t->space.memory[best.cold]);
    tuner_act_on(out, ACT_LEARN, s, best, why);
}

const struct knowledge *tuner_knowledge(const struct tuner *t)
{
    return &t->known;
}

/* --- events --- */

int tuner_n_hot(const struct tuner *t, int n_hot)
{
    return n_hot > 0 && n_hot < t->space.n_hot ? n_hot : t->space.n_hot;
}

static int on_started(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    const struct trial_state *old = find(t, ev->trial);
    if (old && !old->leaving)
        return err_set(e, -EPROTO, "trial %d has started already", ev->trial);
    if (old)
        drop(t, old);
    struct class_entry *class = knowledge_get(&t->known, ev->class_key, ev->family_key);
    struct trial_state *s = class ? add(t, ev->trial) : NULL;
    if (!s)
        return err_sys(e, -ENOMEM, "trial %d", ev->trial);
    s->class = class;
    s->fresh = class->best.cold < 0;
    s->new_cold = class->cold[ev->setting.cold].hot < 0;
    class->startup_s = ev->startup_s;
    s->startup_s = ev->startup_s;
    s->n_hot = tuner_n_hot(t, ev->n_hot);
    s->alone = ev->alone;
    s->start = s->now = ev->setting;
    s->former = s->incumbent = ev->setting.hot;
    s->probing = s->hint = -1;
    s->before = s->reference = s->measured = s->settled_value = NAN;
    s->first = s->epoch = ev->epoch > 0 ? ev->epoch : 1;
    s->epochs = ev->epochs;
    s->now_s = s->changed_s = s->epoch_began_s = s->began_s = ev->t_s;
    s->first_value = NAN;
    s->whole_epoch = ev->alone;
    tuner_probe_begin(t, s, out);
    return 0;
}

static void on_epoch(struct tuner *t, struct trial_state *s, const struct tuner_event *ev, struct tuner_actions *out)
{
    if (s->phase == PHASE_SETTLED && s->whole_epoch && ev->epoch > s->first) {
        s->steady_s += ev->seconds;
        s->steady_records += ev->records;
        if (!isfinite(s->reference))
            s->reference = s->steady_s / s->steady_records;
        if (s->new_cold && ev->epoch == s->first + 1) /* how good this memory is may be reason enough to leave it */
            tuner_learn(t, s, s->steady_s / s->steady_records, out);
    }
    s->whole_epoch = s->alone && s->phase == PHASE_SETTLED;
    s->epoch = ev->epoch + 1;
    s->epoch_began_s = ev->t_s;
    s->epoch_records = ev->records > 0 ? ev->records : s->epoch_records;
    s->class->records = s->epoch_records * s->epochs;
    tuner_probe_epoch(t, s, ev->epoch);
    if (s->epoch <= s->epochs)
        tuner_cold_consider(t, s, out);
}

/* A setting that cannot be had here; when that is proven, nowhere in its class. */
static void on_failed(struct tuner *t, struct trial_state *s, const struct tuner_event *ev, struct tuner_actions *out)
{
    if (ev->infeasible)
        knowledge_refuse(s->class, ev->setting);
    tuner_probe_refused(t, s, ev->setting.hot, out);
}

/* What a packed trial shows holds beside those co-runners alone. */
static void on_ended(struct tuner *t, struct trial_state *s, struct tuner_actions *out)
{
    bool measured = s->steady_records > 0;
    if (measured || s->alone) {
        tuner_learn(t, s, measured ? s->steady_s / s->steady_records : NAN, out);
        s->class->trials++;
        tuner_cold_ended(s);
    }
    drop(t, s);
}

/* A launch that never trained: the bound belongs to the class. */
static int on_launch_failed(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    struct class_entry *c = knowledge_get(&t->known, ev->class_key, ev->family_key);
    if (!c)
        return err_sys(e, -ENOMEM, "class '%s'", ev->class_key);
    if (!ev->infeasible)
        return 0;
    tuner_recall_launch_failed(c, ev, out);
    c->spent_s += c->startup_s; /* 0 as long as none of its launches has succeeded: those were no tries */
    knowledge_refuse(c, ev->setting);
    if (!ev->unexplained)
        knowledge_bound(c, &t->space, ev->setting);
    return 0;
}

/* Those for whom there is no room in this step follow with their own next event. */
static void reconsider_all(struct tuner *t, struct tuner_actions *out, const char *cause)
{
    for (size_t i = 0; i < t->n; i++) {
        struct trial_state *s = t->trials[i];
        s->reconsider = out->n + ACTIONS_OF_A_TRIAL > ACTIONS_TOGETHER;
        if (!s->reconsider)
            tuner_probe_reconsider(t, s, out, cause);
    }
}

static void on_load(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out)
{
    bool before = t->waiting > 0, now = ev->waiting > 0;
    t->waiting = ev->waiting;
    if (now != before)
        reconsider_all(t, out, now ? "trials wait" : "no trial waits any more");
}

static void on_share(struct tuner *t, struct trial_state *s, const struct tuner_event *ev, struct tuner_actions *out)
{
    int n_hot = tuner_n_hot(t, ev->n_hot);
    const char *cause = n_hot > s->n_hot   ? "there are more cores for it"
                        : n_hot < s->n_hot ? "it may have fewer cores"
                                           : "it runs alone";
    if (n_hot == s->n_hot && ev->alone == s->alone)
        return;
    s->whole_epoch = s->whole_epoch && s->alone && ev->alone;
    s->n_hot = n_hot;
    s->alone = ev->alone;
    tuner_probe_reconsider(t, s, out, cause);
}

static void on_trial(struct tuner *t, struct trial_state *s, const struct tuner_event *ev, struct tuner_actions *out)
{
    s->now_s = ev->t_s;
    if (s->reconsider && (ev->kind == EV_ITERATION || ev->kind == EV_TICK)) {
        s->reconsider = false;
        tuner_probe_reconsider(t, s, out, t->waiting > 0 ? "trials wait" : "no trial waits any more");
    }
    switch (ev->kind) {
    case EV_ITERATION: tuner_probe_iteration(t, s, ev, out); break;
    case EV_EPOCH: on_epoch(t, s, ev, out); break;
    case EV_APPLIED: tuner_probe_applied(t, s, ev); break;
    case EV_FAILED: on_failed(t, s, ev, out); break;
    case EV_INSTEAD: tuner_probe_instead(t, s, ev->setting.hot, out); break;
    case EV_LOAD: on_share(t, s, ev, out); break;
    case EV_BREAK: tuner_probe_break(t, s, out); break;
    case EV_TICK: tuner_probe_tick(t, s, out); break;
    case EV_TRIAL_ENDED: on_ended(t, s, out); break;
    case EV_TRIAL_LOST: drop(t, s); break;
    case EV_VERDICT: tuner_recall_verdict(t, s, ev, out); break;
    case EV_TRIAL_STARTED:
    case EV_RECALL: break;
    }
}

bool tuner_has(const struct tuner *t, struct tuner_setting s)
{
    return s.hot >= 0 && s.hot < t->space.n_hot && s.cold >= 0 && s.cold < t->space.n_cold;
}

int tuner_step(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    out->n = 0;
    if ((ev->kind == EV_TRIAL_STARTED || ev->kind == EV_FAILED || ev->kind == EV_INSTEAD) && !tuner_has(t, ev->setting))
        return err_set(e, -EPROTO, "trial %d: there is no setting (%d, %d)", ev->trial, ev->setting.hot,
                       ev->setting.cold);
    if (ev->kind == EV_TRIAL_STARTED && !ev->class_key)
        return err_set(e, -EPROTO, "trial %d belongs to no class", ev->trial);
    if (ev->kind == EV_RECALL)
        return tuner_recall_learn(t, ev, e);
    if (ev->kind == EV_VERDICT && ev->verdict == VERDICT_KNOWN && !ev->class_key)
        return err_set(e, -EPROTO, "trial %d: its profile is known, but not as which class's", ev->trial);
    if (ev->kind == EV_LOAD && ev->trial == 0) {
        on_load(t, ev, out);
        return 0;
    }
    if (ev->kind == EV_TRIAL_STARTED)
        return on_started(t, ev, out, e);
    struct trial_state *s = find(t, ev->trial);
    if (!s && ev->kind == EV_FAILED && ev->class_key)
        return on_launch_failed(t, ev, out, e);
    if (!s)
        return err_set(e, -EPROTO, "trial %d is not known", ev->trial);
    on_trial(t, s, ev, out);
    return 0;
}
