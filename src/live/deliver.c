#include "live/deliver.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "monitoring/influx.h"
#include "monitoring/sender.h"
#include "monitoring/spool.h"
#include "monitoring/udp.h"
#include "store/outbox.h"

/* Four: the server reads some while it syncs others to its disk. More bring nothing (make bench-influx), and are other writers' share. */
enum { CONNECT_MS = 5000, TIMEOUT_MS = 10000, IN_FLIGHT = 4 };

enum {
    TOGETHER_MS = 1000,    /* lines, and what became of others, wait so long for a transaction that comes anyway */
    TOGETHER_LINES = 5000, /* but not if there are so many */
    PUSHED_MAX = 16 << 20, /* bytes on their way to the outbox */
    AGAIN_MS = 5000,       /* after a transaction that failed */
};

/* What a worker does for us, one batch at a time. */
struct lane {
    struct deliver *d;
    uv_work_t work;
    struct influx *influx;
    struct sender_batch batch;
    struct buf text; /* its lines */
    struct influx_answer answer;
    bool working;
};

/* Lines that are not in the outbox yet. */
struct pushed {
    struct buf text;
    uint32_t lines;
};

/* Rows that a transaction is to settle. */
struct settled {
    struct outbox_end v[IN_FLIGHT];
    char why[IN_FLIGHT][256];
    size_t n;
};

struct deliver {
    const struct deliver_ops *ops;
    void *ctx;
    uv_loop_t *loop;
    uv_timer_t wake;
    struct lane lanes[IN_FLIGHT];
    unsigned working; /* lanes */
    bool closed, freed;
    struct sender *sender;
    struct udp_out udp; /* of the only lane's worker while it works */
    char *udp_url;      /* NULL: over HTTP */
    struct deliver_place place;

    struct outbox box;      /* as it is committed */
    struct pushed pushed;   /* for the next transaction */
    struct settled settled; /* likewise */
    int64_t since_ms;       /* when the oldest of both came */
    int64_t again_ms;       /* no transaction for our sake before */
    /* What the transaction under way has of ours. */
    bool rides;
    struct pushed riding;
    struct settled settling;
    struct outbox after;
    struct outbox_round round;
    struct outbox_take takes[IN_FLIGHT];
    struct sender_batch taken[IN_FLIGHT];

    struct deliver_counts counts; /* those that the sender does not keep */
    void (*ended)(void *ctx);     /* NULL: nobody asked for the end, or it was told */
    bool closing;
};

/* --- opening ---------------------------------------------------------------------------------------------------------- */

struct deliver_cfg deliver_cfg_of(const struct config *c)
{
    return (struct deliver_cfg){ .url = c->url,
                                 .database = c->database,
                                 .bucket = c->bucket,
                                 .org = c->org,
                                 .retention = c->retention_policy,
                                 .credential_file = c->credential_file,
                                 .ca_file = c->ca_file,
                                 .allow_plain = c->allow_plain_http };
}

/* A host that DNS does not know now is asked for again with each batch. */
static int open_udp(struct deliver *d, const char *url, struct err *e)
{
    d->udp_url = strdup(url);
    if (!d->udp_url)
        return err_sys(e, -ENOMEM, "'%s'", url);
    int rc = udp_out_open(&d->udp, url, 0, e);
    return rc == -EINVAL ? rc : 0;
}

static int open_influx(struct deliver *d, const struct deliver_cfg *cfg, struct err *e)
{
    struct credential secret = { 0 };
    int rc = cfg->credential_file ? credential_read(&secret, cfg->credential_file, e) : 0;
    if (rc < 0)
        return rc;
    const struct influx_cfg to = {
        .url = cfg->url,
        .database = cfg->database || cfg->bucket ? cfg->database : "energy",
        .bucket = cfg->bucket,
        .retention = cfg->retention,
        .org = cfg->org,
        .credential = cfg->credential_file ? &secret : NULL,
        .ca_file = cfg->ca_file,
        .allow_plain = cfg->allow_plain,
        .plain = influx_url_is_here(cfg->url), /* packing saves nothing on the way to this machine itself */
        .precision = LINE_NS,
        .connect_ms = CONNECT_MS,
        .timeout_ms = TIMEOUT_MS,
    };
    for (size_t i = 0; rc == 0 && i < IN_FLIGHT; i++)
        rc = influx_new(&d->lanes[i].influx, &to, e);
    credential_done(&secret);
    return rc;
}

