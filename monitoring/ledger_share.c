#include <errno.h>
#include <math.h>

#include "monitoring/ledger_state.h"

/* Power within one interval may lie anywhere between none and so many times the highest that was read. */
static const double WITHIN_INTERVAL = 2;
/* So much of a window is all of it, for clocks that differ by milliseconds. */
static const double WHOLE = 0.99;

struct window {
    double from_ms, to_ms;
};

static struct ledger_figure absent(void)
{
    return (struct ledger_figure){ .j = NAN, .error_j = NAN, .coverage = NAN, .idle_w = NAN };
}

/* How much of an interval is within the window. */
static double part_of(const struct ledger_piece *x)
{
    return (x->cut_to_ms - x->cut_from_ms) / (x->to_ms - x->from_ms);
}

/* What `j`, taken for the joules of the part within, may be off. Between two powers the error is a power, and goes with the time, as their
 * mean does. Of joules nobody knows when in the interval they were: the part and the rest both took something from none to the most that
 * they can have in their time, and together what was read. */
static double part_error(const struct ledger_series *s, const struct ledger_piece *x, double j)
{
    double part = part_of(x), most_j = WITHIN_INTERVAL * s->peak_w * (x->to_ms - x->from_ms) / 1000;
    if (s->kind == LEDGER_POINTS || part == 1)
        return x->error_j * part + fabs(j - x->j * part);
    double highest = fmin(x->j, part * most_j), least = fmax(0, x->j - (1 - part) * most_j);
    return fmax(highest - j, j - least) + 2 * x->error_j;
}

/* --- dividing one interval --- */

/* What of an interval is the node's when idle, and what each second of a trial's CPU time in it stands for. */
struct division {
    double idle_j;
    double over_j;     /* what is above that */
    double per_cpu_s;  /* the part of over_j that a CPU second has */
    double trials_s;   /* CPU seconds of all trials */
    double trials_cut; /* those within the window */
};

static double cpu_within(struct ledger_series *cpu, const struct ledger_piece *x)
{
    return ledger_series_sum(cpu, x->cut_from_ms, x->cut_to_ms).value;
}

/* Where the node's CPUs were read for a part of the interval only, they count as if they had gone on so, and that part of the joules is
 * divided. */
static struct division divide(struct ledger_place *p, const struct ledger_piece *x, double idle_w)
{
    double ms = x->to_ms - x->from_ms;
    bool whole = part_of(x) == 1;
    struct ledger_sum busy = ledger_series_sum(&p->cpu, x->from_ms, x->to_ms);
    struct division d = { .idle_j = isnan(idle_w) ? 0 : fmin(idle_w * ms / 1000, x->j) };
    d.over_j = x->j - d.idle_j;
    for (size_t i = 0; i < p->n_trials; i++) {
        double s = ledger_series_sum(&p->trials[i].cpu, x->from_ms, x->to_ms).value;
        d.trials_s += s;
        if (s > 0)
            d.trials_cut += whole ? s : cpu_within(&p->trials[i].cpu, x);
    }
    double known = busy.covered_ms / ms;
    double all_s = known > 0 ? fmax(busy.value / known, d.trials_s) : 0;
    d.per_cpu_s = all_s > 0 ? known / all_s : 0;
    return d;
}

/* --- a node --- */

struct node_sum {
    double j, error_j, read_ms, idle_j, trials_j;
    uint64_t intervals;
};

/* What trials took goes with their CPU time, all else by time. */
static void add_piece(struct node_sum *sum, const struct ledger_series *s, const struct ledger_piece *x,
                      const struct division *d)
{
    double part = part_of(x), per_cpu_j = d->over_j * d->per_cpu_s;
    double idle_j = part * d->idle_j, trials_j = per_cpu_j * d->trials_cut;
    double j = part == 1 ? x->j : idle_j + trials_j + part * fmax(0, d->over_j - per_cpu_j * d->trials_s);
    sum->j += j;
    sum->error_j += part_error(s, x, j);
    sum->read_ms += x->cut_to_ms - x->cut_from_ms;
    sum->idle_j += idle_j;
    sum->trials_j += trials_j;
    sum->intervals++;
}

