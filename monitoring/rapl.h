/* The meter "rapl": joules of the processors' packages and their memory, by the files of powercap below SYSFS/class/powercap
 * (rapl_zones.h says which zones, zone_sum.h how counts become readings).
 *
 * Zones are chosen once, at open(). Their descriptors stay open; one that cannot be read makes a reading that says so, and is opened
 * again at the next read. A sum without one of its zones is no sum: then nothing has a value. */
#ifndef MONITORING_RAPL_H
#define MONITORING_RAPL_H

#include "monitoring/meter.h"

extern const struct meter_ops meter_rapl;

#endif
