/* One server per store: the process that works its queue. Who it is, its lock tells; it dies with it. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct server_options {
    const char *store; /* its path, absolute */
    int cpus;          /* that its studies share; 0: all that it may use */
    bool once;         /* it ends when nothing is left to do */
    void (*say)(const char *line);
};

sigset_t server_signals(void); /* those that are to end it */

/* Works the queue until it is told to end, or is done. SIGTERM and SIGINT drain: nothing more is started, and it ends when what runs has; a second one
 * leaves trials running; a third ends it at once. The caller has blocked server_signals(); they are again when it returns. 0; -EBUSY: another one does (its pid); and what the store says. */
int server_run(const struct server_options *o, struct err *e);

pid_t server_of(const char *store); /* the process that works it; 0: none; -1: another user's */

/* There is one, or one is started in the background, which ends when nothing is left to do. */
int server_wanted(const char *store, struct err *e);

#endif
