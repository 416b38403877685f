/* A study's joules per node, trial and epoch: what `energy` tells. joules_text.c, joules_json.c: for people, as JSON and CSV.
 *
 * As JSON, keys that stay (absent numbers are null):
 *
 *     {"study","from",
 *      "nodes": [{"node","name","meter","source","j","error_j","coverage","idle_j","idle_w","trials_j","other_j","discarded"}],
 *      "trials": [{"trial","j","error_j","coverage","idle_w","discarded","source","meter",
 *                  "epochs": [{"epoch","j","error_j","coverage","idle_w","source"}]}],
 *      "meters": [{"a","b","node","ratio","drift","seconds"}],
 *      "saved": {"j","error_j","records","used_j","source","meter","label","against": {"cores","memory_gb"} | null} | null,
 *      "total": {"j","error_j","coverage","source","meter"},
 *      "carbon": {"g_per_kwh","trials_g","nodes_g"} | null, "cost": {"per_kwh","trials","nodes"} | null}
 *
 * with a row of nodes per node and meter; source is one word: "measured", "attributed", "estimated", "absent"; a trial's idle_w is the baseline
 * that was taken off its joules, null where idle power is in them; total is the trials' sum by one meter, or the one trial's that was asked for; from: "store", "influx", or "influx (by node)" where others wrote what was found there.
 *
 * As CSV: kind,node,name,trial,epoch,meter,source,j,error_j,wh,coverage,discarded,idle_j,idle_w,trials_j,other_j, where kind is node, trial or
 * epoch. An absent number is an empty cell. */
#ifndef VIEW_JOULES_H
#define VIEW_JOULES_H

#include "base/buf.h"
#include "base/json.h"
#include "view/energy_figure.h"
#include "view/energy_load.h"
#include "view/energy_saved.h"

#define JOULES_PER_KWH 3.6e6

struct joules_node {
    int node;
    const struct meter_ops *meter;
    struct ledger_node f;
};

struct joules_match {
    int node;
    const struct meter_ops *a, *b;
    struct ledger_match m;
};

struct joules_trial {
    const struct energy_load_trial *of;
    struct ledger_figure f;
    struct ledger_figure *epochs; /* as many as `of` has */
};

struct joules {
    const char *study, *from;
    int trial; /* the one that was asked for, 0: all */
    struct energy_load load;
    struct joules_node *nodes;
    struct joules_match *matches;
    struct joules_trial *trials;
    size_t n_nodes, n_matches, n_trials, cap_nodes, cap_matches;
    struct ledger_figure total; /* the trials that are told, by one meter */
    double nodes_j;             /* all nodes together, by the same; NAN: absent */
    bool mixed;                 /* some trials are told by another meter than the total is */
    bool estimated, measured;   /* there are figures of either sort */
    struct energy_saved saved;
    double carbon_g_per_kwh, price_per_kwh; /* 0: not given */
};

/* Begins with `load` filled, which it takes, and the others that are given; reckons the rest. `meter` NULL: figures of all; else of that alone, which
 * must have been read. `against` NULL: what was saved is counted against the first setting of each class. -EINVAL: there is no such meter (says which
 * there are); -ENOMEM; what the store says. joules_done() is due in any case. */
int joules_reckon(struct joules *v, struct store *s, const struct store_study *study, const char *meter,
                  const struct energy_setting *against, struct err *e);
void joules_done(struct joules *v);

void joules_put_text(struct buf *b, const struct joules *v);
void joules_put_csv(struct buf *b, const struct joules *v);
json_t *joules_json(const struct joules *v); /* NULL: memory */

#endif
