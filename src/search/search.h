/* Searches answer two questions, apart: what to try next (an algorithm), and how long to train it (a stop rule). Any two go together.
 * They know no Spark, no clock and no file: they are asked and told, and their state is bytes that the driver stores in the same
 * transaction as what it asked or told. So a driver that is killed goes on with the next proposal that it would have made.
 *
 * Everything is a function of the seed and of what was asked and told, in that order; several trials may run at once. A failed
 * call (-ENOMEM) has changed nothing: called again it gives what it would have given. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "base/buf.h"
#include "core/goals.h"
#include "core/space.h"
#include "search/pack.h"

/* What is to be started: a new trial, or one more attempt of a paused one, which is no new trial and has the same id. A trial is launched for
 * all of the study's epochs, and ended earlier when it is told so. */
struct proposal {
    uint64_t id; /* counts up from 0 over new trials */
    struct point point;
    bool again; /* go on with the paused trial of this id; `point` is not set */
    const char *
        learnt_from; /* the earlier trial that had this point, until the search is asked again; NULL: it is the search's own */
};

enum told_kind {
    TOLD_EPOCH, /* an epoch is complete; the trial trains on unless the answer says otherwise */
    /* no more comes of this trial: */
    TOLD_FINISHED,
    TOLD_FAILED,
    TOLD_INFEASIBLE, /* it cannot run here with these hyperparameters */
    TOLD_STOPPED,    /* it was ended early: as the answer was, or since the study ended while it was paused */
};

struct told_metric {
    const char *name; /* valid during the call */
    double value;
};

/* An epoch that had to be trained again is told again. A trial that was answered to pause or to stop may get further before it is ended,
 * and even finish: what is told of it then is true, and the answer to it counts no more. */
struct told {
    uint64_t id;
    enum told_kind kind;
    int epoch;                         /* epochs trained so far */
    double value;                      /* the study's metric, the newest there is; NAN: none yet, or the trial failed */
    const struct told_metric *metrics; /* of that epoch, by name */
    size_t n_metrics;
    double seconds, joules; /* that the trial has cost so far, its start-ups included; NAN: not known */
    double
        start_seconds; /* from its newest launch, or its going on, until it trained; not above 0, or NAN: not known */
    bool held;         /* by search_tell(), for a stop rule: it trains on, so the answer is to go on */
};

enum search_verdict {
    SEARCH_GO_ON,
    SEARCH_PAUSE, /* it may be asked for again */
    SEARCH_STOP,  /* it will not be */
};

enum { SEARCH_WHY_MAX = 160 };

/* The answer to a TOLD_EPOCH before the study's last one; to anything else only `wake` means something. */
struct search_answer {
    enum search_verdict verdict;
    bool wake; /* ask again now, whatever the last ask said */
    char why
        [SEARCH_WHY_MAX]; /* of pause and stop, for people: "after 3 epochs: 0.871, the median of 5 others was 0.952 there" */
};

struct thaw;    /* search/thaw.h */
struct prior;   /* search/prior.h */
struct several; /* search/several.h */

/* What a search may know besides the space. */
struct search_cfg {
    uint64_t seed;
    int epochs;     /* of a full trial */
    bool maximise;  /* the direction of told.value */
    int max_trials; /* 0: no limit given */
    int min_epochs; /* before which no trial is ended; >= 1 */
    int eta;        /* of rungs: one trial in so many goes on; 0: as the rule thinks best */
    bool can_pause; /* the application goes on from checkpoints; else SEARCH_PAUSE is no answer */
    const struct goals *
        goals; /* NULL, or one: told.value alone counts. More: what is told is judged by all of them; used by search_new() alone */
    bool constrained; /* some trials turn out infeasible when they have told something: what they told is no best */
    bool joules;      /* an epoch's price is in joules; else in seconds */
    /* For rows, by search_new(): what is told them is of several objectives; NULL: of one. Then less is better, and `maximise` is false. */
    struct several *several;
    /* For a stop rule, by search_new(): */
    const struct space *space;
    struct thaw *thaw; /* the algorithm's, which tells it of trials and of what is told; NULL: it has none */
};

