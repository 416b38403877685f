#include <math.h>

#include "monitoring/ledger_state.h"

static const double COMMON_MIN_MS = 10000;

struct common {
    double ms, a_j, b_j;
};

static void add_common(struct common *sum, const struct ledger_piece *a, const struct ledger_piece *b, double ms)
{
    sum->ms += ms;
    sum->a_j += a->j * ms / (a->to_ms - a->from_ms);
    sum->b_j += b->j * ms / (b->to_ms - b->from_ms);
}

/* Over the time that both cover: all of it to both[0]; but only the first `half_ms` of it, and to both[1] the rest. */
static void gather(struct ledger_series *a, struct ledger_series *b, double half_ms, struct common both[2])
{
    struct ledger_piece x, y;
    for (struct ledger_walk i = ledger_walk_begin(a, -INFINITY, INFINITY); ledger_walk_next(&i, &x);)
        for (struct ledger_walk k = ledger_walk_begin(b, x.from_ms, x.to_ms); ledger_walk_next(&k, &y);) {
            double ms = y.cut_to_ms - y.cut_from_ms;
            double first_ms = fmax(0, fmin(ms, half_ms - both[0].ms));
            add_common(&both[0], &x, &y, first_ms);
            add_common(&both[1], &x, &y, ms - first_ms);
        }
}

static double ratio(const struct common *c)
{
    return c->a_j > 0 ? c->b_j / c->a_j : NAN;
}

int ledger_match(struct ledger *l, int node, const struct meter_ops *a, const struct meter_ops *b,
                 struct ledger_match *out)
{
    struct ledger_place *p = ledger_place(l, node);
    struct ledger_meter *of_a = ledger_meter(p, a), *of_b = ledger_meter(p, b);
    struct common all[2] = { { 0 } }, half[2] = { { 0 } };
    if (of_a && of_b)
        gather(&of_a->good, &of_b->good, INFINITY, all);
    *out = (struct ledger_match){ .seconds = all[0].ms / 1000, .ratio = NAN, .drift = NAN };
    if (all[0].ms < COMMON_MIN_MS)
        return 0;
    gather(&of_a->good, &of_b->good, all[0].ms / 2, half);
    out->ratio = ratio(&all[0]);
    double first = ratio(&half[0]);
    out->drift = first > 0 ? ratio(&half[1]) / first : NAN;
    return 0;
}
