/* One simulated run, and a machine that says what it was told to say. */
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
#include "core/sim_run.h"

enum { STEPS = 4, EPOCHS = 2 };

/* What the machine answers to the nth event of a kind. */
struct line {
    enum tuner_event_kind on;
    int nth; /* from 1; 0: the row is none */
    enum tuner_action_kind say;
    struct tuner_setting setting;
    double t_s;
};

struct play {
    const struct line *lines;
    int heard[EV_INSTEAD + 1];
    struct tuner_setting launches[4]; /* what it says to asks, in turn */
    size_t asks;
    bool settled;
    int fail_at; /* event; 0: none */
    int events;
    struct buf story; /* what it heard: "s 10; i 12 2; …": kind, time, seconds of steps and epochs */
    /* the world */
    int refused; /* a hot setting; -1: none */
    double dies_s;
    enum outcome why;
    int granted; /* at most this hot setting */
    int verdict_after;
};

static int hear(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    struct play *p = machine;
    out->n = 0;
    if (++p->events == p->fail_at)
        return err_set(e, -EPROTO, "it has had enough");
    buf_printf(&p->story, "%c %g", "sieaflbtdxrvg"[ev->kind], ev -> t_s);
    if (ev->kind == EV_ITERATION || ev->kind == EV_EPOCH)
        buf_printf(&p->story, " %g/%g", ev->seconds, ev->records);
    if (ev->kind == EV_APPLIED || ev->kind == EV_INSTEAD || ev->kind == EV_FAILED)
        buf_printf(&p->story, " %d%s", ev->setting.hot, ev->unexplained ? "?" : "");
    buf_puts(&p->story, "; ");
    int nth = ++p->heard[ev->kind];
    for (const struct line *l = p->lines; l && l->nth; l++) {
        if (l->on != ev->kind || l->nth != nth)
            continue;
        out->list[out->n++] =
            (struct tuner_action){ .kind = l->say, .trial = ev->trial, .setting = l->setting, .t_s = l->t_s };
        p->settled |= l->say == ACT_SETTLE;
    }
    return 0;
}

static int choose(void *machine, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                  struct err *e)
{
    struct play *p = machine;
    (void)e;
    assert_string_equal(ask->class_key, "c");
    *out = p->launches[p->asks++ % ARRAY_LEN(p->launches)];
    reason[0] = '\0';
    return 0;
}

static bool is_settled(const void *machine, int trial)
{
    (void)trial;
    return ((const struct play *)machine)->settled;
}

static bool has(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    (void)r;
    return s.hot != ((const struct play *)ctx)->refused;
}

/* 2 s on the first hot setting, 1 s on the second, …; a launch takes 10 s. */
static double step_s(void *ctx, const struct sim_run *r)
{
    (void)ctx;
    return 2.0 / (1 + r->at.hot);
}

static double startup_s(void *ctx, struct sim_run *r)
{
    (void)ctx, (void)r;
    return 10;
}

static double dies_s(void *ctx, struct sim_run *r, enum outcome *out_why)
{
    const struct play *p = ctx;
    *out_why = p->why;
    return r->launches == 1 && p->dies_s > 0 ? p->dies_s : INFINITY;
}

static bool verdict(void *ctx, const struct sim_run *r, struct tuner_event *out)
{
    const struct play *p = ctx;
    out->verdict = VERDICT_UNKNOWN;
    return r->step >= p->verdict_after;
}

static int grant(void *place, struct sim_run *r, int hot)
{
    const struct play *p = place;
    (void)r;
    return hot > p->granted ? p->granted : hot;
}

static const struct policy script = { .name = "script", .launch = choose, .step = hear, .settled = is_settled };
static const struct sim_world plain = {
    .has = has, .step_s = step_s, .startup_s = startup_s, .dies_s = dies_s, .verdict = verdict
};

#define HOT(n)                                                                                                         \
    {                                                                                                                  \
        n, 0                                                                                                           \
    }

