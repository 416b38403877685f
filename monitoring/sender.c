#include "monitoring/sender.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/sender_hand.h"
#include "monitoring/sender_ring.h"

enum state { FLOWING, RETRYING, PAUSED };

/* Kinds of sentences; each is told once between two changes of state. */
enum note { NOTE_STATE, NOTE_SERVER, NOTE_QUARANTINE, NOTE_RING, NOTE_SPOOL_FULL, NOTE_SPOOL, NOTES };

/* A whole batch that is being sent beside the hand's. It is there, or it goes back to the ring: what is difficult is the hand's. */
struct flight {
    struct batch *batch; /* NULL: none */
    struct sender_job job;
};

struct sender {
    struct sender_cfg cfg;
    struct rng rng;
    struct ring ring;
    struct flight flights[SENDER_IN_FLIGHT_MAX - 1];
    unsigned flying;
    struct hand hand;
    int64_t hand_since_ms;
    struct buf rest;        /* what a job says of the hand */
    bool quarantine;        /* the hand's next part goes there, `verdict` says why */
    struct batch *spooling; /* what SENDER_SPOOL is about; NULL: the hand */
    struct influx_answer verdict;
    bool from_spool; /* whose turn it was last */
    bool probing;    /* the hand was sent to see whether the server takes data again */

    enum state state;
    enum influx_reason reason;
    unsigned failures; /* in a row */
    int64_t retry_ms, spool_retry_ms, sync_ms;
    bool unsynced;
    size_t batch_bytes; /* less than the config's after the server found one too large */
    bool closing, ended;
    int64_t deadline_ms;

    struct sender_job job;
    bool busy;
    uint64_t spool_dropped;
    struct sender_counts counts;
    char notes[NOTES][384];
    bool told[NOTES];
};

/* --- counting and telling --- */

bool sender_balanced(const struct sender_counts *c)
{
    uint64_t dropped =
        c->dropped_ring + c->dropped_spool + c->dropped_server + c->dropped_quarantine + c->dropped_memory;
    return dropped == c->dropped && c->produced == c->stored + c->spooled + c->quarantined + c->dropped + c->waiting;
}

struct sender_counts sender_counts(const struct sender *s)
{
    return s->counts;
}

static void drop(struct sender *s, uint64_t *of, uint64_t lines)
{
    *of += lines;
    s->counts.dropped += lines;
}

__attribute__((format(printf, 3, 4))) static void note(struct sender *s, enum note kind, const char *fmt, ...)
{
    if (kind != NOTE_STATE && s->told[kind])
        return;
    s->told[kind] = true;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(s->notes[kind], sizeof s->notes[kind], fmt, ap);
    va_end(ap);
}

bool sender_note(struct sender *s, char *text, size_t room)
{
    for (size_t i = 0; i < NOTES; i++) {
        if (!s->notes[i][0])
            continue;
        (void)snprintf(text, room, "%s", s->notes[i]);
        s->notes[i][0] = '\0';
        return true;
    }
    return false;
}

static void enter(struct sender *s, enum state state, enum influx_reason reason, const char *why)
{
    if (state == s->state && reason == s->reason)
        return;
    s->state = state;
    s->reason = reason;
    memset(s->told, 0, sizeof s->told);
    if (state == FLOWING)
        note(s, NOTE_STATE, "influxdb takes data again");
    else if (state == RETRYING)
        note(s, NOTE_STATE, "influxdb takes no data, trying again: %s", why);
    else
        note(s, NOTE_STATE, "influxdb: %s, nothing is sent until that is mended: %s", influx_reason_name(reason), why);
}

/* --- the ring --- */

/* The oldest batch is lost. */
static void ring_drop(struct sender *s, uint64_t *of)
{
    struct batch *b = ring_shift(&s->ring);
    s->counts.waiting -= b->lines;
    drop(s, of, b->lines);
    batch_free(b);
}

static bool make_room(struct sender *s, size_t len)
{
    while (s->ring.bytes + len > s->cfg.ring_bytes) {
        if (!s->ring.first)
            return false;
        ring_drop(s, &s->counts.dropped_ring);
        note(s, NOTE_RING, "influxdb: lines are dropped, there is no room for them in memory");
    }
    return true;
}

