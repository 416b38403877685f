#include "live/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* One that was handed over, and what came of it. */
struct node {
    struct write one;
    int rc;
    struct node *next;
};

struct list {
    struct node *first, **end; /* of none: NULL, and where the first is to go */
};

/* How far the transaction is that is under way. */
enum stage { STAGE_NONE, STAGE_BEGINS, STAGE_COMMITS };

struct writer {
    uv_loop_t *loop;
    struct store *store;
    uv_async_t async;
    uv_thread_t thread;

    /* Of the loop. */
    struct list waiting, now, over; /* for their turn; in the transaction; to be called back */
    struct err failure;             /* of the first write that failed; code 0: none has */
    bool wanted;                    /* a transaction for the rider */
    bool mounted;                   /* it is in this one */
    bool inside;                    /* a write's rows are being written */
    bool closing;
    enum stage stage;

    /* Between the two: what the thread is to do, and what came of it. */
    uv_mutex_t mutex;
    uv_cond_t cond;
    enum stage job; /* STAGE_NONE: none, or it is done */
    bool alone;     /* of STAGE_BEGINS: there is only the rider's part, so commit at once */
    bool stop;
    int rc;
    struct err why;
};

/* --- on the thread ---------------------------------------------------------------------------------------------------- */

static int commit(struct writer *w)
{
    int rc = w->mounted ? store_ride(w->store, &w->why) : 0;
    if (rc < 0)
        store_rollback_now(w->store);
    return rc < 0 ? rc : store_commit_now(w->store, &w->why);
}

static int do_job(struct writer *w)
{
    int rc = w->job == STAGE_BEGINS ? store_begin_now(w->store, &w->why) : 0;
    return rc == 0 && (w->alone || w->job == STAGE_COMMITS) ? commit(w) : rc;
}

static void run(void *arg)
{
    struct writer *w = arg;
    uv_mutex_lock(&w->mutex);
    for (;;) {
        while (w->job == STAGE_NONE && !w->stop)
            uv_cond_wait(&w->cond, &w->mutex);
        if (w->job == STAGE_NONE)
            break;
        uv_mutex_unlock(&w->mutex); /* nobody else touches what do_job() does, meanwhile */
        int rc = do_job(w);
        uv_mutex_lock(&w->mutex);
        w->rc = rc;
        w->job = STAGE_NONE;
        uv_cond_signal(&w->cond);
        (void)uv_async_send(&w->async); /* fails only for another kind of handle */
    }
    uv_mutex_unlock(&w->mutex);
}

/* --- on the loop ------------------------------------------------------------------------------------------------------ */

static void hand_over(struct writer *w, enum stage job)
{
    w->stage = job;
    uv_mutex_lock(&w->mutex);
    w->job = job;
    uv_cond_signal(&w->cond);
    uv_mutex_unlock(&w->mutex);
}

/* All of `from` goes to the end of `to`. */
static void move_all(struct list *to, struct list *from)
{
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    *from = (struct list){ .end = &from->first };
}

/* Nor is there any write after one of others that failed. */
static bool has_failed(struct writer *w)
{
    if (w->failure.code == 0 && store_is_undone(w->store))
        (void)err_set(&w->failure, -ECANCELED, "nothing is written after a transaction that failed");
    return w->failure.code < 0;
}

static void begin(struct writer *w)
{
    if (!has_failed(w))
        move_all(&w->now, &w->waiting);
    w->wanted = false;
    w->alone = !w->now.first;
    w->mounted = w->alone && store_mount(w->store);
    if (!w->alone || w->mounted)
        hand_over(w, STAGE_BEGINS);
}

static int write_rows(struct writer *w)
{
    int rc = 0;
    w->inside = true;
    for (const struct node *n = w->now.first; rc == 0 && n; n = n->next)
        rc = n->one.rows(n->one.ctx, w->store, &w->why);
    w->inside = false;
    return rc;
}

/* The transaction is committed, or nothing of it is. */
static void finish(struct writer *w, int rc)
{
    w->stage = STAGE_NONE;
    if (w->mounted)
        store_ride_off(w->store, rc, &w->why);
    w->mounted = false;
    for (struct node *n = w->now.first; n; n = n->next)
        n->rc = rc;
    if (rc < 0 && w->now.first)
        (void)err_set(&w->failure, rc, "%s", w->why.text);
    move_all(&w->over, &w->now);
}

/* After a failure. */
static void refuse_waiting(struct writer *w)
{
    for (struct node *n = w->waiting.first; n; n = n->next)
        n->rc = w->failure.code;
    move_all(&w->over, &w->waiting);
}

/* The thread has done what it was given. */
static void advance(struct writer *w)
{
    int rc = w->rc;
    if (rc == 0 && w->stage == STAGE_BEGINS && !w->alone) {
        rc = write_rows(w);
        if (rc == 0) {
            w->mounted = store_mount(w->store);
            hand_over(w, STAGE_COMMITS);
            return;
        }
        store_rollback_now(w->store);
    }
    finish(w, rc);
}

