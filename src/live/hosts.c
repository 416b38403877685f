#include "live/hosts.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "live/courier.h"
#include "live/mirror.h"
#include "live/node_peer.h"
#include "live/remote.h"
#include "live/there.h"

static const uint64_t HELD_MAX = 2ULL * MIRROR_HEARD_MAX;

enum {
    REST_MS = 60000,   /* before a host that has refused is asked again */
    REFUSALS_MAX = 10, /* one behind the other: then it is asked no more */
    IN_VAIN_MAX = 3,   /* trials that end badly on it, while others don't elsewhere */
    AT_ONCE = 64,      /* launches that a helper follows */
};

/* A place, as one of those who launch there has it. */
struct berth {
    struct host *host;
    enum hosts_client client;
};

/* A place. */
struct host {
    struct berth berths[HOSTS_CLIENTS];
    struct hosts *all;
    size_t node;
    const char *name; /* the config's */
    enum { FILES_UNKNOWN, FILES_ON_THEIR_WAY, FILES_THERE } files;
    bool greeted;           /* it was there once */
    int refusals;           /* since it took a launch last */
    int in_vain;            /* launches of ours that ended badly, one behind the other */
    int64_t rests_until_ms; /* it has refused */
    int64_t away_since_ms;  /* 0: it is there */
    int launches;           /* of ours */
    int running;            /* … those that are trials */
    uint64_t held;          /* bytes that were heard of them and are not accounted */
    char told[256];         /* why it has refused: told once */
};

/* A launch there, or on its way there. */
struct away {
    struct away *next;
    struct host *host;
    enum hosts_client client;
    uint64_t id;     /* the client's */
    uint64_t serial; /* ours, never used twice */
    char *tag, *dir;
    char *session;             /* of which it is a run; NULL: it is a launch */
    struct session_link *link; /* to the session that it is; its client's */
    struct remote *remote;     /* NULL: it is not asked for yet, or lost */
    struct mirror mirror;
    uint64_t held; /* of its host's */
    /* on its way */
    struct site_order order; /* its steps */
    struct strv steps, keep, step;
    struct parcel *parcel; /* of its own: what it goes on from; NULL: all that it needs is there */
    uv_work_t summing;     /* reads that for its sum */
    bool sums;
    struct err sum_err;
    int sum_rc;
    uint64_t sending;
    /* checkpoints: the one that is fetched, and the newest that is to be next; epoch 0: none */
    struct fetch {
        int epoch;
        char *name, *path; /* there, below its folder; here */
        bool untold;       /* the folder for checkpoints, whatever is in it */
    } now, next_one;
    uint64_t fetching;
    bool to_ask; /* at the next tick */
    bool is_ready, went, ended, freed, over, flooded;
    bool adopted;
    int64_t asked_ms;  /* when its launcher was */
    int64_t killed_ms; /* 0: it was not to be */
    char lost[160];
};

struct hosts {
    uv_loop_t *loop;
    struct nodes *nodes;
    const struct plan *plan;
    struct client {
        const struct launcher_ops *launcher;
        const struct hosts_ops *ops;
        void *ctx;
    } clients[HOSTS_CLIENTS];
    uint64_t last_serial;
    struct remotes *remotes;
    struct courier *courier;
    struct parcel parcel; /* what every trial needs */
    struct away *list;
    struct host *v; /* v[0]: this machine, of which no more is kept than how trials ended */
    bool did_well;  /* a trial has ended as it should, anywhere */
    size_t n;
};

bool hosts_wanted(const struct plan *p)
{
    return p->n_nodes > 0 && p->app.kind->folder && app_is_local(&p->app);
}

static int64_t rest_ms(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *ms = getenv("PIPETUNE_REST_MS"); /* tests don't wait as long as people do */
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    return REST_MS;
}

static int64_t patience_ms(int64_t ms)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *times = getenv("PIPETUNE_HOSTS_HASTE"); /* … and give up sooner */
    if (times)
        return ms / strtol(times, NULL, 10);
#endif
    return ms;
}

static struct node_peer *peer_of(const struct host *h)
{
    return nodes_peer(h->all->nodes, h->node);
}

static const char *root_of(const struct host *h)
{
    const struct node_hello *hello = node_peer_hello(peer_of(h));
    return hello ? hello->root : "";
}

static bool may_come(const struct host *h)
{
    return node_peer_state(peer_of(h)) != NODE_LOST && h->refusals < REFUSALS_MAX;
}

static struct away *find(const struct hosts *h, uint64_t serial)
{
    struct away *a = h->list;
    while (a && (a->serial != serial || a->freed))
        a = a->next;
    return a;
}

static const struct client *client_of(const struct away *a)
{
    return &a->host->all->clients[a->client];
}

static void note_text(struct hosts *h, const char *text)
{
    h->clients[HOSTS_TRIALS].ops->note(h->clients[HOSTS_TRIALS].ctx, text);
}

static void note(struct host *h, const char *what, const char *why)
{
    char text[512];
    (void)snprintf(text, sizeof text, "host '%s' %s: %s", h->name, what, why);
    note_text(h->all, text);
}

