/* What is printed of a view of a real store: columns, the heat maps, what was saved, and memory that runs out. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/own.h"
#include "store/energy.h"
#include "store/samples.h"
#include "tests/cells.h"
#include "tests/fault.h"
#include "view/put.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

enum { T0_S = 1700000000 };

struct fix {
    char dir[64], path[96];
    struct store *s;
    int64_t study;
    struct err e;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-report-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/p.db", f->dir);
    check(store_open(&f->s, f->path, STORE_WRITE, &f->e), &f->e);
    struct store_study row = { .name = TEXT("s"), .state = TEXT("finished"), .config = TEXT("{}"), .maximise = true };
    check(store_study_add(f->s, &row, &f->study, &f->e), &f->e);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static int64_t add_trial(struct fix *f, int number, double metric)
{
    struct store_trial t = { .study = f->study, .number = number, .epochs = 3, .accuracy = metric, .loss = NAN };
    t.state = TEXT("finished");
    t.hyper = TEXT("{\"batch_size\":64}");
    t.metric = metric;
    check(store_trial_add(f->s, &t, &f->e), &f->e);
    return t.id;
}

/* Begun at T0_S + from_s; two seconds of start-up, then epochs of ten seconds. */
static void add_attempt(struct fix *f, int64_t trial, int number, double from_s, int first, int last)
{
    struct store_attempt a = { .trial = trial, .state = TEXT("ended"), .outcome = TEXT("finished"), .startup_s = 2 };
    a.started_ms = (int64_t)((T0_S + from_s) * 1000);
    a.first_epoch = first;
    check(store_attempt_add(f->s, &a, &f->e), &f->e);
    for (int i = first; i <= last; i++) {
        struct store_epoch ep = { .trial = trial, .epoch = i, .attempt = number, .seconds = 10, .accuracy = 0.5 };
        ep.end_ms = a.started_ms + 2000 + 10000 * (i - first + 1);
        check(store_epoch_put(f->s, &ep, &f->e), &f->e);
    }
}

static void add_sample(struct fix *f, int64_t trial, double end_s, double seconds, const char *cells)
{
    struct store_sample row = { (T0_S + end_s) * 1000, seconds * 1000, 0, "process", cells_of(cells), 0, NULL };
    check(store_sample_add(f->s, trial, &row, &f->e), &f->e);
}

struct report {
    struct view v;
    struct heats h;
};

static void load(struct fix *f, struct report *r)
{
    check(view_open(&r->v, f->s, "s", NULL, 0, &f->e), &f->e);
    check(heats_load(&r->h, &r->v, &f->e), &f->e);
}

static void report_done(struct report *r)
{
    heats_done(&r->h);
    view_done(&r->v);
}

static void expect_rates(const struct heats_map *h, const double *want, size_t n)
{
    assert_int_equal(h->map.cols, n);
    for (size_t i = 0; i < n; i++) {
        double got = heat_rate(&h->map, 0, i);
        if (isnan(got) != isnan(want[i]) || fabs(got - want[i]) > 1e-6)
            fail_msg("column %zu (%s): got %g, want %g", i, h->cols.v[i], got, want[i]);
    }
}

static void test_both_attempts_of_the_best_trial_are_in_its_columns(void **state)
{
    struct fix *f = *state;
    struct report r;
    int64_t best = add_trial(f, 1, 0.9);
    add_attempt(f, best, 1, 0, 1, 1);
    add_attempt(f, best, 2, 100, 2, 3);
    add_sample(f, best, 1, 1, "10");     /* the first start-up */
    add_sample(f, best, 5, 1, "20");     /* epoch 1 */
    add_sample(f, best, 50, 1, "999");   /* between the attempts: of none */
    add_sample(f, best, 102, 2, "60");   /* the second start-up: 30 per second */
    add_sample(f, best, 120, 1, "40 n"); /* epoch 3 */
    load(f, &r);
    static const double want[] = { 70.0 / 3, 20, NAN, 40 };
    expect_rates(&r.h.best, want, 4);
    assert_string_equal(r.h.best.cols.v[0], "start-up");
    assert_string_equal(r.h.best.cols.v[3], "3");
    report_done(&r);
}

static void test_a_sample_that_cannot_be_read_is_told_and_stops_nothing(void **state)
{
    struct fix *f = *state;
    struct report r;
    sqlite3 *db = NULL;
    int64_t best = add_trial(f, 1, 0.9);
    add_attempt(f, best, 1, 0, 1, 1);
    add_sample(f, best, 1, 1, "10");
    add_sample(f, best, 5, 1, "20");
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE samples SET value = x'00' WHERE rowid = 1", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    load(f, &r);
    expect_rates(&r.h.best, (const double[]){ NAN, 20 }, 2);
    assert_string_equal(r.h.unread, "s/1: cell 1 of a sample is none");
    report_done(&r);
}

