/* What a study's meters read, as a ledger (monitoring/ledger), and the windows of time that are asked of it: the study, its trials, their
 * epochs. From the store, or in steps from any other source. */
#ifndef VIEW_ENERGY_LOAD_H
#define VIEW_ENERGY_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "monitoring/ledger.h"
#include "store/energy.h"
#include "store/store.h"

enum { ENERGY_LOAD_METERS = 16 }; /* as many as there are rows of meters */

struct energy_load_span {
    double from_ms, to_ms;
};

struct energy_load_epoch {
    int epoch;
    struct energy_load_span at;
    double records;
};

struct energy_load_trial {
    int number;
    int64_t id;
    struct energy_load_span *attempts;
    size_t n_attempts, cap_attempts;
    struct energy_load_epoch *epochs; /* those whose place in time is known, by attempt and number */
    size_t n_epochs, cap_epochs;
};

struct energy_load {
    struct ledger *ledger;
    const struct meter_ops
        *meters[ENERGY_LOAD_METERS]; /* that were read, if only in vain, in the config's order, then as in the table */
    size_t n_meters;
    struct strv nodes;                /* names, by number: 0 is the driver's own machine */
    struct energy_load_span study;    /* the first attempt's start to the last end; NAN: nothing was started */
    double last_ms;                   /* where the last reading ends; 0: there is none */
    struct energy_load_trial *trials; /* those that were attempted, by number */
    size_t n, cap;
    bool seen[ENERGY_LOAD_METERS]; /* private: rows of meters[] that have a value, or were discarded or failed */
};

/* A study of which nothing was read costs one query, and has no meters then. energy_load_done() is due also after a failure. What the store
 * says, -ENOMEM. */
int energy_load(struct energy_load *out, struct store *s, const struct store_study *study, struct err *e);
void energy_load_done(struct energy_load *l);

const struct energy_load_trial *energy_load_find(const struct energy_load *l, int number); /* NULL: not attempted */
const char *energy_load_node(const struct energy_load *l, int node);                       /* its name, "?": none */

/* --- in steps: begin; readings, CPU times and trials in any order; end --- */

int energy_load_begin(struct energy_load *out, const struct store_study *study, struct err *e);

/* What no meter of ours has read is passed over. -ENOMEM. */
int energy_load_reading(struct energy_load *l, const struct store_reading *r);

/* CPU seconds of a trial's processes. -ENOMEM. */
int energy_load_cpu(struct energy_load *l, int node, int trial, const struct energy_load_span *at, double cpu_s);

int energy_load_trials(struct energy_load *l, struct store *s, int64_t study, struct err *e);

/* CPU times of all trials from the samples in the store. */
int energy_load_samples(struct energy_load *l, struct store *s, struct err *e);

/* Idle baselines and the order of meters, from the study's config; an attempt without an end goes on to the last reading. */
int energy_load_end(struct energy_load *l, const struct store_study *study, struct err *e);

#endif
