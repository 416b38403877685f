/* Settings of the system parameters: the default one, one that the user entered, and what of it can be had here. */
#ifndef CORE_SETTING_H
#define CORE_SETTING_H

#include "core/space.h"

/* v[i] belongs to space.knobs[i]. */
struct setting {
    struct value v[SPACE_MAX_KNOBS];
};

/* What the master offers to one trial; 0 = not known, and then nothing is cut to it. */
struct offer {
    int cores;
    double memory_gb; /* per executor; in local mode for the driver's heap */
};

/* The first value written for each knob; for `memory` the first that fits the offer (when none fits, the first). */
struct setting setting_default(const struct space *s, const struct offer *offer);

/* "cores=4,memory=8": knobs of the space by name, the others from `base`. The values need not be candidates, but obey the
 * knob's bounds. -EINVAL names the fault. */
int setting_parse(struct setting *out, const struct space *s, const struct setting *base, const char *text,
                  struct err *e);

/* Does such a text, which has been parsed, name this knob? */
bool setting_names(const char *text, const char *knob);

/* `cores` cut to the offer. Memory is not cut: see setting_infeasible(). */
struct setting setting_effective(const struct space *s, const struct setting *requested, const struct offer *offer);

/* NULL when the setting can be launched here; else why not ("memory 64 GiB is more than the 23 GiB there are"), written
 * into text[]. */
const char *setting_infeasible(const struct space *s, const struct setting *set, const struct offer *offer,
                               char text[128]);

bool setting_equal(const struct space *s, const struct setting *a, const struct setting *b);
json_t *setting_json(const struct space *s, const struct setting *set); /* {"cores": 16, "memory": 8}, new reference */

/* The value of a knob, or `absent` when the space does not list it. */
double setting_number(const struct space *s, const struct setting *set, enum knob_id id, double absent);

/* Slots of a launch: the largest of the candidates for `cores` (each cut to the offer) that divides `batch`. With no
 * `cores` knob the only candidate is `file_cores` (the BigDL file's, cut to the offer; 0: the offer, at least 1). `batch` NAN: nothing to
 * divide, the largest candidate. -ERANGE with "batch 1023 is not a multiple of …" when nothing divides. */
int setting_slots(const struct space *s, const struct offer *offer, int file_cores, double batch, struct err *e);

#endif
