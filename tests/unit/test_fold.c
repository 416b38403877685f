#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/fold.h"
#include "app/lines.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/log.h"

/* --- a log, written by letters: what each of them appends --------------------------------------------------------------
 *   s  a step          e  "Epoch finished"   a  an accuracy     l  a validation's loss   c  a checkpoint
 *   r  a recovery      x  an exception       n  noise           L  LocalOptimizer's step n of 2
 *   digits: the epoch that the next lines belong to; B: the iteration goes back to the epoch's first */

struct writer {
    struct buf text;
    int epoch, step;
    int64_t ms;
};

static void stamp(struct writer *w)
{
    w->ms += 100;
    buf_printf(&w->text, "2026-11-18 10:%02d:%02d.%03d INFO DistriOptimizer$: ", (int)(w->ms / 60000),
               (int)(w->ms / 1000 % 60), (int)(w->ms % 1000));
}

static void head(struct writer *w)
{
    stamp(w);
    buf_printf(&w->text, "[Epoch %d %d/20][Iteration %d][Wall Clock 1.5s] ", w->epoch, w->step * 10,
               2 * (w->epoch - 1) + w->step);
}

static void write_letter(struct writer *w, char letter)
{
    switch (letter) {
    case 's':
        w->step++;
        head(w);
        buf_printf(&w->text,
                   "Trained 10.0 records in 0.1 seconds. Throughput is 100.0 records/second. Loss is 0.%d%d. "
                   "Sequential1's hyper parameters: Current learning rate is 0.05. ",
                   w->epoch, w->step);
        break;
    case 'L':
        w->step++;
        head(w);
        buf_printf(&w->text, "loss is 0.%d%d, iteration time is 0.1s Throughput is 100.0 record / second. ", w->epoch,
                   w->step);
        break;
    case 'e': head(w), buf_puts(&w->text, "Epoch finished. Wall clock time is 200.0 ms"); break;
    case 'a':
        head(w);
        buf_printf(&w->text, "Top1Accuracy is Accuracy(correct: %d, count: 10, accuracy: 0.%d)", w->epoch, w->epoch);
        break;
    case 'l':
        head(w);
        buf_printf(&w->text, "Loss is (Loss: 4.0, count: 10, Average Loss: 0.%d)", 9 - w->epoch);
        break;
    case 'c': stamp(w), buf_puts(&w->text, "[Wall Clock 3s] Save optimMethod x.SGD@1 to /ck/1"); break;
    case 'r': stamp(w), buf_puts(&w->text, "Model recover from last snapshot"); break;
    case 'x': buf_puts(&w->text, "java.lang.OutOfMemoryError: Java heap space"); break;
    case 'n': buf_puts(&w->text, "garbage [Epoch 9 Loss is ("); break;
    default: fail_msg("no letter '%c'", letter);
    }
    buf_putc(&w->text, '\n');
}

static char *write_log(const char *letters)
{
    struct writer w = { .epoch = 1 };
    for (; *letters; letters++) {
        if (*letters >= '1' && *letters <= '9')
            w.epoch = *letters - '0', w.step = 0;
        else if (*letters == 'B')
            w.step = 0;
        else
            write_letter(&w, *letters);
    }
    return buf_take(&w.text);
}

/* --- folding ------------------------------------------------------------------------------------------------------------ */

enum { EPOCHS_MAX = 32 };

struct folded {
    struct fold fold;
    struct fold_epoch epochs[EPOCHS_MAX];
    uint64_t safe[EPOCHS_MAX];
    size_t n;
};

static int keep(struct folded *f, const struct fold_epoch *e)
{
    assert_true(f->n < EPOCHS_MAX);
    f->safe[f->n] = f->fold.safe_offset;
    f->epochs[f->n++] = *e;
    return 0;
}

static int on_event(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct folded *f = ctx;
    struct fold_epoch e;
    return fold_report(&f->fold, ev, end, &e) ? keep(f, &e) : 0;
}

