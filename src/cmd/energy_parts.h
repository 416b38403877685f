/* What `energy` tells of a study: found by energy.c, printed by energy_text.c and energy_json.c.
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
#ifndef CMD_ENERGY_PARTS_H
#define CMD_ENERGY_PARTS_H

#include "base/buf.h"
#include "base/json.h"
#include "view/energy_figure.h"
#include "view/energy_load.h"
#include "view/energy_saved.h"

#define ENERGY_J_PER_KWH 3.6e6

struct energy_node {
    int node;
    const struct meter_ops *meter;
    struct ledger_node f;
};

struct energy_match {
    int node;
    const struct meter_ops *a, *b;
    struct ledger_match m;
};

struct energy_trial {
    const struct energy_load_trial *of;
    struct ledger_figure f;
    struct ledger_figure *epochs; /* as many as `of` has */
};

struct energy_view {
    const char *study, *from;
    int trial; /* the one that was asked for, 0: all */
    struct energy_load load;
    struct energy_node *nodes;
    struct energy_match *matches;
    struct energy_trial *trials;
    size_t n_nodes, n_matches, n_trials, cap_nodes, cap_matches;
    struct ledger_figure total; /* the trials that are told, by one meter */
    double nodes_j;             /* all nodes together, by the same; NAN: absent */
    bool mixed;                 /* some trials are told by another meter than the total is */
    bool estimated, measured;   /* there are figures of either sort */
    struct energy_saved saved;
    double carbon_g_per_kwh, price_per_kwh; /* 0: not given */
};

/* All of a study's, from the store. energy_view_done() is due also after a failure. What the store says, -ENOMEM. */
int energy_view_load(struct energy_view *v, struct store *s, const struct store_study *study, struct err *e);
void energy_view_done(struct energy_view *v);

void energy_put_text(struct buf *b, const struct energy_view *v);
void energy_put_csv(struct buf *b, const struct energy_view *v);
json_t *energy_json(const struct energy_view *v); /* NULL: memory */

#endif
