#include "live/node_peer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/node_link.h"

enum {
    LEASE_MS = 5000,
    SILENT_MS = 15000,
    HELLO_MS = 30000, /* connecting may take 10 s, and a login shell its own time */
    AGAIN_MS = 10000,
    AGAIN_MAX = 5,
    OPEN_MAX = 256,         /* requests that wait for an answer */
    PREFACE_MAX = 64 << 10, /* bytes that a login shell may print before the hello's answer */
    PREFACE_LINE_MAX = 100,
    REFUSED_MAX = 1024,
    COMPLAINTS_MAX = 20,  /* that are told of one that finds another reason each time */
    EVENTS_PER_S = 2000,  /* of a helper that measures 64 launches ten times a second … */
    EVENTS_MAX = 20000,   /* … and of what has come when nobody listened for a while */
    READINGS_SPARE = 100, /* that may come beyond what was asked for, for the same reason */
    NOT_FOUND = 127,      /* as a shell says it */
};

struct request {
    uint64_t id;
    enum node_verb verb;
    uint64_t stamp; /* NODE_APPLY: of what is wanted */
    int64_t sent_ms;
};

struct node_peer {
    const struct app_workers *workers;
    struct desired *table;
    const struct node_peer_ops *ops;
    void *ctx;
    size_t number;
    uv_loop_t *loop;
    char *name;
    bool local;
    struct strv argv;
    const char *other;   /* the helper's path, where there is none at the first; NULL: there is no other (any more) */
    char not_found[256]; /* what was said where there was none; "" before */
    enum node_state state;
    struct node_link *link; /* NULL in NODE_AGAIN and NODE_LOST */
    int starts;
    int64_t started_ms, heard_ms, leased_ms;
    uint64_t last_id;
    struct request open[OPEN_MAX];
    size_t n_open;
    size_t preface; /* bytes before the hello's answer */
    char preface_line[PREFACE_LINE_MAX];
    char complaint[256];       /* of the last event: the same is not told twice in a row */
    char refused[REFUSED_MAX]; /* meters whose refusal was told, with commas between */
    bool kept;                 /* it is started again, however often that takes */
    int complaints;            /* that were told */
    bool unread;               /* that a sample could not be read was told */
    double events;             /* that it may tell of at once … */
    int64_t events_ms;         /* … as of then */
    int64_t metered_ms;        /* since when it reads meters so … */
    int meters, meter_ms;      /* … this many, this often */
    int64_t readings;          /* … and what has come of them */
    double meters_ahead_s;     /* its clock, as known when the first reading came; NAN: none came since its hello */
    struct node_hello hello;
    int64_t answered_real_ms; /* our clock when the hello was answered */
    int64_t base_ms; /* what our clock showed when this machine was started, as it was set when this was made … */
    int64_t hello_base_ms; /* … and when the hello was answered */
    int64_t set_ms;        /* by how much it was set since, as far as that is to be taken off */
    int64_t round_ms;      /* the shortest time that a lease and its answer took; < 0: none yet */
};

/* Tests don't wait as long as people do: PIPETUNE_NODES_SPEED does more often what is done now and then, PIPETUNE_NODES_HASTE
 * gives up sooner. Where nobody is silent on purpose the second stays away: a helper is slow on a busy machine. */
static int64_t sooner_ms(int64_t ms, const char *name)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *times = getenv(name);
    if (times)
        return ms / strtol(times, NULL, 10);
#endif
    (void)name;
    return ms;
}

static int64_t pause_ms(int64_t ms)
{
    return sooner_ms(ms, "PIPETUNE_NODES_SPEED");
}

static int64_t patience_ms(int64_t ms)
{
    return sooner_ms(ms, "PIPETUNE_NODES_HASTE");
}

static int64_t real_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t base_ms(void)
{
    return real_ms() - clock_boot_ms();
}

/* What is to be taken off a time of the node's so that it stands on our clock as that was set at the beginning. Our own machine's
 * is the same clock, which may have been set since. */
