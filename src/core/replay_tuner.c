/* The policy `pipetune`: the live tuner over a recorded timeline, one trial after the other. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "core/recorded.h"

enum { KEY_MAX = 512 };

/* One workload: jobs that share a model and a dataset, and so a tuner. */
struct workload {
    struct sim_stage stage;
    struct recorded at;
    const struct replay_options *o;
    int trial;
    double now_s;
};

/* --- jobs --- */

static int run_job(struct workload *w, struct replay_outcome *out, struct err *e)
{
    char class_key[KEY_MAX], family_key[KEY_MAX];
    int cell = replay_start_cell(w->at.job, w->o->start), rc = 0;
    *out = (struct replay_outcome){ .time_s = NAN };
    if (cell < 0)
        return 0;
    (void)snprintf(family_key, sizeof family_key, "%s/%s", w->at.job->model, w->at.job->dataset);
    char batch[NUM_TEXT_MAX];
    (void)snprintf(class_key, sizeof class_key, "%.400s/%s", family_key, num_print(w->at.job->batch, batch));
    struct sim_job job = { .class_key = class_key,
                           .family_key = family_key,
                           .epochs = w->o->epochs,
                           .steps = RECORDED_STEPS,
                           .start = recorded_setting(&w->at, &w->at.job->cells[cell]) };
    struct sim_run r = { 0 };
    double begin = w->now_s;
    for (int i = 0; rc == 0 && i < w->o->repeat; i++) {
        job.trial = ++w->trial;
        sim_run_init(&r, &w->stage, &job, w->now_s);
        rc = sim_run_play(&r, e);
        w->now_s = r.now_s;
    }
    *out =
        (struct replay_outcome){ .time_s = w->now_s - begin,
                                 .cores = (int)w->at.space.cores[r.at.hot],
                                 .memory_gb = isnan(w->at.job->cells[cell].memory_gb) ? (double)NAN
                                                                                      : w->at.space.memory[r.at.cold] };
    return rc;
}

int replay_pipetune(const struct timeline_jobs *jobs, const struct replay_options *o, struct replay_outcome *out,
                    struct err *e)
{
    const struct policy *policy = policy_find("pipetune");
    int rc = 0;
    for (size_t first = 0, n = 1; rc == 0 && first < jobs->n; first += n, n = 1) {
        while (first + n < jobs->n && recorded_same_workload(&jobs->jobs[first], &jobs->jobs[first + n]))
            n++;
        struct workload w = { .stage = { .policy = policy, .world = &recorded_world, .ctx = &w.at },
                              .at = { .probe = o->probe },
                              .o = o };
        recorded_space(&w.at.space, &jobs->jobs[first], n);
        w.stage.machine = policy->create(&w.at.space, &recorded_tuner);
        rc = w.stage.machine ? 0 : err_sys(e, -ENOMEM, "replay");
        for (size_t j = 0; rc == 0 && j < n; j++) {
            w.at.job = &jobs->jobs[first + j];
            rc = run_job(&w, &out[first + j], e);
        }
        policy->destroy(w.stage.machine);
    }
    return rc;
}
