/* What a launch waits for before its first step; and what a cluster has not granted. */
#ifndef LIVE_GRANT_H
#define LIVE_GRANT_H

#include "app/app.h"
#include "app/fold.h"
#include "live/study.h"

enum wait_kind {
    WAIT_NONE, /* it trains */
    WAIT_START,
    WAIT_ROOM, /* some of its cores have not been granted */
    WAIT_SESSION,
    WAIT_DATA,
};

struct wait {
    enum wait_kind kind;
    int cores, of; /* WAIT_ROOM: granted, and asked for */
    const struct app_words *words;
};

enum { WAIT_TEXT_MAX = 80 };

/* "waiting for …: 0 of 2 cores granted" */
const char *wait_text(const struct wait *w, char text[WAIT_TEXT_MAX]);

/* By what the log of this launch with so many slots has said up to now. */
struct wait grant_wait(const struct study *s, const struct study_trial *t, const struct fold *f, int slots);

/* The same with what was asked for: slots, in so many parts; 0: none are granted, as on this machine alone. */
struct wait grant_wait_for(const struct app_words *words, const struct fold *f, int slots, int parts);

/* It has waited in vain for room: why, in words. `again`: it is placed again; `said`: what the cluster says of it. */
void grant_put_refused(const struct study *s, const struct fold *f, int slots, bool again, const char *said,
                       char text[512]);

/* … and that it is not to be asked for again. 1: the trial can be launched otherwise; 0. In the caller's transaction. */
int grant_refuse(struct study *s, struct study_trial *t, const struct fold *f, int slots, const char *why,
                 struct err *e);

#endif