static double ahead_ms(struct node_peer *p)
{
    double offset_s = p->local ? 0 : node_peer_clock_offset_s(p);
    clock_follow(&p->set_ms, (p->local ? base_ms() : p->hello_base_ms) - p->base_ms);
    return 1000 * (isnan(offset_s) ? 0 : offset_s) + (double)p->set_ms;
}

static void __attribute__((format(printf, 2, 3))) note(struct node_peer *p, const char *fmt, ...)
{
    char what[900], text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap); /* a cut note is still a note */
    va_end(ap);
    (void)snprintf(text, sizeof text, "%s %s", p->name, what);
    p->ops->note(p->ctx, text);
}

/* --- its end --------------------------------------------------------------------------------------------------------- */

static void drop_link(struct node_peer *p)
{
    node_link_close(p->link);
    p->link = NULL;
    p->n_open = 0;
}

static void give_up(struct node_peer *p, const char *why)
{
    if (p->state == NODE_LOST)
        return;
    drop_link(p);
    p->state = NODE_LOST;
    note(p, "is left out from now on: %s", why);
    p->ops->ended(p->ctx, p->number);
}

void node_peer_give_up(struct node_peer *p, const char *why)
{
    give_up(p, why);
}

/* It ended, or is silent: the one of this machine may have been killed by accident. */
static void fail(struct node_peer *p, const char *why)
{
    if (!p->kept && (!p->local || p->starts > AGAIN_MAX)) {
        give_up(p, why);
        return;
    }
    drop_link(p);
    p->state = NODE_AGAIN;
    if (!p->kept)
        note(p, "is started again (%d of %d): %s", p->starts, AGAIN_MAX, why);
    else if (strcmp(why, p->complaint) != 0)
        note(p, "is asked again, what runs there goes on: %s", why);
    (void)snprintf(p->complaint, sizeof p->complaint, "%s", why);
    p->ops->ended(p->ctx, p->number);
}

static bool lacks_helper(const struct node_peer *p)
{
    return p->state == NODE_STARTING && node_link_exit_code(p->link) == NOT_FOUND;
}

/* The path stands before the last word. */
static bool takes_other(struct node_peer *p, const char *why)
{
    char *path = p->other && lacks_helper(p) ? strdup(p->other) : NULL;
    if (!path)
        return false;
    p->other = NULL;
    (void)snprintf(p->not_found, sizeof p->not_found, "%s", why);
    free(p->argv.v[p->argv.n - 2]);
    p->argv.v[p->argv.n - 2] = path;
    return true;
}

static void on_lost(void *ctx, const char *why)
{
    struct node_peer *p = ctx;
    char text[900];
    bool greeted = p->state == NODE_READY;
    if (takes_other(p, why)) {
        drop_link(p);
        p->starts--;
        node_peer_begin(p);
        return;
    }
    if (p->not_found[0] && lacks_helper(p)) /* there is none at either path: the first is the one that people know of */
        (void)snprintf(text, sizeof text, "%s", p->not_found);
    else if (greeted || p->preface == 0)
        (void)snprintf(text, sizeof text, "%s", why);
    else
        (void)snprintf(text, sizeof text, "%s; before that came '%s'", why, p->preface_line);
    fail(p, text);
}

/* --- to it ----------------------------------------------------------------------------------------------------------- */

/* Sends the request that is made with the next id, and notes it down. */
static int ask(struct node_peer *p, const struct buf *text, enum node_verb verb, uint64_t stamp)
{
    if (p->n_open == OPEN_MAX)
        return -ENOBUFS;
    int rc = text->failed ? -ENOMEM : node_link_send(p->link, text->data, text->len);
    if (rc < 0)
        return rc;
    p->open[p->n_open++] = (struct request){ .id = ++p->last_id, .verb = verb, .stamp = stamp, .sent_ms = clock_ms() };
    return 0;
}

static int ask_simple(struct node_peer *p, enum node_verb verb)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_simple(&b, p->last_id + 1, verb);
    return ask(p, &b, verb, 0);
}

