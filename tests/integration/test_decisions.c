/* `pipetune replay decisions` over stores whose log a real machine was told, and over what became of such stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "core/tuner_log.h"
#include "store/export.h"
#include "store/store.h"
#include "store/trace.h"
#include "tests/integration/harness.h"

enum { STEPS = 20, EPOCHS = 6, WORDS = 8 };

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* A folder with a store, and the machine that fills a study of it. */
struct stored {
    char *dir, *path;
    struct store *store;
    int64_t study;
    const struct policy *policy;
    void *machine;
    int decided;
};

static const struct tuner_space space = { .n_hot = 3, .n_cold = 2, .cores = { 4, 8, 16 }, .memory = { 4, 8 } };
static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* --- a study as a driver leaves it --- */

static void add_study(struct stored *w, const char *name, const char *policy)
{
    struct err e = { 0 };
    char config[64];
    (void)snprintf(config, sizeof config, "{\"tuning\": {\"policy\": \"%s\"}}", policy);
    const struct store_study row = { .name = (char *)(uintptr_t)name,
                                     .state = (char *)(uintptr_t) "finished",
                                     .config = config,
                                     .created_ms = 1700000000000 };
    check(store_study_add(w->store, &row, &w->study, &e), &e);
}

static void add_log(struct stored *w, const struct buf *text)
{
    struct err e = { 0 };
    check(store_tuner_log_add(w->store, w->study, buf_text(text), &e), &e);
}

static void decide(struct stored *w, const char *kind, int trial, struct tuner_setting at, const char *reason)
{
    struct err e = { 0 };
    AUTO_BUF struct buf setting = BUF_INIT;
    buf_printf(&setting, "{\"cores\": %g, \"memory\": %g, \"spark.x\": \"y\"}", space.cores[at.hot],
               space.memory[at.cold]);
    const struct store_decision d = { .trial = trial, .kind = kind, .setting = buf_text(&setting), .reason = reason };
    const struct store_decision note = { .trial = trial, .kind = "launch", .reason = "not the tuner's" };
    check(store_decision_add(w->store, w->study, &d, &e), &e);
    check(store_decision_add(w->store, w->study, &note, &e), &e);
    w->decided++;
}

/* What became of the setting that the trial was to have is the last apply's. */
static void tell(struct stored *w, struct tuner_event ev, struct tuner_setting *at)
{
    AUTO_BUF struct buf line = BUF_INIT;
    struct tuner_actions acts;
    struct err e = { 0 };
    tuner_log_event(&line, &ev);
    add_log(w, &line);
    check(w->policy->step(w->machine, &ev, &acts, &e), &e);
    for (size_t i = 0; i < acts.n; i++) {
        const struct tuner_action *a = &acts.list[i];
        if (!tuner_is_decision(a->kind))
            continue;
        decide(w, tuner_action_name(a->kind), a->trial, a->setting, a->reason);
        if (a->kind == ACT_APPLY)
            *at = a->setting;
    }
}

static struct tuner_setting launch(struct stored *w, int trial)
{
    struct tuner_setting at;
    char reason[TUNER_REASON_MAX];
    struct err e = { 0 };
    AUTO_BUF struct buf line = BUF_INIT;
    const struct tuner_ask ask = {
        .trial = trial, .class_key = "c 32", .family_key = "c", .start = { 0, 0 }, .alone = true
    };
    tuner_log_ask(&line, &ask);
    add_log(w, &line);
    check(w->policy->launch(w->machine, &ask, &at, reason, &e), &e);
    decide(w, TUNER_LOG_SETTING, trial, at, reason);
    return at;
}

static double step_s(struct tuner_setting at)
{
    static const double s[] = { 2.0, 1.1, 0.9 };
    return s[at.hot];
}

