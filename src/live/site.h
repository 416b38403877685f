/* Where an attempt's processes are started, met again and ended, as a row of functions for each kind of place: this machine, whose row is
 * live/site_here, hosts, whose row is live/hosts, and a batch system's jobs, whose row is live/slurm. Who has started something by one asks no further which it is. */
#ifndef LIVE_SITE_H
#define LIVE_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "base/err.h"
#include "core/rooms.h"
#include "core/sched.h"
#include "live/launcher.h"
#include "live/session.h"
#include "store/store.h"

struct site_row;

/* A place. */
struct site {
    const struct site_row *row;
    void *own;
    const char *name; /* of a host; NULL: this machine */
    size_t node;      /* its number among them; 0: this machine */
};

/* One launch. */
struct site_launch {
    const struct site_row *row; /* NULL: none that could be spoken to */
    void *own;                  /* NULL: it is over, or is not known by more than what the store says of it */
};

/* What of the trial's own folder its programs find elsewhere. NULL: where it is here. */
struct site_paths {
    char *checkpoint; /* the folder for checkpoints */
    char *resume;     /* what it goes on from */
    char *library;    /* the folder of pipetune.py */
    char *session;    /* what a session is told of its socket */
};
void site_paths_done(struct site_paths *p);
#define AUTO_PATHS __attribute__((cleanup(site_paths_done)))

/* What is to be started. Zeroed: empty. */
struct site_order {
    struct launcher_words words; /* borrowed, but for what follows; `tell` is the place's business */
    char *tell, *answer;         /* owned */
    char *resume;                /* owned: what it goes on from, here: a file or folder; NULL: nothing */
    char *resume_state;          /* owned: the file that belongs to that, beside it; NULL: there is none */
    struct app_steps steps;      /* owned */
    char *session;               /* owned: it is a run of the session of this tag; NULL: a launch */
    struct rooms_want room;      /* what it takes of its machine */
};
void site_order_done(struct site_order *o);
#define AUTO_ORDER __attribute__((cleanup(site_order_done)))

/* How its place says that it ended. */
struct site_end {
    enum outcome outcome;
    bool memory;     /* it took more than it was given */
    const char *why; /* valid until the launch is let go of */
};

struct site_row {
    bool elsewhere; /* what its launcher notes of the time is of another machine's clock */
    /* What programs of this launch are to be told of their folder. -ENOMEM. */
    int (*paths)(void *site, const char *tag, const char *resume, struct site_paths *out, struct err *e);
    /* `ready`, `refused`, `gone` come with this id (live/launcher.h). -errno. */
    int (*start)(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e);
    /* -ESRCH: it is over, or was never there. */
    int (*adopt)(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e);

    /* --- of a launch; `own` may be NULL --- */
    int (*go)(void *own, const char *ports); /* as launcher_go() */
    void (*signal)(void *own, const struct store_attempt *row, bool hard);
    void (*say_stop)(void *own, const struct store_attempt *row);
    void (*accounted)(void *own, uint64_t offset); /* what was heard before it is needed no more */
    /* It told of a checkpoint at `path`; NULL: it has ended an epoch, and tells of none, but writes them to its folder. 1: the place tells again when it is in the trial's folder; 0: it is there. */
    int (*checkpoint)(void *own, int epoch, const char *path, struct err *e);
    bool (*away)(void *own); /* it cannot be heard now: that it is silent says nothing */
    bool (*boot_id)(void *own, char out[PROC_BOOT_ID_SIZE]); /* of its machine, now. False: not known */
    /* A session: its words, as session_link_open() brings them. NULL: there are none at such places. */
    int (*talk)(void *own, uv_loop_t *loop, const char *tag, const struct session_ops *ops, void *ctx, uint64_t id,
                struct session_link **out, struct err *e);
    bool (*owes)(void *own); /* something that it told of is still on its way here. NULL: all is here */
    /* By how much its stamps are ahead of our clock. False: not known yet. */
    bool (*ahead)(void *own, int64_t *out_ms);
    const char *(*lost)(void *own); /* why nothing more will be heard of it; NULL: it will */
    /* What its place knows of its end, over what its launcher noted. False: nothing; NULL: never anything. */
    bool (*end)(void *own, struct site_end *out);
    bool (*is_one_of_many)(
        void *own); /* could another place take it? So what fails here says little of others. NULL: no */
    void (*let_go)(void *own, bool over); /* `over`: its end is stored, and what is left of it at its place may go */
};

/* This machine: what is started by it is the loop's, and told by these with `ctx`. */
struct site_here {
    uv_loop_t *loop;
    const struct launcher_ops *ops;
    void *ctx;
};
extern const struct site_row site_here_row;

/* For rows whose launches work in the trial's own folder, by our clock, and are never given up: all that is heard is read where it is. */
int site_own_paths(void *site, const char *tag, const char *resume, struct site_paths *out, struct err *e);
void site_own_accounted(void *own, uint64_t offset);
int site_own_checkpoint(void *own, int epoch, const char *path, struct err *e);
bool site_own_ahead(void *own, int64_t *out_ms);
const char *site_own_lost(void *own);

#endif
