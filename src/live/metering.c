#include "live/metering.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ticker.h"
#include "live/spells.h"

/* One meter that is open. The worker has `meter` and what follows it while it reads. */
struct source {
    struct source *next;
    struct metering *of;
    const struct meter_ops *ops;
    uv_work_t work;
    bool reading;
    uint64_t rounds;
    struct spells failing, implausible; /* by the reading's place in a round */
    struct spells broken;               /* the first bit: a round had no readings at all, by a failure */
    bool told;                          /* that something cannot be read, and not yet that all can again */
    struct meter *meter;
    int n; /* readings, or -errno */
    struct meter_reading readings[METER_READINGS_MAX];
};

struct metering {
    const struct metering_ops *ops;
    void *ctx;
    uv_loop_t *loop;
    uv_timer_t timer;
    int interval_ms;
    struct ticker ticker;
    uint64_t missed;
    bool freed, closed;
    struct source *sources, **end;
};

/* --- the end ---------------------------------------------------------------------------------------------------------- */

/* Once nothing is under way any more. */
static void drop(struct metering *m)
{
    for (struct source *s = m->sources; s; s = s->next)
        if (s->reading)
            return;
    if (!m->closed)
        return;
    while (m->sources) {
        struct source *s = m->sources;
        m->sources = s->next;
        s->ops->close(s->meter);
        free(s);
    }
    free(m);
}

static void on_closed(uv_handle_t *h)
{
    struct metering *m = h->data;
    m->closed = true;
    drop(m);
}

void metering_free(struct metering *m)
{
    if (!m || m->freed)
        return;
    m->freed = true;
    for (struct source *s = m->sources; s; s = s->next)
        if (s->reading)
            (void)uv_cancel((uv_req_t *)&s->work); /* one that has begun ends by itself */
    uv_close((uv_handle_t *)&m->timer, on_closed);
}

/* --- what was read ---------------------------------------------------------------------------------------------------- */

static void note_trouble(const struct source *s, const char *trouble, const char *node, const char *why)
{
    char text[384];
    if (s->of->freed) /* by whom was told before */
        return;
    (void)snprintf(text, sizeof text, "%s %s%s%s: %s", s->ops->name, trouble, *node ? " for " : "", node, why);
    s->of->ops->note(s->of->ctx, text);
}

static void note_mended(const struct source *s)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%s can be read again", s->ops->name);
    s->of->ops->note(s->of->ctx, text);
}

/* A bit for each reading of the round in this state. */
static uint64_t in_state(const struct source *s, enum meter_state state)
{
    uint64_t bits = 0;
    for (int i = 0; i < s->n; i++)
        if (s->readings[i].state == state)
            bits |= UINT64_C(1) << i;
    return bits;
}

/* What an implausible interval spoils is over with it: nobody is told that the next one is none. */
static void tell_changes(struct source *s)
{
    uint64_t now = uv_now(s->of->loop), failing = in_state(s, METER_FAILED);
    bool broken = s->n < 0;
    int no_round = spells_take(&s->broken, broken, now), failed = spells_take(&s->failing, failing, now);
    int implausible = spells_take(&s->implausible, in_state(s, METER_DISCARDED), now);
    s->told |= no_round >= 0 || failed >= 0;
    if (no_round >= 0)
        note_trouble(s, "cannot be read", "", strerror(-s->n));
    if (failed >= 0)
        note_trouble(s, "cannot be read", s->readings[failed].node, s->readings[failed].why);
    if (implausible >= 0)
        note_trouble(s, "is implausible", s->readings[implausible].node, s->readings[implausible].why);
    if (s->told && !failing && !broken && !s->of->freed) {
        s->told = false;
        note_mended(s);
    }
}

static void on_read(uv_work_t *work, int status)
{
    struct source *s = work->data;
    struct metering *m = s->of;
    s->reading = false;
    if (status == 0)
        s->rounds++;
    for (int i = 0; status == 0 && !m->freed && i < s->n; i++)
        m->ops->read(m->ctx, s->ops, &s->readings[i]);
    if (status == 0 && !m->freed)
        tell_changes(s);
    if (m->freed)
        drop(m);
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

static void on_work(uv_work_t *work)
{
    struct source *s = work->data;
    s->n = s->ops->read(s->meter, s->readings);
}

/* Those that are being read miss the tick. */
static void read_sources(struct metering *m)
{
    for (struct source *s = m->sources; s; s = s->next) {
        if (s->reading) {
            m->missed++;
            continue;
        }
        s->reading = true;
        (void)uv_queue_work(m->loop, &s->work, on_work, on_read); /* fails only without a callback */
    }
}

static void on_tick(uv_timer_t *t);

static void sleep_until_tick(struct metering *m)
{
    int64_t now = (int64_t)uv_now(m->loop), wait = m->ticker.next > now ? m->ticker.next - now : 0;
    (void)uv_timer_start(&m->timer, on_tick, (uint64_t)wait, 0); /* fails only without a callback */
}

static void on_tick(uv_timer_t *t)
{
    struct metering *m = t->data;
    uint64_t due = ticker_take(&m->ticker, (int64_t)uv_now(m->loop));
    for (struct source *s = m->sources; s && due > 1; s = s->next)
        m->missed += due - 1;
    if (due > 0)
        read_sources(m);
    sleep_until_tick(m);
}

/* --- what others call ------------------------------------------------------------------------------------------------- */

struct metering *metering_new(uv_loop_t *loop, int interval_ms, const struct metering_ops *ops, void *ctx)
{
    struct metering *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    *m = (struct metering){ .ops = ops, .ctx = ctx, .loop = loop, .interval_ms = interval_ms };
    m->end = &m->sources;
    m->timer.data = m;
    (void)uv_timer_init(loop, &m->timer); /* it cannot fail */
    return m;
}

int metering_add(struct metering *m, const struct meter_ops *meter, const struct meter_cfg *cfg, struct err *e)
{
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return err_sys(e, -ENOMEM, "cannot read %s", meter->name);
    int rc = meter->open(&s->meter, cfg, e);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->of = m;
    s->ops = meter;
    s->work.data = s;
    if (!m->sources) {
        uv_update_time(m->loop); /* what was opened before may have taken long */
        m->ticker = ticker_from((int64_t)uv_now(m->loop), m->interval_ms);
        sleep_until_tick(m);
    }
    *m->end = s;
    m->end = &s->next;
    s->reading = true;
    (void)uv_queue_work(m->loop, &s->work, on_work, on_read); /* fails only without a callback */
    return 0;
}

int metering_try(struct metering *m, const struct meter_ops *meter, const struct meter_cfg *cfg, struct err *e)
{
    struct err why = { 0 };
    char text[sizeof why.text + 64];
    int rc = metering_add(m, meter, cfg, &why);
    if (rc == -ENOMEM)
        return err_sys(e, rc, "cannot read %s", meter->name);
    if (rc < 0) {
        (void)snprintf(text, sizeof text, "%s is not read: %s", meter->name, why.text);
        m->ops->note(m->ctx, text);
    }
    return 0;
}

uint64_t metering_missed(const struct metering *m)
{
    return m->missed;
}

uint64_t metering_rounds(const struct metering *m)
{
    uint64_t least = UINT64_MAX;
    for (const struct source *s = m->sources; s; s = s->next)
        if (s->rounds < least)
            least = s->rounds;
    return least;
}