static void fold_text(struct folded *f, const char *text, uint64_t from, const char *metric)
{
    struct lines s;
    struct fold_epoch e;
    memset(f, 0, sizeof *f);
    fold_init(&f->fold, metric, from);
    lines_init(&s, &log_reader, from);
    assert_int_equal(lines_feed(&s, text + from, strlen(text + from), on_event, f), 0);
    assert_int_equal(lines_end(&s, on_event, f), 0);
    lines_done(&s);
    if (fold_end(&f->fold, &e))
        (void)keep(f, &e);
    assert_int_equal(fold_end(&f->fold, &e), 0);
}

/* "1:0.1 2:-" the epochs with their accuracies. */
static char *words(const struct folded *f)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < f->n; i++) {
        buf_printf(&b, "%s%d:", i ? " " : "", f->epochs[i].epoch);
        if (isnan(f->epochs[i].accuracy))
            buf_putc(&b, '-');
        else
            buf_printf(&b, "%.1f", f->epochs[i].accuracy);
    }
    return buf_take(&b);
}

static const struct {
    const char *name, *letters, *want;
} cases[] = {
    { "nothing", "", "" },
    { "noise", "nnn", "" },
    { "no epoch is through", "1ss", "" },
    { "one, with its results behind its end", "1sseal", "1:0.1" },
    { "two", "1sseal2sseal", "1:0.1 2:0.2" },
    { "the second is not through", "1sseal2s", "1:0.1" },
    { "without validation", "1sse2sse", "1:- 2:-" },
    { "with checkpoints", "1ssealc2ssealc", "1:0.1 2:0.2" },
    { "a checkpoint without validation", "1ssec2sse", "1:- 2:-" },
    { "a checkpoint in mid-epoch ends none", "1scsea", "1:0.1" },
    { "validation in the middle of an epoch", "1salsea", "1:0.1" },
    { "results before any step", "al1sse", "1:-" },
    { "an end before any step", "e1sse", "1:-" },
    { "noise between", "1nsnsnenanl2nsxsea", "1:0.1 2:0.2" },
    { "LocalOptimizer tells no end", "1LLal2LLal", "1:0.1 2:0.2" },
    { "LocalOptimizer without validation", "1LL2LL", "1:- 2:-" },
    { "a recovery within the epoch", "1ssealc2sxr2ssealc", "1:0.1 2:0.2" },
    { "a recovery to before the epoch", "1sseal2ssealc3sr2sseal3sseal", "1:0.1 2:0.2 2:0.2 3:0.3" },
    { "a recovery in the first epoch", "1srBsseal", "1:0.1" },
    { "a recovery in the middle of validation", "1ssealc2sser2ssealc", "1:0.1 2:0.2" },
    { "a recovery between validation and checkpoint", "1ssealc2ssealr2ssealc", "1:0.1 2:0.2" },
};

static void test_epochs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *text = write_log(cases[i].letters);
        struct folded f;
        fold_text(&f, text, 0, "accuracy");
        AUTO_FREE char *got = words(&f);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i].name, got, cases[i].want);
    }
}

static bool near(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static bool same_epoch(const struct fold_epoch *a, const struct fold_epoch *b)
{
    return a->epoch == b->epoch && a->iterations == b->iterations && a->last_iteration == b->last_iteration &&
           near(a->records, b->records) && near(a->train_loss, b->train_loss) && near(a->accuracy, b->accuracy) &&
           near(a->loss, b->loss) && near(a->metric, b->metric) && near(a->learning_rate, b->learning_rate) &&
           near(a->seconds, b->seconds) && a->start_ms == b->start_ms && a->end_ms == b->end_ms;
}

/* A driver that is killed after it stored an epoch reads on from the offset it stored with it. */
static void check_cuts(const char *name, const char *text)
{
    struct folded whole, rest;
    fold_text(&whole, text, 0, "accuracy");
    for (size_t i = 0; i < whole.n; i++) {
        assert_true(whole.safe[i] <= strlen(text) && (i == 0 || whole.safe[i] >= whole.safe[i - 1]));
        fold_text(&rest, text, whole.safe[i], "accuracy");
        if (rest.n != whole.n - i - 1)
            fail_msg("%s: cut behind epoch %zu: got %zu epochs, want %zu", name, i, rest.n, whole.n - i - 1);
        for (size_t k = 0; k < rest.n; k++)
            if (!same_epoch(&rest.epochs[k], &whole.epochs[i + 1 + k]))
                fail_msg("%s: cut behind epoch %zu: epoch %zu is another", name, i, k);
    }
}

static void test_reading_on_from_a_safe_offset_gives_the_same_epochs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *text = write_log(cases[i].letters);
        check_cuts(cases[i].name, text);
    }
}

