/* Experiments: simulated over recorded runs, and trained by a command of milliseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "tests/integration/harness.h"

/* Two settings of one batch; one core is quicker. Epoch 0 is the submission. */
#define TIMELINE                                                                                                       \
    "m,d,1,2,32,a.log,0,100\nm,d,1,2,32,a.log,1,103\nm,d,1,2,32,a.log,2,123\nm,d,1,2,32,a.log,end,133\n"               \
    "m,d,2,2,32,b.log,0,200\nm,d,2,2,32,b.log,1,203\nm,d,2,2,32,b.log,2,233\nm,d,2,2,32,b.log,end,253\n"

#define STUDY                                                                                                          \
    "{ \"application\": \"app.json\", \"study\": { \"epochs\": 3 }, \"systemParameters\": { \"cores\": [2, 1] },\n"    \
    "  \"hyperParameters\": { \"lr\": [0.1, 0.2], \"batch\": [32] } }\n"

#define ONLINE(policies, more)                                                                                         \
    "{ \"jobs\": [{\"config\": \"one.conf\"}, {\"config\": \"two.conf\", \"weight\": 2}],\n"                           \
    "  \"arrivals\": {\"load\": 0.9, \"count\": 6, \"seed\": 3" more "}, \"policies\": [" policies "] }\n"

static int open_files(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    harness_write(w->dir, "app.json", "{ \"command\": [\"./train.sh\"], \"progress\": \"katib\" }\n");
    harness_write(w->dir, "one.conf", STUDY);
    harness_write(w->dir, "two.conf", STUDY);
    harness_write(w->dir, "runs.csv", TIMELINE);
    harness_write(w->dir, "x.json", ONLINE("\"v1\", \"v2\", \"pipetune\"", ""));
    return 0;
}

static void must(const char *what, const struct harness_output *o)
{
    if (o->code != 0)
        fail_msg("%s: exit %d, %s%s", what, o->code, o->out, o->err);
}

static json_t *read_json(const struct world *w, const char *name)
{
    AUTO_FREE char *text = harness_read(w->dir, name);
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    if (!j)
        fail_msg("%s: %s", name, text ? text : "is not there");
    return j;
}

static double at(const json_t *j, const char *policy, const char *job, const char *figure)
{
    const json_t *mean = json_object_get(
        json_object_get(json_object_get(json_object_get(json_object_get(j, "policies"), policy), job), figure), "mean");
    return json_is_number(mean) ? json_number_value(mean) : (double)NAN;
}

#define SIMULATE(w) RUN(w, "experiment", "x.json", "--simulate", "--trace", "runs.csv", "--folder", "out")

static void a_simulation_is_the_same_each_time(void **state)
{
    struct world *w = *state;
    struct harness_output o = SIMULATE(w);
    must("simulate", &o);
    harness_output_done(&o);
    static const char *const names[] = { "out/report.json",
                                         "out/report.html",
                                         "out/response.svg",
                                         "out/csv/TuneV1Load_0.9_2.csv",
                                         "out/csv/TuneV2Load_0.9_2.csv",
                                         "out/csv/TunePipetuneLoad_0.9_2.csv" };
    char *first[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!(first[i] = harness_read(w->dir, names[i])))
            fail_msg("no %s", names[i]);
    o = SIMULATE(w);
    must("again", &o);
    harness_output_done(&o);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *again = harness_read(w->dir, names[i]);
        assert_string_equal(again, first[i]);
        free(first[i]);
    }
}

/* A trial at two cores takes 3 + 30 + 2 * 20 s, at one 3 + 20 + 2 * 10 s. */
static void a_simulation_tells_what_each_policy_takes(void **state)
{
    struct world *w = *state;
    struct harness_output o = SIMULATE(w);
    must("simulate", &o);
    assert_non_null(strstr(o.out, "simulated over recorded runs"));
    harness_output_done(&o);
    json_t *j = read_json(w, "out/report.json");
    assert_true(fabs(at(j, "v1", "all", "tuning_s") - 2 * 73) < 1e-6);
    assert_true(fabs(at(j, "v2", "one", "tuning_s") - 2 * (73 + 43)) < 1e-6);
    assert_true(fabs(at(j, "v1", "two", "training_s") - 73) < 1e-6);
    double ours = at(j, "pipetune", "all", "tuning_s");
    assert_true(ours > 2 * 43 - 1e-6 && ours < 2 * 73);
    assert_true(at(j, "pipetune", "all", "response_s") < at(j, "v1", "all", "response_s"));
    assert_true(isnan(at(j, "v1", "all", "energy_j")));
    assert_int_equal(json_array_size(json_object_get(j, "studies")), 18);
    assert_true(json_is_true(json_object_get(j, "simulated")));
    json_decref(j);
}

