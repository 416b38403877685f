/* Studies that learn from earlier ones of their store, and points that are trained again with other seeds: as they are shown, and when drivers are
 * killed in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tests/integration/harness.h"

/* Its accuracy is best at lr 0.1 and momentum 0.9, rises with the epochs, and differs a little by the seed. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "seed=0; momentum=0.5; for word; do case $last in\n"                                                               \
    "  --epochs) epochs=$word;; --lr) lr=$word;; --momentum) momentum=$word;; --seed) seed=$word;; esac; last=$word\n" \
    "done\n"                                                                                                           \
    "awk -v lr=$lr -v m=$momentum -v seed=$seed -v n=$epochs 'BEGIN {\n"                                               \
    "  d = log(lr / 0.1) / log(10); best = 0.9 - 0.1 * d * d - 0.2 * (m - 0.9) ^ 2\n"                                  \
    "  for (e = 1; e <= n; e++)\n"                                                                                     \
    "    printf \"epoch %d: accuracy %.6f\\n\", e, best * (1 - exp(-e / 2)) + 0.002 * sin(seed * 7 + lr * 100) }'\n"

#define APP(arguments)                                                                                                 \
    "{ \"command\": [\"./train.sh\"], \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", "        \
    "\"{}\"]" arguments " },\n  \"progress\": [\"epoch (?<epoch>\\\\d+): accuracy (?<accuracy>\\\\S+)\"] }\n"
#define SEED ", \"seed\": [\"--seed\", \"{}\"]"
#define MOMENTUM ", \"momentum\": [\"--momentum\", \"{}\"]"

#define CONF(app, hyper, more)                                                                                         \
    "{ \"application\": \"" app "\", \"study\": { \"epochs\": 3, \"max_trials\": 6, \"parallel\": 1" more " },\n"      \
    "  \"search\": { \"algorithm\": \"tpe\", \"stop\": \"none\" }, \"systemParameters\": { \"cores\": [1] },\n"        \
    "  \"hyperParameters\": { " hyper " } }\n"
#define LR "\"lr\": { \"min\": 0.0001, \"max\": 10, \"scale\": \"log\" }"

static int open_with_first(void **state)
{
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME" };
    if (world_open(state) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    const struct world *w = *state;
    world_script(w, "train.sh", TRAIN);
    harness_write(w->dir, "app.json", APP(SEED));
    harness_write(w->dir, "momentum.json", APP(SEED MOMENTUM));
    harness_write(w->dir, "s.conf", CONF("app.json", LR, ""));
    harness_write(w->dir, "momentum.conf",
                  CONF("momentum.json", LR ", \"momentum\": { \"min\": 0.1, \"max\": 0.99 }", ""));
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "first", "--quiet");
    int code = o.code;
    harness_output_done(&o);
    return code;
}

static void expect(const char *what, const struct harness_output *o, int code, const char *text)
{
    if (o->code != code || !strstr(code ? o->err : o->out, text))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o->code, o->out, o->err, code, text);
}

#define BEST_OF_FIRST                                                                                                  \
    "(SELECT 'first/' || t.number FROM trials t JOIN studies s ON s.id = t.study AND s.name = 'first'"                 \
    " ORDER BY t.metric DESC LIMIT 1)"

static void a_second_study_begins_where_the_first_was_best(void **state)
{
    const struct world *w = *state;
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "second", "--seed", "2", "--learn-from", "first");
    expect("run", &o, 0, "learnt from first: ");
    harness_output_done(&o);
    harness_expect_rows("its first point is the best of the first study", "pipetune.db",
                        "SELECT t.learnt_from = " BEST_OF_FIRST " AND t.hyper = (SELECT hyper FROM trials o JOIN"
                        " studies s ON s.id = o.study WHERE s.name || '/' || o.number = t.learnt_from)"
                        " FROM trials t JOIN studies s ON s.id = t.study WHERE s.name = 'second' AND t.number = 1",
                        "1");
    harness_expect_rows("the next one is the search's own", "pipetune.db",
                        "SELECT t.learnt_from IS NULL FROM trials t JOIN studies s ON s.id = t.study"
                        " WHERE s.name = 'second' AND t.number = 2",
                        "1");
    harness_expect_rows("what was taken is told", "pipetune.db",
                        "SELECT count(*) FROM decisions WHERE kind = 'learn' AND reason LIKE"
                        " 'from study first: 6 of 6 trials are points here, % of them may be tried early'",
                        "1");
    struct harness_output show = RUN(w, "show", "second", "--json");
    AUTO_JSON json_t *j = json_loads(show.out, 0, NULL);
    const json_t *learnt = json_object_get(j, "learnt");
    assert_string_equal(json_string_value(json_array_get(json_object_get(learnt, "studies"), 0)), "first");
    assert_true(json_integer_value(json_object_get(learnt, "trials")) >= 2);
    const json_t *trust = json_object_get(learnt, "trust"); /* the others may be as good */
    assert_true(json_is_number(trust) && json_number_value(trust) >= 0 && json_number_value(trust) <= 1);
    const json_t *trial = json_array_get(json_object_get(j, "trials"), 0);
    assert_int_equal(strncmp(json_string_value(json_object_get(trial, "learnt_from")), "first/", 6), 0);
    assert_true(json_is_null(json_object_get(trial, "repeat_of")));
    assert_int_equal(json_array_size(json_object_get(j, "repeats")), 0);
    harness_output_done(&show);
    struct harness_output first = RUN(w, "show", "first", "--json");
    AUTO_JSON json_t *k = json_loads(first.out, 0, NULL);
    assert_true(json_is_null(json_object_get(k, "learnt")));
    harness_output_done(&first);
}

