/* A gang: an attempt of several processes, on this machine and others, each a launch of its own by the row of its place (live/site.h). To who starts
 * and follows attempts it looks like one launch: it is ready when all are, all get their go or none, and it is gone when none is left.
 *
 * One of the processes is the one that tells: its folder is the trial's own, what it prints is what is read, and when it has ended well the others are
 * ended, too: at once when all of its role have, else after a while. One that ends otherwise before that ends them all. The others' folders are TRIAL/members/ROLE-INDEX.
 *
 * struct gangs stands between a driver and its places: it is told what they tell, and passes on what is not of a gang's process. */
#ifndef LIVE_GANG_H
#define LIVE_GANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/app.h"
#include "base/err.h"
#include "live/hosts.h"
#include "live/launcher.h"
#include "live/site.h"
#include "store/store.h"

struct gangs;
struct gang;

struct gang_member {
    struct store_member row;   /* its texts are owned, but the role; pid and what follows are known when it is ready */
    char *dir;                 /* owned: its folder here */
    char *cpus;                /* owned: of this machine, those that it is held to; NULL: all */
    struct nodes_sample *held; /* owned: measured of it, and not told yet; NULL: nothing */
    int cores;                 /* CPUs that it takes; 0: none of its own; -1: as many as the setting says */
};

/* Keeps `launcher`, `hosts` and `ctx`, who are told of gangs by the ids of these. -ENOMEM. */
int gangs_open(struct gangs **out, const struct launcher_ops *launcher, const struct hosts_ops *hosts, void *ctx,
               struct err *e);
void gangs_close(struct gangs *all); /* after all gangs. NULL is fine */

/* To be given to the places, with the struct gangs as ctx. */
extern const struct launcher_ops gangs_launcher_ops;
extern const struct hosts_ops gangs_hosts_ops;

/* To be called at every tick of the driver: `now_ms` by a clock that only goes forward. NULL is fine. */
void gangs_tick(struct gangs *all, int64_t now_ms);

/* The processes of an attempt, whose folder is `dir`; none is started. Their roles are borrowed. NULL: memory. */
struct gang *gang_new(struct gangs *all, const struct app_gang *shape, int64_t trial, int attempt, const char *dir);
void gang_free(struct gang *g); /* lets go of what it has not let go of. NULL is fine */

size_t gang_count(const struct gang *g); /* NULL: 0 */
size_t gang_teller(const struct gang *g);
struct gang_member *gang_member(const struct gang *g, size_t k);

/* Starts all of them, each at its site by its order. What was started when one could not be is let go of with the gang. -errno. */
int gang_start(struct gang *g, uint64_t id, const struct site *sites, struct site_order *orders,
               struct site_launch *out, struct err *e);

/* Goes on with one whose rows say what an earlier driver started. sites[k].row NULL: that place is not there any more. Those that are not found have
 * ended, and so the others are, or the gang is gone at the next tick. -ENOMEM. */
int gang_adopt(struct gang *g, uint64_t id, const struct site *sites, const struct store_attempt *row,
               struct site_launch *out, struct err *e);

/* Of which it ended, when it is gone: one that was lost, else one that was killed by others, else the first that failed. NULL: the one that tells, or
 * `g` is NULL. */
const struct gang_member *gang_blamed(const struct gang *g);

bool gang_is_gone(const struct gang *g, size_t k);

/* What was measured of process k: *out is what all of the gang on its machine come to. False: it is told with the next sample of another one there. In
 * gang_sample.c. */
bool gang_sample(struct gang *g, size_t k, const struct nodes_sample *s, struct nodes_sample *out);

/* What is heard of those that do not tell is needed no more. */
void gang_forget_heard(const struct gang *g);

#endif