static void train(struct stored *w, int trial)
{
    struct tuner_setting at = launch(w, trial);
    double now_s = 0;
    tell(w,
         (struct tuner_event){ .kind = EV_TRIAL_STARTED,
                               .trial = trial,
                               .setting = at,
                               .class_key = "c 32",
                               .family_key = "c",
                               .epoch = 1,
                               .epochs = EPOCHS,
                               .alone = true },
         &at);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        double began_s = now_s;
        for (int i = 0; i < STEPS; i++) {
            double s = step_s(at);
            now_s += s;
            tell(w,
                 (struct tuner_event){ .kind = EV_ITERATION,
                                       .trial = trial,
                                       .t_s = now_s,
                                       .epoch = epoch,
                                       .seconds = s,
                                       .records = 32,
                                       .epoch_records = 32 * STEPS },
                 &at);
        }
        tell(w,
             (struct tuner_event){ .kind = EV_EPOCH,
                                   .trial = trial,
                                   .t_s = now_s,
                                   .epoch = epoch,
                                   .seconds = now_s - began_s,
                                   .records = 32 * STEPS },
             &at);
    }
    tell(w, (struct tuner_event){ .kind = EV_TRIAL_ENDED, .trial = trial, .t_s = now_s }, &at);
}

static void tune(struct stored *w, const char *name, const char *policy)
{
    struct err e = { 0 };
    AUTO_BUF struct buf head = BUF_INIT;
    w->policy = policy_find(policy);
    w->machine = w->policy->create(&space, &cfg);
    w->decided = 0;
    check(store_begin(w->store, &e), &e);
    add_study(w, name, policy);
    tuner_log_head(&head, w->policy, &space, &cfg);
    add_log(w, &head);
    for (int trial = 1; trial <= 3; trial++)
        train(w, trial);
    check(store_commit(w->store, &e), &e);
    w->policy->destroy(w->machine);
    assert_true(w->decided >= 6); /* there is something to compare */
}

static int make_world(void **state)
{
    struct stored *w = calloc(1, sizeof *w);
    struct err e = { 0 };
    assert_non_null(w);
    w->dir = harness_dir();
    w->path = harness_path(w->dir, "pipetune.db");
    check(store_open(&w->store, w->path, STORE_WRITE, &e), &e);
    *state = w;
    return 0;
}

static int end_world(void **state)
{
    struct stored *w = *state;
    store_close(w->store);
    harness_remove(w->dir);
    free(w->path);
    free(w);
    return 0;
}

