/* What a study's meters read: asked of the nodes' helpers, and of PDUs over the network; stored, each reading, for the commands that make joules
 * of it. What trials have spent, and at what power, is known here, too: readings and CPU times are kept in a ledger (some 40 bytes each) for as
 * long as the driver runs. Optional: every call takes NULL, which is what there is where the config names no meter. */
#ifndef LIVE_ENERGY_H
#define LIVE_ENERGY_H

#include <stdint.h>
#include <uv.h>

#include "core/objective.h"
#include "live/nodes.h"
#include "live/study.h"

struct energy;

/* *out is NULL where the config names no meter. `note` is called with one line for people, from the loop: a meter cannot be opened or
 * read, or a node tells nothing any more. -ENOMEM. */
int energy_open(struct energy **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                void *ctx, struct err *e);
void energy_close(struct energy *en); /* stores what has come; handles are closed by the loop */

/* What every node's helper is to read; lives as long as `en`. NULL: nothing. */
const struct nodes_metering *energy_wanted(const struct energy *en);

/* A helper's meter was read. -ENOMEM. */
int energy_metered(struct energy *en, const struct nodes_reading *r, struct err *e);

/* CPU time of a trial's processes. -ENOMEM. */
int energy_sampled(struct energy *en, int trial, const struct nodes_sample *s, struct err *e);

/* Stores what has come, every few seconds. */
int energy_tick(struct energy *en, int64_t now_ms, struct err *e);

/* The meter that power is to be told by: the first of the config that reads. NULL: none does, or they have not all had the time to. */
const struct meter_ops *energy_choose(const struct energy *en, int64_t now_ms);

/* The mean power of all nodes together, by this meter, from one moment to another (since 1970); NAN: no reading covers that (yet). A node that has
 * told nothing for a while is left out. */
double energy_power_w(struct energy *en, const struct meter_ops *meter, double from_ms, double to_ms);

/* The trial's share of what was taken above idle (monitoring/ledger.h), by the same meter as power: all that it has cost as far as that is
 * read, by earlier drivers, too. NAN: nothing is known of it. */
double energy_trial_j(struct energy *en, int trial);

/* The newest moment that is known of by all nodes; 0: none. */
double energy_until_ms(const struct energy *en);

#endif