static struct node_sum sum_node(struct ledger_place *p, struct ledger_meter *m, struct window w, double idle_w)
{
    struct node_sum sum = { 0 };
    struct ledger_piece x;
    for (struct ledger_walk at = ledger_walk_begin(&m->good, w.from_ms, w.to_ms); ledger_walk_next(&at, &x);) {
        struct division d = divide(p, &x, idle_w);
        add_piece(&sum, &m->good, &x, &d);
    }
    return sum;
}

static void put_node(struct ledger_node *out, const struct node_sum *sum, const struct ledger_meter *m, struct window w)
{
    double ms = w.to_ms - w.from_ms;
    out->total.j = sum->j;
    out->total.error_j = sum->error_j + m->good.peak_w * fmax(0, ms - sum->read_ms) / 1000;
    out->total.coverage = fmin(sum->read_ms / ms, 1);
    out->total.intervals = sum->intervals;
    out->total.source = m->ops->estimated ? LEDGER_ESTIMATED : LEDGER_MEASURED;
    out->total.meter = m->ops;
    out->idle_j = sum->idle_j;
    out->trials_j = sum->trials_j;
    out->other_j = fmax(0, sum->j - sum->idle_j - sum->trials_j); /* below it only by rounding */
}

int ledger_of_node(struct ledger *l, int node, const struct meter_ops *meter, double from_ms, double to_ms,
                   struct ledger_node *out)
{
    struct window w = { from_ms, to_ms };
    struct ledger_place *p = ledger_place(l, node);
    struct ledger_meter *m = ledger_meter(p, meter);
    *out = (struct ledger_node){ .total = absent(), .idle_j = NAN, .trials_j = NAN, .other_j = NAN, .idle_w = NAN };
    if (!m)
        return 0;
    out->total.discarded = ledger_series_count(&m->bad, from_ms, to_ms);
    bool given;
    double idle_w = ledger_idle_w(l, p, m, &given);
    struct node_sum sum = sum_node(p, m, w, idle_w);
    if (sum.read_ms <= 0)
        return 0;
    out->idle_w = idle_w;
    out->idle_given = given;
    put_node(out, &sum, m, w);
    return 0;
}

double ledger_power_w(struct ledger *l, int node, const struct meter_ops *meter, double from_ms, double to_ms)
{
    struct ledger_meter *m = ledger_meter(ledger_place(l, node), meter);
    if (!m)
        return NAN;
    double j = 0, read_ms = 0;
    struct ledger_piece x;
    for (struct ledger_walk at = ledger_walk_begin(&m->good, from_ms, to_ms); ledger_walk_next(&at, &x);) {
        j += part_of(&x) * x.j;
        read_ms += x.cut_to_ms - x.cut_from_ms;
    }
    return read_ms > 0 && read_ms >= WHOLE * (to_ms - from_ms) ? j / read_ms * 1000 : NAN;
}

/* --- a trial --- */

struct trial_sum {
    double j, error_j, read_ms, peak_w;
    uint64_t intervals;
};

/* How long, within the window, the node's CPUs and the trial's were both read: no less than this. */
static double known_ms(struct ledger_place *p, struct ledger_trial *t, const struct ledger_piece *x)
{
    double ms = x->cut_to_ms - x->cut_from_ms;
    double node_ms = ledger_series_sum(&p->cpu, x->cut_from_ms, x->cut_to_ms).covered_ms;
    double trial_ms = ledger_series_sum(&t->cpu, x->cut_from_ms, x->cut_to_ms).covered_ms;
    return fmax(0, node_ms + trial_ms - ms);
}

/* What a trial's joules within the window may be off, of all_j in the interval. Of joules that were read together, each of its CPU seconds took
 * between nothing and twice the mean: what is wholly on one side of the edge is not in doubt. */
static double trial_error(const struct ledger_series *s, const struct ledger_piece *x, double share, double all_j,
                          double within_j)
{
    double part = part_of(x);
    if (s->kind == LEDGER_POINTS)
        return share * part * x->error_j + fabs(within_j - part * all_j);
    return share * x->error_j + fmax(0, fmin(within_j, all_j - within_j));
}

