/* Samples and the log's steps of a trial in a real store: what is stored of them, which windows become profiles, and what earlier
 * studies taught comes back as events. */
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
#include "live/profiles.h"
#include "live/reuse.h"
#include "monitoring/features.h"
#include "store/models.h"
#include "store/samples.h"
#include "tests/cells.h"

enum { WINDOWS_MAX = 64 };

struct bench {
    char *dir;
    struct plan plan;
    struct study study;
    struct profiles *p;
    struct study_trial *trial;
    struct profiles_window told[WINDOWS_MAX];
    double cpu[WINDOWS_MAX], steps[WINDOWS_MAX]; /* of each profile that was told; NAN: none */
    size_t n;
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

static const char config[] = "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\", \"epochs\": 3 },\n"
                             "  \"systemParameters\": { \"cores\": [4, 2, 1], \"memory\": [0.125, 0.25] },\n"
                             "  \"hyperParameters\": { \"batch_size\": [64] } }\n";

static int no_options(void *ctx, struct config *cfg, struct err *e)
{
    const struct bench *b = ctx;
    (void)e;
    cfg->store = io_join(b->dir, "pipetune.db");
    return cfg->store ? 0 : -ENOMEM;
}

static int set_up(void **state)
{
    struct err e = { 0 };
    struct bench *b = calloc(1, sizeof *b);
    char dir[] = "/tmp/pipetune-profiles-XXXXXX";
    int copy;
    struct study_asked asked;
    assert_non_null(mkdtemp(dir));
    b->dir = strdup(dir);
    write_file(b->dir, "bigdl.json", bigdl);
    write_file(b->dir, "c.conf", config);
    write_file(b->dir, "app.py", "");
    AUTO_FREE char *path = io_join(b->dir, "c.conf");
    check(plan_load(&b->plan, path, NULL, no_options, b, &e), &e);
    b->plan.offer = (struct offer){ .cores = 4, .memory_gb = 1 };
    check(choices_make(&b->plan.choices, &b->plan.space, &b->plan.offer, &b->plan.requested, &e), &e);
    check(study_open(&b->study, &b->plan, false, &e), &e);
    check(store_begin(b->study.store, &e), &e);
    check(study_ask(&b->study, &asked, &e), &e);
    check(store_commit(b->study.store, &e), &e);
    check(study_take(&b->study, &asked, &b->trial, &copy, &e), &e);
    check(profiles_open(&b->p, &b->study, &e), &e);
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
    profiles_close(b->p);
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

/* --- what comes ------------------------------------------------------------------------------------------------------------ */

static int keep(void *ctx, const struct profiles_window *w, const struct profile *p, struct err *e)
{
    struct bench *b = ctx;
    (void)e;
    assert_true(b->n < WINDOWS_MAX);
    bool cpu = p && p->mask[FEATURE_PROC_CPU_TIME], steps = p && p->mask[FEATURE_LOG_ITERATIONS];
    b->cpu[b->n] = cpu ? p->x[FEATURE_PROC_CPU_TIME] : NAN;
    b->steps[b->n] = steps ? p->x[FEATURE_LOG_ITERATIONS] : NAN;
    b->told[b->n++] = *w;
    return 0;
}

/* One interval of a second that ends at t_ms, in which the processes used so much CPU time. */
static void sample_on(struct bench *b, size_t node, double t_ms, double cpu_s, bool alone)
{
    struct err e = { 0 };
    struct nodes_sample s = { .node = node, .t_ms = t_ms, .dt_ms = 1000, .scope = "process" };
    struct reading *cells = s.v;
    for (int i = 0; i < FEATURES; i++)
        cells[i] = (struct reading){ NAN, 0, i < FEATURE_SOFTWARE ? READING_UNSUPPORTED : READING_ABSENT };
    for (int i = FEATURE_PROC; i < FEATURE_LOG; i++)
        cells[i] = (struct reading){ 10.0 * i, 1, READING_OK };
    cells[FEATURE_PROC_CPU_TIME].value = cpu_s;
    for (int i = FEATURE_JVM; i < FEATURES; i++)
        cells[i] = (struct reading){ 0.1 * cpu_s, 1, READING_OK };
    check(profiles_sampled(b->p, b->trial, &s, alone, &e), &e);
}

static void sample(struct bench *b, double t_ms, double cpu_s)
{
    sample_on(b, 0, t_ms, cpu_s, true);
}

static void step(struct bench *b, int epoch, double end_ms, double seconds, double records)
{
    struct err e = { 0 };
    check(profiles_step(b->p, 1, &(struct profiles_step){ epoch, end_ms, seconds, records }, &e), &e);
}

static void steps(struct bench *b, int epoch, double from_ms, double to_ms, int n)
{
    for (int i = 1; i <= n; i++)
        step(b, epoch, from_ms + (to_ms - from_ms) * i / n, 0, 0);
}

static void tick(struct bench *b, double now_ms)
{
    struct err e = { 0 };
    check(profiles_tick(b->p, (int64_t)now_ms, keep, b, &e), &e);
}

static void end(struct bench *b, bool finished)
{
    struct err e = { 0 };
    check(store_begin(b->study.store, &e), &e);
    check(profiles_end(b->p, 1, finished, keep, b, &e), &e);
    check(store_commit(b->study.store, &e), &e);
}

struct stored {
    size_t n;
    double steps, records, first_records, last_ms, pauses_s;
    size_t with_pauses; /* rows in which pauses count, if only as none */
};

static int count(void *ctx, const struct store_sample *row)
{
    struct stored *s = ctx;
    const struct reading *cells = row->v;
    assert_non_null(cells);
    assert_string_equal(row->scope, "process");
    assert_int_equal(cells[0].state, READING_UNSUPPORTED);
    if (cells[FEATURE_LOG_ITERATIONS].state == READING_OK) {
        s->steps += cells[FEATURE_LOG_ITERATIONS].value;
        s->records += cells[FEATURE_LOG_RECORDS].value;
    }
    if (cells[FEATURE_LOG_GC_TIME].state == READING_OK) {
        s->pauses_s += cells[FEATURE_LOG_GC_TIME].value;
        s->with_pauses++;
    }
    if (s->n == 0)
        s->first_records = s->records;
    s->n++;
    s->last_ms = row->t_ms;
    return 0;
}

static struct stored stored(const struct bench *b)
{
    struct stored s = { 0 };
    struct err e = { 0 };
    check(store_samples(b->study.store, b->trial->row.id, count, &s, &e), &e);
    return s;
}

/* A second that begins soon, whole so that sums are: whatever setting is told now is in force by then. */
static double begin_ms(void)
{
    return (double)(study_now_ms() / 1000 * 1000 + 2000);
}

/* --- cases ----------------------------------------------------------------------------------------------------------------- */

static void test_each_step_is_counted_in_the_interval_in_which_it_ended(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
    steps(b, 1, t, t + 1000, 10);
    steps(b, 1, t + 1000, t + 2000, 5); /* in a zone three hours off: */
    steps(b, 1, t + 3 * 3600e3 + 2000, t + 3 * 3600e3 + 3000, 7);
    for (int i = 1; i <= 3; i++)
        sample(b, t + 1000 * i, 1.5);
    sample_on(b, 1, t + 3000, 1.5, true); /* another node counts no steps again */
    tick(b, t + 70000);
    struct stored s = stored(b);
    assert_int_equal(s.n, 4);
    assert_true(s.steps == 22);
    assert_int_equal(b->n, 0);
}

static void test_a_step_counts_in_each_interval_by_its_share(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
    step(b, 1, t + 750, 0.75, 64);
    step(b, 1, t + 1750, 1, 64); /* a quarter of it lies in the first second */
    step(b, 1, t + 3000, 1.25, 64);
    for (int i = 1; i <= 3; i++)
        sample(b, t + 1000 * i, 1.5);
    tick(b, t + 70000);
    struct stored s = stored(b);
    assert_int_equal(s.n, 3);
    assert_true(fabs(s.steps - 3) < 1e-9);
    assert_true(fabs(s.first_records - 80) < 1e-6);
    assert_true(fabs(s.records - 192) < 1e-6);
}

static void pause_of(struct bench *b, double end_ms, double seconds)
{
    struct err e = { 0 };
    check(profiles_pause(b->p, 1, end_ms, seconds, &e), &e);
}

/* What a JVM does not tell is absent; once it tells of pauses, there were none where it tells of none. */
static void test_pauses_count_from_the_first_one_that_the_log_tells_of(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
    steps(b, 1, t, t + 1000, 10);
    sample(b, t + 1000, 1.5);
    sample(b, t + 2000, 1.5);
    steps(b, 1, t + 1000, t + 2500, 10);
    tick(b, t + 1500);          /* the first interval is complete */
    pause_of(b, t + 3250, 0.5); /* by halves in the third and the fourth */
    steps(b, 1, t + 2500, t + 4500, 10);
    pause_of(b, NAN, 0.125); /* with the newest step, in the fifth */
    steps(b, 1, t + 4500, t + 6500, 10);
    for (int i = 3; i <= 6; i++)
        sample(b, t + 1000 * i, 1.5);
    tick(b, t + 70000);
    struct stored s = stored(b);
    assert_int_equal(s.n, 6);
    assert_true(s.steps == 37);
    assert_int_equal(s.with_pauses, 4);
    assert_true(fabs(s.pauses_s - 0.625) < 1e-9);
}

static void test_a_window_is_answered_when_its_last_sample_has_come(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    struct profiles_window w = { .trial = 1, .from_ms = t + 1000, .to_ms = t + 4000 };
    profiles_setting(b->p, 1, w.setting);
    for (int i = 1; i <= 3; i++)
        sample(b, t + 1000 * i, i == 1 ? 9 : 1);
    check(profiles_ask(b->p, &w, NULL), NULL);
    tick(b, t + 4500);
    assert_int_equal(b->n, 0);
    sample(b, t + 4000, 1);
    tick(b, t + 5001);
    assert_int_equal(b->n, 1);
    assert_true(fabs(b->cpu[0] - log1p(1000)) < 1e-9); /* ms per second; the first sample lies outside */
    tick(b, t + 6001);
    assert_int_equal(b->n, 1);
}

static void test_a_window_that_nobody_measured_is_answered_with_nothing(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    struct profiles_window w = { .trial = 1, .from_ms = t, .to_ms = t + 3000 };
    check(profiles_ask(b->p, &w, NULL), NULL);
    tick(b, t + 3500);
    assert_int_equal(b->n, 0);
    tick(b, t + 8000);
    assert_int_equal(b->n, 1);
    assert_true(b->cpu[0] != b->cpu[0]);
}

/* 12 s of training in two epochs: the setting changes after 6 s, with an interval in which both were in force. */
static void test_a_finished_trial_leaves_windows_of_one_epoch_and_one_setting(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 1, 0 });
    for (int i = 1; i <= 12; i++) {
        steps(b, i <= 8 ? 1 : 2, t + 1000 * (i - 1), t + 1000 * i, 4);
        sample(b, t + 1000 * i, 1);
    }
    end(b, true);
    assert_int_equal(stored(b).n, 12);
    assert_int_equal(b->n, 3); /* 1-3, 4-6, [7, 8], 9-11, [12] */
    for (size_t i = 0; i < b->n; i++)
        assert_true(b->told[i].to_ms - b->told[i].from_ms == 3000 && b->told[i].setting.hot == 1);
    assert_int_equal(b->told[0].epoch, 1);
    assert_int_equal(b->told[2].epoch, 2);
    assert_true(b->told[2].from_ms == t + 8000);
    assert_true(b->steps[2] > 0);
}

