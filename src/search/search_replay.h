/* A search over recorded curves: the same asking, telling and scheduling as live, on a virtual clock, so that what a search would have found is known
 * without training anything. The table's points are the space. A trial that is gone on with costs its further epochs alone; so many workers train
 * at once, each on its own. Pure. */
#ifndef SEARCH_SEARCH_REPLAY_H
#define SEARCH_SEARCH_REPLAY_H

#include "core/curves.h"
#include "search/search.h"

struct search_replay_cfg {
    const char *algorithm, *stop; /* as search_new() has them */
    struct search_cfg search;     /* epochs and direction are the table's */
    int workers;                  /* >= 1 */
    double budget;                /* of all workers together: epochs, or seconds if `seconds` */
    bool seconds;                 /* each epoch costs what the table says, else 1 */
    const double *at;             /* what has been spent when the result is looked at; ascending */
    size_t n_at;
};

/* What is summed up; over several replays, if *out was not cleared in between. */
struct search_replay_result {
    double *regret,
        *best; /* n_at each, the caller's: what the best value seen until then was, and how far from the table's best */
    uint64_t trials, epochs, decisions; /* decisions: proposals, and answers to an epoch */
};

/* Regret is 0 for the table's best, and 1 for the median of what its configurations come to (NAN where these are the same). A table whose curves
 * are cut short, or that has no seconds where these are the cost, is -EINVAL; so is a search that cannot be had. -ENOMEM. */
int search_replay(const struct curves *c, const struct search_replay_cfg *cfg, struct search_replay_result *out,
                  struct err *e);

#endif