/* One time too often in vain: it gets no more. True: that was it. */
static bool is_in_vain(struct host *h, const char *why)
{
    if (++h->refusals != REFUSALS_MAX)
        return false;
    note(h, "gets no more trials, of which it took none in ten times", why);
    return true;
}

/* It takes no launches for a while, or any more. Told once for each reason. */
static void rest(struct host *h, const char *why)
{
    char what[64];
    h->rests_until_ms = clock_ms() + rest_ms();
    if (is_in_vain(h, why) || strcmp(h->told, why) == 0)
        return;
    (void)snprintf(h->told, sizeof h->told, "%s", why);
    (void)snprintf(what, sizeof what, "is left alone for %d s", (int)(rest_ms() / 1000));
    note(h, what, why);
}

/* --- one launch: its end here ------------------------------------------------------------------------------------------- */

static void fetch_done(struct fetch *f)
{
    free(f->name);
    free(f->path);
    *f = (struct fetch){ 0 };
}

static void free_away(struct away *a)
{
    struct away **at = a->host ? &a->host->all->list : NULL;
    while (at && *at != a)
        at = &(*at)->next;
    if (at) {
        *at = a->next;
        a->host->launches--;
        a->host->running -= a->client == HOSTS_TRIALS;
        a->host->held -= a->held;
    }
    mirror_done(&a->mirror);
    site_order_done(&a->order);
    strv_done(&a->steps);
    strv_done(&a->keep);
    strv_done(&a->step);
    fetch_done(&a->now);
    fetch_done(&a->next_one);
    if (a->parcel)
        parcel_done(a->parcel);
    free(a->parcel);
    free(a->session);
    free(a->tag);
    free(a->dir);
    free(a);
}

static void unplace(struct away *a, const char *why)
{
    const struct client *c = client_of(a);
    c->ops->unplaced(c->ctx, a->id, why);
}

/* Told when all of it has come, its checkpoints, too. */
static void end_when_fetched(struct away *a)
{
    const struct client *c = client_of(a);
    if (!a->ended || a->fetching || a->freed || a->over)
        return;
    a->over = true;
    c->launcher->gone(c->ctx, a->id);
}

static void has_ended(struct away *a)
{
    struct hosts *h = a->host->all;
    const struct client *c = client_of(a);
    uint64_t serial = a->serial;
    a->ended = true;
    c->ops->ended(c->ctx, a->id);
    a = find(h, serial);
    if (a)
        end_when_fetched(a);
}

static void refused(struct away *a, const char *why);

static void lose(struct away *a, const char *why)
{
    struct hosts *h = a->host->all;
    if (!a->went && node_peer_state(peer_of(a->host)) == NODE_READY) {
        refused(a, why);
        return;
    }
    if (!a->went) {
        unplace(a, why);
        return;
    }
    (void)snprintf(a->lost, sizeof a->lost, "%s", why);
    if (a->remote)
        remote_abandon(MOVE_PTR(a->remote));
    if (a->fetching)
        courier_cancel(h->courier, a->fetching);
    a->fetching = 0;
    fetch_done(&a->now);
    fetch_done(&a->next_one);
    has_ended(a);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------------- */

static void on_fetched(void *ctx, uint64_t job, const char *why);

static void fetch_next(struct away *a)
{
    struct hosts *h = a->host->all;
    if (a->fetching || a->next_one.epoch == 0)
        return;
    a->now = a->next_one;
    a->next_one = (struct fetch){ 0 };
    a->fetching = courier_fetch(h->courier, a->host->node, a->tag, a->now.name, a->now.path, on_fetched, a);
    if (!a->fetching) /* without memory it is not to be had: an older one is there */
        fetch_done(&a->now);
}

static void on_fetched(void *ctx, uint64_t job, const char *why)
{
    struct away *a = ctx;
    struct hosts *h = a->host->all;
    uint64_t serial = a->serial;
    char text[640];
    (void)job;
    struct fetch was = a->now;
    a->now = (struct fetch){ 0 };
    a->fetching = 0;
    bool by_name = h->plan->app.kind->part; /* which is found, whoever put it there */
    if (why && !was.untold) {
        (void)snprintf(text, sizeof text, "host '%s': checkpoint '%.200s' is not here: %s", a->host->name, was.name,
                       why);
        note_text(h, text);
    } else if (!why && !by_name) {
        client_of(a)->ops->checkpoint(client_of(a)->ctx, a->id, was.epoch, was.path);
    }
    fetch_done(&was);
    a = find(h, serial);
    if (!a)
        return;
    fetch_next(a);
    end_when_fetched(a);
}

/* Of "…/TAG/work/c-3" what is behind the tag; NULL: it is not below the launch's folder. */
static const char *name_below(const struct away *a, const char *path)
{
    AUTO_BUF struct buf mark = BUF_INIT;
    buf_printf(&mark, "/%s/", a->tag);
    const char *at = mark.failed ? NULL : strstr(path, buf_text(&mark));
    const char *name = at ? at + mark.len : NULL;
    return name && beneath_is_name(name) ? name : NULL;
}

static int checkpoint(void *own, int epoch, const char *path, struct err *e)
{
    struct away *a = own;
    const char *name = !path ? "checkpoint" : a ? name_below(a, path) : NULL;
    char text[512];
    if (!a || a->lost[0])
        return 1; /* it does not come any more */
    if (!name) {
        (void)snprintf(text, sizeof text,
                       "host '%s': checkpoint '%.200s' is not fetched: it is not below the trial's folder there",
                       a->host->name, path);
        note_text(a->host->all, text);
        return 1;
    }
    const char *last = strrchr(name, '/');
    struct fetch f = { .epoch = epoch, .name = strdup(name), .untold = !path };
    const char *to = path ? (last ? last + 1 : name) : a->host->all->plan->app.kind->part ? "" : "whole";
    if (f.name && asprintf(&f.path, "%s/checkpoint%s%s", a->dir, *to ? "/" : "", to) < 0)
        f.path = NULL;
    if (!f.name || !f.path) {
        fetch_done(&f);
        return err_sys(e, -ENOMEM, "checkpoint '%s'", path);
    }
    fetch_done(&a->next_one); /* a newer one is there */
    a->next_one = f;
    fetch_next(a);
    return 1;
}

/* --- starting ----------------------------------------------------------------------------------------------------------- */

static void refused(struct away *a, const char *why)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s", why);
    if (strstr(text, "was not sent here"))
        a->host->files = FILES_UNKNOWN;
    if (!a->session) /* that one has gone says nothing of its host */
        rest(a->host, text);
    unplace(a, text);
}

