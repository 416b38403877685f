/* A study of a real store as a trace. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/features.h"
#include "store/export.h"
#include "store/samples.h"
#include "tests/cells.h"
#include "tests/fault.h"

#define AUTO_TRACE __attribute__((cleanup(trace_done)))
#define TEXT(literal) ((char *)(uintptr_t)(literal))

enum { BEGUN_MS = 1700000000 }; /* seconds would be some day of 1970: who cares */

struct world {
    char dir[64], path[96], trace[96];
    struct store *store;
    struct store_study study;
    struct store_trial trial; /* the newest */
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

static int make_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct err e = { 0 };
    assert_non_null(w);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/pipetune-export-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof w->path, "%s/p.db", w->dir);
    (void)snprintf(w->trace, sizeof w->trace, "%s/t.h5", w->dir);
    check(store_open(&w->store, w->path, STORE_WRITE, &e), &e);
    *state = w;
    return 0;
}

static int end_world(void **state)
{
    struct world *w = *state;
    store_close(w->store);
    (void)unlink(w->path);
    (void)unlink(w->trace);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

/* --- what a driver would have stored --- */

static void add_study(struct world *w, const char *bigdl, const char *config)
{
    static char provenance[512];
    struct err e = { 0 };
    (void)snprintf(provenance, sizeof provenance, "{\"bigdl\": %s}", bigdl);
    w->study = (struct store_study){ .name = TEXT("s"),
                                     .state = TEXT("finished"),
                                     .config = TEXT(config),
                                     .provenance = provenance,
                                     .created_ms = BEGUN_MS };
    check(store_study_add(w->store, &w->study, &w->study.id, &e), &e);
}

#define LENET "{\"conf\": \"/a/lenet5.py\", \"extras\": {\"data\": \"$PIPETUNE_DATA/mnist/\"}}"
#define PIPETUNE "{\"tuning\": {\"policy\": \"pipetune\"}}"

static void add_trial(struct world *w, int number, const char *state)
{
    struct err e = { 0 };
    w->trial = (struct store_trial){ .study = w->study.id,
                                     .number = number,
                                     .proposal = (uint64_t)number,
                                     .state = TEXT(state),
                                     .epochs = 3,
                                     .hyper = TEXT("{\"batch_size\": 64}"),
                                     .requested = TEXT("{\"cores\": 16}"),
                                     .effective = TEXT("{\"cores\": 8}"),
                                     .slots = 8 };
    check(store_trial_add(w->store, &w->trial, &e), &e);
}

static void add_attempt(struct world *w, const char *state, const char *outcome, double startup_s)
{
    struct err e = { 0 };
    struct store_attempt row = { .trial = w->trial.id,
                                 .state = TEXT(state),
                                 .outcome = TEXT(outcome),
                                 .launch = TEXT("pt-x"),
                                 .argv = TEXT("[]"),
                                 .started_ms = BEGUN_MS,
                                 .setting = TEXT("{\"cores\": 8, \"memory\": 4}"),
                                 .startup_s = startup_s,
                                 .cores = NAN };
    check(store_attempt_add(w->store, &row, &e), &e);
}

/* Ends `at_s` after the beginning, by stamps of a zone `zone_s` before UTC. */
static void add_epoch(struct world *w, int attempt, int epoch, double seconds, double at_s, double zone_s)
{
    struct err e = { 0 };
    const struct store_epoch row = { .trial = w->trial.id,
                                     .epoch = epoch,
                                     .attempt = attempt,
                                     .accuracy = 0.9 + 0.01 * epoch,
                                     .loss = 0.5,
                                     .metric = NAN,
                                     .seconds = seconds,
                                     .records = 640,
                                     .iterations = 10,
                                     .learning_rate = NAN,
                                     .end_ms = at_s < 0 ? -1 : BEGUN_MS + (int64_t)((at_s + zone_s) * 1000) };
    check(store_epoch_put(w->store, &row, &e), &e);
}

static void add_log(struct world *w, const char *text)
{
    struct err e = { 0 };
    check(store_tuner_log_add(w->store, w->study.id, text, &e), &e);
}

static void export(struct world *w, struct trace *out)
{
    struct err e = { 0 };
    check(export_study(out, w->store, &w->study, &e), &e);
}

/* --- names --- */

static void test_names_come_from_the_bigdl_file(void **state)
{
    static const struct {
        const char *name, *bigdl, *model, *dataset;
    } cases[] = {
        { "a Python application", LENET, "lenet5", "mnist" },
        { "a class that trains",
          "{\"class\": \"com.intel.analytics.bigdl.dllib.models.lenet.Train\", \"conf\": \"x.jar\","
          " \"extras\": {\"folder\": \"/data/fashion-mnist\"}}",
          "lenet", "fashion-mnist" },
        { "a class with a name of its own", "{\"class\": \"org.x.ResNet50\", \"conf\": \"x.jar\"}", "ResNet50", "" },
        { "a class without a package", "{\"class\": \"Train\"}", "Train", "" },
        { "words, one after the other",
          "{\"conf\": \"a.b.py\", \"extra\": [\"-v\", \"-f\", \"hdfs://h:9000/cifar-10.1\"]}", "a.b", "cifar-10.1" },
        { "the first that names data",
          "{\"conf\": \".py\", \"extras\": {\"epochs\": 2, \"--Data_Path\": \"x//y//\", \"f\": \"z\"}}", ".py", "y" },
        { "a key that only begins like one",
          "{\"conf\": \"m\", \"extras\": {\"data-of-somebody-else-with-a-long-name\": \"x\"}}", "m", "" },
        { "data that is no text, and a word at the end", "{\"conf\": \"m\", \"extras\": {\"data\": 7}}", "m", "" },
        { "words that end with the key", "{\"conf\": \"m\", \"extras\": [\"--data\"]}", "m", "" },
        { "what cannot be printed", "{\"conf\": \"a\\tb.py\", \"extras\": {\"data\": \"/\\u00e9/c\\nd\"}}", "a_b",
          "c_d" },
        { "nothing", "null", "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TRACE struct trace t = { 0 };
        assert_int_equal(make_world(state), 0);
        struct world *w = *state;
        add_study(w, cases[i].bigdl, "{}");
        add_trial(w, 1, "failed");
        add_attempt(w, "ended", "failed", 1);
        export(w, &t);
        assert_int_equal(t.n, 1);
        if (strcmp(t.runs[0].model, cases[i].model) != 0 || strcmp(t.runs[0].dataset, cases[i].dataset) != 0)
            fail_msg("%s: got '%s' and '%s', want '%s' and '%s'", cases[i].name, t.runs[0].model, t.runs[0].dataset,
                     cases[i].model, cases[i].dataset);
        end_world(state);
    }
}

/* --- runs --- */

static void test_each_attempt_that_began_is_a_run(void **state)
{
    static const struct {
        const char *state, *outcome, *want;
    } cases[] = {
        { "ended", "finished", "complete" },
        { "ended", "failed", "failed" },
        { "ended", "infeasible", "failed" },
        { "ended", "refused_setting", "failed" },
        { "ended", "interrupted", "partial" },
        { "ended", "unusable_checkpoint", "partial" },
        { "ended", "environment", "partial" },
        { "running", NULL, "running" },
        { "starting", NULL, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TRACE struct trace t = { 0 };
        assert_int_equal(make_world(state), 0);
        struct world *w = *state;
        add_study(w, LENET, PIPETUNE);
        add_trial(w, 1, "running");
        add_attempt(w, cases[i].state, cases[i].outcome, 2.5);
        export(w, &t);
        const char *got = t.n ? timeline_status_name(t.runs[0].status) : NULL;
        if (t.n != (cases[i].want != NULL) || (got && strcmp(got, cases[i].want) != 0))
            fail_msg("%s %s: got %s, want %s", cases[i].state, cases[i].outcome, got, cases[i].want);
        assert_true(t.n == 0 || t.runs[0].startup_s == 2.5);
        end_world(state);
    }
}

static void test_a_run_tells_what_the_store_knows(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    add_study(w, LENET, "{}");
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "finished", 5);
    add_epoch(w, 1, 1, 10, 15, 7200);
    add_epoch(w, 1, 2, 4, 21, 7200); /* two seconds lie between them */
    export(w, &t);
    const struct trace_run *r = &t.runs[0];
    assert_int_equal(t.n, 1);
    assert_int_equal(t.features.n, FEATURES);
    assert_string_equal(t.features.v[0], "node-stores");
    assert_string_equal(t.features.v[FEATURE_CODE], "code/generated-time");
    assert_string_equal(t.features.v[FEATURES - 1], "code/pages-23-time");
    assert_string_equal(r->hyper, "{\"batch_size\": 64}");
    assert_string_equal(r->system, "{\"cores\": 8, \"memory\": 4}");
    assert_string_equal(r->results,
                        "{\"study\": \"s\", \"trial\": 1, \"attempt\": 1, \"outcome\": \"finished\", \"slots\": 8}");
    assert_int_equal(r->n_epochs, 2);
    assert_int_equal(r->n_windows, 0);
    const struct trace_epoch *ep = r->epochs;
    assert_true(ep[0].start_s == 5 && ep[0].duration_s == 10 && ep[0].loss == 0.5 && ep[0].accuracy == 0.91);
    assert_true(isnan(ep[0].energy_j) && ep[0].iterations == 10 && ep[0].records == 640);
    assert_true(ep[1].start_s == 17 && ep[1].duration_s == 4 && ep[1].accuracy == 0.92);
    assert_string_equal(t.tuner.policy, "v1"); /* a config of the time before there were any */
    assert_string_equal(t.tuner.study, "s");
}

static void test_a_start_up_that_was_not_watched_is_read_off_the_stamps(void **state)
{
    static const struct {
        double at_s, zone_s, want;
    } cases[] = {
        { 15, 0, 5 },      { 15, 7200, 5 },    { 15, -34200, 5 }, /* whatever the zone */
        { 9.5, 20700, 0 }, { 700, 3600, 690 }, { -1, 0, NAN },    /* clocks disagree; no stamps */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TRACE struct trace t = { 0 };
        assert_int_equal(make_world(state), 0);
        struct world *w = *state;
        add_study(w, LENET, "{}");
        add_trial(w, 1, "finished");
        add_attempt(w, "ended", "finished", NAN);
        add_epoch(w, 1, 1, 10, cases[i].at_s, cases[i].zone_s);
        add_epoch(w, 1, 2, 10, -1, 0);
        export(w, &t);
        double got = t.runs[0].startup_s;
        if (isnan(got) != isnan(cases[i].want) || fabs(got - cases[i].want) > 0.001)
            fail_msg("row %zu: got %g, want %g", i, got, cases[i].want);
        double start_s = isnan(got) ? 0 : got; /* else epoch 1 is where time begins */
        assert_true(fabs(t.runs[0].epochs[1].start_s - start_s - 10) < 0.001);
        end_world(state);
    }
}

static void test_an_epoch_belongs_to_the_attempt_that_trained_it_last(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "interrupted", 1);
    add_attempt(w, "ended", "finished", 2);
    add_epoch(w, 1, 1, 10, 11, 0);
    add_epoch(w, 1, 2, 10, 21, 0);
    add_epoch(w, 2, 2, 11, 63, 0);
    add_epoch(w, 2, 3, 12, 75, 0);
    add_trial(w, 2, "finished"); /* a copy: nothing was trained */
    add_trial(w, 3, "infeasible");
    export(w, &t);
    assert_int_equal(t.n, 2);
    assert_true(t.runs[0].n_epochs == 1 && t.runs[0].epochs[0].duration_s == 10);
    const struct trace_run *r = &t.runs[1];
    assert_int_equal(r->n_epochs, 3);
    assert_true(isnan(r->epochs[0].duration_s) && isnan(r->epochs[0].accuracy));
    assert_true(r->epochs[1].duration_s == 11 && r->epochs[1].start_s == 2 && r->epochs[2].start_s == 13);
}

/* --- samples --- */

static void add_sample(struct world *w, double t_ms, double dt_ms, int node, const char *cells)
{
    struct err e = { 0 };
    struct store_sample row = { .t_ms = t_ms, .dt_ms = dt_ms, .node = node, .scope = "process", .v = cells_of(cells) };
    check(store_sample_add(w->store, w->trial.id, &row, &e), &e);
}

static void in_the_store(struct world *w, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Attempts of this number, as if they had begun then. */
static void begun_at(struct world *w, int number, int64_t started_ms)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "UPDATE attempts SET started_ms = %lld WHERE number = %d", (long long)started_ms,
                   number);
    in_the_store(w, sql);
}

