/* The trials and what was told of them. What follows from that is thaw_build.c's and thaw_field.c's, and made as it is told. */
#include "search/thaw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/rng.h"
#include "search/thaw_state.h"

enum { TAUGHT = 8, FRESH_MIN = 8 };

/* Each epoch that is looked at is three times the one before; the last one is the study's. */
static void set_steps(struct thaw *t)
{
    int epoch = t->cfg.min_epochs > 1 ? t->cfg.min_epochs : 1;
    while (epoch < t->cfg.epochs && t->times.n < THAW_STEPS_MAX - 1) {
        t->step_epoch[t->times.n++] = epoch;
        epoch *= 3;
    }
    t->step_epoch[t->times.n++] = t->cfg.epochs;
    for (int i = 0; i < t->times.n; i++)
        t->times.log_epoch[i] = log(t->step_epoch[i]);
}

int thaw_new(struct thaw **out, const struct space *sp, const struct search_cfg *cfg)
{
    struct thaw *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->space = sp;
    t->cfg = *cfg;
    t->hyper = thaw_hyper_usual();
    set_steps(t);
    t->places.n = sp->n_dims;
    for (size_t i = 0; i < sp->n_dims; i++)
        t->places.named[i] = unit_choices(&sp->dims[i]) > 0;
    *out = t;
    return 0;
}

void thaw_free(struct thaw *t)
{
    if (!t)
        return;
    thaw_field_done(&t->field);
    free(t->trials);
    free(t->log);
    free(t);
}

void thaw_set_stepwise(struct thaw *t)
{
    t->stepwise = true;
}

/* --- what is taken in --------------------------------------------------------------------------------------------------- */

static size_t taught_at(const struct thaw *t)
{
    size_t few = t->cfg.max_trials > 0 ? (size_t)t->cfg.max_trials / 3 : TAUGHT;
    return few < 3 ? 3 : few < TAUGHT ? few : TAUGHT;
}

bool thaw_is_taught(const struct thaw *t)
{
    return t->builds > 0;
}

static size_t left_fresh(const struct thaw *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->field.n_entries; i++)
        n += t->field.entries[i].trial < 0;
    return n;
}

/* Half as much again as at the last one; or the field is full, or all of its new points are used. */
static bool wants_build(const struct thaw *t)
{
    if (t->builds == 0)
        return t->n_log >= taught_at(t);
    if (t->n_log >= t->built_log + 2 + t->built_log / 2 || t->field.n_rows >= THAW_ROWS_MAX)
        return true;
    return t->n_trials > t->built_trials && left_fresh(t) < FRESH_MIN && t->n_trials - t->built_trials >= FRESH_MIN;
}

/* Room for a trial, a value, and a build with them; nothing else is allocated. *out_work is the caller's. */
static int make_room(struct thaw *t, void **out_work)
{
    struct thaw_trial *trials = array_more(t->trials, t->n_trials, &t->cap_trials, sizeof *trials);
    if (!trials)
        return -ENOMEM;
    t->trials = trials;
    struct thaw_log *log = array_more(t->log, t->n_log, &t->cap_log, sizeof *log);
    if (!log)
        return -ENOMEM;
    t->log = log;
    size_t entries = t->field.n_entries + 1, anew = THAW_POOL + THAW_TRIALS_MAX + 1;
    if (thaw_field_reserve(t, entries > anew ? entries : anew, t->n_log + 2) < 0)
        return -ENOMEM;
    *out_work = malloc(thaw_build_work(t) + 256);
    return *out_work ? 0 : -ENOMEM;
}

static void build_if_due(struct thaw *t, void *work)
{
    if (wants_build(t))
        thaw_build(t, true, work);
}

/* A new trial's columns: its entry was among the points that could be new, or is one more. */
static void enter_trial(struct thaw *t, uint64_t id)
{
    struct thaw_trial *tr = &t->trials[id];
    size_t bytes = t->space->n_dims * sizeof tr->point.x[0];
    for (size_t i = 0; i < t->field.n_entries && tr->entry < 0; i++) {
        struct thaw_entry *e = &t->field.entries[i];
        if (e->trial < 0 && memcmp(&e->point, &tr->point, bytes) == 0)
            tr->entry = (long)i;
    }
    if (tr->entry >= 0) {
        t->field.entries[tr->entry].trial = (long)id;
        return;
    }
    struct thaw_entry e = { .point = tr->point, .place = tr->place, .trial = (long)id };
    tr->entry = (long)t->field.n_entries;
    thaw_field_entry(t, &e);
}

int thaw_add(struct thaw *t, uint64_t id, const struct point *p)
{
    AUTO_FREE void *work = NULL;
    if (id != t->n_trials)
        return 0;
    if (make_room(t, &work) < 0)
        return -ENOMEM;
    t->trials[t->n_trials++] = (struct thaw_trial){
        .point = *p, .place = unit_of(t->space, p), .value = NAN, .cost_1 = NAN, .cost = NAN, .start = NAN, .entry = -1
    };
    if (t->builds > 0)
        enter_trial(t, id);
    build_if_due(t, work);
    return 0;
}

