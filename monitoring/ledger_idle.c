#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "monitoring/ledger_state.h"

/* A stretch of so long, of which so much must have been read. */
static const double STRETCH_MS = 5000, READ_SHARE = 0.99;
/* Busy CPU seconds per second, below which a node is idle. */
static const double IDLE_CPUS = 1.0 / 20;

static struct ledger_given *given_for(const struct ledger *l, int node, const struct meter_ops *meter)
{
    for (size_t i = 0; i < l->n_given; i++)
        if (l->given[i].node == node && l->given[i].meter == meter)
            return &l->given[i];
    return NULL;
}

int ledger_idle(struct ledger *l, int node, const struct meter_ops *meter, double watts)
{
    struct ledger_given *g = given_for(l, node, meter);
    if (!g) {
        struct ledger_given *list = array_more(l->given, l->n_given, &l->cap_given, sizeof *list);
        if (!list)
            return -ENOMEM;
        l->given = list;
        g = &list[l->n_given++];
    }
    *g = (struct ledger_given){ node, meter, watts };
    return 0;
}

struct stretch {
    double from_ms, to_ms, read_ms, j;
    size_t last; /* the interval at which it ends, or the hole in it */
};

/* From interval i on. 1: here it is, 0: it has a hole, -ENODATA: more is to come. */
static int stretch_from(struct ledger_series *s, size_t i, struct stretch *out)
{
    struct ledger_piece x;
    int rc = ledger_series_piece(s, i, &x);
    *out = (struct stretch){ .from_ms = rc > 0 ? x.from_ms : 0, .last = i };
    while (rc > 0) {
        out->to_ms = x.to_ms;
        out->read_ms += x.to_ms - x.from_ms;
        out->j += x.j;
        if (out->to_ms - out->from_ms >= STRETCH_MS)
            return out->read_ms >= READ_SHARE * (out->to_ms - out->from_ms);
        rc = ledger_series_piece(s, out->last = ++i, &x);
    }
    return rc;
}

static bool was_idle(struct ledger_series *cpu, const struct stretch *x)
{
    double ms = x->to_ms - x->from_ms;
    struct ledger_sum busy = ledger_series_sum(cpu, x->from_ms, x->to_ms);
    return busy.covered_ms >= READ_SHARE * ms && busy.value < IDLE_CPUS * busy.covered_ms / 1000;
}

/* Goes on from where the last look ended; from the beginning where something came that was not the latest. What the next readings may yet make
 * a hole, or none any more, is looked at each time. */
static double least_w(struct ledger_place *p, struct ledger_meter *m)
{
    struct ledger_least *q = &m->least;
    uint64_t inserted = m->good.inserted + p->cpu.inserted;
    if (q->inserted != inserted)
        *q = (struct ledger_least){ .w = INFINITY, .inserted = inserted };
    struct stretch x;
    bool final = true;
    double w = q->w;
    int rc;
    for (size_t i = q->next; (rc = stretch_from(&m->good, i, &x)) >= 0; i++) {
        if (rc > 0 && (p->cpu.n == 0 || p->cpu.v[p->cpu.n - 1].to_ms < x.to_ms))
            break; /* how busy it was is still to come */
        if (rc > 0 && was_idle(&p->cpu, &x))
            w = fmin(w, x.j / x.read_ms * 1000);
        final = final && ledger_series_final(&m->good, x.last);
        if (final) {
            q->next = i + 1;
            q->w = w;
        }
    }
    return w;
}

double ledger_idle_w(const struct ledger *l, struct ledger_place *p, struct ledger_meter *m, bool *given)
{
    const struct ledger_given *g = given_for(l, p->node, m->ops);
    if (!g || isnan(g->watts))
        g = given_for(l, -1, m->ops);
    *given = g && !isnan(g->watts);
    if (*given)
        return g->watts;
    double w = least_w(p, m);
    return isfinite(w) ? w : NAN;
}
