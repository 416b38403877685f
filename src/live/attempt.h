/* One attempt of a trial: from its launch, or its re-adoption, to the row that says how it ended. */
#ifndef LIVE_ATTEMPT_H
#define LIVE_ATTEMPT_H

#include "app/fold.h"
#include "app/lines.h"
#include "app/stamps.h"
#include "live/checkpoints.h"
#include "live/exit_note.h"
#include "live/gang.h"
#include "live/grant.h"
#include "live/launcher.h"
#include "live/pool.h"
#include "live/resume.h"
#include "live/site.h"
#include "live/study.h"
#include "store/series.h"

/* The launcher kills what is left after its grace, ends leftovers and writes its note; when it has not ended by then, we
 * kill. */
enum { ATTEMPT_KILL_AFTER_MS = 20000 };

/* Why we ended it ourselves. */
enum attempt_stop {
    STOP_NONE,
    STOP_USER,
    STOP_METRIC, /* the study's metric is not reported */
    STOP_NO_ROOM,
    STOP_STARVED, /* its cluster kills its parts for want of memory, again and again */
    STOP_STALLED,
    STOP_LINGERS,
    STOP_ORIGIN,
    STOP_RELAUNCH,
    STOP_FLOOD,  /* more comes of it than is kept */
    STOP_SEARCH, /* at an epoch's end: row.ends_at, row.ends_as */
};

/* What its warm session has said of it. */
enum attempt_served { SERVED_NOT, SERVED_OK, SERVED_FAILED };

/* An epoch that was read, with what goes with it into the store. */
struct attempt_epoch {
    struct store_epoch row;
    double metric;        /* what the trial is worth by it */
    double seconds;       /* of the trial, up to then */
    int64_t iteration;    /* its last */
    uint64_t upto;        /* lines before it are accounted then */
    bool amends;          /* … that was noted before: of it, a session has told the metric late */
    struct series series; /* what was told by name since the one before */
    size_t n_values;      /* … of the epoch as a whole, the newest of each name */
    struct report_value values[REPORT_VALUES_MAX];
};

/* How it ended: what is stored of it, and acted on when that is committed. */
struct attempt_end {
    struct attempt_exit note;
    enum outcome outcome;
    enum trial_state state; /* of the trial, from then on */
    char text[512];         /* why; "" for a finished one */
};

struct attempt {
    uint64_t id; /* of this attempt within the loop */
    struct study *study;
    struct study_trial *trial;
    struct store_attempt row;
    char *dir;             /* the trial's folder */
    struct site_launch at; /* its launch; without its own where a session serves it */
    struct gang *gang;     /* what `at` is then, owned; NULL: it is one process */
    bool over;             /* its end is stored */
    const char *lost;      /* why it cannot be found again; NULL */
    bool crowded_out;      /* what it waited for others have: it is placed again */
    char why_no_room[256]; /* what its cluster says of that; "": nothing */
    int starved;           /* parts of it that its cluster tells to have killed for want of memory */
    /* served by a warm session: its lines are those between its two marks */
    char *session_dir; /* NULL: a submission of its own */
    char *run_id;
    struct site_paths there, there_state; /* as the session finds its folder and what it goes on from */
    bool begun, marked_end;
    enum attempt_served served;
    char served_error[SESSION_TEXT_MAX];
    int64_t served_ms; /* monotonic */
    char *checkpoint_dir;
    struct resume_point resume; /* what it goes on from */
    bool running;               /* the go was given, or it was met running */
    bool adopted;
    int epochs_done; /* of the trial, up to now */
    bool gained;     /* an epoch was completed in this attempt */
    enum attempt_stop stop;
    bool stop_said;   /* to its programs (app/tell.h) */
    bool told_to_end; /* the session that served it was, by us */
    /* it is to be ended at row.ends_at */
    bool end_said;          /* its session was told */
    int64_t end_said_ms;    /* monotonic */
    int64_t ends_iteration; /* the newest one when that was decided */
    int64_t written_bytes;  /* of the newest checkpoint, when it was looked at last */
    int64_t written_ms;     /* monotonic: when these changed last */
    bool out_of_memory;     /* the setting that the policy chose has too little */
    /* what is heard of it (node/log_files.h) */
    int heard_fd;
    uint64_t accounted;        /* so much of it is, and the store says so */
    uint64_t punched;          /* so much of it is accounted, and off the disk */
    struct timespec log_mtime; /* of all that it prints: a sign of life, even of lines that nobody listens to */
    struct lines stream;
    struct fold fold;
    double told_ms;         /* the newest stamp of a step or an epoch, of kinds that tell; 0: none */
    int64_t steps_told;     /* steps until the newest epoch */
    struct series series;   /* told by name, of the epoch that is not stored yet */
    uint64_t live_from;     /* lines before it were written while no driver watched: they measure nothing */
    bool tells_checkpoints; /* it has told of one */
    int unseen; /* an epoch that has ended, whose checkpoint is found by name, and was not looked for; 0: none */
    bool knows_ahead;
    int64_t ahead_ms; /* its stamps are so much ahead of our clock */
    struct attempt_words {
        struct lines stream;
        struct fold fold;
    } * blamed;           /* the last words of the process that a gang ended of; NULL: its own stream has them */
    struct stamps stamps; /* the log's stamps, whatever the wall clock is set to meanwhile */
    int64_t born_ms, line_ms, done_ms; /* monotonic: the go, the newest event, the last epoch's end */
    int64_t kill_ms;                   /* monotonic: when to KILL what was told to end; 0: not told */
    void (*on_epoch)(struct attempt *a, const struct store_epoch *row); /* after it was stored */
    void *ctx;                                                          /* for on_epoch */
    struct attempt_epoch *epochs;                                       /* read, and not told by on_epoch yet */
    size_t n_epochs, cap_epochs;
    size_t n_put; /* so many of them are in a transaction, or stored */
    struct checkpoints checkpoints;
    struct attempt_end end;
    struct attempt_figure {
        int epoch;
        char name[REPORT_NAME_MAX];
        double value;
    } * figures; /* told over the session's socket, each of an epoch once */
    size_t n_figures, cap_figures;
    int metric_epoch; /* the newest whose metric is known; 0: none */
};

