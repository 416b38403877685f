/* `pipetune model` by the built program: files and the store, good and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "clustering/model_json.h"
#include "cmd/model_profiles.h"
#include "store/samples.h"
#include "store/store.h"
#include "store/trace.h"
#include "tests/bench/gen_profiles.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))
#define AUTO_REF __attribute__((cleanup(decref)))

enum { WORDS = 12, WRITERS = 4, TIMES = 5 };

struct folder {
    char *dir, *store;
};

static void decref(json_t **j)
{
    json_decref(*j);
}

static int make_folder(void **state)
{
    static struct folder w;
    w.dir = harness_dir();
    w.store = harness_path(w.dir, "store.db");
    *state = &w;
    return setenv("PIPETUNE_STORE", w.store, 1);
}

static int remove_folder(void **state)
{
    struct folder *w = *state;
    free(w->store);
    harness_remove(w->dir);
    return 0;
}

/* The words of `pipetune model …`; one that begins with '@' is a file of the folder. */
struct words {
    char *argv[WORDS + 3], *made[WORDS + 1];
    size_t n_made;
};

static void words_init(struct words *a, const struct folder *w, const char *const *words)
{
    static char verb[] = "model";
    size_t n = 2;
    *a = (struct words){ .made = { harness_program("pipetune") }, .n_made = 1 };
    a->argv[0] = a->made[0];
    a->argv[1] = verb;
    for (; *words; words++) {
        assert_true(n < WORDS + 2);
        if (**words == '@')
            a->argv[n++] = a->made[a->n_made++] = harness_path(w->dir, *words + 1);
        else
            a->argv[n++] = (char *)(uintptr_t)*words;
    }
}

static void words_done(struct words *a)
{
    while (a->n_made > 0)
        free(a->made[--a->n_made]);
}

static struct harness_output model(const struct folder *w, const char *const *words)
{
    struct words a;
    words_init(&a, w, words);
    struct harness_output o = harness_run(a.argv, HARNESS_MS);
    words_done(&a);
    return o;
}

#define MODEL(w, ...) model(w, (const char *const[]){ __VA_ARGS__, NULL })

static void expect(const struct harness_output *o, int code, const char *out, const char *err)
{
    if (o->code != code || !strstr(o->out, out) || !strstr(o->err, err))
        fail_msg("exit %d, stdout: %s stderr: %s; want %d, '%s' and '%s'", o->code, o->out, o->err, code, out, err);
}

#define EXPECT(w, code, out, err, ...)                                                                                 \
    do {                                                                                                               \
        AUTO_OUTPUT struct harness_output o_ = MODEL(w, __VA_ARGS__);                                                  \
        expect(&o_, code, out, err);                                                                                   \
    } while (0)

static json_t *json_of(const struct folder *w, const char *const *words)
{
    AUTO_OUTPUT struct harness_output o = model(w, words);
    json_error_t e;
    json_t *j = json_loads(o.out, JSON_REJECT_DUPLICATES, &e);
    if (o.code != 0 || !j)
        fail_msg("exit %d, no JSON: %s line %d: %s%s", o.code, e.text, e.line, o.out, o.err);
    return j;
}

#define JSON_OF(w, ...) json_of(w, (const char *const[]){ __VA_ARGS__, NULL })

/* --- jobs --- */

static const struct gen_profiles jobs = {
    .jobs = 3, .batches = 2, .runs = 2, .epochs = 2, .epoch_s = 15, .counters = true, .ratio = 0.1, .seed = 1
};

/* Windows in which two cores take 0.6 of the time of one; and a setting that failed. */
static void add_windows(struct trace_run *r)
{
    static const char *const settings[] = { "{\"cores\":1}", "{\"cores\":2}" };
    r->windows = calloc(ARRAY_LEN(settings), sizeof *r->windows);
    assert_non_null(r->windows);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        struct trace_window *x = &r->windows[r->n_windows++];
        x->epoch = 2;
        x->setting = strdup(settings[i]);
        x->at = trace_no_epoch();
        x->at.records = 1000;
        x->at.duration_s = i ? 3 : 5;
    }
}

static void write_trace(const struct folder *w, const char *name, const struct gen_profiles *g)
{
    struct trace t = { 0 };
    struct err e;
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(gen_profiles(&t, g), 0);
    add_windows(&t.runs[0]);
    struct trace_run *failed = trace_add(&t);
    assert_non_null(failed);
    failed->model = strdup("job00");
    failed->dataset = strdup("synthetic");
    failed->hyper = strdup("{\"batch_size\":64}");
    failed->system = strdup("{\"cores\":64}");
    failed->status = RUN_FAILED;
    if (trace_write(&t, path, &e) < 0)
        fail_msg("%s", e.text);
    trace_done(&t);
}

