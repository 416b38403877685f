/* The policy at work over a real store and a real machine: training steps in, decisions out, stored with all that led to them. */
#include <errno.h>
#include <inttypes.h>
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
#include "base/json.h"
#include "base/own.h"
#include "core/tuner_log.h"
#include "live/tuning.h"
#include "tests/fault.h"

enum { STEPS = 400, EPOCHS = 3, FILE_MAX = 1 << 20, DECISIONS_MAX = 512 };

static const double RECORDS = 64;

/* One study of one machine with 4 CPUs, and how long a step takes there. */
struct bench {
    char *dir;
    struct plan plan;
    struct study study;
    struct tuning *t; /* the study's */
    struct study_trial *trial;
    struct tuner_setting now; /* in force */
    bool asked;               /* for another one, which is in force from the next step on */
    int applies, relaunches, settles;
    double log_ms;     /* the log's clock: of the newest step's stamp */
    double behind_ms;  /* what our clock is ahead of it */
    double wall_s;     /* BigDL's own */
    double core_share; /* of a step's time that falls with the cores */
    bool no_stamps, coarse_stamps;
    bool unsized; /* a step does not tell how large its epoch is */
};

/* --- files ---------------------------------------------------------------------------------------------------------------- */

static void write_file(const char *dir, const char *name, const char *text)
{
    AUTO_FREE char *path = io_join(dir, name);
    assert_int_equal(io_write_atomic(path, text, strlen(text), 0666, NULL), 0);
}

static const char bigdl[] =
    "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\",\n"
    "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"],\n"
    "    \"epochs\": [\"-e\", \"{}\"] } }\n";

static const char config[] =
    "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\", \"epochs\": 3 },\n"
    "  \"tuning\": { \"window_seconds\": 0.5 },\n"
    "  \"systemParameters\": { \"cores\": [4, 2, 1], \"memory\": [0.125, 0.25] },\n"
    "  \"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [0.1, 0.05, 0.02, 0.01] } }\n";

static int no_options(void *ctx, struct config *cfg, struct err *e)
{
    const struct bench *b = ctx;
    (void)e;
    cfg->store = io_join(b->dir, "pipetune.db");
    return cfg->store ? 0 : -ENOMEM;
}

static void check(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->text);
}

/* --- the study ------------------------------------------------------------------------------------------------------------- */

static void on_apply(void *ctx, int trial, struct tuner_setting to)
{
    struct bench *b = ctx;
    (void)trial;
    b->now = to;
    b->asked = true;
    b->applies++;
}

static void on_relaunch(void *ctx, int trial)
{
    struct bench *b = ctx;
    (void)trial;
    b->relaunches++;
}

static void on_settled(void *ctx, int trial, struct tuner_setting at, const char *why)
{
    struct bench *b = ctx;
    (void)trial, (void)at;
    assert_true(*why);
    b->settles++;
}

static const struct tuning_ops ops = { on_apply, on_relaunch, on_settled };

static void open_study(struct bench *b, const char *policy)
{
    struct err e = { 0 };
    AUTO_FREE char *path = io_join(b->dir, "c.conf");
    check(plan_load(&b->plan, path, NULL, no_options, b, &e), &e);
    b->plan.policy = policy_find(policy);
    b->plan.offer = (struct offer){ .cores = 4, .memory_gb = 1 };
    check(choices_make(&b->plan.choices, &b->plan.space, &b->plan.offer, &b->plan.requested, &e), &e);
    check(study_open(&b->study, &b->plan, false, &e), &e);
}

static void open_tuning(struct bench *b)
{
    struct err e = { 0 };
    check(tuning_open(&b->t, &b->study, &ops, b, &e), &e);
    b->study.tuning = b->t;
}

static void close_study(struct bench *b)
{
    tuning_close(b->t);
    study_close(&b->study);
    plan_done(&b->plan);
    b->t = NULL;
}

