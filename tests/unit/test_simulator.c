/* Studies of several trials on simulated places: what they have of it, when each starts, and what they are told of each other. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "core/simulator.h"
#include "tests/fault.h"

enum { HOT = 3, COLD = 2, JOBS_MAX = 24 };

static const struct tuner_cfg tuner = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };
static const struct tuner_space space = { .n_hot = HOT, .n_cold = COLD, .cores = { 1, 2, 4 }, .memory = { 2, 4 } };

/* Jobs whose steps take 0.2 s on one core, and fall with cores to the power of `scales`. */
struct site {
    double scales;
    double crowded; /* times that where others keep the node busy */
    double noise;
    double need_gb;   /* a launch in less fails */
    double kill_s;    /* one launch in three is killed within so long; 0: none */
    bool kill_all;    /* … each is */
    struct buf story; /* what was decided */
};

static bool has(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    (void)r;
    return space.memory[s.cold] >= ((const struct site *)ctx)->need_gb;
}

static double step_s(void *ctx, const struct sim_run *r)
{
    const struct site *p = ctx;
    return 0.2 / pow(space.cores[r->at.hot], p->scales) * (1 + (p->crowded - 1) * (r->beside > 0)) *
           (r->epoch == r->first ? 1.3 : 1);
}

static double startup_s(void *ctx, struct sim_run *r)
{
    (void)ctx, (void)r;
    return 5;
}

static double noise(void *ctx, struct sim_run *r, int steps)
{
    (void)steps;
    return 1 + ((const struct site *)ctx)->noise * (2 * rng_unit(&r->rng) - 1);
}

static double dies_s(void *ctx, struct sim_run *r, enum outcome *out_why)
{
    const struct site *p = ctx;
    double after = rng_unit(&r->rng) * p->kill_s;
    *out_why = OUTCOME_KILLED;
    return p->kill_s > 0 && (p->kill_all || rng_below(&r->rng, 3) == 0) ? after : INFINITY;
}

static void told(void *ctx, const struct sim_run *r, const struct tuner_action *a)
{
    struct site *p = ctx;
    buf_printf(&p->story, "%.17g %d %d %d %d\n", r->now_s, a->trial, a->kind, a->setting.hot, a->setting.cold);
}

static const struct sim_world world = {
    .has = has, .step_s = step_s, .startup_s = startup_s, .noise = noise, .dies_s = dies_s, .told = told
};

/* Trials of two classes of one family; the start is the most cores and the least memory. */
static void make_jobs(struct sim_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jobs[i] = (struct sim_job){
            .class_key = i % 2 ? "f/64" : "f/32", .family_key = "f", .epochs = 4, .steps = 60, .start = { HOT - 1, 0 }
        };
}

static struct simulator_cfg cfg_of(const char *policy, struct site *p, const struct sim_job *jobs, size_t n)
{
    return (struct simulator_cfg){ .policy = policy_find(policy),
                                   .space = space,
                                   .tuner = tuner,
                                   .world = &world,
                                   .ctx = p,
                                   .nodes = { { 4, 16 } },
                                   .n_nodes = 1,
                                   .parallel = 4,
                                   .jobs = jobs,
                                   .n_jobs = n,
                                   .seed = 1 };
}

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* --- what is always so --- */

static void assert_rooms(const struct simulator *s)
{
    for (int k = 0; k < s->cfg.n_nodes; k++) {
        double heaps = 0;
        int cpus = 0, n = 0;
        for (int i = 0; i < s->n; i++) {
            const struct sim_slot *slot = &s->slots[i];
            if (slot->node != k)
                continue;
            assert_true(slot->cpus >= 1 && slot->cpus <= (int)space.cores[HOT - 1]);
            assert_true(space.cores[slot->run.at.hot] <= slot->cpus || !slot->run.training ||
                        slot->run.due_s < INFINITY);
            cpus += slot->cpus;
            heaps += slot->memory_gb;
            n++;
        }
        assert_true(cpus <= s->cfg.nodes[k].cpus && simulator_free_cpus(s, k) == s->cfg.nodes[k].cpus - cpus);
        assert_true(n < 2 || heaps * 1.25 <= s->cfg.nodes[k].memory_gb);
    }
}

