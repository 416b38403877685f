#include "core/sched.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

static const char *const state_names[] = {
    [TRIAL_WAITING] = "waiting", [TRIAL_RUNNING] = "running",       [TRIAL_INTERRUPTED] = "interrupted",
    [TRIAL_PAUSED] = "paused",   [TRIAL_FINISHED] = "finished",     [TRIAL_STOPPED] = "stopped",
    [TRIAL_FAILED] = "failed",   [TRIAL_INFEASIBLE] = "infeasible",
};

static const char *const outcome_names[] = {
    [OUTCOME_FINISHED] = "finished",
    [OUTCOME_PAUSED] = "paused",
    [OUTCOME_STOPPED] = "stopped",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_INFEASIBLE] = "infeasible",
    [OUTCOME_REFUSED] = "refused_setting",
    [OUTCOME_UNUSABLE] = "unusable_checkpoint",
    [OUTCOME_ENVIRONMENT] = "environment",
    [OUTCOME_KILLED] = "killed",
    [OUTCOME_DOUBTED] = "doubted_environment",
    [OUTCOME_INTERRUPTED] = "interrupted",
};

static int find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -EINVAL;
}

const char *trial_state_name(enum trial_state s)
{
    return state_names[s];
}

int trial_state_parse(const char *name)
{
    return find_name(state_names, ARRAY_LEN(state_names), name);
}

bool trial_state_is_final(enum trial_state s)
{
    return s == TRIAL_FINISHED || s == TRIAL_STOPPED || s == TRIAL_FAILED || s == TRIAL_INFEASIBLE;
}

const char *outcome_name(enum outcome o)
{
    return outcome_names[o];
}

int outcome_parse(const char *name)
{
    return find_name(outcome_names, ARRAY_LEN(outcome_names), name);
}

void sched_done(struct sched *s)
{
    if (!s)
        return;
    free(s->trials);
    *s = (struct sched){ 0 };
}

static int make_room(struct sched *s)
{
    if (s->n < s->cap)
        return 0;
    size_t cap = s->cap ? 2 * s->cap : 8;
    struct sched_trial *trials = realloc(s->trials, cap * sizeof *trials);
    if (!trials)
        return -ENOMEM;
    s->trials = trials;
    s->cap = cap;
    return 0;
}

int sched_add(struct sched *s, const struct sched_trial *t)
{
    if (trial_state_is_final(t->state)) {
        s->made++;
        return 0;
    }
    if (make_room(s) < 0)
        return -ENOMEM;
    size_t at = s->n;
    while (at > 0 && s->trials[at - 1].number > t->number)
        at--;
    assert(at == 0 || s->trials[at - 1].number != t->number);
    memmove(&s->trials[at + 1], &s->trials[at], (s->n - at) * sizeof *s->trials);
    s->trials[at] = *t;
    s->n++;
    s->made++;
    return 0;
}

static bool is_to_start(const struct sched_trial *t)
{
    return t->state == TRIAL_WAITING || t->state == TRIAL_INTERRUPTED;
}

/* The trial to start: the first that was begun before, else the first new one. */
static const struct sched_trial *pick(const struct sched *s, bool (*fits)(void *ctx, int trial), void *ctx)
{
    const struct sched_trial *fresh = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct sched_trial *t = &s->trials[i];
        bool begun = t->state == TRIAL_INTERRUPTED || (t->state == TRIAL_WAITING && t->failures > 0);
        if (!is_to_start(t) || (fresh && !begun) || (fits && !fits(ctx, t->number)))
            continue;
        if (begun)
            return t;
        fresh = t;
    }
    return fresh;
}

bool sched_may_add(const struct sched *s)
{
    return s->max_trials == 0 || s->made < s->max_trials;
}

/* So many may wait to be started, when none of those that do can be. */
static size_t most_waiting(const struct sched *s, bool (*fits)(void *ctx, int trial), void *ctx)
{
    bool room = sched_running(s) < (size_t)s->parallel;
    if (!s->learns || s->extra > 0) /* those that are there besides wait for nothing that is told */
        return room ? SCHED_LOOKAHEAD : 0;
    room = room && (!fits || fits(ctx, SCHED_ANY));
    return (room ? SCHED_LEARNING_LOOKAHEAD : 0) + (size_t)s->ending;
}

