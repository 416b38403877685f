#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "store/trace.h"
#include "store/trace_h5.h"
#include "tests/fault.h"

struct world {
    char dir[64], path[96];
};

static int make_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/pipetune-trace-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof w->path, "%s/t.h5", w->dir);
    *state = w;
    return 0;
}

static int remove_world(void **state)
{
    struct world *w = *state;
    (void)unlink(w->path);
    assert_int_equal(rmdir(w->dir), 0); /* nothing else was left */
    free(w);
    return 0;
}

/* --- a trace with everything in it --- */

static struct trace_epoch epoch(double start_s)
{
    return (struct trace_epoch){ start_s, 12.5, 0.25, 0.9914, NAN, 469, 60032 };
}

static void fill_samples(struct trace_samples *s, size_t features)
{
    assert_int_equal(trace_samples_init(s, 3, features), 0);
    for (size_t i = 0; i < s->n; i++) {
        s->t_ns[i] = (int64_t)i * 1000000007;
        s->node[i] = (uint16_t)(i * 30000);
        s->value[i * features] = 1e18 + (double)i;
        s->state[i * features] = TRACE_MULTIPLEXED;
        s->ratio[i * features] = 0.25F;
        s->state[i * features + 1] = (uint8_t)(TRACE_NOT_COUNTED + i);
    }
}

static void fill_tuner(struct trace_tuner *t)
{
    t->policy = strdup("pipetune");
    t->study = strdup("s \xC3\xA9");
    strv_add(&t->log, "H 1 pipetune 3 0.1 0.01 0.01 2 4 8 1 0");
    strv_add(&t->log, "");
    strv_add(&t->log, "L 1 \"a \\\"key\\\" \xC3\xA9\" null 0 0 2 1");
    t->decisions = calloc(2, sizeof *t->decisions);
    assert_non_null(t->decisions);
    t->decisions[t->n_decisions++] = (struct trace_decision){
        INT64_C(1) << 40, 3, 0.125, strdup("apply"), strdup("{\"cores\": 4}"), strdup("it is said\nto be better"),
    };
    t->decisions[t->n_decisions++] = (struct trace_decision){ 2, 0, NAN, strdup("launch"), strdup(""), strdup("") };
}

static void fill(struct trace *t)
{
    assert_int_equal(trace_default_features(t), 0);
    strv_add(&t->features, "page-faults \xC3\xA9");
    for (int i = 0; i < 12; i++) { /* 10 and 11 come before 2 by name */
        struct trace_run *r = trace_add(t);
        assert_non_null(r);
        char name[16];
        (void)snprintf(name, sizeof name, "run %d", i);
        r->model = strdup(name);
        r->dataset = strdup("");
        r->system = strdup("{\"cores\":\"8\",\"memory\":4}");
        r->hyper = strdup("{\"learning_rate\":0.1,\"batchSize\":512}");
        r->results = i ? NULL : strdup("{\"log\":\"a.log\"}");
        r->status = (enum timeline_status)(i % 4);
        r->startup_s = i % 2 ? (double)NAN : 45.25;
    }
    struct trace_run *r = &t->runs[2];
    r->epochs = calloc(2, sizeof *r->epochs);
    r->windows = calloc(2, sizeof *r->windows);
    assert_true(r->epochs && r->windows);
    for (size_t i = 0; i < 2; i++) {
        r->epochs[r->n_epochs++] = epoch(45.25 + 12.5 * (double)i);
        r->windows[r->n_windows++] = (struct trace_window){ (int)i + 1, strdup("{\"cores\":4}"), epoch((double)i) };
    }
    fill_samples(&t->runs[3].samples, t->features.n);
    fill_tuner(&t->tuner);
}

static void write_one(const char *path)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    fill(&t);
    if (trace_write(&t, path, &e) < 0)
        fail_msg("%s", e.text);
    trace_done(&t);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

