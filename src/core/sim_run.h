/* One simulated run: a trial that is launched, trains, and is launched again, as a policy's machine hears of it. Its time is virtual: who
 * drives it takes one event after the other, alone (sim_run_play) or among others (core/simulator.h). Pure; allocates nothing, and the same
 * world gives the same to the last bit.
 *
 * An epoch is so many equal steps of one record each. A step in which the setting changes goes on at the new speed from where it stands. A
 * relaunch goes on from the end of the newest epoch: what was done of the next one is lost. */
#ifndef CORE_SIM_RUN_H
#define CORE_SIM_RUN_H

#include "core/policy.h"
#include "core/rng.h"
#include "core/sched.h"

struct sim_run;

/* What runs train in. */
struct sim_world {
    bool (*has)(void *ctx, const struct sim_run *r, struct tuner_setting s); /* can the setting be had? */
    double (*step_s)(void *ctx, const struct sim_run *r);                    /* seconds of a step, as the run stands */
    double (*startup_s)(void *ctx, struct sim_run *r);                       /* of the launch that begins now */
    /* The seconds of so many steps together, over step_s; drawn once as they begin. NULL: 1. */
    double (*noise)(void *ctx, struct sim_run *r, int steps);
    /* Seconds after its first step begins at which this launch ends by itself, INFINITY: never; and why: OUTCOME_REFUSED, its setting
     * cannot be had after all, or OUTCOME_KILLED, from outside. NULL: never. */
    double (*dies_s)(void *ctx, struct sim_run *r, enum outcome *out_why);
    /* What the profile that was asked for says (EV_VERDICT with its verdict and class_key), asked at the end of each step until it says
     * something. NULL: nothing ever. */
    bool (*verdict)(void *ctx, const struct sim_run *r, struct tuner_event *out);
    /* Who listens; NULL: nobody. What it is launched with (run->at), and each action. */
    void (*launched)(void *ctx, const struct sim_run *r, const char *reason);
    void (*told)(void *ctx, const struct sim_run *r, const struct tuner_action *a);
    bool unexplained;  /* launches fail without a reason, as in a timeline; else for want of memory */
    bool whole_epochs; /* once it has settled a run is told of whole epochs alone, as long as it stays so */
    double apply_s;    /* until a change is in force, and told; 0: at once, and not told */
};

/* What all runs of a study have in common. */
struct sim_stage {
    const struct policy *policy;
    void *machine; /* NULL where the policy has none: settings are never changed */
    const struct sim_world *world;
    void *ctx; /* the world's */
    /* The hot setting that is in force when `hot` is asked for: fewer cores, where no more are left. NULL: what is asked for. */
    int (*grant)(void *place, struct sim_run *r, int hot);
    void *place;
};

struct sim_job {
    int trial;
    const char *class_key, *family_key; /* borrowed */
    int epochs, steps;                  /* of the trial, of an epoch */
    struct tuner_setting start;
};

struct sim_run {
    const struct sim_stage *stage;
    struct sim_job job;
    int n_hot;  /* as in struct tuner_ask, of the next launch */
    bool alone; /* likewise */
    bool training;
    struct tuner_setting at; /* in force; before the first step, launched with */
    double startup_s;        /* of this launch */
    int first, epoch;        /* the first of this launch, the one under way (or the next); from 1 */
    int launches, failed;    /* so far; those that could not be had */
    bool relaunch;           /* was asked for */
    int settles;             /* how often the machine has said so */
    bool profiled;           /* a profile was asked for, of this time, and has said nothing yet */
    double profile_from_s, profile_to_s;
    double now_s;   /* the time of its newest event */
    double began_s; /* its first step, or while it starts up its launch */
    double beside;  /* for the world: how busy others keep its node, 0 to 1 */
    /* the world's own memory of the run */
    struct rng rng;
    double bias, wander;
    /* what is under way */
    int step, upto;    /* the step that it stands in, from 0, and the one that it goes up to; 0: nothing is under way */
    double into, left; /* of that step, done; steps left until `upto` */
    double records, factor;   /* until `upto` altogether; noise */
    bool whole;               /* it is a whole epoch */
    double stride_s, epoch_s; /* when what is under way began, and its epoch */
    double wake_s, ready_s, death_s;
    enum outcome death;
    struct tuner_setting asked; /* on its way, … */
    double due_s;               /* … and in force then; INFINITY: none is */
    bool instead;               /* it is less than what was asked for, which is yet to be told */
};

/* What has happened; what is negative is an error. From SIM_STEP on a relaunch that was asked for can be done. */
enum sim_news {
    SIM_TICK,    /* a wake_at, or a change is in force */
    SIM_STARTED, /* its first step begins */
    SIM_REFUSED, /* the launch could not be had, as the machine was told: it may be launched again */
    SIM_STEP,    /* a step has ended */
    SIM_EPOCH, /* and with it the epoch; run->epoch is the next one, the trial is over where that is more than it has */
    SIM_DIED,  /* as the world says (run->death); the machine was told: it may be launched again */
};

/* A run that is not launched yet; its clock begins at `now_s`. `stage` and the job's keys are borrowed. */
void sim_run_init(struct sim_run *r, const struct sim_stage *stage, const struct sim_job *job, double now_s);

/* Asks for a setting and begins to start up, with the epoch that run->epoch says. What the policy's machine says. */
int sim_run_launch(struct sim_run *r, struct err *e);

/* When the next event of a launched run is. */
double sim_run_next_s(const struct sim_run *r);

/* The next event: enum sim_news, or what the machine says. */
int sim_run_next(struct sim_run *r, struct err *e);

/* Brings its clock forward to t_s, which is no later than its next event: before anything that it depends on changes. */
void sim_run_advance(struct sim_run *r, double t_s);

/* Tells the machine this of the trial, now, and does what it says. Trial, time and the trial's keys are filled in. */
int sim_run_tell(struct sim_run *r, struct tuner_event ev, struct err *e);

/* Does what is said of this trial; where a change is refused, what was said after it is void. */
int sim_run_take(struct sim_run *r, const struct tuner_actions *acts, struct err *e);

/* The attempt is over: EV_TRIAL_LOST, the trial is to be launched again, or EV_TRIAL_ENDED. */
int sim_run_end(struct sim_run *r, enum tuner_event_kind how, struct err *e);

/* The next event of a trial that runs alone, and the launch that comes of it. 1: it goes on, 0: its last epoch is over; errors as above. */
int sim_run_go(struct sim_run *r, struct err *e);

/* The whole trial, alone, with all its launches. */
int sim_run_play(struct sim_run *r, struct err *e);

/* Nothing of it changes any more, but by drift. */
bool sim_run_settled(const struct sim_run *r);

#endif
