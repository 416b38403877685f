/* A search over curves: the same asking, telling and scheduling as live, on a virtual clock, so that what a search would have found is known
 * at once. A trial that is gone on with costs its further epochs alone; so many workers train at once, each on its own. The curves are those of a
 * table, whose points are the space, or come from anywhere else. Pure, as far as their source is. */
#ifndef SEARCH_SEARCH_REPLAY_H
#define SEARCH_SEARCH_REPLAY_H

#include "core/curves.h"
#include "search/prior.h"
#include "search/search.h"

/* What comes of an epoch; NAN: not known. Of what diverged the value is the worst there is. */
struct curve_epoch {
    double value, seconds, joules;
};

struct curve_source {
    const struct space *space;
    const char *metric;
    bool maximise;
    int epochs;                /* of a whole curve */
    double worst;              /* what counts before any epoch is complete */
    struct curves_scale scale; /* of regret */
    /* Of the curve of that point, epoch 1, 2, …; of each trial in this order, each once. Negative ends the replay, and *e says why. */
    int (*epoch)(void *ctx, const struct point *of, int epoch, struct curve_epoch *out, struct err *e);
    /* Of several objectives: that point was trained to the end; and what share of the hypervolume all these have. NULL: there is one. */
    void (*finished)(void *ctx, const struct point *of);
    double (*volume)(void *ctx);
    void *ctx;
};

/* The trials of an earlier study, to be learnt from. */
struct search_replay_earlier {
    struct prior_trial *v;
    size_t n;
};

struct search_replay_cfg {
    const char *algorithm, *stop; /* as search_new() has them */
    struct search_cfg search;     /* epochs and direction are the table's; goals: its own, by curves_goals() */
    int workers;                  /* >= 1 */
    double budget;                /* of all workers together: epochs, or seconds if `seconds` */
    bool seconds;                 /* each epoch costs what the table says, else 1 */
    const double *at;             /* what has been spent when the result is looked at; ascending */
    size_t n_at;
    const struct search_replay_earlier *earlier; /* one of each study */
    size_t n_earlier;
    double target; /* what is spent until it is reached is told; NAN: nothing */
    /* Called at the end for each trial, with the epochs that it had. Negative: that is the result. NULL */
    int (*each)(void *ctx, const struct point *at, int epochs);
    void *ctx;
};

/* What is summed up; over several replays, if *out was not cleared in between. */
struct search_replay_result {
    double *regret,
        *best; /* n_at each, the caller's: what the best value seen until then was, and how far from the table's best */
    double *hypervolume; /* the same: of what was trained to the end, as curves_front.h has it; NULL: no goals */
    uint64_t trials, epochs, decisions; /* decisions: proposals, and answers to an epoch */
    double to_target;                   /* what was spent until the target was reached; where it was not, the budget */
    double trust;                       /* in what was learnt from earlier studies, at the end */
    uint64_t learnt;                    /* trials of points of theirs */
};

/* Regret is 0 for the best of the scale, and 1 for its median (NAN where these are the same): of a table, of what its configurations come to.
 * A search that cannot be had is -EINVAL; -ENOMEM; what the source says. */
int search_replay_from(const struct curve_source *from, const struct search_replay_cfg *cfg,
                       struct search_replay_result *out, struct err *e);

/* Besides, a table whose curves are cut short, or that has no seconds where these are the cost, is -EINVAL. */
int search_replay(const struct curves *c, const struct search_replay_cfg *cfg, struct search_replay_result *out,
                  struct err *e);

#endif
