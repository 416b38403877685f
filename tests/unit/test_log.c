#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/log.h"
#include "tests/fault.h"

#define HEAD                                                                                                           \
    "2026-11-18 10:29:51.189 INFO DistriOptimizer$: [Epoch 1 60032/60000][Iteration 469][Wall Clock 29.654904923s] "
#define STEP                                                                                                           \
    "Trained 128.0 records in 0.041978443 seconds. Throughput is 3049.1843 records/second. Loss is 0.17889601. "       \
    "Sequentialf781f945's hyper parameters: Current learning rate is 0.05. Current dampening is "                      \
    "1.7976931348623157E308.  "

enum { NOTHING = -1 };

/* A line by itself. */
static int parse_line(const char *line, size_t len, struct app_report *out)
{
    struct line_place place = { 0 };
    return log_reader.parse(NULL, &place, line, len, out);
}

static const char *const kind_names[] = { "app_id",   "granted", "iteration", "epoch_end", "metric", "checkpoint",
                                          "recovery", "mark",    "lost",      "cause",     "pause",  "data" };

static const char *kind_name(int kind)
{
    return kind == NOTHING ? "nothing" : kind_names[kind];
}

/* ---- kinds ---------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *line;
    int kind;
    const char *text;
} kinds[] = {
    { "a step of DistriOptimizer", HEAD STEP, REPORT_STEP, "" },
    { "the end of an epoch", HEAD "Epoch finished. Wall clock time is 29917.408867 ms", REPORT_EPOCH, "" },
    { "validation begins", HEAD "Validate model...", NOTHING, NULL },
    { "the speed of validation is no result", HEAD "validate model throughput is 10138.838 records/second", NOTHING,
      NULL },
    { "an accuracy", HEAD "Top1Accuracy is Accuracy(correct: 9250, count: 10000, accuracy: 0.925)", REPORT_VALUE,
      "Top1Accuracy" },
    { "a validation's loss", HEAD "Loss is (Loss: 4039.1206, count: 10000, Average Loss: 0.40391207)", REPORT_VALUE,
      "Loss" },
    { "a mean absolute error", HEAD "MAE is (MAE: 12.0, count: 10, Average MAE: 1.2)", REPORT_VALUE, "MAE" },
    { "an area under a curve", HEAD "PRAUC is Precision Recall AUC is 0.75 on 100", REPORT_VALUE, "PRAUC" },
    { "a result that is a number alone", HEAD "NDCG is 0.5", REPORT_VALUE, "NDCG" },
    { "an accuracy of BigDL before 0.5, which has no head",
      "2017-03-16 17:47:32 INFO  DistriOptimizer$:408 - Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: 0.9)",
      REPORT_VALUE, "Top1Accuracy" },
    { "one in two words",
      "17/03/16 17:47:32 INFO DistriOptimizer$: top1 accuracy is Accuracy(correct: 9, count: 10, "
      "accuracy: 0.9)",
      REPORT_VALUE, "top1 accuracy" },
    { "a loss without a head",
      "17/03/16 17:47:32 INFO LocalOptimizer$: Loss is (Loss: 4.5, count: 10, Average Loss: 0.45)", REPORT_VALUE,
      "Loss" },
    { "an accuracy that the application prints", "Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: 0.9)",
      NOTHING, NULL },
    { "a step of BigDL 0.1", HEAD "Train 128 in 0.0419seconds. Throughput is 3049.2 records/second. Loss is 0.5.",
      REPORT_STEP, "" },
    { "a sentence that says is", HEAD "Loss is not what it was", NOTHING, NULL },
    { "a model saved",
      "2026-11-18 12:00:47.923 INFO DistriOptimizer$: [Wall Clock 34.548866593s] Save model to /ck/20261118_1", NOTHING,
      NULL },
    { "a state saved: the checkpoint is whole",
      "2026-11-18 12:00:47.947 INFO DistriOptimizer$: [Wall Clock 34.548866593s] Save optimMethod "
      "com.intel.analytics.bigdl.dllib.optim.SGD$mcF$sp@21274afe to /a folder/20261118_120011",
      REPORT_CHECKPOINT, "/a folder/20261118_120011" },
    { "a state saved by BigDL 0.x",
      "2020-03-16 17:47:32 INFO  DistriOptimizer$:433 - [Wall Clock 8.5s] Save state to /ck", REPORT_CHECKPOINT,
      "/ck" },
    { "a model recovered", "2026-11-18 12:13:23.047 INFO DistriOptimizer$: Model recover from last snapshot",
      REPORT_RECOVERY, "last snapshot" },
    { "its state recovered", "… INFO DistriOptimizer$: Sequential1's OptimMethod recover from last snapshot", NOTHING,
      NULL },
    { "an application's id",
      "2026-11-18 12:11:13.183 INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID "
      "app-20261118121113-0000",
      REPORT_READY, "app-20261118121113-0000" },
    { "an application's id on YARN", "26/11/18 12:11:13 INFO YarnClientImpl: Submitted application application_17_0001",
      REPORT_READY, "application_17_0001" },
    { "an executor granted",
      "2026-11-18 12:11:13.269 INFO StandaloneSchedulerBackend: Granted executor ID app-20261118121113-0000/0 on "
      "hostPort "
      "127.0.0.1:32789 with 2 core(s), 2.0 GiB RAM",
      REPORT_GRANTED, "app-20261118121113-0000/0" },
    { "an executor registered",
      "26/11/18 12:11:13 INFO YarnSchedulerBackend$YarnDriverEndpoint: Registered executor "
      "NettyRpcEndpointRef(spark-client://Executor) (10.0.0.1:42314) with ID 7,  ResourceProfileId 0",
      REPORT_GRANTED, "7" },
    { "the data is being read", "2026-11-18 12:11:14.100 INFO DistriOptimizer$: caching training rdd ...", REPORT_DATA,
      "" },
    { "an executor lost",
      "2026-11-18 12:12:25.595 ERROR TaskSchedulerImpl: Lost executor 0 on 127.0.0.1: Command exited with code 137",
      REPORT_LOST, "0 on 127.0.0.1: Command exited with code 137" },
    { "a session's trial begins", "PIPETUNE trial 1-2 begin", REPORT_MARK, "1-2" },
    { "a session's trial ends", "PIPETUNE trial A_z-09 end\r", REPORT_MARK, "A_z-09" },
    { "a mark with something behind it", "PIPETUNE trial 1 begin again", NOTHING, NULL },
    { "a mark with something before it", " PIPETUNE trial 1 begin", NOTHING, NULL },
    { "a mark that says neither", "PIPETUNE trial 1 went", NOTHING, NULL },
    { "a mark without its word", "PIPETUNE trial 1", NOTHING, NULL },
    { "a mark without an id", "PIPETUNE trial  begin", NOTHING, NULL },
    { "a mark with an id of other letters", "PIPETUNE trial a/b begin", NOTHING, NULL },
    { "a mark with an id of 64 letters",
      "PIPETUNE trial 0123456789012345678901234567890123456789012345678901234567890123 end", REPORT_MARK,
      "0123456789012345678901234567890123456789012345678901234567890123" },
    { "a mark with an id of 65 letters",
      "PIPETUNE trial 01234567890123456789012345678901234567890123456789012345678901234 end", NOTHING, NULL },
    { "any other line", "2026-11-18 12:00:12.295 INFO DistriOptimizer$: Shuffle data", NOTHING, NULL },
    { "a line of a stack trace", "\tat java.lang.OutOfMemoryError.<init>(OutOfMemoryError.java:48)", NOTHING, NULL },
    { "advice about the batch is no failure",
      "WARN DistriOptimizer$: Warning: for better training speed, total batch size is recommended to be at least two "
      "times of "
      "core number2, please tune your batch size accordingly",
      NOTHING, NULL },
    { "an empty line", "", NOTHING, NULL },
    { "half a head", "2026-11-18 10:29:51.189 INFO DistriOptimizer$: [Epoch 1 60032/6", NOTHING, NULL },
    { "an epoch beyond counting", "[Epoch 99999999999 1/2][Iteration 1][Wall Clock 1.0s] " STEP, NOTHING, NULL },
};

static void test_log_tells_lines_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct app_report ev;
        int got = parse_line(kinds[i].line, strlen(kinds[i].line), &ev) ? (int)ev.kind : NOTHING;
        if (got != kinds[i].kind)
            fail_msg("%s: got %s, want %s", kinds[i].name, kind_name(got), kind_name(kinds[i].kind));
        if (got != NOTHING && strcmp(ev.text, kinds[i].text) != 0)
            fail_msg("%s: got the text '%s', want '%s'", kinds[i].name, ev.text, kinds[i].text);
    }
}

/* ---- figures -------------------------------------------------------------------------------------------------------- */

