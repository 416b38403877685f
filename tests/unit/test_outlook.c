/* What trials are foretold to come to, gathered from a store. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "core/rng.h"
#include "store/outlook.h"
#include "tests/fault.h"
#include "view/foretold.h"

enum { EPOCHS = 50 };

struct fix {
    char dir[64], path[96];
    struct store *s;
    struct err e;
};

#define TEXT(literal) ((char *)(uintptr_t)(literal))
#define SPACE "\"hyperParameters\": {\"x\": {\"min\": 0.0, \"max\": 1.0}}"
#define APP "\"bigdl\": {\"conf\": \"a.py\"}"
#define STUDY(epochs, more) "\"study\": {\"metric\": \"accuracy\", \"epochs\": " #epochs more "}"
#define CONFIG(more) "{" APP ", " STUDY(50, more) ", " SPACE "}"

static void must(struct fix *f, int rc)
{
    if (rc < 0)
        fail_msg("%d: %s", rc, f->e.text);
}

static int64_t add_study(struct fix *f, const char *name, const char *config)
{
    const struct store_study row = {
        .name = TEXT(name), .state = TEXT("running"), .config = TEXT(config), .maximise = true, .created_ms = 1
    };
    int64_t id = 0;
    must(f, store_study_add(f->s, &row, &id, &f->e));
    return id;
}

/* What `x` makes of a trial, with a trial's own luck in it. */
static double value_at(double x, int epoch, struct rng *r)
{
    return 0.1 + 0.8 * x * (1 - exp(-epoch / (4 + 16 * x))) + 0.002 * rng_normal(r);
}

static double end_of(double x)
{
    return 0.1 + 0.8 * x * (1 - exp(-EPOCHS / (4 + 16 * x)));
}

/* A trial that has told so many epochs, each of so many seconds. Its number. */
static int add_trial(struct fix *f, int64_t study, int number, const char *state, double x, int epochs, double seconds)
{
    struct rng r = rng_seeded((uint64_t)number);
    char hyper[64];
    (void)snprintf(hyper, sizeof hyper, "{\"x\": %.6f}", x);
    struct store_trial row = { .study = study,
                               .number = number,
                               .proposal = (uint64_t)number,
                               .state = TEXT(state),
                               .epochs = EPOCHS,
                               .hyper = hyper,
                               .requested = TEXT("{}"),
                               .effective = TEXT("{}"),
                               .accuracy = NAN,
                               .loss = NAN,
                               .metric = NAN };
    must(f, store_trial_add(f->s, &row, &f->e));
    struct store_attempt a = { .trial = row.id,
                               .state = TEXT("running"),
                               .launch = TEXT("t"),
                               .argv = TEXT("[]"),
                               .exit_code = -1,
                               .first_epoch = 1 };
    must(f, store_attempt_add(f->s, &a, &f->e));
    for (int i = 1; i <= epochs; i++) {
        struct store_epoch e = { .trial = row.id,
                                 .epoch = i,
                                 .attempt = 1,
                                 .accuracy = NAN,
                                 .loss = NAN,
                                 .metric = value_at(x, i, &r),
                                 .seconds = seconds,
                                 .records = 100,
                                 .learning_rate = NAN };
        must(f, store_epoch_put(f->s, &e, &f->e));
    }
    return number;
}