static void begin(struct bench *b, const char *policy)
{
    *b = (struct bench){ .core_share = 0.5, .log_ms = (double)study_now_ms(), .behind_ms = 20 };
    char dir[] = "/tmp/pipetune-tuning-XXXXXX";
    assert_non_null(mkdtemp(dir));
    b->dir = strdup(dir);
    write_file(b->dir, "bigdl.json", bigdl);
    write_file(b->dir, "c.conf", config);
    write_file(b->dir, "app.py", "");
    open_study(b, policy);
    open_tuning(b);
}

static void remove_file(const char *dir, const char *name)
{
    AUTO_FREE char *path = io_join(dir, name);
    (void)remove(path);
}

static void end(struct bench *b)
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
    close_study(b);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        remove_file(b->dir, names[i]);
    assert_int_equal(rmdir(b->dir), 0);
    free(b->dir);
}

static void next_trial(struct bench *b)
{
    struct err e = { 0 };
    int copy;
    struct study_asked asked;
    check(store_begin(b->study.store, &e), &e);
    check(study_ask(&b->study, &asked, &e), &e);
    check(store_commit(b->study.store, &e), &e);
    check(study_take(&b->study, &asked, &b->trial, &copy, &e), &e);
    assert_string_equal(b->trial->row.state, "waiting");
    assert_int_equal(b->trial->row.slots, 4);
}

static int launch(struct bench *b, struct err *e)
{
    int rc = tuning_ask(b->t, b->trial, 4, true, e);
    b->now = b->trial->setting;
    b->wall_s = 0;
    return rc;
}

/* --- training -------------------------------------------------------------------------------------------------------------- */

static int64_t our_ms(const struct bench *b)
{
    return (int64_t)(b->log_ms + b->behind_ms);
}

static double step_s(const struct bench *b)
{
    double cores = tuning_cores(b->t, b->now);
    return 0.02 * (1 - b->core_share + b->core_share * 4 / cores);
}

static struct app_report line(const struct bench *b, int epoch, double seconds)
{
    int64_t stamp = (int64_t)b->log_ms;
    return (struct app_report){ .kind = REPORT_STEP,
                                .stamp_ms = b->no_stamps       ? -1
                                            : b->coarse_stamps ? stamp / 1000 * 1000
                                                               : stamp,
                                .stamp_coarse = b->coarse_stamps,
                                .epoch = epoch,
                                .records_all = b->unsized ? 0 : (int64_t)RECORDS * STEPS,
                                .wall_s = b->wall_s,
                                .records = RECORDS,
                                .seconds = seconds };
}

static int step(struct bench *b, int epoch, struct err *e)
{
    double s = step_s(b);
    b->log_ms += s * 1000;
    b->wall_s += s;
    struct app_report ev = line(b, epoch, s);
    int rc = tuning_iteration(b->t, b->trial, &ev, our_ms(b), e);
    if (rc == 0 && b->asked) {
        b->asked = false;
        rc = tuning_applied(b->t, b->trial->row.number, b->now, 0, NULL, e);
    }
    return rc;
}

static int in_transaction(struct bench *b, int epoch, double seconds, bool finished, struct err *e)
{
    const struct store_epoch row = {
        .epoch = epoch, .seconds = seconds, .records = RECORDS * STEPS, .end_ms = our_ms(b)
    };
    int rc = store_begin(b->study.store, e);
    if (rc == 0)
        rc = epoch ? tuning_epoch(b->t, b->trial, &row, e) : tuning_end(b->t, b->trial, finished, e);
    if (rc == 0)
        rc = tuning_put(b->t, e);
    if (rc == 0)
        rc = store_commit(b->study.store, e);
    if (rc < 0)
        store_rollback(b->study.store);
    else
        tuning_stored(b->t);
    return rc;
}

static int epoch(struct bench *b, int number, struct err *e)
{
    double from = b->log_ms;
    int rc = 0;
    for (int i = 0; rc == 0 && i < STEPS; i++)
        rc = step(b, number, e);
    return rc < 0 ? rc : in_transaction(b, number, (b->log_ms - from) / 1000, false, e);
}

