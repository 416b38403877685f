/* Looking at a store with the built program: what is printed, which keys there are, how it exits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/help_facts.h"
#include "store/series.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { T0_S = 1700000000, WORDS = 8 };

/* A folder with a store in it. */
struct shown {
    char *dir, *store;
};

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* Runs pipetune with these words; "@" is the store's path. */
static struct harness_output look(const struct shown *w, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 4] = { program };
    size_t n = 1;
    for (; *words; words++)
        argv[n++] = (char *)(uintptr_t)(strcmp(*words, "@") == 0 ? w->store : *words);
    return harness_run(argv, HARNESS_MS);
}

#define LOOK(w, ...) look(w, (const char *const[]){ __VA_ARGS__, NULL })

static json_t *parsed(const struct harness_output *o)
{
    json_error_t e;
    json_t *j = json_loads(o->out, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("no JSON: %s line %d; stdout: %s stderr: %s", e.text, e.line, o->out, o->err);
    return j;
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static void expect_keys(const json_t *j, const char *const *keys)
{
    for (; *keys; keys++)
        if (!json_object_get(j, *keys))
            fail_msg("no key '%s'", *keys);
}

#define EXPECT_KEYS(j, ...) expect_keys(j, (const char *const[]){ __VA_ARGS__, NULL })

/* --- a store with something in it --- */

static int64_t add_study(struct store *s, const char *name, const char *state)
{
    struct err e = { 0 };
    struct store_study row = {
        .name = (char *)(uintptr_t)name,
        .state = (char *)(uintptr_t)state,
        .config = (char *)(uintptr_t) "{\"study\":{\"metric\":\"accuracy\",\"epochs\":2}}",
        .space_hash = (char *)(uintptr_t) "0123456789abcdef",
        .provenance = (char *)(uintptr_t) "{\"pipetune\":\"0.1.0\",\"spark\":\"3.5.8\",\"java\":17,\"host\":\"here\"}",
        .maximise = true,
        .seed = 1,
        .created_ms = T0_S * INT64_C(1000),
        .ended_ms = strcmp(state, "running") == 0 ? 0 : T0_S * INT64_C(1000) + 60000,
    };
    int64_t id = 0;
    check(store_study_add(s, &row, &id, &e), &e);
    return id;
}

static int64_t add_trial(struct store *s, int64_t study, int number, const char *state, double accuracy)
{
    struct err e = { 0 };
    char hyper[96];
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"learning_rate\":0.1}", 64 * number);
    struct store_trial row = {
        .study = study,
        .number = number,
        .proposal = (uint64_t)number - 1,
        .state = (char *)(uintptr_t)state,
        .epochs = 2,
        .hyper = hyper,
        .requested = (char *)(uintptr_t) "{\"cores\":16,\"memory\":2}",
        .effective = (char *)(uintptr_t) "{\"cores\":2,\"memory\":2}",
        .slots = 2,
        .accuracy = accuracy,
        .loss = isnan(accuracy) ? (double)NAN : 1 - accuracy,
        .metric = accuracy,
        .seconds = isnan(accuracy) ? 0 : 20.5,
        .reason = strcmp(state, "failed") == 0 ? (char *)(uintptr_t) "java heap space\nat line 2" : NULL,
    };
    check(store_trial_add(s, &row, &e), &e);
    return row.id;
}

static void add_attempt(struct store *s, int64_t trial, const char *state, const char *outcome, int epochs)
{
    struct err e = { 0 };
    struct store_attempt row = {
        .trial = trial,
        .state = (char *)(uintptr_t)state,
        .outcome = (char *)(uintptr_t)outcome,
        .launch = (char *)(uintptr_t) "pt-1",
        .argv = (char *)(uintptr_t) "[\"/opt/spark/bin/spark-submit\",\"--master\",\"local[2]\",\"an app.py\"]",
        .started_ms = T0_S * INT64_C(1000),
        .ended_ms = outcome ? T0_S * INT64_C(1000) + 20500 : 0,
        .exit_code = outcome ? 0 : -1,
        .cause = outcome && strcmp(outcome, "failed") == 0 ? (char *)(uintptr_t) "java heap space" : NULL,
        .first_epoch = 1,
    };
    check(store_attempt_add(s, &row, &e), &e);
    for (int i = 1; i <= epochs; i++) {
        struct store_epoch epoch = { .trial = trial,
                                     .epoch = i,
                                     .attempt = row.number,
                                     .accuracy = 0.9 + 0.01 * i,
                                     .loss = NAN,
                                     .metric = 0.9 + 0.01 * i,
                                     .seconds = 10,
                                     .records = 60000,
                                     .iterations = 59,
                                     .learning_rate = 0.1,
                                     .end_ms = T0_S * INT64_C(1000) + i };
        check(store_epoch_put(s, &epoch, &e), &e);
        struct series told = { 0 };
        assert_int_equal(series_add(&told, "f1", i, 0, 1, 0.5 * i), 0);
        assert_int_equal(series_add(&told, "f1", i, i, 1, NAN), 0);
        assert_int_equal(series_add(&told, "accuracy", i, 0, 1, 0.9), 0); /* has a column already */
        check(store_series_put(s, trial, row.number, &told, &e), &e);
        series_done(&told);
    }
}

static void add_decision(struct store *s, int64_t study, int trial, const char *kind, const char *setting)
{
    struct err e = { 0 };
    struct store_decision d = {
        .trial = trial, .t_s = 1.5 + trial, .kind = kind, .setting = setting, .reason = "because"
    };
    check(store_decision_add(s, study, &d, &e), &e);
}

/* Two studies: "demo" has a finished trial, the best, a failed and a waiting one; "cut" was left while it ran. */
static void fill(const struct shown *w)
{
    struct err e = { 0 };
    struct store *s = NULL;
    check(store_open(&s, w->store, STORE_WRITE, &e), &e);
    int64_t demo = add_study(s, "demo", "finished");
    int64_t first = add_trial(s, demo, 1, "finished", 0.92);
    add_attempt(s, first, "ended", "interrupted", 0);
    add_attempt(s, first, "ended", "finished", 2);
    add_attempt(s, add_trial(s, demo, 2, "finished", 0.9914), "ended", "finished", 2);
    add_attempt(s, add_trial(s, demo, 3, "failed", NAN), "ended", "failed", 1);
    (void)add_trial(s, demo, 4, "waiting", NAN);
    add_decision(s, demo, 0, "begin", NULL);
    add_decision(s, demo, 1, "launch", "{\"cores\":2}");
    int64_t cut = add_study(s, "cut", "running");
    add_attempt(s, add_trial(s, cut, 1, "running", NAN), "running", NULL, 1);
    store_close(s);
}

static int make_world(void **state)
{
    struct shown *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->dir = harness_dir();
    w->store = harness_path(w->dir, "pipetune.db");
    *state = w;
    return 0;
}

static int make_filled_world(void **state)
{
    (void)make_world(state);
    fill(*state);
    return 0;
}

static int end_world(void **state)
{
    struct shown *w = *state;
    harness_remove(w->dir);
    free(w->store);
    free(w);
    return 0;
}

/* --- ls --- */

static void test_ls_json_has_exactly_its_keys(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--json", "--store", "@");
    assert_int_equal(o.code, 0);
    json_t *j = parsed(&o);
    assert_int_equal(json_array_size(j), 2);
    json_t *demo = json_array_get(j, 0), *cut = json_array_get(j, 1);
    EXPECT_KEYS(demo, "study", "state", "trials", "done", "failed", "stopped", "paused", "best", "seconds", "energy_j",
                "tags");
    assert_int_equal(json_object_size(demo), 11);
    json_t *best = json_object_get(demo, "best");
    assert_int_equal(json_object_size(best), 2);
    assert_int_equal(json_integer_value(json_object_get(best, "trial")), 2);
    assert_true(json_number_value(json_object_get(best, "accuracy")) == 0.9914);
    assert_int_equal(json_integer_value(json_object_get(demo, "trials")), 4);
    assert_int_equal(json_integer_value(json_object_get(demo, "done")), 2);
    assert_int_equal(json_integer_value(json_object_get(demo, "failed")), 1);
    assert_true(json_number_value(json_object_get(demo, "seconds")) == 41);
    assert_true(json_is_null(json_object_get(demo, "energy_j"))); /* absent, not 0 */
    expect_text(o.out, "0.9914");
    assert_null(strstr(o.out, "0.99139"));
    assert_true(json_is_null(json_object_get(cut, "best")));
    assert_string_equal(json_string_value(json_object_get(cut, "state")), "interrupted");
    json_decref(j);
}

static void test_ls_names_are_the_names_alone(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--names", "--store", "@");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "demo\ncut\n");
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "ls", "--names", "--store", "/nonexistent/x.db");
    assert_string_equal(none.out, "");
}

