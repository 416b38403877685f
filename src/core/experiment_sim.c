#include "core/experiment_sim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/own.h"
#include "base/suggest.h"
#include "core/recorded.h"
#include "core/rng.h"

enum { KEY_MAX = 512, WORKLOADS_SHOWN = 16 };

/* --- which runs are meant --- */

static void put_workload(struct buf *b, const struct timeline_job *job)
{
    buf_printf(b, "%s/%s", job->model, job->dataset);
}

static size_t workload_size(const struct timeline_jobs *recorded, size_t first)
{
    size_t n = 1;
    while (first + n < recorded->n && recorded_same_workload(&recorded->jobs[first], &recorded->jobs[first + n]))
        n++;
    return n;
}

static int no_workload(const struct timeline_jobs *recorded, const char *workload, const char *job, struct err *e)
{
    AUTO_BUF struct buf all = BUF_INIT;
    struct buf names[WORKLOADS_SHOWN] = { 0 };
    const char *texts[WORKLOADS_SHOWN];
    size_t n = 0;
    for (size_t i = 0; i < recorded->n && n < WORKLOADS_SHOWN; i += workload_size(recorded, i), n++) {
        put_workload(&names[n], &recorded->jobs[i]);
        texts[n] = buf_text(&names[n]);
        buf_printf(&all, "%s%s", n ? ", " : "", texts[n]);
    }
    const char *near = workload ? suggest_nearest(workload, texts, n) : NULL;
    int rc;
    if (near)
        rc = err_set(e, -EINVAL, "job '%s': the trace has no workload '%s': did you mean '%s'?", job, workload, near);
    else if (workload)
        rc = err_set(e, -EINVAL, "job '%s': the trace has no workload '%s': it has %s", job, workload, buf_text(&all));
    else
        rc = err_set(e, -EINVAL, "job '%s' needs a 'workload': the trace has %s", job, buf_text(&all));
    for (size_t i = 0; i < n; i++)
        buf_done(&names[i]);
    return rc;
}

static bool is_workload(const struct timeline_job *job, const char *workload)
{
    AUTO_BUF struct buf name = BUF_INIT;
    put_workload(&name, job);
    return strcmp(buf_text(&name), workload) == 0;
}

/* The recorded job of a batch; NULL: there is none. */
static const struct timeline_job *job_of_batch(const struct timeline_jobs *recorded, const struct experiment_study *s,
                                               double batch)
{
    for (size_t i = s->first; i < s->first + s->n_jobs; i++)
        if (recorded->jobs[i].batch == batch || (isnan(batch) && s->n_jobs == 1))
            return &recorded->jobs[i];
    return NULL;
}

static int check_points(const struct experiment_study *s, const struct timeline_jobs *recorded, const char *job,
                        struct err *e)
{
    for (size_t i = 0; i < s->n_points; i++) {
        const struct timeline_job *found = job_of_batch(recorded, s, s->points[i].batch);
        if (found && replay_start_cell(found, REPLAY_FIRST) >= 0)
            continue;
        AUTO_BUF struct buf all = BUF_INIT;
        for (size_t k = s->first; k < s->first + s->n_jobs; k++) {
            buf_puts(&all, k > s->first ? ", " : "");
            num_put(&all, recorded->jobs[k].batch);
        }
        return err_set(e, -EINVAL,
                       found ? "job '%s': no run with batch %g came to its end in the trace, which has batches %s"
                             : "job '%s': batch %g was not recorded: the trace has %s",
                       job, s->points[i].batch, buf_text(&all));
    }
    return 0;
}

int experiment_sim_find(struct experiment_study *out, const struct timeline_jobs *recorded, const char *workload,
                        const char *job, struct err *e)
{
    for (size_t i = 0; i < recorded->n; i += workload_size(recorded, i)) {
        size_t n = workload_size(recorded, i);
        if (workload ? !is_workload(&recorded->jobs[i], workload) : n < recorded->n)
            continue;
        out->first = i;
        out->n_jobs = n;
        return check_points(out, recorded, job, e);
    }
    return no_workload(recorded, workload, job, e);
}

/* --- one trial --- */

/* What is kept per workload from study to study. */
struct workload {
    struct sim_stage stage;
    struct recorded at;
    bool begun;
};

struct player {
    const struct experiment_sim *sim;
    const struct policy *policy;
    struct workload of[EXPERIMENT_JOBS_MAX]; /* by the experiment's job; jobs of one workload use the first one's */
    struct rng rng;
    double now_s;
    int trial;
};

static void stop_players(struct player *p)
{
    for (size_t i = 0; i < EXPERIMENT_JOBS_MAX; i++)
        if (p->of[i].stage.machine)
            p->policy->destroy(p->of[i].stage.machine);
}