/* Trials 1 … n, all of them whole. */
static void add_whole(struct fix *f, int64_t study, int n)
{
    must(f, store_begin(f->s, &f->e));
    for (int i = 1; i <= n; i++)
        (void)add_trial(f, study, i, "finished", (i * 7 % n) / (double)n, EPOCHS, 2);
    must(f, store_commit(f->s, &f->e));
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-outlook-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    must(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static struct outlook *opened(struct fix *f, const char *name)
{
    struct store_study row = { 0 };
    struct outlook *o = NULL;
    assert_int_equal(store_study_find(f->s, name, &row, &f->e), 1);
    must(f, outlook_open(&o, f->s, &row, &f->e));
    store_study_done(&row);
    return o;
}

struct looking {
    struct fix *f;
    struct outlook *o;
    struct outlook_told told;
};

static int look(void *ctx, const struct store_trial *row)
{
    struct looking *l = ctx;
    must(l->f, outlook_look(l->o, row, &l->told, &l->f->e));
    return 0;
}

static struct outlook_told told_of(struct fix *f, struct outlook *o, int64_t study, int number)
{
    struct looking l = { f, o, { 0 } };
    must(f, store_trials(f->s, study, number, look, &l, &f->e));
    return l.told;
}

/* Which trials are foretold: those that are not over, as soon as they have told a value. */
static void test_trials_that_may_go_on_are_foretold(void **state)
{
    static const struct {
        const char *state;
        int epochs;
        bool foretold;
    } cases[] = { { "running", 8, true },     { "paused", 8, true },   { "stopped", 8, true },
                  { "interrupted", 8, true }, { "waiting", 0, false }, { "running", 0, false },
                  { "finished", 50, false },  { "failed", 8, false },  { "infeasible", 8, false } };
    struct fix *f = *state;
    int64_t study = add_study(f, "s", CONFIG(""));
    add_whole(f, study, 30);
    struct outlook *o = opened(f, "s");
    for (int i = 0; i < (int)ARRAY_LEN(cases); i++) {
        double x = 0.5;
        int n = add_trial(f, study, 100 + i, cases[i].state, x, cases[i].epochs, 2);
        struct outlook_told t = told_of(f, o, study, n);
        if ((t.epoch == EPOCHS) != cases[i].foretold || (!cases[i].foretold && t.epoch != 0))
            fail_msg("%s after %d: epoch %d is foretold", cases[i].state, cases[i].epochs, t.epoch);
        if (t.epoch && (fabs(t.value.median - end_of(x)) > 0.05 || t.value.low > t.value.median ||
                        t.value.high < t.value.median || t.seen != 8 || !isnan(t.target)))
            fail_msg("%s: foretold %g (%g to %g), comes to %g", cases[i].state, t.value.median, t.value.low,
                     t.value.high, end_of(x));
    }
    outlook_free(o);
}

static void test_a_target_is_told_in_epochs_and_seconds(void **state)
{
    struct fix *f = *state;
    int64_t study = add_study(f, "s", CONFIG(", \"target\": 0.4"));
    add_whole(f, study, 30);
    int reaches = add_trial(f, study, 101, "running", 0.6, 5, 3),
        never = add_trial(f, study, 102, "paused", 0.05, 5, 3);
    int has = add_trial(f, study, 103, "stopped", 0.9, 20, 3),
        untimed = add_trial(f, study, 104, "running", 0.6, 5, NAN);
    struct outlook *o = opened(f, "s");
    struct outlook_told t = told_of(f, o, study, reaches);
    assert_true(t.target == 0.4 && t.reach.soonest > 5 && t.reach.soonest <= t.reach.middle && t.reach.middle < EPOCHS);
    assert_true(t.epoch_s == 3 && outlook_seconds(&t, t.reach.middle) == 3 * (t.reach.middle - 5));
    t = told_of(f, o, study, never);
    assert_true(t.reach.middle == 0 && t.reach.latest == 0);
    t = told_of(f, o, study, has);
    assert_true(t.reach.soonest == t.reach.latest && t.reach.latest <= 20);
    assert_true(isnan(outlook_seconds(&t, t.reach.middle)));
    t = told_of(f, o, study, untimed);
    assert_true(t.reach.middle > 5 && isnan(t.epoch_s) && isnan(outlook_seconds(&t, t.reach.middle)));
    outlook_free(o);
}

/* The tuner's log: it trained two epochs under 4 cores, then three under 2, of which the first began under 4. */
static void test_seconds_are_those_of_the_setting_in_force(void **state)
{
    static const char log[] = "H 2 pipetune 3 0.1 0.01 0.05 2 4 2 1 8\n"
                              "s 1 0 0 0 \"k\"\n"
                              "i 1 1 1 10 100\n"
                              "i 1 2 2 10 100\n"
                              "i 1 3 3 5 50\n"
                              "a 1 3 1 0\n"
                              "i 1 4 3 10 50\n"
                              "i 1 5 4 20 100\n"
                              "i 1 6 5 20 100\n";
    struct fix *f = *state;
    int64_t study = add_study(f, "s", CONFIG(", \"target\": 0.4"));
    static const double seconds[] = { 11, 11, 16, 21, 23 };
    int n = add_trial(f, study, 1, "running", 0.6, 5, 1);
    for (int i = 0; i < 5; i++) {
        struct store_epoch e = { .trial = 1,
                                 .epoch = i + 1,
                                 .attempt = 1,
                                 .metric = 0.1 + 0.02 * i,
                                 .accuracy = NAN,
                                 .loss = NAN,
                                 .seconds = seconds[i],
                                 .records = 100,
                                 .learning_rate = NAN };
        must(f, store_epoch_put(f->s, &e, &f->e));
    }
    must(f, store_tuner_log_add(f->s, study, log, &f->e));
    struct outlook *o = opened(f, "s");
    struct outlook_told t = told_of(f, o, study, n);
    if (t.epoch_s != 22) /* not 16.4, the mean of all */
        fail_msg("an epoch takes %g s", t.epoch_s);
    /* as soon as it changes, before an epoch is whole: 20 s for 100 records becomes 40 */
    must(f, store_tuner_log_add(f->s, study, "a 1 7 0 0\ni 1 8 6 20 50\n", &f->e));
    t = told_of(f, o, study, n);
    assert_true(t.epoch_s == 22);
    outlook_renew_times(o);
    t = told_of(f, o, study, n);
    if (t.epoch_s != 11) /* what whole epochs took under it comes before how fast records go */
        fail_msg("an epoch takes %g s", t.epoch_s);
    outlook_free(o);
}

static double miss_without_own(struct fix *f, const char *earlier)
{
    double miss = 0;
    int64_t before = add_study(f, "earlier", earlier), study = add_study(f, "later", CONFIG(""));
    add_whole(f, before, 40);
    struct outlook *o = opened(f, "later");
    for (int i = 1; i <= 10; i++) {
        struct outlook_told t = told_of(f, o, study, add_trial(f, study, i, "running", i / 11.0, 3, 2));
        miss += fabs(t.value.median - end_of(i / 11.0)) / 10;
    }
    outlook_free(o);
    return miss;
}

static const struct {
    const char *name, *config;
    bool counts;
} earlier[] = {
    { "the same", CONFIG(""), true },
    { "another application", "{\"bigdl\": {\"conf\": \"b.py\"}, " STUDY(50, "") ", " SPACE "}", false },
    { "another metric", "{" APP ", \"study\": {\"metric\": \"loss\", \"epochs\": 50}, " SPACE "}", false },
    { "fewer epochs", "{" APP ", " STUDY(20, "") ", " SPACE "}", false },
    { "no config", "", false },
};

static void test_earlier_studies_of_the_same_kind_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(earlier); i++) {
        void *own = NULL;
        assert_int_equal(set_up(&own), 0);
        double miss = miss_without_own(own, earlier[i].config);
        (void)tear_down(&own);
        if (earlier[i].counts ? miss > 0.03 : miss < 0.05)
            fail_msg("%s: missed %g", earlier[i].name, miss);
    }
}