static void expect_same_run(const struct trace_run *a, const struct trace_run *b, size_t features)
{
    assert_true(same_text(a->model, b->model) && same_text(a->dataset, b->dataset) && same_text(a->system, b->system) &&
                same_text(a->hyper, b->hyper) && same_text(a->results, b->results));
    assert_true(a->status == b->status && (a->startup_s == b->startup_s || isnan(a->startup_s) == isnan(b->startup_s)));
    assert_true(a->n_epochs == b->n_epochs && same_bytes(a->epochs, b->epochs, a->n_epochs * sizeof *a->epochs));
    assert_int_equal(a->n_windows, b->n_windows);
    for (size_t i = 0; i < a->n_windows; i++) {
        assert_int_equal(a->windows[i].epoch, b->windows[i].epoch);
        assert_string_equal(a->windows[i].setting, b->windows[i].setting);
        assert_memory_equal(&a->windows[i].at, &b->windows[i].at, sizeof a->windows[i].at);
    }
    const struct trace_samples *s = &a->samples, *z = &b->samples;
    size_t cells = s->n * features;
    assert_true(s->n == z->n && same_bytes(s->t_ns, z->t_ns, s->n * 8) && same_bytes(s->node, z->node, s->n * 2));
    assert_true(same_bytes(s->value, z->value, cells * 8) && same_bytes(s->state, z->state, cells) &&
                same_bytes(s->ratio, z->ratio, cells * 4));
}

static void expect_same_tuner(const struct trace_tuner *a, const struct trace_tuner *b)
{
    assert_string_equal(a->policy, b->policy);
    assert_string_equal(a->study, b->study);
    assert_int_equal(a->log.n, b->log.n);
    for (size_t i = 0; i < a->log.n; i++)
        assert_string_equal(a->log.v[i], b->log.v[i]);
    assert_int_equal(a->n_decisions, b->n_decisions);
    for (size_t i = 0; i < a->n_decisions; i++) {
        const struct trace_decision *x = &a->decisions[i], *y = &b->decisions[i];
        assert_true(x->seq == y->seq && x->trial == y->trial && (x->t_s == y->t_s || isnan(x->t_s) == isnan(y->t_s)));
        assert_string_equal(x->kind, y->kind);
        assert_string_equal(x->setting, y->setting);
        assert_string_equal(x->reason, y->reason);
    }
}

