/* Studies of several objectives, and with constraints on what trials come to: over a program that says what it is told to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

/* Setting 1 is accurate and large, 2 small, 3 worse than 2 in both, 4 most accurate and largest; where SLOW names one it takes its time. Epoch
 * 2 of the one that HOLD names waits for the file `go`. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for word; do case $last in --epochs) epochs=$word;; --lr) lr=$word;; esac; last=$word; done\n"                    \
    "case $lr in 1) accuracy=90 size=50;; 2) accuracy=80 size=20;; 3) accuracy=70 size=30;; *) accuracy=95 size=99;; " \
    "esac\n"                                                                                                           \
    "epoch=0; while [ $epoch -lt $epochs ]; do\n"                                                                      \
    "  epoch=$((epoch + 1))\n"                                                                                         \
    "  if [ \"$HOLD\" = $lr -a $epoch = 2 ]; then touch held; until [ -e go ]; do sleep 0.02; done; fi\n"              \
    "  if [ \"$SLOW\" = $lr ]; then sleep 0.7; else sleep 0.03; fi\n"                                                  \
    "  echo \"epoch $epoch: accuracy 0.$((accuracy - 3 + epoch)), size $((size + 3 - epoch))\"\n"                      \
    "done\n"

#define APP                                                                                                            \
    "{ \"command\": [\"./train.sh\"], \"progress\": [\"epoch (?<epoch>\\\\d+): accuracy (?<accuracy>\\\\S+), size "    \
    "(?<size>\\\\S+)\"],\n"                                                                                            \
    "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] } }"
#define TWO "\"metrics\": [\"accuracy\", { \"metric\": \"size\", \"direction\": \"min\" }]"

static void write_study(const struct world *w, const char *study, const char *more)
{
    char text[2048];
    world_script(w, "train.sh", TRAIN);
    harness_write(w->dir, "app.json", APP);
    (void)snprintf(
        text, sizeof text,
        "{ \"application\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 3, \"parallel\": 1%s%s },\n"
        "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [1, 2, 3, 4] }%s }\n",
        *study ? ", " : "", study, more);
    harness_write(w->dir, "s.conf", text);
}

static void expect(const char *what, struct harness_output o, int code, const char *out, const char *err)
{
    if (o.code != code || !strstr(o.out, out) || !strstr(o.err, err))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s', '%s'", what, o.code, o.out, o.err, code, out, err);
    harness_output_done(&o);
}

static int open_plain(void **state)
{
    if (world_open(state) < 0)
        return -1;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "HOLD", "SLOW" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    return 0;
}

static void a_study_of_two_metrics_ends_with_their_front(void **state)
{
    struct world *w = *state;
    write_study(w, TWO, "");
    expect("run", RUN(w, "run", "s.conf"), 0, "Pareto set: 3 of 4 trials", "");
    expect("show", RUN(w, "show", "s", "--json"), 0, "\"pareto\": [1, 2, 4]", "");
    expect("figures", RUN(w, "show", "s", "--json"), 0, "\"objectives\": {\"accuracy\": 0.8, \"size\": 20", "");
    expect("ls", RUN(w, "ls"), 0, "Pareto set: 1, 2, 4", "");
    expect("ls --json", RUN(w, "ls", "--json"), 0, "\"pareto\"", "");
    expect("best", RUN(w, "best", "s"), 0, "s/4: accuracy 0.95; lr 4\n\nPareto set: 3 of 4 trials", "");
    expect("report", RUN(w, "report", "s", "--csv"), 0, ",reason,violates,pareto\n1,", "");
    expect("compare", RUN(w, "compare", "s", "s"), 0, "Pareto set: 1, 2, 4", "");
    expect("again", RUN(w, "run", "s.conf"), 0, "Pareto set: 3 of 4 trials", "");
    harness_expect_rows("figures are kept", "pipetune.db",
                        "SELECT name, value FROM results WHERE trial = 3 ORDER BY name", "accuracy|0.7 size|30.0");
}

static void one_name_alone_is_the_metric(void **state)
{
    struct world *w = *state;
    write_study(w, "\"metrics\": [{ \"metric\": \"size\", \"direction\": \"min\" }]", "");
    expect("run", RUN(w, "run", "s.conf"), 0, "best: s/2", "");
    expect("show", RUN(w, "show", "s", "--json"), 0, "\"pareto\": null", "");
    harness_expect_rows("no figures are kept", "pipetune.db", "SELECT count(*) FROM results", "0");
}

static void a_killed_driver_goes_on_with_several_objectives(void **state)
{
    struct world *w = *state;
    write_study(w, TWO, ", \"search\": { \"algorithm\": \"tpe\", \"stop\": \"median\" }");
    (void)setenv("HOLD", "3", 1);
    pid_t driver = START(w, -1, "run", "s.conf");
    assert_true(harness_wait_file(w->dir, "held", HARNESS_MS));
    assert_int_equal(kill(driver, SIGKILL), 0);
    (void)harness_exit_code(driver, HARNESS_MS);
    harness_write(w->dir, "go", "");
    expect("run", RUN(w, "run", "s.conf"), 0, "Pareto set: 3 of 4 trials", "");
    harness_expect_rows("each epoch once", "pipetune.db",
                        "SELECT max(n) FROM (SELECT count(*) AS n FROM epochs GROUP BY trial, epoch)", "1");
    harness_expect_rows("no attempt twice", "pipetune.db", "SELECT count(*) FROM attempts", "4");
}

static void seconds_are_an_objective(void **state)
{
    struct world *w = *state;
    (void)setenv("SLOW", "3", 1);
    write_study(w, "\"metrics\": [\"accuracy\", \"seconds\"]", "");
    expect("run", RUN(w, "run", "s.conf"), 0, "Pareto set", "");
    harness_expect_rows("what it took to its end", "pipetune.db",
                        "SELECT count(*) FROM results r JOIN trials t ON t.id = r.trial"
                        " WHERE r.name = 'seconds' AND abs(r.value - t.seconds) < 1e-9",
                        "4");
}

/* At an epoch's end, as soon as it is broken for good. */
static void a_limit_of_seconds_ends_a_trial_early(void **state)
{
    struct world *w = *state;
    (void)setenv("SLOW", "4", 1);
    write_study(w, "\"constraints\": [\"seconds <= 0.6\"]", "");
    expect("run", RUN(w, "run", "s.conf"), 0, "best: s/1", "");
    harness_expect_rows("it was stopped", "pipetune.db",
                        "SELECT state, violates LIKE 'seconds <= 0.6 does not hold: seconds %',"
                        " (SELECT count(*) FROM epochs WHERE trial = trials.id) < 3 FROM trials WHERE number = 4",
                        "stopped|1|1");
    harness_expect_rows("the others keep it", "pipetune.db",
                        "SELECT count(*) FROM trials WHERE state = 'finished' AND violates IS NULL", "3");
    expect("show", RUN(w, "show", "s"), 0, "breaks a constraint: seconds <= 0.6 does not hold", "");
    expect("json", RUN(w, "show", "s", "--json"), 0, "\"violates\": \"seconds <= 0.6 does not hold", "");
}

