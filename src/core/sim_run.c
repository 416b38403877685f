#include "core/sim_run.h"

#include <math.h>

void sim_run_init(struct sim_run *r, const struct sim_stage *stage, const struct sim_job *job, double now_s)
{
    *r = (struct sim_run){ .stage = stage,
                           .job = *job,
                           .alone = true,
                           .at = job->start,
                           .first = 1,
                           .epoch = 1,
                           .now_s = now_s,
                           .wake_s = INFINITY,
                           .death_s = INFINITY,
                           .due_s = INFINITY };
}

bool sim_run_settled(const struct sim_run *r)
{
    const struct sim_stage *g = r->stage;
    return !g->machine || g->policy->settled(g->machine, r->job.trial);
}

/* --- what is under way --- */

static double step_s(const struct sim_run *r)
{
    return r->stage->world->step_s(r->stage->ctx, r) * r->factor;
}

static void begin_stride(struct sim_run *r)
{
    const struct sim_world *w = r->stage->world;
    r->whole = w->whole_epochs && r->step == 0 && !(r->into > 0) && sim_run_settled(r);
    r->upto = r->whole ? r->job.steps : r->step + 1;
    r->left = r->records = r->upto - r->step - r->into;
    r->stride_s = r->now_s;
    r->factor = w->noise ? w->noise(r->stage->ctx, r, r->upto - r->step) : 1;
}

/* One that has something to find out again is told of each step, from where it stands. */
static void go_on(struct sim_run *r)
{
    if (r->upto > 0 && r->whole && !sim_run_settled(r)) {
        double done = r->upto - r->left;
        r->step = (int)floor(done);
        r->into = done - r->step;
        r->upto = 0;
    }
    if (r->training && r->upto == 0)
        begin_stride(r);
}

void sim_run_advance(struct sim_run *r, double t_s)
{
    double passed = t_s > r->now_s ? t_s - r->now_s : 0;
    if (r->training)
        r->left -= passed / step_s(r);
    r->now_s += passed;
}

/* --- the machine is told, and its actions are carried out --- */

static int take(struct sim_run *r, const struct tuner_actions *acts, struct err *e);

static int tell(struct sim_run *r, struct tuner_event ev, struct err *e)
{
    const struct sim_stage *g = r->stage;
    struct tuner_actions acts = { .n = 0 };
    ev.trial = r->job.trial;
    ev.t_s = r->now_s;
    if (ev.kind == EV_TRIAL_STARTED || ev.kind == EV_FAILED) {
        ev.class_key = r->job.class_key;
        ev.family_key = r->job.family_key;
    }
    int rc = g->machine ? g->policy->step(g->machine, &ev, &acts, e) : 0;
    r->wake_s = INFINITY;
    return rc < 0 ? rc : take(r, &acts, e);
}

int sim_run_tell(struct sim_run *r, struct tuner_event ev, struct err *e)
{
    int rc = tell(r, ev, e);
    go_on(r);
    return rc;
}

static int refuse(struct sim_run *r, struct tuner_setting s, bool unexplained, struct err *e)
{
    return tell(
        r, (struct tuner_event){ .kind = EV_FAILED, .setting = s, .infeasible = true, .unexplained = unexplained }, e);
}

/* A newer change replaces one that is on its way. */
static void change(struct sim_run *r, struct tuner_setting to)
{
    const struct sim_stage *g = r->stage;
    int asked = to.hot;
    to.hot = g->grant ? g->grant(g->place, r, asked) : asked;
    r->instead = to.hot != asked;
    r->asked = to;
    if (g->world->apply_s > 0)
        r->due_s = r->now_s + g->world->apply_s;
    else
        r->at = to;
}

/* What came of a change, where that has to be told. */
static int answer(struct sim_run *r, struct err *e)
{
    bool instead = r->instead;
    r->instead = false;
    r->due_s = INFINITY;
    r->at = r->asked;
    return tell(r, (struct tuner_event){ .kind = instead ? EV_INSTEAD : EV_APPLIED, .setting = r->at }, e);
}

