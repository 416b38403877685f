/* Slurm as a place of trials (live/site.h): each attempt is a job that runs the same launcher in the same folder, which must lie on a file system
 * that the nodes share, so that log, exit and checkpoints are where they always are.
 *
 * A job is made held, and released when its attempt is stored: what a killed driver leaves behind is either known by the store and met again by
 * the job's number, or held, and cancelled by the next driver. Slurm tells how a job ended, over what its launcher noted: one that others cancelled, or
 * whose node failed, was interrupted; one that was over its time has failed of that. */
#ifndef LIVE_SLURM_H
#define LIVE_SLURM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "core/rooms.h"
#include "live/plan.h"
#include "live/site.h"

struct slurm;

#define SLURM_PLACE "slurm" /* what an attempt's place is called in the store */

/* Called from the loop, never from within a site's functions. */
struct slurm_ops {
    /* Slurm does not take it now: nothing was started, and it is to be placed anew. */
    void (*unplaced)(void *ctx, uint64_t id, const char *why);
    /* It runs, since so many milliseconds: until then it waited in the queue. */
    void (*begun)(void *ctx, uint64_t id, int64_t ago_ms);
    /* One line for the user; id 0: of no launch. */
    void (*note)(void *ctx, uint64_t id, const char *text);
};

/* `dir` is the study's folder, by which its jobs are named. Keeps all pointers. -ENOMEM, -errno. */
int slurm_open(struct slurm **out, uv_loop_t *loop, const struct plan *p, const char *dir,
               const struct launcher_ops *launcher, const struct slurm_ops *ops, void *ctx, struct err *e);
void slurm_close(
    struct slurm *s); /* what runs goes on; the loop is to be run until it has nothing left. NULL is fine */

void slurm_tick(struct slurm *s); /* at every tick of the driver */

/* May a trial that takes so much be started now (0 CPUs: not known)? As many as fit into what is free, and no more than `places.slurm.pending` beside
 * these, wait at once. */
bool slurm_takes(struct slurm *s, struct rooms_want want);

struct site slurm_site(struct slurm *s);

#endif
