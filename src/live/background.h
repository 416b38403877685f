/* A driver in the background: `pipetune run …`, or a server, in a session of its own, whose output goes to a file. It waits for a byte before it
 * becomes one, so that who starts it can note its pid first; where that ends before, so does it, and nothing was started. */
#ifndef LIVE_BACKGROUND_H
#define LIVE_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"

struct background {
    pid_t pid;
    uint64_t start_ticks;
    int go_fd;
};

/* `words` behind the program's name, a JSON array of texts. `env` goes over our own variables: texts, or null for what is not to be there; NULL:
 * none. `log` is appended to, and begun anew where it has grown long. -ENOENT: no such folder; -EPERM, … of the log; -EAGAIN, -ENOMEM. */
int background_start(struct background *out, const json_t *words, const char *folder, const json_t *env,
                     const char *log, struct err *e);

int background_go(struct background *b);    /* 0; -EPIPE: it has died since */
void background_drop(struct background *b); /* without a go */

/* The study's, in its folder. NULL: memory. */
char *background_log(const char *study_dir);

/* Is the driver's output that file, so that nobody sees it but who looks there? */
bool background_is(pid_t driver, const char *study_dir);

/* What the log ends with, its last line that says something: for who tells why it ended. NULL: nothing. Free it. */
char *background_last(const char *log);

#endif
