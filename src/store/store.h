/* The SQLite store: what was decided, started and measured, committed before it is acted on. One writer (the driver that
 * holds the study's lock), any number of readers. All texts are UTF-8; times are milliseconds since 1970 UTC; an absent number
 * is NAN and stored as NULL. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct store;

enum store_mode {
    STORE_READ,  /* must exist; never creates or migrates */
    STORE_WRITE, /* created when absent, older schemas are migrated in one transaction */
};

enum { STORE_SCHEMA = 20, STORE_APPLICATION_ID = 0x50695475 /* "PiTu" */ };

/* WAL, synchronous=FULL, busy time-out, foreign keys. Errors: -ENOENT no such store (STORE_READ) or no such folder, -EPROTO not a
 * PipeTune store or of a newer version (says both versions and what to do), -EROFS/-EACCES, -ENOSPC, -EREMOTEIO on a network file
 * system (NFS, SMB/CIFS, Ceph, AFS, 9p, Lustre, GPFS, FUSE network kinds such as sshfs and glusterfs; names the fix), -EUCLEAN
 * damaged, -EBUSY, -EIO, -ENOMEM. Every message names the file, and a file that is refused is left as it is.
 *
 * One thread per connection, but for the two that share it by store_set_gate(). Nothing else in the process may open and close the store's
 * files while it is open: closing any descriptor of them drops SQLite's locks. A connection is not carried through fork(). */
int store_open(struct store **out, const char *path, enum store_mode mode, struct err *e);
void store_close(struct store *s); /* NULL is fine */

/* Groups the calls between into one transaction with one fsync. Outside of a pair each call is its own transaction. A failed
 * commit is rolled back. -ENOSPC, -EIO, -EBUSY (another process writes for longer than the time-out, STORE_BUSY_MS). After a
 * failed call roll back: where SQLite had to do so itself, every later call of the transaction says -ECANCELED and does nothing.
 * Writes may also say -EEXIST (the name or number is taken), -ENOENT (no such study, trial or attempt), -EINVAL (a text that
 * must be there is NULL). */
enum { STORE_BUSY_MS = 5000 };
int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s); /* nothing when no transaction is open */

/* --- for live/writer, which lets another thread begin and commit transactions ---
 * `gate` is called before each write, by the thread that writes, and returns when none of the other thread's is under way; negative: there is to be
 * no write any more. NULL: none. */
void store_set_gate(struct store *s, int (*gate)(void *ctx, struct err *e), void *ctx);
bool store_in_transaction(const struct store *s);

/* A transaction was rolled back that was none of the other thread's: what would be written now may tell of what was lost with it. */
bool store_is_undone(const struct store *s);

/* As the calls without _now, without gate and rider; from any thread. */
int store_begin_now(struct store *s, struct err *e);
int store_commit_now(struct store *s, struct err *e);
void store_rollback_now(struct store *s);

/* Rows that go with whatever transaction comes next, last in it: lines that tell of what it stores (store/outbox.h). */
struct store_rider {
    bool (*mount)(void *ctx);                               /* is there something? It stays as it is until off() */
    int (*ride)(void *ctx, struct store *s, struct err *e); /* its rows; from the thread that commits */
    void (*off)(void *ctx, int rc, const struct err *why);  /* 0: they are committed; else nothing of all is */
};
void store_set_rider(struct store *s, const struct store_rider *r, void *ctx); /* keeps both; NULL: none */
bool store_mount(struct store *s);
int store_ride(struct store *s, struct err *e); /* these two only where it mounted */
void store_ride_off(struct store *s, int rc, const struct err *why);

/* What of a config may change within a study is kept as it was written last. -ENOENT no such study. */
int store_study_set_config(struct store *s, int64_t study, const char *config, struct err *e);

/* --- studies --- */
struct store_study {
    int64_t id;
    char *name;
    char *
        state; /* "running", "finished", "incomplete" (some failed), "failed" (none finished); the driver's lock tells running
                    from interrupted */
    char *config;     /* the effective config, JSON text: what a later run is compared with */
    char *space_hash; /* 16 hex digits */
    /* JSON text: pipetune version, git commit, host, kernel, versions of its runtime; config and application file texts; sha256 of
     * application and jars */
    char *provenance;
    bool maximise; /* the better trial has the greater metric */
    int64_t seed;
    int64_t created_ms, ended_ms; /* ended_ms 0: not yet */
};
void store_study_done(struct store_study *row);
int store_study_find(struct store *s, const char *name, struct store_study *out, struct err *e); /* 1 found, 0 none */
int store_study_add(struct store *s, const struct store_study *row, int64_t *out_id, struct err *e);
int store_study_set_state(struct store *s, int64_t study, const char *state, int64_t ended_ms, struct err *e);

/* The rows of the calls below come in a fixed order; their texts live as long as the callback. A callback that returns non-zero
 * ends the walk, which returns that value. It may call the store again, but not close it. */

