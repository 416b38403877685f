#include "core/slurm_verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 3, 4)))
say(struct slurm_verdict *out, enum outcome outcome, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *out = (struct slurm_verdict){ .outcome = outcome };
    (void)vsnprintf(out->why, sizeof out->why, fmt, ap);
    va_end(ap);
}

static const char *node_of(const struct slurm_job *j)
{
    return j->node[0] ? j->node : "its node";
}

/* Its launcher did not come to write a note. */
static void judge_failed(const struct slurm_ended *x, struct slurm_verdict *out)
{
    const struct slurm_job *j = x->job;
    int code = x->end.code;
    if (slurm_reason_of(j->reason) == SLURM_NEVER)
        say(out, OUTCOME_INFEASIBLE, "Slurm cannot run job %" PRIu64 ": %s", j->id, j->reason);
    else if (code == SLURM_EXIT_UNSEEN)
        say(out, OUTCOME_ENVIRONMENT,
            "%s does not see '%s' or the working directory: the store, and what trials need, must lie on a file system "
            "that Slurm's nodes share",
            node_of(j), x->dir);
    else if (code >= SLURM_EXIT_NO_NODE_MIN && code <= SLURM_EXIT_NO_NODE_MAX)
        say(out, OUTCOME_ENVIRONMENT, "%s has no '%s' that it can run: it must lie where Slurm's nodes see it, too",
            node_of(j), x->program);
    else if (code == SLURM_EXIT_BUSY)
        say(out, OUTCOME_INTERRUPTED, "an earlier attempt of it still ran");
    else if (x->end.signal)
        say(out, OUTCOME_KILLED, "its job %" PRIu64 " was killed from outside by signal %d", j->id, x->end.signal);
    else
        say(out, OUTCOME_FAILED, "its launcher ended with exit code %d on %s, see %s/job.out", code, node_of(j),
            x->dir);
}

void slurm_verdict(const struct slurm_ended *x, struct slurm_verdict *out)
{
    const struct slurm_job *j = x->job;
    *out = (struct slurm_verdict){ 0 };
    switch (x->end.state) {
    case SLURM_CANCELLED:
        say(out, OUTCOME_INTERRUPTED, "its job %" PRIu64 " was cancelled from outside", j->id);
        return;
    case SLURM_TIMEOUT:
        say(out, OUTCOME_FAILED, "time_limit: its job was over its time%s%s; give places.slurm.time more",
            j->limit[0] ? " of " : "", j->limit);
        return;
    case SLURM_LOST:
        say(out, OUTCOME_INTERRUPTED, "its job %" PRIu64 " lost its node: %s", j->id,
            j->reason[0] ? j->reason : "that failed, or was given to others");
        return;
    case SLURM_MEMORY:
        say(out, OUTCOME_INFEASIBLE, "out_of_memory: its job %" PRIu64 " took more than it was given", j->id);
        out->memory = true;
        return;
    case SLURM_FAILED:
        if (!x->noted)
            judge_failed(x, out);
        return;
    default: /* what its launcher noted says it all */
        if (!x->noted)
            say(out, OUTCOME_KILLED, "its job %" PRIu64 " ended without a note of its launcher", j->id);
    }
}

void slurm_verdict_never(const struct slurm_job *job, enum slurm_fault fault, struct slurm_verdict *out)
{
    say(out, fault == SLURM_NEVER ? OUTCOME_INFEASIBLE : OUTCOME_ENVIRONMENT,
        "Slurm would never run job %" PRIu64 ": %s", job->id, job->reason);
}