static void test_no_place_gives_more_than_it_has(void **state)
{
    (void)state;
    static const char *const policies_of[] = { "pipetune", "pipetune", "paper", "v1" };
    size_t packed = 0, killed = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng g = rng_seeded(seed);
        struct site p = { .scales = rng_unit(&g),
                          .crowded = 1 + rng_unit(&g),
                          .noise = 0.05 * rng_unit(&g),
                          .need_gb = rng_below(&g, 4) == 0 ? 3 : 0,
                          .kill_s = rng_below(&g, 3) == 0 ? 60 : 0 };
        struct sim_world w = world;
        struct sim_job jobs[JOBS_MAX];
        size_t n = 1 + rng_below(&g, JOBS_MAX);
        make_jobs(jobs, n);
        struct simulator_cfg cfg = cfg_of(policies_of[seed % 4], &p, jobs, n);
        cfg.world = &w;
        cfg.parallel = 1 + (int)rng_below(&g, 6);
        cfg.n_nodes = 1 + (int)rng_below(&g, 3);
        for (int k = 0; k < cfg.n_nodes; k++)
            cfg.nodes[k] = (struct sim_node){ 4 << rng_below(&g, 2), 8 };
        cfg.seed = seed;
        w.whole_epochs = rng_below(&g, 2);
        w.apply_s = rng_below(&g, 2) ? 0.3 : 0;
        struct simulator s;
        struct err e;
        check(simulator_init(&s, &cfg, &e), &e);
        int rc, steps = 0;
        double before = 0;
        while ((rc = simulator_next(&s, &e)) > 0) {
            assert_rooms(&s);
            assert_true(s.now_s >= before && steps++ < 1000000);
            before = s.now_s;
        }
        check(rc, &e);
        assert_int_equal(s.n, 0);
        assert_int_equal(s.totals.finished + s.totals.infeasible + s.totals.lost, n);
        assert_true(p.need_gb > 0 || s.totals.infeasible == 0);
        packed += s.totals.packed;
        killed += s.totals.failed;
        simulator_done(&s);
        buf_done(&p.story);
    }
    assert_true(packed > 100 && killed > 20); /* it was met */
}

static struct sim_totals play(const struct simulator_cfg *cfg)
{
    struct simulator s;
    struct err e;
    check(simulator_init(&s, cfg, &e), &e);
    check(simulator_play(&s, &e), &e);
    struct sim_totals t = s.totals;
    simulator_done(&s);
    return t;
}

static void test_the_same_study_is_the_same_to_the_last_bit(void **state)
{
    (void)state;
    struct site p[3] = { 0 };
    struct sim_totals t[3];
    struct sim_job jobs[JOBS_MAX];
    make_jobs(jobs, JOBS_MAX);
    for (int i = 0; i < 3; i++) {
        p[i] = (struct site){ .scales = 0.3, .crowded = 1.1, .noise = 0.05, .kill_s = 100 };
        struct simulator_cfg cfg = cfg_of("pipetune", &p[i], jobs, JOBS_MAX);
        cfg.seed = i == 2 ? 2 : 1;
        t[i] = play(&cfg);
    }
    assert_string_equal(buf_text(&p[0].story), buf_text(&p[1].story));
    assert_true(t[0].end_s == t[1].end_s && t[0].core_s == t[1].core_s && t[0].launches == t[1].launches);
    assert_true(t[0].end_s != t[2].end_s);
    for (int i = 0; i < 3; i++)
        buf_done(&p[i].story);
}

/* --- totals --- */

