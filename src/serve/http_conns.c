#include "serve/http_conns.h"

#include <sys/socket.h>

int http_conns_init(struct http_conns *c)
{
    *c = (struct http_conns){ .v = { { HTTP_NOTHING, -1, 0 } } };
    return -pthread_mutex_init(&c->lock, NULL);
}

void http_conns_done(struct http_conns *c)
{
    (void)pthread_mutex_destroy(&c->lock);
}

static size_t count(const struct http_conns *c, enum http_doing doing)
{
    size_t n = 0;
    for (size_t i = 0; i < HTTP_CONNS_MAX; i++)
        n += c->v[i].doing == doing;
    return n;
}

size_t http_conns_count(struct http_conns *c, enum http_doing doing)
{
    (void)pthread_mutex_lock(&c->lock);
    size_t n = count(c, doing);
    (void)pthread_mutex_unlock(&c->lock);
    return n;
}

static void end(const struct http_conn *one)
{
    (void)shutdown(one->fd, SHUT_RDWR); /* gone already: then it ends without this */
}

void http_conns_end(struct http_conns *c, const struct http_conn *one)
{
    (void)pthread_mutex_lock(&c->lock);
    end(one);
    (void)pthread_mutex_unlock(&c->lock);
}

static void end_oldest(const struct http_conns *c)
{
    const struct http_conn *oldest = NULL;
    for (size_t i = 0; i < HTTP_CONNS_MAX; i++)
        if (c->v[i].doing == HTTP_ASKS && (!oldest || c->v[i].since_ms < oldest->since_ms))
            oldest = &c->v[i];
    if (oldest)
        end(oldest);
}

struct http_conn *http_conns_add(struct http_conns *c, int fd, int64_t now_ms)
{
    struct http_conn *free_one = NULL;
    (void)pthread_mutex_lock(&c->lock);
    if (count(c, HTTP_ASKS) >= HTTP_WAITING_MAX)
        end_oldest(c);
    for (size_t i = 0; i < HTTP_CONNS_MAX && !free_one; i++)
        if (c->v[i].doing == HTTP_NOTHING)
            free_one = &c->v[i];
    if (free_one)
        *free_one = (struct http_conn){ HTTP_ASKS, fd, now_ms };
    (void)pthread_mutex_unlock(&c->lock);
    return free_one;
}

void http_conns_drop(struct http_conns *c, struct http_conn *one)
{
    (void)pthread_mutex_lock(&c->lock);
    *one = (struct http_conn){ HTTP_NOTHING, -1, 0 };
    (void)pthread_mutex_unlock(&c->lock);
}

int http_conns_turn(struct http_conns *c, struct http_conn *one, enum http_doing doing, int64_t now_ms)
{
    int rc = 0;
    (void)pthread_mutex_lock(&c->lock);
    if (doing == HTTP_FOLLOWS && count(c, HTTP_FOLLOWS) >= HTTP_STREAMS_MAX)
        rc = -1;
    else
        *one = (struct http_conn){ doing, one->fd, now_ms };
    (void)pthread_mutex_unlock(&c->lock);
    return rc;
}

size_t http_conns_sweep(struct http_conns *c, int64_t now_ms)
{
    static const int64_t may_ms[] = { [HTTP_NOTHING] = INT64_MAX,
                                      [HTTP_ASKS] = HTTP_ASK_MS,
                                      [HTTP_ANSWERED] = HTTP_ANSWER_MS,
                                      [HTTP_FOLLOWS] = INT64_MAX };
    size_t n = 0;
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < HTTP_CONNS_MAX; i++) {
        if (now_ms - c->v[i].since_ms < may_ms[c->v[i].doing])
            continue;
        end(&c->v[i]);
        n++;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return n;
}