static int take_old(void *ctx, const char *lines, size_t len, struct err *e)
{
    struct deliver *d = ctx;
    struct outbox after;
    struct outbox_round r = { .text = lines, .len = len };
    for (size_t i = 0; i < len; i++)
        r.lines += lines[i] == '\n';
    int rc = store_begin(d->place.store, e);
    if (rc < 0)
        return rc;
    rc = outbox_run(&d->box, d->place.store, &r, &after, e);
    if (rc == 0)
        rc = store_commit(d->place.store, e);
    else
        store_rollback(d->place.store);
    if (rc == 0)
        d->box = after;
    return rc;
}

static int open_outbox(struct deliver *d, struct err *e)
{
    int rc = outbox_open(&d->box, d->place.store, d->place.study, e);
    int bad = rc == 0 && d->place.old_spool ? spool_take_over(d->place.old_spool, take_old, d, e) : 0;
    if (rc < 0 || bad < 0)
        return rc < 0 ? rc : bad;
    const struct sender_cfg cfg = { .in_flight = d->udp_url ? 1 : IN_FLIGHT, .seed = uv_hrtime() ^ (uint64_t)getpid() };
    d->counts.found = d->counts.produced = d->box.waiting;
    d->sender = sender_new(&cfg, d->box.before);
    if (!d->sender)
        return err_sys(e, -ENOMEM, "cannot deliver");
    sender_rows(d->sender, (int64_t)uv_now(d->loop), d->box.top);
    if (bad > 0)
        sender_note(d->sender, SENDER_DISK,
                    "influxdb: %d files of '%s' are damaged: what is good of them is taken over", bad,
                    d->place.old_spool);
    return 0;
}

static void drop(struct deliver *d)
{
    sender_free(d->sender);
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        influx_free(d->lanes[i].influx);
        buf_done(&d->lanes[i].text);
        buf_done(&d->takes[i].text);
    }
    buf_done(&d->pushed.text);
    buf_done(&d->riding.text);
    udp_out_done(&d->udp);
    free(d->udp_url);
    free(d);
}

static void wake_at(struct deliver *d, int64_t at_ms);

static bool is_udp(const struct deliver_cfg *cfg)
{
    return strncmp(cfg->url, "udp://", 6) == 0;
}

int deliver_check(const struct deliver_cfg *cfg, struct err *e)
{
    if (is_udp(cfg))
        return udp_check_url(cfg->url, e);
    struct deliver *d = calloc(1, sizeof *d);
    if (!d)
        return err_sys(e, -ENOMEM, "cannot deliver");
    d->udp.fd = -1;
    int rc = open_influx(d, cfg, e);
    drop(d);
    return rc;
}

static bool mount(void *ctx);
static int ride(void *ctx, struct store *s, struct err *e);
static void off(void *ctx, int rc, const struct err *why);
static const struct store_rider rider = { .mount = mount, .ride = ride, .off = off };

int deliver_open(struct deliver **out, uv_loop_t *loop, const struct deliver_cfg *cfg,
                 const struct deliver_place *place, const struct deliver_ops *ops, void *ctx, struct err *e)
{
    struct deliver *d = calloc(1, sizeof *d);
    if (!d)
        return err_sys(e, -ENOMEM, "cannot deliver");
    d->udp.fd = -1;
    d->place = *place;
    d->ops = ops;
    d->ctx = ctx;
    d->loop = loop;
    d->wake.data = d;
    d->again_ms = INT64_MIN;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        d->lanes[i].d = d;
    int rc = is_udp(cfg) ? open_udp(d, cfg->url, e) : open_influx(d, cfg, e);
    if (rc == 0)
        rc = open_outbox(d, e);
    if (rc < 0) {
        drop(d);
        return rc;
    }
    (void)uv_timer_init(loop, &d->wake); /* it cannot fail */
    store_set_rider(place->store, &rider, d);
    *out = d;
    wake_at(d, 0); /* for what an earlier process left */
    return 0;
}

/* --- on the worker ---------------------------------------------------------------------------------------------------- */