#define OF(name)                                                                                                       \
    "SELECT group_concat(t.number || ' ' || t.hyper || ' ' || coalesce(t.learnt_from, '-') || ' ' || t.metric) FROM"   \
    " trials t JOIN studies s ON s.id = t.study WHERE s.name = '" name "'"

static void assert_alike(const struct world *w, const char *what, const char *sql, const char *other_sql)
{
    AUTO_FREE char *store = harness_path(w->dir, "pipetune.db");
    AUTO_FREE char *a = harness_ask(store, sql);
    AUTO_FREE char *b = harness_ask(store, other_sql);
    if (!*a || strcmp(a, b) != 0)
        fail_msg("%s: %s\ninstead of %s", what, b, a);
}

static void it_goes_on_alike_when_the_earlier_study_is_removed(void **state)
{
    const struct world *w = *state;
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "calm", "--seed", "2", "--learn-from", "first");
    expect("calm", &o, 0, "finished");
    harness_output_done(&o);
    (void)setenv("PIPETUNE_FAILPOINT", "attempt-before-commit:1", 1);
    o = RUN(w, "run", "s.conf", "--name", "cut", "--seed", "2", "--learn-from", "first");
    (void)unsetenv("PIPETUNE_FAILPOINT");
    assert_int_equal(o.code, 128 + SIGKILL);
    harness_output_done(&o);
    o = RUN(w, "rm", "first", "--yes");
    expect("rm", &o, 0, "");
    harness_output_done(&o);
    harness_expect_rows("it is gone", "pipetune.db", "SELECT count(*) FROM studies WHERE name = 'first'", "0");
    o = RUN(w, "run", "s.conf", "--name", "cut", "--seed", "2", "--learn-from", "first");
    expect("cut", &o, 0, "finished");
    harness_output_done(&o);
    assert_alike(w, "trials", OF("calm"), OF("cut"));
}

static void what_an_earlier_study_did_not_know_is_drawn(void **state)
{
    const struct world *w = *state;
    struct harness_output o = RUN(w, "run", "momentum.conf", "--name", "more", "--learn-from", "first");
    expect("run", &o, 0, "finished");
    harness_output_done(&o);
    harness_expect_rows("it is told", "pipetune.db",
                        "SELECT count(*) FROM decisions WHERE kind = 'learn' AND reason LIKE"
                        " '%''momentum'' was no hyperparameter there and is drawn'",
                        "1");
    harness_expect_rows("lr is what it was", "pipetune.db",
                        "SELECT count(*) > 0 FROM trials t, trials o JOIN studies s ON s.id = o.study"
                        " WHERE s.name || '/' || o.number = t.learnt_from"
                        " AND json_extract(t.hyper, '$.lr') = json_extract(o.hyper, '$.lr')",
                        "1");
}

