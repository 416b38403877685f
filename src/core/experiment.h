/* An experiment: jobs that arrive one after the other, each a study of its own, served in the order of their arrival under several
 * policies; and what that comes to. Pure.
 *
 *     { "jobs": [ { "config": "lenet.conf", "weight": 2 }, { "config": "cnn.conf", "name": "texts" } ],
 *       "arrivals": { "process": "poisson", "load": 0.95, "count": 9, "seed": 13 },
 *       "policies": [ "v1", "v2", "pipetune" ],
 *       "trace": "grid.h5" }
 *
 * Without "arrivals" it is an offline one: a study of each job, as listed, and all are there from the beginning. */
#ifndef CORE_EXPERIMENT_H
#define CORE_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "core/policy.h"

enum {
    EXPERIMENT_JOBS_MAX = 32,
    EXPERIMENT_POLICIES_MAX = 8,
    EXPERIMENT_COUNT_MAX = 10000,
    EXPERIMENT_NAME_MAX = 48,
};

struct experiment_job {
    char name[EXPERIMENT_NAME_MAX]; /* letters, digits, '.', '-', '_'; each once */
    char *config;                   /* owned; as written */
    char *workload;                 /* owned; "MODEL/DATASET" of the trace; NULL: the only one there is */
    double weight;                  /* how often it arrives beside the others */
};

struct experiment {
    struct experiment_job jobs[EXPERIMENT_JOBS_MAX];
    size_t n_jobs;
    const struct policy *policies[EXPERIMENT_POLICIES_MAX]; /* in the order written, each once */
    size_t n_policies;
    bool offline;
    /* of the arrivals */
    char *process;    /* owned */
    double load;      /* share of the time that one study after the other takes under the first policy */
    double service_s; /* a study's mean seconds under the first policy, which `load` is of; NAN: to be measured */
    int64_t count, seed;
    char *trace; /* owned; NULL: none is named */
};

/* -EINVAL names file, line and key, with the nearest known one; -ENOMEM. *out is untouched on failure. */
int experiment_parse(struct experiment *out, const struct json_doc *doc, struct err *e);
void experiment_done(struct experiment *x);

/* How many studies there are under each policy. */
size_t experiment_studies(const struct experiment *x);

struct experiment_arrival {
    double at_s; /* after the first one, which comes at 0 */
    size_t job;
};

/* All of them into out[experiment_studies()], by the experiment's seed alone: the same for every policy, and with another service time
 * the same jobs at times that are longer or shorter by one factor. Offline: each job, at 0. */
void experiment_arrive(struct experiment_arrival *out, const struct experiment *x, double service_s);

/* A study's mean seconds, from those of each job, by the jobs' weights. */
double experiment_mean_service(const struct experiment *x, const double *seconds_of_jobs);

/* --- what becomes of them --- */

/* One study, on the clock of its policy, which begins with the first arrival. NAN: not known. */
struct experiment_row {
    size_t policy, job;
    int number; /* of the arrival, from 1 */
    double arrived_s, started_s, ended_s;
    bool failed;       /* no trial of it finished */
    int interruptions; /* how often it was gone on with */
    int trials;        /* that finished, or were stopped or paused by the search */
    /* of its best trial */
    double training_s, training_j, error, lr, batch;
    int epochs, cores;  /* 0: not known */
    double tuning_j;    /* of all its trials */
    double coverage;    /* of the time of these */
    const char *source; /* of the joules, static; NULL: there are none */
};

enum experiment_figure {
    EXPERIMENT_QUEUE,
    EXPERIMENT_TUNING,
    EXPERIMENT_TRAINING,
    EXPERIMENT_RESPONSE,
    EXPERIMENT_JOULES,
    EXPERIMENT_FIGURES
};
extern const char *const experiment_figure_names[EXPERIMENT_FIGURES]; /* "queue_s", "tuning_s", … "energy_j" */

/* Queue: arrival to start; tuning: start to end; training: what the best trial took to train; response: arrival to end; joules: of all
 * trials. NAN: not known. */
double experiment_row_figure(const struct experiment_row *r, enum experiment_figure f);

/* A mean, and half of its 90 % interval (Student's t, rows taken as independent; NAN: fewer than two rows). */
struct experiment_mean {
    size_t n; /* rows that have the figure; 0: the mean is NAN */
    double mean, half;
};

/* Of the rows of this policy and job; `job` EXPERIMENT_ALL: of all jobs. Studies that failed are left out. */
#define EXPERIMENT_ALL ((size_t)-1)
struct experiment_mean experiment_mean_of(const struct experiment_row *rows, size_t n, size_t policy, size_t job,
                                          enum experiment_figure f);

/* Rows of this policy as `replay online` reads them (core/tune_csv.h), in the order of their arrival, with a head. training_s there holds
 * the queue, too, since a queue serves a job that is known in training_s - queue_s. A study whose learning rate or batch is not known,
 * or that failed, can have no row: returns how many were left out. */
size_t experiment_put_online_csv(struct buf *b, const struct experiment *x, const struct experiment_row *rows, size_t n,
                                 size_t policy);

/* --- a trial of a study, for an offline experiment --- */
struct experiment_trial {
    size_t row;
    int number, epochs;
    double lr, batch, error, seconds, joules;
};

/* The trials of one row as `replay offline` reads them (tune-offline), error_resp empty. Returns how many trials, without a learning rate or a
 * batch, were left out. */
size_t experiment_put_offline_csv(struct buf *b, const struct experiment_trial *trials, size_t n, size_t row);

#endif
