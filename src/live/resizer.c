#include "live/resizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/resize.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"

enum {
    OPEN_MS = 400,   /* between two rounds while something is to be told */
    WATCH_MS = 5000, /* … and while nothing is: parts come anew */
};

/* What became of a launch's round, on the worker. */
struct outcome {
    struct resize_view view;
    int rc; /* of the first request that went wrong */
    bool seen;
    struct err why;
};

struct order {
    char tag[DESIRED_TAG_MAX + 1];
    struct desired_want want;
    int64_t since_ms, looked_ms;
    enum { ORDER_OPEN, ORDER_TAKES_BACK, ORDER_GIVEN_UP, ORDER_IN_FORCE } state;
    int cores;                 /* as seen last; -1: not yet */
    char why[CLUSTER_WHY_MAX]; /* it is taken back */
};

/* A copy of what the worker needs of an order, and what it finds. */
struct task {
    char tag[DESIRED_TAG_MAX + 1];
    uint64_t id;
    int64_t since_ms;
    int cores; /* 0: nothing is to be asked for but what each has */
    struct outcome out;
};

struct resizer {
    struct cluster_at at;
    const struct resizer_ops *ops;
    void *ctx;
    uv_loop_t *loop;
    uv_work_t work;
    bool working, closed;
    bool none; /* it does not resize, and that was told */
    struct order *orders;
    size_t n, cap;
    struct task *tasks; /* the worker's, while it works */
    size_t n_tasks;
};

/* --- on the worker -------------------------------------------------------------------------------------------------------- */

static int request(struct resizer *r, struct cluster_request *q, int *out_status, struct buf *text, struct err *e)
{
    return cluster_at_ask(&r->at, q, out_status, text, e);
}

static int look(struct resizer *r, const struct cluster_asked *a, struct task *t)
{
    const struct cluster_resize *row = r->at.row->resize;
    struct cluster_request q = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    int status = 0, rc = row->ask(a, t->tag, &q) ? request(r, &q, &status, &text, &t->out.why) : -EINVAL;
    cluster_request_done(&q);
    return rc < 0 ? rc : row->read(&t->out.view, status, buf_text(&text), text.len, &t->out.why);
}

static int change(struct resizer *r, const struct cluster_asked *a, const struct resize_part *p, int64_t milli,
                  struct err *e)
{
    const struct cluster_resize *row = r->at.row->resize;
    struct cluster_request q = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    int status = 0;
    if (!row->change(a, p, milli, &q))
        return 0;
    int rc = request(r, &q, &status, &text, e);
    cluster_request_done(&q);
    return rc < 0 ? rc : row->answer(status, buf_text(&text), text.len, e);
}

static void do_task(struct resizer *r, struct task *t)
{
    const struct cluster_asked a = cluster_at_asked(&r->at);
    struct outcome *o = &t->out;
    o->rc = look(r, &a, t);
    o->seen = o->rc == 0;
    for (size_t i = 0; o->seen && i < o->view.n; i++) {
        const struct resize_part *p = &o->view.parts[i];
        int64_t milli = t->cores > 0 ? resize_share(&o->view, t->cores) : p->has;
        struct err e;
        int rc = p->wanted != milli && milli > 0 ? change(r, &a, p, milli, &e) : 0;
        if (rc < 0 && rc != -EAGAIN && o->rc == 0) {
            o->rc = rc;
            o->why = e;
        }
    }
}

static void on_work(uv_work_t *work)
{
    struct resizer *r = work->data;
    for (size_t i = 0; i < r->n_tasks; i++)
        do_task(r, &r->tasks[i]);
}

/* --- in the loop ---------------------------------------------------------------------------------------------------------- */

static void drop_tasks(struct resizer *r)
{
    for (size_t i = 0; i < r->n_tasks; i++)
        resize_view_done(&r->tasks[i].out.view);
    free(r->tasks);
    r->tasks = NULL;
    r->n_tasks = 0;
}

static void drop(struct resizer *r)
{
    drop_tasks(r);
    cluster_at_done(&r->at);
    free(r->orders);
    free(r);
}

static struct order *find(struct resizer *r, const char *tag)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->orders[i].tag, tag) == 0)
            return &r->orders[i];
    return NULL;
}

/* Tells the end of what was wanted; the callee may call anything, so nothing of the table is touched after. */
static void tell(struct resizer *r, struct order *o, size_t parts)
{
    struct order said = *o;
    struct desired_have have = { .cores = o->cores > 0 ? o->cores : 0, .processes = (int)parts };
    o->state = o->state == ORDER_TAKES_BACK ? ORDER_GIVEN_UP : ORDER_IN_FORCE;
    said.want.tag = said.tag;
    r->ops->applied(r->ctx, &said.want, &have, said.state == ORDER_TAKES_BACK ? said.why : NULL);
}

/* What it came to, where something went wrong: waited for while that may change. */
static enum resize_verdict judge(const struct outcome *o, int cores, int64_t waited_ms, int *out_cores,
                                 char why[CLUSTER_WHY_MAX])
{
    int64_t patience_ms = o->rc == -ENOTSUP ? 0 : o->rc == -EACCES ? RESIZE_DEFER_MS : RESIZE_LATE_MS;
    enum resize_verdict v = resize_judge(&o->view, cores, waited_ms, out_cores, why);
    if (o->rc == 0 || v == RESIZE_DONE || waited_ms < patience_ms)
        return v;
    (void)snprintf(why, CLUSTER_WHY_MAX, "%.*s", CLUSTER_WHY_MAX - 1, o->why.text);
    return RESIZE_INSTEAD;
}

