/* The ledger: what meters read, and how long CPUs were busy for whom, becomes joules of nodes, trials and epochs. Pure.
 *
 * Energy readings are summed; powers are integrated over their true times, from reading to reading, as far as these are no further apart
 * than LEDGER_GAP times what is usual there: a median (and a fiftieth) of the few steps before, of those behind, or of all of them. What no
 * reading covers is a gap: it lowers the coverage and widens the error, by what the highest power that the meter read of the node would have
 * made of it; it adds nothing and is never filled in. Two meters are never added: every figure is one meter's.
 *
 * Of each interval of a node's meter: idle = baseline x time, at most all; the rest is divided by CPU time among the trials' processes and
 * all others: by the node's busy CPU seconds, or the trials' together where these are more. What of an interval the node's CPUs were not
 * read for is nobody's, and among the other. Where a window's edge cuts an interval, a trial's joules are on the side of its CPU time there,
 * so that a window which holds all of its CPU time has all of them; idle and other take their share by time. So a node's idle, trials and
 * other make its total, windows that touch add up, and over any window Σ ledger_of_trial() = the node's trials.
 *
 * The error is a bound on what the joules of a window are off, and the sum of
 *   the meter's own steps, of each reading: the error that it states;
 *   gaps, as above;
 *   edges that cut joules: before and after the cut there was power between none and twice the highest that was read (means over
 *     intervals), so that both together make what was read; of a trial: each of its CPU seconds in the interval took between nothing and
 *     twice their mean, so that what is wholly on one side is not in doubt;
 *   edges between two powers: what the share by CPU time differs from that by time;
 *   what a power does between two readings, where it is taken for their mean: half their difference x the time. It is a bound where the
 *     power only rises or only falls from one reading to the next: what comes and goes between two readings, no power meter has seen;
 *   of a trial: its part of these, by its part of what was divided; a gap, by its own highest power in the window. That a trial's CPU
 *     seconds took what others' took is a convention, not an error. */
#ifndef MONITORING_LEDGER_H
#define MONITORING_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitoring/meter.h"

enum { LEDGER_GAP = 3 }; /* usual steps, beyond which it is a hole between two readings */

enum ledger_source { LEDGER_ABSENT, LEDGER_MEASURED, LEDGER_ATTRIBUTED, LEDGER_ESTIMATED };

/* "absent", "measured", "attributed", "estimated". */
const char *ledger_source_name(enum ledger_source s);

/* Joules of a window by one meter. */
struct ledger_figure {
    double j;        /* NAN: absent */
    double error_j;  /* it is off by no more; NAN: absent, or a reading that took part does not know its own error */
    double coverage; /* 0…1 of the window's time; NAN: absent */
    double
        idle_w; /* of a trial: the baseline that was taken off, of all its nodes; NAN: on one of them it is not known, and
                           idle power is in the joules; of a node: NAN */
    uint64_t intervals; /* readings that took part; of power, pairs of them */
    uint64_t discarded; /* readings of the window that said discarded or failed */
    enum ledger_source source;
    const struct meter_ops *meter; /* NULL: absent */
};

/* What a node took in a window, and for whom. All of the same source; NAN where absent. */
struct ledger_node {
    struct ledger_figure total;
    double idle_j, trials_j, other_j; /* their sum is total.j */
    double idle_w;                    /* the baseline; NAN: not known, and idle_j is 0 */
    bool idle_given;                  /* by the config, or by the meter's own model; else the least that was seen */
};

struct ledger;

struct ledger *ledger_new(void); /* NULL: memory */
void ledger_free(struct ledger *l);

/* In any order, the order of time being the cheap one. What overlaps an earlier reading of the same node and meter by more than a
 * twentieth of its length is passed over (two helpers of one machine), as is what has no length, or a value below 0; what overlaps
 * less (two clocks) keeps its value and gives way at its edges. A METER_CPU reading is the node's busy CPUs. `node` counts from 0.
 * -ENOMEM: nothing was taken. */
int ledger_read(struct ledger *l, int node, const struct meter_ops *meter, const struct meter_reading *r);

/* CPU seconds of a trial's processes on a node. The same rules. */
int ledger_cpu(struct ledger *l, int node, int trial, double from_ms, double to_ms, double cpu_s);

/* The idle baseline of a node's meter as configured; of all nodes: node -1, which yields to a node's own. NAN: none any more. Without one
 * it is the least mean power over 5 s (or one interval, if that is longer) in which the CPUs were busy for less than a twentieth of one
 * CPU's time, and not known where there was no such time. -ENOMEM. */
int ledger_idle(struct ledger *l, int node, const struct meter_ops *meter, double watts);

/* Nodes and meters that were read (METER_CPU apart): with values, or any reading at all, also one that was discarded or failed. */
int ledger_nodes(const struct ledger *l); /* the highest number with any, and 1 */
bool ledger_has(const struct ledger *l, int node, const struct meter_ops *meter);
bool ledger_knows(const struct ledger *l, int node, const struct meter_ops *meter);

/* What a node took from one moment to another. -ENOMEM, here and below. */
int ledger_of_node(struct ledger *l, int node, const struct meter_ops *meter, double from_ms, double to_ms,
                   struct ledger_node *out);

/* A trial's share, over all nodes that read this meter. Attributed, or estimated. Covered is the time for which the meter, the node's CPUs
 * and the trial's were read, so the window should be one in which it ran; coverage is that of the least covered node that the trial used
 * CPU time on, absent where there is none. A node of these that does not cover any of it (no such meter there): coverage 0, error NAN,
 * the joules are those of the others. */
int ledger_of_trial(struct ledger *l, int trial, const struct meter_ops *meter, double from_ms, double to_ms,
                    struct ledger_figure *out);

/* The mean power of a node, all of it, over the readings that cover this window wholly (but for a hundredth, of clocks that differ); NAN:
 * they don't. */
double ledger_power_w(struct ledger *l, int node, const struct meter_ops *meter, double from_ms, double to_ms);

/* Two meters of one node over the time that both cover: b's joules over a's, and how far this ratio drifted: the ratio of the second half over that
 * of the first. NAN where they have less than 10 s in common, or a read no joules. */
struct ledger_match {
    double seconds, ratio, drift; /* seconds in common, however few */
};
int ledger_match(struct ledger *l, int node, const struct meter_ops *a, const struct meter_ops *b,
                 struct ledger_match *out);

#endif