static struct app_report parsed(const char *line)
{
    struct app_report ev;
    if (!parse_line(line, strlen(line), &ev))
        fail_msg("says nothing: %s", line);
    return ev;
}

static void assert_number(const char *name, double got, double want)
{
    if (memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want)))
        fail_msg("%s: got %.17g, want %.17g", name, got, want);
}

static void test_log_tells_beginnings_from_ends(void **state)
{
    (void)state;
    struct app_report begin = parsed("PIPETUNE trial 7 begin"), end = parsed("PIPETUNE trial 7 end");
    assert_true(begin.begins);
    assert_false(end.begins);
    assert_int_equal(begin.stamp_ms, -1);
}

static void test_log_reads_what_an_executor_has(void **state)
{
    (void)state;
    assert_int_equal(parsed("INFO X: Granted executor ID app-1/0 on hostPort h:1 with 2 core(s), 2.0 GiB RAM").cores,
                     2);
    assert_int_equal(parsed("INFO X: Granted executor ID app-1/0 on hostPort h:1 with 99999999999 core(s), 2").cores,
                     0);
    assert_int_equal(parsed("INFO X: Granted executor ID app-1/0 on hostPort h:1 with -2 core(s), 2").cores, 0);
    assert_int_equal(parsed("INFO X: Granted executor ID app-1/0 on hostPort h:1").cores, 0);
    assert_int_equal(parsed("INFO X: Registered executor NettyRpcEndpointRef(…) (10.0.0.1:42314) with ID 7,").cores, 0);
}

