/* What each launch is to have, and what its processes were last seen to have, on each node: one table for all launches of a study.
 * It says whom to ask next, decides when what is wanted and what was seen agree, and tells it once; or that it came to no
 * good end, and why. Whoever has the helpers asks and hears them; here is no process and no clock. Pure.
 *
 * Node 0 is this machine. A node is away at first, and whenever its helper is to be started again: it is asked for everything once it
 * is there. One that is lost is not asked any more. */
#ifndef CORE_DESIRED_H
#define CORE_DESIRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/tuner.h"

enum {
    DESIRED_TAG_MAX = 64,
    DESIRED_MAX_CPUS = 4096,
    DESIRED_WHY_MAX = 512,
    DESIRED_WHO_MAX = 96,
    DESIRED_ANSWER_MS = 5000, /* nodes have so long to bring about what is wanted */
};

/* What a launch is to have. */
struct desired_want {
    const char *tag;         /* of the launch; [A-Za-z0-9_-]{1,64} */
    uint64_t id;             /* the caller's: whose it is */
    struct tuner_setting to; /* the caller's: what that setting is called */
    int cores;               /* CPUs, over all nodes together */
    int slots; /* that it was launched with: a node that holds half of them gets half of the CPUs, at least one */
    bool
        local; /* all of them are in the one process tree on `node`; else those of each node's processes say how many it holds */
    size_t node;
    const int *cpus; /* on this machine, those to take the CPUs from, in this order; NULL: all, physical cores first */
    int n_cpus;
    double frequency_khz, power_cap_w; /* 0: left as they are */
};

/* How a launch's processes are measured. */
struct desired_sampling { /* its texts live as long as it is measured */
    int interval_ms;      /* 0: not at all */
    const char *scope;    /* "system", "process", "cgroup", "auto" */
    const char *events;   /* that are counted of the hardware (monitoring/event_choice.h); NULL: all */
    bool local;           /* other nodes than `node` have nothing of it */
    size_t node;
};

/* What one node was last seen to have of a launch. */
struct desired_seen {
    int processes, threads;
    int slots;                         /* that its processes there hold; 0 where there is only the driver */
    int cpus;                          /* how many */
    double frequency_khz, power_cap_w; /* 0: not told */
    char shared[DESIRED_WHO_MAX];      /* who else uses some of the CPUs; "": nobody, or it is not told */
};

/* What is in force over all nodes. */
struct desired_have {
    int cores;                         /* CPUs of the launch's processes that work, over all nodes; 0: none was found */
    int processes;                     /* that carry the tag */
    double frequency_khz, power_cap_w; /* the highest of all nodes; 0: not asked for */
};

enum desired_node { DESIRED_AWAY, DESIRED_THERE, DESIRED_LOST };

struct desired;

/* `names` of the nodes are kept; "" stands before no reason. NULL: memory. */
struct desired *desired_new(const char *const *names, size_t nodes);
void desired_free(struct desired *d); /* NULL is fine */

/* The launch is to have this, in place of what was wanted before; asked for until it is told, once (desired_tell()). What is replaced
 * before that is told no more. -EINVAL: no cores, no slots, too many CPUs; -ENOMEM. */
int desired_set(struct desired *d, const struct desired_want *want, int64_t now_ms, struct err *e);

/* Its processes are to be measured so. -ENOMEM. */
int desired_measure(struct desired *d, const char *tag, const struct desired_sampling *how, struct err *e);

/* It is over: nothing is wanted of it. What was not told yet is, with a reason. */
void desired_drop(struct desired *d, const char *tag);

/* NULL: it is not measured. */
const struct desired_sampling *desired_measures(const struct desired *d, const char *tag);

/* A sample of it has come from this node: is it to be kept? Not of one that is not measured, or not there, nor what comes more often than was
 * asked for, but for a few. */
bool desired_takes_sample(struct desired *d, size_t node, const char *tag, int64_t now_ms);

/* --- what to ask --- */

/* One request to a node that is there; what it points to is valid until the next call of anything here. */
struct desired_ask {
    size_t node;
    const char *tag;
    const struct desired_want *want;    /* to bring into force; NULL: it is about something else */
    uint64_t stamp;                     /* of the want: to be given back with the answer */
    const struct desired_sampling *how; /* to measure; NULL as well: to give back what the launch has */
};
bool desired_next(struct desired *d, struct desired_ask *out); /* false: nobody is to be asked for anything now */

/* --- what is heard --- */

/* `cpus`: that it has, all of which a launch's processes have back when its helper ended (DESIRED_AWAY). */
void desired_node_is(struct desired *d, size_t node, enum desired_node state, int cpus);

/* An answer: `seen`, or NULL and why it was refused; what a node refuses it gives back, and it measures the launch no more. */
void desired_answered(struct desired *d, size_t node, uint64_t stamp, const struct desired_seen *seen, const char *why);

/* The request for it could not be sent. */
void desired_unasked(struct desired *d, size_t node, uint64_t stamp, const char *why);

/* Unasked: processes came or went. */
void desired_changed(struct desired *d, size_t node, const char *tag, const struct desired_seen *seen);

/* It is `now_ms`: who has not answered in time is awaited no more. Nobody listened for the last `held_up_ms`, so that answers may be
 * waiting, and silence is no fault. */
void desired_tick(struct desired *d, int64_t now_ms, int64_t held_up_ms);

/* --- what to tell --- */

struct desired_news {
    bool
        applied; /* what was wanted is in force, or `why` says why it is not (wholly); else: what is in force has changed */
    struct desired_want want; /* of `applied`; without CPUs */
    char tag[DESIRED_TAG_MAX + 1];
    struct desired_have have;
    char why
        [DESIRED_WHY_MAX]; /* "": nothing is missing. Fewer CPUs than wanted, or no process yet, is no reason: `have` says it */
};

/* The next that is to be told, ends of wants before changes; from then on it is told. False: there is nothing. */
bool desired_tell(struct desired *d, struct desired_news *out);

/* Who else uses CPUs that the launch has, and on which node; false: nobody. */
bool desired_is_shared(const struct desired *d, const char *tag, size_t *out_node, char who[DESIRED_WHO_MAX]);

#endif
