/* Studies of any program: heard by what it prints and what it tells, adopted, and gone on with from a checkpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "tests/integration/harness.h"

/* Trains --epochs N, a moment each; waits for the file $HOLD-K, where HOLD is set, before epoch K. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "from=0; for word; do\n"                                                                                           \
    "  case $last in --epochs) epochs=$word;; --load) from=$(cat $word) && echo \"went on from $from\" ;; esac; "      \
    "last=$word\n"                                                                                                     \
    "done\n"                                                                                                           \
    "epoch=$from; while [ $epoch -lt $epochs ]; do\n"                                                                  \
    "  epoch=$((epoch + 1))\n"                                                                                         \
    "  if [ \"$HOLD\" = $epoch ]; then touch held; until [ -e go ]; do sleep 0.02; done; fi\n"                         \
    "  sleep 0.05; tell\n"                                                                                             \
    "done\n"

/* What the script's `tell` does. */
#define PRINTS "tell() { echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1))\"; }\n"
#define TELLS                                                                                                          \
    "tell() { $PIPETUNE tell loss=0.$((9 - epoch)) accuracy=0.$((epoch + 1)) f1=$epoch --epoch $epoch\n"               \
    "  echo $epoch >c-$epoch; $PIPETUNE tell --checkpoint c-$epoch --epoch $epoch; }\n"

#define PROGRESS "\"progress\": [\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+)\"]"
#define ARGUMENTS                                                                                                      \
    "\"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"], \"checkpoint\": [],\n"           \
    "  \"resume\": [\"--load\", \"{checkpoint}\"] }"

static void write_script(const struct world *w, const char *tell)
{
    char text[4096];
    const char *begin = TRAIN;
    const char *body = strchr(begin, '\n') + 1;
    (void)snprintf(text, sizeof text, "#!/bin/sh\n%s%s", tell, body);
    world_script(w, "train.sh", text);
    (void)setenv("PIPETUNE", w->program, 1);
}

static void write_study(const struct world *w, const char *name, const char *app, const char *more)
{
    char text[2048], file[64];
    (void)snprintf(file, sizeof file, "%s.json", name);
    harness_write(w->dir, file, app);
    (void)snprintf(text, sizeof text,
                   "{ \"application\": \"%s\", \"study\": { \"name\": \"%s\", \"epochs\": 3%s },\n"
                   "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [0.1, 0.2] } }\n",
                   file, name, more);
    (void)snprintf(file, sizeof file, "%s.conf", name);
    harness_write(w->dir, file, text);
}

static void expect(const char *what, const struct harness_output *o, int code, const char *text)
{
    if (o->code != code || !strstr(code ? o->err : o->out, text))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o->code, o->out, o->err, code, text);
}

static int open_plain(void **state)
{
    if (world_open(state) < 0)
        return -1;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "HOLD" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    return 0;
}

#define EPOCHS_SQL                                                                                                     \
    "SELECT t.number, e.epoch, e.attempt, e.accuracy, e.loss FROM epochs e JOIN trials t ON t.id = e.trial"