/* One line of `ls`; studies in the order they were added. */
struct store_summary {
    const char *name, *state; /* valid during the call */
    int trials, done, failed; /* done: finished; failed: failed and infeasible */
    int paused, stopped;
    /* The finished one with the best metric, the lowest number among equals. While none is finished, the best of those that are paused or
     * stopped, by their last metric: figures of different epochs are compared only where there is nothing better. 0: none */
    int best_trial;
    double best_accuracy, best_metric; /* that trial's */
    const char *metric;                /* that trials are judged by; valid during the call; NULL: the usual one */
    double seconds;                    /* sum over the trials' attempts */
    int64_t created_ms, ended_ms;
};
int store_list(struct store *s, int (*row)(void *ctx, const struct store_summary *r), void *ctx, struct err *e);

/* --- trials: numbered 1, 2, … within their study --- */
struct store_trial {
    int64_t id, study;
    int number;
    uint64_t proposal; /* the search's id */
    int64_t ask_seq;   /* when the search proposed it, among the study's tells: see store_tells */
    char *state;       /* trial_state_name() */
    int epochs;        /* budget */
    char *hyper;       /* JSON object texts */
    char *requested, *effective;
    int slots;             /* 0: not launched yet */
    double accuracy, loss; /* of the last epoch */
    double metric;         /* the study's metric of the last epoch */
    double seconds;        /* over all attempts, launch to end */
    int copy_of;           /* number of the finished trial whose result this one took; 0: its own */
    char *reason;          /* why it failed or is infeasible; NULL */
    int repeat_of,
        repeat;        /* the number of the trial whose point it trains again, and for which time, from 1; 0: none */
    char *learnt_from; /* the earlier trial whose point it was, "earlier/3"; NULL: it is the search's own */
    char *violates;    /* the constraint on results that it does not keep: it is no best; NULL: none */
    int forgiven;      /* attempts up to this number no longer count against it */
    bool added;        /* somebody asked for its point: the search is not told of it */
    /* derived, filled by reads, ignored by writes: */
    int attempts, failures; /* attempts made; those that count against the retries */
    int kills;              /* ended from outside since it completed an epoch last */
    int reached;            /* the last epoch that it completed; 0: none */
};
void store_trial_done(struct store_trial *row);
int store_trial_copy(struct store_trial *out, const struct store_trial *row); /* what a callback keeps; 0 or -ENOMEM */
int store_trial_add(struct store *s, struct store_trial *row, struct err *e); /* sets id and ask_seq */
int store_trial_update(struct store *s, const struct store_trial *row,
                       struct err *e); /* by id: all but study, number, proposal, ask_seq */
/* In the order of their numbers; number 0: all, else that one. */
int store_trials(struct store *s, int64_t study, int number, int (*row)(void *ctx, const struct store_trial *r),
                 void *ctx, struct err *e);
/* The lowest-numbered finished trial with the same hyper text, effective text (NULL: any) and epochs; 0 none. */
int store_trial_twin(struct store *s, int64_t study, const char *hyper, const char *effective, int epochs,
                     int *out_number, struct err *e);

/* --- attempts: numbered 1, 2, … within their trial --- */
struct store_attempt {
    int64_t id, trial;
    int number;
    char *state;   /* "starting" (before the go byte), "running", "ended" */
    char *outcome; /* outcome_name() once ended; NULL before */
    char *launch;  /* the tag */
    char *boot_id; /* of the launcher; NULL until it is known */
    int64_t pid, start_ticks;
    char *argv;   /* JSON array text */
    char *app_id; /* what its place calls it; NULL */
    int64_t started_ms, ended_ms;
    uint64_t log_offset; /* everything before it has been accounted; a line begins here */
    int exit_code;       /* of what was launched, 128 + signal; -1: not known */
    char *cause;         /* one line; NULL */
    char *resumed_from;  /* the checkpoint's model file; NULL: from the beginning */
    int first_epoch;     /* the first one it trains, 1 from the beginning */
    char *setting;       /* JSON object text: the effective setting it was launched with; NULL: not known */
    double startup_s;    /* from the submission to the first iteration */
    int session;         /* the number of the warm session that served it; 0: a submission of its own */
    double cores;        /* CPUs that were in force last */
    int node;            /* the machine of its launcher: 0 is the driver's, the config's follow */
    char *place;         /* the host on which it ran; NULL: this machine, or a cluster */
    int ends_at;         /* the epoch at whose end the search wants it ended; 0: it does not */
    char *ends_as;       /* outcome_name() of that end; NULL */
    int64_t
        started_boot_ms; /* as started_ms, since the machine was started (boot_id), which no clock that is set changes; 0: not known */
};
void store_attempt_done(struct store_attempt *row);
int store_attempt_copy(struct store_attempt *out, const struct store_attempt *row);
int store_attempt_add(struct store *s, struct store_attempt *row, struct err *e); /* sets id and number */
int store_attempt_update(struct store *s, const struct store_attempt *row, struct err *e);
int store_attempts(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_attempt *r), void *ctx,
                   struct err *e);

