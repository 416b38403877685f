#include "live/nodes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/node_peer.h"
#include "live/ssh.h"

enum { TICK_MS = 250, LATE_MS = 2000, ANSWER_MS = 5000, METERING_MIN_MS = 100, METERING_MAX_MS = 60000 };

/* A launch that was asked for and not released: what is wanted of it, and what each node has of it. */
struct launch {
    struct launch *next;
    uint64_t serial;  /* never used twice: answers come late */
    uint64_t version; /* of `want`, counted up by every nodes_apply() */
    char tag[NODE_TAG_MAX + 1];
    struct nodes_want want; /* its cpus are owned */
    bool changed;           /* to be told */
    struct node_found parts[];
};

/* One nodes_apply() that is not answered yet. */
struct order {
    struct order *next;
    uint64_t id;
    struct node_about about;
    int64_t until_ms;
    bool done;
    struct nodes_have have; /* once done */
    char why[512];          /* "": nothing is missing */
    size_t n_waiting;
    bool waiting[]; /* for each node */
};

/* A launch whose processes are measured. */
struct sampled {
    struct sampled *next;
    struct nodes_sampling how;
    char tag[NODE_TAG_MAX + 1];
};

struct remark {
    struct remark *next;
    char text[];
};

struct nodes {
    const struct nodes_ops *ops;
    void *ctx;
    uv_timer_t tick;
    uv_timer_t tell; /* runs once, at the loop's next round: callbacks never come from within a call */
    int handles;     /* not closed yet */
    bool closed;
    int64_t ticked_ms;
    uint64_t last_serial;
    struct launch *launches;
    struct sampled *sampled;
    struct nodes_metering metering; /* its names are `meters` */
    char meters[METER_NAMES_MAX + 1];
    struct order *orders;   /* oldest first */
    struct remark *remarks; /* oldest first */
    size_t n;
    struct node_peer *peers[]; /* peers[0] is this machine */
};

/* --- telling ---------------------------------------------------------------------------------------------------------- */

static struct nodes_have have_of(const struct nodes *n, const struct launch *l)
{
    struct nodes_have have = { 0 };
    for (size_t i = 0; i < n->n; i++) {
        const struct node_found *f = &l->parts[i];
        have.processes += f->processes;
        have.frequency_khz = fmax(have.frequency_khz, f->frequency_khz);
        have.power_cap_w = fmax(have.power_cap_w, f->power_cap_w);
        /* Where there are no slots there is only the driver, whose CPUs are not the executors'. */
        if (f->processes > 0 && (l->want.local || f->slots > 0))
            have.cores += f->cpus;
    }
    return have;
}

static struct launch *changed_launch(struct nodes *n)
{
    struct launch *l = n->launches;
    while (l && !l->changed)
        l = l->next;
    return l;
}

static struct order *take_done_order(struct nodes *n)
{
    struct order **at = &n->orders;
    while (*at && !(*at)->done)
        at = &(*at)->next;
    struct order *o = *at;
    if (o)
        *at = o->next;
    return o;
}

static struct remark *take_remark(struct nodes *n)
{
    struct remark *r = n->remarks;
    if (r)
        n->remarks = r->next;
    return r;
}