static void a_trial_that_breaks_a_constraint_is_no_best(void **state)
{
    struct world *w = *state;
    write_study(w, TWO ", \"constraints\": [\"size <= 60 or lr == 1\", \"accuracy > 0.75\"]", "");
    expect("run", RUN(w, "run", "s.conf"), 0, "best: s/1", "");
    expect("show", RUN(w, "show", "s", "--json"), 0, "\"pareto\": [1, 2]", "");
    harness_expect_rows("they are finished", "pipetune.db",
                        "SELECT number, state, violates FROM trials WHERE violates IS NOT NULL ORDER BY 1",
                        "3|finished|accuracy > 0.75 does not hold: accuracy 0.7"
                        " 4|finished|size <= 60 or lr == 1 does not hold: size 99");
}

static void a_study_whose_constraints_nothing_keeps_says_so(void **state)
{
    struct world *w = *state;
    write_study(w, "\"constraints\": [\"size < 1\"]", "");
    expect("run", RUN(w, "run", "s.conf"), 1, "best: none, no trial is finished that keeps the constraints",
           "no trial of study 's' keeps 'study.constraints'");
    expect("best", RUN(w, "best", "s"), 1, "", "that keeps the constraints");
}

static void a_name_that_is_never_told_ends_the_study(void **state)
{
    static const struct {
        const char *study, *want;
    } cases[] = {
        { "\"constraints\": [\"sise < 100\"]",
          "metric 'sise' is not reported by trial 1: there is accuracy, size; did you mean 'size'?" },
        { "\"metrics\": [\"accuracy\", \"f1\"]", "metric 'f1' is not reported by trial 1" },
        { "\"metrics\": [\"f1\", \"accuracy\"]", "metric 'f1' is not reported by trial 1" },
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)unlink("pipetune.db");
        write_study(w, cases[i].study, "");
        expect(cases[i].study, RUN(w, "run", "s.conf"), 2, "", cases[i].want);
        harness_expect_rows("one trial was begun", "pipetune.db", "SELECT count(*) FROM attempts", "1");
    }
}

