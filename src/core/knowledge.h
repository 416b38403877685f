/* What is known of each class of jobs: which settings were best, by which ratios, and which cannot be had. Pure. */
#ifndef CORE_KNOWLEDGE_H
#define CORE_KNOWLEDGE_H

#include "core/tuner.h"

struct class_entry {
    char *key, *family; /* family NULL: none */
    int trials;         /* that settled */
    int best_hot;       /* -1: nothing is known yet */
    int best_cold;
    int start_cold; /* what its first trial was launched with */
    struct cold_entry {
        bool tried;
        int hot;           /* the best one under this cold setting */
        double per_record; /* steady seconds per record under it, NAN: not measured */
        int n;             /* trials that measured it */
    } cold[TUNER_MAX_COLD];
    double ratio[TUNER_MAX_HOT]; /* log of time over the best one's; NAN: not measured */
    bool infeasible[TUNER_MAX_HOT][TUNER_MAX_COLD];
    int failed_launches;  /* explorations that could not be launched */
    int explored_in_vain; /* cold steps in a row that brought nothing */
};

struct knowledge {
    struct class_entry **classes;
    size_t n, cap;
};

void knowledge_done(struct knowledge *k);
struct class_entry *knowledge_find(const struct knowledge *k, const char *key); /* NULL: never met */
struct class_entry *knowledge_get(struct knowledge *k, const char *key,
                                  const char *family); /* made when new; NULL: memory */

/* A class of the same family that has settled, the one met first; NULL: none. */
const struct class_entry *knowledge_relative(const struct knowledge *k, const char *key, const char *family);

/* A proven out-of-memory: this setting, and less memory at the same cores, are not tried again. */
void knowledge_bound(struct class_entry *c, struct tuner_setting s);

/* A trial settled on `s` and ran there at per_record seconds (NAN: not measured). Returns true when the class's best changed. */
bool knowledge_learn(struct class_entry *c, struct tuner_setting s, double per_record, double tie_margin, int n_cold);

#endif