static void test_any_order_of_lines_can_be_cut(void **state)
{
    (void)state;
    static const char letters[] = "ssssseealcrxnLB123";
    unsigned long long x = 88172645463325252ULL;
    for (int n = 0; n < 3000; n++) {
        char some[61];
        for (size_t i = 0; i < 60; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            some[i] = letters[x % (sizeof letters - 1)];
        }
        some[60] = '\0';
        AUTO_FREE char *text = write_log(some);
        check_cuts(some, text);
    }
}

static void test_the_figures_of_an_epoch(void **state)
{
    (void)state;
    AUTO_FREE char *text = write_log("1ssealc2sseal");
    struct folded f;
    fold_text(&f, text, 0, "loss");
    const struct fold_epoch *e = &f.epochs[0];
    assert_int_equal(f.n, 2);
    assert_int_equal(e->iterations, 2);
    assert_int_equal(e->last_iteration, 2);
    assert_true(near(e->records, 20) && near(e->train_loss, 0.12) && near(e->learning_rate, 0.05));
    assert_true(near(e->accuracy, 0.1) && near(e->loss, 0.8) && near(e->metric, 0.8));
    assert_true(near(e->seconds, 0.6)); /* six stamped lines, and the first step took 0.1 s */
    assert_int_equal(e->end_ms - e->start_ms, 600);
    assert_int_equal(f.epochs[1].last_iteration, 4);
    assert_true(near(f.fold.throughput, 100));
}

static void test_the_metric(void **state)
{
    (void)state;
    AUTO_FREE char *text = write_log("1sseal");
    static const struct {
        const char *metric;
        double want;
    } metrics[] = {
        { "accuracy", 0.1 }, { "Top1Accuracy", 0.1 }, { "top1accuracy", 0.1 }, { "Loss", 0.8 }, { "MAE", NAN }
    };
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
        struct folded f;
        fold_text(&f, text, 0, metrics[i].metric);
        if (!near(f.epochs[0].metric, metrics[i].want))
            fail_msg("%s: got %f, want %f", metrics[i].metric, f.epochs[0].metric, metrics[i].want);
        assert_int_equal(f.fold.has_metric, !isnan(metrics[i].want));
        assert_int_equal(f.fold.n_reported, 2);
        assert_string_equal(f.fold.reported[0], "Top1Accuracy");
        assert_string_equal(f.fold.reported[1], "Loss");
    }
}

static void test_a_cause_is_forgotten_when_training_went_on(void **state)
{
    (void)state;
    AUTO_FREE char *bad_end = write_log("1sseal2sx");
    AUTO_FREE char *went_on = write_log("1sx2sseal2sseal");
    struct folded f;
    fold_text(&f, bad_end, 0, "accuracy");
    const struct fold_seen *why = fold_cause(&f.fold, strlen(bad_end));
    assert_non_null(why);
    assert_ptr_equal(why->cause, &log_causes[CAUSE_OUT_OF_MEMORY]);
    assert_non_null(strstr(why->text, "Java heap space"));
    fold_text(&f, went_on, 0, "accuracy");
    assert_null(fold_cause(&f.fold, strlen(went_on)));
}

/* --- why it ended ------------------------------------------------------------------------------------------------------- */

#define AT "2026-11-18 10:00:00.000 "
#define OLD "26/11/18 12:00:13 "
#define STEP                                                                                                           \
    "INFO DistriOptimizer$: [Epoch 1 10/20][Iteration 1][Wall Clock 1.5s] Trained 10.0 records in 0.1 seconds.\n"