static void csvs_are_what_replay_online_reads(void **state)
{
    struct world *w = *state;
    struct harness_output o = SIMULATE(w);
    must("simulate", &o);
    harness_output_done(&o);
    json_t *report = read_json(w, "out/report.json");
    o = RUN(w, "replay", "online", "out/csv", "--json");
    must("replay", &o);
    json_t *read = json_loads(o.out, 0, NULL);
    static const char *const jobs[] = { "one", "two", "all" }, *const policies[] = { "v1", "v2" };
    for (size_t i = 0; i < 6; i++) {
        const char *job = jobs[i % 3], *policy = policies[i / 3];
        const json_t *figures = json_object_get(
            json_object_get(json_object_get(json_object_get(json_object_get(read, "0.9"), "2"), job), policy),
            "response_s");
        assert_true(fabs(json_number_value(figures) - at(report, policy, job, "response_s")) < 1e-6);
    }
    json_decref(read);
    json_decref(report);
    harness_output_done(&o);
}

/* Without arrivals: a study of each job, and its trials as a table. */
static void an_offline_experiment_tells_its_trials(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "x.json", "{ \"jobs\": [{\"config\": \"one.conf\"}], \"policies\": [\"v1\", \"v2\"] }");
    struct harness_output o = SIMULATE(w);
    must("simulate", &o);
    assert_non_null(strstr(o.out, "learning rate"));
    harness_output_done(&o);
    json_t *j = read_json(w, "out/report.json");
    assert_int_equal(json_array_size(json_object_get(j, "trials")), 2 + 4);
    assert_true(json_is_null(json_object_get(j, "arrivals")));
    json_decref(j);
    o = RUN(w, "replay", "offline", "out/csv", "--json");
    must("replay", &o);
    json_t *read = json_loads(o.out, 0, NULL);
    const json_t *v2 = json_object_get(json_object_get(json_object_get(read, "one"), "2"), "v2");
    assert_int_equal(json_integer_value(json_object_get(v2, "trials")), 4);
    assert_true(fabs(json_number_value(json_object_get(v2, "time_s")) - 2 * (73 + 43)) < 1e-6);
    json_decref(read);
    harness_output_done(&o);
}

static void a_stop_rule_that_is_not_played_is_told(void **state)
{
    struct world *w = *state;
    harness_write(
        w->dir, "two.conf",
        "{ \"application\": \"app.json\", \"study\": { \"epochs\": 3 }, \"search\": { \"stop\": \"hyperband\" },\n"
        "  \"hyperParameters\": { \"lr\": { \"min\": 0.1, \"max\": 1.5 }, \"batch\": [32] } }\n");
    struct harness_output o = SIMULATE(w);
    must("simulate", &o);
    assert_non_null(
        strstr(o.err, "job 'two': its stop rule 'hyperband' is not simulated: each trial trains all its 3 epochs"));
    assert_null(strstr(o.err, "job 'one'"));
    harness_output_done(&o);
    harness_write(w->dir, "two.conf",
                  "{ \"application\": \"app.json\", \"study\": { \"epochs\": 3 },\n"
                  "  \"hyperParameters\": { \"lr\": { \"min\": 0.1, \"max\": 1.5 }, \"batch\": [32] } }\n");
    o = SIMULATE(w);
    must("simulate by default", &o);
    assert_non_null(strstr(o.err, "job 'two': its stop rule 'curves'"));
    harness_output_done(&o);
}

static const struct {
    const char *name, *experiment, *config, *want;
} wrong[] = {
    { "a key of the experiment", "{ \"jbos\": [] }", STUDY, "did you mean 'jobs'?" },
    { "a key of a job's config", NULL,
      "{ \"application\": \"app.json\", \"study\": { \"epchs\": 3 }, \"hyperParameters\": { \"batch\": [32] } }",
      "did you mean 'epochs'?" },
    { "a job's config that is not there", "{ \"jobs\": [{\"config\": \"none.conf\"}], \"policies\": [\"v1\"] }", STUDY,
      "none.conf" },
    { "a batch that was not recorded", NULL,
      "{ \"application\": \"app.json\", \"hyperParameters\": { \"batch\": [64] } }",
      "batch 64 was not recorded: the trace has 32" },
};

static void faults_are_told_before_anything_is_written(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        harness_write(w->dir, "x.json", wrong[i].experiment ? wrong[i].experiment : ONLINE("\"v1\"", ""));
        harness_write(w->dir, "two.conf", wrong[i].config);
        struct harness_output o = SIMULATE(w);
        if (o.code != 2 || !strstr(o.err, wrong[i].want) || harness_count(o.err, "\n") != 1)
            fail_msg("%s: got exit %d, '%s', want '%s'", wrong[i].name, o.code, o.err, wrong[i].want);
        assert_int_equal(access("out", F_OK), -1);
        harness_output_done(&o);
    }
    struct harness_output o = RUN(w, "experiment", "x.json", "--simulate");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "--trace FILE"));
    harness_output_done(&o);
}

