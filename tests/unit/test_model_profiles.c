/* Recorded samples are cut into windows, and recorded times become lessons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/model_profiles.h"
#include "tests/fault.h"

#define AUTO_TRACE __attribute__((cleanup(trace_done)))
#define AUTO_PROFILES __attribute__((cleanup(model_profiles_done)))
#define AUTO_MODEL __attribute__((cleanup(model_done)))

enum { EPOCHS_MAX = 3, SAMPLES_MAX = 24 };

/* A trace of one run with one feature, a gauge whose value is the sample's number. */
static struct trace_run *make_run(struct trace *t, const char *hyper)
{
    *t = (struct trace){ 0 };
    strv_add(&t->features, "proc/threads");
    struct trace_run *r = trace_add(t);
    assert_non_null(r);
    r->model = strdup("m");
    r->dataset = strdup("d");
    r->hyper = strdup(hyper);
    r->system = strdup("{\"cores\":2}");
    return r;
}

static void add_epochs(struct trace_run *r, const double *length_s, double from_s)
{
    r->epochs = calloc(EPOCHS_MAX, sizeof *r->epochs);
    assert_non_null(r->epochs);
    for (; r->n_epochs < EPOCHS_MAX && length_s[r->n_epochs] > 0; r->n_epochs++) {
        struct trace_epoch *x = &r->epochs[r->n_epochs];
        *x = trace_no_epoch();
        x->start_s = from_s;
        x->duration_s = length_s[r->n_epochs];
        from_s += x->duration_s;
    }
}

static void add_samples(struct trace *t, struct trace_run *r, const double *at_s, size_t n, uint16_t nodes)
{
    assert_int_equal(trace_samples_init(&r->samples, n, t->features.n), 0);
    for (size_t i = 0; i < n; i++) {
        r->samples.t_ns[i] = (int64_t)(at_s[i] * 1e9);
        r->samples.node[i] = (uint16_t)(i % nodes);
        r->samples.value[i] = (double)i;
        r->samples.state[i] = TRACE_OK;
    }
}

static void test_windows_lie_within_epochs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double from_s, epochs[EPOCHS_MAX], at_s[SAMPLES_MAX];
        uint16_t nodes;
        size_t want;
        int last_epoch;
    } cases[] = {
        { "three seconds are a window", 0, { 3 }, { 0, 1, 2, 3 }, 1, 1, 1 },
        { "two are none", 0, { 2 }, { 0, 1, 2, 3, 4 }, 1, 0, 0 },
        { "the start-up is no part of it", 3, { 3 }, { 0.1, 1, 2, 3, 4, 5, 6, 7 }, 1, 1, 1 },
        { "two epochs of four seconds have one each", 0, { 4, 4 }, { 0.1, 1, 2, 3, 4, 5, 6, 7, 8 }, 1, 2, 2 },
        { "seven seconds have two", 0, { 7 }, { 0.1, 1, 2, 3, 4, 5, 6, 7 }, 1, 2, 1 },
        { "without epochs all samples count", 0, { 0 }, { 50, 51, 52, 53, 54, 55, 56 }, 1, 2, 0 },
        { "what was sampled before and after a gap makes two", 0, { 0 }, { 1, 2, 3, 4, 50, 51, 52, 53, 54 }, 1, 3, 0 },
        { "a clock that leaps by years ends nothing but the window", 0, { 0 }, { 1, 2, 3, 4, 9e9, 9e9 + 1 }, 1, 1, 0 },
        { "a clock that goes back is left out", 0, { 0 }, { 10, 11, 12, 5, 6, 7, 8 }, 1, 1, 0 },
        { "two nodes are one window", 0, { 3 }, { 0.1, 0.1, 1, 1, 2, 2, 3, 3 }, 2, 1, 1 },
        { "every five seconds: one interval is a window", 0, { 20 }, { 0.1, 5, 10, 15, 20 }, 1, 4, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TRACE struct trace t;
        AUTO_PROFILES struct model_profiles p = { 0 };
        struct err e;
        size_t n = 0;
        struct trace_run *r = make_run(&t, "{\"batch_size\":64,\"learning_rate\":0.1}");
        while (n < SAMPLES_MAX && cases[i].at_s[n] > (n ? 0 : -1))
            n++;
        add_epochs(r, cases[i].epochs, cases[i].from_s);
        add_samples(&t, r, cases[i].at_s, n, cases[i].nodes);
        if (model_profiles_init(&p, &t, 1, &e) < 0)
            fail_msg("%s: %s", cases[i].name, e.text);
        if (p.n != cases[i].want)
            fail_msg("%s: %zu windows, want %zu", cases[i].name, p.n, cases[i].want);
        if (p.n > 0)
            assert_int_equal(p.list[p.n - 1].epoch, cases[i].last_epoch);
        assert_string_equal(p.keys.v[0], "m d batch_size=64");
        assert_string_equal(p.families.v[0], "m d");
    }
}