#define DIED "Exception in thread \"main\" "
#define TRACE "\tat a.B.c(B.scala:1)\n"
#define PYTHON "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\n"

static const struct {
    const char *name, *log;
    enum log_cause want;
    const char *text; /* in it; NULL: any */
} causes[] = {
    { "nothing is said", "hello\n" AT "INFO X: y\n", CAUSE_NONE, NULL },
    { "a warning is none", AT "WARN DataSet: java.io.FileNotFoundException: /cache (harmless)\n", CAUSE_NONE, NULL },
    { "nor is what an info says", AT "INFO X: retry after FileNotFoundException\n", CAUSE_NONE, NULL },
    { "nor is the trace below a warning",
      AT "WARN X: cannot read the cache\njava.io.FileNotFoundException: /cache\n" TRACE
         "Caused by: java.nio.file.NoSuchFileException: /cache\n" TRACE,
      CAUSE_NONE, NULL },
    { "nor in Spark's own layout", OLD "WARN X: cannot read\njava.io.FileNotFoundException: /cache\n", CAUSE_NONE,
      NULL },
    { "nor in Python's", "2026-11-18 10:00:00,000 - root - WARNING - FileNotFoundError: /cache\n", CAUSE_NONE, NULL },
    { "nor in Python's shortest", "WARNING:root:FileNotFoundError: /cache\n", CAUSE_NONE, NULL },
    { "nor a Python warning", "/a.py:3: UserWarning: FileNotFoundError is coming\n", CAUSE_NONE, NULL },
    { "an error is", AT "ERROR X: java.io.FileNotFoundException: /data\n", CAUSE_DATA_MISSING, "/data" },
    { "so is the trace below it", AT "ERROR X: oh\njava.io.FileNotFoundException: /data\n" TRACE, CAUSE_DATA_MISSING,
      "/data" },
    { "not when training went on", AT "ERROR X: java.io.FileNotFoundException: /data\n" AT STEP, CAUSE_NONE, NULL },
    { "what it died of, not an error before it",
      AT "ERROR X: java.io.FileNotFoundException: /cache\n" AT "INFO X: on\n" DIED
         "org.apache.spark.SparkException: ExecutorLostFailure (executor 0 exited)\n" TRACE,
      CAUSE_EXECUTOR_LOST, NULL },
    { "an error before it, when it died of nothing in particular",
      AT "ERROR B: All masters are unresponsive! Giving up.\n" DIED "java.lang.IllegalStateException: stopped\n" TRACE,
      CAUSE_MASTER_DOWN, "Giving up" },
    { "the last traceback, not one that was lived through",
      PYTHON "FileNotFoundError: cache\nno cache, going on\n" PYTHON "ValueError: math domain error\n", CAUSE_EXCEPTION,
      "math domain" },
    { "two tracebacks of one failure",
      PYTHON "FileNotFoundError: data\n\nDuring handling of the above exception, another exception occurred:\n\n" PYTHON
             "RuntimeError: cannot load\n",
      CAUSE_DATA_MISSING, "data" },
    { "Python after a warning of Spark's", AT "WARN SparkContext: x\n" PYTHON "FileNotFoundError: data\n",
      CAUSE_DATA_MISSING, "data" },
    { "what is printed after a warning of Spark's",
      AT "WARN SparkContext: x\nusage: a.py [-h]\n"
         "a.py: error: unrecognized arguments: --frob\n",
      CAUSE_UNKNOWN_OPTION, "--frob" },
    { "the deepest of a chain",
      DIED "a.B: Job aborted due to stage failure\n" TRACE
           "Caused by: java.lang.OutOfMemoryError: Java heap space\n" TRACE,
      CAUSE_OUT_OF_MEMORY, NULL },
    { "a jar that a warning misses explains the class",
      AT "WARN DependencyUtils: Local jar /a.jar does not exist\n"
         "Error: Failed to load class a.B.\n",
      CAUSE_JAR_MISSING, "/a.jar" },
    { "but not another failure",
      AT "WARN DependencyUtils: Local jar /a.jar does not exist\n" PYTHON "ValueError: math domain error\n",
      CAUSE_EXCEPTION, "math" },
    { "memory explains an executor's loss",
      OLD "WARN TaskSetManager: Lost task 1.0: java.lang.OutOfMemoryError: Java heap space\n" DIED
          "org.apache.spark.SparkException: ExecutorLostFailure (executor 0 exited)\n",
      CAUSE_OUT_OF_MEMORY, NULL },
};