static void test_log_reads_a_step(void **state)
{
    (void)state;
    struct app_report ev = parsed(HEAD STEP);
    assert_int_equal(ev.epoch, 1);
    assert_int_equal(ev.step, 469);
    assert_int_equal(ev.records_done, 60032);
    assert_int_equal(ev.records_all, 60000);
    assert_number("wall", ev.wall_s, 29.654904923);
    assert_number("records", ev.records, 128);
    assert_number("seconds", ev.seconds, 0.041978443);
    assert_number("loss", ev.loss, 0.17889601);
    assert_number("learning rate", ev.learning_rate, 0.05);
    assert_int_equal(ev.stamp_ms, 1794997791189);
    assert_false(ev.stamp_coarse);
    assert_false(ev.closes_epoch);
}

static void test_log_reads_a_step_of_bigdl_0(void **state)
{
    (void)state;
    struct app_report ev = parsed(
        "2020-03-16 17:47:32 INFO  DistriOptimizer$:408 - [Epoch 1 128/60000][Iteration 1][Wall Clock 0.643855191s] "
        "Trained 128 records in 0.643855191 seconds. Throughput is 198.8 records/second. Loss is 2.5E-4. \r");
    assert_int_equal(ev.kind, REPORT_STEP);
    assert_int_equal(ev.stamp_ms, 1584380852000);
    assert_true(ev.stamp_coarse);
    assert_number("records", ev.records, 128);
    assert_number("loss", ev.loss, 2.5e-4);
    assert_number("learning rate", ev.learning_rate, NAN);
}

static void test_log_reads_a_step_of_the_local_optimizer(void **state)
{
    (void)state;
    struct app_report ev = parsed(
        "2026-11-18 10:29:51.189 INFO LocalOptimizer$: [Epoch 3 60032/60000][Iteration 469][Wall Clock 29.6s] loss is "
        "2.154, iteration time is 0.0173s data fetch time is 0.001s, train time 0.0163s. Throughput is 7398.8439306 "
        "record / second. Current learning rate is 0.01. ");
    assert_int_equal(ev.kind, REPORT_STEP);
    assert_number("loss", ev.loss, 2.154);
    assert_number("seconds", ev.seconds, 0.0173);
    assert_number("records", ev.records, 128);
    assert_number("learning rate", ev.learning_rate, 0.01);
    assert_true(ev.closes_epoch);
}

static void test_log_reads_results(void **state)
{
    (void)state;
    assert_number("accuracy",
                  parsed(HEAD "Top1Accuracy is Accuracy(correct: 9914, count: 10000, accuracy: 0.9914)").value, 0.9914);
    assert_number("average loss",
                  parsed(HEAD "Loss is (Loss: 4039.1206, count: 10000, Average Loss: 0.40391207)").value, 0.40391207);
    assert_number("cumulative ms", parsed(HEAD "Epoch finished. Wall clock time is 29917.408867 ms").wall_s,
                  29.917408867);
    assert_number("a loss that has run away", parsed(HEAD "Loss is (Loss: NaN, count: 10000, Average Loss: NaN)").value,
                  NAN);
    assert_number("an infinite one", parsed(HEAD "Trained 8.0 records in 1.0 seconds. Loss is -Infinity. ").loss,
                  -INFINITY);
}

#define GC "GC(12) Pause Young (Normal) (G1 Evacuation Pause) 61M->20M(80M) 5.123ms"

static const struct {
    const char *name, *line;
    double seconds; /* NAN: it tells of no pause */
    int64_t stamp_ms;
} pauses[] = {
    { "as -Xlog:gc has it", "[2.345s][info][gc] " GC, 0.005123, -1 },
    { "with the time of day", "[2026-11-18T10:29:51.189+0100][2.345s][info][gc       ] " GC, 0.005123, 1794997791189 },
    { "with a line end of Windows", "[2.345s][info][gc] " GC "\r", 0.005123, -1 },
    { "a whole collection", "[9.1s][info][gc] GC(3) Pause Full (System.gc()) 20M->4M(16M) 21.5ms", 0.0215, -1 },
    { "its beginning", "[2.345s][info][gc,start] GC(12) Pause Young (Normal) (G1 Evacuation Pause)", NAN, -1 },
    { "beside the program", "[2.345s][info][gc] GC(13) Concurrent Mark Cycle 12.345ms", NAN, -1 },
    { "its CPU time", "[2.345s][info][gc,cpu] GC(12) User=0.01s Sys=0.00s Real=0.01s", NAN, -1 },
    { "which collector there is", "[0.004s][info][gc] Using G1", NAN, -1 },
    { "without a number", "[2.345s][info][gc] GC(12) Pause Young ms", NAN, -1 },
    { "Java 8", "2.345: [GC (Allocation Failure)  61440K->10240K(81920K), 0.0051230 secs]", 0.005123, -1 },
    { "Java 8, with the time of day",
      "2020-03-16T17:47:32.123+0000: 2.345: [Full GC (Ergonomics)  6K->1K(8K), 0.5 secs]", 0.5, 1584380852123 },
    { "Java 8 with details",
      "2.3: [GC (Metadata GC Threshold) [PSYoungGen: 6K->1K(8K)] 6K->1K(9K), 0.005 secs] [Times: user=0.01 sys=0.00, "
      "real=0.01 secs]",
      0.005, -1 },
    { "Java 8 in mid-line", "2.345: [GC (Allocation Failure)", NAN, -1 },
};

