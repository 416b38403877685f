#include "monitoring/sender.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

enum state { FLOWING, RETRYING, PAUSED };

/* Of batches that were not delivered: each that was under way, and for each what did not fit into it. */
enum { TODO_MAX = 2 * SENDER_IN_FLIGHT_MAX };

struct range {
    int64_t after, to;
};

struct sender {
    struct sender_cfg cfg;
    struct rng rng;
    int64_t cursor, top;         /* rows up to the first were taken, up to the second are there */
    int64_t since_ms;            /* those between have been there for so long */
    struct range todo[TODO_MAX]; /* rows that were taken and are to be sent again, the oldest first */
    size_t n_todo;
    /* A batch that was rejected, and is halved: */
    struct range hand;
    uint32_t hand_left; /* lines of it; 0: there is none */
    uint32_t suspect;   /* of the first so many of them at least one is why; 0: not known */
    unsigned strikes;   /* parts that were rejected */

    unsigned flying; /* batches that are being fetched or sent, and their lanes */
    bool lanes[SENDER_IN_FLIGHT_MAX];
    enum state state;
    enum influx_reason reason;
    unsigned failures; /* in a row */
    int64_t retry_ms;
    size_t batch_bytes; /* less than the config's after the server found one too large */
    bool closing, ended;
    int64_t deadline_ms;
    struct sender_counts counts;
    char notes[SENDER_TOPICS][384];
    bool told[SENDER_TOPICS];
};

/* --- telling --- */

struct sender_counts sender_counts(const struct sender *s)
{
    return s->counts;
}

void sender_note(struct sender *s, enum sender_topic topic, const char *fmt, ...)
{
    if (topic != SENDER_STATE && s->told[topic])
        return;
    s->told[topic] = true;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(s->notes[topic], sizeof s->notes[topic], fmt, ap);
    va_end(ap);
}

