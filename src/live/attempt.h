/* One attempt of a trial: from its launch, or its re-adoption, to the row that says how it ended. */
#ifndef LIVE_ATTEMPT_H
#define LIVE_ATTEMPT_H

#include "bigdl/fold.h"
#include "bigdl/log.h"
#include "live/launcher.h"
#include "live/study.h"

/* The launcher kills what is left after the grace, ends leftovers and writes its note; when it has not ended by then, we
 * kill. */
enum { ATTEMPT_GRACE_S = 10, ATTEMPT_KILL_AFTER_MS = 20000 };

/* Why we ended it ourselves. */
enum attempt_stop { STOP_NONE, STOP_USER, STOP_NO_EXECUTOR, STOP_STALLED, STOP_LINGERS, STOP_ORIGIN };

struct attempt {
    uint64_t id; /* of this attempt within the loop */
    struct study *study;
    struct study_trial *trial;
    struct store_attempt row;
    char *dir; /* the trial's folder */
    struct launcher *launcher;
    bool running; /* the go was given, or it was met running */
    bool adopted;
    int epochs_done; /* of the trial, up to now */
    bool gained;     /* an epoch was completed in this attempt */
    enum attempt_stop stop;
    /* the log */
    int log_fd;
    struct log_stream stream;
    struct fold fold;
    int64_t born_ms, line_ms, done_ms; /* monotonic: the go, the newest event, the last epoch's end */
    int64_t kill_ms;                   /* monotonic: when to KILL what was told to end; 0: not told */
    void (*on_epoch)(struct attempt *a, const struct store_epoch *row); /* after it was stored */
    void *ctx;                                                          /* for on_epoch */
};

/* Prepares attempt number row.attempts + 1: its folder, its checkpoint to go on from, the launcher's argv. */
int attempt_prepare(struct attempt *a, struct study *s, struct study_trial *t, struct strv *argv, struct err *e);

/* Prepares to go on with the stored attempt `row` (copied) of the trial. */
int attempt_recall(struct attempt *a, struct study *s, struct study_trial *t, const struct store_attempt *row,
                   struct err *e);
void attempt_done(struct attempt *a);

/* The launcher holds the folder: stores the attempt as running, then the go may be given. */
int attempt_commit(struct attempt *a, const struct launcher_ready *r, struct err *e);

/* Reads what the log has gained; each complete epoch is stored. */
int attempt_read(struct attempt *a, int64_t now_ms, struct err *e);

/* Is it time to end it, and why? Pure judgement over the clock. */

/* Why we ended it ourselves. */
enum attempt_stop attempt_overdue(const struct attempt *a, int64_t now_ms);

/* Tells its processes to end; `hard` kills. Safe when they are gone. */
void attempt_signal(struct attempt *a, bool hard);

/* Its processes are gone: reads the rest, judges, stores. `text` gets why it ended, "" for a finished one. */
int attempt_settle(struct attempt *a, char text[512], enum outcome *out, struct err *e);

#endif
