/* Experiments: simulated over recorded runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
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

int main(void)
{
    harness_own_leases();
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, open_files, world_close)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_simulation_is_the_same_each_time),         WITH_WORLD(a_simulation_tells_what_each_policy_takes),
        WITH_WORLD(csvs_are_what_replay_online_reads),          WITH_WORLD(an_offline_experiment_tells_its_trials),
        WITH_WORLD(faults_are_told_before_anything_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
