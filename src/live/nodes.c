#include "live/nodes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/sha256.h"
#include "live/node_peer.h"
#include "live/ssh.h"

enum { TICK_MS = 250, LATE_MS = 2000, METERING_MIN_MS = 100, METERING_MAX_MS = 60000 };

struct remark {
    struct remark *next;
    char text[];
};

struct nodes {
    const struct app_workers *workers;
    const struct nodes_ops *ops;
    void *ctx;
    uv_timer_t tick;
    uv_timer_t tell; /* runs once, at the loop's next round: callbacks never come from within a call */
    int handles;     /* not closed yet */
    bool closed;
    int64_t ticked_ms;
    struct desired *desired;        /* what launches are to have, and have */
    struct nodes_metering metering; /* its names are `meters` */
    char meters[METER_NAMES_MAX + 1];
    struct {
        const struct nodes_launching *ops; /* NULL: nobody */
        void *ctx;
    } listeners[NODES_LISTENERS];
    char put[SSH_PUT_PATH_MAX]; /* where a host may have this helper, too; "": nowhere */
    struct remark *remarks;     /* oldest first */
    const char **names;         /* of peers */
    size_t n;
    struct node_peer *peers[]; /* peers[0] is this machine */
};

/* --- telling ---------------------------------------------------------------------------------------------------------- */

/* Tells one thing; false when there is none. What is told is off the lists first: the callee may call anything. */
static bool tell_one(struct nodes *n)
{
    AUTO_FREE struct remark *r = n->remarks;
    struct desired_news news;
    if (r) {
        n->remarks = r->next;
        n->ops->note(n->ctx, r->text);
        return true;
    }
    if (!desired_tell(n->desired, &news))
        return false;
    if (news.applied)
        n->ops->applied(n->ctx, &news.want, &news.have, news.why[0] ? news.why : NULL);
    else
        n->ops->changed(n->ctx, news.tag, &news.have);
    return true;
}

static void on_tell(uv_timer_t *t)
{
    struct nodes *n = t->data;
    while (!n->closed && tell_one(n))
        ;
}

static void tell_soon(struct nodes *n)
{
    if (!n->closed)
        (void)uv_timer_start(&n->tell, on_tell, 0, 0); /* fails only without a callback */
}

static void on_note(void *ctx, const char *text)
{
    struct nodes *n = ctx;
    size_t size = strlen(text) + 1;
    struct remark *r = malloc(sizeof *r + size);
    if (!r)
        return; /* whoever has no memory for a line has other troubles */
    r->next = NULL;
    memcpy(r->text, text, size);
    struct remark **end = &n->remarks;
    while (*end)
        end = &(*end)->next;
    *end = r;
    tell_soon(n);
}

/* --- asking ----------------------------------------------------------------------------------------------------------- */

/* Asks whoever is to be asked; to be called whenever something of the table has changed. */
static void bring_together(void *ctx)
{
    struct nodes *n = ctx;
    struct desired_ask a;
    struct err e;
    while (desired_next(n->desired, &a)) {
        int rc = node_peer_ask(n->peers[a.node], &a);
        if (rc == 0 || !a.want)
            continue; /* what is not measured is absent; what is not released is when the helper ends */
        (void)err_sys(&e, rc, "it could not be asked");
        desired_unasked(n->desired, a.node, a.stamp, e.text);
    }
    tell_soon(n);
}

int nodes_apply(struct nodes *n, const struct desired_want *want, struct err *e)
{
    if (!node_words_is_tag(want->tag))
        return err_set(e, -EINVAL, "'%s' is no launch tag", want->tag);
    int rc = desired_set(n->desired, want, clock_ms(), e);
    if (rc == 0)
        bring_together(n);
    return rc;
}

int nodes_sample(struct nodes *n, const char *tag, const struct desired_sampling *how, struct err *e)
{
    if (!node_words_is_tag(tag))
        return err_set(e, -EINVAL, "'%s' is no launch tag", tag);
    int rc = desired_measure(n->desired, tag, how, e);
    if (rc == 0)
        bring_together(n);
    return rc;
}

void nodes_release(struct nodes *n, const char *tag)
{
    if (!n)
        return;
    desired_drop(n->desired, tag);
    bring_together(n);
}