static void test_log_reads_pauses_of_the_collector(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        struct app_report ev = { 0 };
        int rc = parse_line(pauses[i].line, strlen(pauses[i].line), &ev);
        if (rc != !isnan(pauses[i].seconds))
            fail_msg("%s: %d", pauses[i].name, rc);
        if (rc == 0)
            continue;
        assert_int_equal(ev.kind, REPORT_PAUSE);
        assert_number(pauses[i].name, ev.seconds, pauses[i].seconds);
        assert_int_equal(ev.stamp_ms, pauses[i].stamp_ms);
    }
}

static const struct {
    const char *name, *line;
    int64_t ms;
    bool coarse;
} stamps[] = {
    { "our layout", "2026-11-18 12:00:13.816 INFO X: ", 1795003213816, false },
    { "a comma", "2026-11-18 12:00:13,816 INFO X: ", 1795003213816, false },
    { "a T and microseconds", "2026-11-18T12:00:13.816999 INFO X: ", 1795003213816, false },
    { "whole seconds", "2026-11-18 12:00:13 INFO X: ", 1795003213000, true },
    { "Spark's own layout", "26/11/18 12:00:13 INFO X: ", 1795003213000, true },
    { "the leap day", "2024-02-29 23:59:59.999 INFO X: ", 1709251199999, false },
    { "none", "INFO X: ", -1, false },
    { "no such month", "2026-13-18 12:00:13.816 INFO X: ", -1, false },
    { "no such hour", "2026-11-18 24:00:13.816 INFO X: ", -1, false },
    { "before the epoch", "1969-12-31 23:59:59.000 INFO X: ", -1, false },
    { "letters", "2026-11-18 12:0a:13.816 INFO X: ", -1, false },
};

static void test_log_reads_stamps(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        char line[200];
        (void)snprintf(line, sizeof line, "%sModel recover from last snapshot", stamps[i].line);
        struct app_report ev = parsed(line);
        if (ev.stamp_ms != stamps[i].ms || ev.stamp_coarse != stamps[i].coarse)
            fail_msg("%s: got %lld %d, want %lld %d", stamps[i].name, (long long)ev.stamp_ms, ev.stamp_coarse,
                     (long long)stamps[i].ms, stamps[i].coarse);
    }
}

static void assert_reads_as_strtod(const char *number)
{
    char line[200];
    (void)snprintf(line, sizeof line, "[Epoch 1] Trained 1 records in 1 seconds. Loss is %s. ", number);
    assert_number(number, parsed(line).loss, strtod(number, NULL));
}

static void test_log_reads_numbers_as_strtod_does(void **state)
{
    (void)state;
    static const char *const odd[] = { "0",
                                       "0.0",
                                       "-0.0",
                                       "1.0E-4",
                                       "1.0e+10",
                                       "1.7976931348623157E308",
                                       "4.9E-324",
                                       "1E400",
                                       "9007199254740993.0",
                                       "123456789012345678901234567890.5",
                                       "0.00000000000000000000000000012345",
                                       "2.2250738585072014E-308" };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        assert_reads_as_strtod(odd[i]);
    uint64_t x = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double v = (double)(x >> 11) / (double)(1ULL << (x & 63));
        (void)snprintf(text, sizeof text, i & 1 ? "%.*f" : "%.*E", (int)(x % 19), v);
        assert_reads_as_strtod(text);
    }
}

static enum log_cause row_of(const struct cause *c)
{
    return c ? (enum log_cause)(c - log_causes) : CAUSE_NONE;
}