static void test_samples_go_to_the_attempt_that_ran_then(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "interrupted", 1);
    add_attempt(w, "starting", NULL, NAN); /* never began: no run */
    add_attempt(w, "ended", "finished", 1);
    begun_at(w, 3, BEGUN_MS + 10000);
    add_sample(w, BEGUN_MS + 11000.5, 1000, 0, "7");
    add_sample(w, BEGUN_MS + 1000, 1000, 1, "1 2.5/0.25 n u d f");
    add_sample(w, BEGUN_MS + 10400, 1000, 0, "3"); /* mostly of the first one's time */
    add_trial(w, 2, "finished");
    add_attempt(w, "ended", "finished", 1);
    export(w, &t);
    assert_int_equal(t.n, 3);
    const struct trace_samples *first = &t.runs[0].samples, *second = &t.runs[1].samples;
    assert_true(first->n == 2 && second->n == 1 && t.runs[2].samples.n == 0);
    assert_true(first->t_ns[0] == 1000000000 && first->node[0] == 1);
    assert_true(first->t_ns[1] == 10400000000 && first->value[FEATURES] == 3);
    assert_true(second->t_ns[0] == 1000500000 && second->value[0] == 7 && second->node[0] == 0);
    static const uint8_t states[] = { TRACE_OK,          TRACE_MULTIPLEXED, TRACE_NOT_COUNTED,
                                      TRACE_UNSUPPORTED, TRACE_DENIED,      TRACE_NO_FD };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        assert_int_equal(first->state[i], states[i]);
    for (size_t i = ARRAY_LEN(states); i < FEATURES; i++)
        assert_int_equal(first->state[i], TRACE_ABSENT);
    assert_true(first->value[0] == 1 && first->value[1] == 2.5 && isnan(first->value[2]) && isnan(first->value[6]));
    assert_true(first->ratio[1] == 0.25F);
}

