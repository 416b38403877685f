/* Joules of trials, epochs and studies, with where they come from: the same for every command that tells them. */
#ifndef VIEW_ENERGY_FIGURE_H
#define VIEW_ENERGY_FIGURE_H

#include "base/buf.h"
#include "base/json.h"
#include "view/energy_load.h"

#define ENERGY_COVERED 0.95 /* of a window's time, below which a figure is marked */
#define ENERGY_IDLE_INCLUDED ", idle power included"

extern const struct ledger_figure energy_figure_absent;

/* `meter` NULL: the first, in the config's order, that has a value. Of a trial: all its attempts, and what lies between them is not its own; an
 * attempt that nothing was read of lowers the coverage and widens the error, as a gap does. The baseline of figures that are added is the
 * highest of theirs, and not known where one of them is not. -ENOMEM, unexplained, here and below. */
int energy_figure_trial(const struct energy_load *l, const struct energy_load_trial *t, const struct meter_ops *meter,
                        struct ledger_figure *out);
int energy_figure_epoch(const struct energy_load *l, const struct energy_load_trial *t,
                        const struct energy_load_epoch *ep, const struct meter_ops *meter, struct ledger_figure *out);

/* Of a trial by its number; absent where there is no such trial. */
int energy_figure_number(const struct energy_load *l, int trial, struct ledger_figure *out);

/* All trials, by one meter: figures of two are never added. `meter` NULL: the first that has a value for every trial that was attempted, else
 * the first that has any. */
int energy_figure_study(const struct energy_load *l, const struct meter_ops *meter, struct ledger_figure *out);

/* The same of a study in the store, of which nothing else is asked. What the store says; explained. */
int energy_figure_stored(struct store *s, const struct store_study *study, struct ledger_figure *out, struct err *e);

/* Of the same meter, hence of the same source, and both with idle power or both without it: only then one may stand over the other. */
bool energy_figure_alike(const struct ledger_figure *a, const struct ledger_figure *b);
bool energy_figure_same_source(const struct ledger_figure *a, const struct ledger_figure *b); /* the first half of it */

/* Of a trial or a study: no baseline is known, so that the idle power of its nodes is in the joules. */
bool energy_figure_with_idle(const struct ledger_figure *f);

/* Something was read, and less of the time than ENERGY_COVERED. */
bool energy_figure_thin(const struct ledger_figure *f);

/* Of its time, in whole percent: what is thin is never told as ENERGY_COVERED, nor anything but all as 100. Of a figure that has a coverage. */
int energy_figure_percent(const struct ledger_figure *f);

const char *energy_figure_source(const struct ledger_figure *f, char out[64]); /* "attributed (rapl)", "absent" */
const char *energy_figure_joules(double j, char out[32]);                      /* "812 J", "12.3 kJ", "-" */

/* Of a trial or a study: "12.3 kJ attributed (rapl), idle power included, 82 % covered". */
void energy_figure_put(struct buf *b, const struct ledger_figure *f);
json_t *energy_figure_json(const struct ledger_figure *f); /* {"j","source","coverage"}; new reference */

#endif
