#include "monitoring/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "monitoring/ledger_state.h"

const char *ledger_source_name(enum ledger_source s)
{
    static const char *const names[] = { "absent", "measured", "attributed", "estimated" };
    return (size_t)s < ARRAY_LEN(names) ? names[s] : "?";
}

struct ledger *ledger_new(void)
{
    return calloc(1, sizeof(struct ledger));
}

static void place_done(struct ledger_place *p)
{
    ledger_series_done(&p->cpu);
    for (size_t i = 0; i < p->n_meters; i++) {
        ledger_series_done(&p->meters[i].good);
        ledger_series_done(&p->meters[i].bad);
    }
    for (size_t i = 0; i < p->n_trials; i++)
        ledger_series_done(&p->trials[i].cpu);
    free(p->meters);
    free(p->trials);
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_places; i++)
        place_done(&l->places[i]);
    free(l->places);
    free(l->given);
    free(l);
}

/* --- finding: by number among n rows that begin with it, in its order, so that sums are the same however readings came --- */

static size_t row_at(const void *rows, size_t n, size_t size, int number)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (*(const int *)(const void *)((const char *)rows + mid * size) >= number)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

struct ledger_place *ledger_place(const struct ledger *l, int node)
{
    size_t i = row_at(l->places, l->n_places, sizeof *l->places, node);
    return i < l->n_places && l->places[i].node == node ? &l->places[i] : NULL;
}

struct ledger_trial *ledger_trial(const struct ledger_place *p, int trial)
{
    size_t i = row_at(p->trials, p->n_trials, sizeof *p->trials, trial);
    return i < p->n_trials && p->trials[i].trial == trial ? &p->trials[i] : NULL;
}

struct ledger_meter *ledger_meter(const struct ledger_place *p, const struct meter_ops *ops)
{
    for (size_t i = 0; p && i < p->n_meters; i++)
        if (p->meters[i].ops == ops)
            return &p->meters[i];
    return NULL;
}

/* The same, made where there is none yet. NULL: memory. */

static struct ledger_place *need_place(struct ledger *l, int node)
{
    struct ledger_place *found = ledger_place(l, node);
    if (found)
        return found;
    struct ledger_place *list = array_more(l->places, l->n_places, &l->cap_places, sizeof *list);
    if (!list)
        return NULL;
    l->places = list;
    size_t i = row_at(list, l->n_places, sizeof *list, node);
    memmove(&list[i + 1], &list[i], (l->n_places++ - i) * sizeof *list);
    list[i] = (struct ledger_place){ .node = node, .cpu.kind = LEDGER_SPANS };
    return &list[i];
}

static struct ledger_trial *need_trial(struct ledger_place *p, int trial)
{
    struct ledger_trial *found = ledger_trial(p, trial);
    if (found)
        return found;
    struct ledger_trial *list = array_more(p->trials, p->n_trials, &p->cap_trials, sizeof *list);
    if (!list)
        return NULL;
    p->trials = list;
    size_t i = row_at(list, p->n_trials, sizeof *list, trial);
    memmove(&list[i + 1], &list[i], (p->n_trials++ - i) * sizeof *list);
    list[i] = (struct ledger_trial){ .trial = trial, .cpu.kind = LEDGER_SPANS };
    return &list[i];
}

static struct ledger_meter *need_meter(struct ledger_place *p, const struct meter_ops *ops)
{
    struct ledger_meter *found = ledger_meter(p, ops);
    if (found)
        return found;
    struct ledger_meter *list = array_more(p->meters, p->n_meters, &p->cap_meters, sizeof *list);
    if (!list)
        return NULL;
    p->meters = list;
    list[p->n_meters] = (struct ledger_meter){ .ops = ops,
                                               .good.kind = ops->kind == METER_POWER ? LEDGER_POINTS : LEDGER_SPANS,
                                               .bad.kind = LEDGER_MOMENTS,
                                               .least.w = INFINITY };
    return &list[p->n_meters++];
}

/* --- what comes --- */

static bool is_amount(double x)
{
    return isfinite(x) && x >= 0;
}

static int add_reading(struct ledger_meter *m, const struct meter_reading *r)
{
    if (r->state != METER_OK)
        return ledger_series_add(&m->bad, r->to_ms, r->to_ms, 0, 0);
    double from = m->good.kind == LEDGER_POINTS ? r->to_ms : r->from_ms;
    return ledger_series_add(&m->good, from, r->to_ms, r->value, r->error >= 0 ? r->error : NAN);
}

int ledger_read(struct ledger *l, int node, const struct meter_ops *meter, const struct meter_reading *r)
{
    bool cpu = meter->kind == METER_CPU, lost = r->state == METER_DISCARDED || r->state == METER_FAILED;
    bool told = r->state == METER_OK && is_amount(r->value);
    if (node < 0 || !(told || (lost && !cpu)))
        return 0;
    struct ledger_place *p = need_place(l, node);
    if (!p)
        return -ENOMEM;
    if (cpu)
        return ledger_series_add(&p->cpu, r->from_ms, r->to_ms, r->value, 0);
    struct ledger_meter *m = need_meter(p, meter);
    return m ? add_reading(m, r) : -ENOMEM;
}

int ledger_cpu(struct ledger *l, int node, int trial, double from_ms, double to_ms, double cpu_s)
{
    if (node < 0 || !is_amount(cpu_s))
        return 0;
    struct ledger_place *p = need_place(l, node);
    struct ledger_trial *t = p ? need_trial(p, trial) : NULL;
    return t ? ledger_series_add(&t->cpu, from_ms, to_ms, cpu_s, 0) : -ENOMEM;
}

static bool was_read(const struct ledger_meter *m)
{
    return m && m->good.n + m->bad.n > 0;
}

int ledger_nodes(const struct ledger *l)
{
    for (size_t i = l->n_places; i-- > 0;)
        for (size_t m = 0; m < l->places[i].n_meters; m++)
            if (was_read(&l->places[i].meters[m]))
                return l->places[i].node + 1;
    return 0;
}

bool ledger_has(const struct ledger *l, int node, const struct meter_ops *meter)
{
    const struct ledger_meter *m = ledger_meter(ledger_place(l, node), meter);
    return m && m->good.n > 0;
}

bool ledger_knows(const struct ledger *l, int node, const struct meter_ops *meter)
{
    return was_read(ledger_meter(ledger_place(l, node), meter));
}
