/* A study opened for running: its row and folder, its lock, and search and scheduler as they stood when it was left. */
#ifndef LIVE_STUDY_H
#define LIVE_STUDY_H

#include "core/sched.h"
#include "live/aims.h"
#include "live/plan.h"
#include "live/repeats.h"
#include "search/search.h"
#include "store/store.h"

/* A trial that is not final, kept in memory while it waits or runs. */
struct study_trial {
    struct store_trial row;
    struct point point;
    struct store_attempt *attempt; /* the one that is under way, its owner's; NULL: none is */
    bool end_told;                 /* … it was told to end, and gets no further */
    /* of the next launch, or of the attempt that runs; only where the policy chooses settings */
    struct tuner_setting setting;
    int parts;             /* that its launch divides its slots into; 0: none, or not known */
    size_t place;          /* the node that it is on (live/nodes.h); 0: this machine, or a cluster */
    size_t shuns;          /* the node on which its last attempt ended badly, plus 1; 0: none */
    bool alone;            /* nothing runs beside it there */
    int room;              /* CPUs that it may have */
    bool shared;           /* it uses CPUs that another driver uses, too: what it takes on them says nothing */
    int cores;             /* CPUs that were read back last; 0: none yet */
    char *cpus;            /* of this machine, "0,2": those that it is launched on; NULL: all */
    unsigned refused_cold; /* cold settings (bit by bit) that it has run out of memory under */
    double
        startup_s; /* from the launch to the first iteration, where it could be relaunched from a checkpoint; else 0 */
};

/* A point that somebody asks for, by the request. */
struct study_added {
    int64_t request;
    struct point point;
};

enum { STUDY_WHY_MAX = 512 };

struct tuning;
struct profiles;
struct reuse;
struct energy;
struct publish;
struct writer;

struct study {
    struct plan *plan; /* what its cluster refuses is noted in its offer */
    struct store *store;
    int64_t id;
    int64_t created_ms;
    int64_t
        base_ms; /* what the wall clock showed when the machine was started, as it was set when the study was opened */
    int64_t story_ms; /* the same for its story, as the first driver since then had it */
    char *name;
    char *dir; /* pipetune.d/NAME, absolute */
    int lock_fd;
    struct search search;
    struct sched sched;
    struct aims aims;
    struct repeats repeats;
    struct study_added *added; /* asked for, and not yet trials; the first of them are the next trials there are */
    size_t n_added, cap_added;
    struct study_trial **open_trials; /* not final, by number */
    size_t n_open, cap_open;
    bool resumed;                  /* it had been begun before */
    bool woken;                    /* the search wants to be asked again; the driver clears it */
    bool ended;                    /* its row says so: finished or failed */
    bool has_metric;               /* a trial has reported it */
    bool has_results;              /* and all that metrics and constraints name besides */
    char no_metric[STUDY_WHY_MAX]; /* none will: the names there are, or that no epochs are told; "" */
    /* Attempts that said, each begun after the one before had ended, that no trial can run here; none completed an epoch since. */
    struct study_doubt {
        int n;
        int64_t since_ms; /* since 1970: when the newest ended */
        size_t place;     /* where that was */
        char cause[32];   /* what it said */
    } doubt;
    /* The driver's, while it runs. */
    struct tuning *tuning;     /* NULL: settings never change */
    struct profiles *profiles; /* NULL: nothing is measured */
    struct reuse *reuse;       /* NULL: nothing is known from earlier studies */
    struct energy *energy;     /* NULL: no meter is read */
    struct publish *publish;   /* NULL: nothing goes to an InfluxDB */
    struct handover *handover; /* NULL: nothing goes to an MLflow server */
    struct writer *writer;     /* of the store: all transactions */
    struct store *reader;      /* another connection, which does not wait for them: it sees what is committed */
};

/* Where the store is: the config's, PIPETUNE_STORE, ./pipetune.db; absolute. NULL: memory. */
char *study_store_path(const char *configured);

/* The folder of a study beside its store. NULL: memory. */
char *study_dir(const char *store_path, const char *name);

/* Takes the lock of a file, which is made; closing the descriptor, or the end of the process, lets it go. -EBUSY: another process has it, *out_holder
 * (0: it cannot be told). */
int study_lock_file(int *out_fd, const char *path, pid_t *out_holder, struct err *e);

/* Who has it; 0: nobody; -1: it is another user's, and cannot be told. */
pid_t study_lock_holder(const char *path);

/* Takes the lock of a study's folder, which is made; closing the descriptor lets it go. -EBUSY: a driver runs the study (its pid). */
int study_lock(int *out_fd, const char *dir, const char *name, struct err *e);

/* Is the study of this plan in the store with another config? -EEXIST, as study_open() says it; creates nothing. */
int study_compare(struct plan *plan, struct err *e);

/* The pid of the driver that holds the study's lock; 0: none; -1: it is another user's study, and who runs it cannot be told. */
pid_t study_driver(const char *dir);

/* An ended study has more to do: its row says "running" again. In the caller's transaction; s->ended is for the caller to clear when
 * that is committed. */
