#include "monitoring/perf_ops.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int join_event(int leader, const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    (void)ctx;
    uint64_t format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    struct perf_event_attr a = {
        .type = attr->type,
        .size = sizeof a,
        .config = attr->config,
        .config1 = attr->config1,
        .config2 = attr->config2,
        .read_format = format | (flags & PERF_OPS_LEADER ? PERF_FORMAT_GROUP : 0U),
        .inherit = (flags & PERF_OPS_THREADS) != 0,
        .inherit_thread = (flags & PERF_OPS_THREADS) != 0,
        .exclude_kernel = (flags & PERF_OPS_USER) != 0,
        .exclude_hv = (flags & PERF_OPS_USER) != 0,
    };
    unsigned long how = PERF_FLAG_FD_CLOEXEC | (flags & PERF_OPS_CGROUP ? PERF_FLAG_PID_CGROUP : 0UL);
    long fd = syscall(SYS_perf_event_open, &a, pid, cpu, leader, how);
    return fd < 0 ? -errno : (int)fd;
}

static int open_event(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx)
{
    return join_event(-1, attr, pid, cpu, flags, ctx);
}

static int read_group(int leader, uint64_t times[2], uint64_t *values, int most, void *ctx)
{
    enum { NR, ENABLED, RUNNING, HEAD };
    uint64_t got[HEAD + PERF_OPS_GROUP_MAX];
    (void)ctx;
    ssize_t n = read(leader, got, sizeof got);
    if (n < 0)
        return -errno;
    if ((size_t)n < HEAD * sizeof *got || got[NR] > (uint64_t)most || (size_t)n != (HEAD + got[NR]) * sizeof *got)
        return -EIO; /* in an error state, it says nothing */
    times[0] = got[ENABLED];
    times[1] = got[RUNNING];
    memcpy(values, got + HEAD, got[NR] * sizeof *values);
    return (int)got[NR];
}

static ssize_t read_event(int fd, uint64_t out[3], void *ctx)
{
    (void)ctx;
    ssize_t n = read(fd, out, 3 * sizeof *out);
    return n < 0 ? -errno : n;
}

static int close_event(int fd, void *ctx)
{
    (void)ctx;
    return close(fd) < 0 ? -errno : 0;
}

static size_t mapped(const struct perf_ring *ring)
{
    return (size_t)sysconf(_SC_PAGESIZE) + ring->size;
}

static int watch_cpu(int cpu, unsigned hz, struct perf_ring *ring, void *ctx)
{
    (void)ctx;
    struct perf_event_attr a = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof a,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = hz,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .exclude_idle = 1,
        .mmap = 1,
        .watermark = 1, /* nobody waits for it */
        .wakeup_watermark = (uint32_t)ring->size,
    };
    long fd = syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    void *memory = mmap(NULL, mapped(ring), PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (memory == MAP_FAILED) {
        int rc = -errno;
        (void)close((int)fd);
        return rc;
    }
    ring->memory = memory;
    return (int)fd;
}

static void unwatch_cpu(int fd, struct perf_ring *ring, void *ctx)
{
    (void)ctx;
    (void)munmap(ring->memory, mapped(ring)); /* what was mapped so */
    (void)close(fd);
    ring->memory = NULL;
}

const struct perf_ops perf_ops_kernel = {
    .open = open_event,
    .read = read_event,
    .close = close_event,
    .join = join_event,
    .read_group = read_group,
    .watch = watch_cpu,
    .unwatch = unwatch_cpu,
};
