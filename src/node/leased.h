/* Which CPUs of this machine each launch has, where nobody else names them: those that no process of any study has (base/lease), as far
 * as there are any. What is too few is made up of CPUs that others have, from the end of the order, those with the fewest users
 * first; that they are shared is known to both sides. A lease lasts as long as its launch has the CPU, and dies with this process. */
#ifndef NODE_LEASED_H
#define NODE_LEASED_H

#include <stdbool.h>

#include "base/lease.h"
#include "node/cpus.h"
#include "node/members.h"

struct leased { /* zeroed: nobody has anything */
    struct leases *names;
    struct mask has[MEMBERS_TAGS_MAX];
};

/* -ENOMEM. */
int leased_open(struct leased *out);
void leased_close(struct leased *l); /* all are free for others; fine for one that is zeroed */

/* The launch has `n` CPUs of `order` from now on, which has as many, in `out`; what it had and is not among them goes back. */
void leased_take(struct leased *l, int tag, const struct cpus *order, int n, struct cpus *out);

/* It has none any more. */
void leased_drop(struct leased *l, int tag);

/* Hears who came and went. Before it the answers below are those of the last time. */
void leased_poll(struct leased *l);

/* Does anybody else use a CPU of the launch? Who, then, or "". */
void leased_with(const struct leased *l, int tag, char who[LEASE_WHO_MAX]);

/* Uses CPUs that others have, although there are some of `order` that nobody has: it is to take anew. */
bool leased_may_part(const struct leased *l, int tag, const struct cpus *order);

#endif