/* ---- causes --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *line;
    enum log_cause cause;
    const char *text;
} cause_lines[] = {
    { "Error: Unknown option --frobnicate", CAUSE_UNKNOWN_OPTION, "Error: Unknown option --frobnicate" },
    { "lenet5.py: error: unrecognized arguments: --frob 3", CAUSE_UNKNOWN_OPTION,
      "lenet5.py: error: unrecognized arguments: --frob 3" },
    { "/x/bin/spark-class: line 71: /nowhere/bin/java: No such file or directory", CAUSE_JAVA_MISSING, NULL },
    { "JAVA_HOME is not set", CAUSE_JAVA_MISSING, "JAVA_HOME is not set" },
    { "Error: A JNI error … java.lang.UnsupportedClassVersionError: org/apache/spark", CAUSE_JAVA_MISSING, NULL },
    { "Caused by: java.lang.NoClassDefFoundError: com/intel/analytics/bigdl/mkl/MKL", CAUSE_NATIVE_MISSING,
      "java.lang.NoClassDefFoundError: com/intel/analytics/bigdl/mkl/MKL" },
    { "2026-11-18 12:02:15.427 WARN DependencyUtils: Local jar /x/absent.jar does not exist, skipping.",
      CAUSE_JAR_MISSING, "Local jar /x/absent.jar does not exist, skipping." },
    { "Error: Failed to load class com.example.Absent.", CAUSE_CLASS_MISSING, NULL },
    { "java.lang.NoClassDefFoundError: com/example/Absent", CAUSE_CLASS_MISSING, NULL },
    { "ModuleNotFoundError: No module named 'bigdl'", CAUSE_MODULE_MISSING, NULL },
    { "Exception in thread \"main\" java.nio.file.NoSuchFileException: /nodata/train-images-idx3-ubyte",
      CAUSE_DATA_MISSING, "java.nio.file.NoSuchFileException: /nodata/train-images-idx3-ubyte" },
    { "Optimizer.setCheckpoint: /nockdir is not a folder", CAUSE_DATA_MISSING, NULL },
    { "lenet5.py: error: no folder '/nodata'", CAUSE_DATA_MISSING, NULL },
    { "mlp.py: error: no file '/hole/train-images-idx3-ubyte'", CAUSE_DATA_MISSING, NULL },
    { "mlp.py: error: no checkpoint '/gone/model.8'", CAUSE_NONE, NULL },
    { "ERROR ShutdownHookManager: Exception while deleting Spark temp dir: java.nio.file.NoSuchFileException: "
      "/tmp/spark-1",
      CAUSE_NONE, NULL },
    { "Executor memory 314572800 must be at least 471859200.", CAUSE_BAD_MEMORY, NULL },
    { "Error occurred during initialization of VM: Could not reserve enough space for 67108864KB object heap",
      CAUSE_BAD_MEMORY, NULL },
    { "java.lang.IllegalArgumentException: requirement failed: total batch size: 1023 should be divided by total core "
      "number: 2",
      CAUSE_BATCH, NULL },
    { "Engine.init: total core number(3) can't be divided by single core number(2) provided to spark-submit",
      CAUSE_CORES, NULL },
    { "java.lang.OutOfMemoryError: GC overhead limit exceeded", CAUSE_OUT_OF_MEMORY, NULL },
    { "Java heap space", CAUSE_OUT_OF_MEMORY, "Java heap space" },
    { "26/11/18 12:00:13 WARN TaskSetManager: Lost task 1.0 (TID 3): ExecutorLostFailure (executor 1 exited) Reason: "
      "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used.",
      CAUSE_OUT_OF_MEMORY, NULL },
    { "java.io.IOException: No space left on device", CAUSE_DISK_FULL, NULL },
    { "java.nio.file.AccessDeniedException: /ck/x", CAUSE_PERMISSION, NULL },
    { "2026-11-18 12:20:00.000 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are "
      "unresponsive! Giving up.",
      CAUSE_MASTER_DOWN, "Application has been killed. Reason: All masters are unresponsive! Giving up." },
    { "Caused by: java.net.UnknownHostException: vm-12: Name or service not known", CAUSE_ADDRESS, NULL },
    { "convert_checkpoint: cannot convert 'x/model.60': java.io.EOFException", CAUSE_BAD_CHECKPOINT, NULL },
    { "… Executor app-1/0 removed: Command exited with code 137", CAUSE_EXECUTOR_LOST, NULL },
    { "26/11/18 12:00:13 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI",
      CAUSE_NO_RESOURCES, NULL },
    { "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times",
      CAUSE_TASK_FAILED, NULL },
    { "ValueError: math domain error", CAUSE_EXCEPTION, "ValueError: math domain error" },
    { "com.example.TrainException: no", CAUSE_EXCEPTION, NULL },
    { "Traceback (most recent call last):", CAUSE_NONE, NULL },
    { "2026-11-18 12:00:13.816 INFO X: Error: all is well", CAUSE_NONE, NULL },
};

static void test_log_finds_causes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cause_lines); i++) {
        struct app_report ev;
        const char *line = cause_lines[i].line;
        enum log_cause got = parse_line(line, strlen(line), &ev) ? row_of(ev.cause) : CAUSE_NONE;
        if (got != cause_lines[i].cause)
            fail_msg("%s: got %s, want %s", line, log_causes[got].name, log_causes[cause_lines[i].cause].name);
        if (cause_lines[i].text && strcmp(ev.text, cause_lines[i].text) != 0)
            fail_msg("got the text '%s', want '%s'", ev.text, cause_lines[i].text);
    }
}

static void test_log_every_cause_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = CAUSE_NONE; i < CAUSE_MAX; i++) {
        assert_non_null(log_causes[i].name);
        for (int k = CAUSE_NONE; k < i; k++)
            assert_string_not_equal(log_causes[i].name, log_causes[k].name);
    }
    assert_string_equal(cause_name(NULL), "none");
    assert_int_equal(log_causes[CAUSE_OUT_OF_MEMORY].verdict, VERDICT_INFEASIBLE);
    assert_int_equal(log_causes[CAUSE_BATCH].verdict, VERDICT_INFEASIBLE);
    assert_int_equal(log_causes[CAUSE_DATA_MISSING].verdict, VERDICT_ENVIRONMENT);
    assert_int_equal(log_causes[CAUSE_NATIVE_MISSING].verdict, VERDICT_ENVIRONMENT);
    assert_int_equal(log_causes[CAUSE_EXECUTOR_LOST].verdict, VERDICT_FAILED);
}

static void test_log_text_is_short_clean_and_tells(void **state)
{
    (void)state;
    char line[2000];
    memset(line, 'x', sizeof line);
    memcpy(line + 1500, "Java heap space \x01\xff\xc3\xa9", 20);
    struct app_report ev;
    assert_int_equal(parse_line(line, 1520, &ev), 1);
    assert_string_equal(ev.text, "Java heap space  ?\xc3\xa9");
    memcpy(line, "Java heap space ", 16);
    memset(line + 16, 0xc3, sizeof line - 16); /* no sequence is whole */
    assert_int_equal(parse_line(line, sizeof line, &ev), 1);
    assert_int_equal(strlen(ev.text), REPORT_TEXT_MAX - 1);
}

