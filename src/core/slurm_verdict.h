/* How a job of Slurm's ended, as an outcome with its words: by what Slurm says of it, where what its launcher noted does not say it better. Pure. */
#ifndef CORE_SLURM_VERDICT_H
#define CORE_SLURM_VERDICT_H

#include "core/sched.h"
#include "core/slurm_words.h"

enum { SLURM_WHY_MAX = 480 };

/* What is known of it. */
struct slurm_ended {
    const struct slurm_job *job; /* as squeue had it last; its state does not count */
    struct slurm_end end;
    bool noted;          /* its launcher has written how it ended */
    const char *dir;     /* the trial's folder */
    const char *program; /* pipetune-node, as the job calls it */
};

struct slurm_verdict {
    enum outcome outcome;
    bool memory;             /* it took more than it was given */
    char why[SLURM_WHY_MAX]; /* "": nothing, the note says it all */
};

void slurm_verdict(const struct slurm_ended *x, struct slurm_verdict *out);

/* It was given up while it waited, for this reason. */
void slurm_verdict_never(const struct slurm_job *job, enum slurm_fault fault, struct slurm_verdict *out);

#endif
