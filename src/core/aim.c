#include "core/aim.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

bool aim_is_reached(const struct aim *a, double value, char why[AIM_WHY_MAX])
{
    if (isnan(a->target) || isnan(value) || (a->maximise ? value < a->target : value > a->target))
        return false;
    (void)snprintf(why, AIM_WHY_MAX, "%.6g reaches the target of %.6g", value, a->target);
    return true;
}

/* What is left does not pay for the next. Without a next one it is what is used up that counts. */
static bool is_over(double budget, double used, double next)
{
    return budget > 0 && (used >= budget || used + next > budget);
}

static double known(double x)
{
    return isnan(x) ? 0 : x;
}

double aim_price(const struct aim *a, const struct expense *s)
{
    enum { SECONDS_PER_HOUR = 3600, JOULES_PER_KWH = 3600000 };
    return known(s->core_seconds) / SECONDS_PER_HOUR * a->per_core_hour +
           known(s->joules) / JOULES_PER_KWH * a->per_kwh;
}

bool aim_is_spent(const struct aim *a, const struct expense *s, const struct expense *next, char why[AIM_WHY_MAX])
{
    const struct {
        double budget, used, next;
        const char *unit;
    } budgets[] = { { a->seconds, s->seconds, next->seconds, "s" },
                    { (double)a->epochs, (double)s->epochs, (double)next->epochs, "epochs" },
                    { (double)a->launches, (double)s->launches, (double)next->launches, "launches" },
                    { a->joules, s->joules, next->joules, "J" },
                    { a->price, aim_price(a, s), aim_price(a, next), "in money" } };
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        double used = known(budgets[i].used);
        if (!is_over(budgets[i].budget, used, known(budgets[i].next)))
            continue;
        (void)snprintf(why, AIM_WHY_MAX,
                       used >= budgets[i].budget ? "the budget of %.6g %s is used up"
                                                 : "the budget of %.6g %s has no room for another epoch",
                       budgets[i].budget, budgets[i].unit);
        return true;
    }
    return false;
}