static int step_of(const struct thaw *t, int epoch)
{
    for (int i = 0; i < t->times.n; i++)
        if (t->step_epoch[i] == epoch)
            return i;
    return -1;
}

static double cost_told(const struct thaw *t, const struct told *told)
{
    double cost = t->cfg.joules ? told->joules : told->seconds;
    return cost > 0 ? cost : (double)NAN;
}

static void note_progress(struct thaw *t, const struct told *told)
{
    struct thaw_trial *tr = &t->trials[told->id];
    if (told->epoch <= tr->epoch)
        return;
    tr->epoch = told->epoch;
    tr->value = t->cfg.maximise ? -told->value : told->value;
    tr->cost = cost_told(t, told);
    if (told->start_seconds > 0 && !t->cfg.joules) /* in what an epoch costs in */
        tr->start = told->start_seconds;
    if (tr->epoch_1 == 0) {
        tr->epoch_1 = told->epoch;
        tr->cost_1 = tr->cost;
    }
    while (tr->step < t->times.n && t->step_epoch[tr->step] <= tr->epoch)
        tr->step++;
}

/* A value that was told since the newest build. */
static void take_in(struct thaw *t, size_t at)
{
    struct thaw_log *l = &t->log[at];
    l->score = thaw_score_later(t, at);
    struct thaw_row row = { l->trial, l->step, l->score };
    thaw_field_row(t, &row);
}

/* A value of a step; one that was trained again is as good as the first time. */
static void note_value(struct thaw *t, const struct told *told, int step)
{
    for (size_t i = 0; i < t->n_log; i++)
        if (t->log[i].trial == told->id && t->log[i].step == step)
            return;
    double value = t->cfg.maximise ? -told->value : told->value;
    if (!isfinite(value))
        value = HUGE_VAL;
    t->log[t->n_log++] = (struct thaw_log){ told->id, step, value, NAN };
    if (t->builds > 0)
        take_in(t, t->n_log - 1);
}

int thaw_tell(struct thaw *t, const struct told *told)
{
    AUTO_FREE void *work = NULL;
    if (told->id >= t->n_trials)
        return 0;
    if (make_room(t, &work) < 0)
        return -ENOMEM;
    struct thaw_trial *tr = &t->trials[told->id];
    int step = step_of(t, told->epoch);
    bool trained = told->kind == TOLD_EPOCH || told->kind == TOLD_FINISHED;
    if (trained && told->epoch > 0)
        note_progress(t, told);
    if (trained && step >= 0)
        note_value(t, told, step);
    if (told->kind != TOLD_EPOCH)
        tr->being = THAW_OVER;
    if (!tr->bad && (told->kind == TOLD_FAILED || told->kind == TOLD_INFEASIBLE)) {
        tr->bad = true;
        t->n_bad++;
    }
    build_if_due(t, work);
    return 0;
}

void thaw_pause(struct thaw *t, uint64_t id)
{
    if (id < t->n_trials && t->trials[id].being == THAW_RUNS)
        t->trials[id].being = THAW_PAUSED;
}

void thaw_go_on(struct thaw *t, uint64_t id)
{
    if (id < t->n_trials && t->trials[id].being == THAW_PAUSED)
        t->trials[id].being = THAW_RUNS;
}

/* --- what trials are at ------------------------------------------------------------------------------------------------- */

bool thaw_is_step(const struct thaw *t, int epoch)
{
    return step_of(t, epoch) >= 0;
}

size_t thaw_running(const struct thaw *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_trials; i++)
        n += t->trials[i].being == THAW_RUNS;
    return n;
}

size_t thaw_trials(const struct thaw *t)
{
    return t->n_trials;
}

bool thaw_is_running(const struct thaw *t, uint64_t id)
{
    return id < t->n_trials && t->trials[id].being == THAW_RUNS;
}

bool thaw_first_paused(const struct thaw *t, uint64_t *out_id)
{
    for (size_t i = 0; i < t->n_trials; i++)
        if (t->trials[i].being == THAW_PAUSED) {
            *out_id = i;
            return true;
        }
    return false;
}

int thaw_build_again(struct thaw *t)
{
    size_t later = t->n_trials - t->built_trials;
    AUTO_FREE void *work = malloc(thaw_build_work(t) + 256);
    if (!work || thaw_field_reserve(t, THAW_POOL + THAW_TRIALS_MAX + later + 1, t->n_log + 2) < 0)
        return -ENOMEM;
    thaw_build(t, false, work);
    for (size_t i = t->built_trials; i < t->n_trials; i++)
        enter_trial(t, i);
    for (size_t i = t->built_log; i < t->n_log; i++)
        take_in(t, i);
    return 0;
}