static bool is_metering(const struct nodes_metering *m)
{
    return m->interval_ms == 0 || (m->interval_ms >= METERING_MIN_MS && m->interval_ms <= METERING_MAX_MS &&
                                   m->meters && meter_are_names(m->meters));
}

static bool is_same_metering(const struct nodes_metering *a, const struct nodes_metering *b)
{
    if (a->interval_ms == 0 || b->interval_ms == 0)
        return a->interval_ms == b->interval_ms;
    return a->interval_ms == b->interval_ms && strcmp(a->meters, b->meters) == 0 && a->idle_w == b->idle_w &&
           a->cpu_w == b->cpu_w && a->max_w == b->max_w;
}

int nodes_meter(struct nodes *n, const struct nodes_metering *how, struct err *e)
{
    if (!is_metering(how))
        return err_set(e, -EINVAL, "meters '%s' cannot be read every %d ms", how->meters ? how->meters : "",
                       how->interval_ms);
    if (is_same_metering(&n->metering, how))
        return 0;
    n->metering = *how;
    (void)snprintf(n->meters, sizeof n->meters, "%s", how->interval_ms > 0 ? how->meters : "");
    n->metering.meters = n->meters;
    for (size_t i = 0; i < n->n; i++)
        node_peer_meter(n->peers[i], &n->metering);
    return 0;
}

/* --- what the nodes tell ------------------------------------------------------------------------------------------------ */

/* Two helpers that find the same processes would count and narrow them twice. */
static bool is_second(struct nodes *n, size_t peer)
{
    const struct node_hello *mine = node_peer_hello(n->peers[peer]);
    for (size_t i = 0; mine->sees[0] && i < n->n; i++) {
        const struct node_hello *other = node_peer_hello(n->peers[i]);
        if (i == peer || !other || node_peer_state(n->peers[i]) != NODE_READY || strcmp(other->sees, mine->sees) != 0)
            continue;
        char why[256];
        size_t first = peer < i ? peer : i, second = peer < i ? i : peer; /* whoever was quicker */
        (void)snprintf(why, sizeof why, "it sees the processes that %s sees already", node_peer_name(n->peers[first]));
        node_peer_give_up(n->peers[second], why);
        return peer == second;
    }
    return false;
}

static void on_ready(void *ctx, size_t peer)
{
    struct nodes *n = ctx;
    if (is_second(n, peer))
        return;
    desired_node_is(n->desired, peer, DESIRED_THERE, 0);
    bring_together(n);
    if (n->metering.interval_ms > 0)
        node_peer_meter(n->peers[peer], &n->metering);
    for (int i = 0; i < NODES_LISTENERS; i++)
        if (n->listeners[i].ops)
            n->listeners[i].ops->there(n->listeners[i].ctx, peer);
}

static void on_ended(void *ctx, size_t peer)
{
    struct nodes *n = ctx;
    const struct node_hello *h = node_peer_hello(n->peers[peer]);
    bool lost = node_peer_state(n->peers[peer]) == NODE_LOST;
    desired_node_is(n->desired, peer, lost ? DESIRED_LOST : DESIRED_AWAY, h ? h->n_cpus : 0);
    tell_soon(n);
    for (int i = 0; i < NODES_LISTENERS; i++)
        if (n->listeners[i].ops)
            n->listeners[i].ops->away(n->listeners[i].ctx, peer, lost);
}

static void on_sampled(void *ctx, size_t peer, const char *tag, const struct nodes_sample *s)
{
    struct nodes *n = ctx;
    if (!n->closed && desired_takes_sample(n->desired, peer, tag, clock_ms()))
        n->ops->sampled(n->ctx, tag, s);
}

/* One that was asked for before may still be under way. */
static void on_metered(void *ctx, size_t peer, const struct nodes_reading *r)
{
    struct nodes *n = ctx;
    (void)peer;
    bool wanted = n->metering.interval_ms > 0 && node_words_has_meter(n->meters, r->meter, strlen(r->meter));
    if (!n->closed && wanted && n->ops->metered)
        n->ops->metered(n->ctx, r);
}

