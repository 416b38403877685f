#include <stddef.h>
#include <string.h>

#include "monitoring/cpu_time.h"
#include "monitoring/estimate.h"
#include "monitoring/pcm.h"
#include "monitoring/pdu.h"
#include "monitoring/perf_power.h"
#include "monitoring/rapl.h"
#include "monitoring/snmp.h"

/* What measures a machine by itself first, what is asked over the network next, models last. */
const struct meter_ops *const meters[] = { &meter_rapl, &meter_perf_power, &meter_pcm, &meter_pdu,
                                           &meter_snmp, &meter_estimate,   &meter_cpu, NULL };

const struct meter_ops *meter_find(const char *name)
{
    for (size_t i = 0; meters[i]; i++)
        if (strcmp(meters[i]->name, name) == 0)
            return meters[i];
    return NULL;
}
