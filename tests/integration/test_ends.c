/* How attempts end, and what becomes of their trials: failures, kills from outside, a broken environment; and trying again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define TRIALS "SELECT number, state FROM trials ORDER BY number"
#define ATTEMPTS "SELECT outcome FROM attempts ORDER BY trial, number"

static void expect_exit(const char *name, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, want %d\n%s%s", name, o.code, code, o.out, o.err);
    harness_output_done(&o);
}

static void write_config(const struct world *w, const char *hyper)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 },\n  %s }\n", hyper);
    harness_write(w->dir, "c.conf", buf_text(&b));
}

static void one_trial(const struct world *w)
{
    write_config(w, "\"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] }");
}

/* The first `times` submissions of this world do `what`, the others train. */
static void submissions(const struct world *w, int times, const char *what)
{
    AUTO_FREE char *fake = harness_program("tests/integration/fake-spark-submit");
    AUTO_BUF struct buf b = BUF_INIT;
    (void)unlink("spark/bin/spark-submit");
    (void)unlink("tries");
    buf_printf(&b,
               "#!/bin/sh\necho x >>\"$PIPETUNE_WORLD/tries\"\n"
               "if [ $(wc -l <\"$PIPETUNE_WORLD/tries\") -le %d ]; then\n%s\nfi\nexec '%s' \"$@\"\n",
               times, what, fake);
    world_script(w, "spark/bin/spark-submit", buf_text(&b));
}

#define WARNS "echo '2026-11-18 10:00:00.000 WARN DataSet: java.io.FileNotFoundException: /cache (harmless)' >&2\n"
#define KILLED "kill -9 $$"

static const struct {
    const char *name;
    int times;
    const char *what, *args[3];
    int code;
    const char *trial, *attempts, *reason; /* reason: LIKE */
} ends[] = {
    { "a warning and a kill", 1, WARNS KILLED, { 0 }, 0, "finished", "killed finished", NULL },
    { "a warning and a failure", 1, WARNS "exit 1", { 0 }, 0, "finished", "failed finished", NULL },
    { "an error and a kill: what is in the log is not what it died of",
      1,
      "echo '2026-11-18 10:00:00.000 ERROR X: java.io.FileNotFoundException: /cache' >&2\n" KILLED,
      { 0 },
      0,
      "finished",
      "killed finished",
      NULL },
    { "kills cost no retry",
      4,
      KILLED,
      { "--retries", "0" },
      0,
      "finished",
      "killed killed killed killed finished",
      NULL },
    { "a JVM that is told to end by others",
      1,
      "exit 143",
      { "--retries", "0" },
      0,
      "finished",
      "killed finished",
      NULL },
    { "who is always killed is lost",
      99,
      KILLED,
      { "--retries", "0" },
      1,
      "failed",
      "killed killed killed killed killed",
      "killed from outside by signal 9 (KILL)%" },
    { "what a program brings upon itself is a failure",
      1,
      "kill -11 $$",
      { "--retries", "0" },
      1,
      "failed",
      "failed",
      "was killed by signal 11%" },
    { "an environment that is broken once",
      1,
      "echo 'Error: Failed to load class a.B.' >&2; exit 101",
      { "--retries", "0" },
      0,
      "finished",
      "doubted_environment finished",
      NULL },
    { "an environment that is broken",
      99,
      "echo 'Error: Failed to load class a.B.' >&2; exit 101",
      { 0 },
      3,
      "waiting",
      "doubted_environment environment",
      "class_missing:%" },
    { "one that is broken in another way each time",
      99,
      "case $(wc -l <\"$PIPETUNE_WORLD/tries\") in 2) echo 'java.nio.file.NoSuchFileException: /d' >&2;; "
      "*) echo 'Error: Failed to load class a.B.' >&2;; esac; exit 1",
      { 0 },
      3,
      "waiting",
      "doubted_environment doubted_environment environment",
      NULL },
    { "two failures alike are enough, and the last word is the reason",
      99,
      "echo 'usage: a.py [-h] --batch N'; echo 'a.py: error: the batch is odd'; exit 2",
      { 0 },
      1,
      "failed",
      "failed failed",
      "ended with exit code 2 after 0 of 2 epochs: a.py: error: the batch is odd, see %" },
    { "two that differ are not",
      99,
      "echo \"a.py: error: try $(wc -l <\"$PIPETUNE_WORLD/tries\")\"; exit 2",
      { 0 },
      1,
      "failed",
      "failed failed failed",
      "%try 3%" },
};

