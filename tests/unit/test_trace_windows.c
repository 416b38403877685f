#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "core/tuner_log.h"
#include "store/trace_windows.h"
#include "tests/fault.h"

#define AUTO_WINDOWS __attribute__((cleanup(trace_windows_done)))
#define HEAD "H 1 pipetune 3 0.1 0.01 0.01 3 2 4 8 2 0.5 4\n"
#define LAUNCH "L 1 \"c 32\" null 0 1 3 1\n"
#define START HEAD LAUNCH "s 1 0 0 1 \"c 32\" null 1 3 3 1 0\n"

/* All lines of a text. */
static int feed(struct trace_windows *w, const char *text)
{
    int rc = 0;
    for (size_t len; rc == 0 && *text; text += len + 1) {
        len = strcspn(text, "\n");
        char *line = strndup(text, len);
        rc = line ? trace_windows_line(w, line) : -1;
        free(line);
    }
    return rc;
}

/* "1.2 4@0.5 +10 3s 32": trial.epoch cores@memory, its begin, how long, how many records; one per stretch. */
static void put(struct buf *b, const struct trace_windows *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct trace_stretch *s = &w->list[i];
        buf_printf(b, "%s%d.%d %g@%g +%g %gs %g", i ? ", " : "", s->trial, s->epoch, s->cores, s->memory_gb, s->from_s,
                   s->seconds, s->records);
    }
}

static void test_what_was_told_becomes_windows(void **state)
{
    (void)state;
    static const struct {
        const char *name, *log, *want;
    } cases[] = {
        { "nothing is told", "", "" },
        { "steps of one setting are one window", START "i 1 0 1 2 32 640\ni 1 3 1 3 32 640\n", "1.1 2@4 +0 5s 64" },
        { "each epoch has its own", START "i 1 0 1 2 32 64\ni 1 3 1 3 32 64\ne 1 3 1 5 64\ni 1 10 2 3 32 64\n",
          "1.1 2@4 +0 5s 64, 1.2 2@4 +0 3s 32" },
        { "another setting begins another",
          START "i 1 0 1 2 32 640\na 1 0.5 2 1\ni 1 1 1 1 32 640\na 1 1.5 0 1\ni 1 3 1 2 32 640\n",
          "1.1 2@4 +0 2s 32, 1.1 8@4 +2 1s 32, 1.1 2@4 +3 2s 32" },
        { "the same setting again does not", START "i 1 0 1 2 32 640\na 1 0.5 0 1\ni 1 2 1 2 32 640\n",
          "1.1 2@4 +0 4s 64" },
        { "a setting between epochs is the next one's", START "i 1 0 1 2 32 32\na 1 1 1 0\ni 1 9 2 2 32 32\n",
          "1.1 2@4 +0 2s 32, 1.2 4@0.5 +0 2s 32" },
        { "what is void ends a window", START "i 1 0 1 2 32 640\nb 1 0\ni 1 4 1 2 32 640\n",
          "1.1 2@4 +0 2s 32, 1.1 2@4 +4 2s 32" },
        { "two trials at once keep apart",
          START "s 2 0 2 0 \"d\" null 1 3 3 1 0\ni 1 0 1 2 32 64\ni 2 0 1 1 8 64\ni 1 2 1 2 32 64\ni 2 1 1 1 8 64\n",
          "1.1 2@4 +0 4s 64, 2.1 8@0.5 +0 2s 16" },
        { "an attempt that was cut short has told nothing of what is trained again",
          START "i 1 0 1 2 32 32\ni 1 4 2 2 30 32\nx 1 4\n" LAUNCH "s 1 0 1 1 \"c\" null 2 3 3 1 0\ni 1 0 2 1 32 32\n",
          "1.1 2@4 +0 2s 32, 1.2 4@4 +0 1s 32" },
        { "one that begins anew voids all of it",
          START "i 1 0 1 2 32 32\ni 1 4 2 2 30 32\nx 1 4\n" LAUNCH "s 1 0 1 1 \"c\" null 1 3 3 1 0\ni 1 0 1 1 32 32\n",
          "1.1 4@4 +0 1s 32" },
        { "another trial's launch voids nothing",
          START "i 1 0 1 2 32 64\nL 2 \"c\" null 0 0 3 1\ni 1 1 1 1 32 64\ns 2 0 0 0 \"c\" null 1 3 3 1 0\n"
                "i 2 0 1 1 32 32\ni 1 2 1 1 32 64\n",
          "1.1 2@4 +0 4s 96, 2.1 2@0.5 +0 1s 32" },
        { "a driver that met it again goes on, by another clock",
          START "i 1 0 1 2 32 96\nx 1 0\ns 1 0 0 1 \"c\" null 1 3 3 1 0\ni 1 0 1 2 32 96\ni 1 9 2 1 32 32\n",
          "1.1 2@4 +0 2s 32, 1.1 2@4 +nan 2s 32, 1.2 2@4 +0 1s 32" },
        { "a new head has other settings",
          START "i 1 0 1 2 32 64\nH 1 paper 3 0.1 0.01 0.01 1 16 1 0\n"
                "i 1 1 1 1 32 64\ns 1 0 0 0 \"c\" null 2 3 1 1 0\ni 1 0 2 1 32 32\n",
          "1.1 2@4 +0 2s 32, 1.2 16@0 +0 1s 32" },
        { "steps of nobody tell nothing", HEAD "i 1 0 1 2 32 64\n", "" },
        { "nor do those of a trial that has ended", START "d 1 0\ni 1 0 1 2 32 64\n", "" },
        { "nor a setting that does not exist", START "a 1 0 3 0\na 1 0 0 2\na 1 0 -1 0\ni 1 0 1 2 32 64\n",
          "1.1 2@4 +0 2s 32" },
        { "nor a start with one", HEAD "s 1 0 7 0 \"c\" null\ni 1 0 1 2 32 64\n", "" },
        { "nor a log without a head", LAUNCH "s 1 0 0 0 \"c\" null\ni 1 0 1 2 32 64\n", "" },
        { "nor a head cut short", "H 1 pipetune 3 0.1 0.01 0.01 3 2 4\ns 1 0 0 0 \"c\" null\ni 1 0 1 2 32 64\n", "" },
        { "nor one with more settings than there can be",
          "H 1 pipetune 3 0.1 0.01 0.01 99 2 4\ns 1 0 0 0 \"c\" null\ni 1 0 1 2 32 64\n", "" },
        { "nor what is no entry",
          START "i\ni 1\ni x\n\ni 1 0 1 2\ni 1 0 nan 2 3 4\ni 1 0 0 2 3 4\ni 1e99 0 1 2 3 4\nz 1\nH\n", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_WINDOWS struct trace_windows w = { 0 };
        AUTO_BUF struct buf got = BUF_INIT;
        assert_int_equal(feed(&w, cases[i].log), 0);
        put(&got, &w);
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, buf_text(&got), cases[i].want);
    }
}

