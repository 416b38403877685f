/* What a launch waits for before its first step; and what a cluster has not granted. */
#ifndef LIVE_GRANT_H
#define LIVE_GRANT_H

#include "app/wait.h"
#include "live/study.h"

/* By what the log of this launch with so many slots has said up to now. */
struct wait grant_wait(const struct study *s, const struct study_trial *t, const struct fold *f, int slots);

/* It has waited in vain for room: why, in words. `again`: it is placed again; `said`: what the cluster says of it. */
void grant_put_refused(const struct study *s, const struct fold *f, int slots, bool again, const char *said,
                       char text[512]);

/* … and that it is not to be asked for again. 1: the trial can be launched otherwise; 0. In the caller's transaction. */
int grant_refuse(struct study *s, struct study_trial *t, const struct fold *f, int slots, const char *why,
                 struct err *e);

#endif
