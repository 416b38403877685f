/* The meter "cpu": for how many seconds all CPUs of this machine together were busy, by the first line of PROC/stat.
 *
 * Busy is user, nice, system, irq and softirq. Guests are in user and nice already. Not busy is steal: in that time another machine
 * had the CPU, and neither the energy of this one nor the CPU time of its processes has it. Each of the five is told in whole ticks, so a
 * difference is off by less than a tick for each.
 *
 * After a discarded interval (a sum that went back, or more than all CPUs can have been busy) the next one begins with what was just
 * read; after a failed one, with what was read last. */
#ifndef MONITORING_CPU_TIME_H
#define MONITORING_CPU_TIME_H

#include <stdint.h>

#include "monitoring/meter.h"

extern const struct meter_ops meter_cpu;

struct cpu_time {
    uint64_t busy_ticks;
    int cpus; /* that are online */
};

/* The text of /proc/stat. Pure. -EINVAL: it is none, and *out is untouched. */
int cpu_time_parse(struct cpu_time *out, const char *text);

#endif