static void test_samples_survive_the_file(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    AUTO_TRACE struct trace t = { 0 };
    AUTO_TRACE struct trace back = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "finished", 1);
    add_sample(w, BEGUN_MS + 1000, 1000, 0, "1 n");
    add_sample(w, BEGUN_MS + 2000, 1000, 0, "");
    export(w, &t);
    check(trace_write(&t, w->trace, &e), &e);
    check(trace_read_here(&back, w->trace, &e), &e);
    const struct trace_samples *s = &back.runs[0].samples;
    assert_true(back.features.n == FEATURES && s->n == 2 && s->t_ns[1] == 2000000000);
    assert_true(s->value[0] == 1 && s->state[1] == TRACE_NOT_COUNTED && s->state[FEATURES] == TRACE_ABSENT);
}

static void test_cells_that_cannot_be_read_are_explained(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    struct trace t = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "finished", 1);
    add_sample(w, BEGUN_MS + 1000, 1000, 0, "1");
    in_the_store(w, "UPDATE samples SET value = x'00'"); /* a value that is cut off */
    assert_int_equal(export_study(&t, w->store, &w->study, &e), -EINVAL);
    assert_non_null(strstr(e.text, "trial 1: "));
    assert_null(t.runs);
}

static void test_a_study_without_trials(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    add_study(w, LENET, PIPETUNE);
    export(w, &t);
    assert_true(t.n == 0 && t.tuner.log.n == 0 && t.tuner.n_decisions == 0);
    assert_string_equal(t.tuner.policy, "pipetune");
}

