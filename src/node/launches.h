/* Launches that this helper starts for a driver, follows, and tells of. Each is a `pipetune-node exec` in a session of its own, so that it
 * survives its helper and its driver; what there is to know of it lies in its folder, which another helper finds again:
 *
 *   ROOT/TAG/              log, heard, lock, pid, exit: exec.h
 *   ROOT/TAG/work/         where its steps run, with the files that it was given
 *   ROOT/TAG/resume/       what it goes on from
 *   ROOT/TAG/checkpoint/   where it may write checkpoints
 *   ROOT/files/            files that drivers have sent (blobs.h)
 *
 * A launch may be a session, which serves one run after the other, and says so by a mark in what it prints. A run has a folder like a
 * launch's, by its name TAG-tN-A, but for `work`; it has its session's launcher, and ends with it.
 *
 *   ROOT/TAG/session       the tag of the session: its own, or a run's
 *
 * ROOT is ours alone, and nobody who talks to the helper names a path: $XDG_STATE_HOME/pipetune, or ~/.local/state/pipetune. Only
 * processes that are recognised as the launcher of the tag are signalled, or carry the tag and are of our uid. */
#ifndef NODE_LAUNCHES_H
#define NODE_LAUNCHES_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/proc.h"
#include "node/blobs.h"
#include "node/cpus.h"
#include "node/talk.h"

enum {
    LAUNCHES_MAX = 64,
    LAUNCHES_LINE_MAX = 1024, /* that a launcher says before its go */
    LAUNCHES_CHUNK =
        2880, /* bytes of `heard` in one event: with base 64 and the rest it fits what a pipe takes at once */
    LAUNCHES_TICK_MS = 100,
    LAUNCHES_ROOM = 8 << 20, /* bytes that must be free where a launch writes */
};

struct launch {
    char tag[65]; /* "": free */
    int control;  /* its launcher's, until it has its go; -1 */
    int pidfd;    /* -1: it is over, or not followed */
    bool ours;    /* our child, to be waited for */
    pid_t pid;    /* of the launcher */
    char line[LAUNCHES_LINE_MAX];
    size_t len;               /* of what it has said */
    int64_t from, credit;     /* of `heard`: what comes next, and how much of it may */
    int64_t log_size, log_ms; /* of its log, when that was told last */
    struct talk talk;         /* with a session */
};

struct launches { /* zeroed: none */
    char *root;   /* NULL: not asked for yet */
    struct launch v[LAUNCHES_MAX];
    int64_t tick_ms;
    struct blobs blobs;
};

/* What a driver asks to be launched. The lists are base 64 of texts that each end in a NUL. */
struct launch_ask {
    const char *tag;
    int64_t attempt, log_cap; /* 0: as exec has it */
    const char *steps;        /* counted lists, as exec takes them */
    const char *env;          /* NAME=VALUE, beside and before what the helper has; NULL: none */
    const char *keep, *step;  /* texts of lines that are heard (log.h); NULL: none */
    const struct cpus *cpus;  /* that it is held to from its beginning; none: all */
    int64_t memory;           /* bytes that what it runs may take together; 0: as many as there are */
    const char *answer;       /* what its programs are answered that tell of themselves; NULL: they cannot */
    int64_t gang;             /* of so many processes this is one; 0: of none */
    const char
        *mark; /* it is a session, whose socket is at $PIPETUNE_SESSION, and this begins its marks; NULL: it is none */
    const char *files; /* the manifest of what it is given (blobs.h); NULL: nothing */
};

/* What is known of a launch. */
enum launch_state {
    LAUNCH_NONE,    /* there is no such launch */
    LAUNCH_WAITING, /* for its go */
    LAUNCH_RUNNING,
    LAUNCH_ENDED, /* its note tells how */
    LAUNCH_CUT,   /* it ended without a note: its launcher was killed, or never got its go */
};
const char *launch_state_name(enum launch_state s);

struct launch_facts {
    enum launch_state state;
    char boot_id[PROC_BOOT_ID_SIZE]; /* of LAUNCH_RUNNING, and so what follows */
    pid_t pid;
    uint64_t start_ticks;
    int64_t heard, log; /* bytes */
    char note[512];     /* LAUNCH_ENDED: its exit, a line without its end … */
    bool served;        /* it is a run of a session */
    int64_t ago_ms;     /* … and how long ago that was; -1: not known */
};

