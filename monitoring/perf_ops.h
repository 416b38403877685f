/* The calls by which events are counted, and CPUs watched, so that tests and benches can do so on machines that do not exist. */
#ifndef MONITORING_PERF_OPS_H
#define MONITORING_PERF_OPS_H

#include <stdint.h>
#include <sys/types.h>

#include "monitoring/events.h"
#include "monitoring/perf_ring.h"

/* Flags of open(): `pid` is a descriptor of a cgroup's folder; threads that the thread starts are counted with it, its child processes
 * are not (Linux 5.13); user mode alone, which needs fewer rights; others may join it. */
enum { PERF_OPS_CGROUP = 1, PERF_OPS_THREADS = 2, PERF_OPS_USER = 4, PERF_OPS_LEADER = 8 };

enum { PERF_OPS_GROUP_MAX = 16 }; /* as many may be read together */

struct perf_ops {
    /* A descriptor that counts from now on: of one thread on any CPU (pid > 0, cpu -1; 0 is the caller), of everything on one CPU
     * (pid -1), or of a cgroup on one CPU. -errno: -ENOENT, -EOPNOTSUPP, -EINVAL: there is no such event here, or no such flag. */
    int (*open)(const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx);

    /* The count, and for how many ns the event was enabled and did run. Bytes read; fewer than all of `out`: it is in an error state;
     * -errno. */
    ssize_t (*read)(int fd, uint64_t out[3] /* value, enabled, running */, void *ctx);

    int (*close)(int fd, void *ctx);
    void *ctx;

    /* NULL: nothing joins. As open(), and from now on read with the leader, which counts in the same place. */
    int (*join)(int leader, const struct event_attr *attr, pid_t pid, int cpu, unsigned flags, void *ctx);

    /* The counts of a leader and of those that joined it, in that order, and the times that they share: as many as there are, or
     * -errno. One system call, and one interrupt where the CPU is another: that is what a read from afar costs. */
    int (*read_group)(int leader, uint64_t times[2] /* enabled, running */, uint64_t *values, int most, void *ctx);

    /* NULL: no CPU can be watched. From now on the ring has where this CPU was, `hz` times a second of what it runs in user mode, and that
     * a process mapped what can be executed. `ring` comes with its size. A descriptor for unwatch(), or -errno. */
    int (*watch)(int cpu, unsigned hz, struct perf_ring *ring, void *ctx);
    void (*unwatch)(int fd, struct perf_ring *ring, void *ctx);
};

extern const struct perf_ops perf_ops_kernel;

#endif
