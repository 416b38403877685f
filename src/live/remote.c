#include "live/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/node_peer.h"

enum { CREDIT = 256 << 10, VERB_BITS = 5 };

enum state {
    REMOTE_STARTING, /* asked for */
    REMOTE_READY,    /* waits for its go */
    REMOTE_WENT,     /* runs, as far as is known */
    REMOTE_ENDING,   /* it has ended; what was heard of it is still coming */
    REMOTE_OVER,
    REMOTE_ORPHAN, /* nobody's: to be killed and forgotten when its helper is there */
};

struct remote {
    struct remote *next;
    struct remotes *all;
    size_t node;
    uint64_t id, serial; /* the caller's; ours, never used twice */
    char tag[NODE_TAG_MAX + 1];
    enum state state;
    uint64_t at, granted; /* of what is heard: what comes next, and up to where it may come */
    uint64_t accounted;   /* all before it may go */
    uint64_t heard;       /* REMOTE_ENDING: all there is */
    int signal;           /* to be sent again when the helper is there: 0 none, 1 soft, 2 hard */
    char exit[512];
    int64_t ago_ms;
    int64_t told_ms; /* REMOTE_ENDING: when something of it came last */
    bool lost, begun;
    bool run;               /* of a session: that is told of its go by others */
    bool talks;             /* it is a session */
    uint64_t said, may_say; /* bytes that it said since its helper is there, and that it may have */
};

struct remotes {
    struct nodes *nodes;
    const struct remote_ops *ops;
    void *ctx;
    struct remote *list;
    uint64_t last_serial;
};

/* --- asking ----------------------------------------------------------------------------------------------------------- */

static uint64_t stamp_of(const struct remote *l, enum node_verb verb)
{
    return l->serial << VERB_BITS | (uint64_t)verb;
}

static int say(struct remote *l, const struct buf *text, enum node_verb verb)
{
    return node_peer_say(nodes_peer(l->all->nodes, l->node), text, verb, stamp_of(l, verb));
}

static int ask(struct remote *l, enum node_verb verb)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_tagged(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), verb, l->tag);
    return say(l, &b, verb);
}

/* More may come as soon as half of what may has. */
static void grant(struct remote *l, bool anew)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (!anew && l->granted - l->at > CREDIT / 2)
        return;
    node_words_tail(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), l->tag, l->at, CREDIT, l->accounted);
    if (say(l, &b, NODE_TAIL) == 0) /* else it is asked when the helper is there */
        l->granted = l->at + CREDIT;
}

static void grant_words(struct remote *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (!l->talks || l->may_say - l->said > CREDIT / 2)
        return;
    node_words_talk(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), l->tag, l->said + CREDIT);
    if (say(l, &b, NODE_TALK) == 0) /* else it is asked when the helper is there */
        l->may_say = l->said + CREDIT;
}

static void send_signal(struct remote *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_signal(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), l->tag, l->signal == 2);
    (void)say(l, &b, NODE_SIGNAL); /* where it cannot be sent it is when the helper is there */
}

/* A node is kept as long as something of ours may run there. */
static void keep(const struct remotes *r, size_t node)
{
    bool any = false;
    for (const struct remote *l = r->list; l; l = l->next)
        any |= l->node == node && l->state != REMOTE_OVER;
    any |= r->ops->keeps && node > 0 && node_peer_hello(nodes_peer(r->nodes, node));
    node_peer_keep(nodes_peer(r->nodes, node), any);
}

/* --- what becomes of one ---------------------------------------------------------------------------------------------- */

static void refuse(struct remote *l, bool busy, const char *why)
{
    struct remotes *r = l->all;
    l->state = REMOTE_OVER;
    keep(r, l->node);
    r->ops->launcher.refused(r->ctx, l->id, busy, why);
}

/* Told when nothing of it is still to come. */
static void end_when_heard(struct remote *l)
{
    struct remotes *r = l->all;
    if (l->state != REMOTE_ENDING || l->at < l->heard)
        return;
    l->state = REMOTE_OVER;
    keep(r, l->node);
    r->ops->launcher.gone(r->ctx, l->id);
}

/* What is heard of a launch begins with it. */
static void was_ready(struct remote *l, const struct node_launch_told *t, struct err *e)
{
    if (t->heard > 0) {
        (void)err_set(e, -EPROTO, "what it heard of a launch before its start begins at byte %" PRIu64, t->heard);
        return;
    }
    struct launcher_ready ready = {
        .pid = (pid_t)t->pid, .start_ticks = t->start_ticks, .port = (int)t->port, .heard_size = t->heard
    };
    memcpy(ready.boot_id, t->boot_id, sizeof ready.boot_id);
    (void)snprintf(ready.unlimited, sizeof ready.unlimited, "%s", t->why);
    l->state = REMOTE_READY;
    l->at = l->accounted = t->heard;
    l->all->ops->launcher.ready(l->all->ctx, l->id, &ready);
}