static void test_many_epochs_share_columns(void **state)
{
    struct fix *f = *state;
    struct report r;
    int64_t best = add_trial(f, 1, 0.9);
    add_attempt(f, best, 1, 0, 1, 100);
    add_sample(f, best, 2 + 1000, 1, "5"); /* the end of the last one */
    load(f, &r);
    assert_int_equal(r.h.best.cols.n, 1 + 34); /* threes */
    assert_string_equal(r.h.best.cols.v[1], "1–3");
    assert_string_equal(r.h.best.cols.v[34], "100");
    assert_true(heat_rate(&r.h.best.map, 0, 34) == 5);
    report_done(&r);
}

static void test_a_best_trial_that_was_copied_shows_what_was_trained(void **state)
{
    struct fix *f = *state;
    struct report r;
    struct store_trial copy = { .study = f->study, .number = 1, .epochs = 3, .copy_of = 2, .metric = 0.9 };
    copy.state = TEXT("finished");
    copy.hyper = TEXT("{}");
    check(store_trial_add(f->s, &copy, &f->e), &f->e);
    int64_t trained = add_trial(f, 2, 0.9);
    add_attempt(f, trained, 1, 0, 1, 1);
    add_sample(f, trained, 5, 1, "20");
    load(f, &r);
    assert_int_equal(r.v.totals.best_trial, 1);
    assert_int_equal(r.h.best.trial, 2);
    assert_true(heat_rate(&r.h.best.map, 0, 1) == 20);
    report_done(&r);
}

static void test_classes_are_heated_while_they_train_alone(void **state)
{
    struct fix *f = *state;
    struct report r;
    for (int i = 1; i <= 3; i++) {
        int64_t id = add_trial(f, i, 0.1 * i);
        add_attempt(f, id, 1, 0, 1, 1);
        add_sample(f, id, 1, 1, "1000"); /* starting up */
        add_sample(f, id, 5, 1, i == 1 ? "10" : i == 2 ? "30" : "7");
    }
    check(store_tuner_log_add(
              f->s, f->study,
              "s 1 0 0 0 \"a\\n\" \"f\"\ns 2 0 0 0 \"a\\n\" \"f\"\ns 3 0 0 0 \"b\" \"f\"\ns 9 0 0 0 \"c\"\n"
              "s 3 nonsense\ns\n",
              &f->e),
          &f->e);
    load(f, &r);
    static const double want[] = { 20, 7 };
    expect_rates(&r.h.by_class, want, 2);
    assert_string_equal(r.v.stories.classes.v[0], "a\n");
    report_done(&r);
}

static void test_what_was_saved_needs_a_ratio(void **state)
{
    struct fix *f = *state;
    static const char head[] = "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4\ns 1 0 1 0 \"k\" \"f\" 1 3 0 1 2\n";
    static const struct {
        const char *name, *log;
        double saved_s, saved_core_s;
    } cases[] = {
        { "one setting alone saves nothing", "i 1 10 1 10 100\n", 0, 0 },
        { "half the time on half the cores", "i 1 10 2 10 100\na 1 10 0 0\ni 1 15 2 5 100\n", 5, 15 },
        { "no like epoch to compare with", "i 1 10 1 10 100\na 1 10 0 0\ni 1 15 2 5 100\n", NAN, NAN },
        { "a start that was cold counts only where there is no other",
          "i 1 10 1 10 100\na 1 10 0 0\ni 1 20 1 10 100\na 1 20 1 0\ni 1 25 1 5 100\n", -5, 0 },
    };
    tear_down(state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct report r;
        assert_int_equal(set_up(state), 0);
        f = *state;
        (void)add_trial(f, 1, 0.9);
        check(store_tuner_log_add(f->s, f->study, head, &f->e), &f->e);
        check(store_tuner_log_add(f->s, f->study, cases[i].log, &f->e), &f->e);
        load(f, &r);
        double s = stories_of(&r.v.stories, 1)->saved_s, core_s = stories_of(&r.v.stories, 1)->saved_core_s;
        bool known = !isnan(cases[i].saved_s);
        if (isnan(s) == known || (known && fabs(s - cases[i].saved_s) + fabs(core_s - cases[i].saved_core_s) > 1e-9))
            fail_msg("%s: got %g s and %g core-seconds, want %g and %g", cases[i].name, s, core_s, cases[i].saved_s,
                     cases[i].saved_core_s);
        report_done(&r);
        tear_down(state);
    }
    assert_int_equal(set_up(state), 0);
}

static void add_reading(struct fix *f, const char *meter, double to_s, double value)
{
    struct store_reading r = { .meter = meter,
                               .state = "ok",
                               .from_ms = 1000 * (T0_S + to_s - 1),
                               .to_ms = 1000 * (T0_S + to_s),
                               .value = value,
                               .error = 0.5 };
    check(store_reading_add(f->s, f->study, &r, &f->e), &f->e);
}

