/* Which CPUs each running trial has, and that they are in force: the sets of this machine (core/place), and the helpers that
 * narrow, widen and measure (live/nodes). */
#ifndef LIVE_ACTUATE_H
#define LIVE_ACTUATE_H

#include <uv.h>

#include "live/nodes.h"
#include "live/study.h"

struct actuate;

/* Called from the loop, never from within a call below. */
struct actuate_ops {
    /* `to` is in force on `cores` CPUs, or `why` says why not. cores 0 without a reason: no process was found yet. */
    void (*applied)(void *ctx, int trial, struct tuner_setting to, int cores, const char *why);
    void (*changed)(void *ctx, const char *tag); /* processes of a launch came or went */
    void (*sampled)(void *ctx, const char *tag, const struct nodes_sample *s);
    void (*metered)(void *ctx, const struct nodes_reading *r); /* NULL: nobody meters */
    void (*note)(void *ctx, const char *text);
};

int actuate_open(struct actuate **out, struct study *s, uv_loop_t *loop, const struct actuate_ops *ops, void *ctx,
                 struct err *e);
void actuate_close(struct actuate *a); /* gives every CPU back. NULL is fine */

/* Keeps CPUs of this machine for a trial that is about to start. */
void actuate_reserve(struct actuate *a, int trial, int slots, struct tuner_setting to);

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

/* CPUs of this machine that the trial could have: its own and the free ones. 0: not known yet. */
int actuate_room(struct actuate *a, int trial);

#endif