static void on_answered(void *ctx, size_t peer, uint64_t stamp, const struct node_words *w)
{
    struct nodes *n = ctx;
    enum nodes_listener who = stamp & NODES_FILES_STAMP ? NODES_FILES : NODES_LAUNCHES;
    if (n->listeners[who].ops)
        n->listeners[who].ops->answered(n->listeners[who].ctx, peer, stamp, w);
}

static void on_launched(void *ctx, size_t peer, const struct node_words *w)
{
    struct nodes *n = ctx;
    if (n->listeners[NODES_LAUNCHES].ops)
        n->listeners[NODES_LAUNCHES].ops->launched(n->listeners[NODES_LAUNCHES].ctx, peer, w);
}

void nodes_launching(struct nodes *n, enum nodes_listener who, const struct nodes_launching *ops, void *ctx)
{
    n->listeners[who].ops = ops;
    n->listeners[who].ctx = ctx;
}

struct node_peer *nodes_peer(struct nodes *n, size_t node)
{
    return node < n->n ? n->peers[node] : NULL;
}

static const struct node_peer_ops peer_ops = { .ready = on_ready,
                                               .seen = bring_together,
                                               .sampled = on_sampled,
                                               .metered = on_metered,
                                               .ended = on_ended,
                                               .note = on_note,
                                               .answered = on_answered,
                                               .launched = on_launched };

/* --- what is asked of them ------------------------------------------------------------------------------------------------ */

bool nodes_is_shared(const struct nodes *n, const char *tag, char who[NODES_WHO_MAX])
{
    char other[DESIRED_WHO_MAX];
    size_t node = 0;
    if (!desired_is_shared(n->desired, tag, &node, other))
        return false;
    const char *name = n->names[node];
    (void)snprintf(who, NODES_WHO_MAX, "%s%s%.64s", other, *name ? " on " : "", name);
    return true;
}

int nodes_cpus(const struct nodes *n, size_t node, const int **out)
{
    const struct node_hello *h = node < n->n ? node_peer_hello(n->peers[node]) : NULL;
    if (!h)
        return 0;
    *out = h->cpus;
    return h->n_cpus;
}

double nodes_memory_gb(const struct nodes *n, size_t node)
{
    const struct node_hello *h = node_peer_hello(n->peers[node]);
    return h ? h->memory_gb : 0;
}

bool nodes_local_is_gone(const struct nodes *n)
{
    enum node_state state = node_peer_state(n->peers[0]);
    return state == NODE_AGAIN || state == NODE_LOST;
}

double nodes_clock_offset_s(const struct nodes *n, size_t node)
{
    return node < n->n ? node_peer_clock_offset_s(n->peers[node]) : NAN;
}

/* --- beginning and end ---------------------------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *t)
{
    struct nodes *n = t->data;
    int64_t now = clock_ms();
    int64_t since = now - n->ticked_ms;
    bool late = since > LATE_MS;
    n->ticked_ms = now;
    for (size_t i = 0; i < n->n; i++)
        node_peer_tick(n->peers[i], late);
    desired_tick(n->desired, now, late ? since : 0);
    tell_soon(n);
}

static int add_peer(struct nodes *n, uv_loop_t *loop, const char *name, struct strv *argv, struct err *e)
{
    int rc = node_peer_new(&n->peers[n->n], loop, name, n->n == 0, argv, n->desired, n->workers, &peer_ops, n, n->n, e);
    if (rc == 0)
        n->names[n->n] = node_peer_name(n->peers[n->n]);
    n->n += rc == 0;
    return rc;
}

static int add_local(struct nodes *n, uv_loop_t *loop, const char *helper, struct err *e)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_add(&argv, helper);
    strv_add(&argv, "serve");
    return add_peer(n, loop, "this machine's pipetune-node", &argv, e);
}

static int add_remote(struct nodes *n, uv_loop_t *loop, const struct node_cfg *cfg, const char *helper, struct err *e)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    const char *ssh = getenv("PIPETUNE_SSH");
    int rc = ssh_argv(&argv, ssh && *ssh ? ssh : "ssh", cfg, helper, e);
    char name[300];
    (void)snprintf(name, sizeof name, "node '%s'", cfg->host);
    return rc < 0 ? rc : add_peer(n, loop, name, &argv, e);
}

/* What `pipetune nodes put` has put there, of this very helper. */
static void find_put(struct nodes *n, const char *helper)
{
    char hash[SHA256_HEX_MAX];
    if (sha256_file(helper, hash, NULL) < 0 || ssh_put_path(n->put, hash, NULL) < 0)
        n->put[0] = '\0'; /* one that cannot be read was put nowhere */
}