static void test_the_way_leads_to_the_end(void **state)
{
    struct fix *f = *state;
    int64_t study = add_study(f, "s", CONFIG(""));
    add_whole(f, study, 12);
    (void)add_trial(f, study, 100, "running", 0.5, 8, 2);
    struct outlook *o = opened(f, "s");
    struct outlook_step way[OUTLOOK_WAY_MAX];
    struct store_trial row = {
        .id = 13, .study = study, .number = 100, .epochs = EPOCHS, .hyper = TEXT("{\"x\": 0.5}")
    };
    row.state = TEXT("running");
    int n = outlook_way(o, &row, way, &f->e);
    struct outlook_told t = told_of(f, o, study, 100);
    assert_true(n > 2 && way[0].epoch == 8 && way[n - 1].epoch == EPOCHS);
    assert_true(way[0].value.low == way[0].value.high && way[n - 1].value.low == t.value.low);
    for (int i = 1; i < n; i++)
        assert_true(way[i].epoch > way[i - 1].epoch && way[i].value.low <= way[i].value.high);
    outlook_free(o);
}

static void test_it_is_told_in_words_and_json(void **state)
{
    (void)state;
    static const struct {
        struct outlook_told told;
        const char *text, *brief, *json;
    } cases[] = {
        { { 0 }, "", "", "{}" },
        { { 50, 8, 0.5, { 0.9, 0.85, 0.92 }, NAN, { 0, 0, 0 }, NAN },
          "foretold for epoch 50: 0.9, 80 % within 0.85 to 0.92",
          "will be 0.85 to 0.92",
          "{\"forecast\": {\"epoch\": 50, \"seen\": 8, \"median\": 0.9, \"low\": 0.85, \"high\": 0.92}}" },
        { { 50, 8, 0.5, { 0.9, 0.85, 0.92 }, 0.88, { 20, 30, 41 }, 2 },
          "foretold for epoch 50: 0.9, 80 % within 0.85 to 0.92; target 0.88: likely at epoch 30, within 20 to 41, in "
          "24.0 s to 1 m 06 s",
          "will be 0.85 to 0.92, target at epoch 30 in 44.0 s",
          "{\"forecast\": {\"epoch\": 50, \"seen\": 8, \"median\": 0.9, \"low\": 0.85, \"high\": 0.92, \"target\": "
          "{\"value\": 0.88, \"epochs\": {\"soonest\": 20, \"middle\": 30, \"latest\": 41}, \"seconds\": {\"soonest\": "
          "24, "
          "\"middle\": 44, \"latest\": 66}}}}" },
        { { 50, 8, 0.5, { 0.9, 0.85, 0.92 }, 0.91, { 40, 0, 0 }, NAN },
          "foretold for epoch 50: 0.9, 80 % within 0.85 to 0.92; target 0.91: not before epoch 40, likely not within "
          "50",
          "will be 0.85 to 0.92",
          "{\"forecast\": {\"epoch\": 50, \"seen\": 8, \"median\": 0.9, \"low\": 0.85, \"high\": 0.92, \"target\": "
          "{\"value\": 0.91, \"epochs\": {\"soonest\": 40}}}}" },
        { { 50, 8, 0.5, { 0.9, 0.85, 0.92 }, 0.99, { 0, 0, 0 }, 2 },
          "foretold for epoch 50: 0.9, 80 % within 0.85 to 0.92; target 0.99: not within 50 epochs",
          "will be 0.85 to 0.92",
          "{\"forecast\": {\"epoch\": 50, \"seen\": 8, \"median\": 0.9, \"low\": 0.85, \"high\": 0.92, \"target\": "
          "{\"value\": 0.99}}}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT, brief = BUF_INIT;
        AUTO_JSON json_t *j = json_pack("{s:o*}", "forecast", foretold_json(&cases[i].told));
        AUTO_BUF struct buf json = BUF_INIT;
        foretold_put(&text, &cases[i].told);
        foretold_put_short(&brief, &cases[i].told);
        json_put(&json, j, JSON_STYLE_COMPACT);
        assert_string_equal(buf_text(&text), cases[i].text);
        assert_string_equal(buf_text(&brief), cases[i].brief);
        assert_string_equal(buf_text(&json), cases[i].json);
    }
}

static void test_memory_may_run_out(void **state)
{
    struct fix *f = *state;
    int64_t study = add_study(f, "s", CONFIG(""));
    add_whole(f, study, 8);
    (void)add_trial(f, study, 100, "running", 0.5, 8, 2);
    struct store_study row = { 0 };
    assert_int_equal(store_study_find(f->s, "s", &row, &f->e), 1);
    struct store_trial t = { .id = 9, .study = study, .number = 100, .epochs = EPOCHS, .hyper = TEXT("{\"x\": 0.5}") };
    t.state = TEXT("running");
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct outlook *o = NULL;
        struct outlook_told told = { 0 };
        assert_true(nth < 4000);
        fault_arm(FAULT_ALLOC, nth);
        rc = outlook_open(&o, f->s, &row, &f->e);
        rc = rc == 0 ? outlook_look(o, &t, &told, &f->e) : rc;
        bool armed = fault_disarm();
        if (rc == 0 && armed) { /* what only makes it less sure */
            rc = -ENOMEM;
        }
        outlook_free(o);
    }
    store_study_done(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trials_that_may_go_on_are_foretold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_target_is_told_in_epochs_and_seconds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_seconds_are_those_of_the_setting_in_force, set_up, tear_down),
        cmocka_unit_test(test_earlier_studies_of_the_same_kind_count),
        cmocka_unit_test_setup_teardown(test_the_way_leads_to_the_end, set_up, tear_down),
        cmocka_unit_test(test_it_is_told_in_words_and_json),
        cmocka_unit_test_setup_teardown(test_memory_may_run_out, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