static int train(struct bench *b, struct err *e)
{
    int rc = launch(b, e);
    for (int k = 1; rc == 0 && k <= EPOCHS; k++) {
        rc = epoch(b, k, e);
        b->log_ms += 2000; /* validation */
        b->wall_s += 2;
    }
    return rc < 0 ? rc : in_transaction(b, 0, 0, true, e);
}

/* --- what is stored -------------------------------------------------------------------------------------------------------- */

static int append(void *ctx, const char *text)
{
    buf_puts(ctx, text);
    return 0;
}

/* All that the machine was told and is stored. Free it. */
static char *log_text(const struct bench *b)
{
    struct err e = { 0 };
    struct buf all = BUF_INIT;
    check(store_tuner_log(b->study.store, b->study.id, append, &all, &e), &e);
    return buf_take(&all);
}

static bool is_tuners(const char *kind)
{
    static const char *const kinds[] = { "setting", "apply", "settle", "learn", "relaunch" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

static int stored_line(void *ctx, const struct store_decision *d)
{
    if (is_tuners(d->kind))
        buf_printf(ctx, "%d %s %s: %s\n", d->trial, d->kind, d->setting, d->reason);
    return 0;
}

static char *stored_decisions(const struct bench *b)
{
    struct err e = { 0 };
    struct buf all = BUF_INIT;
    check(store_decisions(b->study.store, b->study.id, 0, stored_line, &all, &e), &e);
    return buf_take(&all);
}

struct deriving {
    const struct bench *b;
    struct buf all;
};

static int derived_line(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting at,
                        const char *reason)
{
    struct deriving *d = ctx;
    struct setting set = choices_setting(&d->b->plan.choices, &d->b->plan.space, at);
    AUTO_JSON json_t *j = plan_effective_json(&d->b->plan, &set, 0);
    AUTO_BUF struct buf setting = BUF_INIT;
    (void)r;
    json_put(&setting, j, JSON_STYLE_COMPACT);
    buf_printf(&d->all, "%d %s %s: %s\n", trial, kind, buf_text(&setting), reason);
    return 0;
}

/* What is stored is what its log leads to, whole. */
static void expect_agreement(const struct bench *b)
{
    struct err e = { 0 };
    struct tuner_replay r = { 0 };
    struct deriving d = { .b = b };
    AUTO_FREE char *stored = stored_decisions(b);
    AUTO_FREE char *log = log_text(b);
    check(tuner_replay_feed(&r, log, strlen(log), derived_line, &d, &e), &e);
    tuner_replay_done(&r);
    AUTO_FREE char *derived = buf_take(&d.all);
    assert_string_equal(derived ? derived : "", stored ? stored : "");
}

/* Of the events with this letter: how many, and sums of their first numbers after the trial. */
struct summed {
    size_t n;
    double v[5], most[5];
};

static struct summed sum_of(const struct bench *b, const char *letter)
{
    struct summed sum = { 0 };
    AUTO_FREE char *log = log_text(b);
    char *save = NULL;
    for (char *l = log ? strtok_r(log, "\n", &save) : NULL; l; l = strtok_r(NULL, "\n", &save)) {
        double v[5] = { 0 };
        if (strncmp(l, letter, 1) != 0 || l[1] != ' ')
            continue;
        (void)sscanf(l + 1, "%*d %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4]);
        sum.n++;
        for (size_t i = 0; i < ARRAY_LEN(v); i++) {
            sum.v[i] += v[i];
            sum.most[i] = fmax(sum.most[i], v[i]);
        }
    }
    return sum;
}

enum { I_TIME, I_EPOCH, I_SECONDS, I_RECORDS }; /* numbers of an 'i' line */

static void expect_near(const char *what, double got, double want, double share)
{
    if (!(fabs(got - want) <= share * fabs(want)))
        fail_msg("%s: got %g, want %g", what, got, want);
}

/* --- the tests ------------------------------------------------------------------------------------------------------------- */

static void test_decisions_are_stored_with_what_led_to_them(void **state)
{
    static const char *const names[] = { "pipetune", "paper" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, names[i]);
        for (int k = 0; k < 2; k++) {
            next_trial(&b);
            check(train(&b, &e), &e);
        }
        expect_agreement(&b);
        AUTO_FREE char *stored = stored_decisions(&b);
        assert_non_null(strstr(stored, "1 setting "));
        assert_non_null(strstr(stored, "1 apply "));
        assert_non_null(strstr(stored, "2 setting "));
        assert_true(b.applies >= 2);
        end(&b);
    }
}

static void test_the_best_setting_is_found_and_told(void **state)
{
    static const struct {
        double core_share;
        const char *cores;
    } cases[] = { { 0.9, "\"cores\":4" }, { 0, "\"cores\":1" } };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, "pipetune");
        b.core_share = cases[i].core_share;
        next_trial(&b);
        assert_false(tuning_knows(b.t, b.trial));
        check(launch(&b, &e), &e);
        for (int k = 1; k <= EPOCHS; k++)
            check(epoch(&b, k, &e), &e);
        assert_true(tuning_settled(b.t, 1));
        assert_true(b.settles >= 1);
        assert_true(tuning_knows(b.t, b.trial));
        AUTO_BUF struct buf effective = BUF_INIT;
        for (const char *c = b.trial->row.effective; *c; c++)
            if (*c != ' ')
                buf_putc(&effective, *c);
        if (!strstr(buf_text(&effective), cases[i].cores))
            fail_msg("effective is %s, want %s", b.trial->row.effective, cases[i].cores);
        check(in_transaction(&b, 0, 0, true, &e), &e);
        struct tuner_setting now;
        assert_false(tuning_current(b.t, 1, &now));
        end(&b);
    }
}