static void a_program_is_tuned_by_what_it_prints(void **state)
{
    struct world *w = *state;
    write_script(w, PRINTS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", "");
    struct harness_output dry = RUN(w, "run", "--config", "s.conf", "--dry-run");
    expect("dry", &dry, 0, "OMP_WAIT_POLICY=passive ");
    assert_int_equal(harness_count(dry.out, "./train.sh --lr 0."), 2);
    assert_int_equal(harness_count(dry.out, "\n"), 2);
    harness_output_done(&dry);
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/2: finished: accuracy 0.4, loss 0.6");
    harness_output_done(&o);
    harness_expect_rows("epochs", "pipetune.db", EPOCHS_SQL " ORDER BY 1, 2",
                        "1|1|1|0.2|0.8 1|2|1|0.3|0.7 1|3|1|0.4|0.6 2|1|1|0.2|0.8 2|2|1|0.3|0.7 2|3|1|0.4|0.6");
    harness_expect_rows("all of them have a time", "pipetune.db", "SELECT count(*) FROM epochs WHERE seconds > 0.03",
                        "6");
    harness_expect_rows("series", "pipetune.db",
                        "SELECT name, epoch, step, value FROM series WHERE trial = 1 AND epoch = 2 ORDER BY 1",
                        "accuracy|2|0|0.3 loss|2|0|0.7");
}

/* The launcher passes the line on by the text that it must hold. */
static void a_pattern_that_is_too_slow_is_told_and_stops_nothing(void **state)
{
    struct world *w = *state;
    write_script(w,
                 "tell() { [ $epoch -gt 1 ] || echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n"
                 "  echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1))\"; }\n");
    write_study(w, "s",
                "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", \"progress\": [\"^(?:(?:a+)+)+(?<slow>\\\\d)$\",\n"
                "  \"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+)\"] }",
                "");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/2: finished: accuracy 0.4, loss 0.6");
    if (harness_count(o.out, "takes too long on what is printed") != 1)
        fail_msg("it was not told once: %s%s", o.out, o.err);
    harness_output_done(&o);
}

static void a_program_is_tuned_by_what_it_tells(void **state)
{
    struct world *w = *state;
    write_script(w, TELLS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS " }", ", \"metric\": \"f1\"");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/2: finished");
    harness_output_done(&o);
    harness_expect_rows("epochs", "pipetune.db",
                        "SELECT epoch, metric, accuracy FROM epochs WHERE trial = 2 ORDER BY 1",
                        "1|1.0|0.2 2|2.0|0.3 3|3.0|0.4");
    harness_expect_rows("the two newest checkpoints are known", "pipetune.db",
                        "SELECT epoch FROM checkpoints WHERE trial = 1 ORDER BY 1", "2 3");
    struct harness_output best = RUN(w, "best", "s", "--checkpoint");
    expect("best", &best, 0, "/c-3\n");
    harness_output_done(&best);
}

/* What is told of each epoch, on which CPUs it was. */
#define ON_CPUS                                                                                                        \
    "tell() { nproc >>cpus; sed -n 's/Cpus_allowed_list://p' /proc/self/status >>list-$lr; touch at-$lr\n"             \
    "  until [ $beside = no -o \\( -e at-0.1 -a -e at-0.2 \\) ]; do sleep 0.02; done\n"                                \
    "  echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1))\"; }\n"                                   \
    "for word; do case $before in --lr) lr=$word;; esac; before=$word; done\n"

static void expect_held(const struct world *w, const char *policy, const char *parallel)
{
    AUTO_FREE char *path = harness_path(w->dir, "cpus");
    (void)remove(path);
    struct harness_output o =
        RUN(w, "run", "--config", "s.conf", "--name", policy, "--policy", policy, "--parallel", parallel);
    expect(policy, &o, 0, "/2: finished: accuracy 0.4, loss 0.6");
    harness_output_done(&o);
    AUTO_FREE char *cpus = harness_read(w->dir, "cpus");
    if (strcmp(cpus, "1\n1\n1\n1\n1\n1\n") != 0)
        fail_msg("policy %s: CPUs by epoch: %s", policy, cpus);
}

/* A program is kept to its cores by nothing but the CPUs that it may run on. */
static void cores_of_a_program_are_cpus_under_every_policy(void **state)
{
    static const char *const policies[] = { "v1", "v2", "pipetune" };
    struct world *w = *state;
    write_script(w, "beside=no\n" ON_CPUS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", "");
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        expect_held(w, policies[i], "1");
    harness_expect_rows("in force", "pipetune.db", "SELECT DISTINCT effective FROM trials", "{\"cores\": 1}");
}

static void programs_beside_each_other_have_cpus_of_their_own(void **state)
{
    struct world *w = *state;
    write_script(w, "beside=yes\n" ON_CPUS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", "");
    expect_held(w, "v1", "2");
    AUTO_FREE char *first = harness_read(w->dir, "list-0.1");
    AUTO_FREE char *second = harness_read(w->dir, "list-0.2");
    assert_string_not_equal(first, second);
}

/* Epochs 1 to 3 have accuracies of 0.2 to 0.4. */
static void expect_end(const struct world *w, const char *name, const char *option, const char *value, const char *told,
                       const char *trials)
{
    char sql[256];
    struct harness_output o = RUN(w, "run", "--config", "s.conf", "--name", name, option, value, "--parallel", "1");
    expect(name, &o, 0, told);
    harness_output_done(&o);
    (void)snprintf(sql, sizeof sql,
                   "SELECT t.number, t.state, count(e.epoch) FROM trials t LEFT JOIN epochs e ON e.trial = t.id"
                   " JOIN studies s ON s.id = t.study WHERE s.name = '%s' GROUP BY t.id ORDER BY 1",
                   name);
    harness_expect_rows(name, "pipetune.db", sql, trials);
}

/* The epoch under way is completed; what has not begun is not. */
static void a_study_ends_at_its_target_or_when_its_budget_is_used_up(void **state)
{
    struct world *w = *state;
    write_script(w, "tell() { echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1))\"; $slow; }\n"
                    "for word; do case $before-$word in --lr-0.2) slow='sleep 1';; esac; before=$word; done\n");
    write_study(w, "s",
                "{ \"command\": [\"./train.sh\"], " PROGRESS ",\n"
                "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] } }",
                "");
    expect_end(w, "target", "--target", "0.4", "the study ends: 0.4 reaches the target of 0.4", "1|finished|3");
    expect_end(w, "epochs", "--budget-epochs", "4", "the study ends: the budget of 4 epochs",
               "1|finished|3 2|stopped|1");
    expect_end(w, "launches", "--budget-launches", "1", "the study ends: the budget of 1 launches is used up",
               "1|finished|3");
    expect_end(w, "joules", "--budget-joules", "1", "joules/2: finished", "1|finished|3 2|finished|3");
    harness_expect_rows("it is told", "pipetune.db", "SELECT count(*) FROM decisions WHERE kind = 'close'", "2");
    harness_expect_rows("all are over", "pipetune.db", "SELECT DISTINCT state FROM studies", "finished");
}

static pid_t start_held(const struct world *w)
{
    (void)setenv("HOLD", "3", 1);
    pid_t driver = START(w, -1, "run", "--config", "s.conf", "--max-trials", "1");
    if (!harness_wait_file(w->dir, "held", HARNESS_MS))
        fail_msg("epoch 3 never began");
    return driver;
}

static void a_driver_that_is_killed_loses_no_epoch(void **state)
{
    struct world *w = *state;
    write_script(w, TELLS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS " }", "");
    pid_t driver = start_held(w);
    assert_int_equal(kill(driver, SIGKILL), 0);
    (void)harness_exit_code(driver, HARNESS_MS);
    harness_write(w->dir, "go", ""); /* the third epoch is told while nobody listens */
    struct harness_output o = RUN(w, "run", "--config", "s.conf", "--max-trials", "1");
    expect("run", &o, 0, "s/1: finished: accuracy 0.4, loss 0.6");
    harness_output_done(&o);
    harness_expect_rows("each epoch once, in one attempt", "pipetune.db", EPOCHS_SQL " ORDER BY 2",
                        "1|1|1|0.2|0.8 1|2|1|0.3|0.7 1|3|1|0.4|0.6");
}

static void a_trial_goes_on_from_the_checkpoint_that_it_told_of(void **state)
{
    struct world *w = *state;
    write_script(w, TELLS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS " }", "");
    pid_t driver = start_held(w);
    assert_int_equal(kill(driver, SIGINT), 0);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 130);
    (void)unsetenv("HOLD");
    struct harness_output o = RUN(w, "run", "--config", "s.conf", "--max-trials", "1");
    expect("run", &o, 0, "s/1: finished: accuracy 0.4, loss 0.6");
    harness_output_done(&o);
    harness_expect_rows("the third epoch is of the second attempt", "pipetune.db", EPOCHS_SQL " ORDER BY 2",
                        "1|1|1|0.2|0.8 1|2|1|0.3|0.7 1|3|2|0.4|0.6");
    AUTO_FREE char *log = harness_read(w->dir, "pipetune.d/s/1/log");
    assert_non_null(strstr(log, "went on from 2\n"));
}

static void a_metric_that_never_comes_ends_the_study(void **state)
{
    struct world *w = *state;
    write_script(w, PRINTS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", ", \"metric\": \"acuracy\"");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 2,
           "metric 'acuracy' is not reported by trial 1: there is accuracy, loss; did you mean 'accuracy'?");
    harness_output_done(&o);
}

/* It would never come to a rung, and each trial would fail. */
static void a_stop_rule_over_a_program_that_tells_no_epochs_ends_the_study(void **state)
{
    static const char *const rules[] = { "median", "halving", "hyperband", "curves" };
    struct world *w = *state;
    world_script(w, "train.sh", "#!/bin/sh\necho x >>ran; echo well done\n");
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS " }", "");
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        char words[64];
        (void)unlink("ran");
        (void)snprintf(words, sizeof words, "stop rule '%s' goes by epochs, and trial ", rules[i]);
        struct harness_output o =
            RUN(w, "run", "--config", "s.conf", "--name", rules[i], "--stop", rules[i], "--parallel", "1");
        expect(rules[i], &o, 2, words);
        expect(rules[i], &o, 2, "(docs/applications.md)");
        if (harness_count(o.err, "\n") != 1)
            fail_msg("%s: want one line, got %s", rules[i], o.err);
        harness_output_done(&o);
        AUTO_FREE char *ran = harness_read(w->dir, "ran");
        assert_string_equal(ran, "x\n"); /* once, and no other trial */
    }
    harness_expect_rows("to be gone on with", "pipetune.db", "SELECT DISTINCT state FROM studies", "running");
    struct harness_output o =
        RUN(w, "run", "--config", "s.conf", "--name", "whole", "--stop", "none", "--max-trials", "1");
    expect("without a rule a trial fails", &o, 1, "no trial of study 'whole' finished");
    harness_output_done(&o);
}