/* Nobody answers over UDP: "stored" then means handed to the network. A host that was not known is asked for anew. */
static void send_datagrams(struct deliver *d, struct lane *l)
{
    struct udp_sent sent = { 0 };
    struct err e = { 0 };
    int rc = d->udp.fd < 0 ? udp_out_open(&d->udp, d->udp_url, 0, &e) : 0;
    if (rc == 0)
        rc = udp_out_send(&d->udp, l->text.data, l->text.len, &sent, &e);
    l->answer = (struct influx_answer){ .kind = rc < 0          ? INFLUX_RETRY
                                                : sent.too_long ? INFLUX_PARTIAL
                                                                : INFLUX_DELIVERED,
                                        .dropped = sent.too_long,
                                        .wait_ms = -1 };
    if (rc < 0)
        (void)snprintf(l->answer.text, sizeof l->answer.text, "%.250s", e.text);
    else if (sent.too_long)
        (void)snprintf(l->answer.text, sizeof l->answer.text, "longer than a datagram");
}

static void on_work(uv_work_t *work)
{
    struct lane *l = work->data;
    if (l->d->udp_url)
        send_datagrams(l->d, l);
    else
        influx_send(l->influx, l->text.data, l->text.len, l->batch.lines, &l->answer);
}

/* --- on the loop: what the sender wants --------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
    struct deliver *d = h->data;
    d->closed = true;
    if (!d->working)
        drop(d);
}

static void step(struct deliver *d);

/* Since when something of ours waits for a transaction. */
static void begin_waiting(struct deliver *d)
{
    if (!d->pushed.lines && !d->settled.n)
        d->since_ms = (int64_t)uv_now(d->loop);
}

static void settle(struct deliver *d, const struct lane *l, const char *reason)
{
    struct settled *s = &d->settled;
    begin_waiting(d);
    assert(s->n < IN_FLIGHT); /* a lane's next batch comes with the transaction that takes these along */
    if (reason)
        (void)snprintf(s->why[s->n], sizeof s->why[0], "%s", reason);
    s->v[s->n] = (struct outbox_end){ .after = l->batch.after,
                                      .to = l->batch.to,
                                      .lines = l->batch.lines,
                                      .bytes = l->text.len,
                                      .reason = reason ? s->why[s->n] : NULL };
    s->n++;
}

static void on_worked(uv_work_t *work, int status)
{
    struct lane *l = work->data;
    struct deliver *d = l->d;
    d->working--;
    l->working = false;
    if (d->closed && !d->working) {
        drop(d);
        return;
    }
    if (status < 0 || d->freed) /* it was cancelled, for nobody wants it any more */
        return;
    enum sender_fate fate = sender_done(d->sender, (int64_t)uv_now(d->loop), &l->batch, &l->answer);
    if (fate != SENDER_KEEP)
        settle(d, l, fate == SENDER_REJECT ? l->answer.text : NULL);
    step(d);
}

static void start(struct deliver *d, struct lane *l)
{
    l->work.data = l;
    l->working = true;
    d->working++;
    (void)uv_queue_work(d->loop, &l->work, on_work, on_worked); /* fails only without a callback */
}

/* --- with a transaction ------------------------------------------------------------------------------------------------- */

static bool mount(void *ctx)
{
    struct deliver *d = ctx;
    int64_t wake, now = (int64_t)uv_now(d->loop);
    size_t n = 0;
    while (n < IN_FLIGHT && sender_next(d->sender, now, &d->taken[n], &wake)) {
        const struct sender_batch *b = &d->taken[n];
        struct buf kept = d->takes[n].text;
        buf_clear(&kept);
        d->takes[n++] =
            (struct outbox_take){ .after = b->after, .to = b->to, .lines = b->lines, .bytes = b->bytes, .text = kept };
    }
    if (n == 0 && !d->pushed.lines && !d->settled.n)
        return false;
    struct pushed empty = d->riding;
    d->riding = d->pushed;
    d->pushed = empty;
    d->settling = d->settled;
    d->settled.n = 0;
    for (size_t i = 0; i < d->settling.n; i++)
        d->settling.v[i].reason = d->settling.v[i].reason ? d->settling.why[i] : NULL;
    d->round = (struct outbox_round){ .text = d->riding.text.data,
                                      .len = d->riding.text.len,
                                      .lines = d->riding.lines,
                                      .ends = d->settling.v,
                                      .n_ends = d->settling.n,
                                      .spare_from = sender_taken(d->sender),
                                      .takes = d->takes,
                                      .n_takes = n };
    d->rides = true;
    return true;
}

