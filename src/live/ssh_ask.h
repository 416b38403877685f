/* One question to many hosts at once, each by a command of its own, which ends with its answer. */
#ifndef LIVE_SSH_ASK_H
#define LIVE_SSH_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

enum {
    SSH_ASK_AT_ONCE = 32,
    SSH_ASK_OUT_MAX = 256 << 10, /* bytes of an answer: one that says more is ended */
    SSH_ASK_LAST_MAX = 512,
};

enum ssh_ask_end { SSH_ASK_ENDED, SSH_ASK_OVERDUE, SSH_ASK_FLOODED, SSH_ASK_UNSTARTED };

struct ssh_ask {
    /* What is asked, borrowed. */
    char **argv;
    const char *first; /* is sent at once */
    size_t n_first;
    const char *cue; /* a line that begins so has `then` sent; NULL: nothing */
    const char
        *then; /* then its stdin ends: behind `then`, behind `first` where there is no cue, or with the first other
                       * line that begins with the cue's first word (`cue` up to a blank) */
    size_t n_then;
    /* What came of it; ssh_ask_done(). */
    enum ssh_ask_end end;
    int code;                    /* of its exit; 128 + signal */
    struct buf out;              /* its stdout; complete lines may be preceded by what a login shell prints */
    char last[SSH_ASK_LAST_MAX]; /* the last line on stderr that said something, plain; SSH_ASK_UNSTARTED: why */
    int64_t cued_real_ms;        /* since 1970, when the cue came; 0: it did not */
    double cued_s, round_s;      /* until the cue came; from `then` to the next line; NAN */
};

/* Returns when all have ended, or were ended `timeout_ms` after their own start; SIGPIPE must be ignored. A host that is slow
 * or dead delays those alone that stand SSH_ASK_AT_ONCE behind it. -ENOMEM: no loop. */
int ssh_ask_all(struct ssh_ask *v, size_t n, int timeout_ms, struct err *e);
void ssh_ask_done(struct ssh_ask *a);

#endif
