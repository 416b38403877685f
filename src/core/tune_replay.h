/* Replays of recorded tuning runs: queues of jobs ("online"), and plain tuning runs of one job ("offline"). Pure; the
 * formulas stand in the design (TUNER.md, section 9). */
#ifndef CORE_TUNE_REPLAY_H
#define CORE_TUNE_REPLAY_H

#include "base/err.h"
#include "core/tune_csv.h"

/* Means over rows; NAN: a column is missing, or there is no row. */
struct tune_replay_figures {
    double response_s, tuning_s, training_s, energy_j;
};

struct tune_replay_job {
    const char *name; /* borrowed from the rows; the last job is "all" */
    /* V1 and V2 as published: response is response_s, energy is that of the tuning. pipetune is what V1's rows (pipetune_on_v2:
     * V2's) took to train alone: response and training are both training_s, energy is that of the training, tuning is
     * NAN: no column tells it. */
    struct tune_replay_figures v1, v2, pipetune, pipetune_on_v2;
    double fcfs_v1_s, fcfs_v2_s; /* mean response in a consistent first-come-first-served queue */
};

struct tune_replay_result {
    struct tune_replay_job *jobs; /* by name; "all" last */
    size_t n;
};

/* One load and core number; either may be empty. Borrows the rows' names for *out. -ENOMEM. */
int tune_replay(struct tune_replay_result *out, const struct tune_online *v1, const struct tune_online *v2,
                struct err *e);
void tune_replay_result_done(struct tune_replay_result *r);

/* Response of each row, in order, in the queue of its file: arrivals recovered as (sum of earlier tuning_s) - queue_s; a
 * name met before is served in training_s - queue_s, else in tuning_s. NAN from where a column is missing. `jobs`: each row's
 * job as a number below the count of rows; `met`: that many, all false. */
void tune_replay_fcfs(double *out, const struct tune_online *rows, const size_t *jobs, bool *met);

/* --- offline --- */

/* What a file's name says: "TuneV1_lenet_8.csv" is version "v1", job "lenet", cores "8". The name without ".csv" is cut at
 * its '_': a piece V<number> (also as Tune…V<number>…) is the version, the last whole number the cores, and what is left
 * is the job, or when nothing is, what stands behind the V<number>. What is not said is "-". */
struct tune_name {
    char job[TUNE_JOB_MAX], cores[16], version[16];
};

void tune_name_parse(struct tune_name *out, const char *file);
int tune_name_compare(const struct tune_name *a, const struct tune_name *b); /* job, cores by number, version */

struct tune_sum {
    size_t trials;
    double time_s, energy_j; /* NAN: a row lacks it */
    /* Least error, least error_resp; the earliest of equals; NULL: no row has it. Borrowed from the rows. */
    const struct tune_offline_row *best_error, *best_error_resp;
};

void tune_sum_of(struct tune_sum *out, const struct tune_offline *rows);

#endif
