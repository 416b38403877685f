/* Which CPUs each running trial has, and that they are in force: the sets of this machine (core/place), and the helpers that
 * narrow, widen and measure (live/nodes).
 *
 * In local mode the CPUs of this machine are leased (base/lease): what a trial has no other driver gives to its own, and what
 * another has is not counted here. A driver that finds none free asks, as a guest of those who have them; who is asked keeps no
 * more than its share, the CPUs divided by drivers, and lets go of the rest as soon as its trials can do with fewer. One that
 * gets none in time uses those of others, and both know it. In other modes the helpers choose the CPUs, and lease them. */
#ifndef LIVE_ACTUATE_H
#define LIVE_ACTUATE_H

#include <uv.h>

#include "base/lease.h"
#include "live/nodes.h"
#include "live/study.h"

struct actuate;

/* Called from the loop, never from within a call below. */
struct actuate_ops {
    /* `to` is in force on `cores` CPUs, or `why` says why not. cores 0 without a reason: no process was found yet. */
    void (*applied)(void *ctx, int trial, struct tuner_setting to, int cores, const char *why);
    void (*changed)(void *ctx, const char *tag,
                    int cores); /* processes of a launch came or went: so many CPUs are in force */
    void (*sampled)(void *ctx, const char *tag, const struct nodes_sample *s);
    void (*metered)(void *ctx, const struct nodes_reading *r); /* NULL: nobody meters */
    void (*note)(void *ctx, const char *text);
};

int actuate_open(struct actuate **out, struct study *s, uv_loop_t *loop, const struct actuate_ops *ops, void *ctx,
                 struct err *e);
void actuate_close(struct actuate *a); /* gives every CPU back. NULL is fine */

/* Is it known which CPUs there are, or clear that it will not be? */
bool actuate_is_ready(const struct actuate *a);

/* Looks what other drivers have and want; to be called at every tick. */
void actuate_look(struct actuate *a);

/* None is free for a trial that is yet to start: asks those who have them. `who`: one of them. */
void actuate_ask(struct actuate *a, char who[LEASE_WHO_MAX]);

/* Is there a CPU for a trial that is to start while none of ours runs? Where it is not known which there are, too. */
bool actuate_has_room(const struct actuate *a, int trial);

/* Does the trial use CPUs that others use, too? `tag`: of its processes, for which other modes' helpers know it; NULL: it has none. */
bool actuate_is_shared(const struct actuate *a, int trial, const char *tag, char who[NODES_WHO_MAX]);

/* Shares CPUs although there are some for it alone now: it is to be applied again. */
bool actuate_may_part(const struct actuate *a, int trial);

/* Has another driver any CPU of this machine? */
bool actuate_is_divided(const struct actuate *a);

/* The trial's own CPUs, "0,2", for a launch beside another driver's; NULL: it may be launched on all. Free it. */
char *actuate_own_cpus(const struct actuate *a, int trial);

/* Keeps CPUs of this machine for a trial that is about to start. -ENOMEM. */
int actuate_reserve(struct actuate *a, int trial, int cores, struct err *e);

/* Gives the trial the CPUs of this setting, which its processes (those that carry `tag`) are then held to. A packed trial's set
 * is disjoint from those of others. */
int actuate_apply(struct actuate *a, int trial, const char *tag, int slots, struct tuner_setting to, struct err *e);

/* Measures the processes that carry `tag`, as the config's "monitoring" says, until they are forgotten. */
int actuate_sample(struct actuate *a, const char *tag, const struct nodes_sampling *how, struct err *e);

/* Reads meters on every node from now on (nodes_meter()). */
int actuate_meter(struct actuate *a, const struct nodes_metering *how, struct err *e);

/* The trial is over. `tag`: its processes get all CPUs back; NULL: they are a session's, and the next trial says. */
void actuate_release(struct actuate *a, int trial, const char *tag);

/* The processes that carry this tag are gone. */
void actuate_forget(struct actuate *a, const char *tag);

/* CPUs of this machine that the trial could have: its own and the free ones, less what other drivers ask for. 0: not known yet, or
 * none; not in local mode. */
int actuate_room(struct actuate *a, int trial);

#endif