static bool is_full(const struct sender *s, const struct batch *b)
{
    return b->lines >= s->cfg.batch_lines || b->text.len >= s->batch_bytes;
}

/* The batch that grows, if these lines may go into it. */
static struct batch *open_batch(const struct sender *s, size_t len, uint32_t lines)
{
    struct batch *b = s->ring.last;
    if (!b || is_full(s, b) || b->lines + lines > s->cfg.batch_lines || b->text.len + len > s->batch_bytes)
        return NULL;
    return b;
}

void sender_push(struct sender *s, int64_t now_ms, const char *bytes, size_t len, uint32_t lines)
{
    assert(!s->closing && len > 0 && lines > 0 && lines <= s->cfg.batch_lines);
    s->counts.produced += lines;
    if (!make_room(s, len)) {
        drop(s, &s->counts.dropped_ring, lines);
        return;
    }
    struct batch *open = open_batch(s, len, lines), *b = open ? open : batch_new(now_ms);
    if (b)
        buf_put(&b->text, bytes, len);
    if (!b || b->text.failed) {
        drop(s, &s->counts.dropped_memory, lines);
        if (open)
            open->text.failed = false; /* what was there before is whole */
        else if (b)
            batch_free(b);
        return;
    }
    b->lines += lines;
    if (open)
        s->ring.bytes += len;
    else
        ring_push(&s->ring, b);
    s->counts.waiting += lines;
}

/* --- new and gone --- */

static struct sender_cfg with_defaults(const struct sender_cfg *given)
{
    struct sender_cfg c = *given;
#define DEFAULT(field, value) c.field = c.field ? c.field : (value)
    DEFAULT(in_flight, 1);
    DEFAULT(batch_lines, 5000);
    DEFAULT(batch_bytes, 1 << 20);
    DEFAULT(age_ms, 1000);
    DEFAULT(ring_bytes, 16 << 20);
    DEFAULT(spool_after_ms, 10000);
    DEFAULT(sync_ms, 1000);
    DEFAULT(backoff_ms, 1000);
    DEFAULT(backoff_max_ms, 60000);
    DEFAULT(pause_ms, 60000);
    DEFAULT(spool_retry_ms, 5000);
    DEFAULT(rejects_max, 64);
#undef DEFAULT
    return c;
}

struct sender *sender_new(const struct sender_cfg *cfg)
{
    struct sender *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->cfg = with_defaults(cfg);
    assert(s->cfg.in_flight <= SENDER_IN_FLIGHT_MAX);
    s->rng = rng_seeded(cfg->seed);
    s->batch_bytes = s->cfg.batch_bytes;
    s->retry_ms = s->spool_retry_ms = INT64_MIN;
    s->counts.produced = s->counts.found = s->counts.spooled = cfg->spooled;
    s->spool_dropped = cfg->spool_dropped;
    return s;
}

void sender_free(struct sender *s)
{
    if (!s)
        return;
    while (s->ring.first)
        batch_free(ring_shift(&s->ring));
    for (size_t i = 0; i < ARRAY_LEN(s->flights); i++)
        if (s->flights[i].batch)
            batch_free(s->flights[i].batch);
    if (s->spooling)
        batch_free(s->spooling);
    hand_done(&s->hand);
    buf_done(&s->rest);
    buf_done(&s->job.fetched);
    free(s);
}

/* --- what is next --- */

/* Has `at` come? If not, that is a time to wake up at. */
static bool due(int64_t at, int64_t now, int64_t *wake)
{
    if (now >= at)
        return true;
    if (at < *wake)
        *wake = at;
    return false;
}

static int start(struct sender *s, enum sender_act act, const char *bytes, size_t len, uint32_t lines)
{
    s->job = (struct sender_job){ .act = act, .bytes = bytes, .len = len, .lines = lines };
    s->busy = true;
    return 1;
}

static int start_part(struct sender *s, enum sender_act act)
{
    const struct hand_part *p = hand_next(&s->hand);
    int rc = start(s, act, s->hand.text.data + p->from, p->to - p->from, p->lines);
    if (act == SENDER_QUARANTINE)
        s->job.answer = s->verdict;
    return rc;
}