static const struct {
    const char *name, *words[8], *text;
} wrong[] = {
    { "no such study", { "--learn-from", "fist" }, "search.learn_from: no study 'fist': did you mean 'first'?" },
    { "nothing like it", { "--learn-from", "first,elsewhere" }, "no study 'elsewhere' in the store" },
    { "another metric",
      { "--learn-from", "first", "--metric", "loss" },
      "study 'first' was measured by 'accuracy' (greater is better), this one by 'loss' (less is better)" },
    { "a search that goes through all",
      { "--learn-from", "first", "--algorithm", "random" },
      "search 'random' takes points as they come and learns nothing from earlier studies" },
};

static void what_cannot_be_learnt_from_is_told(void **state)
{
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        char *argv[16] = { w->program, (char *)"run", (char *)"s.conf", (char *)"--name", (char *)"x" };
        for (size_t k = 0; k < ARRAY_LEN(wrong[i].words) && wrong[i].words[k]; k++)
            argv[5 + k] = (char *)(uintptr_t)wrong[i].words[k];
        struct harness_output o = harness_run(argv, HARNESS_MS);
        expect(wrong[i].name, &o, 2, wrong[i].text);
        harness_output_done(&o);
    }
    harness_write(w->dir, "width.json",
                  "{ \"command\": [\"true\"], \"arguments\": { \"width\": [\"--width\", \"{}\"] } }");
    harness_write(w->dir, "width.conf", CONF("width.json", "\"width\": { \"min\": 1, \"max\": 9 }", ""));
    struct harness_output o = RUN(w, "run", "width.conf", "--learn-from", "first");
    expect("nothing in common", &o, 2,
           "study 'first' has no hyperparameter that this one has, too: it has lr, here are width");
    harness_output_done(&o);
    harness_expect_rows("none of these is a study", "pipetune.db", "SELECT name FROM studies", "first");
}

static void names_may_be_a_list(void **state)
{
    const struct world *w = *state;
    harness_write(w->dir, "list.conf",
                  "{ \"application\": \"app.json\", \"study\": { \"name\": \"l\", \"epochs\": 1, \"max_trials\": 2 },\n"
                  "  \"search\": { \"learn_from\": [\"first\", \"nobody\"] }, \"hyperParameters\": { " LR " } }\n");
    struct harness_output o = RUN(w, "run", "list.conf");
    expect("a list", &o, 2, "no study 'nobody'");
    harness_output_done(&o);
    harness_write(w->dir, "list.conf",
                  "{ \"application\": \"app.json\", \"study\": { \"name\": \"l\" },\n"
                  "  \"search\": { \"learn_from\": [3] }, \"hyperParameters\": { " LR " } }\n");
    o = RUN(w, "run", "list.conf");
    expect("no list of names", &o, 2, "must hold strings only");
    harness_output_done(&o);
}

#define REPEATS_OF(name)                                                                                               \
    "SELECT group_concat(t.number || ' ' || t.repeat_of || ' ' || t.repeat || ' ' || t.state || ' ' || t.metric || ' " \
    "'"                                                                                                                \
    " || t.hyper) FROM trials t JOIN studies s ON s.id = t.study WHERE s.name = '" name "'"

static void the_best_points_are_trained_again(void **state)
{
    const struct world *w = *state;
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "r", "--repeats", "3", "--repeat-best", "2");
    expect("run", &o, 0, "trained again with other seeds, the best first");
    assert_int_equal(harness_count(o.out, " of 3; it was number "), 2);
    harness_output_done(&o);
    harness_expect_rows("each of two twice more, with the trial's hyperparameters", "pipetune.db",
                        "SELECT r.number, r.repeat, r.hyper = o.hyper, r.metric = o.metric, r.state FROM trials r"
                        " JOIN trials o ON o.study = r.study AND o.number = r.repeat_of ORDER BY 1",
                        "7|1|1|0|finished 8|1|1|0|finished 9|2|1|0|finished 10|2|1|0|finished");
    harness_expect_rows("of the best two", "pipetune.db",
                        "SELECT (SELECT count(DISTINCT repeat_of) FROM trials WHERE repeat_of > 0),"
                        " (SELECT min(o.metric) FROM trials o JOIN trials r ON r.study = o.study AND r.repeat_of ="
                        " o.number) >= (SELECT metric FROM trials t JOIN studies s ON s.id = t.study WHERE s.name ="
                        " 'r' AND repeat_of = 0 ORDER BY metric DESC LIMIT 1 OFFSET 1)",
                        "2|1");
    harness_expect_rows("the search is not told of them", "pipetune.db",
                        "SELECT count(*) FROM tells t JOIN studies s ON s.id = t.study WHERE s.name = 'r'"
                        " AND proposal > 5 OR proposal < 0",
                        "0");
    struct harness_output show = RUN(w, "show", "r", "--json");
    AUTO_JSON json_t *j = json_loads(show.out, 0, NULL);
    const json_t *repeats = json_object_get(j, "repeats"), *first = json_array_get(repeats, 0);
    assert_int_equal(json_array_size(repeats), 2);
    assert_int_equal(json_integer_value(json_object_get(first, "n")), 3);
    assert_true(json_number_value(json_object_get(first, "sd")) > 0);
    assert_true(json_number_value(json_object_get(first, "mean")) >=
                json_number_value(json_object_get(json_array_get(repeats, 1), "mean")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "best"), "trial")),
                     json_integer_value(json_object_get(first, "trial")));
    harness_output_done(&show);
    o = RUN(w, "run", "s.conf", "--name", "r", "--repeats", "3", "--repeat-best", "2");
    expect("again", &o, 0, "10 trials");
    harness_output_done(&o);
}