static void test_steps_are_handed_on_several_at_a_time(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    check(train(&b, &e), &e);
    struct summed i = sum_of(&b, "i");
    if (i.n > (size_t)STEPS * EPOCHS / 4)
        fail_msg("%zu events of %d steps", i.n, STEPS * EPOCHS);
    expect_near("records", i.v[I_RECORDS], RECORDS * STEPS * EPOCHS, 1e-9);
    assert_true(i.most[I_SECONDS] < 0.4); /* no more than half a window, and a step */
    end(&b);
}

/* Epochs that are over before a window is, or long ones that are told of as a whole: an epoch counts as a step. */
static void test_epochs_are_steps_where_steps_tell_too_little(void **state)
{
    static const struct {
        int steps, epochs;
        double step_s; /* more than that of the bench */
    } cases[] = { { 10, 200, 0 }, { 1, 60, 2 }, { 1, 400, 0 } };
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, "pipetune");
        b.unsized = true;
        b.core_share = 0.9;
        next_trial(&b);
        b.trial->row.epochs = cases[c].epochs;
        check(launch(&b, &e), &e);
        for (int k = 1; k <= cases[c].epochs; k++) {
            double cores = tuning_cores(b.t, b.now);
            for (int i = 0; i < cases[c].steps; i++) {
                b.log_ms += cases[c].step_s * 1000 * (0.1 + 0.9 * 4 / cores);
                check(step(&b, k, &e), &e);
            }
            check(in_transaction(&b, k, 1, false, &e), &e);
        }
        assert_true(tuning_settled(b.t, 1));
        assert_true(b.settles >= 1 && b.applies >= 2);
        assert_int_equal((int)tuning_cores(b.t, b.now), 4);
        struct summed i = sum_of(&b, "i");
        expect_near("records", i.v[I_RECORDS], RECORDS * cases[c].steps * (cases[c].epochs - 1), 0.02);
        assert_true(i.most[I_EPOCH] == 1);
        check(in_transaction(&b, 0, 0, true, &e), &e);
        expect_agreement(&b);
        end(&b);
    }
}

/* Steps whose epoch is of unknown size count as such from the time on that it has lasted for two windows. */
static void test_long_epochs_of_unknown_size_are_measured_by_steps(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    b.unsized = true;
    next_trial(&b);
    check(train(&b, &e), &e);
    assert_true(b.settles >= 1);
    struct summed i = sum_of(&b, "i");
    assert_true(i.most[I_EPOCH] == EPOCHS);
    assert_true(i.v[I_RECORDS] > RECORDS * STEPS * EPOCHS * 0.9);
    end(&b);
}