static int ride(void *ctx, struct store *s, struct err *e)
{
    struct deliver *d = ctx;
    return outbox_run(&d->box, s, &d->round, &d->after, e);
}

/* A batch as it was fetched goes on its way. */
static void taken(struct deliver *d, size_t i)
{
    struct outbox_take *t = &d->takes[i];
    struct lane *l = &d->lanes[d->taken[i].lane];
    l->batch = d->taken[i];
    l->batch.to = t->got_to;
    l->batch.lines = t->got;
    l->batch.bytes = t->text.len;
    if (!sender_fetched(d->sender, &d->taken[i], &l->batch))
        return;
    struct buf before = l->text;
    l->text = t->text;
    t->text = before;
    start(d, l);
}

static void committed(struct deliver *d)
{
    d->box = d->after;
    d->counts.dropped_room += d->round.dropped;
    d->counts.dropped_quarantine += d->round.dropped_rejected;
    if (d->round.dropped)
        sender_note(d->sender, SENDER_FULL, "influxdb: too much waits for it, the oldest lines are dropped");
    sender_rows(d->sender, (int64_t)uv_now(d->loop), d->box.top);
    d->again_ms = INT64_MIN;
    for (size_t i = 0; i < d->round.n_takes; i++)
        taken(d, i);
}

static void lose_pushed(struct deliver *d, struct pushed *p)
{
    d->counts.dropped_memory += p->lines;
    p->lines = 0;
    buf_clear(&p->text);
}

/* Everything is as it was before; what was pushed meanwhile comes after. */
static void not_committed(struct deliver *d, const struct err *why)
{
    for (size_t i = 0; i < d->round.n_takes; i++)
        sender_not_fetched(d->sender, &d->taken[i]);
    struct pushed newer = d->pushed;
    if (newer.lines)
        buf_put(&d->riding.text, newer.text.data, newer.text.len);
    d->pushed = d->riding;
    d->riding = newer;
    if (d->pushed.text.failed) /* what was there before is whole */
        lose_pushed(d, &d->riding);
    else
        d->pushed.lines += newer.lines;
    d->pushed.text.failed = false;
    for (size_t i = 0; i < d->settling.n; i++) { /* those that came meanwhile are of other lanes */
        struct settled *s = &d->settled;
        assert(s->n < IN_FLIGHT);
        memcpy(s->why[s->n], d->settling.why[i], sizeof s->why[0]);
        s->v[s->n] = d->settling.v[i];
        s->v[s->n].reason = s->v[s->n].reason ? s->why[s->n] : NULL;
        s->n++;
    }
    d->again_ms = (int64_t)uv_now(d->loop) + AGAIN_MS;
    sender_note(d->sender, SENDER_DISK, "influxdb: %s", why->text);
}

static void off(void *ctx, int rc, const struct err *why)
{
    struct deliver *d = ctx;
    d->rides = false;
    if (rc == 0)
        committed(d);
    else
        not_committed(d, why);
    buf_clear(&d->riding.text);
    d->riding.lines = 0;
    wake_at(d, 0);
}

/* --- the loop's turns --------------------------------------------------------------------------------------------------- */

static bool is_due(int64_t at, int64_t now, int64_t *wake)
{
    if (now < at && at < *wake)
        *wake = at;
    return now >= at;
}

/* Is a transaction to be had for our sake? */
static bool wants_transaction(struct deliver *d, int64_t now, int64_t *wake)
{
    bool some = d->pushed.lines || d->settled.n;
    bool send = sender_wants(d->sender, now, wake);
    bool enough = d->closing || d->pushed.lines >= TOGETHER_LINES;
    if (!send && !(some && (enough || is_due(d->since_ms + TOGETHER_MS, now, wake))))
        return false;
    return is_due(d->again_ms, now, wake);
}

/* Nothing of it is under way, and nothing of it can be done any more. */
static bool has_ended(struct deliver *d)
{
    if (!sender_ended(d->sender) || d->rides)
        return false;
    bool some = d->pushed.lines || d->settled.n;
    if (some && d->again_ms != INT64_MIN) { /* the last chance is over */
        lose_pushed(d, &d->pushed);
        d->settled.n = 0;
    }
    return !d->pushed.lines && !d->settled.n;
}