static int take(struct sim_run *r, const struct tuner_actions *acts, struct err *e)
{
    const struct sim_stage *g = r->stage;
    for (size_t i = 0; i < acts->n; i++) {
        const struct tuner_action *a = &acts->list[i];
        if (a->trial != r->job.trial)
            continue;
        if (g->world->told)
            g->world->told(g->ctx, r, a);
        r->settles += a->kind == ACT_SETTLE;
        r->relaunch |= a->kind == ACT_RELAUNCH;
        if (a->kind == ACT_WAKE)
            r->wake_s = a->t_s;
        if (a->kind == ACT_PROFILE) {
            r->profiled = true;
            r->profile_from_s = a->t_s;
            r->profile_to_s = a->until_s;
        }
        if (a->kind == ACT_APPLY && !g->world->has(g->ctx, r, a->setting))
            return refuse(r, a->setting, false, e);
        if (a->kind == ACT_APPLY)
            change(r, a->setting);
    }
    return r->instead && !isfinite(r->due_s) ? answer(r, e) : 0;
}

int sim_run_take(struct sim_run *r, const struct tuner_actions *acts, struct err *e)
{
    int rc = take(r, acts, e);
    go_on(r);
    return rc;
}

/* --- launches --- */

int sim_run_launch(struct sim_run *r, struct err *e)
{
    const struct sim_stage *g = r->stage;
    const struct tuner_ask ask = { .trial = r->job.trial,
                                   .class_key = r->job.class_key,
                                   .family_key = r->job.family_key,
                                   .start = r->job.start,
                                   .n_hot = r->n_hot,
                                   .alone = r->alone };
    char reason[TUNER_REASON_MAX] = "";
    r->at = r->job.start;
    int rc = g->machine ? g->policy->launch(g->machine, &ask, &r->at, reason, e) : 0;
    if (rc == 0 && g->world->launched)
        g->world->launched(g->ctx, r, reason);
    r->training = r->relaunch = r->instead = r->profiled = false;
    r->launches++;
    r->first = r->epoch;
    r->step = r->upto = 0;
    r->into = 0;
    r->began_s = r->now_s;
    r->startup_s = g->world->startup_s(g->ctx, r);
    r->ready_s = r->now_s + r->startup_s;
    r->death_s = r->due_s = r->wake_s = INFINITY;
    return rc;
}

static int start(struct sim_run *r, struct err *e)
{
    const struct sim_stage *g = r->stage;
    r->now_s = r->began_s = r->epoch_s = r->ready_s;
    if (!g->world->has(g->ctx, r, r->at)) {
        r->failed++;
        int rc = refuse(r, r->at, g->world->unexplained, e);
        return rc < 0 ? rc : SIM_REFUSED;
    }
    r->training = true;
    if (g->world->dies_s)
        r->death_s = r->now_s + g->world->dies_s(g->ctx, r, &r->death);
    int rc = sim_run_tell(r,
                          (struct tuner_event){ .kind = EV_TRIAL_STARTED,
                                                .setting = r->at,
                                                .epoch = r->epoch,
                                                .epochs = r->job.epochs,
                                                .n_hot = r->n_hot,
                                                .alone = r->alone,
                                                .startup_s = r->startup_s },
                          e);
    return rc < 0 ? rc : SIM_STARTED;
}

int sim_run_end(struct sim_run *r, enum tuner_event_kind how, struct err *e)
{
    r->training = false;
    return tell(r, (struct tuner_event){ .kind = how }, e);
}

/* The attempt is lost; where it was for its setting, the machine is told of that as of a launch. */
static int die(struct sim_run *r, struct err *e)
{
    r->failed++;
    int rc = sim_run_end(r, EV_TRIAL_LOST, e);
    if (rc == 0 && r->death == OUTCOME_REFUSED)
        rc = refuse(r, r->at, r->stage->world->unexplained, e);
    return rc < 0 ? rc : SIM_DIED;
}

