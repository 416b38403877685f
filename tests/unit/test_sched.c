#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/sched.h"
#include "tests/fault.h"

enum step {
    NOTHING,
    START,
    FINISH,
    FAIL,
    INFEASIBLE,
    ENVIRONMENT,
    INTERRUPT,
    KILL,
    GAIN,
    GIVE_UP,
    DOUBT,
    PAUSE,
    STOP,
    RESUME,
    WAKE,
    ASKED_WAIT,
    ASKED_NONE,
    ADD
};

struct feed {
    enum step step;
    int trial;
};

static const struct {
    const char *name;
    int parallel, retries, max_trials;
    struct sched_trial have[4];
    struct feed feed[8];
    enum sched_verb want;
    int want_trial; /* SCHED_START */
} cases[] = {
    { "an empty study asks the search", 1, 0, 0, { { 0 } }, { { 0 } }, SCHED_ASK, 0 },
    { "a new trial is started", 1, 0, 0, { { 1, TRIAL_WAITING, 0, 0 } }, { { 0 } }, SCHED_START, 1 },
    { "a search that has no more ends the study", 1, 0, 0, { { 0 } }, { { ASKED_NONE, 0 } }, SCHED_END, 0 },
    { "with every slot taken it waits", 1, 0, 0, { { 1, TRIAL_WAITING, 0, 0 } }, { { START, 1 } }, SCHED_WAIT, 0 },
    { "with a slot free it asks for more", 2, 0, 0, { { 1, TRIAL_WAITING, 0, 0 } }, { { START, 1 } }, SCHED_ASK, 0 },
    { "a running trial of an exhausted search is waited for",
      2,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { ASKED_NONE, 0 } },
      SCHED_WAIT,
      0 },
    { "a search that wants a report first is left alone",
      2,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { ASKED_WAIT, 0 } },
      SCHED_WAIT,
      0 },
    { "after a report it is asked again",
      2,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { ASKED_WAIT, 0 }, { FINISH, 1 } },
      SCHED_ASK,
      0 },
    { "a search that waits for nothing ends the study", 1, 0, 0, { { 0 } }, { { ASKED_WAIT, 0 } }, SCHED_END, 0 },
    { "the lowest new trial comes first",
      1,
      0,
      0,
      { { 3, TRIAL_WAITING, 0, 0 }, { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      { { 0 } },
      SCHED_START,
      1 },
    { "an interrupted trial comes before a new one",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_INTERRUPTED, 0, 0 } },
      { { 0 } },
      SCHED_START,
      2 },
    { "a trial to be retried comes before a new one",
      1,
      1,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_WAITING, 1, 0 } },
      { { 0 } },
      SCHED_START,
      2 },
    { "of those begun before, the lowest comes first",
      1,
      1,
      0,
      { { 4, TRIAL_WAITING, 1, 0 }, { 3, TRIAL_INTERRUPTED, 0, 0 } },
      { { 0 } },
      SCHED_START,
      3 },
    { "a failure is retried", 1, 1, 0, { { 1, TRIAL_WAITING, 0, 0 } }, { { START, 1 }, { FAIL, 1 } }, SCHED_START, 1 },
    { "a failure beyond the retries is final",
      1,
      1,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { FAIL, 1 }, { START, 1 }, { FAIL, 1 } },
      SCHED_ASK,
      0 },
    { "failures of an earlier run count",
      1,
      1,
      0,
      { { 1, TRIAL_WAITING, 1, 0 } },
      { { START, 1 }, { FAIL, 1 } },
      SCHED_ASK,
      0 },
    { "without retries the first failure is final",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { FAIL, 1 } },
      SCHED_ASK,
      0 },
    { "an infeasible trial is not retried",
      1,
      9,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { INFEASIBLE, 1 } },
      SCHED_ASK,
      0 },
    { "an interruption costs no retry",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { INTERRUPT, 1 }, { START, 1 }, { INTERRUPT, 1 } },
      SCHED_START,
      1 },
    { "a kill from outside costs no retry",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { KILL, 1 }, { KILL, 1 }, { KILL, 1 }, { KILL, 1 } },
      SCHED_START,
      1 },
    { "but who is always killed is lost in the end",
      1,
      9,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { KILL, 1 }, { KILL, 1 }, { KILL, 1 }, { KILL, 1 }, { KILL, 1 } },
      SCHED_ASK,
      0 },
    { "not who comes further each time",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 4 } },
      { { START, 1 }, { GAIN, 1 }, { KILL, 1 }, { KILL, 1 }, { KILL, 1 }, { KILL, 1 } },
      SCHED_START,
      1 },
    { "kills of an earlier run count", 1, 0, 0, { { 1, TRIAL_WAITING, 0, 4 } }, { { KILL, 1 } }, SCHED_ASK, 0 },
    { "a failure that is given up on is final",
      1,
      9,
      0,
      { { 1, TRIAL_WAITING, 1, 0 } },
      { { START, 1 }, { GIVE_UP, 1 }, { FAIL, 1 } },
      SCHED_ASK,
      0 },
    { "a doubt about the environment is looked into before anything new is begun",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      { { START, 2 }, { DOUBT, 2 } },
      SCHED_START,
      2 },
    { "a broken environment stops the study",
      1,
      9,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { ENVIRONMENT, 1 } },
      SCHED_END,
      0 },
    { "a stopping study waits for what runs",
      2,
      9,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { START, 2 }, { ENVIRONMENT, 1 } },
      SCHED_WAIT,
      0 },
    { "max_trials ends the asking",
      1,
      0,
      2,
      { { 1, TRIAL_FINISHED, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      { { START, 2 }, { FINISH, 2 } },
      SCHED_END,
      0 },
    { "below max_trials it asks", 1, 0, 2, { { 1, TRIAL_FINISHED, 0, 0 } }, { { 0 } }, SCHED_ASK, 0 },
    { "trials that exist run even beyond max_trials",
      1,
      0,
      1,
      { { 1, TRIAL_FINISHED, 0, 0 }, { 2, TRIAL_INTERRUPTED, 0, 0 } },
      { { 0 } },
      SCHED_START,
      2 },
    { "after word that the search knows more it is asked again",
      2,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { ASKED_WAIT, 0 }, { WAKE, 0 } },
      SCHED_ASK,
      0 },
    { "a paused trial frees its place and is not started by itself",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 } },
      { { START, 1 }, { PAUSE, 1 } },
      SCHED_ASK,
      0 },
    { "a study whose search has no more ends over a paused trial",
      1,
      0,
      0,
      { { 1, TRIAL_PAUSED, 0, 0 } },
      { { ASKED_NONE, 0 } },
      SCHED_END,
      0 },
    { "with a paused trial the search is asked beyond max_trials",
      1,
      0,
      1,
      { { 1, TRIAL_PAUSED, 0, 0 } },
      { { 0 } },
      SCHED_ASK,
      0 },
    { "a trial that is gone on with comes before a new one",
      1,
      0,
      0,
      { { 1, TRIAL_WAITING, 0, 0 }, { 2, TRIAL_PAUSED, 0, 0 } },
      { { RESUME, 2 } },
      SCHED_START,
      2 },
    { "one that is gone on with before its pause is waited for",
      2,
      0,
      1,
      { { 1, TRIAL_RUNNING, 0, 0 } },
      { { RESUME, 1 } },
      SCHED_WAIT,
      0 },
    { "a failure after a pause has the retries that are left",
      1,
      1,
      1,
      { { 1, TRIAL_PAUSED, 1, 0 } },
      { { RESUME, 1 }, { START, 1 }, { FAIL, 1 } },
      SCHED_END,
      0 },
    { "a stopped trial is over", 1, 0, 1, { { 1, TRIAL_WAITING, 0, 0 } }, { { START, 1 }, { STOP, 1 } }, SCHED_END, 0 },
    { "an added proposal is started", 1, 0, 0, { { 1, TRIAL_FINISHED, 0, 0 } }, { { ADD, 2 } }, SCHED_START, 2 },
    { "a trial found running counts as running", 1, 0, 0, { { 1, TRIAL_RUNNING, 0, 0 } }, { { 0 } }, SCHED_WAIT, 0 },
};