/* How long steps take is told by the best clock there is; what lies between two epochs belongs to no step. */
static void test_every_clock_tells_the_same_seconds(void **state)
{
    static const struct {
        const char *name;
        bool none, coarse;
    } cases[] = { { "stamps with milliseconds", false, false },
                  { "whole seconds", false, true },
                  { "no stamps", true, false } };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, "pipetune");
        b.no_stamps = cases[i].none;
        b.coarse_stamps = cases[i].coarse;
        next_trial(&b);
        check(launch(&b, &e), &e);
        double trained = 0;
        for (int k = 1; k <= 2; k++) {
            double from = b.log_ms;
            check(epoch(&b, k, &e), &e);
            trained += (b.log_ms - from) / 1000;
            b.log_ms += 60000; /* a long validation */
            b.wall_s += 60;
        }
        check(in_transaction(&b, 0, 0, true, &e), &e);
        expect_near(cases[i].name, sum_of(&b, "i").v[I_SECONDS], trained, 0.05);
        expect_agreement(&b);
        end(&b);
    }
}

static void test_a_break_costs_no_seconds(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    check(launch(&b, &e), &e);
    for (int i = 0; i < STEPS / 2; i++)
        check(step(&b, 1, &e), &e);
    check(tuning_break(b.t, 1, &e), &e);
    check(tuning_applied(b.t, 1, b.now, 0, NULL, &e), &e);
    b.asked = false;
    for (int i = STEPS / 2; i < STEPS; i++)
        check(step(&b, 1, &e), &e);
    check(in_transaction(&b, 1, 10, false, &e), &e);
    struct summed i = sum_of(&b, "i");
    if (!(i.most[I_SECONDS] < 0.4))
        fail_msg("steps of %g s", i.most[I_SECONDS]);
    expect_agreement(&b);
    end(&b);
}

static bool is_probing(const struct bench *b)
{
    return b->now.hot != b->plan.choices.start.hot;
}

/* A candidate under which nothing comes is cut, whatever the log's clock and zone are. */
static void test_a_deadline_comes_in_time(void **state)
{
    static const double offsets_ms[] = { 20, 0, 7200000, -7200000, 19800000 };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(offsets_ms); i++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, "pipetune");
        b.behind_ms = offsets_ms[i];
        b.log_ms -= offsets_ms[i];
        next_trial(&b);
        check(launch(&b, &e), &e);
        for (int n = 0; n < STEPS && !is_probing(&b); n++)
            check(step(&b, 1, &e), &e);
        assert_true(is_probing(&b));
        int applies = b.applies;
        check(tuning_tick(b.t, our_ms(&b) + 100, &e), &e);
        assert_int_equal(b.applies, applies); /* not yet */
        check(tuning_tick(b.t, our_ms(&b) + 10000, &e), &e);
        if (b.applies == applies)
            fail_msg("nothing was cut with a log %g ms behind", offsets_ms[i]);
        assert_false(is_probing(&b));
        expect_agreement(&b);
        end(&b);
    }
}

static void test_a_setting_that_cannot_be_had_is_not_tried_again(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    check(launch(&b, &e), &e);
    for (int n = 0; n < STEPS && !is_probing(&b); n++)
        check(step(&b, 1, &e), &e);
    struct tuner_setting refused = b.now;
    b.now = b.plan.choices.start; /* what was in force still is */
    check(tuning_applied(b.t, 1, refused, 0, "no such CPUs", &e), &e);
    for (int n = 0; n < STEPS; n++) {
        check(step(&b, 1, &e), &e);
        assert_int_not_equal(b.now.hot, refused.hot);
    }
    expect_agreement(&b);
    end(&b);
}

static void expect_in_force(const struct bench *b, double cores)
{
    struct tuner_setting now = { -1, -1 };
    assert_true(tuning_current(b->t, b->trial->row.number, &now));
    assert_true(tuning_cores(b->t, now) == cores);
}

