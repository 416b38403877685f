/* What meters read in a study: stored, counted, and made into what a training step costs by the study's objective. */
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

#include "base/io.h"
#include "base/own.h"
#include "live/costing.h"
#include "live/energy.h"
#include "store/energy.h"
#include "store/samples.h"

static double t0; /* a moment, ms since 1970, when every meter has had its time to read */
#define T0 t0

struct bench {
    char *dir;
    struct plan plan;
    struct study study;
    struct study_trial *trial;
    uv_loop_t loop;
    char note[512];
};

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = io_join(dir, name);
    assert_int_equal(io_write_atomic(path, text, strlen(text), 0666, NULL), 0);
}

static const char bigdl[] = "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
                            "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"epochs\": [\"-e\", \"{}\"] } }\n";

static const char config[] =
    "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\", \"epochs\": 3 }, \"objective\": \"energy\",\n"
    "  \"monitoring\": { \"meters\": [\"estimate\"] }, \"nodes\": [\"w1\"],\n"
    "  \"systemParameters\": { \"cores\": [4, 2, 1] }, \"hyperParameters\": { \"batch_size\": [64] } }\n";

static int no_options(void *ctx, struct config *cfg, struct err *e)
{
    const struct bench *b = ctx;
    (void)e;
    cfg->store = io_join(b->dir, "pipetune.db");
    return cfg->store ? 0 : -ENOMEM;
}

static void keep_note(void *ctx, const char *text)
{
    struct bench *b = ctx;
    (void)snprintf(b->note, sizeof b->note, "%s", text);
}

static int set_up(void **state)
{
    struct err e = { 0 };
    struct bench *b = calloc(1, sizeof *b);
    char dir[] = "/tmp/pipetune-energy-XXXXXX";
    int copy;
    struct study_asked asked;
    t0 = (double)(study_now_ms() / 1000 * 1000 + 10000);
    assert_non_null(mkdtemp(dir));
    b->dir = strdup(dir);
    write_file(b->dir, "bigdl.json", bigdl);
    write_file(b->dir, "c.conf", config);
    write_file(b->dir, "app.py", "");
    AUTO_FREE char *path = io_join(b->dir, "c.conf");
    check(plan_load(&b->plan, path, NULL, no_options, b, &e), &e);
    check(study_open(&b->study, &b->plan, false, &e), &e);
    check(store_begin(b->study.store, &e), &e);
    check(study_ask(&b->study, &asked, &e), &e);
    check(store_commit(b->study.store, &e), &e);
    check(study_take(&b->study, &asked, &b->trial, &copy, &e), &e);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    check(energy_open(&b->study.energy, &b->study, &b->loop, keep_note, b, &e), &e);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = { "bigdl.json",
                                         "c.conf",
                                         "app.py",
                                         "pipetune.db",
                                         "pipetune.db-wal",
                                         "pipetune.db-shm",
                                         "pipetune.d/s/driver.lock",
                                         "pipetune.d/s",
                                         "pipetune.d" };
    struct bench *b = *state;
    energy_close(b->study.energy);
    while (uv_run(&b->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&b->loop), 0);
    study_close(&b->study);
    plan_done(&b->plan);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = io_join(b->dir, names[i]);
        (void)remove(path);
    }
    assert_int_equal(rmdir(b->dir), 0);
    free(b->dir);
    free(b);
    return 0;
}

/* --- what comes ---------------------------------------------------------------------------------------------------------- */

/* A second that ends `to_s` after T0. */
static void second(struct bench *b, size_t node, double to_s, enum meter_state state, double j)
{
    struct err e = { 0 };
    struct nodes_reading r = {
        .node = node,
        .meter = "estimate",
        .r = { .state = state, .from_ms = T0 + 1000 * to_s - 1000, .to_ms = T0 + 1000 * to_s, .value = j, .error = 0 }
    };
    check(energy_metered(b->study.energy, &r, &e), &e);
}