/* It is served where it is: there is a folder to be made, with what it goes on from. */
static void ask_for_run(struct away *a)
{
    struct hosts *h = a->host->all;
    struct err e = { 0 };
    int rc = remote_run(&a->remote, h->remotes, a->host->node, a->serial, a->tag, a->session,
                        a->parcel ? a->parcel->hash : NULL, &e);
    a->asked_ms = clock_ms();
    if (rc < 0)
        unplace(a, e.text);
}

/* All that it needs is there. */
static void ask_for_launch(struct away *a)
{
    if (a->session) {
        ask_for_run(a);
        return;
    }
    struct hosts *h = a->host->all;
    const struct launcher_words *w = &a->order.words;
    const struct parcel *p = a->parcel ? a->parcel : &h->parcel;
    const bool serves = a->client == HOSTS_SESSIONS;
    struct err e = { 0 };
    const struct node_launch what = { .tag = a->tag,
                                      .attempt = w->attempt,
                                      .log_cap = w->log_mb << 20,
                                      .cpus = w->cpus,
                                      .steps = &a->steps,
                                      .env = &a->order.steps.env,
                                      .keep_texts = &a->keep,
                                      .step_texts = &a->step,
                                      .memory = w->memory,
                                      .answer = a->order.answer,
                                      .gang = w->gang,
                                      .mark = serves ? SESSION_MARK : NULL,
                                      .files = p->hash };
    int rc = remote_start(&a->remote, h->remotes, a->host->node, a->serial, &what, &e);
    a->asked_ms = clock_ms();
    if (rc == 0 && serves)
        remote_talk(a->remote);
    if (rc == -ENOTCONN)
        unplace(a, e.text);
    else if (rc < 0)
        refused(a, e.text);
}

static void on_sent(void *ctx, uint64_t job, const char *why)
{
    struct away *a = ctx;
    (void)job;
    a->sending = 0;
    if (why)
        refused(a, why);
    else
        ask_for_launch(a);
}

/* On a thread of its own: a checkpoint may be large. */
static void sum(uv_work_t *work)
{
    struct away *a = work->data;
    const char *resume = a->order.resume, *last = strrchr(resume, '/');
    AUTO_FREE char *name = io_join("resume", last ? last + 1 : resume);
    a->sum_rc =
        name ? parcel_add(a->parcel, resume, name, true, &a->sum_err) : err_sys(&a->sum_err, -ENOMEM, "'%s'", resume);
    const char *state = a->order.resume_state, *state_last = state ? strrchr(state, '/') : NULL;
    AUTO_FREE char *state_name = state ? io_join("resume", state_last ? state_last + 1 : state) : NULL;
    if (a->sum_rc == 0 && state)
        a->sum_rc = state_name ? parcel_add(a->parcel, state, state_name, true, &a->sum_err)
                               : err_sys(&a->sum_err, -ENOMEM, "'%s'", state);
    if (a->sum_rc == 0)
        a->sum_rc = parcel_seal(a->parcel, &a->sum_err);
}

static void on_summed(uv_work_t *work, int status)
{
    struct away *a = work->data;
    (void)status;
    a->sums = false;
    if (a->freed) {
        free_away(a);
        return;
    }
    if (a->sum_rc == 0)
        a->sending = courier_send(a->host->all->courier, a->host->node, a->parcel, on_sent, a);
    if (a->sum_rc < 0 || !a->sending)
        unplace(a, a->sum_rc < 0 ? a->sum_err.text : "out of memory");
}