/* --- time goes on --- */

static int end_epoch(struct sim_run *r, struct err *e)
{
    int rc = tell(r,
                  (struct tuner_event){
                      .kind = EV_EPOCH, .epoch = r->epoch, .seconds = r->now_s - r->epoch_s, .records = r->job.steps },
                  e);
    r->epoch++;
    r->step = 0;
    r->epoch_s = r->now_s;
    return rc < 0 ? rc : SIM_EPOCH;
}

/* A step, and what its profile says. */
static int tell_step(struct sim_run *r, struct err *e)
{
    const struct sim_stage *g = r->stage;
    struct tuner_event verdict = { .kind = EV_VERDICT };
    int rc = tell(r,
                  (struct tuner_event){ .kind = EV_ITERATION,
                                        .epoch = r->epoch,
                                        .seconds = r->now_s - r->stride_s,
                                        .records = r->records,
                                        .epoch_records = r->job.steps },
                  e);
    if (rc < 0 || !r->profiled || !g->world->verdict || !g->world->verdict(g->ctx, r, &verdict))
        return rc;
    r->profiled = false;
    return tell(r, verdict, e);
}

/* What was under way has ended. A whole epoch is told by its end alone. */
static int end_stride(struct sim_run *r, struct err *e)
{
    r->step = r->upto;
    r->upto = 0;
    r->into = 0;
    int news = SIM_STEP, rc = r->whole ? 0 : tell_step(r, e);
    if (rc < 0)
        return rc;
    if (r->step == r->job.steps && !r->relaunch)
        news = end_epoch(r, e);
    go_on(r);
    return news;
}

/* When the step, or whole epoch, that is under way will end. */
static double stride_end_s(const struct sim_run *r)
{
    return r->now_s + r->left * step_s(r);
}

/* That, or what comes before it. */
static double event_s(const struct sim_run *r, double end_s)
{
    double wake_s = r->whole ? INFINITY : r->wake_s; /* nothing is due in a trial that has settled */
    double at = fmin(end_s, fmin(r->death_s, fmin(r->due_s, wake_s)));
    return at > r->now_s ? at : r->now_s;
}

double sim_run_next_s(const struct sim_run *r)
{
    return r->training ? event_s(r, stride_end_s(r)) : r->ready_s;
}

int sim_run_next(struct sim_run *r, struct err *e)
{
    if (!r->training)
        return start(r, e);
    double end = stride_end_s(r), at = event_s(r, end);
    if (r->death_s <= at) {
        sim_run_advance(r, r->death_s);
        return die(r, e);
    }
    if (r->due_s > at && at >= end) {
        r->now_s = end;
        return end_stride(r, e);
    }
    sim_run_advance(r, at);
    int rc = r->due_s <= at ? answer(r, e) : tell(r, (struct tuner_event){ .kind = EV_TICK }, e);
    go_on(r);
    return rc < 0 ? rc : SIM_TICK;
}

int sim_run_go(struct sim_run *r, struct err *e)
{
    int news = sim_run_next(r, e);
    bool leaves = news >= SIM_STEP && news != SIM_DIED && r->relaunch;
    int rc = news < 0 ? news : leaves ? sim_run_end(r, EV_TRIAL_LOST, e) : 0;
    if (rc == 0 && (leaves || news == SIM_REFUSED || news == SIM_DIED))
        rc = sim_run_launch(r, e);
    return rc < 0 ? rc : r->epoch <= r->job.epochs;
}

int sim_run_play(struct sim_run *r, struct err *e)
{
    int rc = sim_run_launch(r, e);
    for (int goes = 1; rc == 0 && goes > 0;) {
        goes = sim_run_go(r, e);
        rc = goes < 0 ? goes : 0;
    }
    return rc < 0 ? rc : sim_run_end(r, EV_TRIAL_ENDED, e);
}
