/* What a setting is to be good at, as the tuner counts it: always in seconds. Time is that; joules, and joules times seconds, become
 * seconds at a reference that holds for the whole study, so that all of the tuner's rules, which weigh seconds, hold for them too.
 * Pure. */
#ifndef CORE_OBJECTIVE_H
#define CORE_OBJECTIVE_H

#include <stdbool.h>

enum objective { OBJECTIVE_TIME, OBJECTIVE_ENERGY, OBJECTIVE_EDP };

/* "time", "energy", "edp"; of any other text OBJECTIVE_TIME. */
enum objective objective_find(const char *name);
bool objective_needs_power(enum objective o);

/* What one second counts for: the first that was measured in a study. */
struct objective_reference {
    double power_w;  /* of all its nodes */
    double record_s; /* seconds per record */
};

/* The cost of training `records` in `seconds` at a mean power of `power_w`: the seconds themselves, x power over the reference's, x
 * seconds per record over the reference's. The seconds where anything that counts is not known (NAN, or not above 0). */
double objective_cost_s(enum objective o, const struct objective_reference *ref, double seconds, double records,
                        double power_w);

#endif