/* What it goes on from is sent first. */
static int send_first(struct away *a, struct err *e)
{
    struct hosts *h = a->host->all;
    a->parcel = calloc(1, sizeof *a->parcel);
    int rc = a->parcel && a->session ? 0
             : a->parcel             ? parcel_add_all(a->parcel, &h->parcel, e)
                                     : err_sys(e, -ENOMEM, "launch '%s'", a->tag);
    a->summing.data = a;
    if (rc == 0 && (rc = uv_queue_work(h->loop, &a->summing, sum, on_summed)) < 0)
        rc = err_set(e, rc, "launch '%s': %s", a->tag, uv_strerror(rc));
    a->sums = rc == 0;
    return rc;
}

static struct away *make(const struct berth *b, uint64_t id, const char *tag, const char *dir, int64_t log_mb,
                         uint64_t *from, struct err *e)
{
    struct host *host = b->host;
    struct away *a = calloc(1, sizeof *a);
    if (!a) {
        (void)err_sys(e, -ENOMEM, "launch '%s'", tag);
        return NULL;
    }
    *a = (struct away){ .next = host->all->list,
                        .host = host,
                        .client = b->client,
                        .id = id,
                        .serial = ++host->all->last_serial,
                        .mirror = MIRROR_CLOSED };
    host->all->list = a;
    host->launches++;
    host->running += b->client == HOSTS_TRIALS;
    a->tag = strdup(tag);
    a->dir = strdup(dir);
    int rc = a->tag && a->dir ? mirror_open(&a->mirror, dir, log_mb, from, e) : err_sys(e, -ENOMEM, "launch '%s'", tag);
    if (rc == 0)
        return a;
    free_away(a);
    return NULL;
}

/* What of it lies on this machine alone, as the host has it: what was sent, the trial's folder, and software that is elsewhere there. */
static int list_there(const struct host *host, const struct site_order *o, struct there *out, struct err *e)
{
    const struct hosts *h = host->all;
    char below[PATH_MAX];
    int rc = env_there(&h->plan->env, &h->plan->nodes[host->node - 1].env, out, e);
    for (size_t i = 0; rc == 0 && i < h->parcel.n; i++) {
        (void)snprintf(below, sizeof below, "%s/%s/%s", root_of(host), o->words.tag, h->parcel.v[i].name);
        rc = there_add(out, h->parcel.v[i].path, below, e);
    }
    const char *last = o->resume ? strrchr(o->resume, '/') : NULL;
    AUTO_FREE char *beside = last ? strndup(o->resume, (size_t)(last - o->resume)) : NULL;
    (void)snprintf(below, sizeof below, "%s/%s/resume", root_of(host), o->words.tag);
    if (rc == 0 && last)
        rc = beside ? there_add(out, beside, below, e) : err_sys(e, -ENOMEM, "'%s'", o->resume);
    (void)snprintf(below, sizeof below, "%s/%s", root_of(host), o->words.tag);
    return rc == 0 ? there_add(out, o->words.dir, below, e) : rc;
}

/* A command's words are its own, and name files by their names in its folder. */
static int move_order(const struct host *host, struct site_order *o, struct err *e)
{
    const struct hosts *h = host->all;
    const struct strv *env = &h->plan->nodes[host->node - 1].env;
    for (size_t i = 0; i < env->n; i++)
        strv_add(&o->steps.env, env->v[i]);
    if (!h->plan->app.kind->needs)
        return 0;
    struct there there = { 0 };
    env_put(&h->plan->app, &o->steps.env);
    int rc = list_there(host, o, &there, e);
    if (rc == 0)
        rc = there_steps(&there, &o->steps, e);
    there_done(&there);
    return rc;
}

/* What is asked for when its turn comes is kept. */
static int take_order(struct away *a, struct site_order *o, struct err *e)
{
    const struct application *app = o->words.app;
    bool step = false;
    const char *text = NULL;
    for (size_t i = 0; app && (text = app->kind->needle(app, i, &step)); i++)
        strv_add(step ? &a->step : &a->keep, text);
    for (size_t i = 0; i < o->steps.n; i++)
        launcher_put_step(&a->steps, &o->steps.argv[i]);
    a->order = *o;
    *o = (struct site_order){ 0 };
    bool failed = a->step.failed || a->keep.failed || a->steps.failed || a->order.steps.env.failed;
    return failed ? err_sys(e, -ENOMEM, "launch '%s'", a->tag) : 0;
}

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e)
{
    const struct berth *b = site;
    uint64_t from;
    struct away *a = make(b, id, o->words.tag, o->words.dir, o->words.log_mb, &from, e);
    int rc = !a ? e->code : o->session ? 0 : move_order(b->host, o, e);
    if (rc == 0)
        rc = take_order(a, o, e);
    if (rc == 0)
        a->session = MOVE_PTR(a->order.session);
    if (rc == 0 && a->order.resume)
        rc = send_first(a, e);
    if (rc < 0) {
        if (a)
            free_away(a);
        return rc;
    }
    a->to_ask = !a->order.resume; /* what it may lead to is not told from within */
    *out = (struct site_launch){ hosts_site(b->host->all, b->host->node).row, a };
    return 0;
}