/* What the wall clock was taken to show at this start of the machine (boot_id), by the study's first attempt since. 1 found, 0 none. */
int store_study_base(struct store *s, int64_t study, const char *boot_id, int64_t *out_ms, struct err *e);

/* --- epochs: one row per (trial, epoch), a later attempt or a recovery replaces it --- */
struct store_epoch {
    int64_t trial;
    int epoch;
    int attempt;                   /* the attempt's number */
    double accuracy, loss, metric; /* loss: the validation's, or the last iteration's where none is printed */
    double seconds; /* from the previous epoch's end (or the first iteration's begin) to its last iteration */
    double records;
    int64_t iterations;
    double learning_rate;
    int64_t end_ms; /* the log's stamp */
};
int store_epoch_put(struct store *s, const struct store_epoch *row, struct err *e);
int store_epochs(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_epoch *r), void *ctx,
                 struct err *e);

/* The best metric that any trial of the study had at this epoch; NAN: none. */
int store_best_at(struct store *s, int64_t study, int epoch, bool maximise, double *out, struct err *e);

/* The best metric that a trial of the study which is finished, paused or stopped told at any epoch. Of equals the first. 1 found, 0 none. */
struct store_seen {
    int trial, epoch;
    double metric;
};
int store_best_seen(struct store *s, int64_t study, bool maximise, struct store_seen *out, struct err *e);

/* --- the processes of an attempt that is a gang, in their order: where each was launched, and by what it is found again --- */
struct store_member {
    int64_t trial;
    int attempt, number; /* the attempt's number; its own, from 0 */
    char *role;
    int index;   /* within its role */
    int node;    /* as an attempt's */
    char *place; /* likewise */
    char *launch;
    char *boot_id;
    int64_t pid, start_ticks;
    int port;
};
int store_member_put(struct store *s, const struct store_member *row, struct err *e);
int store_members(struct store *s, int64_t trial, int attempt, int (*row)(void *ctx, const struct store_member *r),
                  void *ctx, struct err *e);

/* --- checkpoints that a trial told of: one row per (trial, epoch), the newest first --- */
struct store_checkpoint {
    int64_t trial;
    int epoch;   /* at whose end it stands */
    int attempt; /* the attempt's number */
    char *path;
};
int store_checkpoint_put(struct store *s, const struct store_checkpoint *row, struct err *e);
int store_checkpoint_forget(struct store *s, int64_t trial, int epoch, struct err *e);
int store_checkpoints(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_checkpoint *r),
                      void *ctx, struct err *e);

/* --- what a trial came to, by the names of the study's metrics and constraints: one row of each name, the newest --- */
struct store_result {
    int64_t trial;
    char *name;
    double value; /* NAN: absent */
};
int store_result_put(struct store *s, const struct store_result *row, struct err *e);
int store_results(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_result *r), void *ctx,
                  struct err *e);
int store_results_copy(struct store *s, int64_t trial, struct err *e); /* from the trial whose result it took */

/* --- what the search was told, in order; asks (trials.ask_seq) and tells share one counter per study, so that a search whose state is not
 * stored is asked and told again exactly as it was --- */
struct store_tell {
    int64_t seq;
    uint64_t proposal;
    int epoch;
    double value; /* NAN: failed */
    bool done;
    int kind; /* 1 + enum told_kind; STORE_TELL_RESUME; 0: not kept, of a version before schema 13 */
    double seconds, joules, start_seconds; /* NAN: not known */
};
/* No tell: the search was asked, and went on with the paused trial of this proposal. */
enum { STORE_TELL_RESUME = 100 };
int store_tell_add(struct store *s, int64_t study, struct store_tell *t, struct err *e); /* sets seq */
int store_tells(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_tell *t), void *ctx,
                struct err *e);

/* --- the state of the search as bytes (search/search.h), replaced in the transaction of what it was asked or told. Studies of
 * versions before schema 8 have none until then, and are asked and told again. --- */
int store_search_put(struct store *s, int64_t study, const void *bytes, size_t len, struct err *e);
int store_search_get(struct store *s, int64_t study, struct buf *out, struct err *e); /* 1, 0 none */

/* --- decisions, for `show --decisions`: an append-only story --- */
struct store_decision {
    int64_t seq;
    int trial;           /* number, 0: the study */
    double t_s;          /* since the study was created */
    const char *kind;    /* "propose", "launch", "retry", "copy", "finish", "fail", … */
    const char *setting; /* JSON text, NULL: none */
    const char *reason;
};
int store_decision_add(struct store *s, int64_t study, const struct store_decision *d, struct err *e); /* picks seq */
int store_decisions(struct store *s, int64_t study, int trial, int (*row)(void *ctx, const struct store_decision *d),
                    void *ctx, struct err *e); /* trial 0: all */

/* --- the tuner's log (core/tuner_log.h): all that the study's policy was told, in chunks of whole lines --- */
int store_tuner_log_add(struct store *s, int64_t study, const char *text, struct err *e);
int store_tuner_log(struct store *s, int64_t study, int (*row)(void *ctx, const char *text), void *ctx, struct err *e);

#endif