static void tell(struct deliver *d)
{
    char text[512];
    while (!d->freed && sender_told(d->sender, text, sizeof text))
        d->ops->note(d->ctx, text);
    if (d->freed || !d->ended || !has_ended(d))
        return;
    void (*ended)(void *) = d->ended;
    d->ended = NULL;
    ended(d->ctx);
}

/* Asks for a transaction if one is wanted, and sleeps until then; then tells what there is to be told, which may do anything to `d`. */
static void step(struct deliver *d)
{
    int64_t wake = INT64_MAX;
    if (!d->rides && wants_transaction(d, (int64_t)uv_now(d->loop), &wake))
        writer_want(d->place.writer);
    if (wake != INT64_MAX)
        wake_at(d, wake);
    tell(d);
}

static void on_wake(uv_timer_t *t)
{
    step(t->data);
}

static void wake_at(struct deliver *d, int64_t at_ms)
{
    int64_t wait = at_ms - (int64_t)uv_now(d->loop);
    (void)uv_timer_start(&d->wake, on_wake, wait > 0 ? (uint64_t)wait : 0, 0); /* fails only without a callback */
}

/* --- what others call ------------------------------------------------------------------------------------------------- */

void deliver_push(struct deliver *d, const char *bytes, size_t len, uint32_t lines)
{
    struct pushed *p = &d->pushed;
    d->counts.produced += lines;
    begin_waiting(d);
    bool room = p->text.len + len <= PUSHED_MAX;
    if (room)
        buf_put(&p->text, bytes, len);
    if (!room || p->text.failed) {
        p->text.failed = false; /* what was there before is whole */
        d->counts.dropped_memory += lines;
        sender_note(d->sender, SENDER_FULL, "influxdb: lines are dropped, there is no room for them in memory");
        return;
    }
    bool turn = !p->lines || (p->lines < TOGETHER_LINES && p->lines + lines >= TOGETHER_LINES);
    p->lines += lines;
    if (turn)
        wake_at(d, 0);
}

static uint64_t settled_lines(const struct settled *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->v[i].lines;
    return n;
}

struct deliver_counts deliver_counts(const struct deliver *d)
{
    struct deliver_counts c = d->counts;
    struct sender_counts s = sender_counts(d->sender);
    c.stored = s.stored;
    c.dropped_server = s.refused;
    c.quarantined = s.rejected - c.dropped_quarantine;
    c.dropped = c.dropped_room + c.dropped_server + c.dropped_quarantine + c.dropped_memory;
    c.requests = s.requests;
    c.retries = s.retries;
    c.waiting = d->box.waiting + d->pushed.lines - settled_lines(&d->settled);
    if (d->rides)
        c.waiting += d->riding.lines - settled_lines(&d->settling);
    return c;
}

uint64_t deliver_waiting_bytes(const struct deliver *d)
{
    return d->box.bytes;
}

void deliver_end(struct deliver *d, int64_t within_ms, void (*ended)(void *ctx))
{
    int64_t now = (int64_t)uv_now(d->loop);
    d->ended = ended;
    d->closing = true;
    sender_close(d->sender, now, now + within_ms);
    wake_at(d, 0);
}

void deliver_free(struct deliver *d)
{
    if (!d || d->freed)
        return;
    writer_settle(d->place.writer);
    store_set_rider(d->place.store, NULL, NULL);
    d->freed = true;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (d->lanes[i].working)
            (void)uv_cancel((uv_req_t *)&d->lanes[i].work); /* one that has begun ends by itself */
    uv_close((uv_handle_t *)&d->wake, on_closed);
}

bool deliver_complete(const struct deliver_counts *c)
{
    return c->produced == c->stored;
}

void deliver_account(const struct deliver_counts *c, char *text, size_t room)
{
    int n = snprintf(text, room,
                     "produced %" PRIu64 " = stored %" PRIu64 " + waiting %" PRIu64 " + quarantined %" PRIu64
                     " + dropped %" PRIu64,
                     c->produced, c->stored, c->waiting, c->quarantined, c->dropped);
    if (c->found && n >= 0 && (size_t)n < room)
        (void)snprintf(text + n, room - (size_t)n, "; %" PRIu64 " of them are of an earlier run", c->found);
}