/* Fewer CPUs came back than were asked for, or others. */
static void test_what_is_in_force_is_what_was_measured(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    check(launch(&b, &e), &e);
    for (int n = 0; n < STEPS && !is_probing(&b); n++)
        check(step(&b, 1, &e), &e);
    struct tuner_setting asked = b.now;
    b.asked = false;
    assert_true(tuning_cores(b.t, asked) < 4);
    check(tuning_applied(b.t, 1, asked, 4, NULL, &e), &e); /* nobody was narrowed */
    if (!b.asked)                                          /* nothing else is tried */
        expect_in_force(&b, 4);
    assert_int_not_equal(b.now.hot, b.asked ? asked.hot : -1);
    for (int n = 0; n < STEPS; n++) {
        check(step(&b, 1, &e), &e);
        assert_int_not_equal(b.now.hot, asked.hot);
    }
    check(in_transaction(&b, 1, 8, false, &e), &e);
    AUTO_JSON json_t *shown = json_loads(b.trial->row.effective, 0, NULL);
    struct tuner_setting now;
    assert_true(tuning_current(b.t, 1, &now));
    assert_true(json_number_value(json_object_get(shown, "cores")) == tuning_cores(b.t, now));
    expect_agreement(&b);
    end(&b);
}

static void test_a_launch_on_fewer_cpus_is_told_as_such(void **state)
{
    static const struct {
        int cores;
        double setting;
    } cases[] = { { 4, 4 }, { 3, 2 }, { 2, 2 }, { 1, 1 } };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        struct err e = { 0 };
        begin(&b, "pipetune");
        next_trial(&b);
        check(launch(&b, &e), &e);
        b.trial->cores = cases[i].cores; /* read back before the first step */
        check(step(&b, 1, &e), &e);
        expect_in_force(&b, cases[i].setting);
        check(in_transaction(&b, 1, 8, false, &e), &e);
        AUTO_JSON json_t *shown = json_loads(b.trial->row.effective, 0, NULL);
        assert_int_equal(json_integer_value(json_object_get(shown, "cores")), cases[i].cores);
        expect_agreement(&b);
        end(&b);
    }
}

static void test_memory_that_was_run_out_of_is_not_asked_for_again(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    check(tuning_load(b.t, 1, &e), &e); /* memory has a price: it begins with the default, which is the smaller one */
    check(launch(&b, &e), &e);
    assert_int_equal(b.now.cold, 0);
    b.trial->refused_cold |= 1;
    check(store_begin(b.study.store, &e), &e);
    check(tuning_end(b.t, b.trial, false, &e), &e); /* it never began */
    check(tuning_bound(b.t, b.trial, true, &e), &e);
    check(store_commit(b.study.store, &e), &e);
    check(launch(&b, &e), &e);
    assert_int_equal(b.now.cold, 1);
    expect_agreement(&b);
    end(&b);
}

/* The driver dies in the middle of a trial: the next one knows what was stored, and nothing that was not. */
static void test_the_machine_is_rebuilt_from_its_log(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "pipetune");
    b.core_share = 0;
    next_trial(&b);
    check(train(&b, &e), &e);
    next_trial(&b);
    int second = b.trial->row.number;
    check(launch(&b, &e), &e);
    for (int n = 0; n < 20; n++)
        check(step(&b, 1, &e), &e);
    close_study(&b);
    open_study(&b, "pipetune");
    open_tuning(&b);
    b.trial = study_trial(&b.study, second);
    assert_non_null(b.trial);
    struct tuner_setting now;
    assert_false(tuning_current(b.t, second, &now)); /* it begins anew */
    check(train(&b, &e), &e);
    AUTO_FREE char *stored = stored_decisions(&b);
    assert_non_null(strstr(stored, "2 setting {\"cores\": 1"));
    expect_agreement(&b);
    end(&b);
}