static struct tuner_event a_step(const struct bench *b, double seconds, double records)
{
    return (struct tuner_event){
        .kind = EV_ITERATION, .trial = b->trial->row.number, .seconds = seconds, .records = records
    };
}

static void add_step(struct bench *b, struct costing_steps *of, double from_s, double to_s)
{
    struct tuner_event ev = a_step(b, to_s - from_s, 100);
    assert_int_equal(costing_add(of, &ev, T0 + 1000 * from_s, T0 + 1000 * to_s), 0);
}

static int take(struct costing *c, struct costing_steps *of, bool all, double now_s, double *out_s)
{
    struct tuner_event ev = { .seconds = NAN };
    struct err e = { 0 };
    int rc = costing_take(c, of, all, T0 + 1000 * now_s, &ev, &e);
    check(rc, &e);
    *out_s = ev.seconds;
    return rc;
}

struct stored {
    int n, ok;
    double j;
};

static int count(void *ctx, const struct store_reading *r)
{
    struct stored *s = ctx;
    s->n++;
    s->ok += strcmp(r->state, "ok") == 0;
    s->j += isnan(r->value) ? 0 : r->value;
    return 0;
}

static int count_objective(void *ctx, const struct store_decision *d)
{
    int *n = ctx;
    *n += strcmp(d->kind, "objective") == 0;
    return 0;
}

/* --- cases --------------------------------------------------------------------------------------------------------------- */

static void every_reading_is_stored_with_its_state(void **state)
{
    struct bench *b = *state;
    struct stored s = { 0 };
    struct err e = { 0 };
    second(b, 0, 1, METER_FIRST, NAN);
    second(b, 0, 2, METER_OK, 30);
    second(b, 0, 3, METER_DISCARDED, NAN);
    second(b, 1, 3, METER_OK, 12);
    check(energy_tick(b->study.energy, (int64_t)T0 + 60000, &e), &e);
    check(store_readings(b->study.store, b->study.id, count, &s, &e), &e);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.ok, 2);
    assert_true(s.j == 42);
}

static void power_is_that_of_all_nodes(void **state)
{
    struct bench *b = *state;
    for (int i = 1; i <= 4; i++) {
        second(b, 0, i, METER_OK, i <= 2 ? 50 : 100);
        second(b, 1, i, METER_OK, 10);
    }
    const struct meter_ops *m = meter_find("estimate");
    assert_true(fabs(energy_power_w(b->study.energy, m, T0, T0 + 2000) - 60) < 1e-9);
    assert_true(fabs(energy_power_w(b->study.energy, m, T0 + 1000, T0 + 3000) - 85) < 1e-9);
    assert_true(energy_until_ms(b->study.energy) == T0 + 4000);
    assert_true(isnan(energy_power_w(b->study.energy, m, T0 + 3000, T0 + 5000)));
    for (int i = 5; i <= 16; i++)
        second(b, 0, i, METER_OK, 100); /* the other node tells nothing any more */
    assert_true(fabs(energy_power_w(b->study.energy, m, T0 + 14000, T0 + 16000) - 100) < 1e-9);
    assert_true(energy_until_ms(b->study.energy) == T0 + 16000);
}

/* So many CPU seconds of a trial in the second that ends then, of all that a node's CPUs were busy. */
static void worked(struct bench *b, int trial, double to_s, double cpu_s, double busy_s)
{
    struct err e = { 0 };
    struct nodes_sample s = { .t_ms = T0 + 1000 * to_s, .dt_ms = 1000 };
    struct nodes_reading busy = {
        .meter = "cpu",
        .r = { .state = METER_OK, .from_ms = T0 + 1000 * to_s - 1000, .to_ms = T0 + 1000 * to_s, .value = busy_s }
    };
    s.v[FEATURE_PROC_CPU_TIME] = (struct reading){ .value = cpu_s, .state = READING_OK };
    check(energy_metered(b->study.energy, &busy, &e), &e);
    check(energy_sampled(b->study.energy, trial, &s, &e), &e);
}

