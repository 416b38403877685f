#include "live/deliver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "monitoring/sender_io.h"

/* Four: the server reads some while it syncs others to its disk. More bring nothing (make bench-influx), and are other writers' share. */
enum { CONNECT_MS = 5000, TIMEOUT_MS = 10000, IN_FLIGHT = 4 };

static const struct spool_cfg spool_cfg = { .cap = 256 << 20, .segment = 4 << 20 };

/* What a worker does for us, one job at a time. */
struct lane {
    struct deliver *d;
    uv_work_t work;
    struct sender_job *job;
    bool working;
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
    /* Of the workers while they work: each uses its lane's own; the rest is the first lane's. */
    struct sender_io io;
    struct udp_out udp;
    char *udp_url; /* NULL: over HTTP */
    uint64_t spool_bytes_there;

    char *quarantine;
    uint64_t spool_bytes;
    void (*ended)(void *ctx); /* NULL: nobody asked for the end, or it was told */
};

/* --- opening ---------------------------------------------------------------------------------------------------------- */

struct deliver_cfg deliver_cfg_of(const struct config *c, const char *dir)
{
    return (struct deliver_cfg){ .url = c->url,
                                 .database = c->database,
                                 .bucket = c->bucket,
                                 .org = c->org,
                                 .retention = c->retention_policy,
                                 .credential_file = c->credential_file,
                                 .ca_file = c->ca_file,
                                 .allow_plain = c->allow_plain_http,
                                 .dir = dir };
}

/* A host that DNS does not know now is asked for again with each batch. */
static int open_udp(struct deliver *d, const char *url, struct err *e)
{
    d->io.udp = &d->udp;
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
        rc = influx_new(&d->io.influx[i], &to, e);
    credential_done(&secret);
    return rc;
}

static int open_folder(struct deliver *d, const char *dir, struct err *e)
{
    AUTO_FREE char *spool = io_join(dir, "spool");
    d->quarantine = io_join(dir, "quarantine");
    d->io.quarantine = d->quarantine;
    if (!spool || !d->quarantine)
        return err_sys(e, -ENOMEM, "'%s'", dir);
    int rc = io_mkdirs(dir, e);
    if (rc == 0)
        rc = spool_open(&d->io.spool, spool, &spool_cfg, e);
    return rc;
}

static int open_sender(struct deliver *d, struct err *e)
{
    struct spool_counts found = spool_counts(d->io.spool);
    const struct sender_cfg cfg = {
        .in_flight = d->udp_url ? 1 : IN_FLIGHT,
        .spool = true,
        .spooled = found.lines,
        .spool_dropped = found.dropped,
        .seed = uv_hrtime() ^ (uint64_t)getpid(),
    };
    d->spool_bytes = found.bytes;
    d->sender = sender_new(&cfg);
    return d->sender ? 0 : err_sys(e, -ENOMEM, "cannot deliver");
}

static void drop(struct deliver *d)
{
    sender_free(d->sender);
    spool_close(d->io.spool);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        influx_free(d->io.influx[i]);
    udp_out_done(&d->udp);
    free(d->udp_url);
    free(d->quarantine);
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

int deliver_open(struct deliver **out, uv_loop_t *loop, const struct deliver_cfg *cfg, const struct deliver_ops *ops,
                 void *ctx, struct err *e)
{
    struct deliver *d = calloc(1, sizeof *d);
    if (!d)
        return err_sys(e, -ENOMEM, "cannot deliver");
    d->udp.fd = -1;
    int rc = is_udp(cfg) ? open_udp(d, cfg->url, e) : open_influx(d, cfg, e);
    if (rc == 0)
        rc = open_folder(d, cfg->dir, e);
    if (rc == 0)
        rc = open_sender(d, e);
    if (rc < 0) {
        drop(d);
        return rc;
    }
    d->ops = ops;
    d->ctx = ctx;
    d->loop = loop;
    d->wake.data = d;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        d->lanes[i].d = d;
    (void)uv_timer_init(loop, &d->wake); /* it cannot fail */
    *out = d;
    wake_at(d, 0); /* for what an earlier process left in the spool */
    return 0;
}

/* --- on the worker ---------------------------------------------------------------------------------------------------- */

/* False: the job is done, by a verdict that says why nothing can be sent. */
static bool have_udp(struct deliver *d, struct sender_job *job)
{
    struct err e = { 0 };
    if (!d->udp_url || d->udp.fd >= 0 || job->act != SENDER_SEND || udp_out_open(&d->udp, d->udp_url, 0, &e) == 0)
        return true;
    job->answer = (struct influx_answer){ .kind = INFLUX_RETRY, .wait_ms = -1 };
    (void)snprintf(job->answer.text, sizeof job->answer.text, "%.250s", e.text);
    return false;
}

static void on_work(uv_work_t *work)
{
    struct lane *l = work->data;
    struct deliver *d = l->d;
    if (have_udp(d, l->job))
        sender_io_run(&d->io, l->job);
    if (l->job->lane == 0)
        d->spool_bytes_there = spool_counts(d->io.spool).bytes;
}

/* --- on the loop ------------------------------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *h)
{
    struct deliver *d = h->data;
    d->closed = true;
    if (!d->working)
        drop(d);
}

static void tell(struct deliver *d)
{
    char text[512];
    while (!d->freed && sender_note(d->sender, text, sizeof text))
        d->ops->note(d->ctx, text);
    if (d->freed || !d->ended || !sender_ended(d->sender))
        return;
    void (*ended)(void *) = d->ended;
    d->ended = NULL;
    ended(d->ctx);
}

static void step(struct deliver *d);

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
    if (status == 0 && !d->freed) { /* else it was cancelled, for nobody wants it any more */
        if (l->job->lane == 0)
            d->spool_bytes = d->spool_bytes_there;
        sender_done(d->sender, (int64_t)uv_now(d->loop), l->job);
        step(d);
    }
}

