/* Studies handed on to an MLflow server that is none: everything arrives once, whatever it does and whoever is killed. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))
#define AUTO_JSON __attribute__((cleanup(decref)))

static void decref(json_t **j)
{
    json_decref(*j);
}

/* Trains --epochs N: a moment each, and with --wait FILE before the second one until that is there. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for word; do case $last in --epochs) epochs=$word ;; esac; last=$word; done\n"                                    \
    "epoch=0; while [ $epoch -lt $epochs ]; do epoch=$((epoch + 1))\n"                                                 \
    "  while [ -n \"$HOLD\" ] && [ $epoch = 2 ] && ! [ -e \"$HOLD\" ]; do sleep 0.05; done\n"                          \
    "  echo \"step $epoch: loss 0.5\"; sleep 0.05\n"                                                                   \
    "  echo \"epoch $epoch: loss 0.$((9 - epoch)), accuracy 0.$((epoch + 1)), f1 0.$epoch\"\n"                         \
    "done\n"
#define APPLICATION                                                                                                    \
    "{ \"command\": [\"./train.sh\"],\n"                                                                               \
    "  \"arguments\": { \"batch_size\": [\"--batch\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] },\n"                \
    "  \"progress\": [\"step (?<step>\\\\d+): loss (?<loss>\\\\S+)\",\n"                                               \
    "    \"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), accuracy (?<accuracy>\\\\S+), f1 (?<f1>\\\\S+)\"] }\n"

struct peer {
    struct world *w;
    char *dir; /* of the server */
    pid_t pid;
};

static struct peer peer;

static void write_study(const struct world *w, const char *more)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "{ \"application\": \"s.json\", \"study\": { \"name\": \"s\", \"epochs\": 5 }, \"systemParameters\": { "
        "\"cores\": [1] },\n"
        "  \"hyperParameters\": { \"batch_size\": [32, 64] }%s }\n",
        more);
    harness_write(w->dir, "s.conf", text);
}

static void start_server(void)
{
    char program[] = "/usr/bin/env", python[] = "python3", *script = harness_path(peer.w->dir, "fake-mlflow.py");
    char *argv[] = { program, python, script, peer.dir, NULL };
    peer.pid = harness_spawn(argv, -1, -1);
    assert_true(harness_wait_file(peer.dir, "ready", HARNESS_MS));
    free(script);
}

static void stop_server(void)
{
    AUTO_FREE char *ready = harness_path(peer.dir, "ready");
    (void)unlink(ready);
    if (peer.pid > 0) {
        (void)kill(peer.pid, SIGKILL);
        (void)harness_exit_code(peer.pid, HARNESS_MS);
    }
    peer.pid = 0;
}

static int set_up(void **state)
{
    char here[4096];
    AUTO_FREE char *text = NULL;
    assert_non_null(getcwd(here, sizeof here));
    text = harness_read(here, "tests/integration/fake-mlflow.py");
    assert_non_null(text);
    if (world_open(state) < 0)
        return -1;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "HOLD", "PIPETUNE_FAILPOINT" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    peer.w = *state;
    world_dir(peer.w, "server");
    peer.dir = harness_path(peer.w->dir, "server");
    harness_write(peer.w->dir, "fake-mlflow.py", text);
    world_script(peer.w, "train.sh", TRAIN);
    harness_write(peer.w->dir, "s.json", APPLICATION);
    write_study(peer.w, "");
    start_server();
    return 0;
}

static int tear_down(void **state)
{
    stop_server();
    free(peer.dir);
    return world_close(state);
}

/* Another one, that has nothing. */
static void renew_server(void)
{
    AUTO_FREE char *port = harness_path(peer.dir, "port");
    stop_server();
    (void)unlink(port);
    start_server();
}

static char *url(void)
{
    AUTO_FREE char *port = harness_read(peer.dir, "port");
    char *out = NULL;
    assert_true(asprintf(&out, "http://127.0.0.1:%s", port) > 0);
    return out;
}

static void expect(const char *what, const struct harness_output *o, int code, const char *text)
{
    if (o->code != code || !(strstr(o->err, text) || strstr(o->out, text)))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o->code, o->out, o->err, code, text);
}