/* The first reaches 0.5 slowly, the second the target at once: the first is the best that was trained to its end. */
#define TWO_RATES                                                                                                      \
    "#!/bin/sh\nfor word; do case $before-$word in --lr-0.2) fast=1;; --epochs-*) epochs=$word;; esac; "               \
    "before=$word; done\n"                                                                                             \
    "epoch=0; while [ $epoch -lt $epochs ]; do epoch=$((epoch + 1)); sleep 0.05\n"                                     \
    "  if [ \"$fast\" ]; then [ $epoch = 3 ] && sleep 1; echo \"epoch $epoch: loss 0.1, accuracy 0.$((5 + epoch))\"\n" \
    "  else echo \"epoch $epoch: loss 0.5, accuracy 0.$((1 + epoch))\"; fi\ndone\n"

static void a_better_value_of_a_trial_that_was_stopped_is_told(void **state)
{
    static const char said[] = "s/2 had 0.7 after 2 of 3 epochs, and was stopped: 0.7 reaches the target of 0.7";
    struct world *w = *state;
    world_script(w, "train.sh", TWO_RATES);
    write_study(w, "s",
                "{ \"command\": [\"./train.sh\"], " PROGRESS ",\n"
                "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] } }",
                "");
    struct harness_output o =
        RUN(w, "run", "--config", "s.conf", "--target", "0.7", "--parallel", "1", "--stop", "none");
    expect("run", &o, 0, said);
    harness_output_done(&o);
    o = RUN(w, "best", "s");
    expect("best", &o, 0, said);
    expect("finished ones stay preferred", &o, 0, "s/1: accuracy 0.4;");
    harness_output_done(&o);
    o = RUN(w, "best", "s", "--json");
    expect("as JSON", &o, 0, "\"best_seen\": {\n    \"trial\": 2,\n    \"epoch\": 2,\n    \"value\": 0.7\n  }");
    harness_output_done(&o);
    o = RUN(w, "show", "s", "--json");
    expect("show", &o, 0, "\"best_seen\": {\"trial\": 2, \"epoch\": 2, \"value\": 0.7}");
    expect("show", &o, 0, "\"forecast\": {\"epoch\": 3, \"seen\": 2, ");
    harness_output_done(&o);
    o = RUN(w, "show", "s/2");
    expect("what it would have come to", &o, 0, "foretold for epoch 3: ");
    expect("the target", &o, 0, "target 0.7: reached at epoch 2\n");
    harness_output_done(&o);
    o = RUN(w, "run", "--config", "s.conf", "--name", "all", "--stop", "none");
    if (strstr(o.out, " had ") || strstr(o.out, "foretold"))
        fail_msg("the best is trained to its end: %s", o.out);
    harness_output_done(&o);
}

