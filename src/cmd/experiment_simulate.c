/* `experiment --simulate`: configs become points, a trace becomes jobs, and core/experiment_sim plays them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/experiment_parts.h"
#include "cmd/replay_parts.h"
#include "core/experiment_sim.h"
#include "live/plan.h"
#include "live/study.h"

enum { POINTS_MAX = 100000 };

/* What a job trains is the same under each policy: what a policy searches for beside it is the simulation's. */
static int take_v1(void *ctx, struct config *cfg, struct err *e)
{
    (void)ctx;
    free(cfg->policy);
    cfg->policy = strdup("v1");
    return cfg->policy ? 0 : err_sys(e, -ENOMEM, "cannot simulate");
}

static int add_point(struct experiment_study *s, size_t *cap, const struct plan *p, const struct point *pt,
                     struct err *e)
{
    AUTO_JSON json_t *hyper = space_point_json(&p->space, pt);
    struct experiment_point *grown = array_more(s->points, s->n_points, cap, sizeof *grown);
    if (!hyper || !grown)
        return err_sys(e, -ENOMEM, "cannot simulate");
    s->points = grown;
    struct experiment_point *to = &grown[s->n_points++];
    experiment_read_hyper(hyper, &to->lr, &to->batch);
    return 0;
}

/* As the search proposes them, when it hears nothing. */
static int ask_points(struct experiment_study *s, const struct plan *p, struct err *e)
{
    struct search search;
    struct search_cfg cfg = { .seed = (uint64_t)p->cfg.seed,
                              .epochs = (int)p->cfg.epochs,
                              .maximise = config_maximise(&p->cfg),
                              .max_trials = (int)p->cfg.max_trials,
                              .goals = &p->cfg.goals };
    int rc = search_new(&search, p->cfg.algorithm, NULL, &p->space, &cfg, e);
    if (rc < 0)
        return rc;
    int most = study_max_trials(&p->cfg, &search);
    size_t end = most > 0 ? (size_t)most : POINTS_MAX, cap = 0;
    struct proposal pr;
    while (rc == 0 && s->n_points < end && search_ask(&search, true, &pr) == 1) {
        rc = add_point(s, &cap, p, &pr.point, e);
        struct told t = { .id = pr.id, .kind = TOLD_FAILED, .value = NAN, .seconds = NAN, .joules = NAN };
        struct search_answer none;
        if (rc == 0 && search_tell(&search, &t, &none) < 0)
            rc = err_sys(e, -ENOMEM, "cannot simulate");
    }
    s->grid = space_is_listed(&p->space) && s->n_points == space_size(&p->space);
    search_done(&search);
    return rc;
}

static void note_stop(const struct experiment_result *r, size_t job, const struct plan *p)
{
    const char *algorithm = p->cfg.algorithm ? p->cfg.algorithm : search_default(&p->space);
    const char *stop = p->cfg.stop ? p->cfg.stop : search_default_stop(algorithm);
    if (strcmp(stop, "none") != 0)
        cmd_say("job '%s': its stop rule '%s' is not simulated: each trial trains all its %lld epochs",
                r->x.jobs[job].name, stop, (long long)p->cfg.epochs);
}

static int read_study(struct experiment_study *s, const struct experiment_result *r, size_t job,
                      const struct timeline_jobs *recorded, struct err *e)
{
    AUTO_FREE char *config = experiment_config(r, job);
    struct plan p;
    int rc = config ? plan_load(&p, config, NULL, take_v1, NULL, e) : err_sys(e, -ENOMEM, "cannot simulate");
    if (rc < 0)
        return rc;
    s->epochs = (int)p.cfg.epochs;
    s->cores = setting_number(&p.space, &p.requested, KNOB_CORES, NAN);
    s->memory_gb = setting_number(&p.space, &p.requested, KNOB_MEMORY, NAN);
    rc = ask_points(s, &p, e);
    if (rc == 0)
        note_stop(r, job, &p);
    plan_done(&p);
    if (rc == 0)
        rc = experiment_sim_find(s, recorded, r->x.jobs[job].workload, r->x.jobs[job].name, e);
    return rc;
}

static int most_cores(const struct timeline_jobs *recorded)
{
    int most = 0;
    for (size_t i = 0; i < recorded->n; i++)
        for (size_t c = 0; c < recorded->jobs[i].n_cells; c++)
            if (recorded->jobs[i].cells[c].cores > most)
                most = recorded->jobs[i].cells[c].cores;
    return most;
}

static int play_all(struct experiment_result *r, const struct experiment_sim *sim, struct err *e)
{
    double of_jobs[EXPERIMENT_JOBS_MAX];
    int rc = experiment_sim_service(of_jobs, sim, e);
    if (rc < 0)
        return rc;
    r->service_s = isnan(r->x.service_s) ? experiment_mean_service(&r->x, of_jobs) : r->x.service_s;
    experiment_arrive(r->arrivals, &r->x, r->service_s);
    for (size_t p = 0; rc == 0 && p < r->x.n_policies; p++)
        rc = experiment_simulate(r->rows + p * r->n, sim, r->arrivals, r->n, p, p * r->n, e);
    return rc;
}

int experiment_play(struct experiment_result *r, const char *trace, struct err *e)
{
    struct timeline timeline = { 0 };
    struct timeline_jobs recorded = { 0 };
    struct experiment_study studies[EXPERIMENT_JOBS_MAX] = { 0 };
    int rc = replay_read_timeline(&timeline, trace, false, e);
    if (rc == 0 && timeline_gather(&recorded, &timeline) < 0)
        rc = err_sys(e, -ENOMEM, "cannot simulate");
    for (size_t i = 0; rc == 0 && i < r->x.n_jobs; i++)
        rc = read_study(&studies[i], r, i, &recorded, e);
    if (rc == 0)
        rc = experiment_result_room(r, e);
    r->simulated = true;
    r->cores = most_cores(&recorded);
    const struct experiment_sim sim = { .x = &r->x,
                                        .studies = studies,
                                        .recorded = &recorded,
                                        .trial = r->x.offline ? experiment_keep_trial : NULL,
                                        .ctx = &r->trials };
    if (rc == 0)
        rc = play_all(r, &sim, e);
    for (size_t i = 0; i < r->x.n_jobs; i++)
        free(studies[i].points);
    timeline_jobs_done(&recorded);
    timeline_done(&timeline);
    return rc;
}
