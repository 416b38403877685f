/* Recorded runs as examples: what stands in which cell, which runs have none, and the file as others read it. */
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

#include "base/own.h"
#include "monitoring/features.h"
#include "store/jobs.h"
#include "store/trace_h5.h"
#include "tests/fault.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

static void expect(const char *what, double got, double want)
{
    bool none = isnan(got) && isnan(want);
    if (!none && !(fabs(got - want) < 1e-9))
        fail_msg("%s: got %.17g, want %.17g", what, got, want);
}

static double cell(const struct jobs *j, size_t job, size_t step, const char *feature)
{
    return j->x[job * JOBS_CELLS + step * JOBS_FEATURES + (size_t)feature_index(feature)];
}

static struct trace_run *add_run(struct trace *t, enum timeline_status status, double startup_s)
{
    struct trace_run *r = trace_add(t);
    assert_non_null(r);
    r->model = strdup("m");
    r->dataset = strdup("d");
    r->status = status;
    r->startup_s = startup_s;
    r->epochs = calloc(2, sizeof *r->epochs);
    r->n_epochs = 2;
    r->epochs[0] = r->epochs[1] = trace_no_epoch();
    r->epochs[0].duration_s = 20;
    r->epochs[1].duration_s = 10;
    return r;
}

static void put(struct trace_samples *s, const struct trace *t, size_t row, const char *feature, double value,
                enum trace_state state)
{
    for (size_t f = 0; f < t->features.n; f++)
        if (strcmp(t->features.v[f], feature) == 0) {
            s->value[row * t->features.n + f] = value;
            s->state[row * t->features.n + f] = (uint8_t)state;
        }
}

/* Features in another order than ours, with a stranger among them. */
static void make_trace(struct trace *t)
{
    static const char *const names[] = { "proc/rss", "foreign", "instructions", "cache-misses", "log/gc-time" };
    *t = (struct trace){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        strv_add(&t->features, names[i]);
}

static void add_samples(struct trace *t, struct trace_run *r, size_t n)
{
    assert_int_equal(trace_samples_init(&r->samples, n, t->features.n), 0);
    for (size_t i = 0; i < n; i++)
        r->samples.t_ns[i] = (int64_t)i * 1000000000;
}

static void counts_are_rates_and_gauges_are_means(void **state)
{
    (void)state;
    struct trace t;
    struct jobs j;
    struct err e;
    make_trace(&t);
    struct trace_run *r = add_run(&t, RUN_COMPLETE, 3);
    add_samples(&t, r, 60);
    struct trace_samples *s = &r->samples;
    put(s, &t, 0, "instructions", 999, TRACE_OK); /* nobody knows since when */
    put(s, &t, 1, "instructions", 500, TRACE_OK);
    put(s, &t, 2, "instructions", 700, TRACE_MULTIPLEXED);
    put(s, &t, 3, "instructions", 800, TRACE_DENIED);
    put(s, &t, 1, "proc/rss", 4096, TRACE_OK);
    put(s, &t, 1, "foreign", 1, TRACE_OK);
    put(s, &t, 1, "log/gc-time", 1, TRACE_OK); /* is not among the 72 */
    put(s, &t, 41, "instructions", 5, TRACE_OK);
    s->t_ns[41] += 500000000;
    /* Two samples within the 11th second: half a second each. */
    s->t_ns[11] -= 500000000;
    s->t_ns[12] -= 1000000000;
    put(s, &t, 11, "instructions", 10, TRACE_OK);
    put(s, &t, 12, "instructions", 30, TRACE_OK);
    assert_int_equal(jobs_of_trace(&j, &t, &e), 0);
    assert_int_equal(j.n, 1);
    expect("a run's time", j.y[0], 33);
    expect("a rate", cell(&j, 0, 0, "instructions"), 500);
    expect("one that was scaled", cell(&j, 0, 1, "instructions"), 700);
    expect("one that was denied", cell(&j, 0, 2, "instructions"), NAN);
    expect("two in one second", cell(&j, 0, 10, "instructions"), 40);
    expect("a gauge", cell(&j, 0, 0, "proc/rss"), 4096);
    expect("never measured", cell(&j, 0, 0, "cache-misses"), NAN);
    expect("a feature that the trace has not", cell(&j, 0, 0, "branches"), NAN);
    jobs_done(&j);
    trace_done(&t);
}

static void runs_without_a_time_or_samples_are_left_out(void **state)
{
    (void)state;
    struct trace t;
    struct jobs j;
    struct err e;
    make_trace(&t);
    add_samples(&t, add_run(&t, RUN_PARTIAL, 3), 5);
    add_samples(&t, add_run(&t, RUN_COMPLETE, NAN), 5);
    (void)add_run(&t, RUN_COMPLETE, 3);               /* no samples */
    add_samples(&t, add_run(&t, RUN_COMPLETE, 3), 5); /* of which nothing was measured */
    for (size_t i = 0; i < 2; i++)
        put(&t.runs[i].samples, &t, 1, "instructions", 5, TRACE_OK);
    add_samples(&t, add_run(&t, RUN_COMPLETE, 4), 5);
    put(&t.runs[4].samples, &t, 1, "instructions", 5, TRACE_OK);
    assert_int_equal(jobs_of_trace(&j, &t, &e), 0);
    assert_int_equal(j.n, 1);
    assert_int_equal(j.runs[0], 4);
    expect("its time", j.y[0], 34);
    jobs_done(&j);
    trace_done(&t);
}

static void read_numbers(const char *path, const char *name, hsize_t *out_dims, int rank, double *out)
{
    AUTO_H5 hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    AUTO_H5 hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    AUTO_H5 hid_t space = H5Dget_space(set);
    assert_true(set >= 0);
    assert_int_equal(H5Sget_simple_extent_ndims(space), rank);
    (void)H5Sget_simple_extent_dims(space, out_dims, NULL);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
}

static void the_file_has_what_was_promised(void **state)
{
    (void)state;
    static double x[2 * JOBS_CELLS];
    double y[2] = { 12.5, 40 }, got_y[2];
    int runs[2] = { 3, 7 };
    char path[] = "/tmp/pipetune-jobs-XXXXXX";
    struct err e;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        x[i] = i % 7 == 0 ? (double)NAN : (double)i;
    struct jobs j = { x, y, runs, 2 };
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        fault_arm(FAULT_WRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_OPEN | FAULT_ALLOC, nth);
        rc = jobs_write(&j, path, &e);
        fault_disarm();
    }
    AUTO_FREE double *got = calloc(ARRAY_LEN(x), sizeof *got);
    hsize_t dims[3];
    read_numbers(path, "JOB_X", dims, 3, got);
    assert_true(dims[0] == 2 && dims[1] == 40 && dims[2] == 72);
    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        expect("a cell", got[i], x[i]);
    read_numbers(path, "JOB_Y", dims, 1, got_y);
    assert_true(dims[0] == 2 && got_y[1] == 40);
    read_numbers(path, "JOB_RUNS", dims, 1, got_y);
    assert_true(got_y[0] == 3 && got_y[1] == 7);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_rates_and_gauges_are_means),
        cmocka_unit_test(runs_without_a_time_or_samples_are_left_out),
        cmocka_unit_test(the_file_has_what_was_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