static void expect_cause(const char *name, const char *log, enum log_cause want, const char *text)
{
    struct folded f;
    fold_text(&f, log, 0, "accuracy");
    const struct fold_seen *why = fold_cause(&f.fold, strlen(log));
    enum log_cause got = why ? (enum log_cause)(why->cause - log_causes) : CAUSE_NONE;
    if (got != want)
        fail_msg("%s: got %s, want %s", name, log_causes[got].name, log_causes[want].name);
    if (why && text && !strstr(why->text, text))
        fail_msg("%s: got '%s', want '%s' in it", name, why->text, text);
}

static void test_the_cause_is_what_ended_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        expect_cause(causes[i].name, causes[i].log, causes[i].want, causes[i].text);
}

static void test_a_cause_is_near_the_end(void **state)
{
    (void)state;
    AUTO_BUF struct buf log = BUF_INIT;
    buf_puts(&log, "cannot write the cache: Permission denied\n");
    expect_cause("at the end", buf_text(&log), CAUSE_PERMISSION, NULL);
    for (int i = 0; i < 20000; i++)
        buf_puts(&log, "working on\n");
    expect_cause("far from it", buf_text(&log), CAUSE_NONE, NULL);
    buf_puts(&log, PYTHON "ValueError: math domain error\n");
    expect_cause("and another at the end", buf_text(&log), CAUSE_EXCEPTION, "math");
}

static const struct {
    const char *file;
    enum log_cause want;
} real_logs[] = {
    { "batch-indivisible", CAUSE_BATCH },
    { "checkpoint-folder-missing", CAUSE_DATA_MISSING },
    { "class-missing", CAUSE_CLASS_MISSING },
    { "data-missing", CAUSE_DATA_MISSING },
    { "driver-memory-invalid", CAUSE_BAD_MEMORY },
    { "executor-killed-recovered-origin", CAUSE_NONE },
    { "executor-killed-recovered", CAUSE_NONE },
    { "executor-killed", CAUSE_EXECUTOR_LOST },
    { "executor-memory-invalid", CAUSE_BAD_MEMORY },
    { "heap-local", CAUSE_OUT_OF_MEMORY },
    { "heap-standalone", CAUSE_OUT_OF_MEMORY },
    { "jar-missing", CAUSE_JAR_MISSING },
    { "lenet-jvm-local", CAUSE_NONE },
    { "lenet-jvm-standalone", CAUSE_NONE },
    { "lenet5-py-local", CAUSE_NONE },
    { "lenet5-py-standalone", CAUSE_NONE },
    { "master-down", CAUSE_MASTER_DOWN },
    { "no-executor", CAUSE_NONE },
    { "resume-jvm", CAUSE_NONE },
    { "resume-rawmodel", CAUSE_BAD_CHECKPOINT },
    { "resume-same", CAUSE_NONE },
    { "resume-truncpb", CAUSE_BAD_CHECKPOINT },
    { "resume-truncstate", CAUSE_BAD_CHECKPOINT },
    { "unknown-flag", CAUSE_UNKNOWN_OPTION },
};

static void test_real_failures_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(real_logs); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        char path[200];
        struct err e = { 0 };
        (void)snprintf(path, sizeof path, "tests/data/logs/%s.log", real_logs[i].file);
        if (io_read_file(&text, path, 1 << 24, &e) < 0)
            fail_msg("%s", e.text);
        expect_cause(real_logs[i].file, buf_text(&text), real_logs[i].want, NULL);
    }
}