static void test_traces_make_a_model_that_knows_the_jobs(void **state)
{
    const struct folder *w = *state;
    write_trace(w, "jobs.h5", &jobs);
    EXPECT(w, 0, "clusters and 6 classes", "", "train", "@jobs.h5");
    AUTO_REF json_t *shown = JSON_OF(w, "show", "--json");
    json_t *classes = json_object_get(shown, "classes"), *c = json_array_get(classes, 0);
    assert_int_equal(json_array_size(classes), 6);
    assert_string_equal(json_string_value(json_object_get(c, "key")), "job00 synthetic batch_size=64");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(c, "best"), "cores")), 2);
    json_t *entry = json_array_get(json_object_get(c, "entries"), 0);
    double ratio = json_number_value(json_object_get(entry, "log_ratio"));
    assert_true(ratio > -0.52 && ratio < -0.50); /* log 0.6 */
    json_t *bound = json_array_get(json_object_get(c, "infeasible"), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(bound, "setting"), "cores")), 64);
    AUTO_REF json_t *listed = JSON_OF(w, "ls", "--json");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(listed, 0), "classes")), 6);
    EXPECT(w, 0, "takes 0.600 times as long as cores 1", "", "show");
    EXPECT(w, 0, "now ", "", "train", "@jobs.h5"); /* it goes on learning */
}

static void test_a_model_goes_to_a_file_and_back(void **state)
{
    const struct folder *w = *state;
    write_trace(w, "jobs.h5", &jobs);
    EXPECT(w, 0, "", "", "train", "@jobs.h5");
    EXPECT(w, 0, "", "", "export", "-o", "@m.json");
    AUTO_FREE char *text = harness_read(w->dir, "m.json");
    AUTO_OUTPUT struct harness_output printed = MODEL(w, "export");
    assert_string_equal(printed.out, text);
    EXPECT(w, 2, "", "--replace", "import", "@m.json");
    EXPECT(w, 0, "", "", "forget", "--all");
    EXPECT(w, 0, "default: 0 classes, 0 clusters", "", "show");
    EXPECT(w, 0, "6 classes", "", "import", "@m.json");
    AUTO_OUTPUT struct harness_output again = MODEL(w, "export");
    assert_string_equal(again.out, text);
    EXPECT(w, 0, "", "", "import", "@m.json", "--replace");
    EXPECT(w, 0, "job01 synthetic batch_size=64", "", "show", "--model", "@m.json");
}

static void test_what_is_forgotten_is_gone(void **state)
{
    const struct folder *w = *state;
    write_trace(w, "jobs.h5", &jobs);
    EXPECT(w, 0, "", "", "train", "@jobs.h5", "--model", "@m.json");
    EXPECT(w, 0, "", "", "forget", "job00 synthetic batch_size=64", "--model", "@m.json");
    EXPECT(w, 2, "", "no class 'job00 synthetic batch_size=64'", "forget", "job00 synthetic batch_size=64", "--model",
           "@m.json");
    EXPECT(w, 2, "", "no cluster 5000", "forget", "--cluster", "5000", "--model", "@m.json");
    EXPECT(w, 2, "", "wants one of", "forget", "--model", "@m.json");
    EXPECT(w, 2, "", "wants one of", "forget", "x", "--all", "--model", "@m.json");
    EXPECT(w, 0, "", "", "forget", "--all", "--model", "@m.json");
    EXPECT(w, 0, "0 classes, 0 clusters", "", "show", "--model", "@m.json");
}

/* --- predicting --- */

static void test_a_foreign_model_predicts(void **state)
{
    const struct folder *w = *state;
    harness_write(w->dir, "s.json",
                  "{\"k\":2,\"n_features\":2,\"centroids\":[[0,0],[1e17,3]],\"cluster_sizes\":[1,2],"
                  "\"inertia\":0.5,\"feature_names\":null,\"more\":1}");
    harness_write(w->dir, "v.json", "{\"vectors\":[[3,4],[1e17,2.5],[100000000000000000,3]]}");
    EXPECT(w, 0, "2 clusters of 2 features", "", "import", "--format", "sklearn", "@s.json", "-o", "@m.json");
    AUTO_REF json_t *list = JSON_OF(w, "predict", "@v.json", "--model", "@m.json", "--json");
    static const struct {
        int cluster;
        double squared;
    } want[] = { { 0, 25 }, { 1, 0.25 }, { 1, 0 } };
    assert_int_equal(json_array_size(list), ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        json_t *one = json_array_get(list, i);
        assert_int_equal(json_integer_value(json_object_get(one, "cluster")), want[i].cluster);
        assert_true(json_number_value(json_object_get(one, "squared_distance")) == want[i].squared);
        assert_string_equal(json_string_value(json_object_get(one, "decision")), "unknown");
    }
    harness_write(w->dir, "wide.json", "{\"vectors\":[[1,2,3]]}");
    EXPECT(w, 2, "", "has 3 elements, and must have 2", "predict", "@wide.json", "--model", "@m.json");
    EXPECT(w, 2, "", "made elsewhere", "explain", "1", "--model", "@m.json");
}