/* What a terminal got until it held the words, or, without words, until its end; false: it did not come to that. */
static bool read_terminal(int fd, struct buf *all, const char *words)
{
    char chunk[4096];
    struct pollfd p = { .fd = fd, .events = POLLIN };
    while (!words || !strstr(buf_text(all), words)) {
        if (poll(&p, 1, HARNESS_MS) <= 0)
            return false;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n <= 0) /* EIO: the other end is closed */
            return !words;
        buf_put(all, chunk, (size_t)n);
    }
    return true;
}

/* The third epoch begins when the forecast by the second is seen: nothing hangs on how fast that is. */
static void what_a_trial_will_come_to_is_shown_while_it_runs(void **state)
{
    struct world *w = *state;
    const struct winsize wide = { .ws_row = 40, .ws_col = 200 };
    AUTO_BUF struct buf seen = BUF_INIT;
    write_script(w, PRINTS);
    write_study(w, "s", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", ", \"target\": 0.99");
    (void)setenv("HOLD", "3", 1);
    int terminal = -1;
    pid_t driver = forkpty(&terminal, NULL, NULL, &wide);
    if (driver == 0) {
        execl(w->program, w->program, "run", "--config", "s.conf", "--max-trials", "1", NULL);
        _exit(127);
    }
    bool told = driver > 0 && read_terminal(terminal, &seen, "will be 0.");
    harness_write(w->dir, "go", "");
    bool ended = read_terminal(terminal, &seen, NULL);
    (void)close(terminal);
    int code = harness_exit_code(driver, HARNESS_MS);
    (void)unsetenv("HOLD");
    if (!told || !ended || code != 0 || !strstr(buf_text(&seen), "best: s/1, accuracy 0.4"))
        fail_msg("got exit %d and on the terminal: %s", code, buf_text(&seen));
}

