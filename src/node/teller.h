/* The socket over which the programs of an attempt tell of themselves (app/tell.h): the launcher's, since that lives exactly as long as
 * they do. What is told goes into `heard` (node/log.h), behind TELL_MARK, and so the way of what is printed: a driver that is killed
 * reads on at its offset, and nothing is lost or counted twice. A line that cannot be written yet, because the disk is full, stays in
 * its client's buffer or in the socket, where it holds up who tells. */
#ifndef NODE_TELLER_H
#define NODE_TELLER_H

#include <poll.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/log.h"

enum { TELLER_CLIENTS_MAX = 16, TELLER_FDS = 1 + TELLER_CLIENTS_MAX }; /* more clients wait until one has gone */

struct teller {
    const char *path, *answer; /* of the socket; to a hello; NULL: closed */
    struct log *log;
    int fd;
    struct teller_client {
        int fd; /* -1: free */
        bool over;
        struct buf in;
    } clients[TELLER_CLIENTS_MAX];
    bool stop; /* the trial is to end at the next epoch's end */
};

/* Binds the socket, mode 0600, in the place of one that a killed launcher left. `path`, `answer` and `log` are kept. -ENAMETOOLONG,
 * -errno. */
int teller_open(struct teller *t, const char *path, const char *answer, struct log *log, struct err *e);
void teller_close(struct teller *t); /* a zeroed one is fine */

/* What to wait for: all TELLER_FDS of them are set. */
void teller_wants(const struct teller *t, struct pollfd fds[TELLER_FDS]);

/* Takes what has come; of clients of other users nothing. Only when log_busy() says no. */
void teller_serve(struct teller *t, const struct pollfd fds[TELLER_FDS]);

/* Takes all that was told up to now: its programs have ended. True: there is more, which has no room in the log yet. */
bool teller_drain(struct teller *t);

/* Tells all that the trial is to end at the next epoch's end, and whoever comes later. */
void teller_say_stop(struct teller *t);

#endif
