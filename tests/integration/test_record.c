/* `pipetune run --trace FILE`: a live study, over a fake spark-submit, as a trace that the other commands can use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

#define CONFIG                                                                                                         \
    "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 2 },\n"                               \
    "  \"systemParameters\": { \"cores\": [2, 1] },\n  " WORLD_HYPER " }\n"

static int set_up(void **state)
{
    int rc = world_open(state);
    const struct world *w = *state;
    if (rc == 0)
        harness_write(w->dir, "c.conf", CONFIG);
    return rc;
}

static void expect(const struct harness_output *o, int code, const char *out, const char *err)
{
    if (o->code != code || !strstr(o->out, out) || !strstr(o->err, err))
        fail_msg("got exit %d, '%s', '%s'; want %d, '%s', '%s'", o->code, o->out, o->err, code, out, err);
}

static void expect_run(struct harness_output o, int code, const char *out, const char *err)
{
    expect(&o, code, out, err);
    harness_output_done(&o);
}

/* What `trace export --format json` or `info --json` prints. */
static json_t *shown(const struct world *w, const char *verb, const char *file, const char *option)
{
    AUTO_OUTPUT struct harness_output o =
        RUN(w, "trace", verb, file, option, strcmp(option, "--format") == 0 ? "json" : NULL);
    json_error_t e;
    json_t *j = json_loads(o.out, 0, &e);
    if (o.code != 0 || !j)
        fail_msg("%s %s: exit %d: %s%s", verb, file, o.code, o.out, o.err);
    return j;
}

static const char *text_at(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "(none)";
}

static const json_t *run_at(const json_t *j, size_t i)
{
    const json_t *r = json_array_get(json_object_get(j, "runs"), i);
    assert_non_null(r);
    return r;
}

static size_t runs(const json_t *j)
{
    return json_array_size(json_object_get(j, "runs"));
}

/* --- tests --- */

static void test_a_study_is_recorded_and_replayed(void **state)
{
    struct world *w = *state;
    expect_run(RUN(w, "run", "c.conf", "--policy", "v1", "--trace", "t.h5"), 0, "trace with 2 runs written to 't.h5'\n",
               "");
    AUTO_JSON json_t *j = shown(w, "info", "t.h5", "--json");
    assert_int_equal(runs(j), 2);
    const json_t *r = run_at(j, 1);
    assert_string_equal(text_at(r, "model"), "lenet");
    assert_string_equal(text_at(r, "dataset"), "mnist");
    assert_string_equal(text_at(r, "status"), "complete");
    assert_true(json_integer_value(json_object_get(json_object_get(r, "hyper"), "batch_size")) == 128);
    assert_true(json_number_value(json_object_get(json_object_get(r, "system"), "cores")) >= 1);
    assert_true(json_number_value(json_object_get(r, "startup_s")) >= 0);
    const json_t *epochs = json_object_get(r, "epochs");
    assert_int_equal(json_array_size(epochs), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *ep = json_array_get(epochs, i);
        assert_true(json_number_value(json_object_get(ep, "duration_s")) > 0);
        assert_true(json_number_value(json_object_get(ep, "accuracy")) > 0.5);
        assert_true(json_integer_value(json_object_get(ep, "iterations")) == 2);
        assert_true(json_is_null(json_object_get(ep, "energy_j")));
    }
    assert_string_equal(text_at(json_object_get(j, "tuner"), "policy"), "v1");
    expect_run(RUN(w, "replay", "offline", "t.h5", "--epochs", "2"), 0, "2 workloads and batches", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "replay", "offline", "t.h5", "--epochs", "2", "--json");
    AUTO_JSON json_t *offline = json_loads(o.out, 0, NULL);
    const json_t *choice = json_object_get(
        json_object_get(json_object_get(json_object_get(offline, "per_batch"), "lenet/mnist/128"), "choice"),
        "pipetune");
    assert_int_equal(json_array_size(choice), 2);
    assert_true(json_is_null(json_array_get(choice, 1))); /* memory is no knob of it */
    expect_run(RUN(w, "replay", "decisions", "t.h5"), 0, "decides nothing", "");
}

static void test_what_the_tuner_did_is_recorded(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "400", 1), (void)setenv("FAKE_ITERATIONS", "20", 1);
    expect_run(RUN(w, "run", "c.conf", "--policy", "pipetune", "--window-seconds", "0.1", "--trace", "t.h5"), 0,
               "trace with 2 runs", "");
    AUTO_JSON json_t *j = shown(w, "export", "t.h5", "--format");
    const json_t *tuner = json_object_get(j, "tuner");
    assert_string_equal(text_at(tuner, "study"), "s");
    assert_string_equal(text_at(tuner, "policy"), "pipetune");
    assert_true(json_array_size(json_object_get(tuner, "log")) > 10);
    assert_true(json_array_size(json_object_get(tuner, "decisions")) > 2);
    for (size_t i = 0; i < 2; i++) {
        double records = 0;
        size_t k;
        json_t *window;
        json_array_foreach(json_object_get(run_at(j, i), "windows"), k, window)
        {
            records += json_number_value(json_object_get(window, "records"));
            assert_true(json_number_value(json_object_get(json_object_get(window, "setting"), "cores")) >= 1);
        }
        assert_true(records > 0 && records <= (i ? 128 : 64) * 20 * 2); /* each step at most once */
    }
    AUTO_OUTPUT struct harness_output store = RUN(w, "replay", "decisions", "s");
    AUTO_OUTPUT struct harness_output trace = RUN(w, "replay", "decisions", "t.h5");
    expect(&store, 0, " decisions agree\n", "");
    assert_int_equal(trace.code, 0);
    assert_string_equal(trace.out, store.out);
    expect_run(RUN(w, "trace", "info", "t.h5"), 0, "tuner: study 's', policy 'pipetune'", "");
}