static void what_a_program_does_not_tell_is_absent_and_not_0(void **state)
{
    struct world *w = *state;
    write_script(w, "tell() { echo \"epoch $epoch: accuracy 0.$((epoch + 1))\"; }\n");
    write_study(w, "s",
                "{ \"command\": [\"./train.sh\"], " ARGUMENTS
                ", \"progress\": [\"epoch (?<epoch>\\\\d+): accuracy (?<accuracy>\\\\S+)\"] }",
                "");
    struct harness_output o = RUN(w, "run", "--config", "s.conf", "--max-trials", "1");
    expect("run", &o, 0, "s/1: finished: accuracy 0.4");
    harness_output_done(&o);
    o = RUN(w, "show", "s/1");
    if (strstr(o.out, "iterations") || strstr(o.out, "records/s") || strstr(o.out, "loss -  "))
        fail_msg("figures that nobody told: %s", o.out);
    harness_output_done(&o);
    o = RUN(w, "show", "s/1", "--json");
    expect("json", &o, 0, "\"iterations\": null");
    harness_output_done(&o);
    o = RUN(w, "run", "--config", "s.conf", "--name", "t", "--metric", "loss");
    expect("a metric that never comes", &o, 2, "there is accuracy; give one of them");
    harness_output_done(&o);
}