/* --- the tuner --- */

#define HEAD "H 1 pipetune 3 0.1 0.01 0.01 2 2 8 1 4\n"

static void test_windows_go_to_the_attempt_that_trained_their_epoch(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "interrupted", 1);
    add_attempt(w, "ended", "finished", 2);
    add_epoch(w, 1, 1, 10, 11, 0);
    add_epoch(w, 2, 2, 11, 63, 0);
    add_log(w, HEAD "L 1 \"c\" null 1 0 2 1\ns 1 0 1 0 \"c\" null 1 2 2 1 0\n");
    add_log(w, "i 1 1 1 1 64 640\na 1 1.5 0 0\ni 1 10 1 9 576 640\n");
    add_log(w, "i 1 12 2 2 64 640\nx 1 12\nL 1 \"c\" null 1 0 2 1\ns 1 0 1 0 \"c\" null 2 2 2 1 0\n");
    add_log(w, "i 1 1 2 1 64 640\ni 1 11 2 10 576 640\ni 1 12 3 1 64 640\n"); /* an epoch that never ended */
    export(w, &t);
    const struct trace_run *a = &t.runs[0], *b = &t.runs[1];
    assert_int_equal(t.tuner.log.n, 13);
    assert_true(a->n_windows == 2 && b->n_windows == 1);
    assert_string_equal(a->windows[0].setting, "{\"cores\": 8, \"memory\": 4}");
    assert_string_equal(a->windows[1].setting, "{\"cores\": 2, \"memory\": 4}");
    assert_string_equal(a->system, "{\"cores\": 2, \"memory\": 4}"); /* it ended with that */
    assert_true(a->windows[0].at.start_s == 1 && a->windows[0].at.duration_s == 1 && a->windows[0].at.records == 64);
    assert_true(a->windows[1].at.start_s == 2 && a->windows[1].at.duration_s == 9 && a->windows[1].epoch == 1);
    assert_true(isnan(a->windows[1].at.loss) && isnan(a->windows[1].at.iterations));
    assert_string_equal(b->system, "{\"cores\": 8, \"memory\": 4}");
    assert_true(b->windows[0].epoch == 2 && b->windows[0].at.start_s == 2 && b->windows[0].at.records == 640);
}