static void test_ls_prints_a_table(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_text(o.out, "study       best value  best    state");
    expect_text(o.out, "demo   accuracy 0.9914  demo/2  finished");
    expect_text(o.out, "interrupted");
}

static void test_ls_without_a_store_is_an_empty_list(void **state)
{
    struct shown *w = *state;
    AUTO_OUTPUT struct harness_output people = LOOK(w, "ls", "--store", "@");
    assert_int_equal(people.code, 0);
    expect_text(people.out, "no study in");
    AUTO_OUTPUT struct harness_output json = LOOK(w, "ls", "--json", "--store", "@");
    assert_int_equal(json.code, 0);
    assert_string_equal(json.out, "[]\n");
    assert_false(io_exists(w->store)); /* looking creates nothing */
}

/* The lock is the driver's: another process that holds it makes the study "running". */
static void test_a_study_whose_driver_lives_is_running(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *dir = harness_path(w->dir, "pipetune.d/cut");
    AUTO_FREE char *path = harness_path(dir, "driver.lock");
    struct err e;
    check(io_mkdirs(dir, &e), &e);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    AUTO_OUTPUT struct harness_output ls = LOOK(w, "ls", "--store", "@");
    assert_null(strstr(ls.out, "interrupted"));
    AUTO_OUTPUT struct harness_output show = LOOK(w, "show", "cut", "--store", "@");
    char pid[32];
    (void)snprintf(pid, sizeof pid, "driver pid %ld", (long)getpid());
    expect_text(show.out, pid);
    assert_null(strstr(show.out, "interrupted"));
}

static void test_ls_where_lists_the_trials_for_which_it_holds(void **state)
{
    static const struct {
        const char *name, *condition, *want;
    } cases[] = {
        { "a metric and a hyperparameter", "accuracy > 0.95 and batch_size = 128", "demo/2\n" },
        { "all of a study", "study = 'cut'", "cut/1\n" },
        { "one of two", "state = 'failed' or state = 'waiting'", "demo/3\ndemo/4\n" },
        { "what is not so", "not (state = 'finished') and trial < 4", "demo/3\ncut/1\n" },
        { "what is absent holds nowhere", "accuracy <= 1 or accuracy > 1", "demo/1\ndemo/2\n" },
        { "a system parameter as it is in force", "cores = 2 and metric < 0.95", "demo/1\n" },
        { "a metric by its name, of the last epoch", "f1 = 1 and study = 'demo'", "demo/1\ndemo/2\n" },
        { "a part of a text", "study ~ 'UT'", "cut/1\n" },
        { "joules that nobody measured", "energy_j >= 0", "" },
        { "a state that the store cannot know", "state = 'interrupted'", "cut/1\n" },
        { "reckoning", "batch_size % 128 = 0 and learning_rate*10 >= 1", "demo/2\ndemo/4\n" },
        { "what was said of a trial", "tag = 'good'", "demo/2\n" },
        { "what was said of its study", "tag ~ 'lunch' and trial = 1", "demo/1\n" },
        { "what nobody said", "tag = 'goo'", "" },
    };
    AUTO_OUTPUT struct harness_output one = LOOK(*state, "tag", "demo/2", "good", "--store", "@");
    AUTO_OUTPUT struct harness_output two = LOOK(*state, "tag", "demo", "before", "lunch", "--store", "@");
    assert_int_equal(one.code + two.code, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OUTPUT struct harness_output o =
            LOOK(*state, "ls", "--where", cases[i].condition, "--names", "--store", "@");
        if (o.code != 0 || strcmp(o.out, cases[i].want) != 0)
            fail_msg("%s: got %d %s%s, want %s", cases[i].name, o.code, o.out, o.err, cases[i].want);
    }
}