static void drop(struct remote *l)
{
    struct remotes *r = l->all;
    struct remote **at = &r->list;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    keep(r, l->node);
    free(l);
}

static void end_orphan(struct remote *l, const struct node_launch_told *t)
{
    if (t->state == NODE_LAUNCH_WAITING || t->state == NODE_LAUNCH_RUNNING) {
        l->signal = 2;
        send_signal(l); /* its end is told */
        return;
    }
    (void)ask(l, NODE_FORGET);
    drop(l);
}

static void take_told(struct remote *l, const struct node_launch_told *t, struct err *e)
{
    if (l->state == REMOTE_ORPHAN) {
        end_orphan(l, t);
        return;
    }
    switch (t->state) {
    case NODE_LAUNCH_READY:
        if (l->state == REMOTE_STARTING)
            was_ready(l, t, e);
        break;
    case NODE_LAUNCH_BUSY:
    case NODE_LAUNCH_REFUSED:
        if (l->state <= REMOTE_READY)
            refuse(l, t->state == NODE_LAUNCH_BUSY, t->why);
        break;
    case NODE_LAUNCH_GONE: /* its note, and how much there is to hear */
        if (l->run && l->state <= REMOTE_READY)
            refuse(l, false, "its session has ended");
        else
            (void)ask(l, NODE_ADOPT);
        break;
    case NODE_LAUNCH_WAITING:
    case NODE_LAUNCH_RUNNING:
        grant(l, true);
        grant_words(l);
        break;
    case NODE_LAUNCH_NONE:
    case NODE_LAUNCH_ENDED:
    case NODE_LAUNCH_CUT:
        if (l->state != REMOTE_WENT && l->state != REMOTE_ENDING)
            break;
        l->told_ms = l->state == REMOTE_WENT ? clock_ms() : l->told_ms;
        l->state = REMOTE_ENDING;
        l->heard = t->heard;
        if (t->exit[0]) {
            (void)snprintf(l->exit, sizeof l->exit, "%s", t->exit);
            l->ago_ms = t->ago_ms;
        }
        grant(l, true); /* also when that was known already: another helper has not been asked for the rest */
        end_when_heard(l);
        break;
    }
}

/* --- what the helpers say --------------------------------------------------------------------------------------------- */

/* What was asked is known by the launches themselves. */
static void on_there(void *ctx, size_t node)
{
    struct remotes *r = ctx;
    keep(r, node);
    for (struct remote *l = r->list; l; l = l->next) {
        if (l->node != node || l->state < REMOTE_WENT || l->state == REMOTE_OVER)
            continue;
        (void)ask(l, NODE_ADOPT);
        if (l->signal)
            send_signal(l);
    }
}

/* Another helper counts anew. */
static void hush(struct remotes *r, size_t node)
{
    for (struct remote *l = r->list; l; l = l->next) {
        if (l->node != node || !l->talks)
            continue;
        l->said = l->may_say = 0;
        r->ops->said(r->ctx, l->id, NULL, 0, NULL);
    }
}

/* What has no go ends with its helper. The list may change in a callback. */
static void on_away(void *ctx, size_t node, bool lost)
{
    struct remotes *r = ctx;
    hush(r, node);
    for (struct remote *l = r->list; l;) {
        bool of_it = l->node == node && l->state != REMOTE_OVER;
        if (of_it && l->state == REMOTE_ORPHAN && lost) {
            drop(l);
        } else if (of_it && l->state <= REMOTE_READY) {
            refuse(l, false, "the link to its node broke before its start");
        } else if (of_it && lost) {
            l->state = REMOTE_ENDING;
            l->lost = true;
            l->heard = 0;
            end_when_heard(l);
        } else {
            l = l->next;
            continue;
        }
        l = r->list;
    }
}

