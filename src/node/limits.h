/* Limits of the machine beside CPUs: files below /sys that hold one number for each CPU or package. They are found, remembered
 * (watch.h), written, read back, and given back like masks; each kind is a row in limits.c.
 *
 *   frequency_khz  scaling_max_freq of the CPUs that were chosen. CPUs that share a clock (related_cpus) get it together.
 *   power_cap_w    the long-term limit (constraint_0) of each RAPL package: watts per package, for all that runs there
 *
 * Two tags that limit the same thing: the last one counts, and what was found first comes back when that one is released. */
#ifndef NODE_LIMITS_H
#define NODE_LIMITS_H

#include "base/err.h"
#include "node/cpus.h"
#include "node/watch.h"

enum limit_row { LIMIT_FREQUENCY, LIMIT_POWER, LIMIT_ROWS };

/* The member's name in requests and answers. */
const char *limits_name(enum limit_row row);

/* Sets this limit on these CPUs (LIMIT_POWER: on all packages) under `tag`, and gives back what the tag had limited elsewhere; 0 only
 * gives back. What is in force then, the largest of several, goes to *out_now. -ENODEV: this machine has no such limit; -EACCES and
 * others of its file; -ENOSPC: the table is full. What was written before a failure is in the table. */
int limits_set(struct watch_table *t, const char *sysfs, int tag, enum limit_row row, double value,
               const struct cpus *on, double *out_now, struct err *e);

/* Gives back all limits of `tag` (AFFINITY_ALL: of every one). -errno of the last that could not be, after all others were:
 * those stay in the table (WATCH_LEFT), nothing else of the tag does. */
int limits_give_back(struct watch_table *t, const char *sysfs, int tag);

/* What can be set here: the lowest and highest frequency of the first of these CPUs; the caps of the packages, up to `max`. False, 0
 * when there is nothing. */
bool limits_frequency_range(const char *sysfs, const struct cpus *may, int out_khz[2]);
int limits_power_caps(const char *sysfs, double *out_w, int max);

#endif