static void test_a_window_has_the_samples_of_its_time(void **state)
{
    (void)state;
    static const double at_s[] = { 0, 1, 2, 3, 4, 5, 6 }, epochs[EPOCHS_MAX] = { 6 };
    AUTO_TRACE struct trace t;
    AUTO_PROFILES struct model_profiles p = { 0 };
    struct trace_run *r = make_run(&t, "{}");
    add_epochs(r, epochs, 0);
    add_samples(&t, r, at_s, ARRAY_LEN(at_s), 1);
    assert_int_equal(model_profiles_init(&p, &t, 1, NULL), 0);
    assert_int_equal(p.n, 2);
    assert_true(fabs(p.list[0].profile.x[0] - log1p(2)) < 1e-12); /* 1, 2, 3 */
    assert_true(fabs(p.list[1].profile.x[0] - log1p(5)) < 1e-12);
}

static void test_features_of_several_traces_come_together(void **state)
{
    (void)state;
    static const double at_s[] = { 0, 1, 2, 3 };
    struct trace t[2];
    AUTO_PROFILES struct model_profiles p = { 0 };
    struct trace_run *r = make_run(&t[0], "{}");
    add_samples(&t[0], r, at_s, ARRAY_LEN(at_s), 1);
    r = make_run(&t[1], "{}");
    memcpy(t[1].features.v[0], "proc/rss", sizeof "proc/rss");
    add_samples(&t[1], r, at_s, ARRAY_LEN(at_s), 1);
    assert_int_equal(model_profiles_init(&p, t, 2, NULL), 0);
    assert_int_equal(p.space.n, 2);
    assert_int_equal(p.keys.n, 1);
    assert_int_equal(p.n, 2);
    assert_true(p.list[0].profile.mask[0] && !p.list[0].profile.mask[1]);
    assert_true(!p.list[1].profile.mask[0] && p.list[1].profile.mask[1]);
    trace_done(&t[0]);
    trace_done(&t[1]);
}

/* --- lessons --- */

static void add_window(struct trace_run *r, const char *setting, int epoch, double seconds)
{
    struct trace_window *list = realloc(r->windows, (r->n_windows + 1) * sizeof *list);
    assert_non_null(list);
    r->windows = list;
    list[r->n_windows] = (struct trace_window){ .epoch = epoch, .setting = strdup(setting), .at = trace_no_epoch() };
    list[r->n_windows].at.duration_s = seconds;
    list[r->n_windows++].at.records = 100;
}

static void test_settings_of_one_run_are_compared(void **state)
{
    (void)state;
    static const double epochs[EPOCHS_MAX] = { 9, 9 };
    AUTO_TRACE struct trace t;
    AUTO_MODEL struct model m;
    struct err e;
    struct trace_run *r = make_run(&t, "{}");
    add_epochs(r, epochs, 0);
    add_window(r, "{\"cores\":2}", 1, 100); /* the first epoch of a JVM */
    add_window(r, "{\"cores\":2}", 2, 4);
    add_window(r, "{\"cores\":1}", 2, 5);
    add_window(r, "{\"cores\":2}", 2, 6);
    model_init(&m);
    assert_int_equal(model_profiles_teach(&m, &t, "study", &e), 1);
    const struct model_class *c = model_class_find(&m, "m d");
    assert_non_null(c);
    assert_int_equal(c->n_entries, 1);
    assert_string_equal(c->entries[0].setting, "{\"cores\": 1}");
    assert_true(fabs(c->entries[0].log_ratio) < 1e-12); /* 5 over the mean of 4 and 6 */
    assert_string_equal(c->best, "{\"cores\": 2}");     /* as good as the other, and first */
    assert_string_equal(c->study, "study");
}