static const struct {
    const char *name, *policy;
    int parallel, cpus[2]; /* of nodes; 0: there is none */
    double end_s, core_s;
    size_t packed;
} totals[] = {
    /* Each trial: 5 s, and on four cores that scale perfectly 60 steps of 0.065 s, 180 of 0.05 s. */
    { "one after the other", "v1", 1, { 4 }, 8 * 17.9, 8 * 17.9 * 4, 0 },
    { "as many at once as have room", "v1", 4, { 8 }, 4 * 17.9, 8 * 17.9 * 4, 7 },
    { "no more than may run at once", "v1", 1, { 8 }, 8 * 17.9, 8 * 17.9 * 4, 0 },
    { "on two nodes", "v1", 4, { 4, 4 }, 4 * 17.9, 8 * 17.9 * 4, 0 },
    { "on two of different size", "v1", 9, { 4, 12 }, 2 * 17.9, 8 * 17.9 * 4, 5 },
};

static void test_what_a_study_takes(void **state)
{
    (void)state;
    struct sim_job jobs[8];
    make_jobs(jobs, ARRAY_LEN(jobs));
    for (size_t i = 0; i < ARRAY_LEN(totals); i++) {
        struct site p = { .scales = 1, .crowded = 1 };
        struct simulator_cfg cfg = cfg_of(totals[i].policy, &p, jobs, ARRAY_LEN(jobs));
        cfg.parallel = totals[i].parallel;
        cfg.n_nodes = totals[i].cpus[1] ? 2 : 1;
        for (int k = 0; k < cfg.n_nodes; k++)
            cfg.nodes[k] = (struct sim_node){ totals[i].cpus[k], 0 };
        struct sim_totals t = play(&cfg);
        if (fabs(t.end_s - totals[i].end_s) > 1e-6 || fabs(t.core_s - totals[i].core_s) > 1e-6 ||
            t.packed != totals[i].packed || t.finished != 8 || t.launches != 8)
            fail_msg("%s: got %.3f s, %.3f core-seconds, %zu beside others, %zu finished in %zu launches",
                     totals[i].name, t.end_s, t.core_s, t.packed, t.finished, t.launches);
        buf_done(&p.story);
    }
}

static void test_packing_ends_a_study_of_small_jobs_sooner(void **state)
{
    (void)state;
    struct sim_job jobs[JOBS_MAX];
    make_jobs(jobs, JOBS_MAX);
    double end_s[2];
    for (int packs = 0; packs < 2; packs++) {
        struct site p = { .scales = 0.1, .crowded = 1.05, .noise = 0.01 };
        struct simulator_cfg cfg = cfg_of("pipetune", &p, jobs, JOBS_MAX);
        cfg.parallel = packs ? 4 : 1;
        struct sim_totals t = play(&cfg);
        assert_int_equal(t.finished, JOBS_MAX);
        assert_true(packs == (t.packed > JOBS_MAX / 2));
        end_s[packs] = t.end_s;
        buf_done(&p.story);
    }
    if (!(end_s[1] < 0.4 * end_s[0]))
        fail_msg("packed %.1f s, one by one %.1f s", end_s[1], end_s[0]);
}

/* --- what trials are told of each other --- */

struct logged {
    struct buf story;
    bool settled[9];
};

/* Settles each trial with its first step (of 0.13 s on four cores), on one core, where it takes 0.26 s in the first epoch and 0.2 s in the
 * second; what it is told is a text. */
static int hear(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    struct logged *m = machine;
    (void)e;
    out->n = 0;
    if (ev->kind == EV_LOAD && ev->trial == 0)
        buf_printf(&m->story, "%.1f load %d; ", ev->t_s, ev->waiting);
    else if (ev->kind == EV_LOAD || ev->kind == EV_TRIAL_STARTED)
        buf_printf(&m->story, "%.1f %d %s %d%s; ", ev->t_s, ev->trial, ev->kind == EV_LOAD ? "room" : "starts",
                   ev->n_hot, ev->alone ? " alone" : "");
    else if (ev->kind == EV_BREAK || ev->kind == EV_TRIAL_ENDED)
        buf_printf(&m->story, "%.1f %d %s; ", ev->t_s, ev->trial, ev->kind == EV_BREAK ? "breaks" : "ends");
    if (ev->kind != EV_ITERATION || m->settled[ev->trial])
        return 0;
    m->settled[ev->trial] = true;
    out->list[out->n++] = (struct tuner_action){ .kind = ACT_APPLY, .trial = ev->trial };
    out->list[out->n++] = (struct tuner_action){ .kind = ACT_SETTLE, .trial = ev->trial };
    return 0;
}

