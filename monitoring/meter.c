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

bool meter_are_names(const char *text)
{
    const char *at = text;
    while (strspn(at, METER_NAME_BYTES) > 0) {
        at += strspn(at, METER_NAME_BYTES);
        if (*at == '\0')
            return at - text <= METER_NAMES_MAX;
        if (*at++ != ',')
            return false;
    }
    return false;
}