static int start_forget(struct sender *s)
{
    int rc = start(s, SENDER_FORGET, NULL, 0, 0);
    s->job.id = s->hand.spool_id;
    return rc;
}

static int spool_first(struct sender *s)
{
    struct batch *b = s->spooling = ring_shift(&s->ring);
    return start(s, SENDER_SPOOL, b->text.data, b->text.len, b->lines);
}

/* 0: no memory for it; it is tried again. */
static int spool_hand(struct sender *s)
{
    buf_clear(&s->rest);
    hand_rest(&s->hand, &s->rest);
    if (s->rest.failed)
        return 0;
    return start(s, SENDER_SPOOL, s->rest.data, s->rest.len, hand_left(&s->hand));
}

/* The hand is empty now, or a job was started that makes it so. */
static int finish_hand(struct sender *s)
{
    if (s->hand.n == 0 && s->hand.spool_id)
        return start_forget(s);
    if (s->hand.n == 0)
        hand_done(&s->hand);
    return 0;
}

/* Batches that memory should not hold any longer go to the disk. */
static int next_spool(struct sender *s, int64_t now, int64_t *wake)
{
    if (!s->cfg.spool || (!s->hand.n && !s->ring.first))
        return 0;
    bool stuck = s->state != FLOWING;
    bool hand = stuck && s->hand.n && !s->hand.spool_id && due(s->hand_since_ms + s->cfg.spool_after_ms, now, wake);
    bool first = s->ring.first && (s->ring.bytes > s->cfg.ring_bytes / 2 ||
                                   (stuck && due(s->ring.first->since_ms + s->cfg.spool_after_ms, now, wake)));
    if ((!hand && !first) || !due(s->spool_retry_ms, now, wake))
        return 0;
    int rc = hand ? spool_hand(s) : 0;
    return rc ? rc : first ? spool_first(s) : 0;
}

/* Is there a batch of the ring to be sent? */
static bool ring_due(const struct sender *s, int64_t now, int64_t *wake)
{
    if (!s->ring.first)
        return false;
    return s->closing || s->ring.first != s->ring.last || is_full(s, s->ring.first) ||
           due(s->ring.first->since_ms + s->cfg.age_ms, now, wake);
}

static void take_first(struct sender *s)
{
    struct batch *b = ring_shift(&s->ring);
    s->hand_since_ms = b->since_ms;
    hand_take(&s->hand, &b->text, b->lines, 0);
    batch_free(b);
}

static int next_send(struct sender *s, int64_t now, int64_t *wake)
{
    bool ring = ring_due(s, now, wake), spool = s->counts.spooled > 0 && s->cfg.spool;
    if (!s->hand.n && !ring && !spool)
        return 0;
    if (!due(s->retry_ms, now, wake))
        return 0;
    if (!s->hand.n && spool && (!ring || !s->from_spool) && due(s->spool_retry_ms, now, wake)) {
        s->from_spool = true;
        return start(s, SENDER_FETCH, NULL, 0, 0);
    }
    if (!s->hand.n && ring) {
        s->from_spool = false;
        take_first(s);
    }
    s->probing = s->state != FLOWING;
    return s->hand.n ? start_part(s, SENDER_SEND) : 0;
}

/* May a batch be sent beside what is being done? Only whole ones, of a server that takes everything, with nothing in halves. */
static bool may_fly(const struct sender *s, int64_t now)
{
    const struct batch *b = s->ring.first;
    bool smooth = s->state == FLOWING && !s->hand.rejected && !s->quarantine;
    bool over = s->closing && now >= s->deadline_ms;
    return s->flying + 1 < s->cfg.in_flight && smooth && !over && b && !b->refused &&
           (b != s->ring.last || is_full(s, b));
}

static int fly(struct sender *s, struct sender_job **out)
{
    unsigned i = 0;
    while (s->flights[i].batch)
        i++;
    struct flight *f = &s->flights[i];
    f->batch = ring_shift(&s->ring);
    f->job = (struct sender_job){ .act = SENDER_SEND,
                                  .lane = i + 1,
                                  .bytes = f->batch->text.data,
                                  .len = f->batch->text.len,
                                  .lines = f->batch->lines };
    s->flying++;
    *out = &f->job;
    return 1;
}

