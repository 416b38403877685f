/* Other hosts as places of trials (live/site.h): the config's nodes, numbered as they are there, from 1. What a launch needs is sent before it
 * begins; what is heard of it, and the checkpoints that it tells of, come into the trial's folder here as if it ran here.
 *
 * A link that breaks ends nothing: what runs there goes on, and is read on when its helper is there again. A host that has not come back after
 * `places.lost_seconds` is given up: what ran there is lost, and is ended if it comes back while this driver is there. One that does not take a
 * launch, since its disk is full or for another reason, is left alone for a while. */
#ifndef LIVE_HOSTS_H
#define LIVE_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "live/nodes.h"
#include "live/plan.h"
#include "live/site.h"

struct hosts;

/* Who has launches there: trials, with the runs of sessions, and the sessions themselves. */
enum hosts_client { HOSTS_TRIALS, HOSTS_SESSIONS, HOSTS_CLIENTS };

/* Called from the loop, perhaps from within hosts_tick(), never from within a site's functions. */
struct hosts_ops {
    /* The host does not take it, or was lost before its go: nothing was started, and it is to be placed anew. */
    void (*unplaced)(void *ctx, uint64_t id, const char *why);
    /* All that will be heard of it has come: to be read now, before `gone`, so that checkpoints that it told of are fetched first. */
    void (*ended)(void *ctx, uint64_t id);
    /* The checkpoint that it told of at this epoch is at `path` here, whole. */
    void (*checkpoint)(void *ctx, uint64_t id, int epoch, const char *path);
    /* What is heard of it cannot be kept. -EFBIG: it is too much, and the launch is to be ended; else the disk here is to blame. */
    void (*failed)(void *ctx, uint64_t id, int rc, const struct err *e);
    void (*note)(void *ctx, const char *text); /* to trials alone */
};

/* Can trials of this plan be placed on other hosts? */
bool hosts_wanted(const struct plan *p);

/* Reads the files that its trials need. Keeps all pointers; of `launcher` `refused` never comes. -EINVAL, -E2BIG, -ENOENT: these cannot be sent. */
int hosts_open(struct hosts **out, uv_loop_t *loop, struct nodes *nodes, const struct plan *p,
               const struct launcher_ops *launcher, const struct hosts_ops *ops, void *ctx, struct err *e);
void hosts_close(struct hosts *h); /* before the nodes; what runs goes on. NULL is fine */

/* To be called at every tick of the driver. */
void hosts_tick(struct hosts *h);

size_t hosts_count(const struct hosts *h); /* NULL: 0 */
const char *hosts_name(const struct hosts *h, size_t node);
size_t hosts_find(const struct hosts *h, const char *name); /* 0: there is none of that name */

/* May a trial be started there now? … and if there is none such, may one take some later? */
bool hosts_takes(const struct hosts *h, size_t node);
bool hosts_may_come(const struct hosts *h);

bool hosts_is_given_up(const struct hosts *h, size_t node); /* it will take none any more */
/* An attempt there (0: on this machine) is over: it has finished or was stopped as it should be, or it failed, was killed or lost, and why. */
void hosts_ended_on(struct hosts *h, size_t node, bool well, const char *why);

int hosts_running(const struct hosts *h, size_t node); /* trials of ours there */

struct site hosts_site(struct hosts *h, size_t node);

/* Sessions are launched by hosts_session_site(), and who does is told by these; of `ops` checkpoints and notes
 * never come. */
void hosts_serve(struct hosts *h, const struct launcher_ops *launcher, const struct hosts_ops *ops, void *ctx);
struct site hosts_session_site(struct hosts *h, size_t node);
bool hosts_serves(const struct hosts *h, size_t node); /* its helper knows sessions */

#endif
