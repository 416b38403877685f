/* What the studies of a store are at, those that wait in its queue among them: for `ls` and the page. */
#ifndef SERVE_STANDING_H
#define SERVE_STANDING_H

#include <sys/types.h>

#include "store/queue.h"

#define STANDING_BACKGROUND "in the background"

/* A study of the queue that has not ended. */
struct standing {
    struct store_queued row; /* owned */
    bool listed;             /* for who lists: it has begun, and stands among the studies */
};

struct standings {
    struct standing *v; /* in the queue's order */
    size_t n, cap;
};

/* Fills a zeroed one; standings_done() is due also after a failure. -ENOMEM, and what the store says. */
int standings_load(struct standings *out, struct store *s, struct err *e);
void standings_done(struct standings *s);

struct standing *standings_find(const struct standings *s, const char *study); /* NULL: it does not wait in the queue */

/* QUEUED, STANDING_BACKGROUND, else its stored state as it is now. Only of a study that claims to run, or waits to, is the lock looked at. */
const char *standings_state(const struct standings *s, const char *store_path, const struct store_summary *study);

#endif