static void test_what_was_written_is_read(void **state)
{
    struct world *w = *state;
    struct trace a = { 0 }, b = { 0 };
    struct err e = { 0 };
    fill(&a);
    write_one(w->path);
    if (trace_read(&b, w->path, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(a.features.n, b.features.n);
    for (size_t i = 0; i < a.features.n; i++)
        assert_string_equal(a.features.v[i], b.features.v[i]);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        expect_same_run(&a.runs[i], &b.runs[i], a.features.n);
    expect_same_tuner(&a.tuner, &b.tuner);
    trace_done(&a);
    trace_done(&b);
    trace_done(NULL);
}

/* The clock as libhdf5 reads it, too: a day passes between any two looks. */
int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    static time_t day;
    (void)zone;
    *tv = (struct timeval){ .tv_sec = 86400 * ++day };
    return 0;
}

static void test_the_same_trace_is_the_same_bytes(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf a = BUF_INIT, b = BUF_INIT;
    struct err e;
    write_one(w->path);
    assert_int_equal(io_read_file(&a, w->path, 1 << 24, &e), 0);
    write_one(w->path);
    assert_int_equal(io_read_file(&b, w->path, 1 << 24, &e), 0);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
}

static void test_an_empty_trace(void **state)
{
    struct world *w = *state;
    struct trace t = { 0 };
    struct err e = { 0 };
    assert_int_equal(trace_write(&t, w->path, &e), 0);
    if (trace_read(&t, w->path, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(t.n == 0 && t.features.n == 0 && !t.tuner.policy);
    trace_done(&t);
}

static void test_a_tuner_that_was_told_nothing(void **state)
{
    struct world *w = *state;
    struct trace t = { 0 }, back = { 0 };
    struct err e = { 0 };
    t.tuner.policy = strdup("v1");
    t.tuner.study = strdup("s");
    assert_int_equal(trace_write(&t, w->path, &e), 0);
    if (trace_read(&back, w->path, &e) < 0)
        fail_msg("%s", e.text);
    expect_same_tuner(&t.tuner, &back.tuner);
    trace_done(&t);
    trace_done(&back);
}

/* --- timelines --- */

static void test_a_timeline_survives(void **state)
{
    (void)state;
    struct timeline from = { 0 }, to = { 0 };
    struct trace t = { 0 };
    struct err e = { 0 };
    struct timeline_run *r = timeline_add(&from);
    r->model = strdup("m\"");
    r->dataset = strdup("d");
    r->log = strdup("a \"log\"");
    r->cores = 8;
    r->memory_gb = 0.5;
    r->batch = 512;
    r->startup_s = 45;
    r->status = RUN_PARTIAL;
    r->epochs = calloc(2, sizeof *r->epochs);
    r->n_epochs = 2;
    r->epochs[0] = (struct timeline_epoch){ 10, NAN, 0.5, 7 };
    r->epochs[1] = (struct timeline_epoch){ 20, 1, NAN, NAN };
    assert_non_null(timeline_add(&from)); /* nothing is known of this one */
    assert_int_equal(trace_add_timeline(&t, &from, &e), 0);
    assert_true(t.runs[0].epochs[0].start_s == 45 && t.runs[0].epochs[1].start_s == 55);
    if (trace_to_timeline(&to, &t, &e) < 0)
        fail_msg("%s", e.text);
    const struct timeline_run *z = &to.runs[0];
    r = &from.runs[0];
    assert_int_equal(to.n, 2);
    assert_true(same_text(r->model, z->model) && same_text(r->log, z->log) && z->cores == 8 && z->memory_gb == 0.5);
    assert_true(z->batch == 512 && z->startup_s == 45 && z->status == RUN_PARTIAL && z->n_epochs == 2);
    assert_memory_equal(r->epochs, z->epochs, 2 * sizeof *r->epochs);
    assert_true(to.runs[1].cores == 0 && isnan(to.runs[1].memory_gb) && isnan(to.runs[1].batch) && !to.runs[1].log);
    timeline_done(&from);
    timeline_done(&to);
    trace_done(&t);
}

static void test_settings_are_found_however_written(void **state)
{
    (void)state;
    static const struct {
        const char *system, *hyper;
        int rc, cores;
        double memory_gb, batch;
    } cases[] = {
        { "{\"cores\":8,\"memory\":4}", "{\"batch_size\":64}", 0, 8, 4, 64 },
        { "{\"cores\":\"8\",\"memory\":\"0.5\"}", "{\"lr\":1,\"BatchSize\":\"64\"}", 0, 8, 0.5, 64 },
        { "{\"cores\":-1,\"memory\":\"4g\"}", "{\"batch\":[1]}", 0, 0, NAN, NAN },
        { "{\"cores\":1e300}", "{}", 0, 0, NAN, NAN },
        { "[8]", "{}", -EPROTO, 0, 0, 0 },
        { "{}", "{\"batch\":", -EPROTO, 0, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace t = { 0 };
        struct timeline to = { 0 };
        struct err e = { 0 };
        struct trace_run *r = trace_add(&t);
        r->system = strdup(cases[i].system);
        r->hyper = strdup(cases[i].hyper);
        int rc = trace_to_timeline(&to, &t, &e);
        const struct timeline_run *z = &to.runs[0];
        bool same = rc < 0 || (z->cores == cases[i].cores && isnan(z->memory_gb) == isnan(cases[i].memory_gb) &&
                               (isnan(z->batch) ? isnan(cases[i].batch) : z->batch == cases[i].batch));
        if (rc != cases[i].rc || !same)
            fail_msg("%s %s: got %d, cores %d, memory %g, batch %g", cases[i].system, cases[i].hyper, rc, z->cores,
                     z->memory_gb, z->batch);
        timeline_done(&to);
        trace_done(&t);
    }
}

/* One run of three epochs, 10, 20 and 30 s and 100 records each. */
struct mixed_case {
    const char *name, *system, *results;
    enum timeline_status status;
    struct {
        int epoch;
        const char *setting;
        double records;
    } windows[5];
    const char *want; /* the durations that are left; NULL: the run is left out */
};

static void make_mixed(struct trace *t, const struct mixed_case *c)
{
    struct trace_run *r = trace_add(t);
    r->system = strdup(c->system);
    r->results = c->results ? strdup(c->results) : NULL;
    r->status = c->status;
    r->epochs = calloc(3, sizeof *r->epochs);
    r->windows = calloc(ARRAY_LEN(c->windows), sizeof *r->windows);
    for (; r->n_epochs < 3; r->n_epochs++)
        r->epochs[r->n_epochs] = (struct trace_epoch){ .duration_s = 10 * (double)(r->n_epochs + 1), .records = 100 };
    for (size_t i = 0; i < ARRAY_LEN(c->windows) && c->windows[i].setting; i++)
        r->windows[r->n_windows++] = (struct trace_window){ c->windows[i].epoch,
                                                            strdup(c->windows[i].setting),
                                                            { .records = c->windows[i].records } };
}

static void put_durations(struct buf *b, const struct timeline_run *r)
{
    for (size_t i = 0; i < r->n_epochs; i++)
        buf_printf(b, "%s%g", i ? " " : "", r->epochs[i].duration_s);
}

#define A "{\"cores\":4,\"memory\":8}"
#define B "{\"cores\":2,\"memory\":8}"

static void test_an_epoch_of_several_settings_stands_for_none(void **state)
{
    (void)state;
    static const struct mixed_case cases[] = {
        { "no windows: nothing changed", A, NULL, RUN_COMPLETE, { { 0 } }, "10 20 30" },
        { "all under one setting", A, NULL, RUN_COMPLETE, { { 1, A, 100 }, { 2, A, 100 }, { 3, A, 100 } }, "10 20 30" },
        { "a probe in the second epoch",
          A,
          NULL,
          RUN_COMPLETE,
          { { 1, A, 100 }, { 2, A, 50 }, { 2, B, 50 }, { 3, A, 100 } },
          "10 nan 30" },
        { "an epoch under another setting",
          A,
          NULL,
          RUN_COMPLETE,
          { { 1, A, 100 }, { 2, A, 100 }, { 3, B, 100 } },
          "10 20 nan" },
        { "an epoch that nobody watched", A, NULL, RUN_COMPLETE, { { 1, A, 100 }, { 3, A, 100 } }, "10 nan 30" },
        { "a third of an epoch was not watched",
          A,
          NULL,
          RUN_COMPLETE,
          { { 1, A, 91 }, { 2, A, 66 }, { 3, A, 100 } },
          "10 nan 30" },
        { "records that are not known",
          A,
          NULL,
          RUN_COMPLETE,
          { { 1, A, NAN }, { 2, A, NAN }, { 3, A, NAN } },
          "10 20 30" },
        { "the same setting in other words",
          "{\"cores\":\"4\",\"memory\":8}",
          NULL,
          RUN_COMPLETE,
          { { 1, "{\"cores\":4.0}", 100 }, { 2, A, 100 }, { 3, "{\"other\":1}", 100 } },
          "10 20 30" },
        { "a setting that cannot be read", A, NULL, RUN_COMPLETE, { { 1, A, 100 }, { 2, "4", 100 } }, "10 nan nan" },
        { "windows of no epoch", A, NULL, RUN_COMPLETE, { { 0, B, 100 }, { 4, B, 100 }, { 1, A, 100 } }, "10 nan nan" },
        { "a first epoch of several settings", A, NULL, RUN_COMPLETE, { { 1, A, 50 }, { 1, B, 50 } }, NULL },
        { "one that failed all the same is infeasible", A, NULL, RUN_FAILED, { { 1, B, 100 } }, "nan nan nan" },
        { "a recorded one that was finished", A, "{\"outcome\":\"finished\"}", RUN_COMPLETE, { { 0 } }, "10 20 30" },
        { "a recorded one that was interrupted", A, "{\"outcome\":\"interrupted\"}", RUN_PARTIAL, { { 0 } }, NULL },
        { "a recorded one that runs", A, "{\"outcome\":null}", RUN_RUNNING, { { 0 } }, NULL },
        { "a recorded one that failed", A, "{\"outcome\":\"infeasible\"}", RUN_FAILED, { { 0 } }, "10 20 30" },
        { "an imported one that was cut short", A, NULL, RUN_PARTIAL, { { 0 } }, "10 20 30" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace t = { 0 };
        struct timeline to = { 0 };
        struct err e = { 0 };
        AUTO_BUF struct buf got = BUF_INIT;
        make_mixed(&t, &cases[i]);
        int rc = trace_to_timeline(&to, &t, &e);
        if (to.n)
            put_durations(&got, &to.runs[0]);
        if (rc != (cases[i].want ? 0 : 1) || strcmp(buf_text(&got), cases[i].want ? cases[i].want : "") != 0)
            fail_msg("%s: got %d and '%s', want '%s'", cases[i].name, rc, buf_text(&got), cases[i].want);
        timeline_done(&to);
        trace_done(&t);
    }
}

static void test_a_first_epoch_that_another_attempt_trained(void **state)
{
    (void)state;
    struct trace t = { 0 };
    struct timeline to = { 0 };
    struct err e = { 0 };
    make_mixed(&t, &(struct mixed_case){ .system = A, .results = "{\"outcome\":\"finished\"}" });
    t.runs[0].epochs[0] = trace_no_epoch();
    assert_int_equal(trace_to_timeline(&to, &t, &e), 1);
    assert_int_equal(to.n, 0);
    timeline_done(&to);
    trace_done(&t);
}

static void test_a_timeline_whatever_fails(void **state)
{
    (void)state;
    struct trace t = { 0 };
    make_mixed(&t, &(struct mixed_case){ .system = A, .windows = { { 1, A, 100 } } });
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct timeline to = { 0 };
        struct err e = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = trace_to_timeline(&to, &t, &e);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && e.text[0]));
        timeline_done(&to);
    }
    trace_done(&t);
}

/* --- files that are none of ours --- */

static void expect_refused(const char *path, int want, const char *part)
{
    struct trace t = { 0 };
    struct err e = { 0 };
    int rc = trace_read(&t, path, &e);
    if (rc != want || !strstr(e.text, part))
        fail_msg("got %d, '%s'; want %d and '%s'", rc, e.text, want, part);
    assert_null(t.runs);
}

static void test_other_files_are_refused(void **state)
{
    struct world *w = *state;
    struct err e;
    expect_refused("/nonexistent/t.h5", -ENOENT, "'/nonexistent/t.h5'");
    expect_refused("/tmp", -EISDIR, "'/tmp'");
    expect_refused("/dev/null", -EPROTO, "no regular file");
    assert_int_equal(mkfifo(w->path, 0600), 0);
    expect_refused(w->path, -EPROTO, "no regular file");
    (void)unlink(w->path);
    assert_int_equal(io_write_atomic(w->path, "", 0, 0600, &e), 0);
    expect_refused(w->path, -EPROTO, "no HDF5 file");
    assert_int_equal(io_write_atomic(w->path, "m,d,1,2,3,l,0,1\n", 16, 0600, &e), 0);
    expect_refused(w->path, -EPROTO, "no HDF5 file");
    assert_int_equal(truncate(w->path, (off_t)TRACE_FILE_MAX + 1), 0); /* sparse */
    expect_refused(w->path, -EPROTO, "too large");
}

static void test_truncated_files_are_refused(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e;
    write_one(w->path);
    assert_int_equal(io_read_file(&b, w->path, 1 << 24, &e), 0);
    for (size_t len = 0; len < b.len; len = len < 2048 ? len + 61 : len + b.len / 40) {
        assert_int_equal(io_write_atomic(w->path, b.data, len, 0600, &e), 0);
        expect_refused(w->path, -EPROTO, "HDF5");
    }
}

/* Damage anywhere: another trace, or a refusal with a reason. HDF5 itself may crash; that is why it is tried in a child. */
static void test_damaged_files_never_crash(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e;
    write_one(w->path);
    assert_int_equal(io_read_file(&b, w->path, 1 << 24, &e), 0);
    int refused = 0;
    for (size_t i = 0; i < 200; i++) {
        struct trace t = { 0 };
        size_t at = i * (b.len / 200);
        char was = b.data[at];
        b.data[at] = (char)(was ^ (i % 3 ? 0xFF : 0x10));
        if (io_write_atomic(w->path, b.data, b.len, 0600, &e) < 0)
            fail_msg("byte %zu: %s", at, e.text);
        b.data[at] = was;
        e = (struct err){ 0 };
        int rc = trace_read(&t, w->path, &e);
        if (rc < 0 && (rc != -EPROTO || !strstr(e.text, w->path)))
            fail_msg("byte %zu: %d, '%s'", at, rc, e.text);
        refused += rc < 0;
        trace_done(&t);
    }
    assert_true(refused > 20);
}

/* --- HDF5 files that are no traces: one thing wrong at a time --- */

static hid_t reopened(const char *path)
{
    write_one(path);
    trace_h5_init();
    return H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
}

static void set_text(hid_t file, const char *group, const char *name, const char *text)
{
    AUTO_H5 hid_t at = H5Gopen2(file, group, H5P_DEFAULT);
    AUTO_H5 hid_t type = trace_h5_text_type();
    AUTO_H5 hid_t space = H5Screate(H5S_SCALAR);
    (void)H5Adelete(at, name);
    AUTO_H5 hid_t attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attr, type, &text) >= 0);
}