static int add(struct sched *s, int number, enum trial_state state, int failures)
{
    struct sched_trial t = { .number = number, .state = state, .failures = failures };
    return sched_add(s, &t);
}

static void feed_one(struct sched *s, struct feed f)
{
    switch (f.step) {
    case NOTHING: break;
    case START: sched_started(s, f.trial); break;
    case FINISH: sched_ended(s, f.trial, OUTCOME_FINISHED); break;
    case FAIL: sched_ended(s, f.trial, OUTCOME_FAILED); break;
    case INFEASIBLE: sched_ended(s, f.trial, OUTCOME_INFEASIBLE); break;
    case ENVIRONMENT: sched_ended(s, f.trial, OUTCOME_ENVIRONMENT); break;
    case INTERRUPT: sched_ended(s, f.trial, OUTCOME_INTERRUPTED); break;
    case KILL: sched_started(s, f.trial), sched_ended(s, f.trial, OUTCOME_KILLED); break;
    case GAIN: sched_gained(s, f.trial); break;
    case GIVE_UP: sched_give_up(s, f.trial); break;
    case DOUBT: sched_ended(s, f.trial, OUTCOME_DOUBTED); break;
    case PAUSE: sched_ended(s, f.trial, OUTCOME_PAUSED); break;
    case STOP: sched_ended(s, f.trial, OUTCOME_STOPPED); break;
    case RESUME: sched_resume(s, f.trial); break;
    case WAKE: sched_woken(s); break;
    case ASKED_WAIT: sched_asked(s, 0); break;
    case ASKED_NONE: sched_asked(s, -ENODATA); break;
    case ADD:
        sched_asked(s, 1);
        assert_int_equal(add(s, f.trial, TRIAL_WAITING, 0), 0);
        break;
    }
}