int node_peer_ask(struct node_peer *p, const struct desired_ask *a)
{
    AUTO_BUF struct buf b = BUF_INIT;
    uint64_t id = p->last_id + 1;
    if (a->want)
        node_words_apply(&b, id, a->want, p->local);
    else if (a->how)
        node_words_sample(&b, id, a->tag, a->how);
    else
        node_words_tagged(&b, id, NODE_RELEASE, a->tag);
    return ask(p, &b, a->want ? NODE_APPLY : a->how ? NODE_SAMPLE : NODE_RELEASE, a->stamp);
}

uint64_t node_peer_next_id(const struct node_peer *p)
{
    return p->last_id + 1;
}

int node_peer_say(struct node_peer *p, const struct buf *text, enum node_verb verb, uint64_t stamp)
{
    return p->state == NODE_READY ? ask(p, text, verb, stamp) : -ENOTCONN;
}

void node_peer_keep(struct node_peer *p, bool keep)
{
    p->kept = keep;
}

void node_peer_or(struct node_peer *p, const char *path)
{
    p->other = path;
}

void node_peer_meter(struct node_peer *p, const struct nodes_metering *how)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (p->state != NODE_READY)
        return;
    p->readings = 0;
    p->metered_ms = clock_ms();
    p->meter_ms = how->interval_ms;
    p->meters = how->interval_ms > 0 ? 1 : 0;
    for (const char *c = p->meters ? how->meters : ""; (c = strchr(c, ',')); c++)
        p->meters++;
    node_words_meter(&b, p->last_id + 1, how);
    (void)ask(p, &b, NODE_METER, 0); /* what is not metered is absent */
}

/* --- from it --------------------------------------------------------------------------------------------------------- */

static void greet(struct node_peer *p, const struct node_words *w)
{
    struct err e = { 0 };
    struct node_hello h;
    int rc = node_hello_read(&h, w, &e);
    if (rc < 0) {
        give_up(p, e.text);
        return;
    }
    if (h.protocol != NODE_PROTOCOL) {
        (void)err_set(&e, -EPROTO, "its pipetune-node %s speaks protocol %d, this one (%s) speaks %d", h.version,
                      h.protocol, PIPETUNE_VERSION, NODE_PROTOCOL);
        give_up(p, e.text);
        return;
    }
    node_hello_done(&p->hello);
    p->hello = h;
    p->meters_ahead_s = NAN;
    p->answered_real_ms = real_ms();
    p->hello_base_ms = base_ms();
    p->leased_ms = clock_ms();
    p->state = NODE_READY;
    if (strcmp(h.version, PIPETUNE_VERSION) != 0 && p->starts == 1)
        note(p, "has pipetune-node %s, this is %s: it is used, since it speaks the same protocol", h.version,
             PIPETUNE_VERSION);
    p->ops->ready(p->ctx, p->number);
}

/* Nothing when `why` is empty. */
static void complain(struct node_peer *p, const char *what, const char *why)
{
    if (why[0] && strcmp(why, p->complaint) != 0 && p->complaints < COMPLAINTS_MAX) {
        p->complaints++;
        note(p, "%s: %s", what, why);
    }
    (void)snprintf(p->complaint, sizeof p->complaint, "%s", why);
}

static void on_apply_answer(struct node_peer *p, const struct request *r, const struct node_words *w)
{
    struct err e = { 0 };
    struct desired_seen seen;
    if (w->ok && node_seen_read(&seen, w, &e) < 0) {
        give_up(p, e.text);
        return;
    }
    desired_answered(p->table, p->number, r->stamp, w->ok ? &seen : NULL, w->ok ? NULL : w->error);
    p->ops->seen(p->ctx);
}

static void on_refused(struct node_peer *p, const struct node_refused *r)
{
    char text[1024];
    size_t len = strlen(p->refused);
    if (node_words_has_meter(p->refused, r->meter, strlen(r->meter)))
        return;
    if (len + strlen(r->meter) + 2 > sizeof p->refused)
        return; /* names without end: none that we asked for */
    (void)snprintf(p->refused + len, sizeof p->refused - len, "%s%s", len ? "," : "", r->meter);
    (void)snprintf(text, sizeof text, "%s: %s: %s", p->name, r->meter, r->why);
    p->ops->note(p->ctx, text);
}

