/* What there is to see of a study: read once, then brought up to date by what has changed. Commands print it, pages show it.
 *
 *     struct view v;
 *     if (view_open(&v, store, "demo", dir, driver, &e) == 0)
 *         while (… view_refresh(&v, driver, &e) >= 0)    1: something is new, 0: nothing is, which costs microseconds
 *             show(&v);
 *     view_done(&v);
 *
 * Rows of trials are in memory from the start. What costs more is read when it is asked for, and again when it is asked for after it changed:
 * epochs, forecasts, joules, the Pareto set, stories. All pointers hold until the next refresh.
 *
 * One thread per view and store connection. It writes nothing. */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/outlook.h"
#include "store/store.h"
#include "view/energy_figure.h"
#include "view/energy_load.h"
#include "view/pareto.h"
#include "view/story.h"

struct view_trial {
    struct store_trial row;         /* owned */
    const char *state;              /* as it is now: "running" without a driver is "interrupted" */
    int done;                       /* epochs; of one that took another's result, that one's */
    double seconds;                 /* the attempt under way included; NAN: it was never started */
    struct store_attempt under_way; /* owned; zeroed: it does not run */
    uint64_t changed;               /* the view's version when it did last */
    /* by the calls below */
    struct store_epoch *epochs; /* in their order */
    size_t n_epochs, cap_epochs;
    struct outlook_told foretold; /* epoch 0: nothing is */
    uint64_t epochs_at, foretold_at;
};

/* What is reckoned of the whole study: when, and how long that took. */
struct view_part {
    uint64_t at; /* the view's version; 0: not yet */
    int64_t when_ms, took_ms;
};

struct view {
    struct store *store; /* borrowed */
    char *dir;           /* the study's folder; NULL: not known */
    pid_t driver;        /* 0: none; -1: another user's */
    struct store_study study;
    const char *state;           /* as it is now */
    const char *metric;          /* that trials are judged by */
    json_t *config, *provenance; /* without secrets' sums; NULL: cannot be read */
    struct store_summary totals; /* attempts under way are in its seconds; without texts */
    struct view_trial *trials;   /* by number */
    size_t n, cap;
    uint64_t version; /* from 1; grows with each refresh that found something */
    /* by the calls below */
    struct energy_load energy;      /* no meters: nothing was read */
    struct ledger_figure energy_of; /* all trials, by one meter */
    struct pareto pareto;           /* of several objectives */
    struct stories stories;
    struct outlook *outlook;
    /* private */
    int64_t data_version;
    double stored_s; /* of the totals, without attempts under way */
    struct view_part energy_part, pareto_part, stories_part, outlook_part;
};

/* `dir`, which may be NULL, is copied; `driver` is who holds the study's lock, 0: nobody. -EINVAL: there is no such study (says which there
 * are); -ENOMEM; what the store says. view_done() is due in any case. */
int view_open(struct view *out, struct store *s, const char *name, const char *dir, pid_t driver, struct err *e);
void view_done(struct view *v);

/* 1: it changed, and so did the `changed` of the trials that did; 0: nothing did, but for the seconds of what runs. -EINVAL: the study is
 * gone; else as above. After a failure it is as it was, or partly newer, and may be refreshed again. */
int view_refresh(struct view *v, pid_t driver, struct err *e);

struct view_trial *view_trial(const struct view *v, int number); /* NULL: none */

/* Reads what is new of it. 0, or as view_open(). */
int view_epochs(const struct view *v, struct view_trial *t, struct err *e);
void view_forget(struct view_trial *t); /* the epochs; they are read again when they are asked for */
int view_forecast(struct view *v, struct view_trial *t, struct err *e);
int view_energy(struct view *v, struct err *e);
int view_pareto(struct view *v, struct err *e);
int view_stories(struct view *v, struct err *e);

/* Absent where no meter was read; after view_energy(). -ENOMEM. */
int view_trial_energy(const struct view *v, const struct view_trial *t, struct ledger_figure *out, struct err *e);

/* The better value than the best trial's, which was told by a trial that is not finished: finished ones are preferred. 1; 0: there is none. */
int view_seen(const struct view *v, struct store_seen *out, struct err *e);

/* A text of the config, "search", "algorithm"; NULL: there is none. */
const char *view_config(const struct view *v, const char *section, const char *key);

/* --- without a view --- */

/* A study or trial in this state, as it is now: the lock that died with a driver knows what the store cannot. */
const char *view_state(const char *stored, pid_t driver);

/* The study of that name, to be freed by store_study_done(). -EINVAL: there is none; says which there are, and which may be meant. */
int view_find(struct store *s, const char *name, struct store_study *out, struct err *e);

/* The study's line of `ls`, with the attempts under way, without the texts (NULL). */
int view_totals(struct store *s, int64_t study, pid_t driver, struct store_summary *out, struct err *e);

/* What an error of a callback that explained nothing is told as: "study 'x': out of memory". Returns rc. */
int view_explain(int rc, struct err *e, const char *study);

#endif
