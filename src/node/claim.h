/* One helper at a time for a launch on this machine, and the newest wins.
 *
 * A driver that was killed may leave its helper behind (over ssh, until the connection is missed), with the masks still narrow; the
 * helper of the driver that takes over would find those, and give those back. So whoever has a launch listens on the abstract
 * socket "pipetune-serve-UID-TAG"; a newcomer of the same uid that finds it taken sends TERM to who listens, which makes that one give
 * everything back, and waits until the name is free. */
#ifndef NODE_CLAIM_H
#define NODE_CLAIM_H

#include "base/err.h"

/* *out gets the descriptor that holds the claim, to be closed once everything was given back; -1 when the name cannot be had for a
 * reason that does not matter (no such sockets here, or somebody of another uid plays with it). -EBUSY: the other does not end. */
int claim_take(const char *tag, int *out, struct err *e);

#endif