static void expect_spent(const char *name, struct bench *b, int trial, double want)
{
    double got = energy_trial_j(b->study.energy, trial);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) < 1e-6))
        fail_msg("%s: got %g J, want %g J", name, got, want);
}

/* Of 10 W idle, as an estimate has them, and the rest by CPU time. */
static void a_trial_has_spent_its_share(void **state)
{
    struct bench *b = *state;
    expect_spent("nothing was read", b, 1, NAN);
    for (int i = 1; i <= 10; i++) {
        second(b, 0, i, METER_OK, 30);
        worked(b, 1, i, 1, 2);
    }
    expect_spent("half of what is above idle", b, 1, 100);
    expect_spent("one that did nothing", b, 2, NAN);
    for (int i = 11; i <= 400; i++) {
        second(b, 0, i, METER_OK, 30);
        worked(b, 1, i, 2, 2);
        if (i % 7 == 0)
            (void)energy_trial_j(b->study.energy, 1);
    }
    expect_spent("what was added up before is kept", b, 1, 100 + 390 * 20);
}

static void a_later_driver_knows_what_was_spent(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    int number = b->trial->row.number;
    for (int i = 1; i <= 10; i++) {
        struct reading v[FEATURES] = { [FEATURE_PROC_CPU_TIME] = { .value = 1, .state = READING_OK } };
        struct store_sample row = { .t_ms = T0 + 1000 * i, .dt_ms = 1000, .scope = "system", .v = v };
        second(b, 0, i, METER_OK, 30);
        worked(b, number, i, 1, 2);
        check(store_sample_add(b->study.store, b->trial->row.id, &row, &e), &e);
    }
    check(energy_tick(b->study.energy, (int64_t)T0 + 60000, &e), &e);
    energy_close(b->study.energy);
    check(energy_open(&b->study.energy, &b->study, &b->loop, keep_note, b, &e), &e);
    expect_spent("all of it", b, number, 100);
    second(b, 0, 11, METER_OK, 30);
    worked(b, number, 11, 2, 2);
    expect_spent("and more", b, number, 120);
}

static void a_step_waits_for_the_power_at_which_it_was_trained(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    add_step(b, &of, 0, 1);
    add_step(b, &of, 1, 2);
    assert_int_equal(take(&c, &of, false, 2.1, &s), 0);
    second(b, 0, 1, METER_OK, 40);
    assert_int_equal(take(&c, &of, false, 2.2, &s), 1);
    assert_true(s == 1); /* 40 W are the reference now */
    assert_int_equal(take(&c, &of, false, 2.2, &s), 0);
    second(b, 0, 2, METER_OK, 80);
    assert_int_equal(take(&c, &of, false, 2.3, &s), 1);
    assert_true(fabs(s - 2) < 1e-9);
    costing_drop(&of);
}

static void a_step_waits_no_longer_than_a_few_seconds(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    second(b, 0, 1, METER_OK, 40);
    second(b, 0, 2, METER_OK, 60);
    add_step(b, &of, 0, 1);
    add_step(b, &of, 1, 2);
    assert_int_equal(take(&c, &of, false, 2, &s), 1);
    assert_int_equal(take(&c, &of, false, 2, &s), 1);
    assert_true(fabs(s - 1.5) < 1e-9);
    add_step(b, &of, 2, 3); /* of which no meter tells any more: as the one before */
    assert_int_equal(take(&c, &of, false, 4, &s), 0);
    assert_int_equal(take(&c, &of, false, 8.1, &s), 1);
    assert_true(fabs(s - 1.5) < 1e-9);
    add_step(b, &of, 3, 4);
    assert_int_equal(take(&c, &of, true, 4, &s), 1);
    assert_true(fabs(s - 1.5) < 1e-9);
    costing_drop(&of);
}