static bool is_done(struct writer *w)
{
    uv_mutex_lock(&w->mutex);
    bool done = w->job == STAGE_NONE;
    uv_mutex_unlock(&w->mutex);
    return done;
}

static void wait_until_done(struct writer *w)
{
    uv_mutex_lock(&w->mutex);
    while (w->job != STAGE_NONE)
        uv_cond_wait(&w->cond, &w->mutex);
    uv_mutex_unlock(&w->mutex);
}

static struct node *take_over(struct writer *w)
{
    struct node *n = w->over.first;
    if (n && !(w->over.first = n->next))
        w->over.end = &w->over.first;
    return n;
}

static void call_back(struct writer *w)
{
    if (has_failed(w))
        refuse_waiting(w);
    for (struct node *n; !w->closing && (n = take_over(w)); free(n)) /* who is called back may hand over more */
        if (n->one.done)
            n->one.done(n->one.ctx, n->rc, &w->failure);
}

static void on_async(uv_async_t *async)
{
    struct writer *w = async->data;
    if (w->stage != STAGE_NONE && is_done(w))
        advance(w);
    call_back(w);
    if (w->stage == STAGE_NONE && (w->waiting.first || w->wanted) && !w->closing)
        begin(w);
}

/* Before a write by others: what was handed over comes first. Theirs may be under way already: then there is nothing of ours. */
static int gate(void *ctx, struct err *e)
{
    struct writer *w = ctx;
    uv_thread_t self = uv_thread_self();
    if (w->inside || uv_thread_equal(&self, &w->thread)) /* it is ours: a write's rows, or the rider's */
        return 0;
    while (w->stage != STAGE_NONE || (w->waiting.first && !has_failed(w) && !store_in_transaction(w->store))) {
        if (w->stage == STAGE_NONE)
            begin(w);
        wait_until_done(w);
        advance(w);
    }
    if (w->over.first)
        (void)uv_async_send(&w->async); /* fails only for another kind of handle */
    return has_failed(w) ? err_set(e, w->failure.code, "%s", w->failure.text) : 0;
}

/* --- what others call ------------------------------------------------------------------------------------------------- */

int writer_open(struct writer **out, uv_loop_t *loop, struct store *s, struct err *e)
{
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_sys(e, -ENOMEM, "the store's writer");
    w->loop = loop;
    w->store = s;
    w->waiting.end = &w->waiting.first;
    w->now.end = &w->now.first;
    w->over.end = &w->over.first;
    w->async.data = w;
    int rc = uv_mutex_init(&w->mutex);
    if (rc < 0) {
        free(w);
        return err_sys(e, rc, "the store's writer");
    }
    rc = uv_cond_init(&w->cond);
    if (rc == 0 && (rc = uv_thread_create(&w->thread, run, w)) < 0)
        uv_cond_destroy(&w->cond);
    if (rc < 0) {
        uv_mutex_destroy(&w->mutex);
        free(w);
        return err_sys(e, rc, "the store's writer");
    }
    (void)uv_async_init(loop, &w->async, on_async);
    store_set_gate(s, gate, w);
    *out = w;
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void writer_close(struct writer *w)
{
    if (!w)
        return;
    writer_settle(w);
    refuse_waiting(w); /* what a failure has left */
    w->closing = true;
    store_set_gate(w->store, NULL, NULL);
    uv_mutex_lock(&w->mutex);
    w->stop = true;
    uv_cond_signal(&w->cond);
    uv_mutex_unlock(&w->mutex);
    (void)uv_thread_join(&w->thread); /* it is there */
    uv_cond_destroy(&w->cond);
    uv_mutex_destroy(&w->mutex);
    for (struct node *n; (n = take_over(w)); free(n))
        ;
    uv_close((uv_handle_t *)&w->async, on_closed);
}

static void write_at_once(struct store *s, struct write one)
{
    struct err why = { 0 };
    int rc = store_begin(s, &why);
    if (rc == 0)
        rc = one.rows(one.ctx, s, &why);
    if (rc == 0)
        rc = store_commit(s, &why);
    else
        store_rollback(s);
    if (one.done)
        one.done(one.ctx, rc, &why);
}

int writer_put(struct writer *w, struct store *s, struct write one, struct err *e)
{
    if (!w) {
        write_at_once(s, one);
        return 0;
    }
    struct node *n = malloc(sizeof *n);
    if (!n)
        return err_sys(e, -ENOMEM, "cannot write to the store");
    *n = (struct node){ .one = one };
    *w->waiting.end = n;
    w->waiting.end = &n->next;
    (void)uv_async_send(&w->async); /* fails only for another kind of handle */
    return 0;
}

void writer_want(struct writer *w)
{
    if (w->wanted)
        return;
    w->wanted = true;
    (void)uv_async_send(&w->async); /* as above */
}

void writer_settle(struct writer *w)
{
    (void)gate(w, NULL); /* who handed over what failed is told of it */
}

void writer_finish(struct writer *w)
{
    do {
        writer_settle(w);
        call_back(w);
    } while (w->waiting.first);
}