bool sender_told(struct sender *s, char *text, size_t room)
{
    for (size_t i = 0; i < SENDER_TOPICS; i++) {
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
        sender_note(s, SENDER_STATE, "influxdb takes data again");
    else if (state == RETRYING)
        sender_note(s, SENDER_STATE, "influxdb takes no data, trying again: %s", why);
    else
        sender_note(s, SENDER_STATE, "influxdb: %s, nothing is sent until that is mended: %s",
                    influx_reason_name(reason), why);
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
    DEFAULT(backoff_ms, 1000);
    DEFAULT(backoff_max_ms, 60000);
    DEFAULT(pause_ms, 60000);
    DEFAULT(rejects_max, 64);
#undef DEFAULT
    return c;
}

struct sender *sender_new(const struct sender_cfg *cfg, int64_t first)
{
    struct sender *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->cfg = with_defaults(cfg);
    assert(s->cfg.in_flight <= SENDER_IN_FLIGHT_MAX);
    s->rng = rng_seeded(cfg->seed);
    s->batch_bytes = s->cfg.batch_bytes;
    s->retry_ms = INT64_MIN;
    s->cursor = s->top = first;
    return s;
}

void sender_free(struct sender *s)
{
    free(s);
}

/* --- rows --- */

void sender_rows(struct sender *s, int64_t now_ms, int64_t top)
{
    if (s->cursor == s->top && top > s->top)
        s->since_ms = now_ms;
    s->ended = s->ended && top <= s->top;
    s->top = top > s->top ? top : s->top;
}

int64_t sender_taken(const struct sender *s)
{
    return s->cursor;
}

static void again(struct sender *s, int64_t after, int64_t to)
{
    assert(s->n_todo < TODO_MAX);
    size_t i = s->n_todo++;
    for (; i > 0 && s->todo[i - 1].after > after; i--)
        s->todo[i] = s->todo[i - 1];
    s->todo[i] = (struct range){ after, to };
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

static bool is_over(const struct sender *s, int64_t now, int64_t *wake)
{
    if (!s->closing)
        return false;
    bool nothing = !s->flying && !s->hand_left && !s->n_todo && s->cursor == s->top;
    return nothing || s->state == PAUSED || due(s->deadline_ms, now, wake);
}

/* Half of what is known to hold the line that is why. */
static struct sender_batch hand_part(const struct sender *s)
{
    uint32_t lines = s->suspect > 1 ? s->suspect / 2 : s->suspect == 1 ? 1 : s->hand_left;
    return (struct sender_batch){ .after = s->hand.after, .to = s->hand.to, .lines = lines, .hand = true };
}

static struct sender_batch oldest_todo(struct sender *s)
{
    struct range r = s->todo[0];
    s->n_todo--;
    memmove(s->todo, s->todo + 1, s->n_todo * sizeof *s->todo);
    return (struct sender_batch){ .after = r.after, .to = r.to, .lines = s->cfg.batch_lines };
}

static struct sender_batch next_rows(struct sender *s, int64_t now)
{
    int64_t after = s->cursor, most = after + (int64_t)s->cfg.batch_lines;
    s->cursor = most < s->top ? most : s->top;
    s->since_ms = now;
    return (struct sender_batch){ .after = after, .to = s->cursor, .lines = s->cfg.batch_lines };
}

static bool rows_due(const struct sender *s, int64_t now, int64_t *wake)
{
    if (s->cursor == s->top)
        return false;
    return s->closing || s->top - s->cursor >= (int64_t)s->cfg.batch_lines ||
           due(s->since_ms + s->cfg.age_ms, now, wake);
}

bool sender_wants(struct sender *s, int64_t now_ms, int64_t *wake_ms)
{
    bool alone = s->state != FLOWING || s->hand_left;
    if (s->flying >= (alone ? 1 : s->cfg.in_flight))
        return false;
    if (is_over(s, now_ms, wake_ms)) {
        s->ended = s->flying == 0;
        return false;
    }
    bool some = s->hand_left || s->n_todo || rows_due(s, now_ms, wake_ms);
    return some && due(s->retry_ms, now_ms, wake_ms);
}

int sender_next(struct sender *s, int64_t now_ms, struct sender_batch *out, int64_t *out_wake_ms)
{
    *out_wake_ms = INT64_MAX;
    if (!sender_wants(s, now_ms, out_wake_ms))
        return 0;
    *out = s->hand_left ? hand_part(s) : s->n_todo ? oldest_todo(s) : next_rows(s, now_ms);
    while (s->lanes[out->lane])
        out->lane++;
    out->bytes = s->batch_bytes;
    out->probe = s->state != FLOWING;
    s->lanes[out->lane] = true;
    s->flying++;
    return 1;
}

/* --- what came of it --- */

static void land(struct sender *s, const struct sender_batch *b)
{
    assert(s->lanes[b->lane]);
    s->lanes[b->lane] = false;
    s->flying--;
}

void sender_not_fetched(struct sender *s, const struct sender_batch *b)
{
    land(s, b);
    if (!b->hand)
        again(s, b->after, b->to);
}

bool sender_fetched(struct sender *s, const struct sender_batch *asked, const struct sender_batch *b)
{
    if (!b->hand && b->to < asked->to)
        again(s, b->to, asked->to);
    if (b->lines > 0)
        return true;
    if (b->hand) /* somebody took them away */
        s->hand_left = 0;
    land(s, b);
    return false;
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

/* The first lines of the hand have found their place. */
static void settle_hand(struct sender *s, const struct sender_batch *b)
{
    s->hand.after = b->to;
    s->hand_left -= b->lines < s->hand_left ? b->lines : s->hand_left;
    s->suspect -= b->lines < s->suspect ? b->lines : s->suspect;
}

static void too_large(struct sender *s, size_t len)
{
    enum { SMALLEST = 4096 };
    size_t half = len / 2;
    if (half < s->batch_bytes)
        s->batch_bytes = half > SMALLEST ? half : SMALLEST;
}

static enum sender_fate stored(struct sender *s, const struct sender_batch *b, const struct influx_answer *a)
{
    uint64_t refused = a->kind == INFLUX_PARTIAL ? a->dropped : 0;
    refused = refused < b->lines ? refused : b->lines;
    s->counts.stored += b->lines - refused;
    s->counts.refused += refused;
    if (a->kind == INFLUX_PARTIAL)
        sender_note(s, SENDER_REFUSED, "influxdb dropped %" PRIu64 " of %" PRIu32 " lines: %s", a->dropped, b->lines,
                    a->text);
    if (b->hand)
        settle_hand(s, b);
    return SENDER_STORED;
}

/* A batch that meets one which is halved already waits for its turn, and is rejected anew. */
static void halve(struct sender *s, const struct sender_batch *b)
{
    if (!b->hand && s->hand_left) {
        again(s, b->after, b->to);
        return;
    }
    if (!b->hand) {
        s->hand = (struct range){ b->after, b->to };
        s->hand_left = b->lines;
        s->strikes = 0;
    }
    s->strikes++;
    s->suspect = b->lines;
    s->counts.halved++;
}

static enum sender_fate rejected(struct sender *s, const struct sender_batch *b, const struct influx_answer *a)
{
    if (b->lines > 1 && !(b->hand && s->strikes >= s->cfg.rejects_max)) {
        halve(s, b);
        return SENDER_KEEP;
    }
    s->counts.rejected += b->lines;
    sender_note(s, SENDER_REJECTED, "influxdb rejects a line, it is in quarantine: %s", a->text);
    if (b->hand)
        settle_hand(s, b);
    return SENDER_REJECT;
}

enum sender_fate sender_done(struct sender *s, int64_t now_ms, const struct sender_batch *b,
                             const struct influx_answer *a)
{
    land(s, b);
    hear(s, now_ms, a, s->state != FLOWING && !b->probe);
    if (a->kind == INFLUX_DELIVERED || a->kind == INFLUX_PARTIAL)
        return stored(s, b, a);
    if (a->kind == INFLUX_HALVE)
        too_large(s, b->bytes);
    if (a->kind == INFLUX_HALVE || a->kind == INFLUX_REJECT)
        return rejected(s, b, a);
    if (!b->hand)
        again(s, b->after, b->to);
    return SENDER_KEEP;
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
