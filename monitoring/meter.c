#include "monitoring/meter.h"

#include <string.h>

static const char *const names[METER_STATES] = {
    [METER_OK] = "ok",
    [METER_FIRST] = "first",
    [METER_DISCARDED] = "discarded",
    [METER_FAILED] = "failed",
};

const char *meter_state_name(enum meter_state s)
{
    return names[s];
}

int meter_state_find(const char *name)
{
    for (int i = 0; i < METER_STATES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}
