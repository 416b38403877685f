/* A study's joules from a store that is filled here: exact figures of windows, and what is absent. */
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

#include "monitoring/features.h"
#include "store/samples.h"
#include "tests/fault.h"
#include "view/energy_figure.h"
#include "view/energy_load.h"
#include "view/energy_saved.h"

static const int64_t T0 = 1700000000000;

#define TEXT(literal) ((char *)(uintptr_t)(literal))

struct fix {
    char dir[64];
    char path[96];
    struct store *s;
    struct store_study study;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-joules-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)fault_disarm();
    store_study_done(&f->study);
    store_close(f->s);
    (void)unlink(f->path);
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static void add_study(struct fix *f, const char *config)
{
    struct store_study row = { .name = TEXT("s"),
                               .state = TEXT("running"),
                               .config = TEXT(config),
                               .provenance = TEXT("{\"host\":\"here\"}"),
                               .created_ms = T0 - 5000 };
    int64_t id = 0;
    assert_ok(f, store_study_add(f->s, &row, &id, &f->e));
    assert_ok(f, store_study_find(f->s, "s", &f->study, &f->e));
}

static int64_t add_trial(struct fix *f, int number)
{
    struct store_trial t = { .study = f->study.id, .number = number, .seconds = NAN };
    t.state = t.hyper = TEXT("{}");
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    return t.id;
}

/* to_s 0: it runs on. */
static void add_attempt(struct fix *f, int64_t trial, double from_s, double to_s)
{
    struct store_attempt a = { .trial = trial,
                               .state = TEXT(to_s > 0 ? "ended" : "running"),
                               .started_ms = T0 + (int64_t)(from_s * 1000),
                               .ended_ms = to_s > 0 ? T0 + (int64_t)(to_s * 1000) : 0,
                               .startup_s = 2,
                               .cores = NAN };
    assert_ok(f, store_attempt_add(f->s, &a, &f->e));
}

static void add_epoch(struct fix *f, int64_t trial, int attempt, int epoch, double end_s, double seconds)
{
    struct store_epoch ep = { .trial = trial,
                              .epoch = epoch,
                              .attempt = attempt,
                              .seconds = seconds,
                              .records = 1000,
                              .end_ms = T0 + (int64_t)(end_s * 1000) };
    assert_ok(f, store_epoch_put(f->s, &ep, &f->e));
}

static void add_reading(struct fix *f, int node, const char *meter, const char *state, double to_s, double value)
{
    struct store_reading r = { .node = node,
                               .meter = meter,
                               .state = state,
                               .from_ms = (double)T0 + (to_s - 1) * 1000,
                               .to_ms = (double)T0 + to_s * 1000,
                               .value = value,
                               .error = 0.5 };
    assert_ok(f, store_reading_add(f->s, f->study.id, &r, &f->e));
}

static void add_sample(struct fix *f, int64_t trial, int node, double to_s, double cpu_s)
{
    struct reading v[FEATURES];
    for (int i = 0; i < FEATURES; i++)
        v[i] = (struct reading){ .value = NAN, .state = READING_UNSUPPORTED };
    v[0] = (struct reading){ .value = 12345, .state = READING_OK };
    if (!isnan(cpu_s))
        v[FEATURE_PROC_CPU_TIME] = (struct reading){ .value = cpu_s, .state = READING_OK };
    struct store_sample s = {
        .t_ms = (double)T0 + to_s * 1000, .dt_ms = 1000, .node = node, .scope = "process", .v = v
    };
    assert_ok(f, store_sample_add(f->s, trial, &s, &f->e));
}

/* Each second: 30 J, two busy CPUs, one of which is the trial's. */
static void add_seconds(struct fix *f, int64_t trial, int from_s, int to_s)
{
    for (int s = from_s + 1; s <= to_s; s++) {
        add_reading(f, 0, "rapl", "ok", s, 30);
        add_reading(f, 0, "cpu", "ok", s, 2);
        add_sample(f, trial, 0, s, 1);
    }
}

#define IDLE_10 "{\"monitoring\":{\"meters\":[{\"name\":\"rapl\",\"idle_w\":10}]}}"

static void load(struct fix *f, struct energy_load *l)
{
    assert_ok(f, energy_load(l, f->s, &f->study, &f->e));
}

static void expect(const char *what, double got, double want)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) < 1e-9 * fmax(1, fabs(want))))
        fail_msg("%s: got %.12g, want %.12g", what, got, want);
}