static int begin_workload(struct player *p, size_t job, struct workload **out, struct err *e)
{
    const struct experiment_study *s = p->sim->studies;
    size_t first = 0;
    while (s[first].first != s[job].first)
        first++;
    struct workload *w = *out = &p->of[first];
    if (w->begun)
        return 0;
    w->stage = (struct sim_stage){ .policy = p->policy, .world = &recorded_world, .ctx = &w->at };
    recorded_space(&w->at.space, &p->sim->recorded->jobs[s[job].first], s[job].n_jobs);
    w->begun = true;
    if (p->policy->create && !(w->stage.machine = p->policy->create(&w->at.space, &recorded_tuner)))
        return err_sys(e, -ENOMEM, "cannot simulate");
    return 0;
}

/* Watts while training at a setting, of the epochs of which joules were recorded; NAN: there are none. */
static double power_w(const struct timeline_cell *c)
{
    double joules = 0, seconds = 0;
    for (size_t i = 0; i < c->n_epochs; i++) {
        if (!isfinite(c->epochs[i].energy_j) || !isfinite(c->epochs[i].duration_s))
            continue;
        joules += c->epochs[i].energy_j;
        seconds += c->epochs[i].duration_s;
    }
    return seconds > 0 ? joules / seconds : (double)NAN;
}

/* The recorded error of a batch after so many epochs, or as many as there are; of the first setting that has one, so that no policy has
 * a better one than the others. */
static double error_of(const struct timeline_job *job, int epochs)
{
    for (size_t i = 0; i < job->n_cells; i++) {
        const struct timeline_cell *c = &job->cells[i];
        size_t at = c->n_epochs < (size_t)epochs ? c->n_epochs : (size_t)epochs;
        if (c->feasible && at > 0 && isfinite(c->epochs[at - 1].accuracy))
            return 1 - c->epochs[at - 1].accuracy;
    }
    return NAN;
}

/* The feasible cell that is nearest below what was written; the first one where there is none, or nothing was. */
static const struct timeline_cell *start_cell(const struct timeline_job *job, const struct experiment_study *s)
{
    const struct timeline_cell *found = NULL;
    for (size_t i = 0; i < job->n_cells; i++) {
        const struct timeline_cell *c = &job->cells[i];
        bool fits = c->feasible && c->cores <= s->cores &&
                    (isnan(s->memory_gb) || isnan(c->memory_gb) || c->memory_gb <= s->memory_gb);
        if (fits) /* ascending: cores, then memory */
            found = c;
    }
    return found ? found : &job->cells[replay_start_cell(job, REPLAY_FIRST)];
}

/* A trial as it is played: its joules are those of the settings that it trained under. */
static int play(struct player *p, struct workload *w, const struct sim_job *job, struct experiment_trial *t,
                int *out_cores, struct err *e)
{
    struct sim_run r = { 0 };
    sim_run_init(&r, &w->stage, job, p->now_s);
    t->joules = 0;
    int rc = sim_run_launch(&r, e);
    for (int goes = 1; rc == 0 && goes > 0;) {
        const struct timeline_cell *cell = r.training ? recorded_cell(&w->at, r.at) : NULL;
        double from_s = r.now_s;
        goes = sim_run_go(&r, e);
        if (cell)
            t->joules += power_w(cell) * (r.now_s - from_s);
        rc = goes < 0 ? goes : 0;
    }
    if (rc == 0)
        rc = sim_run_end(&r, EV_TRIAL_ENDED, e);
    t->seconds = r.now_s - p->now_s;
    p->now_s = r.now_s;
    *out_cores = (int)w->at.space.cores[r.at.hot];
    return rc;
}

static int play_point(struct player *p, struct workload *w, const struct experiment_study *s,
                      const struct experiment_point *pt, const struct timeline_cell *start, struct experiment_trial *t,
                      int *out_cores, struct err *e)
{
    char class_key[KEY_MAX], family_key[KEY_MAX], batch[NUM_TEXT_MAX];
    (void)snprintf(family_key, sizeof family_key, "%s/%s", w->at.job->model, w->at.job->dataset);
    (void)snprintf(class_key, sizeof class_key, "%.400s/%s", family_key, num_print(w->at.job->batch, batch));
    struct sim_job job = { .trial = ++p->trial,
                           .class_key = class_key,
                           .family_key = family_key,
                           .epochs = s->epochs,
                           .steps = RECORDED_STEPS,
                           .start = recorded_setting(&w->at, start) };
    t->number++;
    t->epochs = s->epochs;
    t->lr = pt->lr;
    t->batch = pt->batch;
    t->error = error_of(w->at.job, s->epochs);
    return play(p, w, &job, t, out_cores, e);
}