/* ---- streams -------------------------------------------------------------------------------------------------------- */

struct record {
    struct buf text;
    int stop_after, seen;
};

/* Every field of every event, so that two runs can be compared. */
static int record(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct record *r = ctx;
    buf_printf(&r->text, "%s %lld%s %d %lld %lld/%lld %a %a %a %a %a %a %s %d '%s' @%llu\n", kind_name((int)ev->kind),
               (long long)ev->stamp_ms, ev->stamp_coarse ? "~" : "", ev->epoch, (long long)ev->step,
               (long long)ev->records_done, (long long)ev->records_all, ev->wall_s, ev->records, ev->seconds, ev->loss,
               ev->learning_rate, ev->value, cause_name(ev->cause), ev->closes_epoch, ev->text,
               (unsigned long long)end);
    return ++r->seen == r->stop_after ? 42 : 0;
}

static struct buf events_of(const char *text, size_t len, size_t split)
{
    struct record r = { .text = BUF_INIT };
    struct lines s;
    lines_init(&s, &log_reader, 0);
    assert_int_equal(lines_feed(&s, text, split, record, &r), 0);
    assert_int_equal(lines_feed(&s, text + split, len - split, record, &r), 0);
    assert_int_equal(lines_end(&s, record, &r), 0);
    assert_int_equal(s.offset, len);
    lines_done(&s);
    assert_false(r.text.failed);
    return r.text;
}

static const char stream_text[] =
    "2026-11-18 12:11:13.183 INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-1\r\n"
    "\n" HEAD STEP "\n\n" HEAD "Epoch finished. Wall clock time is 29917.408867 ms\n" HEAD
    "Loss is (Loss: 1.0, count: 2, "
    "Average Loss: 0.5)\nCaused by: java.lang.OutOfMemoryError: Java heap space\n" HEAD STEP;

static void test_log_every_split_gives_the_same_events(void **state)
{
    (void)state;
    size_t len = sizeof stream_text - 1;
    AUTO_BUF struct buf whole = events_of(stream_text, len, len);
    for (size_t split = 0; split < len; split++) {
        AUTO_BUF struct buf got = events_of(stream_text, len, split);
        if (strcmp(buf_text(&got), buf_text(&whole)) != 0)
            fail_msg("split at %zu: got\n%s\nwant\n%s", split, buf_text(&got), buf_text(&whole));
    }
}

static void test_log_a_stream_goes_on_where_the_sink_stopped(void **state)
{
    (void)state;
    size_t len = sizeof stream_text - 1;
    AUTO_BUF struct buf whole = events_of(stream_text, len, len);
    struct record r = { .text = BUF_INIT };
    struct lines s;
    lines_init(&s, &log_reader, 0);
    int rc = 42;
    while (rc == 42) {
        r.stop_after = r.seen + 1;
        rc = lines_feed(&s, stream_text + s.offset, len - s.offset, record, &r);
    }
    assert_int_equal(rc, 0);
    r.stop_after = 0;
    assert_int_equal(lines_end(&s, record, &r), 0);
    assert_string_equal(buf_text(&r.text), buf_text(&whole));
    lines_done(&s);
    buf_done(&r.text);
}