/* --- what is exact --- */

static void test_a_trial_gets_its_share_above_the_idle_power(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 10);
    add_epoch(f, trial, 1, 1, 6, 4);
    add_epoch(f, trial, 1, 2, 10, 4);
    add_seconds(f, trial, 0, 10);
    struct energy_load l;
    load(f, &l);
    assert_int_equal(l.n_meters, 1);
    assert_string_equal(energy_load_node(&l, 0), "here");
    expect("study", l.study.to_ms - l.study.from_ms, 10000);
    struct ledger_node n;
    assert_int_equal(ledger_of_node(l.ledger, 0, l.meters[0], l.study.from_ms, l.study.to_ms, &n), 0);
    expect("node", n.total.j, 300);
    expect("idle", n.idle_j, 100);
    expect("trials", n.trials_j, 100);
    expect("other", n.other_j, 100);
    struct ledger_figure t;
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, 100);
    expect("coverage", t.coverage, 1);
    assert_int_equal(t.source, LEDGER_ATTRIBUTED);
    assert_int_equal(l.trials[0].n_epochs, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(energy_figure_epoch(&l, &l.trials[0], &l.trials[0].epochs[i], NULL, &t), 0);
        expect("epoch", t.j, 40);
    }
    energy_load_done(&l);
}

static void test_attempts_are_added_and_what_lies_between_is_not_the_trials(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 4);
    add_attempt(f, trial, 8, 12);
    add_seconds(f, trial, 0, 4);
    for (int s = 5; s <= 8; s++) {
        add_reading(f, 0, "rapl", "ok", s, 500);
        add_reading(f, 0, "cpu", "ok", s, 2);
    }
    add_seconds(f, trial, 8, 12);
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, 80);
    expect("coverage", t.coverage, 1);
    energy_load_done(&l);
}

static void test_an_attempt_that_nothing_was_read_of_lowers_the_coverage_alone(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 4);
    add_attempt(f, trial, 4, 8);
    add_seconds(f, trial, 0, 4);
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, 40);
    expect("coverage", t.coverage, 0.5);
    assert_true(t.error_j >= 40); /* as much again may be missing */
    assert_true(energy_figure_thin(&t));
    energy_load_done(&l);
}

static void test_an_attempt_that_runs_on_is_told_up_to_the_last_reading(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 0);
    add_seconds(f, trial, 0, 5);
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    expect("end", l.study.to_ms, (double)T0 + 5000);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, 50);
    energy_load_done(&l);
}

static void test_trials_that_run_at_once_share_by_their_cpu_time(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t one = add_trial(f, 1), two = add_trial(f, 2);
    add_attempt(f, one, 0, 10);
    add_attempt(f, two, 0, 10);
    for (int s = 1; s <= 10; s++) {
        add_reading(f, 0, "rapl", "ok", s, 30);
        add_reading(f, 0, "cpu", "ok", s, 4);
        add_sample(f, one, 0, s, 1);
        add_sample(f, two, 0, s, 3);
    }
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("one", t.j, 50);
    assert_int_equal(energy_figure_number(&l, 2, &t), 0);
    expect("two", t.j, 150);
    assert_int_equal(energy_figure_study(&l, NULL, &t), 0);
    expect("both", t.j, 200);
    energy_load_done(&l);
}

/* --- which meter --- */

static void test_meters_come_in_the_configs_order_and_others_after(void **state)
{
    struct fix *f = *state;
    add_study(f, "{\"monitoring\":{\"meters\":[\"nosuch\",7,{\"name\":\"pcm\"},\"pdu\"]},\"powerMeter\":\"estimate\"}");
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 2);
    static const char *const read[] = { "rapl", "estimate", "pcm", "cpu", "of another version" };
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        for (int s = 1; s <= 2; s++)
            add_reading(f, 0, read[i], "ok", s, 30);
    struct energy_load l;
    load(f, &l);
    AUTO_BUF struct buf names = BUF_INIT;
    for (size_t i = 0; i < l.n_meters; i++)
        buf_printf(&names, "%s ", l.meters[i]->name);
    assert_string_equal(buf_text(&names), "pcm estimate rapl ");
    energy_load_done(&l);
}