static void test_what_becomes_of_an_attempt(void **state)
{
    struct world *w = *state;
    one_trial(w);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const char *const *a = ends[i].args;
        (void)unlink("pipetune.db");
        submissions(w, ends[i].times, ends[i].what);
        expect_exit(ends[i].name, RUN(w, "run", "c.conf", a[0], a[1]), ends[i].code);
        harness_expect_rows(ends[i].name, "pipetune.db", "SELECT state FROM trials", ends[i].trial);
        harness_expect_rows(ends[i].name, "pipetune.db", ATTEMPTS, ends[i].attempts);
        AUTO_FREE char *like = NULL;
        assert_true(asprintf(&like, "SELECT reason FROM trials WHERE reason NOT LIKE '%s'",
                             ends[i].reason ? ends[i].reason : "%") > 0);
        harness_expect_rows(ends[i].name, "pipetune.db", like, "");
    }
}

/* What the kernel kills for want of memory dies again: it is a failure. The note is written by hand, since memory is not to be full. */
static void test_a_kill_for_want_of_memory_is_a_failure(void **state)
{
    struct world *w = *state;
    one_trial(w);
    submissions(w, 1, "touch \"$PIPETUNE_WORLD/on\"; sleep 0.5; " KILLED);
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait_file(w->dir, "on", HARNESS_MS));
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)harness_exit_code(pid, HARNESS_MS);
    assert_true(harness_wait_file(w->dir, "pipetune.d/s/1/exit", HARNESS_MS));
    AUTO_FREE char *note = harness_read(w->dir, "pipetune.d/s/1/exit");
    char *kills = strstr(note, "oom_kills=0 ");
    assert_non_null(kills);
    kills[strlen("oom_kills=")] = '1';
    harness_write(w->dir, "pipetune.d/s/1/exit", note);
    expect_exit("another attempt", RUN(w, "run", "c.conf"), 0);
    harness_expect_rows("attempts", "pipetune.db", ATTEMPTS, "failed finished");
    harness_expect_rows("why", "pipetune.db",
                        "SELECT count(*) FROM attempts WHERE cause LIKE 'out_of_memory: the kernel killed it%'", "1");
}

/* --- trying again ------------------------------------------------------------------------------------------------------ */

static void two_trials(const struct world *w);

static void expect_output(const char *name, struct harness_output o, int code, const char *out, const char *err)
{
    if (o.code != code || !strstr(o.out, out) || !strstr(o.err, err))
        fail_msg("%s: got exit %d, '%s' and '%s', want %d, '%s' and '%s'", name, o.code, o.out, o.err, code, out, err);
    harness_output_done(&o);
}

#define STATES "SELECT state FROM studies"

static void test_a_lost_trial_is_told_and_tried_again(void **state)
{
    struct world *w = *state;
    two_trials(w);
    expect_output("no store", RUN(w, "retry", "s"), 3, "", "pipetune.db");
    assert_int_not_equal(access("pipetune.db", F_OK), 0);
    submissions(w, 5, KILLED);
    expect_output("one is lost", RUN(w, "run", "c.conf"), 0, "study s: incomplete",
                  "1 trial of study 's' failed: its table says why; 'pipetune retry s' has it tried again");
    harness_expect_rows("the study says so", "pipetune.db", STATES, "incomplete");
    expect_output("and so does ls", RUN(w, "ls", "--json"), 0, "\"state\": \"incomplete\"", "");
    expect_output("a trial that finished", RUN(w, "retry", "s/2"), 2, "", "s/2 cannot be tried again: it is finished");
    expect_output("one that is none", RUN(w, "retry", "s/9"), 2, "", "there is no trial s/9");
    expect_output("no study", RUN(w, "retry", "t"), 2, "", "no study 't'");
    expect_output("nothing said", RUN(w, "retry"), 2, "", "which study");
    harness_expect_rows("all of which changes nothing", "pipetune.db", STATES, "incomplete");
    expect_output("the lost one", RUN(w, "retry", "s", "--json"), 0, "\"trials\": [\n    1\n  ]", "");
    harness_expect_rows("waits", "pipetune.db", TRIALS, "1|waiting 2|finished");
    harness_expect_rows("the study is open", "pipetune.db", "SELECT state, ended_ms FROM studies", "running|0");
    harness_expect_rows("the story", "pipetune.db", "SELECT trial FROM decisions WHERE kind = 'retry'", "1");
    submissions(w, 4, KILLED);
    expect_exit("kills are counted anew", RUN(w, "run", "c.conf"), 0);
    harness_expect_rows("finished", "pipetune.db", TRIALS, "1|finished 2|finished");
    harness_expect_rows("the study, too", "pipetune.db", STATES, "finished");
    expect_output("none is left", RUN(w, "retry", "s"), 0, "no trial of study s has failed", "");
    harness_expect_rows("which leaves it as it is", "pipetune.db", STATES, "finished");
}