static void test_log_over_long_lines_are_cut_not_kept(void **state)
{
    (void)state;
    size_t len = 3 * (size_t)LINES_BYTES_MAX;
    AUTO_FREE char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    memcpy(text, "Java heap space", 15);
    memcpy(text + LINES_BYTES_MAX, "No space left on device", 23); /* behind the cut */
    memcpy(text + 2 * LINES_BYTES_MAX, "\nOOMKilled\n", 11);
    AUTO_BUF struct buf whole = events_of(text, len, len);
    static const size_t splits[] = {
        1, 100, LINES_BYTES_MAX - 1, LINES_BYTES_MAX, LINES_BYTES_MAX + 1, 2 * LINES_BYTES_MAX
    };
    for (size_t i = 0; i < ARRAY_LEN(splits); i++) {
        AUTO_BUF struct buf got = events_of(text, len, splits[i]);
        assert_string_equal(buf_text(&got), buf_text(&whole));
    }
    assert_null(strstr(buf_text(&whole), "No space"));
    assert_non_null(strstr(buf_text(&whole), "OOMKilled"));
    struct lines s;
    struct record r = { .text = BUF_INIT };
    lines_init(&s, &log_reader, 0);
    for (size_t i = 0; i < 2 * LINES_BYTES_MAX; i += 1000)
        assert_int_equal(lines_feed(&s, text + i, 1000, record, &r), 0);
    assert_true(s.partial_cap <= LINES_BYTES_MAX);
    lines_done(&s);
    buf_done(&r.text);
}

static int count_events(void *ctx, const struct app_report *ev, uint64_t end)
{
    (void)ev;
    (void)end;
    ++*(int *)ctx;
    return 0;
}

/* In pieces of 37 bytes: most lines begin in one and end in another. */
static int feed_in_pieces(struct lines *s, const char *text, size_t len, int *seen)
{
    int rc = 0;
    while (rc == 0 && s->offset < len) {
        size_t n = len - s->offset < 37 ? len - s->offset : 37;
        rc = lines_feed(s, text + s->offset, n, count_events, seen);
    }
    return rc;
}

static void test_log_a_stream_survives_lack_of_memory(void **state)
{
    (void)state;
    size_t len = sizeof stream_text - 1;
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        int seen = 0;
        struct lines s;
        lines_init(&s, &log_reader, 0);
        fault_arm(FAULT_ALLOC, nth);
        rc = feed_in_pieces(&s, stream_text, len, &seen);
        fault_disarm();
        if (rc == -ENOMEM) /* what was not taken is fed again */
            assert_int_equal(feed_in_pieces(&s, stream_text, len, &seen), 0);
        assert_int_equal(lines_end(&s, count_events, &seen), 0);
        assert_int_equal(seen, 6);
        lines_done(&s);
    }
}

/* ---- real logs ------------------------------------------------------------------------------------------------------ */

struct summary {
    int counts[REPORT_DATA + 1];
    int last_epoch;
    double accuracy;
    int backwards; /* iteration numbers that went back */
    int64_t last_iteration;
    enum log_cause cause;
};

static int summarise(void *ctx, const struct app_report *ev, uint64_t end)
{
    (void)end;
    struct summary *s = ctx;
    s->counts[ev->kind]++;
    if (ev->kind == REPORT_EPOCH)
        s->last_epoch = ev->epoch;
    if (ev->kind == REPORT_VALUE && strcmp(ev->text, "Top1Accuracy") == 0)
        s->accuracy = ev->value;
    if (ev->kind == REPORT_STEP) {
        s->backwards += ev->step <= s->last_iteration;
        s->last_iteration = ev->step;
    }
    enum log_cause cause = row_of(ev->cause);
    if (cause != CAUSE_NONE && (s->cause == CAUSE_NONE || cause < s->cause))
        s->cause = cause;
    return 0;
}

static const struct {
    const char *file;
    int iterations, epochs, last_epoch;
    double accuracy;
    int recoveries, backwards;
    enum log_cause cause;
} real_logs[] = {
    { "batch-indivisible", 0, 0, 0, 0, 0, 0, CAUSE_BATCH },
    { "checkpoint-folder-missing", 0, 0, 0, 0, 0, 0, CAUSE_DATA_MISSING },
    { "class-missing", 0, 0, 0, 0, 0, 0, CAUSE_CLASS_MISSING },
    { "data-missing", 0, 0, 0, 0, 0, 0, CAUSE_DATA_MISSING },
    { "driver-memory-invalid", 0, 0, 0, 0, 0, 0, CAUSE_BAD_MEMORY },
    { "executor-killed-recovered-origin", 59, 1, 1, 0.7731, 1, 0, CAUSE_EXECUTOR_LOST },
    { "executor-killed-recovered", 86, 2, 2, 0.8828, 1, 1, CAUSE_EXECUTOR_LOST },
    { "executor-killed", 20, 0, 0, 0, 0, 0, CAUSE_EXECUTOR_LOST },
    { "executor-memory-invalid", 0, 0, 0, 0, 0, 0, CAUSE_BAD_MEMORY },
    { "heap-local", 6, 0, 0, 0, 0, 0, CAUSE_OUT_OF_MEMORY },
    { "heap-standalone", 0, 0, 0, 0, 0, 0, CAUSE_OUT_OF_MEMORY },
    { "lenet-jvm-local", 118, 2, 2, 0.8873, 0, 0, CAUSE_NONE },
    { "lenet5-py-local", 118, 2, 2, 0.8801, 0, 0, CAUSE_NONE },
    { "lenet5-py-standalone", 118, 2, 2, 0.9041, 0, 0, CAUSE_NONE },
    { "resume-rawmodel", 0, 0, 0, 0, 0, 0, CAUSE_BAD_CHECKPOINT },
    { "resume-same", 0, 0, 0, 0, 0, 0, CAUSE_NONE },
    { "resume-truncpb", 0, 0, 0, 0, 0, 0, CAUSE_BAD_CHECKPOINT },
    { "resume-truncstate", 0, 0, 0, 0, 0, 0, CAUSE_BAD_CHECKPOINT },
    { "jar-missing", 0, 0, 0, 0, 0, 0, CAUSE_JAR_MISSING },
    { "master-down", 0, 0, 0, 0, 0, 0, CAUSE_MASTER_DOWN },
    { "no-executor", 0, 0, 0, 0, 0, 0, CAUSE_NONE },
    { "resume-jvm", 59, 1, 2, 0.8992, 0, 0, CAUSE_NONE },
    { "unknown-flag", 0, 0, 0, 0, 0, 0, CAUSE_UNKNOWN_OPTION },
};

