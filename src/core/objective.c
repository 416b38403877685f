#include "core/objective.h"

#include <math.h>
#include <string.h>

enum objective objective_find(const char *name)
{
    if (strcmp(name, "energy") == 0)
        return OBJECTIVE_ENERGY;
    return strcmp(name, "edp") == 0 ? OBJECTIVE_EDP : OBJECTIVE_TIME;
}

bool objective_needs_power(enum objective o)
{
    return o != OBJECTIVE_TIME;
}

double objective_cost_s(enum objective o, const struct objective_reference *ref, double seconds, double records,
                        double power_w)
{
    double power = power_w / ref->power_w, slow = seconds / records / ref->record_s;
    double factor = o == OBJECTIVE_ENERGY ? power : o == OBJECTIVE_EDP ? power * slow : 1;
    return isfinite(factor) && factor > 0 ? seconds * factor : seconds;
}
