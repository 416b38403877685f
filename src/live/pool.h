/* The warm sessions of a study: applications that stay up and serve one trial after the other. Each is started by a launcher like
 * any trial, with pipetune.d/STUDY/session-N as its folder here; a session outlives its driver and is found again by the
 * next. One on another host is named by session-N/place, "HOST TAG": what else there is to know its helper knows. */
#ifndef LIVE_POOL_H
#define LIVE_POOL_H

#include "live/grant.h"
#include "live/hosts.h"
#include "live/launcher.h"
#include "live/session.h"
#include "live/site.h"
#include "live/study.h"

struct warm {
    uint64_t id;
    int number;
    char *dir, *tag;
    size_t place; /* the node that it is on; 0: this machine */
    struct launcher_ready
        at; /* its launcher: boot id, pid, start time; of one elsewhere that was found again not known */
    struct site_launch launch;
    struct store_attempt row; /* what its place wants to know of it; its texts are of the two above */
    struct session_link *link;
    int parts;                     /* of a cluster's workers; 0: not known */
    int slots, cold;               /* what it was launched with; cold -1: found again, and not known */
    bool running;                  /* its process has been let go */
    bool ready;                    /* it has said hello, and can be told something */
    int protocol;                  /* that it speaks */
    char busy[SESSION_ID_MAX + 1]; /* the run it said it is busy with, when it was met again; "" */
    int trial;                     /* that it serves or is kept for; 0: none */
    bool ending;
    bool over;        /* its process has ended */
    bool not_granted; /* it was ended since it waited for room in vain */
    bool unplaced;    /* its host did not take it, or was lost: that says nothing of the application */
    int log_fd;       /* what is heard of it, read until it says hello; -1: not open */
    struct lines log;
    struct fold fold;
    struct wait wait;
    int64_t waits_ms;         /* monotonic: since when for this */
    int64_t start_ms;         /* so long it took to say hello */
    int64_t idle_ms;          /* monotonic: since when it serves nobody, where it does not */
    int64_t born_ms, kill_ms; /* monotonic; kill_ms 0: it has not been told to end */
};

struct pool;

/* Called from the loop, never from within a call below. */
struct pool_ops {
    void (*hello)(void *ctx, struct warm *w);                                 /* a run can be sent now */
    void (*told)(void *ctx, struct warm *w, const struct session_message *m); /* figures of an epoch of its run's */
    void (*done)(void *ctx, struct warm *w, const struct session_message *m);
    void (*gone)(void *ctx, struct warm *w, const char *why); /* its process has ended; freed after the call */
};

/* Also finds the sessions that an earlier driver left; those say hello when they are connected. `hosts`: where
 * they may be beside this machine; NULL: nowhere. */
int pool_open(struct pool **out, struct study *s, uv_loop_t *loop, struct hosts *hosts, const struct pool_ops *ops,
              void *ctx, struct err *e);
void pool_close(struct pool *p); /* before the hosts; lets go of all; they go on. NULL is fine */

/* One that is up at this place and serves nobody, launched with this cold setting and these slots, or with more that divide `batch` (NAN: nothing
 * to divide); NULL: none. */
struct warm *pool_idle(struct pool *p, size_t place, int slots, int cold, double batch);
/* One that was started ahead of need, and has yet to say hello; NULL: none. */
struct warm *pool_coming(struct pool *p, size_t place, int slots, int cold);
struct warm *pool_by_tag(struct pool *p, const char *tag);
size_t pool_count(const struct pool *p);
struct warm *pool_at(struct pool *p, size_t i);

/* Starts one for this trial, at its place; ahead of need where its number is 0. */
int pool_start(struct pool *p, const struct study_trial *t, struct warm **out, struct err *e);

/* Hands it a run. 0 or -errno: it ends then. To one that is away nothing is said: when it says hello again it is
 * to be handed it. */
int pool_run(struct pool *p, struct warm *w, const struct session_run *r);

/* Tells it to end a run at this epoch's end, which it answers by that run's `done`. 0 or -errno: it was not told. */
int pool_end_run(struct warm *w, const char *run, int epoch);
bool pool_hears_end(const struct warm *w); /* it does; those of earlier versions only end as a whole */

/* Why it ended, by what it printed between trials; "" when that does not tell. */
void pool_last_words(const struct warm *w, char text[256]);

/* Tells it to end: politely, or (`hard`) by KILL. */
void pool_end(struct pool *p, struct warm *w, bool hard);

/* Ends what has been told to end and does not; one that never says hello. */
void pool_tick(struct pool *p, int64_t now_ms);

#endif