static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e)
{
    const struct berth *b = site;
    struct host *host = b->host;
    uint64_t from;
    struct away *a = make(b, id, row->launch, dir, host->all->plan->cfg.log_mb, &from, e);
    if (!a)
        return e->code;
    from = from < row->log_offset ? row->log_offset : from; /* what was accounted is not asked for again */
    a->went = a->adopted = true;
    a->mirror.accounted = row->log_offset;
    int rc = remote_adopt(&a->remote, host->all->remotes, host->node, a->serial, row->launch, from, e);
    if (rc < 0) {
        free_away(a);
        return rc;
    }
    if (b->client == HOSTS_SESSIONS)
        remote_talk(a->remote);
    *out = (struct site_launch){ hosts_site(host->all, host->node).row, a };
    return 0;
}

/* --- what is said to it, and asked of it --------------------------------------------------------------------------------- */

static char *path_there(const char *root, const char *tag, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s/%s", root, tag, name) < 0 ? NULL : path;
}

static int paths(void *site, const char *tag, const char *resume, struct site_paths *out, struct err *e)
{
    const struct host *host = ((const struct berth *)site)->host;
    const char *last = resume ? strrchr(resume, '/') : NULL, *root = root_of(host);
    AUTO_FREE char *name = resume ? io_join("resume", last ? last + 1 : resume) : NULL;
    out->checkpoint = path_there(root, tag, "checkpoint");
    out->library = path_there(root, tag, "work/.pipetune");
    out->resume = name ? path_there(root, tag, name) : NULL;
    out->session = strdup("-"); /* its helper says where */
    bool all = out->checkpoint && out->library && out->session && (!resume || out->resume);
    return all ? 0 : err_sys(e, -ENOMEM, "launch '%s'", tag);
}

static int go(void *own, const char *ports)
{
    struct away *a = own;
    a->went = true;
    return a->remote ? remote_go(a->remote, ports) : -ESRCH;
}

/* One that is to be killed while its host cannot be asked is not waited for. */
static void signal_launch(void *own, const struct store_attempt *row, bool hard)
{
    struct away *a = own;
    (void)row;
    if (!a || !a->remote || a->over)
        return;
    a->killed_ms = hard && !a->killed_ms ? clock_ms() : a->killed_ms;
    remote_signal(a->remote, hard);
}

static void say_stop(void *own, const struct store_attempt *row)
{
    struct away *a = own;
    (void)row;
    if (a && a->remote)
        remote_say_stop(a->remote);
}

static void accounted(void *own, uint64_t offset)
{
    struct away *a = own;
    if (!a)
        return;
    uint64_t gone = offset > a->mirror.accounted ? offset - a->mirror.accounted : 0;
    gone = gone < a->held ? gone : a->held;
    a->held -= gone;
    a->host->held -= gone;
    a->mirror.accounted = offset;
    if (a->remote)
        remote_accounted(a->remote, offset);
}

static bool is_away(void *own)
{
    const struct away *a = own;
    return a && !a->ended && a->host->away_since_ms != 0;
}

/* What a helper sees begins with it. */
static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    const struct away *a = own;
    const struct node_hello *hello = a ? node_peer_hello(peer_of(a->host)) : NULL;
    if (!hello || strlen(hello->sees) < PROC_BOOT_ID_SIZE - 1)
        return false;
    (void)snprintf(out, PROC_BOOT_ID_SIZE, "%.*s", PROC_BOOT_ID_SIZE - 1, hello->sees);
    return true;
}

/* As its helper was greeted: before that nobody knows. Of one that is lost it never will be. */
static bool ahead(void *own, int64_t *out_ms)
{
    const struct away *a = own;
    double s = a ? nodes_clock_offset_s(a->host->all->nodes, a->host->node) : NAN;
    *out_ms = isnan(s) ? 0 : (int64_t)(s * 1000);
    return !a || a->ended || !isnan(s);
}

static const char *lost(void *own)
{
    const struct away *a = own;
    return a && a->lost[0] ? a->lost : NULL;
}

static bool is_one_of_many(void *own)
{
    const struct away *a = own;
    const struct hosts *h = a ? a->host->all : NULL;
    if (h && strcmp(h->plan->cfg.places_local, "yes") == 0)
        return true;
    for (size_t i = 1; h && i <= h->n; i++)
        if (i != a->host->node && may_come(&h->v[i]))
            return true;
    return false;
}

static bool owes(void *own)
{
    const struct away *a = own;
    return a && !a->ended && (a->fetching || a->next_one.epoch || a->host->away_since_ms);
}

/* --- a session's words --------------------------------------------------------------------------------------------------- */

static int say_words(void *ctx, const char *bytes, size_t n)
{
    const struct away *a = ctx;
    return a->remote ? remote_say(a->remote, bytes, n) : -ENOTCONN;
}

static void on_link_closed(void *ctx)
{
    struct away *a = ctx;
    a->link = NULL;
}

