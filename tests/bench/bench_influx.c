/* Writes N points to an InfluxDB as a monitor does: lines built of values, the sender, gzipped batches. bench_influx URL DATABASE N
 * [plain] prints "points seconds cpu_seconds bytes". The points are those of tests/bench/influx/write.py. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "monitoring/sender_io.h"

enum { NODES = 16, PUSHED_AT_ONCE = 1000, WAITING_MAX = 50000 };
#define BEGIN_NS INT64_C(1700000000000000000)

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

/* The jobs are done on a thread, as the loop has them done. */
struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct sender_io *io;
    struct sender_job *job; /* to be done */
    bool done, stop;
};

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    (void)pthread_mutex_lock(&w->lock); /* none of these fails on what was initialised */
    while (!w->stop) {
        if (!w->job || w->done) {
            (void)pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&w->lock);
        sender_io_run(w->io, w->job);
        (void)pthread_mutex_lock(&w->lock);
        w->done = true;
        (void)pthread_cond_broadcast(&w->changed);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* What is done goes to the sender, and its next job to the worker. With `wait`, not before something is done. */
static void turn(struct worker *w, struct sender *s, bool wait)
{
    int64_t wake;
    (void)pthread_mutex_lock(&w->lock);
    while (wait && w->job && !w->done)
        (void)pthread_cond_wait(&w->changed, &w->lock);
    if (w->done) {
        sender_done(s, clock_ms(), w->job);
        w->job = NULL;
        w->done = false;
    }
    struct sender_job *job;
    if (!w->job && sender_next(s, clock_ms(), &job, &wake)) {
        w->job = job;
        (void)pthread_cond_broadcast(&w->changed);
    }
    (void)pthread_mutex_unlock(&w->lock);
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

static void write_points(struct worker *w, struct sender *s, int64_t n)
{
    struct buf b = BUF_INIT;
    for (int64_t i = 0; i < n;) {
        uint32_t lines = 0;
        buf_clear(&b);
        for (; lines < PUSHED_AT_ONCE && i < n; lines++, i++)
            put_point(&b, i);
        sender_push(s, clock_ms(), b.data, b.len, lines);
        turn(w, s, sender_counts(s).waiting > WAITING_MAX);
    }
    buf_done(&b);
    sender_close(s, clock_ms(), clock_ms() + 60000);
    while (!sender_ended(s))
        turn(w, s, true);
}

static struct sender_counts run(const struct sender_io *io, struct sender *s, int64_t n)
{
    struct worker w = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .io = io };
    if (pthread_create(&w.thread, NULL, worker_run, &w) != 0)
        exit(1);
    write_points(&w, s, n);
    (void)pthread_mutex_lock(&w.lock);
    w.stop = true;
    (void)pthread_cond_broadcast(&w.changed);
    (void)pthread_mutex_unlock(&w.lock);
    (void)pthread_join(w.thread, NULL);
    return sender_counts(s);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fprintf(stderr, "usage: bench_influx URL DATABASE POINTS [plain]\n");
        return 2;
    }
    struct influx_cfg cfg = { .url = argv[1], .database = argv[2], .plain = argc > 4, .precision = LINE_NS };
    struct err e = { 0 };
    struct sender_io io = { 0 };
    struct sender *s = sender_new(&(struct sender_cfg){ 0 });
    if (!s || influx_new(&io.influx, &cfg, &e) < 0) {
        (void)fprintf(stderr, "bench_influx: %s\n", e.text);
        return 1;
    }
    double cpu = cpu_s(), wall = wall_s();
    struct sender_counts c = run(&io, s, strtoll(argv[3], NULL, 10));
    printf("%" PRIu64 " %.4f %.4f %" PRIu64 "\n", c.stored, wall_s() - wall, cpu_s() - cpu,
           influx_sent_bytes(io.influx));
    influx_free(io.influx);
    sender_free(s);
    return c.stored == c.produced ? 0 : 1;
}