static void set_array(hid_t file, const char *name, hid_t type, int rank, hsize_t n, const void *data)
{
    AUTO_H5 hid_t space = H5Screate_simple(rank, (const hsize_t[]){ n, 1 }, NULL);
    (void)H5Ldelete(file, name, H5P_DEFAULT);
    AUTO_H5 hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
}

static void no_meta(hid_t f)
{
    (void)H5Ldelete(f, "/meta", H5P_DEFAULT);
}
static void no_runs(hid_t f)
{
    (void)H5Ldelete(f, "/runs", H5P_DEFAULT);
}
static void numeric_features(hid_t f)
{
    set_array(f, "/meta/features", H5T_NATIVE_INT, 1, 2, (int[]){ 1, 2 });
}
static void newer_version(hid_t f)
{
    AUTO_H5 hid_t meta = H5Gopen2(f, "/meta", H5P_DEFAULT);
    AUTO_H5 hid_t space = H5Screate(H5S_SCALAR);
    (void)H5Adelete(meta, "version");
    AUTO_H5 hid_t attr = H5Acreate2(meta, "version", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attr, H5T_NATIVE_INT, &(int){ 99 }) >= 0);
}
static void odd_run(hid_t f)
{
    (void)H5Lmove(f, "/runs/3", f, "/runs/x3", H5P_DEFAULT, H5P_DEFAULT);
}
static void padded_run(hid_t f)
{
    (void)H5Lmove(f, "/runs/3", f, "/runs/03", H5P_DEFAULT, H5P_DEFAULT);
}
static void run_is_a_set(hid_t f)
{
    set_array(f, "/runs/3", H5T_NATIVE_INT, 1, 1, (int[]){ 1 });
}
static void no_model(hid_t f)
{
    (void)H5Adelete_by_name(f, "/runs/3", "model", H5P_DEFAULT);
}
static void model_with_newline(hid_t f)
{
    set_text(f, "/runs/3", "model", "a\nb");
}
static void odd_status(hid_t f)
{
    set_text(f, "/runs/3", "status", "lost");
}
static void broken_hyper(hid_t f)
{
    set_text(f, "/runs/3", "hyper", "{\"a\":");
}
static void list_system(hid_t f)
{
    set_text(f, "/runs/3", "system", "[1]");
}
static void text_startup(hid_t f)
{
    set_text(f, "/runs/3", "startup_s", "soon");
}
static void no_epochs(hid_t f)
{
    (void)H5Ldelete(f, "/runs/3/epochs", H5P_DEFAULT);
}
static void plain_epochs(hid_t f)
{
    set_array(f, "/runs/3/epochs", H5T_NATIVE_DOUBLE, 1, 1, (double[]){ 1 });
}
static void flat_value(hid_t f)
{
    set_array(f, "/runs/3/samples/value", H5T_NATIVE_DOUBLE, 1, 1, (double[]){ 1 });
}
static void narrow_value(hid_t f)
{
    set_array(f, "/runs/3/samples/value", H5T_NATIVE_DOUBLE, 2, 3, (double[]){ 1, 2, 3 });
}
static void odd_state(hid_t f)
{
    AUTO_H5 hid_t set = H5Dopen2(f, "/runs/3/samples/state", H5P_DEFAULT);
    unsigned char states[3 * 59] = { 17 };
    (void)H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, states);
}
static void long_samples(hid_t f) /* that claim more than there is room for, and hold nothing */
{
    AUTO_H5 hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    AUTO_H5 hid_t space = H5Screate_simple(1, (const hsize_t[]){ (hsize_t)1 << 40 }, NULL);
    (void)H5Pset_chunk(properties, 1, (const hsize_t[]){ 1024 });
    (void)H5Ldelete(f, "/runs/3/samples/t_ns", H5P_DEFAULT);
    AUTO_H5 hid_t set =
        H5Dcreate2(f, "/runs/3/samples/t_ns", H5T_NATIVE_INT64, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
}
static void soft_link(hid_t f)
{
    (void)H5Lmove(f, "/runs/3", f, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    (void)H5Lcreate_soft("/elsewhere", f, "/runs/3", H5P_DEFAULT, H5P_DEFAULT);
}
static void external_link(hid_t f)
{
    (void)H5Ldelete(f, "/meta", H5P_DEFAULT);
    (void)H5Lcreate_external("/etc/passwd", "/meta", f, "/meta", H5P_DEFAULT, H5P_DEFAULT);
}
static void external_data(hid_t f)
{
    AUTO_H5 hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    AUTO_H5 hid_t space = H5Screate_simple(1, (const hsize_t[]){ 3 }, NULL);
    (void)H5Pset_external(properties, "/etc/passwd", 0, 24);
    (void)H5Ldelete(f, "/runs/3/samples/t_ns", H5P_DEFAULT);
    AUTO_H5 hid_t set =
        H5Dcreate2(f, "/runs/3/samples/t_ns", H5T_NATIVE_INT64, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
}
static void group_in_itself(hid_t f)
{
    (void)H5Ldelete(f, "/runs/3", H5P_DEFAULT);
    (void)H5Lcreate_hard(f, "/runs", f, "/runs/3", H5P_DEFAULT, H5P_DEFAULT);
}

static void no_policy(hid_t f)
{
    (void)H5Adelete_by_name(f, "/tuner", "policy", H5P_DEFAULT);
}
static void policy_with_newline(hid_t f)
{
    set_text(f, "/tuner", "policy", "a\nb");
}
static void no_log(hid_t f)
{
    (void)H5Ldelete(f, "/tuner/log", H5P_DEFAULT);
}
static void numeric_log(hid_t f)
{
    set_array(f, "/tuner/log", H5T_NATIVE_INT, 1, 1, (int[]){ 1 });
}
static void log_with_newline(hid_t f)
{
    AUTO_H5 hid_t text = trace_h5_text_type();
    set_array(f, "/tuner/log", text, 1, 1, (const char *[]){ "b 1 0\nb 2 0" });
}
static void long_log(hid_t f)
{
    AUTO_H5 hid_t text = trace_h5_text_type();
    AUTO_H5 hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    AUTO_H5 hid_t space = H5Screate_simple(1, (const hsize_t[]){ (hsize_t)1 << 40 }, NULL);
    (void)H5Pset_chunk(properties, 1, (const hsize_t[]){ 1024 });
    (void)H5Ldelete(f, "/tuner/log", H5P_DEFAULT);
    AUTO_H5 hid_t set = H5Dcreate2(f, "/tuner/log", text, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
}
static void plain_decisions(hid_t f)
{
    set_array(f, "/tuner/decisions", H5T_NATIVE_INT, 1, 1, (int[]){ 1 });
}
static void decisions_of(hid_t f, bool numbers)
{
    struct row {
        double seq, trial, t_s;
    } rows[1] = { { 1, 1, 1 } };
    AUTO_H5 hid_t table = H5Tcreate(H5T_COMPOUND, sizeof(struct row));
    (void)H5Tinsert(table, "seq", offsetof(struct row, seq), H5T_NATIVE_DOUBLE);
    (void)H5Tinsert(table, "trial", offsetof(struct row, trial), H5T_NATIVE_DOUBLE);
    if (numbers)
        (void)H5Tinsert(table, "t_s", offsetof(struct row, t_s), H5T_NATIVE_DOUBLE);
    set_array(f, "/tuner/decisions", table, 1, 1, rows);
}
static void decisions_without_texts(hid_t f)
{
    decisions_of(f, true);
}
static void decisions_without_times(hid_t f)
{
    decisions_of(f, false);
}
static void tuner_elsewhere(hid_t f)
{
    (void)H5Lmove(f, "/tuner", f, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    (void)H5Lcreate_soft("/elsewhere", f, "/tuner", H5P_DEFAULT, H5P_DEFAULT);
}

static void test_other_hdf5_is_refused(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *want;
        void (*damage)(hid_t f);
    } cases[] = {
        { "no meta", "'meta' is missing", no_meta },
        { "no runs", "'runs' is missing", no_runs },
        { "features that are numbers", "'features' is no list", numeric_features },
        { "a newer version", "'version' is of a newer pipetune", newer_version },
        { "a run that is no number", "'x3' is not the number of a run", odd_run },
        { "a run of another spelling", "'03' is not the number of a run", padded_run },
        { "a run that is a dataset", "'3' is no group", run_is_a_set },
        { "no model", "run 3: 'model' is missing", no_model },
        { "a model in two lines", "'model' is no name", model_with_newline },
        { "a status of its own", "'status' is none of complete", odd_status },
        { "hyperparameters cut short", "'hyper' is no JSON object", broken_hyper },
        { "a setting that is a list", "'system' is no JSON object", list_system },
        { "a start-up that is a text", "'startup_s' is no number", text_startup },
        { "no epochs", "'epochs' is missing", no_epochs },
        { "epochs that are no table", "'epochs' is no table", plain_epochs },
        { "values in one dimension", "'value' has not two dimensions", flat_value },
        { "values of fewer features", "'value' has another size", narrow_value },
        { "a state that is none", "'state' holds a number that is no state", odd_state },
        { "a trillion samples", "'t_ns' has too many rows", long_samples },
        { "a soft link", "'3' is a link that leads elsewhere", soft_link },
        { "a link into another file", "'meta' is a link that leads elsewhere", external_link },
        { "data in another file", "'t_ns' keeps its data outside", external_data },
        { "runs within runs for ever", "run 3: 'model' is missing", group_in_itself },
        { "a tuner without a policy", "the tuner: 'policy' is missing", no_policy },
        { "a policy in two lines", "'policy, study' are no names", policy_with_newline },
        { "no log", "the tuner: 'log' is missing", no_log },
        { "a log of numbers", "'log' holds no texts", numeric_log },
        { "two entries in one", "'log' holds what is not one line", log_with_newline },
        { "a trillion entries", "'log' has too many rows", long_log },
        { "decisions that are no table", "'decisions' is no table", plain_decisions },
        { "decisions without texts", "'decisions' has no columns 'kind'", decisions_without_texts },
        { "decisions without times", "'decisions' has no columns 'seq'", decisions_without_times },
        { "a tuner that is a link", "'tuner' is a link that leads elsewhere", tuner_elsewhere },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace t = { 0 };
        struct err e = { 0 };
        hid_t file = reopened(w->path);
        cases[i].damage(file);
        assert_true(H5Fclose(file) >= 0);
        int rc = trace_read(&t, w->path, &e);
        if (rc != -EPROTO || !strstr(e.text, cases[i].want))
            fail_msg("%s: got %d, '%s', want '%s'", cases[i].name, rc, e.text, cases[i].want);
    }
}

/* Strings of fixed length, whole numbers in a table, columns in another order and fewer of them: what other tools write. */
static void test_the_dialects_of_others_are_read(void **state)
{
    struct world *w = *state;
    struct row {
        int32_t records;
        float duration_s;
    } rows[2] = { { 60000, 12.5F }, { 60001, 13 } };
    hid_t file = reopened(w->path);
    AUTO_H5 hid_t table = H5Tcreate(H5T_COMPOUND, sizeof(struct row));
    AUTO_H5 hid_t fixed = H5Tcopy(H5T_C_S1);
    (void)H5Tinsert(table, "records", offsetof(struct row, records), H5T_NATIVE_INT32);
    (void)H5Tinsert(table, "duration_s", offsetof(struct row, duration_s), H5T_NATIVE_FLOAT);
    (void)H5Tset_size(fixed, 4);
    (void)H5Tset_strpad(fixed, H5T_STR_NULLPAD);
    char names[59][4];
    memset(names, 'x', sizeof names);
    set_array(file, "/runs/2/epochs", table, 1, 2, rows);
    set_array(file, "/meta/features", fixed, 1, 59, names);
    (void)H5Adelete_by_name(file, "/runs/2", "startup_s", H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    struct trace t = { 0 };
    struct err e = { 0 };
    if (trace_read(&t, w->path, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(t.features.v[58], "xxxx");
    assert_true(t.runs[2].epochs[1].duration_s == 13 && t.runs[2].epochs[1].records == 60001);
    assert_true(isnan(t.runs[2].epochs[1].start_s) && isnan(t.runs[2].startup_s));
    trace_done(&t);
}

/* --- failures --- */

static void test_write_leaves_the_old_file_whatever_fails(void **state)
{
    struct world *w = *state;
    struct trace t = { 0 };
    fill(&t);
    struct trace empty = { 0 };
    struct err e = { 0 };
    assert_int_equal(trace_write(&empty, w->path, &e), 0);
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct trace back = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_WRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_OPEN, nth);
        rc = trace_write(&t, w->path, &e);
        fault_disarm();
        assert_int_equal(trace_read_here(&back, w->path, &e), 0);
        assert_true(back.n == 0 || back.n == 12); /* the folder's own fsync comes behind the rename */
        trace_done(&back);
    }
    trace_done(&t);
}

static void test_read_whatever_fails(void **state)
{
    struct world *w = *state;
    write_one(w->path);
    int rc = -EIO;
    unsigned nth = 1;
    for (; rc < 0; nth++) {
        struct trace t = { 0 };
        struct err e = { 0 };
        assert_true(nth < 4000);
        fault_arm(FAULT_ALLOC | FAULT_OPEN | FAULT_FORK, nth);
        rc = trace_read(&t, w->path, &e);
        fault_disarm();
        assert_true(rc == 0 || (e.text[0] && !t.runs));
        trace_done(&t);
    }
    assert_true(nth > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_written_is_read, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_the_same_trace_is_the_same_bytes, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_an_empty_trace, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_a_tuner_that_was_told_nothing, make_world, remove_world),
        cmocka_unit_test(test_a_timeline_survives),
        cmocka_unit_test(test_settings_are_found_however_written),
        cmocka_unit_test(test_an_epoch_of_several_settings_stands_for_none),
        cmocka_unit_test(test_a_first_epoch_that_another_attempt_trained),
        cmocka_unit_test(test_a_timeline_whatever_fails),
        cmocka_unit_test_setup_teardown(test_other_files_are_refused, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_truncated_files_are_refused, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_damaged_files_never_crash, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_other_hdf5_is_refused, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_the_dialects_of_others_are_read, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_write_leaves_the_old_file_whatever_fails, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_read_whatever_fails, make_world, remove_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