/* Lets go of all: those without a go end by themselves, others go on. */
void launches_done(struct launches *l);

/* Where all of it lies; NULL: there is no such place. Nothing is made. Free it. */
char *launches_root(void);

/* Is this file here, or is it to be sent? Takes its bytes: as blobs.h has it. */
int launches_have(struct launches *l, const char *hash, int64_t size, bool *out, struct err *e);
int launches_put(struct launches *l, const char *hash, int64_t size, int64_t at, const char *base64, struct err *e);

/* What is in a launch's folder, by names below it: as folder.h has it. */
int launches_list(struct launches *l, const char *tag, const char *name, struct buf *out, struct err *e);
int launches_read(struct launches *l, const char *tag, const char *name, int64_t from, size_t n, struct buf *out,
                  struct err *e);

/* Starts a launcher, which waits for its go; that it is there, or not, is told by launches_take(). -EEXIST: this tag was launched
 * already; -ENOSPC: too many at once, or no room on the disk; -ENOENT: a file was not sent; -EINVAL: what is asked is none; -errno. */
int launches_start(struct launches *l, const struct launch_ask *ask, struct err *e);

/* A folder for a run of this session, which begins when the session is told to serve it. -ESRCH: there is no such session, or it has ended;
 * -EEXIST: it was begun already; -EINVAL: its name is not one of that session's; else as launches_start(). */
struct launch_run {
    const char *tag, *session;
    const char *files; /* the manifest of what it goes on from; NULL: nothing */
};
int launches_run(struct launches *l, const struct launch_run *ask, struct launch_facts *out, struct err *e);

/* Tells what this session says, as soon as it is there, until so many bytes are told in all. -ESRCH: no session of
 * this tag runs. */
int launches_talk(struct launches *l, const char *tag, int64_t credit, struct err *e);

/* Says this to it. -EINVAL: no base 64; as talk_say(). */
int launches_say(struct launches *l, const char *tag, const char *base64, struct err *e);

/* `ports`: of all of its gang, "4001,4002"; NULL: it is of none. -ESRCH: none of this tag waits for it. */
int launches_go(struct launches *l, const char *tag, const char *ports, struct err *e);

/* What there is; that one ends that runs is told from now on. */
int launches_adopt(struct launches *l, const char *tag, struct launch_facts *out, struct err *e);

/* Tells what is heard of it from byte `from` on, as it comes, until so many bytes (`credit`, 0: none) are told; what is before
 * `accounted` is needed no more, and given back to the disk. -ESRCH: there is no such launch. */
int launches_tail(struct launches *l, const char *tag, int64_t from, int64_t credit, int64_t accounted, struct err *e);

/* Tells its processes to end, or (`hard`) kills them. Fine for one that is over. */
int launches_signal(struct launches *l, const char *tag, bool hard, struct err *e);

/* Tells its programs that the trial is to end at the next epoch's end. Fine for one that is over. */
int launches_say_stop(struct launches *l, const char *tag, struct err *e);

/* Removes its folder. -EBUSY: it is not over; fine for one that is not there. */
int launches_forget(struct launches *l, const char *tag, struct err *e);

/* Tells of each launch whose folder is here, in no order. Makes nothing. -errno: not all of them could be seen. */
int launches_each(struct launches *l, void (*each)(void *ctx, const char *tag, const struct launch_facts *f), void *ctx,
                  struct err *e);

/* Removes what drivers have sent (ROOT/files), and ROOT where nothing is in it any more: is that gone? For when no launch runs. */
bool launches_leave(struct launches *l);

/* ROOT, whether it is there or not. NULL: there is no place for it, or memory. */
char *launches_root(void);

/* --- for the loop --- */

/* Adds what is to be waited for; how many. */
size_t launches_fds(const struct launches *l, struct pollfd fds[2 * LAUNCHES_MAX]);
int64_t launches_due(const struct launches *l); /* when to look at files again, ms; INT64_MAX: not at all */

/* The next event, as the members of a line without its braces; false: there is none now. `is_heard`: bytes may be told. */
bool launches_take(struct launches *l, bool is_heard, int64_t now_ms, struct buf *out);

#endif