static void on_meter_answer(struct node_peer *p, const struct node_words *w)
{
    struct node_refused refused;
    if (!w->ok)
        complain(p, "cannot read meters", w->error);
    for (size_t at = 0; w->ok && node_refused_next(&refused, w, &at);)
        on_refused(p, &refused);
}

static bool take_request(struct node_peer *p, uint64_t id, struct request *out)
{
    for (size_t i = 0; i < p->n_open; i++) {
        if (p->open[i].id != id)
            continue;
        *out = p->open[i];
        memmove(p->open + i, p->open + i + 1, (--p->n_open - i) * sizeof p->open[0]);
        return true;
    }
    return false;
}

static void on_answer(struct node_peer *p, const struct node_words *w)
{
    struct request r;
    if (!take_request(p, w->id, &r)) {
        give_up(p, "it answers what it was not asked");
        return;
    }
    int64_t took = clock_ms() - r.sent_ms;
    switch (r.verb) {
    case NODE_HELLO: greet(p, w); break;
    case NODE_APPLY: on_apply_answer(p, &r, w); break;
    case NODE_LEASE:
        if (p->round_ms < 0 || took < p->round_ms)
            p->round_ms = took;
        break;
    case NODE_SAMPLE:
        if (!w->ok)
            complain(p, "cannot measure", w->error);
        break;
    case NODE_METER: on_meter_answer(p, w); break;
    case NODE_RELEASE:
    case NODE_STOP:
    case NODE_LOOK:
    case NODE_ECHO:
    case NODE_CLEAN: break;
    case NODE_LAUNCH:
    case NODE_GO:
    case NODE_ADOPT:
    case NODE_TAIL:
    case NODE_SIGNAL:
    case NODE_FORGET:
    case NODE_SAY_STOP:
    case NODE_HAVE:
    case NODE_PUT:
    case NODE_LIST:
    case NODE_READ:
    case NODE_RUN:
    case NODE_TALK:
    case NODE_SAY: p->ops->answered(p->ctx, p->number, r.stamp, w); break;
    }
}

static void on_changed(struct node_peer *p, const struct node_words *w)
{
    struct err e = { 0 };
    struct desired_seen seen;
    if (node_seen_read(&seen, w, &e) < 0) {
        give_up(p, e.text);
        return;
    }
    complain(p, "could not bring into force again what was wanted", w->error);
    desired_changed(p->table, p->number, w->tag, &seen);
    p->ops->seen(p->ctx);
}

static void on_sampled(struct node_peer *p, const struct node_words *w)
{
    struct err e = { 0 };
    struct nodes_sample s;
    int rc = node_sample_read(&s, &p->hello.features, w, &e);
    if (rc == -EPROTO) {
        give_up(p, e.text);
        return;
    }
    if (rc < 0) { /* what it does to CPUs is well all the same */
        if (!p->unread)
            note(p, "has samples that cannot be read, and are left out: %s", e.text);
        p->unread = true;
        return;
    }
    s.node = p->number;
    s.t_ms -= ahead_ms(p);
    p->ops->sampled(p->ctx, p->number, w->tag, &s);
}

/* They are stored: of more than was asked for nobody would keep all. */
static bool reads_too_often(struct node_peer *p)
{
    int64_t due = p->meter_ms > 0 ? 2 * (clock_ms() - p->metered_ms) / p->meter_ms * p->meters : 0;
    return ++p->readings > due + READINGS_SPARE;
}

/* All readings since a hello are put on our clock by the same offset: what is contiguous there stays so when the offset is known better. */
static void on_metered(struct node_peer *p, const struct node_words *w)
{
    struct err e = { 0 };
    struct nodes_reading got;
    if (node_reading_read(&got, w, &e) < 0) {
        give_up(p, e.text);
        return;
    }
    if (reads_too_often(p))
        return;
    if (isnan(p->meters_ahead_s) || p->local)
        p->meters_ahead_s = ahead_ms(p) / 1000;
    got.node = p->number;
    got.r.from_ms -= 1000 * p->meters_ahead_s;
    got.r.to_ms -= 1000 * p->meters_ahead_s;
    p->ops->metered(p->ctx, p->number, &got);
}