static int choose(void *machine, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                  struct err *e)
{
    struct logged *m = machine;
    (void)e;
    buf_printf(&m->story, "ask %d %d%s; ", ask->trial, ask->n_hot, ask->alone ? " alone" : "");
    *out = (struct tuner_setting){ ask->alone ? HOT - 1 : 0, 0 };
    reason[0] = '\0';
    return 0;
}

static struct logged *the_log;

static void *create(const struct tuner_space *sp, const struct tuner_cfg *c)
{
    (void)sp, (void)c;
    return the_log;
}

static void destroy(void *machine)
{
    (void)machine;
}

static bool has_settled(const void *machine, int trial)
{
    return ((const struct logged *)machine)->settled[trial];
}

static const struct policy logging = { .name = "log",
                                       .shares = true,
                                       .create = create,
                                       .destroy = destroy,
                                       .launch = choose,
                                       .step = hear,
                                       .settled = has_settled };

static const struct {
    const char *name;
    size_t jobs;
    int parallel, nodes;
    double memory_gb;
    const char *want;
} stories[] = {
    { "one by one nobody is told anything", 2, 1, 1, 16,
      "ask 1 3 alone; 5.0 1 starts 3 alone; 14.1 1 ends; ask 2 3 alone; 19.1 2 starts 3 alone; 28.1 2 ends; " },
    { "the second starts when the first has settled, and each is told of the other", 2, 2, 1, 16,
      "ask 1 3 alone; 5.0 1 starts 3 alone; ask 2 2; 5.1 1 breaks; 5.1 1 room 2; 10.1 2 starts 2; 14.1 1 ends; "
      "14.1 2 breaks; 14.1 2 room 2 alone; 19.3 2 ends; " },
    { "four fit beside each other, and the fifth starts when one ends", 5, 9, 1, 16,
      "0.0 load 1; ask 1 3 alone; 5.0 1 starts 3 alone; ask 2 2; 5.1 1 breaks; 5.1 1 room 2; 5.1 load 0; ask 3 2; "
      "5.1 1 breaks; ask 4 1; 5.1 1 breaks; 5.1 1 room 1; 10.1 2 starts 2; 10.1 2 room 1; 10.1 3 starts 2; "
      "10.1 3 room 1; 10.1 4 starts 1; 14.1 1 ends; ask 5 1; 14.1 2 breaks; 14.1 3 breaks; 14.1 4 breaks; "
      "14.1 2 breaks; 14.1 3 breaks; 14.1 4 breaks; 19.1 5 starts 1; 19.3 2 ends; 19.3 3 breaks; 19.3 4 breaks; "
      "19.3 5 breaks; 19.3 3 room 2; 19.3 4 room 2; 19.3 5 room 2; 19.3 3 ends; 19.3 4 breaks; 19.3 5 breaks; "
      "19.3 4 ends; 19.3 5 breaks; 19.3 5 room 2 alone; 28.3 5 ends; " },
    { "there is memory for two", 3, 9, 1, 5,
      "ask 1 3 alone; 5.0 1 starts 3 alone; ask 2 2; 5.1 1 breaks; 5.1 1 room 2; 10.1 2 starts 2; 14.1 1 ends; "
      "ask 3 2; 14.1 2 breaks; 14.1 2 breaks; 19.1 3 starts 2; 19.3 2 ends; 19.3 3 breaks; 19.3 3 room 2 alone; "
      "28.3 3 ends; " },
    { "on its own node nobody is told of the others", 2, 2, 2, 16,
      "ask 1 3 alone; ask 2 3 alone; 5.0 1 starts 3 alone; 5.0 2 starts 3 alone; 14.1 1 ends; 14.1 2 ends; " },
};