static void test_sched_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sched s = { .parallel = cases[i].parallel,
                           .retries = cases[i].retries,
                           .max_trials = cases[i].max_trials };
        for (size_t k = 0; k < ARRAY_LEN(cases[i].have) && cases[i].have[k].number; k++)
            assert_int_equal(sched_add(&s, &cases[i].have[k]), 0);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].feed); k++)
            feed_one(&s, cases[i].feed[k]);
        int trial = 0;
        enum sched_verb got = sched_next(&s, NULL, NULL, &trial);
        if (got != cases[i].want || trial != cases[i].want_trial)
            fail_msg("%s: got verb %d trial %d, want %d and %d", cases[i].name, (int)got, trial, (int)cases[i].want,
                     cases[i].want_trial);
        sched_done(&s);
    }
}

static void test_ended_tells_the_new_state(void **state)
{
    (void)state;
    static const struct {
        enum outcome outcome;
        enum trial_state want;
        size_t left;
    } ends[] = {
        { OUTCOME_PAUSED, TRIAL_PAUSED, 1 },           { OUTCOME_STOPPED, TRIAL_STOPPED, 0 },
        { OUTCOME_FINISHED, TRIAL_FINISHED, 0 },       { OUTCOME_FAILED, TRIAL_WAITING, 1 },
        { OUTCOME_INFEASIBLE, TRIAL_INFEASIBLE, 0 },   { OUTCOME_ENVIRONMENT, TRIAL_WAITING, 1 },
        { OUTCOME_INTERRUPTED, TRIAL_INTERRUPTED, 1 }, { OUTCOME_UNUSABLE, TRIAL_INTERRUPTED, 1 },
        { OUTCOME_REFUSED, TRIAL_INTERRUPTED, 1 },     { OUTCOME_KILLED, TRIAL_INTERRUPTED, 1 },
        { OUTCOME_DOUBTED, TRIAL_INTERRUPTED, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct sched s = { .parallel = 1, .retries = 1 };
        assert_int_equal(add(&s, 1, TRIAL_WAITING, 0), 0);
        sched_started(&s, 1);
        assert_int_equal(sched_state_after(&s, 1, ends[i].outcome), ends[i].want);
        assert_int_equal(sched_running(&s), 1);
        assert_int_equal(sched_ended(&s, 1, ends[i].outcome), ends[i].want);
        assert_int_equal(s.n, ends[i].left);
        assert_int_equal(s.made, 1);
        assert_int_equal(sched_running(&s), 0);
        assert_int_equal(sched_paused(&s), ends[i].want == TRIAL_PAUSED);
        assert_int_equal(sched_waiting(&s), ends[i].left - (ends[i].want == TRIAL_PAUSED));
        sched_done(&s);
    }
}

static void test_names_read_back(void **state)
{
    (void)state;
    for (int i = TRIAL_WAITING; i <= TRIAL_INFEASIBLE; i++)
        assert_int_equal(trial_state_parse(trial_state_name((enum trial_state)i)), i);
    for (int i = OUTCOME_FINISHED; i <= OUTCOME_INTERRUPTED; i++)
        assert_int_equal(outcome_parse(outcome_name((enum outcome)i)), i);
    assert_int_equal(trial_state_parse("lost"), -EINVAL);
    assert_int_equal(outcome_parse(""), -EINVAL);
    assert_false(trial_state_is_final(TRIAL_INTERRUPTED));
    assert_true(trial_state_is_final(TRIAL_INFEASIBLE));
}

static void test_many_trials_stay_sorted(void **state)
{
    (void)state;
    struct sched s = { .parallel = 1 };
    for (int i = 0; i < 100; i++)
        assert_int_equal(add(&s, 1 + i * 37 % 100, TRIAL_WAITING, 0), 0);
    for (int i = 1; i <= 100; i++) {
        int trial = 0;
        assert_int_equal(sched_next(&s, NULL, NULL, &trial), SCHED_START);
        assert_int_equal(trial, i);
        sched_started(&s, trial);
        sched_ended(&s, trial, OUTCOME_FINISHED);
    }
    sched_done(&s);
    sched_done(&s);
    sched_done(NULL);
}

/* --- what may be started beside what runs --- */

static bool only(void *ctx, int trial)
{
    return trial == *(int *)ctx;
}

static const struct {
    const char *name;
    struct sched_trial have[3];
    int fits; /* the one trial that fits; 0: none */
    bool exhausted;
    enum sched_verb want;
    int want_trial;
} packing[] = {
    { "a later trial that fits goes before one that does not",
      { { 1, TRIAL_RUNNING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 }, { 3, TRIAL_WAITING, 0, 0 } },
      3,
      false,
      SCHED_START,
      3 },
    { "a retry that does not fit waits, too",
      { { 1, TRIAL_RUNNING, 0, 0 }, { 2, TRIAL_INTERRUPTED, 0, 0 }, { 3, TRIAL_WAITING, 0, 0 } },
      3,
      false,
      SCHED_START,
      3 },
    { "when none fits, another proposal might",
      { { 1, TRIAL_RUNNING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      0,
      false,
      SCHED_ASK,
      0 },
    { "when none fits and there are no more, it waits",
      { { 1, TRIAL_RUNNING, 0, 0 }, { 2, TRIAL_WAITING, 0, 0 } },
      0,
      true,
      SCHED_WAIT,
      0 },
};

static void test_sched_packs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(packing); i++) {
        struct sched s = { .parallel = 256, .retries = 1, .exhausted = packing[i].exhausted };
        for (size_t k = 0; k < 3 && packing[i].have[k].number; k++)
            assert_int_equal(sched_add(&s, &packing[i].have[k]), 0);
        int fits = packing[i].fits, trial = 0;
        enum sched_verb got = sched_next(&s, only, &fits, &trial);
        if (got != packing[i].want || trial != packing[i].want_trial)
            fail_msg("%s: got verb %d trial %d, want %d and %d", packing[i].name, (int)got, trial, (int)packing[i].want,
                     packing[i].want_trial);
        sched_done(&s);
    }
}

static void test_no_more_is_asked_for_than_could_be_needed(void **state)
{
    (void)state;
    struct sched s = { .parallel = 256 };
    int none = 0, trial = 0;
    assert_int_equal(add(&s, 1, TRIAL_RUNNING, 0), 0);
    for (int i = 0; i < SCHED_LOOKAHEAD; i++) {
        assert_int_equal(sched_next(&s, only, &none, &trial), SCHED_ASK);
        assert_int_equal(add(&s, 2 + i, TRIAL_WAITING, 0), 0);
        assert_int_equal(sched_waiting(&s), 1 + i);
    }
    assert_int_equal(sched_next(&s, only, &none, &trial), SCHED_WAIT);
    sched_done(&s);
}

/* Whatever the search has said, and however many trials it may have made. */
/* There need not be room for it yet: who asked is told which trial it is. */
static void test_added_points_are_asked_for_at_once(void **state)
{
    (void)state;
    struct sched s = { .parallel = 1, .exhausted = true, .added = 1 };
    int number;
    assert_int_equal(sched_add(&s, &(struct sched_trial){ .number = 1, .state = TRIAL_RUNNING }), 0);
    assert_int_equal(sched_next(&s, NULL, NULL, &number), SCHED_ASK);
    s.stopping = true;
    assert_int_equal(sched_next(&s, NULL, NULL, &number), SCHED_WAIT);
    s.stopping = false;
    s.added = 0;
    assert_int_equal(sched_next(&s, NULL, NULL, &number), SCHED_WAIT);
    sched_done(&s);
}

static void test_extra_trials_are_asked_for_when_the_search_has_ended(void **state)
{
    (void)state;
    struct sched s = { .parallel = 2, .max_trials = 1, .exhausted = true };
    int trial = 0;
    assert_int_equal(add(&s, 1, TRIAL_FINISHED, 0), 0);
    assert_int_equal(sched_next(&s, NULL, NULL, &trial), SCHED_END);
    s.extra = 1;
    assert_int_equal(sched_next(&s, NULL, NULL, &trial), SCHED_ASK);
    assert_int_equal(add(&s, 2, TRIAL_WAITING, 0), 0);
    s.extra = 0;
    assert_int_equal(sched_next(&s, NULL, NULL, &trial), SCHED_START);
    s.closed = true;
    s.extra = 1;
    assert_int_equal(sched_next(&s, NULL, NULL, &trial), SCHED_END);
    sched_done(&s);
}

/* A search that learns is asked late: what eight trials ahead are proposed by is old when they start. */
static const struct {
    const char *name;
    int parallel, ending, waiting;
    bool room; /* for one like those that wait, none of which fits */
    enum sched_verb want;
} learning[] = {
    { "nothing is asked for ahead of need", 1, 0, 0, false, SCHED_WAIT },
    { "nor where trials are packed, and there is no room", 256, 0, 0, false, SCHED_WAIT },
    { "for one that is about to end it is", 1, 1, 0, false, SCHED_ASK },
    { "also where trials are packed", 256, 1, 0, false, SCHED_ASK },
    { "but once", 1, 1, 1, false, SCHED_WAIT },
    { "where there is room it is asked", 256, 0, 0, true, SCHED_ASK },
    { "and for another, when that does not fit", 256, 0, 1, true, SCHED_ASK },
    { "but not for a third", 256, 0, 2, true, SCHED_WAIT },
};

static bool like_those(void *ctx, int trial)
{
    return trial == SCHED_ANY && *(const bool *)ctx;
}

static void test_what_learns_is_asked_for_what_there_will_be_room_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(learning); i++) {
        struct sched s = { .parallel = learning[i].parallel, .learns = true, .ending = learning[i].ending };
        bool room = learning[i].room;
        int trial = 0;
        assert_int_equal(add(&s, 1, TRIAL_RUNNING, 0), 0);
        for (int k = 0; k < learning[i].waiting; k++)
            assert_int_equal(add(&s, 2 + k, TRIAL_WAITING, 0), 0);
        enum sched_verb got = sched_next(&s, like_those, &room, &trial);
        if (got != learning[i].want)
            fail_msg("%s: got verb %d, want %d", learning[i].name, (int)got, (int)learning[i].want);
        sched_done(&s);
    }
}

static void test_add_changes_nothing_when_memory_is_out(void **state)
{
    (void)state;
    struct sched s = { .parallel = 1 };
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 8);
        fault_arm(FAULT_ALLOC, nth);
        rc = add(&s, 1, TRIAL_WAITING, 0);
        fault_disarm();
        assert_int_equal(s.n, rc == 0);
        assert_int_equal(s.made, rc == 0);
    }
    sched_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_decides),
        cmocka_unit_test(test_ended_tells_the_new_state),
        cmocka_unit_test(test_names_read_back),
        cmocka_unit_test(test_many_trials_stay_sorted),
        cmocka_unit_test(test_sched_packs),
        cmocka_unit_test(test_no_more_is_asked_for_than_could_be_needed),
        cmocka_unit_test(test_added_points_are_asked_for_at_once),
        cmocka_unit_test(test_extra_trials_are_asked_for_when_the_search_has_ended),
        cmocka_unit_test(test_what_learns_is_asked_for_what_there_will_be_room_for),
        cmocka_unit_test(test_add_changes_nothing_when_memory_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
