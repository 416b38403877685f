#include "live/wants.h"

#include <errno.h>
#include <string.h>

static bool has_meter(const struct plan *p)
{
    return p->meters.n > 0;
}

static bool only_estimates(const struct plan *p)
{
    bool all = has_meter(p);
    for (size_t i = 0; i < p->meters.n; i++)
        all = all && p->meters.v[i].meter->estimated;
    return all;
}

/* The key that judges by joules; NULL: none does. */
static const char *judges_by_joules(const struct plan *p)
{
    const struct config *c = &p->cfg;
    if (goals_have(&c->goals, GOAL_JOULES))
        return "study.metrics";
    if (demands_name(&p->demands, goal_joules))
        return "study.constraints";
    bool price_alone = c->budget_price > 0 && c->price_per_kwh > 0 && !(c->price_per_core_hour > 0);
    return price_alone ? "budget.price_per_kwh" : NULL;
}

int wants_check(const struct plan *p, struct err *e)
{
    const char *key = judges_by_joules(p);
    if (!key || has_meter(p))
        return 0;
    return err_set(
        e, -EINVAL,
        "'%s': '%s' wants joules, and no meter is configured: name one in 'monitoring.meters', such as \"rapl\" or "
        "\"estimate\" ('pipetune doctor' says which work here)",
        p->doc.name, key);
}

bool wants_joules_as_cost(const struct plan *p)
{
    return strcmp(p->cfg.cost, "joules") == 0 && has_meter(p);
}

void wants_put_notes(const struct plan *p, struct buf *out)
{
    const struct config *c = &p->cfg;
    bool price = c->budget_price > 0 && c->price_per_kwh > 0, cost = strcmp(c->cost, "joules") == 0;
    const char *key = judges_by_joules(p);
    if (only_estimates(p) && (key || price || cost))
        buf_printf(out, "joules are an estimate here: no other meter is configured\n");
    if (price && !has_meter(p))
        buf_printf(out, "budget.price: no meter is configured, so that core-hours alone count\n");
    if (cost && !has_meter(p))
        buf_printf(out, "search.cost: no meter is configured, so that an epoch's price is its seconds\n");
}
