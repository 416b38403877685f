/* The settings that can be chosen from here: candidates of the space cut to what there is, equal ones once, in the tuner's
 * order. Pure.
 *
 * A hot setting is one combination of the hot knobs (cores, frequency, power cap), a cold one of the others. Hot settings are
 * sorted by effective cores, then by the other hot knobs ascending; cold ones by memory, then by the other cold knobs in the
 * order they were written. The start (the default setting, or the one entered by the user) is always among them. */
#ifndef CORE_CHOICES_H
#define CORE_CHOICES_H

#include "core/setting.h"
#include "core/tuner.h"

struct choices {
    int n_hot, n_cold;
    struct setting hot[TUNER_MAX_HOT];   /* only the hot knobs' values count */
    struct setting cold[TUNER_MAX_COLD]; /* only the cold knobs' values count */
    struct tuner_setting start;
};

/* `start` is requested, not yet cut to the offer. What cannot be had here (memory beyond the offer, parts that no workers have
 * room for) is left out. When there are more combinations than TUNER_MAX_HOT or TUNER_MAX_COLD, those that differ from the start in one knob alone are
 * kept first; -E2BIG when even these are too many. */
int choices_make(struct choices *out, const struct space *s, const struct offer *offer, const struct setting *start,
                 struct err *e);

/* What the tuner needs to know of them. */
struct tuner_space choices_tuner_space(const struct choices *c, const struct space *s);

/* The effective setting of a pair of indices. */
struct setting choices_setting(const struct choices *c, const struct space *s, struct tuner_setting at);

/* The setting that is in force when `cores` CPUs were read back after `at` was asked for: `at` but for its cores, which are those or,
 * where no setting has as many, the next fewer; the fewest where there are none. `at` itself where cores are no knob. */
struct tuner_setting choices_with(const struct choices *c, const struct space *s, struct tuner_setting at,
                                  double cores);

/* The cold setting that has the next larger memory, all else alike; -1: there is none. */
int choices_more_memory(const struct choices *c, const struct space *s, int cold);

/* How many hot settings need no more than `cores`: they are the first ones. At least 1. */
int choices_hot_within(const struct choices *c, const struct space *s, double cores);

#endif
