/* What is known of each class of jobs: how the settings compare, and which cannot be had. Which one is best follows from it
 * and from what counts at the moment. Pure. */
#ifndef CORE_KNOWLEDGE_H
#define CORE_KNOWLEDGE_H

#include "core/tuner.h"

/* What became of that which earlier studies knew of a class, or another class whose profile a trial of it has. */
enum recall {
    RECALL_NONE,     /* nothing was recalled */
    RECALL_OPEN,     /* all that is known was recalled, and nothing in this study has confirmed it */
    RECALL_HOLDS,    /* it was confirmed here, or something was compared here since */
    RECALL_REJECTED, /* it did not hold here, and is forgotten; what is known was learnt here */
};

/* A runtime may be up to twice as fast once it is warm: times are compared within a kind alone. */
enum level_kind { LEVEL_FIRST /* in the first epoch after a launch */, LEVEL_STEADY, LEVELS };

struct class_entry {
    char *key, *family;        /* family NULL: none */
    int trials;                /* that were learnt from to their end */
    struct tuner_setting best; /* at the last review; -1: nothing is known yet */
    struct tuner_setting told; /* the best one that was said to be learnt; -1: none */
    struct cold_entry {
        int hot; /* whose time the ratios are over; -1: nothing was measured under this cold setting */
        struct level {
            double per_record; /* seconds per record of `hot`, NAN: not measured */
            int n;             /* times that it was */
        } level[LEVELS];
        double ratio[TUNER_MAX_HOT];  /* log of time over that of `hot`; NAN: not measured */
        bool at_least[TUNER_MAX_HOT]; /* it was cut: the ratio is this or more */
        double
            gap; /* log of the time of `hot` over that of other cold settings of the class, up to a constant, as recalled;
                       NAN: not recalled */
    } cold[TUNER_MAX_COLD];
    bool infeasible[TUNER_MAX_HOT][TUNER_MAX_COLD];
    struct tuner_setting start; /* the default, as last asked for, which is taken to be feasible */
    double startup_s;           /* of a launch, as last seen */
    double spent_s;             /* on launches that failed, and on tries that were worse */
    double records;             /* of a whole trial, as last seen */
    int planned_for;            /* the trial that is to be launched with `plan`; 0: none */
    struct tuner_setting plan;
    int relaunched; /* the trial that was relaunched last */
    int relaunches; /* how often it was */
    enum recall recall;
    int earlier; /* trials of earlier studies that what was recalled was learnt from */
    const struct class_entry
        *like;  /* it was recalled for this class, whose profile a trial has; NULL: for this very one */
    int canary; /* the trial that compares it with the default at the moment; 0: none */
    bool bound_recalled[TUNER_MAX_HOT][TUNER_MAX_COLD]; /* what is infeasible was so in earlier studies alone */
};

/* What is kept for later studies may be read from here: of each class key, family, trials + earlier, best (cold >= 0: something is
 * known), infeasible, and of each cold setting with hot >= 0 the finite ratios over `hot` with their at_least; how two cold settings
 * compare tells knowledge_gap() of (hot, cold) of each. A class with RECALL_OPEN tells nothing that was not known before.
 * Seconds (level) are none of it: they differ between a session and a submission, and from machine to machine. */
struct knowledge {
    struct class_entry **classes;
    size_t n, cap;
};

/* What a choice is made by. */
struct choice_rule {
    int n_hot; /* hot settings below this one may be chosen */
    const struct tuner_space *space;
    double load[TUNER_MAX_HOT]; /* log of what a hot setting costs beside its time */
    double tie_margin;          /* costs this close are equal, and the lowest index wins */
};

void knowledge_done(struct knowledge *k);
struct class_entry *knowledge_find(const struct knowledge *k, const char *key); /* NULL: never met */
struct class_entry *knowledge_get(struct knowledge *k, const char *key,
                                  const char *family); /* made when new; NULL: memory */

/* A class of the same family that was learnt from, the one met last; NULL: none. */
const struct class_entry *knowledge_relative(const struct knowledge *k, const char *key, const char *family);

/* Is there at least as much memory for as few cores as where it trains, or as in the default, with the other cold knobs as they are? What
 * fails there fails for another reason. */
bool knowledge_has_room(const struct class_entry *c, const struct tuner_space *space, struct tuner_setting s);

/* A setting that ran out of memory: it is not tried again, nor less memory on the same ladder at the same cores, unless what trained
 * elsewhere shows that it cannot have been for want of memory. */
void knowledge_bound(struct class_entry *c, const struct tuner_space *space, struct tuner_setting s);

/* How many jobs that differ in batch alone have failed in it; 0 also when one trained. */
int knowledge_relatives_failed(const struct knowledge *k, const struct class_entry *c, struct tuner_setting s);

/* May this one be called the best? Of choices without an order those of the start may, and others once they were compared with
 * those, or when those cannot be had. */
bool knowledge_may_choose(const struct class_entry *c, const struct tuner_space *space, int cold);

/* Was anything found here that cannot be had? */
bool knowledge_bounded(const struct class_entry *c);

/* Was any setting compared with another one? */
bool knowledge_compared(const struct class_entry *c);

/* As above, but of that setting alone. */
void knowledge_refuse(struct class_entry *c, struct tuner_setting s);

/* Has it trained, under whatever cold setting? */
bool knowledge_has_trained(const struct class_entry *c, int hot);

/* Log of the time of `hot` over that of `over`, as measured under this cold setting, else under another. NAN: not known.
 * *out_at_least: the true one may be larger. */
double knowledge_ratio(const struct class_entry *c, int cold, int hot, int over, bool *out_at_least);

/* The hot setting that costs least under a cold one; -1: none was measured. */
int knowledge_best_hot(const struct class_entry *c, int cold, const struct choice_rule *rule);

/* The setting that costs least; false: nothing is known. */
bool knowledge_best(const struct class_entry *c, const struct choice_rule *rule, struct tuner_setting *out);

/* A trial under this setting took so many seconds per record (NAN: not measured); to be told before its ratios. */
void knowledge_learn_time(struct class_entry *c, struct tuner_setting s, enum level_kind kind, double per_record);

/* Log of the time per record of one setting over another's; NAN: not known. */
double knowledge_gap(const struct class_entry *c, struct tuner_setting s, struct tuner_setting over);

/* Seconds per record at its best, warm if that was measured; NAN: not known. */
double knowledge_per_record(const struct class_entry *c);

/* It compared `hot` with `over` under this cold setting. */
void knowledge_learn_ratio(struct class_entry *c, int cold, int hot, int over, double ratio, bool at_least);

/* What earlier studies knew, one thing at a time; NAN, or nothing to tie it to: passed over. The reference of a cold setting is
 * what its first ratio is over. */
void knowledge_recall(struct class_entry *c, struct tuner_setting s, struct tuner_setting over, double ratio,
                      bool at_least);
void knowledge_recall_bound(struct class_entry *c, struct tuner_setting s);

/* How the settings of `from` compare is recalled for `c`, of which nothing is known; bounds are not. */
void knowledge_recall_like(struct class_entry *c, const struct class_entry *from);

/* All that is known but the bounds found here. */
void knowledge_forget(struct class_entry *c);

/* Afterwards: true when the best of the class, by this rule, is another one than was told last, and anything was compared at all. */
bool knowledge_review(struct class_entry *c, const struct choice_rule *rule);

#endif