static bool may_ask(const struct sched *s, bool (*fits)(void *ctx, int trial), void *ctx)
{
    if (s->added > 0)
        return true;
    bool searching = !s->exhausted && !s->waiting && (sched_may_add(s) || sched_paused(s) != 0);
    return (s->extra > 0 || searching) && sched_waiting(s) < most_waiting(s, fits, ctx);
}

enum sched_verb sched_next(const struct sched *s, bool (*fits)(void *ctx, int trial), void *ctx, int *out_trial)
{
    size_t running = sched_running(s);
    enum sched_verb idle = running ? SCHED_WAIT : SCHED_END;
    assert(s->parallel >= 1);
    if (s->stopping || s->closed)
        return idle;
    const struct sched_trial *t = running < (size_t)s->parallel ? pick(s, fits, ctx) : NULL;
    if (t) {
        *out_trial = t->number;
        return SCHED_START;
    }
    return may_ask(s, fits, ctx) ? SCHED_ASK : idle;
}

void sched_asked(struct sched *s, int rc)
{
    if (rc == 0)
        s->waiting = true;
    else if (rc == -ENODATA)
        s->exhausted = true;
}

static struct sched_trial *find(const struct sched *s, int number)
{
    size_t i = 0;
    while (i < s->n && s->trials[i].number != number)
        i++;
    assert(i < s->n);
    return &s->trials[i];
}

void sched_started(struct sched *s, int number)
{
    find(s, number)->state = TRIAL_RUNNING;
}

void sched_gained(struct sched *s, int number)
{
    find(s, number)->kills = 0;
}

void sched_give_up(struct sched *s, int number)
{
    find(s, number)->failures = s->retries;
}

enum trial_state sched_state_after(const struct sched *s, int number, enum outcome o)
{
    const struct sched_trial *t = find(s, number);
    switch (o) {
    case OUTCOME_FINISHED: return TRIAL_FINISHED;
    case OUTCOME_PAUSED: return TRIAL_PAUSED;
    case OUTCOME_STOPPED: return TRIAL_STOPPED;
    case OUTCOME_FAILED: return t->failures + 1 > s->retries ? TRIAL_FAILED : TRIAL_WAITING;
    case OUTCOME_KILLED: return t->kills + 1 >= SCHED_KILLS_MAX ? TRIAL_FAILED : TRIAL_INTERRUPTED;
    case OUTCOME_INFEASIBLE: return TRIAL_INFEASIBLE;
    case OUTCOME_ENVIRONMENT: return TRIAL_WAITING;
    case OUTCOME_REFUSED:
    case OUTCOME_UNUSABLE:
    case OUTCOME_DOUBTED:
    case OUTCOME_INTERRUPTED: break;
    }
    return TRIAL_INTERRUPTED;
}

enum trial_state sched_ended(struct sched *s, int number, enum outcome o)
{
    struct sched_trial *t = find(s, number);
    t->state = sched_state_after(s, number, o);
    t->failures += o == OUTCOME_FAILED;
    t->kills += o == OUTCOME_KILLED;
    s->stopping |= o == OUTCOME_ENVIRONMENT;
    s->waiting = false; /* the search was told of it, and may know more now */
    enum trial_state state = t->state;
    if (trial_state_is_final(state)) {
        size_t at = (size_t)(t - s->trials);
        memmove(t, t + 1, (s->n - at - 1) * sizeof *t);
        s->n--;
    }
    return state;
}

void sched_resume(struct sched *s, int number)
{
    struct sched_trial *t = find(s, number);
    assert(t->state == TRIAL_PAUSED || t->state == TRIAL_RUNNING);
    if (t->state == TRIAL_PAUSED)
        t->state = TRIAL_INTERRUPTED;
}

void sched_woken(struct sched *s)
{
    s->waiting = false;
}

int sched_paused(const struct sched *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].state == TRIAL_PAUSED)
            return s->trials[i].number;
    return 0;
}

int sched_left(const struct sched *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->trials[i].state == TRIAL_PAUSED || (s->closed && is_to_start(&s->trials[i])))
            return s->trials[i].number;
    return 0;
}

size_t sched_running(const struct sched *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].state == TRIAL_RUNNING;
    return n;
}

size_t sched_waiting(const struct sched *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_to_start(&s->trials[i]);
    return n;
}
