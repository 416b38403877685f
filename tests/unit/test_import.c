#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/own.h"
#include "store/import.h"
#include "tests/fault.h"

#define TIMELINE "m,d,4,8,64,a,0,1\nm,d,4,8,64,a,1,3\nm,d,4,8,64,a,end,9\n"
#define OFFLINE "0.01,10,64,0.05,0.5,120.5,2000000\n"
#define ONLINE "50,lenet,4,0.01,64,10,1.5,2.5,4,0.05,120.5,7\n"
#define PERF " 1.0  5  branches  (50.00%)\n 1.0  6.25 msec cpu-clock\n 2.0  <not supported>  node-loads\n"
#define LOG                                                                                                            \
    "2026-11-18 10:00:01.000 INFO DistriOptimizer$: [Epoch 1 64/64][Iteration 1][Wall Clock 1.0s] Trained 64.0 "       \
    "records in "                                                                                                      \
    "1.0 seconds. Throughput is 64.0 records/second. Loss is 0.5. S's hyper parameters: Current learning rate is "     \
    "0.1.\n"                                                                                                           \
    "2026-11-18 10:00:02.000 INFO DistriOptimizer$: [Epoch 1 64/64][Iteration 1][Wall Clock 1.0s] Epoch finished. "    \
    "Wall "                                                                                                            \
    "clock time is 1000.0 ms\n"

/* Of the first run: "MODEL/DATASET STATUS START-UP SYSTEM HYPER RESULTS: DURATION …; N samples". */
static const struct {
    const char *name, *format, *text;
    bool lenient;
    int rc;
    const char *want; /* or a part of the error */
    const char *note; /* a part of the notes */
} cases[] = {
    { "a timeline", "timeline", TIMELINE, false, 0,
      "m/d complete 2 {\"cores\":4,\"memory\":8} {\"batch_size\":64} {\"log\":\"a\"}: 6; 0 samples", "" },
    { "a broken timeline", "timeline", TIMELINE "x\ny\n", false, -EINVAL,
      "'dir/f.txt' has 2 broken rows, the first in line 4", "'dir/f.txt' line 5: the row" },
    { "the rest of it", "timeline", TIMELINE "x\ny\n", true, 2,
      "m/d complete 2 {\"cores\":4,\"memory\":8} {\"batch_size\":64} {\"log\":\"a\"}: 6; 0 samples",
      "left out: 'dir/f.txt' line 5" },
    { "a timeline with holes", "timeline", TIMELINE "m,d,8,8,64,b,0,1\nm,d,8,8,64,b,end,1\n", false, 0,
      "m/d complete 2 {\"cores\":4,\"memory\":8} {\"batch_size\":64} {\"log\":\"a\"}: 6; 0 samples", "failed (1)" },
    { "a timeline of nothing", "timeline", "\n", false, -EINVAL, "'dir/f.txt' holds no row", "" },
    { "one of which nothing is left", "timeline", "x\n", true, -EINVAL, "holds no row that can be used", "line 1" },
    { "a tuning run", "tune-offline", OFFLINE, false, 0,
      "f/ complete nan {} {\"learning_rate\":0.01,\"epochs\":10,\"batch_size\":64} "
      "{\"error\":0.05,\"error_resp\":0.5,\"training_s\":120.5,\"energy_j\":2}: 120.5; 0 samples",
      "" },
    { "a broken tuning run", "tune-offline", OFFLINE "1,2\n", false, -EINVAL, "1 broken row, the first in line 2",
      "line 2" },
    { "a queue", "tune-online", ONLINE, false, 0,
      "lenet/ complete nan {\"cores\":4} {\"learning_rate\":0.01,\"batch_size\":64,\"epochs\":10} {\"load\":\"50\","
      "\"queue_s\":1.5,\"tuning_s\":2.5,\"response_s\":4,\"error\":0.05,\"training_s\":120.5,\"objective\":7}: 120.5; "
      "0 samples",
      "" },
    { "counters", "perf-stat", PERF, false, 0, "f/ complete nan {} {} {\"units\":{\"cpu-clock\":\"msec\"}}:; 2 samples",
      "" },
    { "counters among other lines, cut short", "perf-stat", "hello\n" PERF " 3.0  5  bra", false, 0,
      "f/ complete nan {} {} {\"units\":{\"cpu-clock\":\"msec\"}}:; 2 samples", "1 lines are no rows" },
    { "a text without counters", "perf-stat", "hello\n", false, -EINVAL, "holds no row", "" },
    { "a log", "bigdl-log", LOG, false, 0,
      "f/ complete nan {} {\"batch_size\":64,\"learning_rate\":0.1} {\"recoveries\":0,\"cause\":\"none\"}: 2; 0 "
      "samples",
      "" },
    { "a log of a failure", "bigdl-log", "java.lang.OutOfMemoryError: Java heap space\n", false, 0,
      "f/ failed nan {} {} {\"recoveries\":0,\"cause\":\"out_of_memory\"}:; 0 samples", "" },
    { "a log that was cut in its first epoch", "bigdl-log",
      "2026-11-18 10:00:01.000 INFO DistriOptimizer$: [Epoch 1 64/640][Iteration 1][Wall Clock 1.0s] Trained 64.0 "
      "records in 1.0 seconds. Throughput is 64.0 records/second. Loss is 0.5.\n",
      false, 0, "f/ running nan {} {\"batch_size\":64} {\"recoveries\":0,\"cause\":\"none\"}:; 0 samples", "" },
    { "a log of something else", "bigdl-log", "hello\n", false, -EINVAL, "holds no training", "" },
};