static void test_a_trial_is_told_by_the_first_meter_that_knows_it(void **state)
{
    struct fix *f = *state;
    add_study(f, "{\"monitoring\":{\"meters\":[\"rapl\",{\"name\":\"estimate\",\"idle_w\":5}]}}");
    int64_t one = add_trial(f, 1), two = add_trial(f, 2);
    add_attempt(f, one, 0, 5);
    add_attempt(f, two, 100, 105);
    for (int s = 1; s <= 5; s++) {
        add_reading(f, 0, "rapl", "ok", s, 30);
        add_reading(f, 0, "estimate", "ok", 100 + s, 15);
        add_reading(f, 0, "estimate", "ok", s, 15);
        add_reading(f, 0, "cpu", "ok", s, 1);
        add_reading(f, 0, "cpu", "ok", 100 + s, 1);
        add_sample(f, one, 0, s, 1);
        add_sample(f, two, 0, 100 + s, 1);
    }
    struct energy_load l;
    struct ledger_figure t;
    char source[64];
    load(f, &l);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    assert_string_equal(energy_figure_source(&t, source), "attributed (rapl)");
    assert_int_equal(energy_figure_number(&l, 2, &t), 0);
    assert_string_equal(energy_figure_source(&t, source), "estimated (estimate)");
    expect("estimate", t.j, 50); /* 5 W are idle */
    expect("baseline", t.idle_w, 5);
    /* Two sources are never added: the one that knows both tells the sum. */
    assert_int_equal(energy_figure_study(&l, NULL, &t), 0);
    assert_string_equal(energy_figure_source(&t, source), "estimated (estimate)");
    expect("both", t.j, 100);
    energy_load_done(&l);
}

/* --- what is absent --- */

static void test_without_readings_there_are_no_meters(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 10);
    add_sample(f, trial, 0, 1, 1);
    struct energy_load l;
    struct ledger_figure t;
    char source[64];
    load(f, &l);
    assert_int_equal(l.n_meters, 0);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, NAN);
    assert_string_equal(energy_figure_source(&t, source), "absent");
    energy_load_done(&l);
}

static void test_readings_without_a_value_measure_nothing(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 3);
    for (int s = 1; s <= 3; s++) {
        add_reading(f, 0, "rapl", "first", s, NAN);
        add_reading(f, 0, "rapl", "ok", s, NAN); /* damaged */
        add_reading(f, -1, "rapl", "ok", s, 30); /* no node of ours */
        add_sample(f, trial, 0, s, NAN);
    }
    struct energy_load l;
    load(f, &l);
    assert_int_equal(l.n_meters, 0);
    energy_load_done(&l);
}

static void test_readings_in_vain_are_of_a_meter_and_tell_no_joules(void **state)
{
    struct fix *f = *state;
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 3);
    for (int s = 1; s <= 3; s++) {
        add_reading(f, 0, "rapl", "discarded", s, NAN);
        add_reading(f, 0, "pcm", "failed", s, NAN);
        add_sample(f, trial, 0, s, 1);
    }
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    assert_int_equal(l.n_meters, 2);
    for (size_t i = 0; i < l.n_meters; i++)
        assert_true(ledger_knows(l.ledger, 0, l.meters[i]) && !ledger_has(l.ledger, 0, l.meters[i]));
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, NAN);
    assert_int_equal(t.source, LEDGER_ABSENT);
    assert_int_equal(energy_figure_study(&l, NULL, &t), 0);
    expect("study", t.j, NAN);
    energy_load_done(&l);
}

static void test_a_config_that_cannot_be_read_costs_names_and_baselines_alone(void **state)
{
    struct fix *f = *state;
    add_study(f, "{nonsense");
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 10);
    add_seconds(f, trial, 0, 10);
    struct energy_load l;
    struct ledger_figure t;
    load(f, &l);
    assert_int_equal(energy_figure_number(&l, 1, &t), 0);
    expect("trial", t.j, 150); /* nothing is idle */
    expect("baseline", t.idle_w, NAN);
    assert_string_equal(energy_load_node(&l, 7), "?");
    energy_load_done(&l);
}

/* --- how it is told --- */

static void test_joules_are_told_in_a_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        double j;
        const char *want;
    } rows[] = { { 0, "0.00 J" },      { 12.34, "12.3 J" },   { 812.4, "812 J" }, { 12345, "12.3 kJ" },
                 { 3.6e6, "3.60 MJ" }, { 1.25e9, "1.25 GJ" }, { NAN, "-" },       { -1500, "-1.50 kJ" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[32];
        assert_string_equal(energy_figure_joules(rows[i].j, got), rows[i].want);
    }
}

