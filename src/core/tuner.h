/* The tuner: which setting of the system parameters a training job gets, found out while it trains. A state machine without
 * I/O: events in, actions out; time is a field of the event, ties go to the lowest index, sums run in a fixed order. One
 * tuner belongs to a study. It owns what is known of each class of jobs, and one state per running trial.
 *
 * A setting is a pair of indices: `hot` counts the settings that can be changed while a job runs, from the cheapest (fewest
 * cores) up; `cold` those that need a launch, from the smallest memory up. Memory alone is a ladder, where more is not slower; the other
 * cold knobs (parts, properties of the runtime) are choices without an order.
 *
 * Hot settings are compared while a trial trains, if nothing runs beside it. What they cost depends on whether trials wait:
 * seconds, or core-seconds. Only ratios of time are kept, so that what was learnt under one load is good for the other.
 *
 * Cold settings are tried at launches, and by a relaunch when it is worth one:
 *  - The first trial of a class gets the memory that was best for a job that differs in batch alone. Without such a job it gets
 *    the largest, as long as memory is free (nothing runs beside it, no trial waits): too small a heap costs up to several times
 *    the time, too large a one costs a single trial nothing. Going up from the default by one step per launch finds the same,
 *    but each step is a trial at less than the best: on synthetic runs that was a fifth of all time.
 *    One that cannot be launched in it gets the next smaller. Less than the default, which can be had, is only launched for what a
 *    job that differs in batch alone saved by it. A memory that the user entered is what a stranger begins with.
 *  - A trial whose memory does not let it have cores that may be the best is relaunched where it may have them, early in its
 *    first epoch, when little is lost. It may cost half of what a relative is known to gain, or, where nothing else trained on that
 *    side, of what the last step towards it gained; else probe_budget of the time left, and a fifth of that where it is against the
 *    odds (others on that side are no better). Half of it where they may have been refused for want of memory and there is less.
 *  - A smaller memory than one that works is never tried: nothing is gained by it, and a launch that fails costs a start-up.
 *  - Choices without an order begin with the value written first. A later trial of a class may be launched with one that was never
 *    compared, the others as they are, where a start-up and what it may lose is less than what it may gain; it is called the best, and
 *    launched for that, only when it was found to be better by more than tie_margin. What tries have cost, as far as they were worse,
 *    is kept to a fiftieth of the class's time. One that cannot be had gives way to the next that was written.
 *  - A launch that failed bounds memory from below, unless what trained elsewhere shows that it was not for want of memory. What jobs
 *    that differ in batch alone could not have is avoided where there is a choice.
 *
 * What earlier studies left (EV_RECALL) is used without probing, and taken back when it does not hold here:
 *  - A trial of a recalled class is launched with what was best there, hot and cold. Once steady it does the canary: a window of the
 *    default hot setting between two of its own. Where the default is better beyond the noise, all that was recalled of the class is
 *    dropped and the trial is probed as that of a new class, else the class is confirmed and the trial settles. While trials wait its
 *    first look is a short one, as when probing. One canary per class and study; none where there is nothing to compare or the trial
 *    is not alone.
 *  - The first steady window of each trial is to be profiled (ACT_PROFILE). Nothing waits for the verdict. One that says that the
 *    job is another one takes back what was recalled; one that finds a new class to be like a known one gives it that one's
 *    knowledge as recalled knowledge. What was learnt in this study beats any verdict. */
#ifndef CORE_TUNER_H
#define CORE_TUNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { TUNER_MAX_HOT = 32, TUNER_MAX_COLD = 32, TUNER_REASON_MAX = 160, TUNER_ACTIONS_MAX = 16 };

struct tuner_setting {
    int hot, cold;
};

struct tuner_cfg {
    double window_s;     /* of a measuring window */
    double probe_budget; /* share of a trial that probing may lose */
    double tie_margin;   /* settings this close are equal, and the cheaper one wins */
    double noise_floor;  /* no interval is narrower than this */
};

struct tuner_space {
    int n_hot, n_cold;
    double cores[TUNER_MAX_HOT];   /* of each hot setting, ascending */
    double memory[TUNER_MAX_COLD]; /* of each cold setting, ascending */
    int other
        [TUNER_MAX_COLD]; /* which combination of the other cold knobs: settings that are alike in it are one ladder of memory,
                                      settings that are not have no order */
    bool memory_entered; /* by the user: a class that nothing is known of begins with that of the start */
};

/* The next rung up (by 1) or down (by -1) the ladder that a cold setting stands on; -1: none. */
int tuner_space_step(const struct tuner_space *s, int cold, int by);

