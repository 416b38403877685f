/* What is measured of running trials: samples as the nodes' helpers send them, completed by what the log tells, stored, and made into
 * profiles of windows. */
#ifndef LIVE_PROFILES_H
#define LIVE_PROFILES_H

#include "clustering/profile.h"
#include "live/nodes.h"
#include "live/study.h"

struct profiles;

/* A window that is to be profiled, times in milliseconds since 1970. */
struct profiles_window {
    int trial;
    double from_ms, to_ms;
    int epoch; /* 0: not told */
    struct tuner_setting setting;
};

/* Its profile; NULL: too little was measured in it. Called from profiles_tick(). */
typedef int profiles_answer(void *ctx, const struct profiles_window *w, const struct profile *p, struct err *e);

int profiles_open(struct profiles **out, struct study *s, struct err *e);
void profiles_close(struct profiles *p); /* NULL is fine, here and below */
const struct profile_space *profiles_space(const struct profiles *p);

/* A sample of a trial's processes has come. `alone`: nothing ran beside it. -ENOMEM. */
int profiles_sampled(struct profiles *p, const struct study_trial *t, const struct nodes_sample *s, bool alone,
                     struct err *e);

/* A training step has ended. One that lies in two intervals counts in each by its share. */
struct profiles_step {
    int epoch;
    double end_ms, seconds, records; /* end: as the log's clock has it, in whatever zone */
};
int profiles_step(struct profiles *p, int trial, const struct profiles_step *step, struct err *e);

/* Its runtime stood still for so long. NAN: the log does not tell when, which then was with the newest step. From the first one on what the
 * runtime does not tell of is no pause. */
int profiles_pause(struct profiles *p, int trial, double end_ms, double seconds, struct err *e);

/* Under which setting the trial runs from now on. Samples of an interval in which it changed belong to no window. */
void profiles_setting(struct profiles *p, int trial, struct tuner_setting to);

/* The profile of this window is wanted, once its last sample has come. One at a time for each trial. */
int profiles_ask(struct profiles *p, const struct profiles_window *w, struct err *e);

/* Answers what was asked, and stores what has come. */
int profiles_tick(struct profiles *p, int64_t now_ms, profiles_answer *answer, void *ctx, struct err *e);

/* Stores the profile of a window of the trial's, for `model explain`; `verdict` as JSON, NULL: nobody was asked. */
int profiles_store(const struct profiles *p, const struct study_trial *t, const struct profiles_window *w,
                   const struct profile *made, const char *verdict, struct err *e);

/* The same with what profiles_tick() stores next, which is at once. */
int profiles_store_soon(struct profiles *p, const struct study_trial *t, const struct profiles_window *w,
                        const struct profile *made, const char *verdict, struct err *e);

/* The trial's attempt is over: stores the rest, inside the caller's transaction. Of one that finished, `each` gets the profiles of
 * its windows, if nothing ran beside it: cut from its samples, each of one epoch and one setting. */
int profiles_end(struct profiles *p, int trial, bool finished, profiles_answer *each, void *ctx, struct err *e);

#endif