/* --- one study --- */

/* By the error, and for a policy that searches for settings, too, by accuracy over time. Without an error the earlier one stays. */
static bool is_better(const struct player *p, const struct experiment_trial *t, const struct experiment_row *best)
{
    if (best->trials == 0)
        return true;
    if (p->policy->joins_search && isfinite(t->error))
        return (1 - t->error) / t->seconds > (1 - best->error) / best->training_s;
    if (p->policy->joins_search)
        return t->seconds < best->training_s;
    return t->error < best->error;
}

static int end_trial(struct player *p, struct experiment_row *row, const struct experiment_trial *t, int cores,
                     struct err *e)
{
    if (is_better(p, t, row)) {
        row->training_s = t->seconds;
        row->training_j = t->joules;
        row->error = t->error;
        row->lr = t->lr;
        row->batch = t->batch;
        row->epochs = t->epochs;
        row->cores = cores;
    }
    row->trials++;
    row->tuning_j += t->joules;
    int rc = p->sim->trial ? p->sim->trial(p->sim->ctx, t) : 0;
    return rc < 0 ? err_sys(e, rc, "cannot simulate") : 0;
}

/* The cells that a point is trained at: the start cell, all feasible ones, or one that is drawn. */
static bool takes_cell(const struct player *p, const struct timeline_job *job, const struct experiment_study *s,
                       const struct timeline_cell *c, const struct timeline_cell *drawn)
{
    if (!p->policy->joins_search)
        return c == start_cell(job, s);
    return c->feasible && (s->grid || c == drawn);
}

static const struct timeline_cell *draw_cell(const struct timeline_job *job, struct rng *r)
{
    size_t feasible = 0;
    for (size_t i = 0; i < job->n_cells; i++)
        feasible += job->cells[i].feasible;
    uint64_t nth = rng_below(r, feasible);
    for (size_t i = 0; i < job->n_cells; i++)
        if (job->cells[i].feasible && nth-- == 0)
            return &job->cells[i];
    return NULL;
}

static int play_study(struct player *p, struct experiment_row *row, size_t row_number, struct err *e)
{
    const struct experiment_study *s = &p->sim->studies[row->job];
    struct experiment_trial t = { .row = row_number };
    struct workload *w = NULL;
    int rc = begin_workload(p, row->job, &w, e);
    for (size_t i = 0; rc == 0 && i < s->n_points; i++) {
        const struct timeline_job *job = job_of_batch(p->sim->recorded, s, s->points[i].batch);
        const struct timeline_cell *drawn = p->policy->joins_search && !s->grid ? draw_cell(job, &p->rng) : NULL;
        w->at.job = job;
        for (size_t c = 0; rc == 0 && c < job->n_cells; c++) {
            int cores = 0;
            if (!takes_cell(p, job, s, &job->cells[c], drawn))
                continue;
            rc = play_point(p, w, s, &s->points[i], &job->cells[c], &t, &cores, e);
            if (rc == 0)
                rc = end_trial(p, row, &t, cores, e);
        }
    }
    return rc;
}

int experiment_simulate(struct experiment_row *rows, const struct experiment_sim *sim,
                        const struct experiment_arrival *arrivals, size_t n, size_t policy, size_t first_row,
                        struct err *e)
{
    struct player *p = calloc(1, sizeof *p);
    if (!p)
        return err_sys(e, -ENOMEM, "cannot simulate");
    p->sim = sim;
    p->policy = sim->x->policies[policy];
    p->rng = rng_seeded(rng_mix((uint64_t)sim->x->seed));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct experiment_row *row = &rows[i];
        *row = (struct experiment_row){ .policy = policy,
                                        .job = arrivals[i].job,
                                        .number = (int)i + 1,
                                        .arrived_s = arrivals[i].at_s,
                                        .coverage = NAN };
        p->now_s = row->started_s = fmax(p->now_s, row->arrived_s);
        rc = play_study(p, row, first_row + i, e);
        row->ended_s = p->now_s;
        row->source = isfinite(row->tuning_j) ? "recorded" : NULL;
    }
    stop_players(p);
    free(p);
    return rc;
}

int experiment_sim_service(double *out, const struct experiment_sim *sim, struct err *e)
{
    struct experiment_sim quiet = *sim;
    quiet.trial = NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sim->x->n_jobs; i++) {
        struct experiment_row row;
        rc = experiment_simulate(&row, &quiet, &(struct experiment_arrival){ .job = i }, 1, 0, 0, e);
        out[i] = rc == 0 ? row.ended_s : 0;
    }
    return rc;
}