static const struct {
    const char *name;
    struct line lines[8];
    struct play play; /* its world, and what it launches */
    bool whole_epochs;
    double apply_s;
    const char *want;
} stories[] = {
    { .name = "steps, epochs and the end are told, in order",
      .play = { .refused = -1 },
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; i 20 2/1; i 22 2/1; i 24 2/1; i 26 2/1; e 26 "
              "8/4; d 26; " },
    { .name = "a step in which the setting changes goes on from where it stands",
      .lines = { { EV_ITERATION, 1, ACT_WAKE, HOT(0), 13 }, { EV_TICK, 1, ACT_APPLY, HOT(1), 0 } },
      .play = { .refused = -1 },
      .want = "s 10; i 12 2/1; t 13; i 13.5 1.5/1; i 14.5 1/1; i 15.5 1/1; e 15.5 5.5/4; i 16.5 1/1; i 17.5 1/1; i "
              "18.5 1/1; i 19.5 1/1; e 19.5 4/4; d 19.5; " },
    { .name = "a wake that has passed comes at once, and any other event takes it back",
      .lines = { { EV_ITERATION, 1, ACT_WAKE, HOT(0), 11 }, { EV_ITERATION, 2, ACT_WAKE, HOT(0), 99 } },
      .play = { .refused = -1 },
      .want = "s 10; i 12 2/1; t 12; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; i 20 2/1; i 22 2/1; i 24 2/1; i 26 2/1; "
              "e 26 8/4; d 26; " },
    { .name = "what is refused is told at once, and stays as it was; what was said after it is void",
      .lines = { { EV_ITERATION, 2, ACT_APPLY, HOT(2), 0 }, { EV_ITERATION, 2, ACT_APPLY, HOT(1), 0 } },
      .play = { .refused = 2 },
      .want = "s 10; i 12 2/1; i 14 2/1; f 14 2; i 16 2/1; i 18 2/1; e 18 8/4; i 20 2/1; i 22 2/1; i 24 2/1; i 26 "
              "2/1; e 26 8/4; d 26; " },
    { .name = "a launch that cannot be had costs a start-up, and another is asked for",
      .play = { .refused = 2, .launches = { HOT(2), HOT(1) } },
      .want = "f 10 2; s 20; i 21 1/1; i 22 1/1; i 23 1/1; i 24 1/1; e 24 4/4; i 25 1/1; i 26 1/1; i 27 1/1; i 28 1/1; "
              "e 28 4/4; d 28; " },
    { .name = "a relaunch loses what was done of the epoch",
      .lines = { { EV_ITERATION, 6, ACT_RELAUNCH, HOT(0), 0 } },
      .play = { .refused = -1, .launches = { HOT(0), HOT(1) } },
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; i 20 2/1; i 22 2/1; x 22; s 32; i 33 1/1; i 34 "
              "1/1; i 35 1/1; i 36 1/1; e 36 4/4; d 36; " },
    { .name = "… nothing, at its end",
      .lines = { { EV_EPOCH, 1, ACT_RELAUNCH, HOT(0), 0 } },
      .play = { .refused = -1, .launches = { HOT(0), HOT(1) } },
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; x 18; s 28; i 29 1/1; i 30 1/1; i 31 1/1; i 32 "
              "1/1; e 32 4/4; d 32; " },
    { .name = "once it has settled it is told of epochs alone",
      .lines = { { EV_ITERATION, 2, ACT_SETTLE, HOT(0), 0 } },
      .play = { .refused = -1 },
      .whole_epochs = true,
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; e 26 8/4; d 26; " },
    { .name = "a change is in force a while later, and told then",
      .lines = { { EV_ITERATION, 1, ACT_APPLY, HOT(1), 0 } },
      .play = { .refused = -1, .granted = 9 },
      .apply_s = 0.5,
      .want = "s 10; i 12 2/1; a 12.5 1; i 13.25 1.25/1; i 14.25 1/1; i 15.25 1/1; e 15.25 5.25/4; i 16.25 1/1; i "
              "17.25 1/1; i 18.25 1/1; i 19.25 1/1; e 19.25 4/4; d 19.25; " },
    { .name = "… where there is less, that is",
      .lines = { { EV_ITERATION, 1, ACT_APPLY, HOT(3), 0 } },
      .play = { .refused = -1, .granted = 1 },
      .apply_s = 0.5,
      .want = "s 10; i 12 2/1; g 12.5 1; i 13.25 1.25/1; i 14.25 1/1; i 15.25 1/1; e 15.25 5.25/4; i 16.25 1/1; i "
              "17.25 1/1; i 18.25 1/1; i 19.25 1/1; e 19.25 4/4; d 19.25; " },
    { .name = "… also where changes take no time",
      .lines = { { EV_ITERATION, 1, ACT_APPLY, HOT(3), 0 }, { EV_ITERATION, 1, ACT_WAKE, HOT(0), 12.25 } },
      .play = { .refused = -1, .granted = 1 },
      .want =
          "s 10; i 12 2/1; g 12 1; i 13 1/1; i 14 1/1; i 15 1/1; e 15 5/4; i 16 1/1; i 17 1/1; i 18 1/1; i 19 1/1; e "
          "19 4/4; d 19; " },
    { .name = "a kill says nothing of the setting",
      .play = { .refused = -1, .dies_s = 9, .why = OUTCOME_KILLED },
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; i 18 2/1; e 18 8/4; x 19; s 29; i 31 2/1; i 33 2/1; i 35 2/1; i 37 "
              "2/1; e 37 8/4; d 37; " },
    { .name = "a setting that fails late is told as one that could not be launched",
      .play = { .refused = -1, .dies_s = 3, .why = OUTCOME_REFUSED, .launches = { HOT(0), HOT(1) } },
      .want = "s 10; i 12 2/1; x 13; f 13 0; s 23; i 24 1/1; i 25 1/1; i 26 1/1; i 27 1/1; e 27 4/4; i 28 1/1; i 29 "
              "1/1; i 30 1/1; i 31 1/1; e 31 4/4; d 31; " },
    { .name = "what the profile says comes after a step",
      .lines = { { EV_ITERATION, 1, ACT_PROFILE, HOT(0), 10 } },
      .play = { .refused = -1, .verdict_after = 3 },
      .want = "s 10; i 12 2/1; i 14 2/1; i 16 2/1; v 16; i 18 2/1; e 18 8/4; i 20 2/1; i 22 2/1; i 24 2/1; i 26 2/1; e "
              "26 8/4; d 26; " },
};

static const struct sim_job job = { .trial = 1, .class_key = "c", .epochs = EPOCHS, .steps = STEPS };

static void test_stories(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct play p = stories[i].play;
        struct sim_world world = plain;
        struct sim_stage stage = { .policy = &script, .machine = &p, .world = &world, .ctx = &p, .place = &p };
        struct sim_run r;
        struct err e = { 0 };
        p.lines = stories[i].lines;
        world.whole_epochs = stories[i].whole_epochs;
        world.apply_s = stories[i].apply_s;
        stage.grant = p.granted ? grant : NULL;
        sim_run_init(&r, &stage, &job, 0);
        if (sim_run_play(&r, &e) < 0)
            fail_msg("%s: %s", stories[i].name, e.text);
        if (strcmp(buf_text(&p.story), stories[i].want) != 0)
            fail_msg("%s:\n got %s\nwant %s", stories[i].name, buf_text(&p.story), stories[i].want);
        buf_done(&p.story);
    }
}