static void clashes_are_told_before_anything_begins(void **state)
{
    static const struct {
        const char *study, *more, *want;
    } cases[] = {
        { "\"metrics\": [\"accuracy\", \"energy_j\"]", "", "'study.metrics' wants joules, and no meter is configured" },
        { "\"constraints\": [\"energy_j < 10\"]", "", "'study.constraints' wants joules" },
        { "\"metrics\": [\"accuracy\", \"size\"], \"metric\": \"size\"", "", "does not go with 'study.metrics'" },
        { "\"metrics\": [\"accuracy\", \"size\"], \"direction\": \"min\"", "", "does not go with several metrics" },
        { "\"metrics\": [\"seconds\"]", "", "has nothing that the application tells" },
        { "\"constraints\": [\"seconds < 0\"]", "", "is nothing that a trial can keep" },
        { "\"constraints\": [\"seconds * cores < 9\"]", "", "has the system parameter 'cores' beside results" },
        { "", ", \"budget\": { \"price\": 3 }", "'budget.price' needs a price" },
        { "", ", \"budget\": { \"price\": 3, \"price_per_kwh\": 0.3 }", "'budget.price_per_kwh' wants joules" },
        { "", ", \"search\": { \"cost\": \"money\" }", "seconds" },
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_study(w, cases[i].study, cases[i].more);
        expect(cases[i].want, RUN(w, "run", "s.conf"), 2, "", cases[i].want);
        assert_int_not_equal(access("pipetune.db", F_OK), 0);
    }
    write_study(w, TWO, "");
    expect("--metric", RUN(w, "run", "s.conf", "--metric", "size"), 2, "", "do not go with 'study.metrics'");
}

/* One CPU at 3600 an hour is 1 a second. */
static void a_study_ends_when_it_has_cost_its_price(void **state)
{
    struct world *w = *state;
    (void)setenv("SLOW", "2", 1);
    write_study(w, "", ", \"budget\": { \"price\": 1.5, \"price_per_core_hour\": 3600, \"price_per_kwh\": 0.3 }");
    expect("run", RUN(w, "run", "s.conf"), 0, "the study ends: the budget of 1.5 in money", "core-hours alone count");
    harness_expect_rows("the rest was not begun", "pipetune.db", "SELECT max(number) < 4 FROM trials", "1");
}

static void joules_without_a_meter_are_no_price(void **state)
{
    struct world *w = *state;
    write_study(w, "", ", \"search\": { \"stop\": \"curves\", \"cost\": \"joules\" }");
    expect("run", RUN(w, "run", "s.conf"), 0, "best: s/", "an epoch's price is its seconds");
}

/* The estimate counts CPU time: figures are there, and said to be estimated. */
static void joules_may_be_an_objective(void **state)
{
    struct world *w = *state;
    (void)setenv("SLOW", "1", 1);
    write_study(w, "\"metrics\": [\"accuracy\", \"energy_j\"], \"max_trials\": 1",
                ", \"powerMeter\": \"estimate\", \"search\": { \"cost\": \"joules\" }");
    expect("run", RUN(w, "run", "s.conf", "--epochs", "6"), 0, "", "joules are an estimate here");
    expect("show", RUN(w, "show", "s", "--json"), 0, "\"energy_j\": ", "");
}

static void every_search_takes_several_objectives(void **state)
{
    static const char *const algorithms[] = { "tpe", "gp", "random" };
    static const char *const stops[] = { "curves", "halving" };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        for (size_t k = 0; k < ARRAY_LEN(stops); k++) {
            char more[256];
            AUTO_FREE char *name = NULL;
            assert_true(asprintf(&name, "%s-%s", algorithms[i], stops[k]) > 0);
            (void)snprintf(more, sizeof more, ", \"search\": { \"algorithm\": \"%s\", \"stop\": \"%s\" }",
                           algorithms[i], stops[k]);
            write_study(w, TWO, more);
            /* 3 may be ended early, as 2 is better in all; the others are not */
            expect(name, RUN(w, "run", "s.conf", "--name", name), 0, "Pareto set: 3 of 4 trials", "");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_study_of_two_metrics_ends_with_their_front, open_plain, world_close),
        cmocka_unit_test_setup_teardown(one_name_alone_is_the_metric, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_killed_driver_goes_on_with_several_objectives, open_plain, world_close),
        cmocka_unit_test_setup_teardown(seconds_are_an_objective, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_limit_of_seconds_ends_a_trial_early, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_trial_that_breaks_a_constraint_is_no_best, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_study_whose_constraints_nothing_keeps_says_so, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_name_that_is_never_told_ends_the_study, open_plain, world_close),
        cmocka_unit_test_setup_teardown(clashes_are_told_before_anything_begins, open_plain, world_close),
        cmocka_unit_test_setup_teardown(a_study_ends_when_it_has_cost_its_price, open_plain, world_close),
        cmocka_unit_test_setup_teardown(joules_without_a_meter_are_no_price, open_plain, world_close),
        cmocka_unit_test_setup_teardown(joules_may_be_an_objective, open_plain, world_close),
        cmocka_unit_test_setup_teardown(every_search_takes_several_objectives, open_plain, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
