/* What trials of a study are foretold to come to (search/forecast.h), and when they reach its target: gathered from the store for all who show it.
 * Those that went to the last epoch teach how curves go on, of the study and, before these, of other studies in the store with the same application
 * file and metric that have as many epochs or more, where their hyperparameters are points of this study's space. */
#ifndef STORE_OUTLOOK_H
#define STORE_OUTLOOK_H

#include "search/forecast.h"
#include "store/store.h"

struct outlook;

struct outlook_told {
    int epoch;   /* which is foretold, the last one; 0: nothing is, and all below is unset */
    int seen;    /* the newest epoch that told a value */
    double last; /* that value */
    struct foretold value;
    double target;               /* NAN: the study has none */
    struct foretold_reach reach; /* by the epoch; 0: not within the epochs */
    double epoch_s; /* seconds of an epoch under the setting in force, or that it had last; NAN: not measured */
};

/* Keeps `s`, and reads as little as it can: curves when the first forecast is asked for. A study whose config cannot be read has no forecasts.
 * 0, -ENOMEM. */
int outlook_open(struct outlook **out, struct store *s, const struct store_study *study, struct err *e);
void outlook_free(struct outlook *o); /* NULL is fine */

/* Of a trial that has told a value, and is neither finished, failed nor infeasible: what it would come to. The curves of others are read anew only
 * after outlook_renew(). 0 (also with nothing foretold), -ENOMEM, and what the store says. */
int outlook_look(struct outlook *o, const struct store_trial *t, struct outlook_told *out, struct err *e);
void outlook_renew(struct outlook *o);
void outlook_renew_times(struct outlook *o);      /* only under which settings epochs were trained */
bool outlook_has_learnt(const struct outlook *o); /* curves have been read since */
int64_t outlook_study(const struct outlook *o);

/* The way there: up to OUTLOOK_WAY_MAX epochs from the newest on, the last one included, with the interval at each. Returns how many; 0: nothing is
 * foretold. Negative as above. */
enum { OUTLOOK_WAY_MAX = 8 };
struct outlook_step {
    int epoch;
    struct foretold value;
};
int outlook_way(struct outlook *o, const struct store_trial *t, struct outlook_step out[OUTLOOK_WAY_MAX],
                struct err *e);

/* Seconds from the newest epoch to that one; NAN: it is not ahead, or none is measured. */
double outlook_seconds(const struct outlook_told *t, int epoch);

#endif