static void a_program_that_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    write_study(w, "s", "{ \"command\": [\"./no-such-program\"] }", "");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    if (o.code == 0 || !strstr(o.out, "the command could not be started"))
        fail_msg("got exit %d, %s%s", o.code, o.out, o.err);
    harness_output_done(&o);
}

static void two_studies_train_beside_each_other(void **state)
{
    struct world *w = *state;
    write_script(w, PRINTS);
    static const char *const names[] = { "s", "t" };
    pid_t drivers[2];
    for (size_t i = 0; i < 2; i++) {
        char conf[16];
        (void)snprintf(conf, sizeof conf, "%s.conf", names[i]);
        write_study(w, names[i], "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }", "");
        drivers[i] = START(w, -1, "run", "--config", conf);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(harness_exit_code(drivers[i], 2 * HARNESS_MS), 0);
    harness_expect_rows("all epochs of both", "pipetune.db", "SELECT count(*), sum(accuracy) > 3.5 FROM epochs",
                        "12|1");
}

static void expect_sets(const struct world *w, int code, const char *told, const char *option, const char *file)
{
    struct harness_output o = RUN(w, "run", "--config", "c.conf", option, file, "--dry-run");
    if (o.code != code || !strstr(code ? o.err : o.out, told))
        fail_msg("got %d, %s%s, want %d, %s", o.code, o.out, o.err, code, told);
    if (!code)
        assert_int_equal(harness_count(o.out, "\n"), 4);
    harness_output_done(&o);
}

static void parameter_sets_come_from_a_file(void **state)
{
    const struct world *w = *state;
    write_script(w, PRINTS);
    harness_write(w->dir, "a.json", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }");
    world_dir(w, "sub");
    harness_write(w->dir, "sub/sets.yml", "lr: [1e-3, .5]\nepochs_more: !!python/tuple [1, 5, 2]\n");
    harness_write(w->dir, "c.conf",
                  "{ \"application\": \"a.json\", \"study\": { \"name\": \"s\", \"epochs\": 1 },\n"
                  "  \"hyperParameters\": \"sub/sets.yml\" }\n");
    expect_sets(w, 0, "--lr 0.001 --epochs 1", "--policy", "v1");
    expect_sets(w, 0, "--epochs_more=3", "--parameters", "sub/sets.yml");
    expect_sets(w, 2, "no file of parameter sets 'none.yml': looked in the working directory and in '.'",
                "--parameters", "none.yml");
    harness_write(w->dir, "bad.yml", "lr: 0.1\n\nlr_decay: yes\n");
    expect_sets(w, 2, "bad.yml' line 3: 'lr_decay' has the value yes, which is a truth value in YAML", "--parameters",
                "bad.yml");
    harness_write(w->dir, "bad.yml", "lr: 0.1\n\nepoch_number: [1, 1]\n");
    expect_sets(w, 2, "bad.yml' line 3: 'hyperParameters.epoch_number.1'", "--parameters", "bad.yml");
}

static void what_is_in_the_sets_is_part_of_the_study(void **state)
{
    const struct world *w = *state;
    write_script(w, PRINTS);
    harness_write(w->dir, "a.json", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }");
    harness_write(w->dir, "sets.yml", "lr: [0.1, 0.2]\n");
    harness_write(w->dir, "c.conf",
                  "{ \"application\": \"a.json\", \"study\": { \"name\": \"s\", \"epochs\": 1 },\n"
                  "  \"hyperParameters\": \"sets.yml\" }\n");
    struct harness_output o = RUN(w, "run", "c.conf");
    expect("begun", &o, 0, "s/2: finished");
    harness_output_done(&o);
    harness_expect_rows("trials", "pipetune.db", "SELECT hyper FROM trials ORDER BY id", "{\"lr\": 0.1} {\"lr\": 0.2}");
    harness_write(w->dir, "other.yml", "# the same by another name\nlr: [0.1, 2e-1]\n");
    o = RUN(w, "run", "c.conf", "--parameters", "other.yml");
    expect("the same by another name", &o, 0, "study s, going on");
    harness_output_done(&o);
    harness_write(w->dir, "sets.yml", "lr: [0.1, 0.3]\n");
    o = RUN(w, "run", "c.conf");
    expect("changed", &o, 2, "hyperParameters.lr");
    harness_output_done(&o);
    harness_write(w->dir, "c.conf",
                  "{ \"application\": \"a.json\", \"hyperParameters\": { \"lr\": [1] },\n"
                  "  \"parameters\": \"sets.yml\" }\n");
    o = RUN(w, "run", "c.conf", "--dry-run");
    expect("both", &o, 2, "line 2: 'parameters' is there beside 'hyperParameters': keep one of them");
    harness_output_done(&o);
}

static void expect_hosts(const struct world *w, const char *what, const char *hosts, int code, const char *text)
{
    struct harness_output o = hosts ? RUN(w, "run", "c.conf", "--hosts", hosts) : RUN(w, "run", "c.conf");
    expect(what, &o, code, text);
    harness_output_done(&o);
}

static void hosts_are_said_once(void **state)
{
    const struct world *w = *state;
    static const char nodes[] = "SELECT json_extract(config, '$.nodes') FROM studies";
    (void)setenv("PIPETUNE_SSH", "/bin/false", 1);
    write_script(w, PRINTS);
    harness_write(w->dir, "a.json", "{ \"command\": [\"./train.sh\"], " ARGUMENTS ", " PROGRESS " }");
    harness_write(
        w->dir, "c.conf",
        "{ \"application\": \"a.json\", \"study\": { \"name\": \"s\", \"epochs\": 1 },\n"
        "  \"hosts\": { \"lab\": [\"w1\", \"w2\"], \"one\": [\"w1\"] }, \"hyperParameters\": { \"lr\": 0.1 } }\n");
    expect_hosts(w, "a host that is none", "w1;w2", 2, "host 'w1;w2' must not contain ';'");
    expect_hosts(w, "begun", "lab", 0, "s/1: finished");
    harness_expect_rows("the hosts", "pipetune.db", nodes, "[\"w1\",\"w2\"]");
    expect_hosts(w, "again without", NULL, 0, "study s, going on");
    expect_hosts(w, "the same, said otherwise", "w1,w2", 0, "study s, going on");
    expect_hosts(w, "again without", NULL, 0, "study s, going on");
    expect_hosts(w, "others", "one", 2, "these keys differ: nodes");
    harness_expect_rows("the last of them", "pipetune.db", "SELECT json_extract(config, '$.hosts') FROM studies",
                        "w1,w2");
    (void)unsetenv("PIPETUNE_SSH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_is_tuned_by_what_it_prints, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_pattern_that_is_too_slow_is_told_and_stops_nothing, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_program_is_tuned_by_what_it_tells, open_plain, world_close),
        cmocka_unit_test_setup_teardown(cores_of_a_program_are_cpus_under_every_policy, open_plain, world_close),
        cmocka_unit_test_setup_teardown(programs_beside_each_other_have_cpus_of_their_own, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_study_ends_at_its_target_or_when_its_budget_is_used_up, open_plain,
                                        world_close),
        cmocka_unit_test_setup_teardown(a_driver_that_is_killed_loses_no_epoch, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_trial_goes_on_from_the_checkpoint_that_it_told_of, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_metric_that_never_comes_ends_the_study, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_stop_rule_over_a_program_that_tells_no_epochs_ends_the_study, open_plain,
                                        world_close),
        cmocka_unit_test_setup_teardown(a_better_value_of_a_trial_that_was_stopped_is_told, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_a_trial_will_come_to_is_shown_while_it_runs, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_a_program_does_not_tell_is_absent_and_not_0, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_there_is_told, open_plain, world_close),
        cmocka_unit_test_setup_teardown(two_studies_train_beside_each_other, open_plain, world_close),
        cmocka_unit_test_setup_teardown(parameter_sets_come_from_a_file, open_plain, world_close),
        cmocka_unit_test_setup_teardown(hosts_are_said_once, open_plain, world_close),
        cmocka_unit_test_setup_teardown(what_is_in_the_sets_is_part_of_the_study, open_plain, world_close),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