/* --- epochs that are told of as a whole ----------------------------------------------------------------------------------- */

static struct app_report told_epoch(int epoch, int64_t stamp_ms, double accuracy)
{
    struct app_report r;
    app_report_begin(&r, REPORT_EPOCH);
    r.epoch = epoch;
    r.stamp_ms = stamp_ms;
    r.whole = true;
    r.loss = 0.5;
    assert_true(app_report_add_value(&r, "accuracy", 8, accuracy));
    assert_true(app_report_add_value(&r, "f1", 2, accuracy / 2));
    return r;
}

static struct app_report told_step(int epoch, int64_t stamp_ms)
{
    struct app_report r;
    app_report_begin(&r, REPORT_STEP);
    r.epoch = epoch;
    r.stamp_ms = stamp_ms;
    r.records = 10;
    r.loss = 0.7;
    return r;
}

static void test_an_epoch_told_as_a_whole_is_complete_at_once(void **state)
{
    (void)state;
    struct fold f;
    struct fold_epoch got;
    fold_init(&f, "f1", 0);
    struct app_report first = told_epoch(1, 1000, 0.8), second = told_epoch(0, 4500, 0.9);
    assert_int_equal(fold_report(&f, &first, 10, &got), 1);
    assert_int_equal(got.epoch, 1);
    assert_true(isnan(got.seconds)); /* nobody knows when it began */
    assert_true(got.accuracy == 0.8 && got.metric == 0.4 && got.train_loss == 0.5);
    assert_int_equal(got.n_values, 2);
    assert_string_equal(got.values[1].name, "f1");
    assert_int_equal(f.safe_offset, 10);
    assert_int_equal(fold_report(&f, &second, 20, &got), 1);
    assert_int_equal(got.epoch, 2); /* the next */
    assert_true(got.seconds == 3.5 && got.iterations == 0);
    assert_int_equal(fold_end(&f, &got), 0);
}

static void test_steps_without_numbers_are_counted(void **state)
{
    (void)state;
    struct fold f;
    struct fold_epoch got;
    fold_init(&f, "accuracy", 0);
    f.last_epoch = 4; /* it goes on from a checkpoint */
    struct app_report step = told_step(0, 1000), more = told_step(0, 2000), over = told_epoch(7, 3000, 0.9);
    assert_int_equal(fold_report(&f, &step, 10, &got), 0);
    assert_int_equal(fold_epoch_now(&f), 5);
    assert_int_equal(fold_report(&f, &more, 20, &got), 0);
    assert_int_equal(fold_report(&f, &over, 30, &got), 1);
    assert_int_equal(got.epoch, 7); /* the application knows better */
    assert_int_equal(got.iterations, 2);
    assert_true(got.records == 20 && got.train_loss == 0.5);
}

static void test_a_whole_epoch_may_say_how_long_it_took(void **state)
{
    (void)state;
    struct fold f;
    struct fold_epoch got;
    fold_init(&f, "loss", 0);
    struct app_report r = told_epoch(1, -1, 0.8);
    r.seconds = 2.5;
    r.records = 100;
    assert_int_equal(fold_report(&f, &r, 10, &got), 1);
    assert_true(got.seconds == 2.5 && got.records == 100);
    assert_int_equal(got.start_ms, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_reading_on_from_a_safe_offset_gives_the_same_epochs),
        cmocka_unit_test(test_any_order_of_lines_can_be_cut),
        cmocka_unit_test(test_the_figures_of_an_epoch),
        cmocka_unit_test(test_the_metric),
        cmocka_unit_test(test_a_cause_is_forgotten_when_training_went_on),
        cmocka_unit_test(test_the_cause_is_what_ended_it),
        cmocka_unit_test(test_a_cause_is_near_the_end),
        cmocka_unit_test(test_real_failures_are_known),
        cmocka_unit_test(test_an_epoch_told_as_a_whole_is_complete_at_once),
        cmocka_unit_test(test_steps_without_numbers_are_counted),
        cmocka_unit_test(test_a_whole_epoch_may_say_how_long_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