static void the_reference_is_the_studys_own_for_good(void **state)
{
    struct bench *b = *state;
    struct costing c, later;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    second(b, 0, 1, METER_OK, 40);
    add_step(b, &of, 0, 1);
    assert_int_equal(take(&c, &of, false, 1, &s), 1);
    check(costing_open(&later, &b->study, &e), &e);
    assert_true(later.ref.power_w == 40 && later.ref.record_s == 0.01);
    second(b, 0, 2, METER_OK, 20);
    add_step(b, &of, 1, 2);
    assert_int_equal(take(&later, &of, false, 2, &s), 1);
    assert_true(fabs(s - 0.5) < 1e-9);
    costing_drop(&of);
}

static void an_epoch_costs_what_is_known_of_its_time(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    for (int i = 1; i <= 3; i++)
        second(b, 0, i, METER_OK, i == 1 ? 40 : 80);
    add_step(b, &of, 0, 1);
    assert_int_equal(take(&c, &of, false, 1, &s), 1);
    assert_true(fabs(costing_epoch(&c, &of, 2.5, 1000, T0 + 3500) - 5) < 1e-9);
    costing_drop(&of);
}

static void time_waits_for_nothing(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    c.objective = OBJECTIVE_TIME;
    add_step(b, &of, 0, 1);
    assert_int_equal(take(&c, &of, false, 1, &s), 1);
    assert_true(s == 1);
    costing_drop(&of);
}

static void a_study_counts_by_one_meter(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    struct nodes_reading rapl = {
        .meter = "rapl", .r = { .state = METER_OK, .from_ms = T0, .to_ms = T0 + 1000, .value = 400, .error = 0 }
    };
    check(costing_open(&c, &b->study, &e), &e);
    check(energy_metered(b->study.energy, &rapl, &e), &e); /* not in the config, so it is none of this study's */
    add_step(b, &of, 0, 1);
    assert_int_equal(take(&c, &of, false, 1, &s), 0);
    second(b, 0, 1, METER_OK, 40);
    assert_int_equal(take(&c, &of, false, 1, &s), 1);
    assert_string_equal(c.meter->name, "estimate");
    assert_true(c.ref.power_w == 40);
    costing_drop(&of);
}

static void without_power_it_is_told_once_and_nothing_is_learnt(void **state)
{
    struct bench *b = *state;
    struct costing c;
    struct costing_steps of = { 0 };
    struct err e = { 0 };
    double s;
    check(costing_open(&c, &b->study, &e), &e);
    for (int i = 0; i < 3; i++) {
        add_step(b, &of, i, i + 1);
        assert_int_equal(take(&c, &of, false, i + 20, &s), 1);
        assert_true(s == 1);
    }
    int told = 0;
    check(store_decisions(b->study.store, b->study.id, 0, count_objective, &told, &e), &e);
    assert_int_equal(told, 1);
    assert_false(costing_counts(&c));
    costing_drop(&of);
}

static void helpers_are_asked_for_what_the_config_names(void **state)
{
    struct bench *b = *state;
    const struct nodes_metering *w = energy_wanted(b->study.energy);
    assert_string_equal(w->meters, "cpu,estimate");
    assert_int_equal(w->interval_ms, 1000);
    assert_true(w->idle_w == METERS_IDLE_W && w->cpu_w == METERS_CPU_W);
    assert_null(energy_wanted(NULL));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_reading_is_stored_with_its_state),
        CASE(power_is_that_of_all_nodes),
        CASE(a_trial_has_spent_its_share),
        CASE(a_later_driver_knows_what_was_spent),
        CASE(a_step_waits_for_the_power_at_which_it_was_trained),
        CASE(a_step_waits_no_longer_than_a_few_seconds),
        CASE(the_reference_is_the_studys_own_for_good),
        CASE(an_epoch_costs_what_is_known_of_its_time),
        CASE(time_waits_for_nothing),
        CASE(helpers_are_asked_for_what_the_config_names),
        CASE(a_study_counts_by_one_meter),
        CASE(without_power_it_is_told_once_and_nothing_is_learnt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