static void test_ls_where_tells_metric_settings_and_tags(void **state)
{
    AUTO_OUTPUT struct harness_output tag = LOOK(*state, "tag", "demo/2", "good", "--store", "@");
    assert_int_equal(tag.code, 0);
    AUTO_OUTPUT struct harness_output people = LOOK(*state, "ls", "--where", "accuracy > 0", "--store", "@");
    expect_text(people.out, "trial   accuracy  state     batch_size");
    expect_text(people.out, "demo/2    0.9914  finished         128");
    expect_text(people.out, "tags: good");
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--where", "trial = 2", "--json", "--store", "@");
    json_t *j = parsed(&o), *first = json_array_get(j, 0);
    assert_int_equal(json_array_size(j), 1);
    EXPECT_KEYS(first, "study", "trial", "state", "metric", "accuracy", "seconds", "hyper", "system", "tags");
    AUTO_FREE char *hyper = json_text(json_object_get(first, "hyper"));
    assert_string_equal(hyper, "{\"batch_size\": 128, \"learning_rate\": 0.1}");
    assert_int_equal(json_array_size(json_object_get(first, "tags")), 1);
    json_decref(j);
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "ls", "--where", "accuracy > 2", "--store", "@");
    assert_int_equal(none.code, 0);
    expect_text(none.out, "no trial where accuracy > 2");
}

static void test_a_condition_that_is_none_is_told_with_its_place(void **state)
{
    static const struct {
        const char *condition, *told;
    } cases[] = {
        { "acuracy > 1", "names 'acuracy', which is nothing here; did you mean 'accuracy'?" },
        { "batchsize = 1", "did you mean 'batch_size'?" },
        { "(accuracy > 1", "a ')' is missing at its end" },
        { "accuracy > and 1", "there is something more at '1'" },
        { "state = finished", "texts stand in quotes: state = 'finished'" },
        { "accuracy > 1)", "there is something more at ')'" },
        { "", "a value is missing at its end" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OUTPUT struct harness_output o = LOOK(*state, "ls", "--where", cases[i].condition, "--store", "@");
        assert_int_equal(o.code, CMD_USAGE);
        expect_text(o.err, "option '--where':");
        expect_text(o.err, cases[i].told);
    }
}

/* --- tag --- */

static void test_what_is_said_is_kept_shown_and_taken_off(void **state)
{
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "tag", "demo", "--store", "@");
    assert_string_equal(none.out, "demo has no tags\n");
    AUTO_OUTPUT struct harness_output first = LOOK(*state, "tag", "demo/2", "good", "one", "--store", "@");
    assert_string_equal(first.out, "good one\n");
    AUTO_OUTPUT struct harness_output again = LOOK(*state, "tag", "demo/2", "good one", "--store", "@");
    assert_string_equal(again.out, "good one\n");
    AUTO_OUTPUT struct harness_output study = LOOK(*state, "tag", "demo", "for the talk", "--json", "--store", "@");
    AUTO_JSON json_t *j = parsed(&study);
    AUTO_FREE char *text = json_text(j);
    assert_string_equal(text, "{\"study\": \"demo\", \"trial\": null, \"tags\": [\"for the talk\"]}");
    AUTO_OUTPUT struct harness_output ls = LOOK(*state, "ls", "--store", "@");
    expect_text(ls.out, "tags: for the talk");
    AUTO_OUTPUT struct harness_output show = LOOK(*state, "show", "demo", "--store", "@");
    expect_text(show.out, "tags: for the talk");
    expect_text(show.out, "tags: good one");
    AUTO_OUTPUT struct harness_output trial = LOOK(*state, "show", "demo/2", "--store", "@");
    expect_text(trial.out, "tags: good one");
    AUTO_OUTPUT struct harness_output shown_json = LOOK(*state, "show", "demo", "--json", "--store", "@");
    AUTO_JSON json_t *s = parsed(&shown_json);
    assert_int_equal(json_array_size(json_object_get(s, "tags")), 1);
    json_t *second = json_array_get(json_object_get(s, "trials"), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(second, "tags"), 0)), "good one");
    AUTO_OUTPUT struct harness_output off = LOOK(*state, "tag", "demo/2", "good", "one", "--remove", "--store", "@");
    assert_string_equal(off.out, "demo/2 has no tags\n");
    AUTO_OUTPUT struct harness_output all = LOOK(*state, "tag", "demo", "--remove", "--store", "@");
    assert_string_equal(all.out, "demo has no tags\n");
}

static void test_tags_that_cannot_be_are_told(void **state)
{
    static const struct {
        const char *words[2], *told;
    } cases[] = {
        { { "nosuch", "x" }, "no study 'nosuch'" },          { { "demo/9", "x" }, "there is no trial demo/9" },
        { { "demo", "" }, "a tag must be one line" },        { { "demo", "a\nb" }, "a tag must be one line" },
        { { "demo", "\x1b[2J" }, "a tag must be one line" }, { { "demo", "\xff" }, "a tag must be one line" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OUTPUT struct harness_output o = LOOK(*state, "tag", cases[i].words[0], cases[i].words[1], "--store", "@");
        assert_int_equal(o.code, CMD_USAGE);
        expect_text(o.err, cases[i].told);
    }
    AUTO_OUTPUT struct harness_output what = LOOK(*state, "tag", "--store", "@");
    assert_int_equal(what.code, CMD_USAGE);
    expect_text(what.err, "tag what?");
    AUTO_OUTPUT struct harness_output off = LOOK(*state, "tag", "demo", "x", "--remove", "--store", "@");
    assert_int_equal(off.code, CMD_USAGE);
    expect_text(off.err, "'demo' has no tag 'x'");
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "tag", "demo", "x", "--store", "/nonexistent/x.db");
    assert_int_equal(none.code, CMD_ENVIRONMENT);
}

/* --- show --- */

static json_t *shown(const struct harness_output *o, size_t trial)
{
    json_t *j = parsed(o);
    json_t *t = json_incref(json_array_get(json_object_get(j, "trials"), trial));
    json_decref(j);
    assert_non_null(t);
    return t;
}