/* What the hand still holds finds its place. 1: by a job. */
static int put_down_hand(struct sender *s)
{
    bool whole = s->hand.spool_id && hand_left(&s->hand) == s->hand.lines; /* in the spool as it is */
    if (s->hand.n && !whole && s->cfg.spool && spool_hand(s))
        return 1;
    if (s->hand.n && !s->hand.spool_id) {
        s->counts.waiting -= hand_left(&s->hand);
        drop(s, &s->counts.dropped_memory, hand_left(&s->hand));
    }
    hand_done(&s->hand);
    return 0;
}

/* Nothing is sent any more: what memory holds goes to the disk, or is lost. The hand comes after the ring, which may push the hand's
 * batch out of the spool. */
static int next_last(struct sender *s)
{
    if (s->ring.first && s->cfg.spool)
        return spool_first(s);
    while (s->ring.first)
        ring_drop(s, &s->counts.dropped_ring);
    if (put_down_hand(s))
        return 1;
    if (s->unsynced)
        return start(s, SENDER_SYNC, NULL, 0, 0);
    s->ended = true;
    return 0;
}

static bool is_over(const struct sender *s, int64_t now, int64_t *wake)
{
    if (!s->closing)
        return false;
    bool nothing = !s->hand.n && !s->ring.first && s->counts.spooled == 0;
    return nothing || s->state == PAUSED || due(s->deadline_ms, now, wake);
}

int sender_next(struct sender *s, int64_t now_ms, struct sender_job **out, int64_t *out_wake_ms)
{
    *out = &s->job;
    *out_wake_ms = INT64_MAX;
    if (s->ended)
        return 0;
    if (s->busy)
        return may_fly(s, now_ms) ? fly(s, out) : 0;
    if (s->quarantine)
        return start_part(s, SENDER_QUARANTINE);
    if (finish_hand(s))
        return 1;
    if (is_over(s, now_ms, out_wake_ms))
        return s->flying ? 0 : next_last(s);
    if (next_spool(s, now_ms, out_wake_ms))
        return 1;
    if (s->unsynced && due(s->sync_ms, now_ms, out_wake_ms))
        return start(s, SENDER_SYNC, NULL, 0, 0);
    return next_send(s, now_ms, out_wake_ms);
}

/* --- what came of it --- */

/* Lines of the hand have found their place. */
static void settle(struct sender *s, uint32_t lines)
{
    if (s->hand.spool_id)
        s->counts.spooled -= lines;
    else
        s->counts.waiting -= lines;
    hand_settle(&s->hand);
}

static void wait_until(struct sender *s, int64_t at)
{
    if (at > s->retry_ms)
        s->retry_ms = at;
}

/* Full jitter: many senders that failed together do not come back together. */
static void back_off(struct sender *s, int64_t now, int64_t asked_ms)
{
    int64_t most = s->cfg.backoff_ms;
    for (unsigned i = 0; i < s->failures && most < s->cfg.backoff_max_ms; i++)
        most *= 2;
    most = most < s->cfg.backoff_max_ms ? most : s->cfg.backoff_max_ms;
    int64_t wait = (int64_t)rng_below(&s->rng, (uint64_t)most + 1);
    s->failures++;
    wait_until(s, now + (asked_ms > wait ? asked_ms : wait));
}

static void halve_or_quarantine(struct sender *s, enum hand_cut by)
{
    s->quarantine = hand_next(&s->hand)->lines == 1 || ++s->hand.rejected > s->cfg.rejects_max;
    if (s->quarantine)
        return;
    s->counts.halved++;
    hand_halve(&s->hand, by);
}

static void too_large(struct sender *s, size_t len)
{
    enum { SMALLEST = 4096 };
    size_t half = len / 2;
    if (half < s->batch_bytes)
        s->batch_bytes = half > SMALLEST ? half : SMALLEST;
}

