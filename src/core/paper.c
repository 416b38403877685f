#include "core/paper.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct paper_class {
    char *key;
    int best; /* hot; -1: not met yet */
};

struct paper_trial {
    int number;
    struct paper_class *class;
    struct tuner_setting start, now; /* launched with; in force or asked for */
    int epochs;                      /* budget */
    int n_hot;                       /* it may have the settings below */
    bool met;                        /* its class had been met when it started */
    bool settled;
    bool broken;                   /* the epoch under way is no measurement */
    double epoch_s[TUNER_MAX_HOT]; /* NAN: not measured */
    bool refused[TUNER_MAX_HOT];
    double now_s;
};

struct paper {
    struct tuner_space space;
    struct paper_class **classes;
    size_t n_classes, cap_classes;
    struct paper_trial **trials;
    size_t n, cap;
};

/* --- the machine and its trials --- */

struct paper *paper_new(const struct tuner_space *space, const struct tuner_cfg *cfg)
{
    (void)cfg; /* whole epochs are its windows, and it has no budget */
    assert(space->n_hot >= 1 && space->n_hot <= TUNER_MAX_HOT);
    struct paper *p = calloc(1, sizeof *p);
    if (p)
        p->space = *space;
    return p;
}

void paper_free(struct paper *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        free(p->trials[i]);
    for (size_t i = 0; i < p->n_classes; i++) {
        free(p->classes[i]->key);
        free(p->classes[i]);
    }
    free(p->trials);
    free(p->classes);
    free(p);
}

static struct paper_trial *find(const struct paper *p, int number)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->trials[i]->number == number)
            return p->trials[i];
    return NULL;
}

static struct paper_trial *add(struct paper *p, int number)
{
    struct paper_trial **grown = array_more(p->trials, p->n, &p->cap, sizeof(struct paper_trial *));
    if (!grown)
        return NULL;
    p->trials = grown;
    struct paper_trial *t = calloc(1, sizeof *t);
    if (t) {
        t->number = number;
        p->trials[p->n++] = t;
    }
    return t;
}

static struct paper_class *add_class(struct paper *p, const char *key)
{
    struct paper_class **grown = array_more(p->classes, p->n_classes, &p->cap_classes, sizeof(struct paper_class *));
    if (!grown)
        return NULL;
    p->classes = grown;
    struct paper_class *c = calloc(1, sizeof *c);
    char *copy = strdup(key);
    if (!c || !copy) {
        free(c);
        free(copy);
        return NULL;
    }
    *c = (struct paper_class){ .key = copy, .best = -1 };
    return p->classes[p->n_classes++] = c;
}

/* Made when new; NULL: memory. */
static struct paper_class *get_class(struct paper *p, const char *key)
{
    for (size_t i = 0; i < p->n_classes; i++)
        if (strcmp(p->classes[i]->key, key) == 0)
            return p->classes[i];
    return add_class(p, key);
}

static void drop(struct paper *p, const struct paper_trial *t)
{
    size_t i = 0;
    while (p->trials[i] != t)
        i++;
    free(p->trials[i]);
    p->n--;
    memmove(&p->trials[i], &p->trials[i + 1], (p->n - i) * sizeof(struct paper_trial *));
}

bool paper_current(const struct paper *p, int trial, struct tuner_setting *out)
{
    const struct paper_trial *t = find(p, trial);
    if (t)
        *out = t->now;
    return t != NULL;
}

bool paper_settled(const struct paper *p, int trial)
{
    const struct paper_trial *t = find(p, trial);
    return t && t->settled;
}

/* --- actions --- */

static void act(struct tuner_actions *out, enum tuner_action_kind kind, const struct paper_trial *t, const char *reason,
                ...) __attribute__((format(printf, 4, 5)));
static void act(struct tuner_actions *out, enum tuner_action_kind kind, const struct paper_trial *t, const char *reason,
                ...)
{
    assert(out->n < TUNER_ACTIONS_MAX);
    struct tuner_action *a = &out->list[out->n++];
    *a = (struct tuner_action){ .kind = kind, .trial = t->number, .setting = t->now, .t_s = t->now_s };
    va_list ap;
    va_start(ap, reason);
    (void)vsnprintf(a->reason, sizeof a->reason, reason, ap); /* a cut reason is still a reason */
    va_end(ap);
}