static void test_a_thin_figure_is_marked(void **state)
{
    (void)state;
    struct ledger_figure f = {
        .j = 12345, .coverage = 0.949, .source = LEDGER_ATTRIBUTED, .meter = meter_find("rapl")
    };
    AUTO_BUF struct buf b = BUF_INIT;
    energy_figure_put(&b, &f);
    assert_string_equal(buf_text(&b), "12.3 kJ attributed (rapl), 94 % covered");
    f.coverage = 0.95;
    buf_clear(&b);
    energy_figure_put(&b, &f);
    assert_string_equal(buf_text(&b), "12.3 kJ attributed (rapl)");
}

static void test_a_figure_with_idle_power_in_it_says_so(void **state)
{
    (void)state;
    struct ledger_figure f = {
        .j = 12345, .coverage = 0.5, .idle_w = NAN, .source = LEDGER_ATTRIBUTED, .meter = meter_find("rapl")
    };
    AUTO_BUF struct buf b = BUF_INIT;
    energy_figure_put(&b, &f);
    assert_string_equal(buf_text(&b), "12.3 kJ attributed (rapl), idle power included, 50 % covered");
    f.idle_w = 0;
    buf_clear(&b);
    energy_figure_put(&b, &f);
    assert_string_equal(buf_text(&b), "12.3 kJ attributed (rapl), 50 % covered");
    buf_clear(&b);
    energy_figure_put(&b, &energy_figure_absent);
    assert_string_equal(buf_text(&b), "absent");
}

static void test_figures_with_idle_power_and_without_are_not_alike(void **state)
{
    (void)state;
    struct ledger_figure without = { .j = 1, .idle_w = 10, .source = LEDGER_ATTRIBUTED, .meter = meter_find("rapl") };
    struct ledger_figure other = without, with = without;
    other.idle_w = 20;
    with.idle_w = NAN;
    assert_true(energy_figure_alike(&without, &other) && energy_figure_alike(&with, &with));
    assert_false(energy_figure_alike(&without, &with) || energy_figure_alike(&with, &without));
}

static void test_only_figures_of_one_meter_are_alike(void **state)
{
    (void)state;
    struct ledger_figure rapl = { .j = 1, .source = LEDGER_ATTRIBUTED, .meter = meter_find("rapl") };
    struct ledger_figure pcm = rapl, estimate = rapl, none = energy_figure_absent;
    pcm.meter = meter_find("pcm");
    estimate.meter = meter_find("estimate");
    estimate.source = LEDGER_ESTIMATED;
    assert_true(energy_figure_alike(&rapl, &rapl));
    assert_false(energy_figure_alike(&rapl, &pcm) || energy_figure_alike(&rapl, &estimate) ||
                 energy_figure_alike(&none, &none));
}

/* --- what was saved --- */

/* Two epochs under two cores (40 J each, as above), then two under one, of 20 J each; first epochs are compared with first ones. */
static const char tuner_log[] = "H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4\n"
                                "s 1 0 1 0 \"k\" \"k\" 1 2 0 1 2\n"
                                "i 1 6 1 4 1000 3000\n"
                                "i 1 10 2 4 1000 3000\n"
                                "a 1 10 0 0\n"
                                "i 1 14 3 4 1000 3000\n"
                                "i 1 18 4 4 1000 3000\n"
                                "d 1\n";

static void fill_tuned(struct fix *f)
{
    add_study(f, IDLE_10);
    int64_t trial = add_trial(f, 1);
    add_attempt(f, trial, 0, 18);
    for (int i = 1; i <= 4; i++)
        add_epoch(f, trial, 1, i, 2 + 4 * i, 4);
    add_seconds(f, trial, 0, 10);
    for (int s = 11; s <= 18; s++) {
        add_reading(f, 0, "rapl", "ok", s, 20);
        add_reading(f, 0, "cpu", "ok", s, 2);
        add_sample(f, trial, 0, s, 1);
    }
    assert_ok(f, store_tuner_log_add(f->s, f->study.id, tuner_log, &f->e));
}