/* Changes the store behind the program's back. */
static void spoil(struct stored *w, const char *sql)
{
    store_close(w->store);
    w->store = NULL;
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    assert_true(sqlite3_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- looking at it --- */

/* `pipetune replay decisions` with these words; "@" is the store's path. */
static struct harness_output replay(const struct stored *w, const char *const *words)
{
    AUTO_FREE char *program = harness_program("pipetune");
    char *argv[WORDS + 4] = { program, (char *)(uintptr_t) "replay", (char *)(uintptr_t) "decisions" };
    size_t n = 3;
    for (; *words && n < WORDS + 3; words++)
        argv[n++] = (char *)(uintptr_t)(strcmp(*words, "@") == 0 ? w->path : *words);
    return harness_run(argv, HARNESS_MS);
}

#define REPLAY(w, ...) replay(w, (const char *const[]){ __VA_ARGS__, NULL })

static json_t *parsed(const struct harness_output *o)
{
    json_error_t e;
    json_t *j = json_loads(o->out, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("exit %d, no JSON: %s; stdout: %s stderr: %s", o->code, e.text, o->out, o->err);
    return j;
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static const char *text_at(const json_t *j, const char *side, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(j, side), key));
    return text ? text : "(none)";
}

static void expect_agreement(const struct stored *w, const char *name, int decisions)
{
    char want[64];
    (void)snprintf(want, sizeof want, "%d decisions agree\n", decisions);
    AUTO_OUTPUT struct harness_output text = REPLAY(w, name, "--store", "@");
    if (text.code != 0 || strcmp(text.out, want) != 0)
        fail_msg("%s: exit %d, got %s%s, want %s", name, text.code, text.out, text.err, want);
    AUTO_OUTPUT struct harness_output o = REPLAY(w, name, "--store", "@", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    assert_int_equal(o.code, 0);
    assert_int_equal(json_object_size(j), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "decisions")), decisions);
    assert_true(json_is_true(json_object_get(j, "agree")));
    assert_true(json_is_null(json_object_get(j, "difference")));
}

/* The difference, after `agreed` that agree; a borrowed reference into *j. */
static const json_t *expect_difference(const struct stored *w, const char *name, int agreed, json_t **j)
{
    AUTO_OUTPUT struct harness_output o = REPLAY(w, name, "--store", "@", "--json");
    *j = parsed(&o);
    if (o.code != 1 || json_integer_value(json_object_get(*j, "decisions")) != agreed)
        fail_msg("exit %d, want 1 after %d: %s", o.code, agreed, o.out);
    assert_true(json_is_false(json_object_get(*j, "agree")));
    const json_t *d = json_object_get(*j, "difference");
    assert_int_equal(json_object_size(d), 4);
    return d;
}

static void test_what_was_decided_is_decided_again(void **state)
{
    struct stored *w = *state;
    tune(w, "tuned", "pipetune");
    int tuned = w->decided;
    tune(w, "probed", "paper");
    expect_agreement(w, "tuned", tuned);
    expect_agreement(w, "probed", w->decided);
}

static void test_a_driver_may_be_at_work_meanwhile(void **state)
{
    struct stored *w = *state;
    struct err e = { 0 };
    tune(w, "tuned", "pipetune");
    check(store_begin(w->store, &e), &e);
    decide(w, "apply", 1, (struct tuner_setting){ 0, 0 }, "not committed yet");
    expect_agreement(w, "tuned", w->decided - 1);
    store_rollback(w->store);
}

static void test_another_reason_is_found(void **state)
{
    struct stored *w = *state;
    tune(w, "s", "pipetune");
    /* The tuner's third: each of its decisions stands before one of the driver's. */
    spoil(w, "UPDATE decisions SET reason = 'because' WHERE seq = 5");
    json_t *j;
    const json_t *d = expect_difference(w, "s", 2, &j);
    assert_int_equal(json_integer_value(json_object_get(d, "seq")), 5);
    assert_string_equal(text_at(d, "stored", "reason"), "because");
    assert_string_not_equal(text_at(d, "derived", "reason"), "because");
    assert_string_equal(text_at(d, "derived", "kind"), text_at(d, "stored", "kind"));
    assert_true(json_is_null(json_object_get(d, "error")));
    AUTO_OUTPUT struct harness_output o = REPLAY(w, "s", "--store", "@");
    assert_int_equal(o.code, 1);
    expect_text(o.out, "2 decisions agree, then number 5 differs\n");
    expect_text(o.out, ": because\n  derived  trial 1, ");
    assert_int_equal(harness_count(o.out, "\n"), 3);
    json_decref(j);
}

static void test_every_part_of_a_decision_counts(void **state)
{
    struct stored *w = *state;
    static const struct {
        const char *sql;
        bool differs;
    } cases[] = {
        { "UPDATE decisions SET kind = 'learn' WHERE seq = 1", true },
        { "UPDATE decisions SET trial = 2 WHERE seq = 1", true },
        { "UPDATE decisions SET setting = '{\"cores\": 5, \"memory\": 4}' WHERE seq = 1", true },
        { "UPDATE decisions SET setting = '{\"cores\": 4, \"memory\": 5}' WHERE seq = 1", true },
        { "UPDATE decisions SET setting = '{\"cores\": \"4\", \"memory\": 4}' WHERE seq = 1", true },
        { "DELETE FROM decisions WHERE seq = 1", true },
        { "UPDATE decisions SET setting = '{\"memory\": 8.0}' WHERE seq = 1", false }, /* cores are no knob there */
        { "UPDATE decisions SET t_s = 77 WHERE seq = 1", false },
        { "UPDATE decisions SET reason = 'x' WHERE seq = 2", false }, /* not the tuner's */
    };
    tune(w, "s", "pipetune");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf sql = BUF_INIT;
        buf_printf(&sql, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT * FROM decisions; %s", cases[i].sql);
        spoil(w, buf_text(&sql));
        AUTO_OUTPUT struct harness_output o = REPLAY(w, "s", "--store", "@");
        if (o.code != cases[i].differs)
            fail_msg("%s: exit %d: %s%s", cases[i].sql, o.code, o.out, o.err);
        spoil(w, "DELETE FROM decisions; INSERT INTO decisions SELECT * FROM kept");
    }
}

static void test_a_log_that_ends_early_leaves_decisions_underived(void **state)
{
    struct stored *w = *state;
    tune(w, "s", "pipetune");
    spoil(w, "DELETE FROM tuner_log WHERE seq > 2"); /* the head and the first ask */
    json_t *j;
    const json_t *d = expect_difference(w, "s", 1, &j);
    assert_true(json_is_null(json_object_get(d, "derived")));
    assert_int_equal(json_integer_value(json_object_get(d, "seq")), 3);
    AUTO_OUTPUT struct harness_output o = REPLAY(w, "s", "--store", "@");
    expect_text(o.out, "  derived  nothing\n");
    json_decref(j);
}

static void test_decisions_that_are_gone_are_missed(void **state)
{
    struct stored *w = *state;
    tune(w, "s", "pipetune");
    spoil(w, "DELETE FROM decisions WHERE seq > 6");
    json_t *j;
    const json_t *d = expect_difference(w, "s", 3, &j);
    assert_true(json_is_null(json_object_get(d, "stored")));
    assert_true(json_is_null(json_object_get(d, "seq")));
    AUTO_OUTPUT struct harness_output o = REPLAY(w, "s", "--store", "@");
    expect_text(o.out, "3 decisions agree, then one is not stored\n  stored   nothing\n");
    json_decref(j);
}

static void test_a_log_with_a_line_that_is_none_says_which(void **state)
{
    struct stored *w = *state;
    static const struct {
        const char *sql, *want;
    } cases[] = {
        { "UPDATE tuner_log SET text = 'i 1 oops' || char(10) WHERE seq = 4",
          "line 4: a number is none: \"i 1 oops\"" },
        { "UPDATE tuner_log SET text = 'b 77 0' || char(10) WHERE seq = 4", "line 4: trial 77" },
        { "UPDATE tuner_log SET text = 'b 1 0' WHERE seq = 4", "line 4: it is cut short" },
        { "DELETE FROM tuner_log WHERE seq = 1", "line 1: no head stands before it" },
    };
    tune(w, "s", "pipetune");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        spoil(w, cases[i].sql);
        AUTO_OUTPUT struct harness_output o = REPLAY(w, "s", "--store", "@");
        assert_int_equal(o.code, 1);
        expect_text(o.out, cases[i].want);
    }
}