/* An epoch a second: several of them make a window. */
static void test_windows_span_epochs_that_are_shorter(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 1, 0 });
    for (int i = 1; i <= 12; i++) {
        steps(b, i, t + 1000 * (i - 1), t + 1000 * i, 4);
        sample(b, t + 1000 * i, 1);
    }
    end(b, true);
    assert_int_equal(b->n, 4);
    assert_int_equal(b->told[1].epoch, 4);
}

/* Two seconds an interval, windows of three: they become four. */
static void test_intervals_that_do_not_divide_the_window_make_longer_windows(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    struct err e = { 0 };
    profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
    for (int i = 1; i <= 4; i++) {
        struct nodes_sample s = { .t_ms = t + 2000 * i, .dt_ms = 2000, .scope = "process" };
        memcpy(s.v, cells_of("u"), sizeof s.v);
        steps(b, 1, t + 2000 * (i - 1), t + 2000 * i, 4);
        check(profiles_sampled(b->p, b->trial, &s, true, &e), &e);
    }
    end(b, true);
    assert_int_equal(b->n, 2);
    assert_true(b->told[0].to_ms - b->told[0].from_ms == 4000);
}

static void test_a_clock_that_is_set_back_holds_nothing_up(void **state)
{
    struct bench *b = *state;
    double t = begin_ms();
    profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
    tick(b, t + 3600e3);
    sample(b, t + 3600e3, 1);
    tick(b, t);
    assert_int_equal(stored(b).n, 1);
}