static void test_failures_are_counted_anew_after_a_retry(void **state)
{
    struct world *w = *state;
    two_trials(w);
    submissions(w, 99, "echo 'a.py: error: odd'; exit 2");
    expect_exit("all fail", RUN(w, "run", "c.conf"), 1);
    harness_expect_rows("the study", "pipetune.db", STATES, "failed");
    expect_output("one of them", RUN(w, "retry", "s/2"), 0, "to be tried again: s/2;", "");
    submissions(w, 1, "echo 'a.py: error: odd'; exit 2");
    expect_exit("it has its retries again", RUN(w, "run", "c.conf"), 0);
    harness_expect_rows("the other is left alone", "pipetune.db", TRIALS, "1|failed 2|finished");
    harness_expect_rows("attempts", "pipetune.db", ATTEMPTS, "failed failed failed failed failed finished");
}

static size_t lines_of_tries(const char *dir)
{
    AUTO_FREE char *text = harness_read(dir, "tries");
    return text ? harness_count(text, "\n") : 0;
}

static bool has_tried(void *arg)
{
    const struct world *w = arg;
    return lines_of_tries(w->dir) > 0;
}

static void test_what_is_being_run_is_not_tried_again(void **state)
{
    struct world *w = *state;
    two_trials(w);
    submissions(w, 1, "sleep 60");
    pid_t pid = START(w, -1, "run", "c.conf");
    assert_true(harness_wait(has_tried, w, HARNESS_MS));
    expect_output("driven", RUN(w, "retry", "s"), 0, "no trial of study s has failed", "");
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
}

/* --- a metric that never comes ------------------------------------------------------------------------------------------ */

#define LINE "2026-11-18 10:00:0%d.000 INFO DistriOptimizer$: [Epoch %d 60/60][Iteration %d][Wall Clock 1.0s] "
#define TRAINED "Trained 60.0 records in 1.0 seconds. Throughput is 60.0 records/second. Loss is 2.0. \n"
#define FINISHED "Epoch finished. Wall clock time is 1100.0 ms\n"
#define MAE "MAE is (MAE: 4.0, count: 10, Average MAE: 0.5)\n"

/* An application of `epochs` epochs, which validates after each `every`-th of them (0: never). */
static void validates(const struct world *w, int epochs, int every)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "cat >&2 <<'X'\n");
    for (int i = 1; i <= epochs; i++) {
        buf_printf(&b, LINE TRAINED, i, i, i);
        buf_printf(&b, LINE FINISHED, i, i, i);
        if (every && i % every == 0)
            buf_printf(&b, LINE MAE, i, i, i);
    }
    buf_puts(&b, "X\nsleep 0.2\nexit 0");
    submissions(w, 99, buf_text(&b));
}

static void two_trials(const struct world *w)
{
    write_config(w, WORLD_HYPER);
}

static void expect_no_metric(const char *name, struct harness_output o, const char *words)
{
    const char *last = strstr(o.err, ": metric '");
    if (o.code != 2 || !last || !strstr(last, words) || harness_count(last, "\n") != 1)
        fail_msg("%s: got exit %d and '%s', want 2 and a line with '%s'", name, o.code, o.err, words);
    harness_output_done(&o);
}