static void fill(struct fix *f)
{
    for (int s = 1; s <= 3; s++) {
        add_reading(f, "rapl", s, 30);
        add_reading(f, "cpu", s, 1);
    }
    int64_t id = add_trial(f, 1, 0.9);
    add_attempt(f, id, 1, 0, 1, 2);
    add_sample(f, id, 5, 1, "20 n");
    struct store_decision d = { .trial = 1, .t_s = 1, .kind = "settle", .setting = "{\"cores\":1}", .reason = "r" };
    check(store_decision_add(f->s, f->study, &d, &f->e), &f->e);
    check(store_tuner_log_add(f->s, f->study,
                              "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4\ns 1 0 1 0 \"k\" \"f\" 1 3 0 1 2\n"
                              "i 1 10 1 10 100\na 1 10 0 0\ni 1 20 1 10 100\n",
                              &f->e),
          &f->e);
}

static void test_memory_that_runs_out_is_told(void **state)
{
    struct fix *f = *state;
    bool hit = true;
    unsigned nth = 1;
    fill(f);
    for (; hit; nth++) {
        struct report r = { .h = { .unread = "" } };
        AUTO_BUF struct buf out = BUF_INIT;
        struct err e = { 0 };
        assert_true(nth < 8000);
        fault_arm(FAULT_ALLOC, nth);
        int rc = view_open(&r.v, f->s, "s", NULL, 0, &e);
        if (rc == 0)
            rc = heats_load(&r.h, &r.v, &e);
        if (rc == 0)
            rc = put_report_html(&out, &r.v, &r.h, &e);
        if (rc == 0)
            rc = put_report_csv(&out, &r.v, &e);
        if (rc == 0)
            rc = put_study_text(&out, &r.v, &e);
        if (rc == 0)
            rc = put_trial_text(&out, &r.v, &r.v.trials[0], &e);
        hit = fault_disarm();
        if (hit && rc == 0 && !out.failed)
            fail_msg("allocation %u failed, and the report is whole", nth);
        if (rc < 0 && (rc != -ENOMEM || e.code != rc))
            fail_msg("allocation %u: got %d, explained as %d '%s'", nth, rc, e.code, e.text);
        report_done(&r);
    }
    assert_true(nth > 30); /* there were calls to fail */
}

/* Rows of a form are told apart by their keys; a column that is spread has those of its members. */
static void test_no_form_has_a_key_twice(void **state)
{
    static const struct {
        const char *name;
        const struct column *const *columns;
    } forms[] = { { "show", columns_show },
                  { "show one", columns_show_one },
                  { "report", columns_report_json },
                  { "CSV", columns_report_csv },
                  { "diff", columns_diff } };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        for (const struct column *const *a = forms[i].columns; *a; a++)
            for (const struct column *const *b = a + 1; *b; b++)
                if (strcmp((*a)->key, (*b)->key) == 0)
                    fail_msg("%s: '%s' is there twice", forms[i].name, (*a)->key);
}

/* What is absent is told as that, and never as 0. */
static void test_a_trial_that_never_ran_has_no_figures(void **state)
{
    struct fix *f = *state;
    struct report r;
    struct store_trial t = { .study = f->study, .number = 1, .epochs = 3, .accuracy = NAN, .loss = NAN, .metric = NAN };
    t.state = TEXT("waiting");
    t.hyper = TEXT("{\"b\":1}");
    check(store_trial_add(f->s, &t, &f->e), &f->e);
    load(f, &r);
    json_t *j = NULL;
    check(put_trial_json(&j, &r.v, &r.v.trials[0], columns_show, &f->e), &f->e);
    static const char *const absent[] = { "accuracy", "loss",   "metric", "seconds",
                                          "copy_of",  "reason", "now",    "violates" };
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (!json_is_null(json_object_get(j, absent[i])))
            fail_msg("%s is told", absent[i]);
    assert_null(json_object_get(j, "forecast")); /* where nothing is foretold there is no such key */
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "energy"), "source")), "absent");
    json_decref(j);
    AUTO_BUF struct buf csv = BUF_INIT;
    check(put_report_csv(&csv, &r.v, &f->e), &f->e);
    assert_string_equal(buf_text(&csv), "trial,state,hyper.b,epochs,budget,accuracy,loss,metric,seconds,energy_j,"
                                        "energy_source,attempts,copy_of,reason\n1,waiting,1,0,3,,,,,,absent,0,,\n");
    report_done(&r);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_both_attempts_of_the_best_trial_are_in_its_columns),
        T(test_a_sample_that_cannot_be_read_is_told_and_stops_nothing),
        T(test_many_epochs_share_columns),
        T(test_a_best_trial_that_was_copied_shows_what_was_trained),
        T(test_classes_are_heated_while_they_train_alone),
        T(test_what_was_saved_needs_a_ratio),
        T(test_no_form_has_a_key_twice),
        T(test_a_trial_that_never_ran_has_no_figures),
        T(test_memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests_name("put", tests, NULL, NULL);
}
