/* Writes N points to an InfluxDB as a monitor does: lines built of values, delivered on the loop. bench_influx URL DATABASE N DIR
 * prints "points seconds cpu_seconds 0". The points are those of tests/bench/influx/write.py; DIR is made, and holds the store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/io.h"
#include "base/own.h"
#include "live/deliver.h"
#include "monitoring/line.h"

enum { NODES = 16, PUSHED_AT_ONCE = 1000, WAITING_MAX = 50000, DRAIN_MS = 60000 };
#define BEGIN_NS INT64_C(1700000000000000000)

struct bench {
    uv_loop_t loop;
    struct store *store;
    struct writer *writer;
    struct deliver *deliver;
    struct deliver_counts counts;
};

static double cpu_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u); /* cannot fail for oneself */
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double wall_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* always there */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_point(struct buf *b, int64_t i)
{
    char node[16];
    (void)snprintf(node, sizeof node, "node-%d", (int)(i % NODES));
    struct line l = line_begin(b, "power", LINE_NS);
    line_tag(&l, "nodename", node);
    line_float(&l, "value", 100 + (double)(i * 7919 % 10007) / 100);
    (void)line_end(&l, BEGIN_NS + i * 1000000); /* a failure shows in the count */
}

static void write_points(struct bench *x, int64_t n)
{
    struct buf b = BUF_INIT;
    for (int64_t i = 0; i < n;) {
        if (deliver_counts(x->deliver).waiting > WAITING_MAX) {
            (void)uv_run(&x->loop, UV_RUN_ONCE);
            continue;
        }
        uint32_t lines = 0;
        buf_clear(&b);
        for (; lines < PUSHED_AT_ONCE && i < n; lines++, i++)
            put_point(&b, i);
        deliver_push(x->deliver, b.data, b.len, lines);
        (void)uv_run(&x->loop, UV_RUN_NOWAIT);
    }
    buf_done(&b);
}

static void on_ended(void *ctx)
{
    struct bench *x = ctx;
    x->counts = deliver_counts(x->deliver);
    deliver_free(x->deliver);
    writer_close(x->writer);
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    (void)fprintf(stderr, "bench_influx: %s\n", text);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr, "usage: bench_influx URL DATABASE POINTS DIR\n");
        return 2;
    }
    static const struct deliver_ops ops = { .note = on_note };
    const struct deliver_cfg cfg = { .url = argv[1], .database = argv[2] };
    struct deliver_place place = { .study = 0 };
    struct bench x = { 0 };
    struct err e = { 0 };
    AUTO_FREE char *path = io_join(argv[4], "lines.db");
    if (!path || uv_loop_init(&x.loop) < 0 || io_mkdirs(argv[4], &e) < 0 ||
        store_open(&x.store, path, STORE_WRITE, &e) < 0 || writer_open(&x.writer, &x.loop, x.store, &e) < 0) {
        (void)fprintf(stderr, "bench_influx: %s\n", e.text);
        return 1;
    }
    place.store = x.store;
    place.writer = x.writer;
    if (deliver_open(&x.deliver, &x.loop, &cfg, &place, &ops, &x, &e) < 0) {
        (void)fprintf(stderr, "bench_influx: %s\n", e.text);
        return 1;
    }
    double cpu = cpu_s(), wall = wall_s();
    write_points(&x, strtoll(argv[3], NULL, 10));
    deliver_end(x.deliver, DRAIN_MS, on_ended);
    (void)uv_run(&x.loop, UV_RUN_DEFAULT);
    store_close(x.store);
    printf("%" PRIu64 " %.4f %.4f 0\n", x.counts.stored, wall_s() - wall, cpu_s() - cpu);
    return uv_loop_close(&x.loop) == 0 && x.counts.stored == x.counts.produced ? 0 : 1;
}
