#include <math.h>
#include <string.h>

#include "base/own.h"
#include "cmd/look.h"
#include "cmd/report.h"
#include "core/csv.h"

/* The keys of this object over all trials, in the order they come up: members of one object, whose values mean nothing. */
static json_t *all_keys(const struct report *r, bool system)
{
    json_t *keys = json_object();
    for (size_t i = 0; keys && i < r->n; i++) {
        const char *key;
        json_t *value;
        AUTO_JSON json_t *object = look_object(system ? r->trials[i].row.effective : r->trials[i].row.hyper);
        json_object_foreach(object, key, value)
        {
            if (!json_object_get(keys, key))
                (void)json_object_set(keys, key, value); /* jansson ends the program when memory is out */
        }
    }
    return keys;
}

static void put_heads(struct buf *b, json_t *keys, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach(keys, key, value)
    {
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s.%s", prefix, key);
        buf_putc(b, ',');
        csv_put_text(b, buf_text(&name));
        b->failed |= name.failed;
    }
}

static void put_values(struct buf *b, json_t *keys, const char *object_text)
{
    AUTO_JSON json_t *object = look_object(object_text);
    const char *key;
    json_t *value;
    json_object_foreach(keys, key, value)
    {
        const json_t *of = json_object_get(object, key);
        AUTO_FREE char *other = of && !json_is_string(of) && !json_is_number(of) ? json_text(of) : NULL;
        buf_putc(b, ',');
        if (json_is_number(of))
            csv_put_number(b, json_number_value(of));
        else
            csv_put_text(b, other ? other : json_string_value(of));
    }
}

/* Columns that are there where results are judged: those that were before them stay where they were. */
static bool is_judged(const struct report *r)
{
    bool any = r->pareto.goals.n > 0;
    for (size_t i = 0; i < r->n; i++)
        any |= r->trials[i].row.violates != NULL;
    return any;
}

static void put_row(struct buf *b, const struct report *r, const struct report_trial *t, json_t *hyper, json_t *system)
{
    char source[64];
    buf_printf(b, "%d,", t->row.number);
    csv_put_text(b, t->state);
    put_values(b, hyper, t->row.hyper);
    put_values(b, system, t->row.effective);
    buf_printf(b, ",%d,%d", t->done, t->row.epochs);
    csv_put_next(b, t->row.accuracy);
    csv_put_next(b, t->row.loss);
    csv_put_next(b, t->row.metric);
    csv_put_next(b, t->seconds);
    csv_put_next(b, t->energy.j);
    buf_putc(b, ',');
    csv_put_text(b, energy_figure_source(&t->energy, source));
    buf_printf(b, ",%d,", t->row.attempts);
    if (t->row.copy_of)
        buf_printf(b, "%d", t->row.copy_of);
    buf_putc(b, ',');
    csv_put_text(b, t->row.reason);
    if (is_judged(r)) {
        const struct pareto_trial *in = pareto_trial(&r->pareto, t->row.number);
        buf_putc(b, ',');
        csv_put_text(b, t->row.violates);
        buf_puts(b, in && in->front ? ",1" : ",");
    }
    buf_putc(b, '\n');
}

void report_put_csv(struct buf *b, const struct report *r)
{
    AUTO_JSON json_t *hyper = all_keys(r, false);
    AUTO_JSON json_t *system = all_keys(r, true);
    buf_puts(b, "trial,state");
    put_heads(b, hyper, "hyper");
    put_heads(b, system, "system");
    buf_puts(b, ",epochs,budget,accuracy,loss,metric,seconds,energy_j,energy_source,attempts,copy_of,reason");
    buf_puts(b, is_judged(r) ? ",violates,pareto\n" : "\n");
    for (size_t i = 0; i < r->n; i++)
        put_row(b, r, &r->trials[i], hyper, system);
}
