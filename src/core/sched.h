/* Which trial runs next, and what becomes of one whose attempt has ended. Pure. */
#ifndef CORE_SCHED_H
#define CORE_SCHED_H

#include <stdbool.h>
#include <stddef.h>

enum trial_state {
    TRIAL_WAITING,     /* not started, or to be tried again */
    TRIAL_RUNNING,     /* an attempt of it is under way */
    TRIAL_INTERRUPTED, /* its attempt was ended from outside; goes on at the next chance */
    TRIAL_PAUSED,      /* the search may go on with it later */
    TRIAL_FINISHED,
    TRIAL_STOPPED,    /* trained so far and no further: the search did not go on with it */
    TRIAL_FAILED,     /* every retry is used up, or it was killed too often */
    TRIAL_INFEASIBLE, /* its setting cannot run here: out of memory, or not granted */
};

const char *trial_state_name(enum trial_state s); /* "waiting", "running", … : what the store and --json say */
int trial_state_parse(const char *name);          /* -EINVAL when it is none */
bool trial_state_is_final(enum trial_state s);    /* finished, stopped, failed, infeasible */

/* How an attempt ended. */
enum outcome {
    OUTCOME_FINISHED,    /* the last epoch's lines are in the log */
    OUTCOME_PAUSED,      /* ended by us at an epoch that is complete, as the search wanted; it may be gone on with */
    OUTCOME_STOPPED,     /* … and is not */
    OUTCOME_FAILED,      /* the application failed: counts against the retries */
    OUTCOME_INFEASIBLE,  /* proven at this setting: no retry */
    OUTCOME_ENVIRONMENT, /* no trial can run (data or class missing, master down): the trial waits, the study stops */
    OUTCOME_REFUSED,     /* the setting that a policy chose cannot be had: another is next, which costs no retry */
    OUTCOME_UNUSABLE,    /* the checkpoint could not be gone on from: an older one is next, which costs no retry */
    OUTCOME_KILLED, /* ended from outside, by a signal that we did not send: costs no retry, but has a bound of its own */
    OUTCOME_DOUBTED,     /* it says that no trial can run, which another attempt has to say, too: costs no retry */
    OUTCOME_INTERRUPTED, /* ended by us, or by a loss that is nobody's fault (driver killed before the start, reboot) */
};

const char *outcome_name(enum outcome o);
int outcome_parse(const char *name);

struct sched_trial {
    int number; /* 1, 2, … as shown */
    enum trial_state state;
    int failures; /* attempts that ended OUTCOME_FAILED */
    int kills;    /* attempts that ended OUTCOME_KILLED since it completed an epoch last */
};

struct sched {
    struct sched_trial *trials; /* only those not final; sorted by number */
    size_t n, cap;
    int parallel;   /* trials at once, >= 1 */
    int retries;    /* failures that are forgiven, >= 0 */
    int max_trials; /* 0: as many as the search proposes */
    int made;       /* trials there are, final ones included */
    bool exhausted; /* the search has no more */
    bool waiting;   /* the search wants to be told something first: until sched_woken(), or an attempt's end */
    int extra;      /* trials that are asked for besides, when the search has ended: none of its own any more */
    int added;      /* points that people want to be tried: they are asked for at once */
    bool closed;    /* … or has had what it was given: nothing more is started, and what waits is left */
    bool stopping;  /* start nothing more: Ctrl-C, or the environment is broken */
    bool learns;    /* the search proposes by what it was told: it is asked as late as may be */
    int ending;     /* of those that run, so many are about to end; only where it learns */
};

enum sched_verb {
    SCHED_START, /* start an attempt of *out_trial */
    SCHED_ASK,   /* ask the search for one more proposal */
    SCHED_WAIT,  /* something runs; come back when it ends */
    SCHED_END,   /* nothing runs and nothing is left to start */
};

void sched_done(struct sched *s);

/* Adds a trial as it stands (final ones are only counted). -ENOMEM. */
int sched_add(struct sched *s, const struct sched_trial *t);

/* Trials cut short, gone on with or to be retried come before new ones, the lowest number first; of these the search is asked for more one at
 * a time, so that the order is its own. While trials are paused it is asked beyond max_trials, too: it may go on with one. `fits` says whether a trial may be started
 * beside those that run (NULL: any may), of number SCHED_ANY whether one like those may; while none of those that wait does, a few more are
 * asked for, since one of them could: of a search that learns, one more, if there is room, and one for each trial that is about to end,
 * since what is proposed early is proposed of less. When nothing runs everything must fit. */
enum { SCHED_LOOKAHEAD = 8, SCHED_LEARNING_LOOKAHEAD = 2, SCHED_ANY = 0 };
enum sched_verb sched_next(const struct sched *s, bool (*fits)(void *ctx, int trial), void *ctx, int *out_trial);

/* May another trial be made? */
bool sched_may_add(const struct sched *s);

/* The search answered: 0 wait (until the next report), -ENODATA exhausted. */
void sched_asked(struct sched *s, int rc);

void sched_started(struct sched *s, int number);

/* It has completed an epoch: kills are counted anew. */
void sched_gained(struct sched *s, int number);

/* Who is killed so often without an epoch in between is lost. */
enum { SCHED_KILLS_MAX = 5 };

/* Its next failure is the last, whatever retries are left. */
void sched_give_up(struct sched *s, int number);

/* What becomes of the trial if its attempt ends so: what sched_ended() will say. */
enum trial_state sched_state_after(const struct sched *s, int number, enum outcome o);

/* An attempt has ended: returns the trial's new state and forgets the trial when that is final.
 * OUTCOME_ENVIRONMENT also sets `stopping`. */
enum trial_state sched_ended(struct sched *s, int number, enum outcome o);

/* The search goes on with a paused trial: it is started at the next chance, like one cut short. One that still runs to its pause is left
 * to run: its attempt's end is then OUTCOME_INTERRUPTED. */
void sched_resume(struct sched *s, int number);

/* The search may know more now than when it said wait. */
void sched_woken(struct sched *s);

/* The lowest number among paused trials; 0: none is. */
int sched_paused(const struct sched *s);

/* The lowest number of a trial that the study's end leaves: paused, or, of one that was closed, waiting; 0: none is. */
int sched_left(const struct sched *s);

size_t sched_running(const struct sched *s);
size_t sched_waiting(const struct sched *s); /* to be started: neither running nor paused */

#endif
