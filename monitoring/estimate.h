/* The meter "estimate": joules by a model, idle_w for as long as the interval was and cpu_w for each second that a CPU was busy
 * (cpu_time.h). It ranks what runs on one machine as CPU time does, and says no more: the error of its readings is that of the CPU
 * times, not of the model. */
#ifndef MONITORING_ESTIMATE_H
#define MONITORING_ESTIMATE_H

#include "monitoring/meter.h"

/* open(), probe(): -EINVAL unless the configuration has both powers, finite and above 0. */
extern const struct meter_ops meter_estimate;

#endif