static int talk(void *own, uv_loop_t *loop, const char *tag, const struct session_ops *ops, void *ctx, uint64_t id,
                struct session_link **out, struct err *e)
{
    static const struct session_wire wire = { say_words, on_link_closed };
    struct away *a = own;
    (void)loop, (void)tag;
    int rc = session_link_wired(&a->link, &wire, a, ops, ctx, id, e);
    if (rc == 0)
        *out = a->link;
    return rc;
}

static void on_said(void *ctx, uint64_t serial, const char *bytes, size_t n, const char *why)
{
    const struct hosts *h = ctx;
    const struct away *a = find(h, serial);
    if (!a || !a->link)
        return;
    if (bytes)
        session_link_heard(a->link, bytes, n);
    else if (why)
        session_link_gone(a->link, why);
    else
        session_link_away(a->link);
}

static void let_go(void *own, bool over)
{
    struct away *a = own;
    if (!a)
        return;
    struct hosts *h = a->host->all;
    if (a->fetching)
        courier_cancel(h->courier, a->fetching);
    if (a->sending)
        courier_cancel(h->courier, a->sending);
    a->fetching = a->sending = 0;
    if (a->remote && !a->went && !a->session)
        remote_signal(a->remote, true); /* its launcher waits for a go; its folder goes with it */
    if (a->remote)
        remote_free(MOVE_PTR(a->remote), over || !a->went);
    a->freed = true;
    if (!a->sums)
        free_away(a);
}

static const struct site_row site_there_row = { .paths = paths,
                                                .start = start,
                                                .adopt = adopt,
                                                .go = go,
                                                .signal = signal_launch,
                                                .say_stop = say_stop,
                                                .accounted = accounted,
                                                .checkpoint = checkpoint,
                                                .away = is_away,
                                                .boot_id = boot_id,
                                                .talk = talk,
                                                .owes = owes,
                                                .ahead = ahead,
                                                .lost = lost,
                                                .is_one_of_many = is_one_of_many,
                                                .let_go = let_go };

struct site hosts_site(struct hosts *h, size_t node)
{
    return (struct site){ &site_there_row, &h->v[node].berths[HOSTS_TRIALS], h->v[node].name, node };
}

struct site hosts_session_site(struct hosts *h, size_t node)
{
    return (struct site){ &site_there_row, &h->v[node].berths[HOSTS_SESSIONS], h->v[node].name, node };
}

void hosts_serve(struct hosts *h, const struct launcher_ops *launcher, const struct hosts_ops *ops, void *ctx)
{
    h->clients[HOSTS_SESSIONS] = (struct client){ launcher, ops, ctx };
}

bool hosts_serves(const struct hosts *h, size_t node)
{
    const struct node_hello *hello = node_peer_hello(peer_of(&h->v[node]));
    return hello && hello->sessions;
}

/* --- what is heard ------------------------------------------------------------------------------------------------------- */

static void on_ready(void *ctx, uint64_t serial, const struct launcher_ready *r)
{
    struct hosts *h = ctx;
    struct away *a = find(h, serial);
    if (!a)
        return;
    a->is_ready = true;
    a->host->refusals = 0;
    client_of(a)->launcher->ready(client_of(a)->ctx, a->id, r);
}

static void on_refused(void *ctx, uint64_t serial, bool busy, const char *why)
{
    struct hosts *h = ctx;
    struct away *a = find(h, serial);
    (void)busy; /* its folder is its own */
    if (!a)
        return;
    if (node_peer_state(peer_of(a->host)) == NODE_READY)
        refused(a, why);
    else
        unplace(a, why);
}

static void on_heard(void *ctx, uint64_t serial, uint64_t at, const char *bytes, size_t n)
{
    struct hosts *h = ctx;
    struct away *a = find(h, serial);
    struct err e = { 0 };
    if (!a || a->flooded)
        return;
    a->host->refusals = 0; /* whatever became of its link */
    int rc = mirror_take(&a->mirror, at, bytes, n, &e);
    a->held += n;
    a->host->held += n;
    if (rc == 0 && a->host->held > HELD_MAX) /* of all its launches together */
        rc = -EFBIG;
    a->flooded = rc == -EFBIG;
    if (rc < 0)
        client_of(a)->ops->failed(client_of(a)->ctx, a->id, rc, &e);
}

static void on_gone(void *ctx, uint64_t serial)
{
    struct hosts *h = ctx;
    struct away *a = find(h, serial);
    struct err e = { 0 };
    if (!a)
        return;
    const char *note = remote_exit(a->remote);
    if (remote_is_lost(a->remote))
        (void)snprintf(a->lost, sizeof a->lost, "its host '%s' is left out", a->host->name);
    else if (!*note && !a->adopted && !remote_has_begun(a->remote))
        (void)snprintf(a->lost, sizeof a->lost, "the link to its host '%s' broke before it began", a->host->name);
    else if (!*note)
        remote_signal(a->remote, true); /* what a launcher that was killed has left */
    int rc = *note ? mirror_end(&a->mirror, note, remote_ago_ms(a->remote), &e) : 0;
    if (rc < 0)
        client_of(a)->ops->failed(client_of(a)->ctx, a->id, rc, &e);
    else
        has_ended(a);
}

