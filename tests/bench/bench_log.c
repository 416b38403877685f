/* bench_log: MB/s of the log parser on one core, over 64 MB of real lines in memory.
 *   log_parser VALUE MB/s 300
 *   log_parser_spread VALUE MB/s        (slowest to fastest of the five runs) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/log.h"

enum { RUNS = 5, MEGABYTES = 64, READ_SIZE = 65536, SAMPLE_MAX = 4 << 20 };

/* The lines around the steps of an epoch, and one step: used when the sample is not there. */
static const char built_in[] =
    "2026-11-18 12:00:07.929 INFO DistriOptimizer$: caching training rdd ...\n"
    "2026-11-18 12:00:09.080 WARN TaskSetManager: Stage 0 contains a task of very large size (47118 KiB). The maximum "
    "recommended task size is 1000 KiB.\n"
    "2026-11-18 12:00:13.816 INFO DistriOptimizer$: [Epoch 1 1024/60000][Iteration 1][Wall Clock 1.485523432s] Trained "
    "1024.0 records in 1.485523432 seconds. Throughput is 689.3193 records/second. Loss is 2.3091407. "
    "Sequential204e83c8's "
    "hyper parameters: Current learning rate is 0.1. Current dampening is 1.7976931348623157E308.  \n";

static int count(void *ctx, const struct app_report *ev, uint64_t end)
{
    (void)end;
    size_t *n = ctx;
    n[ev->kind == REPORT_STEP]++;
    return 0;
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As the driver feeds it: what one read gives. */
static double run_once(const struct buf *text, size_t events[2])
{
    struct lines s;
    lines_init(&s, &log_reader, 0);
    double began = now_s();
    for (size_t at = 0; at < text->len; at += READ_SIZE) {
        size_t n = text->len - at < READ_SIZE ? text->len - at : READ_SIZE;
        if (lines_feed(&s, text->data + at, n, count, events) != 0)
            abort();
    }
    (void)lines_end(&s, count, events);
    double took = now_s() - began;
    lines_done(&s);
    return (double)text->len / 1e6 / took;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    AUTO_BUF struct buf sample = BUF_INIT;
    AUTO_BUF struct buf text = BUF_INIT;
    if (io_read_file(&sample, argc > 1 ? argv[1] : "tests/data/logs/lenet-jvm-local.log", SAMPLE_MAX, NULL) < 0)
        buf_puts(&sample, built_in);
    while (text.len < (size_t)MEGABYTES * 1000000 && !text.failed)
        buf_put(&text, buf_text(&sample), sample.len);
    if (text.failed)
        return 1;
    double speed[RUNS];
    size_t events[2] = { 0, 0 };
    for (int i = 0; i < RUNS; i++)
        speed[i] = run_once(&text, events);
    qsort(speed, RUNS, sizeof speed[0], by_size);
    printf("log_parser %.0f MB/s 300\n", speed[RUNS / 2]);
    printf("log_parser_spread %.0f MB/s\n", speed[RUNS - 1] - speed[0]);
    return events[0] + events[1] > 0 ? 0 : 1;
}