static void test_a_policy_that_decides_nothing_says_so(void **state)
{
    struct stored *w = *state;
    add_study(w, "plain", "v1");
    add_study(w, "searched", "v2");
    add_study(w, "begun", "pipetune");
    AUTO_OUTPUT struct harness_output v1 = REPLAY(w, "plain", "--store", "@");
    AUTO_OUTPUT struct harness_output v2 = REPLAY(w, "searched", "--store", "@");
    assert_int_equal(v1.code + v2.code, 0);
    assert_string_equal(v1.out, "study 'plain': its policy 'v1' decides nothing\n");
    assert_string_equal(v2.out, "study 'searched': its policy 'v2' decides nothing\n");
    expect_agreement(w, "begun", 0);
    AUTO_OUTPUT struct harness_output o = REPLAY(w, "plain", "--store", "@", "--json");
    AUTO_JSON json_t *j = parsed(&o);
    assert_int_equal(o.code, 0);
    assert_true(json_is_true(json_object_get(j, "agree")));
}

/* --- the same from a trace --- */

/* Records the study and looks at what the store and the trace tell: every byte the same, and the same exit code. */
static void expect_same_from_trace(const struct stored *w, const char *path, int code)
{
    AUTO_FREE char *file = harness_path(w->dir, "s.h5");
    struct store *store = NULL;
    struct store_study study = { 0 };
    struct trace t = { 0 };
    struct err e = { 0 };
    check(store_open(&store, path, STORE_READ, &e), &e);
    assert_int_equal(store_study_find(store, "s", &study, &e), 1);
    check(export_study(&t, store, &study, &e), &e);
    check(trace_write(&t, file, &e), &e);
    trace_done(&t);
    store_study_done(&study);
    store_close(store);
    static const char *const as[] = { "--json", "--store" };
    for (size_t i = 0; i < ARRAY_LEN(as); i++) {
        AUTO_OUTPUT struct harness_output want = REPLAY(w, "s", "--store", "@", as[i], i ? "@" : NULL);
        AUTO_OUTPUT struct harness_output got = REPLAY(w, file, as[i], i ? "@" : NULL);
        if (want.code != code || got.code != code || strcmp(got.out, want.out) != 0)
            fail_msg("exit %d and %d, want %d: the trace says %s%s, the store %s%s", got.code, want.code, code, got.out,
                     got.err, want.out, want.err);
    }
}