static void test_runs_of_one_setting_each_are_compared_and_failed_ones_noted(void **state)
{
    (void)state;
    static const double slow[EPOCHS_MAX] = { 20, 10 }, fast[EPOCHS_MAX] = { 20, 5 };
    AUTO_TRACE struct trace t;
    AUTO_MODEL struct model m;
    struct err e;
    static const char *const systems[] = { "{\"cores\":1}", "{\"cores\":2}", "{\"cores\":9}" };
    struct trace_run *r = make_run(&t, "{}");
    for (size_t i = 0; i < ARRAY_LEN(systems); i++) {
        if (i > 0) {
            r = trace_add(&t);
            assert_non_null(r);
            r->model = strdup("m");
            r->dataset = strdup("d");
        }
        free(r->system);
        r->system = strdup(systems[i]);
        r->status = i < 2 ? RUN_COMPLETE : RUN_FAILED;
        if (i < 2)
            add_epochs(r, i ? fast : slow, 0);
    }
    model_init(&m);
    assert_int_equal(model_profiles_teach(&m, &t, "study", &e), 1);
    const struct model_class *c = model_class_find(&m, "m d");
    assert_string_equal(c->best, "{\"cores\": 2}");
    assert_true(fabs(c->entries[0].log_ratio - log(0.5)) < 1e-12);
    assert_int_equal(c->n_bounds, 1);
    assert_string_equal(c->bounds[0].setting, "{\"cores\": 9}");
}

/* A trace of a study says as what its trials were launched. */
static void test_a_run_belongs_to_the_class_that_its_trial_was_launched_as(void **state)
{
    (void)state;
    static const struct {
        const char *name, *results, *key, *family;
    } cases[] = {
        { "as its trial was launched", "{\"trial\": 2}", "$HOME/app.py data b=64", "$HOME/app.py data" },
        { "a launch without a family", "{\"trial\": 3}", "lonely", "" },
        { "a trial that nobody asked for", "{\"trial\": 4}", "m d batch_size=64", "m d" },
        { "no trial at all", "{}", "m d batch_size=64", "m d" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TRACE struct trace t;
        AUTO_BUF struct buf key = BUF_INIT, family = BUF_INIT;
        struct trace_run *r = make_run(&t, "{\"batch_size\":64}");
        r->results = strdup(cases[i].results);
        strv_add(&t.tuner.log, "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 2");
        strv_add(&t.tuner.log, "L 1 \"another\" \"one\" 1 0 2 1");
        strv_add(&t.tuner.log, "L 2 \"$HOME/app.py data b=64\" \"$HOME/app.py data\" 1 0 2 1");
        strv_add(&t.tuner.log, "L 3 \"lonely\" null 1 0 2 1");
        assert_int_equal(model_profiles_key(&key, &family, &t, r, NULL), 0);
        if (strcmp(buf_text(&key), cases[i].key) != 0 || strcmp(buf_text(&family), cases[i].family) != 0)
            fail_msg("%s: '%s', '%s'", cases[i].name, buf_text(&key), buf_text(&family));
    }
}

static void test_hyperparameters_that_are_none_are_named(void **state)
{
    (void)state;
    AUTO_TRACE struct trace t;
    AUTO_PROFILES struct model_profiles p = { 0 };
    AUTO_MODEL struct model m;
    struct err e;
    (void)make_run(&t, "[1]");
    model_init(&m);
    assert_int_equal(model_profiles_init(&p, &t, 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "[1]"));
    assert_int_equal(model_profiles_teach(&m, &t, "s", &e), -EINVAL);
}

static void test_memory_that_runs_out_leaves_nothing(void **state)
{
    (void)state;
    static const double at_s[] = { 0, 1, 2, 3, 4, 5, 6 }, epochs[EPOCHS_MAX] = { 6 };
    AUTO_TRACE struct trace t;
    struct trace_run *r = make_run(&t, "{}");
    add_epochs(r, epochs, 0);
    add_samples(&t, r, at_s, ARRAY_LEN(at_s), 1);
    add_window(r, "{\"cores\":2}", 1, 4);
    add_window(r, "{\"cores\":1}", 1, 5);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_PROFILES struct model_profiles p = { 0 };
        AUTO_MODEL struct model m;
        assert_true(nth < 500);
        model_init(&m);
        fault_arm(FAULT_ALLOC, nth);
        rc = model_profiles_init(&p, &t, 1, NULL);
        if (rc == 0)
            rc = model_profiles_teach(&m, &t, "s", NULL);
        fault_disarm();
        assert_true(rc >= 0 || rc == -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_lie_within_epochs),
        cmocka_unit_test(test_a_window_has_the_samples_of_its_time),
        cmocka_unit_test(test_features_of_several_traces_come_together),
        cmocka_unit_test(test_settings_of_one_run_are_compared),
        cmocka_unit_test(test_runs_of_one_setting_each_are_compared_and_failed_ones_noted),
        cmocka_unit_test(test_a_run_belongs_to_the_class_that_its_trial_was_launched_as),
        cmocka_unit_test(test_hyperparameters_that_are_none_are_named),
        cmocka_unit_test(test_memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
