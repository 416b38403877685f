/* The policy `pipetune`: the live tuner over a recorded timeline. An epoch counts as 100 equal iterations; an iteration in which
 * the setting changes goes on at the new setting's speed from where it stands. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/replay.h"
#include "core/tuner.h"

enum { ITERATIONS = 100, KEY_MAX = 512 };

/* One workload: jobs that share a model and a dataset, and so a tuner. */
struct workload {
    struct tuner *tuner;
    struct tuner_space space;
    const struct replay_options *o;
    const struct timeline_job *job; /* the one that runs */
    char class_key[KEY_MAX], family_key[KEY_MAX];
    int trial;
    double now_s;
    /* the trial that runs */
    struct tuner_setting at;
    double wake_s;
    int first;     /* epoch of this launch */
    bool relaunch; /* it was asked for */
    bool at_end;   /* of the epoch */
    struct err *e;
};

static void insert_sorted(double *list, int *n, int cap, double x)
{
    int at = 0;
    while (at < *n && list[at] < x)
        at++;
    if ((at < *n && list[at] == x) || *n == cap)
        return;
    memmove(&list[at + 1], &list[at], (size_t)(*n - at) * sizeof *list);
    list[at] = x;
    ++*n;
}

static bool same_workload(const struct timeline_job *a, const struct timeline_job *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->dataset, b->dataset) == 0;
}

/* Where none was recorded all cells have as much: the tuner wants a number. */
static double memory_of(const struct timeline_cell *c)
{
    return isnan(c->memory_gb) ? 0 : c->memory_gb;
}

static void space_of(struct tuner_space *s, const struct timeline_job *jobs, size_t n)
{
    *s = (struct tuner_space){ 0 };
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < jobs[j].n_cells; i++) {
            insert_sorted(s->cores, &s->n_hot, TUNER_MAX_HOT, jobs[j].cells[i].cores);
            insert_sorted(s->memory, &s->n_cold, TUNER_MAX_COLD, memory_of(&jobs[j].cells[i]));
        }
    }
}

/* NULL: nothing feasible was recorded there. */
static const struct timeline_cell *cell_at(const struct workload *w, struct tuner_setting s)
{
    for (size_t i = 0; i < w->job->n_cells; i++) {
        const struct timeline_cell *c = &w->job->cells[i];
        if (c->cores == (int)w->space.cores[s.hot] && memory_of(c) == w->space.memory[s.cold])
            return c->feasible ? c : NULL;
    }
    return NULL;
}

static struct tuner_setting setting_of(const struct workload *w, const struct timeline_cell *c)
{
    struct tuner_setting s = { 0, 0 };
    while (w->space.cores[s.hot] < c->cores)
        s.hot++;
    while (w->space.memory[s.cold] < memory_of(c))
        s.cold++;
    return s;
}

/* Seconds of one iteration in this epoch. */
static double iteration_s(const struct workload *w, int epoch)
{
    const struct timeline_cell *c = cell_at(w, w->at);
    size_t recorded = (size_t)epoch - 1;
    if (epoch == w->first)
        return c->first_s / ITERATIONS;
    if (w->o->probe == REPLAY_RECORDED && !tuner_settled(w->tuner, w->trial) && recorded < c->n_epochs)
        return c->epochs[recorded].duration_s / ITERATIONS;
    return c->steady_s / ITERATIONS;
}

/* Gives the tuner an event and does what it says. A change to a setting that was never recorded is refused, as a machine that
 * lacks it would; what it said beside that is void. */
static int send(struct workload *w, struct tuner_event ev)
{
    struct tuner_actions acts;
    ev.trial = w->trial;
    ev.t_s = w->now_s;
    ev.class_key = w->class_key;
    ev.family_key = w->family_key;
    int rc = tuner_step(w->tuner, &ev, &acts, w->e);
    w->wake_s = INFINITY;
    for (size_t i = 0; rc == 0 && i < acts.n; i++) {
        const struct tuner_action *a = &acts.list[i];
        if (a->kind == ACT_APPLY && !cell_at(w, a->setting))
            return send(w, (struct tuner_event){ .kind = EV_FAILED, .setting = a->setting, .infeasible = true });
        if (a->kind == ACT_APPLY)
            w->at = a->setting;
        else if (a->kind == ACT_WAKE)
            w->wake_s = a->t_s;
        else if (a->kind == ACT_RELAUNCH)
            w->relaunch = true;
    }
    return rc;
}

/* One iteration, with the ticks that the tuner asked for on the way. */
static int run_iteration(struct workload *w, int epoch)
{
    double begin = w->now_s, left = 1.0; /* of the iteration */
    for (;;) {
        double whole = iteration_s(w, epoch);
        double end = w->now_s + left * whole;
        if (w->wake_s >= end) {
            w->now_s = end;
            return send(w, (struct tuner_event){ .kind = EV_ITERATION,
                                                 .epoch = epoch,
                                                 .seconds = end - begin,
                                                 .records = 1,
                                                 .epoch_records = ITERATIONS });
        }
        double step = w->wake_s > w->now_s ? w->wake_s - w->now_s : 0;
        left -= step / whole;
        w->now_s += step;
        int rc = send(w, (struct tuner_event){ .kind = EV_TICK });
        if (rc < 0)
            return rc;
    }
}