static bool holds_a_needle(const char *line, size_t len)
{
    bool step;
    const char *needle;
    for (size_t i = 0; (needle = log_needle(i, &step)); i++)
        if (memmem(line, len, needle, strlen(needle)))
            return true;
    return false;
}

/* Who passes on only the lines with one of the texts leaves out nothing that counts. */
static void check_needles(const char *text)
{
    struct app_report ev;
    struct line_place place = { .level = LEVEL_NONE };
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        if (log_reader.parse(NULL, &place, text, len, &ev) && ev.kind != REPORT_CAUSE && !holds_a_needle(text, len))
            fail_msg("no needle is in '%.*s'", (int)len, text);
    }
}

static struct summary summary_of(const char *file)
{
    struct summary s = { .accuracy = 0 };
    struct err e = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    char path[200];
    (void)snprintf(path, sizeof path, "tests/data/logs/%s.log", file);
    if (io_read_file(&text, path, 1 << 24, &e) < 0)
        fail_msg("%s", e.text);
    struct lines stream;
    lines_init(&stream, &log_reader, 0);
    assert_int_equal(lines_feed(&stream, buf_text(&text), text.len, summarise, &s), 0);
    assert_int_equal(lines_end(&stream, summarise, &s), 0);
    lines_done(&stream);
    check_needles(buf_text(&text));
    return s;
}

static void test_log_reads_real_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(real_logs); i++) {
        struct summary s = summary_of(real_logs[i].file);
        if (s.counts[REPORT_STEP] != real_logs[i].iterations || s.counts[REPORT_EPOCH] != real_logs[i].epochs ||
            s.last_epoch != real_logs[i].last_epoch || s.counts[REPORT_CHECKPOINT] != real_logs[i].epochs)
            fail_msg("%s: got %d iterations, %d epochs, %d checkpoints, last epoch %d", real_logs[i].file,
                     s.counts[REPORT_STEP], s.counts[REPORT_EPOCH], s.counts[REPORT_CHECKPOINT], s.last_epoch);
        if (s.counts[REPORT_RECOVERY] != real_logs[i].recoveries || s.backwards != real_logs[i].backwards)
            fail_msg("%s: got %d recoveries, %d times back", real_logs[i].file, s.counts[REPORT_RECOVERY], s.backwards);
        assert_number(real_logs[i].file, s.accuracy, real_logs[i].accuracy);
        if (s.cause != real_logs[i].cause)
            fail_msg("%s: got %s, want %s", real_logs[i].file, log_causes[s.cause].name,
                     log_causes[real_logs[i].cause].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_tells_lines_apart),
        cmocka_unit_test(test_log_tells_beginnings_from_ends),
        cmocka_unit_test(test_log_reads_what_an_executor_has),
        cmocka_unit_test(test_log_reads_a_step),
        cmocka_unit_test(test_log_reads_a_step_of_bigdl_0),
        cmocka_unit_test(test_log_reads_a_step_of_the_local_optimizer),
        cmocka_unit_test(test_log_reads_results),
        cmocka_unit_test(test_log_reads_pauses_of_the_collector),
        cmocka_unit_test(test_log_reads_stamps),
        cmocka_unit_test(test_log_reads_numbers_as_strtod_does),
        cmocka_unit_test(test_log_finds_causes),
        cmocka_unit_test(test_log_every_cause_has_a_name_of_its_own),
        cmocka_unit_test(test_log_text_is_short_clean_and_tells),
        cmocka_unit_test(test_log_every_split_gives_the_same_events),
        cmocka_unit_test(test_log_a_stream_goes_on_where_the_sink_stopped),
        cmocka_unit_test(test_log_over_long_lines_are_cut_not_kept),
        cmocka_unit_test(test_log_a_stream_survives_lack_of_memory),
        cmocka_unit_test(test_log_reads_real_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
