/* The tuner: which setting of the system parameters a training job gets, found out while it trains. A state machine without
 * I/O: events in, actions out; time is a field of the event, ties go to the lowest index, sums run in a fixed order. One
 * tuner belongs to a study. It owns what is known of each class of jobs, and one state per running trial.
 *
 * A setting is a pair of indices: `hot` counts the settings that can be changed while a job runs, from the cheapest (fewest
 * cores) up; `cold` those that need a launch, from the smallest memory up. */
#ifndef CORE_TUNER_H
#define CORE_TUNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { TUNER_MAX_HOT = 32, TUNER_MAX_COLD = 32, TUNER_REASON_MAX = 160, TUNER_ACTIONS_MAX = 8 };

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
};

enum tuner_event_kind {
    EV_TRIAL_STARTED, /* setting, class_key, family_key, epochs */
    EV_ITERATION,     /* one training step has ended: seconds, records, epoch_records, epoch */
    EV_EPOCH,         /* an epoch has ended, validation included: epoch, seconds, records */
    EV_APPLIED,       /* the setting of an ACT_APPLY is in force */
    EV_FAILED,      /* infeasible: the setting cannot be had (refused in mid-trial, or the launch ran out of memory) */
    EV_LOAD,        /* waiting: trials that could be packed beside this one */
    EV_TICK,        /* a wake_at has come */
    EV_TRIAL_ENDED, /* finished or not, the trial's state is forgotten; what was learnt stays */
};

struct tuner_event {
    enum tuner_event_kind kind;
    int trial;
    double t_s;
    struct tuner_setting setting;
    const char *class_key;  /* jobs that share knowledge */
    const char *family_key; /* classes that differ in batch alone; NULL: none */
    int epoch, epochs;
    double seconds, records, epoch_records;
    int waiting;
    bool infeasible;
};

enum tuner_action_kind {
    ACT_APPLY,  /* change to the setting's hot part */
    ACT_SETTLE, /* this is the setting of the rest of the trial */
    ACT_LEARN,  /* the class's best setting is now this */
    ACT_WAKE,   /* send a tick at t_s; a later one replaces it */
};

struct tuner_action {
    enum tuner_action_kind kind;
    int trial;
    struct tuner_setting setting;
    double t_s;
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

/* The setting that a trial of this class is to be launched with; `start` is the default setting. Asked once per launch: an
 * exploration that is handed out counts as tried. reason[] says why. -ENOMEM. */
int tuner_launch(struct tuner *t, const char *class_key, const char *family_key, struct tuner_setting start,
                 struct tuner_setting *out, char reason[TUNER_REASON_MAX], struct err *e);

/* Takes one event; *out is overwritten. -EPROTO: impossible in this state; -ENOMEM. */
int tuner_step(struct tuner *t, const struct tuner_event *ev, struct tuner_actions *out, struct err *e);

/* The setting that the trial is to have now; false when the trial is unknown. */
bool tuner_current(const struct tuner *t, int trial, struct tuner_setting *out);

/* Has the trial settled: does nothing change any more but by drift? */
bool tuner_settled(const struct tuner *t, int trial);

#endif