/* --- time ------------------------------------------------------------------------------------------------------------------ */

static void on_files(void *ctx, uint64_t job, const char *why)
{
    struct host *host = ctx;
    (void)job;
    host->files = why ? FILES_UNKNOWN : FILES_THERE;
    if (why)
        rest(host, why);
}

/* Who is there gets what trials need. */
static void tend_host(struct host *host, int64_t now)
{
    struct hosts *h = host->all;
    enum node_state state = node_peer_state(peer_of(host));
    if (state != NODE_READY && host->away_since_ms == 0 && host->greeted)
        (void)is_in_vain(host, "its helper has ended again and again");
    if (state != NODE_READY) {
        host->away_since_ms = host->away_since_ms ? host->away_since_ms : now;
        return;
    }
    host->away_since_ms = 0;
    host->greeted = true;
    if (now < host->rests_until_ms || host->refusals >= REFUSALS_MAX)
        return;
    if (!*root_of(host)) {
        rest(host, "its pipetune-node names no place for launches: it is older than this one, or has no HOME");
        return;
    }
    if (host->files == FILES_UNKNOWN && courier_send(h->courier, host->node, &h->parcel, on_files, host))
        host->files = FILES_ON_THEIR_WAY;
}

/* A launch that nothing more is to be awaited of. */
static const char *why_lost(const struct away *a, int64_t now, char text[160])
{
    enum { WAIT_MS = 60000 };
    const struct host *host = a->host;
    const int64_t wait_ms = patience_ms(WAIT_MS);
    int64_t away_ms = host->away_since_ms ? now - host->away_since_ms : 0;
    int64_t most_s = host->all->plan->cfg.lost_seconds;
    if (a->ended)
        return NULL;
    if (node_peer_state(peer_of(host)) == NODE_LOST)
        (void)snprintf(text, 160, "its host '%s' is left out", host->name);
    else if (away_ms > most_s * 1000)
        (void)snprintf(text, 160, "its host '%s' has not come back for %d s", host->name, (int)most_s);
    else if (a->killed_ms && away_ms > 0)
        (void)snprintf(text, 160, "its host '%s' is away, and could not be told to end it", host->name);
    else if (!a->went && a->asked_ms && !a->is_ready && now - a->asked_ms > wait_ms)
        (void)snprintf(text, 160, "its launcher on host '%s' does not answer", host->name);
    else if (a->killed_ms && now - a->killed_ms > wait_ms)
        (void)snprintf(text, 160, "its host '%s' does not end it", host->name);
    else if (a->remote && away_ms == 0 && remote_owes_ms(a->remote, now) > wait_ms)
        (void)snprintf(text, 160, "its host '%s' does not tell the rest of it", host->name);
    else
        return NULL;
    return text;
}

void hosts_tick(struct hosts *h)
{
    int64_t now = clock_ms();
    char text[160];
    courier_tick(h->courier);
    remotes_tick(h->remotes);
    for (size_t i = 1; i <= h->n; i++)
        tend_host(&h->v[i], now);
    for (struct away *a = h->list; a;) { /* what is told may change the list */
        const char *why = a->freed ? NULL : why_lost(a, now, text);
        bool asks = a->to_ask && !a->freed && !why;
        if (!why && !asks) {
            a = a->next;
            continue;
        }
        a->to_ask = false;
        if (why)
            lose(a, why);
        else
            ask_for_launch(a);
        a = h->list;
    }
}

/* --- beginning and end ------------------------------------------------------------------------------------------------------ */

size_t hosts_count(const struct hosts *h)
{
    return h ? h->n : 0;
}

const char *hosts_name(const struct hosts *h, size_t node)
{
    return h->v[node].name;
}

size_t hosts_find(const struct hosts *h, const char *name)
{
    for (size_t i = 1; h && i <= h->n; i++)
        if (strcmp(h->v[i].name, name) == 0)
            return i;
    return 0;
}

bool hosts_takes(const struct hosts *h, size_t node)
{
    const struct host *host = &h->v[node];
    return node_peer_state(peer_of(host)) == NODE_READY && host->files == FILES_THERE && host->launches + 1 < AT_ONCE &&
           clock_ms() >= host->rests_until_ms && host->refusals < REFUSALS_MAX;
}

int hosts_running(const struct hosts *h, size_t node)
{
    return h->v[node].running;
}

bool hosts_is_given_up(const struct hosts *h, size_t node)
{
    return !may_come(&h->v[node]);
}

bool hosts_may_come(const struct hosts *h)
{
    for (size_t i = 1; h && i <= h->n; i++)
        if (may_come(&h->v[i]))
            return true;
    return false;
}

/* One on which nothing comes to anything while it does elsewhere would take all that wait, and lose each. */
void hosts_ended_on(struct hosts *h, size_t node, bool well, const char *why)
{
    struct host *host = &h->v[node];
    char text[256];
    h->did_well |= well;
    host->in_vain = well ? 0 : host->in_vain + 1;
    if (node == 0 || host->in_vain < IN_VAIN_MAX || !h->did_well)
        return;
    host->in_vain = 0;
    (void)snprintf(text, sizeof text, "%d trials in a row came to nothing there, the last: %s", IN_VAIN_MAX, why);
    rest(host, text);
}