enum tuner_event_kind {
    EV_TRIAL_STARTED, /* setting, class_key, family_key, epoch (the first one it trains), epochs, n_hot, alone, startup_s */
    EV_ITERATION,     /* one training step, or several in one, has ended: seconds, records, epoch_records, epoch */
    EV_EPOCH,         /* an epoch has ended, validation included: epoch, seconds, records */
    EV_APPLIED,       /* the setting of an ACT_APPLY is in force: setting */
    EV_FAILED, /* infeasible: the setting cannot be had (refused in mid-trial, or the launch ran out of memory) */
    EV_LOAD,   /* trial 0: waiting, trials that could be packed beside one of ours. Else what this trial may have from
                       now on: n_hot, alone */
    EV_BREAK,  /* what is being measured is void: a recovery, a node or a co-runner came or went */
    EV_TICK,   /* a wake_at has come */
    EV_TRIAL_ENDED, /* finished; what was learnt stays */
    EV_TRIAL_LOST,  /* cut short, or met again by a new driver: the trial's state is forgotten and nothing learnt */
    EV_RECALL, /* trial 0: one thing that earlier studies knew of a class, before any trial of it starts; else, or when something
                       was learnt of it here, it is passed over. class_key, family_key, setting, trials; then either infeasible, or
                       over, ratio, at_least and best */
    EV_VERDICT, /* what a profile says of the trial, at most one per ACT_PROFILE: verdict, class_key (of the class matched) */
    EV_INSTEAD, /* in place of EV_APPLIED: what was read back is another setting than the one that was asked for last, and is what is
                       measured from now on: setting. What was asked for cannot be had */
};

/* Of a profile: within 2 spreads of a cluster, between, beyond 4 of all. */
enum tuner_verdict { VERDICT_UNKNOWN, VERDICT_AMBIGUOUS, VERDICT_KNOWN };

struct tuner_event {
    enum tuner_event_kind kind;
    int trial;
    double t_s; /* goes forward within a trial; those of two trials are not compared */
    struct tuner_setting setting;
    const char *class_key;  /* jobs that share knowledge */
    const char *family_key; /* classes that differ in batch alone; NULL: none */
    int epoch, epochs;
    double seconds, records, epoch_records;
    int waiting;
    int n_hot;        /* the trial may have hot settings below this one; 0: all */
    bool alone;       /* nothing runs beside it, so that it may probe */
    double startup_s; /* what a relaunch costs before its first iteration; 0: no relaunch is possible */
    bool infeasible;
    bool unexplained; /* of EV_FAILED: nobody knows why, so it says nothing of other settings */
    /* of EV_RECALL */
    struct tuner_setting
        over;      /* what `setting` was compared with; mostly under the same cold setting. A ratio to one under another
                                  cold setting tells how these two compare; it comes after those within each */
    double ratio;  /* log of the time of `setting` over that of `over`; finite. 0 for the reference itself */
    bool at_least; /* it was cut: the ratio is this or more */
    bool best;     /* `setting` was the class's best; absent, the first one recalled is under the best cold setting */
    int trials;    /* of earlier studies that the class was learnt from */
    /* of EV_VERDICT; class_key may be NULL unless the verdict is VERDICT_KNOWN */
    enum tuner_verdict verdict;
};

enum tuner_action_kind {
    ACT_APPLY,  /* change to the setting's hot part */
    ACT_SETTLE, /* this is the setting of the rest of the trial */
    ACT_LEARN,  /* the class's best setting is now this */
    ACT_WAKE,   /* send a tick at t_s; a later one replaces it */
    ACT_RELAUNCH, /* end the attempt and launch it again from its newest checkpoint (none: from the start); tuner_launch() will
                     say how. What was learnt is kept: an EV_TRIAL_LOST in between is fine, and so is none */
    ACT_PROFILE, /* take the profile of what the trial did from t_s to until_s, all of it under `setting`, and answer with EV_VERDICT
                    if it can be matched. Once per start of a trial; a request, like ACT_WAKE, and no decision */
    ACT_CONFIRM, /* what was recalled of the trial's class holds here */
    ACT_WEAKEN, /* it does not, and is forgotten; `setting` is the one that was tried. trial: that of the launch where one failed */
};

struct tuner_action {
    enum tuner_action_kind kind;
    int trial;
    struct tuner_setting setting;
    double t_s;
    double until_s; /* of ACT_PROFILE */
    char reason[TUNER_REASON_MAX];
};

struct tuner_actions {
    struct tuner_action list[TUNER_ACTIONS_MAX];
    size_t n;
};

struct tuner;

/* Copies space and cfg. NULL: memory. */
struct tuner *tuner_new(const struct tuner_space *space, const struct tuner_cfg *cfg);
void tuner_free(struct tuner *t);

/* The setting that a trial is to be launched with. */
struct tuner_ask {
    int trial;
    const char *class_key, *family_key;
    struct tuner_setting start; /* the default setting, or the one entered by the user */
    int n_hot;                  /* as in EV_TRIAL_STARTED */
    bool alone;
};

/* Asked once per launch: what a try may cost is charged to its class. reason[] says why. -EPROTO: the start is none of the space;
 * -ENOMEM. */
int tuner_launch(struct tuner *t, const struct tuner_ask *ask, struct tuner_setting *out, char reason[TUNER_REASON_MAX],
                 struct err *e);

/* Takes one event; *out is overwritten. -EPROTO: impossible in this state, or a setting outside of the space; -ENOMEM. */
int tuner_step(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e);

/* The setting that the trial is to have now; false when the trial is unknown. */
bool tuner_current(const struct tuner *t, int trial, struct tuner_setting *out);

/* Has the trial settled: does nothing change any more but by drift? */
bool tuner_settled(const struct tuner *t, int trial);

/* All that is known, to be kept for later studies (core/knowledge.h says what may be read). Borrowed until the next step. */
struct knowledge;
const struct knowledge *tuner_knowledge(const struct tuner *t);

#endif
