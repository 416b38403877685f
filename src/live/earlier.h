/* Earlier studies of the store as what a search may learn from (search/prior.h). */
#ifndef LIVE_EARLIER_H
#define LIVE_EARLIER_H

#include "base/strv.h"
#include "live/study.h"

/* Reads the trials of those that `search.learn_from` names, and gives them to the study's search, which is new. *said gets a line for each: what was
 * taken of it. Nothing is named: nothing is done. -EINVAL: there is no such study (suggests), it was measured by something else, or has no
 * hyperparameter in common; or the algorithm cannot learn. Errors of the store, -ENOMEM. */
int earlier_learn(struct study *s, struct strv *said, struct err *e);

#endif