static void test_settings_of_as_many_cores_are_told_apart(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    struct err e = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    const struct store_attempt launched = { .trial = w->trial.id,
                                            .state = TEXT("ended"),
                                            .outcome = TEXT("finished"),
                                            .launch = TEXT("pt-x"),
                                            .argv = TEXT("[]"),
                                            .setting = TEXT("{\"cores\": 8, \"frequency\": 2000000, \"memory\": 4}"),
                                            .startup_s = 1,
                                            .cores = NAN };
    struct store_attempt row = launched;
    check(store_attempt_add(w->store, &row, &e), &e);
    add_epoch(w, 1, 1, 10, 11, 0);
    add_log(w, "H 1 pipetune 3 0.1 0.01 0.01 2 8 8 1 4\ns 1 0 1 0 \"c\" null\n");
    add_log(w, "i 1 1 1 1 64 640\na 1 1.5 0 0\ni 1 10 1 9 576 640\n");
    export(w, &t);
    assert_string_equal(t.runs[0].windows[0].setting, "{\"cores\": 8, \"memory\": 4, \"hot\": 1}");
    assert_string_equal(t.runs[0].windows[1].setting, "{\"cores\": 8, \"memory\": 4, \"hot\": 0}");
    struct timeline to = { 0 };
    assert_int_equal(trace_to_timeline(&to, &t, &e), 1); /* a mixed epoch */
    timeline_done(&to);
}

static void test_a_launch_setting_that_is_not_stored_is_the_logs(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    struct err e = { 0 };
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    struct store_attempt row = { .trial = w->trial.id,
                                 .state = TEXT("ended"),
                                 .outcome = TEXT("finished"),
                                 .launch = TEXT("pt-x"),
                                 .argv = TEXT("[]"),
                                 .cause = TEXT("why"),
                                 .session = 3,
                                 .startup_s = 1,
                                 .cores = NAN };
    check(store_attempt_add(w->store, &row, &e), &e);
    add_epoch(w, 1, 1, 10, 11, 0);
    add_log(w, "H 1 pipetune 3 0.1 0.01 0.01 1 8 1 0.5\ns 1 0 0 0 \"c\" null\ni 1 1 1 1 64 640\n");
    export(w, &t);
    assert_string_equal(t.runs[0].windows[0].setting, "{\"cores\": 8, \"memory\": 0.5}");
    assert_non_null(strstr(t.runs[0].results, "\"session\": 3, \"cause\": \"why\""));
}

static void add_decision(struct world *w, int trial, const char *kind, const char *setting, const char *reason)
{
    struct err e = { 0 };
    const struct store_decision d = { .trial = trial, .t_s = 1.5, .kind = kind, .setting = setting, .reason = reason };
    check(store_decision_add(w->store, w->study.id, &d, &e), &e);
}

