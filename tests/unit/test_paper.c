/* The published policy: what it does at the end of each epoch. A story is a text of events; what comes of it is a text too. */
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
#include "core/paper.h"
#include "tests/fault.h"

static const struct tuner_space space = { .n_hot = 3, .n_cold = 2, .cores = { 4, 8, 16 }, .memory = { 4, 8 } };
static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

/* Started under 16 cores unless it says so. */
#define START(t, n)                                                                                                    \
    {                                                                                                                  \
        .kind = EV_TRIAL_STARTED, .trial = t, .setting = { 2, 1 }, .class_key = "c", .epochs = n                       \
    }
#define EPOCH(t, k, s)                                                                                                 \
    {                                                                                                                  \
        .kind = EV_EPOCH, .trial = t, .epoch = k, .seconds = s                                                         \
    }
#define REFUSED(t, hot)                                                                                                \
    {                                                                                                                  \
        .kind = EV_FAILED, .trial = t, .setting = { hot, 1 }, .infeasible = true                                       \
    }
#define MAY_HAVE(t, n)                                                                                                 \
    {                                                                                                                  \
        .kind = EV_LOAD, .trial = t, .n_hot = n                                                                        \
    }
#define JUST(k, t)                                                                                                     \
    {                                                                                                                  \
        .kind = k, .trial = t                                                                                          \
    }