/* What a login shell prints comes first; some of it is shown when nothing else comes. */
static void on_preface(struct node_peer *p, const char *line, size_t len)
{
    if (p->preface == 0)
        (void)node_words_plain(p->preface_line, sizeof p->preface_line, line, len);
    p->preface += len + 1;
    if (p->preface <= PREFACE_MAX)
        return;
    char why[PREFACE_LINE_MAX + 160];
    (void)snprintf(why, sizeof why, "it sent %d bytes and no answer; what came first is '%s'", PREFACE_MAX,
                   p->preface_line);
    give_up(p, why);
}

/* Bytes of launches and sessions come as they are asked for, unless there are none in them. */
static bool was_asked_for(const struct node_words *w)
{
    bool bytes = w->kind == NODE_BYTES || w->kind == NODE_SAID;
    const char *data = bytes ? json_string_value(json_object_get(w->body, "data")) : NULL;
    return w->kind == NODE_ANSWER || (data && *data);
}

/* What nobody asked for takes our time all the same. */
static bool is_flood(struct node_peer *p)
{
    int64_t now = clock_ms();
    p->events += (double)(now - p->events_ms) * EVENTS_PER_S / 1000;
    p->events = p->events > EVENTS_MAX ? EVENTS_MAX : p->events;
    p->events_ms = now;
    return --p->events < 0;
}

static void on_event(struct node_peer *p, const struct node_words *w)
{
    if (!was_asked_for(w) && is_flood(p)) {
        give_up(p, "it tells more than it was asked for");
        return;
    }
    switch (w->kind) {
    case NODE_CHANGED: on_changed(p, w); break;
    case NODE_SAMPLED: on_sampled(p, w); break;
    case NODE_METERED: on_metered(p, w); break;
    case NODE_LAUNCHED:
    case NODE_BYTES:
    case NODE_SAID: p->ops->launched(p->ctx, p->number, w); break;
    case NODE_ANSWER:
    case NODE_UNKNOWN: break;
    }
}

static void on_line(void *ctx, const char *line, size_t len)
{
    struct node_peer *p = ctx;
    struct node_words w;
    struct err e = { 0 };
    bool starting = p->state == NODE_STARTING;
    int rc = node_words_read(&w, line, len, &e);
    const char *glued = rc < 0 && starting ? memmem(line, len, "{\"id\"", 5) : NULL;
    if (glued) /* a login shell that set the terminal's title, without a newline */
        rc = node_words_read(&w, glued, len - (size_t)(glued - line), &e);
    if (rc < 0 && !starting) {
        give_up(p, e.text);
        return;
    }
    if (rc < 0 || (starting && (w.kind != NODE_ANSWER || p->n_open == 0 || w.id != p->open[0].id))) {
        on_preface(p, line, len);
    } else {
        if (was_asked_for(&w)) /* whoever owes an answer is silent, whatever else it tells */
            p->heard_ms = clock_ms();
        if (w.kind == NODE_ANSWER)
            on_answer(p, &w);
        else
            on_event(p, &w);
    }
    if (rc == 0)
        node_words_done(&w);
}

/* --- time ------------------------------------------------------------------------------------------------------------ */

static const struct node_link_ops link_ops = { on_line, on_lost };

void node_peer_begin(struct node_peer *p)
{
    if (p->state == NODE_LOST)
        return;
    struct err e = { 0 };
    p->state = NODE_STARTING;
    p->starts++;
    p->started_ms = p->heard_ms = clock_ms();
    p->n_open = 0;
    p->preface = 0;
    p->round_ms = -1;
    if (node_link_start(&p->link, p->loop, p->argv.v, &link_ops, p, &e) < 0) {
        give_up(p, e.text); /* what cannot be started once cannot be later */
        return;
    }
    AUTO_BUF struct buf hello = BUF_INIT;
    node_words_hello(&hello, p->last_id + 1, real_ms(), p->workers);
    int rc = ask(p, &hello, NODE_HELLO, 0);
    if (rc < 0) {
        (void)err_sys(&e, rc, "cannot write to it");
        give_up(p, e.text);
    }
}