/* A study with some of everything. */
static void fill(struct world *w)
{
    add_study(w, LENET, PIPETUNE);
    add_trial(w, 1, "finished");
    add_attempt(w, "ended", "finished", 1);
    add_epoch(w, 1, 1, 10, 11, 0);
    add_epoch(w, 1, 2, 10, 21, 0);
    add_log(w, HEAD "s 1 0 1 0 \"c\" null\ni 1 1 1 1 64 640\ni 1 9 2 1 64 640\n");
    add_decision(w, 1, "setting", "{\"cores\": 8}", "the default setting");
    add_decision(w, 0, "note", NULL, "nothing");
    add_trial(w, 2, "failed");
    add_attempt(w, "ended", "failed", 1);
    add_attempt(w, "ended", "failed", NAN);
}

static void test_the_trace_of_a_study_survives_the_file(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    AUTO_TRACE struct trace back = { 0 };
    struct err e = { 0 };
    fill(w);
    export(w, &t);
    check(trace_write(&t, w->trace, &e), &e);
    check(trace_read(&back, w->trace, &e), &e);
    assert_true(back.n == 3 && back.runs[0].n_windows == 2 && back.runs[2].status == RUN_FAILED);
    assert_true(back.tuner.log.n == 4 && back.tuner.n_decisions == 2);
    assert_string_equal(back.tuner.log.v[1], "s 1 0 1 0 \"c\" null");
    const struct trace_decision *d = back.tuner.decisions;
    assert_true(d[0].seq < d[1].seq && d[0].trial == 1 && d[0].t_s == 1.5);
    assert_string_equal(d[0].kind, "setting");
    assert_string_equal(d[0].setting, "{\"cores\": 8}");
    assert_string_equal(d[0].reason, "the default setting");
    assert_string_equal(d[1].setting, "");
}

static void test_what_no_trace_may_hold_is_refused(void **state)
{
    struct world *w = *state;
    AUTO_TRACE struct trace t = { 0 };
    struct err e = { 0 };
    AUTO_BUF struct buf line = BUF_INIT;
    for (size_t i = 0; i <= TRACE_TEXT_MAX; i++)
        buf_putc(&line, 'z');
    fill(w);
    add_log(w, buf_text(&line));
    assert_int_equal(export_study(&t, w->store, &w->study, &e), -E2BIG);
    assert_non_null(strstr(e.text, "study 's' cannot be recorded: one of its texts is longer"));
    assert_null(t.runs);
}

static void test_export_whatever_fails(void **state)
{
    struct world *w = *state;
    int rc = -ENOMEM;
    unsigned nth = 1;
    fill(w);
    add_sample(w, BEGUN_MS + 1000, 1000, 0, "1"); /* of the newest trial */
    for (; rc < 0; nth++) {
        AUTO_TRACE struct trace t = { 0 };
        struct err e = { 0 };
        assert_true(nth < 1000);
        fault_arm(FAULT_ALLOC, nth);
        rc = export_study(&t, w->store, &w->study, &e);
        fault_disarm();
        assert_true(rc == 0 ? t.n == 3 : rc == -ENOMEM && e.text[0] && !t.runs);
    }
    assert_true(nth > 50);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_come_from_the_bigdl_file),
        cmocka_unit_test(test_each_attempt_that_began_is_a_run),
        cmocka_unit_test(test_a_start_up_that_was_not_watched_is_read_off_the_stamps),
        T(test_a_run_tells_what_the_store_knows),
        T(test_an_epoch_belongs_to_the_attempt_that_trained_it_last),
        T(test_samples_go_to_the_attempt_that_ran_then),
        T(test_samples_survive_the_file),
        T(test_cells_that_cannot_be_read_are_explained),
        T(test_a_study_without_trials),
        T(test_windows_go_to_the_attempt_that_trained_their_epoch),
        T(test_settings_of_as_many_cores_are_told_apart),
        T(test_a_launch_setting_that_is_not_stored_is_the_logs),
        T(test_the_trace_of_a_study_survives_the_file),
        T(test_what_no_trace_may_hold_is_refused),
        T(test_export_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