static void test_show_json_has_its_keys(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "demo", "--json", "--store", "@");
    assert_int_equal(o.code, 0);
    json_t *j = parsed(&o);
    EXPECT_KEYS(j, "study", "trials", "state", "best", "config", "provenance");
    assert_int_equal(json_array_size(json_object_get(j, "trials")), 4);
    json_t *t = json_array_get(json_object_get(j, "trials"), 0);
    EXPECT_KEYS(t, "trial", "state", "attempts", "hyper", "system", "epochs", "accuracy", "seconds", "energy");
    assert_int_equal(json_integer_value(json_object_get(t, "attempts")), 2);
    assert_int_equal(json_array_size(json_object_get(t, "attempt_list")), 2);
    json_t *system = json_object_get(t, "system"), *energy = json_object_get(t, "energy");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(system, "requested"), "cores")), 16);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(system, "effective"), "cores")), 2);
    json_t *absent = json_pack("{s:n, s:s, s:n}", "j", "source", "absent", "coverage");
    assert_true(json_equal(energy, absent));
    json_t *epoch = json_array_get(json_object_get(t, "epochs"), 1);
    EXPECT_KEYS(epoch, "accuracy", "loss", "seconds");
    assert_true(json_is_null(json_object_get(epoch, "loss"))); /* absent, not 0 */
    json_decref(absent);
    json_decref(j);
}

static void expect_metrics(json_t *trial, const char *want)
{
    AUTO_FREE char *got = json_text(json_object_get(json_object_get(trial, "metrics"), "f1"));
    assert_string_equal(got, want);
}

static void test_show_has_all_that_was_told_by_name(void **state)
{
    AUTO_OUTPUT struct harness_output all = LOOK(*state, "show", "demo", "--json", "--store", "@");
    json_t *t = shown(&all, 0);
    expect_metrics(t, "[{\"epoch\": 1, \"step\": null, \"value\": 0.5}, {\"epoch\": 2, \"step\": null, \"value\": 1}]");
    json_decref(t);
    AUTO_OUTPUT struct harness_output one = LOOK(*state, "show", "demo", "1", "--json", "--store", "@");
    t = shown(&one, 0); /* with its steps; what was not finite is absent */
    expect_metrics(t, "[{\"epoch\": 1, \"step\": null, \"value\": 0.5}, {\"epoch\": 2, \"step\": null, \"value\": 1}, "
                      "{\"epoch\": 1, \"step\": 1, \"value\": null}, {\"epoch\": 2, \"step\": 2, \"value\": null}]");
    json_decref(t);
    AUTO_OUTPUT struct harness_output people = LOOK(*state, "show", "demo", "1", "--store", "@");
    expect_text(people.out, "\nmetric  epochs  first  lowest  highest  last\n");
    expect_text(people.out, "\nf1           2    0.5     0.5        1     1\n");
    AUTO_OUTPUT struct harness_output report = LOOK(*state, "report", "demo", "--json", "--store", "@");
    t = shown(&report, 0);
    expect_metrics(t, "[{\"epoch\": 1, \"step\": null, \"value\": 0.5}, {\"epoch\": 2, \"step\": null, \"value\": 1}]");
    json_decref(t);
}

static void test_show_of_one_trial_has_that_trial_and_its_command(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "demo", "2", "--json", "--store", "@");
    json_t *t = shown(&o, 0);
    assert_int_equal(json_integer_value(json_object_get(t, "trial")), 2);
    json_t *attempt = json_array_get(json_object_get(t, "attempt_list"), 0);
    assert_int_equal(json_array_size(json_object_get(attempt, "command")), 4);
    json_decref(t);
    AUTO_OUTPUT struct harness_output people = LOOK(*state, "show", "demo", "1", "--store", "@");
    expect_text(people.out, "/opt/spark/bin/spark-submit --master 'local[2]' 'an app.py'");
    expect_text(people.out, "interrupted");
    expect_text(people.out, "cores 2 [16]");
}

static void test_show_prints_trials_and_the_best(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "demo", "--store", "@");
    assert_int_equal(o.code, 0);
    expect_text(o.out, "study demo: finished");
    expect_text(o.out, "best: demo/2, accuracy 0.9914");
    expect_text(o.out, "2 [16]");
    expect_text(o.out, "2/2");
    expect_text(o.out, "1/2");
    expect_text(o.out, "java heap space at line 2");
}

static void test_show_calls_a_trial_without_a_driver_interrupted(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "cut", "--json", "--store", "@");
    json_t *t = shown(&o, 0);
    assert_string_equal(json_string_value(json_object_get(t, "state")), "interrupted");
    json_decref(t);
}

static void test_show_decisions_tells_the_story(void **state)
{
    AUTO_OUTPUT struct harness_output o = LOOK(*state, "show", "demo", "--decisions", "--json", "--store", "@");
    json_t *j = parsed(&o);
    assert_int_equal(json_array_size(j), 2);
    EXPECT_KEYS(json_array_get(j, 1), "seq", "trial", "t_s", "kind", "setting", "reason");
    assert_int_equal(json_object_size(json_array_get(j, 1)), 6);
    json_decref(j);
    AUTO_OUTPUT struct harness_output one = LOOK(*state, "show", "demo", "1", "--decisions", "--store", "@");
    expect_text(one.out, "launch");
    assert_int_equal(harness_count(one.out, "\n"), 1);
    AUTO_OUTPUT struct harness_output none = LOOK(*state, "show", "cut", "--decisions", "--json", "--store", "@");
    assert_string_equal(none.out, "[]\n");
}

static void test_show_log_is_the_path(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *dir = harness_path(w->dir, "pipetune.d/demo/1");
    struct err e;
    check(io_mkdirs(dir, &e), &e);
    harness_write(dir, "log", "x\n");
    AUTO_FREE char *path = harness_path(dir, "log");
    AUTO_OUTPUT struct harness_output o = LOOK(w, "show", "demo", "1", "--log", "--store", "@");
    assert_int_equal(o.code, 0);
    o.out[strcspn(o.out, "\n")] = '\0';
    assert_string_equal(o.out, path);
}

/* --- a trial that runs --- */

#define STEP(epoch, done, n)                                                                                           \
    "2023-11-14 22:13:21.00" n " INFO DistriOptimizer$: [Epoch " epoch " " done "/60000][Iteration 6" n                \
    "][Wall Clock 1." n "s] Trained 512.0 records in 0.1 seconds. Throughput is 5120.0 records/second. Loss is 0.3.\n"