static int run_epoch(struct workload *w, int epoch)
{
    double begin = w->now_s;
    int rc = 0;
    w->at_end = false;
    if (tuner_settled(w->tuner, w->trial)) /* nothing will change within it: one step */
        w->now_s += ITERATIONS * iteration_s(w, epoch);
    else
        for (int i = 0; rc == 0 && !w->relaunch && i < ITERATIONS; i++)
            rc = run_iteration(w, epoch);
    if (rc < 0 || w->relaunch)
        return rc;
    w->at_end = true;
    return send(w, (struct tuner_event){
                       .kind = EV_EPOCH, .epoch = epoch, .seconds = w->now_s - begin, .records = ITERATIONS });
}

/* Launches until the setting can be had; each launch costs a start-up. */
static int launch(struct workload *w, struct tuner_setting start)
{
    char reason[TUNER_REASON_MAX];
    for (;;) {
        int rc = tuner_launch(w->tuner,
                              &(struct tuner_ask){ .trial = w->trial,
                                                   .class_key = w->class_key,
                                                   .family_key = w->family_key,
                                                   .start = start,
                                                   .alone = true },
                              &w->at, reason, w->e);
        w->now_s += w->job->startup_s;
        if (rc < 0 || cell_at(w, w->at))
            return rc;
        /* A timeline tells that a run failed, or has none; never why. */
        rc = send(w,
                  (struct tuner_event){ .kind = EV_FAILED, .setting = w->at, .infeasible = true, .unexplained = true });
        if (rc < 0)
            return rc;
    }
}

static int start_attempt(struct workload *w, struct tuner_setting start, int epoch)
{
    int rc = launch(w, start);
    w->first = epoch;
    w->relaunch = false;
    return rc < 0 ? rc
                  : send(w, (struct tuner_event){ .kind = EV_TRIAL_STARTED,
                                                  .setting = w->at,
                                                  .epoch = epoch,
                                                  .epochs = w->o->epochs,
                                                  .alone = true,
                                                  .startup_s = w->job->startup_s });
}

/* A relaunch goes on from the checkpoint that the newest epoch ended with: what was done of the next one is lost. */
static int run_trial(struct workload *w, struct tuner_setting start)
{
    w->trial++;
    w->wake_s = INFINITY;
    int rc = start_attempt(w, start, 1);
    for (int epoch = 1; rc == 0 && epoch <= w->o->epochs;) {
        rc = run_epoch(w, epoch);
        if (rc == 0 && w->at_end)
            epoch++;
        if (rc < 0 || !w->relaunch)
            continue;
        rc = send(w, (struct tuner_event){ .kind = EV_TRIAL_LOST });
        if (rc == 0)
            rc = start_attempt(w, start, epoch);
    }
    return rc < 0 ? rc : send(w, (struct tuner_event){ .kind = EV_TRIAL_ENDED });
}

static int run_job(struct workload *w, struct replay_outcome *out)
{
    int start = replay_start_cell(w->job, w->o->start);
    *out = (struct replay_outcome){ .time_s = NAN };
    if (start < 0)
        return 0;
    (void)snprintf(w->family_key, sizeof w->family_key, "%s/%s", w->job->model, w->job->dataset);
    (void)snprintf(w->class_key, sizeof w->class_key, "%.400s/%.17g", w->family_key, w->job->batch);
    double begin = w->now_s;
    int rc = 0;
    for (int i = 0; rc == 0 && i < w->o->repeat; i++)
        rc = run_trial(w, setting_of(w, &w->job->cells[start]));
    bool recorded = !isnan(w->job->cells[start].memory_gb);
    *out = (struct replay_outcome){ .time_s = w->now_s - begin,
                                    .cores = (int)w->space.cores[w->at.hot],
                                    .memory_gb = recorded ? w->space.memory[w->at.cold] : (double)NAN };
    return rc;
}

int replay_pipetune(const struct timeline_jobs *jobs, const struct replay_options *o, struct replay_outcome *out,
                    struct err *e)
{
    static const struct tuner_cfg cfg = {
        .window_s = 3, .probe_budget = 0.10, .tie_margin = 0.01, .noise_floor = 0.01
    };
    int rc = 0;
    for (size_t first = 0, n = 1; rc == 0 && first < jobs->n; first += n, n = 1) {
        while (first + n < jobs->n && same_workload(&jobs->jobs[first], &jobs->jobs[first + n]))
            n++;
        struct workload w = { .o = o, .e = e };
        space_of(&w.space, &jobs->jobs[first], n);
        w.tuner = tuner_new(&w.space, &cfg);
        rc = w.tuner ? 0 : err_sys(e, -ENOMEM, "replay");
        for (size_t j = 0; rc == 0 && j < n; j++) {
            w.job = &jobs->jobs[first + j];
            rc = run_job(&w, &out[first + j]);
        }
        tuner_free(w.tuner);
    }
    return rc;
}