static void start(struct deliver *d, struct sender_job *job)
{
    struct lane *l = &d->lanes[job->lane];
    l->job = job;
    l->work.data = l;
    l->working = true;
    d->working++;
    (void)uv_queue_work(d->loop, &l->work, on_work, on_worked); /* fails only without a callback */
}

/* Starts what is next, and sleeps until there is more; then tells what there is to be told, which may do anything to `d`. */
static void step(struct deliver *d)
{
    int64_t wake = INT64_MAX;
    struct sender_job *job;
    while (sender_next(d->sender, (int64_t)uv_now(d->loop), &job, &wake))
        start(d, job);
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

/* Where the first `lines` lines end. */
static size_t cut(const char *bytes, size_t len, uint32_t lines)
{
    const char *at = bytes;
    while (lines-- > 0)
        at = (const char *)memchr(at, '\n', (size_t)(bytes + len - at)) + 1;
    return (size_t)(at - bytes);
}

void deliver_push(struct deliver *d, const char *bytes, size_t len, uint32_t lines)
{
    while (lines > 0) {
        uint32_t some = lines < INFLUX_LINES_MAX ? lines : INFLUX_LINES_MAX;
        size_t part = some == lines ? len : cut(bytes, len, some);
        sender_push(d->sender, (int64_t)uv_now(d->loop), bytes, part, some);
        bytes += part;
        len -= part;
        lines -= some;
    }
    wake_at(d, 0);
}

struct sender_counts deliver_counts(const struct deliver *d)
{
    return sender_counts(d->sender);
}

uint64_t deliver_spool_bytes(const struct deliver *d)
{
    return d->spool_bytes;
}

void deliver_end(struct deliver *d, int64_t within_ms, void (*ended)(void *ctx))
{
    int64_t now = (int64_t)uv_now(d->loop);
    d->ended = ended;
    sender_close(d->sender, now, now + within_ms);
    wake_at(d, 0);
}

void deliver_free(struct deliver *d)
{
    if (!d || d->freed)
        return;
    d->freed = true;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (d->lanes[i].working)
            (void)uv_cancel((uv_req_t *)&d->lanes[i].work); /* one that has begun ends by itself */
    uv_close((uv_handle_t *)&d->wake, on_closed);
}

bool deliver_complete(const struct sender_counts *c)
{
    return c->produced == c->stored;
}

void deliver_account(const struct sender_counts *c, char *text, size_t room)
{
    int n = snprintf(text, room,
                     "produced %" PRIu64 " = stored %" PRIu64 " + spooled %" PRIu64 " + quarantined %" PRIu64
                     " + dropped %" PRIu64,
                     c->produced, c->stored, c->spooled, c->quarantined, c->dropped);
    if (c->waiting && n >= 0 && (size_t)n < room)
        n += snprintf(text + n, room - (size_t)n, " + waiting %" PRIu64, c->waiting);
    if (c->found && n >= 0 && (size_t)n < room)
        (void)snprintf(text + n, room - (size_t)n, "; %" PRIu64 " of them are of an earlier run", c->found);
}