static void test_a_trace_tells_the_same_as_the_store(void **state)
{
    static const struct {
        const char *sql;
        int code;
    } cases[] = {
        { "UPDATE studies SET name = 's'", 0 },
        { "UPDATE decisions SET reason = 'because' WHERE seq = 5", 1 },
        { "UPDATE decisions SET setting = NULL WHERE seq = 5", 0 },
        { "DELETE FROM decisions WHERE seq > 6", 1 },
        { "DELETE FROM tuner_log WHERE seq > 2", 1 },
        { "UPDATE tuner_log SET text = 'i 1 oops' || char(10) WHERE seq = 4", 1 },
        { "DELETE FROM tuner_log", 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(make_world(state), 0);
        struct stored *w = *state;
        tune(w, "s", i % 2 ? "paper" : "pipetune");
        spoil(w, cases[i].sql);
        expect_same_from_trace(w, w->path, cases[i].code);
        end_world(state);
    }
}

static void test_a_trace_of_a_policy_that_decides_nothing_says_so(void **state)
{
    struct stored *w = *state;
    add_study(w, "s", "v1");
    AUTO_FREE char *file = harness_path(w->dir, "s.h5");
    AUTO_BUF struct buf want = BUF_INIT;
    struct err e = { 0 };
    struct store_study study = { 0 };
    struct trace t = { 0 };
    assert_int_equal(store_study_find(w->store, "s", &study, &e), 1);
    check(export_study(&t, w->store, &study, &e), &e);
    check(trace_write(&t, file, &e), &e);
    trace_done(&t);
    store_study_done(&study);
    AUTO_OUTPUT struct harness_output o = REPLAY(w, file);
    buf_printf(&want, "'%s': its policy 'v1' decides nothing\n", file);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, buf_text(&want));
}

static void write_plain_trace(const char *path)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    check(trace_write(&t, path, &e), &e);
}

static void test_what_cannot_be_replayed(void **state)
{
    struct stored *w = *state;
    harness_write(w->dir, "trace.h5", "\x89HDF\r\n\x1a\n");
    harness_write(w->dir, "other-name", "\x89HDF\r\n\x1a\n");
    AUTO_FREE char *trace = harness_path(w->dir, "trace.h5");
    AUTO_FREE char *other = harness_path(w->dir, "other-name");
    AUTO_FREE char *missing = harness_path(w->dir, "missing.h5");
    AUTO_FREE char *imported = harness_path(w->dir, "imported.h5");
    AUTO_FREE char *renamed = harness_path(w->dir, "imported");
    write_plain_trace(imported);
    write_plain_trace(renamed);
    AUTO_FREE char *no_store = harness_path(w->dir, "none.db");
    const struct {
        const char *what, *store;
        int code;
        const char *want;
    } cases[] = {
        { "nobody", w->path, 2, "no study 'nobody'" },
        { "nobody", no_store, 3, "no store" },
        { trace, w->path, 2, "trace.h5' is no HDF5 file that can be read" },
        { other, w->path, 2, "other-name' is no HDF5 file that can be read" },
        { imported, w->path, 2, "this trace holds no tuner log" },
        { renamed, w->path, 2, "this trace holds no tuner log" },
        { missing, w->path, 3, "missing.h5" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_OUTPUT struct harness_output o = REPLAY(w, cases[i].what, "--store", cases[i].store);
        if (o.code != cases[i].code || *o.out)
            fail_msg("%s: exit %d: %s%s", cases[i].what, o.code, o.out, o.err);
        expect_text(o.err, cases[i].want);
        assert_int_equal(harness_count(o.err, "\n"), 1);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_what_was_decided_is_decided_again),
        T(test_a_driver_may_be_at_work_meanwhile),
        T(test_another_reason_is_found),
        T(test_every_part_of_a_decision_counts),
        T(test_a_log_that_ends_early_leaves_decisions_underived),
        T(test_decisions_that_are_gone_are_missed),
        T(test_a_log_with_a_line_that_is_none_says_which),
        T(test_a_policy_that_decides_nothing_says_so),
        cmocka_unit_test(test_a_trace_tells_the_same_as_the_store),
        T(test_a_trace_of_a_policy_that_decides_nothing_says_so),
        T(test_what_cannot_be_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
