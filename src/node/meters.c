#include "node/meters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/sampler.h"

struct open_meter {
    const struct meter_ops *ops;
    struct meter *meter;
    struct ticker ticker;
};

struct meters {
    struct meters_on on;
    struct meter_cfg cfg; /* of all that are open, which borrow it */
    struct open_meter open[METERS_OPEN_MAX];
    int n;
    struct meter_reading readings[METER_READINGS_MAX]; /* of the one that was read last */
};

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool is_open(const struct meters *m, const struct meter_ops *ops)
{
    int i = 0;
    while (i < m->n && m->open[i].ops != ops)
        i++;
    return i < m->n;
}

static void put_refused(struct buf *to, const char *name, const char *why)
{
    buf_printf(to, "%s%s: ", to->len ? "; " : "", name);
    for (const char *c = why; *c; c++)
        buf_putc(to, *c == ';' ? ',' : *c);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

struct meters *meters_new(const struct meters_on *on)
{
    struct meters *m = calloc(1, sizeof *m);
    if (m)
        m->on = *on;
    return m;
}

void meters_stop(struct meters *m)
{
    while (m->n > 0) {
        struct open_meter *last = &m->open[--m->n];
        last->ops->close(last->meter);
    }
}

void meters_free(struct meters *m)
{
    if (!m)
        return;
    meters_stop(m);
    free(m);
}

/* 1: it is read from now on; 0: it is already. */
static int open_one(struct meters *m, const char *name, struct err *e)
{
    const struct meter_ops *ops = m->on.find(name);
    struct meter *meter = NULL;
    if (!ops || !ops->local)
        return err_set(e, -ENODEV, "no meter of a node has this name");
    if (is_open(m, ops))
        return 0;
    if (m->n == METERS_OPEN_MAX)
        return err_set(e, -ENOSPC, "more than %d meters at once", METERS_OPEN_MAX);
    int rc = ops->open(&meter, &m->cfg, e);
    if (rc < 0)
        return rc;
    m->open[m->n++] = (struct open_meter){ .ops = ops, .meter = meter };
    return 1;
}

/* From now on there is something to take differences from. */
static void start(struct meters *m, int interval_ms)
{
    for (int i = 0; i < m->n; i++)
        (void)m->open[i].ops->read(m->open[i].meter, m->readings); /* one that fails says so at the first tick, too */
    struct ticker ticker = ticker_from(m->on.now_ns(), interval_ms * INT64_C(1000000));
    for (int i = 0; i < m->n; i++)
        m->open[i].ticker = ticker;
}

void meters_set(struct meters *m, const struct meters_want *want, struct buf *opened, struct buf *refused)
{
    meters_stop(m);
    m->cfg = (struct meter_cfg){ .sysfs = m->on.sysfs,
                                 .proc = m->on.proc,
                                 .ops = m->on.ops,
                                 .idle_w = want->idle_w,
                                 .cpu_w = want->cpu_w,
                                 .max_w = want->max_w };
    for (const char *at = want->names; *at; at += *at == ',') {
        struct err e = { 0 };
        char name[METER_NAMES_MAX + 1];
        size_t len = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, at);
        int rc = open_one(m, name, &e);
        if (rc < 0)
            put_refused(refused, name, e.text);
        else if (rc > 0)
            buf_printf(opened, "%s%s", opened->len ? "," : "", name);
        at += len;
    }
    start(m, want->interval_ms);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

int64_t meters_due(const struct meters *m)
{
    int64_t due = INT64_MAX;
    for (int i = 0; i < m->n; i++)
        if (m->open[i].ticker.next < due)
            due = m->open[i].ticker.next;
    return due;
}

static struct open_meter *find_due(struct meters *m, int64_t now)
{
    for (int i = 0; i < m->n; i++)
        if (m->open[i].ticker.next <= now)
            return &m->open[i];
    return NULL;
}

bool meters_take(struct meters *m, bool heard, struct meters_taken *out)
{
    int64_t now = m->on.now_ns();
    struct open_meter *one;
    while ((one = find_due(m, now))) {
        (void)ticker_take(&one->ticker, now);
        int n = heard ? one->ops->read(one->meter, m->readings) : 0;
        if (n <= 0)
            continue; /* nothing new, or no memory: the next tick reads again */
        *out = (struct meters_taken){ .meter = one->ops, .v = m->readings, .n = n };
        return true;
    }
    return false;
}