static void leave_installed(const struct env *v, struct strv *files)
{
    AUTO_STRV struct strv left = STRV_INIT;
    for (size_t i = 0; i < files->n; i++) {
        if (!env_is_everywhere(v, files->v[i]))
            strv_add(&left, files->v[i]);
    }
    left.failed |= files->failed;
    strv_done(files);
    *files = left;
    left = STRV_INIT;
}

/* A Python application finds the modules beside it. */
static int add_modules(const struct strv *files, struct strv *out, struct err *e)
{
    for (size_t i = 0; i < files->n; i++) {
        const char *slash = strrchr(files->v[i], '/'), *dot = strrchr(files->v[i], '.');
        AUTO_FREE char *pattern = NULL;
        glob_t found;
        if (!slash || !dot || strcmp(dot, ".py") != 0)
            continue;
        if (asprintf(&pattern, "%.*s/*.py", (int)(slash - files->v[i]), files->v[i]) < 0)
            return err_sys(e, -ENOMEM, "files for other hosts");
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            strv_add(out, found.gl_pathv[k]);
        globfree(&found);
    }
    return out->failed ? err_sys(e, -ENOMEM, "files for other hosts") : 0;
}

static int make_parcel(struct parcel *out, const struct plan *p, struct err *e)
{
    AUTO_STRV struct strv files = STRV_INIT, words = STRV_INIT, modules = STRV_INIT;
    AUTO_FREE char *folder = p->app.kind->folder(&p->app);
    const char *library = env_tools(&p->env).library;
    AUTO_FREE char *python = library ? io_join(library, "pipetune.py") : NULL;
    p->app.kind->files(&p->app, &files);
    p->app.kind->identity(&p->app, &words);
    if (p->app.kind->needs) {
        leave_installed(&p->env, &files);
        leave_installed(&p->env, &words);
    }
    int rc = folder && !files.failed && !words.failed ? 0 : err_sys(e, -ENOMEM, "files for other hosts");
    if (rc == 0)
        rc = parcel_add_app(out, folder, &files, &words, e);
    if (rc == 0 && p->app.kind->needs)
        rc = add_modules(&files, &modules, e);
    if (rc == 0)
        rc = parcel_add_app(out, folder, &modules, &modules, e);
    if (rc == 0 && python && io_exists(python))
        rc = parcel_add(out, python, "work/.pipetune/pipetune.py", false, e);
    const char *own[ENV_OWN_MAX];
    size_t n_own = env_own_files(&p->env, &p->app, own);
    for (size_t i = 0; rc == 0 && i < n_own; i++) {
        const char *last = strrchr(own[i], '/');
        AUTO_FREE char *name = io_join("work/.pipetune", last ? last + 1 : own[i]);
        rc = name ? parcel_add(out, own[i], name, false, e) : err_sys(e, -ENOMEM, "'%s'", own[i]);
    }
    return rc < 0 ? rc : parcel_seal(out, e);
}

int hosts_open(struct hosts **out, uv_loop_t *loop, struct nodes *nodes, const struct plan *p,
               const struct launcher_ops *launcher, const struct hosts_ops *ops, void *ctx, struct err *e)
{
    static const struct remote_ops calls = { { on_ready, on_refused, on_gone }, on_heard, on_said, true };
    struct hosts *h = calloc(1, sizeof *h);
    struct host *v = h ? calloc(p->n_nodes + 1, sizeof *v) : NULL;
    if (!v) {
        free(h);
        return err_sys(e, -ENOMEM, "other hosts");
    }
    *h = (struct hosts){ .loop = loop, .nodes = nodes, .plan = p, .v = v, .n = p->n_nodes };
    h->clients[HOSTS_TRIALS] = (struct client){ launcher, ops, ctx };
    for (size_t i = 1; i <= h->n; i++)
        v[i] = (struct host){ .all = h,
                              .node = i,
                              .name = p->nodes[i - 1].host,
                              .berths = { { &v[i], HOSTS_TRIALS }, { &v[i], HOSTS_SESSIONS } } };
    bool secret = p->secrets.knobs && p->app.kind->needs;
    int rc = secret ? err_set(e, -EINVAL, "secrets of systemParameters are not sent to the hosts of 'nodes'")
                    : make_parcel(&h->parcel, p, e);
    if (rc == 0)
        rc = remotes_open(&h->remotes, nodes, &calls, h, e);
    if (rc == 0)
        rc = courier_open(&h->courier, nodes, e);
    if (rc < 0) {
        hosts_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

/* A thread may still read for one of them: that one is freed when it is done. */
void hosts_close(struct hosts *h)
{
    if (!h)
        return;
    for (struct away *a = h->list, *next; a; a = next) {
        next = a->next;
        if (a->sums)
            a->host = NULL;
        else
            free_away(a);
    }
    courier_close(h->courier);
    remotes_close(h->remotes);
    parcel_done(&h->parcel);
    free(h->v);
    free(h);
}
