/* Samples launches: at each tick of a launch, what the events counted in its scope and what /proc says of its processes, since the tick
 * before.
 *
 * Ticks are at multiples of the interval from the moment that sampling began, so that being late does not add up; one that was due
 * while nobody looked, or nobody read what is said, is missed: the next sample covers its time and tells how many
 * there were. Beginning measures once and gives no sample.
 *
 * Scope auto: one launch that is sampled alone is measured by all that the machine does; as soon as there are two, each by its own threads.
 * A launch whose scope changes begins anew. Scope cgroup counts no events until there are processes, all of them in one cgroup,
 * and then whatever runs in that. */
#ifndef NODE_SAMPLER_H
#define NODE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ticker.h"
#include "monitoring/event_choice.h"
#include "monitoring/features.h"
#include "monitoring/perf_ops.h"
#include "monitoring/reading.h"
#include "node/members.h"

enum { SAMPLER_INTERVAL_MIN_MS = 100, SAMPLER_INTERVAL_MAX_MS = 60000 };

enum sampler_scope { SAMPLER_AUTO, SAMPLER_SYSTEM, SAMPLER_CGROUP, SAMPLER_PROCESS, SAMPLER_SCOPES };

/* "auto", "system", "cgroup", "process"; -1: none of them. */
const char *sampler_scope_name(enum sampler_scope scope);
int sampler_scope_find(const char *name);

struct sample {
    int tag;                    /* its number in struct members */
    enum sampler_scope scope;   /* what was measured: never SAMPLER_AUTO */
    double t_ms, dt_ms;         /* when the interval ended, since 1970; how long it was */
    uint64_t missed;            /* ticks between the sample before and this one */
    struct reading v[FEATURES]; /* those of FEATURE_LOG absent */
};

struct samplers;

struct samplers_on { /* what it points at must outlive the samplers */
    const struct perf_ops *ops;
    const char *sysfs, *proc; /* "/sys", "/proc" */
    int fds_max;              /* descriptors that may be open for events at once */
    int64_t (*now_ns)(void);  /* samplers_clock(), or a test's */
};

/* CLOCK_MONOTONIC. */
int64_t samplers_clock(void);

/* Resolves the events. -ENOMEM, -EMFILE, -ENFILE. */
int samplers_open(struct samplers **out, const struct samplers_on *on, struct err *e);
void samplers_close(struct samplers *s);

struct samplers_how { /* to sample a launch */
    int interval_ms;
    enum sampler_scope scope;
    struct event_choice events; /* those that are not chosen are absent from its samples */
};

/* Begins, or begins anew, with the processes as `m` has them. -ENOMEM: it is not sampled. */
int samplers_set(struct samplers *s, int tag, const struct samplers_how *how, const struct members *m, struct err *e);

/* Ends; fine for one that is not sampled. */
void samplers_drop(struct samplers *s, int tag, const struct members *m);

/* When the next tick is due, by now_ns(); INT64_MAX: never. */
int64_t samplers_due(const struct samplers *s);

/* The sample of one tick that is due; false: there is none (any more). `heard` false: nobody would read it, so it is missed. */
bool samplers_take(struct samplers *s, const struct members *m, bool heard, struct sample *out);

#endif