static int add_peers(struct nodes *n, uv_loop_t *loop, const struct node_cfg *cfg, size_t n_cfg, const char *helper,
                     struct err *e)
{
    size_t all = 1;
    for (size_t i = 0; i < n_cfg; i++)
        all += cfg[i].host != NULL;
    n->names = calloc(all, sizeof *n->names);
    n->desired = n->names ? desired_new(n->names, all) : NULL;
    int rc = n->desired ? add_local(n, loop, helper, e) : err_sys(e, -ENOMEM, "cannot start '%s'", helper);
    if (all > 1)
        find_put(n, helper);
    for (size_t i = 0; i < n_cfg && rc == 0; i++) {
        if (!cfg[i].host)
            continue;
        rc = add_remote(n, loop, &cfg[i], helper, e);
        if (rc == 0 && n->put[0])
            node_peer_or(n->peers[n->n - 1], n->put);
    }
    return rc;
}

static void free_all(struct nodes *n)
{
    for (size_t i = 0; i < n->n; i++)
        node_peer_free(n->peers[i]);
    desired_free(n->desired);
    for (struct remark *r; (r = n->remarks); free(r))
        n->remarks = r->next;
    free(n->names);
}

/* ssh passes over a key that it cannot read or that others can, and the note would be about something else. */
static void check_key(struct nodes *n, size_t peer, const char *key)
{
    struct stat st;
    char why[512];
    if (stat(key, &st) < 0)
        (void)snprintf(why, sizeof why, "key '%s': %s", key, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        (void)snprintf(why, sizeof why, "key '%s' is not a plain file", key);
    else if (st.st_mode & 077)
        (void)snprintf(why, sizeof why, "key '%s' can be read by others: chmod 600", key);
    else
        return;
    node_peer_give_up(n->peers[peer], why);
}

static void begin_all(struct nodes *n, const struct node_cfg *cfg, size_t n_cfg)
{
    size_t peer = 1;
    for (size_t i = 0; i < n_cfg; i++)
        if (cfg[i].host && cfg[i].key)
            check_key(n, peer++, cfg[i].key);
        else
            peer += cfg[i].host != NULL;
    for (size_t i = 0; i < n->n; i++)
        node_peer_begin(n->peers[i]);
}

int nodes_open(struct nodes **out, uv_loop_t *loop, const struct node_cfg *cfg, size_t n_cfg, const char *helper,
               const struct app_workers *workers, const struct nodes_ops *ops, void *ctx, struct err *e)
{
    struct nodes *n = calloc(1, sizeof *n + (n_cfg + 1) * sizeof n->peers[0]);
    if (!n)
        return err_sys(e, -ENOMEM, "cannot start '%s'", helper);
    n->workers = workers;
    n->ops = ops;
    n->ctx = ctx;
    int rc = add_peers(n, loop, cfg, n_cfg, helper, e);
    if (rc < 0) {
        free_all(n);
        free(n);
        return rc;
    }
    (void)uv_timer_init(loop, &n->tick); /* neither can fail */
    (void)uv_timer_init(loop, &n->tell);
    n->tick.data = n->tell.data = n;
    n->handles = 2;
    n->ticked_ms = clock_ms();
    (void)uv_timer_start(&n->tick, on_tick, TICK_MS, TICK_MS);
    begin_all(n, cfg, n_cfg);
    *out = n;
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct nodes *n = h->data;
    if (--n->handles == 0)
        free(n);
}

void nodes_close(struct nodes *n)
{
    if (!n || n->closed)
        return;
    n->closed = true;
    free_all(n);
    uv_close((uv_handle_t *)&n->tick, on_closed);
    uv_close((uv_handle_t *)&n->tell, on_closed);
}