static const struct {
    const char *name;
    bool alone, trains, finished;
    size_t want;
} taught[] = {
    { "alone, training, to the end", true, true, true, 2 },
    { "beside another trial", false, true, true, 0 },
    { "without a training step", true, false, true, 0 },
    { "cut short", true, true, false, 0 },
};

static void test_what_teaches_nothing_becomes_no_window(void **state)
{
    struct bench *b = *state;
    for (size_t k = 0; k < ARRAY_LEN(taught); k++) {
        double t = begin_ms() + 10000 * (double)k;
        b->n = 0;
        profiles_setting(b->p, 1, (struct tuner_setting){ 0, 0 });
        steps(b, 1, t, t + 6000, taught[k].trains ? 60 : 1);
        for (int i = 1; i <= 6; i++)
            sample_on(b, 0, t + 1000 * i, 1, taught[k].alone);
        if (!taught[k].trains)
            b->n = 0;
        end(b, taught[k].finished);
        if (b->n != taught[k].want)
            fail_msg("%s: %zu windows, not %zu", taught[k].name, b->n, taught[k].want);
        assert_int_equal(stored(b).n, 6 * (k + 1));
    }
}

/* --- reuse ----------------------------------------------------------------------------------------------------------------- */

struct heard {
    struct tuner_event ev[WINDOWS_MAX];
    size_t n;
};