/* The same through the module that writes the log, so that both mean the same words. */
static void test_the_log_is_read_as_it_is_written(void **state)
{
    (void)state;
    const struct tuner_space space = { .n_hot = 3, .n_cold = 1, .cores = { 2, 8, 8 }, .memory = { 4 } };
    const struct tuner_cfg cfg = { 3, 0.1, 0.01, 0.01 };
    const struct tuner_ask ask = { .trial = 5, .class_key = "a \"b\"\n7 8 9", .n_hot = 3 };
    const struct tuner_event events[] = {
        { .kind = EV_TRIAL_STARTED, .trial = 5, .class_key = "k", .setting = { 1, 0 }, .epoch = 1, .epochs = 2 },
        { .kind = EV_ITERATION, .trial = 5, .t_s = 1, .epoch = 1, .seconds = 0.5, .records = 64, .epoch_records = 128 },
        { .kind = EV_LOAD, .trial = 5, .t_s = 1, .waiting = 3, .n_hot = 3 },
        { .kind = EV_TICK, .trial = 5, .t_s = 1 },
        { .kind = EV_APPLIED, .trial = 5, .t_s = 1.5, .setting = { 0, 0 } },
        { .kind = EV_ITERATION, .trial = 5, .t_s = 2, .epoch = 1, .seconds = 1, .records = 64, .epoch_records = 128 },
        { .kind = EV_FAILED, .trial = 5, .t_s = 2, .setting = { 2, 0 }, .infeasible = true },
        { .kind = EV_EPOCH, .trial = 5, .t_s = 2, .epoch = 1, .seconds = 1.5, .records = 128 },
        { .kind = EV_BREAK, .trial = 5, .t_s = 2 },
        { .kind = EV_TRIAL_ENDED, .trial = 5, .t_s = 2 },
    };
    AUTO_BUF struct buf log = BUF_INIT, got = BUF_INIT;
    tuner_log_head(&log, policy_find("pipetune"), &space, &cfg);
    tuner_log_ask(&log, &ask);
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        tuner_log_event(&log, &events[i]);
    AUTO_WINDOWS struct trace_windows w = { 0 };
    assert_int_equal(feed(&w, buf_text(&log)), 0);
    put(&got, &w);
    assert_string_equal(buf_text(&got), "5.1 8@4 +0 0.5s 64, 5.1 2@4 +0.5 1s 64");
    assert_true(w.list[0].hot == 1 && w.list[0].alike && w.list[1].hot == 0 && !w.list[1].alike);
}

static void test_windows_whatever_fails(void **state)
{
    (void)state;
    static const char *const lines[] = { "H 1 pipetune 3 0.1 0.01 0.01 1 2 1 4", "L 1 \"c\"", "s 1 0 0 0",
                                         "i 1 0 1 1 1 1" };
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_WINDOWS struct trace_windows w = { 0 };
        assert_true(nth < 16);
        rc = 0;
        fault_arm(FAULT_ALLOC, nth);
        for (size_t i = 0; rc == 0 && i < ARRAY_LEN(lines); i++)
            rc = trace_windows_line(&w, lines[i]);
        fault_disarm();
        assert_true(rc < 0 || w.n == 1);
    }
}

static void test_many_trials_and_windows(void **state)
{
    (void)state;
    AUTO_WINDOWS struct trace_windows w = { 0 };
    assert_int_equal(feed(&w, HEAD), 0);
    for (int trial = 1; trial <= 100; trial++) {
        char line[64];
        (void)snprintf(line, sizeof line, "s %d 0 0 0", trial);
        assert_int_equal(trace_windows_line(&w, line), 0);
        (void)snprintf(line, sizeof line, "i %d 1 1 1 %d 1", trial, trial);
        assert_int_equal(trace_windows_line(&w, line), 0);
    }
    assert_int_equal(w.n, 100);
    assert_true(w.list[99].trial == 100 && w.list[0].records == 1 && w.list[99].records == 100);
    trace_windows_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_told_becomes_windows),
        cmocka_unit_test(test_the_log_is_read_as_it_is_written),
        cmocka_unit_test(test_windows_whatever_fails),
        cmocka_unit_test(test_many_trials_and_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