static void run_study(void)
{
    AUTO_OUTPUT struct harness_output o = RUN(peer.w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/2: finished");
}

static struct harness_output hand_on(const char *patience)
{
    AUTO_FREE char *to = url();
    return RUN(peer.w, "export", "mlflow", "s", "--url", to, "--patience", patience);
}

static json_t *server_has(void)
{
    AUTO_FREE char *text = harness_read(peer.dir, "has.json");
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    assert_non_null(j);
    return j;
}

static json_t *run_named(json_t *has, const char *name)
{
    size_t i;
    json_t *run, *found = NULL;
    json_array_foreach(json_object_get(has, "runs"), i, run)
    {
        if (strcmp(json_string_value(json_object_get(run, "name")), name) == 0) {
            if (found)
                fail_msg("there are two runs %s", name);
            found = run;
        }
    }
    if (!found)
        fail_msg("there is no run %s", name);
    return found;
}

static const char *text_at(json_t *run, const char *in, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(run, in), key));
    return text ? text : "(none)";
}

static bool has_tag_with(json_t *run, const char *part)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(run, "tags"), key, value)
    {
        if (strstr(json_string_value(value), part))
            return true;
    }
    return false;
}

/* How many points of that name there are at that step. */
static size_t points_at(json_t *run, const char *key, int step, double *out_value)
{
    size_t i, n = 0;
    json_t *m;
    json_array_foreach(json_object_get(run, "metrics"), i, m)
    {
        if (strcmp(json_string_value(json_array_get(m, 0)), key) == 0 &&
            json_integer_value(json_array_get(m, 1)) == step) {
            *out_value = json_number_value(json_array_get(m, 3));
            n++;
        }
    }
    return n;
}

/* Each value of both trials once, and nothing else. */
static void expect_all_once(void)
{
    AUTO_JSON json_t *has = server_has();
    json_t *study = run_named(has, "s");
    assert_int_equal(json_array_size(json_object_get(has, "runs")), 3);
    assert_string_equal(json_string_value(json_object_get(study, "status")), "FINISHED");
    for (int trial = 1; trial <= 2; trial++) {
        char name[16];
        (void)snprintf(name, sizeof name, "s/%d", trial);
        json_t *run = run_named(has, name);
        assert_string_equal(text_at(run, "tags", "mlflow.parentRunId"),
                            json_string_value(json_object_get(study, "id")));
        assert_string_equal(text_at(run, "params", "batch_size"), trial == 1 ? "32" : "64");
        assert_string_equal(json_string_value(json_object_get(run, "status")), "FINISHED");
        for (int epoch = 1; epoch <= 5; epoch++) {
            const struct {
                const char *key;
                double want;
            } values[] = { { "accuracy", 0.1 * (epoch + 1) },
                           { "loss", 0.1 * (9 - epoch) },
                           { "f1", 0.1 * epoch },
                           { "iteration/loss", 0.5 } };
            for (size_t i = 0; i < ARRAY_LEN(values); i++) {
                double value = 0;
                size_t n = points_at(run, values[i].key, epoch, &value);
                if (n != 1 || value < values[i].want - 1e-9 || value > values[i].want + 1e-9)
                    fail_msg("%s: %s of epoch %d: %zu times, %g; want once %g", name, values[i].key, epoch, n, value,
                             values[i].want);
            }
        }
        double cores = 0;
        assert_int_equal(points_at(run, "system/cores", 0, &cores), 1);
        assert_true(cores == 1);
    }
}

static void a_study_is_handed_on(void **state)
{
    (void)state;
    run_study();
    AUTO_OUTPUT struct harness_output o = hand_on("5");
    expect("export", &o, 0, "MLflow: 3 runs made");
    expect_all_once();
    AUTO_JSON json_t *has = server_has();
    json_t *first = run_named(has, "s/1");
    assert_string_equal(text_at(run_named(has, "s"), "params", "study.epochs"), "5");
    assert_true(has_tag_with(first, ": launch: "));
    AUTO_OUTPUT struct harness_output again = hand_on("5");
    expect("once more", &again, 0, "MLflow: 0 runs made, 0 values sent");
    expect_all_once();
}

