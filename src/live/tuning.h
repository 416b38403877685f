/* The policy at work in a live study: makes its events of what attempts report, stores what it decides together with all that
 * led to it, and only then hands out what is to be done. After a crash it is rebuilt from what was stored. */
#ifndef LIVE_TUNING_H
#define LIVE_TUNING_H

#include "app/fold.h"
#include "clustering/model.h"
#include "core/policy.h"
#include "live/study.h"

struct tuning;

/* What is to be done; called when it has been stored, never from within tuning_epoch() or tuning_end(). */
struct tuning_ops {
    void (*apply)(void *ctx, int trial, struct tuner_setting to); /* answered by tuning_applied() */
    void (*relaunch)(void *ctx, int trial); /* end the attempt; the trial is to be started again */
    void (*settled)(void *ctx, int trial, struct tuner_setting at, const char *why); /* to be told */
};

/* Rebuilds the policy's machine from the stored log; trials that ran under the last driver count as lost. *out is NULL when the
 * study's policy chooses nothing. */
int tuning_open(struct tuning **out, struct study *s, const struct tuning_ops *ops, void *ctx, struct err *e);
void tuning_close(struct tuning *t);

/* The setting of the next launch: fills trial->setting and its slots. `room`: CPUs that it may have; `alone`: nothing will run beside it. Stored
 * at once. */
int tuning_ask(struct tuning *t, struct study_trial *trial, int room, bool alone, struct err *e);

/* The setting of an attempt that was met again, by what its row says; the start where that is none of the choices. */
int tuning_recall(struct tuning *t, struct study_trial *trial, const char *setting, struct err *e);

/* Has a job of the trial's family settled in this run, so that it may begin packed? */
bool tuning_knows(const struct tuning *t, const struct study_trial *trial);

/* A training step was read, at `now_ms` (since 1970). Stores and acts when something is decided. */
int tuning_iteration(struct tuning *t, struct study_trial *trial, const struct app_report *ev, int64_t now_ms,
                     struct err *e);

/* What is measured is void: a recovery, or a co-runner came or went. */
int tuning_break(struct tuning *t, int trial, struct err *e);

/* An epoch is complete. What it leads to is for tuning_put(), inside a transaction of the caller's, which is to be followed by tuning_stored().
 * Nothing is done for a trial of which no step was read. */
int tuning_epoch(struct tuning *t, struct study_trial *trial, const struct store_epoch *row, struct err *e);
int tuning_put(struct tuning *t, struct err *e);
void tuning_stored(struct tuning *t);

/* The attempt has ended (`finished`: the trial with it): inside the caller's transaction, which is to be followed by tuning_stored(). */
int tuning_end(struct tuning *t, struct study_trial *trial, bool finished, struct err *e);

/* The launch setting cannot be had. The same. `explained`: it ran out of memory, a bound of its class; else it was
 * not granted, which says nothing of other settings. */
int tuning_bound(struct tuning *t, struct study_trial *trial, bool explained, struct err *e);

/* `to` is in force, or (`why` is not NULL) cannot be had. */
int tuning_applied(struct tuning *t, int trial, struct tuner_setting to, int cores, const char *why, struct err *e);

/* The setting that `cores` CPUs, read back after `to` was asked for, make. Without a policy `to` itself. */
struct tuner_setting tuning_in_force(const struct tuning *t, struct tuner_setting to, int cores);

/* What the profile that was asked for says; `class_key` is that of the class it is of, NULL: of none. */
int tuning_verdict(struct tuning *t, int trial, enum model_decision decision, const char *class_key, struct err *e);

/* How many trials wait that could be packed beside one that runs; what a running one may have from now on. */
int tuning_load(struct tuning *t, int waiting, struct err *e);
int tuning_room(struct tuning *t, int trial, int cores, bool alone, struct err *e);

/* Deadlines that the policy asked for. */
int tuning_tick(struct tuning *t, int64_t now_ms, struct err *e);

bool tuning_settled(const struct tuning *t, int trial); /* and never probes again unless it is told of more room */
bool tuning_current(const struct tuning *t, int trial, struct tuner_setting *out);
char *tuning_setting_text(const struct tuning *t, struct tuner_setting s); /* JSON, to be freed; NULL: memory */
double tuning_cores(const struct tuning *t, struct tuner_setting s);       /* CPUs of a setting */

#endif