/* What to try next. */
struct search_ops {
    const char *name, *help;
    bool goes_through; /* all the points there are, in their order: so it needs no limit of trials */
    uint64_t version;  /* of what save() writes; restore() gets no other */
    size_t state_size; /* search_new() hands init() this much, zeroed */
    int (*init)(void *st, const struct space *sp, const struct search_cfg *cfg, struct err *e); /* keeps sp */
    int (*ask)(void *st,
               struct proposal *out); /* 1 proposed, 0 wait, -ENODATA exhausted: these two change nothing; -ENOMEM */
    /* Proposes this point, which others chose. 1; 0: it did before, and nothing has changed; -ENOMEM. NULL: it takes none. */
    int (*add)(void *st, const struct point *p, struct proposal *out);
    int (*tell)(void *st, const struct told *t);   /* 0, -ENOMEM; NULL: learns nothing */
    void (*save)(const void *st, struct buf *out); /* all that init() does not give */
    int (*restore)(void *st, struct unpack *from); /* after init(); 0, -EPROTO: no such state, -ENOMEM */
    void (*done)(void *st);                        /* NULL when there is nothing to release */
    struct thaw *(*thaw)(void *st);   /* what it has learnt about curves, for a stop rule to share; NULL: nothing */
    const struct search_ops *several; /* what goes in its place where there are several objectives; NULL: itself */
};

/* A new trial is wanted: what a stop rule's ask() says besides. */
enum { STOP_FRESH = 2 };

/* How long to train it. */
struct stop_ops {
    const char *name, *help;
    uint64_t version;
    size_t state_size;
    int (*init)(void *st, const struct search_cfg *cfg, struct err *e);
    /* 1: go on with *out_id, which is paused, STOP_FRESH (only if `fresh`: there can be a new one), 0 wait, -ENODATA nothing more is wanted. All but
     * 1 change nothing; -ENOMEM. NULL: new ones, as long as there are any. */
    int (*ask)(void *st, bool fresh, uint64_t *out_id);
    void (*added)(void *st, const struct proposal *p); /* the new trial; ask() has made room for it. NULL */
    int (*tell)(void *st, const struct told *t,
                struct search_answer *out);        /* *out says go on; 0, -ENOMEM. NULL: goes on */
    void (*save)(const void *st, struct buf *out); /* NULL, as restore: there is no state */
    int (*restore)(void *st, struct unpack *from);
    void (*done)(void *st);
};

extern const struct search_ops search_grid, search_random, search_tpe, search_gp, search_auto; /* each in its file */
extern const struct search_ops search_points;                                                  /* grid.c */
extern const struct search_ops search_volume;     /* for `gp` and `auto`, where there are several objectives */
extern const struct search_ops *const searches[]; /* ends with NULL */
extern const struct stop_ops stop_none, stop_median, stop_halving, stop_hyperband, stop_curves;
extern const struct stop_ops *const stops[]; /* ends with NULL */

struct search {
    const struct search_ops *ops;
    void *state;
    const struct stop_ops *stop;
    void *stop_state;
    const struct space *space;
    struct search_cfg cfg;
    struct prior *prior;     /* owned; NULL: it learns from no earlier study */
    struct several *several; /* NULL: one objective */
};

/* What is meant where nothing is said: `points` when these are listed, `grid` when every dimension is, else `auto`; and with it `none` where all is
 * gone through, else `curves`. */
const char *search_default(const struct space *sp);
const char *search_default_stop(const char *algorithm);

/* `name` NULL: the default; `stop` NULL: `none`. -EINVAL: unknown name (suggests), or a search that cannot work on this space (grid over a
 * continuous one). `sp` must outlive the search. */
int search_new(struct search *out, const char *name, const char *stop, const struct space *sp,
               const struct search_cfg *cfg, struct err *e);

/* From now on it learns from these earlier trials, which it takes; to be called before it is asked. -EINVAL: its algorithm cannot. */
int search_learn(struct search *s, struct prior *prior, struct err *e);

/* `may_add`: there may be another trial. 1 proposed; 0 wait: ask again when something was told that answered so, or when an attempt has
 * ended; -ENODATA nothing more; -ENOMEM. */
int search_ask(struct search *s, bool may_add, struct proposal *out);

/* Does what it proposes hang on what it is told? */
bool search_learns(const struct search *s);

int search_tell(struct search *s, const struct told *t, struct search_answer *out); /* 0, -ENOMEM */

/* The state as bytes, appended (buf.failed: memory); and back, into a search that was just made with the same arguments. -EPROTO: these are
 * bytes of other rows or of other versions of them, or damaged: the search is as it was made, or of no use; -ENOMEM. */
void search_save(const struct search *s, struct buf *out);
int search_restore(struct search *s, const void *bytes, size_t len);

void search_done(struct search *s);

#endif