static void whatever_the_server_does_each_value_is_there_once(void **state)
{
    static const char *const faults[] = {
        "500 429 500",                  /* from the beginning on */
        "lost",                         /* the experiment */
        "ok lost ok lost lost",         /* runs, batches */
        "ok ok ok half half",           /* half a batch */
        "ok ok ok bad ok bad bad bad",  /* answers that say nothing */
        "ok ok lost 500 lost 429 half", /* one after the other */
        "ok ok ok ok ok lost ok half slow lost ok half ok lost half ok lost ok half",
    };
    (void)state;
    run_study();
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        harness_write(peer.dir, "faults", faults[i]);
        AUTO_OUTPUT struct harness_output o = hand_on("60");
        expect(faults[i], &o, 0, "MLflow: ");
        expect_all_once();
        renew_server();
    }
}

static void a_kill_at_any_request_sends_nothing_twice(void **state)
{
    static const char *const points[] = { "handing-run-made", "handing-batch-sent" };
    (void)state;
    run_study();
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        int kills = 0;
        (void)setenv("PIPETUNE_FAILPOINT", points[i], 1);
        for (int code = -1; code != 0; kills += code != 0) {
            AUTO_OUTPUT struct harness_output o = hand_on("5");
            code = o.code;
            assert_true(code == 0 || code == 128 + SIGKILL);
            assert_true(kills < 40);
        }
        (void)unsetenv("PIPETUNE_FAILPOINT");
        assert_true(kills >= 3);
        expect_all_once();
        renew_server();
    }
}

static void a_server_that_has_lost_all_is_told_again(void **state)
{
    (void)state;
    run_study();
    AUTO_OUTPUT struct harness_output o = hand_on("5");
    expect("export", &o, 0, "MLflow: 3 runs made");
    stop_server();
    start_server(); /* where it was, and empty */
    AUTO_OUTPUT struct harness_output again = hand_on("5");
    expect("again", &again, 0, "MLflow: 3 runs made");
    expect_all_once();
}

static void a_run_that_is_gone_is_made_again(void **state)
{
    static const char other[] =
        "import sqlite3, sys\n"
        "d = sqlite3.connect(sys.argv[1])\n"
        "d.execute(\"UPDATE handed SET run_id = 'gone', done = 0, seq = 0, status = '' WHERE trial = 2\")\n"
        "d.commit()\n";
    (void)state;
    run_study();
    AUTO_OUTPUT struct harness_output o = hand_on("5");
    expect("export", &o, 0, "MLflow: 3 runs made");
    renew_server(); /* has none of them, but for what the first round makes: another target */
    AUTO_OUTPUT struct harness_output to_other = hand_on("5");
    expect("to another one", &to_other, 0, "MLflow: 3 runs made");
    harness_write(peer.w->dir, "lose.py", other);
    char program[] = "/usr/bin/env", python[] = "python3", script[] = "lose.py", store[] = "pipetune.db";
    char *argv[] = { program, python, script, store, NULL };
    AUTO_OUTPUT struct harness_output lost = harness_run(argv, HARNESS_MS);
    assert_int_equal(lost.code, 0);
    AUTO_OUTPUT struct harness_output again = hand_on("5");
    expect("again", &again, 0, "a run is not there any more, and is made again");
    expect("it is", &again, 0, "MLflow: 1 runs made");
}

static bool has_first_epoch(void *arg)
{
    (void)arg;
    AUTO_FREE char *text = harness_read(peer.dir, "has.json");
    return text && strstr(text, "\"s/1\"");
}

static void a_study_is_handed_on_while_it_runs(void **state)
{
    AUTO_FREE char *to = url();
    char more[256];
    (void)state;
    (void)snprintf(more, sizeof more, ", \"mlflow\": { \"url\": \"%s\", \"experiment\": \"mine\" }", to);
    write_study(peer.w, more);
    AUTO_FREE char *hold = harness_path(peer.w->dir, "go");
    (void)setenv("HOLD", hold, 1);
    pid_t pid = START(peer.w, -1, "run", "--config", "s.conf");
    assert_true(harness_wait(has_first_epoch, NULL, HARNESS_MS)); /* while it trains */
    AUTO_OUTPUT struct harness_output beside = hand_on("1");
    expect("another one beside it", &beside, 3, "handed on by another process");
    harness_write(peer.w->dir, "go", "");
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    expect_all_once();
    AUTO_JSON json_t *has = server_has();
    assert_non_null(json_object_get(json_object_get(has, "experiments"), "mine"));
}