/* --- input that is none --- */

static void test_models_that_are_broken_are_refused_and_left_alone(void **state)
{
    const struct folder *w = *state;
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        { "truncated", "{\"format\":\"pipetune-model\",\"version\":1,\"vec", "'" },
        { "newer", "{\"format\":\"pipetune-model\",\"version\":99}", "newer pipetune" },
        { "NaN", "{\"format\":\"pipetune-model\",\"version\":NaN}", "line 1" },
        { "of other features",
          "{\"format\":\"pipetune-model\",\"version\":1,\"vectors\":\"profiles\",\"next_id\":2,\"features\":[],"
          "\"clusters\":[{\"id\":1,\"count\":1,\"spread\":1,\"centroid\":[1],\"seen\":[1],\"squares\":[0]}],"
          "\"classes\":[]}",
          "1 numbers, and the model 0 features" },
        { "empty", "", "line 1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        harness_write(w->dir, "bad.json", cases[i].text);
        EXPECT(w, 2, "", cases[i].says, "show", "--model", "@bad.json");
        EXPECT(w, 2, "", cases[i].says, "import", "@bad.json");
        EXPECT(w, 2, "", cases[i].says, "forget", "--all", "--model", "@bad.json");
        AUTO_FREE char *left = harness_read(w->dir, "bad.json");
        assert_string_equal(left, cases[i].text);
    }
    EXPECT(w, 0, "no model in", "", "ls");
}

static void test_words_that_are_wrong_are_explained(void **state)
{
    const struct folder *w = *state;
    EXPECT(w, 2, "", "no verb ''", "--json");
    EXPECT(w, 2, "", "no verb 'fly'", "fly");
    EXPECT(w, 2, "", "pipetune model predict VECTORS.json", "predict");
    EXPECT(w, 2, "", "wrong number of words", "ls", "more");
    EXPECT(w, 2, "", "unknown format 'pickle'", "import", "--format", "pickle", "@x");
    EXPECT(w, 3, "", "x", "import", "@x");
    harness_write(w->dir, "t.h5", "no trace");
    EXPECT(w, 2, "", "t.h5", "train", "@t.h5");
    EXPECT(w, 0, "default: 0 classes", "", "show");
    EXPECT(w, 0, "\"format\": \"pipetune-model\"", "", "export");
}

/* --- two writers --- */

static pid_t start(const struct folder *w, const char *const *words)
{
    struct words a;
    words_init(&a, w, words);
    AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid = harness_spawn(a.argv, null, -1);
    words_done(&a);
    return pid;
}

static void test_writers_at_once_lose_nothing(void **state)
{
    const struct folder *w = *state;
    pid_t pids[WRITERS];
    EXPECT(w, 0, "", "", "forget", "--all"); /* makes the store */
    for (unsigned i = 0; i < WRITERS; i++) {
        char name[] = "0.h5";
        struct gen_profiles g = jobs;
        g.seed = i + 1;
        g.jobs = 1;
        name[0] = (char)('0' + i);
        write_trace(w, name, &g);
    }
    for (unsigned round = 0; round < TIMES; round++) {
        static const char *const files[WRITERS] = { "@0.h5", "@1.h5", "@2.h5", "@3.h5" };
        for (unsigned i = 0; i < WRITERS; i++)
            pids[i] = start(w, (const char *const[]){ "train", files[i], NULL });
        for (unsigned i = 0; i < WRITERS; i++)
            assert_int_equal(harness_exit_code(pids[i], HARNESS_MS), 0);
    }
    AUTO_REF json_t *shown = JSON_OF(w, "show", "--json");
    json_t *clusters = json_object_get(shown, "clusters"), *one;
    size_t i;
    json_int_t profiles = 0;
    json_array_foreach(clusters, i, one) profiles += json_integer_value(json_object_get(one, "count"));
    AUTO_REF json_t *trained = JSON_OF(w, "train", "@0.h5", "--json");
    json_int_t each = json_integer_value(json_object_get(trained, "taken"));
    assert_int_equal(profiles, each * WRITERS * TIMES);
}

/* --- explaining --- */

