#include "serve/http_pulse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "serve/http_request.h"

struct http_follower {
    struct http_follower *next;
    struct http_pulse *pulse;
    struct MHD_Connection *connection;
    struct http_conn *conn;
    struct http_request request;
    void *state;        /* the pulse's alone; NULL: not opened yet */
    struct buf pending; /* this and what follows: under the lock */
    bool sleeps;        /* its connection is suspended */
    bool ended;         /* nothing more comes */
    bool gone;          /* the library has let go of it */
};

/* --- the library's side ----------------------------------------------------------------------------------------------- */

static ssize_t read_pending(void *cls, uint64_t pos, char *to, size_t room)
{
    struct http_follower *f = cls;
    (void)pos;
    (void)pthread_mutex_lock(&f->pulse->lock);
    size_t n = f->pending.len < room ? f->pending.len : room;
    ssize_t rc = (ssize_t)n;
    if (n > 0) {
        memcpy(to, f->pending.data, n);
        buf_shift(&f->pending, n);
    } else if (f->ended) {
        rc = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        f->sleeps = true;
        MHD_suspend_connection(f->connection);
    }
    (void)pthread_mutex_unlock(&f->pulse->lock);
    return rc;
}

static void let_go(void *cls)
{
    struct http_follower *f = cls;
    (void)pthread_mutex_lock(&f->pulse->lock);
    f->gone = true;
    (void)pthread_cond_signal(&f->pulse->wake);
    (void)pthread_mutex_unlock(&f->pulse->lock);
}

struct MHD_Response *http_pulse_add(struct http_pulse *p, struct MHD_Connection *c, struct http_conn *conn,
                                    struct http_request *q)
{
    struct http_follower *f = calloc(1, sizeof *f);
    struct MHD_Response *r =
        f ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_pending, f, let_go) : NULL;
    if (!r) {
        free(f);
        return NULL;
    }
    *f = (struct http_follower){ .pulse = p, .connection = c, .conn = conn, .request = *q };
    *q = (struct http_request){ .gate = q->gate };
    (void)pthread_mutex_lock(&p->lock);
    f->next = p->first;
    f->ended = p->stops;
    p->first = f;
    (void)pthread_cond_signal(&p->wake);
    (void)pthread_mutex_unlock(&p->lock);
    return r;
}

/* --- the pulse's ------------------------------------------------------------------------------------------------------- */

static void wake(struct http_follower *f)
{
    if (!f->sleeps || f->gone)
        return;
    f->sleeps = false;
    MHD_resume_connection(f->connection);
}

/* What it has to read; who reads nothing any more is shut out. */
static void hand(struct http_follower *f, const struct buf *news, bool over)
{
    (void)pthread_mutex_lock(&f->pulse->lock);
    buf_put(&f->pending, news->data, news->len);
    bool lost = f->pending.failed || news->failed || f->pending.len > HTTP_PENDING_MAX;
    f->ended |= over || lost;
    if (lost && !f->gone)
        http_conns_end(f->pulse->conns, f->conn);
    if (f->ended || news->len > 0)
        wake(f);
    (void)pthread_mutex_unlock(&f->pulse->lock);
}

static void beat_one(struct http_pulse *p, struct http_follower *f, bool news)
{
    AUTO_BUF struct buf out = BUF_INIT;
    bool fresh = !f->state;
    if (fresh)
        f->state = p->follow->open(p->ctx, &f->request);
    int rc = f->state ? p->follow->beat(p->ctx, f->state, news || fresh, &out) : -ENOMEM;
    if (rc < 0 || out.len > 0)
        hand(f, &out, rc < 0);
}

/* Out of the list, and freed. */
static void forget(struct http_pulse *p, struct http_follower *f)
{
    (void)pthread_mutex_lock(&p->lock);
    struct http_follower **at = &p->first;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    (void)pthread_mutex_unlock(&p->lock);
    if (f->state)
        p->follow->close(p->ctx, f->state);
    http_request_done(&f->request);
    buf_done(&f->pending);
    free(f);
}

static bool is_gone(struct http_pulse *p, const struct http_follower *f)
{
    (void)pthread_mutex_lock(&p->lock);
    bool gone = f->gone;
    (void)pthread_mutex_unlock(&p->lock);
    return gone;
}

/* Others are only ever added before the first, and leave by forget() alone: so the rest of the list is the pulse's. */
static void beat(struct http_pulse *p, struct http_follower *first)
{
    bool news = first && p->follow->begin(p->ctx);
    for (struct http_follower *f = first, *next; f; f = next) {
        next = f->next;
        if (is_gone(p, f))
            forget(p, f);
        else if (!f->ended)
            beat_one(p, f, news);
    }
}

static void wait_beat(struct http_pulse *p)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail with this clock */
    long ns = until.tv_nsec + (p->first ? HTTP_BEAT_MS : 1000L) * 1000000L;
    until = (struct timespec){ until.tv_sec + ns / 1000000000L, ns % 1000000000L };
    (void)pthread_cond_timedwait(&p->wake, &p->lock, &until);
}

static void *run(void *arg)
{
    struct http_pulse *p = arg;
    int64_t swept_ms = 0;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stops) {
        struct http_follower *first = p->first;
        (void)pthread_mutex_unlock(&p->lock);
        beat(p, first);
        int64_t now_ms = clock_ms();
        if (now_ms - swept_ms >= 1000) {
            (void)http_conns_sweep(p->conns, now_ms);
            swept_ms = now_ms;
        }
        (void)pthread_mutex_lock(&p->lock);
        if (!p->stops)
            wait_beat(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

int http_pulse_start(struct http_pulse *p, struct http_conns *conns, const struct http_follow *follow, void *ctx)
{
    pthread_condattr_t attr;
    *p = (struct http_pulse){ .conns = conns, .follow = follow, .ctx = ctx };
    int rc = pthread_mutex_init(&p->lock, NULL);
    if (rc != 0)
        return -rc;
    (void)pthread_condattr_init(&attr); /* these two cannot fail here */
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = pthread_cond_init(&p->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    rc = rc == 0 ? pthread_create(&p->thread, NULL, run, p) : rc;
    p->started = rc == 0;
    return -rc;
}

void http_pulse_stop(struct http_pulse *p)
{
    if (!p->started)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stops = true;
    for (struct http_follower *f = p->first; f; f = f->next) {
        f->ended = true;
        wake(f);
    }
    (void)pthread_cond_signal(&p->wake);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
}

void http_pulse_done(struct http_pulse *p)
{
    if (!p->started)
        return;
    while (p->first)
        forget(p, p->first);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
}
