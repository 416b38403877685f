/* bench_sampler FOLDER: what one sample of 58 events costs us, over a kernel that answers at once: its own work is not in it.
 *   sampler_layer_CPUS_HZ VALUE %-of-a-core      (the fastest of five runs)
 * bench_sampler --live SECONDS: counts all that can be counted here, on all CPUs, at 1 Hz, and writes each sample to /dev/null.
 *   counters_cpu VALUE %-of-a-core */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "monitoring/counters.h"
#include "monitoring/sample_blob.h"

enum { RUNS = 5, READS = 200 };

static int fake_open(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    (void)attr, (void)pid, (void)cpu, (void)flags;
    return (*(int *)ctx)++;
}

/* Each has counted a quarter of the time, so that all are scaled. */
static ssize_t fake_read(int fd, uint64_t out[3], void *ctx)
{
    static uint64_t now;
    (void)fd, (void)ctx;
    now += 1000;
    out[0] = 7 * now;
    out[1] = now;
    out[2] = now / 4;
    return 3 * sizeof *out;
}

static int fake_close(int fd, void *ctx)
{
    (void)fd, (void)ctx;
    return 0;
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put_online(const char *sysfs, int cpus)
{
    AUTO_FREE char *folder = io_join(sysfs, "devices/system/cpu");
    AUTO_FREE char *file = io_join(sysfs, "devices/system/cpu/online");
    char text[32];
    int n = snprintf(text, sizeof text, "0-%d\n", cpus - 1);
    if (!folder || !file || io_mkdirs(folder, NULL) < 0 || io_write_atomic(file, text, (size_t)n, 0644, NULL) < 0)
        exit(1);
}

/* As the node helper says it. */
static void put_sample(struct buf *line, const struct reading *v)
{
    AUTO_BUF struct buf blob = BUF_INIT;
    sample_blob_put(&blob, v, COUNTERS_READINGS);
    base64_put(line, blob.data, blob.len);
}

/* Seconds that one sample takes: read, scaled, and written as text. */
static double sample_once(struct counters *c, struct buf *text)
{
    static struct reading v[COUNTERS_READINGS];
    double began = now_s();
    for (int i = 0; i < READS; i++) {
        buf_clear(text);
        counters_read(c, v);
        put_sample(text, v);
    }
    return (now_s() - began) / READS;
}

static void bench(const char *sysfs, const struct events *events, int cpus)
{
    static const int rates[] = { 1, 10, 100 };
    int fd = 3;
    struct perf_ops ops = { .open = fake_open, .read = fake_read, .close = fake_close, .ctx = &fd };
    const struct counters_want want = {
        .ops = &ops, .events = events, .scope = COUNTERS_SYSTEM, .cgroup_fd = -1, .sysfs = sysfs, .proc = "/proc"
    };
    AUTO_BUF struct buf text = BUF_INIT;
    put_online(sysfs, cpus);
    struct counters *c = counters_new(&want);
    if (!c)
        exit(1);
    double least = 1;
    for (int i = 0; i < RUNS; i++) {
        double took = sample_once(c, &text);
        least = took < least ? took : least;
    }
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        printf("sampler_layer_%dcpus_%dhz %.4f %%-of-a-core\n", cpus, rates[i], 100 * least * rates[i]);
    printf("sampler_layer_%dcpus_sample %.1f us\n", cpus, 1e6 * least);
    counters_free(c);
}

enum { WARM_UP = 5 };

static int live(int seconds)
{
    static struct events events;
    static struct reading v[COUNTERS_READINGS];
    struct timespec tick;
    double began = 0;
    const struct counters_want want = { .ops = &perf_ops_kernel,
                                        .events = &events,
                                        .scope = COUNTERS_SYSTEM,
                                        .cgroup_fd = -1,
                                        .sysfs = "/sys",
                                        .proc = "/proc" };
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FCLOSE FILE *to = fopen("/dev/null", "we");
    if (!to || events_resolve(&events, "/sys", NULL) < 0)
        return 1;
    struct counters *c = counters_new(&want);
    if (!c)
        return 1;
    (void)clock_gettime(CLOCK_MONOTONIC, &tick);
    for (int i = 0; i < seconds + WARM_UP; i++) {
        began = i == WARM_UP ? now_s() : began;
        tick.tv_sec++;
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &tick, NULL);
        buf_clear(&text);
        counters_read(c, v);
        put_sample(&text, v);
        fprintf(to, "%s\n", buf_text(&text));
        (void)fflush(to);
    }
    printf("counters_cpu %.4f %%-of-a-core\n", 100 * (now_s() - began) / seconds);
    counters_free(c);
    return 0;
}

int main(int argc, char **argv)
{
    static const int machines[] = { 1, 8, 64 };
    static struct events events;
    if (argc == 3 && strcmp(argv[1], "--live") == 0)
        return live((int)strtol(argv[2], NULL, 10));
    if (argc != 2) {
        fprintf(stderr, "usage: bench_sampler FOLDER|--live SECONDS\n");
        return 2;
    }
    for (int i = 0; i < EVENT_NAMES; i++)
        events.v[i] = (struct event_spec){
            .name = event_names[i], .by = EVENT_BY_SYSFS, .attr = { .config = (uint64_t)i }, .same_as = -1, .scale = 1
        };
    for (size_t i = 0; i < ARRAY_LEN(machines); i++)
        bench(argv[1], &events, machines[i]);
    return 0;
}