/* Prepares attempt number row.attempts + 1: its folder, its checkpoint to go on from, what its place is to start. */
int attempt_prepare(struct attempt *a, struct study *s, struct study_trial *t, const struct site *site,
                    struct site_order *o, struct err *e);

/* The same for a gang of this shape: `sites` and `orders` are of its processes, which are reached by the names or addresses `hosts`. */
int attempt_prepare_gang(struct attempt *a, struct study *s, struct study_trial *t, struct gangs *all,
                         const struct app_gang *shape, const struct site *sites, const char *const *hosts,
                         struct site_order *orders, struct err *e);

/* Nothing of it yet, but whose it is: it waits for room. */
void attempt_await(struct attempt *a, struct study *s, struct study_trial *t);

/* The processes of the stored attempt that was recalled, which the store has. 1: it is a gang; 0. */
int attempt_recall_gang(struct attempt *a, struct gangs *all, const struct app_gang *shape, struct err *e);

/* The same for a run of a warm session at this place: here the order says nothing. */
int attempt_prepare_run(struct attempt *a, struct study *s, struct study_trial *t, const struct warm *w,
                        const struct site *site, struct site_order *o, struct err *e);

/* What to send the session, also one that is met again; *out points into *a and *hyper. -ENOENT: what it went on from is gone; -ENOMEM. */
int attempt_run(struct attempt *a, const struct site *site, json_t **hyper, struct session_run *out);

/* The session's launcher as attempt_ready() wants to know it: with where this attempt's lines begin. */
struct launcher_ready attempt_session_ready(const struct attempt *a, const struct warm *w);

/* Prepares to go on with the stored attempt `row` (copied) of the trial. */
int attempt_recall(struct attempt *a, struct study *s, struct study_trial *t, const struct store_attempt *row,
                   struct err *e);
void attempt_done(struct attempt *a);

/* The launcher holds the folder: the attempt is to be stored as running, by attempt_put_launch() in a transaction. When that is committed,
 * attempt_launched(), and the go may be given. */
int attempt_ready(struct attempt *a, const struct launcher_ready *r, struct err *e);
int attempt_put_launch(struct attempt *a, struct err *e);
void attempt_launched(struct attempt *a);

/* Reads what was heard since. Each complete epoch is to be stored: attempt_has_news(), and then, in a transaction, attempt_put() puts all that
 * there is; when that is committed, attempt_stored(). */
int attempt_read(struct attempt *a, int64_t now_ms, struct err *e);
bool attempt_has_news(const struct attempt *a);
int attempt_put(struct attempt *a, struct err *e); /* nothing where there is no news */
void attempt_stored(struct attempt *a);            /* likewise */

/* Its processes may be ended at row.ends_at: what it can be gone on with from is written, or nothing is to be. 1, 0 not yet, negative:
 * an error. */
int attempt_can_end(struct attempt *a, int64_t now_ms, struct err *e);

/* A session that was told to end it trains on, further than the word may take. */
bool attempt_ignores_end(const struct attempt *a, int64_t now_ms);

/* It told figures of an epoch over its session's socket: they count as if its log had them, whichever comes first. -ENOMEM, and what reading
 * the store says. */
int attempt_figures_said(struct attempt *a, const struct session_message *m, struct err *e);

/* The session is done with it. */
void attempt_done_said(struct attempt *a, const struct session_message *m);

/* Its last line has been read: what it wrote at its end is to come here, too. */
int attempt_see_last(struct attempt *a, struct err *e);

/* … and its last line has been read, or does not come (or that has, and no word comes): it can be settled. */
bool attempt_is_served(const struct attempt *a, int64_t now_ms);

/* A checkpoint that it told of is here, whole, at `path`. -ENOMEM. */
int attempt_checkpoint(struct attempt *a, int epoch, const char *path, struct err *e);

/* What it waits for before its first step. */
struct wait attempt_wait(const struct attempt *a);

/* Is it time to end it, and why? Pure judgement over the clock. */
enum attempt_stop attempt_overdue(const struct attempt *a, int64_t now_ms);

/* Tells its programs, once and where they can be told, that the trial is to end at the next epoch's end. */
void attempt_say_stop(struct attempt *a);

/* Tells its processes to end; `hard` kills. Safe when they are gone. */
void attempt_signal(struct attempt *a, bool hard);

/* It is to be ended now, and gone on with no more: inside the caller's transaction. */
int attempt_put_stop(struct attempt *a, const char *why, struct err *e);

/* Its processes are gone: reads the rest. How that is to be judged, from all that was told before, attempt_put_end() says and puts into the
 * store, in a transaction: a->end. When that is committed, attempt_ended(). */
int attempt_read_end(struct attempt *a, struct err *e);
int attempt_put_end(struct attempt *a, struct err *e);
void attempt_ended(struct attempt *a);

#endif