static void test_a_metric_that_never_comes_ends_the_study(void **state)
{
    struct world *w = *state;
    two_trials(w);
    (void)setenv("FAKE_EPOCH_MS", "100", 1);
    expect_no_metric(
        "a slip of the pen", RUN(w, "run", "c.conf", "--metric", "accurcy", "--epochs", "40"),
        "metric 'accurcy' is not reported by trial 1: there is Top1Accuracy, Loss; did you mean 'accuracy'?");
    harness_expect_rows("soon", "pipetune.db", "SELECT count(*) < 10 FROM epochs", "1");
    harness_expect_rows("to be gone on with", "pipetune.db",
                        "SELECT count(*) FROM trials WHERE state NOT IN ('interrupted', 'waiting')", "0");
    harness_expect_rows("the study, too", "pipetune.db", "SELECT state FROM studies", "running");
    expect_no_metric("nothing near", RUN(w, "run", "c.conf", "--name", "s", "--again", "--metric", "throughput"),
                     "give one of them as --metric");
    assert_int_equal(world_trials(w), 0);
}

static const struct {
    const char *name, *metric;
    int every;
    const char *words; /* NULL: it is measured */
    const char *trials;
} validations[] = {
    { "a name in another case", "mae", 1, NULL, "1|finished 2|finished" },
    { "a validation that is rarer than epochs", "MAE", 2, NULL, "1|finished 2|finished" },
    { "the training's loss, without any validation", "loss", 0, NULL, "1|finished 2|finished" },
    { "a name that is not in the first figures", "RMSE", 2, "there is MAE, loss; give one of them", NULL },
    { "no validation at all", "accuracy", 0, "metric 'accuracy' is not reported by trial 1: there is loss; give one",
      "1|finished 2|waiting" },
};

static void test_a_metric_is_looked_for_among_the_first_figures(void **state)
{
    struct world *w = *state;
    two_trials(w);
    for (size_t i = 0; i < ARRAY_LEN(validations); i++) {
        const char *metric = validations[i].metric;
        (void)unlink("pipetune.db");
        validates(w, 2, validations[i].every);
        struct harness_output o = RUN(w, "run", "c.conf", "--metric", metric, "--direction", "min");
        if (validations[i].words)
            expect_no_metric(validations[i].name, o, validations[i].words);
        else
            expect_exit(validations[i].name, o, 0);
        if (validations[i].trials)
            harness_expect_rows(validations[i].name, "pipetune.db", TRIALS, validations[i].trials);
    }
}

/* What an earlier run has seen need not be seen again: a trial that goes on may have no validation left. */
static void test_a_metric_that_was_reported_once_is_there(void **state)
{
    struct world *w = *state;
    two_trials(w);
    validates(w, 2, 1);
    expect_exit("first", RUN(w, "run", "c.conf", "--metric", "MAE", "--direction", "min", "--max-trials", "1"), 0);
    validates(w, 2, 0);
    expect_exit("second", RUN(w, "run", "c.conf", "--metric", "MAE", "--direction", "min", "--max-trials", "2"), 0);
    (void)unlink("pipetune.db");
    validates(w, 3, 2); /* … and so may the last epoch of the one that had it */
#define RARER "run", "c.conf", "--metric", "MAE", "--direction", "min", "--epochs", "3", "--max-trials"
    expect_exit("rarer than epochs", RUN(w, RARER, "1"), 0);
    harness_expect_rows("the last one there was", "pipetune.db", "SELECT metric FROM trials", "0.5");
    validates(w, 3, 0);
    expect_exit("rarer, second", RUN(w, RARER, "2"), 0);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_what_becomes_of_an_attempt),
        ROW(test_a_kill_for_want_of_memory_is_a_failure),
        ROW(test_a_lost_trial_is_told_and_tried_again),
        ROW(test_failures_are_counted_anew_after_a_retry),
        ROW(test_what_is_being_run_is_not_tried_again),
        ROW(test_a_metric_that_never_comes_ends_the_study),
        ROW(test_a_metric_is_looked_for_among_the_first_figures),
        ROW(test_a_metric_that_was_reported_once_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