/* The server has the lines of a job, or says what it dropped of them. */
static void stored(struct sender *s, const struct sender_job *job)
{
    const struct influx_answer *a = &job->answer;
    uint64_t dropped = a->kind == INFLUX_PARTIAL ? a->dropped : 0;
    uint32_t lines = job->lines, lost = dropped < lines ? (uint32_t)dropped : lines;
    s->counts.stored += lines - lost;
    drop(s, &s->counts.dropped_server, lost);
    if (a->kind == INFLUX_PARTIAL)
        note(s, NOTE_SERVER, "influxdb dropped %" PRIu64 " of %" PRIu32 " lines: %s", a->dropped, lines, a->text);
}

/* What an answer says of the server, whatever it says of the batch. `late`: of one that was sent before the server stopped taking
 * data. That adds to the wait if it asks for one, and ends none. */
static void hear(struct sender *s, int64_t now, const struct influx_answer *a, bool late)
{
    s->counts.requests++;
    s->counts.retries += a->kind == INFLUX_RETRY || a->kind == INFLUX_PAUSE;
    if (a->kind == INFLUX_PAUSE) {
        wait_until(s, now + s->cfg.pause_ms + (int64_t)rng_below(&s->rng, (uint64_t)s->cfg.pause_ms / 8 + 1));
        enter(s, PAUSED, a->reason, a->text);
    } else if (a->kind == INFLUX_RETRY && late) {
        wait_until(s, now + a->wait_ms);
    } else if (a->kind == INFLUX_RETRY) {
        back_off(s, now, a->wait_ms);
        enter(s, RETRYING, INFLUX_NO_REASON, a->text);
    } else if (!late) {
        s->failures = 0;
        s->retry_ms = now;
        enter(s, FLOWING, INFLUX_NO_REASON, "");
    }
}

/* The hand's answer. */
static void sent(struct sender *s, int64_t now)
{
    const struct influx_answer *a = &s->job.answer;
    hear(s, now, a, s->state != FLOWING && !s->probing);
    s->verdict = *a;
    switch (a->kind) {
    case INFLUX_RETRY:
    case INFLUX_PAUSE: break;
    case INFLUX_HALVE:
        too_large(s, s->job.len);
        halve_or_quarantine(s, HAND_BY_BYTES);
        break;
    case INFLUX_REJECT: halve_or_quarantine(s, HAND_BY_LINES); break;
    default: stored(s, &s->job); settle(s, s->job.lines);
    }
}

/* The answer to a batch beside it. One that is not there is the ring's oldest again; if it is to be halved, the hand's next. */
static void landed(struct sender *s, int64_t now, struct flight *f)
{
    const struct influx_answer *a = &f->job.answer;
    struct batch *b = MOVE_PTR(f->batch);
    s->flying--;
    hear(s, now, a, s->state != FLOWING);
    if (a->kind == INFLUX_DELIVERED || a->kind == INFLUX_PARTIAL) {
        s->counts.waiting -= b->lines;
        stored(s, &f->job);
        batch_free(b);
        return;
    }
    if (a->kind == INFLUX_HALVE)
        too_large(s, b->text.len);
    b->refused = a->kind == INFLUX_HALVE || a->kind == INFLUX_REJECT;
    ring_unshift(&s->ring, b);
}

static void quarantined(struct sender *s)
{
    if (s->job.rc < 0) {
        drop(s, &s->counts.dropped_quarantine, s->job.lines);
        note(s, NOTE_QUARANTINE, "influxdb: a line that is rejected (%s) cannot be kept: %s", s->verdict.text,
             s->job.why);
    } else {
        s->counts.quarantined += s->job.lines;
        note(s, NOTE_QUARANTINE, "influxdb rejects a line, it is in quarantine: %s", s->verdict.text);
    }
    settle(s, s->job.lines);
    s->quarantine = false;
}

static bool no_more_tries(const struct sender *s, int64_t now)
{
    int64_t wake = INT64_MAX;
    return s->job.rc == -EMSGSIZE || is_over(s, now, &wake);
}

static void hand_not_spooled(struct sender *s)
{
    /* Else it stays in the spool with what has been delivered of it, which changes nothing there. */
    if (!s->hand.spool_id) {
        s->counts.waiting -= s->job.lines;
        drop(s, &s->counts.dropped_spool, s->job.lines);
    }
    hand_done(&s->hand);
}

