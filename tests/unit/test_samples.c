/* Samples and profiles in the store. */
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

#include "base/buf.h"
#include "base/own.h"
#include "store/samples.h"
#include "tests/cells.h"
#include "tests/fault.h"

struct fix {
    char dir[64];
    char path[96];
    struct store *s;
    int64_t trial, other;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int64_t add_trial(struct fix *f, int64_t study, int number)
{
    struct store_trial t = { .study = study, .number = number, .seconds = NAN };
    t.state = t.hyper = (char *)(uintptr_t) "{}";
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    return t.id;
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-samples-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
    struct store_study row = { 0 };
    row.name = row.state = row.config = (char *)(uintptr_t) "s";
    int64_t study = 0;
    assert_ok(f, store_study_add(f->s, &row, &study, &f->e));
    f->trial = add_trial(f, study, 1);
    f->other = add_trial(f, study, 2);
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

static struct store_sample a_sample(double t_ms, int node, const char *cells)
{
    return (struct store_sample){
        .t_ms = t_ms, .dt_ms = 1000.25, .node = node, .scope = "process", .v = cells ? cells_of(cells) : NULL
    };
}

static void add(struct fix *f, int64_t trial, double t_ms, int node, const char *cells)
{
    struct store_sample r = a_sample(t_ms, node, cells);
    assert_ok(f, store_sample_add(f->s, trial, &r, &f->e));
}

static int put_sample(void *ctx, const struct store_sample *r)
{
    buf_printf(ctx, "%.3f+%g@%d %s [", r->t_ms, r->dt_ms, r->node, r->scope);
    if (r->v)
        cells_put(ctx, r->v);
    buf_printf(ctx, "%s]\n", r->why ? r->why : "");
    return 0;
}

static int stop_at_second(void *ctx, const struct store_sample *r)
{
    (void)r;
    return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void test_samples_come_in_the_order_of_their_time(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->trial, 1700000002000.125, 0, "3 n");
    add(f, f->trial, 1700000001000.5, 1, "2/0.5");
    add(f, f->trial, 1700000001000.5, 0, "1");
    add(f, f->trial, 1700000001000.5, 0, "");
    add(f, f->other, 1, 0, "7");
    assert_ok(f, store_commit(f->s, &f->e));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_string_equal(buf_text(&got), "1700000001000.500+1000.25@0 process [1]\n"
                                        "1700000001000.500+1000.25@0 process []\n"
                                        "1700000001000.500+1000.25@1 process [2/0.5]\n"
                                        "1700000002000.125+1000.25@0 process [3 n]\n");
    int n = 0;
    assert_int_equal(store_samples(f->s, f->trial, stop_at_second, &n, &f->e), -ECANCELED);
    assert_int_equal(n, 2);
}

static void in_the_store(struct fix *f, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int sum_cpu(void *ctx, const struct store_sample *r)
{
    *(double *)ctx += r->cpu_s;
    return 0;
}

static void test_names_are_kept_once_for_a_study(void **state)
{
    struct fix *f = *state;
    add(f, f->trial, 1, 0, "1");
    add(f, f->other, 2, 0, "2");
    add(f, f->trial, 3, 0, "3");
    in_the_store(f, "CREATE TABLE one(n INTEGER CHECK(n = 1)); INSERT INTO one SELECT count(*) FROM features");
}

/* What another version wrote, which had one feature that we don't know, and one of ours elsewhere. */
static void test_another_versions_values_are_found_by_name(void **state)
{
    struct fix *f = *state;
    in_the_store(
        f, "INSERT INTO features(id, study, names) SELECT 77, id, 'gpu/load,proc/cpu-time,node-stores' FROM studies;"
           "INSERT INTO samples(trial, t_ms, dt_ms, node, scope, cells, cpu_s, features, value)"
           " SELECT id, 5, 1, 0, 'process', '', 0.5, 77, x'' FROM trials WHERE number = 1;"
           "UPDATE samples SET value = x'0303000000000000004540';");
    add(f, f->trial, 6, 0, "1");
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    AUTO_BUF struct buf want = BUF_INIT;
    struct reading v[FEATURES];
    memcpy(v, cells_of("42"), sizeof v);
    v[FEATURE_PROC_CPU_TIME] = (struct reading){ .value = NAN, .state = READING_UNSUPPORTED };
    buf_puts(&want, "5.000+1@0 process [");
    cells_put(&want, v);
    buf_puts(&want, "]\n6.000+1000.25@0 process [1]\n");
    assert_string_equal(buf_text(&got), buf_text(&want));
}

/* Text without names. */
static void test_an_older_versions_samples_are_still_read(void **state)
{
    struct fix *f = *state;
    AUTO_BUF struct buf sql = BUF_INIT, got = BUF_INIT;
    buf_puts(&sql,
             "INSERT INTO samples(trial, t_ms, dt_ms, node, scope, cells) SELECT id, 5, 1, 0, 'process', '1 2.5/0.25");
    for (int i = 2; i < FEATURE_PROC_CPU_TIME; i++)
        buf_puts(&sql, " u");
    buf_puts(&sql, " 0.75' FROM trials WHERE number = 1");
    in_the_store(f, buf_text(&sql));
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_non_null(strstr(buf_text(&got), "[1 2.5/0.25 u "));
    double cpu_s = 0;
    assert_ok(f, store_samples(f->s, f->trial, sum_cpu, &cpu_s, &f->e));
    assert_true(cpu_s == 0.75);
}

static void test_what_cannot_be_read_says_why_and_stops_nothing(void **state)
{
    struct fix *f = *state;
    static const struct {
        const char *name, *sql, *want;
    } cases[] = {
        { "a value that is cut off", "UPDATE samples SET value = x'00' WHERE t_ms = 1", "cell 1" },
        { "no names", "UPDATE samples SET features = 99 WHERE t_ms = 1", "not named" },
        { "text that is none", "UPDATE samples SET features = 0, cells = '1 banana' WHERE t_ms = 1", "cell 2" },
        { "thinned", "UPDATE samples SET features = 1, value = NULL WHERE t_ms = 1", "[]" },
    };
    add(f, f->trial, 1, 0, "1");
    add(f, f->trial, 2, 0, "2");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        in_the_store(f, cases[i].sql);
        assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
        const char *second = strchr(buf_text(&got), '\n');
        if (!strstr(buf_text(&got), cases[i].want) || !second || !strstr(second, "[2]"))
            fail_msg("%s: got %s", cases[i].name, buf_text(&got));
    }
}

static void test_a_sample_that_does_not_fit_is_explained(void **state)
{
    struct fix *f = *state;
    struct store_sample r = a_sample(1, 0, NULL);
    assert_int_equal(store_sample_add(f->s, f->trial, &r, &f->e), -EINVAL);
    r = a_sample(NAN, 0, "1");
    assert_int_equal(store_sample_add(f->s, f->trial, &r, &f->e), -EINVAL);
    r = a_sample(1, 0, "1");
    assert_int_equal(store_sample_add(f->s, 999, &r, &f->e), -ENOENT);
    assert_non_null(strstr(f->e.text, f->path));
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static void test_a_batch_that_is_rolled_back_leaves_nothing(void **state)
{
    struct fix *f = *state;
    assert_ok(f, store_begin(f->s, &f->e));
    add(f, f->trial, 1, 0, "1");
    add(f, f->trial, 2, 0, "2");
    store_rollback(f->s);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_samples(f->s, f->trial, put_sample, &got, &f->e));
    assert_int_equal(got.len, 0);
}

static int put_profile(void *ctx, const struct store_profile *r)
{
    buf_printf(ctx, "%d: epoch %d, %g-%g %s %s %s\n", (int)r->seq, r->epoch, r->t_from_ms, r->t_to_ms,
               r->setting ? r->setting : "-", r->vector, r->verdict ? r->verdict : "-");
    return 0;
}

static void test_profiles_are_numbered_within_their_trial(void **state)
{
    struct fix *f = *state;
    struct store_profile whole = {
        .epoch = 2, .t_from_ms = 10, .t_to_ms = 20.5, .setting = "{\"cores\":2}", .vector = "[1]", .verdict = "{}"
    };
    struct store_profile bare = { .epoch = 3, .t_from_ms = 20.5, .t_to_ms = NAN, .vector = "[2]" };
    assert_ok(f, store_profile_add(f->s, f->trial, &whole, &f->e));
    assert_int_equal(whole.seq, 1);
    assert_ok(f, store_profile_add(f->s, f->trial, &bare, &f->e));
    assert_int_equal(bare.seq, 2);
    assert_ok(f, store_profile_add(f->s, f->other, &whole, &f->e));
    assert_int_equal(whole.seq, 1);
    AUTO_BUF struct buf got = BUF_INIT;
    assert_ok(f, store_profiles(f->s, f->trial, put_profile, &got, &f->e));
    assert_string_equal(buf_text(&got), "1: epoch 2, 10-20.5 {\"cores\":2} [1] {}\n"
                                        "2: epoch 3, 20.5-nan - [2] -\n");
}

static void test_a_profile_without_a_vector_is_refused(void **state)
{
    struct fix *f = *state;
    struct store_profile r = { .epoch = 1 };
    assert_int_equal(store_profile_add(f->s, f->trial, &r, &f->e), -EINVAL);
    assert_int_equal(r.seq, 0);
    r.vector = "[]";
    assert_int_equal(store_profile_add(f->s, 999, &r, &f->e), -ENOENT);
    assert_int_equal(r.seq, 0);
}

/* A second connection, so that no statement is ready yet. */
static int scenario(struct fix *f)
{
    struct store *s = NULL;
    int rc = store_open(&s, f->path, STORE_WRITE, &f->e);
    if (rc < 0)
        return rc;
    struct store_sample sample = a_sample(1, 0, "1");
    struct store_profile profile = { .epoch = 1, .vector = "[]" };
    AUTO_BUF struct buf got = BUF_INIT;
    rc = store_begin(s, &f->e);
    if (rc == 0)
        rc = store_sample_add(s, f->trial, &sample, &f->e);
    if (rc == 0)
        rc = store_profile_add(s, f->trial, &profile, &f->e);
    if (rc == 0)
        rc = store_commit(s, &f->e);
    else
        store_rollback(s);
    if (rc == 0)
        rc = store_samples(s, f->trial, put_sample, &got, &f->e);
    if (rc == 0)
        rc = store_profiles(s, f->trial, put_profile, &got, &f->e);
    store_close(s);
    return rc;
}

static int count_sample(void *ctx, const struct store_sample *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static int count_profile(void *ctx, const struct store_profile *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static void test_memory_that_runs_out_leaves_sample_and_profile_or_neither(void **state)
{
    struct fix *f = *state;
    bool hit = true;
    unsigned nth = 1;
    for (; hit; nth++) {
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        int rc = scenario(f);
        hit = fault_disarm();
        if (rc != 0 && rc != -ENOMEM)
            fail_msg("allocation %u: got %d: %s", nth, rc, f->e.text);
        int samples = 0, profiles = 0;
        assert_ok(f, store_samples(f->s, f->trial, count_sample, &samples, &f->e));
        assert_ok(f, store_profiles(f->s, f->trial, count_profile, &profiles, &f->e));
        assert_int_equal(samples, profiles);
        assert_true(rc < 0 || samples > 0);
    }
    assert_true(nth > 5); /* there were calls to fail */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_samples_come_in_the_order_of_their_time),
        T(test_names_are_kept_once_for_a_study),
        T(test_another_versions_values_are_found_by_name),
        T(test_an_older_versions_samples_are_still_read),
        T(test_what_cannot_be_read_says_why_and_stops_nothing),
        T(test_a_sample_that_does_not_fit_is_explained),
        T(test_a_batch_that_is_rolled_back_leaves_nothing),
        T(test_profiles_are_numbered_within_their_trial),
        T(test_a_profile_without_a_vector_is_refused),
        T(test_memory_that_runs_out_leaves_sample_and_profile_or_neither),
    };
    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