/* Its driver holds the study's lock, and is in the middle of a transaction. */
static void test_a_running_trial_is_shown_as_it_is_now(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *dir = harness_path(w->dir, "pipetune.d/cut");
    AUTO_FREE char *trial = harness_path(dir, "1");
    AUTO_FREE char *path = harness_path(dir, "driver.lock");
    struct err e;
    check(io_mkdirs(trial, &e), &e);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    static const char accounted[] = STEP("1", "60000", "1");
    AUTO_FREE char *sql = NULL;
    assert_true(asprintf(&sql,
                         "UPDATE attempts SET cores = 1, log_offset = %zu, started_ms = (unixepoch() - 90) * 1000 "
                         "WHERE state = 'running'",
                         sizeof accounted - 1) > 0);
    free(harness_ask(w->store, sql));
    harness_write(trial, "log", STEP("1", "60000", "1") STEP("2", "25600", "2") "half a li");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->store, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE; UPDATE trials SET seconds = seconds", NULL, NULL, NULL),
                     SQLITE_OK);
    AUTO_OUTPUT struct harness_output o = LOOK(w, "show", "cut", "--json", "--store", "@");
    AUTO_OUTPUT struct harness_output people = LOOK(w, "show", "cut", "--store", "@");
    AUTO_OUTPUT struct harness_output one = LOOK(w, "show", "cut/1", "--store", "@");
    AUTO_OUTPUT struct harness_output ls = LOOK(w, "ls", "--json", "--store", "@");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    json_t *j = parsed(&o), *t = json_array_get(json_object_get(j, "trials"), 0), *now = json_object_get(t, "now");
    assert_int_equal(json_integer_value(json_object_get(now, "epoch")), 2);
    assert_true(fabs(json_number_value(json_object_get(now, "part")) - 25600.0 / 60000) < 1e-9);
    assert_true(json_number_value(json_object_get(now, "records_per_s")) == 5120);
    assert_true(json_number_value(json_object_get(now, "cores")) == 1);
    assert_true(json_number_value(json_object_get(now, "seconds")) > 80);
    assert_true(json_number_value(json_object_get(j, "seconds")) > 80); /* the study's, too */
    json_decref(j);
    expect_text(people.out,
                "\n  epoch 2 of 2 under way, 43 % of it, 5120 records/s; 1 CPU in force; foretold for epoch 2: 0.9");
    expect_text(one.out,
                "now: epoch 2 of 2 under way, 43 % of it, 5120 records/s; 1 CPU in force\nforetold for epoch 2: 0.9");
    j = parsed(&ls);
    assert_true(json_number_value(json_object_get(json_array_get(j, 1), "seconds")) > 80);
    json_decref(j);
    (void)close(MOVE_FD(fd)); /* without its driver it does not run */
    AUTO_OUTPUT struct harness_output left = LOOK(w, "show", "cut", "--json", "--store", "@");
    t = shown(&left, 0);
    assert_true(json_is_null(json_object_get(t, "now")));
    json_decref(t);
}

/* --- STUDY/N --- */

static void test_a_trial_is_named_by_its_study_and_number(void **state)
{
    static const struct {
        const char *words[WORDS], *out;
    } looks[] = {
        { { "show", "demo/2", "--store", "@" }, "trial demo/2: finished" },
        { { "show", "demo", "2", "--store", "@" }, "trial demo/2: finished" }, /* as it was said before */
        { { "show", "demo/1", "--decisions", "--store", "@" }, "  demo/1  launch" },
        { { "show", "demo", "--store", "@" }, "\ndemo/3 " },
        { { "show", "demo", "--store", "@" }, "best: demo/2," },
        { { "ls", "--store", "@" }, "  demo/2  " },
        { { "diff", "demo/1", "cut/1", "--store", "@" }, "demo/1  " },
        { { "energy", "demo/2", "--store", "@" }, "study demo" },
    };
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        AUTO_OUTPUT struct harness_output o = look(*state, looks[i].words);
        if (o.code != 0 || !strstr(o.out, looks[i].out))
            fail_msg("%s %s: got exit %d, %s%s; want '%s'", looks[i].words[0], looks[i].words[1], o.code, o.out, o.err,
                     looks[i].out);
    }
    AUTO_OUTPUT struct harness_output json = LOOK(*state, "show", "demo/2", "--json", "--store", "@");
    json_t *t = shown(&json, 0);
    assert_int_equal(json_integer_value(json_object_get(t, "trial")), 2); /* a number, as ever */
    json_decref(t);
}

/* --- what fits --- */

/* A study like those that people have: many hyperparameters and knobs, a long name, wide letters, a long reason. */
static void add_large_study(const struct shown *w)
{
    struct err e = { 0 };
    struct store *s = NULL;
    check(store_open(&s, w->store, STORE_WRITE, &e), &e);
    int64_t study = add_study(s, "実験-with-a-name-that-is-rather-long", "finished");
    AUTO_BUF struct buf hyper = BUF_INIT;
    for (int n = 1; n <= 300; n++) {
        buf_clear(&hyper);
        for (int i = 0; i < 64; i++)
            buf_printf(&hyper, "%s\"hyperparameter_%d\": %.17g", i ? ", " : "{", i, i % 9 ? i / 7.0 : i + n / 1000.0);
        buf_puts(&hyper, ", \"最適化\": \"アダム\"}");
        struct store_trial row = { .study = study,
                                   .number = n,
                                   .proposal = (uint64_t)n - 1,
                                   .state = (char *)(uintptr_t)(n % 10 ? "finished" : "failed"),
                                   .epochs = 2,
                                   .hyper = hyper.data,
                                   .requested = (char *)(uintptr_t) "{\"cores\":16,\"spark.memory.fraction\":0.6}",
                                   .effective = (char *)(uintptr_t) "{\"cores\":2,\"spark.memory.fraction\":0.6}",
                                   .accuracy = n / 301.0,
                                   .metric = n / 301.0,
                                   .loss = NAN,
                                   .reason = n % 10
                                                 ? NULL
                                                 : (char *)(uintptr_t) "a.word.that.no.narrow.line.has.room.for.at.all "
                                                                       "and 失敗した理由はここにあります" };
        check(store_trial_add(s, &row, &e), &e);
    }
    store_close(s);
}