/* How many hot settings a trial may have. */
static int within(const struct paper *p, int n_hot)
{
    return n_hot > 0 && n_hot < p->space.n_hot ? n_hot : p->space.n_hot;
}

static bool may_have(const struct paper_trial *t, int hot)
{
    return hot < t->n_hot && !t->refused[hot];
}

/* `hot`, or the next smaller one that it may have; what it was launched with when there is none. */
static int nearest(const struct paper_trial *t, int hot)
{
    while (hot >= 0 && !may_have(t, hot))
        hot--;
    return hot >= 0 ? hot : t->start.hot;
}

static void change(struct paper_trial *t, int hot, struct tuner_actions *out, const char *reason)
{
    if (t->now.hot == hot)
        return;
    t->now.hot = hot;
    act(out, ACT_APPLY, t, "%s", reason);
}

static void settle(struct paper_trial *t, int hot, struct tuner_actions *out, const char *reason)
{
    change(t, hot, out, reason);
    t->settled = true;
    act(out, ACT_SETTLE, t, "%s", reason);
}

/* --- probing --- */

/* What to measure next: the start, then the others from the cheapest up. -1: nothing is left. */
static int next_probe(const struct paper *p, const struct paper_trial *t)
{
    if (isnan(t->epoch_s[t->start.hot]) && may_have(t, t->start.hot))
        return t->start.hot;
    for (int h = 0; h < p->space.n_hot; h++)
        if (isnan(t->epoch_s[h]) && may_have(t, h))
            return h;
    return -1;
}

/* The shortest epoch, the earliest measured among equals; when nothing was measured, the start or the nearest to it. */
static int best_measured(const struct paper *p, const struct paper_trial *t)
{
    bool counts = may_have(t, t->start.hot) && !isnan(t->epoch_s[t->start.hot]);
    int best = counts ? t->start.hot : -1;
    for (int h = 0; h < p->space.n_hot; h++)
        if (may_have(t, h) && !isnan(t->epoch_s[h]) && (best < 0 || t->epoch_s[h] < t->epoch_s[best]))
            best = h;
    return best >= 0 ? best : nearest(t, t->start.hot);
}

static int measured(const struct paper *p, const struct paper_trial *t)
{
    int n = 0;
    for (int h = 0; h < p->space.n_hot; h++)
        n += !isnan(t->epoch_s[h]);
    return n;
}

/* The first trial that comes to an end makes the class known. */
static void learn(struct paper *p, struct paper_trial *t, struct tuner_actions *out)
{
    int best = best_measured(p, t);
    if (t->class->best >= 0 || isnan(t->epoch_s[best]))
        return;
    t->class->best = best;
    struct tuner_setting now = t->now;
    t->now.hot = best;
    act(out, ACT_LEARN, t, "the best of its class: %g cores", p->space.cores[best]);
    t->now = now;
}

static void conclude(struct paper *p, struct paper_trial *t, struct tuner_actions *out)
{
    int best = best_measured(p, t);
    char why[TUNER_REASON_MAX] = "nothing could be measured";
    if (!isnan(t->epoch_s[best]))
        (void)snprintf(why, sizeof why, "%g cores had the shortest of %d epochs: %.3g s", p->space.cores[best],
                       measured(p, t), t->epoch_s[best]);
    settle(t, best, out, why);
    learn(p, t, out);
}

/* An epoch lies ahead: probe in it, or be done with probing. */
static void go_on(struct paper *p, struct paper_trial *t, struct tuner_actions *out)
{
    int h = next_probe(p, t);
    if (h < 0) {
        conclude(p, t, out);
        return;
    }
    char why[TUNER_REASON_MAX];
    (void)snprintf(why, sizeof why, "one epoch with %g cores", p->space.cores[h]);
    change(t, h, out, why);
}

/* --- events --- */

static int on_started(struct paper *p, const struct tuner_event *ev, struct err *e)
{
    if (find(p, ev->trial))
        return err_set(e, -EPROTO, "trial %d has started already", ev->trial);
    struct paper_class *class = get_class(p, ev->class_key);
    struct paper_trial *t = class ? add(p, ev->trial) : NULL;
    if (!t)
        return err_sys(e, -ENOMEM, "trial %d", ev->trial);
    t->class = class;
    t->met = class->best >= 0;
    t->start = t->now = ev->setting;
    t->epochs = ev->epochs;
    t->n_hot = within(p, ev->n_hot);
    t->now_s = ev->t_s;
    for (int h = 0; h < TUNER_MAX_HOT; h++)
        t->epoch_s[h] = NAN;
    return 0;
}