/* How long it has owed an answer, ms. */
static int64_t owed_ms(const struct node_peer *p, int64_t now)
{
    if (p->n_open == 0)
        return 0;
    int64_t since = p->open[0].sent_ms > p->heard_ms ? p->open[0].sent_ms : p->heard_ms;
    return now - since;
}

static void check_silence(struct node_peer *p, int64_t now)
{
    bool greeted = p->state == NODE_READY;
    int64_t limit = greeted || p->local ? SILENT_MS : HELLO_MS;
    if (owed_ms(p, now) <= patience_ms(limit))
        return;
    char why[PREFACE_LINE_MAX + 160];
    (void)snprintf(why, sizeof why, "no answer for %" PRId64 " s%s%s%s", limit / 1000,
                   !greeted && p->preface ? "; all that came begins with '" : "",
                   !greeted && p->preface ? p->preface_line : "", !greeted && p->preface ? "'" : "");
    fail(p, why);
}

void node_peer_tick(struct node_peer *p, bool late)
{
    int64_t now = clock_ms();
    if (late)
        p->heard_ms = now; /* its answer may wait in the pipe */
    if (p->state == NODE_AGAIN && now - p->started_ms >= pause_ms(AGAIN_MS))
        node_peer_begin(p);
    if (p->state == NODE_READY && now - p->leased_ms >= pause_ms(LEASE_MS)) {
        p->leased_ms = now;
        (void)ask_simple(p, NODE_LEASE); /* one that cannot be written to is silent soon */
    }
    if (p->state == NODE_STARTING || p->state == NODE_READY)
        check_silence(p, now);
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

int node_peer_new(struct node_peer **out, uv_loop_t *loop, const char *name, bool local, struct strv *argv,
                  struct desired *table, const struct app_workers *workers, const struct node_peer_ops *ops, void *ctx,
                  size_t number, struct err *e)
{
    struct node_peer *p = calloc(1, sizeof *p);
    char *copy = strdup(name);
    if (!p || !copy || argv->failed) {
        free(p);
        free(copy);
        strv_done(argv);
        return err_sys(e, -ENOMEM, "%s", name);
    }
    *p = (struct node_peer){ .table = table,
                             .workers = workers,
                             .ops = ops,
                             .ctx = ctx,
                             .number = number,
                             .loop = loop,
                             .name = copy,
                             .local = local,
                             .argv = *argv,
                             .state = NODE_STARTING,
                             .base_ms = base_ms(),
                             .events = EVENTS_MAX,
                             .events_ms = clock_ms(),
                             .round_ms = -1 };
    *argv = STRV_INIT;
    *out = p;
    return 0;
}

void node_peer_free(struct node_peer *p)
{
    if (!p)
        return;
    if (p->link)
        (void)ask_simple(p, NODE_STOP); /* that its stdin ends says the same */
    node_link_close(p->link);
    node_hello_done(&p->hello);
    strv_done(&p->argv);
    free(p->name);
    free(p);
}

enum node_state node_peer_state(const struct node_peer *p)
{
    return p->state;
}

const char *node_peer_name(const struct node_peer *p)
{
    return p->name;
}

const struct node_hello *node_peer_hello(const struct node_peer *p)
{
    return p->hello.cpus ? &p->hello : NULL;
}

double node_peer_clock_offset_s(const struct node_peer *p)
{
    if (!p->hello.cpus)
        return NAN;
    /* The hello itself took as long as connecting did, so the way back is taken to be half of a lease's round. */
    int64_t back = p->round_ms > 0 ? p->round_ms / 2 : 0;
    return (double)(p->hello.clock_ms + back - p->answered_real_ms) / 1000;
}