static int hear(void *ctx, const struct tuner_event *ev, struct err *e)
{
    struct heard *h = ctx;
    (void)e;
    assert_true(h->n < WINDOWS_MAX);
    assert_string_equal(ev->class_key, "K");
    h->ev[h->n++] = *ev;
    return 0;
}

static struct reuse *open_reuse(struct bench *b)
{
    struct err e = { 0 };
    char why[512] = "";
    struct reuse *r = NULL;
    check(reuse_open(&r, &b->study, profiles_space(b->p), why, &e), &e);
    assert_string_equal(why, "");
    assert_non_null(r);
    return r;
}

static void learn(struct bench *b, struct reuse *r, const struct class_entry *c)
{
    struct err e = { 0 };
    check(store_begin(b->study.store, &e), &e);
    check(reuse_learn(r, b->trial, "K", "F", c, &e), &e);
    check(store_commit(b->study.store, &e), &e);
}

/* 4, 2 and 1 cores are hot 2, 1, 0: two cores take 1.2 times as long as four, one at least twice. */
static struct class_entry known_class(void)
{
    struct class_entry c = { .key = (char *)"K", .family = (char *)"F", .best = { 1, 1 } };
    for (int i = 0; i < TUNER_MAX_COLD; i++) {
        c.cold[i].hot = -1;
        c.cold[i].gap = NAN;
        for (int k = 0; k < LEVELS; k++)
            c.cold[i].level[k].per_record = NAN;
        for (int k = 0; k < TUNER_MAX_HOT; k++)
            c.cold[i].ratio[k] = NAN;
    }
    c.cold[1].hot = 2;
    c.cold[1].ratio[1] = log(1.2);
    c.cold[1].ratio[0] = log(2);
    c.cold[1].at_least[0] = true;
    c.infeasible[0][0] = true;
    return c;
}

