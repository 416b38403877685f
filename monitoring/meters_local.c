#include <stddef.h>
#include <string.h>

#include "monitoring/cpu_time.h"
#include "monitoring/estimate.h"
#include "monitoring/pcm.h"
#include "monitoring/perf_power.h"
#include "monitoring/rapl.h"

const struct meter_ops *const meters_local[] = { &meter_rapl,     &meter_perf_power, &meter_pcm,
                                                 &meter_estimate, &meter_cpu,        NULL };

const struct meter_ops *meter_find_local(const char *name)
{
    for (size_t i = 0; meters_local[i]; i++)
        if (strcmp(meters_local[i]->name, name) == 0)
            return meters_local[i];
    return NULL;
}