static void test_what_a_setting_saved_is_by_joules_per_record(void **state)
{
    struct fix *f = *state;
    fill_tuned(f);
    struct energy_load l;
    struct energy_saved got;
    load(f, &l);
    assert_ok(f, energy_saved(&got, f->s, f->study.id, &l, l.meters[0], NULL, &f->e));
    expect("saved", got.j, 40); /* of the second epoch, twice, instead of two of 20 J */
    expect("records", got.records, 2000);
    expect("used", got.used_j, 40);
    assert_int_equal(got.source, LEDGER_ATTRIBUTED);
    struct energy_setting other;
    assert_ok(f, energy_setting_parse(&other, "cores=2,memory=4", &f->e));
    assert_ok(f, energy_saved(&got, f->s, f->study.id, &l, l.meters[0], &other, &f->e));
    expect("saved", got.j, 40);
    assert_ok(f, energy_setting_parse(&other, "cores=7", &f->e));
    assert_ok(f, energy_saved(&got, f->s, f->study.id, &l, l.meters[0], &other, &f->e));
    expect("saved against what was never trained", got.j, NAN);
    assert_ok(f, energy_saved(&got, f->s, f->study.id, &l, NULL, NULL, &f->e));
    expect("saved, by no meter", got.j, NAN);
    energy_load_done(&l);
}

static void test_a_setting_that_is_none_is_refused(void **state)
{
    struct fix *f = *state;
    static const char *const wrong[] = { "", "4", "cores=", "cores=x", "cores=-1", "cores=4x", "memory=8", "disk=3" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct energy_setting got = { 1, 2 };
        if (energy_setting_parse(&got, wrong[i], &f->e) != -EINVAL || got.cores != 1)
            fail_msg("'%s' was taken", wrong[i]);
    }
}

/* --- memory --- */

static int scenario(struct fix *f)
{
    struct energy_load l;
    struct ledger_figure t;
    struct energy_saved saved;
    int rc = energy_load(&l, f->s, &f->study, &f->e);
    if (rc == 0)
        rc = energy_figure_study(&l, NULL, &t);
    if (rc == 0)
        rc = energy_saved(&saved, f->s, f->study.id, &l, l.meters[0], NULL, &f->e);
    energy_load_done(&l);
    if (rc == 0 && (fabs(t.j - 140) > 1e-9 || fabs(saved.j - 40) > 1e-9))
        fail_msg("got %g J, %g saved", t.j, saved.j);
    return rc;
}

static void test_memory_that_runs_out_is_told_and_leaves_no_wrong_figure(void **state)
{
    struct fix *f = *state;
    bool hit = true;
    unsigned nth = 1;
    fill_tuned(f);
    for (; hit; nth++) {
        assert_true(nth < 500);
        fault_arm(FAULT_ALLOC, nth);
        int rc = scenario(f);
        hit = fault_disarm();
        if (rc != 0 && rc != -ENOMEM)
            fail_msg("allocation %u: got %d: %s", nth, rc, f->e.text);
    }
    assert_true(nth > 10); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_a_trial_gets_its_share_above_the_idle_power),
        T(test_attempts_are_added_and_what_lies_between_is_not_the_trials),
        T(test_an_attempt_that_nothing_was_read_of_lowers_the_coverage_alone),
        T(test_an_attempt_that_runs_on_is_told_up_to_the_last_reading),
        T(test_trials_that_run_at_once_share_by_their_cpu_time),
        T(test_meters_come_in_the_configs_order_and_others_after),
        T(test_a_trial_is_told_by_the_first_meter_that_knows_it),
        T(test_without_readings_there_are_no_meters),
        T(test_readings_without_a_value_measure_nothing),
        T(test_readings_in_vain_are_of_a_meter_and_tell_no_joules),
        T(test_a_config_that_cannot_be_read_costs_names_and_baselines_alone),
        cmocka_unit_test(test_joules_are_told_in_a_unit_that_fits),
        cmocka_unit_test(test_a_thin_figure_is_marked),
        cmocka_unit_test(test_a_figure_with_idle_power_in_it_says_so),
        cmocka_unit_test(test_figures_with_idle_power_and_without_are_not_alike),
        cmocka_unit_test(test_only_figures_of_one_meter_are_alike),
        T(test_what_a_setting_saved_is_by_joules_per_record),
        T(test_a_setting_that_is_none_is_refused),
        T(test_memory_that_runs_out_is_told_and_leaves_no_wrong_figure),
    };
    return cmocka_run_group_tests_name("energy_load", tests, NULL, NULL);
}
