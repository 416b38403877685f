/* Printers of a view: each form of what there is to tell of a study, for commands and for the page. */
#ifndef VIEW_PUT_H
#define VIEW_PUT_H

#include "base/buf.h"
#include "base/json.h"
#include "view/columns.h"
#include "view/heats.h"
#include "view/view.h"

/* Where it goes. A study may have 100,000 trials: whoever has no use for all of them at once takes them as they come. */
struct put {
    struct buf *b;
    int (*full)(struct buf *b,
                struct err *e); /* called now and then; empties it; negative ends the printing. NULL: all stays in it */
};

int put_next(const struct put *to, struct err *e); /* something stands in it now */

/* What `show --json` prints; of one trial where `trial` is not 0. */
int put_study_json(const struct put *to, struct view *v, int trial, struct err *e);
int put_decisions_json(const struct put *to, const struct view *v, int trial, struct err *e);

/* For people, in lines that fit the terminal. */
int put_study_text(struct buf *b, struct view *v, struct err *e);
int put_trial_text(struct buf *b, struct view *v, struct view_trial *t, struct err *e);
int put_trial_note(struct buf *b, struct view *v, struct view_trial *t,
                   struct err *e); /* why it is as it is, and what it will be */
int put_decisions_text(const struct put *to, const struct view *v, int trial, struct err *e);

/* A report in its three forms:
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
 * with rows [{"feature","kind","values"}] of the features that were measured: kind is "per_second" or "mean". As CSV: a head, then one row per trial:
 * trial, state, hyper.NAME…, system.NAME…, epochs, budget, accuracy, loss, metric, seconds, energy_j, energy_source, attempts, copy_of, reason; of
 * several objectives, or where a constraint on results is broken, violates and pareto (1: in the set), too. An absent number is null, an empty cell. */
int put_report_json(struct buf *b, struct view *v, const struct heats *h, struct err *e);
int put_report_csv(struct buf *b, struct view *v, struct err *e);
int put_report_html(struct buf *b, struct view *v, const struct heats *h, struct err *e);

/* A trial by a list of columns; new reference. */
int put_trial_json(json_t **out, struct view *v, struct view_trial *t, const struct column *const *columns,
                   struct err *e);

/* {"trial","epoch","value"}, and "demo/7 had 0.913 after 12 of 50 epochs, and was stopped: …". NULL and nothing where the best trial told the best
 * value (view_seen()). */
int put_seen_json(json_t **out, const struct view *v, struct err *e);
int put_seen_text(struct buf *b, const struct view *v, struct err *e);

#endif
