/* Slurm from inside, shared by its parts alone: slurm.c (starting, signals, the row), slurm_ask.c (its commands, run by workers), slurm_queue.c (what
 * squeue says, and what comes of it). */
#ifndef LIVE_SLURM_STATE_H
#define LIVE_SLURM_STATE_H

#include "base/buf.h"
#include "base/strv.h"
#include "core/slurm_verdict.h"
#include "core/slurm_words.h"
#include "live/slurm.h"

enum {
    SLURM_SOON_MS = 1500,    /* between two looks at squeue where something is expected */
    SLURM_SILENT_MS = 15000, /* … and where it does not answer; before it is given another job then, too */
    SLURM_SAID_MAX = 400,
};

/* One of its commands. */
struct slurm_command {
    uv_work_t work;
    struct slurm *s;
    uint64_t id;                                                  /* of the launch; 0: of none */
    void (*done)(struct slurm *s, const struct slurm_command *c); /* NULL: nobody waits for it */
    struct strv argv;
    struct buf out;
    int code; /* of its exit; -errno: it was not run, or did not answer */
};

/* A launch. */
struct slurm_launch {
    struct slurm_launch *next;
    struct slurm *all;
    uint64_t id, number; /* the driver's; Slurm's, 0: not made */
    char *tag, *dir;
    bool went, adopted;
    bool to_end;                                       /* before it went */
    bool to_release, busy;                             /* busy: a command of it is under way */
    bool begun, noted, over;                           /* noted: its launcher has written how it ended */
    bool asked, listed;                                /* by the squeue under way; in its answer */
    bool killed;                                       /* it was to be */
    int missed;                                        /* answers in a row that did not list it */
    struct slurm_job seen;                             /* as squeue has it */
    int64_t went_ms, settle_ms, hopeless_ms, retry_ms; /* when; 0: not yet */
    char told[96];                                     /* the reason that was */
    struct slurm_verdict end;                          /* why "": not known, or nothing to be said */
};

struct slurm {
    uv_loop_t *loop;
    const struct plan *plan;
    const struct launcher_ops *launcher;
    const struct slurm_ops *ops;
    void *ctx;
    char name[160]; /* of its jobs */
    struct slurm_launch *list;
    int commands; /* under way */
    bool closed;  /* freed when none is */
    bool polls, sweeps, to_sweep, told_silent;
    int64_t look_ms, poll_ms, rests_until_ms;
    struct buf room; /* what sinfo says is free; empty: not known */
    bool asks_room, to_ask_room;
    int64_t room_ms; /* when it may be asked again */
    int begun;       /* launches since it was asked: what they have was free then */
};

/* Runs a command, which it takes, and calls `done` with its answer from the loop. -ENOMEM. */
int slurm_command(struct slurm *s, uint64_t id, struct strv *argv,
                  void (*done)(struct slurm *s, const struct slurm_command *c));
void slurm_command_fault(const struct slurm_command *c,
                         char out[SLURM_SAID_MAX]); /* what it says is wrong, in one line */
void slurm_cancel(struct slurm *s, uint64_t number, const char *how, const char *signal); /* `how`, `signal`: NULL */
int64_t slurm_patience_ms(const char *variable, int64_t usual); /* tests have less, by the variable */
void slurm_free_when_idle(struct slurm *s);

struct slurm_launch *slurm_find(const struct slurm *s, uint64_t id);
void slurm_release(struct slurm_launch *l); /* where it is due */

void slurm_poll_within(struct slurm *s, int64_t ms);
void slurm_sweep(struct slurm *s); /* cancels jobs of this study that no attempt has */

#endif
