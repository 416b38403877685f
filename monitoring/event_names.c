#include "monitoring/event_names.h"

#include <string.h>

const char *const event_names[EVENT_NAMES] = { EVENT_NAMES_LIST };

int event_name_index(const char *name)
{
    for (int i = 0; i < EVENT_NAMES; i++)
        if (strcmp(name, event_names[i]) == 0)
            return i;
    return -1;
}