/* Tells one thing; false when there is none. What is told is off the lists first: the callee may call anything. */
static bool tell_one(struct nodes *n)
{
    AUTO_FREE struct remark *r = take_remark(n);
    AUTO_FREE struct order *o = r ? NULL : take_done_order(n);
    struct launch *l = r || o ? NULL : changed_launch(n);
    if (r)
        n->ops->note(n->ctx, r->text);
    if (o)
        n->ops->applied(n->ctx, o->id, &o->have, o->why[0] ? o->why : NULL);
    if (l) {
        struct nodes_have have = have_of(n, l);
        char tag[sizeof l->tag];
        memcpy(tag, l->tag, sizeof tag);
        l->changed = false;
        n->ops->changed(n->ctx, tag, &have);
    }
    return r || o || l;
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

/* --- orders ----------------------------------------------------------------------------------------------------------- */

static struct launch *launch_by_serial(struct nodes *n, uint64_t serial)
{
    struct launch *l = n->launches;
    while (l && l->serial != serial)
        l = l->next;
    return l;
}

static struct launch *launch_by_tag(const struct nodes *n, const char *tag)
{
    struct launch *l = n->launches;
    while (l && strcmp(l->tag, tag) != 0)
        l = l->next;
    return l;
}

static void add_why(struct order *o, const char *who, const char *why)
{
    size_t len = strlen(o->why);
    (void)snprintf(o->why + len, sizeof o->why - len, "%s%s%s%s", len ? "; " : "", who, *who ? ": " : "", why);
}

static void finish(struct nodes *n, struct order *o)
{
    struct launch *l = launch_by_serial(n, o->about.launch);
    if (l)
        o->have = have_of(n, l);
    o->done = true;
    tell_soon(n);
}

/* The order has an end on this node, a good one when `why` is NULL. */
static void settle(struct nodes *n, struct order *o, size_t peer, const char *why)
{
    if (o->done || !o->waiting[peer])
        return;
    o->waiting[peer] = false;
    o->n_waiting--;
    if (why)
        add_why(o, node_peer_name(n->peers[peer]), why);
    if (o->n_waiting == 0)
        finish(n, o);
}

static void drop_orders(struct nodes *n, uint64_t serial, const char *why)
{
    for (struct order *o = n->orders; o; o = o->next) {
        if (o->about.launch != serial || o->done)
            continue;
        add_why(o, "", why);
        finish(n, o);
    }
}

/* `held_up_ms`: the loop did not run for so long, and an answer may wait in the pipe. */
static void check_overdue(struct nodes *n, int64_t now, int64_t held_up_ms)
{
    for (struct order *o = n->orders; o; o = o->next) {
        o->until_ms += held_up_ms;
        for (size_t i = 0; i < n->n && now >= o->until_ms; i++)
            settle(n, o, i, "has not answered within 5 s");
    }
}

/* --- what the nodes tell ------------------------------------------------------------------------------------------------ */

static bool concerns(size_t peer, const struct nodes_want *want)
{
    return peer == 0 || !want->local;
}

static void ask(struct nodes *n, struct launch *l, size_t peer)
{
    struct node_about about = { .launch = l->serial, .version = l->version };
    int rc = node_peer_apply(n->peers[peer], &l->want, about);
    if (rc == 0)
        return;
    struct err e;
    (void)err_sys(&e, rc, "it could not be asked");
    for (struct order *o = n->orders; o; o = o->next)
        if (o->about.launch == l->serial)
            settle(n, o, peer, e.text);
}

/* Two helpers that find the same processes would count and narrow them twice. */
static bool is_second(struct nodes *n, size_t peer)
{
    const struct node_hello *mine = node_peer_hello(n->peers[peer]);
    for (size_t i = 0; mine->sees[0] && i < n->n; i++) {
        const struct node_hello *other = node_peer_hello(n->peers[i]);
        if (i == peer || !other || node_peer_state(n->peers[i]) != NODE_READY || strcmp(other->sees, mine->sees) != 0)
            continue;
        char why[256];
        (void)snprintf(why, sizeof why, "it sees the processes that %s sees already", node_peer_name(n->peers[i]));
        node_peer_give_up(n->peers[peer > i ? peer : i], why);
        return peer > i;
    }
    return false;
}

static void on_ready(void *ctx, size_t peer)
{
    struct nodes *n = ctx;
    if (is_second(n, peer))
        return;
    for (struct launch *l = n->launches; l; l = l->next)
        if (concerns(peer, &l->want))
            ask(n, l, peer);
    for (struct sampled *s = n->sampled; s; s = s->next)
        if (peer == 0 || !s->how.local)
            node_peer_sample(n->peers[peer], s->tag, &s->how);
    if (n->metering.interval_ms > 0)
        node_peer_meter(n->peers[peer], &n->metering);
}

static const struct node_found nothing;

/* True when what was known before is no more. */
static bool set_part(struct launch *l, size_t peer, const struct node_found *found)
{
    struct node_found before = l->parts[peer];
    l->parts[peer] = *found;
    return before.processes != found->processes || before.cpus != found->cpus || before.slots != found->slots ||
           strcmp(before.shared, found->shared) != 0;
}

static struct sampled *find_sampled(const struct nodes *n, const char *tag)
{
    struct sampled *s = n->sampled;
    while (s && strcmp(s->tag, tag) != 0)
        s = s->next;
    return s;
}

static void on_answered(void *ctx, size_t peer, struct node_about about, const struct node_found *found,
                        const char *why)
{
    struct nodes *n = ctx;
    struct launch *l = launch_by_serial(n, about.launch);
    bool changed = l && set_part(l, peer, found ? found : &nothing); /* what it refuses it gives back, too */
    const struct sampled *s = l && !found ? find_sampled(n, l->tag) : NULL;
    if (s) /* … and measures no more */
        node_peer_sample(n->peers[peer], s->tag, &s->how);
    bool awaited = false;
    for (struct order *o = n->orders; o; o = o->next) {
        if (o->about.launch != about.launch || o->about.version > about.version || o->done || !o->waiting[peer])
            continue;
        awaited = true;
        settle(n, o, peer, why);
    }
    if (!changed || awaited)
        return;
    l->changed = true; /* a late answer, or one of a helper that was started again */
    tell_soon(n);
}

static void on_changed(void *ctx, size_t peer, const char *tag, const struct node_found *found)
{
    struct nodes *n = ctx;
    struct launch *l = launch_by_tag(n, tag);
    if (!l || !concerns(peer, &l->want)) /* released meanwhile */
        return;
    (void)set_part(l, peer, found);
    l->changed = true;
    tell_soon(n);
}

/* A helper that is started again had given everything back (its watchdog does, when it is killed): all its CPUs are in use. */
static struct node_found given_back(struct nodes *n, const struct launch *l, size_t peer)
{
    struct node_found f = l->parts[peer];
    const struct node_hello *h = node_peer_hello(n->peers[peer]);
    if (node_peer_state(n->peers[peer]) == NODE_LOST || !h)
        return nothing;
    if (f.cpus > 0)
        f.cpus = h->n_cpus;
    f.frequency_khz = f.power_cap_w = 0;
    f.shared[0] = '\0';
    return f;
}

static void on_ended(void *ctx, size_t peer)
{
    struct nodes *n = ctx;
    for (struct launch *l = n->launches; l; l = l->next) {
        struct node_found now = given_back(n, l, peer);
        l->changed |= set_part(l, peer, &now);
    }
    for (struct order *o = n->orders; o && node_peer_state(n->peers[peer]) == NODE_LOST; o = o->next)
        settle(n, o, peer, "is left out");
    tell_soon(n);
}

static void on_sampled(void *ctx, size_t peer, const char *tag, const struct nodes_sample *s)
{
    struct nodes *n = ctx;
    (void)peer;
    if (!n->closed && find_sampled(n, tag))
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

static const struct node_peer_ops peer_ops = { .ready = on_ready,
                                               .answered = on_answered,
                                               .changed = on_changed,
                                               .sampled = on_sampled,
                                               .metered = on_metered,
                                               .ended = on_ended,
                                               .note = on_note };

/* --- asking ------------------------------------------------------------------------------------------------------------- */

static struct order *make_order(const struct nodes *n, uint64_t id)
{
    struct order *o = calloc(1, sizeof *o + n->n * sizeof o->waiting[0]);
    if (!o)
        return NULL;
    o->id = id;
    o->until_ms = clock_ms() + ANSWER_MS;
    return o;
}

static void add_order(struct nodes *n, struct order *o)
{
    struct order **end = &n->orders;
    while (*end)
        end = &(*end)->next;
    *end = o;
}

static void free_launch(struct launch *l)
{
    if (l)
        free((int *)l->want.cpus);
    free(l);
}

static struct launch *make_launch(struct nodes *n, const char *tag)
{
    struct launch *l = calloc(1, sizeof *l + n->n * sizeof l->parts[0]);
    if (!l)
        return NULL;
    (void)snprintf(l->tag, sizeof l->tag, "%s", tag);
    l->serial = ++n->last_serial;
    l->next = n->launches;
    n->launches = l;
    return l;
}

/* Takes `cpus`. */
static void set_want(struct launch *l, const struct nodes_want *want, int *cpus)
{
    free((int *)l->want.cpus);
    l->want = *want;
    l->want.tag = l->tag;
    l->want.cpus = cpus;
    l->version++;
}

static int check_want(const struct nodes_want *w, struct err *e)
{
    if (!node_words_is_tag(w->tag))
        return err_set(e, -EINVAL, "'%s' is no launch tag", w->tag);
    if (w->cores < 1 || w->slots < 1 || w->n_cpus < 0 || w->n_cpus > NODES_MAX_CPUS)
        return err_set(e, -EINVAL, "%d cores for %d slots of %d CPUs cannot be asked for", w->cores, w->slots,
                       w->n_cpus);
    return 0;
}

static void send_order(struct nodes *n, struct order *o, struct launch *l)
{
    o->about = (struct node_about){ .launch = l->serial, .version = l->version };
    for (size_t i = 0; i < n->n; i++) {
        o->waiting[i] = concerns(i, &l->want) && node_peer_state(n->peers[i]) != NODE_LOST;
        o->n_waiting += o->waiting[i];
    }
    if (o->n_waiting == 0) {
        add_why(o, "", "no node is left that could be asked");
        finish(n, o);
    }
    for (size_t i = 0; i < n->n; i++)
        if (o->waiting[i] && node_peer_state(n->peers[i]) == NODE_READY)
            ask(n, l, i);
}

int nodes_apply(struct nodes *n, const struct nodes_want *want, uint64_t id, struct err *e)
{
    int rc = check_want(want, e);
    if (rc < 0)
        return rc;
    AUTO_FREE int *cpus = want->n_cpus ? malloc((size_t)want->n_cpus * sizeof *cpus) : NULL;
    AUTO_FREE struct order *o = make_order(n, id);
    bool memory = o && (cpus || !want->n_cpus);
    struct launch *l = launch_by_tag(n, want->tag);
    if (memory && !l)
        l = make_launch(n, want->tag); /* last: what is on the list wants something */
    if (!memory || !l)
        return err_sys(e, -ENOMEM, "cannot ask for the CPUs of '%s'", want->tag);
    if (want->n_cpus)
        memcpy(cpus, want->cpus, (size_t)want->n_cpus * sizeof *cpus);
    set_want(l, want, MOVE_PTR(cpus));
    add_order(n, o);
    send_order(n, MOVE_PTR(o), l);
    return 0;
}

static void drop_sampled(struct nodes *n, const char *tag)
{
    struct sampled **at = &n->sampled;
    while (*at && strcmp((*at)->tag, tag) != 0)
        at = &(*at)->next;
    struct sampled *s = *at;
    if (s)
        *at = s->next;
    free(s);
}

static bool is_same_sampling(const struct nodes_sampling *a, const struct nodes_sampling *b)
{
    bool events = a->events && b->events ? strcmp(a->events, b->events) == 0 : a->events == b->events;
    return a->interval_ms == b->interval_ms && strcmp(a->scope, b->scope) == 0 && events;
}

int nodes_sample(struct nodes *n, const char *tag, const struct nodes_sampling *how, struct err *e)
{
    if (!node_words_is_tag(tag))
        return err_set(e, -EINVAL, "'%s' is no launch tag", tag);
    struct sampled *s = find_sampled(n, tag);
    if (s ? is_same_sampling(&s->how, how) : how->interval_ms == 0)
        return 0;
    if (!s) {
        s = calloc(1, sizeof *s);
        if (!s)
            return err_sys(e, -ENOMEM, "cannot measure '%s'", tag);
        (void)snprintf(s->tag, sizeof s->tag, "%s", tag);
        s->next = n->sampled;
        n->sampled = s;
    }
    s->how = *how;
    for (size_t i = 0; i < n->n; i++)
        if (i == 0 || !s->how.local)
            node_peer_sample(n->peers[i], tag, how);
    if (how->interval_ms == 0)
        drop_sampled(n, tag);
    return 0;
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

void nodes_release(struct nodes *n, const char *tag)
{
    const struct sampled *sampled = find_sampled(n, tag);
    if (sampled && !launch_by_tag(n, tag)) {
        struct nodes_sampling off = sampled->how; /* of those that were asked */
        off.interval_ms = 0;
        (void)nodes_sample(n, tag, &off, NULL); /* it has a tag */
    }
    drop_sampled(n, tag);
    struct launch **at = &n->launches;
    while (*at && strcmp((*at)->tag, tag) != 0)
        at = &(*at)->next;
    struct launch *l = *at;
    if (!l)
        return;
    *at = l->next;
    drop_orders(n, l->serial, "the launch was released first");
    for (size_t i = 0; i < n->n; i++)
        if (concerns(i, &l->want))
            node_peer_release(n->peers[i], tag);
    free_launch(l);
}

bool nodes_is_shared(const struct nodes *n, const char *tag, char who[NODES_WHO_MAX])
{
    const struct launch *l = launch_by_tag(n, tag);
    for (size_t i = 0; l && i < n->n; i++) {
        if (!l->parts[i].shared[0])
            continue;
        const char *name = node_peer_name(n->peers[i]);
        (void)snprintf(who, NODES_WHO_MAX, "%s%s%.64s", l->parts[i].shared, *name ? " on " : "", name);
        return true;
    }
    return false;
}

int nodes_local_cpus(const struct nodes *n, const int **out)
{
    const struct node_hello *h = node_peer_hello(n->peers[0]);
    if (!h)
        return 0;
    *out = h->cpus;
    return h->n_cpus;
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
    check_overdue(n, now, late ? since : 0);
}

static int add_peer(struct nodes *n, uv_loop_t *loop, const char *name, struct strv *argv, struct err *e)
{
    int rc = node_peer_new(&n->peers[n->n], loop, name, n->n == 0, argv, &peer_ops, n, n->n, e);
    if (rc == 0)
        n->n++;
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

static int add_peers(struct nodes *n, uv_loop_t *loop, const struct node_cfg *cfg, size_t n_cfg, const char *helper,
                     struct err *e)
{
    int rc = add_local(n, loop, helper, e);
    for (size_t i = 0; i < n_cfg && rc == 0; i++)
        if (cfg[i].host)
            rc = add_remote(n, loop, &cfg[i], helper, e);
    return rc;
}

static void free_lists(struct nodes *n)
{
    for (size_t i = 0; i < n->n; i++)
        node_peer_free(n->peers[i]);
    for (struct launch *l; (l = n->launches); free_launch(l))
        n->launches = l->next;
    for (struct sampled *s; (s = n->sampled); free(s))
        n->sampled = s->next;
    for (struct order *o; (o = n->orders); free(o))
        n->orders = o->next;
    for (struct remark *r; (r = n->remarks); free(r))
        n->remarks = r->next;
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
               const struct nodes_ops *ops, void *ctx, struct err *e)
{
    struct nodes *n = calloc(1, sizeof *n + (n_cfg + 1) * sizeof n->peers[0]);
    if (!n)
        return err_sys(e, -ENOMEM, "cannot start '%s'", helper);
    n->ops = ops;
    n->ctx = ctx;
    int rc = add_peers(n, loop, cfg, n_cfg, helper, e);
    if (rc < 0) {
        free_lists(n);
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
    free_lists(n);
    uv_close((uv_handle_t *)&n->tick, on_closed);
    uv_close((uv_handle_t *)&n->tell, on_closed);
}