static void test_what_was_learnt_comes_back_as_events(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct heard h = { .n = 0 };
    struct class_entry c = known_class();
    struct reuse *r = open_reuse(b);
    assert_false(reuse_knows(r, "K"));
    learn(b, r, &c);
    reuse_close(r);
    r = open_reuse(b); /* as the next study does */
    assert_true(reuse_knows(r, "K"));
    check(reuse_recall(r, "K", hear, &h, &e), &e);
    check(reuse_recall(r, "unknown", hear, &h, &e), &e);
    size_t seen[4] = { 0 }; /* the ratio, the bound of it, the best, the infeasible one */
    for (size_t i = 0; i < h.n; i++) {
        const struct tuner_event *ev = &h.ev[i];
        bool within = !ev->infeasible && ev->over.hot == 2 && ev->over.cold == 1;
        seen[0] += within && ev->setting.hot == 1 && fabs(ev->ratio - log(1.2)) < 1e-12 && !ev->at_least && ev->best;
        seen[1] += within && ev->setting.hot == 0 && ev->at_least;
        seen[2] += !ev->infeasible && ev->setting.hot == 1 && ev->setting.cold == 1 && ev->best;
        seen[3] += ev->infeasible && ev->setting.hot == 0 && ev->setting.cold == 0;
    }
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 1);
    assert_true(seen[2] >= 1);
    assert_int_equal(seen[3], 1);
    reuse_close(r);
}

static void test_a_trial_that_compared_nothing_new_counts_no_ratio_again(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct class_entry c = known_class();
    struct reuse *r = open_reuse(b);
    AUTO_FREE char *text = NULL;
    int64_t version;
    for (int i = 0; i < 3; i++)
        learn(b, r, &c);
    c.cold[1].ratio[1] = log(1.3);
    learn(b, r, &c);
    check(store_model_get(b->study.store, "default", &text, &version, &e), &e);
    assert_non_null(strstr(text, "\"n\": 2,"));
    assert_null(strstr(text, "\"n\": 4,"));
    reuse_close(r);
}

static void learn_profiles(struct bench *b, struct reuse *r, const char *key, const struct profile *p, int times)
{
    struct err e = { 0 };
    for (int i = 0; i < times; i++)
        check(reuse_note(r, 1, p, &e), &e);
    check(store_begin(b->study.store, &e), &e);
    check(reuse_learn(r, b->trial, key, NULL, NULL, &e), &e);
    check(store_commit(b->study.store, &e), &e);
}

static const char *class_of(const struct reuse *r, const struct profile *p, const char *own, enum model_decision want)
{
    struct err e = { 0 };
    struct model_verdict v;
    const char *key = NULL;
    check(reuse_verdict(r, p, own, &v, &key, &e), &e);
    if (v.decision != want)
        fail_msg("as one of %s: %s, not %s", own, model_decision_name(v.decision), model_decision_name(want));
    return key ? key : "";
}

