/* The meter "perf-power": joules of the processors' packages and their memory, by the events power/energy-pkg/ and power/energy-ram/.
 *
 * Each is opened on the CPUs of the PMU's cpumask: one of each socket or die; a kernel that shows no such list is asked for CPUs and
 * their sockets and dies (AMD counts per socket). energy-cores and energy-gpu are parts of the package, energy-psys has it in it: none
 * of these is read. Counts are of 64 bits and never go round; what zone_sum.h says of readings holds here, too. CPUs of one
 * socket are twins there. A count that cannot be read makes a reading that says so, and all events are opened anew at the next
 * read, which begins with "first": they count from 0 then. */
#ifndef MONITORING_PERF_POWER_H
#define MONITORING_PERF_POWER_H

#include "monitoring/meter.h"

extern const struct meter_ops meter_perf_power;

#endif