static void on_answered(void *ctx, size_t node, uint64_t stamp, const struct node_words *w)
{
    struct remotes *r = ctx;
    struct err e = { 0 };
    struct node_launch_told told;
    struct remote *l = r->list;
    while (l && l->serial != stamp >> VERB_BITS)
        l = l->next;
    if (!l || l->state == REMOTE_OVER)
        return;
    enum node_verb verb = (enum node_verb)(stamp & ((1U << VERB_BITS) - 1));
    if ((verb == NODE_LAUNCH || verb == NODE_RUN) && !w->ok)
        refuse(l, false, w->error);
    else if (verb == NODE_RUN && node_launch_read(&told, w, &e) == 0)
        take_told(l, &told, &e);
    else if (verb == NODE_RUN)
        node_peer_give_up(nodes_peer(r->nodes, node), e.text);
    else if (verb == NODE_GO && !w->ok)
        (void)ask(l, NODE_ADOPT); /* it has ended in between */
    else if (verb == NODE_GO)
        l->begun = true;
    else if (verb == NODE_TAIL && !w->ok)
        l->granted = l->at; /* at the next tick again */
    else if (verb == NODE_ADOPT && w->ok && node_launch_read(&told, w, &e) == 0)
        take_told(l, &told, &e);
    else if (verb == NODE_ADOPT && l->state == REMOTE_ORPHAN)
        drop(l);
    else if (verb == NODE_ADOPT)
        node_peer_give_up(nodes_peer(r->nodes, node), w->ok ? e.text : w->error);
}

/* What an earlier tail told already may come again: of that no more than what is new is taken. */
static void take_bytes(struct remote *l, const struct node_words *w, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    uint64_t at = 0, before = l->at;
    struct remotes *r = l->all;
    if (node_bytes_read(&at, &bytes, w, e) < 0)
        return;
    if (bytes.len == 0)
        r->ops->heard(r->ctx, l->id, before, NULL, 0);
    if (bytes.len == 0 || at > before || at + bytes.len <= before)
        return;
    if (at + bytes.len > l->granted) {
        (void)err_set(e, -EPROTO, "it tells more of a launch than it was asked for");
        return;
    }
    l->at = at + bytes.len;
    l->told_ms = clock_ms();
    l->begun = true; /* whatever became of the answer to its go */
    r->ops->heard(r->ctx, l->id, before, bytes.data + (before - at), (size_t)(l->at - before));
}

static void take_said(struct remote *l, const struct node_words *w, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    char why[128];
    struct remotes *r = l->all;
    if (node_said_read(&bytes, why, w, e) < 0)
        return;
    l->said += bytes.len;
    if (!l->talks || l->said > l->may_say) {
        (void)err_set(e, -EPROTO, "it tells more of a session than it was asked for");
        return;
    }
    grant_words(l);
    if (bytes.len > 0)
        r->ops->said(r->ctx, l->id, bytes.data, bytes.len, NULL);
    else
        r->ops->said(r->ctx, l->id, NULL, 0, *why ? why : "the session closed its socket");
}

static void on_launched(void *ctx, size_t node, const struct node_words *w)
{
    struct remotes *r = ctx;
    struct err e = { 0 };
    struct node_launch_told told;
    struct remote *l = r->list;
    while (l && (l->node != node || l->state == REMOTE_OVER || strcmp(l->tag, w->tag) != 0))
        l = l->next;
    if (!l)
        return;
    uint64_t serial = l->serial;
    if (w->kind == NODE_BYTES && l->state != REMOTE_ORPHAN)
        take_bytes(l, w, &e);
    else if (w->kind == NODE_SAID)
        take_said(l, w, &e); /* of an orphan it was not asked for any more */
    else if (node_launch_read(&told, w, &e) == 0)
        take_told(l, &told, &e);
    if (e.text[0]) {
        node_peer_give_up(nodes_peer(r->nodes, node), e.text);
        return;
    }
    for (l = r->list; l && l->serial != serial; l = l->next)
        ;
    if (l && w->kind == NODE_BYTES && l->state != REMOTE_OVER)
        end_when_heard(l);
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

int remotes_open(struct remotes **out, struct nodes *nodes, const struct remote_ops *ops, void *ctx, struct err *e)
{
    static const struct nodes_launching calls = { on_there, on_away, on_answered, on_launched };
    struct remotes *r = calloc(1, sizeof *r);
    if (!r)
        return err_sys(e, -ENOMEM, "launches on other nodes");
    *r = (struct remotes){ .nodes = nodes, .ops = ops, .ctx = ctx };
    nodes_launching(nodes, NODES_LAUNCHES, &calls, r);
    *out = r;
    return 0;
}

void remotes_close(struct remotes *r)
{
    if (!r)
        return;
    nodes_launching(r->nodes, NODES_LAUNCHES, NULL, NULL);
    for (struct remote *l; (l = r->list); free(l))
        r->list = l->next;
    free(r);
}

static struct remote *make(struct remotes *r, size_t node, uint64_t id, const char *tag, enum state state)
{
    struct remote *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct remote){
        .next = r->list, .all = r, .node = node, .id = id, .serial = ++r->last_serial, .state = state, .ago_ms = -1
    };
    (void)snprintf(l->tag, sizeof l->tag, "%s", tag);
    r->list = l;
    keep(r, node);
    return l;
}