static void on_epoch(struct paper *p, struct paper_trial *t, const struct tuner_event *ev, struct tuner_actions *out)
{
    bool whole = !t->broken && isfinite(ev->seconds);
    t->broken = false;
    if (t->settled)
        return;
    if (whole && isnan(t->epoch_s[t->now.hot]))
        t->epoch_s[t->now.hot] = ev->seconds;
    if (ev->epoch >= t->epochs)
        return; /* none is left to change anything for */
    if (t->met)
        settle(t, nearest(t, t->class->best), out, "the best setting of its class");
    else
        go_on(p, t, out);
}

/* A setting that cannot be had is passed over; where it was to stay, what the trial was launched with can be had. */
static void on_failed(struct paper *p, struct paper_trial *t, const struct tuner_event *ev, struct tuner_actions *out)
{
    int hot = ev->setting.hot;
    if (!ev->infeasible || hot == t->start.hot)
        return;
    t->refused[hot] = true;
    t->epoch_s[hot] = NAN;
    if (t->now.hot != hot)
        return;
    if (t->settled)
        settle(t, t->start.hot, out, "the setting cannot be had");
    else
        go_on(p, t, out);
}

/* Another setting is in force than the one that was asked for, from somewhere in this epoch on. */
static void on_instead(struct paper_trial *t, const struct tuner_event *ev)
{
    if (ev->setting.hot == t->now.hot)
        return;
    if (t->now.hot != t->start.hot)
        t->refused[t->now.hot] = true;
    t->now.hot = ev->setting.hot;
    t->broken = true;
}

/* What it may have has changed. */
static void on_load(struct paper *p, struct paper_trial *t, const struct tuner_event *ev, struct tuner_actions *out)
{
    t->n_hot = within(p, ev->n_hot);
    if (may_have(t, t->now.hot))
        return;
    t->broken = true;
    change(t, nearest(t, t->n_hot - 1), out, "other trials need the cores");
}

static int on_trial(struct paper *p, struct paper_trial *t, const struct tuner_event *ev, struct tuner_actions *out)
{
    t->now_s = ev->t_s;
    switch (ev->kind) {
    case EV_EPOCH: on_epoch(p, t, ev, out); break;
    case EV_FAILED: on_failed(p, t, ev, out); break;
    case EV_INSTEAD: on_instead(t, ev); break;
    case EV_LOAD: on_load(p, t, ev, out); break;
    case EV_BREAK: t->broken = true; break;
    case EV_TRIAL_ENDED:
        learn(p, t, out);
        drop(p, t);
        break;
    case EV_TRIAL_LOST: drop(p, t); break;
    case EV_TRIAL_STARTED:
    case EV_ITERATION:
    case EV_APPLIED:
    case EV_TICK:
    case EV_RECALL:
    case EV_VERDICT: break;
    }
    return 0;
}

int paper_step(struct paper *p, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    out->n = 0;
    if (ev->kind == EV_TRIAL_STARTED)
        return on_started(p, ev, e);
    if ((ev->kind == EV_LOAD && ev->trial == 0) || ev->kind == EV_RECALL)
        return 0; /* how many wait is no matter here, nor what earlier studies knew */
    struct paper_trial *t = find(p, ev->trial);
    if (t)
        return on_trial(p, t, ev, out);
    if (ev->kind == EV_FAILED && ev->class_key)
        return 0; /* a launch that never trained: the start setting is all there is to launch with */
    return err_set(e, -EPROTO, "trial %d is not known", ev->trial);
}

int paper_launch(struct paper *p, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                 struct err *e)
{
    (void)e; /* nothing can fail */
    int n_hot = within(p, ask->n_hot);
    bool fits = ask->start.hot < n_hot;
    *out = (struct tuner_setting){ fits ? ask->start.hot : n_hot - 1, ask->start.cold };
    (void)snprintf(reason, TUNER_REASON_MAX, "%s",
                   fits ? "the start setting" : "the most that is free of the start setting");
    return 0;
}
