/* A tuner that is played simulated trials of one job (core/sim_run.h), one after the other or step by step, and the story of what it said.
 * What goes wrong fails the test. */
#ifndef TESTS_PLAYED_H
#define TESTS_PLAYED_H

#include "core/sim_run.h"

/* That of live runs. */
extern const struct tuner_cfg played_cfg;

struct played {
    const void *what; /* the job, for the test's world */
    struct tuner *t;  /* freed by played_done() */
    struct sim_stage stage;
    struct sim_world world;
    /* of the next trial or launch */
    struct sim_job job;
    bool packed;
    int n_hot, first_epoch; /* 0: all; 1 */
    double startup_s;
    /* of what runs; its clock goes on from trial to trial */
    struct sim_run run;
    int kinds[ACT_WEAKEN + 1]; /* how often each was told */
    char story[65536];         /* all launches and actions */
    size_t len;
};

/* Trials of class "class", no family, 10 epochs of 100 steps. The world's ctx is `p`; what it lacks of start-ups and listening is filled in. */
void played_init(struct played *p, const struct tuner_space *space, const struct sim_world *world, const void *what);
void played_done(struct played *p);

struct tuner_setting played_ask(struct played *p); /* the setting of a launch, which is not carried out */
void played_begin(struct played *p);               /* launched until one can be had; its first step begins */
void played_step(struct played *p);
bool played_epoch(struct played *p);                       /* to its end; false: a relaunch was asked for before it */
void played_tell(struct played *p, struct tuner_event ev); /* of the trial that runs, or of the next one */
void played_load(struct played *p, int waiting);
void played_end(struct played *p);     /* finished */
double played_trial(struct played *p); /* a whole one, with its relaunches; its seconds */

#endif
