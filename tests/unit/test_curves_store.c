/* Tables of curves in files and from a store: a trace keeps one as it was; a study's trials become one. */
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
#include "store/curves_study.h"
#include "store/curves_trace.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

static const char table[] =
    "{\"format\":\"curves\",\"metric\":\"f1\",\"direction\":\"max\",\"epochs\":3,\"hyper\":{"
    "\"lr\":{\"min\":0.001,\"max\":1,\"scale\":\"log\"},\"n\":{\"range\":[8,0,-2]},\"opt\":[\"a\",\"b\"],\"one\":[3]}}"
    "\n"
    "{\"hyper\":{\"lr\":0.1,\"n\":2,\"opt\":\"a\",\"one\":3},\"values\":[0.1,0.25,0.5],\"seconds\":[1,2,2.5]}\n"
    "{\"hyper\":{\"lr\":0.2,\"n\":8,\"opt\":\"b\",\"one\":3},\"values\":[0.1,null,null],\"joules\":[4,4,4]}\n"
    "{\"hyper\":{\"lr\":0.3,\"n\":8,\"opt\":\"b\",\"one\":3},\"values\":[0.1]}\n";

static void put(struct buf *b, const struct curves *c)
{
    curves_put_head(b, c->metric, c->maximise, c->epochs, NULL);
    for (size_t i = 0; i < c->n; i++) {
        struct point p = space_point_at(&c->space, i);
        AUTO_JSON json_t *hyper = space_point_json(&c->space, &p);
        curves_put(b, hyper, &c->v[i]);
    }
}

static void test_a_trace_keeps_a_table(void **state)
{
    (void)state;
    struct curves c = { 0 }, back = { 0 };
    struct trace t = { 0 }, read = { 0 };
    struct err e = { 0 };
    char path[] = "/tmp/pipetune-curves-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    AUTO_BUF struct buf want = BUF_INIT, got = BUF_INIT;
    if (curves_parse(&c, "t", table, strlen(table), &e) < 0 || curves_to_trace(&t, &c) < 0 ||
        trace_default_features(&t) < 0 || trace_write(&t, path, &e) < 0 || trace_read(&read, path, &e) < 0 ||
        curves_of_trace(&back, &read, "t.h5", &e) < 0)
        fail_msg("%s", e.text);
    put(&want, &c);
    put(&got, &back);
    assert_string_equal(buf_text(&got), buf_text(&want));
    assert_int_equal(back.n, 3);
    assert_true(isnan(back.v[1].values[1]));
    assert_true(back.space.dims[1].min == 2 && back.space.dims[1].max == 8);
    trace_done(&t);
    trace_done(&read);
    curves_done(&c);
    curves_done(&back);
    assert_int_equal(unlink(path), 0);
}

static void test_other_traces_hold_none(void **state)
{
    (void)state;
    struct trace t = { 0 };
    struct curves c = { 0 };
    struct err e = { 0 };
    assert_int_equal(curves_of_trace(&c, &t, "t.h5", &e), -EINVAL);
    assert_non_null(strstr(e.text, "'t.h5' holds no curves"));
    assert_non_null(trace_add(&t));
    assert_int_equal(curves_of_trace(&c, &t, "t.h5", &e), -EINVAL);
    trace_done(&t);
}

static void add_trial(struct store *s, int64_t study, int number, int copy_of, const char *hyper, const double *metric,
                      int gap)
{
    struct err e = { 0 };
    struct store_trial t = { .study = study,
                             .number = number,
                             .proposal = (uint64_t)number,
                             .state = TEXT("finished"),
                             .epochs = 3,
                             .hyper = TEXT(hyper),
                             .requested = TEXT("{}"),
                             .effective = TEXT("{}"),
                             .copy_of = copy_of };
    assert_int_equal(store_trial_add(s, &t, &e), 0);
    for (int i = 0; metric[i] > 0; i++) {
        struct store_epoch row = {
            .trial = t.id, .epoch = i + 1 + (i >= gap), .attempt = 1, .metric = metric[i], .seconds = 2
        };
        assert_int_equal(store_epoch_put(s, &row, &e), 0);
    }
}

static void test_a_study_is_a_table(void **state)
{
    (void)state;
    struct store *s = NULL;
    struct err e = { 0 };
    char dir[] = "/tmp/pipetune-curves-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/p.db", dir);
    assert_int_equal(store_open(&s, path, STORE_WRITE, &e), 0);
    struct store_study study = {
        .name = TEXT("s"),
        .state = TEXT("finished"),
        .config =
            TEXT("{\"study\": {\"metric\": \"acc\", \"epochs\": 3}, \"hyperParameters\": {\"x\": [1, 2, 3, 4, 5]}}"),
        .provenance = TEXT("{}"),
        .maximise = true
    };
    assert_int_equal(store_study_add(s, &study, &study.id, &e), 0);
    add_trial(s, study.id, 1, 0, "{\"x\": 1}", (const double[]){ 0.5, 0.6, 0.7, 0 }, 9);
    add_trial(s, study.id, 2, 0, "{\"x\": 2}", (const double[]){ 0.4, 0 }, 9);
    add_trial(s, study.id, 3, 0, "{\"x\": 3}", (const double[]){ 0 }, 9);
    add_trial(s, study.id, 4, 1, "{\"x\": 4}", (const double[]){ 0.5, 0 }, 9);
    add_trial(s, study.id, 5, 0, "{\"x\": 5}", (const double[]){ 0.3, 0.9, 0 }, 1);
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(curves_put_study(&b, s, &study, &e), 3);
    struct curves c = { 0 };
    if (curves_parse(&c, "s", buf_text(&b), b.len, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.metric, "acc");
    assert_true(c.n == 3 && c.maximise && c.epochs == 3);
    assert_true(c.v[0].n == 3 && c.v[0].values[2] == 0.7 && c.v[0].seconds[2] == 2);
    assert_true(c.v[1].n == 1 && c.v[2].n == 1 && c.v[2].values[0] == 0.3);
    curves_done(&c);
    store_close(s);
    assert_int_equal(unlink(path) | rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trace_keeps_a_table),
        cmocka_unit_test(test_other_traces_hold_none),
        cmocka_unit_test(test_a_study_is_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
