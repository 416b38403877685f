/* Freeze-thaw: what the curves so far foretell of all curves. One Gaussian process over points and epochs, in which points that are alike have
 * curves that are alike, and each trial a part of its own. From it: what a further stretch of a trial, or the first of a new one, is worth,
 * as the improvement that it is expected to bring sooner or later, for what it costs.
 *
 * Curves are looked at after some of their epochs only, the *steps*: 1, 3, 9, 27, … Pure; everything is a function of the seed and of
 * what was told in that order. An algorithm and a stop rule may share one: what both tell it counts once. */
#ifndef SEARCH_THAW_H
#define SEARCH_THAW_H

#include "search/search.h"

struct thaw;

int thaw_new(struct thaw **out, const struct space *sp, const struct search_cfg *cfg); /* keeps sp; -ENOMEM */
void thaw_free(struct thaw *t);

/* Trials go step by step, so that each step is weighed anew; else each goes to the last epoch. */
void thaw_set_stepwise(struct thaw *t);

/* The trials, whose ids count up from 0, and what is told of them. A trial runs until it is told otherwise. Each -ENOMEM, having changed nothing;
 * 0 too for what is known already. */
int thaw_add(struct thaw *t, uint64_t id, const struct point *p);
int thaw_tell(struct thaw *t, const struct told *told);
void thaw_pause(struct thaw *t, uint64_t id);
void thaw_go_on(struct thaw *t, uint64_t id);

bool thaw_is_step(const struct thaw *t, int epoch);
bool thaw_is_running(const struct thaw *t, uint64_t id);
bool thaw_first_paused(const struct thaw *t, uint64_t *out_id); /* false: none is */
size_t thaw_running(const struct thaw *t);
size_t thaw_trials(const struct thaw *t);
bool thaw_has_point(const struct thaw *t, const struct point *p); /* is there a trial of it? */
bool thaw_is_point(const struct thaw *t, const struct point *p);  /* within the bounds of the space */

/* Enough was told to learn from; before, new trials for a step each are the thing to do. */
bool thaw_is_taught(const struct thaw *t);

/* What the next epochs are worth: the logarithm of an improvement per epoch; -INFINITY: nothing. The trials that run, but `but`, are taken to
 * come to what is expected of them: between thaw_suppose() and thaw_unsuppose() alone may be asked. -ENOMEM. */
#define THAW_NO_ID UINT64_MAX
int thaw_suppose(struct thaw *t, uint64_t but);
void thaw_unsuppose(struct thaw *t);

double thaw_worth(const struct thaw *t, uint64_t id);
double thaw_best_paused(const struct thaw *t, uint64_t *out_id);
double thaw_best_fresh(const struct thaw *t, struct point *out); /* of all that could be new */
double thaw_usual_fresh(const struct thaw *t);                   /* of one that is drawn at random */

/* What is to be trained next, so that as much is spent on each step as far as nothing speaks against it: a paused trial, or a new one (THAW_NO_ID), which
 * is worth `fresh`; -INFINITY: there can be none. Every other time it is by rank alone: whatever the curves foretell may be wrong, this is not.
 * False: there is nothing. */
bool thaw_choose(const struct thaw *t, double fresh, uint64_t *out_id);

/* That the trial gets better, some time, than the best there was by more than a trifle. */
double thaw_chance(const struct thaw *t, uint64_t id);

/* A point that was not used before, at random. 1; -ENODATA: there is none. */
int thaw_draw(struct thaw *t, struct point *out);

/* For people: what the trial is at, and what it is expected to come to at the last epoch. */
struct thaw_view {
    int epoch;
    double value, expected, best; /* best: of all trials */
};
struct thaw_view thaw_view(const struct thaw *t, uint64_t id);

/* All that thaw_new() does not give, as search.h has it. */
void thaw_save(const struct thaw *t, struct buf *out);
int thaw_restore(struct thaw *t, struct unpack *from);

#endif