/* Killed at each end and at each beginning of the trials that are repeats, and of the one before them. */
static void repeats_go_on_when_drivers_are_killed(void **state)
{
    const struct world *w = *state;
    static const char *const points[] = { "end-before-commit", "end-committed", "attempt-before-commit",
                                          "attempt-committed" };
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "calm", "--repeats", "2");
    expect("calm", &o, 0, "finished");
    harness_output_done(&o);
    (void)setenv("PIPETUNE_FAILPOINT", "end-committed:6", 1); /* the search has ended, and nobody knows */
    for (int kills = 0;; kills++) {
        o = RUN(w, "run", "s.conf", "--name", "cut", "--repeats", "2");
        int code = o.code;
        harness_output_done(&o);
        if (code == 0)
            break;
        if (code != 128 + SIGKILL || kills > 20)
            fail_msg("kill %d: exit %d", kills, code);
        char next[64];
        (void)snprintf(next, sizeof next, "%s:%d", points[kills % 4], kills % 2 + 1);
        (void)setenv("PIPETUNE_FAILPOINT", next, 1);
        if (kills == 8)
            (void)unsetenv("PIPETUNE_FAILPOINT");
    }
    (void)unsetenv("PIPETUNE_FAILPOINT");
    assert_alike(w, "repeats", REPEATS_OF("calm"), REPEATS_OF("cut"));
    harness_expect_rows("none was trained twice", "pipetune.db",
                        "SELECT count(*) FROM attempts a JOIN trials t ON t.id = a.trial JOIN attempts b ON b.trial ="
                        " a.trial AND b.number > a.number WHERE a.outcome = 'finished'",
                        "0");
}

static void a_budget_ends_repeats_too(void **state)
{
    const struct world *w = *state;
    struct harness_output o =
        RUN(w, "run", "s.conf", "--name", "b", "--repeats", "3", "--budget-epochs", "21"); /* 18, and one repeat */
    expect("run", &o, 0, "the study ends: ");
    harness_output_done(&o);
    harness_expect_rows("one was made", "pipetune.db",
                        "SELECT count(*) FROM trials WHERE repeat_of > 0 AND state = 'finished'", "1");
}

static void seeds_that_do_not_reach_the_application_are_told(void **state)
{
    const struct world *w = *state;
    harness_write(w->dir, "app.json", APP(""));
    struct harness_output o = RUN(w, "run", "s.conf", "--name", "n", "--repeats", "2");
    if (o.code != 0 || !strstr(o.err, "the application file has no 'seed' in 'arguments'"))
        fail_msg("got exit %d, %s", o.code, o.err);
    harness_output_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_second_study_begins_where_the_first_was_best, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(it_goes_on_alike_when_the_earlier_study_is_removed, open_with_first,
                                        world_close),
        cmocka_unit_test_setup_teardown(what_an_earlier_study_did_not_know_is_drawn, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(what_cannot_be_learnt_from_is_told, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(names_may_be_a_list, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(the_best_points_are_trained_again, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(repeats_go_on_when_drivers_are_killed, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(a_budget_ends_repeats_too, open_with_first, world_close),
        cmocka_unit_test_setup_teardown(seeds_that_do_not_reach_the_application_are_told, open_with_first, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
