/* What ends a study before its search does: a target that is reached, a budget that is used up. Counts what the study has cost, closes it
 * when that is enough, and ends its trials at their next epoch's end. */
#ifndef LIVE_AIMS_H
#define LIVE_AIMS_H

#include "core/aim.h"
#include "search/search.h"
#include "store/store.h"

struct study;

struct aims {
    struct aim aim;
    struct expense spent;  /* without the joules, which the meters know */
    int64_t opened_ms;     /* by the clock of durations; the seconds since are not in `spent` */
    bool by_launches;      /* … for want of launches alone */
    int64_t counted_ms;    /* the same: core-seconds are in `spent` until then */
    bool reached;          /* the target: whatever runs is to end */
    char why[AIM_WHY_MAX]; /* the study is closed; "": it is not */
};

/* Counts what the study has cost under earlier drivers. */
int aims_open(struct study *s, struct err *e);

/* Counts the core-seconds of what runs: as often as CPUs may change. */
void aims_tick(struct study *s);

/* An attempt is about to be launched. */
void aims_launched(struct study *s);

/* Its place did not take it: it has cost none. */
void aims_not_launched(struct study *s);

/* An epoch was trained, or trained again. */
void aims_trained(struct study *s);

/* An epoch was told: *out says stop where the study is closed, or has nothing left for one more. In the caller's transaction. */
int aims_told(struct study *s, const struct store_trial *t, const struct told *told, struct search_answer *out,
              struct err *e);

#endif
