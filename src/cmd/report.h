/* What a report tells of a study, gathered from the store; one file each gathers and prints it.
 *
 * As JSON, keys that stay (absent numbers are null):
 *
 *     {"study","state","metric","direction","seed","created_ms","ended_ms","seconds",
 *      "energy":{"j","source","coverage"},"provenance",
 *      "best": {"trial","accuracy"} | null,
 *      "trials": [{"trial","state","hyper","system":{"requested","effective"},"epochs","budget","accuracy","loss","metric",
 *                  "seconds","energy":{"j","source","coverage"},"attempts","copy_of","repeat_of","learnt_from","reason",
 *                  "curve": [{"epoch","accuracy","loss","seconds"}],
 *                  "story": {"class", "tried": [{"cores","memory_gb","seconds","records"}],
 *                            "settled": {"setting","reason"} | null,
 *                            "verdicts": [{"epoch","setting","verdict"}],
 *                            "saved": {"seconds","core_seconds","against":{"cores","memory_gb"}} | null,
 *                            "steps": [{"t_s","kind","setting","reason"}]},
 *                  "metrics": {name: [{"epoch","step","value"}]}, "objectives": {name: value} | null, "violates",
 *                  "forecast": as view/foretold.h has it, where something is foretold}],
 *      "objectives": [{"metric","direction"}] | null, "pareto": [numbers] | null,
 *      "heat": {"trial": {"trial", "columns", "rows"} | null, "classes": {"columns", "rows"} | null}}
 *
 * with rows [{"feature","kind","values"}] of the features that were measured: kind is "per_second" or "mean".
 *
 * As CSV: a head, then one row per trial: trial, state, hyper.NAME…, system.NAME…, epochs, budget, accuracy, loss, metric, seconds,
 * energy_j, energy_source, attempts, copy_of, reason; of several objectives, or where a constraint on results is broken, violates and pareto
 * (1: in the set), too. An absent number is an empty cell. */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/outlook.h"
#include "store/store.h"
#include "view/energy_figure.h"
#include "view/heat.h"
#include "view/pareto.h"
#include "view/story.h"

struct report_trial {
    struct store_trial row; /* owned */
    const char *state;      /* as it is now */
    double seconds;         /* the attempt under way included */
    int done;               /* epochs */
    struct ledger_figure energy;
    struct outlook_told foretold;
    struct store_epoch *epochs;
    size_t n_epochs, cap_epochs;
};

/* A heat map with the names of its columns. */
struct report_heat {
    struct heat map; /* no cells: there is none */
    struct strv cols;
    int trial; /* whose, 0: of classes */
};

struct report {
    struct store *store;
    struct store_study study;
    struct store_summary totals;
    pid_t driver;                /* 0: none */
    json_t *config, *provenance; /* NULL: cannot be read */
    struct report_trial *trials;
    size_t n, cap;
    struct stories stories;
    struct report_heat best, by_class;
    struct outlook *outlook;
    struct ledger_figure energy; /* of all trials, by one meter */
    struct pareto pareto;        /* of several objectives */
    char unread[256];            /* why a sample could not be read; "": all were */
    struct err *e;
};

/* report_load.c. Fills a zeroed report; what it holds is freed by report_done(), also after a failure. `driver`: who holds the
 * study's lock, 0: nobody. -EINVAL: no such study; -ENOMEM; what the store says. */
int report_load(struct report *r, struct store *s, const char *name, pid_t driver, struct err *e);
void report_done(struct report *r);
const struct report_trial *report_trial(const struct report *r, int number); /* NULL: none */
const char *report_state(const struct report *r);
const char *report_metric(const struct report *r);

/* report_heat.c: what was sampled. After the stories, which know the classes. */
int report_load_heat(struct report *r);

/* Pages of it: all is in memory. report_html.c, report_json.c, report_csv.c */
void report_put_html(struct buf *b, const struct report *r);
void report_put_curves(struct buf *b,
                       const struct report *r); /* of the page, report_curves.c; reads series as they are drawn */
void report_put_front(struct buf *b,
                      const struct report *r); /* of the page, report_front.c: the Pareto set, and a picture */
json_t *report_json(const struct report *r);   /* NULL: memory */
void report_put_csv(struct buf *b, const struct report *r);

#endif
