/* Searches propose settings of the hyperparameters and learn what they were worth. They know no Spark and no clock; the
 * driver resumes one by asking and telling again in the stored order. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "core/space.h"

struct proposal {
    uint64_t id; /* counts up from 0; the same id again with more epochs continues that trial */
    struct point point;
    int epochs; /* the budget: train until this many epochs in all */
};

struct told {
    uint64_t id;
    int epoch;    /* epochs trained so far */
    double value; /* the study's metric after that epoch; NAN: the trial failed */
    bool done;    /* nothing more will be told of this proposal unless it is asked for again */
};

/* What a search may know besides the space. */
struct search_cfg {
    uint64_t seed;
    int epochs;     /* of a full trial */
    bool maximise;  /* the direction of told.value */
    int max_trials; /* 0: no limit given */
};

struct search_ops {
    const char *name, *help;
    size_t state_size; /* search_new() hands init() this much, zeroed */
    int (*init)(void *st, const struct space *sp, const struct search_cfg *cfg, struct err *e); /* keeps sp */
    int (*ask)(void *st, struct proposal *out); /* 1 proposed, 0 wait for a tell, -ENODATA exhausted, -ENOMEM */
    void (*tell)(void *st, const struct told *t);
    void (*done)(void *st); /* NULL when there is nothing to release */
};

extern const struct search_ops search_grid, search_random; /* each in the file of its name */
extern const struct search_ops *const searches[];          /* ends with NULL */

struct search {
    const struct search_ops *ops;
    void *state;
};

/* `name` NULL: the default, `grid` when every dimension is listed, else `random`. -EINVAL: unknown name (suggests), or a
 * search that cannot work on this space (grid over a continuous one). `sp` must outlive the search. */
int search_new(struct search *out, const char *name, const struct space *sp, const struct search_cfg *cfg,
               struct err *e);
int search_ask(struct search *s, struct proposal *out);
void search_tell(struct search *s, const struct told *t);
void search_done(struct search *s);

#endif
