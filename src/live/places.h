/* Where trials run, and that what they are given is theirs: the ledger of room (core/rooms), with the CPUs of this machine leased among
 * all drivers (base/lease).
 *
 * In local mode what a trial has no other driver gives to its own, and what another has is not counted here. A driver that finds none
 * free asks, as a guest of those who have them; who is asked keeps no more than its share, the CPUs divided by drivers, and lets go of
 * the rest as soon as its trials can do with fewer. One that gets none in time uses those of others, and both know it. In other modes
 * the helpers choose the CPUs, and lease them: then none are known here by number.
 *
 * Other hosts that trials are placed on are machines of the ledger, too, by their numbers as nodes; there the helpers lease the CPUs. */
#ifndef LIVE_PLACES_H
#define LIVE_PLACES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/lease.h"
#include "core/rooms.h"
#include "core/setting.h"

struct nodes;
struct places;

/* `local`: trials run on this machine's CPUs, which the helper here names, and on `n_hosts` hosts, closed at first. Keeps `nodes`, which is NULL only
 * where not `local`. -ENOMEM. */
int places_open(struct places **out, const struct offer *offer, bool local, const struct nodes *nodes, size_t n_hosts,
                struct err *e);
void places_close(struct places *p); /* gives every CPU back. NULL is fine */

const struct rooms *places_rooms(const struct places *p);

/* Is it known which CPUs there are, or clear that it will not be? */
bool places_is_ready(const struct places *p);

/* Looks what other drivers have and want; to be called at every tick. */
void places_look(struct places *p);

/* None is free for a trial that is yet to start: asks those who have them. `who`: one of them. */
void places_ask(struct places *p, char who[LEASE_WHO_MAX]);

/* Those who were asked: their pids, the same one as often as it has CPUs; 0: it cannot be told. Returns how many. */
int places_holders(const struct places *p, pid_t *out, int most);

/* The trial is to have so many CPUs from now on, its own or, where there are none, shared ones. How many, in out[]; 0: the helpers choose,
 * or it is not known yet which there are. -ENOMEM. */
int places_assign(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS], struct err *e);

/* As places_assign(), but it never shares: fewer than are wanted, or none, where another driver was quicker. */
int places_take(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS]);

/* … or it is to share so many from now on, whatever is free. */
int places_share(struct places *p, int trial, int want, int out[ROOMS_MAX_CPUS], struct err *e);

/* So much memory is the trial's until it is over. -ENOMEM. */
int places_keep(struct places *p, int trial, double memory_gb, struct err *e);

void places_free(struct places *p, int trial); /* it is over */

/* Trials may be started on this machine now, or not. */
void places_close_node(struct places *p, size_t node, bool closed);

/* None is started there any more. */
void places_lose_node(struct places *p, size_t node);

/* The trial is to be there. -ENOMEM. */
int places_put(struct places *p, size_t node, int trial, struct err *e);

/* Does it fit beside those that run there? */
bool places_fits(struct places *p, size_t node, int trial, struct rooms_want want);

/* CPUs that the trial could have where it is: its own and the free ones, less what other drivers ask for. 0: not known yet, or none; not in
 * local mode. */
int places_room(struct places *p, int trial);

/* The CPUs there are where it is, as far as is known; 0: not known. */
int places_cpus(struct places *p, int trial);

/* So many CPUs of this machine our trials may have together; 0: as many as there are. Trials that run keep what they have until they are given
 * anew. */
void places_limit(struct places *p, int cpus);

/* CPUs of this machine that the trial has of its own. */
int places_held(const struct places *p, int trial);

/* Has another driver any CPU of this machine, or may it? */
bool places_is_divided(const struct places *p);

/* Is there a CPU for a trial that is to start while none of ours runs? Where it is not known which there are, too. */
bool places_has_room(const struct places *p, int trial);

/* A trial of ours is over that had CPUs which another driver waits for: for a moment none of ours is to take them. */
bool places_gives_way(const struct places *p);

/* Does the trial use CPUs that others use, too, as far as is known here? */
bool places_is_shared(const struct places *p, int trial, char who[LEASE_WHO_MAX]);

/* Shares CPUs although there are some for it alone now, of a gang (`whole`) for all of it: it is to be given them. */
bool places_may_part(const struct places *p, int trial, bool whole);

/* The CPUs that a trial shares, in out[]; how many, 0: it does not. */
int places_shared(const struct places *p, int trial, int out[ROOMS_MAX_CPUS]);

/* The trial's own CPUs, "0,2", for a launch beside another driver's, or (`held`) wherever it has some; NULL: it may be launched on all.
 * Free it. */
char *places_own_cpus(const struct places *p, int trial, bool held);

#endif
