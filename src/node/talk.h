/* The words between a session and whoever drives it, by its socket: a helper carries them, and reads none. One that is our own alone is
 * connected to, in the folder where such sockets lie (base/socket_path.h), by the tag of its launch. */
#ifndef NODE_TALK_H
#define NODE_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct talk {
    bool wanted;        /* what it says is to be told */
    int fd;             /* -1: not connected */
    int64_t told, upto; /* bytes that were, and that may be in all */
};
#define TALK_NONE ((struct talk){ .fd = -1 })

void talk_done(struct talk *t); /* the session goes on without us */

/* What it says next, at most `size` bytes and no more than may be told. 0: nothing now, or there is nobody at the socket yet;
 * -EPIPE: it has closed it; -EPERM: it is another user's; -errno. Where it is negative nothing more is wanted. */
ssize_t talk_take(struct talk *t, const char *tag, char *out, size_t size);

/* -ENOTCONN; -ENOBUFS: it reads nothing, and is hung up on; -errno. */
int talk_say(struct talk *t, const char *bytes, size_t n, struct err *e);

#endif