/* A study with one trial and one profile. */
static void add_profile(const struct folder *w, const char *vector)
{
    struct store *s = NULL;
    struct err e;
    struct store_study study = { .name = (char[]){ "s" },
                                 .state = (char[]){ "finished" },
                                 .config = (char[]){ "{}" },
                                 .space_hash = (char[]){ "0123456789abcdef" },
                                 .provenance = (char[]){ "{}" } };
    struct store_trial trial = { .number = 1,
                                 .state = (char[]){ "finished" },
                                 .epochs = 1,
                                 .hyper = (char[]){ "{}" },
                                 .requested = (char[]){ "{}" },
                                 .effective = (char[]){ "{}" } };
    struct store_profile profile = { .epoch = 1, .setting = "{\"cores\": 2}", .vector = vector };
    int rc = store_open(&s, w->store, STORE_WRITE, &e);
    if (rc == 0)
        rc = store_study_add(s, &study, &trial.study, &e);
    if (rc == 0)
        rc = store_trial_add(s, &trial, &e);
    if (rc == 0)
        rc = store_profile_add(s, trial.id, &profile, &e);
    store_close(s);
    if (rc < 0)
        fail_msg("%s", e.text);
}

/* The first window of the trace as a stored vector; only `most` features of it. */
static char *vector_of(const struct folder *w, const char *name, size_t most)
{
    struct trace t = { 0 };
    struct model_profiles p;
    struct err e;
    struct buf text = BUF_INIT;
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(trace_read(&t, path, &e), 0);
    assert_int_equal(model_profiles_init(&p, &t, 1, &e), 0);
    struct profile *x = &p.list[0].profile;
    for (size_t f = 0, n = 0; f < x->n; f++) {
        n += x->mask[f] != 0;
        x->mask[f] = x->mask[f] && n <= most;
    }
    model_json_put_profile(&text, &p.space, x);
    model_profiles_done(&p);
    trace_done(&t);
    return buf_take(&text);
}

static void test_a_verdict_is_explained(void **state)
{
    const struct folder *w = *state;
    write_trace(w, "jobs.h5", &jobs);
    EXPECT(w, 0, "", "", "train", "@jobs.h5");
    AUTO_FREE char *vector = vector_of(w, "jobs.h5", SIZE_MAX);
    add_profile(w, vector);
    EXPECT(w, 0, ": known\n", "", "explain", "1");
    EXPECT(w, 0, "job00 synthetic", "", "explain", "s/1");
    AUTO_REF json_t *list = JSON_OF(w, "explain", "s/1", "--json");
    json_t *one = json_array_get(list, 0), *verdict = json_object_get(one, "verdict");
    assert_string_equal(json_string_value(json_object_get(verdict, "decision")), "known");
    assert_true(json_array_size(json_object_get(verdict, "near")) >= 3);
    json_t *features = json_object_get(one, "features"), *first = json_array_get(features, 0);
    double largest = json_number_value(json_object_get(first, "share"));
    assert_true(largest >= json_number_value(json_object_get(json_array_get(features, 1), "share")) && largest < 1);
    EXPECT(w, 2, "", "no trial s/7", "explain", "s/7");
    EXPECT(w, 2, "", "no study 'x'", "explain", "x/1");
    EXPECT(w, 2, "", "a number from 1", "explain", "s/one");
}

static void test_a_profile_that_shares_too_little_is_refused(void **state)
{
    const struct folder *w = *state;
    write_trace(w, "jobs.h5", &jobs);
    EXPECT(w, 0, "", "", "train", "@jobs.h5");
    AUTO_FREE char *vector = vector_of(w, "jobs.h5", 20);
    add_profile(w, vector);
    EXPECT(w, 0, "half of both are needed", "", "explain", "1");
    AUTO_REF json_t *list = JSON_OF(w, "explain", "1", "--json");
    json_t *verdict = json_object_get(json_array_get(list, 0), "verdict");
    assert_string_equal(json_string_value(json_object_get(verdict, "decision")), "refused");
    assert_true(json_is_null(json_object_get(verdict, "cluster")));
}

static void test_a_vector_that_is_none_is_named(void **state)
{
    const struct folder *w = *state;
    add_profile(w, "[1,2]");
    EXPECT(w, 2, "", "is no profile", "explain", "1");
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_traces_make_a_model_that_knows_the_jobs),
        IN_FOLDER(test_a_model_goes_to_a_file_and_back),
        IN_FOLDER(test_what_is_forgotten_is_gone),
        IN_FOLDER(test_a_foreign_model_predicts),
        IN_FOLDER(test_models_that_are_broken_are_refused_and_left_alone),
        IN_FOLDER(test_words_that_are_wrong_are_explained),
        IN_FOLDER(test_writers_at_once_lose_nothing),
        IN_FOLDER(test_a_verdict_is_explained),
        IN_FOLDER(test_a_profile_that_shares_too_little_is_refused),
        IN_FOLDER(test_a_vector_that_is_none_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
