/* A warm session as the loop sees it: its socket. The process behind it is started by live/launcher like any other attempt. */
#ifndef LIVE_SESSION_H
#define LIVE_SESSION_H

#include <stdint.h>
#include <uv.h>

#include "app/session.h"

struct session_link;

/* Called from the loop with the id given at the start, never from within a call below; each may free the link. `hello` comes
 * first, and once, but for a session elsewhere: there it comes again after each `away`. After `lost` nothing more is called. */
struct session_ops {
    void (*hello)(void *ctx, uint64_t id, const struct session_message *m);
    void (*epoch)(void *ctx, uint64_t id, const struct session_message *m);
    void (*done)(void *ctx, uint64_t id, const struct session_message *m);
    void (*lost)(void *ctx, uint64_t id,
                 const char *why);        /* the socket is closed, or speaks nonsense, or another protocol */
    void (*away)(void *ctx, uint64_t id); /* the way to it is broken; NULL: there is none that could be */
};

/* How words get to a session elsewhere. */
struct session_wire {
    int (*say)(void *ctx, const char *bytes, size_t n); /* 0: on their way, or -errno */
    void (*closed)(void *ctx);                          /* the link is freed */
};

/* A path for a new socket that fits sun_path: TAG.sock in a folder of our own, XDG_RUNTIME_DIR/pipetune, or /tmp/pipetune-UID
 * where there is no such folder or its path is too long; made when absent. Free it. -EINVAL: TAG is no id (session_is_id());
 * -EPERM: the folder is a link, not ours, or open to others; -ENOMEM, -errno. */
int session_path(char **out, const char *tag, struct err *e);

/* A session that is killed leaves its socket behind. The first takes away that of a session whose process has ended; the second all of
 * ours that no process has open, unless they were made a moment ago. Neither connects: a session takes whoever does for its new driver.
 * What cannot be removed, or looked at, stays. */
void session_socket_remove(const char *tag);
void session_sockets_sweep(void);

/* Connects as soon as there is something at `path` (looks each 100 ms, as long as it takes), checks that the peer is our own uid,
 * and waits for its hello, without a limit: whoever watches the process ends it. -ENAMETOOLONG, -ENOMEM, -errno of libuv. */
int session_link_open(struct session_link **out, uv_loop_t *loop, const char *path, const struct session_ops *ops,
                      void *ctx, uint64_t id, struct err *e);

/* The same to a session that others bring the words of, in order, by session_link_heard(), perhaps from within its
 * calls. They say, too, that the way to it is broken, or that it has gone. Keeps `wire`. -ENOMEM. */
int session_link_wired(struct session_link **out, const struct session_wire *wire, void *wire_ctx,
                       const struct session_ops *ops, void *ctx, uint64_t id, struct err *e);
void session_link_heard(struct session_link *l, const char *bytes, size_t n);
void session_link_away(struct session_link *l);
void session_link_gone(struct session_link *l, const char *why);

/* 0: on its way; when it does not get there, `lost` is called. -ENOTCONN before the hello and after `lost`; -EMSGSIZE: longer
 * than a line may be; -ENOBUFS: the session reads nothing; -ENOMEM, -errno of libuv. */
int session_link_run(struct session_link *l, const struct session_run *r);
int session_link_end(struct session_link *l, const char *id, int epoch);
int session_link_stop(struct session_link *l);

void session_link_free(struct session_link *l); /* closes it; the session goes on without us. NULL is fine */

#endif