static const struct story {
    const char *name;
    struct tuner_event events[12]; /* ends with a trial 0 that is no load */
    const char *want;              /* "apply 4; settle 8; …" */
} stories[] = {
    { "one probe per epoch, ascending, then the shortest",
      { START(1, 6), EPOCH(1, 1, 30), EPOCH(1, 2, 25), EPOCH(1, 3, 20), EPOCH(1, 4, 20), EPOCH(1, 5, 20) },
      "apply 4; apply 8; settle 8; learn 8; " },
    { "the start when it was the shortest",
      { START(1, 5), EPOCH(1, 1, 10), EPOCH(1, 2, 25), EPOCH(1, 3, 20) },
      "apply 4; apply 8; apply 16; settle 16; learn 16; " },
    { "a probe that was the shortest is gone back to",
      { START(1, 5), EPOCH(1, 1, 30), EPOCH(1, 2, 5), EPOCH(1, 3, 20) },
      "apply 4; apply 8; apply 4; settle 4; learn 4; " },
    { "among equals the one measured first wins",
      { START(1, 5), EPOCH(1, 1, 30), EPOCH(1, 2, 20), EPOCH(1, 3, 20) },
      "apply 4; apply 8; apply 4; settle 4; learn 4; " },
    { "an equal start wins over its probes",
      { START(1, 5), EPOCH(1, 1, 20), EPOCH(1, 2, 20), EPOCH(1, 3, 20) },
      "apply 4; apply 8; apply 16; settle 16; learn 16; " },
    { "epochs end before the probes: the best of what was measured is learnt",
      { START(1, 2), EPOCH(1, 1, 30), EPOCH(1, 2, 25), JUST(EV_TRIAL_ENDED, 1) },
      "apply 4; learn 4; " },
    { "the last epoch is no reason to change anything",
      { START(1, 3), EPOCH(1, 1, 30), EPOCH(1, 2, 25), EPOCH(1, 3, 20), JUST(EV_TRIAL_ENDED, 1) },
      "apply 4; apply 8; learn 8; " },
    { "one epoch alone makes the start known",
      { START(1, 1), EPOCH(1, 1, 30), JUST(EV_TRIAL_ENDED, 1) },
      "learn 16; " },
    { "a class met before gets its best after the first epoch",
      { START(1, 2), EPOCH(1, 1, 30), EPOCH(1, 2, 25), JUST(EV_TRIAL_ENDED, 1), START(2, 4), EPOCH(2, 1, 3),
        EPOCH(2, 2, 99), EPOCH(2, 3, 99), JUST(EV_TRIAL_ENDED, 2) },
      "apply 4; learn 4; apply 4; settle 4; " },
    { "another class is met for itself",
      { START(1, 1),
        EPOCH(1, 1, 30),
        JUST(EV_TRIAL_ENDED, 1),
        { .kind = EV_TRIAL_STARTED, .trial = 2, .setting = { 2, 0 }, .class_key = "other", .epochs = 4 },
        EPOCH(2, 1, 3) },
      "learn 16; apply 4; " },
    { "a class is met as soon as one of its trials has settled",
      { START(1, 9), EPOCH(1, 1, 30), EPOCH(1, 2, 5), EPOCH(1, 3, 20), START(2, 4), EPOCH(2, 1, 3) },
      "apply 4; apply 8; apply 4; settle 4; learn 4; apply 4; settle 4; " },
    { "two first trials both probe, and the first to settle is believed",
      { START(1, 9), START(2, 9), EPOCH(1, 1, 30), EPOCH(2, 1, 1), EPOCH(1, 2, 5), EPOCH(1, 3, 20), EPOCH(2, 2, 9),
        EPOCH(2, 3, 9), JUST(EV_TRIAL_ENDED, 2) },
      "apply 4; apply 4; apply 8; apply 4; settle 4; learn 4; apply 8; apply 16; settle 16; " },
    { "a trial that is lost has taught nothing",
      { START(1, 9), EPOCH(1, 1, 30), JUST(EV_TRIAL_LOST, 1), START(2, 4), EPOCH(2, 1, 3) },
      "apply 4; apply 4; " },
    { "one that goes on from a checkpoint measures its start in the first epoch it trains",
      { { .kind = EV_TRIAL_STARTED, .trial = 1, .setting = { 2, 1 }, .class_key = "c", .epoch = 3, .epochs = 5 },
        EPOCH(1, 3, 30),
        EPOCH(1, 4, 25),
        EPOCH(1, 5, 20),
        JUST(EV_TRIAL_ENDED, 1) },
      "apply 4; apply 8; learn 8; " },
    { "an epoch in which something broke is measured again",
      { START(1, 9), JUST(EV_BREAK, 1), EPOCH(1, 1, 1), EPOCH(1, 2, 30), JUST(EV_BREAK, 1), EPOCH(1, 3, 1),
        EPOCH(1, 4, 25), EPOCH(1, 5, 26) },
      "apply 4; apply 8; apply 4; settle 4; learn 4; " },
    { "a setting that cannot be had is passed over",
      { START(1, 9), EPOCH(1, 1, 30), REFUSED(1, 0), EPOCH(1, 2, 20) },
      "apply 4; apply 8; settle 8; learn 8; " },
    { "when none can be had the start stays",
      { START(1, 9), EPOCH(1, 1, 30), REFUSED(1, 0), REFUSED(1, 1) },
      "apply 4; apply 8; apply 16; settle 16; learn 16; " },
    { "a class's best that cannot be had any more gives way to the start",
      { START(1, 2), EPOCH(1, 1, 30), EPOCH(1, 2, 25), JUST(EV_TRIAL_ENDED, 1), START(2, 4), EPOCH(2, 1, 3),
        REFUSED(2, 0) },
      "apply 4; learn 4; apply 4; settle 4; apply 16; settle 16; " },
    { "what failed for another reason can still be had",
      { START(1, 9), EPOCH(1, 1, 30), { .kind = EV_FAILED, .trial = 1, .setting = { 0, 1 } }, EPOCH(1, 2, 25) },
      "apply 4; apply 8; " },
    { "it probes no more than the trial may have",
      { { .kind = EV_TRIAL_STARTED, .trial = 1, .setting = { 1, 1 }, .class_key = "c", .epochs = 9, .n_hot = 2 },
        EPOCH(1, 1, 30),
        EPOCH(1, 2, 25) },
      "apply 4; settle 4; learn 4; " },
    { "a class's best beyond what the trial may have: the most it may",
      { START(1, 1),
        EPOCH(1, 1, 30),
        JUST(EV_TRIAL_ENDED, 1),
        { .kind = EV_TRIAL_STARTED, .trial = 2, .setting = { 0, 1 }, .class_key = "c", .epochs = 9, .n_hot = 2 },
        EPOCH(2, 1, 3) },
      "learn 16; apply 8; settle 8; " },
    { "when it may have less it takes less at once, and that epoch is no measurement",
      { START(1, 9), MAY_HAVE(1, 2), EPOCH(1, 1, 1), EPOCH(1, 2, 30), EPOCH(1, 3, 25) },
      "apply 8; apply 4; apply 8; settle 8; learn 8; " },
    { "how many wait, ticks, iterations and what was applied are no matter",
      { START(1, 9),
        { .kind = EV_LOAD, .trial = 0, .waiting = 5 },
        JUST(EV_TICK, 1),
        JUST(EV_APPLIED, 1),
        { .kind = EV_ITERATION, .trial = 1, .epoch = 1, .seconds = 1, .records = 1 } },
      "" },
};

static void put_actions(struct buf *b, const struct tuner_actions *acts)
{
    for (size_t i = 0; i < acts->n; i++) {
        static const char *const names[] = { "apply", "settle", "learn", "wake", "relaunch" };
        const struct tuner_action *a = &acts->list[i];
        buf_printf(b, "%s %g; ", names[a->kind], space.cores[a->setting.hot]);
        assert_true(a->trial > 0 && *a->reason);
    }
}