/* --- trained --- */

/* Waits for the file `go` in its third trial of all, where HOLD is set: the first study has ended then, and the second one trains. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for word; do case $last in --lr) lr=$word;; esac; last=$word; done\n"                                             \
    "echo >>count; if [ -n \"$HOLD\" ] && [ $(wc -l <count) -eq 3 ]; then touch held; until [ -e go ]; do sleep "      \
    "0.02; done; fi\n"                                                                                                 \
    "for epoch in 1 2; do echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy $lr\"; done\n"

#define TRAINED_APP                                                                                                    \
    "{ \"command\": [\"./train.sh\"], \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"batch\": [\"-b\", \"{}\"], "      \
    "\"epochs\": [\"-e\", \"{}\"] },\n"                                                                                \
    "  \"progress\": [\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+)\"] }\n"

#define TRAINED                                                                                                        \
    "{ \"jobs\": [{\"config\": \"one.conf\"}],\n"                                                                      \
    "  \"arrivals\": {\"load\": 2, \"count\": 2, \"seed\": 3, \"service_s\": 0.2}, \"policies\": [\"v1\", \"v2\"] }\n"

static int open_trained(void **state)
{
    if (open_files(state) < 0)
        return -1;
    struct world *w = *state;
    harness_write(w->dir, "app.json", TRAINED_APP);
    harness_write(
        w->dir, "one.conf",
        "{ \"application\": \"app.json\", \"study\": { \"epochs\": 2, \"parallel\": 1 },\n"
        "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [0.1, 0.2], \"batch\": [32] } }\n");
    harness_write(w->dir, "x.json", TRAINED);
    world_script(w, "train.sh", TRAIN);
    (void)unsetenv("HOLD");
    return 0;
}

static void studies_are_trained_under_each_policy(void **state)
{
    struct world *w = *state;
    struct harness_output o = RUN(w, "experiment", "x.json");
    must("experiment", &o);
    assert_non_null(strstr(o.err, "v1        1/2  one-1 begins"));
    assert_non_null(strstr(o.err, "v2        2/2  one-2 has ended"));
    harness_output_done(&o);
    harness_expect_rows("studies of v1", "x.experiment/v1/pipetune.db", "SELECT name, state FROM studies ORDER BY 1",
                        "one-1|finished one-2|finished");
    harness_expect_rows("studies of v2", "x.experiment/v2/pipetune.db", "SELECT name, state FROM studies ORDER BY 1",
                        "one-1|finished one-2|finished");
    json_t *j = read_json(w, "x.experiment/report.json");
    assert_true(json_is_false(json_object_get(j, "simulated")));
    const json_t *studies = json_object_get(j, "studies"), *second = json_array_get(studies, 1);
    assert_int_equal(json_array_size(studies), 4);
    assert_true(fabs(json_number_value(json_object_get(second, "error")) - 0.8) < 1e-9);
    assert_true(fabs(json_number_value(json_object_get(second, "lr")) - 0.2) < 1e-9);
    assert_int_equal(json_integer_value(json_object_get(second, "trials")), 2);
    assert_int_equal(json_integer_value(json_object_get(second, "epochs")), 2);
    assert_true(json_is_null(json_object_get(second, "energy_j"))); /* nothing was measured: absent */
    double arrived = json_number_value(json_object_get(second, "arrived_s"));
    double started = json_number_value(json_object_get(second, "started_s"));
    double before = json_number_value(json_object_get(json_array_get(studies, 0), "ended_s"));
    assert_true(arrived > 0 && started >= arrived - 1e-3 && started >= before - 1e-3);
    /* The same arrivals under each policy. */
    assert_true(json_number_value(json_object_get(json_array_get(studies, 3), "arrived_s")) == arrived);
    json_decref(j);
    o = RUN(w, "replay", "online", "x.experiment/csv", "--json");
    must("replay", &o);
    assert_non_null(strstr(o.out, "\"one\""));
    harness_output_done(&o);
}

static size_t trained(const struct world *w)
{
    AUTO_FREE char *count = harness_read(w->dir, "count");
    return count ? harness_count(count, "\n") : 0;
}

/* Stopped in the second study of the first policy by this signal, and gone on with: 2 studies of 2 trials under each of two policies, and
 * one trial that was cut short. */
