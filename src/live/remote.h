/* Launches on other nodes as the loop sees them, with the words of live/launcher: what is a child there is asked of the node's helper
 * here, and what the driver reads of files there comes as bytes.
 *
 * A link that breaks ends nothing: a launch that has its go runs on, and when the helper is there again it is asked what became of it, and
 * told from where to read on. One that has none yet ends with its helper, and is refused here: nothing was started. */
#ifndef LIVE_REMOTE_H
#define LIVE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "live/launcher.h"
#include "live/nodes.h"

struct node_launch;
struct remotes; /* all of a study's */
struct remote;  /* one launch */

/* Called from the loop, perhaps from within nodes' own calls, never from within a call below. After `refused` or `gone` nothing more is
 * called of that launch. */
struct remote_ops {
    struct launcher_ops launcher; /* `gone`: all that was heard of it has come, and remote_exit() has its note */
    /* Bytes of what is heard of it, from `at` on: in order, each once; n 0: its log has grown, and nothing in it is heard. */
    void (*heard)(void *ctx, uint64_t id, uint64_t at, const char *bytes, size_t n);
    /* A session (remote_talk()): what it said, in order; or `bytes` NULL: why no more comes, or with `why` NULL, that
     * the way to it is broken: it says hello again when there is one. NULL where there are no sessions. */
    void (*said)(void *ctx, uint64_t id, const char *bytes, size_t n, const char *why);
    bool keeps; /* a helper that was there once is asked for again for ever, also while nothing of ours runs there */
};

/* Keeps `nodes` and `ops`; the only one of these nodes. -ENOMEM. */
int remotes_open(struct remotes **out, struct nodes *nodes, const struct remote_ops *ops, void *ctx, struct err *e);
void remotes_close(struct remotes *r); /* before the nodes. Launches go on. NULL is fine */

/* Asks the node's helper for it. -ENOTCONN: it is not there now; -ENOMEM. */
int remote_start(struct remote **out, struct remotes *r, size_t node, uint64_t id, const struct node_launch *what,
                 struct err *e);

/* A run of a session there, by the session's tag; `files`: the hash of the manifest of what it goes on from, or NULL.
 * It is `ready` when its folder is there, and gone with its session; remote_go() says that the session is told to serve
 * it. As remote_start(). */
int remote_run(struct remote **out, struct remotes *r, size_t node, uint64_t id, const char *tag, const char *session,
               const char *files, struct err *e);

/* It is a session: what it says is to be told, from its go on. What is said to it: -ENOTCONN: not now; -ENOBUFS,
 * -ENOMEM. */
void remote_talk(struct remote *l);
int remote_say(struct remote *l, const char *bytes, size_t n);

/* One that an earlier driver started; `from`: all before it was accounted. It is `gone` soon when there is no such launch any more. -ENOMEM. */
int remote_adopt(struct remote **out, struct remotes *r, size_t node, uint64_t id, const char *tag, uint64_t from,
                 struct err *e);

int remote_go(struct remote *l, const char *ports); /* as launcher_go(): 0 or -errno, `gone` comes in either case */
void remote_signal(struct remote *l, bool hard);

/* All before this offset is accounted, and needed no more there. */
void remote_accounted(struct remote *l, uint64_t offset);

void remote_say_stop(
    struct remote *l); /* its programs are to end at the next epoch's end; where its helper is not there it is lost */

/* How it ended (node/exec.h), once it is gone; "": that was not noted. How long ago that was when it was told; -1: not known. */
const char *remote_exit(const struct remote *l);
int64_t remote_ago_ms(const struct remote *l);
bool remote_has_begun(const struct remote *l); /* its go has arrived */
bool remote_is_lost(const struct remote *l);   /* its node is left out: what became of it is not known */
int64_t remote_owes_ms(
    const struct remote *l,
    int64_t now_ms); /* since when nothing came of what is still to come of one that has ended; 0: it has not */

/* To be called a few times a second: more may come. So a node that talks without end is heard at a bounded rate. */
void remotes_tick(struct remotes *r);

/* Lets go of one that is given up: should its helper be there again, what is left of it is killed and removed. */
void remote_abandon(struct remote *l);

/* Lets go of it; `forget`: its folder there is of no use any more. NULL is fine. */
void remote_free(struct remote *l, bool forget);

#endif
