#include "view/foretold.h"

#include <math.h>

#include "base/own.h"
#include "view/table.h"

struct moment {
    const char *name;
    int epoch; /* 0: not within the study's */
};

enum { MOMENTS = 3 };

static void moments_of(const struct outlook_told *t, struct moment out[MOMENTS])
{
    out[0] = (struct moment){ "soonest", t->reach.soonest };
    out[1] = (struct moment){ "middle", t->reach.middle };
    out[2] = (struct moment){ "latest", t->reach.latest };
}

/* An empty one is left out. */
static void put_part(json_t *into, const char *name, json_t *what)
{
    if (json_object_size(what) > 0)
        (void)json_object_set_new(into, name, what);
    else
        json_decref(what);
}

static json_t *target_json(const struct outlook_told *t)
{
    struct moment at[MOMENTS];
    json_t *j = json_pack("{s:o}", "value", json_num(t->target)), *epochs = json_object(), *seconds = json_object();
    moments_of(t, at);
    for (size_t i = 0; i < MOMENTS; i++) {
        double s = outlook_seconds(t, at[i].epoch);
        if (at[i].epoch > 0)
            (void)json_object_set_new(epochs, at[i].name, json_integer(at[i].epoch));
        if (isfinite(s))
            (void)json_object_set_new(seconds, at[i].name, json_num(s));
    }
    put_part(j, "epochs", epochs);
    put_part(j, "seconds", seconds);
    return j;
}

json_t *foretold_json(const struct outlook_told *t)
{
    if (t->epoch == 0)
        return NULL;
    json_t *j = json_pack("{s:i, s:i, s:o, s:o, s:o}", "epoch", t->epoch, "seen", t->seen, "median",
                          json_num(t->value.median), "low", json_num(t->value.low), "high", json_num(t->value.high));
    if (isfinite(t->target))
        (void)json_object_set_new(j, "target", target_json(t));
    return j;
}

/* When the target is reached, by how sure that is: "after 24 to 41 epochs, likely 31". */
static void put_epochs(struct buf *b, const struct outlook_told *t)
{
    const struct foretold_reach *r = &t->reach;
    if (r->soonest == 0)
        buf_printf(b, "not within %d epochs", t->epoch);
    else if (r->latest && r->latest <= t->seen)
        buf_printf(b, "reached at epoch %d", r->latest);
    else if (r->middle == 0)
        buf_printf(b, "not before epoch %d, likely not within %d", r->soonest, t->epoch);
    else if (r->latest == 0)
        buf_printf(b, "likely at epoch %d, not before %d, and maybe not within %d", r->middle, r->soonest, t->epoch);
    else
        buf_printf(b, "likely at epoch %d, within %d to %d", r->middle, r->soonest, r->latest);
}

static void put_time(struct buf *b, const struct outlook_told *t)
{
    char from[32], to[32];
    double soonest = outlook_seconds(t, t->reach.soonest), latest = outlook_seconds(t, t->reach.latest);
    if (!isfinite(soonest))
        return;
    buf_printf(b, isfinite(latest) ? ", in %s" : ", in %s at least", table_duration(soonest, from));
    if (isfinite(latest) && t->reach.latest > t->reach.soonest)
        buf_printf(b, " to %s", table_duration(latest, to));
}

void foretold_put(struct buf *b, const struct outlook_told *t)
{
    char median[32], low[32], high[32], target[32];
    if (t->epoch == 0)
        return;
    buf_printf(b, "foretold for epoch %d: %s, 80 %% within %s to %s", t->epoch, table_digits(t->value.median, median),
               table_digits(t->value.low, low), table_digits(t->value.high, high));
    if (!isfinite(t->target))
        return;
    buf_printf(b, "; target %s: ", table_digits(t->target, target));
    put_epochs(b, t);
    put_time(b, t);
}

void foretold_put_short(struct buf *b, const struct outlook_told *t)
{
    char low[32], high[32], time[32];
    double middle = outlook_seconds(t, t->reach.middle);
    if (t->epoch == 0)
        return;
    buf_printf(b, "will be %s to %s", table_digits(t->value.low, low), table_digits(t->value.high, high));
    if (isfinite(t->target) && t->reach.middle > t->seen)
        buf_printf(b, ", target at epoch %d", t->reach.middle);
    if (isfinite(t->target) && isfinite(middle))
        buf_printf(b, " in %s", table_duration(middle, time));
}
