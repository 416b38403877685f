/* A study, simulated: trials that run at once on the nodes of a place, started and told of each other as by the live driver, on one virtual
 * clock. Pure. The same configuration gives the same to the last bit; all that it allocates is there before the first event, but for what
 * the policy's machine and core/sched keep.
 *
 * As live: a trial that the search has proposed waits until it fits. Where the policy lets trials share a node and several may run, one fits
 * beside others when each of these that began alone has settled, CPUs and memory are left, and a job of its family has settled before. How many
 * CPUs are left it is told with its launch and whenever that changes (EV_LOAD of the trial), what was measured is void when another one comes or
 * goes (EV_BREAK), and all are told whether enough wait (EV_LOAD of trial 0). Other policies' trials run beside each other where their start setting has
 * room. Attempts that are lost, refused or relaunched go again before new trials begin.
 * Not as live: a node gives a trial no CPUs unless it has as many as the smallest setting, and a launch in more memory than is left gets the
 * next smaller one of the same ladder. */
#ifndef CORE_SIMULATOR_H
#define CORE_SIMULATOR_H

#include "core/rooms.h"
#include "core/sched.h"
#include "core/sim_run.h"

enum { SIM_NODES_MAX = 16 };

struct sim_node {
    int cpus;
    double memory_gb; /* 0: as much as anybody wants */
};

struct simulator_cfg {
    const struct policy *policy;
    struct tuner_space space;
    struct tuner_cfg tuner;
    const struct sim_world *world;
    void *ctx; /* the world's; it knows a run's job by run->job.trial */
    struct sim_node nodes[SIM_NODES_MAX];
    int n_nodes, parallel;
    const struct sim_job
        *jobs; /* borrowed: a trial each, as the search would propose them, numbered 1, 2, … by their place here */
    size_t n_jobs;
    uint64_t seed; /* of run->rng, which each launch of a trial has anew */
};

struct sim_totals {
    double end_s;  /* when the last trial ended */
    double core_s; /* CPUs times the seconds that trials had them */
    size_t finished, infeasible, lost;
    size_t launches, failed, relaunches,
        packed; /* launches: all; that could not be had or died; that were asked for; beside others */
};

/* A run, and what it has of its node. */
struct sim_slot {
    struct sim_run run; /* first */
    int node, cpus;
    double memory_gb;
    int most;         /* CPUs that it can be widened to */
    bool began_alone; /* so it may probe */
    int noted;        /* how often it has settled, as was taken notice of */
};

/* What is kept of a trial between its launches. */
struct sim_task {
    int epoch, launches, failed;
};

struct simulator {
    struct simulator_cfg cfg;
    struct sim_stage stage;
    struct sched sched;
    struct rooms rooms;
    struct sim_slot *slots; /* that run or start up, in the order they were started */
    int n;
    struct sim_task *tasks;   /* of each job */
    const char **families;    /* of jobs that have settled; borrowed from these */
    size_t asked, n_families; /* jobs that were proposed */
    double now_s;
    bool packs, begun, waiting; /* enough trials wait, as was told */
    bool stirred;               /* room may have come, or what is known of a family */
    struct sim_totals totals;
};

/* -ENOMEM. `cfg` is copied. */
int simulator_init(struct simulator *s, const struct simulator_cfg *cfg, struct err *e);
void simulator_done(struct simulator *s); /* also of a zeroed one */

/* The next event, with all that comes of it at the same time. 1, 0 when all trials are over, or what the machine says. */
int simulator_next(struct simulator *s, struct err *e);

/* All of them. */
int simulator_play(struct simulator *s, struct err *e);

/* CPUs of a node that no trial has. */
int simulator_free_cpus(const struct simulator *s, int node);

#endif