static void a_server_that_is_away_costs_nothing_but_delay(void **state)
{
    AUTO_FREE char *to = url();
    char more[256];
    (void)state;
    (void)snprintf(more, sizeof more, ", \"mlflow\": { \"url\": \"%s\" }", to);
    write_study(peer.w, more);
    stop_server();
    AUTO_OUTPUT struct harness_output o = RUN(peer.w, "run", "--config", "s.conf");
    expect("run", &o, 1, "MLflow: ");
    expect("the study", &o, 1, "s/2: finished");
    expect("what is to be done", &o, 1, "the same command goes on from here");
    start_server();
    AUTO_OUTPUT struct harness_output later = RUN(peer.w, "run", "--config", "s.conf");
    expect("later", &later, 0, "");
    expect_all_once();
}

static void credentials_are_kept_and_sent(void **state)
{
    AUTO_FREE char *to = url();
    AUTO_FREE char *path = harness_path(peer.w->dir, "secret");
    (void)state;
    run_study();
    harness_write(peer.w->dir, "secret", "me:hunter2\n");
    assert_int_equal(chmod(path, 0644), 0);
    AUTO_OUTPUT struct harness_output open =
        RUN(peer.w, "export", "mlflow", "s", "--url", to, "--credential-file", "secret");
    expect("a file that others may read", &open, 3, "chmod 600");
    assert_int_equal(chmod(path, 0600), 0);
    AUTO_OUTPUT struct harness_output o =
        RUN(peer.w, "export", "mlflow", "s", "--url", to, "--credential-file", "secret");
    expect("its owner's alone", &o, 0, "MLflow: 3 runs made");
    AUTO_JSON json_t *has = server_has();
    assert_string_equal(json_string_value(json_object_get(has, "credential")), "Basic bWU6aHVudGVyMg==");
    AUTO_OUTPUT struct harness_output clear =
        RUN(peer.w, "export", "mlflow", "s", "--url", "http://192.0.2.1:5000", "--credential-file", "secret");
    expect("in the clear", &clear, 2, "would go to another machine unencrypted");
}

static void what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *words[6];
        int code;
        const char *told;
    } cases[] = {
        { { "export", "mlflow", "s" }, 2, "to which server? say --url" },
        { { "export", "mlflow", "t", "--url", "http://127.0.0.1:1" }, 2, "no study 't'" },
        { { "export", "mlflow", "s", "--url", "ftp://x" }, 2, "the url of mlflow must begin with http:// or https://" },
        { { "export", "mlflow", "s", "--url", "http://a:b@x" }, 2, "the url of mlflow must be" },
        { { "export", "mlflow", "s", "x", "--url", "http://x" }, 2, "'export mlflow' takes 1 word: " },
    };
    (void)state;
    run_study();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *words[7] = { 0 };
        memcpy(words, cases[i].words, sizeof cases[i].words);
        AUTO_OUTPUT struct harness_output o = world_run(peer.w, words);
        expect(cases[i].told, &o, cases[i].code, cases[i].told);
    }
    write_study(peer.w, ", \"mlflow\": { \"ulr\": \"http://x\" }");
    AUTO_OUTPUT struct harness_output key = RUN(peer.w, "run", "--config", "s.conf");
    expect("a key", &key, 2, "did you mean 'url'?");
    write_study(peer.w, ", \"mlflow\": { \"url\": \"x\" }");
    AUTO_OUTPUT struct harness_output bad = RUN(peer.w, "run", "--config", "s.conf");
    expect("a url in a config", &bad, 2, "url of mlflow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_study_is_handed_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whatever_the_server_does_each_value_is_there_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_kill_at_any_request_sends_nothing_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_has_lost_all_is_told_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_is_gone_is_made_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_study_is_handed_on_while_it_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_away_costs_nothing_but_delay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(credentials_are_kept_and_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