static bool is_end(const struct tuner_event *ev)
{
    return ev->trial == 0 && ev->kind != EV_LOAD;
}

static void test_stories(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct paper *p = paper_new(&space, &cfg);
        AUTO_BUF struct buf got = BUF_INIT;
        struct err e = { 0 };
        const struct story *s = &stories[i];
        for (size_t k = 0; k < ARRAY_LEN(s->events) && !is_end(&s->events[k]); k++) {
            struct tuner_actions acts;
            if (paper_step(p, &s->events[k], &acts, &e) < 0)
                fail_msg("%s: %s", s->name, e.text);
            put_actions(&got, &acts);
        }
        if (strcmp(buf_text(&got), s->want) != 0)
            fail_msg("%s: got %s, want %s", s->name, buf_text(&got), s->want);
        paper_free(p);
    }
}

static void test_a_launch_is_the_start_or_what_there_is_of_it(void **state)
{
    (void)state;
    static const struct {
        int start, n_hot, want;
    } cases[] = { { 2, 0, 2 }, { 2, 3, 2 }, { 2, 2, 1 }, { 1, 2, 1 }, { 2, 1, 0 }, { 0, 1, 0 } };
    struct paper *p = paper_new(&space, &cfg);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct tuner_ask ask = {
            .trial = 1, .class_key = "c", .start = { cases[i].start, 1 }, .n_hot = cases[i].n_hot
        };
        struct tuner_setting got = { -1, -1 };
        char reason[TUNER_REASON_MAX] = "";
        assert_int_equal(paper_launch(p, &ask, &got, reason, NULL), 0);
        assert_int_equal(got.hot, cases[i].want);
        assert_int_equal(got.cold, 1);
        assert_true(*reason);
    }
    paper_free(p);
}

static void test_what_it_says_of_a_trial(void **state)
{
    (void)state;
    struct paper *p = paper_new(&space, &cfg);
    struct tuner_actions acts;
    struct tuner_setting at = { -1, -1 };
    static const struct tuner_event events[] = { START(7, 9), EPOCH(7, 1, 3), EPOCH(7, 2, 2), EPOCH(7, 3, 1) };
    static const int want[] = { 2, 0, 1, 1 };
    assert_false(paper_current(p, 7, &at));
    assert_false(paper_settled(p, 7));
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        assert_int_equal(paper_step(p, &events[i], &acts, NULL), 0);
        assert_true(paper_current(p, 7, &at));
        assert_int_equal(at.hot, want[i]);
        assert_int_equal(paper_settled(p, 7), i == 3);
    }
    assert_int_equal(acts.n, 2);
    assert_string_equal(acts.list[0].reason, "8 cores had the shortest of 3 epochs: 1 s");
    paper_free(p);
}

static void test_impossible_events_are_refused(void **state)
{
    (void)state;
    struct paper *p = paper_new(&space, &cfg);
    struct tuner_actions acts;
    struct err e = { 0 };
    static const struct tuner_event start = START(1, 9), epoch = EPOCH(2, 1, 3), ended = JUST(EV_TRIAL_ENDED, 2);
    static const struct tuner_event launch = { .kind = EV_FAILED, .trial = 2, .class_key = "c", .infeasible = true };
    assert_int_equal(paper_step(p, &start, &acts, &e), 0);
    assert_int_equal(paper_step(p, &start, &acts, &e), -EPROTO);
    assert_int_equal(paper_step(p, &epoch, &acts, &e), -EPROTO);
    assert_true(strstr(e.text, "trial 2"));
    assert_int_equal(paper_step(p, &ended, &acts, &e), -EPROTO);
    assert_int_equal(paper_step(p, &launch, &acts, &e), 0); /* a launch that never trained */
    paper_free(p);
}

static int live_through(struct err *e)
{
    struct paper *p = paper_new(&space, &cfg);
    int rc = p ? 0 : -ENOMEM;
    struct tuner_actions acts;
    for (int i = 1; rc == 0 && i <= 6; i++) {
        const struct tuner_event ev = START(i, 3);
        rc = paper_step(p, &ev, &acts, e);
    }
    paper_free(p);
    return rc;
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    bool struck = true;
    unsigned nth = 1;
    for (; struck; nth++) {
        assert_true(nth < 64);
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        int rc = live_through(&e);
        struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
    }
    assert_true(nth > 8); /* there were calls to fail */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_a_launch_is_the_start_or_what_there_is_of_it),
        cmocka_unit_test(test_what_it_says_of_a_trial),
        cmocka_unit_test(test_impossible_events_are_refused),
        cmocka_unit_test(test_memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