static void test_a_setting_is_recalled_from_its_text(void **state)
{
    struct bench b;
    struct err e = { 0 };
    static const struct {
        const char *text;
        int hot, cold;
    } cases[] = { { "{\"cores\": 2, \"memory\": 0.25}", 1, 1 },
                  { "{\"cores\": 1, \"memory\": 0.125}", 0, 0 },
                  { "{\"cores\": 3, \"memory\": 1}", 2, 0 }, /* none of the choices: the start */
                  { NULL, 2, 0 } };
    (void)state;
    begin(&b, "pipetune");
    next_trial(&b);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(tuning_recall(b.t, b.trial, cases[i].text, &e), &e);
        if (b.trial->setting.hot != cases[i].hot || b.trial->setting.cold != cases[i].cold)
            fail_msg("%s: got %d %d", cases[i].text ? cases[i].text : "NULL", b.trial->setting.hot,
                     b.trial->setting.cold);
    }
    end(&b);
}

static void test_a_policy_that_chooses_nothing_needs_none(void **state)
{
    struct bench b;
    struct err e = { 0 };
    (void)state;
    begin(&b, "v1");
    assert_null(b.t);
    next_trial(&b);
    struct app_report ev = line(&b, 1, 0.1);
    check(tuning_iteration(b.t, b.trial, &ev, our_ms(&b), &e), &e);
    check(tuning_epoch(b.t, b.trial, &(struct store_epoch){ .epoch = 1, .seconds = 1, .records = 64 }, &e), &e);
    check(tuning_end(b.t, b.trial, true, &e), &e);
    check(tuning_bound(b.t, b.trial, true, &e), &e);
    check(tuning_break(b.t, 1, &e), &e);
    check(tuning_load(b.t, 1, &e), &e);
    check(tuning_room(b.t, 1, 2, true, &e), &e);
    check(tuning_tick(b.t, our_ms(&b), &e), &e);
    tuning_stored(b.t);
    assert_false(tuning_settled(b.t, 1));
    end(&b);
}

/* The driver ends where memory does; the next one finds decisions and log in agreement, and goes on to the end. */
static void test_whatever_call_fails_nothing_is_lost(void **state)
{
    (void)state;
    unsigned nth = 1;
    for (bool struck = true; struck; nth += nth < 60 ? 1 : 23) {
        struct bench b;
        struct err e = { 0 };
        assert_true(nth < 100000);
        begin(&b, "pipetune");
        b.core_share = 0;
        next_trial(&b);
        fault_arm(FAULT_ALLOC, nth);
        int rc = train(&b, &e);
        struck = fault_disarm();
        if (rc < 0 && rc != -ENOMEM)
            fail_msg("call %u: %s", nth, e.text);
        if (rc == 0 && struck)
            fail_msg("call %u failed, and nobody was told", nth);
        expect_agreement(&b);
        if (rc < 0) {
            close_study(&b);
            open_study(&b, "pipetune");
            open_tuning(&b);
            b.trial = study_trial(&b.study, 1);
            check(train(&b, &e), &e);
            expect_agreement(&b);
        }
        end(&b);
    }
    print_message("%u calls\n", nth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions_are_stored_with_what_led_to_them),
        cmocka_unit_test(test_the_best_setting_is_found_and_told),
        cmocka_unit_test(test_steps_are_handed_on_several_at_a_time),
        cmocka_unit_test(test_epochs_are_steps_where_steps_tell_too_little),
        cmocka_unit_test(test_long_epochs_of_unknown_size_are_measured_by_steps),
        cmocka_unit_test(test_every_clock_tells_the_same_seconds),
        cmocka_unit_test(test_a_break_costs_no_seconds),
        cmocka_unit_test(test_a_deadline_comes_in_time),
        cmocka_unit_test(test_a_setting_that_cannot_be_had_is_not_tried_again),
        cmocka_unit_test(test_what_is_in_force_is_what_was_measured),
        cmocka_unit_test(test_a_launch_on_fewer_cpus_is_told_as_such),
        cmocka_unit_test(test_memory_that_was_run_out_of_is_not_asked_for_again),
        cmocka_unit_test(test_the_machine_is_rebuilt_from_its_log),
        cmocka_unit_test(test_a_setting_is_recalled_from_its_text),
        cmocka_unit_test(test_a_policy_that_chooses_nothing_needs_none),
        cmocka_unit_test(test_whatever_call_fails_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