static void add_share(struct trial_sum *sum, struct ledger_place *p, struct ledger_meter *m, struct ledger_trial *t,
                      const struct ledger_piece *x, double idle_w)
{
    double within_s = cpu_within(&t->cpu, x);
    if (!(within_s > 0))
        return; /* spares dividing */
    struct ledger_sum cpu = ledger_series_sum(&t->cpu, x->from_ms, x->to_ms);
    struct division d = divide(p, x, idle_w);
    double share = d.per_cpu_s * cpu.value, all_j = d.over_j * share;
    if (!(share > 0))
        return;
    double within_j = d.over_j * d.per_cpu_s * within_s;
    sum->j += within_j;
    sum->error_j += trial_error(&m->good, x, share, all_j, within_j);
    sum->peak_w = fmax(sum->peak_w, all_j / cpu.covered_ms * 1000);
    sum->intervals++;
}

static struct trial_sum sum_trial(struct ledger_place *p, struct ledger_meter *m, struct ledger_trial *t,
                                  struct window w, double idle_w)
{
    struct trial_sum sum = { 0 };
    struct ledger_piece x;
    for (struct ledger_walk at = ledger_walk_begin(&m->good, w.from_ms, w.to_ms); ledger_walk_next(&at, &x);) {
        sum.read_ms += known_ms(p, t, &x);
        add_share(&sum, p, m, t, &x, idle_w);
    }
    return sum;
}

/* Did it use CPU time here, or was that not read all the while? */
static bool was_here(struct ledger_series *cpu, struct window w)
{
    struct ledger_sum used = ledger_series_sum(cpu, w.from_ms, w.to_ms);
    bool between = cpu->n > 0 && cpu->v[0].from_ms < w.from_ms && cpu->v[cpu->n - 1].to_ms > w.to_ms;
    return used.value > 0 || (between && used.covered_ms <= 0);
}

/* Adds a node's share; *least: the least that was read of the window on any node. */
static void add_trial(struct ledger *l, struct ledger_place *p, struct ledger_trial *t, const struct meter_ops *meter,
                      struct window w, struct ledger_figure *out, double *least_ms)
{
    struct ledger_meter *m = ledger_meter(p, meter);
    struct trial_sum sum = { 0 };
    double idle_w = 0;
    if (m) {
        bool given;
        idle_w = ledger_idle_w(l, p, m, &given);
        sum = sum_trial(p, m, t, w, idle_w);
        out->discarded += ledger_series_count(&m->bad, w.from_ms, w.to_ms);
    }
    double gap_ms = fmax(0, w.to_ms - w.from_ms - sum.read_ms);
    *least_ms = fmin(*least_ms, sum.read_ms);
    out->error_j += sum.read_ms > 0 ? sum.error_j + sum.peak_w * gap_ms / 1000 : NAN;
    out->intervals += sum.intervals;
    if (sum.read_ms > 0 || sum.intervals > 0) {
        out->j = sum.j + (isnan(out->j) ? 0 : out->j);
        out->idle_w += idle_w;
    }
}

int ledger_of_trial(struct ledger *l, int trial, const struct meter_ops *meter, double from_ms, double to_ms,
                    struct ledger_figure *out)
{
    struct window w = { from_ms, to_ms };
    struct ledger_figure sum = { .j = NAN }; /* joules, errors and baselines of nodes are added to it */
    double ms = to_ms - from_ms, least_ms = ms;
    for (size_t i = 0; i < l->n_places && ms > 0; i++) {
        struct ledger_trial *t = ledger_trial(&l->places[i], trial);
        if (t && was_here(&t->cpu, w))
            add_trial(l, &l->places[i], t, meter, w, &sum, &least_ms);
    }
    *out = absent();
    out->discarded = sum.discarded;
    if (isnan(sum.j))
        return 0;
    *out = sum;
    out->coverage = fmin(least_ms / ms, 1);
    out->source = meter->estimated ? LEDGER_ESTIMATED : LEDGER_ATTRIBUTED;
    out->meter = meter;
    return 0;
}