int remote_start(struct remote **out, struct remotes *r, size_t node, uint64_t id, const struct node_launch *what,
                 struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct remote *l = make(r, node, id, what->tag, REMOTE_STARTING);
    if (!l)
        return err_sys(e, -ENOMEM, "launch '%s'", what->tag);
    node_words_launch(&b, node_peer_next_id(nodes_peer(r->nodes, node)), what);
    int rc = say(l, &b, NODE_LAUNCH);
    if (rc < 0) {
        remote_free(l, false);
        return err_sys(e, rc, "cannot launch '%s' on %s", what->tag, node_peer_name(nodes_peer(r->nodes, node)));
    }
    *out = l;
    return 0;
}

int remote_run(struct remote **out, struct remotes *r, size_t node, uint64_t id, const char *tag, const char *session,
               const char *files, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct remote *l = make(r, node, id, tag, REMOTE_STARTING);
    if (!l)
        return err_sys(e, -ENOMEM, "launch '%s'", tag);
    l->run = true;
    node_words_run(&b, node_peer_next_id(nodes_peer(r->nodes, node)), tag, session, files);
    int rc = say(l, &b, NODE_RUN);
    if (rc < 0) {
        remote_free(l, false);
        return err_sys(e, rc, "cannot run '%s' on %s", tag, node_peer_name(nodes_peer(r->nodes, node)));
    }
    *out = l;
    return 0;
}

void remote_talk(struct remote *l)
{
    l->talks = true;
}

int remote_say(struct remote *l, const char *bytes, size_t n)
{
    int rc = l->may_say > 0 ? 0 : -ENOTCONN;
    for (size_t at = 0; rc == 0 && at < n; at += NODE_SAY_MAX) {
        AUTO_BUF struct buf b = BUF_INIT;
        size_t len = n - at < NODE_SAY_MAX ? n - at : NODE_SAY_MAX;
        node_words_say(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), l->tag, bytes + at, len);
        rc = say(l, &b, NODE_SAY);
    }
    return rc;
}

int remote_adopt(struct remote **out, struct remotes *r, size_t node, uint64_t id, const char *tag, uint64_t from,
                 struct err *e)
{
    struct remote *l = make(r, node, id, tag, REMOTE_WENT);
    if (!l)
        return err_sys(e, -ENOMEM, "launch '%s'", tag);
    l->at = l->accounted = from;
    (void)ask(l, NODE_ADOPT); /* where its helper is not there yet it is asked then */
    *out = l;
    return 0;
}

int remote_go(struct remote *l, const char *ports)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_go(&b, node_peer_next_id(nodes_peer(l->all->nodes, l->node)), l->tag, ports);
    int rc = l->run ? 0 : say(l, &b, NODE_GO);
    l->begun |= l->run;
    l->state = REMOTE_WENT; /* the attempt is stored as running by now: its end must be told as one */
    if (rc == 0) {
        grant(l, true);
        grant_words(l);
    }
    return rc;
}

void remote_signal(struct remote *l, bool hard)
{
    if (l->state == REMOTE_OVER)
        return;
    l->signal = hard || l->signal == 2 ? 2 : 1;
    send_signal(l);
}

void remote_accounted(struct remote *l, uint64_t offset)
{
    l->accounted = offset;
}

const char *remote_exit(const struct remote *l)
{
    return l->exit;
}

int64_t remote_ago_ms(const struct remote *l)
{
    return l->ago_ms;
}

bool remote_has_begun(const struct remote *l)
{
    return l->begun;
}

bool remote_is_lost(const struct remote *l)
{
    return l->lost;
}

int64_t remote_owes_ms(const struct remote *l, int64_t now_ms)
{
    return l->state == REMOTE_ENDING ? now_ms - l->told_ms : 0;
}

void remote_say_stop(struct remote *l)
{
    (void)ask(l, NODE_SAY_STOP);
}

void remotes_tick(struct remotes *r)
{
    for (struct remote *l = r->list; l; l = l->next)
        if (l->state == REMOTE_WENT || l->state == REMOTE_ENDING)
            grant(l, false);
}

void remote_abandon(struct remote *l)
{
    l->state = REMOTE_ORPHAN;
    (void)ask(l, NODE_ADOPT); /* where its helper is not there it is asked then */
}

void remote_free(struct remote *l, bool forget)
{
    if (!l)
        return;
    if (forget)
        (void)ask(l, NODE_FORGET); /* what cannot be asked now is left there */
    drop(l);
}