static void put_first(struct buf *b, const struct trace *t)
{
    const struct trace_run *r = &t->runs[0];
    buf_printf(b, "%s/%s %s %g %s %s %s:", r->model, r->dataset, timeline_status_name(r->status), r->startup_s,
               r->system, r->hyper, r->results);
    for (size_t i = 0; i < r->n_epochs; i++)
        buf_printf(b, " %g", r->epochs[i].duration_s);
    buf_printf(b, "; %zu samples", r->samples.n);
}

static void test_texts_become_traces(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT, notes = BUF_INIT;
        struct trace t = { 0 };
        struct err e = { 0 };
        const struct import_text in = { "dir/f.txt", cases[i].text, strlen(cases[i].text), cases[i].lenient };
        const struct import_format *format = import_find(cases[i].format);
        assert_non_null(format);
        int rc = format->run(&t, &in, &notes, &e);
        if (rc >= 0)
            put_first(&got, &t);
        bool same = rc < 0 ? strstr(e.text, cases[i].want) != NULL : strcmp(buf_text(&got), cases[i].want) == 0;
        if (rc != cases[i].rc || !same || !strstr(buf_text(&notes), cases[i].note))
            fail_msg("%s: got %d '%s' '%s', notes '%s'", cases[i].name, rc, buf_text(&got), e.text, buf_text(&notes));
        trace_done(&t);
    }
    assert_null(import_find("csv"));
}

static void test_counters_take_their_places(void **state)
{
    (void)state;
    AUTO_BUF struct buf notes = BUF_INIT;
    struct trace t = { 0 };
    struct err e = { 0 };
    assert_true(
        import_find("perf-stat")->run(&t, &(struct import_text){ "f", PERF, strlen(PERF), false }, &notes, &e) == 0);
    const struct trace_samples *s = &t.runs[0].samples;
    assert_int_equal(t.features.n, 59); /* the 58, and the clock */
    assert_string_equal(t.features.v[58], "cpu-clock");
    assert_true(s->value[58] == 6.25 && s->state[58] == TRACE_OK && s->ratio[58] == 1);
    assert_true(s->value[46] == 5 && s->state[46] == TRACE_MULTIPLEXED && s->ratio[46] == 0.5F);
    assert_true(s->state[59 + 2] == TRACE_UNSUPPORTED && isnan(s->value[59 + 2]));
    assert_true(s->state[0] == TRACE_ABSENT && s->state[59 + 46] == TRACE_ABSENT);
    assert_true(s->t_ns[1] == 2000000000);
    trace_done(&t);
}

/* Any bytes in a name become one that a trace can hold. */
static void test_odd_names_of_files(void **state)
{
    (void)state;
    static const struct {
        const char *file, *model;
    } names[] = {
        { "a/b.c/lenet.log", "lenet" },       { "lenet", "lenet" }, { ".log", ".log" }, { "caf\xE9.log", "caf_" },
        { "caf\xC3\xA9.log", "caf\xC3\xA9" }, { "a\nb", "a_b" }
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_BUF struct buf notes = BUF_INIT;
        struct trace t = { 0 };
        struct err e = { 0 };
        const struct import_text in = { names[i].file, LOG, strlen(LOG), false };
        assert_int_equal(import_find("bigdl-log")->run(&t, &in, &notes, &e), 0);
        assert_string_equal(t.runs[0].model, names[i].model);
        trace_done(&t);
    }
}

static void test_import_whatever_allocation_fails(void **state)
{
    (void)state;
    static const struct {
        const char *format, *text;
    } texts[] = { { "timeline", TIMELINE "x\n" },
                  { "tune-offline", OFFLINE },
                  { "tune-online", ONLINE },
                  { "perf-stat", PERF },
                  { "bigdl-log", LOG } };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int rc = -ENOMEM;
        for (unsigned nth = 1; rc < 0; nth++) {
            AUTO_BUF struct buf notes = BUF_INIT;
            struct trace t = { 0 };
            struct err e = { 0 };
            const struct import_text in = { "f", texts[i].text, strlen(texts[i].text), true };
            assert_true(nth < 200);
            fault_arm(FAULT_ALLOC, nth);
            rc = import_find(texts[i].format)->run(&t, &in, &notes, &e);
            bool struck = fault_disarm();
            assert_true(rc >= 0 || (rc == -ENOMEM && e.text[0]));
            rc = rc >= 0 && struck && !notes.failed ? -ENOMEM : rc; /* nothing may have been lost unnoticed */
            if (rc == -ENOMEM && !e.text[0])
                fail_msg("%s: the failure of allocation %u went unnoticed", texts[i].format, nth);
            trace_done(&t);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_become_traces),
        cmocka_unit_test(test_counters_take_their_places),
        cmocka_unit_test(test_odd_names_of_files),
        cmocka_unit_test(test_import_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