static void expect_fits(const char *name, char *text, size_t width)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (utf8_columns(line) > width && strncmp(line, "command: ", 9) != 0 && strncmp(line, "log: ", 5) != 0)
            fail_msg("%s: %zu columns, want %zu: %s", name, utf8_columns(line), width, line);
}

static void test_what_is_shown_fits_the_terminal(void **state)
{
    static const char *const widths[] = { "40", "60", "80", "100", "200", NULL };
    static const char large[] = "実験-with-a-name-that-is-rather-long";
    static const char *const looks[][WORDS] = {
        { "ls", "--store", "@" },
        { "show", "demo", "--store", "@" },
        { "show", large, "--store", "@" },
        { "show", large, "10", "--store", "@" },
        { "show", "demo/3", "--store", "@" },
        { "show", "demo", "--decisions", "--store", "@" },
        { "diff", "demo/1", "demo/3", "--store", "@" },
        { "compare", "demo", large, "--store", "@" },
    };
    add_large_study(*state);
    for (size_t k = 0; k < ARRAY_LEN(widths); k++) {
        if (widths[k])
            (void)setenv("COLUMNS", widths[k], 1);
        else
            (void)unsetenv("COLUMNS");
        for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
            AUTO_OUTPUT struct harness_output o = look(*state, looks[i]);
            assert_int_equal(o.code, 0);
            expect_fits(looks[i][1], o.out, widths[k] ? strtoul(widths[k], NULL, 10) : 100);
        }
    }
}

/* --- what others wrote --- */

/* What a spreadsheet would run, or take for a number. */
static void test_a_cell_of_csv_stays_what_it_is(void **state)
{
    struct shown *w = *state;
    free(harness_ask(w->store, "UPDATE trials SET reason = '=1+1', loss = -0.5, hyper = "
                               "'{\"batch_size\": \"01\", \"learning_rate\": -0.5}' WHERE number = 1"));
    AUTO_OUTPUT struct harness_output o = LOOK(w, "report", "demo", "--csv", "--store", "@");
    expect_text(o.out, "\n1,finished,'01,-0.5,");
    expect_text(o.out, ",-0.5,");
    expect_text(o.out, ",'=1+1\n");
}

/* CSI as one character of C1, the order of text turned, a letter that is not seen, and no UTF-8. */
#define EVIL                                                                                                           \
    "x\xC2\x9B"                                                                                                        \
    "31m\xE2\x80\xAEy\xE2\x80\x8B\xff"

static void expect_tame(const char *name, const char *text)
{
    static const char *const evil[] = { "\xC2\x9B", "\xE2\x80\xAE", "\xE2\x80\x8B", "\xff" };
    for (size_t i = 0; i < ARRAY_LEN(evil); i++)
        if (strstr(text, evil[i]))
            fail_msg("%s: character %zu came through: %s", name, i, text);
}

static void test_nothing_that_others_wrote_commands_the_terminal(void **state)
{
    struct shown *w = *state;
    static const char *const rows[] = { "UPDATE trials SET reason = '" EVIL "'",
                                        "UPDATE decisions SET reason = '" EVIL "'",
                                        "UPDATE attempts SET cause = '" EVIL "', argv = '[\"x\xC2\x9By\"]'",
                                        "UPDATE studies SET provenance = '{\"host\": \"x\xC2\x9B\xE2\x80\xAE\"}'" };
    static const char *const looks[][WORDS] = {
        { "ls", "--store", "@" },
        { "show", "demo", "--store", "@" },
        { "show", "demo", "3", "--store", "@" },
        { "show", "demo", "3", "--json", "--store", "@" },
        { "show", "demo", "--decisions", "--store", "@" },
        { "show", "demo", "--decisions", "--json", "--store", "@" },
        { "show", "demo", EVIL, "--store", "@" },
        { "show", EVIL, "--store", "@" },
        { "diff", "demo/1", "demo/3", "--store", "@" },
        { "report", "demo", "--store", "@" },
        { "report", "demo", "--csv", "--store", "@" },
        { "report", "demo", "--json", "--store", "@" },
        { EVIL },
        { "replay", "offline", EVIL ".csv" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        free(harness_ask(w->store, rows[i]));
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        AUTO_OUTPUT struct harness_output o = look(w, looks[i]);
        expect_tame(looks[i][0], o.out);
        expect_tame(looks[i][0], o.err);
    }
}

/* --- wrong use --- */

static const struct {
    const char *name;
    const char *words[WORDS];
    int code;
    const char *err;
} mistakes[] = {
    { "no command", { NULL }, 2, "usage: pipetune" },
    { "a command mistyped", { "shwo" }, 2, "did you mean 'show'?" },
    { "a command nobody knows", { "frobnicate" }, 2, "see 'pipetune help'" },
    { "an option mistyped", { "ls", "--jsno" }, 2, "did you mean '--json'?" },
    { "a word too many", { "ls", "demo" }, 2, "unexpected word 'demo'" },
    { "a study mistyped", { "show", "demmo", "--store", "@" }, 2, "did you mean 'demo'?" },
    { "an unknown study", { "show", "elsewhere", "--store", "@" }, 2, "there are demo, cut" },
    { "no study", { "show", "--store", "@" }, 2, "which study?" },
    { "an unknown trial",
      { "show", "demo", "9", "--store", "@" },
      2,
      "there is no trial demo/9: the study's last is demo/4" },
    { "an unknown trial by its name", { "show", "demo/9", "--store", "@" }, 2, "there is no trial demo/9" },
    { "no number behind the slash", { "show", "demo/", "--store", "@" }, 2, "must be a number from 1, as in demo/2" },
    { "no study before it", { "show", "/2", "--store", "@" }, 2, "no study before the slash" },
    { "two trials", { "show", "demo/1", "2", "--store", "@" }, 2, "two trials" },
    { "a trial of no study", { "energy", "demmo/1", "--store", "@" }, 2, "did you mean 'demo'?" },
    { "a report of a trial", { "report", "demo/2", "--store", "@" }, 2, "'pipetune show demo/2'" },
    { "studies that are trials", { "compare", "demo/2", "cut", "--store", "@" }, 2, "'pipetune diff STUDY/N STUDY/M'" },
    { "a trial that is no number", { "show", "demo", "x", "--store", "@" }, 2, "must be a number" },
    { "a trial without a log", { "show", "demo", "4", "--log", "--store", "@" }, 3, "has no log" },
    { "no trial for its log", { "show", "demo", "--log", "--store", "@" }, 2, "needs a trial" },
    { "no store", { "show", "demo", "--store", "/nonexistent/x.db" }, 3, "no store '/nonexistent/x.db'" },
    { "help on nothing known", { "help", "rnu" }, 2, "did you mean 'run'?" },
    { "the manual of the config alone", { "help", "config", "--man" }, 2, "where the config stands" },
    { "the manual of nothing known", { "help", "rnu", "--man" }, 2, "did you mean 'run'?" },
};

static void test_mistakes_are_named_on_stderr(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        AUTO_OUTPUT struct harness_output o = look(*state, mistakes[i].words);
        if (o.code != mistakes[i].code || !strstr(o.err, mistakes[i].err) || *o.out)
            fail_msg("%s: got %d, stderr '%s', stdout '%s'; want %d and '%s'", mistakes[i].name, o.code, o.err, o.out,
                     mistakes[i].code, mistakes[i].err);
    }
}

