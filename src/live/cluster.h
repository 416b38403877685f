/* A cluster that is asked, again and again, what is free there and how our applications fare: the requests of its row (app/cluster.h), made
 * on a worker, each with a time-out, and their newest view. The token and the CA come from files, which are read anew for each look,
 * since tokens expire and are replaced: $PIPETUNE_CLUSTER_TOKEN_FILE and $PIPETUNE_CLUSTER_CA_FILE, else what the application's properties say, else where
 * the row says; as the namespace does: $PIPETUNE_CLUSTER_NAMESPACE. */
#ifndef LIVE_CLUSTER_H
#define LIVE_CLUSTER_H

#include <stdint.h>
#include <uv.h>

#include "app/cluster.h"

struct cluster;

/* Where one is, and what is needed to ask it. */
struct cluster_at {
    const struct cluster_row *row;
    struct strv bases;     /* of several masters the one that answered last is asked first */
    char *space;           /* NULL: none */
    char *token_file, *ca; /* NULL: none */
    char *user;            /* as whom, where nobody is asked to prove it; NULL: not known */
    char *part;            /* the text of the template of a launch's parts; NULL: none */
    bool resizes;          /* it has said that it changes CPUs of parts that run */
};
void cluster_at_done(struct cluster_at *at);

/* What the application's properties say of it; NULL: nothing. */
struct cluster_said {
    const char *space, *token_file, *ca_file, *part_file;
};

/* Of `master`; `ui`: an address in the place of what the master says, or NULL; `said` may be NULL. -EINVAL and -ENOENT name what is missing, and where it is
 * looked for. */
int cluster_at_find(struct cluster_at *out, const struct cluster_row *row, const char *master, const char *ui,
                    const struct cluster_said *said, struct err *e);

int cluster_at_copy(struct cluster_at *out, const struct cluster_at *at); /* -ENOMEM */

/* One request, for which the token is read anew: blocks. 0 and the answer with its status, whatever that is; else as http_ask(). */
int cluster_at_ask(const struct cluster_at *at, struct cluster_request *q, int *out_status, struct buf *out,
                   struct err *e);
struct cluster_asked cluster_at_asked(const struct cluster_at *at); /* of no launch in particular */

/* One look, at once: blocks for a few seconds at most, so before the loop alone. *out is untouched on failure: -EHOSTUNREACH, -EACCES, -EPROTO,
 * -EINVAL, -ENODEV, -ENOMEM. */
int cluster_look(struct cluster_view *out, struct cluster_at *at, const struct cluster_key *keys, size_t n,
                 struct err *e);

/* Asks whether it changes CPUs of parts that run: blocks, too. */
void cluster_ask_resize(struct cluster_at *at);

struct cluster_ops {
    void (*seen)(void *ctx);                   /* a new view is there, or none could be had */
    void (*note)(void *ctx, const char *text); /* it cannot be asked, or can again: once each */
};

/* Keeps `at`, whose masters it puts into another order, `ops` and `ctx`. -ENOMEM. */
int cluster_open(struct cluster **out, uv_loop_t *loop, struct cluster_at *at, const struct cluster_ops *ops, void *ctx,
                 struct err *e);
void cluster_close(struct cluster *c); /* what is under way ends first, with the loop. NULL is fine */

/* Asks anew where the newest view is older than this, and nothing is under way: `keys` are the launches that are asked for. To be called at every tick. */
void cluster_tick(struct cluster *c, const struct cluster_key *keys, size_t n, int older_ms);

/* The newest view, until the next tick, and when it was asked for; NULL: the last try failed, or there was none yet. */
const struct cluster_view *cluster_now(const struct cluster *c, int64_t *out_asked_ms);

/* It has been asked in vain, and has never answered. */
bool cluster_is_mute(const struct cluster *c);

/* Ends the application of this launch, if it is still there `after_ms` from now: what a driver leaves behind. Asked again until the
 * cluster says that it is over, for some minutes. Copies the key. -ENOMEM. */
int cluster_end(struct cluster *c, const struct cluster_key *key, int after_ms);
#endif