static void test_a_finished_study_is_recorded_too_and_the_old_file_replaced(void **state)
{
    struct world *w = *state;
    expect_run(RUN(w, "run", "c.conf", "--policy", "v1"), 0, "", "");
    harness_write(w->dir, "t.h5", "what was there before");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "c.conf", "--policy", "v1", "--json", "--trace", "t.h5");
    expect(&o, 0, "", "trace with 2 runs written to 't.h5'\n");
    AUTO_JSON json_t *result = json_loads(o.out, 0, NULL); /* the path is not in between */
    assert_string_equal(text_at(result, "study"), "s");
    AUTO_JSON json_t *j = shown(w, "info", "t.h5", "--json");
    assert_int_equal(runs(j), 2);
}

static void test_failed_attempts_and_copies(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 1, \"retries\": 1 },\n"
                  "  \"search\": { \"algorithm\": \"random\" },\n"
                  "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1] } }\n");
    expect_run(RUN(w, "run", "c.conf", "--policy", "v1", "--max-trials", "3", "--trace", "t.h5"), 0, "", "");
    AUTO_JSON json_t *j = shown(w, "info", "t.h5", "--json");
    assert_int_equal(runs(j), 1); /* the others are copies of it */
    (void)setenv("FAKE_FAIL", "executor-lost", 1);
    expect_run(RUN(w, "run", "c.conf", "--policy", "v1", "--name", "f", "--max-trials", "1", "--trace", "f.h5"), 1,
               "trace with 2 runs", "");
    AUTO_JSON json_t *failed = shown(w, "info", "f.h5", "--json");
    assert_int_equal(runs(failed), 2);
    assert_string_equal(text_at(run_at(failed, 0), "status"), "failed");
    assert_string_equal(text_at(run_at(failed, 1), "status"), "failed");
}

static bool has_trained(void *arg)
{
    const struct world *w = arg;
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text && harness_count(text, "trained ") >= 2;
}

static void test_an_interrupted_study_is_recorded_as_far_as_it_came(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "300", 1);
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    pid_t pid = START(w, -1, "run", "c.conf", "--policy", "v1", "--epochs", "30", "--trace", "t.h5");
    assert_true(harness_wait(has_trained, w, HARNESS_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    AUTO_JSON json_t *j = shown(w, "info", "t.h5", "--json");
    assert_int_equal(runs(j), 1);
    assert_string_equal(text_at(run_at(j, 0), "status"), "partial");
    expect_run(RUN(w, "replay", "offline", "t.h5"), 2, "", "1 of 1 runs left out");
}

static void test_a_trace_that_cannot_be_written_costs_no_study(void **state)
{
    struct world *w = *state;
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "c.conf", "--policy", "v1", "--trace", "missing/t.h5");
    expect(&o, 1, "study s: finished", "no trace of study 's' was written; the same command tries again: ");
    assert_int_equal(harness_count(o.err, "\n"), 1);
    expect_run(RUN(w, "run", "c.conf", "--policy", "v1", "--trace", "t.h5"), 0, "trace with 2 runs", "");
    assert_true(harness_wait_file(w->dir, "t.h5", 0));
}

static void test_what_would_be_lost_is_not_replaced(void **state)
{
    struct world *w = *state;
    static const char *const files[] = { "c.conf", "app.json", "./pipetune.db" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "c.conf", "--trace", files[i]);
        expect(&o, 2, "", "which would be replaced; choose another file");
        assert_int_equal(harness_count(o.err, "\n"), 1);
    }
    assert_false(harness_wait_file(w->dir, "pipetune.db", 0));
    expect_run(RUN(w, "run", "c.conf", "--dry-run", "--trace", "t.h5"), 0, "spark-submit", "");
    assert_false(harness_wait_file(w->dir, "t.h5", 0));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_a_study_is_recorded_and_replayed),
        T(test_what_the_tuner_did_is_recorded),
        T(test_a_finished_study_is_recorded_too_and_the_old_file_replaced),
        T(test_failed_attempts_and_copies),
        T(test_an_interrupted_study_is_recorded_as_far_as_it_came),
        T(test_a_trace_that_cannot_be_written_costs_no_study),
        T(test_what_would_be_lost_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