/* Logs are of any bytes, and what was kept of them by earlier versions, too. */
static void test_what_is_no_utf8_is_told_as_json(void **state)
{
    const struct shown *w = *state;
    static const char *const commands[][4] = {
        { "show", "demo", "--json", "--json" },
        { "show", "demo", "--decisions", "--json" },
        { "report", "demo", "--json", "--json" },
        { "diff", "demo/1", "demo/2", "--json" },
    };
    free(harness_ask(w->store, "UPDATE trials SET reason = CAST(x'41ff' AS TEXT) WHERE number = 2"));
    free(harness_ask(w->store, "UPDATE attempts SET cause = CAST(x'41ff' AS TEXT)"));
    free(harness_ask(w->store, "UPDATE decisions SET reason = CAST(x'41ff' AS TEXT)"));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const char *const *c = commands[i];
        AUTO_OUTPUT struct harness_output o = LOOK(w, c[0], c[1], c[2], c[3], "--store", "@");
        if (o.code != 0)
            fail_msg("%s %s: exit %d: %s", c[0], c[1], o.code, o.err);
        json_decref(parsed(&o));
        expect_text(o.out, "A\xEF\xBF\xBD");
    }
}

static void test_a_newer_store_is_refused_and_left_alone(void **state)
{
    struct shown *w = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->store, &db), SQLITE_OK);
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version=%d", STORE_SCHEMA + 1);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    AUTO_OUTPUT struct harness_output ls = LOOK(w, "ls", "--store", "@");
    assert_int_equal(ls.code, 3);
    expect_text(ls.err, "use the newer pipetune");
    AUTO_OUTPUT struct harness_output show = LOOK(w, "show", "demo", "--json", "--store", "@");
    assert_int_equal(show.code, 3);
    assert_string_equal(show.out, "");
}

static void test_a_closed_pipe_is_quiet(void **state)
{
    struct shown *w = *state;
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[] = { program, "show", "demo", "--json", "--store", w->store, NULL };
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(close(fds[0]), 0);
    AUTO_CLOSE int out = fds[1];
    AUTO_CLOSE int err = memfd_create("err", MFD_CLOEXEC);
    assert_int_equal(harness_exit_code(harness_spawn(argv, out, err), HARNESS_MS), 0);
    struct stat st;
    assert_int_equal(fstat(err, &st), 0);
    assert_int_equal(st.st_size, 0);
}

/* --- the rest --- */

static void test_help_and_version_answer_in_every_form(void **state)
{
    static const struct {
        const char *words[WORDS];
        const char *out;
    } rows[] = {
        { { "help" }, "usage: pipetune COMMAND" }, { { "--help" }, "usage: pipetune COMMAND" },
        { { "-h" }, "usage: pipetune COMMAND" },   { { "help", "ls" }, "--store FILE" },
        { { "show", "--help" }, "--decisions" },   { { "ls", "-h" }, "usage: pipetune ls" },
        { { "help", "config" }, "max_trials" },    { { "version" }, "SQLite" },
        { { "--version" }, "pipetune " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_OUTPUT struct harness_output o = look(*state, rows[i].words);
        assert_int_equal(o.code, 0);
        expect_text(o.out, rows[i].out);
    }
    AUTO_OUTPUT struct harness_output help = LOOK(*state, "help", "--json");
    json_t *j = parsed(&help);
    EXPECT_KEYS(json_array_get(j, 0), "command", "help");
    json_decref(j);
    AUTO_OUTPUT struct harness_output version = LOOK(*state, "version", "--json");
    j = parsed(&version);
    EXPECT_KEYS(j, "version", "commit", "libraries");
    json_decref(j);
}

/* docs/man/PAGE.1, since tests run in the tree's root, is what is printed. */
static void expect_page(const struct harness_output *o, const char *page)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s.1", page);
    AUTO_FREE char *committed = harness_read("docs/man", name);
    assert_int_equal(o->code, 0);
    if (!committed || strcmp(committed, o->out) != 0)
        fail_msg("docs/man/%s is not what 'pipetune help --man' prints: run `make man`", name);
}

static void test_the_manual_pages_are_what_help_prints(void **state)
{
    AUTO_OUTPUT struct harness_output all = LOOK(*state, "help", "--man");
    expect_page(&all, "pipetune");
    for (const struct command *c = cmd_table; c->name; c++) {
        char page[64];
        (void)snprintf(page, sizeof page, "pipetune-%s", c->name);
        AUTO_OUTPUT struct harness_output one = LOOK(*state, "help", c->name, "--man");
        expect_page(&one, page);
    }
}