static void is_gone_on_with_after(struct world *w, int sig, int code)
{
    (void)setenv("HOLD", "1", 1);
    pid_t pid = START(w, -1, "experiment", "x.json", "--skip-idle");
    if (!harness_wait_file(w->dir, "held", HARNESS_MS))
        fail_msg("the third trial did not begin");
    struct harness_output busy = RUN(w, "experiment", "x.json");
    assert_int_equal(busy.code, 3);
    assert_non_null(strstr(busy.err, "is being run by another process"));
    harness_output_done(&busy);
    AUTO_FREE char *first =
        harness_ask("x.experiment/v1/pipetune.db", "SELECT id, ended_ms FROM studies WHERE name = 'one-1'");
    (void)kill(pid, sig);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), code);
    (void)unsetenv("HOLD");
    struct harness_output o = RUN(w, "experiment", "x.json", "--skip-idle");
    must("again", &o);
    assert_non_null(strstr(o.err, "v1        2/2  one-2 goes on"));
    assert_null(strstr(o.err, "v1        1/2"));
    assert_non_null(strstr(o.out, "1 of 4 studies were interrupted"));
    harness_output_done(&o);
    harness_expect_rows("the first study", "x.experiment/v1/pipetune.db",
                        "SELECT id, ended_ms FROM studies WHERE name = 'one-1'", first);
    assert_int_equal(trained(w), 2 * 2 * 2 + 1);
    o = RUN(w, "experiment", "x.json");
    must("when all is done", &o);
    harness_output_done(&o);
    assert_int_equal(trained(w), 2 * 2 * 2 + 1);
}

static void an_interrupted_one_is_gone_on_with(void **state)
{
    is_gone_on_with_after(*state, SIGINT, 130);
}

static void a_killed_one_is_gone_on_with(void **state)
{
    is_gone_on_with_after(*state, SIGKILL, 128 + SIGKILL);
}

static void a_folder_is_of_one_experiment(void **state)
{
    struct world *w = *state;
    struct harness_output o = RUN(w, "experiment", "x.json");
    must("experiment", &o);
    harness_output_done(&o);
    harness_write(w->dir, "x.json", "{ \"jobs\": [{\"config\": \"one.conf\"}], \"policies\": [\"v1\"] }\n");
    o = RUN(w, "experiment", "x.json");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "is of another experiment"));
    harness_output_done(&o);
    o = RUN(w, "experiment", "x.json", "--folder", "other", "--json");
    must("offline, in another folder", &o);
    json_t *j = json_loads(o.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(j, "trials")), 2);
    json_decref(j);
    harness_output_done(&o);
}

/* What the load is of is measured first: the job alone, in a store that no policy sees. */
static void a_service_time_is_measured(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "x.json",
                  "{ \"jobs\": [{\"config\": \"one.conf\"}], \"arrivals\": {\"count\": 1}, \"policies\": [\"v1\"] }\n");
    struct harness_output o = RUN(w, "experiment", "x.json", "--json");
    must("experiment", &o);
    json_t *j = json_loads(o.out, 0, NULL);
    assert_true(json_number_value(json_object_get(json_object_get(j, "arrivals"), "service_s")) > 0.001);
    json_decref(j);
    harness_output_done(&o);
    harness_expect_rows("measured", "x.experiment/measure/pipetune.db", "SELECT name FROM studies", "one-1");
    assert_int_equal(trained(w), 4);
}

static void a_study_that_cannot_begin_says_why(void **state)
{
    struct world *w = *state;
    harness_write(
        w->dir, "one.conf",
        "{ \"application\": \"app.json\", \"study\": { \"epochs\": 2, \"metric\": \"acuracy\" },\n"
        "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [0.1], \"batch\": [32] } }\n");
    struct harness_output o = RUN(w, "experiment", "x.json");
    assert_int_equal(o.code, 3);
    assert_non_null(strstr(o.err, "study 'one-1' under v1: "));
    assert_non_null(strstr(o.err, "acuracy"));
    harness_output_done(&o);
    harness_write(w->dir, "one.conf", "{ \"applicatoin\": \"app.json\" }\n");
    o = RUN(w, "experiment", "x.json", "--folder", "other");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "did you mean 'application'?"));
    assert_int_equal(access("other", F_OK), -1);
    harness_output_done(&o);
}

int main(void)
{
    harness_own_leases();
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, open_files, world_close)
#define TRAINING(test) cmocka_unit_test_setup_teardown(test, open_trained, world_close)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_simulation_is_the_same_each_time),
        WITH_WORLD(a_simulation_tells_what_each_policy_takes),
        WITH_WORLD(csvs_are_what_replay_online_reads),
        WITH_WORLD(an_offline_experiment_tells_its_trials),
        WITH_WORLD(a_stop_rule_that_is_not_played_is_told),
        WITH_WORLD(faults_are_told_before_anything_is_written),
        TRAINING(studies_are_trained_under_each_policy),
        TRAINING(an_interrupted_one_is_gone_on_with),
        TRAINING(a_killed_one_is_gone_on_with),
        TRAINING(a_folder_is_of_one_experiment),
        TRAINING(a_service_time_is_measured),
        TRAINING(a_study_that_cannot_begin_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