/* Jobs that differ in nothing that is measured. */
static void test_a_job_that_may_be_its_own_class_is(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct profile p = { 0 };
    struct reuse *r = open_reuse(b);
    check(profile_init(&p, FEATURES, &e), &e);
    for (int i = FEATURE_PROC; i < FEATURE_LOG; i++) {
        p.x[i] = 3;
        p.mask[i] = 1;
    }
    learn_profiles(b, r, "A", &p, 6);
    learn_profiles(b, r, "B", &p, 2);
    assert_string_equal(class_of(r, &p, "C", MODEL_AMBIGUOUS), "A"); /* no hardware event was counted */
    assert_string_equal(class_of(r, &p, "A", MODEL_KNOWN), "A");
    assert_string_equal(class_of(r, &p, "B", MODEL_KNOWN), "B");
    for (int i = FEATURE_PROC; i < FEATURE_LOG; i++)
        p.x[i] = 30;
    assert_string_equal(class_of(r, &p, "B", MODEL_UNKNOWN), "");
    profile_done(&p);
    reuse_close(r);
}

static void test_hardware_events_tell_a_job_whose_key_is_new(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct profile p = { 0 };
    struct reuse *r = open_reuse(b);
    check(profile_init(&p, FEATURES, &e), &e);
    for (int i = 0; i < FEATURE_SOFTWARE; i++) {
        p.x[i] = 9;
        p.mask[i] = 1;
    }
    learn_profiles(b, r, "A", &p, 6);
    assert_string_equal(class_of(r, &p, "C", MODEL_KNOWN), "A");
    profile_done(&p);
    reuse_close(r);
}

static void measure(struct profile *p, int from, int to)
{
    for (int i = from; i < to; i++) {
        p->x[i] = 3;
        p->mask[i] = 1;
    }
}

static void test_so_does_the_code_that_it_runs(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct profile p = { 0 }, other = { 0 };
    struct reuse *r = open_reuse(b);
    check(profile_init(&p, FEATURES, &e), &e);
    check(profile_init(&other, FEATURES, &e), &e);
    measure(&p, FEATURE_SOFTWARE, FEATURE_LOG);
    learn_profiles(b, r, "A", &p, 6);
    measure(&p, FEATURE_CODE, FEATURE_CODE + 10);
    assert_string_equal(class_of(r, &p, "C", MODEL_AMBIGUOUS), "A"); /* nobody had looked at the code of A */
    measure(&other, FEATURE_PROC, FEATURES);
    learn_profiles(b, r, "B", &other, 6);
    assert_string_equal(class_of(r, &other, "C", MODEL_KNOWN), "B");
    profile_done(&p);
    profile_done(&other);
    reuse_close(r);
}

static void put_model(struct bench *b, const char *text)
{
    struct err e = { 0 };
    AUTO_FREE char *old = NULL;
    int64_t version = 0;
    check(store_model_get(b->study.store, "default", &old, &version, &e), &e);
    check(store_model_put(b->study.store, "default", text, version, NULL, &e), &e);
}

static const char elsewhere[] = "{\"format\": \"pipetune-model\", \"version\": 1, \"vectors\": \"raw\", \"next_id\": 1,"
                                " \"features\": [{\"name\": null}],"
                                " \"clusters\": [{\"id\": 0, \"count\": 1, \"centroid\": [1]}],"
                                " \"classes\": [], \"inertia\": null}";

static void test_a_model_that_was_made_elsewhere_is_left_alone(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    char why[512] = "";
    struct reuse *r = NULL;
    put_model(b, elsewhere);
    check(reuse_open(&r, &b->study, profiles_space(b->p), why, &e), &e);
    assert_null(r);
    assert_non_null(strstr(why, "made elsewhere"));
}

