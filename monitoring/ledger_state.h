/* The inside of a ledger, shared by its parts: ledger.c what came, ledger_idle.c baselines, ledger_share.c figures, ledger_match.c two meters
 * beside each other. */
#ifndef MONITORING_LEDGER_STATE_H
#define MONITORING_LEDGER_STATE_H

#include "monitoring/ledger.h"
#include "monitoring/ledger_series.h"

/* The least mean power of a node that was idle, as far as it has been looked for. */
struct ledger_least {
    size_t next;       /* the interval at which the next stretch begins */
    double w;          /* of those before it; INFINITY: none yet */
    uint64_t inserted; /* what this was when it was looked for: others may have changed what was seen */
};

struct ledger_meter {
    const struct meter_ops *ops;
    struct ledger_series good, bad;
    struct ledger_least least;
};

struct ledger_trial {
    int trial;
    struct ledger_series cpu;
};

struct ledger_place {
    int node;
    struct ledger_series cpu;    /* busy seconds of all its CPUs */
    struct ledger_meter *meters; /* in the order in which they first came */
    size_t n_meters, cap_meters;
    struct ledger_trial *trials; /* by number */
    size_t n_trials, cap_trials;
};

struct ledger_given {
    int node; /* -1: all */
    const struct meter_ops *meter;
    double watts;
};

struct ledger {
    struct ledger_place *places; /* by number */
    size_t n_places, cap_places;
    struct ledger_given *given;
    size_t n_given, cap_given;
};

/* NULL: nothing of it has come. */
struct ledger_place *ledger_place(const struct ledger *l, int node);
struct ledger_meter *ledger_meter(const struct ledger_place *p, const struct meter_ops *ops); /* p may be NULL */
struct ledger_trial *ledger_trial(const struct ledger_place *p, int trial);

/* The baseline; NAN: not known. */
double ledger_idle_w(const struct ledger *l, struct ledger_place *p, struct ledger_meter *m, bool *given);

#endif