static void spool_failed(struct sender *s, int64_t now)
{
    note(s, NOTE_SPOOL, "influxdb: %s", s->job.why);
    s->spool_retry_ms = now + s->cfg.spool_retry_ms;
    bool of_ring = s->spooling != NULL;
    if (of_ring)
        ring_unshift(&s->ring, MOVE_PTR(s->spooling));
    if (no_more_tries(s, now) && of_ring)
        ring_drop(s, &s->counts.dropped_spool);
    else if (no_more_tries(s, now))
        hand_not_spooled(s);
}

static void spooled(struct sender *s, int64_t now)
{
    if (s->job.rc < 0) {
        spool_failed(s, now);
        return;
    }
    if (!s->unsynced)
        s->sync_ms = now + s->cfg.sync_ms;
    s->unsynced = true;
    if (s->spooling || !s->hand.spool_id) {
        s->counts.waiting -= s->job.lines;
        s->counts.spooled += s->job.lines;
    }
    if (s->spooling)
        batch_free(MOVE_PTR(s->spooling));
    else
        s->hand.n = 0;
}

static void fetched(struct sender *s, int64_t now)
{
    if (s->job.rc < 0) {
        note(s, NOTE_SPOOL, "influxdb: %s", s->job.why);
        s->spool_retry_ms = now + s->cfg.spool_retry_ms;
    }
    if (s->job.rc == 1) {
        s->hand_since_ms = now;
        hand_take(&s->hand, &s->job.fetched, s->job.fetched_lines, s->job.front);
    }
    if (s->job.rc == 0 && s->counts.spooled) { /* whatever took them, they are not there */
        drop(s, &s->counts.dropped_spool, s->counts.spooled);
        s->counts.spooled = 0;
    }
}

static void synced(struct sender *s, int64_t now)
{
    s->unsynced = s->job.rc < 0 && !s->closing;
    s->sync_ms = now + s->cfg.spool_retry_ms;
    if (s->job.rc < 0)
        note(s, NOTE_SPOOL, "influxdb: %s", s->job.why);
}

/* What the spool gave up for room meanwhile. The batch in our hand is not among it, but is ours alone now if its place is gone. */
static void spool_shrank(struct sender *s)
{
    uint64_t lost = s->job.dropped - s->spool_dropped;
    s->spool_dropped = s->job.dropped;
    if (lost) {
        s->counts.spooled -= lost;
        drop(s, &s->counts.dropped_spool, lost);
        note(s, NOTE_SPOOL_FULL, "influxdb: the spool is full, its oldest lines are dropped");
    }
    if (s->hand.lines && s->hand.spool_id && s->job.front != s->hand.spool_id) {
        s->counts.spooled -= hand_left(&s->hand);
        s->counts.waiting += hand_left(&s->hand);
        s->hand.spool_id = 0;
    }
}

void sender_done(struct sender *s, int64_t now_ms, struct sender_job *job)
{
    if (job != &s->job) {
        assert(job->lane > 0 && job == &s->flights[job->lane - 1].job);
        landed(s, now_ms, &s->flights[job->lane - 1]);
        return;
    }
    assert(s->busy);
    s->busy = false;
    if (job->act == SENDER_SPOOL || job->act == SENDER_FETCH)
        spool_shrank(s);
    switch (job->act) {
    case SENDER_SEND: sent(s, now_ms); break;
    case SENDER_SPOOL: spooled(s, now_ms); break;
    case SENDER_FETCH: fetched(s, now_ms); break;
    case SENDER_FORGET: hand_done(&s->hand); break;
    case SENDER_QUARANTINE: quarantined(s); break;
    case SENDER_SYNC: synced(s, now_ms); break;
    }
    buf_done(&job->fetched);
}

void sender_close(struct sender *s, int64_t now_ms, int64_t deadline_ms)
{
    s->closing = true;
    s->deadline_ms = deadline_ms;
    if (s->state == RETRYING && s->failures > 0)
        s->retry_ms = now_ms; /* one more try at once: it is the last chance */
}

bool sender_ended(const struct sender *s)
{
    return s->ended;
}