/* roff's own signs taken off, and no blanks: lines are broken elsewhere. */
static char *bare(const char *text)
{
    AUTO_BUF struct buf b = BUF_INIT;
    static const struct {
        const char *roff, *plain;
    } signs[] = { { "\\fB", "" },   { "\\fI", "" },    { "\\fR", "" },   { "\\-", "-" },
                  { "\\(aq", "'" }, { "\\(dq", "\"" }, { "\\(ga", "`" }, { "\\(ha", "^" },
                  { "\\(ti", "~" }, { "\\&", "" },     { "\\e", "\\" },  { "\\[u2026]", "…" } };
    while (*text) {
        size_t i = 0;
        while (i < ARRAY_LEN(signs) && strncmp(text, signs[i].roff, strlen(signs[i].roff)) != 0)
            i++;
        if (i < ARRAY_LEN(signs))
            buf_puts(&b, signs[i].plain);
        else if (*text != ' ' && *text != '\n')
            buf_putc(&b, *text);
        text += i < ARRAY_LEN(signs) ? strlen(signs[i].roff) : 1;
    }
    return buf_take(&b);
}

static void expect_fact(const char *command, const char *fact, const char *help, const char *page)
{
    AUTO_FREE char *want = bare(fact);
    if (!strstr(help, want) || !strstr(page, want))
        fail_msg("%s: '%s' stands in %s alone", command, fact,
                 strstr(help, want) ? "its help" : "its page, or nowhere");
}

/* What a page says, `help COMMAND`, `COMMAND --help` and its JSON say, too. */
static void test_help_and_the_page_of_a_command_tell_the_same(void **state)
{
    for (const struct command *c = cmd_table; c->name; c++) {
        AUTO_OUTPUT struct harness_output man = LOOK(*state, "help", c->name, "--man");
        AUTO_OUTPUT struct harness_output help = LOOK(*state, "help", c->name);
        AUTO_OUTPUT struct harness_output own = LOOK(*state, c->name, "--help");
        AUTO_OUTPUT struct harness_output json = LOOK(*state, "help", c->name, "--json");
        if (strcmp(c->name, "help") != 0)
            assert_string_equal(own.out, help.out);
        AUTO_FREE char *page = bare(man.out);
        AUTO_FREE char *text = bare(help.out);
        struct cmd_rows rows = { .n = 0 };
        if (c->options)
            c->options(&rows);
        for (size_t i = 0; i < rows.n; i++)
            expect_fact(c->name, rows.v[i].help, text, page);
        for (const struct help_kind *kind = help_kinds; kind->title; kind++)
            for (const struct help_fact *f = kind->facts; f->pages; f++)
                if (help_is_on(kind->facts, f, c->name)) {
                    expect_fact(c->name, f->tag, text, page);
                    expect_fact(c->name, f->text, text, page);
                }
        expect_fact(c->name, help_about(c->name), text, page);
        json_t *j = parsed(&json);
        EXPECT_KEYS(j, "command", "usage", "help", "about", "options", "words", "exits", "environment", "files",
                    "examples");
        json_decref(j);
    }
}

static void test_doctor_lists_every_check(void **state)
{
    struct shown *w = *state;
    assert_int_equal(setenv("SPARK_LOCAL_IP", "127.0.0.1", 1), 0); /* no name is looked up on the network */
    AUTO_OUTPUT struct harness_output o = LOOK(w, "doctor", "--json", "--store", "@");
    assert_true(o.code == 0 || o.code == 3); /* the machine's affair */
    json_t *j = parsed(&o);
    assert_true(json_array_size(j) >= 10);
    bool missing = false;
    for (size_t i = 0; i < json_array_size(j); i++) {
        json_t *one = json_array_get(j, i);
        EXPECT_KEYS(one, "name", "state", "detail", "fix");
        assert_int_equal(json_object_size(one), 4);
        const char *state_name = json_string_value(json_object_get(one, "state"));
        assert_non_null(state_name);
        assert_int_equal(strcmp(state_name, "ok") == 0, json_is_null(json_object_get(one, "fix")));
        missing |= strcmp(state_name, "missing") == 0;
    }
    assert_int_equal(missing, o.code == 3);
    json_decref(j);
    assert_false(io_exists(w->store));
}

static void test_doctor_names_what_is_missing(void **state)
{
    struct shown *w = *state;
    assert_int_equal(setenv("SPARK_LOCAL_IP", "127.0.0.1", 1), 0);
    assert_int_equal(setenv("SPARK_HOME", w->dir, 1), 0);
    AUTO_OUTPUT struct harness_output o = LOOK(w, "doctor", "--store", "@");
    assert_int_equal(unsetenv("SPARK_HOME"), 0);
    assert_int_equal(o.code, 3);
    expect_text(o.out, "missing  spark");
    expect_text(o.out, "set SPARK_HOME");
    expect_text(o.err, "no trial can run here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ls_json_has_exactly_its_keys, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_ls_prints_a_table, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_ls_without_a_store_is_an_empty_list, make_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_study_whose_driver_lives_is_running, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_ls_where_lists_the_trials_for_which_it_holds, make_filled_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(test_ls_where_tells_metric_settings_and_tags, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_condition_that_is_none_is_told_with_its_place, make_filled_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(test_what_is_said_is_kept_shown_and_taken_off, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_tags_that_cannot_be_are_told, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_show_json_has_its_keys, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_show_has_all_that_was_told_by_name, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_show_of_one_trial_has_that_trial_and_its_command, make_filled_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(test_show_prints_trials_and_the_best, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_show_calls_a_trial_without_a_driver_interrupted, make_filled_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(test_show_decisions_tells_the_story, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_show_log_is_the_path, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_running_trial_is_shown_as_it_is_now, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_trial_is_named_by_its_study_and_number, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_what_is_shown_fits_the_terminal, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_cell_of_csv_stays_what_it_is, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_nothing_that_others_wrote_commands_the_terminal, make_filled_world,
                                        end_world),
        cmocka_unit_test_setup_teardown(test_mistakes_are_named_on_stderr, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_what_is_no_utf8_is_told_as_json, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_newer_store_is_refused_and_left_alone, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_a_closed_pipe_is_quiet, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_help_and_version_answer_in_every_form, make_world, end_world),
        cmocka_unit_test_setup_teardown(test_the_manual_pages_are_what_help_prints, make_world, end_world),
        cmocka_unit_test_setup_teardown(test_help_and_the_page_of_a_command_tell_the_same, make_world, end_world),
        cmocka_unit_test_setup_teardown(test_ls_names_are_the_names_alone, make_filled_world, end_world),
        cmocka_unit_test_setup_teardown(test_doctor_lists_every_check, make_world, end_world),
        cmocka_unit_test_setup_teardown(test_doctor_names_what_is_missing, make_world, end_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