/* A trial beside others: something changes within its step, or within a whole epoch of one that has settled. */
static void test_what_is_told_within_a_step_meets_it_where_it_stands(void **state)
{
    (void)state;
    static const struct line lines[] = { { EV_LOAD, 1, ACT_APPLY, HOT(1), 0 }, { 0 } };
    struct play p = { .lines = lines, .refused = -1, .settled = true };
    struct sim_world world = plain;
    struct sim_stage stage = { .policy = &script, .machine = &p, .world = &world, .ctx = &p };
    struct sim_run r;
    struct err e;
    world.whole_epochs = true;
    sim_run_init(&r, &stage, &job, 0);
    assert_int_equal(sim_run_launch(&r, &e), 0);
    assert_true(sim_run_next_s(&r) == 10);
    assert_int_equal(sim_run_next(&r, &e), SIM_STARTED);
    assert_true(sim_run_next_s(&r) == 18); /* the whole epoch */
    sim_run_advance(&r, 13);
    p.settled = false; /* by what it is told now: it has to find out again */
    assert_int_equal(sim_run_tell(&r, (struct tuner_event){ .kind = EV_LOAD }, &e), 0);
    assert_int_equal(r.step, 1);
    assert_true(sim_run_next_s(&r) == 13.5); /* the half step that is left, twice as fast */
    for (int i = 0; i < 3; i++)
        assert_int_equal(sim_run_next(&r, &e), i < 2 ? SIM_STEP : SIM_EPOCH);
    assert_string_equal(buf_text(&p.story), "s 10; l 13; i 13.5 0.5/0.5; i 14.5 1/1; i 15.5 1/1; e 15.5 5.5/4; ");
    buf_done(&p.story);
}

static void test_without_a_machine_the_start_stays(void **state)
{
    (void)state;
    struct play p = { .refused = -1 };
    struct sim_stage stage = { .policy = policy_find("v1"), .world = &plain, .ctx = &p };
    struct sim_job one = job;
    struct sim_run r;
    one.start.hot = 1;
    sim_run_init(&r, &stage, &one, 5);
    assert_int_equal(sim_run_play(&r, NULL), 0);
    assert_true(r.at.hot == 1 && r.now_s == 5 + 10 + 8 && r.launches == 1);
}

static void test_what_the_machine_refuses_ends_it(void **state)
{
    (void)state;
    enum { EVENTS = 12 }; /* of a trial: one start, eight steps, two epochs, the end */
    for (int at = 1; at <= EVENTS + 1; at++) {
        struct play p = { .refused = -1, .fail_at = at };
        struct sim_stage stage = { .policy = &script, .machine = &p, .world = &plain, .ctx = &p };
        struct sim_run r;
        struct err e;
        sim_run_init(&r, &stage, &job, 0);
        assert_int_equal(sim_run_play(&r, &e), at <= EVENTS ? -EPROTO : 0);
        buf_done(&p.story);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_what_is_told_within_a_step_meets_it_where_it_stands),
        cmocka_unit_test(test_without_a_machine_the_start_stays),
        cmocka_unit_test(test_what_the_machine_refuses_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
