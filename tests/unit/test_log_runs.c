#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/log_runs.h"
#include "tests/fault.h"

#define STEP(stamp, epoch, iteration)                                                                                  \
    "2026-11-18 10:00:" stamp " INFO DistriOptimizer$: [Epoch " epoch " 64/128][Iteration " iteration                  \
    "][Wall Clock 1.0s] Trained 64.0 records in 1.0 seconds. Throughput is 64.0 records/second. Loss is 0.5. "         \
    "Sequential1's hyper parameters: Current learning rate is 0.1.\n"
#define DONE(stamp, epoch, iteration)                                                                                  \
    "2026-11-18 10:00:" stamp " INFO DistriOptimizer$: [Epoch " epoch " 128/128][Iteration " iteration                 \
    "][Wall Clock 1.0s] Epoch finished. Wall clock time is 1000.0 ms\n"
#define RECOVERED "2026-11-18 10:00:30.000 INFO DistriOptimizer$: Model recover from last snapshot\n"
#define HEAP "2026-11-18 10:00:31.000 ERROR Executor: java.lang.OutOfMemoryError: Java heap space\n"

/* A run is "END batch: EPOCH(seconds) …;". */
static const struct {
    const char *name, *text, *want;
} cases[] = {
    { "two epochs",
      STEP("01.000", "1", "1") STEP("02.000", "1", "2") DONE("03.000", "1", "2") STEP("04.000", "2", "3")
          DONE("05.000", "2", "3"),
      "whole 64: 1(3) 2(2);" },
    { "a log that stops within an epoch", STEP("01.000", "1", "1") DONE("02.000", "1", "1") STEP("03.000", "2", "2"),
      "running 64: 1(2);" },
    { "one that says why", STEP("01.000", "1", "1") DONE("02.000", "1", "1") STEP("03.000", "2", "2") HEAP,
      "cut 64: 1(2);" },
    { "a failure before the first epoch is over", STEP("01.000", "1", "1") HEAP, "failed 64:;" },
    { "trained again after a recovery",
      STEP("01.000", "1", "1") DONE("02.000", "1", "1") STEP("03.000", "2", "2") DONE("04.000", "2", "2")
          RECOVERED STEP("35.000", "2", "2") DONE("37.000", "2", "2"),
      "whole 64: 1(2) 2(3);" },
    { "two trainings in one log",
      STEP("01.000", "1", "1") DONE("02.000", "1", "1") STEP("03.000", "1", "1") DONE("07.000", "1", "1"),
      "whole 64: 1(2);whole 64: 1(5);" },
    { "a trial that goes on from a checkpoint", STEP("01.000", "3", "9") DONE("02.000", "3", "9"), "whole 64: 3(2);" },
    { "a log of something else", "hello\nworld\n", "running nan:;" },
    { "nothing", "", "running nan:;" },
};

static void put_runs(struct buf *b, const struct log_runs *r)
{
    static const char *const ends[] = { "whole", "cut", "failed", "running" };
    for (size_t i = 0; i < r->n; i++) {
        buf_printf(b, "%s %g:", ends[r->runs[i].end], r->runs[i].batch);
        for (size_t k = 0; k < r->runs[i].n_epochs; k++)
            buf_printf(b, " %d(%g)", r->runs[i].epochs[k].epoch, r->runs[i].epochs[k].seconds);
        buf_putc(b, ';');
    }
}

static void test_logs_become_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf got = BUF_INIT;
        struct log_runs r;
        assert_int_equal(log_runs_parse(&r, cases[i].text, strlen(cases[i].text)), 0);
        put_runs(&got, &r);
        if (strcmp(buf_text(&got), cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, buf_text(&got), cases[i].want);
        log_runs_done(&r);
    }
    log_runs_done(NULL);
}

static void test_real_logs(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t epochs;
        enum log_run_end end;
        double batch, rate;
    } logs[] = {
        { "tests/data/logs/lenet-jvm-local.log", 2, LOG_RUN_WHOLE, 1024, 0.1 },
        { "tests/data/logs/executor-killed-recovered.log", 2, LOG_RUN_WHOLE, 1024, NAN },
        { "tests/data/logs/heap-local.log", 0, LOG_RUN_FAILED, NAN, NAN },
        { "tests/data/logs/unknown-flag.log", 0, LOG_RUN_FAILED, NAN, NAN },
    };
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        struct err e;
        struct log_runs r;
        assert_int_equal(io_read_file(&text, logs[i].file, 1 << 24, &e), 0);
        assert_int_equal(log_runs_parse(&r, buf_text(&text), text.len), 0);
        const struct log_run *run = &r.runs[0];
        if (r.n != 1 || run->n_epochs != logs[i].epochs || run->end != logs[i].end ||
            !(isnan(logs[i].batch) || run->batch == logs[i].batch) ||
            !(isnan(logs[i].rate) || run->learning_rate == logs[i].rate))
            fail_msg("%s: got %zu runs, %zu epochs, end %d, batch %g, rate %g", logs[i].file, r.n, run->n_epochs,
                     (int)run->end, run->batch, run->learning_rate);
        log_runs_done(&r);
    }
}

static void test_parse_whatever_allocation_fails(void **state)
{
    (void)state;
    static const char text[] =
        STEP("01.000", "1", "1") DONE("02.000", "1", "1") STEP("03.000", "1", "1") DONE("07.000", "1", "1");
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct log_runs r = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = log_runs_parse(&r, text, strlen(text));
        fault_disarm();
        assert_true(rc == 0 ? r.n == 2 : r.runs == NULL);
        log_runs_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logs_become_runs),
        cmocka_unit_test(test_real_logs),
        cmocka_unit_test(test_parse_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