/* Put in its place while the study runs: the study goes on, and learns nothing. */
static void test_a_model_that_is_spoilt_meanwhile_ends_no_study(void **state)
{
    static const char *const texts[] = { "{", "{\"format\": \"pipetune-model\", \"version\": 99}", elsewhere };
    struct bench *b = *state;
    struct err e = { 0 };
    struct class_entry c = known_class();
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put_model(b, "{\"format\": \"pipetune-model\", \"version\": 1, \"vectors\": \"profiles\", \"next_id\": 1,"
                     " \"features\": [], \"clusters\": [], \"classes\": []}");
        struct reuse *r = open_reuse(b);
        AUTO_FREE char *text = NULL;
        int64_t version;
        put_model(b, texts[i]);
        learn(b, r, &c);
        learn(b, r, &c);
        check(store_begin(b->study.store, &e), &e);
        check(reuse_confirm(r, 1, "K", true, &e), &e);
        check(store_commit(b->study.store, &e), &e);
        check(store_model_get(b->study.store, "default", &text, &version, &e), &e);
        assert_null(strstr(text, "\"best\"")); /* nothing was learnt */
        reuse_close(r);
    }
}

static void test_a_best_setting_that_fails_twice_is_not_recalled_any_more(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct class_entry c = known_class();
    struct reuse *r = open_reuse(b);
    learn(b, r, &c);
    for (int i = 0; i < 2; i++) {
        assert_true(reuse_knows(r, "K"));
        check(store_begin(b->study.store, &e), &e);
        check(reuse_confirm(r, 1, "K", false, &e), &e);
        check(store_commit(b->study.store, &e), &e);
    }
    assert_false(reuse_knows(r, "K"));
    reuse_close(r);
}

static void test_a_change_that_was_rolled_back_is_not_known(void **state)
{
    struct bench *b = *state;
    struct err e = { 0 };
    struct class_entry c = known_class();
    struct reuse *r = open_reuse(b), *other = open_reuse(b);
    check(store_begin(b->study.store, &e), &e);
    check(reuse_learn(r, b->trial, "K", "F", &c, &e), &e);
    store_rollback(b->study.store);
    check(store_begin(b->study.store, &e), &e);
    check(reuse_confirm(r, 1, "K", true, &e), &e); /* looks at what is stored first */
    check(store_commit(b->study.store, &e), &e);
    assert_false(reuse_knows(r, "K"));
    learn(b, other, &c); /* two of them write in turn */
    learn(b, r, &c);
    assert_true(reuse_knows(r, "K"));
    reuse_close(r);
    reuse_close(other);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_each_step_is_counted_in_the_interval_in_which_it_ended),
        CASE(test_a_step_counts_in_each_interval_by_its_share),
        CASE(test_pauses_count_from_the_first_one_that_the_log_tells_of),
        CASE(test_a_window_is_answered_when_its_last_sample_has_come),
        CASE(test_a_window_that_nobody_measured_is_answered_with_nothing),
        CASE(test_a_finished_trial_leaves_windows_of_one_epoch_and_one_setting),
        CASE(test_windows_span_epochs_that_are_shorter),
        CASE(test_intervals_that_do_not_divide_the_window_make_longer_windows),
        CASE(test_a_clock_that_is_set_back_holds_nothing_up),
        CASE(test_what_teaches_nothing_becomes_no_window),
        CASE(test_what_was_learnt_comes_back_as_events),
        CASE(test_a_trial_that_compared_nothing_new_counts_no_ratio_again),
        CASE(test_a_job_that_may_be_its_own_class_is),
        CASE(test_hardware_events_tell_a_job_whose_key_is_new),
        CASE(test_so_does_the_code_that_it_runs),
        CASE(test_a_model_that_was_made_elsewhere_is_left_alone),
        CASE(test_a_model_that_is_spoilt_meanwhile_ends_no_study),
        CASE(test_a_best_setting_that_fails_twice_is_not_recalled_any_more),
        CASE(test_a_change_that_was_rolled_back_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