static void settle_open(struct resizer *r, struct order *o, const struct task *t)
{
    int cores = 0;
    enum resize_verdict v = judge(&t->out, o->want.cores, clock_ms() - o->since_ms, &cores, o->why);
    o->cores = t->out.seen ? cores : o->cores;
    if (v == RESIZE_DONE || (t->out.seen && t->out.view.n == 0)) /* it has no part yet: the caller asks again */
        tell(r, o, t->out.view.n);
    else if (v == RESIZE_INSTEAD)
        o->state = ORDER_TAKES_BACK; /* in one more round, and told then */
}

static void settle_changed(struct resizer *r, struct order *o, const struct task *t)
{
    struct desired_have have = { .processes = (int)t->out.view.n };
    char why[CLUSTER_WHY_MAX];
    (void)resize_judge(&t->out.view, o->want.cores, 0, &have.cores, why);
    if (!t->out.seen || have.cores == o->cores || have.cores == 0)
        return;
    o->cores = have.cores;
    r->ops->changed(r->ctx, t->tag, &have);
}

static void settle(struct resizer *r, const struct task *t)
{
    struct order *o = find(r, t->tag);
    if (!o || o->since_ms != t->since_ms || o->want.id != t->id)
        return; /* it was replaced, or is over */
    o->looked_ms = clock_ms();
    if (o->state == ORDER_OPEN)
        settle_open(r, o, t);
    else if (o->state == ORDER_TAKES_BACK)
        tell(r, o, t->out.view.n);
    else
        settle_changed(r, o, t);
}

static void note_none(struct resizer *r)
{
    for (size_t i = 0; !r->none && i < r->n_tasks; i++) {
        const struct outcome *o = &r->tasks[i].out;
        char text[CLUSTER_WHY_MAX + 128];
        if (o->rc != -ENOTSUP)
            continue;
        r->none = true;
        (void)snprintf(text, sizeof text, "CPUs stay as they are launched: %s resizes none", r->at.row->what);
        r->ops->note(r->ctx, text);
    }
}

static void on_worked(uv_work_t *work, int status)
{
    struct resizer *r = work->data;
    if (!r->closed && status == 0) {
        note_none(r);
        for (size_t i = 0; !r->closed && i < r->n_tasks; i++)
            settle(r, &r->tasks[i]);
    }
    r->working = false; /* only now: whoever was told may have closed it */
    if (r->closed)
        drop(r);
    else
        drop_tasks(r);
}

static bool is_due(const struct order *o, int64_t now)
{
    bool open = o->state == ORDER_OPEN || o->state == ORDER_TAKES_BACK;
    return now - o->looked_ms >= (open ? OPEN_MS : WATCH_MS);
}

void resizer_tick(struct resizer *r)
{
    int64_t now = clock_ms();
    if (r->working || r->n == 0)
        return;
    r->tasks = calloc(r->n, sizeof *r->tasks);
    for (size_t i = 0; r->tasks && i < r->n; i++) {
        const struct order *o = &r->orders[i];
        if (!is_due(o, now))
            continue;
        struct task *t = &r->tasks[r->n_tasks++];
        (void)snprintf(t->tag, sizeof t->tag, "%s", o->tag);
        t->id = o->want.id;
        t->since_ms = o->since_ms;
        t->cores = o->state == ORDER_GIVEN_UP || o->state == ORDER_TAKES_BACK ? 0 : o->want.cores;
    }
    if (r->n_tasks == 0) { /* without memory: at the next tick */
        drop_tasks(r);
        return;
    }
    r->working = true;
    (void)uv_queue_work(r->loop, &r->work, on_work, on_worked); /* fails only without a callback */
}

/* --- what is asked of it -------------------------------------------------------------------------------------------------- */

int resizer_open(struct resizer **out, uv_loop_t *loop, const struct cluster_at *at, const struct resizer_ops *ops,
                 void *ctx, struct err *e)
{
    struct resizer *r = calloc(1, sizeof *r);
    if (!r || cluster_at_copy(&r->at, at) < 0) {
        free(r);
        return err_sys(e, -ENOMEM, "%s", at->row->what);
    }
    r->ops = ops;
    r->ctx = ctx;
    r->loop = loop;
    r->work.data = r;
    *out = r;
    return 0;
}

void resizer_close(struct resizer *r)
{
    if (!r)
        return;
    r->closed = true;
    if (!r->working)
        drop(r);
}

int resizer_apply(struct resizer *r, const struct desired_want *want, struct err *e)
{
    struct order *o = find(r, want->tag);
    if (!o) {
        struct order *grown = array_more(r->orders, r->n, &r->cap, sizeof *grown);
        if (!grown)
            return err_sys(e, -ENOMEM, "the CPUs of '%s'", want->tag);
        r->orders = grown;
        o = &r->orders[r->n++];
        *o = (struct order){ .cores = -1 };
        (void)snprintf(o->tag, sizeof o->tag, "%s", want->tag);
    }
    o->want = *want;
    o->want.tag = NULL; /* the caller's; so are its CPUs */
    o->want.cpus = NULL;
    o->want.n_cpus = 0;
    o->state = ORDER_OPEN;
    o->since_ms = clock_ms();
    o->looked_ms = o->since_ms - OPEN_MS;
    return 0;
}

void resizer_release(struct resizer *r, const char *tag)
{
    struct order *o = r ? find(r, tag) : NULL;
    if (o)
        *o = r->orders[--r->n];
}
