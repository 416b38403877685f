/* Settings of the system parameters: the default one, one that the user entered, and what of it can be had here. */
#ifndef CORE_SETTING_H
#define CORE_SETTING_H

#include "core/layout.h"
#include "core/space.h"

/* v[i] belongs to space.knobs[i]. */
struct setting {
    struct value v[SPACE_MAX_KNOBS];
};

/* What the master offers to one trial; 0 = not known, and then nothing is cut to it. */
struct offer {
    int cores;
    double memory_gb; /* for each part of a launch, or, where there are none, for all of it */
    /* On a cluster a launch's slots are divided over parts of equal size, each on one machine; elsewhere there are none. */
    bool divided;
    const char *part_word; /* what one is called, for people */
    int file_cores;        /* slots where cores are no knob, cut to `cores`; 0: all there are */
    int part_cores;        /* of one, at most; 0: no bound */
    double part_gb;        /* of one, where memory is no knob; 0: not known */
    struct layout_room room;
    const char *why_divided; /* why slots must divide the batch, as a clause; of whoever says so */
};

/* The first value written for each knob; of `memory` and `parts` the first together with which some number of cores can be had (when
 * none can, the first). */
struct setting setting_default(const struct space *s, const struct offer *offer);

/* "cores=4,memory=8": knobs of the space by name, the others from `base`. The values need not be candidates, but obey the
 * knob's bounds. -EINVAL names the fault. */
int setting_parse(struct setting *out, const struct space *s, const struct setting *base, const char *text,
                  struct err *e);

/* Does such a text, which has been parsed, name this knob? */
bool setting_names(const char *text, const char *knob);

/* `cores` cut to the offer. Memory is not cut: see setting_infeasible(). */
struct setting setting_effective(const struct space *s, const struct setting *requested, const struct offer *offer);

/* NULL when the setting's memory and parts can be had here with some number of cores; else why not ("memory 64 GiB is more than
 * the 23 GiB there are"), written into text[]. */
enum { SETTING_WHY_MAX = 192 };
const char *setting_infeasible(const struct space *s, const struct setting *set, const struct offer *offer,
                               char text[SETTING_WHY_MAX]);

json_t *setting_json(const struct space *s, const struct setting *set); /* {"cores": 16, "memory": 8}, new reference */

/* The value of a knob, or `absent` when the space does not list it. */
double setting_number(const struct space *s, const struct setting *set, enum knob_id id, double absent);

/* Slots of a launch under this setting: the largest of the candidates for `cores` (each cut to the offer) that divides `batch` and, on a
 * cluster, can be divided over the setting's parts of its memory. With no `cores` knob the only candidate is the offer's
 * file_cores. `batch` NAN: nothing to divide, the largest candidate. -ERANGE with "batch 1023 is
 * not a multiple of …" when nothing divides, -ENODEV when no candidate can be had. */
int setting_slots(const struct space *s, const struct setting *set, const struct offer *offer, double batch,
                  struct err *e);

/* Over how many parts a launch divides its slots: as few as can be had, or as many as the setting says. 0: there are none, or it
 * cannot be had. */
int setting_parts(const struct space *s, const struct setting *set, const struct offer *offer, int slots);

/* What is asked of a cluster by a launch with so many slots. */
struct layout_ask setting_ask(const struct space *s, const struct setting *set, const struct offer *offer, int slots);

/* What of the space cannot be had here at all, a line for each value or combination of cores, memory and parts that is in none that
 * can: "memory 64 with cores 8 cannot be had here: not tried". Cores that the offer cuts, and memory beyond it, are none of these. */
void setting_put_left_out(const struct space *s, const struct offer *offer, struct buf *out);

#endif