int study_reopen(struct study *s, struct err *e);

/* Opens or creates the study that the plan describes; `again` makes NAME@2, @3, … instead. Errors: -EEXIST the stored config
 * differs (names the keys), -EBUSY another driver runs it (names its pid), and those of the store. `plan` must outlive it. */
int study_open(struct study *out, struct plan *plan, bool again, struct err *e);

/* Does the plan's config contradict itself (config_check())? One that has begun goes on as it is. Creates nothing. */
int study_check(const struct plan *plan, struct err *e);

void study_close(struct study *s);

/* What the search answered: a new trial's row and point, or a paused one that is gone on with (borrowed), or none of both. Zeroed: nothing. */
struct study_asked {
    struct store_trial row;
    struct point point;
    struct study_trial *again;
};

/* Asks the search once and puts what it proposes, with the state that it is in then, into the store, inside the caller's transaction. Where it
 * proposes nothing, now or any more, the scheduler knows that. */
int study_ask(struct study *s, struct study_asked *out, struct err *e);

/* That is committed, and what it is made of released. 1: *out is the trial; of a new one *out_copy is the number of the finished trial whose
 * result it takes, 0 when it must be run (it may already be final, and is to be dropped then). 0: it was no proposal. */
int study_take(struct study *s, struct study_asked *asked, struct study_trial **out, int *out_copy, struct err *e);

/* The folder of a warm session. NULL: memory. */
char *study_session_dir(const struct study *s, int session);

/* The effective setting of the trial's next launch. */
struct setting study_setting(const struct study *s, const struct study_trial *t);

/* Slots of the trial's next launch, as far as is known now; -ENODEV, -ERANGE: it cannot be launched. */
int study_slots(const struct study *s, const struct study_trial *t, struct err *e);

/* The cluster did not grant this: noted with the study, never asked for again, now or by a later driver. 1; 0: there is no room for
 * another note. In a transaction of the caller's, if there is one. */
int study_refuse(struct study *s, int trial, struct layout_ask ask, const char *why, struct err *e);

/* A trial that was to be started cannot be launched here: it is infeasible, and final. study_put_given_up() stores that, inside the caller's
 * transaction; when it is committed, the scheduler is to be told. */
int study_give_up(struct study_trial *t, const char *why, struct err *e);
int study_put_given_up(struct study *s, const struct study_trial *t, struct err *e);

struct study_trial *study_trial(struct study *s, int number); /* NULL when it is final or unknown */

/* Tells the search of this trial (told.id and told.joules are filled in here), and stores that and the state it is in then, inside the caller's
 * transaction. */
int study_tell(struct study *s, const struct store_trial *t, struct told told, struct search_answer *out,
               struct err *e);

/* The study has ended and will not go on with this paused trial: it is stopped, and final. */
int study_stop(struct study *s, struct study_trial *t, struct err *e);

/* "after 3 epochs: …". */
void study_put_why(char text[SEARCH_WHY_MAX], int epochs, const char *why);

/* Somebody wants a trial that does not run to be gone on with no more: stored inside the caller's transaction. When that is committed the scheduler
 * is to be told, and the trial to be dropped. */
int study_put_stop(struct study *s, struct study_trial *t, const char *why, struct err *e);

/* Somebody wants this point to be tried: it is the next new trial, of which the search is not told. The request is answered in the transaction
 * that makes it. -ENOMEM. */
int study_add_point(struct study *s, int64_t request, const struct point *p);

/* What has failed (`number` 0: all that did, after being launched) is to be tried again: what became of its attempts so far is forgiven, inside the
 * caller's transaction. Which: *out_numbers, the caller's. */
int study_forgive(struct store *s, const struct store_study *study, int number, int **out_numbers, size_t *out_n,
                  struct err *e);

/* The same while the study runs; when that is committed, study_take_again() of each. */
int study_put_retry(struct study *s, int number, int **out_numbers, size_t *out_n, struct err *e);
int study_take_again(struct study *s, int number, struct err *e);

/* Forgets a trial that became final. */
void study_drop(struct study *s, int number);

/* Notes a decision, inside the caller's transaction if there is one. */
int study_decide(struct study *s, int trial, const char *kind, const char *setting, struct err *e, const char *reason,
                 ...) __attribute__((format(printf, 6, 7)));

/* How many trials may run at once. */
int study_parallel(const struct plan *p);

/* Trials at most; 0: until the search ends by itself. */
int study_max_trials(const struct config *c, const struct search *search);

/* Trials that the search may still propose, or that are repeats to come, as far as that is known. */
uint64_t study_unasked(const struct study *s);

/* Milliseconds since 1970. */
int64_t study_now_ms(void);

/* The same for durations: goes on from where it was when the study was opened, whatever the wall clock is set to. */
int64_t study_clock_ms(const struct study *s);

/* What stands for 1970 on the clock of this study's story, which clock_boot_ms() is added to: the same for all its drivers as long as the
 * machine runs, whatever the wall clock is set to in between. */
int study_story_base(struct store *s, int64_t study, int64_t *out_ms, struct err *e);

#endif