static void test_stories(void **state)
{
    (void)state;
    struct sim_job jobs[8];
    make_jobs(jobs, ARRAY_LEN(jobs));
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].epochs = 2;
        jobs[i].steps = 20;
    }
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct site p = { .scales = 0.5, .crowded = 1 };
        struct logged log = { 0 };
        struct simulator_cfg cfg = cfg_of("v1", &p, jobs, stories[i].jobs);
        the_log = &log;
        cfg.policy = &logging;
        cfg.parallel = stories[i].parallel;
        cfg.n_nodes = stories[i].nodes;
        cfg.nodes[0].memory_gb = cfg.nodes[1].memory_gb = stories[i].memory_gb;
        cfg.nodes[1].cpus = 4;
        (void)play(&cfg);
        if (strcmp(buf_text(&log.story), stories[i].want) != 0)
            fail_msg("%s:\n got %s\nwant %s", stories[i].name, buf_text(&log.story), stories[i].want);
        buf_done(&log.story);
        buf_done(&p.story);
    }
}

/* --- what fails --- */

static void test_what_fails(void **state)
{
    (void)state;
    static const struct {
        const char *name, *policy;
        struct site place;
        size_t finished, infeasible, lost, launches;
    } rows[] = {
        { "without a policy a setting that cannot be had ends the trial",
          "v1",
          { .scales = 1, .crowded = 1, .need_gb = 3 },
          0,
          4,
          0,
          4 },
        { "a policy looks for another one", "pipetune", { .scales = 1, .crowded = 1, .need_gb = 3 }, 4, 0, 0, 5 },
        { "nothing can be had: it is not tried for ever",
          "pipetune",
          { .scales = 1, .crowded = 1, .need_gb = 99 },
          0,
          4,
          0,
          0 },
        { "who is killed five times without an epoch is lost",
          "pipetune",
          { .scales = 1, .crowded = 1, .kill_s = 1, .kill_all = true },
          0,
          0,
          4,
          20 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sim_job jobs[4];
        struct site p = rows[i].place;
        make_jobs(jobs, ARRAY_LEN(jobs));
        struct simulator_cfg cfg = cfg_of(rows[i].policy, &p, jobs, ARRAY_LEN(jobs));
        struct sim_totals t = play(&cfg);
        if (t.finished != rows[i].finished || t.infeasible != rows[i].infeasible || t.lost != rows[i].lost ||
            (rows[i].launches && t.launches != rows[i].launches))
            fail_msg("%s: %zu finished, %zu infeasible, %zu lost in %zu launches", rows[i].name, t.finished,
                     t.infeasible, t.lost, t.launches);
        buf_done(&p.story);
    }
}

static void test_memory_that_is_out_is_told(void **state)
{
    (void)state;
    struct sim_job jobs[4];
    make_jobs(jobs, ARRAY_LEN(jobs));
    bool struck = true;
    unsigned nth = 1;
    for (; struck; nth++) {
        assert_true(nth < 64);
        struct site p = { .scales = 1, .crowded = 1 };
        struct sim_world quiet = world;
        quiet.told = NULL;
        struct simulator_cfg cfg = cfg_of("pipetune", &p, jobs, ARRAY_LEN(jobs));
        cfg.world = &quiet;
        struct simulator s;
        struct err e;
        fault_arm(FAULT_ALLOC, nth);
        int rc = simulator_init(&s, &cfg, &e);
        if (rc == 0)
            rc = simulator_play(&s, &e);
        struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        simulator_done(&s);
    }
    assert_true(nth > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_place_gives_more_than_it_has),
        cmocka_unit_test(test_the_same_study_is_the_same_to_the_last_bit),
        cmocka_unit_test(test_what_a_study_takes),
        cmocka_unit_test(test_packing_ends_a_study_of_small_jobs_sooner),
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_what_fails),
        cmocka_unit_test(test_memory_that_is_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
