#include "tests/played.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

const struct tuner_cfg played_cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

static double startup_s(void *ctx, struct sim_run *r)
{
    const struct played *p = ctx;
    (void)r;
    return p->startup_s;
}

static void launched(void *ctx, const struct sim_run *r, const char *reason)
{
    struct played *p = ctx;
    p->len += (size_t)snprintf(p->story + p->len, sizeof p->story - p->len, "%.1f launch %d, %d: %s\n", r->now_s,
                               r->at.hot, r->at.cold, reason);
    assert_true(p->len < sizeof p->story);
}

static void told(void *ctx, const struct sim_run *r, const struct tuner_action *a)
{
    struct played *p = ctx;
    (void)r;
    p->len += (size_t)snprintf(p->story + p->len, sizeof p->story - p->len, "%.3f %d %d: %d %d %s\n", a->t_s, a->trial,
                               a->kind, a->setting.hot, a->setting.cold, a->reason);
    assert_true(p->len < sizeof p->story);
    p->kinds[a->kind]++;
}

void played_init(struct played *p, const struct tuner_space *space, const struct sim_world *world, const void *what)
{
    *p = (struct played){ .what = what, .t = tuner_new(space, &played_cfg), .world = *world };
    assert_non_null(p->t);
    p->world.startup_s = startup_s;
    p->world.launched = launched;
    p->world.told = told;
    p->stage = (struct sim_stage){ .policy = policy_find("pipetune"), .machine = p->t, .world = &p->world, .ctx = p };
    p->job = (struct sim_job){ .trial = 1, .class_key = "class", .epochs = 10, .steps = 100 };
}

void played_done(struct played *p)
{
    tuner_free(p->t);
}

static void check(const struct played *p, int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s\n%s", e->text, p->story);
}

struct tuner_setting played_ask(struct played *p)
{
    struct err e;
    struct sim_run r;
    sim_run_init(&r, &p->stage, &p->job, p->run.now_s);
    r.n_hot = p->n_hot;
    r.alone = !p->packed;
    check(p, sim_run_launch(&r, &e), &e);
    return r.at;
}

static void launch(struct played *p)
{
    struct err e;
    int news;
    do {
        check(p, sim_run_launch(&p->run, &e), &e);
        check(p, news = sim_run_next(&p->run, &e), &e);
    } while (news != SIM_STARTED);
}

void played_begin(struct played *p)
{
    sim_run_init(&p->run, &p->stage, &p->job, p->run.now_s);
    p->run.n_hot = p->n_hot;
    p->run.alone = !p->packed;
    p->run.epoch = p->first_epoch ? p->first_epoch : 1;
    launch(p);
}

static int until_step(struct played *p)
{
    struct err e;
    int news;
    do
        check(p, news = sim_run_next(&p->run, &e), &e);
    while (news < SIM_STEP);
    return news;
}

void played_step(struct played *p)
{
    (void)until_step(p);
}

bool played_epoch(struct played *p)
{
    int news = SIM_STEP;
    while (news == SIM_STEP && !p->run.relaunch)
        news = until_step(p);
    return news == SIM_EPOCH;
}

void played_tell(struct played *p, struct tuner_event ev)
{
    struct err e;
    if (!p->run.training)
        sim_run_init(&p->run, &p->stage, &p->job, p->run.now_s);
    check(p, sim_run_tell(&p->run, ev, &e), &e);
}

void played_load(struct played *p, int waiting)
{
    struct tuner_actions acts;
    struct err e;
    struct tuner_event ev = { .kind = EV_LOAD, .t_s = p->run.now_s, .waiting = waiting };
    check(p, tuner_step(p->t, &ev, &acts, &e), &e);
    if (p->run.training)
        check(p, sim_run_take(&p->run, &acts, &e), &e);
}

void played_end(struct played *p)
{
    struct err e;
    check(p, sim_run_end(&p->run, EV_TRIAL_ENDED, &e), &e);
}

double played_trial(struct played *p)
{
    double begin = p->run.now_s;
    struct err e;
    played_begin(p);
    while (p->run.epoch <= p->job.epochs) {
        (void)played_epoch(p);
        if (!p->run.relaunch)
            continue;
        check(p, sim_run_end(&p->run, EV_TRIAL_LOST, &e), &e);
        launch(p);
    }
    assert_true(sim_run_settled(&p->run));
    played_end(p);
    return p->run.now_s - begin;
}
